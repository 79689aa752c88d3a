//! Released draws and their parameters.

use crate::diagnostics::{Summary, SummaryError, dot_name};

/// Released draws: chains × draws × parameters. Computing anything from them costs no privacy.
///
/// ```
/// use dpm::Draws;
///
/// let chains = vec![vec![vec![1.0, 10.0], vec![3.0, 30.0]]]; // one chain, two draws
/// let draws = Draws::new(vec!["alpha".into(), "beta.1".into()], chains)?;
/// assert_eq!(draws.names(), ["alpha", "beta[1]"]);
/// assert_eq!(draws.pooled("beta[1]"), Some(vec![10.0, 30.0]));
/// assert_eq!(draws.summary().rows[0].mean, 2.0);
/// # Ok::<(), dpm::diagnostics::SummaryError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Draws {
    names: Vec<String>,
    chains: Vec<Vec<Vec<f64>>>,
}

impl Draws {
    /// Draws from names in either spelling (`m[2,1]`, `m.2.1`) and values, chains × draws × names.
    ///
    /// # Errors
    ///
    /// A draw without exactly one value per name.
    pub fn new(names: Vec<String>, chains: Vec<Vec<Vec<f64>>>) -> Result<Draws, SummaryError> {
        for (chain, draws) in chains.iter().enumerate() {
            if let Some(draw) = draws.iter().position(|draw| draw.len() != names.len()) {
                return Err(SummaryError {
                    chain,
                    draw,
                    found: draws[draw].len(),
                    expected: names.len(),
                });
            }
        }
        Ok(Draws {
            names: names
                .iter()
                .map(|name| crate::diagnostics::bracket_name(&dot_name(name)))
                .collect(),
            chains,
        })
    }

    /// In bracket form, as people read them: `m[2,1]`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Chains × draws × [`names`](Draws::names).
    pub fn chains(&self) -> &[Vec<Vec<f64>>] {
        &self.chains
    }

    /// One parameter's draws, chain by chain; `None` if there is none of that name.
    pub fn of(&self, name: &str) -> Option<Vec<Vec<f64>>> {
        let wanted = dot_name(name);
        let column = self.names.iter().position(|n| dot_name(n) == wanted)?;
        let of_chain = |chain: &Vec<Vec<f64>>| chain.iter().map(|draw| draw[column]).collect();
        Some(self.chains.iter().map(of_chain).collect())
    }

    /// One parameter's draws, all chains together; `None` if there is none of that name.
    pub fn pooled(&self, name: &str) -> Option<Vec<f64>> {
        self.of(name).map(|chains| chains.concat())
    }

    /// Mean, spread, quantiles, sample sizes and R-hat of every parameter.
    pub fn summary(&self) -> Summary {
        // The widths were checked at construction.
        Summary::of_draws(&self.names, &self.chains).unwrap_or(Summary { rows: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_either_spelling() {
        let names = vec!["a".to_string(), "m.2.1".to_string()];
        let chains = vec![vec![vec![1.0, 2.0]], vec![vec![3.0, 4.0]]];
        let draws = Draws::new(names, chains).unwrap();
        assert_eq!(draws.of("m[2, 1]"), Some(vec![vec![2.0], vec![4.0]]));
        assert_eq!(draws.pooled("m.2.1"), Some(vec![2.0, 4.0]));
        assert_eq!(draws.pooled("m"), None);
        assert_eq!(draws.summary().rows.len(), 2);
    }

    #[test]
    fn draws_of_another_width_are_refused() {
        let error = Draws::new(vec!["a".into()], vec![vec![vec![1.0], vec![]]]).unwrap_err();
        assert_eq!((error.chain, error.draw, error.found), (0, 1, 0));
        let empty = Draws::new(Vec::new(), Vec::new()).unwrap();
        assert!(empty.summary().rows.is_empty());
    }
}

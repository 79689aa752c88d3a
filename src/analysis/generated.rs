//! Generated quantities of released draws.

use std::collections::HashMap;
use std::path::Path;

use super::error::Error;
use crate::check::{Checked, on_deep_stack};
use crate::diagnostics::dot_name;
use crate::model::{
    BindError, Constants, Generator, ModelFileError, SourceError, checked_source, source_of,
};
use crate::output::Draws;

/// The `generated quantities` of a program, to be computed from draws: predictions, contrasts,
/// whatever follows from parameters and public constants. Nothing private is read.
///
/// ```
/// use dpm::{Constants, Draws, GeneratedQuantities};
///
/// let program = "constants { int N; vector[N] x; }
///     record { real y; }
///     parameters { real mu; }
///     model { mu ~ normal(0, 10); y ~ normal(mu, 1); }
///     generated quantities { array[N] real y_new = normal_rng(mu + x, 1); }";
/// let constants = Constants::from_json(r#"{"N": 2, "x": [0, 100]}"#)?;
/// let quantities = GeneratedQuantities::from_source(program, &constants)?;
///
/// let draws = Draws::new(vec!["mu".into()], vec![vec![vec![0.5], vec![0.7]]])?;
/// let predictions = quantities.of(&draws, 1)?;
/// assert_eq!(predictions.names(), ["y_new[1]", "y_new[2]"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct GeneratedQuantities {
    checked: Checked,
    constants: Constants,
    source: String,
    name: String,
}

impl GeneratedQuantities {
    /// Of a program and its constants.
    ///
    /// # Errors
    ///
    /// All of the program's, rendered with its source lines.
    pub fn from_source(
        source: &str,
        constants: &Constants,
    ) -> Result<GeneratedQuantities, SourceError> {
        GeneratedQuantities::named(source, "model", constants)
    }

    /// Of the program of a file and its constants.
    ///
    /// # Errors
    ///
    /// The file cannot be read; all errors of the program.
    pub fn from_file(
        path: impl AsRef<Path>,
        constants: &Constants,
    ) -> Result<GeneratedQuantities, ModelFileError> {
        let (source, name) = source_of(path.as_ref())?;
        Ok(GeneratedQuantities::named(&source, &name, constants)?)
    }

    fn named(
        source: &str,
        name: &str,
        constants: &Constants,
    ) -> Result<GeneratedQuantities, SourceError> {
        let made = GeneratedQuantities {
            checked: checked_source(source, name)?,
            constants: constants.clone(),
            source: source.to_owned(),
            name: name.to_owned(),
        };
        // What does not fit the constants is said now.
        let bound = on_deep_stack(|| Generator::new(&made.checked, &made.constants).map(|_| ()));
        match bound {
            Ok(()) => Ok(made),
            Err(error) => Err(made.located(&error)),
        }
    }

    /// The quantities of each draw, chains and draws in their order. The same seed gives the
    /// same random numbers. A draw that the program rejects becomes NaN.
    ///
    /// # Errors
    ///
    /// The draws do not have the program's parameters; a value violates a declared bound.
    pub fn of(&self, draws: &Draws, seed: u64) -> Result<Draws, Error> {
        on_deep_stack(|| self.generate(draws, seed))
    }

    fn generate(&self, draws: &Draws, seed: u64) -> Result<Draws, Error> {
        let mut generator =
            Generator::new(&self.checked, &self.constants).map_err(|e| self.located(&e))?;
        let places = places(&generator, draws)?;
        let names = generator.names();
        let mut chains = Vec::with_capacity(draws.chains().len());
        for (i, chain) in draws.chains().iter().enumerate() {
            generator.start_chain(seed, i as u64 + 1);
            let mut rows = Vec::with_capacity(chain.len());
            for draw in chain {
                let value = |places: &Vec<usize>| places.iter().map(|&c| draw[c]).collect();
                let parameters: Vec<Vec<f64>> = places.iter().map(value).collect();
                rows.push(match generator.run(&parameters) {
                    Ok(generated) => generated.values,
                    Err(error) if error.rejected => vec![f64::NAN; names.len()],
                    Err(error) => return Err(self.located(&error).into()),
                });
            }
            chains.push(rows);
        }
        Draws::new(names, chains).map_err(|e| Error::Settings(e.to_string()))
    }

    fn located(&self, error: &BindError) -> SourceError {
        SourceError::new(vec![error.diagnostic()], &self.source, &self.name)
    }
}

/// Where in a draw the elements of each parameter stand, in storage order.
fn places(generator: &Generator, draws: &Draws) -> Result<Vec<Vec<usize>>, Error> {
    let columns: HashMap<String, usize> = draws
        .names()
        .iter()
        .enumerate()
        .map(|(column, name)| (dot_name(name), column))
        .collect();
    let places = generator.places(|element| columns.get(element).copied());
    places.map_err(|[element, name]| {
        Error::Settings(format!(
            "the draws have no `{element}`, which the parameter `{name}` needs: give the program and the constants that they were made with"
        ))
    })
}

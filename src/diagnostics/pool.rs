//! Estimates from several imputed or synthetic tables as one: Rubin's rules and their relatives.
//!
//! With q_i and u_i the estimate and its variance from table i of M, q their mean, U the mean of the
//! u_i and B the variance of the q_i (divisor M - 1):
//!
//! | rule | variance of q | degrees of freedom |
//! |---|---|---|
//! | full | (1 + 1/M) B - U | (M - 1) (1 - U / ((1 + 1/M) B))^2 |
//! | partial | U + B/M | (M - 1) (1 + U / (B/M))^2 |
//! | missing | U + (1 + 1/M) B | (M - 1) (1 + U / ((1 + 1/M) B))^2 |
//!
//! Full: Raghunathan, Reiter and Rubin (2003), *Multiple imputation for statistical disclosure
//! limitation*, Journal of Official Statistics 19(1). Where the variance comes out negative, Reiter
//! (2002), *Satisfying disclosure restrictions with synthetic data sets*, ibid. 18(4), takes U times
//! the size of a synthetic table over that of the data. The papers give no degrees of freedom for
//! that; M - 1 are taken. Partial: Reiter (2003), *Inference for partially synthetic, public use
//! microdata sets*, Survey Methodology 29(2). Missing: Rubin (1987), *Multiple Imputation for
//! Nonresponse in Surveys*, section 3.1. Degrees of freedom of the first two also in Reiter and
//! Raghunathan (2007), *The multiple adaptations of multiple imputation*, JASA 102.

use serde::Serialize;

use crate::function::special::student_t_quantile;

/// The kind of tables, on which the rule depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolRule {
    /// All values that the estimate uses are drawn from the model, each table at a draw of its own:
    /// tables of `dpm synth`.
    Full,
    /// Some values of the real table are replaced by draws.
    Partial,
    /// Missing values of the real table are filled in by draws.
    Missing,
}

/// One quantity, from all tables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pooled {
    /// Their number.
    pub tables: usize,
    pub estimate: f64,
    /// Of the estimate.
    pub variance: f64,
    /// Of the t distribution on which the interval is based; infinite for a normal one.
    pub degrees_of_freedom: f64,
    /// The central 90% interval.
    pub interval: [f64; 2],
    /// U: the mean of the tables' variances.
    pub within: f64,
    /// B: the variance between the tables' estimates.
    pub between: f64,
    /// Whether the rule's variance was negative, and was replaced.
    pub corrected: bool,
}

/// Estimates that cannot be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    #[error("expected the estimates of at least two tables, found {0}")]
    Tables(usize),
    #[error("expected a variance for each estimate: there are {estimates} and {variances}")]
    Lengths { estimates: usize, variances: usize },
    #[error("estimate {0} is not a finite number")]
    Estimate(usize),
    #[error("variance {0} is not a finite number that is at least 0")]
    Variance(usize),
}

/// Combines the estimates of a quantity from several tables, and their variances (squared standard
/// errors). `size_ratio`: rows of a synthetic table over rows of the data, which only the correction
/// of a negative variance uses.
///
/// ```
/// use dpm::diagnostics::{PoolRule, pool};
///
/// let pooled = pool(PoolRule::Full, &[1.0, 2.0, 3.0], &[0.3, 0.2, 0.1], 1.0)?;
/// assert_eq!(pooled.estimate, 2.0);
/// assert!((pooled.variance - (4.0 / 3.0 - 0.2)).abs() < 1e-12);
/// # Ok::<(), dpm::diagnostics::PoolError>(())
/// ```
///
/// # Errors
///
/// Fewer than two tables; not as many variances; a number that is no estimate or no variance.
pub fn pool(
    rule: PoolRule,
    estimates: &[f64],
    variances: &[f64],
    size_ratio: f64,
) -> Result<Pooled, PoolError> {
    let tables = estimates.len();
    if variances.len() != tables {
        return Err(PoolError::Lengths {
            estimates: tables,
            variances: variances.len(),
        });
    }
    if tables < 2 {
        return Err(PoolError::Tables(tables));
    }
    if let Some(bad) = estimates.iter().position(|q| !q.is_finite()) {
        return Err(PoolError::Estimate(bad + 1));
    }
    if let Some(bad) = variances.iter().position(|u| !(u.is_finite() && *u >= 0.0)) {
        return Err(PoolError::Variance(bad + 1));
    }
    let m = tables as f64;
    let mean = |values: &[f64]| values.iter().map(|v| v / m).sum::<f64>();
    let (estimate, within) = (mean(estimates), mean(variances));
    let squares = estimates.iter().map(|q| (q - estimate).powi(2));
    let between = squares.sum::<f64>() / (m - 1.0);
    let spread = match rule {
        PoolRule::Partial => between / m,
        PoolRule::Full | PoolRule::Missing => (1.0 + 1.0 / m) * between,
    };
    let sign = if rule == PoolRule::Full { -1.0 } else { 1.0 };
    let corrected = rule == PoolRule::Full && spread < within;
    let (variance, degrees_of_freedom) = match (corrected, spread > 0.0) {
        (true, _) => (size_ratio * within, m - 1.0),
        // The tables agree, as if there were infinitely many.
        (false, false) => (within, f64::INFINITY),
        (false, true) => (
            spread + sign * within,
            (m - 1.0) * (1.0 + sign * within / spread).powi(2),
        ),
    };
    let half = if variance > 0.0 {
        student_t_quantile(0.95, degrees_of_freedom) * variance.sqrt()
    } else {
        0.0
    };
    Ok(Pooled {
        tables,
        estimate,
        variance,
        degrees_of_freedom,
        interval: [estimate - half, estimate + half],
        within,
        between,
        corrected,
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    // By hand: q = 2, B = 1, U = 0.2, M = 3.
    #[test]
    fn figures_are_those_of_the_formulas() {
        for (rule, variance, freedom) in [
            (PoolRule::Full, 4.0 / 3.0 - 0.2, 2.0 * 0.85 * 0.85),
            (PoolRule::Partial, 1.0 / 3.0 + 0.2, 2.0 * 1.6 * 1.6),
            (PoolRule::Missing, 4.0 / 3.0 + 0.2, 2.0 * 1.15 * 1.15),
        ] {
            let found = pool(rule, &[1.0, 2.0, 3.0], &[0.3, 0.2, 0.1], 1.0).unwrap();
            assert!((found.variance - variance).abs() < 1e-12, "{found:?}");
            assert!(
                (found.degrees_of_freedom - freedom).abs() < 1e-12,
                "{found:?}"
            );
            assert!((found.between - 1.0).abs() + (found.within - 0.2).abs() < 1e-12);
            assert!(!found.corrected);
        }
        // B = 0.01 and U = 1: the variance of the full rule is negative.
        let found = pool(PoolRule::Full, &[0.0, 0.1, 0.2], &[1.0; 3], 0.5).unwrap();
        assert!(found.corrected && (found.variance - 0.5).abs() < 1e-12);
        assert_eq!(found.degrees_of_freedom, 2.0);
        // Equal estimates.
        let found = pool(PoolRule::Missing, &[1.0; 3], &[4.0; 3], 1.0).unwrap();
        assert!((found.interval[1] - 1.0 - 2.0 * 1.644_853_626_951).abs() < 1e-9);
        let found = pool(PoolRule::Full, &[1.0; 3], &[0.0; 3], 1.0).unwrap();
        assert_eq!(found.interval, [1.0, 1.0]);
    }

    #[test]
    fn what_cannot_be_combined_is_said() {
        let said = |q: &[f64], u: &[f64]| pool(PoolRule::Full, q, u, 1.0).unwrap_err();
        assert_eq!(said(&[1.0], &[1.0]), PoolError::Tables(1));
        assert_eq!(said(&[1.0, f64::NAN], &[1.0, 1.0]), PoolError::Estimate(2));
        assert_eq!(said(&[1.0, 2.0], &[-1.0, 1.0]), PoolError::Variance(1));
        let lengths = PoolError::Lengths {
            estimates: 2,
            variances: 1,
        };
        assert_eq!(said(&[1.0, 2.0], &[1.0]), lengths);
    }

    /// The mean of normal data with variance 1, and its variance.
    fn mean_of(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        (mean, square / (n - 1.0) / n)
    }

    /// The share of 400 repetitions in which the 90% interval from 20 tables has the true mean, 0.
    /// `table`: from data of 100 rows, the values of a table.
    fn coverage(
        rule: PoolRule,
        seed: u64,
        table: impl Fn(&[f64], &mut dyn FnMut() -> f64) -> Vec<f64>,
    ) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || StandardNormal.sample(&mut rng);
        let mut covered = 0;
        for _ in 0..400 {
            let data: Vec<f64> = (0..100).map(|_| normal()).collect();
            let tables = (0..20).map(|_| mean_of(&table(&data, &mut normal)));
            let (q, u): (Vec<f64>, Vec<f64>) = tables.unzip();
            let [low, high] = pool(rule, &q, &u, 2.0).unwrap().interval;
            covered += usize::from(low <= 0.0 && 0.0 <= high);
        }
        covered as f64 / 400.0
    }

    /// A draw of the mean from its posterior under a flat prior, given these values.
    fn posterior(values: &[f64], normal: &mut dyn FnMut() -> f64) -> f64 {
        mean_of(values).0 + normal() / (values.len() as f64).sqrt()
    }

    /// Synthetic tables of so many rows.
    fn synthetic(rows: usize) -> impl Fn(&[f64], &mut dyn FnMut() -> f64) -> Vec<f64> {
        move |data, normal| {
            let mean = posterior(data, normal);
            (0..rows).map(|_| mean + normal()).collect()
        }
    }

    // If it failed: intervals from synthetic tables would not have what they promise. The share of
    // 400 repetitions has a standard error of 0.015; the band is four of them, plus 0.02 for the t
    // approximation: false alarm 1e-4 for each rule. The wrong rules for synthetic tables are
    // seen: from 100 rows of data, the partial rule has 0.77 for tables of 200 rows, and that for
    // missing values 0.999 for tables of 50.
    #[test]
    fn intervals_have_the_true_value_as_often_as_they_promise() {
        let near = |found: f64| assert!((0.82..=0.98).contains(&found), "{found}");
        near(coverage(PoolRule::Full, 1, synthetic(200)));
        let partial = coverage(PoolRule::Partial, 1, synthetic(200));
        assert!(partial < 0.82, "{partial}");
        let missing = coverage(PoolRule::Missing, 1, synthetic(50));
        assert!(missing > 0.98, "{missing}");
        // Half of the real values replaced, by draws given that half.
        near(coverage(PoolRule::Partial, 2, |data, normal| {
            let mean = posterior(&data[..50], normal);
            let mut table = data.to_vec();
            table[..50].fill_with(|| mean + normal());
            table
        }));
        // Half of the values missing, drawn given the others.
        near(coverage(PoolRule::Missing, 3, |data, normal| {
            let mean = posterior(&data[50..], normal);
            let mut table = data.to_vec();
            table[..50].fill_with(|| mean + normal());
            table
        }));
    }
}

//! Monte Carlo standard errors: how far a summary may be from that of the same chains run for ever.

use super::chains::{is_defined, map_draws};
use super::ess::ess_mean;
use super::moments::{mean, sd};

/// Standard error of the mean, in the parameter's units: sd / sqrt(ESS of the mean).
pub fn mcse_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    sd(chains) / ess_mean(chains).sqrt()
}

/// Standard error of the standard deviation, in the parameter's units, by the delta
/// method from the variance of the squared deviations and their ESS (Kenney and Keeping
/// 1951, p. 141, as posterior and arviz compute it). NaN for a constant.
pub fn mcse_sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    if !is_defined(chains, 1) {
        return f64::NAN;
    }
    let centre = mean(chains);
    let squares = map_draws(chains, |x| (x - centre) * (x - centre));
    let variance = mean(&squares);
    let fourth_moment = mean(&map_draws(&squares, |s| s * s));
    let error_of_variance = (fourth_moment - variance * variance) / ess_mean(&squares);
    (error_of_variance / variance / 4.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::assert_all_equal_arviz;
    use super::*;

    #[test]
    fn equals_arviz() {
        assert_all_equal_arviz("mcse_mean", mcse_mean);
        assert_all_equal_arviz("mcse_sd", mcse_sd);
    }

    #[test]
    fn of_a_constant_the_mean_is_exact_and_the_sd_undefined() {
        let chains = [vec![0.1; 10]];
        assert_eq!(mcse_mean(&chains), 0.0);
        assert!(mcse_sd(&chains).is_nan());
    }

    #[test]
    fn undefined_is_nan() {
        assert!(mcse_mean::<Vec<f64>>(&[]).is_nan() && mcse_sd::<Vec<f64>>(&[]).is_nan());
        assert!(mcse_mean(&[[1.0]]).is_nan() && mcse_sd(&[[1.0]]).is_nan());
        assert!(mcse_sd(&[vec![1.0, f64::NAN, 2.0, 3.0]]).is_nan());
    }
}

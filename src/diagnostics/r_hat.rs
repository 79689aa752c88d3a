//! The potential scale reduction factor.

use super::chains::{is_defined, map_draws, pooled, split};
use super::moments::{mean_of, median_of, variance_of};
use super::rank::rank_normalised;

/// Rank-normalised split R-hat: the larger of that of the draws (bulk) and that of
/// their distances from the median (folded, which sees differing scales).
///
/// Vehtari et al. (2021), sections 3 and 4. The median is that of all draws, as in the paper,
/// posterior and `az.summary`; `az.rhat` leaves out the middle draw of an odd number.
/// NaN for one chain, as in arviz (posterior gives the split R-hat there), and for a
/// constant parameter.
pub fn r_hat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    if !is_defined(chains, 2) {
        return f64::NAN;
    }
    let median = median_of(&pooled(chains));
    let folded = map_draws(chains, |x| (x - median).abs());
    let bulk = scale_reduction(&rank_normalised(&split(chains)));
    let tail = scale_reduction(&rank_normalised(&split(&folded)));
    // Only the folded one is undefined where all draws are equally far from the median.
    if tail > bulk { tail } else { bulk }
}

/// sqrt((B/W + n - 1) / n): W the mean variance within chains of n draws, B n times
/// the variance of their means (eqs. 1-4).
fn scale_reduction(chains: &[Vec<f64>]) -> f64 {
    let n = chains.first().map_or(0, Vec::len) as f64;
    let means: Vec<f64> = chains.iter().map(|c| mean_of(c)).collect();
    let variances: Vec<f64> = chains.iter().map(|c| variance_of(c)).collect();
    let between = n * variance_of(&means);
    let within = mean_of(&variances);
    ((between / within + n - 1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::assert_all_equal_arviz;
    use super::*;

    #[test]
    fn equals_arviz() {
        assert_all_equal_arviz("r_hat", r_hat);
    }

    #[test]
    fn sees_a_shifted_and_a_wider_chain() {
        let wave = |i: u32| f64::from(i * 7919 % 1009) / 1009.0 - 0.5;
        let chain = |scale: f64, shift: f64, seed: u32| -> Vec<f64> {
            (0..200)
                .map(|i| scale * wave(i * 13 + seed) + shift)
                .collect()
        };
        assert!(r_hat(&[chain(1.0, 0.0, 1), chain(1.0, 0.0, 2)]) < 1.05);
        assert!(r_hat(&[chain(1.0, 0.0, 1), chain(1.0, 1.0, 2)]) > 1.5);
        assert!(r_hat(&[chain(1.0, 0.0, 1), chain(9.0, 0.0, 2)]) > 1.3);
    }

    #[test]
    fn undefined_is_nan() {
        assert!(r_hat::<Vec<f64>>(&[]).is_nan());
        assert!(r_hat(&[vec![1.0, 2.0, 3.0, 4.0]]).is_nan());
        assert!(r_hat(&[vec![0.1; 10], vec![0.1; 10]]).is_nan());
        assert!(r_hat(&[vec![1.0, 2.0, 3.0, 4.0], vec![1.0, 2.0, f64::NAN, 4.0]]).is_nan());
    }

    #[test]
    fn chains_stuck_at_different_values_have_infinite_r_hat() {
        assert_eq!(r_hat(&[vec![1.0; 10], vec![2.0; 10]]), f64::INFINITY);
    }

    #[test]
    fn a_two_point_parameter_keeps_its_bulk_r_hat() {
        let chains = [[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]];
        assert!(r_hat(&chains).is_finite());
    }
}

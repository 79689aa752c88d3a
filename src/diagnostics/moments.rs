//! Mean, standard deviation, median absolute deviation and quantiles of pooled draws.

use super::chains::pooled;

/// Mean of all draws; NaN without draws.
pub fn mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    mean_of(&pooled(chains))
}

/// Standard deviation of all draws, divisor n - 1; NaN for fewer than two.
pub fn sd<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    variance_of(&pooled(chains)).sqrt()
}

/// Median absolute deviation from the median, times 1.4826 so that it estimates the
/// standard deviation of a normal, as in R's `mad` and Stan's summary.
pub fn mad<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    const NORMAL_CONSISTENCY: f64 = 1.4826;
    let draws = pooled(chains);
    let centre = median_of(&draws);
    let deviations: Vec<f64> = draws.iter().map(|x| (x - centre).abs()).collect();
    NORMAL_CONSISTENCY * median_of(&deviations)
}

/// The quantile of all draws at `probability` in [0, 1], linear between order
/// statistics (type 7 of Hyndman and Fan 1996, the default of R and numpy).
///
/// NaN without draws, with any draw that is NaN, or outside [0, 1].
pub fn quantile<C: AsRef<[f64]>>(chains: &[C], probability: f64) -> f64 {
    quantile_of(&pooled(chains), probability)
}

/// Mean in two passes: the second removes the rounding of the first, so that the mean of a constant
/// is that constant and its variance zero.
pub(super) fn mean_of(draws: &[f64]) -> f64 {
    let n = draws.len() as f64;
    let first = draws.iter().sum::<f64>() / n;
    if !first.is_finite() {
        return first;
    }
    first + draws.iter().map(|x| x - first).sum::<f64>() / n
}

/// Variance with divisor n - 1; NaN for fewer than two draws.
pub(super) fn variance_of(draws: &[f64]) -> f64 {
    if draws.len() < 2 {
        return f64::NAN;
    }
    let centre = mean_of(draws);
    let squares: f64 = draws.iter().map(|x| (x - centre) * (x - centre)).sum();
    squares / (draws.len() - 1) as f64
}

pub(super) fn median_of(draws: &[f64]) -> f64 {
    quantile_of(draws, 0.5)
}

/// Evaluated as scipy's `mquantiles(alphap=1, betap=1)` orders it: ESS compares draws
/// with the result, where the last bit decides whether a draw counts.
pub(super) fn quantile_of(draws: &[f64], probability: f64) -> f64 {
    let n = draws.len();
    if n == 0 || draws.iter().any(|x| x.is_nan()) || !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    if n == 1 {
        return draws[0];
    }
    let mut sorted = draws.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = n as f64 * probability + (1.0 - probability);
    let below = position.clamp(1.0, (n - 1) as f64).floor();
    let share = (position - below).clamp(0.0, 1.0);
    let (low, high) = (sorted[below as usize - 1], sorted[below as usize]);
    if low == high || share == 0.0 {
        return low; // also where infinity times zero would make NaN of it
    }
    if share == 1.0 {
        return high;
    }
    (1.0 - share) * low + share * high
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::assert_all_equal_arviz;
    use super::*;

    #[test]
    fn moments_and_quantiles_equal_arviz() {
        assert_all_equal_arviz("mean", mean);
        assert_all_equal_arviz("sd", sd);
        assert_all_equal_arviz("mad", mad);
        assert_all_equal_arviz("q5", |c| quantile(c, 0.05));
        assert_all_equal_arviz("q50", |c| quantile(c, 0.5));
        assert_all_equal_arviz("q95", |c| quantile(c, 0.95));
    }

    #[test]
    fn a_constant_has_exactly_no_spread() {
        let chains = [vec![0.1; 1001]];
        assert_eq!(mean(&chains), 0.1);
        assert_eq!(sd(&chains), 0.0);
        assert_eq!(mad(&chains), 0.0);
    }

    #[test]
    fn of_nothing_one_draw_or_nan_the_undefined_is_nan() {
        let none: [Vec<f64>; 0] = [];
        assert!(mean(&none).is_nan() && sd(&none).is_nan() && mad(&none).is_nan());
        assert!(quantile(&none, 0.5).is_nan());
        assert_eq!((mean(&[[3.0]]), quantile(&[[3.0]], 0.05)), (3.0, 3.0));
        assert!(sd(&[[3.0]]).is_nan());
        let broken = [vec![1.0, f64::NAN, 2.0]];
        assert!(mean(&broken).is_nan() && sd(&broken).is_nan() && mad(&broken).is_nan());
        assert!(quantile(&broken, 0.0).is_nan());
        assert!(
            quantile(&[[1.0, 2.0]], 1.5).is_nan() && quantile(&[[1.0, 2.0]], f64::NAN).is_nan()
        );
    }

    #[test]
    fn infinite_draws_leave_the_quantiles_they_do_not_touch() {
        let draws = [vec![f64::NEG_INFINITY, 1.0, 2.0, 3.0, f64::INFINITY]];
        assert_eq!(quantile(&draws, 0.5), 2.0);
        assert_eq!(quantile(&draws, 0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(&draws, 1.0), f64::INFINITY);
        assert!(mean(&draws).is_nan() && sd(&draws).is_nan());
        assert_eq!(mean(&[vec![1.0, f64::INFINITY]]), f64::INFINITY);
    }
}

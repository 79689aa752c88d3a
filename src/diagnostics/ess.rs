//! Effective sample sizes.

use super::autocovariance::MeanAutocovariance;
use super::chains::{is_defined, map_draws, pooled, split, split_if_defined};
use super::moments::{mean_of, quantile_of, variance_of};
use super::rank::rank_normalised;

/// ESS of the rank-normalised split chains, in draws: how well the centre of the distribution is
/// known, even where it has no mean (Vehtari et al. 2021, section 4.1).
pub fn ess_bulk<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    split_if_defined(chains, 1).map_or(f64::NAN, |halves| {
        effective_sample_size(&rank_normalised(&halves))
    })
}

/// The smaller of the ESS of the 5 % and of the 95 % quantile, in draws
/// (Vehtari et al. 2021, section 4.3).
pub fn ess_tail<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let (low, high) = (ess_quantile(chains, 0.05), ess_quantile(chains, 0.95));
    if high < low { high } else { low }
}

/// ESS of the mean, in draws: that of the unmodified split chains.
pub fn ess_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    split_if_defined(chains, 1).map_or(f64::NAN, |halves| effective_sample_size(&halves))
}

/// ESS of the quantile at `probability`: that of the indicators of draws at or below it.
pub fn ess_quantile<C: AsRef<[f64]>>(chains: &[C], probability: f64) -> f64 {
    if !is_defined(chains, 1) || !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    let threshold = quantile_of(&pooled(chains), probability);
    let indicators = map_draws(chains, |x| f64::from(u8::from(x <= threshold)));
    effective_sample_size(&split(&indicators))
}

/// S / τ̂ of chains of equal length that have already been split, with
/// τ̂ = -1 + 2 Σ ρ̂ₜ cut by Geyer's initial positive and monotone sequences, from
/// the autocorrelations of all chains combined (Vehtari et al. 2021, eqs. 10-13; Geyer
/// 1992, section 3.3).
///
/// The order of the steps, including the treatment of the last even lag, is that of Stan, posterior
/// and arviz. At most S log10 S, where antithetic chains would give more.
fn effective_sample_size(chains: &[Vec<f64>]) -> f64 {
    let n = chains.first().map_or(0, Vec::len);
    if n < 2 {
        return f64::NAN;
    }
    let size = (n * chains.len()) as f64;
    if is_constant(chains) {
        return size;
    }

    let n_draws = n as f64;
    let mut covariance = MeanAutocovariance::of(chains);
    let within = covariance.at(0) * n_draws / (n_draws - 1.0);
    let mut total = within * (n_draws - 1.0) / n_draws;
    if chains.len() > 1 {
        let means: Vec<f64> = chains.iter().map(|c| mean_of(c)).collect();
        total += variance_of(&means);
    }
    let mut correlation = |lag: usize| 1.0 - (within - covariance.at(lag)) / total;

    // Positive sequence: pairs (ρ₂ₖ, ρ₂ₖ₊₁) as long as their sum is positive.
    let mut rho = vec![1.0, correlation(1)];
    let mut even = rho[0];
    let mut odd = rho[1];
    let mut next = 2;
    while next < n.saturating_sub(2) && even + odd > 0.0 {
        even = correlation(next);
        odd = correlation(next + 1);
        let kept = even + odd >= 0.0;
        rho.push(if kept { even } else { 0.0 });
        rho.push(if kept { odd } else { 0.0 });
        next += 2;
    }
    // The last pair ends the sum: only its even lag counts, once, where positive.
    let last = next - 2;
    if even > 0.0 {
        rho[last] = even;
    }

    // Monotone sequence: no pair above the one before it.
    let mut pair = 2;
    while pair + 1 < last {
        let before = rho[pair - 2] + rho[pair - 1];
        if rho[pair] + rho[pair + 1] > before {
            rho[pair] = before / 2.0;
            rho[pair + 1] = before / 2.0;
        }
        pair += 2;
    }

    let time = -1.0 + 2.0 * rho[..last].iter().sum::<f64>() + rho[last];
    if rho.iter().any(|rho| rho.is_nan()) || time.is_nan() {
        return f64::NAN;
    }
    size / time.max(1.0 / size.log10())
}

/// numpy's resolution of a double, the spread below which arviz calls draws constant.
fn is_constant(chains: &[Vec<f64>]) -> bool {
    let draws = || chains.iter().flatten().copied();
    let highest = draws().fold(f64::NEG_INFINITY, f64::max);
    let lowest = draws().fold(f64::INFINITY, f64::min);
    highest - lowest < 1e-15
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::assert_all_equal_arviz;
    use super::*;

    #[test]
    fn equals_arviz() {
        assert_all_equal_arviz("ess_bulk", ess_bulk);
        assert_all_equal_arviz("ess_tail", ess_tail);
        assert_all_equal_arviz("ess_mean", ess_mean);
    }

    #[test]
    fn of_a_constant_it_is_the_number_of_draws() {
        let chains = [vec![0.1; 10], vec![0.1; 10]];
        assert_eq!(
            (ess_bulk(&chains), ess_tail(&chains), ess_mean(&chains)),
            (20.0, 20.0, 20.0)
        );
    }

    #[test]
    fn alternating_chains_are_capped_at_s_log_s() {
        let chain: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert_eq!(ess_mean(&[chain]), 200.0);
    }

    #[test]
    fn undefined_is_nan() {
        assert!(ess_bulk::<Vec<f64>>(&[]).is_nan());
        assert!(ess_tail(&[vec![1.0, 2.0, 3.0]]).is_nan());
        assert!(ess_mean(&[vec![1.0, 2.0, f64::INFINITY, 3.0]]).is_nan());
        assert!(ess_quantile(&[vec![1.0, 2.0, 3.0, 4.0]], 2.0).is_nan());
    }

    #[test]
    fn huge_draws_give_nan_rather_than_a_number() {
        assert!(ess_mean(&[vec![1e308, -1e308, 1e308, -1e308]]).is_nan());
    }
}

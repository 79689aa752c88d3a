//! A run's draws by parameter, and their curves and ranks.

use crate::diagnostics::quantile;

/// One parameter's draws.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column<'a> {
    /// Bracket form.
    pub name: &'a str,
    /// Chains × draws.
    pub chains: Vec<Vec<f64>>,
}

impl Column<'_> {
    pub fn draws(&self) -> impl Iterator<Item = f64> + '_ {
        self.chains.iter().flatten().copied()
    }

    pub fn finite(&self) -> Vec<f64> {
        self.draws().filter(|x| x.is_finite()).collect()
    }

    /// How many draws are NaN or infinite.
    pub fn not_finite(&self) -> usize {
        self.draws().filter(|x| !x.is_finite()).count()
    }

    pub fn is_constant(&self) -> bool {
        let mut draws = self.draws();
        let first = draws.next();
        first.is_some_and(|first| draws.all(|x| x == first))
    }

    /// Whether there is a distribution to draw.
    pub fn varies(&self) -> bool {
        let finite = self.finite();
        let first = finite.first().copied();
        first.is_some_and(|first| finite.iter().any(|&x| x != first))
    }

    /// The reason why it cannot be drawn.
    pub fn trouble(&self) -> Option<String> {
        match (self.not_finite(), self.is_constant()) {
            (0, true) => Some("all draws are one number".to_owned()),
            (0, false) => None,
            (some, _) => Some(format!(
                "{some} of {} draws are NaN or infinite",
                self.draws().count()
            )),
        }
    }
}

/// Quantiles of finite draws.
pub(super) fn quantiles<const N: usize>(draws: &[f64], probabilities: [f64; N]) -> [f64; N] {
    probabilities.map(|p| quantile(&[draws], p))
}

/// A kernel density estimate between two ends, at evenly spaced points: a normal kernel
/// with the bandwidth of Silverman (1986, equation 3.31). Draws are reflected at an end near which
/// so many lie that it must be a bound, so that the estimate does not fall there.
pub(super) fn density(draws: &[f64], [low, high]: [f64; 2], points: usize) -> Vec<(f64, f64)> {
    const BINS: usize = 512;
    /// At most a hundredth of normal draws lies within a bandwidth of the last one.
    const AT_A_BOUND: f64 = 0.03;
    let n = draws.len() as f64;
    let [q25, q75, least, most] = quantiles(draws, [0.25, 0.75, 0.0, 1.0]);
    let mean = draws.iter().sum::<f64>() / n;
    let sd = (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
    let spread = [sd, (q75 - q25) / 1.34]
        .into_iter()
        .filter(|&s| s > 0.0)
        .fold(f64::INFINITY, f64::min);
    let width = (high - low) / points as f64;
    let bandwidth = (0.9 * spread * n.powf(-0.2)).max(0.5 * width);
    if !(bandwidth.is_finite() && width > 0.0) {
        return Vec::new();
    }
    let crowded = |end: f64| {
        let near = draws
            .iter()
            .filter(|x| (*x - end).abs() < bandwidth)
            .count();
        near as f64 > AT_A_BOUND * n && n > 50.0
    };
    let (below, above) = (crowded(least), crowded(most));
    // Draws far outside add nothing visible.
    let (from, to) = (low - 4.0 * bandwidth, high + 4.0 * bandwidth);
    let size = (to - from) / BINS as f64;
    let mut bins = [0.0; BINS];
    let mirrored = draws.iter().flat_map(|&x| {
        let left = below.then_some(2.0 * least - x);
        [Some(x), left, above.then_some(2.0 * most - x)]
    });
    for x in mirrored.flatten() {
        let place = ((x - from) / size).floor();
        if place >= 0.0 && place < BINS as f64 {
            bins[place as usize] += 1.0;
        }
    }
    let norm = 1.0 / (n * bandwidth * (2.0 * std::f64::consts::PI).sqrt());
    (0..=points)
        .map(|i| {
            let x = low + i as f64 * width;
            if (below && x < least) || (above && x > most) {
                return (x, 0.0);
            }
            let sum: f64 = bins
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0.0)
                .map(|(b, count)| {
                    let z = (x - from - (b as f64 + 0.5) * size) / bandwidth;
                    count * (-0.5 * z * z).exp()
                })
                .sum();
            (x, norm * sum)
        })
        .collect()
}

/// For each chain, how many of its draws fall into each of `bins` groups of equal size of
/// the pooled draws in order (Vehtari et al. 2021, section 4.2). Equal draws share their average
/// rank; NaN has none.
pub(super) fn rank_counts(chains: &[Vec<f64>], bins: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<(f64, usize)> = chains
        .iter()
        .enumerate()
        .flat_map(|(chain, draws)| draws.iter().map(move |&x| (x, chain)))
        .filter(|(x, _)| x.is_finite())
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = order.len();
    let mut counts = vec![vec![0; bins]; chains.len()];
    let mut taken = 0;
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let middle = taken as f64 + (tied.len() as f64 - 1.0) / 2.0;
        let bin = ((middle + 0.5) / total as f64 * bins as f64) as usize;
        for &(_, chain) in tied {
            counts[chain][bin.min(bins - 1)] += 1;
        }
        taken += tied.len();
    }
    counts
}

/// Pearson's correlation of the ranks, from 1, of two parameters (Spearman's): it is robust against a few
/// outliers. NaN where one does not vary.
pub(super) fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let middle = (n + 1.0) / 2.0;
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        both += (x - middle) * (y - middle);
        first += (x - middle) * (x - middle);
        second += (y - middle) * (y - middle);
    }
    both / (first * second).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::average_ranks;
    use crate::function::special::normal_quantile;

    fn normal(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| normal_quantile((i as f64 + 0.5) / n as f64))
            .collect()
    }

    // Oracle: the normal density. The bandwidth 0.9 * 2000^-0.2 = 0.2 lowers the peak by 2 %.
    #[test]
    fn the_density_of_normal_draws_is_the_normals() {
        let found = density(&normal(2000), [-3.0, 3.0], 60);
        for (x, value) in found {
            let exact = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
            assert!((value - exact).abs() < 0.02, "{x}: {value}, {exact}");
        }
    }

    #[test]
    fn at_a_bound_the_density_does_not_sink() {
        let exponential: Vec<f64> = (0..4000)
            .map(|i| -((i as f64 + 0.5) / 4000.0).ln())
            .collect();
        let found = density(&exponential, [-1.0, 4.0], 100);
        assert_eq!(found[10].1, 0.0);
        let at = found.iter().find(|(x, _)| *x > 0.02).unwrap();
        assert!(at.1 > 0.85, "{at:?}");
    }

    #[test]
    fn nothing_to_estimate_gives_nothing() {
        assert!(density(&[], [0.0, 1.0], 10).is_empty());
        assert!(density(&[1.0], [1.0, 1.0], 10).is_empty());
    }

    #[test]
    fn ranks_of_chains_that_agree_and_that_do_not() {
        let low: Vec<f64> = (0..100).map(f64::from).collect();
        let high: Vec<f64> = (100..200).map(f64::from).collect();
        let apart = rank_counts(&[low.clone(), high], 10);
        assert_eq!(apart[0], [20, 20, 20, 20, 20, 0, 0, 0, 0, 0]);
        let same = rank_counts(&[low.clone(), low], 10);
        assert_eq!(same, vec![vec![10; 10]; 2]);
        let stuck = rank_counts(&[vec![1.0; 7]], 4);
        assert_eq!(stuck[0].iter().sum::<usize>(), 7);
    }

    #[test]
    fn correlations_are_those_of_ranks() {
        let a: Vec<f64> = (0..50).map(f64::from).collect();
        let up: Vec<f64> = a.iter().map(|x| x.exp()).collect();
        let down: Vec<f64> = a.iter().map(|x| -x).collect();
        let correlation =
            |x: &[f64], y: &[f64]| rank_correlation(&average_ranks(x), &average_ranks(y));
        assert!((correlation(&a, &up) - 1.0).abs() < 1e-12);
        assert!((correlation(&a, &down) + 1.0).abs() < 1e-12);
        assert!(correlation(&a, &[3.0; 50]).is_nan());
    }
}

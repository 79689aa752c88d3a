//! Rank-normalisation: draws replaced by normal scores of their pooled ranks.

use crate::function::special::normal_quantile;

/// Normal scores z = Φ⁻¹((r - 3/8) / (S + 1/4)) of the ranks r among all S draws, ties
/// sharing their average rank; shape chains × draws, as given (Vehtari et al. 2021,
/// eq. 14; the offset is Blom's, 1958).
pub(super) fn rank_normalised(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let draws: Vec<f64> = chains.concat();
    let size = draws.len() as f64;
    let scores: Vec<f64> = average_ranks(&draws)
        .into_iter()
        .map(|rank| normal_quantile((rank - 0.375) / (size + 0.25)))
        .collect();
    let mut rest = scores.as_slice();
    let mut normalised = Vec::with_capacity(chains.len());
    for chain in chains {
        let (own, after) = rest.split_at(chain.len());
        normalised.push(own.to_vec());
        rest = after;
    }
    normalised
}

/// 1-based ranks; equal values share the mean of their ranks.
pub(crate) fn average_ranks(draws: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..draws.len()).collect();
    order.sort_unstable_by(|&a, &b| draws[a].total_cmp(&draws[b]));
    let mut ranks = vec![0.0; draws.len()];
    let mut taken = 0;
    for tied in order.chunk_by(|&a, &b| draws[a] == draws[b]) {
        let rank = taken as f64 + (tied.len() + 1) as f64 / 2.0;
        for &index in tied {
            ranks[index] = rank;
        }
        taken += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_average_rank() {
        assert_eq!(average_ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(average_ranks(&[0.0, -0.0]), [1.5, 1.5]);
        assert!(average_ranks(&[]).is_empty());
    }

    #[test]
    fn scores_keep_the_shape_and_are_antisymmetric() {
        let scores = rank_normalised(&[vec![5.0, -1.0], vec![7.0, 9.0]]);
        assert_eq!((scores[0].len(), scores[1].len()), (2, 2));
        assert_eq!(scores[0][1], -scores[1][1]);
        assert_eq!(scores[0][0], -scores[1][0]);
        // scipy.stats.norm.ppf((4 - 0.375) / 4.25)
        assert!((scores[1][1] - 1.049_131_397_963_971).abs() < 1e-14);
    }
}

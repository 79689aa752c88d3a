//! Properties of a set of chains that are checked before any statistic is computed.

/// The chains split in half, 2 × chains of `draws / 2` each, or `None` where no
/// diagnostic is defined: fewer than `min_chains` chains or four draws, chains of
/// unequal length, or a draw that is not finite.
///
/// The middle one of an odd number of draws is left out, as in arviz and posterior.
pub(super) fn split_if_defined<C: AsRef<[f64]>>(
    chains: &[C],
    min_chains: usize,
) -> Option<Vec<Vec<f64>>> {
    is_defined(chains, min_chains).then(|| split(chains))
}

/// Whether diagnostics are defined for these chains; see [`split_if_defined`].
pub(super) fn is_defined<C: AsRef<[f64]>>(chains: &[C], min_chains: usize) -> bool {
    const MIN_DRAWS: usize = 4;
    let Some(first) = chains.first() else {
        return false;
    };
    let draws = first.as_ref().len();
    chains.len() >= min_chains
        && draws >= MIN_DRAWS
        && chains.iter().all(|chain| chain.as_ref().len() == draws)
        && pooled(chains).iter().all(|draw| draw.is_finite())
}

/// Each chain's first and last `draws / 2` draws: all first halves, then all last halves.
pub(super) fn split<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    let halves = |chain: &C| chain.as_ref().len() / 2;
    let first = chains.iter().map(|c| c.as_ref()[..halves(c)].to_vec());
    let last = chains
        .iter()
        .map(|c| c.as_ref()[c.as_ref().len() - halves(c)..].to_vec());
    first.chain(last).collect()
}

/// All draws of all chains, one chain after another.
pub(super) fn pooled<C: AsRef<[f64]>>(chains: &[C]) -> Vec<f64> {
    chains.iter().flat_map(|c| c.as_ref()).copied().collect()
}

/// Each draw replaced by `f` of it, in the same shape.
pub(super) fn map_draws<C: AsRef<[f64]>>(chains: &[C], f: impl Fn(f64) -> f64) -> Vec<Vec<f64>> {
    let map_chain = |chain: &C| chain.as_ref().iter().map(|&x| f(x)).collect();
    chains.iter().map(map_chain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_chain_loses_its_middle_draw() {
        let halves = split(&[vec![1.0, 2.0, 3.0, 4.0, 5.0]]);
        assert_eq!(halves, [[1.0, 2.0], [4.0, 5.0]]);
    }

    #[test]
    fn nothing_is_defined_of_short_ragged_or_broken_chains() {
        let good = vec![1.0, 2.0, 3.0, 4.0];
        assert!(is_defined(std::slice::from_ref(&good), 1));
        assert!(!is_defined(std::slice::from_ref(&good), 2));
        assert!(!is_defined::<Vec<f64>>(&[], 1));
        assert!(!is_defined(&[vec![1.0, 2.0, 3.0]], 1));
        assert!(!is_defined(&[good.clone(), vec![1.0; 5]], 1));
        for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(!is_defined(&[vec![1.0, 2.0, broken, 4.0]], 1));
        }
    }
}

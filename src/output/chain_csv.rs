//! A chain as a file.

use super::stan_csv::{StanCsvHeader, StanCsvWriter, Timing, WriteStanCsvError};
use crate::sampler::{self, Chain, Draw, Phase};

/// The draws after warm-up.
pub(crate) fn sampled(chain: &Chain) -> impl Iterator<Item = &Draw> {
    chain.draws.iter().filter(|d| d.phase == Phase::Sampling)
}

/// One chain's file and the draws in it.
pub(crate) type ChainFile = (String, Vec<Vec<f64>>);

/// A private chain has taken no time: see [`Chain::seconds`].
pub(crate) fn chain_csv(
    chain: &Chain,
    header: StanCsvHeader,
    names: &[String],
) -> Result<ChainFile, WriteStanCsvError> {
    let columns: Vec<String> = ["stepsize__", "divergent__"]
        .iter()
        .chain(sampler::lookup(&header.algorithm).map_or(&[][..], |a| a.columns))
        .map(ToString::to_string)
        .collect();
    let mut writer = StanCsvWriter::new(Vec::new(), header.clone(), &columns, names)?;
    let mut kept = Vec::new();
    for (i, draw) in sampled(chain).take(header.num_samples).enumerate() {
        if header.keeps(i) {
            let mut extra = vec![draw.step_size, f64::from(draw.divergent)];
            extra.extend(&draw.sampler);
            writer.draw(draw.accept_stat, &extra, &draw.values)?;
            kept.push(draw.values.clone());
        }
    }
    let [warmup, sampling] = chain.seconds.unwrap_or_default();
    let bytes = writer.finish(Timing { warmup, sampling })?;
    // All of it is text.
    Ok((String::from_utf8_lossy(&bytes).into_owned(), kept))
}

//! The evidence for a diagnosis.

use crate::diagnostics::bracket_name;
use crate::sampler::NoiseScales;

/// One chain's kept iterations of the sampling phase. Columns that the sampler does not have are
/// empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChainRecord {
    /// Draws × parameters.
    pub draws: Vec<Vec<f64>>,
    /// min(1, e^log a) of each iteration.
    pub accept_stat: Vec<f64>,
    pub step_size: Vec<f64>,
    /// 1 for a trajectory that diverged.
    pub divergent: Vec<f64>,
    /// The Hamiltonian at the draw, nats.
    pub energy: Vec<f64>,
    /// Doublings of the trajectory.
    pub tree_depth: Vec<f64>,
}

/// The settings of a run that are needed to understand its draws. All of them are public.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFacts {
    /// Whether noise was added for privacy, so that there is a budget.
    pub has_budget: bool,
    /// Whether proposals are accepted or rejected.
    pub tests_proposals: bool,
    /// Whether warm-up found the step size.
    pub adapts_step: bool,
    /// Whether distances are those of the unconstrained scale.
    pub unit_metric: bool,
    /// The noise of a private run.
    pub noise: NoiseScales,
    /// Steps of a trajectory of fixed length.
    pub leapfrog_steps: Option<u64>,
    /// Most doublings of a trajectory.
    pub max_depth: Option<u32>,
    /// The warnings of the plan, in its words.
    pub plan_warnings: Vec<String>,
    /// Whether a clip bound may have changed the target.
    pub may_clip: bool,
    /// The search of a sampler that searches for the posterior before its chains read the records.
    pub search: Option<SearchFacts>,
    /// The likelihood of a sampler that releases it, and draws from it at no cost.
    pub likelihood: Option<LikelihoodFacts>,
    /// How many records the tempered likelihood counts for.
    pub tempered: Option<f64>,
}

/// How a search for the posterior ended; all of it follows from released values.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchFacts {
    /// Length of the last Newton step beyond the part due to noise, in posterior standard
    /// deviations, the root mean square over coordinates; the largest number where there was none.
    pub last_step: f64,
    /// Whether that step was longer than a step may be.
    pub cut: bool,
    /// The largest share of noise in an eigenvalue of the information, 0 to 1.
    pub unknown: f64,
    /// Whether the records' gradients were visible above the noise.
    pub seen: bool,
    /// Where draws are independent ones of a fitted Gaussian: standard deviation of the noise in
    /// its centre, in posterior standard deviations.
    pub centre_sd: Option<f64>,
}

/// The noise in a likelihood's centre, in posterior standard deviations, above which it is most of the width. Ours.
pub(super) const MOSTLY_NOISE: f64 = 1.0;

/// How a likelihood was learnt; all of it follows from released values.
#[derive(Debug, Clone, PartialEq)]
pub struct LikelihoodFacts {
    /// How many directions there are.
    pub coordinates: u64,
    /// Length of the last step before it was cut, in standard deviations of posterior and noise
    /// together, the root mean square over directions; the largest number where there was none.
    pub last_step: f64,
    /// Whether that step was cut, as it was longer than a step may be.
    pub cut: bool,
    /// The mean squares seen in the last rounds, in units of the expected ones.
    pub surprise: Vec<f64>,
    /// The share of directions whose information could be noise.
    pub unknown: f64,
    /// The share of the squares of gradients' lengths that was not seen and is not in the law's
    /// tails.
    pub untold: f64,
    /// The pull that clipping took from records that the model's law hardly has; none where it was not asked for.
    pub clipped: Option<Pull>,
    /// Whether the lengths of the clipped vectors were visible above the noise.
    pub seen: bool,
    /// Whether the information is that of the model's law of the outcomes, or public.
    pub has_law: bool,
    /// Standard deviation of the noise in the centre, in posterior standard deviations.
    pub centre_sd: f64,
    /// The parameters (bracket form) whose likelihood hardly falls off below, and above: how far out the truth may
    /// be on that side is hidden by noise.
    pub open: [Vec<String>; 2],
    /// The parameters about which records and prior disagree.
    pub conflicts: Vec<Conflict>,
    /// The result of the fresh look at the centre; none where an interruption has lost it.
    pub certificate: Option<Certificate>,
}

impl LikelihoodFacts {
    /// Whether noise is most of the draws' width.
    pub(super) fn is_mostly_noise(&self) -> bool {
        self.centre_sd > MOSTLY_NOISE
    }
}

/// A pull of records, if all of them pull in one direction, and the standard deviation of its noise; in posterior
/// standard deviations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pull {
    pub sds: f64,
    pub noise: f64,
}

/// A parameter about which records and prior disagree.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// In bracket form.
    pub name: String,
    /// How far the place that the search has found is from the prior's middle, in standard deviations of what the
    /// prior says about that place and its noise.
    pub sds: f64,
    /// The same in the prior's own standard deviations.
    pub prior_sds: f64,
    /// How far the draws are from that place, in their standard deviations.
    pub moved: f64,
}

/// A fresh look at the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Certificate {
    /// The probability of its result if all claims hold.
    pub p: f64,
    /// Standard deviation of its noise, in posterior standard deviations.
    pub noise: f64,
}

/// The range of a column under the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorRange {
    /// From the 5% to the 95% quantile.
    pub central_90: [f64; 2],
    /// At least the central 99.9%.
    pub central_999: [f64; 2],
}

/// A run: names for each of the draws' columns, in either spelling, its chains, its settings,
/// and its prior.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    pub names: Vec<String>,
    pub chains: Vec<ChainRecord>,
    pub facts: RunFacts,
    /// One for each column, where it is known; may be empty.
    pub priors: Vec<Option<PriorRange>>,
}

/// One parameter's draws.
pub(super) struct Column {
    /// Bracket form.
    pub name: String,
    /// Chains × draws.
    pub chains: Vec<Vec<f64>>,
    pub prior: Option<PriorRange>,
}

impl Column {
    /// Draws that are NaN or infinite.
    pub fn not_finite(&self) -> usize {
        let draws = self.chains.iter().flatten();
        draws.filter(|x| !x.is_finite()).count()
    }

    pub fn draws(&self) -> usize {
        self.chains.iter().map(Vec::len).sum()
    }

    fn is_finite(&self) -> bool {
        self.not_finite() == 0
    }

    /// Whether all draws of all chains are one number.
    fn is_constant(&self) -> bool {
        let mut draws = self.chains.iter().flatten();
        let first = draws.next();
        first.is_some_and(|first| first.is_finite() && draws.all(|x| x == first))
    }
}

/// The evidence, read once for all rules.
pub(super) struct EvidenceView<'a> {
    pub chains: &'a [ChainRecord],
    pub facts: &'a RunFacts,
    /// Columns of finite draws that are not all the same, which can converge.
    pub moving: Vec<Column>,
    pub constant: Vec<Column>,
    pub not_finite: Vec<Column>,
    /// Chains (from 0) whose draws are all the same point.
    pub stuck: Vec<usize>,
}

impl EvidenceView<'_> {
    pub fn of(evidence: &Evidence) -> EvidenceView<'_> {
        let mut view = EvidenceView {
            chains: &evidence.chains,
            facts: &evidence.facts,
            moving: Vec::new(),
            constant: Vec::new(),
            not_finite: Vec::new(),
            stuck: Vec::new(),
        };
        for (index, name) in evidence.names.iter().enumerate() {
            let value = |draw: &Vec<f64>| draw.get(index).copied().unwrap_or(f64::NAN);
            let of_chain = |chain: &ChainRecord| chain.draws.iter().map(value).collect();
            let column = Column {
                name: bracket_name(name),
                chains: evidence.chains.iter().map(of_chain).collect(),
                prior: evidence.priors.get(index).copied().flatten(),
            };
            if !column.is_finite() {
                view.not_finite.push(column);
            } else if column.is_constant() {
                view.constant.push(column);
            } else {
                view.moving.push(column);
            }
        }
        let never_moved = |(_, chain): &(usize, &ChainRecord)| stands_still(&chain.draws);
        let stuck = evidence.chains.iter().enumerate().filter(never_moved);
        view.stuck = stuck.map(|(c, _)| c).collect();
        view
    }

    /// For draws that come from no chain: the noise in the centre of the Gaussian from which they
    /// are independent draws, in posterior standard deviations.
    pub fn gaussian(&self) -> Option<f64> {
        self.facts.search.as_ref()?.centre_sd
    }

    /// Whether each draw costs privacy.
    pub fn draws_cost(&self) -> bool {
        self.facts.has_budget && self.facts.likelihood.is_none()
    }

    /// Draws of each chain, where all have the same number.
    pub fn draws_per_chain(&self) -> Option<usize> {
        let first = self.chains.first()?.draws.len();
        let same = self.chains.iter().all(|c| c.draws.len() == first);
        same.then_some(first)
    }

    /// Mean acceptance over all iterations; none where samplers accept everything, or do not report
    /// it.
    pub fn acceptance(&self) -> Option<f64> {
        if !self.facts.tests_proposals {
            return None;
        }
        let stats = || self.chains.iter().flat_map(|c| &c.accept_stat);
        let (sum, count) = stats()
            .filter(|x| x.is_finite())
            .fold((0.0, 0u64), |(sum, n), x| (sum + x, n + 1));
        (count > 0).then(|| sum / count as f64)
    }

    /// The largest step of a typical chain: the median of the chains' largest. Jitter makes
    /// steps smaller, never larger.
    pub fn step_size(&self) -> Option<f64> {
        let largest = |chain: &ChainRecord| {
            let steps = chain.step_size.iter().copied();
            steps.filter(|h| h.is_finite()).reduce(f64::max)
        };
        let steps: Vec<f64> = self.chains.iter().filter_map(largest).collect();
        (!steps.is_empty()).then(|| crate::diagnostics::quantile(&[steps], 0.5))
    }
}

/// Whether all draws are the same to the bit, so that a coordinate that is always NaN does
/// not look like a move.
fn stands_still(draws: &[Vec<f64>]) -> bool {
    let same = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.to_bits() == y.to_bits())
    };
    draws.len() > 1 && draws.windows(2).all(|pair| same(&pair[0], &pair[1]))
}

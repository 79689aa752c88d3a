//! The questions of a sampler, line by line, before any data are read.

use crate::accounting::{Barker, Event, Gaussian, Lattice, Relation, Subsampled, batch_rate};
use crate::privacy::{
    BarkerScale, BatchPenaltyScale, GradientScale, PenaltyScale, Statistic, Subsampling, penalty,
};
use crate::sampler::contract::error::PlanError;
use crate::sampler::contract::request::PlanRequest;

/// The question that a line of the schedule asks the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The sum of the records' clipped gradients.
    Gradient,
    /// The sum of the records' clipped log-likelihood ratios between two points.
    /// Clip bound and noise are per unit of distance between them; of a batch, in units of
    /// the bound.
    LogRatio,
    /// DP-Barker's test of a batch.
    Barker,
    /// The sum of a statistic from which a start learns, or with which chains then sample, in the
    /// coordinates of the start; its clip bound follows from earlier releases, and its noise is a
    /// multiple of that bound, so that the cost is known beforehand.
    Learnt(Statistic),
}

/// The rule that determines the noise of a line's releases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// As much as this share of the budget requires.
    Share(f64),
    /// The noise that the dynamics need anyway, as a multiple of the sensitivity;
    /// more, if the budget asks for it.
    AtLeast(f64),
    /// Determined by the kind of release.
    Fixed,
}

/// A number of releases of the same kind.
#[derive(Debug, Clone)]
pub struct Line {
    /// The name of the release in plans and reports.
    pub what: &'static str,
    pub question: Question,
    pub noise: Noise,
    /// The number of releases over all chains.
    pub count: u64,
    /// The records that each release covers.
    pub subsampling: Subsampling,
}

impl Line {
    /// `each` log-ratios over all records in each iteration of each chain.
    pub fn log_ratios(
        noise: Noise,
        each: u64,
        iterations: u64,
        request: &PlanRequest,
    ) -> Result<Line, PlanError> {
        Ok(Line {
            what: "log-ratio per unit of distance",
            question: Question::LogRatio,
            noise,
            count: over_chains(each.checked_mul(iterations), request.chains)?,
            subsampling: Subsampling::All,
        })
    }

    /// The number of noise values drawn for one release.
    pub fn coordinates(&self, request: &PlanRequest) -> u64 {
        match self.question {
            Question::Gradient => request.dimension,
            Question::LogRatio | Question::Barker => 1,
            Question::Learnt(statistic) => statistic.coordinates(request.dimension as usize) as u64,
        }
    }

    /// The factor by which a batch's sum is multiplied to estimate that of all records.
    pub fn weight(&self, request: &PlanRequest) -> f64 {
        match self.subsampling {
            Subsampling::All => 1.0,
            Subsampling::Poisson(rate) => 1.0 / rate.rate().to_f64(),
            Subsampling::FixedSize(size) => {
                request.records.map_or(f64::NAN, |n| n as f64 / size as f64)
            }
        }
    }
}

/// The integers that the vault works with.
#[derive(Debug, Clone, Copy)]
pub enum Scale {
    Gradient(GradientScale),
    LogRatio(PenaltyScale),
    BatchLogRatio(BatchPenaltyScale),
    Barker(BarkerScale),
    /// In units of the clip bound, which is not known yet.
    Learnt(GradientScale),
}

/// A line whose noise is settled.
#[derive(Debug, Clone)]
pub struct PlannedLine {
    pub line: Line,
    /// The noise multiplier: noise over sensitivity.
    pub tau: f64,
    pub scale: Scale,
    /// The event that is charged.
    pub event: Event,
}

impl PlannedLine {
    /// Settles a line's noise at `tau` times its sensitivity.
    pub(crate) fn new(
        line: &Line,
        tau: f64,
        request: &PlanRequest,
    ) -> Result<PlannedLine, PlanError> {
        let coordinates = line.coordinates(request);
        let (scale, event) = match line.question {
            Question::Gradient => {
                let factor = factor(request.relation);
                let scale = GradientScale::new(request.clip_gradient(), factor, tau)?;
                let lattice = Lattice::new(scale.lattice_ratio(), coordinates)?;
                let event = line.event(request.clip_gradient(), scale.sigma(), lattice, request)?;
                (Scale::Gradient(scale), event)
            }
            Question::Learnt(statistic) => {
                let factor = factor(request.relation);
                let scale = statistic.scale(1.0, factor, tau, request.dimension as usize)?;
                let lattice = Lattice::new(scale.lattice_ratio(), coordinates)?;
                let counted = statistic.counted(1.0, factor);
                let event = line.event(counted, scale.sigma(), lattice, request)?;
                (Scale::Learnt(scale), event)
            }
            Question::LogRatio => line.log_ratio(tau, request)?,
            Question::Barker => line.barker(request)?,
        };
        Ok(PlannedLine {
            line: line.clone(),
            tau,
            scale,
            event: event.times(line.count),
        })
    }
}

impl Line {
    /// A sum of vectors of norm at most `clip`, with noise `sigma`.
    fn event(
        &self,
        clip: f64,
        sigma: f64,
        lattice: Lattice,
        request: &PlanRequest,
    ) -> Result<Event, PlanError> {
        let (what, relation) = (self.what, request.relation);
        Ok(match self.subsampling {
            Subsampling::All => {
                let release = Gaussian::of_clip(what, clip, relation, sigma)?;
                Event::Gaussian(release.on_lattice(lattice))
            }
            Subsampling::Poisson(rate) => {
                let release = Subsampled::poisson(what, clip, relation, rate.rate(), sigma)?;
                Event::Subsampled(release.on_lattice(lattice))
            }
            Subsampling::FixedSize(size) => {
                let rate = batch_rate(size, public_records(request)?)?;
                let release = Subsampled::without_replacement(what, clip, relation, rate, sigma)?;
                Event::Subsampled(release.on_lattice(lattice))
            }
        })
    }

    fn log_ratio(&self, tau: f64, request: &PlanRequest) -> Result<(Scale, Event), PlanError> {
        let clip = request.clip_log_ratio();
        let (t, factor) = (request.temperature, factor(request.relation));
        let scale = match self.subsampling {
            Subsampling::All => {
                let scale = PenaltyScale::new(factor, tau)?;
                // Per unit of distance; the float product may round up, so take the
                // number below.
                let sigma = (f64::from(factor) * clip * tau).next_down();
                let lattice = Lattice::new(penalty::LATTICE_RATIO, 1u64)?;
                let event = self.event(clip, sigma, lattice, request)?;
                return Ok((Scale::LogRatio(scale), event));
            }
            Subsampling::Poisson(rate) => BatchPenaltyScale::poisson(rate, t, factor, tau)?,
            Subsampling::FixedSize(size) => {
                BatchPenaltyScale::fixed_size(size, public_records(request)?, t, tau)?
            }
        };
        let lattice = Lattice::new(scale.lattice_ratio(), 1u64)?;
        let event = self.event(1.0, f64::from(factor) * tau, lattice, request)?;
        Ok((Scale::BatchLogRatio(scale), event))
    }

    fn barker(&self, request: &PlanRequest) -> Result<(Scale, Event), PlanError> {
        let records = public_records(request)?;
        let Subsampling::FixedSize(size) = self.subsampling else {
            return Err(PlanError::Settings(format!(
                "`{}` needs batches of a fixed size: give `batch_size`",
                request.algorithm.name
            )));
        };
        let scale = BarkerScale::new(size, records, request.temperature)?;
        let lattice = Lattice::new(scale.lattice_ratio(), 1u64)?;
        let test = Barker::new(self.what, size, records)?.on_lattice(lattice);
        Ok((Scale::Barker(scale), Event::Barker(test)))
    }
}

/// n, where batches of a fixed size are drawn.
fn public_records(request: &PlanRequest) -> Result<u64, PlanError> {
    match (request.relation, request.records) {
        (Relation::Substitute, Some(n)) => Ok(n),
        (Relation::ZeroOut, _) => Err(PlanError::Settings(
            "batches of a fixed size are accounted under substitute, whose promise includes that of zero-out: use `relation` substitute, or `batch_rate` where the sampler has it".into(),
        )),
        _ => Err(PlanError::Settings(
            "batches of a fixed size need a public number of records, which is private under add-remove: use `relation` substitute, or `batch_rate` where the sampler has it".into(),
        )),
    }
}

/// How many clip bounds the change of one record moves a sum by.
pub(crate) fn factor(relation: Relation) -> u8 {
    relation.factor()
}

/// `per_chain` releases in each of `chains`, or an error when there are too many to
/// be counted.
pub(crate) fn over_chains(per_chain: Option<u64>, chains: u64) -> Result<u64, PlanError> {
    per_chain
        .and_then(|n| n.checked_mul(chains))
        .filter(|&n| n < 1 << 52)
        .ok_or_else(|| PlanError::Settings("the run is too long to be counted".into()))
}

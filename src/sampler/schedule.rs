//! What a sampler will ask, line by line, before any data.

use super::plan::PlanError;
use super::request::PlanRequest;
use crate::accounting::{Event, Gaussian, Lattice, Relation};
use crate::privacy::{GradientScale, PenaltyScale, penalty};

/// What a line of the schedule asks of the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The sum of the records' clipped gradients.
    Gradient,
    /// The sum of the records' clipped log-likelihood ratios between two points.
    /// Clip bound and noise are per unit of distance between them.
    LogRatio,
}

/// What decides how much noise the releases of a line get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Whatever this share of the budget comes to.
    Share(f64),
    /// The noise that the dynamics need anyway, as a multiple of the sensitivity;
    /// more, if the budget asks for it.
    AtLeast(f64),
}

/// So many like releases.
#[derive(Debug, Clone)]
pub struct Line {
    /// What is released, as plans and reports name it.
    pub what: &'static str,
    pub question: Question,
    pub noise: Noise,
    /// How often, over all chains.
    pub count: u64,
}

impl Line {
    /// Bound on one record's share of the sum.
    pub fn clip(&self, request: &PlanRequest) -> f64 {
        match self.question {
            Question::Gradient => request.clip_gradient,
            Question::LogRatio => request.clip_log_ratio,
        }
    }

    /// Numbers drawn for one release.
    pub fn coordinates(&self, request: &PlanRequest) -> u64 {
        match self.question {
            Question::Gradient => request.dimension,
            Question::LogRatio => 1,
        }
    }
}

/// The integers that the vault works with.
#[derive(Debug, Clone, Copy)]
pub enum Scale {
    Gradient(GradientScale),
    LogRatio(PenaltyScale),
}

/// A line whose noise is settled.
#[derive(Debug, Clone)]
pub struct PlannedLine {
    pub line: Line,
    /// The noise multiplier: noise over sensitivity.
    pub tau: f64,
    pub scale: Scale,
    /// What is charged.
    pub event: Event,
}

impl PlannedLine {
    /// Settles a line's noise at `tau` times its sensitivity.
    pub(super) fn new(
        line: &Line,
        tau: f64,
        request: &PlanRequest,
    ) -> Result<PlannedLine, PlanError> {
        let factor = factor(request.relation);
        let clip = line.clip(request);
        let (scale, sigma, ratio) = match line.question {
            Question::Gradient => {
                let scale = GradientScale::new(clip, factor, tau)?;
                (Scale::Gradient(scale), scale.sigma(), scale.lattice_ratio())
            }
            Question::LogRatio => {
                if !(clip > 0.0 && clip.is_finite()) {
                    return Err(PlanError::Settings(
                        "--clip-log-ratio must be a positive number".into(),
                    ));
                }
                let scale = PenaltyScale::new(factor, tau)?;
                // Per unit of distance; the float product may round up, so take the
                // number below.
                let sigma = (f64::from(factor) * clip * tau).next_down();
                (Scale::LogRatio(scale), sigma, penalty::LATTICE_RATIO)
            }
        };
        let lattice = Lattice::new(ratio, line.coordinates(request))?;
        let release = Gaussian::of_clip(line.what, clip, request.relation, sigma)?;
        Ok(PlannedLine {
            line: line.clone(),
            tau,
            scale,
            event: Event::Gaussian(release.on_lattice(lattice).times(line.count)),
        })
    }
}

/// How often the clip bound one record's change moves a sum.
pub(super) fn factor(relation: Relation) -> u8 {
    match relation {
        Relation::Substitute => 2,
        Relation::AddRemove => 1,
    }
}

/// `per_chain` releases in each of `chains`, or an error when there are too many to
/// be counted.
pub(super) fn over_chains(per_chain: Option<u64>, chains: u64) -> Result<u64, PlanError> {
    per_chain
        .and_then(|n| n.checked_mul(chains))
        .filter(|&n| n < 1 << 52)
        .ok_or_else(|| PlanError::Settings("the run is too long to be counted".into()))
}

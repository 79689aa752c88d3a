//! The questions that a sampler may ask.

use std::num::NonZeroU64;

use crate::density::{Frame, Space};
use crate::privacy::{BatchPenaltyError, Expected, PenaltyError, ReleaseError, ScaleError};
use crate::sampler::contract::error::PlanError;
use crate::sampler::prior::PriorError;

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Penalty(#[from] PenaltyError),
    #[error(transparent)]
    BatchPenalty(#[from] BatchPenaltyError),
    #[error(transparent)]
    Scale(#[from] ScaleError),
    #[error(transparent)]
    Randomness(#[from] crate::privacy::RandomnessError),
    #[error(
        "no initial point with a finite log density was found in 100 tries; give one with `init`"
    )]
    NoInitialPoint,
    #[error("the initial point has a log density that is not finite; choose another with `init`")]
    BadInitialPoint,
    #[error(
        "an initial point has {found} coordinates, expected {expected}, one for each unconstrained coordinate of the model, and at least one point"
    )]
    InitialLength { found: usize, expected: usize },
    #[error("this plan is for a sampler outside of this crate, which takes its steps itself")]
    NotOurs,
    #[error(
        "the plan has no line {line} of that kind: the sampler asked for something that it did not plan"
    )]
    NotPlanned { line: usize },
    #[error("this oracle has no answers for samplers that learn before they sample")]
    NotLearning,
    #[error("the plan was made for another model, or without looking at one")]
    NotThisModel,
    #[error("point, centre and coordinates must have dimension {0}")]
    Dimension(usize),
    #[error("the plan and the data differ in whether a unit is one row or may be several")]
    NotTheseUnits,
    #[error("`{0}` is not private: it has no plan to run under")]
    NotPrivate(&'static str),
    #[error("`{0}` is private: it runs under a plan that was charged for")]
    Private(&'static str),
    #[error(transparent)]
    Plan(#[from] Box<PlanError>),
    #[error("cannot write the checkpoint of chain {chain}: {source}")]
    Keep {
        /// Counts from 1.
        chain: usize,
        source: std::io::Error,
    },
    #[error("chain {chain} cannot continue: {source}")]
    Grant {
        /// Counts from 1.
        chain: usize,
        source: crate::accounting::LedgerError,
    },
    #[error("the checkpoints are not of this run: they do not fit its plan or its sampler")]
    Unreadable,
    #[error("this should not have happened: the thread of a chain is gone")]
    Lost,
}

impl From<PriorError> for SampleError {
    fn from(_: PriorError) -> SampleError {
        SampleError::NoInitialPoint
    }
}

/// The point, the coordinates and the bounds with which a sampler that learns looks at records.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The space of the point; `None`: the unconstrained parameters.
    pub space: Option<&'a Space>,
    pub point: &'a [f64],
    /// The coordinates of gradients.
    pub frame: &'a Frame,
    /// Subtracted from each gradient, in the frame's coordinates.
    pub centre: Option<&'a [f64]>,
    /// Bound on the l2 norm of a record's contribution; 1 for histograms.
    pub clip: f64,
    /// The model's expectations of a record, for the quantities that use them.
    pub expected: Option<&'a Expected<'a>>,
    /// The bound within which gradients are balanced, for those that are centred.
    pub inner_clip: f64,
    /// The reference of a histogram's bins.
    pub unit: f64,
}

impl<'a> View<'a> {
    /// A view of the parameters, at a point of the unconstrained scale.
    pub fn of_parameters(point: &'a [f64], frame: &'a Frame, clip: f64) -> View<'a> {
        View {
            space: None,
            point,
            frame,
            centre: None,
            clip,
            expected: None,
            inner_clip: f64::INFINITY,
            unit: 1.0,
        }
    }
}

/// The answer to a question about a proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ratio {
    /// T R - T^2 s^2 / 2, nats.
    Penalised(f64),
    /// The step is so long that its noise would drown everything: reject. This
    /// depends on the distance alone.
    Refused,
}

/// The questions of the private samplers. Prior and Jacobian are public and
/// exact; the likelihood is noisy and charged to a line of the plan.
pub trait Oracle {
    fn dimension(&self) -> usize;

    /// Log prior plus log Jacobian at `theta` (unconstrained scale, nats).
    fn log_prior(&mut self, theta: &[f64]) -> f64;

    /// T (sum of clipped gradients + noise) + gradient of the log prior; the sum over a
    /// batch is scaled up to all records, noise included.
    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError>;

    /// The noisy log-likelihood ratio from `from` to `to`, less half its noise
    /// variance.
    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError>;

    /// The outcome of Barker's test of the proposal `to`, whose log prior is larger than that
    /// of `from` by `prior_ratio`: true with a probability of about 1/(1 + e^-x), where x is the
    /// log posterior ratio. An oracle without batches for it has no such line.
    fn barker(
        &mut self,
        line: usize,
        from: &[f64],
        to: &[f64],
        prior_ratio: f64,
    ) -> Result<bool, SampleError> {
        let _ = (from, to, prior_ratio);
        Err(SampleError::NotPlanned { line })
    }

    /// The gradient of log prior plus log Jacobian at `theta` (unconstrained scale). Only oracles
    /// for samplers that learn first have it.
    fn prior_gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let _ = theta;
        Err(SampleError::NotLearning)
    }

    /// The sum of the records' contributions to the line, clipped at `view.clip` and with noise:
    /// of the likelihood alone, not tempered. Only oracles for samplers that learn first have such
    /// lines.
    fn learnt(&mut self, line: usize, view: &View) -> Result<Vec<f64>, SampleError> {
        let _ = view;
        Err(SampleError::NotPlanned { line })
    }

    /// The average of several answers of [`Oracle::learnt`] to one question; each is charged.
    fn learnt_often(
        &mut self,
        line: usize,
        view: &View,
        times: NonZeroU64,
    ) -> Result<Vec<f64>, SampleError> {
        let mut sum = self.learnt(line, view)?;
        for _ in 1..times.get() {
            for (s, x) in sum.iter_mut().zip(self.learnt(line, view)?) {
                *s += x;
            }
        }
        Ok(sum.iter().map(|s| s / times.get() as f64).collect())
    }

    /// True with probability min(1, exp(`log_probability`)).
    fn accept(&mut self, log_probability: f64) -> bool;

    /// The number of releases made of each planned line, for oracles that release.
    fn released(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Continues the count from what a chain released before it was interrupted.
    fn count_from(&mut self, released: Vec<u64>) {
        let _ = released;
    }
}

/// The Euclidean distance; the same to the bit when the two points are exchanged.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| (x - y) * (x - y))
        .sum::<f64>()
        .sqrt()
}

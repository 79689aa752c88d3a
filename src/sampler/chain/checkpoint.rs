//! Checkpoints of chains, from which an interrupted run can be resumed.
//!
//! # Write-ahead
//!
//! A release whose noise is lost must not be made a second time on the same charge. So
//! before a chain begins the next few iterations, a *window* of them, a [`Checkpoint`]
//! that grants it the window is stored durably. When a run is killed, all of an open
//! window counts as released and is lost: the chain resumes from its state before the
//! window, with the iterations after it. A run that stops by itself closes its windows and
//! loses nothing. For a run that is charged to a ledger, the ledger knows the last
//! checkpoint of each chain, so that it cannot be resumed from an older one
//! ([`Reservation::grant`]). Proofs: docs/proofs.md, sections 19 and 21.
//!
//! # Privacy
//!
//! A checkpoint holds released values and what follows from them: positions, noisy
//! gradients that the chain keeps, draws, what warm-up has learnt, the position of the
//! public generator, counts. It holds nothing of the private generator, whose noise must
//! remain secret; a resumed run draws a new key. Windows are a fixed share of the run:
//! their length shows in what is lost, and windows that followed the clock would reveal the
//! duration of an iteration, and from that the number of records.

use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::accounting::{Grant, Reservation, random_id};
use crate::sampler::chain::draw::Draw;
use crate::sampler::chain::exact_number;
use crate::sampler::chain::warmup::Learnt;
use crate::sampler::contract::Sampler;
use crate::sampler::contract::oracle::SampleError;
use crate::sampler::contract::plan::{Plan, PlanError};

/// The approximate number of windows in which a chain's iterations are granted.
const WINDOWS: u64 = 500;

/// A chain between two iterations, with the draws since its previous checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The name of the checkpoint, and the releases that this chain has made or may make until
    /// the window ends, including windows that were lost.
    pub grant: Grant,
    /// Iterations that are over, including those that were lost.
    pub done: u64,
    /// Iterations that may have begun: the window goes from `done` to here.
    pub granted: u64,
    /// Iterations that were lost.
    pub lost: u64,
    /// Accepted proposals among the `sampled` iterations after warm-up.
    pub accepted: u64,
    pub sampled: u64,
    /// The line of a release that the next iteration makes in addition to those of every
    /// iteration ([`Walker::first_release`](crate::sampler::Walker::first_release)).
    pub first_release: Option<usize>,
    /// Words drawn from the public generator.
    #[serde(with = "exact_number::position")]
    pub position: u128,
    /// The sampler's own state ([`Walker::save`](crate::sampler::Walker::save)).
    pub walker: Value,
    pub warmup: Learnt,
    pub draws: Vec<Draw>,
}

/// Where checkpoints are kept.
pub trait Keeper: Sync {
    /// Keeps a chain's checkpoint in addition to earlier ones. When this returns, the
    /// checkpoint must be on disk, or in other storage that survives a kill. `chain` counts
    /// from 0; the start of a run, where there is one, comes after the last chain.
    fn keep(&self, chain: usize, checkpoint: &Checkpoint) -> io::Result<()>;
}

/// Checkpoints of a run: where to keep them, and the state from which to resume.
pub struct Keeping<'a> {
    pub keeper: &'a dyn Keeper,
    /// The state of each chain, followed by that of the start where there is one; `None`
    /// for one that has not begun. Empty for a new run.
    pub begun: Vec<Option<SavedChain>>,
    /// The charge on which each checkpoint is granted; `None` for a run without a ledger.
    pub charge: Option<&'a Reservation<'a>>,
}

impl Keeping<'_> {
    /// Keeps a checkpoint, and has the ledger grant it.
    pub(crate) fn keep(&self, place: usize, checkpoint: &Checkpoint) -> Result<(), SampleError> {
        let chain = place + 1;
        let refused = |source| SampleError::Grant { chain, source };
        if let Some(charge) = self.charge {
            charge.prepare(place, &checkpoint.grant).map_err(refused)?;
        }
        let kept = self.keeper.keep(place, checkpoint);
        kept.map_err(|source| SampleError::Keep { chain, source })?;
        if let Some(charge) = self.charge {
            charge.grant(place, &checkpoint.grant).map_err(refused)?;
        }
        Ok(())
    }
}

/// The names of a chain's checkpoints, one after another.
#[derive(Debug, Default)]
pub(crate) struct Names(Option<String>);

impl Names {
    /// The names of the checkpoints after `last`.
    pub fn behind(last: &Checkpoint) -> Names {
        Names(Some(last.grant.id.clone()))
    }

    /// The grant of the next checkpoint, under which the chain may reach `released` releases
    /// of each line.
    pub fn next(&mut self, released: Vec<u64>) -> Result<Grant, SampleError> {
        let id = random_id().map_err(|source| SampleError::Keep { chain: 0, source })?;
        let after = self.0.replace(id.clone());
        Ok(Grant {
            id,
            after,
            released,
        })
    }
}

/// A chain that was interrupted.
#[derive(Debug, Clone)]
pub struct SavedChain {
    /// The last checkpoint that was kept.
    pub last: Checkpoint,
    /// The draws of all checkpoints.
    pub draws: Vec<Draw>,
}

impl SavedChain {
    /// A chain from its checkpoints, in the order in which they were kept; `None` if there are
    /// none.
    #[cfg(test)]
    pub fn of(checkpoints: Vec<Checkpoint>) -> Option<SavedChain> {
        let mut draws = Vec::new();
        let mut last = None;
        for mut checkpoint in checkpoints {
            draws.append(&mut checkpoint.draws);
            last = Some(checkpoint);
        }
        last.map(|last| SavedChain { last, draws })
    }

    /// Releases of each line that this chain, or the start, has made or may have made.
    pub(crate) fn released(&self, plan: &Plan) -> Result<Vec<u64>, SampleError> {
        let released = &self.last.grant.released;
        if released.len() == plan.lines.len() && self.last.done <= self.last.granted {
            Ok(released.clone())
        } else {
            Err(SampleError::Unreadable)
        }
    }
}

/// Releases of each planned line that the chains and the start have made, or may have made
/// in windows that are lost: the initial counts of a [`Meter`](crate::accounting::Meter) when
/// a run without a ledger is resumed.
///
/// # Errors
///
/// The checkpoints do not belong to this plan.
pub fn released_before(plan: &Plan, begun: &[Option<SavedChain>]) -> Result<Vec<u64>, SampleError> {
    let mut sum = vec![0; plan.lines.len()];
    for chain in begun.iter().flatten() {
        for (sum, released) in sum.iter_mut().zip(chain.released(plan)?) {
            *sum += released;
        }
    }
    Ok(sum)
}

/// The largest number of releases of each line that one chain makes in these iterations.
pub(crate) fn planned_releases(
    sampler: &dyn Sampler,
    plan: &Plan,
    iterations: Range<u64>,
) -> Result<Vec<u64>, Box<PlanError>> {
    let up_to = |end: u64| -> Result<Vec<u64>, Box<PlanError>> {
        let lines = match end {
            0 => Vec::new(),
            _ => sampler.lines(&plan.request, end)?,
        };
        // The releases of a start do not belong to a chain.
        let first = sampler.learner().map_or(0, |learner| learner.lines(plan));
        let count = |i: usize| {
            if i < first {
                0
            } else {
                lines.get(i).map_or(0, |line| line.count)
            }
        };
        Ok((0..plan.lines.len()).map(count).collect())
    };
    let (before, after) = (up_to(iterations.start)?, up_to(iterations.end)?);
    let chains = plan.request.chains.max(1);
    Ok(after
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) / chains)
        .collect())
}

/// The number of iterations in one window.
pub(crate) fn window(iterations: u64) -> u64 {
    iterations.div_ceil(WINDOWS).max(1)
}

/// Reads back what [`Walker::save`](crate::sampler::Walker::save) wrote.
pub(crate) fn read<T: serde::de::DeserializeOwned>(saved: &Value) -> Result<T, SampleError> {
    T::deserialize(saved).map_err(|_| SampleError::Unreadable)
}

/// The state of a sampler as JSON.
pub(crate) fn written(state: &impl Serialize) -> Value {
    // Structures of numbers and lists always have a form in JSON.
    serde_json::to_value(state).unwrap_or(Value::Null)
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;

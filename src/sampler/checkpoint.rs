//! What of a chain is written down, so that a run that was cut short can be gone on with.
//!
//! # Write-ahead
//!
//! A release that was made under noise nobody has any more must not be made a second time
//! on the same charge. So before a chain begins the next few iterations, a *window* of
//! them, a [`Checkpoint`] that grants it the window is written down for good. When a run
//! is killed, all of an open window counts as released and is lost: the chain goes on
//! from its state before the window, with the iterations after it. A run that stops by
//! itself closes its windows and loses nothing. Proof: docs/proofs.md, section 19.
//!
//! # Privacy
//!
//! A checkpoint holds released values and what follows from them: positions, noisy
//! gradients that the chain keeps, draws, what warm-up has learnt, the place of the public
//! generator, counts. It holds nothing of the private generator, whose noise nobody may
//! know; a run that goes on draws a new key. Windows are a fixed share of the run, since
//! their length can be told from what is lost, and one that followed the clock would tell
//! how long an iteration takes, and with that how many records there are.

use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exact_number;
use super::oracle::SampleError;
use super::plan::{Plan, PlanError};
use super::run::Draw;
use super::start::{self, Start};
use super::warmup::Learnt;
use super::{Kind, Sampler};

/// A chain's iterations are granted in about so many windows.
const WINDOWS: u64 = 500;

/// A chain between two iterations, with the draws since its checkpoint before.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Iterations that are over, those among them that were lost included.
    pub done: u64,
    /// Iterations that may have begun: the window goes from `done` to here.
    pub granted: u64,
    /// Iterations that were lost.
    pub lost: u64,
    /// Releases of each planned line that this chain has made, or may have made in
    /// windows that were lost.
    pub released: Vec<u64>,
    /// Accepted proposals among the `sampled` iterations after warm-up.
    pub accepted: u64,
    pub sampled: u64,
    /// The line of a release that the next iteration makes beside those that every
    /// iteration makes ([`Walker::first_release`](super::Walker::first_release)).
    pub first_release: Option<usize>,
    /// Words drawn from the public generator.
    #[serde(with = "exact_number::position")]
    pub position: u128,
    /// The sampler's own state ([`Walker::save`](super::Walker::save)).
    pub walker: Value,
    pub warmup: Learnt,
    pub draws: Vec<Draw>,
}

/// Where checkpoints are kept.
pub trait Keeper: Sync {
    /// Keeps a chain's checkpoint, beside those before. When this returns it must have
    /// reached the disk, or whatever outlives a kill. `chain` counts from 0; the start of a
    /// run, where there is one, is the one behind the last chain.
    fn keep(&self, chain: usize, checkpoint: &Checkpoint) -> io::Result<()>;
}

/// Checkpoints of a run: where to keep them, and what to go on from.
pub struct Keeping<'a> {
    pub keeper: &'a dyn Keeper,
    /// The state of each chain, and behind them that of the start where there is one; `None`
    /// for one that has not begun. Empty for a new run.
    pub begun: Vec<Option<Begun>>,
}

/// A chain that was cut short.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The checkpoint that was kept last.
    pub last: Checkpoint,
    /// The draws of all checkpoints.
    pub draws: Vec<Draw>,
}

impl Begun {
    /// What was kept of a chain, in the order in which it was kept; `None` of nothing.
    pub fn of(checkpoints: Vec<Checkpoint>) -> Option<Begun> {
        let mut draws = Vec::new();
        let mut last = None;
        for mut checkpoint in checkpoints {
            draws.append(&mut checkpoint.draws);
            last = Some(checkpoint);
        }
        last.map(|last| Begun { last, draws })
    }

    /// The iterations that count as made and are lost.
    fn window(&self) -> Range<u64> {
        self.last.done..self.last.granted
    }

    /// Releases of each line that this chain has made or may have made.
    /// `asks`: whether iterations do.
    pub(super) fn released(&self, plan: &Plan, asks: bool) -> Result<Vec<u64>, SampleError> {
        let Kind::Private(sampler) = plan.request.algorithm.kind else {
            return Err(SampleError::NotPrivate(plan.request.algorithm.name));
        };
        let granted = self.last.granted;
        if self.last.released.len() != plan.lines.len()
            || self.last.done > granted
            || granted > plan.iterations_per_chain
        {
            return Err(SampleError::Unreadable);
        }
        if !asks {
            return Ok(self.last.released.clone());
        }
        let mut lost = planned_releases(sampler, plan, self.window()).map_err(Box::new)?;
        // Planned once, for the first iteration of all.
        if let Some(line) = self.last.first_release
            && self.last.done > 0
            && granted > self.last.done
        {
            *lost.get_mut(line).ok_or(SampleError::Unreadable)? += 1;
        }
        Ok(self.and_lost(lost))
    }

    /// Releases of each line that the start has made or may have made.
    pub(super) fn released_by_start(&self, plan: &Plan) -> Result<Vec<u64>, SampleError> {
        let last = &self.last;
        if last.released.len() != plan.lines.len()
            || last.released.len() <= start::LINES
            || last.done > last.granted
            || last.granted > start::MOST_STEPS
        {
            return Err(SampleError::Unreadable);
        }
        Ok(self.and_lost(start::releases(plan, self.window())))
    }

    /// What was learnt before the chains, as it was when this was kept.
    pub(super) fn start(&self, plan: &Plan) -> Result<Start, SampleError> {
        Start::restore(&self.last.walker, plan.request.dimension as usize)
    }

    fn and_lost(&self, lost: Vec<u64>) -> Vec<u64> {
        let both = self.last.released.iter().zip(lost);
        both.map(|(made, lost)| made + lost).collect()
    }
}

/// Releases of each planned line that the chains have made, or may have made in windows
/// that are lost: what a [`Meter`](crate::accounting::Meter) begins with when the run goes
/// on.
///
/// # Errors
///
/// The checkpoints are not this plan's.
pub fn released_before(plan: &Plan, begun: &[Option<Begun>]) -> Result<Vec<u64>, SampleError> {
    let mut sum = vec![0; plan.lines.len()];
    let learnt = match begun.get(plan.request.chains as usize) {
        Some(Some(begun)) => Some(begun.start(plan)?),
        _ => None,
    };
    let ask = !learnt.is_some_and(|start| start.is_gaussian(plan));
    for (i, chain) in begun.iter().enumerate() {
        let Some(chain) = chain else { continue };
        let released = match (i as u64) < plan.request.chains {
            true => chain.released(plan, ask)?,
            false => chain.released_by_start(plan)?,
        };
        for (sum, released) in sum.iter_mut().zip(released) {
            *sum += released;
        }
    }
    Ok(sum)
}

/// Releases of each line that one chain makes in these iterations, at most. Before the
/// first there are none.
fn planned_releases(
    sampler: &dyn Sampler,
    plan: &Plan,
    iterations: Range<u64>,
) -> Result<Vec<u64>, PlanError> {
    let up_to = |end: u64| -> Result<Vec<u64>, PlanError> {
        let lines = match end {
            0 => Vec::new(),
            _ => sampler.lines(&plan.request, end)?,
        };
        // What a start releases is none of a chain's.
        let first = sampler.learner().map_or(0, |_| start::LINES);
        let count = |i: usize| match i < first {
            true => 0,
            false => lines.get(i).map_or(0, |line| line.count),
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

/// Iterations of one window.
pub(super) fn window(iterations: u64) -> u64 {
    iterations.div_ceil(WINDOWS).max(1)
}

/// Reads back what [`Walker::save`](super::Walker::save) wrote.
pub(super) fn read<T: serde::de::DeserializeOwned>(saved: &Value) -> Result<T, SampleError> {
    T::deserialize(saved).map_err(|_| SampleError::Unreadable)
}

/// The state of a sampler as JSON.
pub(super) fn written(state: &impl Serialize) -> Value {
    // Structures of numbers and lists always have a form in JSON.
    serde_json::to_value(state).unwrap_or(Value::Null)
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;

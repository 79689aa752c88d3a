//! Errors planted on purpose, to see that the attacks of `tests/audit` find them.
//!
//! An error is planted by naming it in the environment variable `DPM_PLANTED`. Nobody
//! but a test can do that: this module, and each line that asks it, is compiled under
//! `cfg(test)` alone, which cargo sets only while it builds the library's own unit tests.
//! Neither the program nor the library that others link against contains any of it,
//! whatever the environment or the features; a switch that could be reached at run time
//! could also be turned on by mistake. `tests/integration/architecture.rs` holds every use to that.
//!
//! Since an error would disturb the other unit tests of the process, the tests that
//! plant one start a process of their own (`planted_tests.rs`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::density::BLOCK;
use crate::privacy::noise::DiscreteGaussian;
use crate::privacy::{PrivateRng, Statistic};

/// An error that a private library could have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// The sensitivity of `substitute` is taken to be b instead of 2b.
    HalfSensitivity,
    /// The noise has nine tenths of its standard deviation.
    LowSigma,
    /// An entry that should be in the ledger is missing.
    MissedEntry,
    /// A run goes on from whatever state it shows.
    OlderState,
    /// Every third gradient is not charged.
    UnchargedGradient,
    /// A gradient is divided by the number of records in it.
    DividedByBatch,
    /// Every release of a generator carries the same noise.
    ReusedNoise,
    /// Batches of a fixed size are accounted for as if each record were drawn by itself.
    PoissonForBatch,
    /// Of the two directions under add-remove, the accountant looks at "remove" alone.
    RemoveAlone,
    /// And at "add" alone.
    AddAlone,
    /// Histograms, squares and products of two records are taken to be 1 apart, not the root
    /// of 2.
    AlikeAsOne,
    /// Gradients of two records are taken to be the root of 2 apart, not 2.
    GradientsAlike,
    /// Second derivatives, which may be of either sign, are.
    CurvaturesAlike,
    /// A gradient is centred by what the model expects of all records of its block.
    OthersCentre,
    /// A record without a value is counted in the cells of what stands in its place.
    BlankCounts,
}

/// Names the error to plant.
pub const VARIABLE: &str = "DPM_PLANTED";

impl Planted {
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// Whether this process has that error.
pub fn is(which: Planted) -> bool {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    let named = NAMED.get_or_init(|| std::env::var(VARIABLE).ok());
    named.as_ref().is_some_and(|name| *name == which.name())
}

/// Replaces noise that was drawn from `rng` by `law`.
pub fn noise(drawn: Vec<i64>, law: DiscreteGaussian, rng: &PrivateRng) -> Vec<i64> {
    if is(Planted::LowSigma) {
        return drawn.iter().map(|k| k / 10 * 9).collect();
    }
    if is(Planted::ReusedNoise) {
        // The same fork of an insecure stream is the same stream.
        let mut same = rng.fork(0).expect("an insecure stream");
        return drawn.iter().map(|_| law.sample(&mut same)).collect();
    }
    drawn
}

/// Whether a release that is due now is not charged.
pub fn is_uncharged(what: &str) -> bool {
    static GRADIENTS: AtomicU64 = AtomicU64::new(0);
    is(Planted::UnchargedGradient)
        && what.starts_with("gradient")
        && GRADIENTS.fetch_add(1, Ordering::SeqCst).is_multiple_of(3)
}

/// Replaces the bound on vectors that do not point away from each other.
pub fn alike(bound: f64) -> f64 {
    if is(Planted::AlikeAsOne) {
        bound * std::f64::consts::SQRT_2
    } else {
        bound
    }
}

/// Whether vectors that may point anywhere are taken for ones that do not.
pub fn is_alike(statistic: Statistic) -> bool {
    is(Planted::GradientsAlike) || is(Planted::CurvaturesAlike) && statistic == Statistic::Curvature
}

/// Makes the sum of the centres of a block of records the centre of each, as if it was not cleared between
/// two records; `[coordinate][BLOCK]`. Subtler ones, such as the next record's centre, show in few whole runs:
/// `what_is_taken_of_a_record_follows_from_it_alone` finds any, to the bit.
pub fn move_centres(centres: &mut [f64]) {
    if is(Planted::OthersCentre) {
        for centres in centres.chunks_exact_mut(BLOCK) {
            let sum = centres.iter().sum();
            centres.fill(sum);
        }
    }
}

/// Replaces a released sum over `records` records.
pub fn released(sum: Vec<f64>, records: usize) -> Vec<f64> {
    if is(Planted::DividedByBatch) {
        return sum.iter().map(|s| s / records.max(1) as f64).collect();
    }
    sum
}

/// Keeps some of the two directions, "remove" first, or of the one that stands for both.
pub fn directions<T>(mut both: Vec<T>) -> Vec<T> {
    if is(Planted::RemoveAlone) {
        both.truncate(1);
    }
    if is(Planted::AddAlone) && both.len() > 1 {
        both.remove(0);
    }
    both
}

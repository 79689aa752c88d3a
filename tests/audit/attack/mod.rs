//! The attacks: what an adversary does with what the program releases. No test stands
//! here; an attack returns what it found, and callers say what that must be.
//!
//! Compiled twice. `tests/audit` runs the attacks on the library as it is shipped. The
//! library's own tests (`src/planted_tests.rs`) run them on builds with a planted error
//! and assert that it is found.

pub mod claim;
pub mod continuations;
pub mod distinguisher;
pub mod ledger;
pub mod neighbours;
pub mod once;
pub mod record_play;
pub mod releases;
pub mod samplers;
pub mod single;
pub mod whole_play;

use std::fmt;

/// The finding of an attack: a promise that is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A linear congruential generator (Knuth's MMIX): what is random in an attack, apart
/// from the program's own randomness, need be no better.
pub struct Lcg(u64);

impl Lcg {
    pub fn new(seed: u64) -> Lcg {
        let mut rng = Lcg(seed);
        rng.next();
        rng
    }

    /// 31 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn uniform(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }

    /// One of some things.
    pub fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }
}

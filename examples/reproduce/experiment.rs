//! The experiments, one entry each.

use std::error::Error;
use std::path::PathBuf;

use crate::{accounting, automatic, calibration, clipping, contests, phase_space, radon, rows};

/// An experiment of one of the works, or of our own.
pub struct Experiment {
    pub name: &'static str,
    /// The result that it reproduces, and its source.
    pub of: &'static str,
    /// Time of a full run and of a quick one, on two cores.
    pub time: [&'static str; 2],
    /// The published settings, in lines.
    pub settings: fn() -> Vec<String>,
    pub run: fn(&Course) -> Result<(), Box<dyn Error>>,
}

pub static EXPERIMENTS: &[Experiment] = &[
    automatic::AUTOMATIC,
    calibration::CALIBRATION,
    rows::ROWS,
    contests::AMAGOLD_2,
    contests::AMAGOLD_10,
    contests::PAPER_BANANA,
    contests::PAPER_GAUSS,
    contests::PAPER_GAUSS_STEEP,
    clipping::PAPER,
    accounting::THESIS,
    clipping::THESIS,
    contests::FLAT_2,
    contests::TEMPERED_2,
    contests::FLAT_10,
    contests::TEMPERED_10,
    contests::GAUSS_30,
    contests::NARROW,
    contests::CORRELATED,
    contests::CIRCLE,
    phase_space::LODE,
    radon::TABLE,
    radon::GRID,
    accounting::LODE,
];

/// How much of an experiment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As published.
    Full,
    /// Fewer repeats, budgets and settings.
    Quick,
    /// One short run of everything on little data, to see that it works.
    Smoke,
}

impl Form {
    pub fn name(self) -> &'static str {
        self.of("full", "quick", "smoke")
    }

    pub fn of<T>(self, full: T, quick: T, smoke: T) -> T {
        match self {
            Form::Full => full,
            Form::Quick => quick,
            Form::Smoke => smoke,
        }
    }

    /// Records beyond which data are cut.
    pub fn most_records(self) -> usize {
        self.of(usize::MAX, usize::MAX, 4000)
    }
}

/// The options that were given.
pub struct Course {
    pub out: PathBuf,
    pub form: Form,
    pub resume: bool,
    /// Instead of the experiment's own, where there are any.
    pub epsilons: Vec<f64>,
    pub samplers: Vec<String>,
    pub posteriors: Vec<String>,
    pub repeats: Option<u64>,
}

impl Course {
    pub fn wants(&self, sampler: &str) -> bool {
        self.samplers.is_empty() || self.samplers.iter().any(|s| s == sampler)
    }

    /// Whether runs on that posterior are asked for, of an experiment on several.
    pub fn is_on(&self, posterior: &str) -> bool {
        self.posteriors.is_empty() || self.posteriors.iter().any(|p| p == posterior)
    }

    pub fn repeats(&self, full: u64, quick: u64) -> u64 {
        self.repeats.unwrap_or(self.form.of(full, quick, 1))
    }
}

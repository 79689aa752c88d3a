//! Bayesian models of private records, with posteriors that are differentially private.
//!
//! A model states the likelihood of *one* record, in a small language that looks and means
//! like Stan. Draws from its posterior are (epsilon, delta)-differentially private: everything
//! an analysis gives out, all chains and the warm-up included, changes little in distribution
//! when one record is replaced (or added, or removed). This page is a tutorial for programs
//! that embed the crate; the `dpm` command does the same for people.
//!
//! # A model
//!
//! ```
//! # fn main() -> Result<(), dpm::Error> {
//! use dpm::{Constants, Model};
//!
//! let program = "
//!     record {                                // private: one person
//!       real<lower=50, upper=80> age;         // clamped to its bounds
//!       int<lower=0, upper=1> pension;
//!     }
//!     parameters { real level; real effect; }
//!     model {
//!       level ~ normal(0, 5);
//!       effect ~ normal(0, 5);
//!       age - 65 ~ normal(level + effect * pension, 4);
//!     }";
//! let model = Model::from_source(program, &Constants::none())?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Model::from_file`] reads a `.dpm` file; public numbers that a program declares in
//! `constants` come from [`Constants`]. A wrong program is a [`SourceError`] that shows every
//! mistake with its line.
//!
//! # Data, and a budget
//!
//! [`PrivateData`] takes columns in memory, Arrow batches or the paths of files, and puts the records into
//! a [`Vault`], which nothing leaves but releases with noise. A [`Session`] is the budget of one
//! set of data, however many analyses it is for: each is charged in whole before its first
//! release, or refused.
//!
//! ```
//! # fn main() -> Result<(), dpm::Error> {
//! # use dpm::{Constants, Model};
//! # let program = "record { real<lower=50, upper=80> age; int<lower=0, upper=1> pension; }
//! #     parameters { real level; real effect; }
//! #     model { level ~ normal(0, 5); effect ~ normal(0, 5);
//! #       age - 65 ~ normal(level + effect * pension, 4); }";
//! # let model = Model::from_source(program, &Constants::none())?;
//! # let people = 5000;
//! # let pensions: Vec<bool> = (0..people).map(|i| i % 3 == 0).collect();
//! # let ages: Vec<f64> = (0..people)
//! #     .map(|i| 60.0 + f64::from(i * 7919 % 100) / 10.0 - 2.0 * f64::from(u8::from(i % 3 == 0)))
//! #     .collect();
//! use dpm::{Analysis, PrivateData, Session};
//!
//! let data = PrivateData::from_columns([("age", ages)]).column("pension", pensions);
//! let vault = data.bind(&model)?;
//!
//! // Epsilon 3 at delta 1e-6 for all that is ever asked of these records.
//! let session = Session::new(3.0, 1e-6)?;
//!
//! let fit = Analysis::new("retirement age", 2.0) // its share
//!     .chains(2)
//!     .iterations(100, 150)
//!     .sample(&vault, &session)?;
//!
//! print!("{}", fit.summary().to_table());
//! println!("{}", fit.statement());
//! assert!(fit.epsilon() <= 2.0);
//!
//! // A second analysis of the same records: what is left decides.
//! let greedy = Analysis::new("too much", 2.5).sample(&vault, &session);
//! assert!(greedy.is_err_and(|error| error.is_refusal()));
//! let left = session.statement()?.remaining;
//! assert!(left > 0.9 && left < 3.0);
//! # Ok(())
//! # }
//! ```
//!
//! An analysis needs no settings; its sampler finds them. Another sampler is named by
//! [`Analysis::algorithm`], and [`Settings`] has what can be set of each.
//!
//! The draws, [`Fit::draws`], may be shown to anybody; so may [`Fit::report`], which says what
//! is promised, what was released, and what is not protected. A budget that outlives the
//! program is a ledger on the disk: [`Session::create`] and [`Session::open`]. Several rows of
//! one person are protected together by [`PrivateData::by_unit`], with a budget for that unit
//! ([`Terms::new`](accounting::Terms::new)).
//!
//! # Watching and stopping
//!
//! [`Analysis::sample_with`] tells a function of each iteration, and stops when that says so.
//! The whole plan stays charged.
//!
//! ```
//! # fn main() -> Result<(), dpm::Error> {
//! # use dpm::{Analysis, Constants, Model, PrivateData, Session};
//! # let model = Model::from_source(
//! #     "record { real<lower=-5, upper=5> y; } parameters { real mu; }
//! #      model { mu ~ normal(0, 10); y ~ normal(mu, 4); }", &Constants::none())?;
//! # let vault = PrivateData::from_columns([("y", vec![0.5; 1000])]).bind(&model)?;
//! # let session = Session::new(1.0, 1e-6)?;
//! use std::ops::ControlFlow;
//! use std::time::{Duration, Instant};
//!
//! let deadline = Instant::now() + Duration::from_secs(60);
//! let fit = Analysis::new("in a minute", 1.0)
//!     .chains(2)
//!     .iterations(20, 50)
//!     .sample_with(&vault, &session, |progress| {
//!         let _ = (progress.chain, progress.iteration, &progress.draw.values);
//!         if Instant::now() < deadline {
//!             ControlFlow::Continue(())
//!         } else {
//!             ControlFlow::Break(())
//!         }
//!     })?;
//! if fit.is_interrupted() {
//!     println!("the draws so far: {}", fit.draws().chains()[0].len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Analysis::sample_at`] keeps the state of the run in a directory as it goes, and
//! [`Analysis::resume`] goes on with a run that was stopped or killed, on the charge that it has.
//!
//! # A sampler of your own
//!
//! [`Questions`] plan what a sampler will ask, so that it can be charged; an [`Oracle`] answers
//! as long as they last. Whatever the sampler does with the answers costs nothing more.
//!
//! ```
//! # fn main() -> Result<(), dpm::Error> {
//! # use dpm::{Constants, Model, PrivateData, Session};
//! # let model = Model::from_source(
//! #     "record { real<lower=-5, upper=5> y; } parameters { real mu; }
//! #      model { mu ~ normal(0, 10); y ~ normal(mu, 4); }", &Constants::none())?;
//! # let vault = PrivateData::from_columns([("y", vec![0.5; 1000])]).bind(&model)?;
//! # let session = Session::new(1.0, 1e-6)?;
//! use dpm::Questions;
//!
//! // Langevin steps along noisy gradients.
//! let step: f64 = 0.01;
//! let fit = Questions::new("Langevin", 1.0)
//!     .gradients(300)
//!     .ask(&vault, &session, |oracle| {
//!         let mut theta = oracle.start()?;
//!         for i in 0..300 {
//!             let gradient = oracle.gradient(&theta)?;
//!             for (x, g) in theta.iter_mut().zip(gradient) {
//!                 *x += 0.5 * step * g + step.sqrt() * oracle.normal();
//!             }
//!             if i >= 100 {
//!                 oracle.keep(&theta)?;
//!             }
//!         }
//!         Ok(())
//!     })?;
//! println!("{}", fit.statement());
//! # Ok(())
//! # }
//! ```
//!
//! # After the draws
//!
//! - [`Fit::diagnosis`] says whether the chains have converged, in words, and what would help.
//! - [`Tables`] makes up data from a model, to try an analysis on before there are any.
//! - [`GeneratedQuantities`] computes predictions from draws.
//! - [`Fit::save`] writes the directory that `dpm sample` writes, for the other commands and
//!   for Stan's readers; [`Run::open`] reads one back.
//!
//! `examples/` has a program for each of these.
//!
//! # Errors, and what is public
//!
//! Each part has an error type of its own; [`Error`] takes them all, so that `?` works in a
//! function that uses several. Nothing on these pages panics, whatever it is given. What the
//! documentation does not show is for the program `dpm` and its tests, and may change in any
//! release.

pub mod accounting;
mod analysis;
mod check;
mod cli;
mod density;
pub mod diagnostics;
mod distribution;
mod formula;
mod function;
mod linear;
mod lsp;
mod model;
mod output;
mod privacy;
mod sampler;
mod syntax;
#[doc(hidden)]
pub mod testing;
mod tune;

// The attacks name the crate as others do.
#[cfg(test)]
#[path = "../tests/audit/attack/mod.rs"]
#[expect(
    dead_code,
    reason = "tests/audit uses all of it, src/planted_tests.rs a part"
)]
mod attack;
#[cfg(test)]
extern crate self as dpm;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod planted_tests;

pub use accounting::{
    Accountant, Budget, BudgetError, LedgerError, Quote, Real, Relation, Session, Statement, Terms,
    TermsError,
};
pub use analysis::{
    Analysis, Error, Fit, GeneratedQuantities, Oracle, Progress, Questions, SaveError, Table,
    Tables,
};
pub use diagnostics::{Diagnosis, Summary};
pub use formula::{Codebook, CodebookError};
pub use model::{Constants, ConstantsError, Model, ModelFileError, SourceError};
pub use output::stan_csv::StanCsv;
pub use output::{ConvertError, Draws, Run, RunError, UnfinishedError};
pub use privacy::{
    LoadError, OnBadRows, Portion, PrivateColumn, PrivateData, Spilling, Split, SplitError, Subset,
    Vault,
};
pub use sampler::{
    Chain, Clip, Draw, MetricForm, Phase, Plan, PlanError, SampleError, Setting, Settings,
};

// The program, for src/main.rs.
#[doc(hidden)]
pub use cli::main as command_line;

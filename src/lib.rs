//! Differentially private Bayesian modelling.
//!
//! A model states the likelihood of *one* record, in a small language that looks
//! and means like Stan. Draws from its posterior are (epsilon, delta)-
//! differentially private: everything a run gives out, all chains and the
//! warm-up included, changes little in distribution when one record is replaced.
//!
//! The way from text to draws:
//!
//! ```
//! use dpm::{
//!     Constants, Density, Iterations, Meter, Model, OnBadRows, Plan, PlanRequest,
//!     PrivateRng, PrivateSettings, Rows, Vault, sample_privately,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::from_source(
//!     "record { real<lower=-5, upper=5> y; }
//!      parameters { real mu; }
//!      model { mu ~ normal(0, 10); y ~ normal(mu, 1); }",
//!     &Constants::none(),
//! )?;
//!
//! // The rows go into the vault and stay there.
//! let y = (0..2000).map(|i| 0.5 + f64::from(i % 7 - 3) / 2.0).collect();
//! let rows = Rows::from_columns(&model.columns, vec![("y".into(), y)], OnBadRows::Error)?;
//! let vault = Vault::new(Density::new(model), rows);
//!
//! // What the run will release, and that it fits the budget, is known beforehand.
//! let plan = Plan::new(PlanRequest {
//!     chains: 2,
//!     iterations: Iterations::Fixed(100),
//!     ..PlanRequest::new("5".parse()?, "1e-6".parse()?, vault.density().dimension())
//! })?;
//! let meter = Meter::new(plan.events.clone());
//!
//! let settings = PrivateSettings::new(50, 1, PrivateRng::from_os()?);
//! let chains = sample_privately(&vault, &plan, &meter, &settings, &())?;
//! assert_eq!(chains.len(), 2);
//! assert!(plan.epsilon() <= 5.0);
//! # Ok(())
//! # }
//! ```
//!
//! The rooms of the crate, each using only those before it: [`syntax`],
//! [`function`], [`distribution`], [`check`], [`model`], [`density`],
//! [`privacy`], [`sampler`], [`diagnostics`], [`tune`], [`output`], [`cli`]; and
//! [`accounting`], which uses none of them. ARCHITECTURE.md walks through them.

pub mod accounting;
pub mod check;
pub mod cli;
pub mod density;
pub mod diagnostics;
pub mod distribution;
pub mod function;
pub mod model;
pub mod output;
pub mod privacy;
pub mod sampler;
pub mod syntax;
pub mod tune;

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
    Budget, Event, Guarantee, LedgerError, Meter, Query, Real, Relation, Session, Terms, account,
};
pub use density::Density;
pub use diagnostics::Summary;
pub use model::{Constants, Model};
pub use privacy::{
    NotPrivate, OnBadRows, PrivateRng, Rows, Vault, load_csv, load_csv_by_unit, survey_csv,
};
pub use sampler::{
    Chain, Draw, Initial, Iterations, MetricForm, NoiseChoice, NonPrivateSettings, Observer, Phase,
    Plan, PlanRequest, PrivateSettings, sample_exactly, sample_privately,
};

//! Events, accountants, calibration and the budget of a run.
//!
//! A run is a list of [`Event`]s under one [`Relation`]. [`account`] says what they cost
//! together, [`mu_for_budget`], [`sigma_for_budget`] and [`most_repetitions`] how much
//! noise a [`Budget`] needs or how many releases it allows, and a [`Meter`] grants the planned
//! releases one by one and no more. A [`Session`] charges runs to one budget; each may be chosen in
//! view of the results of those before it. Bounds are rounded so that an upper bound is never below
//! the truth.
//!
//! Numbers are [`Real`]s, of about 31 digits: a privacy bound must hold where `f64` has
//! lost its digits, and `1e-6` read from a user (`"1e-6".parse()`) is one millionth.

mod accountant;
mod barker;
mod budget;
mod calibrate;
mod composition;
mod discrete;
mod dispatch;
mod elementary;
mod event;
mod event_error;
mod event_json;
mod event_text;
mod gaussian;
mod gaussian_accountant;
mod guarantee;
mod ledger;
mod measure;
mod mills;
mod pld;
mod rdp;
mod real;
mod relation;
mod release;
mod subsampled;
mod zcdp;

pub use accountant::{AccountError, Accountant, Query};
pub use barker::Barker;
pub use budget::{Budget, BudgetError, Meter};
pub use calibrate::{
    CalibrateError, most_repetitions, mu_for_budget, sigma_for_budget, smallest_scale,
};
pub use discrete::{LatticeCurve, total_variation_of_draw};
pub use dispatch::account;
pub use event::Event;
pub use event_error::EventError;
pub use event_json::EventJsonError;
pub use event_text::Unscaled;
pub use gaussian::{Bounds, GaussianCurve};
pub use guarantee::{Guarantee, GuaranteeBounds, PldDetails};
pub use ledger::{
    Damage, EntryHash, EntryRef, Evidence, Grant, LedgerError, NotAHash, Outcome, Part, Quote,
    Request, Reservation, RunRecord, Session, Settlement, Statement, StoredEventError, Tally,
    Terms, TermsError, random_id,
};
pub(crate) use ledger::{Slot, figure, read_slot, slot_bytes, sync_folder, try_for_a_moment};
pub use measure::Measure;
pub use rdp::{RdpValue, rdp_curve};
pub(crate) use real::exact_real;
pub use real::{Real, RealError};
pub use relation::Relation;
pub use release::{Gaussian, Lattice};
pub use subsampled::{Scheme, Subsampled, batch_rate};
pub use zcdp::{Conversion, zcdp_by};

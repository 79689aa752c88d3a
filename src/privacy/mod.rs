//! The vault: the only module that reads rows.
//!
//! It answers one kind of question: a sum over records of a clipped per-record
//! vector of integers, plus integer noise. The answer is a [`Noisy`] value, which only this module
//! can make; everything computed from it is post-processing. The event is charged before a row is
//! read.
//!
//! Where several rows belong to one unit of privacy ([`Rows::by_unit`]), a unit takes the place of
//! a record: its rows are summed before anything is clipped.

pub mod barker;
pub mod batch_penalty;
mod data;
mod expectation;
mod expected;
mod gradient;
mod load;
pub mod noise;
mod noisy;
mod not_private;
pub mod penalty;
mod question;
mod randomness;
// Not for programs that embed the crate: whoever asks a follower gets exact sums.
#[cfg_attr(
    not(feature = "mpi"),
    allow(dead_code, reason = "without MPI only tests have several ranks")
)]
pub mod ranks;
mod rows;
mod score;
mod share;
mod split;
mod statistic;
mod store;
mod subsampling;
mod tally;
mod vault;

pub use barker::{BarkerError, BarkerScale};
pub use batch_penalty::{BatchPenaltyError, BatchPenaltyPlan, BatchPenaltyScale};
pub use data::{PrivateColumn, PrivateData};
pub use expectation::Expected;
pub(crate) use expected::{public_sum, visit_public};
pub(crate) use gradient::half_distance;
pub use gradient::{GradientScale, ScaleError};
pub use load::{
    ColumnSurvey, Form, LoadError, OnBadRows, Places, Reading, Survey, read_files, survey_files,
};
pub use not_private::NotPrivate;
pub use penalty::{PenaltyError, PenaltyPlan, PenaltyScale};
pub use randomness::{PrivateRng, RandomnessError};
pub use rows::Rows;
pub(crate) use score::{Bounds, Moments, REPLICAS, ScoreBounds, StatisticSums};
pub use split::{Portion, Split, SplitError, Subset};
pub use statistic::Statistic;
pub(crate) use statistic::{Bins, Look};
pub use store::Spilling;
pub use subsampling::{InclusionRate, RateError, Subsampling};
pub(crate) use vault::log_mean_exp;
pub(crate) use vault::marginals;
pub use vault::{Charge, ReleaseError, Vault};
pub(crate) use vault::{Redrawn, Scored};

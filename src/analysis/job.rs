//! A private run that is read, checked and planned.

use super::prepare::Prepared;
use super::request::Analysis;
use crate::accounting::Session;
use crate::privacy::Vault;
use crate::sampler::Initial;

/// The account that a private run is charged to.
#[derive(Clone, Copy)]
pub(crate) enum Charge<'a> {
    /// To nothing: nobody keeps count of what else these data are asked.
    Nothing,
    Session(&'a Session),
}

/// Everything is read, checked and planned; now the work.
pub(crate) struct Job<'a> {
    pub analysis: &'a Analysis,
    pub vault: &'a Vault,
    pub prepared: Prepared,
    /// Where its chains begin.
    pub initial: Initial,
    pub charge: Charge<'a>,
}

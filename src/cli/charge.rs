//! The cost of a run in a ledger: what `--ledger` says before anything is charged.

use super::failure::Failure;
use crate::accounting::{LedgerError, Quote, Session, figure};
use crate::analysis::Promise;
use crate::sampler::Plan;

/// The cost of a plan on top of what is spent.
///
/// # Errors
///
/// It does not fit.
pub(super) fn quote(session: &Session, promise: &Promise, plan: &Plan) -> Result<Quote, Failure> {
    fitting(session.quote(&promise.request("", plan))?)
}

/// # Errors
///
/// It does not fit.
pub(super) fn fitting(quote: Quote) -> Result<Quote, Failure> {
    if quote.fits {
        Ok(quote)
    } else {
        Err(LedgerError::Refused(Box::new(quote)).into())
    }
}

/// The ledger's side of a plan, in a line.
pub(super) fn line(quote: &Quote) -> String {
    format!(
        "ledger: epsilon {} of {} spent at delta {:e}; this run adds {}, which leaves {}",
        figure(quote.spent),
        quote.total,
        quote.delta,
        figure(quote.requested),
        figure((quote.total - quote.spent_after).max(0.0))
    )
}

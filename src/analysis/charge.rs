//! From a session's budget to a meter, and to what a report says of it.

use crate::accounting::{LedgerError, Meter, Quote, Request, Session, Terms};
use crate::output::{RECORD, RunLedger};
use crate::privacy::{LoadError, Vault};
use crate::sampler::Plan;

use super::error::Error;

/// Whose data a vault protects, as ledgers and reports call it.
///
/// # Errors
///
/// The session's budget is for another unit.
pub(super) fn unit_of(vault: &Vault, terms: &Terms) -> Result<String, Error> {
    match (vault.has_units(), vault.unit()) {
        (false, _) => Ok(RECORD.to_owned()),
        (true, Some(RECORD)) => Err(Error::Settings(format!(
            "the unit `{RECORD}` is a row, and not a column of that name: call the column something else"
        ))),
        (true, Some(column)) => Ok(column.to_owned()),
        // Put together by hand, the units have no name but the budget's.
        (true, None) if terms.unit() != RECORD => Ok(terms.unit().to_owned()),
        (true, None) => Err(LedgerError::Unit {
            run: "several rows".to_owned(),
            ledger: RECORD.to_owned(),
        }
        .into()),
    }
}

/// n where it is public.
///
/// # Errors
///
/// It is public and zero.
pub(super) fn public_n(vault: &Vault, terms: &Terms) -> Result<Option<u64>, Error> {
    match (terms.relation().n_is_public(), vault.n()) {
        (false, _) => Ok(None),
        (true, 0) => Err(LoadError::no_rows().into()),
        (true, n) => Ok(Some(n as u64)),
    }
}

/// The column of a unit; `None` where each record is one.
pub(super) fn column(unit: &str) -> Option<&str> {
    (unit != RECORD).then_some(unit)
}

fn request<'a>(name: &'a str, plan: &'a Plan, unit: &'a str) -> Request<'a> {
    Request {
        run: name,
        events: &plan.events,
        relation: plan.request.relation,
        unit,
    }
}

pub(super) fn quote(
    session: &Session,
    name: &str,
    plan: &Plan,
    unit: &str,
) -> Result<Quote, Error> {
    Ok(session.quote(&request(name, plan, unit))?)
}

/// Charges a plan in whole, does `work` on its meter, and says in the ledger how it went.
/// `is_whole`: whether the work came to its end.
///
/// # Errors
///
/// The budget refuses, and nothing was done; or the error of the work, for which the charge
/// stays unless it released nothing.
pub(super) fn charged<T>(
    session: &Session,
    name: &str,
    plan: &Plan,
    unit: &str,
    work: impl FnOnce(&Meter) -> Result<T, Error>,
    is_whole: impl FnOnce(&T) -> bool,
) -> Result<(T, Vec<u64>, Option<RunLedger>), Error> {
    let reservation = session.reserve(&request(name, plan, unit))?;
    // A session in memory leaves nothing to be looked up.
    let path = session.path()?;
    let mut ledger = path.map(|path| RunLedger::new(&path, &reservation));
    let outcome = work(reservation.meter());
    let released = reservation.meter().counts();
    let whole = outcome.as_ref().is_ok_and(is_whole);
    let settled = match whole {
        true => reservation.complete(),
        false => reservation.stop(),
    };
    // A note that cannot be written changes no charge, and is no reason to lose draws.
    if let (Some(ledger), Ok(settled)) = (&mut ledger, settled) {
        ledger.ended(settled.at);
    }
    Ok((outcome?, released, ledger))
}

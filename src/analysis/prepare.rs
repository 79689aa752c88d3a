//! From an analysis and a model to a plan, before a row is read.

use super::clip::Clips;
use super::error::Error;
use super::foreseen::{self, Foreseen};
use super::lengths::{AskedLengths, Lengths};
use crate::accounting::{LedgerError, Part, Real, Relation, Request, Session, Terms};
use crate::model::Model;
use crate::output::RECORD;
use crate::privacy::{LoadError, Vault};
use crate::sampler::{Algorithm, Allowance, Plan, PlanRequest, Settings};

/// The privacy promise of a run, and the number of records that it is about.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub epsilon: Real,
    pub delta: Real,
    pub relation: Relation,
    /// The column whose values tell units apart; `None` where each record is one.
    pub unit: Option<String>,
    /// The number of records, or of units, where it is public.
    pub records: Option<u64>,
    /// The part of the table that they are; all of it where there is none.
    pub part: Option<Part>,
}

impl Promise {
    /// The promise of an analysis of a vault's records on a session's budget.
    ///
    /// # Errors
    ///
    /// The budget is for another unit; there are no records, and that is public; they are no part
    /// that can be [promised](Promise::about) anything.
    pub fn on(session: &Session, vault: &Vault, epsilon: Real) -> Result<Promise, Error> {
        let terms = session.terms()?;
        let records = match (terms.relation().n_is_public(), vault.n()) {
            (false, _) => None,
            (true, 0) => return Err(LoadError::no_rows().into()),
            (true, n) => Some(n as u64),
        };
        let promise = Promise {
            unit: unit_of(vault, &terms)?,
            ..Promise::under(&terms, epsilon, records)
        };
        promise.about(vault)
    }

    /// The same of these records, which may be a part of a table.
    ///
    /// # Errors
    ///
    /// They are a part of a table whose division neighbours do not share: docs/proofs.md,
    /// section 18.
    pub fn about(self, vault: &Vault) -> Result<Promise, Error> {
        if self.relation == Relation::AddRemove && vault.is_divided_by_place() {
            return Err(Error::Settings(
                "under add-remove the place of a record depends on others, so records cannot be held out by it: give `unit`, or take `relation` substitute".into(),
            ));
        }
        Ok(Promise {
            part: vault.part(),
            ..self
        })
    }

    /// The same for so many records, or units, of any data that the terms are for.
    pub fn under(terms: &Terms, epsilon: Real, records: Option<u64>) -> Promise {
        Promise {
            epsilon,
            delta: terms.budget().delta(),
            relation: terms.relation(),
            unit: (terms.unit() != RECORD).then(|| terms.unit().to_owned()),
            records: records.filter(|_| terms.relation().n_is_public()),
            part: None,
        }
    }

    /// Whose data are protected, as ledgers and reports call it.
    pub fn unit_name(&self) -> &str {
        self.unit.as_deref().unwrap_or(RECORD)
    }

    /// For a session.
    pub fn request<'a>(&'a self, run: &'a str, plan: &'a Plan) -> Request<'a> {
        Request {
            run,
            events: &plan.events,
            relation: self.relation,
            unit: self.unit_name(),
            part: self.part.as_ref(),
        }
    }

    /// T = n0 / n.
    pub fn power(&self, temper_to: Option<f64>) -> Result<f64, Error> {
        power(temper_to, self.records)
    }
}

/// The column of a vault's units.
fn unit_of(vault: &Vault, terms: &Terms) -> Result<Option<String>, Error> {
    match (vault.has_units(), vault.unit()) {
        (false, _) => Ok(None),
        (true, Some(RECORD)) => Err(Error::Settings(format!(
            "the unit `{RECORD}` is a row, and not a column of that name: call the column something else"
        ))),
        (true, Some(column)) => Ok(Some(column.to_owned())),
        // Put together by hand, the units have no name but the budget's.
        (true, None) if terms.unit() != RECORD => Ok(Some(terms.unit().to_owned())),
        (true, None) => Err(LedgerError::Unit {
            run: "several rows".to_owned(),
            ledger: RECORD.to_owned(),
        }
        .into()),
    }
}

/// T = n0 / n for `records`, where their number is public.
pub(super) fn power(temper_to: Option<f64>, records: Option<u64>) -> Result<f64, Error> {
    match (temper_to, records) {
        (None, _) => Ok(1.0),
        (Some(_), None) => Err(Error::Settings(
            "`temperature` needs a public number of records; under add-remove it is private".into(),
        )),
        (Some(n0), Some(n)) if n0 > 0.0 && n0 <= n as f64 => Ok(n0 / n as f64),
        (Some(n0), Some(n)) => Err(Error::Settings(format!(
            "`temperature` is {n0}, but must be above 0 and at most the number of records, {n}"
        ))),
    }
}

/// A run without its name, its seed and its starting points.
#[derive(Debug, Clone)]
pub(super) struct Design<'a> {
    pub algorithm: &'static Algorithm,
    pub settings: &'a Settings,
    pub chains: u64,
    pub lengths: Option<Lengths>,
    pub temper_to: Option<f64>,
    /// Of a sampler that is not of this crate.
    pub allowance: Allowance,
}

/// Threads that any system has.
const MOST_CHAINS: u64 = 1024;

impl Design<'_> {
    /// The request to the planner, and the clip bounds in it.
    ///
    /// # Errors
    ///
    /// Settings that make no sense for the sampler or the model.
    pub fn request(&self, model: &Model, promise: &Promise) -> Result<(PlanRequest, Clips), Error> {
        if self.chains > MOST_CHAINS {
            return Err(Error::Settings(format!(
                "{} chains are more than a run may have, which is {MOST_CHAINS}: each has a thread",
                self.chains
            )));
        }
        let shared_units = promise.unit.is_some();
        let clips = Clips::choose(self.settings, self.algorithm, model, shared_units)?;
        let request = PlanRequest {
            algorithm: self.algorithm,
            relation: promise.relation,
            chains: self.chains,
            iterations: Lengths::planned(self.lengths),
            settings: clips.settled(self.settings),
            temperature: promise.power(self.temper_to)?,
            records: promise.records,
            shared_units,
            allowance: self.allowance,
            ..PlanRequest::new(promise.epsilon, promise.delta, model.dimension)
        };
        Ok((request, clips))
    }

    /// The plan. `lengths`: those that were asked for, of which the budget may decide.
    ///
    /// # Errors
    ///
    /// As of [`request`](Design::request); a budget that is too small.
    pub fn prepare(
        &self,
        lengths: &AskedLengths,
        model: &Model,
        promise: Promise,
    ) -> Result<Prepared, Error> {
        let (request, clips) = self.request(model, &promise)?;
        let (plan, foreseen) = foreseen::plan(request, model)?;
        Ok(Prepared {
            lengths: match self.lengths {
                Some(lengths) => lengths,
                None => lengths.of_plan(&plan)?,
            },
            plan,
            clips,
            foreseen,
            promise,
        })
    }
}

/// A plan with what it was made from.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub plan: Plan,
    pub lengths: Lengths,
    pub clips: Clips,
    /// The forecast, before a row is read.
    pub foreseen: Option<Foreseen>,
    pub promise: Promise,
}

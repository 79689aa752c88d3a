//! The errors of a ledger.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::super::accountant::AccountError;
use super::super::budget::BudgetError;
use super::super::relation::Relation;
use super::balance::Quote;
use super::stored_event::StoredEventError;
use super::terms::TermsError;

/// The reason why a budget or its ledger refuses a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    #[error(
        "the budget refuses this run: requested {}, spent {}, remaining {}, short by {}, in epsilon at delta {:e}; the total is {}, and by itself the run costs {}. {}",
        figure(.0.requested), figure(.0.spent), figure(.0.remaining), figure(.0.short_by), .0.delta,
        figure(.0.total), figure(.0.alone), advice(.0)
    )]
    Refused(Box<Quote>),
    #[error(
        "this run's relation is {run} and the ledger's is {ledger}: an epsilon under one says nothing under the other. Give `relation {ledger}`, or use a ledger of the run's relation"
    )]
    Relation { run: Relation, ledger: Relation },
    #[error(
        "this run protects a unit `{}`, and the ledger counts for a unit `{}`: the cost for one says nothing about the cost for the other. {}",
        run.escape_debug(), ledger.escape_debug(), unit_advice(ledger)
    )]
    Unit { run: String, ledger: String },
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Event(StoredEventError),
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error("there is no ledger `{}`; make one with `dpm ledger create`, or check the path", .0.display())]
    NotFound(PathBuf),
    #[error("`{}` exists already; a ledger is never written over. Choose another name", .0.display())]
    Exists(PathBuf),
    #[error(
        "`{head}` exists and `{ledger}` does not: the ledger was removed or renamed, or its creation was cut short. Restore the ledger; if no run was ever charged to it, remove `{head}`",
        head = head.display(), ledger = ledger.display()
    )]
    HeadWithoutLedger { head: PathBuf, ledger: PathBuf },
    #[error("the ledger `{}` does not hold: {damage}", path.display())]
    Damaged { path: PathBuf, damage: Damage },
    #[error("the ledger `{}` is in use by another run and stayed so for {} seconds; try again later", path.display(), waited.as_secs())]
    InUse { path: PathBuf, waited: Duration },
    #[error("cannot read the ledger `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "cannot write the ledger `{}`: {source}. It is sound: an entry that did not completely reach the disk does not count, and one that did is not lost", path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error("an earlier failure left this session without a sound state; open the ledger again")]
    Poisoned,
    #[error(
        "the ledger no longer has this run under way: it was settled before, or the file was changed"
    )]
    NotOpen,
    #[error(
        "the run of entry {entry} is under way in another process, of which this is a copy: only one of them can be resumed, after that process has ended"
    )]
    UnderWay { entry: u64 },
    #[error(
        "the ledger has no such run under way: it has ended, or the ledger was put back to an earlier state. What was charged stays charged"
    )]
    NotResumable,
    #[error(
        "this is not the last state of its run: the run was resumed elsewhere, from a copy, or this was restored from a backup. Resuming from here would repeat releases under new noise. What was charged stays charged; begin a new run, with its own charge"
    )]
    OlderState,
    #[error(
        "`{}`, which says how far the run has come, is missing or damaged, so that the run cannot be resumed; it belongs to the ledger, as the head does. What was charged stays charged", .0.display()
    )]
    NoWatermark(PathBuf),
    #[error(
        "`{}`, which says how far the run of entry {entry} has come, was replaced or removed while the run was under way", path.display()
    )]
    WatermarkReplaced { path: PathBuf, entry: u64 },
    #[error("the chains of this run have made more releases than their states say")]
    MoreThanGranted,
    #[error("cannot write `{}`, which says how far a run has come: {source}", path.display())]
    Watermark { path: PathBuf, source: io::Error },
    #[error(
        "the events of this run in the ledger differ from its plan: the settings or the program have changed since it began"
    )]
    OtherPlan,
    #[error(transparent)]
    Released(#[from] BudgetError),
    #[error("this should not have happened: {0}. Nothing was released")]
    Internal(String),
}

/// A fault in a ledger's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    #[error(
        "its first line is missing or incomplete. If its creation was cut short, no run was ever charged: then remove it, and the file of the same name with `.head` appended, and create it again"
    )]
    NoFirstLine,
    #[error("its first line is not that of a ledger")]
    NotALedger,
    #[error("entry {number} (at byte {offset}) is invalid: {why}")]
    Entry {
        number: u64,
        offset: u64,
        why: String,
    },
    #[error(
        "entry {number} is not the one that was written last, according to the head file: it or one before was edited, or lines were removed and others added"
    )]
    NotAsTheHeadSays { number: u64 },
    #[error(
        "it ends after entry {entries}, and {expected} were written, according to the head file: entries at its end are missing, or cut short"
    )]
    Truncated { entries: u64, expected: u64 },
    #[error(
        "its head `{}` is missing, so that missing entries at the end could not be noticed. If the ledger was moved, move the head with it; to continue without it, use `dpm ledger adopt`, which leaves a note in the ledger", .0.display()
    )]
    HeadMissing(PathBuf),
    #[error("its head `{}` cannot be read: {why}", path.display())]
    HeadUnreadable { path: PathBuf, why: String },
    #[error("the head file belongs to another ledger")]
    HeadOfAnother,
    #[error("the file was replaced by another while it was in use")]
    Replaced,
    #[error("more is charged than its budget allows: epsilon {spent} of {total}")]
    Overspent { spent: String, total: String },
    #[error("{0}")]
    NotTheRuns(String),
}

/// An epsilon for people to read.
pub(crate) fn figure(epsilon: f64) -> String {
    if epsilon == 0.0 || epsilon >= 1e-3 {
        format!("{epsilon:.6}")
    } else {
        format!("{epsilon:.5e}")
    }
}

fn advice(quote: &Quote) -> String {
    if !quote.requested.is_finite() {
        return "No epsilon reaches that delta, since noise on a lattice differs from a Gaussian: \
                use larger noise multipliers or fewer releases"
            .to_owned();
    }
    if quote.room > 0.0 {
        // Rounded down, so that a run of this size does fit.
        let room = (quote.room * 1e5).floor() / 1e5;
        return format!(
            "A run that costs at most about {} by itself at that delta would fit",
            figure(if room > 0.0 { room } else { quote.room })
        );
    }
    "Nothing is left".to_owned()
}

fn unit_advice(ledger: &str) -> String {
    match ledger {
        "record" => "Leave the unit out, or use a ledger of the run's unit".to_owned(),
        column => format!(
            "Give `unit {}`, or use a ledger of the run's unit",
            column.escape_debug()
        ),
    }
}

//! Why a ledger refuses.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::super::accountant::AccountError;
use super::super::budget::BudgetError;
use super::super::event::Relation;
use super::balance::Quote;
use super::stored_event::StoredEventError;
use super::terms::TermsError;

/// Why a budget or its ledger does not do what is asked of it.
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
        "this run's relation is {run} and the ledger's is {ledger}: an epsilon under the one is none under the other. Give `--relation {ledger}`, or use a ledger of the run's relation"
    )]
    Relation { run: Relation, ledger: Relation },
    #[error(
        "this run protects a unit `{}`, and the ledger counts for a unit `{}`: what one costs says nothing about the other. {}",
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
        "`{head}` exists and `{ledger}` does not: the ledger was removed or renamed, or making it was cut short. Bring the ledger back; if no run was ever charged to it, remove `{head}`",
        head = head.display(), ledger = ledger.display()
    )]
    HeadWithoutLedger { head: PathBuf, ledger: PathBuf },
    #[error("the ledger `{}` does not hold: {damage}", path.display())]
    Damaged { path: PathBuf, damage: Damage },
    #[error("the ledger `{}` is in use by another run, since {} seconds at least; try again when that has moved on", path.display(), waited.as_secs())]
    InUse { path: PathBuf, waited: Duration },
    #[error("cannot read the ledger `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "cannot write the ledger `{}`: {source}. It is sound: an entry that did not reach the disk whole does not count, and one that did is not lost", path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    #[error("an earlier failure left this session without a sound state; open the ledger again")]
    Poisoned,
    #[error(
        "the ledger no longer has this run under way: it was settled before, or the file was changed"
    )]
    NotOpen,
    #[error(
        "the run of entry {entry} is under way in another process, of which this is a copy: one of them can go on, when that one has ended"
    )]
    UnderWay { entry: u64 },
    #[error(
        "the ledger has no run under way that this could go on with: it has ended, or the ledger was put back to an earlier state. What was charged stays charged"
    )]
    NotResumable,
    #[error(
        "this is not the last state of its run: the run was gone on with elsewhere, from a copy, or this was put back from a backup. To go on from here would release anew what was released before. What was charged stays charged; begin another run, with a charge of its own"
    )]
    OlderState,
    #[error(
        "`{}`, which says how far the run has come, is missing or damaged, so that it cannot be gone on with; it belongs to the ledger, as the head does. What was charged stays charged", .0.display()
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
        "the ledger has other events for this run than its plan: the settings or the program have changed since it began"
    )]
    OtherPlan,
    #[error(transparent)]
    Released(#[from] BudgetError),
    #[error("this should not have happened: {0}. Nothing was released")]
    Internal(String),
}

/// What is wrong with a ledger's file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    #[error(
        "its first line is missing or incomplete. If making it was cut short, no run was ever charged: then remove it, and the file with `.head` after its name, and make it again"
    )]
    NoFirstLine,
    #[error("its first line is not that of a ledger")]
    NotALedger,
    #[error("entry {number} (at byte {offset}) cannot stand there: {why}")]
    Entry {
        number: u64,
        offset: u64,
        why: String,
    },
    #[error(
        "entry {number} is not the one that was written last, as the head file has it: it or one before was edited, or lines were removed and others added"
    )]
    NotAsTheHeadSays { number: u64 },
    #[error(
        "it ends after entry {entries}, and {expected} were written, as the head file has it: entries at its end are missing, or cut"
    )]
    Truncated { entries: u64, expected: u64 },
    #[error(
        "its head `{}` is missing, so that nobody can tell whether entries at the end are missing too. If the ledger was moved, move the head with it; to go on without, `dpm ledger adopt`, which leaves a note in the ledger", .0.display()
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

/// An epsilon for people.
pub(super) fn figure(epsilon: f64) -> String {
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
        "record" => "Leave --unit out, or use a ledger of the run's unit".to_owned(),
        column => format!(
            "Give `--unit {}`, or use a ledger of the run's unit",
            column.escape_debug()
        ),
    }
}

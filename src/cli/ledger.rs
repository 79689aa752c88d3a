//! `dpm ledger`: the budget of one data set.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::format::Format;
use super::run_settings::RelationChoice;
use super::{Common, pretty, print};
use crate::accounting::{
    Accountant, Budget, Evidence, Outcome, Real, RunRecord, Session, Statement, Terms, figure,
};
use crate::output::RunLedger;

/// Runs that `show` lists; the file has them all.
const SHOWN: usize = 20;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm ledger create survey.ledger --epsilon 4 --delta 1e-6\n\ndocs/ledger.md says what a ledger proves and what it does not."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LedgerCommand {
    /// Create the ledger of a data set
    Create(Create),
    /// List the charges, the budget spent and the budget left
    Show(Show),
    /// Check that a ledger is complete and within its budget
    Verify(Verify),
    /// Continue a ledger whose head file is lost, with a permanent note in it
    Adopt(Adopt),
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm ledger create survey.ledger --epsilon 4 --delta 1e-6\n\nUse one ledger per data set, and give it to every run on these data: dpm sample model.dpm survey.csv --epsilon 1 --delta 1e-6 --ledger survey.ledger\nThe file survey.ledger.head is written next to it and belongs to it: move and back up both together."
)]
struct Create {
    /// The file to create
    ledger: PathBuf,
    /// Privacy budget epsilon of all runs together
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Real,
    /// Privacy budget delta of all runs together
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Real,
    /// How neighbouring data sets differ; runs must use the same relation
    #[arg(long, value_enum, default_value_t = RelationChoice::Substitute)]
    relation: RelationChoice,
    /// Whose data are protected: `record`, or the column that runs give to --unit
    #[arg(long, value_name = "NAME", default_value = "record")]
    unit: String,
    /// gaussian or zcdp for runs that read all rows; rdp also for runs that read samples
    #[arg(long, default_value = "gaussian", value_name = "NAME")]
    accountant: Accountant,
    /// The main order at which rdp adds up, fixed for all runs [default: one that suits the budget]
    #[arg(long, value_name = "A")]
    order: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: dpm ledger show survey.ledger --format json")]
struct Show {
    /// The ledger
    ledger: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm ledger verify survey.ledger --against first-run --against second-run\n\nExits with 1 when the ledger does not hold: a line was edited, moved or removed, entries are missing at the end, or more is charged than the budget allows. With --against, also when the entries that a run's privacy.json names are not in it, which shows a ledger that was rewritten from some entry on, or put back to an earlier state together with its head; when it knows of fewer releases than the run made, or of another end; and when two runs name one charge and neither is an earlier state of the other."
)]
struct Verify {
    /// The ledger
    ledger: PathBuf,
    /// Directories of runs whose charges the ledger must contain
    #[arg(long, value_name = "RUN")]
    against: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm ledger adopt survey.ledger\n\nThe head file says how many entries the ledger has. Without it nobody can tell whether entries at the end are missing. Check the ledger against the runs that you know of before you adopt it; the note stays in it."
)]
struct Adopt {
    /// The ledger
    ledger: PathBuf,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        LedgerCommand::Create(create) => create.run(common),
        LedgerCommand::Show(show) => show.run(),
        LedgerCommand::Verify(verify) => verify.run(common),
        LedgerCommand::Adopt(adopt) => adopt.run(common),
    }
}

impl Create {
    fn run(&self, common: &Common) -> Result<(), Failure> {
        let budget = Budget::new(self.epsilon, self.delta).map_err(Failure::input)?;
        let terms = Terms::new(budget, self.relation.into(), &self.unit, self.accountant)
            .and_then(|terms| match self.order {
                Some(order) => terms.with_order(order),
                None => Ok(terms),
            })
            .map_err(Failure::input)?;
        let session = Session::create(&self.ledger, &terms)?;
        let statement = session.statement()?;
        common.say(format!(
            "made {}: epsilon {} at delta {:e} for one `{}` under {}, for all runs together, accountant {}",
            self.ledger.display(),
            statement.epsilon,
            statement.delta,
            statement.unit.escape_debug(),
            statement.relation,
            name_of(&statement),
        ));
        common.say(
            "give it to every run on these data with --ledger, and keep its .head file next to it",
        );
        Ok(())
    }
}

impl Show {
    fn run(&self) -> Result<(), Failure> {
        let session = Session::open_with_history(&self.ledger)?;
        let (statement, history) = (session.statement()?, session.history()?);
        print(&match self.format {
            Format::Json => {
                let mut value = json!(statement);
                value["history"] = json!(history);
                pretty(&value)
            }
            Format::Text => describe(&statement, &history)?,
        })
    }
}

impl Verify {
    fn run(&self, common: &Common) -> Result<(), Failure> {
        let session = Session::open_with_history(&self.ledger)?;
        session.check_balance()?;
        let mut seen: Vec<(&Path, Evidence)> = Vec::new();
        let mut of_runs = Vec::new();
        for run in &self.against {
            let evidence = evidence_of(run)?;
            let holds = session.check_evidence(&evidence);
            let note = holds.map_err(|e| Failure::run(format!("{e} (run `{}`)", run.display())))?;
            of_runs.extend(note.map(|note| format!("run `{}`: {note}", run.display())));
            let twin = seen
                .iter()
                .find(|(_, other)| other.charge == evidence.charge);
            if let Some((other, _)) = twin {
                of_runs.push(one_charge(other, run, evidence.charge.entry)?);
            }
            seen.push((run, evidence));
        }
        let statement = session.statement()?;
        let mut text = format!(
            "{} holds: {} entries, {} runs, epsilon {} of {} spent at delta {:e}\nhead {}\n",
            self.ledger.display(),
            statement.entries,
            statement.runs.runs,
            figure(statement.spent),
            statement.epsilon,
            statement.delta,
            statement.head,
        );
        for note in notes(&statement).into_iter().chain(of_runs) {
            text += &format!("note: {note}\n");
        }
        if !self.against.is_empty() {
            text += &format!(
                "the entries of {} runs are in it as they were reported\n",
                self.against.len()
            );
        }
        print(&text)?;
        if self.against.is_empty() {
            common.say(
                "to detect whether it was rewritten as a whole, compare it with runs: --against RUN",
            );
        }
        Ok(())
    }
}

impl Adopt {
    fn run(&self, common: &Common) -> Result<(), Failure> {
        let head = {
            let mut name = self.ledger.clone().into_os_string();
            name.push(".head");
            PathBuf::from(name)
        };
        if head.exists() {
            return Err(Failure::input(format!(
                "`{}` exists; only a ledger without its head can be adopted. If the head is of another ledger, move it away first",
                head.display()
            )));
        }
        let statement = Session::adopt(&self.ledger)?.statement()?;
        common.say(format!(
            "adopted {} with {} entries; the note in it stays",
            self.ledger.display(),
            statement.entries
        ));
        Ok(())
    }
}

/// A run's own report of its charge.
fn evidence_of(run: &Path) -> Result<Evidence, Failure> {
    let path = run.join("privacy.json");
    let text = std::fs::read_to_string(&path).map_err(|e| {
        Failure::input(format!(
            "cannot read `{}`: {e}; --against takes the directory of a run",
            path.display()
        ))
    })?;
    let json: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::input(format!("`{}` is not valid JSON: {e}", path.display())))?;
    if json["ledger"].is_null() {
        return Err(Failure::input(format!(
            "`{}` names no ledger: the run was made without --ledger",
            path.display()
        )));
    }
    let evidence = || {
        let ledger = RunLedger::deserialize(&json["ledger"]).ok()?;
        let released = json["released"].as_array()?.iter();
        Some(Evidence {
            charge: ledger.charge(),
            last: ledger.last(),
            ledger: ledger.id,
            released: released
                .map(|line| line["count"].as_u64())
                .collect::<Option<_>>()?,
            finished: json["unfinished"] == Value::Bool(false),
        })
    };
    evidence().ok_or_else(|| {
        Failure::input(format!(
            "`{}` does not say where its run was charged, or what it released, as dpm writes it",
            path.display()
        ))
    })
}

/// The verdict on two directories of one charge. One may hold an earlier state of the run in
/// the other, or the same; if each has draws that the other lacks, both were resumed.
fn one_charge(first: &Path, second: &Path, entry: u64) -> Result<String, Failure> {
    let (a, b) = (rows_of_chains(first)?, rows_of_chains(second)?);
    let (first, second) = (first.display(), second.display());
    let is_within = |a: &[Vec<String>], b: &[Vec<String>]| {
        a.len() <= b.len() && a.iter().zip(b).all(|(a, b)| b.starts_with(a))
    };
    match (is_within(&a, &b), is_within(&b, &a)) {
        (true, true) => Ok(format!("`{first}` and `{second}` hold the same draws")),
        (true, false) => Ok(format!("`{first}` is an earlier state of `{second}`")),
        (false, true) => Ok(format!("`{second}` is an earlier state of `{first}`")),
        (false, false) => Err(Failure::run(format!(
            "`{first}` and `{second}` were both charged by entry {entry} and hold different draws: one of them was resumed from a copy, and their releases together cost more than was charged"
        ))),
    }
}

/// The rows of each chain's file, without comments.
fn rows_of_chains(run: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let mut chains = Vec::new();
    loop {
        let path = run.join(format!("chain-{}.csv", chains.len() + 1));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let rows = text.lines().filter(|line| !line.starts_with('#'));
                chains.push(rows.map(str::to_owned).collect());
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(chains),
            Err(e) => {
                return Err(Failure::input(format!(
                    "cannot read `{}`: {e}",
                    path.display()
                )));
            }
        }
    }
}

/// The accountant, with its order.
fn name_of(statement: &Statement) -> String {
    match statement.order {
        Some(order) => format!("{}, main order {order}", statement.accountant),
        None => statement.accountant.to_string(),
    }
}

fn notes(statement: &Statement) -> Vec<String> {
    let mut notes = Vec::new();
    if statement.torn_tail {
        notes.push("the last line was cut short while it was written. Nothing was released on it; the next entry will mark it".to_owned());
    }
    let runs = &statement.runs;
    if runs.unsettled() > 0 {
        notes.push(format!(
            "{} runs are under way, or were interrupted and can be resumed; they stay charged",
            runs.unsettled()
        ));
    }
    if runs.interrupted + runs.resumed > 0 {
        notes.push(format!(
            "runs were interrupted {} times and resumed {} times, without a further charge",
            runs.interrupted, runs.resumed
        ));
    }
    if runs.recovered > 0 {
        notes.push(format!(
            "{} lines were cut short at some time, and are marked",
            runs.recovered
        ));
    }
    if runs.adopted > 0 {
        notes.push(format!(
            "it was accepted without its head {} times: entries may be missing before that",
            runs.adopted
        ));
    }
    notes
}

fn describe(statement: &Statement, history: &[RunRecord]) -> Result<String, Failure> {
    let mut text = String::new();
    let mut lines = || {
        let s = statement;
        writeln!(text, "ledger {} of {}", s.id, s.created)?;
        writeln!(
            text,
            "for one `{}` under {}, accountant {}",
            s.unit.escape_debug(),
            s.relation,
            name_of(s)
        )?;
        writeln!(
            text,
            "epsilon at delta {:e}: total {}, spent {}, remaining {}",
            s.delta,
            s.epsilon,
            figure(s.spent),
            figure(s.remaining)
        )?;
        writeln!(
            text,
            "a further run fits that costs at most about {} by itself",
            figure(s.room)
        )?;
        for note in notes(s) {
            writeln!(text, "note: {note}")?;
        }
        writeln!(text, "head {} (entry {})", s.head, s.entries)?;
        if history.len() > SHOWN {
            writeln!(
                text,
                "... and {} runs before these: see --format json",
                history.len() - SHOWN
            )?;
        }
        for run in &history[history.len().saturating_sub(SHOWN)..] {
            let outcome = run.outcome.map_or("under way, or cut short", Outcome::name);
            let part = run.part.as_ref().map(|part| {
                let which = if part.is_held_out {
                    "what"
                } else {
                    "all but what"
                };
                format!(
                    " (on {which} `{}` holds out, about {})",
                    part.split.escape_debug(),
                    part.held_out
                )
            });
            writeln!(
                text,
                "entry {:>6}  {}  {}  {}{}",
                run.entry,
                run.date.escape_debug(),
                outcome,
                run.run.escape_debug(),
                part.unwrap_or_default()
            )?;
        }
        Ok::<(), std::fmt::Error>(())
    };
    lines().map_err(Failure::run)?;
    Ok(text)
}

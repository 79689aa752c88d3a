//! `privacy.json`: the promise of a run, for programs and for privacy officers.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clipping::Clipping;
use crate::accounting::{EntryHash, EntryRef, Event, Guarantee, Relation, Reservation};

/// The name of the unit of privacy in a report when each record is one.
pub const RECORD: &str = "record";

/// The charge of a run: enough to find the entry, and to check later that the ledger still has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunLedger {
    /// The name of the file, without its folders.
    pub name: String,
    pub id: String,
    /// Number and hash of the entry that charged the run.
    pub entry: u64,
    pub hash: EntryHash,
    /// The entry that says how it ended or was interrupted; none before that, or if it could not be
    /// written.
    #[serde(flatten)]
    pub last: Option<LastEntry>,
    /// The budget of all runs together.
    pub epsilon: f64,
    pub delta: f64,
    /// Upper bound on the epsilon of all runs charged up to and including this one, at the ledger's
    /// delta.
    pub epsilon_spent: f64,
    pub accountant: String,
}

/// Number and hash of the last entry about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEntry {
    pub last_entry: u64,
    pub last_hash: EntryHash,
}

impl RunLedger {
    /// The charge of a run to the ledger at `path`, before the run has ended.
    pub fn new(path: &Path, reservation: &Reservation) -> RunLedger {
        let terms = reservation.terms();
        let name = path.file_name().map(|name| name.to_string_lossy());
        let EntryRef { entry, hash } = reservation.charge();
        RunLedger {
            name: name.unwrap_or_default().into_owned(),
            id: reservation.ledger().to_owned(),
            entry,
            hash,
            last: None,
            epsilon: terms.budget().epsilon().to_f64(),
            delta: terms.budget().delta().to_f64(),
            epsilon_spent: reservation.spent(),
            accountant: terms.accountant().name().to_owned(),
        }
    }

    /// The entry that charged it.
    pub fn charge(&self) -> EntryRef {
        EntryRef {
            entry: self.entry,
            hash: self.hash,
        }
    }

    /// Records the entry that says how the run ended.
    pub fn ended(&mut self, at: EntryRef) {
        self.last = Some(LastEntry {
            last_entry: at.entry,
            last_hash: at.hash,
        });
    }

    /// The last entry about it, if one was recorded.
    pub fn last(&self) -> Option<EntryRef> {
        self.last.map(|last| EntryRef {
            entry: last.last_entry,
            hash: last.last_hash,
        })
    }
}

/// The contents of the report on a private run.
#[derive(Debug, Clone)]
pub struct PrivateRun<'a> {
    /// The requested budget.
    pub epsilon: f64,
    pub delta: f64,
    /// Upper bound on the epsilon of the schedule that was charged, at `delta`.
    pub epsilon_spent: f64,
    pub relation: Relation,
    /// The column whose values identify units; `None` where each record is one.
    pub unit: Option<&'a str>,
    /// The cost of the schedule, and its proof.
    pub guarantee: &'a Guarantee,
    /// The schedule that was charged.
    pub events: &'a [Event],
    /// How many of each event's releases took place.
    pub released: &'a [u64],
    /// The ledger to which the run was charged.
    pub ledger: Option<&'a RunLedger>,
    /// False when the noise came from `--insecure-noise-seed`.
    pub secure_noise: bool,
    /// Whether it was interrupted and can be resumed.
    pub unfinished: bool,
    /// Iterations of all chains that were made and lost in interruptions.
    pub lost_iterations: u64,
    pub tempered: bool,
    /// Whether a codebook's guesses of covariates shaped what was asked.
    pub guessed: bool,
    pub clipping: Clipping,
}

/// The report of a private run. With insecure noise it says that the run is not
/// private.
pub fn private_report(run: &PrivateRun) -> Value {
    let mut public = vec![
        "the model and its constants",
        "the declared bounds of record columns and levels of factors",
        "all settings of the run (config.json), among them clip bounds and noise multipliers",
        "initial values, given or drawn without looking at the data",
    ];
    if run.guessed {
        public.push(
            "the codebook's guesses of how covariates are distributed (config.json, covariates)",
        );
    }
    let one = match run.unit {
        None => "one record".to_string(),
        Some(column) => format!("all records that share a value of the column `{column}`"),
    };
    let count = match run.unit {
        None => "the number of records".to_string(),
        Some(column) => format!(
            "the number of units, that is of different values of the column `{column}` (not the number of records of each, nor of all)"
        ),
    };
    if run.relation.n_is_public() {
        public.push(&count);
    }
    let mut not_protected = vec![
        "what errors about unreadable rows reveal while the data is loaded",
        "timing and other side channels of the computer the run is on",
        "anyone who can read that computer's memory or the data itself",
        match run.unit {
            None => "groups of several records of one person: the unit is one record",
            Some(_) => {
                "groups of several units, and a person whose records have different values in the unit's column"
            }
        },
        if run.ledger.is_some() {
            "releases from the same data that were not charged to the ledger, and settings that were chosen by looking at such releases"
        } else {
            "settings that were chosen by looking at results on the same data, and other releases from it"
        },
    ];
    if run.relation == Relation::ZeroOut {
        not_protected.push(match run.unit {
            None => "that a record has a row in the table",
            Some(_) => "that a unit is one of those in the table",
        });
    }
    if run.unfinished {
        not_protected.push(
            "how far the run had come when it was interrupted: that depends on how long an iteration takes, and with it on the number of rows",
        );
    }
    json!({
        "private": run.secure_noise,
        "statement": if run.secure_noise {
            format!(
                "Everything this run wrote is ({}, {:e})-differentially private for {one} under the relation `{}` ({}), provided that what `assumed_public` lists is public{}.",
                run.epsilon, run.delta, run.relation, hidden(run.relation, run.unit.is_some()),
                run.guarantee.proviso().map_or(String::new(), |proviso| format!(", and {proviso}"))
            )
        } else {
            "NOT PRIVATE: the noise was made from a seed (`insecure_noise_seed`).".to_string()
        },
        "epsilon": run.epsilon,
        "delta": run.delta,
        "epsilon_spent": run.epsilon_spent,
        "relation": run.relation.name(),
        "unit": run.unit.unwrap_or(RECORD),
        "unit_column": run.unit,
        "mu": run.guarantee.mu,
        "events": run.events,
        "released": run.events.iter().zip(run.released).map(|(event, count)| json!({
            "what": event.what(),
            "count": count,
        })).collect::<Vec<_>>(),
        "unfinished": run.unfinished,
        "lost_iterations": run.lost_iterations,
        "ledger": run.ledger,
        "accountant": run.guarantee.accountant.name(),
        "proved": run.guarantee.proved,
        "not_proved": run.guarantee.not_proved,
        "noise": {
            "generator": if run.secure_noise {
                "ChaCha20, seeded by the operating system"
            } else {
                "ChaCha20, seeded by insecure_noise_seed: NOT PRIVATE"
            },
            "distribution": "discrete Gaussian, sampled exactly in integers (Canonne, Kamath and Steinke 2020)",
            "lattice": {
                "gradient": "spacing sigma * 2^-40",
                "log_ratio": "spacing 2^-44 nats",
            },
        },
        "tempered": run.tempered,
        "clipping": run.clipping.json(),
        "assumed_public": public,
        "not_protected": not_protected,
        "software": software(),
    })
}

/// The facts about one record, or about all records of one unit, that the promise hides.
fn hidden(relation: Relation, of_unit: bool) -> &'static str {
    match (relation, of_unit) {
        (Relation::Substitute, false) => {
            "whether its values or any others were in its place; that there was a row is not hidden"
        }
        (Relation::Substitute, true) => {
            "whether they or any others were in their place; that there was such a unit is not hidden"
        }
        (Relation::AddRemove, false) => "whether it was in the table or missing",
        (Relation::AddRemove, true) => "whether they were in the table or missing",
        (Relation::ZeroOut, false) => {
            "whether its values were in the table or left blank; that there was a row is not hidden"
        }
        (Relation::ZeroOut, true) => {
            "whether their values were in the table or left blank; that there was such a unit is not hidden"
        }
    }
}

/// The report of a run without privacy.
pub fn not_private_report(algorithm: &str) -> Value {
    json!({
        "private": false,
        "statement": format!("NOT PRIVATE: `{algorithm}` uses exact values of the data."),
        "epsilon": null,
        "delta": null,
        "epsilon_spent": null,
        "relation": null,
        "unit": null,
        "unit_column": null,
        "events": [],
        "ledger": null,
        "accountant": null,
        "noise": null,
        "assumed_public": [],
        "not_protected": ["everything"],
        "software": software(),
    })
}

fn software() -> Value {
    json!({ "name": "dpm", "version": env!("CARGO_PKG_VERSION") })
}

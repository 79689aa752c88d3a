//! The ledger as its users meet it: killed, raced for, on a full disk, edited, cut. Never
//! is more released than was charged, no charge is lost, and each refusal says why.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dpm::accounting::{Accountant, Budget, Event, LedgerError, Outcome, Request, Session, Terms};
use dpm::testing::density::Density;
use dpm::testing::privacy::{PrivateRng, Rows};
use dpm::testing::sampler::{Iterations, Observer, PlanRequest, PrivateSettings, sample_privately};
use dpm::{Constants, Draw, Model, OnBadRows, Plan, Real, Relation, Vault};
use serde_json::Value;

use crate::harness::{
    Folder, LOGISTIC as MODEL, Lcg, Moment, Watched, entries, finish, folder_of, json, says, spawn,
    start, wait_until,
};

/// A run of some tenths of a second, of 160 iterations.
const RUN: &str = "sample m.dpm d.csv --algorithm dp-hmc --no-report --delta 1e-6 --chains 2 --num-warmup 40 --num-samples 40 --ledger l";
/// Its lines of progress: about the first iteration, and each hundredth of them, rounded up.
const LINES: u64 = 81;

/// A folder with a model and 300 rows.
struct Place(Folder);

folder_of!(Place);

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", MODEL);
        let rows = (0..300).map(|i| format!("{},{:.3}\n", i % 2, f64::from(i % 19 - 9) / 9.0));
        place.write("d.csv", "y,x\n".to_owned() + &rows.collect::<String>());
        place
    }

    /// With a ledger `l`.
    fn with_ledger(epsilon: &str) -> Place {
        let place = Place::new();
        place.succeeds(&format!("ledger create l --epsilon {epsilon} --delta 1e-6"));
        place
    }

    /// The command fails with this code and these words, and neither releases anything
    /// nor touches the ledger.
    fn fails(&self, arguments: &str, code: i32, words: &[&str]) {
        let before = fs::read(self.file("l")).ok();
        self.refuses(arguments, code, words);
        assert!(!self.file("m-run").exists(), "dpm {arguments}");
        assert_eq!(fs::read(self.file("l")).ok(), before, "dpm {arguments}");
    }

    fn show(&self) -> Value {
        json(&self.succeeds("ledger show l --format json").out)
    }

    fn session(&self) -> Session {
        Session::open(self.file("l")).expect("a ledger")
    }
}

#[test]
fn a_run_is_charged_and_its_report_names_the_entry() {
    let place = Place::with_ledger("2");
    place.succeeds(&format!("{RUN} --epsilon 1"));
    let report = place.json("m-run/privacy.json");
    let show = place.show();
    let (charge, run) = (&report["ledger"], &show["history"][0]);
    assert_eq!(charge["name"], "l");
    assert_eq!(charge["id"], show["id"]);
    assert_eq!(
        (&charge["entry"], &charge["hash"]),
        (&run["entry"], &run["hash"])
    );
    assert_eq!(charge["epsilon_spent"], show["spent"]);
    assert_eq!(report["events"], run["events"]);
    assert_eq!(run["outcome"], "completed");
    let released: Vec<&Value> = report["released"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["count"])
        .collect();
    assert_eq!(
        released,
        run["released"]
            .as_array()
            .unwrap()
            .iter()
            .collect::<Vec<_>>()
    );
    let spent = show["spent"].as_f64().unwrap();
    assert!(spent > 0.999 && spent < 1.001, "{spent}");

    // Three runs of epsilon 1 cost 1.8 together, by their events; a fourth is too much.
    place.succeeds(&format!("{RUN} --epsilon 1 --out two"));
    let plan = place.succeeds("plan m.dpm --rows 300 --epsilon 1 --delta 1e-6 --ledger l");
    assert!(plan.out.contains("this run adds 0.3"), "{}", plan.out);
    place.succeeds(&format!("{RUN} --epsilon 1 --out three"));
    let spent = place.show()["spent"].as_f64().unwrap();
    assert!((spent - 1.8138).abs() < 1e-3, "{spent}");
    fs::rename(place.file("m-run"), place.file("one")).unwrap();
    let words = [
        "requested 0.3",
        "spent 1.81",
        "remaining 0.18",
        "short by 0.1",
        "would fit",
    ];
    place.fails(&format!("{RUN} --epsilon 1"), 3, &words);
    place.fails(
        "plan m.dpm --rows 300 --epsilon 1 --delta 1e-6 --ledger l",
        3,
        &words,
    );
    let verified = place.succeeds("ledger verify l --against one --against two --against three");
    says(&verified.out, "holds: 7 entries, 3 runs");
}

#[test]
fn what_a_ledger_cannot_cover_is_refused() {
    let place = Place::with_ledger("2");
    let run = format!("{RUN} --epsilon 1");
    place.fails(
        &format!("{run} --relation add-remove"),
        2,
        &["add-remove", "substitute", "--relation substitute"],
    );
    place.fails(
        &format!("{run} --relation zero-out"),
        2,
        &["zero-out", "substitute", "--relation substitute"],
    );
    place.succeeds("ledger create zero --epsilon 2 --delta 1e-6 --relation zero-out");
    let blank = run.replace("--ledger l", "--ledger zero");
    for relation in ["substitute", "add-remove"] {
        place.fails(
            &format!("{blank} --relation {relation}"),
            2,
            &[relation, "zero-out", "--relation zero-out"],
        );
    }
    place.succeeds(&format!("{blank} --relation zero-out --out blank"));
    place.succeeds("ledger verify zero --against blank");
    assert!(place.succeeds("ledger show zero").out.contains("zero-out"));
    place.fails(
        &format!("{run} --insecure-noise-seed 3"),
        2,
        &["not private", "no charge"],
    );
    let reference = "sample m.dpm d.csv --algorithm hmc --not-private --ledger l";
    place.fails(reference, 2, &["not private", "no charge"]);
    place.fails(
        &run.replace("--ledger l", "--ledger no"),
        2,
        &["there is no ledger `no`", "ledger create"],
    );
    place.fails(
        &run.replace("--ledger l", "--ledger d.csv"),
        1,
        &["does not hold"],
    );
    place.fails(
        "ledger create l --epsilon 1 --delta 1e-6",
        2,
        &["exists already"],
    );
    for (flags, word) in [
        ("--epsilon 0 --delta 1e-6", "epsilon is 0"),
        ("--epsilon 1 --delta 2", "delta is 2"),
        ("--epsilon 1 --delta 1e-6 --accountant pld", "pld"),
        ("--epsilon 1 --delta 1e-6 --relation none", "none"),
    ] {
        place.fails(&format!("ledger create m {flags}"), 2, &[word]);
        assert!(!place.file("m").exists() && !place.file("m.head").exists());
    }
    place.succeeds("ledger create units --epsilon 1 --delta 1e-6 --unit patient");
    place.fails(
        &run.replace("--ledger l", "--ledger units"),
        2,
        &["unit `record`", "unit `patient`", "--unit patient"],
    );
    let rows = place.read("d.csv");
    let mut people = rows.lines().enumerate().map(|(i, line)| match i {
        0 => format!("{line},patient,record\n"),
        _ => format!("{line},p{},r{}\n", i % 100, i % 30),
    });
    place.write("p.csv", people.by_ref().collect::<String>());
    let of_people = run.replace("d.csv", "p.csv");
    place.fails(
        &format!("{of_people} --unit patient"),
        2,
        &["unit `patient`", "unit `record`", "Leave the unit out"],
    );
    // A column of that name is another unit than the row.
    place.fails(&format!("{of_people} --unit record"), 2, &["is a row"]);
    assert_eq!(place.show()["spent"], 0.0);
    let with_units = of_people.replace("--ledger l", "--ledger units");
    place.succeeds(&format!("{with_units} --unit patient"));
}

// Wrong here: a typing error in an initial value costs a budget.
#[test]
fn a_run_that_ends_before_its_first_release_is_not_charged() {
    let place = Place::with_ledger("1");
    place.write("init.json", "{\"alpha\": 0, \"beta\": 0}");
    let model = MODEL.replace("alpha ~ normal(0, 2)", "alpha ~ uniform(1, 2)");
    place.write("m.dpm", model);
    let failed = place.dpm(&format!("{RUN} --epsilon 1 --init init.json"));
    assert_eq!(failed.code, 2, "{}", failed.err);
    assert!(failed.err.contains("charge is lifted"), "{}", failed.err);
    let show = place.show();
    assert_eq!(show["spent"], 0.0);
    assert_eq!(show["history"][0]["outcome"], "nothing-released");
    place.write("m.dpm", MODEL);
    place.succeeds(&format!("{RUN} --epsilon 1"));
}

#[test]
fn a_ledger_that_was_tampered_with_stops_everything() {
    let place = Place::with_ledger("3");
    let earlier = (place.read("l"), place.read("l.head"));
    place.succeeds(&format!("{RUN} --epsilon 1 --out one"));
    let middle = (place.read("l"), place.read("l.head"));
    place.succeeds(&format!("{RUN} --epsilon 1 --out two"));
    let (ledger, head) = (place.read("l"), place.read("l.head"));
    let text = ledger.clone();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        text.replacen(from, to, 1)
    };
    let cases = [
        (edited("\"epsilon\":3.0", "\"epsilon\":9.0"), "edited"),
        (edited("\"count\":802", "\"count\":801"), "edited"),
        (text.replace("\"of\":4", "\"of\":2"), "entry 5"),
        (
            lines[..4].concat(),
            "ends after entry 4, and 5 were written",
        ),
        (text[..text.len() - 1].to_owned(), "missing, or cut"),
        (text[..text.len() - 30].to_owned(), "entry 5"),
        (text[..text.len() / 2].to_owned(), "does not hold"),
        (
            [lines[0], lines[3], lines[4]].concat(),
            "removed, added or moved",
        ),
        (
            [lines[0], lines[3], lines[2], lines[1], lines[4]].concat(),
            "removed, added or moved",
        ),
        (text.clone() + lines[4], "removed, added or moved"),
        (text.clone() + "rubbish\n", "entry 6"),
        (String::new(), "first line"),
    ];
    for (wrong, word) in cases {
        place.write("l", &wrong);
        for command in [
            "ledger verify l",
            "ledger show l",
            "plan m.dpm --rows 300 --epsilon 0.1 --delta 1e-6 --ledger l",
            &format!("{RUN} --epsilon 0.1"),
        ] {
            place.fails(command, 1, &["does not hold", word]);
        }
    }
    // Put back with its head, it looks whole; only a run's report knows better.
    for (n, old, runs) in [
        (1, &earlier, ["one", "two"].as_slice()),
        (3, &middle, &["two"]),
    ] {
        place.write("l", &old.0);
        place.write("l.head", &old.1);
        let verified = place.succeeds("ledger verify l");
        says(&verified.out, &format!("{n} entries"));
        for run in runs {
            let words = ["entry", "missing or was changed", run];
            place.fails(&format!("ledger verify l --against {run}"), 1, &words);
        }
    }
    place.succeeds("ledger verify l --against one");
    place.write("l", &ledger);
    place.write("l.head", &head);
    place.succeeds("ledger verify l --against one --against two");
}

#[test]
fn a_lost_head_stops_everything_until_the_ledger_is_adopted() {
    let place = Place::with_ledger("3");
    place.succeeds(&format!("{RUN} --epsilon 1 --out one"));
    place.fails("ledger adopt l", 2, &["l.head` exists"]);
    fs::remove_file(place.file("l.head")).unwrap();
    place.fails(
        &format!("{RUN} --epsilon 1"),
        1,
        &["head", "is missing", "ledger adopt"],
    );
    place.fails("ledger verify l", 1, &["is missing"]);
    let before = place.read("l");
    place.succeeds("ledger adopt l");
    assert!(place.read("l").starts_with(&before));
    let verified = place.succeeds("ledger verify l --against one");
    says(&verified.out, "accepted without its head 1 times");
    place.succeeds(&format!("{RUN} --epsilon 1 --out two"));
    // A head without a ledger is a ledger that somebody removed.
    fs::remove_file(place.file("l")).unwrap();
    place.fails(
        "ledger create l --epsilon 3 --delta 1e-6",
        2,
        &["l.head` exists", "removed or renamed"],
    );
}

// Wrong here: two runs each find room, and both take it.
#[test]
fn of_runs_that_race_only_those_that_fit_are_granted() {
    for round in 0..3 {
        let place = Place::with_ledger("2");
        let runs: Vec<Child> = (0..6)
            .map(|i| {
                let arguments = format!("{RUN} --epsilon 1 --out run-{i} --quiet");
                let mut command = place.command(&arguments);
                command.stdout(Stdio::null()).stderr(Stdio::piped());
                spawn(&mut command)
            })
            .collect();
        let mut granted = 0;
        for (i, run) in runs.into_iter().enumerate() {
            let output = run.wait_with_output().unwrap();
            let published = place.file(&format!("run-{i}")).exists();
            let said = String::from_utf8(output.stderr).unwrap();
            match output.status.code() {
                Some(0) => {
                    assert!(published);
                    granted += 1;
                }
                Some(3) => assert!(!published && said.contains("short by"), "{said}"),
                other => panic!("round {round}: {other:?}: {said}"),
            }
        }
        let show = place.show();
        assert_eq!((granted, &show["runs"]["completed"]), (3, &Value::from(3)));
        assert!(show["spent"].as_f64().unwrap() <= 2.0);
        place.succeeds("ledger verify l");
    }
}

// Wrong here: of two runs that start at once on a budget for one, both run.
#[test]
fn of_two_runs_on_a_budget_for_one_one_runs() {
    for round in 0..6 {
        // The share that is set aside for lattices makes a run of epsilon 1 cost a hair more.
        let place = Place::with_ledger("1.000001");
        let runs = [0, 1].map(|i| {
            let arguments = format!("{RUN} --epsilon 1 --out run-{i} --quiet");
            let mut command = place.command(&arguments);
            spawn(command.stdout(Stdio::null()).stderr(Stdio::null()))
        });
        let mut codes = runs.map(|mut run| run.wait().unwrap().code());
        codes.sort();
        assert_eq!(codes, [Some(0), Some(3)], "round {round}");
        let published = [0, 1].map(|i| place.file(&format!("run-{i}")).exists());
        assert!(published[0] != published[1], "round {round}");
        assert_eq!(place.show()["runs"]["runs"], 1, "round {round}");
        place.succeeds("ledger verify l");
    }
}

#[test]
fn a_locked_ledger_is_waited_for() {
    let place = Place::with_ledger("2");
    let before = fs::read(place.file("l")).unwrap();
    // As a reader of the ledger holds it: the run reads it too, and comes to where it is charged.
    let file = fs::File::open(place.file("l")).unwrap();
    file.lock_shared().unwrap();
    let mut run = spawn(&mut place.command(&format!("{RUN} --epsilon 1 --quiet")));
    let state = place.file("m-run/unfinished/run.json");
    wait_until("the run's state", || {
        state.exists() || run.try_wait().unwrap().is_some()
    });
    assert_eq!(run.try_wait().unwrap(), None, "it must wait");
    assert_eq!(fs::read(place.file("l")).unwrap(), before);
    for chain in ["chain-1.even", "chain-2.even"] {
        let kept = fs::read(place.file(&format!("m-run/unfinished/{chain}"))).unwrap();
        assert!(kept.is_empty(), "it has begun without a charge");
    }
    file.unlock().unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(place.show()["runs"]["completed"], 1);
}

#[test]
fn threads_share_a_session_and_never_more_than_its_budget() {
    let place = Place::with_ledger("2");
    let (on_disk, other) = (place.session(), place.session());
    let budget = Budget::new(2.0, "1e-6".parse::<Real>().unwrap()).unwrap();
    let terms = Terms::new(budget, Relation::Substitute, "record", Accountant::Gaussian).unwrap();
    let in_memory = Session::in_memory(terms).unwrap();
    let events =
        [Event::parse("gaussian:clip=1,sigma=200,count=100", Relation::Substitute).unwrap()];
    let granted = |sessions: &[&Session]| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let session = sessions[i % sessions.len()];
                    let events = &events;
                    scope.spawn(move || {
                        let request = Request {
                            run: "a thread's",
                            events,
                            relation: Relation::Substitute,
                            unit: "record",
                            part: None,
                        };
                        let mut granted = 0;
                        for _ in 0..10 {
                            match session.reserve(&request) {
                                Ok(reservation) => {
                                    reservation.meter().charge(0).unwrap();
                                    let settled = reservation.stop().unwrap();
                                    assert_eq!(settled.outcome, Outcome::Stopped);
                                    granted += 1;
                                }
                                Err(LedgerError::Refused(quote)) => assert!(quote.short_by > 0.0),
                                Err(error) => panic!("{error}"),
                            }
                        }
                        granted
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum::<u64>()
        })
    };
    let (first, second) = (granted(&[&on_disk, &other]), granted(&[&in_memory]));
    let (shared, own) = (on_disk.statement().unwrap(), in_memory.statement().unwrap());
    assert_eq!((first, first), (second, shared.runs.stopped));
    assert_eq!(shared.spent, own.spent);
    assert!(
        shared.spent <= 2.0 && shared.spent > 1.8 && first > 5,
        "{shared:?}"
    );
}

/// The ledger's file is at its largest `room` bytes before it cannot be written any more.
/// Other files stay below that.
#[cfg(unix)]
fn fill(place: &Place, limit: u64, room: u64) {
    let session = place.session();
    let event = Event::parse("gaussian:clip=1,sigma=1e7", Relation::Substitute).unwrap();
    let reserve = |length: usize| {
        let request = Request {
            run: &"x".repeat(length),
            events: std::slice::from_ref(&event),
            relation: Relation::Substitute,
            unit: "record",
            part: None,
        };
        let before = place.read("l").len() as u64;
        drop(session.reserve(&request).unwrap());
        place.read("l").len() as u64 - before
    };
    let line = reserve(1) - 1;
    let left = limit - room - place.read("l").len() as u64;
    reserve((left - line) as usize);
    assert_eq!(place.read("l").len() as u64, limit - room);
}

// A disk that is full: here, a limit on the size of files, which stops the write of a
// line at any byte. Wrong here: a run without a charge, or a ledger that no longer reads.
#[cfg(unix)]
#[test]
fn a_full_disk_refuses_the_run_and_leaves_the_ledger_sound() {
    const BLOCKS: u64 = 64;
    let limit = 512 * BLOCKS;
    for room in [0, 1, 13, 14, 15, 200, 400] {
        let place = Place::with_ledger("2");
        fill(&place, limit, room);
        let before = place.read("l");
        let mut limited = place.limited(&format!("-f {BLOCKS}"), &format!("{RUN} --epsilon 1"));
        for tries in 1..=2 {
            let run = finish(start(&mut limited));
            assert_eq!(run.code, 1, "{room}: {}", run.err);
            assert!(run.err.contains("cannot write the ledger"), "{}", run.err);
            assert!(!place.file("m-run").exists());
            let after = place.read("l");
            assert!(
                after.starts_with(&before) && after.len() as u64 == limit,
                "{room}, {tries}"
            );
            let verified = place.succeeds("ledger verify l");
            assert_eq!(
                verified.out.contains("cut short while"),
                room > 0,
                "{}",
                verified.out
            );
        }
        let torn = place.read("l");
        place.succeeds(&format!("{RUN} --epsilon 1"));
        assert!(place.read("l").starts_with(&torn), "{room}");
        let verified = place.succeeds("ledger verify l --against m-run");
        assert_eq!(
            verified.out.contains("and are marked"),
            room > 0,
            "{}",
            verified.out
        );
        let runs = &place.show()["runs"];
        assert_eq!(
            (&runs["runs"], &runs["completed"]),
            (&Value::from(3), &Value::from(1))
        );
    }
}

// And one on which the head cannot be written.
#[cfg(unix)]
#[test]
fn a_head_that_cannot_be_written_refuses_the_run_before_it_is_charged() {
    let place = Place::with_ledger("2");
    fs::create_dir(place.file("l.head.new")).unwrap();
    place.fails(
        &format!("{RUN} --epsilon 1"),
        1,
        &["cannot write the ledger"],
    );
    fs::remove_dir(place.file("l.head.new")).unwrap();
    place.succeeds(&format!("{RUN} --epsilon 1"));
}

// A device that is full, as the system says it.
#[cfg(unix)]
#[test]
fn a_full_device_is_named() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let place = Place::with_ledger("2");
    std::os::unix::fs::symlink("/dev/full", place.file("l.head.new")).unwrap();
    place.fails(
        &format!("{RUN} --epsilon 1"),
        1,
        &["cannot write the ledger `", "No space left", "It is sound"],
    );
    assert_eq!(place.show()["runs"]["runs"], 0);
    fs::remove_file(place.file("l.head.new")).unwrap();
    place.succeeds(&format!("{RUN} --epsilon 1"));
    // Nor is the device itself taken for a ledger.
    let at_device = RUN.replace("--ledger l", "--ledger /dev/full --out other");
    let run = place.dpm(&format!("{at_device} --epsilon 1"));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("/dev/full"), "{}", run.err);
    assert!(!place.file("other").exists());
}

// A disk that fills up while the run is under way: the run was charged, so its draws may
// be had, and the ledger keeps it as one that never ended.
#[cfg(unix)]
#[test]
fn a_run_whose_end_cannot_be_noted_stays_charged() {
    let place = Place::with_ledger("2");
    place.succeeds(&format!("{RUN} --epsilon 1 --out one"));
    let (first, line) = {
        let text = place.read("l");
        let second = text.split_inclusive('\n').nth(1).expect("two lines");
        (text.len() as u64, second.len() as u64)
    };
    assert!(first + line < 512 * 256);
    fill(&place, 512 * 256, line + 20);
    let mut limited = place.limited("-f 256", &format!("{RUN} --epsilon 1"));
    let run = finish(start(&mut limited));
    assert_eq!(run.code, 0, "{}", run.err);
    says(&run.err, "could not note how the run ended");
    let verified = place.succeeds("ledger verify l --against m-run --against one");
    assert!(
        verified
            .out
            .contains("3 runs are under way, or were interrupted"),
        "{}",
        verified.out
    );
    assert!(verified.out.contains("cut short while"), "{}", verified.out);
}

// A disk with room for the ledger and none for the draws: the run stays charged, and can
// be gone on with. Wrong here: a user who believes that nothing was spent, or who has to
// pay again.
#[cfg(unix)]
#[test]
fn draws_that_cannot_be_written_stay_charged() {
    let place = Place::with_ledger("2");
    let long = format!("{RUN} --epsilon 1").replace("--num-samples 40", "--num-samples 400");
    let run = finish(start(&mut place.limited("-f 16", &long)));
    assert_eq!(run.code, 1, "{}", run.err);
    for words in [
        "cannot write the checkpoint",
        "is kept and stays charged",
        "--resume m-run",
    ] {
        assert!(run.err.contains(words), "no `{words}` in: {}", run.err);
    }
    assert!(!place.file("m-run/chain-1.csv").exists());
    let left = fs::read_dir(place.path()).unwrap();
    let left = left.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".dpm-run-")
    });
    assert_eq!(left.count(), 0, "half a run is left behind");
    let show = place.show();
    assert_eq!(show["runs"]["completed"], 0);
    assert!(show["spent"].as_f64().unwrap() > 0.999);
    place.succeeds("ledger verify l");
    place.succeeds("sample --resume m-run");
    let after = place.show();
    assert_eq!(after["runs"]["completed"], 1);
    assert_eq!(after["spent"], show["spent"]);
}

/// The state of a ledger after runs were killed on it.
struct Survey {
    runs: u64,
    completed: u64,
    spent: f64,
}

fn survey(place: &Place) -> Survey {
    place.succeeds("ledger verify l");
    let show = place.show();
    let runs = show["history"].as_array().unwrap();
    for run in runs {
        assert_eq!(run["events"], runs[0]["events"], "a whole schedule each");
    }
    // Oracle: the command that accounts for events without a ledger.
    let spent = show["spent"].as_f64().unwrap();
    if let Some(run) = runs.first() {
        let events: String = run["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| {
                let count = event["count"].as_u64().unwrap() * runs.len() as u64;
                format!(
                    " --event gaussian:clip={},sigma={},count={count}",
                    event["clip"], event["sigma"]
                )
            })
            .collect();
        let account = format!("account --relation substitute --delta 1e-6{events}");
        let account = json(&place.succeeds(&account).out);
        // What is set aside for lattices, 2^-20 of delta, is the difference.
        let ratio = spent / account["epsilon"].as_f64().unwrap();
        assert!((1.0..1.0 + 1e-6).contains(&ratio), "{ratio}");
    }
    let count = |kind: &str| show["runs"][kind].as_u64().unwrap();
    assert_eq!(
        count("stopped") + count("nothing_released") + count("adopted"),
        0
    );
    Survey {
        runs: count("runs"),
        completed: count("completed"),
        spent,
    }
}

/// A run that is killed while it writes its draws.
#[cfg(unix)]
fn in_the_middle(place: &Place, out: &str) -> Command {
    let long = RUN.replace("--num-samples 40", "--num-samples 400");
    place.killed_at(18, &format!("{long} --epsilon 0.3 --out {out} --quiet"))
}

/// Kills `dpm sample` at random moments; each run is in the ledger or has released
/// nothing, and what is published is in it.
fn kill_runs(times: u32, seed: u64) {
    let place = Place::with_ledger("10");
    place.succeeds(&format!("{RUN} --epsilon 0.3 --out whole"));
    let mut random = Lcg(seed);
    let (mut before, mut published, mut unfinished) = (survey(&place), 1, 0);
    for i in 0..times {
        let (moment, known) = (Moment::any(&mut random, LINES), entries(&place));
        let out = format!("run-{i}");
        let command = format!("{RUN} --epsilon 0.3 --out {out} --quiet --progress json");
        let mut run = Watched::start(&mut place.command(&command));
        run.wait_for(moment, &place, &out, known);
        run.kill();
        let after = survey(&place);
        let is_published = place.file(&format!("{out}/privacy.json")).exists();
        let (charged, completed) = (after.runs - before.runs, after.completed - before.completed);
        assert!(
            charged <= 1 && completed <= charged,
            "run {i} at {moment:?}"
        );
        assert!(
            u64::from(is_published) <= completed,
            "run {i} at {moment:?} was published without a charge"
        );
        assert!(after.spent >= before.spent);
        assert_eq!(after.spent > before.spent, charged == 1);
        published += u64::from(is_published);
        unfinished += charged - completed;
        before = after;
    }
    println!(
        "{times} kills: {} charged, {unfinished} of them never settled, {published} published",
        before.runs
    );
    let all: String = (0..times)
        .filter(|i| place.file(&format!("run-{i}/privacy.json")).exists())
        .map(|i| format!(" --against run-{i}"))
        .collect();
    place.succeeds(&format!("ledger verify l --against whole{all}"));
    // A program that is slow to die may have reached another moment than the one that was meant. One
    // kill is after the charge and before the end for certain.
    #[cfg(unix)]
    {
        let place = Place::with_ledger("10");
        let killed = finish(start(&mut in_the_middle(&place, "run")));
        assert_eq!(killed.code, -1, "{}", killed.err);
        let after = survey(&place);
        assert_eq!((after.runs, after.completed), (1, 0));
        assert!(after.spent > 0.29 && !place.file("run/privacy.json").exists());
    }
}

#[test]
fn runs_killed_at_random_moments_stay_charged() {
    kill_runs(20, 1);
}

#[test]
#[ignore = "200 killed runs: a minute"]
fn two_hundred_runs_killed_at_random_moments_stay_charged() {
    kill_runs(200, 2);
}

/// Kills pairs of runs that race for one ledger, each at a moment of its own.
fn kill_racing_runs(times: u32, seed: u64) {
    let place = Place::with_ledger("10");
    place.succeeds(&format!("{RUN} --epsilon 0.3 --out whole"));
    let mut random = Lcg(seed);
    let (mut before, mut both) = (survey(&place), 0);
    for i in 0..times {
        let out = |run: u32| format!("run-{}", 2 * i + run);
        let known = entries(&place);
        let runs = [0, 1].map(|run| {
            let out = out(run);
            let command = format!("{RUN} --epsilon 0.3 --out {out} --quiet --progress json");
            (out, Watched::start(&mut place.command(&command)))
        });
        let codes = runs.map(|(out, mut run)| {
            let moment = Moment::any(&mut random, LINES);
            run.wait_for(moment, &place, &out, known);
            run.kill().code
        });
        // Neither killed by us nor done: the other's end must be nobody else's failure.
        assert!(codes.iter().all(|code| matches!(code, -1 | 0)), "{codes:?}");
        let after = survey(&place);
        let published = [0, 1]
            .map(|run| place.file(&format!("{}/privacy.json", out(run))).exists())
            .map(u64::from);
        let (charged, completed) = (after.runs - before.runs, after.completed - before.completed);
        assert!(charged <= 2 && completed <= charged, "pair {i}");
        assert!(
            published[0] + published[1] <= completed,
            "pair {i}: published without a charge"
        );
        assert_eq!(after.spent > before.spent, charged > 0);
        both += u32::from(charged == 2);
        before = after;
    }
    println!(
        "{times} pairs: {} runs charged, {both} times both",
        before.runs
    );
    // Whichever moments came, of one pair both are charged for certain.
    #[cfg(unix)]
    {
        let place = Place::with_ledger("10");
        let runs = ["one", "two"].map(|out| start(&mut in_the_middle(&place, out)));
        assert_eq!(runs.map(|run| finish(run).code), [-1, -1]);
        let after = survey(&place);
        assert_eq!((after.runs, after.completed), (2, 0));
    }
}

#[test]
fn racing_runs_that_are_killed_stay_charged() {
    kill_racing_runs(8, 5);
}

#[test]
#[ignore = "100 pairs of killed runs: half a minute"]
fn a_hundred_pairs_of_racing_runs_that_are_killed_stay_charged() {
    kill_racing_runs(100, 6);
}

/// Says aloud when an iteration, and with it its releases, is over.
struct Aloud;

impl Observer for Aloud {
    fn iteration(&self, chain: usize, iteration: u64, _: &Draw) {
        println!("released {chain} {iteration}");
    }
}

// Not a test by itself: the process that the next one kills.
#[test]
#[ignore = "the child of another test"]
fn a_child_that_tells_of_its_releases() {
    let Ok(ledger) = std::env::var("DPM_TEST_LEDGER") else {
        return;
    };
    println!("begun");
    let model = Model::from_source(MODEL, &Constants::none()).unwrap();
    let columns = vec![
        ("y".into(), (0..300).map(|i| f64::from(i % 2)).collect()),
        (
            "x".into(),
            (0..300).map(|i| f64::from(i % 19 - 9) / 9.0).collect(),
        ),
    ];
    let rows = Rows::from_columns(&model.columns, columns, OnBadRows::Error).unwrap();
    let vault = Vault::new(Density::new(model), rows).unwrap();
    let plan = Plan::new(PlanRequest {
        chains: 2,
        iterations: Iterations::Fixed(40),
        ..PlanRequest::new(Real::from(0.5), "1e-6".parse().unwrap(), 2)
    })
    .unwrap();
    let session = Session::open(Path::new(&ledger)).unwrap();
    loop {
        let request = Request {
            run: "child",
            events: &plan.events,
            relation: plan.request.relation,
            unit: "record",
            part: None,
        };
        let reservation = session.reserve(&request).unwrap();
        let settings = PrivateSettings::new(20, 1, PrivateRng::from_os().unwrap());
        sample_privately(&vault, &plan, reservation.meter(), &settings, &Aloud).unwrap();
        println!("over");
        reservation.complete().unwrap();
    }
}

/// Kills a process that runs one analysis after another and tells of each release: as
/// many runs are charged as have released anything, or one more.
fn kill_children(times: u32, seed: u64) {
    /// What it says in two runs: that they began, of 2 x 40 iterations each, and that each is over.
    const TWO_RUNS: u64 = 1 + 2 * (80 + 1);
    let mut random = Lcg(seed);
    let (mut with_release, mut without) = (0, 0);
    let start = |place: &Place| {
        spawn(
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "ledger::a_child_that_tells_of_its_releases",
                    "--ignored",
                    "--nocapture",
                ])
                .env("DPM_TEST_LEDGER", place.file("l"))
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
        )
    };
    for i in 0..times {
        let place = Place::with_ledger("10");
        let known = entries(&place);
        let mut child = start(&place);
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (mut over, mut released) = (0u64, false);
        let mut note = |line: String| match line.split(' ').next() {
            Some("released") => {
                released = true;
                true
            }
            Some("over") => {
                (over, released) = (over + 1, false);
                true
            }
            // After the name of the test.
            _ => line.ends_with("begun"),
        };
        // About a charge, the first or the second, or after any line; the first kill is certain to be
        // after a release, and the second to be before any.
        let number = match i {
            0 => 2,
            1 => 1,
            _ if i.is_multiple_of(3) => [1, 82][(2.0 * random.uniform()) as usize],
            _ => 1 + (random.uniform() * TWO_RUNS as f64) as u64,
        };
        let mut read = 0;
        while read < number {
            let line = lines.next().expect("a child that goes on");
            read += u64::from(note(line));
        }
        if i > 1 && i.is_multiple_of(3) {
            // The charge, or the one after the end of the run before.
            let more = if number == 1 { 1 } else { 3 };
            wait_until("a charge", || entries(&place) >= known + more);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            note(line);
        }
        let seen = over + u64::from(released);
        let charged = survey(&place).runs;
        assert!(
            charged >= seen,
            "kill {i}: {seen} runs have released, {charged} are charged"
        );
        assert!(
            charged <= over + 1,
            "kill {i}: {charged} are charged after {over}"
        );
        if seen > 0 {
            with_release += 1;
        } else {
            without += 1;
        }
    }
    println!("{times} kills: {with_release} after a release, {without} before any");
    assert!(with_release > 0, "the first kill was after one");
}

#[test]
fn nothing_is_released_that_is_not_on_the_disk_as_charged() {
    kill_children(20, 3);
}

#[test]
#[ignore = "200 killed processes: a minute"]
fn of_two_hundred_killed_processes_none_released_without_a_charge() {
    kill_children(200, 4);
}

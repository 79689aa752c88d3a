//! One run by two doors: the program, and the library that others embed.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use dpm::{
    Accountant, Analysis, Constants, Model, PrivateData, Real, Relation, Session, Settings, Split,
    Terms, Vault,
};

use crate::harness::{Folder, json, while_none_starts};

const MODEL: &str = "\
constants { real<lower=0> width; }
record {
  int<lower=0, upper=1> y;
  real<lower=-1, upper=1> x;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, width);
  beta ~ normal(0, width);
  y ~ bernoulli_logit(alpha + beta * x);
}
";

fn place() -> Folder {
    let place = Folder::new();
    place.write("m.dpm", MODEL);
    place.write("m.constants.json", "{\"width\": 2}\n");
    let mut rows = String::from("y,x,id\n");
    for i in 0..400 {
        let x = f64::from(i * 37 % 200) / 100.0 - 1.0;
        let y = u8::from(x + f64::from(i % 7) / 4.0 > 0.75);
        rows += &format!("{y},{x},{}\n", i % 90);
    }
    place.write("d.csv", rows);
    place
}

fn vault(place: &Folder) -> Vault {
    vault_of(place, PrivateData::from_file(place.file("d.csv")))
}

fn vault_of(place: &Folder, data: PrivateData) -> Vault {
    let constants = Constants::from_file(place.file("m.constants.json")).expect("constants");
    let model = Model::from_file(place.file("m.dpm"), &constants).expect("a model");
    data.bind(&model).unwrap_or_else(|e| panic!("{e}"))
}

fn session() -> Session {
    let delta: Real = "1e-6".parse().expect("a number");
    Session::new(2.0, delta).expect("a session")
}

fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let named = entries.map(|entry| {
        let entry = entry.expect("an entry");
        let text = fs::read_to_string(entry.path()).expect("text");
        (entry.file_name().to_string_lossy().into_owned(), text)
    });
    named.collect()
}

/// Keys that the program alone writes: where it took things from.
const ORIGIN: [&str; 13] = [
    "model",
    "data",
    "constants",
    "metadata",
    "init",
    "columns",
    "on_bad_rows",
    "multiline_records",
    "max_memory",
    "spill_dir",
    "no_spill",
    "threads",
    "ledger",
];

/// A run, as the program is told of it and as the library is.
struct Doors {
    name: &'static str,
    flags: &'static str,
    analysis: Analysis,
    data: PrivateData,
    terms: (Relation, &'static str, Accountant),
}

// If it failed: what is tested of the program would say nothing of the library, or what one of
// them writes would be missing in the other.
#[test]
fn program_and_library_write_the_same_files() {
    let place = place();
    let usual = || {
        Analysis::new("m", 2.0)
            .chains(2)
            .seed(5)
            .insecure_noise_seed(7)
    };
    let short = |algorithm: &str| usual().algorithm(algorithm).iterations(20, 30);
    let data = || PrivateData::from_file(place.file("d.csv"));
    let given = Settings::new()
        .leapfrog_steps(3)
        .step_size(0.05)
        .fixed_steps(true);
    let split = Split::new("hold-out", 0.25).expect("a split");
    let records = (Relation::Substitute, "record", Accountant::Gaussian);
    for doors in [
        Doors {
            name: "default",
            flags: "",
            analysis: usual(),
            data: data(),
            terms: records,
        },
        Doors {
            name: "short",
            flags: "--num-warmup 10 --num-samples 40 --thin 3 --temperature 100",
            analysis: usual().iterations(10, 40).thin(3).temper_to(100.0),
            data: data(),
            terms: records,
        },
        Doors {
            name: "given",
            flags: "--algorithm dp-hmc --leapfrog-steps 3 --step-size 0.05 --fixed-steps --num-warmup 20 --num-samples 30",
            analysis: short("dp-hmc").settings(given),
            data: data(),
            terms: records,
        },
        Doors {
            name: "batches",
            flags: "--algorithm dp-sgld --batch-rate 0.25 --num-warmup 20 --num-samples 30",
            analysis: short("dp-sgld").settings(Settings::new().batch_rate(0.25)),
            data: data(),
            // Batches need an accountant that counts them.
            terms: (Relation::Substitute, "record", Accountant::Rdp),
        },
        Doors {
            name: "langevin",
            flags: "--algorithm dp-langevin --num-warmup 20 --num-samples 30",
            analysis: short("dp-langevin"),
            data: data(),
            terms: records,
        },
        Doors {
            name: "units",
            flags: "--algorithm dp-hmc --unit id --num-warmup 20 --num-samples 30",
            analysis: short("dp-hmc"),
            data: data().by_unit("id"),
            terms: (Relation::Substitute, "id", Accountant::Gaussian),
        },
        Doors {
            name: "any-number",
            flags: "--algorithm dp-hmc --relation add-remove --num-warmup 20 --num-samples 30",
            analysis: short("dp-hmc"),
            data: data(),
            terms: (Relation::AddRemove, "record", Accountant::Gaussian),
        },
        Doors {
            name: "a-part",
            flags: "--algorithm dp-hmc --hold-out 0.25 --num-warmup 20 --num-samples 30",
            analysis: short("dp-hmc"),
            data: data().portion(split.training()),
            terms: records,
        },
    ] {
        let Doors { name, flags, .. } = doors;
        place.succeeds(&format!(
            "sample m.dpm d.csv --epsilon 2 --delta 1e-6 --chains 2 --seed 5 --insecure-noise-seed 7 {flags} --out {name}-by-program"
        ));
        let delta: Real = "1e-6".parse().expect("a number");
        let budget = dpm::Budget::new(2.0, delta).expect("a budget");
        let (relation, unit, accountant) = doors.terms;
        let terms = Terms::new(budget, relation, unit, accountant).expect("terms");
        let session = Session::in_memory(terms).expect("a session");
        let vault = vault_of(&place, doors.data);
        let fit = doors.analysis.sample(&vault, &session);
        let fit = fit.unwrap_or_else(|e| panic!("{name}: {e}"));
        let saved = fit.save(place.file(&format!("{name}-by-library")));
        let mut ours = files(&saved.expect("a directory"));
        let mut theirs = files(&place.file(&format!("{name}-by-program")));
        // The page shows the settings, and the hashes of the files.
        assert!(ours.remove("report.html").is_some() && theirs.remove("report.html").is_some());
        let [mut a, mut b] = [&mut ours, &mut theirs]
            .map(|files| json(&files.remove("config.json").expect("settings")));
        for key in ORIGIN {
            let known = b.as_object_mut().expect("an object").remove(key);
            assert!(known.is_some(), "{name}: {key}");
            a.as_object_mut().expect("an object").remove(key);
        }
        assert_eq!(a, b, "{name}");
        assert_eq!(ours, theirs, "{name}");
        assert!(ours.contains_key("model.dpm") && ours.contains_key("chain-2.csv"));
    }
}

// If it failed: `dpm score` would judge a run by the records that it learnt from.
#[test]
fn a_run_on_what_was_held_out_does_not_claim_to_have_held_it_out() {
    let place = place();
    let split = Split::new("hold-out", 0.25).expect("a split");
    for (portion, held_out) in [
        (split.training(), json("0.25")),
        (split.rest(), json("null")),
    ] {
        let data = PrivateData::from_file(place.file("d.csv")).portion(portion);
        let analysis = Analysis::new("m", 2.0)
            .algorithm("dp-hmc")
            .iterations(10, 10);
        let fit = analysis.sample(&vault_of(&place, data), &session());
        let name = format!("run-{held_out}");
        let saved = fit.expect("a fit").save(place.file(&name));
        saved.expect("a directory");
        assert_eq!(
            place.json(&format!("{name}/config.json"))["hold_out"],
            held_out
        );
    }
}

// If it failed: a run of an embedder would be lost when it is interrupted, or be charged twice.
#[test]
fn a_run_of_the_library_is_resumed_by_it_on_its_charge() {
    let place = place();
    let vault = vault(&place);
    place.succeeds("ledger create l --epsilon 4 --delta 1e-6");
    let open = || Session::open(place.file("l")).expect("a ledger");
    let analysis = Analysis::new("m", 2.0)
        .algorithm("dp-hmc")
        .chains(2)
        .iterations(20, 200);
    let go_on = |_: dpm::Progress<'_>| ControlFlow::Continue(());
    let run = place.file("run");
    assert!(analysis.sample_at(&run, &vault, &session(), go_on).is_err());
    let stopped = analysis.sample_at(&run, &vault, &open(), |progress| {
        if progress.iteration < 60 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert!(stopped.expect("a part of a fit").is_interrupted());
    assert!(place.file("run/unfinished").exists());
    let spent = open().statement().expect("a statement").spent;
    // Somebody else's model, and somebody else's ledger.
    place.succeeds("ledger create other --epsilon 4 --delta 1e-6");
    let other = Session::open(place.file("other")).expect("a ledger");
    assert!(Analysis::resume(&run, &vault, &other, go_on).is_err());
    // A program that another test starts at this moment would hold the locks of the part before.
    let fit = while_none_starts(|| Analysis::resume(&run, &vault, &open(), go_on));
    let fit = fit.unwrap_or_else(|e| panic!("{e}"));
    assert!(!fit.is_interrupted());
    assert_eq!(fit.draws().chains()[0].len(), 200);
    assert!(!place.file("run/unfinished").exists() && place.file("run/report.html").exists());
    assert_eq!(open().statement().expect("a statement").spent, spent);
    place.succeeds("ledger verify l --against run");
    // What is finished is not begun again.
    assert!(Analysis::resume(&run, &vault, &open(), go_on).is_err());
}

//! How many rows it takes: intervals of the default's, by those without privacy.

use std::error::Error;

use dpm::Relation;

use crate::experiment::{Course, Experiment};
use crate::subjects::LOGISTIC;
use crate::table::{Table, number};
use crate::trial::{DELTA, Trial};

pub const ROWS: Experiment = Experiment {
    name: "rows",
    of: "how many rows it takes: widths of the default's intervals by those without privacy",
    time: ["20 minutes", "4 minutes"],
    settings: || {
        vec![format!(
            "{}, 5 parameters, delta {DELTA}, epsilon {EPSILONS:?}, records {RECORDS:?}, substitution and zero-out, repeats {REPEATS}",
            LOGISTIC.name
        )]
    },
    run: make,
};

const EPSILONS: [f64; 4] = [0.3, 1.0, 3.0, 10.0];
const RECORDS: [usize; 5] = [500, 2000, 5000, 20_000, 100_000];
const RELATIONS: [Relation; 2] = [Relation::Substitute, Relation::ZeroOut];
const REPEATS: u64 = 10;
/// Draws without privacy.
const REFERENCE: u64 = 1000;

const BY: [&str; 3] = ["n", "relation", "epsilon"];
const COLUMNS: [&str; 7] = [
    BY[0],
    BY[1],
    BY[2],
    "repeat",
    "width_ratio",
    "flagged",
    "seconds",
];

fn make(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(course, ROWS.name, &COLUMNS)?;
    let epsilons = match course.epsilons.as_slice() {
        [] => course.form.of(&EPSILONS[..], &EPSILONS[..], &EPSILONS[3..]),
        given => given,
    };
    let records = course.form.of(&RECORDS[..], &RECORDS[..], &RECORDS[..1]);
    for repeat in 1..=course.repeats(REPEATS, 2) {
        for &n in records {
            let mut missing = Vec::new();
            for relation in RELATIONS {
                for &epsilon in epsilons {
                    let key = [
                        n.to_string(),
                        relation.name().to_owned(),
                        epsilon.to_string(),
                        repeat.to_string(),
                    ]
                    .to_vec();
                    if !table.has(&key)? {
                        missing.push((relation, epsilon, key));
                    }
                }
            }
            if missing.is_empty() {
                continue;
            }
            let draws = course.form.of(REFERENCE, REFERENCE, 20);
            let trial = Trial::new(&LOGISTIC, n, repeat, draws)?;
            for (relation, epsilon, key) in missing {
                let run = trial.run(epsilon, relation, repeat, course.form)?;
                let width = dpm::diagnostics::quantile(&[&run.width_ratios], 0.5);
                let flagged = u8::from(!run.problems().is_empty());
                let row = [
                    format!("{width:.3}"),
                    flagged.to_string(),
                    format!("{:.2}", run.seconds),
                ];
                table.add([key, row.to_vec()].concat())?;
            }
        }
    }
    print(&table)
}

/// Medians over repeats, a line for each number of records.
fn print(table: &Table) -> Result<(), Box<dyn Error>> {
    let groups = table.groups(&BY, "width_ratio")?;
    let mut columns: Vec<[&str; 2]> = Vec::new();
    let mut records: Vec<&str> = Vec::new();
    for group in &groups {
        let [n, relation, epsilon] = [0, 1, 2].map(|k| group.key[k].as_str());
        if !columns.contains(&[relation, epsilon]) {
            columns.push([relation, epsilon]);
        }
        if !records.contains(&n) {
            records.push(n);
        }
    }
    let heads = columns
        .iter()
        .map(|[relation, epsilon]| format!("{relation}, {epsilon}"));
    println!("| rows | {} |", heads.collect::<Vec<_>>().join(" | "));
    println!("|{}", "---|".repeat(1 + columns.len()));
    for n in records {
        let cell = |column: &[&str; 2]| {
            let mut groups = groups.iter();
            let group = groups.find(|g| g.key[0] == n && g.key[1..] == *column);
            group.map_or(String::new(), |g| number(g.quantile(0.5)))
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        println!("| {n} | {} |", cells.join(" | "));
    }
    Ok(())
}

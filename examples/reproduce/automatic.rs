//! `dpm sample` with epsilon and delta alone, against samplers that were tuned by hand on the
//! posterior.

use std::error::Error;

use dpm::Plan;
use dpm::diagnostics::compare;

use crate::chain::{Run, run};
use crate::chart::{Figure, Panel, Series};
use crate::comparison::{COMPARED, forecast, questions, thinned};
use crate::contests::{self, hmc, penalty};
use crate::experiment::{Course, Experiment, Form};
use crate::problem::{self, Posterior, Problem, Start};
use crate::setting::{Entry, Sampler, Terms, Trajectories};
use crate::survey::{self, Survey};
use crate::table::Table;

pub const AUTOMATIC: Experiment = Experiment {
    name: "automatic",
    of: "epsilon and delta alone against settings chosen by hand, on five posteriors",
    time: ["2 hours", "2 minutes"],
    settings,
    run: make,
};

const EPSILONS: [f64; 3] = [1.0, 3.0, 10.0];
const DELTA: f64 = 1e-6;
/// They share the budget.
const CHAINS: u64 = 4;
const REPEATS: u64 = 5;
/// The posteriors of a quick run.
const QUICK: [&str; 2] = ["banana", "wells"];
/// After the label of a sampler whose chains do not begin about the truth.
const NOT_TOLD: &str = " not told where";

/// A posterior, and who competes with the default there.
struct Case {
    subject: Subject,
    tuned: [Entry; 2],
}

enum Subject {
    Made(Posterior),
    Survey(Survey),
}

/// The papers' settings on the papers' posteriors. The others are ours, chosen on the posterior
/// itself by the papers' rules: bounds that clip few records there, noise that leaves tens to
/// hundreds of iterations at epsilon 3, steps, in posterior sds, that are accepted as often as
/// the papers' are. All of that is a look at the private data that nobody pays for.
const CASES: [Case; 5] = [
    Case {
        subject: Subject::Made(problem::PAPER_BANANA),
        tuned: contests::ON_THE_BANANA,
    },
    Case {
        subject: Subject::Made(problem::PAPER_GAUSS),
        tuned: contests::ON_THE_GAUSS,
    },
    Case {
        subject: Subject::Survey(survey::ADULT),
        tuned: [
            hmc([0.14, 0.2], 5, 0.025, [1.5, 2.3], Trajectories::Default),
            penalty(0.17, 0.1, 2.5),
        ],
    },
    Case {
        subject: Subject::Survey(survey::WELLS),
        tuned: [
            hmc([0.56, 0.82], 5, 0.027, [1.0, 1.6], Trajectories::Default),
            penalty(0.69, 0.065, 2.0),
        ],
    },
    Case {
        subject: Subject::Survey(survey::WAGES),
        tuned: [
            hmc([0.18, 0.27], 5, 0.014, [3.0, 10.6], Trajectories::Default),
            penalty(0.14, 0.1, 5.0),
        ],
    },
];

impl Case {
    fn name(&self) -> &'static str {
        match &self.subject {
            Subject::Made(posterior) => posterior.name,
            Subject::Survey(survey) => survey.name,
        }
    }

    fn problem(&self, most_records: usize) -> Result<Problem, Box<dyn Error>> {
        match &self.subject {
            Subject::Made(posterior) => posterior.problem(most_records),
            Subject::Survey(survey) => survey.problem(most_records),
        }
    }

    /// Label, sampler and start of all that are compared.
    fn competitors(&self) -> Vec<(String, Sampler, Start)> {
        let mut all: Vec<(String, Sampler, Start)> = Vec::new();
        for entry in &self.tuned {
            all.push((entry.label.to_owned(), entry.sampler, Start::Truth));
            let label = format!("{}{NOT_TOLD}", entry.label);
            all.push((label, entry.sampler, Start::Anywhere));
        }
        // Looks for the posterior itself.
        let own = contests::AUTOMATIC;
        all.push((own.label.to_owned(), own.sampler, Start::Anywhere));
        all.push(("limit".to_owned(), Sampler::Limit, Start::Truth));
        all
    }
}

const BY: [&str; 3] = ["posterior", "sampler", "epsilon"];
const COLUMNS: [&str; 14] = [
    BY[0],
    BY[1],
    BY[2],
    "repeat",
    "iterations_per_chain",
    "epsilon_spent",
    "mmd",
    "mmd_standardised",
    "mean_error_sds",
    "acceptance",
    "ratios_clipped",
    "gradients_clipped",
    "r_hat",
    "seconds",
];

fn settings() -> Vec<String> {
    let mut lines = vec![format!(
        "delta {DELTA}, epsilon {EPSILONS:?}, chains {CHAINS}, repeats {REPEATS}; steps of the last three posteriors in posterior sds"
    )];
    for case in &CASES {
        let of_entry = |e: &Entry| format!("{} {}: {}", case.name(), e.label, e.sampler.describe());
        lines.extend(case.tuned.iter().map(of_entry));
    }
    lines
}

/// A run that is to be made.
struct Planned<'a> {
    key: Vec<String>,
    repeat: u64,
    problem: &'a Problem,
    sampler: Sampler,
    start: Start,
    plan: Plan,
}

fn make(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(course, AUTOMATIC.name, &COLUMNS)?;
    let is_wanted = |case: &&Case| {
        let quick = course.posteriors.is_empty() && course.form == Form::Quick;
        course.is_on(case.name()) && (!quick || QUICK.contains(&case.name()))
    };
    let cases: Vec<&Case> = CASES.iter().filter(is_wanted).collect();
    let problems: Vec<Problem> = cases
        .iter()
        .map(|case| case.problem(course.form.most_records()))
        .collect::<Result<_, _>>()?;
    let planned = planned(course, &table, &cases, &problems)?;
    if planned.is_empty() && table.rows()?.is_empty() {
        let names: Vec<&str> = CASES.iter().map(Case::name).collect();
        let labels = CASES[0].competitors();
        let labels: Vec<&str> = labels.iter().map(|(label, ..)| label.as_str()).collect();
        return Err(format!(
            "nothing is asked for: posteriors are {}; samplers are {}",
            names.join(", "),
            labels.join(", ")
        )
        .into());
    }
    let seconds = problems.iter().map(|problem| {
        let own = planned.iter().filter(|p| std::ptr::eq(p.problem, problem));
        own.map(|p| questions(&p.plan)).sum::<f64>() * problem.seconds_of_a_question()
    });
    forecast(planned.len(), seconds.sum());
    for Planned {
        mut key,
        repeat,
        problem,
        sampler,
        start,
        plan,
    } in planned
    {
        let run = run(problem, &sampler, &plan, start, repeat)?;
        key.extend(outcome(problem, &plan, &run, repeat)?);
        table.add(key)?;
    }
    table.print(&BY, &COLUMNS[4..])?;
    figure(&table)?.write(&course.out.join(format!("{}.svg", AUTOMATIC.name)))
}

/// Plans the runs that are not in the table yet, one whole repeat after the other.
fn planned<'a>(
    course: &Course,
    table: &Table,
    cases: &[&Case],
    problems: &'a [Problem],
) -> Result<Vec<Planned<'a>>, Box<dyn Error>> {
    let epsilons = match course.epsilons.as_slice() {
        [] => course
            .form
            .of(&EPSILONS[..], &EPSILONS[1..2], &EPSILONS[2..]),
        given => given,
    };
    let mut planned = Vec::new();
    for repeat in 1..=course.repeats(REPEATS, 1) {
        for (case, problem) in cases.iter().zip(problems) {
            for &epsilon in epsilons {
                for (label, sampler, start) in case.competitors() {
                    let key = vec![
                        case.name().to_owned(),
                        label.clone(),
                        epsilon.to_string(),
                        repeat.to_string(),
                    ];
                    if !course.wants(&label) || table.has(&key)? {
                        continue;
                    }
                    let plan = sampler.plan(Terms {
                        problem,
                        epsilon,
                        delta: DELTA,
                        chains: CHAINS,
                        most_iterations: course.form.of(200_000, 200_000, 4),
                    })?;
                    planned.push(Planned {
                        key,
                        repeat,
                        problem,
                        sampler,
                        start,
                        plan,
                    });
                }
            }
        }
    }
    Ok(planned)
}

fn outcome(
    problem: &Problem,
    plan: &Plan,
    run: &Run,
    repeat: u64,
) -> Result<Vec<String>, Box<dyn Error>> {
    let names = problem.vault.density().output_names();
    let names: Vec<String> = names.map(str::to_owned).collect();
    let pooled = thinned(&run.kept.concat(), COMPARED);
    let distance = compare(&names, &pooled, &problem.reference, repeat)?;
    let errors = distance.parameters.iter().map(|p| p.mean_error.abs());
    let own = [
        plan.iterations_per_chain.to_string(),
        format!("{:.4}", plan.epsilon()),
        format!("{:.4}", distance.mmd),
        format!("{:.4}", distance.mmd_standardised),
        format!("{:.4}", errors.sum::<f64>() / names.len() as f64),
    ];
    Ok([&own[..], &run.columns()].concat())
}

/// A panel for each posterior: MMD by epsilon.
fn figure(table: &Table) -> Result<Figure, Box<dyn Error>> {
    let mut panels: Vec<Panel> = Vec::new();
    for case in &CASES {
        let mut points = Vec::new();
        for group in table.groups(&BY, "mmd")? {
            if group.key[0] == case.name() {
                points.push((group.key[1].clone(), group.point(group.key[2].parse()?)));
            }
        }
        if !points.is_empty() {
            panels.push(Panel {
                title: case.name().to_owned(),
                x: "epsilon",
                y: "MMD, median and quartiles",
                log_x: true,
                series: Series::curves(points),
                ..Panel::default()
            });
        }
    }
    Ok(Figure {
        title: "Epsilon and delta alone against settings chosen by hand".to_owned(),
        panels,
    })
}

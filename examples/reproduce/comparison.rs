//! Samplers against one another: distance from the exact posterior by budget.

use std::error::Error;

use dpm::Plan;
use dpm::diagnostics::mmd;
use dpm::testing::privacy::Subsampling;
use dpm::testing::sampler::PlannedLine;

use crate::chain::{Run, run};
use crate::chart::{Figure, Mark, PUBLISHED, Panel, Series};
use crate::experiment::{Course, Form};
use crate::problem::{Posterior, Problem, Shape, Start};
use crate::setting::{Entry, Sampler, Terms};
use crate::table::{Table, number};

/// Points of a sample that are compared with the reference: more say hardly more, and the
/// time grows as their square.
pub const COMPARED: usize = 5000;
/// Points of a picture.
const SHOWN: usize = 400;

/// Samplers on one posterior.
pub struct Contest {
    pub name: &'static str,
    pub posterior: Posterior,
    pub epsilons: &'static [f64],
    pub quick_epsilons: &'static [f64],
    /// Chains that share the budget.
    pub chains: u64,
    pub repeats: u64,
    pub quick_repeats: u64,
    /// The most iterations of a chain; of a full run and of a quick one.
    pub most_iterations: [u64; 2],
    pub entries: &'static [Entry],
    /// Published medians by sampler, of each of `epsilons`: of MMD, or of the distance of
    /// means where the posterior is the circle.
    pub published: &'static [(&'static str, &'static [f64])],
}

const COLUMNS: [&str; 12] = [
    "sampler",
    "epsilon",
    "repeat",
    "iterations_per_chain",
    "epsilon_spent",
    "mmd",
    "mean_error",
    "acceptance",
    "ratios_clipped",
    "gradients_clipped",
    "r_hat",
    "seconds",
];

impl Contest {
    pub fn settings(&self) -> Vec<String> {
        let p = &self.posterior;
        let tempered = p
            .tempered_to
            .map_or(String::new(), |n0| format!(", n0 {n0}"));
        let delta = number(0.1 / p.n as f64);
        let mut lines = vec![format!(
            "d {}, n {}{tempered}, delta {delta}, epsilon {:?}, chains {}, repeats {}",
            p.shape.dimension(),
            p.n,
            self.epsilons,
            self.chains,
            self.repeats
        )];
        let entry = |e: &Entry| format!("{}: {}", e.label, e.sampler.describe());
        lines.extend(self.entries.iter().map(entry));
        lines
    }

    pub fn run(&self, course: &Course) -> Result<(), Box<dyn Error>> {
        let problem = self.posterior.problem(course.form.most_records())?;
        let table = Table::open(course, self.name, &COLUMNS)?;
        let draws = Table::open(
            course,
            &format!("{}-draws", self.name),
            &["sampler", "epsilon", "x", "y"],
        )?;
        let last = &self.epsilons[self.epsilons.len() - 1..];
        let epsilons = match course.epsilons.as_slice() {
            [] => course.form.of(self.epsilons, self.quick_epsilons, last),
            given => given,
        };
        if !self.entries.iter().any(|e| course.wants(e.label)) {
            let labels: Vec<&str> = self.entries.iter().map(|e| e.label).collect();
            let asked = course.samplers.join(", ");
            return Err(format!("no sampler is {asked}; there are {}", labels.join(", ")).into());
        }
        let mut plans: Vec<(&Entry, f64, Plan)> = Vec::new();
        for &epsilon in epsilons {
            for entry in self.entries.iter().filter(|e| course.wants(e.label)) {
                let plan = entry.sampler.plan(Terms {
                    problem: &problem,
                    epsilon,
                    delta: 0.1 / problem.n as f64,
                    chains: self.chains,
                    most_iterations: course.form.of(
                        self.most_iterations[0],
                        self.most_iterations[1],
                        4,
                    ),
                })?;
                plans.push((entry, epsilon, plan));
            }
        }
        let pictured = epsilons.iter().copied().fold(0.0, f64::max);
        let repeats = course.repeats(self.repeats, self.quick_repeats);
        let mut missing: Vec<(u64, &(&Entry, f64, Plan))> = Vec::new();
        for repeat in 1..=repeats {
            for planned in &plans {
                if self.leaves_out(course, planned, repeat, pictured) {
                    continue;
                }
                if !table.has(&key(planned.0, planned.1, repeat))? {
                    missing.push((repeat, planned));
                }
            }
        }
        let asked: f64 = missing.iter().map(|(_, (.., plan))| questions(plan)).sum();
        forecast(missing.len(), asked * problem.seconds_of_a_question());
        for (repeat, (entry, epsilon, plan)) in missing {
            let run = run(&problem, &entry.sampler, plan, Start::Truth, repeat)?;
            if repeat == 1 && *epsilon == pictured {
                let pooled = thinned(&run.kept.concat(), SHOWN);
                draws.add_quietly(pooled.iter().map(|p| {
                    let place = [p[0], p[1]].map(|x| format!("{x:.6}"));
                    [
                        vec![entry.label.into(), epsilon.to_string()],
                        place.to_vec(),
                    ]
                    .concat()
                }))?;
            }
            let mut row = key(entry, *epsilon, repeat);
            row.extend(outcome(&problem, plan, &run, repeat));
            table.add(row)?;
        }
        table.print(
            &["sampler", "epsilon"],
            &[
                "iterations_per_chain",
                "mmd",
                "mean_error",
                "acceptance",
                "ratios_clipped",
                "gradients_clipped",
                "r_hat",
                "seconds",
            ],
        )?;
        self.figures(course, &table, &draws, &problem)
    }

    fn judged_by(&self) -> &'static str {
        match self.posterior.shape {
            Shape::Circle { .. } => "mean_error",
            _ => "mmd",
        }
    }

    fn published(&self) -> impl Iterator<Item = Series> {
        self.published.iter().map(|(sampler, medians)| Series {
            label: format!("{sampler}{PUBLISHED}"),
            mark: Mark::Dashed,
            ..Series::line(
                "",
                self.epsilons.iter().copied().zip(medians.iter().copied()),
            )
        })
    }

    /// A quick run has the automatic sampler, whose runs are long, once; on the larger models
    /// at the last budget only, and on the largest, where it takes minutes, not at all.
    fn leaves_out(
        &self,
        course: &Course,
        (entry, epsilon, _): &(&Entry, f64, Plan),
        repeat: u64,
        last: f64,
    ) -> bool {
        let numbers = self.posterior.n * self.posterior.shape.dimension();
        let is_extra = numbers > 3_000_000 || numbers > 500_000 && *epsilon != last;
        matches!(entry.sampler, Sampler::Automatic)
            && course.form == Form::Quick
            && (is_extra || repeat > 1)
    }

    fn figures(
        &self,
        course: &Course,
        table: &Table,
        draws: &Table,
        problem: &Problem,
    ) -> Result<(), Box<dyn Error>> {
        let panel = |column: &str, y: &'static str| -> Result<Panel, Box<dyn Error>> {
            let mut series = curves(table, column)?;
            if column == self.judged_by() {
                series.extend(self.published());
            }
            Ok(Panel {
                x: "epsilon",
                y,
                log_y: column == "mean_error",
                series,
                ..Panel::default()
            })
        };
        let mut panels = vec![
            panel("mmd", "MMD, median and quartiles")?,
            panel("mean_error", "distance of means, the same")?,
            panel("ratios_clipped", "log-ratios clipped")?,
            panel("gradients_clipped", "gradients clipped")?,
        ];
        panels.retain(|p| {
            p.series
                .iter()
                .any(|s| s.points.iter().any(|p| p.y.is_finite()))
        });
        Figure {
            title: self.name.into(),
            panels,
        }
        .write(&course.out.join(format!("{}.svg", self.name)))?;
        let mut groups: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in draws.rows()? {
            let label = format!("{} at {}", row[0], row[1]);
            let point = (row[2].parse()?, row[3].parse()?);
            match groups.iter_mut().find(|(l, _)| *l == label) {
                Some((_, points)) => points.push(point),
                None => groups.push((label, vec![point])),
            }
        }
        let exact = || problem.reference.iter().take(SHOWN).map(|p| (p[0], p[1]));
        let panels = groups.iter().map(|(label, points)| Panel {
            title: label.clone(),
            x: "theta[1]",
            y: "theta[2]",
            series: vec![
                Series::dots("exact posterior", exact()),
                Series::dots("draws", points.iter().copied()),
            ],
            ..Panel::default()
        });
        Figure {
            title: format!("{}: draws of the first repeat", self.name),
            panels: panels.collect(),
        }
        .write(&course.out.join(format!("{}-draws.svg", self.name)))
    }
}

fn key(entry: &Entry, epsilon: f64, repeat: u64) -> Vec<String> {
    vec![entry.label.into(), epsilon.to_string(), repeat.to_string()]
}

fn outcome(problem: &Problem, plan: &Plan, run: &Run, repeat: u64) -> Vec<String> {
    let pooled = run.kept.concat();
    let error = distance_of_means(&pooled, problem);
    let distance = mmd(&thinned(&pooled, COMPARED), &problem.reference, repeat);
    let own = [
        plan.iterations_per_chain.to_string(),
        format!("{:.4}", plan.epsilon()),
        format!("{distance:.4}"),
        format!("{error:.5}"),
    ];
    [&own[..], &run.columns()].concat()
}

/// Of the mean of these points from that of the posterior.
pub fn distance_of_means(points: &[Vec<f64>], problem: &Problem) -> f64 {
    let mean = |j: usize| points.iter().map(|p| p[j]).sum::<f64>() / points.len() as f64;
    let squares = (0..problem.mean.len()).map(|j| (mean(j) - problem.mean[j]).powi(2));
    squares.sum::<f64>().sqrt()
}

/// At most about so many of the points, evenly spread.
pub fn thinned(points: &[Vec<f64>], most: usize) -> Vec<Vec<f64>> {
    let stride = points.len().div_ceil(most).max(1);
    points.iter().step_by(stride).cloned().collect()
}

/// Questions about all records that a plan asks, or what takes as long.
pub fn questions(plan: &Plan) -> f64 {
    let all = |line: &&PlannedLine| line.line.subsampling == Subsampling::All;
    let counts = |whole: bool| -> u64 {
        let lines = plan.lines.iter().filter(|line| all(line) == whole);
        lines.map(|line| line.line.count).sum()
    };
    // To draw a batch takes about as long as a sixth of a gradient.
    counts(true) as f64 + counts(false) as f64 / 6.0
}

/// Says how long runs will take.
pub fn forecast(runs: usize, seconds: f64) {
    println!(
        "{runs} runs, which will take about {:.1} minutes.",
        seconds / 60.0
    );
}

/// A curve with quartiles for each sampler.
fn curves(table: &Table, column: &str) -> Result<Vec<Series>, Box<dyn Error>> {
    let mut points = Vec::new();
    for group in table.groups(&["sampler", "epsilon"], column)? {
        points.push((group.key[0].clone(), group.point(group.key[1].parse()?)));
    }
    Ok(Series::curves(points))
}

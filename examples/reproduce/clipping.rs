//! The effect of clipping alone: random walks and HMC on clipped likelihoods, without noise.

use std::error::Error;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use dpm::diagnostics::mmd;
use dpm::testing::privacy::{
    GradientScale, NotPrivate, PenaltyPlan, PenaltyScale, PrivateRng, Subsampling,
};
use dpm::testing::sampler::{Kind, Metric, Oracle, PlanRequest, Ratio, lookup};
use dpm::{Real, SampleError, Settings};

use crate::chain::{Shares, Watch, in_threads};
use crate::chart::{Figure, Panel, Series};
use crate::comparison::{distance_of_means, thinned};
use crate::experiment::{Course, Experiment};
use crate::problem::{self, Posterior, Problem, Start};
use crate::table::Table;

pub const PAPER: Experiment = Experiment {
    name: "paper-clipping",
    of: "the paper's figure 3: MMD by clip bound, without noise",
    time: ["40 hours", "2 minutes"],
    settings: || PAPER_CASES.iter().map(Case::describe).collect(),
    run: |course| run(course, "paper-clipping", PAPER_CASES, 10),
};

pub const THESIS: Experiment = Experiment {
    name: "thesis-clipping",
    of: "Räisä's thesis, figure 6.2: MMD by clip bound, without noise, in 2 and 10 dimensions",
    time: ["4 hours", "2 minutes"],
    settings: || THESIS_CASES.iter().map(Case::describe).collect(),
    run: |course| run(course, "thesis-clipping", THESIS_CASES, 20),
};

/// A sampler on a posterior, with bounds on log-ratios.
struct Case {
    posterior: Posterior,
    /// Records, where fewer than the posterior has.
    most_records: usize,
    sampler: &'static str,
    bounds: &'static [f64],
    quick_bounds: &'static [f64],
    chains: usize,
    iterations: u64,
    step: f64,
    leapfrog: u64,
    /// M^-1, or the squares of proposals' sds in units of the step; the last holds on.
    variances: &'static [f64],
    /// b_g; the papers clip no gradients here, and this clips none.
    clip_gradient: f64,
    /// Of starting points, where not the posterior's own.
    start_sd: Option<f64>,
    /// The part of each chain that a quick run makes is one over this.
    quick_part: u64,
}

const BANANA_BOUNDS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0, 10.0];
const GAUSS_BOUNDS: &[f64] = &[0.1, 0.2, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0];
const THESIS_BOUNDS: &[f64] = &[0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1000.0];

const HMC_ON_BANANA: Case = Case {
    posterior: problem::PUBLISHED_BANANA,
    most_records: usize::MAX,
    sampler: "clipped-hmc",
    bounds: BANANA_BOUNDS,
    quick_bounds: &[0.05, 0.5],
    chains: 4,
    iterations: 1000,
    step: 0.01,
    leapfrog: 100,
    variances: &[1.0],
    clip_gradient: 10.0,
    start_sd: None,
    quick_part: 40,
};
const HMC_ON_GAUSS: Case = Case {
    posterior: problem::PUBLISHED_GAUSS,
    bounds: GAUSS_BOUNDS,
    quick_bounds: &[10.0, 50.0],
    step: 5e-4,
    leapfrog: 12,
    clip_gradient: 1e4,
    quick_part: 10,
    ..HMC_ON_BANANA
};
const PAPER_CASES: &[Case] = &[
    HMC_ON_BANANA,
    Case {
        sampler: "clipped-rwmh",
        quick_bounds: &[0.05, 0.1, 0.5],
        iterations: 12_000,
        step: 0.3,
        leapfrog: 1,
        quick_part: 10,
        ..HMC_ON_BANANA
    },
    HMC_ON_GAUSS,
    Case {
        sampler: "clipped-rwmh",
        iterations: 25_000,
        step: 7e-4,
        leapfrog: 1,
        ..HMC_ON_GAUSS
    },
];

const THESIS_CASES: &[Case] = &[
    thesis_case(
        problem::FLAT_BANANA_2,
        "clipped-hmc",
        500,
        0.001,
        &[1.0, 2.0],
    ),
    thesis_case(problem::FLAT_BANANA_2, "clipped-rwmh", 3000, 0.01, &[1.0]),
    thesis_case(
        problem::FLAT_BANANA_10,
        "clipped-hmc",
        500,
        0.001,
        &[1.0, 2.0, 2.5],
    ),
    // sds of 0.015, 0.015 and 0.002
    thesis_case(
        problem::FLAT_BANANA_10,
        "clipped-rwmh",
        3000,
        0.015,
        &[1.0, 1.0, 4.0 / 225.0],
    ),
];

const fn thesis_case(
    posterior: Posterior,
    sampler: &'static str,
    iterations: u64,
    step: f64,
    variances: &'static [f64],
) -> Case {
    Case {
        posterior,
        most_records: 100_000,
        sampler,
        bounds: THESIS_BOUNDS,
        quick_bounds: &[1.0, 2.0, 8.0],
        chains: 1,
        iterations,
        step,
        leapfrog: 15,
        variances,
        clip_gradient: 1e4,
        start_sd: Some(0.05),
        quick_part: 2,
    }
}

impl Case {
    fn describe(&self) -> String {
        format!(
            "{} {}: chains {}, iterations {}, step {}, L {}, variances {:?}, b_l {:?}",
            self.posterior.name,
            self.sampler,
            self.chains,
            self.iterations,
            self.step,
            self.leapfrog,
            self.variances,
            self.bounds
        )
    }

    fn request(&self, bound: f64) -> Result<PlanRequest, Box<dyn Error>> {
        let dimension = self.posterior.shape.dimension();
        Ok(PlanRequest {
            algorithm: lookup(self.sampler).ok_or("no such sampler")?,
            settings: Settings::new()
                .step_size(self.step)
                .leapfrog_steps(self.leapfrog)
                .clip_log_ratio(bound)
                .clip_gradient(self.clip_gradient),
            ..PlanRequest::new(Real::ONE, Real::from(1e-6), dimension)
        })
    }

    fn metric(&self) -> Metric {
        let last = self.variances.len() - 1;
        let variance = |j: usize| self.variances[j.min(last)];
        Metric::Diagonal(
            (0..self.posterior.shape.dimension())
                .map(variance)
                .collect(),
        )
    }
}

const COLUMNS: [&str; 10] = [
    "posterior",
    "sampler",
    "bound",
    "repeat",
    "iterations_per_chain",
    "mmd",
    "mean_error",
    "acceptance",
    "ratios_clipped",
    "seconds",
];

fn run(course: &Course, name: &str, cases: &[Case], repeats: u64) -> Result<(), Box<dyn Error>> {
    let table = Table::open(course, name, &COLUMNS)?;
    let wanted = |case: &&Case| course.wants(case.sampler) && course.is_on(case.posterior.name);
    for case in cases.iter().filter(wanted) {
        let most = case.most_records.min(course.form.most_records());
        let problem = case.posterior.problem(most)?;
        let bounds = course
            .form
            .of(case.bounds, case.quick_bounds, &case.bounds[..1]);
        let part = case.iterations / case.quick_part;
        let iterations = course.form.of(case.iterations, part, 4);
        let chains = course.form.of(case.chains, case.chains.min(2), 1);
        for repeat in 1..=course.repeats(repeats, 1) {
            for &bound in bounds {
                let key = vec![
                    case.posterior.name.into(),
                    case.sampler.into(),
                    bound.to_string(),
                    repeat.to_string(),
                ];
                if !table.has(&key)? {
                    let numbers =
                        outcome(case, &problem, bound, [chains as u64, iterations], repeat)?;
                    table.add([key, numbers].concat())?;
                }
            }
        }
    }
    let by = ["posterior", "sampler", "bound"];
    table.print(&by, &["mmd", "mean_error", "acceptance", "ratios_clipped"])?;
    let mut panels = Vec::new();
    for (x, column) in [("clip bound", "bound"), ("share clipped", "ratios_clipped")] {
        let mut names: Vec<&str> = cases.iter().map(|case| case.posterior.name).collect();
        names.dedup();
        for posterior in names {
            panels.push(Panel {
                title: posterior.into(),
                x,
                y: "MMD, median and quartiles",
                log_x: column == "bound",
                log_y: true,
                series: curves(&table, posterior, column)?,
            });
        }
    }
    Figure {
        title: format!("{name}: clipping without noise"),
        panels,
    }
    .write(&course.out.join(format!("{name}.svg")))
}

/// MMD by the bound, or by the median of another column.
fn curves(table: &Table, posterior: &str, column: &str) -> Result<Vec<Series>, Box<dyn Error>> {
    let by = ["posterior", "sampler", "bound"];
    let (distances, others) = (table.groups(&by, "mmd")?, table.groups(&by, column)?);
    let pairs = distances.iter().zip(&others);
    let shown = pairs.filter(|(distance, _)| distance.key[0] == posterior);
    Ok(Series::curves(shown.map(|(distance, other)| {
        let point = distance.point(other.quantile(0.5));
        (distance.key[1].clone(), point)
    })))
}

fn outcome(
    case: &Case,
    problem: &Problem,
    bound: f64,
    [chains, iterations]: [u64; 2],
    repeat: u64,
) -> Result<Vec<String>, Box<dyn Error>> {
    let started = Instant::now();
    let starts = match case.start_sd {
        Some(sd) => {
            let sds = vec![sd; problem.truth.len()];
            problem.starts_within(&sds, repeat, chains as usize)
        }
        None => problem.starts(Start::Truth, repeat, chains as usize),
    };
    let request = &case.request(bound)?;
    let Kind::Clipped(sampler) = request.algorithm.kind else {
        return Err("not a sampler on clipped values".into());
    };
    let chain = |chain: usize, start: Vec<f64>| -> Result<_, SampleError> {
        let mut rng = ChaCha8Rng::seed_from_u64(repeat);
        rng.set_stream(chain as u64 + 1);
        let exact = Clipped::new(problem, request, repeat, chain as u64)?;
        let mut oracle = Watch::new(exact, problem.records.as_ref(), request);
        let mut walker = sampler.walker(request, start, &mut oracle, &mut rng);
        walker.tune(case.step, &case.metric());
        let (mut draws, mut accepted) = (Vec::new(), 0u64);
        for iteration in 0..iterations {
            accepted += u64::from(walker.step(&mut oracle, &mut rng)?.accepted);
            if iteration >= iterations / 2 {
                draws.push(walker.theta().to_vec());
            }
        }
        Ok((draws, accepted, oracle.ratios))
    };
    let runs: Vec<(Vec<Vec<f64>>, u64, Shares)> = in_threads(starts, chain)?;
    let pooled: Vec<Vec<f64>> = runs.iter().flat_map(|(draws, ..)| draws.clone()).collect();
    let error = distance_of_means(&pooled, problem);
    let accepted: u64 = runs.iter().map(|(_, accepted, _)| accepted).sum();
    let proposals = iterations * runs.len() as u64;
    let distance = mmd(&thinned(&pooled, 5000), &problem.reference, repeat);
    Ok(vec![
        iterations.to_string(),
        format!("{distance:.4}"),
        format!("{error:.5}"),
        format!("{:.4}", accepted as f64 / proposals as f64),
        format!(
            "{:.4}",
            Shares::mean(runs.iter().map(|(.., shares)| shares))
        ),
        format!("{:.1}", started.elapsed().as_secs_f64()),
    ])
}

/// Clipped sums without noise, for data that are made up.
struct Clipped<'a> {
    problem: &'a Problem,
    request: &'a PlanRequest,
    gradients: GradientScale,
    log_ratios: PenaltyScale,
    batches: PrivateRng,
    tests: ChaCha8Rng,
}

impl<'a> Clipped<'a> {
    fn new(
        problem: &'a Problem,
        request: &'a PlanRequest,
        seed: u64,
        chain: u64,
    ) -> Result<Self, SampleError> {
        let mut tests = ChaCha8Rng::seed_from_u64(seed);
        tests.set_stream(u64::MAX - chain);
        Ok(Clipped {
            problem,
            request,
            gradients: GradientScale::new(request.clip_gradient(), 2, 1.0)?,
            // Of the noise that there is not: so little that no proposal is refused.
            log_ratios: PenaltyScale::new(2, 2f64.powi(-100))?,
            batches: PrivateRng::insecure(seed, NotPrivate::acknowledged()),
            tests,
        })
    }
}

impl Oracle for Clipped<'_> {
    fn dimension(&self) -> usize {
        self.problem.vault.density().dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.problem.vault.density().log_prior(theta)
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let vault = &self.problem.vault;
        let sum = vault.clipped_batch_gradient(
            theta,
            &self.gradients,
            Subsampling::All,
            NotPrivate::acknowledged(),
            &mut self.batches,
        );
        let (_, prior) = vault.density().pull_back(theta, &[]);
        Ok(prior.iter().zip(sum).map(|(p, l)| p + l).collect())
    }

    fn log_ratio(&mut self, _: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        // The Euclidean distance; the thesis's code has |sum of the differences|, which is
        // 0 for many long steps.
        let squares = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b));
        let bound = self.request.clip_log_ratio() * squares.sum::<f64>().sqrt();
        Ok(match self.log_ratios.plan(bound)? {
            PenaltyPlan::Query(query) => Ratio::Penalised(self.problem.vault.clipped_log_ratio(
                from,
                to,
                1.0,
                &query,
                NotPrivate::acknowledged(),
            )),
            PenaltyPlan::Skip => Ratio::Penalised(0.0),
            PenaltyPlan::Refuse => Ratio::Refused,
        })
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.tests.random::<f64>().ln() < log_probability
    }
}

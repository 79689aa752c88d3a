//! The experiments: which samplers, with which settings, on which posterior.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use dpm::diagnostics::{mmd, quantile, r_hat};
use dpm::{Iterations, Meter, NoiseChoice, Plan, PlanRequest, PrivateRng, Real};

use crate::chain::run_chains;
use crate::posterior::{N, Posterior};

const CHAINS: u64 = 4;

pub struct Experiment {
    pub name: &'static str,
    posterior: Posterior,
    epsilons: &'static [f64],
    samplers: &'static [Setting],
}

/// The paper's settings of a sampler. Its tau is per root n, as in the authors' code.
struct Setting {
    sampler: &'static str,
    tau_gradient: Option<f64>,
    tau_log_ratio: f64,
    step_size: f64,
    leapfrog_steps: u64,
    clip_gradient: f64,
    clip_log_ratio: f64,
}

const EPSILONS: &[f64] = &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0];

pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "paper-banana",
        posterior: Posterior::Banana,
        epsilons: EPSILONS,
        samplers: &[
            Setting {
                sampler: "dp-hmc",
                tau_gradient: Some(0.55),
                tau_log_ratio: 0.10,
                step_size: 0.006,
                leapfrog_steps: 25,
                clip_gradient: 0.05,
                clip_log_ratio: 0.1,
            },
            Setting {
                sampler: "dp-penalty",
                tau_gradient: None,
                tau_log_ratio: 0.17,
                step_size: 0.06,
                leapfrog_steps: 1,
                clip_gradient: 1.0,
                clip_log_ratio: 0.15,
            },
        ],
    },
    Experiment {
        name: "paper-gauss",
        posterior: Posterior::Gauss,
        epsilons: EPSILONS,
        samplers: &[
            Setting {
                sampler: "dp-hmc",
                tau_gradient: Some(0.25),
                tau_log_ratio: 0.1,
                step_size: 1.5e-4,
                leapfrog_steps: 12,
                clip_gradient: 10.0,
                clip_log_ratio: 6.0,
            },
            Setting {
                sampler: "dp-penalty",
                tau_gradient: None,
                tau_log_ratio: 0.05,
                step_size: 7e-4,
                leapfrog_steps: 1,
                clip_gradient: 1.0,
                clip_log_ratio: 10.0,
            },
        ],
    },
];

impl Setting {
    fn plan(&self, epsilon: f64, dimension: usize) -> Result<Plan, Box<dyn Error>> {
        let root = (N as f64).sqrt();
        let algorithm = dpm::sampler::lookup(self.sampler).ok_or("no such sampler")?;
        Ok(Plan::new(PlanRequest {
            algorithm,
            chains: CHAINS,
            iterations: Iterations::Max,
            noise: NoiseChoice::Multipliers {
                gradient: self.tau_gradient.map(|tau| tau * root),
                log_ratio: Some(self.tau_log_ratio * root),
            },
            step_size: Some(self.step_size),
            leapfrog_steps: self.leapfrog_steps,
            // The papers' cost: a fresh gradient at the start of each trajectory.
            fresh_gradients: true,
            clip_gradient: self.clip_gradient,
            clip_log_ratio: self.clip_log_ratio,
            ..PlanRequest::new(Real::from(epsilon), "1e-6".parse()?, dimension)
        })?)
    }
}

/// One line of an experiment's table.
struct Outcome {
    iterations: u64,
    mmd: f64,
    mean_error: f64,
    acceptance: f64,
    /// Share of the records' log-ratios that were clipped, over all proposals.
    clipped: f64,
    r_hat: f64,
    seconds: f64,
}

fn one_run(
    posterior: Posterior,
    setting: &Setting,
    epsilon: f64,
    repeat: u64,
) -> Result<Outcome, Box<dyn Error>> {
    let problem = posterior.problem(repeat, CHAINS as usize)?;
    let plan = setting.plan(epsilon, problem.vault.density().dimension())?;
    let meter = Meter::new(plan.events.clone());
    let started = Instant::now();
    let chains = run_chains(&problem, &plan, &meter, repeat, &PrivateRng::from_os()?)?;
    let seconds = started.elapsed().as_secs_f64();
    let half = plan.iterations_per_chain as usize / 2;
    let kept: Vec<Vec<Vec<f64>>> = chains.iter().map(|c| c.draws[half..].to_vec()).collect();
    let share = |count: fn(&crate::chain::Chain) -> u64, of: u64| {
        chains.iter().map(count).sum::<u64>() as f64 / of as f64
    };
    let proposals = CHAINS * plan.iterations_per_chain;
    let pooled = kept.concat();
    let d = pooled.first().map_or(0, Vec::len);
    let mean = |points: &[Vec<f64>], j: usize| {
        points.iter().map(|p| p[j]).sum::<f64>() / points.len() as f64
    };
    let mean_error = (0..d)
        .map(|j| (mean(&pooled, j) - mean(&problem.reference, j)).powi(2))
        .sum::<f64>()
        .sqrt();
    let worst = (0..d)
        .map(|j| {
            let chains: Vec<Vec<f64>> = kept
                .iter()
                .map(|c| c.iter().map(|p| p[j]).collect())
                .collect();
            r_hat(&chains)
        })
        .fold(0.0, f64::max);
    Ok(Outcome {
        iterations: plan.iterations_per_chain,
        mmd: mmd(&pooled, &problem.reference, repeat),
        mean_error,
        acceptance: share(|c| c.accepted, proposals),
        clipped: share(|c| c.clipped, proposals * N as u64),
        r_hat: worst,
        seconds,
    })
}

/// Makes what of the experiment is not in its table yet, then prints the medians.
pub fn run(
    experiment: &Experiment,
    out: &Path,
    epsilons: &[f64],
    samplers: &[String],
    repeats: u64,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let path = out.join(format!("{}.csv", experiment.name));
    if !path.exists() {
        fs::write(
            &path,
            "sampler,epsilon,repeat,iterations_per_chain,mmd,mean_error,acceptance,clipped,r_hat,seconds\n",
        )?;
    }
    let epsilons = if epsilons.is_empty() {
        experiment.epsilons
    } else {
        epsilons
    };
    for repeat in 1..=repeats {
        for setting in experiment.samplers {
            if !samplers.is_empty() && !samplers.iter().any(|s| s == setting.sampler) {
                continue;
            }
            for &epsilon in epsilons {
                let key = format!("{},{epsilon},{repeat},", setting.sampler);
                let done = fs::read_to_string(&path)?;
                if done.lines().any(|line| line.starts_with(&key)) {
                    continue;
                }
                let o = one_run(experiment.posterior, setting, epsilon, repeat)?;
                let line = format!(
                    "{key}{},{:.4},{:.5},{:.4},{:.4},{:.3},{:.1}\n",
                    o.iterations, o.mmd, o.mean_error, o.acceptance, o.clipped, o.r_hat, o.seconds
                );
                OpenOptions::new()
                    .append(true)
                    .open(&path)?
                    .write_all(line.as_bytes())?;
                eprint!("{line}");
            }
        }
    }
    summary(&path)
}

/// Medians and quartiles of the table's runs.
fn summary(path: &Path) -> Result<(), Box<dyn Error>> {
    // MMD, acceptance and share clipped of each sampler and budget.
    let mut groups: Vec<(String, [Vec<f64>; 3])> = Vec::new();
    for row in csv::Reader::from_path(path)?.records() {
        let row = row?;
        let key = format!("{:10} {:>5}", &row[0], &row[1]);
        let at = groups
            .iter()
            .position(|(k, _)| *k == key)
            .unwrap_or_else(|| {
                groups.push((key, Default::default()));
                groups.len() - 1
            });
        for (column, values) in [4, 6, 7].into_iter().zip(&mut groups[at].1) {
            values.push(row[column].parse()?);
        }
    }
    println!("sampler    epsilon  runs  MMD median [quartiles]  acceptance  clipped");
    for (key, [mmds, acceptances, clipped]) in groups {
        let quantile = |x: &Vec<f64>, p: f64| quantile(std::slice::from_ref(x), p);
        println!(
            "{key} {:>7}  {:.3} [{:.3}, {:.3}]    {:.2}        {:.3}",
            mmds.len(),
            quantile(&mmds, 0.5),
            quantile(&mmds, 0.25),
            quantile(&mmds, 0.75),
            quantile(&acceptances, 0.5),
            quantile(&clipped, 0.5),
        );
    }
    Ok(())
}

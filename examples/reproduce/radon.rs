//! Lode's softmax regression: on which floor radon was measured.

use std::error::Error;
use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use dpm::testing::density::Density;
use dpm::testing::privacy::{InclusionRate, NotPrivate, PrivateRng, Rows, Subsampling};
use dpm::testing::sampler::{
    Initial, Iterations, NonPrivateRun, PlanRequest, PrivateSettings, lookup, sample_privately,
    sample_without_privacy,
};
use dpm::testing::tune::tuned_plan;
use dpm::{
    Accountant, Budget, Chain, Constants, MetricForm, Model, OnBadRows, Plan, Questions, Real,
    Relation, Session, Settings, Terms, Vault,
};

use crate::chart::{Figure, Panel, Series};
use crate::experiment::{Course, Experiment, Form};
use crate::problem::{folder, read};
use crate::table::Table;

pub const TABLE: Experiment = Experiment {
    name: "lode-radon",
    of: "Lode's thesis, table 6.2: accuracy of the radon softmax on 15 random splits",
    time: ["20 minutes", "3 minutes"],
    settings: || {
        vec![
            format!(
                "12573 houses, 80% to learn from; epsilon {EPSILON}, delta {DELTA}, add/remove, rate {RATE}, J {J}"
            ),
            format!(
                "dp-sgd: C {CLIP}, 5000 steps of 2e-4/sqrt(t), of which the second half is averaged; ours"
            ),
            format!(
                "dp-sghmc: eta {ETA}, C {CLIP}, {DP_ITERATIONS} iterations, friction from the budget; ours, the thesis's are for other dynamics"
            ),
        ]
    },
    run: table,
};

pub const GRID: Experiment = Experiment {
    name: "lode-radon-friction",
    of: "Lode's thesis, figure 6.7: distance of posterior sds by friction and step size",
    time: ["45 minutes", "1 minute"],
    settings: || {
        vec![format!(
            "sghmc without privacy, rate {RATE}, J {J}; eta {ETAS:?}, F {FRICTIONS:?}"
        )]
    },
    run: grid,
};

/// The thesis's budget of DP-SGHMC; its delta is not at hand.
const EPSILON: &str = "9.789";
const DELTA: &str = "1e-5";
const RATE: &str = "0.01";
const J: u64 = 10;
const ETA: f64 = 0.005;
const CLIP: f64 = 1.0;
const DP_ITERATIONS: u64 = 500;

const CLASSES: usize = 5;
const PREDICTORS: usize = 3;

struct House {
    /// From 0.
    class: usize,
    x: [f64; PREDICTORS],
}

fn houses(form: Form) -> Result<Vec<House>, Box<dyn Error>> {
    let path = folder().join("lode_radon.csv.gz");
    let file = std::fs::File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
    let mut houses = Vec::new();
    for row in reader.deserialize::<(usize, f64, f64)>() {
        let (class, log_radon, log_uppm) = row?;
        houses.push(House {
            class: class - 1,
            x: [1.0, log_radon, log_uppm],
        });
    }
    houses.truncate(form.of(usize::MAX, usize::MAX, 400));
    Ok(houses)
}

#[derive(Clone, Copy, PartialEq)]
enum Prior {
    Normal,
    Uniform,
}

fn vault(houses: &[&House], prior: Prior) -> Result<Vault, Box<dyn Error>> {
    let program = match prior {
        Prior::Normal => "lode_radon.dpm",
        Prior::Uniform => "papers/lode_radon_uniform.dpm",
    };
    let model = Model::from_source(&read(program)?, &Constants::none())?;
    let column = |of: fn(&House) -> f64| houses.iter().map(|h| of(h)).collect();
    let columns = vec![
        ("floor_class".into(), column(|h| h.class as f64 + 1.0)),
        ("log_radon_s".into(), column(|h| h.x[1])),
        ("log_uppm_s".into(), column(|h| h.x[2])),
    ];
    let rows = Rows::from_columns(&model.columns, columns, OnBadRows::Error)?;
    Ok(Vault::new(Density::new(model), rows)?)
}

type Draws = Vec<Vec<f64>>;

/// From houses and a seed to draws of the weights, or one estimate.
type Learn = fn(&[&House], u64, Form) -> Result<Draws, Box<dyn Error>>;

/// A way to learn the weights.
struct Method {
    name: &'static str,
    learn: Learn,
    /// Of the thesis: mean accuracy and its sd.
    published: &'static str,
}

const METHODS: &[Method] = &[
    Method {
        name: "most frequent class",
        learn: |houses, _, _| Ok(vec![most_frequent(houses)]),
        published: "",
    },
    Method {
        name: "sgd",
        learn: sgd,
        published: "0.731 (0.001)",
    },
    Method {
        name: "dp-sgd",
        learn: dp_sgd,
        published: "",
    },
    Method {
        name: "hmc normal prior",
        learn: |houses, seed, form| hmc(houses, Prior::Normal, seed, form.of(500, 200, 2)),
        published: "0.731 (0.004)",
    },
    Method {
        name: "hmc uniform prior",
        learn: |houses, seed, form| hmc(houses, Prior::Uniform, seed, form.of(500, 200, 2)),
        published: "0.732 (0.002)",
    },
    Method {
        name: "naive-sghmc",
        learn: naive,
        published: "",
    },
    Method {
        name: "dp-sghmc normal prior",
        learn: |houses, seed, form| dp_sghmc(houses, Prior::Normal, seed, form),
        published: "0.730 (0.003)",
    },
    Method {
        name: "dp-sghmc uniform prior",
        learn: |houses, seed, form| dp_sghmc(houses, Prior::Uniform, seed, form),
        published: "0.726 (0.006)",
    },
    Method {
        name: "automatic",
        learn: automatic,
        published: "",
    },
];

fn table(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(
        course,
        "lode-radon",
        &["method", "split", "accuracy", "log_loss", "seconds"],
    )?;
    let mut houses = houses(course.form)?;
    for split in 1..=course.repeats(15, 5) {
        // From the same order each time, whatever was made before.
        houses.sort_by(|a, b| a.x[1].total_cmp(&b.x[1]).then(a.x[2].total_cmp(&b.x[2])));
        houses.shuffle(&mut ChaCha8Rng::seed_from_u64(6200 + split));
        let (test, train) = houses.split_at(houses.len() / 5);
        let train: Vec<&House> = train.iter().collect();
        for method in METHODS.iter().filter(|m| course.wants(m.name)) {
            let key = vec![method.name.to_string(), split.to_string()];
            if table.has(&key)? {
                continue;
            }
            let started = Instant::now();
            let draws = (method.learn)(&train, split, course.form)?;
            let seconds = started.elapsed().as_secs_f64();
            let (accuracy, log_loss) = score(test, &draws);
            let numbers = [
                format!("{accuracy:.4}"),
                format!("{log_loss:.4}"),
                format!("{seconds:.1}"),
            ];
            table.add([key, numbers.to_vec()].concat())?;
        }
    }
    println!("| method | splits | mean accuracy (sd) | mean log loss | thesis |");
    println!("|---|---|---|---|---|");
    let accuracies = table.groups(&["method"], "accuracy")?;
    let losses = table.groups(&["method"], "log_loss")?;
    for (accuracy, loss) in accuracies.iter().zip(&losses) {
        let n = accuracy.values.len() as f64;
        let mean = accuracy.values.iter().sum::<f64>() / n;
        let squares = accuracy.values.iter().map(|v| (v - mean).powi(2));
        let sd = (squares.sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
        let method = METHODS.iter().find(|m| m.name == accuracy.key[0]);
        println!(
            "| {} | {n} | {mean:.4} ({sd:.4}) | {:.4} | {} |",
            accuracy.key[0],
            loss.values.iter().sum::<f64>() / n,
            method.map_or("", |m| m.published)
        );
    }
    Ok(())
}

/// Accuracy, and mean log loss in nats, of the posterior predictive probabilities.
fn score(test: &[House], draws: &Draws) -> (f64, f64) {
    let (mut right, mut loss) = (0.0, 0.0);
    for house in test {
        let mut mean = [0.0; CLASSES];
        for theta in draws {
            for (sum, p) in mean.iter_mut().zip(probabilities(theta, &house.x)) {
                *sum += p / draws.len() as f64;
            }
        }
        let best = (0..CLASSES).max_by(|&a, &b| mean[a].total_cmp(&mean[b]));
        right += f64::from(u8::from(best == Some(house.class)));
        loss -= mean[house.class].ln();
    }
    let n = test.len() as f64;
    (right / n, loss / n)
}

/// Weights come by columns, one for each class.
fn probabilities(theta: &[f64], x: &[f64; PREDICTORS]) -> [f64; CLASSES] {
    let score = |k: usize| -> f64 {
        let weights = &theta[PREDICTORS * k..PREDICTORS * (k + 1)];
        weights.iter().zip(x).map(|(w, x)| w * x).sum()
    };
    let scores: [f64; CLASSES] = std::array::from_fn(score);
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers = scores.map(|s| (s - top).exp());
    let total: f64 = powers.iter().sum();
    powers.map(|p| p / total)
}

fn most_frequent(houses: &[&House]) -> Vec<f64> {
    let count = |k: usize| houses.iter().filter(|h| h.class == k).count() as f64;
    let intercept = |k: usize| [(count(k) + 0.5).ln(), 0.0, 0.0];
    (0..CLASSES).flat_map(intercept).collect()
}

/// Stochastic gradient ascent of the log posterior, the second half of its path averaged.
fn sgd(houses: &[&House], seed: u64, form: Form) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, Prior::Normal)?;
    let mut batches = PrivateRng::insecure(seed, NotPrivate::acknowledged());
    let rate = InclusionRate::new(RATE.parse::<Real>()?)?;
    let mean = ascend(form, 2.0 / houses.len() as f64, |theta| {
        let (batch, permission) = (Subsampling::Poisson(rate), NotPrivate::acknowledged());
        let sum = vault.batch_gradient(theta, batch, permission, &mut batches);
        let (_, prior) = vault.density().pull_back(theta, &[]);
        let gradient = sum.iter().zip(prior);
        Ok(gradient
            .map(|(l, p)| l / rate.rate().to_f64() + p)
            .collect())
    });
    Ok(vec![mean?])
}

/// The same with clipped gradients and noise: DP-SGD, by the interface to samplers of one's own.
fn dp_sgd(houses: &[&House], seed: u64, form: Form) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, Prior::Normal)?;
    // The run keeps to its own budget, by the PLD accountant; the session only has to have room.
    let room = Budget::new(1000.0, DELTA.parse::<Real>()?)?;
    let session = Session::in_memory(Terms::new(
        room,
        Relation::AddRemove,
        "record",
        Accountant::Rdp,
    )?)?;
    let settings = Settings::new().clip_gradient(CLIP);
    let fit = Questions::new("DP-SGD", EPSILON.parse::<Real>()?)
        .gradients(sgd_steps(form).into())
        .settings(settings.batch_rate(RATE.parse::<Real>()?))
        .seed(seed)
        .ask(&vault, &session, |oracle| {
            // The number of houses is private under add/remove; this is about as many.
            let mean = ascend(form, 2.0 / 1e4, |theta| oracle.gradient(theta))?;
            oracle.keep(&mean)
        })?;
    Ok(draws(fit.chains(), 0))
}

fn sgd_steps(form: Form) -> u32 {
    form.of(5000, 5000, 4)
}

/// Ascent from 0 with steps of `first`, divided by the root of their number; the mean of the second
/// half of the path.
fn ascend(
    form: Form,
    first: f64,
    mut gradient: impl FnMut(&[f64]) -> Result<Vec<f64>, dpm::Error>,
) -> Result<Vec<f64>, dpm::Error> {
    let steps = sgd_steps(form);
    let mut theta = vec![0.0; PREDICTORS * CLASSES];
    let mut mean = theta.clone();
    for t in 1..=steps {
        let step = first / f64::from(t).sqrt();
        for (j, slope) in gradient(&theta)?.into_iter().enumerate() {
            theta[j] += step * slope;
            if t > steps / 2 {
                mean[j] += theta[j] / f64::from(steps - steps / 2);
            }
        }
    }
    Ok(mean)
}

/// `half` iterations of warm-up and as many kept.
fn hmc(houses: &[&House], prior: Prior, seed: u64, half: u64) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, prior)?;
    let hmc = lookup("hmc").ok_or("no hmc")?;
    let run = NonPrivateRun {
        request: PlanRequest {
            chains: 1,
            settings: Settings::new().metric(MetricForm::Dense),
            ..PlanRequest::without_budget(hmc, vault.density().dimension())
        },
        num_warmup: half,
        num_samples: half,
        initial: Initial::Points(vec![most_frequent(houses)]),
        seed,
    };
    let chains = sample_without_privacy(&vault, &run, NotPrivate::acknowledged(), &())?;
    Ok(draws(&chains, half as usize))
}

fn naive(houses: &[&House], seed: u64, form: Form) -> Result<Draws, Box<dyn Error>> {
    let iterations = form.of(DP_ITERATIONS, DP_ITERATIONS, 2);
    openly("naive-sghmc", houses, ETA, None, iterations, seed)
}

fn openly(
    name: &str,
    houses: &[&House],
    eta: f64,
    friction: Option<f64>,
    iterations: u64,
    seed: u64,
) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, Prior::Normal)?;
    let mut request = request(name, eta)?;
    request.settings.friction = friction;
    request.settings.clip_gradient = None;
    let run = NonPrivateRun {
        request,
        num_warmup: iterations / 2,
        num_samples: iterations / 2,
        initial: Initial::Points(vec![most_frequent(houses)]),
        seed,
    };
    let chains = sample_without_privacy(&vault, &run, NotPrivate::acknowledged(), &())?;
    Ok(draws(&chains, (iterations / 2) as usize))
}

/// Steps of one size on Poisson batches.
fn request(algorithm: &str, eta: f64) -> Result<PlanRequest, Box<dyn Error>> {
    Ok(PlanRequest {
        algorithm: lookup(algorithm).ok_or("no such sampler")?,
        relation: Relation::AddRemove,
        chains: 1,
        settings: Settings::new()
            .step_size(eta)
            .step_decay(0.0)
            .leapfrog_steps(J)
            .batch_rate(RATE.parse::<Real>()?)
            .clip_gradient(CLIP),
        ..PlanRequest::new(EPSILON.parse()?, DELTA.parse()?, PREDICTORS * CLASSES)
    })
}

fn dp_sghmc(
    houses: &[&House],
    prior: Prior,
    seed: u64,
    form: Form,
) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, prior)?;
    let iterations = form.of(DP_ITERATIONS, DP_ITERATIONS, 2);
    let plan = Plan::new(PlanRequest {
        iterations: Iterations::Fixed(iterations),
        settings: request("dp-sghmc", ETA)?.settings.friction(1.0),
        ..request("dp-sghmc", ETA)?
    })?;
    let settings = PrivateSettings {
        // Not from the data.
        initial: Initial::Points(vec![vec![0.0; PREDICTORS * CLASSES]]),
        ..PrivateSettings::new(iterations / 2, seed, PrivateRng::from_os()?)
    };
    let meter = NotPrivate::acknowledged().meter(plan.events.clone());
    let chains = sample_privately(&vault, &plan, &meter, &settings, &())?;
    Ok(draws(&chains, (iterations / 2) as usize))
}

/// As `dpm sample` with nothing but epsilon and delta.
fn automatic(houses: &[&House], seed: u64, form: Form) -> Result<Draws, Box<dyn Error>> {
    let vault = vault(houses, Prior::Normal)?;
    let usual = PlanRequest {
        records: Some(houses.len() as u64),
        ..PlanRequest::automatic(EPSILON.parse()?, DELTA.parse()?, PREDICTORS * CLASSES)
    };
    let iterations = match form {
        Form::Smoke => Iterations::Fixed(4),
        _ => usual.iterations,
    };
    let request = PlanRequest {
        iterations,
        ..usual
    };
    let plan = tuned_plan(request, vault.density().model())?;
    let warmup = plan.iterations_per_chain / 11;
    let settings = PrivateSettings::new(warmup, seed, PrivateRng::from_os()?);
    let meter = NotPrivate::acknowledged().meter(plan.events.clone());
    let chains = sample_privately(&vault, &plan, &meter, &settings, &())?;
    Ok(draws(&chains, warmup as usize))
}

/// Without the first `warmup` of each chain; at most about 1,000.
fn draws(chains: &[Chain], warmup: usize) -> Draws {
    let kept = chains.iter().flat_map(|c| c.draws.iter().skip(warmup));
    let all: Draws = kept.map(|draw| draw.values.clone()).collect();
    crate::comparison::thinned(&all, 1000)
}

const ETAS: &[f64] = &[0.001, 0.002, 0.005, 0.01];
const FRICTIONS: &[f64] = &[0.0, 5.0, 20.0, 80.0];

fn grid(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(
        course,
        "lode-radon-friction",
        &[
            "eta", "friction", "repeat", "distance", "contrast", "seconds",
        ],
    )?;
    let houses = houses(course.form)?;
    let houses: Vec<&House> = houses.iter().collect();
    let half = course.form.of(1000, 500, 2);
    let reference = hmc(&houses, Prior::Normal, 67, half)?;
    let (sds, contrasts) = (centred_sds(&reference), contrast_sds(&reference));
    let time = course.form.of(200.0, 20.0, 0.05);
    for repeat in 1..=course.repeats(5, 1) {
        for &eta in ETAS {
            for &friction in FRICTIONS {
                let key = [eta.to_string(), friction.to_string(), repeat.to_string()].to_vec();
                if table.has(&key)? {
                    continue;
                }
                let started = Instant::now();
                let iterations = (time / (eta * J as f64)).round().max(4.0) as u64;
                let (name, given) = match friction {
                    0.0 => ("naive-sghmc", None),
                    f => ("sghmc", Some(f)),
                };
                let draws = openly(name, &houses, eta, given, iterations, repeat)?;
                let differences = centred_sds(&draws).into_iter().zip(&sds);
                let squares = differences.map(|(a, b)| (a - b).powi(2));
                let ratios = contrast_sds(&draws).into_iter().zip(&contrasts);
                let logs = ratios.map(|(a, b)| (a / b).ln().powi(2));
                let numbers = [
                    format!("{:.4}", squares.sum::<f64>().sqrt()),
                    format!("{:.4}", (logs.sum::<f64>() / PREDICTORS as f64).sqrt()),
                    format!("{:.1}", started.elapsed().as_secs_f64()),
                ];
                table.add([key, numbers.to_vec()].concat())?;
            }
        }
    }
    table.print(&["eta", "friction"], &["distance", "contrast"])?;
    let panel = |column: &str, y: &'static str| -> Result<Panel, Box<dyn Error>> {
        Ok(Panel {
            x: "friction",
            y,
            log_y: true,
            series: curves(&table, column)?,
            ..Panel::default()
        })
    };
    Figure {
        title: "radon softmax, without privacy: posterior sds beside those of HMC".into(),
        panels: vec![
            panel("distance", "distance, all weights less their mean")?,
            panel("contrast", "rms log ratio, class 2 less class 1")?,
        ],
    }
    .write(&course.out.join("lode-radon-friction.svg"))
}

fn curves(table: &Table, column: &str) -> Result<Vec<Series>, Box<dyn Error>> {
    let mut points = Vec::new();
    for group in table.groups(&["eta", "friction"], column)? {
        let label = format!("eta {}", group.key[0]);
        points.push((label, group.point(group.key[1].parse()?)));
    }
    Ok(Series::curves(points))
}

/// Posterior sds of the weights less their mean over the classes: the mean itself is not
/// identified, and no chain gets to the end of its prior.
fn centred_sds(draws: &Draws) -> Vec<f64> {
    let centred: Draws = draws
        .iter()
        .map(|theta| {
            let entry = |i: usize| {
                let of_predictor = theta.iter().skip(i % PREDICTORS).step_by(PREDICTORS);
                theta[i] - of_predictor.sum::<f64>() / CLASSES as f64
            };
            (0..theta.len()).map(entry).collect()
        })
        .collect();
    sds(&centred)
}

/// Posterior sds of the weights of the second class less those of the first, the two that
/// have nearly all houses: the weights that a short chain can know.
fn contrast_sds(draws: &Draws) -> Vec<f64> {
    let contrast = |theta: &Vec<f64>| {
        let weights = theta.iter().zip(theta.iter().skip(PREDICTORS));
        weights.take(PREDICTORS).map(|(a, b)| b - a).collect()
    };
    sds(&draws.iter().map(contrast).collect())
}

fn sds(draws: &Draws) -> Vec<f64> {
    let n = draws.len() as f64;
    (0..draws[0].len())
        .map(|j| {
            let mean = draws.iter().map(|x| x[j]).sum::<f64>() / n;
            let squares = draws.iter().map(|x| (x[j] - mean).powi(2));
            (squares.sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
        })
        .collect()
}

//! The synthetic models: their data, exact posteriors and starting points.
//!
//! In all of them a record is a normal vector around a centre that follows from theta, with a
//! known covariance. Whitened, log-likelihoods are -|z - m(theta)|^2/2: this is what the exact
//! posteriors and the shares of clipped records are computed from.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use dpm::{Constants, Density, Model, OnBadRows, Rows, Vault};

use dpm::sampler::Metric;

use crate::clipped::{Clipping, Whitened};

/// Exact draws that samples are compared with.
pub const REFERENCE_DRAWS: usize = 1000;

/// Variances of one record of the thesis's bananas.
const THESIS_VARIANCES: [f64; 3] = [20.0, 2.5, 1.0];

/// One of the papers' synthetic posteriors.
#[derive(Debug, Clone, Copy)]
pub struct Posterior {
    pub name: &'static str,
    pub shape: Shape,
    /// Records.
    pub n: usize,
    /// n0: the number of records that the likelihood is tempered to.
    pub tempered_to: Option<f64>,
    /// Standard deviation of starting points around the truth; none: the mean posterior sd.
    start_sd: Option<f64>,
    /// Program and constants, in the folder `models`.
    program: &'static str,
    constants: &'static str,
    /// Of the data, where the example makes them.
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Independent normal means, the second along a parabola of the first.
    Banana { d: usize, a: f64 },
    /// The banana whose data are a file.
    PaperBanana,
    /// Ten normal means with a known covariance.
    Gauss,
    /// Two means with a correlation of 0.999.
    Correlated,
    /// Only the distance from the origin is known.
    Circle { a: f64 },
}

impl Shape {
    pub fn dimension(self) -> usize {
        match self {
            Shape::Banana { d, .. } => d,
            Shape::Gauss => 10,
            Shape::PaperBanana | Shape::Correlated | Shape::Circle { .. } => 2,
        }
    }
}

const fn banana(
    name: &'static str,
    d: usize,
    a: f64,
    n: usize,
    tempered_to: Option<f64>,
    constants: &'static str,
    seed: u64,
) -> Posterior {
    Posterior {
        name,
        shape: Shape::Banana { d, a },
        n,
        tempered_to,
        start_sd: Some(0.02),
        program: "papers/banana.dpm",
        constants,
        seed,
    }
}

pub const PAPER_BANANA: Posterior = Posterior {
    name: "banana",
    shape: Shape::PaperBanana,
    n: 100_000,
    tempered_to: None,
    start_sd: None,
    program: "paper_banana_d2.dpm",
    constants: "paper_banana_d2.constants.json",
    seed: 0,
};
pub const PAPER_GAUSS: Posterior = Posterior {
    name: "gauss",
    shape: Shape::Gauss,
    n: 100_000,
    tempered_to: None,
    start_sd: None,
    program: "paper_gauss_d10.dpm",
    constants: "paper_gauss_d10.constants.json",
    seed: 15_621,
};
/// The same with a condition number of 120 in place of 43,000: the paper's bounds clip as many
/// records of it as the re-run's table says.
pub const MILD_GAUSS: Posterior = Posterior {
    name: "gauss-mild",
    constants: "papers/gauss_d10_mild.constants.json",
    seed: 15_622,
    ..PAPER_GAUSS
};
const FLAT_2: &str = "papers/flat_banana_d2.constants.json";
const FLAT_10: &str = "papers/flat_banana_d10.constants.json";
pub const FLAT_BANANA_2: Posterior = banana("flat-2", 2, 20.0, 100_000, None, FLAT_2, 103);
pub const TEMPERED_BANANA_2: Posterior =
    banana("tempered-2", 2, 20.0, 100_000, Some(1000.0), FLAT_2, 103);
pub const FLAT_BANANA_10: Posterior = banana("flat-10", 10, 20.0, 200_000, None, FLAT_10, 104);
pub const TEMPERED_BANANA_10: Posterior =
    banana("tempered-10", 10, 20.0, 200_000, Some(1000.0), FLAT_10, 104);
pub const GAUSS_30: Posterior = banana(
    "gauss-30",
    30,
    0.0,
    200_000,
    None,
    "papers/gauss_d30.constants.json",
    105,
);
pub const NARROW_BANANA: Posterior = banana(
    "narrow",
    2,
    350.0,
    150_000,
    None,
    "papers/narrow_banana_d2.constants.json",
    106,
);
pub const CORRELATED: Posterior = Posterior {
    name: "correlated",
    shape: Shape::Correlated,
    n: 200_000,
    tempered_to: None,
    start_sd: Some(0.005),
    program: "papers/correlated_gauss.dpm",
    constants: "papers/correlated_gauss.constants.json",
    seed: 107,
};
pub const CIRCLE: Posterior = Posterior {
    name: "circle",
    shape: Shape::Circle { a: 1e-5 },
    n: 100_000,
    tempered_to: None,
    start_sd: Some(0.1),
    program: "papers/circle.dpm",
    constants: "papers/circle.constants.json",
    seed: 108,
};

/// A data set in its vault, and what is known of its posterior.
pub struct Problem {
    pub vault: Vault,
    /// Records.
    pub n: usize,
    /// 1,000 exact draws, on the parameters' own scale.
    pub reference: Vec<Vec<f64>>,
    /// Exact posterior mean, of the same.
    pub mean: Vec<f64>,
    /// T, the power of the likelihood.
    pub temperature: f64,
    /// The records outside of the vault, to see what is clipped. Only data that were made up,
    /// or are public, may be looked at like this.
    pub records: Box<dyn Clipping>,
    /// Where chains of the papers start, on the unconstrained scale, and the standard
    /// deviations of their starts around it.
    pub truth: Vec<f64>,
    pub start_sds: Vec<f64>,
    /// The scales of steps that were chosen by hand: the identity in the papers.
    pub metric: Metric,
}

/// Where chains begin. Neither costs privacy; only the second is possible for who does not
/// know the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// About the truth, as in the papers.
    Truth,
    /// Uniform on (-2, 2) in each coordinate, as `dpm sample` starts samplers that do not look
    /// for the posterior themselves.
    Anywhere,
}

impl Posterior {
    /// T, the power of the likelihood.
    pub fn temperature(&self) -> f64 {
        self.tempered_to.map_or(1.0, |n0| n0 / self.n as f64)
    }

    /// With `n` records where that is fewer (of a smoke test).
    pub fn problem(&self, most_records: usize) -> Result<Problem, Box<dyn Error>> {
        let posterior = Posterior {
            n: self.n.min(most_records),
            ..*self
        };
        let constants = Constants::from_json(&read(self.constants)?)?;
        let model = Model::from_source(&read(self.program)?, &constants)?;
        let truth = posterior.truth();
        let (names, columns) = posterior.data()?;
        let n = posterior.n as f64;
        let mean: Vec<f64> = columns.iter().map(|c| c.iter().sum::<f64>() / n).collect();
        let records = posterior.whitened(&columns)?;
        let named = names.into_iter().zip(columns.clone()).collect();
        let rows = Rows::from_columns(&model.columns, named, OnBadRows::Error)?;
        let exact = posterior.exact(&mean, &columns)?;
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let start_sd = posterior.start_sd.unwrap_or(exact.mean_sd);
        Ok(Problem {
            vault: Vault::new(Density::new(model), rows),
            reference: (0..REFERENCE_DRAWS)
                .map(|_| (exact.draw)(&mut rng))
                .collect(),
            n: posterior.n,
            mean: exact.mean,
            temperature: posterior.temperature(),
            records: Box::new(records),
            start_sds: vec![start_sd; truth.len()],
            truth,
            metric: Metric::Unit,
        })
    }

    fn truth(&self) -> Vec<f64> {
        let mut truth = vec![0.0; self.shape.dimension()];
        truth[1] = match self.shape {
            // Inside of the ring.
            Shape::Circle { .. } => 1.0,
            _ => 3.0,
        };
        truth
    }

    /// Variances of one record of a banana, with those of its prior.
    fn variances(&self) -> (Vec<f64>, f64) {
        match self.shape {
            Shape::PaperBanana => (vec![2000.0, 2500.0], 1e6),
            _ => {
                let [first, second, others] = THESIS_VARIANCES;
                let mut v = vec![others; self.shape.dimension()];
                v[0] = first;
                v[1] = second;
                (v, 1000.0)
            }
        }
    }

    fn bend(&self) -> f64 {
        match self.shape {
            Shape::Banana { a, .. } => a,
            _ => 20.0,
        }
    }

    /// Lower Cholesky factor of one record's covariance.
    fn factor(&self) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
        match self.shape {
            Shape::Gauss => {
                let numbers: serde_json::Value = serde_json::from_str(&read(self.constants)?)?;
                Ok(serde_json::from_value(numbers["Sigma_chol"].clone())?)
            }
            Shape::Correlated => {
                let correlation = 0.999f64;
                let rest = (1.0 - correlation * correlation).sqrt();
                Ok(vec![vec![1.0, 0.0], vec![correlation, rest]])
            }
            Shape::Circle { a } => Ok(vec![vec![1.0 / (2.0 * a).sqrt()]]),
            Shape::Banana { .. } | Shape::PaperBanana => {
                let (v, _) = self.variances();
                let entry = |i: usize, j: usize| if i == j { v[i].sqrt() } else { 0.0 };
                let row = |i| (0..v.len()).map(|j| entry(i, j)).collect();
                Ok((0..v.len()).map(row).collect())
            }
        }
    }

    /// The records, by columns.
    fn data(&self) -> Result<(Vec<String>, Columns), Box<dyn Error>> {
        let d = self.shape.dimension();
        let numbered = |format: &str| (1..=d).map(|j| format!("{format}{j}")).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut columns = vec![Vec::with_capacity(self.n); d];
        match self.shape {
            Shape::PaperBanana => {
                let file = std::fs::File::open(folder().join("paper_banana_d2.csv.gz"))?;
                let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
                for row in reader.deserialize::<(f64, f64)>().take(self.n) {
                    let (first, second) = row?;
                    columns[0].push(first);
                    columns[1].push(second);
                }
                Ok((numbered("x"), columns))
            }
            Shape::Circle { .. } => {
                let radii = (0..self.n).map(|_| 3.0 + normal(&mut rng)).collect();
                Ok((vec!["r".into()], vec![radii]))
            }
            Shape::Banana { .. } | Shape::Gauss | Shape::Correlated => {
                let factor = self.factor()?;
                // The banana's first truth is 0, so that the bend adds nothing.
                for _ in 0..self.n {
                    let x = correlated(&factor, &self.truth(), 1.0, &mut rng);
                    for (column, x) in columns.iter_mut().zip(x) {
                        column.push(x);
                    }
                }
                let dotted = matches!(self.shape, Shape::Banana { .. });
                Ok((numbered(if dotted { "x." } else { "x" }), columns))
            }
        }
    }

    fn whitened(&self, columns: &[Vec<f64>]) -> Result<Whitened, Box<dyn Error>> {
        let columns = match self.shape {
            // The square of the radius is normal around x^2 + y^2, as far as the
            // likelihood can tell.
            Shape::Circle { .. } => vec![columns[0].iter().map(|r| r * r).collect()],
            _ => columns.to_vec(),
        };
        Ok(Whitened::new(
            self.shape,
            self.bend(),
            &self.factor()?,
            &columns,
        ))
    }

    fn exact(&self, means: &[f64], columns: &[Vec<f64>]) -> Result<Exact, Box<dyn Error>> {
        let n = self.n as f64;
        let a = self.bend();
        Ok(match self.shape {
            Shape::PaperBanana | Shape::Banana { .. } => {
                // theta_1, theta_2 + a theta_1^2 and the others are independent and normal.
                let (v, prior) = self.variances();
                let weight = |v: f64| self.temperature() * n / v;
                let variances: Vec<f64> =
                    v.iter().map(|&v| 1.0 / (weight(v) + 1.0 / prior)).collect();
                let centres: Vec<f64> = (0..v.len())
                    .map(|j| weight(v[j]) * means[j] * variances[j])
                    .collect();
                let mut mean = centres.clone();
                mean[1] -= a * (centres[0] * centres[0] + variances[0]);
                let mut sds: Vec<f64> = variances.iter().map(|v| v.sqrt()).collect();
                let spread = 4.0 * centres[0].powi(2) * variances[0] + 2.0 * variances[0].powi(2);
                sds[1] = (variances[1] + a * a * spread).sqrt();
                Exact {
                    mean,
                    mean_sd: sds.iter().sum::<f64>() / sds.len() as f64,
                    draw: Box::new(move |rng| {
                        let mut theta: Vec<f64> = centres
                            .iter()
                            .zip(&variances)
                            .map(|(m, v)| m + v.sqrt() * normal(rng))
                            .collect();
                        theta[1] -= a * theta[0] * theta[0];
                        theta
                    }),
                }
            }
            // The prior's variance is more than 10^6 times the posterior's.
            Shape::Gauss | Shape::Correlated => {
                let factor = self.factor()?;
                let scale = 1.0 / n.sqrt();
                let sd = |row: &Vec<f64>| scale * row.iter().map(|l| l * l).sum::<f64>().sqrt();
                let means = means.to_vec();
                Exact {
                    mean: means.clone(),
                    mean_sd: factor.iter().map(sd).sum::<f64>() / factor.len() as f64,
                    draw: Box::new(move |rng| correlated(&factor, &means, scale, rng)),
                }
            }
            // x^2 + y^2 is normal, cut to positive values, and the angle uniform.
            Shape::Circle { a } => {
                let centre = columns[0].iter().map(|r| r * r).sum::<f64>() / n;
                let sd = 1.0 / (2.0 * a * n).sqrt();
                Exact {
                    mean: vec![0.0, 0.0],
                    mean_sd: (centre / 2.0).sqrt(),
                    draw: Box::new(move |rng| {
                        let square = loop {
                            let square = centre + sd * normal(rng);
                            if square > 0.0 {
                                break square;
                            }
                        };
                        let angle = rng.random_range(0.0..std::f64::consts::TAU);
                        vec![square.sqrt() * angle.cos(), square.sqrt() * angle.sin()]
                    }),
                }
            }
        })
    }
}

impl Problem {
    /// The starting points of the `repeat`-th run: the same for all samplers and budgets.
    /// Those about the truth are not private, and for experiments only.
    pub fn starts(&self, start: Start, repeat: u64, chains: usize) -> Vec<Vec<f64>> {
        match start {
            Start::Truth => self.starts_within(&self.start_sds, repeat, chains),
            Start::Anywhere => {
                let mut rng = ChaCha8Rng::seed_from_u64(2000 + repeat);
                let mut point = || {
                    let place = |_| rng.random_range(-2.0..2.0);
                    (0..self.truth.len()).map(place).collect()
                };
                (0..chains).map(|_| point()).collect()
            }
        }
    }

    /// About the truth, with deviates of these standard deviations.
    pub fn starts_within(&self, sds: &[f64], repeat: u64, chains: usize) -> Vec<Vec<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + repeat);
        let mut start = || {
            let truth = self.truth.iter().zip(sds);
            truth.map(|(t, sd)| t + sd * normal(&mut rng)).collect()
        };
        (0..chains).map(|_| start()).collect()
    }

    /// How long a question about all records takes.
    pub fn seconds_of_a_question(&self) -> f64 {
        let started = Instant::now();
        for _ in 0..3 {
            self.vault
                .exact(&self.truth, dpm::NotPrivate::acknowledged());
        }
        started.elapsed().as_secs_f64() / 3.0
    }
}

pub type Columns = Vec<Vec<f64>>;

type Draw = Box<dyn Fn(&mut ChaCha8Rng) -> Vec<f64>>;

/// A posterior that can be drawn from.
struct Exact {
    mean: Vec<f64>,
    /// Mean over coordinates of the standard deviations.
    mean_sd: f64,
    draw: Draw,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models")
}

/// A file of the folder `models`.
pub fn read(name: &str) -> Result<String, String> {
    let path = folder().join(name);
    std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
}

pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// mean + scale L z.
fn correlated(factor: &[Vec<f64>], mean: &[f64], scale: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let z: Vec<f64> = mean.iter().map(|_| normal(rng)).collect();
    factor
        .iter()
        .zip(mean)
        .map(|(row, m)| m + scale * row.iter().zip(&z).map(|(l, z)| l * z).sum::<f64>())
        .collect()
}

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

use dpm::testing::density::Density;
use dpm::testing::privacy::{NotPrivate, Rows};
use dpm::testing::sampler::Metric;
use dpm::{Constants, Model, OnBadRows, Vault};

use crate::clipped::{Clipping, Whitened};
use crate::published;

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
    origin: Origin,
}

/// Where records come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Made with this seed.
    Seed(u64),
    /// A file of the folder `models`.
    File(&'static str),
    /// Made as the paper's code makes them, which is where starting points are from, too.
    Published,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Independent normal means, the second along a parabola of the first.
    Banana { d: usize, a: f64 },
    /// The paper's banana.
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
        origin: Origin::Seed(seed),
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
    origin: Origin::File("paper_banana_d2.csv.gz"),
};
/// The same with the records of the published code.
pub const PUBLISHED_BANANA: Posterior = Posterior {
    origin: Origin::Published,
    ..PAPER_BANANA
};
pub const PAPER_GAUSS: Posterior = Posterior {
    name: "gauss",
    shape: Shape::Gauss,
    n: 100_000,
    tempered_to: None,
    start_sd: None,
    program: "paper_gauss_d10.dpm",
    constants: "paper_gauss_d10.constants.json",
    origin: Origin::Seed(15_621),
};
/// The same with the covariance of the published code, whose condition number is 377 (that of
/// the one above is 43,000), and its records.
pub const PUBLISHED_GAUSS: Posterior = Posterior {
    constants: "papers/gauss_d10_published.constants.json",
    origin: Origin::Published,
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
    origin: Origin::Seed(107),
};
pub const CIRCLE: Posterior = Posterior {
    name: "circle",
    shape: Shape::Circle { a: 1e-5 },
    n: 100_000,
    tempered_to: None,
    start_sd: Some(0.1),
    program: "papers/circle.dpm",
    constants: "papers/circle.constants.json",
    origin: Origin::Seed(108),
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
    /// Whether starts are those of the paper's code.
    pub published_starts: bool,
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
            vault: Vault::new(Density::new(model), rows)?,
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
            published_starts: self.origin == Origin::Published,
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

    /// The names of the columns and the records, by columns.
    fn data(&self) -> Result<(Vec<String>, Columns), Box<dyn Error>> {
        let d = self.shape.dimension();
        let dotted = matches!(self.shape, Shape::Banana { .. });
        let names = match self.shape {
            Shape::Circle { .. } => vec!["r".into()],
            _ if dotted => (1..=d).map(|j| format!("x.{j}")).collect(),
            _ => (1..=d).map(|j| format!("x{j}")).collect(),
        };
        let columns = match self.origin {
            Origin::File(name) => self.stored(name)?,
            Origin::Seed(seed) => self.made(seed)?,
            Origin::Published => self.published()?,
        };
        Ok((names, columns))
    }

    fn stored(&self, name: &str) -> Result<Columns, Box<dyn Error>> {
        let mut columns = vec![Vec::with_capacity(self.n); self.shape.dimension()];
        let file = std::fs::File::open(folder().join(name))?;
        let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
        for row in reader.deserialize::<Vec<f64>>().take(self.n) {
            for (column, x) in columns.iter_mut().zip(row?) {
                column.push(x);
            }
        }
        Ok(columns)
    }

    fn made(&self, seed: u64) -> Result<Columns, Box<dyn Error>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        if let Shape::Circle { .. } = self.shape {
            return Ok(vec![(0..self.n).map(|_| 3.0 + normal(&mut rng)).collect()]);
        }
        let (factor, truth) = (self.factor()?, self.truth());
        // The banana's first truth is 0, so that the bend adds nothing.
        Ok(by_columns((0..self.n).map(|_| {
            let deviates: Vec<f64> = truth.iter().map(|_| normal(&mut rng)).collect();
            correlated(&factor, &truth, 1.0, &deviates)
        })))
    }

    fn published(&self) -> Result<Columns, Box<dyn Error>> {
        let (factor, truth) = (self.factor()?, self.truth());
        let deviates = match self.shape {
            Shape::PaperBanana => {
                let [first, second] = published::banana(self.n);
                first
                    .into_iter()
                    .zip(second)
                    .map(|(a, b)| vec![a, b])
                    .collect()
            }
            Shape::Gauss => published::gauss(self.n, self.shape.dimension()),
            _ => return Err("the paper's code has no such records".into()),
        };
        let record = |z: &Vec<f64>| correlated(&factor, &truth, 1.0, z);
        Ok(by_columns(deviates.iter().map(record)))
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
                    draw: Box::new(move |rng| {
                        let z: Vec<f64> = means.iter().map(|_| normal(rng)).collect();
                        correlated(&factor, &means, scale, &z)
                    }),
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
            Start::Truth if self.published_starts => {
                let before = (repeat - 1) * chains as u64;
                let start = |chain| {
                    let deviates = published::start(before + chain, self.truth.len());
                    around(&self.truth, &self.start_sds, deviates)
                };
                (0..chains as u64).map(start).collect()
            }
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
            let deviates = sds.iter().map(|_| normal(&mut rng)).collect();
            around(&self.truth, sds, deviates)
        };
        (0..chains).map(|_| start()).collect()
    }

    /// How long a question about all records takes.
    pub fn seconds_of_a_question(&self) -> f64 {
        let started = Instant::now();
        for _ in 0..3 {
            self.vault.exact(&self.truth, NotPrivate::acknowledged());
        }
        started.elapsed().as_secs_f64() / 3.0
    }
}

/// centre + sds z.
fn around(centre: &[f64], sds: &[f64], deviates: Vec<f64>) -> Vec<f64> {
    let terms = centre.iter().zip(sds).zip(deviates);
    terms.map(|((c, sd), z)| c + sd * z).collect()
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
fn correlated(factor: &[Vec<f64>], mean: &[f64], scale: f64, z: &[f64]) -> Vec<f64> {
    factor
        .iter()
        .zip(mean)
        .map(|(row, m)| m + scale * row.iter().zip(z).map(|(l, z)| l * z).sum::<f64>())
        .collect()
}

fn by_columns(records: impl Iterator<Item = Vec<f64>>) -> Columns {
    let mut columns = Columns::new();
    for record in records {
        columns.resize(record.len(), Vec::new());
        for (column, x) in columns.iter_mut().zip(record) {
            column.push(x);
        }
    }
    columns
}

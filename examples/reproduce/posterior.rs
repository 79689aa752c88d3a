//! The models' data, exact posteriors and starting points.

use std::error::Error;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use dpm::{Constants, Density, Model, OnBadRows, Rows, Vault};

/// Records of each model.
pub const N: usize = 100_000;

/// How bent the banana is, and the variances of one record.
const BEND: f64 = 20.0;
const BANANA_VARIANCES: [f64; 2] = [2000.0, 2500.0];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posterior {
    /// Two normal means, the second along a parabola of the first.
    Banana,
    /// Ten normal means with a known covariance.
    Gauss,
}

/// A data set in its vault, and what is known of its posterior.
pub struct Problem {
    pub vault: Vault,
    /// 1,000 exact draws.
    pub reference: Vec<Vec<f64>>,
    /// The true parameters plus normal deviates of the mean posterior sd, one point a
    /// chain.
    pub starts: Vec<Vec<f64>>,
    pub records: Records,
}

/// The records outside of the vault, as normal variables with a mean that follows from
/// theta and a known precision: what it takes to see how many log-ratios are clipped.
/// Only data that were made up may be looked at like this.
pub struct Records {
    posterior: Posterior,
    columns: Vec<Vec<f64>>,
    precision: Vec<Vec<f64>>,
}

impl Records {
    /// How many log-ratios from `from` to `to` are larger than `bound`, in nats.
    pub fn beyond(&self, from: &[f64], to: &[f64], bound: f64) -> usize {
        // l(to) - l(from) = (m' - m)' P (x - (m + m')/2)
        let (m, m_to) = (self.posterior.mean(from), self.posterior.mean(to));
        let step: Vec<f64> = m_to.iter().zip(&m).map(|(b, a)| b - a).collect();
        let weights: Vec<f64> = self.precision.iter().map(|row| dot(row, &step)).collect();
        let middle: Vec<f64> = m_to
            .iter()
            .zip(&m)
            .map(|(b, a)| f64::midpoint(*a, *b))
            .collect();
        let constant = dot(&weights, &middle);
        let ratio = |i: usize| {
            let terms = self.columns.iter().zip(&weights);
            terms.map(|(column, w)| w * column[i]).sum::<f64>() - constant
        };
        (0..N).filter(|&i| ratio(i).abs() > bound).count()
    }
}

impl Posterior {
    /// The mean of a record.
    fn mean(self, theta: &[f64]) -> Vec<f64> {
        match self {
            Posterior::Banana => vec![theta[0], theta[1] + BEND * theta[0] * theta[0]],
            Posterior::Gauss => theta.to_vec(),
        }
    }

    fn model(self) -> &'static str {
        match self {
            Posterior::Banana => "paper_banana_d2",
            Posterior::Gauss => "paper_gauss_d10",
        }
    }

    /// The problem of the `repeat`-th run: the same data each time, other starts.
    pub fn problem(self, repeat: u64, chains: usize) -> Result<Problem, Box<dyn Error>> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/models"));
        let read = |extension: &str| {
            let path = folder.join(format!("{}{extension}", self.model()));
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        let json = read(".constants.json")?;
        let numbers: serde_json::Value = serde_json::from_str(&json)?;
        let constants = Constants::from_json(&json)?;
        let model = Model::from_source(&read(".dpm")?, &constants)?;
        let mut of_starts = ChaCha8Rng::seed_from_u64(1000 + repeat);
        let mut of_draws = ChaCha8Rng::seed_from_u64(7);
        match self {
            Posterior::Banana => {
                let (columns, mean) = banana_data(&folder)?;
                let records = Records {
                    posterior: self,
                    columns: columns.iter().map(|(_, c)| c.clone()).collect(),
                    precision: vec![
                        vec![1.0 / BANANA_VARIANCES[0], 0.0],
                        vec![0.0, 1.0 / BANANA_VARIANCES[1]],
                    ],
                };
                let rows = Rows::from_columns(&model.columns, columns, OnBadRows::Error)?;
                let a = BEND;
                // theta_1 ~ N(m_1, v_1 / n), theta_2 + a theta_1^2 ~ N(m_2, v_2 / n): the
                // prior's variance, 1e6, is as good as none.
                let variances = BANANA_VARIANCES.map(|v| v / N as f64);
                let draw = |rng: &mut ChaCha8Rng| {
                    let first = mean[0] + variances[0].sqrt() * normal(rng);
                    let bend = mean[1] + variances[1].sqrt() * normal(rng);
                    vec![first, bend - a * first * first]
                };
                let sd_2 = (variances[1]
                    + a * a
                        * (4.0 * mean[0] * mean[0] * variances[0]
                            + 2.0 * variances[0] * variances[0]))
                    .sqrt();
                let sd = f64::midpoint(variances[0].sqrt(), sd_2);
                Ok(Problem {
                    vault: Vault::new(Density::new(model), rows),
                    reference: (0..1000).map(|_| draw(&mut of_draws)).collect(),
                    starts: starts(&[0.0, 3.0], sd, chains, &mut of_starts),
                    records,
                })
            }
            Posterior::Gauss => {
                let factor = matrix(&numbers["Sigma_chol"])?;
                let d = factor.len();
                let mut truth = vec![0.0; d];
                truth[1] = 3.0;
                let mut of_data = ChaCha8Rng::seed_from_u64(15_621);
                let mut columns = vec![Vec::new(); d];
                for _ in 0..N {
                    let x = correlated(&factor, &truth, 1.0, &mut of_data);
                    for (column, x) in columns.iter_mut().zip(x) {
                        column.push(x);
                    }
                }
                let mean: Vec<f64> = columns
                    .iter()
                    .map(|c| c.iter().sum::<f64>() / N as f64)
                    .collect();
                let records = Records {
                    posterior: self,
                    columns: columns.clone(),
                    precision: precision(&factor),
                };
                let named = columns
                    .into_iter()
                    .enumerate()
                    .map(|(j, c)| (format!("x{}", j + 1), c))
                    .collect();
                let rows = Rows::from_columns(&model.columns, named, OnBadRows::Error)?;
                let scale = 1.0 / (N as f64).sqrt();
                let sd = factor
                    .iter()
                    .map(|row| scale * row.iter().map(|l| l * l).sum::<f64>().sqrt())
                    .sum::<f64>()
                    / d as f64;
                Ok(Problem {
                    vault: Vault::new(Density::new(model), rows),
                    reference: (0..1000)
                        .map(|_| correlated(&factor, &mean, scale, &mut of_draws))
                        .collect(),
                    starts: starts(&truth, sd, chains, &mut of_starts),
                    records,
                })
            }
        }
    }
}

type Columns = Vec<(String, Vec<f64>)>;

/// The banana's records, and their means.
fn banana_data(folder: &Path) -> Result<(Columns, Vec<f64>), Box<dyn Error>> {
    let file = std::fs::File::open(folder.join("paper_banana_d2.csv.gz"))?;
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(file));
    let mut columns = [Vec::with_capacity(N), Vec::with_capacity(N)];
    for row in reader.deserialize::<(f64, f64)>() {
        let (first, second) = row?;
        columns[0].push(first);
        columns[1].push(second);
    }
    let mean = columns
        .iter()
        .map(|c| c.iter().sum::<f64>() / c.len() as f64)
        .collect();
    let named = ["x1", "x2"].map(str::to_string).into_iter().zip(columns);
    Ok((named.collect(), mean))
}

/// The inverse of L L'.
fn precision(factor: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = factor.len();
    // Column k of L^-1, by forward substitution.
    let inverse: Vec<Vec<f64>> = (0..d)
        .map(|k| {
            let mut x = vec![0.0; d];
            for i in k..d {
                let unit = if i == k { 1.0 } else { 0.0 };
                x[i] = (unit - dot(&factor[i], &x)) / factor[i][i];
            }
            x
        })
        .collect();
    let entry = |i: usize, j: usize| dot(&inverse[i], &inverse[j]);
    (0..d)
        .map(|i| (0..d).map(|j| entry(i, j)).collect())
        .collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
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

fn starts(truth: &[f64], sd: f64, chains: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    (0..chains)
        .map(|_| truth.iter().map(|t| t + sd * normal(rng)).collect())
        .collect()
}

fn matrix(json: &serde_json::Value) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    Ok(serde_json::from_value(json.clone())?)
}

//! Posteriors of public data sets, with reference draws from another system.

use std::collections::HashMap;
use std::error::Error;
use std::io::Read;
use std::path::Path;

use dpm::testing::density::Density;
use dpm::testing::privacy::Rows;
use dpm::testing::sampler::Metric;
use dpm::{Constants, Model, OnBadRows, Vault};

use crate::clipped::Clipping;
use crate::problem::{Columns, Problem, REFERENCE_DRAWS, folder, read};

/// Records that are looked at to see how many are clipped.
const LOOKED_AT: usize = 2000;

/// A data set of people or households; files are in the folder `models`.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    pub name: &'static str,
    pub program: &'static str,
    pub constants: Option<&'static str>,
    pub data: &'static str,
    /// Draws from the posterior by another system, on the parameters' own scale.
    pub reference: &'static str,
}

pub const ADULT: Survey = Survey {
    name: "adult",
    program: "adult_income.dpm",
    constants: None,
    data: "adult_income.csv.gz",
    reference: "papers/reference/adult_income.csv.gz",
};
pub const WELLS: Survey = Survey {
    name: "wells",
    program: "wells_data-wells_dae_inter_model.dpm",
    constants: Some("wells_data-wells_dae_inter_model.constants.json"),
    data: "wells_data-wells_dae_inter_model.csv",
    reference: "papers/reference/wells.csv.gz",
};
pub const WAGES: Survey = Survey {
    name: "cps1988",
    program: "cps1988_wages.dpm",
    constants: None,
    data: "cps1988_wages.csv.gz",
    reference: "papers/reference/cps1988_wages.csv.gz",
};

impl Survey {
    /// With the first records only where there are more than `most_records` (of a smoke test,
    /// whose reference is then another posterior's).
    ///
    /// The truth is the reference's mean, around which chains start with the posterior's own
    /// standard deviations; steps are in units of these. Both are a look at the data.
    pub fn problem(&self, most_records: usize) -> Result<Problem, Box<dyn Error>> {
        let constants = match self.constants {
            Some(file) => Constants::from_json(&read(file)?)?,
            None => Constants::none(),
        };
        let model = Model::from_source(&read(self.program)?, &constants)?;
        let (names, mut columns) = numbers(self.data)?;
        for column in &mut columns {
            column.truncate(most_records);
        }
        let declared: Vec<Vec<f64>> = model
            .columns
            .iter()
            .map(|declared| {
                let at = names.iter().position(|name| *name == declared.name);
                at.map(|at| columns[at].clone())
                    .ok_or_else(|| format!("{} has no column {}", self.data, declared.name))
            })
            .collect::<Result<_, _>>()?;
        let n = declared.first().map_or(0, Vec::len);
        let named = model.columns.iter().map(|column| column.name.clone());
        let rows = Rows::from_columns(
            &model.columns,
            named.zip(declared.clone()).collect(),
            OnBadRows::Error,
        )?;
        let records = Looked::new(Density::new(model.clone()), &declared, n);
        let density = Density::new(model);
        let (parameters, draws) = numbers(self.reference)?;
        if !density
            .output_names()
            .eq(parameters.iter().map(String::as_str))
        {
            return Err(format!("{} has other parameters than the model", self.reference).into());
        }
        let reference: Vec<Vec<f64>> = (0..draws[0].len())
            .map(|i| draws.iter().map(|column| column[i]).collect())
            .collect();
        if reference.len() != REFERENCE_DRAWS {
            return Err(format!("{} has {} draws", self.reference, reference.len()).into());
        }
        let free: Vec<Vec<f64>> = reference
            .iter()
            .map(|draw| unconstrained(&density, &parameters, draw))
            .collect::<Result<_, _>>()?;
        let (truth, start_sds) = moments(&free);
        Ok(Problem {
            vault: Vault::new(density, rows)?,
            n,
            mean: moments(&reference).0,
            reference,
            temperature: 1.0,
            records: Box::new(records),
            truth,
            metric: Metric::Diagonal(start_sds.iter().map(|sd| sd * sd).collect()),
            published_starts: false,
            start_sds,
        })
    }
}

/// Names and columns of a CSV of numbers.
fn numbers(name: &str) -> Result<(Vec<String>, Columns), Box<dyn Error>> {
    let path = folder().join(name);
    let file = std::fs::File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let text: Box<dyn Read> = match Path::new(name).extension() {
        Some(end) if end == "gz" => Box::new(flate2::read::GzDecoder::new(file)),
        _ => Box::new(file),
    };
    let mut reader = csv::Reader::from_reader(text);
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let mut columns = vec![Vec::new(); names.len()];
    for row in reader.deserialize::<Vec<f64>>() {
        for (column, value) in columns.iter_mut().zip(row?) {
            column.push(value);
        }
    }
    Ok((names, columns))
}

/// Coordinates of a draw that has a value for each of the names.
pub fn unconstrained(
    density: &Density,
    names: &[String],
    draw: &[f64],
) -> Result<Vec<f64>, String> {
    let values: HashMap<&str, f64> = names
        .iter()
        .map(String::as_str)
        .zip(draw.iter().copied())
        .collect();
    density.unconstrain(|name, i| {
        let element = values.get(name).or_else(|| {
            let element = format!("{name}.{}", i + 1);
            values.get(element.as_str())
        });
        element
            .copied()
            .ok_or_else(|| format!("`{name}` has no value"))
    })
}

/// Mean and standard deviation of each coordinate.
fn moments(points: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let n = points.len() as f64;
    let d = points.first().map_or(0, Vec::len);
    let of_coordinate = |j: usize| {
        let mean = points.iter().map(|p| p[j]).sum::<f64>() / n;
        let squares = points.iter().map(|p| (p[j] - mean).powi(2)).sum::<f64>();
        (mean, (squares / (n - 1.0)).sqrt())
    };
    (0..d).map(of_coordinate).unzip()
}

/// Some of the records, by the columns that their likelihood reads.
struct Looked {
    density: Density,
    columns: Vec<Vec<f64>>,
    n: usize,
}

impl Looked {
    fn new(density: Density, declared: &[Vec<f64>], n: usize) -> Looked {
        let stride = n.div_ceil(LOOKED_AT).max(1);
        let part: Vec<Vec<f64>> = declared
            .iter()
            .map(|column| column.iter().step_by(stride).copied().collect())
            .collect();
        let n = n.div_ceil(stride);
        let (columns, _) = density.load_columns(&part, n);
        Looked {
            density,
            columns,
            n,
        }
    }
}

impl Clipping for Looked {
    fn ratios_beyond(&self, from: &[f64], to: &[f64], bound: f64) -> f64 {
        let values = |at| {
            self.density
                .record_log_likelihoods(at, &self.columns, self.n)
        };
        let pairs = values(from).into_iter().zip(values(to));
        pairs.filter(|(a, b)| (b - a).abs() > bound).count() as f64 / self.n as f64
    }

    fn gradients_beyond(&self, theta: &[f64], bound: f64) -> f64 {
        let gradients = self.density.record_gradients(theta, &self.columns, self.n);
        let length = |g: &[f64]| g.iter().map(|x| x * x).sum::<f64>().sqrt();
        let each = gradients.chunks_exact(theta.len());
        each.filter(|g| length(g) > bound).count() as f64 / self.n as f64
    }
}

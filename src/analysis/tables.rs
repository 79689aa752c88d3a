//! Tables made up from a model, at parameters that are drawn from its prior or given.

use serde_json::Value;

use super::error::Error;
use super::initial::{unconstrained_point, values_of};
use crate::density::{Density, PublicSample, Simulator};
use crate::model::{Model, RecordColumn};
use crate::sampler::{PriorPoints, SampleError, public_rng};

/// Tables made up from a model: parameters from its prior, or given; outcomes from its likelihood;
/// the other columns, covariates, as a codebook guesses ([`Model::with_codebook`]), or else uniform
/// between their declared bounds (a standard normal or exponential distribution where one is missing).
/// No data are read.
///
/// Outcomes are drawn within their declared bounds, from the density as the model has it there.
///
/// ```
/// use dpm::{Constants, Model, PrivateData, Tables};
///
/// let model = Model::from_source(
///     "record { real<lower=0, upper=10> dose; real<lower=-50, upper=50> response; }
///      parameters { real slope; real<lower=0> sigma; }
///      model {
///        slope ~ normal(0, 1);
///        sigma ~ exponential(1);
///        response ~ normal(slope * dose, sigma);
///      }",
///     &Constants::none(),
/// )?;
/// let table = Tables::from_prior(&model, 500)?.seed(3).table(0);
/// let (name, doses) = table.columns().next().unwrap();
/// assert_eq!((name, doses.len()), ("dose", 500));
/// // What a run should find, in the form that `Analysis::start_at` takes.
/// assert!(table.parameters()["sigma"].as_f64() > Some(0.0));
/// let vault = PrivateData::from_columns(table.columns()).bind(&model)?;
/// # let _ = vault;
/// # Ok::<(), dpm::Error>(())
/// ```
pub struct Tables {
    density: Density,
    rows: usize,
    seed: u64,
    public: Option<PublicSample>,
    points: Points,
}

enum Points {
    Prior(PriorPoints),
    /// Unconstrained; the tables take them in turn.
    Given(Vec<Vec<f64>>),
}

/// A table made up from a model.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<RecordColumn>,
    /// `[columns][rows]`, in declaration order.
    values: Vec<Vec<f64>>,
    parameters: Value,
}

impl Tables {
    /// Tables of so many rows, each at a draw of its own from the prior.
    ///
    /// # Errors
    ///
    /// No point with a finite prior density is found.
    pub fn from_prior(model: &Model, rows: usize) -> Result<Tables, Error> {
        let density = Density::new(model.clone());
        let prior = PriorPoints::new(&density).map_err(SampleError::from)?;
        Ok(Tables::new(density, rows, Points::Prior(prior)))
    }

    /// Tables of so many rows at these values of the parameters, `{"mu": 0, "beta": [1, 2]}`; or at
    /// those of a list of such objects, in turn.
    ///
    /// # Errors
    ///
    /// A parameter without a value, or with one that it cannot have; an empty list.
    pub fn at_values(model: &Model, rows: usize, values: &Value) -> Result<Tables, Error> {
        let density = Density::new(model.clone());
        let list = match values {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        if list.is_empty() {
            return Err(Error::InitialPoint(
                "expected an object of parameter values, or a list of them".into(),
            ));
        }
        let point = |(i, value): (usize, &Value)| {
            unconstrained_point(&density, value)
                .map_err(|e| Error::InitialPoint(format!("point {}: {e}", i + 1)))
        };
        let points: Result<_, _> = list.iter().enumerate().map(point).collect();
        Ok(Tables::new(density, rows, Points::Given(points?)))
    }

    fn new(density: Density, rows: usize, points: Points) -> Tables {
        Tables {
            density,
            rows,
            seed: 1,
            public: None,
            points,
        }
    }

    /// Everything random follows from it. Default: 1.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Tables {
        self.seed = seed;
        self
    }

    /// Takes covariates from the rows of a public table, at random.
    #[must_use]
    pub(crate) fn covariates_from(mut self, public: PublicSample) -> Tables {
        self.public = Some(public);
        self
    }

    /// The parameters with no proper prior, for which a standard normal (on the unconstrained scale)
    /// stands in. None where values are given.
    pub fn without_prior(&self) -> Vec<&str> {
        let Points::Prior(prior) = &self.points else {
            return Vec::new();
        };
        let parameters = self.density.model().parameters.iter();
        let improper = parameters.filter(|p| {
            let own = p.offset..p.offset + p.free_length;
            prior.stand_ins().iter().any(|j| own.contains(j))
        });
        improper.map(|p| p.name.as_str()).collect()
    }

    /// The table of that number. Each is made independently of the others, whatever their order.
    pub fn table(&self, number: usize) -> Table {
        let mut rng = public_rng(self.seed, number);
        let theta = match &self.points {
            Points::Prior(prior) => prior.draw(&self.density, &mut rng),
            Points::Given(points) => points[number % points.len()].clone(),
        };
        let simulator = Simulator::new(&self.density).precise();
        Table {
            columns: self.model().columns.clone(),
            values: simulator.table(&theta, self.rows, self.public.as_ref(), &mut rng),
            parameters: values_of(&self.density, &theta),
        }
    }

    /// The model that the tables are made from.
    pub fn model(&self) -> &Model {
        self.density.model()
    }

    /// The number of rows of each table.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

impl Table {
    /// The name and the values of each column, in the order of the program: `dist`, and `x.1` for an
    /// element. A factor has its ints.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &[f64])> {
        let declared = self.declared();
        declared.map(|(column, values)| (column.name.as_str(), values))
    }

    /// The values of the parameters at which the table was made.
    pub fn parameters(&self) -> &Value {
        &self.parameters
    }

    pub(crate) fn declared(&self) -> impl Iterator<Item = (&RecordColumn, &[f64])> {
        self.columns
            .iter()
            .zip(self.values.iter().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Constants;

    fn model() -> Model {
        let source = "record { real<lower=-9, upper=9> y; factor(\"no\", \"yes\") f; }
            parameters { real mu; matrix[2, 3] m; array[2] simplex[2] s; real flat; }
            model { mu ~ normal(0, 1); to_vector(m) ~ normal(0, 1);
                    y ~ normal(mu + m[1, 2] * f + s[1][1] + 0 * flat, 1); }";
        Model::from_source(source, &Constants::none()).unwrap()
    }

    // If it failed: parameters that were written beside a table would not be those of the table.
    #[test]
    fn parameters_are_found_again_from_what_is_said_of_them() {
        let tables = Tables::from_prior(&model(), 3).unwrap();
        assert_eq!(tables.without_prior(), ["flat"]);
        let table = tables.table(4);
        let said = table.parameters();
        assert_eq!(said["m"].as_array().unwrap().len(), 2);
        assert_eq!(said["m"][0].as_array().unwrap().len(), 3);
        let again = Tables::at_values(&model(), 3, said).unwrap();
        assert!(again.without_prior().is_empty());
        let theta = |tables: &Tables| match &tables.points {
            Points::Given(points) => points[0].clone(),
            Points::Prior(prior) => prior.draw(&tables.density, &mut public_rng(1, 4)),
        };
        for (a, b) in theta(&tables).iter().zip(theta(&again)) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
    }

    #[test]
    fn a_table_depends_on_its_number_and_the_seed_alone() {
        let tables = Tables::from_prior(&model(), 2500).unwrap().seed(5);
        let values = |table: &Table| table.values.clone();
        let first = tables.table(1);
        assert_ne!(values(&tables.table(0)), values(&first));
        assert_eq!(values(&tables.table(1)), values(&first));
        let names: Vec<&str> = first.columns().map(|(name, _)| name).collect();
        assert_eq!(names, ["y", "f"]);
        assert!(first.columns().all(|(_, values)| values.len() == 2500));
        assert!(Tables::at_values(&model(), 3, &json!([])).is_err());
        assert!(Tables::at_values(&model(), 3, &json!({"mu": 1})).is_err());
    }
}

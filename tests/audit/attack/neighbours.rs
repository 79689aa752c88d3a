//! Data sets that differ in one unit, and the models that read them.

use std::collections::BTreeSet;

use dpm::accounting::Relation;
use dpm::testing::density::Density;
use dpm::testing::model::RecordColumn;
use dpm::testing::privacy::Rows;
use dpm::{Constants, Model, OnBadRows, Vault};

use super::Lcg;

/// Models whose records move the sums through all kinds of interface: shared scalars, a
/// linear predictor, a gather. The last has more coordinates than a record has numbers.
pub const MODELS: [&str; 4] = [
    "record { int<lower=0, upper=1> y; real x; }
     parameters { real a; real b; }
     model { a ~ normal(0, 1); y ~ bernoulli_logit(a + b * x); }",
    "record { real y; int<lower=1, upper=3> g; }
     parameters { vector[3] raw; real m; real<lower=0> s; }
     model { vector[3] a = m + s * raw; raw ~ normal(0, 1); y ~ student_t(4, a[g], s); }",
    "record { int<lower=0> y; real x; }
     parameters { vector[2] b; }
     model { y ~ poisson_log(b[1] + square(b[2]) * x + b[2] * exp(-x * b[1])); }",
    "record { real<lower=-5, upper=5> y; real<lower=-1, upper=1> x; }
     parameters { vector[8] b; real<lower=0> s; }
     model { b ~ normal(0, 3); s ~ exponential(1);
       y ~ normal(b[1] + b[2] * x + b[3] * square(x) + b[4] * sin(3 * x) + b[5] * cos(3 * x)
         + b[6] * sin(6 * x) + b[7] * cos(6 * x) + b[8] * exp(x), s); }",
];

/// Models whose records' information is public: they see the parameters through the same numbers,
/// of which their log-likelihood is a quadratic function.
pub const PUBLIC_MODELS: [&str; 2] = [
    "record { real y; } parameters { real a; real b; }
     model { a ~ normal(0, 3); b ~ normal(0, 1); y ~ normal(a + square(b), 1); }",
    "record { real y; real z; } parameters { real a; real b; real c; }
     model { a ~ normal(0, 3); b ~ normal(0, 3); c ~ normal(0, 1);
       y ~ normal(a + exp(c), 0.5); z ~ normal(b - c, 2); }",
];

/// Models of which no column has a law. In the first second derivatives are of either sign: those of
/// a record and of the same with `s` turned point away from each other. In the second they are
/// positive, and those of a record and of the same with `x` turned are about orthogonal.
pub const LAWLESS_MODELS: [&str; 2] = [
    "record { real<lower=-1, upper=1> s; real<lower=-2, upper=2> y; } parameters { real a; }
     model { a ~ normal(0, 2); target += -s * log1p_exp(y * a); }",
    "record { real<lower=0.5, upper=1> s; real<lower=-1, upper=1> y; real<lower=-1, upper=1> x; }
     parameters { real a; real b; }
     model { a ~ normal(0, 2); b ~ normal(0, 2); target += -s * log1p_exp(y * a + x * b); }",
];

/// Rows of a table: a value per column and row, and the unit of each row where rows
/// share units.
#[derive(Clone)]
pub struct Table {
    pub columns: Vec<Vec<f64>>,
    pub units: Option<Vec<u64>>,
}

impl Table {
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The number of units.
    pub fn records(&self) -> u64 {
        let units = self.units.as_ref();
        let distinct = units.map(|units| units.iter().collect::<BTreeSet<_>>().len());
        distinct.unwrap_or(self.rows()) as u64
    }

    fn picked(&self, rows: &[usize]) -> Table {
        let values = |column: &Vec<f64>| rows.iter().map(|&row| column[row]).collect();
        Table {
            columns: self.columns.iter().map(values).collect(),
            units: self
                .units
                .as_ref()
                .map(|units| rows.iter().map(|&row| units[row]).collect()),
        }
    }

    pub fn with(&self, other: &Table) -> Table {
        let mut all = self.clone();
        for (column, more) in all.columns.iter_mut().zip(&other.columns) {
            column.extend(more);
        }
        if let (Some(units), Some(more)) = (&mut all.units, &other.units) {
            units.extend(more);
        }
        all
    }

    /// The same rows in another order.
    pub fn shuffled(&self, rng: &mut Lcg) -> Table {
        let mut order: Vec<usize> = (0..self.rows()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i + 1));
        }
        self.picked(&order)
    }

    /// Each row so many times, as the rows of one unit.
    pub fn in_units(&self, times: usize) -> Table {
        let rows: Vec<usize> = (0..self.rows() * times).map(|i| i / times).collect();
        Table {
            units: Some(rows.iter().map(|&row| row as u64).collect()),
            ..self.picked(&rows)
        }
    }

    /// These rows, loaded as columns of a model.
    pub fn loaded(&self, columns: &[RecordColumn]) -> Rows {
        let named = columns.iter().zip(&self.columns);
        let named = named.map(|(c, values)| (c.name.clone(), values.clone()));
        // Bad rows are masked, so that the ugliest values get as far as they can.
        let rows = Rows::from_columns(columns, named.collect(), OnBadRows::Skip)
            .unwrap_or_else(|e| panic!("{e}"));
        match &self.units {
            None => rows,
            Some(units) => rows.by_unit(units).unwrap_or_else(|e| panic!("{e}")),
        }
    }

    /// The vault with these rows in it.
    pub fn vault(&self, model: &Model) -> Vault {
        Vault::new(Density::new(model.clone()), self.loaded(&model.columns)).unwrap()
    }
}

pub fn model(source: &str) -> Model {
    Model::from_source(source, &Constants::none()).unwrap_or_else(|e| panic!("{e}"))
}

/// Rows with the worst values that a file can hold among them, each its own unit, or
/// all of `unit`.
pub fn ugly_rows(rng: &mut Lcg, model: &Model, rows: usize, unit: Option<u64>) -> Table {
    let mut columns: Vec<Vec<f64>> = vec![Vec::with_capacity(rows); model.columns.len()];
    for row in 0..rows {
        // A duplicate of the row before, now and then.
        let again = row > 0 && rng.below(5) == 0;
        for (column, into) in model.columns.iter().zip(&mut columns) {
            let value = if again {
                into[row - 1]
            } else {
                ugly_value(rng, column.is_int, column.lower, column.upper)
            };
            into.push(value);
        }
    }
    Table {
        columns,
        units: unit.map(|unit| vec![unit; rows]),
    }
}

/// Rows without a value, each its own unit, or all of `unit`.
fn blank_rows(model: &Model, rows: usize, unit: Option<u64>) -> Table {
    Table {
        columns: vec![vec![f64::NAN; rows]; model.columns.len()],
        units: unit.map(|unit| vec![unit; rows]),
    }
}

fn ugly_value(rng: &mut Lcg, is_int: bool, lower: Option<f64>, upper: Option<f64>) -> f64 {
    const UGLY: [f64; 14] = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        -1e308,
        5e-324,
        -2e-310,
        -0.0,
        1e15,
        1e-300,
        710.0,
        -745.5,
        1e154,
        -9007199254740993.0,
    ];
    match (is_int, lower, upper) {
        (true, Some(a), Some(b)) => match rng.below(12) {
            0 => f64::NAN,
            1 => b + 1.0,
            _ => a + rng.below((b - a) as usize + 1) as f64,
        },
        (true, ..) => rng.of(&[0.0, 1.0, 2.0, 7.0, 1e9, f64::NAN, -1.0, 0.5]),
        (_, Some(a), Some(b)) if rng.below(3) == 0 => rng.of(&[a, b, 2.0 * b, f64::NAN, 1e308]),
        _ if rng.below(4) == 0 => rng.of(&UGLY),
        _ => 6.0 * rng.uniform() - 3.0,
    }
}

/// Two neighbours under `relation`, the second with one unit replaced or left blank, or without
/// it; the other units have the same places in both. The rows are their own units, or a unit has up
/// to nine.
pub fn ugly_pair(
    rng: &mut Lcg,
    model: &Model,
    relation: Relation,
    shared_units: bool,
) -> (Table, Table) {
    // Sometimes nothing but the one unit is there that counts: then the rest is a row
    // of missing values, since a table must have a row.
    let others = [0, 1, 3, 5][rng.below(4)];
    ugly_neighbours(rng, model, relation, shared_units, others, false)
}

/// The same, with so many other units. `turned`: a replaced unit has the same rows with some of
/// their values at the other side of zero or of their bounds, which makes many gradients opposite;
/// and the other units keep away from their bounds, so that clip bounds which are made for them are
/// met by the one.
pub fn ugly_neighbours(
    rng: &mut Lcg,
    model: &Model,
    relation: Relation,
    shared_units: bool,
    others: u64,
    turned: bool,
) -> (Table, Table) {
    // Behind the others, so that these stay in their places.
    const ONE: u64 = u64::MAX - 1;
    const NOBODY: u64 = u64::MAX;
    let unit = |number: u64| shared_units.then_some(number);
    let some = |rng: &mut Lcg| if shared_units { 1 + rng.below(9) } else { 1 };
    let mut rest = blank_rows(model, 1, unit(NOBODY));
    for other in 0..others {
        let rows = some(rng);
        let other = ugly_rows(rng, model, rows, unit(other));
        rest = rest.with(&if turned { quiet(model, other) } else { other });
    }
    let rows = some(rng);
    let changed = ugly_rows(rng, model, rows, unit(ONE));
    let one = rest.with(&changed);
    let other = match relation {
        Relation::AddRemove => rest,
        // A blank unit may have other rows, and more or fewer.
        Relation::ZeroOut => {
            let rows = some(rng);
            rest.with(&blank_rows(model, rows, unit(ONE)))
        }
        Relation::Substitute if turned => rest.with(&turn(rng, model, changed)),
        Relation::Substitute => {
            let rows = some(rng);
            rest.with(&ugly_rows(rng, model, rows, unit(ONE)))
        }
    };
    (one, other)
}

/// The same rows, with what has bounds in the middle quarter between them.
fn quiet(model: &Model, mut rows: Table) -> Table {
    for (column, values) in model.columns.iter().zip(&mut rows.columns) {
        if let (false, Some(a), Some(b)) = (column.is_int, column.lower, column.upper) {
            let middle = 0.5 * (a + b);
            for value in values {
                *value = middle + 0.25 * (value.clamp(a, b) - middle);
            }
        }
    }
    rows
}

/// The same rows, with each of their columns turned or not.
fn turn(rng: &mut Lcg, model: &Model, mut rows: Table) -> Table {
    for (column, values) in model.columns.iter().zip(&mut rows.columns) {
        let ends = column.lower.unwrap_or(0.0) + column.upper.unwrap_or(0.0);
        if rng.below(2) == 0 && (!column.is_int || column.upper.is_some()) {
            values.iter_mut().for_each(|value| *value = ends - *value);
        }
    }
    rows
}

/// Rows none of which counts, and one as loud as there is; the second has it replaced.
pub fn lone_pair(model: &Model, others: usize) -> (Table, Table) {
    let rows = |last: f64| {
        let mut columns = vec![vec![f64::NAN; others]; model.columns.len()];
        for column in &mut columns {
            column.push(0.3);
        }
        columns[0][others] = last;
        Table {
            columns,
            units: None,
        }
    };
    (rows(LOUD), rows(-LOUD))
}

/// A mean with a wide prior: whatever its record says, it says at full strength, since
/// clip bounds in the audits are far below what `y` at its bounds gives. (Much wider
/// bounds would take the log-likelihood to the end of its lattice, where nothing moves.)
pub const MEAN: &str = "record { real<lower=-300, upper=300> y; }
    parameters { real m; }
    model { m ~ normal(0, 100); y ~ normal(m, 1); }";

/// As `MEAN`, in three coordinates of different weight.
pub const LINE: &str = "record { real<lower=-300, upper=300> y; real<lower=-1, upper=1> x; }
    parameters { real a; real b; real c; }
    model { a ~ normal(0, 100); b ~ normal(0, 100); c ~ normal(0, 100);
      y ~ normal(a + b * x + c * square(x), 1); }";

/// A slope whose records' information depends on them, by a law.
pub const LOGIT: &str = "record { real<lower=-9, upper=9> x; int<lower=0, upper=1> y; }
    parameters { real m; }
    model { m ~ normal(0, 100); y ~ bernoulli_logit(m * x); }";

/// The same by second derivatives: `y` has no law.
pub const LAWLESS: &str = "record { real<lower=-9, upper=9> y; }
    parameters { real m; }
    model { m ~ normal(0, 100); target += -log1p_exp(-y * m); }";

/// Far beyond any clip bound; and three times its log-likelihood, that of a unit of three such
/// rows, is within the lattice of log-likelihoods.
const LOUD: f64 = 200.0;

/// Neighbours as far apart as there are: one record at its upper bound, and at its lower
/// one, or blank, or not there. Of the other rows `calm` are ordinary, and one has no values.
pub fn loud_pair(model: &Model, relation: Relation, calm: usize) -> (Table, Table) {
    let row = |y: f64| -> Vec<f64> {
        let other = |is_int| if is_int { 1.0 } else { 0.3 };
        let columns = model.columns.iter().enumerate();
        let of_column = |(i, column): (usize, &RecordColumn)| match i {
            0 => y,
            _ => other(column.is_int),
        };
        columns.map(of_column).collect()
    };
    let table = |rows: &[Vec<f64>]| Table {
        columns: (0..model.columns.len())
            .map(|c| rows.iter().map(|row| row[c]).collect())
            .collect(),
        units: None,
    };
    let mut rest = vec![row(f64::NAN)];
    // Spread about 1: with one value for all, none or half of them would be clipped.
    let spread = |i: usize| 0.6 + 0.2 * ((i / 2) % 5) as f64;
    rest.extend((0..calm).map(|i| row(if i % 2 == 0 { spread(i) } else { -spread(i) })));
    let one = table(&[&rest[..], &[row(LOUD)]].concat());
    let other = match relation {
        Relation::Substitute => table(&[&rest[..], &[row(-LOUD)]].concat()),
        Relation::AddRemove => table(&rest),
        Relation::ZeroOut => table(&rest).with(&blank_rows(model, 1, None)),
    };
    (one, other)
}

/// Neighbours under substitute whose other rows all are as the replaced record is
/// afterwards: a batch without the record has one of them in its place, so that it is
/// seen at twice its bound whenever it is in.
pub fn opposed_pair(model: &Model, others: usize) -> (Table, Table) {
    let rows = |last: f64| {
        let mut columns = vec![vec![0.3; others + 1]; model.columns.len()];
        columns[0] = vec![-LOUD; others];
        columns[0].push(last);
        Table {
            columns,
            units: None,
        }
    };
    (rows(LOUD), rows(-LOUD))
}

/// Rows none of which counts.
pub fn nothing(model: &Model) -> Table {
    blank_rows(model, 3, None)
}

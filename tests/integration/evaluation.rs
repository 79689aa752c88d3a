//! Helpers for the tests of the density: from a program to numbers, through the
//! public rooms only.

use std::fs;
use std::io::Read;
use std::path::Path;

use dpm::testing::check::check;
use dpm::testing::density::{BLOCK, Density};
use dpm::testing::syntax::{parse, render};
use dpm::{Constants, Model};

use crate::corpus::{read, root};

/// Columns of records, in declaration order.
pub struct Table {
    pub columns: Vec<Vec<f64>>,
    pub rows: usize,
}

impl Table {
    pub fn first(&self, rows: usize) -> Table {
        let rows = rows.min(self.rows);
        Table {
            columns: self.columns.iter().map(|c| c[..rows].to_vec()).collect(),
            rows,
        }
    }
}

/// Parses, checks and binds; the message is what a user would read.
pub fn bind(source: &str, constants: &Constants) -> Result<Model, String> {
    let show = |diagnostics: &[_]| render(diagnostics, source, "test.dpm", false);
    let parsed = parse(source);
    let Some(program) = parsed.program.filter(|_| parsed.diagnostics.is_empty()) else {
        return Err(show(&parsed.diagnostics));
    };
    let result = check(&program);
    let Some(checked) = result.checked else {
        return Err(show(&result.diagnostics));
    };
    Model::bind(&checked, constants).map_err(|error| show(&[error.diagnostic()]))
}

pub fn density(source: &str, constants: &Constants) -> Density {
    Density::new(bind(source, constants).unwrap_or_else(|message| panic!("{message}")))
}

/// The constants that a program names in its first line:
/// `// constants: {"K": 3}`.
pub fn constants_in(source: &str) -> Constants {
    match source
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// constants: "))
    {
        Some(json) => Constants::from_json(json).expect("JSON in the first line"),
        None => Constants::none(),
    }
}

/// `models/NAME.dpm` with its constants.
pub fn shipped(name: &str) -> Density {
    Density::new(shipped_model(name))
}

pub fn shipped_model(name: &str) -> Model {
    let source = read(&root().join(format!("models/{name}.dpm")));
    let constants = root().join(format!("models/{name}.constants.json"));
    let constants = if constants.exists() {
        Constants::from_json(&read(&constants)).expect("constants are JSON")
    } else {
        Constants::none()
    };
    bind(&source, &constants).unwrap_or_else(|message| panic!("{message}"))
}

/// `models/NAME.csv` or `models/NAME.csv.gz`, the columns of the record only;
/// `None` when the model is shipped without data.
pub fn shipped_table(name: &str, density: &Density) -> Option<Table> {
    let plain = root().join(format!("models/{name}.csv"));
    let packed = root().join(format!("models/{name}.csv.gz"));
    [plain, packed]
        .iter()
        .find(|path| path.exists())
        .map(|path| table_of(path, density))
}

/// The record's columns of a CSV file, gzipped or not.
pub fn table_of(path: &Path, density: &Density) -> Table {
    let mut text = String::new();
    if path.extension().is_some_and(|e| e == "gz") {
        let file = fs::File::open(path).expect("the data can be opened");
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .expect("the data is gzip");
    } else {
        text = read(path);
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let wanted: Vec<usize> = density
        .model()
        .columns
        .iter()
        .map(|c| {
            header
                .iter()
                .position(|h| h == c.name)
                .expect("the column is there")
        })
        .collect();
    let mut columns = vec![Vec::new(); wanted.len()];
    for record in reader.records() {
        let record = record.expect("a row");
        for (column, &k) in columns.iter_mut().zip(&wanted) {
            column.push(record[k].parse().expect("a number"));
        }
    }
    let rows = columns.first().map_or(0, Vec::len);
    Table { columns, rows }
}

/// Records inside the declared bounds; -2..2 and 0..3 where there are none.
pub fn random_table(density: &Density, rows: usize, random: &mut Random) -> Table {
    let columns = density
        .model()
        .columns
        .iter()
        .map(|c| {
            let (low, high) = if c.is_int { (0.0, 3.0) } else { (-2.0, 2.0) };
            let low = c
                .lower
                .unwrap_or(c.upper.map_or(low, |u| f64::min(low, u - 3.0)));
            let high = c.upper.unwrap_or(f64::max(high, low + 3.0));
            (0..rows)
                .map(|_| {
                    if c.is_int {
                        low + (random.uniform() * (high - low + 1.0)).floor()
                    } else {
                        low + random.uniform() * (high - low)
                    }
                })
                .collect()
        })
        .collect();
    Table { columns, rows }
}

/// One record's log-likelihood for every record, by the row program; the part
/// that no parameter changes is the second.
pub fn log_likelihoods(density: &Density, table: &Table, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (columns, constant) = density.load_columns(&table.columns, table.rows);
    let program = density.row_program();
    let mut scratch = program.scratch(&density.interface(theta).z);
    let mut values = Vec::with_capacity(table.rows);
    for (block, rows) in blocks(&columns, table.rows) {
        program.forward(&block, rows, &mut scratch);
        values.extend_from_slice(program.output(0, &block, rows, &scratch));
    }
    (values, constant)
}

/// Every record's gradient, `n x dimension` by rows.
pub fn record_gradients(density: &Density, table: &Table, theta: &[f64]) -> Vec<f64> {
    let (columns, _) = density.load_columns(&table.columns, table.rows);
    let program = density.row_program();
    let jacobian = density.interface_jacobian(theta);
    let mut scratch = program.scratch(&density.interface(theta).z);
    let mut gradients = Vec::with_capacity(table.rows * theta.len());
    for (block, rows) in blocks(&columns, table.rows) {
        let of_block = program.gradients(&block, rows, &jacobian, &mut scratch);
        for i in 0..rows {
            gradients.extend((0..theta.len()).map(|j| of_block[j * BLOCK + i]));
        }
    }
    gradients
}

/// Log prior, log Jacobian, log-likelihood of the table.
pub fn log_density(density: &Density, table: &Table, theta: &[f64]) -> [f64; 3] {
    let [prior, jacobian] = density.prior_and_jacobian(theta);
    let (values, constant) = log_likelihoods(density, table, theta);
    let sum: f64 = values.iter().zip(&constant).map(|(a, b)| a + b).sum();
    [prior, jacobian, sum]
}

/// The gradient of all three, by one pull-back of the summed interface gradient.
pub fn gradient(density: &Density, table: &Table, theta: &[f64]) -> Vec<f64> {
    let (columns, _) = density.load_columns(&table.columns, table.rows);
    let program = density.row_program();
    let mut scratch = program.scratch(&density.interface(theta).z);
    let mut adjoint = vec![0.0; program.interface_length()];
    for (block, rows) in blocks(&columns, table.rows) {
        program.forward(&block, rows, &mut scratch);
        program.add_interface_gradient(&block, &vec![true; rows], &mut scratch, &mut adjoint);
    }
    density.pull_back(theta, &adjoint).1
}

fn blocks(columns: &[Vec<f64>], rows: usize) -> impl Iterator<Item = (Vec<&[f64]>, usize)> {
    (0..rows).step_by(BLOCK).map(move |start| {
        let length = BLOCK.min(rows - start);
        let block = columns.iter().map(|c| &c[start..start + length]).collect();
        (block, length)
    })
}

/// Steele, Lea and Flood's SplitMix64: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A point of the unconstrained space, each coordinate in -size..size.
    pub fn point(&mut self, dimension: usize, size: f64) -> Vec<f64> {
        (0..dimension)
            .map(|_| size * (2.0 * self.uniform() - 1.0))
            .collect()
    }
}

/// Both have the same parameters and columns in the same order, and the same density everywhere.
pub fn same_density(written: &str, by_hand: &str) {
    let ours = density(written, &Constants::none());
    let theirs = density(by_hand, &Constants::none());
    let columns =
        |d: &Density| -> Vec<String> { d.model().columns.iter().map(|c| c.name.clone()).collect() };
    assert_eq!(columns(&ours), columns(&theirs));
    assert_eq!(ours.dimension(), theirs.dimension());
    let mut random = Random(11);
    let table = random_table(&theirs, 200, &mut random);
    for size in [0.1, 1.0, 2.0] {
        let theta = random.point(ours.dimension(), size);
        let a = log_density(&ours, &table, &theta);
        let b = log_density(&theirs, &table, &theta);
        for (a, b) in a.iter().zip(&b) {
            assert!(
                (a - b).abs() <= 1e-9 * (1.0 + b.abs()),
                "{a} and {b}\n{written}"
            );
        }
    }
}

//! The predictors of a model: the few numbers of a record through which its likelihood sees the
//! parameters, as its linear predictor and a scale.
//!
//! The interface has more: a place for each coefficient, and what is computed from a scale is a place
//! too, while terms of the same sum have the same adjoint. All of it is linear. A record's gradient is
//!
//! ```text
//! sum over registers r and vectors l of  adjoint_r W_rl g_l,
//! ```
//!
//! where the vectors g_l are the record's own gradients of linear predictors and of elements that it picks,
//! and the coordinates' axes, along which places move that are shared by all records. W is public. In
//! reduced row echelon form, W = W_P E with the columns P of its pivots: as many predictors as W has
//! ranks, the derivatives by which are W_P' adjoint, and whose gradients are E g.

use super::{
    BLOCK, Columns, Dependents, Jacobian, LinearTerm, Operation, Picked, Pull, RowProgram, Scratch,
    add_linear, read,
};
use crate::model::Binary;

/// The remainder of a row of W when others are subtracted, as a share of its largest entry: below this it
/// is rounding.
const ROUNDING: f64 = 1e-10;

/// The predictors, in some coordinates.
#[derive(Debug)]
pub struct Predictors {
    /// For each, the registers whose weighted adjoints are the derivative by it.
    adjoints: Vec<Vec<(usize, f64)>>,
    gradients: Vec<Combination>,
    vectors: Vec<Vector>,
}

/// A sum of vectors.
#[derive(Debug, Clone)]
struct Combination {
    /// Weights of vectors that are records' own.
    own: Vec<(usize, f64)>,
    /// Weights of axes: what is the same for all records.
    shared: Vec<f64>,
}

/// A gradient that is a record's own.
#[derive(Debug, Clone)]
enum Vector {
    /// Of a sum of places times columns.
    Linear(Vec<LinearTerm>),
    /// Of what a gather picks, by its position among the instructions and its register.
    Pick(usize, usize),
}

/// Rows of W: for each register with an adjoint of its own, the weights of vectors and of coordinates.
#[derive(Debug, Default)]
struct Weights {
    registers: Vec<usize>,
    rows: Vec<Combination>,
}

impl Weights {
    fn row(&mut self, register: usize, coordinates: usize) -> &mut Combination {
        let known = self.registers.iter().position(|&r| r == register);
        let at = known.unwrap_or_else(|| {
            self.registers.push(register);
            self.rows.push(Combination {
                own: Vec::new(),
                shared: vec![0.0; coordinates],
            });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}

impl Predictors {
    /// So many, for tests that make their gradients up.
    #[cfg(test)]
    pub(crate) fn of_count(count: usize) -> Predictors {
        Predictors {
            adjoints: vec![Vec::new(); count],
            gradients: Vec::new(),
            vectors: Vec::new(),
        }
    }

    pub fn count(&self) -> usize {
        self.adjoints.len()
    }

    /// The derivatives by them, `[predictor][BLOCK]`, from adjoints of registers.
    pub(super) fn derivatives<'a>(
        &self,
        adjoint: impl Fn(usize) -> &'a [f64],
        derivatives: &mut [f64],
    ) {
        for (registers, into) in self
            .adjoints
            .iter()
            .zip(derivatives.chunks_exact_mut(BLOCK))
        {
            into.fill(0.0);
            for &(register, weight) in registers {
                super::add_scaled(weight, adjoint(register), None, into);
            }
        }
    }
}

impl RowProgram {
    /// The predictors in the coordinates of `pull`; none where gradients of records' own vectors change with
    /// a column of `changed`.
    pub fn predictors(&self, pull: Pull, changed: &Dependents) -> Option<Predictors> {
        let (jacobian, _) = pull.split()?;
        let d = jacobian.dimension;
        let sums = self.sums();
        let mut vectors: Vec<Vector> = Vec::new();
        let mut weights = Weights::default();
        let move_along = |row: &mut [f64], place: usize, scale: f64| {
            for &(j, w) in &jacobian.rows[place] {
                row[j] += scale * w;
            }
        };
        for &(register, place) in &self.shared {
            if let Some(sum) = sums[register] {
                move_along(&mut weights.row(sum, d).shared, place, 1.0);
            }
        }
        for (at, instruction) in self.instructions.iter().enumerate() {
            let Some(sum) = sums[instruction.register] else {
                continue;
            };
            let (vector, scale) = match &instruction.operation {
                Operation::Linear(terms) => {
                    let row = &mut weights.row(sum, d).shared;
                    for term in terms.iter().filter(|term| term.column.is_none()) {
                        if let Some(place) = term.place {
                            move_along(row, place, term.scale);
                        }
                    }
                    let Some((terms, scale)) = with_columns(terms) else {
                        continue;
                    };
                    if terms
                        .iter()
                        .filter_map(|t| t.column)
                        .any(|c| changed.reads(c))
                    {
                        return None;
                    }
                    (Vector::Linear(terms), scale)
                }
                Operation::Gather {
                    constants: None, ..
                } => {
                    if changed.instructions[at] {
                        return None;
                    }
                    (Vector::Pick(at, instruction.register), 1.0)
                }
                _ => continue,
            };
            let known = vectors.iter().position(|other| other.is(&vector));
            let position = known.unwrap_or_else(|| {
                vectors.push(vector);
                vectors.len() - 1
            });
            weights.row(sum, d).own.push((position, scale));
        }
        Some(reduced(weights, vectors, d))
    }

    /// The gradients of the predictors in the coordinates of `pull`, `[predictor][derivative][BLOCK]`, after
    /// derivatives of the same records, whatever these were by.
    pub fn predictor_gradients(
        &self,
        predictors: &Predictors,
        (columns, rows): (&[&[f64]], usize),
        pull: Pull,
        scratch: &Scratch,
        (picked, out): (&mut Picked, &mut [f64]),
    ) {
        let Some((jacobian, sparse)) = pull.split() else {
            return;
        };
        let Scratch { values, places, .. } = scratch;
        let each = predictors.gradients.iter();
        for (Combination { own, shared }, out) in
            each.zip(out.chunks_exact_mut(pull.width() * BLOCK))
        {
            let picks = out.len() / BLOCK - jacobian.dimension;
            let (of_picked, common) = out.split_at_mut(picks * BLOCK);
            if let Some(sparse) = sparse {
                let weights: Vec<_> = (own.iter())
                    .filter_map(|&(l, weight)| match predictors.vectors[l] {
                        Vector::Pick(_, register) => Some((register, [weight; BLOCK])),
                        Vector::Linear(_) => None,
                    })
                    .collect();
                let weight = |register| {
                    let own = weights.iter().find(|(r, _)| *r == register);
                    own.map(|(_, weight)| &weight[..rows])
                };
                self.pick(sparse, places, weight, picked, of_picked);
            }
            let mut gradients = Columns::new(common);
            for &(l, weight) in own {
                let weight = &[weight; BLOCK][..rows];
                match &predictors.vectors[l] {
                    Vector::Linear(terms) => {
                        let column = |term: &LinearTerm| {
                            (term.column).map(|source| read(source, columns, values, rows))
                        };
                        add_linear(terms, jacobian, column, weight, &mut gradients);
                    }
                    Vector::Pick(at, _) => {
                        if let Operation::Gather { picks, .. } = &self.instructions[*at].operation {
                            let places = &places[*picks][..rows];
                            jacobian.add_picked(places, weight, gradients.all());
                        }
                    }
                }
            }
            let common = gradients.all();
            for (column, shared) in common.chunks_exact_mut(BLOCK).zip(shared) {
                if *shared != 0.0 {
                    column[..rows].iter_mut().for_each(|x| *x += shared);
                }
            }
        }
    }

    /// For each register whose adjoint the first root gives: the sum that it is a term of and nothing
    /// else, however long, which has the same adjoint; or itself.
    fn sums(&self) -> Vec<Option<usize>> {
        let mut sums = vec![None; self.registers];
        let mut uses = vec![0; self.registers];
        if let Some(root) = self
            .outputs
            .first()
            .and_then(|&root| self.with_adjoint(root))
        {
            sums[root] = Some(root);
        }
        for instruction in self.instructions.iter().rev() {
            let Some(sum) = sums[instruction.register] else {
                continue;
            };
            let is_sum = matches!(instruction.operation, Operation::Binary(Binary::Add, ..));
            for operand in instruction.operation.differentiated() {
                if let Some(r) = self.with_adjoint(operand) {
                    uses[r] += 1;
                    sums[r] = Some(if is_sum && uses[r] == 1 { sum } else { r });
                }
            }
        }
        sums
    }
}

impl<'a> Pull<'a> {
    /// The Jacobian of what is not picked, and what is picked.
    fn split(self) -> Option<(&'a Jacobian, Option<&'a super::Sparse>)> {
        match self {
            Pull::Whole(jacobian) => Some((jacobian, None)),
            Pull::Parts(sparse) => Some((&sparse.common, Some(sparse))),
            Pull::Predictors(_) => None,
        }
    }
}

impl Vector {
    fn is(&self, other: &Vector) -> bool {
        match (self, other) {
            (Vector::Linear(a), Vector::Linear(b)) => a == b,
            (Vector::Pick(a, _), Vector::Pick(b, _)) => a == b,
            _ => false,
        }
    }
}

/// The terms with a place and a column, divided by the first one's scale, and that scale.
fn with_columns(terms: &[LinearTerm]) -> Option<(Vec<LinearTerm>, f64)> {
    let of_columns = |t: &&LinearTerm| t.place.is_some() && t.column.is_some();
    let mut terms: Vec<LinearTerm> = terms.iter().filter(of_columns).cloned().collect();
    terms.sort_by_key(|term| term.place);
    let scale = terms.first()?.scale;
    terms.iter_mut().for_each(|term| term.scale /= scale);
    Some((terms, scale))
}

/// The reduced row echelon form of W, by elimination: vectors that are records' own come before axes.
fn reduced(weights: Weights, vectors: Vec<Vector>, d: usize) -> Predictors {
    let count = vectors.len();
    let dense: Vec<Vec<f64>> = (weights.rows.iter())
        .map(|Combination { own, shared }| {
            let mut row = vec![0.0; count];
            own.iter().for_each(|&(l, w)| row[l] += w);
            row.extend_from_slice(shared);
            row
        })
        .collect();
    let size = |row: &[f64]| row.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
    let sizes: Vec<f64> = dense.iter().map(|row| size(row)).collect();
    let mut left = dense.clone();
    let mut pivots: Vec<(usize, usize)> = Vec::new();
    let mut is_open: Vec<bool> = sizes.iter().map(|size| *size > 0.0).collect();
    // Of columns of one kind, the largest entry of a row, as a share of the row.
    let largest = |left: &[Vec<f64>], is_open: &[bool], columns: std::ops::Range<usize>| {
        let rows = (0..left.len()).filter(|&r| is_open[r]);
        let entries = rows.flat_map(|r| columns.clone().map(move |c| (r, c)));
        let share = |(r, c): (usize, usize)| left[r][c].abs() / sizes[r];
        let most = entries.max_by(|a, b| share(*a).total_cmp(&share(*b)))?;
        (share(most) > ROUNDING).then_some(most)
    };
    while let Some((r, c)) =
        largest(&left, &is_open, 0..count).or_else(|| largest(&left, &is_open, count..count + d))
    {
        is_open[r] = false;
        pivots.push((r, c));
        let divisor = left[r][c];
        left[r].iter_mut().for_each(|w| *w /= divisor);
        let pivot = left[r].clone();
        for (_, row) in left.iter_mut().enumerate().filter(|(other, _)| *other != r) {
            let factor = row[c];
            for (w, own) in row.iter_mut().zip(&pivot) {
                *w -= factor * own;
            }
            row[c] = 0.0;
        }
    }
    let entries = |column: usize| -> Vec<(usize, f64)> {
        let each = weights.registers.iter().zip(&dense);
        let weights = each.map(|(register, row)| (*register, row[column]));
        weights.filter(|(_, w)| *w != 0.0).collect()
    };
    let combination = |row: &[f64]| {
        let each = row[..count].iter().copied().enumerate();
        Combination {
            own: each.filter(|(_, w)| *w != 0.0).collect(),
            shared: row[count..].to_vec(),
        }
    };
    Predictors {
        adjoints: pivots.iter().map(|&(_, c)| entries(c)).collect(),
        gradients: pivots.iter().map(|&(r, _)| combination(&left[r])).collect(),
        vectors,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sparse;
    use super::*;
    use crate::density::{Density, Frame, law::compiled};
    use crate::model::{Constants, Model};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const ROWS: usize = 40;
    const GROUPS: usize = 20;

    struct Records {
        density: Density,
        program: RowProgram,
        names: Vec<String>,
        columns: Vec<Vec<f64>>,
        jacobian: Jacobian,
        scratch: Scratch,
    }

    /// Records of a model in coordinates in which each place counts.
    fn records(parameters: &str, likelihood: &str) -> Records {
        let source = format!(
            "record {{ int<lower=0, upper=9> n; int<lower=1, upper=4> k; real y; real x; real w;
                int<lower=1, upper={GROUPS}> g; }}
            parameters {{ {parameters} }} model {{ {likelihood} }}"
        );
        let density = Density::new(Model::from_source(&source, &Constants::none()).unwrap());
        let (program, sources) = compiled(density.model(), &[]);
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let names: Vec<String> = (sources.iter())
            .map(|&c| density.model().columns[c].name.clone())
            .collect();
        let column = |name: &String| -> Vec<f64> {
            let value_of = |rng: &mut ChaCha8Rng| match name.as_str() {
                "n" => f64::from(rng.random_range(0..10)),
                "k" => f64::from(rng.random_range(1..5)),
                "g" => f64::from(rng.random_range(1..=GROUPS as i32)),
                _ => rng.random_range(-2.0..2.0),
            };
            (0..ROWS).map(|_| value_of(rng)).collect()
        };
        let columns = names.iter().map(column).collect();
        let d = density.dimension();
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let theta: Vec<f64> = (0..d).map(|_| rng.random_range(-0.5..0.5)).collect();
        let axes = (0..d * d).map(|_| rng.random_range(-1.0..1.0)).collect();
        let interface: Vec<_> = program.interface().collect();
        let frame = Frame::new(theta.clone(), axes);
        let jacobian = density
            .jacobian_of(program.interface(), &theta)
            .in_frame(&frame);
        let scratch = program.scratch(&density.values(&theta, &interface).concat());
        Records {
            density,
            program,
            names,
            columns,
            jacobian,
            scratch,
        }
    }

    impl Records {
        fn predictors(&self, pull: Pull, outcome: &str) -> Option<Predictors> {
            let outcome = self.names.iter().position(|name| name == outcome).unwrap();
            let changed = self.program.dependents(&[outcome]);
            self.program.predictors(pull, &changed)
        }

        /// Asserts that derivatives by predictors times the gradients of these are the gradients of
        /// records, whatever the outcome is between the two.
        fn assert_sums(&mut self, parts: Option<&Sparse>, outcome: &str, count: usize) {
            let jacobian = self.jacobian.clone();
            let pull = parts.map_or(Pull::Whole(&jacobian), Pull::Parts);
            let predictors = self.predictors(pull, outcome).unwrap();
            assert_eq!(predictors.count(), count);
            let columns: Vec<&[f64]> = self.columns.iter().map(Vec::as_slice).collect();
            let (program, scratch) = (&self.program, &mut self.scratch);
            let (mut picked, mut again) = (Picked::new(), Picked::new());
            let own = (pull, None);
            let gradients = program.pulled(&columns, ROWS, own, scratch, &mut picked);
            let gradients = gradients.to_vec();
            let by = (Pull::Predictors(&predictors), None);
            let derivatives = program.pulled(&columns, ROWS, by, scratch, &mut again);
            let derivatives = derivatives.to_vec();
            let mut of_predictors = vec![f64::NAN; count * pull.width() * BLOCK];
            let into = (&mut again, &mut of_predictors[..]);
            let records = (&columns[..], ROWS);
            program.predictor_gradients(&predictors, records, pull, scratch, into);
            for i in 0..ROWS {
                for j in 0..pull.width() {
                    let place = |k: usize| (k * pull.width() + j) * BLOCK + i;
                    let terms: Vec<f64> = (0..count)
                        .map(|k| derivatives[k * BLOCK + i] * of_predictors[place(k)])
                        .collect();
                    let size: f64 = terms.iter().map(|t| t.abs()).sum();
                    let off = terms.iter().sum::<f64>() - gradients[j * BLOCK + i];
                    assert!(off.abs() <= 1e-12 * (1.0 + size), "{i} {j}: {off}");
                }
                let picks =
                    |picked: &Picked| -> Vec<usize> { picked.iter().map(|p| p[i]).collect() };
                assert_eq!(picks(&picked), picks(&again));
            }
        }
    }

    // If it failed: a record's information and what balances its gradient would be those of others.
    #[test]
    fn gradients_are_sums_over_as_few_predictors_as_there_are() {
        for (parameters, likelihood, outcome, count) in [
            (
                "real a; vector[2] b;",
                "n ~ poisson_log(a + b[1] * x + b[2] * w + log(k));",
                "n",
                1,
            ),
            (
                "real a; vector[2] b; real<lower=0> s;",
                "y ~ normal(a + b[1] * x + b[2] * w, s);",
                "y",
                2,
            ),
            // The scale is a factor of the location, too.
            (
                "real a; vector[2] b; real<lower=0> s; real<lower=1> u;",
                "y ~ student_t(u, s * (a + b[1] * x), s);",
                "y",
                3,
            ),
            (
                "real a; vector[2] b; real<lower=0> f;",
                "n ~ neg_binomial_2_log(a + b[1] * x - 2 * b[2] * w, f);",
                "n",
                2,
            ),
            (
                "vector[2] b; vector[2] c;",
                "y ~ normal(b[1] + b[2] * x, exp(c[1] + c[2] * w));",
                "y",
                2,
            ),
            (
                "real a; real b; vector[20] u;",
                "n ~ poisson_log(a + b * x + u[g]);",
                "n",
                1,
            ),
            (
                "real a; real b; vector[20] u; vector[20] v;",
                "n ~ poisson_log(a + b * x + u[g] + v[g] * x);",
                "n",
                2,
            ),
        ] {
            records(parameters, likelihood).assert_sums(None, outcome, count);
        }
    }

    // If it failed: the same, where each record sees few of many coordinates.
    #[test]
    fn so_are_gradients_in_parts() {
        let mut records = records(
            "real a; real b; vector[20] u;",
            "n ~ poisson_log(a + b * x + u[g]);",
        );
        let d = records.density.dimension();
        let theta = vec![0.1; d];
        records.jacobian = (records.density).jacobian_of(records.program.interface(), &theta);
        let parts = records.program.sparse(&records.jacobian).unwrap();
        records.assert_sums(Some(&parts), "n", 1);
    }

    // If it failed: all nodes of a record would have the gradients of one of them.
    #[test]
    fn predictors_that_change_with_the_outcome_are_none() {
        for (likelihood, has_some) in [
            ("y ~ normal(a + b * x, 1); x ~ normal(b, 1);", false),
            (
                "y ~ normal(a + u[k], 1); k ~ categorical(softmax(u));",
                false,
            ),
            ("y ~ normal(a + u[k], 1); n ~ poisson_log(b);", true),
        ] {
            let records = records("real a; real b; vector[4] u;", likelihood);
            let outcome = ["x", "k", "n"]
                .into_iter()
                .find(|name| likelihood.contains(&format!("{name} ~")));
            let pull = Pull::Whole(&records.jacobian);
            let found = records.predictors(pull, outcome.unwrap());
            assert_eq!(found.is_some(), has_some, "{likelihood}");
        }
    }
}

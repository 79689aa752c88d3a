//! Records simulated from a model, for planning and tuning before there is data.
//!
//! The columns that the model explains, its [outcomes](crate::model::Outcome), are drawn
//! from the likelihood, one after the other: each from the terms that do not depend on a later one,
//! given the columns drawn before. Where a term joins several outcomes that have no term of their
//! own (a multivariate family), they are drawn at once if they have a joint normal density (`joint.rs`).
//! If not, in several rounds each is drawn given all others (Gibbs sampling). The other columns come from the guesses of a codebook, or else uniformly from
//! between their declared bounds; where a bound is missing, a standard normal or exponential
//! distribution takes its place.
//!
//! A column is drawn by inversion on a grid that is refined several times where the mass is (as
//! VEGAS does: Lepage 1978), which works for any likelihood, whether there is a sampler for it or
//! not. The only assumption is that the density has, roughly, one peak.
//!
//! Records that are made up here are public. What is redrawn for private ones
//! ([`Simulator::redraw`]) is read by the vault alone, and follows for each from its own numbers
//! and generator: that others need finer grids changes none that is done.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::atoms::{Atoms, AtomsAt};
use super::covariate::covariate;
use super::grid::{CELLS, Grid, REFINEMENTS, finite};
use super::joint::{Normal, normals};
use super::scale::Scale;
use super::{BLOCK, Density, RowProgram, Scratch};
use crate::model::{Model, Outcome, PrivateOp, Scalar};

/// Rounds over outcomes that are joined and not normal.
const ROUNDS: usize = 6;
/// How often joined outcomes are drawn again that are out of bounds.
const TRIES: usize = 100;
/// Records of a table that are simulated at a time: what is kept of each meanwhile takes kilobytes.
const AT_A_TIME: usize = 1000;

/// Draws records from a model.
pub struct Simulator<'a> {
    density: &'a Density,
    /// A program from raw columns to the terms of a record's log-likelihood, followed by its
    /// outcomes' variates and by other numbers.
    program: RowProgram,
    /// Declared columns, in the order in which the program reads them.
    sources: Vec<usize>,
    steps: Vec<Step>,
    /// The outcomes that each term reads.
    of_terms: Vec<Vec<usize>>,
    /// From each outcome to the variate of its density.
    scales: Vec<Scale>,
    /// For each outcome, what its distribution may be besides a density.
    atoms: Vec<Vec<Atoms>>,
    precise: bool,
    by_bounds: bool,
    beyond_bounds: bool,
}

/// Public rows from which covariates are taken.
#[derive(Debug, Clone)]
pub struct PublicSample {
    /// Their number; with none, nothing is taken from them.
    pub rows: usize,
    /// Per declared column, its values, if the sample has the column.
    pub columns: Vec<Option<Vec<f64>>>,
}

/// Outcomes that are drawn together, given those of earlier steps.
pub(super) struct Step {
    /// Positions among the model's outcomes: one, or those that terms join.
    pub outcomes: Vec<usize>,
    /// The terms whose sum is their log density.
    pub terms: Vec<usize>,
}

impl<'a> Simulator<'a> {
    pub fn new(density: &'a Density) -> Self {
        Simulator::with(density, &[])
    }

    /// One that computes these numbers of a record too.
    pub fn with(density: &'a Density, others: &[Scalar]) -> Self {
        let model = &density.model;
        let terms = model.likelihood_terms();
        let of_terms = outcomes_of_terms(model);
        let possible_atoms = |(k, outcome): (usize, &Outcome)| {
            let own = terms.iter().zip(&of_terms);
            let own = own.filter(|(_, outcomes)| outcomes.contains(&k));
            Atoms::of(model, outcome, &own.map(|(t, _)| *t).collect::<Vec<_>>())
        };
        let atoms: Vec<Vec<Atoms>> = model
            .outcomes
            .iter()
            .enumerate()
            .map(possible_atoms)
            .collect();
        // The size of a value is not that of a variate that is the same for most.
        let variate = |(outcome, atoms): (&Outcome, &Vec<Atoms>)| {
            let column = model.columns_under(&[outcome.variate])[0].1;
            if atoms.iter().any(|set| set.are_all) {
                Scalar::Private(column)
            } else {
                outcome.variate
            }
        };
        let mut roots = terms.to_vec();
        roots.extend(model.outcomes.iter().zip(&atoms).map(variate));
        roots.extend(others);
        let graph = &model.graphs.private;
        let column = |id| match graph.node(id).op {
            PrivateOp::Column(c) => Some(c as usize),
            _ => None,
        };
        let order = model.needed_private_nodes(&roots);
        let program = RowProgram::compile(&model.graphs, &order, &roots, |id| column(id).is_some());
        let sources = program.columns().iter().filter_map(|&id| column(id));
        Simulator {
            density,
            sources: sources.collect(),
            program,
            steps: steps(model),
            of_terms,
            atoms,
            scales: (model.outcomes.iter())
                .map(|o| Scale::of(model, o.column, o.variate).unwrap_or_default())
                .collect(),
            precise: false,
            by_bounds: false,
            beyond_bounds: false,
        }
    }

    /// Leaves guesses of covariates aside: for what must hold of all records, as bounds do.
    pub fn by_bounds(mut self) -> Self {
        self.by_bounds = true;
        self
    }

    /// Draws real outcomes wherever the model allows them, also outside of their declared bounds.
    pub fn beyond_bounds(mut self) -> Self {
        self.beyond_bounds = true;
        self
    }

    /// Draws outcomes from a density that is interpolated within cells, not constant: slower, and
    /// free of the width of cells, for tables by which a sampler is judged.
    pub fn precise(mut self) -> Self {
        self.precise = true;
        self
    }

    /// `n` records at the parameters `theta` (unconstrained): `[columns][n]`, in
    /// declaration order, as [`Density::load_columns`] takes them. Columns in `public` are taken
    /// from it, in whole rows at random.
    pub fn records(
        &self,
        theta: &[f64],
        n: usize,
        public: Option<&PublicSample>,
        rng: &mut impl Rng,
    ) -> Vec<Vec<f64>> {
        let model = &self.density.model;
        let public = public.filter(|public| public.rows > 0);
        let picks: Vec<usize> = match public {
            Some(public) => (0..n).map(|_| rng.random_range(0..public.rows)).collect(),
            None => Vec::new(),
        };
        let mut raw = Vec::with_capacity(model.columns.len());
        for (c, column) in model.columns.iter().enumerate() {
            let values = public.and_then(|public| public.columns.get(c)?.as_ref());
            let values = values.filter(|values| !values.is_empty());
            raw.push(match values {
                Some(values) => picks
                    .iter()
                    .map(|&row| values[row % values.len()])
                    .collect(),
                None => (0..n)
                    .map(|_| covariate(column, self.by_bounds, rng))
                    .collect(),
            });
        }
        self.redraw(&self.interface(theta), &mut raw, std::slice::from_mut(rng));
        raw
    }

    /// The numbers through which records see the parameters.
    pub fn interface(&self, theta: &[f64]) -> Vec<f64> {
        let interface: Vec<_> = self.program.interface().collect();
        self.density.values(theta, &interface).concat()
    }

    /// Draws the outcomes of records anew at an interface; the i-th by the i-th generator, or all by
    /// the one that is given.
    pub fn redraw(&self, z: &[f64], raw: &mut [Vec<f64>], rngs: &mut [impl Rng]) {
        let mut scratch = self.program.scratch(z);
        for step in &self.steps {
            match step.outcomes[..] {
                [outcome] => self.draw((outcome, &step.terms), raw, &mut scratch, rngs),
                _ => self.draw_together(step, raw, &mut scratch, rngs),
            }
        }
    }

    /// The k-th of the other numbers, of every record.
    pub fn numbers(&self, k: usize, raw: &[Vec<f64>]) -> Vec<f64> {
        let model = &self.density.model;
        let root = model.likelihood_terms().len() + model.outcomes.len() + k;
        let z = vec![0.0; self.program.interface_length()];
        let mut numbers = Vec::new();
        let mut scratch = self.program.scratch(&z);
        self.evaluate(raw, &mut scratch, (&[], root), |_, _, x| numbers.push(x));
        numbers
    }

    /// The same for any number of records, some at a time.
    pub fn table(
        &self,
        theta: &[f64],
        n: usize,
        public: Option<&PublicSample>,
        rng: &mut impl Rng,
    ) -> Vec<Vec<f64>> {
        let mut columns = vec![Vec::with_capacity(n); self.density.model().columns.len()];
        for start in (0..n).step_by(AT_A_TIME) {
            let records = self.records(theta, AT_A_TIME.min(n - start), public, rng);
            for (column, more) in columns.iter_mut().zip(records) {
                column.extend(more);
            }
        }
        columns
    }

    /// Draws outcomes that are joined, of every record.
    fn draw_together(
        &self,
        step: &Step,
        raw: &mut [Vec<f64>],
        scratch: &mut Scratch,
        rngs: &mut [impl Rng],
    ) {
        let count = rngs.len();
        let normals = self.normals(step, raw, scratch);
        for (i, normal) in normals.iter().enumerate() {
            let Some(normal) = normal else { continue };
            let values = self.drawn_from(normal, step, &mut rngs[i % count]);
            for (&outcome, value) in step.outcomes.iter().zip(values) {
                raw[self.column(outcome)][i] = value;
            }
        }
        let has_none = |i: &usize| normals[*i].is_none();
        let others: Vec<usize> = (0..normals.len()).filter(has_none).collect();
        if others.is_empty() {
            return;
        }
        // Each of the others by its own generator, so that no record's draw depends on which these are.
        let is_shared = count < normals.len();
        let mut rngs: Vec<_> = (rngs.iter_mut().enumerate())
            .filter(|(i, _)| is_shared || has_none(i))
            .map(|(_, rng)| rng)
            .collect();
        let of_others = |column: &Vec<f64>| others.iter().map(|&i| column[i]).collect();
        let mut own: Vec<Vec<f64>> = raw.iter().map(of_others).collect();
        for _ in 0..ROUNDS {
            for &outcome in &step.outcomes {
                let reads = |t: &&usize| self.of_terms[**t].contains(&outcome);
                let terms: Vec<usize> = step.terms.iter().filter(reads).copied().collect();
                self.draw((outcome, &terms), &mut own, scratch, &mut rngs);
            }
        }
        for &outcome in &step.outcomes {
            let column = self.column(outcome);
            for (&i, &value) in others.iter().zip(&own[column]) {
                raw[column][i] = value;
            }
        }
    }

    /// The joint normal distribution of outcomes given a record's other columns; `None` where they have none.
    fn normals(&self, step: &Step, raw: &[Vec<f64>], scratch: &mut Scratch) -> Vec<Option<Normal>> {
        let rows = raw.first().map_or(0, Vec::len);
        let mut trial = raw.to_vec();
        let is_int = |&k: &usize| self.density.model.columns[self.column(k)].is_int;
        if step.outcomes.iter().any(is_int) {
            return vec![None; rows];
        }
        normals(step.outcomes.len(), rows, |variates| {
            for (&k, of_variate) in step.outcomes.iter().zip(variates) {
                let back = of_variate.iter().map(|v| self.scales[k].back(*v));
                trial[self.column(k)] = back.collect();
            }
            let mut found = vec![0.0; rows];
            let each = |i: usize, log_density, _| found[i] = log_density;
            self.evaluate(&trial, scratch, (&step.terms, 0), each);
            found
        })
    }

    /// Values of joined outcomes, within their bounds.
    fn drawn_from(&self, normal: &Normal, step: &Step, rng: &mut impl Rng) -> Vec<f64> {
        let mut values = Vec::new();
        for _ in 0..TRIES {
            let scores = step.outcomes.iter().map(|_| StandardNormal.sample(rng));
            let scores: Vec<f64> = scores.collect();
            let value = |(k, &outcome): (usize, &usize)| {
                self.scales[outcome].back(normal.value(k, &scores))
            };
            values = step.outcomes.iter().enumerate().map(value).collect();
            let mut each = step.outcomes.iter().zip(&values);
            if each.all(|(&outcome, &value)| self.bounded(outcome, value) == value) {
                break;
            }
        }
        let each = step.outcomes.iter().zip(values);
        each.map(|(&outcome, value)| self.bounded(outcome, value))
            .collect()
    }

    /// The value, or the nearest within the bounds of the outcome.
    fn bounded(&self, outcome: usize, value: f64) -> f64 {
        let column = &self.density.model.columns[self.column(outcome)];
        if self.beyond_bounds && !column.is_int {
            return value;
        }
        let value = finite(column.lower).map_or(value, |low| value.max(low));
        finite(column.upper).map_or(value, |high| value.min(high))
    }

    fn column(&self, outcome: usize) -> usize {
        self.density.model.outcomes[outcome].column
    }

    /// Draws one outcome of every record.
    fn draw(
        &self,
        (outcome, terms): (usize, &[usize]),
        raw: &mut [Vec<f64>],
        scratch: &mut Scratch,
        rngs: &mut [impl Rng],
    ) {
        let model = &self.density.model;
        let c = self.column(outcome);
        let variate = model.likelihood_terms().len() + outcome;
        let column = &model.columns[c];
        let atoms = &self.atoms[outcome];
        let is_atom = |x: f64| atoms.iter().any(|set| set.values.contains(&x));
        // Beyond a bound that has a probability of its own, there is nothing.
        let bound = |bound: Option<f64>| {
            let stays = column.is_int || !self.beyond_bounds;
            bound.filter(|b| stays || is_atom(*b))
        };
        let grid = Grid::over(column.is_int, bound(column.lower), bound(column.upper));
        let mut grids = vec![grid; raw[c].len()];
        let fill = |grids: &mut [Grid], raw: &mut [Vec<f64>], scratch: &mut Scratch| {
            for cell in 0..CELLS {
                for (value, grid) in raw[c].iter_mut().zip(&*grids) {
                    let middle = grid.middle(cell);
                    // An atom is not part of the density around it.
                    let is_beside = !column.is_int && is_atom(middle);
                    *value = if is_beside { middle.next_up() } else { middle };
                }
                self.evaluate(raw, scratch, (terms, variate), |i, log_density, v| {
                    grids[i].put(cell, log_density, v);
                });
            }
        };
        for _ in 0..REFINEMENTS {
            fill(&mut grids, raw, scratch);
            let mut coarse = false;
            for grid in &mut grids {
                coarse |= grid.refine();
            }
            if !coarse {
                break;
            }
        }
        // Twice, since tails are coarse the first time.
        for last in [false, true].into_iter().filter(|_| self.precise) {
            let mut laid = false;
            for grid in &mut grids {
                laid |= grid.lay_at_scores(last);
            }
            if laid {
                fill(&mut grids, raw, scratch);
            }
        }
        let log_densities = |x: f64| {
            let mut found = vec![0.0; grids.len()];
            raw[c].fill(x);
            self.evaluate(raw, scratch, (terms, variate), |i, log_density, _| {
                found[i] = log_density;
            });
            found
        };
        let drawn = AtomsAt::new(atoms, log_densities);
        let count = rngs.len();
        for (i, (value, grid)) in raw[c].iter_mut().zip(&grids).enumerate() {
            let rng = &mut rngs[i % count];
            if let Some(atom) = drawn.draw(i, grid, rng) {
                *value = atom;
                continue;
            }
            *value = match grid.cells().filter(|_| self.precise) {
                None => grid.draw(rng),
                Some(cells) => {
                    let below: f64 = rng.random();
                    // Rounding must not take it out of its bounds.
                    self.bounded(outcome, cells.value([below, 1.0 - below]))
                }
            };
        }
    }

    /// The sum of some terms of every record's log-likelihood (nats), and another root.
    fn evaluate(
        &self,
        raw: &[Vec<f64>],
        scratch: &mut Scratch,
        (terms, root): (&[usize], usize),
        mut each: impl FnMut(usize, f64, f64),
    ) {
        let n = raw.first().map_or(0, Vec::len);
        for start in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - start);
            let block: Vec<&[f64]> = self
                .sources
                .iter()
                .map(|&c| &raw[c][start..start + rows])
                .collect();
            self.program.forward(&block, rows, scratch);
            let output_of = |root| self.program.output(root, &block, rows, scratch);
            for i in 0..rows {
                let log_density = terms.iter().map(|&t| output_of(t)[i]).sum();
                each(start + i, log_density, output_of(root)[i]);
            }
        }
    }
}

/// The outcomes that each term of the likelihood reads.
fn outcomes_of_terms(model: &Model) -> Vec<Vec<usize>> {
    let of_term = |term: &Scalar| -> Vec<usize> {
        let columns = model.columns_under(&[*term]);
        let position = |c| model.outcomes.iter().position(|o| o.column == c);
        columns.iter().filter_map(|&(c, _)| position(c)).collect()
    };
    model.likelihood_terms().iter().map(of_term).collect()
}

/// The outcomes in the order in which they are drawn.
pub(super) fn steps(model: &Model) -> Vec<Step> {
    let terms = outcomes_of_terms(model);
    let mut drawn = vec![false; model.outcomes.len()];
    let mut steps: Vec<Step> = Vec::new();
    while drawn.contains(&false) {
        // Of each term, the outcomes that are still to be drawn. Where no term has a single one, some are joined.
        let left = |t: usize| terms[t].iter().copied().filter(|&k| !drawn[k]);
        let open = (0..terms.len()).filter(|&t| left(t).count() > 0);
        let next = open.min_by_key(|&t| (left(t).count(), left(t).next()));
        let first = drawn.iter().position(|drawn| !drawn);
        let outcomes: Vec<usize> = match next {
            Some(t) => left(t).collect(),
            None => first.into_iter().collect(),
        };
        let is_own = |&t: &usize| left(t).count() > 0 && left(t).all(|k| outcomes.contains(&k));
        let own = (0..terms.len()).filter(is_own).collect();
        for &k in &outcomes {
            drawn[k] = true;
        }
        steps.push(Step {
            outcomes,
            terms: own,
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::model::Constants;

    fn simulate(source: &str, theta: &[f64], n: usize) -> Vec<Vec<f64>> {
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let density = Density::new(model);
        Simulator::new(&density).records(theta, n, None, &mut ChaCha8Rng::seed_from_u64(1))
    }

    /// Asserts that the mean of `values` is `mean`, and their variance `variance`, to five
    /// standard errors and, for the width of cells, 2% of the variance.
    fn assert_moments(values: &[f64], mean: f64, variance: f64, what: &str) {
        let n = values.len() as f64;
        let m = values.iter().sum::<f64>() / n;
        let square = |k: i32| values.iter().map(|v| (v - m).powi(k)).sum::<f64>() / n;
        let error = (variance / n).sqrt();
        assert!(
            (m - mean).abs() < 5.0 * error,
            "{what}: mean {m} for {mean}"
        );
        let error = ((square(4) - square(2).powi(2)) / n).sqrt();
        assert!(
            (square(2) - variance).abs() < 5.0 * error + 0.02 * variance,
            "{what}: variance {} for {variance}",
            square(2)
        );
    }

    // Oracle: the probability of 0, and moments of the logarithms of the others. If it failed: a table that is simulated
    // from a model of costs would have no patient without any, or nothing but one value.
    #[test]
    fn values_with_a_probability_of_their_own_are_drawn() {
        let n = 4000;
        let (p, mean, sd) = (0.7_f64, 2.0, 0.5_f64);
        let theta = [(p / (1.0 - p)).ln(), mean, sd.ln()];
        for y in ["real<lower=0, upper=300> y", "real<lower=0> y", "real y"] {
            for model in [
                "(y > 0) ~ bernoulli_logit(a); target += y > 0 ? lognormal_lpdf(y | m, s) : 0;",
                "target += y > 0 ? log_inv_logit(a) + lognormal_lpdf(y | m, s) : log1m_inv_logit(a);",
                "target += y == 0 ? log1m_inv_logit(a) : log_inv_logit(a) + lognormal_lpdf(y | m, s);",
            ] {
                if y == "real y" && !model.contains("==") {
                    continue;
                }
                let source = format!(
                    "record {{ {y}; }} parameters {{ real a; real m; real<lower=0> s; }} model {{ {model} }}"
                );
                let what = format!("{y}; {model}");
                let drawn = &simulate(&source, &theta, n)[0];
                let is_any: Vec<f64> = drawn
                    .iter()
                    .map(|y| f64::from(u8::from(*y != 0.0)))
                    .collect();
                assert_moments(&is_any, p, p * (1.0 - p), &what);
                let positive = drawn.iter().filter(|y| **y != 0.0);
                let logs: Vec<f64> = positive.map(|y| y.ln()).collect();
                assert_moments(&logs, mean, sd * sd, &what);
            }
        }
        // A variate of few values, and a comparison that gives its constant no probability.
        let visits =
            "record { int<lower=0, upper=60> y; } parameters { real a; real m; real<lower=0> s; }
            model { (y > 2) ~ bernoulli_logit(a); }";
        let drawn = simulate(visits, &theta, n)[0].clone();
        let is_any: Vec<f64> = drawn
            .iter()
            .map(|y| f64::from(u8::from(*y > 2.0)))
            .collect();
        assert_moments(&is_any, p, p * (1.0 - p), visits);
        let compared = "record { real<lower=-20, upper=20> y; } parameters { real a; real m; real<lower=0> s; }
            model { target += y == 0 ? normal_lpdf(0 | m, s) : normal_lpdf(y | m, s); }";
        let drawn = simulate(compared, &theta, n)[0].clone();
        assert_moments(&drawn, mean, sd * sd, compared);
    }

    // If it failed: predictions and tuning before there is data would be for data unlike the
    // model's. Oracle: moments of the families. False alarms: 5 standard errors, 12 figures, 1e-5
    // in all; a wrong scale or a Jacobian left out is far more.
    #[test]
    fn outcomes_have_their_distribution() {
        let n = 4000;
        let raw = simulate(
            "record { real y; } parameters { real mu; real<lower=0> s; }
             model { y ~ normal(1e4 * mu, s); }",
            &[0.7, 0.01_f64.ln()],
            n,
        );
        assert_moments(&raw[0], 7e3, 1e-4, "a narrow normal far out");

        // A density of the logarithm: without the Jacobian the mean would be s^2 higher.
        let raw = simulate(
            "record { real<lower=1, upper=1e6> y; } parameters { real mu; }
             model { log(y) ~ normal(mu, 0.7); }",
            &[5.0],
            n,
        );
        let logs: Vec<f64> = raw[0].iter().map(|y| y.ln()).collect();
        assert_moments(&logs, 5.0, 0.49, "a lognormal");

        let raw = simulate(
            "record { int<lower=0> y; } parameters { real a; } model { y ~ poisson_log(a); }",
            &[1.5],
            n,
        );
        assert_moments(&raw[0], 1.5_f64.exp(), 1.5_f64.exp(), "Poisson");
        assert!(raw[0].iter().all(|y| y.fract() == 0.0));
        let raw = simulate(
            "record { int<lower=0> y; } parameters { real a; } model { y ~ poisson_log(a); }",
            &[12.0],
            n,
        );
        assert_moments(&raw[0], 12_f64.exp(), 12_f64.exp(), "a large Poisson");

        let raw = simulate(
            "record { int<lower=1, upper=3> y; } parameters { real a; }
             model { y ~ categorical_logit([0, a, 2 * a]'); }",
            &[1.0],
            n,
        );
        let weights = [0.0, 1.0, 2.0_f64].map(f64::exp);
        let moment = |k: i32| {
            let term = |i: usize| weights[i] * ((i + 1) as f64).powi(k);
            (term(0) + term(1) + term(2)) / weights.iter().sum::<f64>()
        };
        assert_moments(
            &raw[0],
            moment(1),
            moment(2) - moment(1).powi(2),
            "categories",
        );
    }

    // If it failed: a table by which a sampler is judged would not be its model's, and a right sampler
    // be called wrong. Oracle: moments of the families. 30,000 values: five standard errors of a mean
    // and of a variance (false alarm 3e-6 in all), which is 4% of a normal's variance.
    #[test]
    fn precise_outcomes_have_their_distribution_closely() {
        let check = |source: &str, theta: &[f64], mean: f64, variance: f64| {
            let model = Model::from_source(source, &Constants::none()).unwrap();
            let density = Density::new(model);
            let mut rng = ChaCha8Rng::seed_from_u64(3);
            let simulator = Simulator::new(&density).precise();
            let mut values = Vec::new();
            for _ in 0..6 {
                values.extend(simulator.records(theta, 5000, None, &mut rng).remove(0));
            }
            let n = values.len() as f64;
            let m = values.iter().sum::<f64>() / n;
            let moment = |k: i32| values.iter().map(|v| (v - m).powi(k)).sum::<f64>() / n;
            let error = ((moment(4) - moment(2).powi(2)) / n).sqrt();
            assert!(
                (m - mean).abs() < 5.0 * (variance / n).sqrt(),
                "{source}: mean {m}"
            );
            let found = moment(2);
            assert!(
                (found - variance).abs() < 5.0 * error,
                "{source}: variance {found}"
            );
        };
        check(
            "record { real y; } parameters { real m; } model { y ~ normal(m, 2); }",
            &[30.0],
            30.0,
            4.0,
        );
        check(
            "record { int<lower=0> y; } parameters { real m; } model { y ~ poisson(m); }",
            &[100.0],
            100.0,
            100.0,
        );
        check(
            "record { int<lower=0, upper=1> y; } parameters { real m; } model { y ~ bernoulli_logit(m); }",
            &[-1.0],
            0.268_941_421_37,
            0.196_611_933_24,
        );
    }

    // If it failed: outcomes that depend on one another, or that occur in `target +=`, would be
    // drawn as if they were covariates.
    #[test]
    fn outcomes_are_drawn_given_one_another_and_wherever_they_stand() {
        let raw = simulate(
            "record { real x; real y; } parameters { real a; }
             model { x ~ normal(a, 1); target += normal_lpdf(y | 2 * x, 0.5); }",
            &[3.0],
            4000,
        );
        assert_moments(&raw[0], 3.0, 1.0, "x");
        let off: Vec<f64> = raw[0]
            .iter()
            .zip(&raw[1])
            .map(|(x, y)| y - 2.0 * x)
            .collect();
        assert_moments(&off, 0.0, 0.25, "y given x");
    }

    // Rounds of Gibbs sampling from anywhere would keep half of the way to such outcomes: if it failed, simulated
    // records of correlated outcomes would be far from those of the model. Five standard errors, 5 figures.
    #[test]
    fn joined_outcomes_are_drawn_at_once() {
        let raw = simulate(
            "record { real<lower=-1e4, upper=1e4> x; real<lower=0> y; real z; } parameters { real a; }
             model { [x, log(y)]' ~ multi_normal([a, 1]', [[4, 1.98], [1.98, 1]]); z ~ normal(x, 1); }",
            &[300.0],
            4000,
        );
        let logs: Vec<f64> = raw[1].iter().map(|y| y.ln()).collect();
        assert_moments(&raw[0], 300.0, 4.0, "x");
        assert_moments(&logs, 1.0, 1.0, "log y");
        let each = raw[0].iter().zip(&logs);
        let rest: Vec<f64> = each.map(|(x, v)| v - 1.0 - 0.495 * (x - 300.0)).collect();
        assert_moments(&rest, 0.0, 1.0 - 0.495 * 1.98, "log y given x");
        let off: Vec<f64> = raw[0].iter().zip(&raw[2]).map(|(x, z)| z - x).collect();
        assert_moments(&off, 0.0, 1.0, "z given x");
    }

    #[test]
    fn covariates_come_from_a_public_sample_in_whole_rows() {
        let model = Model::from_source(
            "record { real a; real b; real y; } parameters { real m; }
             model { y ~ normal(m + a + b, 1e-3); }",
            &Constants::none(),
        );
        let density = Density::new(model.unwrap());
        let public = PublicSample {
            rows: 3,
            columns: vec![
                Some(vec![1.0, 2.0, 3.0]),
                Some(vec![10.0, 20.0, 30.0]),
                None,
            ],
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let raw = Simulator::new(&density).records(&[0.5], 50, Some(&public), rng);
        for ((a, b), y) in raw[0].iter().zip(&raw[1]).zip(&raw[2]) {
            assert_eq!(*b, 10.0 * a);
            assert!((y - a - b - 0.5).abs() < 0.01);
        }
    }

    // Bounds that a program may declare but no uniform distribution can have; samples that an
    // embedding program may pass in.
    #[test]
    fn odd_bounds_and_samples_do_no_harm() {
        let source = "record {
                real<lower=negative_infinity(), upper=positive_infinity()> a;
                real<lower=-1e308, upper=1e308> b;
                real<lower=negative_infinity()> y;
            }
            parameters { real m; }
            model { y ~ normal(m + a + 1e-308 * b, 1); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let sample = |rows, columns| Some(PublicSample { rows, columns });
        let samples = [
            None,
            sample(0, Vec::new()),
            sample(2, vec![Some(Vec::new())]),
        ];
        for public in samples {
            let rng = &mut ChaCha8Rng::seed_from_u64(1);
            let raw = Simulator::new(&density).records(&[0.5], 300, public.as_ref(), rng);
            let residual = |i: usize| raw[2][i] - raw[0][i] - 1e-308 * raw[1][i];
            assert_moments(&(0..300).map(residual).collect::<Vec<_>>(), 0.5, 1.0, "y");
        }
    }

    #[test]
    fn covariates_keep_their_bounds() {
        let raw = simulate(
            "record { int<lower=2, upper=4> k; real<lower=-1, upper=3> x; real<lower=5> z; real y; }
             parameters { real a; }
             model { y ~ normal(a * k + x + z, 1); }",
            &[0.5],
            3000,
        );
        for k in [2.0, 3.0, 4.0] {
            let share = raw[0].iter().filter(|&&v| v == k).count();
            assert!((900..1100).contains(&share), "{k}: {share}");
        }
        assert_moments(&raw[1], 1.0, 16.0 / 12.0, "x");
        assert_moments(&raw[2], 6.0, 1.0, "z");
    }
}

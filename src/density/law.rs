//! The law of a record's outcomes under the model: at given parameters, given the record's other
//! columns, a few values of the outcomes with their probabilities, and the gradient that the
//! record's log-likelihood would have at each.
//!
//! The result for a record is a function of that record's own columns, of the parameters, and of
//! public values (the model, a seed, a centre): no other record is read, and nothing that depends on
//! one is kept for the next, but for nodes at public points, which are the same whoever asks for them.
//! A sum over records of a bounded function of the nodes changes by one bounded term when one record does.
//!
//! The outcomes are the columns for which the model has a density
//! ([`Outcome`](crate::model::Outcome)). They are taken one after the other, each given those
//! before it, in the order in which the [`Simulator`] draws them. An outcome with a density that no
//! parameter changes is a covariate. A declared int with at most 16 values has all of them; any
//! other has nodes (`nodes.rs`) on a grid that finds the mass (`grid.rs`): on one grid for all records,
//! where these only move and scale the law (`standard.rs`), and on one for all records near a point of a
//! lattice, where the law of a count is that of a single number (`lattice.rs`). A real outcome may have
//! atoms: constants that it is compared with, as 0 in
//! `target += y == 0 ? bernoulli_logit_lpmf(1 | a) : ...`. The components of a mixture are searched for one by one, and
//! some mixtures have no law (`mixture.rs`). Outcomes that have a joint density only must be normal, and have nodes
//! together (`joined.rs`).
//!
//! A model may use a density and yet not be one: `target += normal_lpdf(y | mu, sigma)` with a
//! censored branch that does not belong to the same distribution. So all terms that involve an
//! outcome are integrated over it, on public records made up from the declarations and at public
//! parameters. The integral must be the same for all parameters: then, and only then, the mean of
//! the score is zero. Where it is not, there is no law.

mod check;
mod conditional;
mod design;
mod drawn;
mod joined;
mod lattice;
mod mixture;
mod no_law;
mod standard;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub(super) use check::public_places;
use conditional::shares_of;
use design::Design;
use drawn::Drawn;
use lattice::{Lattice, Single};
pub use no_law::NoLaw;
use standard::{REFERENCES, Standard};

use super::grid::Grid;
use super::nodes::{NODES, Nodes, NormalPoint, normal_points};
use super::scale::Scale;
use super::simulate::steps;
use super::support::{Support, supports};
use super::{
    BLOCK, Density, Dependents, Frame, Jacobian, Picked, Predictors, Pull, RowProgram, Scratch,
    Sight, Space, Sparse,
};
use crate::linear::vectorised;
use crate::model::{Model, PrivateOp, Scalar};

/// By how much the log of an integral may move with the parameters. The integral on a grid is
/// accurate to about a tenth of that.
const TOLERANCE: f64 = 0.01;
/// Public records at which integrals are computed.
const RECORDS: usize = 64;
/// The law of a model's outcomes.
pub struct Law<'a> {
    density: &'a Density,
    made_at: (Vec<f64>, u64),
    /// From raw columns to the likelihood, all its terms, and the outcomes' standard variables.
    program: RowProgram,
    sources: Vec<usize>,
    steps: Vec<Step>,
    /// The instructions that read the outcomes.
    of_outcomes: Dependents,
    /// A few public records, `[column][record]`.
    references: Vec<Vec<f64>>,
    design: Design,
    /// The nodes of outcomes that are joined, in normal scores.
    joined_points: Vec<NormalPoint>,
    /// For each step, its law as a function of a single number of the record, where it is one.
    singles: Vec<Option<Single<'a>>>,
}

/// One node of the records of a block.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// The probability of the node, for each record.
    pub probabilities: &'a [f64],
    /// Coordinate `j` of record `i` is at `j * BLOCK + i`; 0 where the probability is 0.
    pub gradients: &'a [f64],
    /// The coordinates that records pick, where gradients are in parts: the same at all nodes.
    pub picked: &'a [[usize; BLOCK]],
}

/// Working memory of one thread, at one point.
pub struct LawScratch {
    work: Work,
    gradients: Vec<f64>,
    picked: Picked,
}

/// The nodes of a block of records.
pub(crate) struct Located {
    /// `[step][node][BLOCK]`
    values: Vec<f64>,
    /// `[node][BLOCK]`
    probabilities: Vec<f64>,
}

impl Located {
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.values[..]) + size_of_val(&self.probabilities[..])
    }

    /// The values of each outcome at a node, by record.
    pub(crate) fn outcomes(&self, node: usize) -> impl Iterator<Item = &[f64]> {
        let each = self.probabilities.len();
        (self.values.chunks(each)).map(move |values| &values[node * BLOCK..][..BLOCK])
    }
}

struct Work {
    program: Scratch,
    /// For each component, the grids of records; as many as were needed so far.
    grids: Vec<Vec<Grid>>,
    trial: Vec<f64>,
    log_densities: Vec<f64>,
    /// Log densities at atoms, `[atom][BLOCK]`.
    atoms: Vec<f64>,
    /// The log density of each record, where it is the same everywhere.
    flat: Vec<Option<f64>>,
    /// The nodes of each outcome's standard variable, once they were searched for.
    standards: Vec<Option<Option<Nodes>>>,
    /// For each step, what is known at the points of its lattice.
    lattices: Vec<Lattice>,
}

/// One outcome, given those before it.
#[derive(Debug, Clone)]
struct Step {
    /// Its position among the columns that are passed in.
    position: usize,
    name: String,
    is_int: bool,
    /// The terms whose sum is its log density.
    terms: Vec<usize>,
    /// The same for each component of a mixture, whose densities add up; the terms alone if it is none.
    components: Vec<Vec<usize>>,
    support: Support,
    /// The steps before it that its density depends on.
    given: Vec<usize>,
    /// The instructions that read it.
    dependents: Dependents,
    /// The variable whose law all records share, where there is one.
    standard: Option<Standard>,
    /// The outcomes with which it has a joint density only.
    joined: Option<Joined>,
}

/// Which steps are those of outcomes that are joined.
#[derive(Debug, Clone, Copy)]
struct Joined {
    first: usize,
    count: usize,
}

impl<'a> Law<'a> {
    /// The law of the outcomes of `density`; `centre` is a public point (unconstrained) near
    /// which parameters are likely, such as the middle of the prior.
    ///
    /// Errors: the reason why there is none.
    pub fn of(density: &'a Density, centre: &[f64], seed: u64) -> Result<Law<'a>, NoLaw> {
        let model = &density.model;
        let terms = model.likelihood_terms();
        let changes = |t: &usize| model.graphs.has_parameter(terms[*t]);
        let steps = steps(model);
        let reads_outcome = |t: usize| steps.iter().any(|s| s.terms.contains(&t));
        if !steps.iter().any(|s| s.terms.iter().any(changes)) {
            return Err(NoLaw::NoOutcome);
        }
        if (0..terms.len()).any(|t| changes(&t) && !reads_outcome(t)) {
            return Err(NoLaw::NoDensity);
        }
        // Further roots of the program, after the likelihood and its terms.
        let mut others = Vec::new();
        let drawn: Vec<Drawn> = (steps.into_iter())
            .filter(|step| step.terms.iter().any(changes))
            .map(|step| Drawn::of(model, step, &mut others))
            .collect::<Result<_, _>>()?;
        let (program, sources) = compiled(model, &others);
        let mut law = Law {
            density,
            made_at: (centre.to_vec(), seed),
            sources,
            steps: Vec::new(),
            of_outcomes: program.dependents(&[]),
            program,
            references: Vec::new(),
            design: Design::Product(Vec::new()),
            joined_points: Vec::new(),
            singles: Vec::new(),
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let places = public_places(centre, rng);
        let records = law.public_records(centre, rng);
        for drawn in &drawn {
            let steps = law.unchecked(drawn);
            let steps = match &steps[..] {
                [step] => {
                    let supports = supports(model, drawn.column(model), &drawn.scalars);
                    let tried = (supports, &drawn.standards[..], &drawn.components[..]);
                    vec![law.check(step, tried, &records, &places)?]
                }
                _ => law.join(drawn, &steps, &records, &places)?,
            };
            law.steps.extend(steps);
        }
        let joined = law.steps.iter().find_map(|step| step.joined);
        law.joined_points = joined.map_or_else(Vec::new, |joined| normal_points(joined.count));
        law.design = law.design(rng);
        if let (Design::Points(_), Some(_)) = (&law.design, joined) {
            let outcomes = law.steps.iter().map(|step| step.name.clone()).collect();
            return Err(NoLaw::JoinedAndMore { outcomes });
        }
        let positions: Vec<usize> = law.steps.iter().map(|step| step.position).collect();
        law.of_outcomes = law.program.dependents(&positions);
        let first = |&c: &usize| records[c][..REFERENCES].to_vec();
        law.references = law.sources.iter().map(first).collect();
        for drawn in &drawn {
            for _ in &drawn.outcomes {
                let k = law.singles.len();
                let column = (drawn.column(model), &drawn.scalars[..]);
                let single = drawn.single.and_then(|at| law.as_single(k, column, at));
                law.singles.push(single);
            }
        }
        Ok(law)
    }

    /// The centre and the seed of [`Law::of`].
    pub fn made_at(&self) -> &(Vec<f64>, u64) {
        &self.made_at
    }

    /// The declared columns that are passed in, in this order, with their raw values.
    pub fn columns(&self) -> &[usize] {
        &self.sources
    }

    /// The outcomes whose law is searched for once.
    #[cfg(test)]
    pub(super) fn standards(&self) -> impl Iterator<Item = &str> {
        let with_one = self.steps.iter().filter(|step| step.standard.is_some());
        with_one.map(|step| step.name.as_str())
    }

    /// The same law, searched for on each record.
    #[cfg(test)]
    pub(super) fn without_standards(mut self) -> Self {
        self.steps.iter_mut().for_each(|step| step.standard = None);
        self
    }

    /// The outcomes whose law is that of a single number.
    #[cfg(test)]
    pub(super) fn singles(&self) -> impl Iterator<Item = &str> {
        let with_one = self.steps.iter().zip(&self.singles);
        with_one.filter_map(|(step, single)| single.as_ref().map(|_| step.name.as_str()))
    }

    /// Working memory for parameters `theta` (unconstrained).
    #[cfg(test)]
    pub fn scratch(&self, theta: &[f64]) -> LawScratch {
        self.scratch_at(&self.interface(theta))
    }

    /// The point of the space as the law sees it.
    pub(crate) fn sight(&self, space: &Space, point: &[f64], frame: &Frame) -> Sight {
        self.density.sight_of(&self.program, space, point, frame)
    }

    /// From records' raw columns to their likelihood and its terms.
    pub(crate) fn program(&self) -> &RowProgram {
        &self.program
    }

    /// Working memory where the law sees `z`.
    pub(crate) fn scratch_at(&self, z: &[f64]) -> LawScratch {
        LawScratch {
            work: self.work(z, BLOCK),
            gradients: Vec::new(),
            picked: Picked::new(),
        }
    }

    /// dz/dtheta of the interface through which [`Law::scores`] sees the parameters: not that of
    /// [`Density::row_program`], but with the same layout.
    #[cfg(test)]
    pub fn jacobian(&self, theta: &[f64]) -> Jacobian {
        self.density.jacobian_of(self.program.interface(), theta)
    }

    /// Visits the nodes of a block of records, each node for all records at once: [`Law::nodes`]
    /// calls of `visit`, with the position of the node.
    ///
    /// The probabilities of a record sum to 1. They are all 0 where its law cannot be found: no
    /// mass at these parameters, or a column that is not a number. A node where the gradient is not
    /// a number has probability 0, too. Values of outcomes in `columns` are not read.
    ///
    /// Returns the number of records without a law.
    pub fn scores(
        &self,
        columns: &[&[f64]],
        rows: usize,
        jacobian: &Jacobian,
        scratch: &mut LawScratch,
        visit: impl FnMut(usize, Node),
    ) -> usize {
        let located = self.locate(columns, rows, scratch);
        let pull = Pull::Whole(jacobian);
        self.scores_at(&located, columns, rows, pull, scratch, visit)
    }

    /// Values and probabilities of the nodes of a block of records. They take most of the time of
    /// [`Law::scores`], and depend on the parameters but not on coordinates.
    pub(crate) fn locate(
        &self,
        columns: &[&[f64]],
        rows: usize,
        scratch: &mut LawScratch,
    ) -> Located {
        let nodes = self.nodes() * BLOCK;
        let mut located = Located {
            values: vec![0.0; self.steps.len() * nodes],
            probabilities: vec![0.0; nodes],
        };
        let Located {
            values,
            probabilities,
        } = &mut located;
        self.find_nodes(columns, rows, &mut scratch.work, values, probabilities);
        located
    }

    /// Whether any outcome is a count of more values than there are nodes.
    pub(crate) fn has_counts(&self) -> bool {
        let is_count = |step: &Step| step.is_int && step.support.range.is_some();
        self.steps.iter().any(is_count)
    }

    /// The values of a real outcome that have a probability of their own, as 0 in a hurdle.
    pub(crate) fn atoms(&self, outcome: usize) -> &[f64] {
        let step = self.steps.get(outcome).filter(|step| !step.is_int);
        step.map_or(&[], |step| &step.support.atoms)
    }

    /// Whether all outcomes are real.
    pub(crate) fn has_real_outcomes_only(&self) -> bool {
        self.steps.iter().all(|step| !step.is_int)
    }

    /// Whether nodes have to be searched for.
    pub(crate) fn is_costly(&self) -> bool {
        self.steps.iter().any(|step| step.support.range.is_some())
    }

    /// [`Law::scores`] for nodes found earlier at the same parameters.
    pub(crate) fn scores_at(
        &self,
        located: &Located,
        columns: &[&[f64]],
        rows: usize,
        pull: Pull,
        scratch: &mut LawScratch,
        mut visit: impl FnMut(usize, Node),
    ) -> usize {
        let LawScratch {
            work,
            gradients,
            picked,
        } = scratch;
        let Located {
            values,
            probabilities,
        } = located;
        let count = self.nodes();
        let mut block = columns.to_vec();
        let found = |i: usize| (0..count).any(|j| probabilities[j * BLOCK + i] > 0.0);
        let lost = (0..rows).filter(|&i| !found(i)).count();
        let mut own_probabilities = [0.0; BLOCK];
        for j in 0..count {
            for (k, step) in self.steps.iter().enumerate() {
                block[step.position] = &values[(k * count + j) * BLOCK..][..rows];
            }
            let program = &mut work.program;
            let changed = (j > 0).then_some(&self.of_outcomes);
            let each = self
                .program
                .pulled(&block, rows, (pull, changed), program, picked);
            let own_probabilities = &mut own_probabilities[..rows];
            own_probabilities.copy_from_slice(&probabilities[j * BLOCK..][..rows]);
            if are_all_possible(own_probabilities, each) {
                visit(
                    j,
                    Node {
                        probabilities: own_probabilities,
                        gradients: each,
                        picked,
                    },
                );
                continue;
            }
            gradients.clear();
            gradients.extend_from_slice(each);
            for (i, p) in own_probabilities.iter_mut().enumerate() {
                let places = || (i..gradients.len()).step_by(BLOCK);
                if *p == 0.0 || places().any(|at| !gradients[at].is_finite()) {
                    *p = 0.0;
                    for at in places() {
                        gradients[at] = 0.0;
                    }
                }
            }
            visit(
                j,
                Node {
                    probabilities: own_probabilities,
                    gradients,
                    picked,
                },
            );
        }
        lost
    }

    /// The predictors in some coordinates; none where their gradients change with an outcome.
    pub(crate) fn predictors(&self, pull: Pull) -> Option<Predictors> {
        self.program.predictors(pull, &self.of_outcomes)
    }

    /// The gradients of the predictors ([`RowProgram::predictor_gradients`]), after [`Law::scores_at`].
    pub(crate) fn predictor_gradients(
        &self,
        predictors: &Predictors,
        records: (&[&[f64]], usize),
        pull: Pull,
        scratch: &LawScratch,
        into: (&mut Picked, &mut [f64]),
    ) {
        let scratch = &scratch.work.program;
        self.program
            .predictor_gradients(predictors, records, pull, scratch, into);
    }

    /// The parts of gradients; none where one is better, or where nodes of the same record might pick
    /// different coordinates.
    pub(crate) fn sparse(&self, jacobian: &Jacobian) -> Option<Sparse> {
        let is_outcome = |c: usize| self.steps.iter().any(|step| step.position == c);
        let is_known = self.program.picks_by(|c| !is_outcome(c));
        is_known.then(|| self.program.sparse(jacobian)).flatten()
    }

    /// Values and probabilities of all nodes.
    fn find_nodes(
        &self,
        columns: &[&[f64]],
        rows: usize,
        work: &mut Work,
        values: &mut [f64],
        probabilities: &mut [f64],
    ) {
        let count = self.nodes();
        let equal = match self.design {
            Design::Product(_) => 1.0,
            Design::Points(_) => 1.0 / count as f64,
        };
        probabilities.fill(equal);
        for (k, step) in self.steps.iter().enumerate() {
            let (before, own) = values.split_at_mut(k * count * BLOCK);
            for group in self.groups(k) {
                let mut base = columns.to_vec();
                for &other in &step.given {
                    base[self.steps[other].position] =
                        &before[(other * count + group[0]) * BLOCK..][..rows];
                }
                if let (Design::Product(_), None) = (&self.design, step.support.range) {
                    self.log_densities_at_atoms(step, &base, rows, work);
                    let atoms = &step.support.atoms;
                    let shares = &mut work.atoms[..atoms.len() * BLOCK];
                    shares_of(shares);
                    for &j in &group {
                        let at = self.digit(j, k);
                        own[j * BLOCK..][..rows].fill(atoms[at]);
                        let probabilities = &mut probabilities[j * BLOCK..][..rows];
                        for (p, share) in probabilities.iter_mut().zip(&shares[at * BLOCK..]) {
                            *p *= share;
                        }
                    }
                    continue;
                }
                if let Some(joined) = step.joined {
                    if joined.first == k {
                        let into = (&mut *own, &mut *probabilities);
                        self.find_joined(joined, &group, &base, rows, work, into);
                    }
                    continue;
                }
                if let (Design::Product(rules), Some(standard)) = (&self.design, &step.standard)
                    && let Some(moved) = self.moved((k, standard), &rules[k], &base, rows, work)
                {
                    for &j in &group {
                        let at = self.digit(j, k);
                        for i in 0..rows {
                            own[j * BLOCK + i] = moved.value(at, i);
                            probabilities[j * BLOCK + i] *= moved.weight(at, i);
                        }
                    }
                    continue;
                }
                // While the law is being made, there are none yet.
                let single = self.singles.get(k).and_then(Option::as_ref);
                let near = single.map(|single| self.near((k, single), &base, rows, work));
                let is_found = |i: usize| near.as_ref().is_some_and(|near| near.is_found[i]);
                if let Some(near) = &near {
                    for &j in &group {
                        let at = self.digit(j, k) * BLOCK;
                        own[j * BLOCK..][..rows].copy_from_slice(&near.values[at..][..rows]);
                        let weights = near.weights[at..].iter().zip(&near.is_found);
                        let probabilities = &mut probabilities[j * BLOCK..][..rows];
                        for (p, (weight, is_found)) in probabilities.iter_mut().zip(weights) {
                            *p *= if *is_found { *weight } else { 1.0 };
                        }
                    }
                    if (0..rows).all(is_found) {
                        continue;
                    }
                }
                let mut nodes = Nodes {
                    values: [0.0; NODES],
                    weights: [0.0; NODES],
                };
                self.conditionals(step, &base, rows, work, |i, conditional| {
                    if is_found(i) {
                        return;
                    }
                    for &j in &group {
                        let (value, weight) = match (&self.design, &conditional) {
                            (_, Err(_)) => (0.0, 0.0),
                            (Design::Product(rules), Ok(c)) => {
                                if j == group[0] {
                                    c.nodes(&rules[k], &mut nodes);
                                }
                                let at = self.digit(j, k);
                                (nodes.values[at], nodes.weights[at])
                            }
                            (Design::Points(points), Ok(c)) => (c.value(points[j][k]), 1.0),
                        };
                        own[j * BLOCK + i] = value;
                        probabilities[j * BLOCK + i] *= weight;
                    }
                });
            }
        }
    }

    fn position(&self, column: usize) -> usize {
        self.sources
            .iter()
            .position(|&c| c == column)
            .unwrap_or_default()
    }

    /// The interface of the law at `theta`.
    fn interface(&self, theta: &[f64]) -> Vec<f64> {
        let interface: Vec<_> = self.program.interface().collect();
        self.density.values(theta, &interface).concat()
    }

    fn work(&self, z: &[f64], rows: usize) -> Work {
        Work {
            program: self.program.scratch(z),
            grids: vec![vec![Grid::over(false, None, None); rows]],
            trial: vec![0.0; BLOCK],
            log_densities: vec![0.0; BLOCK],
            atoms: vec![0.0; NODES * BLOCK],
            flat: vec![None; rows],
            standards: vec![None; self.steps.len()],
            lattices: (self.singles.iter())
                .map(|single| {
                    single
                        .as_ref()
                        .map_or_else(Lattice::default, |s| s.lattice(z))
                })
                .collect(),
        }
    }
}

vectorised! {
    /// Whether all probabilities are above 0, and the gradients of these records are numbers.
    fn are_all_possible(probabilities: &[f64], gradients: &[f64]) -> bool {
        let mut all = true;
        for &p in probabilities {
            all &= p > 0.0;
        }
        for column in gradients.chunks_exact(BLOCK) {
            for g in &column[..probabilities.len()] {
                all &= g.is_finite();
            }
        }
        all
    }
}

impl Density {
    /// The columns that a law reads, in the order of [`Law::columns`], from the declared ones.
    pub(crate) fn columns_of_law(&self, raw: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let sources = self.places_of_law().into_iter();
        sources.map(|c| raw[c].clone()).collect()
    }

    /// The places of these columns in the declaration.
    pub(crate) fn places_of_law(&self) -> Vec<usize> {
        compiled(&self.model, &[]).1
    }
}

/// A program from raw columns to the likelihood, its terms and others of their numbers, and the columns that it
/// reads.
pub(super) fn compiled(model: &Model, others: &[Scalar]) -> (RowProgram, Vec<usize>) {
    let mut roots = vec![model.likelihood];
    roots.extend(model.likelihood_terms());
    roots.extend(others);
    let graph = &model.graphs.private;
    let column = |id| match graph.node(id).op {
        PrivateOp::Column(c) => Some(c as usize),
        _ => None,
    };
    let order = model.needed_private_nodes(&roots);
    let program = RowProgram::compile(&model.graphs, &order, &roots, |id| column(id).is_some());
    let sources = program.columns().iter().filter_map(|&id| column(id));
    let sources = sources.collect();
    (program, sources)
}

//! The law of a record's outcomes under the model: at given parameters, given the record's other
//! columns, a few values of the outcomes with their probabilities, and the gradient that the
//! record's log-likelihood would have at each.
//!
//! The result for a record is a function of that record's own columns, of the parameters, and of
//! public values (the model, a seed, a centre): no other record is read, and nothing is kept from
//! one record to the next. A sum over records of a bounded function of the nodes changes by one
//! bounded term when one record does.
//!
//! The outcomes are the columns for which the model has a density
//! ([`Outcome`](crate::model::Outcome)). They are taken one after the other, each given those
//! before it, in the order in which the [`Simulator`] draws them. An outcome with a density that no
//! parameter changes is a covariate. A declared int with at most 16 values has all of them; any
//! other has nodes (`nodes.rs`) on a grid that finds the mass (`grid.rs`). A real outcome may have
//! atoms: constants that it is compared with, as 0 in
//! `if (y == 0) target += bernoulli_logit_lpmf(1 | a); else ...`.
//!
//! A model may use a density and yet not be one: `target += normal_lpdf(y | mu, sigma)` with a
//! censored branch that does not belong to the same distribution. So all terms that involve an
//! outcome are integrated over it, on public records made up from the declarations and at public
//! parameters. The integral must be the same for all parameters: then, and only then, the mean of
//! the score is zero. Where it is not, there is no law.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::grid::{CELLS, Cells, Grid, REFINEMENTS};
use super::nodes::{NODES, Nodes, Point, Rule, points};
use super::scale::Scale;
use super::simulate::{Simulator, steps};
use super::support::{Support, supports};
use super::{
    BLOCK, Density, Frame, Jacobian, Picked, Pull, RowProgram, Scratch, Sight, Space, Sparse,
};
use crate::function::{exp, ln};
use crate::linear::vectorised;
use crate::model::{Model, PrivateOp, Scalar};

/// By how much the log of an integral may move with the parameters. The integral on a grid is
/// accurate to about a tenth of that.
const TOLERANCE: f64 = 0.01;
/// An integral whose log is this near to 0 is 1 to the accuracy of the grid. One that is further
/// off may be that of a density whose tail is cut off by a bound.
const EXACT: f64 = 1e-4;
/// Public records and the scales of the public parameters, normal about the centre, at which
/// integrals are computed: wide ones to detect a difference, narrow ones for models that cannot be
/// evaluated far out.
const RECORDS: usize = 64;
const SCALES: [f64; 8] = [1.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-4, 1e-6];
/// Where nothing else is found, integrals at scales from `WIDE` on may be off by more, since the grid is
/// less accurate where an outcome spreads over several orders of magnitude: their logs count less by this.
const WIDE: f64 = 1.0;
const WIDE_WEIGHT: f64 = 0.2;
/// The share of them that may be wrong: a peak that the grid misses.
const ODD: f64 = 0.02;
/// The share of records of which the integral must be known at two places or more.
const JUDGED: f64 = 0.1;
/// How far out an outcome is where scores are compared, in units of the outermost node, and by
/// how much one that is not bounded has grown: a score that is linear in the outcome by ten, one
/// that grows as its logarithm by less than two.
const NEAR: f64 = 3.0;
const FAR: f64 = 30.0;
const GROWN: f64 = 3.0;
/// The value of an outcome about which nothing is known: not a special value of any function.
const ANY: [f64; 1] = [0.5];
/// The fewest nodes of a real outcome among several outcomes.
const FEWEST: usize = 4;

/// The law of a model's outcomes.
pub struct Law<'a> {
    density: &'a Density,
    made_at: (Vec<f64>, u64),
    /// From raw columns to the likelihood and all its terms.
    program: RowProgram,
    sources: Vec<usize>,
    steps: Vec<Step>,
    design: Design,
}

/// The reason why a model has no law.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLaw {
    #[error("no column is an outcome: parameters change no density of a column, as in `y ~ ...`")]
    NoOutcome,
    #[error(
        "the outcomes {} have a joint density only: they cannot be taken one after the other",
        .outcomes.iter().map(|o| format!("`{o}`")).collect::<Vec<_>>().join(", ")
    )]
    Joined { outcomes: Vec<String> },
    #[error(
        "a term of the likelihood depends on parameters and on no outcome: such a term is not part of a density"
    )]
    NoDensity,
    #[error(
        "the terms of the model for `{outcome}` are not a density of it: their integral changes with the parameters, by a factor of {factor:.3} between two places"
    )]
    NotNormalised { outcome: String, factor: f64 },
    #[error(
        "no mass of `{outcome}` was found at the public parameters and records that were tried"
    )]
    NotFound { outcome: String },
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
    /// The values of each outcome at a node, by record.
    pub(crate) fn outcomes(&self, node: usize) -> impl Iterator<Item = &[f64]> {
        let each = self.probabilities.len();
        (self.values.chunks(each)).map(move |values| &values[node * BLOCK..][..BLOCK])
    }
}

struct Work {
    program: Scratch,
    grids: Vec<Grid>,
    trial: Vec<f64>,
    log_densities: Vec<f64>,
    /// Log densities at atoms, `[atom][BLOCK]`.
    atoms: Vec<f64>,
    /// The log density of each record, where it is the same everywhere.
    flat: Vec<Option<f64>>,
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
    support: Support,
    /// The steps before it that its density depends on.
    given: Vec<usize>,
}

/// The values of the outcomes that make up a node.
enum Design {
    /// All combinations of each step's atoms and nodes.
    Product(Vec<Rule>),
    /// The same points for all records, equally weighted.
    Points(Vec<Vec<Point>>),
}

/// The log of an integral that is to be 1, and the weight of its error.
#[derive(Clone, Copy)]
struct Mass {
    log: f64,
    weight: f64,
}

/// The reason why a record has no distribution at a step.
#[derive(Debug, Clone, Copy)]
enum Lost {
    /// No mass was found.
    Nowhere,
    /// Mass is where an unbounded column ends.
    Endless,
}

/// One record's distribution at one step.
struct Conditional<'a> {
    atoms: &'a [f64],
    /// The scale of the rest.
    scale: &'a Scale,
    /// Their probabilities.
    weights: [f64; NODES],
    /// The rest, and its probability.
    cells: Option<Cells<'a>>,
    rest: f64,
    is_int: bool,
    log_mass: f64,
}

impl<'a> Law<'a> {
    /// The law of the outcomes of `density`; `centre` is a public point (unconstrained) near
    /// which parameters are likely, such as the middle of the prior.
    ///
    /// Errors: the reason why there is none.
    pub fn of(density: &'a Density, centre: &[f64], seed: u64) -> Result<Law<'a>, NoLaw> {
        let model = &density.model;
        let terms = model.likelihood_terms();
        let (program, sources) = compiled(model);
        let mut law = Law {
            density,
            made_at: (centre.to_vec(), seed),
            sources,
            program,
            steps: Vec::new(),
            design: Design::Product(Vec::new()),
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let (ordered, joined) = steps(model);
        let changes = |t: usize| model.graphs.has_parameter(terms[t]);
        let speaks_of_outcome = |t: usize| ordered.iter().any(|s| s.terms.contains(&t));
        let drawn: Vec<_> = ordered
            .iter()
            .filter(|s| s.terms.iter().any(|&t| changes(t)))
            .collect();
        let name = |outcome: usize| model.columns[model.outcomes[outcome].column].name.clone();
        if drawn.is_empty() {
            return Err(NoLaw::NoOutcome);
        }
        if joined {
            let outcomes = (0..model.outcomes.len()).map(name).collect();
            return Err(NoLaw::Joined { outcomes });
        }
        if (0..terms.len()).any(|t| changes(t) && !speaks_of_outcome(t)) {
            return Err(NoLaw::NoDensity);
        }
        let places = public_places(centre, rng);
        let records = law.public_records(centre, rng);
        for step in &drawn {
            let outcome = model.outcomes[step.outcome].column;
            let earlier = |other: usize| model.outcomes[drawn[other].outcome].column;
            let scalars: Vec<Scalar> = step.terms.iter().map(|&t| terms[t]).collect();
            let columns = model.columns_under(&scalars);
            let given = (0..law.steps.len())
                .filter(|&k| columns.iter().any(|&(c, _)| c == earlier(k)))
                .collect();
            let mut step = Step {
                position: law.position(outcome),
                name: name(step.outcome),
                is_int: model.columns[outcome].is_int,
                terms: step.terms.iter().map(|t| t + 1).collect(),
                support: Support {
                    atoms: Vec::new(),
                    range: None,
                    scale: Scale::default(),
                },
                given,
            };
            let supports = supports(model, outcome, &scalars);
            step.support = law.check(&step, supports, &records, &places)?;
            law.steps.push(step);
        }
        law.design = law.design(rng);
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

    /// The number of nodes, at most 16.
    pub fn nodes(&self) -> usize {
        match &self.design {
            Design::Product(rules) => self.counts(rules).product(),
            Design::Points(points) => points.len(),
        }
    }

    /// Working memory for parameters `theta` (unconstrained).
    #[cfg(test)]
    pub fn scratch(&self, theta: &[f64]) -> LawScratch {
        self.scratch_at(&self.interface(theta), theta.len())
    }

    /// The point of the space as the law sees it.
    pub(crate) fn sight(&self, space: &Space, point: &[f64], frame: &Frame) -> Sight {
        self.density.sight_of(&self.program, space, point, frame)
    }

    /// From records' raw columns to their likelihood and its terms.
    pub(crate) fn program(&self) -> &RowProgram {
        &self.program
    }

    /// Working memory where the law sees `z`, for gradients of this many coordinates.
    pub(crate) fn scratch_at(&self, z: &[f64], coordinates: usize) -> LawScratch {
        LawScratch {
            work: self.work(z, BLOCK, coordinates),
            gradients: vec![0.0; coordinates * BLOCK],
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
            let each = self.program.pulled(&block, rows, pull, program, picked);
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
            let gradients = &mut gradients[..each.len()];
            gradients.copy_from_slice(each);
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

    /// The parts of gradients; none where one is better, or where nodes of the same record might pick
    /// different coordinates.
    pub(crate) fn sparse(&self, jacobian: &Jacobian) -> Option<Sparse> {
        let is_outcome = |c: usize| self.steps.iter().any(|step| step.position == c);
        let is_known = self.program.picks_by(|c| !is_outcome(c));
        is_known.then(|| self.program.sparse(jacobian)).flatten()
    }

    /// Whether gradients stay within a few times those at nodes, however far an outcome is from its
    /// expectation, as for ints with few values and for heavy tails. Checked on public records at
    /// `theta`, in coordinates of the space about the point that represents it.
    pub(crate) fn scores_are_bounded(
        &self,
        theta: &[f64],
        (space, frame): (&Space, &Frame),
        seed: u64,
    ) -> bool {
        if self.steps.iter().all(|s| s.support.range.is_none()) {
            return true;
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let records = self.public_records(theta, rng);
        let columns: Vec<&[f64]> = self.sources.iter().map(|&c| &records[c][..]).collect();
        let Sight { z, jacobian } = self.sight(space, frame.centre(), frame);
        let mut scratch = self.scratch_at(&z, frame.coordinates());
        let Located {
            values,
            probabilities,
        } = self.locate(&columns, RECORDS, &mut scratch);
        let work = &mut scratch.work;
        let count = self.nodes();
        let mut grown = 0;
        let mut judged = 0_u32;
        for (k, step) in self.steps.iter().enumerate() {
            if step.support.range.is_none() {
                continue;
            }
            for (side, in_logs) in [(-1.0, false), (1.0, false), (-1.0, true), (1.0, true)] {
                // Lengths of gradients at outcomes that are `times` as far out as any node; also on
                // the scale of logarithms where all nodes are positive.
                let mut lengths = |times: f64| -> Vec<f64> {
                    let far: Vec<f64> = (0..RECORDS)
                        .map(|i| {
                            let nodes = (0..count)
                                .filter(|j| probabilities[j * BLOCK + i] > 0.0)
                                .map(|j| values[(k * count + j) * BLOCK + i])
                                .filter(|x| !step.support.atoms.contains(x))
                                .map(|x| if in_logs { x.ln() } else { x });
                            let ends = (f64::INFINITY, f64::NEG_INFINITY);
                            // Not a number where a node has no logarithm.
                            let (low, high) = nodes.fold(ends, |(l, h), x| {
                                if x.is_nan() {
                                    (x, x)
                                } else {
                                    (if l > x { x } else { l }, if h < x { x } else { h })
                                }
                            });
                            let middle = 0.5 * (low + high);
                            let x = middle + side * times * (high - middle);
                            if in_logs { x.exp() } else { x }
                        })
                        .collect();
                    let mut block = columns.clone();
                    block[step.position] = &far;
                    let gradients =
                        self.program
                            .gradients(&block, RECORDS, &jacobian, &mut work.program);
                    let square =
                        |i: usize| gradients.chunks(BLOCK).map(|g| g[i] * g[i]).sum::<f64>();
                    (0..RECORDS).map(|i| square(i).sqrt()).collect()
                };
                let (near, far) = (lengths(NEAR), lengths(FAR));
                for (near, far) in near.iter().zip(&far) {
                    if near.is_finite() && far.is_finite() {
                        judged += 1;
                        grown += usize::from(*far > GROWN * near);
                    }
                }
            }
        }
        (grown as f64) < JUDGED * f64::from(judged.max(1))
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
                let mut nodes = Nodes {
                    values: [0.0; NODES],
                    weights: [0.0; NODES],
                };
                self.conditionals(step, &base, rows, work, |i, conditional| {
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

    /// How many nodes each step has.
    fn counts<'s>(&'s self, rules: &'s [Rule]) -> impl Iterator<Item = usize> + 's {
        let steps = self.steps.iter().zip(rules);
        steps.map(|(step, rule)| step.support.atoms.len() + rule.len())
    }

    /// Which of a step's own nodes is part of node `j`.
    fn digit(&self, j: usize, step: usize) -> usize {
        match &self.design {
            Design::Product(rules) => {
                let earlier: usize = self.counts(rules).take(step).product();
                let own = self.counts(rules).nth(step).unwrap_or(1);
                j / earlier % own
            }
            Design::Points(_) => j,
        }
    }

    /// Groups of nodes that agree in the values on which a step depends.
    fn groups(&self, step: usize) -> Vec<Vec<usize>> {
        let key = |j: usize| -> Vec<usize> {
            let given = self.steps[step].given.iter();
            given.map(|&other| self.digit(j, other)).collect()
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for j in 0..self.nodes() {
            match groups.iter_mut().find(|g| key(g[0]) == key(j)) {
                Some(group) => group.push(j),
                None => groups.push(vec![j]),
            }
        }
        groups
    }

    /// All values of all outcomes, or those of some and nodes for one other, if they fit; otherwise
    /// points.
    fn design(&self, rng: &mut impl Rng) -> Design {
        let spread = |s: &&Step| s.support.range.is_some();
        let atoms = |s: &Step| s.support.atoms.len();
        let known = self.steps.iter().filter(|s| !spread(s)).map(atoms);
        let room = NODES / known.fold(1_usize, usize::saturating_mul).min(2 * NODES);
        let others: Vec<&Step> = self.steps.iter().filter(spread).collect();
        let fits = match others[..] {
            [] => room > 0,
            [one] => room >= FEWEST + atoms(one),
            _ => false,
        };
        if !fits {
            return Design::Points(points(self.steps.len(), rng));
        }
        let nodes = |s: &Step| if spread(&s) { room - atoms(s) } else { 0 };
        Design::Product(self.steps.iter().map(|s| Rule::new(nodes(s))).collect())
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

    fn work(&self, z: &[f64], rows: usize, coordinates: usize) -> Work {
        Work {
            program: self.program.scratch(z, coordinates),
            grids: vec![Grid::over(false, None, None); rows],
            trial: vec![0.0; BLOCK],
            log_densities: vec![0.0; BLOCK],
            atoms: vec![0.0; NODES * BLOCK],
            flat: vec![None; rows],
        }
    }

    /// The distribution of an outcome for each record of a block.
    fn conditionals(
        &self,
        step: &Step,
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
        mut each: impl FnMut(usize, Result<Conditional, Lost>),
    ) {
        let Support {
            atoms,
            range,
            scale,
        } = &step.support;
        self.log_densities_at_atoms(step, base, rows, work);
        let Work {
            program,
            grids,
            trial,
            log_densities,
            atoms: at_atoms,
            flat,
        } = work;
        if let Some([lower, upper]) = *range {
            let grids = &mut grids[..rows];
            grids.fill(Grid::over(step.is_int, lower, upper));
            let low = lower.unwrap_or(f64::NEG_INFINITY);
            let high = upper.unwrap_or(f64::INFINITY);
            let mut fill = |grids: &mut [Grid]| {
                for cell in 0..CELLS {
                    for (value, grid) in trial.iter_mut().zip(&*grids) {
                        *value = scale.back(grid.middle(cell));
                        // An atom is not part of the density around it.
                        if !step.is_int && atoms.contains(value) {
                            *value = value.next_up();
                        }
                    }
                    let log_densities = &mut log_densities[..rows];
                    self.evaluate(step, base, &trial[..rows], program, log_densities);
                    for (grid, &log_density) in grids.iter_mut().zip(&*log_densities) {
                        let middle = grid.middle(cell);
                        let is_in = (low..=high).contains(&middle) && scale.reaches(middle);
                        let log_density = if is_in {
                            log_density
                        } else {
                            f64::NEG_INFINITY
                        };
                        grid.put(cell, log_density, middle);
                    }
                }
            };
            for round in 1.. {
                fill(grids);
                if round == 1 {
                    for (flat, grid) in flat.iter_mut().zip(&*grids) {
                        *flat = grid.flat();
                    }
                }
                let mut coarse = false;
                if round < REFINEMENTS {
                    for grid in grids.iter_mut() {
                        coarse |= grid.refine();
                    }
                }
                if !coarse {
                    break;
                }
            }
            // Twice, since tails are coarse the first time.
            for last in [false, true] {
                let mut laid = false;
                for grid in grids.iter_mut() {
                    laid |= grid.lay_at_scores(last);
                }
                if laid {
                    fill(grids);
                }
            }
        }
        for i in 0..rows {
            let cells = range.and_then(|_| grids[i].cells());
            let leaves = cells.as_ref().is_some_and(|c| grids[i].leaves(c));
            let log_densities = (0..atoms.len()).map(|a| at_atoms[a * BLOCK + i]);
            let said = |cells| Conditional::new((atoms, scale), log_densities, cells, step.is_int);
            // An outcome without bounds may be unused, as in a branch that leaves it out: then any
            // value will do.
            let nothing =
                |said| Conditional::new((&ANY, scale), [said].into_iter(), None, step.is_int);
            each(
                i,
                match (leaves, flat[i]) {
                    (false, _) => said(cells),
                    (true, Some(log_density)) => nothing(log_density),
                    (true, None) => Err(Lost::Endless),
                },
            );
        }
    }

    /// The log densities of an outcome at its atoms, `[atom][BLOCK]`, in the work's `atoms`.
    fn log_densities_at_atoms(&self, step: &Step, base: &[&[f64]], rows: usize, work: &mut Work) {
        let Work {
            program,
            trial,
            atoms,
            ..
        } = work;
        let of_atoms = step.support.atoms.iter().zip(atoms.chunks_exact_mut(BLOCK));
        for (value, log_densities) in of_atoms {
            trial.fill(*value);
            let log_densities = &mut log_densities[..rows];
            self.evaluate(step, base, &trial[..rows], program, log_densities);
        }
    }

    /// The log densities of an outcome at the values of `trial`, one for each record.
    fn evaluate(
        &self,
        step: &Step,
        base: &[&[f64]],
        trial: &[f64],
        program: &mut Scratch,
        log_densities: &mut [f64],
    ) {
        let rows = trial.len();
        let mut block = base.to_vec();
        block[step.position] = trial;
        self.program.forward(&block, rows, program);
        log_densities.fill(0.0);
        for &term in &step.terms {
            let of_term = self.program.output(term, &block, rows, program);
            for (sum, x) in log_densities.iter_mut().zip(of_term) {
                *sum += x;
            }
        }
    }

    fn public_records(&self, centre: &[f64], rng: &mut impl Rng) -> Vec<Vec<f64>> {
        Simulator::new(self.density)
            .by_bounds()
            .records(centre, RECORDS, None, rng)
    }

    /// The first support on which the density of an outcome integrates to 1, or else the one on
    /// which it is nearest to that, or else one on which its integral does not depend on
    /// parameters.
    fn check(
        &self,
        step: &Step,
        supports: Vec<Support>,
        records: &[Vec<f64>],
        places: &[Vec<f64>],
    ) -> Result<Support, NoLaw> {
        let block: Vec<&[f64]> = self
            .sources
            .iter()
            .map(|&c| records[c].as_slice())
            .collect();
        let mut nearest: Option<(f64, Support)> = None;
        let mut nearest_weighted: Option<(f64, Support)> = None;
        let mut constant = None;
        let mut least: Option<f64> = None;
        for support in supports {
            let step = Step {
                support: support.clone(),
                ..step.clone()
            };
            let mut log_masses = vec![Vec::new(); RECORDS];
            let mut endless = [false; RECORDS];
            for (theta, scale) in places.iter().zip(SCALES) {
                let weight = if scale < WIDE { 1.0 } else { WIDE_WEIGHT };
                let mut work = self.work(&self.interface(theta), RECORDS, theta.len());
                self.conditionals(&step, &block, RECORDS, &mut work, |i, found| match found {
                    Ok(conditional) => log_masses[i].push(Mass {
                        log: conditional.log_mass,
                        weight,
                    }),
                    Err(Lost::Endless) => endless[i] = true,
                    Err(Lost::Nowhere) => {}
                });
            }
            // Far out a mean may be beyond all bounds, but not everywhere.
            for (log_masses, _) in log_masses
                .iter_mut()
                .zip(endless)
                .filter(|(l, e)| l.len() < 2 && *e)
            {
                *log_masses = [0.0, f64::INFINITY]
                    .map(|log| Mass { log, weight: 1.0 })
                    .to_vec();
            }
            log_masses.retain(|of_record| of_record.len() > 1);
            if (log_masses.len() as f64) < JUDGED * RECORDS as f64 {
                continue;
            }
            // A bound that all but a few odd records stay below.
            let quantile = |of: &dyn Fn(&[Mass]) -> f64| {
                let mut each: Vec<f64> = log_masses.iter().map(|l| of(l)).collect();
                each.sort_by(f64::total_cmp);
                each[((1.0 - ODD) * (each.len() - 1) as f64).floor() as usize]
            };
            let off_one = quantile(&|l| l.iter().fold(0.0, |most, mass| mass.log.abs().max(most)));
            if off_one <= EXACT {
                return Ok(support);
            }
            if off_one <= nearest.as_ref().map_or(TOLERANCE, |(off, _)| *off) {
                nearest = Some((off_one, support));
                continue;
            }
            let weighted = quantile(&|l| {
                let each = l.iter().map(|mass| mass.weight * mass.log.abs());
                each.fold(0.0, f64::max)
            });
            if weighted <= nearest_weighted.as_ref().map_or(TOLERANCE, |(off, _)| *off) {
                nearest_weighted = Some((weighted, support.clone()));
            }
            let moved = quantile(&|l| {
                let masses = || l.iter().map(|mass| mass.log);
                masses().fold(f64::NEG_INFINITY, f64::max) - masses().fold(f64::INFINITY, f64::min)
            });
            if moved <= TOLERANCE && constant.is_none() {
                constant = Some(support);
            }
            least = Some(least.map_or(moved, |l| l.min(moved)));
        }
        let outcome = step.name.clone();
        let support = |found: Option<(f64, Support)>| found.map(|(_, support)| support);
        let nearest = support(nearest).or(constant);
        match (nearest.or(support(nearest_weighted)), least) {
            (Some(support), _) => Ok(support),
            (None, Some(moved)) => Err(NoLaw::NotNormalised {
                outcome,
                factor: moved.exp(),
            }),
            (None, None) => Err(NoLaw::NotFound { outcome }),
        }
    }
}

impl<'a> Conditional<'a> {
    fn new(
        (atoms, scale): (&'a [f64], &'a Scale),
        log_densities: impl Iterator<Item = f64>,
        cells: Option<Cells<'a>>,
        is_int: bool,
    ) -> Result<Self, Lost> {
        let mut weights = [0.0; NODES];
        let own = &mut weights[..atoms.len()];
        for (weight, log_density) in own.iter_mut().zip(log_densities) {
            // No mass where the density is not a number.
            *weight = log_density.max(f64::NEG_INFINITY);
        }
        let rest = cells.as_ref().map_or(f64::NEG_INFINITY, |c| c.log_mass);
        let peak = own.iter().copied().fold(rest, f64::max);
        let total: f64 = own.iter().chain([&rest]).map(|w| exp(w - peak)).sum();
        let log_mass = peak + ln(total);
        let share = |log: f64| exp(log - log_mass);
        for weight in &mut *own {
            *weight = share(*weight);
        }
        if !log_mass.is_finite() {
            return Err(Lost::Nowhere);
        }
        Ok(Conditional {
            atoms,
            scale,
            weights,
            rest: share(rest),
            cells,
            is_int,
            log_mass,
        })
    }

    fn nodes(&self, rule: &Rule, into: &mut Nodes) {
        let first = self.atoms.len();
        into.values[..first].copy_from_slice(self.atoms);
        into.weights = self.weights;
        if let Some(cells) = &self.cells {
            rule.nodes(cells, first, self.rest, into);
            for value in &mut into.values[first..] {
                *value = self.scale.back(*value);
            }
        }
    }

    /// The value that represents one of equal shares.
    fn value(&self, point: Point) -> f64 {
        let mut left = point.share;
        for (value, weight) in self.atoms.iter().zip(&self.weights) {
            left -= weight;
            if left <= 0.0 {
                return *value;
            }
        }
        match &self.cells {
            Some(cells) if self.atoms.is_empty() && !self.is_int => {
                self.scale.back(cells.value(point.tails))
            }
            Some(cells) => {
                let share = (left / self.rest).clamp(0.0, 1.0);
                self.scale.back(cells.value([share, 1.0 - share]))
            }
            None => self.atoms.last().copied().unwrap_or(0.0),
        }
    }
}

vectorised! {
    /// The shares of atoms in the mass of each record, of their log densities, `[atom][BLOCK]`; all
    /// 0 where there is no mass.
    fn shares_of(log_densities: &mut [f64]) {
        let mut peaks = [f64::NEG_INFINITY; BLOCK];
        for column in log_densities.chunks_exact(BLOCK) {
            for (peak, &l) in peaks.iter_mut().zip(column) {
                *peak = if l > *peak { l } else { *peak };
            }
        }
        let mut totals = [0.0; BLOCK];
        for column in log_densities.chunks_exact_mut(BLOCK) {
            for ((l, peak), total) in column.iter_mut().zip(&peaks).zip(&mut totals) {
                // No mass where the density is not a number.
                let mass = if *l <= *peak { exp(*l - peak) } else { 0.0 };
                *l = if mass >= 0.0 { mass } else { 0.0 };
                *total += *l;
            }
        }
        for column in log_densities.chunks_exact_mut(BLOCK) {
            for ((mass, total), peak) in column.iter_mut().zip(&totals).zip(&peaks) {
                let share = *mass / total;
                *mass = if *total > 0.0 && peak.is_finite() { share } else { 0.0 };
            }
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
        compiled(&self.model).1
    }
}

/// Public parameters about a centre, at which is checked what must hold everywhere.
pub(super) fn public_places(centre: &[f64], rng: &mut impl Rng) -> Vec<Vec<f64>> {
    let mut about = |scale: f64| {
        let noise = |c: &f64| c + scale * Distribution::<f64>::sample(&StandardNormal, rng);
        centre.iter().map(noise).collect()
    };
    SCALES.iter().map(|&scale| about(scale)).collect()
}

/// A program from raw columns to the likelihood and its terms, and the columns that it reads.
pub(super) fn compiled(model: &Model) -> (RowProgram, Vec<usize>) {
    let mut roots = vec![model.likelihood];
    roots.extend(model.likelihood_terms());
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

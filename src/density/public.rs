//! The public half at one point: values and gradients on plain numbers.
//!
//! burn evaluates the same graph for many points at once (`tensor.rs`). For a single point, its
//! allocations and the bookkeeping of its autodiff take 50 to 360 microseconds, whatever the model;
//! here a gradient takes a few. Values and derivatives come from the same tables and kernels.

use std::borrow::Cow;

use super::program::{binary_values, pull_back_left, pull_back_right};
use crate::model::{PublicGraph, PublicId, PublicOp};

/// Where the numbers of each node of a public graph are, and those that no parameter changes.
pub(super) struct PublicProgram {
    /// The first number of each node, and the end of the last.
    starts: Vec<usize>,
    has_parameter: Vec<bool>,
    /// The numbers of all nodes; 0 where a parameter changes them.
    fixed: Vec<f64>,
    longest: usize,
}

/// The values of the nodes that some roots need, at a point.
pub(super) struct PublicValues<'a> {
    program: &'a PublicProgram,
    graph: &'a PublicGraph,
    /// The nodes that the roots need and a parameter changes, operands first.
    order: Cow<'a, [usize]>,
    numbers: Vec<f64>,
}

impl PublicProgram {
    pub fn new(graph: &PublicGraph) -> PublicProgram {
        let mut starts = vec![0];
        let mut has_parameter: Vec<bool> = Vec::new();
        for node in graph.nodes() {
            starts.push(starts[starts.len() - 1] + node.length);
            let mut depends = matches!(node.op, PublicOp::Unconstrained { .. });
            node.op
                .for_operands(|id| depends |= has_parameter[id.0 as usize]);
            has_parameter.push(depends);
        }
        let longest = graph.nodes().iter().map(|n| n.length).max().unwrap_or(0);
        let mut program = PublicProgram {
            fixed: vec![0.0; starts[starts.len() - 1]],
            starts,
            has_parameter,
            longest,
        };
        let constant = (0..graph.nodes().len()).filter(|&i| !program.has_parameter[i]);
        let constant: Vec<usize> = constant.collect();
        let mut fixed = std::mem::take(&mut program.fixed);
        program.forward(graph, &constant, &[], &mut fixed);
        program.fixed = fixed;
        program
    }

    /// The values of the nodes of an order, at unconstrained parameters `theta`.
    pub fn at<'a>(
        &'a self,
        graph: &'a PublicGraph,
        order: Cow<'a, [usize]>,
        theta: &[f64],
    ) -> PublicValues<'a> {
        let mut numbers = self.fixed.clone();
        self.forward(graph, &order, theta, &mut numbers);
        PublicValues {
            program: self,
            graph,
            order,
            numbers,
        }
    }

    /// The nodes that `roots` need and a parameter changes, operands first.
    pub fn order(&self, graph: &PublicGraph, roots: impl Iterator<Item = PublicId>) -> Vec<usize> {
        let mut needed = vec![false; graph.nodes().len()];
        for root in roots {
            needed[root.0 as usize] = true;
        }
        for i in (0..needed.len()).rev() {
            needed[i] &= self.has_parameter[i];
            if needed[i] {
                let op = &graph.nodes()[i].op;
                op.for_operands(|id| needed[id.0 as usize] = true);
            }
        }
        (0..needed.len()).filter(|&i| needed[i]).collect()
    }

    fn range(&self, id: PublicId) -> std::ops::Range<usize> {
        let i = id.0 as usize;
        self.starts[i]..self.starts[i + 1]
    }

    fn forward(&self, graph: &PublicGraph, order: &[usize], theta: &[f64], numbers: &mut [f64]) {
        let mut wide = [vec![0.0; self.longest], vec![0.0; self.longest]];
        for &i in order {
            let node = &graph.nodes()[i];
            // A node's numbers come after those of its operands.
            let (before, after) = numbers.split_at_mut(self.starts[i]);
            let out = &mut after[..node.length];
            if out.is_empty() {
                continue;
            }
            let get = |id: PublicId| &before[self.range(id)];
            match &node.op {
                PublicOp::Constant(bits) => {
                    for (o, b) in out.iter_mut().zip(bits) {
                        *o = b.value();
                    }
                }
                PublicOp::Unconstrained { offset, length } => {
                    let offset = *offset as usize;
                    out.copy_from_slice(&theta[offset..offset + *length as usize]);
                }
                PublicOp::Unary(f, a) => (f.definition().map)(get(*a), out),
                PublicOp::Binary(op, a, b) => {
                    let [wide_a, wide_b] = &mut wide;
                    let a = widened(get(*a), wide_a, out.len());
                    let b = widened(get(*b), wide_b, out.len());
                    binary_values(*op, a, b, out);
                }
                PublicOp::Select(c, a, b) => {
                    let (c, a, b) = (get(*c), get(*a), get(*b));
                    for (k, o) in out.iter_mut().enumerate() {
                        let branch = if element(c, k) != 0.0 { a } else { b };
                        *o = element(branch, k);
                    }
                }
                PublicOp::Sum(a) => out[0] = get(*a).iter().sum(),
                PublicOp::Take(a, positions) => {
                    let a = get(*a);
                    for (o, &p) in out.iter_mut().zip(positions) {
                        *o = a[p as usize];
                    }
                }
                PublicOp::Concatenate(parts) => {
                    let mut rest = out;
                    for &part in parts {
                        let part = get(part);
                        let (own, next) = rest.split_at_mut(part.len());
                        own.copy_from_slice(part);
                        rest = next;
                    }
                }
                PublicOp::Kernel {
                    kernel,
                    left,
                    right,
                } => kernel.value(get(*left), right.map_or(&[][..], get), out),
            }
        }
    }
}

impl PublicValues<'_> {
    pub fn get(&self, id: PublicId) -> &[f64] {
        &self.numbers[self.program.range(id)]
    }

    /// The gradient with respect to the unconstrained parameters, of which there are `dimension`,
    /// of the sum over `roots` of their numbers times the weights that come with them.
    pub fn gradient<'w>(
        &self,
        roots: impl Iterator<Item = (PublicId, &'w [f64])>,
        dimension: usize,
    ) -> Vec<f64> {
        let mut adjoints = vec![0.0; self.numbers.len()];
        for (id, weights) in roots {
            for (a, w) in adjoints[self.program.range(id)].iter_mut().zip(weights) {
                *a += w;
            }
        }
        let mut gradient = vec![0.0; dimension];
        self.reverse(&self.order, &mut adjoints, &mut gradient);
        gradient
    }

    /// The gradients of each number of a root.
    pub fn jacobian(&self, root: PublicId, dimension: usize) -> Vec<Vec<f64>> {
        let order = (self.program).order(self.graph, std::iter::once(root));
        let mut adjoints = vec![0.0; self.numbers.len()];
        let range = self.program.range(root);
        let row = |place: usize| {
            let mut gradient = vec![0.0; dimension];
            adjoints.fill(0.0);
            adjoints[place] = 1.0;
            self.reverse(&order, &mut adjoints, &mut gradient);
            gradient
        };
        range.map(row).collect()
    }

    /// Pulls adjoints back to the parameters, through the nodes of `order`.
    fn reverse(&self, order: &[usize], adjoints: &mut [f64], gradient: &mut [f64]) {
        let longest = self.program.longest;
        let mut wide = [vec![0.0; longest], vec![0.0; longest]];
        let mut pulled = vec![0.0; longest];
        let has_parameter = |id: PublicId| self.program.has_parameter[id.0 as usize];
        for &i in order.iter().rev() {
            let node = &self.graph.nodes()[i];
            let own = self.program.range(PublicId(i as u32));
            let value = &self.numbers[own.clone()];
            let (before, after) = adjoints.split_at_mut(own.start);
            let adjoint = &after[..node.length];
            if adjoint.iter().all(|&a| a == 0.0) {
                continue;
            }
            let range = |id: PublicId| self.program.range(id);
            match &node.op {
                PublicOp::Constant(_) => {}
                PublicOp::Unconstrained { offset, .. } => {
                    add(&mut gradient[*offset as usize..], adjoint)
                }
                PublicOp::Unary(f, a) => {
                    let into = &mut before[range(*a)];
                    (f.definition().pull_back)(self.get(*a), value, adjoint, into);
                }
                PublicOp::Binary(op, a, b) => {
                    let [wide_a, wide_b] = &mut wide;
                    let x = widened(self.get(*a), wide_a, node.length);
                    let y = widened(self.get(*b), wide_b, node.length);
                    let mut pull = |id: PublicId, by_left: bool| {
                        let into = &mut before[range(id)];
                        let is_narrow = into.len() < node.length;
                        let target = if is_narrow {
                            pulled[..node.length].fill(0.0);
                            &mut pulled[..node.length]
                        } else {
                            &mut *into
                        };
                        if by_left {
                            pull_back_left(*op, x, y, adjoint, target);
                        } else {
                            pull_back_right(*op, x, y, value, adjoint, target);
                        }
                        if is_narrow {
                            into[0] += pulled[..node.length].iter().sum::<f64>();
                        }
                    };
                    if has_parameter(*a) {
                        pull(*a, true);
                    }
                    if has_parameter(*b) {
                        pull(*b, false);
                    }
                }
                PublicOp::Select(c, a, b) => {
                    let c = self.get(*c);
                    for (id, wanted) in [(*a, true), (*b, false)] {
                        let into = &mut before[range(id)];
                        let is_narrow = into.len() == 1;
                        for (k, a) in adjoint.iter().enumerate() {
                            if (element(c, k) != 0.0) == wanted {
                                into[if is_narrow { 0 } else { k }] += a;
                            }
                        }
                    }
                }
                PublicOp::Sum(a) => {
                    for d in &mut before[range(*a)] {
                        *d += adjoint[0];
                    }
                }
                PublicOp::Take(a, positions) => {
                    let into = &mut before[range(*a)];
                    for (&p, a) in positions.iter().zip(adjoint) {
                        into[p as usize] += a;
                    }
                }
                PublicOp::Concatenate(parts) => {
                    let mut rest = adjoint;
                    for &part in parts {
                        let into = &mut before[range(part)];
                        let (own, next) = rest.split_at(into.len());
                        add(into, own);
                        rest = next;
                    }
                }
                PublicOp::Kernel {
                    kernel,
                    left,
                    right,
                } => {
                    let (x, y) = (self.get(*left), right.map_or(&[][..], |id| self.get(id)));
                    // One operand after the other: they may be the same node.
                    if has_parameter(*left) {
                        let into = Some(&mut before[range(*left)]);
                        kernel.pull_back(x, y, value, adjoint, into, None);
                    }
                    if let Some(right) = right.filter(|&id| has_parameter(id)) {
                        let into = Some(&mut before[range(right)]);
                        kernel.pull_back(x, y, value, adjoint, None, into);
                    }
                }
            }
        }
    }
}

fn add(into: &mut [f64], terms: &[f64]) {
    for (a, b) in into.iter_mut().zip(terms) {
        *a += b;
    }
}

/// Element `k` of a vector, of which a single number stands for any length.
fn element(vector: &[f64], k: usize) -> f64 {
    vector[if vector.len() == 1 { 0 } else { k }]
}

/// The vector at this length.
fn widened<'a>(vector: &'a [f64], wide: &'a mut [f64], length: usize) -> &'a [f64] {
    if vector.len() == length {
        return vector;
    }
    wide[..length].fill(vector[0]);
    &wide[..length]
}

#[cfg(test)]
mod tests {
    use crate::density::Density;
    use crate::model::{Constants, Model};

    /// Every kind of node, operands of which one stands for many, and a node that is both operands
    /// of another; the values are burn's, and so are the slopes, by differences.
    #[test]
    fn values_and_gradients_are_those_of_burn() {
        let source = "
            constants { vector[3] c; }
            record { real y; }
            parameters {
              real a; real<lower=0> s; vector[3] v; simplex[3] p; ordered[3] o;
              cov_matrix[2] m; cholesky_factor_corr[3] l; matrix[3, 3] w;
            }
            model {
              a ~ normal(0, s);
              s ~ gamma(2, 1 + exp(-a));
              v ~ normal(a + c, s);
              c ~ normal(v .* (s + o), exp(a));
              p ~ dirichlet([1 + s, 2, 3]');
              o ~ student_t(4, reverse(v), 2);
              target += log_sum_exp(v) - log_determinant(m) + sum(softmax(o) .* v);
              target += -dot_self(to_vector(w * w')) - dot_self(l * v);
              target += a > 0.1 ? -square(v[2]) : -v[1] / s;
              target += -max(append_row(v, o)) + fmin(a, s);
              l ~ lkj_corr_cholesky(2);
              y ~ normal(a * s, s);
            }";
        let mut constants = Constants::none();
        constants.insert("c", vec![0.3, -0.2, 1.1]);
        let model = Model::from_source(source, &constants).unwrap_or_else(|e| panic!("{e:?}"));
        let density = Density::new(model);
        let d = density.dimension();
        const STEP: f64 = 1e-5;
        for place in 0..4 {
            let at = |j: usize| 0.6 * (1.7 * (j + 5 * place) as f64).sin();
            let theta: Vec<f64> = (0..d).map(at).collect();
            let mut points = vec![theta.clone()];
            for (j, side) in (0..d).flat_map(|j| [(j, -1.0), (j, 1.0)]) {
                let mut moved = theta.clone();
                moved[j] += side * STEP;
                points.push(moved);
            }
            let of_burn = density.log_priors(&points);
            let (value, gradient) = density.pull_back(&theta, &[]);
            assert!(value.is_finite());
            assert!((value - of_burn[0]).abs() <= 1e-12 * value.abs(), "{place}");
            for (j, g) in gradient.iter().enumerate() {
                let slope = (of_burn[2 * j + 2] - of_burn[2 * j + 1]) / (2.0 * STEP);
                let off = (g - slope).abs();
                assert!(
                    off <= 1e-6 * (1.0 + slope.abs()),
                    "{place} {j}: {g} {slope}"
                );
            }
        }
    }

    /// A scale that depends on another, in one place of the interface: derivatives of each place by
    /// differences of its value.
    #[test]
    fn the_jacobian_is_that_of_the_interface() {
        let source = "
            record { int<lower=1, upper=4> g; real y; }
            parameters { real mu; real<lower=0> tau; vector[4] z; real<lower=mu> u; }
            model {
              z ~ normal(0, 1);
              y ~ normal((mu + tau * z)[g], u - mu);
            }";
        let model = Model::from_source(source, &Constants::none()).expect("a valid model");
        let density = Density::new(model);
        let theta = [0.4, -0.3, 0.5, -1.2, 0.1, 2.0, 0.7];
        let jacobian = density.interface_jacobian(&theta);
        assert_eq!(jacobian.rows.len(), density.interface(&theta).z.len());
        const STEP: f64 = 1e-6;
        for j in 0..theta.len() {
            let z_at = |side: f64| {
                let mut moved = theta;
                moved[j] += side * STEP;
                density.interface(&moved).z
            };
            for ((row, up), down) in jacobian.rows.iter().zip(z_at(1.0)).zip(z_at(-1.0)) {
                let found: f64 = (row.iter().filter(|(k, _)| *k == j)).map(|(_, w)| w).sum();
                let slope = (up - down) / (2.0 * STEP);
                assert!((found - slope).abs() < 1e-8, "{j}: {found} {slope}");
            }
        }
    }
}

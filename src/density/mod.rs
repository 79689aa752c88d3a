//! The log density and its gradient.
//!
//! The parameter part (transforms, priors, hierarchical structure) is evaluated once per density
//! evaluation: as a program at one point, on burn at many. The record part takes the interface
//! values that the parameter part computes and a block of records (see [`RowProgram`]). This module
//! only computes; it holds no rows and releases nothing.

mod atoms;
mod covariate;
mod curvature;
mod frame;
mod grid;
mod guesses;
mod hazard;
mod joint;
mod kernel;
mod law;
#[cfg(test)]
mod law_tests;
mod nodes;
mod noncentred;
mod program;
mod public;
mod scale;
mod sight;
mod simulate;
mod special;
mod support;
mod tensor;

pub(crate) use covariate::made_up_values;
pub use curvature::Curvature;
pub(crate) use curvature::curvature_at;
pub use frame::Frame;
pub use hazard::Hazard;
pub(crate) use hazard::{Censored, HazardScratch, INTERVALS};
pub(crate) use law::Located;
pub use law::{Law, LawScratch, NoLaw, Node};
pub(crate) use noncentred::NonCentred;
pub use program::{
    BLOCK, Dependents, Jacobian, Picked, Predictors, Pull, RowProgram, Scratch, Sparse, merge_picks,
};
pub use sight::{Sight, Space};
pub use simulate::{PublicSample, Simulator};

use std::borrow::Cow;

use burn::tensor::{Device, Tensor};

use crate::model::{Model, Parameter, PrivateId, PrivateOp, PublicId, PublicOp, Scalar};
use public::{PublicProgram, PublicValues};
use tensor::{Functions, PublicTensors, evaluate_private, evaluate_public, needed, numbers};

/// A model that is ready to be evaluated.
pub struct Density {
    model: Model,
    /// Raw columns in, columns of the row program (and the constant part of the
    /// likelihood, last) out; runs once, when the data is loaded.
    loading: RowProgram,
    rows: RowProgram,
    public: PublicProgram,
    /// The nodes of the log density, and of the interface.
    order: Vec<usize>,
    outputs: Vec<(String, usize, usize)>,
}

/// Values of the interface at one point.
#[derive(Debug, Clone)]
pub struct Interface {
    pub z: Vec<f64>,
}

/// The public half at one point.
pub(crate) struct Evaluated<'a> {
    density: &'a Density,
    values: PublicValues<'a>,
}

impl Evaluated<'_> {
    /// The interface.
    pub fn z(&self) -> Vec<f64> {
        let vectors = self.density.rows.interface();
        vectors
            .flat_map(|id| self.values.get(id))
            .copied()
            .collect()
    }

    /// [`Density::pull_back`] with an adjoint that is not empty.
    pub fn pull_back(&self, adjoint: &[f64]) -> (f64, Vec<f64>) {
        let vectors = self.density.rows.interface();
        self.density.pulled_back(&self.values, vectors, adjoint)
    }
}

/// Computes what depends only on records, a block of them at a time.
pub(crate) struct Loading<'a> {
    program: &'a RowProgram,
    scratch: Scratch,
    /// The raw columns that are read.
    sources: Vec<usize>,
}

impl Loading<'_> {
    pub fn new(density: &Density) -> Loading<'_> {
        let program = &density.loading;
        let source = |&id: &PrivateId| match density.model.graphs.private.node(id).op {
            PrivateOp::Column(c) => c as usize,
            _ => unreachable!("only raw columns are passed in"),
        };
        Loading {
            program,
            scratch: program.scratch(&[]),
            sources: program.columns().iter().map(source).collect(),
        }
    }

    /// Calls `take` with each column of the row program, by its place there, and last with the
    /// constant parts of the log-likelihoods. `raw`: the declared columns of at most [`BLOCK`]
    /// records.
    pub fn load(&mut self, raw: &[&[f64]], rows: usize, mut take: impl FnMut(usize, &[f64])) {
        let block: Vec<&[f64]> = self.sources.iter().map(|&c| raw[c]).collect();
        self.program.forward(&block, rows, &mut self.scratch);
        for root in 0..self.program.outputs() {
            take(root, self.program.output(root, &block, rows, &self.scratch));
        }
    }
}

impl Density {
    pub fn new(model: Model) -> Density {
        let order = model.needed_private_nodes(&[model.likelihood]);
        let graph = &model.graphs.private;
        let of_record = |id: PrivateId| !graph.node(id).has_parameter;
        let rows = RowProgram::compile(&model.graphs, &order, &[model.likelihood], of_record);
        let mut roots: Vec<Scalar> = rows
            .columns()
            .iter()
            .map(|&id| Scalar::Private(id))
            .collect();
        roots.push(model.record_constant);
        let order = model.needed_private_nodes(&roots);
        let loading = RowProgram::compile(&model.graphs, &order, &roots, |id| {
            matches!(graph.node(id).op, PrivateOp::Column(_))
        });
        let outputs = model.output_columns();
        let public = PublicProgram::new(&model.graphs.public);
        let roots = [model.prior, model.jacobian].into_iter();
        let order = public.order(&model.graphs.public, roots.chain(rows.interface()));
        Density {
            public,
            order,
            model,
            loading,
            rows,
            outputs,
        }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of unconstrained coordinates.
    pub fn dimension(&self) -> usize {
        self.model.dimension
    }

    /// The compiled record part.
    pub fn row_program(&self) -> &RowProgram {
        &self.rows
    }

    /// Names of the output columns, as in Stan CSV: `beta.1`.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|(name, _, _)| name.as_str())
    }

    /// Computes the values that depend only on the record: the columns that the row program reads,
    /// and the constant part of each record's log-likelihood.
    ///
    /// `raw` holds the declared columns, `[columns][n]`, in declaration order.
    pub fn load_columns(&self, raw: &[Vec<f64>], n: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut derived = vec![Vec::with_capacity(n); self.rows.columns().len() + 1];
        let mut loading = Loading::new(self);
        for start in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - start);
            let block: Vec<&[f64]> = raw.iter().map(|c| &c[start..start + rows]).collect();
            loading.load(&block, rows, |k, values| {
                derived[k].extend_from_slice(values)
            });
        }
        let constant = derived.pop().unwrap_or_default();
        (derived, constant)
    }

    /// The columns of the row program: those that are raw by their place in the declaration.
    pub(crate) fn raw_columns(&self) -> Vec<Option<usize>> {
        let raw = |&id: &PrivateId| match self.model.graphs.private.node(id).op {
            PrivateOp::Column(c) => Some(c as usize),
            _ => None,
        };
        self.rows.columns().iter().map(raw).collect()
    }

    /// Every record's gradient of its log-likelihood, one after the other, `dimension`
    /// numbers each; `columns` are the results of [`Density::load_columns`]. For public records:
    /// the vault has its own method.
    pub fn record_gradients(&self, theta: &[f64], columns: &[Vec<f64>], n: usize) -> Vec<f64> {
        let jacobian = self.interface_jacobian(theta);
        let mut scratch = self.rows.scratch(&self.interface(theta).z);
        let mut gradients = Vec::with_capacity(n * self.dimension());
        for start in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - start);
            let block: Vec<&[f64]> = columns.iter().map(|c| &c[start..start + rows]).collect();
            self.rows.forward(&block, rows, &mut scratch);
            let each = self.rows.gradients(&block, rows, &jacobian, &mut scratch);
            for i in 0..rows {
                gradients.extend((0..self.dimension()).map(|j| each[j * BLOCK + i]));
            }
        }
        gradients
    }

    /// Every record's log-likelihood (nats), without the part that no parameter changes; `columns`
    /// as for [`Density::record_gradients`].
    pub fn record_log_likelihoods(
        &self,
        theta: &[f64],
        columns: &[Vec<f64>],
        n: usize,
    ) -> Vec<f64> {
        self.log_likelihoods_at(&self.interface(theta).z, columns, n)
    }

    /// The same where the interface has the values `z`.
    pub(crate) fn log_likelihoods_at(&self, z: &[f64], columns: &[Vec<f64>], n: usize) -> Vec<f64> {
        let mut scratch = self.rows.scratch(z);
        let mut values = Vec::with_capacity(n);
        for start in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - start);
            let block: Vec<&[f64]> = columns.iter().map(|c| &c[start..start + rows]).collect();
            self.rows.forward(&block, rows, &mut scratch);
            values.extend_from_slice(self.rows.output(0, &block, rows, &scratch));
        }
        values
    }

    /// Log prior density plus log Jacobian (nats, unconstrained scale).
    pub fn log_prior(&self, theta: &[f64]) -> f64 {
        let [prior, jacobian] = self.prior_and_jacobian(theta);
        prior + jacobian
    }

    /// [`Density::log_prior`] at many points, which takes little longer than at one.
    pub fn log_priors(&self, points: &[Vec<f64>]) -> Vec<f64> {
        if points.is_empty() || self.dimension() == 0 {
            return points.iter().map(|theta| self.log_prior(theta)).collect();
        }
        let graph = &self.model.graphs.public;
        let roots = [self.model.prior, self.model.jacobian];
        let shape = [points.len(), self.dimension()];
        let leaf = tensor::tensor(points.concat(), shape, &Device::flex());
        let values = evaluate_public(graph, &needed(graph, &roots), &leaf, Functions::Table);
        let [prior, jacobian] = roots.map(|id| numbers(values.get(id)));
        // Values that depend on no parameter have one row.
        let element = |column: &[f64], i: usize| column[if column.len() == 1 { 0 } else { i }];
        (0..points.len())
            .map(|i| element(&prior, i) + element(&jacobian, i))
            .collect()
    }

    /// Log prior density on the constrained scale, and log Jacobian.
    pub fn prior_and_jacobian(&self, theta: &[f64]) -> [f64; 2] {
        let roots = [self.model.prior, self.model.jacobian];
        let values = self.values(theta, &roots);
        [values[0][0], values[1][0]]
    }

    /// The interface at a point.
    pub fn interface(&self, theta: &[f64]) -> Interface {
        let roots: Vec<PublicId> = self.rows.interface().collect();
        Interface {
            z: self.values(theta, &roots).concat(),
        }
    }

    /// The Jacobian of the interface, dz/dtheta.
    pub fn interface_jacobian(&self, theta: &[f64]) -> Jacobian {
        self.jacobian_of(self.rows.interface(), theta)
    }

    /// The Jacobian of public vectors, one after the other.
    fn jacobian_of(&self, vectors: impl Iterator<Item = PublicId>, theta: &[f64]) -> Jacobian {
        let graph = &self.model.graphs.public;
        let dimension = self.dimension();
        let vectors: Vec<PublicId> = vectors.collect();
        let values = self.public_values(vectors.iter().copied(), theta);
        let mut rows = Vec::new();
        for id in vectors {
            // Coordinates that are parameters themselves need no computation.
            if let PublicOp::Unconstrained { offset, .. } = graph.node(id).op {
                rows.extend((0..graph.length(id)).map(|i| vec![(offset as usize + i, 1.0)]));
                continue;
            }
            for gradient in values.jacobian(id, dimension) {
                let derivatives = gradient.into_iter().enumerate();
                rows.push(derivatives.filter(|&(_, w)| w != 0.0).collect());
            }
        }
        Jacobian::new(dimension, rows)
    }

    /// Log prior plus log Jacobian, and the gradient of
    /// `log prior + log Jacobian + sum_k adjoint[k] * z[k]` on the unconstrained
    /// scale; `adjoint` is the gradient with respect to the interface, or empty.
    pub fn pull_back(&self, theta: &[f64], adjoint: &[f64]) -> (f64, Vec<f64>) {
        if adjoint.is_empty() {
            return self.pull_back_vectors(theta, &[], &[]);
        }
        self.evaluated(theta).pull_back(adjoint)
    }

    /// The log prior and the interface at a point.
    pub(crate) fn evaluated(&self, theta: &[f64]) -> Evaluated<'_> {
        let graph = &self.model.graphs.public;
        Evaluated {
            density: self,
            values: self.public.at(graph, Cow::Borrowed(&self.order), theta),
        }
    }

    /// The same, with any public vectors, one after the other, in place of the interface.
    fn pull_back_vectors(
        &self,
        theta: &[f64],
        vectors: &[PublicId],
        adjoint: &[f64],
    ) -> (f64, Vec<f64>) {
        let density = [self.model.prior, self.model.jacobian].into_iter();
        let values = self.public_values(density.chain(vectors.iter().copied()), theta);
        self.pulled_back(&values, vectors.iter().copied(), adjoint)
    }

    /// The same, from values that have been computed.
    fn pulled_back(
        &self,
        values: &PublicValues,
        vectors: impl Iterator<Item = PublicId>,
        adjoint: &[f64],
    ) -> (f64, Vec<f64>) {
        let graph = &self.model.graphs.public;
        let density = [self.model.prior, self.model.jacobian];
        let log_prior = density.map(|id| values.get(id)[0]).iter().sum();
        let mut rest = adjoint;
        let of_vectors = vectors.map(|id| {
            let (own, next) = rest.split_at(graph.length(id));
            rest = next;
            (id, own)
        });
        let of_density = density.into_iter().map(|id| (id, &[1.0][..]));
        let gradient = values.gradient(of_density.chain(of_vectors), self.dimension());
        (log_prior, gradient)
    }

    /// The output columns at a point, in the order of
    /// [`Density::output_names`].
    pub fn outputs(&self, theta: &[f64]) -> Vec<f64> {
        let roots: Vec<PublicId> = self.model.outputs.iter().map(|o| o.node).collect();
        let values = self.values(theta, &roots);
        self.outputs
            .iter()
            .map(|&(_, output, position)| values[output][position])
            .collect()
    }

    /// Unconstrained coordinates of constrained parameter values, which
    /// `element(name, storage position)` looks up.
    ///
    /// Errors: a value is missing or violates its constraint, in words.
    pub fn unconstrain(
        &self,
        mut element: impl FnMut(&str, usize) -> Result<f64, String>,
    ) -> Result<Vec<f64>, String> {
        let mut theta = vec![0.0; self.dimension()];
        for parameter in &self.model.parameters {
            let Parameter { name, shape, .. } = parameter;
            let values = (0..shape.length())
                .map(|i| element(name, i))
                .collect::<Result<Vec<_>, _>>()?;
            // Bounds may be expressions of parameters declared before.
            let number = |id: PublicId| self.values(&theta, &[id]).concat();
            let free = parameter
                .transform
                .unconstrain(name, &values, shape, &number)?;
            theta[parameter.offset..parameter.offset + free.len()].copy_from_slice(&free);
        }
        Ok(theta)
    }

    /// Values of public nodes.
    fn values(&self, theta: &[f64], roots: &[PublicId]) -> Vec<Vec<f64>> {
        let values = self.public_values(roots.iter().copied(), theta);
        roots.iter().map(|&id| values.get(id).to_vec()).collect()
    }

    fn public_values(
        &self,
        roots: impl Iterator<Item = PublicId>,
        theta: &[f64],
    ) -> PublicValues<'_> {
        let graph = &self.model.graphs.public;
        let order = self.public.order(graph, roots);
        self.public.at(graph, Cow::Owned(order), theta)
    }

    /// Every record's log-likelihood and gradient by an independent path: the parameters tiled to
    /// one row per record, burn's own functions and derivatives throughout. Slow; the row program
    /// is tested against it.
    ///
    /// Returns `n` log-likelihoods and `n x dimension` gradients by rows.
    pub fn tiled_gradients(
        &self,
        theta: &[f64],
        raw: &[Vec<f64>],
        n: usize,
    ) -> (Vec<f64>, Vec<f64>) {
        let device = Device::flex().autodiff();
        let graphs = &self.model.graphs;
        let order = self.model.needed_private_nodes(&[self.model.likelihood]);
        let roots: Vec<PublicId> = order
            .iter()
            .flat_map(|&id| {
                let op = &graphs.private.node(id).op;
                let table = match op {
                    PrivateOp::Gather { table, .. } => Some(*table),
                    _ => None,
                };
                crate::model::operands(op)
                    .into_iter()
                    .filter_map(|s| match s {
                        Scalar::Public(id, _) => Some(id),
                        _ => None,
                    })
                    .chain(table)
            })
            .collect();
        let leaf = tensor::tensor(theta.repeat(n), [n, self.dimension()], &device).require_grad();
        let public: PublicTensors = evaluate_public(
            &graphs.public,
            &needed(&graphs.public, &roots),
            &leaf,
            Functions::Native,
        );
        let columns: Vec<Tensor<2>> = raw
            .iter()
            .map(|c| tensor::tensor(c.clone(), [n, 1], &device))
            .collect();
        let terms = evaluate_private(graphs, &order, &public, &columns, self.model.likelihood, n);
        let values = numbers(terms.clone());
        (values, backward(Some(terms.sum()), &leaf))
    }
}

/// The gradient of `loss` at `leaf`.
fn backward(loss: Option<Tensor<1>>, leaf: &Tensor<2>) -> Vec<f64> {
    let [rows, columns] = leaf.dims();
    // A loss that does not depend on the leaf has no graph to walk; this part
    // has the gradient zero.
    let anchor = leaf.clone().sum() * 0.0;
    let loss = match loss {
        Some(loss) => loss + anchor,
        None => anchor,
    };
    let mut gradients = loss.backward();
    leaf.grad_remove(&mut gradients)
        .map_or_else(|| vec![0.0; rows * columns], numbers)
}

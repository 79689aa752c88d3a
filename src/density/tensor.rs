//! The graphs on burn tensors.
//!
//! The public half runs here for many points at once, a row of a batch for each. With the private
//! half it is also the slow, independent path with which tests compare what runs in production
//! (`public.rs`, `program.rs`): the parameters tiled to one row per record, so that one backward
//! pass gives every record's own gradient.

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData, activation};

use super::{kernel, special};
use crate::function::{Kernel, Unary};
use crate::model::{
    Binary, Graphs, PrivateId, PrivateNode, PrivateOp, PublicGraph, PublicId, PublicOp, Scalar,
};

/// Whether scalar functions are burn's own, where it has them, or the table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Functions {
    /// The ops of [`special`]: value and derivative from one table.
    Table,
    /// burn's ops and burn's derivatives: independent of the table.
    Native,
}

/// Public nodes evaluated so far, as `[batch or 1, length]` tensors.
pub(super) struct PublicTensors {
    values: Vec<Option<Tensor<2>>>,
}

impl PublicTensors {
    pub fn get(&self, id: PublicId) -> Tensor<2> {
        match &self.values[id.0 as usize] {
            Some(tensor) => tensor.clone(),
            None => unreachable!("every root was requested"),
        }
    }
}

pub(super) fn tensor(values: Vec<f64>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), (device, DType::F64))
}

pub(super) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Which nodes the roots need.
pub(super) fn needed(graph: &PublicGraph, roots: &[PublicId]) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes().len()];
    for root in roots {
        needed[root.0 as usize] = true;
    }
    for i in (0..needed.len()).rev() {
        if needed[i] {
            let op = &graph.nodes()[i].op;
            op.for_operands(|id| needed[id.0 as usize] = true);
        }
    }
    needed
}

/// Evaluates the needed nodes for a batch of unconstrained vectors (`theta`: `[batch, dimension]`).
pub(super) fn evaluate_public(
    graph: &PublicGraph,
    needed: &[bool],
    theta: &Tensor<2>,
    functions: Functions,
) -> PublicTensors {
    let device = theta.device();
    let batch = theta.dims()[0];
    let mut values: Vec<Option<Tensor<2>>> = vec![None; graph.nodes().len()];
    for (i, node) in graph.nodes().iter().enumerate() {
        if !needed[i] || node.length == 0 {
            continue;
        }
        let get = |id: &PublicId| match &values[id.0 as usize] {
            Some(t) => t.clone(),
            None => unreachable!("operands come before their node"),
        };
        let value = match &node.op {
            PublicOp::Constant(bits) => {
                let v: Vec<f64> = bits.iter().map(|b| b.value()).collect();
                tensor(v, [1, node.length], &device)
            }
            PublicOp::Unconstrained { offset, length } => {
                theta.clone().narrow(1, *offset as usize, *length as usize)
            }
            PublicOp::Unary(f, a) => unary(*f, get(a), functions),
            PublicOp::Binary(op, a, b) => {
                let (a, b) = broadcast(get(a), get(b));
                let own = match functions {
                    Functions::Table => special::apply_two(*op, &a, &b),
                    Functions::Native => None,
                };
                own.unwrap_or_else(|| binary(*op, a, b))
            }
            PublicOp::Select(c, a, b) => {
                let (a, b) = broadcast(get(a), get(b));
                let (c, a) = broadcast(get(c), a);
                let (c, b) = broadcast(c, b);
                select(c, a, b)
            }
            PublicOp::Sum(a) => get(a).sum_dim(1),
            PublicOp::Take(a, positions) => take(get(a), positions, &device),
            PublicOp::Concatenate(parts) => {
                let parts: Vec<Tensor<2>> = parts
                    .iter()
                    .filter(|p| graph.length(**p) > 0)
                    .map(|p| {
                        let t = get(p);
                        let columns = t.dims()[1];
                        t.expand([batch, columns])
                    })
                    .collect();
                Tensor::cat(parts, 1)
            }
            PublicOp::Kernel {
                kernel,
                left,
                right,
            } => match (kernel, right, functions) {
                (
                    &Kernel::MatrixProduct {
                        rows,
                        inner,
                        columns,
                    },
                    Some(right),
                    Functions::Native,
                ) => {
                    let sizes = [rows, inner, columns].map(|n| n as usize);
                    matrix_product(get(left), get(right), sizes)
                }
                (_, Some(right), _) => kernel::apply_two(*kernel, get(left), get(right)),
                (_, None, _) => kernel::apply_one(*kernel, get(left)),
            },
        };
        values[i] = Some(value);
    }
    PublicTensors { values }
}

/// Evaluates private nodes for every record, each as an `[n, 1]` tensor.
///
/// `columns` are the record's columns as `[n, 1]` tensors; public nodes have one
/// row per record. Returns the value of `root` for every record.
pub(super) fn evaluate_private(
    graphs: &Graphs,
    order: &[PrivateId],
    public: &PublicTensors,
    columns: &[Tensor<2>],
    root: Scalar,
    records: usize,
) -> Tensor<2> {
    let device = columns
        .first()
        .map_or_else(|| Device::flex().autodiff(), |c| c.device());
    let mut values: Vec<Option<Tensor<2>>> = vec![None; graphs.private.nodes().len()];
    let scalar = |values: &[Option<Tensor<2>>], s: Scalar| -> Tensor<2> {
        match s {
            Scalar::Number(bits) => tensor(vec![bits.value()], [1, 1], &device),
            Scalar::Public(node, i) => public.get(node).narrow(1, i as usize, 1),
            Scalar::Private(id) => match &values[id.0 as usize] {
                Some(t) => t.clone(),
                None => unreachable!("operands come before their node"),
            },
        }
        .expand([records, 1])
    };
    for &id in order {
        let PrivateNode { op, .. } = graphs.private.node(id);
        let value = match op {
            PrivateOp::Column(c) => columns[*c as usize].clone(),
            PrivateOp::Unary(f, a) => unary(*f, scalar(&values, *a), Functions::Native),
            PrivateOp::Binary(op, a, b) => binary(*op, scalar(&values, *a), scalar(&values, *b)),
            PrivateOp::Select(c, a, b) => select(
                scalar(&values, *c),
                scalar(&values, *a),
                scalar(&values, *b),
            ),
            PrivateOp::Linear(terms) => {
                let mut sum = scalar(&values, Scalar::number(0.0));
                for term in terms {
                    let mut product = scalar(&values, Scalar::Number(term.scale));
                    if let Some((node, i)) = term.parameter {
                        product = product * scalar(&values, Scalar::Public(node, i));
                    }
                    if let Some(column) = term.column {
                        product = product * scalar(&values, Scalar::Private(column));
                    }
                    sum = sum + product;
                }
                sum
            }
            PrivateOp::Gather {
                table,
                offset,
                strides,
            } => {
                let table = public.get(*table);
                let length = table.dims()[1];
                let mut position = scalar(&values, Scalar::number(f64::from(*offset)));
                for &(stride, index) in strides {
                    let index = scalar(&values, Scalar::Private(index));
                    position = position + (index - 1.0) * f64::from(stride);
                }
                let position: Tensor<2, Int> = Tensor::from_data(
                    TensorData::new(
                        numbers(position)
                            .iter()
                            .map(|&p| p as i64)
                            .collect::<Vec<_>>(),
                        [records, 1],
                    ),
                    (&device, DType::I64),
                );
                table.expand([records, length]).gather(1, position)
            }
        };
        values[id.0 as usize] = Some(value);
    }
    scalar(&values, root)
}

fn broadcast(a: Tensor<2>, b: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let (x, y) = (a.dims(), b.dims());
    let shape = [x[0].max(y[0]), x[1].max(y[1])];
    let widen = |t: Tensor<2>, from: [usize; 2]| if from == shape { t } else { t.expand(shape) };
    (widen(a, x), widen(b, y))
}

fn take(t: Tensor<2>, positions: &[u32], device: &Device) -> Tensor<2> {
    let consecutive = positions.windows(2).all(|w| w[1] == w[0] + 1);
    if consecutive {
        return t.narrow(1, positions[0] as usize, positions.len());
    }
    let indices: Vec<i64> = positions.iter().map(|&p| i64::from(p)).collect();
    let indices: Tensor<1, Int> = Tensor::from_data(
        TensorData::new(indices, [positions.len()]),
        (device, DType::I64),
    );
    t.select(1, indices)
}

fn matrix_product(
    left: Tensor<2>,
    right: Tensor<2>,
    [rows, inner, columns]: [usize; 3],
) -> Tensor<2> {
    let batch = left.dims()[0].max(right.dims()[0]);
    let matrix = |t: Tensor<2>, rows: usize, columns: usize| {
        // Held column by column: reshape to its transpose.
        t.expand([batch, rows * columns])
            .reshape([batch, columns, rows])
            .swap_dims(1, 2)
    };
    matrix(left, rows, inner)
        .matmul(matrix(right, inner, columns))
        .swap_dims(1, 2)
        .reshape([batch, rows * columns])
}

fn truth(t: Tensor<2>) -> Tensor<2, Bool> {
    t.not_equal_elem(0.0)
}

fn select(condition: Tensor<2>, a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let mask = truth(condition.detach());
    b.mask_where(mask, a)
}

fn binary(op: Binary, a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let one_where = |mask: Tensor<2, Bool>, like: Tensor<2>| {
        let zeros = like.detach().zeros_like();
        zeros.mask_fill(mask, 1.0)
    };
    match op {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Power => a.powf(b),
        Binary::Minimum => {
            let mask = b.clone().detach().lower(a.clone().detach());
            a.mask_where(mask, b)
        }
        Binary::Maximum => {
            let mask = a.clone().detach().lower(b.clone().detach());
            a.mask_where(mask, b)
        }
        Binary::ArcTangent | Binary::Modulus => match special::apply_two(op, &a, &b) {
            Some(value) => value,
            None => unreachable!("both are ops of the table"),
        },
        Binary::Less => one_where(a.clone().detach().lower(b.detach()), a),
        Binary::LessEqual => one_where(a.clone().detach().lower_equal(b.detach()), a),
        Binary::Equal => one_where(a.clone().detach().equal(b.detach()), a),
        Binary::NotEqual => one_where(a.clone().detach().not_equal(b.detach()), a),
        Binary::And => one_where(truth(a.clone().detach()).bool_and(truth(b.detach())), a),
        Binary::Or => one_where(truth(a.clone().detach()).bool_or(truth(b.detach())), a),
    }
}

fn unary(function: Unary, a: Tensor<2>, functions: Functions) -> Tensor<2> {
    if functions == Functions::Table {
        return special::apply(function, a);
    }
    match function {
        Unary::Negate => a.neg(),
        Unary::Abs => a.abs(),
        Unary::Square => a.clone() * a,
        Unary::Sqrt => a.sqrt(),
        Unary::Inverse => a.recip(),
        Unary::InverseSqrt => a.sqrt().recip(),
        Unary::InverseSquare => (a.clone() * a).recip(),
        Unary::Exp => a.exp(),
        Unary::Log => a.log(),
        Unary::Log1p => a.log1p(),
        Unary::Log1m => a.neg().log1p(),
        Unary::InvLogit => activation::sigmoid(a),
        Unary::LogInvLogit => activation::log_sigmoid(a),
        Unary::Log1mInvLogit => activation::log_sigmoid(a.neg()),
        Unary::Log1pExp => activation::log_sigmoid(a.neg()).neg(),
        Unary::Logit => a.clone().log() - a.neg().log1p(),
        Unary::Sin => a.sin(),
        Unary::Cos => a.cos(),
        Unary::Tanh => a.tanh(),
        Unary::Erf => a.erf(),
        other => special::apply(other, a),
    }
}

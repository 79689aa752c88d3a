//! The scalar functions, and products, quotients and powers, as burn ops with
//! their own backward.
//!
//! burn 0.22.1 has no lgamma, digamma, expm1 and others in f64. Here every
//! function of [`Unary`] is one op: the forward pass maps the function over the
//! tensor, the backward pass multiplies by the derivative that the function's
//! own table gives. Products, quotients and powers are here because burn's own
//! derivatives multiply the zero that a branch not taken sends back by the value in that branch,
//! and zero times infinity is not a number.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};

use super::program::{binary_values, pull_back_left, pull_back_right};
use crate::function::Unary;
use crate::model::Binary;

/// The functions of two numbers that are ops here.
const TWO: [Binary; 5] = [
    Binary::Multiply,
    Binary::Divide,
    Binary::Power,
    Binary::ArcTangent,
    Binary::Modulus,
];

#[backend_extension(Flex, Autodiff)]
pub(super) trait UnaryTable: Backend {
    /// `f(input)`, element by element; `function` indexes [`Unary::ALL`].
    fn table_value(input: FloatTensor<Self>, function: usize) -> FloatTensor<Self>;
    /// `adjoint * f'(input)`, element by element.
    fn table_pull_back(
        input: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        function: usize,
    ) -> FloatTensor<Self>;
    /// `left op right`, shapes being equal; `op` indexes [`TWO`].
    fn two_value(left: FloatTensor<Self>, right: FloatTensor<Self>, op: usize)
    -> FloatTensor<Self>;
    /// `adjoint` times the derivative by the left operand, or by the right one.
    fn two_pull_back(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        op: usize,
        by_left: bool,
    ) -> FloatTensor<Self>;
}

/// Applies a product, quotient or power to tensors of one shape, differentiably;
/// `None` for other operations.
pub(super) fn apply_two(op: Binary, left: &Tensor<2>, right: &Tensor<2>) -> Option<Tensor<2>> {
    let op = TWO.iter().position(|&known| known == op)?;
    let (left, right) = (left.clone().into_dispatch(), right.clone().into_dispatch());
    Some(Tensor::from_dispatch(<Dispatch as UnaryTable>::two_value(
        left, right, op,
    )))
}

/// Applies a function of the table, differentiably.
pub(super) fn apply(function: Unary, input: Tensor<2>) -> Tensor<2> {
    let output = <Dispatch as UnaryTable>::table_value(input.into_dispatch(), function as usize);
    Tensor::from_dispatch(output)
}

/// The tensor's values, contiguous and in f64 (the only type this crate makes).
pub(super) fn values(tensor: FlexTensor) -> Vec<f64> {
    let contiguous = tensor.to_contiguous();
    match contiguous.as_slice::<f64>() {
        Some(values) => values.to_vec(),
        None => contiguous.into_data().iter::<f64>().collect(),
    }
}

impl UnaryTable for Flex {
    fn table_value(input: FlexTensor, function: usize) -> FlexTensor {
        let shape = input.shape();
        let input = values(input);
        let mut output = vec![0.0; input.len()];
        (Unary::ALL[function].definition().map)(&input, &mut output);
        FlexTensor::from_data(TensorData::new(output, shape))
    }

    fn table_pull_back(input: FlexTensor, adjoint: FlexTensor, function: usize) -> FlexTensor {
        let shape = input.shape();
        let definition = Unary::ALL[function].definition();
        let input = values(input);
        let adjoint = values(adjoint);
        let mut output = vec![0.0; input.len()];
        (definition.map)(&input, &mut output);
        let mut pulled = vec![0.0; input.len()];
        (definition.pull_back)(&input, &output, &adjoint, &mut pulled);
        FlexTensor::from_data(TensorData::new(pulled, shape))
    }

    fn two_value(left: FlexTensor, right: FlexTensor, op: usize) -> FlexTensor {
        let shape = left.shape();
        let (left, right) = (values(left), values(right));
        let mut output = vec![0.0; left.len()];
        binary_values(TWO[op], &left, &right, &mut output);
        FlexTensor::from_data(TensorData::new(output, shape))
    }

    fn two_pull_back(
        left: FlexTensor,
        right: FlexTensor,
        adjoint: FlexTensor,
        op: usize,
        by_left: bool,
    ) -> FlexTensor {
        let shape = left.shape();
        let (left, right, adjoint) = (values(left), values(right), values(adjoint));
        let mut pulled = vec![0.0; left.len()];
        if by_left {
            pull_back_left(TWO[op], &left, &right, &adjoint, &mut pulled);
        } else {
            let mut output = vec![0.0; left.len()];
            binary_values(TWO[op], &left, &right, &mut output);
            pull_back_right(TWO[op], &left, &right, &output, &adjoint, &mut pulled);
        }
        FlexTensor::from_data(TensorData::new(pulled, shape))
    }
}

#[derive(Debug)]
struct TwoBackward;

impl<B: UnaryTable> Backward<B, 2> for TwoBackward {
    type State = (FloatTensor<B>, FloatTensor<B>, usize);

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (left, right, op) = ops.state;
        let adjoint = gradients.consume::<B>(&ops.node);
        for (parent, by_left) in ops.parents.into_iter().zip([true, false]) {
            if let Some(node) = parent {
                let pulled =
                    B::two_pull_back(left.clone(), right.clone(), adjoint.clone(), op, by_left);
                gradients.register::<B>(node.id, pulled);
            }
        }
    }
}

#[derive(Debug)]
struct TableBackward;

impl<B: UnaryTable> Backward<B, 1> for TableBackward {
    type State = (FloatTensor<B>, usize);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let [parent] = ops.parents;
        let (input, function) = ops.state;
        let adjoint = gradients.consume::<B>(&ops.node);
        if let Some(node) = parent {
            gradients.register::<B>(node.id, B::table_pull_back(input, adjoint, function));
        }
    }
}

impl<B: UnaryTable, C: CheckpointStrategy> UnaryTable for Autodiff<B, C> {
    fn table_value(input: FloatTensor<Self>, function: usize) -> FloatTensor<Self> {
        match TableBackward
            .prepare::<C>([input.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prepared) => {
                let value = B::table_value(input.primitive().clone(), function);
                prepared.finish((input.into_primitive(), function), value)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::table_value(input.into_primitive(), function))
            }
        }
    }

    /// Not differentiable: only the backward pass calls it, on the inner
    /// backend.
    fn table_pull_back(
        input: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        function: usize,
    ) -> FloatTensor<Self> {
        let value = B::table_pull_back(input.into_primitive(), adjoint.into_primitive(), function);
        <Self as burn::backend::AutodiffBackend>::from_inner(value)
    }

    fn two_value(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        op: usize,
    ) -> FloatTensor<Self> {
        match TwoBackward
            .prepare::<C>([left.node(), right.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prepared) => {
                let (a, b) = (left.primitive().clone(), right.primitive().clone());
                let value = B::two_value(a, b, op);
                prepared.finish((left.into_primitive(), right.into_primitive(), op), value)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(B::two_value(
                left.into_primitive(),
                right.into_primitive(),
                op,
            )),
        }
    }

    /// Not differentiable, as above.
    fn two_pull_back(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        op: usize,
        by_left: bool,
    ) -> FloatTensor<Self> {
        let value = B::two_pull_back(
            left.into_primitive(),
            right.into_primitive(),
            adjoint.into_primitive(),
            op,
            by_left,
        );
        <Self as burn::backend::AutodiffBackend>::from_inner(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device};

    /// The op's gradient is the table's derivative, through a graph that also
    /// uses burn's own ops.
    #[test]
    fn gradients_flow_through_lgamma_and_digamma() {
        let device = Device::flex().autodiff();
        let points = vec![0.3, 1.7, 8.0];
        for function in [Unary::Lgamma, Unary::Digamma, Unary::Expm1] {
            let x = Tensor::<2>::from_data(
                TensorData::new(points.clone(), [1, 3]),
                (&device, DType::F64),
            )
            .require_grad();
            let loss = apply(function, x.clone() * x.clone()).sum();
            let mut gradients = loss.backward();
            let gradient: Vec<f64> = x
                .grad_remove(&mut gradients)
                .unwrap()
                .into_data()
                .iter::<f64>()
                .collect();
            let d = function.definition();
            for (&p, g) in points.iter().zip(gradient) {
                let expected = 2.0 * p * (d.derivative)(p * p, (d.value)(p * p));
                assert!(
                    (g - expected).abs() <= 1e-13 * expected.abs(),
                    "{function:?} {p}"
                );
            }
        }
    }
}

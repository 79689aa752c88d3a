//! The scalar functions as one burn op with its own backward.
//!
//! burn 0.22.1 has no lgamma, digamma, expm1 and others in f64. Here every
//! function of [`Unary`] is one op: the forward pass maps the function over the
//! tensor, the backward pass multiplies by the derivative that the function's
//! own table gives.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Tensor, TensorData};

use crate::function::Unary;

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
}

/// Applies a function of the table, differentiably.
pub(super) fn apply(function: Unary, input: Tensor<2>) -> Tensor<2> {
    let output = <Dispatch as UnaryTable>::table_value(input.into_dispatch(), function as usize);
    Tensor::from_dispatch(output)
}

/// The tensor's values, contiguous and in f64 (the only type this crate makes).
fn values(tensor: FlexTensor) -> Vec<f64> {
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
                assert!((g - expected).abs() <= 1e-13 * expected.abs(), "{function:?} {p}");
            }
        }
    }
}

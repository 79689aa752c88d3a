//! The functions of whole vectors as burn ops with their own backward.
//!
//! Each op runs its [`Kernel`] once per row of the batch; an operand with a
//! single row stands for every row.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, AutodiffBackend, Backend, Dispatch, Flex, TensorMetadata, backend_extension,
};
use burn::tensor::{Tensor, TensorData};

use super::special::values;
use crate::function::Kernel;

#[backend_extension(Flex, Autodiff)]
pub(super) trait KernelOps: Backend {
    fn kernel_one(input: FloatTensor<Self>, kernel: Kernel) -> FloatTensor<Self>;
    fn kernel_two(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        kernel: Kernel,
    ) -> FloatTensor<Self>;
    /// The adjoint of the input, from that of the output.
    fn kernel_one_pull_back(
        input: FloatTensor<Self>,
        output: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        kernel: Kernel,
    ) -> FloatTensor<Self>;
    /// The adjoint of the left operand, or of the right one.
    fn kernel_two_pull_back(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        output: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        kernel: Kernel,
        to_left: bool,
    ) -> FloatTensor<Self>;
}

/// Applies a function of one vector to every row, differentiably.
pub(super) fn apply_one(kernel: Kernel, input: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as KernelOps>::kernel_one(
        input.into_dispatch(),
        kernel,
    ))
}

/// Applies a function of two vectors to every row, differentiably.
pub(super) fn apply_two(kernel: Kernel, left: Tensor<2>, right: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as KernelOps>::kernel_two(
        left.into_dispatch(),
        right.into_dispatch(),
        kernel,
    ))
}

/// The rows of an operand.
struct Operand {
    values: Vec<f64>,
    rows: usize,
    length: usize,
}

impl Operand {
    fn of(tensor: FlexTensor) -> Operand {
        let shape = tensor.shape();
        let [rows, length] = [shape[0], shape[1]];
        Operand {
            values: values(tensor),
            rows,
            length,
        }
    }

    /// No operand: nothing in every row.
    fn none() -> Operand {
        Operand {
            values: Vec::new(),
            rows: 1,
            length: 0,
        }
    }

    /// Where row `b` of the batch begins.
    fn start(&self, b: usize) -> usize {
        if self.rows == 1 { 0 } else { b * self.length }
    }

    fn row(&self, b: usize) -> &[f64] {
        let start = self.start(b);
        &self.values[start..start + self.length]
    }
}

fn forward(left: Operand, right: Operand, kernel: Kernel) -> FlexTensor {
    let rows = left.rows.max(right.rows);
    let length = kernel.output_length(left.length);
    let mut out = vec![0.0; rows * length];
    for (b, out) in out.chunks_exact_mut(length).enumerate() {
        kernel.value(left.row(b), right.row(b), out);
    }
    FlexTensor::from_data(TensorData::new(out, [rows, length]))
}

fn pull_back(
    left: Operand,
    right: Operand,
    output: Operand,
    adjoint: Operand,
    kernel: Kernel,
    to_left: bool,
) -> FlexTensor {
    let target = if to_left { &left } else { &right };
    let mut pulled = vec![0.0; target.values.len()];
    for b in 0..output.rows {
        let start = target.start(b);
        let into = Some(&mut pulled[start..start + target.length]);
        let (into_left, into_right) = if to_left { (into, None) } else { (None, into) };
        kernel.pull_back(
            left.row(b),
            right.row(b),
            output.row(b),
            adjoint.row(b),
            into_left,
            into_right,
        );
    }
    let shape = [target.rows, target.length];
    FlexTensor::from_data(TensorData::new(pulled, shape))
}

impl KernelOps for Flex {
    fn kernel_one(input: FlexTensor, kernel: Kernel) -> FlexTensor {
        forward(Operand::of(input), Operand::none(), kernel)
    }

    fn kernel_two(left: FlexTensor, right: FlexTensor, kernel: Kernel) -> FlexTensor {
        forward(Operand::of(left), Operand::of(right), kernel)
    }

    fn kernel_one_pull_back(
        input: FlexTensor,
        output: FlexTensor,
        adjoint: FlexTensor,
        kernel: Kernel,
    ) -> FlexTensor {
        let [input, output, adjoint] = [input, output, adjoint].map(Operand::of);
        pull_back(input, Operand::none(), output, adjoint, kernel, true)
    }

    fn kernel_two_pull_back(
        left: FlexTensor,
        right: FlexTensor,
        output: FlexTensor,
        adjoint: FlexTensor,
        kernel: Kernel,
        to_left: bool,
    ) -> FlexTensor {
        let [left, right, output, adjoint] = [left, right, output, adjoint].map(Operand::of);
        pull_back(left, right, output, adjoint, kernel, to_left)
    }
}

#[derive(Debug)]
struct OneBackward;

impl<B: KernelOps> Backward<B, 1> for OneBackward {
    /// Input, output and the kernel.
    type State = (FloatTensor<B>, FloatTensor<B>, Kernel);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let [parent] = ops.parents;
        let (input, output, kernel) = ops.state;
        let adjoint = gradients.consume::<B>(&ops.node);
        if let Some(node) = parent {
            let pulled = B::kernel_one_pull_back(input, output, adjoint, kernel);
            gradients.register::<B>(node.id, pulled);
        }
    }
}

#[derive(Debug)]
struct TwoBackward;

impl<B: KernelOps> Backward<B, 2> for TwoBackward {
    /// Operands, output and the kernel.
    type State = (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, Kernel);

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let (left, right, output, kernel) = ops.state;
        let adjoint = gradients.consume::<B>(&ops.node);
        for (parent, to_left) in ops.parents.into_iter().zip([true, false]) {
            if let Some(node) = parent {
                let pulled = B::kernel_two_pull_back(
                    left.clone(),
                    right.clone(),
                    output.clone(),
                    adjoint.clone(),
                    kernel,
                    to_left,
                );
                gradients.register::<B>(node.id, pulled);
            }
        }
    }
}

impl<B: KernelOps, C: CheckpointStrategy> KernelOps for Autodiff<B, C> {
    fn kernel_one(input: FloatTensor<Self>, kernel: Kernel) -> FloatTensor<Self> {
        match OneBackward
            .prepare::<C>([input.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prepared) => {
                let output = B::kernel_one(input.primitive().clone(), kernel);
                let state = (input.into_primitive(), output.clone(), kernel);
                prepared.finish(state, output)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::kernel_one(input.into_primitive(), kernel))
            }
        }
    }

    fn kernel_two(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        kernel: Kernel,
    ) -> FloatTensor<Self> {
        match TwoBackward
            .prepare::<C>([left.node(), right.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(prepared) => {
                let (left, right) = (left.into_primitive(), right.into_primitive());
                let output = B::kernel_two(left.clone(), right.clone(), kernel);
                prepared.finish((left, right, output.clone(), kernel), output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(B::kernel_two(
                left.into_primitive(),
                right.into_primitive(),
                kernel,
            )),
        }
    }

    /// Not differentiable: only the backward pass calls it, on the inner
    /// backend.
    fn kernel_one_pull_back(
        input: FloatTensor<Self>,
        output: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        kernel: Kernel,
    ) -> FloatTensor<Self> {
        let [input, output, adjoint] =
            [input, output, adjoint].map(|tensor| tensor.into_primitive());
        <Self as AutodiffBackend>::from_inner(B::kernel_one_pull_back(
            input, output, adjoint, kernel,
        ))
    }

    /// Not differentiable, as above.
    fn kernel_two_pull_back(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        output: FloatTensor<Self>,
        adjoint: FloatTensor<Self>,
        kernel: Kernel,
        to_left: bool,
    ) -> FloatTensor<Self> {
        let [left, right, output, adjoint] =
            [left, right, output, adjoint].map(|tensor| tensor.into_primitive());
        <Self as AutodiffBackend>::from_inner(B::kernel_two_pull_back(
            left, right, output, adjoint, kernel, to_left,
        ))
    }
}

//! Values that a constraint is about one by one.

use super::value::Shape;

/// An array of vectors or matrices of one size, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    pub count: usize,
    /// Length of a vector, or rows of a matrix.
    pub rows: usize,
    /// 1 for a vector.
    pub columns: usize,
}

impl Blocks {
    pub fn of(shape: &Shape) -> Self {
        let (array, inner) = shape.sizes.split_at(shape.ty.array);
        Blocks {
            count: array.iter().product(),
            rows: inner.first().copied().unwrap_or(1),
            columns: inner.get(1).copied().unwrap_or(1),
        }
    }

    /// Elements of one block.
    pub fn length(self) -> usize {
        self.rows * self.columns
    }
}

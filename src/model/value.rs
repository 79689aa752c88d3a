//! Values while a model is bound: a type, sizes, and elements of any stage.

use std::rc::Rc;

use super::private::{Graphs, Scalar};
use super::public::PublicId;
use crate::check::{Base, Type};

/// The sizes of a value, one per dimension: arrays first, then the vector or
/// matrix.
///
/// Elements lie in Stan's order of unconstrained parameters: array dimensions
/// with the last index fastest, and within them matrices column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    pub ty: Type,
    pub sizes: Vec<usize>,
}

impl Shape {
    pub fn scalar(ty: Type) -> Self {
        Shape {
            ty,
            sizes: Vec::new(),
        }
    }

    pub fn length(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Distance between neighbours along each dimension, in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.sizes.len()];
        let array = self.ty.array;
        let inner: usize = self.sizes[array..].iter().product();
        if self.ty.base == Base::Matrix {
            strides[array + 1] = self.sizes[array];
        }
        let mut step = inner;
        for k in (0..array).rev() {
            strides[k] = step;
            step *= self.sizes[k];
        }
        strides
    }

    /// The 1-based indices of every element, in storage order.
    pub fn indices(&self) -> Vec<Vec<usize>> {
        let strides = self.strides();
        (0..self.length())
            .map(|position| {
                strides
                    .iter()
                    .zip(&self.sizes)
                    .map(|(&stride, &size)| position / stride % size + 1)
                    .collect()
            })
            .collect()
    }

    /// Storage positions in the order in which Stan CSV writes elements: the
    /// first index fastest.
    pub fn column_major_order(&self) -> Vec<usize> {
        let strides = self.strides();
        let mut order = Vec::with_capacity(self.length());
        for k in 0..self.length() {
            let mut rest = k;
            let mut position = 0;
            for (&size, &stride) in self.sizes.iter().zip(&strides) {
                position += rest % size * stride;
                rest /= size;
            }
            order.push(position);
        }
        order
    }

    /// Names of the elements of a variable as Stan CSV writes them, in its order:
    /// `m.1.1`, `m.2.1`, ...
    pub fn column_names(&self, variable: &str) -> Vec<String> {
        let indices = self.indices();
        self.column_major_order()
            .into_iter()
            .map(|position| {
                let mut name = variable.to_string();
                for i in &indices[position] {
                    name.push_str(&format!(".{i}"));
                }
                name
            })
            .collect()
    }

    /// Sizes in words: `[3, 2]`.
    pub fn describe(&self) -> String {
        if self.sizes.is_empty() {
            return format!("{}", self.ty);
        }
        let sizes: Vec<_> = self.sizes.iter().map(ToString::to_string).collect();
        format!("{} with sizes [{}]", self.ty, sizes.join(", "))
    }
}

/// A value whose elements are numbers, public or private scalars.
#[derive(Debug, Clone)]
pub struct Value {
    pub shape: Shape,
    pub data: Data,
}

#[derive(Debug, Clone)]
pub enum Data {
    /// A whole public vector.
    Public(PublicId),
    /// Shared, so that reading a variable is free.
    Elements(Rc<Vec<Scalar>>),
}

impl Data {
    pub fn of(elements: Vec<Scalar>) -> Self {
        Data::Elements(Rc::new(elements))
    }
}

impl Value {
    pub fn of(shape: Shape, elements: Vec<Scalar>) -> Self {
        Value {
            shape,
            data: Data::of(elements),
        }
    }

    pub fn scalar(ty: Type, scalar: Scalar) -> Self {
        Value::of(Shape::scalar(ty), vec![scalar])
    }

    pub fn number(ty: Type, value: f64) -> Self {
        Value::scalar(ty, Scalar::number(value))
    }

    pub fn elements(&self, graphs: &Graphs) -> Rc<Vec<Scalar>> {
        match &self.data {
            Data::Elements(elements) => Rc::clone(elements),
            Data::Public(id) => Rc::new(match graphs.public.constant_values(*id) {
                Some(values) => values.into_iter().map(Scalar::number).collect(),
                None => (0..self.shape.length() as u32)
                    .map(|i| Scalar::Public(*id, i))
                    .collect(),
            }),
        }
    }

    /// The only element of a scalar value.
    pub fn only(&self, graphs: &Graphs) -> Scalar {
        self.elements(graphs)
            .first()
            .copied()
            .unwrap_or(Scalar::number(f64::NAN))
    }

    pub fn is_private(&self) -> bool {
        match &self.data {
            Data::Public(_) => false,
            Data::Elements(elements) => elements.iter().any(|s| s.is_private()),
        }
    }

    /// Whether every element is a known number.
    pub fn is_constant(&self) -> bool {
        match &self.data {
            Data::Public(_) => false,
            Data::Elements(elements) => elements.iter().all(|s| s.as_number().is_some()),
        }
    }

    /// The value as one public vector; only for values without private parts.
    pub fn public_node(&self, graphs: &mut Graphs) -> PublicId {
        match &self.data {
            Data::Public(id) => *id,
            Data::Elements(elements) => graphs.assemble(elements),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_stored_row_by_row_and_matrices_column_by_column() {
        let shape = Shape {
            ty: Type {
                base: Base::Matrix,
                array: 1,
            },
            sizes: vec![2, 2, 3],
        };
        assert_eq!(shape.strides(), [6, 1, 2]);
        assert_eq!(shape.indices()[0], [1, 1, 1]);
        assert_eq!(shape.indices()[1], [1, 2, 1]);
        assert_eq!(shape.indices()[6], [2, 1, 1]);
        // Stan CSV: m.1.1.1, m.2.1.1, m.1.2.1, ...
        assert_eq!(&shape.column_major_order()[..4], [0, 6, 1, 7]);
    }
}

//! The types of the language, without their sizes.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
}

/// A type without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type {
    pub base: Base,
    /// Number of array dimensions around the base type.
    pub array: usize,
}

impl Type {
    pub const INT: Type = Type::scalar(Base::Int);
    pub const REAL: Type = Type::scalar(Base::Real);
    pub const VECTOR: Type = Type::scalar(Base::Vector);
    pub const ROW_VECTOR: Type = Type::scalar(Base::RowVector);
    pub const MATRIX: Type = Type::scalar(Base::Matrix);

    /// The base type itself, without arrays.
    pub const fn scalar(base: Base) -> Type {
        Type { base, array: 0 }
    }

    /// How many sizes a value of this type has: array dimensions, then those of
    /// the vector or matrix.
    pub fn dimensions(self) -> usize {
        self.array
            + match self.base {
                Base::Int | Base::Real => 0,
                Base::Vector | Base::RowVector => 1,
                Base::Matrix => 2,
            }
    }

    pub fn is_number(self) -> bool {
        self.array == 0 && matches!(self.base, Base::Int | Base::Real)
    }

    /// The same container, with reals instead of ints.
    pub fn real(self) -> Type {
        Type {
            base: match self.base {
                Base::Int => Base::Real,
                base => base,
            },
            ..self
        }
    }

    /// Whether a value of type `other` may be used where this type is expected: the same type, or
    /// an `int` for a `real`.
    pub fn accepts(self, other: Type) -> bool {
        self == other
            || (self.base == Base::Real && other.base == Base::Int && self.array == other.array)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.array > 0 {
            write!(f, "array[{}] ", ",".repeat(self.array - 1))?;
        }
        f.write_str(match self.base {
            Base::Int => "int",
            Base::Real => "real",
            Base::Vector => "vector",
            Base::RowVector => "row_vector",
            Base::Matrix => "matrix",
        })
    }
}

//! The argument types that a built-in function accepts, and its result type.

use std::fmt;

use super::types::{Base, Type};

/// The types allowed at one place of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// This type; an `int` also where a `real` is wanted.
    Only(Type),
    /// Any type, the same at all such places of the signature, inside this many array dimensions.
    Same(usize),
    /// The type of the previous `Same`, with reals instead of ints.
    SameReal,
    /// Numbers, applied element by element: all containers among the arguments
    /// are of one type, which is the result's.
    Reals,
    /// An int that is known before sampling: a size or a position.
    Size,
}

pub const INT: Pattern = Pattern::Only(Type::INT);
pub const REAL: Pattern = Pattern::Only(Type::REAL);
pub const VECTOR: Pattern = Pattern::Only(Type::VECTOR);
pub const ROW_VECTOR: Pattern = Pattern::Only(Type::ROW_VECTOR);
pub const MATRIX: Pattern = Pattern::Only(Type::MATRIX);
pub const INTS: Pattern = array(Base::Int, 1);
pub const REALS: Pattern = array(Base::Real, 1);
pub const INT_TABLE: Pattern = array(Base::Int, 2);
pub const REAL_TABLE: Pattern = array(Base::Real, 2);
pub const VECTORS: Pattern = array(Base::Vector, 1);
pub const ROW_VECTORS: Pattern = array(Base::RowVector, 1);
pub const T: Pattern = Pattern::Same(0);
pub const ARRAY_OF_T: Pattern = Pattern::Same(1);
pub const TABLE_OF_T: Pattern = Pattern::Same(2);
pub const CUBE_OF_T: Pattern = Pattern::Same(3);
pub const T_REAL: Pattern = Pattern::SameReal;
pub const EACH: Pattern = Pattern::Reals;
pub const SIZE: Pattern = Pattern::Size;

const fn array(base: Base, array: usize) -> Pattern {
    Pattern::Only(Type { base, array })
}

/// One way to call a function.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    pub arguments: &'static [Pattern],
    pub result: Pattern,
}

/// The types inferred from the previous arguments.
#[derive(Default)]
struct Known {
    same: Option<Type>,
    container: Option<Type>,
}

impl Signature {
    /// The type of a call with arguments of these types, or the position of the
    /// first that does not fit. The number of arguments must be right.
    pub fn result(&self, arguments: &[Type]) -> Result<Type, usize> {
        let mut known = Known::default();
        for (k, (pattern, &ty)) in self.arguments.iter().zip(arguments).enumerate() {
            if !pattern.accepts(ty, &mut known) {
                return Err(k);
            }
        }
        let same = known.same.unwrap_or(Type::REAL);
        Ok(match self.result {
            Pattern::Only(ty) => ty,
            Pattern::Size => Type::INT,
            Pattern::Same(array) => Type {
                array: same.array + array,
                ..same
            },
            Pattern::SameReal => same.real(),
            Pattern::Reals => known.container.unwrap_or(Type::REAL),
        })
    }

    /// A description of the type that this signature expects at place `k`, after arguments of these
    /// types.
    pub fn wanted(&self, k: usize, arguments: &[Type]) -> String {
        let mut known = Known::default();
        for (pattern, &ty) in self.arguments.iter().zip(arguments).take(k) {
            pattern.accepts(ty, &mut known);
        }
        match self.arguments[k] {
            Pattern::Only(ty) => format!("`{ty}`"),
            Pattern::Size => "`int`".to_string(),
            Pattern::Same(array) => match (known.same, array) {
                (Some(same), _) => {
                    let ty = Type {
                        array: same.array + array,
                        ..same
                    };
                    format!("`{ty}`")
                }
                (None, 0) => "any type".to_string(),
                (None, _) => "an array".to_string(),
            },
            Pattern::SameReal | Pattern::Reals => match known.container {
                Some(ty) => format!("`{ty}` or a number"),
                None => "numbers".to_string(),
            },
        }
    }

    /// As it is documented: `vector head(vector v, int n)`.
    pub fn describe(&self, name: &str, parameters: &[&str]) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .zip(parameters)
            .map(|(pattern, parameter)| format!("{pattern} {parameter}"))
            .collect();
        format!("{} {name}({})", self.result, arguments.join(", "))
    }
}

impl Pattern {
    fn accepts(self, ty: Type, known: &mut Known) -> bool {
        match self {
            Pattern::Only(wanted) => wanted.accepts(ty),
            Pattern::Size => ty == Type::INT,
            Pattern::Same(array) => {
                if ty.array < array {
                    return false;
                }
                let inner = Type {
                    array: ty.array - array,
                    ..ty
                };
                *known.same.get_or_insert(inner) == inner
            }
            Pattern::SameReal => known.same.is_some_and(|same| same.real() == ty.real()),
            Pattern::Reals => {
                ty.is_number() || *known.container.get_or_insert(ty.real()) == ty.real()
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Only(ty) => ty.fmt(f),
            Pattern::Size => f.write_str("int"),
            Pattern::Same(0) | Pattern::SameReal => f.write_str("T"),
            Pattern::Same(array) => write!(f, "array[{}] T", ",".repeat(array - 1)),
            Pattern::Reals => f.write_str("reals"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_bind_types_from_left_to_right() {
        let append = Signature {
            arguments: &[ARRAY_OF_T, ARRAY_OF_T],
            result: ARRAY_OF_T,
        };
        let vectors = Type {
            array: 1,
            ..Type::VECTOR
        };
        let ints = Type {
            array: 1,
            ..Type::INT
        };
        assert_eq!(append.result(&[vectors, vectors]), Ok(vectors));
        assert_eq!(append.result(&[vectors, ints]), Err(1));
        assert_eq!(append.result(&[Type::VECTOR, ints]), Err(0));
        assert_eq!(append.wanted(1, &[vectors, ints]), "`array[] vector`");

        let power = Signature {
            arguments: &[EACH, EACH],
            result: EACH,
        };
        assert_eq!(power.result(&[Type::INT, Type::INT]), Ok(Type::REAL));
        assert_eq!(power.result(&[Type::INT, Type::VECTOR]), Ok(Type::VECTOR));
        assert_eq!(power.result(&[Type::MATRIX, Type::VECTOR]), Err(1));
        assert_eq!(power.result(&[ints, Type::REAL]), Ok(ints.real()));

        let each = Signature {
            arguments: &[T],
            result: T_REAL,
        };
        assert_eq!(each.result(&[ints]), Ok(ints.real()));
        assert_eq!(each.describe("exp", &["x"]), "T exp(T x)");
    }
}

//! Result types of operators.

use super::typed::{Base, Type};
use crate::syntax::BinaryOperator;

/// The type of `left operator right`, or `None` when the language has no such
/// combination (Stan Functions Reference, "Matrix operations").
pub(super) fn binary_type(operator: BinaryOperator, left: Type, right: Type) -> Option<Type> {
    use BinaryOperator::*;
    if matches!(operator, Power | ElementPower) {
        return elementwise_real(left, right);
    }
    if left.array > 0 || right.array > 0 {
        return None;
    }
    let both_numbers = left.is_number() && right.is_number();
    let both_ints = left == Type::INT && right == Type::INT;
    let number = if both_ints { Type::INT } else { Type::REAL };
    match operator {
        Or | And => both_ints.then_some(Type::INT),
        Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => {
            both_numbers.then_some(Type::INT)
        }
        Modulo | IntegerDivide => both_ints.then_some(Type::INT),
        Add | Subtract => elementwise(left, right, number),
        Multiply => product(left, right, number),
        Divide => match (left, right) {
            _ if both_numbers => Some(number),
            (left, right) if right.is_number() => Some(left),
            (Type::MATRIX | Type::ROW_VECTOR, Type::MATRIX) => Some(left),
            _ => None,
        },
        LeftDivide => match (left, right) {
            (Type::MATRIX, Type::MATRIX | Type::VECTOR) => Some(right),
            _ => None,
        },
        ElementMultiply | ElementDivide => {
            if both_numbers {
                Some(number)
            } else {
                elementwise(left, right, number)
            }
        }
        Power | ElementPower => None,
    }
}

/// The type of a function of two numbers applied element by element: one side may be a number, and
/// the result is real.
pub(super) fn elementwise_real(left: Type, right: Type) -> Option<Type> {
    elementwise(left.real(), right.real(), Type::REAL)
}

fn elementwise(left: Type, right: Type, number: Type) -> Option<Type> {
    match (left.is_number(), right.is_number()) {
        (true, true) => Some(number),
        (true, false) => Some(right),
        (false, true) => Some(left),
        (false, false) => (left == right).then_some(left),
    }
}

fn product(left: Type, right: Type, number: Type) -> Option<Type> {
    use Base::{Matrix, RowVector, Vector};
    if left.is_number() || right.is_number() {
        return elementwise(left, right, number);
    }
    match (left.base, right.base) {
        (RowVector, Vector) => Some(Type::REAL),
        (Vector, RowVector) | (Matrix, Matrix) => Some(Type::MATRIX),
        (Matrix, Vector) => Some(Type::VECTOR),
        (RowVector, Matrix) => Some(Type::ROW_VECTOR),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOperator::*;

    #[test]
    fn products_follow_the_rules_of_matrices() {
        let cases = [
            (Type::ROW_VECTOR, Type::VECTOR, Some(Type::REAL)),
            (Type::VECTOR, Type::VECTOR, None),
            (Type::MATRIX, Type::VECTOR, Some(Type::VECTOR)),
            (Type::REAL, Type::MATRIX, Some(Type::MATRIX)),
            (Type::INT, Type::INT, Some(Type::INT)),
            (Type::INT, Type::REAL, Some(Type::REAL)),
        ];
        for (left, right, expected) in cases {
            assert_eq!(binary_type(Multiply, left, right), expected);
        }
        assert_eq!(binary_type(Power, Type::INT, Type::INT), Some(Type::REAL));
        assert_eq!(binary_type(Add, Type::VECTOR, Type::ROW_VECTOR), None);
        assert_eq!(binary_type(Less, Type::INT, Type::REAL), Some(Type::INT));
        let array = Type {
            base: Base::Real,
            array: 1,
        };
        assert_eq!(binary_type(Add, array, Type::REAL), None);
        assert_eq!(binary_type(Power, array, Type::INT), Some(array));
        assert_eq!(binary_type(And, Type::REAL, Type::INT), None);
        for (left, right, expected) in [
            (Type::MATRIX, Type::MATRIX, Some(Type::MATRIX)),
            (Type::ROW_VECTOR, Type::MATRIX, Some(Type::ROW_VECTOR)),
            (Type::VECTOR, Type::MATRIX, None),
            (Type::VECTOR, Type::VECTOR, None),
            (Type::REAL, Type::VECTOR, None),
        ] {
            assert_eq!(binary_type(Divide, left, right), expected);
        }
        assert_eq!(
            binary_type(LeftDivide, Type::MATRIX, Type::VECTOR),
            Some(Type::VECTOR)
        );
        assert_eq!(binary_type(LeftDivide, Type::MATRIX, Type::REAL), None);
    }
}

//! Functions of two operands, and the choice between two: their values, and how an adjoint is
//! pulled back through them.

use crate::linear::vectorised;
use crate::model::Binary;

vectorised! {
    pub(in crate::density) fn binary_values(op: Binary, a: &[f64], b: &[f64], out: &mut [f64]) {
        macro_rules! each {
            ($f:expr) => {
                for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
                    *o = $f(x, y);
                }
            };
        }
        match op {
            Binary::Add => each!(|x, y| x + y),
            Binary::Subtract => each!(|x, y| x - y),
            Binary::Multiply => each!(|x, y| x * y),
            Binary::Divide => each!(|x, y| x / y),
            op => each!(|x, y| op.value(x, y)),
        }
    }
}

vectorised! {
    /// `into += adjoint * d(x op y)/dx`. A branch not taken sends back zero, even where its derivative
    /// is infinite.
    pub(in crate::density) fn pull_back_left(
        op: Binary,
        x: &[f64],
        y: &[f64],
        adjoint: &[f64],
        into: &mut [f64],
    ) {
        macro_rules! each {
            ($f:expr) => {
                for (((d, &a), &x), &y) in into.iter_mut().zip(adjoint).zip(x).zip(y) {
                    *d += $f(a, x, y);
                }
            };
        }
        match op {
            Binary::Add | Binary::Subtract => each!(|a: f64, _x: f64, _y: f64| a),
            Binary::Multiply => each!(|a, _x: f64, y| if a == 0.0 { 0.0 } else { a * y }),
            Binary::Divide => each!(|a, _x: f64, y| if a == 0.0 { 0.0 } else { a / y }),
            Binary::Power => each!(|a, x: f64, y: f64| if y == 0.0 || a == 0.0 {
                0.0
            } else {
                a * y * x.powf(y - 1.0)
            }),
            Binary::Minimum => each!(|a, x, y| if y < x { 0.0 } else { a }),
            Binary::Maximum => each!(|a, x, y| if y > x { 0.0 } else { a }),
            Binary::ArcTangent => each!(|a: f64, x: f64, y: f64| if a == 0.0 {
                0.0
            } else {
                a * y / (x * x + y * y)
            }),
            Binary::Modulus => each!(|a, _x: f64, _y: f64| a),
            Binary::Less
            | Binary::LessEqual
            | Binary::Equal
            | Binary::NotEqual
            | Binary::And
            | Binary::Or => {}
        }
    }
}

vectorised! {
    /// `into += adjoint * d(x op y)/dy`; `value` is `x op y`.
    pub(in crate::density) fn pull_back_right(
        op: Binary,
        x: &[f64],
        y: &[f64],
        value: &[f64],
        adjoint: &[f64],
        into: &mut [f64],
    ) {
        macro_rules! each {
            ($f:expr) => {
                for ((((d, &a), &x), &y), &v) in into.iter_mut().zip(adjoint).zip(x).zip(y).zip(value) {
                    *d += $f(a, x, y, v);
                }
            };
        }
        match op {
            Binary::Add => each!(|a, _x: f64, _y: f64, _v: f64| a),
            Binary::Subtract => each!(|a: f64, _x: f64, _y: f64, _v: f64| -a),
            Binary::Multiply => each!(|a, x, _y: f64, _v: f64| if a == 0.0 { 0.0 } else { a * x }),
            Binary::Divide => each!(|a: f64, _x: f64, y, v| if a == 0.0 { 0.0 } else { -a * v / y }),
            Binary::Power => each!(|a, x: f64, _y: f64, v: f64| if v == 0.0 || a == 0.0 {
                0.0
            } else {
                a * v * x.ln()
            }),
            Binary::Minimum => each!(|a, x, y, _v: f64| if y < x { a } else { 0.0 }),
            Binary::Maximum => each!(|a, x, y, _v: f64| if y > x { a } else { 0.0 }),
            Binary::ArcTangent => each!(|a: f64, x: f64, y: f64, _v: f64| if a == 0.0 {
                0.0
            } else {
                -a * x / (x * x + y * y)
            }),
            Binary::Modulus => each!(|a: f64, x: f64, y: f64, _v: f64| if a == 0.0 {
                0.0
            } else {
                -a * (x / y).trunc()
            }),
            Binary::Less
            | Binary::LessEqual
            | Binary::Equal
            | Binary::NotEqual
            | Binary::And
            | Binary::Or => {}
        }
    }
}

vectorised! {
    /// `out = condition != 0 ? a : b`
    pub(super) fn select(condition: &[f64], a: &[f64], b: &[f64], out: &mut [f64]) {
        for (((o, &c), &a), &b) in out.iter_mut().zip(condition).zip(a).zip(b) {
            *o = if c != 0.0 { a } else { b };
        }
    }
}

vectorised! {
    /// `into += adjoint` where whether the condition holds is as `wanted`.
    pub(super) fn select_pull_back(
        condition: &[f64],
        wanted: bool,
        adjoint: &[f64],
        into: &mut [f64],
    ) {
        for ((d, &a), &c) in into.iter_mut().zip(adjoint).zip(condition) {
            *d += if (c != 0.0) == wanted { a } else { 0.0 };
        }
    }
}

//! From a column to the variate for which the model has a density, such as `log(y)` in
//! `log(y) ~ student_t(...)`, and back.

use crate::function::Unary;
use crate::model::{Binary, Model, PrivateOp, Scalar};

/// How much a value may change on the way there and back, relative to one more than its size.
const RETURNED: f64 = 1e-3;

/// Functions that have an inverse, one after the other, beginning with the column.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Scale {
    links: Vec<Link>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Link {
    /// One that has an [`inverse`].
    Function(Unary),
    Plus(f64),
    Times(f64),
    Power(f64),
    AtLeast(f64),
    AtMost(f64),
}

impl Scale {
    /// The scale of a variate of this column alone; none where its inverse is not known.
    pub fn of(model: &Model, column: usize, variate: Scalar) -> Option<Scale> {
        let graph = &model.graphs.private;
        let mut links = Vec::new();
        let mut at = variate;
        loop {
            let Scalar::Private(id) = at else { return None };
            let (last, inner) = match graph.node(id).op {
                PrivateOp::Column(c) if c as usize == column => break,
                PrivateOp::Unary(function, inner) => {
                    inverse(function)?;
                    (vec![Link::Function(function)], inner)
                }
                PrivateOp::Binary(op, a, b) => {
                    let (number, inner) = match (a.as_number(), b.as_number()) {
                        (None, Some(c)) => (c, a),
                        (Some(c), None) => (c, b),
                        _ => return None,
                    };
                    (links_of(op, number, inner == b)?, inner)
                }
                // The column may be in a branch without a function of it, as in
                // `y > 0 ? log(y) : 0`.
                PrivateOp::Select(_, a, b) => match (a.as_number(), b.as_number()) {
                    (None, Some(_)) => (Vec::new(), a),
                    (Some(_), None) => (Vec::new(), b),
                    _ => return None,
                },
                _ => return None,
            };
            links.extend(last);
            at = inner;
        }
        links.reverse();
        Some(Scale { links })
    }

    /// The variate where the column is `x`.
    pub fn to(&self, x: f64) -> f64 {
        self.links.iter().fold(x, |x, link| match *link {
            Link::Function(function) => (function.definition().value)(x),
            Link::Plus(c) => x + c,
            Link::Times(c) => x * c,
            Link::Power(c) => x.powf(c),
            Link::AtLeast(c) => x.max(c),
            Link::AtMost(c) => x.min(c),
        })
    }

    /// The column where the variate is `v`.
    pub fn back(&self, v: f64) -> f64 {
        self.links.iter().rev().fold(v, |v, link| match *link {
            Link::Function(function) => inverse(function).map_or(f64::NAN, |inverse| inverse(v)),
            Link::Plus(c) => v - c,
            Link::Times(c) => v / c,
            Link::Power(c) => v.powf(1.0 / c),
            // Beyond c no value of the column corresponds to it.
            Link::AtLeast(_) | Link::AtMost(_) => v,
        })
    }

    /// Whether some value of the column has this variate, and it is a number.
    pub fn reaches(&self, v: f64) -> bool {
        self.links.is_empty() || (self.to(self.back(v)) - v).abs() <= RETURNED * (1.0 + v.abs())
    }

    /// The bounds of the variate where the column has these.
    pub fn bounds(&self, [lower, upper]: [Option<f64>; 2]) -> [Option<f64>; 2] {
        let low = self.to(lower.unwrap_or(f64::NEG_INFINITY));
        let high = self.to(upper.unwrap_or(f64::INFINITY));
        let falls = low > high;
        let bounds = if falls { [high, low] } else { [low, high] };
        bounds.map(|b| Some(b).filter(|b| b.is_finite()))
    }
}

/// The links of an operation on a number and an expression of the column, the last link first.
fn links_of(op: Binary, number: f64, number_is_left: bool) -> Option<Vec<Link>> {
    Some(match (op, number_is_left) {
        (Binary::Add, _) => vec![Link::Plus(number)],
        (Binary::Subtract, false) => vec![Link::Plus(-number)],
        (Binary::Subtract, true) => vec![Link::Plus(number), Link::Times(-1.0)],
        (Binary::Multiply, _) => vec![Link::Times(number)],
        (Binary::Divide, false) => vec![Link::Times(1.0 / number)],
        (Binary::Divide, true) => vec![Link::Times(number), Link::Power(-1.0)],
        (Binary::Power, false) => vec![Link::Power(number)],
        (Binary::Maximum, _) => vec![Link::AtLeast(number)],
        (Binary::Minimum, _) => vec![Link::AtMost(number)],
        _ => return None,
    })
}

/// The inverse of a function that is monotonic wherever it is defined, or for positive numbers; in
/// the latter case negative outcomes are not [reached](Scale::reaches).
fn inverse(function: Unary) -> Option<fn(f64) -> f64> {
    Some(match function {
        Unary::Log => f64::exp,
        Unary::Log2 => f64::exp2,
        Unary::Log10 => |v| 10f64.powf(v),
        Unary::Log1p => f64::exp_m1,
        Unary::Log1m => |v| -v.exp_m1(),
        Unary::Exp => f64::ln,
        Unary::Exp2 => f64::log2,
        Unary::Expm1 => f64::ln_1p,
        Unary::Sqrt => |v| v * v,
        Unary::Square => f64::sqrt,
        Unary::Inverse => f64::recip,
        Unary::InverseSqrt => |v| 1.0 / (v * v),
        Unary::InverseSquare => |v| 1.0 / v.sqrt(),
        Unary::Cbrt => |v| v * v * v,
        Unary::Asinh => f64::sinh,
        Unary::Atanh => f64::tanh,
        Unary::Acosh => f64::cosh,
        Unary::Tanh => Unary::Atanh.definition().value,
        Unary::Negate => |v| -v,
        Unary::Logit => Unary::InvLogit.definition().value,
        Unary::InvLogit => Unary::Logit.definition().value,
        Unary::Phi => Unary::InvPhi.definition().value,
        Unary::InvPhi => Unary::Phi.definition().value,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constants;

    fn scale(variate: &str) -> Option<Scale> {
        let source = format!(
            "record {{ real<lower=0, upper=1> y; }} parameters {{ real a; }}
             model {{ {variate} ~ normal(a, 1); }}"
        );
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        Scale::of(&model, 0, model.outcomes[0].variate)
    }

    #[test]
    fn a_variate_leads_back_to_the_column() {
        for (variate, at_half) in [
            ("y", 0.5),
            ("log(y)", 0.5f64.ln()),
            ("(log1p(y) - 2) / 3", (1.5f64.ln() - 2.0) / 3.0),
            ("3 - 2 * sqrt(y)", 3.0 - 2.0 * 0.5f64.sqrt()),
            ("-log10(0.1 + y)", -0.6f64.log10()),
            ("logit(y)", 0.0),
            ("y ^ 0.25", 0.5f64.powf(0.25)),
            ("asinh(y / 4)", 0.125f64.asinh()),
            ("1 / (1 + square(y))", 0.8),
            ("2 - inv_sqrt(y)", 2.0 - 2f64.sqrt()),
            ("atanh(y) + 1", 1.0 + 0.5f64.atanh()),
            ("log(fmax(y, 0.001))", 0.5f64.ln()),
            ("(y > 0 ? log(y) : 0)", 0.5f64.ln()),
        ] {
            let scale = scale(variate).unwrap();
            assert!((scale.to(0.5) - at_half).abs() < 1e-12, "{variate}");
            assert!((scale.back(at_half) - 0.5).abs() < 1e-12, "{variate}");
            assert!(scale.reaches(at_half), "{variate}");
        }
    }

    // If it failed: mass would be searched for twice, or where the column has no value.
    #[test]
    fn what_no_column_stands_for_is_not_reached() {
        assert!(!scale("sqrt(y)").unwrap().reaches(-0.5));
        assert!(!scale("log(y)").unwrap().reaches(1e3));
        assert!(!scale("log(fmax(y, 0.01))").unwrap().reaches(-5.0));
        for variate in ["abs(y)", "y * log(y)", "log(y) - y"] {
            assert_eq!(scale(variate), None, "{variate}");
        }
        let log = scale("1 - log(y)").unwrap();
        assert_eq!(log.bounds([Some(0.0), Some(1.0)]), [Some(1.0), None]);
        assert_eq!(log.bounds([None, None]), [None, None]);
    }
}

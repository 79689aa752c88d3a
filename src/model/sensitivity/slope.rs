//! The known ranges of each scalar function and of its derivative.
//!
//! This is the place for a new function's rule. Without a rule there is no bound through the
//! function, and `dpm check` says so.

use super::range::Range;
use crate::function::Unary;

/// The values of the function on a range. All numbers where part of the range lies outside its
/// domain, where the value is not a number.
pub fn value(function: Unary, x: Range) -> Range {
    let f = function.definition().value;
    let positive = x.low >= 0.0;
    match function {
        Unary::Negate => x.negate(),
        Unary::Abs => x.abs(),
        Unary::Square => x.square(),
        Unary::Inverse => x.inverse(),
        Unary::InverseSquare => x.square().inverse(),
        Unary::Sqrt if positive => x.increasing(f).at_least(0.0),
        Unary::InverseSqrt if positive => value(Unary::Sqrt, x).inverse(),
        Unary::Exp | Unary::Exp2 | Unary::PositiveExp => x.increasing(f).at_least(0.0),
        Unary::Log | Unary::Log2 | Unary::Log10 if positive => x.increasing(f),
        Unary::Log1p if x.low >= -1.0 => x.increasing(f),
        Unary::Log1m if x.high <= 1.0 => x.decreasing(f),
        Unary::Log1mExp if x.high <= 0.0 => x.decreasing(f).at_most(0.0),
        Unary::InvLogit
        | Unary::OpenInvLogit
        | Unary::Phi
        | Unary::PhiApprox
        | Unary::InvCloglog => x.increasing(f).at_least(0.0).at_most(1.0),
        Unary::Logit | Unary::InvPhi if positive && x.high <= 1.0 => x.increasing(f),
        Unary::Log1pExp => x.increasing(f).at_least(0.0),
        Unary::LogInvLogit | Unary::LogPhi | Unary::LogCauchyCdf => x.increasing(f).at_most(0.0),
        Unary::Log1mInvLogit => x.decreasing(f).at_most(0.0),
        Unary::Tanh | Unary::Erf => x.increasing(f).at_least(-1.0).at_most(1.0),
        Unary::Erfc => x.decreasing(f).at_least(0.0).at_most(2.0),
        Unary::Expm1 => x.increasing(f).at_least(-1.0),
        Unary::Sinh | Unary::Asinh | Unary::Atan | Unary::Cbrt => x.increasing(f),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc | Unary::Step | Unary::IntStep => {
            Range::new(f(x.low), f(x.high))
        }
        Unary::Sin | Unary::Cos => Range::symmetric(1.0),
        // Convex, with the least value at zero.
        Unary::Cosh | Unary::LogCosh | Unary::Expm1Minus => {
            x.bell(|x| -f(x)).negate().at_least(0.0)
        }
        Unary::Log1pMinus if x.low >= -1.0 => x.bell(f).at_most(0.0),
        Unary::StirlingError if positive => x.decreasing(f).at_least(0.0),
        Unary::Lgamma if positive => {
            // The least value is -0.1214862905..., at 1.4616321449...
            let ends = Range::new(f(x.low).min(f(x.high)), f(x.low).max(f(x.high))).outward();
            let least = Range::point(-0.121_486_290_54);
            if x.contains(1.461_632_144_97) || x.high > 1.46 && x.low < 1.47 {
                ends.hull(least)
            } else {
                ends
            }
        }
        Unary::Digamma if positive => {
            x.increasing(|x| if x == 0.0 { f64::NEG_INFINITY } else { f(x) })
        }
        Unary::Not => match (x.is_zero(), x.contains(0.0)) {
            (true, _) => Range::ONE,
            (_, false) => Range::ZERO,
            _ => Range::UNIT,
        },
        Unary::IsNan | Unary::IsInf => Range::UNIT,
        _ => Range::ALL,
    }
}

/// The derivatives of the function on a range, where it has the values `y`.
pub fn derivative(function: Unary, x: Range, y: Range) -> Range {
    let range = rule(function, x, y);
    #[cfg(test)]
    let range = super::tests::with_mistake(function, range);
    range
}

fn rule(function: Unary, x: Range, y: Range) -> Range {
    let d = |x: f64| {
        let definition = function.definition();
        (definition.derivative)(x, (definition.value)(x))
    };
    let positive = x.low >= 0.0;
    match function {
        Unary::Negate => Range::point(-1.0),
        Unary::Abs => sign(x),
        Unary::Square => x.multiply(Range::point(2.0)),
        Unary::Sqrt if positive => Range::point(0.5).multiply(y.inverse()),
        Unary::Cbrt => y.square().multiply(Range::point(3.0)).inverse(),
        Unary::Inverse => y.square().negate(),
        Unary::InverseSqrt if positive => Range::point(-0.5).multiply(x.inverse()).multiply(y),
        Unary::InverseSquare => Range::point(-2.0).multiply(x.inverse()).multiply(y),
        Unary::Exp | Unary::PositiveExp => y,
        Unary::Exp2 => y.multiply(Range::point(std::f64::consts::LN_2).outward()),
        Unary::Expm1 => x.increasing(f64::exp).at_least(0.0),
        Unary::Log => x.inverse(),
        Unary::Log2 => x
            .inverse()
            .multiply(Range::point(std::f64::consts::LOG2_E).outward()),
        Unary::Log10 => x
            .inverse()
            .multiply(Range::point(std::f64::consts::LOG10_E).outward()),
        Unary::Log1p => x.add(Range::ONE).inverse(),
        Unary::Log1m => x.subtract(Range::ONE).inverse(),
        // The slopes of the logarithms of a logistic distribution function and of its complement
        // are probabilities.
        Unary::Log1pExp => x.increasing(d).at_least(0.0).at_most(1.0),
        Unary::LogInvLogit => x.decreasing(d).at_least(0.0).at_most(1.0),
        Unary::Log1mInvLogit => x.decreasing(d).at_least(-1.0).at_most(0.0),
        Unary::Log1mExp if x.high <= 0.0 => x.decreasing(d).at_most(0.0),
        // At most 1/4.
        Unary::InvLogit => x.bell(d).at_least(0.0),
        Unary::OpenInvLogit => {
            let slope = |x: f64| crate::function::special::inv_logit_derivative(x);
            x.bell(slope).at_least(0.0)
        }
        Unary::Logit if positive && x.high <= 1.0 => {
            x.inverse().add(Range::ONE.subtract(x).inverse())
        }
        Unary::Phi => x.bell(d).at_least(0.0),
        Unary::Tanh | Unary::Atan | Unary::Asinh | Unary::Erf => x.bell(d).at_least(0.0),
        Unary::Erfc => x.bell(|x| -d(x)).at_least(0.0).negate(),
        // Largest at zero, exp(-1).
        Unary::InvCloglog => x
            .bell(|x| if x == f64::INFINITY { 0.0 } else { d(x) })
            .at_least(0.0),
        Unary::Sin | Unary::Cos => Range::symmetric(1.0),
        Unary::Sinh => x.bell(|x| -x.cosh()).negate().at_least(1.0),
        Unary::Cosh => x.increasing(f64::sinh),
        Unary::LogCosh => value(Unary::Tanh, x),
        Unary::Lgamma if positive => value(Unary::Digamma, x),
        Unary::Digamma if positive => {
            let of_end = |x: f64| if x == 0.0 { f64::INFINITY } else { d(x) };
            x.decreasing(of_end).at_least(0.0)
        }
        Unary::StirlingError if positive => {
            let of_end = |x: f64| if x == 0.0 { f64::NEG_INFINITY } else { d(x) };
            x.increasing(of_end).at_most(0.0)
        }
        // phi/Phi falls from minus x to 0.
        Unary::LogPhi => x.decreasing(d).at_least(0.0),
        // Ratios of Bessel functions: below one.
        Unary::LogScaledBesselI0 => Range::new(-2.0, 0.0),
        Unary::Expm1Minus => value(Unary::Expm1, x),
        Unary::Log1pMinus if x.low >= -1.0 => share(x, Range::ONE).negate(),
        Unary::Floor
        | Unary::Ceil
        | Unary::Round
        | Unary::Trunc
        | Unary::Step
        | Unary::IntStep
        | Unary::IsNan
        | Unary::IsInf
        | Unary::Not => Range::ZERO,
        _ => Range::ALL,
    }
}

/// `x f'(x)` where a tighter range than the product is known.
pub fn scaled_derivative(function: Unary, x: Range) -> Option<Range> {
    match function {
        Unary::Log => Some(Range::ONE),
        Unary::Log1p if x.low >= -1.0 => Some(share(x, Range::ONE)),
        _ => None,
    }
}

/// `x / (x + rest)` for `x + rest >= 0` and `rest >= 0`: non-decreasing in x, and non-increasing in
/// the rest where x is positive.
pub fn share(x: Range, rest: Range) -> Range {
    let share_at = |x: f64, rest: f64, none: f64| {
        if x == f64::INFINITY {
            return if rest == f64::INFINITY { none } else { 1.0 };
        }
        if x == 0.0 {
            return 0.0;
        }
        if x + rest <= 0.0 {
            return f64::NEG_INFINITY;
        }
        x / (x + rest)
    };
    let low = if x.low >= 0.0 { rest.high } else { rest.low };
    let high = if x.high >= 0.0 { rest.low } else { rest.high };
    let share = Range::new(share_at(x.low, low, 0.0), share_at(x.high, high, 1.0));
    share.outward().at_most(1.0).both(if x.low >= 0.0 {
        Range::UNIT
    } else {
        Range::ALL
    })
}

fn sign(x: Range) -> Range {
    Range {
        low: if x.low > 0.0 { 1.0 } else { -1.0 },
        high: if x.high < 0.0 { -1.0 } else { 1.0 },
    }
}

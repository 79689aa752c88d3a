//! Adjoints as ranges, and how they are pulled back through one operation.

use super::range::{Range, root_up};
use super::slope;
use crate::function::{Form, Unary};
use crate::model::Binary;

/// The derivative of the result with respect to a node; that times the node's own
/// value, which is the derivative with respect to its logarithm; and the derivative times one minus
/// the value. Each may be bounded where the others are not. `log(sigma)` has the slope 1/sigma in
/// sigma, but 1 in log sigma, whatever sigma is; through `sigma = exp(u)` the second is the one
/// needed. Likewise the third for a probability that comes from `inv_logit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjoint {
    pub plain: Range,
    pub scaled: Range,
    pub rest: Range,
}

impl Adjoint {
    pub const ZERO: Adjoint = Adjoint {
        plain: Range::ZERO,
        scaled: Range::ZERO,
        rest: Range::ZERO,
    };

    /// From the derivative alone, of a node with these values.
    pub fn of(plain: Range, value: Range) -> Adjoint {
        Adjoint {
            plain,
            scaled: plain.multiply(value),
            rest: plain.multiply(Range::ONE.subtract(value)),
        }
    }

    /// The same, narrowed by the known range of the derivative times the value.
    fn with_scaled(self, scaled: Range) -> Adjoint {
        Adjoint {
            scaled: self.scaled.both(scaled),
            ..self
        }
    }

    fn with_rest(self, rest: Range) -> Adjoint {
        Adjoint {
            rest: self.rest.both(rest),
            ..self
        }
    }

    pub fn is_zero(self) -> bool {
        self.plain.is_zero()
    }

    pub fn negate(self) -> Adjoint {
        Adjoint {
            plain: self.plain.negate(),
            scaled: self.scaled.negate(),
            rest: self.rest.negate(),
        }
    }

    pub fn add(self, other: Adjoint) -> Adjoint {
        Adjoint {
            plain: self.plain.add(other.plain),
            scaled: self.scaled.add(other.scaled),
            rest: self.rest.add(other.rest),
        }
    }

    pub fn hull(self, other: Adjoint) -> Adjoint {
        Adjoint {
            plain: self.plain.hull(other.plain),
            scaled: self.scaled.hull(other.scaled),
            rest: self.rest.hull(other.rest),
        }
    }

    /// Each of the three narrowed by the others, for these values.
    pub fn settled(self, value: Range) -> Adjoint {
        let mut plain = self.plain;
        let lack = Range::ONE.subtract(value);
        for (product, factor) in [(self.scaled, value), (self.rest, lack)] {
            if !factor.contains(0.0) {
                plain = plain.both(product.divide(factor));
            }
        }
        Adjoint::of(plain, value)
            .with_scaled(self.scaled)
            .with_rest(self.rest)
    }
}

/// Through `y = f(x)`.
pub fn through_unary(function: Unary, x: Range, y: Range, a: Adjoint) -> Adjoint {
    if a.is_zero() {
        return Adjoint::ZERO;
    }
    let two = Range::point(2.0);
    let plain = a.plain.multiply(slope::derivative(function, x, y));
    match function {
        Unary::Negate => Adjoint::of(plain, x).with_scaled(a.scaled),
        // x f'(x) = 2 y; and |f'(x)| = 2 sqrt(y), so that |plain| is twice the
        // geometric mean of the two that come in.
        Unary::Square => {
            let product = a.plain.abs().multiply(a.scaled.abs());
            let mean = root_up(product.high);
            let plain = plain.both(Range::symmetric((2.0 * mean).next_up()));
            Adjoint::of(plain, x).with_scaled(a.scaled.multiply(two))
        }
        // x f'(x) = y/2
        Unary::Sqrt => Adjoint::of(plain, x).with_scaled(a.scaled.multiply(Range::point(0.5))),
        // x f'(x) = -y, f'(x) = -y^2
        Unary::Inverse => {
            let plain = plain.both(a.scaled.multiply(y).negate());
            Adjoint::of(plain, x).with_scaled(a.scaled.negate())
        }
        // f' = y
        Unary::Exp | Unary::PositiveExp => Adjoint::of(plain.both(a.scaled), x),
        // f' = y (1 - y)
        Unary::InvLogit | Unary::OpenInvLogit => {
            let lack = Range::ONE.subtract(y).at_least(0.0);
            let plain = plain.both(a.scaled.multiply(lack));
            // Floating-point slopes of `inv_logit` are exact where 1 - y has lost all
            // digits: `log1m(inv_logit(x))` has a slope of 1 for real numbers alone.
            let plain = match function {
                Unary::OpenInvLogit => plain.both(a.rest.multiply(y)),
                _ => plain,
            };
            Adjoint::of(plain, x)
        }
        // (1 - x) f'(x) = -1
        Unary::Log1m => Adjoint::of(plain, x).with_rest(a.plain.negate()),
        _ => {
            let found = Adjoint::of(plain, x);
            match slope::scaled_derivative(function, x) {
                Some(slope) => found.with_scaled(a.plain.multiply(slope)),
                None => found,
            }
        }
    }
}

/// Through `y = a op b`, to both operands.
pub fn through_binary(op: Binary, a: Range, b: Range, y: Range, of: Adjoint) -> [Adjoint; 2] {
    if of.is_zero() {
        return [Adjoint::ZERO; 2];
    }
    let Adjoint {
        plain,
        scaled,
        rest,
    } = of;
    let none = Adjoint::ZERO;
    match op {
        Binary::Add => {
            let [left, right] = [Adjoint::of(plain, a), Adjoint::of(plain, b)];
            // Both have one sign: each is a share of the sum.
            let (positive, negative) =
                (a.low >= 0.0 && b.low >= 0.0, a.high <= 0.0 && b.high <= 0.0);
            if !(positive || negative) {
                return [left, right];
            }
            let (a, b) = (a.abs(), b.abs());
            [
                left.with_scaled(scaled.multiply(slope::share(a, b))),
                right.with_scaled(scaled.multiply(slope::share(b, a))),
            ]
        }
        Binary::Subtract => {
            let right = Adjoint::of(plain.negate(), b);
            // y = 1 - b, so that 1 - y = b.
            let right = if a == Range::ONE {
                right.with_scaled(rest.negate()).with_rest(scaled.negate())
            } else {
                right
            };
            [Adjoint::of(plain, a), right]
        }
        Binary::Multiply => [
            Adjoint::of(plain.multiply(b), a).with_scaled(scaled),
            Adjoint::of(plain.multiply(a), b).with_scaled(scaled),
        ],
        Binary::Divide => {
            let by_divisor = scaled.divide(b).both(plain.multiply(y).divide(b));
            [
                Adjoint::of(plain.divide(b), a).with_scaled(scaled),
                Adjoint::of(by_divisor.negate(), b).with_scaled(scaled.negate()),
            ]
        }
        // a^b: a d/da = b y, d/db = y log(a), for a > 0.
        Binary::Power if a.low > 0.0 => {
            let by_exponent = scaled.multiply(slope::value(Unary::Log, a));
            let by_base = scaled.multiply(b);
            [
                Adjoint::of(by_base.divide(a), a).with_scaled(by_base),
                Adjoint::of(by_exponent, b),
            ]
        }
        Binary::Power if b.is_point() && whole_power(b.low) => {
            let by_base = plain.multiply(b).multiply(power(a, b.low - 1.0));
            [
                Adjoint::of(by_base, a).with_scaled(scaled.multiply(b)),
                none,
            ]
        }
        Binary::Minimum => match (a.high < b.low, b.high < a.low) {
            (true, _) => [of, none],
            (_, true) => [none, of],
            _ => [of.hull(none), of.hull(none)],
        },
        Binary::Maximum => match (a.low > b.high, b.low > a.high) {
            (true, _) => [of, none],
            (_, true) => [none, of],
            _ => [of.hull(none), of.hull(none)],
        },
        Binary::Modulus => {
            let quotient = a.divide(b);
            let whole = Range::new(quotient.low.trunc(), quotient.high.trunc());
            [
                Adjoint::of(plain, a),
                Adjoint::of(plain.multiply(whole).negate(), b),
            ]
        }
        Binary::ArcTangent => {
            let size = a.square().add(b.square());
            [
                Adjoint::of(plain.multiply(b.divide(size)), a),
                Adjoint::of(plain.multiply(a.divide(size)).negate(), b),
            ]
        }
        Binary::Less
        | Binary::LessEqual
        | Binary::Equal
        | Binary::NotEqual
        | Binary::And
        | Binary::Or => [none, none],
        Binary::Power => [Adjoint::of(Range::ALL, a), Adjoint::of(Range::ALL, b)],
    }
}

/// The values of `a op b`.
pub fn binary_value(op: Binary, a: Range, b: Range) -> Range {
    let truth = |surely: bool, never: bool| match (surely, never) {
        (true, _) => Range::ONE,
        (_, true) => Range::ZERO,
        _ => Range::UNIT,
    };
    match op {
        Binary::Add => a.add(b),
        Binary::Subtract => a.subtract(b),
        Binary::Multiply => a.multiply(b),
        Binary::Divide => a.divide(b),
        Binary::Minimum => Range::new(a.low.min(b.low), a.high.min(b.high)),
        Binary::Maximum => Range::new(a.low.max(b.low), a.high.max(b.high)),
        Binary::Power if a.low > 0.0 => {
            let log = slope::value(Unary::Log, a).multiply(b);
            slope::value(Unary::Exp, log)
        }
        Binary::Power if b.is_point() && whole_power(b.low) => power(a, b.low),
        Binary::Power => Range::ALL,
        Binary::ArcTangent => Range::symmetric(std::f64::consts::PI).outward(),
        Binary::Modulus => {
            let size = a.magnitude().min(b.magnitude());
            Range {
                low: if a.low < 0.0 { -size } else { 0.0 },
                high: if a.high > 0.0 { size } else { 0.0 },
            }
        }
        Binary::Less => truth(a.high < b.low, a.low >= b.high),
        Binary::LessEqual => truth(a.high <= b.low, a.low > b.high),
        Binary::Equal => truth(a.is_point() && a == b, a.high < b.low || a.low > b.high),
        Binary::NotEqual => truth(a.high < b.low || a.low > b.high, a.is_point() && a == b),
        Binary::And => truth(
            !a.contains(0.0) && !b.contains(0.0),
            a.is_zero() || b.is_zero(),
        ),
        Binary::Or => truth(
            !a.contains(0.0) || !b.contains(0.0),
            a.is_zero() && b.is_zero(),
        ),
    }
}

/// The range of `branch`, one of the numbers that a condition compares, where the condition has
/// this outcome. `x < 1 ? 1 : x` is at least 1.
pub fn under<T: PartialEq>(
    comparison: Option<(Binary, [T; 2])>,
    holds: bool,
    branch: &T,
    of: impl Fn(&T) -> Range,
) -> Range {
    let range = of(branch);
    let Some((Binary::Less | Binary::LessEqual, [left, right])) = comparison else {
        return range;
    };
    // Whichever is the smaller of the two.
    let (small, large) = if holds { (left, right) } else { (right, left) };
    let mut narrowed = range;
    if *branch == small {
        narrowed.high = narrowed.high.min(of(&large).high);
    }
    if *branch == large {
        narrowed.low = narrowed.low.max(of(&small).low);
    }
    // Never taken: any range will do.
    if narrowed.is_empty() { range } else { narrowed }
}

/// Powers that are products.
fn whole_power(exponent: f64) -> bool {
    exponent.fract() == 0.0 && (0.0..=64.0).contains(&exponent)
}

fn power(a: Range, exponent: f64) -> Range {
    let mut rest = exponent as u32;
    // Even powers are squares: never negative.
    let base = if rest.is_multiple_of(2) && rest > 0 {
        rest /= 2;
        a.square()
    } else {
        a
    };
    (0..rest).fold(Range::ONE, |product, _| product.multiply(base))
}

/// Through a noted form, to each argument; `None` where its premises do not hold.
/// Counts are data, which have no adjoint.
pub fn through_form(form: Form, arguments: &[Range], of: Adjoint) -> Option<Vec<Adjoint>> {
    let plain = of.plain;
    Some(match (form, arguments) {
        // The derivatives are shares of the sum: exp(x_k) / sum(exp(x)).
        (Form::LogSumExp, x) => (0..x.len())
            .map(|k| Adjoint::of(plain.multiply(softmax(x, k)), x[k]))
            .collect(),
        // d/d alpha = exp(alpha) - y
        (Form::PoissonDevianceByLog, &[y, alpha]) => {
            let slope = slope::value(Unary::Exp, alpha).subtract(y.at_least(0.0));
            vec![Adjoint::ZERO, Adjoint::of(plain.multiply(slope), alpha)]
        }
        // d/d rate = 1 - y/rate
        (Form::PoissonDeviance, &[y, rate]) if rate.low >= 0.0 => {
            let y_seen = y.at_least(0.0);
            let slope = Range::ONE.subtract(y_seen.divide(rate));
            vec![
                Adjoint::ZERO,
                Adjoint::of(plain.multiply(slope), rate)
                    .with_scaled(plain.multiply(rate.subtract(y_seen))),
            ]
        }
        // d/d alpha = n inv_logit(alpha) - y, between -n and n since 0 <= y <= n
        (Form::BinomialDevianceByLogOdds, &[y, n, alpha]) => {
            let mean = n.multiply(slope::value(Unary::InvLogit, alpha));
            let slope = mean.subtract(y).both(Range::symmetric(n.magnitude()));
            vec![
                Adjoint::ZERO,
                Adjoint::ZERO,
                Adjoint::of(plain.multiply(slope), alpha),
            ]
        }
        // d/d z2 = (nu + 1)/2 / (nu + z2)
        // d/d nu = log1p(z2/nu)/2 - (nu + 1)/(2 nu) z2/(nu + z2)
        (Form::StudentKernel, &[nu, z2]) if nu.low >= 0.0 && z2.low >= 0.0 => {
            let half = Range::point(0.5).multiply(nu.add(Range::ONE));
            let share = slope::share(z2, nu);
            let log = slope::value(Unary::Log1p, z2.divide(nu).at_least(0.0));
            let by_nu = Range::point(0.5)
                .multiply(log)
                .subtract(half.divide(nu).multiply(share));
            vec![
                Adjoint::of(plain.multiply(by_nu), nu),
                Adjoint::of(plain.multiply(half.divide(nu.add(z2))), z2)
                    .with_scaled(plain.multiply(half.multiply(share))),
            ]
        }
        _ => return None,
    })
}

/// `exp(x_k) / sum(exp(x))`
fn softmax(x: &[Range], k: usize) -> Range {
    // 1 / (1 + sum over j of exp(x_j - x_k))
    let others = x.iter().enumerate().filter(|&(j, _)| j != k);
    let odds = others.fold(Range::ZERO, |sum, (_, other)| {
        sum.add(slope::value(Unary::Exp, other.subtract(x[k])))
    });
    odds.add(Range::ONE).inverse().both(Range::UNIT)
}

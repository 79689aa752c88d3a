//! The tight privacy curve of composed Gaussian mechanisms.
//!
//! Releases with sensitivities D_i and noise sigma_i compose exactly to one Gaussian
//! mechanism with mu = sum of D_i^2 / (2 sigma_i^2), also where the next query is
//! chosen from the answers so far, as long as D_i/sigma_i is not. With s = sqrt(2 mu),
//! x = eps/s - s/2, y = eps/s + s/2 and Q the upper tail of the standard normal,
//!
//! ```text
//! delta(eps) = Q(x) - e^eps Q(y)
//! ```
//!
//! which is the smallest delta for which the whole is (eps, delta)-private.
//!
//! Since y^2 - x^2 = 2 eps, e^eps phi(y) = phi(x), so that with M = Q/phi
//!
//! ```text
//! x >= -1:  delta = phi(x) (M(x) - M(y))
//! x <  -1:  delta = 1 - phi(x) (M(-x) + M(y))
//! ```
//!
//! where the exponentials are out of the difference and nothing under- or overflows.
//!
//! # Reference
//!
//! docs/proofs.md, section 14. Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022), Corollaries 1 and 4 (their
//! mu is our s); Sommer, Meiser and Mohammadi (2019) for the composition in this mu.

use super::elementary::{exp, ln, ln_1p};
use super::mills::{MILLS_ERROR, mills_ratio};
use super::real::Real;

/// Twice 2^-100: more than the relative error of any short chain of operations on [`Real`].
const ROUNDING: f64 = 1.6e-30;

/// How far mu is widened for the rounding of its sum: 10^7 lines are covered.
const MU_ROUNDING: f64 = 1e-24;

/// More than the relative error of `exp` in its range and of the products after it.
const EXP_SLACK: Real = Real::exact(1e-27);

/// More than e^-650 times a sum of two Mills ratios: what `exp` may have flushed to zero.
const EXP_FLUSHED: f64 = 1e-280;

const LN_SQRT_TWO_PI: Real = Real::from_parts(0.9189385332046728, -3.8782941580672414e-17);

/// The privacy curve of composed Gaussians, given by mu = sum of D^2 / (2 sigma^2).
#[derive(Clone, Copy, Debug)]
pub struct GaussianCurve {
    mu: Real,
}

/// Two numbers with the truth between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds<T> {
    pub lower: T,
    pub upper: T,
}

impl GaussianCurve {
    /// `mu` is finite, at least 0 and at most 1e40; the events see to that.
    pub(super) fn new(mu: Real) -> GaussianCurve {
        GaussianCurve { mu }
    }

    /// mu, rounded up: no smaller than the sum of D^2 / (2 sigma^2).
    pub fn mu(&self) -> f64 {
        self.widened().upper.to_f64_up()
    }

    /// Bounds on ln delta(eps), for eps from 0 to 1e60; minus infinity where mu is zero.
    pub fn ln_delta(&self, epsilon: Real) -> Bounds<Real> {
        let mu = self.widened();
        Bounds {
            lower: ln_delta_of(mu.lower, epsilon).lower,
            upper: self.ln_delta_upper(epsilon),
        }
    }

    pub(super) fn ln_delta_upper(&self, epsilon: Real) -> Real {
        ln_delta_of(self.widened().upper, epsilon).upper
    }

    /// Bounds on delta(eps); the upper one is zero only where mu is.
    pub fn delta(&self, epsilon: Real) -> Bounds<f64> {
        let ln_delta = self.ln_delta(epsilon);
        Bounds {
            lower: exp_down(ln_delta.lower),
            upper: exp_up(ln_delta.upper),
        }
    }

    /// Bounds on the smallest eps >= 0 with delta(eps) <= delta, for 0 < delta < 1.
    ///
    /// The upper one is the smallest `f64` whose delta is, bound and all, no larger
    /// than the one given.
    pub fn epsilon(&self, delta: Real) -> Bounds<f64> {
        let target = ln_bounds(delta);
        let start = self.zcdp_epsilon(target.lower.to_f64());
        let mu = self.widened();
        let upper = smallest_accepted(start, |epsilon| {
            ln_delta_of(mu.upper, Real::exact(epsilon)).upper <= target.lower
        });
        let first_not_above = smallest_accepted(start, |epsilon| {
            ln_delta_of(mu.lower, Real::exact(epsilon)).lower <= target.upper
        });
        Bounds {
            // One step below the first is an eps whose delta is certainly too large.
            lower: first_not_above.next_down().max(0.0),
            upper,
        }
    }

    /// mu + 2 sqrt(mu ln(1/delta)): above the tight epsilon (Bun and Steinke 2016), so
    /// a place for the search to start from.
    fn zcdp_epsilon(&self, ln_delta: f64) -> f64 {
        let mu = self.mu();
        (mu + 2.0 * (mu * -ln_delta).sqrt()).max(f64::MIN_POSITIVE)
    }

    fn widened(&self) -> Bounds<Real> {
        let slack = self.mu * Real::exact(MU_ROUNDING);
        Bounds {
            lower: self.mu - slack,
            upper: self.mu + slack,
        }
    }
}

/// The smallest `f64` >= 0 that `accepts`, which is false up to some point and true
/// after it. Bisection over the bits, since non-negative floats are ordered as their
/// bits are; the answer itself has been accepted.
pub(super) fn smallest_accepted(start: f64, accepts: impl Fn(f64) -> bool) -> f64 {
    if accepts(0.0) {
        return 0.0;
    }
    let mut accepted = start;
    while !accepts(accepted) {
        accepted *= 2.0;
        if accepted > 1e60 {
            return f64::INFINITY;
        }
    }
    let accepts_bits = |bits| accepts(f64::from_bits(bits));
    f64::from_bits(turning_point(0, accepted.to_bits(), accepts_bits))
}

/// The first number that `is_above`: `below` is not, `above` is. By bisection.
pub(super) fn turning_point(mut below: u64, mut above: u64, is_above: impl Fn(u64) -> bool) -> u64 {
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if is_above(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}

/// ln of a number, as bounds that cover its own rounding and that of the logarithm.
pub(super) fn ln_bounds(value: Real) -> Bounds<Real> {
    let ln_value = ln(value);
    let error = (Real::ONE + ln_value.abs()) * Real::exact(ROUNDING);
    // A decimal below 1e-290 has a subnormal low part, known to 5e-324 of 1e-300.
    let error = if value.to_f64() < 1e-290 {
        error + Real::exact(1e-23)
    } else {
        error
    };
    Bounds {
        lower: ln_value - error,
        upper: ln_value + error,
    }
}

/// e^x rounded up, at most 1 and never zero but for x = minus infinity.
pub(super) fn exp_up(x: Real) -> f64 {
    if x.to_f64() == f64::NEG_INFINITY {
        return 0.0;
    }
    exp_near(x, f64::next_up).min(1.0)
}

/// e^x rounded down.
pub(super) fn exp_down(x: Real) -> f64 {
    exp_near(x, f64::next_down).max(0.0)
}

/// e^x moved one step by `away`; the step covers the error of exp, 1e-28.
fn exp_near(x: Real, away: impl Fn(f64) -> f64) -> f64 {
    // The part of the range that `exp` leaves out is reached by a factor of 2^-500.
    if x.to_f64() < -600.0 {
        let shift = 500.0;
        let moved = x + Real::exact(shift) * ln(Real::exact(2.0));
        let value = away(exp(moved).to_f64());
        // 2^-500 is exact; only the rounding to a subnormal may go the wrong way.
        let scaled = value * 2f64.powi(-(shift as i32));
        return if scaled.is_normal() {
            scaled
        } else {
            away(scaled)
        };
    }
    away(exp(x).to_f64())
}

/// Bounds on ln delta(eps) of exactly this mu.
fn ln_delta_of(mu: Real, epsilon: Real) -> Bounds<Real> {
    if mu.to_f64() <= 0.0 {
        let never = Real::exact(f64::NEG_INFINITY);
        return Bounds {
            lower: never,
            upper: never,
        };
    }
    let s = mu.times_power_of_two(1).sqrt();
    let (ratio, half) = (epsilon / s, s.times_power_of_two(-1));
    let point = CurvePoint::new(ratio - half, ratio + half);
    if point.x.to_f64() >= -1.0 {
        ln_of_small_delta(&point, s)
    } else {
        ln_of_large_delta(&point)
    }
}

/// x and y of one epsilon, ln phi(x), and how far rounding may have moved them.
struct CurvePoint {
    x: Real,
    y: Real,
    /// Bounds the absolute error of x and of y.
    slip: Real,
    ln_density: Bounds<Real>,
}

impl CurvePoint {
    fn new(x: Real, y: Real) -> CurvePoint {
        let slip = y * Real::exact(ROUNDING);
        let ln_density = -x.square().times_power_of_two(-1) - LN_SQRT_TWO_PI;
        let error =
            x.abs() * slip + slip.square() + (Real::ONE + x.square()) * Real::exact(ROUNDING);
        CurvePoint {
            x,
            y,
            slip,
            ln_density: Bounds {
                lower: ln_density - error,
                upper: ln_density + error,
            },
        }
    }

    /// Bounds the absolute error of `mills`, the Mills ratio at t = -x, x or y.
    ///
    /// |M'| is at most 1.3 M for t >= -1, and at most M/t for t > 0.
    fn mills_error(&self, t: Real, mills: Real) -> Real {
        let moved = self.slip.to_f64() * 2.0 / t.to_f64().max(1.0);
        mills * Real::exact(MILLS_ERROR + moved)
    }
}

/// ln delta = ln phi(x) + ln(M(x) - M(y)), for x >= -1.
fn ln_of_small_delta(point: &CurvePoint, s: Real) -> Bounds<Real> {
    let gap = mills_gap(point, s);
    let lower = if gap.lower > Real::ZERO {
        point.ln_density.lower + ln_bounds(gap.lower).lower
    } else {
        Real::exact(f64::NEG_INFINITY)
    };
    let upper = point.ln_density.upper + ln_bounds(gap.upper).upper;
    Bounds {
        lower,
        upper: upper.min(Real::ZERO),
    }
}

/// ln delta = ln(1 - phi(x) (M(-x) + M(y))), for x < -1, where what is taken from one
/// is less than a third.
fn ln_of_large_delta(point: &CurvePoint) -> Bounds<Real> {
    let (left, right) = (mills_ratio(-point.x), mills_ratio(point.y));
    let error = point.mills_error(-point.x, left) + point.mills_error(point.y, right);
    let sum = left + right;
    let missing = Bounds {
        lower: exp(point.ln_density.lower) * (sum - error) * (Real::ONE - EXP_SLACK),
        upper: (exp(point.ln_density.upper) * (sum + error) * (Real::ONE + EXP_SLACK))
            .max(Real::exact(EXP_FLUSHED)),
    };
    let (lower, upper) = (ln_1p(-missing.upper), ln_1p(-missing.lower));
    let slack = Real::exact(2.0 * ROUNDING);
    Bounds {
        lower: lower + lower * slack,
        upper: upper - upper * slack,
    }
}

/// M(x) - M(y) for y = x + s, from its terms, and where these agree in almost all
/// digits (s tiny) from s (-M'(y)) <= M(x) - M(y) <= s (-M'(x)), M being convex.
fn mills_gap(point: &CurvePoint, s: Real) -> Bounds<Real> {
    let (left, right) = (mills_ratio(point.x), mills_ratio(point.y));
    let gap = left - right;
    let error = point.mills_error(point.x, left)
        + point.mills_error(point.y, right)
        + left * Real::exact(ROUNDING);
    let direct = Bounds {
        lower: gap - error,
        upper: gap + error,
    };
    if error < gap * Real::exact(1e-18) {
        return direct;
    }
    let rounding = Real::exact(10.0 * ROUNDING);
    let shallow = mills_descent(point.y + point.slip).lower * s * (Real::ONE - rounding);
    let steep = mills_descent(point.x - point.slip).upper * s * (Real::ONE + rounding);
    Bounds {
        lower: direct.lower.max(shallow),
        upper: direct.upper.min(steep),
    }
}

/// Bounds on -M'(t) = 1 - t M(t), which for t > 0 lies between 1/t^2 - 3/t^4 and
/// 1/(1 + t^2) (Abramowitz and Stegun 26.2.13).
fn mills_descent(t: Real) -> Bounds<Real> {
    let product = t * mills_ratio(t);
    let error = (Real::ONE + product.abs()) * Real::exact(2.0 * MILLS_ERROR);
    let (lower, upper) = (Real::ONE - product - error, Real::ONE - product + error);
    if t.to_f64() < 2.0 {
        return Bounds { lower, upper };
    }
    let inverse_square = Real::ONE / t.square();
    let series = inverse_square * (Real::ONE - Real::exact(3.0) * inverse_square);
    let rounding = Real::exact(10.0 * ROUNDING);
    Bounds {
        lower: lower.max(series * (Real::ONE - rounding)),
        upper: upper.min(Real::ONE / (Real::ONE + t.square()) * (Real::ONE + rounding)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    /// Checks every row of a table and prints the largest errors.
    ///
    /// Columns are found by name: mu, kind, given, value, ln_delta, and, where it is
    /// filled in, terms Delta:sigma:count;...
    fn check_table(name: &str) {
        let path = format!(
            "{}/tests/fixtures/accounting/{name}",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        let column = |wanted: &str| header.iter().position(|name| name.starts_with(wanted));
        let (mut worst_eps, mut worst_ln): (f64, f64) = (0.0, 0.0);
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let cell = |wanted: &str| cells[column(wanted).unwrap()];
            let terms = column("terms").map_or("", |index| cells[index]);
            let mu = if terms.is_empty() {
                real(cell("mu"))
            } else {
                mu_of_terms(terms)
            };
            let curve = GaussianCurve::new(mu);
            let (given, value) = (real(cell("given")), cell("value"));
            if cell("kind") == "eps_of_delta" {
                let (bounds, value) = (curve.epsilon(given), real(value));
                assert!(Real::exact(bounds.lower) <= value, "{line} {bounds:?}");
                assert!(Real::exact(bounds.upper) >= value, "{line} {bounds:?}");
                if value > Real::ZERO {
                    let width = Real::exact(bounds.upper) - Real::exact(bounds.lower);
                    worst_eps = worst_eps.max((width / value).to_f64());
                } else {
                    assert_eq!(bounds.upper, 0.0, "{line}");
                }
            } else {
                let bounds = curve.ln_delta(given);
                // A few ln delta are as small as -1e-1088: zero, to 1e-300.
                let truth: Real = cell("ln_delta").parse().unwrap_or(Real::ZERO);
                // The table has 25 digits.
                let printed = truth.abs() * Real::exact(1e-24) + Real::exact(1e-279);
                assert!(bounds.lower - printed <= truth, "{line} {bounds:?}");
                assert!(bounds.upper + printed >= truth, "{line} {bounds:?}");
                let (low, high) = (bounds.lower.to_f64_down(), bounds.upper.to_f64_up());
                for rounded in [low, high] {
                    let error = (Real::exact(rounded) - truth).abs().to_f64();
                    worst_ln = worst_ln.max(error);
                }
                let delta = curve.delta(given);
                assert!(delta.upper > 0.0 && delta.lower <= delta.upper);
                if let Ok(value) = value.parse::<Real>() {
                    assert!(Real::exact(delta.lower) <= value, "{line} {delta:?}");
                    assert!(Real::exact(delta.upper) >= value, "{line} {delta:?}");
                    assert!(delta.upper - delta.lower <= 1e-15 * delta.upper, "{line}");
                }
            }
        }
        println!("{name}: epsilon {worst_eps:e} relative, ln delta {worst_ln:e}");
        assert!(worst_eps < 1e-12 && worst_ln < 1e-12);
    }

    fn mu_of_terms(terms: &str) -> Real {
        terms.split(';').fold(Real::ZERO, |mu, term| {
            let numbers: Vec<Real> = term.split(':').map(real).collect();
            mu + (numbers[0] / numbers[1]).square() * numbers[2] / real("2")
        })
    }

    // Wrong here: the epsilon that a report claims, or the bound's direction.
    #[test]
    fn encloses_every_row_of_the_shared_oracle() {
        check_table("a_gauss_composed.csv");
    }

    #[test]
    fn encloses_every_row_of_our_own_wider_table() {
        check_table("gauss_mpmath.csv");
    }

    #[test]
    fn nothing_released_costs_nothing() {
        let curve = GaussianCurve::new(Real::ZERO);
        let zero = Bounds {
            lower: 0.0,
            upper: 0.0,
        };
        assert_eq!(curve.delta(real("0.1")), zero);
        assert_eq!(curve.epsilon(real("1e-9")), zero);
        assert_eq!(curve.mu(), 0.0);
    }

    // Wrong here: a report could say delta = 0, which no Gaussian mechanism reaches.
    #[test]
    fn delta_below_f64_is_the_smallest_f64_and_ln_delta_says_how_small() {
        let curve = GaussianCurve::new(real("1e-10"));
        let delta = curve.delta(real("1e-3"));
        assert_eq!((delta.lower, delta.upper), (0.0, f64::from_bits(1)));
        assert!(curve.ln_delta(real("1e-3")).upper.to_f64() < -2520.0);
    }

    // At the ends of the permitted range the bounds are still bounds, in the right order.
    #[test]
    fn extreme_mu_and_epsilon_stay_in_order() {
        for mu in [
            "1e-100", "1e-60", "1e-34", "1e-31", "1e-20", "1", "1e6", "1e15", "1e40",
        ] {
            let curve = GaussianCurve::new(real(mu));
            for epsilon in [
                "0", "1e-300", "1e-40", "1e-8", "1", "1e6", "1e15", "1e40", "1e60",
            ] {
                let ln_delta = curve.ln_delta(real(epsilon));
                assert!(
                    ln_delta.lower <= ln_delta.upper && ln_delta.upper <= Real::ZERO,
                    "mu {mu} eps {epsilon}: {ln_delta:?}"
                );
                let delta = curve.delta(real(epsilon));
                assert!(0.0 <= delta.lower && delta.lower <= delta.upper && delta.upper > 0.0);
            }
            for delta in ["1e-300", "1e-60", "1e-9", "0.5", "0.999999999999999999999"] {
                let epsilon = curve.epsilon(real(delta));
                assert!(
                    epsilon.lower <= epsilon.upper && epsilon.upper.is_finite(),
                    "mu {mu} delta {delta}: {epsilon:?}"
                );
                assert!(
                    epsilon.upper - epsilon.lower <= 1e-12 * epsilon.upper,
                    "mu {mu} delta {delta}: {epsilon:?}"
                );
            }
        }
    }

    // The convexity bounds and the difference itself are two roads to one number.
    #[test]
    fn tiny_mu_approaches_s_over_root_two_pi() {
        // delta(0) = 2 Phi(s/2) - 1 = s/sqrt(2 pi) (1 - s^2/24 + ...), s^2 = 2 mu.
        let root_pi = real("1.772453850905516027298167483341145182798");
        for mu in ["1e-100", "1e-40", "1e-28"] {
            let delta = GaussianCurve::new(real(mu)).delta(Real::ZERO);
            let truth = (real(mu).sqrt() / root_pi).to_f64();
            assert!(
                (delta.upper - truth).abs() < 1e-13 * truth,
                "{mu} {delta:?}"
            );
            assert!(
                (delta.lower - truth).abs() < 1e-13 * truth,
                "{mu} {delta:?}"
            );
        }
    }
}

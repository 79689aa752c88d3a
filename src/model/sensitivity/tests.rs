//! Rules compared with values and derivatives, and a check that a wrong rule would be detected.

use std::cell::Cell as Slot;

use super::range::Range;
use super::slope;
use crate::density::Density;
use crate::function::Unary;
use crate::model::{Constants, Model};

thread_local! {
    /// The function whose derivatives are wrongly halved.
    static MISTAKE: Slot<Option<Unary>> = const { Slot::new(None) };
}

pub fn with_mistake(function: Unary, range: Range) -> Range {
    match MISTAKE.get() {
        Some(mistaken) if mistaken == function => range.multiply(Range::point(0.5)),
        _ => range,
    }
}

/// SplitMix64: the same points on every machine.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
}

/// Whatever x in a range, the value and the derivative at x lie in the ranges that
/// the table gives: 400 ranges a function, 12 points and both ends in each. A rule
/// that is too narrow by more than 1e-9 of itself on a tenth of the ranges is missed
/// with probability below 1e-18.
#[test]
fn ranges_of_functions_hold_values_and_derivatives() {
    let mut random = Random(5);
    let mut ruled = 0;
    for &function in Unary::ALL {
        let definition = function.definition();
        for k in 0..400 {
            let scale = [0.3, 1.0, 4.0, 20.0][k % 4];
            let (a, b) = match k % 5 {
                0 => (0.0, random.between(0.0, 1.0)),
                1 => (random.between(0.0, 1.0), random.between(0.0, 1.0)),
                2 => (random.between(0.0, scale), random.between(0.0, scale)),
                _ => (random.between(-scale, scale), random.between(-scale, scale)),
            };
            let mut x = Range::new(a.min(b), a.max(b));
            let inside = x;
            if k % 7 == 0 {
                x.high = f64::INFINITY;
            }
            if k % 11 == 0 {
                x.low = f64::NEG_INFINITY;
            }
            let y = slope::value(function, x);
            let d = slope::derivative(function, x, y);
            ruled += usize::from(d.is_finite());
            for i in 0..14 {
                let at = match i {
                    0 => inside.low,
                    1 => inside.high,
                    _ => random.between(inside.low, inside.high),
                };
                let value = (definition.value)(at);
                let derivative = (definition.derivative)(at, value);
                if !value.is_finite() || !derivative.is_finite() {
                    continue;
                }
                let near = |range: Range, v: f64| {
                    let room = 1e-9 * v.abs() + 1e-12;
                    range.low <= v + room && v - room <= range.high
                };
                assert!(
                    near(y, value),
                    "{function:?} at {at} in {x:?}: {value}, {y:?}"
                );
                assert!(
                    near(d, derivative),
                    "{function:?} at {at} in {x:?}: derivative {derivative}, {d:?}"
                );
            }
        }
    }
    // Most functions have rules.
    assert!(ruled > 400 * 30, "{ruled}");
}

/// `x/(x + rest)` and `x/(1 + x)`, whose ranges are their own rules.
#[test]
fn shares_hold_theirs() {
    let mut random = Random(6);
    for _ in 0..2000 {
        let (a, b) = (random.between(-0.9, 4.0), random.between(-0.9, 4.0));
        let (c, d) = (random.between(0.95, 4.0), random.between(0.95, 4.0));
        let (x, rest) = (
            Range::new(a.min(b), a.max(b)),
            Range::new(c.min(d), c.max(d)),
        );
        let share = slope::share(x, rest);
        for _ in 0..8 {
            let (x, rest) = (
                random.between(x.low, x.high),
                random.between(rest.low, rest.high),
            );
            assert!(share.contains(x / (x + rest)), "{x} {rest} {share:?}");
        }
    }
}

fn model(source: &str) -> Model {
    Model::from_source(source, &Constants::none()).unwrap_or_else(|e| panic!("{e}"))
}

/// The longest gradient of 400 points with 32 records each, by burn's own
/// derivatives.
fn longest(density: &Density) -> f64 {
    const RECORDS: usize = 32;
    let mut random = Random(7);
    let mut longest: f64 = 0.0;
    for k in 0..400 {
        let scale = [0.3, 1.0, 3.0, 10.0][k % 4];
        let theta: Vec<f64> = (0..density.dimension())
            .map(|_| random.between(-scale, scale))
            .collect();
        let raw: Vec<Vec<f64>> = density
            .model()
            .columns
            .iter()
            .map(|c| {
                let (low, high) = (c.lower.expect("bounded"), c.upper.expect("bounded"));
                let end = |u: f64| if u < 0.5 { low } else { high };
                (0..RECORDS).map(|_| end(random.uniform())).collect()
            })
            .collect();
        let (_, gradients) = density.tiled_gradients(&theta, &raw, RECORDS);
        for gradient in gradients.chunks(density.dimension()) {
            let square: f64 = gradient.iter().map(|g| g * g).sum();
            longest = longest.max(square.sqrt());
        }
    }
    longest
}

/// With the derivatives of one function halved, gradients longer than the bound are found; with the
/// right ones, none.
#[test]
fn halved_derivatives_are_caught() {
    let cases = [
        (
            Unary::LogInvLogit,
            "record { int<lower=0, upper=1> y; real<lower=-1, upper=1> x; }
             parameters { real a; real b; }
             model { y ~ bernoulli_logit(a + b * x); }",
        ),
        (
            Unary::Square,
            "record { real<lower=-3, upper=3> y; }
             parameters { real a; }
             model { y ~ normal(2 * tanh(a), 1); }",
        ),
        (
            Unary::Tanh,
            "record { real<lower=-3, upper=3> y; }
             parameters { real a; }
             model { y ~ normal(2 * tanh(a), 1); }",
        ),
        (
            Unary::OpenInvLogit,
            "record { real<lower=-3, upper=3> y; }
             parameters { real<lower=-2, upper=2> a; }
             model { y ~ normal(a, 1); }",
        ),
        (
            Unary::PositiveExp,
            "record { real<lower=-3, upper=3> y; }
             parameters { real<lower=0.5> s; }
             model { y ~ normal(0, s); }",
        ),
        (
            Unary::Atan,
            "record { int<lower=0, upper=9> y; }
             parameters { real a; }
             model { y ~ poisson_log(atan(a)); }",
        ),
    ];
    for (function, source) in cases {
        let density = Density::new(model(source));
        let longest = longest(&density);
        let bound = |m: &Model| m.record_sensitivity().expect("a bound").norm;
        let right = bound(density.model());
        assert!(
            longest <= right * (1.0 + 1e-9),
            "{function:?}: {longest}, bound {right}"
        );
        MISTAKE.set(Some(function));
        let wrong = bound(density.model());
        MISTAKE.set(None);
        assert!(
            longest > wrong,
            "{function:?}: {longest}, wrong bound {wrong}, right {right}"
        );
    }
}

/// The time of `dpm check` and of the samplers.
#[test]
fn clip_bounds_have_room_for_rounding() {
    let model = model(
        "record { int<lower=0, upper=1> y; }
         parameters { real a; }
         model { y ~ bernoulli_logit(a); }",
    );
    let bound = model.record_sensitivity().expect("a bound");
    assert!(bound.norm >= 1.0 && bound.norm < 1.0 + 1e-12);
    assert!(bound.clip() > 1.0 + 9e-7 && bound.clip() < 1.0 + 1e-6);
}

/// Statements of one record: each has its own bound, and together they may have a
/// smaller one than their sum.
#[test]
fn statements_are_bounded_apart_and_together() {
    let model = model(
        "record { int<lower=0, upper=1> y; int<lower=0, upper=1> z; }
         parameters { real a; real b; }
         model { a ~ normal(0, 1); y ~ bernoulli_logit(a); z ~ bernoulli_logit(2 * b); }",
    );
    let found = model.sensitivity();
    let norms: Vec<f64> = found
        .statements
        .iter()
        .map(|s| s.derived.clone().expect("a bound").norm)
        .collect();
    assert_eq!(norms.len(), 2);
    assert!((norms[0] - 1.0).abs() < 1e-9 && (norms[1] - 2.0).abs() < 1e-9);
    let record = found.record.expect("a bound").norm;
    assert!((record - 5f64.sqrt()).abs() < 1e-9, "{record}");
}

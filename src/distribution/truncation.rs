//! `T[a, b]`: a variate that is known to lie between two ends.

use std::cell::RefCell;

use super::quantity::Quantity;
use super::{Algebra, Container, Domain, FAMILIES, Tail, log_density, log_tail};
use crate::function::Unary;

/// The term that truncation adds to a log density: minus infinity outside the ends, which are
/// included, and minus the log probability between them.
///
/// Only for families with [`super::has_cdf`].
pub fn log_truncation<A: Algebra>(
    family: usize,
    algebra: &mut A,
    variate: A::Scalar,
    arguments: &[A::Scalar],
    (lower, upper): (Option<A::Scalar>, Option<A::Scalar>),
) -> A::Scalar {
    // The part below the lower end: for a count, all values up to the one before it.
    let below = lower.map(|lower| {
        let step = f64::from(FAMILIES[family].variate.is_int());
        let step = algebra.constant(step);
        algebra.subtract(lower, step)
    });
    let mut tail = |tail, at| log_tail(family, tail, algebra, at, arguments);
    let up_to = upper.map(|at| tail(Tail::Lower, at));
    let after = below.map(|at| tail(Tail::Upper, at));
    let both = below
        .zip(upper)
        .map(|(below, upper)| (tail(Tail::Lower, below), tail(Tail::Upper, upper)));
    let algebra = RefCell::new(algebra);
    let quantity = |scalar| Quantity::new(&algebra, scalar);
    let y = quantity(variate);
    let inside = match (up_to.map(quantity), after.map(quantity), both) {
        (Some(up_to), Some(after), Some((before, beyond))) => {
            // Each is a difference of probabilities of one tail: the one for the tail in which the
            // ends lie does not cancel.
            let lower_tail = up_to + (quantity(before) - up_to).ln_1m_exp();
            let upper_tail = after + (quantity(beyond) - after).ln_1m_exp();
            up_to.less(after).choose(lower_tail, upper_tail)
        }
        (Some(one), None, _) | (None, Some(one), _) => one,
        _ => y.constant(0.0),
    };
    let from = lower.map(|lower| y.support_from(quantity(lower)));
    let to = upper.map(|upper| y.support_to(quantity(upper)));
    (y.sum(from.into_iter().chain(to)) - inside).scalar
}

/// Whether probabilities of the family are sums of its masses: a count without a
/// distribution function in closed form. Its ends must be known numbers.
pub fn sums_masses(family: usize) -> bool {
    let counts = matches!(
        FAMILIES[family].support(),
        Domain::Counts | Domain::CountsTo(_)
    );
    counts && FAMILIES[family].is_scalar()
}

/// The most masses in a sum.
pub const MOST_MASSES: f64 = 1000.0;

/// The log probability of a count from `low` to `high`, ends included, as the sum of
/// its masses, none of which is negative; without a `high`, that of a count above zero (`low` is
/// 1), or of any count.
///
/// `None` where it would be the complement of a sum, which cancels, or where there are more than
/// [`MOST_MASSES`].
pub fn log_probability_of_counts<A: Algebra>(
    family: usize,
    algebra: &mut A,
    (low, high): (f64, Option<f64>),
    arguments: &[A::Scalar],
) -> Option<A::Scalar> {
    let containers: Vec<_> = arguments.chunks(1).map(Container::vector).collect();
    let log_mass = |algebra: &mut A, count: f64| {
        let count = [algebra.constant(count)];
        log_density(family, algebra, &Container::vector(&count), &containers)
    };
    let low = low.ceil().max(0.0);
    match high.map(f64::floor) {
        None if low == 0.0 => Some(algebra.constant(0.0)),
        // Accurate even if a count above zero is rare.
        None if low == 1.0 => {
            let nothing = log_mass(algebra, 0.0);
            Some(algebra.unary(Unary::Log1mExp, nothing))
        }
        Some(high) if high - low < MOST_MASSES => {
            let masses: Vec<_> = (low as i64..=high as i64)
                .map(|count| log_mass(algebra, count as f64))
                .collect();
            Some(algebra.log_sum_exp(&masses))
        }
        _ => None,
    }
}

/// The term that truncation of a count at known ends adds to its log density, likewise.
pub fn log_count_truncation<A: Algebra>(
    family: usize,
    algebra: &mut A,
    variate: A::Scalar,
    arguments: &[A::Scalar],
    (lower, upper): (Option<f64>, Option<f64>),
) -> A::Scalar {
    let ends = (lower.unwrap_or(0.0), upper);
    let inside = log_probability_of_counts(family, algebra, ends, arguments);
    let algebra = RefCell::new(algebra);
    let y = Quantity::new(&algebra, variate);
    let inside = inside.map_or(y.constant(f64::NAN), |p| Quantity::new(&algebra, p));
    let from = lower.map(|lower| y.support_from(y.constant(lower)));
    let to = upper.map(|upper| y.support_to(y.constant(upper)));
    (y.sum(from.into_iter().chain(to)) - inside).scalar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Numbers, lookup};

    fn truncated(name: &str, y: f64, arguments: &[f64], ends: (Option<f64>, Option<f64>)) -> f64 {
        let family = lookup(name).expect("a family");
        log_truncation(family, &mut Numbers, y, arguments, ends)
    }

    /// Minus the log of the probability between the ends, by mpmath at 50 digits:
    /// in either tail, across the middle, and with one end open.
    #[test]
    fn normalisers_match_mpmath() {
        for (name, y, arguments, ends, expected) in TABLE {
            let ours = truncated(name, y, arguments, ends);
            assert!(
                (ours - expected).abs() <= 2e-14 * expected.abs().max(1.0),
                "{name} in {ends:?}: {ours}, expected {expected}"
            );
        }
    }

    #[test]
    fn ends_are_included_and_nothing_lies_outside() {
        let ends = (Some(-1.0), Some(2.0));
        let inside = truncated("normal", 0.0, &[0.0, 1.0], ends);
        for (y, expected) in [(-1.0, inside), (2.0, inside), (2.1, f64::NEG_INFINITY)] {
            assert_eq!(truncated("normal", y, &[0.0, 1.0], ends), expected);
        }
        let ends = (Some(1.0), Some(1.0));
        let sure = -f64::ln(0.25);
        assert!((truncated("bernoulli", 1.0, &[0.25], ends) - sure).abs() < 1e-15);
        assert_eq!(
            truncated("bernoulli", 0.0, &[0.25], ends),
            f64::NEG_INFINITY
        );
    }

    fn of_counts(name: &str, ends: (f64, Option<f64>), arguments: &[f64]) -> Option<f64> {
        let family = lookup(name).expect("a family");
        assert!(sums_masses(family));
        log_probability_of_counts(family, &mut Numbers, ends, arguments)
    }

    #[test]
    fn counts_are_summed() {
        // The whole range of a binomial has probability one; a count above zero has less.
        let sure = of_counts("binomial", (0.0, Some(20.0)), &[20.0, 0.3]);
        assert!(sure.is_some_and(|p| p.abs() < 1e-14), "{sure:?}");
        let rest = of_counts("binomial", (3.0, Some(20.0)), &[20.0, 0.3]);
        let first = of_counts("binomial", (-7.0, Some(2.9)), &[20.0, 0.3]);
        let (rest, first) = (rest.expect("a sum").exp(), first.expect("a sum").exp());
        assert!((rest + first - 1.0).abs() < 1e-14);
        assert_eq!(
            of_counts("poisson", (3.0, Some(2.0)), &[1.0]),
            Some(f64::NEG_INFINITY)
        );
        // 1 - exp(-1e-30), and 1 - (1 + mu/phi)^-phi.
        let rare = of_counts("poisson", (1.0, None), &[1e-30]).expect("a mass");
        assert!((rare - 1e-30f64.ln()).abs() < 1e-13);
        let rare = of_counts("neg_binomial_2", (1.0, None), &[1e-30, 2.0]).expect("a mass");
        assert!((rare - 1e-30f64.ln()).abs() < 1e-13);
        assert_eq!(of_counts("poisson", (0.0, None), &[3.0]), Some(0.0));
        // Sums that would cancel, or take too long, are refused.
        assert_eq!(of_counts("poisson", (2.0, None), &[3.0]), None);
        assert_eq!(of_counts("poisson", (0.0, Some(1e9)), &[3.0]), None);
    }

    type Row = (
        &'static str,
        f64,
        &'static [f64],
        (Option<f64>, Option<f64>),
        f64,
    );
    const TABLE: [Row; 15] = [
        (
            "normal",
            8.5,
            &[0.0, 1.0],
            (Some(8.0), Some(9.0)),
            35.01361859343715,
        ),
        (
            "normal",
            -8.5,
            &[0.0, 1.0],
            (Some(-9.0), Some(-8.0)),
            35.01361859343715,
        ),
        (
            "normal",
            0.5,
            &[0.0, 1.0],
            (Some(-1.0), Some(1.0)),
            0.38171514630212605,
        ),
        (
            "normal",
            31.0,
            &[0.0, 1.0],
            (Some(30.0), None),
            454.3212439563432,
        ),
        (
            "normal",
            -31.0,
            &[0.0, 1.0],
            (None, Some(-30.0)),
            454.3212439563432,
        ),
        ("normal", 0.0, &[0.0, 1.0], (Some(-40.0), Some(35.0)), 0.0),
        (
            "logistic",
            700.5,
            &[0.0, 1.0],
            (Some(700.0), Some(701.0)),
            700.4586751453871,
        ),
        (
            "exponential",
            1.5e-10,
            &[1.0],
            (Some(1e-10), Some(2e-10)),
            23.025850930090456,
        ),
        (
            "exponential",
            31.0,
            &[2.0],
            (Some(30.0), Some(32.0)),
            60.018485446825885,
        ),
        (
            "exponential",
            1.0,
            &[2.0],
            (Some(-1.0), Some(2.0)),
            0.01848544682588656,
        ),
        (
            "cauchy",
            1500000.0,
            &[0.0, 1.0],
            (Some(1000000.0), Some(2000000.0)),
            15.653387624374203,
        ),
        (
            "uniform",
            0.5,
            &[0.0, 1.0],
            (Some(-3.0), Some(0.75)),
            0.2876820724517809,
        ),
        (
            "pareto",
            5.0,
            &[2.0, 1.5],
            (Some(4.0), None),
            1.0397207708399179,
        ),
        (
            "weibull",
            1.0,
            &[2.0, 3.0],
            (Some(0.5), Some(2.0)),
            1.1043564889837565,
        ),
        (
            "lognormal",
            1.0,
            &[0.0, 1.0],
            (Some(0.0), Some(1.5)),
            0.4194136845331523,
        ),
    ];
}

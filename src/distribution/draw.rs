//! Draws: the code shared by every family's `draw`.

use rand::{Rng, RngExt};
use rand_distr::{Binomial, Distribution, Gamma, Poisson, StandardNormal};

use super::family::{Argument, Container, Domain, Family, Kind};

/// One draw from a family whose arguments are inside their domains: a number, or
/// the elements of a vector, array or matrix (column by column).
pub(super) type Draw = fn(&mut dyn Rng, &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError>;

/// The reason why nothing can be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DrawError {
    #[error("`{argument}` of `{family}` is {found}, but {wanted}")]
    Domain {
        family: &'static str,
        argument: &'static str,
        found: String,
        /// The domain in words.
        wanted: String,
    },
    #[error("`{family}` is given {given} arguments, not {wanted}")]
    Count {
        family: &'static str,
        given: usize,
        wanted: usize,
    },
    #[error("the sizes of `{first}` and `{second}` in `{family}` do not agree")]
    Sizes {
        family: &'static str,
        first: &'static str,
        second: &'static str,
    },
    #[error("`{argument}` of `{family}` is empty: it needs at least one element")]
    Empty {
        family: &'static str,
        argument: &'static str,
    },
    #[error("draws of this `{0}` are too large")]
    TooLarge(&'static str),
}

/// Draws are whole numbers that an f64 holds exactly.
pub(super) const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;

/// Draws once. The arguments are those of [`Family::draw_arguments`].
///
/// Errors: an argument outside its domain, sizes that do not agree.
pub(super) fn draw(
    family: &'static Family,
    rng: &mut dyn Rng,
    arguments: &[Container<'_, f64>],
) -> Result<Vec<f64>, DrawError> {
    let signature = family.draw_arguments();
    if signature.len() != arguments.len() {
        return Err(DrawError::Count {
            family: family.name,
            given: arguments.len(),
            wanted: signature.len(),
        });
    }
    check_sizes(family, signature, arguments)?;
    for (argument, value) in signature.iter().zip(arguments) {
        if let Some(found) = outside(argument.domain, value, arguments) {
            return Err(DrawError::Domain {
                family: family.name,
                argument: argument.name,
                found,
                wanted: format!("must be: {}", family.domain_in_words(argument)),
            });
        }
    }
    (family.draw)(rng, arguments)
}

/// Sizes of the same letter must be the same number; `K` is at least one.
fn check_sizes(
    family: &'static Family,
    signature: &'static [Argument],
    arguments: &[Container<'_, f64>],
) -> Result<(), DrawError> {
    let mut known: Vec<(&str, usize, &'static str)> = Vec::new();
    for (argument, value) in signature.iter().zip(arguments) {
        for (letter, size) in named_sizes(argument.kind, value) {
            match known.iter().find(|k| k.0 == letter) {
                Some(&(_, other, _)) if other == size => {}
                Some(&(_, _, first)) => {
                    return Err(DrawError::Sizes {
                        family: family.name,
                        first,
                        second: argument.name,
                    });
                }
                None if letter == "K" && size == 0 => {
                    return Err(DrawError::Empty {
                        family: family.name,
                        argument: argument.name,
                    });
                }
                None => known.push((letter, size, argument.name)),
            }
        }
    }
    Ok(())
}

/// The sizes of a value, by the letters of its kind.
pub fn named_sizes<S>(kind: Kind, value: &Container<'_, S>) -> Vec<(&'static str, usize)> {
    match kind {
        Kind::Int | Kind::Real => Vec::new(),
        Kind::Ints(n) | Kind::Vector(n) | Kind::Row(n) => vec![(n, value.elements.len())],
        Kind::Matrix(r, c) => vec![(r, value.rows), (c, value.columns)],
    }
}

/// A description of what is wrong with an argument's value, if anything.
fn outside(
    domain: Domain,
    value: &Container<'_, f64>,
    arguments: &[Container<'_, f64>],
) -> Option<String> {
    let argument = |at: usize| arguments[at].elements[0];
    let each = |fits: &dyn Fn(f64) -> bool| {
        value
            .elements
            .iter()
            .find(|&&x| !fits(x))
            .map(|x| format!("{x}"))
    };
    let whole = |x: f64| x.fract() == 0.0 && x.abs() <= LARGEST_COUNT;
    match domain {
        Domain::Real => each(&|x| x.is_finite()),
        Domain::Positive => each(&|x| x > 0.0 && x.is_finite()),
        Domain::NonNegative => each(&|x| x >= 0.0 && x.is_finite()),
        Domain::Unit => each(&|x| (0.0..=1.0).contains(&x)),
        Domain::Above(at) => each(&|x| x > argument(at) && x.is_finite()),
        Domain::From(at) => each(&|x| x >= argument(at) && x.is_finite()),
        Domain::Between(low, high) => each(&|x| (argument(low)..=argument(high)).contains(&x)),
        Domain::Binary => each(&|x| x == 0.0 || x == 1.0),
        Domain::Counts => each(&|x| x >= 0.0 && whole(x)),
        Domain::CountsTo(at) => each(&|x| (0.0..=argument(at)).contains(&x) && whole(x)),
        Domain::Categories(..) => each(&|x| x >= 1.0 && whole(x)),
        Domain::Simplex => {
            let sum: f64 = value.elements.iter().sum();
            each(&|x| (0.0..=1.0).contains(&x))
                .or_else(|| ((sum - 1.0).abs() > 1e-8).then(|| format!("of sum {sum}")))
        }
        Domain::Ordered => (!value.elements.is_sorted()).then(|| "not ordered".to_string()),
        Domain::Covariance | Domain::Correlation => {
            (cholesky(value).is_none()).then(|| "not positive definite".to_string())
        }
        Domain::CholeskyCovariance | Domain::CholeskyCorrelation => {
            let n = value.rows;
            (0..n)
                .any(|i| {
                    value.elements[i * n + i].is_nan()
                        || value.elements[i * n + i] <= 0.0
                        || (0..i).any(|j| value.elements[i * n + j] != 0.0)
                })
                .then(|| "not lower triangular with a positive diagonal".to_string())
        }
    }
}

/// The Cholesky factor, column by column; `None` unless symmetric and positive
/// definite.
pub(super) fn cholesky(matrix: &Container<'_, f64>) -> Option<Vec<f64>> {
    let n = matrix.rows;
    let m = |i: usize, j: usize| matrix.elements[i + j * n];
    let mut factor = vec![0.0; n * n];
    for j in 0..n {
        for i in j..n {
            if (m(i, j) - m(j, i)).abs() > 1e-8 * m(i, j).abs().max(1.0) {
                return None;
            }
            let below: f64 = (0..j).map(|k| factor[i + k * n] * factor[j + k * n]).sum();
            let rest = m(i, j) - below;
            factor[i + j * n] = if i > j {
                rest / factor[j + j * n]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    Some(factor)
}

/// The arguments of a family of numbers.
pub(super) fn numbers<const N: usize>(arguments: &[Container<'_, f64>]) -> [f64; N] {
    std::array::from_fn(|i| arguments[i].elements[0])
}

/// A number strictly between 0 and 1.
pub(super) fn open_unit(rng: &mut dyn Rng) -> f64 {
    // 52 random bits plus a half, so that neither end is ever drawn.
    ((rng.random::<u64>() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

pub(super) fn standard_normal(rng: &mut dyn Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The logarithm of a Gamma(shape, 1) draw, since for small shapes the draw is far below the range
/// of an f64: for shape < 1, G(shape) = G(shape + 1) U^(1/shape) (Marsaglia and Tsang 2000, section
/// 6).
pub(super) fn log_gamma(rng: &mut dyn Rng, shape: f64) -> f64 {
    let (above_one, rest) = if shape < 1.0 {
        (shape + 1.0, open_unit(rng).ln() / shape)
    } else {
        (shape, 0.0)
    };
    match Gamma::new(above_one, 1.0) {
        Ok(gamma) => gamma.sample(rng).ln() + rest,
        Err(_) => f64::NAN,
    }
}

/// A Beta(alpha, beta) draw and its complement, both accurate in their tails.
pub(super) fn beta(rng: &mut dyn Rng, alpha: f64, beta: f64) -> (f64, f64) {
    let log_odds = log_gamma(rng, alpha) - log_gamma(rng, beta);
    let inv_logit = crate::function::special::inv_logit;
    (inv_logit(log_odds), inv_logit(-log_odds))
}

/// A count: an error where it is too large for an int.
pub(super) fn count(family: &'static str, x: f64) -> Result<Vec<f64>, DrawError> {
    if x <= LARGEST_COUNT {
        Ok(vec![x])
    } else {
        Err(DrawError::TooLarge(family))
    }
}

/// A Poisson draw.
pub(super) fn poisson(
    family: &'static str,
    rng: &mut dyn Rng,
    rate: f64,
) -> Result<Vec<f64>, DrawError> {
    if rate == 0.0 {
        return Ok(vec![0.0]);
    }
    match Poisson::new(rate) {
        Ok(poisson) if rate <= LARGEST_COUNT / 2.0 => count(family, poisson.sample(rng)),
        _ => Err(DrawError::TooLarge(family)),
    }
}

/// A Binomial draw; `failure` is one minus `success`, given separately since the subtraction is not
/// exact. The rarer of the two is counted.
pub(super) fn binomial(
    rng: &mut dyn Rng,
    trials: f64,
    success: f64,
    failure: f64,
) -> Result<Vec<f64>, DrawError> {
    let rarer = success.min(failure);
    let drawn = match Binomial::new(trials as u64, rarer) {
        Ok(binomial) => binomial.sample(rng) as f64,
        Err(_) => f64::NAN,
    };
    Ok(vec![if success <= failure {
        drawn
    } else {
        trials - drawn
    }])
}

/// `alpha + x * beta` of a regression's first three arguments.
pub(super) fn linear_predictor(arguments: &[Container<'_, f64>]) -> f64 {
    let products = arguments[0].elements.iter().zip(arguments[2].elements);
    arguments[1].number() + products.map(|(x, b)| x * b).sum::<f64>()
}

/// More rows than any correlation matrix that fits into memory.
pub(super) const LARGEST_MATRIX: f64 = 3000.0;

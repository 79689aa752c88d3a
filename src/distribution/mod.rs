//! The distributions of the language, one file per family.
//!
//! A family states its name, its arguments, its support, its log density as an
//! expression over an [`Algebra`], and how to draw from it. The same expression
//! is evaluated on plain numbers (tests), built into the model's graph (priors
//! and likelihoods) and, through the graph, differentiated. To add a family: one
//! file, its `mod` line, and one line in [`FAMILIES`], which says whether
//!
//! - it is of numbers (`scalar`: `log_density` takes scalars, one of which may be
//!   a whole vector of them) or of vectors and matrices (`container`);
//! - it has a distribution function (`+ cdf`): `log_cdf` and `log_ccdf`.

mod bernoulli;
mod bernoulli_logit;
mod beta;
mod binomial_logit;
mod cauchy;
mod draw;
mod exponential;
mod family;
mod gamma;
mod normal;
mod poisson_log;
mod student_t;
mod uniform;

pub use crate::function::{Algebra, Numbers};
pub use draw::{DrawError, named_sizes};
pub use family::{Argument, Container, Domain, Family, Kind};

use rand::Rng;

/// Which side of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// At or below it: `_lcdf`.
    Lower,
    /// Above it: `_lccdf`.
    Upper,
}

macro_rules! families {
    ($($module:ident: $form:ident $(+ $cdf:ident)?),* $(,)?) => {
        /// Every family, in alphabetical order.
        pub static FAMILIES: &[&Family] = &[$(&$module::FAMILY),*];

        static HAS_CDF: &[bool] = &[$(has_cdf!($($cdf)?)),*];

        /// The log density (nats) of a family of numbers, normalised: minus
        /// infinity outside the support, NaN for arguments outside their
        /// domain. `family` is an index into [`FAMILIES`].
        pub fn log_density<A: Algebra>(
            family: usize,
            algebra: &mut A,
            variate: A::Scalar,
            arguments: &[A::Scalar],
        ) -> A::Scalar {
            let mut index = 0;
            $(
                if family == index {
                    return scalar_density!($form $module, algebra, variate, arguments);
                }
                index += 1;
            )*
            let _ = index;
            unreachable!("the checker only hands out indices into FAMILIES")
        }

        /// The log density of any family, its variate and arguments taken as
        /// one value each.
        pub fn log_density_of<A: Algebra>(
            family: usize,
            algebra: &mut A,
            variate: &Container<'_, A::Scalar>,
            arguments: &[Container<'_, A::Scalar>],
        ) -> A::Scalar {
            let mut index = 0;
            $(
                if family == index {
                    return any_density!($form $module, algebra, variate, arguments);
                }
                index += 1;
            )*
            let _ = index;
            unreachable!("the checker only hands out indices into FAMILIES")
        }

        /// The log probability of lying at or below the variate, or above it;
        /// only for families with [`has_cdf`].
        pub fn log_tail<A: Algebra>(
            family: usize,
            tail: Tail,
            algebra: &mut A,
            variate: A::Scalar,
            arguments: &[A::Scalar],
        ) -> A::Scalar {
            let mut index = 0;
            $($(
                if family == index {
                    return match tail {
                        Tail::Lower => $module::log_$cdf(algebra, variate, arguments),
                        Tail::Upper => $module::log_ccdf(algebra, variate, arguments),
                    };
                }
            )?
                index += 1;
            )*
            let _ = index;
            unreachable!("the checker asks has_cdf first")
        }
    };
}

macro_rules! has_cdf {
    () => {
        false
    };
    (cdf) => {
        true
    };
}

macro_rules! scalar_density {
    (scalar $module:ident, $algebra:ident, $variate:ident, $arguments:ident) => {
        $module::log_density($algebra, $variate, $arguments)
    };
    (container $module:ident, $algebra:ident, $variate:ident, $arguments:ident) => {
        unreachable!("only families of numbers are evaluated number by number")
    };
}

macro_rules! any_density {
    (scalar $module:ident, $algebra:ident, $variate:ident, $arguments:ident) => {{
        let arguments: Vec<_> = $arguments.iter().map(|a| a.elements[0]).collect();
        $module::log_density($algebra, $variate.elements[0], &arguments)
    }};
    (container $module:ident, $algebra:ident, $variate:ident, $arguments:ident) => {
        $module::log_density($algebra, $variate, $arguments)
    };
}

families! {
    bernoulli: scalar,
    bernoulli_logit: scalar,
    beta: scalar,
    binomial_logit: scalar,
    cauchy: scalar,
    exponential: scalar,
    gamma: scalar,
    normal: scalar,
    poisson_log: scalar,
    student_t: scalar,
    uniform: scalar,
}

/// Families that LANGUAGE.md names but that this version does not have.
pub const NOT_SUPPORTED_YET: &[&str] = &[
    "std_normal",
    "double_exponential",
    "logistic",
    "lognormal",
    "inv_gamma",
    "chi_square",
    "weibull",
    "frechet",
    "pareto",
    "beta_proportion",
    "von_mises",
    "skew_normal",
    "exp_mod_normal",
    "binomial",
    "beta_binomial",
    "poisson",
    "neg_binomial_2",
    "neg_binomial_2_log",
    "categorical",
    "categorical_logit",
    "ordered_logistic",
    "ordered_probit",
    "multinomial",
    "dirichlet",
    "multi_normal",
    "multi_normal_cholesky",
    "lkj_corr_cholesky",
    "lkj_corr",
    "normal_id_glm",
    "bernoulli_logit_glm",
    "poisson_log_glm",
    "neg_binomial_2_log_glm",
];

/// Whether the family has `_lcdf`, `_lccdf` and `_cdf`, and may be truncated.
pub fn has_cdf(family: usize) -> bool {
    HAS_CDF[family]
}

/// Draws once from a family: a number, or the elements of a vector, an array or
/// a matrix (column by column). `arguments` are those of
/// [`Family::draw_arguments`].
///
/// Errors: an argument outside its domain; sizes that do not agree.
pub fn draw(
    family: usize,
    rng: &mut dyn Rng,
    arguments: &[Container<'_, f64>],
) -> Result<Vec<f64>, DrawError> {
    draw::draw(FAMILIES[family], rng, arguments)
}

/// The index into [`FAMILIES`] of the family of that name.
pub fn lookup(name: &str) -> Option<usize> {
    FAMILIES.iter().position(|f| f.name == name)
}

/// The functions that a family gives to expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// `_lpdf`, `_lpmf`, and Stan's unnormalised `_lupdf`, `_lupmf`, which are the
    /// same here.
    LogDensity,
    /// `_lcdf`, `_lccdf`
    LogTail(Tail),
    /// `_cdf`
    Cdf,
    /// `_rng`
    Draw,
}

/// The endings, and for densities whether they are those of integers.
const ENDINGS: &[(&str, Function, Option<bool>)] = &[
    ("_lpdf", Function::LogDensity, Some(false)),
    ("_lupdf", Function::LogDensity, Some(false)),
    ("_lpmf", Function::LogDensity, Some(true)),
    ("_lupmf", Function::LogDensity, Some(true)),
    ("_lcdf", Function::LogTail(Tail::Lower), None),
    ("_lccdf", Function::LogTail(Tail::Upper), None),
    ("_cdf", Function::Cdf, None),
    ("_rng", Function::Draw, None),
];

/// What a name such as `normal_lpdf` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FamilyFunction {
    pub family: usize,
    pub function: Function,
    /// Whether the ending is right for the variate: `_lpdf` for reals, `_lpmf`
    /// for integers.
    pub ending_fits: bool,
}

/// Splits `normal_lpdf` and its like into the family and the function.
pub fn lookup_function(name: &str) -> Option<FamilyFunction> {
    let (stem, &(_, function, of_ints)) = ENDINGS
        .iter()
        .find_map(|ending| Some((name.strip_suffix(ending.0)?, ending)))?;
    let family = lookup(stem)?;
    let is_int = FAMILIES[family].variate.is_int();
    Some(FamilyFunction {
        family,
        function,
        ending_fits: of_ints.is_none_or(|of_ints| of_ints == is_int),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The log density on plain numbers.
    pub fn log_density_of(name: &str, variate: f64, arguments: &[f64]) -> f64 {
        let family = lookup(name).expect("a known family");
        log_density(family, &mut Numbers, variate, arguments)
    }

    /// Compares a family with an oracle at given points, relative to the size
    /// of the value.
    pub fn assert_matches(
        name: &str,
        points: &[(f64, &[f64])],
        oracle: impl Fn(f64, &[f64]) -> f64,
    ) {
        for &(variate, arguments) in points {
            let ours = log_density_of(name, variate, arguments);
            let theirs = oracle(variate, arguments);
            assert!(
                ours == theirs || (ours - theirs).abs() <= 1e-12 * (1.0 + theirs.abs()),
                "{name}({variate} | {arguments:?}) = {ours}, expected {theirs}"
            );
        }
    }

    #[test]
    fn families_stand_in_alphabetical_order_and_have_documentation() {
        let names: Vec<_> = FAMILIES.iter().map(|f| f.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        for family in FAMILIES {
            assert!(family.documentation.len() > 10);
            assert!(!family.support_in_words().is_empty());
            for argument in family.arguments.iter().chain(family.draw_arguments()) {
                assert!(!argument.meaning.is_empty());
                assert!(!family.domain_in_words(argument).is_empty());
            }
            assert!(!NOT_SUPPORTED_YET.contains(&family.name));
        }
    }

    #[test]
    fn functions_want_the_right_ending() {
        let found = |name| lookup_function(name).map(|f| (f.function, f.ending_fits));
        assert_eq!(found("normal_lpdf"), Some((Function::LogDensity, true)));
        assert_eq!(found("normal_lpmf"), Some((Function::LogDensity, false)));
        assert_eq!(found("bernoulli_lupmf"), Some((Function::LogDensity, true)));
        let upper = Function::LogTail(Tail::Upper);
        assert_eq!(found("normal_lccdf"), Some((upper, true)));
        assert_eq!(found("normal_rng"), Some((Function::Draw, true)));
        assert_eq!(found("normal"), None);
        assert_eq!(found("abnormal_lpdf"), None);
    }
}

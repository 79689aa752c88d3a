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
//! - it has a distribution function (`+ cdf`): `log_cdf` and `log_ccdf`; or, of a location and a
//!   scale and symmetric about the location (`+ symmetric`): `log_below`, the logarithm of the
//!   standard one.

mod bernoulli;
mod bernoulli_logit;
mod bernoulli_logit_glm;
mod beta;
mod beta_binomial;
mod beta_proportion;
mod binomial;
mod binomial_logit;
mod categorical;
mod categorical_logit;
mod cauchy;
mod chi_square;
mod deviance;
mod dirichlet;
mod double_exponential;
mod draw;
mod exp_mod_normal;
mod exponential;
mod family;
mod frechet;
mod gamma;
mod gumbel;
mod inv_chi_square;
mod inv_gamma;
mod lkj_corr;
mod lkj_corr_cholesky;
mod logistic;
mod lognormal;
mod multi_normal;
mod multi_normal_cholesky;
mod multinomial;
mod neg_binomial;
mod neg_binomial_2;
mod neg_binomial_2_log;
mod neg_binomial_2_log_glm;
mod normal;
mod normal_id_glm;
mod ordered_logistic;
mod ordered_probit;
mod pareto;
mod poisson;
mod poisson_log;
mod poisson_log_glm;
mod quantity;
mod rayleigh;
mod scaled_inv_chi_square;
mod skew_normal;
mod std_normal;
mod student_t;
mod truncation;
mod uniform;
mod vector;
mod von_mises;
mod weibull;

pub use crate::function::{Algebra, Numbers};
pub use draw::{DrawError, named_sizes};
pub use family::{Argument, Container, Domain, Family, Kind};
pub use truncation::{
    MOST_MASSES, log_count_truncation, log_probability_of_counts, log_truncation, sums_masses,
};

use quantity::Quantity;
use rand::Rng;
use std::cell::RefCell;

/// A side of a point.
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

        /// The log density (nats), normalised: minus infinity outside the support, NaN for
        /// arguments outside their domain. Variate and arguments are one value each. `family` is an
        /// index into [`FAMILIES`].
        pub fn log_density<A: Algebra>(
            family: usize,
            algebra: &mut A,
            variate: &Container<'_, A::Scalar>,
            arguments: &[Container<'_, A::Scalar>],
        ) -> A::Scalar {
            let algebra = RefCell::new(algebra);
            let given = Given::new(&algebra, variate, arguments);
            let mut index = 0;
            $(
                if family == index {
                    return density!($form $module given).scalar;
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
            let algebra = RefCell::new(algebra);
            let y = Quantity::new(&algebra, variate);
            let quantity = |i: usize| Quantity::new(&algebra, arguments[i]);
            let mut index = 0;
            $(
                log_tail!([$($cdf)?] $module family == index, tail, y, quantity);
                index += 1;
            )*
            let _ = index;
            unreachable!("the checker asks has_cdf first")
        }
    };
}

/// Variate and arguments as quantities of one algebra.
struct Given<'a, A: Algebra> {
    /// The elements of each, the variate first.
    elements: Vec<Vec<Quantity<'a, A>>>,
    sizes: Vec<(usize, usize)>,
}

impl<'a, A: Algebra> Given<'a, A> {
    fn new(
        algebra: &'a RefCell<&'a mut A>,
        variate: &Container<'_, A::Scalar>,
        arguments: &[Container<'_, A::Scalar>],
    ) -> Self {
        let all = || std::iter::once(variate).chain(arguments);
        let quantities = |c: &Container<'_, A::Scalar>| {
            let elements = c.elements.iter();
            elements.map(|&s| Quantity::new(algebra, s)).collect()
        };
        Given {
            elements: all().map(quantities).collect(),
            sizes: all().map(|c| (c.rows, c.columns)).collect(),
        }
    }

    fn number(&self, i: usize) -> Quantity<'a, A> {
        self.elements[i][0]
    }

    fn container(&self, i: usize) -> Container<'_, Quantity<'a, A>> {
        Container {
            elements: &self.elements[i],
            rows: self.sizes[i].0,
            columns: self.sizes[i].1,
        }
    }
}

macro_rules! has_cdf {
    () => {
        false
    };
    ($form:ident) => {
        true
    };
}

macro_rules! log_tail {
    ([] $module:ident $is_it:expr, $tail:ident, $y:ident, $quantity:ident) => {};
    ([symmetric] $module:ident $is_it:expr, $tail:ident, $y:ident, $quantity:ident) => {
        if $is_it {
            let [location, scale] = std::array::from_fn($quantity);
            let distance = match $tail {
                Tail::Lower => $y - location,
                Tail::Upper => location - $y,
            };
            return $module::log_below(distance / scale).scalar;
        }
    };
    ([cdf] $module:ident $is_it:expr, $tail:ident, $y:ident, $quantity:ident) => {
        if $is_it {
            let arguments = std::array::from_fn($quantity);
            return match $tail {
                Tail::Lower => $module::log_cdf($y, arguments),
                Tail::Upper => $module::log_ccdf($y, arguments),
            }
            .scalar;
        }
    };
}

macro_rules! density {
    (scalar $module:ident $given:ident) => {
        $module::log_density(
            $given.number(0),
            std::array::from_fn(|i| $given.number(i + 1)),
        )
    };
    (container $module:ident $given:ident) => {
        $module::log_density(
            $given.container(0),
            std::array::from_fn(|i| $given.container(i + 1)),
        )
    };
}

families! {
    bernoulli: scalar + cdf,
    bernoulli_logit: scalar,
    bernoulli_logit_glm: container,
    beta: scalar,
    beta_binomial: scalar,
    beta_proportion: scalar,
    binomial: scalar,
    binomial_logit: scalar,
    categorical: container,
    categorical_logit: container,
    cauchy: scalar + symmetric,
    chi_square: scalar,
    dirichlet: container,
    double_exponential: scalar + symmetric,
    exp_mod_normal: scalar + cdf,
    exponential: scalar + cdf,
    frechet: scalar + cdf,
    gamma: scalar,
    gumbel: scalar + cdf,
    inv_chi_square: scalar,
    inv_gamma: scalar,
    lkj_corr: container,
    lkj_corr_cholesky: container,
    logistic: scalar + symmetric,
    lognormal: scalar + cdf,
    multi_normal: container,
    multi_normal_cholesky: container,
    multinomial: container,
    neg_binomial: scalar,
    neg_binomial_2: scalar,
    neg_binomial_2_log: scalar,
    neg_binomial_2_log_glm: container,
    normal: scalar + symmetric,
    normal_id_glm: container,
    ordered_logistic: container,
    ordered_probit: container,
    pareto: scalar + cdf,
    poisson: scalar,
    poisson_log: scalar,
    poisson_log_glm: container,
    rayleigh: scalar + cdf,
    scaled_inv_chi_square: scalar,
    skew_normal: scalar,
    std_normal: scalar + cdf,
    student_t: scalar,
    uniform: scalar + cdf,
    von_mises: scalar,
    weibull: scalar + cdf,
}

/// Whether the family has `_lcdf`, `_lccdf` and `_cdf`, and may be truncated.
pub fn has_cdf(family: usize) -> bool {
    HAS_CDF[family]
}

/// The ways to write a family: after `~`, its density, its draws, and its distribution function
/// where it has one.
pub fn signatures_in_words(family: usize) -> Vec<String> {
    let definition = FAMILIES[family];
    let (name, variate) = (definition.name, definition.variate);
    let list = |arguments: &[Argument]| {
        let list = arguments.iter().map(|a| format!("{} {}", a.kind, a.name));
        list.collect::<Vec<_>>().join(", ")
    };
    let own = list(definition.arguments);
    let bar = if own.is_empty() { "" } else { " | " };
    let of_variate = |ending| format!("real {name}_{ending}({variate} y{bar}{own})");
    let mut lines = vec![
        format!("{variate} y ~ {name}({own})"),
        of_variate(definition.density_suffix()),
        format!(
            "{variate} {name}_rng({})",
            list(definition.draw_arguments())
        ),
    ];
    if has_cdf(family) || sums_masses(family) {
        lines.extend(["lcdf", "lccdf", "cdf"].map(of_variate));
    }
    lines
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

/// The functions that a family provides for expressions.
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

/// The meaning of a name such as `normal_lpdf`.
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
mod draw_tests;
#[cfg(test)]
mod dual;
#[cfg(test)]
mod fixture_tests;

#[cfg(test)]
mod tests {
    use super::*;

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

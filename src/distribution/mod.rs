//! The distributions of the language, one file per family.
//!
//! A family states its name, its arguments, its support and its log density as
//! an expression over an [`Algebra`]. The same expression is evaluated on plain
//! numbers (tests), built into the model's graph (priors and likelihoods) and,
//! through the graph, differentiated. To add a family: one file, one line in
//! [`FAMILIES`].

mod bernoulli;
mod bernoulli_logit;
mod beta;
mod binomial_logit;
mod cauchy;
mod exponential;
mod gamma;
mod normal;
mod poisson_log;
mod student_t;
mod uniform;

pub use crate::function::{Algebra, Numbers};

/// Whether a variate (or an argument) is an integer or a real number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    Int,
    Real,
}

/// One argument of a distribution.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub number: Number,
    /// The values it may take, in words, e.g. "positive".
    pub domain: &'static str,
}

/// A family of distributions.
#[derive(Debug)]
pub struct Family {
    name: &'static str,
    documentation: &'static str,
    variate: Number,
    support: &'static str,
    arguments: &'static [Argument],
}

impl Family {
    /// The name after `~`, e.g. `normal`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line, with the formula.
    pub fn documentation(&self) -> &'static str {
        self.documentation
    }

    pub fn variate(&self) -> Number {
        self.variate
    }

    /// The support in words, e.g. "y >= 0".
    pub fn support(&self) -> &'static str {
        self.support
    }

    pub fn arguments(&self) -> &'static [Argument] {
        self.arguments
    }
}

macro_rules! families {
    ($($module:ident),* $(,)?) => {
        /// Every family, in alphabetical order.
        pub static FAMILIES: &[&Family] = &[$(&$module::FAMILY),*];

        /// The log density (nats) of the family at `variate`, normalised.
        ///
        /// Minus infinity outside the support; NaN for arguments outside their
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
                    return $module::log_density(algebra, variate, arguments);
                }
                index += 1;
            )*
            let _ = index;
            unreachable!("the checker only hands out indices into FAMILIES")
        }
    };
}

families! {
    bernoulli,
    bernoulli_logit,
    beta,
    binomial_logit,
    cauchy,
    exponential,
    gamma,
    normal,
    poisson_log,
    student_t,
    uniform,
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

/// The index into [`FAMILIES`] of the family of that name.
pub fn lookup(name: &str) -> Option<usize> {
    FAMILIES.iter().position(|f| f.name == name)
}

/// Splits `normal_lpdf` into the family and checks that the suffix fits its
/// variate (`_lpdf` for reals, `_lpmf` for integers).
pub fn lookup_density_function(name: &str) -> Option<(usize, bool)> {
    let (stem, number) = if let Some(stem) = name.strip_suffix("_lpdf") {
        (stem, Number::Real)
    } else {
        (name.strip_suffix("_lpmf")?, Number::Int)
    };
    let family = lookup(stem)?;
    Some((family, FAMILIES[family].variate == number))
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
            assert!(family.documentation.len() > 10 && !family.support.is_empty());
            assert!(!NOT_SUPPORTED_YET.contains(&family.name));
        }
    }

    #[test]
    fn density_functions_want_the_right_suffix() {
        assert_eq!(
            lookup_density_function("normal_lpdf").map(|x| x.1),
            Some(true)
        );
        assert_eq!(
            lookup_density_function("normal_lpmf").map(|x| x.1),
            Some(false)
        );
        assert_eq!(lookup_density_function("normal"), None);
    }
}

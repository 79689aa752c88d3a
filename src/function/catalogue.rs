//! Every built-in function, by name.

use super::Unary;

/// Functions of two numbers, applied element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elementwise2 {
    /// `pow(x, y)`, also the operators `^` and `.^`.
    Power,
    Minimum,
    Maximum,
    /// `log(exp(x) + exp(y))`
    LogSumExp,
    /// `log(exp(x) - exp(y))` for `x > y`
    LogDiffExp,
    /// `x * log(y)`, zero when both are zero
    MultiplyLog,
    /// Logarithm of the beta function.
    LogBeta,
    /// Logarithm of the binomial coefficient.
    LogChoose,
    /// `sqrt(x^2 + y^2)`
    Hypot,
    /// `max(x - y, 0)`
    PositiveDifference,
}

/// Functions of one container that give a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reduction {
    Sum,
    Mean,
    Product,
    Minimum,
    Maximum,
    DotSelf,
    LogSumExp,
}

/// Functions about the shape of their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shaping {
    Size,
    NumElements,
    Rows,
    Cols,
    RepVector,
    RepRowVector,
    RepArray,
    RepMatrix,
    ToVector,
    ToRowVector,
    ToArray1d,
}

/// What a name of the language's library stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Builtin {
    Unary(Unary),
    Elementwise2(Elementwise2),
    Reduction(Reduction),
    /// `dot_product(a, b)`
    DotProduct,
    Shaping(Shaping),
    /// A mathematical constant, written as a call without arguments: `pi()`.
    Constant(f64),
}

/// Functions that LANGUAGE.md names but that this version does not compute.
/// A model that uses one is told so, rather than that the name is unknown.
pub const NOT_SUPPORTED_YET: &[&str] = &[
    "softmax",
    "log_softmax",
    "cumulative_sum",
    "diag_pre_multiply",
    "diag_post_multiply",
    "append_row",
    "append_col",
    "append_array",
    "cholesky_decompose",
    "mdivide_left_tri_low",
    "mdivide_left",
    "mdivide_right_tri_low",
    "sort_asc",
    "sort_desc",
    "log_mix",
    "variance",
    "sd",
    "to_matrix",
    "quad_form",
    "crossprod",
    "tcrossprod",
    "inverse",
    "determinant",
    "log_determinant",
    "diag_matrix",
    "diagonal",
    "head",
    "tail",
    "segment",
    "sub_row",
    "sub_col",
    "col",
    "row",
    "block",
    "columns_dot_product",
    "rows_dot_product",
    "rank",
    "reverse",
    "linspaced_vector",
    "identity_matrix",
    "ones_vector",
    "zeros_vector",
    "one_hot_vector",
    "inv_Phi",
    "inv_cloglog",
    "cloglog",
    "Phi_approx",
    "bessel_first_kind",
    "tgamma",
    "lmgamma",
    "trigamma",
    "beta",
    "choose",
    "falling_factorial",
    "rising_factorial",
    "fma",
    "fmod",
    "is_nan",
    "is_inf",
    "int_step",
    "step",
    "distance",
    "squared_distance",
    "norm1",
    "norm2",
    "asinh",
    "acosh",
    "atanh",
    "atan2",
    "log_falling_factorial",
    "to_int",
];

/// The built-in function of that name.
pub fn lookup(name: &str) -> Option<Builtin> {
    if let Some(&unary) = Unary::ALL
        .iter()
        .find(|u| !name.is_empty() && u.definition().name == name)
    {
        return Some(Builtin::Unary(unary));
    }
    NAMED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, builtin)| builtin)
}

/// Every name that [`lookup`] knows, for "did you mean".
pub fn names() -> impl Iterator<Item = &'static str> {
    Unary::ALL
        .iter()
        .map(|u| u.definition().name)
        .filter(|n| !n.is_empty())
        .chain(NAMED.iter().map(|&(name, _)| name))
}

const NAMED: &[(&str, Builtin)] = &[
    ("fabs", Builtin::Unary(Unary::Abs)),
    ("pow", Builtin::Elementwise2(Elementwise2::Power)),
    ("fmin", Builtin::Elementwise2(Elementwise2::Minimum)),
    ("fmax", Builtin::Elementwise2(Elementwise2::Maximum)),
    (
        "log_diff_exp",
        Builtin::Elementwise2(Elementwise2::LogDiffExp),
    ),
    (
        "multiply_log",
        Builtin::Elementwise2(Elementwise2::MultiplyLog),
    ),
    (
        "lmultiply",
        Builtin::Elementwise2(Elementwise2::MultiplyLog),
    ),
    ("lbeta", Builtin::Elementwise2(Elementwise2::LogBeta)),
    ("lchoose", Builtin::Elementwise2(Elementwise2::LogChoose)),
    ("hypot", Builtin::Elementwise2(Elementwise2::Hypot)),
    (
        "fdim",
        Builtin::Elementwise2(Elementwise2::PositiveDifference),
    ),
    ("sum", Builtin::Reduction(Reduction::Sum)),
    ("mean", Builtin::Reduction(Reduction::Mean)),
    ("prod", Builtin::Reduction(Reduction::Product)),
    ("min", Builtin::Reduction(Reduction::Minimum)),
    ("max", Builtin::Reduction(Reduction::Maximum)),
    ("dot_self", Builtin::Reduction(Reduction::DotSelf)),
    ("log_sum_exp", Builtin::Reduction(Reduction::LogSumExp)),
    ("dot_product", Builtin::DotProduct),
    ("size", Builtin::Shaping(Shaping::Size)),
    ("num_elements", Builtin::Shaping(Shaping::NumElements)),
    ("rows", Builtin::Shaping(Shaping::Rows)),
    ("cols", Builtin::Shaping(Shaping::Cols)),
    ("rep_vector", Builtin::Shaping(Shaping::RepVector)),
    ("rep_row_vector", Builtin::Shaping(Shaping::RepRowVector)),
    ("rep_array", Builtin::Shaping(Shaping::RepArray)),
    ("rep_matrix", Builtin::Shaping(Shaping::RepMatrix)),
    ("to_vector", Builtin::Shaping(Shaping::ToVector)),
    ("to_row_vector", Builtin::Shaping(Shaping::ToRowVector)),
    ("to_array_1d", Builtin::Shaping(Shaping::ToArray1d)),
    ("pi", Builtin::Constant(std::f64::consts::PI)),
    ("e", Builtin::Constant(std::f64::consts::E)),
    ("sqrt2", Builtin::Constant(std::f64::consts::SQRT_2)),
    ("log2", Builtin::Constant(std::f64::consts::LN_2)),
    ("log10", Builtin::Constant(std::f64::consts::LN_10)),
    ("not_a_number", Builtin::Constant(f64::NAN)),
    ("positive_infinity", Builtin::Constant(f64::INFINITY)),
    ("negative_infinity", Builtin::Constant(f64::NEG_INFINITY)),
    ("machine_precision", Builtin::Constant(f64::EPSILON)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// `log2()` and `log2(x)` share a name and are told apart by their
    /// arguments; otherwise a name stands for one thing.
    #[test]
    fn names_are_unique_but_for_the_constants() {
        let mut seen = std::collections::BTreeMap::new();
        for name in names() {
            *seen.entry(name).or_insert(0) += 1;
        }
        seen.retain(|_, n| *n > 1);
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), ["log10", "log2"]);
        for name in names() {
            assert!(lookup(name).is_some());
            assert!(!NOT_SUPPORTED_YET.contains(&name), "{name}");
        }
    }
}

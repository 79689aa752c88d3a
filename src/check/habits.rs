//! Common habits from other languages, and the form to use here: Stan's way to refer to all rows,
//! names from R, Python and old Stan.

use crate::distribution::{self, FAMILIES, Family};
use crate::function;
use crate::syntax::{self, Diagnostic, ExprKind, Span};

/// Advice for an undefined name.
pub(super) fn name(written: &str) -> Option<&'static str> {
    Some(match written {
        "N" | "n" | "N_obs" | "n_obs" | "Nobs" | "nobs" | "num_obs" => {
            "a model is written for one record: there is no number of rows, no loop over rows and no index of a row. A size that is not the number of rows is declared in `constants`"
        }
        "TRUE" | "True" | "true" => "write `1`",
        "FALSE" | "False" | "false" => "write `0`",
        "Inf" | "inf" | "infinity" | "INFINITY" => "write `positive_infinity()`",
        "NA" | "NaN" | "nan" | "null" | "None" => "write `not_a_number()`",
        "PI" | "Pi" => "write `pi()`",
        _ => return None,
    })
}

/// `alpha = normal(0, 1);`
pub(super) fn equals_for_tilde(target: &syntax::Expr, value: &syntax::Expr) -> Option<Diagnostic> {
    let ExprKind::Call { name, .. } = &value.kind else {
        return None;
    };
    if known(&name.name).is_none() || function::lookup(&name.name).is_some() {
        return None;
    }
    let between = Span::new(target.span.end, value.span.start);
    let message = format!("`=` assigns, and `{}` is a distribution", name.name);
    Some(
        Diagnostic::error("E0112", between, message)
            .label("expected `~`")
            .help(format!("write `~ {}(...);`", name.name)),
    )
}

/// Advice for an undefined function.
pub(super) fn called(written: &str) -> Option<String> {
    if let Some(family) = written.strip_suffix("_log").and_then(known) {
        let density = format!("{}_{}", family.name(), family.density_suffix());
        return Some(format!("write `{density}(y | ...)`"));
    }
    if let Some(family) = known(written) {
        let (name, ending) = (family.name(), family.density_suffix());
        return Some(format!(
            "`{name}` is a distribution: write `y ~ {name}(...)`, or `{name}_{ending}(y | ...)` for its log density"
        ));
    }
    Some(
        match written {
            "c" => "write `{1, 2, 3}` for an array, `[1, 2, 3]'` for a vector",
            "t" => "write `x'` for the transpose of `x`",
            "length" | "len" | "nrow" | "ncol" => {
                "write `size(x)`, `rows(x)` or `cols(x)`; the number of records has no name"
            }
            "ln" => "write `log(x)`",
            "logistic" | "sigmoid" | "expit" | "plogis" => "write `inv_logit(x)`",
            "qlogis" => "write `logit(p)`",
            "pnorm" => "write `Phi(x)`",
            "ifelse" | "if_else" | "where" => "write `condition ? a : b`",
            "sqr" => "write `square(x)`",
            "factorial" => "write `tgamma(n + 1)`, or `lgamma(n + 1)` for its log",
            "matmul" | "crossprod" => "write `A * B`, or `A' * B`",
            "zeros" | "rep" => "write `rep_vector(0, K)`",
            "log_likelihood" | "get_lp" => "write `target += ...;` to add to the log density",
            _ => return None,
        }
        .to_owned(),
    )
}

/// Advice for a distribution that does not exist.
pub(super) fn family(written: &str) -> Option<String> {
    for ending in ["_lpdf", "_lpmf", "_lupdf", "_lupmf", "_log", "_rng"] {
        if let Some(family) = written.strip_suffix(ending).and_then(known) {
            let name = family.name();
            return Some(format!(
                "after `~` comes the name of the distribution alone: write `{name}`"
            ));
        }
    }
    let meant = match written {
        "gaussian" | "norm" | "dnorm" | "N" => "normal",
        "t" | "student" | "dt" => "student_t",
        "binom" | "dbin" => "binomial",
        "bern" | "dbern" => "bernoulli",
        "pois" | "dpois" => "poisson",
        "unif" | "dunif" => "uniform",
        "exp" | "dexp" => "exponential",
        "laplace" => "double_exponential",
        "inverse_gamma" | "invgamma" => "inv_gamma",
        "log_normal" | "lnorm" => "lognormal",
        "negative_binomial" | "nbinom" => "neg_binomial_2",
        "mvn" | "mvnorm" | "multivariate_normal" => "multi_normal",
        "lkj" => "lkj_corr_cholesky",
        "half_normal" | "halfnormal" => {
            return Some("give the parameter `<lower=0>` and write `normal(0, ...)`".to_owned());
        }
        "half_cauchy" | "halfcauchy" => {
            return Some("give the parameter `<lower=0>` and write `cauchy(0, ...)`".to_owned());
        }
        "half_t" | "half_student_t" => {
            return Some(
                "give the parameter `<lower=0>` and write `student_t(nu, 0, ...)`".to_owned(),
            );
        }
        "flat" | "improper" => {
            return Some("a parameter without a prior statement has a flat prior".to_owned());
        }
        _ => return None,
    };
    Some(format!("did you mean `{meant}`?"))
}

fn known(name: &str) -> Option<&'static Family> {
    distribution::lookup(name).and_then(|family| FAMILIES.get(family).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All functions that are advised exist.
    #[test]
    fn advice_names_what_there_is() {
        for written in [
            "gaussian",
            "t",
            "lkj",
            "mvn",
            "negative_binomial",
            "laplace",
            "exp",
        ] {
            let said = family(written).expect("advice");
            let meant = said.split('`').nth(1).expect("a name");
            assert!(known(meant).is_some(), "{written} -> {meant}");
            assert!(known(written).is_none(), "{written} is one");
        }
        assert_eq!(
            called("normal_log").as_deref(),
            Some("write `normal_lpdf(y | ...)`")
        );
        assert!(family("poisson_lpmf").is_some_and(|said| said.ends_with("`poisson`")));
        assert_eq!(called("no_such_thing"), None);
    }
}

//! The priors of each family, on coefficients of standardised columns. docs/new.md has the table.

use super::codebook::typical;
use super::design::rounded;
use super::family::Family;
use super::outcome::Outcome;
use super::program::literal;

pub(super) struct Priors {
    /// Mean and standard deviation of the intercept, or of thresholds.
    pub intercept: (f64, f64),
    /// Standard deviation of coefficients.
    pub coefficient: f64,
    /// Scale of the half-normal priors of standard deviations over groups.
    pub group: f64,
    /// Parameters of the family: name, declaration before it, what it is, its prior.
    pub others: Vec<Other>,
    /// Why, for the program.
    pub why: Vec<String>,
}

pub(super) struct Other {
    pub name: &'static str,
    pub declaration: &'static str,
    pub about: &'static str,
    pub prior: String,
}

/// `offset`: the middle of the offsets, which the intercept must make up for.
pub(super) fn priors(
    family: Family,
    outcome: &Outcome,
    has_intercept: bool,
    offset: f64,
) -> Priors {
    let name = &outcome.column.name;
    let (lower, upper) = (outcome.lower, outcome.upper);
    let [from, to] = [lower, upper].map(literal);
    let mut others = Vec::new();
    let mut other = |name, declaration, about, prior: String| {
        others.push(Other {
            name,
            declaration,
            about,
            prior,
        });
    };
    let (intercept, coefficient, group, why) = match family {
        Family::Gaussian | Family::Student => {
            let (middle, mut scale) = typical(lower, upper);
            if !has_intercept {
                scale = scale.max(lower.abs().max(upper.abs()) / 2.0);
            }
            let scale = rounded(scale);
            let one = literal(scale);
            let about = "standard deviation around the mean";
            let prior = format!("normal(0, {one})");
            other("sigma", "real<lower=0>", about, prior);
            if family == Family::Student {
                let about = "degrees of freedom: small with outliers";
                other("nu", "real<lower=1>", about, "gamma(2, 0.1)".to_owned());
            }
            let why = vec![
                format!(
                    "The bounds of {name}, {from} and {to}, are taken to be two standard deviations from the"
                ),
                format!(
                    "middle, so one is about {one}. They are public; the data are not looked at. Coefficients"
                ),
                format!(
                    "and the intercept may be 2.5 times that, which leaves them to the data; sigma {one}."
                ),
            ];
            let width = rounded(2.5 * scale);
            ((middle - offset, width), width, scale, why)
        }
        Family::Lognormal => {
            let (middle, scale) = typical(lower.ln(), upper.ln());
            let scale = rounded(scale);
            let one = literal(scale);
            let about = "standard deviation of the logarithm around its mean";
            let prior = format!("normal(0, {one})");
            other("sigma", "real<lower=0>", about, prior);
            let why = vec![
                format!("The logarithms of the bounds of {name}, {from} and {to}, are taken to be two standard"),
                format!("deviations from the middle, so one is about {one}. They are public; the data are not"),
                "looked at. A step of a column may change the outcome by a factor of e, up or down.".to_owned(),
            ];
            ((middle - offset, rounded(2.5 * scale)), 1.0, 1.0, why)
        }
        Family::HurdleLognormal => {
            let about = "standard deviation of the logarithm of positive values";
            other("sigma", "real<lower=0>", about, "normal(0, 1.5)".to_owned());
            other(
                "hu",
                "real<lower=0, upper=1>",
                "share of zeros",
                "beta(1, 1)".to_owned(),
            );
            let why = vec![
                format!(
                    "Positive values of {name} may lie around anything from a thousandth of the bound {to} to"
                ),
                "the bound. A step of a column may change them by a factor of e, up or down."
                    .to_owned(),
            ];
            ((upper.ln() - 3.0 - offset, 2.5), 1.0, 1.0, why)
        }
        Family::Poisson | Family::NegativeBinomial | Family::HurdlePoisson => {
            if family == Family::NegativeBinomial {
                let about = "the larger, the nearer to a Poisson distribution";
                other(
                    "phi",
                    "real<lower=0>",
                    about,
                    "lognormal(1, 1.5)".to_owned(),
                );
            }
            if family == Family::HurdlePoisson {
                other(
                    "hu",
                    "real<lower=0, upper=1>",
                    "share of zeros",
                    "beta(1, 1)".to_owned(),
                );
            }
            let half = upper.max(1.0).ln() / 2.0;
            let why = vec![
                format!("The mean of {name} is somewhere from 1 to its bound {to}: the intercept has its prior around"),
                "the middle on the log scale. A step of a column may change the mean by a factor of e.".to_owned(),
            ];
            ((half - offset, half.max(2.5)), 1.0, 1.0, why)
        }
        Family::Weibull | Family::Exponential => {
            if family == Family::Weibull {
                let about = "above 1: the hazard grows with time";
                other(
                    "shape",
                    "real<lower=0>",
                    about,
                    "lognormal(0, 0.5)".to_owned(),
                );
            }
            let why = vec![
                format!("Typical times are around a fifth of the bound {to} of {name}, by a factor of a hundred up or"),
                "down, since many may be censored. A step of a column may change them by a factor of e.".to_owned(),
            ];
            ((upper.ln() - 1.5 - offset, 2.5), 1.0, 1.0, why)
        }
        Family::Bernoulli | Family::Binomial | Family::Cumulative | Family::Categorical => {
            let why = vec![
                "On the logit scale, 5 is the distance from even odds to less than one in a hundred. A step of".to_owned(),
                "a column may change the odds by a factor of twelve, up or down.".to_owned(),
            ];
            ((0.0, 5.0), 2.5, 1.0, why)
        }
    };
    Priors {
        intercept: (rounded(intercept.0), rounded(intercept.1)),
        coefficient,
        group,
        others,
        why,
    }
}

//! The families: their names, and what they want of an outcome.

/// The distribution of the outcome, with its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Gaussian,
    Student,
    Lognormal,
    Bernoulli,
    Binomial,
    Poisson,
    NegativeBinomial,
    Cumulative,
    Categorical,
    Weibull,
    Exponential,
    HurdlePoisson,
    HurdleLognormal,
}

/// A family as users name it.
#[derive(Debug)]
pub struct Listed {
    pub family: Family,
    /// As in brms.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// For a list of the families.
    pub summary: &'static str,
}

/// All families.
pub const FAMILIES: [Listed; 13] = [
    listed(
        Family::Gaussian,
        "gaussian",
        &["normal"],
        "Normal outcome, linear regression",
    ),
    listed(
        Family::Student,
        "student",
        &["student_t"],
        "Student t outcome, for outliers",
    ),
    listed(
        Family::Lognormal,
        "lognormal",
        &[],
        "Positive outcome, normal on the log scale",
    ),
    listed(
        Family::Bernoulli,
        "bernoulli",
        &["logistic"],
        "Yes or no, logistic regression",
    ),
    listed(
        Family::Binomial,
        "binomial",
        &[],
        "Successes of a number of trials: y | trials(n) ~",
    ),
    listed(Family::Poisson, "poisson", &[], "Counts, with a log link"),
    listed(
        Family::NegativeBinomial,
        "negbinomial",
        &["negative_binomial", "neg_binomial", "neg_binomial_2"],
        "Overdispersed counts, with a log link",
    ),
    listed(
        Family::Cumulative,
        "cumulative",
        &["ordinal", "ordered_logistic"],
        "Ordered categories, ordered logit",
    ),
    listed(
        Family::Categorical,
        "categorical",
        &["softmax", "multinomial"],
        "Categories without order, softmax",
    ),
    listed(
        Family::Weibull,
        "weibull",
        &[],
        "Times, which may be censored: y | cens(c) ~",
    ),
    listed(
        Family::Exponential,
        "exponential",
        &[],
        "Times of a constant hazard, likewise",
    ),
    listed(
        Family::HurdlePoisson,
        "hurdle_poisson",
        &[],
        "Counts with their own share of zeros",
    ),
    listed(
        Family::HurdleLognormal,
        "hurdle_lognormal",
        &[],
        "Zeros, and lognormal positive values",
    ),
];

const fn listed(
    family: Family,
    name: &'static str,
    aliases: &'static [&'static str],
    summary: &'static str,
) -> Listed {
    Listed {
        family,
        name,
        aliases,
        summary,
    }
}

impl Family {
    pub fn name(self) -> &'static str {
        let found = FAMILIES.iter().find(|listed| listed.family == self);
        found.map_or("", |listed| listed.name)
    }

    /// Of the additions to the outcome, those that the family takes.
    pub(super) fn additions(self) -> &'static [&'static str] {
        match self {
            Family::Binomial => &["trials"],
            Family::Poisson | Family::NegativeBinomial | Family::HurdlePoisson => &["rate"],
            Family::Weibull | Family::Exponential => &["cens"],
            _ => &[],
        }
    }
}

//! Reasons why a model has no law.

/// The reason why a model has no law.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLaw {
    #[error("no column is an outcome: parameters change no density of a column, as in `y ~ ...`")]
    NoOutcome,
    #[error(
        "the outcomes {} have a joint density only, which is not that of 2 to 7 normal variables: they cannot be taken one after the other",
        quoted(.outcomes)
    )]
    Joined { outcomes: Vec<String> },
    #[error(
        "some of the outcomes {} have a joint density only, and others more values than these leave room for",
        quoted(.outcomes)
    )]
    JoinedAndMore { outcomes: Vec<String> },
    #[error(
        "the density of `{outcome}` is a mixture whose components may coincide: there, what is expected of a record says nothing of how far they are apart"
    )]
    Mixture { outcome: String },
    #[error(
        "a term of the likelihood depends on parameters and on no outcome: such a term is not part of a density"
    )]
    NoDensity,
    #[error(
        "the terms of the model for `{outcome}` are not a density of it: their integral changes with the parameters, by a factor of {} between two places",
        times(*.factor)
    )]
    NotNormalised { outcome: String, factor: f64 },
    #[error(
        "no mass of `{outcome}` was found at the public parameters and records that were tried"
    )]
    NotFound { outcome: String },
}

/// A factor for people: far from the data it may have hundreds of digits.
fn times(factor: f64) -> String {
    const MANY: f64 = 1e6;
    if factor < MANY {
        format!("{factor:.3}")
    } else {
        "more than a million".to_owned()
    }
}

fn quoted(names: &[String]) -> String {
    let each = names.iter().map(|name| format!("`{name}`"));
    each.collect::<Vec<_>>().join(", ")
}

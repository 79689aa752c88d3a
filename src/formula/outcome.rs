//! The outcome, and whether its family can have it.

use super::codebook::Content;
use super::design::Reader;
use super::family::Family;
use super::tree::{Addition, Argument, Formula, Named, Variable};

/// The outcome as the model takes it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub column: Named,
    pub lower: f64,
    pub upper: f64,
    /// Of a family with categories, in their order.
    pub categories: Vec<String>,
    /// Subtracted from the column: categories count from 1, and 0 and 1 are no and yes.
    pub shift: i64,
    pub is_real: bool,
    pub addition: Option<Addition>,
}

/// The most categories of an outcome that is an int.
const MOST_CATEGORIES: i64 = 50;

/// The outcome, and the logarithm of an exposure as an offset; `None` after an error.
pub(super) fn outcome(
    reader: &mut Reader<'_>,
    formula: &Formula,
    family: Family,
) -> Option<Outcome> {
    let column = &formula.response.column;
    let name = &column.name;
    if formula.response.function.is_some() {
        let message = "an outcome is a column, without a function of it".to_owned();
        let help = "for the logarithm of an outcome, choose the family `lognormal`".to_owned();
        reader.error(column, message, help);
        return None;
    }
    let content = reader.content(column)?;
    let addition = addition(reader, formula, family)?;
    let mut outcome = Outcome {
        column: column.clone(),
        lower: 0.0,
        upper: 1.0,
        categories: Vec::new(),
        shift: 0,
        is_real: false,
        addition,
    };
    let wants = Wants::of(family);
    let (refused, help) = match (wants, content) {
        (Wants::Categories, Content::Levels(levels)) => {
            outcome.categories = levels;
            (None, String::new())
        }
        (Wants::Categories, Content::Int { lower, upper }) if upper - lower < MOST_CATEGORIES => {
            outcome.categories = (lower..=upper).map(|k| k.to_string()).collect();
            outcome.shift = lower - 1;
            (None, String::new())
        }
        (Wants::Categories, Content::Binary) => {
            outcome.categories = vec!["0".to_owned(), "1".to_owned()];
            outcome.shift = -1;
            (None, String::new())
        }
        (Wants::Categories, Content::Int { lower, upper }) => (
            Some(format!("{} values", upper - lower + 1)),
            format!("{MOST_CATEGORIES} are the most; for counts, choose `poisson` or `negbinomial`"),
        ),
        (Wants::Categories, Content::Real { .. }) => (
            Some("type `float`".to_owned()),
            "give it `levels` in the codebook, or `type: int` with bounds".to_owned(),
        ),
        (Wants::Binary, Content::Binary) => (None, String::new()),
        (Wants::Binary, Content::Levels(levels)) if levels.len() == 2 => {
            outcome.categories = levels;
            outcome.shift = 1;
            (None, String::new())
        }
        (Wants::Binary, Content::Levels(levels)) => (
            Some(format!("{} levels", levels.len())),
            "choose `categorical`, or `cumulative` if they have an order".to_owned(),
        ),
        (Wants::Binary, Content::Int { lower, upper }) => (
            Some(format!("the bounds {lower} and {upper}")),
            "give it `lower: 0` and `upper: 1`, or choose `poisson` for counts, `cumulative` for categories"
                .to_owned(),
        ),
        (Wants::Binary, Content::Real { .. }) => (
            Some("type `float`".to_owned()),
            "give it `type: boolean` in the codebook".to_owned(),
        ),
        (_, Content::Levels(levels)) => (
            Some(format!("{} levels", levels.len())),
            "choose `bernoulli`, `cumulative` or `categorical`".to_owned(),
        ),
        (Wants::Counts, Content::Real { .. }) => (
            Some("type `float`".to_owned()),
            "counts are whole numbers: give it `type: int` in the codebook".to_owned(),
        ),
        (_, content) => {
            (outcome.lower, outcome.upper) = match content {
                Content::Real { lower, upper } => (lower, upper),
                Content::Int { lower, upper } => (lower as f64, upper as f64),
                Content::Binary | Content::Levels(_) => (0.0, 1.0),
            };
            outcome.is_real = wants != Wants::Counts;
            let bound = Some(format!("`lower: {}`", outcome.lower));
            let correct = "correct that bound in the codebook, or choose another family";
            match wants {
                Wants::Counts | Wants::NotNegative if outcome.lower < 0.0 => {
                    (bound, format!("it has no values below 0: {correct}"))
                }
                Wants::Positive if outcome.lower <= 0.0 => (
                    bound,
                    format!(
                        "it has only values above 0: say the smallest that can be recorded, for example `lower: 0.01`, to which smaller ones are moved, or {}",
                        match family {
                            Family::Lognormal => "choose `hurdle_lognormal` for true zeros",
                            _ => "choose another family",
                        }
                    ),
                ),
                _ => (None, String::new()),
            }
        }
    };
    if let Some(what) = refused {
        let message = format!(
            "`{}` cannot have the outcome `{name}`: the codebook gives it {what}",
            family.name()
        );
        reader.error(column, message, help);
        return None;
    }
    if family == Family::Cumulative && outcome.categories.len() == 2 {
        let message =
            format!("`{name}` has two categories, which `cumulative` would have one threshold for");
        reader.error(column, message, "choose `bernoulli`".to_owned());
        return None;
    }
    if let Some(Addition {
        argument: Argument::Number(count),
        ..
    }) = &outcome.addition
        && outcome.upper > *count as f64
    {
        let message = format!(
            "`{name}` may be {} by the codebook, which is more than {count} trials",
            outcome.upper
        );
        let help = "correct `upper` in the codebook, or the number of trials".to_owned();
        reader.error(column, message, help);
        return None;
    }
    Some(outcome)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Any,
    NotNegative,
    Positive,
    Counts,
    Binary,
    Categories,
}

impl Wants {
    fn of(family: Family) -> Wants {
        match family {
            Family::Gaussian | Family::Student => Wants::Any,
            Family::Lognormal | Family::Weibull => Wants::Positive,
            Family::Exponential | Family::HurdleLognormal => Wants::NotNegative,
            Family::Bernoulli => Wants::Binary,
            Family::Binomial
            | Family::Poisson
            | Family::NegativeBinomial
            | Family::HurdlePoisson => Wants::Counts,
            Family::Cumulative | Family::Categorical => Wants::Categories,
        }
    }
}

/// The addition that the family takes, if it is there; `None` after an error.
fn addition(
    reader: &mut Reader<'_>,
    formula: &Formula,
    family: Family,
) -> Option<Option<Addition>> {
    let mut found: Option<Addition> = None;
    for addition in &formula.additions {
        let function = &addition.function;
        if !family.additions().contains(&function.name.as_str()) {
            let message = format!("`{}` does not take `{}()`", family.name(), function.name);
            let help = match family.additions() {
                [] => "it takes nothing after the `|`".to_owned(),
                known => format!("it takes `{}()`", known.join("()`, `")),
            };
            reader.error(function, message, help);
            return None;
        }
        if found.is_some() {
            let message = format!("`{}()` is there twice", function.name);
            reader.error(function, message, "leave one of them out".to_owned());
            return None;
        }
        check(reader, addition)?;
        found = Some(addition.clone());
    }
    if family == Family::Binomial && found.is_none() {
        let name = &formula.response.column.name;
        let message = "`binomial` needs the number of trials".to_owned();
        let help = format!(
            "write `{name} | trials(n) ~`, with the column of trials or their number; for single ones choose `bernoulli`"
        );
        reader.error(&formula.response.column, message, help);
        return None;
    }
    Some(found)
}

/// Whether the addition's column is what it must be.
fn check(reader: &mut Reader<'_>, addition: &Addition) -> Option<()> {
    let function = &addition.function;
    let (column, form) = match &addition.argument {
        Argument::Column(column) => (column, ""),
        Argument::OneMinus(column) if function.name == "cens" => (column, "1 - "),
        Argument::Number(count) if function.name == "trials" && *count > 0 => return Some(()),
        _ => {
            let message = format!("`{}()` cannot have this in it", function.name);
            let help = "write `trials(n)`, `trials(10)`, `cens(c)`, `cens(1 - event)` or `rate(e)`";
            reader.error(function, message, help.to_owned());
            return None;
        }
    };
    if function.name == "rate" {
        let log = Variable {
            column: column.clone(),
            function: Some(super::tree::Function::Log),
        };
        return reader.range(&log).map(|_| ());
    }
    let content = reader.content(column)?;
    let (fits, help) = match function.name.as_str() {
        "trials" => (
            matches!(content, Content::Binary | Content::Int { lower: 0.., .. }),
            "a number of trials has `type: int` and `lower: 0` or more",
        ),
        _ => (
            content == Content::Binary,
            "it must be 1 where the time is censored and 0 where the event was seen: `type: boolean`",
        ),
    };
    if !fits {
        let message = format!(
            "`{}` does not fit into `{}({form}{})`",
            column.name, function.name, column.name
        );
        reader.error(column, message, help.to_owned());
        return None;
    }
    Some(())
}

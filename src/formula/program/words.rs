//! Names, comments and numbers of the program.

use super::Program;
use crate::formula::design::{Block, Column, Design, Number, Part, as_name};
use crate::formula::family::Family;
use crate::formula::tree::Function;

impl Program<'_> {
    /// The quantity that the linear predictor stands for.
    pub(super) fn scale_in_words(&self) -> &'static str {
        match self.family {
            Family::Gaussian | Family::Student => "mean",
            Family::Lognormal => "mean of the logarithm",
            Family::HurdleLognormal => "mean of the logarithm of positive values",
            Family::Bernoulli | Family::Binomial => "log odds",
            Family::Categorical => "log odds against the first category",
            Family::Cumulative => "log odds of a category up to each threshold",
            Family::Poisson | Family::NegativeBinomial => "log of the mean",
            Family::HurdlePoisson => "log of the mean before zeros are left out",
            Family::Weibull => "log of the scale",
            Family::Exponential => "log of the mean",
        }
    }

    /// Where the covariates are for the intercept: ` at dist 200, educ low`.
    pub(super) fn reference(&self) -> String {
        let mut at: Vec<String> = Vec::new();
        for part in self.design.population.columns.iter().flat_map(|c| &c.0) {
            let place = match part {
                Part::Number { number, .. } => {
                    let number = &self.design.numbers[*number];
                    let value = value_of(&number.column, number.function);
                    format!("{value} {}", literal(number.centre))
                }
                Part::Level { column, .. } => format!("{column} {}", self.label(column, 1)),
            };
            if !at.contains(&place) {
                at.push(place);
            }
        }
        if at.is_empty() {
            String::new()
        } else {
            format!(" at {}", at.join(", "))
        }
    }

    pub(super) fn coefficient_in_words(&self, column: &Column, block: &Block) -> String {
        let each: Vec<String> = column
            .0
            .iter()
            .map(|part| match part {
                Part::Level { column, level } => format!("{column} {}", self.label(column, *level)),
                Part::Number { number, power } => {
                    let number = &self.design.numbers[*number];
                    let value = value_of(&number.column, number.function);
                    let power = match power {
                        1 => String::new(),
                        power => format!(", to the power {power}"),
                    };
                    if number.is_binary {
                        return match column.0.len() {
                            1 => format!("{value} 1 against 0"),
                            _ => value,
                        };
                    }
                    let unit = self.book.entry(&number.column).and_then(|e| e.unit());
                    let unit = match (unit, number.function) {
                        (Some(unit), None) => format!(" {unit}"),
                        _ => String::new(),
                    };
                    format!("{}{unit} of {value}{power}", literal(number.scale))
                }
            })
            .collect();
        match (&column.0[..], block.is_mean(column)) {
            (_, true) => each.concat(),
            ([Part::Level { column, .. }], false) => {
                format!("{} against {}", each.concat(), self.label(column, 1))
            }
            ([Part::Number { number, .. }], false) if self.design.numbers[*number].is_binary => {
                each.concat()
            }
            ([_], false) => format!("per {}", each.concat()),
            _ => format!("interaction: {}", each.join(" and ")),
        }
    }
}

/// `dist`, `log_dist`.
pub(super) fn plain_name(number: &Number) -> String {
    match number.function {
        Some(function) => format!("{}_{}", function.name(), number.column),
        None => number.column.clone(),
    }
}

/// The name of a product on the scale of the data: `dist2_educ_high`.
pub(super) fn base_name(
    parts: &[Part],
    design: &Design,
    label: &dyn Fn(&str, usize) -> String,
) -> String {
    let each: Vec<String> = parts
        .iter()
        .map(|part| match part {
            Part::Number { number, power } => {
                let name = plain_name(&design.numbers[*number]);
                if *power == 1 {
                    name
                } else {
                    format!("{name}{power}")
                }
            }
            Part::Level { column, level } => format!("{column}_{}", label(column, *level)),
        })
        .collect();
    each.join("_")
}

/// `dist`, `log(dist)`.
pub(super) fn value_of(column: &str, function: Option<Function>) -> String {
    match function {
        Some(function) => format!("{}({column})", function.name()),
        None => column.to_owned(),
    }
}

/// `site`, `site - 2`, `site + 1`.
pub(super) fn minus(name: &str, shift: i64) -> String {
    match shift {
        0 => name.to_owned(),
        shift if shift < 0 => format!("{name} + {}", -shift),
        shift => format!("{name} - {shift}"),
    }
}

/// A level as a part of a name.
pub(super) fn tag_of(level: &str) -> String {
    let name = as_name(&format!("x{level}"));
    name[1..].trim_matches('_').to_owned()
}

/// As a literal of the language, whole numbers without a point.
pub(in crate::formula) fn literal(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

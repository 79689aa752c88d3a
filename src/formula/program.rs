//! The text of the program: each part of the design gets its names, declarations and priors.

mod coefficients;
mod likelihood;
mod values;
mod words;

use std::collections::BTreeSet;

use super::Written;
use super::codebook::{Codebook, Content};
use super::design::{Column, Design, GroupBlock, Number};
use super::family::Family;
use super::guess::Guess;
use super::outcome::Outcome;
use super::priors::Priors;
use super::tree::{Argument, Formula, Function};
pub(super) use words::literal;
use words::{minus, tag_of, value_of};

pub(super) struct Program<'a> {
    family: Family,
    book: &'a Codebook,
    design: &'a Design,
    outcome: &'a Outcome,
    priors: &'a Priors,
    taken: BTreeSet<String>,
    /// Columns of the design with the names of their values.
    named: Vec<(Column, String)>,
    notes: Vec<String>,
    declared: Vec<String>,
    record: Vec<String>,
    transformed_record: Vec<String>,
    parameters: Vec<String>,
    /// Coefficients on the scale of the data.
    originals: Vec<String>,
    /// The effects of each group.
    effects: Vec<String>,
    /// The name of the thresholds, if there are any.
    thresholds: String,
    model_priors: Vec<String>,
    model: Vec<String>,
}

/// Of one linear predictor: what its names have in them.
struct Predictor<'a> {
    /// `_high`, of a category; else empty.
    tag: String,
    about: Option<&'a str>,
}

impl<'a> Program<'a> {
    pub fn new(
        family: Family,
        book: &'a Codebook,
        design: &'a Design,
        outcome: &'a Outcome,
        priors: &'a Priors,
    ) -> Self {
        Program {
            family,
            book,
            design,
            outcome,
            priors,
            taken: BTreeSet::new(),
            named: Vec::new(),
            notes: Vec::new(),
            declared: Vec::new(),
            record: Vec::new(),
            transformed_record: Vec::new(),
            parameters: Vec::new(),
            originals: Vec::new(),
            effects: Vec::new(),
            thresholds: String::new(),
            model_priors: Vec::new(),
            model: Vec::new(),
        }
    }

    pub fn write(mut self, formula: &Formula, text: &str) -> Written {
        self.declare_all(formula);
        let offset = self.offset(formula);
        let y = self.outcome_value();
        let mut predictors = Vec::new();
        if self.family == Family::Categorical {
            let mut seen = BTreeSet::new();
            for (k, category) in self.outcome.categories.iter().enumerate().skip(1) {
                let mut tag = format!("_{}", tag_of(category));
                if !seen.insert(tag.clone()) {
                    tag = format!("{tag}_{}", k + 1);
                    seen.insert(tag.clone());
                }
                predictors.push(Predictor {
                    tag,
                    about: Some(category),
                });
            }
        } else {
            predictors.push(Predictor {
                tag: String::new(),
                about: None,
            });
        }
        let mut etas = Vec::new();
        for predictor in &predictors {
            let terms = self.predictor(predictor, &offset);
            let eta = self.take(&format!("eta{}", predictor.tag));
            let sum = if terms.is_empty() {
                "0".to_owned()
            } else {
                terms.join(" + ")
            };
            self.model.push(format!("real {eta} = {sum};"));
            etas.push(eta);
        }
        self.likelihood(&y, &etas);
        self.note_groups(predictors.len());
        let text = self.text(text);
        Written {
            program: text,
            notes: self.notes,
        }
    }

    /// A name that nothing else has.
    fn take(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut again = 1;
        while !self.taken.insert(name.clone()) {
            again += 1;
            name = format!("{base}_{again}");
        }
        name
    }

    fn declare_all(&mut self, formula: &Formula) {
        let outcome = self.outcome;
        let mut columns = vec![outcome.column.name.clone()];
        if let Some(addition) = &outcome.addition
            && let Argument::Column(column) | Argument::OneMinus(column) = &addition.argument
        {
            columns.push(column.name.clone());
        }
        let atoms = |terms: &[super::tree::Term]| -> Vec<String> {
            let atoms = terms.iter().flat_map(|term| &term.0);
            atoms.map(|a| a.variable.column.name.clone()).collect()
        };
        columns.extend(atoms(&formula.sum.terms));
        columns.extend(formula.offsets.iter().map(|o| o.column.name.clone()));
        for group in &formula.groups {
            columns.extend(atoms(&group.sum.terms));
            columns.push(group.by.name.clone());
        }
        for column in columns {
            self.declare(&column);
        }
    }

    fn declare(&mut self, column: &str) {
        let Some(entry) = self.book.entry(column) else {
            return;
        };
        if self.declared.iter().any(|known| known == column) {
            return;
        }
        let Ok(content) = entry.content(column) else {
            return;
        };
        self.declared.push(column.to_owned());
        self.taken.insert(column.to_owned());
        let is_outcome = column == self.outcome.column.name;
        let declared = match content {
            _ if is_outcome && self.outcome.is_real => {
                let [lower, upper] = [self.outcome.lower, self.outcome.upper].map(literal);
                format!("real<lower={lower}, upper={upper}>")
            }
            Content::Real { lower, upper } => {
                format!("real<lower={}, upper={}>", literal(lower), literal(upper))
            }
            Content::Int { lower, upper } => format!("int<lower={lower}, upper={upper}>"),
            Content::Binary => "int<lower=0, upper=1>".to_owned(),
            Content::Levels(levels) => format!("factor(\"{}\")", levels.join("\", \"")),
        };
        let comment = entry.comment().map(|c| format!("  // {c}"));
        self.record.push(format!(
            "{declared} {column};{}",
            comment.unwrap_or_default()
        ));
        let codes = entry.unknown_codes();
        if !codes.is_empty() {
            self.notes.push(format!(
                "write {} of `{column}` as NA in the data: what is read as missing is an empty field, NA, N/A, NaN and null",
                codes.join(", ")
            ));
        }
    }

    /// The sum of the offsets, with `+` before each.
    fn offset(&self, formula: &Formula) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        if let Some(addition) = &self.outcome.addition
            && addition.function.name == "rate"
            && let Argument::Column(column) = &addition.argument
        {
            all.push(value_of(&column.name, Some(Function::Log)));
        }
        let offsets = formula.offsets.iter();
        all.extend(offsets.map(|o| value_of(&o.column.name, o.function)));
        all
    }

    /// The outcome as its distribution takes it.
    fn outcome_value(&mut self) -> String {
        let outcome = self.outcome;
        let name = &outcome.column.name;
        if outcome.shift == 0 {
            return name.clone();
        }
        let (new, about) = match self.family {
            Family::Bernoulli => {
                let yes = outcome.categories.last().map_or("", |level| level);
                (format!("{name}_{}", tag_of(yes)), format!("1 for {yes}"))
            }
            _ => (format!("{name}_category"), "counted from 1".to_owned()),
        };
        let new = self.take(&new);
        self.transformed_record.push(format!(
            "int {new} = {};  // {about}",
            minus(name, outcome.shift)
        ));
        new
    }

    fn note_groups(&mut self, predictors: usize) {
        let groups = &self.design.groups;
        let several = |g: &&GroupBlock| g.block.columns.len() + usize::from(g.block.intercept) > 1;
        for group in groups.iter().filter(|g| g.correlated).filter(several) {
            self.notes.push(format!(
                "what varies by `{}` varies independently here: correlations, which R estimates for one bar, are left out",
                group.by
            ));
        }
        let effects = groups
            .iter()
            .map(|g| (g.count + 1) * (g.block.columns.len() + usize::from(g.block.intercept)));
        let block = &self.design.population;
        let own = block.columns.len() + usize::from(block.intercept);
        let directions = (own + effects.sum::<usize>()) * predictors;
        if directions > 100 {
            self.notes.push(format!(
                "the model has about {directions} parameters, and the default sampler takes at most 100: use the sampler `dp-langevin`, or fewer groups"
            ));
        }
    }

    fn text(&self, formula: &str) -> String {
        let formula: Vec<&str> = formula.split_whitespace().collect();
        let mut text = format!("// {}\n", formula.join(" "));
        text += &format!(
            "// Family {}. Written by `dpm new` from a codebook, for you to edit.\n",
            self.family.name()
        );
        let numbers = &self.design.numbers;
        if numbers.iter().any(|n| !n.is_binary) {
            text +=
                "// Names with _z: standardised by the public bounds, which become about -2 and 2";
            let guess = |n: &Number| self.book.guess(&n.column).and_then(Guess::moments);
            let guessed = |n: &Number| n.function.is_none() && guess(n).is_some();
            text += if numbers.iter().any(guessed) {
                ",\n// or by the mean and the sd that the codebook guesses.\n"
            } else {
                ".\n"
            };
        }
        if numbers
            .iter()
            .any(|n| !n.is_binary && n.centre == 0.0 && n.range.0 != -n.range.1)
        {
            text += "// Columns are divided but not centred where the formula lacks a term of lower order.\n";
        }
        let mut block = |name: &str, lines: &[&[String]]| {
            if lines.iter().all(|part| part.is_empty()) {
                return;
            }
            text += &format!("{name} {{\n{}\n}}\n", lines.concat().join("\n"));
        };
        let because: Vec<String> = self.priors.why.iter().map(|l| format!("// {l}")).collect();
        let title = |lines: &[String], title: &str| -> Vec<String> {
            lines
                .first()
                .map(|_| title.to_owned())
                .into_iter()
                .collect()
        };
        let promise = "// One row. Bounds are public promises; values outside are moved to them.";
        let scale = "// On the scale of the data, where covariates count from 0.";
        let effects = "// What each group adds.";
        block("record", &[&title(&self.record, promise), &self.record]);
        block("transformed record", &[&self.transformed_record]);
        block("parameters", &[&self.parameters]);
        block(
            "transformed parameters",
            &[
                &title(&self.originals, scale),
                &self.originals,
                &title(&self.effects, effects),
                &self.effects,
            ],
        );
        let likelihood = [String::new(), "// The likelihood of one record.".to_owned()];
        block(
            "model",
            &[&because, &self.model_priors, &likelihood, &self.model],
        );
        text
    }
}

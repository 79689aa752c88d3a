//! The coefficients of a linear predictor, with their priors.

use super::words::{base_name, literal, minus, tag_of};
use super::{Predictor, Program};
use crate::formula::design::{Column, GroupBlock, Part};
use crate::formula::family::Family;
use crate::formula::original::{Sign, original};

impl Program<'_> {
    /// Parameters and priors of a linear predictor; its terms.
    pub(super) fn predictor(
        &mut self,
        predictor: &Predictor<'_>,
        offset: &[String],
    ) -> Vec<String> {
        let (design, tag) = (self.design, &predictor.tag);
        let block = &design.population;
        let mut terms: Vec<String> = Vec::new();
        // Columns with the names of their coefficients; the intercept first.
        let mut coefficients: Vec<(Column, String)> = Vec::new();
        let (middle, width) = self.priors.intercept;
        let of = predictor.about.map_or(String::new(), |a| format!("{a}: "));
        if block.intercept && self.family != Family::Cumulative {
            let name = self.take(&format!("Intercept{tag}"));
            let what = format!("{of}{}{}", self.scale_in_words(), self.reference());
            self.parameters.push(format!("real {name};  // {what}"));
            self.prior(&name, middle, width);
            coefficients.push((Column(Vec::new()), name.clone()));
            terms.push(name);
        }
        for column in &block.columns {
            let value = self.value(column);
            let name = self.take(&format!("b{tag}_{value}"));
            let what = self.coefficient_in_words(column, block);
            self.parameters.push(format!("real {name};  // {of}{what}"));
            if block.is_mean(column) {
                self.prior(&name, middle, width)
            } else {
                self.prior(&name, 0.0, self.priors.coefficient)
            }
            terms.push(format!("{name} * {value}"));
            coefficients.push((column.clone(), name));
        }
        if self.family == Family::Cumulative {
            let thresholds = self.outcome.categories.len() - 1;
            let name = self.take("cut");
            self.thresholds.clone_from(&name);
            let what = format!("{}{}", self.scale_in_words(), self.reference());
            self.parameters
                .push(format!("ordered[{thresholds}] {name};  // {what}"));
            self.prior(&name, middle, width);
            coefficients.insert(0, (Column(Vec::new()), name));
        }
        self.on_scale_of_data(&coefficients, tag);
        for group in &design.groups {
            self.group(group, predictor, &mut terms);
        }
        terms.extend(offset.iter().cloned());
        terms
    }

    fn prior(&mut self, name: &str, middle: f64, width: f64) {
        let [middle, width] = [middle, width].map(literal);
        self.model_priors
            .push(format!("{name} ~ normal({middle}, {width});"));
    }

    /// Coefficients of the columns as they are in the data, where they differ.
    fn on_scale_of_data(&mut self, coefficients: &[(Column, String)], tag: &str) {
        let design = self.design;
        for (column, own) in coefficients {
            let is_cut = column.0.is_empty() && self.family == Family::Cumulative;
            let sign = if is_cut { Sign::Minus } else { Sign::Plus };
            let Some(value) = original(column, coefficients, &design.numbers, sign) else {
                continue;
            };
            let has_number = column.0.iter().any(|part| match part {
                Part::Number { number, .. } => !design.numbers[*number].is_binary,
                Part::Level { .. } => false,
            });
            let name = if is_cut {
                self.take("b_cut")
            } else if column.0.is_empty() {
                self.take(&format!("b{tag}_Intercept"))
            } else if has_number {
                let label = |of: &str, level: usize| tag_of(&self.label(of, level));
                let base = base_name(&column.0, design, &label);
                self.take(&format!("b{tag}_{base}"))
            } else {
                self.take(&format!("{own}_at_0"))
            };
            let kind = if is_cut {
                format!("vector[{}]", self.outcome.categories.len() - 1)
            } else {
                "real".to_owned()
            };
            self.originals.push(format!("{kind} {name} = {value};"));
        }
    }

    fn group(&mut self, group: &GroupBlock, predictor: &Predictor<'_>, terms: &mut Vec<String>) {
        let (by, count, tag) = (&group.by, group.count, &predictor.tag);
        let index = minus(by, group.before_first);
        let mut columns: Vec<Option<&Column>> = Vec::new();
        if group.block.intercept {
            columns.push(None);
        }
        columns.extend(group.block.columns.iter().map(Some));
        for column in columns {
            let value = column.map(|column| self.value(column));
            let suffix = value.as_ref().map_or(String::new(), |v| format!("_{v}"));
            let sd = self.take(&format!("sd_{by}{tag}{suffix}"));
            let raw = self.take(&format!("z_{by}{tag}{suffix}"));
            let effect = self.take(&format!("r_{by}{tag}{suffix}"));
            let what = match &value {
                None => "the intercept".to_owned(),
                Some(value) => format!("the coefficient of {value}"),
            };
            let of = predictor.about.map_or(String::new(), |a| format!("{a}: "));
            self.parameters.push(format!(
                "real<lower=0> {sd};  // {of}how much {what} varies over {by}"
            ));
            self.parameters
                .push(format!("vector[{count}] {raw};  // in units of {sd}"));
            self.effects
                .push(format!("vector[{count}] {effect} = {sd} * {raw};"));
            let scale = literal(self.priors.group);
            self.model_priors
                .push(format!("{sd} ~ normal(0, {scale});"));
            self.model_priors.push(format!("{raw} ~ normal(0, 1);"));
            terms.push(match value {
                None => format!("{effect}[{index}]"),
                Some(value) => format!("{effect}[{index}] * {value}"),
            });
        }
    }
}

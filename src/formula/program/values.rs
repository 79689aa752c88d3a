//! The columns that coefficients multiply, as the transformed record has them.

use super::Program;
use super::words::{literal, plain_name, tag_of, value_of};
use crate::formula::codebook::Content;
use crate::formula::design::{Column, Number, Part};

impl Program<'_> {
    /// The name of a column's values, which are computed where they are first named.
    pub(super) fn value(&mut self, column: &Column) -> String {
        if let Some((_, name)) = self.named.iter().find(|(known, _)| known.is(column)) {
            return name.clone();
        }
        let name = match &column.0[..] {
            [Part::Level { column: of, level }] => {
                let label = self.label(of, *level);
                let name = self.take(&format!("{of}_{}", tag_of(&label)));
                self.transformed_record
                    .push(format!("int {name} = {of} == {level};  // {label}"));
                name
            }
            [Part::Number { number, power: 1 }] => {
                let number = &self.design.numbers[*number];
                self.standardised(number)
            }
            [Part::Number { number, power }] => {
                let one = Part::Number {
                    number: *number,
                    power: 1,
                };
                let of = self.value(&Column(vec![one]));
                let name = self.take(&format!("{of}{power}"));
                self.transformed_record
                    .push(format!("real {name} = {of} ^ {power};"));
                name
            }
            parts => {
                let each: Vec<String> = parts
                    .iter()
                    .map(|part| self.value(&Column(vec![part.clone()])))
                    .collect();
                let name = self.take(&each.join("_"));
                let is_int = parts.iter().all(|part| match part {
                    Part::Level { .. } => true,
                    Part::Number { number, power } => {
                        *power == 1 && self.design.numbers[*number].is_binary
                    }
                });
                let kind = if is_int { "int" } else { "real" };
                self.transformed_record
                    .push(format!("{kind} {name} = {};", each.join(" * ")));
                name
            }
        };
        self.named.push((column.clone(), name.clone()));
        name
    }

    fn standardised(&mut self, number: &Number) -> String {
        if number.is_binary {
            return number.column.clone();
        }
        let name = self.take(&format!("{}_z", plain_name(number)));
        let value = value_of(&number.column, number.function);
        let shifted = match number.centre {
            0.0 => value,
            centre if centre < 0.0 => format!("({value} + {})", literal(-centre)),
            centre => format!("({value} - {})", literal(centre)),
        };
        // A quotient of ints would be rounded.
        let scale = if number.is_int {
            format!("{:?}", number.scale)
        } else {
            literal(number.scale)
        };
        self.transformed_record
            .push(format!("real {name} = {shifted} / {scale};"));
        name
    }

    pub(super) fn label(&self, column: &str, level: usize) -> String {
        let content = self.book.entry(column).map(|entry| entry.content(column));
        match content {
            Some(Ok(Content::Levels(levels))) => levels.get(level - 1).cloned().unwrap_or_default(),
            _ => level.to_string(),
        }
    }
}

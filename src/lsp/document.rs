//! A text and what is known of it, and what can be asked at a place.

use super::names::{Names, Occurrence, Symbol};
use super::text::Text;
use crate::check::{Examined, Stage, Variable, examine};
use crate::syntax::{Piece, Span, format, pieces};

pub(super) struct Document {
    pub text: Text,
    pub examined: Examined,
    pub names: Names,
}

impl Document {
    pub fn new(source: String) -> Document {
        let examined = examine(&source);
        let names = examined.program.as_ref().map(Names::of);
        Document {
            text: Text::new(source),
            examined,
            names: names.unwrap_or_default(),
        }
    }

    pub fn source(&self) -> &str {
        &self.text.source
    }

    /// The words of a place, on one line.
    pub fn words(&self, span: Span) -> String {
        let text = self.source().get(span.range()).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The checker's variables for a symbol; for a function's argument, one for each way in which the
    /// function is called.
    pub fn variables(&self, symbol: &Symbol) -> impl Iterator<Item = &Variable> {
        let all = self.examined.variables.iter();
        all.filter(|v| symbol.declared.contains(&v.span))
    }

    pub fn stage(&self, symbol: &Symbol) -> Stage {
        self.variables(symbol)
            .fold(Stage::Constant, |stage, v| stage.join(v.stage))
    }

    /// The places that name the same as the one at `offset`.
    pub fn references(&self, offset: usize) -> Vec<Occurrence> {
        let Some(found) = self.names.at(offset) else {
            return Vec::new();
        };
        self.names.of_symbol(found.symbol).copied().collect()
    }

    pub fn definitions(&self, offset: usize) -> Vec<Span> {
        match self.names.at(offset) {
            Some(found) => self.names.symbols[found.symbol].declared.clone(),
            None => Vec::new(),
        }
    }

    /// The name of a function or a distribution at a place, as it is written.
    pub fn function_at(&self, offset: usize) -> Option<Called> {
        let mut before = "";
        for (piece, span) in pieces(self.source()) {
            let text = &self.source()[span.range()];
            if piece == Piece::Function && span.start <= offset && offset <= span.end {
                return Some(Called {
                    span,
                    is_distribution: before == "~",
                });
            }
            if piece != Piece::Comment && !text.trim().is_empty() {
                before = text;
            }
        }
        None
    }

    /// The part of the text that formatting changes, and what it becomes; `None` where the text
    /// cannot be read or is in form.
    pub fn formatted(&self) -> Option<(Span, String)> {
        let source = self.source();
        let formatted = format(source).ok()?;
        // Whole lines before and after stay, so that the editor keeps its place in them.
        let same = |(a, b): &(&str, &str)| a == b;
        let (old, new) = (
            source.split_inclusive('\n'),
            formatted.split_inclusive('\n'),
        );
        let before: usize = old
            .clone()
            .zip(new.clone())
            .take_while(same)
            .map(|(a, _)| a.len())
            .sum();
        let most = source.len().min(formatted.len()) - before;
        let mut after = 0;
        for (a, b) in old.rev().zip(new.rev()) {
            if a != b || after + a.len() > most {
                break;
            }
            after += a.len();
        }
        let span = Span::new(before, source.len() - after);
        let changed = formatted[before..formatted.len() - after].to_owned();
        (source[span.range()] != changed).then_some((span, changed))
    }
}

/// A function or a distribution where it is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called {
    pub span: Span,
    pub is_distribution: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_changes_no_line_that_is_in_form() {
        let changed = |source: &str| {
            let document = Document::new(source.to_owned());
            let (span, text) = document.formatted()?;
            let mut result = source.to_owned();
            result.replace_range(span.range(), &text);
            assert_eq!(Some(result), format(source).ok());
            Some((source[span.range()].to_owned(), text))
        };
        let form = "parameters {\n  real a;\n}\nmodel {\n  a ~ normal(0, 1);\n}\n";
        assert_eq!(changed(form), None);
        assert_eq!(changed("model {"), None);
        assert_eq!(
            changed(&form.replace("  real a", "real  a")),
            Some(("real  a;\n".to_owned(), "  real a;\n".to_owned()))
        );
        assert_eq!(
            changed(&form.replace("real a;\n", "real a;\n\n\n")),
            Some(("\n\n".to_owned(), String::new()))
        );
        assert!(changed(&form.replace('\n', "\r\n").replace("= ", "=")).is_none());
        assert!(changed(form.trim_end()).is_some());
    }
}

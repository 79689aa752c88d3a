//! Helpers of the tree builders: spans in the source, and children without marks.

use pest::iterators::{Pair, Pairs};

use super::diagnostic::Diagnostic;
use super::draft::Draft;
use super::grammar::Rule;
use super::tokens::Token;
use super::tree::{Ident, Span, StringLiteral};

/// Turns the parse of the grammar into the tree, and collects the forms that the grammar accepts
/// only to be refused here. The methods are in the files of the parts of the tree that they build.
///
/// A method returns `None` where the grammar promises a child and there is none, which would be a
/// bug in this crate; the statement is then dropped with a message that says so.
pub(super) struct Builder<'a> {
    draft: &'a Draft,
    tokens: &'a [Token<'a>],
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Upper bound of the height of the expression above the one being built.
    pub(super) depth: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(draft: &'a Draft, tokens: &'a [Token<'a>]) -> Self {
        Builder {
            draft,
            tokens,
            diagnostics: Vec::new(),
            depth: 0,
        }
    }

    /// Its place in the source, from its first word to its last: pest's own spans include the
    /// blanks and comments that follow.
    pub(super) fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let written = pair.as_span();
        let inside = self
            .tokens
            .partition_point(|token| token.span.start < written.end());
        let end = inside
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last))
            .map_or(0, |token| token.span.end);
        self.draft
            .span_to_source(Span::new(written.start(), end.max(written.start())))
    }

    pub(super) fn draft(&self) -> &'a Draft {
        self.draft
    }

    /// Length of the source in bytes.
    pub(super) fn source_length(&self) -> usize {
        self.draft.to_source(self.draft.text().len())
    }

    pub(super) fn ident(&mut self, pair: &Pair<'_, Rule>) -> Ident {
        let name = pair.as_str().to_owned();
        let span = self.span(pair);
        if name == "lp__" {
            self.diagnostics.push(
                Diagnostic::error(
                    "S006",
                    span,
                    "the log density has no name `lp__` in a program",
                )
                .label("it can only be added to")
                .help("write `target += ...;`"),
            );
        } else if name.ends_with("__") {
            self.diagnostics.push(
                Diagnostic::error(
                    "S006",
                    span,
                    format!("the name `{name}` ends in two underscores"),
                )
                .label("such names are kept for the output of samplers")
                .help(format!("write `{}`", name.trim_end_matches('_'))),
            );
        }
        Ident { name, span }
    }

    pub(super) fn text(&self, pair: &Pair<'_, Rule>) -> StringLiteral {
        let written = pair.as_str();
        let value = written
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap_or(written);
        StringLiteral {
            value: value.to_owned(),
            span: self.span(pair),
        }
    }

    pub(super) fn lost(&mut self, span: Span) {
        self.diagnostics.push(
            Diagnostic::error("S000", span, "dpm read this and then lost it")
                .label("this is a mistake in dpm")
                .help("please report it with these lines"),
        );
    }
}

/// The children of a node that carry meaning: marks and keywords left out.
pub(super) fn parts(pair: Pair<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    meaningful(pair.into_inner())
}

pub(super) fn meaningful(pairs: Pairs<'_, Rule>) -> impl Iterator<Item = Pair<'_, Rule>> {
    pairs.filter(|pair| {
        !matches!(
            pair.as_rule(),
            Rule::open_brace
                | Rule::close_brace
                | Rule::open_paren
                | Rule::close_paren
                | Rule::open_bracket
                | Rule::close_bracket
                | Rule::open_angle
                | Rule::close_angle
                | Rule::comma
                | Rule::semicolon
                | Rule::question
                | Rule::assign
                | Rule::plus_assign
                | Rule::tilde
                | Rule::array_keyword
                | Rule::factor_keyword
                | Rule::if_keyword
                | Rule::else_keyword
                | Rule::while_keyword
                | Rule::for_keyword
                | Rule::in_keyword
                | Rule::break_keyword
                | Rule::continue_keyword
                | Rule::return_keyword
                | Rule::print_keyword
                | Rule::reject_keyword
                | Rule::target_keyword
                | Rule::profile_keyword
                | Rule::truncation_keyword
                | Rule::functions_keyword
                | Rule::EOI
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;

    #[test]
    fn names_for_samplers_are_refused_once_for_each_use() {
        let parsed = parse("model { real lp__ = 1; }");
        assert_eq!(parsed.diagnostics.len(), 1);
        assert_eq!(parsed.diagnostics[0].code, "S006");
        assert!(parsed.program.is_some());
    }

    #[test]
    fn texts_lose_their_quotes() {
        let parsed = parse("record { factor(\"a b\", \"\") f; }");
        assert_eq!(parsed.diagnostics, []);
        let shown = format!("{:?}", parsed.program);
        assert!(shown.contains("value: \"a b\""), "{shown}");
    }
}

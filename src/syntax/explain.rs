//! Explanations for readers when the grammar cannot continue.
//!
//! Pest says which rules it expected at the farthest place it reached. The author of the program
//! wants to know which of a few dozen common mistakes it was. Each is recognised by one method of
//! [`Scene`]; they are tried in turn, and if none matches, the message is "expected ..., found
//! ...".

mod declaration;
mod expression;
mod foreign;
mod statement;

use std::collections::HashSet;

use pest::error::{Error, ErrorVariant, InputLocation};

use super::brackets::Brackets;
use super::diagnostic::Diagnostic;
use super::draft::Edit;
use super::expected;
use super::grammar::Rule;
use super::tokens::{Problem, Token, TokenKind};
use super::tree::Span;
use super::words;

/// The mistake, its repair, and the statement that contains it (all places in the draft); or a
/// mistake that cannot be repaired.
pub(super) fn explain(
    error: &Error<Rule>,
    text: &str,
    tokens: &[Token<'_>],
    brackets: &Brackets,
) -> Result<(Problem, Span), Box<Diagnostic>> {
    let place = match error.location {
        InputLocation::Pos(place) | InputLocation::Span((place, _)) => place,
    };
    let ErrorVariant::ParsingError { positives, .. } = &error.variant else {
        // Pest itself refuses when its stack runs out.
        let at = Span::new(place, place);
        return Err(Box::new(
            Diagnostic::error("S008", at, "this program is nested too deeply")
                .label("too deep here"),
        ));
    };
    let index = tokens.partition_point(|token| token.span.end <= place);
    let extent = brackets
        .statement(tokens, index)
        .or_else(|| brackets.statement(tokens, index.checked_sub(1)?));
    let (first, last) = match extent {
        Some(extent) => extent,
        None if tokens.is_empty() => (0, 0),
        // Nothing before a closing brace: the whole block is blanked.
        None => brackets
            .partner(index)
            .map_or((index, index), |open| (open.min(index), open.max(index))),
    };
    let span_of = |place: usize| tokens.get(place).map(|token| token.span);
    let within = match (span_of(first), span_of(last)) {
        (Some(first), Some(last)) => first.to(last),
        _ => Span::new(text.len(), text.len()),
    };
    let scene = Scene {
        text,
        tokens,
        brackets,
        index,
        first,
        expected: positives.iter().copied().collect(),
        within,
    };
    match scene.problem() {
        problem if problem.edits.is_empty() => Err(Box::new(problem.diagnostic)),
        problem => Ok((problem, within)),
    }
}

/// The place where reading stopped, and its surroundings.
struct Scene<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    brackets: &'a Brackets,
    /// The token that could not be read; the number of tokens at the end.
    index: usize,
    /// The first token of the statement.
    first: usize,
    expected: HashSet<Rule>,
    within: Span,
}

impl<'a> Scene<'a> {
    fn problem(&self) -> Problem {
        // The more specific ones first.
        let slips: [fn(&Self) -> Option<Problem>; 41] = [
            Self::outside_of_blocks,
            Self::function_outside,
            Self::bounds_out_of_place,
            Self::foreign_word,
            Self::misspelt_word,
            Self::argument_of_function,
            Self::misspelt_type,
            Self::capital_word,
            Self::declaration_form,
            Self::c_style_for,
            Self::condition_without_brackets,
            Self::else_alone,
            Self::declared_body,
            Self::body_without_brace,
            Self::function_without_type,
            Self::sized_in_function,
            Self::array_without_size,
            Self::factor_without_levels,
            Self::truncation_form,
            Self::truncation_misspelt,
            Self::nothing_around_tilde,
            Self::bounds_without_names,
            Self::bound_without_equals,
            Self::comparison_in_bound,
            Self::dotted_range,
            Self::condition_as_value,
            Self::foreign_operator,
            Self::increment,
            Self::assignment_in_expression,
            Self::bar_in_sampling,
            Self::distribution_alone,
            Self::empty_brackets_after_name,
            Self::target_read,
            Self::text_as_value,
            Self::reserved_name,
            Self::underscore_name,
            Self::comma_for_semicolon,
            Self::several_subjects,
            Self::condition_behind,
            Self::missing_semicolon,
            Self::missing_expression,
        ];
        slips
            .iter()
            .find_map(|slip| slip(self))
            .unwrap_or_else(|| self.unexpected())
    }

    fn token(&self) -> Option<&'a Token<'a>> {
        self.tokens.get(self.index)
    }

    fn nth_before(&self, count: usize) -> Option<&'a Token<'a>> {
        self.tokens.get(self.index.checked_sub(count)?)
    }

    fn previous(&self) -> Option<&'a Token<'a>> {
        self.nth_before(1)
    }

    /// The token at this position in the statement.
    fn nth_of_statement(&self, count: usize) -> Option<&'a Token<'a>> {
        self.tokens.get(self.first + count)
    }

    fn expects(&self, rule: Rule) -> bool {
        self.expected.contains(&rule)
    }

    fn expects_operand(&self) -> bool {
        expected::wants_operand(&self.expected)
    }

    fn is(&self, text: &str) -> bool {
        self.token().is_some_and(|token| token.is(text))
    }

    fn previous_is(&self, text: &str) -> bool {
        self.previous().is_some_and(|token| token.is(text))
    }

    fn word(&self) -> Option<&'a str> {
        self.token()
            .filter(|token| token.kind == TokenKind::Word)
            .map(|token| token.text)
    }

    fn expects_declarator(&self) -> bool {
        self.expects(Rule::declarator) || self.expects(Rule::identifier) && !self.expects_operand()
    }

    fn expects_constraint(&self) -> bool {
        self.expects(Rule::constraint) || self.expects(Rule::constraint_name)
    }

    /// Where the token is, or the end of the file.
    fn here(&self) -> Span {
        self.token()
            .map_or(Span::new(self.text.len(), self.text.len()), |token| {
                token.span
            })
    }

    /// The place right after the token before.
    fn gap(&self) -> Span {
        let end = self.previous().map_or(0, |token| token.span.end);
        Span::new(end, end)
    }

    fn on_a_new_line(&self) -> bool {
        self.text
            .get(self.gap().end..self.here().start)
            .is_some_and(|between| between.contains('\n'))
    }

    fn found(&self) -> String {
        match self.token() {
            None => "the end of the file".to_owned(),
            Some(token) if token.kind == TokenKind::Word && words::is_reserved(token.text) => {
                format!("the word `{}`", token.text)
            }
            Some(token) => format!("`{}`", token.text),
        }
    }

    /// The statement is given up.
    fn give_up(&self, diagnostic: Diagnostic) -> Problem {
        let edits = if self.within.start < self.within.end {
            vec![Edit::Blank(self.within)]
        } else {
            vec![]
        };
        Problem::new(diagnostic, edits)
    }

    fn no_word(&self, token: &Token<'_>, meant: &str) -> Problem {
        let message = format!("`{}` is not a word of the language", token.text);
        let label = format!("did you mean `{meant}`?");
        self.give_up(Diagnostic::error("S001", token.span, message).label(label))
    }

    /// A mark is inserted, and reading continues.
    fn insert(&self, diagnostic: Diagnostic, mark: &'static str) -> Problem {
        Problem::new(diagnostic, vec![Edit::Insert(self.gap().end, mark)])
    }

    fn expects_body(&self) -> bool {
        self.expects(Rule::function_body)
            || self.expects(Rule::open_brace) && !self.expects_operand()
    }

    fn is_after_tilde(&self) -> bool {
        self.tokens
            .get(self.first..self.index)
            .is_some_and(|before| before.iter().any(|token| token.is("~")))
    }

    fn unexpected(&self) -> Problem {
        let wanted = expected::in_words(&self.expected);
        let found = self.found();
        let diagnostic = if wanted.is_empty() {
            Diagnostic::error("S001", self.here(), format!("{found} is not allowed here"))
                .label("unexpected")
        } else {
            Diagnostic::error(
                "S001",
                self.here(),
                format!("expected {wanted}, found {found}"),
            )
            .label(format!("expected {wanted}"))
        };
        self.give_up(diagnostic)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;

    fn said(statement: &str) -> (String, Option<String>) {
        let mut parsed = parse(&format!("model {{ {statement} }}"));
        assert_eq!(parsed.diagnostics.len(), 1, "{statement}");
        let diagnostic = parsed.diagnostics.remove(0);
        (diagnostic.message, diagnostic.help)
    }

    #[test]
    fn usual_slips_are_called_by_name() {
        for (statement, message) in [
            ("x = 1", "`;` is missing"),
            ("x = ;", "an expression is missing after `=`"),
            ("rael x;", "`rael` is not a type"),
            (
                "real for;",
                "`for` is a word of the language and cannot be a name",
            ),
            (
                "for (i = 1; i < 3; i++) x = 1;",
                "this is not how a loop is written",
            ),
            ("if x > 1 { }", "`(` is missing after `if`"),
            ("else x = 1;", "this `else` has no `if`"),
            ("real<lower 0> x;", "`=` is missing after `lower`"),
            ("x = target;", "`target` cannot be read"),
            ("y ~ normal;", "the arguments of `normal` are missing"),
            ("y ~ normal(a | b);", "`|` is not allowed here"),
            (
                "real f(real x) { return x; }",
                "a function is defined outside of `functions`",
            ),
        ] {
            assert_eq!(said(statement).0, message, "{statement}");
        }
    }

    #[test]
    fn operators_of_other_languages_are_translated() {
        for (statement, help) in [
            ("x = 2 ** 3;", "`^` is the power"),
            ("x++;", "write `+= 1`"),
            ("x = a and b;", "write `&&`"),
            ("if (a = b) ;", "write `==` to compare"),
        ] {
            assert_eq!(said(statement).1.as_deref(), Some(help), "{statement}");
        }
    }

    #[test]
    fn anything_else_is_expected_and_found() {
        assert_eq!(said("x = 1 2;").0, "expected `;` or an operator, found `2`");
        assert_eq!(
            said("y ~ f(1) + 2;").0,
            "expected `;` or a truncation `T[a, b]`, found `+`"
        );
    }
}

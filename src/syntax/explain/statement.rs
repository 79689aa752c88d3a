//! Slips in statements.

use super::super::diagnostic::Diagnostic;
use super::super::parse::Rule;
use super::super::tokens::{Problem, TokenKind};
use super::super::words;
use super::Scene;

impl Scene<'_> {
    pub(super) fn c_style_for(&self) -> Option<Problem> {
        let place = (self.first..=self.index.min(self.tokens.len().checked_sub(1)?))
            .rev()
            .find(|&place| self.tokens[place].is("for"))?;
        let open = self.tokens.get(place + 1)?;
        if !open.is("(") || !self.expects(Rule::in_keyword) && !self.expects_loop_name(place) {
            return None;
        }
        let close = self.brackets.partner(place + 1).unwrap_or(self.index);
        let end = self.tokens.get(close).map_or(open.span, |token| token.span);
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    open.span.to(end),
                    "this is not how a loop is written",
                )
                .label("expected a name, `in`, and a range or a container")
                .help("write `for (i in 1:N) { ... }`"),
            ),
        )
    }

    /// The name of the loop's variable is missing: `for (int i = 1; ...)`.
    fn expects_loop_name(&self, keyword: usize) -> bool {
        self.expects(Rule::identifier) && self.index == keyword + 2
    }

    pub(super) fn condition_without_brackets(&self) -> Option<Problem> {
        let previous = self.previous()?;
        if !self.expects(Rule::open_paren)
            || !matches!(
                previous.text,
                "if" | "while" | "for" | "print" | "reject" | "profile"
            )
        {
            return None;
        }
        let word = previous.text;
        let inside = match word {
            "for" => "i in 1:N",
            "print" | "reject" | "profile" => "\"...\"",
            _ => "condition",
        };
        Some(
            self.give_up(
                Diagnostic::error("S001", self.gap(), format!("`(` is missing after `{word}`"))
                    .label("expected `(` here")
                    .help(format!("write `{word} ({inside})`")),
            ),
        )
    }

    pub(super) fn else_alone(&self) -> Option<Problem> {
        if !self.is("else") {
            return None;
        }
        let diagnostic = Diagnostic::error("S001", self.here(), "this `else` has no `if`");
        if self.previous_is(";") {
            return Some(
                self.give_up(
                    diagnostic
                        .label("the `if` before it is complete")
                        .help("put several statements of an `if` into braces"),
                ),
            );
        }
        if self.expects(Rule::semicolon) && self.index > self.first {
            return None;
        }
        Some(self.give_up(diagnostic.label("nothing to be the other case of")))
    }

    pub(super) fn declared_body(&self) -> Option<Problem> {
        let word = self.word()?;
        if !words::is_type(word) || !self.expects(Rule::statement) {
            return None;
        }
        let previous = self.previous()?;
        if !(previous.is(")") || previous.is("else")) {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    self.here(),
                    "a declaration cannot be the whole body",
                )
                .label("its name would end at once")
                .help("put the body into braces: `{ ... }`"),
            ),
        )
    }

    /// `T[0]`, `T(0, 1)`
    pub(super) fn truncation_form(&self) -> Option<Problem> {
        let place = (self.first..self.index)
            .rev()
            .find(|&place| self.tokens[place].is("T") && place > self.first)?;
        if !self.is_after_tilde() || !self.tokens[place - 1].is(")") {
            return None;
        }
        let inside = self.expects(Rule::open_bracket) && place + 1 == self.index
            || self.expects(Rule::comma)
            || self.expects(Rule::close_bracket);
        if !inside {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    self.tokens[place].span.to(self.here()),
                    "this is not how a truncation is written",
                )
                .label("expected two bounds in square brackets")
                .help("write `T[a, b]`, `T[a, ]` or `T[, b]`"),
            ),
        )
    }

    pub(super) fn nothing_around_tilde(&self) -> Option<Problem> {
        if self.previous_is("~") {
            return Some(
                self.give_up(
                    Diagnostic::error("S001", self.gap(), "a distribution is missing after `~`")
                        .label("expected a distribution here")
                        .help("as in `y ~ normal(mu, sigma);`"),
                ),
            );
        }
        if !self.is("~") || self.index != self.first {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S001", self.here(), "nothing stands left of `~`")
                    .label("expected an expression before it")
                    .help("as in `y ~ normal(mu, sigma);`"),
            ),
        )
    }

    pub(super) fn bar_in_sampling(&self) -> Option<Problem> {
        if !self.is("|") || !self.is_after_tilde() {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S001", self.here(), "`|` cannot stand here")
                    .label("what is left of `~` is already given")
                    .help("after `~` all arguments stand between commas: `y ~ normal(mu, sigma);`"),
            ),
        )
    }

    pub(super) fn distribution_alone(&self) -> Option<Problem> {
        let (name, tilde) = (self.previous()?, self.nth_before(2)?);
        if !tilde.is("~") || !self.expects(Rule::open_paren) {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    self.gap(),
                    format!("the arguments of `{}` are missing", name.text),
                )
                .label("expected `(` here")
                .help(format!("write `~ {}(...);`", name.text)),
            ),
        )
    }

    pub(super) fn missing_semicolon(&self) -> Option<Problem> {
        if !self.expects(Rule::semicolon) || self.expects_body() {
            return None;
        }
        let starts_anew = match self.token() {
            None => true,
            Some(token) if token.kind == TokenKind::Mark => {
                token.is("}") || self.on_a_new_line() && token.is("{")
            }
            Some(token) => self.on_a_new_line() || words::opens_statement(token.text),
        };
        if !starts_anew {
            return None;
        }
        Some(self.insert(
            Diagnostic::error("S002", self.gap(), "`;` is missing").label("expected `;` here"),
            ";",
        ))
    }
}

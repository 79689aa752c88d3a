//! Slips in statements.

use super::super::diagnostic::Diagnostic;
use super::super::draft::Edit;
use super::super::grammar::Rule;
use super::super::tokens::{Problem, TokenKind};
use super::super::tree::Span;
use super::super::words;
use super::Scene;

/// The advice for `y ~ 1 + x`.
const FORMULA: &str = "there are no formulas: right of `~` is the distribution of what is left of it, as in `y ~ normal(alpha + beta * x, sigma);`";

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

    /// `y ~ normal(0, 1) t[0, ]`, `y ~ normal(0, 1), T[0, ]`
    pub(super) fn truncation_misspelt(&self) -> Option<Problem> {
        let token = self.token()?;
        if !self.is_after_tilde() || !self.expects(Rule::truncation_keyword) {
            return None;
        }
        let next = self.tokens.get(self.index + 1)?;
        let (at, message) = if matches!(token.text, "t" | "trunc" | "truncate") {
            (
                token.span,
                format!("`{}` does not begin a truncation", token.text),
            )
        } else if token.is(",") && next.is("T") {
            (
                token.span,
                "a truncation follows without a comma".to_owned(),
            )
        } else {
            return None;
        };
        Some(
            self.give_up(
                Diagnostic::error("S001", at, message)
                    .label("expected `T`")
                    .help("write `T[a, b]`, `T[a, ]` or `T[, b]` right after the distribution"),
            ),
        )
    }

    /// `alpha ~ normal(0, 1),` and the next statement.
    pub(super) fn comma_for_semicolon(&self) -> Option<Problem> {
        let token = self.token()?;
        let next = self.tokens.get(self.index + 1);
        let ends = next.is_none_or(|next| {
            let between = token.span.end..next.span.start;
            next.is("}") || self.text.get(between).is_some_and(|gap| gap.contains('\n'))
        });
        if !token.is(",") || !self.expects(Rule::semicolon) || self.expects(Rule::comma) || !ends {
            return None;
        }
        Some(Problem::mended(
            Diagnostic::error(
                "S002",
                token.span,
                "a statement ends with `;`, not with `,`",
            )
            .label("expected `;`")
            .help("write `;`"),
            Edit::Overwrite(token.span, ";"),
        ))
    }

    /// `alpha, beta ~ normal(0, 1);`
    pub(super) fn several_subjects(&self) -> Option<Problem> {
        if !self.is(",") || !self.expects(Rule::tilde) && !self.expects(Rule::sampling) {
            return None;
        }
        let rest = self.tokens.get(self.index..)?;
        let mark = rest
            .iter()
            .take_while(|token| !token.is(";"))
            .find(|token| token.is("~") || token.is("="))?;
        let first = self.nth_of_statement(0)?;
        let subjects = Span::new(first.span.start, mark.span.start);
        let text = self.text.get(subjects.range())?.trim_end();
        let at = Span::new(first.span.start, first.span.start + text.len());
        let mark = mark.text;
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    at,
                    format!("only one thing can be left of `{mark}`"),
                )
                .label("more than one")
                .help("write a statement for each"),
            ),
        )
    }

    /// `For (k in 1:2)`, `If (x)`
    pub(super) fn capital_word(&self) -> Option<Problem> {
        let first = self.nth_of_statement(0)?;
        let lower = first.text.to_ascii_lowercase();
        let opens = ["for", "while", "if", "else", "print", "reject", "return"];
        if first.text == lower || !opens.contains(&lower.as_str()) {
            return None;
        }
        Some(self.no_word(first, &lower))
    }

    /// `x = a if b else c;`
    pub(super) fn condition_behind(&self) -> Option<Problem> {
        let token = self.token()?;
        if !token.is("if") || self.on_a_new_line() || !self.expects(Rule::semicolon) {
            return None;
        }
        let rest = self.tokens.get(self.index..)?;
        let goes_on = rest
            .iter()
            .take_while(|token| !token.is(";") && !token.is("}"))
            .any(|token| token.is("else"));
        if !goes_on {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S007", token.span, "`if` is a statement, not an operator")
                    .label("not allowed in an expression")
                    .help("write `condition ? a : b`"),
            ),
        )
    }

    pub(super) fn nothing_around_tilde(&self) -> Option<Problem> {
        if self.previous_is("~") {
            let is_formula = self
                .token()
                .is_some_and(|token| token.kind == TokenKind::Number || token.is("("));
            let help = if is_formula {
                FORMULA
            } else {
                "as in `y ~ normal(mu, sigma);`"
            };
            return Some(
                self.give_up(
                    Diagnostic::error("S001", self.gap(), "a distribution is missing after `~`")
                        .label("expected a distribution here")
                        .help(help),
                ),
            );
        }
        if !self.is("~") || self.index != self.first {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S001", self.here(), "there is nothing left of `~`")
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
                Diagnostic::error("S001", self.here(), "`|` is not allowed here")
                    .label("what is left of `~` is already given")
                    .help(
                        "after `~` all arguments are separated by commas: `y ~ normal(mu, sigma);`",
                    ),
            ),
        )
    }

    pub(super) fn distribution_alone(&self) -> Option<Problem> {
        let (name, tilde) = (self.previous()?, self.nth_before(2)?);
        if !tilde.is("~") || !self.expects(Rule::open_paren) {
            return None;
        }
        if self
            .token()
            .is_some_and(|next| matches!(next.text, "+" | "*" | ":" | "-" | "["))
        {
            let diagnostic =
                Diagnostic::error("S001", name.span, "there is no distribution after `~`")
                    .label("expected a distribution here")
                    .help(FORMULA);
            return Some(self.give_up(diagnostic));
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

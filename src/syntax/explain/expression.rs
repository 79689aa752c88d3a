//! Slips in expressions and names.

use super::super::diagnostic::Diagnostic;
use super::super::grammar::Rule;
use super::super::tokens::{Problem, TokenKind};
use super::super::words;
use super::Scene;

impl Scene<'_> {
    pub(super) fn foreign_operator(&self) -> Option<Problem> {
        let token = self.token()?;
        let previous = self.previous()?;
        let touches = previous.span.end == token.span.start;
        let pair = previous.span.to(token.span);
        let (span, written, meant) = match (previous.text, token.text) {
            ("*", "*") if touches => (pair, "**", "`^` is the power"),
            ("<" | "=", ">") if self.expects(Rule::bound) || self.expects_constraint() => {
                return None;
            }
            ("<", ">") if touches => (pair, "<>", "`!=` means not equal"),
            ("-", ">") if touches => (pair, "->", "`=` assigns, to the left"),
            (":", "=") if touches => (pair, ":=", "`=` assigns"),
            ("=", ">") if touches => (pair, "=>", "write `>=`"),
            ("=", "<") if touches => (pair, "=<", "write `<=`"),
            (_, "=") if self.next_touches("<") || self.next_touches(">") => {
                let next = self.tokens.get(self.index + 1)?;
                let (written, meant) = match next.text {
                    "<" => ("=<", "write `<=`"),
                    _ => ("=>", "write `>=`"),
                };
                (token.span.to(next.span), written, meant)
            }
            ("==", "=") if touches => (pair, "===", "write `==`"),
            (_, "and") => (token.span, "and", "write `&&`"),
            (_, "or") => (token.span, "or", "write `||`"),
            ("not", _) => (previous.span, "not", "write `!`"),
            ("%", "*") if touches => (pair, "%*%", "`*` is the product of matrices"),
            (_, "|")
                if self.expects(Rule::close_paren)
                    && self.expects(Rule::comma)
                    && !self.is_after_tilde() =>
            {
                return Some(self.second_bar());
            }
            (_, "|") if !self.is_after_tilde() => (token.span, "|", "`||` is the logical or"),
            (_, ":")
                if self
                    .tokens
                    .get(self.index + 1)
                    .is_some_and(|next| next.is("=")) =>
            {
                (token.span, ":=", "`=` assigns")
            }
            _ => return None,
        };
        if token.kind == TokenKind::Text || previous.kind == TokenKind::Text {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S007",
                    span,
                    format!("`{written}` is not an operator of dpm"),
                )
                .label("unknown")
                .help(meant),
            ),
        )
    }

    fn next_touches(&self, mark: &str) -> bool {
        let (Some(token), Some(next)) = (self.token(), self.tokens.get(self.index + 1)) else {
            return false;
        };
        next.is(mark) && next.span.start == token.span.end
    }

    fn second_bar(&self) -> Problem {
        self.give_up(
            Diagnostic::error("S001", self.here(), "`|` is not allowed here")
                .label("a bar comes only after the first argument")
                .help("the others are separated by commas, as in `normal_lpdf(y | mu, sigma)`; `||` is the logical or"),
        )
    }

    /// `i++;` reads as `i + (+ ...`.
    pub(super) fn increment(&self) -> Option<Problem> {
        let (last, before) = (self.previous()?, self.nth_before(2)?);
        if !self.expects_operand() || last.text != before.text || !matches!(last.text, "+" | "-") {
            return None;
        }
        let mark = last.text;
        Some(
            self.give_up(
                Diagnostic::error(
                    "S007",
                    before.span.to(last.span),
                    format!("`{mark}{mark}` is not an operator of dpm"),
                )
                .label("unknown")
                .help(format!("write `{mark}= 1`")),
            ),
        )
    }

    pub(super) fn assignment_in_expression(&self) -> Option<Problem> {
        let token = self.token()?;
        if !token.is("=") || !(self.expects(Rule::add) || self.expects(Rule::close_paren)) {
            return None;
        }
        if self.expects(Rule::assignment) || self.expects(Rule::assign_operator) {
            return None;
        }
        let is_condition = self
            .nth_of_statement(0)
            .is_some_and(|first| matches!(first.text, "if" | "while"));
        let help = if !self.expects(Rule::close_paren) {
            "write `==` to compare; one statement assigns once"
        } else if is_condition {
            "write `==` to compare"
        } else {
            "arguments have no names: write their values, in their order (`==` compares)"
        };
        Some(
            self.give_up(
                Diagnostic::error("S001", token.span, "`=` is not allowed here")
                    .label("`=` assigns")
                    .help(help),
            ),
        )
    }

    pub(super) fn target_read(&self) -> Option<Problem> {
        let token = self.token()?;
        if token.is("target") && self.expects_operand() {
            return Some(
                self.give_up(
                    Diagnostic::error("S001", token.span, "`target` cannot be read")
                        .label("it can only be added to")
                        .help("write `target += ...;` as a statement of its own"),
                ),
            );
        }
        let previous = self.previous()?;
        if previous.is("target") && self.expects(Rule::plus_assign) {
            return Some(
                self.give_up(
                    Diagnostic::error(
                        "S001",
                        previous.span.to(token.span),
                        "`target` can only be added to",
                    )
                    .label("expected `target +=`")
                    .help("write `target += ...;`"),
                ),
            );
        }
        None
    }

    pub(super) fn text_as_value(&self) -> Option<Problem> {
        let token = self.token()?;
        if token.kind != TokenKind::Text || !self.expects_operand() {
            return None;
        }
        let help = self.number_of_level(token.text);
        let help = help.unwrap_or_else(|| {
            "text is allowed only in `print`, `reject`, `profile` and `factor`".to_owned()
        });
        Some(
            self.give_up(
                Diagnostic::error("S001", token.span, "text is not a value")
                    .label("expected an expression")
                    .help(help),
            ),
        )
    }

    /// Advice on a text, in quotes, that is compared with a factor: the number to write instead.
    fn number_of_level(&self, text: &str) -> Option<String> {
        let compares = |at: usize| {
            let operator = self.tokens.get(at)?.text;
            ["==", "!="].contains(&operator).then_some(operator)
        };
        // `g == "b"`, `g[2] == "b"` or `"b" == g`.
        let before = self.index.checked_sub(2);
        let (operator, subject) = match before.and_then(|at| Some((compares(at + 1)?, at))) {
            Some((operator, end)) if self.tokens[end].is("]") => {
                (operator, self.brackets.partner(end)?.checked_sub(1)?)
            }
            Some(found) => found,
            None => (compares(self.index + 1)?, self.index + 2),
        };
        let name = self.tokens.get(subject)?.text;
        let levels = self.levels_of(name)?;
        let mut numbers = (1..).zip(&levels);
        Some(match numbers.find(|(_, level)| **level == text) {
            Some((number, _)) => format!(
                "a factor is the number of its level, and {text} is level {number} of `{name}`: write `{operator} {number}`"
            ),
            None => format!(
                "a factor is the number of its level, and `{name}` has the levels {}",
                levels.join(", ")
            ),
        })
    }

    /// The levels, in quotes, of the factor that the program declares by this name.
    fn levels_of(&self, name: &str) -> Option<Vec<&str>> {
        let mut starts = (0..self.tokens.len()).filter(|&at| self.tokens[at].is("factor"));
        starts.find_map(|start| {
            let end = self.brackets.partner(start + 1)?;
            let mut declared = self.tokens[end..].iter().take_while(|token| !token.is(";"));
            declared.any(|token| token.is(name)).then(|| {
                let inside = self.tokens[start..end].iter();
                let levels = inside.filter(|token| token.kind == TokenKind::Text);
                levels.map(|level| level.text).collect()
            })
        })
    }

    pub(super) fn reserved_name(&self) -> Option<Problem> {
        let word = self.word().filter(|word| words::is_reserved(word))?;
        let names = self.expects_declarator();
        if !names && !self.expects_operand() {
            return None;
        }
        // `x = \n real y;`: the expression is missing rather than misnamed.
        if !names && self.on_a_new_line() {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S006",
                    self.here(),
                    format!("`{word}` is a word of the language and cannot be a name"),
                )
                .label(if names {
                    "expected a name"
                } else {
                    "expected an expression"
                })
                .help(format!("choose another name, such as `{word}_`")),
            ),
        )
    }

    pub(super) fn underscore_name(&self) -> Option<Problem> {
        let word = self.word().filter(|word| word.starts_with('_'))?;
        Some(
            self.give_up(
                Diagnostic::error(
                    "S006",
                    self.here(),
                    format!("the name `{word}` begins with `_`"),
                )
                .label("names begin with a letter")
                .help(format!("write `{}`", word.trim_start_matches('_'))),
            ),
        )
    }

    pub(super) fn missing_expression(&self) -> Option<Problem> {
        let mark = self.previous()?;
        if !self.expects_operand() || mark.kind != TokenKind::Mark {
            return None;
        }
        let token = self.token();
        let ends = token.is_none_or(|token| {
            matches!(token.text, ";" | ")" | "]" | "}" | ",")
                || token.is(">") && self.expects(Rule::bound)
                || self.on_a_new_line()
        });
        if !ends {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    self.gap(),
                    format!("an expression is missing after `{}`", mark.text),
                )
                .label("expected an expression here"),
            ),
        )
    }
}

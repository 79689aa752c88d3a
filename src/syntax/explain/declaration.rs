//! Slips in blocks, declarations, types and function heads.

use super::super::diagnostic::Diagnostic;
use super::super::grammar::Rule;
use super::super::suggestion::did_you_mean;
use super::super::tokens::{Problem, Token, TokenKind};
use super::super::words;
use super::Scene;

impl Scene<'_> {
    pub(super) fn outside_of_blocks(&self) -> Option<Problem> {
        let is_outside = match self.token() {
            Some(_) => self.brackets.is_outside(self.index),
            None => true,
        };
        if !is_outside {
            return None;
        }
        // `model` and a brace are handled by the brackets: this is something else.
        let first = self.nth_of_statement(0)?;
        let diagnostic = if first.kind == TokenKind::Word && first.is("functions") {
            return None;
        } else if self.has_function_head() {
            Diagnostic::error("S005", first.span, "this function is outside of its block")
                .label("not inside a block")
                .help("put it into `functions { ... }`, the first block")
        } else if words::is_type(first.text) {
            Diagnostic::error("S005", first.span, "this declaration is outside of every block")
                .label("not inside a block")
                .help("public numbers go into `constants { ... }`, private columns into `record { ... }`, unknowns into `parameters { ... }`")
        } else {
            Diagnostic::error("S005", first.span, "this is outside of every block")
                .label("not inside a block")
                .help("a block is its name and braces, as in `model { ... }`")
        };
        Some(self.give_up(diagnostic))
    }

    fn has_function_head(&self) -> bool {
        let word = |count: usize| {
            self.nth_of_statement(count)
                .filter(|token| token.kind == TokenKind::Word)
        };
        word(0).is_some_and(|token| token.text == "void" || words::is_type(token.text))
            && word(1).is_some()
            && self.nth_of_statement(2).is_some_and(|token| token.is("("))
    }

    pub(super) fn function_outside(&self) -> Option<Problem> {
        if !self.has_function_head() || self.expects_body() {
            return None;
        }
        let head = self.nth_of_statement(2)?;
        let reached = self.here().start <= head.span.start;
        if !reached {
            return None;
        }
        let name = self.nth_of_statement(1)?;
        Some(
            self.give_up(
                Diagnostic::error(
                    "S005",
                    name.span,
                    "a function is defined outside of `functions`",
                )
                .label("defined here")
                .help("put it into `functions { ... }`, the first block"),
            ),
        )
    }

    pub(super) fn misspelt_type(&self) -> Option<Problem> {
        let first = self.nth_of_statement(0)?;
        if first.kind != TokenKind::Word || words::opens_statement(first.text) {
            return None;
        }
        let second = self.nth_of_statement(1)?;
        if first.is("tuple") && second.is("(") {
            return Some(
                self.give_up(
                    Diagnostic::error("S007", first.span, "dpm has no tuples")
                        .label("not a type of dpm")
                        .help("declare a variable for each part"),
                ),
            );
        }
        let bounded = second.is("<")
            && self.nth_of_statement(2).is_some_and(|token| {
                matches!(token.text, "lower" | "upper" | "offset" | "multiplier")
            });
        let sized = second.is("[")
            && self.previous_is("]")
            && self.word().is_some()
            && !self.on_a_new_line();
        let plain = second.kind == TokenKind::Word && second.span == self.here();
        if !(bounded || sized || plain && !self.on_a_new_line()) {
            return None;
        }
        let meant = match first.text {
            "double" | "float" | "number" | "numeric" => Some("real"),
            "integer" | "bool" | "boolean" | "long" => Some("int"),
            "string" | "enum" | "categorical" => Some("factor"),
            "complex" | "complex_vector" | "complex_matrix" => {
                return Some(
                    self.give_up(
                        Diagnostic::error("S007", first.span, "dpm has no complex numbers")
                            .label("not a type of dpm")
                            .help("declare the real and the imaginary part as two `real`s"),
                    ),
                );
            }
            word => did_you_mean(word, words::type_words()),
        };
        let diagnostic = Diagnostic::error(
            "S001",
            first.span,
            format!("`{}` is not a type", first.text),
        );
        Some(self.give_up(match meant {
            Some(meant) => diagnostic.label(format!("did you mean `{meant}`?")),
            None if plain && !self.expects(Rule::semicolon) => return None,
            None => diagnostic.label("not a type").help(
                "types are `int`, `real`, `vector[K]`, `row_vector[K]`, `matrix[R, C]`, `array[N] ...`, `factor(...)` and Stan's constrained ones, such as `simplex[K]`",
            ),
        }))
    }

    /// `real f(real x) return x;`
    pub(super) fn body_without_brace(&self) -> Option<Problem> {
        if !self.expects_body() || !self.previous_is(")") {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S003", self.gap(), "`{` is missing")
                    .label("expected `{` here")
                    .help("the body must be in braces, even if it is a single statement"),
            ),
        )
    }

    /// `f(real x) { ... }`
    pub(super) fn function_without_type(&self) -> Option<Problem> {
        let name = self.word()?;
        let next = self.tokens.get(self.index + 1)?;
        let expected = self.expects(Rule::function)
            || self.expects(Rule::return_type)
            || self.expects(Rule::unsized_type);
        if !expected || !next.is("(") || self.previous_is("(") || self.previous_is(",") {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S001",
                    self.here(),
                    format!("the function `{name}` has no return type"),
                )
                .label("expected a type before it")
                .help(format!(
                    "write `real {name}(...)`, or `void {name}(...)` if it returns nothing"
                )),
            ),
        )
    }

    /// `vector[3] f(...)`
    pub(super) fn sized_in_function(&self) -> Option<Problem> {
        let (bracket, ty) = (self.previous()?, self.nth_before(2)?);
        if !bracket.is("[") || !self.expects(Rule::close_bracket) || self.expects_operand() {
            return None;
        }
        let help = if ty.is("array") {
            "write `array[]`, or `array[,]` for two dimensions".to_owned()
        } else {
            format!("write `{}`", ty.text)
        };
        Some(
            self.give_up(
                Diagnostic::error("S010", self.here(), "the types of functions have no sizes")
                    .label("a size")
                    .help(help),
            ),
        )
    }

    pub(super) fn array_without_size(&self) -> Option<Problem> {
        if !self.previous_is("array") || !self.expects(Rule::open_bracket) {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S010", self.gap(), "`array` has no size")
                    .label("expected `[` here")
                    .help("write `array[N] real x;`"),
            ),
        )
    }

    pub(super) fn factor_without_levels(&self) -> Option<Problem> {
        let is_level = self.expects(Rule::text) && !self.expects_operand();
        let levels = self.tokens.get(self.first..self.index)?;
        if !levels.iter().any(|token| token.is("factor")) {
            return None;
        }
        let diagnostic = if self.previous_is("factor") {
            Diagnostic::error("S010", self.gap(), "the levels of this factor are missing")
                .label("expected `(` and the levels here")
        } else if is_level {
            Diagnostic::error(
                "S010",
                self.here(),
                format!("expected a level, found {}", self.found()),
            )
            .label("levels are texts in quotes")
        } else {
            return None;
        };
        Some(self.give_up(diagnostic.help("write `factor(\"low\", \"high\") x;`")))
    }

    /// Bounds that are not between `<` and `>` right after the name of the type: `real x<lower=0>`,
    /// `vector[2]<lower=0> x`, `real[lower=0] x`.
    pub(super) fn bounds_out_of_place(&self) -> Option<Problem> {
        let first = self.nth_of_statement(0)?;
        if first.kind != TokenKind::Word || !words::is_type(first.text) {
            return None;
        }
        // The place of `lower`, and of the bracket before it.
        let place = (self.first..=self.index.saturating_add(1)).find(|&place| {
            let opened = self.tokens.get(place).is_some_and(|token| {
                token.kind == TokenKind::Mark && matches!(token.text, "<" | "[" | "(")
            });
            opened
                && self.tokens.get(place + 1).is_some_and(|token| {
                    matches!(token.text, "lower" | "upper" | "offset" | "multiplier")
                })
                && self
                    .tokens
                    .get(place + 2)
                    .is_some_and(|token| token.is("="))
        })?;
        let opener = &self.tokens[place];
        let before = self.tokens.get(place.checked_sub(1)?)?;
        let closes = |token: &&Token<'_>| token.is(">") || token.is("]") || token.is(")");
        let rest = self.tokens.get(place..)?;
        let end = rest.iter().take(40).find(closes).unwrap_or(opener);
        let inside = self
            .text
            .get(opener.span.end..end.span.start)
            .unwrap_or("lower=0");
        let at = opener.span.to(end.span);
        let (message, help) = if !opener.is("<") {
            let message = "bounds go between `<` and `>`";
            (message, format!("write `{}<{inside}>`", before.text))
        } else if before.is("array") {
            let message = "the bounds go after the type of the elements";
            (message, format!("write `array[...] real<{inside}>`"))
        } else if before.is("]") && !first.is("array") {
            let message = "the bounds go before the size";
            (message, format!("write `{}<{inside}>[...]`", first.text))
        } else if before.kind == TokenKind::Word && !words::is_type(before.text) {
            let message = "the bounds go after the type, before the name";
            let ty = self
                .text
                .get(first.span.start..before.span.start)?
                .trim_end();
            let (ty, sizes) = ty.split_at(ty.find('[').unwrap_or(ty.len()));
            let name = before.text;
            (message, format!("write `{ty}<{inside}>{sizes} {name}`"))
        } else {
            return None;
        };
        let diagnostic = Diagnostic::error("S010", at, message)
            .label("not here")
            .help(help);
        Some(self.give_up(diagnostic))
    }

    /// `real<0, 1>`
    pub(super) fn bounds_without_names(&self) -> Option<Problem> {
        let token = self.token()?;
        if !self.expects_constraint() || token.kind == TokenKind::Word || token.is(">") {
            return None;
        }
        let opener = self.previous().filter(|token| token.is("<"))?;
        Some(
            self.give_up(
                Diagnostic::error("S010", token.span, "a bound has a name")
                    .label("a bound of which side?")
                    .note(opener.span, "bounds begin here")
                    .help("write `<lower=0, upper=1>`, `<lower=0>` or `<upper=1>`"),
            ),
        )
    }

    pub(super) fn bound_without_equals(&self) -> Option<Problem> {
        if !self.expects(Rule::assign) || self.expects(Rule::semicolon) {
            return None;
        }
        let name = self
            .previous()
            .filter(|token| token.kind == TokenKind::Word)?;
        let opener = self.nth_before(2)?;
        if !(opener.is("<") || opener.is(",")) {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S010",
                    self.gap(),
                    format!("`=` is missing after `{}`", name.text),
                )
                .label("expected `=` here")
                .help("a bound is written `<lower=0>`, or `<lower=0, upper=1>`"),
            ),
        )
    }

    pub(super) fn comparison_in_bound(&self) -> Option<Problem> {
        let token = self.token()?;
        let previous = self.previous()?;
        let token = if previous.is(">") && self.expects(Rule::sizes)
            || self.expects_declarator() && previous.is(">")
        {
            previous
        } else {
            token
        };
        if !self.expects(Rule::close_angle) && !token.is(">") {
            return None;
        }
        if token.is(">") && (token.span == self.here() || self.word().is_some()) {
            return None;
        }
        if !matches!(
            token.text,
            "<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||" | "?"
        ) {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S010",
                    token.span,
                    format!("`{}` is not allowed in a bound", token.text),
                )
                .label("`>` would be taken for the end of the bounds")
                .help("put the whole value into round brackets: `<lower=(...)>`"),
            ),
        )
    }

    /// `real x[] = ...` and `x[] y`.
    pub(super) fn empty_brackets_after_name(&self) -> Option<Problem> {
        if !self.is("]") || !self.previous_is("[") || !self.expects_operand() {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error("S001", self.here(), "the size is missing")
                    .label("expected a size here")
                    .help("sizes are left out only in the arguments of functions"),
            ),
        )
    }
}

//! Words and marks of other languages.

use super::super::diagnostic::Diagnostic;
use super::super::grammar::Rule;
use super::super::suggestion::did_you_mean;
use super::super::tokens::{Problem, TokenKind};
use super::super::words;
use super::Scene;

impl Scene<'_> {
    /// `if (x) then y = 1;`, `elif (x) { ... }`, `let x = 1;`
    pub(super) fn foreign_word(&self) -> Option<Problem> {
        let opens = self.nth_of_statement(0).filter(|_| {
            self.nth_of_statement(1)
                .is_some_and(|next| next.kind == TokenKind::Word || next.is("(") || next.is("{"))
        });
        let follows = self
            .previous()
            .filter(|_| self.nth_before(2).is_some_and(|before| before.is(")")));
        let (token, help) = [opens, follows].into_iter().flatten().find_map(|token| {
            let help = match token.text {
                "then" => "leave it out: `if (condition) statement`",
                "do" => "leave it out: `while (condition) statement`",
                "elseif" | "elif" | "elsif" => "write `else if (condition) statement`",
                "unless" | "until" => "write `if (!condition)` or `while (!condition)`",
                "switch" | "case" => "write `if (...) ... else if (...) ...`",
                "foreach" | "repeat" => "write `for (x in container)` or `for (k in 1:K)`",
                "let" | "var" | "const" | "auto" => "write the type instead, such as `real`",
                "def" | "function" | "fn" => {
                    "write the type of what it returns, as in `real f(real x) { ... }`, in the block `functions`"
                }
                _ => return None,
            };
            (token.kind == TokenKind::Word).then_some((token, help))
        })?;
        Some(
            self.give_up(
                Diagnostic::error(
                    "S007",
                    token.span,
                    format!("`{}` is not a word of dpm", token.text),
                )
                .label("of another language")
                .help(help),
            ),
        )
    }

    /// `retrun x;`
    pub(super) fn misspelt_word(&self) -> Option<Problem> {
        let first = self.nth_of_statement(0)?;
        if first.kind != TokenKind::Word || words::is_reserved(first.text) {
            return None;
        }
        let meant = did_you_mean(first.text, &words::OPENING)?;
        let second = self.nth_of_statement(1)?;
        let fits = match meant {
            "return" => second.span == self.here(),
            "for" | "while" | "if" | "print" | "reject" | "profile" => second.is("("),
            _ => false,
        };
        if !fits || self.on_a_new_line() && second.span == self.here() {
            return None;
        }
        Some(self.no_word(first, meant))
    }

    /// `x = if (a) 1 else 2;`
    pub(super) fn condition_as_value(&self) -> Option<Problem> {
        if !self.is("if") || !self.expects_operand() || self.on_a_new_line() {
            return None;
        }
        Some(
            self.give_up(
                Diagnostic::error(
                    "S007",
                    self.here(),
                    "`if` is a statement, and cannot be used as a value",
                )
                .label("expected an expression")
                .help("write `condition ? a : b`"),
            ),
        )
    }

    /// `1..3`, read as `1.` and `.3`
    pub(super) fn dotted_range(&self) -> Option<Problem> {
        let (before, token) = (self.previous()?, self.token()?);
        let touches = before.span.end == token.span.start;
        let numbers = before.kind == TokenKind::Number && token.kind == TokenKind::Number;
        if !(numbers && touches && before.text.ends_with('.') && token.text.starts_with('.')) {
            return None;
        }
        let (from, to) = (
            before.text.trim_end_matches('.'),
            token.text.trim_start_matches('.'),
        );
        Some(
            self.give_up(
                Diagnostic::error(
                    "S007",
                    before.span.to(token.span),
                    "this is not how a range is written",
                )
                .label("two numbers without a colon between them")
                .help(format!("write `{from}:{to}`")),
            ),
        )
    }

    /// `real f(x)`, `real f(ordered x)`, `real f(real<lower=0> x)`
    pub(super) fn argument_of_function(&self) -> Option<Problem> {
        let token = self.token()?;
        if token.is("<") && self.expects(Rule::old_unsized) {
            return Some(
                self.give_up(
                    Diagnostic::error(
                        "S010",
                        token.span,
                        "the types of functions have no bounds",
                    )
                    .label("bounds")
                    .help("leave the part in `<...>` out; the body may `reject` what it cannot use"),
                ),
            );
        }
        if !self.expects(Rule::argument) && !self.expects(Rule::unsized_type) {
            return None;
        }
        let word = self.word()?;
        let after = self.previous()?;
        if !(after.is("(") || after.is(",")) {
            return None;
        }
        let (message, label, help) = if words::is_type(word) {
            let plain = match word {
                "corr_matrix" | "cov_matrix" | "cholesky_factor_corr" | "cholesky_factor_cov" => {
                    "matrix"
                }
                "factor" => "int",
                _ => "vector",
            };
            (
                format!("`{word}` is not a type of functions"),
                "constrained".to_owned(),
                format!("write `{plain}`"),
            )
        } else {
            (
                format!("the argument `{word}` has no type"),
                "expected a type before it".to_owned(),
                format!("write `real {word}`, or `vector {word}`, ..."),
            )
        };
        let diagnostic = Diagnostic::error("S001", token.span, message);
        Some(self.give_up(diagnostic.label(label).help(help)))
    }

    /// `real a, real b;`, `vector(3) x;`, `real x == 1;`, `real<lower=0 upper=1> x;`
    pub(super) fn declaration_form(&self) -> Option<Problem> {
        let token = self.token()?;
        let first = self.nth_of_statement(0)?;
        if !words::is_type(first.text) {
            return None;
        }
        let before = self.previous()?;
        let (message, label, help) =
            if before.is(",") && self.expects_declarator() && words::is_type(token.text) {
                (
                    "the type is written once for all names".to_owned(),
                    "again here",
                    format!("leave `{}` out, or end with `;` before it", token.text),
                )
            } else if token.is("(") && self.expects(Rule::open_bracket) && self.expects_declarator()
            {
                (
                    "sizes go in square brackets".to_owned(),
                    "round brackets",
                    format!("write `{}[...]`", before.text),
                )
            } else if token.is("==") && self.expects(Rule::assign) {
                (
                    "`==` compares".to_owned(),
                    "expected `=`",
                    "write `=` to give a value".to_owned(),
                )
            } else if self.expects(Rule::close_angle)
                && matches!(token.text, "lower" | "upper" | "offset" | "multiplier")
            {
                (
                    "`,` is missing between two bounds".to_owned(),
                    "expected `,` before it",
                    "write `<lower=0, upper=1>`".to_owned(),
                )
            } else {
                return None;
            };
        let diagnostic = Diagnostic::error("S001", token.span, message);
        Some(self.give_up(diagnostic.label(label).help(help)))
    }
}

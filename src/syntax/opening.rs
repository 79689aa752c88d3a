//! Whether a text begins like a program, before a line of it is shown.
//!
//! A user who swaps the model and the data gives a private table in place of a program, and
//! messages about programs show their lines. So a text that is not a program is refused without
//! showing any.

use super::diagnostic::Diagnostic;
use super::tokens::{Token, TokenKind, first_tokens};
use super::tree::Span;
use super::words;

/// The diagnostic for a text that does not begin with a block; `None` for one that does, or that is
/// empty.
///
/// The diagnostic contains nothing of the text, and is to be shown without it: its place is that of
/// an empty source. A block's name may be misspelt, or its brace missing; the text after it is
/// assumed to be a program.
pub fn not_a_program(source: &str) -> Option<Diagnostic> {
    // Two words, a brace, and the tokens that show that a brace is missing.
    let (tokens, problems) = first_tokens(source, 5);
    let end = match block_head(&tokens) {
        Some(end) => end,
        None if tokens.is_empty() && problems.is_empty() => return None,
        None => 0,
    };
    // Lines that begin with `#` are comments in other languages, and have their own message.
    let is_foreign_comment = |span: Span| source[span.start..].starts_with('#');
    let strange = |span: Span| span.start < end && !is_foreign_comment(span);
    if end > 0 && !problems.iter().any(|p| strange(p.diagnostic.span)) {
        return None;
    }
    Some(
        Diagnostic::error(
            "S010",
            Span::new(0, 0),
            "this does not look like a dpm program: it does not begin with a block",
        )
        .help(
            "a program begins with a block, such as `record { ... }`. Nothing of the text is shown, since it may be private data: were the model and the data given in the wrong order?",
        ),
    )
}

/// The end of the tokens that show the beginning of a program, if they do.
fn block_head(tokens: &[Token]) -> Option<usize> {
    (1..=2).find_map(|count| {
        let (name, rest) = tokens.split_at_checked(count)?;
        if name.iter().any(|token| token.kind != TokenKind::Word) {
            return None;
        }
        let name: Vec<&str> = name.iter().map(|token| token.text).collect();
        let written = name.join(" ");
        let is_keyword = words::block_kind(&name).is_some();
        match rest {
            [brace, ..] if brace.is("{") => (is_keyword
                || matches!(written.as_str(), "data" | "transformed data")
                || words::meant_keyword(&written).is_some())
            .then_some(brace.span.end),
            // The keyword alone.
            [] => is_keyword.then(|| tokens[count - 1].span.end),
            [first, second, ..] => {
                let declares = words::is_type(first.text)
                    && (second.is("<") || second.is("[") || second.kind == TokenKind::Word);
                let states = first.kind == TokenKind::Word && (second.is("~") || second.is("+="));
                (is_keyword && (declares || states)).then_some(second.span.end)
            }
            [_] => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_begin_with_a_block_however_broken() {
        for program in [
            "",
            " // nothing yet\n",
            "model",
            "record { real y; }",
            "\u{FEFF}// of people\n/* two\nlines */ transformed /* x */ parameters\n{",
            "modle { y ~ normal(0, 1); }",
            "rows {",
            "data { int N; }",
            "generated_quantities {",
            "# Stan's old comment\n#include <x>\nparameters {",
            "parameters\n  real mu;\n}",
            "parameters real<lower=0> mu; }",
            "parameters vector[2] mu; }",
            "model\n mu ~ normal(0, 1);\n}",
            "model target += 1; }",
            "record { real é; \"",
        ] {
            assert_eq!(not_a_program(program), None, "{program:?}");
        }
    }

    #[test]
    fn tables_and_other_texts_do_not() {
        for text in [
            "age,income\n61,7\n",
            "model,age\n\"a\",61\n",
            "model;age\n",
            "model\tage\n",
            "model\n61\n",
            "model matrix,id\n",
            "model real,id\n",
            "61.5\n",
            "name\n\"model { x }\"\n",
            "\"model {\",age\n",
            "\"unclosed\nmodel { x }\",3\n",
            "name\nmodel { x }\n",
            "{\"model\": 61}",
            "[{\"age\": 61}]",
            "person { name: \"Alice\" }",
            "real name;age\n",
            "y ~ 61",
            "PK\u{3}\u{4} model {",
            "\u{0}model {",
            "/* never ends",
            "% model {",
        ] {
            let said = not_a_program(text).unwrap_or_else(|| panic!("{text:?}"));
            let said = format!("{said:?}");
            assert!(!said.contains("61") && !said.contains("Alice"), "{said}");
        }
    }
}

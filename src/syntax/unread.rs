//! Names in text that could not be read.
//!
//! When a declaration is dropped, every use of its name would cause one more message about the same
//! error. So the names are kept, and the checker does not report them.

use super::tokens::{TokenKind, tokens};
use super::words;

/// All names in the text.
pub(super) fn names(text: &str) -> Vec<String> {
    let (tokens, _) = tokens(text);
    let words = tokens.iter().filter(|token| token.kind == TokenKind::Word);
    words
        .map(|word| word.text.to_owned())
        .filter(|word| !words::is_reserved(word))
        .collect()
}

/// All names in the text of a statement, if it looks like a declaration: a word,
/// and then a word, bounds or sizes.
pub(super) fn declared(statement: &str) -> Vec<String> {
    let (tokens, _) = tokens(statement);
    let Some(first) = tokens.first().filter(|token| token.kind == TokenKind::Word) else {
        return Vec::new();
    };
    let second = tokens.get(1);
    let declares = words::is_type(first.text)
        || second.is_some_and(|token| token.kind == TokenKind::Word || token.is("<"))
            && !words::is_reserved(first.text);
    if declares {
        names(statement)
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_give_their_names() {
        for text in [
            "real x<lower=0>;",
            "rael x;",
            "flaot<foo=0> x",
            "array x, y;",
        ] {
            assert!(declared(text).contains(&"x".to_owned()), "{text}");
        }
        for text in ["x = ;", "x ~ ;", "f(x;", "for x in 1:2 { }", "", "if x"] {
            assert!(declared(text).is_empty(), "{text}");
        }
    }
}

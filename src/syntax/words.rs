//! The words of the language, for messages.

use super::suggestion::did_you_mean;
use super::tree::{BaseType, BlockKind};

/// Words that cannot be names, as in the grammar's `reserved`.
pub(super) const RESERVED: [&str; 35] = [
    "functions",
    "constants",
    "record",
    "parameters",
    "model",
    "data",
    "int",
    "real",
    "vector",
    "row_vector",
    "matrix",
    "ordered",
    "positive_ordered",
    "simplex",
    "unit_vector",
    "sum_to_zero_vector",
    "cholesky_factor_corr",
    "cholesky_factor_cov",
    "corr_matrix",
    "cov_matrix",
    "factor",
    "array",
    "void",
    "for",
    "in",
    "while",
    "if",
    "else",
    "break",
    "continue",
    "return",
    "print",
    "reject",
    "target",
    "profile",
];

/// Words that open a statement; one of them after an unfinished statement means
/// that a semicolon is missing.
pub const OPENING: [&str; 11] = [
    "for", "while", "if", "break", "continue", "return", "print", "reject", "target", "profile",
    "else",
];

/// Whether a variable or a function may be called so.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !is_reserved(word)
}

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

pub(super) fn is_type(word: &str) -> bool {
    word == "array" || base_type(word).is_some()
}

pub(super) fn opens_statement(word: &str) -> bool {
    OPENING.contains(&word) || is_type(word)
}

pub(super) fn base_type(word: &str) -> Option<BaseType> {
    BaseType::ALL
        .into_iter()
        .find(|base| base.keyword() == word)
}

/// The names of types, for "did you mean".
pub(super) fn type_words() -> Vec<&'static str> {
    let mut words: Vec<&str> = BaseType::ALL.iter().map(|base| base.keyword()).collect();
    words.push("array");
    words
}

/// The block that opens with these words, however they are spaced.
pub(super) fn block_kind(words: &[&str]) -> Option<BlockKind> {
    let joined = words.join(" ");
    BlockKind::ALL
        .into_iter()
        .find(|kind| kind.keyword() == joined)
}

/// The keyword of the block that an unknown name stands for.
pub(super) fn meant_keyword(written: &str) -> Option<&'static str> {
    let keywords = BlockKind::ALL.map(BlockKind::keyword);
    let spaced = written.replace('_', " ");
    if let Some(keyword) = keywords.into_iter().find(|keyword| *keyword == spaced) {
        return Some(keyword);
    }
    match written {
        "records" | "row" | "rows" | "private" => Some("record"),
        "public" | "hyperparameters" => Some("constants"),
        "transformed records" => Some("transformed record"),
        "transformed parameter" => Some("transformed parameters"),
        _ => {
            let meant = did_you_mean(written, &keywords)?;
            keywords.into_iter().find(|keyword| *keyword == meant)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_those_of_the_grammar() {
        let grammar = include_str!("../../grammar/dpm.pest");
        let (_, rest) = grammar
            .split_once("\nreserved = _{")
            .expect("the rule is there");
        let (body, _) = rest.split_once('}').expect("and ends");
        let mut written: Vec<&str> = body.split('"').skip(1).step_by(2).collect();
        let mut listed: Vec<&str> = RESERVED.to_vec();
        written.sort_unstable();
        listed.sort_unstable();
        assert_eq!(written, listed);
    }

    #[test]
    fn words_are_recognised() {
        assert!(["x", "x_1", "models"].into_iter().all(is_name));
        assert!(
            !["", "_x", "1x", "x.y", "\u{e9}", "model"]
                .into_iter()
                .any(is_name)
        );
        assert!(is_type("array") && is_type("simplex") && !is_type("simplexes"));
        assert_eq!(base_type("factor"), Some(BaseType::Factor));
        assert_eq!(
            block_kind(&["generated", "quantities"]),
            Some(BlockKind::GeneratedQuantities)
        );
        assert_eq!(block_kind(&["data"]), None);
    }
}

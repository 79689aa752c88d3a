//! Messages for formulas that cannot be read.

use pest::error::{ErrorVariant, InputLocation};

use super::grammar::Rule;
use crate::syntax::{Diagnostic, Span};

/// The error for text that pest could not read, with a caret at the farthest place that it reached.
pub(super) fn unread(error: &pest::error::Error<Rule>, text: &str) -> Diagnostic {
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let rest = &text[at..];
    let at = at + (rest.len() - rest.trim_start().len());
    let found = text[at..].chars().next();
    let end = at + found.map_or(0, char::len_utf8);
    let expected = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => {
            let mut words: Vec<&str> = positives.iter().filter_map(|&rule| word(rule)).collect();
            words.sort_unstable();
            words.dedup();
            words
        }
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    let message = match found {
        None => "the formula ends too early".to_owned(),
        Some(c) => format!("the formula cannot be read at `{c}`"),
    };
    let label = match &expected[..] {
        [] => String::new(),
        [one] => format!("expected {one}"),
        [first @ .., last] => format!("expected {} or {last}", first.join(", ")),
    };
    Diagnostic::error("F001", Span::new(at, end), message)
        .label(label)
        .help("a formula is `outcome ~ x + z + (1 | group)`")
}

fn word(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::name | Rule::variable | Rule::operand | Rule::response => "a column",
        Rule::addition => "`trials(n)`, `cens(c)` or `rate(e)`",
        Rule::sum | Rule::crossing | Rule::interaction | Rule::bracket | Rule::call => "a term",
        Rule::number => "a number",
        Rule::sign => "`+`, `-`",
        Rule::plus => "`+`",
        Rule::minus => "`-`",
        Rule::star => "`*`",
        Rule::colon => "`:`",
        Rule::caret => "`^`",
        Rule::tilde => "`~`",
        Rule::open_paren => "`(`",
        Rule::close_paren => "`)`",
        Rule::bar | Rule::double_bar | Rule::group_bar => "`|`",
        Rule::EOI => "the end",
        Rule::formula | Rule::WHITESPACE => return None,
    })
}

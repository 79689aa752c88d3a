//! The expectations of the grammar, in words of the language.

use std::collections::HashSet;

use super::grammar::Rule;

/// "`)`, `,` or an operator"; empty when nothing can be said.
pub(super) fn in_words(expected: &HashSet<Rule>) -> String {
    let after_operand = expected.contains(&Rule::add);
    let operand = wants_operand(expected);
    // After an operand `(`, `[`, `?` and `'` need no mention, nor do the brackets with which an
    // expression may begin.
    let goes_without_saying = |rule: &Rule| match rule {
        Rule::open_paren | Rule::open_bracket => after_operand || operand,
        Rule::question | Rule::indexing => after_operand,
        Rule::open_brace | Rule::identifier => operand,
        _ => false,
    };
    let mut words: Vec<&str> = expected
        .iter()
        .filter(|rule| !goes_without_saying(rule))
        .filter_map(|&rule| word(rule))
        .collect();
    // Marks first, and always in the same order.
    words.sort_unstable_by_key(|word| (!word.starts_with('`'), *word));
    words.dedup();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// Whether an expression may begin at this place.
pub(super) fn wants_operand(expected: &HashSet<Rule>) -> bool {
    [
        Rule::expression,
        Rule::binary,
        Rule::bound,
        Rule::integer,
        Rule::index,
        Rule::printed,
        Rule::call_arguments,
    ]
    .iter()
    .any(|rule| expected.contains(rule))
}

fn word(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::or
        | Rule::and
        | Rule::equal
        | Rule::not_equal
        | Rule::less_equal
        | Rule::greater_equal
        | Rule::less
        | Rule::greater
        | Rule::add
        | Rule::subtract
        | Rule::multiply
        | Rule::divide
        | Rule::integer_divide
        | Rule::modulo
        | Rule::left_divide
        | Rule::element_multiply
        | Rule::element_divide
        | Rule::element_power
        | Rule::power
        | Rule::transpose => "an operator",
        Rule::expression
        | Rule::binary
        | Rule::bound
        | Rule::name
        | Rule::integer
        | Rule::real
        | Rule::paren
        | Rule::row_vector_literal
        | Rule::array_literal
        | Rule::minus
        | Rule::plus
        | Rule::not
        | Rule::index
        | Rule::truncation_bound
        | Rule::printed
        | Rule::call_arguments => "an expression",
        Rule::text => "text in quotes",
        Rule::identifier | Rule::declarator => "a name",
        Rule::statement
        | Rule::if_statement
        | Rule::while_statement
        | Rule::for_statement
        | Rule::profile_statement
        | Rule::break_statement
        | Rule::continue_statement
        | Rule::return_statement
        | Rule::print_statement
        | Rule::reject_statement
        | Rule::target_statement
        | Rule::action
        | Rule::if_keyword
        | Rule::while_keyword
        | Rule::for_keyword
        | Rule::profile_keyword
        | Rule::break_keyword
        | Rule::continue_keyword
        | Rule::return_keyword
        | Rule::print_keyword
        | Rule::reject_keyword
        | Rule::target_keyword => "a statement",
        Rule::declaration | Rule::sized_type => "a declaration",
        Rule::plain_type
        | Rule::factor_type
        | Rule::type_keyword
        | Rule::array_keyword
        | Rule::factor_keyword
        | Rule::unsized_type
        | Rule::unsized_base
        | Rule::argument
        | Rule::data_keyword => "a type",
        Rule::return_type | Rule::void_keyword | Rule::function => "a function",
        Rule::function_body | Rule::scope | Rule::open_brace => "`{`",
        Rule::block
        | Rule::functions_block
        | Rule::foreign_block
        | Rule::functions_keyword
        | Rule::block_keyword
        | Rule::foreign_keyword => "a block",
        Rule::constraint | Rule::constraint_name => "`lower`, `upper`, `offset` or `multiplier`",
        Rule::assignment | Rule::assign_operator | Rule::assign => "`=`",
        Rule::sampling | Rule::tilde => "`~`",
        Rule::truncation | Rule::truncation_keyword => "a truncation `T[a, b]`",
        Rule::close_brace => "`}`",
        Rule::open_paren => "`(`",
        Rule::close_paren => "`)`",
        Rule::open_bracket
        | Rule::sizes
        | Rule::indexing
        | Rule::array_sizes
        | Rule::unsized_array
        | Rule::old_sizes
        | Rule::old_unsized => "`[`",
        Rule::close_bracket => "`]`",
        Rule::constraints | Rule::open_angle => "`<`",
        Rule::close_angle => "`>`",
        Rule::comma => "`,`",
        Rule::semicolon => "`;`",
        Rule::colon => "`:`",
        Rule::question => "`?`",
        Rule::bar => "`|`",
        Rule::plus_assign => "`+=`",
        Rule::in_keyword => "`in`",
        Rule::else_keyword => "`else`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_first_and_operators_are_one() {
        let expected = HashSet::from([
            Rule::add,
            Rule::power,
            Rule::comma,
            Rule::close_paren,
            Rule::open_bracket,
        ]);
        assert_eq!(in_words(&expected), "`)`, `,` or an operator");
        assert_eq!(in_words(&HashSet::from([Rule::EOI])), "");
        assert_eq!(in_words(&HashSet::from([Rule::colon])), "`:`");
    }

    /// Silent rules are never reported, and the end of the file is found, not expected.
    #[test]
    fn every_rule_has_a_name_for_readers() {
        let grammar = include_str!("../../grammar/dpm.pest");
        let unnamed: Vec<String> = Rule::all_rules()
            .iter()
            .filter(|rule| word(**rule).is_none())
            .map(|rule| format!("{rule:?}"))
            .filter(|rule| {
                let mut lines = grammar.lines();
                let silent = |line: &str| {
                    let body = line.strip_prefix(rule.as_str());
                    body.is_some_and(|body| body.trim_start().starts_with("= _{"))
                };
                !(lines.any(silent) || rule == "program")
            })
            .collect();
        assert!(unnamed.is_empty(), "{unnamed:?}");
    }
}

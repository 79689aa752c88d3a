//! What the grammar expected, in words of the language.

use std::collections::HashSet;

use super::parse::Rule;

/// "`)`, `,` or an operator"; empty when nothing can be said.
pub(super) fn in_words(expected: &HashSet<Rule>) -> String {
    let after_operand = expected.contains(&Rule::add);
    let operand = wants_operand(expected);
    // After an operand `(`, `[`, `?` and `'` go without saying, and so do the
    // brackets with which an expression may begin.
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
        Rule::statement => "a statement",
        Rule::declaration | Rule::sized_type => "a declaration",
        Rule::plain_type | Rule::factor_type | Rule::type_keyword => "a type",
        Rule::unsized_type | Rule::unsized_base | Rule::argument => "a type",
        Rule::return_type | Rule::function => "a function",
        Rule::function_body | Rule::scope | Rule::open_brace => "`{`",
        Rule::block | Rule::functions_block | Rule::foreign_block => "a block",
        Rule::constraint | Rule::constraint_name => "`lower`, `upper`, `offset` or `multiplier`",
        Rule::assignment | Rule::assign_operator | Rule::assign => "`=`",
        Rule::sampling | Rule::tilde => "`~`",
        Rule::truncation => "a truncation `T[a, b]`",
        Rule::close_brace => "`}`",
        Rule::open_paren => "`(`",
        Rule::close_paren => "`)`",
        Rule::open_bracket | Rule::sizes | Rule::indexing => "`[`",
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
}

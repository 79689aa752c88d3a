//! From the text of a formula to its terms.

#![expect(
    clippy::result_large_err,
    reason = "there is one error, and it ends the command"
)]

use pest::Parser;
use pest::iterators::Pair;

use super::explain::unread;
use super::grammar::{Grammar, Rule};
use super::tree::{Addition, Argument, Atom, Formula, Function, Group, Named, Sum, Term, Variable};
use crate::syntax::{Diagnostic, Span};

/// The formula, with its products expanded as R does.
pub(super) fn parse(text: &str) -> Result<Formula, Diagnostic> {
    if text.len() > LARGEST {
        let message = format!(
            "a formula may have {LARGEST} bytes, and this has {}",
            text.len()
        );
        return Err(Diagnostic::error("F001", Span::new(0, 0), message));
    }
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            let place = Span::new(at, at + 1);
            return Err(Diagnostic::error(
                "F001",
                place,
                "too many brackets in one another",
            ));
        }
    }
    let mut pairs = Grammar::parse(Rule::formula, text).map_err(|e| unread(&e, text))?;
    let mut parts = inner(pairs.next());
    let mut formula = Formula {
        response: Variable {
            column: Named {
                name: String::new(),
                span: Span::new(0, 0),
            },
            function: None,
        },
        additions: Vec::new(),
        sum: Sum {
            intercept: true,
            terms: Vec::new(),
        },
        offsets: Vec::new(),
        groups: Vec::new(),
    };
    for pair in parts.by_ref() {
        match pair.as_rule() {
            Rule::response => {
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::variable => formula.response = variable(part)?,
                        Rule::addition => formula.additions.push(addition(part)?),
                        _ => {}
                    }
                }
            }
            Rule::sum => {
                let mut reader = Reader {
                    offsets: Vec::new(),
                    groups: Vec::new(),
                };
                formula.sum = reader.sum(pair, true)?;
                formula.offsets = reader.offsets;
                formula.groups = reader.groups;
            }
            _ => {}
        }
    }
    Ok(formula)
}

/// The longest formula, in bytes; `*` makes many terms of a few words.
const LARGEST: usize = 10_000;
/// The parser calls itself for each bracket.
const DEEPEST: usize = 50;
/// The most terms of a sum.
const MOST_TERMS: usize = 500;

fn inner<'a>(pair: Option<Pair<'a, Rule>>) -> impl Iterator<Item = Pair<'a, Rule>> {
    pair.into_iter().flat_map(Pair::into_inner)
}

fn span(pair: &Pair<'_, Rule>) -> Span {
    let place = pair.as_span();
    Span::new(place.start(), place.end())
}

fn named(pair: &Pair<'_, Rule>) -> Named {
    Named {
        name: pair.as_str().trim_matches('`').to_owned(),
        span: span(pair),
    }
}

fn of_rule<'a>(pair: &Pair<'a, Rule>, rule: Rule) -> Vec<Pair<'a, Rule>> {
    let parts = pair.clone().into_inner();
    parts.filter(|part| part.as_rule() == rule).collect()
}

fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("F002", span, message)
}

fn variable(pair: Pair<'_, Rule>) -> Result<Variable, Diagnostic> {
    let names = of_rule(&pair, Rule::name);
    match &names[..] {
        [function, column] => Ok(Variable {
            column: named(column),
            function: Some(function_of(&named(function))?),
        }),
        [column] => Ok(Variable {
            column: named(column),
            function: None,
        }),
        _ => Err(wrong(span(&pair), "expected the name of a column")),
    }
}

fn function_of(word: &Named) -> Result<Function, Diagnostic> {
    let all = [Function::Log, Function::Log1p, Function::Sqrt];
    let found = all.into_iter().find(|f| f.name() == word.name);
    found.ok_or_else(|| {
        wrong(
            word.span,
            format!("`{}` is not a function that a formula can have", word.name),
        )
        .label("not known")
        .help("expected `log(x)`, `log1p(x)`, `sqrt(x)`, `I(x^2)`, `offset(x)` or `offset(log(x))`; anything else can be written into the program afterwards")
    })
}

fn addition(pair: Pair<'_, Rule>) -> Result<Addition, Diagnostic> {
    let names = of_rule(&pair, Rule::name);
    let numbers = of_rule(&pair, Rule::number);
    let argument = match (names.get(1), numbers.first()) {
        (Some(column), None) => Argument::Column(named(column)),
        (Some(column), Some(one)) if one.as_str() == "1" => Argument::OneMinus(named(column)),
        (None, Some(count)) => Argument::Number(whole(count)?),
        (_, Some(number)) => return Err(wrong(span(number), "expected `1 -` before a column")),
        (None, None) => return Err(wrong(span(&pair), "expected a column")),
    };
    let function = names.first().map_or_else(
        || Err(wrong(span(&pair), "expected a name")),
        |name| Ok(named(name)),
    )?;
    Ok(Addition { function, argument })
}

fn whole(pair: &Pair<'_, Rule>) -> Result<i64, Diagnostic> {
    let read = pair.as_str().parse::<u32>().map(i64::from);
    read.map_err(|_| wrong(span(pair), "this number is too large"))
}

struct Reader {
    offsets: Vec<Variable>,
    groups: Vec<Group>,
}

impl Reader {
    /// `whole`: offsets and groups may stand here.
    fn sum(&mut self, pair: Pair<'_, Rule>, whole: bool) -> Result<Sum, Diagnostic> {
        let mut sum = Sum {
            intercept: true,
            terms: Vec::new(),
        };
        let place = span(&pair);
        let mut adds = true;
        for part in pair.into_inner() {
            if part.as_rule() == Rule::sign {
                adds = part.as_str() == "+";
                continue;
            }
            match single(&part) {
                Some(one) if one.as_rule() == Rule::number => {
                    sum.intercept = match (one.as_str(), adds) {
                        ("1", adds) => adds,
                        ("0", adds) => !adds,
                        _ => {
                            return Err(wrong(span(&one), "expected a column, or 0 or 1")
                                .help("`1` is the intercept, and `0 +` leaves it out"));
                        }
                    };
                }
                Some(one) if adds && whole && is_offset(&one) => {
                    let variables = of_rule(&one, Rule::variable);
                    for part in variables {
                        self.offsets.push(variable(part)?);
                    }
                }
                Some(one) if adds && whole && has_group(&one) => {
                    let group = self.group(one)?;
                    self.groups.push(group);
                }
                _ => {
                    for term in self.crossing(part)? {
                        let known = sum.terms.iter().position(|t| t.is(&term));
                        match (known, adds) {
                            (None, true) => sum.terms.push(term),
                            (Some(at), false) => {
                                sum.terms.remove(at);
                            }
                            _ => {}
                        }
                    }
                }
            }
            if sum.terms.len() > MOST_TERMS {
                let message = format!("the formula has more than {MOST_TERMS} terms");
                return Err(wrong(place, message));
            }
        }
        // As in R: main effects first, then interactions by their order.
        sum.terms.sort_by_key(|term| term.0.len());
        Ok(sum)
    }

    fn crossing(&mut self, pair: Pair<'_, Rule>) -> Result<Vec<Term>, Diagnostic> {
        let mut all: Vec<Term> = Vec::new();
        for part in of_rule(&pair, Rule::interaction) {
            let more = self.interaction(part)?;
            let products: Vec<Term> = pairs(&all, &more);
            all.extend(more);
            all.extend(products);
            if all.len() > MOST_TERMS {
                let message = format!("the formula has more than {MOST_TERMS} terms");
                return Err(wrong(span(&pair), message));
            }
        }
        Ok(all)
    }

    fn interaction(&mut self, pair: Pair<'_, Rule>) -> Result<Vec<Term>, Diagnostic> {
        let mut all = vec![Term(Vec::new())];
        for operand in pair.into_inner() {
            if operand.as_rule() == Rule::colon {
                continue;
            }
            let more = self.operand(operand)?;
            all = pairs(&all, &more);
        }
        Ok(all)
    }

    fn operand(&mut self, pair: Pair<'_, Rule>) -> Result<Vec<Term>, Diagnostic> {
        let place = span(&pair);
        match pair.as_rule() {
            Rule::name => Ok(vec![Term(vec![Atom {
                variable: Variable {
                    column: named(&pair),
                    function: None,
                },
                power: 1,
            }])]),
            Rule::call if is_offset(&pair) => Err(wrong(place, "an offset is a term of its own")
                .help("write it as `+ offset(x)`, outside of brackets and products")),
            Rule::call => Ok(vec![Term(vec![call(pair)?])]),
            Rule::bracket if has_group(&pair) => {
                Err(wrong(place, "a term by group is a term of its own")
                    .help("write it as `+ (1 | g)`, outside of brackets and products"))
            }
            Rule::bracket => {
                let mut terms = Vec::new();
                for sum in of_rule(&pair, Rule::sum) {
                    terms.extend(self.sum(sum, false)?.terms);
                }
                Ok(terms)
            }
            _ => Err(wrong(place, "expected a column")
                .help("a number is a term by itself: `1 +` for the intercept, `0 +` for none")),
        }
    }

    fn group(&mut self, pair: Pair<'_, Rule>) -> Result<Group, Diagnostic> {
        let place = span(&pair);
        let correlated = of_rule(&pair, Rule::group_bar)
            .iter()
            .all(|bar| bar.as_str() == "|");
        let by = of_rule(&pair, Rule::name).first().map(named);
        let sum = of_rule(&pair, Rule::sum).into_iter().next();
        let (Some(by), Some(sum)) = (by, sum) else {
            return Err(wrong(place, "expected `(1 | g)`"));
        };
        let sum = self.sum(sum, false)?;
        if !sum.intercept && sum.terms.is_empty() {
            return Err(wrong(place, "nothing varies by group here")
                .help("write `(1 | g)` for an intercept of each group"));
        }
        Ok(Group {
            sum,
            by,
            correlated,
        })
    }
}

fn pairs(left: &[Term], right: &[Term]) -> Vec<Term> {
    let products = left.iter().flat_map(|a| right.iter().map(|b| a.times(b)));
    products.take(MOST_TERMS + 1).collect()
}

/// The one operand of a crossing that is no product.
fn single<'a>(crossing: &Pair<'a, Rule>) -> Option<Pair<'a, Rule>> {
    let mut interactions = crossing.clone().into_inner();
    let (only, None) = (interactions.next()?, interactions.next()) else {
        return None;
    };
    let mut operands = only.into_inner();
    match (operands.next(), operands.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn is_offset(pair: &Pair<'_, Rule>) -> bool {
    let word = of_rule(pair, Rule::name);
    pair.as_rule() == Rule::call && word.first().is_some_and(|w| w.as_str() == "offset")
}

fn has_group(pair: &Pair<'_, Rule>) -> bool {
    pair.as_rule() == Rule::bracket && !of_rule(pair, Rule::group_bar).is_empty()
}

/// `log(x)` or `I(x^2)`.
fn call(pair: Pair<'_, Rule>) -> Result<Atom, Diagnostic> {
    let place = span(&pair);
    let words = of_rule(&pair, Rule::name);
    let variables = of_rule(&pair, Rule::variable);
    let (Some(word), Some(argument)) = (words.first(), variables.first()) else {
        return Err(wrong(place, "expected a function of a column"));
    };
    let power = of_rule(&pair, Rule::number).first().map(whole);
    let (word, mut variable) = (named(word), variable(argument.clone())?);
    match (word.name.as_str(), power.transpose()?) {
        ("I", Some(power @ 1..=6)) => Ok(Atom {
            variable,
            power: u32::try_from(power).unwrap_or(1),
        }),
        ("I", Some(_)) => Err(wrong(place, "expected a power from 1 to 6")),
        ("I", None) => Ok(Atom { variable, power: 1 }),
        (_, Some(_)) => Err(wrong(place, "powers go into `I()`")
            .help(format!("write `I({}^2)`", variable.column.name))),
        // What is coded as a factor, the codebook says.
        ("factor", None) => Err(
            wrong(place, "the codebook says what is a factor").help(format!(
                "add `levels:` to `{0}` there, and write `{0}`",
                variable.column.name
            )),
        ),
        (_, None) if variable.function.is_some() => {
            Err(wrong(place, "a function of a function is not known here"))
        }
        (_, None) => {
            variable.function = Some(function_of(&word)?);
            Ok(Atom { variable, power: 1 })
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;

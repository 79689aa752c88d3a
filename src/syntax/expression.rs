//! Expressions: precedence and literals.

use std::sync::LazyLock;

use pest::iterators::Pair;
use pest::pratt_parser::{Assoc, Op, PrattParser};

use super::builder::{Builder, parts};
use super::diagnostic::Diagnostic;
use super::grammar::Rule;
use super::tree::{BinaryOperator, Expr, ExprKind, IndexExpr, Span, UnaryOperator};

/// The most operators above one another in one expression: readers of the tree recurse into it, and
/// `1 + 1 + ...` is as deep as it is long.
const TALLEST: usize = 400;

/// From the loosest to the tightest, as in stanc3's `parser.mly`: `\` and `%/%`
/// bind tighter than `*`, and `.*` as tight as `*`.
static PRECEDENCE: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let left = |rule| Op::infix(rule, Assoc::Left);
    let right = |rule| Op::infix(rule, Assoc::Right);
    PrattParser::new()
        .op(left(Rule::or))
        .op(left(Rule::and))
        .op(left(Rule::equal) | left(Rule::not_equal))
        .op(left(Rule::less)
            | left(Rule::less_equal)
            | left(Rule::greater)
            | left(Rule::greater_equal))
        .op(left(Rule::add) | left(Rule::subtract))
        .op(left(Rule::multiply)
            | left(Rule::divide)
            | left(Rule::modulo)
            | left(Rule::element_multiply)
            | left(Rule::element_divide))
        .op(left(Rule::left_divide) | left(Rule::integer_divide))
        .op(Op::prefix(Rule::minus) | Op::prefix(Rule::plus) | Op::prefix(Rule::not))
        .op(right(Rule::power) | right(Rule::element_power))
        .op(Op::postfix(Rule::transpose) | Op::postfix(Rule::indexing))
});

impl Builder<'_> {
    /// Builds `expression`, `binary` or `bound`.
    pub(super) fn expression(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        if pair.as_rule() != Rule::expression {
            return self.binary(pair);
        }
        let mut children = parts(pair).filter(|child| child.as_rule() != Rule::colon);
        let condition = children.next()?;
        let Some(then) = children.next() else {
            return self.binary(condition);
        };
        let otherwise = children.next()?;
        self.depth += 1;
        let condition = self.binary(condition);
        let then = self.expression(then);
        let otherwise = self.expression(otherwise);
        self.depth -= 1;
        let (condition, then, otherwise) = (condition?, then?, otherwise?);
        let span = condition.span.to(otherwise.span);
        let kind = ExprKind::Ternary {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        Some(Expr { kind, span })
    }

    fn binary(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let span = self.span(&pair);
        let children: Vec<Pair<'_, Rule>> = pair.into_inner().collect();
        let height = children.len();
        if self.depth + height > TALLEST {
            self.diagnostics.push(
                Diagnostic::error(
                    "S008",
                    span,
                    format!("this expression has more than {TALLEST} operators in a row"),
                )
                .label("too long")
                .help("give a name to a part of it, in a variable of its own; or use `sum`"),
            );
            let kind = ExprKind::Int(0);
            return Some(Expr { kind, span });
        }
        self.depth += height;
        let built = self.climb(children);
        self.depth -= height;
        built
    }

    fn climb(&mut self, children: Vec<Pair<'_, Rule>>) -> Option<Expr> {
        // Operands and indices are built first: the closures below cannot share
        // the builder.
        let mut operands = std::collections::HashMap::new();
        let mut indices = std::collections::HashMap::new();
        let mut spans = std::collections::HashMap::new();
        for child in &children {
            let place = child.as_span().start();
            spans.insert(place, self.span(child));
            match child.as_rule() {
                Rule::indexing => {
                    indices.insert(place, self.indices(child.clone())?);
                }
                rule if is_operand(rule) => {
                    operands.insert(place, self.operand(child.clone())?);
                }
                _ => {}
            }
        }
        let span_of = |pair: &Pair<'_, Rule>| spans.get(&pair.as_span().start()).copied();
        PRECEDENCE
            .map_primary(|operand| operands.remove(&operand.as_span().start()))
            .map_prefix(|operator, operand| {
                let operand = operand?;
                let span = span_of(&operator)?.to(operand.span);
                let operator = unary_operator(operator.as_rule())?;
                let kind = ExprKind::Unary {
                    operator,
                    operand: Box::new(operand),
                };
                Some(Expr { kind, span })
            })
            .map_postfix(|base, postfix| {
                let base = base?;
                let span = base.span.to(span_of(&postfix)?);
                let kind = if postfix.as_rule() == Rule::transpose {
                    ExprKind::Transpose(Box::new(base))
                } else {
                    ExprKind::Index {
                        base: Box::new(base),
                        indices: indices.remove(&postfix.as_span().start())?,
                    }
                };
                Some(Expr { kind, span })
            })
            .map_infix(|left, operator, right| {
                let (left, right) = (left?, right?);
                let span = left.span.to(right.span);
                let kind = ExprKind::Binary {
                    operator: binary_operator(operator.as_rule())?,
                    left: Box::new(left),
                    right: Box::new(right),
                };
                Some(Expr { kind, span })
            })
            .parse(children.into_iter())
    }

    fn operand(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::integer => self.integer(pair.as_str(), span),
            Rule::real => self.real(pair.as_str(), span),
            Rule::text => ExprKind::String(self.text(&pair).value),
            Rule::paren => {
                let inner = parts(pair).next()?;
                ExprKind::Paren(Box::new(self.expression(inner)?))
            }
            Rule::row_vector_literal => ExprKind::RowVectorLiteral(self.expressions(pair)?),
            Rule::array_literal => ExprKind::ArrayLiteral(self.expressions(pair)?),
            Rule::name => return self.name(pair, span),
            _ => return None,
        };
        Some(Expr { kind, span })
    }

    fn name(&mut self, pair: Pair<'_, Rule>, span: Span) -> Option<Expr> {
        let mut children = parts(pair);
        let name = self.ident(&children.next()?);
        let Some(arguments) = children.next() else {
            let kind = ExprKind::Variable(name.name);
            return Some(Expr { kind, span });
        };
        let conditioned = arguments
            .clone()
            .into_inner()
            .any(|child| child.as_rule() == Rule::bar);
        let arguments = parts(arguments)
            .filter(|child| child.as_rule() != Rule::bar)
            .map(|child| self.expression(child))
            .collect::<Option<Vec<_>>>()?;
        let kind = ExprKind::Call {
            name,
            arguments,
            conditioned,
        };
        Some(Expr { kind, span })
    }

    /// The expressions and texts among the children.
    pub(super) fn expressions(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Expr>> {
        parts(pair)
            .map(|child| match child.as_rule() {
                Rule::text => self.operand(child),
                _ => self.expression(child),
            })
            .collect()
    }

    fn indices(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<IndexExpr>> {
        parts(pair).map(|index| self.index(index)).collect()
    }

    fn index(&mut self, pair: Pair<'_, Rule>) -> Option<IndexExpr> {
        let span = self.span(&pair);
        let mut children = pair.into_inner().peekable();
        let from = match children.next_if(|child| child.as_rule() == Rule::expression) {
            Some(child) => Some(self.expression(child)?),
            None => None,
        };
        let colon = children.next();
        let to = match children.next() {
            Some(child) => Some(self.expression(child)?),
            None => None,
        };
        Some(match (from, colon) {
            (Some(at), None) => IndexExpr::At(at),
            (from, _) => IndexExpr::Range { from, to, span },
        })
    }

    fn integer(&mut self, written: &str, span: Span) -> ExprKind {
        let digits = written.replace('_', "");
        match digits.parse::<i64>() {
            Ok(value) => ExprKind::Int(value),
            Err(_) => {
                self.diagnostics.push(
                    Diagnostic::error("S009", span, "this whole number is too large")
                        .label(format!("the largest `int` is {}", i64::MAX))
                        .help(format!("for a `real` write `{written}.0`")),
                );
                ExprKind::Int(i64::MAX)
            }
        }
    }

    fn real(&mut self, written: &str, span: Span) -> ExprKind {
        let value = written.replace('_', "").parse::<f64>().unwrap_or(f64::NAN);
        if !value.is_finite() {
            self.diagnostics.push(
                Diagnostic::error("S009", span, "this number is too large")
                    .label("the largest `real` is about 1.8e308")
                    .help("for infinity write `positive_infinity()`"),
            );
            return ExprKind::Real(f64::MAX);
        }
        ExprKind::Real(value)
    }
}

fn is_operand(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::integer
            | Rule::real
            | Rule::name
            | Rule::paren
            | Rule::row_vector_literal
            | Rule::array_literal
    )
}

fn unary_operator(rule: Rule) -> Option<UnaryOperator> {
    Some(match rule {
        Rule::minus => UnaryOperator::Minus,
        Rule::plus => UnaryOperator::Plus,
        Rule::not => UnaryOperator::Not,
        _ => return None,
    })
}

fn binary_operator(rule: Rule) -> Option<BinaryOperator> {
    Some(match rule {
        Rule::or => BinaryOperator::Or,
        Rule::and => BinaryOperator::And,
        Rule::equal => BinaryOperator::Equal,
        Rule::not_equal => BinaryOperator::NotEqual,
        Rule::less => BinaryOperator::Less,
        Rule::less_equal => BinaryOperator::LessEqual,
        Rule::greater => BinaryOperator::Greater,
        Rule::greater_equal => BinaryOperator::GreaterEqual,
        Rule::add => BinaryOperator::Add,
        Rule::subtract => BinaryOperator::Subtract,
        Rule::multiply => BinaryOperator::Multiply,
        Rule::divide => BinaryOperator::Divide,
        Rule::integer_divide => BinaryOperator::IntegerDivide,
        Rule::modulo => BinaryOperator::Modulo,
        Rule::left_divide => BinaryOperator::LeftDivide,
        Rule::element_multiply => BinaryOperator::ElementMultiply,
        Rule::element_divide => BinaryOperator::ElementDivide,
        Rule::power => BinaryOperator::Power,
        Rule::element_power => BinaryOperator::ElementPower,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::super::tree::StatementKind;
    use super::*;

    fn expression(text: &str) -> Expr {
        let parsed = parse(&format!("model {{ x = {text}; }}"));
        assert_eq!(parsed.diagnostics, [], "{text}");
        let program = parsed.program.expect("it parses");
        match &program.blocks[0].statements[0].kind {
            StatementKind::Assign { value, .. } => value.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// In Lisp notation, to show precedence.
    fn shape(expr: &Expr) -> String {
        let all = |list: &[Expr]| list.iter().map(shape).collect::<Vec<_>>().join(" ");
        let some = |e: &Option<Expr>| e.as_ref().map(shape).unwrap_or_default();
        match &expr.kind {
            ExprKind::Int(value) => value.to_string(),
            ExprKind::Real(value) => format!("{value:?}"),
            ExprKind::String(value) => format!("{value:?}"),
            ExprKind::Variable(name) => name.clone(),
            ExprKind::Call {
                name,
                arguments,
                conditioned,
            } => {
                let bar = if *conditioned { "|" } else { "" };
                format!("({}{bar} {})", name.name, all(arguments))
            }
            ExprKind::Index { base, indices } => {
                let indices: Vec<String> = indices
                    .iter()
                    .map(|index| match index {
                        IndexExpr::At(at) => shape(at),
                        IndexExpr::Range { from, to, .. } => {
                            format!("{}:{}", some(from), some(to))
                        }
                    })
                    .collect();
                format!("{}[{}]", shape(base), indices.join(","))
            }
            ExprKind::Unary { operator, operand } => {
                format!("({} {})", operator.symbol(), shape(operand))
            }
            ExprKind::Binary {
                operator,
                left,
                right,
            } => format!("({} {} {})", operator.symbol(), shape(left), shape(right)),
            ExprKind::Ternary {
                condition,
                then,
                otherwise,
            } => format!(
                "(? {} {} {})",
                shape(condition),
                shape(then),
                shape(otherwise)
            ),
            ExprKind::Transpose(inner) => format!("{}'", shape(inner)),
            ExprKind::RowVectorLiteral(list) => format!("[{}]", all(list)),
            ExprKind::ArrayLiteral(list) => format!("{{{}}}", all(list)),
            ExprKind::Paren(inner) => format!("<{}>", shape(inner)),
        }
    }

    #[test]
    fn precedence_is_stans() {
        for (text, expected) in [
            ("a + b * c", "(+ a (* b c))"),
            ("a - b - c", "(- (- a b) c)"),
            ("a * b .* c / d", "(/ (.* (* a b) c) d)"),
            ("a * b \\ c", "(* a (\\ b c))"),
            ("a %/% b % c", "(% (%/% a b) c)"),
            ("-a \\ b", "(\\ (- a) b)"),
            ("-a ^ b", "(- (^ a b))"),
            ("a ^ -b ^ c * d", "(* (^ a (- (^ b c))) d)"),
            ("a ^ b .^ c", "(^ a (.^ b c))"),
            ("!a == b", "(== (! a) b)"),
            ("- -a'", "(- (- a'))"),
            ("a ^ b'[1]", "(^ a b'[1])"),
            ("a < b == c > d", "(== (< a b) (> c d))"),
            ("a || b && c == d", "(|| a (&& b (== c d)))"),
            ("a ? b : c ? d : e", "(? a b (? c d e))"),
            ("a ? b ? c : d : e || f", "(? a (? b c d) (|| e f))"),
            ("(a + b) * c", "(* <(+ a b)> c)"),
            ("a <-b", "(< a (- b))"),
        ] {
            assert_eq!(shape(&expression(text)), expected, "{text}");
        }
    }

    #[test]
    fn literals_calls_and_indices() {
        for (text, expected) in [
            ("1_000 + 1. + .5", "(+ (+ 1000 1.0) 0.5)"),
            ("1e-3 * 1.5E+10", "(* 0.001 15000000000.0)"),
            ("2.*x", "(* 2.0 x)"),
            ("f()", "(f )"),
            ("normal_lpdf(y | mu, s)", "(normal_lpdf| y mu s)"),
            ("std_normal_lpdf(y | )", "(std_normal_lpdf| y)"),
            ("{1, 2}", "{1 2}"),
            ("[[1, 2], [3, 4]]'", "[[1 2] [3 4]]'"),
            ("[]", "[]"),
            ("x[1:2, , 3:, :4, :, i]", "x[1:2,:,3:,:4,:,i]"),
            ("x[a ? b : c : d]", "x[(? a b c):d]"),
            ("x[1][2]", "x[1][2]"),
            ("f(x)[1]'", "(f x)[1]'"),
        ] {
            assert_eq!(shape(&expression(text)), expected, "{text}");
        }
    }

    #[test]
    fn spans_end_with_the_last_word() {
        let source = "model { x = a + b[1] /* c */ ; }";
        let parsed = parse(source);
        let program = parsed.program.expect("it parses");
        let StatementKind::Assign { value, target, .. } = &program.blocks[0].statements[0].kind
        else {
            panic!("an assignment");
        };
        assert_eq!(&source[value.span.range()], "a + b[1]");
        assert_eq!(&source[target.span.range()], "x");
    }

    #[test]
    fn long_chains_are_refused_and_do_not_overflow() {
        for operator in ["+", "^", "&& -", "' +"] {
            let chain = |terms: usize| {
                let text = vec!["a"; terms].join(&format!(" {operator} "));
                parse(&format!("model {{ x = {text}; }}"))
            };
            assert_eq!(chain(100).diagnostics, [], "{operator}");
            let long = chain(20_000);
            assert_eq!(long.diagnostics.len(), 1);
            assert_eq!(long.diagnostics[0].code, "S008");
        }
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        for (text, code) in [("99999999999999999999", "S009"), ("1e999", "S009")] {
            let parsed = parse(&format!("model {{ x = {text}; }}"));
            assert_eq!(parsed.diagnostics.len(), 1);
            assert_eq!(parsed.diagnostics[0].code, code);
        }
    }
}

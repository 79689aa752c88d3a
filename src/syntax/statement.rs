//! Statements.

use pest::iterators::Pair;

use super::builder::{Builder, parts};
use super::diagnostic::Diagnostic;
use super::grammar::Rule;
use super::suggestion::did_you_mean;
use super::tree::{
    AssignOperator, BinaryOperator, Expr, ExprKind, Span, Statement, StatementKind, Truncation,
    UnaryOperator,
};
use super::words;

impl Builder<'_> {
    /// Statements and declarations, in order; other pairs are left to the caller.
    pub(super) fn statements<'p>(
        &mut self,
        pairs: impl Iterator<Item = Pair<'p, Rule>>,
    ) -> Vec<Statement> {
        let mut found = Vec::new();
        for pair in pairs {
            let span = self.span(&pair);
            let built = match pair.as_rule() {
                Rule::declaration => self.declaration(pair),
                Rule::statement => self.statement(pair).map(|statement| vec![statement]),
                _ => continue,
            };
            match built {
                Some(statements) => found.extend(statements),
                None => self.lost(span),
            }
        }
        found
    }

    fn statement(&mut self, pair: Pair<'_, Rule>) -> Option<Statement> {
        let span = self.span(&pair);
        let kind = self.statement_kind(pair.into_inner().next()?)?;
        Some(Statement { kind, span })
    }

    fn statement_kind(&mut self, pair: Pair<'_, Rule>) -> Option<StatementKind> {
        let rule = pair.as_rule();
        match rule {
            Rule::action => return self.action(pair),
            Rule::scope => return Some(StatementKind::Block(self.statements(parts(pair)))),
            Rule::for_statement => return self.for_loop(pair),
            _ => {}
        }
        let mut children = parts(pair);
        Some(match rule {
            Rule::if_statement => StatementKind::If {
                condition: self.expression(children.next()?)?,
                then: Box::new(self.statement(children.next()?)?),
                otherwise: match children.next() {
                    Some(child) => Some(Box::new(self.statement(child)?)),
                    None => None,
                },
            },
            Rule::while_statement => StatementKind::While {
                condition: self.expression(children.next()?)?,
                body: Box::new(self.statement(children.next()?)?),
            },
            Rule::profile_statement => {
                let scope = children.find(|child| child.as_rule() == Rule::scope)?;
                StatementKind::Block(self.statements(parts(scope)))
            }
            Rule::break_statement => StatementKind::Break,
            Rule::continue_statement => StatementKind::Continue,
            Rule::return_statement => StatementKind::Return(match children.next() {
                Some(child) => Some(self.expression(child)?),
                None => None,
            }),
            Rule::print_statement => StatementKind::Print(self.expressions(children.next()?)?),
            Rule::reject_statement => StatementKind::Reject(self.expressions(children.next()?)?),
            Rule::target_statement => StatementKind::Target {
                value: self.expression(children.next()?)?,
            },
            Rule::semicolon => StatementKind::Empty,
            _ => return None,
        })
    }

    fn for_loop(&mut self, pair: Pair<'_, Rule>) -> Option<StatementKind> {
        let mut children = parts(pair);
        let variable = self.ident(&children.next()?);
        let from = self.expression(children.next()?)?;
        let next = children.next()?;
        if next.as_rule() != Rule::colon {
            return Some(StatementKind::ForEach {
                variable,
                container: from,
                body: Box::new(self.statement(next)?),
            });
        }
        Some(StatementKind::ForRange {
            variable,
            from,
            to: self.expression(children.next()?)?,
            body: Box::new(self.statement(children.next()?)?),
        })
    }

    fn action(&mut self, pair: Pair<'_, Rule>) -> Option<StatementKind> {
        let mut children = parts(pair);
        let subject = self.expression(children.next()?)?;
        match children.next() {
            None => Some(self.lone_expression(subject)),
            Some(tail) if tail.as_rule() == Rule::assignment => {
                let mut children = parts(tail);
                let operator = assign_operator(children.next()?.as_str());
                let value = self.expression(children.next()?)?;
                Some(self.assignment(subject, operator, value))
            }
            Some(tail) => self.sampling(subject, tail),
        }
    }

    fn assignment(&mut self, target: Expr, operator: AssignOperator, value: Expr) -> StatementKind {
        if !is_assignable(&target) {
            let diagnostic =
                Diagnostic::error("S011", target.span, "cannot assign to this expression")
                    .label("not a variable");
            self.diagnostics.push(match misspelt_type(&target) {
                Some((span, name, meant)) => {
                    Diagnostic::error("S001", span, format!("`{name}` is not a type"))
                        .label(format!("did you mean `{meant}`?"))
                }
                None => diagnostic
                    .help("the left of `=` must be a variable or a part of one, as in `x[1]`"),
            });
            return StatementKind::Empty;
        }
        StatementKind::Assign {
            target,
            operator,
            value,
        }
    }

    fn sampling(&mut self, variate: Expr, pair: Pair<'_, Rule>) -> Option<StatementKind> {
        let mut distribution = None;
        let mut arguments = Vec::new();
        let mut truncation = None;
        for child in parts(pair) {
            match child.as_rule() {
                Rule::identifier => distribution = Some(self.ident(&child)),
                Rule::truncation => truncation = Some(self.truncation(child)?),
                _ => arguments.push(self.expression(child)?),
            }
        }
        Some(StatementKind::Sampling {
            variate,
            distribution: distribution?,
            arguments,
            truncation,
        })
    }

    fn truncation(&mut self, pair: Pair<'_, Rule>) -> Option<Truncation> {
        let span = self.span(&pair);
        let mut bounds = Vec::new();
        for bound in parts(pair) {
            bounds.push(match bound.into_inner().next() {
                Some(child) => Some(self.expression(child)?),
                None => None,
            });
        }
        let upper = bounds.pop()?;
        let lower = bounds.pop()?;
        Some(Truncation { lower, upper, span })
    }

    /// A call may be a statement by itself; any other expression is a mistake.
    fn lone_expression(&mut self, expr: Expr) -> StatementKind {
        let at = expr.span;
        let diagnostic = match expr.kind {
            ExprKind::Call {
                name,
                mut arguments,
                conditioned,
            } => {
                if name.name == "increment_log_prob" && arguments.len() == 1 {
                    self.diagnostics.push(
                        Diagnostic::error("S007", name.span, "there is no `increment_log_prob`")
                            .label("from before Stan 2.10")
                            .help("write `target += ...;`"),
                    );
                    if let Some(value) = arguments.pop() {
                        return StatementKind::Target { value };
                    }
                    return StatementKind::Empty;
                }
                if !conditioned {
                    return StatementKind::Call { name, arguments };
                }
                Diagnostic::error("S011", at, "the value of this density is not used")
                    .label("computed and thrown away")
                    .help(format!("write `target += {}(...);`", name.name))
            }
            ExprKind::Binary {
                operator: BinaryOperator::Less,
                left,
                right,
            } if is_arrow(&left, &right) => {
                let arrow = Span::new(left.span.end, right.span.start + 1);
                self.diagnostics.push(
                    Diagnostic::error("S007", arrow, "`<-` does not assign")
                        .label("this reads \"less than minus\"")
                        .help("write `=`"),
                );
                return self.assignment(*left, AssignOperator::Set, *right);
            }
            ExprKind::Binary {
                operator: BinaryOperator::Equal,
                ..
            } => Diagnostic::error("S011", at, "this comparison is not used")
                .label("`==` compares")
                .help("write `=` to assign"),
            _ => Diagnostic::error("S011", at, "this expression is not a statement")
                .label("computed and thrown away")
                .help("`=` assigns, `~` gives a distribution, and `target +=` adds to the log density"),
        };
        self.diagnostics.push(diagnostic);
        StatementKind::Empty
    }
}

fn assign_operator(written: &str) -> AssignOperator {
    AssignOperator::With(match written {
        "+=" => BinaryOperator::Add,
        "-=" => BinaryOperator::Subtract,
        "*=" => BinaryOperator::Multiply,
        "/=" => BinaryOperator::Divide,
        ".*=" => BinaryOperator::ElementMultiply,
        "./=" => BinaryOperator::ElementDivide,
        _ => return AssignOperator::Set,
    })
}

fn is_assignable(target: &Expr) -> bool {
    match &target.kind {
        ExprKind::Variable(_) => true,
        ExprKind::Index { base, .. } => is_assignable(base),
        _ => false,
    }
}

/// `x <- e` reads as `x < -e`.
fn is_arrow(left: &Expr, right: &Expr) -> bool {
    is_assignable(left) && begins_with_minus(right)
}

fn begins_with_minus(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Unary { operator, .. } => *operator == UnaryOperator::Minus,
        ExprKind::Binary { left, .. } => begins_with_minus(left),
        _ => false,
    }
}

/// `rael<lower=0> x;` reads as an assignment to `rael < lower`.
fn misspelt_type(target: &Expr) -> Option<(Span, String, &'static str)> {
    let ExprKind::Binary { left, right, .. } = &target.kind else {
        return None;
    };
    let (ExprKind::Variable(name), ExprKind::Variable(bound)) = (&left.kind, &right.kind) else {
        return None;
    };
    if !matches!(bound.as_str(), "lower" | "upper" | "offset" | "multiplier") {
        return None;
    }
    let types = words::type_words();
    let meant = did_you_mean(name, types.iter().copied())?;
    let meant = types.iter().find(|word| **word == meant)?;
    Some((left.span, name.clone(), meant))
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn statements(text: &str) -> Vec<StatementKind> {
        let parsed = parse(&format!("model {{ {text} }}"));
        assert_eq!(parsed.diagnostics, [], "{text}");
        let program = parsed.program.expect("it parses");
        let block = program.blocks.into_iter().next().expect("one block");
        block.statements.into_iter().map(|s| s.kind).collect()
    }

    fn message(text: &str) -> String {
        let parsed = parse(&format!("model {{ {text} }}"));
        assert_eq!(parsed.diagnostics.len(), 1, "{text}");
        parsed.diagnostics[0].message.clone()
    }

    #[test]
    fn each_statement_has_its_node() {
        use StatementKind::*;
        assert!(matches!(
            statements("x = 1;")[..],
            [Assign {
                operator: AssignOperator::Set,
                ..
            }]
        ));
        assert!(matches!(
            statements("x[1] .*= 2;")[..],
            [Assign {
                operator: AssignOperator::With(BinaryOperator::ElementMultiply),
                ..
            }]
        ));
        assert!(matches!(statements("target += 1;")[..], [Target { .. }]));
        assert!(matches!(statements("f(1);")[..], [Call { .. }]));
        assert!(matches!(
            statements("for (i in 1:2) ;")[..],
            [ForRange { .. }]
        ));
        assert!(matches!(statements("for (i in x) ;")[..], [ForEach { .. }]));
        assert!(matches!(statements("while (1) break;")[..], [While { .. }]));
        assert!(matches!(statements("profile(\"a\") { ; }")[..], [Block(_)]));
        assert!(matches!(
            statements("real a, b = 2;")[..],
            [
                Declaration { value: None, .. },
                Declaration { value: Some(_), .. }
            ]
        ));
        assert!(matches!(&statements("print(\"a\", 1);")[..], [Print(list)] if list.len() == 2));
        assert!(matches!(statements("return;")[..], [Return(None)]));
    }

    #[test]
    fn else_belongs_to_the_nearest_if() {
        let found = statements("if (a) if (b) ; else ;");
        let [
            StatementKind::If {
                then,
                otherwise: None,
                ..
            },
        ] = &found[..]
        else {
            panic!("{found:?}");
        };
        assert!(matches!(
            then.kind,
            StatementKind::If {
                otherwise: Some(_),
                ..
            }
        ));
    }

    #[test]
    fn truncations_may_lack_a_side() {
        for (text, lower, upper) in [
            ("T[1, 2]", true, true),
            ("T[1, ]", true, false),
            ("T[, 2]", false, true),
            ("T[,]", false, false),
        ] {
            let found = statements(&format!("y ~ f(1) {text};"));
            let [
                StatementKind::Sampling {
                    truncation: Some(truncation),
                    ..
                },
            ] = &found[..]
            else {
                panic!("{found:?}");
            };
            assert_eq!(truncation.lower.is_some(), lower, "{text}");
            assert_eq!(truncation.upper.is_some(), upper, "{text}");
        }
    }

    #[test]
    fn what_does_nothing_is_refused() {
        assert_eq!(message("x + 1;"), "this expression is not a statement");
        assert_eq!(message("x == 1;"), "this comparison is not used");
        assert_eq!(message("1 = x;"), "cannot assign to this expression");
        assert_eq!(message("x <- 1;"), "`<-` does not assign");
        assert_eq!(message("rael<lower=0> x;"), "`rael` is not a type");
        assert_eq!(
            message("increment_log_prob(1);"),
            "there is no `increment_log_prob`"
        );
    }
}

//! Expressions as documents.

use super::super::tree::{BinaryOperator, Expr, ExprKind, IndexExpr, UnaryOperator};
use super::document::Document;
use super::layout::{Layout, Parts, Style};

impl<'a> Layout<'a> {
    pub(super) fn expression(&mut self, parts: &mut Parts<'a>, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::String(_) | ExprKind::Variable(_) => {
                self.any(parts)
            }
            ExprKind::Call {
                name,
                arguments,
                conditioned,
            } => {
                self.word(parts, &name.name);
                self.call_arguments(parts, arguments, *conditioned);
            }
            ExprKind::Index { base, indices } => {
                self.expression(parts, base);
                self.list(parts, ["[", "]"], indices, Style::Each, Self::index);
            }
            ExprKind::Unary { operator, operand } => {
                self.word(parts, operator.symbol());
                // `- -x`: two signs would look like a decrement.
                let again = matches!(&operand.kind, ExprKind::Unary { operator: inner, .. }
                    if inner == operator && *inner != UnaryOperator::Not);
                if again {
                    self.space(parts);
                }
                self.expression(parts, operand);
            }
            ExprKind::Binary { operator, .. } => {
                let (first, rest) = self.chain(expr, *operator);
                parts.push(Document::chain(vec![first, Document::indent(rest)]));
            }
            ExprKind::Ternary {
                condition,
                then,
                otherwise,
            } => {
                let mut first = Vec::new();
                self.expression(&mut first, condition);
                let mut cases = Vec::new();
                for (mark, case) in [("?", then), (":", otherwise)] {
                    self.line(&mut cases);
                    self.word(&mut cases, mark);
                    self.space(&mut cases);
                    self.expression(&mut cases, case);
                }
                first.push(Document::indent(cases));
                parts.push(Document::group(first));
            }
            ExprKind::Transpose(inner) => {
                self.expression(parts, inner);
                self.word(parts, "'");
            }
            ExprKind::RowVectorLiteral(items) => self.literal(parts, ["[", "]"], items),
            ExprKind::ArrayLiteral(items) => self.literal(parts, ["{", "}"], items),
            ExprKind::Paren(inner) => {
                self.word(parts, "(");
                self.expression(parts, inner);
                self.word(parts, ")");
            }
        }
    }

    fn literal(&mut self, parts: &mut Parts<'a>, brackets: [&str; 2], items: &[Expr]) {
        self.list(parts, brackets, items, style(items), Self::expression);
    }

    /// `(a, b)`, or `(a | b, c)`.
    pub(super) fn call_arguments(
        &mut self,
        parts: &mut Parts<'a>,
        arguments: &[Expr],
        conditioned: bool,
    ) {
        if let ([only], false) = (arguments, conditioned) {
            // Nothing that it could be confused with follows, so it need not be indented.
            return self.list(
                parts,
                ["(", ")"],
                &[only],
                Style::Each,
                |layout, parts, only| match &only.kind {
                    ExprKind::Binary { operator, .. } => {
                        let (first, rest) = layout.chain(only, *operator);
                        let rest = Document::Sequence(rest);
                        parts.push(Document::chain(vec![first, rest]));
                    }
                    _ => layout.expression(parts, only),
                },
            );
        }
        let (true, Some((variate, others))) = (conditioned, arguments.split_first()) else {
            let style = if arguments.len() > 4 {
                style(arguments)
            } else {
                Style::Each
            };
            return self.list(parts, ["(", ")"], arguments, style, Self::expression);
        };
        self.word(parts, "(");
        let mut inner = Vec::new();
        self.soft(&mut inner);
        self.expression(&mut inner, variate);
        self.space(&mut inner);
        self.word(&mut inner, "|");
        for (index, argument) in others.iter().enumerate() {
            if index > 0 {
                self.word(&mut inner, ",");
            }
            self.line(&mut inner);
            self.expression(&mut inner, argument);
        }
        let group = self.closed(inner);
        parts.push(group);
        self.word(parts, ")");
    }

    fn index(&mut self, parts: &mut Parts<'a>, index: &IndexExpr) {
        match index {
            IndexExpr::At(at) => self.expression(parts, at),
            // An empty place, as in `m[, 1]`.
            IndexExpr::Range { from: None, .. } if !self.peek(":") => {}
            IndexExpr::Range { from, to, .. } => self.range(parts, from.as_ref(), to.as_ref()),
        }
    }

    /// `a:b`, with blanks around the mark where an end is more than one operand.
    pub(super) fn range(&mut self, parts: &mut Parts<'a>, from: Option<&Expr>, to: Option<&Expr>) {
        let is_long = |end: Option<&Expr>| {
            end.is_some_and(|end| {
                matches!(end.kind, ExprKind::Binary { .. } | ExprKind::Ternary { .. })
            })
        };
        let wide = is_long(from) || is_long(to);
        if let Some(from) = from {
            self.expression(parts, from);
            if wide {
                self.space(parts);
            }
        }
        self.word(parts, ":");
        if let Some(to) = to {
            if wide {
                self.space(parts);
            }
            self.expression(parts, to);
        }
    }

    /// Operands with operators of one precedence between them, as one list: the first operand, and
    /// the rest.
    fn chain(&mut self, expr: &Expr, operator: BinaryOperator) -> (Document<'a>, Parts<'a>) {
        let mut operands = Vec::new();
        let mut first = expr;
        while let ExprKind::Binary {
            operator: inner,
            left,
            right,
        } = &first.kind
        {
            // Powers group to the right.
            if precedence(*inner) != precedence(operator)
                || is_power(*inner) && !operands.is_empty()
            {
                break;
            }
            operands.push((*inner, right));
            first = left;
        }
        let mut chain = Vec::new();
        self.expression(&mut chain, first);
        let mut rest = Vec::new();
        for (operator, operand) in operands.into_iter().rev() {
            if is_power(operator) {
                self.space(&mut rest)
            } else {
                self.line(&mut rest)
            }
            self.word(&mut rest, operator.symbol());
            self.space(&mut rest);
            self.expression(&mut rest, operand);
        }
        (Document::Sequence(chain), rest)
    }
}

/// Numbers and names fill lines; anything longer is on a line of its own.
fn style(items: &[Expr]) -> Style {
    let short = |item: &Expr| match &item.kind {
        ExprKind::Unary { operand, .. } => {
            matches!(operand.kind, ExprKind::Int(_) | ExprKind::Real(_))
        }
        kind => matches!(
            kind,
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Variable(_)
        ),
    };
    if items.iter().all(short) {
        Style::Filled
    } else {
        Style::Each
    }
}

fn is_power(operator: BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Power | BinaryOperator::ElementPower
    )
}

/// Operators of equal precedence have equal numbers.
fn precedence(operator: BinaryOperator) -> u8 {
    use BinaryOperator::*;
    match operator {
        Or => 0,
        And => 1,
        Equal | NotEqual => 2,
        Less | LessEqual | Greater | GreaterEqual => 3,
        Add | Subtract => 4,
        Multiply | Divide | Modulo | ElementMultiply | ElementDivide => 5,
        LeftDivide | IntegerDivide => 6,
        Power | ElementPower => 7,
    }
}

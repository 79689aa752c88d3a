//! Names: where each is declared, used and visible.
//!
//! The checker resolves names too, but says nothing of a program with errors; and an editor is
//! asked about those most of all.

use std::collections::HashMap;

use crate::check::Role;
use crate::syntax::{
    Block, BlockKind, Expr, ExprKind, Ident, IndexExpr, Program, SizedType, Span, Statement,
    StatementKind,
};

/// The endings of functions that say what they are for.
const ENDINGS: [&str; 10] = [
    "_lpdf", "_lpmf", "_lupdf", "_lupmf", "_lcdf", "_lccdf", "_cdf", "_rng", "_lp", "",
];
const DENSITIES: [&str; 4] = ["_lpdf", "_lpmf", "_lupdf", "_lupmf"];

/// Something that a program declares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Symbol {
    pub name: String,
    /// The names in its declarations: a function may have several for different arguments.
    pub declared: Vec<Span>,
    /// The declarations from the first word to the name and, of a function, its arguments.
    pub headings: Vec<Span>,
    /// `None` for a function.
    pub role: Option<Role>,
    /// Where it may be used.
    pub visible: Span,
}

/// A place that names a symbol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Occurrence {
    pub span: Span,
    /// Index into [`Names::symbols`].
    pub symbol: usize,
    /// Whether it is declared or assigned there.
    pub writes: bool,
}

#[derive(Debug, Default)]
pub(super) struct Names {
    pub symbols: Vec<Symbol>,
    /// In the order of the source.
    pub occurrences: Vec<Occurrence>,
}

impl Names {
    pub fn of(program: &Program) -> Names {
        let mut resolver = Resolver::default();
        resolver.scopes.push(Scope {
            names: HashMap::new(),
            end: program.span.end,
        });
        resolver.functions(program);
        for block in &program.blocks {
            resolver.block(block);
        }
        let mut names = resolver.names;
        // Declarators of one type share its sizes.
        names.occurrences.sort_by_key(|o| (o.span.start, !o.writes));
        names.occurrences.dedup_by_key(|o| o.span);
        names
    }

    /// The name at a place, or just before it.
    pub fn at(&self, offset: usize) -> Option<Occurrence> {
        let touches = |o: &&Occurrence| o.span.start <= offset && offset <= o.span.end;
        self.occurrences.iter().rev().find(touches).copied()
    }

    pub fn of_symbol(&self, symbol: usize) -> impl Iterator<Item = &Occurrence> {
        self.occurrences.iter().filter(move |o| o.symbol == symbol)
    }

    /// All that may be named at a place; the innermost last.
    pub fn visible(&self, offset: usize) -> impl Iterator<Item = &Symbol> {
        let sees = move |s: &&Symbol| s.visible.start <= offset && offset <= s.visible.end;
        self.symbols.iter().filter(sees)
    }
}

/// A name in two parts, the second of which says what the function is for.
pub(super) fn split_ending(name: &str) -> (&str, &'static str) {
    ENDINGS
        .into_iter()
        .find_map(|ending| Some((name.strip_suffix(ending)?, ending)))
        .unwrap_or((name, ""))
}

/// The name after `~` of a function that is a density.
pub(super) fn as_distribution(name: &str) -> Option<&str> {
    let (stem, ending) = split_ending(name);
    DENSITIES.contains(&ending).then_some(stem)
}

/// By which functions are found: those that are one density have one key.
fn key(name: &str) -> String {
    as_distribution(name).map_or_else(|| name.to_owned(), density_key)
}

fn density_key(stem: &str) -> String {
    format!("{stem}_lpdf")
}

struct Scope<'a> {
    names: HashMap<&'a str, usize>,
    end: usize,
}

#[derive(Default)]
struct Resolver<'a> {
    names: Names,
    functions: HashMap<String, usize>,
    /// Innermost last.
    scopes: Vec<Scope<'a>>,
    /// Of what is declared in the block being walked.
    role: Option<Role>,
}

impl<'a> Resolver<'a> {
    fn functions(&mut self, program: &'a Program) {
        for function in &program.functions {
            let next = self.names.symbols.len();
            let symbol = *self
                .functions
                .entry(key(&function.name.name))
                .or_insert(next);
            if symbol == next {
                self.names.symbols.push(Symbol {
                    name: function.name.name.clone(),
                    declared: Vec::new(),
                    headings: Vec::new(),
                    role: None,
                    visible: program.span,
                });
            }
            let arguments = function.arguments.last().map(|a| a.name.span.end);
            let end = arguments.unwrap_or(function.name.span.end);
            let known = &mut self.names.symbols[symbol];
            known.declared.push(function.name.span);
            known.headings.push(Span::new(function.span.start, end));
            self.occurs(function.name.span, symbol, true);
        }
        let outside = std::mem::take(&mut self.scopes);
        for function in &program.functions {
            self.scope(function.span, |inside| {
                for argument in &function.arguments {
                    inside.declare(&argument.name, argument.ty.span, Role::Argument);
                }
                inside.statements(&function.body);
            });
        }
        self.scopes = outside;
    }

    fn block(&mut self, block: &'a Block) {
        self.role = match block.kind {
            BlockKind::Functions | BlockKind::Model => None,
            BlockKind::Constants => Some(Role::Constant),
            BlockKind::TransformedConstants => Some(Role::TransformedConstant),
            BlockKind::Record => Some(Role::Record),
            BlockKind::TransformedRecord => Some(Role::TransformedRecord),
            BlockKind::Parameters => Some(Role::Parameter),
            BlockKind::TransformedParameters => Some(Role::TransformedParameter),
            BlockKind::GeneratedQuantities => Some(Role::GeneratedQuantity),
        };
        if block.kind == BlockKind::Model {
            self.scope(block.span, |inside| inside.statements(&block.statements));
        } else {
            self.statements(&block.statements);
        }
    }

    /// Walks what has names of its own.
    fn scope(&mut self, span: Span, walk: impl FnOnce(&mut Self)) {
        self.scopes.push(Scope {
            names: HashMap::new(),
            end: span.end,
        });
        let role = self.role.take();
        walk(self);
        self.role = role;
        self.scopes.pop();
    }

    fn declare(&mut self, name: &'a Ident, ty: Span, role: Role) {
        let symbol = self.names.symbols.len();
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        scope.names.insert(&name.name, symbol);
        let start = name.span.end;
        self.names.symbols.push(Symbol {
            name: name.name.clone(),
            declared: vec![name.span],
            headings: vec![ty],
            role: Some(role),
            visible: Span::new(start, scope.end.max(start)),
        });
        self.occurs(name.span, symbol, true);
    }

    fn occurs(&mut self, span: Span, symbol: usize, writes: bool) {
        self.names.occurrences.push(Occurrence {
            span,
            symbol,
            writes,
        });
    }

    fn variable(&mut self, name: &str, span: Span, writes: bool) {
        let mut scopes = self.scopes.iter().rev();
        if let Some(symbol) = scopes.find_map(|scope| scope.names.get(name).copied()) {
            self.occurs(span, symbol, writes);
        }
    }

    fn function(&mut self, key: &str, span: Span) {
        if let Some(&symbol) = self.functions.get(key) {
            self.occurs(span, symbol, false);
        }
    }

    fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Declaration { ty, name, value } => {
                self.sized_type(ty);
                self.declare(name, ty.span, self.role.unwrap_or(Role::Local));
                self.all(value);
            }
            StatementKind::Assign { target, value, .. } => {
                self.target(target);
                self.expression(value);
            }
            StatementKind::Target { value } => self.expression(value),
            StatementKind::Sampling {
                variate,
                distribution,
                arguments,
                truncation,
            } => {
                self.expression(variate);
                self.function(&density_key(&distribution.name), distribution.span);
                self.all(arguments);
                if let Some(ends) = truncation {
                    self.all(ends.lower.iter().chain(&ends.upper));
                }
            }
            StatementKind::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                self.all([from, to]);
                self.scope(statement.span, |inside| {
                    inside.declare(variable, variable.span, Role::Loop);
                    inside.statement(body);
                });
            }
            StatementKind::ForEach {
                variable,
                container,
                body,
            } => {
                self.expression(container);
                self.scope(statement.span, |inside| {
                    inside.declare(variable, variable.span, Role::Loop);
                    inside.statement(body);
                });
            }
            StatementKind::While { condition, body } => {
                self.expression(condition);
                self.scope(body.span, |inside| inside.statement(body));
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.expression(condition);
                for branch in std::iter::once(then).chain(otherwise) {
                    self.scope(branch.span, |inside| inside.statement(branch));
                }
            }
            StatementKind::Block(inner) => {
                self.scope(statement.span, |inside| inside.statements(inner));
            }
            StatementKind::Return(value) => self.all(value),
            StatementKind::Print(parts) | StatementKind::Reject(parts) => self.all(parts),
            StatementKind::Call { name, arguments } => {
                self.function(&key(&name.name), name.span);
                self.all(arguments);
            }
            StatementKind::Break | StatementKind::Continue | StatementKind::Empty => {}
        }
    }

    fn sized_type(&mut self, ty: &SizedType) {
        self.all(ty.array_sizes.iter().chain(&ty.sizes));
        self.all(ty.constraints.iter().map(|c| &c.value));
    }

    /// Left of `=`.
    fn target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Variable(name) => self.variable(name, target.span, true),
            ExprKind::Index { base, indices } => {
                self.target(base);
                self.indices(indices);
            }
            _ => self.expression(target),
        }
    }

    fn all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr>) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn indices(&mut self, indices: &[IndexExpr]) {
        for index in indices {
            match index {
                IndexExpr::At(e) => self.expression(e),
                IndexExpr::Range { from, to, .. } => self.all(from.iter().chain(to)),
            }
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::String(_) => {}
            ExprKind::Variable(name) => self.variable(name, expression.span, false),
            ExprKind::Call {
                name, arguments, ..
            } => {
                self.function(&key(&name.name), name.span);
                self.all(arguments);
            }
            ExprKind::Index { base, indices } => {
                self.expression(base);
                self.indices(indices);
            }
            ExprKind::Unary { operand, .. } => self.expression(operand),
            ExprKind::Binary { left, right, .. } => {
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Ternary {
                condition,
                then,
                otherwise,
            } => {
                for part in [condition, then, otherwise] {
                    self.expression(part);
                }
            }
            ExprKind::Transpose(inner) | ExprKind::Paren(inner) => self.expression(inner),
            ExprKind::RowVectorLiteral(parts) | ExprKind::ArrayLiteral(parts) => self.all(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    const PROGRAM: &str = "\
functions {
  real mine_lpdf(real y, real m) { return normal_lpdf(y | m, 1); }
}
record { real<lower=0, upper=1> y; }
parameters { vector[2] a; real y2; }
model {
  for (k in 1:2) { real b = a[k]; b += y2; a[k] ~ normal(b, 1); }
  for (k in 1:2) a[k] ~ std_normal();
  y ~ mine(a[1]);
  target += mine_lupdf(y | y2);
";

    /// The texts and lines of all places that name what stands at the first `mark`.
    fn places(mark: &str) -> Vec<(&'static str, usize)> {
        let program = parse(PROGRAM).program.expect("a program");
        let names = Names::of(&program);
        let at = PROGRAM.find(mark).expect("the mark");
        let found = names.at(at).expect("a name");
        let line = |span: Span| PROGRAM[..span.start].matches('\n').count() + 1;
        names
            .of_symbol(found.symbol)
            .map(|o| (&PROGRAM[o.span.range()], line(o.span)))
            .collect()
    }

    #[test]
    fn names_are_found_where_they_mean_the_same() {
        assert_eq!(places("a; real y2").len(), 5);
        assert_eq!(places("k in 1:2) {"), [("k", 7), ("k", 7), ("k", 7)]);
        assert_eq!(places("k in 1:2) a"), [("k", 8), ("k", 8)]);
        assert_eq!(places("y, real m"), [("y", 2), ("y", 2)]);
        assert_eq!(places("y; }"), [("y", 4), ("y", 9), ("y", 10)]);
        assert_eq!(
            places("mine(a"),
            [("mine_lpdf", 2), ("mine", 9), ("mine_lupdf", 10)]
        );
    }

    #[test]
    fn names_are_visible_in_their_scope() {
        let program = parse(PROGRAM).program.expect("a program");
        let names = Names::of(&program);
        let seen = |mark: &str| -> Vec<String> {
            let at = PROGRAM.find(mark).expect("the mark");
            names.visible(at).map(|s| s.name.clone()).collect()
        };
        assert_eq!(seen("return"), ["mine_lpdf", "y", "m"]);
        assert_eq!(
            seen("b += "),
            ["mine_lpdf", "y", "a", "y2", "k", "b"].map(str::to_owned)
        );
        assert_eq!(seen("y ~ mine"), ["mine_lpdf", "y", "a", "y2"]);
    }
}

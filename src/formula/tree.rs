//! A formula: the terms that its sums and products expand to.

use crate::syntax::Span;

/// A word of the formula with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub name: String,
    pub span: Span,
}

/// A column, or a function of one.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub column: Named,
    pub function: Option<Function>,
}

/// The functions that a formula may apply to a column. All are increasing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Log,
    Log1p,
    Sqrt,
}

impl Function {
    pub fn name(self) -> &'static str {
        match self {
            Function::Log => "log",
            Function::Log1p => "log1p",
            Function::Sqrt => "sqrt",
        }
    }

    pub fn apply(self, x: f64) -> f64 {
        match self {
            Function::Log => x.ln(),
            Function::Log1p => x.ln_1p(),
            Function::Sqrt => x.sqrt(),
        }
    }
}

/// A power of a variable: `x`, `log(x)`, `I(x^2)`.
#[derive(Debug, Clone)]
pub(super) struct Atom {
    pub variable: Variable,
    pub power: u32,
}

impl Atom {
    fn is(&self, other: &Atom) -> bool {
        let key = |a: &Atom| {
            let v = &a.variable;
            (
                v.column.name.clone(),
                v.function.map(Function::name),
                a.power,
            )
        };
        key(self) == key(other)
    }
}

/// A product of atoms, each of them once; the intercept has none.
#[derive(Debug, Clone)]
pub(super) struct Term(pub Vec<Atom>);

impl Term {
    pub fn is(&self, other: &Term) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|a| other.0.iter().any(|b| a.is(b)))
    }

    pub fn times(&self, other: &Term) -> Term {
        let mut atoms = self.0.clone();
        for atom in &other.0 {
            if !atoms.iter().any(|a| a.is(atom)) {
                atoms.push(atom.clone());
            }
        }
        Term(atoms)
    }
}

/// The terms of a sum.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    pub intercept: bool,
    pub terms: Vec<Term>,
}

/// `(1 + x | g)`.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub sum: Sum,
    pub by: Named,
    /// One bar: R would estimate correlations.
    pub correlated: bool,
}

/// `trials(n)` on the left.
#[derive(Debug, Clone)]
pub(super) struct Addition {
    pub function: Named,
    pub argument: Argument,
}

#[derive(Debug, Clone)]
pub(super) enum Argument {
    Number(i64),
    Column(Named),
    /// `1 - column`.
    OneMinus(Named),
}

#[derive(Debug, Clone)]
pub(super) struct Formula {
    pub response: Variable,
    pub additions: Vec<Addition>,
    pub sum: Sum,
    pub offsets: Vec<Variable>,
    pub groups: Vec<Group>,
}

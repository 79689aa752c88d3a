//! The typed tree: what the checker understood of a program.
//!
//! Every name is resolved, every expression has a [`Type`] and a [`Stage`].
//! Sizes are still expressions of constants; they get numbers when the model is
//! bound to its constants.

use std::collections::HashMap;

use crate::function::Builtin;
pub use crate::function::{Base, Type};
use crate::syntax::{BinaryOperator, Span};

/// The privacy type and the evaluation plan in one: what a value depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Literals and constants: evaluated once.
    Constant,
    /// Constants and record columns: once per record, when the data is loaded.
    Record,
    /// Constants and parameters: once per density evaluation.
    Parameter,
    /// Record columns and parameters: per record, per density evaluation.
    Likelihood,
}

impl Stage {
    /// The stage of an expression made of two parts.
    pub fn join(self, other: Stage) -> Stage {
        use Stage::*;
        match (self, other) {
            (Constant, s) | (s, Constant) => s,
            (Record, Record) => Record,
            (Parameter, Parameter) => Parameter,
            _ => Likelihood,
        }
    }

    /// Whether the value depends on a private record.
    pub fn is_private(self) -> bool {
        matches!(self, Stage::Record | Stage::Likelihood)
    }

    pub fn name(self) -> &'static str {
        match self {
            Stage::Constant => "constant",
            Stage::Record => "record",
            Stage::Parameter => "parameter",
            Stage::Likelihood => "likelihood",
        }
    }
}

/// Index into [`Checked::variables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub usize);

/// Where a variable was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Constant,
    TransformedConstant,
    Record,
    TransformedRecord,
    Parameter,
    TransformedParameter,
    /// Declared inside a block.
    Local,
    /// Walks through a range or a container.
    Loop,
}

impl Role {
    /// The block, in words.
    pub fn description(self) -> &'static str {
        match self {
            Role::Constant => "a constant",
            Role::TransformedConstant => "a transformed constant",
            Role::Record => "a record column",
            Role::TransformedRecord => "a transformed record column",
            Role::Parameter => "a parameter",
            Role::TransformedParameter => "a transformed parameter",
            Role::Local => "a local variable",
            Role::Loop => "a loop variable",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    /// Where the name stands in its declaration.
    pub span: Span,
    pub role: Role,
    pub ty: Type,
    pub stage: Stage,
    /// One per dimension: array sizes, then those of the vector or matrix.
    pub sizes: Vec<Expr>,
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
}

#[derive(Debug, Clone)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Type,
    pub stage: Stage,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    Int(i64),
    Real(f64),
    Variable(VariableId),
    Call {
        function: Builtin,
        arguments: Vec<Expr>,
    },
    /// `normal_lpdf(y | mu, sigma)`; `family` indexes
    /// [`crate::distribution::FAMILIES`].
    LogDensity {
        family: usize,
        variate: Box<Expr>,
        arguments: Vec<Expr>,
    },
    Index {
        base: Box<Expr>,
        indices: Vec<Index>,
    },
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary {
        operator: BinaryOperator,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Ternary {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Transpose(Box<Expr>),
    RowVector(Vec<Expr>),
    Array(Vec<Expr>),
}

#[derive(Debug, Clone)]
pub enum Index {
    /// One element; drops the dimension.
    Single(Expr),
    /// An array of ints; keeps the dimension.
    Many(Expr),
    /// `a:b`, either end open; keeps the dimension.
    Range {
        from: Option<Expr>,
        to: Option<Expr>,
    },
}

#[derive(Debug, Clone)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum StatementKind {
    Declare {
        variable: VariableId,
        value: Option<Expr>,
    },
    Assign {
        variable: VariableId,
        indices: Vec<Index>,
        /// `None` for `=`, the operator for `+=` and its like.
        operator: Option<BinaryOperator>,
        value: Expr,
    },
    Target {
        value: Expr,
    },
    Sampling {
        family: usize,
        variate: Expr,
        arguments: Vec<Expr>,
    },
    ForRange {
        variable: VariableId,
        from: Expr,
        to: Expr,
        body: Box<Statement>,
    },
    ForEach {
        variable: VariableId,
        container: Expr,
        body: Box<Statement>,
    },
    If {
        condition: Expr,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    Block(Vec<Statement>),
}

/// A program whose names, types and stages are right.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    pub variables: Vec<Variable>,
    pub constants: Vec<VariableId>,
    pub transformed_constants: Vec<Statement>,
    pub record: Vec<VariableId>,
    /// The level names of factors: level k stands for the int k, from 1.
    pub levels: HashMap<VariableId, Vec<String>>,
    pub transformed_record: Vec<Statement>,
    pub parameters: Vec<VariableId>,
    /// Declared at the top of `transformed parameters`, in order; written to
    /// the output with the parameters.
    pub transformed_parameters: Vec<VariableId>,
    pub transformed_parameter_statements: Vec<Statement>,
    pub model: Vec<Statement>,
    /// Names of the distributions that the program uses, sorted.
    pub distributions: Vec<&'static str>,
}

impl Checked {
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0]
    }
}

#[cfg(test)]
mod tests {
    use super::Stage::*;

    #[test]
    fn stages_join_as_the_language_says() {
        assert_eq!(Record.join(Parameter), Likelihood);
        assert_eq!(Constant.join(Record), Record);
        assert_eq!(Parameter.join(Constant), Parameter);
        assert_eq!(Likelihood.join(Constant), Likelihood);
        assert_eq!(Record.join(Record), Record);
        assert!(Record.is_private() && Likelihood.is_private());
        assert!(!Constant.is_private() && !Parameter.is_private());
    }
}

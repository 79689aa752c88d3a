//! The typed tree: a program as the checker understood it.
//!
//! Every name is resolved, every expression has a [`Type`] and a [`Stage`].
//! Sizes are still expressions of constants; they become numbers when the model is bound to its
//! constants.

use std::collections::HashMap;

use crate::distribution::Tail;
use crate::function::Builtin;
pub use crate::function::{Base, Type};
use crate::syntax::{BinaryOperator, Span};

/// The privacy type and the evaluation plan in one: the inputs on which a value depends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Literals and constants: evaluated once.
    #[default]
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

/// Index into [`Checked::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub usize);

/// Where a variable was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Constant,
    TransformedConstant,
    Record,
    TransformedRecord,
    Parameter,
    TransformedParameter,
    GeneratedQuantity,
    /// Of a user-defined function.
    Argument,
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
            Role::GeneratedQuantity => "a generated quantity",
            Role::Argument => "an argument of the function",
            Role::Local => "a local variable",
            Role::Loop => "a loop variable",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    /// The place of the name in its declaration.
    pub span: Span,
    pub role: Role,
    pub ty: Type,
    pub stage: Stage,
    /// One per dimension: array sizes, then those of the vector or matrix.
    pub sizes: Vec<Expr>,
    /// A number, or a container of the variable's sizes (or of one element's).
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
    pub structure: Structure,
}

/// The constraint of a declared type in addition to `lower` and `upper`.
#[derive(Debug, Clone, Default)]
pub enum Structure {
    #[default]
    Free,
    /// `<offset=a, multiplier=b>`: not a constraint, but a scale for the sampler.
    Affine {
        offset: Option<Expr>,
        multiplier: Option<Expr>,
    },
    /// One of the types whose elements depend on each other.
    Joint(Joint),
}

/// The types whose elements depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Joint {
    Ordered,
    PositiveOrdered,
    Simplex,
    UnitVector,
    SumToZero,
    CholeskyFactorCorr,
    CholeskyFactorCov,
    CorrMatrix,
    CovMatrix,
}

impl Joint {
    pub fn keyword(self) -> &'static str {
        match self {
            Joint::Ordered => "ordered",
            Joint::PositiveOrdered => "positive_ordered",
            Joint::Simplex => "simplex",
            Joint::UnitVector => "unit_vector",
            Joint::SumToZero => "sum_to_zero_vector",
            Joint::CholeskyFactorCorr => "cholesky_factor_corr",
            Joint::CholeskyFactorCov => "cholesky_factor_cov",
            Joint::CorrMatrix => "corr_matrix",
            Joint::CovMatrix => "cov_matrix",
        }
    }

    /// "a `simplex`", "an `ordered`".
    pub fn with_article(self) -> String {
        let article = if self == Joint::Ordered { "an" } else { "a" };
        format!("{article} `{}`", self.keyword())
    }

    pub fn is_matrix(self) -> bool {
        matches!(
            self,
            Joint::CholeskyFactorCorr
                | Joint::CholeskyFactorCov
                | Joint::CorrMatrix
                | Joint::CovMatrix
        )
    }
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
    /// `normal_lcdf(y | mu, sigma)` and `normal_lccdf`.
    LogTail {
        family: usize,
        tail: Tail,
        variate: Box<Expr>,
        arguments: Vec<Expr>,
    },
    /// `normal_rng(mu, sigma)`
    Draw {
        family: usize,
        arguments: Vec<Expr>,
    },
    /// A call of a user-defined function.
    UserCall {
        function: FunctionId,
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
    /// The stage of the conditions that decide whether it is run, those around a call left out.
    pub conditions: Stage,
}

/// The ends of `T[a, b]`, either of them open; both where there is none.
#[derive(Debug, Clone, Default)]
pub struct Truncation {
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
}

impl Truncation {
    pub fn ends(&self) -> impl Iterator<Item = &Expr> {
        self.lower.iter().chain(&self.upper)
    }
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
        truncation: Truncation,
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
    While {
        condition: Expr,
        body: Box<Statement>,
    },
    Break,
    Continue,
    Return(Option<Expr>),
    Print(Vec<Printed>),
    Reject(Vec<Printed>),
    /// A call of a user-defined function that returns no value.
    Call {
        function: FunctionId,
        arguments: Vec<Expr>,
    },
    Block(Vec<Statement>),
}

/// An argument of `print` or `reject`.
#[derive(Debug, Clone)]
pub enum Printed {
    Text(String),
    Value(Expr),
}

/// A user-defined function, checked for arguments of certain stages: the same
/// function called with a constant and with a record column is two of these.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    pub arguments: Vec<VariableId>,
    /// The arguments and every local variable.
    pub variables: Vec<VariableId>,
    /// `None` for `void`.
    pub returns: Option<Type>,
    /// The stage of its result.
    pub stage: Stage,
    pub body: Vec<Statement>,
}

impl Function {
    /// Whether it is the density of its first argument, as its name says.
    pub fn is_density(&self) -> bool {
        self.name.ends_with("_lpdf") || self.name.ends_with("_lpmf")
    }
}

/// The signature of a user-defined function in the source.
#[derive(Debug, Clone)]
pub struct FunctionSignature {
    pub name: String,
    pub returns: Option<Type>,
    pub arguments: Vec<(String, Type)>,
}

/// A program whose names, types and stages are correct.
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
    /// Declared at the top of `generated quantities`, in order.
    ///
    /// In this block parameters count as constants: it is run for one draw at a
    /// time, whose values are numbers.
    pub generated_quantities: Vec<VariableId>,
    pub generated_statements: Vec<Statement>,
    /// User-defined functions, one for each combination of stages that they are
    /// called with.
    pub functions: Vec<Function>,
    /// The definitions in the `functions` block, in order.
    pub signatures: Vec<FunctionSignature>,
    /// Names of the distributions that the program uses, sorted.
    pub distributions: Vec<&'static str>,
}

impl Checked {
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0]
    }

    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0]
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

//! The syntax tree: the program as written, with the places in the source.
//!
//! Nothing is resolved here: names are text, sizes are expressions, and a
//! program that parses may still be wrong in every other way. [`crate::check`]
//! turns the tree into a typed one.

use std::ops::Range;

/// A byte range of the source text, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A name and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

/// A whole `.dpm` file. Blocks are in the order of [`BlockKind`].
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub functions: Vec<Function>,
    /// The span of the `functions { ... }` block, where there is one.
    pub functions_span: Option<Span>,
    pub blocks: Vec<Block>,
    /// Names in declarations that could not be read: they are declared, but nothing more is known
    /// about them.
    pub unread: Vec<String>,
    /// Whether the whole source is in the tree.
    pub whole: bool,
    /// The span of the whole file.
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    Functions,
    Constants,
    TransformedConstants,
    Record,
    TransformedRecord,
    Parameters,
    TransformedParameters,
    Model,
    GeneratedQuantities,
}

impl BlockKind {
    /// Every kind, in the order that the language requires.
    pub const ALL: [BlockKind; 9] = [
        BlockKind::Functions,
        BlockKind::Constants,
        BlockKind::TransformedConstants,
        BlockKind::Record,
        BlockKind::TransformedRecord,
        BlockKind::Parameters,
        BlockKind::TransformedParameters,
        BlockKind::Model,
        BlockKind::GeneratedQuantities,
    ];

    /// The words that open the block.
    pub fn keyword(self) -> &'static str {
        match self {
            BlockKind::Functions => "functions",
            BlockKind::Constants => "constants",
            BlockKind::TransformedConstants => "transformed constants",
            BlockKind::Record => "record",
            BlockKind::TransformedRecord => "transformed record",
            BlockKind::Parameters => "parameters",
            BlockKind::TransformedParameters => "transformed parameters",
            BlockKind::Model => "model",
            BlockKind::GeneratedQuantities => "generated quantities",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub kind: BlockKind,
    /// From the keyword to the closing brace.
    pub span: Span,
    /// The keyword alone, for messages.
    pub keyword_span: Span,
    pub statements: Vec<Statement>,
}

/// A user-defined function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// `None` for `void`.
    pub return_type: Option<UnsizedType>,
    pub name: Ident,
    pub arguments: Vec<Argument>,
    pub body: Vec<Statement>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Declared `data` (Stan's marker for arguments without parameters).
    pub data_only: bool,
    pub ty: UnsizedType,
    pub name: Ident,
}

/// A function's argument or return type: a base type and its array dimensions.
#[derive(Debug, Clone, PartialEq)]
pub struct UnsizedType {
    pub base: UnsizedBase,
    pub array_dimensions: usize,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsizedBase {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
}

/// A declared type with its sizes and constraints: `array[N] vector<lower=0>[K]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SizedType {
    /// Sizes inside `array[...]`, outermost first; empty when it is not an array.
    pub array_sizes: Vec<Expr>,
    pub base: BaseType,
    /// Sizes inside the brackets of the base type: `vector[K]`, `matrix[R, C]`.
    pub sizes: Vec<Expr>,
    /// `lower`, `upper`, `offset`, `multiplier`, as written.
    pub constraints: Vec<Constraint>,
    /// Level names of `factor("a", "b")`.
    pub levels: Vec<StringLiteral>,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BaseType {
    Int,
    Real,
    Vector,
    RowVector,
    Matrix,
    Ordered,
    PositiveOrdered,
    Simplex,
    UnitVector,
    SumToZeroVector,
    CholeskyFactorCorr,
    CholeskyFactorCov,
    CorrMatrix,
    CovMatrix,
    Factor,
}

impl BaseType {
    pub const ALL: [BaseType; 15] = [
        BaseType::Int,
        BaseType::Real,
        BaseType::Vector,
        BaseType::RowVector,
        BaseType::Matrix,
        BaseType::Ordered,
        BaseType::PositiveOrdered,
        BaseType::Simplex,
        BaseType::UnitVector,
        BaseType::SumToZeroVector,
        BaseType::CholeskyFactorCorr,
        BaseType::CholeskyFactorCov,
        BaseType::CorrMatrix,
        BaseType::CovMatrix,
        BaseType::Factor,
    ];

    pub fn keyword(self) -> &'static str {
        match self {
            BaseType::Int => "int",
            BaseType::Real => "real",
            BaseType::Vector => "vector",
            BaseType::RowVector => "row_vector",
            BaseType::Matrix => "matrix",
            BaseType::Ordered => "ordered",
            BaseType::PositiveOrdered => "positive_ordered",
            BaseType::Simplex => "simplex",
            BaseType::UnitVector => "unit_vector",
            BaseType::SumToZeroVector => "sum_to_zero_vector",
            BaseType::CholeskyFactorCorr => "cholesky_factor_corr",
            BaseType::CholeskyFactorCov => "cholesky_factor_cov",
            BaseType::CorrMatrix => "corr_matrix",
            BaseType::CovMatrix => "cov_matrix",
            BaseType::Factor => "factor",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    pub kind: ConstraintKind,
    pub value: Expr,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConstraintKind {
    Lower,
    Upper,
    Offset,
    Multiplier,
}

impl ConstraintKind {
    pub fn keyword(self) -> &'static str {
        match self {
            ConstraintKind::Lower => "lower",
            ConstraintKind::Upper => "upper",
            ConstraintKind::Offset => "offset",
            ConstraintKind::Multiplier => "multiplier",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct StringLiteral {
    pub value: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// `real<lower=0> x = 1;`
    Declaration {
        ty: SizedType,
        name: Ident,
        value: Option<Expr>,
    },
    /// `x[1] = e;`, `x += e;`: `target` is a variable or an indexed one.
    Assign {
        target: Expr,
        operator: AssignOperator,
        value: Expr,
    },
    /// `target += e;`
    Target {
        value: Expr,
    },
    /// `y ~ normal(mu, sigma) T[a, b];`
    Sampling {
        variate: Expr,
        distribution: Ident,
        arguments: Vec<Expr>,
        truncation: Option<Truncation>,
    },
    /// `for (k in a:b) body`
    ForRange {
        variable: Ident,
        from: Expr,
        to: Expr,
        body: Box<Statement>,
    },
    /// `for (x in container) body`
    ForEach {
        variable: Ident,
        container: Expr,
        body: Box<Statement>,
    },
    While {
        condition: Expr,
        body: Box<Statement>,
    },
    If {
        condition: Expr,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    /// `{ ... }`; also `profile("name") { ... }`, whose name is dropped.
    Block(Vec<Statement>),
    Break,
    Continue,
    Return(Option<Expr>),
    Print(Vec<Expr>),
    Reject(Vec<Expr>),
    /// A call of a void function as a statement.
    Call {
        name: Ident,
        arguments: Vec<Expr>,
    },
    /// A lone `;`.
    Empty,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Truncation {
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
    pub span: Span,
}

/// `None` is plain `=`; otherwise the operator of `+=`, `.*=`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOperator {
    Set,
    With(BinaryOperator),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Int(i64),
    Real(f64),
    String(String),
    Variable(String),
    /// `name(arguments)`; `conditioned` when the first is separated from the others by a bar, as in
    /// `normal_lpdf(y | mu, sigma)`.
    Call {
        name: Ident,
        arguments: Vec<Expr>,
        conditioned: bool,
    },
    Index {
        base: Box<Expr>,
        indices: Vec<IndexExpr>,
    },
    Unary {
        operator: UnaryOperator,
        operand: Box<Expr>,
    },
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
    /// `[a, b, c]`
    RowVectorLiteral(Vec<Expr>),
    /// `{a, b, c}`
    ArrayLiteral(Vec<Expr>),
    /// `(e)`; kept so that the formatter can write what was written.
    Paren(Box<Expr>),
}

/// One index between the brackets of `x[...]`.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexExpr {
    /// `x[e]`: a single index, or many when `e` is an array of ints.
    At(Expr),
    /// `x[a:b]`, `x[a:]`, `x[:b]`, `x[:]` and an empty place as in `m[, 1]`.
    Range {
        from: Option<Expr>,
        to: Option<Expr>,
        span: Span,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOperator {
    Minus,
    Plus,
    Not,
}

impl UnaryOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::Not => "!",
        }
    }
}

/// Binary operators, with Stan's precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// `%/%`
    IntegerDivide,
    /// `%`
    Modulo,
    /// `\`
    LeftDivide,
    /// `.*`
    ElementMultiply,
    /// `./`
    ElementDivide,
    /// `^`
    Power,
    /// `.^`
    ElementPower,
}

impl BinaryOperator {
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOperator::Or => "||",
            BinaryOperator::And => "&&",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterEqual => ">=",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::IntegerDivide => "%/%",
            BinaryOperator::Modulo => "%",
            BinaryOperator::LeftDivide => "\\",
            BinaryOperator::ElementMultiply => ".*",
            BinaryOperator::ElementDivide => "./",
            BinaryOperator::Power => "^",
            BinaryOperator::ElementPower => ".^",
        }
    }
}

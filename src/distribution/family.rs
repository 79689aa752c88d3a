//! The description of every family: names, kinds of value, domains.

use std::fmt;

use super::draw::Draw;

/// The kind of a variate or argument. The letters in `Vector("K")` and the like
/// name sizes: where two name the same size, they must agree, and `K` is at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One integer; an array of them stands for as many statements.
    Int,
    /// One number; a vector, row vector or array of them stands for as many
    /// statements.
    Real,
    /// An array of integers taken as one value.
    Ints(&'static str),
    /// A vector taken as one value; an array of them stands for as many
    /// statements.
    Vector(&'static str),
    /// One row of a matrix of predictors; a matrix stands for as many
    /// statements as it has rows.
    Row(&'static str),
    /// A matrix taken as one value.
    Matrix(&'static str, &'static str),
}

impl Kind {
    /// Whether the value consists of integers.
    pub fn is_int(self) -> bool {
        matches!(self, Kind::Int | Kind::Ints(_))
    }

    /// Whether it is a single number.
    pub fn is_scalar(self) -> bool {
        matches!(self, Kind::Int | Kind::Real)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Int => f.write_str("int"),
            Kind::Real => f.write_str("real"),
            Kind::Ints(n) => write!(f, "array[{n}] int"),
            Kind::Vector(n) => write!(f, "vector[{n}]"),
            Kind::Row(n) => write!(f, "row_vector[{n}]"),
            Kind::Matrix(r, c) => write!(f, "matrix[{r}, {c}]"),
        }
    }
}

/// The values that a variate or an argument may take. Positions name other
/// arguments of the same family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Every real number (every element, in a container).
    Real,
    /// Above zero.
    Positive,
    /// Zero or above.
    NonNegative,
    /// From 0 to 1.
    Unit,
    /// Above the argument at this position.
    Above(usize),
    /// The argument at this position, or above it.
    From(usize),
    /// From the argument at the first position to that at the second.
    Between(usize, usize),
    /// 0 or 1.
    Binary,
    /// 0, 1, 2, ...
    Counts,
    /// 0, 1, ... up to the argument at this position.
    CountsTo(usize),
    /// 1, 2, ... up to a size of that name, plus a number.
    Categories(&'static str, usize),
    /// Not negative, with sum one.
    Simplex,
    /// Increasing.
    Ordered,
    /// Symmetric and positive definite.
    Covariance,
    /// Lower triangular with a positive diagonal.
    CholeskyCovariance,
    /// A correlation matrix.
    Correlation,
    /// The Cholesky factor of a correlation matrix.
    CholeskyCorrelation,
}

/// One argument of a family.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    pub domain: Domain,
    /// Its meaning, e.g. "inverse scale".
    pub meaning: &'static str,
}

impl Argument {
    pub(super) const fn real(name: &'static str, domain: Domain, meaning: &'static str) -> Self {
        Argument::of(name, Kind::Real, domain, meaning)
    }

    pub(super) const fn of(
        name: &'static str,
        kind: Kind,
        domain: Domain,
        meaning: &'static str,
    ) -> Self {
        Argument {
            name,
            kind,
            domain,
            meaning,
        }
    }
}

/// A family of distributions.
#[derive(Debug)]
pub struct Family {
    pub(super) name: &'static str,
    pub(super) documentation: &'static str,
    pub(super) variate: Kind,
    pub(super) support: Domain,
    pub(super) arguments: &'static [Argument],
    /// The arguments of `_rng`, where they differ from those of the density.
    pub(super) draw_arguments: Option<&'static [Argument]>,
    pub(super) draw: Draw,
}

impl Family {
    /// The arguments mu and sigma that move and scale a standard distribution of the reals, by their
    /// positions.
    pub(crate) fn location_and_scale(&self) -> Option<(usize, usize)> {
        let place = |name| self.arguments.iter().position(|a| a.name == name);
        let is_of_reals = self.variate == Kind::Real && self.support == Domain::Real;
        place("mu").zip(place("sigma")).filter(|_| is_of_reals)
    }

    /// The name after `~`, e.g. `normal`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// One line, with the formula.
    pub fn documentation(&self) -> &'static str {
        self.documentation
    }

    pub fn variate(&self) -> Kind {
        self.variate
    }

    pub fn support(&self) -> Domain {
        self.support
    }

    /// The support in words, e.g. "y >= 0".
    pub fn support_in_words(&self) -> String {
        self.words("y", self.support)
    }

    /// Whether it is a family of numbers: variate and arguments are numbers, and
    /// vectors of them stand for as many statements.
    pub fn is_scalar(&self) -> bool {
        self.variate.is_scalar() && self.arguments.iter().all(|a| a.kind.is_scalar())
    }

    pub fn arguments(&self) -> &'static [Argument] {
        self.arguments
    }

    /// The arguments of `_rng`.
    pub fn draw_arguments(&self) -> &'static [Argument] {
        self.draw_arguments.unwrap_or(self.arguments)
    }

    /// The domain of an argument in words, e.g. "sigma > 0 (scale)".
    pub fn domain_in_words(&self, argument: &Argument) -> String {
        let words = self.words(argument.name, argument.domain);
        format!("{words} ({})", argument.meaning)
    }

    /// The support, and the domains of all arguments, in words.
    pub fn domains_in_words(&self) -> String {
        let mut domains = vec![self.support_in_words()];
        domains.extend(self.arguments.iter().map(|a| self.domain_in_words(a)));
        domains.join("; ")
    }

    /// The ending of its log density: `lpdf`, or `lpmf` for integers.
    pub fn density_suffix(&self) -> &'static str {
        if self.variate.is_int() {
            "lpmf"
        } else {
            "lpdf"
        }
    }

    /// Its signature: `normal(real mu, real sigma)`.
    pub fn signature(&self) -> String {
        let arguments: Vec<_> = self
            .arguments
            .iter()
            .map(|a| format!("{} {}", a.kind, a.name))
            .collect();
        format!("{}({})", self.name, arguments.join(", "))
    }

    fn words(&self, name: &str, domain: Domain) -> String {
        let argument = |at: usize| self.arguments[at].name;
        match domain {
            Domain::Real => format!("{name} is real"),
            Domain::Positive => format!("{name} > 0"),
            Domain::NonNegative => format!("{name} >= 0"),
            Domain::Unit => format!("0 <= {name} <= 1"),
            Domain::Above(at) => format!("{name} > {}", argument(at)),
            Domain::From(at) => format!("{name} >= {}", argument(at)),
            Domain::Between(low, high) => {
                format!("{} <= {name} <= {}", argument(low), argument(high))
            }
            Domain::Binary => format!("{name} is 0 or 1"),
            Domain::Counts => format!("{name} is 0, 1, 2, ..."),
            Domain::CountsTo(at) => format!("{name} is 0, 1, ..., {}", argument(at)),
            Domain::Categories(size, 0) => format!("{name} is 1, 2, ..., {size}"),
            Domain::Categories(size, more) => format!("{name} is 1, 2, ..., {size} + {more}"),
            Domain::Simplex => format!("{name} is a simplex"),
            Domain::Ordered => format!("{name} is ordered"),
            Domain::Covariance => format!("{name} is a covariance matrix"),
            Domain::CholeskyCovariance => {
                format!("{name} is the Cholesky factor of a covariance matrix")
            }
            Domain::Correlation => format!("{name} is a correlation matrix"),
            Domain::CholeskyCorrelation => {
                format!("{name} is the Cholesky factor of a correlation matrix")
            }
        }
    }
}

/// The elements of one value: a number is 1 by 1, a vector K by 1, and a matrix is stored column by
/// column.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a, S> {
    pub elements: &'a [S],
    pub rows: usize,
    pub columns: usize,
}

impl<'a, S: Copy> Container<'a, S> {
    /// The only element of a number.
    pub(super) fn number(&self) -> S {
        self.elements[0]
    }

    /// The element of a matrix in this row and column, counted from 0.
    pub(super) fn at(&self, row: usize, column: usize) -> S {
        self.elements[row + column * self.rows]
    }

    /// A number, or a vector of any direction.
    pub fn vector(elements: &'a [S]) -> Self {
        Container {
            elements,
            rows: elements.len(),
            columns: 1,
        }
    }
}

//! The reason why there is no bound, and declarations that would give one.
//!
//! Declarations are tried: with every column and every parameter bounded there is a
//! bound, or a rule is missing. Then one bound after the other is removed again; those that cannot
//! be removed are needed.

use std::fmt;

use super::super::{Model, Transform};
use super::private_half::{Cell, Problem};
use super::range::Range;
use super::search::{Effort, largest_norm};
use super::slope;

/// Why there is no bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// Declarations that would together give one; empty if there are none.
    pub needs: Vec<Need>,
    /// Functions without a known bounded slope, where no declaration helps.
    pub unknown: Vec<String>,
}

/// A declaration that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub kind: NeedKind,
    pub name: String,
    pub lower: bool,
    pub upper: bool,
    /// The constraint that it has instead of bounds, such as `ordered`.
    constraint: Option<String>,
    /// Which bounds it already has, too far out.
    declared: (bool, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedKind {
    Column,
    Parameter,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.needs.is_empty() {
            return match self.unknown.as_slice() {
                [] => write!(f, "no bounds of columns and parameters would give one"),
                names => write!(f, "no bounded slope is known for {}", names.join(", ")),
            };
        }
        for (k, need) in self.needs.iter().enumerate() {
            if k > 0 {
                write!(f, ", ")?;
            }
            write!(f, "{need}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NeedKind::Column => "the column",
            NeedKind::Parameter => "the parameter",
        };
        write!(f, "{kind} `{}` ", self.name)?;
        if let Some(constraint) = &self.constraint {
            return write!(f, "cannot be {constraint}, which no bounds can be given to");
        }
        let lower = if self.declared.0 {
            "a larger `lower`"
        } else {
            "a `lower`"
        };
        let upper = if self.declared.1 {
            "a smaller `upper`"
        } else {
            "an `upper`"
        };
        match (self.lower, self.upper) {
            (true, true) if self.declared == (false, false) => {
                write!(f, "needs `lower` and `upper`")
            }
            (true, true) => write!(f, "needs {lower} and {upper}"),
            (true, false) => write!(f, "needs {lower}"),
            _ => write!(f, "needs {upper}"),
        }
    }
}

/// One end of the range of a column or of a parameter's coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    of: Source,
    is_lower: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Column(usize),
    /// `offset`, `length`
    Coordinates(usize, usize),
}

/// How far from zero, or from an end that is declared, coordinates and columns are
/// kept while a bound is tried.
const REACH: f64 = 0.25;

/// The reason why the problem's bound is infinite.
pub fn missing(model: &Model, problem: &Problem<'_>) -> Missing {
    let coordinates = || {
        problem
            .parameters()
            .map(|(offset, length)| Source::Coordinates(offset, length))
    };
    // Whole numbers between bounds are never near a singularity.
    let columns = || {
        problem.columns().filter_map(|c| {
            let column = &model.columns[c];
            let closed = column.is_int && column.lower.is_some() && column.upper.is_some();
            (!closed).then_some(Source::Column(c))
        })
    };
    let side = |is_lower: bool| move |of: Source| Side { of, is_lower };
    // The bounds that are removed first are asked for last.
    let mut sides: Vec<Side> = coordinates()
        .map(side(false))
        .chain(coordinates().map(side(true)))
        .chain(columns().map(side(false)))
        .chain(columns().map(side(true)))
        .collect();
    let bounded = |sides: &[Side]| {
        let cell = with(model, problem, sides);
        largest_norm(problem, &model.whole(), cell, Effort::little())
            .norm
            .is_finite()
    };
    if !bounded(&sides) {
        return Missing {
            needs: Vec::new(),
            unknown: unknown(problem),
        };
    }
    let mut k = 0;
    while k < sides.len() {
        let mut fewer = sides.clone();
        fewer.remove(k);
        if bounded(&fewer) {
            sides = fewer;
        } else {
            k += 1;
        }
    }
    Missing {
        needs: needs(model, &sides),
        unknown: Vec::new(),
    }
}

fn with(model: &Model, problem: &Problem<'_>, sides: &[Side]) -> Cell {
    let all = model.all(problem);
    let mut cell = all.clone();
    for side in sides {
        match side.of {
            Source::Column(c) => {
                let end = inward(all.columns[c], side.is_lower);
                set(&mut cell.columns[c], side.is_lower, end);
            }
            Source::Coordinates(offset, length) => {
                for range in &mut cell.theta[offset..offset + length] {
                    let end = if side.is_lower { -REACH } else { REACH };
                    set(range, side.is_lower, end);
                }
            }
        }
    }
    cell
}

fn set(range: &mut Range, is_lower: bool, end: f64) {
    if is_lower {
        range.low = end;
    } else {
        range.high = end;
    }
}

/// An end moved inward, or placed near the other end, or near zero.
fn inward(Range { low, high }: Range, is_lower: bool) -> f64 {
    let step = REACH * (high - low).min(1.0);
    match (low.is_finite(), high.is_finite(), is_lower) {
        (true, _, true) => low + step,
        (_, true, false) => high - step,
        (true, _, false) => low + 1.0,
        (_, true, true) => high - 1.0,
        (_, _, true) => -1.0,
        (_, _, false) => 1.0,
    }
}

fn needs(model: &Model, sides: &[Side]) -> Vec<Need> {
    let has = |of: Source, is_lower: bool| sides.contains(&Side { of, is_lower });
    let mut needs: Vec<Need> = Vec::new();
    for (c, column) in model.columns.iter().enumerate() {
        let (lower, upper) = (has(Source::Column(c), true), has(Source::Column(c), false));
        let known = needs.iter().any(|n| n.name == column.variable);
        if !(lower || upper) || known {
            continue;
        }
        needs.push(Need {
            kind: NeedKind::Column,
            name: column.variable.clone(),
            lower,
            upper,
            constraint: None,
            declared: (column.lower.is_some(), column.upper.is_some()),
        });
    }
    for parameter in &model.parameters {
        let of = Source::Coordinates(parameter.offset, parameter.free_length);
        let (low, high) = (has(of, true), has(of, false));
        if parameter.free_length == 0 || !(low || high) {
            continue;
        }
        let declared = match &parameter.transform {
            Transform::Bounds(b) => (b.lower.is_some(), b.upper.is_some()),
            _ => (false, false),
        };
        // Below an upper bound alone, the parameter rises as its coordinate falls.
        let (lower, upper) = if declared == (false, true) {
            (high, low)
        } else {
            (low, high)
        };
        let constraint = match &parameter.transform {
            Transform::Joint(joint, _) => Some(joint.with_article().to_string()),
            Transform::Affine(_) => Some("a parameter with offset or multiplier".to_string()),
            Transform::Identity | Transform::Bounds(_) => None,
        };
        needs.push(Need {
            kind: NeedKind::Parameter,
            name: parameter.name.clone(),
            lower,
            upper,
            constraint,
            declared,
        });
    }
    needs
}

/// Names of functions without a rule.
fn unknown(problem: &Problem<'_>) -> Vec<String> {
    let (_, functions) = problem.facts();
    let somewhere = Range::new(0.4, 0.6);
    functions
        .into_iter()
        .filter(|&f| {
            let y = slope::value(f, somewhere);
            !slope::derivative(f, somewhere, y).is_finite()
        })
        .map(|f| match f.definition().name {
            "" => format!("{f:?}"),
            name => format!("`{name}`"),
        })
        .collect()
}

//! Why there is no bound, and what would give one.
//!
//! Declarations are tried: with every column and every parameter bounded there is a
//! bound, or a rule is missing. Then one bound after the other is taken away again;
//! what cannot be is what is needed.

use std::fmt;

use super::super::{Model, Transform};
use super::private_half::{Cell, Problem};
use super::range::Range;
use super::search::{Effort, largest_norm};
use super::slope;

/// Why there is no bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// Declarations that would together give one; none where none would.
    pub needs: Vec<Need>,
    /// Functions of which no bounded slope is known, where no declaration helps.
    pub unknown: Vec<String>,
}

/// A declaration that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub kind: NeedKind,
    pub name: String,
    pub lower: bool,
    pub upper: bool,
    /// The constraint that it has in place of bounds, as for `ordered`.
    constraint: Option<String>,
    /// Its lower bound is there, but nothing keeps it away from it.
    has_lower: bool,
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
                names => write!(f, "no bounded slope is known of {}", names.join(", ")),
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
        match (self.lower, self.upper) {
            (true, true) if self.has_lower => {
                write!(f, "needs a larger `lower`, and an `upper`")
            }
            (true, false) if self.has_lower => write!(f, "needs a larger `lower`"),
            (true, true) => write!(f, "needs `lower` and `upper`"),
            (true, false) => write!(f, "needs a `lower`"),
            _ => write!(f, "needs an `upper`"),
        }
    }
}

/// A bound that is not declared, and might be.
#[derive(Debug, Clone, Copy)]
enum Side {
    /// Both sides of a column.
    Column(usize),
    /// Coordinates `offset .. offset + length` from below.
    Below(usize, usize),
    Above(usize, usize),
}

/// Where coordinates are kept while a bound is tried.
const REACH: f64 = 4.0;

/// Why the problem's bound is infinite.
pub fn missing(model: &Model, problem: &Problem<'_>) -> Missing {
    let mut sides: Vec<Side> = Vec::new();
    // What is taken away first is asked for last.
    for (offset, length) in problem.parameters() {
        sides.push(Side::Above(offset, length));
    }
    for (offset, length) in problem.parameters() {
        sides.push(Side::Below(offset, length));
    }
    for c in problem.columns() {
        let column = &model.columns[c];
        if column.lower.is_none() || column.upper.is_none() {
            sides.push(Side::Column(c));
        }
    }
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
    let mut cell = model.all(problem);
    for side in sides {
        match *side {
            Side::Column(c) => {
                let Range { low, high } = cell.columns[c];
                cell.columns[c] = match (low.is_finite(), high.is_finite()) {
                    (true, _) => Range::new(low, low + 1.0),
                    (_, true) => Range::new(high - 1.0, high),
                    _ => Range::new(0.0, 1.0),
                };
            }
            Side::Below(offset, length) => {
                for range in &mut cell.theta[offset..offset + length] {
                    range.low = -REACH;
                }
            }
            Side::Above(offset, length) => {
                for range in &mut cell.theta[offset..offset + length] {
                    range.high = REACH;
                }
            }
        }
    }
    cell
}

fn needs(model: &Model, sides: &[Side]) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for c in sides.iter().filter_map(|side| match side {
        Side::Column(c) => Some(*c),
        _ => None,
    }) {
        let column = &model.columns[c];
        if needs.iter().any(|n| n.name == column.variable) {
            continue;
        }
        needs.push(Need {
            kind: NeedKind::Column,
            name: column.variable.clone(),
            lower: column.lower.is_none(),
            upper: column.upper.is_none(),
            constraint: None,
            has_lower: false,
        });
    }
    for parameter in &model.parameters {
        let at = |side: &Side| match *side {
            Side::Below(offset, _) if offset == parameter.offset => (true, false),
            Side::Above(offset, _) if offset == parameter.offset => (false, true),
            _ => (false, false),
        };
        let (low, high) = sides
            .iter()
            .map(at)
            .fold((false, false), |a, b| (a.0 || b.0, a.1 || b.1));
        if parameter.free_length == 0 || !(low || high) {
            continue;
        }
        let (lower, upper) = match &parameter.transform {
            Transform::Bounds(b) => (b.lower.is_some(), b.upper.is_some()),
            _ => (false, false),
        };
        // A coordinate falls where the parameter rises only below an upper bound.
        let (low, high) = if upper && !lower {
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
            lower: low,
            upper: high,
            constraint,
            has_lower: lower && low,
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

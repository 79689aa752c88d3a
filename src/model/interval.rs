//! The values that a record's number may take, given the declared bounds of columns: interval
//! arithmetic over the private graph. It proves that an index computed from a record stays inside
//! its container.

use std::collections::{BTreeSet, HashMap};

use super::private::{Graphs, PrivateId, PrivateOp, Scalar, operands};
use super::public::Binary;
use crate::function::Unary;

/// All numbers from `low` to `high`, ends included; either may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Only whole numbers.
    pub whole: bool,
}

impl Interval {
    pub const ALL: Interval = Interval {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        whole: false,
    };

    const TRUTH: Interval = Interval {
        low: 0.0,
        high: 1.0,
        whole: true,
    };

    fn point(value: f64) -> Self {
        Interval {
            low: value,
            high: value,
            whole: value.fract() == 0.0,
        }
    }

    /// The smallest interval that holds all of the values; `ALL` when one of
    /// them is not a number.
    fn hull(values: &[f64], whole: bool) -> Self {
        if values.iter().any(|v| v.is_nan()) {
            return Interval { whole, ..Self::ALL };
        }
        Interval {
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            whole,
        }
    }

    fn map(self, f: impl Fn(f64) -> f64, whole: bool) -> Self {
        Interval::hull(&[f(self.low), f(self.high)], whole)
    }

    fn union(self, other: Interval) -> Self {
        Interval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            whole: self.whole && other.whole,
        }
    }

    fn intersection(self, other: Interval) -> Self {
        Interval {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            whole: self.whole || other.whole,
        }
    }

    fn is_empty(self) -> bool {
        self.low > self.high
    }
}

/// The depth to which conditions are examined: each level may double the work.
const DEEPEST_CONDITION: usize = 8;

type Known = HashMap<PrivateId, Interval>;

/// The values that a scalar may take, where `columns` are those of the record's columns.
pub fn interval(graphs: &Graphs, columns: &[Interval], scalar: Scalar) -> Interval {
    let analysis = Analysis { graphs, columns };
    analysis.range(scalar, &Known::new(), 0)
}

/// The record's columns that a scalar is computed from.
pub fn columns_of(graphs: &Graphs, scalar: Scalar) -> Vec<usize> {
    needed(graphs, scalar)
        .into_iter()
        .filter_map(|id| match graphs.private.node(id).op {
            PrivateOp::Column(c) => Some(c as usize),
            _ => None,
        })
        .collect()
}

/// The nodes that a scalar is computed from, operands first.
fn needed(graphs: &Graphs, scalar: Scalar) -> BTreeSet<PrivateId> {
    let mut found = BTreeSet::new();
    let mut rest = vec![scalar];
    while let Some(scalar) = rest.pop() {
        if let Scalar::Private(id) = scalar
            && found.insert(id)
        {
            rest.extend(operands(&graphs.private.node(id).op));
        }
    }
    found
}

struct Analysis<'a> {
    graphs: &'a Graphs,
    columns: &'a [Interval],
}

impl Analysis<'_> {
    /// Node by node and not by recursion, as a sum may be long. `given` holds the ranges of some
    /// nodes under a condition.
    fn range(&self, scalar: Scalar, given: &Known, depth: usize) -> Interval {
        let mut known = Known::new();
        for id in needed(self.graphs, scalar) {
            let mut interval = self.node(id, &known, given, depth);
            if let Some(&narrower) = given.get(&id) {
                interval = interval.intersection(narrower);
            }
            known.insert(id, interval);
        }
        self.lookup(scalar, &known)
    }

    fn lookup(&self, scalar: Scalar, known: &Known) -> Interval {
        match scalar {
            Scalar::Number(bits) => Interval::point(bits.value()),
            Scalar::Public(..) => Interval::ALL,
            Scalar::Private(id) => known.get(&id).copied().unwrap_or(Interval::ALL),
        }
    }

    fn node(&self, id: PrivateId, known: &Known, given: &Known, depth: usize) -> Interval {
        let range_of = |scalar: Scalar| self.lookup(scalar, known);
        match &self.graphs.private.node(id).op {
            PrivateOp::Column(c) => self.columns[*c as usize],
            PrivateOp::Unary(f, a) => unary(*f, range_of(*a)),
            PrivateOp::Binary(op, a, b) => match self.remainder(*op, *a, *b, known) {
                Some(interval) => interval,
                None => binary(*op, range_of(*a), range_of(*b)),
            },
            PrivateOp::Select(condition, a, b) => {
                let branch = |scalar: Scalar, holds: bool| {
                    if depth == DEEPEST_CONDITION {
                        return Some(range_of(scalar));
                    }
                    let mut given = given.clone();
                    self.suppose(*condition, holds, known, &mut given);
                    // Never taken.
                    if given.values().any(|i| i.is_empty()) {
                        return None;
                    }
                    Some(self.range(scalar, &given, depth + 1))
                };
                match (branch(*a, true), branch(*b, false)) {
                    (Some(a), Some(b)) => a.union(b),
                    (Some(one), None) | (None, Some(one)) => one,
                    (None, None) => Interval::ALL,
                }
            }
            PrivateOp::Linear(_) => Interval::ALL,
            PrivateOp::Gather { table, .. } => match self.graphs.public.constant_values(*table) {
                Some(values) => {
                    let whole = values.iter().all(|v| v.fract() == 0.0);
                    Interval::hull(&values, whole)
                }
                None => Interval::ALL,
            },
        }
    }

    /// `a % k`, which is `a - trunc(a / k) * k`.
    fn remainder(&self, op: Binary, a: Scalar, b: Scalar, known: &Known) -> Option<Interval> {
        let operation = |scalar: Scalar| match scalar {
            Scalar::Private(id) => Some(&self.graphs.private.node(id).op),
            _ => None,
        };
        if op != Binary::Subtract {
            return None;
        }
        let PrivateOp::Binary(Binary::Multiply, quotient, k) = operation(b)? else {
            return None;
        };
        let PrivateOp::Unary(Unary::Trunc, ratio) = operation(*quotient)? else {
            return None;
        };
        let PrivateOp::Binary(Binary::Divide, dividend, divisor) = operation(*ratio)? else {
            return None;
        };
        let dividend_range = self.lookup(a, known);
        let most = k.as_number()?.abs() - 1.0;
        (*dividend == a && divisor == k && dividend_range.whole).then(|| Interval {
            low: if dividend_range.low < 0.0 { -most } else { 0.0 },
            high: if dividend_range.high > 0.0 { most } else { 0.0 },
            whole: true,
        })
    }

    /// Adds to `given` the consequences of the condition being true, or false.
    fn suppose(&self, condition: Scalar, holds: bool, known: &Known, given: &mut Known) {
        let Scalar::Private(id) = condition else {
            return;
        };
        match self.graphs.private.node(id).op {
            PrivateOp::Unary(Unary::Not, a) => self.suppose(a, !holds, known, given),
            PrivateOp::Binary(Binary::And, a, b) if holds => {
                self.suppose(a, true, known, given);
                self.suppose(b, true, known, given);
            }
            PrivateOp::Binary(Binary::Or, a, b) if !holds => {
                self.suppose(a, false, known, given);
                self.suppose(b, false, known, given);
            }
            PrivateOp::Binary(op, a, b) => {
                let (x, y) = (self.lookup(a, known), self.lookup(b, known));
                // For whole numbers, above means at least one more.
                let gap = if x.whole && y.whole { 1.0 } else { 0.0 };
                // a <= b - gap, or b <= a - gap
                let (a_below, b_below) = match (op, holds) {
                    (Binary::Less, true) => (Some(gap), None),
                    (Binary::Less, false) => (None, Some(0.0)),
                    (Binary::LessEqual, true) => (Some(0.0), None),
                    (Binary::LessEqual, false) => (None, Some(gap)),
                    (Binary::Equal, true) | (Binary::NotEqual, false) => (Some(0.0), Some(0.0)),
                    (Binary::Equal, false) | (Binary::NotEqual, true) => {
                        self.exclude(a, x, y, given);
                        self.exclude(b, y, x, given);
                        return;
                    }
                    _ => return,
                };
                if let Some(gap) = a_below {
                    self.narrow(a, f64::NEG_INFINITY, y.high - gap, given);
                    self.narrow(b, x.low + gap, f64::INFINITY, given);
                }
                if let Some(gap) = b_below {
                    self.narrow(b, f64::NEG_INFINITY, x.high - gap, given);
                    self.narrow(a, y.low + gap, f64::INFINITY, given);
                }
            }
            _ => {}
        }
    }

    /// `scalar` differs from a number at one end of its range.
    fn exclude(&self, scalar: Scalar, range: Interval, other: Interval, given: &mut Known) {
        if other.low != other.high || !range.whole {
            return;
        }
        if other.low == range.low {
            self.narrow(scalar, range.low + 1.0, f64::INFINITY, given);
        } else if other.low == range.high {
            self.narrow(scalar, f64::NEG_INFINITY, range.high - 1.0, given);
        }
    }

    fn narrow(&self, scalar: Scalar, low: f64, high: f64, given: &mut Known) {
        if let Scalar::Private(id) = scalar {
            let known = given.entry(id).or_insert(Interval::ALL);
            *known = known.intersection(Interval {
                low,
                high,
                whole: false,
            });
        }
    }
}

fn unary(function: Unary, a: Interval) -> Interval {
    match function {
        Unary::Negate => a.map(|x| -x, a.whole),
        Unary::Abs | Unary::Square => {
            let f = function.definition().value;
            let ends = a.map(f, a.whole);
            if a.low < 0.0 && a.high > 0.0 {
                Interval { low: 0.0, ..ends }
            } else {
                ends
            }
        }
        Unary::Trunc | Unary::Floor | Unary::Ceil | Unary::Round => {
            a.map(function.definition().value, true)
        }
        Unary::Not => Interval::TRUTH,
        _ => Interval::ALL,
    }
}

fn binary(op: Binary, a: Interval, b: Interval) -> Interval {
    let whole = a.whole && b.whole;
    match op {
        Binary::Add => Interval::hull(&[a.low + b.low, a.high + b.high], whole),
        Binary::Subtract => Interval::hull(&[a.low - b.high, a.high - b.low], whole),
        Binary::Multiply => {
            // Zero times an end is zero: the values themselves are never infinite.
            let product = |x: f64, y: f64| if x == 0.0 || y == 0.0 { 0.0 } else { x * y };
            Interval::hull(
                &[
                    product(a.low, b.low),
                    product(a.low, b.high),
                    product(a.high, b.low),
                    product(a.high, b.high),
                ],
                whole,
            )
        }
        Binary::Divide if b.low > 0.0 || b.high < 0.0 => Interval::hull(
            &[
                a.low / b.low,
                a.low / b.high,
                a.high / b.low,
                a.high / b.high,
            ],
            false,
        ),
        Binary::Minimum => Interval {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
            whole,
        },
        Binary::Maximum => Interval {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
            whole,
        },
        _ if op.is_step() => Interval::TRUTH,
        _ => Interval::ALL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Algebra;

    fn int(low: f64, high: f64) -> Interval {
        Interval {
            low,
            high,
            whole: true,
        }
    }

    /// Each expression's range is compared with the values that it takes when the columns run
    /// through all of theirs: it is never narrower, and as wide as stated here.
    #[test]
    fn ranges_hold_every_value() {
        let columns = [int(1.0, 4.0), int(-2.0, 3.0)];
        type Build = fn(&mut Graphs, Scalar, Scalar) -> Scalar;
        type Value = fn(i64, i64) -> i64;
        let cases: [(Build, Value, i64, i64); 9] = [
            (
                |g, x, _| {
                    let two = g.constant(2.0);
                    let one = g.constant(1.0);
                    let twice = g.multiply(two, x);
                    g.subtract(twice, one)
                },
                |x, _| 2 * x - 1,
                1,
                7,
            ),
            (|g, x, y| g.multiply(x, y), |x, y| x * y, -8, 12),
            (|g, x, y| g.subtract(x, y), |x, y| x - y, -2, 6),
            (
                // y > 0 ? y : 1
                |g, _, y| {
                    let (zero, one) = (g.constant(0.0), g.constant(1.0));
                    let positive = g.less(zero, y);
                    g.select(positive, y, one)
                },
                |_, y| if y > 0 { y } else { 1 },
                1,
                3,
            ),
            (
                // x == 4 ? 1 : x + 1
                |g, x, _| {
                    let (four, one) = (g.constant(4.0), g.constant(1.0));
                    let last = g.equal(x, four);
                    let next = g.add(x, one);
                    g.select(last, one, next)
                },
                |x, _| if x == 4 { 1 } else { x + 1 },
                1,
                4,
            ),
            (
                // y % 3
                |g, _, y| {
                    let three = g.constant(3.0);
                    let ratio = g.divide(y, three);
                    let quotient = g.unary(Unary::Trunc, ratio);
                    let whole = g.multiply(quotient, three);
                    g.subtract(y, whole)
                },
                |_, y| y % 3,
                -2,
                2,
            ),
            (
                |g, x, y| g.binary(Binary::Maximum, x, y),
                |x, y| x.max(y),
                1,
                4,
            ),
            (|g, _, y| g.unary(Unary::Abs, y), |_, y| y.abs(), 0, 3),
            (
                // x < y ? x : y, a minimum
                |g, x, y| {
                    let below = g.less(x, y);
                    g.select(below, x, y)
                },
                |x, y| x.min(y),
                -2,
                3,
            ),
        ];
        for (k, (build, value, low, high)) in cases.into_iter().enumerate() {
            let mut g = Graphs::default();
            let (x, y) = (g.private.column(0), g.private.column(1));
            let scalar = build(&mut g, x, y);
            let found = interval(&g, &columns, scalar);
            assert_eq!(
                (found.low, found.high),
                (low as f64, high as f64),
                "case {k}"
            );
            for x in 1..=4 {
                for y in -2..=3 {
                    let v = value(x, y) as f64;
                    assert!(found.low <= v && v <= found.high, "case {k} at {x}, {y}");
                }
            }
        }
    }

    #[test]
    fn unbounded_columns_stay_unbounded() {
        let mut g = Graphs::default();
        let x = g.private.column(0);
        let one = g.constant(1.0);
        let next = g.add(x, one);
        let columns = [Interval {
            low: 0.0,
            high: f64::INFINITY,
            whole: true,
        }];
        let found = interval(&g, &columns, next);
        assert_eq!((found.low, found.high), (1.0, f64::INFINITY));
        assert_eq!(columns_of(&g, next), [0]);
    }
}

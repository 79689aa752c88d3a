//! Intervals as bars on an axis, in the rows of a table.

use super::axis::Scale;
use super::columns::{Column, quantiles};
use super::html::Html;
use super::plot::{Place, bottom_axis, circle, decoration, line};

const SIZE: [f64; 2] = [240.0, 30.0];
const ENDS: [f64; 2] = [10.0, 230.0];
/// Parameters share an axis as long as the widest range is at most this many times the width of a
/// typical interval, so that each can still be read.
const READABLE: f64 = 25.0;

/// The middle half and nine tenths of some draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub q5: f64,
    pub q25: f64,
    pub q50: f64,
    pub q75: f64,
    pub q95: f64,
}

impl Interval {
    /// `None` without finite draws.
    pub fn of(draws: &[f64]) -> Option<Interval> {
        let [q5, q25, q50, q75, q95] = quantiles(draws, [0.05, 0.25, 0.5, 0.75, 0.95]);
        let interval = Interval {
            q5,
            q25,
            q50,
            q75,
            q95,
        };
        (q5.is_finite() && q95.is_finite()).then_some(interval)
    }

    pub fn width(&self) -> f64 {
        self.q95 - self.q5
    }
}

/// Rows of a table that share an axis: positions of columns, and the axis.
pub(super) struct Group {
    pub columns: Vec<usize>,
    pub scale: Scale,
}

/// Columns in their order, in runs that can share an axis: all of them if their intervals have
/// similar sizes, otherwise those of one container.
pub(super) fn groups(columns: &[Column]) -> Vec<Group> {
    let all: Vec<usize> = (0..columns.len()).collect();
    if shares_an_axis(columns, &all) {
        return vec![group(columns, all)];
    }
    let stem = |i: &usize| columns[*i].name.split('[').next();
    all.chunk_by(|a, b| stem(a) == stem(b))
        .map(|part| group(columns, part.to_vec()))
        .collect()
}

fn ends(columns: &[Column], part: &[usize]) -> Vec<Interval> {
    part.iter()
        .filter_map(|&i| Interval::of(&columns[i].finite()))
        .collect()
}

fn shares_an_axis(columns: &[Column], part: &[usize]) -> bool {
    let found = ends(columns, part);
    let mut widths: Vec<f64> = found.iter().map(Interval::width).collect();
    widths.sort_by(f64::total_cmp);
    let typical = widths.get(widths.len() / 2).copied().unwrap_or(0.0);
    let [low, high] = range(&found);
    widths.first().is_none_or(|w| *w > typical / READABLE) && high - low <= READABLE * typical
}

fn range(intervals: &[Interval]) -> [f64; 2] {
    let low = intervals.iter().map(|i| i.q5).fold(f64::INFINITY, f64::min);
    let high = intervals
        .iter()
        .map(|i| i.q95)
        .fold(f64::NEG_INFINITY, f64::max);
    [low, high]
}

fn group(columns: &[Column], part: Vec<usize>) -> Group {
    Group {
        scale: Scale::new(range(&ends(columns, &part)), ENDS),
        columns: part,
    }
}

/// The bar of one parameter, next to the same numbers.
pub(super) fn bar(h: &mut Html, interval: Option<&Interval>, scale: &Scale) {
    decoration(h, SIZE, |h| {
        zero_line(h, scale);
        if let Some(interval) = interval {
            stroke(h, scale, "thin", [interval.q5, interval.q95], 15.0);
            stroke(h, scale, "thick", [interval.q25, interval.q75], 15.0);
            circle(h, "dot", [scale.held(interval.q50), 15.0], 4.0);
        }
    });
}

/// Prior above, posterior below, on an axis of their own.
pub(super) fn pair_of_bars(h: &mut Html, prior: &Interval, posterior: &Interval) {
    let ends = [prior.q5.min(posterior.q5), prior.q95.max(posterior.q95)];
    let scale = Scale::new(ends, ENDS);
    decoration(h, SIZE, |h| {
        zero_line(h, &scale);
        stroke(h, &scale, "prior-bar", [prior.q5, prior.q95], 10.0);
        stroke(h, &scale, "thin", [posterior.q5, posterior.q95], 20.0);
        stroke(h, &scale, "thick", [posterior.q25, posterior.q75], 20.0);
    });
}

fn stroke(h: &mut Html, scale: &Scale, class: &'static str, [from, to]: [f64; 2], y: f64) {
    line(h, class, [scale.held(from), y], [scale.held(to), y]);
}

pub(super) fn axis(h: &mut Html, scale: &Scale) {
    decoration(h, [SIZE[0], 22.0], |h| bottom_axis(h, scale, 2.0, 5));
}

fn zero_line(h: &mut Html, scale: &Scale) {
    let x = scale.at(0.0);
    if x > ENDS[0] && x < ENDS[1] {
        h.empty(
            "path",
            &[
                ("class", &"grid-line"),
                ("d", &format!("M{} 0V{}", Place(x), Place(SIZE[1]))),
            ],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &'static str, centre: f64, width: f64) -> Column<'static> {
        Column {
            name,
            chains: vec![
                (0..101)
                    .map(|i| centre + width * f64::from(i) / 100.0)
                    .collect(),
            ],
        }
    }

    #[test]
    fn like_parameters_share_an_axis_and_unlike_ones_do_not() {
        let like = [column("a", 0.0, 1.0), column("b[1]", 2.0, 1.5)];
        assert_eq!(groups(&like).len(), 1);
        let unlike = [
            column("a", -1000.0, 1.0),
            column("b[1]", 0.0, 0.1),
            column("b[2]", 0.2, 0.1),
        ];
        let found = groups(&unlike);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].columns, [1, 2]);
    }

    #[test]
    fn columns_without_numbers_take_part() {
        let none = Column {
            name: "x",
            chains: vec![vec![f64::NAN; 5]],
        };
        assert_eq!(groups(&[none, column("a", 0.0, 1.0)]).len(), 1);
        assert!(groups(&[]).len() <= 1);
    }
}

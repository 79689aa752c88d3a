//! Branch and bound: the largest gradient norm over all records and parameters.
//!
//! The bound of one cell is loose where a quantity occurs twice. Halves of a cell
//! have tighter bounds, and the larger of the two bounds the whole; so the cell with
//! the largest bound is halved again and again. However few halvings there are, the result is a
//! bound.
//!
//! # Reference
//!
//! Moore, Kearfott and Cloud 2009, *Introduction to Interval Analysis*, chapter 11.

use super::private_half::{Cell, Norm, Problem};
use super::range::Range;

/// The effort of a search.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Evaluations of cells.
    evaluations: usize,
}

impl Effort {
    /// About a tenth of a second.
    pub fn full(problem: &Problem<'_>) -> Effort {
        Effort {
            evaluations: (2_000_000 / problem.size().max(1)).clamp(100, 6000),
        }
    }

    /// Enough to see whether there is a bound at all.
    pub fn little() -> Effort {
        Effort { evaluations: 60 }
    }
}

/// A variable in which a cell can be halved.
#[derive(Debug, Clone, Copy)]
enum Variable {
    Column { index: usize, whole: bool },
    Coordinate(usize),
    Place(usize),
}

/// More variables than this are not tried.
const MOST_VARIABLES: usize = 24;

/// Halvings in a row that may fail to lower the bound, for each variable.
const PATIENCE: usize = 2;

/// Less than this share is no progress.
const PROGRESS: f64 = 1e-3;

struct Open {
    cell: Cell,
    norm: Norm,
    /// Halvings in a row without progress.
    stuck: usize,
    /// How often it was halved in each variable.
    halved: Vec<u32>,
}

impl Open {
    fn new((mut cell, norm): (Cell, Norm), stuck: usize, halved: Vec<u32>) -> Open {
        // Halves of the place's range in this cell, not of all numbers.
        cell.places.clone_from(&norm.places);
        Open {
            cell,
            norm,
            stuck,
            halved,
        }
    }
}

/// An upper bound of the gradient's norm over the whole cell, with its parts where it
/// is largest. `whole` says for each column whether it holds only whole numbers.
pub fn largest_norm(problem: &Problem<'_>, whole: &[bool], all: Cell, effort: Effort) -> Norm {
    let nothing = Norm {
        norm: 0.0,
        parts: Vec::new(),
        places: Vec::new(),
    };
    let Some(norm) = problem.norm(&all) else {
        return nothing;
    };
    let variables = variables(problem, whole);
    let mut open = vec![Open::new((all, norm), 0, vec![0; variables.len()])];
    let mut left = effort.evaluations;
    loop {
        let Some(worst) =
            (0..open.len()).max_by(|&a, &b| open[a].norm.norm.total_cmp(&open[b].norm.norm))
        else {
            return nothing;
        };
        let bound = open[worst].norm.norm;
        let patience = PATIENCE * variables.len();
        if left == 0 || bound == 0.0 || open[worst].stuck > patience {
            return open.swap_remove(worst).norm;
        }
        let parent = open.swap_remove(worst);
        match halve(problem, &variables, &parent, &mut left) {
            Some(halves) => open.extend(halves),
            None => return parent.norm,
        }
    }
}

fn variables(problem: &Problem<'_>, whole: &[bool]) -> Vec<Variable> {
    let places = (0..problem.places.len().min(8)).map(Variable::Place);
    let columns = problem.columns().map(|index| Variable::Column {
        index,
        whole: whole[index],
    });
    // Elements of a long vector are looked up and equivalent.
    let coordinates = problem
        .parameters()
        .filter(|&(_, length)| length <= MOST_VARIABLES)
        .flat_map(|(offset, length)| (offset..offset + length).map(Variable::Coordinate));
    places
        .chain(coordinates.take(MOST_VARIABLES / 2))
        .chain(columns)
        .take(MOST_VARIABLES)
        .collect()
}

/// The halves in the variable in which they are best; where none is better than the whole, in the
/// variable that has been halved least.
fn halve(
    problem: &Problem<'_>,
    variables: &[Variable],
    parent: &Open,
    left: &mut usize,
) -> Option<Vec<Open>> {
    let bound = parent.norm.norm;
    let mut best: Option<Halves> = None;
    for (k, &variable) in variables.iter().enumerate() {
        // While all bounds are infinite, they cannot be compared.
        let least = |k: usize| parent.halved.iter().all(|&h| parent.halved[k] <= h);
        if *left == 0 || !bound.is_finite() && best.is_some() && !least(k) {
            continue;
        }
        let Some(cells) = split(&parent.cell, variable) else {
            continue;
        };
        *left = left.saturating_sub(2);
        let halves: Vec<(Cell, Norm)> = cells
            .into_iter()
            .filter_map(|cell| {
                let norm = problem.norm(&cell)?;
                Some((cell, norm))
            })
            .collect();
        // A half lies within the whole, so its bound is at most that of the whole despite rounding.
        let norms = || halves.iter().map(|h| h.1.norm.min(bound));
        let found = Halves {
            variable: k,
            largest: norms().fold(0.0, f64::max),
            sum: norms().sum(),
            halved: parent.halved[k],
            halves,
        };
        if best
            .as_ref()
            .is_none_or(|best| found.is_better(best, bound))
        {
            best = Some(found);
        }
    }
    let best = best?;
    let stuck = if best.progresses(bound) {
        0
    } else {
        parent.stuck + 1
    };
    let mut halved = parent.halved.clone();
    halved[best.variable] += 1;
    let within = |norm: Norm| Norm {
        norm: norm.norm.min(bound),
        ..norm
    };
    let halves = best.halves.into_iter();
    Some(
        halves
            .map(|(cell, norm)| Open::new((cell, within(norm)), stuck, halved.clone()))
            .collect(),
    )
}

struct Halves {
    variable: usize,
    /// The larger bound of the two, and the sum of both.
    largest: f64,
    sum: f64,
    halved: u32,
    halves: Vec<(Cell, Norm)>,
}

impl Halves {
    fn progresses(&self, bound: f64) -> bool {
        self.largest < bound * (1.0 - PROGRESS)
    }

    fn is_better(&self, other: &Halves, bound: f64) -> bool {
        match (self.progresses(bound), other.progresses(bound)) {
            (true, true) => self.largest < other.largest,
            (own, others) if own != others => own,
            _ => (self.halved, self.sum) < (other.halved, other.sum),
        }
    }
}

fn split(cell: &Cell, variable: Variable) -> Option<[Cell; 2]> {
    let (range, whole) = match variable {
        Variable::Column { index, whole } => (cell.columns[index], whole),
        Variable::Coordinate(k) => (cell.theta[k], false),
        Variable::Place(k) => (cell.places[k], false),
    };
    let parts = parts(range, whole)?;
    Some(parts.map(|part| {
        let mut cell = cell.clone();
        match variable {
            Variable::Column { index, .. } => cell.columns[index] = part,
            Variable::Coordinate(k) => cell.theta[k] = part,
            Variable::Place(k) => cell.places[k] = part,
        }
        cell
    }))
}

/// Two parts that cover the range; `None` where it is too small.
fn parts(range: Range, whole: bool) -> Option<[Range; 2]> {
    let Range { low, high } = range;
    let middle = middle(low, high);
    if whole {
        let middle = middle.floor();
        let next = middle + 1.0;
        return (low <= middle && next <= high && middle < next)
            .then(|| [Range::new(low, middle), Range::new(next, high)]);
    }
    (low < middle && middle < high).then(|| [Range::new(low, middle), Range::new(middle, high)])
}

/// Doubling where there is no end, halving where there is one.
fn middle(low: f64, high: f64) -> f64 {
    if high <= 0.0 && low < 0.0 {
        return -middle(-high, -low);
    }
    match (low.is_infinite(), high.is_infinite()) {
        (true, true) | (true, false) => 0.0,
        (false, true) if low < 0.0 => 0.0,
        (false, true) if low < 1.0 => 1.0,
        (false, true) => 2.0 * low,
        (false, false) if low > 0.0 && high / low > 64.0 => low.sqrt() * high.sqrt(),
        (false, false) => 0.5 * low + 0.5 * high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_range() {
        let range = |a, b| Range::new(a, b);
        assert_eq!(
            parts(range(1.0, 4.0), true),
            Some([range(1.0, 2.0), range(3.0, 4.0)])
        );
        assert_eq!(parts(range(3.0, 3.0), true), None);
        assert_eq!(
            parts(range(0.0, 1.0), true),
            Some([range(0.0, 0.0), range(1.0, 1.0)])
        );
        assert_eq!(
            parts(range(-1.0, 0.0), true),
            Some([range(-1.0, -1.0), range(0.0, 0.0)])
        );
        let infinity = f64::INFINITY;
        assert_eq!(
            parts(Range::ALL, false),
            Some([range(-infinity, 0.0), range(0.0, infinity)])
        );
        assert_eq!(
            parts(range(-infinity, -4.0), false),
            Some([range(-infinity, -8.0), range(-8.0, -4.0)])
        );
        let two = parts(range(1e-6, 1e6), false).expect("two parts");
        assert!((two[0].high - 1.0).abs() < 1e-9 && two[0].high == two[1].low);
    }
}

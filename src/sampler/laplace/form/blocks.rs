//! Groups of coordinates of which a record sees one, as with a parameter for each school: the
//! information of all records is zero between coordinates of different groups.

use crate::linear::Matrix;

/// Two coordinates whose products are below this, as a correlation, are never seen together.
const APART: f64 = 1e-10;
/// The least number of groups, since with fewer the noise between them costs little; the number from which on
/// there are many, of each of which few records are simulated; and the largest number of coordinates in one.
const LEAST_GROUPS: usize = 8;
const MANY_GROUPS: usize = 30;
const LARGEST_GROUP: usize = 4;
/// A pivot below this is none, and an entry below this is a rounding error; entries are about 1.
const PIVOT: f64 = 1e-6;
const ROUNDING: f64 = 1e-9;

/// The coordinates of a search, by the records that see them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blocks {
    /// Those that are seen together with coordinates of several groups.
    pub shared: Vec<usize>,
    pub groups: Vec<Vec<usize>>,
}

impl Blocks {
    /// The groups that this sum of products of records' gradients shows; `None` where there are too few.
    pub fn of(products: &Matrix) -> Option<Blocks> {
        let m = products.rows();
        let together = seen_together(products);
        let mut by_company: Vec<usize> = (0..m).collect();
        by_company.sort_by_key(|&j| std::cmp::Reverse(together[j].len()));
        let mut grouped = vec![true; m];
        for next in std::iter::once(None).chain(by_company.into_iter().map(Some)) {
            if let Some(j) = next {
                grouped[j] = false;
            }
            let groups = components(&together, &grouped);
            let largest = groups.iter().map(Vec::len).max()?;
            if largest <= LARGEST_GROUP {
                let shared = (0..m).filter(|&j| !grouped[j]).collect();
                return (groups.len() >= LEAST_GROUPS).then_some(Blocks { shared, groups });
            }
        }
        None
    }

    /// Whether there are few groups.
    pub fn are_few(&self) -> bool {
        self.groups.len() < MANY_GROUPS
    }

    /// The matrix without its entries between different groups.
    pub fn of_arrow(&self, matrix: &Matrix) -> Matrix {
        let mut group = vec![None; matrix.rows()];
        for (k, members) in self.groups.iter().enumerate() {
            for &j in members {
                group[j] = Some(k);
            }
        }
        Matrix::new(matrix.rows(), matrix.columns(), |i, j| {
            match (group[i], group[j]) {
                (Some(a), Some(b)) if a != b => 0.0,
                _ => matrix[(i, j)],
            }
        })
    }

    /// The weights of coordinates in the length of a record's gradient; their mean square is 1. With
    /// equal weights nearly all of it would be its group's, and the noise that hides it would be as large
    /// for what is shared. With squares in inverse proportion to the root of the number of coordinates,
    /// the sum of both kinds' relative noise is least.
    pub fn weights(&self) -> Vec<f64> {
        let grouped: usize = self.groups.iter().map(Vec::len).sum();
        let (s, g) = (self.shared.len() as f64, grouped as f64);
        let of_group = (s + g) / (g + (s * g).sqrt());
        let of_shared = (s + g) / (s + (s * g).sqrt());
        let mut weights = vec![of_group.sqrt(); self.shared.len() + grouped];
        for &j in &self.shared {
            weights[j] = of_shared.sqrt();
        }
        weights
    }

    /// For each place in a group, the coordinates that groups have there.
    pub fn places(&self) -> Vec<Vec<usize>> {
        let most = self.groups.iter().map(Vec::len).max().unwrap_or(0);
        let at = |k| {
            self.groups
                .iter()
                .filter_map(move |group| group.get(k).copied())
        };
        (0..most).map(|k| at(k).collect()).collect()
    }

    /// The largest number of coordinates that a record may see.
    pub fn seen_by_one(&self) -> usize {
        self.shared.len() + self.groups.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// The coordinates beside each that some record sees together with it.
fn seen_together(products: &Matrix) -> Vec<Vec<usize>> {
    let m = products.rows();
    let beside = |i: usize, j: usize| {
        let both = (products[(i, i)] * products[(j, j)]).sqrt();
        i != j && products[(i, j)].abs() > APART * both
    };
    (0..m)
        .map(|i| (0..m).filter(|&j| beside(i, j)).collect())
        .collect()
}

/// The connected components of the coordinates that are `kept`.
fn components(together: &[Vec<usize>], kept: &[bool]) -> Vec<Vec<usize>> {
    let mut reached = vec![false; kept.len()];
    let mut components = Vec::new();
    for first in 0..kept.len() {
        if !kept[first] || reached[first] {
            continue;
        }
        reached[first] = true;
        let mut members = vec![first];
        let mut next = 0;
        while next < members.len() {
            for &j in &together[members[next]] {
                if kept[j] && !reached[j] {
                    reached[j] = true;
                    members.push(j);
                }
            }
            next += 1;
        }
        members.sort_unstable();
        components.push(members);
    }
    components
}

/// A basis of the space that the columns of `seen` span, as rows with few entries: that of an
/// elimination which begins with the coordinates that are seen together with the fewest others. So
/// `a + b[g]` is found where records see `a` and `b[g]` in no other way.
pub(super) fn few_entries(seen: &Matrix, products: &Matrix) -> Matrix {
    let (q, s) = (seen.rows(), seen.columns());
    let together = seen_together(products);
    let mut order: Vec<usize> = (0..q).collect();
    order.sort_by_key(|&j| together[j].len());
    let mut rows = seen.transposed();
    let mut done = 0;
    for column in order {
        let largest =
            (done..s).max_by(|&a, &b| rows[(a, column)].abs().total_cmp(&rows[(b, column)].abs()));
        let Some(pivot) = largest.filter(|&row| rows[(row, column)].abs() > PIVOT) else {
            continue;
        };
        let by = rows[(pivot, column)];
        let new: Vec<f64> = (0..q).map(|j| rows[(pivot, j)] / by).collect();
        rows = Matrix::new(s, q, |i, j| {
            if i == done {
                new[j]
            } else {
                let old = if i == pivot { done } else { i };
                rows[(old, j)] - rows[(old, column)] * new[j]
            }
        });
        done += 1;
    }
    Matrix::new(s, q, |i, j| {
        let entry = rows[(i, j)];
        if entry.abs() > ROUNDING { entry } else { 0.0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of gradients of thirty groups of one coordinate each, beside two that all records see.
    fn of_groups() -> Matrix {
        Matrix::new(32, 32, |i, j| {
            if i == j {
                2.0
            } else if i < 2 || j < 2 {
                0.1
            } else {
                0.0
            }
        })
    }

    #[test]
    fn coordinates_that_are_never_seen_together_are_groups() {
        let blocks = Blocks::of(&of_groups()).unwrap();
        assert_eq!(blocks.shared, [0, 1]);
        assert_eq!(blocks.groups, (2..32).map(|j| vec![j]).collect::<Vec<_>>());
        assert_eq!(blocks.seen_by_one(), 3);
        let weights = blocks.weights();
        let square: f64 = weights.iter().map(|w| w * w).sum();
        assert!((square - 32.0).abs() < 1e-12 && weights[0] > weights[2]);
        let dense = Matrix::new(32, 32, |_, _| 1.0);
        assert_eq!(blocks.of_arrow(&dense)[(2, 3)], 0.0);
        assert_eq!(blocks.of_arrow(&dense)[(0, 3)], 1.0);
        // Too few groups, and records that see everything.
        let few = Matrix::new(9, 9, |i, j| of_groups()[(i, j)]);
        assert_eq!(Blocks::of(&few), None);
        assert_eq!(Blocks::of(&dense), None);
    }

    // If it failed: groups would not be found where records see the sum of an intercept and theirs.
    #[test]
    fn an_intercept_that_is_only_seen_in_sums_is_part_of_each_group() {
        // Records see (1, e_g): the space of e_g and of their sum with the first coordinate.
        let information = Matrix::new(13, 13, |i, j| match (i, j) {
            (0, 0) => 12.0,
            (i, j) if i == j || i == 0 || j == 0 => 1.0,
            _ => 0.0,
        });
        let (values, vectors) = information.eigen();
        let seen: Vec<usize> = (0..13).filter(|&k| values[k] > 1e-9).collect();
        assert_eq!(seen.len(), 12);
        let seen = Matrix::new(13, 12, |i, k| vectors[(i, seen[k])]);
        let rows = few_entries(&seen, &information);
        for k in 0..12 {
            let entries = (0..13).filter(|&j| rows[(k, j)].abs() > 1e-9);
            assert_eq!(entries.count(), 2, "{rows:?}");
            assert!((rows[(k, 0)] - 1.0).abs() < 1e-6, "{rows:?}");
        }
    }
}

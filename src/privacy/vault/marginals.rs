//! How often the values of each column lie where: counts in public cells, released once.

use super::batch::{charged_noise, released};
use super::{Charge, ReleaseError};
use crate::density::BLOCK;
use crate::privacy::gradient::{GradientScale, Gradients, Memory};
use crate::privacy::noisy::Noisy;
use crate::privacy::randomness::PrivateRng;
use crate::privacy::rows::Rows;
use crate::privacy::store::Columns;
use crate::privacy::subsampling::Subsampling;

/// The cells into which the values of a column fall: public.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    /// The column's place among those that are declared.
    pub column: usize,
    /// Ascending: the values of an int, each with a cell of its own; or ends of ranges, the first and
    /// the last of which have cells of their own beside.
    pub marks: Vec<f64>,
    pub are_values: bool,
}

impl Cells {
    pub fn count(&self) -> usize {
        self.marks.len() + usize::from(!self.are_values)
    }

    /// The cell of a value, whatever it is.
    fn of(&self, x: f64) -> usize {
        let below = self.marks.partition_point(|mark| *mark <= x);
        if self.are_values {
            return below.saturating_sub(1);
        }
        // At the first mark or below, in a range, or at the last mark or above.
        match self.marks.first() {
            Some(first) if x > *first => below,
            _ => 0,
        }
    }
}

/// The number of coordinates of a unit's vector.
pub(crate) fn coordinates(cells: &[Cells]) -> usize {
    cells.iter().map(Cells::count).sum()
}

/// The length that no unit's vector exceeds: its part for each column has the length 1 at most.
pub(crate) fn length(cells: &[Cells]) -> f64 {
    (cells.len() as f64).sqrt() * (1.0 + 1e-12)
}

impl Rows {
    /// For each cell of each column the number of records in it, plus noise; of units of several
    /// rows, the sum of the shares of their rows.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise on one vector for each unit, which has no negative
    /// entry and is clipped by `scale`. Charged, and the noise drawn, before a row is read.
    ///
    /// # Sensitivity
    ///
    /// Vectors are not longer than [`length`], and no two of them point away from each other
    /// (`GradientScale::alike`). Proof: docs/proofs.md, section 5.
    pub(crate) fn noisy_marginals(
        self,
        cells: &[Cells],
        scale: &GradientScale,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        let (n, count) = (self.n(), coordinates(cells));
        let noise = charged_noise(n, count, scale, Subsampling::All, charge, rng)?;
        let sum = self.marginal_sum(cells, scale)?;
        Ok(released(n, &sum, 1, &noise, scale))
    }

    /// The sum in lattice units.
    fn marginal_sum(
        self,
        cells: &[Cells],
        scale: &GradientScale,
    ) -> Result<Vec<i128>, ReleaseError> {
        let Rows {
            store,
            missing,
            units,
            ..
        } = self;
        let all: Vec<(usize, usize)> = (0..store.columns()).map(|c| (0, c)).collect();
        let columns = Columns::new(vec![store], &all);
        let ends: Vec<usize> = match units {
            Some(units) => units.ends,
            None => (1..=missing.len()).collect(),
        };
        let mut window = columns.window();
        let mut sum = vec![0; coordinates(cells)];
        let mut memory = Memory::default();
        let mut vectors = vec![0.0; coordinates(cells) * BLOCK];
        let mut counts = Vec::with_capacity(BLOCK);
        // The unit, the first of its rows, and how many of a block of vectors are complete.
        let (mut unit, mut first, mut used) = (0, 0, 0);
        for start in (0..missing.len()).step_by(BLOCK) {
            let rows = BLOCK.min(missing.len() - start);
            let block = window.rows(start..start + rows);
            for i in 0..rows {
                let mut place = 0;
                for cells in cells {
                    vectors[(place + cells.of(block[cells.column][i])) * BLOCK + used] += 1.0;
                    place += cells.count();
                }
                let end = start + i + 1;
                if end < ends[unit] {
                    continue;
                }
                // Of several rows, none is missing.
                let is_blank = missing[first];
                #[cfg(test)]
                let is_blank =
                    is_blank && !crate::planted::is(crate::planted::Planted::BlankCounts);
                counts.push(!is_blank);
                if end - first > 1 {
                    for value in vectors[used..].iter_mut().step_by(BLOCK) {
                        *value /= (end - first) as f64;
                    }
                }
                (unit, first, used) = (unit + 1, end, used + 1);
                if used == BLOCK || end == missing.len() {
                    let whole = Gradients::whole(&vectors);
                    scale.add_clipped(whole, &counts, &mut memory, &mut sum);
                    vectors.fill(0.0);
                    counts.clear();
                    used = 0;
                }
            }
        }
        match columns.failure() {
            None => Ok(sum),
            Some(reason) => Err(ReleaseError::Rows(reason.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Event, Gaussian, Lattice, Relation};
    use crate::model::{Constants, Model};
    use crate::privacy::vault::tests::{Lcg, squared_distance};
    use crate::privacy::{NotPrivate, OnBadRows, half_distance};

    const SOURCE: &str =
        "record { real<lower=0, upper=10> x; int<lower=1, upper=3> k; real<lower=0, upper=1> z; }
        parameters { real a; } model { a ~ normal(0, 1); target += a * (x + k + z); }";

    fn cells() -> Vec<Cells> {
        let of_column = |column, marks: &[f64], are_values| Cells {
            column,
            marks: marks.to_vec(),
            are_values,
        };
        vec![
            of_column(0, &[0.0, 2.0, 5.0, 10.0], false),
            of_column(1, &[1.0, 2.0, 3.0], true),
            of_column(2, &[0.0, 0.5, 1.0], false),
        ]
    }

    fn rows(data: &[Vec<f64>]) -> Rows {
        let model = Model::from_source(SOURCE, &Constants::none()).unwrap();
        let names = model.columns.iter().map(|c| c.name.clone());
        let named = names.zip(data.iter().cloned()).collect();
        Rows::from_columns(&model.columns, named, OnBadRows::Error).unwrap()
    }

    fn record(rng: &mut Lcg) -> [f64; 3] {
        // Often the same cells, or the ends.
        let x = [0.0, 10.0, 10.0 * rng.uniform()][(3.0 * rng.uniform()) as usize];
        [
            x,
            1.0 + (3.0 * rng.uniform()).floor(),
            rng.uniform().round(),
        ]
    }

    fn table(records: &[[f64; 3]]) -> Vec<Vec<f64>> {
        (0..3)
            .map(|c| records.iter().map(|r| r[c]).collect())
            .collect()
    }

    #[test]
    fn values_are_counted_in_their_cells() {
        let cells = cells();
        let ranges = &cells[0];
        for (x, cell) in [
            (0.0, 0),
            (1e-9, 1),
            (1.9, 1),
            (2.0, 2),
            (5.0, 3),
            (9.9, 3),
            (10.0, 4),
        ] {
            assert_eq!(ranges.of(x), cell, "{x}");
        }
        for (x, cell) in [(1.0, 0), (2.0, 1), (3.0, 2)] {
            assert_eq!(cells[1].of(x), cell, "{x}");
        }
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1e300] {
            for cells in &cells {
                assert!(cells.of(x) < cells.count());
            }
        }
        // A masked record is in none.
        let data = [
            vec![0.0, 3.0, 3.5, f64::NAN],
            vec![1.0, 3.0, 3.0, 2.0],
            vec![1.0, 0.2, 0.0, 0.1],
        ];
        let scale = GradientScale::alike(length(&cells), 1, 0.01, coordinates(&cells)).unwrap();
        let sum = rows(&data).marginal_sum(&cells, &scale).unwrap();
        let counts: Vec<f64> = sum.iter().map(|&s| scale.real(s)).collect();
        let expected = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 1.0];
        for (a, b) in counts.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{counts:?}");
        }
    }

    // Wrong here: one record, or all rows of one unit, that move the counts further than is charged
    // for. Power: some pair moves them by nearly as much.
    #[test]
    fn neighbours_differ_by_at_most_the_sensitivity_in_marginals() {
        let mut rng = Lcg(3);
        let cells = cells();
        for factor in [1, 2] {
            let scale = GradientScale::alike(length(&cells), factor, 0.3, coordinates(&cells));
            let scale = scale.unwrap();
            let most = i128::from(scale.sensitivity());
            let (mut closest, mut by_unit) = (0.0f64, 0.0f64);
            for _ in 0..300 {
                let a: Vec<[f64; 3]> = (0..6).map(|_| record(&mut rng)).collect();
                let mut b = a.clone();
                b[2] = record(&mut rng);
                let (mut left, mut right) = (table(&a), table(&b));
                if factor == 1 {
                    right = left.clone();
                    right[0][2] = f64::NAN;
                }
                let distance = |left: Rows, right: Rows| {
                    let sum = |rows: Rows| rows.marginal_sum(&cells, &scale).unwrap();
                    let squared = squared_distance(&sum(left), &sum(right));
                    assert!(squared <= most * most, "{a:?} {b:?}");
                    (squared as f64).sqrt() / most as f64
                };
                closest = closest.max(distance(rows(&left), rows(&right)));
                // Other rows, and as many as they like, for the unit 1.
                let mut keys = vec![0, 0, 1, 1, 2, 2];
                let mut others = keys.clone();
                if factor == 1 {
                    for c in 0..3 {
                        left[c].truncate(6);
                        right[c] = [&table(&a)[c][..2], &table(&a)[c][4..]].concat();
                    }
                    others = vec![0, 0, 2, 2];
                } else {
                    for _ in 0..(4.0 * rng.uniform()) as usize {
                        for (column, x) in right.iter_mut().zip(record(&mut rng)) {
                            column.push(x);
                        }
                        others.push(1);
                    }
                    for (c, x) in record(&mut rng).into_iter().enumerate() {
                        right[c][3] = x;
                    }
                }
                keys.truncate(left[0].len());
                let left = rows(&left).by_unit(&keys).unwrap();
                let right = rows(&right).by_unit(&others).unwrap();
                by_unit = by_unit.max(distance(left, right));
            }
            assert!(
                closest > 0.999 && by_unit > 0.7,
                "{factor}: {closest} {by_unit}"
            );
        }
    }

    // Wrong here: counts that leave before they are charged, are charged for less, or have other noise
    // than is said. 2,000 figures with the noise alone: five standard errors of their variance.
    #[test]
    fn marginals_are_charged_and_have_their_noise() {
        let cells = cells();
        let scale = GradientScale::alike(length(&cells), 2, 1.5, coordinates(&cells)).unwrap();
        let event = |sigma: f64| {
            let lattice = Lattice::new(scale.lattice_ratio(), coordinates(&cells) as u64).unwrap();
            let clip = length(&cells) * half_distance(2);
            let release = Gaussian::of_clip("covariates", clip, Relation::Substitute, sigma);
            Event::Gaussian(release.unwrap().on_lattice(lattice))
        };
        let mut rng = PrivateRng::insecure(4, NotPrivate::acknowledged());
        let data = [vec![0.0], vec![1.0], vec![0.0]];
        let mut ask = |planned: Vec<Event>, times: usize| {
            let meter = NotPrivate::acknowledged().meter(planned);
            let charge = Charge::first(&meter);
            (0..times)
                .map(|_| rows(&data).noisy_marginals(&cells, &scale, charge, &mut rng))
                .map(|sums| sums.map(Noisy::into_inner).map_err(|e| e.to_string()))
                .collect::<Vec<_>>()
        };
        assert!(ask(Vec::new(), 1)[0].is_err());
        assert!(
            ask(vec![event(scale.sigma() * 1.01)], 1)[0].is_err(),
            "more noise was planned"
        );
        let twice = ask(vec![event(scale.sigma())], 2);
        assert!(twice[0].is_ok() && twice[1].is_err());
        let many = ask(vec![event(scale.sigma()); 1], 1);
        assert_eq!(many[0].as_ref().unwrap().len(), 12);
        let mut squares = 0.0;
        for _ in 0..200 {
            let sums = ask(vec![event(scale.sigma())], 1)[0].clone().unwrap();
            // The record is in the first cells of the first two columns and of the third.
            let noise = sums.iter().enumerate().map(|(k, s)| match k {
                0 | 5 | 8 => s - 1.0,
                _ => *s,
            });
            squares += noise.map(|x| x * x).sum::<f64>();
        }
        let ratio = squares / 2400.0 / (scale.sigma() * scale.sigma());
        assert!(
            (ratio - 1.0).abs() < 5.0 * (2.0 / 2400.0f64).sqrt(),
            "{ratio}"
        );
    }
}

//! Tests that try to break sums over units of several rows.

use super::tests::{
    Lcg, MODELS, columns_of, density, play, point, query, same_integers, shares_reached,
    squared_distance, table,
};
use super::*;
use crate::density::{Frame, Law};
use crate::privacy::{Expected, GradientScale, Look, OnBadRows, Statistic};

/// A table of all models' columns, and the unit of each row.
#[derive(Clone)]
struct Grouped {
    columns: Vec<Vec<f64>>,
    keys: Vec<u64>,
}

impl Grouped {
    /// Units `keys`, of 0 to `most` rows each, in turn: no unit's rows are contiguous.
    fn new(rng: &mut Lcg, density: &Density, keys: std::ops::Range<u64>, most: u64) -> Grouped {
        let mut left: Vec<(u64, u64)> = keys.map(|key| (key, rng.next() % (most + 1))).collect();
        let mut order = Vec::new();
        while left.iter().any(|(_, rows)| *rows > 0) {
            for (key, rows) in &mut left {
                if *rows > 0 {
                    *rows -= 1;
                    order.push(*key);
                }
            }
        }
        Grouped {
            columns: table(rng, density, order.len()),
            keys: order,
        }
    }

    /// A table, and it with other rows of unit `key`, without them, and with blank ones.
    fn neighbours(rng: &mut Lcg, density: &Density, key: u64) -> [Grouped; 4] {
        // A table must have a row.
        let fixed = Grouped {
            columns: table(rng, density, 1),
            keys: vec![7],
        };
        let original = Grouped::new(rng, density, 0..3, 4).with(&fixed);
        let others = original.without(key);
        let substituted = others.with(&Grouped::new(rng, density, key..key + 1, 9));
        let empty = Grouped {
            columns: vec![vec![f64::NAN; 2]; fixed.columns.len()],
            keys: vec![key; 2],
        };
        let blank = others.with(&empty);
        [original, substituted, others, blank]
    }

    fn without(&self, key: u64) -> Grouped {
        let kept = |row: &usize| self.keys[*row] != key;
        self.picked((0..self.keys.len()).filter(kept))
    }

    fn with(&self, other: &Grouped) -> Grouped {
        let mut all = self.clone();
        all.keys.extend(&other.keys);
        for (column, more) in all.columns.iter_mut().zip(&other.columns) {
            column.extend(more);
        }
        all
    }

    fn picked(&self, rows: impl Iterator<Item = usize>) -> Grouped {
        let rows: Vec<usize> = rows.collect();
        Grouped {
            columns: self
                .columns
                .iter()
                .map(|column| rows.iter().map(|&row| column[row]).collect())
                .collect(),
            keys: rows.iter().map(|&row| self.keys[row]).collect(),
        }
    }

    fn rows(&self, density: &Density) -> Rows {
        let named = columns_of(density)
            .into_iter()
            .zip(&self.columns)
            .map(|((name, ..), values)| (name, values.clone()))
            .collect();
        Rows::from_columns(&density.model().columns, named, OnBadRows::Error)
            .unwrap_or_else(|e| panic!("{e}"))
    }

    fn vault(&self, source: &str) -> Vault {
        let density = density(source);
        let rows = self
            .rows(&density)
            .by_unit(&self.keys)
            .unwrap_or_else(|e| panic!("{e}"));
        Vault::new(density, rows).unwrap()
    }

    /// The mutant: every row is a unit of its own.
    fn vault_by_row(&self, source: &str) -> Vault {
        let density = density(source);
        let rows = self.rows(&density);
        Vault::new(density, rows).unwrap()
    }
}

/// Record-play with units: 10^4 pairs of tables per release and relation, in which one unit has
/// other rows, equally many, more or fewer, or blank ones, or none. The integer sums never differ
/// by more than the declared sensitivity. Clipping each row and summing then would exceed it in
/// more than a tenth of such pairs, which is asserted.
#[test]
fn neighbouring_units_differ_by_at_most_the_sensitivity() {
    let mut rng = Lcg(11);
    let mut closest = [0.0f64; 2];
    let (mut mutants, mut mutant_gradients, mut mutant_ratios) = (0, 0, 0);
    let pairs = 10_000 / MODELS.len() + 1;
    for source in MODELS {
        let d = density(source);
        for pair in 0..pairs {
            let key = (pair % 3) as u64;
            let tables = Grouped::neighbours(&mut rng, &d, key);
            let from = point(&mut rng, d.dimension());
            let to = point(&mut rng, d.dimension());
            let clip = [0.01, 1.0, 8.0][pair % 3];
            let vaults = tables.each_ref().map(|t| t.vault(source));
            let what = format!("pair {pair} of {source}");
            let reached = play(&vaults, [&from, &to], clip, &what);
            closest = std::array::from_fn(|k| closest[k].max(reached[k]));

            if pair % 10 != 0 {
                continue;
            }
            mutants += 1;
            let scale = GradientScale::new(clip, 2, 5.0).unwrap();
            let bound = i128::from(scale.bound());
            let query = query(3.0, clip);
            let limit = i128::from(query.clip_bound());
            let [a, c] = [&tables[0], &tables[2]].map(|t| t.vault_by_row(source));
            let sums = [&a, &c].map(|v| v.table.clipped_gradient_sum(&v.density, &from, &scale));
            mutant_gradients += usize::from(squared_distance(&sums[0], &sums[1]) > bound * bound);
            let ratios = [&a, &c].map(|v| v.clipped_log_ratio_sum(&from, &to, 1.0, &query));
            mutant_ratios += usize::from((ratios[0] - ratios[1]).abs() > limit);
        }
    }
    assert!(closest[0] > 0.99 && closest[1] > 0.999, "{closest:?}");
    assert!(mutant_gradients > mutants / 10, "{mutant_gradients}");
    assert!(mutant_ratios > mutants / 10, "{mutant_ratios}");
}

/// The same for the statistics of a private start: by a law, and by second derivatives.
#[test]
fn neighbouring_units_differ_by_at_most_the_sensitivity_in_what_is_learnt() {
    let statistics = [
        Statistic::Products,
        Statistic::GradientLengths,
        Statistic::Beyond,
        Statistic::Centred,
        Statistic::Slope,
        Statistic::Information,
        Statistic::InformationLengths,
        Statistic::Curvature,
        Statistic::CurvatureLengths,
    ];
    let mut rng = Lcg(16);
    let mut closest = [0.0f64; 9];
    let mut farthest = [0.0f64; 9];
    for source in MODELS {
        let d = density(source);
        let dimension = d.dimension();
        let law = Law::of(&d, &vec![0.1; dimension], 1).unwrap();
        let space = d.parameters();
        for pair in 0..200 {
            let key = (pair % 3) as u64;
            let vaults = Grouped::neighbours(&mut rng, &d, key).map(|t| t.vault(source));
            let theta = point(&mut rng, dimension);
            let frame = Frame::about(theta.clone());
            let clip = [0.01, 1.0, 8.0][pair % 3];
            for (k, statistic) in statistics.into_iter().enumerate() {
                let expected = match pair % 2 {
                    0 => Expected::by_law(&law, &space, &theta, &frame),
                    _ => Expected::by_differences(&d, &space, &frame, 0.01),
                };
                let look = Look {
                    expected: Some(&expected),
                    inner_clip: clip,
                    ..Look::new(d.sight(&space, &theta, &frame), statistic)
                };
                let scale = statistic.scale(clip, 2, 5.0, dimension).unwrap();
                let sums = vaults
                    .each_ref()
                    .map(|v| v.table.clipped_sum(&v.density, &look, &scale));
                let what = format!("{statistic:?} of {source}");
                let (bound, most) = (scale.bound().into(), scale.sensitivity().into());
                let [gone, replaced] = shares_reached(&sums, bound, most, &what);
                closest[k] = closest[k].max(gone);
                farthest[k] = farthest[k].max(replaced);
            }
        }
    }
    for (closest, farthest) in closest.into_iter().zip(farthest) {
        assert!(closest > 0.99 && farthest > 0.7, "{closest} {farthest}");
    }
}

/// A unit's floats are added as if no addition lost anything: -2^54 and then three thousand times
/// 1, each of which would be lost in it. Wrong here: matrices of units of very many rows would be
/// farther from alike than the bound allows.
#[test]
fn sums_of_many_rows_lose_nothing() {
    let source = "record { real y; } parameters { real m; } model { y ~ normal(m, 1); }";
    let large = 2f64.powi(54);
    let mut ys = vec![-large];
    ys.extend([1.0; 3000]);
    assert_eq!(ys.iter().sum::<f64>(), -large);
    let unit = Grouped {
        keys: vec![0; ys.len()],
        columns: vec![ys],
    };
    let vault = unit.vault(source);
    let scale = GradientScale::new(2.0 * large, 2, 1e-3).unwrap();
    let sum = vault
        .table
        .clipped_gradient_sum(&vault.density, &[0.0], &scale);
    let step = scale.sigma() * scale.lattice_ratio();
    let lost = (large + scale.real(sum[0]) - 3000.0).abs();
    assert!(step < 1000.0 && lost <= step, "{lost} {step}");
}

/// Small units, units as long as a block and longer than a task, missing values and impossible
/// rows: the sums do not depend on the order of rows, to the bit.
#[test]
fn permuted_rows_give_the_same_integers() {
    let mut rng = Lcg(12);
    for source in MODELS {
        let d = density(source);
        let mut original = Grouped::new(&mut rng, &d, 0..2000, 5);
        for (key, most) in [(5000, 255), (5001, 256), (5002, 257), (5003, 9000)] {
            // Moderate values, so that the sums are not dominated by one enormous row.
            let mut columns = table(&mut rng, &d, most);
            for value in columns.iter_mut().flatten() {
                *value = if value.abs() < 10.0 { *value } else { 1.0 };
            }
            let keys = vec![key; most];
            original = original.with(&Grouped { columns, keys });
        }
        let n = original.keys.len();
        let step = (2347..).find(|step| gcd(*step, n) == 1).unwrap();
        let permuted = original.picked((0..n).map(|i| (i * step + 11) % n));
        let (a, b) = (original.vault(source), permuted.vault(source));
        let (from, to) = (
            point(&mut rng, d.dimension()),
            point(&mut rng, d.dimension()),
        );
        for clip in [0.5, 1e4] {
            // The finest lattice possible: it holds the last bits of a sum.
            let scale = GradientScale::new(clip, 2, 1e-3).unwrap();
            same_integers([&a, &b], [&from, &to], 0.3, &scale, &query(1e-4, clip));
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A unit of one row is a record, to the bit, in every release.
#[test]
fn units_of_one_row_are_records() {
    let mut rng = Lcg(14);
    for source in MODELS {
        let d = density(source);
        let n = 3000;
        let columns = table(&mut rng, &d, n);
        let keys = (0..n as u64).map(|i| i * 7919 % 10_007).collect();
        let grouped = Grouped { columns, keys };
        let (units, records) = (grouped.vault(source), grouped.vault_by_row(source));
        assert_eq!((units.n(), records.n()), (n, n));
        let (from, to) = (
            point(&mut rng, d.dimension()),
            point(&mut rng, d.dimension()),
        );
        for clip in [0.01, 1.0, 100.0] {
            let scale = GradientScale::new(clip, 2, 5.0).unwrap();
            let query = query(1e-4, clip);
            same_integers([&units, &records], [&from, &to], 0.7, &scale, &query);
        }
    }
}

/// Each unit's integers are those of one record whose gradient and log-likelihood
/// are the sums: units that straddle blocks and tasks are neither split nor mixed.
#[test]
fn a_unit_is_its_rows_together() {
    let mut rng = Lcg(15);
    let source = MODELS[0];
    let d = density(source);
    let finite = |rng: &mut Lcg, n: usize| -> Vec<Vec<f64>> {
        let y = (0..n).map(|_| (rng.next() % 2) as f64).collect();
        let x = (0..n).map(|_| rng.uniform() - 0.5).collect();
        vec![y, x]
    };
    let sizes = [1, 300, 2, 256, 5000, 1, 255, 4096, 3];
    let mut all = Grouped {
        columns: vec![Vec::new(); 2],
        keys: Vec::new(),
    };
    let (theta, to) = (
        point(&mut rng, d.dimension()),
        point(&mut rng, d.dimension()),
    );
    let scale = GradientScale::new(3.0, 2, 5.0).unwrap();
    let wide = GradientScale::new(1e5, 2, 5.0).unwrap();
    let mut sums = vec![0; d.dimension()];
    let mut ratios = 0;
    let mut clipped = 0;
    for (key, &size) in sizes.iter().enumerate() {
        let unit = Grouped {
            columns: finite(&mut rng, size),
            keys: vec![key as u64; size],
        };
        let alone = unit.vault(source);
        let own = alone
            .table
            .clipped_gradient_sum(&alone.density, &theta, &scale);
        assert!(squared_distance(&own, &[0, 0]) <= i128::from(scale.bound()).pow(2));
        for (sum, part) in sums.iter_mut().zip(own) {
            *sum += part;
        }
        ratios += alone.clipped_log_ratio_sum(&theta, &to, 1.0, &query(1e-4, 2.0));
        // Alone and unclipped, a unit is the sum of its rows.
        let by_row = unit.vault_by_row(source);
        let (whole, rows) = (
            alone
                .table
                .clipped_gradient_sum(&alone.density, &theta, &wide),
            by_row
                .table
                .clipped_gradient_sum(&by_row.density, &theta, &wide),
        );
        for (a, b) in whole.iter().zip(&rows) {
            // Each row is truncated by less than one lattice step, and float sums
            // of up to 5000 gradients are off by less than 1e-11 of their size.
            let allowed = size as f64 + 1e-11 * (*b as f64).abs();
            assert!(((a - b) as f64).abs() <= allowed, "{size}: {a} {b}");
        }
        let unclipped = query(1e-4, 1e4);
        assert_eq!(
            alone.clipped_log_ratio_sum(&theta, &to, 1.0, &unclipped),
            by_row.clipped_log_ratio_sum(&theta, &to, 1.0, &unclipped)
        );
        let norm = squared_distance(&whole, &[0, 0]) as f64;
        clipped += usize::from(norm.sqrt() * wide.sigma() * wide.lattice_ratio() > 3.0);
        all = all.with(&unit);
    }
    assert!((3..sizes.len()).contains(&clipped), "{clipped}");
    let together = all.vault(source);
    assert_eq!(together.n(), sizes.len());
    assert_eq!(
        together
            .table
            .clipped_gradient_sum(&together.density, &theta, &scale),
        sums
    );
    assert_eq!(
        together.clipped_log_ratio_sum(&theta, &to, 1.0, &query(1e-4, 2.0)),
        ratios
    );
}

/// A row with a missing value leaves its unit as it would be without the row, but counted.
#[test]
fn missing_rows_keep_their_unit_counted() {
    let source = MODELS[0];
    let with = Grouped {
        columns: vec![
            vec![1.0, 0.0, 1.0, 0.0],
            vec![0.5, f64::NAN, -2.0, f64::NAN],
        ],
        keys: vec![1, 1, 2, 3],
    };
    let without = with.picked([2, 0].into_iter());
    let (a, b) = (with.vault(source), without.vault(source));
    assert_eq!((a.n(), b.n()), (3, 2));
    let scale = GradientScale::new(0.7, 2, 5.0).unwrap();
    let theta = [0.3, -0.8];
    assert_eq!(
        a.table.clipped_gradient_sum(&a.density, &theta, &scale),
        b.table.clipped_gradient_sum(&b.density, &theta, &scale)
    );
    let permission = NotPrivate::acknowledged();
    assert_eq!(a.exact(&theta, permission), b.exact(&theta, permission));
    let keys = [1, 2];
    assert!(with.rows(&density(source)).by_unit(&keys).is_err());
}

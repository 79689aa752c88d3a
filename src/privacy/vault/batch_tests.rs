//! Tests that try to break the releases about batches.

use super::*;
use crate::accounting::{Barker, Event, Gaussian, Lattice, Meter, Real, Relation, Subsampled};
use crate::privacy::batch_penalty::{BatchPenaltyPlan, BatchPenaltyScale};
use crate::privacy::subsampling::InclusionRate;
use crate::privacy::vault::tests::{
    Lcg, MODELS, columns_of, density, point, squared_distance, table, vault,
};
use crate::privacy::{OnBadRows, Rows};

fn query(scale: BatchPenaltyScale, bound: f64) -> BatchPenaltyQuery {
    match scale.plan(bound).unwrap() {
        BatchPenaltyPlan::Query(query) => query,
        other => panic!("{bound}: {other:?}"),
    }
}

fn rate(rate: f64) -> InclusionRate {
    InclusionRate::new(rate).unwrap()
}

/// Record-play with the same batch in both worlds: 10^4 pairs for each model, release and
/// relation, ugly values included. A batch has record i of a table of 600 in one world,
/// record j in its place or nothing in the other. The integer sums never differ by more
/// than the declared sensitivity, nor mean and variance of DP-Barker's test by more than is
/// assumed, and come close to it.
#[test]
fn neighbours_batches_differ_by_at_most_the_sensitivity() {
    let mut rng = Lcg(21);
    let mut closest = [0.0f64; 6];
    let n = 5;
    for source in MODELS {
        let d = density(source);
        let all = vault(source, &table(&mut rng, &d, 600));
        for pair in 0..10_000 {
            let mut record = || rng.next() as usize % 600;
            let (i, j) = (record(), record());
            let mut rest: Vec<usize> = (1..n).map(|_| record()).collect();
            rest.retain(|k| ![i, j].contains(k));
            let batch_with = |more: usize| {
                let members: Vec<usize> = rest.iter().copied().chain([more]).collect();
                all.table.gather(Batch::of(&members).members())
            };
            let tables = [
                batch_with(i),
                batch_with(j),
                all.table.gather(Batch::of(&rest).members()),
            ];
            let (from, to) = (
                point(&mut rng, d.dimension()),
                point(&mut rng, d.dimension()),
            );
            let clip = [0.01, 1.0, 8.0][pair % 3];

            let scale = GradientScale::new(clip, 2, 5.0).unwrap();
            let bound = i128::from(scale.bound());
            let sums = tables
                .each_ref()
                .map(|t| t.clipped_gradient_sum(&d, &from, &scale));
            let replaced = squared_distance(&sums[0], &sums[1]);
            let gone = squared_distance(&sums[0], &sums[2]);
            assert!(replaced <= 4 * bound * bound && gone <= bound * bound);
            let share = replaced as f64 / (4 * bound * bound) as f64;
            closest[0] = closest[0].max(share);

            let forms = [
                BatchPenaltyScale::poisson(rate(0.2), 0.5, 2, 0.01).unwrap(),
                BatchPenaltyScale::poisson(rate(0.2), 0.5, 1, 0.01).unwrap(),
                BatchPenaltyScale::fixed_size(n as u64, 20, 0.1, 0.01).unwrap(),
            ];
            for (form, scale) in forms.into_iter().enumerate() {
                let query = query(scale, clip / 4.0);
                let sums = tables
                    .each_ref()
                    .map(|t| query.value(t.tallied(&d, [&from, &to], 1.0, query.tally())));
                let moved = if form == 1 {
                    sums[0] - sums[2]
                } else {
                    sums[0] - sums[1]
                };
                let most = i128::from(query.sensitivity());
                assert!(moved.abs() <= most, "form {form}, pair {pair} of {source}");
                closest[form + 1] = closest[form + 1].max(moved.abs() as f64 / most as f64);
            }

            // `accounting::Barker` assumes means 2/sqrt(b) and variances 4(b-1)/b^2 apart.
            let temperature = [1e-3, 0.1, 1.0][pair % 3];
            let test = BarkerScale::new(n as u64, 20, temperature).unwrap();
            let [(a, sigma_a), (b, sigma_b)] = [&tables[0], &tables[1]]
                .map(|t| test.release(t.tallied(&d, [&from, &to], 1.0, test.tally())));
            let (unit, size) = (test.lattice_ratio(), n as f64);
            let mean = (a - b).abs() as f64 * unit / (2.0 / size.sqrt());
            let variance = |sigma: u64| (sigma as f64 * unit).powi(2);
            let apart = (variance(sigma_a) - variance(sigma_b)).abs();
            let apart = apart / (4.0 * (size - 1.0) / (size * size));
            assert!(mean <= 1.0 && apart <= 1.0, "pair {pair} of {source}");
            assert!(variance(sigma_a.min(sigma_b)) >= 1.0);
            closest[4] = closest[4].max(mean);
            closest[5] = closest[5].max(apart);
        }
    }
    assert!(closest[0] > 0.99 && closest[2] > 0.99, "{closest:?}");
    // max f - min f is less than twice max |f|; a batch of 5 rarely has the other four at one end.
    assert!(closest[1] > 0.7 && closest[3] > 0.7, "{closest:?}");
    // 0.99 of the assumed bound, and its square; the latter for opposite ends, as before.
    assert!(closest[4] > 0.98 && closest[5] > 0.7, "{closest:?}");
}

const MEAN: &str =
    "record { real y; } parameters { real mu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }";

/// A vault of rows 1, 2, 4, ... whose unclipped gradient at 0 names the rows in a sum.
fn powers(n: usize, keys: Option<Vec<usize>>) -> Vault {
    let density = density(MEAN);
    let y = (0..n).map(|i| f64::from(1u32 << i)).collect();
    let rows = Rows::from_columns(
        &density.model().columns,
        vec![("y".into(), y)],
        OnBadRows::Error,
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let rows = match keys {
        Some(keys) => rows.by_unit(&keys).unwrap_or_else(|e| panic!("{e}")),
        None => rows,
    };
    Vault::new(density, rows).unwrap()
}

fn rows_of(vault: &Vault, subsampling: Subsampling, rng: &mut PrivateRng) -> u32 {
    let sum = |batch: &Table| {
        batch.columns.window().rows(0..batch.counts.len())[0]
            .iter()
            .sum::<f64>()
    };
    vault.over_batch(subsampling, rng, sum) as u32
}

/// If it failed: a unit's rows would be drawn separately, and several units be charged as one.
/// Units {0, 3}, {1}, {2, 4, 5}, {6}: every batch has all or none of each.
#[test]
fn units_are_drawn_whole_and_at_the_rate() {
    let vault = powers(7, Some(vec![0, 1, 2, 0, 2, 2, 3]));
    let masks = [0b0001001, 0b0000010, 0b0110100, 0b1000000];
    let mut rng = PrivateRng::from_insecure_seed(910);
    let draws = 40_000u32;
    for (subsampling, expected) in [
        (Subsampling::Poisson(rate(0.3)), 0.3),
        (Subsampling::FixedSize(3), 0.75),
        (Subsampling::All, 1.0),
    ] {
        let mut hits = [0u32; 4];
        for _ in 0..draws {
            let rows = rows_of(&vault, subsampling, &mut rng);
            let mut units = 0;
            for (unit, &mask) in masks.iter().enumerate() {
                assert!(rows & mask == 0 || rows & mask == mask, "{rows:b}");
                hits[unit] += u32::from(rows & mask == mask);
                units += u32::from(rows & mask == mask);
            }
            if subsampling == Subsampling::FixedSize(3) {
                assert_eq!(units, 3);
            }
        }
        // 6.5 sd: false alarm 1e-10 each; it sees a rate 0.015 off.
        let n = f64::from(draws);
        for hit in hits {
            let off = (f64::from(hit) - n * expected).abs();
            assert!(
                off <= 6.5 * (n * expected * (1.0 - expected)).sqrt(),
                "{hit}"
            );
        }
    }
}

/// The order of rows leaves no trace in the law of a batch's sum: all 4,096 sums of
/// batches of 12 rows, in two orders, 60,000 draws each, by the largest difference of
/// their distribution functions (two-sample Kolmogorov-Smirnov, false alarm 1e-9 at
/// 3.28). A batch of the first rows of the table would differ by nearly 1.
#[test]
fn permuted_rows_give_the_same_law() {
    let vaults = [powers(12, None), {
        let density = density(MEAN);
        let y = (0..12).map(|i| f64::from(1u32 << (i * 5 % 12))).collect();
        let rows = Rows::from_columns(
            &density.model().columns,
            vec![("y".into(), y)],
            OnBadRows::Error,
        );
        Vault::new(density, rows.unwrap_or_else(|e| panic!("{e}"))).unwrap()
    }];
    let draws = 60_000;
    for subsampling in [Subsampling::Poisson(rate(0.4)), Subsampling::FixedSize(5)] {
        let mut rng = PrivateRng::from_insecure_seed(911);
        let [a, b] = vaults.each_ref().map(|vault| {
            let mut counts = vec![0u32; 1 << 12];
            for _ in 0..draws {
                counts[rows_of(vault, subsampling, &mut rng) as usize] += 1;
            }
            counts
        });
        let (mut at, mut largest) = (0i64, 0i64);
        for (x, y) in a.iter().zip(&b) {
            at += i64::from(*x) - i64::from(*y);
            largest = largest.max(at.abs());
        }
        let statistic = largest as f64 / f64::from(draws) * (f64::from(draws) / 2.0).sqrt();
        assert!(statistic < 3.28, "{statistic}");
    }
}

/// Every plan that covers less than a batch's release does is refused, and nothing is charged.
#[test]
fn a_charge_must_cover_its_batch() {
    let vault = powers(10, None);
    let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
    let one_way = GradientScale::new(1.0, 1, 10.0).unwrap();
    let lattice = |coordinates| Lattice::new(scale.lattice_ratio(), coordinates).unwrap();
    let poisson = |relation, rate: f64, sigma: f64| {
        let event = Subsampled::poisson("batch", 1.0, relation, rate, sigma).unwrap();
        Event::Subsampled(event.on_lattice(lattice(1)))
    };
    let fixed = |rate: Real, sigma: f64| {
        let event =
            Subsampled::without_replacement("batch", 1.0, Relation::Substitute, rate, sigma);
        Event::Subsampled(event.unwrap().on_lattice(lattice(1)))
    };
    let all = Gaussian::of_clip("all", 1.0, Relation::Substitute, 10.0).unwrap();
    let all = Event::Gaussian(all.on_lattice(lattice(1)));
    let bare = Subsampled::poisson("batch", 1.0, Relation::Substitute, 0.1, 10.0).unwrap();
    let substitute = Relation::Substitute;
    let share = |size| crate::accounting::batch_rate(size, 10).unwrap();

    let mut rng = PrivateRng::from_insecure_seed(912);
    let mut granted = |event: &Event, scale: &GradientScale, subsampling: Subsampling| {
        let meter = Meter::new(vec![event.clone()]);
        let charge = Charge::first(&meter);
        let released = vault.noisy_batch_gradient(&[0.1], scale, subsampling, charge, &mut rng);
        assert_eq!(released.is_ok(), !meter.spent().is_empty());
        released.is_ok()
    };
    let tenth = Subsampling::Poisson(rate(0.1));
    let three = Subsampling::FixedSize(3);
    assert!(granted(&poisson(substitute, 0.1, 10.0), &scale, tenth));
    assert!(granted(&poisson(substitute, 0.2, 10.0), &scale, tenth));
    for relation in [Relation::AddRemove, Relation::ZeroOut] {
        assert!(granted(&poisson(relation, 0.1, 10.0), &one_way, tenth));
        assert!(!granted(&poisson(relation, 0.1, 5.0), &scale, tenth));
    }
    assert!(granted(&fixed(share(3), 10.0), &scale, three));
    assert!(granted(&all, &scale, Subsampling::All));
    assert!(granted(&all, &scale, Subsampling::Poisson(rate(1.0))));
    assert!(granted(
        &poisson(substitute, 1.0, 10.0),
        &scale,
        Subsampling::All
    ));
    // Less noise planned than charged for, or a smaller rate.
    assert!(!granted(
        &poisson(substitute, 0.1, 10.000001),
        &scale,
        tenth
    ));
    assert!(!granted(
        &poisson(substitute, 0.0999999, 10.0),
        &scale,
        tenth
    ));
    assert!(!granted(&fixed(share(2), 10.0), &scale, three));
    // Another relation, or another way of drawing.
    assert!(!granted(&poisson(substitute, 0.1, 10.0), &one_way, tenth));
    assert!(!granted(&fixed(share(3), 10.0), &one_way, three));
    assert!(!granted(&fixed(share(1), 10.0), &scale, tenth));
    assert!(!granted(&poisson(substitute, 0.3, 10.0), &scale, three));
    assert!(!granted(&all, &scale, tenth));
    assert!(!granted(&all, &scale, three));
    assert!(!granted(
        &poisson(substitute, 0.1, 10.0),
        &scale,
        Subsampling::All
    ));
    // No lattice; more records than there are.
    assert!(!granted(&Event::Subsampled(bare), &scale, tenth));
    assert!(!granted(
        &fixed(Real::ONE, 10.0),
        &scale,
        Subsampling::FixedSize(11)
    ));
}

/// If it failed: a batch's test would have another noise than was charged, or another penalty. With
/// all records F is the same each time; 4,000 draws, the mean within 6.5 sd and the variance within
/// 6.5 sd (false alarm 2e-10); a sigma 10% off is 8 sd more.
#[test]
fn batch_tests_carry_the_declared_noise() {
    let vault = powers(6, None);
    let tau = 0.8;
    let mut rng = PrivateRng::from_insecure_seed(913);
    let forms = [
        (BatchPenaltyScale::poisson(rate(1.0), 0.02, 2, tau), 1.0),
        (BatchPenaltyScale::fixed_size(6, 6, 0.02, tau), 1.0),
    ];
    for (scale, share) in forms {
        let scale = scale.unwrap();
        let lattice = Lattice::new(scale.lattice_ratio(), 1).unwrap();
        let sigma = 2.0 * tau;
        let substitute = Relation::Substitute;
        let event = match scale.subsampling() {
            Subsampling::FixedSize(_) => {
                Subsampled::without_replacement("ratio", 1.0, substitute, share, sigma)
            }
            _ => Subsampled::poisson("ratio", 1.0, substitute, share, sigma),
        };
        let event = Event::Subsampled(event.unwrap().on_lattice(lattice));
        let meter = Meter::new(vec![event.times(4000)]);
        let charge = Charge::first(&meter);
        let query = query(scale, 5.0);
        let points: [&[f64]; 2] = [&[0.0], &[0.3]];
        let sums = (vault.table).tallied(vault.density(), points, 1.0, query.tally());
        let exact = query.penalised(query.value(sums), 0);
        let (mut mean, mut square) = (0.0, 0.0);
        for _ in 0..4000 {
            let noisy = vault
                .noisy_batch_log_ratio(points[0], points[1], &query, charge, &mut rng)
                .unwrap();
            let z = (noisy.get().penalised - exact) / query.sigma();
            mean += z;
            square += z * z;
        }
        assert!(mean.abs() < 6.5 * 4000f64.sqrt(), "{mean}");
        assert!((square - 4000.0).abs() < 6.5 * 8000f64.sqrt(), "{square}");
        assert!(
            vault
                .noisy_batch_log_ratio(points[0], points[1], &query, charge, &mut rng)
                .is_err()
        );
    }
}

/// DP-Barker's test is charged as such, and its answer has the declared mean and variance: 6,000
/// tests on all of 8 records (so that the batch is the same each time), both within 6.5 sd (false
/// alarm 2e-10); a noise of variance 2 whatever the rows would be 9 sd off, one of 1 twice as far.
#[test]
fn barkers_test_is_charged_and_carries_the_declared_noise() {
    let density = density(MEAN);
    let y: Vec<f64> = (0..8).map(|i| f64::from(i % 4) - 0.2).collect();
    let rows = Rows::from_columns(
        &density.model().columns,
        vec![("y".into(), y.clone())],
        OnBadRows::Error,
    );
    let vault = Vault::new(density, rows.unwrap_or_else(|e| panic!("{e}"))).unwrap();
    let scale = BarkerScale::new(8, 8, 1.0).unwrap();
    let (from, to) = ([0.0], [0.25]);
    let x: Vec<f64> = y
        .iter()
        .map(|y| (y * 0.25 - 0.03125f64).clamp(-scale.clip(), scale.clip()))
        .collect();
    let sum: f64 = x.iter().sum();
    let variance = x.iter().map(|x| (x - sum / 8.0).powi(2)).sum::<f64>();
    assert!(variance > 0.2, "{variance}");

    let lattice = Lattice::new(scale.lattice_ratio(), 1).unwrap();
    let event = |batch, rows| {
        Event::Barker(
            Barker::new("test", batch, rows)
                .unwrap()
                .on_lattice(lattice),
        )
    };
    let mut rng = PrivateRng::from_insecure_seed(915);
    let draws = 6000;
    let meter = Meter::new(vec![event(8, 8).times(draws)]);
    let charge = Charge::first(&meter);
    let (mut mean, mut square) = (0.0, 0.0);
    for _ in 0..draws {
        let noisy = vault
            .noisy_barker(&from, &to, &scale, charge, &mut rng)
            .unwrap();
        let z = (noisy.get() - sum) / (2.0 - variance).sqrt();
        mean += z;
        square += z * z;
    }
    let n = draws as f64;
    assert!(mean.abs() < 6.5 * n.sqrt(), "{mean}");
    assert!((square - n).abs() < 6.5 * (2.0 * n).sqrt(), "{square}");

    let mut refused = |event: Event| {
        let meter = Meter::new(vec![event]);
        let charge = Charge::first(&meter);
        vault
            .noisy_barker(&from, &to, &scale, charge, &mut rng)
            .is_err()
            && meter.spent().is_empty()
    };
    assert!(!refused(event(8, 8)));
    assert!(refused(event(7, 8)) && refused(event(8, 9)));
    assert!(refused(Event::Barker(Barker::new("test", 8, 8).unwrap())));
    let gaussian = Gaussian::of_clip("all", 1.0, Relation::Substitute, 1e9).unwrap();
    assert!(refused(Event::Gaussian(gaussian.on_lattice(lattice))));
}

/// The exact sums are those to which the releases add noise.
#[test]
fn open_sums_are_the_exact_ones() {
    let mut lcg = Lcg(22);
    for source in MODELS {
        let d = density(source);
        let data: Vec<Vec<f64>> = columns_of(&d)
            .iter()
            .map(|(_, is_int, lower, _)| {
                (0..300)
                    .map(|_| {
                        if *is_int {
                            lower.unwrap_or(0.0) + (lcg.next() % 2) as f64
                        } else {
                            lcg.uniform() - 0.5
                        }
                    })
                    .collect()
            })
            .collect();
        let vault = vault(source, &data);
        let theta = point(&mut lcg, d.dimension());
        let permission = NotPrivate::acknowledged();
        let wide = GradientScale::new(1e6, 2, 5.0).unwrap();
        for subsampling in [
            Subsampling::All,
            Subsampling::Poisson(rate(0.3)),
            Subsampling::FixedSize(40),
        ] {
            let rng = || PrivateRng::from_insecure_seed(914);
            let open = vault.batch_gradient(&theta, subsampling, permission, &mut rng());
            let clipped =
                vault.clipped_batch_gradient(&theta, &wide, subsampling, permission, &mut rng());
            for (x, y) in open.iter().zip(&clipped) {
                assert!((x - y).abs() < 0.01 + 1e-9 * x.abs(), "{x} {y}");
            }
        }
    }
}

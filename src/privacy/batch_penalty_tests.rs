//! Tests of the integers and the formulas, without any rows.

use super::*;
use crate::accounting::Real;

fn query(scale: BatchPenaltyScale, bound: f64) -> BatchPenaltyQuery {
    match scale.plan(bound).unwrap() {
        BatchPenaltyPlan::Query(query) => query,
        other => panic!("{bound}: {other:?}"),
    }
}

fn poisson(rate: f64, temperature: f64, factor: u8, tau: f64) -> BatchPenaltyScale {
    let rate = InclusionRate::new(rate).unwrap();
    BatchPenaltyScale::poisson(rate, temperature, factor, tau).unwrap()
}

/// F of a batch of records with these log-ratios.
fn value(query: &BatchPenaltyQuery, ratios: &[i64]) -> i128 {
    let mut sums = [0; 2];
    for &x in ratios {
        query.tally().add(&mut sums, x, 0);
    }
    query.value(sums)
}

fn units(nats: f64) -> i64 {
    (nats * UNITS_PER_NAT) as i64
}

/// A linear congruential generator, which is good enough for test data.
fn uniform(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    (*state >> 11) as f64 / (1u64 << 53) as f64
}

// If it failed: one record could add more to a Poisson batch's sum than was charged. As x = -B
// reaches the bound, the bound is tight.
#[test]
fn a_record_adds_at_most_its_bound() {
    for rate in [0.001, 0.1, 0.5, 1.0] {
        for (temperature, factor) in [(1.0, 2), (0.01, 1)] {
            for tau in [1e-3, 0.7, 3.0, 1e4] {
                let scale = poisson(rate, temperature, factor, tau);
                for bound in [1e-12, 1e-4, 1e-3] {
                    let BatchPenaltyPlan::Query(query) = scale.plan(bound).unwrap() else {
                        continue;
                    };
                    let needed = Real::from(query.sensitivity()) * Real::exact(tau);
                    assert!(needed <= Real::from(SIGMA_UNITS));
                    for x in [i64::MIN, i64::MAX, 0, 1, -1, units(bound), -units(bound)] {
                        assert!(value(&query, &[x]).abs() <= i128::from(scale.limit));
                    }
                    let most = value(&query, &[-units(bound)]) as f64;
                    assert!((most / -(scale.limit as f64) - 1.0).abs() < 1e-6);
                }
            }
        }
    }
}

// If it failed: the formula would not be the one of docs/proofs.md, section 11, or its expectation over
// batches not the log-ratio less half its variance. Exact arithmetic, no randomness.
#[test]
fn a_poisson_batch_estimates_the_ratio_less_half_its_variance() {
    let (rate, temperature) = (0.05, 0.3);
    let query = query(poisson(rate, temperature, 2, 1.0), 0.01);
    let nat = query.sigma() / SIGMA_UNITS as f64;
    let mut state = 5;
    let (mut mean, mut ratio, mut squares) = (0.0, 0.0, 0.0);
    for _ in 0..1000 {
        let x = 0.03 * (uniform(&mut state) - 0.5);
        let clipped = x.clamp(-0.01, 0.01);
        let f = temperature / rate * clipped
            - 0.5 * temperature.powi(2) * (1.0 - rate) / rate.powi(2) * clipped.powi(2);
        let ours = value(&query, &[units(x)]) as f64 * nat;
        assert!((ours - f).abs() < 1e-9, "{ours} {f}");
        mean += rate * ours;
        ratio += temperature * clipped;
        squares += clipped * clipped;
    }
    let variance = temperature.powi(2) * (1.0 - rate) / rate * squares;
    assert!((mean - (ratio - 0.5 * variance)).abs() < 1e-8);
    assert!(variance > 0.05, "{variance}");
    // All records: the ratio itself, without a batch variance.
    let all = poisson(1.0, temperature, 2, 1.0);
    let all = super::tests::query(all, 0.01);
    let nat = all.sigma() / SIGMA_UNITS as f64;
    assert!((value(&all, &[units(0.004)]) as f64 * nat - temperature * 0.004).abs() < 1e-9);
}

// If it failed: one record of a batch of fixed size could move F by more than was charged.
// 3 * 10^4 batches, most of them of records at their bounds; the worst comes within 1e-4 of
// the bound, and a bound with the derivation's (b-1) left out of the variance's part would
// be passed by half of it.
#[test]
fn one_record_of_a_batch_moves_f_by_at_most_the_sensitivity() {
    let mut state = 7;
    let mut closest = 0.0f64;
    for (size, records, bound) in [(2, 3, 0.4), (50, 1000, 0.01), (1000, 2000, 0.3)] {
        let scale = BatchPenaltyScale::fixed_size(size, records, 1.0, 0.01).unwrap();
        let query = query(scale, bound);
        let needed = Real::from(query.sensitivity()) * Real::exact(0.01);
        assert!(needed <= Real::from(SIGMA_UNITS));
        for round in 0..10_000 / size * 2 {
            let share = uniform(&mut state);
            let mut draw = || match round % 3 {
                0 => units(4.0 * bound * (uniform(&mut state) - 0.5)),
                1 if uniform(&mut state) < share => i64::MAX,
                1 => i64::MIN,
                _ => i64::MAX,
            };
            let batch: Vec<i64> = (0..size).map(|_| draw()).collect();
            let mut other = batch.clone();
            other[round as usize % size as usize] = if round % 3 == 0 { draw() } else { i64::MIN };
            let moved = (value(&query, &batch) - value(&query, &other)).unsigned_abs();
            assert!(moved <= u128::from(query.sensitivity()), "{size} {round}");
            closest = closest.max(moved as f64 / query.sensitivity() as f64);
        }
    }
    assert!(closest > 0.9999, "{closest}");
}

// If it failed: F would not be lambda_hat - s^2/2, or its noise not tau times the
// sensitivity of docs/proofs.md, section 11.
#[test]
fn a_fixed_batch_gives_the_thesiss_scalar() {
    let (size, records, temperature, bound, tau) = (40u64, 5000u64, 0.02, 0.05, 1.5);
    let scale = BatchPenaltyScale::fixed_size(size, records, temperature, tau).unwrap();
    let query = query(scale, bound);
    let (b, w) = (size as f64, records as f64 * temperature);
    let sensitivity = 2.0 * w * bound / b + 2.0 * (b - 1.0) * w * w * bound * bound / (b * b * b);
    assert!((query.sigma() / (tau * sensitivity) - 1.0).abs() < 1e-5);
    let mut state = 9;
    let x: Vec<f64> = (0..size)
        .map(|_| 0.12 * (uniform(&mut state) - 0.3))
        .collect();
    let clipped: Vec<f64> = x.iter().map(|x| x.clamp(-bound, bound)).collect();
    let mean = clipped.iter().sum::<f64>() / b;
    let variance = clipped.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / b;
    let expected = w * mean - 0.5 * w * w / b * variance;
    let ours = value(&query, &x.iter().map(|&x| units(x)).collect::<Vec<_>>());
    let ours = query.penalised(ours, 0) + 0.5 * query.sigma().powi(2);
    assert!(
        (ours - expected).abs() < 1e-6 * expected.abs().max(1.0),
        "{ours} {expected}"
    );
    assert!(w * w / b * variance > 0.05);
}

// If it failed: invalid settings would be accepted, or a public decision would differ between the
// two directions.
#[test]
fn plans_at_the_edges() {
    let scale = poisson(0.01, 1.0, 2, 1.0);
    assert_eq!(scale.plan(0.0), Ok(BatchPenaltyPlan::Skip));
    assert_eq!(scale.plan(1e-15), Ok(BatchPenaltyPlan::Skip));
    assert_eq!(scale.plan(1e9), Ok(BatchPenaltyPlan::Refuse));
    assert_eq!(scale.plan(f64::INFINITY), Ok(BatchPenaltyPlan::Refuse));
    assert!(scale.plan(-1.0).is_err() && scale.plan(f64::NAN).is_err());
    let rate = InclusionRate::new(0.1).unwrap();
    for tau in [0.0, f64::NAN, 1e5] {
        assert!(BatchPenaltyScale::poisson(rate, 1.0, 2, tau).is_err());
    }
    for temperature in [0.0, -1.0, f64::INFINITY] {
        assert!(BatchPenaltyScale::poisson(rate, temperature, 2, 1.0).is_err());
    }
    assert!(BatchPenaltyScale::poisson(rate, 1.0, 3, 1.0).is_err());
    for (size, records) in [(1, 10), (11, 10), (0, 0), (1 << 27, 1 << 30)] {
        assert!(BatchPenaltyScale::fixed_size(size, records, 1.0, 1.0).is_err());
    }
}

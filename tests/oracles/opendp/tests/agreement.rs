//! Two-sample chi-square of dpm's discrete Gaussian against opendp's.
//!
//! opendp takes no seed, so each statistic is drawn anew: its false-alarm rate is
//! 1e-9 (Laurent and Massart 2000, P(X >= d + 2 sqrt(d x) + 2 x) <= exp(-x)).

use dpm_against_opendp::noise::DiscreteGaussian;
use dpm_against_opendp::not_private::NotPrivate;
use dpm_against_opendp::randomness::PrivateRng;
use opendp::traits::samplers::sample_discrete_gaussian;

const MINUS_LOG_FALSE_ALARM: f64 = 20.8;

/// One cell per integer up to 2.5 sigma, and one for each tail.
const LARGEST: i64 = 25;

fn cell(k: i64) -> usize {
    (k.clamp(-LARGEST - 1, LARGEST + 1) + LARGEST + 1) as usize
}

/// The statistic and its threshold, at sigma = 10.
fn compare(noise: DiscreteGaussian, ours: usize, theirs: usize) -> (f64, f64) {
    let cells = cell(i64::MAX) + 1;
    let (mut a, mut b) = (vec![0.0f64; cells], vec![0.0f64; cells]);
    let mut rng = PrivateRng::insecure(600, NotPrivate::acknowledged());
    for _ in 0..ours {
        a[cell(noise.sample(&mut rng))] += 1.0;
    }
    let scale = 10.0f64.try_into().expect("a finite scale");
    for _ in 0..theirs {
        let k = sample_discrete_gaussian(Clone::clone(&scale)).expect("a draw");
        b[cell(i64::try_from(k).expect("a small integer"))] += 1.0;
    }
    let ratio = (theirs as f64 / ours as f64).sqrt();
    let statistic = a
        .iter()
        .zip(&b)
        .map(|(a, b)| (ratio * a - b / ratio).powi(2) / (a + b))
        .sum();
    let d = (cells - 1) as f64;
    let threshold = d + 2.0 * (d * MINUS_LOG_FALSE_ALARM).sqrt() + 2.0 * MINUS_LOG_FALSE_ALARM;
    (statistic, threshold)
}

// With 20,000 of theirs the non-centrality is 2 N e^2 for a relative error e of
// sigma: 10% is 400 against a threshold of about 160.
#[test]
fn agrees_with_opendp() {
    let noise = DiscreteGaussian::new(10).expect("a sigma");
    let (statistic, threshold) = compare(noise, 400_000, 20_000);
    assert!(statistic < threshold, "{statistic} >= {threshold}");
    let low = DiscreteGaussian::new(9).expect("a sigma");
    let (statistic, threshold) = compare(low, 400_000, 20_000);
    assert!(statistic > threshold, "a sigma 10% low passed: {statistic}");
}

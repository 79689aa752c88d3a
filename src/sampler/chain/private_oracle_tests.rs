use super::*;
use crate::accounting::{Meter, Real};
use crate::density::{Density, Frame};
use crate::model::{Constants, Model};
use crate::privacy::{OnBadRows, PrivateRng, Rows};
use crate::sampler::contract::settings::Settings;
use crate::sampler::{Iterations, PlanRequest, lookup};

const RECORDS: usize = 100;

/// y_i ~ normal(mu, 1), i = 0, ..., 99, with a prior that pulls at all points tried.
fn vault() -> Vault {
    let model = Model::from_source(
        "record { real y; }
         parameters { real mu; }
         model { mu ~ normal(0, 0.3); y ~ normal(mu, 1); }",
        &Constants::none(),
    )
    .unwrap();
    let rows = Rows::from_columns(
        &model.columns,
        vec![("y".into(), ys().collect())],
        OnBadRows::Error,
    );
    Vault::new(Density::new(model), rows.unwrap()).unwrap()
}

fn ys() -> impl Iterator<Item = f64> {
    (0..RECORDS).map(|i| (i % 10) as f64 / 5.0)
}

fn request(algorithm: &str) -> PlanRequest {
    PlanRequest {
        algorithm: lookup(algorithm).unwrap(),
        chains: 1,
        iterations: Iterations::Fixed(1),
        records: Some(RECORDS as u64),
        settings: Settings::new().step_size(0.1),
        ..PlanRequest::new(Real::from(30.0), Real::from(0.01), 1)
    }
}

/// More releases of a plan's lines than any budget allows.
fn meter(plan: &Plan, times: u64) -> Meter {
    Meter::new(plan.events.iter().map(|e| e.clone().times(times)).collect())
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, (square / n).sqrt())
}

// If it failed: gradients of batches would not be scaled up to all records, or twice, or
// tempered wrongly, or without the prior, and every sampler that asks for them would have
// another target. Oracle: the gradient of the tempered posterior by hand. Six standard
// errors (false alarm 2e-9); a rate, a temperature or the prior left out is more than ten.
#[test]
fn gradients_of_batches_are_on_average_the_posteriors() {
    let vault = vault();
    for (rate, temperature) in [(0.25, 1.0), (0.25, 0.5), (1.0, 0.5)] {
        let steps = 3000;
        let plan = Plan::new(PlanRequest {
            temperature,
            settings: request("dp-sgld")
                .settings
                .batch_rate(Real::exact(rate))
                .clip_gradient(4.0),
            ..request("dp-sgld")
        })
        .unwrap();
        let meter = meter(&plan, steps);
        let noise = PrivateRng::from_insecure_seed(3);
        let mut oracle = PrivateOracle::new(&vault, &plan, &meter, noise);
        let theta = -0.4;
        let gradients: Vec<f64> = (0..steps)
            .map(|_| oracle.gradient(0, &[theta]).unwrap()[0])
            .collect();
        let (mean, error) = mean_and_error(&gradients);
        let prior = -theta / 0.09;
        let exact = temperature * ys().map(|y| y - theta).sum::<f64>() + prior;
        let off = (mean - exact) / error;
        assert!(off.abs() < 6.0, "{rate} {temperature}: {mean} for {exact}");
        // The smallest of what could be left out.
        assert!(prior > 2.0 * 6.0 * error || rate < 1.0, "{error}");
        assert!(0.25 * exact.abs() > 10.0 * error, "{error}");
    }
}

// If it failed: Barker's test would have the sign of the prior or of the likelihood wrong, or
// another temperature. Oracle: 1/(1 + e^-x) for the tempered log posterior ratio x. Six
// standard errors and 0.014 for the test's own error (false alarm 2e-9); either part with the
// other sign, or untempered, is off by 0.2 and more.
#[test]
fn barkers_test_accepts_as_the_log_posterior_ratio_says() {
    let vault = vault();
    let (tests, temperature) = (4000, 0.3);
    let plan = Plan::new(PlanRequest {
        temperature,
        settings: request("dp-barker").settings.batch_size(50),
        ..request("dp-barker")
    })
    .unwrap();
    let meter = meter(&plan, tests);
    let noise = PrivateRng::from_insecure_seed(4);
    let mut oracle = PrivateOracle::new(&vault, &plan, &meter, noise);
    let (from, to) = (0.5, 0.6);
    let prior = |mu: f64| -mu * mu / 0.18;
    let likelihood = |mu: f64| ys().map(|y| -0.5 * (y - mu) * (y - mu)).sum::<f64>();
    let prior_ratio = prior(to) - prior(from);
    let x = temperature * (likelihood(to) - likelihood(from)) + prior_ratio;
    let mut accepted = 0.0;
    for _ in 0..tests {
        accepted += f64::from(oracle.barker(0, &[from], &[to], prior_ratio).unwrap());
    }
    let share = accepted / tests as f64;
    let expected = 1.0 / (1.0 + (-x).exp());
    let error = (expected * (1.0 - expected) / tests as f64).sqrt();
    assert!(
        (share - expected).abs() < 6.0 * error + 0.014,
        "{share} for {expected}"
    );
}

// If it failed: the average of many answers would have the noise of one of them, or of none, or be
// charged as one. Oracle: the variance of differences of two averages of the same sum, whose
// expectation is 2 sigma^2 / times; over 2000 of them six standard errors are 19%.
#[test]
fn an_average_of_answers_has_their_noise_and_is_charged_for_each() {
    let vault = vault();
    let plan = Plan::new(request("dp-langevin")).unwrap();
    let (line, pairs) = (plan.lines.len() - 1, 2000u64);
    let Scale::Learnt(scale) = plan.lines[line].scale else {
        panic!("gradients come last")
    };
    let frame = Frame::about(vec![0.0]);
    let view = View::of_parameters(&[0.2], &frame, 3.0);
    for times in [1, 7] {
        let meter = meter(&plan, 2 * pairs * times);
        let noise = PrivateRng::from_insecure_seed(9);
        let mut oracle = PrivateOracle::new(&vault, &plan, &meter, noise);
        let often = NonZeroU64::new(times).unwrap();
        let mut sum = 0.0;
        for _ in 0..pairs {
            let mut answer = || oracle.learnt_often(line, &view, often).unwrap()[0];
            sum += (answer() - answer()).powi(2);
        }
        let expected = 2.0 * (3.0 * scale.sigma()).powi(2) / times as f64;
        let found = sum / pairs as f64;
        assert!((found / expected - 1.0).abs() < 0.19, "{found} {expected}");
        assert_eq!(oracle.released()[line], 2 * pairs * times);
        assert_eq!(meter.counts()[line], 2 * pairs * times);
    }
    // What the budget has no room for is not answered at all.
    let meter = Meter::new(plan.events.clone());
    let noise = PrivateRng::from_insecure_seed(9);
    let mut oracle = PrivateOracle::new(&vault, &plan, &meter, noise);
    let more = NonZeroU64::new(plan.lines[line].line.count + 1).unwrap();
    assert!(oracle.learnt_often(line, &view, more).is_err());
}

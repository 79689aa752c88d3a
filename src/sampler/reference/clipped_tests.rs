use super::*;
use crate::accounting::Real;
use crate::density::Density;
use crate::model::{Constants, Model};
use crate::privacy::{OnBadRows, Rows};
use crate::sampler::{Initial, Settings, lookup, sample_without_privacy};

/// 100 records, nine tenths of them about 1 and the rest at 21.
fn vault() -> Vault {
    let model = Model::from_source(
        "record { real y; }
         parameters { real mu; }
         model { mu ~ normal(0, 10); y ~ normal(mu, 1); }",
        &Constants::none(),
    )
    .unwrap();
    let y = (0..100)
        .map(|i| match i % 10 {
            0 => 21.0,
            i => f64::from(i) / 5.0,
        })
        .collect();
    let rows = Rows::from_columns(&model.columns, vec![("y".into(), y)], OnBadRows::Error);
    Vault::new(Density::new(model), rows.unwrap()).unwrap()
}

/// Mean and variance of the draws.
fn moments(algorithm: &str, clip: f64) -> (f64, f64) {
    let run = NonPrivateRun {
        request: PlanRequest {
            algorithm: lookup(algorithm).unwrap(),
            chains: 2,
            settings: Settings::new().clip_gradient(clip).clip_log_ratio(clip),
            ..PlanRequest::new(Real::ONE, Real::ONE, 1)
        },
        num_warmup: 500,
        num_samples: 2000,
        initial: Initial::Random,
        seed: 4,
    };
    let permission = NotPrivate::acknowledged();
    let chains = sample_without_privacy(&vault(), &run, permission, &()).unwrap();
    let sampled = |c: &Chain| {
        c.draws[500..]
            .iter()
            .map(|d| d.values[0])
            .collect::<Vec<_>>()
    };
    let draws: Vec<f64> = chains.iter().flat_map(sampled).collect();
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    (
        mean,
        draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n,
    )
}

// If it failed: without noise and with bounds that clip nothing, the samplers would not
// follow the posterior; or would not clip. 4,000 draws with an autocorrelation time below 10
// have standard errors of 0.005 in the mean and 0.0007 in the variance: six times that is
// allowed. The posterior is N(3, 0.01); clipped at 2, a record counts for no more than one at
// a distance of 2, and the mean is about 1.2.
#[test]
fn clipping_alone_moves_the_posterior() {
    for algorithm in ["clipped-hmc", "clipped-rwmh"] {
        let (mean, variance) = moments(algorithm, 1e4);
        let n = 100.0 + 0.01;
        assert!((mean - 300.0 / n).abs() < 0.03, "{algorithm} {mean}");
        assert!((variance * n - 1.0).abs() < 0.42, "{algorithm} {variance}");
        let (mean, _) = moments(algorithm, 2.0);
        assert!((1.1..1.4).contains(&mean), "{algorithm} {mean}");
    }
}

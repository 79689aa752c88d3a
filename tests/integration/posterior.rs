//! Whole runs against reference posteriors. They take minutes and are run by
//! `cargo test --release -- --ignored`.
//!
//! All randomness is seeded, the noise of the private run too, so these tests do
//! not fail by chance; the thresholds say what a fresh seed would have to meet.

use std::collections::HashMap;

use dpm::diagnostics::{bracket_name, ess_bulk, mmd};
use dpm::testing::privacy::{NotPrivate, PrivateRng};
use dpm::testing::sampler::{
    Initial, Iterations, NonPrivateRun, PlanRequest, PrivateSettings, lookup, sample_privately,
    sample_without_privacy,
};
use dpm::{Phase, Plan, PrivateData, Settings, Summary, Vault};

use crate::corpus::root;
use crate::evaluation::shipped_model;

fn vault(name: &str, data: &str) -> Vault {
    let vault = PrivateData::from_file(root().join("models").join(data)).bind(&shipped_model(name));
    vault.unwrap_or_else(|e| panic!("{e}"))
}

fn sampled(chains: &[dpm::Chain]) -> Vec<Vec<Vec<f64>>> {
    chains
        .iter()
        .map(|chain| {
            let draws = chain.draws.iter().filter(|d| d.phase == Phase::Sampling);
            draws.map(|d| d.values.clone()).collect()
        })
        .collect()
}

/// The rule of the reference collection: means, and quantiles, within four
/// combined Monte Carlo standard errors. With some 180 parameters and four
/// figures each, a right sampler fails a fresh seed about once in 20 runs; a
/// wrong Jacobian, prior or gradient shifts means by many standard errors.
fn agrees(algorithm: &str, name: &str) {
    let vault = vault(name, &format!("{name}.csv"));
    let algorithm = lookup(algorithm).expect("a sampler");
    let run = NonPrivateRun {
        request: PlanRequest::without_budget(algorithm, vault.density().dimension()),
        num_warmup: 1000,
        // A random walk mixes some twenty times more slowly.
        num_samples: if algorithm.name == "rwmh" {
            20_000
        } else {
            1000
        },
        initial: Initial::Random,
        seed: 1,
    };
    let permission = NotPrivate::acknowledged();
    let chains =
        sample_without_privacy(&vault, &run, permission, &()).unwrap_or_else(|e| panic!("{e}"));
    let draws = sampled(&chains);
    let names: Vec<String> = vault.density().output_names().map(bracket_name).collect();
    let summary = Summary::of_draws(&names, &draws).expect("a summary");
    let ours: HashMap<&str, _> = summary
        .rows
        .iter()
        .map(|r| (r.parameter.as_str(), r))
        .collect();
    let reference = root().join(format!("tests/reference/{name}.summary.csv"));
    let mut reader = csv::Reader::from_path(reference).expect("the reference");
    let mut compared = 0;
    for row in reader.deserialize::<HashMap<String, String>>() {
        let row = row.expect("a row");
        let number = |key: &str| row[key].parse::<f64>().expect("a number");
        let own = ours[row["parameter"].as_str()];
        assert!(own.r_hat < 1.02, "{}: R-hat {}", own.parameter, own.r_hat);
        // The same figure's standard error, scaled to our effective sample size:
        // that of the tails for the outer quantiles.
        let bulk = (number("ess_bulk") / own.ess_bulk).sqrt();
        let tail = (number("ess_tail") / own.ess_tail).sqrt();
        let figures = [
            ("mean", own.mean, bulk),
            ("q5", own.q5, tail),
            ("q50", own.q50, bulk),
            ("q95", own.q95, tail),
        ];
        for (figure, value, scale) in figures {
            let theirs = number(&format!("mcse_{figure}"));
            let error = theirs.hypot(theirs * scale);
            let distance = (value - number(figure)).abs() / error;
            assert!(
                distance < 4.0,
                "{} of {}: {value}, reference {}, {distance:.1} standard errors",
                figure,
                own.parameter,
                number(figure)
            );
            compared += 1;
        }
    }
    assert!(compared >= 16);
}

macro_rules! agreements {
    ($($test:ident: $algorithm:literal on $name:literal;)*) => {
        $(#[test]
        #[ignore = "seconds to minutes; run with cargo test --release -- --ignored"]
        fn $test() {
            agrees($algorithm, $name);
        })*
    };
}

agreements! {
    hmc_on_wells: "hmc" on "wells_data-wells_dae_inter_model";
    hmc_on_kidiq: "hmc" on "kidiq-kidscore_momhsiq";
    hmc_on_radon: "hmc" on "radon_mn-radon_hierarchical_intercept_noncentered";
    nuts_on_wells: "nuts" on "wells_data-wells_dae_inter_model";
    nuts_on_kidiq: "nuts" on "kidiq-kidscore_momhsiq";
    nuts_on_radon: "nuts" on "radon_mn-radon_hierarchical_intercept_noncentered";
    rwmh_on_wells: "rwmh" on "wells_data-wells_dae_inter_model";
}

/// The paper's banana at epsilon 15 with the paper's settings (892 iterations
/// per chain). Ten repeats of the authors' code had an MMD of 0.237 with
/// quartiles 0.16 and 0.32 and an acceptance of 0.71; chains this short scatter,
/// so the test asks for less than 0.45 and an acceptance within 0.06.
#[test]
#[ignore = "minutes; run with cargo test --release -- --ignored"]
fn dp_hmc_on_the_papers_banana() {
    let vault = vault("paper_banana_d2", "paper_banana_d2.csv.gz");
    let root_n = 100_000f64.sqrt();
    let plan = Plan::new(PlanRequest {
        iterations: Iterations::Max,
        settings: Settings::new()
            .leapfrog_steps(25)
            .fresh_gradients(true)
            .clip_gradient(0.05)
            .clip_log_ratio(0.1)
            .step_size(0.006)
            .tau_gradient(0.55 * root_n)
            .tau_log_ratio(0.1 * root_n),
        ..PlanRequest::new(
            "15".parse().expect("a number"),
            "1e-6".parse().expect("a number"),
            2,
        )
    })
    .expect("a plan");
    assert_eq!(plan.iterations_per_chain, 892);
    // The truth plus normal deviates of the mean posterior sd, 0.547.
    let starts = [[0.3, 3.4], [-0.5, 2.6], [0.1, 2.3], [-0.2, 3.9]];
    let settings = PrivateSettings {
        initial: Initial::Points(starts.iter().map(|s| s.to_vec()).collect()),
        ..PrivateSettings::new(446, 1, PrivateRng::insecure(1, NotPrivate::acknowledged()))
    };
    let meter = NotPrivate::acknowledged().meter(plan.events.clone());
    let chains = sample_privately(&vault, &plan, &meter, &settings, &());
    let chains = chains.unwrap_or_else(|e| panic!("{e}"));
    for chain in &chains {
        assert!(
            (chain.acceptance - 0.71).abs() < 0.06,
            "{}",
            chain.acceptance
        );
    }
    let draws = sampled(&chains);
    let pooled: Vec<Vec<f64>> = draws.concat();
    let reference = root().join("tests/reference/paper_banana_d2.draws.csv");
    let mut reader = csv::Reader::from_path(reference).expect("the reference");
    let reference: Vec<Vec<f64>> = reader
        .deserialize::<Vec<f64>>()
        .map(|row| row.expect("a row"))
        .collect();
    let distance = mmd(&pooled, &reference, 1);
    let first: Vec<Vec<f64>> = draws
        .iter()
        .map(|chain| chain.iter().map(|d| d[0]).collect())
        .collect();
    assert!(
        distance < 0.45,
        "MMD {distance:.3}, bulk ESS {:.0}",
        ess_bulk(&first)
    );
}

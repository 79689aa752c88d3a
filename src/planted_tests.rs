//! Each planted error is found by the attacks of `tests/audit`, and none is found where
//! none is planted.
//!
//! An attack runs in a process of its own, this very test program, with the error named
//! in its environment (`planted.rs`). Attacks raise a false alarm with probability 1e-8
//! at most, and seeds are fixed; so what is found here is the error.

use std::process::Command;

use crate::accounting::Relation;
use crate::attack::Broken;
use crate::attack::distinguisher::distinguish;
use crate::attack::ledger::file_covers_releases;
use crate::attack::neighbours::{LINE, model, nothing};
use crate::attack::record_play::{Kind, play};
use crate::attack::releases::{Release, noise_is_as_charged, releases_are_counted};
use crate::attack::samplers::{Audited, Spending};
use crate::attack::single::{Single, audit};
use crate::planted::{Planted, VARIABLE};

/// Names the attack that a child makes.
const ATTACK: &str = "DPM_ATTACK";

type Attack = fn() -> Result<(), Broken>;

/// The attacks, quick versions of what `tests/audit` does.
const ATTACKS: [(&str, Attack); 9] = [
    ("record-play of gradients, substitute", || {
        play(Kind::Gradient, Relation::Substitute, false, 200).map(|_| ())
    }),
    ("record-play of gradients, add-remove", || {
        play(Kind::Gradient, Relation::AddRemove, false, 200).map(|_| ())
    }),
    ("record-play of ratios, substitute", || {
        play(Kind::LogRatio, Relation::Substitute, false, 200).map(|_| ())
    }),
    ("noise", noise),
    ("number of charges", || {
        let model = model(LINE);
        let vault = nothing(&model).vault(&model);
        releases_are_counted(&vault, Relation::Substitute, 30)
    }),
    ("ledger", file_covers_releases),
    ("black box, one gradient", || {
        let (claim, found) = audit(&[Single::Gradient], Relation::Substitute, 1.0 / 3.0, 50_000);
        found.verdict(&claim).map(|_| ())
    }),
    ("black box, two gradients", || {
        let two = [Single::Gradient, Single::GradientBeyond];
        let (claim, found) = audit(&two, Relation::AddRemove, 1.0, 5_000);
        found.verdict(&claim).map(|_| ())
    }),
    ("black box, two ratios", || {
        let two = [Single::LogRatio, Single::LogRatioBack];
        let (claim, found) = audit(&two, Relation::AddRemove, 1.0, 5_000);
        found.verdict(&claim).map(|_| ())
    }),
];

/// 40,000 runs of DP-HMC, and what they charged.
const WHOLE_RUN: (&str, Attack) = ("black box, whole run", || {
    let audited = Audited::dp_hmc(Spending {
        mu: 3.0,
        gradients: 0.9,
        relation: Relation::Substitute,
        chains: 1,
        iterations: 4,
    });
    let claim = audited.claim();
    let found = distinguish(&claim, 20_000, |other, run| audited.transcript(other, run));
    found.verdict(&claim).map(|_| ())
});

fn noise() -> Result<(), Broken> {
    let model = model(LINE);
    let vault = nothing(&model).vault(&model);
    let gradient = Release::Gradient {
        at: vec![0.1, 0.2, 0.3],
        clip: 0.7,
        tau: 2.0,
    };
    let log_ratio = Release::LogRatio {
        from: vec![0.1, 0.2, 0.3],
        to: vec![0.1, 0.2, 0.6],
        clip: 0.7,
        tau: 2.0,
        temperature: 0.5,
    };
    noise_is_as_charged(&gradient, &vault, Relation::Substitute, 1500)?;
    noise_is_as_charged(&log_ratio, &vault, Relation::Substitute, 4000)
}

// Not a test by itself: the process of the others.
#[test]
#[ignore = "the child of other tests"]
fn a_child_that_attacks() {
    let Ok(wanted) = std::env::var(ATTACK) else {
        return;
    };
    let all = ATTACKS.iter().chain([&WHOLE_RUN]);
    let attack = all.into_iter().find(|(name, _)| *name == wanted);
    let (_, attack) = attack.expect("an attack of that name");
    match attack() {
        Ok(()) => println!("verdict: holds"),
        Err(broken) => println!("verdict: broken: {broken}"),
    }
}

/// What an attack says in a process with that error.
fn verdict(attack: &str, planted: Option<Planted>) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child
        .args(["--exact", "planted_tests::a_child_that_attacks"])
        .args(["--ignored", "--nocapture"])
        .env(ATTACK, attack)
        .env_remove(VARIABLE);
    if let Some(planted) = planted {
        child.env(VARIABLE, planted.name());
    }
    let output = child.output().expect("a child");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = said
        .lines()
        .find_map(|line| line.split_once("verdict: "))
        .map(|(_, verdict)| verdict.to_owned());
    verdict.unwrap_or_else(|| {
        panic!(
            "{attack}: no verdict: {said}{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn is_found(planted: Planted, attacks: &[&str]) {
    for attack in attacks {
        let said = verdict(attack, Some(planted));
        println!("{planted:?}, {attack}: {said}");
        assert!(
            said.starts_with("broken: "),
            "{planted:?}, {attack}: {said}"
        );
    }
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    for (attack, _) in ATTACKS {
        assert_eq!(verdict(attack, None), "holds", "{attack}");
    }
}

#[test]
fn sensitivity_b_for_2b_is_found() {
    is_found(
        Planted::HalfSensitivity,
        &[
            "record-play of gradients, substitute",
            "record-play of ratios, substitute",
            "black box, one gradient",
        ],
    );
}

#[test]
fn sigma_10_percent_low_is_found() {
    is_found(Planted::LowSigma, &["noise", "black box, one gradient"]);
}

#[test]
fn a_missed_entry_is_found() {
    is_found(Planted::MissedEntry, &["ledger"]);
}

#[test]
fn an_uncharged_gradient_is_found() {
    is_found(
        Planted::UnchargedGradient,
        &["number of charges", "ledger", "black box, two gradients"],
    );
}

#[test]
#[ignore = "80,000 runs of DP-HMC: half a minute"]
fn an_uncharged_gradient_is_found_in_the_draws_of_whole_runs() {
    assert_eq!(verdict(WHOLE_RUN.0, None), "holds");
    is_found(Planted::UnchargedGradient, &[WHOLE_RUN.0]);
}

#[test]
fn division_by_the_batch_size_is_found() {
    is_found(
        Planted::DividedByBatch,
        &["record-play of gradients, add-remove"],
    );
}

#[test]
fn reused_noise_is_found() {
    is_found(
        Planted::ReusedNoise,
        &["black box, two gradients", "black box, two ratios"],
    );
}

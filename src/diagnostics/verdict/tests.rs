//! Each rule applies where it should, and not to good draws. Draws have fixed seeds; thresholds are
//! several standard errors away from the tested values.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::noise::acceptance_at;
use super::*;
use crate::sampler::NoiseScales;

pub(super) const CHAINS: usize = 4;
pub(super) const DRAWS: usize = 1000;

/// Independent standard normals, two parameters.
pub(super) fn good() -> Evidence {
    normals(CHAINS, DRAWS)
}

pub(super) fn normals(chains: usize, draws: usize) -> Evidence {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let chain = |_| {
        let energy: Vec<f64> = (0..draws).map(|_| normal()).collect();
        ChainRecord {
            draws: (0..draws).map(|_| vec![normal(), normal()]).collect(),
            accept_stat: vec![0.8; draws],
            step_size: vec![0.1; draws],
            divergent: vec![0.0; draws],
            energy,
            tree_depth: Vec::new(),
        }
    };
    Evidence {
        names: vec!["alpha".into(), "beta.1".into()],
        chains: (0..chains).map(chain).collect(),
        facts: RunFacts {
            tests_proposals: true,
            adapts_step: true,
            unit_metric: true,
            ..RunFacts::default()
        },
        priors: Vec::new(),
    }
}

/// Changes every draw of every chain: (chain, draw, values).
pub(super) fn change(evidence: &mut Evidence, f: impl Fn(usize, usize, &mut Vec<f64>)) {
    for (c, chain) in evidence.chains.iter_mut().enumerate() {
        for (i, draw) in chain.draws.iter_mut().enumerate() {
            f(c, i, draw);
        }
    }
}

/// x_t = rho x_{t-1} + sqrt(1 - rho²) e_t, stationary.
pub(super) fn correlate(evidence: &mut Evidence, rho: f64) {
    for chain in &mut evidence.chains {
        for i in 1..chain.draws.len() {
            for j in 0..2 {
                let before = chain.draws[i - 1][j];
                let own = &mut chain.draws[i][j];
                *own = rho * before + (1.0 - rho * rho).sqrt() * *own;
            }
        }
    }
}

pub(super) fn accept(evidence: &mut Evidence, stat: f64) {
    for chain in &mut evidence.chains {
        chain.accept_stat.fill(stat);
    }
}

pub(super) fn kinds(diagnosis: &Diagnosis) -> Vec<Kind> {
    diagnosis.verdicts.iter().map(|v| v.kind).collect()
}

pub(super) fn found(evidence: &Evidence, kind: Kind) -> Option<Verdict> {
    let mut verdicts = diagnose(evidence).verdicts.into_iter();
    verdicts.find(|v| v.kind == kind)
}

pub(super) fn of_kind(evidence: &Evidence, kind: Kind) -> Verdict {
    found(evidence, kind).unwrap_or_else(|| panic!("{:?}", kinds(&diagnose(evidence))))
}

#[test]
fn of_good_draws_only_good_is_said() {
    for private in [false, true] {
        let mut evidence = good();
        evidence.facts.has_budget = private;
        evidence.facts.leapfrog_steps = Some(10);
        evidence.facts.max_depth = Some(10);
        evidence.facts.noise = NoiseScales {
            first_step_size: Some(0.05),
            log_ratio_per_step: private.then_some(2.0),
            gradient: private.then_some(1.0),
        };
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.convergence, Grade::Converged);
        assert_eq!(diagnosis.decision, Decision::Use);
        assert_eq!(kinds(&diagnosis), [Kind::Convergence], "{diagnosis:?}");
        let verdict = &diagnosis.verdicts[0];
        assert_eq!(verdict.severity, Severity::Good);
        assert!(
            verdict
                .sentence
                .starts_with("The chains have converged: the largest R-hat is 1.00"),
            "{}",
            verdict.sentence
        );
        assert!(verdict.advice.is_none());
    }
}

#[test]
fn convergence_is_graded() {
    // Chains apart by a third and by two thirds of a standard deviation between the outer ones.
    let apart = |by: f64| {
        let mut evidence = good();
        change(&mut evidence, |c, _, x| x[1] += by * c as f64);
        evidence
    };
    let nearly = of_kind(&apart(0.15), Kind::Convergence);
    assert_eq!(diagnose(&apart(0.15)).convergence, Grade::NearlyConverged);
    assert_eq!(nearly.severity, Severity::Warning);
    assert!(
        nearly
            .sentence
            .contains("(beta[1]; at most 1.01 is wanted)")
    );
    assert_eq!(nearly.parameters[0], "beta[1]");
    let not = of_kind(&apart(1.0), Kind::Convergence);
    assert_eq!(diagnose(&apart(1.0)).convergence, Grade::NotConverged);
    assert_eq!(not.severity, Severity::Problem);
    assert!(not.sentence.starts_with("The chains have not converged"));
    assert!(not.sentence.contains("do not describe the posterior yet"));
    assert!(not.value.unwrap() > 1.1 && not.threshold == Some(1.01));

    // R-hat alone is not enough: ten chains' worth of correlated draws have too small an ESS.
    let mut slow = normals(CHAINS, 2000);
    correlate(&mut slow, 0.95);
    let slow_verdict = of_kind(&slow, Kind::Convergence);
    assert_eq!(diagnose(&slow).convergence, Grade::NearlyConverged);
    assert!(slow_verdict.sentence.contains("400 is wanted"));
    let mut slower = good();
    correlate(&mut slower, 0.9995);
    assert_eq!(diagnose(&slower).convergence, Grade::NotConverged);
}

#[test]
fn what_cannot_be_told_is_said_to_be_unknown() {
    let few = diagnose(&normals(4, 3));
    assert_eq!(few.convergence, Grade::Unknown);
    assert!(few.headline().contains("each has 3 draws"));
    let one = diagnose(&normals(1, 1000));
    assert_eq!(one.convergence, Grade::Unknown);
    assert!(
        one.headline().contains("there is only one"),
        "{}",
        one.headline()
    );
    let mut stuck_in_mud = normals(1, 1000);
    correlate(&mut stuck_in_mud, 0.9995);
    let alone = diagnose(&stuck_in_mud);
    assert_eq!(alone.convergence, Grade::NotConverged);
    assert!(alone.headline().starts_with("The chain has not converged"));
    let mut ragged = good();
    ragged.chains[1].draws.truncate(500);
    assert_eq!(diagnose(&ragged).convergence, Grade::Unknown);
    assert_eq!(diagnose(&Evidence::default()).convergence, Grade::Unknown);
    let mut empty = good();
    for chain in &mut empty.chains {
        *chain = ChainRecord::default();
    }
    assert_eq!(diagnose(&empty).convergence, Grade::Unknown);
}

#[test]
fn chains_that_never_moved_are_named() {
    let mut evidence = good();
    let start = [vec![0.5, 1.0], vec![-0.5, f64::NAN]];
    change(&mut evidence, |c, _, x| {
        if c == 1 || c == 3 {
            *x = start[c / 2].clone();
        }
    });
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.convergence, Grade::NotConverged);
    assert!(diagnosis.headline().contains("2 of 4 never moved"));
    let verdict = of_kind(&evidence, Kind::NeverMoved);
    assert_eq!(verdict.severity, Severity::Problem);
    assert!(verdict.sentence.starts_with("Chains 2 and 4 never moved"));
    // One move is a move.
    evidence.chains[1].draws[999][0] = 0.75;
    assert!(
        of_kind(&evidence, Kind::NeverMoved)
            .sentence
            .starts_with("Chain 4 never")
    );
    assert!(found(&normals(1, 1), Kind::NeverMoved).is_none());
}

#[test]
fn a_run_with_no_accepted_proposal_is_diagnosed() {
    let mut evidence = good();
    change(&mut evidence, |c, _, x| *x = vec![c as f64, 1.0]);
    accept(&mut evidence, 0.0);
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.convergence, Grade::NotConverged);
    let text = diagnosis.to_text();
    assert!(text.contains("All chains never moved: no proposal was accepted in 1000 draws each"));
    // Then neither constant parameters nor low acceptance are reported.
    assert_eq!(kinds(&diagnosis), [Kind::Convergence, Kind::NeverMoved]);
}

#[test]
fn columns_with_nan_are_left_out_and_said() {
    let mut evidence = good();
    change(&mut evidence, |c, i, x| {
        if c == 2 && i % 100 == 0 {
            x[1] = if i == 0 { f64::INFINITY } else { f64::NAN };
        }
    });
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.convergence, Grade::Converged);
    let verdict = &diagnosis.verdicts[0];
    assert_eq!(
        (verdict.kind, verdict.severity),
        (Kind::NotFinite, Severity::Problem)
    );
    assert_eq!(
        verdict.sentence,
        "beta[1] is infinite or not a number in 10 of 4000 draws; the other verdicts leave it out."
    );
    change(&mut evidence, |_, _, x| x.fill(f64::NAN));
    assert_eq!(diagnose(&evidence).convergence, Grade::NotConverged);
    change(&mut evidence, |_, i, x| {
        x[0] = if i == 0 { 0.0 } else { f64::NAN }
    });
    assert_eq!(diagnose(&evidence).convergence, Grade::Unknown);
}

#[test]
fn constant_columns_are_a_note() {
    let mut evidence = good();
    change(&mut evidence, |_, _, x| x[1] = 1.0);
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.convergence, Grade::Converged);
    let verdict = of_kind(&evidence, Kind::Constant);
    assert_eq!(verdict.severity, Severity::Note);
    assert!(verdict.sentence.starts_with("beta[1] is the same in all"));
}

#[test]
fn short_chains_are_said_to_be_short() {
    let verdict = of_kind(&normals(4, 99), Kind::FewDraws);
    assert!(verdict.sentence.contains("99 draws each"));
    assert!(found(&normals(4, 100), Kind::FewDraws).is_none());
}

#[test]
fn acceptance_has_two_ends() {
    let mut evidence = good();
    accept(&mut evidence, 0.04);
    let verdict = of_kind(&evidence, Kind::LowAcceptance);
    assert!(verdict.sentence.contains("(4.0 %)"), "{}", verdict.sentence);
    accept(&mut evidence, 0.06);
    assert!(found(&evidence, Kind::LowAcceptance).is_none());

    let mut slow = normals(CHAINS, 2000);
    correlate(&mut slow, 0.95);
    accept(&mut slow, 0.98);
    let verdict = of_kind(&slow, Kind::SmallSteps);
    assert!(verdict.sentence.contains("(98 %)"));
    // Not where chains move well, nor for trajectories that end by themselves, nor where nothing is
    // tested.
    accept(&mut evidence, 0.98);
    assert!(found(&evidence, Kind::SmallSteps).is_none());
    let mut open = slow.clone();
    open.facts.tests_proposals = false;
    assert!(found(&open, Kind::SmallSteps).is_none());
    slow.chains[0].tree_depth = vec![3.0; 2000];
    assert!(found(&slow, Kind::SmallSteps).is_none());
}

#[test]
fn a_collapsed_step_size_is_said() {
    let mut evidence = good();
    evidence.facts.noise.first_step_size = Some(0.05);
    for chain in &mut evidence.chains {
        // Jitter is no collapse.
        chain.step_size = (0..DRAWS).map(|i| 6e-5 * (i % 10) as f64 / 9.0).collect();
    }
    assert!(found(&evidence, Kind::StepCollapsed).is_none());
    for chain in &mut evidence.chains {
        chain.step_size.fill(4e-5);
    }
    let verdict = of_kind(&evidence, Kind::StepCollapsed);
    assert!(
        verdict
            .sentence
            .contains("began at 0.0500 and ended at 4.0e-5")
    );
    evidence.facts.adapts_step = false;
    assert!(found(&evidence, Kind::StepCollapsed).is_none());
}

#[test]
fn drifting_chains_are_found() {
    // A straight line, and a decay from 20 standard deviations away over the first half.
    let paths: [fn(f64) -> f64; 2] = [|t| 8.0 * t, |t| 20.0 * (-t * 10.0).exp()];
    for path in paths {
        let mut evidence = normals(CHAINS, 200);
        change(&mut evidence, |c, i, x| {
            if c > 0 {
                x[1] += path(i as f64 / 200.0);
            }
        });
        let verdict = of_kind(&evidence, Kind::Drift);
        assert!(
            verdict
                .sentence
                .starts_with("3 of 4 chains are still drifting: for beta[1]"),
            "{}",
            verdict.sentence
        );
        assert_eq!(verdict.parameters, ["beta[1]"]);
        // One chain of four is apart, which R-hat shows, but they are not all drifting.
        let mut one = normals(CHAINS, 200);
        change(&mut one, |c, i, x| {
            if c == 0 {
                x[1] += path(i as f64 / 200.0);
            }
        });
        assert!(found(&one, Kind::Drift).is_none());
    }
    // Chains that mix slowly wander without going anywhere.
    let mut slow = normals(CHAINS, 250);
    correlate(&mut slow, 0.95);
    assert_ne!(diagnose(&slow).convergence, Grade::Converged);
    assert!(found(&slow, Kind::Drift).is_none());
}

/// Private settings whose test has noise of `nats` at the step of [`good`].
fn noisy(nats: f64, acceptance: f64) -> Evidence {
    let mut evidence = good();
    evidence.facts.has_budget = true;
    evidence.facts.noise.log_ratio_per_step = Some(nats / 0.1);
    accept(&mut evidence, acceptance);
    evidence
}

#[test]
fn noise_that_rejects_is_told_from_steps_that_are_too_long() {
    let loud = of_kind(&noisy(3.0, 0.1), Kind::TestNoise);
    assert_eq!(loud.severity, Severity::Problem);
    // 2 Φ(-1.5)
    assert!(
        loud.sentence.contains("standard deviation 3.0 nats") && loud.sentence.contains("13 %"),
        "{}",
        loud.sentence
    );
    // 2 Φ(-sqrt(v + s²)/2): with s = 1.8, v = 0.01 it is 0.37, against 0.96 without noise.
    let half = of_kind(
        &noisy(1.8, acceptance_at(0.01 + 1.8 * 1.8)),
        Kind::TestNoise,
    );
    assert_eq!(half.severity, Severity::Warning);
    assert!(
        half.sentence.contains("37 % of proposals") && half.sentence.contains("about 96 %"),
        "{}",
        half.sentence
    );
    // A step that is too long loses more than its noise of 0.5 nats does.
    assert!(found(&noisy(0.5, 0.1), Kind::TestNoise).is_none());
    assert!(found(&noisy(1.0, acceptance_at(1.0)), Kind::TestNoise).is_none());
    // Nothing accepted, with little noise: the noise is not the reason.
    assert!(found(&noisy(0.5, 0.0), Kind::TestNoise).is_none());
    // With a metric, distances are in other units.
    let mut other = noisy(3.0, 0.1);
    other.facts.unit_metric = false;
    assert!(found(&other, Kind::TestNoise).is_none());
}

/// Noise that warm-up answered with short steps: found where chains have not converged.
#[test]
fn noise_that_makes_steps_short_is_told() {
    let slow = |nats: f64, acceptance: f64, first: f64| {
        let mut evidence = noisy(nats, acceptance);
        correlate(&mut evidence, 0.95);
        evidence.facts.noise.first_step_size = Some(first);
        evidence
    };
    // (2 Φ⁻¹(0.25))² = 1.82, of which 1.2² is 79 %.
    let sets = of_kind(&slow(1.2, 0.5, 5.0), Kind::TestNoise);
    assert_eq!(sets.severity, Severity::Warning);
    assert!(
        sets.sentence.starts_with("The noise sets the length") && sets.sentence.contains("79 %"),
        "{}",
        sets.sentence
    );
    let dominates = of_kind(&slow(1.2, 0.5, 20.0), Kind::TestNoise);
    assert_eq!(dominates.severity, Severity::Problem);
    assert!(
        dominates
            .sentence
            .contains("cut the step from 20 by a factor of 200"),
        "{}",
        dominates.sentence
    );
    let mut given = slow(1.2, 0.5, 20.0);
    given.facts.adapts_step = false;
    assert_eq!(of_kind(&given, Kind::TestNoise).severity, Severity::Warning);
    // The posterior's own curvature: 0.8² of 1.82 is 35 %.
    assert!(found(&slow(0.8, 0.5, 20.0), Kind::TestNoise).is_none());
    // And where chains have converged nevertheless, there is no verdict.
    assert!(found(&noisy(1.2, 0.5), Kind::TestNoise).is_none());
}

/// The formula behind the verdict, by simulation: the penalty test of log ratios
/// N(-v/2, v) with noise s. 40,000 draws have a standard error of at most 0.0025; six are
/// allowed.
#[test]
fn acceptance_under_noise_follows_the_formula() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    for (v, s) in [(0.0f64, 1.0f64), (1.0, 1.5), (2.0, 0.5)] {
        let draws = 40_000;
        let accepted: f64 = (0..draws)
            .map(|_| {
                let exact = -v / 2.0 + v.sqrt() * normal();
                (exact + s * normal() - s * s / 2.0).exp().min(1.0)
            })
            .sum();
        let share = accepted / f64::from(draws);
        let formula = acceptance_at(v + s * s);
        assert!(
            (share - formula).abs() < 0.015,
            "{v} {s}: {share} {formula}"
        );
    }
    assert!((acceptance_at(1.0) - 0.617_075_077_451_974).abs() < 1e-12);
}

#[test]
fn noisy_gradients_are_said() {
    let mut evidence = good();
    evidence.facts.has_budget = true;
    evidence.facts.leapfrog_steps = Some(16);
    // 0.05 x 4 x 10 = 2
    evidence.facts.noise.gradient = Some(10.0);
    let verdict = of_kind(&evidence, Kind::GradientNoise);
    assert!(
        verdict.sentence.contains("by about 2.0"),
        "{}",
        verdict.sentence
    );
    evidence.facts.noise.gradient = Some(4.0);
    assert!(found(&evidence, Kind::GradientNoise).is_none());
}

#[test]
fn samplers_that_never_reject_have_their_plan_s_warnings() {
    let mut evidence = good();
    evidence.facts.plan_warnings = vec!["too much noise".into()];
    assert!(found(&evidence, Kind::PlannedNoise).is_none());
    evidence.facts.tests_proposals = false;
    let verdict = of_kind(&evidence, Kind::PlannedNoise);
    assert_eq!(verdict.sentence, "Planning warned: too much noise.");
    assert_eq!(
        of_kind(&evidence, Kind::Approximate).severity,
        Severity::Note
    );
}

#[test]
fn divergences_depth_and_energies_are_stan_s() {
    let mut evidence = good();
    evidence.facts.max_depth = Some(10);
    for chain in &mut evidence.chains {
        chain.tree_depth = vec![3.0; DRAWS];
    }
    assert_eq!(kinds(&diagnose(&evidence)), [Kind::Convergence]);
    evidence.chains[0].divergent[7] = 1.0;
    evidence.chains[3].tree_depth[..40].fill(10.0);
    let energy = &mut evidence.chains[1].energy;
    for i in 1..DRAWS {
        energy[i] = 0.9 * energy[i - 1] + 0.19f64.sqrt() * energy[i];
    }
    let diverged = of_kind(&evidence, Kind::Divergence);
    assert!(
        diverged
            .sentence
            .starts_with("1 of 4000 trajectories diverged")
    );
    let depth = of_kind(&evidence, Kind::TreeDepth);
    assert!(
        depth.sentence.starts_with("1.0 % of the trajectories"),
        "{}",
        depth.sentence
    );
    let low = of_kind(&evidence, Kind::Energy);
    assert!(low.sentence.starts_with("Chain 2 has a low E-BFMI"));
    // 2 (1 - 0.9) of an autoregression, and 2 of independent energies.
    assert!((low.value.unwrap() - 0.2).abs() < 0.06);
    assert!((hamiltonian::e_bfmi(&evidence.chains[0]) - 2.0).abs() < 0.2);
    // 0, 1, 3: (1 + 4) / (16/9 + 1/9 + 25/9)
    let by_hand = ChainRecord {
        energy: vec![0.0, 1.0, 3.0],
        ..ChainRecord::default()
    };
    assert!((hamiltonian::e_bfmi(&by_hand) - 45.0 / 42.0).abs() < 1e-14);
}

#[test]
fn what_draws_cannot_show_is_noted() {
    let mut evidence = good();
    evidence.facts.may_clip = true;
    evidence.facts.tempered = Some(100.0);
    let diagnosis = diagnose(&evidence);
    assert_eq!(
        kinds(&diagnosis),
        [Kind::Clipping, Kind::Tempered, Kind::Convergence]
    );
    assert!(diagnosis.to_text().contains("that of 100 records"));
    let json = serde_json::to_value(&diagnosis).unwrap();
    assert_eq!(json["convergence"], "converged");
    assert_eq!(json["verdicts"][0]["kind"], "clipping");
    assert_eq!(json["verdicts"][0]["severity"], "note");
}

#[test]
fn the_worst_comes_first() {
    let mut evidence = noisy(3.0, 0.02);
    evidence.facts.tempered = Some(10.0);
    change(&mut evidence, |c, _, x| x[0] += c as f64);
    let severities: Vec<Severity> = diagnose(&evidence)
        .verdicts
        .iter()
        .map(|v| v.severity)
        .collect();
    assert!(
        severities.is_sorted() && severities.len() >= 4,
        "{severities:?}"
    );
    assert_eq!(diagnose(&evidence).verdicts[0].kind, Kind::Convergence);
}

#[test]
fn chains_and_figures_are_written_as_people_do() {
    assert_eq!(chains_by_number(&[0], 1), "The chain");
    assert_eq!(chains_by_number(&[0, 1], 2), "All chains");
    assert_eq!(chains_by_number(&[0, 1, 3], 5), "Chains 1, 2 and 4");
    let names: Vec<String> = (1..=5).map(|i| format!("b[{i}]")).collect();
    assert_eq!(some_of(&names), "b[1], b[2], b[3] and 2 more");
    assert_eq!(some_of(&names[..2]), "b[1], b[2]");
    for (x, text) in [
        (0.0, "0"),
        (1234.6, "1235"),
        (2.34, "2.3"),
        (0.456, "0.46"),
        (0.01234, "0.0123"),
        (1e-7, "1.0e-7"),
        (3e9, "3.0e9"),
        (f64::INFINITY, "infinite"),
    ] {
        assert_eq!(figure(x), text);
    }
    assert_eq!(
        (percent(0.317), percent(0.0456)),
        ("32 %".into(), "4.6 %".into())
    );
}

/// A search that arrived, before chains.
fn arrived() -> SearchFacts {
    SearchFacts {
        last_step: 1.5,
        cut: false,
        unknown: 0.5,
        seen: true,
        centre_sd: None,
    }
}

/// Good draws of a private sampler that searches first.
fn after(search: SearchFacts) -> Evidence {
    let mut evidence = good();
    evidence.facts.has_budget = true;
    evidence.facts.tests_proposals = false;
    evidence.facts.search = Some(search);
    evidence
}

// If it failed: draws that come from no chain would be called converged.
#[test]
fn a_fitted_gaussian_is_not_said_to_have_converged() {
    assert_eq!(diagnose(&good()).convergence, Grade::Converged);
    let evidence = after(SearchFacts {
        centre_sd: Some(0.52),
        ..arrived()
    });
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.convergence, Grade::Fitted);
    assert_eq!(kinds(&diagnosis), [Kind::Convergence]);
    let verdict = of_kind(&evidence, Kind::Convergence);
    assert!(verdict.severity == Severity::Warning && verdict.sentence.contains("0.52"));
    let text = diagnosis.to_text();
    assert!(!text.contains("have converged") && text.contains(AS_THEY_ARE));
    assert_eq!(diagnosis.decision, Decision::UseWithCare);
    // Few independent draws are not short chains.
    let mut few = normals(CHAINS, 50);
    few.facts = evidence.facts;
    assert!(found(&few, Kind::FewDraws).is_none() && found(&few, Kind::Drift).is_none());
}

const AS_THEY_ARE: &str = "intervals can be used as they are";

// If it failed: an answer known to be wrong would be praised, or a good one condemned.
#[test]
fn a_search_that_failed_decides_whatever_the_draws_look_like() {
    let chains = after(arrived());
    assert_eq!(diagnose(&chains).convergence, Grade::Converged);
    assert_eq!(
        kinds(&diagnose(&chains)),
        [Kind::Approximate, Kind::Convergence]
    );
    for (search, kind, words) in [
        (
            SearchFacts {
                last_step: 2.1,
                ..arrived()
            },
            Kind::SearchNotArrived,
            "had not reached the posterior. Its last step was 2.1 of",
        ),
        (
            SearchFacts {
                last_step: f64::MAX,
                ..arrived()
            },
            Kind::SearchNotArrived,
            "took no step",
        ),
        (
            SearchFacts {
                cut: true,
                ..arrived()
            },
            Kind::SearchNotArrived,
            "and was cut short",
        ),
        (
            SearchFacts {
                seen: false,
                ..arrived()
            },
            Kind::GradientsUnseen,
            "never rose above the noise",
        ),
        (
            SearchFacts {
                unknown: 1.0,
                ..arrived()
            },
            Kind::WidthUnknown,
            "the draws' width reflects noise or the prior",
        ),
    ] {
        for centre_sd in [None, Some(0.1)] {
            let evidence = after(SearchFacts {
                centre_sd,
                ..search.clone()
            });
            let diagnosis = diagnose(&evidence);
            let verdict = &diagnosis.verdicts[0];
            assert_eq!((verdict.kind, verdict.severity), (kind, Severity::Problem));
            assert_eq!(diagnosis.convergence, Grade::SearchFailed);
            assert_eq!(diagnosis.headline(), verdict.sentence);
            assert_eq!(diagnosis.decision, Decision::DoNotUse);
            assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
            let text = diagnosis.to_text();
            for praise in [AS_THEY_ARE, "have converged", "nearly converged"] {
                assert!(!text.contains(praise), "{text}");
            }
            assert!(found(&evidence, Kind::Convergence).is_none());
        }
    }
    // Problems of the chains are reported in addition.
    let mut apart = after(SearchFacts {
        last_step: 21.0,
        ..arrived()
    });
    change(&mut apart, |c, _, x| x[1] += c as f64);
    assert_eq!(
        kinds(&diagnose(&apart))[..2],
        [Kind::SearchNotArrived, Kind::Convergence]
    );
}

/// A step is compared with the draws, which are wider than the posterior by the centre's noise.
#[test]
fn noise_in_the_centre_is_a_note_while_the_draws_include_it() {
    let after_search = |last_step: f64, noise: f64| {
        after(SearchFacts {
            last_step,
            centre_sd: Some(noise),
            ..arrived()
        })
    };
    assert!(found(&after_search(1.5, 0.9), Kind::CentreNoise).is_none());
    let noisy = after_search(3.4, 3f64.sqrt());
    let verdict = of_kind(&noisy, Kind::CentreNoise);
    assert_eq!(verdict.severity, Severity::Note);
    assert!(verdict.sentence.contains("2.0 times as wide"));
    assert_eq!(diagnose(&noisy).convergence, Grade::Fitted);
    let long = of_kind(&after_search(4.2, 3f64.sqrt()), Kind::SearchNotArrived);
    assert!((long.value.unwrap() - 2.1).abs() < 1e-12);
    // Draws are widened by ten at most.
    let lost = after_search(15.0, 11.0);
    assert_eq!(
        of_kind(&lost, Kind::CentreNoise).severity,
        Severity::Problem
    );
    assert_eq!(diagnose(&lost).convergence, Grade::SearchFailed);
}

/// [`good`] draws, standard normals, with priors N(0, scale²) and N(shift, 100²).
fn beside_priors(scale: f64, shift: f64) -> Evidence {
    let range = |centre: f64, sd: f64| PriorRange {
        central_90: [centre - 1.6449 * sd, centre + 1.6449 * sd],
        central_999: [centre - 3.2905 * sd, centre + 3.2905 * sd],
    };
    let mut evidence = after(arrived());
    evidence.priors = vec![Some(range(0.0, scale)), Some(range(shift, 100.0))];
    evidence
}

#[test]
fn draws_are_held_against_the_prior() {
    let private = |scale, shift| kinds(&diagnose(&beside_priors(scale, shift)));
    let usual = [Kind::Approximate, Kind::Convergence];
    assert_eq!(private(5.0, 0.0), usual);
    // A mean at 3.25 and at 3.35 prior standard deviations.
    assert_eq!(private(5.0, 325.0), usual);
    let beyond = of_kind(&beside_priors(5.0, 335.0), Kind::BeyondPrior);
    assert_eq!(beyond.severity, Severity::Warning);
    assert_eq!(beyond.parameters, ["beta[1]"]);
    assert!(beyond.sentence.contains("central 99.9 % of its prior"));
    // Ten prior standard deviations: a search that begins within the prior may miss that, while
    // chains without a budget walk as far as they need to.
    let far = of_kind(&beside_priors(5.0, -990.0), Kind::BeyondPrior);
    assert_eq!(far.severity, Severity::Problem);
    assert!(far.sentence.contains("may have missed"));
    let mut open = beside_priors(5.0, -990.0);
    open.facts = RunFacts::default();
    let warned = of_kind(&open, Kind::BeyondPrior);
    assert_eq!(warned.severity, Severity::Warning);

    // One parameter as wide as its prior is a note, both are an answer without information; in
    // 4,000 draws the ratio of widths has a standard error of 0.02.
    let one = beside_priors(1.0, 0.0);
    let verdict = of_kind(&one, Kind::PriorWidth);
    assert_eq!(verdict.severity, Severity::Note);
    assert_eq!(verdict.parameters, ["alpha"]);
    assert_eq!(diagnose(&one).convergence, Grade::Converged);
    assert!(found(&beside_priors(1.25, 0.0), Kind::PriorWidth).is_none());
    let mut both = one;
    both.priors[1] = both.priors[0];
    assert_eq!(of_kind(&both, Kind::PriorWidth).severity, Severity::Problem);
    assert_eq!(diagnose(&both).convergence, Grade::SearchFailed);
    assert!(
        diagnose(&both)
            .headline()
            .contains("as wide as their priors")
    );
    // Without privacy, a posterior that equals the prior is the result of the data.
    both.facts.has_budget = false;
    assert!(found(&both, Kind::PriorWidth).is_none());
}

#[test]
fn a_report_has_each_verdict() {
    let diagnosis = diagnose(&after(SearchFacts {
        last_step: 21.0,
        ..arrived()
    }));
    let report = diagnosis.to_report();
    assert_eq!(report["decision"], "do_not_use");
    let list = &report["verdicts"];
    assert_eq!(list.as_array().unwrap().len(), diagnosis.verdicts.len());
    assert_eq!(list[0]["kind"], "search_not_arrived");
    assert_eq!(list[0]["severity"], "problem");
    assert_eq!(list[0]["sentence"], diagnosis.headline());
}

//! Rules about released likelihoods, and the verdicts on draws from them.

use super::tests::{
    CHAINS, DRAWS, accept, change, correlate, found, good, kinds, normals, of_kind,
};
use super::*;

/// Rounds that agree, of eight directions.
fn agreed() -> LikelihoodFacts {
    LikelihoodFacts {
        coordinates: 8,
        last_step: 0.4,
        cut: false,
        surprise: vec![0.9, 1.2],
        unknown: 0.0,
        untold: 0.0,
        clipped: None,
        seen: true,
        has_law: true,
        open: [Vec::new(), Vec::new()],
        conflicts: Vec::new(),
        centre_sd: 0.5,
        certificate: Some(Certificate { p: 0.4, noise: 6.0 }),
    }
}

fn from(likelihood: LikelihoodFacts) -> Evidence {
    drawn(good(), likelihood)
}

fn drawn(mut evidence: Evidence, likelihood: LikelihoodFacts) -> Evidence {
    evidence.facts.has_budget = true;
    evidence.facts.unit_metric = false;
    evidence.facts.max_depth = Some(10);
    evidence.facts.likelihood = Some(likelihood);
    for chain in &mut evidence.chains {
        chain.tree_depth = vec![3.0; chain.draws.len()];
    }
    evidence
}

// If it failed: a good answer would be condemned, or the certificate be praised for more than it
// can see.
#[test]
fn rounds_that_agree_can_be_used() {
    let diagnosis = diagnose(&from(agreed()));
    assert_eq!(diagnosis.decision, Decision::Use);
    assert_eq!(kinds(&diagnosis), [Kind::Convergence, Kind::Certificate]);
    let certificate = of_kind(&from(agreed()), Kind::Certificate);
    assert_eq!(certificate.severity, Severity::Good);
    assert!(certificate.sentence.contains("p = 0.40"));
    assert!(certificate.sentence.contains("6.0 posterior standard"));
    assert!(
        diagnosis
            .in_short()
            .starts_with("These draws can be used. The chains have converged: ")
    );
}

// If it failed: an answer that its own releases contradict would be used.
#[test]
fn what_the_rounds_say_against_the_answer_is_a_problem_beyond_its_threshold() {
    let changed = |change: &dyn Fn(&mut LikelihoodFacts)| {
        let mut likelihood = agreed();
        change(&mut likelihood);
        likelihood
    };
    let p = |p: f64| changed(&|l| l.certificate = Some(Certificate { p, noise: 6.0 }));
    let last_step = |step: f64| changed(&|l| l.last_step = step);
    let surprise = |latest: f64, before: f64| changed(&|l| l.surprise = vec![latest, before]);
    let cut = |step: f64| changed(&|l| (l.last_step, l.cut) = (step, true));
    for good in [p(0.001), last_step(2.0), cut(2.0), surprise(3.0, 3.0)] {
        let diagnosis = diagnose(&from(good));
        assert_eq!(diagnosis.decision, Decision::Use, "{diagnosis:?}");
    }
    for (bad, kind, words) in [
        (p(0.0009), Kind::Certificate, "contradicts the answer"),
        (p(0.0), Kind::Certificate, "has probability 0 if"),
        (
            last_step(2.1),
            Kind::SearchNotArrived,
            "its last step was 2.1 of its own standard deviations long",
        ),
        (last_step(f64::MAX), Kind::SearchNotArrived, "took no step"),
        (
            cut(2.1),
            Kind::SearchNotArrived,
            "its last step was cut short, and would have been 2.1 of",
        ),
        (surprise(3.1, 1.0), Kind::Contradiction, "3.1 times"),
        (surprise(1.0, 31.0), Kind::Contradiction, "31 times"),
        (
            changed(&|l| (l.seen, l.surprise) = (false, vec![1.0, 2.1])),
            Kind::Contradiction,
            "2.1 times",
        ),
        (
            changed(&|l| (l.unknown, l.surprise) = (0.5, vec![2.1, 1.0])),
            Kind::Contradiction,
            "at most 2 is expected",
        ),
        (changed(&|l| l.untold = 0.25), Kind::HiddenTails, "25 %"),
        (
            changed(&|l| {
                l.clipped = Some(Pull {
                    sds: 8.5,
                    noise: 3.0,
                })
            }),
            Kind::HiddenTails,
            "8.5 posterior standard deviations (with noise of 3.0)",
        ),
        (
            changed(&|l| (l.has_law, l.unknown) = (false, 0.375)),
            Kind::WidthUnknown,
            "In 3 of 8 directions",
        ),
        (
            changed(&|l| (l.has_law, l.seen) = (false, false)),
            Kind::GradientsUnseen,
            "no law of the outcomes",
        ),
    ] {
        let evidence = from(bad);
        let diagnosis = diagnose(&evidence);
        let verdict = of_kind(&evidence, kind);
        assert_eq!(verdict.severity, Severity::Problem);
        assert!(verdict.sentence.contains(words), "{}", verdict.sentence);
        assert!(verdict.advice.is_some());
        assert_eq!(diagnosis.decision, Decision::DoNotUse);
        assert_eq!(diagnosis.convergence, Grade::SearchFailed);
        assert_eq!(
            diagnosis.in_short(),
            format!("Do not use these draws. {}", verdict.sentence)
        );
        // Neither chains that agree nor a certificate are praised then.
        let praised = |v: &Verdict| v.severity == Severity::Good;
        assert!(!diagnosis.verdicts.iter().any(praised), "{diagnosis:?}");
    }
}

#[test]
fn a_certificate_that_was_lost_and_lengths_that_were_not_seen_ask_for_care() {
    let lost = from(LikelihoodFacts {
        certificate: None,
        ..agreed()
    });
    let blind = from(LikelihoodFacts {
        seen: false,
        ..agreed()
    });
    for (evidence, kind, words) in [
        (lost, Kind::Certificate, "nothing has checked the answer"),
        (blind, Kind::GradientsUnseen, "intervals may be wider"),
    ] {
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.decision, Decision::UseWithCare);
        assert_eq!(diagnosis.verdicts[0].kind, kind);
        assert!(diagnosis.headline().contains(words));
        assert_eq!(diagnosis.convergence, Grade::Converged);
    }
}

/// [`good`] draws, standard normals, the first with a prior N(0, scale²).
fn beside_prior(scale: f64, likelihood: LikelihoodFacts) -> Evidence {
    let range = |sd: f64| PriorRange {
        central_90: [-1.6449 * sd, 1.6449 * sd],
        central_999: [-3.2905 * sd, 3.2905 * sd],
    };
    let mut evidence = from(likelihood);
    evidence.priors = vec![Some(range(scale)), Some(range(100.0))];
    evidence
}

// If it failed: a reader would mistake the prior's width of a parameter for information from the
// records.
#[test]
fn parameters_that_the_records_did_not_tell_are_named() {
    let unknown = |unknown: f64| LikelihoodFacts {
        unknown,
        ..agreed()
    };
    let evidence = beside_prior(1.0, unknown(0.125));
    let diagnosis = diagnose(&evidence);
    assert_eq!(diagnosis.decision, Decision::UseWithCare);
    let verdict = of_kind(&evidence, Kind::WidthUnknown);
    assert_eq!(verdict.severity, Severity::Warning);
    assert_eq!(verdict.parameters, ["alpha"]);
    let mut without_law = evidence.clone();
    without_law.facts.likelihood.as_mut().unwrap().has_law = false;
    assert_eq!(diagnose(&without_law).decision, Decision::UseWithCare);
    let advice = of_kind(&without_law, Kind::WidthUnknown).advice;
    assert!(advice.unwrap().contains("y ~ ..."));
    // The draws' width has a standard error of 2 %.
    let shown = verdict
        .sentence
        .split("Widest relative to the prior: alpha (");
    let percent = shown.last().and_then(|rest| rest.split(' ').next());
    let percent: f64 = percent.unwrap().parse().unwrap();
    assert!((percent - 100.0).abs() < 8.0, "{}", verdict.sentence);
    assert!(
        verdict
            .sentence
            .contains("There the draws are as wide as the prior")
    );
    // Once.
    assert!(found(&evidence, Kind::PriorWidth).is_none());
    // As many as there are directions, even where a prior is wider.
    let two = of_kind(&beside_prior(5.0, unknown(0.25)), Kind::WidthUnknown);
    assert_eq!(two.parameters, ["alpha", "beta[1]"]);
    assert!(two.sentence.contains("prior: alpha (20 %), beta[1] ("));
    assert!(
        two.sentence
            .contains("as wide as the noise and the prior leave them, ")
    );
    assert!((two.advice.unwrap()).contains("as those of the noise and the prior, and the others"));
    // The ranges of priors that depend on each other are not known.
    let mut none = evidence.clone();
    none.priors.clear();
    let verdict = of_kind(&none, Kind::WidthUnknown);
    assert!(verdict.parameters.is_empty() && !verdict.sentence.contains("Widest"));
    // Known directions that are nevertheless as wide as the prior: that is the information of the
    // records.
    let told = beside_prior(1.0, agreed());
    assert_eq!(diagnose(&told).decision, Decision::Use);
    assert_eq!(of_kind(&told, Kind::PriorWidth).parameters, ["alpha"]);
    // And if that holds for all parameters, the draws are only the prior's; without a law they need
    // not even be that.
    let mut nothing = beside_prior(1.0, unknown(0.125));
    nothing.priors[1] = nothing.priors[0];
    assert_eq!(diagnose(&nothing).decision, Decision::UseWithCare);
    assert!(found(&nothing, Kind::PriorWidth).is_some());
    nothing.facts.likelihood.as_mut().unwrap().has_law = false;
    assert_eq!(diagnose(&nothing).decision, Decision::DoNotUse);
}

// If it failed: draws at places supported by neither records nor prior would be used.
#[test]
fn means_beyond_the_prior_are_not_believed_where_little_is_known() {
    let beyond_in = |facts: LikelihoodFacts| {
        let mut evidence = beside_prior(1.0, facts);
        evidence.priors[0] = Some(PriorRange {
            central_90: [4.0, 8.0],
            central_999: [2.0, 10.0],
        });
        evidence
    };
    let beyond = |unknown: f64| {
        beyond_in(LikelihoodFacts {
            unknown,
            ..agreed()
        })
    };
    let verdict = of_kind(&beyond(0.375), Kind::WidthUnknown);
    assert_eq!(verdict.severity, Severity::Problem);
    assert!(verdict.sentence.contains("In 3 of 8 directions"));
    assert!(verdict.sentence.contains("beyond the prior"));
    assert_eq!(diagnose(&beyond(0.375)).decision, Decision::DoNotUse);
    assert_eq!(diagnose(&beyond(0.125)).decision, Decision::UseWithCare);
    // Nor where the noise is most of the width, even if all directions are known.
    for (centre_sd, severity) in [(0.9, Severity::Warning), (1.1, Severity::Problem)] {
        let evidence = beyond_in(LikelihoodFacts {
            centre_sd,
            ..agreed()
        });
        let verdict = of_kind(&evidence, Kind::BeyondPrior);
        assert_eq!(verdict.severity, severity, "{centre_sd}");
        assert_eq!(
            verdict.sentence.contains("has not arrived"),
            severity == Severity::Problem
        );
    }
    let within = beside_prior(
        1.0,
        LikelihoodFacts {
            unknown: 0.375,
            ..agreed()
        },
    );
    assert_eq!(diagnose(&within).decision, Decision::UseWithCare);
}

// If it failed: the level of a class that five records have, which noise could have made, would be taken for an
// estimate. Means lie at 0 and, by the prior's ranges, below or above its central 90 %, or within.
#[test]
fn a_mean_on_an_open_side_of_the_likelihood_is_only_a_bound() {
    let open = |[low, high]: [f64; 2], open: [&[&str]; 2]| {
        let names = |side: &[&str]| side.iter().map(|name| (*name).to_owned()).collect();
        let facts = LikelihoodFacts {
            open: open.map(names),
            ..agreed()
        };
        let mut evidence = beside_prior(1.0, facts);
        evidence.priors[0] = Some(PriorRange {
            central_90: [low, high],
            central_999: [2.0 * low - high, 2.0 * high - low],
        });
        evidence
    };
    let [name, other] = [0, 1].map(|k| from(agreed()).names[k].clone());
    let below = open([0.5, 1.5], [&[&name], &[]]);
    let verdict = of_kind(&below, Kind::OneSided);
    assert_eq!(verdict.severity, Severity::Problem);
    assert_eq!(verdict.parameters, std::slice::from_ref(&name));
    assert!(verdict.sentence.contains("much further below"));
    assert_eq!(diagnose(&below).decision, Decision::DoNotUse);
    let above = open([-1.5, -0.5], [&[], &[&name]]);
    assert!(
        of_kind(&above, Kind::OneSided)
            .sentence
            .contains("much further above")
    );
    // A mean two prior sds out pulls by 2 / s where the prior is s times as wide as the draws.
    for (times, severity) in [(3.0, Severity::Problem), (4.0, Severity::Warning)] {
        let central_90 = [2.0 - 1.645, 2.0 + 1.645].map(|x| times * x);
        let verdict = of_kind(&open(central_90, [&[&name], &[]]), Kind::OneSided);
        assert_eq!(verdict.severity, severity);
    }
    // Within the prior, on the other side, or of another parameter.
    for fine in [
        open([-0.5, 0.5], [&[&name], &[&name]]),
        open([0.5, 1.5], [&[], &[&name]]),
        open([0.5, 1.5], [&[&other], &[]]),
    ] {
        assert!(found(&fine, Kind::OneSided).is_none());
    }
    // Beyond 99.9 % it is said once, and is a problem even where there is little noise on average.
    let mut far = open([4.0, 5.0], [&[&name], &[]]);
    far.priors[0].as_mut().unwrap().central_999 = [3.0, 6.0];
    assert!(found(&far, Kind::OneSided).is_none());
    assert_eq!(of_kind(&far, Kind::BeyondPrior).severity, Severity::Problem);
}

#[test]
fn wide_intervals_are_told_and_can_be_used() {
    let noise = |centre_sd: f64| {
        from(LikelihoodFacts {
            centre_sd,
            ..agreed()
        })
    };
    assert!(found(&noise(1.0), Kind::CentreNoise).is_none());
    let verdict = of_kind(&noise(3f64.sqrt()), Kind::CentreNoise);
    assert_eq!(verdict.severity, Severity::Note);
    assert!(verdict.sentence.contains("about 2.0 times as wide"));
    assert_eq!(diagnose(&noise(20.0)).decision, Decision::Use);
}

/// Advice and words for chains that pay for each iteration, or for draws without chains.
const OTHERS: [&str; 14] = [
    "travel",
    "clipped posterior",
    "accepts every step",
    "ten times",
    "Gaussian",
    "share the budget",
    "`leapfrog_steps`",
    "`step_size`",
    "`metric`",
    "`max_depth`",
    "noise of the test",
    "scale of about one",
    "`temperature`",
    "which does",
];

// If it failed: a user would be referred to settings that dp-laplace does not have, or be told a
// cost of draws that does not exist.
#[test]
fn trajectories_are_judged_as_of_nuts_and_draws_cost_nothing() {
    let mut stuck = from(agreed());
    change(&mut stuck, |c, _, x| *x = vec![c as f64, 1.0]);
    let mut diverged = from(agreed());
    diverged.chains[0].divergent[7] = 1.0;
    let mut deep = from(agreed());
    deep.chains[3].tree_depth[..40].fill(10.0);
    let mut low_energy = from(agreed());
    let energy = &mut low_energy.chains[1].energy;
    for i in 1..DRAWS {
        energy[i] = 0.9 * energy[i - 1] + 0.19f64.sqrt() * energy[i];
    }
    let mut slow = drawn(normals(CHAINS, 2000), agreed());
    correlate(&mut slow, 0.95);
    let mut apart = from(agreed());
    change(&mut apart, |c, _, x| x[1] += c as f64);
    let short = drawn(normals(CHAINS, 99), agreed());
    let mut rejected = from(agreed());
    accept(&mut rejected, 0.02);
    let mut drifting = drawn(normals(CHAINS, 200), agreed());
    change(&mut drifting, |_, i, x| x[1] += i as f64 / 25.0);
    for (evidence, kind, decision) in [
        (stuck, Kind::NeverMoved, Decision::DoNotUse),
        (diverged, Kind::Divergence, Decision::UseWithCare),
        (deep, Kind::TreeDepth, Decision::Use),
        (low_energy, Kind::Energy, Decision::UseWithCare),
        (slow, Kind::Convergence, Decision::UseWithCare),
        (apart, Kind::Convergence, Decision::DoNotUse),
        (short, Kind::FewDraws, Decision::UseWithCare),
        (rejected, Kind::LowAcceptance, Decision::UseWithCare),
        (drifting, Kind::Drift, Decision::DoNotUse),
    ] {
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.decision, decision, "{kind:?}: {diagnosis:?}");
        assert!(found(&evidence, kind).is_some(), "{kind:?}");
        let text = diagnosis.to_text();
        for word in OTHERS {
            assert!(!text.contains(word), "{kind:?}: `{word}` in {text}");
        }
    }
}

#[test]
fn all_that_rounds_can_have_wrong_is_said_at_once_the_worst_first() {
    let diagnosis = diagnose(&from(LikelihoodFacts {
        coordinates: 8,
        last_step: 7.0,
        cut: true,
        surprise: vec![50.0],
        unknown: 1.0,
        untold: 0.5,
        clipped: None,
        seen: false,
        has_law: false,
        centre_sd: f64::INFINITY,
        open: [Vec::new(), Vec::new()],
        conflicts: Vec::new(),
        certificate: Some(Certificate {
            p: 1e-9,
            noise: 6.0,
        }),
    }));
    assert_eq!(
        kinds(&diagnosis),
        [
            Kind::SearchNotArrived,
            Kind::Certificate,
            Kind::Contradiction,
            Kind::HiddenTails,
            Kind::GradientsUnseen,
            Kind::WidthUnknown,
            Kind::CentreNoise,
        ]
    );
    let text = diagnosis.to_text();
    for word in OTHERS {
        assert!(!text.contains(word), "`{word}` in {text}");
    }
}

// If it failed: draws that follow a wrong prior, as narrow as if the records agreed with it, would be used; or a prior that
// is right would be blamed for its weight.
#[test]
fn a_prior_that_outweighs_the_records_is_a_problem() {
    let conflict = |sds: f64, prior_sds: f64, moved: f64| Conflict {
        name: "beta[1]".to_owned(),
        sds,
        prior_sds,
        moved,
    };
    let beside = |conflicts: &[Conflict]| {
        let mut likelihood = agreed();
        likelihood.conflicts = conflicts.to_vec();
        from(likelihood)
    };
    for far in [conflict(4.1, 4.5, 3.2), conflict(0.5, 9.0, 20.0)] {
        let verdict = of_kind(
            &beside(&[far, conflict(9.0, 9.0, 1.0)]),
            Kind::PriorConflict,
        );
        assert_eq!(verdict.severity, Severity::Problem);
        assert_eq!(verdict.parameters, ["beta[1]"]);
        assert!(
            verdict.sentence.contains("prior of beta[1]: they led"),
            "{}",
            verdict.sentence
        );
    }
    let both = beside(&[conflict(9.0, 9.0, 4.0), conflict(9.0, 9.0, 5.0)]);
    let verdict = of_kind(&both, Kind::PriorConflict);
    assert!(
        verdict.sentence.contains("and of 1 other parameter"),
        "{}",
        verdict.sentence
    );
    let silent = [conflict(3.9, 5.9, 30.0), conflict(30.0, 30.0, 2.9)];
    let diagnosis = diagnose(&beside(&silent));
    assert!(!kinds(&diagnosis).contains(&Kind::PriorConflict));
}

//! Runs on a ledger: what its file says against what was released.

use dpm::accounting::{
    Accountant, Budget, Event, Query, Relation, Request, Session, Terms, account,
};
use dpm::testing::privacy::{NotPrivate, PrivateRng};
use dpm::testing::sampler::{Initial, Iterations, PlanRequest, PrivateSettings, sample_privately};
use dpm::{Plan, Real};

use super::Broken;
use super::neighbours::{MEAN, loud_pair, model};
use super::samplers::Audited;

/// Three runs of DP-HMC on one ledger, which is then read as anybody would.
///
/// # Errors
///
/// A run is not in the file, or with fewer releases than the algorithm makes, or what is
/// said to be spent is less than the releases cost by the accountant.
pub fn file_covers_releases() -> Result<(), Broken> {
    let (chains, iterations, steps) = (2u64, 6u64, 3u64);
    // By the algorithm: a gradient per leapfrog step, and one to begin with; a ratio per
    // proposal. Steps are short, so none is refused on public grounds.
    let by_hand = [chains * (iterations * steps + 1), chains * iterations];
    let relation = Relation::Substitute;
    let plan = Plan::new(PlanRequest {
        relation,
        chains,
        iterations: Iterations::Fixed(iterations),
        epsilon: Real::from(1.0),
        settings: Audited::request(1)
            .settings
            .leapfrog_steps(steps)
            .step_size(0.01),
        ..Audited::request(1)
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let model = model(MEAN);
    let vault = loud_pair(&model, relation, 5).0.vault(&model);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("ledger");
    let delta: Real = "1e-6".parse().expect("a number");
    let budget = Budget::new(10.0, delta).expect("a budget");
    let terms = Terms::new(budget, relation, "record", Accountant::Gaussian).expect("terms");
    Session::create(&path, &terms).unwrap_or_else(|e| panic!("{e}"));
    let runs = 3;
    for run in 0..runs {
        // A process of its own each, as far as the ledger can tell.
        let session = Session::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let request = Request {
            run: "an attack",
            events: &plan.events,
            relation,
            unit: "record",
            part: None,
        };
        let reservation = session.reserve(&request).unwrap_or_else(|e| panic!("{e}"));
        let settings = PrivateSettings {
            initial: Initial::Points(vec![vec![0.0]]),
            ..PrivateSettings::new(0, 1, PrivateRng::insecure(run, NotPrivate::acknowledged()))
        };
        sample_privately(&vault, &plan, reservation.meter(), &settings, &())
            .unwrap_or_else(|e| panic!("{e}"));
        if reservation.meter().counts() != by_hand {
            return Err(Broken(format!(
                "the run made {by_hand:?} releases, and {:?} were charged",
                reservation.meter().counts()
            )));
        }
        // What a run whose reservation is not in the file says of its end is refused.
        reservation.complete().map_err(|e| Broken(e.to_string()))?;
    }
    let session = Session::open_with_history(&path).unwrap_or_else(|e| panic!("{e}"));
    let history = session.history().unwrap_or_else(|e| panic!("{e}"));
    let statement = session.statement().unwrap_or_else(|e| panic!("{e}"));
    if history.len() as u64 != runs {
        return Err(Broken(format!(
            "{runs} runs have released, and the ledger has {}",
            history.len()
        )));
    }
    for run in &history {
        if run.events != plan.events || run.released.as_deref() != Some(&by_hand[..]) {
            return Err(Broken(format!("entry {} is not the run's", run.entry)));
        }
    }
    let all: Vec<Event> = plan
        .events
        .iter()
        .map(|event| event.clone().times(event.count() * runs))
        .collect();
    let cost = account(&all, relation, Query::Epsilon { delta }).unwrap_or_else(|e| panic!("{e}"));
    if statement.spent < cost.epsilon {
        return Err(Broken(format!(
            "the releases cost epsilon {}, and the ledger says {}",
            cost.epsilon, statement.spent
        )));
    }
    Ok(())
}

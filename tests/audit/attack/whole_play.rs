//! Record-play through whole runs: a sampler asks, and each of its questions is put to both of
//! two neighbouring vaults, with identical randomness. It goes on with the answers of one of
//! them, so that points, coordinates, centres and clip bounds are those that real runs come to.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use dpm::accounting::{Meter, Relation};
use dpm::testing::privacy::{BatchPenaltyPlan, NotPrivate, PenaltyPlan, PrivateRng, penalty};
use dpm::testing::sampler::{
    Beginning, Initial, Iterations, Observer, Oracle, Oracles, PlanRequest, PrivateOracle,
    PrivateSettings, Ratio, Scale, View, lookup, sample_from, without_wide_directions,
};
use dpm::{Draw, Model, Plan, PlanError, Real, SampleError, Settings, Vault};

use super::neighbours::{Table, model, ugly_neighbours};
use super::samplers::Variant;
use super::{Broken, Lcg};

/// The findings of whole runs.
#[derive(Debug, Default)]
pub struct Played {
    pub runs: u64,
    /// Of the lines of all plans, by what they release.
    pub lines: BTreeMap<&'static str, Line>,
    /// Runs whose start led to chains, and to independent draws; none of samplers that learn
    /// nothing.
    pub forms: [u64; 2],
}

/// The findings of a line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Line {
    pub releases: u64,
    /// The largest distance of the neighbours' integer sums, as a share of the charged
    /// sensitivity.
    pub closest: f64,
    /// Releases whose integers cannot be read off the answers: far out, where the prior is so
    /// steep that they drown in it; and all of DP-Barker, the width of whose noise is a function
    /// of rows.
    pub unread: u64,
}

/// Plays `runs` runs of a sampler about ugly neighbours. `None` if it cannot be planned under
/// `relation`.
///
/// # Errors
///
/// Of the first run in which a unit moves a sum by more than is charged, an answer is off the
/// charged lattice, more or less is released than is charged, or charges differ.
pub fn play(
    way: &Variant,
    relation: Relation,
    shared_units: bool,
    runs: u64,
) -> Result<Option<Played>, Broken> {
    let mut rng = Lcg::new(29 + u64::from(shared_units));
    let mut played = Played::default();
    let models: Vec<_> = way.models().iter().map(|source| model(source)).collect();
    let mut plans: BTreeMap<(usize, u64), Vec<Plan>> = BTreeMap::new();
    for run in 0..runs {
        let at = run as usize % models.len();
        let model = &models[at];
        // With many, what the private start looks for rises above its noise.
        let turn = run / models.len() as u64 % 4;
        let others = if turn == 0 { 4 } else { 120 };
        let pair = ugly_neighbours(&mut rng, model, relation, shared_units, others, turn < 2);
        let units = pair.0.records();
        let plans = match plans.entry((at, units)) {
            std::collections::btree_map::Entry::Occupied(kept) => kept.into_mut(),
            std::collections::btree_map::Entry::Vacant(empty) => {
                match planned(way, relation, model, (units, shared_units)) {
                    Ok(plans) => empty.insert(plans),
                    Err(PlanError::Settings(_)) => return Ok(None),
                    Err(error) => {
                        return Err(Broken(format!("no plan of {}: {error}", way.algorithm)));
                    }
                }
            }
        };
        let plan = &plans[rng.below(plans.len())];
        one_run(plan, [pair.0, pair.1], model, run, &mut played)
            .map_err(|Broken(why)| Broken(format!("run {run} of {}: {why}", way.algorithm)))?;
        played.runs += 1;
    }
    Ok(Some(played))
}

/// Plans with little noise and with much, for few iterations and for many: with multipliers
/// where the sampler takes them, otherwise with what a budget comes to.
///
/// # Errors
///
/// There is none.
fn planned(
    way: &Variant,
    relation: Relation,
    model: &Model,
    (units, shared_units): (u64, bool),
) -> Result<Vec<Plan>, PlanError> {
    let algorithm = lookup(way.algorithm).expect("a sampler");
    let facts = algorithm
        .look(model, shared_units)
        .map_err(|error| PlanError::Settings(error.to_string()))?;
    let everywhere = facts.as_deref().and_then(without_wide_directions);
    let mut looked = vec![facts];
    looked.extend(everywhere.map(Some));
    let given = [0.5, 5.0, 100.0].map(|tau| (Some(tau), 1e4, 1e-6));
    let budgets =
        [(35.0, 0.5), (20.0, 0.1), (4.0, 0.1)].map(|(epsilon, delta)| (None, epsilon, delta));
    let mut refused = None;
    for noises in [given, budgets] {
        let mut plans = Vec::new();
        for (tau, epsilon, delta) in noises {
            for iterations in [2, 10] {
                let mut request = PlanRequest {
                    algorithm,
                    relation,
                    chains: 2,
                    iterations: Iterations::Fixed(iterations),
                    records: relation.n_is_public().then_some(units),
                    settings: Settings::new().leapfrog_steps(2),
                    ..PlanRequest::new(Real::from(epsilon), Real::from(delta), 1)
                };
                (way.adjust)(&mut request);
                request.iterations = Iterations::Fixed(iterations);
                // Clip bounds that many records pass, and short steps, so that chains stay where
                // records matter.
                request.settings.clip_gradient = Some(0.3.into());
                request.settings.clip_log_ratio = Some(0.3.into());
                request.settings.tau_gradient = tau;
                request.settings.tau_log_ratio = tau;
                request.settings.step_size = request.settings.step_size.map(|_| 0.01);
                request.settings.start_share = None;
                request.dimension = model.dimension as u64;
                request.records = request.records.map(|_| units);
                request.settings.batch_size =
                    request.settings.batch_size.map(|size| size.min(units));
                request.shared_units = shared_units;
                for facts in &looked {
                    let facts = facts.clone();
                    match Plan::new(PlanRequest {
                        facts,
                        ..request.clone()
                    }) {
                        Ok(plan) => plans.push(plan),
                        Err(error) => {
                            refused.get_or_insert(error);
                        }
                    }
                }
            }
        }
        if !plans.is_empty() {
            return Ok(plans);
        }
    }
    Err(refused.expect("an error"))
}

fn one_run(
    plan: &Plan,
    tables: [Table; 2],
    model: &Model,
    run: u64,
    played: &mut Played,
) -> Result<(), Broken> {
    let vaults = tables.map(|table| table.vault(model));
    let meters = [(); 2].map(|()| NotPrivate::acknowledged().meter(plan.events.clone()));
    let found = Mutex::new(Found {
        lines: vec![Line::default(); plan.lines.len()],
        broken: None,
    });
    let oracles = |stream: usize| -> Result<Box<dyn Oracle + '_>, SampleError> {
        Ok(Box::new(Twins::new(
            plan,
            [&vaults[0], &vaults[1]],
            [&meters[0], &meters[1]],
            &found,
            (run % 2) as usize,
            (run << 16) + ((stream as u64) << 8),
        )))
    };
    let oracles: &Oracles = &oracles;
    let settings = PrivateSettings {
        initial: Initial::Points(vec![vec![0.0; model.dimension]]),
        ..PrivateSettings::new(0, run, PrivateRng::insecure(0, NotPrivate::acknowledged()))
    };
    let ending = Ending {
        plan,
        seen: Mutex::new(None),
    };
    let density = vaults[0].density();
    let ended = sample_from(oracles, density, plan, &settings, &ending, None);
    let found = found.into_inner().expect("no chain has panicked");
    if let Some(broken) = found.broken {
        return Err(broken);
    }
    ended.map_err(|error| Broken(error.to_string()))?;
    let made: Vec<u64> = found.lines.iter().map(|line| line.releases).collect();
    for meter in &meters {
        if meter.counts() != made {
            return Err(Broken(format!(
                "{made:?} releases were made, and {:?} charged",
                meter.counts()
            )));
        }
    }
    if let Some(gaussian) = ending.seen.into_inner().expect("no chain has panicked") {
        played.forms[usize::from(gaussian)] += 1;
    }
    for (planned, found) in plan.lines.iter().zip(found.lines) {
        let line = played.lines.entry(planned.line.what).or_default();
        line.releases += found.releases;
        line.closest = line.closest.max(found.closest);
        line.unread += found.unread;
    }
    Ok(())
}

/// Of a run that learns: whether its draws are independent ones.
struct Ending<'a> {
    plan: &'a Plan,
    seen: Mutex<Option<bool>>,
}

impl Observer for Ending<'_> {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}

    fn learnt(&self, start: &Arc<dyn Beginning>) {
        *self.seen.lock().expect("no chain has panicked") =
            Some(start.draws_are_independent(self.plan));
    }
}

struct Found {
    /// Of each line of the plan.
    lines: Vec<Line>,
    broken: Option<Broken>,
}

/// Both neighbours, asked alike.
struct Twins<'a> {
    plan: &'a Plan,
    vaults: [&'a Vault; 2],
    meters: [&'a Meter; 2],
    oracles: [PrivateOracle<'a>; 2],
    /// Whose answers the sampler gets.
    side: usize,
    found: &'a Mutex<Found>,
    seed: u64,
}

/// The noise that a line is charged with, in the units of an answer.
struct Charged {
    sigma: f64,
    /// Spacing of the lattice.
    gamma: f64,
    /// Added to each coordinate, of whatever sign: it costs digits.
    added: Vec<f64>,
    /// Releases that an answer is the average of.
    times: u64,
}

impl<'a> Twins<'a> {
    fn new(
        plan: &'a Plan,
        vaults: [&'a Vault; 2],
        meters: [&'a Meter; 2],
        found: &'a Mutex<Found>,
        side: usize,
        seed: u64,
    ) -> Twins<'a> {
        let oracle = |i: usize| {
            let rng = PrivateRng::insecure(seed, NotPrivate::acknowledged());
            PrivateOracle::new(vaults[i], plan, meters[i], rng)
        };
        Twins {
            plan,
            vaults,
            meters,
            oracles: [oracle(0), oracle(1)],
            side,
            found,
            seed,
        }
    }

    /// Counts a question's releases.
    fn count(&self, line: usize, times: u64) {
        let mut found = self.found.lock().expect("no chain has panicked");
        found.lines[line].releases += times;
    }

    /// The line's event for a sum with unit clip bound: sigma, the lattice's spacing, and how far
    /// neighbours may be apart in units of sigma.
    fn event(&self, line: usize) -> (f64, f64, f64) {
        let release = self.plan.events[line]
            .release()
            .expect("a sum and its noise");
        let ratio = release.lattice().expect("a lattice").ratio().to_f64();
        let apart = (release.sensitivity() / release.sigma()).to_f64();
        (release.sigma().to_f64(), ratio, apart)
    }

    /// How far the answers are apart, as integers, against what is charged.
    fn compare(
        &self,
        line: usize,
        answers: [&[f64]; 2],
        charged: &Charged,
    ) -> Result<(), SampleError> {
        let times = charged.times as f64;
        let most = self.event(line).2 * charged.sigma / charged.gamma;
        let (mut square, mut rounding) = (0.0, 0.0f64);
        let mut broken = None;
        for (j, (a, b)) in answers[0].iter().zip(answers[1]).enumerate() {
            // The noise cancels, and what is left is `times` the difference of two integers,
            // but for a few roundings of either answer and of gamma.
            let apart = times * (a - b) / charged.gamma;
            let added = charged.added.get(j).map_or(0.0, |added| added.abs());
            let size = times * (a.abs() + b.abs() + 2.0 * added) / charged.gamma;
            let error = 2f64.powi(-50) * (size + apart.abs());
            if error < 0.1 && (apart - apart.round()).abs() > error {
                broken = Some(format!("answers are {apart} lattice units apart"));
            }
            let (steps, error) = if error < 0.1 {
                (apart.round() / times, 0.0)
            } else {
                (apart / times, error / times)
            };
            square += steps * steps;
            rounding += error;
        }
        let distance = f64::sqrt(square);
        let mut found = self.found.lock().expect("no chain has panicked");
        let seen = &mut found.lines[line];
        if rounding > 1e-6 * most {
            seen.unread += charged.times;
            return Ok(());
        }
        if distance.is_nan() || distance > most * (1.0 + 4.0 * f64::EPSILON) + rounding {
            broken = Some(format!(
                "one unit moves the sum by {distance} lattice units, and {most} are charged"
            ));
        }
        seen.closest = seen.closest.max(distance / most);
        let Some(why) = broken else {
            return Ok(());
        };
        let what = self.plan.lines[line].line.what;
        found.broken.get_or_insert(Broken(format!("{what}: {why}")));
        Err(SampleError::NotOurs)
    }
}

/// The same question to both.
fn both<T>(
    oracles: &mut [PrivateOracle; 2],
    ask: impl Fn(&mut PrivateOracle) -> Result<T, SampleError>,
) -> Result<[T; 2], SampleError> {
    let [one, other] = oracles;
    Ok([ask(one)?, ask(other)?])
}

fn one_of<T>([one, other]: [T; 2], side: usize) -> T {
    if side == 0 { one } else { other }
}

impl Oracle for Twins<'_> {
    fn dimension(&self) -> usize {
        self.oracles[0].dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.oracles[0].log_prior(theta)
    }

    fn prior_gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        self.oracles[0].prior_gradient(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let answers = both(&mut self.oracles, |oracle| oracle.gradient(line, theta))?;
        self.count(line, 1);
        let (sigma, ratio, _) = self.event(line);
        let request = &self.plan.request;
        let sigma = sigma * request.temperature * self.plan.lines[line].line.weight(request);
        let charged = Charged {
            sigma,
            gamma: sigma * ratio,
            added: self.prior_gradient(theta)?,
            times: 1,
        };
        self.compare(line, [&answers[0], &answers[1]], &charged)?;
        Ok(one_of(answers, self.side))
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let answers = both(&mut self.oracles, |oracle| oracle.log_ratio(line, from, to))?;
        let request = &self.plan.request;
        let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
        let distance = from.iter().zip(to).map(square).sum::<f64>().sqrt();
        let bound = request.clip_log_ratio() * distance;
        // Whether it was asked follows from public numbers.
        let charged = match self.plan.lines[line].scale {
            Scale::LogRatio(scale) => match scale.plan(request.temperature * bound)? {
                PenaltyPlan::Query(query) => Some(Charged {
                    sigma: query.sigma(),
                    gamma: 0.5f64.powi(penalty::J as i32),
                    added: vec![0.5 * query.sigma() * query.sigma()],
                    times: 1,
                }),
                PenaltyPlan::Skip | PenaltyPlan::Refuse => None,
            },
            Scale::BatchLogRatio(scale) => match scale.plan(bound)? {
                BatchPenaltyPlan::Query(query) => Some(Charged {
                    sigma: query.sigma(),
                    gamma: query.sigma() * scale.lattice_ratio(),
                    added: vec![0.5 * query.sigma() * query.sigma()],
                    times: 1,
                }),
                BatchPenaltyPlan::Skip | BatchPenaltyPlan::Refuse => None,
            },
            Scale::Gradient(_) | Scale::Barker(_) | Scale::Learnt(_) => {
                return Err(SampleError::NotPlanned { line });
            }
        };
        if let Some(charged) = charged {
            self.count(line, 1);
            let [Ratio::Penalised(a), Ratio::Penalised(b)] = answers else {
                return Err(SampleError::NotPlanned { line });
            };
            self.compare(line, [&[a], &[b]], &charged)?;
        }
        Ok(one_of(answers, self.side))
    }

    fn barker(
        &mut self,
        line: usize,
        from: &[f64],
        to: &[f64],
        prior_ratio: f64,
    ) -> Result<bool, SampleError> {
        let ask = |oracle: &mut PrivateOracle| oracle.barker(line, from, to, prior_ratio);
        let answers = both(&mut self.oracles, ask)?;
        self.count(line, 1);
        let mut found = self.found.lock().expect("no chain has panicked");
        found.lines[line].unread += 1;
        drop(found);
        // How much is drawn from the private generators depends on rows: new ones.
        let seed = self.seed + 1;
        let (vaults, meters) = (self.vaults, self.meters);
        *self = Twins::new(self.plan, vaults, meters, self.found, self.side, seed);
        Ok(one_of(answers, self.side))
    }

    fn learnt(&mut self, line: usize, view: &View) -> Result<Vec<f64>, SampleError> {
        self.learnt_often(line, view, NonZeroU64::MIN)
    }

    fn learnt_often(
        &mut self,
        line: usize,
        view: &View,
        times: NonZeroU64,
    ) -> Result<Vec<f64>, SampleError> {
        let ask = |oracle: &mut PrivateOracle| oracle.learnt_often(line, view, times);
        let answers = both(&mut self.oracles, ask)?;
        self.count(line, times.get());
        // The event is in units of the clip bound.
        let (sigma, ratio, _) = self.event(line);
        let charged = Charged {
            sigma: sigma * view.clip,
            gamma: sigma * view.clip * ratio,
            added: Vec::new(),
            times: times.get(),
        };
        self.compare(line, [&answers[0], &answers[1]], &charged)?;
        Ok(one_of(answers, self.side))
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        let both = self.oracles.each_mut();
        one_of(both.map(|oracle| oracle.accept(log_probability)), self.side)
    }

    fn released(&self) -> Vec<u64> {
        self.oracles[self.side].released()
    }
}

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::accounting::{Meter, Real};
use crate::density::Density;
use crate::model::{Constants, Model};
use crate::privacy::{OnBadRows, PrivateRng, Rows, Vault};
use crate::sampler::chain::draw::Phase;
use crate::sampler::chain::run::{Chain, ChainRunner, Observer, PrivateSettings, Recorder};
use crate::sampler::chain::warmup::Warmup;
use crate::sampler::contract::Reference;
use crate::sampler::contract::Walker;
use crate::sampler::contract::beginning::Beginning;
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::metric::MetricForm;
use crate::sampler::contract::oracle::{Oracle, Ratio, View};
use crate::sampler::random::public_rng;
use crate::sampler::{
    ALGORITHMS, Algorithm, Iterations, Kind, PlanRequest, Settings, sample_with_checkpoints,
};

const DIMENSION: usize = 3;
const ITERATIONS: u64 = 60;
const WARMUP: u64 = 40;
const WINDOW: u64 = 7;

/// Answers without noise, about a normal distribution of unequal scales and a mean. Its
/// random part is drawn from a generator that can be copied, as the vault's cannot.
#[derive(Clone)]
struct Answers {
    rng: ChaCha8Rng,
    released: Vec<u64>,
}

impl Answers {
    fn new(lines: usize) -> Answers {
        Answers {
            rng: ChaCha8Rng::seed_from_u64(8),
            released: vec![0; lines],
        }
    }

    fn log_density(theta: &[f64]) -> f64 {
        let term = |(i, x): (usize, &f64)| -0.5 * ((x - 0.3) / (1.0 + i as f64)).powi(2);
        theta.iter().enumerate().map(term).sum()
    }
}

impl Oracle for Answers {
    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        -0.2 * theta.iter().map(|x| x * x).sum::<f64>()
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        self.released[line] += 1;
        let slope = |(i, x): (usize, &f64)| {
            let noise: f64 = self.rng.random_range(-0.1..0.1);
            -(x - 0.3) / (1.0 + i as f64).powi(2) + noise
        };
        Ok(theta.iter().enumerate().map(slope).collect())
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        self.released[line] += 1;
        Ok(Ratio::Penalised(
            Self::log_density(to) - Self::log_density(from),
        ))
    }

    fn barker(
        &mut self,
        line: usize,
        from: &[f64],
        to: &[f64],
        prior: f64,
    ) -> Result<bool, SampleError> {
        self.released[line] += 1;
        let x = prior + Self::log_density(to) - Self::log_density(from);
        Ok(self.rng.random::<f64>() < 1.0 / (1.0 + (-x).exp()))
    }

    fn prior_gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        Ok(theta.iter().map(|x| -0.4 * x).collect())
    }

    fn learnt(&mut self, line: usize, view: &View) -> Result<Vec<f64>, SampleError> {
        self.gradient(line, view.point)
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>().ln() < log_probability
    }

    fn released(&self) -> Vec<u64> {
        self.released.clone()
    }

    fn count_from(&mut self, released: Vec<u64>) {
        self.released = released;
    }
}

/// Every private sampler, in every way that changes what it carries from one iteration to
/// the next.
fn ways() -> Vec<(&'static Algorithm, Plan)> {
    let mut ways = Vec::new();
    for algorithm in ALGORITHMS.iter().filter(|a| a.is_private()) {
        let records = 1_000_000;
        let request = PlanRequest {
            algorithm,
            chains: 1,
            iterations: Iterations::Fixed(ITERATIONS),
            records: Some(records),
            temperature: 1e-3,
            facts: algorithm.look(density().model(), false).unwrap(),
            settings: Settings::new().leapfrog_steps(3),
            ..PlanRequest::new(Real::from(20.0), Real::from(1e-3), DIMENSION)
        };
        let mut requests = vec![request.clone()];
        match algorithm.name {
            "dp-hmc" => requests.push(PlanRequest {
                settings: request.settings.clone().fresh_gradients(true),
                ..request
            }),
            "dp-penalty" => {
                requests.push(PlanRequest {
                    settings: request.settings.clone().one_component(true),
                    ..request.clone()
                });
                requests.push(PlanRequest {
                    settings: request.settings.clone().guided_walk(true),
                    ..request
                });
            }
            "dp-barker" | "dp-langevin" | "dp-laplace" | "dp-amagold" => {}
            // Steps that decay and are of a size for these scales.
            _ => {
                requests = [0.0, 0.5]
                    .map(|decay| PlanRequest {
                        settings: request.settings.clone().step_size(0.2).step_decay(decay),
                        ..request.clone()
                    })
                    .to_vec();
            }
        }
        for request in requests {
            let plan = Plan::new(request).unwrap_or_else(|e| panic!("{}: {e}", algorithm.name));
            ways.push((algorithm, plan));
        }
    }
    assert!(ways.len() >= 12);
    ways
}

fn density() -> Density {
    let model = Model::from_source(
        "record { real y; } parameters { vector[3] x; }
         model { x ~ normal(0, 5); y ~ normal(x[1] + x[2] + x[3], 1); }",
        &Constants::none(),
    );
    Density::new(model.unwrap())
}

/// The iterations that were made.
struct Counter(AtomicU64);

impl Observer for Counter {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keeps checkpoints as text, and refuses after a number of them.
struct Memory {
    kept: Mutex<Vec<String>>,
    room: usize,
}

impl Memory {
    fn new(room: usize) -> Memory {
        Memory {
            kept: Mutex::new(Vec::new()),
            room,
        }
    }

    fn begun(&self) -> Option<SavedChain> {
        let kept = self.kept.lock().unwrap();
        let read = |text: &String| serde_json::from_str(text).unwrap();
        SavedChain::of(kept.iter().map(read).collect())
    }
}

impl Keeper for Memory {
    fn keep(&self, _: usize, checkpoint: &Checkpoint) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap();
        if kept.len() == self.room {
            return Err(io::Error::other("full"));
        }
        kept.push(serde_json::to_string(checkpoint).unwrap());
        Ok(())
    }
}

fn warmup(plan: &Plan, sampler: &dyn Sampler, form: MetricForm) -> Warmup {
    let step = sampler.step_size(&plan.request);
    let target = plan.request.settled().target_acceptance;
    Warmup::new(WARMUP, DIMENSION, step, target, form)
}

fn sampler_of(plan: &Plan) -> &'static dyn Sampler {
    match plan.request.algorithm.kind {
        Kind::Private(sampler) => sampler,
        _ => panic!("a private sampler"),
    }
}

/// The learnt state of a run before its first round, where its chains follow from that alone.
fn learnt(plan: &Plan, density: &Density) -> Option<Box<dyn Beginning>> {
    let sampler = sampler_of(plan);
    let learner = sampler.learner()?;
    let begun = learner.begin(density, plan, &Initial::Random, 3).unwrap();
    (!begun.chains_ask(plan)).then_some(begun)
}

/// A chain before its first step.
fn walker<'a>(
    plan: &Plan,
    density: &'a Density,
    learnt: Option<&'a dyn Beginning>,
    theta: Vec<f64>,
    answers: &mut Answers,
    rng: &mut ChaCha8Rng,
) -> Box<dyn Walker + 'a> {
    let sampler = sampler_of(plan);
    match learnt {
        Some(learnt) => learnt.chain(density, plan, rng),
        None => sampler.chain(plan, theta, answers, rng),
    }
}

/// Runs a chain, from its beginning or from a saved state, up to an iteration.
fn run(
    plan: &Plan,
    answers: &mut Answers,
    density: &Density,
    keeper: Option<&Memory>,
    begun: Option<&SavedChain>,
    until: u64,
) -> Result<Chain, SampleError> {
    let sampler = sampler_of(plan);
    let mut rng = public_rng(3, 0);
    let (theta, learnt) = (vec![0.1; DIMENSION], learnt(plan, density));
    let learnt = learnt.as_deref();
    let mut walker = walker(plan, density, learnt, theta, answers, &mut rng);
    let counter = Counter(AtomicU64::new(0));
    let keeping = keeper.map(|keeper| Keeping {
        keeper,
        begun: Vec::new(),
        charge: None,
    });
    let mut course = ChainRunner {
        walker: walker.as_mut(),
        oracle: answers,
        density,
        warmup: warmup(plan, sampler, MetricForm::Dense),
        recorder: Recorder::new(0, WARMUP, &counter),
        keeping: keeping.as_ref(),
        names: Names::default(),
        releases: &|iterations| Ok(planned_releases(sampler, plan, iterations)?),
        window: WINDOW,
        at: 0,
    };
    if let Some(begun) = begun {
        course.go_on_from(begun, begun.released(plan)?, ITERATIONS, &mut rng)?;
    }
    let first = course.at;
    let stop = || first + counter.0.load(Ordering::Relaxed) >= until;
    course.run(ITERATIONS, &mut rng, &stop)
}

// If it failed: something that a sampler, warm-up, the recorder or the public generator
// carries from one iteration to the next would be missing from checkpoints, and a chain that
// was interrupted would differ from one that was not. With a dense metric, so that
// everything is learnt that can be.
#[test]
fn a_chain_that_was_stopped_anywhere_goes_on_as_if_it_had_not_been() {
    let density = density();
    for (algorithm, plan) in ways() {
        let mut answers = Answers::new(plan.lines.len());
        let whole = run(&plan, &mut answers, &density, None, None, ITERATIONS).unwrap();
        assert_eq!(whole.draws.len() as u64, ITERATIONS);
        let moved = whole
            .draws
            .windows(2)
            .filter(|d| d[0].values != d[1].values);
        assert!(moved.count() > 3, "{}: it hardly moves", algorithm.name);
        for at in 0..=ITERATIONS {
            let mut answers = Answers::new(plan.lines.len());
            let memory = Memory::new(usize::MAX);
            let first = run(&plan, &mut answers, &density, Some(&memory), None, at).unwrap();
            assert_eq!(
                (first.interrupted, first.draws.len() as u64),
                (at < ITERATIONS, at),
                "{}",
                algorithm.name
            );
            let begun = memory.begun().unwrap();
            assert_eq!((begun.last.done, begun.last.granted), (at, at));
            let second = run(
                &plan,
                &mut answers,
                &density,
                Some(&memory),
                Some(&begun),
                ITERATIONS,
            )
            .unwrap();
            assert!(second.draws == whole.draws, "{} at {at}", algorithm.name);
            assert_eq!(
                (second.acceptance, second.lost, second.interrupted),
                (whole.acceptance, 0, false)
            );
            assert!(memory.begun().unwrap().draws == whole.draws);
        }
    }
}

// Resetting any piece of a sampler's state to its initial value must change the chain: if it
// did not, the test above would not notice that the piece is missing.
#[test]
fn every_piece_of_a_samplers_state_is_needed() {
    let density = density();
    for (algorithm, plan) in ways() {
        let sampler = sampler_of(&plan);
        let mut answers = Answers::new(plan.lines.len());
        let mut rng = public_rng(3, 0);
        let learnt = learnt(&plan, &density);
        // Far out, so that the log prior differs at the end.
        let chain = |answers: &mut Answers, rng: &mut ChaCha8Rng| {
            let theta = vec![3.0; DIMENSION];
            walker(&plan, &density, learnt.as_deref(), theta, answers, rng)
        };
        let mut walker = chain(&mut answers, &mut rng);
        let fresh = walker.save();
        let mut warmup = warmup(&plan, sampler, MetricForm::Diagonal);
        for i in 0..400 {
            let step = walker.step(&mut answers, &mut rng).unwrap();
            if warmup.learn(i, walker.theta(), step.accept_stat) {
                walker.tune(warmup.step_size(), warmup.metric());
            }
        }
        let saved = walker.save();
        let path = |saved: &Value| -> Vec<Vec<f64>> {
            let (mut answers, mut rng) = (answers.clone(), rng.clone());
            let mut walker = chain(&mut answers.clone(), &mut rng.clone());
            walker.restore(saved).unwrap();
            (0..100)
                .map(|_| {
                    let step = walker.step(&mut answers, &mut rng).unwrap();
                    let mut row = walker.theta().to_vec();
                    row.push(step.step_size);
                    row.push(step.accept_stat);
                    row
                })
                .collect()
        };
        let right = path(&saved);
        for (key, value) in fresh.as_object().unwrap() {
            // The pieces that do not change for this kind of chain.
            let constant = match (algorithm.name, key.as_str()) {
                ("dp-penalty", "forward") => plan.request.settings.guided_walk != Some(true),
                (_, "iteration") => plan.request.settings.step_decay == Some(0.0),
                _ => false,
            };
            let mut wrong = saved.clone();
            wrong[key] = value.clone();
            assert_eq!(path(&wrong) == right, constant, "{} {key}", algorithm.name);
        }
    }
}

// Kills at every window, several times over. If it failed: a release would be made a second
// time on the same charge, a line would be asked more often than planned, or iterations would
// be neither made nor counted as lost.
#[test]
fn windows_that_were_open_at_a_kill_are_released_and_lost() {
    let density = density();
    for (algorithm, plan) in ways() {
        for kills in [[1, 1, 1], [1, 2, 3], [2, 5, 1], [8, 1, 1], [9, 1, 1]] {
            let mut made = vec![0; plan.lines.len()];
            let mut all = Vec::new();
            let (mut begun, mut lost) = (None, 0);
            for room in kills {
                let mut answers = Answers::new(plan.lines.len());
                let memory = Memory::new(room);
                // A window that the keeper refuses never begins, and the refused checkpoint held the
                // state at the end of the window before: it is as if the process had died in that.
                let result = run(
                    &plan,
                    &mut answers,
                    &density,
                    Some(&memory),
                    begun.as_ref(),
                    ITERATIONS,
                );
                let before = begun
                    .as_ref()
                    .map_or(vec![0; made.len()], |b: &SavedChain| {
                        b.released(&plan).unwrap()
                    });
                for (made, (now, before)) in
                    made.iter_mut().zip(answers.released.iter().zip(before))
                {
                    *made += now - before;
                }
                all.extend(memory.kept.into_inner().unwrap());
                let read = |text: &String| serde_json::from_str::<Checkpoint>(text).unwrap();
                begun = SavedChain::of(all.iter().map(read).collect());
                let b = begun.as_ref().unwrap();
                let counted = b.released(&plan).unwrap();
                for ((counted, made), line) in counted.iter().zip(&made).zip(&plan.lines) {
                    assert!(counted >= made, "{}: {counted} {made}", algorithm.name);
                    assert!(*counted <= line.line.count, "{}", algorithm.name);
                }
                Meter::resumed(plan.events.clone(), &counted).unwrap();
                assert!(b.last.granted - b.last.done <= WINDOW);
                lost = b.last.lost + b.last.granted - b.last.done;
                assert_eq!(b.draws.len() as u64 + lost, b.last.granted);
                if result.is_ok() {
                    assert_eq!(b.last.granted, ITERATIONS);
                }
            }
            let mut answers = Answers::new(plan.lines.len());
            let chain = run(
                &plan,
                &mut answers,
                &density,
                None,
                begun.as_ref(),
                ITERATIONS,
            );
            let chain = chain.unwrap();
            assert!(chain.lost >= lost && chain.lost <= lost + 1);
            assert_eq!(chain.draws.len() as u64 + chain.lost, ITERATIONS);
            for (released, line) in answers.released.iter().zip(&plan.lines) {
                assert!(*released <= line.line.count, "{}", algorithm.name);
            }
            let warm = chain.draws.iter().filter(|d| d.phase == Phase::Warmup);
            assert!(warm.count() as u64 <= WARMUP);
        }
    }
}

// If it failed: steps, and their noise, would be those of another line than the iteration's.
#[test]
fn lost_iterations_keep_their_lines() {
    let (_, plan) = ways()
        .into_iter()
        .find(|(a, plan)| a.name == "dp-sgld" && plan.request.settings.step_decay == Some(0.5))
        .unwrap();
    assert!(plan.lines.len() > 5);
    let sampler = sampler_of(&plan);
    let mut rng = public_rng(3, 0);
    let mut answers = Answers::new(plan.lines.len());
    let mut walker = sampler.chain(&plan, vec![0.1; DIMENSION], &mut answers, &mut rng);
    for _ in 0..5 {
        walker.step(&mut answers, &mut rng).unwrap();
    }
    walker.skip(12);
    for _ in 17..ITERATIONS {
        walker.step(&mut answers, &mut rng).unwrap();
    }
    let lost = planned_releases(sampler, &plan, 5..17).unwrap();
    let sum: Vec<u64> = lost
        .iter()
        .zip(&answers.released)
        .map(|(a, b)| a + b)
        .collect();
    let planned: Vec<u64> = plan.lines.iter().map(|line| line.line.count).collect();
    assert_eq!(sum, planned);
    assert_eq!(lost.iter().sum::<u64>(), 12);
}

// If it failed: warm-up that lost its last iterations would never end, or never settle.
#[test]
fn warm_up_ends_even_if_its_end_is_lost() {
    let mut warmup = Warmup::new(WARMUP, DIMENSION, 0.5, Some(0.5), MetricForm::Diagonal);
    for i in 0..30 {
        let theta = vec![i as f64, (i % 7) as f64, 0.1];
        assert!(warmup.learn(i, &theta, 0.9));
    }
    let before = warmup.learnt().clone();
    assert!(warmup.pass(30..45));
    assert_ne!(*warmup.learnt(), before);
    assert!(warmup.metric().deviation(0) > warmup.metric().deviation(2));
    let settled = warmup.step_size();
    assert!(!warmup.learn(45, &[0.0; DIMENSION], 0.1));
    assert!(!warmup.pass(45..50));
    assert_eq!(warmup.step_size(), settled);
}

// Without noise the reference samplers carry the same state.
#[test]
fn references_can_be_saved_too() {
    let way = ways().into_iter().find(|(a, _)| a.name == "dp-hmc");
    let (_, plan) = way.unwrap();
    let reference = ALGORITHMS.iter().find_map(|a| match a.kind {
        Kind::Clipped(reference) => Some(reference as &dyn Reference),
        _ => None,
    });
    let mut answers = Answers::new(2);
    let mut rng = public_rng(1, 0);
    let walker =
        reference
            .unwrap()
            .walker(&plan.request, vec![0.0; DIMENSION], &mut answers, &mut rng);
    let keys = |walker: &dyn Walker| {
        let saved = walker.save();
        let keys: Vec<String> = saved.as_object().unwrap().keys().cloned().collect();
        keys
    };
    assert_eq!(
        keys(walker.as_ref()),
        ["step_size", "metric", "jitter", "state"]
    );
}

/// Keeps the last checkpoint of each chain and of the start, and the largest sum of what
/// all of them granted.
struct Last {
    kept: Mutex<Vec<Option<Checkpoint>>>,
    most: Mutex<Vec<u64>>,
}

impl Keeper for Last {
    fn keep(&self, place: usize, checkpoint: &Checkpoint) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap();
        kept[place] = Some(checkpoint.clone());
        let mut most = self.most.lock().unwrap();
        for (line, most) in most.iter_mut().enumerate() {
            let all = kept.iter().flatten();
            *most = (*most).max(all.map(|c| c.grant.released[line]).sum());
        }
        Ok(())
    }
}

// If it failed: windows of draws from a Gaussian, which ask nothing, would count as releases, and
// the meter of a resumed run would refuse to begin, since the start has used them all; or a
// window of the start that was open at a kill would not be counted.
#[test]
fn draws_that_ask_nothing_lose_nothing() {
    let density = density();
    for algorithm in ["dp-langevin", "dp-laplace"] {
        let algorithm = crate::sampler::lookup(algorithm).unwrap();
        let request = PlanRequest {
            chains: 2,
            records: Some(50),
            iterations: Iterations::Fixed(ITERATIONS),
            algorithm,
            facts: algorithm.look(density.model(), false).unwrap(),
            ..PlanRequest::automatic(Real::from(1.0), Real::from(1e-6), DIMENSION)
        };
        draws_ask_and_lose_nothing(&Plan::new(request).unwrap());
    }
}

fn draws_ask_and_lose_nothing(plan: &Plan) {
    let density = density();
    let ys = (0..50).map(|i| f64::from(i % 7)).collect();
    let rows = Rows::from_columns(
        &density.model().columns,
        vec![("y".into(), ys)],
        OnBadRows::Error,
    );
    let vault = Vault::new(density, rows.unwrap()).unwrap();
    let settings = PrivateSettings::new(0, 1, PrivateRng::from_insecure_seed(1));
    let keeper = Last {
        kept: Mutex::new(vec![None; 3]),
        most: Mutex::new(vec![0; plan.lines.len()]),
    };
    let keeping = Keeping {
        keeper: &keeper,
        begun: Vec::new(),
        charge: None,
    };
    let meter = Meter::new(plan.events.clone());
    sample_with_checkpoints(&vault, plan, &meter, &settings, &(), Some(&keeping)).unwrap();
    let kept = keeper.kept.into_inner().unwrap();
    let of_start = kept[2].clone().unwrap();
    let sampler = sampler_of(plan);
    let learner = sampler.learner().unwrap();
    let start = learner
        .restore(&of_start.walker, vault.density(), plan)
        .unwrap();
    assert!(!start.chains_ask(plan));
    for chain in &kept[..2] {
        assert_eq!(
            chain.as_ref().unwrap().grant.released,
            vec![0; plan.lines.len()]
        );
    }
    // The sum of the grants never exceeds the plan, and covers all releases that were made.
    let (most, made) = (keeper.most.into_inner().unwrap(), meter.counts());
    for ((most, made), line) in most.iter().zip(&made).zip(&plan.lines) {
        assert!(made <= most && *most <= line.line.count);
    }
    assert_eq!(of_start.grant.released, made);
    let begun: Vec<_> = kept.into_iter().map(|c| SavedChain::of(vec![c?])).collect();
    let released = released_before(plan, &begun).unwrap();
    assert_eq!(released, meter.counts());
}

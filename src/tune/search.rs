//! Settings that are good on simulated records.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::TuneError;
use super::rehearsal::{Rehearsed, Target, rehearse};
use super::simulation::{Simulation, median};
use crate::privacy::Subsampling;
use crate::sampler::{
    Algorithm, Clip, Initial, Iterations, Kind, Line, Plan, PlanRequest, Question, Setting,
    Settings,
};

/// Shares of simulated records that a clip bound may clip.
const CLIPPED: [f64; 5] = [0.0, 0.002, 0.01, 0.05, 0.2];
/// Leapfrog steps that are tried.
const LEAPFROG_STEPS: [u64; 7] = [1, 2, 3, 5, 8, 12, 20];
/// Iterations per chain that are tried, logarithmically.
const ITERATIONS: [f64; 2] = [40.0, 2000.0];
/// Gradients and log-ratios of a chain that a rehearsal may take: about a second of work.
const MOST_WORK: u64 = 3000;
/// Settings that are worse than the best by this factor at one point are not tried at the others.
const HOPELESS: f64 = 1.5;
/// After this share of the tries, the best is varied.
const EXPLORING: f64 = 0.6;

/// The settings that the user has left open.
#[derive(Debug, Clone)]
pub struct Free {
    pub settings: Vec<Setting>,
    pub iterations: bool,
}

/// The settings that are searched.
const SEARCHED: [Setting; 5] = [
    Setting::leapfrog_steps,
    Setting::step_size,
    Setting::clip_gradient,
    Setting::clip_log_ratio,
    Setting::noise_split,
];

impl Free {
    /// The settings that a sampler has and that are not given.
    pub fn of(given: &Settings, algorithm: &Algorithm, iterations: bool) -> Free {
        let multipliers = [Setting::tau_gradient, Setting::tau_log_ratio];
        let from_budget = !multipliers.iter().any(|tau| given.has(*tau));
        let is_free = |setting: &Setting| {
            algorithm.has(*setting)
                && !given.has(*setting)
                && (from_budget || *setting != Setting::noise_split)
        };
        Free {
            settings: SEARCHED.into_iter().filter(is_free).collect(),
            iterations,
        }
    }

    fn has(&self, setting: Setting) -> bool {
        self.settings.contains(&setting)
    }
}

/// The target of the tuning, and the effort.
#[derive(Debug, Clone)]
pub struct Effort {
    /// n: how many records the run will have.
    pub records: u64,
    /// Where its chains start.
    pub initial: Initial,
    /// Settings to try.
    pub tries: usize,
    pub seed: u64,
}

/// The best settings that were found.
#[derive(Debug, Clone)]
pub struct Tuned {
    /// The plan of a run with them.
    pub plan: Plan,
    pub predicted: Rehearsed,
    /// How many settings were rehearsed.
    pub tried: usize,
}

/// One point of the search, on scales on which steps have the same meaning everywhere.
#[derive(Debug, Clone, Copy)]
struct Point {
    /// Position in [`CLIPPED`].
    clip: [usize; 2],
    /// log10 of the step over its first guess.
    step: f64,
    /// Position in [`LEAPFROG_STEPS`].
    leapfrog: usize,
    /// From 0 to 1 within [`ITERATIONS`].
    length: f64,
    split: f64,
}

impl Point {
    fn random(rng: &mut impl Rng) -> Point {
        Point {
            clip: [0, 1].map(|_| rng.random_range(0..CLIPPED.len())),
            step: rng.random_range(-1.5..1.0),
            leapfrog: rng.random_range(0..LEAPFROG_STEPS.len()),
            length: rng.random(),
            split: rng.random_range(0.15..0.85),
        }
    }

    fn near(&self, rng: &mut impl Rng) -> Point {
        let other = Point::random(rng);
        let mut moved = *self;
        // Two of the six, so that something changes where one of them is not free.
        for _ in 0..2 {
            match rng.random_range(0..6) {
                0 => moved.clip[0] = other.clip[0],
                1 => moved.clip[1] = other.clip[1],
                2 => moved.step += rng.random_range(-0.4..0.4),
                3 => moved.leapfrog = other.leapfrog,
                4 => moved.length = (moved.length + rng.random_range(-0.2..0.2)).clamp(0.0, 1.0),
                _ => moved.split = other.split,
            }
        }
        moved
    }
}

/// Tries settings on `simulation` and returns the best: random ones first, then variations of the
/// best. The same seed gives the same result.
///
/// `request` has the user's settings, and the budget. `progress` receives the number done and
/// the best MMD.
///
/// # Errors
///
/// A sampler that is not private or cannot be rehearsed; no settings that fit the budget;
/// a posterior of simulated records that cannot be sampled.
pub fn tune(
    simulation: &Simulation,
    request: &PlanRequest,
    free: &Free,
    effort: &Effort,
    mut progress: impl FnMut(usize, Option<f64>),
) -> Result<Tuned, TuneError> {
    check(request)?;
    let (n, tries, seed) = (effort.records, effort.tries, effort.seed);
    let search = Search {
        simulation,
        request,
        free,
        n,
    };
    let weight = |records: usize| n as f64 / records as f64;
    let targets = simulation
        .scenes
        .iter()
        .map(|scene| {
            Target::new(
                simulation,
                scene,
                weight(scene.records),
                request.temperature,
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut best: Option<(f64, Point, Tuned)> = None;
    let mut refused = None;
    let mut tried = 0;
    let from = (&effort.initial, seed);
    for k in 0..tries {
        let exploring = (k as f64) < EXPLORING * tries as f64;
        let point = match &best {
            Some((_, point, _)) if !exploring => point.near(&mut rng),
            _ => Point::random(&mut rng),
        };
        let plan = match search.plan(&point) {
            Ok(plan) => plan,
            Err(error) => {
                refused = Some(error);
                progress(k + 1, best.as_ref().map(|b| b.2.predicted.mmd));
                continue;
            }
        };
        tried += 1;
        let mut rehearsals: Vec<Rehearsed> = Vec::new();
        for (scene, target) in simulation.scenes.iter().zip(&targets) {
            let with = (&plan, weight(scene.records));
            rehearsals.push(rehearse(&simulation.density, scene, target, with, from)?);
            let so_far = mean(&rehearsals).score();
            if best
                .as_ref()
                .is_some_and(|(least, ..)| so_far > HOPELESS * least)
            {
                break;
            }
        }
        let predicted = mean(&rehearsals);
        let score = predicted.score();
        if best.as_ref().is_none_or(|(least, ..)| score < *least) {
            let tuned = Tuned {
                plan,
                predicted,
                tried,
            };
            best = Some((score, point, tuned));
        }
        progress(k + 1, best.as_ref().map(|b| b.2.predicted.mmd));
    }
    match (best, refused) {
        (Some((.., tuned)), _) => Ok(Tuned { tried, ..tuned }),
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(TuneError::NothingTried),
    }
}

/// Whether the sampler's questions can be answered on simulated records.
fn check(request: &PlanRequest) -> Result<(), TuneError> {
    let name = request.algorithm.name;
    let Kind::Private(sampler) = request.algorithm.kind else {
        return Err(TuneError::NotTuned(name));
    };
    let whole = |line: &Line| match line.question {
        Question::Gradient => true,
        Question::LogRatio => line.subsampling == Subsampling::All,
        Question::Barker | Question::Learnt(_) => false,
    };
    if sampler.lines(request, 1)?.iter().all(whole) {
        Ok(())
    } else {
        Err(TuneError::NotTuned(name))
    }
}

fn mean(rehearsals: &[Rehearsed]) -> Rehearsed {
    let mean_of = |figure: fn(&Rehearsed) -> f64| {
        rehearsals.iter().map(figure).sum::<f64>() / rehearsals.len() as f64
    };
    Rehearsed {
        mmd: mean_of(|r| r.mmd),
        mean_error: mean_of(|r| r.mean_error),
        acceptance: mean_of(|r| r.acceptance),
    }
}

struct Search<'a> {
    simulation: &'a Simulation,
    request: &'a PlanRequest,
    free: &'a Free,
    n: u64,
}

impl Search<'_> {
    /// The plan of a run with a point's settings.
    fn plan(&self, point: &Point) -> Result<Plan, crate::sampler::PlanError> {
        let mut request = self.request.clone();
        let free = self.free;
        let settings = &mut request.settings;
        if free.has(Setting::clip_gradient) {
            let bound = self.clip(CLIPPED[point.clip[0]], self.request.clip_gradient());
            settings.clip_gradient = Some(Clip::At(bound));
        }
        if free.has(Setting::clip_log_ratio) {
            let bound = self.clip(CLIPPED[point.clip[1]], self.request.clip_log_ratio());
            settings.clip_log_ratio = Some(Clip::At(bound));
        }
        if free.has(Setting::leapfrog_steps) {
            settings.leapfrog_steps = Some(LEAPFROG_STEPS[point.leapfrog]);
        }
        if free.has(Setting::noise_split) {
            settings.noise_split = Some(to_digits(point.split, 2));
        }
        if free.has(Setting::step_size) {
            let step = self.first_step(&request) * 10_f64.powf(point.step);
            request.settings.step_size = Some(to_digits(step, 4));
        }
        if free.iterations {
            let [low, high] = ITERATIONS.map(f64::ln);
            let wanted = (low + point.length * (high - low)).exp() as u64;
            let steps = Setting::leapfrog_steps;
            let work = if request.algorithm.has(steps) {
                request.leapfrog_steps() + 1
            } else {
                1
            };
            request.iterations = Iterations::Fixed(wanted.min(MOST_WORK / work).max(2));
        }
        Plan::new(request)
    }

    /// The bound that clips this share of simulated records, the median over points.
    fn clip(&self, share: f64, otherwise: f64) -> f64 {
        let scenes = self.simulation.scenes.iter();
        let bounds: Vec<f64> = scenes
            .filter_map(|scene| scene.gradient_quantile(share))
            .filter(|bound| *bound > 0.0)
            .collect();
        let bound = median(bounds).unwrap_or(otherwise);
        // Two digits are as good as ten, and easier to read.
        round_up(bound)
    }

    /// A rough guess of a good step: the narrowest posterior sd, or the sampler's guess from the
    /// clip bound.
    fn first_step(&self, request: &PlanRequest) -> f64 {
        let Kind::Private(sampler) = request.algorithm.kind else {
            return 1.0;
        };
        if !request.algorithm.has(Setting::target_acceptance) {
            let known = PlanRequest {
                records: Some(self.n),
                ..request.clone()
            };
            return sampler.default_step_size(&known);
        }
        let n = self.n as f64 * request.temperature;
        let narrowest = |scene: &super::simulation::Scene| {
            let scales = scene.scales(n);
            scales.into_iter().fold(f64::INFINITY, f64::min)
        };
        let scenes = self.simulation.scenes.iter().map(narrowest);
        let finite = scenes.filter(|s| s.is_finite() && *s > 0.0).collect();
        median(finite).unwrap_or_else(|| sampler.default_step_size(request))
    }
}

/// Rounds to this many significant digits, as shown to users.
fn to_digits(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits - 1).parse().unwrap_or(x)
}

/// To two significant digits.
fn round_up(x: f64) -> f64 {
    let unit = 10_f64.powf(x.log10().floor() - 1.0);
    (x / unit).ceil() * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::model::{Constants, Model};
    use crate::tune::Recipe;

    // If it failed: tuning would not be worthwhile, or would overrule the user. The default step is
    // hundreds of posterior sds long here, and the default clip bound 30 times what any record
    // reaches.
    #[test]
    fn tuning_beats_the_defaults_and_keeps_what_is_given() {
        let model = Model::from_source(
            "record { real y; } parameters { real mu; }
             model { mu ~ normal(0, 1); y ~ normal(mu, 30); }",
            &Constants::none(),
        )
        .unwrap();
        let recipe = Recipe {
            records: 60,
            public: None,
            seed: 1,
        };
        let simulation = Simulation::at_points(&model, vec![vec![0.3]], &recipe);
        let n = 1_000_000;
        let request = PlanRequest {
            chains: 2,
            iterations: Iterations::Fixed(150),
            records: Some(n),
            ..PlanRequest::new(Real::from(2.0), Real::from(1e-8), 1)
        };
        let all = Free::of(&Settings::new(), request.algorithm, false);
        let none = Free {
            settings: Vec::new(),
            iterations: false,
        };
        let effort = Effort {
            records: n,
            initial: Initial::Points(vec![vec![0.4]]),
            tries: 24,
            seed: 5,
        };
        let tuned_with = |free: &Free, tries| {
            let effort = Effort {
                tries,
                ..effort.clone()
            };
            tune(&simulation, &request, free, &effort, |_, _| ()).unwrap()
        };
        let defaults = tuned_with(&none, 1);
        let tuned = tuned_with(&all, 24);
        assert!(tuned.predicted.score() < 0.7 * defaults.predicted.score());
        let found = &tuned.plan.request;
        assert!(found.clip_gradient() < 0.5 && found.clip_gradient() > 0.01);
        assert_eq!(found.clip_gradient(), round_up(found.clip_gradient()));
        assert_eq!(tuned.plan.iterations_per_chain, 150);
        assert!(tuned.plan.epsilon() <= 2.0);
        assert_eq!(defaults.plan.request.settings, request.settings);
        let again = tuned_with(&all, 24);
        assert_eq!(again.predicted, tuned.predicted);
    }

    #[test]
    fn two_digits_are_kept_and_never_rounded_down() {
        for (x, rounded) in [(0.123, 0.13), (1.0, 1.0), (987.0, 990.0), (2.5e-7, 2.5e-7)] {
            let ratio: f64 = round_up(x) / rounded;
            assert!((ratio - 1.0).abs() < 1e-9, "{x}: {}", round_up(x));
        }
    }
}

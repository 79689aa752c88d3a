//! DP-Langevin: kinetic Langevin dynamics whose heat is the noise of the privacy, in
//! coordinates learnt by a start that is paid from the budget. It tunes itself.
//!
//! With theta = c + A u of the [`start`], in which the posterior is about a
//! standard normal, per iteration:
//!
//! ```text
//! u += h p/2
//! p  = a p + (1 + a)/2 h (T sum clip(A' grad l_i) + A' grad q + noise) + xi
//! u += h p/2
//! ```
//!
//! several times for each draw (three, or as many as [`Learner::travel`] recommends), with
//! a = exp(-gamma h), gamma the friction, q the log prior with its Jacobian. It is the
//! splitting of Leimkuhler and Matthews ("Molecular Dynamics", 2015, chapter 7) of friction and
//! noise around the kick, with the drift in two halves around both. The noise of the release,
//! of standard deviation s on each coordinate, is part of the noise that the dynamics need: the
//! step h is the one at which ((1 + a)/2 h s)^2 = 1 - a^2, at most [`LARGEST_STEP`], where public
//! noise xi makes up for what is missing. So nothing is rejected and no noise is wasted.
//!
//! For a given budget s^2 is proportional to the number of gradients, and h, for small h, to
//! 1/s^2: the time that the chains travel is the same for any number of iterations. More
//! iterations make steps smaller and draws denser; the budget decides how well the posterior is
//! explored. Kicks are at most [`LARGEST_KICK`] per coordinate, so that the chain is not thrown
//! out where the posterior is much narrower than the coordinates suggest.
//!
//! # Cost
//!
//! The start's releases, then those gradients of all records for each iteration of each chain.
//! All are Gaussian with noise in a fixed proportion to a clip bound from earlier releases.
//!
//! # What it leaves invariant
//!
//! As h goes to 0, the posterior of the clipped likelihood; the clip bound balances the clipped
//! records against the noise ([`start`](crate::sampler::langevin::start)). Measured on a standard
//! normal (`tests`): at h = 0.2 the variance is within 2% of the exact one.
//!
//! # Where the budget is too small
//!
//! A chain that travels for less than the time in which it forgets where it was is worth one draw.
//! The releases planned for chains then continue the search, and draws are independent ones from
//! the Gaussian that it finds ([`gaussian`](crate::sampler::langevin::gaussian)).

mod gaussian;
mod information;
mod lengths;
mod start;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::density::{Density, Frame};
use crate::privacy::{Statistic, Subsampling};
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::beginning::{Beginning, Learner, Travel};
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError, View};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};
use crate::sampler::random::normals;
use crate::sampler::stochastic::{all_finite, followed, moved};
use start::Start;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-langevin",
    summary: "kinetic Langevin dynamics in coordinates learnt from a part of the budget; needs no tuning; approximate",
    kind: Kind::Private(&DpLangevin),
    columns: &[],
    settings: &[
        Setting::start_share.or(Unset::Number(0.4)),
        Setting::gradients_per_draw.or(Unset::Told(
            "chosen on records simulated from the model; {} under add-remove",
            3.0,
        )),
    ],
};

/// gamma, per unit of time in which the posterior is about a standard normal.
const FRICTION: f64 = 2.0;
/// The largest h.
const LARGEST_STEP: f64 = 0.2;
/// The largest number of gradients from one draw to the next that is chosen by itself.
const MOST_GRADIENTS: u64 = 6;
/// The longest kick of one step in each coordinate, in sds of the momentum.
const LARGEST_KICK: f64 = 2.0;
/// The line of the chains' gradients.
const GRADIENTS: usize = start::LINES;

#[derive(Debug)]
struct DpLangevin;

impl Sampler for DpLangevin {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        start::check(request)?;
        let mut lines = start::lines(request, request.start_share());
        lines.push(Line {
            what: "gradient, in learnt coordinates",
            question: Question::Learnt(Statistic::Gradient),
            noise: Noise::Share(1.0 - request.start_share()),
            count: over_chains(
                iterations.checked_mul(request.gradients_per_draw()),
                request.chains,
            )?,
            subsampling: Subsampling::All,
        });
        Ok(lines)
    }

    /// Whether there are enough records, as far as this is foreseeable before any release.
    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let Some(n) = plan.request.records else {
            return Vec::new();
        };
        let time = time(plan, start::usual_clip(&plan.request, n as f64));
        if time >= start::ENOUGH_TIME {
            return Vec::new();
        }
        vec![format!(
            "{n} records are likely to be too few for chains at this budget with {} parameters: with gradients of typical length, each would run for {time:.1} autocorrelation times, and should run for {:.0}. If this proves true, the draws will come from a Gaussian. More records, more epsilon or `temperature` would help",
            plan.request.dimension,
            start::ENOUGH_TIME,
        )]
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        LARGEST_STEP
    }

    fn learner(&self) -> Option<&dyn Learner> {
        Some(self)
    }

    /// A chain that has learnt nothing; in a run, chains come from the start.
    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let d = theta.len();
        Box::new(LangevinWalker::new(
            plan,
            Frame::about(theta),
            1.0,
            vec![0.0; d],
            rng,
        ))
    }
}

impl Learner for DpLangevin {
    fn lines(&self, _: &Plan) -> usize {
        start::LINES
    }

    fn clipping(&self, _: &Plan) -> &'static str {
        "Records are clipped at bounds that follow from earlier releases of the run, in coordinates that follow from them as well; the number of clipped records is private, and is meant to be about two in a thousand. The target is the clipped posterior."
    }

    fn travels(&self) -> bool {
        true
    }

    fn travel(&self, plan: &Plan, lengths: Vec<f64>, n: f64) -> Option<Travel> {
        let clip = foreseen_clip(plan, lengths, n)?;
        Some(Travel {
            time: time(plan, clip),
            gradients_per_draw: gradients_wanted(plan, clip),
        })
    }

    fn begin(
        &self,
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        Ok(Box::new(Start::new(density, plan, initial, seed)?))
    }

    fn restore(
        &self,
        saved: &Value,
        density: &Density,
        _: &Plan,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        Ok(Box::new(Start::restore(saved, density.dimension())?))
    }
}

/// A chain with what was learnt, before its first step.
pub(crate) fn chain(plan: &Plan, learnt: &Start, rng: &mut ChaCha8Rng) -> Box<dyn Walker> {
    if learnt.is_gaussian(plan) {
        return Box::new(gaussian::Draws::new(learnt));
    }
    let frame = learnt.frame().clone();
    let u = normals(frame.dimension(), rng);
    Box::new(LangevinWalker::new(plan, frame, learnt.clip(), u, rng))
}

/// The time that a chain travels with this clip bound, in units in which the posterior is about a
/// standard normal and a chain forgets where it was in about one.
pub(crate) fn time(plan: &Plan, clip: f64) -> f64 {
    let gradients = plan.iterations_per_chain * plan.request.gradients_per_draw();
    Dynamics::new(noise(plan, clip)).h * gradients as f64
}

/// The number of gradients that there should be from one draw to the next: the smallest that uses
/// the budget with steps of half the largest.
///
/// For any number of gradients K with noise s, the budget allows a chain the same time,
/// 2 gamma K / s^2. Fewer are faster; with so few that steps would be longer than the largest,
/// some of the time is not used.
fn gradients_wanted(plan: &Plan, clip: f64) -> u64 {
    let iterations = plan.iterations_per_chain.max(1) as f64;
    let gradients = iterations * plan.request.gradients_per_draw() as f64;
    let longest = 2.0 * FRICTION * gradients / noise(plan, clip).powi(2);
    let wanted = (longest / iterations / (0.5 * LARGEST_STEP)).ceil();
    (wanted as u64).clamp(1, MOST_GRADIENTS)
}

/// The forecast of the chains' clip bound.
fn foreseen_clip(plan: &Plan, mut lengths: Vec<f64>, n: f64) -> Option<f64> {
    lengths.sort_by(f64::total_cmp);
    let clipped = (start::clipped_by_chains(plan) / n).min(1.0);
    let at = ((1.0 - clipped) * lengths.len() as f64).ceil() as usize;
    let longest = lengths.get(at.saturating_sub(1))?;
    let counted = plan.request.temperature * n;
    Some(longest / counted.sqrt())
}

/// Standard deviation of the noise of the tempered gradient.
fn noise(plan: &Plan, clip: f64) -> f64 {
    plan.request.temperature * clip * start::noise(plan, GRADIENTS)
}

/// The step for a given noise.
#[derive(Debug, Clone, Copy)]
struct Dynamics {
    h: f64,
    /// The share of the momentum that is kept.
    a: f64,
    /// Standard deviation of xi.
    extra: f64,
}

impl Dynamics {
    fn new(noise: f64) -> Dynamics {
        let kept = |h: f64| (-FRICTION * h).exp();
        // The variance that the dynamics need, less that of the release's noise.
        let missing = |h: f64| {
            let a = kept(h);
            1.0 - a * a - (0.5 * (1.0 + a) * h * noise).powi(2)
        };
        let mut h = LARGEST_STEP;
        if missing(h) < 0.0 {
            let (mut low, mut high) = (0.0, LARGEST_STEP);
            for _ in 0..200 {
                h = 0.5 * (low + high);
                if missing(h) >= 0.0 {
                    low = h;
                } else {
                    high = h;
                }
            }
            h = low;
        }
        Dynamics {
            h,
            a: kept(h),
            extra: missing(h).max(0.0).sqrt(),
        }
    }
}

struct LangevinWalker {
    frame: Frame,
    clip: f64,
    temperature: f64,
    gradients_per_draw: u64,
    dynamics: Dynamics,
    state: State,
    /// The parameters at u.
    theta: Vec<f64>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(with = "exact_number::list")]
    u: Vec<f64>,
    #[serde(with = "exact_number::list")]
    p: Vec<f64>,
}

impl LangevinWalker {
    fn new(
        plan: &Plan,
        frame: Frame,
        clip: f64,
        u: Vec<f64>,
        rng: &mut ChaCha8Rng,
    ) -> LangevinWalker {
        LangevinWalker {
            dynamics: Dynamics::new(noise(plan, clip)),
            temperature: plan.request.temperature,
            gradients_per_draw: plan.request.gradients_per_draw(),
            theta: frame.point(&u),
            state: State {
                p: normals(u.len(), rng),
                u,
            },
            frame,
            clip,
        }
    }

    /// The noisy gradient of the log posterior at u, in the frame's coordinates.
    fn gradient(&self, u: &[f64], oracle: &mut dyn Oracle) -> Result<Vec<f64>, SampleError> {
        let theta = self.frame.point(u);
        let likelihood = oracle.learnt(
            GRADIENTS,
            &View::of_parameters(&theta, &self.frame, self.clip),
        )?;
        let prior = self.frame.pull_back(&oracle.prior_gradient(&theta)?);
        Ok(moved(&prior, self.temperature, &likelihood))
    }
}

impl Walker for LangevinWalker {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let mut last = followed(true, self.dynamics.h, Vec::new());
        for _ in 0..self.gradients_per_draw {
            last = self.kick(oracle, rng)?;
        }
        Ok(last)
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// Everything was learnt before the chains.
    fn tune(&mut self, _: f64, _: &Metric) {}

    fn save(&self) -> Value {
        written(&self.state)
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let state: State = read(saved)?;
        let d = self.frame.dimension();
        if state.u.len() != d || state.p.len() != d {
            return Err(SampleError::Unreadable);
        }
        self.theta = self.frame.point(&state.u);
        self.state = state;
        Ok(())
    }
}

impl LangevinWalker {
    fn kick(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let Dynamics { h, a, extra } = self.dynamics;
        let middle = moved(&self.state.u, 0.5 * h, &self.state.p);
        let mut gradient = self.gradient(&middle, oracle)?;
        let most = LARGEST_KICK * (middle.len() as f64).sqrt();
        let kick = h * gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if kick > most {
            for g in &mut gradient {
                *g *= most / kick;
            }
        }
        let xi = normals(middle.len(), rng);
        let p: Vec<f64> = (0..middle.len())
            .map(|j| a * self.state.p[j] + 0.5 * (1.0 + a) * h * gradient[j] + extra * xi[j])
            .collect();
        let u = moved(&middle, 0.5 * h, &p);
        let theta = self.frame.point(&u);
        // Where the prior is not finite the chain turns back.
        let finite = all_finite(&theta) && oracle.log_prior(&theta).is_finite();
        if finite {
            self.state = State { u, p };
            self.theta = theta;
        } else {
            self.state.p = normals(self.state.p.len(), rng);
        }
        Ok(followed(finite, h, Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use crate::sampler::contract::settings::Settings;
    use rand::SeedableRng;

    use super::*;
    use crate::accounting::Real;
    use crate::sampler::contract::oracle::Ratio;
    use crate::sampler::contract::request::Iterations;

    /// A posterior that is standard normal in the frame's coordinates, with the noise that the
    /// plan has, or a multiple of it.
    struct Normal {
        sd: f64,
        frame: Frame,
        rng: ChaCha8Rng,
    }

    impl Oracle for Normal {
        fn dimension(&self) -> usize {
            2
        }

        fn log_prior(&mut self, _: &[f64]) -> f64 {
            0.0
        }

        fn prior_gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
            Ok(vec![0.0; theta.len()])
        }

        fn gradient(&mut self, line: usize, _: &[f64]) -> Result<Vec<f64>, SampleError> {
            Err(SampleError::NotPlanned { line })
        }

        fn log_ratio(&mut self, line: usize, _: &[f64], _: &[f64]) -> Result<Ratio, SampleError> {
            Err(SampleError::NotPlanned { line })
        }

        fn accept(&mut self, _: f64) -> bool {
            false
        }

        /// Of -|theta - c|^2/8: u = (theta - c)/2, with the axes 2 I.
        fn learnt(&mut self, line: usize, view: &View) -> Result<Vec<f64>, SampleError> {
            assert_eq!(line, GRADIENTS);
            let pairs = view.point.iter().zip(self.frame.centre());
            let slope: Vec<f64> = pairs.map(|(t, c)| -(t - c) / 4.0).collect();
            let noise = normals(2, &mut self.rng);
            Ok(moved(&self.frame.pull_back(&slope), self.sd, &noise))
        }
    }

    /// Mean square of u over a long chain, where the release's noise has this sd, and `times`
    /// as much as the dynamics know of.
    fn variance(sd: f64, times: f64) -> f64 {
        let k = 60_000;
        let request = PlanRequest {
            algorithm: &ALGORITHM,
            chains: 1,
            iterations: Iterations::Fixed(k),
            records: Some(1000),
            ..PlanRequest::new(Real::from(5.0), Real::from(1e-6), 2)
        };
        let plan = Plan::new(request).unwrap();
        let clip = sd / noise(&plan, 1.0);
        let frame = Frame::about(vec![1.0, -3.0]).refined(&[0.0, 0.0], &[2.0, 0.0, 0.0, 2.0]);
        let mut oracle = Normal {
            sd: times * noise(&plan, clip),
            frame: frame.clone(),
            rng: ChaCha8Rng::seed_from_u64(3),
        };
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut chain = LangevinWalker::new(&plan, frame, clip, vec![0.0, 0.0], &mut rng);
        let mut sum = 0.0;
        for _ in 0..k {
            chain.step(&mut oracle, &mut rng).unwrap();
            sum += chain.state.u.iter().map(|u| u * u).sum::<f64>() / 2.0;
        }
        sum / k as f64
    }

    /// With h = 0.2 a chain of 60,000 iterations travels for 36,000 units of time, and squares
    /// of two coordinates forget in about one: the standard error is about 0.012, and 0.06 is
    /// five of them (false alarms 6e-7; the seed is fixed). Friction with the wrong sign or
    /// noise counted twice would be off by 0.3 and more; noise of 1.5 times the sd is seen.
    #[test]
    fn a_standard_normal_is_left_invariant() {
        // All the heat is public; half of it is; none.
        for sd in [1e-6, 3.1, 4.4] {
            let found = variance(sd, 1.0);

            assert!((found - 1.0).abs() < 0.06, "{sd}: {found}");
        }
        let heated = variance(4.4, 1.5);
        assert!(heated > 1.3, "{heated}");
    }

    /// A plan says beforehand that records are too few, and nothing where they are private.
    #[test]
    fn too_few_records_are_warned_of() {
        let warnings = |records, epsilon: f64| {
            let request = PlanRequest {
                records,
                algorithm: &ALGORITHM,
                ..PlanRequest::automatic(Real::from(epsilon), Real::from(1e-6), 7)
            };
            Plan::new(request).unwrap().warnings
        };
        let few = warnings(Some(3000), 1.0).concat();
        assert!(
            few.contains("3000 records are likely to be too few"),
            "{few}"
        );
        assert_eq!(warnings(Some(300_000), 1.0), [""; 0]);
        assert_eq!(warnings(Some(3000), 30.0), [""; 0]);
        assert_eq!(warnings(None, 1.0), [""; 0]);
    }

    /// As many gradients for each draw as let steps of 0.1 fill the time that the budget allows,
    /// whatever their number was in the plan that is asked. Oracle: that time in a plan whose steps
    /// are all below the largest.
    #[test]
    fn gradients_are_as_many_as_use_the_budget() {
        let n = 100_000.0;
        let plan = |epsilon: f64, gradients_per_draw| {
            let request = PlanRequest {
                records: Some(n as u64),
                algorithm: &ALGORITHM,
                settings: Settings::new().gradients_per_draw(gradients_per_draw),
                ..PlanRequest::automatic(Real::from(epsilon), Real::from(1e-6), 3)
            };
            Plan::new(request).unwrap()
        };
        let lengths = || vec![3.0; 100];
        let mut seen = Vec::new();
        for epsilon in [0.1, 0.5, 1.0, 1.5, 2.0, 30.0] {
            let small_steps = plan(epsilon, 100);
            let time = DpLangevin.travel(&small_steps, lengths(), n).unwrap().time;
            let filled = time / (small_steps.iterations_per_chain as f64 * 0.1);
            for asked in [1, 3, 6] {
                let travel = DpLangevin.travel(&plan(epsilon, asked), lengths(), n);
                let wanted = travel.unwrap().gradients_per_draw;
                // For small steps the time is a few hundredths longer than the formula's.
                let (least, most) = ((0.9 * filled).ceil(), (1.1 * filled).ceil());
                let expected = least.clamp(1.0, 6.0)..=most.clamp(1.0, 6.0);
                assert!(
                    expected.contains(&(wanted as f64)),
                    "{epsilon} {asked} {filled} {wanted}"
                );
                seen.push(wanted);
            }
        }
        assert!(seen.contains(&1) && seen.contains(&6) && seen.iter().any(|k| (2..6).contains(k)));
        assert_eq!(DpLangevin.travel(&plan(1.0, 3), Vec::new(), n), None);
    }

    #[test]
    fn the_step_makes_heat_and_friction_balance() {
        for s in [0.0, 1.0, 10.0, 1e3, 1e6] {
            let Dynamics { h, a, extra } = Dynamics::new(s);
            let heat = (0.5 * (1.0 + a) * h * s).powi(2) + extra * extra;
            assert!((heat - (1.0 - a * a)).abs() < 1e-9 * (1.0 - a * a) + 1e-15);
            assert!(h > 0.0 && h <= LARGEST_STEP);
            assert!(extra == 0.0 || h == LARGEST_STEP || extra < 1e-6);
        }
    }
}

//! The chains: kinetic Langevin dynamics in learnt coordinates.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::density::Frame;
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError, View};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::{Step, Walker};
use crate::sampler::langevin::search;
use crate::sampler::random::normals;
use crate::sampler::stochastic::{all_finite, followed, moved};

/// gamma, per unit of time in which the posterior is about a standard normal.
const FRICTION: f64 = 2.0;
/// The largest h.
pub(super) const LARGEST_STEP: f64 = 0.2;
/// The largest number of gradients from one draw to the next that is chosen by itself.
const MOST_GRADIENTS: u64 = 6;
/// The longest kick of one step in each coordinate, in sds of the momentum.
const LARGEST_KICK: f64 = 2.0;
/// The line of the chains' gradients.
const GRADIENTS: usize = search::LINES;

/// The time that a chain travels with this clip bound, in units in which the posterior is about a
/// standard normal and a chain forgets where it was in about one.
pub(super) fn time(plan: &Plan, clip: f64) -> f64 {
    let gradients = plan.iterations_per_chain * plan.request.gradients_per_draw();
    Dynamics::new(noise(plan, clip)).h * gradients as f64
}

/// The number of gradients that there should be from one draw to the next: the smallest that uses
/// the budget with steps of half the largest.
///
/// For any number of gradients K with noise s, the budget allows a chain the same time,
/// 2 gamma K / s^2. Fewer are faster; with so few that steps would be longer than the largest,
/// some of the time is not used.
pub(super) fn gradients_wanted(plan: &Plan, clip: f64) -> u64 {
    let iterations = plan.iterations_per_chain.max(1) as f64;
    let gradients = iterations * plan.request.gradients_per_draw() as f64;
    let longest = 2.0 * FRICTION * gradients / noise(plan, clip).powi(2);
    let wanted = (longest / iterations / (0.5 * LARGEST_STEP)).ceil();
    (wanted as u64).clamp(1, MOST_GRADIENTS)
}

/// The forecast of the chains' clip bound.
pub(super) fn foreseen_clip(plan: &Plan, mut lengths: Vec<f64>, n: f64) -> Option<f64> {
    lengths.sort_by(f64::total_cmp);
    let clipped = (search::clipped_by_chains(plan) / n).min(1.0);
    let at = ((1.0 - clipped) * lengths.len() as f64).ceil() as usize;
    let longest = lengths.get(at.saturating_sub(1))?;
    let counted = plan.request.temperature * n;
    Some(longest / counted.sqrt())
}

/// Standard deviation of the noise of the tempered gradient.
fn noise(plan: &Plan, clip: f64) -> f64 {
    plan.request.temperature * clip * search::noise(plan, GRADIENTS)
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

pub(super) struct LangevinWalker {
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
    pub fn new(
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
    use rand::SeedableRng;

    use super::*;
    use crate::accounting::Real;
    use crate::sampler::contract::oracle::Ratio;
    use crate::sampler::contract::request::{Iterations, PlanRequest};
    use crate::sampler::langevin::ALGORITHM;

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

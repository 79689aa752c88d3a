//! Draws from prior times released likelihood, which cost no privacy: the no-U-turn sampler. The
//! likelihood is normal in the numbers that [`Bend`] makes of the parameters.
//!
//! Where the likelihood is normal in numbers that are a curved function of the parameters, and as
//! many as these, trajectories follow the curve slowly. Each is then followed by a jump: a draw of
//! these numbers from the likelihood, converted to parameters by Newton's method, and accepted as
//! in Metropolis-Hastings with the ratio of prior over |det dy/dtheta|.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bend::Bend;
use super::search::Likelihood;
use crate::density::Density;
use crate::linear::{Matrix, dot, length};
use crate::sampler::chain::adaptation::DualAveraging;
use crate::sampler::chain::checkpoint::read;
use crate::sampler::contract::form::Form;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::{Step, Walker};
use crate::sampler::hamiltonian::nuts::{self, DEFAULT_MAX_DEPTH};
use crate::sampler::hamiltonian::{Info, State, Target};
use crate::sampler::peak::peak;
use crate::sampler::random::normals;

/// Newton's method from y to the parameters: the largest number of steps, the distance at which it
/// has converged, and that at which two points count as the same.
const NEWTON_STEPS: usize = 30;
const FOUND: f64 = 1e-12;
const SAME: f64 = 1e-6;
/// The numbers of iterations of a short chain.
const WARM_UP: usize = 60;
const DRAWS: usize = 200;
/// The density of the draws: that of the parameters, unconstrained scale.
pub(super) struct Posterior<'a> {
    pub density: &'a Density,
    pub form: &'a Form,
    pub likelihood: Likelihood,
    pub bend: &'a Bend,
}

impl Target for Posterior<'_> {
    fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let Likelihood {
            origin,
            root,
            precision,
        } = &self.likelihood;
        let point = self.density.point_of(&self.form.space, theta);
        let (bent, slopes) = self.bend.at(&point);
        let moved: Vec<f64> = bent.iter().zip(origin).map(|(w, o)| w - o).collect();
        let off: Vec<f64> = (self.form.lift.times(&moved).iter().zip(root))
            .map(|(y, r)| y - r)
            .collect();
        let pull = precision.times(&off);
        let log_likelihood = -0.5 * dot(&pull, &off);
        let slope: Vec<f64> = (self.form.lift.transposed().times(&pull).iter())
            .zip(slopes)
            .map(|(x, slope)| -x * slope)
            .collect();
        let (log_prior, gradient) = self
            .density
            .pull_back_point(&self.form.space, theta, &slope);
        (log_prior + log_likelihood, gradient)
    }
}

impl<'a> Posterior<'a> {
    /// A chain that begins at a draw from the normal distribution about the point of highest
    /// density.
    pub fn chain(self, start: Vec<f64>, rng: &mut ChaCha8Rng) -> Nuts<'a> {
        let target = self;
        let (mode, covariance) = peak(|theta| target.log_density(theta), start);
        let d = mode.len();
        let jumps = target.jumps(&mode);
        let root = covariance.with_eigenvalues(|e| e.max(0.0).sqrt());
        let mut theta = mode.clone();
        for scale in [1.0, 0.3, 0.1] {
            let moved: Vec<f64> = (root.times(&normals(d, rng)).iter().zip(&mode))
                .map(|(s, m)| m + scale * s)
                .collect();
            if target.log_density(&moved).0.is_finite() {
                theta = moved;
                break;
            }
        }
        let metric = Metric::dense(covariance.entries().to_vec(), d).unwrap_or(Metric::Unit);
        let state = State::new(theta, &target);
        Nuts {
            target,
            metric,
            state,
            h: super::FIRST_STEP,
            jumps,
        }
    }

    /// Draws of y, by a short chain that begins at `start`.
    pub fn draws(self, start: Vec<f64>, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let mut chain = self.chain(start, rng);
        let mut adapting = DualAveraging::new(chain.h, super::TARGET_ACCEPTANCE);
        for _ in 0..WARM_UP {
            adapting.update(chain.advance(rng).accept_stat);
            chain.h = adapting.step();
        }
        chain.h = adapting.average_step();
        let draw = |_| {
            chain.advance(rng);
            chain.target.coordinates(&chain.state.theta)
        };
        (0..DRAWS).map(draw).collect()
    }

    /// Jumps from `mode`, where y has as many numbers as there are parameters and is not a linear
    /// function of them.
    fn jumps(&self, mode: &[f64]) -> Option<Jumps> {
        let curved = !self.form.space.is_parameters()
            && self.form.coordinates as usize == mode.len()
            && self.density.dimension() == mode.len();
        let root = self.likelihood.precision.inverse();
        curved.then(|| Jumps {
            from: mode.to_vec(),
            root: root.with_eigenvalues(|e| e.max(0.0).sqrt()),
        })
    }

    /// y at `theta`.
    fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        let point = self.density.point_of(&self.form.space, theta);
        let moved: Vec<f64> = (point.iter().zip(&self.likelihood.origin))
            .map(|(w, o)| w - o)
            .collect();
        self.form.lift.times(&moved)
    }

    /// dy/dtheta.
    fn slopes(&self, theta: &[f64]) -> Matrix {
        let jacobian = self.density.point_jacobian(&self.form.space, theta);
        let mut of_point = Matrix::new(jacobian.rows.len(), theta.len(), |_, _| 0.0);
        for (i, row) in jacobian.rows.iter().enumerate() {
            for &(j, w) in row {
                of_point[(i, j)] = w;
            }
        }
        &self.form.lift * &of_point
    }

    /// The parameters whose coordinates are `y`, found by Newton's method from `from`.
    fn parameters(&self, from: &[f64], y: &[f64]) -> Option<Vec<f64>> {
        let mut theta = from.to_vec();
        for _ in 0..NEWTON_STEPS {
            let off: Vec<f64> = (y.iter().zip(self.coordinates(&theta)))
                .map(|(y, at)| y - at)
                .collect();
            if length(&off) <= FOUND * (1.0 + length(y)) {
                return Some(theta);
            }
            let slopes = self.slopes(&theta);
            let square = &slopes.transposed() * &slopes;
            let step = square.inverse().times(&slopes.transposed().times(&off));
            for (t, s) in theta.iter_mut().zip(step) {
                *t += s;
            }
        }
        None
    }

    /// Log of prior over |det dy/dtheta|.
    fn log_weight(&self, theta: &[f64]) -> f64 {
        let slopes = self.slopes(theta);
        let (values, _) = (&slopes.transposed() * &slopes).eigen();
        let log_determinant: f64 = values.iter().map(|e| 0.5 * e.ln()).sum();
        self.density.log_prior(theta) - log_determinant
    }

    /// Proposes a draw of y from the likelihood as the next state of the chain.
    fn jump(&self, jumps: &Jumps, state: State, rng: &mut ChaCha8Rng) -> State {
        let y: Vec<f64> = (jumps.root.times(&normals(state.theta.len(), rng)).iter())
            .zip(&self.likelihood.root)
            .map(|(s, r)| s + r)
            .collect();
        let u: f64 = rng.random();
        let Some(theta) = self.parameters(&jumps.from, &y) else {
            return state;
        };
        // A jump may only leave a point to which a jump could have led.
        let back = self.parameters(&jumps.from, &self.coordinates(&state.theta));
        let off = |back: &Vec<f64>| {
            let off: Vec<f64> = back.iter().zip(&state.theta).map(|(b, t)| b - t).collect();
            length(&off)
        };
        if !back.is_some_and(|back| off(&back) <= SAME * (1.0 + length(&state.theta))) {
            return state;
        }
        if u.ln() < self.log_weight(&theta) - self.log_weight(&state.theta) {
            State::new(theta, self)
        } else {
            state
        }
    }
}

/// Proposals that do not depend on the state of the chain.
pub(super) struct Jumps {
    /// The point at which Newton's method begins.
    from: Vec<f64>,
    /// The root of the covariance of y under the likelihood.
    root: Matrix,
}

/// A chain of the no-U-turn sampler, in the metric of the normal distribution about the point of
/// highest density.
pub(super) struct Nuts<'a> {
    target: Posterior<'a>,
    metric: Metric,
    state: State,
    h: f64,
    jumps: Option<Jumps>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    step_size: f64,
    theta: Vec<f64>,
}

impl Nuts<'_> {
    fn advance(&mut self, rng: &mut ChaCha8Rng) -> Info {
        let state = self.state.clone();
        let (next, info) = nuts::step(
            state,
            &self.target,
            self.h,
            DEFAULT_MAX_DEPTH,
            &self.metric,
            rng,
        );
        self.state = match &self.jumps {
            Some(jumps) => self.target.jump(jumps, next, rng),
            None => next,
        };
        info
    }
}

impl Walker for Nuts<'_> {
    fn step(&mut self, _: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let info = self.advance(rng);
        Ok(Step {
            accept_stat: info.accept_stat,
            accepted: info.accepted,
            // Jumps reach places that trajectories do not.
            divergent: info.divergent && self.jumps.is_none(),
            step_size: self.h,
            columns: vec![
                f64::from(info.depth),
                f64::from(info.leapfrogs),
                info.energy,
            ],
        })
    }

    fn theta(&self) -> &[f64] {
        &self.state.theta
    }

    /// The metric is known from what was released.
    fn tune(&mut self, step_size: f64, _: &Metric) {
        self.h = step_size;
    }

    fn save(&self) -> Value {
        json!({"step_size": self.h, "theta": self.state.theta})
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let Saved { step_size, theta } = read(saved)?;
        if theta.len() != self.state.theta.len() {
            return Err(SampleError::Unreadable);
        }
        self.h = step_size;
        self.state = State::new(theta, &self.target);
        Ok(())
    }
}

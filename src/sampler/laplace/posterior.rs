//! Draws from prior times released likelihood, which cost no privacy: the no-U-turn sampler. The
//! likelihood is normal in the numbers that [`Bend`] makes of the parameters.
//!
//! Where the likelihood is normal in numbers that are a curved function of the parameters, and as
//! many as these, trajectories follow the curve slowly. Each is then followed by a jump: a draw of
//! these numbers from the likelihood, converted to parameters by Newton's method, and accepted as
//! in Metropolis-Hastings with the ratio of prior over |det dy/dtheta|.
//!
//! Otherwise chains move in non-centred coordinates where the prior is hierarchical and the likelihood
//! says little more than it ([`NonCentred`]), and else near the numbers of the [`Bend`]: where parameters are strongly
//! correlated, a likelihood that is normal in these is a curved ridge in the parameters.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bend::Bend;
use super::form::Form;
use super::peak::{covariance, peak};
use super::search::Likelihood;
use crate::density::{Density, NonCentred};
use crate::linear::{Matrix, dot, length};
use crate::sampler::chain::adaptation::DualAveraging;
use crate::sampler::chain::checkpoint::read;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::{Step, Walker};
use crate::sampler::hamiltonian::nuts::{self, DEFAULT_MAX_DEPTH};
use crate::sampler::hamiltonian::{Info, State, Target};
use crate::sampler::random::normals;

/// Newton's method from y to the parameters: the largest number of steps, the distance at which it
/// has converged, and that at which two points count as the same.
const NEWTON_STEPS: usize = 30;
const FOUND: f64 = 1e-12;
const SAME: f64 = 1e-6;
/// The numbers of iterations of a short chain.
const WARM_UP: usize = 60;
const DRAWS: usize = 200;
/// The number of trajectories for each draw of at most `FEW` parameters: they cost no privacy and little time. With
/// hundreds, they are most of the time of a run.
const TRANSITIONS: usize = 4;
const FEW: usize = 50;
/// A hierarchical parameter keeps its own coordinate where the likelihood says this many times as much of it
/// as the prior given the others.
const CENTRED: f64 = 10.0;

/// The density of the draws: that of the parameters, unconstrained scale.
pub(super) struct Posterior<'a> {
    pub density: &'a Density,
    pub form: &'a Form,
    pub likelihood: Likelihood,
    pub bend: &'a Bend,
}

/// The density of the coordinates in which chains move.
struct InCoordinates<'a> {
    posterior: Posterior<'a>,
    map: NonCentred<'a>,
    /// The coordinates where that map is empty.
    bend: Bend,
}

impl InCoordinates<'_> {
    /// The coordinates of parameters.
    fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        if self.map.is_empty() {
            self.bend.at(theta).0
        } else {
            self.map.coordinates(theta)
        }
    }

    /// The parameters with these coordinates.
    fn parameters(&self, coordinates: &[f64]) -> Vec<f64> {
        if self.map.is_empty() {
            self.bend.back(coordinates)
        } else {
            self.map.place(coordinates).theta
        }
    }
}

impl Target for InCoordinates<'_> {
    fn log_density(&self, coordinates: &[f64]) -> (f64, Vec<f64>) {
        if self.map.is_empty() {
            let theta = self.bend.back(coordinates);
            let (log_density, mut gradient) = self.posterior.log_density(&theta);
            let log_determinant = self.bend.pull_back(&theta, &mut gradient);
            return (log_density + log_determinant, gradient);
        }
        let place = self.map.place(coordinates);
        let (log_density, gradient) = self.posterior.log_density(&place.theta);
        let (log_determinant, gradient) = place.pull_back(coordinates, gradient);
        (log_density + log_determinant, gradient)
    }
}

impl Posterior<'_> {
    fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let Likelihood {
            origin,
            root,
            precision,
            ..
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
    /// density, which is searched for from `start`, or from the prior's middle where that is higher: likelihoods of
    /// searches that were lost may have their centre anywhere.
    pub fn chain(self, mut start: Vec<f64>, rng: &mut ChaCha8Rng) -> Nuts<'a> {
        let middle = &self.form.middle;
        let height = |theta: &[f64]| Some(self.log_density(theta).0).filter(|x| !x.is_nan());
        if height(&start) < height(middle) {
            start.clone_from(middle);
        }
        let is_curved = self.is_curved();
        let density = self.density;
        let mut target = InCoordinates {
            map: NonCentred::of(density, |_| !is_curved),
            bend: Bend::default(),
            posterior: self,
        };
        let start = target.coordinates(&start);
        let (mut mode, mut covariance) = peak(|at| target.log_density(at), start);
        if !target.map.is_empty() {
            let theta = target.parameters(&mode);
            let spread = target.map.spread(&theta);
            let told = target.posterior.precisions(&theta);
            let is_wanted = |j: usize| told[j] * spread[j] < CENTRED;
            if !(0..theta.len()).all(is_wanted) {
                target.map = NonCentred::of(density, is_wanted);
                mode = target.coordinates(&theta);
                covariance = self::covariance(|at| target.log_density(at), &mode);
            }
        }
        if target.map.is_empty() {
            target.bend = target.posterior.bend.limited();
            mode = target.coordinates(&mode);
            covariance = self::covariance(|at| target.log_density(at), &mode);
        }
        let d = mode.len();
        let jumps = is_curved.then(|| target.posterior.jumps(&mode));
        let root = covariance.with_eigenvalues(|e| e.max(0.0).sqrt());
        let mut coordinates = mode.clone();
        for scale in [1.0, 0.3, 0.1] {
            let moved: Vec<f64> = (root.times(&normals(d, rng)).iter().zip(&mode))
                .map(|(s, m)| m + scale * s)
                .collect();
            if target.log_density(&moved).0.is_finite() {
                coordinates = moved;
                break;
            }
        }
        let metric = Metric::dense(covariance.entries().to_vec(), d).unwrap_or(Metric::Unit);
        let state = State::new(coordinates, &target);
        let theta = target.parameters(&state.theta);
        Nuts {
            target,
            metric,
            state,
            theta,
            h: super::FIRST_STEP,
            jumps,
        }
    }

    /// Draws of y, by a short chain that begins at `start`.
    pub fn draws(self, start: Vec<f64>, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let mut chain = self.chain(start, rng);
        chain.warm_up(rng);
        let draw = |_| {
            chain.advance(rng);
            chain.target.posterior.coordinates(&chain.theta)
        };
        (0..DRAWS).map(draw).collect()
    }

    /// Whether y has as many numbers as there are parameters and is not a linear function of them.
    fn is_curved(&self) -> bool {
        let d = self.density.dimension();
        !self.density.is_linear(&self.form.space) && self.form.coordinates as usize == d
    }

    /// The precision of each parameter given the others by the likelihood alone.
    fn precisions(&self, theta: &[f64]) -> Vec<f64> {
        let slopes = self.slopes(theta);
        let precision = self.likelihood.precision.between(&slopes);
        (0..theta.len()).map(|j| precision[(j, j)]).collect()
    }

    /// Jumps from `mode`.
    fn jumps(&self, mode: &[f64]) -> Jumps {
        let root = self.likelihood.precision.inverse();
        Jumps {
            from: mode.to_vec(),
            root: root.with_eigenvalues(|e| e.max(0.0).sqrt()),
        }
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

    /// Proposes a draw of y from the likelihood as the next state of the chain; `None` where it is rejected.
    fn jump(&self, jumps: &Jumps, theta: &[f64], rng: &mut ChaCha8Rng) -> Option<Vec<f64>> {
        let y: Vec<f64> = (jumps.root.times(&normals(theta.len(), rng)).iter())
            .zip(&self.likelihood.root)
            .map(|(s, r)| s + r)
            .collect();
        let u: f64 = rng.random();
        let proposed = self.parameters(&jumps.from, &y)?;
        // A jump may only leave a point to which a jump could have led.
        let back = self.parameters(&jumps.from, &self.coordinates(theta))?;
        let off: Vec<f64> = back.iter().zip(theta).map(|(b, t)| b - t).collect();
        let is_same = length(&off) <= SAME * (1.0 + length(theta));
        let is_accepted = || u.ln() < self.log_weight(&proposed) - self.log_weight(theta);
        (is_same && is_accepted()).then_some(proposed)
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
    target: InCoordinates<'a>,
    metric: Metric,
    /// In coordinates.
    state: State,
    /// The parameters there.
    theta: Vec<f64>,
    h: f64,
    jumps: Option<Jumps>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    step_size: f64,
    coordinates: Vec<f64>,
}

impl Nuts<'_> {
    /// Adapts the step of a short chain.
    fn warm_up(&mut self, rng: &mut ChaCha8Rng) {
        let mut adapting = DualAveraging::new(self.h, super::TARGET_ACCEPTANCE);
        for _ in 0..WARM_UP {
            adapting.update(self.advance(rng).accept_stat);
            self.h = adapting.step();
        }
        self.h = adapting.average_step();
    }

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
        let jumps = self.jumps.as_ref();
        let posterior = &self.target.posterior;
        let jumped = jumps.and_then(|jumps| posterior.jump(jumps, &next.theta, rng));
        self.state = jumped.map_or(next, |theta| State::new(theta, &self.target));
        self.theta = self.target.parameters(&self.state.theta);
        info
    }
}

impl Walker for Nuts<'_> {
    fn step(&mut self, _: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let mut info = self.advance(rng);
        let more = if self.theta.len() <= FEW {
            TRANSITIONS - 1
        } else {
            0
        };
        for _ in 0..more {
            let next = self.advance(rng);
            info = Info {
                accepted: info.accepted || next.accepted,
                divergent: info.divergent || next.divergent,
                leapfrogs: info.leapfrogs + next.leapfrogs,
                ..next
            };
        }
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
        &self.theta
    }

    /// The metric is known from what was released.
    fn tune(&mut self, step_size: f64, _: &Metric) {
        self.h = step_size;
    }

    fn save(&self) -> Value {
        json!({"step_size": self.h, "coordinates": self.state.theta})
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let Saved {
            step_size,
            coordinates,
        } = read(saved)?;
        if coordinates.len() != self.theta.len() {
            return Err(SampleError::Unreadable);
        }
        self.h = step_size;
        self.theta = self.target.parameters(&coordinates);
        self.state = State::new(coordinates, &self.target);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::model::{Constants, Model};

    const GROUPS: usize = 10;
    /// The standard deviation with which each a is told.
    const ERROR: f64 = 0.7;
    const TOLD: [f64; GROUPS] = [0.9, -0.6, 1.4, 0.1, 0.4, -0.3, 2.1, 0.8, -1.2, 0.5];
    const DRAWN: usize = 4000;

    /// The mean and the standard deviation of log tau, and the share of draws that were divergent.
    fn drawn(hierarchy: &str, error: f64) -> ([f64; 2], f64) {
        let source = format!(
            "record {{ int<lower=1, upper={GROUPS}> g; real y; }}
             parameters {{ real mu; real<lower=0> tau; {hierarchy}
             mu ~ normal(0, 1); tau ~ exponential(1); y ~ normal(a[g], 1); }}"
        );
        let density = Density::new(Model::from_source(&source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let precision = Matrix::identity(GROUPS)
            .scaled(error.powi(-2))
            .between(&form.base);
        let likelihood = Likelihood {
            root: form.lift.times(&TOLD),
            ..Likelihood::around(vec![0.0; GROUPS], precision)
        };
        let posterior = Posterior {
            density: &density,
            form: &form,
            likelihood,
            bend: &Bend::default(),
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let mut chain = posterior.chain(form.middle.clone(), rng);
        chain.warm_up(rng);
        let mut divergent = 0;
        let draws: Vec<f64> = (0..DRAWN)
            .map(|_| {
                divergent += usize::from(chain.advance(rng).divergent);
                chain.theta[1]
            })
            .collect();
        let mean = draws.iter().sum::<f64>() / DRAWN as f64;
        let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWN as f64;
        ([mean, square.sqrt()], divergent as f64 / DRAWN as f64)
    }

    /// The same by integration: what is told of each a is normal about mu with the variance tau^2 + error^2.
    fn oracle(error: f64) -> [f64; 2] {
        let mut sums = [0.0; 3];
        for k in -3000..1500 {
            let u = 0.002 * f64::from(k);
            let tau = u.exp();
            let variance = tau * tau + error * error;
            let precision = GROUPS as f64 / variance + 1.0;
            let sum: f64 = TOLD.iter().sum::<f64>() / variance;
            let square: f64 = TOLD.iter().map(|x| x * x).sum::<f64>() / variance;
            let log = -0.5 * (square - sum * sum / precision)
                - 0.5 * GROUPS as f64 * variance.ln()
                - 0.5 * precision.ln()
                - tau
                + u;
            let p = log.exp();
            sums = [sums[0] + p, sums[1] + p * u, sums[2] + p * u * u];
        }
        let mean = sums[1] / sums[0];
        [mean, (sums[2] / sums[0] - mean * mean).sqrt()]
    }

    // Oracle: integration. Bounds are four standard errors with one effective draw in four. If it failed: chains of
    // a hierarchy that is written centred would begin where tau is 0 and never move, or be drawn from something
    // else than its posterior.
    #[test]
    fn hierarchies_have_the_same_draws_centred_or_not() {
        let centred = format!("vector[{GROUPS}] a; }} model {{ a ~ normal(mu, tau);");
        let non_centred = format!(
            "vector[{GROUPS}] z; }} transformed parameters {{ vector[{GROUPS}] a = mu + tau * z; }}
             model {{ z ~ std_normal();"
        );
        for (hierarchy, error) in [
            (&centred, ERROR),
            (&non_centred, ERROR),
            // The likelihood says ten times as much as the prior, and far more.
            (&centred, 0.3),
            (&centred, 0.05),
        ] {
            let [mean, sd] = oracle(error);
            let ([found, found_sd], divergent) = drawn(hierarchy, error);
            let bound = 4.0 * sd / (DRAWN as f64 / 4.0).sqrt();
            assert!(
                (found - mean).abs() < bound,
                "{error}: {found} {mean} {bound}"
            );
            assert!(
                (found_sd / sd - 1.0).abs() < 0.2,
                "{error}: {found_sd} {sd}"
            );
            assert!(divergent < 0.02, "{error}: {divergent}");
        }
    }

    /// This many draws of the first parameter by a chain from `start`.
    fn drawn_of_first(posterior: Posterior, start: Vec<f64>, draws: usize) -> Vec<f64> {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let mut chain = posterior.chain(start, rng);
        chain.warm_up(rng);
        (0..draws)
            .map(|_| {
                chain.advance(rng);
                chain.theta[0]
            })
            .collect()
    }

    fn mean(x: &[f64]) -> f64 {
        x.iter().sum::<f64>() / x.len() as f64
    }

    // Oracle: the mean of the same density by integration over the parameter. If it failed: the determinant of the
    // coordinates in which chains move would be missing, or be that of the inverse. The standard error is about 0.015, so
    // that false alarms are one in a thousand; a wrong determinant moves the mean by six times what is allowed: power 1.
    #[test]
    fn draws_in_bent_coordinates_are_of_the_posterior() {
        let source = "record { int<lower=0, upper=1> y; } parameters { vector[1] a; }
            model { a ~ normal(0, 3); y ~ bernoulli_logit(a[1]); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let base = form.base[(0, 0)];
        let likelihood = Likelihood::around(vec![-2.0], Matrix::diagonal(&[base * base]));
        let bend = &Bend::of(&form, &density, &likelihood, 10.0);
        let posterior = Posterior {
            density: &density,
            form: &form,
            likelihood,
            bend,
        };
        // The mean where the density is multiplied by this power of the slope of the coordinate.
        let integrated = |power: f64| {
            let mut sums = [0.0; 2];
            for k in -4000..2000 {
                let x = 0.005 * f64::from(k);
                let slope = bend.limited().at(&[x]).1[0];
                let weight = posterior.log_density(&[x]).0.exp() * slope.powf(power);
                sums[0] += weight;
                sums[1] += weight * x;
            }
            sums[1] / sums[0]
        };
        let allowed = 0.05;
        let oracle = integrated(0.0);
        for wrong in [-1.0, 1.0, 2.0] {
            assert!(
                (integrated(wrong) - oracle).abs() > 6.0 * allowed,
                "{wrong}"
            );
        }
        let found = mean(&drawn_of_first(posterior, vec![-2.0], 10 * DRAWN));
        assert!((found - oracle).abs() < allowed, "{found} {oracle}");
    }

    // Oracle: the mean of a half normal, 4 sqrt(2 / pi). If it failed: where a search was lost, so that the likelihood's
    // centre is at exp(60), Newton's steps of a half each would not come back to where the prior has its mass.
    #[test]
    fn draws_of_a_lost_search_are_of_the_prior() {
        let source = "record { real y; } parameters { real<lower=0> s; }
            model { s ~ normal(0, 4); y ~ normal(0, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let posterior = Posterior {
            density: &density,
            form: &form,
            likelihood: Likelihood::around(vec![60.0], Matrix::diagonal(&[1e-9])),
            bend: &Bend::default(),
        };
        let draws: Vec<f64> = drawn_of_first(posterior, vec![60.0], DRAWN)
            .iter()
            .map(|x| x.exp())
            .collect();
        let oracle = 4.0 * std::f64::consts::FRAC_2_PI.sqrt();
        assert!((mean(&draws) - oracle).abs() < 0.25, "{}", mean(&draws));
    }
}

//! The posterior as a Gaussian, for budgets that are too small for chains.
//!
//! Chains whose heat is the privacy noise travel for as long as the budget allows. Where that
//! is less than the time in which they forget where they were, each is worth one draw, and all
//! of them are as far off as the start was. The releases that were planned for them then
//! continue the search: [`ROUNDS`] Newton steps in the coordinates that the start has learnt,
//! each from the average gradient at points u ~ N(0, I) around the centre, like those of the
//! start. The draws are independent ones from N(c, (1 + v) A A'), where v is the variance of the
//! remaining noise in the centre, in posterior variances: the posterior given the noisy centre,
//! under a flat prior on the true centre.
//!
//! The steps weigh each gradient against what was known before, as in a Kalman filter whose
//! state drifts by the variance [`DRIFT`] with each step, since gradients differ at a new centre.
//!
//! # Cost
//!
//! The line of the chains' gradients, with noise and number as planned; whether chains or these
//! rounds use it follows from released values. At each point many of these releases are made,
//! and averaged.

use std::num::NonZeroU64;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::density::Frame;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError, View};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::{Step, Walker};
use crate::sampler::langevin::search::{LINES, Start, StartSearch, add, noise, pairs};
use crate::sampler::random::normals;
use crate::sampler::stochastic::{all_finite, followed};

/// The proportions of the rounds' releases: as in the start, the last round decides.
const SHARES: [u64; 4] = [1, 1, 2, 4];
pub(crate) const ROUNDS: u64 = SHARES.len() as u64;
/// The number of points of a round, in pairs.
pub(crate) const POINTS: u64 = 32;
/// Draws are made wider by at most this many posterior variances: a centre with more noise is not
/// known at all, and neither are the axes.
const MOST_NOISE: f64 = 100.0;
/// The number of tries for a draw at which the prior is finite.
const TRIES: u64 = 100;

/// The number of releases of these rounds, on the line of the chains' gradients.
pub(crate) fn releases(plan: &Plan, rounds: Range<u64>) -> u64 {
    let count = plan.lines.get(LINES).map_or(0, |line| line.line.count);
    let whole: u64 = SHARES.iter().sum();
    let up_to = |end: u64| {
        let parts: u64 = SHARES.iter().take(end as usize).sum();
        (u128::from(count) * u128::from(parts) / u128::from(whole)) as u64
    };
    up_to(rounds.end) - up_to(rounds.start)
}

/// Runs one round.
pub(crate) fn round(
    search: &mut StartSearch,
    round: u64,
    rng: &mut ChaCha8Rng,
) -> Result<(), SampleError> {
    let StartSearch {
        start,
        plan,
        oracle,
    } = search;
    let d = start.frame().dimension();
    let temperature = plan.request.temperature;
    let count = releases(plan, round..round + 1);
    let points = pairs(POINTS.min(count), d, rng);
    let Some(times) = count
        .checked_div(points.len() as u64)
        .and_then(NonZeroU64::new)
    else {
        return Ok(());
    };
    let m = points.len() as f64;
    let mut slope = Vec::new();
    for u in &points {
        let frame = start.frame();
        let theta = frame.point(u);
        let view = View::of_parameters(&theta, frame, start.clip());
        let likelihood = oracle.learnt_often(LINES, &view, times)?;
        add(&mut slope, &likelihood, temperature / m);
        let prior = oracle.prior_gradient(&theta)?;
        add(&mut slope, &frame.pull_back(&prior), 1.0 / m);
    }
    let sd = temperature * noise(plan, LINES) * start.clip() / (m * times.get() as f64).sqrt();
    start.corrected(&slope, sd * sd);
    Ok(())
}

/// Independent draws from the Gaussian.
pub(crate) struct Draws {
    frame: Frame,
    /// Standard deviation of each coordinate of u.
    sd: f64,
    theta: Vec<f64>,
}

impl Draws {
    pub fn new(learnt: &Start) -> Draws {
        Draws {
            frame: learnt.frame().clone(),
            sd: (1.0 + learnt.variance().min(MOST_NOISE)).sqrt(),
            theta: learnt.frame().centre().to_vec(),
        }
    }
}

impl Walker for Draws {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let d = self.frame.dimension();
        for _ in 0..TRIES {
            let u: Vec<f64> = normals(d, rng).iter().map(|x| self.sd * x).collect();
            let theta = self.frame.point(&u);
            if all_finite(&theta) && oracle.log_prior(&theta).is_finite() {
                self.theta = theta;
                return Ok(followed(true, self.sd, Vec::new()));
            }
        }
        Ok(followed(false, self.sd, Vec::new()))
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// Everything was learnt before the draws.
    fn tune(&mut self, _: f64, _: &Metric) {}

    /// Draws do not depend on earlier ones.
    fn save(&self) -> Value {
        Value::Null
    }

    fn restore(&mut self, _: &Value) -> Result<(), SampleError> {
        Ok(())
    }
}

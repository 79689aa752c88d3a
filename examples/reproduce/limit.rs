//! How near a run could come at best that sees the records through noisy sums of clipped
//! gradients, as all of dpm's gradient samplers do.
//!
//! All of the budget goes to one release, at the posterior's mean, in coordinates u = A^-1 (theta - c)
//! in which the posterior's covariance is the identity, with the best of a list of clip bounds. What it
//! is off by, noise and clipping, is what a Newton step to the mean would be off by; the exact draws,
//! moved by that, are what it returns. Many releases of the same cost know no more of the
//! centre than this one. Nobody has the mean, the coordinates, the bound or the draws: it is a limit,
//! and no sampler.

use std::error::Error;
use std::num::NonZeroU64;

use dpm::Plan;
use dpm::testing::density::Frame;
use dpm::testing::function::cholesky;
use dpm::testing::privacy::{NotPrivate, PrivateRng};
use dpm::testing::sampler::{ExactOracle, Oracle, PrivateOracle, View};

use crate::chain::Run;
use crate::problem::Problem;
use crate::survey::unconstrained;

/// Clip bounds, in lengths that gradients have on average.
const BOUNDS: [f64; 11] = [0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0];
/// Releases that a bound is judged by.
const TRIES: u64 = 9;

pub fn run(problem: &Problem, plan: &Plan, noise: &PrivateRng) -> Result<Run, Box<dyn Error>> {
    let density = problem.vault.density();
    let names: Vec<String> = density.output_names().map(str::to_owned).collect();
    let free: Vec<Vec<f64>> = problem
        .reference
        .iter()
        .map(|draw| unconstrained(density, &names, draw))
        .collect::<Result<_, _>>()?;
    let frame = whitened(&free);
    let (centre, d) = (frame.centre().to_vec(), frame.dimension());
    let exact = ExactOracle {
        vault: &problem.vault,
        permission: NotPrivate::acknowledged(),
        temperature: 1.0,
    };
    let (_, posterior) = exact.log_density(&centre);
    let (_, prior) = density.pull_back(&centre, &[]);
    let likelihood: Vec<f64> = posterior.iter().zip(prior).map(|(g, p)| g - p).collect();
    let slope = frame.pull_back(&likelihood);
    let line = plan.lines.len() - 1;
    // What a release with this bound is off by, in posterior standard deviations.
    let off = |clip: f64, stream: u64| -> Result<Vec<f64>, Box<dyn Error>> {
        let meter = NotPrivate::acknowledged().meter(plan.events.clone());
        let mut oracle = PrivateOracle::new(&problem.vault, plan, &meter, noise.fork(stream)?);
        let view = View::of_parameters(&centre, &frame, clip);
        let released = oracle.learnt_often(line, &view, NonZeroU64::MIN)?;
        let error = released.iter().zip(&slope).map(|(r, s)| r - s);
        Ok(error.map(|e| problem.temperature * e).collect())
    };
    let counted = problem.temperature * problem.n as f64;
    let usual = (d as f64 / counted).sqrt();
    let mut best = (f64::INFINITY, usual);
    for (i, bound) in BOUNDS.iter().enumerate() {
        let mut squares = 0.0;
        for k in 0..TRIES {
            let error = off(bound * usual, i as u64 * TRIES + k)?;
            squares += error.iter().map(|e| e * e).sum::<f64>();
        }
        if squares < best.0 {
            best = (squares, bound * usual);
        }
    }
    let step = frame.point(&off(best.1, u64::MAX)?);
    let moved = |point: &Vec<f64>| {
        let at = point.iter().zip(&step).zip(&centre);
        density.outputs(&at.map(|((p, s), c)| p + s - c).collect::<Vec<f64>>())
    };
    Ok(Run {
        kept: vec![free.iter().map(moved).collect()],
        acceptance: f64::NAN,
        ratios_clipped: f64::NAN,
        gradients_clipped: f64::NAN,
        seconds: 0.0,
    })
}

/// Coordinates in which these points have mean 0 and the identity for covariance.
fn whitened(points: &[Vec<f64>]) -> Frame {
    let (n, d) = (points.len() as f64, points[0].len());
    let mean: Vec<f64> = (0..d)
        .map(|j| points.iter().map(|p| p[j]).sum::<f64>() / n)
        .collect();
    let mut covariance = vec![0.0; d * d];
    for point in points {
        for i in 0..d {
            for j in 0..d {
                covariance[i + j * d] += (point[i] - mean[i]) * (point[j] - mean[j]) / (n - 1.0);
            }
        }
    }
    // By columns; the frame has its axes by rows.
    let mut factor = vec![0.0; d * d];
    cholesky(d, &covariance, &mut factor);
    let axes: Vec<f64> = (0..d * d).map(|at| factor[at / d + at % d * d]).collect();
    Frame::about(mean).refined(&vec![0.0; d], &axes)
}

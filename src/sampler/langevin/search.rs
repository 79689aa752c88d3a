//! The search for the position and the width of the posterior, in releases that are made before the
//! chains begin.
//!
//! A round looks at the records in coordinates u, theta = c + A u, and asks, each with noise, for
//!
//! ```text
//! histogram of |g_i|                             -> a clip bound, its 95% quantile
//! G0 = sum clip(g_i) at u = 0                    -> the mean gradient m = G0 / n
//! histogram of |g_i - m|                         -> clip bounds b and b'
//! F  = sum of the products of clip_b'(g_i - m)
//! G1 = sum clip_b(g_i - m)
//! ```
//!
//! where g_i is a record's gradient in the coordinates u. F is the records' information about
//! the point, or close to it (the outer-product estimate of the Fisher information), and
//! M = T F + P that of the posterior, where P is the prior's own curvature, which is public.
//! Eigenvalues of M that its noise could have made are set to that noise. Then follow a Newton step,
//! c += A M^-1 (T (n m + G1) + prior's gradient), and new axes, A = A U W^(-1/2), in which the
//! posterior is about a standard normal.
//!
//! While the last step was long, a round looks at u = 0, and subtracts G1 G1'/n from F. Later ones
//! look from several points u ~ N(0, I), in pairs u and -u, and take averages. These are the Newton
//! steps of Gaussian variational inference (Opper and Archambeau 2009, "The variational Gaussian
//! approximation revisited"): their limit is about as wide as the posterior, while the information
//! at one point of a curved posterior may be that of a narrow part of it. Axes become wider at once
//! but narrower by halves: a posterior whose information grows with the width over which it is
//! averaged would otherwise alternately be found too narrow and too wide (Khan and Rue 2023, "The
//! Bayesian learning rule", for such damping). The step is weighed against what was known
//! before, so that its noise is averaged over rounds. At the end, histograms around the centre give
//! the clip bound for the chains.
//!
//! Rounds look from more and more points, and so get more and more of the budget: far away there
//! is no point in being exact, and the last round decides how exact the centre is.
//!
//! Far out in a regression, where residuals are many times what the model expects, the products
//! overstate the information and the steps are too short by the same factor: the search may then
//! end before it arrives, which shows in the length of its last step.
//!
//! Centring makes the far rounds worth their cost: thousands of posterior sds away the gradients
//! are long and nearly alike, and the information is in their differences.
//!
//! # Clip bounds
//!
//! Clipping the gradients of k records moves their sum by at most the sum of their lengths beyond
//! the bound. If the bound is lowered by one unit, that grows by k, and the length of the noise falls
//! by its multiplier times the root of the dimension. The bound b is where the two are equal, as in
//! Amin, Kulesza, Munoz and Vassilvitskii (2019), "Bounding user contributions": with little noise
//! next to no records are clipped, with much noise more. A fixed quantile is wrong by many posterior
//! sds for large data whose few long gradients point one way. The products are clipped at a lower
//! bound b', the 80% quantile, since they only need the right size and direction; the loss of their
//! trace is known from the histogram and compensated.
//!
//! # Cost
//!
//! All releases are Gaussian, of all records, and their number and noise multipliers are fixed
//! beforehand. Their points and clip bounds follow from earlier releases; the ratio of noise to
//! sensitivity, on which alone the composition depends, does not (docs/proofs.md, sections 5, 14
//! and 17).

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::density::{Density, Frame};
use crate::privacy::{Statistic, Subsampling};
use crate::sampler::chain::checkpoint::read;
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::oracle::{Oracle, SampleError, View};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::{Iterations, PlanRequest};
use crate::sampler::contract::schedule::{Line, Noise, Question, Scale};
use crate::sampler::langevin::information::{Information, information};
use crate::sampler::langevin::lengths::LengthHistogram;
use crate::sampler::prior::middle_of_prior;

/// The number of points of each round, in pairs.
const POINTS: [u64; 7] = [2, 2, 2, 4, 8, 16, 32];
const ROUNDS: u64 = POINTS.len() as u64;
/// The number of points whose histograms are taken at the end.
const LAST_HISTOGRAMS: u64 = 40;
/// The rounds, and the histogram after them.
pub(super) const STEPS: u64 = ROUNDS + 1;
/// Shares of the start's part of the budget.
const FOR_LENGTHS: f64 = 0.16;
const FOR_MEAN: f64 = 0.04;
const FOR_PRODUCTS: f64 = 0.18;
const FOR_GRADIENT: f64 = 1.0 - FOR_LENGTHS - FOR_MEAN - FOR_PRODUCTS;

/// A round looks around the centre when the last step was at most this many posterior sds.
const NEAR: f64 = 20.0;
/// The fraction by which axes are narrowed towards those of the information.
const NARROWING: f64 = 0.5;

/// Quantiles of lengths: the clip bounds of the gradients for the mean, and of the products.
const FOR_MEAN_QUANTILE: f64 = 0.95;
const PRODUCTS_QUANTILE: f64 = 0.8;
/// The number of records whose gradients are clipped, as a multiple of that which would balance the
/// noise: the clipped parts may all be in one direction, unlike the noise.
const BIAS: f64 = 0.5;
/// The same for products, close to the centre.
const CLIPPED_PRODUCTS: f64 = 8.0;
/// A mean gradient is believed if it is above this many sds of its noise.
const BELIEVED: f64 = 3.0;
/// With more parameters than this, the products of different coordinates are left out.
const DENSE_UP_TO: u64 = 100;
/// The error of a centre after a step, apart from noise, in posterior variances.
const DRIFT: f64 = 0.3;
/// A Gaussian's round moves by at most this many posterior sds in each coordinate.
const LONGEST_CORRECTION: f64 = 3.0;

/// The lines of the schedule.
const LENGTHS: usize = 0;
const MEAN: usize = 1;
const PRODUCTS: usize = 2;
const GRADIENT: usize = 3;
/// The number of these lines. The next line is that of the chains' gradients.
pub(super) const LINES: usize = 4;

/// The results of the rounds so far, from released values only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The coordinates in which the posterior is about a standard normal.
    pub(super) frame: Frame,
    /// The clip bound for the chains, in those coordinates.
    pub(super) clip: f64,
    /// The number of records with a likelihood: a noisy count, or the number of all records where
    /// it is public.
    pub(super) records: f64,
    /// The length of the last Newton step, less that of its noise, in posterior sds.
    pub(super) last_step: f64,
    /// Whether that step was cut to the longest correction.
    #[serde(default)]
    pub(super) cut: bool,
    /// The largest share of an eigenvalue of the information that its noise could have made:
    /// 1 where a direction is not known at all.
    pub(super) unknown: f64,
    /// Whether any lengths were visible in the last histogram.
    pub(super) seen: bool,
    /// Variance of the noise in the centre, in posterior variances.
    pub(super) variance: f64,
}

/// The lines of a start that gets the share `share` of the budget.
pub(super) fn lines(request: &PlanRequest, share: f64) -> Vec<Line> {
    let products = if request.dimension > DENSE_UP_TO {
        Statistic::Squares
    } else {
        Statistic::Products
    };
    let looks: u64 = POINTS.iter().sum();
    let line = |what, statistic, count, of_start: f64| Line {
        what,
        question: Question::Learnt(statistic),
        noise: Noise::Share(share * of_start),
        count,
        subsampling: Subsampling::All,
    };
    vec![
        line(
            "histogram of gradient lengths",
            Statistic::Lengths,
            looks + LAST_HISTOGRAMS,
            FOR_LENGTHS,
        ),
        line(
            "gradient, for its mean",
            Statistic::Gradient,
            ROUNDS,
            FOR_MEAN,
        ),
        line("gradient products", products, looks, FOR_PRODUCTS),
        line(
            "gradient about its mean",
            Statistic::Gradient,
            looks,
            FOR_GRADIENT,
        ),
    ]
}

/// The number of releases in these rounds, by line of the plan.
pub(super) fn releases(plan: &Plan, rounds: Range<u64>) -> Vec<u64> {
    let mut released = vec![0; plan.lines.len()];
    for round in rounds.start..rounds.end.min(STEPS) {
        match POINTS.get(round as usize) {
            Some(points) => {
                for line in [LENGTHS, PRODUCTS, GRADIENT] {
                    released[line] += points;
                }
                released[MEAN] += 1;
            }
            None => released[LENGTHS] += LAST_HISTOGRAMS,
        }
    }
    released
}

pub(super) fn check(request: &PlanRequest) -> Result<(), PlanError> {
    let name = request.algorithm.name;
    match request.iterations {
        Iterations::Fixed(_) => Ok(()),
        Iterations::Max => Err(PlanError::Settings(format!(
            "`iterations` max does not apply to {name}, whose noise follows from the budget and the number of iterations: give `num_samples`"
        ))),
    }
}

impl Start {
    /// The state before the first round: at the middle of the prior, or of the initial points.
    ///
    /// Errors: no point has a finite prior density.
    pub(super) fn new(
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Start, SampleError> {
        let centre = match initial {
            Initial::Random => middle_of_prior(density, seed)?,
            Initial::Points(points) => {
                let count = points.len().max(1) as f64;
                let mean = |j: usize| points.iter().map(|p| p[j]).sum::<f64>() / count;
                (0..density.dimension()).map(mean).collect()
            }
        };
        if !density.log_prior(&centre).is_finite() {
            return Err(match initial {
                Initial::Random => SampleError::NoInitialPoint,
                Initial::Points(_) => SampleError::BadInitialPoint,
            });
        }
        let records = plan.request.records.map_or(1.0, |n| n as f64);
        Ok(Start {
            frame: Frame::about(centre),
            clip: usual_clip(&plan.request, records),
            records,
            last_step: f64::MAX,
            cut: false,
            unknown: 1.0,
            seen: false,
            variance: f64::MAX,
        })
    }

    /// The coordinates in which the posterior is about a standard normal.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The clip bound for the chains, in those coordinates.
    pub fn clip(&self) -> f64 {
        self.clip
    }

    /// Variance of the noise in the centre, in posterior variances.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// Restores what [`save`](Start::save) wrote, for a model of `dimension` parameters.
    pub(super) fn restore(saved: &Value, dimension: usize) -> Result<Start, SampleError> {
        let start: Start = read(saved)?;
        let sound = start.frame.dimension() == dimension && start.frame.is_sound();
        if sound && start.clip > 0.0 {
            Ok(start)
        } else {
            Err(SampleError::Unreadable)
        }
    }

    /// The clip bound of a start whose last histogram shows nothing, or was lost.
    fn usual_clip(&self, plan: &Plan) -> f64 {
        usual_clip(&plan.request, self.records)
    }

    /// Takes the step of a Gaussian's round: the slope at the centre, whose noise has this
    /// variance, in coordinates in which the information is the identity.
    pub(super) fn corrected(&mut self, slope: &[f64], noise: f64) {
        let d = slope.len() as f64;
        let before = self.variance + DRIFT;
        let gain = before / (before + noise);
        let length = norm(slope) / d.sqrt();
        // Where the axes are too long, so is the step.
        let share = gain * (LONGEST_CORRECTION / (gain * length)).min(1.0);
        let step: Vec<f64> = slope.iter().map(|s| share * s).collect();
        let frame = self.frame.moved(&step);
        if frame.is_sound() {
            self.frame = frame;
            self.last_step = (length * length - noise).max(0.0).sqrt();
            self.cut = gain * length > LONGEST_CORRECTION;
            self.variance = gain * noise;
        }
    }
}

/// Twice the typical length of a gradient for this number of records, in coordinates in which the
/// posterior is about a standard normal.
pub(super) fn usual_clip(request: &PlanRequest, records: f64) -> f64 {
    let counted = request.temperature * records;
    2.0 * (request.dimension as f64 / counted.max(1.0)).sqrt()
}

/// Standard deviation of the noise of a line's sum, in units of its clip bound.
pub(super) fn noise(plan: &Plan, line: usize) -> f64 {
    plan.lines.get(line).map_or(0.0, |line| match line.scale {
        Scale::Learnt(scale) => scale.sigma(),
        _ => 0.0,
    })
}

/// The number of records that are clipped where noise and bias are balanced, for the average of
/// `releases` releases of a line.
fn balance(plan: &Plan, line: usize, releases: u64) -> f64 {
    let d = plan.request.dimension as f64;
    noise(plan, line) * (d / releases.max(1) as f64).sqrt()
}

/// The number of records that the chains' gradients clip.
pub(super) fn clipped_by_chains(plan: &Plan) -> f64 {
    let releases = plan.lines.get(LINES).map_or(1, |line| line.line.count);
    balance(plan, LINES, releases)
}

/// A start during its rounds.
pub(super) struct StartSearch<'a> {
    pub start: &'a mut Start,
    pub plan: &'a Plan,
    pub oracle: &'a mut dyn Oracle,
}

impl StartSearch<'_> {
    fn ask(
        &mut self,
        line: usize,
        u: &[f64],
        centre: Option<&[f64]>,
        clip: f64,
    ) -> Result<Vec<f64>, SampleError> {
        let frame = &self.start.frame;
        let point = frame.point(u);
        let view = View {
            centre,
            ..View::of_parameters(&point, frame, clip)
        };
        self.oracle.learnt(line, &view)
    }

    fn noise(&self, line: usize) -> f64 {
        noise(self.plan, line)
    }

    fn balance(&self, line: usize, releases: u64) -> f64 {
        balance(self.plan, line, releases)
    }

    /// The number of records whose products may be clipped: that at which the loss is as large as
    /// the largest eigenvalue of the noise, times a number that was found by trial.
    fn balance_of_products(&self, count: u64) -> f64 {
        let d = self.plan.request.dimension as f64;
        CLIPPED_PRODUCTS * self.noise(PRODUCTS) * (2.0 * d / count.max(1) as f64).sqrt()
    }

    /// The lengths of the records' gradients (less the centre), averaged over points; `None` where
    /// the noise hides them.
    fn lengths(
        &mut self,
        points: &[Vec<f64>],
        centre: Option<&[f64]>,
    ) -> Result<Option<LengthHistogram>, SampleError> {
        let mut counts = Vec::new();
        let count = points.len() as f64;
        for u in points {
            let histogram = self.ask(LENGTHS, u, centre, 1.0)?;
            add(&mut counts, &histogram, 1.0 / count);
        }
        let visible = LengthHistogram::visible(&counts, self.noise(LENGTHS) / count.sqrt());
        if let (Some(lengths), None) = (&visible, self.plan.request.records) {
            self.start.records = lengths.records();
        }
        Ok(visible)
    }

    /// The clip bound of products. Far away they only need to be of the right size; close to the
    /// centre, clipping must not hide the directions in which few records are informative, unless
    /// noise would.
    fn products_clip(&self, lengths: &LengthHistogram, count: u64, around: bool) -> f64 {
        let least = lengths.quantile(PRODUCTS_QUANTILE);
        if around {
            least.max(lengths.exceeded_by(self.balance_of_products(count)))
        } else {
            least
        }
    }

    /// Takes a step of the search: a round, or the histogram after the last one.
    pub fn step(&mut self, step: u64, rng: &mut ChaCha8Rng) -> Result<(), SampleError> {
        if let Some(points) = POINTS.get(step as usize) {
            return self.round(*points, rng);
        }
        let around = pairs(LAST_HISTOGRAMS, self.start.frame.dimension(), rng);
        let lengths = self.lengths(&around, None)?;
        let clip = lengths.map(|lengths| lengths.exceeded_by(clipped_by_chains(self.plan)));
        self.start.clip = clip.unwrap_or_else(|| self.start.usual_clip(self.plan));
        self.start.seen = clip.is_some();
        Ok(())
    }

    fn round(&mut self, count: u64, rng: &mut ChaCha8Rng) -> Result<(), SampleError> {
        let d = self.start.frame.dimension();
        let temperature = self.plan.request.temperature;
        let around = self.start.last_step <= NEAR;
        let centre = vec![0.0; d];
        let points = if around {
            pairs(count, d, rng)
        } else {
            vec![centre.clone(); count as usize]
        };
        let (before, after) = points.split_at(points.len() / 2);
        let Some(lengths) = self.lengths(before, None)? else {
            // There is nothing to choose a clip bound by.
            return Ok(());
        };
        let first = lengths.quantile(FOR_MEAN_QUANTILE);
        let sum = self.ask(MEAN, &centre, None, first)?;
        let n = self.start.records;
        let heard = norm(&sum) > BELIEVED * self.noise(MEAN) * first * (d as f64).sqrt();
        let mean: Option<Vec<f64>> = heard.then(|| sum.iter().map(|s| s / n).collect());
        let mean = mean.as_deref();
        let lengths = self.lengths(after, mean)?;
        let (clip, clip_products, lost) = match &lengths {
            None => (first, first, 1.0),
            Some(lengths) => {
                let clip = self.products_clip(lengths, count, around);
                let balanced = lengths.exceeded_by(BIAS * self.balance(GRADIENT, count));
                (balanced, clip, lengths.lost_by_clipping(clip))
            }
        };
        let m = points.len() as f64;
        let (mut about, mut products, mut slope) = (Vec::new(), Vec::new(), Vec::new());
        for u in &points {
            let square = clip_products * clip_products;
            let found = self.ask(PRODUCTS, u, mean, square)?;
            add(&mut products, &found, lost / m);
            add(&mut about, &self.ask(GRADIENT, u, mean, clip)?, 1.0 / m);
            let theta = self.start.frame.point(u);
            let prior = self.oracle.prior_gradient(&theta)?;
            add(&mut slope, &self.start.frame.pull_back(&prior), 1.0 / m);
        }
        add(&mut slope, &about, temperature);
        if let Some(mean) = mean {
            add(&mut slope, mean, temperature * n);
        }
        if slope.iter().any(|x| !x.is_finite()) {
            return Ok(());
        }
        let diagonal = products.len() == d && d > 1;
        let curvature = self.prior_curvature(diagonal)?;
        // Points around the centre have slopes of their own, which do not belong to the records'
        // spread but are negligible compared with it.
        let own = if around { &centre } else { &about };
        let matrix = information(&products, own, n, temperature, curvature);
        let spread = temperature * lost * self.noise(PRODUCTS) * clip_products.powi(2) / m.sqrt();
        let mut information = Information::new(matrix, diagonal, d, spread);
        if around {
            for w in &mut information.values {
                *w = w.min(1.0 - NARROWING + NARROWING * *w);
            }
        }
        let noise = temperature * self.noise(GRADIENT) * clip / m.sqrt();
        self.go(&information, &slope, noise, around);
        Ok(())
    }

    /// Takes a Newton step, with new axes from the information at the point before it.
    fn go(&mut self, information: &Information, slope: &[f64], noise: f64, weighed: bool) {
        let d = slope.len();
        let (values, vectors) = (&information.values, &information.vectors);
        let projection = |k: usize| (0..d).map(|i| vectors[i * d + k] * slope[i]).sum::<f64>();
        let along: Vec<f64> = (0..d).map(projection).collect();
        // As in a Kalman filter: the variances of what was known of the centre, which may be off by
        // a posterior sd for other reasons than noise, and of what this slope says of it.
        let own = noise * noise * values.iter().map(|w| 1.0 / w).sum::<f64>() / d as f64;
        let before = self.start.variance + 1.0;
        let gain = if weighed && before.is_finite() {
            before / (before + own)
        } else {
            1.0
        };
        let step: Vec<f64> = (0..d)
            .map(|i| {
                let whole: f64 = (0..d)
                    .map(|k| vectors[i * d + k] * along[k] / values[k])
                    .sum();
                gain * whole
            })
            .collect();
        let axes: Vec<f64> = (0..d * d)
            .map(|at| vectors[at] / values[at % d].sqrt())
            .collect();
        let frame = self.start.frame.refined(&step, &axes);
        if !frame.is_sound() {
            return;
        }
        let squares = along.iter().zip(values);
        let squares = squares
            .map(|(s, w)| (s * s - noise * noise) / w)
            .sum::<f64>();
        self.start.last_step = (squares.max(0.0) / d as f64).sqrt();
        self.start.cut = false;
        self.start.unknown = information.unknown;
        self.start.variance = if weighed { gain * own } else { own };
        self.start.frame = frame;
        self.start.clip = self.start.usual_clip(self.plan);
    }

    /// Minus the second derivatives of log prior and Jacobian, in the coordinates u, by
    /// differences of gradients; only the diagonal if `diagonal`.
    fn prior_curvature(&mut self, diagonal: bool) -> Result<Vec<f64>, SampleError> {
        const STEP: f64 = 1e-3;
        let frame = &self.start.frame;
        let d = frame.dimension();
        let mut gradient = |j: usize, step: f64| -> Result<Vec<f64>, SampleError> {
            let mut u = vec![0.0; d];
            u[j] = step;
            Ok(frame.pull_back(&self.oracle.prior_gradient(&frame.point(&u))?))
        };
        let mut curvature = vec![0.0; d * d];
        for j in 0..d {
            let (after, before) = (gradient(j, STEP)?, gradient(j, -STEP)?);
            for i in 0..d {
                if !diagonal || i == j {
                    let entry = (before[i] - after[i]) / (2.0 * STEP);
                    curvature[i * d + j] += 0.5 * entry;
                    curvature[j * d + i] += 0.5 * entry;
                }
            }
        }
        Ok(curvature)
    }
}

/// Pairs u and -u for standard normal u, `count` points in all.
pub(super) fn pairs(count: u64, d: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let mut points = Vec::new();
    for _ in 0..count / 2 {
        let u: Vec<f64> = (0..d).map(|_| StandardNormal.sample(rng)).collect();
        let opposite = u.iter().map(|x| -x).collect();
        points.extend([u, opposite]);
    }
    points
}

/// sum += weight * x, where an empty sum stands for zeros.
pub(super) fn add(sum: &mut Vec<f64>, x: &[f64], weight: f64) {
    sum.resize(x.len(), 0.0);
    for (s, x) in sum.iter_mut().zip(x) {
        *s += weight * x;
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

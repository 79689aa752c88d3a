//! The rounds: the position and the curvature of the likelihood's maximum, and the noise in both.

use serde::{Deserialize, Serialize};

use super::axes::Axes;
use super::histogram::{BEYOND, Histogram};
use super::kalman;
use super::lines::{self, Asked};
use super::reach::{self, Reach};
use super::response::{Response, difference, sum};
use super::shares::{GUESSED_RECORDS, Shares};
use super::viewpoint::{self, Viewpoint};
use crate::density::{Density, Frame};
use crate::function::special::gamma_fractions;
use crate::linear::{Matrix, dot, length};
use crate::privacy::{Bins, Expected};
use crate::sampler::contract::form::{Form, Information, prior_curvature};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::Plan;

/// The belief about the centre before the first round: variances are `WIDER` times the prior's, and
/// at most about `WIDER` times `WIDEST` times the variance that one record leaves.
const WIDER: f64 = 4.0;
const WIDEST: f64 = 100.0;
/// The clip bound of records' information clips up to this share of the records, or `BALANCE` times
/// the number that balances the noise: what is clipped lies in several directions.
const CLIPPED_INFORMATION: f64 = 0.002;
const BALANCE: f64 = 4.0;
/// From the third round on, looks at the information are averaged while steps are below this many
/// posterior sds.
const NEAR: f64 = 12.0;
/// The weight of the loss by clipping where the model's own law balances what is clipped: this over
/// the expected noise, in posterior sds, since with less noise the law's own error is a larger part
/// of what remains, within limits; and the weight where the law is normal with known spread.
const BALANCED: f64 = 0.04;
const LIMITS: [f64; 2] = [0.1, 1.0];
const SYMMETRIC: f64 = 0.03;
/// The variance of a slope's noise is multiplied by this, to allow for clipping; by more where so
/// much noise is expected, in posterior sds, that slopes and axes are poorly known.
const ALLOWANCE: f64 = 1.5;
const FROM_NOISE: f64 = 0.3;
const TO_NOISE: f64 = 2.0;
/// The first of these for what records of all groups share: a normal likelihood in so many directions
/// leaves more to allow for.
const ALLOWANCE_BESIDE_GROUPS: f64 = 3.5;
/// A share of unseen squares up to this many sds of its noise is no sign of tails.
const CERTAIN: f64 = 2.0;
/// Lengths that are not seen are assumed to be at most this many units.
const UNSEEN: f64 = 4.0;
/// The least clip bound, in units of the root mean square of lengths, which is known in axes in which
/// the information is the identity: a far lower bound would come from noise mistaken for lengths.
const SHORTEST: f64 = 0.25;
/// The variance of the centre's error after a step, in posterior variances: always, and for each
/// unit of the step's mean square, from the first value for short steps to the second for those that
/// are a good part of one record's sd, over which the slope changes; more where the step was cut.
const DRIFT: f64 = 0.02;
const DRIFT_OF_STEP: [f64; 2] = [0.02, 0.15];
const DRIFT_OF_CUT: f64 = 4.0;
/// The same in each direction, as a share of the square of the step beyond `BY_NOISE` times the noise:
/// the second value where most of the squares of lengths are not seen.
const DRIFT_ALONG: f64 = 0.5;
const BY_NOISE: [f64; 2] = [4.0, 1.0];
/// The longest step where the response by the law is known, in sds of one record; else it is one.
const REACH: f64 = 4.0;
/// No step is longer than this many times the range of the prior.
const OF_PRIOR: f64 = 2.0;
/// The limits on eigenvalues of the slope used for steps, in units of the expected slope.
const SLOPES: [f64; 2] = [0.4, 1.5];
/// The clip bound of a slope clips up to this share of the records.
const CLIPPED_SLOPE: f64 = 0.01;
/// A certificate less probable than this overrules the belief.
const CONTRADICTED: f64 = 0.02;
/// The value that represents no information at all, in axes that may be far too short if noise set
/// their length: a prior that is as wide as ten thousand of them still decides.
const NOTHING: f64 = 1e-10;
/// The step of numerical differences, in posterior sds.
const STEP: f64 = 0.3;

/// What was learnt so far, from released values only. Positions and their covariances are in the
/// form's coordinates y; a *frame's* coordinates v, y = centre + axes v, are those in which the
/// information is about the identity.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// The point at y = 0: where the search in wide directions ended.
    origin: Vec<f64>,
    centre: Vec<f64>,
    /// The place from which records are looked at, where that is not the centre.
    viewpoint: Option<Viewpoint>,
    axes: Matrix,
    /// The inverse of `axes`.
    inverse: Matrix,
    /// Covariance of the centre's error.
    belief: Matrix,
    /// The number of records: noisy where it is private.
    records: f64,
    /// The search in the wide directions, until it has found where this one begins.
    wide: Option<Box<Search>>,
    looks: Vec<Look>,
    pub(super) steps: Vec<Movement>,
    /// Slopes of the released sums of gradients in the frame: the one used for steps, and the one
    /// claimed as information.
    slope: Matrix,
    claimed: Matrix,
    pub(super) clip: f64,
    /// The slope of clipped gradients over that of unclipped ones.
    pub(super) efficiency: f64,
    /// The share of directions whose information its noise could have made.
    pub(super) unknown: f64,
    /// Where gradients are not bounded, the share of the squares of their lengths that was not seen
    /// in the last round, and that neither the tails of the law nor the noise explains.
    pub(super) untold: f64,
    /// Whether lengths were hidden by noise in the last round.
    pub(super) blind: bool,
    pub(super) certificate: Option<Certificate>,
}

/// The information that one round released.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Look {
    information: Matrix,
    /// The approximate largest eigenvalue of its noise, in the axes of that round.
    spread: f64,
    inverse: Matrix,
    /// Length of the step that followed, in posterior sds.
    moved: f64,
}

/// A step of the centre.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Movement {
    /// Root mean square over coordinates, in posterior sds.
    pub length: f64,
    /// The same length, in sds of posterior and noise together.
    pub widths: f64,
    /// Whether the step was cut to the trust region.
    pub cut: bool,
    /// The mean square of the slope's deviation from the belief, in units of its expectation: 1 is
    /// expected.
    pub surprise: f64,
}

/// The result of the fresh look at the centre.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Certificate {
    /// The probability of a slope at least as large if all claims hold.
    pub p: f64,
    /// Standard deviation of its noise, in posterior sds.
    pub noise: f64,
}

/// The released likelihood: normal in y, y = lift (w - origin), where w is a point of the form's
/// space.
#[derive(Debug, Clone)]
pub(super) struct Likelihood {
    pub origin: Vec<f64>,
    pub root: Vec<f64>,
    /// The precision of the root, including its noise.
    pub precision: Matrix,
}

/// The fixed inputs of a round.
pub(super) struct Ground<'a> {
    pub form: &'a Form,
    pub density: &'a Density,
    pub plan: &'a Plan,
    pub shares: &'a Shares,
}

impl Search {
    /// The state before the first round, at y = 0, which represents the parameters `theta`.
    pub fn new(form: &Form, density: &Density, theta: &[f64], records: Option<u64>) -> Search {
        let m = form.coordinates as usize;
        let n = records.map_or(GUESSED_RECORDS, |n| n as f64);
        let least = 1.0 / (WIDER * WIDEST);
        let belief = if form.space.is_parameters() {
            let prior = positive(&prior_curvature(density, theta)).between(&form.base);
            prior.with_eigenvalues(|e| 1.0 / (e.max(0.0) / WIDER + least))
        } else {
            Matrix::identity(m).scaled(1.0 / least)
        };
        Search::at(form.origin(density, theta), belief, n)
    }

    /// The state before the first round at this origin.
    fn at(origin: Vec<f64>, belief: Matrix, records: f64) -> Search {
        let m = belief.rows();
        Search {
            origin,
            centre: vec![0.0; m],
            viewpoint: None,
            axes: Matrix::identity(m),
            inverse: Matrix::identity(m),
            belief,
            records,
            wide: None,
            looks: Vec::new(),
            steps: Vec::new(),
            slope: Matrix::identity(m),
            claimed: Matrix::identity(m),
            clip: 0.0,
            efficiency: 1.0,
            unknown: 1.0,
            untold: 0.0,
            blind: true,
            certificate: None,
        }
    }

    /// Whether the search is of this form, and all its numbers are finite.
    pub fn is_sound(&self, form: &Form) -> bool {
        let m = form.coordinates as usize;
        let matrices = [
            &self.axes,
            &self.inverse,
            &self.belief,
            &self.slope,
            &self.claimed,
        ];
        let square = |a: &Matrix| a.rows() == m && a.columns() == m && a.is_finite();
        let of_looks = self.looks.iter().flat_map(|l| [&l.information, &l.inverse]);
        let numbers = [&self.origin, &self.centre];
        matrices.into_iter().chain(of_looks).all(square)
            && self.origin.len() == form.base.rows()
            && self.centre.len() == m
            && self.viewpoint.iter().all(|viewpoint| viewpoint.is_sound(m))
            && self
                .wide
                .iter()
                .all(|wide| (form.in_wide_directions()).is_some_and(|form| wide.is_sound(&form)))
            && numbers.into_iter().flatten().all(|x| x.is_finite())
    }

    /// Mean variance of the noise in the centre, in posterior variances.
    pub fn noise(&self, form: &Form) -> f64 {
        let belief = self.belief.between(&self.inverse.transposed());
        mean_variance(&belief, &form.weights())
    }

    /// The learnt values as numbers that an audit can attack.
    pub fn numbers(&self, form: &Form) -> Vec<f64> {
        let mut numbers = sum(&self.origin, &form.base.times(&self.centre));
        let scales = (0..self.centre.len()).map(|j| self.belief[(j, j)]);
        let scales = scales.chain([self.clip, self.records, self.efficiency]);
        numbers.extend(scales.map(|x| x.max(1e-50).ln()));
        numbers
    }

    /// Runs one of the rounds, counted from 0. Where its result is not finite, the state stays as it
    /// was, except for the record of an endless step.
    pub fn round(
        &mut self,
        ground: &Ground,
        k: usize,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        if k < ground.shares.wide {
            return self.round_in_wide_directions(ground, k, oracle);
        }
        self.begin_where_wide_ended(ground.form);
        let before = self.clone();
        self.try_round(ground, k, k - ground.shares.wide, oracle)?;
        if !self.is_sound(ground.form) {
            *self = before;
            self.steps.push(Movement {
                length: f64::MAX,
                widths: f64::MAX,
                cut: true,
                surprise: f64::MAX,
            });
        }
        Ok(())
    }

    /// A round of a search in the wide directions.
    fn round_in_wide_directions(
        &mut self,
        ground: &Ground,
        k: usize,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let whole = ground.form;
        let Some((form, wide)) = whole.in_wide_directions().zip(whole.wide.as_ref()) else {
            return Ok(());
        };
        let mut search = self.wide.take().map_or_else(
            || {
                let known = self.belief.inverse().between(&wide.directions);
                Search::at(self.origin.clone(), known.inverse(), self.records)
            },
            |search| *search,
        );
        let ground = Ground {
            form: &form,
            ..*ground
        };
        let before = search.clone();
        search.try_round(&ground, k, k, oracle)?;
        if !search.is_sound(&form) {
            search = before;
        }
        self.wide = Some(Box::new(search));
        Ok(())
    }

    /// Begins at the place that the search in wide directions has found, even if its last rounds were lost.
    fn begin_where_wide_ended(&mut self, form: &Form) {
        if let Some((form, search)) = form.in_wide_directions().zip(self.wide.take()) {
            self.origin = sum(&search.origin, &form.base.times(&search.centre));
            self.records = search.records;
        }
    }

    /// A round, the `nth` of this search.
    fn try_round(
        &mut self,
        ground: &Ground,
        k: usize,
        nth: usize,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let Ground {
            form,
            density,
            plan,
            shares,
        } = *ground;
        let last = k + 1 == shares.rounds();
        let law = form.law(density);
        let temperature = plan.request.temperature;
        let m = form.coordinates as usize;
        if oracle.adds_up_rows() != plan.request.shared_units {
            return Err(SampleError::NotTheseUnits);
        }
        self.blind = false;
        if nth == 0 {
            self.scale_to(self.records * temperature, &form.weights());
        }

        // The information, and axes in which it is the identity.
        let (information, spread) = self.information(ground, law.as_ref(), (k, nth), oracle)?;
        let (own_slope, own_curvature) = self.prior(ground)?;
        let prior = own_curvature.between(&self.axes);
        let axes = match &form.blocks {
            None => Axes::of(&information, spread, &prior),
            Some(blocks) => {
                let sd = spread / (2.0 * m as f64).sqrt();
                Axes::of_blocks(&information, sd, &prior, blocks)
            }
        };
        self.unknown = axes.unknown;
        self.axes = &self.axes * &axes.inner;
        self.inverse = &axes.outer * &self.inverse;
        let prior = own_curvature.between(&self.axes);
        let weights = form.weights();
        let foreseen = &Matrix::diagonal(&squares(&weights)) - &prior;

        // The slope.
        let frame = self.frame(form);
        let theta = frame.centre().to_vec();
        let expected = law
            .as_ref()
            .map(|law| Expected::by_law(law, &form.space, &theta, &frame));
        let times = shares.gradients[k];
        let effective = temperature * self.records;
        let unit = (m as f64 / effective).sqrt();
        let ask = Asked {
            form,
            plan,
            frame: &frame,
            expected: expected.as_ref(),
            unit,
        };
        let counts = ask.histogram(lines::GRADIENT_LENGTHS, shares.others[k], oracle)?;
        if nth == 0 && form.information == Information::Public {
            self.count(plan, &counts.0);
        }
        let reach = (law.as_ref()).map(|law| Reach::of(form, density, law, &frame));
        let lengths = self.lengths(&counts, unit, reach.as_ref(), &foreseen);
        // The law has some of the unseen squares in lengths beyond those that are seen.
        let beyond = (reach.as_ref().zip(lengths.as_ref()))
            .and_then(|(reach, lengths)| reach.beyond(lengths.top() / unit));
        let unbounded = form.information == Information::Law { bounded: false };
        self.untold = match (&lengths, beyond) {
            (Some(lengths), Some(beyond)) if unbounded => {
                let noise = CERTAIN * lengths.noise_of_share();
                (lengths.missing_share() - beyond - noise).max(0.0)
            }
            _ => 0.0,
        };
        let noise = ask.noise(lines::GRADIENT, times);
        let (clip, efficiency, lost) = match &lengths {
            None => {
                self.blind = true;
                let clip = 2.0 * unit;
                let efficiency =
                    (reach.as_ref()).map_or(1.0, |reach| (2.0 / reach.mean().min(UNSEEN)).min(0.5));
                (clip, efficiency, 0.0)
            }
            Some(lengths) => {
                let (clip, lost) = clip_for(ground, lengths, noise, oracle.adds_up_rows());
                let clip = clip.max(SHORTEST * unit);
                // An upper bound for any lengths with that mean square.
                let most = clip / unit;
                (clip, lengths.efficiency(clip).min(most), lost)
            }
        };
        let efficiency = match form.information {
            Information::Curvature => 1.0,
            _ => efficiency,
        };
        let released = ask.sum(lines::GRADIENT, clip, clip, times, oracle)?;
        let noise = temperature * noise * clip;
        let lost = temperature * lost;
        // Of each of many groups there are too few simulated records.
        let response = (law.as_ref())
            .filter(|_| form.information != Information::Public && form.blocks.is_none())
            .map(|law| Response::new(form, density, law, &frame, effective));
        // Only for outcomes that are enumerated: with others, such as Student t, searches that use
        // it are lost more often.
        let by_direction = response.as_ref().filter(|r| r.tells_directions(m));
        let kept = by_direction
            .and_then(|response| response.efficiency(clip, efficiency, m))
            .unwrap_or_else(|| Matrix::identity(m).scaled(efficiency));
        self.slope = kept.between(&foreseen.with_eigenvalues(|e| e.max(0.0).sqrt()));
        self.claimed = match form.information {
            Information::Public => Matrix::diagonal(&axes.claims),
            _ => {
                let roots: Vec<f64> = axes.claims.iter().map(|claim| claim.sqrt()).collect();
                kept.between(&Matrix::diagonal(&roots))
            }
        };
        if last && shares.slope > 0.0 {
            self.look_at_slope(&ask, lengths.as_ref(), (clip, efficiency), oracle)?;
        }
        let (slopes, vectors) = self.claimed.eigen();
        let slopes: Vec<f64> = slopes.iter().map(|e| e.max(NOTHING)).collect();
        self.claimed = Matrix::diagonal(&slopes).between(&vectors.transposed());

        // A Kalman step.
        let slope = &self.slope + &prior;
        let own = self.axes.transposed().times(&own_slope);
        let (explained, doubts) = self.explained(&slope);
        let off: Vec<f64> = (0..m)
            .map(|j| temperature * released[j] + own[j] - explained[j])
            .collect();
        let allowance = if form.blocks.is_some() {
            ALLOWANCE_BESIDE_GROUPS
        } else {
            ALLOWANCE
        };
        let allowance = allowance + (shares.foreseen.min(TO_NOISE) - FROM_NOISE).max(0.0);
        let variance = allowance * noise * noise + lost * lost;
        let mut variances = noise_in(form, variance, noise * noise);
        for (variance, doubt) in variances.iter_mut().zip(doubts) {
            *variance += doubt;
        }
        let mut belief = self.belief.between(&self.inverse.transposed());
        // Where the slope's own error is known, steps so far were off by that share of the way; and an
        // observation is less exact, the farther off what it is to show.
        let way = self.inverse.times(&self.centre);
        for j in 0..m {
            belief[(j, j)] += (axes.errors[j] * way[j]).powi(2);
            let error = axes.errors[j] * efficiency * weights[j].powi(2);
            variances[j] += error * error * belief[(j, j)];
        }
        let surprise = kalman::contradiction(&mut belief, &slope, &variances, &off);
        let (mut step, mut left) = kalman::step(&belief, &slope, &variances, &off);
        let answered = response.as_ref().and_then(|response| {
            response.instead_of(&step, &left, variance / (efficiency * efficiency))
        });
        // A quadratic is the same everywhere.
        let is_quadratic = form.information == Information::Public;
        let reach = if is_quadratic {
            f64::INFINITY
        } else if answered.is_some() {
            REACH * effective.sqrt()
        } else {
            effective.sqrt()
        };
        step = answered.unwrap_or(step);
        // What groups are thought to be is limited by the prior, from whose view records are seen.
        let limited = form.apart_from_alike_groups();
        let of_limited = |x: &[f64]| -> Vec<f64> {
            let kept = x.iter().zip(&limited);
            kept.map(|(x, limited)| if *limited { *x } else { 0.0 })
                .collect()
        };
        let free = of_limited(&step);
        let of_prior = (form.base.times(&self.axes.times(&free)).iter())
            .zip(&form.spread)
            .map(|(moved, spread)| OF_PRIOR * spread / moved.abs().max(f64::MIN_POSITIVE))
            .fold(f64::INFINITY, f64::min);
        let share = (reach / length(&products(&free, &weights))).min(of_prior);
        let cut = share < 1.0;
        if cut {
            for (x, free) in step.iter_mut().zip(free) {
                *x += (share - 1.0) * free;
            }
        }
        let in_sds = products(&step, &weights);
        let square = dot(&in_sds, &in_sds) / m.max(1) as f64;
        if let Some(stretch) = by_direction.and_then(|response| response.stretch(&step)) {
            left = left.between(&stretch.transposed());
            self.claimed = self.claimed.between(&stretch.inverse());
        }
        let width = (1.0 + mean_variance(&left, &weights).max(0.0)).sqrt();
        // Where a step was longer than the noise explains, the next may be as long, above all where
        // few records have most of the information.
        let missing = lengths.as_ref().map_or(0.0, Histogram::missing_share);
        let by_noise = BY_NOISE[usize::from(missing > 0.5)];
        let squares: Vec<f64> = (0..m)
            .map(|j| step[j] * step[j] - by_noise * left[(j, j)])
            .collect();
        let more: Vec<f64> = (pooled(form, squares).iter())
            .map(|square| DRIFT_ALONG * square.max(0.0))
            .collect();
        let of_free = of_limited(&in_sds);
        let squares = dot(&of_free, &of_free);
        let count = limited.iter().filter(|limited| **limited).count();
        let [least, most] = DRIFT_OF_STEP;
        let drifts: Vec<f64> = (0..m)
            .map(|j| {
                let mut of_step = if is_quadratic {
                    most
                } else {
                    most.min(least + squares / effective) + axes.doubtful[j]
                };
                if cut {
                    of_step += DRIFT_OF_CUT;
                }
                let of_step = if limited[j] {
                    of_step * squares / count as f64
                } else {
                    0.0
                };
                let always = if last || is_quadratic { 0.0 } else { DRIFT };
                (of_step + always) / weights[j].powi(2)
            })
            .collect();
        left = &left.with_eigenvalues(|e| e.max(1e-12)) + &Matrix::diagonal(&drifts);
        if !is_quadratic {
            left = &left + &Matrix::diagonal(&more);
        }
        self.belief = left.between(&self.axes.transposed());
        for (c, s) in self.centre.iter_mut().zip(self.axes.times(&step)) {
            *c += s;
        }
        if let Some(look) = self.looks.last_mut() {
            look.moved = square.sqrt();
        }
        self.clip = clip;
        self.efficiency = efficiency;
        self.steps.push(Movement {
            length: square.sqrt(),
            widths: square.sqrt() / width,
            cut,
            surprise,
        });
        Ok(())
    }

    /// Sets axes in which a record's information, about the identity in y, is 1 / `records`.
    fn scale_to(&mut self, records: f64, weights: &[f64]) {
        let root = records.max(1.0).sqrt();
        let scales: Vec<f64> = weights.iter().map(|w| root / w).collect();
        self.inverse = Matrix::diagonal(&scales);
        let scales: Vec<f64> = scales.iter().map(|s| s.recip()).collect();
        self.axes = Matrix::diagonal(&scales);
    }

    /// Takes the number of records from noisy counts, where it is private.
    fn count(&mut self, plan: &Plan, counts: &[f64]) {
        if plan.request.records.is_none() {
            self.records = counts.iter().sum::<f64>().max(1.0);
        }
    }

    /// The visible lengths of gradients: `counts` with noise of their sd, in bins around `unit`. In
    /// axes in which the information is `foreseen`, the law gives their mean square.
    fn lengths(
        &self,
        (counts, sd): &(Vec<f64>, f64),
        unit: f64,
        reach: Option<&Reach>,
        foreseen: &Matrix,
    ) -> Option<Histogram> {
        let seen = Histogram::seen(counts, *sd, (Bins::GRADIENT, unit), self.records)?;
        let square = unit * unit * foreseen.trace() / foreseen.rows().max(1) as f64;
        Some(match reach {
            Some(reach) => seen.with_mean_square(square, unit * reach.mean()),
            None => seen,
        })
    }

    /// The information about y in all records, in the axes, and the approximate largest eigenvalue
    /// of its noise.
    fn information(
        &mut self,
        ground: &Ground,
        law: Option<&crate::density::Law>,
        (k, nth): (usize, usize),
        oracle: &mut dyn Oracle,
    ) -> Result<(Matrix, f64), SampleError> {
        let Ground {
            form,
            density,
            plan,
            shares,
        } = *ground;
        let temperature = plan.request.temperature;
        if form.information == Information::Public {
            let records = temperature * self.records;
            return Ok(((&self.axes.transposed() * &self.axes).scaled(records), 0.0));
        }
        let m = form.coordinates as usize;
        let frame = self.frame(form);
        let theta = frame.centre().to_vec();
        let expected = match law {
            Some(law) => Expected::by_law(law, &form.space, &theta, &frame),
            None => Expected::by_differences(density, &form.space, &frame, STEP),
        };
        let signed = form.information == Information::Curvature && k + 1 == shares.rounds();
        let [of_lengths, of_sum] = if signed {
            [lines::CURVATURE_LENGTHS, lines::CURVATURE]
        } else {
            [lines::INFORMATION_LENGTHS, lines::INFORMATION]
        };
        let unit = m as f64 / (temperature * self.records);
        let ask = Asked {
            form,
            plan,
            frame: &frame,
            expected: Some(&expected),
            unit,
        };
        let times = shares.others[k];
        let (counts, sd) = ask.histogram(of_lengths, times, oracle)?;
        if nth == 0 {
            self.count(plan, &counts);
        }
        let lengths = Histogram::seen(&counts, sd, (Bins::INFORMATION, unit), self.records);
        let tau = plan.lines[of_sum].tau / (times as f64).sqrt();
        let root = (2.0 * m as f64).sqrt();
        let (clip, lost) = match &lengths {
            None => {
                self.blind = true;
                (2.0 * unit, 1.0)
            }
            Some(lengths) => {
                let noise = tau * root;
                // The axes of the first round are those of simulated records, whose covariates need
                // not be like the real ones.
                let clip = match law.filter(|_| nth > 0) {
                    Some(law) => {
                        let mean = unit * reach::norm_over_trace(form, density, law, &frame);
                        lengths
                            .with_mean(mean)
                            .bound_of_least_error(noise, BALANCE.recip())
                    }
                    None => {
                        let clipped = (BALANCE * noise).max(CLIPPED_INFORMATION * self.records);
                        lengths.exceeded_by(clipped)
                    }
                };
                (clip, lengths.lost_factor(clip))
            }
        };
        let sum = ask.sum(of_sum, clip, f64::INFINITY, times, oracle)?;
        let scale = temperature * lost;
        let found = Matrix::of_triangle(&sum, m).scaled(scale);
        let spread = scale * clip * ask.noise(of_sum, times) * root;
        if signed {
            self.looks.clear();
        }
        self.looks.push(Look {
            information: found.between(&self.inverse),
            spread,
            inverse: self.inverse.clone(),
            moved: 0.0,
        });
        let near = self.steps.last().is_some_and(|step| step.length < NEAR);
        if nth >= 2 && near && self.looks.len() > 1 {
            Ok(self.averaged())
        } else {
            Ok((found, spread))
        }
    }

    /// The average information over the looks whose steps were short, weighted by their noise in
    /// these axes.
    fn averaged(&self) -> (Matrix, f64) {
        let m = self.centre.len();
        let (mut sum, mut weights) = (Matrix::new(m, m, |_, _| 0.0), 0.0);
        for look in &self.looks {
            if look.moved < NEAR {
                let stretch = (&look.inverse * &self.axes).norm();
                let weight = (look.spread * stretch * stretch).powi(-2);
                sum = &sum + &look.information.between(&self.axes).scaled(weight);
                weights += weight;
            }
        }
        (sum.scaled(1.0 / weights), weights.sqrt().recip())
    }

    /// Releases the slope of the sum of clipped gradients, and mixes it with the expected slope,
    /// with a weight that depends on its noise.
    fn look_at_slope(
        &mut self,
        ask: &Asked,
        lengths: Option<&Histogram>,
        (clip, efficiency): (f64, f64),
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let m = self.centre.len();
        let temperature = ask.plan.request.temperature;
        let bound = match lengths {
            Some(lengths) => {
                let longest = lengths.exceeded_by(CLIPPED_SLOPE * self.records);
                (8.0 * clip * clip).min(clip * longest)
            }
            None => clip * clip,
        };
        let sum = ask.sum(lines::SLOPE, bound, clip, 1, oracle)?;
        let seen = Matrix::of_triangle(&sum, m).scaled(temperature);
        let seen = match &ask.form.blocks {
            Some(blocks) => blocks.of_arrow(&seen),
            None => seen,
        };
        let spread = temperature * bound * ask.noise(lines::SLOPE, 1) * (2.0 * m as f64).sqrt();
        let weight = 1.0 / (1.0 + (spread / efficiency.max(1e-3)).powi(2));
        let mixed = |foreseen: &Matrix| &seen.scaled(weight) + &foreseen.scaled(1.0 - weight);
        let [least, most] = SLOPES;
        let weights = ask.form.weights();
        let (units, back) = (
            Matrix::diagonal(&weights),
            Matrix::diagonal(&weights).inverse(),
        );
        let within = |slope: Matrix, least: f64| {
            let slope = slope.between(&back);
            slope
                .with_eigenvalues(|e| e.clamp(least, most))
                .between(&units)
        };
        self.claimed = within(mixed(&self.claimed), NOTHING);
        self.slope = within(mixed(&self.slope), least * efficiency);
        Ok(())
    }

    /// Takes a fresh look at the centre with a wide clip bound, and a last step from its result.
    pub fn certify(&mut self, ground: &Ground, oracle: &mut dyn Oracle) -> Result<(), SampleError> {
        let Ground {
            form,
            density,
            plan,
            ..
        } = *ground;
        let m = form.coordinates as usize;
        let temperature = plan.request.temperature;
        let law = form.law(density);
        let frame = self.frame(form);
        let theta = frame.centre().to_vec();
        let expected = law
            .as_ref()
            .map(|law| Expected::by_law(law, &form.space, &theta, &frame));
        let unit = (m as f64 / (temperature * self.records)).sqrt();
        let ask = Asked {
            form,
            plan,
            frame: &frame,
            expected: expected.as_ref(),
            unit,
        };
        let (own_slope, own_curvature) = self.prior(ground)?;
        let prior = own_curvature.between(&self.axes);
        let foreseen = &Matrix::diagonal(&squares(&form.weights())) - &prior;
        let counts = ask.histogram(lines::CERTIFICATE_LENGTHS, 1, oracle)?;
        let reach = (law.as_ref()).map(|law| Reach::of(form, density, law, &frame));
        let lengths = self.lengths(&counts, unit, reach.as_ref(), &foreseen);
        let clip = match &lengths {
            Some(lengths) => self.clip.max(BEYOND * lengths.top()),
            None => self.clip,
        };
        let efficiency = match (form.information, &lengths) {
            (Information::Curvature, _) => 1.0,
            (_, Some(lengths)) => lengths.efficiency(clip),
            (_, None) => self.efficiency,
        };
        let released = ask.sum(lines::CERTIFICATE, clip, clip, 1, oracle)?;
        let noise = temperature * clip * ask.noise(lines::CERTIFICATE, 1);
        let own = self.axes.transposed().times(&own_slope);
        let slope = &foreseen.scaled(efficiency) + &prior;
        let (explained, doubts) = self.explained(&slope);
        let off: Vec<f64> = (0..m)
            .map(|j| temperature * released[j] + own[j] - explained[j])
            .collect();
        let variances: Vec<f64> = doubts.iter().map(|doubt| noise * noise + doubt).collect();
        let mut belief = self.belief.between(&self.inverse.transposed());
        let chi_square = kalman::unexpected(&belief, &slope, &variances, &off);
        let p = gamma_fractions(0.5 * m as f64, 0.5 * chi_square).1;
        if p < CONTRADICTED {
            belief = &belief + &Matrix::square_of(&slope.inverse().times(&off));
        }
        let (step, left) = kalman::step(&belief, &slope, &variances, &off);
        self.belief = left
            .with_eigenvalues(|e| e.max(1e-12))
            .between(&self.axes.transposed());
        for (c, s) in self.centre.iter_mut().zip(self.axes.times(&step)) {
            *c += s;
        }
        self.certificate = Some(Certificate { p, noise });
        Ok(())
    }

    /// The released likelihood.
    pub fn likelihood(&self, form: &Form, density: &Density) -> Likelihood {
        let m = self.centre.len();
        let (own_slope, _) = self.prior_at(form, density);
        let own = self.axes.transposed().times(&own_slope);
        let identity = Matrix::identity(m).scaled(NOTHING);
        let back = (&self.slope + &identity).inverse();
        let root: Vec<f64> = back.times(&own).iter().map(|x| -x).collect();
        let belief = self.belief.between(&self.inverse.transposed());
        let covariance = &(&self.claimed + &identity).inverse() + &belief;
        let mut centre = self.centre.clone();
        for (c, s) in centre.iter_mut().zip(self.axes.times(&root)) {
            *c += s;
        }
        Likelihood {
            origin: self.origin.clone(),
            root: centre,
            precision: covariance.inverse().between(&self.inverse),
        }
    }

    /// Looks at records from the mean of these draws of y from now on, if it is finite.
    pub fn look_from(&mut self, ground: &Ground, draws: &[Vec<f64>]) {
        let at = viewpoint::mean(draws);
        if !at.iter().all(|x| x.is_finite()) {
            return;
        }
        let Ground {
            form,
            density,
            plan,
            ..
        } = *ground;
        self.viewpoint = Some(Viewpoint::at(at));
        if let (Some(law), Some(viewpoint)) = (form.law(density), &mut self.viewpoint) {
            let frame = frame_at(form, &self.origin, &viewpoint.at, &self.axes);
            let effective = plan.request.temperature * self.records;
            let response = Response::new(form, density, &law, &frame, effective);
            viewpoint.expect(form, &response, draws, &self.inverse);
        }
    }

    /// The slope that is expected at the viewpoint if the centre is right, and the variances of its
    /// error.
    fn explained(&self, slope: &Matrix) -> (Vec<f64>, Vec<f64>) {
        let Some(viewpoint) = &self.viewpoint else {
            let none = vec![0.0; self.centre.len()];
            return (none.clone(), none);
        };
        let aside = (self.inverse).times(&difference(&self.centre, &viewpoint.at));
        let (even, variances) = viewpoint.even_part(&self.axes, self.efficiency);
        (sum(&slope.times(&aside), &even), variances)
    }

    /// The coordinates v about the viewpoint.
    fn frame(&self, form: &Form) -> Frame {
        let at = self.viewpoint.as_ref().map_or(&self.centre, |v| &v.at);
        frame_at(form, &self.origin, at, &self.axes)
    }

    /// The gradient of the log prior in y, and minus its second derivatives, made positive.
    fn prior(&self, ground: &Ground) -> Result<(Vec<f64>, Matrix), SampleError> {
        let (slope, curvature) = self.prior_at(ground.form, ground.density);
        if slope.iter().all(|x| x.is_finite()) {
            Ok((slope, curvature))
        } else {
            Err(SampleError::NoInitialPoint)
        }
    }

    fn prior_at(&self, form: &Form, density: &Density) -> (Vec<f64>, Matrix) {
        let m = self.centre.len();
        if !form.space.is_parameters() {
            // The prior is added at the end.
            return (vec![0.0; m], Matrix::new(m, m, |_, _| 0.0));
        }
        let frame = self.frame(form);
        let theta = frame.centre();
        let slope = density.pull_back(theta, &[]).1;
        let curvature = positive(&prior_curvature(density, theta));
        (
            form.base.transposed().times(&slope),
            curvature.between(&form.base),
        )
    }
}

/// The coordinates v about y = `at`.
fn frame_at(form: &Form, origin: &[f64], at: &[f64], axes: &Matrix) -> Frame {
    let point = sum(origin, &form.base.times(at));
    Frame::new(point, (&form.base * axes).entries().to_vec())
}

/// The clip bound of gradients with these lengths, and the sd of the error that clipping may leave.
fn clip_for(ground: &Ground, lengths: &Histogram, noise: f64, adds_up_rows: bool) -> (f64, f64) {
    let root = (ground.form.coordinates as f64).sqrt();
    match ground.form.information {
        Information::Law { bounded: true } if !adds_up_rows => {
            let [least, most] = LIMITS;
            let weight = (BALANCED / ground.shares.foreseen).clamp(least, most);
            (lengths.best_clip(noise * root, weight), 0.0)
        }
        Information::Public => (lengths.best_clip(noise * root, SYMMETRIC), 0.0),
        // Tails may not be the model's, and rows of a unit may be alike: the loss by clipping may lie
        // in one direction.
        Information::Law { .. } | Information::Curvature => {
            let clip = lengths.best_clip(noise, 1.0);
            (clip, lengths.lost_sum(clip))
        }
    }
}

/// The matrix without its negative eigenvalues.
fn positive(a: &Matrix) -> Matrix {
    a.with_eigenvalues(|e| e.max(0.0))
}

/// The mean variance in posterior variances, of errors in axes with these weights.
fn mean_variance(covariance: &Matrix, weights: &[f64]) -> f64 {
    let sum: f64 = (weights.iter().enumerate())
        .map(|(j, w)| w * w * covariance[(j, j)])
        .sum();
    sum / weights.len().max(1) as f64
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

fn squares(a: &[f64]) -> Vec<f64> {
    products(a, a)
}

/// The variances of the noise in a slope: `allowed`, and `own` in coordinates of groups, where noise that
/// is believed to be larger than it is would make groups seem more alike than they are.
fn noise_in(form: &Form, allowed: f64, own: f64) -> Vec<f64> {
    let mut noise = vec![allowed; form.coordinates as usize];
    for &j in form
        .blocks
        .iter()
        .flat_map(|blocks| blocks.groups.iter().flatten())
    {
        noise[j] = own;
    }
    noise
}

/// The values with those of groups replaced by their mean.
fn pooled(form: &Form, mut values: Vec<f64>) -> Vec<f64> {
    if let Some(blocks) = &form.blocks {
        let grouped: Vec<usize> = blocks.groups.iter().flatten().copied().collect();
        let sum: f64 = grouped.iter().map(|&j| values[j]).sum();
        for &j in &grouped {
            values[j] = sum / grouped.len() as f64;
        }
    }
    values
}

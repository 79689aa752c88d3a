//! The rounds: the position and the curvature of the likelihood's maximum, and the noise in both.

mod advance;
mod certificate;
mod conflict;
mod gradient;
mod information;
mod level;
mod revision;
mod secant;

use serde::{Deserialize, Serialize};

use super::axes::Axes;
use super::form::{Form, Information};
use super::response::{Response, difference, sum};
use super::shares::{GUESSED_RECORDS, Shares};
use super::viewpoint::{self, Viewpoint};
use crate::density::{Density, Frame, Law};
use crate::linear::Matrix;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::Plan;
use crate::sampler::prior::prior_curvature;
pub(super) use conflict::Conflict;
use information::ClippedInformation;
use revision::Step;
use secant::{Gradient, Secant};

/// The belief about the centre before the first round: variances are `WIDER` times the prior's, and
/// at most about `WIDER` times `WIDEST` times the variance that one record leaves.
const WIDER: f64 = 4.0;
const WIDEST: f64 = 100.0;
/// The value that represents no information at all, in axes that may be far too short if noise set
/// their length: a prior that is as wide as ten thousand of them still decides.
const NOTHING: f64 = 1e-10;
/// The least information, in these axes, that says how far away the likelihood's maximum is.
const LEAST_KNOWN: f64 = 1e-3;

/// The results of the rounds so far, from released values only. Positions and their covariances are in the
/// form's coordinates y; a *frame's* coordinates v, y = centre + axes v, are those in which the
/// information is about the identity.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// The point at y = 0: where the search in wide directions ended.
    origin: Vec<f64>,
    centre: Vec<f64>,
    /// How far beyond the centre the likelihood's maximum is believed to be, where a step was shorter than believed.
    ahead: Vec<f64>,
    /// The place from which records are looked at, where that is not the centre.
    viewpoint: Option<Viewpoint>,
    axes: Matrix,
    /// The inverse of `axes`.
    inverse: Matrix,
    /// Covariance of the centre's error.
    pub(super) belief: Matrix,
    /// The same before the first round, and the steps since.
    first_belief: Matrix,
    history: Vec<Step>,
    /// The number of records: noisy where it is private.
    records: f64,
    /// The search in the wide directions, until it has found where this one begins.
    wide: Option<Box<Search>>,
    looks: Vec<ReleasedInformation>,
    /// The last gradient, and steps that went beyond the maximum.
    gradient: Option<Gradient>,
    secants: Vec<Secant>,
    pub(super) steps: Vec<Movement>,
    /// Slopes of the released sums of gradients in the frame: the one used for steps, and the one
    /// claimed as information.
    slope: Matrix,
    claimed: Matrix,
    /// The information about y that was seen so far, as the law carries it to the centre.
    seen: Matrix,
    /// The standard deviation of the error of the slope, for each direction of the frame.
    slope_errors: Vec<f64>,
    /// The information that is expected in each direction of the frame, the prior's included.
    expected: Vec<f64>,
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
    /// The pull that clipping took from records that the model's law hardly has, where that was asked for.
    pub(super) clipped: Option<Clipped>,
}

/// The information that one round released.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleasedInformation {
    information: Matrix,
    /// The approximate largest eigenvalue of its noise, in the axes of that round.
    spread: f64,
    inverse: Matrix,
    /// The place from which records were looked at.
    place: Vec<f64>,
    /// Length of the step that followed, in posterior sds.
    moved: f64,
    /// As in [`ClippedInformation`].
    factors: Vec<f64>,
}

/// A step of the centre.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Movement {
    /// Root mean square over coordinates, in posterior sds.
    pub length: f64,
    /// The length before it was cut, beyond what was believed before, in sds of posterior and noise together.
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

/// A pull in posterior sds, if all of it were in one direction, and the sd of its noise.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clipped {
    pub sds: f64,
    pub noise: f64,
}

/// The released likelihood: normal in y, y = lift (w - origin), where w is a point of the form's
/// space.
#[derive(Debug, Clone)]
pub(super) struct Likelihood {
    pub origin: Vec<f64>,
    /// The place near which it was seen.
    pub centre: Vec<f64>,
    pub root: Vec<f64>,
    /// The precision of the root, including its noise, and without.
    pub precision: Matrix,
    pub known: Matrix,
}

#[cfg(test)]
impl Likelihood {
    /// A likelihood without noise whose maximum is the origin.
    pub fn around(origin: Vec<f64>, precision: Matrix) -> Likelihood {
        let nowhere = vec![0.0; precision.rows()];
        Likelihood {
            origin,
            centre: nowhere.clone(),
            root: nowhere,
            known: precision.clone(),
            precision,
        }
    }
}

/// The log density near the centre, as far as it is known, in the frame.
struct LocalModel {
    /// The gradient of the log prior, and minus its second derivatives.
    own: Vec<f64>,
    prior: Matrix,
    /// The records' information.
    known: Matrix,
}

/// The fixed inputs of a round.
pub(super) struct RoundInputs<'a> {
    pub form: &'a Form,
    pub density: &'a Density,
    pub plan: &'a Plan,
    pub shares: &'a Shares,
    /// The columns of [`simulated`](super::response::simulated) records.
    pub simulated: &'a [Vec<f64>],
}

/// The axes to which a round turns, and what is known in them.
struct RoundAxes {
    axes: Axes,
    /// The gradient of the log prior in y.
    own_slope: Vec<f64>,
    /// Minus its second derivatives in the frame, made positive.
    prior: Matrix,
    /// The records' information that is expected in the frame.
    foreseen: Matrix,
    /// The records' information that the axes allow for, of which noise may be a part.
    allowed: Matrix,
}

impl Search {
    /// The state before the first round, at y = 0, which represents the parameters `theta`.
    pub fn new(form: &Form, density: &Density, theta: &[f64], records: Option<u64>) -> Search {
        let n = records.map_or(GUESSED_RECORDS, |n| n as f64);
        let least = 1.0 / (WIDER * WIDEST);
        let prior = if form.space.is_parameters() {
            positive(&prior_curvature(density, theta)).between(&form.base)
        } else {
            form.limits_of_prior()
        };
        let belief = prior.with_eigenvalues(|e| 1.0 / (e.max(0.0) / WIDER + least));
        Search::at(form.origin(density, theta), belief, n)
    }

    /// The state before the first round at this origin.
    fn at(origin: Vec<f64>, belief: Matrix, records: f64) -> Search {
        let m = belief.rows();
        Search {
            origin,
            centre: vec![0.0; m],
            ahead: vec![0.0; m],
            viewpoint: None,
            axes: Matrix::identity(m),
            inverse: Matrix::identity(m),
            first_belief: belief.clone(),
            history: Vec::new(),
            belief,
            records,
            wide: None,
            looks: Vec::new(),
            gradient: None,
            secants: Vec::new(),
            steps: Vec::new(),
            slope: Matrix::identity(m),
            claimed: Matrix::identity(m),
            seen: Matrix::identity(m).scaled(0.0),
            slope_errors: vec![0.0; m],
            expected: vec![1.0; m],
            clip: 0.0,
            efficiency: 1.0,
            unknown: 1.0,
            untold: 0.0,
            blind: true,
            certificate: None,
            clipped: None,
        }
    }

    /// Whether the search is of this form, and all its numbers are finite.
    pub fn is_sound(&self, form: &Form) -> bool {
        let m = form.coordinates as usize;
        let matrices = [
            &self.axes,
            &self.inverse,
            &self.belief,
            &self.first_belief,
            &self.slope,
            &self.claimed,
            &self.seen,
        ];
        let square = |a: &Matrix| a.rows() == m && a.columns() == m && a.is_finite();
        let of_looks = self.looks.iter().flat_map(|l| [&l.information, &l.inverse]);
        let mut centres = (self.looks.iter().map(|l| &l.place)).chain([&self.centre, &self.ahead]);
        let mut of_directions =
            (self.looks.iter().map(|l| &l.factors)).chain([&self.slope_errors, &self.expected]);
        let numbers = (self.origin.iter().chain(centres.clone().flatten()))
            .chain(of_directions.clone().flatten());
        matrices.into_iter().chain(of_looks).all(square)
            && self.origin.len() == form.base.rows()
            && of_directions.all(|x| x.len() == m)
            && centres.all(|centre| centre.len() == m)
            && self.history.iter().all(|step| step.is_sound(m))
            && (self.gradient.iter()).all(|gradient| gradient.is_sound(m))
            && self.secants.iter().all(|secant| secant.is_sound(m))
            && self.viewpoint.iter().all(|viewpoint| viewpoint.is_sound(m))
            && self
                .wide
                .iter()
                .all(|wide| (form.in_wide_directions()).is_some_and(|form| wide.is_sound(&form)))
            && numbers.into_iter().all(|x| x.is_finite())
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
        ground: &RoundInputs,
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
        ground: &RoundInputs,
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
        let ground = RoundInputs {
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

    /// Begins at the place that the search in wide directions has found, as far as it is known better than by the
    /// prior, even if its last rounds were lost.
    fn begin_where_wide_ended(&mut self, form: &Form) {
        if let Some((form, search)) = form.in_wide_directions().zip(self.wide.take()) {
            let known = search.belief.inverse();
            let both = &known + &form.limits_of_prior();
            let believed = sum(&search.centre, &search.ahead);
            let place = both.inverse().times(&known.times(&believed));
            self.origin = sum(&search.origin, &form.base.times(&place));
            self.records = search.records;
        }
    }

    /// A round, the `nth` of this search.
    fn try_round(
        &mut self,
        ground: &RoundInputs,
        k: usize,
        nth: usize,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let RoundInputs {
            form,
            density,
            plan,
            shares,
            ..
        } = *ground;
        self.blind = false;
        if nth == 0 {
            let records = self.records * plan.request.temperature;
            self.scale_to(records, &form.weights());
        }
        let law = form.law(density);
        let law = law.as_ref();
        self.carry_axes(ground, law)?;
        let turned = self.turn(ground, law, (k, nth), oracle)?;
        let frame = self.frame(form);
        let observed = self.look_at_gradients(ground, &turned, (law, &frame), (k, nth), oracle)?;
        self.advance(ground, &turned, observed, shares.rounds() - 1 - k);
        Ok(())
    }

    /// Turns to axes in which the information is the identity.
    fn turn(
        &mut self,
        ground: &RoundInputs,
        law: Option<&Law>,
        (k, nth): (usize, usize),
        oracle: &mut dyn Oracle,
    ) -> Result<RoundAxes, SampleError> {
        let form = ground.form;
        let by_law = self.information_by_law(ground, law);
        let ClippedInformation {
            information,
            spread,
            factors,
            lost,
        } = self.information(ground, law, (k, nth), oracle)?;
        let (own_slope, own_curvature) = self.prior(ground)?;
        // Where the prior is added at the end, axes are limited by its width nevertheless.
        let limits = if form.space.is_parameters() {
            own_curvature.clone()
        } else {
            form.limits_of_prior()
        };
        let before = limits.between(&self.axes);
        let axes = match &form.blocks {
            None => {
                let effective = ground.plan.request.temperature * self.records;
                let whole = &information + &before;
                let whole = match &by_law {
                    Some(by_law) => self.without_decline(whole, spread, by_law, effective),
                    None => whole,
                };
                let least = self.with_secants(whole, 1.0);
                Axes::of(&information, spread, &before, &least, lost.as_ref())
            }
            Some(blocks) => {
                let sd = spread / (2.0 * form.coordinates as f64).sqrt();
                Axes::of_blocks(&information, (sd, &factors), &before, blocks)
            }
        };
        self.unknown = axes.unknown;
        self.note_claims(&axes);
        self.axes = &self.axes * &axes.inner;
        self.inverse = &axes.outer * &self.inverse;
        self.turned_by(&axes.outer);
        self.expected = squares(&form.weights());
        // For other outcomes, intervals became wider by it, and no truer (docs/results.md).
        if !form.space.is_parameters() || form.information == (Information::Law { bounded: true }) {
            self.expected = products(&axes.expected, &self.expected);
        }
        let limits = limits.between(&self.axes);
        Ok(RoundAxes {
            foreseen: &Matrix::diagonal(&self.expected) - &limits,
            allowed: &Matrix::diagonal(&squares(&form.weights())) - &limits,
            axes,
            own_slope,
            prior: own_curvature.between(&self.axes),
        })
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

    /// The released likelihood.
    ///
    /// Where the parameters are x, the slope of the log likelihood at the centre c has the mean J (x - c) and, as its
    /// variance, the records' information J. It was found to be minus that of the log prior, with noise of the
    /// covariance H V H, where V is that of the error in c, and H = J + P contains the prior's curvature P, since c is
    /// where both slopes cancel. So the likelihood has its maximum at c - J^-1 g, where g is the slope of the log
    /// prior, and the precision J (J + H V H)^-1 J.
    pub fn likelihood(&self, form: &Form, density: &Density) -> Likelihood {
        let LocalModel { own, prior, known } = self.local(form, density);
        let whole = &known + &prior;
        let belief = self.belief.between(&self.inverse.transposed());
        let variance = &known + &belief.between(&whole);
        let nothing = Matrix::identity(own.len()).scaled(NOTHING);
        let precision = &variance.inverse().between(&known) + &nothing;
        let aside = known.with_eigenvalues(|e| -e.max(LEAST_KNOWN).recip());
        Likelihood {
            origin: self.origin.clone(),
            centre: self.centre.clone(),
            root: sum(&self.centre, &self.axes.times(&aside.times(&own))),
            precision: precision.between(&self.inverse),
            known: known.between(&self.inverse),
        }
    }

    /// The log density near the centre, as far as it is known, in the frame.
    fn local(&self, form: &Form, density: &Density) -> LocalModel {
        let (own, prior) = self.prior_at(form, density);
        let seen = self.seen.between(&self.axes).scaled(self.efficiency);
        LocalModel {
            own: self.axes.transposed().times(&own),
            prior: prior.between(&self.axes),
            known: match self.history.last() {
                Some(last) => either(&self.claimed, &within(&seen, &last.hidden)),
                None => self.claimed.clone(),
            },
        }
    }

    /// Notes what is claimed in new axes. Where noise hides it, information that was seen before is still there, but for
    /// what the law says of the way since.
    fn note_claims(&mut self, axes: &Axes) {
        let before = self.seen.between(&self.axes).between(&axes.inner);
        let claims = Matrix::diagonal(&axes.claims);
        let seen = either(&claims, &within(&before, &axes.hidden)).with_eigenvalues(|e| e.min(1.0));
        self.seen = seen.between(&(&axes.outer * &self.inverse));
    }

    /// Looks at records from the mean of these draws of y from now on, if it is finite.
    pub fn look_from(&mut self, ground: &RoundInputs, draws: &[Vec<f64>]) {
        let at = viewpoint::mean(draws);
        if !at.iter().all(|x| x.is_finite()) {
            return;
        }
        let RoundInputs {
            form,
            density,
            plan,
            ..
        } = *ground;
        self.viewpoint = Some(Viewpoint::at(at));
        if let (Some(law), Some(viewpoint)) = (form.law(density), &mut self.viewpoint) {
            let frame = frame_at(form, &self.origin, &viewpoint.at, &self.axes);
            let effective = plan.request.temperature * self.records;
            let response = Response::new(form, ground.simulated, &law, &frame, effective);
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

    /// The variances that errors of the slope add to those of a slope's noise, where the belief about the centre is
    /// this in the frame: an observation is less exact, the farther off what it is to show.
    fn doubts_of_slope(&self, belief: &Matrix) -> Vec<f64> {
        let errors = self.slope_errors.iter().enumerate();
        errors
            .map(|(j, error)| error * error * belief[(j, j)])
            .collect()
    }

    /// The place from which records are looked at.
    fn place(&self) -> &Vec<f64> {
        self.viewpoint.as_ref().map_or(&self.centre, |v| &v.at)
    }

    /// The coordinates v about the viewpoint.
    fn frame(&self, form: &Form) -> Frame {
        frame_at(form, &self.origin, self.place(), &self.axes)
    }

    /// The gradient of the log prior in y, and minus its second derivatives, of which the prior's width is the least:
    /// in the long tail of the prior of a scale, on a log scale, they are next to nothing, and steps without information
    /// would go far beyond the other side.
    fn prior(&self, ground: &RoundInputs) -> Result<(Vec<f64>, Matrix), SampleError> {
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
        let curvature = at_least(&prior_curvature(density, theta), &form.spread);
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

/// The precision, made so large that no coordinate's standard deviation is above its spread. What coordinates have in
/// common may be known less well than each by itself.
fn at_least(precision: &Matrix, spread: &[f64]) -> Matrix {
    // A number that the prior fixes moves with no coordinate.
    let is_limit = |s: f64| s > 0.0 && s.is_finite();
    let units: Vec<f64> = (spread.iter())
        .map(|&s| if is_limit(s) { s } else { 1.0 })
        .collect();
    let units = Matrix::diagonal(&units);
    let own = positive(&precision.between(&units));
    let covariance = own.inverse();
    let missing = |(j, &s): (usize, &f64)| {
        if is_limit(s) {
            (1.0 - covariance[(j, j)].recip()).max(0.0)
        } else {
            0.0
        }
    };
    let missing: Vec<f64> = spread.iter().enumerate().map(missing).collect();
    (&own + &Matrix::diagonal(&missing)).between(&units.inverse())
}

/// The matrix without its negative eigenvalues.
fn positive(a: &Matrix) -> Matrix {
    a.with_eigenvalues(|e| e.max(0.0))
}

/// The information that is in one of two matrices or the other.
fn either(a: &Matrix, b: &Matrix) -> Matrix {
    a + &positive(&(b - a))
}

/// The part of a matrix between these directions.
fn within(a: &Matrix, directions: &[bool]) -> Matrix {
    let kept: Vec<f64> = (directions.iter().map(|kept| f64::from(u8::from(*kept)))).collect();
    a.between(&Matrix::diagonal(&kept))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::length;
    use crate::model::{Constants, Model};

    fn with_a_wide_column() -> (Density, Form) {
        let source = "record { real<lower=0, upper=9000> y; real<lower=0, upper=60> x; }
            parameters { real a; real b; real<lower=0> s; }
            model { a ~ normal(0, 10); b ~ normal(0, 10); s ~ exponential(0.1); y ~ student_t(4, a + b * x, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        (density, form)
    }

    // If it failed: where rounds in wide directions saw nothing, the search would go on from a place as far from the
    // prior as their noise is.
    #[test]
    fn a_search_goes_on_where_both_prior_and_wide_rounds_have_it() {
        let (density, form) = with_a_wide_column();
        let wide = form.in_wide_directions().expect("a slope on a wide column");
        let m = wide.coordinates as usize;
        let begin = |sd: f64| {
            let belief = Matrix::identity(m).scaled(sd * sd);
            let mut inner = Search::at(vec![0.0; 3], belief, 100.0);
            inner.centre = vec![1.0; m];
            let mut search = Search::new(&form, &density, &form.middle, Some(100));
            search.wide = Some(Box::new(inner));
            search.begin_where_wide_ended(&form);
            wide.lift.times(&search.origin)
        };
        let limits = wide.limits_of_prior();
        let sd = limits
            .eigen()
            .0
            .into_iter()
            .fold(0.0, f64::max)
            .sqrt()
            .recip();
        assert!(begin(1e-6 * sd).iter().all(|x| (x - 1.0).abs() < 1e-6));
        let between = begin(sd);
        assert!(length(&between) < length(&vec![1.0; m]), "{between:?}");
        if m == 1 {
            assert!((between[0] - 0.5).abs() < 1e-9, "{between:?}");
        }
    }

    // If it failed: the first steps of a hierarchy would lead as far from its prior as noise leads.
    #[test]
    fn the_first_belief_of_a_hierarchy_is_no_wider_than_its_prior() {
        let source = "record { real<lower=-99, upper=99> y; int<lower=1, upper=30> g; }
            parameters { real mu; real<lower=0> tau; vector[30] a; }
            model { mu ~ normal(0, 1); tau ~ lognormal(0, 0.2); a ~ normal(mu, tau); y ~ normal(a[g], 1); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap().by_groups().unwrap();
        assert!(!form.space.is_parameters());
        let search = Search::new(&form, &density, &form.middle, Some(1000));
        let covariance = search.belief.between(&form.base.transposed());
        for (k, spread) in form.spread.iter().enumerate() {
            let sd = covariance[(k, k)].sqrt();
            assert!(sd < 1.01 * WIDER.sqrt() * spread, "{k}: {sd} {spread}");
        }
    }

    // If it failed: from the long tail of the prior of a scale, where its log density is nearly straight, steps would
    // lead as far beyond the other side, and with them to where records say nothing.
    #[test]
    fn a_step_from_the_tail_of_a_prior_is_no_longer_than_the_prior_is_wide() {
        let source = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 3); s ~ exponential(0.1); y ~ normal(m, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        // The log density of log s = x is x - 0.1 exp(x), the second derivative of it 0.1 exp(x).
        for (x, own) in [(-4.0_f64, 0.00183), (5.0, 14.8)] {
            let theta = [0.0, x];
            let search = Search::at(theta.to_vec(), Matrix::identity(2), 100.0);
            let (slope, curvature) = search.prior_at(&form, &density);
            let back = form.base.inverse();
            let slope = back.transposed().times(&slope);
            let curvature = curvature.between(&back);
            let oracle = f64::max(own, form.spread[1].powi(-2));
            assert!(
                (curvature[(1, 1)] / oracle - 1.0).abs() < 1e-2,
                "{x}: {curvature:?}"
            );
            assert!(
                (curvature[(0, 0)] - 1.0 / 9.0).abs() < 0.02,
                "{curvature:?}"
            );
            assert!((slope[1] - (1.0 - 0.1 * x.exp())).abs() < 1e-6);
        }
    }

    // A number x and another within 0.1 of it: their sum has the variance 4, and each of them 1. Oracle: the precision
    // as it is. If it failed: what parameters have in common would count as known, and the noise in it for less than it is.
    #[test]
    fn what_parameters_of_a_prior_have_in_common_is_no_better_known_than_it_says() {
        let alike = Matrix::new(2, 2, |i, j| [[101.0, -100.0], [-100.0, 100.0]][i][j]);
        let kept = at_least(&alike, &[1.0, 1.01_f64.sqrt()]);
        assert!((&kept - &alike).norm() < 1e-6, "{kept:?}");
        // Less of each: a precision of 1 is missing from nothing, and of 0.75 from 0.25. No spread is no limit.
        let flat = Matrix::diagonal(&[0.0, 0.0625, 0.0]);
        let limited = at_least(&flat, &[1.0, 2.0, 0.0]);
        let oracle = Matrix::diagonal(&[1.0, 0.25, 0.0]);
        assert!((&limited - &oracle).norm() < 1e-6, "{limited:?}");
    }

    const LEVEL: &str = "record { int<lower=0, upper=1> y; } parameters { real a; }
        model { a ~ normal(0, 0.5); y ~ bernoulli_logit(a); }";

    // Oracle: x is from the prior N(0, 1 / P), and the slope J (x - c) + e, where e has the variance J + (J + P)^2 V, was
    // found to be P c. If it failed: where the prior is steeper than the likelihood, its maximum would be put where
    // nothing was ever seen, or it would be as sure as without noise.
    #[test]
    fn the_likelihood_is_that_of_a_noisy_slope() {
        let density = Density::new(Model::from_source(LEVEL, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let base = form.base[(0, 0)];
        let (prior, centre) = (4.0, 0.9);
        for (known, noise) in [(3.0, 0.2), (0.05, 0.01), (200.0, 0.0)] {
            let mut search = Search::at(vec![0.0], Matrix::diagonal(&[noise / base / base]), 100.0);
            search.centre = vec![centre / base];
            search.claimed = Matrix::diagonal(&[known * base * base]);
            let found = search.likelihood(&form, &density);
            let (precision, root) = (found.precision[(0, 0)] / base / base, found.root[0] * base);
            let mean = precision * root / (prior + precision);
            let slope = prior * centre;
            let weight = known / (known + (known + prior) * (known + prior) * noise);
            let oracle = weight * (slope + known * centre) / (prior + weight * known);
            assert!((mean - oracle).abs() < 1e-6, "{known}: {mean} {oracle}");
            let oracle = weight * known;
            assert!(
                (precision / oracle - 1.0).abs() < 1e-6,
                "{known}: {precision} {oracle}"
            );
        }
    }

    // If it failed: an answer about what noise hides in the last round would be the prior's, whatever earlier rounds saw.
    #[test]
    fn what_noise_hides_is_still_known() {
        let (density, form) = with_a_wide_column();
        let mut search = Search::at(
            form.origin(&density, &form.middle),
            Matrix::identity(3),
            100.0,
        );
        search.efficiency = 0.5;
        let mut look = |claims: [f64; 3], hidden: [bool; 3]| {
            let axes = Axes {
                inner: Matrix::identity(3),
                outer: Matrix::identity(3),
                claims: claims.to_vec(),
                unknown: 0.0,
                doubtful: vec![0.0; 3],
                errors: vec![0.0; 3],
                hidden: hidden.to_vec(),
                expected: vec![1.0; 3],
            };
            search.note_claims(&axes);
            search.claimed = Matrix::diagonal(&claims.map(|claim| 0.5 * claim));
            search.history = vec![Step {
                axes: Matrix::identity(3),
                wider: 1.0,
                taken: Matrix::identity(3),
                added: Matrix::identity(3),
                hidden: hidden.to_vec(),
                since: Matrix::identity(3),
            }];
            search.local(&form, &density).known
        };
        look([0.8, 0.6, 0.4], [false; 3]);
        let known = look([0.0, 0.3, 0.1], [true, false, true]);
        // What is seen to be less is less.
        let oracle = Matrix::diagonal(&[0.4, 0.15, 0.2]);
        assert!((&known - &oracle).norm() < 1e-9, "{known:?}");
    }
}

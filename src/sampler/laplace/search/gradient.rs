//! The slope that the records have at the viewpoint, by a noisy sum of clipped gradients.

use super::{NOTHING, RoundAxes, RoundInputs, Search};
use crate::density::{Frame, Law};
use crate::linear::Matrix;
use crate::privacy::Bins;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::laplace::form::{Form, Information};
use crate::sampler::laplace::histogram::Histogram;
use crate::sampler::laplace::lines::{self, QueryPoint};
use crate::sampler::laplace::reach::Reach;
use crate::sampler::laplace::response::Response;

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
/// The limits on eigenvalues of the slope used for steps, in units of the expected slope.
const SLOPES: [f64; 2] = [0.4, 1.5];
/// The clip bound of a slope clips up to this share of the records.
const CLIPPED_SLOPE: f64 = 0.01;

/// The slope that one round sees, in its frame.
pub(super) struct Observed<'a> {
    /// The slope of the log posterior beyond what the centre explains.
    pub off: Vec<f64>,
    /// Its expected change with an error of the centre.
    pub slope: Matrix,
    /// The variance of its noise, and those of each coordinate with what else is doubtful.
    pub variance: f64,
    pub variances: Vec<f64>,
    pub clip: f64,
    pub efficiency: f64,
    /// The share of the squares of lengths that was not seen.
    pub missing: f64,
    /// The response by the law, where there is one, and whether it tells directions apart.
    pub response: Option<Response<'a>>,
    pub tells_directions: bool,
}

impl Search {
    /// Releases gradients in the frame of this round, and takes the slope that is claimed from what
    /// they are expected to be.
    pub(super) fn look_at_gradients<'a>(
        &mut self,
        ground: &'a RoundInputs,
        turned: &RoundAxes,
        (law, frame): (Option<&'a Law<'a>>, &'a Frame),
        (k, nth): (usize, usize),
        oracle: &mut dyn Oracle,
    ) -> Result<Observed<'a>, SampleError> {
        let RoundInputs {
            form,
            density,
            plan,
            shares,
            ..
        } = *ground;
        let m = form.coordinates as usize;
        let temperature = plan.request.temperature;
        let RoundAxes {
            axes,
            own_slope,
            prior,
            foreseen,
            allowed,
        } = turned;
        let expected = form.expected(density, law, frame);
        let times = shares.gradients[k];
        let effective = temperature * self.records;
        let unit = (m as f64 / effective).sqrt();
        let ask = QueryPoint {
            form,
            plan,
            frame,
            expected: expected.as_ref(),
            unit,
        };
        let counts = ask.histogram(lines::GRADIENT_LENGTHS, shares.others[k], oracle)?;
        if nth == 0 && form.information == Information::Public {
            self.count(plan, &counts.0);
        }
        let reach = law.map(|law| Reach::of(form, density, law, frame));
        let lengths = self.lengths(&counts, unit, longest(form, reach.as_ref()), allowed);
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
                let efficiency = longest(form, reach.as_ref())
                    .map_or(1.0, |longest| (2.0 / longest.min(UNSEEN)).min(0.5));
                (clip, efficiency, 0.0)
            }
            Some(lengths) => {
                let (clip, lost) = clip_for(ground, lengths, noise);
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
        let response = law
            .filter(|_| form.information != Information::Public && form.is_simulated())
            .map(|law| Response::new(form, ground.simulated, law, frame, effective));
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
        if k + 1 == shares.rounds() && shares.slope > 0.0 {
            self.look_at_slope(&ask, lengths.as_ref(), (clip, efficiency), oracle)?;
        }
        let (slopes, vectors) = self.claimed.eigen();
        let slopes: Vec<f64> = slopes.iter().map(|e| e.max(NOTHING)).collect();
        self.claimed = Matrix::diagonal(&slopes).between(&vectors.transposed());

        let slope = &self.slope + prior;
        let own = self.axes.transposed().times(own_slope);
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
        let missing = lengths.as_ref().map_or(0.0, Histogram::missing_share);
        Ok(Observed {
            off,
            slope,
            variance,
            variances,
            clip,
            efficiency,
            missing,
            tells_directions: by_direction.is_some(),
            response,
        })
    }

    /// Releases the slope of the sum of clipped gradients, and mixes it with the expected slope,
    /// with a weight that depends on its noise.
    fn look_at_slope(
        &mut self,
        ask: &QueryPoint,
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

    /// The visible lengths of gradients: `counts` with noise of their sd, in bins around `unit`. In
    /// axes that allow for the information `allowed`, the law or the hazard gives their mean square;
    /// `longest`: as [`longest`].
    pub(super) fn lengths(
        &self,
        (counts, sd): &(Vec<f64>, f64),
        unit: f64,
        longest: Option<f64>,
        allowed: &Matrix,
    ) -> Option<Histogram> {
        let seen = Histogram::seen(counts, *sd, (Bins::GRADIENT, unit), self.records)?;
        let square = unit * unit * allowed.trace() / allowed.rows().max(1) as f64;
        Some(match longest {
            Some(longest) => seen.with_mean_square(square, unit * longest),
            None => seen,
        })
    }
}

/// The longest that the lengths of gradients may be which the noise hides, in units, where their mean square is
/// known: under a law, which says how long they are, or a hazard, under which events may be as rare as the noise
/// can hide.
pub(super) fn longest(form: &Form, reach: Option<&Reach>) -> Option<f64> {
    match (reach, form.information) {
        (Some(reach), _) => Some(reach.mean()),
        (None, Information::Hazard(_)) => Some(f64::INFINITY),
        (None, _) => None,
    }
}

/// The clip bound of gradients with these lengths, and the sd of the error that clipping may leave.
fn clip_for(ground: &RoundInputs, lengths: &Histogram, noise: f64) -> (f64, f64) {
    let root = (ground.form.coordinates as f64).sqrt();
    match ground.form.information {
        Information::Law { bounded: true } if !ground.plan.request.shared_units => {
            let [least, most] = LIMITS;
            let weight = (BALANCED / ground.shares.foreseen).clamp(least, most);
            (lengths.best_clip(noise * root, weight), 0.0)
        }
        Information::Public => (lengths.best_clip(noise * root, SYMMETRIC), 0.0),
        // Tails may not be the model's, and rows of a unit may be alike: the loss by clipping may lie
        // in one direction.
        Information::Law { .. } | Information::Hazard(_) | Information::Curvature => {
            let clip = lengths.best_clip(noise, 1.0);
            (clip, lengths.lost_sum(clip))
        }
    }
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

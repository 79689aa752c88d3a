//! Which tilt, window and grid to use.

use super::super::accountant::AccountError;
use super::aim::Aim;
use super::cells::Cells;
use super::curve::{CurveBuilder, PldCurve, Window};
use super::pair::Reach;
use super::pmf::TiltedPmf;
use super::question::{Question, Target};
use super::sketch::{Sketch, Span, epsilon_near, least_tilt, ln_delta_near, span};
use super::{GAP, LARGEST_SIZE, Part, PldDetails};

/// How wide the bounds should be if that is cheap: absolute, and relative to epsilon.
const WISHED_GAP: f64 = 4e-4;
const WISHED_RELATIVE_GAP: f64 = 2e-4;

/// 2 to these: the smallest transform, and the largest that is cheap, over the distinct
/// events.
const SMALLEST_SIZE: u32 = 10;
const CHEAP_SIZE: u32 = 16;

/// Losses closer together than this are not distinguished.
const LEAST_STEP: f64 = 1e-11;

/// Above this a step of the grid is no small change of the loss.
const LARGEST_STEP: f64 = 0.5;

/// The most nodes of one event.
const MOST_NODES: usize = 1 << 22;

/// Below this ln delta is not looked for.
const LEAST_LN_DELTA: f64 = -2000.0;

/// Points beyond the reach have e^-this of delta, all releases together.
const LN_BEYOND: f64 = 18.0;

pub(super) struct Plan {
    aim: Aim,
    reaches: Vec<Reach>,
    directions: Vec<Direction>,
    /// Of the losses of all directions.
    width: f64,
    releases: f64,
    /// How much larger than delta the unit of the transforms' round-off may be.
    ln_room: f64,
}

/// "Remove", or with `mirrored` "add".
struct Direction {
    mirrored: bool,
    theta: f64,
    /// The tilt at the saddle point: how fast ln delta falls with epsilon.
    steepness: f64,
    span: Span,
    /// Of each part: ln of E e^(theta loss), roughly.
    ln_moments: Vec<f64>,
}

/// A survey of the losses before a grid is chosen.
struct Survey {
    reaches: Vec<Reach>,
    sides: Vec<bool>,
    /// By direction, then by part.
    sketches: Vec<Vec<Sketch>>,
}

impl Survey {
    fn new(parts: &[Part], releases: f64, ln_delta: f64) -> Survey {
        let symmetric = |part: &Part| part.pair.is_symmetric() || part.pair.rest <= 0.0;
        let sides = if parts.iter().all(symmetric) {
            vec![false]
        } else {
            vec![false, true]
        };
        let reach = |ln_weight: f64| {
            let exponent = LN_BEYOND + releases.max(1.0).ln() - ln_delta + ln_weight;
            (2.0 * exponent.max(4.0)).sqrt()
        };
        // Large losses are those of a record that is in the sample.
        let reaches: Vec<Reach> = parts
            .iter()
            .map(|part| Reach {
                below: reach(0.0),
                above: reach(part.pair.rate.ln()),
            })
            .collect();
        let sketches = sides
            .iter()
            .map(|&mirrored| {
                let sketch = |(part, reach): (&Part, &Reach)| {
                    Sketch::new(&part.pair, part.count as f64, *reach, mirrored)
                };
                parts.iter().zip(&reaches).map(sketch).collect()
            })
            .collect();
        Survey {
            reaches,
            sides,
            sketches,
        }
    }
}

/// The delta that follows from looking as far as it takes to see that delta.
///
/// Where ln delta is concave in epsilon the estimate hardly depends on the guess. Where it
/// is not, the large losses of rare samples, if looked at, draw the tilt away from where
/// delta is made; then the estimate falls as the guess rises.
fn fixed_point(estimate: impl Fn(f64) -> f64) -> f64 {
    const CLOSE: f64 = 1.0;
    let first = estimate(-30.0);
    let second = estimate(first);
    if (first - second).abs() <= CLOSE {
        return second;
    }
    let (mut low, mut high) = (LEAST_LN_DELTA, 0.0);
    while high - low > CLOSE {
        let middle = 0.5 * (low + high);
        if estimate(middle) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Round-off grows with the number of releases.
fn usual_room(releases: f64) -> f64 {
    (16.0 - releases.ln()).clamp(1.0, 8.0)
}

impl Plan {
    /// A plan for a question about which nothing is known yet.
    pub(super) fn new(parts: &[Part], question: &Question) -> Result<Plan, AccountError> {
        let releases: f64 = parts.iter().map(|part| part.count as f64).sum();
        match &question.target {
            Target::Epsilon { ln_delta, .. } => {
                let ln_delta = ln_delta.max(LEAST_LN_DELTA);
                let survey = Survey::new(parts, releases, ln_delta);
                let epsilons = survey.sketches.iter();
                let epsilon = epsilons
                    .map(|sketches| epsilon_near(sketches, ln_delta))
                    .fold(0.0, f64::max);
                let aim = Aim { ln_delta, epsilon };
                Plan::of(survey, releases, aim, usual_room(releases))
            }
            Target::Delta { epsilon, .. } => {
                let estimate = |guess: f64| {
                    let survey = Survey::new(parts, releases, guess);
                    let ln_deltas = survey.sketches.iter();
                    ln_deltas
                        .map(|sketches| ln_delta_near(sketches, *epsilon).0)
                        .fold(f64::NEG_INFINITY, f64::max)
                        .max(LEAST_LN_DELTA)
                };
                let aim = Aim {
                    ln_delta: fixed_point(estimate),
                    epsilon: *epsilon,
                };
                Plan::near(parts, aim, usual_room(releases))
            }
        }
    }

    /// A plan for looking near `aim`.
    pub(super) fn near(parts: &[Part], aim: Aim, ln_room: f64) -> Result<Plan, AccountError> {
        let releases: f64 = parts.iter().map(|part| part.count as f64).sum();
        let aim = Aim {
            ln_delta: aim.ln_delta.max(LEAST_LN_DELTA),
            ..aim
        };
        let survey = Survey::new(parts, releases, aim.ln_delta);
        Plan::of(survey, releases, aim, ln_room)
    }

    fn of(survey: Survey, releases: f64, aim: Aim, ln_room: f64) -> Result<Plan, AccountError> {
        let Survey {
            reaches,
            sides,
            sketches,
        } = survey;
        let directions: Vec<Direction> = sides
            .iter()
            .zip(&sketches)
            .map(|(&mirrored, sketches)| {
                let (_, steepness) = ln_delta_near(sketches, aim.epsilon);
                let theta = least_tilt(sketches, aim.epsilon, aim.ln_delta, ln_room, steepness);
                Direction {
                    mirrored,
                    theta,
                    steepness,
                    // A grid that makes the gap g adds about g d^2/(1 + steepness) to the
                    // logarithm of the moment of rate d.
                    span: span(
                        sketches,
                        theta,
                        aim.epsilon,
                        20.0 * (1.0 + steepness).sqrt(),
                    ),
                    ln_moments: sketches.iter().map(|s| s.ln_moment(theta)).collect(),
                }
            })
            .collect();
        let width = directions
            .iter()
            .map(|direction| direction.span.width)
            .fold(0.0, f64::max);
        let plan = Plan {
            aim,
            reaches,
            directions,
            width,
            releases,
            ln_room,
        };
        if !plan.width.is_finite() || plan.step(LARGEST_SIZE) > LARGEST_STEP {
            return Err(AccountError::LossesTooLarge { width: plan.width });
        }
        Ok(plan)
    }

    /// The size that should be enough.
    ///
    /// A step h adds a variance of about h^2/6 to each loss or takes h^2/12 from it, and
    /// a variance v moves epsilon by v (1 + theta)/2.
    pub(super) fn first_log_size(&self) -> u32 {
        let theta = self.directions.first().map_or(0.0, |first| first.steepness);
        let log_size = |gap: f64| {
            let step = (8.0 * gap / (self.releases * (1.0 + theta))).sqrt();
            (self.width / step.min(LARGEST_STEP))
                .log2()
                .ceil()
                .clamp(1.0, 60.0) as u32
        };
        let wished = WISHED_GAP.min(WISHED_RELATIVE_GAP * self.aim.epsilon.max(1e-9));
        let needed = log_size(0.5 * GAP).max(SMALLEST_SIZE);
        let cheap = CHEAP_SIZE.saturating_sub(self.reaches.len().max(1).ilog2());
        let wished = log_size(wished).min(cheap);
        needed.max(wished).min(LARGEST_SIZE)
    }

    pub(super) fn curves(
        &self,
        parts: &[Part],
        log_size: u32,
    ) -> Result<Vec<PldCurve>, AccountError> {
        let step = self.step(log_size);
        let size = 2f64.powi(log_size as i32);
        let mut builders: Vec<(&Direction, f64, CurveBuilder)> = self
            .directions
            .iter()
            .map(|direction| {
                let theta = direction.theta.min(100.0 / step);
                let spare = size * step - direction.span.width;
                let window = Window {
                    theta,
                    step,
                    low: direction.span.low - 0.5 * spare,
                    log_size,
                    decay: direction.span.decay,
                };
                (direction, theta, CurveBuilder::new(window))
            })
            .collect();
        for (i, part) in parts.iter().enumerate() {
            let too_large = AccountError::LossesTooLarge { width: self.width };
            let reach = *self.reaches.get(i).ok_or(too_large.clone())?;
            let cells = Cells::new(&part.pair, step, reach, MOST_NODES).ok_or(too_large)?;
            for (direction, theta, builder) in &mut builders {
                let ln_moment = direction.ln_moments.get(i).copied().unwrap_or(0.0);
                let pmf = if direction.mirrored {
                    TiltedPmf::new(&cells.mirrored(), *theta, ln_moment)
                } else {
                    TiltedPmf::new(&cells, *theta, ln_moment)
                };
                builder.add(&pmf, part.count);
            }
        }
        Ok(builders
            .into_iter()
            .map(|(_, _, builder)| builder.finish())
            .collect())
    }

    /// The work of transforms of that size and of the steps around them, in points.
    pub(super) fn work(&self, log_size: u32) -> f64 {
        let transforms = self.directions.len() as f64 * (self.reaches.len() as f64 + 2.0);
        transforms * 2f64.powi(log_size as i32)
    }

    /// Makes the window twice as wide.
    pub(super) fn widen(&mut self) {
        self.width *= 2.0;
    }

    pub(super) fn aim(&self) -> Aim {
        self.aim
    }

    pub(super) fn ln_room(&self) -> f64 {
        self.ln_room
    }

    /// The room that makes round-off a small part of the gap, where round-off was most of the gap
    /// and a larger tilt is possible.
    pub(super) fn less_room(&self, found: &PldDetails) -> Option<f64> {
        // Of the direction in which round-off moves epsilon most.
        let flattest = self
            .directions
            .iter()
            .min_by(|x, y| x.steepness.total_cmp(&y.steepness))?;
        let round_off = found.round_off / flattest.steepness;
        let tiltable = flattest.theta < 0.999 * flattest.steepness;
        (tiltable && round_off > 0.2 * found.gap)
            .then(|| self.ln_room - (round_off / GAP).ln().max(0.0) - 3.0)
    }

    pub(super) fn details(&self, log_size: u32) -> PldDetails {
        PldDetails {
            grid: self.step(log_size),
            points: 1 << log_size,
            gap: f64::INFINITY,
            truncation: 0.0,
            round_off: 0.0,
        }
    }

    fn step(&self, log_size: u32) -> f64 {
        (self.width / 2f64.powi(log_size as i32)).max(LEAST_STEP)
    }
}

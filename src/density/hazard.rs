//! The law of a time that may be censored: the hazard that the model gives it.
//!
//! A record has a time and a status, whether the event happened then or the record was only followed
//! until then. When it would have been censored otherwise is unknown, so that its outcomes have no
//! law. But whatever the censoring, as long as it tells nothing of the event, the score of a record is
//!
//! ```text
//! U(t) = status u(t) - int_0^t u(s) h(s) ds,    u(s) = d log h(s) / d parameters,
//! ```
//!
//! a martingale in the time of follow-up, whose predictable variation
//!
//! ```text
//! F(t) = int_0^t u(s) u(s)' h(s) ds
//! ```
//!
//! has the expectation of U U' (Andersen, Borgan, Gill and Keiding 1993, *Statistical Models Based on
//! Counting Processes*, section VI.1). So F is an information that is positive semidefinite and follows
//! from the model's hazard, as a law's does from its probabilities.
//!
//! The log-likelihood of a record that is censored at s is that of its survival, log S(s), and with an
//! event at s it is log h(s) + log S(s): so h and u follow from the likelihood at both values of the
//! status. A pair of columns is taken for time and status only if this holds on public records and at
//! public parameters: h = -d log S / ds, and S = 1 at time 0.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::law::{compiled, public_places};
use super::{
    BLOCK, Density, Frame, Picked, Predictors, Pull, RowProgram, Scratch, Sight, Simulator, Space,
};
use crate::function::exp;
use crate::model::RecordColumn;

/// The number of intervals in which u is taken as constant. The first ends at 2^-7.5 of the record's time, and each
/// other at the root of 2 times the end of the one before.
pub(crate) const INTERVALS: usize = 16;
/// Public records on which the identity is tried, and the range of their times as a share of a bound.
const RECORDS: usize = 64;
const RANGE: [f64; 2] = [1e-3, 1.0];
/// The spread of the log of times without a bound.
const SPREAD: f64 = 3.0;
/// The relative step of the numerical derivative, and by what share it may differ from the hazard; also the log of
/// the survival that may differ from 0 at the beginning.
const STEP: f64 = 1e-4;
const TOLERANCE: f64 = 1e-3;
/// Derivatives are compared where the hazard in a time is between these: less is lost in rounding.
const RESOLVED: [f64; 2] = [1e-6, 1e6];
/// A time that counts as the beginning, as a share of the record's.
const BEGINNING: f64 = 1e-200;
/// The share of comparisons that must hold, and the fewest of them.
const HOLDS: f64 = 0.95;
const FEWEST: usize = 32;

/// The columns, in the declaration, of a time that may be censored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Censored {
    pub time: usize,
    pub status: usize,
    /// The status of an event; the other of 0 and 1 is that of a censored time.
    pub event: u8,
}

/// The hazard of a model's time.
pub struct Hazard<'a> {
    density: &'a Density,
    pub(crate) censored: Censored,
    program: Box<RowProgram>,
    columns: usize,
    time: usize,
    status: usize,
}

/// Working memory of one thread, at one point.
pub(crate) struct HazardScratch {
    program: Scratch,
    times: [f64; BLOCK],
    /// Log survival at the beginning of an interval.
    survival: [f64; BLOCK],
}

impl Censored {
    /// The columns of the model that are a time and its status; `centre` is a public point near which
    /// parameters are likely.
    pub fn of(density: &Density, centre: &[f64], seed: u64) -> Option<Censored> {
        let columns = &density.model().columns;
        let is_status = |c: &RecordColumn| c.is_int && c.lower == Some(0.0) && c.upper == Some(1.0);
        let is_time = |c: &RecordColumn| !is_status(c) && c.lower.is_some_and(|low| low >= 0.0);
        let read = density.places_of_law();
        let those = |is: &dyn Fn(&RecordColumn) -> bool| -> Vec<usize> {
            let own = read.iter().copied();
            own.filter(|&c| is(&columns[c])).collect()
        };
        let (times, statuses) = (those(&is_time), those(&is_status));
        let pairs = times.iter().flat_map(|&time| {
            let each = statuses
                .iter()
                .flat_map(|&status| [(status, 1), (status, 0)]);
            each.map(move |(status, event)| Censored {
                time,
                status,
                event,
            })
        });
        let mut pairs = pairs.peekable();
        pairs.peek()?;
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let places = public_places(centre, rng);
        let simulator = Simulator::new(density).by_bounds();
        let records = simulator.records(centre, RECORDS, None, rng);
        let (program, _) = compiled(density.model(), &[]);
        pairs.find(|pair| {
            let hazard = Hazard::compiled(density, *pair, program.clone(), &read);
            hazard.is_one(&read, &records, &places, rng)
        })
    }
}

impl<'a> Hazard<'a> {
    pub(crate) fn new(density: &'a Density, censored: Censored) -> Hazard<'a> {
        let (program, sources) = compiled(density.model(), &[]);
        Hazard::compiled(density, censored, program, &sources)
    }

    fn compiled(
        density: &'a Density,
        censored: Censored,
        program: RowProgram,
        sources: &[usize],
    ) -> Hazard<'a> {
        let place = |column: usize| {
            sources
                .iter()
                .position(|&c| c == column)
                .unwrap_or_default()
        };
        Hazard {
            density,
            censored,
            program: Box::new(program),
            columns: sources.len(),
            time: place(censored.time),
            status: place(censored.status),
        }
    }

    /// The number of columns that are read, which are those of [`Law::columns`](super::Law::columns).
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The point of the space as records see it.
    pub(crate) fn sight(&self, space: &Space, point: &[f64], frame: &Frame) -> Sight {
        self.density.sight_of(&self.program, space, point, frame)
    }

    pub(crate) fn program(&self) -> &RowProgram {
        &self.program
    }

    /// Working memory where records see `z`.
    pub(crate) fn scratch_at(&self, z: &[f64]) -> HazardScratch {
        HazardScratch {
            program: self.program.scratch(z),
            times: [0.0; BLOCK],
            survival: [0.0; BLOCK],
        }
    }

    /// The predictors in some coordinates; none where their gradients change with the time or the status.
    pub(crate) fn predictors(&self, pull: Pull) -> Option<Predictors> {
        let outcomes = self.program.dependents(&[self.time, self.status]);
        self.program.predictors(pull, &outcomes)
    }

    /// The gradients of the predictors ([`RowProgram::predictor_gradients`]), after [`Hazard::intervals`].
    pub(crate) fn predictor_gradients(
        &self,
        predictors: &Predictors,
        records: (&[&[f64]], usize),
        pull: Pull,
        scratch: &HazardScratch,
        into: (&mut Picked, &mut [f64]),
    ) {
        self.program
            .predictor_gradients(predictors, records, pull, &scratch.program, into);
    }

    /// The intervals of a block of records: for each of [`INTERVALS`], the integral of the hazard over it in
    /// `weights`, `[interval][BLOCK]`, and u in `vectors`, `[interval][derivative][BLOCK]`. Both are 0 where
    /// either is not a number. The status is not read.
    pub(crate) fn intervals(
        &self,
        columns: &[&[f64]],
        rows: usize,
        pull: Pull,
        scratch: &mut HazardScratch,
        (weights, vectors): (&mut [f64], &mut [f64]),
    ) {
        let (_, censored) = self.statuses();
        scratch.survival = [0.0; BLOCK];
        let length = pull.width() * BLOCK;
        for (j, (weights, vectors)) in (weights.chunks_exact_mut(BLOCK))
            .zip(vectors.chunks_exact_mut(length))
            .enumerate()
        {
            let end = (0.5 * (j as f64 + 1.0 - INTERVALS as f64)).exp2();
            let middle = end * 0.5f64.powf(0.25);
            self.at(columns, rows, end, &mut scratch.times);
            let HazardScratch {
                program,
                times,
                survival,
            } = &mut *scratch;
            let block = self.block(columns, &times[..rows], &censored[..rows]);
            self.program.forward(&block, rows, program);
            let of_end = self.program.output(0, &block, rows, program);
            for ((w, survival), after) in weights[..rows].iter_mut().zip(survival).zip(of_end) {
                *w = *survival - after;
                *survival = *after;
            }
            self.at(columns, rows, middle, &mut scratch.times);
            self.log_hazard_slope(columns, rows, pull, scratch, vectors);
            for (i, w) in weights[..rows].iter_mut().enumerate() {
                let places = || (i..length).step_by(BLOCK);
                let is_finite = w.is_finite() && places().all(|at| vectors[at].is_finite());
                if !is_finite {
                    *w = 0.0;
                    places().for_each(|at| vectors[at] = 0.0);
                }
            }
        }
    }

    /// u of a block of records at their times, in `vector`, and -1 in `weights` where the event happened then,
    /// else 0. Both are 0 where u is not a number.
    pub(crate) fn events(
        &self,
        columns: &[&[f64]],
        rows: usize,
        pull: Pull,
        scratch: &mut HazardScratch,
        (weights, vector): (&mut [f64], &mut [f64]),
    ) {
        self.at(columns, rows, 1.0, &mut scratch.times);
        self.log_hazard_slope(columns, rows, pull, scratch, vector);
        let event = f64::from(self.censored.event);
        for (i, w) in weights[..rows].iter_mut().enumerate() {
            let happened = columns[self.status][i] == event;
            *w = if happened { -1.0 } else { 0.0 };
            let places = || (i..vector.len()).step_by(BLOCK);
            if !places().all(|at| vector[at].is_finite()) {
                *w = 0.0;
                places().for_each(|at| vector[at] = 0.0);
            }
        }
    }

    /// u at the times of the scratch.
    fn log_hazard_slope(
        &self,
        columns: &[&[f64]],
        rows: usize,
        pull: Pull,
        scratch: &mut HazardScratch,
        vector: &mut [f64],
    ) {
        let (event, censored) = self.statuses();
        let HazardScratch { program, times, .. } = scratch;
        let mut gradients = |statuses: &[f64], each: &mut dyn FnMut(&[f64])| {
            let block = self.block(columns, &times[..rows], &statuses[..rows]);
            let pull = (pull, None);
            each(
                self.program
                    .pulled(&block, rows, pull, program, &mut Picked::new()),
            );
        };
        gradients(&event, &mut |with| vector.copy_from_slice(with));
        gradients(&censored, &mut |without| {
            for (v, without) in vector.iter_mut().zip(without) {
                *v -= without;
            }
        });
    }

    fn statuses(&self) -> ([f64; BLOCK], [f64; BLOCK]) {
        let event = f64::from(self.censored.event);
        ([event; BLOCK], [1.0 - event; BLOCK])
    }

    /// This share of the records' times.
    fn at(&self, columns: &[&[f64]], rows: usize, share: f64, times: &mut [f64; BLOCK]) {
        for (time, own) in times.iter_mut().zip(&columns[self.time][..rows]) {
            *time = share * own;
        }
    }

    fn block<'c>(
        &self,
        columns: &[&'c [f64]],
        times: &'c [f64],
        statuses: &'c [f64],
    ) -> Vec<&'c [f64]> {
        let mut block = columns.to_vec();
        (block[self.time], block[self.status]) = (times, statuses);
        block
    }

    /// Whether the likelihood is that of a hazard, on these records and at these places.
    fn is_one(
        &self,
        sources: &[usize],
        records: &[Vec<f64>],
        places: &[Vec<f64>],
        rng: &mut impl Rng,
    ) -> bool {
        let upper = self.density.model().columns[self.censored.time].upper;
        let times: Vec<f64> = (0..RECORDS)
            .map(|_| match upper {
                Some(upper) => upper * RANGE[0] * (RANGE[1] / RANGE[0]).powf(rng.random()),
                None => (SPREAD * Distribution::<f64>::sample(&StandardNormal, rng)).exp(),
            })
            .collect();
        let columns: Vec<&[f64]> = sources.iter().map(|&c| &records[c][..]).collect();
        let (event, censored) = self.statuses();
        let interface: Vec<_> = self.program.interface().collect();
        let (mut held, mut compared) = (0, 0);
        for theta in places {
            let z = self.density.values(theta, &interface).concat();
            let mut scratch = self.program.scratch(&z);
            let mut likelihood = |share: f64, statuses: &[f64]| -> Vec<f64> {
                let times: Vec<f64> = times.iter().map(|time| share * time).collect();
                let block = self.block(&columns, &times, statuses);
                self.program.forward(&block, RECORDS, &mut scratch);
                self.program.output(0, &block, RECORDS, &scratch).to_vec()
            };
            let survival = likelihood(1.0, &censored);
            let with_event = likelihood(1.0, &event);
            let around = [1.0 - STEP, 1.0 + STEP].map(|share| likelihood(share, &censored));
            let beginning = likelihood(BEGINNING, &censored);
            for i in 0..RECORDS {
                let by_difference = (around[0][i] - around[1][i]) / (2.0 * STEP);
                let hazard = exp(with_event[i] - survival[i]) * times[i];
                let [least, most] = RESOLVED;
                if !by_difference.is_finite() || !(least..=most).contains(&hazard) {
                    continue;
                }
                compared += 1;
                let is_hazard = (by_difference / hazard - 1.0).abs() < TOLERANCE;
                held += usize::from(is_hazard && beginning[i].abs() < TOLERANCE);
            }
            // Most pairs of columns are none, as the first place shows.
            let most = places.len() * RECORDS;
            if (compared - held) as f64 > (1.0 - HOLDS) * most as f64 {
                return false;
            }
        }
        compared >= FEWEST && held as f64 >= HOLDS * compared as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    const RECORD: &str =
        "record { real<lower=0> t; int<lower=0, upper=1> d; real<lower=0, upper=1> x; }
        parameters { real a; real b; real<lower=0> s; }";

    fn density(model: &str) -> Density {
        let model = Model::from_source(model, &Constants::none()).unwrap();
        Density::new(model)
    }

    fn found(model: &str) -> Option<Censored> {
        let density = density(model);
        let centre = vec![0.1; density.dimension()];
        Censored::of(&density, &centre, 1)
    }

    // If it failed: a censored model would be learnt by second derivatives.
    #[test]
    fn times_that_may_be_censored_are_found() {
        for (likelihood, event) in [
            (
                "target += d == 1 ? exponential_lpdf(t | exp(a + b * x)) : exponential_lccdf(t | exp(a + b * x));",
                1,
            ),
            (
                "target += d == 0 ? weibull_lpdf(t / 9 | s, exp(a)) - log(9) : weibull_lccdf(t / 9 | s, exp(a));",
                0,
            ),
            (
                "target += d == 1 ? lognormal_lpdf(t | a + b * x, s) : lognormal_lccdf(t | a + b * x, s);",
                1,
            ),
            ("target += d * (a + b * x) - exp(a + b * x) * t;", 1),
            // Some are cured.
            (
                "real f = exponential_lpdf(t | s); real cured = inv_logit(a);
              target += d == 1 ? log1m(cured) + f : log(cured + (1 - cured) * exp(-s * t));",
                1,
            ),
        ] {
            let model = format!("{RECORD} model {{ {likelihood} }}");
            let expected = Censored {
                time: 0,
                status: 1,
                event,
            };
            assert_eq!(found(&model), Some(expected), "{likelihood}");
        }
    }

    // If it failed: information and clipping would be by a hazard that is none, or would leave out what else a
    // record tells of.
    #[test]
    fn other_likelihoods_have_no_hazard() {
        for likelihood in [
            // No derivative of its survival.
            "target += d == 1 ? exponential_lpdf(t | exp(a)) : exponential_lccdf(t | exp(b));",
            "target += d == 1 ? exponential_lpdf(t | exp(a)) : exponential_lcdf(t | exp(a));",
            // Other outcomes beside it.
            "target += d * a - exp(a) * t; target += normal_lpdf(x | b, s);",
            // Survival is not 1 at the beginning: the record entered at x.
            "target += d * a - exp(a) * (t - x);",
        ] {
            assert_eq!(
                found(&format!("{RECORD} model {{ {likelihood} }}")),
                None,
                "{likelihood}"
            );
        }
    }

    // Times of a Weibull law with shape k, 40 % of them censored by an exponential law. If it failed: widths
    // would not be the posterior's.
    #[test]
    fn the_information_has_the_expectation_of_the_squared_score() {
        let model = format!(
            "{RECORD} model {{ target += d == 1 ? weibull_lpdf(t | s, exp(a)) : weibull_lccdf(t | s, exp(a)); }}"
        );
        let density = density(&model);
        let hazard = Hazard::new(&density, found(&model).unwrap());
        let frame = Frame::about(vec![0.3, 0.0, 0.4]);
        let space = density.parameters();
        let sight = hazard.sight(&space, frame.centre(), &frame);
        let mut scratch = hazard.scratch_at(&sight.z);
        let (shape, scale) = (0.4f64.exp(), 0.3f64.exp());
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (mut information, mut squares, mut events) = ([0.0; 3], [0.0; 3], 0.0);
        let blocks = 400;
        for _ in 0..blocks {
            let (mut times, mut statuses) = (vec![0.0; BLOCK], vec![0.0; BLOCK]);
            for (time, status) in times.iter_mut().zip(&mut statuses) {
                let uniform = |rng: &mut ChaCha8Rng| 1.0 - rng.random::<f64>();
                let own = scale * (-uniform(rng).ln()).powf(1.0 / shape);
                let censored = -2.0 * uniform(rng).ln();
                *time = own.min(censored);
                *status = f64::from(u8::from(own <= censored));
                events += *status;
            }
            let columns: Vec<&[f64]> = density
                .places_of_law()
                .iter()
                .map(|c| if *c == 0 { &times[..] } else { &statuses[..] })
                .collect();
            let mut weights = vec![0.0; INTERVALS * BLOCK];
            let mut vectors = vec![0.0; INTERVALS * 3 * BLOCK];
            hazard.intervals(
                &columns,
                BLOCK,
                Pull::Whole(&sight.jacobian),
                &mut scratch,
                (&mut weights, &mut vectors),
            );
            for (w, v) in weights.chunks(BLOCK).zip(vectors.chunks(3 * BLOCK)) {
                for i in 0..BLOCK {
                    let (by_scale, by_shape) = (v[i], v[2 * BLOCK + i]);
                    information[0] += w[i] * by_scale * by_scale;
                    information[1] += w[i] * by_scale * by_shape;
                    information[2] += w[i] * by_shape * by_shape;
                }
            }
            let scores =
                hazard
                    .program
                    .gradients(&columns, BLOCK, &sight.jacobian, &mut scratch.program);
            for i in 0..BLOCK {
                let (by_scale, by_shape) = (scores[i], scores[2 * BLOCK + i]);
                squares[0] += by_scale * by_scale;
                squares[1] += by_scale * by_shape;
                squares[2] += by_shape * by_shape;
            }
        }
        let n = f64::from(blocks) * BLOCK as f64;
        assert!((0.5..0.7).contains(&(events / n)), "{}", events / n);
        // About the scale it is the number of events times the square of the shape: exact but for chance, of
        // which the sd is a part of 0.007.
        let exact = shape * shape * events;
        assert!(
            (information[0] / exact - 1.0).abs() < 0.03,
            "{information:?} {exact}"
        );
        for k in 0..3 {
            let scale = (squares[0] * squares[2]).sqrt();
            let off = (information[k] - squares[k]).abs() / if k == 1 { scale } else { squares[k] };
            assert!(off < 0.04, "{k}: {information:?} {squares:?}");
        }
    }
}

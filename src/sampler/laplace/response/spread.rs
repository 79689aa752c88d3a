//! Directions that change how widely outcomes spread and not where they are, as those of a scale or of a
//! dispersion; and steps along them.

use super::{RECORDS, Response, SlopeToExplain, difference, root_of};
use crate::density::BLOCK;
use crate::linear::{Matrix, dot, length};

/// A direction is one of spread if the places of outcomes have less than this share of its information.
const OF_PLACES: f64 = 0.1;
/// Where more than this share of all directions are, it is not known which of them are.
const MOST: f64 = 0.5;
/// Distances are tried at this many places, so many times, each time where they are within `DEPTH` nats of the
/// likeliest.
const TRIALS: usize = 12;
const PASSES: usize = 3;
const DEPTH: f64 = 8.0;
/// The response may fall by this share of the noise before it counts as lost.
const FALL: f64 = 0.1;
/// A belief is contradicted by a distance of this many of its sds.
const DOUBTED: f64 = 2.0;
/// A distance with the standard deviation s is believed to be shorter by s / (1 + t / s), where t is this, in sds of
/// one record: records are many sds away from outcomes that hardly spread, whereas a spread that is too wide
/// costs a round. After the last round there is none: if it were shorter there too, of 100 intervals of a normal
/// scale (500 outcomes, epsilon 1) 22 would miss it, and 15 do.
const SHY: f64 = 0.25;
/// Where there are several directions of spread, and the Newton step in these is longer than this, in sds of one record,
/// its direction says next to nothing: from a scale that is far too wide, it may lead to the fewest degrees of freedom.
const LONG: f64 = 0.5;
/// Along one of several directions of spread, a distance is at most this many times the Newton step.
const OF_SEVERAL: f64 = 3.0;

/// The slope that a round has seen in a frame, the variance of its noise in each direction, and the belief about the
/// centre's error before: its mean, and its covariance.
pub(in crate::sampler::laplace) struct ObservedSlope<'a> {
    pub slope: Vec<f64>,
    pub noise: f64,
    pub ahead: &'a [f64],
    pub belief: &'a Matrix,
    /// The information in each direction as far as noise could not have made it.
    pub claims: &'a [f64],
    /// Whether a clipped gradient is that of a unit, which has an unknown number of rows.
    pub by_units: bool,
    /// Whether it is the last one, after which no error costs a round.
    pub is_last: bool,
}

/// A step, how much shorter it is than what is believed, the covariance of the error in that, and the number of rows
/// that have the information of the frame.
pub(in crate::sampler::laplace) struct SpreadStep {
    pub step: Vec<f64>,
    pub short: Vec<f64>,
    pub left: Matrix,
    pub rows: f64,
}

/// A step along one direction of a frame, in which records have the identity as their information.
struct Along<'a> {
    unit: &'a [f64],
    /// The rest of the step, and the square of the length that explains what outcomes spread now and are not to.
    rest: &'a [f64],
    explained: f64,
    /// The slope that was seen, and the variance of its noise.
    slope: f64,
    noise: f64,
    /// The mean and the variance of the distance before it was seen.
    ahead: f64,
    believed: f64,
    within: [f64; 2],
    /// The rows of a unit.
    rows: f64,
}

/// A value that one record's outcome may have, its probability, and the score there.
#[derive(Clone)]
struct Outcome {
    p: f64,
    value: f64,
    score: Vec<f64>,
}

impl Response<'_> {
    /// The part of a step in directions that change how widely counts spread and not their means, as a
    /// projection; `None` where there are none, or outcomes are not counts.
    pub fn beside_means(&self) -> Option<Matrix> {
        self.law
            .has_counts()
            .then(|| self.spreads(|_, outcomes, m| information_of_mean(outcomes, m)))
            .flatten()
    }

    /// The same for real outcomes; `None` also where most directions are such.
    fn beside_places(&self) -> Option<Matrix> {
        let of_real = self.law.has_real_outcomes_only();
        let of_places = |k: usize, outcomes: &mut [Outcome], m: usize| {
            information_of_place(outcomes, self.law.atoms(k), m)
        };
        let found = of_real.then(|| self.spreads(of_places)).flatten();
        found.filter(|spread| spread.trace() < MOST * spread.rows() as f64 + 0.5)
    }

    /// The mean of an outcome has the information c c' / v, where c is the covariance of the outcome
    /// with the score, and v its variance. It is at most the score's own (Cauchy and Schwarz), and all of it
    /// for a Poisson law. The same holds for the mean of any function of the outcome. `told` is the information about the
    /// place of outcome k of a record, or `None` where it has one value.
    fn spreads(
        &self,
        told: impl Fn(usize, &mut [Outcome], usize) -> Option<Matrix>,
    ) -> Option<Matrix> {
        let m = self.frame.coordinates();
        let columns = self.columns();
        let mut scratch = self.law.scratch_at(&self.here.z);
        let located = self.law.locate(&columns, RECORDS, &mut scratch);
        let mut whole = Matrix::new(m, m, |_, _| 0.0);
        let mut outcomes = vec![Vec::new(); located.outcomes(0).count() * RECORDS];
        self.visit(&located, &self.here, |j, node| {
            let possible = node.probabilities.iter().enumerate();
            for (i, &p) in possible.filter(|(_, p)| **p > 0.0) {
                let score: Vec<f64> = (0..m).map(|j| node.gradients[j * BLOCK + i]).collect();
                whole = &whole + &Matrix::square_of(&score).scaled(p);
                for (k, values) in located.outcomes(j).enumerate() {
                    outcomes[k * RECORDS + i].push(Outcome {
                        p,
                        value: values[i],
                        score: score.clone(),
                    });
                }
            }
        });
        let outcomes = outcomes.iter_mut().enumerate();
        let of_means = outcomes.filter_map(|(k, outcomes)| told(k / RECORDS, outcomes, m));
        let of_means = of_means.fold(Matrix::new(m, m, |_, _| 0.0), |sum, each| &sum + &each);
        let root = root_of(&whole);
        let back = root.inverse();
        let beside =
            (of_means.between(&back)).with_eigenvalues(|share| f64::from(share < OF_PLACES));
        let found = beside.trace() > 0.5;
        Some(&(&back * &beside) * &root).filter(|a| found && a.is_finite())
    }

    /// The step and the covariance of its error, with the distance along its part that changes how widely real
    /// outcomes spread by the law: the Newton step is far too short where they spread less than it seems, and far
    /// too long where they spread more. No step is longer than `reach` sds of one record. `None` where there is no
    /// such part.
    pub fn along_spread(
        &self,
        (step, left): (&[f64], &Matrix),
        seen: &ObservedSlope,
        reach: f64,
    ) -> Option<SpreadStep> {
        let spread = self.beside_places()?;
        let mut along = spread.times(step);
        let rest = difference(step, &along);
        // The information of the frame is that of all rows, and the simulated ones stand for one in each unit.
        let of_units = if seen.by_units {
            dot(&along, &along) / self.information()?.form(&along)
        } else {
            1.0
        };
        let rows = of_units * self.times * RECORDS as f64;
        let far = reach * rows.sqrt();
        let is_one = spread.trace() < 1.5;
        let is_long = length(&along) > LONG * rows.sqrt();
        if !is_one
            && is_long
            && let Some(found) = self.within(&spread, seen, (of_units, far))
        {
            along = found;
        }
        let size = length(&along).max(f64::MIN_POSITIVE);
        let unit: Vec<f64> = along.iter().map(|x| x / size).collect();
        let own = left.form(&unit);
        // What is left of the rest's error after the step looks like spread here and at the next place, but is none: it
        // counts as such until the last step. Records tell nothing in a direction whose information is noise.
        let moved = (far / length(&rest).max(f64::MIN_POSITIVE)).min(1.0);
        let known = Matrix::diagonal(seen.claims);
        let mut explained = moved * (2.0 - moved) * known.form(&rest);
        if seen.is_last {
            let all: f64 = (0..rest.len()).map(|j| seen.claims[j] * left[(j, j)]).sum();
            explained += (all - known.form(&unit) * own).max(0.0);
        }
        let (mean, variance) = self.distance(&Along {
            unit: &unit,
            rest: &rest,
            explained,
            slope: dot(&unit, &seen.slope),
            noise: seen.noise,
            ahead: dot(&unit, seen.ahead),
            believed: seen.belief.form(&unit),
            within: if is_one {
                [-far, far]
            } else {
                [0.0, far.min(OF_SEVERAL * size)]
            },
            rows: of_units,
        })?;
        let shy = if seen.is_last {
            0.0
        } else {
            variance / (variance.sqrt() + SHY * rows.sqrt())
        };
        let distance = (mean.abs() - shy).max(0.0).copysign(mean);
        let parts = rest.iter().zip(&unit);
        let more = (variance - own).max(0.0);
        Some(SpreadStep {
            step: parts.map(|(r, u)| moved * r + distance * u).collect(),
            short: unit.iter().map(|u| (mean - distance) * u).collect(),
            left: left + &Matrix::square_of(&unit).scaled(more),
            rows,
        })
    }

    /// The likeliest step in several directions of spread, those on which `spread` projects, no longer than `far`, where
    /// a unit has this many rows.
    fn within(
        &self,
        spread: &Matrix,
        seen: &ObservedSlope,
        (of_units, far): (f64, f64),
    ) -> Option<Vec<f64>> {
        let (values, vectors) = (spread * &spread.transposed()).eigen();
        let kept: Vec<usize> = (0..values.len()).filter(|&k| values[k] > 0.5).collect();
        let basis = Matrix::new(values.len(), kept.len(), |i, k| vectors[(i, kept[k])]);
        let back = basis.transposed();
        let slope: Vec<f64> = seen.slope.iter().map(|s| s / of_units).collect();
        let (found, _) = self.fit(&SlopeToExplain {
            basis: &basis,
            slope: &back.times(&slope),
            variance: seen.noise / (of_units * of_units),
            believed: &back.times(seen.ahead),
            precision: &seen.belief.between(&basis).inverse(),
            longest: far,
        })?;
        Some(basis.times(&found.step))
    }

    /// The mean and the variance of the distance along a direction, given the slope that was seen there:
    /// the law tells which slope each distance has. `None` where that is not finite.
    fn distance(&self, along: &Along) -> Option<(f64, f64)> {
        let [mut low, mut high] = along.within;
        // The simulated records see the rest of the step by other covariates: it is made to be as far for them
        // as for the real ones.
        let off = along.rows * self.information()?.form(along.rest);
        let scale = if off > 0.0 {
            (along.explained / off).sqrt()
        } else {
            1.0
        };
        let told = |x: f64| -> Option<f64> {
            let at = along.rest.iter().zip(along.unit);
            let at: Vec<f64> = at.map(|(r, u)| scale * r + x * u).collect();
            Some(along.rows * dot(along.unit, &self.score(&at)?.mean))
        };
        let mut likely = Vec::new();
        for _ in 0..PASSES {
            let spacing = (high - low) / TRIALS as f64;
            let points = (0..TRIALS).map(|k| low + (k as f64 + 0.5) * spacing);
            let told: Vec<[f64; 2]> = points.filter_map(|x| Some([x, told(x)?])).collect();
            likely = along.likely(&told);
            let near = likely.iter().filter(|[_, log]| *log > -DEPTH);
            let ends = near.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], [x, _]| {
                [a.min(*x), b.max(*x)]
            });
            [low, high] = [ends[0] - spacing, ends[1] + spacing];
        }
        let [mass, mean, square] = likely.iter().fold([0.0; 3], |[a, b, c], [x, log]| {
            let p = log.exp();
            [a + p, b + p * x, c + p * x * x]
        });
        let mean = mean / mass;
        let variance = (square / mass - mean * mean).max(0.0);
        (mean.is_finite() && variance.is_finite()).then_some((mean, variance))
    }
}

impl Along<'_> {
    /// Distances with the logs of their probabilities, over the largest, of distances in ascending order with
    /// the slope that each has.
    fn likely(&self, told: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let middle = told.partition_point(|[x, _]| *x < 0.0);
        let mut squares = Vec::new();
        let tolerated = FALL * self.noise.sqrt();
        let mut outwards = |sign: f64, side: &mut dyn Iterator<Item = &[f64; 2]>| {
            // Far away too few outcomes are possible both here and there, and what is left of the response falls.
            let mut most = f64::NEG_INFINITY;
            for [x, slope] in side {
                if sign * slope < most - tolerated {
                    break;
                }
                most = most.max(sign * slope);
                squares.push([*x, (self.slope - slope).powi(2) / self.noise]);
            }
        };
        outwards(-1.0, &mut told[..middle].iter().rev());
        outwards(1.0, &mut told[middle..].iter());
        // A belief that is contradicted becomes as wide as what is seen.
        let best = (squares.iter()).fold(f64::INFINITY, |least, [_, square]| square.min(least));
        let explains = squares.iter().filter(|[_, square]| *square <= best + 1.0);
        let least = explains.fold(f64::INFINITY, |least, [x, _]| {
            (x - self.ahead).abs().min(least)
        });
        let believed = self.believed.max((least / DOUBTED).powi(2));
        let logs = squares
            .iter()
            .map(|[x, square]| -0.5 * (square + (x - self.ahead).powi(2) / believed));
        let peak = logs.clone().fold(f64::NEG_INFINITY, f64::max);
        squares
            .iter()
            .zip(logs)
            .map(|([x, _], log)| [*x, log - peak])
            .collect()
    }
}

/// The information of an outcome's mean; the score's own mean is zero.
fn information_of_mean(outcomes: &[Outcome], m: usize) -> Option<Matrix> {
    let mean_of = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(|o| o.p * of(o)).sum::<f64>();
    let mean = mean_of(&|o| o.value);
    let variance = mean_of(&|o| o.value * o.value) - mean * mean;
    let with_score: Vec<f64> = (0..m).map(|j| mean_of(&|o| o.value * o.score[j])).collect();
    (variance > 0.0).then(|| Matrix::square_of(&with_score).scaled(1.0 / variance))
}

/// The information of the place of an outcome in its distribution, so that heavy tails do not count for more than they
/// tell; and of the probabilities of `atoms`, besides which the others have their place among themselves.
fn information_of_place(outcomes: &mut [Outcome], atoms: &[f64], m: usize) -> Option<Matrix> {
    outcomes.sort_by(|a, b| a.value.total_cmp(&b.value));
    let is_atom: Vec<bool> = outcomes.iter().map(|o| atoms.contains(&o.value)).collect();
    let of_atoms = atoms.iter().filter_map(|&atom| {
        let indicator = |o: &Outcome| Outcome {
            value: f64::from(u8::from(o.value == atom)),
            ..o.clone()
        };
        let indicators: Vec<Outcome> = outcomes.iter().map(indicator).collect();
        information_of_mean(&indicators, m)
    });
    let of_atoms = of_atoms.reduce(|a, b| &a + &b);
    let mut below = 0.0;
    for (outcome, _) in outcomes
        .iter_mut()
        .zip(&is_atom)
        .filter(|(_, atom)| !**atom)
    {
        outcome.value = below + 0.5 * outcome.p;
        below += outcome.p;
    }
    // In the middle of the others, these say nothing about them.
    for (outcome, _) in outcomes.iter_mut().zip(&is_atom).filter(|(_, atom)| **atom) {
        outcome.value = 0.5 * below;
    }
    let of_others = information_of_mean(outcomes, m);
    of_atoms.into_iter().chain(of_others).reduce(|a, b| &a + &b)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{UNITS, in_axes, with};
    use super::*;

    const NORMAL: &str = "record { real y; } parameters { real m; real<lower=0> s; }
        model { m ~ normal(0, 3); s ~ lognormal(0, 1); y ~ normal(m, s); }";

    // Oracle: the information of m and of log s is (1, 2) / (s^2, 1), with none between them. If it failed: places
    // would be mistaken for spreads, as for a lognormal outcome, whose mean depends on its scale.
    #[test]
    fn a_scale_is_beside_places() {
        let logarithm = NORMAL
            .replace("real y", "real<lower=0> y")
            .replace("y ~ normal", "y ~ lognormal");
        for source in [NORMAL, &logarithm] {
            for log_scale in [0.0, 0.9] {
                let found = with(source, &[0.4, log_scale], |r| r.beside_places()).unwrap();
                let kept = found.times(&[1.0, 1.0]);
                assert!(kept[0].abs() < 0.02, "{source}: {kept:?}");
                assert!((kept[1] - 1.0).abs() < 0.02, "{source}: {kept:?}");
            }
        }
        let counts =
            "record { int<lower=0, upper=90> y; } parameters { real a; real<lower=0> phi; }
            model { a ~ normal(0, 1); phi ~ lognormal(0, 1); y ~ neg_binomial_2_log(a, phi); }";
        assert_eq!(with(counts, &[0.3, 0.2], |r| r.beside_places()), None);
    }

    // Oracle: the same, where records have an outcome at all with log-odds a. If it failed: the scale of the outcomes that
    // are not 0 would be held to be too wide, as errors of their means would count as spread.
    #[test]
    fn a_scale_of_what_is_not_zero_is_beside_places() {
        let hurdle = "record { real<lower=0, upper=100000> y; } parameters { real a; real m; real<lower=0> s; }
            model { a ~ normal(0, 1); m ~ normal(0, 3); s ~ lognormal(0, 1);
              target += y > 0
                ? bernoulli_logit_lpmf(1 | a) + lognormal_lpdf(y | m, s) : bernoulli_logit_lpmf(0 | a); }";
        for level in [-1.5, 0.0, 1.5] {
            let found = with(hurdle, &[level, 0.4, 0.0], |r| r.beside_places()).unwrap();
            let kept = found.times(&[1.0; 3]);
            let off = kept[0].abs() + kept[1].abs() + (kept[2] - 1.0).abs();
            assert!(off < 0.05, "{level}: {kept:?}");
        }
    }

    /// The distance along log s, in these units, and its sd, where the mean is off by `m` and the scale by the
    /// factor `s`, and the belief has this mean and sd.
    fn distance(m: f64, s: f64, noise: f64, [ahead, believed]: [f64; 2]) -> [f64; 2] {
        let root = 2f64.sqrt();
        let axes = Matrix::diagonal(&[1.0, 1.0 / root]);
        let found = in_axes(&axes, NORMAL, &[0.0; 2], |response| {
            response.distance(&Along {
                unit: &[0.0, 1.0],
                rest: &[UNITS * m, 0.0],
                explained: (UNITS * m).powi(2),
                slope: UNITS * (s * s + m * m - 1.0) / root,
                noise: (UNITS * noise).powi(2),
                ahead: UNITS * root * ahead,
                believed: (UNITS * believed).powi(2),
                within: [-4.0 * UNITS, 4.0 * UNITS],
                rows: 1.0,
            })
        });
        let (mean, variance) = found.unwrap();
        [mean, variance.sqrt()].map(|x| x / (UNITS * root))
    }

    // Oracle: with the mean at m, the mean score of log s at s = 1 is s^2 + m^2 - 1, with the slope 2 s^2; so that
    // noise of the sd e in it is e / (2 s^2) in log s. If it failed: a scale would shrink by at most half of itself in
    // each round.
    #[test]
    fn a_scale_is_found_in_one_step() {
        for (m, s) in [(0.0, 0.4), (0.0, 2.5), (0.8, 0.5), (0.8, 1.0)] {
            let [found, sd] = distance(m, s, 0.01, [0.0, 3.0]);
            assert!((found - f64::ln(s)).abs() < 0.06, "{m} {s}: {found} {sd}");
        }
        let [_, sd] = distance(0.0, 0.8, 0.05, [0.0, 3.0]);
        let oracle = 2f64.sqrt() * 0.05 / (2.0 * 0.8 * 0.8);
        assert!((sd / oracle - 1.0).abs() < 0.2, "{sd} {oracle}");
    }

    // Where noise hides how small a scale is, the belief decides; a belief that what is seen contradicts does not.
    #[test]
    fn a_belief_decides_where_the_slope_says_little() {
        let [found, sd] = distance(0.0, 0.05, 0.2, [0.0, 0.5]);
        assert!((-1.2..-0.3).contains(&found), "{found}");
        assert!((0.1..0.6).contains(&sd), "{sd}");
        let [found, _] = distance(0.0, 4.0, 0.05, [0.0, 0.1]);
        assert!((found - 4f64.ln()).abs() < 0.1, "{found}");
        // Noise of ten times the slope: the distance that was believed, and its sd.
        let [found, sd] = distance(0.0, 1.0, 10.0, [-0.7, 0.2]);
        let believed = 0.2 / 2f64.sqrt();
        assert!((found + 0.7).abs() < 0.02, "{found}");
        assert!((sd / believed - 1.0).abs() < 0.05, "{sd}");
    }

    /// The step of m and log s, in sds of one record, that is `rest` along m with an error of this sd, in a frame with
    /// `axes` whose information is that of `rows` real rows for each simulated one, and the error in log s.
    fn along(
        axes: [f64; 2],
        (rest, error): (f64, f64),
        square: f64,
        rows: f64,
        is_last: bool,
    ) -> ([f64; 2], f64) {
        let units = UNITS * rows.sqrt();
        let root = 2f64.sqrt();
        let slope = rows.sqrt() * UNITS * (square - 1.0) / root;
        let axes = Matrix::diagonal(&[axes[0], axes[1] / root]);
        let found = in_axes(
            &axes.scaled(rows.sqrt().recip()),
            NORMAL,
            &[0.0; 2],
            |response| {
                response.along_spread(
                    (
                        &[units * rest, 0.5 * slope],
                        &Matrix::diagonal(&[(units * error).powi(2), 1e-4]),
                    ),
                    &ObservedSlope {
                        slope: vec![units * rest, slope],
                        noise: (0.01 * units).powi(2),
                        ahead: &[0.0; 2],
                        belief: &Matrix::diagonal(&[1e6, 1e6]),
                        claims: &[1.0; 2],
                        by_units: rows > 1.0,
                        is_last,
                    },
                    4.0,
                )
            },
        );
        let found = found.unwrap();
        assert!(
            (found.rows / (units * units) - 1.0).abs() < 0.05,
            "{}",
            found.rows
        );
        let [m, log_scale] = [found.step[0] / units, found.step[1] / units / root];
        ([m, log_scale], found.left[(1, 1)].sqrt() / units / root)
    }

    // Oracle: with the mean off by d, of which the step covers c, what is left of E y^2 is 1 + (E y^2 - 1) - d^2 +
    // (d - c)^2, and the scale that belongs to it is its root. If it failed: scales would shrink under errors of means
    // that are still there, or rows of a unit would make them shrink by as many times too much.
    #[test]
    fn a_scale_covers_what_a_step_leaves_of_the_mean() {
        for rows in [1.0, 5.0] {
            for (d, s) in [(0.0, 0.5_f64), (0.9, 0.5), (3.0, 2.0), (6.0, 0.5)] {
                let c = f64::min(d, 4.0);
                let oracle = 0.5 * (s * s + (d - c).powi(2)).ln();
                let ([m, log_scale], _) = along([1.0, 1.0], (d, 1e-3), s * s + d * d, rows, false);
                assert!((m - c).abs() < 0.02 * (1.0 + d), "{d} {s}: {m}");
                assert!(
                    (log_scale - oracle).abs() < 0.15,
                    "{rows} {d} {s}: {log_scale} {oracle}"
                );
            }
        }
    }

    // The scale is a third of what it seems, and the degrees of freedom are right. Oracle: the step whose slope by the law
    // is given. If it failed: searches that begin wide would go to the fewest degrees of freedom, and be lost (one in
    // ten on wages at epsilon 1).
    #[test]
    fn of_scale_and_degrees_of_freedom_that_changes_which_is_off() {
        let student = "record { real<lower=-2, upper=2> x; real y; }
            parameters { real a; real b; real<lower=0> s; real<lower=2> nu; }
            model { a ~ normal(0, 3); b ~ normal(0, 3); s ~ lognormal(0, 1); nu ~ gamma(2, 0.1);
              y ~ student_t(nu, a + b * x, s); }";
        let step = [0.0, 0.0, -1.1 * UNITS, 0.0];
        let (newton, found) = with(student, &[0.0, 0.0, 0.0, 2.4], |response| {
            let slope = response.score(&step).unwrap().mean;
            let newton = response.information().unwrap().inverse().times(&slope);
            let seen = ObservedSlope {
                slope,
                noise: 1.0,
                ahead: &[0.0; 4],
                belief: &Matrix::identity(4).scaled((4.0 * UNITS).powi(2)),
                claims: &[1.0; 4],
                by_units: false,
                is_last: false,
            };
            let spread = response.beside_places().unwrap();
            (
                newton,
                response.within(&spread, &seen, (1.0, 4.0 * UNITS)).unwrap(),
            )
        });
        let off = |at: &[f64]| length(&difference(at, &step)) / UNITS;
        assert!(off(&newton) > 1.0, "{newton:?}");
        assert!(off(&found) < 0.3, "{found:?}");
    }

    // E y^2 is s^2 + d^2 + e^2, where d is the step of the mean and e the sd of the error that it leaves. Oracle: at the
    // next place E y^2 is s^2 + e^2, and after the last step the scale is s. If it failed: of a mean that noise hides by
    // two of a record's sds, the scale would come out twice as wide as it is, and certain.
    #[test]
    fn what_is_left_of_the_error_of_a_mean_is_no_scale() {
        for (d, e, s) in [(0.0, 0.6, 0.5_f64), (0.8, 0.6, 0.5), (0.5, 1.0, 1.5)] {
            let square = s * s + d * d + e * e;
            for (is_last, oracle) in [(false, 0.5 * (s * s + e * e).ln()), (true, s.ln())] {
                let ([_, log_scale], _) = along([1.0, 1.0], (d, e), square, 1.0, is_last);
                assert!(
                    (log_scale - oracle).abs() < 0.1,
                    "{d} {e} {s} {is_last}: {log_scale} {oracle}"
                );
            }
        }
    }

    // The slope is that of a scale of 0.4, with noise that hides how small it is. If it failed: scales would stay wider
    // than all that is known of them, by what the rounds before kept in reserve.
    #[test]
    fn the_last_step_along_a_scale_is_as_long_as_it_is_believed_to_be() {
        let root = 2f64.sqrt();
        let slope = UNITS * (0.16 - 1.0) / root;
        let belief = Matrix::identity(2).scaled(1e4);
        let found = |is_last| {
            let axes = Matrix::diagonal(&[1.0, 1.0 / root]);
            let newton = [0.0, slope];
            let left = Matrix::identity(2);
            let found = in_axes(&axes, NORMAL, &[0.0; 2], |response| {
                let seen = ObservedSlope {
                    slope: newton.to_vec(),
                    noise: (0.2 * UNITS).powi(2),
                    ahead: &[0.0; 2],
                    belief: &belief,
                    claims: &[1.0; 2],
                    by_units: false,
                    is_last,
                };
                response.along_spread((&newton, &left), &seen, 4.0)
            });
            let found = found.unwrap();
            [found.step[1], found.short[1], found.left[(1, 1)].sqrt()]
        };
        let ([shy, short, sd], [last, none, own]) = (found(false), found(true));
        assert!(last < shy && shy <= 0.0, "{last} {shy}");
        assert_eq!(none, 0.0);
        // What was held back is known; that the mean's error is no scale after the last step is a trifle here.
        assert!(
            (shy + short - last).abs() < 0.02 * last.abs(),
            "{shy} {short} {last}"
        );
        assert!((sd / own - 1.0).abs() < 0.05, "{sd} {own}");
    }

    // The real records see means by other covariates than the simulated ones, here by twice as wide ones.
    #[test]
    fn a_step_of_means_is_as_far_for_simulated_records_as_for_real_ones() {
        let ([m, log_scale], sd) = along([2.0, 1.0], (0.9, 1e-3), 0.25 + 0.81, 1.0, false);
        assert!((m - 0.9).abs() < 0.01, "{m}");
        assert!((log_scale - 0.5_f64.ln()).abs() < 0.1, "{log_scale} {sd}");
        // A scale of 0.5 is known to noise / (2 s^2) = 0.01 sqrt 2 / 0.5.
        assert!((0.02..0.04).contains(&sd), "{sd}");
    }

    // If it failed: a step would go to where the law has nothing in common with itself here.
    #[test]
    fn a_response_that_was_lost_explains_nothing() {
        let along = Along {
            unit: &[1.0],
            rest: &[0.0],
            explained: 0.0,
            slope: 0.1,
            noise: 1.0,
            ahead: 0.0,
            believed: 1e6,
            within: [-40.0, 40.0],
            rows: 1.0,
        };
        let told = [
            [-30.0, 0.0],
            [-20.0, -9.0],
            [-10.0, -8.0],
            [10.0, 40.0],
            [20.0, 90.0],
            [30.0, 0.1],
        ];
        let mut likely = along.likely(&told);
        likely.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let found: Vec<f64> = likely.iter().map(|[x, _]| *x).collect();
        assert_eq!(found, [-20.0, -10.0, 10.0, 20.0]);
    }
}

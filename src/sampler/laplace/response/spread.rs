//! Directions that change how widely outcomes spread and not where they are, as those of a scale or of a
//! dispersion; and steps along them.

use super::{RECORDS, Response, root_of};
use crate::density::BLOCK;
use crate::linear::{Matrix, dot};

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

/// What is known of a step along one direction of a frame, in which records have the identity as their
/// information.
pub(in crate::sampler::laplace) struct Along<'a> {
    pub unit: &'a [f64],
    /// The rest of the step, and the square of its length, as far as it explains what outcomes spread now.
    pub rest: &'a [f64],
    pub explained: f64,
    /// The slope that was seen, and the variance of its noise.
    pub slope: f64,
    pub noise: f64,
    /// The variance of the distance before it was seen; its mean is 0.
    pub believed: f64,
    pub within: [f64; 2],
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
            .then(|| self.spreads(|_| ()))
            .flatten()
    }

    /// The same for real outcomes; `None` also where most directions are such.
    pub fn beside_places(&self) -> Option<Matrix> {
        let of_real = self.law.has_real_outcomes_only();
        let found = of_real.then(|| self.spreads(take_ranks)).flatten();
        found.filter(|spread| spread.trace() < MOST * spread.rows() as f64 + 0.5)
    }

    /// The mean of an outcome has the information c c' / v, where c is the covariance of the outcome
    /// with the score, and v its variance. It is at most the score's own (Cauchy and Schwarz), and all of it
    /// for a Poisson law. The same holds for the mean of any function of the outcome, which `of` makes of it.
    fn spreads(&self, of: impl Fn(&mut [Outcome])) -> Option<Matrix> {
        let m = self.frame.coordinates();
        let columns = self.columns();
        let mut scratch = self.law.scratch_at(&self.here.z, m);
        let located = self.law.locate(&columns, RECORDS, &mut scratch);
        let mut whole = Matrix::new(m, m, |_, _| 0.0);
        let mut outcomes = vec![Vec::new(); located.outcomes(0).count() * RECORDS];
        self.visit(&located, &self.here, m, |j, node| {
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
        let of_means = outcomes.iter_mut().filter_map(|outcomes| {
            of(outcomes);
            information_of_mean(outcomes, m)
        });
        let of_means = of_means.fold(Matrix::new(m, m, |_, _| 0.0), |sum, each| &sum + &each);
        let root = root_of(&whole);
        let back = root.inverse();
        let beside =
            (of_means.between(&back)).with_eigenvalues(|share| f64::from(share < OF_PLACES));
        let found = beside.trace() > 0.5;
        Some(&(&back * &beside) * &root).filter(|a| found && a.is_finite())
    }

    /// The mean and the variance of the distance along a direction, given the slope that was seen there:
    /// the law tells which slope each distance has. `None` where that is not finite.
    pub fn distance(&self, along: &Along) -> Option<(f64, f64)> {
        let [mut low, mut high] = along.within;
        // The simulated records see the rest of the step by other covariates: it is made to be as far for them
        // as for the real ones.
        let off = self.information()?.form(along.rest);
        let scale = if off > 0.0 {
            (along.explained / off).sqrt()
        } else {
            1.0
        };
        let told = |x: f64| -> Option<f64> {
            let at = along.rest.iter().zip(along.unit);
            let at: Vec<f64> = at.map(|(r, u)| scale * r + x * u).collect();
            Some(dot(along.unit, &self.score(&at)?.mean))
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
        let least = explains.fold(f64::INFINITY, |least, [x, _]| x.abs().min(least));
        let believed = self.believed.max((least / DOUBTED).powi(2));
        let logs = squares
            .iter()
            .map(|[x, square]| -0.5 * (square + x * x / believed));
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

/// Replaces the values of an outcome by their places in its distribution function, so that heavy tails do not
/// count for more than they tell.
fn take_ranks(outcomes: &mut [Outcome]) {
    outcomes.sort_by(|a, b| a.value.total_cmp(&b.value));
    let mut below = 0.0;
    for outcome in outcomes {
        outcome.value = below + 0.5 * outcome.p;
        below += outcome.p;
    }
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

    /// The distance along log s, in these units, and its sd, where the mean is off by `m` and the scale by the
    /// factor `s`.
    fn distance(m: f64, s: f64, noise: f64, believed: f64) -> [f64; 2] {
        let root = 2f64.sqrt();
        let axes = Matrix::diagonal(&[1.0, 1.0 / root]);
        let found = in_axes(&axes, NORMAL, &[0.0; 2], |response| {
            response.distance(&Along {
                unit: &[0.0, 1.0],
                rest: &[UNITS * m, 0.0],
                explained: (UNITS * m).powi(2),
                slope: UNITS * (s * s + m * m - 1.0) / root,
                noise: (UNITS * noise).powi(2),
                believed: (UNITS * believed).powi(2),
                within: [-4.0 * UNITS, 4.0 * UNITS],
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
            let [found, sd] = distance(m, s, 0.01, 3.0);
            assert!((found - f64::ln(s)).abs() < 0.06, "{m} {s}: {found} {sd}");
        }
        let [_, sd] = distance(0.0, 0.8, 0.05, 3.0);
        let oracle = 2f64.sqrt() * 0.05 / (2.0 * 0.8 * 0.8);
        assert!((sd / oracle - 1.0).abs() < 0.2, "{sd} {oracle}");
    }

    // Where noise hides how small a scale is, the belief decides; a belief that what is seen contradicts does not.
    #[test]
    fn a_belief_decides_where_the_slope_says_little() {
        let [found, sd] = distance(0.0, 0.05, 0.2, 0.5);
        assert!((-1.2..-0.3).contains(&found), "{found}");
        assert!((0.1..0.6).contains(&sd), "{sd}");
        let [found, _] = distance(0.0, 4.0, 0.05, 0.1);
        assert!((found - 4f64.ln()).abs() < 0.1, "{found}");
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
            believed: 1e6,
            within: [-40.0, 40.0],
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

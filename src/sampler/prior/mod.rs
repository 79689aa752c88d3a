//! The prior, which is public: draws from it, its middle and its curvature.

pub mod margins;
pub mod points;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1};

use crate::density::{Density, NonCentred};
use crate::linear::Matrix;
use crate::sampler::random::public_rng;
use crate::sampler::random::random_point;
use points::PriorPoints;

/// No point with a finite prior density was found.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no point with a finite prior density was found in 100 tries")]
pub struct PriorError;

/// At this distance from 0 along a coordinate, a proper prior is lower than at 0.
pub(crate) const FAR: f64 = 1e4;
/// Rounds through all coordinates between two draws, and fewer where there are many.
const ROUNDS: usize = 10;
const UPDATES: usize = 100;
/// Rounds before the first draw, in units of those between draws.
const WARMUP: usize = 5;
/// With more than `MANY` coordinates, at most `MOST_UPDATES` updates are made in all, since each
/// evaluates the whole prior: fewer rounds, and fewer draws.
const MANY: usize = 50;
const MOST_UPDATES: usize = 500;

/// Draws from the prior of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorDraws {
    /// Points on the unconstrained scale.
    pub draws: Vec<Vec<f64>>,
    /// Unconstrained coordinates on which the prior is flat or improper and was replaced by a
    /// standard normal.
    pub stand_ins: Vec<usize>,
}

/// `count` draws from the prior (fewer where coordinates are many), one coordinate at a
/// time by slice sampling (Neal 2003, "Slice sampling", section 4, stepping out and
/// shrinking), with widths that are learnt before the first draw: it copes with heavy tails.
///
/// Errors: no point with a finite prior density is found.
pub fn draw_prior(density: &Density, count: usize, seed: u64) -> Result<PriorDraws, PriorError> {
    // Draws of a location and of what is near it would hardly move one by one.
    let map = NonCentred::of(density, |_| true);
    let all: Vec<usize> = (0..density.dimension()).collect();
    let mut prior = draw_coordinates(density, &all, |at| map.log_prior(at), count, seed)?;
    for draw in &mut prior.draws {
        *draw = map.place(draw).theta;
    }
    Ok(prior)
}

/// The same for these coordinates of points with this log density; the others are 0.
fn draw_coordinates(
    density: &Density,
    drawn: &[usize],
    log_prior: impl Fn(&[f64]) -> f64,
    count: usize,
    seed: u64,
) -> Result<PriorDraws, PriorError> {
    let mut rng = public_rng(seed, 0);
    let d = drawn.len();
    let stand_ins = improper_in(density.dimension(), &log_prior);
    let log_density = |theta: &[f64]| {
        let squares: f64 = stand_ins.iter().map(|&j| theta[j] * theta[j]).sum();
        log_prior(theta) - 0.5 * squares
    };
    let mut theta = vec![0.0; density.dimension()];
    let mut tries = 0;
    while !log_density(&theta).is_finite() {
        if tries == 100 {
            return Err(PriorError);
        }
        for (&j, x) in drawn.iter().zip(random_point(d, &mut rng)) {
            theta[j] = x;
        }
        tries += 1;
    }
    let rounds = (UPDATES / d.max(1)).clamp(1, ROUNDS);
    let affordable = MOST_UPDATES / d.max(1);
    let (warmup, count) = if d > MANY {
        let warmup = (affordable / 2).max(2);
        (warmup, count.min(affordable.saturating_sub(warmup).max(1)))
    } else {
        (rounds * WARMUP, count)
    };
    let mut widths = vec![1.0; d];
    let mut draws = Vec::new();
    for round in 1..=warmup + rounds * count {
        let learning = round <= warmup;
        for (&j, width) in drawn.iter().zip(&mut widths) {
            let growth = if learning { 2.0 } else { 1.0 };
            let slice = update(&mut theta, j, log_density, (*width, growth), &mut rng);
            if learning {
                *width = 0.5 * (*width + slice);
            }
        }
        if !learning && (round - warmup) % rounds == 0 {
            draws.push(theta.clone());
        }
    }
    Ok(PriorDraws { draws, stand_ins })
}

/// Draws a new value of coordinate `j` given the others, and returns the length of the slice.
/// The slice is searched in steps whose width grows by the factor `growth` with each: only
/// with 1 does the update leave the distribution invariant.
pub(crate) fn update(
    theta: &mut [f64],
    j: usize,
    log_density: impl Fn(&[f64]) -> f64,
    (width, growth): (f64, f64),
    rng: &mut impl Rng,
) -> f64 {
    let fall: f64 = Exp1.sample(rng);
    let level = log_density(theta) - fall;
    let here = theta[j];
    let above = |x: f64, theta: &mut [f64]| {
        theta[j] = x;
        log_density(theta) > level
    };
    let start = here - width * rng.random::<f64>();
    let mut ends = [start, start + width];
    for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
        let mut step = width;
        while end.abs() < FAR && above(*end, theta) {
            *end += sign * step;
            step *= growth;
        }
    }
    let [mut low, mut high] = ends;
    while high > low {
        let x = low + (high - low) * rng.random::<f64>();
        if above(x, theta) {
            return ends[1] - ends[0];
        }
        if x < here {
            low = x;
        } else {
            high = x;
        }
    }
    theta[j] = here;
    ends[1] - ends[0]
}

/// The coordinates along which the prior does not fall off, or hardly does, up to [`FAR`] from 0: it
/// is nowhere lower than it was nearer to 0. Its mode may be on either side, and near the end
/// numbers may overflow that a logarithm of a scale stands for.
pub(crate) fn improper(density: &Density) -> Vec<usize> {
    improper_in(density.dimension(), |theta| density.log_prior(theta))
}

/// The same of points with so many coordinates and this log density.
fn improper_in(d: usize, log_prior: impl Fn(&[f64]) -> f64) -> Vec<usize> {
    let log_prior_with = |j: usize, value: f64| {
        let mut point = vec![0.0; d];
        point[j] = value;
        log_prior(&point)
    };
    let falls = |j: usize, side: f64| {
        let mut highest = f64::NEG_INFINITY;
        let steps = (-2..14).map(|k| f64::from(k).exp2());
        let distances = std::iter::once(0.0).chain(steps).chain([FAR]);
        distances.into_iter().any(|distance| {
            let value = log_prior_with(j, side * distance);
            let fell = value < highest - 1.0 || value.is_nan() && highest.is_finite();
            highest = highest.max(value);
            fell
        })
    };
    (0..d)
        .filter(|&j| !(falls(j, 1.0) && falls(j, -1.0)))
        .collect()
}

/// Draws from which the middle is taken.
const FOR_MIDDLE: usize = 50;
/// The step of numerical differences.
const STEP: f64 = 1e-3;

/// For each non-centred coordinate, zero if it lies in the middle fifth of the prior's draws, else their
/// median: a vague prior's median is known no better than that, and starts are often at zero.
pub(crate) fn middle_of_prior(density: &Density, seed: u64) -> Result<Vec<f64>, PriorError> {
    // What moves others is independent of their coordinates.
    let map = NonCentred::of(density, |_| true);
    let moved = map.moved();
    let drawn: Vec<usize> = (0..moved.len()).filter(|&j| !moved[j]).collect();
    let prior = draw_coordinates(density, &drawn, |at| map.log_prior(at), FOR_MIDDLE, seed)?;
    let d = density.dimension();
    // With many coordinates there are too few draws to take a median of.
    let margins = if drawn.len() > MANY {
        PriorPoints::new(density)?.margins()
    } else {
        Vec::new()
    };
    let mut middle = Vec::with_capacity(d);
    for j in 0..d {
        if moved[j] {
            middle.push(0.0);
            continue;
        }
        let mut column: Vec<f64> = prior.draws.iter().map(|draw| draw[j]).collect();
        column.sort_by(f64::total_cmp);
        let margin = margins.iter().find(|(own, _)| *own == j);
        let quantile = |share: f64| match margin {
            Some((_, grid)) => grid.quantile(share),
            None => column[(share * (column.len() - 1) as f64).round() as usize],
        };
        middle.push(if quantile(0.4) <= 0.0 && 0.0 <= quantile(0.6) {
            0.0
        } else {
            quantile(0.5)
        });
    }
    // The medians of single coordinates need not be likely together: for a curved prior, the
    // origin may be the better guess.
    let origin = vec![0.0; d];
    if map.log_prior(&origin) >= map.log_prior(&middle) {
        middle = origin;
    }
    let middle = map.place(&middle).theta;
    if density.log_prior(&middle).is_finite() {
        return Ok(middle);
    }
    let last = prior.draws.last().ok_or(PriorError)?;
    Ok(map.place(last).theta)
}

/// Minus the second derivatives of log prior and Jacobian at `theta`, by differences of
/// gradients; zero where they are not finite.
pub(crate) fn prior_curvature(density: &Density, theta: &[f64]) -> Matrix {
    let d = theta.len();
    let side = |j: usize, by: f64| {
        let mut moved = theta.to_vec();
        moved[j] += by;
        density.pull_back(&moved, &[]).1
    };
    let rows: Vec<Vec<f64>> = (0..d)
        .map(|j| {
            let step = STEP * (1.0 + theta[j].abs());
            let (above, below) = (side(j, step), side(j, -step));
            let differences = below.iter().zip(above);
            differences.map(|(b, a)| (b - a) / (2.0 * step)).collect()
        })
        .collect();
    Matrix::new(d, d, |i, j| {
        let entry = 0.5 * (rows[i][j] + rows[j][i]);
        if entry.is_finite() { entry } else { 0.0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    // If it failed: with many parameters a search would begin at a single draw of the prior, or at the
    // origin, and not at its middle. Oracle: the medians of the priors, on the unconstrained scale.
    #[test]
    fn the_middle_of_many_parameters_is_that_of_their_priors() {
        let source = "record { real y; int<lower=1, upper=60> g; }
            parameters { real mu; real<lower=0> tau; vector[60] z; }
            model { mu ~ normal(12, 5); tau ~ exponential(0.1); z ~ std_normal();
                    y ~ normal(mu + tau * z[g], 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let middle = middle_of_prior(&Density::new(model), 1).unwrap();
        assert!((middle[0] - 12.0).abs() < 0.05, "{}", middle[0]);
        let tau = (10.0 * 2f64.ln()).ln();
        assert!((middle[1] - tau).abs() < 0.05, "{} {tau}", middle[1]);
        assert_eq!(middle[2..], [0.0; 60]);
    }

    // If it failed: a search would begin where all groups are at 0, far from the records. Bounds are five standard
    // errors of the median of 50 draws, of which some are correlated.
    #[test]
    fn the_middle_of_a_centred_hierarchy_is_that_of_its_location() {
        let source = "record { real y; int<lower=1, upper=60> g; }
            parameters { vector[60] a; real mu; real<lower=0> tau; }
            model { mu ~ normal(12, 2); tau ~ lognormal(1, 0.5); a ~ normal(mu, tau);
                    y ~ normal(a[g], 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let middle = middle_of_prior(&Density::new(model), 1).unwrap();
        assert!((middle[60] - 12.0).abs() < 2.0, "{}", middle[60]);
        assert!((middle[61] - 1.0).abs() < 0.5, "{}", middle[61]);
        assert_eq!(middle[..60], [middle[60]; 60]);
    }

    fn draws(source: &str, count: usize) -> PriorDraws {
        let model = Model::from_source(source, &Constants::none()).unwrap();
        draw_prior(&Density::new(model), count, 3).unwrap()
    }

    // If it failed: what is simulated and tuned would be for other parameters than those that
    // the user believes in. Oracle: quartiles of the Cauchy and normal distributions. Five
    // standard errors of a share of 1/2 (false alarm 2e-6); a scale that is off by a quarter
    // moves the share by 0.09 and more.
    #[test]
    fn draws_follow_the_prior() {
        let drawn = draws(
            "record { real y; } parameters { real a; real<lower=0> s; real b; }
             model { a ~ normal(90, 50); s ~ cauchy(0, 5); y ~ normal(a + b, s); }",
            1000,
        );
        assert_eq!(drawn.stand_ins, [2]);
        let n = drawn.draws.len() as f64;
        let share = |within: &dyn Fn(&[f64]) -> bool| {
            drawn.draws.iter().filter(|d| within(d)).count() as f64 / n
        };
        let error = 0.5 / n.sqrt();
        for (what, found) in [
            ("a", share(&|d| (d[0] - 90.0).abs() < 0.67449 * 50.0)),
            ("a above its mean", share(&|d| d[0] > 90.0)),
            ("s below its median", share(&|d| d[1].exp() < 5.0)),
            ("b", share(&|d| d[2].abs() < 0.67449)),
        ] {
            assert!((found - 0.5).abs() < 5.0 * error, "{what}: {found}");
        }
    }

    // Oracle: quartiles of a normal distribution with the sum of the variances, and of the differences. If it failed:
    // the prior of a hierarchy would seem to be as narrow as its groups are alike, and a search would be held back by
    // it. Five standard errors, as above.
    #[test]
    fn draws_of_a_centred_hierarchy_are_as_wide_as_its_prior() {
        let drawn = draws(
            "record { real y; int<lower=1, upper=9> g; }
             parameters { vector[9] a; real mu; real<lower=0> tau; }
             model { mu ~ normal(3, 10); tau ~ lognormal(-1, 0.01); a ~ normal(mu, tau); y ~ normal(a[g], 1); }",
            1000,
        );
        let n = drawn.draws.len() as f64;
        let share = |within: &dyn Fn(&[f64]) -> bool| {
            drawn.draws.iter().filter(|d| within(d)).count() as f64 / n
        };
        let error = 0.5 / n.sqrt();
        let tau = (-1f64).exp();
        let sd = (100.0 + tau * tau).sqrt();
        for (what, found) in [
            ("a[1]", share(&|d| (d[0] - 3.0).abs() < 0.67449 * sd)),
            ("a[1] above its mean", share(&|d| d[0] > 3.0)),
            ("a[9] - mu", share(&|d| (d[8] - d[9]).abs() < 0.67449 * tau)),
        ] {
            assert!((found - 0.5).abs() < 5.0 * error, "{what}: {found}");
        }
    }

    // Wrong here: warnings of priors that are proper, and draws from others in their place. Each has its
    // mode far from 1, or overflows far out.
    #[test]
    fn a_proper_prior_is_seen_wherever_its_mode_is() {
        for prior in [
            "normal(0, 0.005)",
            "normal(0, 2000)",
            "inv_gamma(2, 8)",
            "inv_gamma(0.01, 0.01)",
            "lognormal(20, 1)",
            "gamma(0.1, 1e-4)",
            "exponential(1e6)",
            "cauchy(0, 1e-3)",
            "student_t(1, 500, 1)",
        ] {
            let source = format!(
                "record {{ real y; }} parameters {{ real<lower=0> s; }} model {{ s ~ {prior}; y ~ normal(0, s); }}"
            );
            let model = Model::from_source(&source, &Constants::none()).unwrap();
            assert_eq!(improper(&Density::new(model)), [0; 0], "{prior}");
        }
    }

    #[test]
    fn an_improper_prior_is_found() {
        let drawn = draws(
            "record { real y; } parameters { real a; real<lower=0> s; real<lower=0, upper=1> p; }
             model { y ~ normal(a + p, s); }",
            2,
        );
        // p is uniform, which is proper.
        assert_eq!(drawn.stand_ins, [0, 1]);
    }
}

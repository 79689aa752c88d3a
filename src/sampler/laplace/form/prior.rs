//! The prior's part in a search: the place at which it begins where outcomes are real, and how far it may go.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::SEED;
use crate::density::{Density, Simulator, Space, made_up_values};
use crate::linear::dot;
use crate::sampler::laplace::peak::peak;
use crate::sampler::prior::{PriorDraws, PriorError, draw_prior};

/// Draws from the prior; with fewer than the second number, their range says nothing.
const DRAWS: usize = 50;
const FOR_SPREAD: usize = 10;
/// Records that are made up for each of the prior's draws, those of them that are used, and the fewest
/// that may lie within the declared bounds.
const EACH: usize = 40;
const USED: usize = 256;
const FEWEST: usize = 64;
/// So many records count as much as the prior.
const WEIGHT: f64 = 10.0;
/// With more parameters than this, the search begins in the middle of the prior.
const MOST: usize = 100;
/// The sd of a flat prior.
const FLAT: f64 = 10.0;

/// The parameters that explain best, together, all outcomes that the prior allows within their declared
/// bounds: spreads that are wide enough for any of them. `None` where there is no better place than
/// the middle of the prior.
///
/// From there all records look much alike, whereas from a place at which outcomes hardly spread all of them
/// may be many sds away: the sum of their gradients is long then, and clipping and noise are, too.
pub(super) fn widest_of_prior(density: &Density, middle: &[f64], seed: u64) -> Option<Vec<f64>> {
    let d = density.dimension();
    if d == 0 || d > MOST {
        return None;
    }
    let PriorDraws { draws, stand_ins } = draw_prior(density, DRAWS, seed).ok()?;
    let (columns, n) = outcomes_of(density, &draws, seed)?;
    let spread = |j: usize| {
        let squares = draws.iter().map(|draw| (draw[j] - middle[j]).powi(2));
        (squares.sum::<f64>() / draws.len() as f64).sqrt()
    };
    let precisions: Vec<f64> = (0..d)
        .map(|j| {
            if stand_ins.contains(&j) {
                FLAT
            } else {
                spread(j)
            }
        })
        .map(|sd| sd.max(f64::MIN_POSITIVE).powi(-2))
        .collect();
    let weight = WEIGHT / n as f64;
    let log_density = |theta: &[f64]| {
        let off: Vec<f64> = theta.iter().zip(middle).map(|(t, m)| t - m).collect();
        let pull: Vec<f64> = off.iter().zip(&precisions).map(|(o, p)| o * p).collect();
        let told = density.record_log_likelihoods(theta, &columns, n);
        let mut gradient: Vec<f64> = pull.iter().map(|p| -p).collect();
        for of_record in density.record_gradients(theta, &columns, n).chunks(d) {
            for (sum, g) in gradient.iter_mut().zip(of_record) {
                *sum += weight * g;
            }
        }
        (
            weight * told.iter().sum::<f64>() - 0.5 * dot(&off, &pull),
            gradient,
        )
    };
    let (before, _) = log_density(middle);
    let (theta, _) = peak(log_density, middle.to_vec());
    let better = log_density(&theta).0 > before && density.log_prior(&theta).is_finite();
    better.then_some(theta)
}

/// The columns of records whose outcomes the prior's draws predict within their bounds, and the number of
/// these records.
fn outcomes_of(density: &Density, draws: &[Vec<f64>], seed: u64) -> Option<(Vec<Vec<f64>>, usize)> {
    let model = density.model();
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let simulator = Simulator::new(density).beyond_bounds();
    let mut raw = vec![Vec::new(); model.columns.len()];
    for draw in draws {
        let records = simulator.records(draw, EACH, None, rng);
        raw.iter_mut()
            .zip(records)
            .for_each(|(all, more)| all.extend(more));
    }
    let outcomes = model.outcomes.iter().map(|outcome| outcome.column);
    let outcomes: Vec<usize> = outcomes.filter(|&c| !model.columns[c].is_int).collect();
    let n = raw.first().map_or(0, Vec::len);
    let is_in = |c: usize, i: usize| {
        let column = &model.columns[c];
        let (low, high) = (column.lower, column.upper);
        (low.unwrap_or(f64::MIN)..=high.unwrap_or(f64::MAX)).contains(&raw[c][i])
    };
    let mut kept: Vec<usize> = (0..n)
        .filter(|&i| outcomes.iter().all(|&c| is_in(c, i)))
        .collect();
    // Where the prior predicts next to none of what the bounds allow, or somebody has guessed what outcomes are
    // like, that is taken.
    let few = kept.len() < FEWEST;
    for &c in &outcomes {
        let column = &model.columns[c];
        if few || column.guess.is_some() {
            raw[c] = made_up_values(column, n, seed + c as u64);
        }
    }
    if few {
        kept = (0..n).collect();
    }
    let step = kept.len().div_ceil(USED).max(1);
    let kept: Vec<usize> = kept.into_iter().step_by(step).collect();
    let chosen: Vec<Vec<f64>> = (raw.iter())
        .map(|column| kept.iter().map(|&i| column[i]).collect())
        .collect();
    let (columns, _) = density.load_columns(&chosen, kept.len());
    (!kept.is_empty()).then_some((columns, kept.len()))
}

/// The median of the prior's draws of each parameter, unconstrained, and their standard deviation about it: infinite
/// where the prior is flat.
///
/// Errors: no point with a finite prior density.
pub(in crate::sampler::laplace) fn middle_and_sd(
    density: &Density,
) -> Result<Vec<(f64, f64)>, PriorError> {
    let PriorDraws { draws, stand_ins } = draw_prior(density, DRAWS, SEED)?;
    let summary = |j: usize| {
        let mut column: Vec<f64> = draws.iter().map(|draw| draw[j]).collect();
        column.sort_by(f64::total_cmp);
        let median = column[column.len() / 2];
        if stand_ins.contains(&j) {
            return (median, f64::INFINITY);
        }
        let squares = column.iter().map(|x| (x - median).powi(2));
        (median, (squares.sum::<f64>() / column.len() as f64).sqrt())
    };
    Ok((0..density.dimension()).map(summary).collect())
}

/// The largest distance from the median among the prior's draws of each number of a point of the
/// space; infinite where the prior does not limit it.
///
/// Errors: no point with a finite prior density.
pub(super) fn spread_of_prior(
    density: &Density,
    space: &Space,
    seed: u64,
) -> Result<Vec<f64>, PriorError> {
    let PriorDraws { draws, stand_ins } = draw_prior(density, DRAWS, seed)?;
    let length = density.length_of(space);
    if draws.len() < FOR_SPREAD || !(space.is_parameters() || stand_ins.is_empty()) {
        return Ok(vec![f64::INFINITY; length]);
    }
    let points: Vec<Vec<f64>> = (draws.iter())
        .map(|draw| density.point_of(space, draw))
        .collect();
    let spread = |k: usize| {
        let mut column: Vec<f64> = points.iter().map(|point| point[k]).collect();
        column.sort_by(f64::total_cmp);
        let median = column[column.len() / 2];
        let ends = [column.first(), column.last()].into_iter().flatten();
        ends.map(|end| (end - median).abs()).fold(0.0, f64::max)
    };
    Ok((0..length)
        .map(|k| {
            if stand_ins.contains(&k) {
                f64::INFINITY
            } else {
                spread(k)
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};
    use crate::sampler::prior::middle_of_prior;

    /// The constrained values of the start of a model with a level `a` and a scale `s`.
    fn start(y: &str, law: &str) -> [f64; 2] {
        let (outcome, law) = match law.split_once(' ') {
            Some((function, law)) => (format!("{function}(y)"), law),
            None => ("y".to_string(), law),
        };
        let source = format!(
            "record {{ {y} y; real<lower=-1, upper=1> x; }}
             parameters {{ real a; real b; real<lower=0> s; }}
             model {{ a ~ normal(0, 5); b ~ normal(0, 1); s ~ exponential(2); {outcome} ~ {law}(a + b * x, s); }}"
        );
        let density = Density::new(Model::from_source(&source, &Constants::none()).unwrap());
        let middle = middle_of_prior(&density, 1).unwrap();
        let start = widest_of_prior(&density, &middle, 1).unwrap();
        [start[0], start[2].exp()]
    }

    // Oracle: the prior's predictions of y are near normal(0, 5), here within bounds; on [6, 9] their mean is 7.3 and
    // their sd .8, and the scale, whose prior is 0.5 on average, comes out between that and these. If it failed: a search
    // would begin where outcomes are many sds away, and most of the budget would go into noise for long gradients.
    #[test]
    fn a_scale_begins_as_wide_as_the_outcomes_may_be() {
        for (y, law, [low, high], [least, most]) in [
            ("real", "normal", [-2.0, 2.0], [2.0, 6.0]),
            ("real<lower=6, upper=9>", "normal", [5.5, 8.5], [0.5, 2.0]),
            // Logarithms from 7 to 14.
            (
                "real<lower=1e3, upper=1e6>",
                "lognormal",
                [6.5, 11.5],
                [0.8, 5.0],
            ),
            ("real<lower=0>", "log normal", [-2.0, 2.0], [2.0, 6.0]),
            // The prior predicts none of what is allowed, and the scale covers it.
            (
                "real<lower=90, upper=110>",
                "normal",
                [0.0, 110.0],
                [20.0, 110.0],
            ),
        ] {
            let [a, s] = start(y, law);
            assert!((low..high).contains(&a), "{y} {law}: {a} {s}");
            assert!((least..most).contains(&s), "{y} {law}: {a} {s}");
        }
    }
}

//! Draws from the prior that show the distribution of each parameter: many of them, fast.
//!
//! Most priors are products: the distribution of a coordinate does not depend on the others.
//! Such coordinates are drawn one by one from their density on a grid, and the rest, those
//! of hierarchies, by slice sampling, as far as the limit on evaluations allows.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use crate::density::Density;
use crate::sampler::prior::PriorError;
use crate::sampler::prior::{FAR, improper, update};
use crate::sampler::random::public_rng;
use crate::sampler::random::random_point;

/// Nodes of a grid over a coordinate.
const NODES: usize = 160;
/// A density below e^-this of its maximum counts as zero.
const NEGLIGIBLE: f64 = 16.0;
/// Updates of single coordinates by slice sampling, each of which evaluates the prior about
/// eight times.
const MOST_UPDATES: usize = 1500;
/// Rounds through the coordinates before the first draw.
const WARMUP: usize = 20;
/// Fewer draws than this do not show a distribution.
const LEAST_DRAWS: usize = 50;
/// How much two differences of log densities may differ by rounding.
const ROUNDING: f64 = 1e-9;

/// Draws from the prior of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorMargins {
    /// Points on the unconstrained scale.
    pub draws: Vec<Vec<f64>>,
    /// Outputs ([`Density::output_names`]) about which the draws say nothing: those that depend on
    /// coordinates with a flat or improper prior, or with one that takes too long to draw from.
    pub unknown: Vec<usize>,
}

/// `count` draws from the prior, or fewer where many coordinates depend on each other.
///
/// # Errors
///
/// No point with a finite prior density is found.
pub fn draw_prior_margins(
    density: &Density,
    count: usize,
    seed: u64,
) -> Result<PriorMargins, PriorError> {
    draw(density, count, seed, true)
}

/// The same, with coordinates that depend on each other left unknown: exactly `count` draws.
///
/// # Errors
///
/// No point with a finite prior density is found.
pub fn draw_independent_margins(
    density: &Density,
    count: usize,
    seed: u64,
) -> Result<PriorMargins, PriorError> {
    draw(density, count, seed, false)
}

fn draw(density: &Density, count: usize, seed: u64, all: bool) -> Result<PriorMargins, PriorError> {
    let mut rng = public_rng(seed, 0);
    let d = density.dimension();
    let flat = improper(density);
    let centre = starting_point(density, &mut rng)?;
    let other = other_point(&centre, &mut rng);
    let proper: Vec<usize> = (0..d).filter(|j| !flat.contains(j)).collect();
    let (alone, together): (Vec<usize>, Vec<usize>) = proper
        .into_iter()
        .partition(|&j| is_independent(density, &centre, &other, j));
    let mut draws = vec![centre.clone(); count];
    for &j in &alone {
        let grid = Grid::of(density, &centre, j);
        // One draw in each of `count` equally likely strata, in random order: a Latin hypercube
        // (McKay, Beckman and Conover 1979), whose margins are smoother than those of random draws.
        let mut strata: Vec<usize> = (0..count).collect();
        strata.shuffle(&mut rng);
        for (draw, stratum) in draws.iter_mut().zip(strata) {
            let within: f64 = rng.random();
            draw[j] = grid.quantile((stratum as f64 + within) / count as f64);
        }
    }
    let mut unknown = flat;
    let affordable = MOST_UPDATES / together.len().max(1);
    if !all || affordable < WARMUP + LEAST_DRAWS {
        unknown.extend(&together);
    } else if !together.is_empty() {
        let found = slice(density, &centre, &together, affordable - WARMUP, &mut rng);
        draws.truncate(found.len().max(1));
        for (i, draw) in draws.iter_mut().enumerate() {
            // Evenly spaced over all of them, since neighbours are alike.
            let from = &found[i * found.len() / count.min(found.len()).max(1) % found.len()];
            for &j in &together {
                draw[j] = from[j];
            }
        }
    }
    Ok(PriorMargins {
        unknown: outputs_of(density, &draws, &unknown),
        draws,
    })
}

pub(super) fn starting_point(
    density: &Density,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<f64>, PriorError> {
    let d = density.dimension();
    let mut theta = vec![0.0; d];
    for _ in 0..100 {
        if density.log_prior(&theta).is_finite() {
            return Ok(theta);
        }
        theta = random_point(d, rng);
    }
    Err(PriorError)
}

/// A point about another one.
pub(super) fn other_point(centre: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
    let moves = random_point(centre.len(), rng);
    let moved = centre.iter().zip(moves);
    moved.map(|(value, by)| value + 0.4 * by).collect()
}

/// Whether moving coordinate `j` changes the log density by the same amount wherever the others
/// are, tested at two places and over three distances.
pub(super) fn is_independent(density: &Density, one: &[f64], other: &[f64], j: usize) -> bool {
    let moved = |from: &[f64], step: f64| {
        let mut point = from.to_vec();
        point[j] = one[j] + step;
        point
    };
    const STEPS: [f64; 4] = [0.0, -1.7, 0.6, 3.1];
    let points: Vec<Vec<f64>> = [one, other]
        .iter()
        .flat_map(|from| STEPS.map(|step| moved(from, step)))
        .collect();
    let found = density.log_priors(&points);
    let (here, there) = found.split_at(STEPS.len());
    here.iter().zip(there).all(|(a, b)| {
        let (a, b) = (a - here[0], b - there[0]);
        // Minus infinity in both places is the same bound.
        a == b || (a - b).abs() <= ROUNDING * (1.0 + a.abs())
    })
}

/// The distribution of one coordinate: nodes, and the probability up to each.
pub(super) struct Grid {
    nodes: Vec<f64>,
    cumulative: Vec<f64>,
}

impl Grid {
    /// The distribution of coordinate `j`, with the others as in `point`. A first grid, whose
    /// nodes are further apart the further out they are, locates the probability; the second
    /// has its nodes there.
    pub fn of(density: &Density, point: &[f64], j: usize) -> Grid {
        let log_density = |nodes: &[f64]| {
            let moved = |&x: &f64| {
                let mut place = point.to_vec();
                place[j] = x;
                place
            };
            density.log_priors(&nodes.iter().map(moved).collect::<Vec<_>>())
        };
        let half = (NODES / 2) as i32;
        let reach = FAR.asinh();
        let first: Vec<f64> = (-half..=half)
            .map(|i| point[j] + (reach * f64::from(i) / f64::from(half)).sinh())
            .collect();
        let coarse = Grid::over(first, log_density);
        let fine = (0..=NODES)
            .map(|i| coarse.quantile(i as f64 / NODES as f64))
            .collect::<Vec<f64>>();
        let ends = [coarse.quantile(0.0), coarse.quantile(1.0)];
        let even = (0..NODES).map(|i| ends[0] + (ends[1] - ends[0]) * i as f64 / NODES as f64);
        let mut nodes: Vec<f64> = fine.into_iter().chain(even).collect();
        nodes.sort_by(f64::total_cmp);
        nodes.dedup();
        Grid::over(nodes, log_density)
    }

    /// The density is linear between nodes, and zero where it is not a number.
    fn over(nodes: Vec<f64>, log_density: impl Fn(&[f64]) -> Vec<f64>) -> Grid {
        let values = log_density(&nodes);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let density: Vec<f64> = values
            .iter()
            .map(|v| {
                if highest - v < NEGLIGIBLE {
                    (v - highest).exp()
                } else {
                    0.0
                }
            })
            .collect();
        let mut cumulative = vec![0.0];
        let mut sum = 0.0;
        for (x, p) in nodes.windows(2).zip(density.windows(2)) {
            sum += 0.5 * (x[1] - x[0]) * (p[0] + p[1]);
            cumulative.push(sum);
        }
        Grid { nodes, cumulative }
    }

    pub fn quantile(&self, probability: f64) -> f64 {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let wanted = probability * total;
        let last = self.nodes.len() - 1;
        let upper = if probability >= 1.0 {
            // The first node with nothing beyond it.
            self.cumulative.partition_point(|&c| c < total)
        } else {
            self.cumulative.partition_point(|&c| c <= wanted)
        };
        let upper = upper.clamp(1, last.max(1)).min(last);
        let lower = upper.saturating_sub(1);
        let (a, b) = (self.cumulative[lower], self.cumulative[upper]);
        let share = if b > a {
            ((wanted - a) / (b - a)).clamp(0.0, 1.0)
        } else {
            0.5
        };
        self.nodes[lower] + share * (self.nodes[upper] - self.nodes[lower])
    }
}

/// Points whose `coordinates` are drawn by slice sampling, after a warm-up that learns the widths.
pub(super) fn slice(
    density: &Density,
    centre: &[f64],
    coordinates: &[usize],
    count: usize,
    rng: &mut impl Rng,
) -> Vec<Vec<f64>> {
    let log_density = |theta: &[f64]| density.log_prior(theta);
    let mut theta = centre.to_vec();
    let mut widths = vec![1.0; theta.len()];
    let mut found = Vec::with_capacity(count);
    for round in 0..WARMUP + count {
        let learning = round < WARMUP;
        for &j in coordinates {
            let growth = if learning { 2.0 } else { 1.0 };
            let length = update(&mut theta, j, log_density, (widths[j], growth), rng);
            if learning {
                widths[j] = 0.5 * (widths[j] + length);
            }
        }
        if !learning {
            found.push(theta.clone());
        }
    }
    found
}

/// The outputs that change with these coordinates.
fn outputs_of(density: &Density, draws: &[Vec<f64>], coordinates: &[usize]) -> Vec<usize> {
    let mut changed: Vec<usize> = Vec::new();
    for point in draws.iter().take(2) {
        let before = density.outputs(point);
        for &j in coordinates {
            let mut moved = point.clone();
            moved[j] += 0.75;
            let after = density.outputs(&moved);
            let differ = |&i: &usize| before[i].to_bits() != after[i].to_bits();
            changed.extend((0..before.len()).filter(differ));
        }
    }
    changed.sort_unstable();
    changed.dedup();
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    fn margins(source: &str, count: usize) -> (Density, PriorMargins) {
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let density = Density::new(model);
        let drawn = draw_prior_margins(&density, count, 3).unwrap();
        (density, drawn)
    }

    fn columns(density: &Density, drawn: &PriorMargins) -> Vec<Vec<f64>> {
        let rows: Vec<Vec<f64>> = drawn.draws.iter().map(|t| density.outputs(t)).collect();
        (0..rows[0].len())
            .map(|i| rows.iter().map(|r| r[i]).collect())
            .collect()
    }

    // If it failed: a report would hold the posterior against another prior. Oracle: quartiles
    // of the normal, Cauchy and exponential distributions and of a uniform one. Five standard
    // errors of a share of 1/2 or 1/4 (false alarm 5e-6 over all); a scale that is off by a
    // fifth moves a share by 0.06, which is eight of them.
    #[test]
    fn independent_parameters_have_their_distributions() {
        let (density, drawn) = margins(
            "record { real y; }
             parameters { real a; real<lower=0> s; real<lower=0> e; real<lower=2, upper=6> u; vector[2] b; }
             model { a ~ normal(90, 0.5); s ~ cauchy(0, 5); e ~ exponential(0.01); b ~ normal(0, 2.5);
                     y ~ normal(a + b[1] + b[2] + u + e, s); }",
            4000,
        );
        assert_eq!(drawn.unknown, [0usize; 0]);
        assert_eq!(drawn.draws.len(), 4000);
        let found = columns(&density, &drawn);
        let share = |i: usize, below: f64| {
            found[i].iter().filter(|x| **x < below).count() as f64 / found[i].len() as f64
        };
        let error = |p: f64| 5.0 * (p * (1.0 - p) / 4000.0f64).sqrt();
        for (what, i, below, p) in [
            ("a's lower quartile", 0, 90.0 - 0.67449 * 0.5, 0.25),
            ("a's median", 0, 90.0, 0.5),
            ("s's median", 1, 5.0, 0.5),
            ("s's upper quartile", 1, 5.0 * 2.414_213_6, 0.75),
            ("e's median", 2, 69.3147, 0.5),
            ("e's lower quartile", 2, 28.768, 0.25),
            ("u's lower quartile", 3, 3.0, 0.25),
            ("b[2]'s upper quartile", 5, 0.67449 * 2.5, 0.75),
        ] {
            let found = share(i, below);
            assert!((found - p).abs() < error(p), "{what}: {found}");
        }
    }

    // Of theta ~ normal(mu, tau), mu ~ normal(0, 3), tau ~ exponential(1): the share below 0 is
    // one half, and the middle half of theta is wider than mu's. Some hundreds of draws that mix
    // slowly leave wide bounds, which a theta drawn from normal(0, 1) fails.
    #[test]
    fn a_hierarchy_is_drawn_together() {
        let (density, drawn) = margins(
            "record { real y; }
             parameters { real mu; real<lower=0> tau; vector[3] theta; real free; }
             model { mu ~ normal(0, 3); tau ~ exponential(1); theta ~ normal(mu, tau);
                     y ~ normal(theta[1] + free, 1); }",
            400,
        );
        assert_eq!(drawn.unknown, [5]);
        let found = columns(&density, &drawn);
        let below = |i: usize, x: f64| {
            found[i].iter().filter(|v| **v < x).count() as f64 / found[i].len() as f64
        };
        for i in 2..5 {
            assert!((below(i, 0.0) - 0.5).abs() < 0.2, "{}", below(i, 0.0));
            let middle = below(i, 2.02) - below(i, -2.02);
            assert!(middle < 0.62, "{middle}");
        }
        let same = found[2]
            .iter()
            .zip(&found[0])
            .filter(|(t, m)| (*t - *m).abs() < 3.0);
        assert!(same.count() > found[0].len() * 8 / 10);
    }

    #[test]
    fn what_takes_too_long_is_unknown_and_what_hangs_on_it() {
        let (_, drawn) = margins(
            "record { real y; }
             parameters { real mu; real<lower=0> tau; vector[120] theta; real a; }
             transformed parameters { real twice = 2 * theta[1]; real own = a + 1; }
             model { mu ~ normal(0, 3); tau ~ exponential(1); theta ~ normal(mu, tau); a ~ normal(0, 1);
                     y ~ normal(sum(theta) + a, 1); }",
            100,
        );
        assert_eq!(drawn.draws.len(), 100);
        assert_eq!(drawn.unknown, (0..122).chain([123]).collect::<Vec<_>>());
    }
}

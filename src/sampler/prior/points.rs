//! Independent draws from the prior: one for each table that is simulated.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::margins::{Grid, is_independent, other_point, slice, starting_point};
use super::{PriorError, improper};
use crate::density::Density;
use crate::sampler::random::public_rng;

/// Updates of single coordinates by slice sampling behind each draw, and the rounds through the
/// coordinates that they may make. Each evaluates the prior about eight times.
const UPDATES: usize = 10_000;
const ROUNDS: [usize; 2] = [50, 400];

/// The prior of a model, ready to be drawn from. A coordinate that does not depend on others is
/// drawn from its density on a grid; those of hierarchies by slice sampling, each draw from a
/// chain of its own, so that draws are independent of each other.
pub struct PriorPoints {
    centre: Vec<f64>,
    alone: Vec<(usize, Grid)>,
    together: Vec<usize>,
    stand_ins: Vec<usize>,
}

impl PriorPoints {
    /// # Errors
    ///
    /// No point with a finite prior density is found.
    pub fn new(density: &Density) -> Result<PriorPoints, PriorError> {
        let mut rng = public_rng(0, 0);
        let stand_ins = improper(density);
        let centre = starting_point(density, &mut rng)?;
        let other = other_point(&centre, &mut rng);
        let proper = (0..density.dimension()).filter(|j| !stand_ins.contains(j));
        let (alone, together): (Vec<usize>, Vec<usize>) =
            proper.partition(|&j| is_independent(density, &centre, &other, j));
        let grid = |j| (j, Grid::of(density, &centre, j));
        Ok(PriorPoints {
            alone: alone.into_iter().map(grid).collect(),
            centre,
            together,
            stand_ins,
        })
    }

    /// The unconstrained coordinates on which the prior is flat or improper. A standard normal
    /// stands in for it.
    pub fn stand_ins(&self) -> &[usize] {
        &self.stand_ins
    }

    /// The coordinates whose prior does not depend on others, and their distributions.
    pub(super) fn margins(self) -> Vec<(usize, Grid)> {
        self.alone
    }

    /// A draw (unconstrained), of the density that this was made of.
    pub fn draw(&self, density: &Density, rng: &mut impl Rng) -> Vec<f64> {
        let mut theta = self.centre.clone();
        for &j in &self.stand_ins {
            theta[j] = rng.sample(StandardNormal);
        }
        for (j, grid) in &self.alone {
            theta[*j] = grid.quantile(rng.random());
        }
        if self.together.is_empty() {
            return theta;
        }
        let rounds = (UPDATES / self.together.len()).clamp(ROUNDS[0], ROUNDS[1]);
        let chain = slice(density, &theta, &self.together, rounds, rng);
        chain.into_iter().next_back().unwrap_or(theta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    // If it failed: calibration would be judged on parameters that are not the prior's, and say of a
    // right run that it is wrong. Oracle: theta ~ normal(mu, tau) with mu ~ normal(0, 3) and tau ~
    // exponential(1) has mean 0 and variance 9 + 2; u is uniform. 300 draws: five standard errors of
    // each share (false alarm 3e-6 in all); neighbours of one chain, or a tau that stays at its
    // start, are off by more.
    #[test]
    fn draws_are_those_of_a_hierarchy_and_independent() {
        let model = Model::from_source(
            "record { real y; }
             parameters { real mu; real<lower=0> tau; real theta; real<lower=0, upper=1> u; real flat; }
             model { mu ~ normal(0, 3); tau ~ exponential(1); theta ~ normal(mu, tau);
                     y ~ normal(theta + u + flat, 1); }",
            &Constants::none(),
        )
        .unwrap();
        let density = Density::new(model);
        let points = PriorPoints::new(&density).unwrap();
        assert_eq!(points.stand_ins(), [4]);
        assert_eq!(points.alone.len(), 1);
        let n = 300_usize;
        let draws: Vec<Vec<f64>> = (0..n)
            .map(|k| points.draw(&density, &mut public_rng(7, k)))
            .collect();
        let share = |below: &dyn Fn(&[f64]) -> bool| {
            draws.iter().filter(|draw| below(draw)).count() as f64 / n as f64
        };
        for (what, found, p) in [
            ("mu", share(&|t| t[0] < 3.0 * 0.67449), 0.75),
            ("tau's median", share(&|t| t[1].exp() < 2f64.ln()), 0.5),
            (
                "tau's tail",
                share(&|t| t[1].exp() < 0.1),
                1.0 - (-0.1f64).exp(),
            ),
            ("theta", share(&|t| t[2] < 0.0), 0.5),
            ("theta about mu", share(&|t| t[2] < t[0]), 0.5),
            ("u", share(&|t| t[3] < 0.0), 0.5),
            ("flat", share(&|t| t[4] < 0.0), 0.5),
        ] {
            let error = 5.0 * (p * (1.0 - p) / n as f64).sqrt();
            assert!((found - p).abs() < error, "{what}: {found} for {p}");
        }
        // Lag-1 correlation of mu: 5 standard errors of independent draws.
        let products: f64 = draws.windows(2).map(|w| w[0][0] * w[1][0] / 9.0).sum();
        assert!((products / n as f64).abs() < 5.0 / (n as f64).sqrt());
    }
}

//! The prior, compared with where the records have led.
//!
//! If parameters come from the prior, the mode of their posterior has the covariance P^-1 - H^-1 about the prior's
//! middle, where P is the precision of the prior and H that of the posterior (the law of total variance), and what is
//! seen of it, the centre, that of its noise besides. A centre that is many standard deviations of this away shows that
//! the records contradict the prior. With noise, the prior then outweighs records that it would not outweigh without:
//! draws are between it and the centre, and as narrow as if both agreed.

use serde::Serialize;

use super::{LocalModel, Search, difference, sum};
use crate::density::Density;
use crate::linear::Matrix;
use crate::sampler::laplace::bend::column_of;
use crate::sampler::laplace::form::{Form, middle_and_sd};

/// Fewer standard deviations are no conflict.
const LEAST: f64 = 3.0;

/// A parameter, on its unconstrained scale, whose prior the records contradict.
#[derive(Debug, Clone, Serialize)]
pub(in crate::sampler::laplace) struct Conflict {
    /// Its output column (`beta.1`).
    pub name: String,
    /// How far the centre is from the prior's middle, in standard deviations of its distribution.
    pub sds: f64,
    /// The same in the prior's own.
    pub prior_sds: f64,
    /// How far the draws are from the centre, in their standard deviations.
    pub moved: f64,
}

impl Search {
    /// The parameters about which records and prior disagree. Priors that are added at the end, as those of
    /// groups are, are not compared, nor those of parameters with fewer coordinates than columns, as a simplex.
    pub fn conflicts(&self, form: &Form, density: &Density) -> Vec<Conflict> {
        let of_prior = middle_and_sd(density).ok();
        let Some(of_prior) = of_prior.filter(|_| form.space.is_parameters()) else {
            return Vec::new();
        };
        let LocalModel { own, prior, known } = self.local(form, density);
        let likelihood = self.likelihood(form, density);
        let to_parameters = (&form.base * &self.axes).transposed();
        let variances = |covariance: &Matrix| {
            let covariance = covariance.between(&to_parameters);
            (0..of_prior.len()).map(|j| covariance[(j, j)]).collect()
        };
        let before: Vec<f64> = variances(&prior.inverse());
        let after: Vec<f64> = variances(&(&prior + &known).inverse());
        let noise: Vec<f64> = variances(&self.belief.between(&self.inverse.transposed()));
        let precision = likelihood.precision.between(&self.axes);
        let aside = difference(&likelihood.root, &likelihood.centre);
        let pull = sum(&precision.times(&self.inverse.times(&aside)), &own);
        let drawn = (&prior + &precision).inverse();
        let moved = to_parameters.transposed().times(&drawn.times(&pull));
        let of_draws: Vec<f64> = variances(&drawn);
        let centre = sum(&self.origin, &form.base.times(&self.centre));
        let conflict = |(j, (middle, sd)): (usize, &(f64, f64))| {
            let told = (1.0 - after[j] / before[j]).clamp(0.0, 1.0);
            let distance = (centre[j] - middle).abs();
            let sds = distance / (told * sd * sd + noise[j].max(0.0)).sqrt();
            let prior_sds = distance / sd;
            let moved = moved[j].abs() / of_draws[j].sqrt();
            let is_far = sds.max(prior_sds) > LEAST && moved.is_finite();
            let (name, _) = is_far.then(|| column_of(density, &centre, j, *sd))??;
            Some(Conflict {
                name,
                sds,
                prior_sds,
                moved,
            })
        };
        of_prior.iter().enumerate().filter_map(conflict).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};
    use crate::sampler::laplace::search::{Likelihood, Search};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    const PRIOR_SD: f64 = 0.5;
    const LEVEL: &str = "record { int<lower=0, upper=1> y; } parameters { real a; }
        model { a ~ normal(0, 0.5); y ~ bernoulli_logit(a); }";

    /// The conflict where the records have this information and the search ended here, if any, and where the mean of
    /// the draws is.
    fn at(centre: f64, known: f64, noise: f64) -> (Option<Conflict>, f64) {
        let density = Density::new(Model::from_source(LEVEL, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let base = form.base[(0, 0)];
        let mut search = Search::at(vec![0.0], Matrix::diagonal(&[noise / base / base]), 100.0);
        search.centre = vec![centre / base];
        search.claimed = Matrix::diagonal(&[known * base * base]);
        let Likelihood {
            precision, root, ..
        } = search.likelihood(&form, &density);
        let precision = precision[(0, 0)] / base / base;
        let mean = precision * root[0] * base / (precision + PRIOR_SD.powi(-2));
        (search.conflicts(&form, &density).into_iter().next(), mean)
    }

    // Oracle: parameters from the prior, data, and noise; 20,000 of these. The sampler knows the prior's standard
    // deviation from fifty draws, to a tenth. If it failed: a prior that is right would be called wrong, or no prior would be.
    #[test]
    fn a_prior_that_is_right_is_as_far_away_as_it_says() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for (known, noise) in [(3.0, 0.2), (0.3, 0.01), (40.0, 0.0)] {
            let prior = PRIOR_SD.powi(-2);
            let mut normal = || -> f64 { StandardNormal.sample(rng) };
            let mean_square = (0..20_000)
                .map(|_| {
                    let x = PRIOR_SD * normal();
                    let data = x + normal() / f64::sqrt(known);
                    let mode = known * data / (known + prior);
                    (mode + f64::sqrt(noise) * normal()).powi(2)
                })
                .sum::<f64>()
                / 20_000.0;
            let centre = 6.0 * mean_square.sqrt();
            let (conflict, mean) = at(centre, known, noise);
            let conflict = conflict.expect("six standard deviations");
            assert!(
                (conflict.sds / 6.0 - 1.0).abs() < 0.2,
                "{known}: {conflict:?}"
            );
            let of_prior = (conflict.prior_sds * PRIOR_SD / centre - 1.0).abs();
            assert!(of_prior < 0.3, "{known}: {conflict:?}");
            let whole = known + prior;
            let precision = known / (1.0 + whole * whole * noise / known);
            let oracle = (centre - mean).abs() * (prior + precision).sqrt();
            assert!(
                (conflict.moved - oracle).abs() < 0.02 * oracle + 1e-4,
                "{known}: {conflict:?}"
            );
            assert!(at(centre / 6.0, known, noise).0.is_none());
        }
    }

    // Oracle: without noise the mean of the draws is the centre. If it failed: draws that are the posterior's would be
    // called a problem.
    #[test]
    fn draws_of_the_posterior_are_where_the_search_has_led() {
        let (conflict, mean) = at(3.0, 50.0, 0.0);
        let conflict = conflict.expect("six of the prior's standard deviations");
        assert!(
            (mean - 3.0).abs() < 1e-4 && conflict.moved < 1e-3,
            "{mean} {conflict:?}"
        );
        let (conflict, mean) = at(3.0, 2.0, 0.1);
        let moved = conflict.expect("the same").moved;
        // Variance of the draws: 1 / (4 + 2 (1 + 36 / 2 x 0.1)^-1).
        let oracle = (3.0 - mean) * (4.0f64 + 2.0 / 2.8).sqrt();
        assert!((moved - oracle).abs() < 0.01 * oracle, "{moved} {oracle}");
    }
}

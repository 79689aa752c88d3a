//! Simulation-based calibration: what runs on tables with known parameters say of these.
//!
//! Source: Talts, Betancourt, Simpson, Vehtari and Gelman (2018), *Validating Bayesian Inference
//! Algorithms with Simulation-Based Calibration*, arXiv:1804.06788. If parameters come from the prior
//! and tables from the likelihood, the rank of the true value among draws from the posterior is
//! uniform, whatever the model. [`EcdfBand`] says how far ranks may be off by chance.

use rand::{Rng, RngExt};
use serde::Serialize;

use super::{EcdfBand, quantile};

/// Draws among which the true value is ranked, so that 100 ranks are possible.
pub const RANKED: usize = 99;
/// The shares of the central intervals that are looked at.
pub const INTERVALS: [f64; 2] = [0.5, 0.9];
/// The probability with which a band may be left by chance, of all parameters together.
const FALSE_ALARMS: f64 = 0.05;

/// The answers of a run about a parameter whose true value is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// How many of the ranked draws are below the true value.
    pub rank: usize,
    /// Whether the true value is in each of the central intervals.
    pub covered: [bool; 2],
    /// Of the central 90%.
    pub width: f64,
    /// Of the posterior without privacy, where it was sampled.
    pub reference_width: Option<f64>,
}

impl Recovered {
    /// `draws` of all chains, one after the other, of which [`RANKED`] at even distances are ranked,
    /// or all where there are fewer. Equal values are ranked at random.
    pub fn of(
        draws: &[f64],
        truth: f64,
        reference: Option<&[f64]>,
        rng: &mut impl Rng,
    ) -> Recovered {
        let ranked = draws.len().min(RANKED);
        let thinned = || (0..ranked).map(|i| draws[i * draws.len() / ranked]);
        let below = thinned().filter(|x| *x < truth).count();
        let equal = thinned().filter(|x| *x == truth).count();
        let covered = INTERVALS.map(|share| {
            let [low, high] = interval(draws, share);
            (low..=high).contains(&truth)
        });
        let width = |draws: &[f64]| {
            let [low, high] = interval(draws, INTERVALS[1]);
            high - low
        };
        Recovered {
            rank: below + rng.random_range(0..=equal),
            covered,
            width: width(draws),
            reference_width: reference.map(width),
        }
    }
}

fn interval(draws: &[f64], share: f64) -> [f64; 2] {
    [0.5 - 0.5 * share, 0.5 + 0.5 * share].map(|p| quantile(&[draws], p))
}

/// A share of so many tables, with its Monte Carlo standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    pub share: f64,
    pub mcse: f64,
}

/// The calibration of one parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterCalibration {
    pub name: String,
    /// Of the central 50% and 90%.
    pub coverage: [Coverage; 2],
    /// The median over tables of the 90% interval's width, over that of the posterior without
    /// privacy of the same table, and over that of the prior.
    pub width_to_reference: Option<f64>,
    pub width_to_prior: Option<f64>,
    /// Whether its ranks are all within the band.
    pub within_band: bool,
    /// The distribution of its ranks less the uniform one, at the band's points.
    pub ecdf_difference: Vec<f64>,
    #[serde(skip)]
    pub ranks: Vec<usize>,
}

/// The calibration of all parameters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Of all parameters together; the standard errors allow for parameters of one table.
    pub coverage: [Coverage; 2],
    pub parameters: Vec<ParameterCalibration>,
    /// One for all parameters: it holds all of them together in 95% of the cases at least.
    pub band: EcdfBand,
}

impl Calibration {
    /// `runs`: one for each table, each with what it said of every parameter. `prior_widths`: of the
    /// central 90%, where known. Parameters whose draws are all the same, as the diagonal of a
    /// correlation matrix, are left out.
    pub fn of(
        names: &[String],
        runs: &[Vec<Recovered>],
        prior_widths: &[Option<f64>],
        ranked: usize,
    ) -> Calibration {
        let column = |j: usize| runs.iter().filter_map(move |run| run.get(j));
        let varies = |j: &usize| column(*j).any(|found| found.width > 0.0);
        let shown: Vec<usize> = (0..names.len()).filter(varies).collect();
        let level = 1.0 - FALSE_ALARMS / shown.len().max(1) as f64;
        let band = EcdfBand::new(runs.len(), ranked, level);
        let parameter = |&j: &usize| {
            let ranks: Vec<usize> = column(j).map(|found| found.rank).collect();
            let ratios = column(j).filter_map(|f| Some(f.width / f.reference_width?));
            let prior = prior_widths.get(j).copied().flatten();
            let to_prior = column(j).filter_map(|f| Some(f.width / prior?));
            let covered = |k: usize| column(j).map(move |f| f64::from(u8::from(f.covered[k])));
            ParameterCalibration {
                name: names[j].clone(),
                coverage: [0, 1].map(|k| {
                    let counted = covered(k).sum::<f64>();
                    share_of(counted, runs.len() as f64)
                }),
                width_to_reference: median(ratios),
                width_to_prior: median(to_prior),
                within_band: band.holds(&ranks),
                ecdf_difference: band.difference_of(&ranks),
                ranks,
            }
        };
        let of_run = |run: &Vec<Recovered>, k: usize| {
            let covered = shown.iter().filter(|&&j| run[j].covered[k]).count();
            covered as f64 / shown.len().max(1) as f64
        };
        Calibration {
            coverage: [0, 1].map(|k| mean_of(runs.iter().map(|run| of_run(run, k)))),
            parameters: shown.iter().map(parameter).collect(),
            band,
        }
    }

    /// The parameters whose ranks leave the band.
    pub fn off(&self) -> Vec<&str> {
        let off = self.parameters.iter().filter(|p| !p.within_band);
        off.map(|p| p.name.as_str()).collect()
    }
}

/// The standard error is that of the posterior mean under Jeffreys' prior, so that it is never 0.
fn share_of(count: f64, n: f64) -> Coverage {
    let smoothed = (count + 0.5) / (n + 1.0);
    Coverage {
        share: count / n,
        mcse: (smoothed * (1.0 - smoothed) / n).sqrt(),
    }
}

/// Of a share for each table.
fn mean_of(shares: impl Iterator<Item = f64>) -> Coverage {
    let shares: Vec<f64> = shares.collect();
    let n = shares.len() as f64;
    let share = shares.iter().sum::<f64>() / n;
    let squares: f64 = shares.iter().map(|x| (x - share).powi(2)).sum();
    let floor = share_of(share * n, n).mcse / n.sqrt();
    Coverage {
        share,
        mcse: (squares / (n - 1.0).max(1.0) / n).sqrt().max(floor),
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|x| x.is_finite()).collect();
    (!values.is_empty()).then(|| quantile(&[&values], 0.5))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, Normal};

    use super::*;

    /// Runs on tables of one normal observation each, whose posterior is known: theta ~ normal(0, 1)
    /// and y ~ normal(theta, 1) give normal(y / 2, sd 0.707), here shifted and scaled.
    fn runs(count: usize, shift: f64, scale: f64) -> Calibration {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let normal = |mean: f64, sd: f64| Normal::new(mean, sd).unwrap();
        let run = |_| {
            let theta: f64 = normal(0.0, 1.0).sample(&mut rng);
            let y: f64 = normal(theta, 1.0).sample(&mut rng);
            let posterior = normal(y / 2.0 + shift, scale * 0.5f64.sqrt());
            let draws: Vec<f64> = (0..400).map(|_| posterior.sample(&mut rng)).collect();
            let exact = normal(y / 2.0, 0.5f64.sqrt());
            let reference: Vec<f64> = (0..400).map(|_| exact.sample(&mut rng)).collect();
            let constant = Recovered::of(&[1.0; 400], 1.0, None, &mut rng);
            let found = Recovered::of(&draws, theta, Some(&reference), &mut rng);
            vec![constant, found]
        };
        let runs: Vec<_> = (0..count).map(run).collect();
        let names = ["one".to_owned(), "theta".to_owned()];
        Calibration::of(&names, &runs, &[None, Some(2.0 * 1.6449)], RANKED)
    }

    // If it failed: right runs would be called wrong, or wrong ones right. Oracle: the posterior of a
    // normal mean. 200 tables; coverages to 5 standard errors (false alarm 1e-6), the band with a
    // chance of 5% for seeds in general. Half the width covers 55% instead of 90%, and a shift of one
    // posterior standard deviation 74%.
    #[test]
    fn a_right_posterior_passes_and_wrong_ones_do_not() {
        let right = runs(200, 0.0, 1.0);
        assert_eq!(right.parameters.len(), 1);
        let theta = &right.parameters[0];
        for (coverage, expected) in theta.coverage.iter().zip(INTERVALS) {
            assert!(
                (coverage.share - expected).abs() < 5.0 * coverage.mcse,
                "{coverage:?}"
            );
        }
        assert!(theta.within_band && right.off().is_empty());
        assert!((theta.width_to_reference.unwrap() - 1.0).abs() < 0.1);
        assert!((theta.width_to_prior.unwrap() - 0.5f64.sqrt()).abs() < 0.07);
        let narrow = runs(200, 0.0, 0.5);
        assert_eq!(narrow.off(), ["theta"]);
        assert!(narrow.coverage[1].share < 0.7);
        assert!((narrow.parameters[0].width_to_reference.unwrap() - 0.5).abs() < 0.06);
        assert_eq!(runs(200, 0.5f64.sqrt(), 1.0).off(), ["theta"]);
        assert_eq!(runs(200, 0.0, 2.0).off(), ["theta"]);
    }

    #[test]
    fn equal_values_are_ranked_at_random() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let rank = |_| Recovered::of(&[2.0; 20], 2.0, None, &mut rng).rank;
        let ranks: Vec<usize> = (0..500).map(rank).collect();
        assert!((0..=20).all(|rank| ranks.contains(&rank)));
    }
}

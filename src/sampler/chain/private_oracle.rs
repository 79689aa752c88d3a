//! The answers of a vault: charged, and noisy.

use std::num::NonZeroU64;

use crate::accounting::Meter;
use crate::privacy::{BatchPenaltyPlan, Charge, Look, PenaltyPlan, PrivateRng, Vault, noise};
use crate::sampler::chain::barker_correction;
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError, View, distance};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::schedule::{PlannedLine, Question, Scale, factor};

/// The vault, asked under a fixed plan.
pub struct PrivateOracle<'a> {
    vault: &'a Vault,
    plan: &'a Plan,
    meter: &'a Meter,
    rng: PrivateRng,
    /// The number of releases of each line.
    released: Vec<u64>,
}

impl<'a> PrivateOracle<'a> {
    /// `meter` must have been made from the plan's events; `rng` is the source of the
    /// noise.
    pub fn new(vault: &'a Vault, plan: &'a Plan, meter: &'a Meter, rng: PrivateRng) -> Self {
        PrivateOracle {
            vault,
            plan,
            meter,
            rng,
            released: vec![0; plan.lines.len()],
        }
    }

    fn count(&mut self, line: usize, times: u64) {
        if let Some(count) = self.released.get_mut(line) {
            *count += times;
        }
    }

    /// A line of the plan, and the charge for a release of it.
    fn line(&self, line: usize) -> Result<(&'a PlannedLine, Charge<'a>), SampleError> {
        let planned = self
            .plan
            .lines
            .get(line)
            .ok_or(SampleError::NotPlanned { line })?;
        let charge = Charge {
            meter: self.meter,
            line,
        };
        Ok((planned, charge))
    }
}

impl Oracle for PrivateOracle<'_> {
    fn dimension(&self) -> usize {
        self.vault.density().dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.vault.density().log_prior(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let (planned, charge) = self.line(line)?;
        let Scale::Gradient(scale) = planned.scale else {
            return Err(SampleError::NotPlanned { line });
        };
        let batches = planned.line.subsampling;
        let likelihood = self
            .vault
            .noisy_batch_gradient(theta, &scale, batches, charge, &mut self.rng)?
            .into_inner();
        self.count(line, 1);
        let (_, prior) = self.vault.density().pull_back(theta, &[]);
        let request = &self.plan.request;
        let factor = request.temperature * planned.line.weight(request);
        Ok(prior
            .iter()
            .zip(likelihood)
            .map(|(p, l)| p + factor * l)
            .collect())
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let (planned, charge) = self.line(line)?;
        let request = &self.plan.request;
        let scale = match planned.scale {
            Scale::LogRatio(scale) => scale,
            Scale::BatchLogRatio(scale) => {
                let query = match scale.plan(request.clip_log_ratio() * distance(from, to))? {
                    BatchPenaltyPlan::Query(query) => query,
                    BatchPenaltyPlan::Skip => return Ok(Ratio::Penalised(0.0)),
                    BatchPenaltyPlan::Refuse => return Ok(Ratio::Refused),
                };
                let released =
                    self.vault
                        .noisy_batch_log_ratio(from, to, &query, charge, &mut self.rng)?;
                self.count(line, 1);
                return Ok(Ratio::Penalised(released.get().penalised));
            }
            Scale::Gradient(_) | Scale::Barker(_) | Scale::Learnt(_) => {
                return Err(SampleError::NotPlanned { line });
            }
        };
        // The bound is on T times the log-ratio, since the tempered likelihood is
        // put on the lattice. The distance is symmetric to the bit.
        let bound = request.temperature * request.clip_log_ratio() * distance(from, to);
        let query = match scale.plan(bound)? {
            PenaltyPlan::Query(query) => query,
            PenaltyPlan::Skip => return Ok(Ratio::Penalised(0.0)),
            PenaltyPlan::Refuse => return Ok(Ratio::Refused),
        };
        let released = self.vault.noisy_log_ratio(
            from,
            to,
            request.temperature,
            &query,
            charge,
            &mut self.rng,
        )?;
        self.count(line, 1);
        Ok(Ratio::Penalised(released.get().penalised))
    }

    fn barker(
        &mut self,
        line: usize,
        from: &[f64],
        to: &[f64],
        prior_ratio: f64,
    ) -> Result<bool, SampleError> {
        let (planned, charge) = self.line(line)?;
        let Scale::Barker(scale) = planned.scale else {
            return Err(SampleError::NotPlanned { line });
        };
        let released = self
            .vault
            .noisy_barker(from, to, &scale, charge, &mut self.rng)?;
        self.count(line, 1);
        let correction = barker_correction::draw(&mut self.rng);
        Ok(released.get() + prior_ratio + correction > 0.0)
    }

    fn prior_gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        Ok(self.vault.density().pull_back(theta, &[]).1)
    }

    fn learnt(&mut self, line: usize, view: &View) -> Result<Vec<f64>, SampleError> {
        self.learnt_often(line, view, NonZeroU64::MIN)
    }

    /// Reads the rows once.
    fn learnt_often(
        &mut self,
        line: usize,
        view: &View,
        times: NonZeroU64,
    ) -> Result<Vec<f64>, SampleError> {
        let request = &self.plan.request;
        if self.vault.has_units() != request.shared_units {
            return Err(SampleError::NotTheseUnits);
        }
        let (planned, charge) = self.line(line)?;
        let Question::Learnt(statistic) = planned.line.question else {
            return Err(SampleError::NotPlanned { line });
        };
        let density = self.vault.density();
        let parameters = density.parameters();
        let space = view.space.unwrap_or(&parameters);
        let (length, planned_for) = (density.length_of(space), self.dimension());
        let coordinates = view.frame.coordinates();
        let centred = view.centre.is_none_or(|centre| centre.len() == coordinates);
        let fits = view.point.len() == length && view.frame.dimension() == length;
        if !(fits && centred && coordinates <= planned_for) {
            return Err(SampleError::Dimension(planned_for));
        }
        let (factor, d) = (factor(request.relation), request.dimension as usize);
        let scale = statistic.scale(view.clip, factor, planned.tau, d)?;
        let look = Look {
            centre: view.centre,
            expected: view.expected,
            inner_clip: view.inner_clip,
            unit: view.unit,
            ..Look::new(density.sight(space, view.point, view.frame), statistic)
        };
        let released = self
            .vault
            .noisy_statistic(&look, &scale, times, charge, &mut self.rng)?;
        self.count(line, times.get());
        Ok(released.into_inner())
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        noise::accept(log_probability, &mut self.rng)
    }

    fn released(&self) -> Vec<u64> {
        self.released.clone()
    }

    fn count_from(&mut self, released: Vec<u64>) {
        self.released = released;
    }
}

#[cfg(test)]
#[path = "private_oracle_tests.rs"]
mod private_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::density::Density;
    use crate::model::{Constants, Model};
    use crate::privacy::NotPrivate;
    use crate::privacy::{OnBadRows, Rows};
    use crate::sampler::ExactOracle;
    use crate::sampler::contract::settings::Settings;
    use crate::sampler::{Iterations, PlanRequest, PlannedLine};

    /// With next to no noise, the private answers are the exact tempered ones: a
    /// wrong sign, a temperature forgotten or squared, a prior counted n times or
    /// a Jacobian left out would each be many noise standard deviations off. Six
    /// of them are allowed, on eight coordinates, with seeded noise.
    #[test]
    fn answers_are_the_exact_tempered_ones_but_for_the_noise() {
        let model = Model::from_source(
            "record { real y; }
             parameters { real mu; real<lower=0> sigma; }
             model { mu ~ normal(1, 2); sigma ~ exponential(0.5); y ~ normal(mu, sigma); }",
            &Constants::none(),
        )
        .unwrap();
        let y = (0..200).map(|i| f64::from(i % 11) / 5.0 - 1.0).collect();
        let rows = Rows::from_columns(&model.columns, vec![("y".into(), y)], OnBadRows::Error);
        let vault =
            Vault::new(Density::new(model), rows.unwrap_or_else(|e| panic!("{e}"))).unwrap();
        let (clip, tau, temperature) = (40.0, 0.001, 0.25);
        // No budget has room for so little noise: settle the lines of an affordable
        // plan anew.
        let mut plan = Plan::new(PlanRequest {
            chains: 1,
            iterations: Iterations::Fixed(10),
            temperature,
            settings: Settings::new()
                .leapfrog_steps(1)
                .clip_gradient(clip)
                .clip_log_ratio(clip),
            ..PlanRequest::new(Real::from(1.0), Real::from(0.5), 2)
        })
        .unwrap();
        let loud = |line: &PlannedLine| PlannedLine::new(&line.line, tau, &plan.request).unwrap();
        plan.lines = plan.lines.iter().map(loud).collect();
        plan.events = plan.lines.iter().map(|line| line.event.clone()).collect();
        let meter = Meter::new(plan.events.clone());
        let rng = PrivateRng::from_insecure_seed(5);
        let mut private = PrivateOracle::new(&vault, &plan, &meter, rng);
        let Scale::Gradient(gradient_scale) = plan.lines[0].scale else {
            panic!("gradients come first")
        };
        let exact = ExactOracle {
            vault: &vault,
            permission: NotPrivate::acknowledged(),
            temperature,
        };
        for (from, to) in [([0.1, 0.3], [0.4, -0.2]), ([-0.5, 0.0], [0.2, 0.5])] {
            let (at_from, gradient) = exact.log_density(&from);
            let (at_to, _) = exact.log_density(&to);
            let noise = 6.0 * temperature * gradient_scale.sigma();
            for (ours, exact) in private.gradient(0, &from).unwrap().iter().zip(&gradient) {
                assert!((ours - exact).abs() < noise, "{ours} {exact} {noise}");
            }
            let prior = private.log_prior(&to) - private.log_prior(&from);
            let Ratio::Penalised(ratio) = private.log_ratio(1, &from, &to).unwrap() else {
                panic!("a short step")
            };
            // The noise of the ratio is at least 1/16 nat, see the lattice.
            let sigma = (2.0 * temperature * clip * tau * distance(&from, &to)).max(1.0 / 16.0);
            let error = prior + ratio + sigma * sigma / 2.0 - (at_to - at_from);
            assert!(error.abs() < 6.0 * sigma, "{error} {sigma}");
            // Large enough to see every term that could go wrong.
            assert!((at_to - at_from).abs() > 20.0 * sigma);
        }
    }
}

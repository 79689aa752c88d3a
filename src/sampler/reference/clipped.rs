//! Private samplers' dynamics on clipped values without noise, to show the effect of clipping
//! alone, as in the papers' clipping experiments.

use crate::privacy::{
    GradientScale, NotPrivate, PenaltyPlan, PenaltyScale, PrivateRng, Subsampling, Vault, noise,
};
use crate::sampler::chain::checkpoint::Names;
use crate::sampler::chain::run::{Chain, ChainRunner, Observer, Recorder, in_parallel};
use crate::sampler::chain::warmup::Warmup;
use crate::sampler::contract::Reference;
use crate::sampler::contract::initial::start;
use crate::sampler::contract::metric::MetricForm;
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError, distance};
use crate::sampler::contract::plan::check_settings;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::factor;
use crate::sampler::random::public_rng;
use crate::sampler::reference::NonPrivateRun;

/// Runs `clipped-hmc` or `clipped-rwmh`.
pub(crate) fn sample(
    vault: &Vault,
    reference: &dyn Reference,
    run: &NonPrivateRun,
    permission: NotPrivate,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    let request = &run.request;
    check_settings(request).map_err(Box::new)?;
    let factor = factor(request.relation);
    // There is no noise. The first multiplier only decides how fine the lattice of gradients is;
    // the second is so small that no proposal is refused as too long.
    let gradients = GradientScale::new(request.clip_gradient(), factor, 1.0)?;
    let log_ratios = PenaltyScale::new(factor, 2f64.powi(-100))?;
    let root = PrivateRng::insecure(run.seed, permission);
    in_parallel(request.chains as usize, observer, |chain, stop| {
        let mut rng = public_rng(run.seed, chain);
        let theta = start(&run.initial, chain, vault.density(), &mut rng)?;
        let settled = request.settled();
        let warmup = Warmup::new(
            run.num_warmup,
            theta.len(),
            reference.step_size(request),
            settled.target_acceptance,
            settled.metric.unwrap_or(MetricForm::Unit),
        );
        let mut oracle = ClippedOracle {
            vault,
            permission,
            request,
            gradients,
            log_ratios,
            rng: root.fork(chain as u64)?,
        };
        let mut walker = reference.walker(request, theta, &mut oracle, &mut rng);
        ChainRunner {
            walker: walker.as_mut(),
            oracle: &mut oracle,
            density: vault.density(),
            warmup,
            recorder: Recorder::new(chain, run.num_warmup, observer).timed(permission),
            keeping: None,
            names: Names::default(),
            releases: &|_| Ok(Vec::new()),
            window: u64::MAX,
            at: 0,
        }
        .run(run.iterations(), &mut rng, stop)
    })
}

/// Clipped sums, without noise.
struct ClippedOracle<'a> {
    vault: &'a Vault,
    permission: NotPrivate,
    request: &'a PlanRequest,
    gradients: GradientScale,
    log_ratios: PenaltyScale,
    rng: PrivateRng,
}

impl Oracle for ClippedOracle<'_> {
    fn dimension(&self) -> usize {
        self.vault.density().dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.vault.density().log_prior(theta)
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let (all, scale) = (Subsampling::All, &self.gradients);
        let sum =
            self.vault
                .clipped_batch_gradient(theta, scale, all, self.permission, &mut self.rng);
        let (_, prior) = self.vault.density().pull_back(theta, &[]);
        let t = self.request.temperature;
        Ok(prior.iter().zip(sum).map(|(p, l)| p + t * l).collect())
    }

    fn log_ratio(&mut self, _: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let t = self.request.temperature;
        let bound = t * self.request.clip_log_ratio() * distance(from, to);
        Ok(match self.log_ratios.plan(bound)? {
            PenaltyPlan::Query(query) => {
                Ratio::Penalised(
                    self.vault
                        .clipped_log_ratio(from, to, t, &query, self.permission),
                )
            }
            PenaltyPlan::Skip => Ratio::Penalised(0.0),
            PenaltyPlan::Refuse => Ratio::Refused,
        })
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        noise::accept(log_probability, &mut self.rng)
    }
}

#[cfg(test)]
#[path = "clipped_tests.rs"]
mod tests;

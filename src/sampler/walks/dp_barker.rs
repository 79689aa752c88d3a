//! DP-Barker: random-walk Metropolis with Barker's test on a batch, whose noise is the
//! privacy.
//!
//! Heikkilä, Jälkö, Dikmen and Honkela 2019, "Differentially private Markov chain Monte
//! Carlo", after Seita et al. 2017. In the notation of docs/samplers.md, per iteration:
//!
//! ```text
//! t ~ N(theta, eta^2 M^-1);  a batch of b out of n, without replacement
//! c = 0.99 sqrt(b)/(n T);  r_i = clip_c(l_i(t) - l_i(theta));  s2 = (n T)^2/b var(r) <= 1
//! accept if (n T/b) sum r_i + q(t) - q(theta) + N(0, 2 - s2) + V_corr > 0
//! ```
//!
//! Barker's test accepts with probability 1/(1 + e^-x) for a log posterior ratio x, that is
//! if x plus a standard logistic variable is above 0. The error of the batch is nearly N(0, s2), so
//! its sum with N(0, 2 - s2) is nearly N(0, 2), and V_corr makes that nearly logistic.
//!
//! # Cost
//!
//! k iterations make k tests. Each is one release whose noise has a variance that depends on
//! the rows; `accounting::Barker` has its Rényi divergence, with proof, 9 to 43 times
//! smaller than the published bound in the thesis's settings.
//!
//! # What it leaves invariant
//!
//! Approximately the posterior to the power T. V_corr is off by at most 0.0084 in the
//! log-odds for |x| <= 10 (`barker_correction`), and detailed balance by the same; the
//! batch's error is only nearly normal; its variance is estimated; and a log-ratio above c,
//! which is small unless T is (3e-4 nats at n = 10^5, b = 1000, T = 1), is clipped. Measured
//! (`bias_tests`; a normal mean, 100 out of 400 records, 5 posterior standard deviations from
//! it): the log-odds are off by 0.00, 0.01 and 0.45 at steps of 0.1, 0.2 and 0.4 posterior
//! standard deviations, where c is 5, 2.5 and 1.2 standard deviations of the log-ratios.
//! The variance of chains with such steps is 1.02, 1.16 and 1.63 times the exact one.
//!
//! # Errata of the sources
//!
//! The published Rényi bound is loose, and the authors' sum for the amplification by
//! subsampling stops one term short, which understates the cost.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::privacy::Subsampling;
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};
use crate::sampler::walks::proposal;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-barker",
    summary: "random walk with Barker's test on batches of a fixed size (Heikkilä et al. 2019); approximate, RDP only",
    kind: Kind::Private(&DpBarker),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::batch_size.or(Unset::Told(
            "{}, or all records where there are fewer,",
            BATCH_SIZE as f64,
        )),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE)),
    ],
};

/// Barker's test accepts half of the proposals that change nothing.
const TARGET_ACCEPTANCE: f64 = 0.25;
/// Records in a batch.
const BATCH_SIZE: u64 = 1000;

const TESTS: usize = 0;

#[derive(Debug)]
struct DpBarker;

impl Sampler for DpBarker {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        let most = request.records.unwrap_or(BATCH_SIZE);
        let size = (request.settings.batch_size).unwrap_or(BATCH_SIZE.min(most));
        Ok(vec![Line {
            what: "Barker's test of a batch",
            question: Question::Barker,
            noise: Noise::Fixed,
            count: over_chains(Some(iterations), request.chains)?,
            subsampling: Subsampling::FixedSize(size),
        }])
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let records = plan.request.records.unwrap_or(0) as f64 * plan.request.temperature;
        if records <= 20_000.0 {
            return Vec::new();
        }
        vec![format!(
            "DP-Barker clips each record's log-ratio to {:.1e} nats, so that proposals must be very close: it is meant for likelihoods tempered to a few thousand records (`temperature`)",
            0.99 / records
                * plan
                    .lines
                    .first()
                    .map_or(1.0, |line| match line.line.subsampling {
                        Subsampling::FixedSize(size) => (size as f64).sqrt(),
                        Subsampling::All | Subsampling::Poisson(_) => 1.0,
                    })
        )]
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        0.05
    }

    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        Box::new(BarkerWalker {
            step_size: self.step_size(&plan.request),
            metric: Metric::Unit,
            log_prior: oracle.log_prior(&theta),
            theta,
        })
    }
}

/// All of it is the state of the chain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BarkerWalker {
    /// eta
    #[serde(with = "exact_number")]
    step_size: f64,
    metric: Metric,
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
    /// log prior + log Jacobian at theta.
    #[serde(with = "exact_number")]
    log_prior: f64,
}

impl Walker for BarkerWalker {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let eta = self.step_size;
        let proposal = proposal(&self.theta, eta, &self.metric, rng);
        let log_prior = oracle.log_prior(&proposal);
        if !log_prior.is_finite() {
            return Ok(Step::rejected(eta));
        }
        let prior_ratio = log_prior - self.log_prior;
        let accepted = oracle.barker(TESTS, &self.theta, &proposal, prior_ratio)?;
        if accepted {
            self.theta = proposal;
            self.log_prior = log_prior;
        }
        Ok(Step {
            divergent: false,
            accept_stat: f64::from(u8::from(accepted)),
            accepted,
            step_size: eta,
            columns: Vec::new(),
        })
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    fn tune(&mut self, step_size: f64, metric: &Metric) {
        self.step_size = step_size;
        self.metric = metric.clone();
    }

    fn save(&self) -> Value {
        written(self)
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        *self = read(saved)?;
        Ok(())
    }
}

//! DP-penalty: random-walk Metropolis with a penalty test, whole, one coordinate at
//! a time, or as a guided walk.
//!
//! Yildirim and Ermis 2019, "Exact MCMC with differentially private moves"; one
//! coordinate and the guided walk: Räisä 2021, "Differentially private Markov chain
//! Monte Carlo" (thesis), after Gustafson 1998, "A guided walk Metropolis
//! algorithm". In the notation of docs/samplers.md, per iteration:
//!
//! ```text
//! t = theta + h N(0, M^-1)                                    whole
//! t_j = theta_j + h m_j N(0, 1),   j uniform                  one component
//! t_j = theta_j + dir_j h m_j |N(0, 1)|,   j uniform          guided walk
//! log a = T R(theta, t) + q(t) - q(theta) - T^2 s^2 / 2
//! accept with probability min(1, e^log a);  the guided walk flips dir_j on rejection
//! ```
//!
//! h is the step size and m_j = sqrt((M^-1)_jj), 1 unless a metric is learnt.
//!
//! # Cost
//!
//! k iterations release k log-ratios: mu = k / (2 tau_l^2). Noise is proportional to the
//! proposal's length, so that it is sqrt(d) times smaller for one coordinate at a time.
//!
//! With batches (`--batch-rate`, or `--batch-size` for the thesis's form) the k releases are
//! of batches, each with the noise of [`crate::privacy::batch_penalty`], whose bound contains
//! T b_l ||t - theta|| / r: the charge falls with the rate, and so does the number of
//! records looked at, while the noise per nat of the ratio grows.
//!
//! # What it leaves invariant
//!
//! With batches, approximately the posterior: the error of a batch is only nearly normal.
//! On a conjugate normal mean (`bias_tests`), with proposals of half a posterior standard
//! deviation, the variance is 1.01 times the exact one for Poisson batches of 100 out of 400
//! records, whose error has a standard deviation of 0.87 nats, and 1.20 times for 10 out of
//! 100 (1.5 nats). The form with a fixed size treats the batch as drawn with replacement, which
//! makes its penalty too large by 1/(1 - b/n): 0.93 and 1.11 times. Without a penalty for the
//! batch's error the first would be 1.45.
//!
//! Otherwise exactly the (clipped) posterior: the noise of the test is compensated by its
//! penalty (see [`crate::privacy::penalty`]). The guided walk is a chain on (theta,
//! dir) with dir uniform and independent: its move to (t, -dir_j) is its own inverse
//! and passes the same test, and the flip of dir_j that follows every iteration
//! leaves the uniform distribution unchanged. A rejection without a question (a
//! proposal of density zero, or so long that noise would drown the test) is
//! symmetric in the two points or depends on public values, and flips like any
//! other.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::privacy::Subsampling;
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::Reference;
use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};
use crate::sampler::walks::{proposal, rwmh};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-penalty",
    summary: "random-walk Metropolis with a penalty test, whole or one coordinate at a time (Yildirim and Ermis 2019)",
    kind: Kind::Private(&DpPenalty),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::batch_rate.or(Unset::ALL_RECORDS),
        Setting::batch_size.or(Unset::ALL_RECORDS),
        Setting::clip_log_ratio.or(Unset::CLIP),
        Setting::tau_log_ratio.or(Unset::BUDGET),
        Setting::one_component.or(Unset::Off),
        Setting::guided_walk.or(Unset::Off),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE)),
    ],
};

pub(crate) const CLIPPED: Algorithm = Algorithm {
    name: "clipped-rwmh",
    summary: "dp-penalty's random walks on clipped log-ratios without noise (NOT PRIVATE), to show the effect of clipping alone",
    kind: Kind::Clipped(&DpPenalty),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::clip_log_ratio.or(Unset::CLIP),
        Setting::one_component.or(Unset::Off),
        Setting::guided_walk.or(Unset::Off),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        // Without noise there is no penalty.
        Setting::target_acceptance.or(Unset::Number(rwmh::TARGET_ACCEPTANCE)),
    ],
};

/// Approximately the optimum of a random walk in few dimensions (Roberts, Gelman and Gilks 1997),
/// reduced by a penalty of 1 nat.
const TARGET_ACCEPTANCE: f64 = 0.3;

const LOG_RATIOS: usize = 0;

#[derive(Debug)]
struct DpPenalty;

impl Sampler for DpPenalty {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        let subsampling = match (request.settings.batch_rate, request.settings.batch_size) {
            (_, None) => request.batches()?,
            (None, Some(size)) => Subsampling::FixedSize(size),
            (Some(_), Some(_)) => {
                return Err(PlanError::Settings(
                    "`batch_rate` and `batch_size` are two ways to draw batches: give one".into(),
                ));
            }
        };
        let what = match subsampling {
            Subsampling::All => "log-ratio per unit of distance",
            _ => "minibatch log-ratio per unit of its bound",
        };
        Ok(vec![Line {
            what,
            question: Question::LogRatio,
            noise: Noise::Share(1.0),
            count: over_chains(Some(iterations), request.chains)?,
            subsampling,
        }])
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        plan.test_warnings("`step_size`, `one_component`")
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        0.05
    }

    fn typical_distance(&self, r: &PlanRequest) -> Option<f64> {
        let coordinates = match Move::of(r) {
            Move::Whole => r.dimension as f64,
            Move::OneComponent | Move::GuidedWalk => 1.0,
        };
        Some(self.step_size(r) * coordinates.sqrt())
    }

    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        self.walker(&plan.request, theta, oracle, rng)
    }
}

impl Reference for DpPenalty {
    fn walker(
        &self,
        r: &PlanRequest,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let direction = theta.iter().map(|_| rng.random()).collect();
        Box::new(PenaltyWalker {
            kind: Move::of(r),
            step_size: self.step_size(r),
            metric: Metric::Unit,
            log_prior: oracle.log_prior(&theta),
            theta,
            forward: direction,
        })
    }
}

/// The kind of proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Whole,
    OneComponent,
    GuidedWalk,
}

impl Move {
    fn of(request: &PlanRequest) -> Move {
        if request.settings.guided_walk == Some(true) {
            Move::GuidedWalk
        } else if request.settings.one_component == Some(true) {
            Move::OneComponent
        } else {
            Move::Whole
        }
    }
}

struct PenaltyWalker {
    kind: Move,
    /// h
    step_size: f64,
    metric: Metric,
    theta: Vec<f64>,
    /// log prior + log Jacobian at theta.
    log_prior: f64,
    /// The guided walk's direction in each coordinate: whether it is up.
    forward: Vec<bool>,
}

impl PenaltyWalker {
    /// A proposal, and the coordinate that it changes, if it changes only one.
    fn propose(&self, rng: &mut ChaCha8Rng) -> (Vec<f64>, usize) {
        let (h, d) = (self.step_size, self.theta.len());
        if self.kind == Move::Whole {
            return (proposal(&self.theta, h, &self.metric, rng), 0);
        }
        let mut proposal = self.theta.clone();
        let j = rng.random_range(0..d);
        let z: f64 = StandardNormal.sample(rng);
        let z = match (self.kind, self.forward[j]) {
            (Move::GuidedWalk, true) => z.abs(),
            (Move::GuidedWalk, false) => -z.abs(),
            _ => z,
        };
        proposal[j] += h * self.metric.deviation(j) * z;
        (proposal, j)
    }
}

impl Walker for PenaltyWalker {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let h = self.step_size;
        let (proposal, j) = self.propose(rng);
        let log_prior = oracle.log_prior(&proposal);
        let mut step = Step::rejected(h);
        if log_prior.is_finite()
            && let Ratio::Penalised(ratio) = oracle.log_ratio(LOG_RATIOS, &self.theta, &proposal)?
        {
            let log_a = ratio + log_prior - self.log_prior;
            step = Step::tested(log_a, oracle.accept(log_a), h);
        }
        if step.accepted {
            self.theta = proposal;
            self.log_prior = log_prior;
        } else if self.kind == Move::GuidedWalk {
            self.forward[j] = !self.forward[j];
        }
        Ok(step)
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    fn tune(&mut self, step_size: f64, metric: &Metric) {
        self.step_size = step_size;
        self.metric = metric.clone();
    }

    fn save(&self) -> Value {
        written(&Saved {
            step_size: self.step_size,
            metric: self.metric.clone(),
            theta: self.theta.clone(),
            log_prior: self.log_prior,
            forward: self.forward.clone(),
        })
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let saved: Saved = read(saved)?;
        self.step_size = saved.step_size;
        self.metric = saved.metric;
        self.theta = saved.theta;
        self.log_prior = saved.log_prior;
        self.forward = saved.forward;
        Ok(())
    }
}

/// The state of a chain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    #[serde(with = "exact_number")]
    step_size: f64,
    metric: Metric,
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
    #[serde(with = "exact_number")]
    log_prior: f64,
    forward: Vec<bool>,
}

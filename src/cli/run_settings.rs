//! Flags that `dpm sample` and `dpm plan` share, and what they resolve to.

use clap::ValueEnum;

use super::clip_bounds::{ClipBounds, ClipChoice};
use super::failure::Failure;
use super::headings;
use crate::accounting::{Real, Relation};
use crate::sampler::{
    Algorithm, DEFAULT_CHAINS, DEFAULT_GRADIENTS_PER_DRAW, DEFAULT_LEAPFROG_STEPS, DEFAULT_SAMPLES,
    DEFAULT_SPLIT, DEFAULT_START_SHARE, Iterations, NoiseChoice, Plan, PlanError, PlanRequest,
};

/// Neighbouring data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RelationChoice {
    /// One record (or unit) replaced by another; the number of them is public
    Substitute,
    /// One record (or unit) added or removed; the number of them is private
    AddRemove,
    /// The values of one record (or unit) left blank; the number of them is public
    ZeroOut,
}

impl From<RelationChoice> for Relation {
    fn from(choice: RelationChoice) -> Relation {
        match choice {
            RelationChoice::Substitute => Relation::Substitute,
            RelationChoice::AddRemove => Relation::AddRemove,
            RelationChoice::ZeroOut => Relation::ZeroOut,
        }
    }
}

/// `--iterations N|max`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IterationsChoice {
    Count(u64),
    Max,
}

impl std::str::FromStr for IterationsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(IterationsChoice::Max);
        }
        text.parse()
            .map(IterationsChoice::Count)
            .map_err(|_| "expected a number of iterations per chain, or `max`".into())
    }
}

/// How the run spends its budget.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RunSettings {
    /// Privacy budget epsilon of the whole run: all chains, warm-up included
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = headings::BUDGET)]
    pub epsilon: Option<Real>,
    /// Privacy budget delta of the whole run (default, but under add-remove: 0.1 / number of records, or of units where --unit is given)
    #[arg(long, value_name = "D", allow_negative_numbers = true, help_heading = headings::BUDGET)]
    pub delta: Option<Real>,
    /// What neighbouring data sets differ in
    #[arg(
        long,
        value_enum,
        default_value_t = RelationChoice::Substitute,
        help_heading = headings::BUDGET
    )]
    pub relation: RelationChoice,
    /// Number of chains; all of them share the budget
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = DEFAULT_CHAINS,
        value_name = "N",
        help_heading = headings::CHAINS
    )]
    pub chains: u64,
    /// Iterations per chain after warm-up [default: 500 private, 1000 not private]
    #[arg(long, allow_negative_numbers = true, value_name = "N", help_heading = headings::CHAINS)]
    pub num_samples: Option<u64>,
    /// Iterations per chain that are discarded [default: as many as --num-samples]
    #[arg(long, allow_negative_numbers = true, value_name = "N", help_heading = headings::CHAINS)]
    pub num_warmup: Option<u64>,
    /// Iterations per chain in all, or `max`: as many as the budget allows, half of them warm-up unless --num-warmup says otherwise
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N|max",
        conflicts_with = "num_samples",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    pub iterations: Option<IterationsChoice>,
    /// Leapfrog steps per iteration [default: 5 private; 10, at most, not private]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "L",
        help_heading = headings::STEPS,
        hide_short_help = true
    )]
    pub leapfrog_steps: Option<u64>,
    /// Largest leapfrog step, or standard deviation of a proposal, unconstrained scale; fixed where private, the first one otherwise [default: adapted in warm-up]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "ETA",
        help_heading = headings::STEPS,
        hide_short_help = true
    )]
    pub step_size: Option<f64>,
    /// Bound on the l2 norm of one record's gradient (of one unit, summed over its rows, where --unit is given); `derived`: what no record exceeds [default: derived where that is at most 3, else 3]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "B|derived",
        help_heading = headings::NOISE,
        hide_short_help = true
    )]
    pub clip_gradient: Option<ClipChoice>,
    /// Bound on one record's (or unit's) log-likelihood ratio, per unit of distance [default: as for --clip-gradient]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "B|derived",
        help_heading = headings::NOISE,
        hide_short_help = true
    )]
    pub clip_log_ratio: Option<ClipChoice>,
    /// Share of the budget that goes to gradients, the rest to log-ratios [default: 0.5]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "SHARE",
        conflicts_with_all = ["tau_gradient", "tau_log_ratio"],
        help_heading = headings::NOISE,
        hide_short_help = true
    )]
    pub noise_split: Option<f64>,
    /// Noise multiplier of gradients, in units of their sensitivity
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "TAU",
        help_heading = headings::NOISE,
        hide_short_help = true
    )]
    pub tau_gradient: Option<f64>,
    /// Noise multiplier of log-ratios, in units of their sensitivity
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "TAU",
        help_heading = headings::NOISE,
        hide_short_help = true
    )]
    pub tau_log_ratio: Option<f64>,
    /// Propose a change of one coordinate at a time
    #[arg(long, help_heading = headings::STEPS, hide_short_help = true)]
    pub one_component: bool,
    /// Propose one coordinate at a time, in the direction that was accepted last
    #[arg(long, help_heading = headings::STEPS, hide_short_help = true)]
    pub guided_walk: bool,
    /// Draw the first gradient of every trajectory anew, as the paper does
    #[arg(long, help_heading = headings::STEPS, hide_short_help = true)]
    pub fresh_gradients: bool,
    /// Leapfrog steps of one size, without jitter
    #[arg(long, help_heading = headings::STEPS, hide_short_help = true)]
    pub fixed_steps: bool,
    /// Probability of a record (or unit) to be in a batch [default: 0.01 for the stochastic-gradient samplers, all records for dp-penalty]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "R",
        help_heading = headings::BATCHES,
        hide_short_help = true
    )]
    pub batch_rate: Option<Real>,
    /// Records (or units) in a batch of fixed size, drawn without replacement [default: 1000 for dp-barker, all records for dp-penalty]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "B",
        conflicts_with = "batch_rate",
        help_heading = headings::BATCHES,
        hide_short_help = true
    )]
    pub batch_size: Option<u64>,
    /// Steps fall like 1 / iteration^P, in blocks; 0 for constant steps [default: 0; 1/3 for the sghmc samplers]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "P",
        help_heading = headings::BATCHES,
        hide_short_help = true
    )]
    pub step_decay: Option<f64>,
    /// Friction per unit of time, A of sgnht and F of sghmc [default: 0.1 / first step]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "F",
        help_heading = headings::BATCHES,
        hide_short_help = true
    )]
    pub friction: Option<f64>,
    /// B of sghmc: the variance of the batches' own noise per unit of time, a public guess [default: 0]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "B",
        help_heading = headings::BATCHES,
        hide_short_help = true
    )]
    pub noise_estimate: Option<f64>,
    /// Share of the budget for what is learnt before the chains begin [default: 0.4]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "SHARE",
        help_heading = headings::LANGEVIN,
        hide_short_help = true
    )]
    pub start_share: Option<f64>,
    /// Gradients from one draw of dp-langevin to the next [default: what suits records that are made up from the model; 3 under add-remove]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        help_heading = headings::LANGEVIN,
        hide_short_help = true
    )]
    pub gradients_per_draw: Option<u64>,
    /// Temper: raise the likelihood to the power N0 / number of records (of units, where --unit is given)
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N0",
        help_heading = headings::BUDGET,
        hide_short_help = true
    )]
    pub temperature: Option<f64>,
}

/// Warm-up and sampling iterations of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lengths {
    pub num_warmup: u64,
    pub num_samples: u64,
}

/// A flag that the sampler would not look at is a mistake of its user.
pub(super) fn refuse_foreign(
    algorithm: &Algorithm,
    given: &[(&'static str, bool)],
) -> Result<(), Failure> {
    let foreign = given
        .iter()
        .find(|(flag, given)| *given && !algorithm.settings.contains(flag));
    let Some((flag, _)) = foreign else {
        return Ok(());
    };
    let own = match algorithm.settings {
        [] => String::new(),
        settings => format!(" It has {}", settings.join(", ")),
    };
    Err(Failure::input(format!(
        "{flag} means nothing to `{}`: leave it out.{own}",
        algorithm.name
    )))
}

/// `share` of every `of` iterations.
fn part(iterations: u64, share: u64, of: u64) -> u64 {
    (u128::from(iterations) * u128::from(share) / u128::from(of)) as u64
}

impl RunSettings {
    /// n, where a run may tell it; what it plans must not depend on it elsewhere.
    pub fn public_n(&self, n: u64) -> Option<u64> {
        Relation::from(self.relation).n_is_public().then_some(n)
    }

    /// T for `n` records.
    pub fn power(&self, n: Option<u64>) -> Result<f64, Failure> {
        let Some(n0) = self.temperature else {
            return Ok(1.0);
        };
        let Some(n) = n else {
            return Err(Failure::input(
                "--temperature needs a public number of records; under add-remove it is private",
            ));
        };
        if !(n0 > 0.0 && n0 <= n as f64) {
            return Err(Failure::input(format!(
                "--temperature is {n0}, but must be above 0 and at most the number of records, {n}"
            )));
        }
        Ok(n0 / n as f64)
    }

    /// The budget, its delta filled in where it may be. The flag says whether
    /// the default was taken.
    pub fn budget(&self, n: Option<u64>) -> Result<(Real, Real, bool), Failure> {
        let Some(epsilon) = self.epsilon else {
            return Err(Failure::input(
                "how private is the run to be? Give --epsilon (and --delta), for example --epsilon 1 --delta 1e-6; or --algorithm hmc --not-private for a run without privacy",
            ));
        };
        let (delta, default) = match (self.delta, n) {
            (Some(delta), _) => (delta, false),
            (None, Some(n)) => (Real::from(0.1) / Real::from(n.max(1)), true),
            (None, None) => {
                return Err(Failure::input(
                    "under add-remove the number of records is private, so delta has no default: give --delta",
                ));
            }
        };
        crate::accounting::Budget::new(epsilon, delta).map_err(Failure::input)?;
        Ok((epsilon, delta, default))
    }

    /// The flags of particular samplers, and whether each was given.
    pub fn particular(&self) -> Vec<(&'static str, bool)> {
        vec![
            ("--leapfrog-steps", self.leapfrog_steps.is_some()),
            ("--fresh-gradients", self.fresh_gradients),
            ("--fixed-steps", self.fixed_steps),
            ("--clip-gradient", self.clip_gradient.is_some()),
            ("--clip-log-ratio", self.clip_log_ratio.is_some()),
            ("--noise-split", self.noise_split.is_some()),
            ("--tau-gradient", self.tau_gradient.is_some()),
            ("--tau-log-ratio", self.tau_log_ratio.is_some()),
            ("--batch-rate", self.batch_rate.is_some()),
            ("--batch-size", self.batch_size.is_some()),
            ("--step-decay", self.step_decay.is_some()),
            ("--friction", self.friction.is_some()),
            ("--noise-estimate", self.noise_estimate.is_some()),
            ("--one-component", self.one_component),
            ("--guided-walk", self.guided_walk),
            ("--start-share", self.start_share.is_some()),
            ("--gradients-per-draw", self.gradients_per_draw.is_some()),
        ]
    }

    /// The sampler of a run that names none: the one that tunes itself, unless something is
    /// given that is a setting of DP-HMC or of dp-langevin; `more`: a flag of the command's own.
    pub fn default_algorithm(&self, more: bool) -> &'static str {
        let given = self.particular().into_iter();
        let travels = ["--start-share", "--gradients-per-draw"];
        let (own, foreign): (Vec<_>, Vec<_>) = given.partition(|(flag, _)| travels.contains(flag));
        let any = |flags: &[(&str, bool)]| flags.iter().any(|(_, given)| *given);
        let is_set = more
            || self.step_size.is_some()
            || self.iterations == Some(IterationsChoice::Max)
            || any(&foreign);
        match (is_set, any(&own)) {
            (true, _) => "dp-hmc",
            (false, true) => "dp-langevin",
            (false, false) => "dp-laplace",
        }
    }

    /// What is wrong whatever the model and the data.
    pub fn check(&self, algorithm: &Algorithm) -> Result<(), Failure> {
        refuse_foreign(algorithm, &self.particular())?;
        for (flag, value) in [
            ("--chains", self.chains),
            (
                "--leapfrog-steps",
                self.leapfrog_steps.unwrap_or(DEFAULT_LEAPFROG_STEPS),
            ),
        ] {
            if value == 0 {
                return Err(Failure::input(format!("{flag} must be at least 1")));
            }
        }
        if let Some(step_size) = self.step_size
            && !(step_size > 0.0 && step_size.is_finite())
        {
            return Err(Failure::input(format!(
                "--step-size is {step_size}, but must be a positive number"
            )));
        }
        self.lengths(1, algorithm).map(|_| ())
    }

    /// Iterations asked for; `None` when the budget decides.
    pub fn lengths(
        &self,
        default_samples: u64,
        algorithm: &Algorithm,
    ) -> Result<Option<Lengths>, Failure> {
        // Warm-up iterations for every ten that are kept.
        let warmup = match algorithm.learns() {
            true if algorithm.travels() => 1,
            true => 5,
            false => 10,
        };
        let lengths = match self.iterations {
            Some(IterationsChoice::Max) => return Ok(None),
            Some(IterationsChoice::Count(total)) => self.split(total, warmup)?,
            None => {
                let num_samples = self.num_samples.unwrap_or(default_samples);
                Lengths {
                    num_warmup: self.num_warmup.unwrap_or(part(num_samples, warmup, 10)),
                    num_samples,
                }
            }
        };
        if lengths.num_samples == 0 {
            return Err(Failure::input("--num-samples must be at least 1"));
        }
        if lengths.num_warmup.saturating_add(lengths.num_samples) > 1 << 50 {
            return Err(Failure::input(
                "--num-samples and --num-warmup are too large to be counted",
            ));
        }
        Ok(Some(lengths))
    }

    fn split(&self, total: u64, warmup: u64) -> Result<Lengths, Failure> {
        let num_warmup = self.num_warmup.unwrap_or(part(total, warmup, 10 + warmup));
        match total.checked_sub(num_warmup) {
            Some(num_samples) if num_samples > 0 => Ok(Lengths {
                num_warmup,
                num_samples,
            }),
            _ => Err(Failure::input(format!(
                "{total} iterations leave nothing after a warm-up of {num_warmup}"
            ))),
        }
    }

    /// The plan of a private run, which `make` makes of the request, and how its iterations divide.
    ///
    /// `n`: the number of records where it is public; `dimension`: unconstrained
    /// coordinates.
    pub fn plan_with(
        &self,
        algorithm: &'static Algorithm,
        n: Option<u64>,
        dimension: usize,
        clips: &ClipBounds,
        make: impl FnOnce(PlanRequest) -> Result<Plan, PlanError>,
    ) -> Result<(Plan, Lengths), Failure> {
        let lengths = self.lengths(DEFAULT_SAMPLES, algorithm)?;
        let request = self.request(algorithm, n, dimension, lengths, clips)?;
        let plan = make(request).map_err(|e| match e.is_refusal() {
            true => Failure::budget(e),
            false => Failure::input(e),
        })?;
        let lengths = match lengths {
            Some(lengths) => lengths,
            None => self.split(plan.iterations_per_chain, 10)?,
        };
        Ok((plan, lengths))
    }

    /// What is asked of the planner; the arguments are those of [`plan_with`](Self::plan_with).
    pub fn request(
        &self,
        algorithm: &'static Algorithm,
        n: Option<u64>,
        dimension: usize,
        lengths: Option<Lengths>,
        clips: &ClipBounds,
    ) -> Result<PlanRequest, Failure> {
        let (epsilon, delta, _) = self.budget(n)?;
        let noise = match (self.tau_gradient, self.tau_log_ratio) {
            (None, None) => NoiseChoice::FromBudget {
                split: self.noise_split.unwrap_or(DEFAULT_SPLIT),
            },
            (gradient, log_ratio) => NoiseChoice::Multipliers {
                gradient,
                log_ratio,
            },
        };
        Ok(PlanRequest {
            noise,
            iterations: match lengths {
                Some(l) => Iterations::Fixed(l.num_warmup.saturating_add(l.num_samples)),
                None => Iterations::Max,
            },
            ..self.dynamics(
                algorithm,
                n,
                clips,
                PlanRequest::new(epsilon, delta, dimension),
            )?
        })
    }

    /// A run of a private sampler's dynamics without privacy, on `n` records.
    pub fn reference_request(
        &self,
        algorithm: &'static Algorithm,
        n: u64,
        dimension: usize,
        clips: &ClipBounds,
    ) -> Result<PlanRequest, Failure> {
        // There is no budget: what the request says of one is not looked at.
        let unbounded = PlanRequest::new(Real::ONE, Real::ONE, dimension);
        self.dynamics(algorithm, Some(n), clips, unbounded)
    }

    /// `request` with everything that does not concern budget, noise and iterations.
    fn dynamics(
        &self,
        algorithm: &'static Algorithm,
        n: Option<u64>,
        clips: &ClipBounds,
        request: PlanRequest,
    ) -> Result<PlanRequest, Failure> {
        Ok(PlanRequest {
            algorithm,
            relation: self.relation.into(),
            chains: self.chains,
            temperature: self.power(n)?,
            clip_gradient: clips.gradient,
            clip_log_ratio: clips.log_ratio,
            step_size: self.step_size,
            leapfrog_steps: self.leapfrog_steps.unwrap_or(DEFAULT_LEAPFROG_STEPS),
            fresh_gradients: self.fresh_gradients,
            fixed_steps: self.fixed_steps,
            one_component: self.one_component,
            guided_walk: self.guided_walk,
            records: n,
            batch_rate: self.batch_rate,
            batch_size: self.batch_size,
            step_decay: self.step_decay,
            friction: self.friction,
            start_share: self.start_share.unwrap_or(DEFAULT_START_SHARE),
            gradients_per_draw: self
                .gradients_per_draw
                .unwrap_or(DEFAULT_GRADIENTS_PER_DRAW),
            noise_estimate: self.noise_estimate.unwrap_or(0.0),
            ..request
        })
    }
}

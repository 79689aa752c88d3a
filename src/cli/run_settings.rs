//! Flags that `dpm sample`, `dpm plan`, `dpm tune` and `dpm sbc` share, and what they resolve to.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, ValueEnum};

use super::failure::Failure;
use super::headings;
use super::words::flag;
use crate::accounting::{Budget, Real, Relation};
use crate::analysis::{Analysis, AskedIterations, AskedLengths, Promise};
use crate::sampler::{ALGORITHMS, Algorithm, DEFAULT_CHAINS, Setting, Settings};

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

fn iterations(text: &str) -> Result<AskedIterations, String> {
    match text {
        "max" => Ok(AskedIterations::Max),
        number => number
            .parse()
            .map(AskedIterations::Count)
            .map_err(|_| "expected a number of iterations per chain, or `max`".into()),
    }
}

/// How the run spends its budget.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RunSettings {
    /// Privacy budget epsilon of the whole run: all chains, warm-up included
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = headings::BUDGET)]
    pub epsilon: Option<Real>,
    /// Privacy budget delta of the whole run [default: 0.1 / records (or units); required under add-remove]
    #[arg(long, value_name = "D", allow_negative_numbers = true, help_heading = headings::BUDGET)]
    pub delta: Option<Real>,
    /// How neighbouring data sets differ
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
    /// Iterations per chain after warm-up [default: 500; 1000 if not private]
    #[arg(long, allow_negative_numbers = true, value_name = "N", help_heading = headings::CHAINS)]
    pub num_samples: Option<u64>,
    /// Warm-up iterations per chain, discarded [default: --num-samples; half of it for dp-laplace, a tenth for dp-langevin]
    #[arg(long, allow_negative_numbers = true, value_name = "N", help_heading = headings::CHAINS)]
    pub num_warmup: Option<u64>,
    /// Iterations per chain in total, or `max`: as many as the budget allows; half are warm-up unless --num-warmup is given
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N|max",
        value_parser = iterations,
        conflicts_with = "num_samples",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    pub iterations: Option<AskedIterations>,
    /// Temper: raise the likelihood to the power N0 / number of records (of units with --unit)
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N0",
        help_heading = headings::BUDGET,
        hide_short_help = true
    )]
    pub temperature: Option<f64>,
}

/// The name of a sampler: shells complete it, and the library says which there are if it is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) enum SamplerName {
    Any,
    Private,
}

impl TypedValueParser for SamplerName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let fits = |algorithm: &&Algorithm| match self {
            SamplerName::Any => true,
            SamplerName::Private => algorithm.is_private(),
        };
        let names = ALGORITHMS.iter().filter(fits).map(|a| a.name);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// The settings of particular samplers, a flag each.
#[derive(Debug, Clone)]
pub(super) struct SamplerFlags(pub Settings);

/// All of them together, as the derived groups are called.
const SAMPLER_FLAGS: &str = "SamplerFlags";

impl clap::Args for SamplerFlags {
    fn group_id() -> Option<clap::Id> {
        Some(SAMPLER_FLAGS.into())
    }

    fn augment_args(mut command: Command) -> Command {
        for setting in Setting::ALL.iter().copied() {
            command = command.arg(argument(setting));
        }
        let names = Setting::ALL.iter().map(|setting| setting.name());
        command.group(ArgGroup::new(SAMPLER_FLAGS).multiple(true).args(names))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SamplerFlags::augment_args(command)
    }
}

/// The flag of a setting.
fn argument(setting: Setting) -> Arg {
    let argument = Arg::new(setting.name())
        .long(flag(setting.name()).trim_start_matches('-').to_owned())
        .help(setting.help())
        .help_heading(setting.group())
        .hide_short_help(true);
    if setting.is_switch() {
        return argument.action(ArgAction::SetTrue);
    }
    let argument = argument
        .value_name(setting.placeholder())
        .allow_negative_numbers(true);
    match setting.choices() {
        [] => argument.value_parser(move |text: &str| {
            let read = Settings::new().read(setting, text);
            read.map(|()| text.to_owned())
        }),
        choices => argument.value_parser(choices.to_vec()),
    }
}

impl clap::FromArgMatches for SamplerFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SamplerFlags, clap::Error> {
        let mut settings = Settings::new();
        for setting in Setting::ALL.iter().copied() {
            let text = if setting.is_switch() {
                matches.get_flag(setting.name()).then_some("true")
            } else {
                (matches.get_one::<String>(setting.name())).map(String::as_str)
            };
            if let Some(text) = text {
                let read = settings.read(setting, text);
                read.map_err(|e| clap::Error::raw(clap::error::ErrorKind::InvalidValue, e))?;
            }
        }
        Ok(SamplerFlags(settings))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SamplerFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

impl RunSettings {
    /// The promise of a run on `n` records, or on units where there is a column of those, and
    /// whether delta is the default.
    pub fn promise(&self, n: u64, unit: Option<&str>) -> Result<(Promise, bool), Failure> {
        promise((self.epsilon()?, self.delta), self.relation.into(), unit, n)
    }

    /// Whether the budget and --not-private fit the sampler.
    pub fn check_privacy(&self, algorithm: &Algorithm, not_private: bool) -> Result<(), Failure> {
        let name = algorithm.name;
        let wrong = match (algorithm.is_private(), not_private) {
            (true, true) => {
                format!("`{name}` is private; --not-private goes with `--algorithm hmc`")
            }
            (false, false) => {
                format!("`{name}` gives no privacy at all: add --not-private if that is intended")
            }
            (false, true) if self.epsilon.is_some() || self.delta.is_some() => {
                format!(
                    "--epsilon and --delta mean nothing for `{name}`, which is not private: leave them out"
                )
            }
            _ => return Ok(()),
        };
        Err(Failure::input(wrong))
    }

    fn epsilon(&self) -> Result<Real, Failure> {
        self.epsilon.ok_or_else(|| Failure::input(
            "how private is the run to be? Give --epsilon (and --delta), for example `--epsilon 1 --delta 1e-6`; or `--algorithm hmc --not-private` for a run without privacy",
        ))
    }

    /// The iterations that are asked for.
    pub fn lengths(&self) -> AskedLengths {
        AskedLengths {
            num_warmup: self.num_warmup,
            num_samples: self.num_samples,
            iterations: self.iterations,
        }
    }

    /// The analysis that these settings and the sampler's ask for, of a run of that name.
    ///
    /// # Errors
    ///
    /// There is no epsilon, and the sampler is private.
    pub fn analysis(
        &self,
        name: String,
        algorithm: Option<&str>,
        sampler: &SamplerFlags,
    ) -> Result<Analysis, Failure> {
        // Of a run without privacy it is not looked at.
        let epsilon = self.epsilon.unwrap_or(Real::ONE);
        let mut analysis = Analysis::new(name, epsilon)
            .settings(sampler.0.clone())
            .chains(self.chains)
            .asked_lengths(self.lengths());
        if let Some(algorithm) = algorithm {
            analysis = analysis.algorithm(algorithm);
        }
        if let Some(records) = self.temperature {
            analysis = analysis.temper_to(records);
        }
        if analysis.sampler()?.is_private() {
            self.epsilon()?;
        }
        Ok(analysis)
    }
}

/// The promise of a run on `n` records, or on units where there is a column of those, and whether
/// delta is the default.
pub(super) fn promise(
    (epsilon, delta): (Real, Option<Real>),
    relation: Relation,
    unit: Option<&str>,
    n: u64,
) -> Result<(Promise, bool), Failure> {
    // What a run plans must not depend on it elsewhere.
    let records = relation.n_is_public().then_some(n);
    let (delta, is_default) = match (delta, records) {
        (Some(delta), _) => (delta, false),
        (None, Some(n)) => (Real::from(0.1) / Real::from(n.max(1)), true),
        (None, None) => {
            return Err(Failure::input(
                "under add-remove the number of records is private, so delta has no default: give --delta",
            ));
        }
    };
    Budget::new(epsilon, delta).map_err(Failure::input)?;
    let promise = Promise {
        epsilon,
        delta,
        relation,
        unit: unit.map(str::to_owned),
        records,
        part: None,
    };
    Ok((promise, is_default))
}

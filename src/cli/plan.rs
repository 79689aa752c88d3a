//! `dpm plan`: what a run would release, before the data is there.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::data_file::HoldOut;
use super::failure::Failure;
use super::format::Format;
use super::headings;
use super::model_file::{CONSTANTS, METADATA, ModelFile, model_name};
use super::planned::{describe, json_of};
use super::run_settings::{RunSettings, SamplerFlags, SamplerName};
use super::words::in_flags;
use super::{Common, charge};
use super::{pretty, print};
use crate::accounting::{Quote, Session};
use crate::analysis::{Foreseen, Prepared, Promise};
use crate::model::Model;
use crate::privacy::Split;
use crate::sampler::{Plan, Question};
use crate::tune::{Demand, Prediction, Width, forecast_widths, short_simulation};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints what a run would release, with its noise, and what that noise means for the chain: the
standard deviation of the acceptance test's noise for a typical proposal, and that of a gradient
compared with the gradients themselves, on records simulated from the model (with parameters from
its prior, and covariates uniform between their bounds or as --metadata guesses). These records also
show how many would be clipped, and for how many autocorrelation times the chains of dp-langevin
would run. For dp-laplace, prints the number of rounds, the share of the budget for each kind of
release, and how wide the intervals of each parameter will be at least, compared with the posterior
without privacy and with the prior. Warns of plans that cannot work.

Examples:
  dpm plan models/adult_income.dpm --rows 48842 --epsilon 1 --delta 1e-6
  dpm plan models/adult_income.dpm --rows 48842 --epsilon 4 --delta 1e-6 --tau-gradient 500 --tau-log-ratio 300 --iterations max")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Number of records the run would learn from (of units with --unit)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rows: u64,
    #[command(flatten)]
    settings: RunSettings,
    /// Private sampler, listed by `dpm sample --help` [default: as for `dpm sample`]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = headings::CHAINS,
        value_parser = SamplerName::Private,
        hide_possible_values = true
    )]
    algorithm: Option<String>,
    #[arg(long, value_name = "FILE.yaml", help = METADATA, help_heading = headings::DATA)]
    metadata: Option<PathBuf>,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS, help_heading = headings::DATA)]
    constants: Option<PathBuf>,
    /// Plan for a run with this --unit, whose units may have any number of rows
    #[arg(long, value_name = "COLUMN", help_heading = headings::BUDGET, value_hint = clap::ValueHint::Other)]
    unit: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = headings::OUTPUT)]
    format: Format,
    /// Ledger of the data: also show what the run would leave of its budget; nothing is charged
    #[arg(long, value_name = "FILE", help_heading = headings::BUDGET)]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    hold_out: HoldOut,
    #[command(flatten)]
    sampler: SamplerFlags,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let name = arguments.algorithm.as_deref();
    let analysis =
        (arguments.settings).analysis(model_name(&arguments.model), name, &arguments.sampler)?;
    let algorithm = analysis.sampler()?;
    if !algorithm.is_private() {
        return Err(Failure::input(format!(
            "`{}` releases exact values; there is nothing to plan",
            algorithm.name
        )));
    }
    if arguments.rows == 0 {
        return Err(Failure::input("--rows must be at least 1"));
    }
    analysis.check(algorithm)?;
    let split = arguments.hold_out.split()?;
    let file = ModelFile::read(&arguments.model, common)?;
    file.show_warnings(common);
    let model = file.bind_guessed(
        arguments.constants.as_deref(),
        arguments.metadata.as_deref(),
        common,
    )?;
    let (promise, default_delta) =
        (arguments.settings).promise(arguments.rows, arguments.unit.as_deref())?;
    let prepared = analysis.prepare(&model, promise)?;
    let plan = &prepared.plan;
    if default_delta {
        common.say(format!(
            "delta was not given: taking 0.1 / number of records = {:.3e}",
            prepared.promise.delta.to_f64()
        ));
    }
    let simulated = simulate(&model, plan, arguments.rows, common);
    let noisy = simulated.as_ref().and_then(Simulated::warning);
    for warning in plan.warnings.iter().chain(&noisy) {
        common.say(in_flags(&format!("warning: {warning}")));
    }
    let quote = match &arguments.ledger {
        Some(path) => Some(quote(path, &prepared, arguments, split)?),
        None => None,
    };
    let foreseen = prepared.foreseen.as_ref();
    let widths = match foreseen {
        // Nobody knows how many rows a unit has.
        Some(Foreseen::Likelihood(foresight)) if arguments.unit.is_none() => {
            let records = plan.request.temperature * arguments.rows as f64;
            forecast_widths(&model, &Demand::new(foresight, records))
                .ok()
                .flatten()
        }
        _ => None,
    };
    print(&match arguments.format {
        Format::Json => {
            let mut json = json_of(plan);
            json["clipping"] = prepared.clips.report(plan).json();
            json["foreseen"] = json!(foreseen.map(Foreseen::json));
            json["widths"] = json!(widths);
            json["simulated"] = json!(simulated.as_ref().map(|s| &s.prediction));
            if let (Some(list), Some(warning)) = (json["warnings"].as_array_mut(), noisy) {
                list.push(warning.into());
            }
            if let Some(quote) = quote {
                json["ledger"] = json!(quote);
            }
            pretty(&json)
        }
        Format::Text => {
            let lengths = prepared.lengths;
            let mut lines = describe(plan, lengths.num_warmup, lengths.num_samples);
            lines.extend(prepared.clips.lines().iter().map(|line| in_flags(line)));
            lines.extend(simulated.iter().flat_map(Simulated::lines));
            lines.extend(foreseen.map(Foreseen::line));
            lines.extend(widths.iter().flat_map(|widths| width_lines(widths)));
            lines.extend(quote.as_ref().map(charge::line));
            lines.join("\n") + "\n"
        }
    })
}

/// The least widths of intervals to expect, for people.
fn width_lines(widths: &[Width]) -> Vec<String> {
    const SHOWN: usize = 20;
    let name = |width: &Width| width.name.len();
    let longest = widths.iter().map(name).max().unwrap_or(0).max(9);
    let mut lines = vec![
        "the 90% intervals will be at least this wide, in widths of the posterior's without privacy and of the prior's (`dpm sbc` measures whole runs, whose intervals are often wider):".to_owned(),
        format!("  {:<longest$}  /posterior  /prior", "parameter"),
    ];
    lines.extend(widths.iter().take(SHOWN).map(|width| {
        let prior = width.of_prior.map_or("-".to_owned(), |w| format!("{w:.3}"));
        let Width {
            name, of_reference, ..
        } = width;
        format!("  {name:<longest$}  {of_reference:>10.2}  {prior:>6}")
    }));
    if widths.len() > SHOWN {
        lines.push(format!(
            "  ... and {} more: --format json",
            widths.len() - SHOWN
        ));
    }
    lines
}

/// The cost of the run in a ledger; without --unit, for the ledger's own unit.
fn quote(
    path: &Path,
    prepared: &Prepared,
    arguments: &Arguments,
    split: Option<Split>,
) -> Result<Quote, Failure> {
    let session = Session::open(path)?;
    let own = session.terms()?.unit().to_owned();
    let promise = Promise {
        unit: arguments.unit.clone().or(Some(own)),
        part: split.map(|split| split.training().part()),
        ..prepared.promise.clone()
    };
    charge::quote(&session, &promise, &prepared.plan)
}

/// The plan on records that are made up.
struct Simulated {
    prediction: Prediction,
    /// Whether gradients are to be followed, rather than to stir the chain as well.
    followed: bool,
    /// How many parameters have no prior to be drawn from.
    stand_ins: usize,
}

/// Above this a gradient says next to nothing of the data.
const DROWNED: f64 = 2.0;

fn simulate(model: &Model, plan: &Plan, rows: u64, common: &Common) -> Option<Simulated> {
    match short_simulation(model) {
        Ok(simulation) => Some(Simulated {
            prediction: simulation.predict(plan, rows),
            followed: plan.tau(Question::LogRatio).is_some(),
            stand_ins: simulation.stand_ins.len(),
        }),
        Err(error) => {
            common.say(format!(
                "no records can be simulated from this model: {error}"
            ));
            None
        }
    }
}

impl Simulated {
    fn warning(&self) -> Option<String> {
        let ratio = self.prediction.noise_to_gradient;
        let ratio = ratio.filter(|r| self.followed && *r > DROWNED)?;
        Some(format!(
            "on simulated records the noise of a gradient is {ratio:.1} times what the gradient varies by across the posterior; above {DROWNED} the dynamics are mostly noise. Use fewer iterations, leapfrog steps or chains, a smaller `clip_gradient`, a larger epsilon, or more records"
        ))
    }

    fn lines(&self) -> Vec<String> {
        let p = &self.prediction;
        let mut lines = vec![format!(
            "on records simulated from the model ({} draw{} of its prior, {} records each{}; medians):",
            p.points,
            if p.points == 1 { "" } else { "s" },
            p.records,
            match self.stand_ins {
                0 => String::new(),
                n => format!(
                    "; {n} of the unconstrained parameters {} no proper prior, and a standard normal is used instead",
                    if n == 1 { "has" } else { "have" }
                ),
            }
        )];
        if let Some(sd) = p.gradient_sd {
            let noise = match p.noise_to_gradient {
                Some(ratio) if self.followed => format!("; its noise is {ratio:.2} times that"),
                // The dynamics want noise, and batches have some of their own.
                Some(ratio) => {
                    let batches = p.batch_to_gradient.map_or(String::new(), |batch| {
                        format!(", and batches differ from all records by {batch:.2} times that")
                    });
                    format!("; its noise, which stirs the chain, is {ratio:.2} times that{batches}")
                }
                None => String::new(),
            };
            lines.push(format!(
                "  a gradient over all records varies by {sd:.4e} across the posterior{noise}"
            ));
        }
        let clipped = [
            ("gradients", p.clipped_gradients),
            ("log-ratios", p.clipped_log_ratios),
        ];
        for (what, share) in clipped {
            if let Some(share) = share {
                lines.push(format!(
                    "  {:.1}% of the {what} would be clipped",
                    100.0 * share
                ));
            }
        }
        if lines.len() == 1 {
            lines.clear();
        }
        lines
    }
}

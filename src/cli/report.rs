//! `dpm report`: a run as one page.

use std::path::PathBuf;

use super::failure::Failure;
use super::{Common, say_always};
use crate::analysis::{REPORT, name_of, report_of};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One HTML file that needs no network and holds no scripts: what was asked, what is promised,
what the draws say and whether to believe them, and a place to sign. It is made from released
draws and public settings, so that it costs no privacy.

Example: dpm report adult_income-run -o adult_income.html")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// Where to write [default: RUN/report.html]
    #[arg(long = "out", short, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let name = name_of(&arguments.run);
    let report = report_of(&arguments.run, name).map_err(Failure::input)?;
    let place = match &arguments.out {
        Some(out) => out.clone(),
        None => arguments.run.join(REPORT),
    };
    std::fs::write(&place, report.to_html()).map_err(|e| {
        Failure::run(format!(
            "cannot write the report `{}`: {e}; choose another place with --out",
            place.display()
        ))
    })?;
    if report.privacy["private"] != serde_json::Value::Bool(true) {
        say_always("NOT PRIVATE: the report shows draws of a run without privacy");
    }
    common.say(format!("written to {}", place.display()));
    Ok(())
}

//! `dpm man`: manual pages, one for each command.

use std::path::PathBuf;

use clap::CommandFactory;

use super::failure::Failure;
use super::{Cli, Common};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Writes dpm.1, dpm-sample.1 and so on; pages of those names that are there are replaced.

Example: dpm man ~/.local/share/man/man1")]
pub(super) struct Arguments {
    /// Where to write them; created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let place = &arguments.directory;
    let fail = |e| {
        Failure::run(format!(
            "cannot write manual pages to `{}`: {e}; choose another place",
            place.display()
        ))
    };
    std::fs::create_dir_all(place).map_err(fail)?;
    clap_mangen::generate_to(Cli::command(), place).map_err(fail)?;
    common.say(format!("manual pages written to {}", place.display()));
    Ok(())
}

//! `dpm completions`: what a shell needs to complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use super::failure::Failure;
use super::{Cli, print};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dpm completions bash > ~/.local/share/bash-completion/completions/dpm
  dpm completions zsh > ~/.zfunc/_dpm
  dpm completions fish > ~/.config/fish/completions/dpm.fish
  dpm completions powershell >> $PROFILE")]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "dpm", &mut script);
    print(&String::from_utf8_lossy(&script))
}

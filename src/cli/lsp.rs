//! `dpm lsp`: the language server that an editor starts.

use super::failure::Failure;
use crate::lsp::{End, serve};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm lsp --stdio\n\nAn editor starts this and talks to it over standard input and output (docs/editors.md): errors and warnings as they are typed, what a name is and whether it is private, completion, definitions, renaming, form, and the derived sensitivity of each statement of the likelihood. It reads models and MODEL.constants.json, and no data."
)]
pub(super) struct Arguments {
    /// Talk over standard input and output (always the case; editors pass this by convention)
    #[arg(long)]
    stdio: bool,
}

pub(super) fn run(_: &Arguments) -> Result<(), Failure> {
    match serve() {
        Ok(End::Orderly) => Ok(()),
        Ok(End::Abrupt) => Err(Failure::run("the editor left without `shutdown`")),
        Err(e) => Err(Failure::run(format!("cannot talk to the editor: {e}"))),
    }
}

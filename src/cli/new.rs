//! `dpm new`: a model from a formula and a codebook.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::failure::Failure;
use super::model_file::codebook;
use super::{Common, print};
use crate::formula::{FAMILIES, Family, program};
use crate::syntax::render;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: dpm new --formula 'y ~ x + z + (1 | site)' --family poisson --metadata codebook.yaml > model.dpm

The codebook is a YAML (or JSON) file of what is publicly known of the columns:

    columns:
      y: {type: int, lower: 0, upper: 50, description: visits in a year}
      x: {type: float, lower: 0, upper: 400, unit: metres}
      z: {type: string, levels: [low, medium, high]}
      site: {type: int, lower: 1, upper: 12}

Bounds and levels are what is possible, not what occurs in the data. The program has priors on
columns standardised by these bounds; it is for you to read and edit. docs/new.md has the formulas
and the priors.")]
pub(super) struct Arguments {
    /// The model as an R formula, with the extensions of brms
    #[arg(long, value_name = "FORMULA")]
    formula: String,
    /// The distribution of the outcome
    #[arg(long, value_name = "FAMILY", ignore_case = true, value_parser = families())]
    family: Family,
    /// The codebook: types, bounds and levels of the columns
    #[arg(long, value_name = "FILE.yaml")]
    metadata: PathBuf,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE.dpm")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    overwrite: bool,
}

fn families() -> impl TypedValueParser<Value = Family> {
    let values = FAMILIES.iter().map(|listed| {
        let value = PossibleValue::new(listed.name).aliases(listed.aliases);
        value.help(listed.summary)
    });
    PossibleValuesParser::new(values).try_map(|word| {
        let word = word.to_lowercase();
        let found = FAMILIES
            .iter()
            .find(|listed| listed.name == word || listed.aliases.contains(&word.as_str()));
        found.map(|listed| listed.family).ok_or("no family")
    })
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let codebook = codebook(&arguments.metadata, common)?;
    let formula = &arguments.formula;
    let written = program(formula, arguments.family, &codebook).map_err(|wrong| {
        Failure::diagnostics(render(&wrong, formula, "formula", common.color()))
    })?;
    match &arguments.out {
        None => print(&written.program)?,
        Some(out) => {
            write(out, &written.program, arguments.overwrite).map_err(|e| {
                let why = match e.kind() {
                    ErrorKind::AlreadyExists => {
                        "it exists. Choose another place with --out, or give --overwrite to replace it"
                            .to_owned()
                    }
                    _ => format!("{e}. Choose another place with --out"),
                };
                Failure::run(format!("cannot write the model `{}`: {why}", out.display()))
            })?;
            common.say(format!("written to {}", out.display()));
        }
    }
    for note in &written.notes {
        common.say(format!("note: {note}"));
    }
    Ok(())
}

fn write(path: &Path, text: &str, overwrite: bool) -> std::io::Result<()> {
    let mut file = if overwrite {
        File::create(path)?
    } else {
        File::create_new(path)?
    };
    file.write_all(text.as_bytes())
}

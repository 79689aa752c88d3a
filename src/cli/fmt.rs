//! `dpm fmt`: models in the one form that all have.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::{Common, print};
use crate::model::source_of;
use crate::syntax::{Diagnostic, format, not_a_program, render};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm fmt models/*.dpm\n\nA file that is in form already is not touched; a file with errors is left as it is. `-` reads a model from standard input and writes it to standard output."
)]
pub(super) struct Arguments {
    /// The models; `-` for standard input
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// Change nothing: list the models that would change, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let mut changed = Vec::new();
    let mut failures = Vec::new();
    for path in &arguments.models {
        match one(path, arguments.check, common) {
            Ok(true) => changed.push(path),
            Ok(false) => {}
            Err(failure) => failures.push(failure),
        }
    }
    if arguments.check {
        let names = changed.iter().map(|path| format!("{}\n", path.display()));
        print(&names.collect::<String>())?;
    }
    if let Some(failure) = Failure::all(failures, common.color()) {
        return Err(failure);
    }
    if arguments.check && !changed.is_empty() {
        return Err(Failure::run(format!(
            "{} of {} would change; `dpm fmt` without `--check` writes them",
            changed.len(),
            match arguments.models.len() {
                1 => "1 model".to_owned(),
                count => format!("{count} models"),
            }
        )));
    }
    Ok(())
}

/// Whether the model was not in form.
fn one(path: &Path, check: bool, common: &Common) -> Result<bool, Failure> {
    let is_input = path.as_os_str() == "-";
    let name = if is_input {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    };
    let source = if is_input {
        std::io::read_to_string(std::io::stdin()).map_err(|e| {
            Failure::input(format!(
                "cannot read the model `{name}`: {e}. Expected the text of a dpm program"
            ))
        })?
    } else {
        source_of(path).map_err(Failure::input)?.0
    };
    let wrong = |diagnostics: &[Diagnostic], source: &str| {
        Failure::diagnostics(render(diagnostics, source, &name, common.color()))
    };
    if let Some(refusal) = not_a_program(&source) {
        return Err(wrong(&[refusal], ""));
    }
    let formatted = format(&source).map_err(|diagnostics| wrong(&diagnostics, &source))?;
    let changes = formatted != source;
    if check {
        return Ok(changes);
    }
    if is_input {
        print(&formatted)?;
    } else if changes {
        replace(path, &formatted)
            .map_err(|e| Failure::run(format!("cannot write the model `{name}`: {e}")))?;
        common.say(format!("formatted {name}"));
    }
    Ok(changes)
}

/// Puts the text in place of the file at once, so that no crash leaves half a
/// model behind. A link goes on pointing at its file, and permissions stay.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file()
        .set_permissions(std::fs::metadata(&path)?.permissions())?;
    file.persist(&path).map_err(|e| e.error)?;
    Ok(())
}

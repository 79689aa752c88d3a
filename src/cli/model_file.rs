//! A model and its constants from files.

use std::path::{Path, PathBuf};

use super::Common;
use super::failure::Failure;
use crate::check::{Checked, examine};
use crate::formula::Codebook;
use crate::model::{BindError, Constants, Model, source_of};
use crate::syntax::{Diagnostic, render};

/// The help of `--constants`.
pub(super) const CONSTANTS: &str = "Public constants [default: MODEL.constants.json, if it exists]";

/// The help of `--metadata` where records are made up.
pub(super) const METADATA: &str = "Codebook, as for `dpm new`, with public guesses of how covariates are distributed (docs/workflow.md) [default: uniform between their bounds]";

/// The help of `--public-sample` where records are made up.
pub(super) const PUBLIC_SAMPLE: &str =
    "Take covariates from the rows of this public table, not from between their bounds";

/// Reads a codebook.
pub(super) fn codebook(path: &Path, common: &Common) -> Result<Codebook, Failure> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::input(format!(
            "cannot read the codebook `{place}`: {e}. Expected a YAML file with `columns:`"
        ))
    })?;
    Codebook::read(&text)
        .map_err(|wrong| Failure::diagnostics(render(&[wrong], &text, &place, common.color())))
}

/// A program that passed the checker.
pub(super) struct ModelFile {
    pub path: PathBuf,
    pub source: String,
    pub checked: Checked,
    pub warnings: Vec<Diagnostic>,
}

/// A program, right or wrong, and everything that is said of it.
pub(super) struct Examined {
    pub path: PathBuf,
    /// Empty where the file is no program: it may be data, and nothing of it is shown.
    pub source: String,
    pub diagnostics: Vec<Diagnostic>,
    /// `None` when there is an error among the diagnostics.
    checked: Option<Checked>,
}

impl Examined {
    pub fn read(path: &Path) -> Result<Examined, Failure> {
        let (source, _) = source_of(path).map_err(Failure::input)?;
        Ok(Examined::of(path, source))
    }

    /// The program of a file, as it is given here.
    pub fn of(path: &Path, source: String) -> Examined {
        let examined = examine(&source);
        Examined {
            path: path.to_path_buf(),
            source: if examined.is_foreign {
                String::new()
            } else {
                source
            },
            diagnostics: examined.diagnostics,
            checked: examined.checked,
        }
    }

    pub fn is_right(&self) -> bool {
        self.checked.is_some()
    }

    /// The program, if it is right; else a failure that shows what is wrong.
    pub fn model_file(self, common: &Common) -> Result<ModelFile, Failure> {
        let Some(checked) = self.checked else {
            let name = self.path.display().to_string();
            let rendered = render(&self.diagnostics, &self.source, &name, common.color());
            return Err(Failure::diagnostics(if rendered.is_empty() {
                format!("error: `{name}` is not a dpm program")
            } else {
                rendered
            }));
        };
        Ok(ModelFile {
            path: self.path,
            source: self.source,
            checked,
            warnings: self.diagnostics,
        })
    }
}

impl ModelFile {
    /// Reads, parses and checks; all errors of the file are in the failure.
    pub fn read(path: &Path, common: &Common) -> Result<ModelFile, Failure> {
        Examined::read(path)?.model_file(common)
    }

    /// Shows the warnings of the checker.
    pub fn show_warnings(&self, common: &Common) {
        if !self.warnings.is_empty() {
            common.say(self.render(&self.warnings, common).trim_end());
        }
    }

    fn render(&self, diagnostics: &[Diagnostic], common: &Common) -> String {
        render(
            diagnostics,
            &self.source,
            &self.path.display().to_string(),
            common.color(),
        )
    }

    /// As [`ModelFile::bind`], or nothing where the constants are not there: sizes are known only with
    /// them; types and stages without.
    pub fn bind_if_given(
        &self,
        given: Option<&Path>,
        common: &Common,
    ) -> Result<Option<Model>, Failure> {
        let unbound = !self.checked.constants.is_empty() && self.constants_path(given).is_none();
        (!unbound).then(|| self.bind(given, common)).transpose()
    }

    /// Binds the constants: those of `given`, else `MODEL.constants.json` where
    /// it exists, else none. Shows what the program prints.
    pub fn bind(&self, given: Option<&Path>, common: &Common) -> Result<Model, Failure> {
        let constants = self.constants(given)?;
        let model =
            Model::bind(&self.checked, &constants).map_err(|e| self.bind_failure(&e, common))?;
        for line in &model.printed {
            common.say(line);
        }
        if !model.extra_constants.is_empty() {
            // A file without one that is declared may not be a file of constants.
            common.say(if self.checked.constants.is_empty() {
                "note: the model declares no constants, and those given are ignored".into()
            } else {
                format!(
                    "note: the model does not declare these constants, which are ignored: {}",
                    model.extra_constants.join(", ")
                )
            });
        }
        Ok(model.from(&self.source, &self.path))
    }

    /// The same with the guesses of covariates in a codebook, if one is given.
    pub fn bind_guessed(
        &self,
        constants: Option<&Path>,
        metadata: Option<&Path>,
        common: &Common,
    ) -> Result<Model, Failure> {
        let model = self.bind(constants, common)?;
        match metadata {
            None => Ok(model),
            Some(path) => {
                let guessed = model.with_codebook(&codebook(path, common)?);
                guessed.map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))
            }
        }
    }

    /// A program and its constants do not fit together.
    pub fn bind_failure(&self, error: &BindError, common: &Common) -> Failure {
        Failure::diagnostics(self.render(&[error.diagnostic()], common))
    }

    /// The file of constants that counts, if there is one.
    pub fn constants_path(&self, given: Option<&Path>) -> Option<PathBuf> {
        let beside = Constants::beside(&self.path);
        match given {
            Some(path) => Some(path.to_path_buf()),
            None => beside.exists().then_some(beside),
        }
    }

    /// The text of that file; `None` where there is no file.
    pub fn constants_text(&self, given: Option<&Path>) -> Result<Option<String>, Failure> {
        let Some(path) = self.constants_path(given) else {
            return Ok(None);
        };
        std::fs::read_to_string(&path).map(Some).map_err(|e| {
            Failure::input(format!(
                "cannot read the constants `{}`: {e}. Expected a JSON object, for example {{\"prior_scale\": 2.5}}",
                path.display()
            ))
        })
    }

    /// The constants of that file; none where there is no file.
    pub fn constants(&self, given: Option<&Path>) -> Result<Constants, Failure> {
        let Some(text) = self.constants_text(given)? else {
            return Ok(Constants::none());
        };
        Constants::from_json(&text).map_err(|e| {
            let path = self.constants_path(given).unwrap_or_default();
            Failure::input(format!("the constants `{}`: {e}", path.display()))
        })
    }

    pub fn declares_constant(&self, name: &str) -> bool {
        let declared = self.checked.constants.iter();
        declared
            .into_iter()
            .any(|&id| self.checked.variable(id).name == name)
    }

    /// The file's name without its ending, for default names.
    pub fn stem(&self) -> String {
        model_name(&self.path)
    }
}

/// The name of a model's file without its ending.
pub(super) fn model_name(path: &Path) -> String {
    path.file_stem()
        .map_or_else(|| "model".into(), |s| s.to_string_lossy().into_owned())
}

//! Errors as a user sees them: a message, and an exit code.

use std::fmt::Display;
use std::process::ExitCode;

use super::words::{how_to_resume, in_flags, in_flags_of_terms};
use crate::accounting::{AccountError, LedgerError};
use crate::analysis::{Error, SaveError};
use crate::output::{RunDirectoryError, UnfinishedError};
use crate::sampler::SampleError;

/// Why a command stopped.
#[derive(Debug)]
pub(super) struct Failure {
    code: u8,
    message: String,
    /// Diagnostics come rendered; other messages get an `error:` in front.
    rendered: bool,
}

impl Failure {
    /// A run that failed: exit code 1.
    pub fn run(message: impl Display) -> Self {
        Failure::new(1, message)
    }

    /// Wrong usage or bad input: exit code 2.
    pub fn input(message: impl Display) -> Self {
        Failure::new(2, message)
    }

    /// A budget refuses the run: exit code 3.
    /// Events, relations or units that do not go together, in the program's words.
    pub fn accounting(error: impl Display) -> Self {
        Failure::input(in_flags_of_terms(&error.to_string()))
    }

    pub fn budget(message: impl Display) -> Self {
        Failure::new(3, message)
    }

    /// The user stopped it: exit code 130. Nothing is wrong, so no `error:` stands in front.
    pub fn interrupted(message: impl Display) -> Self {
        Failure {
            rendered: true,
            ..Failure::new(super::interrupt::EXIT_CODE, message)
        }
    }

    /// The same failure with a sentence more.
    pub fn and(mut self, more: impl Display) -> Self {
        self.message = format!("{}. {more}", self.message.trim_end().trim_end_matches('.'));
        self
    }

    /// The same failure with a sentence more, where there is one.
    pub fn and_maybe(self, more: Option<String>) -> Self {
        match more {
            Some(more) => self.and(more),
            None => self,
        }
    }

    /// Bad input whose message is a rendered diagnostic.
    pub fn diagnostics(rendered: String) -> Self {
        Failure {
            code: 2,
            message: rendered,
            rendered: true,
        }
    }

    /// The failures of several inputs as one, with the worst exit code; `None`
    /// when there are none.
    pub fn all(failures: Vec<Failure>, color: bool) -> Option<Failure> {
        let code = failures.iter().map(|failure| failure.code).max()?;
        let messages: Vec<String> = failures.iter().map(|f| f.text(color)).collect();
        Some(Failure {
            code,
            message: messages.join("\n"),
            rendered: true,
        })
    }

    fn new(code: u8, message: impl Display) -> Self {
        Failure {
            code,
            message: message.to_string(),
            rendered: false,
        }
    }

    /// Without `error:`.
    pub fn message(&self) -> &str {
        self.message.trim_end()
    }

    pub fn print(&self, color: bool) {
        super::say_always(self.text(color));
    }

    fn text(&self, color: bool) -> String {
        let message = self.message.trim_end();
        match (self.rendered, color) {
            (true, _) => message.to_owned(),
            (false, true) => format!("\x1b[1;31merror\x1b[0m: {message}"),
            (false, false) => format!("error: {message}"),
        }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// The library's errors in the program's words.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Cut { error, place } => Failure::from(*error).and(format!(
                "What was released before is kept and stays charged. {}",
                how_to_resume(&place)
            )),
            Error::Session(error) => error.into(),
            Error::Settings(message) => Failure::input(in_flags(&message)),
            Error::Plan(error) if error.is_refusal() => {
                Failure::budget(in_flags(&error.to_string()))
            }
            Error::Plan(error) => Failure::input(in_flags(&error.to_string())),
            Error::Sample(error @ (SampleError::BadInitialPoint | SampleError::Plan(_))) => {
                Failure::input(in_flags(&error.to_string()))
            }
            Error::Sample(error) => Failure::run(in_flags(&error.to_string())),
            Error::Save(SaveError::Directory(error))
            | Error::Unfinished(UnfinishedError::Directory(error)) => {
                let advice = place_advice(&error);
                Failure::run(error).and_maybe(advice)
            }
            Error::Unfinished(UnfinishedError::Read { .. })
            | Error::Save(_)
            | Error::Randomness(_) => Failure::run(error),
            error => Failure::input(error),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Failure {
        match error {
            LedgerError::Refused(_) => Failure::budget(error),
            // A ledger cannot change its accountant.
            LedgerError::Account(AccountError::NoBound { .. }) => Failure::input(format!(
                "{error}. A ledger keeps the accountant it was made with: one for runs on batches is made with `dpm ledger create LEDGER --accountant rdp`"
            )),
            LedgerError::Relation { .. }
            | LedgerError::Unit { .. }
            | LedgerError::Account(_)
            | LedgerError::Event(_) => Failure::accounting(error),
            LedgerError::Terms(_)
            | LedgerError::NotFound(_)
            | LedgerError::Exists(_)
            | LedgerError::HeadWithoutLedger { .. } => Failure::input(error),
            _ => Failure::run(error),
        }
    }
}

/// Advice for a directory that cannot be written.
pub(super) fn place_advice(error: &RunDirectoryError) -> Option<String> {
    Some(match error {
        RunDirectoryError::NotARun(_) => return None,
        RunDirectoryError::Exists(_) => {
            "Choose another place with --out, or give --overwrite to replace it".to_owned()
        }
        RunDirectoryError::Unfinished(place) => format!(
            "{}, choose another place with --out, or give --overwrite to discard it",
            how_to_resume(place)
        ),
        RunDirectoryError::UnderWay(_) | RunDirectoryError::Write { .. } => {
            "Choose another place with --out".to_owned()
        }
    })
}

//! A list of releases on the command line: `--event`, `--events`, `--relation`.

use std::io::Read;

use super::Common;
use super::failure::Failure;
use super::run_settings::RelationChoice;
use crate::accounting::{Guarantee, Relation, Unscaled};

/// The events of a command line.
#[derive(Debug, clap::Args)]
pub(super) struct Releases {
    /// A release, e.g. gaussian:sensitivity=1,sigma=2,count=100 (or clip=... in place of sensitivity), poisson:rate=0.01,clip=1,sigma=1 or without-replacement:rate=0.01,clip=1,sigma=1
    #[arg(long = "event", value_name = "EVENT", required_unless_present = "file")]
    events: Vec<String>,
    /// A file of such releases, one per line, or - for standard input; empty lines and comments (#) are ignored
    #[arg(long = "events", value_name = "FILE")]
    file: Option<String>,
    /// How neighbouring data sets differ
    #[arg(long, value_enum)]
    relation: RelationChoice,
}

impl Releases {
    pub(super) fn relation(&self) -> Relation {
        self.relation.into()
    }

    /// Each event as `read` makes it of its text.
    pub(super) fn parse<T, E: std::fmt::Display>(
        &self,
        read: impl Fn(&str, Relation) -> Result<T, E>,
    ) -> Result<Vec<T>, Failure> {
        let file = match &self.file {
            Some(path) => text_of(path)?,
            None => String::new(),
        };
        let lines = file
            .lines()
            .map(|line| line.split_once('#').map_or(line, |(text, _)| text).trim())
            .zip(1..)
            .filter(|(line, _)| !line.is_empty());
        let given = self.events.iter().map(|event| (event.as_str(), None));
        let texts = given.chain(lines.map(|(text, number)| (text, Some(number))));
        let event = |(text, line): (&str, Option<u64>)| {
            read(text, self.relation()).map_err(|e| match line {
                // The file may be another than was meant, and private.
                Some(line) if !Unscaled::is_of_some_kind(text) => Failure::input(format!(
                    "line {line} is not an event, and is not shown: expected one like `gaussian:sensitivity=1,sigma=2,count=100`"
                )),
                _ => Failure::accounting(format!("`{text}`: {e}")),
            })
        };
        texts.map(event).collect()
    }
}

fn text_of(path: &str) -> Result<String, Failure> {
    let read = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|e| Failure::input(format!("cannot read the events in `{path}`: {e}")))
}

/// A bound that is not proved says so to people too.
pub(super) fn say_what_is_not_proved(guarantee: &Guarantee, common: &Common) {
    if let Some(reason) = guarantee.not_proved {
        common.say(format!("warning: {reason}"));
    }
}

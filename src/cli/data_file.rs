//! The private table from files: the flags of every command that reads data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::failure::Failure;
use super::headings;
use super::words::in_flags_of_data;
use crate::model::RecordColumn;
use crate::privacy::ranks::Share;
use crate::privacy::{
    LoadError, NotPrivate, OnBadRows, Portion, Reading, Rows, Spilling, Split, Survey, read_files,
    survey_files,
};
use crate::syntax::did_you_mean;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BadRows {
    /// Stop, with the line or row and the column
    Error,
    /// Treat the row as missing, silently
    Skip,
}

impl BadRows {
    pub fn name(self) -> &'static str {
        match self {
            BadRows::Error => "error",
            BadRows::Skip => "skip",
        }
    }
}

impl From<BadRows> for OnBadRows {
    fn from(choice: BadRows) -> OnBadRows {
        match choice {
            BadRows::Error => OnBadRows::Error,
            BadRows::Skip => OnBadRows::Skip,
        }
    }
}

/// The help of every argument for data.
pub(super) const DATA: &str = "The data: CSV with a header line (also gzip or zstd), Parquet or Arrow IPC; several files, a folder, a quoted pattern, or - for standard input";

/// Which of the records are loaded: all, unless something is given.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loaded<'a> {
    /// Of several ranks, this one's share of the files.
    pub share: Option<Share>,
    pub portion: Option<&'a Portion>,
}

/// How to read the data.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub(super) struct DataSettings {
    /// Names of columns in the data: x=a,b,c (a matrix column by column; a name with a comma in quotes)
    #[arg(long, value_name = "NAME=HEADERS", help_heading = headings::DATA, hide_short_help = true)]
    pub columns: Vec<String>,
    /// Protect all rows that share this column's value [default: each row]
    #[arg(long, value_name = "COLUMN", help_heading = headings::BUDGET)]
    pub unit: Option<String>,
    /// Rows that cannot be read: stop, or treat them as missing
    #[arg(
        long,
        value_enum,
        default_value_t = BadRows::Error,
        help_heading = headings::DATA,
        hide_short_help = true
    )]
    pub on_bad_rows: BadRows,
    /// Allow line breaks in quoted CSV fields: a record, which is what is protected, may then span several lines
    #[arg(long, help_heading = headings::DATA, hide_short_help = true)]
    pub multiline_records: bool,
    /// Memory for the data, such as 500MiB or 16GiB; the rest goes to a temporary file that is deleted on exit [default: 2GiB, or half of the free memory if that is less]
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = headings::DATA, hide_short_help = true)]
    pub max_memory: Option<u64>,
    /// Folder for the temporary file [default: $TMPDIR, or /var/tmp]
    #[arg(long, value_name = "DIR", help_heading = headings::DATA, hide_short_help = true)]
    pub spill_dir: Option<PathBuf>,
    /// Refuse data that would need a temporary file
    #[arg(long, conflicts_with = "spill_dir", help_heading = headings::DATA, hide_short_help = true)]
    pub no_spill: bool,
}

/// The records that a run leaves out.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HoldOut {
    /// Hold out this share of records (or units) for `dpm score`, e.g. 0.2
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "SHARE",
        help_heading = headings::DATA
    )]
    hold_out: Option<f64>,
    /// Name of the split: different names hold out different records, and runs to be compared need the same name
    #[arg(
        long,
        value_name = "NAME",
        default_value = "hold-out",
        requires = "hold_out",
        help_heading = headings::DATA,
        hide_short_help = true
    )]
    split: String,
}

impl HoldOut {
    /// The division of the table, if records are held out.
    pub fn split(&self) -> Result<Option<Split>, Failure> {
        let split = self.hold_out.map(|share| Split::new(&self.split, share));
        let wrong = |error| Failure::input(format!("--hold-out: {error}"));
        split.transpose().map_err(wrong)
    }
}

impl DataSettings {
    fn spilling(&self) -> Spilling {
        let usual = Spilling::usual();
        Spilling {
            memory: self.max_memory.unwrap_or(usual.memory),
            folder: match (&self.spill_dir, self.no_spill) {
                (_, true) => None,
                (Some(folder), false) => Some(folder.clone()),
                (None, false) => usual.folder,
            },
        }
    }
}

/// `16GiB`, `16G` or `17179869184`.
fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[number.len()..].to_ascii_lowercase();
    let power = ["", "k", "m", "g", "t"].iter().position(|prefix| {
        let rest = unit.strip_prefix(prefix);
        rest.is_some_and(|rest| {
            matches!(rest, "" | "b" | "ib") && (!prefix.is_empty() || rest != "ib")
        })
    });
    let number: Option<f64> = number.trim().parse().ok();
    match (number, power) {
        (Some(number), Some(power)) if number >= 0.0 && number.is_finite() => {
            Ok((number * 1024f64.powi(power as i32)) as u64)
        }
        _ => Err("expected a size in bytes or with a unit, such as 500MiB or 16GiB".to_owned()),
    }
}

impl DataSettings {
    /// The rows, those of a unit together where `--unit` is given.
    pub fn load(
        &self,
        paths: &[PathBuf],
        columns: &[RecordColumn],
        part: Loaded,
    ) -> Result<Rows, Failure> {
        let renames = renames(&self.columns, columns)?;
        let spilling = self.spilling();
        let reading = Reading {
            spilling: Some(&spilling),
            share: part.share,
            portion: part.portion,
            ..self.reading(&renames)
        };
        read_files(paths, columns, &reading).map_err(unreadable)
    }

    /// All departures from the declarations, exactly: NOT PRIVATE.
    pub fn survey(
        &self,
        paths: &[PathBuf],
        columns: &[RecordColumn],
        most: usize,
    ) -> Result<Survey, Failure> {
        let renames = renames(&self.columns, columns)?;
        let reading = self.reading(&renames);
        survey_files(paths, columns, &reading, most, NotPrivate::acknowledged()).map_err(unreadable)
    }

    fn reading<'a>(&'a self, renames: &'a [(String, String)]) -> Reading<'a> {
        Reading {
            renames,
            on_bad_rows: self.on_bad_rows.into(),
            unit: self.unit(),
            multiline: self.multiline_records,
            spilling: None,
            share: None,
            portion: None,
        }
    }

    /// Whether any of the flags was used.
    pub fn is_given(&self) -> bool {
        !self.columns.is_empty()
            || self.unit.is_some()
            || self.on_bad_rows == BadRows::Skip
            || self.multiline_records
    }

    /// The column that tells units apart.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref().map(str::trim)
    }
}

/// Data that cannot be read, in the program's words.
pub(super) fn unreadable(error: LoadError) -> Failure {
    Failure::input(in_flags_of_data(&error.to_string()))
}

/// The data's path for a file of JSON, or a list of several.
pub(super) fn names(paths: &[PathBuf]) -> Value {
    let name = |path: &PathBuf| path.display().to_string();
    match paths {
        [path] => json!(name(path)),
        paths => paths.iter().map(name).collect(),
    }
}

/// The data's path for files that are published. Of several not even the number is said: into which
/// files a table is divided may follow from its rows, as where each region has its own.
pub(super) fn published_name(paths: &[PathBuf]) -> String {
    match paths {
        [path] => path.display().to_string(),
        _ => "several files".to_owned(),
    }
}

/// Turns `--columns x=a,b,c` into pairs of element and header.
fn renames(
    arguments: &[String],
    columns: &[RecordColumn],
) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    for argument in arguments {
        let Some((variable, headers)) = argument.split_once('=') else {
            return Err(Failure::input(format!(
                "--columns wants `name=header` or `name=header1,header2,...`, found `{argument}`"
            )));
        };
        let variable = variable.trim();
        let elements: Vec<&str> = columns
            .iter()
            .filter(|c| c.variable == variable || c.name == variable)
            .map(|c| c.name.as_str())
            .collect();
        let headers = listed(headers);
        if elements.is_empty() {
            let hint = did_you_mean(variable, columns.iter().map(|c| &c.variable))
                .map(|name| format!("; did you mean `{name}`?"))
                .unwrap_or_default();
            return Err(Failure::input(format!(
                "--columns names `{variable}`, but the model's `record` declares no such column{hint}"
            )));
        }
        if elements.len() != headers.len() {
            return Err(Failure::input(format!(
                "--columns gives {} column{} for `{variable}`, which has {} element{}{}",
                headers.len(),
                if headers.len() == 1 { "" } else { "s" },
                elements.len(),
                if elements.len() == 1 { "" } else { "s" },
                in_order(&elements),
            )));
        }
        for (element, header) in elements.into_iter().zip(headers) {
            pairs.push((element.to_string(), header));
        }
    }
    Ok(pairs)
}

/// `a,b,c`, where a name with a comma stands in quotes, as in a CSV file.
fn listed(list: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(list.as_bytes());
    match reader.records().next() {
        Some(Ok(record)) => record.iter().map(str::to_string).collect(),
        _ => Vec::new(),
    }
}

/// The elements of a container, in the order in which columns are given for them.
fn in_order(elements: &[&str]) -> String {
    match elements {
        [] | [_] => String::new(),
        [first, second] => format!(", {first} and {second}"),
        [first, second, .., last] => format!(", {first}, {second}, ..., {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1500", Some(1500)),
            ("2k", Some(2048)),
            ("500 MiB", Some(500 << 20)),
            ("1.5gb", Some(3 << 29)),
            ("1T", Some(1 << 40)),
            ("", None),
            ("GiB", None),
            ("-1G", None),
            ("5 apples", None),
            ("1iB", None),
            ("infk", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn names_are_separated_by_commas_outside_of_quotes() {
        for (list, expected) in [
            ("a", &["a"][..]),
            ("a, b ,c", &["a", "b", "c"]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("a,", &["a", ""]),
            ("", &[]),
        ] {
            assert_eq!(listed(list), expected, "{list}");
        }
    }
}

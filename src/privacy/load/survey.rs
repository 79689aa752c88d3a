//! A survey, for the curator, of the values in a data file that would be clamped, missing or bad.

use super::Reading;
use super::error::LoadError;
use super::table::{Owners, Table};
use crate::model::RecordColumn;
use crate::privacy::NotPrivate;
use crate::privacy::rows::{Cell, Domain};
use std::path::Path;

/// Lines of a file, counted from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub count: u64,
    /// The first of them.
    pub lines: Vec<u64>,
}

/// The cells of one column that the model uses.
#[derive(Debug, Clone, Default)]
pub struct ColumnSurvey {
    /// In the model: `dist`, `x.1`.
    pub name: String,
    /// In the file.
    pub header: String,
    /// The values that the declaration allows.
    pub expected: String,
    /// Below the lower bound, and clamped to it.
    pub below: Places,
    /// Above the upper bound, and clamped to it.
    pub above: Places,
    pub missing: Places,
    pub bad: Places,
}

/// The column that identifies the units of privacy.
#[derive(Debug, Clone, Default)]
pub struct UnitSurvey {
    pub header: String,
    pub count: u64,
    /// The number of rows of the largest unit.
    pub most_rows: u64,
    /// Rows without a unit, which are bad.
    pub bad: Places,
}

/// Counts and line numbers of the values that are not as declared, without the values.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    pub records: u64,
    /// Of columns that the model uses, in declaration order.
    pub columns: Vec<ColumnSurvey>,
    pub unit: Option<UnitSurvey>,
    /// Records that span lines by their quotation marks. Unless that is allowed, each of
    /// their lines is a record, and most are bad.
    pub multiline: Places,
    /// Rows whose fields cannot be separated, as their quotation marks are out of place or they are
    /// too long; they are counted nowhere else.
    pub torn: Places,
    /// Rows with another number of fields than the header; they are counted nowhere else.
    pub fields: Places,
    /// Rows that stop the loading, for any reason.
    pub bad_rows: Places,
    /// Rows that are not bad but have a missing value: they add nothing.
    pub missing_rows: Places,
}

/// Surveys a CSV file under the rules of [`super::read_csv`], with at most `most`
/// line numbers of each kind.
///
/// # Privacy
///
/// None: counts and line numbers reveal exact facts about single rows. They are for the curator of
/// the data.
///
/// Errors: as of [`super::read_csv`], but for bad rows.
pub fn survey_csv(
    path: &Path,
    columns: &[RecordColumn],
    reading: &Reading,
    most: usize,
    _: NotPrivate,
) -> Result<Survey, LoadError> {
    let mut table = Table::open(path, columns, reading)?;
    let used: Vec<(usize, Domain)> = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.used)
        .map(|(c, column)| (c, Domain::new(column)))
        .collect();
    let mut survey = Survey {
        columns: used
            .iter()
            .map(|(c, domain)| ColumnSurvey {
                name: columns[*c].name.clone(),
                header: table.header(*c).to_string(),
                expected: domain.to_string(),
                ..ColumnSurvey::default()
            })
            .collect(),
        unit: reading.unit.map(|header| UnitSurvey {
            header: header.trim().to_string(),
            ..UnitSurvey::default()
        }),
        ..Survey::default()
    };
    let mut owners = Owners::default();
    let mut rows_of_unit: Vec<u64> = Vec::new();
    while table.advance()? {
        let line = table.line();
        if table.spans_lines() {
            survey.multiline.add(line, most);
        }
        let owner = table.owner(&mut owners);
        if let Some(Some(number)) = owner {
            rows_of_unit.resize(owners.count(), 0);
            rows_of_unit[number] += 1;
        }
        if !table.is_whole() {
            if table.has_fault() {
                survey.torn.add(line, most)
            } else {
                survey.fields.add(line, most)
            }
            survey.bad_rows.add(line, most);
            continue;
        }
        let (mut bad, mut missing) = (false, false);
        if let (Some(None), Some(unit)) = (owner, &mut survey.unit) {
            bad = true;
            unit.bad.add(line, most);
        }
        for ((c, domain), column) in used.iter().zip(&mut survey.columns) {
            match domain.text(table.cell(*c)) {
                Cell::Value(_) => {}
                Cell::Clamped { above: false, .. } => column.below.add(line, most),
                Cell::Clamped { above: true, .. } => column.above.add(line, most),
                Cell::Missing => {
                    missing = true;
                    column.missing.add(line, most);
                }
                Cell::Bad => {
                    bad = true;
                    column.bad.add(line, most);
                }
            }
        }
        if bad {
            survey.bad_rows.add(line, most);
        } else if missing {
            survey.missing_rows.add(line, most);
        }
    }
    survey.records = table.records();
    if let Some(unit) = &mut survey.unit {
        unit.count = owners.count() as u64;
        unit.most_rows = rows_of_unit.into_iter().max().unwrap_or(0);
    }
    Ok(survey)
}

impl Places {
    fn add(&mut self, line: u64, most: usize) {
        self.count += 1;
        if self.lines.len() < most {
            self.lines.push(line);
        }
    }
}

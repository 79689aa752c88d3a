//! A survey, for the curator, of the values in the data that would be clamped, missing or bad.

use super::error::{Form, LoadError, Origin};
use super::reading::Reading;
use super::source::{Owners, Source};
use crate::model::RecordColumn;
use crate::privacy::NotPrivate;
use crate::privacy::rows::{Cell, Domain};
use std::path::PathBuf;

/// Places of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub count: u64,
    /// The first of them.
    pub first: Vec<Place>,
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of its file, counted from 0, in [`Survey::files`].
    pub file: usize,
    /// The line or row, as [`Survey::form`] has it, counted from 1 in each file.
    pub position: u64,
}

/// The cells of one column that the model uses.
#[derive(Debug, Clone, Default)]
pub struct ColumnSurvey {
    /// In the model: `dist`, `x.1`.
    pub name: String,
    /// In the data.
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

/// Counts and places of the values that are not as declared, without the values.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    pub files: Vec<Origin>,
    pub form: Form,
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

/// Surveys files under the rules of [`super::read_files`], with at most `most` places of each kind.
///
/// # Privacy
///
/// None: counts and places reveal exact facts about single rows. They are for the curator of
/// the data.
///
/// Errors: as of [`super::read_files`], but for bad rows.
pub fn survey_files(
    paths: &[PathBuf],
    columns: &[RecordColumn],
    reading: &Reading,
    most: usize,
    _: NotPrivate,
) -> Result<Survey, LoadError> {
    let mut source = Source::files(paths, columns, reading)?;
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
                header: source.header(*c).to_string(),
                expected: domain.to_string(),
                ..ColumnSurvey::default()
            })
            .collect(),
        unit: reading.unit.map(|header| UnitSurvey {
            header: header.trim().to_string(),
            ..UnitSurvey::default()
        }),
        form: source.form(),
        ..Survey::default()
    };
    let mut owners = Owners::default();
    let mut rows_of_unit: Vec<u64> = Vec::new();
    while source.advance()? {
        survey.records += 1;
        let (file, position) = (source.number(), source.position());
        let place = Place { file, position };
        if source.spans_lines() {
            survey.multiline.add(place, most);
        }
        let owner = source.owner(&mut owners);
        if let Some(Some(number)) = owner {
            rows_of_unit.resize(owners.count(), 0);
            rows_of_unit[number] += 1;
        }
        if source.expected_form().is_some() {
            if source.has_fault() {
                survey.torn.add(place, most)
            } else {
                survey.fields.add(place, most)
            }
            survey.bad_rows.add(place, most);
            continue;
        }
        let (mut bad, mut missing) = (false, false);
        if let (Some(None), Some(unit)) = (owner, &mut survey.unit) {
            bad = true;
            unit.bad.add(place, most);
        }
        for ((c, domain), column) in used.iter().zip(&mut survey.columns) {
            match source.cell(*c, domain) {
                Cell::Value(_) => {}
                Cell::Clamped { above: false, .. } => column.below.add(place, most),
                Cell::Clamped { above: true, .. } => column.above.add(place, most),
                Cell::Missing => {
                    missing = true;
                    column.missing.add(place, most);
                }
                Cell::Bad => {
                    bad = true;
                    column.bad.add(place, most);
                }
            }
        }
        if bad {
            survey.bad_rows.add(place, most);
        } else if missing {
            survey.missing_rows.add(place, most);
        }
    }
    survey.files = source.into_origins();
    if let Some(unit) = &mut survey.unit {
        unit.count = owners.count() as u64;
        unit.most_rows = rows_of_unit.into_iter().max().unwrap_or(0);
    }
    Ok(survey)
}

impl Places {
    fn add(&mut self, place: Place, most: usize) {
        self.count += 1;
        if self.first.len() < most {
            self.first.push(place);
        }
    }
}

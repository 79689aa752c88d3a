//! The report of a run: one HTML file that needs nothing else.
//!
//! It is made from a run's files, all of which are released or public, so that it costs no
//! privacy and can be read by anyone who may read the run. There are no scripts and no requests; a
//! content security policy in the page says so to the browser.

mod asked;
mod axis;
mod calibration;
mod chains;
mod columns;
mod guarantee;
mod html;
mod intervals;
mod likelihood;
mod page;
mod pairs;
mod plot;
mod posterior;
mod privacy;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub(crate) use calibration::CalibrationPage;

use crate::diagnostics::{Diagnosis, Summary};
use columns::Column;
use guarantee::Guarantee;

/// The material of a report.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the run: that of its directory.
    pub name: String,
    /// The program, if the run has kept it.
    pub model: Option<String>,
    /// The JSON text of its constants, where there are any.
    pub constants: Option<String>,
    /// `config.json` and `privacy.json`.
    pub config: Value,
    pub privacy: Value,
    /// Bracket form, one for each column of the draws.
    pub names: Vec<String>,
    /// Chains × draws × parameters.
    pub draws: Vec<Vec<Vec<f64>>>,
    /// Mean acceptance of each chain; NaN where its sampler has none.
    pub acceptance: Vec<f64>,
    /// `None` without draws.
    pub diagnosis: Option<Diagnosis>,
    pub prior: ReportPrior,
    pub files: Vec<ReportFile>,
}

/// Draws from the model's prior.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportPrior {
    /// For each column of the draws; empty where its prior is flat or was not drawn.
    Drawn(Vec<Vec<f64>>),
    /// The reason why there are none.
    None(String),
}

/// A file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256, in hexadecimal digits.
    pub hash: String,
}

impl Report {
    /// The page.
    pub fn to_html(&self) -> String {
        page::page(&ReportView::of(self))
    }
}

/// The report's material, worked out once for all sections.
struct ReportView<'a> {
    report: &'a Report,
    columns: Vec<Column<'a>>,
    summary: Summary,
    /// The guarantee of the run, if it has one.
    guarantee: Option<Guarantee>,
    private: bool,
    unfinished: bool,
}

impl ReportView<'_> {
    fn of(report: &Report) -> ReportView<'_> {
        let columns: Vec<Column> = report
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| Column {
                name,
                chains: report
                    .draws
                    .iter()
                    .map(|chain| {
                        let value = |draw: &Vec<f64>| draw.get(index).copied();
                        chain.iter().filter_map(value).collect()
                    })
                    .collect(),
            })
            .collect();
        let private = report.privacy["private"] == Value::Bool(true);
        ReportView {
            summary: Summary {
                rows: columns
                    .iter()
                    .map(|c| crate::diagnostics::ParameterSummary::of(c.name, &c.chains))
                    .collect(),
            },
            columns,
            // A run with noise from a seed has events, but no guarantee.
            guarantee: if private {
                Guarantee::of(&report.privacy)
            } else {
                None
            },
            private,
            unfinished: report.privacy["unfinished"] == Value::Bool(true),
            report,
        }
    }

    /// Whether draws are independent ones of a fitted Gaussian, so that there are no chains.
    fn independent(&self) -> bool {
        self.report.config["start"]["gaussian"] == Value::Bool(true)
    }

    /// How the likelihood of the draws was learnt, where it was released.
    fn likelihood(&self) -> Option<&Value> {
        let start = &self.report.config["start"];
        start["information"].is_string().then_some(start)
    }

    fn has_draws(&self) -> bool {
        self.columns
            .iter()
            .any(|column| column.draws().next().is_some())
    }

    /// Draws of each chain.
    fn draws_per_chain(&self) -> usize {
        let lengths = self.report.draws.iter().map(Vec::len);
        lengths.min().unwrap_or(0)
    }

    /// A description of one unit of privacy.
    fn unit(&self) -> String {
        match self.report.privacy["unit_column"].as_str() {
            None => "record".to_owned(),
            Some(column) => format!("{column} (all rows that share its value)"),
        }
    }

    /// Prior draws of a column, if there are any.
    fn prior(&self, index: usize) -> Option<&[f64]> {
        match &self.report.prior {
            ReportPrior::Drawn(draws) => draws
                .get(index)
                .map(Vec::as_slice)
                .filter(|draws| draws.len() >= 20),
            ReportPrior::None(_) => None,
        }
    }
}

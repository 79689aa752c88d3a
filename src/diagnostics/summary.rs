//! The summary of a run: one row of figures per parameter.

use serde::Serialize;

use super::ess::{ess_bulk, ess_tail};
use super::mcse::mcse_mean;
use super::moments::{mad, mean, quantile, sd};
use super::parameter_name::bracket_name;
use super::r_hat::r_hat;

/// Figures for every parameter, in the order of the draws' columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Summary {
    pub rows: Vec<ParameterSummary>,
}

/// Figures for one parameter, in its own units except for the sample sizes (in draws) and R-hat.
/// NaN where undefined; see the module's documentation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterSummary {
    /// In bracket form, `m[2,1]`.
    pub parameter: String,
    pub mean: f64,
    /// Monte Carlo standard error of the mean.
    pub mcse: f64,
    pub sd: f64,
    pub mad: f64,
    pub q5: f64,
    pub q50: f64,
    pub q95: f64,
    pub ess_bulk: f64,
    pub ess_tail: f64,
    pub r_hat: f64,
}

/// Draws that do not have one value for each parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "draw {} of chain {} has {found} values, but there are {expected} parameter names",
    draw + 1,
    chain + 1
)]
pub struct SummaryError {
    /// Which chain, from 0.
    pub chain: usize,
    /// Which draw of it, from 0.
    pub draw: usize,
    pub found: usize,
    pub expected: usize,
}

/// Columns of figures, in the order in which table, CSV and JSON give them.
const COLUMNS: [&str; 10] = [
    "mean", "mcse", "sd", "mad", "q5", "q50", "q95", "ess_bulk", "ess_tail", "r_hat",
];

impl Summary {
    /// The summary of chains × draws × parameters, with a name for each parameter in either
    /// spelling.
    ///
    /// # Errors
    ///
    /// A draw without exactly one value per name.
    pub fn of_draws<C: AsRef<[D]>, D: AsRef<[f64]>>(
        names: &[String],
        chains: &[C],
    ) -> Result<Self, SummaryError> {
        check_widths(names.len(), chains)?;
        let of_parameter = |(column, name): (usize, &String)| {
            let value = |draw: &D| draw.as_ref()[column];
            let of_chain = |chain: &C| chain.as_ref().iter().map(value).collect();
            let draws: Vec<Vec<f64>> = chains.iter().map(of_chain).collect();
            ParameterSummary::of(name, &draws)
        };
        Ok(Self {
            rows: names.iter().enumerate().map(of_parameter).collect(),
        })
    }

    /// A table for people: aligned columns, with the digits that are meaningful given the
    /// posterior's spread and the simulation error. Ends in a newline.
    pub fn to_table(&self) -> String {
        let header = std::iter::once("parameter").chain(COLUMNS);
        let mut lines: Vec<Vec<String>> = vec![header.map(str::to_owned).collect()];
        lines.extend(self.rows.iter().map(ParameterSummary::table_cells));
        let width_of = |column: usize| {
            let widths = lines.iter().filter_map(|line| line.get(column));
            widths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=COLUMNS.len()).map(width_of).collect();
        let mut table = String::new();
        for line in &lines {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                if column == 0 {
                    table.push_str(&format!("{cell:<width$}"));
                } else {
                    table.push_str(&format!("  {cell:>width$}"));
                }
            }
            table.push('\n');
        }
        table
    }

    /// CSV with a header line, every figure with all its digits, NaN as `NaN`.
    pub fn to_csv(&self) -> String {
        let mut csv = format!("parameter,{}\n", COLUMNS.join(","));
        for row in &self.rows {
            csv.push_str(&quoted(&row.parameter));
            for figure in row.figures() {
                csv.push_str(&format!(",{figure:?}"));
            }
            csv.push('\n');
        }
        csv
    }

    /// JSON, a list of objects such as `{"parameter": "beta[1]", "mean": 0.5, ..}`, NaN and
    /// infinity as null.
    pub fn to_json(&self) -> serde_json::Value {
        let object = |row: &ParameterSummary| {
            let mut object = serde_json::Map::new();
            object.insert("parameter".into(), row.parameter.clone().into());
            for (column, figure) in COLUMNS.into_iter().zip(row.figures()) {
                object.insert(column.into(), figure.into());
            }
            serde_json::Value::Object(object)
        };
        self.rows.iter().map(object).collect()
    }
}

impl ParameterSummary {
    /// The row of one parameter's draws, chains × draws; the name in either spelling.
    pub fn of<C: AsRef<[f64]>>(name: &str, chains: &[C]) -> Self {
        Self {
            parameter: bracket_name(name),
            mean: mean(chains),
            mcse: mcse_mean(chains),
            sd: sd(chains),
            mad: mad(chains),
            q5: quantile(chains, 0.05),
            q50: quantile(chains, 0.5),
            q95: quantile(chains, 0.95),
            ess_bulk: ess_bulk(chains),
            ess_tail: ess_tail(chains),
            r_hat: r_hat(chains),
        }
    }

    /// In the order of [`COLUMNS`].
    fn figures(&self) -> [f64; COLUMNS.len()] {
        [
            self.mean,
            self.mcse,
            self.sd,
            self.mad,
            self.q5,
            self.q50,
            self.q95,
            self.ess_bulk,
            self.ess_tail,
            self.r_hat,
        ]
    }

    /// Name and figures with their meaningful digits, in the order of the columns.
    pub fn table_cells(&self) -> Vec<String> {
        // Three digits of the spread are enough for a location; mad is the spread of the bulk,
        // which is robust against a few outliers.
        let spread = [self.mad, self.sd]
            .into_iter()
            .find(|&s| s > 0.0)
            .unwrap_or(self.mean);
        let location = |x: f64| fixed(x, decimals(spread, 3));
        vec![
            self.parameter.clone(),
            location(self.mean),
            fixed(self.mcse, decimals(self.mcse, 2)),
            location(self.sd),
            location(self.mad),
            location(self.q5),
            location(self.q50),
            location(self.q95),
            fixed(self.ess_bulk, 0),
            fixed(self.ess_tail, 0),
            fixed(self.r_hat, 3),
        ]
    }
}

fn check_widths<C: AsRef<[D]>, D: AsRef<[f64]>>(
    expected: usize,
    chains: &[C],
) -> Result<(), SummaryError> {
    for (chain, draws) in chains.iter().enumerate() {
        for (draw, values) in draws.as_ref().iter().enumerate() {
            let found = values.as_ref().len();
            if found != expected {
                return Err(SummaryError {
                    chain,
                    draw,
                    found,
                    expected,
                });
            }
        }
    }
    Ok(())
}

/// Decimals that show `significant` digits of `x`.
fn decimals(x: f64, significant: i32) -> i32 {
    if x == 0.0 || !x.is_finite() {
        return significant;
    }
    significant - 1 - x.abs().log10().floor() as i32
}

/// `x` with this many decimals, or in powers of ten where that would be a long row of zeros.
fn fixed(x: f64, decimals: i32) -> String {
    const MOST_DECIMALS: i32 = 7;
    const LARGEST: f64 = 1e9;
    if !x.is_finite() {
        return if x.is_nan() {
            "NaN".to_owned()
        } else {
            x.to_string()
        };
    }
    if decimals > MOST_DECIMALS || x.abs() >= LARGEST {
        return format!("{x:.2e}");
    }
    let places = usize::try_from(decimals).unwrap_or(0);
    let text = format!("{x:.places$}");
    match text.strip_prefix('-') {
        Some(zero) if !zero.contains(|c| ('1'..='9').contains(&c)) => zero.to_owned(),
        _ => text,
    }
}

/// A CSV field, in quotation marks if it contains a comma or a quotation mark.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::{Fixture, fixtures};
    use super::*;

    fn two_parameters() -> Summary {
        let chain = |shift: f64| -> Vec<[f64; 2]> {
            (0..50)
                .map(|i| [f64::from(i * 37 % 50) + shift, 1e-9 * f64::from(i)])
                .collect()
        };
        let names = ["alpha".to_owned(), "m.2.1".to_owned()];
        Summary::of_draws(&names, &[chain(0.0), chain(0.5)]).unwrap()
    }

    /// A column put under the wrong name would show against arviz's value of that name.
    #[test]
    fn each_figure_is_arviz_s_of_that_name() {
        for Fixture {
            name,
            chains,
            expected,
        } in fixtures()
        {
            let row = ParameterSummary::of("x", &chains);
            for (column, figure) in COLUMNS.into_iter().zip(row.figures()) {
                let column = if column == "mcse" {
                    "mcse_mean"
                } else {
                    column
                };
                let arviz = expected[column];
                let same = figure == arviz
                    || figure.is_nan() && arviz.is_nan()
                    || (figure - arviz).abs() <= 1e-8 * arviz.abs();
                assert!(same, "{name}, {column}: {figure} against {arviz}");
            }
        }
    }

    #[test]
    fn the_table_is_aligned() {
        let table = two_parameters().to_table();
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|&w| w == widths[0]), "{table}");
        assert!(table.starts_with("parameter  "), "{table}");
        assert!(table.contains("24.75") || table.contains("24.8"), "{table}");
    }

    #[test]
    fn csv_is_read_back_exactly() {
        let summary = two_parameters();
        let csv = summary.to_csv();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(reader.headers().unwrap().get(0), Some("parameter"));
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(&records[1][0], "m[2,1]");
        for (record, row) in records.iter().zip(&summary.rows) {
            let figures: Vec<f64> = record.iter().skip(1).map(|f| f.parse().unwrap()).collect();
            assert_eq!(figures, row.figures());
        }
    }

    #[test]
    fn json_has_null_for_nan_and_brackets_in_names() {
        let names = ["beta.1".to_owned()];
        let summary = Summary::of_draws(&names, &[vec![[2.0]; 5]]).unwrap();
        let json = summary.to_json();
        assert_eq!(json[0]["parameter"], "beta[1]");
        assert_eq!(json[0]["mean"], 2.0);
        assert!(json[0]["r_hat"].is_null());
        assert_eq!(json, serde_json::to_value(&summary).unwrap());
    }

    #[test]
    fn nothing_at_all_is_summarised_without_complaint() {
        let chains: [Vec<[f64; 1]>; 0] = [];
        let summary = Summary::of_draws(&["x".to_owned()], &chains).unwrap();
        assert!(summary.rows[0].mean.is_nan());
        assert!(summary.to_table().contains("NaN"));
        assert_eq!(Summary { rows: vec![] }.to_csv().lines().count(), 1);
    }

    #[test]
    fn a_draw_of_the_wrong_width_is_named() {
        let chains = [vec![vec![1.0]], vec![vec![1.0], vec![1.0, 2.0]]];
        let error = Summary::of_draws(&["x".to_owned()], &chains).unwrap_err();
        assert_eq!(
            error.to_string(),
            "draw 2 of chain 2 has 2 values, but there are 1 parameter names"
        );
    }

    #[test]
    fn digits_follow_the_spread() {
        assert_eq!(fixed(24.746, decimals(14.4, 3)), "24.7");
        assert_eq!(fixed(0.012_345, decimals(0.001_9, 3)), "0.01235");
        assert_eq!(fixed(123_456.0, decimals(2000.0, 3)), "123456");
        assert_eq!(fixed(1.5e-9, decimals(1e-9, 3)), "1.50e-9");
        assert_eq!(fixed(3e12, 0), "3.00e12");
        assert_eq!(
            (fixed(-0.004, 2), fixed(-0.006, 2)),
            ("0.00".to_owned(), "-0.01".to_owned())
        );
        assert_eq!(fixed(f64::NEG_INFINITY, 2), "-inf");
    }
}

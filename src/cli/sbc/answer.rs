//! The findings of a calibration: in sentences, as a table, as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::analysis::{Calibrated, Promise, Tables};
use crate::diagnostics::{Coverage, quantile};
use crate::sampler::Algorithm;

/// The subject of a calibration: the sampler, its promise and the tables.
pub(super) struct Question<'a> {
    pub name: String,
    pub model: &'a Path,
    /// The model that the tables are made up from, where it is another.
    pub simulate_from: Option<&'a Path>,
    pub rows: u64,
    pub tables: u64,
    pub seed: u64,
    pub algorithm: &'static Algorithm,
    pub promise: Option<&'a Promise>,
}

impl Question<'_> {
    /// The runs, in a sentence.
    pub fn about(&self) -> String {
        let from = match self.simulate_from {
            None => "the model".to_owned(),
            Some(path) => format!("`{}`", path.display()),
        };
        format!(
            "{} on {} simulated tables of {} rows, made up from {from} with seed {}: no data were read, and nothing was charged",
            self.algorithm.name, self.tables, self.rows, self.seed
        )
    }

    /// The result to expect of a run, in sentences.
    pub fn answer(&self, found: &Calibrated) -> Vec<String> {
        let c = &found.calibration;
        let budget = match self.promise {
            Some(promise) => format!(
                "epsilon {} at delta {:e}",
                promise.epsilon.to_f64(),
                promise.delta.to_f64()
            ),
            None => format!("`{}` without privacy", self.algorithm.name),
        };
        let median = |of: &dyn Fn(usize) -> Option<f64>| {
            let values: Vec<f64> = (0..c.parameters.len()).filter_map(of).collect();
            (!values.is_empty()).then(|| quantile(&[&values], 0.5))
        };
        let of_median = match c.parameters.len() {
            1 => String::new(),
            n => format!(" (the median of {n} parameters)"),
        };
        let widths: Vec<String> = [
            (
                median(&|j| c.parameters[j].width_to_reference),
                "without privacy",
            ),
            (median(&|j| c.parameters[j].width_to_prior), "the prior's"),
        ]
        .into_iter()
        .filter_map(|(ratio, of)| Some(format!("{} times as wide as {of}", ratio_figure(ratio?))))
        .collect();
        let mut widest = String::new();
        let ratio = |j: &usize| c.parameters[*j].width_to_reference;
        let worst = (0..c.parameters.len()).filter(|j| ratio(j).is_some());
        if let (Some(j), true) = (
            worst.max_by(|i, j| {
                ratio(i)
                    .partial_cmp(&ratio(j))
                    .unwrap_or(std::cmp::Ordering::Equal)
            }),
            c.parameters.len() > 1,
        ) {
            let at_most = ratio(&j).map_or(String::new(), ratio_figure);
            widest = format!(
                "; {at_most} times without privacy at most, for {}",
                c.parameters[j].name
            );
        }
        let mut sentences = Vec::new();
        if !widths.is_empty() {
            sentences.push(format!(
                "What {budget} gives on {} rows: 90% intervals {}{of_median}{widest}.",
                self.rows,
                widths.join(" and ")
            ));
        }
        sentences.push(format!(
            "90% intervals contained the true value in {} of cases, and 50% intervals in {}; {} of {} runs said not to use their draws.",
            with_error(c.coverage[1]),
            with_error(c.coverage[0]),
            found.problems,
            found.tables.len()
        ));
        sentences.push(match c.off().as_slice() {
            [] => "Ranks of the true values are as those of a calibrated run: all are within a band that such a run leaves in 5% of the cases at most.".to_owned(),
            off => format!(
                "NOT CALIBRATED: the ranks of {} lie outside a band that a calibrated run leaves in at most 5% of cases, all parameters together.",
                off.join(", ")
            ),
        });
        if found.failed > 0 {
            sentences.push(format!(
                "{} of {} runs failed, and are not counted.",
                found.failed, self.tables
            ));
        }
        sentences
    }

    pub fn json(&self, found: &Calibrated, answer: &[String], tables: &Tables) -> Value {
        let c = &found.calibration;
        json!({
            "simulated": true,
            "about": self.about(),
            "answer": answer,
            "model": self.model.display().to_string(),
            "simulated_from": self.simulate_from.map(|path| path.display().to_string()),
            "without_prior": tables.without_prior(),
            "rows": self.rows,
            "tables": self.tables,
            "failed": found.failed,
            "problems": found.problems,
            "seed": self.seed,
            "algorithm": self.algorithm.name,
            "epsilon": self.promise.map(|promise| promise.epsilon.to_f64()),
            "delta": self.promise.map(|promise| promise.delta.to_f64()),
            "relation": self.promise.map(|promise| promise.relation.name()),
            "calibrated": c.off().is_empty(),
            "coverage": {"50": c.coverage[0], "90": c.coverage[1]},
            "band": {
                "ranks": c.band.ranks,
                "coverage": c.band.coverage,
                "points": c.band.points(),
                "limits": c.band.differences(),
            },
            "parameters": c.parameters,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

/// Ranks count from 0; a line for each table.
pub(super) fn ranks_csv(found: &Calibrated) -> String {
    let c = &found.calibration;
    let names = c.parameters.iter().map(|p| {
        if p.name.contains(',') {
            format!(",\"{}\"", p.name)
        } else {
            format!(",{}", p.name)
        }
    });
    let mut text = format!("table{}\n", names.collect::<String>());
    for (i, table) in found.tables.iter().enumerate() {
        let ranks = c.parameters.iter().map(|p| format!(",{}", p.ranks[i]));
        text.push_str(&format!("{}{}\n", table + 1, ranks.collect::<String>()));
    }
    text
}

/// The table for people.
pub(super) fn table(found: &Calibrated) -> String {
    let parameters = &found.calibration.parameters;
    let longest = parameters
        .iter()
        .map(|p| p.name.len())
        .max()
        .unwrap_or(0)
        .max(9);
    let mut text = format!(
        "{:longest$}  {:>13}  {:>13}  {:>15}  {:>7}  ranks\n",
        "parameter", "50% hold it", "90% hold it", "width/reference", "/prior"
    );
    for p in parameters {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), ratio_figure);
        text.push_str(&format!(
            "{:longest$}  {:>13}  {:>13}  {:>15}  {:>7}  {}\n",
            p.name,
            with_error(p.coverage[0]),
            with_error(p.coverage[1]),
            ratio(p.width_to_reference),
            ratio(p.width_to_prior),
            if p.within_band { "uniform" } else { "OFF" }
        ));
    }
    text
}

fn ratio_figure(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("{ratio:.0}"),
        _ if ratio >= 0.1 => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

fn with_error(coverage: Coverage) -> String {
    format!(
        "{:.1}% ± {:.1}%",
        100.0 * coverage.share,
        100.0 * coverage.mcse
    )
}

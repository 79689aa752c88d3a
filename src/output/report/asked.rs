//! The request: the program and the settings.

use serde_json::Value;

use super::ReportView;
use super::html::Html;
use super::likelihood;
use super::posterior::folded;
use crate::syntax::{Piece, pieces};

/// Longer values of constants are cut: they are data, and the file has them.
const MOST_CONSTANTS: usize = 2000;

/// Settings that a privacy officer or a statistician asks for first, and their names.
const FIRST: [(&str, &str); 17] = [
    ("algorithm", "Sampler"),
    ("data", "Data"),
    ("chains", "Chains"),
    ("num_warmup", "Warm-up iterations"),
    ("num_samples", "Sampling iterations"),
    ("thin", "Kept, one in"),
    ("temperature", "Tempered to a sample of"),
    ("leapfrog_steps", "Leapfrog steps"),
    ("start_share", "The start\u{2019}s share of the budget"),
    ("gradients_per_draw", "Gradients for each draw"),
    ("clip_gradient", "Clip bound of gradients"),
    ("clip_log_ratio", "Clip bound of log-ratios"),
    ("noise_split", "Gradients\u{2019} share of the budget"),
    ("relation", "Neighbouring tables"),
    ("unit", "Unit of privacy"),
    ("on_bad_rows", "Rows that cannot be read"),
    ("seed", "Seed of the public randomness"),
];

pub(super) fn asked(h: &mut Html, view: &ReportView) {
    match &view.report.model {
        Some(model) => program(h, model),
        None => h.element(
            "p",
            &[("class", &"note")],
            "The run holds no copy of the model\u{2019}s text.",
        ),
    }
    if let Some(constants) = &view.report.constants {
        folded(h, "Constants", |h| {
            let cut: String = constants.chars().take(MOST_CONSTANTS).collect();
            h.within("pre", &[("class", &"model")], |h| {
                h.text(cut.trim_end());
                if cut.len() < constants.len() {
                    h.text("\n\u{2026}");
                }
            });
        });
    }
    h.element("h3", &[], "Settings");
    let config = &view.report.config;
    settings(h, |h| {
        for (key, name) in FIRST {
            if let Some(value) = shown(&config[key]) {
                let value = match key {
                    // Folders are the curator's private information.
                    "data" => value
                        .trim_end_matches(['/', '\\'])
                        .rsplit(['/', '\\'])
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    "temperature" => format!("{} units", plain(&value)),
                    _ => plain(&value),
                };
                setting(h, name, &value);
            }
        }
    });
    if config["foreseen"]["gradients_per_draw_chosen"] == Value::Bool(true) {
        h.element(
            "p",
            &[("class", &"note")],
            "The number of gradients per draw was chosen before a row was read, on simulated records: that costs no privacy.",
        );
    }
    if let Some(start) = view.likelihood() {
        likelihood::likelihood(h, start);
    }
    let Some(all) = config.as_object().filter(|all| !all.is_empty()) else {
        return;
    };
    folded(
        h,
        "All settings, as in config.json; those that were not used are left out",
        |h| {
            settings(h, |h| {
                for (key, value) in all {
                    if let Some(value) = shown(value) {
                        setting(h, key, &value);
                    }
                }
            });
        },
    );
}

fn settings(h: &mut Html, content: impl FnOnce(&mut Html)) {
    h.within("dl", &[("class", &"settings")], content);
    h.line();
}

fn setting(h: &mut Html, name: &str, value: &str) {
    h.within("div", &[], |h| {
        h.element("dt", &[], name);
        h.element("dd", &[], value);
    });
}

/// A whole number without a fraction.
fn plain(value: &str) -> String {
    value.strip_suffix(".0").unwrap_or(value).to_owned()
}

/// `None` for a setting that was not set.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(list) if list.is_empty() => None,
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        other => Some(other.to_string()),
    }
}

fn program(h: &mut Html, source: &str) {
    h.within(
        "pre",
        &[
            ("class", &"model"),
            ("tabindex", &"0"),
            ("aria-label", &"The model"),
        ],
        |h| {
            h.within("code", &[], |h| {
                for (piece, span) in pieces(source.trim_end()) {
                    let class = match piece {
                        Piece::Keyword => "k",
                        Piece::Type => "t",
                        Piece::Function => "f",
                        Piece::Number => "n",
                        Piece::Text => "s",
                        Piece::Comment => "c",
                        Piece::Plain => {
                            h.text(&source[span.range()]);
                            continue;
                        }
                    };
                    h.element("span", &[("class", &class)], &source[span.range()]);
                }
            });
        },
    );
    h.line();
}

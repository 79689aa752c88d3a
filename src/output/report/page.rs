//! The page around the sections: the overview at the top, and the place for a signature.

use std::fmt::Display;

use super::axis::{count, short};
use super::html::Html;
use super::posterior::scrolling_table;
use super::{ReportView, asked, chains, pairs, posterior, privacy};
use crate::accounting::Relation;
use crate::diagnostics::{Decision, Grade, Kind};

/// No scripts, nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Name of the anchor and title of each section.
const SECTIONS: [(&str, &str); 8] = [
    ("asked", "What was asked"),
    ("privacy", "What is promised"),
    ("limits", "What is public, and what is not protected"),
    ("posterior", "What the draws say"),
    ("chains", "Whether to believe the draws"),
    ("pairs", "Correlated parameters"),
    ("files", "The files"),
    ("decision", "Decision"),
];

pub(super) fn page(view: &ReportView) -> String {
    let title = title(view);
    let marked = if view.private { "" } else { " (NOT PRIVATE)" };
    document(format!("{title}: report{marked}"), |h| {
        h.element(
            "a",
            &[("class", &"skip"), ("href", &"#asked")],
            "Skip to the report",
        );
        header(h, view, &title);
        contents(h);
        h.within("main", &[], |h| {
            for (i, (id, name)) in SECTIONS.iter().enumerate() {
                section(h, i + 1, id, name, |h| content(h, view, id));
            }
        });
        footer(h, view);
    })
}

/// A page that needs nothing else.
pub(super) fn document(title: impl Display, body: impl FnOnce(&mut Html)) -> String {
    let mut h = Html::new();
    h.within("html", &[("lang", &"en")], |h| {
        h.line();
        h.within("head", &[], |h| {
            h.empty("meta", &[("charset", &"utf-8")]);
            h.empty(
                "meta",
                &[
                    ("http-equiv", &"Content-Security-Policy"),
                    ("content", &POLICY),
                ],
            );
            h.empty(
                "meta",
                &[
                    ("name", &"viewport"),
                    ("content", &"width=device-width, initial-scale=1"),
                ],
            );
            h.empty(
                "meta",
                &[("name", &"color-scheme"), ("content", &"light dark")],
            );
            h.empty(
                "meta",
                &[
                    ("name", &"generator"),
                    ("content", &concat!("dpm ", env!("CARGO_PKG_VERSION"))),
                ],
            );
            h.empty("link", &[("rel", &"icon"), ("href", &"data:,")]);
            h.element("title", &[], title);
            h.style(include_str!("report.css"));
        });
        h.line();
        h.within("body", &[], body);
    });
    format!("<!doctype html>\n{}\n", h.finish())
}

fn content(h: &mut Html, view: &ReportView, id: &str) {
    let of_draws = matches!(id, "posterior" | "chains" | "pairs");
    if of_draws && !view.has_draws() {
        h.element(
            "p",
            &[],
            "The run has no draws yet: it was interrupted before the end of warm-up.",
        );
        return;
    }
    match id {
        "asked" => asked::asked(h, view),
        "privacy" => privacy::privacy(h, view),
        "limits" => privacy::limits(h, view),
        "posterior" => posterior::posterior(h, view),
        "chains" => {
            chains::verdicts(h, view);
            chains::traces(h, view);
        }
        "pairs" => pairs::pairs(h, view),
        "files" => files(h, view),
        _ => decision(h, view),
    }
}

/// The model's name, or that of the run.
fn title(view: &ReportView) -> String {
    let model = view.report.config["model"].as_str();
    let file = model.and_then(|path| path.rsplit(['/', '\\']).next());
    let stem = file.map(|name| name.strip_suffix(".dpm").unwrap_or(name));
    stem.filter(|s| !s.is_empty())
        .unwrap_or(&view.report.name)
        .to_owned()
}

fn section(h: &mut Html, number: usize, id: &str, name: &str, content: impl FnOnce(&mut Html)) {
    let heading = format!("{id}-title");
    h.line();
    h.within(
        "section",
        &[("id", &id), ("aria-labelledby", &heading)],
        |h| {
            h.within("h2", &[("id", &heading)], |h| {
                h.element("span", &[("class", &"number")], number);
                h.text(name);
            });
            h.line();
            content(h);
        },
    );
}

fn header(h: &mut Html, view: &ReportView, title: &str) {
    h.within("header", &[("class", &"top")], |h| {
        let kind = if view.private {
            "Differentially private posterior \u{b7} report"
        } else {
            "Posterior without privacy \u{b7} report"
        };
        h.element("p", &[("class", &"kicker")], kind);
        h.element("h1", &[], title);
        h.element(
            "p",
            &[("class", &"note")],
            format!(
                "Run \u{201c}{}\u{201d}, made by dpm {}",
                view.report.name,
                version(view)
            ),
        );
        bands(h, view);
        h.within("ul", &[("class", &"cards")], |h| {
            privacy_card(h, view);
            attack_card(h, view);
            decision_card(h, view);
            draws_card(h, view);
        });
    });
    h.line();
}

fn version<'a>(view: &ReportView<'a>) -> &'a str {
    let version = view.report.privacy["software"]["version"].as_str();
    version.unwrap_or("of unknown version")
}

/// The warnings that must not be overlooked.
fn bands(h: &mut Html, view: &ReportView) {
    let mut band = |class: &'static str, head: &str, says: &str| {
        h.within("p", &[("class", &class), ("role", &"note")], |h| {
            h.element("strong", &[], head);
            h.prose(says);
        });
    };
    if !view.private {
        band(
            "band problem",
            "NOT PRIVATE",
            "These draws come from a run without a privacy guarantee. Do not publish them, or this report, unless the data themselves may be published.",
        );
    }
    if view.unfinished {
        band(
            "band warning",
            "UNFINISHED",
            "The run was interrupted. These are the draws so far; the whole schedule is charged all the same, and `dpm sample --resume` resumes it.",
        );
    }
    let Some(diagnosis) = &view.report.diagnosis else {
        return;
    };
    let (headline, rest) = diagnosis.headline_and_rest();
    let sentence = headline.map_or("", |v| &v.sentence);
    match diagnosis.decision {
        Decision::Use => {}
        Decision::UseWithCare => band("band warning", "USE WITH CARE", sentence),
        Decision::DoNotUse => band("band problem", "NOT TO BE USED", sentence),
    }
    for verdict in rest {
        if verdict.kind == Kind::NotFinite {
            band(
                "band problem",
                "NOT ALL DRAWS ARE NUMBERS",
                &verdict.sentence,
            );
        }
    }
}

fn card(h: &mut Html, class: &'static str, what: &str, value: &str, more: &str) {
    h.within("li", &[("class", &class)], |h| {
        h.element("span", &[("class", &"what")], what);
        h.element("span", &[("class", &"value")], value);
        h.element("span", &[("class", &"more")], more);
    });
}

fn privacy_card(h: &mut Html, view: &ReportView) {
    let report = &view.report.privacy;
    if !view.private {
        return card(
            h,
            "card problem",
            "Privacy",
            "None",
            "exact values of the data, or noise from a seed",
        );
    }
    let figure = |key: &str| report[key].as_f64().map_or_else(|| "?".to_owned(), short);
    let relation = match report["relation"].as_str().map(str::parse) {
        Some(Ok(Relation::Substitute)) => "replaced by any other",
        Some(Ok(Relation::AddRemove)) => "added or removed",
        Some(Ok(Relation::ZeroOut)) => "with its values left blank",
        _ => "in a relation that is not known",
    };
    card(
        h,
        "card good",
        "Privacy",
        &format!("\u{3b5} = {}", figure("epsilon")),
        &format!(
            "delta = {}; the unit, one {}, {relation}",
            figure("delta"),
            view.unit()
        ),
    );
}

fn attack_card(h: &mut Html, view: &ReportView) {
    let Some(guarantee) = &view.guarantee else {
        return;
    };
    card(
        h,
        "card good",
        "Best guess of an attacker",
        &super::axis::percent(guarantee.right_guesses()),
        "the most often an attacker can be right about two versions of one unit; a coin is right 50\u{202f}%",
    );
}

fn decision_card(h: &mut Html, view: &ReportView) {
    let Some(diagnosis) = &view.report.diagnosis else {
        return card(
            h,
            "card problem",
            "Draws can be used",
            "No draws",
            "interrupted before the end of warm-up",
        );
    };
    let (class, value) = match diagnosis.decision {
        Decision::Use => ("card good", "Yes"),
        Decision::UseWithCare => ("card warning", "With care"),
        Decision::DoNotUse => ("card problem", "No"),
    };
    const WHAT: &str = "Draws can be used";
    if view.independent() {
        return card(
            h,
            class,
            WHAT,
            value,
            "independent draws from a fitted Gaussian; R-hat and ESS do not apply",
        );
    }
    let grade = match diagnosis.convergence {
        Grade::Converged => "converged: ",
        Grade::NearlyConverged => "nearly converged: ",
        Grade::NotConverged => "not converged: ",
        Grade::Unknown | Grade::Fitted | Grade::SearchFailed => "",
    };
    let worst = view
        .summary
        .rows
        .iter()
        .map(|r| r.r_hat)
        .filter(|r| !r.is_nan())
        .fold(f64::NAN, f64::max);
    let least = view
        .summary
        .rows
        .iter()
        .map(|r| r.ess_bulk)
        .filter(|e| !e.is_nan())
        .fold(f64::NAN, f64::min);
    let more = match (worst.is_nan(), least.is_nan()) {
        (false, false) => format!("largest R-hat {worst:.3}, smallest bulk ESS {least:.0}"),
        (true, false) => format!("no R-hat for one chain; smallest bulk ESS {least:.0}"),
        _ => "neither R-hat nor ESS can be computed".to_owned(),
    };
    card(h, class, WHAT, value, &format!("{grade}{more}"));
}

fn draws_card(h: &mut Html, view: &ReportView) {
    let chains = view.report.draws.len();
    let draws: usize = view.report.draws.iter().map(Vec::len).sum();
    let parameters = view.columns.len();
    card(
        h,
        "card",
        "Draws",
        &count(draws as u64),
        &format!(
            "{chains} chain{} of {} draws, {parameters} parameter{}",
            if chains == 1 { "" } else { "s" },
            view.draws_per_chain(),
            if parameters == 1 { "" } else { "s" },
        ),
    );
}

fn contents(h: &mut Html) {
    h.within(
        "nav",
        &[("class", &"contents"), ("aria-label", &"Contents")],
        |h| {
            h.within("ol", &[], |h| {
                for (i, (id, name)) in SECTIONS.iter().enumerate() {
                    h.within("li", &[], |h| {
                        h.element(
                            "a",
                            &[("href", &format!("#{id}"))],
                            format!("{}\u{2002}{name}", i + 1),
                        );
                    });
                }
            });
        },
    );
    h.line();
}

fn files(h: &mut Html, view: &ReportView) {
    h.element("p", &[], "This report was made from the files below. Anyone who has them can check with sha256sum that they are the same, and create the report again with dpm report.");
    scrolling_table(h, "files", "Files of the run, with their SHA-256", |h| {
        h.within("thead", &[], |h| {
            h.within("tr", &[], |h| {
                h.element("th", &[("scope", &"col"), ("class", &"words")], "File");
                h.element("th", &[("scope", &"col")], "Bytes");
                h.element("th", &[("scope", &"col"), ("class", &"wrap")], "SHA-256");
            });
        });
        h.within("tbody", &[], |h| {
            for file in &view.report.files {
                h.within("tr", &[], |h| {
                    h.element("th", &[("scope", &"row")], &file.name);
                    h.element("td", &[], count(file.size));
                    h.element("td", &[("class", &"hash")], &file.hash);
                });
            }
        });
    });
}

fn decision(h: &mut Html, view: &ReportView) {
    if !view.private {
        h.element(
            "p",
            &[],
            "There is nothing to approve: this run has no privacy guarantee.",
        );
        return;
    }
    h.element("p", &[], "For the person who decides whether the draws may be published. No program can answer these questions:");
    h.within("ul", &[("class", &"checklist")], |h| {
        for item in [
            "The bounds of columns, the levels of factors, the constants and the priors were chosen without looking at these data.",
            "The unit of privacy is the one that has to be protected: nobody has several units, or that is acceptable.",
            "Epsilon and delta are what our policy allows, other runs on the same data included.",
            "Settings were not chosen by looking at results that were charged nowhere.",
        ] {
            h.element("li", &[], item);
        }
    });
    h.within("ul", &[("class", &"checklist columns")], |h| {
        for item in ["Released", "Released on conditions", "Not released"] {
            h.within("li", &[], |h| h.element("b", &[], item));
        }
    });
    h.within("div", &[("class", &"sign")], |h| {
        for what in ["Name and office", "Place and date", "Signature"] {
            h.element("div", &[], what);
        }
    });
    h.within("div", &[("class", &"sign wide")], |h| {
        h.element("div", &[], "Conditions and remarks");
    });
}

fn footer(h: &mut Html, view: &ReportView) {
    h.line();
    h.within("footer", &[], |h| {
        h.text(format!(
            "dpm {}. Run \u{201c}{}\u{201d}. This page needs no network, holds no scripts and asks nothing of any server.",
            version(view),
            view.report.name
        ));
    });
}

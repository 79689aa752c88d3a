//! The promise: in plain words, as curves, release by release; and its limits.

use serde_json::Value;

use super::ReportView;
use super::axis::{Scale, count, percent, short, superscript};
use super::guarantee::{Guarantee, Point};
use super::html::Html;
use super::plot::{Path, bottom_axis, circle, decoration, left_axis, line, plot, rectangle, text};
use super::posterior::{head_row, scrolling_table};
use crate::accounting::Relation;

pub(super) fn privacy(h: &mut Html, view: &ReportView) {
    let report = &view.report.privacy;
    if !view.private {
        h.within("p", &[("class", &"lead")], |h| {
            h.element("strong", &[], "There is no privacy guarantee. ");
            h.text(report["statement"].as_str().unwrap_or_default());
        });
        h.element("p", &[], "Draws, tables and this report may reveal anything about the people in the data. Do not publish them unless the data themselves may be published.");
        return;
    }
    promise(h, view);
    match &view.guarantee {
        Some(guarantee) => {
            curves(h, view, guarantee);
            releases(h, view, guarantee);
        }
        None => {
            h.element("p", &[("class", &"note")], "The releases in privacy.json cannot be read, so that the curve of epsilon and delta is not shown.");
        }
    }
    small_print(h, view);
}

fn number(report: &Value, key: &str) -> Option<f64> {
    report[key].as_f64()
}

fn promise(h: &mut Html, view: &ReportView) {
    let report = &view.report.privacy;
    let (epsilon, delta) = (number(report, "epsilon"), number(report, "delta"));
    let whose = match report["unit_column"].as_str() {
        None => "one record (one row, such as one person\u{2019}s)".to_owned(),
        Some(column) => {
            format!("one unit: all rows that share a value of \u{201c}{column}\u{201d}")
        }
    };
    let differ = match report["relation"].as_str().map(str::parse) {
        Some(Ok(Relation::Substitute)) => {
            "in one version it is unchanged, in the other it is replaced by anything else"
        }
        Some(Ok(Relation::AddRemove)) => "in one version it is there, in the other it is missing",
        Some(Ok(Relation::ZeroOut)) => {
            "in one version its values are there, in the other they are left blank; that there was a row is not hidden"
        }
        _ => "in a relation that this report does not know",
    };
    h.element(
        "p",
        &[("class", &"lead")],
        format!("Picture two versions of the table that are alike except for {whose}: {differ}. Whatever this run wrote, it would have written almost as readily from either. Whoever reads it can hardly tell which of the two was used."),
    );
    if let (Some(epsilon), Some(delta)) = (epsilon, delta) {
        h.within("p", &[], |h| {
            h.text("How nearly alike is what ");
            h.element("b", &[], format!("epsilon = {}", short(epsilon)));
            h.text(" and ");
            h.element("b", &[], format!("delta = {}", short(delta)));
            h.text(format!(
                " say: whatever set of outcomes is looked at, its probability from the one table is at most {} times (e to the power of epsilon) that from the other, plus one in {}. ",
                short(epsilon.exp()),
                match 1.0 / delta {
                    few if few < 1e15 => count(few.round() as u64),
                    many => short(many),
                }
            ));
            if let Some(guarantee) = &view.guarantee {
                let right = guarantee.right_guesses();
                h.text("In other words: somebody who knows every other row, and that it was one of two versions, equally likely, guesses right ");
                h.element("b", &[], format!("at most {} of the time", percent(right)));
                h.text("; tossing a coin is right 50\u{202f}% of the time.");
            }
        });
    }
    if let Some(reason) = report["not_proved"].as_str() {
        h.element(
            "p",
            &[],
            format!(
                "This does not rest on proofs alone: a step of the bound is not proved ({reason})."
            ),
        );
    }
    h.element("p", &[], "This covers everything the run wrote: all draws of all chains, the steps before them, and this report, whatever else anybody knows or does with it later. It does not promise that nothing is learnt about people in general: if the draws show that a group of people differs from another, that is learnt about each member of it, whether or not they are in the table.");
}

fn curves(h: &mut Html, view: &ReportView, guarantee: &Guarantee) {
    if guarantee.curve.len() < 2 {
        return;
    }
    let own = match (
        number(&view.report.privacy, "epsilon_spent"),
        number(&view.report.privacy, "delta"),
    ) {
        (Some(epsilon), Some(delta)) => Some(Point { epsilon, delta }),
        _ => None,
    };
    h.within("div", &[("class", &"grid two")], |h| {
        epsilon_delta(h, guarantee, own);
        detection(h, guarantee);
    });
}

const SIZE: [f64; 2] = [420.0, 290.0];
const ACROSS: [f64; 2] = [58.0, 408.0];
const UP: [f64; 2] = [238.0, 14.0];

fn epsilon_delta(h: &mut Html, guarantee: &Guarantee, own: Option<Point>) {
    let curve = &guarantee.curve;
    let widest = curve.iter().map(|p| p.epsilon).fold(0.0, f64::max);
    let across = Scale::new([0.0, widest * 1.03], ACROSS);
    let up = Scale::new([-12.0, 0.0], UP);
    let points: Vec<String> = [1e-3, 1e-6, 1e-9]
        .iter()
        .filter_map(|&delta| {
            let near = curve.iter().min_by(|a, b| {
                let far = |p: &Point| (p.delta.ln() - f64::ln(delta)).abs();
                far(a).total_cmp(&far(b))
            })?;
            Some(format!(
                "{} at delta {}",
                short(near.epsilon),
                short(near.delta)
            ))
        })
        .collect();
    let says = format!(
        "Curve of epsilon against delta of this run: epsilon {}.",
        points.join(", ")
    );
    h.within("figure", &[], |h| {
        h.within("figcaption", &[], |h| {
            h.element("b", &[], "One run, many pairs of epsilon and delta");
            h.text("\u{2002}The same noise can be described by any point of the curve; this run was bought at the marked one.");
        });
        plot(h, SIZE, &says, |h| {
            for decade in [0, -3, -6, -9, -12] {
                let y = up.at(f64::from(decade));
                line(h, "grid-line", [ACROSS[0], y], [ACROSS[1], y]);
                let label = match decade {
                    0 => "1".to_owned(),
                    _ => format!("10{}", superscript(decade)),
                };
                text(h, "e", [ACROSS[0] - 6.0, y + 4.0], label);
            }
            bottom_axis(h, &across, UP[0], 6);
            text(h, "m", [(ACROSS[0] + ACROSS[1]) / 2.0, UP[0] + 36.0], "epsilon: how far probabilities may differ");
            h.element("text", &[("class", &"m"), ("transform", &"translate(12 126) rotate(-90)")], "delta: and except with this");
            Path::through(curve.iter().map(|p| (across.at(p.epsilon), up.held(p.delta.log10())))).draw(h, "curve");
            if let Some(own) = own.filter(|p| p.epsilon <= widest * 1.02) {
                let (x, y) = (across.at(own.epsilon), up.held(own.delta.log10()));
                line(h, "mark", [x, UP[0]], [x, y]);
                line(h, "mark", [ACROSS[0], y], [x, y]);
                circle(h, "spot", [x, y], 4.5);
                let label = format!("epsilon {}, delta {}", short(own.epsilon), short(own.delta));
                if x > (ACROSS[0] + ACROSS[1]) / 2.0 {
                    text(h, "e rust-text", [x - 9.0, y + 16.0], label)
                } else {
                    text(h, "rust-text", [x + 9.0, y - 7.0], label)
                }
            }
        });
    });
}

fn detection(h: &mut Html, guarantee: &Guarantee) {
    let scale = |ends| Scale::new([0.0, 1.0], ends);
    let (across, up) = (scale(ACROSS), scale(UP));
    let alarms: Vec<f64> = (0..=60).map(|i| f64::from(i) / 60.0).collect();
    let bound: Vec<(f64, f64)> = alarms
        .iter()
        .map(|&a| (a, guarantee.detection(a)))
        .collect();
    let at_five = guarantee.detection(0.05);
    let says = format!(
        "The best any attack can do: with false alarms in 1 % of cases it detects at most {}, with 5 % at most {}, with 20 % at most {}. Blind guessing detects 1 %, 5 % and 20 %.",
        percent(guarantee.detection(0.01)),
        percent(at_five),
        percent(guarantee.detection(0.2)),
    );
    h.within("figure", &[], |h| {
        h.within("figcaption", &[], |h| {
            h.element("b", &[], "The best that an attack can do");
            h.text(format!(
                "\u{2002}Somebody claims to recognise from the output which version it was. If they may be wrong about the one in 5\u{202f}% of cases, they are right about the other in at most {}. On the diagonal they guess blindly.",
                percent(at_five)
            ));
        });
        plot(h, SIZE, &says, |h| {
            left_axis(h, &up, ACROSS, 6);
            let place = |&(a, d): &(f64, f64)| (across.at(a), up.at(d));
            let diagonal = [(1.0, 1.0), (0.0, 0.0)];
            Path::through(bound.iter().chain(&diagonal).map(place)).draw(h, "area core");
            line(h, "axis", [ACROSS[0], UP[0]], [ACROSS[1], UP[1]]);
            Path::through(bound.iter().map(place)).draw(h, "curve");
            let (x, y) = place(&(0.05, at_five));
            circle(h, "spot", [x, y], 4.5);
            bottom_axis(h, &across, UP[0], 6);
            text(h, "m", [(ACROSS[0] + ACROSS[1]) / 2.0, UP[0] + 36.0], "share of false alarms");
            h.element("text", &[("class", &"m"), ("transform", &"translate(12 126) rotate(-90)")], "share detected");
            text(h, "e", [across.at(0.97), up.at(0.21)], "blind guessing: the diagonal");
            text(h, "e blue-text", [across.at(0.97), up.at(0.11)], "shaded: what an attack could gain");
        });
    });
}

fn releases(h: &mut Html, view: &ReportView, guarantee: &Guarantee) {
    h.element("h3", &[], "What was released, and what each kind costs");
    h.element("p", &[], "The run asked the data these questions and no others. Each answer is a sum over all rows, in which no unit counts for more than its bound, plus noise. Everything else was computed from the answers.");
    let released: Vec<Option<u64>> = match view.report.privacy["released"].as_array() {
        Some(list) => list.iter().map(|r| r["count"].as_u64()).collect(),
        None => Vec::new(),
    };
    scrolling_table(
        h,
        "pinned",
        "Releases of the run, with their share of the privacy budget",
        |h| {
            head_row(
                h,
                ["Question", "Share of the budget"],
                &[
                    "",
                    "Planned",
                    "Made",
                    "One unit\u{2019}s bound",
                    "SD of the noise",
                    "Noise / sensitivity",
                ],
            );
            h.within("tbody", &[], |h| {
                for (i, event) in guarantee.events.iter().enumerate() {
                    let share = guarantee.shares.get(i).copied();
                    h.within("tr", &[], |h| {
                        h.element(
                            "th",
                            &[("scope", &"row"), ("class", &"wrap")],
                            named(event.what()),
                        );
                        h.within("td", &[("class", &"plot")], |h| {
                            decoration(h, [240.0, 22.0], |h| {
                                rectangle(h, "share-rest", [0.0, 6.0], [240.0, 10.0]);
                                rectangle(
                                    h,
                                    "share",
                                    [0.0, 6.0],
                                    [240.0 * share.unwrap_or(0.0), 10.0],
                                );
                            });
                        });
                        h.element(
                            "td",
                            &[],
                            share.map_or_else(|| "\u{2013}".to_owned(), percent),
                        );
                        h.element("td", &[], count(event.count()));
                        h.element(
                            "td",
                            &[],
                            released
                                .get(i)
                                .copied()
                                .flatten()
                                .map_or_else(|| "\u{2013}".to_owned(), count),
                        );
                        match event.release() {
                            Some(release) => {
                                let clip = release
                                    .clip()
                                    .map_or_else(|| "\u{2013}".to_owned(), |c| short(c.to_f64()));
                                let (sigma, sensitivity) =
                                    (release.sigma().to_f64(), release.sensitivity().to_f64());
                                h.element("td", &[], clip);
                                h.element("td", &[], short(sigma));
                                h.element("td", &[], short(sigma / sensitivity));
                            }
                            None => h.element(
                                "td",
                                &[("colspan", &3)],
                                "the test\u{2019}s own noise covers it",
                            ),
                        }
                    });
                }
            });
        },
    );
    let all_rows = guarantee
        .events
        .iter()
        .all(|e| matches!(e, crate::accounting::Event::Gaussian(_)));
    let how = if all_rows {
        "Shares are of the sum of sensitivity\u{b2} / (2 noise\u{b2}), which adds up exactly."
    } else {
        "Shares are of the R\u{e9}nyi divergence at the order that is best for the whole run, which adds up."
    };
    h.element("p", &[("class", &"note")], format!("{how} \u{201c}Planned\u{201d} is what was charged, before a row was read; a run may make fewer releases and is charged for all."));
}

/// A description of a release for readers who do not know its name.
fn named(what: &str) -> String {
    match what {
        "gradient" => "gradient: which way the parameters should move".to_owned(),
        "gradient, centred by the model's law" => {
            "gradient: which way the parameters should move, each row measured from what the model expects of it".to_owned()
        }
        "histogram of gradient lengths" => {
            "histogram of gradient lengths: how influential single rows are, for the clip bound".to_owned()
        }
        "information" => "information: how precisely the rows determine the parameters".to_owned(),
        "histogram of the information" => {
            "histogram of the information: how influential single rows are in it".to_owned()
        }
        "gradient, for the certificate" => {
            "gradient, for the certificate: whether the answer holds in an independent check".to_owned()
        }
        "log-ratio per unit of distance" => {
            "log-ratio: whether a proposed move is accepted".to_owned()
        }
        other => other.to_owned(),
    }
}

fn small_print(h: &mut Html, view: &ReportView) {
    let report = &view.report.privacy;
    let mut says = Vec::new();
    if let Some(statement) = report["statement"].as_str() {
        says.push(format!("In the words of privacy.json: {statement}"));
    }
    if let (Some(spent), Some(delta), Some(accountant)) = (
        number(report, "epsilon_spent"),
        number(report, "delta"),
        report["accountant"].as_str(),
    ) {
        let proved = match report["proved"].as_bool() {
            Some(true) => "every step of it is proved",
            _ => "not every step of it is proved",
        };
        says.push(format!(
            "The accountant \u{201c}{accountant}\u{201d} bounds the cost of these releases by epsilon {} at delta {}; {proved}.",
            short(spent),
            short(delta)
        ));
    }
    if let Some(statement) = report["clipping"]["statement"].as_str() {
        says.push(statement.to_owned());
    }
    match report["ledger"].as_object() {
        Some(ledger) => {
            let text = |key: &str| ledger.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
            let figure = |key: &str| ledger.get(key).and_then(Value::as_f64).map_or_else(|| "?".to_owned(), short);
            says.push(format!(
                "It is entry {} of the ledger \u{201c}{}\u{201d} ({}), which limits all runs on these data together to epsilon {} at delta {}; up to and with this run {} of it are spent, by the accountant \u{201c}{}\u{201d}.",
                ledger.get("entry").map_or_else(String::new, Value::to_string),
                text("name"),
                text("hash"),
                figure("epsilon"),
                figure("delta"),
                figure("epsilon_spent"),
                text("accountant"),
            ));
        }
        None => says.push("The run was charged to no ledger: its epsilon is for this run alone, and other runs on the same data add to what can be learnt.".to_owned()),
    }
    if let Some(lost) = report["lost_iterations"].as_u64().filter(|&lost| lost > 0) {
        says.push(format!("{lost} iterations were made and lost when the run was cut short; what they released is counted."));
    }
    h.within("ul", &[], |h| {
        for sentence in says {
            h.within("li", &[], |h| h.prose(&sentence));
        }
    });
}

/// The facts that have to be public, and those that are not protected.
pub(super) fn limits(h: &mut Html, view: &ReportView) {
    let list = |h: &mut Html, key: &str| {
        h.within("ul", &[], |h| {
            for item in view.report.privacy[key].as_array().into_iter().flatten() {
                h.element(
                    "li",
                    &[],
                    item.as_str()
                        .map_or_else(|| item.to_string(), str::to_owned),
                );
            }
        });
    };
    let has_public = view.report.privacy["assumed_public"]
        .as_array()
        .is_some_and(|a| !a.is_empty());
    h.within("div", &[("class", &"columns")], |h| {
        if has_public {
            h.within("div", &[], |h| {
                h.element("h3", &[], "Taken to be public");
                h.element(
                    "p",
                    &[],
                    "The promise holds if these were settled without looking at the data:",
                );
                list(h, "assumed_public");
            });
        }
        h.within("div", &[], |h| {
            h.element("h3", &[], "Not protected");
            h.element("p", &[], "No run of this program protects against:");
            list(h, "not_protected");
        });
    });
}

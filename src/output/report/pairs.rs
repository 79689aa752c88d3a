//! The parameters that are most correlated, two by two.

use super::ReportView;
use super::axis::{Scale, short};
use super::columns::{quantiles, rank_correlation};
use super::html::Html;
use super::plot::{Path, line, plot, rectangle, text};
use crate::diagnostics::average_ranks;

const MOST_PAIRS: usize = 6;
/// The least correlation of two parameters that are worth a drawing.
const LEAST: f64 = 0.3;
/// The draws in a drawing, from all chains together.
const POINTS: usize = 400;
/// The most columns among which pairs are searched for: the work grows with their square.
const MOST_COLUMNS: usize = 150;

struct Pair {
    first: usize,
    second: usize,
    correlation: f64,
}

pub(super) fn pairs(h: &mut Html, view: &ReportView) {
    let found = strongest(view);
    let looked = view.columns.len().min(MOST_COLUMNS);
    if found.is_empty() {
        let says = match looked {
            0 | 1 => "There is only one parameter, and so no pair.".to_owned(),
            _ => format!("No two parameters have a rank correlation of {LEAST} or more."),
        };
        h.element("p", &[], says);
        return;
    }
    h.element("p", &[], "Each dot is a draw. Where two parameters are correlated, the draws say more about a combination of them than about either alone, and an interval for one should not be read without the other.");
    if view.columns.len() > looked {
        h.element(
            "p",
            &[("class", &"note")],
            format!("Looked for among the first {looked} parameters."),
        );
    }
    h.within("div", &[("class", &"grid three")], |h| {
        for pair in &found {
            figure(h, view, pair);
        }
    });
}

/// The pairs of columns with the largest rank correlations, the largest first.
fn strongest(view: &ReportView) -> Vec<Pair> {
    // The draws used for a rank correlation: with 2,000 it is known to 0.02.
    const ENOUGH: usize = 2000;
    let ranked: Vec<(usize, Vec<f64>)> = view
        .columns
        .iter()
        .enumerate()
        .take(MOST_COLUMNS)
        .filter(|(_, c)| c.not_finite() == 0 && c.varies())
        .map(|(i, c)| {
            let draws: Vec<f64> = c.draws().collect();
            let every = draws.len().div_ceil(ENOUGH).max(1);
            let thinned: Vec<f64> = draws.into_iter().step_by(every).collect();
            (i, average_ranks(&thinned))
        })
        .collect();
    let mut pairs = Vec::new();
    for (k, (first, a)) in ranked.iter().enumerate() {
        for (second, b) in &ranked[k + 1..] {
            let correlation = rank_correlation(a, b);
            if correlation.abs() >= LEAST {
                pairs.push(Pair {
                    first: *first,
                    second: *second,
                    correlation,
                });
            }
        }
    }
    pairs.sort_by(|a, b| b.correlation.abs().total_cmp(&a.correlation.abs()));
    pairs.truncate(MOST_PAIRS);
    pairs
}

const X: [f64; 2] = [52.0, 292.0];
const Y: [f64; 2] = [182.0, 8.0];

fn figure(h: &mut Html, view: &ReportView, pair: &Pair) {
    let (a, b) = (&view.columns[pair.first], &view.columns[pair.second]);
    let ends = |draws: &[f64]| {
        let [low, high] = quantiles(draws, [0.001, 0.999]);
        let margin = 0.04 * (high - low);
        [low - margin, high + margin]
    };
    let across = Scale::new(ends(&a.finite()), X);
    let up = Scale::new(ends(&b.finite()), Y);
    let says = format!(
        "Draws of {} against {}: rank correlation {}.",
        b.name,
        a.name,
        short(pair.correlation)
    );
    h.within("figure", &[], |h| {
        h.within("figcaption", &[], |h| {
            h.element("b", &[], format!("{} and {}", a.name, b.name));
            h.text(format!(
                "\u{2002}rank correlation {}",
                short(pair.correlation)
            ));
        });
        plot(h, [300.0, 222.0], &says, |h| {
            super::plot::left_axis(h, &up, X, 4);
            for tick in across.ticks(4) {
                let x = across.at(tick.value);
                line(h, "grid-line", [x, Y[0]], [x, Y[1]]);
                text(h, "m", [x, Y[0] + 15.0], &tick.label);
            }
            rectangle(h, "frame", [X[0], Y[1]], [X[1] - X[0], Y[0] - Y[1]]);
            let count = a.draws().count();
            let every = count.div_ceil(POINTS).max(1);
            let mut path = Path::default();
            for (x, y) in a.draws().zip(b.draws()).step_by(every) {
                let within =
                    (across.low..=across.high).contains(&x) && (up.low..=up.high).contains(&y);
                if within {
                    path.dot(across.at(x), up.at(y));
                }
            }
            path.draw(h, "cloud");
            text(h, "m strong", [(X[0] + X[1]) / 2.0, Y[0] + 33.0], a.name);
            h.element(
                "text",
                &[
                    ("class", &"m strong"),
                    ("transform", &"translate(11 95) rotate(-90)"),
                ],
                b.name,
            );
        });
    });
}

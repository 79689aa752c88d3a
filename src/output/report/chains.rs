//! Whether the chains agree: verdicts, and each parameter's traces and ranks.

use super::ReportView;
use super::axis::{Scale, short};
use super::columns::{Column, quantiles, rank_counts};
use super::html::Html;
use super::plot::{Path, line, plot, rectangle, text};
use super::posterior::folded;
use crate::diagnostics::Severity;

const OPEN_PLOTS: usize = 8;
const MOST_PLOTS: usize = 120;
/// Points of a trace that is shown, and of one that is folded away.
const POINTS: [usize; 2] = [400, 160];
const BINS: usize = 20;
/// The most chains in one drawing.
const MOST_CHAINS: usize = 32;

pub(super) fn verdicts(h: &mut Html, view: &ReportView) {
    let Some(diagnosis) = &view.report.diagnosis else {
        return;
    };
    h.within("p", &[("class", &"lead")], |h| {
        h.element("strong", &[], diagnosis.decision.sentence());
    });
    h.within("ul", &[("class", &"verdicts")], |h| {
        for verdict in &diagnosis.verdicts {
            let class = match verdict.severity {
                Severity::Problem => "verdict problem",
                Severity::Warning => "verdict warning",
                Severity::Note => "verdict note",
                Severity::Good => "verdict good",
            };
            h.within("li", &[("class", &class)], |h| {
                h.element("span", &[("class", &"grade")], verdict.severity.name());
                h.prose(&verdict.sentence);
                if let Some(advice) = &verdict.advice {
                    h.within("span", &[("class", &"advice")], |h| {
                        h.text("What would help: ");
                        h.prose(advice);
                    });
                }
            });
            h.line();
        }
    });
    if view.independent() {
        return;
    }
    let known: Vec<String> = view
        .report
        .acceptance
        .iter()
        .filter(|a| a.is_finite())
        .map(|a| format!("{:.0}\u{202f}%", 100.0 * a))
        .collect();
    if !known.is_empty() {
        let which = if known.len() == 1 {
            "the chain"
        } else {
            "each chain"
        };
        h.element(
            "p",
            &[],
            format!(
                "Proposals of {which} that would be accepted, on average: {}.",
                known.join(", ")
            ),
        );
    }
}

pub(super) fn traces(h: &mut Html, view: &ReportView) {
    if view.independent() {
        h.element(
            "p",
            &[("class", &"note")],
            "There are no traces to show: no chain made these draws. They are independent draws from a fitted Gaussian, so that R-hat is near 1 and ESS near their number however well it fits.",
        );
        return;
    }
    let mut order: Vec<usize> = (0..view.columns.len())
        .filter(|&i| view.columns[i].varies())
        .collect();
    let many = order.len() > OPEN_PLOTS;
    if many {
        // The worst first, equal ones in the order of declaration; one without R-hat is the worst.
        let r_hat = |i: &usize| view.summary.rows[*i].r_hat;
        let key = |i: &usize| {
            if r_hat(i).is_nan() {
                f64::INFINITY
            } else {
                r_hat(i)
            }
        };
        order.sort_by(|a, b| key(b).total_cmp(&key(a)));
    }
    if order.is_empty() {
        h.element(
            "p",
            &[("class", &"note")],
            "There are no traces to show: no parameter has draws that differ.",
        );
        return;
    }
    let chains = view.report.draws.len();
    let one = if chains == 1 {
        " There is only one chain, and no other to compare its ranks with; a second chain would show whether it has found all of the posterior."
    } else {
        ""
    };
    h.element(
        "p",
        &[],
        format!("A row for each chain. Left, its draws in order: a healthy trace is a band of even height without steps or trends. Right, how the chain's draws rank among those of all chains: where the chains agree, the bars end near the dashed line in every row.{one}{}",
            if many { " The parameters that agree least come first." } else { "" }),
    );
    let shown = order.len().min(MOST_PLOTS);
    let open = if shown <= OPEN_PLOTS + 2 {
        shown
    } else {
        OPEN_PLOTS
    };
    let grid = |h: &mut Html, part: &[usize], points: usize| {
        h.within("div", &[("class", &"grid two")], |h| {
            for &index in part {
                let row = &view.summary.rows[index];
                trace_figure(h, &view.columns[index], row.r_hat, row.ess_bulk, points);
            }
        });
    };
    grid(h, &order[..open], POINTS[0]);
    if shown > open {
        folded(
            h,
            &format!("Traces and ranks of {} more parameters", shown - open),
            |h| {
                grid(h, &order[open..shown], POINTS[1]);
            },
        );
    }
    if order.len() > shown {
        h.element(
            "p",
            &[("class", &"note")],
            format!(
                "{} further parameters are not drawn here.",
                order.len() - shown
            ),
        );
    }
}

const LEFT: [f64; 2] = [58.0, 250.0];
const RIGHT: [f64; 2] = [264.0, 394.0];
const TOP: f64 = 18.0;

fn trace_figure(h: &mut Html, column: &Column, r_hat: f64, ess: f64, points: usize) {
    let chains = &column.chains[..column.chains.len().min(MOST_CHAINS)];
    let row = match chains.len() {
        0 | 1 => 92.0,
        2 => 58.0,
        3 | 4 => 40.0,
        5..=8 => 27.0,
        _ => 18.0,
    };
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    let [low, high] = quantiles(&column.finite(), [0.0, 1.0]);
    let size = [400.0, TOP + row * chains.len() as f64 + 20.0];
    let agreement = if r_hat.is_nan() {
        String::new()
    } else {
        format!("R-hat {r_hat:.3}, ")
    };
    let ess = if ess.is_nan() {
        "no effective sample size".to_owned()
    } else {
        format!("bulk ESS {ess:.0}")
    };
    let says = format!(
        "Trace and rank plots of {}: {} chain{} of {longest} draws between {} and {}; {agreement}{ess}.",
        column.name,
        column.chains.len(),
        if column.chains.len() == 1 { "" } else { "s" },
        short(low),
        short(high),
    );
    h.within("figure", &[], |h| {
        h.within("figcaption", &[], |h| {
            h.element("b", &[], column.name);
            h.text(format!("\u{2002}{agreement}{ess}"));
            if let (true, Some(trouble)) = (column.not_finite() > 0, column.trouble()) {
                h.text(format!("; {trouble}"));
            }
        });
        plot(h, size, &says, |h| {
            text(h, "", [LEFT[0], 11.0], "draws in order");
            text(h, "", [RIGHT[0], 11.0], "ranks among all");
            let counts = rank_counts(chains, BINS);
            let most = counts.iter().flatten().copied().max().unwrap_or(1).max(1);
            for (i, draws) in chains.iter().enumerate() {
                let top = TOP + row * i as f64;
                let base = top + row - 5.0;
                rectangle(h, "row", [LEFT[0], top], [LEFT[1] - LEFT[0], row - 5.0]);
                rectangle(h, "row", [RIGHT[0], top], [RIGHT[1] - RIGHT[0], row - 5.0]);
                let middle = (top + base) / 2.0;
                text(h, "", [0.0, middle + 4.0], i + 1);
                let scale = Scale::new([low, high], [base - 2.0, top + 2.0]);
                if row > 35.0 || i == 0 {
                    levels(h, &scale, row);
                }
                trace(h, draws, longest, &scale, points);
                let heights = Scale::new([0.0, 1.08 * most as f64], [base, top]);
                bars(h, &counts[i], &heights, base);
                let even = heights.at(draws.len() as f64 / BINS as f64);
                line(h, "even", [RIGHT[0], even], [RIGHT[1], even]);
            }
            let bottom = TOP + row * chains.len() as f64 + 10.0;
            text(h, "", [LEFT[0], bottom], 1);
            text(h, "e", [LEFT[1], bottom], longest);
            text(h, "", [RIGHT[0], bottom], "lowest");
            text(h, "e", [RIGHT[1], bottom], "highest");
            text(h, "", [0.0, bottom], "chain");
        });
    });
}

/// Round numbers to the left of a trace, and lines across it.
fn levels(h: &mut Html, scale: &Scale, row: f64) {
    let most = if row > 80.0 { 4 } else { 2 };
    let mut last = f64::INFINITY;
    for tick in scale.ticks(most) {
        let y = scale.at(tick.value);
        if last - y < 11.0 {
            continue; // its label would touch the one below
        }
        last = y;
        line(h, "grid-line", [LEFT[0], y], [LEFT[1], y]);
        text(h, "e", [LEFT[0] - 4.0, y + 4.0], &tick.label);
    }
}

/// Only some of the draws, evenly spaced, so that a drawing of a long chain stays small.
fn trace(h: &mut Html, draws: &[f64], longest: usize, scale: &Scale, points: usize) {
    let along = Scale::new(
        [0.0, longest.max(2) as f64 - 1.0],
        [LEFT[0] + 1.0, LEFT[1] - 1.0],
    );
    let every = draws.len().div_ceil(points).max(1);
    let places = draws.iter().enumerate().step_by(every).map(|(i, &x)| {
        let y = if x.is_finite() { scale.at(x) } else { f64::NAN };
        (along.at(i as f64), y)
    });
    Path::through(places).draw(h, "trace");
}

fn bars(h: &mut Html, counts: &[usize], heights: &Scale, base: f64) {
    let width = (RIGHT[1] - RIGHT[0]) / BINS as f64;
    let mut path = Path::default();
    for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let left = RIGHT[0] + i as f64 * width;
        path.bar([left, left + width], heights.at(count as f64), base);
    }
    path.draw(h, "bars");
}

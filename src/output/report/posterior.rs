//! The results of the draws: the table of intervals, densities, and the prior for comparison.

use super::axis::{Scale, percent, short};
use super::columns::{Column, density, quantiles};
use super::html::Html;
use super::intervals::{self, Interval};
use super::plot::{Path, bottom_axis, circle, line, plot, text};
use super::{ReportPrior, ReportView};

/// Rows of a table that are shown, and the most in all.
const OPEN_ROWS: usize = 25;
const MOST_ROWS: usize = 400;
/// The same of densities.
const OPEN_PLOTS: usize = 12;
const MOST_PLOTS: usize = 120;

/// Vehtari et al. (2021): the R-hat to reach, and the one above which chains clearly disagree.
const R_HAT: [f64; 2] = [1.01, 1.05];

pub(super) fn posterior(h: &mut Html, view: &ReportView) {
    let condition = match (view.independent(), view.likelihood()) {
        (true, _) => "if the fitted Gaussian is close to the posterior",
        (false, Some(_)) => "with the privacy noise included, unless a verdict says otherwise",
        (false, None) => "if the chains have converged",
    };
    h.element("p", &[], format!("For each parameter the dot is the median, the thick bar holds the middle half of the draws and the thin bar nine tenths: given the model, the parameter lies within the thin bar with probability 90 %, {condition}."));
    table(h, view);
    h.element("h3", &[], "Densities, and what the prior said");
    prior_key(h, view);
    densities(h, view);
    compared_with_prior(h, view);
}

fn table(h: &mut Html, view: &ReportView) {
    let groups = intervals::groups(&view.columns);
    let shown = view.columns.len().min(MOST_ROWS);
    let mut parts: Vec<(usize, usize)> = vec![(0, shown.min(OPEN_ROWS))];
    if shown > OPEN_ROWS {
        parts.push((OPEN_ROWS, shown));
    }
    for (from, to) in parts {
        let rows = |h: &mut Html| rows_of(h, view, &groups, from, to);
        match from {
            0 => rows(h),
            _ => {
                let label = format!("The other {} parameters", to - from);
                folded(h, &label, rows);
            }
        }
    }
    if view.columns.len() > shown {
        h.element(
            "p",
            &[("class", &"note")],
            format!(
                "{} further parameters are not shown; summary.csv has all of them.",
                view.columns.len() - shown
            ),
        );
    }
}

fn rows_of(h: &mut Html, view: &ReportView, groups: &[intervals::Group], from: usize, to: usize) {
    scrolling_table(
        h,
        "pinned",
        "Posterior summaries: intervals, effective sample sizes and R-hat",
        |h| {
            head_row(
                h,
                ["Parameter", "50 % and 90 % intervals"],
                &[
                    "Mean", "SD", "5 %", "Median", "95 %", "Bulk ESS", "Tail ESS", "R-hat",
                ],
            );
            h.within("tbody", &[], |h| {
                for group in groups {
                    let rows: Vec<usize> = group
                        .columns
                        .iter()
                        .copied()
                        .filter(|i| (from..to).contains(i))
                        .collect();
                    for &index in &rows {
                        row(h, view, index, &group.scale);
                    }
                    if !rows.is_empty() {
                        h.within("tr", &[("aria-hidden", &"true")], |h| {
                            h.element("td", &[], "");
                            h.within("td", &[("class", &"plot")], |h| {
                                intervals::axis(h, &group.scale)
                            });
                            h.element("td", &[("colspan", &8)], "");
                        });
                    }
                }
            });
        },
    );
}

fn row(h: &mut Html, view: &ReportView, index: usize, scale: &Scale) {
    let (column, summary) = (&view.columns[index], &view.summary.rows[index]);
    let cells = summary.table_cells();
    h.within("tr", &[], |h| {
        h.within("th", &[("scope", &"row")], |h| {
            h.text(column.name);
            if let Some(trouble) = column.trouble() {
                h.element("span", &[("class", &"trouble")], trouble);
            }
        });
        h.within("td", &[("class", &"plot")], |h| {
            intervals::bar(h, Interval::of(&column.finite()).as_ref(), scale);
        });
        // mean, mcse, sd, mad, q5, q50, q95, bulk, tail, R-hat
        for place in [1, 3, 5, 6, 7, 8, 9] {
            let cell = cells.get(place).map_or("", String::as_str);
            h.element("td", &[], super::axis::minus(cell.to_owned()));
        }
        let r_hat = summary.r_hat;
        let class = match r_hat {
            _ if r_hat.is_nan() => "",
            _ if r_hat > R_HAT[1] => "poor",
            _ if r_hat > R_HAT[0] => "fair",
            _ => "",
        };
        let cell = if r_hat.is_nan() {
            "\u{2013}".to_owned()
        } else {
            cells.get(10).cloned().unwrap_or_default()
        };
        h.element("td", &[("class", &class)], cell);
    });
}

fn prior_key(h: &mut Html, view: &ReportView) {
    let has_prior = (0..view.columns.len()).any(|i| view.prior(i).is_some());
    h.within("p", &[("class", &"key")], |h| {
        key(h, "curve", "posterior");
        if has_prior {
            key(h, "prior", "prior, before the data");
        }
        h.within("span", &[], |h| h.text("shaded: the middle 90 %"));
    });
    match &view.report.prior {
        ReportPrior::None(why) => {
            h.element(
                "p",
                &[("class", &"note")],
                format!("The prior is not shown: {why}."),
            );
        }
        ReportPrior::Drawn(_) if !has_prior => {
            h.element(
                "p",
                &[("class", &"note")],
                "The prior is not shown: it is flat, or was not drawn.",
            );
        }
        ReportPrior::Drawn(_) => {}
    }
}

fn key(h: &mut Html, class: &'static str, says: &str) {
    h.within("span", &[], |h| {
        super::plot::decoration(h, [30.0, 14.0], |h| line(h, class, [1.0, 7.0], [29.0, 7.0]));
        h.text(says);
    });
}

fn densities(h: &mut Html, view: &ReportView) {
    let drawable: Vec<usize> = (0..view.columns.len())
        .filter(|&i| view.columns[i].varies())
        .collect();
    let shown = drawable.len().min(MOST_PLOTS);
    let open = if shown <= OPEN_PLOTS + 3 {
        shown
    } else {
        OPEN_PLOTS
    };
    let grid = |h: &mut Html, part: &[usize]| {
        h.within("div", &[("class", &"grid three")], |h| {
            for &index in part {
                density_figure(h, &view.columns[index], view.prior(index));
            }
        });
    };
    grid(h, &drawable[..open]);
    if shown > open {
        folded(h, &format!("{} more densities", shown - open), |h| {
            grid(h, &drawable[open..shown]);
        });
    }
    let rest = drawable.len() - shown;
    if rest > 0 {
        h.element(
            "p",
            &[("class", &"note")],
            format!("{rest} further parameters are not drawn here."),
        );
    }
    let flat: Vec<String> = view
        .columns
        .iter()
        .filter(|c| !c.varies())
        .take(20)
        .map(|c| format!("{} ({})", c.name, c.trouble().unwrap_or_default()))
        .collect();
    if !flat.is_empty() {
        h.element(
            "p",
            &[("class", &"note")],
            format!(
                "Without a density, since there is none to draw: {}.",
                flat.join(", ")
            ),
        );
    }
}

const SIZE: [f64; 2] = [300.0, 150.0];
const ENDS: [f64; 2] = [10.0, 290.0];
const BASE: f64 = 112.0;

fn density_figure(h: &mut Html, column: &Column, prior: Option<&[f64]>) {
    let draws = column.finite();
    let Some(interval) = Interval::of(&draws) else {
        return;
    };
    let of_prior = prior.and_then(Interval::of);
    let scale = Scale::new(window(&draws, &interval, of_prior.as_ref()), ENDS);
    let curve = density(&draws, [scale.low, scale.high], 110);
    let prior_curve = prior.map(|p| density(p, [scale.low, scale.high], 70));
    let top = curve
        .iter()
        .chain(prior_curve.iter().flatten())
        .map(|p| p.1)
        .fold(0.0, f64::max);
    let height = Scale::new([0.0, top.max(f64::MIN_POSITIVE)], [BASE, 12.0]);
    let says = format!(
        "Posterior density of {}: median {}, 90 % interval {} to {}{}.",
        column.name,
        short(interval.q50),
        short(interval.q5),
        short(interval.q95),
        of_prior.map_or_else(String::new, |p| format!(
            "; the prior's 90 % interval is {} to {}",
            short(p.q5),
            short(p.q95)
        )),
    );
    h.within("figure", &[], |h| {
        h.within("figcaption", &[], |h| {
            h.element("b", &[], column.name);
            h.text(format!(
                "\u{2002}{} ({} to {})",
                short(interval.q50),
                short(interval.q5),
                short(interval.q95)
            ));
        });
        plot(h, SIZE, &says, |h| {
            let place = |&(x, y): &(f64, f64)| (scale.at(x), height.at(y));
            area(h, "area", &curve, [scale.low, scale.high], place);
            area(h, "area core", &curve, [interval.q5, interval.q95], place);
            Path::through(curve.iter().map(place)).draw(h, "curve");
            if let Some(curve) = &prior_curve {
                Path::through(curve.iter().map(place)).draw(h, "prior");
            }
            let place_of = |x: f64| scale.held(x);
            line(
                h,
                "thin",
                [place_of(interval.q5), BASE + 9.0],
                [place_of(interval.q95), BASE + 9.0],
            );
            line(
                h,
                "thick",
                [place_of(interval.q25), BASE + 9.0],
                [place_of(interval.q75), BASE + 9.0],
            );
            circle(h, "dot", [place_of(interval.q50), BASE + 9.0], 4.0);
            bottom_axis(h, &scale, BASE + 19.0, 5);
            let lost = column.not_finite();
            if lost > 0 {
                text(
                    h,
                    "",
                    [ENDS[0], 10.0],
                    format!("{lost} draws are not numbers"),
                );
            }
        });
    });
}

/// The part of the axis that is shown: nearly all draws, and the nearby part of the prior.
fn window(draws: &[f64], posterior: &Interval, prior: Option<&Interval>) -> [f64; 2] {
    let [low, high, least, most] = quantiles(draws, [0.002, 0.998, 0.0, 1.0]);
    let width = (high - low).max(posterior.width());
    let mut ends = [
        (low - 0.12 * width).max(least - 0.1 * width),
        (high + 0.12 * width).min(most + 0.1 * width),
    ];
    if let Some(prior) = prior {
        let reach = 1.2 * width;
        ends[0] = ends[0].min(prior.q5.max(low - reach));
        ends[1] = ends[1].max(prior.q95.min(high + reach));
    }
    ends
}

fn area(
    h: &mut Html,
    class: &'static str,
    curve: &[(f64, f64)],
    [low, high]: [f64; 2],
    place: impl Fn(&(f64, f64)) -> (f64, f64),
) {
    let within: Vec<(f64, f64)> = curve
        .iter()
        .filter(|(x, _)| (low..=high).contains(x))
        .map(place)
        .collect();
    if let (Some(first), Some(last)) = (within.first(), within.last()) {
        let ends = [first.0, last.0];
        Path::through(within.iter().copied())
            .down_to(ends, BASE)
            .draw(h, class);
    }
}

fn compared_with_prior(h: &mut Html, view: &ReportView) {
    let both: Vec<(usize, Interval, Interval)> = (0..view.columns.len())
        .filter_map(|i| {
            let prior = Interval::of(view.prior(i)?)?;
            let posterior = Interval::of(&view.columns[i].finite())?;
            Some((i, prior, posterior))
        })
        .collect();
    if both.is_empty() {
        return;
    }
    h.element("h3", &[], "What was learnt: prior against posterior");
    h.element("p", &[], "The prior, in dashes, is what the model held possible before it saw any data; it is public. Where the posterior is hardly narrower than the prior, the data, or what the noise left of them, said little about that parameter.");
    let shown = both.len().min(MOST_ROWS);
    let open = if shown <= OPEN_ROWS { shown } else { OPEN_ROWS };
    let rows = |h: &mut Html, part: &[(usize, Interval, Interval)]| {
        scrolling_table(
            h,
            "pinned",
            "90 % intervals before and after the data, each row on an axis of its own",
            |h| {
                head_row(
                    h,
                    ["Parameter", "Prior above, posterior below"],
                    &["Prior", "Posterior", "Width left"],
                );
                h.within("tbody", &[], |h| {
                    for (index, prior, posterior) in part {
                        h.within("tr", &[], |h| {
                            h.element("th", &[("scope", &"row")], view.columns[*index].name);
                            h.within("td", &[("class", &"plot")], |h| {
                                intervals::pair_of_bars(h, prior, posterior);
                            });
                            for interval in [prior, posterior] {
                                h.element(
                                    "td",
                                    &[],
                                    format!("{} to {}", short(interval.q5), short(interval.q95)),
                                );
                            }
                            h.element("td", &[], percent(posterior.width() / prior.width()));
                        });
                    }
                });
            },
        );
    };
    rows(h, &both[..open]);
    if shown > open {
        folded(h, &format!("The other {} parameters", shown - open), |h| {
            rows(h, &both[open..shown])
        });
    }
}

/// Names of columns: of a column of words, of one of plots, and of others.
pub(super) fn head_row(h: &mut Html, [words, plot]: [&str; 2], others: &[&str]) {
    h.within("thead", &[], |h| {
        h.within("tr", &[], |h| {
            h.element("th", &[("scope", &"col"), ("class", &"words")], words);
            h.element("th", &[("scope", &"col"), ("class", &"plot words")], plot);
            for name in others {
                h.element("th", &[("scope", &"col")], name);
            }
        });
    });
}

pub(super) fn scrolling_table(
    h: &mut Html,
    class: &'static str,
    caption: &str,
    content: impl FnOnce(&mut Html),
) {
    h.within(
        "div",
        &[
            ("class", &"scroll"),
            ("tabindex", &"0"),
            ("role", &"region"),
            ("aria-label", &caption),
        ],
        |h| {
            h.within("table", &[("class", &class)], |h| {
                h.element("caption", &[], caption);
                content(h);
            });
        },
    );
    h.line();
}

pub(super) fn folded(h: &mut Html, label: &str, content: impl FnOnce(&mut Html)) {
    h.within("details", &[], |h| {
        h.element("summary", &[], label);
        content(h);
    });
    h.line();
}

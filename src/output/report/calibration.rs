//! The page of a calibration: what was found, and each parameter's ranks in a band.

use super::axis::Scale;
use super::html::Html;
use super::page::document;
use super::plot::{Path, bottom_axis, left_axis, line, plot, text};
use super::posterior::{folded, scrolling_table};
use crate::diagnostics::{Calibration, Coverage, ParameterCalibration};

/// Drawings that are shown, and the most in all.
const OPEN_PLOTS: usize = 12;
const MOST_PLOTS: usize = 120;

/// The material of the page.
#[derive(Debug)]
pub(crate) struct CalibrationPage<'a> {
    /// The model's name.
    pub name: &'a str,
    /// The findings, in sentences.
    pub answer: &'a [String],
    /// The runs and their tables, in a sentence.
    pub about: &'a str,
    pub calibration: &'a Calibration,
}

impl CalibrationPage<'_> {
    pub fn to_html(&self) -> String {
        let title = format!("{}: calibration on simulated tables", self.name);
        document(&title, |h| {
            h.within("header", &[("class", &"top")], |h| {
                let kicker = "Simulated tables \u{b7} calibration";
                h.element("p", &[("class", &"kicker")], kicker);
                h.element("h1", &[], self.name);
                h.element("p", &[("class", &"note")], self.about);
            });
            h.within("main", &[], |h| self.content(h));
            h.within("footer", &[], |h| {
                h.text(concat!(
                    "dpm ",
                    env!("CARGO_PKG_VERSION"),
                    ". No data were read for this page."
                ));
            });
        })
    }

    fn content(&self, h: &mut Html) {
        h.within("section", &[], |h| {
            for sentence in self.answer {
                h.element("p", &[("class", &"lead")], sentence);
            }
            self.table(h);
        });
        h.within("section", &[], |h| {
            h.element("h2", &[], "Ranks");
            h.element("p", &[], format!("For each table the true value of a parameter is ranked among {} draws. If runs are calibrated, all ranks are equally likely. The line is the share of tables whose rank is below each place, less the share expected; the band holds the lines of all parameters together with probability 95 % at least. A line that first rises and then falls, like a hill, means true values that are too often low among the draws, and a valley that they are too often high; a line with a hill and then a valley means intervals that are too narrow, the reverse that they are too wide.", self.calibration.band.ranks));
            let mut order: Vec<&ParameterCalibration> = self.calibration.parameters.iter().collect();
            order.sort_by_key(|p| p.within_band);
            order.truncate(MOST_PLOTS);
            let (open, rest) = order.split_at(order.len().min(OPEN_PLOTS));
            self.figures(h, open);
            if !rest.is_empty() {
                let label = format!("Ranks of {} more parameters", rest.len());
                folded(h, &label, |h| self.figures(h, rest));
            }
        });
    }

    fn table(&self, h: &mut Html) {
        scrolling_table(
            h,
            "pinned",
            "Coverage, and the widths of 90 % intervals",
            |h| {
                h.within("thead", &[], |h| {
                    h.within("tr", &[], |h| {
                        h.element("th", &[("scope", &"col"), ("class", &"words")], "Parameter");
                        for name in [
                            "50 % intervals hold the truth",
                            "90 % intervals hold it",
                            "Width / without privacy",
                            "Width / prior",
                            "Ranks",
                        ] {
                            h.element("th", &[("scope", &"col")], name);
                        }
                    });
                });
                h.within("tbody", &[], |h| {
                    for p in &self.calibration.parameters {
                        h.within("tr", &[], |h| {
                            h.element("th", &[("scope", &"row")], &p.name);
                            for coverage in p.coverage {
                                h.element("td", &[], with_error(coverage));
                            }
                            for ratio in [p.width_to_reference, p.width_to_prior] {
                                let ratio = ratio.filter(|ratio| ratio.is_finite());
                                let ratio = ratio.map(|ratio| format!("{ratio:.2}"));
                                let ratio = ratio.unwrap_or_else(|| "\u{2013}".to_owned());
                                h.element("td", &[], ratio);
                            }
                            if p.within_band {
                                h.element("td", &[], "within the band")
                            } else {
                                h.element("td", &[("class", &"poor")], "off")
                            }
                        });
                        h.line();
                    }
                });
            },
        );
    }

    fn figures(&self, h: &mut Html, parameters: &[&ParameterCalibration]) {
        h.within("div", &[("class", &"grid three")], |h| {
            for parameter in parameters {
                self.figure(h, parameter);
            }
        });
    }

    fn figure(&self, h: &mut Html, parameter: &ParameterCalibration) {
        const SIZE: [f64; 2] = [280.0, 190.0];
        const LEFT: f64 = 44.0;
        const BASE: f64 = 158.0;
        let band = &self.calibration.band;
        let limits = band.differences();
        let most = (limits.iter().flatten().chain(&parameter.ecdf_difference))
            .fold(0.0, |most: f64, d| most.max(d.abs()));
        let x = Scale::new([0.0, 1.0], [LEFT, SIZE[0] - 8.0]);
        let y = Scale::new([-1.08 * most, 1.08 * most], [BASE, 10.0]);
        let says = format!(
            "Difference between the distribution of the ranks of {} and a uniform one: {} the band.",
            parameter.name,
            if parameter.within_band {
                "within"
            } else {
                "it leaves"
            }
        );
        let at = |(z, d): (f64, f64)| (x.at(z), y.at(d));
        h.within("figure", &[], |h| {
            h.within("figcaption", &[], |h| {
                h.element("b", &[], &parameter.name);
                if parameter.within_band {
                    h.text("\u{2002}within the band");
                } else {
                    let said = "\u{2002}leaves the band";
                    h.element("span", &[("class", &"poor")], said);
                }
            });
            plot(h, SIZE, &says, |h| {
                let points = band.points();
                let side = |k: usize| points.iter().copied().zip(limits.iter().map(move |l| l[k]));
                let ends = |middle: Vec<(f64, f64)>| {
                    std::iter::once((0.0, 0.0))
                        .chain(middle)
                        .chain([(1.0, 0.0)])
                };
                let upper = ends(side(1).collect());
                let lower: Vec<_> = side(0).collect();
                let around = upper.chain(lower.into_iter().rev()).map(at);
                Path::through(around).draw(h, "area core");
                left_axis(h, &y, [LEFT, SIZE[0] - 8.0], 4);
                line(h, "axis", [LEFT, y.at(0.0)], [SIZE[0] - 8.0, y.at(0.0)]);
                bottom_axis(h, &x, BASE, 5);
                text(
                    h,
                    "m",
                    [0.5 * (LEFT + SIZE[0]), SIZE[1] - 2.0],
                    "rank, as a share",
                );
                let found = points
                    .iter()
                    .copied()
                    .zip(parameter.ecdf_difference.iter().copied());
                let class = if parameter.within_band {
                    "curve"
                } else {
                    "curve off"
                };
                Path::through(ends(found.collect()).map(at)).draw(h, class);
            });
        });
        h.line();
    }
}

/// As many digits everywhere, so that they stand below each other.
fn with_error(coverage: Coverage) -> String {
    let percent = |share: f64| format!("{:.1}\u{202f}%", 100.0 * share);
    format!(
        "{} \u{b1} {}",
        percent(coverage.share),
        percent(coverage.mcse)
    )
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::diagnostics::{RANKED, Recovered};

    // If it failed: a page would show another parameter's ranks, or hide that a run is wrong.
    #[test]
    fn the_page_shows_what_leaves_the_band() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let draws: Vec<f64> = (0..200).map(f64::from).collect();
        let runs: Vec<Vec<Recovered>> = (0..50)
            .map(|i| {
                let even = Recovered::of(&draws, 4.0 * f64::from(i), Some(&draws), &mut rng);
                vec![even, Recovered::of(&draws, -1.0, Some(&draws), &mut rng)]
            })
            .collect();
        let names = ["a<b".to_owned(), "off".to_owned()];
        let calibration = Calibration::of(&names, &runs, &[None, Some(360.0)], RANKED);
        let page = CalibrationPage {
            name: "m",
            answer: &["Well.".to_owned()],
            about: "50 tables",
            calibration: &calibration,
        };
        let html = page.to_html();
        assert!(html.contains("a&lt;b") && html.contains("Well.") && html.contains("50 tables"));
        assert_eq!(html.matches("<svg").count(), 2);
        // In the caption and for those who do not see the drawing.
        assert_eq!(html.matches("leaves the band").count(), 2);
        assert!(!html.contains("NaN") && !html.contains("<script"));
    }
}

//! Figures as SVG: curves with bands, and clouds of points.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 42.0;
/// Okabe and Ito's colours, which colour-blind readers can tell apart.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999",
];

/// The end of a published curve's label; the curve has the colour of the label without it.
pub const PUBLISHED: &str = ", published";

/// A figure of several panels side by side, with one legend.
pub struct Figure {
    pub title: String,
    pub panels: Vec<Panel>,
}

#[derive(Default)]
pub struct Panel {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub log_x: bool,
    pub log_y: bool,
    pub series: Vec<Series>,
}

pub struct Series {
    pub label: String,
    pub mark: Mark,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mark {
    Line,
    Dashed,
    Dots,
}

#[derive(Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Quartiles, where there are.
    pub band: Option<(f64, f64)>,
}

impl Point {
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, band: None }
    }
}

impl Series {
    pub fn dots(label: &str, points: impl Iterator<Item = (f64, f64)>) -> Series {
        Series {
            label: label.into(),
            mark: Mark::Dots,
            points: points.map(|(x, y)| Point::new(x, y)).collect(),
        }
    }

    /// A curve for each label, of points in any order.
    pub fn curves(points: impl IntoIterator<Item = (String, Point)>) -> Vec<Series> {
        let mut curves: Vec<Series> = Vec::new();
        for (label, point) in points {
            match curves.iter_mut().find(|s| s.label == label) {
                Some(s) => s.points.push(point),
                None => curves.push(Series {
                    label,
                    mark: Mark::Line,
                    points: vec![point],
                }),
            }
        }
        for s in &mut curves {
            s.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        curves
    }

    pub fn line(label: &str, points: impl Iterator<Item = (f64, f64)>) -> Series {
        Series {
            mark: Mark::Line,
            ..Series::dots(label, points)
        }
    }
}

/// One axis: from values to places.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64>, log: bool) -> Axis {
        let shown = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (mut low, mut high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
            (l.min(v), h.max(v))
        });
        if low > high {
            (low, high) = (if log { 1.0 } else { 0.0 }, 1.0 + f64::from(u8::from(log)));
        }
        if log {
            let margin = (high / low).powf(0.05).max(1.05);
            (low, high) = (low / margin, high * margin);
        } else {
            let margin = if high > low { 0.05 * (high - low) } else { 0.5 };
            (low, high) = (low - margin, high + margin);
        }
        Axis { low, high, log }
    }

    /// From 0 to 1.
    fn place(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.log {
            let first = self.low.log10().floor() as i32;
            let last = self.high.log10().ceil() as i32;
            // Few decades get a 2 and a 5 between them.
            let between: &[f64] = if last - first <= 3 {
                &[1.0, 2.0, 5.0]
            } else {
                &[1.0]
            };
            for power in first..=last {
                ticks.extend(between.iter().map(|m| m * 10f64.powi(power)));
            }
        } else {
            let raw = (self.high - self.low) / 5.0;
            let power = 10f64.powf(raw.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0]
                .into_iter()
                .map(|m| m * power)
                .find(|s| *s >= raw)
                .unwrap_or(raw);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            ticks.extend((first..=last).map(|k| k as f64 * step));
        }
        ticks.retain(|t| (self.low..=self.high).contains(t));
        ticks
    }
}

impl Figure {
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let labels = self.labels();
        let columns = self.panels.len().clamp(1, 4);
        let rows = self.panels.len().div_ceil(columns);
        let legend = 20.0 * labels.len() as f64 + 12.0;
        let width = WIDTH * columns as f64;
        let height = 26.0 + HEIGHT * rows as f64 + legend;
        let mut svg = String::new();
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(svg, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        text(&mut svg, width / 2.0, 18.0, "middle", &self.title)?;
        for (i, panel) in self.panels.iter().enumerate() {
            let (left, top) = (
                WIDTH * (i % columns) as f64,
                26.0 + HEIGHT * (i / columns) as f64,
            );
            writeln!(svg, r#"<g transform="translate({left} {top})">"#)?;
            panel.draw(&mut svg, &labels)?;
            writeln!(svg, "</g>")?;
        }
        for (i, (label, mark)) in labels.iter().enumerate() {
            let y = 26.0 + HEIGHT * rows as f64 + 14.0 + 20.0 * i as f64;
            let colour = colour(label, &labels);
            match mark {
                Mark::Dots => writeln!(
                    svg,
                    r#"<circle cx="76" cy="{}" r="4" fill="{colour}"/>"#,
                    y - 4.0
                )?,
                _ => writeln!(
                    svg,
                    r#"<path d="M{LEFT} {0} h36" stroke="{colour}" stroke-width="2"{1}/>"#,
                    y - 4.0,
                    dashes(*mark)
                )?,
            }
            text(&mut svg, LEFT + 44.0, y, "start", label)?;
        }
        writeln!(svg, "</svg>")?;
        std::fs::write(path, svg)?;
        println!("{}", path.display());
        Ok(())
    }

    fn labels(&self) -> Vec<(String, Mark)> {
        let mut labels: Vec<(String, Mark)> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !labels.iter().any(|(label, _)| *label == series.label) {
                labels.push((series.label.clone(), series.mark));
            }
        }
        labels
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, labels: &[(String, Mark)]) -> Result<(), Box<dyn Error>> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x_axis = Axis::around(points().map(|p| p.x), self.log_x);
        let heights = points().flat_map(|p| {
            let (low, high) = p.band.unwrap_or((p.y, p.y));
            [p.y, low, high]
        });
        let y_axis = Axis::around(heights, self.log_y);
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let x = |value: f64| LEFT + (right - LEFT) * x_axis.place(value);
        let y = |value: f64| bottom - (bottom - TOP) * y_axis.place(value);
        text(svg, (LEFT + right) / 2.0, TOP - 8.0, "middle", &self.title)?;
        text(svg, (LEFT + right) / 2.0, HEIGHT - 8.0, "middle", self.x)?;
        writeln!(
            svg,
            r#"<text transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text>"#,
            (TOP + bottom) / 2.0,
            escaped(self.y)
        )?;
        for tick in x_axis.ticks() {
            let at = x(tick);
            writeln!(
                svg,
                r##"<path d="M{at:.1} {TOP} V{bottom}" stroke="#e5e5e5"/>"##
            )?;
            text(svg, at, bottom + 15.0, "middle", &tick_label(tick))?;
        }
        for tick in y_axis.ticks() {
            let at = y(tick);
            writeln!(
                svg,
                r##"<path d="M{LEFT} {at:.1} H{right}" stroke="#e5e5e5"/>"##
            )?;
            text(svg, LEFT - 5.0, at + 4.0, "end", &tick_label(tick))?;
        }
        writeln!(
            svg,
            r##"<path d="M{LEFT} {TOP} V{bottom} H{right}" fill="none" stroke="#444"/>"##
        )?;
        let drawn = |p: &&Point| {
            p.x.is_finite()
                && p.y.is_finite()
                && (!self.log_x || p.x > 0.0)
                && (!self.log_y || p.y > 0.0)
        };
        for series in &self.series {
            let colour = colour(&series.label, labels);
            let shown: Vec<&Point> = series.points.iter().filter(drawn).collect();
            if series.mark == Mark::Dots {
                let radius = if shown.len() > 100 { 1.3 } else { 3.5 };
                for p in shown {
                    writeln!(
                        svg,
                        r#"<circle cx="{:.1}" cy="{:.1}" r="{radius}" fill="{colour}" fill-opacity="0.6"/>"#,
                        x(p.x),
                        y(p.y)
                    )?;
                }
                continue;
            }
            let path = |values: Vec<(f64, f64)>| {
                let place = |(a, b): (f64, f64)| format!("{:.1} {:.1}", x(a), y(b));
                values.into_iter().map(place).collect::<Vec<_>>().join(" L")
            };
            let banded: Vec<&&Point> = shown.iter().filter(|p| p.band.is_some()).collect();
            if banded.len() > 1 {
                let edge = |p: &&&Point, high: bool| {
                    let (low, top) = p.band.unwrap_or((p.y, p.y));
                    (p.x, if high { top } else { low })
                };
                let mut outline: Vec<(f64, f64)> = banded.iter().map(|p| edge(p, false)).collect();
                outline.extend(banded.iter().rev().map(|p| edge(p, true)));
                writeln!(
                    svg,
                    r#"<path d="M{}Z" fill="{colour}" fill-opacity="0.15"/>"#,
                    path(outline)
                )?;
            }
            writeln!(
                svg,
                r#"<path d="M{}" fill="none" stroke="{colour}" stroke-width="1.8"{}/>"#,
                path(shown.iter().map(|p| (p.x, p.y)).collect()),
                dashes(series.mark)
            )?;
            if shown.len() <= 30 {
                for p in shown {
                    writeln!(
                        svg,
                        r#"<circle cx="{:.1}" cy="{:.1}" r="2.6" fill="{colour}"/>"#,
                        x(p.x),
                        y(p.y)
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn colour(label: &str, labels: &[(String, Mark)]) -> &'static str {
    let own = label.strip_suffix(PUBLISHED).unwrap_or(label);
    let at = labels.iter().position(|(label, _)| *label == own);
    COLOURS[at.unwrap_or(0) % COLOURS.len()]
}

fn dashes(mark: Mark) -> &'static str {
    if mark == Mark::Dashed {
        r#" stroke-dasharray="5 4""#
    } else {
        ""
    }
}

fn text(
    svg: &mut String,
    x: f64,
    y: f64,
    anchor: &str,
    words: &str,
) -> Result<(), std::fmt::Error> {
    writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
        escaped(words)
    )
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

fn tick_label(value: f64) -> String {
    let shown = if value == 0.0 { 0.0 } else { value };
    match shown.abs() {
        a if a != 0.0 && !(1e-3..1e5).contains(&a) => format!("{shown:.0e}"),
        _ => {
            let long = format!("{shown:.4}");
            long.trim_end_matches('0').trim_end_matches('.').into()
        }
    }
}

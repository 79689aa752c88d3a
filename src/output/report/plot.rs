//! Drawings: inline SVG whose colours are the page's, light or dark.

use std::fmt::{self, Display, Write};

use super::axis::Scale;
use super::html::Html;

/// A drawing of that size; its text alternative describes what a reader would see.
pub(super) fn plot(
    h: &mut Html,
    [width, height]: [f64; 2],
    says: &dyn Display,
    draw: impl FnOnce(&mut Html),
) {
    let view = format!("0 0 {} {}", Place(width), Place(height));
    h.within(
        "svg",
        &[("viewBox", &view), ("role", &"img"), ("aria-label", says)],
        draw,
    );
}

/// A drawing next to text with the same content.
pub(super) fn decoration(h: &mut Html, [width, height]: [f64; 2], draw: impl FnOnce(&mut Html)) {
    let view = format!("0 0 {} {}", Place(width), Place(height));
    h.within("svg", &[("viewBox", &view), ("aria-hidden", &"true")], draw);
}

/// A length on a drawing, with a digit after the point at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(pub f64);

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if !tenths.is_finite() {
            return f.write_str("0");
        }
        if tenths % 10.0 == 0.0 {
            write!(f, "{}", tenths as i64 / 10)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

/// A line through points, interrupted where a point is not a number.
#[derive(Debug, Default)]
pub(super) struct Path {
    text: String,
    down: bool,
}

impl Path {
    pub fn through(points: impl IntoIterator<Item = (f64, f64)>) -> Path {
        let mut path = Path::default();
        for (x, y) in points {
            path.point(x, y);
        }
        path
    }

    pub fn point(&mut self, x: f64, y: f64) {
        if !(x.is_finite() && y.is_finite()) {
            self.down = false;
            return;
        }
        let step = if self.down { 'L' } else { 'M' };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{step}{} {}", Place(x), Place(y));
        self.down = true;
    }

    /// A dot, where the line's ends are round.
    pub fn dot(&mut self, x: f64, y: f64) {
        if x.is_finite() && y.is_finite() {
            let _ = write!(self.text, "M{} {}h0", Place(x), Place(y));
        }
    }

    /// A bar from `base` up.
    pub fn bar(&mut self, [left, right]: [f64; 2], top: f64, base: f64) {
        let _ = write!(
            self.text,
            "M{} {}V{}H{}V{}z",
            Place(left),
            Place(base),
            Place(top),
            Place(right),
            Place(base)
        );
    }

    /// Closed along the line `base`, for areas.
    pub fn down_to(mut self, [left, right]: [f64; 2], base: f64) -> Path {
        if self.text.is_empty() {
            return self;
        }
        let _ = write!(
            self.text,
            "L{} {}L{} {}z",
            Place(right),
            Place(base),
            Place(left),
            Place(base)
        );
        self
    }

    pub fn draw(&self, h: &mut Html, class: &'static str) {
        if !self.text.is_empty() {
            h.empty("path", &[("class", &class), ("d", &self.text)]);
        }
    }
}

pub(super) fn line(h: &mut Html, class: &'static str, from: [f64; 2], to: [f64; 2]) {
    Path::through([(from[0], from[1]), (to[0], to[1])]).draw(h, class);
}

pub(super) fn circle(h: &mut Html, class: &'static str, [x, y]: [f64; 2], radius: f64) {
    h.empty(
        "circle",
        &[
            ("class", &class),
            ("cx", &Place(x)),
            ("cy", &Place(y)),
            ("r", &Place(radius)),
        ],
    );
}

pub(super) fn rectangle(h: &mut Html, class: &'static str, [x, y]: [f64; 2], size: [f64; 2]) {
    h.empty(
        "rect",
        &[
            ("class", &class),
            ("x", &Place(x)),
            ("y", &Place(y)),
            ("width", &Place(size[0].max(0.0))),
            ("height", &Place(size[1].max(0.0))),
        ],
    );
}

/// Text whose class says where it is held: `m` in the middle, `e` at its end.
pub(super) fn text(h: &mut Html, class: &'static str, [x, y]: [f64; 2], text: impl Display) {
    h.element(
        "text",
        &[("class", &class), ("x", &Place(x)), ("y", &Place(y))],
        text,
    );
}

/// An axis along the bottom, at height `y`, with numbers under it.
pub(super) fn bottom_axis(h: &mut Html, scale: &Scale, y: f64, most: usize) {
    line(h, "axis", [scale.from, y], [scale.to, y]);
    for tick in scale.ticks(most) {
        let x = scale.at(tick.value);
        line(h, "axis", [x, y], [x, y + 4.0]);
        text(h, "m", [x, y + 15.0], &tick.label);
    }
}

/// Lines across at round numbers, with the numbers to their left.
pub(super) fn left_axis(h: &mut Html, scale: &Scale, [left, right]: [f64; 2], most: usize) {
    for tick in scale.ticks(most) {
        let y = scale.at(tick.value);
        line(h, "grid-line", [left, y], [right, y]);
        text(h, "e", [left - 5.0, y + 4.0], &tick.label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_off_where_there_is_no_number() {
        let path = Path::through([(0.0, 1.0), (1.25, 2.0), (2.0, f64::NAN), (3.0, -1.0)]);
        assert_eq!(path.text, "M0 1L1.3 2M3 -1");
        assert_eq!(Place(-0.04).to_string(), "0");
    }
}

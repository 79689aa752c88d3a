//! A density of one variable, on a grid that is refined several times where the mass is.

use std::sync::LazyLock;

use rand::{Rng, RngExt};

use crate::function::special::normal_cdf;
use crate::function::{asinh, exp, exp_m1, ln, ln_1p, sinh};
use crate::linear::vectorised;

/// Cells of a grid.
pub(super) const CELLS: usize = 48;
/// Cells this many nats below the peak, and further, get no finer, unless they have more than
/// the least share of the mass: a tail as of a Student t with few degrees of freedom is wide.
const DEPTH: f64 = 20.0;
const LEAST: f64 = 1e-7;
/// The share of new cells that is spread over all places with any mass, and not concentrated where
/// most of it is.
const EVEN: f64 = 0.25;
/// A grid is fine enough when no cell has more than this share of the mass.
const LARGEST: f64 = 3.0 / CELLS as f64;
/// The most refinements. Each makes cells finer by a factor of about 16 where needed.
pub(super) const REFINEMENTS: usize = 12;
/// The step between two edges at even normal scores.
const SCORE_STEP: f64 = 0.2;
/// Cells at either end that reach further while the tails are not known.
const OUTER: usize = 4;
/// The most mass in a cell at either end, which ends with the scores, 4.8 and 4.6.
const IN_TAIL: f64 = 1e-4;
/// Cells whose log density changes by more than this are taken to change by this.
const STEEPEST: f64 = 20.0;
/// The largest size of a value in an unbounded column.
pub(super) const FAR: f64 = 1e9;
/// The most mass that may be near there: the tail of a lognormal outcome that spreads over many orders of magnitude,
/// but not a density that is flat.
const MOST_BEYOND: f64 = 0.01;

/// A finite bound: an infinite one is none.
pub(super) fn finite(bound: Option<f64>) -> Option<f64> {
    bound.filter(|b| b.is_finite())
}

/// The density of one column of one record, at the middles of cells. An int stands for the
/// interval up to the next one.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    is_int: bool,
    /// Whether edges are on the scale of asinh, as where a bound is missing: the value is
    /// `about + scale sinh(edge)`.
    curved: bool,
    about: f64,
    scale: f64,
    edges: [f64; CELLS + 1],
    /// The middles of cells and their widths, in values of the column.
    middles: [f64; CELLS],
    widths: [f64; CELLS],
    log_density: [f64; CELLS],
    /// The variate of the density at each cell.
    variate: [f64; CELLS],
    /// Whether a cell is one int, or an odd number of ints about its middle; some may be empty.
    /// Such a grid is not refined further.
    whole: bool,
    done: bool,
}

impl Grid {
    pub fn over(is_int: bool, lower: Option<f64>, upper: Option<f64>) -> Grid {
        let (lower, upper) = (finite(lower), finite(upper));
        let curved = lower.is_none() || upper.is_none();
        let scale = |x: f64| if curved { x.asinh() } else { x };
        let last = upper.map(|u| if is_int { u + 1.0 } else { u });
        let (low, high) = (scale(lower.unwrap_or(-FAR)), scale(last.unwrap_or(FAR)));
        // The difference of the bounds may overflow.
        let width = high / CELLS as f64 - low / CELLS as f64;
        let mut grid = Grid {
            is_int,
            curved,
            about: 0.0,
            scale: 1.0,
            edges: std::array::from_fn(|k| low + width * k as f64),
            middles: [0.0; CELLS],
            widths: [0.0; CELLS],
            log_density: [f64::NEG_INFINITY; CELLS],
            variate: [0.0; CELLS],
            whole: false,
            done: false,
        };
        grid.give_each_int_its_cell();
        grid.find_values();
        grid
    }

    /// Used where there are no more ints than cells.
    fn give_each_int_its_cell(&mut self) {
        let edge = |k: usize| self.scale_to_value(self.edges[k]);
        // An edge that stands for a whole number may be slightly off it.
        let (low, high) = ((edge(0) + 1e-6).floor(), (edge(CELLS) - 1e-6).ceil());
        if self.is_int && high - low <= CELLS as f64 {
            self.whole = true;
            self.curved = false;
            self.edges = std::array::from_fn(|k| (low + k as f64).min(high));
        }
    }

    /// Middles and widths, from the edges.
    fn find_values(&mut self) {
        let mut at_edges = self.edges;
        self.middles = std::array::from_fn(|k| 0.5 * self.edges[k] + 0.5 * self.edges[k + 1]);
        if self.curved {
            put_on_curve(self.about, self.scale, &mut at_edges);
            put_on_curve(self.about, self.scale, &mut self.middles);
        }
        self.widths = std::array::from_fn(|k| at_edges[k + 1] - at_edges[k]);
        if self.is_int {
            self.middles = self.middles.map(f64::floor);
        }
    }

    /// From the scale of the edges to that of the column.
    fn value(&self, at: f64) -> f64 {
        let value = self.scale_to_value(at);
        if self.is_int { value.floor() } else { value }
    }

    /// The value at which a cell's density is taken.
    pub fn middle(&self, cell: usize) -> f64 {
        self.middles[cell]
    }

    pub fn put(&mut self, cell: usize, log_density: f64, variate: f64) {
        if !self.done {
            let known = !log_density.is_nan();
            self.log_density[cell] = if known {
                log_density
            } else {
                f64::NEG_INFINITY
            };
            self.variate[cell] = variate;
        }
    }

    /// The size of a cell on the scale of the variate.
    fn size(&self, cell: usize) -> f64 {
        let width = self.widths[cell];
        // The variate need not be known outside of the support, as a logarithm below zero.
        let known = |other: usize| {
            if self.variate[other].is_finite() {
                other
            } else {
                cell
            }
        };
        let (before, after) = (cell.saturating_sub(1), (cell + 1).min(CELLS - 1));
        let (before, after) = (known(before), known(after));
        let run = self.middle(after) - self.middle(before);
        if self.is_int || run <= 0.0 || !self.variate[cell].is_finite() {
            return width;
        }
        width * ((self.variate[after] - self.variate[before]) / run).abs()
    }

    /// The share of the mass in every cell; none where there is no mass at all.
    fn shares(&self) -> Option<[f64; CELLS]> {
        let peak = self
            .log_density
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let mut masses = std::array::from_fn(|k| self.size(k));
        weigh(&self.log_density, peak, &mut masses);
        let total: f64 = masses.iter().sum();
        (total > 0.0 && total.is_finite()).then(|| masses.map(|m| m / total))
    }

    /// Rearranges the cells, finer where the mass is; false where they are fine enough.
    pub fn refine(&mut self) -> bool {
        let Some(shares) = self.shares().filter(|_| !self.done) else {
            self.done = true;
            return false;
        };
        if self.whole || shares.iter().all(|s| *s <= LARGEST) {
            self.done = true;
            return false;
        }
        let peak = self
            .log_density
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let near = |k: usize| self.log_density[k] > peak - DEPTH || shares[k] > LEAST;
        // The neighbours too: the peak may be just beyond an edge.
        let kept = |k: usize| near(k) || (k > 0 && near(k - 1)) || (k + 1 < CELLS && near(k + 1));
        let count = (0..CELLS).filter(|&k| kept(k)).count() as f64;
        let wanted = |k: usize| {
            let even = if kept(k) { EVEN / count } else { 0.0 };
            (1.0 - EVEN) * shares[k] + even
        };
        let old = self.edges;
        let first = (0..CELLS).position(kept).unwrap_or(0);
        let last = (0..CELLS).rposition(kept).unwrap_or(CELLS - 1);
        let (mut cell, mut passed) = (first, 0.0);
        let total: f64 = (first..=last).map(wanted).sum();
        for k in 1..CELLS {
            let aim = total * k as f64 / CELLS as f64;
            while cell < last && passed + wanted(cell) < aim {
                passed += wanted(cell);
                cell += 1;
            }
            let part = ((aim - passed) / wanted(cell)).clamp(0.0, 1.0);
            self.edges[k] = old[cell] + part * (old[cell + 1] - old[cell]);
        }
        self.edges[0] = old[first];
        self.edges[CELLS] = old[last + 1];
        self.give_each_int_its_cell();
        self.find_values();
        true
    }

    /// Arranges the cells at even normal scores of the distribution, so that its tails are as well
    /// known as its middle; they must then be filled again. False where nothing changes.
    ///
    /// Before the `last` time the tails may be known only coarsely, and cells reach as far as
    /// before. The last time they end with the scores, and those of an int consist of whole ints.
    pub fn lay_at_scores(&mut self, last: bool) -> bool {
        static TAILS: LazyLock<[[f64; 2]; CELLS + 1]> = LazyLock::new(|| {
            std::array::from_fn(|k| tails(SCORE_STEP * (k as f64 - CELLS as f64 / 2.0)))
        });
        if self.whole {
            return false;
        }
        let Some(cells) = self.cells() else {
            return false;
        };
        let (start, end) = (self.edges[0], self.edges[CELLS]);
        let mut edges = [0.0; CELLS + 1];
        cells.find_quantiles(&*TAILS, &mut edges);
        if !last {
            for k in 0..OUTER {
                let share = k as f64 / OUTER as f64;
                edges[k] = start + share * (edges[OUTER] - start);
                edges[CELLS - k] = end + share * (edges[CELLS - OUTER] - end);
            }
        }
        let mut values = edges;
        if self.curved {
            put_on_curve(self.about, self.scale, &mut values);
        }
        // About zero the scale of asinh has a trough, in which a wide peak would not fit; about the
        // middle it is even there, and like that of the logarithm in the tails.
        let [low, middle, high] = [1, 2, 3].map(|k| values[k * CELLS / 4]);
        self.curved = high > low && !(self.is_int && last);
        (self.about, self.scale) = (middle, high - low);
        self.edges = values;
        if self.curved {
            take_off_curve(middle, high - low, &mut self.edges);
        }
        if self.is_int && last {
            let ints = self.edges.map(f64::floor);
            let (low, high) = (ints[0], self.edges[CELLS].ceil());
            self.edges[0] = low;
            for (k, wanted) in ints.into_iter().enumerate().skip(1) {
                let before = self.edges[k - 1];
                self.edges[k] = if high - low <= CELLS as f64 {
                    (low + k as f64).min(high)
                } else {
                    let half = (0.5 * (wanted - before)).floor().max(0.0);
                    (before + 2.0 * half + 1.0).min(high.max(before))
                };
            }
            self.whole = true;
        }
        self.find_values();
        self.done = false;
        true
    }

    /// The log density, where it is the same everywhere.
    pub fn flat(&self) -> Option<f64> {
        let first = self.log_density[0];
        self.log_density
            .iter()
            .all(|l| *l == first)
            .then_some(first)
    }

    /// Whether more of the mass than may be there lies where an unbounded column ends.
    pub fn leaves(&self, cells: &Cells) -> bool {
        let far = |k: &usize| self.middle(*k).abs() > 0.5 * FAR;
        let mass: f64 = (0..CELLS).filter(far).map(|k| cells.masses[k]).sum();
        mass > MOST_BEYOND
    }

    fn scale_to_value(&self, at: f64) -> f64 {
        if self.curved {
            self.about + self.scale * sinh(at)
        } else {
            at
        }
    }

    /// The distribution, log-linear within each cell; none where there is no mass.
    pub fn cells(&self) -> Option<Cells<'_>> {
        let width = |k: usize| self.edges[k + 1] - self.edges[k];
        let centre = |k: usize| 0.5 * self.edges[k] + 0.5 * self.edges[k + 1];
        // On the scale of the edges.
        let mut log_density = std::array::from_fn(|k| self.size(k) / width(k));
        find_log_densities(&self.log_density, &mut log_density);
        let peak = log_density
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        if !peak.is_finite() {
            return None;
        }
        let known = |k: usize| log_density[k] > f64::NEG_INFINITY;
        let mut masses = [0.0; CELLS];
        let mut slopes = [0.0; CELLS];
        for k in (0..CELLS).filter(|&k| known(k)) {
            let before = k.checked_sub(1).filter(|&b| known(b)).unwrap_or(k);
            let after = Some(k + 1).filter(|&a| a < CELLS && known(a)).unwrap_or(k);
            if before < after {
                let steepest = STEEPEST / width(k);
                let slope =
                    (log_density[after] - log_density[before]) / (centre(after) - centre(before));
                slopes[k] = slope.clamp(-steepest, steepest);
            }
        }
        let widths = std::array::from_fn(width);
        if self.whole {
            find_masses_of_ints(&log_density, peak, &slopes, &widths, &mut masses);
        } else {
            find_masses(&log_density, peak, &slopes, &widths, &mut masses);
        }
        // The contribution of the second derivative, where both neighbours are known.
        for k in 1..CELLS - 1 {
            if known(k - 1) && known(k) && known(k + 1) {
                let bend = (slopes[k + 1] - slopes[k - 1]) / (centre(k + 1) - centre(k - 1));
                let squares = widths[k] * widths[k] - f64::from(self.whole);
                masses[k] *= 1.0 + (bend * squares / 24.0).clamp(-0.3, 0.3);
            }
        }
        let total: f64 = masses.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let (mut below, mut above) = ([0.0; CELLS + 1], [0.0; CELLS + 1]);
        for k in 0..CELLS {
            masses[k] /= total;
            below[k + 1] = below[k] + masses[k];
        }
        for k in (0..CELLS).rev() {
            above[k] = above[k + 1] + masses[k];
        }
        Some(Cells {
            grid: self,
            masses,
            slopes,
            below,
            above,
            log_mass: peak + total.ln(),
        })
    }

    pub fn draw(&self, rng: &mut impl Rng) -> f64 {
        let Some(shares) = self.shares() else {
            return self.middle(CELLS / 2);
        };
        let mut left = rng.random::<f64>();
        let chosen = shares.iter().position(|share| {
            left -= share;
            left <= 0.0
        });
        let cell = chosen.unwrap_or(CELLS - 1);
        let (from, to) = (self.edges[cell], self.edges[cell + 1]);
        self.value(from + rng.random::<f64>() * (to - from))
    }
}

vectorised! {
    /// Places on the scale of asinh become `about + scale sinh(place)`.
    fn put_on_curve(about: f64, scale: f64, places: &mut [f64]) {
        for place in places {
            *place = about + scale * sinh(*place);
        }
    }
}

vectorised! {
    /// The reverse of [`put_on_curve`].
    fn take_off_curve(about: f64, scale: f64, values: &mut [f64]) {
        for value in values {
            *value = asinh((*value - about) / scale);
        }
    }
}

vectorised! {
    /// Sizes of cells become masses relative to the density of `peak`.
    fn weigh(log_density: &[f64; CELLS], peak: f64, sizes: &mut [f64; CELLS]) {
        for k in 0..CELLS {
            sizes[k] *= exp(log_density[k] - peak);
        }
    }
}

vectorised! {
    /// Adds the logarithms of the `relative` sizes of cells; they become the log densities.
    fn find_log_densities(log_density: &[f64; CELLS], relative: &mut [f64; CELLS]) {
        for k in 0..CELLS {
            let size = relative[k];
            let sum = log_density[k] + ln(size);
            let is_known = (size > 0.0) & (size < f64::INFINITY);
            relative[k] = if is_known { sum } else { f64::NEG_INFINITY };
        }
    }
}

vectorised! {
    /// Masses of cells in which the log density has these slopes, relative to that of `peak`.
    fn find_masses(
        log_density: &[f64; CELLS],
        peak: f64,
        slopes: &[f64; CELLS],
        widths: &[f64; CELLS],
        masses: &mut [f64; CELLS],
    ) {
        for k in 0..CELLS {
            let half = 0.5 * slopes[k] * widths[k];
            let spread = sinh(half) / half;
            let spread = if half.abs() < 1e-6 { 1.0 } else { spread };
            masses[k] = exp(log_density[k] - peak) * widths[k] * spread;
        }
    }
}

vectorised! {
    /// The same of cells that consist of whole ints, which are summed.
    fn find_masses_of_ints(
        log_density: &[f64; CELLS],
        peak: f64,
        slopes: &[f64; CELLS],
        widths: &[f64; CELLS],
        masses: &mut [f64; CELLS],
    ) {
        for k in 0..CELLS {
            let half = 0.5 * slopes[k] * widths[k];
            let spread = sinh(half) / sinh(0.5 * slopes[k]);
            let spread = if half.abs() < 1e-6 { widths[k] } else { spread };
            masses[k] = exp(log_density[k] - peak) * spread;
        }
    }
}

vectorised! {
    /// From shares of the masses of cells to the places where these end, by the beginnings, widths
    /// and slopes of the log density of the cells.
    fn move_along(from: &[f64], widths: &[f64], slopes: &[f64], shares: &mut [f64]) {
        for k in 0..shares.len() {
            let rise = slopes[k] * widths[k];
            let straight = shares[k] * widths[k];
            let bent = ln_1p(shares[k] * exp_m1(rise)) / slopes[k];
            let within = if rise.abs() < 1e-6 { straight } else { bent };
            shares[k] = from[k] + within;
        }
    }
}

/// The distribution on a grid.
pub(super) struct Cells<'a> {
    grid: &'a Grid,
    /// They sum to 1.
    masses: [f64; CELLS],
    /// The slopes of the log density, on the scale of the edges.
    slopes: [f64; CELLS],
    /// The masses below and above each edge.
    below: [f64; CELLS + 1],
    above: [f64; CELLS + 1],
    /// Log of the integral, or sum, of the density.
    pub log_mass: f64,
}

/// The probabilities on both sides of a normal score.
pub(super) fn tails(score: f64) -> [f64; 2] {
    [normal_cdf(score), normal_cdf(-score)]
}

impl Cells<'_> {
    /// The places that have these masses below and above them, on the scale of the edges. The mass
    /// of the nearer tail is used, so that no digits are lost in a difference.
    /// At most one more than there are cells.
    fn find_quantiles(&self, tails: &[[f64; 2]], places: &mut [f64]) {
        let [mut from, mut widths, mut slopes] = [[0.0; CELLS + 1]; 3];
        for (k, [below, above]) in tails.iter().copied().enumerate() {
            let (cell, share) = if below < above {
                let cell = self.below[1..].partition_point(|&b| b < below);
                let cell = cell.min(CELLS - 1);
                (cell, (below - self.below[cell]) / self.masses[cell])
            } else {
                let cell = self.above.partition_point(|&a| a >= above);
                let cell = cell.clamp(1, CELLS) - 1;
                (
                    cell,
                    1.0 - (above - self.above[cell + 1]) / self.masses[cell],
                )
            };
            let share = if share.is_nan() { 0.5 } else { share };
            places[k] = share.clamp(0.0, 1.0);
            from[k] = self.grid.edges[cell];
            widths[k] = self.grid.edges[cell + 1] - self.grid.edges[cell];
            slopes[k] = self.slopes[cell];
        }
        move_along(&from, &widths, &slopes, places);
    }

    /// Whether the cells at both ends hold as little as they should.
    pub fn are_tails_resolved(&self) -> bool {
        let edges = &self.grid.edges;
        let is_resolved = |&k: &usize| edges[k] < edges[k + 1] && self.masses[k] < IN_TAIL;
        [0, CELLS - 1].iter().all(is_resolved)
    }

    /// The values that have these masses below and above them.
    pub fn find_values(&self, tails: &[[f64; 2]], values: &mut [f64]) {
        self.find_quantiles(tails, values);
        if self.grid.curved {
            put_on_curve(self.grid.about, self.grid.scale, values);
        }
        if self.grid.is_int {
            values.iter_mut().for_each(|value| *value = value.floor());
        }
    }

    /// The value that has these masses below and above it.
    pub fn value(&self, tails: [f64; 2]) -> f64 {
        let mut value = [0.0];
        self.find_values(&[tails], &mut value);
        value[0]
    }

    /// The ints that stand for the cells, where the variable is one.
    pub fn ints(&self) -> Option<impl Iterator<Item = IntCell> + '_> {
        let int_cell = |k: usize| {
            let others = self.grid.edges[k + 1] - self.grid.edges[k] - 1.0;
            IntCell {
                value: self.grid.middle(k),
                mass: self.masses[k],
                before: 1.0 / (1.0 + (0.5 * self.slopes[k] * others).exp()),
                single: others <= 0.0,
            }
        };
        self.grid.is_int.then(|| (0..CELLS).map(int_cell))
    }
}

/// One int, or the middle one of several.
pub(super) struct IntCell {
    pub value: f64,
    pub mass: f64,
    /// The share of the mass before the middle.
    pub before: f64,
    pub single: bool,
}

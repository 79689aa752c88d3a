//! A rough picture of the losses, by which tilt, window and grid are chosen.
//!
//! Nothing here has to be exact: a bad choice makes bounds wide, not wrong.

use super::normal::ln_density;
use super::pair::{Kind, Pair, Reach};

/// The losses of one event at some points, with ln of the weight of each under P.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    points: Vec<(f64, f64)>,
    count: f64,
}

/// ln of E e^(theta loss) of a composition, and its first two derivatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cumulants {
    pub(super) value: f64,
    pub(super) mean: f64,
    pub(super) variance: f64,
}

impl Cumulants {
    /// ln delta(eps) at eps = the mean, by the saddle point: of size
    /// e^(K - theta eps) / (theta (1 + theta) sqrt(2 pi V)).
    fn ln_delta(&self, theta: f64, epsilon: f64) -> f64 {
        let width = (std::f64::consts::TAU * self.variance).sqrt();
        self.value - theta * epsilon - (1.0 + theta * (1.0 + theta) * width).ln()
    }
}

impl Sketch {
    /// The losses under P, or with `mirrored` those of the pair (Q, P).
    pub(super) fn new(pair: &Pair, count: f64, reach: Reach, mirrored: bool) -> Sketch {
        // Steps of a quarter, or finer where the loss bends within one.
        let fine = if pair.rest > 0.0 {
            0.5 / pair.shift
        } else {
            1.0
        };
        let (low, high) = (-reach.below, reach.above + pair.shift);
        let step = fine.min(0.25).max((high - low) / 20_000.0);
        let rule = match pair.kind {
            // Only the losses above 0 are laid out.
            Kind::WithoutReplacementSubstitute => {
                gauss_legendre(pair.point(0.0).max(low), high, step)
            }
            // Nothing ends within reach, so that equal steps have all digits.
            Kind::PoissonAddRemove | Kind::PoissonSubstitute => {
                let steps = ((high - low) / step).ceil() as u32;
                (0..=steps)
                    .map(|i| (low + f64::from(i) * step, step.ln()))
                    .collect()
            }
        };
        let mut points = Vec::new();
        for (z, ln_width) in rule {
            let loss = pair.loss(z);
            let ln_q = match pair.kind {
                Kind::PoissonSubstitute => pair.ln_density_down(z),
                Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => ln_density(z),
            } + ln_width;
            let ln_p = ln_q + loss;
            match (pair.kind, mirrored) {
                (Kind::PoissonAddRemove, true) => points.push((-loss, ln_q)),
                (Kind::WithoutReplacementSubstitute, _) => {
                    points.push((loss, ln_p));
                    points.push((-loss, ln_q));
                }
                _ => points.push((loss, ln_p)),
            }
        }
        if pair.atom() > 0.0 {
            points.push((0.0, pair.atom().ln()));
        }
        // The weights of a coarse step need not add up to one.
        let top = points.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
        let ln_total = top + points.iter().map(|p| (p.1 - top).exp()).sum::<f64>().ln();
        for point in &mut points {
            point.1 -= ln_total;
        }
        points.retain(|point| point.1 > -1e4);
        Sketch { points, count }
    }

    /// ln of E e^(theta loss) of one release.
    pub(super) fn ln_moment(&self, theta: f64) -> f64 {
        self.cumulants(theta).value
    }

    fn cumulants(&self, theta: f64) -> Cumulants {
        let exponent = |&(loss, ln_weight): &(f64, f64)| theta * loss + ln_weight;
        let top = self
            .points
            .iter()
            .map(exponent)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for point in &self.points {
            let weight = (exponent(point) - top).exp();
            sum += weight;
            first += weight * point.0;
            second += weight * point.0 * point.0;
        }
        let mean = first / sum;
        Cumulants {
            value: top + sum.ln(),
            mean,
            variance: (second / sum - mean * mean).max(1e-300),
        }
    }
}

/// Points and ln weights of an integral from `low` to `high`, about `step` apart. With many
/// releases the error of one's moment counts as many times.
fn gauss_legendre(low: f64, high: f64, step: f64) -> Vec<(f64, f64)> {
    const NODES: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    ];
    let panels = ((high - low) / (8.0 * step)).ceil().max(1.0) as u32;
    let half = 0.5 * (high - low) / f64::from(panels);
    (0..panels)
        .flat_map(|panel| {
            let middle = low + half * f64::from(2 * panel + 1);
            NODES.into_iter().flat_map(move |(node, weight)| {
                [-node, node].map(|node| (middle + half * node, (half * weight).ln()))
            })
        })
        .collect()
}

/// The cumulants of all events together.
pub(super) fn composed(sketches: &[Sketch], theta: f64) -> Cumulants {
    let mut total = Cumulants {
        value: 0.0,
        mean: 0.0,
        variance: 0.0,
    };
    for sketch in sketches {
        let one = sketch.cumulants(theta);
        total.value += sketch.count * one.value;
        total.mean += sketch.count * one.mean;
        total.variance += sketch.count * one.variance;
    }
    total
}

/// ln delta and the tilt at which the bulk of the composed losses is at `epsilon`, roughly.
pub(super) fn ln_delta_near(sketches: &[Sketch], epsilon: f64) -> (f64, f64) {
    let theta = first_true(most_tilt(sketches), |theta| {
        composed(sketches, theta).mean >= epsilon
    });
    (composed(sketches, theta).ln_delta(theta, epsilon), theta)
}

/// The epsilon at which delta is e^`ln_delta`, roughly.
pub(super) fn epsilon_near(sketches: &[Sketch], ln_delta: f64) -> f64 {
    let theta = first_true(most_tilt(sketches), |theta| {
        let cumulants = composed(sketches, theta);
        cumulants.ln_delta(theta, cumulants.mean) <= ln_delta
    });
    composed(sketches, theta).mean
}

/// The smallest tilt by which the round-off of the transforms is small compared with delta.
///
/// It is of size e^(K - theta eps), e^`ln_room` times delta at most, which is smallest where
/// the tilted mean is epsilon, at `most`. A smaller tilt leaves a narrower window.
pub(super) fn least_tilt(
    sketches: &[Sketch],
    epsilon: f64,
    ln_delta: f64,
    ln_room: f64,
    most: f64,
) -> f64 {
    first_true(most, |theta| {
        composed(sketches, theta).value - theta * epsilon <= ln_delta + ln_room
    })
}

/// The losses that a window has to hold, but for a share that does not matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) low: f64,
    pub(super) width: f64,
    pub(super) decay: Decay,
}

/// The rates d of the exponential bounds e^(-d x) for the losses outside a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decay {
    /// Below it.
    pub(super) below: f64,
    /// Above it, where what is missing counts little for a delta, being tilted.
    pub(super) missing: f64,
    /// So far above that they wrap around to the place where delta is read.
    pub(super) round: f64,
}

/// All but about e^-24 of the composed, tilted losses, for delta at `epsilon`, by bounds
/// of rates up to `most`: the grid spoils the moments of larger rates.
pub(super) fn span(sketches: &[Sketch], theta: f64, epsilon: f64, most: f64) -> Span {
    const LN_LEFT_OUT: f64 = -24.0;
    let centre = composed(sketches, theta);
    let deviation = centre.variance.sqrt();
    let mut decay = Decay::default();
    let (mut low, mut high, mut round) = (f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY);
    // Chernoff: P(loss > x) <= E e^(d loss) e^(-d x), for the best of some d.
    for power in -4..=12 {
        let d = (2f64.powf(0.5 * f64::from(power)) / deviation).min(most);
        let below = composed(sketches, theta - d).value - centre.value;
        let from = -(below - LN_LEFT_OUT) / d;
        if from > low {
            (low, decay.below) = (from, d);
        }
        let above = composed(sketches, theta + d).value - centre.value;
        let to = (above - LN_LEFT_OUT) / d;
        if to < round {
            (round, decay.round) = (to, d);
        }
        let to = (above - LN_LEFT_OUT + theta * epsilon) / (d + theta);
        if to < high {
            (high, decay.missing) = (to, d);
        }
    }
    Span {
        low: low.min(epsilon),
        width: (high - low.min(epsilon)).max(round - epsilon),
        decay,
    }
}

/// A tilt by which the largest loss outweighs all others, however improbable it is.
fn most_tilt(sketches: &[Sketch]) -> f64 {
    let points = sketches.iter().flat_map(|sketch| &sketch.points);
    let largest = points.map(|point| point.0).fold(0.0, f64::max);
    if largest > 0.0 { 4000.0 / largest } else { 0.0 }
}

/// The smallest theta from 0 to `most` for which `reached` holds, to one part in 1000, or
/// `most`.
fn first_true(most: f64, reached: impl Fn(f64) -> bool) -> f64 {
    if reached(0.0) {
        return 0.0;
    }
    let (mut below, mut above) = (0.0, most.min(1.0));
    if reached(above) {
        while above > 1e-6 && reached(0.25 * above) {
            above *= 0.25;
        }
        below = 0.25 * above;
    } else {
        while above < most && !reached(above) {
            below = above;
            above = (4.0 * above).min(most);
        }
    }
    while above - below > 1e-3 * above && above > 1e-6 {
        let middle = 0.5 * (below + above);
        if reached(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::super::normal::cdf;
    use super::*;

    // Wrong here: an error of 1e-4 in a release's moment, which 10^5 releases make e^10: then the
    // window misses the losses. Oracle: the mean of e^(3 z) over z > 0.3.
    #[test]
    fn integrals_that_end_within_reach_have_their_digits() {
        for step in [0.25, 0.1] {
            let points = gauss_legendre(0.3, 20.0, step);
            let sum: f64 = points
                .iter()
                .map(|(z, ln_weight)| (3.0 * z + ln_density(*z) + ln_weight).exp())
                .sum();
            let truth = 4.5f64.exp() * cdf(3.0 - 0.3);
            assert!((sum / truth - 1.0).abs() < 1e-11, "{step} {sum} {truth}");
        }
    }
}

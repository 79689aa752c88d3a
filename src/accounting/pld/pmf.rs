//! From cells to two distributions on the grid, one worse and one better than the truth.
//!
//! Let H(t) = integral of (1 - t e^-loss)+ over P, the privacy curve at eps = ln t, which
//! is convex in t. A distribution on the grid has an H that is linear between nodes.
//!
//! *Upper.* The smallest such curve above H joins its values at the nodes (Doroshenko et
//! al. 2022, "connect the dots"): each cell's mass goes to the two nodes at its ends so
//! that its masses under P and under Q stay the same. With L, R the masses of the left
//! and right half of node k, B, A their moments (`Half`) and kappa = 1/(1 - e^-h),
//!
//! ```text
//! upper_k = L_k + R_k + kappa (A_{k-1} - A_k + e^-h (B_{k+1} - B_k))
//! ```
//!
//! *Lower.* Tangents to H at the midpoints lie below it. At node k those of the two midpoints next
//! to it are A_k and B_k below the chain above; take the lower of them, C_k = max(A_k, B_k) below,
//! and join these values: every segment has both ends on or below one tangent, so it is below H.
//! The masses of that curve are
//!
//! ```text
//! lower_k = L_k + R_k + kappa ((C_k - A_k) - (C_{k-1} - A_{k-1})
//!                              + e^-h ((C_k - B_k) - (C_{k+1} - B_{k+1})))
//! ```
//!
//! Where A_k = B_k this merges the losses around a node, a processing of the output that
//! can only hide; the other terms are of third order in h. A mass that comes out negative
//! says that the chain is not convex there; leaving such nodes out of it, their mass
//! shared between the neighbours, gives its lower convex hull.
//!
//! Domination carries over to compositions, since delta of a composition is an integral
//! of H over P of the others; for that H need not belong to measures of mass one. So
//! masses may be rounded up in the one and down in the other.
//!
//! *Tilting.* Both are multiplied by e^(theta loss) / M, so that the composition has its
//! bulk at the epsilon of interest and the transform's error stays small compared with it.

use super::cells::Cells;
use super::fft::UNIT_ROUNDOFF;
use super::pair::Half;

/// The least tilted mass: what is smaller is raised to it in the upper distribution and left
/// out of the lower one. Numbers that underflow lose their digits and slow every transform down.
const LEAST_MASS: f64 = 1e-300;

/// Both distributions of one event, tilted.
#[derive(Clone, Debug)]
pub(super) struct TiltedPmf {
    /// The index of the first node.
    pub(super) first: i64,
    pub(super) upper: Vec<f64>,
    pub(super) lower: Vec<f64>,
    /// ln M: the masses are to be multiplied by M e^(-theta loss).
    pub(super) ln_scale: f64,
    /// ln of the mass at infinity of the upper distribution, not tilted.
    pub(super) ln_infinite: f64,
    pub(super) offset: f64,
    pub(super) slip: f64,
}

/// One node: masses and moments, tilted and over a common scale.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    left: f64,
    right: f64,
    /// A, of the right half.
    after: f64,
    /// B, of the left half.
    before: f64,
    /// Relative error of the four numbers.
    error: f64,
}

impl TiltedPmf {
    /// `ln_guess` is ln M, roughly.
    pub(super) fn new(cells: &Cells, theta: f64, ln_guess: f64) -> TiltedPmf {
        let grid = Grid::new(cells.step, theta);
        let nodes = tilted_nodes(cells, theta, ln_guess);
        // One node more on each side, where half a cell's mass may go.
        let mut upper = grid.upper(&nodes);
        let mut lower = grid.lower(&nodes);
        let at_first = theta * cells.node(cells.first) - ln_guess;
        if let Some(first) = upper.get_mut(1) {
            *first += (cells.below.0 + at_first).exp() * (1.0 + 1e-9);
        }
        let at_zero = usize::try_from(1 - cells.first).ok();
        if let Some(zero) = at_zero.filter(|_| cells.atom > 0.0) {
            let mass = cells.atom * (-ln_guess).exp();
            let error = (16.0 + 4.0 * ln_guess.abs()) * UNIT_ROUNDOFF;
            if let Some(upper) = upper.get_mut(zero) {
                *upper += mass * (1.0 + error);
            }
            if let Some(lower) = lower.get_mut(zero) {
                *lower += mass * (1.0 - error);
            }
        }
        let total: f64 = upper.iter().sum();
        let scale = 1.0 / total;
        for mass in &mut upper {
            *mass = (*mass * scale * (1.0 + 4.0 * UNIT_ROUNDOFF)).max(LEAST_MASS);
        }
        for mass in &mut lower {
            let scaled = *mass * scale * (1.0 - 4.0 * UNIT_ROUNDOFF);
            *mass = if scaled > LEAST_MASS { scaled } else { 0.0 };
        }
        let ln_scale = ln_guess + total.ln();
        TiltedPmf {
            first: cells.first - 1,
            upper,
            lower,
            ln_scale,
            ln_infinite: cells.above.0,
            offset: cells.offset,
            slip: cells.slip,
        }
    }
}

fn tilted_nodes(cells: &Cells, theta: f64, ln_guess: f64) -> Vec<Node> {
    let halves = cells.left.iter().zip(&cells.right).zip(cells.first..);
    halves
        .map(|((left, right), k)| {
            let tilt = theta * cells.node(k) - ln_guess;
            let factor = |half: &Half| (half.ln_scale + tilt).exp();
            let (l, r) = (factor(left), factor(right));
            let scale = left
                .ln_scale
                .abs()
                .min(1e4)
                .max(right.ln_scale.abs().min(1e4));
            Node {
                left: l * left.mass,
                right: r * right.mass,
                after: r * right.moment,
                before: l * left.moment,
                error: UNIT_ROUNDOFF
                    * (64.0 + 4.0 * (scale + (theta * cells.node(k)).abs() + ln_guess.abs())),
            }
        })
        .collect()
}

/// The factors of one step, for one tilt.
struct Grid {
    step: f64,
    theta: f64,
    /// e^-h
    shrink: f64,
    /// 1/(1 - e^-h)
    kappa: f64,
    /// e^(theta h): what a tilted number gains when it moves one node up.
    up: f64,
}

impl Grid {
    fn new(step: f64, theta: f64) -> Grid {
        Grid {
            step,
            theta,
            shrink: (-step).exp(),
            kappa: -1.0 / (-step).exp_m1(),
            up: (theta * step).exp(),
        }
    }

    fn upper(&self, nodes: &[Node]) -> Vec<f64> {
        let Grid {
            shrink, kappa, up, ..
        } = self;
        around(nodes)
            .map(|(previous, node, next)| {
                let arriving = up * previous.after + shrink / up * next.before;
                let leaving = node.after + shrink * node.before;
                let mass = node.left + node.right + kappa * (arriving - leaving);
                let size = node.left + node.right + kappa * (arriving + leaving);
                let error = previous.error.max(node.error).max(next.error);
                (mass + size * (8.0 * UNIT_ROUNDOFF + error)).max(0.0)
            })
            .collect()
    }

    fn lower(&self, nodes: &[Node]) -> Vec<f64> {
        let mut merged = nodes.to_vec();
        self.merge_ends(&mut merged);
        let mut masses = self.tangents(&merged);
        if self.convex_hull(&mut masses) {
            masses
        } else {
            self.thinned(nodes)
        }
    }

    fn tangents(&self, nodes: &[Node]) -> Vec<f64> {
        let Grid {
            shrink, kappa, up, ..
        } = self;
        around(nodes)
            .map(|(previous, node, next)| {
                let lift = |node: Node| {
                    let lowest = node.after.max(node.before);
                    (lowest - node.after, lowest - node.before)
                };
                let (after, before) = lift(node);
                let arriving = after + shrink * before;
                let leaving = up * lift(previous).0 + shrink / up * lift(next).1;
                let mass = node.left + node.right + kappa * (arriving - leaving);
                let size = node.left + node.right + kappa * (arriving + leaving);
                let error = previous.error.max(node.error).max(next.error);
                if size > 0.0 {
                    mass - size * (8.0 * UNIT_ROUNDOFF + error)
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// Moves the outermost losses inwards until the first node has its larger moment on
    /// the left and the last one on the right, so that the chain ends on H.
    fn merge_ends(&self, nodes: &mut [Node]) {
        let Grid { shrink, up, .. } = self;
        let (grow, gain) = (1.0 / shrink, self.step.exp_m1());
        for k in 1..nodes.len() {
            let node = nodes[k - 1];
            if node.before >= node.after {
                break;
            }
            let next = &mut nodes[k];
            next.left += up * (node.left + node.right);
            // e^h (B + L) - L and e^h (R - A) - R
            next.before +=
                up * (grow * (node.before - node.after) + gain * (node.left + node.right)).max(0.0);
            next.error = next.error.max(node.error);
            nodes[k - 1] = Node::default();
        }
        let lose = -(-self.step).exp_m1();
        for k in (1..nodes.len()).rev() {
            let node = nodes[k];
            if node.after >= node.before {
                break;
            }
            let next = &mut nodes[k - 1];
            next.right += (node.left + node.right) / up;
            next.after += (lose * (node.left + node.right) + shrink * (node.after - node.before))
                .max(0.0)
                / up;
            next.error = next.error.max(node.error);
            nodes[k] = Node::default();
        }
    }

    /// Leaves out nodes of negative mass, sharing it between the nodes on both sides in
    /// the way that keeps P and Q. False if there is a node too few for that.
    fn convex_hull(&self, masses: &mut [f64]) -> bool {
        let mut kept: Vec<usize> = Vec::new();
        for k in 0..masses.len() {
            let mut here = k;
            loop {
                let mass = masses[here];
                if mass >= 0.0 {
                    if mass > 0.0 {
                        kept.push(here);
                    }
                    break;
                }
                let (Some(before), true) = (kept.pop(), k + 1 < masses.len()) else {
                    return false;
                };
                let (down, up) = self.split(here - before, k + 1 - here);
                masses[here] = 0.0;
                masses[before] += mass * down;
                masses[k + 1] += mass * up;
                here = before;
            }
        }
        true
    }

    /// The shares of a tilted mass that go `below` nodes down and `above` nodes up.
    fn split(&self, below: usize, above: usize) -> (f64, f64) {
        let (below, above) = (below as f64 * self.step, above as f64 * self.step);
        // With x = e^below - 1 and y = 1 - e^-above the shares are y/(x + y) and x/(x + y).
        let (x, y) = (below.exp_m1(), -(-above).exp_m1());
        let rounding = 1.0 + 16.0 * UNIT_ROUNDOFF;
        (
            y / (x + y) * (-self.theta * below).exp() * rounding,
            x / (x + y) * (self.theta * above).exp() * rounding,
        )
    }

    /// The coarse way: at each node, keep only so much of the half with the larger moment
    /// that the moments agree.
    fn thinned(&self, nodes: &[Node]) -> Vec<f64> {
        let share = |part: f64, whole: f64| if part < whole { part / whole } else { 1.0 };
        around(nodes)
            .map(|(_, node, _)| {
                let left = node.left * share(node.after, node.before);
                let right = node.right * share(node.before, node.after);
                (left + right) * (1.0 - 4.0 * node.error)
            })
            .collect()
    }
}

/// Each node with its neighbours, from one before the first to one after the last.
fn around(nodes: &[Node]) -> impl Iterator<Item = (Node, Node, Node)> {
    let node_at = move |k: Option<usize>| k.and_then(|k| nodes.get(k)).copied().unwrap_or_default();
    (0..nodes.len() + 2).map(move |k| {
        (
            node_at(k.checked_sub(2)),
            node_at(k.checked_sub(1)),
            node_at(Some(k)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::curve::Curve;
    use super::super::pair::{Kind, Pair, Reach};
    use super::super::single::Single;
    use super::*;

    /// H at e^eps of masses at nodes.
    fn hockey_stick(pmf: &TiltedPmf, masses: &[f64], step: f64, theta: f64, epsilon: f64) -> f64 {
        let losses = (pmf.first..).map(|k| pmf.offset + k as f64 * step);
        losses
            .zip(masses)
            .filter(|(loss, _)| *loss > epsilon)
            .map(|(loss, mass)| {
                mass * (pmf.ln_scale - theta * loss).exp() * -(epsilon - loss).exp_m1()
            })
            .sum()
    }

    // The statement that everything rests on: the two curves enclose the true one, at and between
    // nodes, whatever the tilt. Wrong here: bounds that do not hold.
    #[test]
    fn the_true_curve_lies_between_the_two() {
        for kind in [
            Kind::PoissonAddRemove,
            Kind::PoissonSubstitute,
            Kind::WithoutReplacementSubstitute,
        ] {
            for (rate, shift, step) in [
                (0.01, 1.0, 1e-2),
                (0.01, 1.0, 1e-3),
                (1e-6, 1.0, 1e-3),
                (0.3, 0.2, 3e-3),
                (0.999, 3.0, 0.1),
                (0.2, 5.0, 0.02),
            ] {
                let pair = Pair::of(kind, rate, shift);
                let reach = Reach {
                    below: 9.0,
                    above: 9.0,
                };
                let cells = Cells::new(&pair, step, reach, 1 << 20).unwrap();
                for (curve, cells) in Single::both(&pair)
                    .iter()
                    .zip([cells.clone(), cells.mirrored()])
                {
                    for theta in [0.0, 3.0] {
                        check(&TiltedPmf::new(&cells, theta, 0.1), curve, step, theta);
                    }
                }
            }
        }
    }

    fn check(pmf: &TiltedPmf, curve: &Single, step: f64, theta: f64) {
        let mut widest: f64 = 0.0;
        for i in 0..400 {
            let epsilon = 0.37 * step * f64::from(i * i) / 40.0;
            let truth = curve.ln_delta_upper(epsilon).exp();
            let rounding = 1e-13 + 1e-10 * truth;
            let upper = hockey_stick(pmf, &pmf.upper, step, theta, epsilon) + pmf.ln_infinite.exp();
            assert!(upper + rounding >= truth, "{epsilon} {upper:e} {truth:e}");
            let truth = curve.ln_delta_lower(epsilon).exp();
            let lower = hockey_stick(pmf, &pmf.lower, step, theta, epsilon);
            assert!(lower <= truth + rounding, "{epsilon} {lower:e} {truth:e}");
            widest = widest.max(upper - lower);
        }
        assert!(widest < 0.5 * step, "{widest:e} at a step of {step}");
    }

    // Wrong here: nodes of negative mass, which a density that bends within a step makes,
    // are dropped as if they were zero; the lower curve would then be too high.
    #[test]
    fn leaving_out_a_negative_node_keeps_both_masses() {
        let grid = Grid::new(0.1, 2.0);
        let mut masses = vec![0.2, 0.5, -0.05, 0.3, 0.05];
        let sums = |masses: &[f64]| -> (f64, f64) {
            let loss = |k: usize| 0.1 * k as f64;
            let p = masses
                .iter()
                .enumerate()
                .map(|(k, m)| m * (-2.0 * loss(k)).exp());
            let q = masses
                .iter()
                .enumerate()
                .map(|(k, m)| m * (-3.0 * loss(k)).exp());
            (p.sum(), q.sum())
        };
        let before = sums(&masses);
        assert!(grid.convex_hull(&mut masses));
        let after = sums(&masses);
        assert!(masses.iter().all(|mass| *mass >= 0.0) && masses[2] == 0.0);
        assert!((before.0 - after.0).abs() < 1e-14 && (before.1 - after.1).abs() < 1e-14);
        assert!(!grid.convex_hull(&mut [-0.1, 0.5]));
    }
}

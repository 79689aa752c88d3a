//! The no-U-turn sampler without privacy: the zero-noise reference that needs no
//! trajectory length.
//!
//! Hoffman and Gelman 2014 with the later changes in Stan: points of a
//! trajectory are drawn with multinomial weights exp(-H) and a bias towards the
//! newer half (Betancourt 2017, "A conceptual introduction to Hamiltonian Monte
//! Carlo", appendix A), and a trajectory ends when the momenta at both ends
//! stop pointing along the sum of all its momenta, within it and across the
//! junctions of its halves. It leaves the posterior invariant exactly, up to
//! rounding. Cost: up to 2^depth - 1 gradients per iteration.

use rand::{Rng, RngExt};

use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind};
use crate::sampler::hamiltonian::Target;
use crate::sampler::hamiltonian::{Info, LARGEST_ENERGY_ERROR, State, energy, leapfrog};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "nuts",
    summary: "the no-U-turn sampler, as in Stan, without noise (NOT PRIVATE)",
    kind: Kind::Exact,
    columns: &["treedepth__", "n_leapfrog__", "energy__"],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::metric.or(Unset::Form(MetricForm::Diagonal)),
        Setting::max_depth.or(Unset::Number(DEFAULT_MAX_DEPTH as f64)),
        Setting::target_acceptance.or(Unset::Number(0.8)),
    ],
};

/// The largest number of doublings of a trajectory; Stan's default.
pub const DEFAULT_MAX_DEPTH: u32 = 10;

/// One end of a trajectory.
#[derive(Clone)]
struct End {
    state: State,
    p: Vec<f64>,
    /// M^-1 p
    velocity: Vec<f64>,
}

/// A piece of a trajectory, in the direction of time in which it was built.
struct Tree {
    first: End,
    last: End,
    /// Sum of all momenta.
    rho: Vec<f64>,
    /// A point drawn from it with weight exp(H0 - H).
    sample: State,
    energy: f64,
    log_weight: f64,
}

/// The fixed quantities of a trajectory, and the totals over its steps.
struct Flow<'a, R> {
    target: &'a dyn Target,
    metric: &'a Metric,
    h: f64,
    /// Energy at the start.
    start: f64,
    rng: &'a mut R,
    leapfrogs: u32,
    sum_acceptance: f64,
    divergent: bool,
}

/// One iteration with step `h`.
pub(crate) fn step<R: Rng>(
    state: State,
    target: &dyn Target,
    h: f64,
    max_depth: u32,
    metric: &Metric,
    rng: &mut R,
) -> (State, Info) {
    let p = metric.momentum(state.theta.len(), rng);
    let start = energy(&state, &p, metric);
    let mut flow = Flow {
        target,
        metric,
        h,
        start,
        rng,
        leapfrogs: 0,
        sum_acceptance: 0.0,
        divergent: false,
    };
    let end = End {
        velocity: metric.velocity(&p),
        p: p.clone(),
        state: state.clone(),
    };
    // `first` is the end furthest back in time.
    let mut tree = Tree {
        first: end.clone(),
        last: end,
        rho: p,
        sample: state,
        energy: start,
        log_weight: 0.0,
    };
    let (mut depth, mut moved) = (0, false);
    while depth < max_depth {
        let forward = flow.rng.random::<f64>() > 0.5;
        let from = if forward { &tree.last } else { &tree.first };
        let sign = if forward { 1.0 } else { -1.0 };
        let from = from.clone();
        let Some(new) = flow.build(depth, from, sign) else {
            break;
        };
        depth += 1;
        // Biased towards the new half: accepted as in Metropolis.
        if flow.rng.random::<f64>() < (new.log_weight - tree.log_weight).exp() {
            tree.sample = new.sample.clone();
            tree.energy = new.energy;
            moved = true;
        }
        let log_weight = log_sum_exp(tree.log_weight, new.log_weight);
        let (early, late) = if forward {
            (tree, new)
        } else {
            (reversed(new), tree)
        };
        let goes_on = continues(&early, &late);
        let (sample, energy) = if forward {
            (early.sample, early.energy)
        } else {
            (late.sample, late.energy)
        };
        tree = Tree {
            rho: plus(&early.rho, &late.rho),
            first: early.first,
            last: late.last,
            sample,
            energy,
            log_weight,
        };
        if !goes_on {
            break;
        }
    }
    let info = Info {
        accept_stat: flow.sum_acceptance / f64::from(flow.leapfrogs.max(1)),
        accepted: moved,
        divergent: flow.divergent,
        leapfrogs: flow.leapfrogs,
        depth,
        energy: tree.energy,
    };
    (tree.sample, info)
}

impl<R: Rng> Flow<'_, R> {
    /// A trajectory of 2^depth steps from `from`; `None` when it diverges or a
    /// part of it turns back on itself.
    fn build(&mut self, depth: u32, from: End, sign: f64) -> Option<Tree> {
        if depth == 0 {
            return self.leaf(from, sign);
        }
        let early = self.build(depth - 1, from, sign)?;
        let late = self.build(depth - 1, early.last.clone(), sign)?;
        let log_weight = log_sum_exp(early.log_weight, late.log_weight);
        let goes_on = continues(&early, &late);
        let take_late = self.rng.random::<f64>() < (late.log_weight - log_weight).exp();
        let (sample, energy) = if take_late {
            (late.sample, late.energy)
        } else {
            (early.sample, early.energy)
        };
        goes_on.then(|| Tree {
            rho: plus(&early.rho, &late.rho),
            first: early.first,
            last: late.last,
            sample,
            energy,
            log_weight,
        })
    }

    fn leaf(&mut self, from: End, sign: f64) -> Option<Tree> {
        let End {
            mut state, mut p, ..
        } = from;
        leapfrog(&mut state, &mut p, self.target, sign * self.h, self.metric);
        self.leapfrogs += 1;
        let energy = energy(&state, &p, self.metric);
        let log_weight = self.start - energy;
        self.sum_acceptance += log_weight.exp().min(1.0);
        if -log_weight > LARGEST_ENERGY_ERROR {
            self.divergent = true;
            return None;
        }
        let end = End {
            velocity: self.metric.velocity(&p),
            p: p.clone(),
            state: state.clone(),
        };
        Some(Tree {
            first: end.clone(),
            last: end,
            rho: p,
            sample: state,
            energy,
            log_weight,
        })
    }
}

/// Whether two adjacent pieces, one after the other, still move apart: the
/// criterion over the whole, and over each piece with the next point beyond it.
fn continues(early: &Tree, late: &Tree) -> bool {
    let along =
        |a: &End, b: &End, rho: &[f64]| dot(&a.velocity, rho) > 0.0 && dot(&b.velocity, rho) > 0.0;
    along(&early.first, &late.last, &plus(&early.rho, &late.rho))
        && along(&early.first, &late.first, &plus(&early.rho, &late.first.p))
        && along(&early.last, &late.last, &plus(&late.rho, &early.last.p))
}

/// A piece built backwards, read forwards in time. Its momenta are those of the
/// flow forwards in time already: a backward step has a negative step size.
fn reversed(tree: Tree) -> Tree {
    Tree {
        first: tree.last,
        last: tree.first,
        ..tree
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x + y).collect()
}

fn log_sum_exp(a: f64, b: f64) -> f64 {
    let larger = f64::max(a, b);
    if larger == f64::NEG_INFINITY {
        return larger;
    }
    larger + (-(a - b).abs()).exp().ln_1p()
}

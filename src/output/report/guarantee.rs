//! The guarantee of a run's releases, from its `privacy.json`: the curve of epsilon and delta, the
//! best that an attacker could do, and each mechanism's share.

use serde_json::Value;

use crate::accounting::{Accountant, Event, Query, Real, Relation, account, rdp_curve};

/// Points of the curve where all releases read all rows, which is quick: half decades of delta.
const MANY_DELTAS: usize = 25;
/// Points of the curve where each takes longer.
const FEW_DELTAS: usize = 8;
/// The smallest delta shown.
const LOWEST: f64 = 1e-12;

/// The guarantee of a run.
#[derive(Debug, Clone)]
pub(super) struct Guarantee {
    pub events: Vec<Event>,
    /// Epsilon at delta, both upper bounds, in order of decreasing delta.
    pub curve: Vec<Point>,
    /// Each event's share of the whole; they sum to 1.
    pub shares: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub epsilon: f64,
    pub delta: f64,
}

impl Guarantee {
    /// `None` where `privacy.json` has no events that can be read: nothing was released
    /// under a guarantee.
    pub fn of(privacy: &Value) -> Option<Guarantee> {
        let relation: Relation = privacy["relation"].as_str()?.parse().ok()?;
        let events = privacy["events"].as_array()?;
        let events: Vec<Event> = events
            .iter()
            .map(|event| Event::from_json(event, relation))
            .collect::<Result<_, _>>()
            .ok()?;
        if events.is_empty() {
            return None;
        }
        let delta = privacy["delta"].as_f64();
        Some(Guarantee {
            curve: curve(&events, relation, delta),
            shares: shares(&events, relation),
            events,
        })
    }

    /// The most that any test with this rate of false alarms detects. Each point of the curve
    /// bounds it twice (Kairouz, Oh and Viswanath 2015, theorem 2.1; Wasserman and Zhou 2010): by
    /// e^epsilon alarm + delta, and likewise for errors.
    pub fn detection(&self, alarm: f64) -> f64 {
        let bounds = self.curve.iter().flat_map(|p| {
            [
                p.epsilon.exp() * alarm + p.delta,
                1.0 - (-p.epsilon).exp() * (1.0 - p.delta - alarm),
            ]
        });
        bounds.fold(1.0, f64::min).max(alarm)
    }

    /// The largest share of right guesses between two neighbours that are equally likely
    /// beforehand: (1 + total variation) / 2.
    pub fn right_guesses(&self) -> f64 {
        let bounds = self.curve.iter().map(|p| {
            // Of e^epsilon a + delta and the mirrored line, at their crossing.
            let odds = p.epsilon.exp();
            if odds.is_finite() {
                (odds - 1.0 + 2.0 * p.delta) / (odds + 1.0)
            } else {
                1.0
            }
        });
        0.5 + 0.5 * bounds.fold(1.0, f64::min).clamp(0.0, 1.0)
    }
}

fn curve(events: &[Event], relation: Relation, own: Option<f64>) -> Vec<Point> {
    let quick = Accountant::tightest(events) == Accountant::Gaussian;
    let most = if quick { MANY_DELTAS } else { FEW_DELTAS };
    let decades = -LOWEST.log10();
    let deltas = (1..most)
        .map(|i| 10f64.powf(-decades * i as f64 / (most - 1) as f64))
        .chain(own.filter(|&d| d > 0.0 && d < 1.0));
    let mut points: Vec<Point> = deltas
        .filter_map(|delta| {
            let query = Query::Epsilon {
                delta: Real::exact(delta),
            };
            // A delta below what discrete noise allows has no epsilon.
            let found = account(events, relation, query).ok()?;
            Some(Point {
                epsilon: found.epsilon,
                delta,
            })
        })
        .filter(|point| point.epsilon.is_finite())
        .collect();
    if quick {
        points.extend(beginning(events, relation, &points));
    }
    points.sort_by(|a, b| {
        a.epsilon
            .total_cmp(&b.epsilon)
            .then(b.delta.total_cmp(&a.delta))
    });
    let mut falling: Vec<Point> = Vec::new();
    for point in points {
        // The smallest of several deltas that cost no epsilon.
        falling.pop_if(|last| last.epsilon == point.epsilon);
        if falling.last().is_none_or(|last| point.delta < last.delta) {
            falling.push(point);
        }
    }
    falling
}

/// Where delta is large, points by epsilon, from total variation on: that part of the curve belongs
/// to attacks with more than a few false alarms.
fn beginning(events: &[Event], relation: Relation, found: &[Point]) -> Vec<Point> {
    let last = found.iter().filter(|p| p.delta <= 1e-3).map(|p| p.epsilon);
    let end = last.fold(f64::INFINITY, f64::min).min(100.0);
    (0..MANY_DELTAS)
        .filter_map(|i| {
            let epsilon = end * i as f64 / MANY_DELTAS as f64;
            let query = Query::Delta {
                epsilon: Real::exact(epsilon),
            };
            let delta = account(events, relation, query).ok()?.delta;
            Some(Point { epsilon, delta })
        })
        .collect()
}

/// Shares of the Rényi divergence at the order that is best for all events together (Mironov
/// 2017), which is additive; where all releases read all rows, the shares of mu.
fn shares(events: &[Event], relation: Relation) -> Vec<f64> {
    let order = Accountant::Rdp
        .account(
            events,
            relation,
            Query::Epsilon {
                delta: Real::exact(1e-6),
            },
        )
        .ok()
        .and_then(|found| found.order)
        .unwrap_or(2);
    let divergence_of = |event: &Event| {
        let curve = rdp_curve(std::slice::from_ref(event), relation, &[order]).ok()?;
        curve.first().map(|at| at.tightened.to_f64())
    };
    let parts: Option<Vec<f64>> = events.iter().map(divergence_of).collect();
    let parts = parts.unwrap_or_default();
    let total: f64 = parts.iter().sum();
    if total.is_finite() && total > 0.0 {
        parts.iter().map(|part| part / total).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::function::special::normal_quantile;

    fn report(count: u64) -> Value {
        json!({
            "relation": "substitute",
            "delta": 1e-6,
            "events": [
                { "kind": "gaussian", "what": "gradient", "sensitivity": 2.0, "sigma": 20.0,
                  "clip": 1.0, "rate": 1.0, "count": 3 * count, "lattice": null },
                { "kind": "gaussian", "what": "log-ratio", "sensitivity": 2.0, "sigma": 20.0,
                  "clip": 1.0, "rate": 1.0, "count": count, "lattice": null },
            ],
        })
    }

    // Wrong here: the officer would be told that an attack does worse than it can, or much
    // better. Oracle: releases with mu = sum of sensitivity^2 / (2 sigma^2) are a Gaussian
    // mechanism, whose best test detects Phi(Phi^-1(a) + sqrt(2 mu)) (Dong, Roth and Su 2022).
    #[test]
    fn attacks_are_bounded_as_those_on_a_gaussian_mechanism() {
        let found = Guarantee::of(&report(25)).unwrap();
        let s = (2.0f64 * 100.0 * 4.0 / 800.0).sqrt();
        let phi = |x: f64| 0.5 * libm::erfc(-x / 2f64.sqrt());
        for alarm in [0.001, 0.05, 0.3, 0.9] {
            let best = phi(normal_quantile(alarm) + s);
            let bound = found.detection(alarm);
            assert!(bound >= best - 1e-12, "{bound} below {best}");
            assert!(bound < best + 0.002, "{bound} far above {best}");
        }
        let right = 0.5 + 0.5 * (2.0 * phi(s / 2.0) - 1.0);
        assert!((found.right_guesses() - right).abs() < 1e-6);
        assert!((found.shares[0] - 0.75).abs() < 1e-9, "{:?}", found.shares);
    }

    #[test]
    fn the_curve_falls_and_has_the_runs_own_point() {
        let found = Guarantee::of(&report(25)).unwrap();
        assert!(
            found
                .curve
                .windows(2)
                .all(|w| w[0].epsilon < w[1].epsilon && w[0].delta > w[1].delta)
        );
        assert!(found.curve.iter().any(|p| p.delta == 1e-6));
        assert!(found.curve.len() > 20);
    }

    #[test]
    fn hardly_any_noise_gives_hardly_any_guarantee_and_no_panic() {
        let mut loud = report(1_000_000);
        loud["events"][0]["sigma"] = json!(0.001);
        let found = Guarantee::of(&loud).unwrap();
        assert!(found.detection(0.05) > 0.999 && found.right_guesses() > 0.999);
        assert!(Guarantee::of(&json!({ "relation": null, "events": [] })).is_none());
        assert!(Guarantee::of(&json!({ "relation": "substitute", "events": [{}] })).is_none());
    }
}

//! What is claimed: the largest delta at each epsilon, as the program's own accountant
//! has it for the events that were charged.

use statrs::distribution::{ContinuousCDF, Normal};

use dpm::accounting::{Event, Query, Real, Relation, account};

/// A bound on the privacy profile: for neighbours D and D', in either order,
/// sup over sets S of P(S) - e^eps P'(S).
pub struct Claim {
    /// (eps, delta) from eps = 0 upwards.
    curve: Vec<(f64, f64)>,
    /// sqrt(sum of sensitivity^2 / sigma^2), for releases that read all rows: the mu of
    /// Gaussian differential privacy (Dong, Roth and Su 2022). `None` for others.
    pub mu: Option<f64>,
}

/// Epsilons at which a claim is looked at, from 0 to `largest`.
fn grid(largest: f64) -> impl Iterator<Item = f64> {
    (0..=100).map(move |i| largest * f64::from(i) / 100.0)
}

impl Claim {
    /// What the accountant makes of `events`.
    pub fn of(events: &[Event], relation: Relation) -> Result<Claim, String> {
        let at = |epsilon: f64| {
            let query = Query::Delta {
                epsilon: Real::from(epsilon),
            };
            account(events, relation, query).map_err(|e| e.to_string())
        };
        let mu = at(0.0)?.mu.map(|mu| (2.0 * mu).sqrt());
        // Past this, delta is below 1e-6 for a Gaussian of this mu, and no number of
        // runs that a test can make sees it.
        let largest = mu.map_or(8.0, |mu| mu * mu / 2.0 + 5.0 * mu);
        let curve = grid(largest)
            .map(|epsilon| Ok((epsilon, at(epsilon)?.delta)))
            .collect::<Result<_, String>>()?;
        Ok(Claim { curve, mu })
    }

    /// The mu of Gaussian differential privacy that has the claimed delta at epsilon 0: the
    /// claimed mu itself where there is one, and for others something to measure an audit by.
    pub fn mu_at_zero(&self) -> f64 {
        let delta = self.curve.first().map_or(1.0, |&(_, delta)| delta);
        // delta = 2 Phi(mu/2) - 1
        2.0 * Normal::standard().inverse_cdf(0.5 + 0.5 * delta)
    }

    /// By how much a test of "D" against "D'" with at most this false-positive and
    /// false-negative rate contradicts the claim; 0 or less if it does not.
    ///
    /// The set S on which the test says D has P(S) >= 1 - fnr and P'(S) <= fpr, and its
    /// complement P'(S^c) >= 1 - fpr and P(S^c) <= fnr.
    pub fn excess(&self, fpr: f64, fnr: f64) -> f64 {
        self.curve
            .iter()
            .map(|(epsilon, delta)| {
                let one = 1.0 - fnr - epsilon.exp() * fpr;
                let other = 1.0 - fpr - epsilon.exp() * fnr;
                one.max(other) - delta
            })
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

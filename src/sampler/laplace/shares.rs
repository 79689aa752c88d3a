//! The number of rounds, and the share of the budget for each of their releases. All of them follow
//! from public numbers.

use super::form::{Form, Information};
use crate::accounting::Real;
use crate::accounting::mu_for_budget;
use crate::sampler::contract::plan::PlanError;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::factor;

/// The number of records that a plan assumes where it is private and no guess was given.
pub(super) const GUESSED_RECORDS: f64 = 10_000.0;
/// A budget is tight if the noise in the centre is above this, in posterior sds.
const TIGHT: f64 = 0.4;
/// Shares of the budget: for the information, the same under a tight budget, for the slope and for
/// the certificate.
const FOR_INFORMATION: f64 = 0.13;
const FOR_INFORMATION_IF_TIGHT: f64 = 0.2;
const FOR_SLOPE: f64 = 0.03;
const FOR_CERTIFICATE: f64 = 0.06;
/// For lengths beyond the clip bound, where they are not bounded.
const FOR_BEYOND: f64 = 0.06;
/// The range of the share for histograms, which depends on the noise in counts.
const FOR_HISTOGRAMS: [f64; 2] = [0.05, 0.15];
/// The part of that share for lengths of gradients; the rest goes to those of information.
const OF_GRADIENTS: f64 = 0.7;
/// The part of the certificate's share for its gradient; the rest goes to its histogram.
const OF_ITS_GRADIENT: f64 = 0.85;
/// The parts of the gradients' share for the last round, at least, and for the first.
const LAST: f64 = 0.5;
const FIRST: [f64; 2] = [0.005, 0.05];
/// The range of the number of rounds that look in the wide directions only, where there are any: as many as
/// steps of a record's sd may be needed. The first of the other rounds gets `BESIDE_WIDE` times as much.
const OF_WIDE: [usize; 2] = [2, 6];
const BESIDE_WIDE: f64 = 2.0;
/// The factor by which each round is more exact than the one before.
const GROWTH: f64 = 2.2;

/// The plan of a search.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// The number of first rounds that look in the wide directions only.
    pub wide: usize,
    /// Releases of the gradient in each round, which are averaged.
    pub gradients: Vec<u64>,
    /// Releases of the other quantities in each round.
    pub others: Vec<u64>,
    pub gradient_lengths: f64,
    pub information_lengths: f64,
    pub information: f64,
    /// 0 where there is no such release.
    pub slope: f64,
    pub gradient: f64,
    pub certificate: f64,
    pub certificate_lengths: f64,
    /// 0 where there is no such release.
    pub beyond: f64,
    /// The expected standard deviation of the noise in the centre, in posterior sds.
    pub foreseen: f64,
}

impl Shares {
    pub fn of(request: &PlanRequest, form: &Form) -> Result<Shares, PlanError> {
        let mu = mu_for_budget(request.epsilon, request.delta, Real::ZERO)?;
        let n = request.records.map_or(GUESSED_RECORDS, |n| n as f64);
        let effective = (request.temperature * n).max(1.0);
        let d = form.coordinates.max(1) as f64;
        let tau = (2.0 * mu).sqrt().recip();
        let factor = f64::from(factor(request.relation));
        // Tempered gradients are smaller by the temperature, and so is their noise.
        let foreseen = 1.5 * factor * request.temperature * (d / effective).sqrt() * tau;
        let tight = foreseen > TIGHT;
        let first = (0.5 * foreseen).powi(2).clamp(FIRST[0], FIRST[1]);
        let steps = (LAST / first).ln() / GROWTH.ln();
        let rounds = 1 + (1 + steps.ceil() as usize).max(3);
        let wide = (form.wide.as_ref()).map_or(0, |wide| {
            let steps = 1.0 + wide.variance.sqrt().ceil();
            (steps as usize).clamp(OF_WIDE[0], OF_WIDE[1])
        });
        let unit = if wide > 0 { BESIDE_WIDE } else { 1.0 };
        let growing = (0..rounds).map(|k| (LAST / first).powf(k as f64 / (rounds - 1) as f64));
        let gradients: Vec<f64> = std::iter::repeat_n(1.0, wide)
            .chain(growing.map(|g| unit * g))
            .collect();
        let histograms = 2.0 * gradients.len() as f64 * (63.0 * tau / n).powi(2);
        let histograms = histograms.clamp(FOR_HISTOGRAMS[0], FOR_HISTOGRAMS[1]);
        let (information, slope) = match form.information {
            Information::Public => (0.0, 0.0),
            Information::Curvature => (for_information(tight), 0.0),
            // The balance is that of rows, but units are clipped.
            Information::Law { .. } | Information::Hazard(_) if tight || request.shared_units => {
                (for_information(tight), 0.0)
            }
            Information::Law { .. } | Information::Hazard(_) => (for_information(tight), FOR_SLOPE),
        };
        let beyond = match form.information {
            // Of units, lengths are not those of the law. Of groups, the error that is known is outcomes that are
            // thought to spread too much: then squares that the law predicts are not seen, and nothing is clipped.
            Information::Law { bounded: false }
                if !request.shared_units && form.blocks.is_none() =>
            {
                FOR_BEYOND
            }
            _ => 0.0,
        };
        let of_gradients = if information > 0.0 { OF_GRADIENTS } else { 1.0 };
        Ok(Shares {
            wide,
            others: gradients
                .iter()
                .map(|g| (2.0 * g.sqrt()).round() as u64)
                .collect(),
            gradients: gradients.iter().map(|g| g.round() as u64).collect(),
            gradient_lengths: histograms * of_gradients,
            information_lengths: histograms * (1.0 - of_gradients),
            information,
            slope,
            gradient: 1.0 - histograms - information - slope - FOR_CERTIFICATE - beyond,
            certificate: FOR_CERTIFICATE * OF_ITS_GRADIENT,
            certificate_lengths: FOR_CERTIFICATE * (1.0 - OF_ITS_GRADIENT),
            beyond,
            foreseen,
        })
    }

    /// Whether much noise is expected.
    pub fn are_tight(&self) -> bool {
        self.foreseen > TIGHT
    }

    pub fn rounds(&self) -> usize {
        self.gradients.len()
    }
}

fn for_information(tight: bool) -> f64 {
    if tight {
        FOR_INFORMATION_IF_TIGHT
    } else {
        FOR_INFORMATION
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Density;
    use crate::model::{Constants, Model};

    // If it failed: outcomes of groups that are thought to spread too much would be called no problem, since nothing
    // of them is clipped.
    #[test]
    fn of_groups_the_pull_beyond_the_clip_bound_is_not_asked_for() {
        let source = "record { real<lower=-99, upper=99> y; int<lower=1, upper=30> g; }
            parameters { real mu; real<lower=0> tau; vector[30] a; real<lower=0> s; }
            model { mu ~ normal(0, 1); tau ~ lognormal(0, 0.2); a ~ normal(mu, tau); s ~ lognormal(0, 1);
              y ~ normal(a[g], s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let groups = form.by_groups().unwrap();
        let request = PlanRequest {
            records: Some(20_000),
            ..PlanRequest::automatic(Real::from(3.0), Real::from(1e-6), density.dimension())
        };
        assert_eq!(Shares::of(&request, &form).unwrap().beyond, FOR_BEYOND);
        assert_eq!(Shares::of(&request, &groups).unwrap().beyond, 0.0);
    }
}

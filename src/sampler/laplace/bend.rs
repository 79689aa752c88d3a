//! The change of a record's information along each parameter, which bends the released likelihood:
//! it is normal near its centre, and elsewhere need not be.
//!
//! The information I(x) at other values x of one unconstrained parameter follows from the model's law
//! for simulated records, and is public. The likelihood of an exponential family is closest to normal
//! in b(x) with db = I^(1/3) dx, and a released gradient, normal by its noise, has the mean m(x)
//! with dm = I dx (Hougaard 1982, "Parametrizations of non-linear models", JRSS B 44). So the
//! likelihood is assumed to be normal in b(x) with db = (I(x)/I(centre))^p dx, p from 1/3 where there
//! is no noise to 1 where there is nothing else: flat where records say nothing, for example about the
//! degrees of freedom of a Student t that is near normal, or a class that hardly any record has.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::search::Likelihood;
use crate::density::{Density, Frame, Simulator};
use crate::privacy::{Expected, Look, Statistic, public_sum};
use crate::sampler::contract::form::Form;

/// The seed and the number of simulated records.
const SEED: u64 = 1;
const RECORDS: usize = 128;
/// The number of values of a parameter on either side of the centre, and their distance in standard
/// deviations of the answer.
const NODES: i32 = 4;
const APART: f64 = 1.5;
/// The limits on the information, relative to that at the centre.
const LIMITS: [f64; 2] = [0.1, 4.0];

/// A curve for each number of a point, which replaces it by its value; none if all numbers stay.
#[derive(Debug, Clone, Default)]
pub(super) struct Bend {
    curves: Vec<Curve>,
}

/// An increasing function whose value at the centre is the centre, with slope 1 there: the logarithm
/// of its slope is linear between nodes, and constant beyond them.
#[derive(Debug, Clone)]
struct Curve {
    first: f64,
    apart: f64,
    /// Logarithms of the slopes at the nodes.
    log_slopes: Vec<f64>,
    values: Vec<f64>,
}

impl Bend {
    /// The bend of a likelihood whose centre has noise of this variance, in posterior variances.
    pub fn of(form: &Form, density: &Density, likelihood: &Likelihood, noise: f64) -> Bend {
        let Some(law) = form.law(density) else {
            return Bend::default();
        };
        let moved = form.base.times(&likelihood.root);
        let origin = likelihood.origin.iter();
        let centre: Vec<f64> = origin.zip(moved).map(|(o, s)| o + s).collect();
        if !form.space.is_parameters() || !density.log_prior(&centre).is_finite() {
            return Bend::default();
        }
        let covariance = likelihood.precision.inverse();
        let covariance = covariance.between(&form.base.transposed());
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let raw = Simulator::new(density).records(&centre, RECORDS, None, rng);
        let (mut columns, _) = density.load_columns(&raw, RECORDS);
        columns.extend(density.columns_of_law(&raw));
        // Where columns are not centred, parameters are strongly correlated: one that moves alone
        // would leave the region of high density.
        let information = |j: usize, x: f64| {
            let by = (x - centre[j]) / covariance[(j, j)].max(f64::MIN_POSITIVE);
            let mut point: Vec<f64> = (centre.iter().enumerate())
                .map(|(k, c)| c + by * covariance[(k, j)])
                .collect();
            point[j] = x;
            let along = (0..point.len()).map(|k| f64::from(u8::from(k == j)));
            let frame = Frame::new(point.clone(), along.collect());
            let expected = Expected::by_law(&law, &form.space, &point, &frame);
            let sight = density.sight(&form.space, &point, &frame);
            let look = Look {
                expected: Some(&expected),
                ..Look::new(sight, Statistic::Information)
            };
            public_sum(density, &look, &columns, RECORDS)[0]
        };
        let power = (1.0 / 3.0 + noise) / (1.0 + noise);
        let curves = (0..centre.len()).map(|j| {
            // Where the prior is flat, the likelihood has to fall off by itself.
            let sd = if form.spread[j].is_finite() {
                covariance[(j, j)].max(0.0).sqrt().min(form.spread[j])
            } else {
                0.0
            };
            Curve::new(centre[j], APART * sd, |x| information(j, x), power)
        });
        Bend {
            curves: curves.collect(),
        }
    }

    /// The numbers in which the likelihood is normal, and their derivatives with respect to those of
    /// the point.
    pub fn at(&self, point: &[f64]) -> (Vec<f64>, Vec<f64>) {
        if self.curves.is_empty() {
            (point.to_vec(), vec![1.0; point.len()])
        } else {
            (point.iter().zip(&self.curves))
                .map(|(x, curve)| curve.at(*x))
                .unzip()
        }
    }
}

impl Curve {
    fn new(centre: f64, apart: f64, information: impl Fn(f64) -> f64, power: f64) -> Curve {
        let middle = NODES as usize;
        let here = information(centre);
        let log_slope = |k: i32| {
            let there = information(centre + f64::from(k) * apart);
            let ratio = (there / here).clamp(LIMITS[0], LIMITS[1]);
            if ratio.is_nan() || here <= 0.0 {
                0.0
            } else {
                power * ratio.ln()
            }
        };
        let log_slopes: Vec<f64> = (-NODES..=NODES)
            .map(|k| if k == 0 { 0.0 } else { log_slope(k) })
            .collect();
        let mut curve = Curve {
            first: centre - f64::from(NODES) * apart,
            apart,
            values: vec![0.0; log_slopes.len()],
            log_slopes,
        };
        for k in 1..curve.values.len() {
            curve.values[k] = curve.values[k - 1] + curve.gained(k - 1, apart);
        }
        let shift = centre - curve.values[middle];
        for value in &mut curve.values {
            *value += shift;
        }
        curve
    }

    /// The growth over the first `by` of the interval after node `k`.
    fn gained(&self, k: usize, by: f64) -> f64 {
        let slope = self.log_slopes[k].exp();
        let rate = (self.log_slopes[k + 1] - self.log_slopes[k]) / self.apart;
        if (rate * by).abs() < 1e-9 {
            slope * by
        } else {
            slope * (rate * by).exp_m1() / rate
        }
    }

    /// Value and slope.
    fn at(&self, x: f64) -> (f64, f64) {
        let last = self.values.len() - 1;
        let from_first = (x - self.first) / self.apart;
        if !(self.apart > 0.0 && from_first.is_finite()) {
            return (x, 1.0);
        }
        let end = |k: usize, from: f64| {
            let slope = self.log_slopes[k].exp();
            (self.values[k] + slope * (x - from), slope)
        };
        if from_first <= 0.0 {
            return end(0, self.first);
        }
        let k = from_first.floor() as usize;
        if k >= last {
            return end(last, self.first + last as f64 * self.apart);
        }
        let by = x - (self.first + k as f64 * self.apart);
        let rate = (self.log_slopes[k + 1] - self.log_slopes[k]) / self.apart;
        let slope = (self.log_slopes[k] + rate * by).exp();
        (self.values[k] + self.gained(k, by), slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Where information is x^-3, and there is no noise, the likelihood is normal in log x.
    // If it failed: slopes would not be those of the values, and trajectories would go astray.
    #[test]
    fn a_curve_is_the_integral_of_its_slope() {
        let curve = Curve::new(2.0, 0.1, |x| x.powi(-3), 1.0 / 3.0);
        let (value, slope) = curve.at(2.0);
        assert!((value - 2.0).abs() < 1e-12 && (slope - 1.0).abs() < 1e-12);
        for x in [1.3, 1.61, 1.95, 2.0, 2.2, 2.39, 2.7] {
            let (above, below) = (curve.at(x + 1e-6).0, curve.at(x - 1e-6).0);
            assert!(((above - below) / 2e-6 - curve.at(x).1).abs() < 1e-6, "{x}");
        }
        for x in [1.7, 1.9, 2.1, 2.3] {
            let log = 2.0 + 2.0 * (x / 2.0f64).ln();
            assert!((curve.at(x).0 - log).abs() < 2e-3, "{x}");
        }
    }

    #[test]
    fn where_the_information_is_no_number_nothing_is_bent() {
        for information in [f64::NAN, 0.0, -1.0] {
            let curve = Curve::new(1.0, 0.5, |_| information, 1.0);
            assert_eq!(curve.at(1.7), (1.7, 1.0));
        }
        assert_eq!(Curve::new(1.0, 0.0, |x| x, 1.0).at(3.0), (3.0, 1.0));
    }
}

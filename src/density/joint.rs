//! Outcomes with a joint normal density: mean and covariance, found from values of the log density.
//!
//! The log of a normal density is a quadratic function of its variates, so that differences of a few values give its
//! gradient and its second derivatives exactly. They are taken several times: first about zero, in units of the
//! variates; then about the mean found so far, in units of the spread found so far, where little is lost to rounding.
//! The last time the density must be standard normal in these units, at points further out too.

use std::f64::consts::TAU;

use crate::linear::{Matrix, dot};

/// How often differences are taken.
const PASSES: usize = 3;
/// By how much the log density may differ from that of a standard normal variable: rounding.
const OFF: f64 = 1e-6;
/// The sizes of a point's coordinates at which that is checked, in turn.
const FURTHER: [[f64; 3]; 2] = [[3.0, -1.0, 2.0], [-2.0, 2.5, 1.0]];

/// The normal distribution of one record's joined outcomes, on the scales of their variates.
#[derive(Debug, Clone)]
pub(super) struct Normal {
    mean: Vec<f64>,
    /// C, where C C' is the covariance.
    factor: Matrix,
    log_determinant: f64,
    /// The log of the integral of the density.
    pub log_mass: f64,
}

impl Normal {
    /// The one that the search starts from.
    fn standard(q: usize) -> Normal {
        Normal {
            mean: vec![0.0; q],
            factor: Matrix::identity(q),
            log_determinant: 0.0,
            log_mass: 0.0,
        }
    }

    /// The variate `k` at these normal scores.
    pub fn value(&self, k: usize, scores: &[f64]) -> f64 {
        let row = &self.factor.entries()[k * scores.len()..][..scores.len()];
        self.mean[k] + dot(row, scores)
    }

    /// The normal distribution that has these log densities at the places of a `Stencil`; `None` where it is none.
    fn moved(self, stencil: &Stencil, log_densities: &[f64]) -> Option<Normal> {
        let (gradient, precision) = stencil.derivatives(log_densities);
        let q = gradient.len();
        // Variates may differ by many orders of magnitude.
        let units: Vec<f64> = (0..q).map(|k| precision[(k, k)].sqrt().recip()).collect();
        let scaled = Matrix::new(q, q, |k, l| units[k] * precision[(k, l)] * units[l]);
        if !scaled.is_finite() {
            return None;
        }
        let (values, _) = scaled.eigen();
        if !values.iter().all(|v| *v > 0.0) {
            return None;
        }
        let logs = units.iter().map(|u| u.ln());
        let logs = logs.chain(values.iter().map(|v| -0.5 * v.ln()));
        let log_determinant = self.log_determinant + logs.sum::<f64>();
        let units = Matrix::diagonal(&units);
        let step = scaled.inverse().between(&units).times(&gradient);
        let peak = log_densities[0] + 0.5 * dot(&gradient, &step);
        let root = scaled.with_eigenvalues(|v| v.sqrt().recip());
        Some(Normal {
            mean: (0..q).map(|k| self.value(k, &step)).collect(),
            factor: &(&self.factor * &units) * &root,
            log_determinant,
            log_mass: peak + log_determinant + 0.5 * q as f64 * TAU.ln(),
        })
    }
}

/// The normal scores at which log densities are taken: the middle, a step either way along each axis, and a step
/// along two axes at once; then some further out.
struct Stencil {
    q: usize,
    places: Vec<Vec<f64>>,
}

impl Stencil {
    fn new(q: usize) -> Stencil {
        let along = |steps: &[(usize, f64)]| {
            let mut place = vec![0.0; q];
            steps.iter().for_each(|&(k, step)| place[k] = step);
            place
        };
        let mut places = vec![along(&[])];
        for k in 0..q {
            places.extend([along(&[(k, 1.0)]), along(&[(k, -1.0)])]);
        }
        for k in 0..q {
            places.extend((0..k).map(|l| along(&[(k, 1.0), (l, 1.0)])));
        }
        let further = FURTHER.map(|sizes| (0..q).map(|k| sizes[k % sizes.len()]).collect());
        places.extend(further);
        Stencil { q, places }
    }

    /// The gradient in the middle, and minus the second derivatives.
    fn derivatives(&self, log_densities: &[f64]) -> (Vec<f64>, Matrix) {
        let middle = log_densities[0];
        let [ahead, behind] = [1, 2].map(|side| move |k: usize| log_densities[2 * k + side]);
        let gradient: Vec<f64> = (0..self.q).map(|k| 0.5 * (ahead(k) - behind(k))).collect();
        let pair = |k: usize, l: usize| log_densities[1 + 2 * self.q + k * (k - 1) / 2 + l];
        let precision = Matrix::new(self.q, self.q, |k, l| {
            if k == l {
                2.0 * middle - ahead(k) - behind(k)
            } else {
                ahead(k) + ahead(l) - middle - pair(k.max(l), k.min(l))
            }
        });
        (gradient, precision)
    }

    /// Whether the log densities are those of a standard normal variable, up to a constant.
    fn is_standard(&self, log_densities: &[f64]) -> bool {
        let middle = log_densities[0];
        let mut all = self.places.iter().zip(log_densities);
        all.all(|(place, found)| {
            let expected = -0.5 * dot(place, place);
            (found - middle - expected).abs() <= OFF * (1.0 + middle.abs() - expected)
        })
    }
}

/// The joint distribution of `q` variates for each record; `None` where it is not normal. `find` gets
/// the variates, `[variate][record]`, and returns their log densities.
pub(super) fn normals(
    q: usize,
    rows: usize,
    mut find: impl FnMut(&[Vec<f64>]) -> Vec<f64>,
) -> Vec<Option<Normal>> {
    let stencil = Stencil::new(q);
    let mut found = vec![Some(Normal::standard(q)); rows];
    let mut variates = vec![vec![0.0; rows]; q];
    for pass in 1..=PASSES {
        let mut log_densities = vec![Vec::with_capacity(stencil.places.len()); rows];
        for place in &stencil.places {
            for (i, normal) in found.iter().enumerate() {
                if let Some(normal) = normal {
                    for (k, of_variate) in variates.iter_mut().enumerate() {
                        of_variate[i] = normal.value(k, place);
                    }
                }
            }
            let at_place = find(&variates);
            for (own, log_density) in log_densities.iter_mut().zip(at_place) {
                own.push(log_density);
            }
        }
        for (own, log_densities) in found.iter_mut().zip(&log_densities) {
            let is_normal = pass < PASSES || stencil.is_standard(log_densities);
            let before = own.take().filter(|_| is_normal);
            *own = before.and_then(|before| before.moved(&stencil, log_densities));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log density of a bivariate normal variable with this correlation.
    fn log_density(x: [f64; 2], mean: [f64; 2], sd: [f64; 2], rho: f64) -> f64 {
        let [u, v] = [0, 1].map(|k| (x[k] - mean[k]) / sd[k]);
        let rest = 1.0 - rho * rho;
        -0.5 * (u * u - 2.0 * rho * u * v + v * v) / rest
            - (TAU * sd[0] * sd[1]).ln()
            - 0.5 * rest.ln()
    }

    // If it failed: nodes of joined outcomes would be those of another distribution. Oracle: the density that
    // they were made from.
    #[test]
    fn mean_and_covariance_of_each_record_are_found() {
        let cases = [
            ([0.3, -2.0], [1.4, 0.2], 0.0),
            ([7e3, 1e5], [0.01, 3.0], -0.8),
            ([-1e-3, 4.0], [1e-4, 2e4], 0.999),
        ];
        let found = normals(2, cases.len(), |x| {
            let of_case = |(i, (mean, sd, rho)): (usize, &([f64; 2], [f64; 2], f64))| {
                log_density([x[0][i], x[1][i]], *mean, *sd, *rho)
            };
            cases.iter().enumerate().map(of_case).collect()
        });
        for (normal, (mean, sd, rho)) in found.into_iter().zip(cases) {
            let normal = normal.unwrap();
            assert!(normal.log_mass.abs() < 1e-6, "{}", normal.log_mass);
            for k in 0..2 {
                let off = normal.value(k, &[0.0, 0.0]) - mean[k];
                assert!(off.abs() < 1e-6 * sd[k], "mean off by {off}");
            }
            let covariance = &normal.factor * &normal.factor.transposed();
            for (k, l) in [(0, 0), (0, 1), (1, 1)] {
                let exact = sd[k] * sd[l] * if k == l { 1.0 } else { rho };
                let off = (covariance[(k, l)] - exact) / (sd[k] * sd[l]);
                assert!(off.abs() < 1e-6, "covariance off by {off}");
            }
        }
    }

    // If it failed: heavier or lighter tails would be taken for normal ones, and a plane for a peak.
    #[test]
    fn other_densities_are_none() {
        let shapes: [fn(f64) -> f64; 4] = [
            |square| -3.0 * (square / 4.0).ln_1p(),
            |square| -0.5 * square - 1e-3 * square * square,
            |_| 0.0,
            |square| 0.5 * square,
        ];
        let found = normals(2, shapes.len(), |x| {
            let square = |i: usize| x[0][i] * x[0][i] + x[1][i] * x[1][i];
            let of_shape = |(i, shape): (usize, &fn(f64) -> f64)| shape(square(i));
            shapes.iter().enumerate().map(of_shape).collect()
        });
        assert!(found.iter().all(Option::is_none));
    }
}

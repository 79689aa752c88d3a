//! Whether the curvature of a record's log-likelihood is public.
//!
//! A record sees the parameters only through the interface z(theta). Where the second derivative
//! with respect to z is the same for all records, as for a normal mean with a known covariance, the
//! information in n records is n times a function of theta that needs no row, so that there is
//! nothing to release.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::simulate::Simulator;
use super::{BLOCK, Density, Jacobian};

/// Public records, places and directions at which curvatures are compared.
const RECORDS: usize = 64;
const PLACES: usize = 3;
const DIRECTIONS: usize = 3;
/// Step of central differences in z, as a share of 1 + |z|.
const STEP: f64 = 1e-3;
/// How much the curvatures of two records may differ, relative to the largest gradient or
/// curvature: the error of central differences.
const TOLERANCE: f64 = 1e-6;
/// The same between two places.
const AT_PLACES: f64 = 1e-4;
/// Less curvature than this, relative to the gradient, is rounding. Outcomes may be millions of sds away.
const STRAIGHT: f64 = 1e-9;

/// Facts about how records see the parameters, known without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curvature {
    /// d2 l/dz2 is the same for all records, at every theta.
    ///
    /// Found by comparing it at 64 public records, at 3 public points, along 3 random
    /// directions: any difference above 1e-6 of the curvature is detected.
    pub is_public: bool,
    /// It is also the same at all of these points, and there is some along each number of z: the log-likelihood is
    /// quadratic in z. Along a number in which it is straight, as in the logarithm of a probability, z(theta) alone makes
    /// the curvature.
    pub is_quadratic: bool,
    /// No place of the interface multiplies a column or is looked up by one: all records
    /// see theta through the same numbers.
    pub is_bottleneck: bool,
}

impl Curvature {
    /// `centre` is a public point (unconstrained), such as the middle of the prior. A model whose
    /// curvature is not a number at any place tried has no public one.
    pub fn of(density: &Density, centre: &[f64], seed: u64) -> Curvature {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let simulator = Simulator::new(density).by_bounds();
        let mut normal = || Distribution::<f64>::sample(&StandardNormal, rng);
        let places: Vec<Vec<f64>> = (0..PLACES)
            .map(|k| centre.iter().map(|c| c + k as f64 * normal()).collect())
            .collect();
        let directions: Vec<Vec<f64>> = (0..DIRECTIONS)
            .map(|_| {
                (0..density.rows.interface_length())
                    .map(|_| normal())
                    .collect()
            })
            .collect();
        let raw = simulator.records(centre, RECORDS, None, rng);
        let (columns, _) = density.load_columns(&raw, RECORDS);
        let mut is_public = !density.rows.columns().is_empty();
        let mut known = false;
        let mut is_quadratic = true;
        let mut first: Option<Vec<f64>> = None;
        for theta in &places {
            let z = density.interface(theta).z;
            for direction in &directions {
                match same_for_all(density, &columns, &z, direction) {
                    Some(same) => {
                        known = true;
                        is_public &= same;
                    }
                    None => is_public &= theta != centre,
                }
            }
            let here = curvature_at(density, &columns, &z);
            is_quadratic &= are_close(first.get_or_insert_with(|| here.clone()), &here)
                && !is_straight(density, &columns, &z, &here);
        }
        let is_public = is_public && known;
        Curvature {
            is_public,
            is_quadratic: is_public && is_quadratic,
            is_bottleneck: !density.rows.multiplies_columns(),
        }
    }
}

/// Minus d2 l/dz2 at `z`, by rows, of the record with these columns (those of the row program): of
/// every record, where curvature is public.
pub(crate) fn curvature_at(density: &Density, columns: &[Vec<f64>], z: &[f64]) -> Vec<f64> {
    let q = z.len();
    let mut entries = Vec::with_capacity(q * q);
    for k in 0..q {
        let direction: Vec<f64> = (0..q).map(|j| f64::from(u8::from(j == k))).collect();
        let step = 2.0 * STEP * (1.0 + z[k].abs());
        let (above, below) = sides(density, columns, 1, z, &direction);
        entries.extend((0..q).map(|j| (below[j * BLOCK] - above[j * BLOCK]) / step));
    }
    entries
}

/// Whether two vectors differ by no more than the error of central differences.
fn are_close(a: &[f64], b: &[f64]) -> bool {
    let largest = a.iter().chain(b).fold(0.0_f64, |m, x| m.max(x.abs()));
    let close = |(x, y): (&f64, &f64)| (x - y).abs() <= AT_PLACES * largest;
    a.iter().zip(b).all(close)
}

/// Whether the log-likelihood of some record is straight along a number of z, where its curvature is this.
fn is_straight(density: &Density, columns: &[Vec<f64>], z: &[f64], curvature: &[f64]) -> bool {
    let q = z.len();
    let (gradients, _) = sides(density, columns, RECORDS, z, &vec![0.0; q]);
    (0..q).any(|k| {
        let of_records = &gradients[k * BLOCK..][..RECORDS];
        let steepest = of_records.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        let bent = curvature[k * q + k] * (1.0 + z[k].abs());
        bent < STRAIGHT * steepest
    })
}

/// Gradients with respect to z a step above and below z along `direction`, in units of
/// [`STEP`] (1 + |z|) for each place.
fn sides(
    density: &Density,
    columns: &[Vec<f64>],
    records: usize,
    z: &[f64],
    direction: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let identity = Jacobian::identity(z.len());
    let block: Vec<&[f64]> = columns.iter().map(|c| &c[..records]).collect();
    let gradients = |side: f64| {
        let step = |(z, v): (&f64, &f64)| z + side * STEP * (1.0 + z.abs()) * v;
        let moved: Vec<f64> = z.iter().zip(direction).map(step).collect();
        let mut scratch = density.rows.scratch(&moved);
        let gradients = density
            .rows
            .gradients(&block, records, &identity, &mut scratch);
        gradients.to_vec()
    };
    (gradients(1.0), gradients(-1.0))
}

/// Whether all records have the same curvature along `direction`; none where some of them are not
/// numbers.
fn same_for_all(
    density: &Density,
    columns: &[Vec<f64>],
    z: &[f64],
    direction: &[f64],
) -> Option<bool> {
    let q = z.len();
    let (above, below) = sides(density, columns, RECORDS, z, direction);
    let (mut largest, mut off) = (0.0_f64, 0.0_f64);
    for k in 0..q {
        let place = |i: usize| k * BLOCK + i;
        let curvature = |i: usize| (above[place(i)] - below[place(i)]) / (2.0 * STEP);
        for i in 0..RECORDS {
            let gradient = above[place(i)].abs().max(below[place(i)].abs());
            largest = largest.max(gradient).max(curvature(i).abs());
            let difference = (curvature(i) - curvature(0)).abs();
            if !(difference.is_finite() && gradient.is_finite()) {
                return None;
            }
            off = off.max(difference);
        }
    }
    Some(off <= TOLERANCE * largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    fn curvature(source: &str, constants: &Constants) -> Curvature {
        let density = Density::new(Model::from_source(source, constants).unwrap());
        Curvature::of(&density, &vec![0.1; density.dimension()], 1)
    }

    fn of_file(name: &str) -> Curvature {
        let folder = format!("{}/models/{name}", env!("CARGO_MANIFEST_DIR"));
        let constants = Constants::from_file(format!("{folder}.constants.json")).unwrap();
        let source = std::fs::read_to_string(format!("{folder}.dpm")).unwrap();
        curvature(&source, &constants)
    }

    // If it failed: the information in the records would be taken for public, or budget would be
    // spent where none is needed.
    #[test]
    fn normal_means_with_known_covariance_have_it_and_others_have_not() {
        let both = Curvature {
            is_public: true,
            is_quadratic: true,
            is_bottleneck: true,
        };
        assert_eq!(of_file("paper_banana_d2"), both);
        assert_eq!(of_file("paper_gauss_d10"), both);
        let none = Constants::none();
        let regression = "real a; real b; } model { y ~";
        for (outcome, family) in [
            ("int<lower=0, upper=1>", "bernoulli_logit(a + b * x)"),
            ("int<lower=0>", "poisson_log(a + b * x)"),
            ("real", "normal(a + b * x, 2)"),
        ] {
            let source = format!(
                "record {{ {outcome} y; real x; }} parameters {{ {regression} {family}; }}"
            );
            let found = curvature(&source, &none);
            assert!(!found.is_public && !found.is_bottleneck, "{family}");
        }
        // If it failed: the first model of every course would be refused, since records would tell nothing.
        for family in [
            "bernoulli(p)",
            "bernoulli(inv_logit(logit(p)))",
            "binomial(1, p)",
        ] {
            let source = format!(
                "record {{ int<lower=0, upper=1> y; }} parameters {{ real<lower=0, upper=1> p; }}
                 model {{ p ~ beta(1, 1); y ~ {family}; }}"
            );
            assert!(!curvature(&source, &none).is_quadratic, "{family}");
        }
        // A mean with a known spread, and a number that the records of one kind are straight in and others do not see.
        let beside = "record { int<lower=0, upper=1> y; real<lower=-9, upper=9> x; }
            parameters { real m; real p; } model { x ~ normal(m, 1); target += y * p - log1p_exp(p); }";
        assert!(!curvature(beside, &none).is_quadratic);
        let scale = "record { real y; } parameters { real m; real<lower=0> s; }
                     model { y ~ normal(m, s); }";
        let found = curvature(scale, &none);
        assert!(!found.is_public, "an unknown scale");
        // Records of y = 0 see exp(a), and others a: second derivatives by these two differ,
        // though those by a do not.
        let rate =
            "record { int<lower=0> y; } parameters { real a; } model { y ~ poisson_log(a); }";
        let found = curvature(rate, &none);
        let of_some = !found.is_public && !found.is_quadratic && found.is_bottleneck;
        assert!(of_some, "a rate: {found:?}");
        let odds = "record { int<lower=0, upper=1> y; } parameters { real a; }
                    model { target += -log1p_exp((1 - 2 * y) * a); }";
        let found = curvature(odds, &none);
        assert!(found.is_public && !found.is_quadratic, "odds: {found:?}");
    }
}

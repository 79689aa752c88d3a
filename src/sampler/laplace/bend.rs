//! The change of a record's information along each parameter, which bends the released likelihood:
//! it is normal near its centre, and elsewhere need not be.
//!
//! The information I(x) at other values x of one unconstrained parameter follows from the model's law
//! for simulated records, and is public. The likelihood of an exponential family is closest to normal
//! in b(x) with db = I^(1/3) dx (Hougaard 1982, "Parametrizations of non-linear models", JRSS B 44). A
//! released gradient, normal by its noise, is that of the records at the centre c, and has the mean
//! m(x) with dm/dx = M(x) = E_x[g_c g_x], which is I(x) where x is a natural parameter, and falls as
//! exp(2 (x - c)) where it is the logarithm of a normal scale: gradients of records that spread less
//! and less all approach the same. So the likelihood is assumed to be normal in b(x) with db =
//! (I(x)/I(c))^(1/3 (1 - s)) (M(x)/M(c))^s dx, where s is the share of the noise in the variance: flat
//! where records say nothing, for example about the degrees of freedom of a Student t that is near
//! normal, or a class that hardly any record has.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::form::Form;
use super::response::{RECORDS, Response};
use super::search::Likelihood;
use crate::density::{Density, Frame, Simulator};
use crate::model::Parameter;
use crate::privacy::{Expected, Look, Statistic, public_sum};
use crate::sampler::prior::prior_curvature;

/// The seed of simulated records.
const SEED: u64 = 1;
/// The number of values of a parameter on either side of the centre, and their distance in standard
/// deviations of the answer.
const NODES: i32 = 4;
const APART: f64 = 1.5;
/// The limits on information and response, relative to those at the centre.
const LIMITS: [f64; 2] = [0.1, 4.0];
/// The limits on slopes of the coordinates of chains.
const SLOPES: [f64; 2] = [0.5, 2.0];
/// A side is open if the likelihood at the last node is within this many of its standard deviations of the centre, for
/// a normal one six, and the noise is at least this share of its variance.
const OPEN: f64 = 4.5;
const BY_NOISE: f64 = 0.4;

/// A curve for each number of a point, which replaces it by its value; none if all numbers stay.
#[derive(Debug, Clone, Default)]
pub(super) struct Bend {
    curves: Vec<Curve>,
    pub open: OpenSides,
}

/// The output columns (`beta.1`) of parameters whose likelihood hardly falls off towards one side, because noise hides
/// the little that records say there: the level of a class, for example, that noise could have made. How far out
/// the draws reach on that side is decided by the prior.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OpenSides {
    pub below: Vec<String>,
    pub above: Vec<String>,
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

/// A curve at a point: its value, its slope, and the derivative of the logarithm of the slope.
#[derive(Debug, PartialEq)]
struct At {
    value: f64,
    slope: f64,
    rate: f64,
}

impl OpenSides {
    /// Adds the open sides of a coordinate, below and above, whose column changes if it is moved by `by`.
    fn add(
        &mut self,
        density: &Density,
        (centre, j): (&[f64], usize),
        is_open: [bool; 2],
        by: f64,
    ) {
        for (side, is_open) in [-1.0, 1.0].into_iter().zip(is_open) {
            let found = is_open.then(|| column_of(density, centre, j, side * by));
            match found.flatten() {
                Some((name, true)) => self.above.push(name),
                Some((name, false)) => self.below.push(name),
                None => {}
            }
        }
    }
}

impl Bend {
    /// The bend of a likelihood whose centre has noise of this variance, in posterior variances.
    pub fn of(form: &Form, density: &Density, likelihood: &Likelihood, noise: f64) -> Bend {
        let Some(law) = form.law(density) else {
            return Bend::default();
        };
        let moved = form.base.times(&likelihood.centre);
        let origin = likelihood.origin.iter();
        let centre: Vec<f64> = origin.zip(moved).map(|(o, s)| o + s).collect();
        if !form.space.is_parameters() || !density.log_prior(&centre).is_finite() {
            return Bend::default();
        }
        let covariance = likelihood.precision.inverse();
        let covariance = covariance.between(&form.base.transposed());
        let prior = prior_curvature(density, &centre).with_eigenvalues(|e| e.max(0.0));
        let prior = prior.between(&form.base);
        let posterior = (&likelihood.precision + &prior).inverse();
        let posterior = posterior.between(&form.base.transposed());
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let raw = Simulator::new(density).records(&centre, RECORDS, None, rng);
        let of_law = density.columns_of_law(&raw);
        let (mut columns, _) = density.load_columns(&raw, RECORDS);
        columns.extend(of_law.iter().cloned());
        let alone = |j: usize| -> Vec<f64> {
            (0..centre.len())
                .map(|k| f64::from(u8::from(k == j)))
                .collect()
        };
        // Where columns are not centred, parameters are strongly correlated: one that moves alone
        // would leave the region of high density.
        let with_others = |j: usize| -> Vec<f64> {
            let own = posterior[(j, j)].max(f64::MIN_POSITIVE);
            let path =
                (0..centre.len()).map(|k| if k == j { 1.0 } else { posterior[(k, j)] / own });
            path.collect()
        };
        let information = |j: usize, point: Vec<f64>| {
            let frame = Frame::new(point.clone(), alone(j));
            let expected = Expected::by_law(&law, &form.space, &point, &frame);
            let sight = density.sight(&form.space, &point, &frame);
            let look = Look {
                expected: Some(&expected),
                ..Look::new(sight, Statistic::Information)
            };
            public_sum(density, &look, &columns, RECORDS)[0]
        };
        // The information about coordinate j at the centre + by path, and the response of its score at the centre.
        let told = |j: usize, path: &[f64], by: f64| {
            let point = centre.iter().zip(path).map(|(c, p)| c + by * p).collect();
            let both = alone(j)
                .into_iter()
                .zip(path)
                .flat_map(|(own, p)| [own, *p]);
            let frame = Frame::new(centre.clone(), both.collect());
            let response = Response::new(form, &of_law, &law, &frame, RECORDS as f64);
            let slope = response.slope(&[0.0, by]);
            [
                information(j, point),
                slope.map_or(f64::NAN, |slope| slope[(0, 1)]),
            ]
        };
        let share = noise / (1.0 + noise);
        let curve = |j: usize, path: Vec<f64>, apart: f64| {
            Curve::new(centre[j], apart, |by| told(j, &path, by), share)
        };
        let curves = (0..centre.len()).map(|j| {
            // Where the prior is flat, the likelihood has to fall off by itself.
            let sd = if form.spread[j].is_finite() {
                covariance[(j, j)].max(0.0).sqrt().min(form.spread[j])
            } else {
                0.0
            };
            curve(j, with_others(j), APART * sd)
        });
        let mut bend = Bend {
            curves: curves.collect(),
            open: OpenSides::default(),
        };
        let without_noise = likelihood.known.inverse().between(&form.base.transposed());
        let precision = likelihood.precision.between(&form.lift);
        for j in 0..centre.len() {
            if without_noise[(j, j)] > (1.0 - BY_NOISE) * covariance[(j, j)] {
                continue;
            }
            // Others that move as well may make up for what is lost: either path can be the open one.
            let (sd, own) = (covariance[(j, j)].sqrt(), precision[(j, j)].sqrt().recip());
            let alone = curve(j, alone(j), APART * own);
            let is_open = [(&bend.curves[j], sd), (&alone, own)].map(|(c, sd)| c.is_open(sd));
            let is_open = [0, 1].map(|side| is_open[0][side] || is_open[1][side]);
            bend.open.add(density, (&centre, j), is_open, APART * own);
        }
        bend
    }

    /// The same, but that slopes are within limits at which chains still move well: where the likelihood is flat, in
    /// numbers in which it is normal, what the prior says would be a narrow peak.
    pub fn limited(&self) -> Bend {
        let [least, most] = SLOPES;
        let curve = |curve: &Curve| {
            let slopes = curve.log_slopes.iter();
            let limited = slopes.map(|slope| slope.clamp(least.ln(), most.ln()));
            Curve::of(curve.first, curve.apart, limited.collect())
        };
        Bend {
            curves: self.curves.iter().map(curve).collect(),
            open: OpenSides::default(),
        }
    }

    /// The numbers in which the likelihood is normal, and their derivatives with respect to those of
    /// the point.
    pub fn at(&self, point: &[f64]) -> (Vec<f64>, Vec<f64>) {
        if self.curves.is_empty() {
            (point.to_vec(), vec![1.0; point.len()])
        } else {
            (point.iter().zip(&self.curves))
                .map(|(x, curve)| {
                    let At { value, slope, .. } = curve.at(*x);
                    (value, slope)
                })
                .unzip()
        }
    }

    /// The point whose numbers these are.
    pub fn back(&self, numbers: &[f64]) -> Vec<f64> {
        if self.curves.is_empty() {
            numbers.to_vec()
        } else {
            let curves = numbers.iter().zip(&self.curves);
            curves.map(|(value, curve)| curve.back(*value)).collect()
        }
    }

    /// The logarithm of |det dx/db| at the point x, and, in place of the gradient of a log density of x, that of the
    /// density of the numbers b.
    pub fn pull_back(&self, point: &[f64], gradient: &mut [f64]) -> f64 {
        let curves = point.iter().zip(&self.curves).zip(gradient);
        curves
            .map(|((x, curve), gradient)| {
                let At { slope, rate, .. } = curve.at(*x);
                *gradient = (*gradient - rate) / slope;
                -slope.ln()
            })
            .sum()
    }
}

/// The output column of an unconstrained coordinate, and whether it grows if the coordinate is moved by `by`; `None` if
/// the parameter has fewer coordinates than elements.
pub(super) fn column_of(
    density: &Density,
    at: &[f64],
    j: usize,
    by: f64,
) -> Option<(String, bool)> {
    let model = density.model();
    let has_coordinate = |p: &&Parameter| (p.offset..p.offset + p.free_length).contains(&j);
    let parameter = model.parameters.iter().find(has_coordinate)?;
    if parameter.free_length != parameter.shape.length() {
        return None;
    }
    let columns = model.output_columns();
    let column = columns.iter().position(|(_, output, position)| {
        model.outputs[*output].name == parameter.name && *position == j - parameter.offset
    })?;
    let mut moved = at.to_vec();
    moved[j] += by;
    let grown = density.outputs(&moved)[column] > density.outputs(at)[column];
    Some((columns[column].0.clone(), grown))
}

impl Curve {
    /// `told`: information and response at a distance from the centre; `share`: that of the noise in the variance.
    fn new(centre: f64, apart: f64, told: impl Fn(f64) -> [f64; 2], share: f64) -> Curve {
        let here = told(0.0);
        let log_ratio = |there: f64, here: f64| {
            let ratio = (there / here).clamp(LIMITS[0], LIMITS[1]);
            (here > 0.0 && !ratio.is_nan()).then(|| ratio.ln())
        };
        let log_slope = |k: i32| {
            let there = told(f64::from(k) * apart);
            let [information, response] = [0, 1].map(|i| log_ratio(there[i], here[i]));
            let information = information.unwrap_or(0.0);
            (1.0 - share) * information / 3.0 + share * response.unwrap_or(information)
        };
        let log_slopes: Vec<f64> = (-NODES..=NODES)
            .map(|k| if k == 0 { 0.0 } else { log_slope(k) })
            .collect();
        Curve::of(centre - f64::from(NODES) * apart, apart, log_slopes)
    }

    /// From nodes and the logarithms of slopes there.
    fn of(first: f64, apart: f64, log_slopes: Vec<f64>) -> Curve {
        let middle = NODES as usize;
        let centre = first + f64::from(NODES) * apart;
        let mut curve = Curve {
            first,
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

    /// Whether the likelihood hardly falls off below, and above, where its standard deviation is this.
    fn is_open(&self, sd: f64) -> [bool; 2] {
        let centre = self.values[NODES as usize];
        let ends = [self.values[0], self.values[2 * NODES as usize]];
        ends.map(|end| (end - centre).abs() < OPEN * sd)
    }

    /// The growth over the first `by` of the interval after node `k`.
    fn gained(&self, k: usize, by: f64) -> f64 {
        let slope = self.log_slopes[k].exp();
        let rate = self.rate(k);
        if (rate * by).abs() < 1e-9 {
            slope * by
        } else {
            slope * (rate * by).exp_m1() / rate
        }
    }

    /// The rate at which the logarithm of the slope grows in the interval after node `k`.
    fn rate(&self, k: usize) -> f64 {
        (self.log_slopes[k + 1] - self.log_slopes[k]) / self.apart
    }

    fn node(&self, k: usize) -> f64 {
        self.first + k as f64 * self.apart
    }

    fn at(&self, x: f64) -> At {
        let last = self.values.len() - 1;
        let from_first = (x - self.first) / self.apart;
        if !(self.apart > 0.0 && from_first.is_finite()) {
            let (value, slope, rate) = (x, 1.0, 0.0);
            return At { value, slope, rate };
        }
        // Beyond the nodes, the slope is that of the last.
        if from_first <= 0.0 || from_first >= last as f64 {
            let k = if from_first <= 0.0 { 0 } else { last };
            let slope = self.log_slopes[k].exp();
            let value = self.values[k] + slope * (x - self.node(k));
            let rate = 0.0;
            return At { value, slope, rate };
        }
        let k = from_first.floor() as usize;
        let (by, rate) = (x - self.node(k), self.rate(k));
        let slope = (self.log_slopes[k] + rate * by).exp();
        let value = self.values[k] + self.gained(k, by);
        At { value, slope, rate }
    }

    /// The point at which the curve has this value.
    fn back(&self, value: f64) -> f64 {
        let last = self.values.len() - 1;
        if !(self.apart > 0.0 && value.is_finite()) {
            return value;
        }
        let above = self.values.partition_point(|v| *v <= value);
        if above == 0 || above > last {
            let k = if above == 0 { 0 } else { last };
            return self.node(k) + (value - self.values[k]) / self.log_slopes[k].exp();
        }
        let k = above - 1;
        let (by, rate) = (
            (value - self.values[k]) / self.log_slopes[k].exp(),
            self.rate(k),
        );
        // The inverse of `gained`.
        let by = if (rate * by).abs() < 1e-9 {
            by
        } else {
            (rate * by).ln_1p() / rate
        };
        self.node(k) + by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::Matrix;
    use crate::model::{Constants, Model};

    // Where information is x^-3, and there is no noise, the likelihood is normal in log x.
    // If it failed: slopes would not be those of the values, and trajectories would go astray.
    #[test]
    fn a_curve_is_the_integral_of_its_slope() {
        let curve = Curve::new(2.0, 0.1, |by| [(2.0 + by).powi(-3), 1.0], 0.0);
        let At { value, slope, .. } = curve.at(2.0);
        assert!((value - 2.0).abs() < 1e-12 && (slope - 1.0).abs() < 1e-12);
        for x in [1.3, 1.61, 1.95, 2.02, 2.23, 2.39, 2.7] {
            let [below, here, above] = [-1e-6, 0.0, 1e-6].map(|by| curve.at(x + by));
            assert!(
                ((above.value - below.value) / 2e-6 - here.slope).abs() < 1e-6,
                "{x}"
            );
            let rate = (above.slope / below.slope).ln() / 2e-6;
            assert!((rate - here.rate).abs() < 1e-6, "{x}");
            assert!((curve.back(here.value) - x).abs() < 1e-12, "{x}");
        }
        for x in [1.7, 1.9, 2.1, 2.3] {
            let log = 2.0 + 2.0 * (x / 2.0f64).ln();
            assert!((curve.at(x).value - log).abs() < 2e-3, "{x}");
        }
    }

    // Oracle: noise with a standard deviation of a share r of the expected number of events, exp(a) n, excludes that
    // there are none by 1 / r standard deviations. If it failed: the level of a class that noise could have made
    // would be taken for an estimate, or any level for a bound.
    #[test]
    fn a_level_that_noise_could_have_made_is_open_below() {
        let source = "record { int<lower=0, upper=1> y; } parameters { vector[1] a; }
            model { a ~ normal(0, 3); y ~ bernoulli_logit(a[1]); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let open = |share: f64, of_noise: f64| {
            let precision = (share / form.base[(0, 0)]).powi(-2);
            let likelihood = Likelihood {
                known: Matrix::diagonal(&[precision / (1.0 - of_noise)]),
                ..Likelihood::around(
                    form.origin(&density, &[-5.0]),
                    Matrix::diagonal(&[precision]),
                )
            };
            Bend::of(&form, &density, &likelihood, 10.0).open
        };
        let below = OpenSides {
            below: vec!["a.1".to_owned()],
            above: Vec::new(),
        };
        assert_eq!(open(0.5, 0.9), below);
        assert_eq!(open(0.1, 0.9), OpenSides::default());
        // Not the noise's doing: the same without privacy.
        assert_eq!(open(0.5, 0.1), OpenSides::default());
    }

    // Oracle: the information of a level a far below 0 is proportional to exp(a). The likelihood alone would have the slope
    // make up for a lower level; the prior has it stay. If it failed: what no record says would seem to be known.
    #[test]
    fn others_move_only_as_far_as_the_prior_lets_them() {
        let source = "record { int<lower=0, upper=1> y; real<lower=1, upper=2> x; }
            parameters { real a; real b; }
            model { a ~ normal(0, 3); b ~ normal(0, 0.01); y ~ bernoulli_logit(a + b * x); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let covariance = Matrix::new(2, 2, |i, j| [[1.0, -1.8], [-1.8, 4.0]][i][j]);
        let precision = covariance.inverse().between(&form.base);
        let likelihood = Likelihood::around(form.origin(&density, &[-5.0, 0.0]), precision);
        let bend = Bend::of(&form, &density, &likelihood, 1e6);
        let value = bend.at(&[-6.5, 0.0]).0[0];
        assert!(
            (value + 5.0 + 1.0 - (-1.5f64).exp()).abs() < 0.05,
            "{value}"
        );
    }

    // Oracle: at the scale exp(c), the mean score of log s where it is x is exp(2 (x - c)) - 1, so that with noise alone
    // the likelihood is normal in exp(2 (x - c)) / 2, up to a constant; with none, in x, whose information is 2
    // everywhere. The mean's score is x - c. If it failed: the noise that hides a small scale would exclude it.
    #[test]
    fn noise_hides_how_small_a_scale_is() {
        let source = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 9); s ~ lognormal(0, 2); y ~ normal(m, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let centre = [0.5, -0.3];
        let precision = Matrix::diagonal(&[4.0, 4.0]).between(&form.base);
        let likelihood = Likelihood::around(form.origin(&density, &centre), precision);
        for by in [-0.9, -0.4, 0.3] {
            let bent = |noise: f64| {
                let bend = Bend::of(&form, &density, &likelihood, noise);
                let (values, _) = bend.at(&centre.map(|c| c + by));
                [values[0] - centre[0], values[1] - centre[1]]
            };
            let [mean, scale] = bent(1e6);
            assert!((mean - by).abs() < 0.02, "{by}: {mean}");
            let oracle = 0.5 * (2.0 * by).exp_m1();
            assert!((scale - oracle).abs() < 0.03, "{by}: {scale} {oracle}");
            let [_, scale] = bent(0.0);
            assert!((scale - by).abs() < 0.01, "{by}: {scale}");
        }
    }

    #[test]
    fn where_the_information_is_no_number_nothing_is_bent() {
        let straight = |value: f64| {
            let (slope, rate) = (1.0, 0.0);
            At { value, slope, rate }
        };
        for information in [f64::NAN, 0.0, -1.0] {
            let curve = Curve::new(1.0, 0.5, |_| [information; 2], 1.0);
            assert_eq!(curve.at(1.7), straight(1.7));
        }
        assert_eq!(
            Curve::new(1.0, 0.0, |by| [1.0 + by; 2], 1.0).at(3.0),
            straight(3.0)
        );
    }

    // Oracle: the gradient of the density of b by differences, where x is normal. If it failed: draws would be of another
    // posterior.
    #[test]
    fn a_density_of_the_numbers_has_the_determinant() {
        let curve = |apart: f64| Curve::new(2.0, apart, |by| [(2.0 + by).powi(-6), 1.0], 0.0);
        let bend = Bend {
            curves: vec![curve(0.1), curve(0.3)],
            open: OpenSides::default(),
        };
        for bend in [bend.limited(), bend] {
            let density = |numbers: &[f64]| {
                let point = bend.back(numbers);
                let mut gradient: Vec<f64> = point.iter().map(|x| -x).collect();
                let log_determinant = bend.pull_back(&point, &mut gradient);
                let square: f64 = point.iter().map(|x| x * x).sum();
                (log_determinant - 0.5 * square, gradient)
            };
            let at = bend.at(&[2.13, 1.32]).0;
            let (_, gradient) = density(&at);
            for j in 0..2 {
                let moved = |by: f64| {
                    let mut at = at.clone();
                    at[j] += by;
                    density(&at).0
                };
                let oracle = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                assert!(
                    (gradient[j] - oracle).abs() < 1e-6,
                    "{j}: {gradient:?} {oracle}"
                );
            }
            // The determinant: of the derivatives of b.
            let slopes = bend.at(&[2.13, 1.32]).1;
            let oracle = -(slopes[0] * slopes[1]).ln();
            let found = bend.pull_back(&[2.13, 1.32], &mut [0.0; 2]);
            assert!((found - oracle).abs() < 1e-12);
        }
    }
}

//! The lengths of gradients under the model's law, which are public because records are simulated.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::form::Form;
use crate::density::{BLOCK, Density, Frame, Law, Node, Simulator};
use crate::linear::{Matrix, length};

/// The seed and the number of simulated records: one block of them.
const SEED: u64 = 1;
const RECORDS: usize = if BLOCK < 256 { BLOCK } else { 256 };

/// Lengths of gradients over their root mean square, and the share of each in the sum of squares.
///
/// Empty where outcomes have few values: a rare value may have most of the information, and its
/// frequency depends on covariates, about which simulated ones say nothing.
#[derive(Debug, Default)]
pub(super) struct Reach {
    shares: Vec<[f64; 2]>,
}

impl Reach {
    /// The lengths for simulated records at the frame's centre.
    pub fn of(form: &Form, density: &Density, law: &Law, frame: &Frame) -> Reach {
        if !law.is_costly() {
            return Reach::default();
        }
        let mut found = Vec::new();
        simulated(form, density, law, frame, |node| {
            for (i, p) in node.probabilities.iter().enumerate() {
                let of_record = node.gradients.iter().skip(i).step_by(BLOCK);
                found.push([*p, of_record.map(|g| g * g).sum::<f64>()]);
            }
        });
        Reach::from_squares(&found)
    }

    /// From probabilities and squares of lengths.
    fn from_squares(found: &[[f64; 2]]) -> Reach {
        let mass: f64 = found.iter().map(|[p, _]| p).sum();
        let squares: f64 = found.iter().map(|[p, square]| p * square).sum();
        if !(mass > 0.0 && squares > 0.0 && squares.is_finite()) {
            return Reach::default();
        }
        let share =
            |[p, square]: &[f64; 2]| [(square * mass / squares).sqrt(), p * square / squares];
        Reach {
            shares: found.iter().map(share).collect(),
        }
    }

    /// The mean length, weighted by squares: 1 where all have the same length.
    pub fn mean(&self) -> f64 {
        if self.shares.is_empty() {
            f64::INFINITY
        } else {
            self.shares
                .iter()
                .map(|[length, share]| length * share)
                .sum()
        }
    }

    /// The share of the squares in lengths above this one; `None` where that is not known.
    pub fn beyond(&self, length: f64) -> Option<f64> {
        let longer = self.shares.iter().filter(|[x, _]| *x > length);
        (!self.shares.is_empty()).then(|| longer.map(|[_, share]| share).sum())
    }
}

/// The information of simulated records, whole and clipped.
pub(super) struct Lost {
    whole: Matrix,
    clipped: Matrix,
}

impl Lost {
    /// The factor by which clipping makes the information in this direction less; 1 where that is not known.
    pub fn factor(&self, direction: &[f64]) -> f64 {
        let factor = self.whole.form(direction) / self.clipped.form(direction);
        if factor.is_finite() {
            factor.max(1.0)
        } else {
            1.0
        }
    }
}

/// The loss of information by clipping that of each record to `clip`, of simulated ones at the frame's centre.
pub(super) fn lost(form: &Form, density: &Density, law: &Law, frame: &Frame, clip: f64) -> Lost {
    let m = frame.coordinates();
    let (mut whole, mut clipped) = (vec![0.0; m * m], vec![0.0; m * m]);
    for of_record in information(form, density, law, frame).chunks_exact(m * m) {
        let share = (clip / length(of_record).max(f64::MIN_POSITIVE)).min(1.0);
        for ((whole, clipped), x) in whole.iter_mut().zip(&mut clipped).zip(of_record) {
            *whole += x;
            *clipped += share * x;
        }
    }
    let [whole, clipped] = [whole, clipped].map(|a| Matrix::new(m, m, |i, j| a[i * m + j]));
    Lost { whole, clipped }
}

/// The mean norm of a record's information over its mean trace, for simulated records at the frame's
/// centre: 1 where each record tells of one direction, less where it tells of several.
pub(super) fn norm_over_trace(form: &Form, density: &Density, law: &Law, frame: &Frame) -> f64 {
    let m = frame.coordinates();
    let information = information(form, density, law, frame);
    let each = || information.chunks_exact(m * m);
    let norms: f64 = each().map(length).sum();
    let traces: f64 = each().flat_map(|a| a.iter().step_by(m + 1)).sum();
    let share = norms / traces;
    if share.is_finite() {
        share.min(1.0)
    } else {
        1.0
    }
}

/// The information of simulated records at the frame's centre: m x m numbers for each.
fn information(form: &Form, density: &Density, law: &Law, frame: &Frame) -> Vec<f64> {
    let m = frame.coordinates();
    let mut information = vec![0.0; m * m * RECORDS];
    simulated(form, density, law, frame, |node| {
        for (i, p) in node.probabilities.iter().enumerate() {
            let of_record: Vec<f64> = node
                .gradients
                .iter()
                .skip(i)
                .step_by(BLOCK)
                .copied()
                .collect();
            let into = information[m * m * i..].chunks_exact_mut(m);
            for (row, g) in into.zip(&of_record) {
                for (entry, h) in row.iter_mut().zip(&of_record) {
                    *entry += p * g * h;
                }
            }
        }
    });
    information
}

/// Visits the nodes of simulated records at the frame's centre.
fn simulated(
    form: &Form,
    density: &Density,
    law: &Law,
    frame: &Frame,
    mut visit: impl FnMut(Node),
) {
    let point = frame.centre();
    let theta = if form.space.is_parameters() {
        point.to_vec()
    } else {
        // Covariates do not depend on the parameters.
        form.middle.clone()
    };
    let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
    let raw = Simulator::new(density).records(&theta, RECORDS, None, rng);
    let columns: Vec<&[f64]> = law.columns().iter().map(|&c| &raw[c][..]).collect();
    let sight = law.sight(&form.space, point, frame);
    let mut scratch = law.scratch_at(&sight.z);
    law.scores(
        &columns,
        RECORDS,
        &sight.jacobian,
        &mut scratch,
        |_, node| visit(node),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    #[test]
    fn squares_are_those_of_the_lengths_in_units_of_their_root_mean_square() {
        // Nine of ten have length 1, one has 9: the mean square is 9.
        let reach = Reach::from_squares(&[[0.9, 1.0], [0.1, 81.0]]);
        assert!((reach.mean() - (0.1 / 3.0 + 0.9 * 3.0)).abs() < 1e-12);
        assert_eq!(reach.beyond(4.0), Some(0.0));
        assert!((reach.beyond(1.0).unwrap() - 0.9).abs() < 1e-12);
        let unknown = Reach::from_squares(&[[0.5, f64::INFINITY]]);
        assert_eq!((unknown.mean(), unknown.beyond(1.0)), (f64::INFINITY, None));
    }

    // A record with covariate x has the information (1, x)(1, x)', of norm 1 + x^2. Oracle: integrals over uniform x.
    // Bounds are four standard errors of means of 256 records. If it failed: steps where most records are clipped
    // would be too long, by the factor that is lost.
    #[test]
    fn clipping_takes_most_from_slopes_of_wide_columns() {
        let source = "record { real y; real<lower=-9, upper=9> x; } parameters { real a; real b; }
            model { y ~ normal(a + b * x, 1); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::unknown(2);
        let law = Law::of(&density, &form.middle, 1).unwrap();
        let frame = Frame::new(vec![0.0; 2], vec![1.0, 0.0, 0.0, 1.0]);
        let clip = 4.0;
        let lost = lost(&form, &density, &law, &frame, clip);
        let steps = 10_000;
        let mean = |f: &dyn Fn(f64) -> f64| {
            let each = (0..steps).map(|i| f(9.0 * (i as f64 + 0.5) / steps as f64));
            each.sum::<f64>() / steps as f64
        };
        let share = |x: f64| (clip / (1.0 + x * x)).min(1.0);
        for (direction, oracle) in [
            ([1.0, 0.0], 1.0 / mean(&share)),
            ([0.0, 1.0], mean(&|x| x * x) / mean(&|x| x * x * share(x))),
        ] {
            let found = lost.factor(&direction);
            assert!((found / oracle - 1.0).abs() < 0.3, "{found} {oracle}");
        }
        assert_eq!(
            super::lost(&form, &density, &law, &frame, 1e9).factor(&[0.6, 0.8]),
            1.0
        );
    }

    // A Bernoulli outcome tells of one direction, a normal one with unknown spread of two at right
    // angles: in coordinates of equal information the norm is the trace over the root of two.
    #[test]
    fn a_record_tells_of_as_many_directions_as_its_outcome_has_parameters() {
        for (source, theta, scale, share) in [
            (
                "record { int<lower=0, upper=1> y; real<lower=-1, upper=1> x; }
                 parameters { real a; real b; } model { y ~ bernoulli_logit(a + b * x); }",
                [0.3, -0.5],
                [1.0, 1.0],
                1.0,
            ),
            (
                "record { real y; } parameters { real a; real<lower=0> s; }
                 model { y ~ normal(a, s); }",
                [0.3, 0.0],
                [1.0, 0.5_f64.sqrt()],
                0.5_f64.sqrt(),
            ),
        ] {
            let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
            let form = Form::of(&density).unwrap();
            let law = Law::of(&density, &form.middle, 1).unwrap();
            let axes = vec![scale[0], 0.0, 0.0, scale[1]];
            let frame = Frame::new(theta.to_vec(), axes);
            let found = norm_over_trace(&form, &density, &law, &frame);
            assert!((found - share).abs() < 0.01, "{source}: {found}");
        }
    }
}

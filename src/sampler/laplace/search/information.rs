//! The information that the records have at the viewpoint, by a noisy clipped sum.

use super::{Ground, Look, Search};
use crate::density::Law;
use crate::linear::Matrix;
use crate::privacy::{Bins, Expected};
use crate::sampler::contract::form::Information;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::laplace::histogram::Histogram;
use crate::sampler::laplace::lines::{self, Asked};
use crate::sampler::laplace::reach;

/// The clip bound of records' information clips up to this share of the records, or `BALANCE` times
/// the number that balances the noise: what is clipped lies in several directions.
const CLIPPED_INFORMATION: f64 = 0.002;
const BALANCE: f64 = 4.0;
/// From the third round on, looks at the information are averaged while steps are below this many
/// posterior sds.
const NEAR: f64 = 12.0;
/// The step of numerical differences, in posterior sds.
const STEP: f64 = 0.3;

impl Search {
    /// The information about y in all records, in the axes, and the approximate largest eigenvalue
    /// of its noise.
    pub(super) fn information(
        &mut self,
        ground: &Ground,
        law: Option<&Law>,
        (k, nth): (usize, usize),
        oracle: &mut dyn Oracle,
    ) -> Result<(Matrix, f64), SampleError> {
        let Ground {
            form,
            density,
            plan,
            shares,
        } = *ground;
        let temperature = plan.request.temperature;
        if form.information == Information::Public {
            let records = temperature * self.records;
            return Ok(((&self.axes.transposed() * &self.axes).scaled(records), 0.0));
        }
        let m = form.coordinates as usize;
        let frame = self.frame(form);
        let theta = frame.centre().to_vec();
        let expected = match law {
            Some(law) => Expected::by_law(law, &form.space, &theta, &frame),
            None => Expected::by_differences(density, &form.space, &frame, STEP),
        };
        let signed = form.information == Information::Curvature && k + 1 == shares.rounds();
        let [of_lengths, of_sum] = if signed {
            [lines::CURVATURE_LENGTHS, lines::CURVATURE]
        } else {
            [lines::INFORMATION_LENGTHS, lines::INFORMATION]
        };
        let unit = m as f64 / (temperature * self.records);
        let ask = Asked {
            form,
            plan,
            frame: &frame,
            expected: Some(&expected),
            unit,
        };
        let times = shares.others[k];
        let (counts, sd) = ask.histogram(of_lengths, times, oracle)?;
        if nth == 0 {
            self.count(plan, &counts);
        }
        let lengths = Histogram::seen(&counts, sd, (Bins::INFORMATION, unit), self.records);
        let tau = plan.lines[of_sum].tau / (times as f64).sqrt();
        let root = (2.0 * m as f64).sqrt();
        let (clip, lost) = match &lengths {
            None => {
                self.blind = true;
                (2.0 * unit, 1.0)
            }
            Some(lengths) => {
                let noise = tau * root;
                // The axes of the first round are those of simulated records, whose covariates need
                // not be like the real ones.
                let clip = match law.filter(|_| nth > 0) {
                    Some(law) => {
                        let mean = unit * reach::norm_over_trace(form, density, law, &frame);
                        lengths
                            .with_mean(mean)
                            .bound_of_least_error(noise, BALANCE.recip())
                    }
                    None => {
                        let clipped = (BALANCE * noise).max(CLIPPED_INFORMATION * self.records);
                        lengths.exceeded_by(clipped)
                    }
                };
                (clip, lengths.lost_factor(clip))
            }
        };
        let sum = ask.sum(of_sum, clip, f64::INFINITY, times, oracle)?;
        let scale = temperature * lost;
        let found = Matrix::of_triangle(&sum, m).scaled(scale);
        let spread = scale * clip * ask.noise(of_sum, times) * root;
        if signed {
            self.looks.clear();
        }
        self.looks.push(Look {
            information: found.between(&self.inverse),
            spread,
            inverse: self.inverse.clone(),
            moved: 0.0,
        });
        let near = self.steps.last().is_some_and(|step| step.length < NEAR);
        if nth >= 2 && near && self.looks.len() > 1 {
            Ok(self.averaged())
        } else {
            Ok((found, spread))
        }
    }

    /// The average information over the looks whose steps were short, weighted by their noise in
    /// these axes.
    fn averaged(&self) -> (Matrix, f64) {
        let m = self.centre.len();
        let (mut sum, mut weights) = (Matrix::new(m, m, |_, _| 0.0), 0.0);
        for look in &self.looks {
            if look.moved < NEAR {
                let stretch = (&look.inverse * &self.axes).norm();
                let weight = (look.spread * stretch * stretch).powi(-2);
                sum = &sum + &look.information.between(&self.axes).scaled(weight);
                weights += weight;
            }
        }
        (sum.scaled(1.0 / weights), weights.sqrt().recip())
    }
}

//! A fresh look at the centre, which tests what the rounds claim.

use std::f64::consts::FRAC_1_SQRT_2;

use super::gradient::longest;
use super::{Certificate, Clipped, RoundInputs, Search, difference, squares, sum};
use crate::function::special::gamma_fractions;
use crate::linear::Matrix;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::laplace::form::Information;
use crate::sampler::laplace::histogram::BEYOND;
use crate::sampler::laplace::kalman;
use crate::sampler::laplace::lines::{self, QueryPoint};
use crate::sampler::laplace::reach::Reach;

/// The range of lengths beyond the clip bound that count in full, in root mean squares of the law's.
const LONGEST: f64 = 5.0;
/// A certificate less probable than this overrules the belief.
const CONTRADICTED: f64 = 0.02;

impl Search {
    /// Takes a fresh look at the centre with a wide clip bound, and a last step from its result.
    pub fn certify(
        &mut self,
        ground: &RoundInputs,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let RoundInputs {
            form,
            density,
            plan,
            ..
        } = *ground;
        let m = form.coordinates as usize;
        let temperature = plan.request.temperature;
        let law = form.law(density);
        let frame = self.frame(form);
        let expected = form.expected(density, law.as_ref(), &frame);
        let unit = (m as f64 / (temperature * self.records)).sqrt();
        let ask = QueryPoint {
            form,
            plan,
            frame: &frame,
            expected: expected.as_ref(),
            unit,
        };
        let (own_slope, own_curvature) = self.prior(ground)?;
        let prior = own_curvature.between(&self.axes);
        let foreseen = &Matrix::diagonal(&self.expected) - &prior;
        let counts = ask.histogram(lines::CERTIFICATE_LENGTHS, 1, oracle)?;
        let reach = (law.as_ref()).map(|law| Reach::of(form, density, law, &frame));
        let allowed = &Matrix::diagonal(&squares(&form.weights())) - &prior;
        let lengths = self.lengths(&counts, unit, longest(form, reach.as_ref()), &allowed);
        let clip = match &lengths {
            Some(lengths) => self.clip.max(BEYOND * lengths.top()),
            None => self.clip,
        };
        let efficiency = match (form.information, &lengths) {
            (Information::Curvature, _) => 1.0,
            (_, Some(lengths)) => lengths.efficiency(clip),
            (_, None) => self.efficiency,
        };
        let released = ask.sum(lines::CERTIFICATE, clip, clip, 1, oracle)?;
        let noise = temperature * clip * ask.noise(lines::CERTIFICATE, 1);
        self.look_beyond(&ask, ground, oracle)?;
        let own = self.axes.transposed().times(&own_slope);
        let slope = &foreseen.scaled(efficiency) + &prior;
        let (explained, doubts) = self.explained(&slope);
        let off: Vec<f64> = (0..m)
            .map(|j| temperature * released[j] + own[j] - explained[j])
            .collect();
        let belief = self.belief.between(&self.inverse.transposed());
        let doubts = sum(&doubts, &self.doubts_of_slope(&belief));
        let variances: Vec<f64> = doubts.iter().map(|doubt| noise * noise + doubt).collect();
        let (p, mut step, mut left) = settled(belief, &slope, &variances, &off);
        // A slope that contradicts everything can lead anywhere.
        let reach = (temperature * self.records).sqrt();
        if let Some(beyond) = self.beyond_reach(form, &step, reach) {
            left = &left + &Matrix::square_of(&beyond);
            step = difference(&step, &beyond);
        }
        self.belief = left
            .with_eigenvalues(|e| e.max(1e-12))
            .between(&self.axes.transposed());
        for (c, s) in self.centre.iter_mut().zip(self.axes.times(&step)) {
            *c += s;
        }
        self.certificate = Some(Certificate { p, noise });
        Ok(())
    }

    /// Releases the pull of records that was clipped away and that their law hardly has.
    fn look_beyond(
        &mut self,
        ask: &QueryPoint,
        ground: &RoundInputs,
        oracle: &mut dyn Oracle,
    ) -> Result<(), SampleError> {
        let Some(line) = lines::beyond(ground.form, ground.shares) else {
            return Ok(());
        };
        let range = LONGEST * ask.unit;
        let ask = QueryPoint {
            unit: self.clip + range,
            ..*ask
        };
        let sums = ask.sum(line, 1.0, self.clip, 1, oracle)?;
        let noise = ask.noise(line, 1);
        let request = &ground.plan.request;
        let (own, noise) = shares_beyond([sums[0], sums[1]], noise, request.records);
        let scale = request.temperature * range;
        self.clipped = Some(Clipped {
            sds: scale * own,
            noise: scale * noise,
        });
        Ok(())
    }
}

/// The first of two sums with noise of this sd, and the sd of its noise. Where the number of records is public, the
/// second is that number less the first, so that both tell of it.
fn shares_beyond(sums: [f64; 2], noise: f64, records: Option<u64>) -> (f64, f64) {
    match records {
        Some(n) => (0.5 * (sums[0] - sums[1] + n as f64), noise * FRAC_1_SQRT_2),
        None => (sums[0], noise),
    }
}

/// The probability of a slope that is as unexpected as `off`, the step that follows, and the covariance of the
/// error that remains.
fn settled(
    mut belief: Matrix,
    slope: &Matrix,
    variances: &[f64],
    off: &[f64],
) -> (f64, Vec<f64>, Matrix) {
    let chi_square = kalman::unexpected(&belief, slope, variances, off);
    let p = gamma_fractions(0.5 * off.len() as f64, 0.5 * chi_square).1;
    if p < CONTRADICTED {
        // In all directions alike: along the error that this slope would show, noise is far where records tell little.
        kalman::contradiction(&mut belief, slope, variances, off);
    }
    let (step, left) = kalman::step(&belief, slope, variances, off);
    (p, step, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    // If it failed: a pull would be shifted by what is not known of a private number of records, or of the wrong sign.
    #[test]
    fn a_private_number_of_records_is_not_counted_on() {
        // The noise of the sums is 3 and -5.
        let sums = [40.0 + 3.0, 960.0 - 5.0];
        let (own, noise) = shares_beyond(sums, 7.0, Some(1000));
        assert_eq!(own, 40.0 + 0.5 * (3.0 + 5.0));
        assert!((noise - 7.0 / 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(shares_beyond(sums, 7.0, None), (43.0, 7.0));
    }

    // One direction contradicts the belief; in the other the slope is nearly 0 and all that is seen is noise. If it
    // failed: noise would move the answer by hundreds of posterior sds, and the certificate would vouch for it.
    #[test]
    fn a_contradicted_certificate_moves_nothing_by_noise() {
        let slope = Matrix::diagonal(&[1.0, 1e-3]);
        let (p, step, left) = settled(Matrix::identity(2), &slope, &[1.0; 2], &[8.0, 1.5]);
        assert!(p < CONTRADICTED, "{p}");
        assert!(step[0] > 6.0, "{step:?}");
        assert!(step[1].abs() < 0.1 * left[(1, 1)].sqrt(), "{step:?}");
        // The belief is wider by 63, as 64 = w + 1, but for the other direction's 1e-6.
        assert!((left[(1, 1)] - 63.0).abs() < 0.1, "{left:?}");
    }
}

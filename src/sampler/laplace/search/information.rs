//! The information that the records have at the viewpoint, by a noisy clipped sum.

use super::{Ground, Look, Search, frame_at};
use crate::density::Law;
use crate::linear::Matrix;
use crate::privacy::{Bins, Expected};
use crate::sampler::contract::form::{Form, Information};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::laplace::histogram::Histogram;
use crate::sampler::laplace::lines::{self, Asked};
use crate::sampler::laplace::reach;
use crate::sampler::laplace::response::{Response, root_of};

/// The clip bound of records' information clips up to this share of the records, or `BALANCE` times
/// the number that balances the noise: what is clipped lies in several directions.
const CLIPPED_INFORMATION: f64 = 0.002;
const BALANCE: f64 = 4.0;
/// From the third round on, looks at the information are averaged while steps are below this many
/// posterior sds.
const NEAR: f64 = 12.0;
/// The law is believed to change the information by at most this factor, or its inverse.
const CHANGE: f64 = 1e4;
/// The step of numerical differences, in posterior sds.
const STEP: f64 = 0.3;

impl Search {
    /// Turns to the axes in which the information at the centre is the identity by the law, given that it
    /// was at the place of the last look.
    pub(super) fn carry_axes(
        &mut self,
        ground: &Ground,
        law: Option<&Law>,
    ) -> Result<(), SampleError> {
        let look = self.looks.last();
        let carried = look
            .zip(law)
            .and_then(|(look, law)| self.carried((ground.form, ground.simulated), law, look));
        let Some(carried) = carried else {
            return Ok(());
        };
        let (_, own) = self.prior(ground)?;
        let own = own.between(&self.axes);
        let told = (&Matrix::identity(own.rows()) - &own).with_eigenvalues(|e| e.max(0.0));
        let foreseen = &told.between(&carried.transposed()) + &own;
        let inner = foreseen.with_eigenvalues(|e| e.max(1e-12).sqrt().recip());
        let outer = foreseen.with_eigenvalues(|e| e.max(1e-12).sqrt());
        if inner.is_finite() && outer.is_finite() {
            self.axes = &self.axes * &inner;
            self.inverse = &outer * &self.inverse;
        }
        Ok(())
    }

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
            ..
        } = *ground;
        let temperature = plan.request.temperature;
        if form.information == Information::Public {
            let records = temperature * self.records;
            return Ok(((&self.axes.transposed() * &self.axes).scaled(records), 0.0));
        }
        let m = form.coordinates as usize;
        let frame = self.frame(form);
        let expected = form
            .expected(density, law, &frame)
            .unwrap_or_else(|| Expected::by_differences(density, &form.space, &frame, STEP));
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
            centre: self.centre.clone(),
            moved: 0.0,
        });
        let near = self.steps.last().is_some_and(|step| step.length < NEAR);
        if nth >= 2 && near && self.looks.len() > 1 {
            Ok(self.averaged(ground, law))
        } else {
            Ok((found, spread))
        }
    }

    /// The average information over the looks whose steps were short, carried to here and weighted by
    /// their noise in these axes.
    fn averaged(&self, ground: &Ground, law: Option<&Law>) -> (Matrix, f64) {
        let m = self.centre.len();
        let (mut sum, mut weights) = (Matrix::new(m, m, |_, _| 0.0), 0.0);
        for look in &self.looks {
            if look.moved < NEAR {
                let carry = law
                    .and_then(|law| self.carried((ground.form, ground.simulated), law, look))
                    .unwrap_or_else(|| Matrix::identity(m))
                    .transposed();
                let stretch = (&(&look.inverse * &self.axes) * &carry).norm();
                let weight = (look.spread * stretch * stretch).powi(-2);
                let here = look.information.between(&self.axes).between(&carry);
                sum = &sum + &here.scaled(weight);
                weights += weight;
            }
        }
        (sum.scaled(1.0 / weights), weights.sqrt().recip())
    }

    /// The E of F' = E F E', where F is the information at the place of a look and F' that at the centre,
    /// in these axes, as simulated records have it; `None` where there is none. Of counts and classes it depends on
    /// covariates, and those of simulated records need not be like the real ones: carried information made intervals
    /// of twelve tables a tenth wider.
    fn carried(
        &self,
        (form, simulated): (&Form, &[Vec<f64>]),
        law: &Law,
        look: &Look,
    ) -> Option<Matrix> {
        let is_known = law.has_real_outcomes_only() && form.blocks.is_none();
        if !is_known || look.centre == self.centre {
            return None;
        }
        let told = |centre: &[f64]| {
            let frame = frame_at(form, &self.origin, centre, &self.axes);
            Response::new(form, simulated, law, &frame, 1.0).information()
        };
        let (before, now) = (told(&look.centre)?, told(&self.centre)?);
        let root = root_of(&before);
        let back = root.inverse();
        let change = (root_of(&now).with_eigenvalues(|e| e * e).between(&back))
            .with_eigenvalues(|e| e.clamp(CHANGE.recip(), CHANGE).sqrt());
        Some(&(&root * &change) * &back).filter(Matrix::is_finite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Density;
    use crate::model::{Constants, Model};
    use crate::sampler::laplace::response::simulated;

    // Oracle: the information of m is 1 / s^2, and that of log s is 2 everywhere. If it failed: after a step to a wider
    // scale, information would be too small to be seen in the noise, and steps would be far too short.
    #[test]
    fn information_is_carried_to_another_scale() {
        let source = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 1); s ~ lognormal(0, 1); y ~ normal(m, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let law = form.law(&density).unwrap();
        let mut search = Search::new(&form, &density, &[0.0, 0.0], Some(400));
        let m = search.centre.len();
        let look = Look {
            information: Matrix::identity(m),
            spread: 0.1,
            inverse: Matrix::identity(m),
            centre: search.centre.clone(),
            moved: 0.0,
        };
        let simulated = simulated(&form, &density);
        assert_eq!(search.carried((&form, &simulated), &law, &look), None);
        search.centre = form.lift.times(&[0.0, 4f64.ln()]);
        let carried = search.carried((&form, &simulated), &law, &look).unwrap();
        let scales = Matrix::diagonal(&[0.25, 1.0]);
        let oracle = &(&form.base.transposed() * &scales) * &form.lift.transposed();
        let off = (&carried - &oracle).norm();
        assert!(off < 0.02, "{carried:?} {oracle:?}");
    }
}

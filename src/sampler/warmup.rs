//! Warm-up of the private samplers: step size and metric from what was released.
//!
//! Acceptance statistics and draws are released values, so that learning from them
//! is post-processing and costs nothing. The noise of a log-ratio follows the
//! proposal's length, whatever the step size, and that of gradients does not depend
//! on it: the charge stays what was planned.

use super::adaptation::{Covariance, DualAveraging, Windows};
use super::metric::{Metric, MetricForm};

pub(super) struct Warmup {
    /// `None` when the step size was given.
    adaptation: Option<DualAveraging>,
    target: f64,
    step_size: f64,
    windows: Windows,
    covariance: Option<Covariance>,
    form: MetricForm,
    metric: Metric,
}

impl Warmup {
    /// `target`: the mean acceptance to aim at, or `None` to keep `step_size`.
    pub fn new(
        num_warmup: u64,
        dimension: usize,
        step_size: f64,
        target: Option<f64>,
        form: MetricForm,
    ) -> Self {
        Warmup {
            adaptation: target.map(|target| DualAveraging::new(step_size, target)),
            target: target.unwrap_or(f64::NAN),
            step_size,
            windows: Windows::new(num_warmup as usize),
            covariance: (form != MetricForm::Unit)
                .then(|| Covariance::new(dimension, form == MetricForm::Dense)),
            form,
            metric: Metric::Unit,
        }
    }

    /// Whether there is anything to learn.
    pub fn is_needed(&self) -> bool {
        self.adaptation.is_some() || self.covariance.is_some()
    }

    /// Learns from the `iteration`-th warm-up iteration, counted from 0.
    pub fn learn(&mut self, iteration: usize, theta: &[f64], accept_stat: f64) {
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.update(accept_stat);
            self.step_size = adaptation.step();
        }
        let Some(covariance) = &mut self.covariance else {
            return;
        };
        if self.windows.collects(iteration) {
            covariance.add(theta);
        }
        if self.windows.closes(iteration) {
            let fresh = Covariance::new(theta.len(), self.form == MetricForm::Dense);
            let window = std::mem::replace(covariance, fresh);
            if let Some(estimate) = window.metric() {
                // Steps are in units of the metric: keep their lengths as they were.
                let d = theta.len();
                let scale = |m: &Metric| (0..d).map(|j| m.deviation(j).ln()).sum::<f64>();
                let change = ((scale(&self.metric) - scale(&estimate)) / d as f64).exp();
                self.metric = estimate;
                self.step_size *= change;
                if self.adaptation.is_some() {
                    self.adaptation = Some(DualAveraging::new(self.step_size, self.target));
                }
            }
        }
    }

    /// Settles on the averaged step size.
    pub fn finish(&mut self) {
        if let Some(adaptation) = &self.adaptation {
            self.step_size = adaptation.average_step();
        }
    }

    pub fn step_size(&self) -> f64 {
        self.step_size
    }

    pub fn metric(&self) -> &Metric {
        &self.metric
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain that accepts exp(-h) of its proposals settles where that is the
    /// target; one whose step was given keeps it.
    #[test]
    fn the_step_size_settles_at_the_target() {
        let mut warmup = Warmup::new(400, 1, 0.01, Some(0.6), MetricForm::Unit);
        let mut fixed = Warmup::new(400, 1, 0.01, None, MetricForm::Unit);
        for i in 0..400 {
            let stat = (-warmup.step_size()).exp();
            warmup.learn(i, &[0.0], stat);
            fixed.learn(i, &[0.0], 1.0);
        }
        warmup.finish();
        fixed.finish();
        let expected = -(0.6f64.ln());
        assert!(
            (warmup.step_size() / expected).ln().abs() < 0.1,
            "{} {expected}",
            warmup.step_size()
        );
        assert_eq!(fixed.step_size(), 0.01);
        assert!(!fixed.is_needed());
    }

    /// The metric is learnt from the draws, and the steps keep their length.
    #[test]
    fn the_metric_is_learnt_and_steps_keep_their_length() {
        let mut warmup = Warmup::new(1000, 2, 1.0, None, MetricForm::Diagonal);
        for i in 0..1000 {
            let swing = if i % 2 == 0 { 1.0 } else { -1.0 };
            warmup.learn(i, &[4.0 * swing, 0.25 * swing], 0.5);
        }
        let (wide, narrow) = (warmup.metric().deviation(0), warmup.metric().deviation(1));
        assert!((wide / narrow / 16.0 - 1.0).abs() < 0.05, "{wide} {narrow}");
        let length = warmup.step_size() * (wide * narrow).sqrt();
        assert!((length - 1.0).abs() < 1e-9, "{length}");
    }
}

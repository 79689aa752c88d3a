//! Warm-up of the private samplers: step size and metric from what was released.
//!
//! Acceptance statistics and draws are released values, so that learning from them
//! is post-processing and costs nothing. The noise of a log-ratio is proportional to
//! the proposal's length for any step size, and that of gradients does not depend
//! on it: the charge stays as planned.

use serde::{Deserialize, Serialize};

use crate::sampler::chain::adaptation::{Covariance, DualAveraging, Windows};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::metric::{Metric, MetricForm};

/// The results of warm-up so far, from released values only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learnt {
    adaptation: Option<DualAveraging>,
    #[serde(with = "exact_number")]
    step_size: f64,
    covariance: Option<Covariance>,
    metric: Metric,
}

pub(crate) struct Warmup {
    num_warmup: u64,
    target: f64,
    windows: Windows,
    form: MetricForm,
    /// `adaptation` is `None` when the step size was given.
    learnt: Learnt,
}

impl Warmup {
    /// `target`: the mean acceptance to aim for, or `None` to keep `step_size`.
    pub fn new(
        num_warmup: u64,
        dimension: usize,
        step_size: f64,
        target: Option<f64>,
        form: MetricForm,
    ) -> Self {
        Warmup {
            num_warmup,
            target: target.unwrap_or(f64::NAN),
            windows: Windows::new(num_warmup as usize),
            form,
            learnt: Learnt {
                adaptation: target.map(|target| DualAveraging::new(step_size, target)),
                step_size,
                covariance: (form != MetricForm::Unit)
                    .then(|| Covariance::new(dimension, form == MetricForm::Dense)),
                metric: Metric::Unit,
            },
        }
    }

    pub fn learnt(&self) -> &Learnt {
        &self.learnt
    }

    /// Resumes from what was learnt before.
    pub fn restore(&mut self, learnt: Learnt) {
        self.learnt = learnt;
    }

    /// Whether there is anything to learn.
    pub fn is_needed(&self) -> bool {
        self.learnt.adaptation.is_some() || self.learnt.covariance.is_some()
    }

    /// Learns from the `iteration`-th iteration, counted from 0, unless it is after warm-up.
    /// Returns whether the sampler has to be tuned.
    pub fn learn(&mut self, iteration: u64, theta: &[f64], accept_stat: f64) -> bool {
        if !self.is_needed() || iteration >= self.num_warmup {
            return false;
        }
        if let Some(adaptation) = &mut self.learnt.adaptation {
            adaptation.update(accept_stat);
            self.learnt.step_size = adaptation.step();
        }
        if let Some(covariance) = &mut self.learnt.covariance
            && self.windows.collects(iteration as usize)
        {
            covariance.add(theta);
        }
        self.pass(iteration..iteration + 1)
    }

    /// Does what is due at the end of these iterations, which may be lost: a window of the
    /// metric that closes, the end of warm-up. Returns whether the sampler has to be tuned.
    pub fn pass(&mut self, iterations: std::ops::Range<u64>) -> bool {
        if !self.is_needed() || iterations.start >= self.num_warmup {
            return false;
        }
        let end = iterations.end.min(self.num_warmup);
        let passed = iterations.start as usize..end as usize;
        if self.windows.closes_within(passed) {
            self.close_window();
        }
        if end == self.num_warmup
            && let Some(adaptation) = &self.learnt.adaptation
        {
            // The averaged step size is final.
            self.learnt.step_size = adaptation.average_step();
        }
        true
    }

    fn close_window(&mut self) {
        let learnt = &mut self.learnt;
        let Some(covariance) = &mut learnt.covariance else {
            return;
        };
        let d = covariance.dimension();
        let fresh = Covariance::new(d, self.form == MetricForm::Dense);
        let window = std::mem::replace(covariance, fresh);
        if let Some(estimate) = window.metric() {
            // Steps are in units of the metric: keep their lengths unchanged.
            let scale = |m: &Metric| (0..d).map(|j| m.deviation(j).ln()).sum::<f64>();
            let change = ((scale(&learnt.metric) - scale(&estimate)) / d as f64).exp();
            learnt.metric = estimate;
            learnt.step_size *= change;
            if learnt.adaptation.is_some() {
                learnt.adaptation = Some(DualAveraging::new(learnt.step_size, self.target));
            }
        }
    }

    pub fn step_size(&self) -> f64 {
        self.learnt.step_size
    }

    pub fn metric(&self) -> &Metric {
        &self.learnt.metric
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
        for i in 0..400u64 {
            let stat = (-warmup.step_size()).exp();
            warmup.learn(i, &[0.0], stat);
            fixed.learn(i, &[0.0], 1.0);
        }
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
        for i in 0..1000u64 {
            let swing = if i % 2 == 0 { 1.0 } else { -1.0 };
            warmup.learn(i, &[4.0 * swing, 0.25 * swing], 0.5);
        }
        let (wide, narrow) = (warmup.metric().deviation(0), warmup.metric().deviation(1));
        assert!((wide / narrow / 16.0 - 1.0).abs() < 0.05, "{wide} {narrow}");
        let length = warmup.step_size() * (wide * narrow).sqrt();
        assert!((length - 1.0).abs() < 1e-9, "{length}");
    }
}

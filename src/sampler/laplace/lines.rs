//! The releases of a search, and its questions.

use std::any::Any;
use std::num::NonZeroU64;
use std::ops::Range;

use super::form::{Form, Information};
use super::shares::Shares;
use crate::density::Frame;
use crate::privacy::{Expected, Statistic, Subsampling};
use crate::sampler::contract::oracle::{Oracle, SampleError, View};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, Scale};

/// Groups of coordinates are learnt as such where the expected noise in the centre is at most this, in
/// posterior sds. In trials (docs/results.md), at 0.8 and above answers were now and then off by more than
/// five of their own sds with no problem called, and up to 0.7 not.
pub(super) const MOST_NOISE: f64 = 0.75;
/// The lines of all searches.
pub(super) const GRADIENT_LENGTHS: usize = 0;
pub(super) const GRADIENT: usize = 1;
pub(super) const CERTIFICATE_LENGTHS: usize = 2;
pub(super) const CERTIFICATE: usize = 3;
/// The lines of searches whose information is not public.
pub(super) const INFORMATION_LENGTHS: usize = 4;
pub(super) const INFORMATION: usize = 5;
/// The line of searches with a law, where the budget is not tight.
pub(super) const SLOPE: usize = 6;
/// The lines of searches without a law, in the last round.
pub(super) const CURVATURE_LENGTHS: usize = 6;
pub(super) const CURVATURE: usize = 7;

/// The last line of searches whose law has unbounded gradients.
pub(super) fn beyond(form: &Form, shares: &Shares) -> Option<usize> {
    let follows = if shares.slope > 0.0 {
        SLOPE
    } else {
        INFORMATION
    };
    (form.information == Information::Law { bounded: false } && shares.beyond > 0.0)
        .then_some(follows + 1)
}

pub(super) fn lines(form: &Form, shares: &Shares) -> Vec<Line> {
    let line = |what, statistic, count, share| Line {
        what,
        question: Question::Learnt(statistic),
        noise: Noise::Share(share),
        count,
        subsampling: Subsampling::All,
    };
    let gradient = match form.information {
        Information::Law { .. } | Information::Hazard(_) => {
            ("gradient, centred by the model's law", Statistic::Centred)
        }
        _ => ("gradient", Statistic::Gradient),
    };
    let others: u64 = shares.others.iter().sum();
    let mut lines = vec![
        line(
            "histogram of gradient lengths",
            Statistic::GradientLengths,
            others,
            shares.gradient_lengths,
        ),
        line(
            gradient.0,
            gradient.1,
            shares.gradients.iter().sum(),
            shares.gradient,
        ),
        line(
            "histogram of gradient lengths, for the certificate",
            Statistic::GradientLengths,
            1,
            shares.certificate_lengths,
        ),
        line(
            "gradient, for the certificate",
            gradient.1,
            1,
            shares.certificate,
        ),
    ];
    let last = match form.information {
        Information::Public => return lines,
        Information::Law { .. } | Information::Hazard(_) => 0,
        Information::Curvature => *shares.others.last().unwrap_or(&0),
    };
    let rest = (others - last) as f64 / others as f64;
    lines.push(line(
        "histogram of the information",
        Statistic::InformationLengths,
        others - last,
        shares.information_lengths * rest,
    ));
    lines.push(line(
        "information",
        Statistic::Information,
        others - last,
        shares.information * rest,
    ));
    if last > 0 {
        lines.push(line(
            "histogram of the curvature",
            Statistic::CurvatureLengths,
            last,
            shares.information_lengths * (1.0 - rest),
        ));
        lines.push(line(
            "curvature",
            Statistic::Curvature,
            last,
            shares.information * (1.0 - rest),
        ));
    }
    if shares.slope > 0.0 {
        lines.push(line(
            "slope of the centred gradient",
            Statistic::Slope,
            1,
            shares.slope,
        ));
    }
    if beyond(form, shares).is_some() {
        lines.push(line(
            "gradients beyond the model's tails, for the certificate",
            Statistic::Beyond,
            1,
            shares.beyond,
        ));
    }
    lines
}

/// The number of releases in these rounds, by line; the round after the last is the certificate.
pub(super) fn releases(form: &Form, shares: &Shares, lines: usize, rounds: Range<u64>) -> Vec<u64> {
    let mut released = vec![0; lines];
    let mut add = |line: usize, count: u64| {
        if let Some(released) = released.get_mut(line) {
            *released += count;
        }
    };
    let count = shares.rounds();
    for round in rounds {
        let round = round as usize;
        if round >= count {
            add(CERTIFICATE_LENGTHS, 1);
            add(CERTIFICATE, 1);
            beyond(form, shares)
                .into_iter()
                .for_each(|line| add(line, 1));
            continue;
        }
        add(GRADIENT_LENGTHS, shares.others[round]);
        add(GRADIENT, shares.gradients[round]);
        let last = round + 1 == count;
        match form.information {
            Information::Public => {}
            Information::Curvature if last => {
                add(CURVATURE_LENGTHS, shares.others[round]);
                add(CURVATURE, shares.others[round]);
            }
            _ => {
                add(INFORMATION_LENGTHS, shares.others[round]);
                add(INFORMATION, shares.others[round]);
                if last && shares.slope > 0.0 {
                    add(SLOPE, 1);
                }
            }
        }
    }
    released
}

/// Questions from one point, in one frame.
pub(super) struct QueryPoint<'a> {
    pub form: &'a Form,
    pub plan: &'a Plan,
    pub frame: &'a Frame,
    pub expected: Option<&'a Expected<'a>>,
    /// The reference length of histograms.
    pub unit: f64,
}

impl QueryPoint<'_> {
    /// The average of `times` sums of the line's statistic over the records, clipped at `clip`.
    pub fn sum(
        &self,
        line: usize,
        clip: f64,
        inner_clip: f64,
        times: u64,
        oracle: &mut dyn Oracle,
    ) -> Result<Vec<f64>, SampleError> {
        let view = View {
            space: Some(&self.form.space),
            expected: self.expected,
            inner_clip,
            unit: self.unit,
            ..View::of_parameters(self.frame.centre(), self.frame, clip)
        };
        let times = NonZeroU64::new(times).ok_or(SampleError::NotPlanned { line })?;
        oracle.learnt_often(line, &view, times)
    }

    /// A histogram, and the sd of the noise in a count.
    pub fn histogram(
        &self,
        line: usize,
        times: u64,
        oracle: &mut dyn Oracle,
    ) -> Result<(Vec<f64>, f64), SampleError> {
        let counts = self.sum(line, 1.0, f64::INFINITY, times, oracle)?;
        Ok((counts, self.noise(line, times)))
    }

    /// Standard deviation of the noise in an average of `times` sums, for a clip bound of 1.
    pub fn noise(&self, line: usize, times: u64) -> f64 {
        let sigma = self
            .plan
            .lines
            .get(line)
            .map_or(0.0, |line| match line.scale {
                Scale::Learnt(scale) => scale.sigma(),
                _ => 0.0,
            });
        sigma / (times.max(1) as f64).sqrt()
    }
}

/// The form of a request's model, or the assumptions where it was not looked at.
pub(super) fn form_of(request: &PlanRequest) -> Form {
    let form = match known_form(request) {
        Some(form) => form.clone(),
        None => Form::unknown(request.dimension as usize),
    };
    in_budget(form, request)
}

/// The form of a request's model, where it was looked at.
pub(super) fn known_form(request: &PlanRequest) -> Option<&Form> {
    let facts: &dyn Any = request.facts.as_deref()?;
    facts.downcast_ref()
}

/// The form by groups, where the model has groups and the budget is large enough to learn them as such.
pub(super) fn in_budget(form: Form, request: &PlanRequest) -> Form {
    let foreseen = Shares::of(request, &form).map_or(f64::INFINITY, |shares| shares.foreseen);
    let by_groups = form.by_groups().filter(|_| foreseen <= MOST_NOISE);
    by_groups.unwrap_or(form)
}

//! The clip bounds in a report.

use serde_json::{Value, json};

/// One clip bound of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipReport {
    pub bound: f64,
    /// A bound that no record exceeds, derived from the model and its declared bounds.
    pub derived: Option<f64>,
}

impl ClipReport {
    /// Whether no record is ever clipped.
    pub fn never_activates(self) -> bool {
        self.derived.is_some_and(|derived| derived <= self.bound)
    }

    fn json(self) -> Value {
        json!({
            "bound": self.bound,
            "derived": self.derived,
            "never_activates": self.never_activates(),
        })
    }
}

/// The clip bounds of a run; none of a kind that its sampler does not use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clipping {
    pub gradient: Option<ClipReport>,
    /// Per unit of distance.
    pub log_ratio: Option<ClipReport>,
    /// The sampler's description of bounds that are learnt from releases.
    pub learnt: Option<&'static str>,
}

impl Clipping {
    /// Whether nothing in the run's releases is ever clipped.
    pub fn never_activates(&self) -> bool {
        let mut used = self.gradient.iter().chain(&self.log_ratio).peekable();
        used.peek().is_some() && used.all(|c| c.never_activates())
    }

    pub fn statement(&self) -> &'static str {
        if self.never_activates() {
            "No record is ever clipped, rounding apart: the bounds hold for every record and all parameters, by the declared bounds and the model's form. What the sampler's theory says of its target holds as stated, with the posterior itself in place of the clipped one."
        } else if let Some(statement) = self.learnt {
            statement
        } else if self.gradient.is_none() && self.log_ratio.is_none() {
            "The sampler has a clip bound of its own, or none."
        } else {
            "Records may be clipped; how many were is private. The target is the clipped posterior."
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "gradient": self.gradient.map(ClipReport::json),
            "log_ratio": self.log_ratio.map(ClipReport::json),
            "statement": self.statement(),
        })
    }
}

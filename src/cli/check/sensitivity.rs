//! The part of `dpm check` about derived sensitivity.

use serde_json::{Value, json};

use crate::model::{Derived, NeedKind, Sensitivity, in_words};
use crate::sampler::DEFAULT_CLIP;

pub(super) fn json_of(derived: &Derived) -> Value {
    match derived {
        Ok(bound) => json!({
            "bound": bound.norm,
            "parts": bound.parts.iter().map(|(name, norm)| json!({
                "parameter": name,
                "bound": norm,
            })).collect::<Vec<_>>(),
            "facts": bound.facts,
            "rests_on": bound.rests_on,
        }),
        Err(missing) => json!({
            "bound": null,
            "reason": missing.to_string(),
            "needs": missing.needs.iter().map(|need| json!({
                "kind": match need.kind {
                    NeedKind::Column => "column",
                    NeedKind::Parameter => "parameter",
                },
                "name": need.name,
                "lower": need.lower,
                "upper": need.upper,
            })).collect::<Vec<_>>(),
        }),
    }
}

/// Under a statement of the likelihood.
pub(super) fn statement_lines(derived: &Derived) -> Vec<String> {
    let lines = in_words(derived).into_iter();
    lines.map(|line| format!("             {line}")).collect()
}

/// Of a record in all.
pub(super) fn record_lines(sensitivity: &Sensitivity) -> Vec<String> {
    if sensitivity.statements.is_empty() {
        return Vec::new();
    }
    let clipped = "--clip-gradient and --clip-log-ratio bound each record's contribution instead";
    let Ok(record) = &sensitivity.record else {
        return vec![format!("sensitivity: no bound is derived; {clipped}")];
    };
    let sum: f64 = sensitivity
        .statements
        .iter()
        .filter_map(|s| s.derived.as_ref().ok())
        .map(|bound| bound.norm)
        .sum();
    let all = sensitivity.statements.iter().all(|s| s.derived.is_ok());
    let together = if all && sum > record.norm * 1.0001 {
        format!(" (the statements' bounds add up to {sum:.4})")
    } else {
        String::new()
    };
    let taken = if record.clip() <= DEFAULT_CLIP {
        "the default clip bounds are that, and clipping never activates".to_string()
    } else {
        format!(
            "above the default clip bounds of {DEFAULT_CLIP}: with `--clip-gradient derived --clip-log-ratio derived` clipping never activates, at the cost of more noise"
        )
    };
    vec![format!(
        "sensitivity: a record moves the log-likelihood by at most {:.4} per unit of distance{together}; {taken}",
        record.norm
    )]
}

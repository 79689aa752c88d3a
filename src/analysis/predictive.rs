//! The outcomes of tables made up from a model, in numbers: what the prior predicts.

use serde::Serialize;

use super::tables::{Table, Tables};
use crate::diagnostics::{mean, quantile, sd};

/// An outcome of all rows of all tables together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Predicted {
    pub outcome: String,
    pub mean: f64,
    pub sd: f64,
    /// At [`QUANTILES`].
    pub quantiles: [f64; 5],
    /// The shares of its values that are its declared bounds, where there are any.
    pub at_lower: Option<f64>,
    pub at_upper: Option<f64>,
    /// The words of a factor, and the share of each.
    pub words: Vec<(String, f64)>,
}

pub(crate) const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Every outcome of the model, in declaration order.
pub(crate) fn predicted(tables: &Tables, made: &[Table]) -> Vec<Predicted> {
    let model = tables.model();
    let prediction = |c: usize| {
        let column = &model.columns[c];
        let values: Vec<f64> = (made.iter())
            .filter_map(|table| table.columns().nth(c))
            .flat_map(|(_, values)| values.iter().copied())
            .collect();
        let share = |value: f64| {
            let equal = values.iter().filter(|v| **v == value).count();
            equal as f64 / values.len().max(1) as f64
        };
        let finite = |bound: Option<f64>| bound.filter(|b| b.is_finite()).map(share);
        let words = (1..).zip(&column.levels);
        Predicted {
            outcome: column.name.clone(),
            mean: mean(&[&values]),
            sd: sd(&[&values]),
            quantiles: QUANTILES.map(|p| quantile(&[&values], p)),
            at_lower: finite(column.lower),
            at_upper: finite(column.upper),
            words: words
                .map(|(k, word)| (word.clone(), share(f64::from(k))))
                .collect(),
        }
    };
    model
        .outcomes
        .iter()
        .map(|o| prediction(o.column))
        .collect()
}

/// A line for each outcome.
pub(crate) fn in_words(predicted: &[Predicted]) -> Vec<String> {
    let line = |p: &Predicted| {
        if !p.words.is_empty() {
            let shares = p
                .words
                .iter()
                .map(|(word, share)| format!("{word} {share:.3}"));
            return format!("{}: {}", p.outcome, shares.collect::<Vec<_>>().join(", "));
        }
        let [q5, q25, q50, q75, q95] = p.quantiles.map(figure);
        let mut line = format!(
            "{}: mean {}, sd {}, quantiles (5, 25, 50, 75, 95 %) {q5} {q25} {q50} {q75} {q95}",
            p.outcome,
            figure(p.mean),
            figure(p.sd)
        );
        for (which, share) in [("lower", p.at_lower), ("upper", p.at_upper)] {
            if let Some(share) = share {
                line.push_str(&format!(", {:.1}% at its {which} bound", 100.0 * share));
            }
        }
        line
    };
    predicted.iter().map(line).collect()
}

/// Four digits.
fn figure(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{x:.3e}");
    }
    let decimals = (3.0 - size.log10().floor()).max(0.0) as usize;
    format!("{x:.decimals$}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Constants, Model};

    // Oracle: by hand; y is 0 or 1 with probability 1/2, to five standard errors of 4000 values (false
    // alarm 6e-7); z is normal.
    #[test]
    fn outcomes_are_summed_up() {
        let model = Model::from_source(
            "record { int<lower=0, upper=1> y; real<upper=99> z; real x; }
             parameters { real a; }
             model { a ~ normal(0, 1); y ~ bernoulli_logit(a); z ~ normal(a + 5 + 0 * x, 2); }",
            &Constants::none(),
        )
        .unwrap();
        let tables = Tables::at_values(&model, 2000, &json!({"a": 0})).unwrap();
        let made = [tables.table(0), tables.table(1)];
        let found = predicted(&tables, &made);
        assert_eq!(found.len(), 2);
        let error = 5.0 * 0.5 / 4000f64.sqrt();
        assert!((found[0].at_upper.unwrap() - 0.5).abs() < error);
        assert_eq!(found[0].at_lower.unwrap() + found[0].at_upper.unwrap(), 1.0);
        assert!((found[1].quantiles[2] - 5.0).abs() < 0.2);
        assert_eq!((found[1].at_lower, found[1].at_upper), (None, Some(0.0)));
        let said = in_words(&found);
        assert!(said[0].starts_with("y: mean 0.5") || said[0].starts_with("y: mean 0.4"));
        assert!(said[1].contains("0.0% at its upper bound"), "{}", said[1]);
    }
}

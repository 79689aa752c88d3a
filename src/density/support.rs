//! The support of an outcome: the values that have a probability of their own, and the range of the
//! others.

use super::nodes::NODES;
use super::scale::Scale;
use crate::model::{Binary, Model, PrivateOp, RecordColumn, Scalar};

/// The most atoms of a real outcome.
const ATOMS: usize = 4;

/// The support of an outcome, and the scale on which it has a density.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Support {
    /// Values that have a probability of their own.
    pub atoms: Vec<f64>,
    /// The bounds of the others, on their scale.
    pub range: Option<[Option<f64>; 2]>,
    /// The scale of the density's variate.
    pub scale: Scale,
}

/// The supports that an outcome may have, the likeliest first.
pub(super) fn supports(model: &Model, column: usize, terms: &[Scalar]) -> Vec<Support> {
    let RecordColumn {
        is_int,
        lower,
        upper,
        ..
    } = model.columns[column];
    let mut found = Vec::new();
    if let (true, Some(low), Some(high)) = (is_int, lower, upper)
        && high - low < NODES as f64
    {
        let count = (high - low) as usize + 1;
        found.push(Support {
            atoms: (0..count).map(|k| low + k as f64).collect(),
            range: None,
            scale: Scale::default(),
        });
    }
    let variate = model.outcomes.iter().find(|o| o.column == column);
    let mut scales: Vec<Scale> = variate
        .filter(|_| !is_int)
        .and_then(|o| Scale::of(model, column, o.variate))
        .into_iter()
        .collect();
    if !scales.contains(&Scale::default()) {
        scales.push(Scale::default());
    }
    let atoms = if is_int {
        vec![Vec::new()]
    } else {
        atoms(model, column, terms)
    };
    // Bounds may cut off a part of the model's density, or lie inside of the positive numbers.
    let zero = lower.filter(|low| *low > 0.0).map(|_| 0.0);
    let lowest = if zero.is_some() {
        vec![lower, zero, None]
    } else {
        vec![lower, None]
    };
    let ranges = lowest.iter().flat_map(|low| [[*low, upper], [*low, None]]);
    for range in ranges {
        for atoms in &atoms {
            for scale in &scales {
                let support = Support {
                    atoms: atoms.clone(),
                    range: Some(scale.bounds(range)),
                    scale: scale.clone(),
                };
                if !found.contains(&support) {
                    found.push(support);
                }
            }
        }
    }
    found
}

/// Constants to which a real column may be equal with some probability: none; those to which it is
/// tested for equality; also its bounds, where it is compared with them.
fn atoms(model: &Model, column: usize, terms: &[Scalar]) -> Vec<Vec<f64>> {
    let RecordColumn { lower, upper, .. } = model.columns[column];
    let graph = &model.graphs.private;
    let is_column = |s: Scalar| match s {
        Scalar::Private(id) => graph.node(id).op == PrivateOp::Column(column as u32),
        _ => false,
    };
    let (mut equal, mut compared) = (Vec::new(), Vec::new());
    for id in model.needed_private_nodes(terms) {
        let PrivateOp::Binary(op, a, b) = graph.node(id).op else {
            continue;
        };
        let constant = if is_column(a) {
            b.as_number()
        } else if is_column(b) {
            a.as_number()
        } else {
            None
        };
        let Some(constant) = constant.filter(|c| c.is_finite()) else {
            continue;
        };
        match op {
            Binary::Equal | Binary::NotEqual => equal.push(constant),
            Binary::Less | Binary::LessEqual if [lower, upper].contains(&Some(constant)) => {
                compared.push(constant);
            }
            _ => {}
        }
    }
    let mut sets = vec![Vec::new()];
    compared.extend(&equal);
    for mut set in [equal, compared] {
        set.sort_by(f64::total_cmp);
        set.dedup();
        if set.len() <= ATOMS && !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

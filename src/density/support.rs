//! The support of an outcome: the values that have a probability of their own, and the range of the
//! others.

use super::nodes::NODES;
use super::scale::Scale;
use super::{BLOCK, RowProgram};
use crate::model::{Binary, Model, PrivateId, PrivateOp, RecordColumn, Scalar};

/// The most atoms of a real outcome.
const ATOMS: usize = 4;
/// The number of values of a column at which its variate is tried, and, where a side has no bound, their distance in
/// asinh(x).
const TRIED: usize = 4096;
const APART: f64 = 0.01;

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
    // What else reads the column may tell its values apart.
    let reads = |t: &&Scalar| {
        model
            .columns_under(&[**t])
            .iter()
            .any(|(c, _)| *c == column)
    };
    let mut readers = model.likelihood_terms().iter().filter(reads);
    let is_read_by_own = readers.all(|t| terms.contains(t));
    let by_variate = variate.filter(|_| is_read_by_own);
    if let Some(atoms) = by_variate.and_then(|o| classes(model, column, o.variate)) {
        found.push(Support {
            atoms,
            range: None,
            scale: Scale::default(),
        });
    }
    let mut scales: Vec<Scale> = variate
        .filter(|_| !is_int)
        .and_then(|o| Scale::of(model, column, o.variate))
        .into_iter()
        .collect();
    if !scales.contains(&Scale::default()) {
        scales.push(Scale::default());
    }
    let atoms = atoms(model, column, terms);
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

/// One value of a column for each value of a variate that has only a few, as that of `(y > 0) ~ bernoulli(p)`: the
/// density is one of the variate, and other values of the column say the same.
pub(super) fn classes(model: &Model, column: usize, variate: Scalar) -> Option<Vec<f64>> {
    let order = model.needed_private_nodes(&[variate]);
    let graph = &model.graphs.private;
    let is_column = |id: PrivateId| matches!(graph.node(id).op, PrivateOp::Column(_));
    let program = RowProgram::compile(&model.graphs, &order, &[variate], is_column);
    if program.columns().len() != 1 || program.interface_length() > 0 {
        return None;
    }
    let operands = order.iter().filter_map(|&id| match graph.node(id).op {
        PrivateOp::Binary(_, a, b) => a.as_number().or(b.as_number()),
        _ => None,
    });
    let tried = tried(&model.columns[column], operands);
    let mut scratch = program.scratch(&[]);
    let mut found: Vec<[f64; 2]> = Vec::new();
    for block in tried.chunks(BLOCK) {
        program.forward(&[block], block.len(), &mut scratch);
        let variates = program.output(0, &[block], block.len(), &scratch);
        for (&x, &v) in block.iter().zip(variates) {
            if v.is_nan() {
                return None;
            }
            if found.iter().all(|[_, other]| *other != v) {
                found.push([x, v]);
            }
        }
        if found.len() > NODES {
            return None;
        }
    }
    let are_fewer = found.len() > 1 && found.len() < tried.len();
    are_fewer.then(|| found.into_iter().map(|[x, _]| x).collect())
}

/// Values of a column all over its range, and around those to which it may be compared.
fn tried(column: &RecordColumn, compared: impl Iterator<Item = f64>) -> Vec<f64> {
    let low = column.lower.unwrap_or(f64::NEG_INFINITY);
    let high = column.upper.unwrap_or(f64::INFINITY);
    let around = |c: f64| {
        if column.is_int {
            [c.floor() - 1.0, c.floor(), c.floor() + 1.0]
        } else {
            [c.next_down(), c, c.next_up()]
        }
    };
    let step = |k: usize| {
        let from_middle = k as f64 - TRIED as f64 / 2.0;
        if column.is_int {
            match (column.lower, column.upper) {
                (Some(low), _) => low + k as f64,
                (None, Some(high)) => high - k as f64,
                (None, None) => from_middle,
            }
        } else if (high - low).is_finite() {
            low + (high - low) * k as f64 / (TRIED - 1) as f64
        } else {
            (APART * from_middle).sinh()
        }
    };
    let all = compared.flat_map(around).chain((0..TRIED).map(step));
    let mut all: Vec<f64> = all.filter(|x| (low..=high).contains(x)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// Constants to which a column may be equal with some probability of their own: none; those to which it is
/// tested for equality; also its bounds, where it is compared with them. An int has none.
pub(super) fn atoms(model: &Model, column: usize, terms: &[Scalar]) -> Vec<Vec<f64>> {
    let RecordColumn {
        is_int,
        lower,
        upper,
        ..
    } = model.columns[column];
    if is_int {
        return vec![Vec::new()];
    }
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

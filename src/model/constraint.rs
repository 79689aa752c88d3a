//! Whether values satisfy their declared types: for numbers, with a description of what is wrong,
//! and as a condition in the public graph.

use super::blocks::Blocks;
use super::public::{Binary, PublicGraph, PublicId};
use super::running_sum::{Segments, take};
use super::value::Shape;
use crate::check::Joint;
use crate::function::{Algebra, Unary};

/// The tolerance for a sum or a symmetric pair, as in Stan.
const TOLERANCE: f64 = 1e-8;

/// A description of what is wrong with a block of a declared type, if anything.
pub fn violation(joint: Joint, blocks: Blocks, x: &[f64]) -> Option<String> {
    if let Some(bad) = x.iter().find(|v| !v.is_finite()) {
        return Some(format!("it holds {bad}"));
    }
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE;
    let entry = |row: usize, column: usize| x[row + column * blocks.rows];
    let rows = 0..blocks.rows;
    let first = |wrong: &mut dyn Iterator<Item = Option<String>>| wrong.flatten().next();
    match joint {
        Joint::Ordered | Joint::PositiveOrdered => {
            let start = x.first().copied().unwrap_or(0.0);
            if joint == Joint::PositiveOrdered && start < 0.0 {
                return Some(format!("its first element is {start}, below 0"));
            }
            first(&mut x.windows(2).enumerate().map(|(k, pair)| {
                (pair[0] >= pair[1]).then(|| {
                    format!(
                        "element {} is {}, not above element {}, which is {}",
                        k + 2,
                        pair[1],
                        k + 1,
                        pair[0]
                    )
                })
            }))
        }
        Joint::Simplex => {
            let sum: f64 = x.iter().sum();
            let negative =
                first(&mut x.iter().enumerate().map(|(k, &v)| {
                    (v < 0.0).then(|| format!("element {} is {v}, below 0", k + 1))
                }));
            negative
                .or_else(|| (!close(sum, 1.0)).then(|| format!("its elements sum to {sum}, not 1")))
        }
        Joint::UnitVector => {
            let sum: f64 = x.iter().map(|v| v * v).sum();
            (!close(sum, 1.0)).then(|| format!("its squares sum to {sum}, not 1"))
        }
        Joint::SumToZero => {
            let sum: f64 = x.iter().sum();
            (!close(sum, 0.0)).then(|| format!("its elements sum to {sum}, not 0"))
        }
        Joint::CholeskyFactorCov => triangular(blocks, x),
        Joint::CholeskyFactorCorr => triangular(blocks, x).or_else(|| {
            first(&mut rows.map(|i| {
                let sum: f64 = (0..blocks.columns).map(|j| entry(i, j).powi(2)).sum();
                (!close(sum, 1.0))
                    .then(|| format!("the squares of its row {} sum to {sum}, not 1", i + 1))
            }))
        }),
        Joint::CorrMatrix | Joint::CovMatrix => {
            let symmetric = first(&mut (0..blocks.rows * blocks.rows).map(|k| {
                let (i, j) = (k / blocks.rows, k % blocks.rows);
                (j < i && !close(entry(i, j), entry(j, i))).then(|| {
                    format!(
                        "it is not symmetric: element [{}, {}] is {}, and [{}, {}] is {}",
                        i + 1,
                        j + 1,
                        entry(i, j),
                        j + 1,
                        i + 1,
                        entry(j, i)
                    )
                })
            }));
            let diagonal = first(&mut rows.map(|i| {
                (joint == Joint::CorrMatrix && !close(entry(i, i), 1.0)).then(|| {
                    format!(
                        "element {} of its diagonal is {}, not 1",
                        i + 1,
                        entry(i, i)
                    )
                })
            }));
            symmetric.or(diagonal).or_else(|| {
                cholesky(x, blocks.rows)
                    .is_none()
                    .then(|| "it is not positive definite".to_string())
            })
        }
    }
}

fn triangular(blocks: Blocks, x: &[f64]) -> Option<String> {
    for column in 0..blocks.columns {
        for row in 0..=column {
            let v = x[row + column * blocks.rows];
            if row < column && v != 0.0 {
                return Some(format!(
                    "element [{}, {}], above the diagonal, is {v}, not 0",
                    row + 1,
                    column + 1
                ));
            }
            if row == column && v <= 0.0 {
                return Some(format!(
                    "element {} of its diagonal is {v}, not positive",
                    row + 1
                ));
            }
        }
    }
    None
}

/// The lower Cholesky factor of a symmetric matrix, column by column; `None`
/// when it is not positive definite.
pub fn cholesky(matrix: &[f64], size: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; size * size];
    for j in 0..size {
        for i in j..size {
            let product: f64 = (0..j).map(|k| l[i + k * size] * l[j + k * size]).sum();
            let rest = matrix[i + j * size] - product;
            l[i + j * size] = if i > j {
                rest / l[j + j * size]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    Some(l)
}

/// `name[2,1]`: an element of a variable, or the variable when it is a scalar.
pub fn element_name(name: &str, shape: &Shape, position: usize) -> String {
    match shape.indices().get(position) {
        Some(index) if !index.is_empty() => {
            let list: Vec<String> = index.iter().map(ToString::to_string).collect();
            format!("{name}[{}]", list.join(","))
        }
        _ => name.to_string(),
    }
}

/// `name[2]`: one block of an array of vectors or matrices.
pub fn block_name(name: &str, shape: &Shape, block: usize) -> String {
    let array = Shape {
        ty: crate::check::Type {
            base: crate::check::Base::Real,
            array: shape.ty.array,
        },
        sizes: shape.sizes[..shape.ty.array].to_vec(),
    };
    element_name(name, &array, block)
}

/// Conditions, 1 or 0, that are all 1 where every block of `x` satisfies the type, as in
/// [`violation`]. NaN satisfies none.
pub fn conditions(g: &mut PublicGraph, joint: Joint, blocks: Blocks, x: PublicId) -> Vec<PublicId> {
    let (count, rows) = (blocks.count, blocks.rows);
    let square = |i: usize, j: usize, block: usize| block * blocks.length() + i + j * rows;
    let pick = |g: &mut PublicGraph, keep: &dyn Fn(usize, usize) -> bool| {
        let mut positions = Vec::new();
        for block in 0..count {
            for j in 0..blocks.columns {
                positions.extend(
                    (0..rows)
                        .filter(|&i| keep(i, j))
                        .map(|i| square(i, j, block)),
                );
            }
        }
        (!positions.is_empty()).then(|| take(g, x, &positions))
    };
    let zero = g.constant(0.0);
    let one = g.constant(1.0);
    match joint {
        Joint::Ordered | Joint::PositiveOrdered => {
            let mut all = Vec::new();
            let is_first = |i: &usize| i.is_multiple_of(rows);
            let positions: Vec<usize> = (0..count * rows).collect();
            let later: Vec<usize> = positions.iter().copied().filter(|i| !is_first(i)).collect();
            if !later.is_empty() {
                let before: Vec<usize> = later.iter().map(|i| i - 1).collect();
                let (before, later) = (take(g, x, &before), take(g, x, &later));
                all.push(g.less(before, later));
            }
            if joint == Joint::PositiveOrdered {
                let firsts: Vec<usize> = positions.iter().copied().filter(is_first).collect();
                let firsts = take(g, x, &firsts);
                all.push(g.binary(Binary::LessEqual, zero, firsts));
            }
            all
        }
        Joint::Simplex => {
            let sums = block_sums(g, x, blocks);
            vec![g.binary(Binary::LessEqual, zero, x), near(g, sums, one)]
        }
        Joint::UnitVector => {
            let squares = g.square(x);
            let sums = block_sums(g, squares, blocks);
            vec![near(g, sums, one)]
        }
        Joint::SumToZero => {
            let sums = block_sums(g, x, blocks);
            vec![near(g, sums, zero)]
        }
        Joint::CholeskyFactorCov | Joint::CholeskyFactorCorr => {
            let mut all = Vec::new();
            if let Some(diagonal) = pick(g, &|i, j| i == j) {
                all.push(g.less(zero, diagonal));
            }
            if let Some(above) = pick(g, &|i, j| i < j) {
                all.push(g.equal(above, zero));
            }
            if joint == Joint::CholeskyFactorCorr {
                let by_rows: Vec<usize> = (0..count)
                    .flat_map(|block| {
                        (0..rows * rows).map(move |k| square(k / rows, k % rows, block))
                    })
                    .collect();
                let elements = take(g, x, &by_rows);
                let squares = g.square(elements);
                let segments = Segments::equal(count * rows, rows);
                let sums = segments.sums(g, squares);
                let sums = segments.totals(g, sums);
                all.push(near(g, sums, one));
            }
            all
        }
        Joint::CorrMatrix | Joint::CovMatrix => {
            let mut all = Vec::new();
            let (mut below, mut above) = (Vec::new(), Vec::new());
            for block in 0..count {
                for j in 0..rows {
                    for i in j + 1..rows {
                        below.push(square(i, j, block));
                        above.push(square(j, i, block));
                    }
                }
            }
            if !below.is_empty() {
                let (below, above) = (take(g, x, &below), take(g, x, &above));
                all.push(near(g, below, above));
            }
            if let Some(diagonal) = pick(g, &|i, j| i == j && joint == Joint::CorrMatrix) {
                all.push(near(g, diagonal, one));
            }
            for block in 0..count {
                all.extend(positive_pivots(g, x, rows, block * rows * rows));
            }
            all
        }
    }
}

fn block_sums(g: &mut PublicGraph, x: PublicId, blocks: Blocks) -> PublicId {
    let segments = Segments::equal(blocks.count, blocks.length());
    let sums = segments.sums(g, x);
    segments.totals(g, sums)
}

fn near(g: &mut PublicGraph, a: PublicId, b: PublicId) -> PublicId {
    let difference = g.subtract(a, b);
    let distance = g.unary(Unary::Abs, difference);
    let tolerance = g.constant(TOLERANCE);
    g.binary(Binary::LessEqual, distance, tolerance)
}

/// Whether each pivot of Gaussian elimination is positive, which makes a
/// symmetric matrix positive definite.
fn positive_pivots(g: &mut PublicGraph, x: PublicId, size: usize, start: usize) -> Vec<PublicId> {
    let mut all = Vec::new();
    let zero = g.constant(0.0);
    let positions: Vec<usize> = (start..start + size * size).collect();
    let mut rest = take(g, x, &positions);
    for left in (1..=size).rev() {
        let pivot = take(g, rest, &[0]);
        all.push(g.less(zero, pivot));
        if left == 1 {
            break;
        }
        // The rest after elimination of the first row and column.
        let corner = || (1..left).flat_map(|j| (1..left).map(move |i| (i, j)));
        let indices = |f: &dyn Fn(usize, usize) -> usize| corner().map(|(i, j)| f(i, j)).collect();
        let (inner, rows, columns): (Vec<usize>, Vec<usize>, Vec<usize>) = (
            indices(&|i, j| i + j * left),
            indices(&|i, _| i),
            indices(&|_, j| j),
        );
        let (inner, rows) = (take(g, rest, &inner), take(g, rest, &rows));
        let columns = take(g, rest, &columns);
        let product = g.multiply(rows, columns);
        let share = g.divide(product, pivot);
        rest = g.subtract(inner, share);
    }
    all
}

//! The vectors of a record in the space that they span.
//!
//! Whatever the outcome, the gradient of a record is a sum of the gradients of its few predictors,
//! times the derivatives of the log-likelihood by these. So the vectors at all nodes lie in the span
//! of the predictors' gradients. By an orthonormal basis of that span they have as many coordinates as
//! there are predictors, the same lengths and the same angles: means, lengths and what balances them
//! are found there, and only what is summed is moved back.

use crate::density::{BLOCK, Predictors};
use crate::linear::vectorised;

/// The remainder of a vector, as a share of its length, when its parts along others are taken out:
/// below this it is what rounding leaves of a combination of these.
const DEPENDENT: f64 = 1e-6;

/// An orthonormal basis for each record of a block, and memory to work with it.
pub(super) struct Basis {
    pub predictors: Predictors,
    /// `[vector][derivative][BLOCK]`: the predictors' gradients, and then the basis.
    pub vectors: Vec<f64>,
    /// The number of vectors.
    pub rank: usize,
    /// The predictors' gradients by the basis, as a triangle (row k has k + 1 entries), `[entry][BLOCK]`.
    triangle: Vec<f64>,
    /// `[vector][node][BLOCK]`
    at_nodes: Vec<f64>,
    /// Vectors that were moved back, `[vector][derivative][BLOCK]`, and their weights.
    lifted: Vec<f64>,
    ones: Vec<f64>,
}

impl Basis {
    /// Memory for vectors of `width` derivatives, and this many nodes.
    pub fn new(predictors: Predictors, width: usize, nodes: usize) -> Basis {
        let rank = predictors.count();
        Basis {
            predictors,
            vectors: vec![0.0; rank * width * BLOCK],
            rank,
            triangle: vec![0.0; rank * (rank + 1) / 2 * BLOCK],
            at_nodes: vec![0.0; rank * nodes * BLOCK],
            lifted: vec![0.0; rank * width * BLOCK],
            ones: vec![1.0; rank * BLOCK],
        }
    }

    /// Makes a basis of the predictors' gradients in `vectors`, and coordinates by it of the
    /// derivatives by predictors, `[node][predictor][BLOCK]`. Where a vector would not be of numbers,
    /// it and its weight become 0.
    pub fn settle(&mut self, rows: usize, weights: &mut [f64], coordinates: &mut [f64]) {
        if !are_finite(&self.vectors, rows) {
            self.leave_out(rows, weights, coordinates);
        }
        orthonormalise(&mut self.vectors, self.rank, &mut self.triangle);
        rotate(&self.triangle, coordinates, self.rank);
    }

    /// A predictor that has no gradient has no part in a vector, if its derivative is 0 there.
    fn leave_out(&mut self, rows: usize, weights: &mut [f64], coordinates: &mut [f64]) {
        let length = self.vectors.len() / self.rank;
        let vectors = self.vectors.chunks_exact_mut(length).enumerate();
        for (k, vector) in vectors {
            for i in 0..rows {
                let places = || (i..length).step_by(BLOCK);
                if places().all(|at| vector[at].is_finite()) {
                    continue;
                }
                places().for_each(|at| vector[at] = 0.0);
                let nodes = weights.chunks_exact_mut(BLOCK);
                let each = coordinates.chunks_exact_mut(self.rank * BLOCK);
                for (weights, own) in nodes.zip(each) {
                    if own[k * BLOCK + i] != 0.0 {
                        weights[i] = 0.0;
                        (own.iter_mut().skip(i).step_by(BLOCK)).for_each(|own| *own = 0.0);
                    }
                }
            }
        }
    }

    /// The vectors with these coordinates, `[coordinate][BLOCK]`.
    pub fn lift(&mut self, coordinates: &[f64]) -> &[f64] {
        let out = &mut self.lifted[..self.vectors.len() / self.rank];
        out.fill(0.0);
        let vectors = self.vectors.chunks_exact(out.len());
        for (own, vector) in coordinates.chunks_exact(BLOCK).zip(vectors) {
            add_scaled(own, vector, out);
        }
        out
    }

    /// As few vectors as there are predictors, of weights 1, with the same sum of products as those
    /// whose weights and coordinates are given: sum_k u_k u_k' = sum_j w_j v_j v_j'. Weights that are
    /// negative or NaN count as zero.
    pub fn roots(&mut self, weights: &[f64], coordinates: &[f64]) -> (&[f64], &[f64]) {
        // By rows of S, sum_j w_j c_j c_j' = S S' = L L', with S = L Q and rows of Q that are
        // orthonormal. The coordinates of the vectors are the columns of L.
        weigh(weights, coordinates, &mut self.at_nodes);
        orthonormalise(&mut self.at_nodes, self.rank, &mut self.triangle);
        let length = self.vectors.len() / self.rank;
        for (column, out) in self.lifted.chunks_exact_mut(length).enumerate() {
            out.fill(0.0);
            for (k, vector) in (self.vectors.chunks_exact(length).enumerate()).skip(column) {
                let entry = &self.triangle[place(k, column) * BLOCK..][..BLOCK];
                add_scaled(entry, vector, out);
            }
        }
        (&self.ones, &self.lifted)
    }
}

/// The place of an entry of a triangle.
#[inline(always)]
fn place(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

vectorised! {
    fn are_finite(vectors: &[f64], rows: usize) -> bool {
        let mut all = true;
        for column in vectors.chunks_exact(BLOCK) {
            for x in &column[..rows] {
                all &= x.is_finite();
            }
        }
        all
    }
}

vectorised! {
    /// Makes vectors v_k of each record orthonormal, by the modified Gram-Schmidt process, and the
    /// triangle L with v_k = sum_l L_kl q_l. Where v_k depends on those before it, q_k is 0.
    fn orthonormalise(vectors: &mut [f64], rank: usize, triangle: &mut [f64]) {
        let length = vectors.len() / rank;
        for k in 0..rank {
            let (before, own) = vectors[..(k + 1) * length].split_at_mut(k * length);
            let mut whole = [0.0; BLOCK];
            add_products(own, own, &mut whole);
            for (l, other) in before.chunks_exact(length).enumerate() {
                let entry = &mut triangle[place(k, l) * BLOCK..][..BLOCK];
                entry.fill(0.0);
                add_products(other, own, entry);
                for (own, other) in own.chunks_exact_mut(BLOCK).zip(other.chunks_exact(BLOCK)) {
                    for ((x, q), part) in own.iter_mut().zip(other).zip(&*entry) {
                        *x -= part * q;
                    }
                }
            }
            let mut left = [0.0; BLOCK];
            add_products(own, own, &mut left);
            let mut inverse = [0.0; BLOCK];
            let entry = &mut triangle[place(k, k) * BLOCK..][..BLOCK];
            for (((length, inverse), left), whole) in
                entry.iter_mut().zip(&mut inverse).zip(&left).zip(&whole)
            {
                let is_new = *left > DEPENDENT * DEPENDENT * whole;
                *length = if is_new { left.sqrt() } else { 0.0 };
                *inverse = if is_new { 1.0 / *length } else { 0.0 };
            }
            for own in own.chunks_exact_mut(BLOCK) {
                for (x, inverse) in own.iter_mut().zip(&inverse) {
                    *x *= inverse;
                }
            }
        }
    }
}

/// Adds the scalar products of two vectors of each record.
#[inline(always)]
fn add_products(a: &[f64], b: &[f64], products: &mut [f64]) {
    for (a, b) in a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)) {
        for ((product, a), b) in products.iter_mut().zip(a).zip(b) {
            *product += a * b;
        }
    }
}

vectorised! {
    /// From coordinates by the vectors v_k to those by the q_l: c_l = sum_k c_k L_kl, in place.
    fn rotate(triangle: &[f64], coordinates: &mut [f64], rank: usize) {
        for coordinates in coordinates.chunks_exact_mut(rank * BLOCK) {
            for l in 0..rank {
                // Those that are still to be replaced.
                let (own, later) = coordinates[l * BLOCK..].split_at_mut(BLOCK);
                let diagonal = &triangle[place(l, l) * BLOCK..][..BLOCK];
                for (own, entry) in own.iter_mut().zip(diagonal) {
                    *own *= entry;
                }
                for (k, later) in (l + 1..rank).zip(later.chunks_exact(BLOCK)) {
                    let entry = &triangle[place(k, l) * BLOCK..][..BLOCK];
                    for ((own, later), entry) in own.iter_mut().zip(later).zip(entry) {
                        *own += later * entry;
                    }
                }
            }
        }
    }
}

vectorised! {
    /// `out += factor * vector`
    fn add_scaled(factor: &[f64], vector: &[f64], out: &mut [f64]) {
        for (out, vector) in out.chunks_exact_mut(BLOCK).zip(vector.chunks_exact(BLOCK)) {
            for ((out, c), x) in out.iter_mut().zip(factor).zip(vector) {
                *out += c * x;
            }
        }
    }
}

vectorised! {
    /// `out[k][j] = sqrt(weights[j]) coordinates[j][k]`
    fn weigh(weights: &[f64], coordinates: &[f64], out: &mut [f64]) {
        let nodes = weights.len() / BLOCK;
        let rank = coordinates.len() / weights.len();
        for (j, weights) in weights.chunks_exact(BLOCK).enumerate() {
            let mut root = [0.0; BLOCK];
            for (root, w) in root.iter_mut().zip(weights) {
                *root = if *w > 0.0 { w.sqrt() } else { 0.0 };
            }
            for k in 0..rank {
                let own = &coordinates[(j * rank + k) * BLOCK..][..BLOCK];
                let out = &mut out[(k * nodes + j) * BLOCK..][..BLOCK];
                for ((out, root), c) in out.iter_mut().zip(&root).zip(own) {
                    *out = root * c;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const WIDTH: usize = 5;
    const NODES: usize = 7;
    const RANK: usize = 3;

    struct Given {
        basis: Basis,
        weights: Vec<f64>,
        coordinates: Vec<f64>,
    }

    /// Random gradients of predictors, derivatives by them and weights. Of record 0, the last gradient is a
    /// sum of the others; of record 1, the first is 0.
    fn given() -> Given {
        let rng = &mut ChaCha8Rng::seed_from_u64(4);
        let mut random = |count: usize| -> Vec<f64> {
            let number = |_| rng.random_range(-1.0..1.0);
            (0..count * BLOCK).map(number).collect()
        };
        let mut basis = Basis::new(Predictors::of_count(RANK), WIDTH, NODES);
        basis.vectors = random(RANK * WIDTH);
        for j in 0..WIDTH {
            let at = |k: usize, i: usize| (k * WIDTH + j) * BLOCK + i;
            let v = &mut basis.vectors;
            v[at(2, 0)] = 2.0 * v[at(0, 0)] - 3.0 * v[at(1, 0)];
            v[at(0, 1)] = 0.0;
        }
        Given {
            basis,
            weights: random(NODES).iter().map(|w| w.abs()).collect(),
            coordinates: random(NODES * RANK),
        }
    }

    /// The vectors of a record, `[node][derivative]`, from derivatives by predictors and their gradients.
    fn vectors(vectors: &[f64], coordinates: &[f64], i: usize) -> Vec<[f64; WIDTH]> {
        let vector = |own: &[f64]| {
            let sum = |j: usize| {
                let terms = own.chunks(BLOCK).enumerate();
                terms
                    .map(|(k, own)| own[i] * vectors[(k * WIDTH + j) * BLOCK + i])
                    .sum()
            };
            std::array::from_fn(sum)
        };
        coordinates.chunks(RANK * BLOCK).map(vector).collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    // If it failed: lengths, by which gradients are clipped, and sums would be those of other vectors.
    #[test]
    fn coordinates_stand_for_the_same_vectors() {
        let mut given = given();
        let expected: Vec<_> = (0..BLOCK)
            .map(|i| vectors(&given.basis.vectors, &given.coordinates, i))
            .collect();
        let weights = given.weights.clone();
        (given.basis).settle(BLOCK, &mut given.weights, &mut given.coordinates);
        assert_eq!(weights, given.weights);
        for (node, own) in given.coordinates.chunks(RANK * BLOCK).enumerate() {
            let lifted = given.basis.lift(own);
            for (i, expected) in expected.iter().enumerate() {
                let expected = expected[node];
                let each = lifted[i..].iter().step_by(BLOCK).zip(expected);
                assert!(each.into_iter().all(|(a, b)| close(*a, b)), "{node} {i}");
                let square = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
                let own = square(&mut own[i..].iter().step_by(BLOCK).copied());
                assert!(close(own, square(&mut expected.into_iter())), "{node} {i}");
            }
        }
        let (ones, roots) = given.basis.roots(&given.weights, &given.coordinates);
        assert!(ones.len() == RANK * BLOCK && ones.iter().all(|w| *w == 1.0));
        for (i, expected) in expected.iter().enumerate() {
            for j in 0..WIDTH {
                for k in 0..WIDTH {
                    let nodes = expected.iter().zip(weights[i..].iter().step_by(BLOCK));
                    let products: f64 = nodes.map(|(v, w)| w * v[j] * v[k]).sum();
                    let roots = roots.chunks(WIDTH * BLOCK);
                    let of_roots = roots.map(|u| u[j * BLOCK + i] * u[k * BLOCK + i]).sum();
                    assert!(close(products, of_roots), "{i} {j} {k}");
                }
            }
        }
    }

    // If it failed: a record whose predictor is not a number where it has no effect would add nothing.
    #[test]
    fn what_is_not_a_number_is_left_out() {
        let mut given = given();
        // Of record 2, the first predictor has an effect at node 3 alone, and its gradient is infinite.
        let nodes = given.coordinates.chunks_mut(RANK * BLOCK).enumerate();
        nodes
            .filter(|(node, _)| *node != 3)
            .for_each(|(_, own)| own[2] = 0.0);
        given.basis.vectors[2 * BLOCK + 2] = f64::INFINITY;
        let weights = given.weights.clone();
        (given.basis).settle(BLOCK, &mut given.weights, &mut given.coordinates);
        for (node, own) in given.coordinates.chunks(RANK * BLOCK).enumerate() {
            let weight = given.weights[node * BLOCK + 2];
            let lifted = given.basis.lift(own);
            if node == 3 {
                assert_eq!(weight, 0.0);
                assert!(lifted[2..].iter().step_by(BLOCK).all(|x| *x == 0.0));
                continue;
            }
            assert_eq!(weight, weights[node * BLOCK + 2]);
            assert!(lifted[2..].iter().step_by(BLOCK).any(|x| *x != 0.0));
            assert!(lifted.iter().all(|x| x.is_finite()));
        }
    }
}

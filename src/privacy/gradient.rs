//! Per-record gradients: clipped, put on a lattice, checked as integers, summed.

// The compiler makes vector instructions of loops over indices, and not of their iterators.
#![expect(clippy::needless_range_loop)]

use serde::{Deserialize, Serialize};

use super::noise::DiscreteGaussian;
use crate::density::BLOCK;
use crate::linear::vectorised;

/// The noise parameter in lattice units: the lattice is made so that sigma is
/// this many of its steps.
const SIGMA_UNITS: u64 = 1 << 40;

/// The largest clip bound in lattice units. A sum over a block of [`BLOCK`]
/// records then stays below 2^59.
const MAX_BOUND: i64 = 1 << 51;

/// How far the floats of a vector may be from one that is exactly alike others, as a share of its
/// length. Those of triangles of up to [`MOST_COORDINATES`] are nearer: docs/proofs.md, section 5.
const ROUNDED: f64 = 1.0 / (1u64 << 30) as f64;
const MOST_COORDINATES: usize = 1 << 27;

/// Records that are computed together, few enough that what is kept for each stays in registers,
/// and the parts in which their integers are summed.
const ROWS: usize = 16;
const LANES: usize = 8;

/// Added to an integer below 2^51, it moves the integer to the lowest bits.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;

/// The gradients of a block of records.
#[derive(Clone, Copy)]
pub(super) struct Gradients<'a> {
    /// Derivative `k` of record `i` at `k * BLOCK + i`.
    pub values: &'a [f64],
    /// The coordinates of the first derivatives, different ones for each record. A record may have
    /// one twice where one derivative is 0.
    pub picked: &'a [[usize; BLOCK]],
    /// Those of the others, the same for all records; all of them in order, unless given.
    pub coordinates: Option<&'a [usize]>,
}

impl<'a> Gradients<'a> {
    /// All coordinates of all records.
    pub fn whole(values: &'a [f64]) -> Gradients<'a> {
        Gradients {
            values,
            picked: &[],
            coordinates: None,
        }
    }

    /// The derivatives by coordinates that are picked, and by the others.
    fn parts(self) -> (&'a [f64], &'a [f64]) {
        self.values.split_at(self.picked.len() * BLOCK)
    }

    fn coordinate(&self, j: usize) -> usize {
        self.coordinates.map_or(j, |coordinates| coordinates[j])
    }

    /// The coordinates of a record, and its derivatives.
    pub fn of(self, i: usize) -> impl Iterator<Item = (usize, f64)> + 'a {
        let picks = self.picked.len();
        let coordinate = move |k: usize| match k.checked_sub(picks) {
            None => self.picked[k][i],
            Some(j) => self.coordinate(j),
        };
        let derivatives = self.values.chunks_exact(BLOCK).enumerate();
        derivatives.map(move |(k, column)| (coordinate(k), column[i]))
    }
}

/// Working memory of one thread.
#[derive(Debug, Default)]
pub(super) struct Memory {
    totals: Vec<[i64; LANES]>,
    /// The integers of coordinates that records pick.
    picked: Vec<[i64; BLOCK]>,
}

/// The settings of all gradient releases of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct GradientScale {
    clip: f64,
    sensitivity_factor: u8,
    /// B: the largest l2 norm of one record's integer vector.
    bound: i64,
    /// How far one record can move the sum, in lattice units.
    sensitivity: u64,
    gamma: f64,
    sigma: f64,
    noise: DiscreteGaussian,
}

/// An invalid clip bound or noise multiplier.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ScaleError {
    #[error("the clip bound is {0}, but must be a positive number")]
    Clip(f64),
    #[error("the noise multiplier is {0}, but must lie between 0.001 and 1e10")]
    Multiplier(f64),
    #[error("sums of this many coordinates cannot be released: {0}")]
    Coordinates(usize),
    #[error(transparent)]
    Noise(#[from] super::noise::NoiseError),
}

/// How far apart two vectors can be that are clipped at 1 and do not point away from each other,
/// over the sensitivity factor; not below.
pub(crate) fn half_distance(sensitivity_factor: u8) -> f64 {
    #[cfg(test)]
    if crate::planted::is(crate::planted::Planted::AlikeAsOne) {
        return 1.0 / f64::from(sensitivity_factor);
    }
    match sensitivity_factor {
        1 => 1.0,
        // Above the root of 1/2, as the next float is.
        _ => std::f64::consts::FRAC_1_SQRT_2,
    }
}

impl GradientScale {
    /// Clip bound `clip` (l2 norm of one record's gradient), noise `sigma =
    /// sensitivity_factor * clip * tau`, where the factor is 2 for substitution
    /// of one record and 1 for adding or removing one.
    ///
    /// # Sensitivity
    ///
    /// The lattice has spacing gamma = sigma * 2^-40, an exact scaling. One
    /// record's integer vector has norm at most B = floor(clip / gamma), so it
    /// moves the sum by at most B (add or remove) or 2 B (substitute), and
    /// B gamma <= clip: the sensitivity in units of sigma is never above
    /// 1 / tau. The floor is taken after shrinking the quotient by more than
    /// its rounding error. Proof: docs/proofs.md, section 4.
    pub fn new(clip: f64, sensitivity_factor: u8, tau: f64) -> Result<Self, ScaleError> {
        if !(clip > 0.0 && clip.is_finite()) {
            return Err(ScaleError::Clip(clip));
        }
        if !(1e-3..=1e10).contains(&tau) {
            return Err(ScaleError::Multiplier(tau));
        }
        let sigma = f64::from(sensitivity_factor) * clip * tau;
        let gamma = sigma / SIGMA_UNITS as f64;
        if !(gamma > f64::MIN_POSITIVE && sigma.is_finite()) {
            return Err(ScaleError::Clip(clip));
        }
        let bound = (clip / gamma * (1.0 - 4.0 * f64::EPSILON)).floor() as i64;
        let bound = bound.min(MAX_BOUND);
        Ok(GradientScale {
            clip,
            sensitivity_factor,
            bound,
            sensitivity: bound.unsigned_abs() * u64::from(sensitivity_factor),
            gamma,
            sigma,
            noise: DiscreteGaussian::new(SIGMA_UNITS)?,
        })
    }

    /// The same for sums of vectors no two of which point away from each other: with a scalar
    /// product of at least 0, but for the rounding of `coordinates` coordinates. Under
    /// substitution these move by sqrt(2) clip bounds where others move by 2, and sigma =
    /// sqrt(2) * clip * tau.
    ///
    /// # Sensitivity
    ///
    /// |v - w|^2 = |v|^2 + |w|^2 - 2 v.w <= 2 B^2 for such v and w. Rounding moves a vector by
    /// at most E lattice steps: less than one for each coordinate by truncation, and the vector by
    /// [`ROUNDED`] of its length in all by the roundings of its floats. So v.w >= -2 E (B + 2 E),
    /// and |v - w| <= sqrt(2) (B + 2 E): B is made smaller by that much. The mechanism is that of vectors of norm sqrt(1/2) clip which may point
    /// anywhere. Proof: docs/proofs.md, section 5.
    pub fn alike(
        clip: f64,
        sensitivity_factor: u8,
        tau: f64,
        coordinates: usize,
    ) -> Result<Self, ScaleError> {
        if sensitivity_factor == 1 {
            return Self::new(clip, 1, tau);
        }
        if coordinates > MOST_COORDINATES {
            return Err(ScaleError::Coordinates(coordinates));
        }
        let anywhere = Self::new(clip * half_distance(2), 2, tau)?;
        let bound = anywhere.bound as f64 * std::f64::consts::SQRT_2 * (1.0 - 4.0 * f64::EPSILON);
        let steps = 2.0 * ((coordinates as f64).sqrt() + ROUNDED * bound) + 4.0;
        #[cfg(test)]
        let bound = crate::planted::alike(bound);
        let bound = ((bound - steps).floor().max(0.0) as i64).min(MAX_BOUND);
        Ok(GradientScale {
            clip: clip.min(bound as f64 * anywhere.gamma),
            bound,
            ..anywhere
        })
    }

    /// Vectors are shortened to this length, or to very slightly less.
    pub fn clip(&self) -> f64 {
        self.clip
    }

    /// Standard deviation of the noise on each coordinate of the sum.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// Lattice spacing over sigma.
    pub fn lattice_ratio(&self) -> f64 {
        1.0 / SIGMA_UNITS as f64
    }

    /// The number of clip bounds by which the change of one record can move the sum: 2 or 1.
    pub(super) fn sensitivity_factor(&self) -> u8 {
        self.sensitivity_factor
    }

    /// How far one record can move the sum, in lattice units: 2 B or B, or sqrt(2) B for
    /// vectors that are alike.
    pub(super) fn sensitivity(&self) -> u64 {
        self.sensitivity
    }

    /// sigma in lattice units.
    pub(super) fn sigma_units(&self) -> u64 {
        SIGMA_UNITS
    }

    /// B, in lattice units.
    #[cfg(test)]
    pub fn bound(&self) -> i64 {
        self.bound
    }

    pub(super) fn noise(&self) -> DiscreteGaussian {
        self.noise
    }

    /// A sum in lattice units as a real number.
    pub(super) fn real(&self, units: i128) -> f64 {
        units as f64 * self.gamma
    }

    /// Adds the clipped integer gradients of a block of records to `sum`.
    ///
    /// Records for which `counts` is false add nothing. `memory` is working memory.
    ///
    /// # Sensitivity
    ///
    /// Whatever the floats are (NaN, infinite, huge), each record adds an
    /// integer vector whose squares sum to at most B^2. It is computed as floats that are integers,
    /// whose squares prove that, or else checked on the integers themselves. Proof:
    /// docs/proofs.md, section 4.
    pub(super) fn add_clipped(
        &self,
        gradients: Gradients,
        counts: &[bool],
        memory: &mut Memory,
        sum: &mut [i128],
    ) {
        let Memory { totals, picked } = memory;
        let (of_picked, common) = gradients.parts();
        totals.resize(common.len() / BLOCK, [0; LANES]);
        picked.resize(gradients.picked.len(), [0; BLOCK]);
        let mut factors = self.factors(gradients, counts, sum.len());
        // A float sum of d squares is off by less than (d + 2) epsilon of itself.
        let bound = self.bound as f64;
        let surely = bound * bound * (1.0 - (sum.len() as f64 + 8.0) * f64::EPSILON);
        let mut lengths = add_integers(common, &factors, totals);
        for (own, integers) in of_picked.chunks_exact(BLOCK).zip(&mut *picked) {
            find_integers(own, &factors, &mut lengths, integers);
        }
        let is_sure = |length: f64| length <= surely;
        if !lengths.iter().copied().all(is_sure) {
            for (i, factor) in factors.iter_mut().enumerate() {
                if !is_sure(lengths[i]) {
                    let checked = self.shrunk(gradients.of(i).map(|g| g.1), std::mem::take(factor));
                    for ((j, _), q) in gradients.of(i).zip(checked) {
                        sum[j] += i128::from(q);
                    }
                    picked.iter_mut().for_each(|integers| integers[i] = 0);
                }
            }
            add_integers(common, &factors, totals);
        }
        for (j, lanes) in totals.iter().enumerate() {
            // At most 256 integers of at most 2^51.
            sum[gradients.coordinate(j)] += i128::from(lanes.iter().sum::<i64>());
        }
        for (coordinates, integers) in gradients.picked.iter().zip(picked) {
            for (&j, &q) in coordinates.iter().zip(&*integers).take(counts.len()) {
                sum[j] += i128::from(q);
            }
        }
    }

    /// Lattice units per unit of gradient, times the factor that clips each vector; 0 for a record
    /// that does not count, and for a vector that is not finite.
    fn factors(&self, gradients: Gradients, counts: &[bool], dimension: usize) -> [f64; BLOCK] {
        let squares = squares(gradients.values);
        // Shorter than the bound by more than all roundings, so that `add_integers` proves it.
        let bound = self.bound as f64 * (1.0 - (dimension as f64 + 16.0) * f64::EPSILON);
        let mut factors = [0.0; BLOCK];
        for (factor, &counts) in factors.iter_mut().zip(counts) {
            *factor = f64::from(u8::from(counts));
        }
        let is_regular = find_factors(&squares, bound, 1.0 / self.gamma, &mut factors);
        if !is_regular {
            for i in 0..counts.len() {
                if counts[i] && !squares[i].is_finite() {
                    factors[i] = irregular(bound, || gradients.of(i).map(|g| g.1));
                }
            }
        }
        factors
    }

    /// A record's integers, made smaller until their squares sum to at most B^2, exactly.
    fn shrunk(&self, vector: impl Iterator<Item = f64>, mut factor: f64) -> Vec<i64> {
        let vector: Vec<f64> = vector.collect();
        let limit = u128::from(self.bound.unsigned_abs()).pow(2);
        let fits = |integers: &[i64]| {
            let add = |sum: u128, q: &i64| {
                let q = u128::from(q.unsigned_abs());
                sum.checked_add(q.checked_mul(q)?)
            };
            integers.iter().try_fold(0, add).is_some_and(|s| s <= limit)
        };
        for _ in 0..64 {
            // Truncation toward zero. NaN becomes 0.
            let integers: Vec<i64> = vector.iter().map(|g| (g * factor) as i64).collect();
            if fits(&integers) {
                return integers;
            }
            factor *= 1.0 - 1e-9;
        }
        // A record that cannot be bounded adds nothing.
        vec![0; vector.len()]
    }
}

/// The factor of a vector whose sum of squares is not a finite number.
fn irregular<I: Iterator<Item = f64>>(bound: f64, vector: impl Fn() -> I) -> f64 {
    let mut largest = 0.0f64;
    for g in vector() {
        if !g.is_finite() {
            return 0.0;
        }
        largest = largest.max(g.abs());
    }
    let scaled: f64 = vector().map(|g| (g / largest) * (g / largest)).sum();
    bound / scaled.sqrt() / largest
}

vectorised! {
    /// The sum of the squares of each record's vector.
    fn squares(gradients: &[f64]) -> [f64; BLOCK] {
        let mut all = [0.0; BLOCK];
        for (start, all) in all.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            let mut squares = [0.0; ROWS];
            for column in gradients.chunks_exact(BLOCK) {
                let column = &column.as_chunks::<ROWS>().0[start];
                for r in 0..ROWS {
                    squares[r] += column[r] * column[r];
                }
            }
            *all = squares;
        }
        all
    }
}

vectorised! {
    /// Sets factors that are 1 to those that make vectors `bound` long, but to `whole` at most;
    /// whether all of these vectors have a finite sum of squares.
    fn find_factors(
        squares: &[f64; BLOCK],
        bound: f64,
        whole: f64,
        factors: &mut [f64; BLOCK],
    ) -> bool {
        let mut is_regular = true;
        for (factor, square) in factors.iter_mut().zip(squares) {
            let kept = bound / square.sqrt();
            let clipped = if kept < whole { kept } else { whole };
            is_regular &= square.is_finite() | (*factor == 0.0);
            *factor = if *factor == 0.0 { 0.0 } else { clipped };
        }
        is_regular
    }
}

/// The integer that a coordinate of a record becomes, truncated toward zero: as a float, and as the
/// bits of the sum with [`ROUNDING`], of which it is the difference from those of this where it is
/// below 2^51.
#[inline(always)]
fn integer(derivative: f64, factor: f64) -> (f64, i64) {
    let product = (derivative * factor).trunc();
    let float = if factor == 0.0 { 0.0 } else { product };
    (float, (float + ROUNDING).to_bits() as i64)
}

vectorised! {
    /// The integers that one coordinate of each record becomes; adds their squares to `lengths`.
    fn find_integers(
        derivatives: &[f64],
        factors: &[f64; BLOCK],
        lengths: &mut [f64; BLOCK],
        integers: &mut [i64; BLOCK],
    ) {
        let derivatives = &derivatives[..BLOCK];
        for r in 0..BLOCK {
            let (float, bits) = integer(derivatives[r], factors[r]);
            lengths[r] += float * float;
            integers[r] = bits.wrapping_sub(ROUNDING.to_bits() as i64);
        }
    }
}

vectorised! {
    /// Sets `totals` to the sums over the records of a block of their integers, gradients times
    /// factors truncated toward zero, in any number of parts; the sums of squares of each record's
    /// integers.
    ///
    /// The totals are right where the sums of squares are at most 2^102.
    fn add_integers(
        gradients: &[f64],
        factors: &[f64; BLOCK],
        totals: &mut [[i64; LANES]],
    ) -> [f64; BLOCK] {
        // That of the bits of `ROUNDING` is known.
        let added = (ROUNDING.to_bits() as i64).wrapping_mul((BLOCK / LANES) as i64);
        totals.fill([added.wrapping_neg(); LANES]);
        let mut all = [0.0; BLOCK];
        let factors = factors.as_chunks::<ROWS>().0;
        for (start, all) in all.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
            let factors = factors[start];
            let mut lengths = [0.0; ROWS];
            for (column, totals) in gradients.chunks_exact(BLOCK).zip(&mut *totals) {
                let column = &column.as_chunks::<ROWS>().0[start];
                let mut sums = *totals;
                for part in 0..ROWS / LANES {
                    for lane in 0..LANES {
                        let r = part * LANES + lane;
                        let (float, bits) = integer(column[r], factors[r]);
                        lengths[r] += float * float;
                        sums[lane] = sums[lane].wrapping_add(bits);
                    }
                }
                *totals = sums;
            }
            *all = lengths;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers_of(scale: &GradientScale, vector: &[f64]) -> Vec<i128> {
        let mut gradients = vec![0.0; vector.len() * BLOCK];
        for (j, &g) in vector.iter().enumerate() {
            gradients[j * BLOCK] = g;
        }
        let mut sum = vec![0; vector.len()];
        let gradients = Gradients::whole(&gradients);
        scale.add_clipped(gradients, &[true], &mut Memory::default(), &mut sum);
        sum
    }

    fn square(v: &[i128]) -> i128 {
        v.iter().map(|q| q * q).sum()
    }

    /// Any vector, however extreme, becomes integers within the bound.
    #[test]
    fn one_record_never_exceeds_the_bound() {
        let ugly = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.3,
            1e-300,
            5e-324,
            1e308,
            -1e308,
            1e200,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1.0 + f64::EPSILON,
            std::f64::consts::FRAC_1_SQRT_2,
            1e16,
        ];
        for tau in [1e-3, 0.5, 31.6, 1e4, 1e9] {
            for clip in [0.05, 1.0, 29.0, 1e-12] {
                let scale = GradientScale::new(clip, 2, tau).unwrap();
                let limit = i128::from(scale.bound()).pow(2);
                for &a in &ugly {
                    for &b in &ugly {
                        for &c in &ugly {
                            let v = integers_of(&scale, &[a * clip, b, c]);
                            assert!(square(&v) <= limit, "{a} {b} {c}");
                        }
                    }
                }
            }
        }
    }

    /// Products of vectors that are orthogonal, or nearly, on lattices from fine to so coarse that
    /// only rounding remains: the worst case of vectors without an obtuse angle.
    #[test]
    fn vectors_that_are_alike_are_never_farther_apart_than_is_counted() {
        let products = |x: &[f64]| -> Vec<f64> {
            let mut list = Vec::new();
            for j in 0..x.len() {
                for k in j..x.len() {
                    let weight = if j == k {
                        1.0
                    } else {
                        std::f64::consts::SQRT_2
                    };
                    list.push(weight * x[j] * x[k]);
                }
            }
            list
        };
        let mut state = 1u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for tau in [1e-2, 5.0, 1e4, 1e8, 3e9] {
            let mut farthest = 0.0f64;
            for d in [1, 2, 3, 10] {
                let scale = GradientScale::alike(0.3, 2, tau, d * (d + 1) / 2).unwrap();
                let most = i128::from(scale.sensitivity());
                for size in [0.1, 0.55, 3.0, 1e100] {
                    for _ in 0..50 {
                        let x: Vec<f64> = (0..d).map(|_| size * uniform()).collect();
                        let mut y: Vec<f64> = (0..d).map(|_| size * uniform()).collect();
                        let dot = |a: &[f64], b: &[f64]| -> f64 {
                            a.iter().zip(b).map(|(a, b)| a * b).sum()
                        };
                        let along = dot(&x, &y) / dot(&x, &x);
                        for (y, x) in y.iter_mut().zip(&x) {
                            *y -= along * x;
                        }
                        let [v, w] = [x, y].map(|z| integers_of(&scale, &products(&z)));
                        let apart: Vec<i128> = v.iter().zip(&w).map(|(v, w)| v - w).collect();
                        assert!(square(&apart) <= most * most, "{tau} {d} {size}");
                        let share = square(&apart) as f64 / (most * most).max(1) as f64;
                        farthest = farthest.max(share);
                    }
                }
            }
            assert!(tau > 1e4 || farthest > 0.999, "{tau} {farthest}");
        }
    }

    /// The charge is that of the mechanism for shorter vectors.
    #[test]
    fn what_is_alike_is_counted_as_shorter_vectors_that_point_anywhere() {
        let alike = GradientScale::alike(2.0, 2, 10.0, 6).unwrap();
        let anywhere = GradientScale::new(2.0 * half_distance(2), 2, 10.0).unwrap();
        assert_eq!(alike.sensitivity(), anywhere.sensitivity());
        assert_eq!(alike.sigma(), anywhere.sigma());
        assert!((alike.sigma() / (800.0f64).sqrt() - 1.0).abs() < 1e-12);
        assert!(half_distance(2) * half_distance(2) >= 0.5);
        let added = GradientScale::alike(2.0, 1, 10.0, 6).unwrap();
        assert_eq!(
            added.sensitivity(),
            GradientScale::new(2.0, 1, 10.0).unwrap().sensitivity()
        );
    }

    /// Clipping keeps the direction and loses less than one lattice step per
    /// coordinate; short vectors are not touched.
    #[test]
    fn clipping_keeps_what_it_may() {
        let scale = GradientScale::new(2.0, 2, 10.0).unwrap();
        let inside = integers_of(&scale, &[1.0, -0.5]);
        assert!((scale.real(inside[0]) - 1.0).abs() < 1e-9);
        assert!((scale.real(inside[1]) + 0.5).abs() < 1e-9);
        for size in [3.0, 1e300] {
            let outside = integers_of(&scale, &[size, -size]);
            let expected = 2.0 / 2f64.sqrt();
            assert!(
                (scale.real(outside[0]) - expected).abs() < 1e-7,
                "{outside:?}"
            );
            assert_eq!(outside[0], -outside[1]);
        }
        assert_eq!(integers_of(&scale, &[f64::NAN, 1.0]), [0, 0]);
        assert_eq!(integers_of(&scale, &[f64::INFINITY, 1.0]), [0, 0]);
    }

    /// The declared sensitivity covers the integer one, in units of sigma.
    #[test]
    fn the_bound_is_rounded_down() {
        for tau in [
            1e-3,
            0.1,
            1.0 / 3.0,
            31.622776601683793,
            173.9252713092609,
            1e10,
        ] {
            let scale = GradientScale::new(0.05, 2, tau).unwrap();
            let units = 2 * i128::from(scale.bound());
            // 2 B / 2^40 <= 1 / tau, in integers scaled by 2^80.
            assert!(
                units as f64 * tau <= SIGMA_UNITS as f64 * (1.0 - f64::EPSILON),
                "{tau}"
            );
        }
        assert!(GradientScale::new(0.0, 2, 1.0).is_err());
        assert!(GradientScale::new(1.0, 2, f64::NAN).is_err());
    }
}

//! Axes in which noisy information, with the prior's, is the identity, and the part of it that is
//! claimed.
//!
//! Where records see groups of coordinates ([`Blocks`]), the information is shaped like an arrow: it is
//! zero between groups, so that noise there can be left out. The axes are those of block elimination,
//! which begins with the groups. What is left for the shared coordinates is C = S - sum_g B_g' D_g^-1 B_g;
//! the noise in B makes the sum too large by a known amount, which is added. So C is far better known
//! than the B_g by themselves, which are shrunk towards zero by the estimate of James and Stein (1961).

use super::form::blocks::Blocks;
use crate::linear::Matrix;
use crate::sampler::laplace::reach::Lost;

/// Where all of the information is lost in its noise, this share of the noise takes its place, since
/// axes would be infinite.
const LOST: f64 = 0.1;
/// Information is not claimed where all of it could be noise: nothing where its mean eigenvalue is the
/// first value times the largest of its noise (the positive eigenvalues of noise alone give about
/// 0.4), all of it from the second value on.
const KNOWN: [f64; 2] = [0.5, 1.0];
/// The standard deviation of the error of an observed slope, over the largest eigenvalue of the noise in the
/// information: in m directions with this largest eigenvalue, 2 s sqrt(m), noise with the sd s in each entry moves
/// a slope by s sqrt(m) sds of the centre's error.
const OF_SPREAD: f64 = 0.5;
/// The least share of the information that noise has set which is expected to be there.
const LEAST_EXPECTED: f64 = 0.1;
/// The least information in axes in which it was 1, as far as was known, and the share of the information
/// about a shared coordinate that is assumed to lie between groups where this is not seen.
const LEAST: f64 = 0.05;
const BETWEEN: f64 = 0.3;

/// New axes, v = `inner` v', and what is known in them.
pub(super) struct Axes {
    pub inner: Matrix,
    /// The inverse of `inner`.
    pub outer: Matrix,
    /// The records' information that is claimed in each direction.
    pub claims: Vec<f64>,
    /// The share of directions whose information its noise could have made.
    pub unknown: f64,
    /// The mean square of the noise, as a share of the information and at most 1, for each direction.
    pub doubtful: Vec<f64>,
    /// The standard deviation of the information that is 1 in these axes, for each direction; 0 for groups,
    /// which would seem more alike.
    pub errors: Vec<f64>,
    /// Whether noise hides the information in each direction.
    pub hidden: Vec<bool>,
    /// The information that is expected in each direction, the prior's included: less than 1 where noise has set the axes.
    pub expected: Vec<f64>,
}

/// Directions with a common noise.
struct Part {
    values: Vec<f64>,
    /// The approximate largest eigenvalue of the noise in which each direction is.
    spreads: Vec<f64>,
    /// The information of the axes, prior included.
    kept: Vec<f64>,
    /// The standard deviations of these.
    errors: Vec<f64>,
    /// The shares of `kept` that are expected to be there.
    expected: Vec<f64>,
    /// Whether they are known together, as those of groups are.
    alike: bool,
}

impl Part {
    /// Clipping makes values less by the factors `lost` if records are like simulated ones; there is at least as much
    /// information as `least`.
    fn new(values: Vec<f64>, spreads: Vec<f64>, lost: &[f64], least: &[f64]) -> Part {
        let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let kept: Vec<f64> = (values.iter().zip(&spreads).zip(lost).zip(least))
            .map(|(((e, spread), lost), least)| {
                let floor = spread.min(largest.max(LOST * spread));
                // Information that clipping may have taken away is not seen to be less than it was.
                let unclipped = lost * e + (lost - 1.0) * spread;
                e.max(floor)
                    .max(1e-12 * largest)
                    .max(unclipped.min(1.0))
                    .max(*least)
            })
            .collect();
        let errors = (values.iter().zip(&spreads).zip(&kept))
            .map(|((e, spread), kept)| (OF_SPREAD * spread).max(kept - e.max(*spread)).min(*kept));
        let errors = errors.collect();
        Part {
            expected: expected_shares(&values, &spreads, lost, &kept),
            errors,
            values,
            spreads,
            kept,
            alike: false,
        }
    }

    /// The same where information is believed to be `expected` with this variance, and is seen with errors of
    /// the standard deviations `sds`.
    fn near(
        [expected, variance]: [f64; 2],
        sds: &[f64],
        values: Vec<f64>,
        spreads: Vec<f64>,
    ) -> Part {
        let told: Vec<f64> = (sds.iter())
            .map(|sd| variance / (variance + sd * sd).max(f64::MIN_POSITIVE))
            .collect();
        // Less information than its noise is not seen to be less.
        let kept = (values.iter().zip(&told).zip(sds))
            .map(|((e, told), sd)| (told * e + (1.0 - told) * expected).max(sd.clamp(LEAST, 1.0)))
            .collect();
        let errors = sds.iter().zip(told);
        Part {
            errors: errors.map(|(sd, told)| told.sqrt() * sd).collect(),
            values,
            spreads,
            expected: vec![1.0; sds.len()],
            kept,
            alike: false,
        }
    }

    /// The claims, given the prior's curvature in the new axes.
    fn claims(&self, prior: &[f64]) -> (Vec<f64>, f64) {
        let told: Vec<f64> = (self.values.iter().zip(&self.kept).zip(prior.iter()))
            .map(|((e, kept), prior)| (e - kept * prior).max(0.0))
            .collect();
        let of_noise = |(told, spread): (&f64, &f64)| told / spread.max(f64::MIN_POSITIVE);
        // The largest eigenvalues are those to which the noise has added.
        let shares = told.iter().zip(&self.spreads).map(of_noise);
        let mean = shares.sum::<f64>() / told.len().max(1) as f64;
        let known = ((mean - KNOWN[0]) / (KNOWN[1] - KNOWN[0])).clamp(0.0, 1.0);
        if self.alike {
            // To claim less would be to believe in more noise, and so in groups that are more alike.
            let share = |(told, kept): (&f64, &f64)| known * (told / kept).min(1.0);
            let told: Vec<f64> = (self.kept.iter().zip(prior))
                .map(|(e, p)| (e - e * p).max(0.0))
                .collect();
            let claims = told.iter().zip(&self.kept).map(share).collect();
            return (claims, (1.0 - known) * told.len() as f64);
        }
        let claims = (told.iter().zip(&self.spreads).zip(&self.kept))
            .map(|((told, spread), kept)| {
                let noise = spread.max(f64::MIN_POSITIVE);
                known * told * told / (told.max(noise) + noise) / kept
            })
            .collect();
        let unknown = told.iter().zip(&self.spreads).filter(|(t, s)| t < s);
        (claims, unknown.count() as f64)
    }

    /// Whether noise hides the information in direction k.
    fn is_hidden(&self, k: usize) -> bool {
        self.values[k] < self.spreads[k]
    }

    fn doubt(&self) -> f64 {
        let share = |(e, spread): (&f64, &f64)| (spread / e.max(f64::MIN_POSITIVE)).min(1.0);
        let shares = self.values.iter().zip(&self.spreads).map(share);
        shares.map(|x| x * x).sum::<f64>() / self.values.len().max(1) as f64
    }
}

impl Axes {
    /// From information with noise of which the largest eigenvalue is about `spread`, and the prior's
    /// curvature. `least`: the sum of both, or more where more is believed to be there; none of that is claimed.
    pub fn of(
        information: &Matrix,
        spread: f64,
        prior: &Matrix,
        least: &Matrix,
        lost: Option<&Lost>,
    ) -> Axes {
        let (least, vectors) = least.eigen();
        let m = least.len();
        let direction = |j: usize| (0..m).map(|i| vectors[(i, j)]).collect::<Vec<f64>>();
        let whole = information + prior;
        let values = (0..m).map(|j| whole.form(&direction(j))).collect();
        let factors: Vec<f64> = (0..m)
            .map(|j| lost.map_or(1.0, |lost| lost.factor(&direction(j))))
            .collect();
        let part = Part::new(values, vec![spread; m], &factors, &least);
        let roots: Vec<f64> = part.kept.iter().map(|e| e.sqrt()).collect();
        let inner = Matrix::new(m, m, |i, j| vectors[(i, j)] / roots[j]);
        let outer = Matrix::new(m, m, |i, j| vectors[(j, i)] * roots[i]);
        let order: Vec<usize> = (0..m).collect();
        Axes::new((inner, outer), prior, &[(part, order)])
    }

    /// The same where records see groups of coordinates, in axes with the weights of [`Blocks::weights`];
    /// the noise in an entry on the diagonal has the standard deviation `sd` times the factor of its coordinate,
    /// and less by a root of 2 in others.
    pub fn of_blocks(
        information: &Matrix,
        (sd, factors): (f64, &[f64]),
        prior: &Matrix,
        blocks: &Blocks,
    ) -> Axes {
        let m = information.rows();
        let weights = blocks.weights();
        let back = Matrix::diagonal(&weights.iter().map(|w| w.recip()).collect::<Vec<_>>());
        let prior = &prior.between(&back);
        let shared = &blocks.shared;
        let (g, q) = (m - shared.len(), shared.len());
        // Groups come first, as in the elimination.
        let order: Vec<usize> = blocks
            .groups
            .iter()
            .flatten()
            .chain(shared)
            .copied()
            .collect();
        let whole = blocks.of_arrow(&(&information.between(&back) + prior));
        let part = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            let (i0, j0) = (rows.start, columns.start);
            Matrix::new(rows.len(), columns.len(), |i, j| {
                whole[(order[i0 + i], order[j0 + j])]
            })
        };
        let of_group = weights[order[0]].recip();
        let of_shared = (shared.first()).map_or(1.0, |&j| weights[j].recip());
        let sd_between = sd * of_group * of_shared;
        let [sd, sd_shared] = [of_group, of_shared].map(|by| sd * by * by);

        // D, the groups' own information, and its roots.
        let (mut values, mut spreads) = (Vec::new(), Vec::new());
        let sds: Vec<f64> = order[..g].iter().map(|&j| sd * factors[j]).collect();
        let mut vectors = Matrix::new(g, g, |_, _| 0.0);
        let mut first = 0;
        for group in &blocks.groups {
            let end = first + group.len();
            let (own, turns) = part(first..end, first..end).eigen();
            values.extend(own);
            let root = (2.0 * group.len() as f64).sqrt();
            spreads.extend(sds[first..end].iter().map(|sd| sd * root));
            for i in 0..group.len() {
                for j in 0..group.len() {
                    vectors[(first + i, first + j)] = turns[(i, j)];
                }
            }
            first = end;
        }
        let precisions: Vec<f64> = order[..g].iter().map(|&j| factors[j].powi(-2)).collect();
        let average = |x: &mut dyn Iterator<Item = f64>| {
            let sum: f64 = x.zip(&precisions).map(|(x, weight)| weight * x).sum();
            sum / precisions.iter().sum::<f64>()
        };
        let mean = average(&mut values.iter().copied());
        let excess = |(e, sd): (&f64, &f64)| (e - mean).powi(2) - sd * sd;
        let variance = average(&mut values.iter().zip(&sds).map(excess)).max(0.0);
        let groups = Part {
            alike: true,
            errors: vec![0.0; g],
            ..Part::near([mean, variance], &sds, values, spreads)
        };
        let power = |p: f64| {
            let powers: Vec<f64> = groups.kept.iter().map(|e| e.powf(p)).collect();
            Matrix::diagonal(&powers).between(&vectors.transposed())
        };
        let [own, root, back_root] = [1.0, 0.5, -0.5].map(power);

        // The border B. What all groups have in common of it, as where columns are not centred, is
        // known far better than the rest.
        let border = part(0..g, g..m);
        let common = common_border(blocks, &own, &border);
        let mut rest = &back_root * &(&border - &(&own * &common));
        // The mean square of the noise in each row, and in a square of all without its mean.
        let noise: Vec<f64> = (0..g)
            .map(|i| {
                let squares = (0..g).map(|j| (back_root[(i, j)] * factors[order[j]]).powi(2));
                0.5 * sd_between.powi(2) * squares.sum::<f64>()
            })
            .collect();
        let of_square: f64 = noise.iter().sum();
        let in_square: f64 = noise.iter().map(|v| 2.0 * v * v).sum();
        let told = 1.0 / (1.0 + in_square / BETWEEN.powi(2));
        let square = &rest.transposed() * &rest;
        let between = &square - &Matrix::identity(q).scaled(of_square);
        let left = &(&part(g..m, g..m) - &own.between(&common)) - &between.scaled(told);
        let unseen = told * told * in_square + ((1.0 - told) * BETWEEN).powi(2);
        let spread = (2.0 * q as f64 * sd_shared.powi(2) + unseen).sqrt();
        let (values, turns) = left.eigen();
        let error = (sd_shared.powi(2) + unseen).sqrt();
        let last = Part::near([1.0; 2], &vec![error; q], values, vec![spread; q]);
        for j in 0..q {
            let trusted = (1.0 - of_square / square[(j, j)].max(f64::MIN_POSITIVE)).max(0.0);
            for i in 0..g {
                rest[(i, j)] *= trusted;
            }
        }
        let border = &(&root * &common) + &rest;

        let roots: Vec<f64> = last.kept.iter().map(|e| e.sqrt()).collect();
        let of_last = Matrix::new(q, q, |i, j| turns[(i, j)] / roots[j]);
        let back_of_last = Matrix::new(q, q, |i, j| turns[(j, i)] * roots[i]);
        let moved = &(&back_root * &border) * &of_last;
        let inner = Matrix::new(m, m, |i, j| match (i < g, j < g) {
            (true, true) => back_root[(i, j)],
            (true, false) => -moved[(i, j - g)],
            (false, true) => 0.0,
            (false, false) => of_last[(i - g, j - g)],
        });
        let outer = Matrix::new(m, m, |i, j| match (i < g, j < g) {
            (true, true) => root[(i, j)],
            (true, false) => border[(i, j - g)],
            (false, true) => 0.0,
            (false, false) => back_of_last[(i - g, j - g)],
        });
        // Axes have the places of the coordinates that they take over from.
        let mut place = vec![0; m];
        for (k, &j) in order.iter().enumerate() {
            place[j] = k;
        }
        let [inner, outer] =
            [inner, outer].map(|a| Matrix::new(m, m, |i, j| a[(place[i], place[j])]));
        let parts = [(groups, order[..g].to_vec()), (last, shared.clone())];
        let mut axes = Axes::new((inner, outer), prior, &parts);
        let weighted = |a: &Matrix| &(&back * a) * &Matrix::diagonal(&weights);
        axes.inner = weighted(&axes.inner);
        axes.outer = weighted(&axes.outer);
        for (claim, weight) in axes.claims.iter_mut().zip(&weights) {
            *claim *= weight * weight;
        }
        axes
    }

    /// From new axes, and the parts with the places of their directions.
    fn new((inner, outer): (Matrix, Matrix), prior: &Matrix, parts: &[(Part, Vec<usize>)]) -> Axes {
        let m = inner.rows();
        let prior = prior.between(&inner);
        let mut all = vec![0.0; m];
        let mut unknown = 0.0;
        let mut doubtful = vec![0.0; m];
        let mut errors = vec![0.0; m];
        let mut hidden = vec![false; m];
        let mut expected = vec![1.0; m];
        for (part, places) in parts {
            let (claims, count) =
                part.claims(&places.iter().map(|&j| prior[(j, j)]).collect::<Vec<_>>());
            let doubt = part.doubt();
            for (k, &j) in places.iter().enumerate() {
                all[j] = claims[k];
                doubtful[j] = doubt;
                errors[j] = part.errors[k] / part.kept[k];
                hidden[j] = part.is_hidden(k);
                expected[j] = part.expected[k].max(prior[(j, j)].min(1.0));
            }
            unknown += count;
        }
        Axes {
            inner,
            outer,
            claims: all,
            unknown: unknown / m.max(1) as f64,
            doubtful,
            errors,
            hidden,
            expected,
        }
    }
}

/// The shares of the information `kept` that are expected to be there. Where noise hides it, as eigenvalues of noise
/// alone are below its `spreads` and have half of that as their standard deviation, this is the estimate of James
/// and Stein (1961), which is close to the mean of all hidden directions: noise hides that the least.
fn expected_shares(values: &[f64], spreads: &[f64], lost: &[f64], kept: &[f64]) -> Vec<f64> {
    let is_hidden = |j: &usize| values[*j] < spreads[*j];
    let hidden: Vec<usize> = (0..values.len()).filter(is_hidden).collect();
    let average = |value: &dyn Fn(usize) -> f64| {
        hidden.iter().map(|&j| value(j)).sum::<f64>() / hidden.len().max(1) as f64
    };
    let mean = average(&|j| values[j]);
    let square = average(&|j| (values[j] - mean).powi(2));
    let noise = average(&|j| (0.5 * spreads[j]).powi(2));
    let told = (1.0 - noise / square.max(f64::MIN_POSITIVE)).max(0.0);
    let mut shares = vec![1.0; values.len()];
    for j in hidden {
        let unclipped = lost[j] * (mean + told * (values[j] - mean));
        shares[j] = (unclipped / kept[j]).clamp(LEAST_EXPECTED, 1.0);
    }
    shares
}

/// The C of B = D C by least squares, where it is the same in all groups: its rows are repeated for each.
/// Zero where groups differ in size.
fn common_border(blocks: &Blocks, own: &Matrix, border: &Matrix) -> Matrix {
    let (g, q) = (border.rows(), border.columns());
    let size = blocks.groups[0].len();
    if blocks.groups.iter().any(|group| group.len() != size) {
        return Matrix::new(g, q, |_, _| 0.0);
    }
    let groups = Matrix::new(g, size, |i, j| f64::from(u8::from(i % size == j)));
    let common = &own.between(&groups).inverse() * &(&groups.transposed() * border);
    &groups * &common
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn blocks() -> Blocks {
        Blocks {
            shared: vec![0, 4],
            groups: (0..12)
                .map(|g| if g < 3 { vec![1 + g] } else { vec![2 + g] })
                .collect(),
        }
    }

    /// Information of 14 coordinates in the form of an arrow.
    fn arrow() -> Matrix {
        let mut found = Matrix::identity(14);
        for i in 0..14 {
            found[(i, i)] = 1.0 + 0.1 * i as f64;
            for j in [0, 4] {
                if i != j {
                    let x = 0.15 * ((i * 7 + j) % 5) as f64 - 0.2;
                    found[(i, j)] = x;
                    found[(j, i)] = x;
                }
            }
        }
        found
    }

    // If it failed: the noise in what groups and shared coordinates have in common would be mistaken for
    // information, or for a loss of it.
    #[test]
    fn noise_between_groups_and_the_rest_is_left_out() {
        let groups = 60;
        let blocks = Blocks {
            shared: vec![groups, groups + 1],
            groups: (0..groups).map(|j| vec![j]).collect(),
        };
        let weights = blocks.weights();
        let units = Matrix::diagonal(&weights);
        let m = groups + 2;
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let mut noise = Matrix::new(m, m, |_, _| 0.0);
        let sd = 0.2;
        for i in 0..m {
            for j in 0..=i {
                let normal: f64 = StandardNormal.sample(rng);
                let by = if i == j { sd } else { sd * 0.5f64.sqrt() };
                noise[(i, j)] = by * normal;
                noise[(j, i)] = by * normal;
            }
        }
        let truth = Matrix::identity(m).between(&units);
        let none = Matrix::new(m, m, |_, _| 0.0);
        let axes = Axes::of_blocks(&(&truth + &noise), (sd, &vec![1.0; m]), &none, &blocks);
        // The truth in the new axes should be that of the old ones.
        let whole = truth.between(&axes.inner);
        for (j, w) in weights.iter().enumerate() {
            let ratio = whole[(j, j)] / (w * w);
            assert!((0.5..2.0).contains(&ratio), "{j}: {ratio}");
            assert!(axes.claims[j] < 1.6 * w * w, "{j}: {:?}", axes.claims);
        }
    }

    // Oracle: the root mean square of E v, where v are deviates and E is the noise. Bounds are five standard errors of
    // a mean square of 20 x 400 terms, about .08 of it, and what a largest eigenvalue differs from its approximation.
    // If it failed: gradients would be trusted that noise in the information makes worthless.
    #[test]
    fn slopes_are_as_inexact_as_the_information() {
        let (m, sd) = (20, 0.05);
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let none = Matrix::new(m, m, |_, _| 0.0);
        let spread = sd * (2.0 * m as f64).sqrt();
        let axes = Axes::of(
            &Matrix::identity(m),
            spread,
            &none,
            &Matrix::identity(m),
            None,
        );
        let mut square = 0.0;
        for _ in 0..400 {
            let mut noise = Matrix::new(m, m, |_, _| 0.0);
            for i in 0..m {
                for j in 0..=i {
                    let normal: f64 = StandardNormal.sample(rng);
                    let entry = if i == j { sd } else { sd * 0.5f64.sqrt() } * normal;
                    noise[(i, j)] = entry;
                    noise[(j, i)] = entry;
                }
            }
            let v: Vec<f64> = (0..m).map(|_| StandardNormal.sample(rng)).collect();
            square += noise.times(&v).iter().map(|x| x * x).sum::<f64>() / (400 * m) as f64;
        }
        for error in axes.errors {
            assert!(
                (error / square.sqrt() - 1.0).abs() < 0.1,
                "{error} {square}"
            );
        }
        // Where nothing is seen, any part of what is assumed may be there.
        let hidden = Axes::of(&none, 1.0, &none, &none, None);
        assert!(hidden.errors.iter().all(|error| *error == 1.0));
    }

    // Oracle, by hand: the hidden values have the mean 0.1 and the variance 0.365, of which the noise is 0.25. If it
    // failed: the search would be sure of more with each round in which nothing but noise was seen.
    #[test]
    fn what_noise_hides_is_not_expected_to_be_as_large_as_the_noise() {
        let shares = |values: &[f64]| {
            let information = Matrix::diagonal(values);
            let prior = Matrix::identity(values.len()).scaled(1e-9);
            let mut shares =
                Axes::of(&information, 1.0, &prior, &(&information + &prior), None).expected;
            shares.sort_by(f64::total_cmp);
            shares
        };
        let alike = shares(&[10.0, 0.3, 0.1, -0.1, 0.1]);
        assert!(
            alike[..4].iter().all(|x| (x - 0.1).abs() < 1e-6),
            "{alike:?}"
        );
        assert_eq!(alike[4], 1.0);
        let apart = shares(&[10.0, 0.9, -0.7, 0.4, -0.2]);
        let told = 1.0 - 0.25 / 0.365;
        assert!((apart[3] - (0.1 + 0.8 * told)).abs() < 1e-6, "{apart:?}");
        assert!(apart[..2].iter().all(|&x| x == LEAST_EXPECTED), "{apart:?}");
    }

    // If it failed: where noise makes the information negative, records would be expected to have less than none.
    #[test]
    fn no_less_is_expected_than_the_prior_has() {
        let information = Matrix::diagonal(&[10.0, -0.4, -0.5]);
        let prior = Matrix::identity(3).scaled(0.5);
        let axes = Axes::of(&information, 1.0, &prior, &(&information + &prior), None);
        let prior = prior.between(&axes.inner);
        let hidden = (0..3).filter(|&j| prior[(j, j)] > 0.1);
        assert_eq!(hidden.clone().count(), 2);
        for j in hidden {
            assert!(
                (axes.expected[j] - prior[(j, j)]).abs() < 1e-9,
                "{:?}",
                axes.expected
            );
        }
    }

    // Groups 0 to 8 have the information that they are thought to have, and of the last nothing is seen, with so
    // much noise that it could have as much. If it failed: its axis would become longer with each round, until all of
    // its records were clipped.
    #[test]
    fn an_axis_is_not_longer_where_noise_hides_the_information() {
        let groups = 10;
        let blocks = Blocks {
            shared: vec![groups],
            groups: (0..groups).map(|j| vec![j]).collect(),
        };
        let weights = blocks.weights();
        let units = Matrix::diagonal(&weights);
        let mut seen = Matrix::identity(groups + 1);
        seen[(9, 9)] = 0.0;
        let mut factors = vec![1.0; groups + 1];
        let none = Matrix::new(groups + 1, groups + 1, |_, _| 0.0);
        let longest = |factors: &[f64]| {
            let axes = Axes::of_blocks(&seen.between(&units), (0.1, factors), &none, &blocks);
            axes.inner[(9, 9)]
        };
        assert!(longest(&factors) > 2.0, "{}", longest(&factors));
        factors[9] = 20.0;
        assert!(
            (longest(&factors) - 1.0).abs() < 0.02,
            "{}",
            longest(&factors)
        );
    }

    #[test]
    fn without_noise_the_axes_are_exact() {
        let prior = Matrix::diagonal(&[0.05; 14]);
        let axes = Axes::of_blocks(&arrow(), (1e-9, &[1.0; 14]), &prior, &blocks());
        let weights = blocks().weights();
        let whole = (&arrow() + &prior).between(&axes.inner);
        let one = &axes.inner * &axes.outer;
        for i in 0..14 {
            for j in 0..14 {
                let expected = f64::from(u8::from(i == j));
                let square = expected * weights[i] * weights[j];
                assert!((whole[(i, j)] - square).abs() < 1e-6, "{i} {j}: {whole:?}");
                assert!((one[(i, j)] - expected).abs() < 1e-9, "{i} {j}: {one:?}");
            }
            let told = weights[i].powi(2) - prior.between(&axes.inner)[(i, i)];
            assert!(
                (axes.claims[i] - told).abs() < 1e-6,
                "{i}: {:?}",
                axes.claims
            );
        }
        assert_eq!(axes.unknown, 0.0);
    }
}

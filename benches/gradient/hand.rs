//! The sums of the benchmark as one would write them by hand for one model: rows held together, a
//! single pass, no memory but the sum. Compiled for the same instruction sets as the library.
//!
//! `axes`, by rows, are those of the frame; none for the parameters' own coordinates. Results are
//! the sum over the coordinates.

use crate::Case;

macro_rules! for_the_same_processors {
    ($($function:tt)*) => {
        #[multiversion::multiversion(targets(
            "x86_64+avx512f+avx512bw+avx512dq+avx512vl",
            "x86_64+avx2",
        ))]
        $($function)*
    };
}

/// Adds a record's gradient, clipped.
#[inline(always)]
fn add(gradient: &[f64], axes: Option<&[f64]>, clip: f64, pulled: &mut [f64], sum: &mut [f64]) {
    let gradient = match axes {
        None => gradient,
        Some(axes) => {
            pulled.fill(0.0);
            for (g, row) in gradient.iter().zip(axes.chunks_exact(pulled.len())) {
                for (p, a) in pulled.iter_mut().zip(row) {
                    *p += g * a;
                }
            }
            pulled
        }
    };
    let square: f64 = gradient.iter().map(|g| g * g).sum();
    let factor = if square > clip * clip {
        clip / square.sqrt()
    } else {
        1.0
    };
    for (s, g) in sum.iter_mut().zip(gradient) {
        *s += factor * g;
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A generalised linear model: the residual of each record, by its linear predictor and row.
#[inline(always)]
fn linear(case: &Case, axes: Option<&[f64]>, residual: impl Fn(f64, f64, &[f64]) -> f64) -> f64 {
    let d = case.theta.len();
    let length = case.rows.len() / case.outcomes.len();
    let (mut sum, mut gradient, mut pulled) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
    for (row, &y) in case.rows.chunks_exact(length).zip(&case.outcomes) {
        let x = &row[..d];
        let r = residual(dot(x, &case.theta), y, row);
        if axes.is_none() {
            let norm = r.abs() * dot(x, x).sqrt();
            let factor = if norm > case.clip {
                r * case.clip / norm
            } else {
                r
            };
            for (s, x) in sum.iter_mut().zip(x) {
                *s += factor * x;
            }
            continue;
        }
        for (g, x) in gradient.iter_mut().zip(x) {
            *g = r * x;
        }
        add(&gradient, axes, case.clip, &mut pulled, &mut sum);
    }
    sum.iter().sum()
}

for_the_same_processors! {
    pub fn logistic(case: &Case, axes: Option<&[f64]>) -> f64 {
        linear(case, axes, |eta, y, _| y - 1.0 / (1.0 + (-eta).exp()))
    }
}

for_the_same_processors! {
    pub fn poisson(case: &Case, axes: Option<&[f64]>) -> f64 {
        linear(case, axes, |eta, y, row| y - (row[10] + eta).exp())
    }
}

for_the_same_processors! {
    pub fn student(case: &Case, axes: Option<&[f64]>) -> f64 {
        let d = case.theta.len();
        let (mut sum, mut gradient, mut pulled) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        let (sigma, nu) = (case.theta[10].exp(), case.theta[11].exp());
        // d/dnu of what depends on nu alone, by differences.
        let alone = |nu: f64| {
            libm::lgamma(0.5 * (nu + 1.0)) - libm::lgamma(0.5 * nu) - 0.5 * nu.ln()
        };
        let of_nu = (alone(nu + 1e-5) - alone(nu - 1e-5)) / 2e-5;
        for (x, &y) in case.rows.chunks_exact(10).zip(&case.outcomes) {
            let z = (y - dot(x, &case.theta[..10])) / sigma;
            let weight = (nu + 1.0) / (nu + z * z);
            let r = weight * z / sigma;
            for (g, x) in gradient.iter_mut().zip(x) {
                *g = r * x;
            }
            gradient[10] = weight * z * z - 1.0;
            let share = z * z / nu;
            gradient[11] = nu * (of_nu - 0.5 * share.ln_1p() + 0.5 * weight * share);
            add(&gradient, axes, case.clip, &mut pulled, &mut sum);
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    pub fn ordered(case: &Case, axes: Option<&[f64]>) -> f64 {
        let d = case.theta.len();
        let (mut sum, mut gradient, mut pulled) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        let mut cut = [0.0; 6];
        let mut step = [1.0; 4];
        (cut[0], cut[1], cut[5]) = (f64::NEG_INFINITY, case.theta[10], f64::INFINITY);
        for k in 1..4 {
            step[k] = case.theta[10 + k].exp();
            cut[k + 1] = cut[k] + step[k];
        }
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        for (x, &y) in case.rows.chunks_exact(10).zip(&case.outcomes) {
            let y = y as usize;
            let eta = dot(x, &case.theta[..10]);
            // p = F(high) - F(low), and the slopes of its logarithm.
            let (low, high) = (logistic(cut[y - 1] - eta), logistic(cut[y] - eta));
            let p = high - low;
            let (by_low, by_high) = (-low * (1.0 - low) / p, high * (1.0 - high) / p);
            for (g, x) in gradient.iter_mut().zip(x) {
                *g = -(by_low + by_high) * x;
            }
            for k in 0..4 {
                let slope = |cut: usize| f64::from(u8::from(cut > k));
                gradient[10 + k] = step[k] * (slope(y - 1) * by_low + slope(y) * by_high);
            }
            // An outer cut point does not exist.
            if y == 5 {
                for k in 0..4 {
                    gradient[10 + k] = step[k] * by_low;
                }
            }
            add(&gradient, axes, case.clip, &mut pulled, &mut sum);
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    pub fn softmax(case: &Case, axes: Option<&[f64]>) -> f64 {
        let d = case.theta.len();
        let (mut sum, mut gradient, mut pulled) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        for (x, &y) in case.rows.chunks_exact(10).zip(&case.outcomes) {
            // beta is held column by column.
            let mut eta = [0.0; 5];
            for (x, column) in x.iter().zip(case.theta.chunks_exact(5)) {
                for (eta, b) in eta.iter_mut().zip(column) {
                    *eta += x * b;
                }
            }
            let peak = eta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mass = eta.map(|e| (e - peak).exp());
            let total: f64 = mass.iter().sum();
            let mut residual = mass.map(|m| -m / total);
            residual[y as usize - 1] += 1.0;
            for (x, gradient) in x.iter().zip(gradient.chunks_exact_mut(5)) {
                for (g, r) in gradient.iter_mut().zip(&residual) {
                    *g = r * x;
                }
            }
            add(&gradient, axes, case.clip, &mut pulled, &mut sum);
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    pub fn groups(case: &Case, axes: Option<&[f64]>) -> f64 {
        let d = case.theta.len();
        let (mu, tau, sigma) = (case.theta[0], case.theta[1].exp(), case.theta[87].exp());
        let z = &case.theta[2..87];
        let mut sum = vec![0.0; d];
        // The rows of the Jacobian of the places in the frame, for all records of a group, and of
        // the scale.
        let pulled = |at: [(usize, f64); 3]| -> Vec<f64> {
            let axes = axes.unwrap_or_default();
            (0..d).map(|j| at.iter().map(|&(i, w)| w * axes[i * d + j]).sum()).collect()
        };
        let of_groups: Vec<Vec<f64>> = match axes {
            None => Vec::new(),
            Some(_) => (0..85).map(|g| pulled([(0, 1.0), (1, tau * z[g]), (2 + g, tau)])).collect(),
        };
        let of_scale = match axes {
            None => Vec::new(),
            Some(_) => pulled([(87, 1.0), (0, 0.0), (0, 0.0)]),
        };
        let mut gradient = vec![0.0; d];
        for (&group, &y) in case.rows.iter().zip(&case.outcomes) {
            let g = group as usize - 1;
            let off = (y - mu - tau * z[g]) / sigma;
            let r = off / sigma;
            let s = off * off - 1.0;
            if axes.is_none() {
                let own = [r, r * tau * z[g], r * tau, s];
                let square: f64 = own.iter().map(|x| x * x).sum();
                let clip = case.clip;
                let factor = if square > clip * clip { clip / square.sqrt() } else { 1.0 };
                for (i, x) in [0, 1, 2 + g, 87].into_iter().zip(own) {
                    sum[i] += factor * x;
                }
                continue;
            }
            for ((out, a), b) in gradient.iter_mut().zip(&of_groups[g]).zip(&of_scale) {
                *out = r * a + s * b;
            }
            add(&gradient, None, case.clip, &mut [], &mut sum);
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    pub fn banana(case: &Case, axes: Option<&[f64]>) -> f64 {
        let mut sum = [0.0; 2];
        let (v1, v2) = (44.7 * 44.7, 2500.0);
        let theta = [case.theta[0], case.theta[1]];
        let bend = theta[1] + 20.0 * theta[0] * theta[0];
        let mut pulled = [0.0; 2];
        for (x1, x2) in case.rows.iter().zip(&case.outcomes) {
            let second = (x2 - bend) / v2;
            let first = (x1 - theta[0]) / v1 + second * 40.0 * theta[0];
            add(&[first, second], axes, case.clip, &mut pulled, &mut sum);
        }
        sum[0] + sum[1]
    }
}

for_the_same_processors! {
    /// p (1 - p) z z' of each record, z = A' x, as a triangle with sqrt(2) times what is off the
    /// diagonal, clipped.
    pub fn information(case: &Case, axes: Option<&[f64]>) -> f64 {
        let axes = axes.unwrap_or_default();
        let d = case.theta.len();
        let mut sum = vec![0.0; d * (d + 1) / 2];
        let mut z = vec![0.0; d];
        for x in case.rows.chunks_exact(d) {
            let p = 1.0 / (1.0 + (-dot(x, &case.theta)).exp());
            z.fill(0.0);
            for (x, row) in x.iter().zip(axes.chunks_exact(d)) {
                for (z, a) in z.iter_mut().zip(row) {
                    *z += x * a;
                }
            }
            let weight = p * (1.0 - p);
            let length = weight * dot(&z, &z);
            let weight = if length > case.clip { weight * case.clip / length } else { weight };
            let mut at = 0;
            for j in 0..d {
                let own = weight * z[j];
                sum[at] += own * z[j];
                for (s, z) in sum[at + 1..].iter_mut().zip(&z[j + 1..]) {
                    *s += std::f64::consts::SQRT_2 * own * z;
                }
                at += d - j;
            }
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    /// v v' + w w' of each record, where v is of the mean and w of the scale, likewise.
    pub fn group_information(case: &Case, axes: Option<&[f64]>) -> f64 {
        let d = case.theta.len();
        let (tau, sigma) = (case.theta[1].exp(), case.theta[d - 1].exp());
        let mut sum = vec![0.0; d * (d + 1) / 2];
        let place = |j: usize, k: usize| j * (2 * d - j + 1) / 2 + k - j;
        let weight = |j: usize, k: usize| if j == k { 1.0 } else { std::f64::consts::SQRT_2 };
        let mean_gradient = |group: f64| {
            let g = group as usize + 1;
            let v = [1.0 / sigma, tau * case.theta[g] / sigma, tau / sigma];
            ([0, 1, g], v)
        };
        let w = std::f64::consts::SQRT_2;
        let length = |vv: f64, vw: f64, ww: f64| (vv * vv + 2.0 * vw * vw + ww * ww).sqrt();
        let Some(axes) = axes else {
            for &group in &case.rows {
                let (at, v) = mean_gradient(group);
                let length = length(dot(&v, &v), 0.0, w * w);
                let factor = if length > case.clip { case.clip / length } else { 1.0 };
                for j in 0..3 {
                    for k in j..3 {
                        sum[place(at[j], at[k])] += factor * weight(j, k) * v[j] * v[k];
                    }
                }
                sum[place(d - 1, d - 1)] += factor * w * w;
            }
            return sum.iter().sum();
        };
        let (mut v, mut of_scale) = (vec![0.0; d], vec![0.0; d]);
        for (s, a) in of_scale.iter_mut().zip(&axes[(d - 1) * d..]) {
            *s = w * a;
        }
        for &group in &case.rows {
            let (at, entries) = mean_gradient(group);
            v.fill(0.0);
            for (x, j) in entries.into_iter().zip(at) {
                for (v, a) in v.iter_mut().zip(&axes[j * d..]) {
                    *v += x * a;
                }
            }
            let length = length(dot(&v, &v), dot(&v, &of_scale), dot(&of_scale, &of_scale));
            let factor = if length > case.clip { case.clip / length } else { 1.0 };
            let mut at = 0;
            for j in 0..d {
                let (a, b) = (factor * v[j], factor * of_scale[j]);
                sum[at] += a * v[j] + b * of_scale[j];
                let (a, b) = (std::f64::consts::SQRT_2 * a, std::f64::consts::SQRT_2 * b);
                let others = v[j + 1..].iter().zip(&of_scale[j + 1..]);
                for (s, (v, w)) in sum[at + 1..].iter_mut().zip(others) {
                    *s += a * v + b * w;
                }
                at += d - j;
            }
        }
        sum.iter().sum()
    }
}

for_the_same_processors! {
    /// The clipped log-ratios of two points, each log-likelihood rounded to the lattice first.
    pub fn log_ratios(case: &Case, to: &[f64]) -> f64 {
        const UNIT: f64 = (1u64 << 44) as f64;
        let log_likelihood = |eta: f64, y: f64| {
            let eta = if y == 1.0 { eta } else { -eta };
            -(-eta).exp().ln_1p()
        };
        let bound = (case.clip * UNIT) as i64;
        let mut sum = 0i64;
        for (x, &y) in case.rows.chunks_exact(case.theta.len()).zip(&case.outcomes) {
            let before = (UNIT * log_likelihood(dot(x, &case.theta), y)) as i64;
            let after = (UNIT * log_likelihood(dot(x, to), y)) as i64;
            sum += (after - before).clamp(-bound, bound);
        }
        sum as f64 / UNIT
    }
}

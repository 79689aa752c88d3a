//! V_corr of DP-Barker: the variable that turns N(0, 2) into nearly a standard logistic variable.
//!
//! No variable does so exactly: pi t e^(t^2)/sinh(pi t), which would be its characteristic
//! function, exceeds 1 from t = 1.8. This one is a mixture of normals, symmetric about 0, with
//! the weights, means and standard deviations of [`COMPONENTS`], fitted by
//! `tests/fixtures/barker/fit.py`. With F the distribution function of N(0, 2) + V_corr, the
//! error of the log-odds, |ln(F(x)/F(-x)) - x|, is at most 0.0084 for |x| <= 10 (beyond, F
//! decides almost surely; at 12 it is 0.27), and that of F itself at most 0.0018.

use crate::privacy::PrivateRng;

/// (weight, mean, standard deviation), the mean with either sign.
const COMPONENTS: [(f64, f64, f64); 4] = [
    (0.84768695, 0.0, 0.0),
    (0.13634256, 2.60970567, 0.0),
    (0.00845367, 3.81549624, 2.27211535),
    (0.00751682, 5.13798609, 0.0),
];

/// One draw, from the private generator like acceptance draws.
pub(crate) fn draw(rng: &mut PrivateRng) -> f64 {
    let mut u = uniform(rng);
    let mut component = COMPONENTS[0];
    for candidate in COMPONENTS {
        component = candidate;
        u -= candidate.0;
        if u <= 0.0 {
            break;
        }
    }
    let (_, mean, sd) = component;
    let mean = if rng.bit() { mean } else { -mean };
    // Box and Muller.
    let (radius, angle) = (uniform(rng), uniform(rng));
    mean + sd * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Uniform on the open interval (0, 1).
fn uniform(rng: &mut PrivateRng) -> f64 {
    ((rng.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phi(x: f64) -> f64 {
        0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
    }

    /// P(N(0, 2) + V_corr <= x)
    fn distribution(x: f64) -> f64 {
        COMPONENTS
            .iter()
            .map(|&(weight, mean, sd)| {
                let scale = (2.0 + sd * sd).sqrt();
                weight * 0.5 * (phi((x - mean) / scale) + phi((x + mean) / scale))
            })
            .sum()
    }

    // If it failed: the bound in the documentation would not hold. Without V_corr the
    // log-odds are off by 2.8 at x = 5.
    #[test]
    fn the_log_odds_are_off_by_at_most_0_0084() {
        let total: f64 = COMPONENTS.iter().map(|c| c.0).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
        let mut worst = 0.0f64;
        for i in 0..=10_000 {
            let x = f64::from(i) / 1000.0;
            let odds = distribution(x).ln() - distribution(-x).ln();
            worst = worst.max((odds - x).abs());
            assert!((distribution(x) - 1.0 / (1.0 + (-x).exp())).abs() < 0.0018);
        }
        assert!((0.008..0.0084).contains(&worst), "{worst}");
        let bare = phi(5.0 / 2f64.sqrt()).ln() - phi(-5.0 / 2f64.sqrt()).ln();
        assert!((bare - 5.0).abs() > 2.5, "{bare}");
    }

    // If it failed: draws would not come from the table. 400,000 draws of V_corr plus exact
    // N(0, 2) through its distribution function, in 20 bins: chi-square with 19 degrees of
    // freedom, false alarm 1e-9; a weight of 0.1363 off by 0.01 adds 300 to it.
    #[test]
    fn draws_follow_the_table() {
        let mut rng = PrivateRng::from_insecure_seed(920);
        let draws = 400_000;
        let mut bins = [0u32; 20];
        for _ in 0..draws {
            let (radius, angle) = (uniform(&mut rng), uniform(&mut rng));
            let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
            let u = distribution(2f64.sqrt() * normal + draw(&mut rng));
            bins[((u * 20.0) as usize).min(19)] += 1;
        }
        let expected = f64::from(draws) / 20.0;
        let statistic: f64 = bins
            .iter()
            .map(|&c| (f64::from(c) - expected).powi(2) / expected)
            .sum();
        assert!(
            statistic < 19.0 + 2.0 * (19.0f64 * 20.8).sqrt() + 41.6,
            "{statistic}"
        );
    }
}

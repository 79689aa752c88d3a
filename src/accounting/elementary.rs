//! exp and ln of a [`Real`], to about 29 digits.

use super::real::Real;

const LN_2: Real = Real::from_parts(std::f64::consts::LN_2, 2.3190468138462996e-17);

/// Below this, e^x is no longer a normal `f64` with a normal low part.
const EXP_FLOOR: f64 = -650.0;
const EXP_CEILING: f64 = 700.0;

/// e^x to a relative (2 + |x|) 1e-31; zero where x < -650, infinite where x > 700.
///
/// e^x = 2^k (1 + p)^512 with p = expm1((x - k ln 2)/512) by its Taylor series; the
/// squarings go p -> 2p + p^2, which keeps the digits of p.
pub(super) fn exp(x: Real) -> Real {
    if x.to_f64() < EXP_FLOOR {
        return Real::ZERO;
    }
    if x.to_f64() > EXP_CEILING {
        return Real::exact(f64::INFINITY);
    }
    let k = (x / LN_2).to_f64().round();
    let reduced = (x - Real::exact(k) * LN_2).times_power_of_two(-9);
    // |reduced| < 7e-4, so the first term left out is below 1e-37.
    let mut p = Real::ZERO;
    for n in (1..=10).rev() {
        p = reduced * (Real::ONE + p) / Real::exact(f64::from(n));
    }
    for _ in 0..9 {
        p = p.times_power_of_two(1) + p.square();
    }
    (Real::ONE + p).times_power_of_two(k as i32)
}

/// ln x to an absolute 1e-30 (1 + |ln x|); minus infinity for zero and below.
///
/// x = m 2^e with m near one; then one step from the `f64` logarithm of m:
/// y + z - z^2/2 with z = m e^-y - 1 of size 1e-16.
pub(super) fn ln(x: Real) -> Real {
    if x.to_f64() <= 0.0 {
        return Real::exact(f64::NEG_INFINITY);
    }
    let exponent = x.to_f64().log2().round() as i32;
    let m = x.times_power_of_two(-exponent);
    let y = Real::exact(m.to_f64().ln());
    let z = m * exp(-y) - Real::ONE;
    let ln_m = y + (z - z.square().times_power_of_two(-1));
    Real::exact(f64::from(exponent)) * LN_2 + ln_m
}

/// ln(1 + x) for x > -1, to an absolute 1e-30 (1 + |ln|), and relative where x is small.
pub(super) fn ln_1p(x: Real) -> Real {
    if x.to_f64().abs() > 1e-3 {
        return ln(Real::ONE + x);
    }
    // x - x^2/2 + x^3/3 - ...: eleven terms leave a relative 1e-33.
    let mut sum = Real::ZERO;
    for n in (1..=11).rev() {
        sum = x * (Real::ONE / Real::exact(f64::from(n)) - sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn assert_relative(left: Real, right: Real, tolerance: f64) {
        let error = ((left - right) / right).abs().to_f64();
        assert!(error <= tolerance, "{left:?} {right:?} {error:e}");
    }

    // Reference values: mpmath, 45 digits.
    #[test]
    fn exp_matches_mpmath() {
        for (x, value) in EXP {
            assert_relative(exp(real(x)), real(value), 1e-28);
        }
        assert_eq!(exp(real("-1e9")), Real::ZERO);
    }

    #[test]
    fn ln_matches_mpmath() {
        for (x, value) in LN {
            assert_relative(ln(real(x)), real(value), 1e-29);
        }
        assert_eq!(ln(Real::ONE).to_f64(), 0.0);
    }

    #[test]
    fn ln_of_one_plus_a_small_number_keeps_its_digits() {
        for (x, value) in LN_1P {
            assert_relative(ln_1p(real(x)), real(value), 1e-28);
        }
    }

    #[test]
    fn ln_undoes_exp() {
        for step in -400..400 {
            let x = Real::exact(f64::from(step) * 1.61);
            assert!((ln(exp(x)) - x).abs().to_f64() < 1e-28, "{x:?}");
        }
    }

    const EXP: [(&str, &str); 9] = [
        ("-640.25", "8.769159338926285474881976251249961376119e-279"),
        ("-100.1", "3.366063941040295471162281269694719919753e-44"),
        ("-3", "0.0497870683678639429793424156500617766317"),
        ("-0.001", "0.9990004998333749916680553571676559747024"),
        ("1e-20", "1.00000000000000000001"),
        ("0.3465", "1.414109493830362450893803064315665998875"),
        ("1", "2.718281828459045235360287471352662497757"),
        ("12.5", "268337.2865208744569564796737871504027258"),
        ("600.7", "7.597929846338738403922062688461450643255e+260"),
    ];
    const LN: [(&str, &str); 9] = [
        ("1e-290", "-667.7496769682732483652175218584656202043"),
        ("0.001", "-6.907755278982137052053974364053092622803"),
        ("0.7", "-0.356674943938732378912638711241184477964"),
        ("0.70711", "-0.3465690382006941433503268840672470179936"),
        ("1.4142", "0.3465640001880033787262608716599159214111"),
        ("1.5", "0.405465108108164381978013115464349136572"),
        ("3", "1.098612288668109691395245236922525704647"),
        ("1e17", "39.14394658089877662830585472963419152922"),
        ("1e290", "667.7496769682732483652175218584656202043"),
    ];
    const LN_1P: [(&str, &str); 9] = [
        ("-0.5", "-0.6931471805599453094172321214581765680755"),
        ("-1e-3", "-0.001000500333583533500142982254068344960755"),
        (
            "-1.1e-6",
            "-0.000001100000605000443667032691988768961927112",
        ),
        ("-9e-7", "-0.0000009000004050002430001640251180980885735683"),
        ("-1e-30", "-1.0000000000000000000000000000005e-30"),
        ("1e-12", "9.999999999995000000000003333333333330833e-13"),
        ("9.9e-7", "0.0000009899995099503234327598511876978530667749"),
        ("0.25", "0.2231435513142097557662950903098345033746"),
        ("4", "1.609437912434100374600759333226187639526"),
    ];
}

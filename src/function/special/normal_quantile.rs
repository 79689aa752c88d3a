//! The inverse of the standard normal distribution function.

/// z with Φ(z) = `p`, to about 1e-16 relative; ±∞ at 0 and 1, NaN outside [0, 1].
///
/// Algorithm AS 241, PPND16: M. J. Wichura (1988), *The percentage points of the
/// normal distribution*, Applied Statistics 37(3). Three ratios of polynomials of
/// degree 7: in `p - 1/2` for the centre, in sqrt(-ln p) for the tails.
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&CENTRE, 0.180625 - q * q);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail.is_nan() || tail < 0.0 {
        return f64::NAN;
    }
    if tail == 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let z = if r <= 5.0 {
        ratio(&TAIL, r - 1.6)
    } else {
        ratio(&FAR_TAIL, r - 5.0)
    };
    z.copysign(q)
}

/// Numerator and denominator coefficients, constant term first.
type Ratio = ([f64; 8], [f64; 8]);

fn ratio((numerator, denominator): &Ratio, x: f64) -> f64 {
    let polynomial = |c: &[f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    polynomial(numerator) / polynomial(denominator)
}

const CENTRE: Ratio = (
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_545e3,
    ],
);

const TAIL: Ratio = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);

const FAR_TAIL: Ratio = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong digit in a coefficient would show: each branch is tested, on both sides. The values
    /// are mpmath's, 50 digits, of the double nearest to each p.
    #[test]
    fn equals_mpmath() {
        for (p, z) in MPMATH {
            let error = (normal_quantile(p) - z).abs() / z.abs();
            assert!(error < 2e-15, "p = {p}: {} against {z}", normal_quantile(p));
        }
    }

    #[test]
    fn the_ends_are_infinite_and_outside_is_nan() {
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert!(normal_quantile(-0.1).is_nan() && normal_quantile(1.1).is_nan());
        assert!(normal_quantile(f64::NAN).is_nan());
    }

    const MPMATH: [(f64, f64); 32] = [
        (1e-300, -37.0470962993612),
        (1e-100, -21.273453560965326),
        (1e-30, -11.464024688443615),
        (1e-12, -7.034483825301132),
        (1e-11, -6.706023155495136),
        (1e-08, -5.612001244174789),
        (1e-05, -4.264890793922825),
        (0.000625, -3.2272184259631564),
        (0.001, -3.0902323061678136),
        (0.01, -2.326347874040841),
        (0.05, -1.6448536269514726),
        (0.07, -1.4757910281791706),
        (0.0749999, -1.4395321773759007),
        (0.0750001, -1.4395307645017297),
        (0.1, -1.2815515655446004),
        (0.2, -0.8416212335729142),
        (0.3, -0.5244005127080408),
        (0.4, -0.2533471031357997),
        (0.45, -0.12566134685507402),
        (0.49, -0.025068908258711057),
        (0.4999, -0.00025066283008800747),
        (0.51, 0.025068908258711057),
        (0.6, 0.2533471031357997),
        (0.75, 0.6744897501960817),
        (0.9, 1.2815515655446006),
        (0.925, 1.4395314709384561),
        (0.93, 1.475791028179171),
        (0.95, 1.6448536269514722),
        (0.99, 2.3263478740408408),
        (0.999, 3.090232306167813),
        (0.9999, 3.7190164854557084),
        (0.999999, 4.753424308817088),
    ];
}

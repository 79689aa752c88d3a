//! Scalar functions of one argument, applied element by element.
//!
//! Each entry carries its value and its derivative, both as scalar functions
//! and as loops over a block of rows that the compiler can vectorise.

use super::elementary::{exp, exp_m1, ln, ln_1p};
use super::{normal_tail, saddle_point, scaled_bessel, special};
use crate::linear::vectorised;

/// The values from which the derivative of a function is computed. Others need not be kept (or even
/// computed) for the reverse sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivativeUses {
    Nothing,
    Input,
    Output,
}

/// `(input, output, adjoint, into)`, all of one length.
pub type PullBack = fn(&[f64], &[f64], &[f64], &mut [f64]);

/// All that other modules need to know about a scalar function.
pub struct UnaryDefinition {
    /// The name under which a model calls it; empty for operators.
    pub name: &'static str,
    pub documentation: &'static str,
    pub value: fn(f64) -> f64,
    /// `derivative(x, f(x))`; only what [`DerivativeUses`] names is read.
    pub derivative: fn(f64, f64) -> f64,
    pub derivative_uses: DerivativeUses,
    /// `output[i] = f(input[i])`
    pub map: fn(&[f64], &mut [f64]),
    /// `into[i] += adjoint[i] * f'(input[i])`
    pub pull_back: PullBack,
}

macro_rules! unary_functions {
    ($($variant:ident $name:literal $uses:ident
        |$x:ident| $value:expr, |$dx:ident, $dy:ident| $derivative:expr; $documentation:literal)*) => {
        /// The scalar functions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Unary { $(#[doc = $documentation] $variant),* }

        impl Unary {
            pub const ALL: &'static [Unary] = &[$(Unary::$variant),*];

            pub fn definition(self) -> &'static UnaryDefinition {
                match self {$(
                    Unary::$variant => {
                        #[inline(always)]
                        fn value($x: f64) -> f64 { $value }
                        #[inline(always)]
                        fn derivative($dx: f64, $dy: f64) -> f64 { $derivative }
                        vectorised! {
                            fn map(input: &[f64], output: &mut [f64]) {
                                for (o, &i) in output.iter_mut().zip(input) {
                                    *o = value(i);
                                }
                            }
                        }
                        vectorised! {
                            fn pull_back(
                                input: &[f64],
                                output: &[f64],
                                adjoint: &[f64],
                                into: &mut [f64],
                            ) {
                                let places = into.iter_mut().zip(adjoint).zip(input).zip(output);
                                for (((d, &a), &x), &y) in places {
                                    // A branch not taken sends back zero, even where its derivative
                                    // is infinite.
                                    *d += if a == 0.0 { 0.0 } else { a * derivative(x, y) };
                                }
                            }
                        }
                        static DEFINITION: UnaryDefinition = UnaryDefinition {
                            name: $name,
                            documentation: $documentation,
                            value,
                            derivative,
                            derivative_uses: DerivativeUses::$uses,
                            map,
                            pull_back,
                        };
                        &DEFINITION
                    }
                )*}
            }
        }
    };
}

unary_functions! {
    Negate "" Nothing |x| -x, |_x, _y| -1.0; "Minus x."
    Abs "abs" Input |x| x.abs(), |x, _y| if x == 0.0 { 0.0 } else { x.signum() }; "Absolute value."
    Square "square" Input |x| x * x, |x, _y| 2.0 * x; "x squared."
    Sqrt "sqrt" Output |x| x.sqrt(), |_x, y| 0.5 / y; "Square root."
    Cbrt "cbrt" Output |x| x.cbrt(), |_x, y| 1.0 / (3.0 * y * y); "Cube root."
    Inverse "inv" Output |x| 1.0 / x, |_x, y| -y * y; "1/x."
    InverseSqrt "inv_sqrt" Input |x| 1.0 / x.sqrt(), |x, _y| -0.5 / (x * x.sqrt()); "1/sqrt(x)."
    InverseSquare "inv_square" Input |x| 1.0 / (x * x), |x, _y| -2.0 / (x * x * x); "1/x^2."
    Exp "exp" Output |x| exp(x), |_x, y| y; "Exponential."
    Exp2 "exp2" Output |x| x.exp2(), |_x, y| y * std::f64::consts::LN_2; "2 to the power x."
    Expm1 "expm1" Input |x| exp_m1(x), |x, _y| exp(x); "exp(x) - 1 without cancellation."
    Log "log" Input |x| ln(x), |x, _y| 1.0 / x; "Natural logarithm."
    Log2 "log2" Input |x| x.log2(), |x, _y| std::f64::consts::LOG2_E / x; "Base-2 logarithm."
    Log10 "log10" Input |x| x.log10(), |x, _y| std::f64::consts::LOG10_E / x; "Base-10 logarithm."
    Log1p "log1p" Input |x| ln_1p(x), |x, _y| 1.0 / (1.0 + x); "log(1 + x) without cancellation."
    Log1m "log1m" Input |x| ln_1p(-x), |x, _y| -1.0 / (1.0 - x); "log(1 - x) without cancellation."
    Log1pExp "log1p_exp" Input |x| special::log1p_exp(x), |x, _y| special::inv_logit(x); "log(1 + exp(x)) without overflow."
    Log1mExp "log1m_exp" Input |x| special::log1m_exp(x), |x, _y| 1.0 / (-(-x).exp_m1()); "log(1 - exp(x)) for x < 0."
    InvLogit "inv_logit" Input |x| special::inv_logit(x), |x, _y| special::inv_logit_derivative(x); "1/(1 + exp(-x))."
    Logit "logit" Input |x| ln(x) - ln_1p(-x), |x, _y| 1.0 / (x * (1.0 - x)); "log(x/(1 - x))."
    LogInvLogit "log_inv_logit" Input |x| -special::log1p_exp(-x), |x, _y| special::inv_logit(-x); "log of inv_logit(x)."
    Log1mInvLogit "log1m_inv_logit" Input |x| -special::log1p_exp(x), |x, _y| -special::inv_logit(x); "log of 1 - inv_logit(x)."
    PositiveExp "" Output |x| special::positive_exp(x), |_x, y| special::inside(y, f64::MIN_POSITIVE, f64::MAX, y); "exp(x), kept positive and finite."
    OpenInvLogit "" Output |x| special::open_inv_logit(x), |_x, y| special::inside(y, f64::MIN_POSITIVE, special::BELOW_ONE, y * (1.0 - y)); "inv_logit(x), kept above 0 and below 1."
    Sin "sin" Input |x| x.sin(), |x, _y| x.cos(); "Sine."
    Cos "cos" Input |x| x.cos(), |x, _y| -x.sin(); "Cosine."
    Tan "tan" Output |x| x.tan(), |_x, y| 1.0 + y * y; "Tangent."
    Asin "asin" Input |x| x.asin(), |x, _y| 1.0 / ((1.0 - x) * (1.0 + x)).sqrt(); "Arc sine."
    Acos "acos" Input |x| x.acos(), |x, _y| -1.0 / ((1.0 - x) * (1.0 + x)).sqrt(); "Arc cosine."
    Atan "atan" Input |x| x.atan(), |x, _y| 1.0 / (1.0 + x * x); "Arc tangent."
    Sinh "sinh" Input |x| x.sinh(), |x, _y| x.cosh(); "Hyperbolic sine."
    Cosh "cosh" Input |x| x.cosh(), |x, _y| x.sinh(); "Hyperbolic cosine."
    Tanh "tanh" Input |x| x.tanh(), |x, _y| 4.0 * special::inv_logit_derivative(2.0 * x); "Hyperbolic tangent."
    Asinh "asinh" Input |x| libm::asinh(x), |x, _y| 1.0 / x.hypot(1.0); "Inverse hyperbolic sine."
    Acosh "acosh" Input |x| libm::acosh(x), |x, _y| 1.0 / ((x - 1.0) * (x + 1.0)).sqrt(); "Inverse hyperbolic cosine, for x >= 1."
    Atanh "atanh" Input |x| libm::atanh(x), |x, _y| 1.0 / ((1.0 - x) * (1.0 + x)); "Inverse hyperbolic tangent, for x in -1..1."
    Erf "erf" Input |x| libm::erf(x), |x, _y| std::f64::consts::FRAC_2_SQRT_PI * special::exp_minus_square(x); "Error function."
    Erfc "erfc" Input |x| libm::erfc(x), |x, _y| -std::f64::consts::FRAC_2_SQRT_PI * special::exp_minus_square(x); "Complementary error function."
    InvErfc "inv_erfc" Output |x| -special::normal_quantile(0.5 * x) * std::f64::consts::FRAC_1_SQRT_2, |_x, y| -0.5 * std::f64::consts::PI.sqrt() / special::exp_minus_square(y); "Inverse of erfc."
    Phi "Phi" Input |x| special::normal_cdf(x), |x, _y| special::normal_density(x); "Standard normal distribution function."
    InvPhi "inv_Phi" Output |x| special::normal_quantile(x), |_x, y| 1.0 / special::normal_density(y); "Standard normal quantile: the inverse of Phi."
    PhiApprox "Phi_approx" Input |x| special::inv_logit(x * (0.07056 * x * x + 1.5976)), |x, _y| special::inv_logit_derivative(x * (0.07056 * x * x + 1.5976)) * (0.21168 * x * x + 1.5976); "Approximation of Phi: inv_logit(0.07056 x^3 + 1.5976 x)."
    InvCloglog "inv_cloglog" Input |x| special::inv_cloglog(x), |x, _y| (x - x.exp()).exp(); "Inverse of the complementary log-log link: 1 - exp(-exp(x))."
    Lgamma "lgamma" Input |x| libm::lgamma(x), |x, _y| special::digamma(x); "Logarithm of the gamma function."
    Digamma "digamma" Input |x| special::digamma(x), |x, _y| special::trigamma(x); "Derivative of lgamma."
    Trigamma "trigamma" Input |x| special::trigamma(x), |x, _y| special::tetragamma(x); "Derivative of digamma."
    Tgamma "tgamma" Input |x| special::gamma(x), |x, _y| special::gamma(x) * special::digamma(x); "Gamma function."
    Floor "floor" Nothing |x| x.floor(), |_x, _y| 0.0; "Largest integer not above x."
    Ceil "ceil" Nothing |x| x.ceil(), |_x, _y| 0.0; "Smallest integer not below x."
    Round "round" Nothing |x| x.round(), |_x, _y| 0.0; "Nearest integer, halves away from zero."
    Trunc "trunc" Nothing |x| x.trunc(), |_x, _y| 0.0; "Integer part, towards zero."
    Step "step" Nothing |x| if x < 0.0 { 0.0 } else { 1.0 }, |_x, _y| 0.0; "1 if x >= 0, else 0."
    IntStep "int_step" Nothing |x| if x > 0.0 { 1.0 } else { 0.0 }, |_x, _y| 0.0; "1 if x > 0, else 0, as an int."
    IsNan "is_nan" Nothing |x| if x.is_nan() { 1.0 } else { 0.0 }, |_x, _y| 0.0; "1 if x is not a number, else 0."
    IsInf "is_inf" Nothing |x| if x.is_infinite() { 1.0 } else { 0.0 }, |_x, _y| 0.0; "1 if x is infinite, else 0."
    Not "" Nothing |x| if x == 0.0 { 1.0 } else { 0.0 }, |_x, _y| 0.0; "Logical negation: 1 if x is 0, else 0."
    Log1pMinus "" Input |x| saddle_point::log1p_minus(x), |x, _y| -x / (1.0 + x); "log(1 + x) - x without cancellation."
    Expm1Minus "" Input |x| saddle_point::expm1_minus(x), |x, _y| exp_m1(x); "exp(x) - 1 - x without cancellation."
    StirlingError "" Input |x| saddle_point::stirling_error(x), |x, _y| saddle_point::stirling_error_derivative(x); "lgamma(x + 1) less Stirling's formula for it."
    LogPhi "" Input |x| normal_tail::log_phi(x), |x, _y| normal_tail::log_phi_derivative(x); "Logarithm of the standard normal distribution function."
    LogPhiOverDensity "" Input |x| normal_tail::log_phi_over_density(x), |x, _y| normal_tail::log_phi_over_density_derivative(x); "Logarithm of the standard normal distribution function over the density."
    LogCauchyCdf "" Input |x| log_cauchy_cdf(x), |x, _y| log_cauchy_cdf_derivative(x); "Logarithm of the standard Cauchy distribution function."
    LogCosh "" Input |x| log_cosh(x), |x, _y| x.tanh(); "log(cosh(x)) without overflow."
    LogScaledBesselI0 "" Input |x| scaled_bessel::log_scaled_bessel_i0(x), |x, _y| scaled_bessel::log_scaled_bessel_i0_derivative(x); "log(I0(x)) - x, I0 the modified Bessel function."
}

/// The angle between the point (-x, 1) and the right, over pi.
fn log_cauchy_cdf(x: f64) -> f64 {
    use std::f64::consts::PI;
    if x < 0.0 {
        (1.0f64.atan2(-x) / PI).ln()
    } else {
        (-1.0f64.atan2(x) / PI).ln_1p()
    }
}

fn log_cauchy_cdf_derivative(x: f64) -> f64 {
    let angle = 1.0f64.atan2(-x);
    if x.abs() > 1.0 {
        1.0 / ((x * angle) * (x + 1.0 / x))
    } else {
        1.0 / ((1.0 + x * x) * angle)
    }
}

fn log_cosh(x: f64) -> f64 {
    let x = x.abs();
    if x < 1.0 {
        0.5 * (x.sinh() * x.sinh()).ln_1p()
    } else {
        x + (-2.0 * x).exp().ln_1p() - std::f64::consts::LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wrong derivative anywhere in the table fails here: each is compared
    /// with a central difference at points inside the function's domain.
    #[test]
    fn derivatives_agree_with_central_differences() {
        for &function in Unary::ALL {
            let d = function.definition();
            for x in [-3.7, -1.3, -0.6, -0.21, 0.17, 0.43, 0.83, 1.9, 4.2] {
                let y = (d.value)(x);
                // Fourth-order central difference: error about h^4.
                let h = 4e-4 * f64::max(x.abs(), 0.1);
                let f = d.value;
                let numeric =
                    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h);
                if !numeric.is_finite() || !y.is_finite() {
                    continue; // outside the domain
                }
                let exact = (d.derivative)(x, y);
                assert!(
                    (exact - numeric).abs() <= 2e-8 * (1.0 + numeric.abs()),
                    "{function:?} at {x}: derivative {exact}, difference {numeric}"
                );
            }
        }
    }

    /// Loops run in whole vectors and then one by one, scalars are compiled without vectors: results
    /// are the same to the bit.
    #[test]
    fn block_loops_agree_with_the_scalars() {
        const N: usize = 37;
        let input: [f64; N] = std::array::from_fn(|i| 0.013 + 0.026 * i as f64);
        for &function in Unary::ALL {
            let d = function.definition();
            let mut output = [0.0; N];
            (d.map)(&input, &mut output);
            let adjoint: [f64; N] = std::array::from_fn(|i| 2.0 - 0.15 * i as f64);
            let mut into = [1.0; N];
            (d.pull_back)(&input, &output, &adjoint, &mut into);
            for i in 0..N {
                assert_eq!(output[i].to_bits(), (d.value)(input[i]).to_bits());
                let expected = 1.0 + adjoint[i] * (d.derivative)(input[i], output[i]);
                assert_eq!(into[i].to_bits(), expected.to_bits(), "{function:?}");
            }
        }
    }
}

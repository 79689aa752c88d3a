//! The law against closed forms.

use super::law::NoLaw;
use super::*;
use crate::function::special::{digamma, trigamma};
use crate::model::Constants;

fn density(source: &str) -> Density {
    Density::new(Model::from_source(source, &Constants::none()).unwrap())
}

/// The results of the nodes for one record.
struct Found {
    probability: f64,
    mean: Vec<f64>,
    /// Sum of `p g g'`.
    information: Vec<Vec<f64>>,
    nodes: usize,
    lost: usize,
}

/// The results for a record with these columns (all of them, raw, in declaration order); the value
/// of the outcome is not read.
fn of_record(density: &Density, theta: &[f64], columns: &[f64]) -> Found {
    let law = Law::of(density, &vec![0.0; theta.len()], 1).unwrap();
    let mut scratch = law.scratch(theta);
    let jacobian = law.jacobian(theta);
    // The second of two records, so that mixed-up strides would show.
    let values_of = |c: &usize| vec![columns[*c] + 0.25, columns[*c]];
    let block: Vec<Vec<f64>> = law.columns().iter().map(values_of).collect();
    let block: Vec<&[f64]> = block.iter().map(Vec::as_slice).collect();
    let d = theta.len();
    let mut found = Found {
        probability: 0.0,
        mean: vec![0.0; d],
        information: vec![vec![0.0; d]; d],
        nodes: law.nodes(),
        lost: 0,
    };
    found.lost = law.scores(&block, 2, &jacobian, &mut scratch, |_, node| {
        let p = node.probabilities[1];
        assert!(p >= 0.0);
        found.probability += p;
        let g = |j: usize| node.gradients[j * BLOCK + 1];
        for j in 0..d {
            found.mean[j] += p * g(j);
            for k in 0..d {
                found.information[j][k] += p * g(j) * g(k);
            }
        }
    });
    found
}

/// Asserts that the law's information has the diagonal `exact`, within `tolerance` (relative), and
/// that scores have mean zero, within `residual` of their sd.
fn assert_law(
    what: &str,
    source: &str,
    theta: &[f64],
    columns: &[f64],
    exact: &[f64],
    [tolerance, residual]: [f64; 2],
) -> Found {
    let density = density(source);
    let found = of_record(&density, theta, columns);
    assert!(
        (found.probability - 1.0).abs() < 1e-9,
        "{what}: probabilities sum to {}",
        found.probability
    );
    let diagonal: Vec<f64> = (0..theta.len()).map(|j| found.information[j][j]).collect();
    let off: Vec<f64> = diagonal
        .iter()
        .zip(exact)
        .map(|(f, e)| f / e - 1.0)
        .collect();
    let mean: Vec<f64> = found
        .mean
        .iter()
        .zip(exact)
        .map(|(m, e)| m / e.sqrt())
        .collect();
    println!("| {what} | {} | {off:.5?} | {mean:.5?} |", found.nodes);
    let worst = |x: &[f64]| x.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert!(
        worst(&off) <= tolerance,
        "{what}: information off by {off:?}"
    );
    assert!(
        worst(&mean) <= residual,
        "{what}: scores have the mean {mean:?}"
    );
    found
}

const EXACT: [f64; 2] = [1e-9, 1e-9];
/// Where nodes are exact for the scores, and the distribution is found from differences.
const EXACT_NODES: [f64; 2] = [1e-5, 1e-5];

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

// Oracle: closed forms of the variate's law. If it failed: "any visit" of a count of visits would have no law, and
// clipping would move its level by several sds.
#[test]
fn a_variate_of_few_values_has_the_law_of_these() {
    let p = logistic(0.3 - 0.8 * 1.5);
    let v = p * (1.0 - p);
    for (declared, event) in [
        ("int<lower=0, upper=60> y", "y > 0"),
        ("int<lower=0> y", "y >= 3"),
        ("int<lower=1, upper=5> y", "y == 2 || y > 3"),
        ("int<lower=0, upper=60> y", "y % 2 == 1"),
        ("int<lower=0, upper=1000000> y", "y > 900000"),
        ("real<lower=0, upper=60> y", "y / 2 > 12.34"),
        ("real y", "y >= 1e7"),
    ] {
        let found = assert_law(
            event,
            &format!(
                "record {{ {declared}; real x; }} parameters {{ real a; real b; }}
                 model {{ ({event}) ~ bernoulli_logit(a + b * x); }}"
            ),
            &[0.3, -0.8],
            &[1.0, 1.5],
            &[v, v * 2.25],
            EXACT,
        );
        assert_eq!(found.nodes, 2, "{event}");
    }
    // A density of the column, which its sign is not.
    let density = density(
        "record { int<lower=0, upper=60> y; } parameters { real a; real b; }
         model { (y > 0) ~ bernoulli_logit(a); target += -square(b - y); }",
    );
    let centre = vec![0.0; 2];
    assert!(Law::of(&density, &centre, 1).is_err());
    // Another outcome that depends on the column: its information would be that of y = 1.
    let density = self::density(
        "record { int<lower=0, upper=60> y; real z; } parameters { real a; real b; }
         model { (y > 0) ~ bernoulli_logit(a); z ~ normal(b * y, 1); }",
    );
    assert!(Law::of(&density, &centre, 1).is_err());
}

// If it failed: axes and widths would be those of another outcome. Oracle: closed forms.
#[test]
fn values_of_discrete_outcomes_are_enumerated() {
    let p = logistic(0.3 - 0.8 * 1.5);
    let v = p * (1.0 - p);
    let found = assert_law(
        "Bernoulli",
        "record { int<lower=0, upper=1> y; real x; } parameters { real a; real b; }
         model { y ~ bernoulli_logit(a + b * x); }",
        &[0.3, -0.8],
        &[0.0, 1.5],
        &[v, v * 2.25],
        EXACT,
    );
    assert_eq!(found.nodes, 2);
    assert!((found.information[0][1] - v * 1.5).abs() < 1e-12);

    let weights = [0.0, 0.7, -0.4_f64].map(f64::exp);
    let p = weights.map(|w| w / weights.iter().sum::<f64>());
    for declared in ["int<lower=1, upper=3> y", "factor(\"a\", \"b\", \"c\") y"] {
        let found = assert_law(
            "categorical, also a factor",
            &format!(
                "record {{ {declared}; }} parameters {{ real a; real b; }}
                 model {{ y ~ categorical_logit([0, a, b]'); }}"
            ),
            &[0.7, -0.4],
            &[1.0],
            &[p[1] * (1.0 - p[1]), p[2] * (1.0 - p[2])],
            EXACT,
        );
        assert!((found.information[0][1] + p[1] * p[2]).abs() < 1e-12);
    }

    // Ordered: probabilities are differences of logistic functions; coordinates are eta's
    // coefficient, the first cutpoint, and the log of what the second is above it.
    let theta = [0.5, -0.6, 0.2];
    let log_p = |t: &[f64], y: usize| {
        let eta = t[0] * 1.2;
        let c = [t[1], t[1] + t[2].exp()];
        let below = |k: usize| logistic(c[k] - eta);
        [below(0), below(1) - below(0), 1.0 - below(1)][y].ln()
    };
    let mut exact = [0.0; 3];
    for y in 0..3 {
        for (j, e) in exact.iter_mut().enumerate() {
            let at = |h: f64| {
                let mut t = theta;
                t[j] += h;
                log_p(&t, y)
            };
            let g = (at(1e-5) - at(-1e-5)) / 2e-5;
            *e += log_p(&theta, y).exp() * g * g;
        }
    }
    assert_law(
        "ordered logit",
        "record { int<lower=1, upper=3> y; real x; } parameters { real b; ordered[2] c; }
         model { y ~ ordered_logistic(b * x, c); }",
        &theta,
        &[1.0, 1.2],
        &exact,
        [1e-7, 1e-7],
    );
}

#[test]
fn counts_have_nodes() {
    for declared in ["int<lower=0>", "int", "int<lower=0, upper=1000000>"] {
        for mean in [0.3_f64, 3.0, 6.0, 12.0, 30.0, 50.0, 300.0, 1e5] {
            assert_law(
                &format!("Poisson {mean}"),
                &format!(
                    "record {{ {declared} y; }} parameters {{ real a; }}
                     model {{ y ~ poisson_log(a); }}"
                ),
                &[mean.ln()],
                &[0.0],
                &[mean],
                [0.01, 0.005],
            );
        }
    }
    for (mean, phi) in [
        (1.0_f64, 0.5_f64),
        (5.0, 0.5),
        (5.0, 2.0),
        (20.0, 1.0),
        (50.0, 5.0),
        (300.0, 10.0),
    ] {
        let mut of_phi = 0.0;
        let mut log_p = phi * (phi / (mean + phi)).ln();
        for y in 0..60_000 {
            let y = f64::from(y);
            let score = digamma(y + phi) - digamma(phi)
                + (phi / (mean + phi)).ln()
                + (mean - y) / (mean + phi);
            of_phi += log_p.exp() * (phi * score).powi(2);
            log_p += ((y + phi) / (y + 1.0)).ln() + (mean / (mean + phi)).ln();
        }
        assert_law(
            &format!("negative binomial {mean}, {phi}"),
            "record { int<lower=0> y; } parameters { real a; real<lower=0> phi; }
             model { y ~ neg_binomial_2_log(a, phi); }",
            &[mean.ln(), phi.ln()],
            &[0.0],
            &[mean * phi / (mean + phi), of_phi],
            [0.03, 0.005],
        );
    }
}

/// In a record, about the degrees of freedom of a Student t.
fn information_of_nu(nu: f64) -> f64 {
    0.25 * (trigamma(0.5 * nu) - trigamma(0.5 * (nu + 1.0)))
        - (nu + 5.0) / (2.0 * nu * (nu + 1.0) * (nu + 3.0))
}

#[test]
fn real_outcomes_have_nodes() {
    let tight = [0.01, 0.005];
    for (at, s) in [(0.3, 1.4), (7e3, 0.01), (-2.0, 1e4)] {
        for model in ["y ~ normal(a, s)", "target += normal_lpdf(y | a, s)"] {
            assert_law(
                &format!("normal {at}, {s}"),
                &format!(
                    "record {{ real y; }} parameters {{ real a; real<lower=0> s; }} model {{ {model}; }}"
                ),
                &[at, f64::ln(s)],
                &[0.0],
                &[s.powi(-2), 2.0],
                tight,
            );
        }
    }
    for model in [
        "y ~ lognormal(a, s)",
        "log(y) ~ normal(a, s)",
        "target += normal_lpdf(log(y) | a, s) - log(y)",
    ] {
        for lower in ["<lower=0>", ""] {
            assert_law(
                &format!("lognormal: {model}"),
                &format!(
                    "record {{ real{lower} y; }} parameters {{ real a; real<lower=0> s; }} model {{ {model}; }}"
                ),
                &[1.3, f64::ln(0.7)],
                &[1.0],
                &[0.7_f64.powi(-2), 2.0],
                tight,
            );
        }
    }
    // Tails on the scale of logarithms, of a column that is cut off far inside of them.
    let nu = 2.5_f64;
    let found = assert_law(
        "Student t of a logarithm",
        "record { real<lower=50, upper=19000> y; } transformed record { real z = log(y); }
         parameters { real a; real<lower=0> s; real<lower=2> nu; }
         model { z ~ student_t(nu, a, s); }",
        &[6.0, 0.5_f64.ln(), 0.5_f64.ln()],
        &[0.0],
        &[
            (nu + 1.0) / (nu + 3.0) / 0.25,
            2.0 * nu / (nu + 3.0),
            information_of_nu(nu) * 0.25,
        ],
        [0.02, 0.005],
    );
    assert_eq!(found.nodes, 16);
    for nu in [1.0_f64, 2.5, 5.0, 30.0] {
        for declared in ["real", "real<lower=-60, upper=60>"] {
            let of_nu = information_of_nu(nu);
            assert_law(
                &format!("Student t {nu}, {declared}"),
                &format!("record {{ {declared} y; }} parameters {{ real<lower=0> nu; real a; real<lower=0> s; }}
                 model {{ y ~ student_t(nu, a, s); }}"),
                &[nu.ln(), 0.4, 2_f64.ln()],
                &[0.0],
                &[of_nu * nu * nu, (nu + 1.0) / (nu + 3.0) / 4.0, 2.0 * nu / (nu + 3.0)],
                [0.02, 0.005],
            );
        }
    }
    for (a, b) in [(2.0_f64, 2.0_f64), (0.5, 3.0), (30.0, 4.0)] {
        assert_law(
            &format!("beta {a}, {b}"),
            "record { real<lower=0, upper=1> y; } parameters { real<lower=0> a; real<lower=0> b; }
             model { y ~ beta(a, b); }",
            &[a.ln(), b.ln()],
            &[0.5],
            &[
                a * a * (trigamma(a) - trigamma(a + b)),
                b * b * (trigamma(b) - trigamma(a + b)),
            ],
            tight,
        );
    }
    // The logarithm of the outcome times the parameter; a declared bound inside of the support.
    for [bound, smallest] in [[1.0, 1.0], [1.0, 0.999]] {
        assert_law(
            &format!("pareto from {smallest}, bound {bound}"),
            &format!("record {{ real<lower={bound}, upper=300> y; }} parameters {{ real<lower=0> alpha; }}
             model {{ y ~ pareto({smallest}, alpha); }}"),
            &[1.6_f64.ln()],
            &[0.5],
            &[1.0],
            [0.02, 0.02],
        );
    }
    assert_law(
        "lognormal, wide, with a bound inside of the support",
        "record { real<lower=1, upper=60> y; } parameters { real a; real<lower=0> s; }
         model { y ~ lognormal(a, s); }",
        &[2.3, 1.5_f64.ln()],
        &[1.0],
        &[1.5_f64.powi(-2), 2.0],
        tight,
    );
    assert_law(
        "exponential",
        "record { real<lower=0> y; } parameters { real a; } model { y ~ exponential(exp(a)); }",
        &[0.8],
        &[0.5],
        &[1.0],
        tight,
    );
    // Only up to a constant that does not depend on parameters.
    assert_law(
        "a square",
        "record { real y; } parameters { real a; } model { target += -2 * square(y - a); 
         y ~ normal(a, 1e6); }",
        &[0.8],
        &[0.5],
        &[4.0],
        tight,
    );
}

// A condition on the outcome whose branches are its densities gives a law.
#[test]
fn conditions_on_the_outcome_make_atoms() {
    let p = logistic(0.4);
    let exact = [p * (1.0 - p), (1.0 - p) / 0.49, (1.0 - p) * 2.0];
    let lognormal = "lognormal_lpdf(y | m, s)";
    for (condition, above) in [
        ("y == 0", lognormal),
        ("y <= 0", lognormal),
        ("!(y > 0)", lognormal),
        ("!(y > 0)", "normal_lpdf(log(fmax(y, 0.001)) | m, s)"),
        ("!(y > 0)", "normal_lpdf(y > 0 ? log(y) : 0 | m, s)"),
    ] {
        assert_law(
            &format!("hurdle, {condition}, {above}"),
            &format!(
                "record {{ real<lower=0> y; }} parameters {{ real a; real m; real<lower=0> s; }}
                 model {{
                   target += {condition} ? bernoulli_logit_lpmf(1 | a)
                     : bernoulli_logit_lpmf(0 | a) + {above};
                 }}"
            ),
            &[0.4, 0.2, f64::ln(0.7)],
            &[0.0],
            &exact,
            [0.01, 0.005],
        );
    }
    // A separate column says whether there is a value.
    assert_law(
        "two parts",
        "record { int<lower=0, upper=1> any; real<lower=0> y; }
         parameters { real a; real m; real<lower=0> s; }
         model {
           any ~ bernoulli_logit(a);
           target += any == 1 ? lognormal_lpdf(y | m, s) : 0;
         }",
        &[-0.4, 0.2, f64::ln(0.7)],
        &[0.0, 0.0],
        &exact,
        [0.04, 0.01],
    );
    // Cut off at a public end: P(y = 0) = Phi(-m), and a normal above.
    let found = of_record(
        &density(
            "record { real<lower=0> y; } parameters { real m; }
             model {
               target += y <= 0 ? normal_lcdf(0 | m, 1) : normal_lpdf(y | m, 1);
             }",
        ),
        &[0.3],
        &[0.0],
    );
    assert!((found.probability - 1.0).abs() < 1e-9);
    assert!(found.mean[0].abs() < 0.005, "{:?}", found.mean);
    // Zero-inflated counts: all ints.
    let (q, rate) = (logistic(-0.5), 2.0_f64);
    let zero = q + (1.0 - q) * (-rate).exp();
    let score = -(1.0 - q) * (-rate).exp() * rate / zero;
    let all = (1.0 - q) * rate - (1.0 - q) * (-rate).exp() * rate * rate;
    let found = of_record(
        &density(
            "record { int<lower=0> y; } parameters { real a; real b; }
             model {
               target += y == 0
                 ? log_sum_exp(bernoulli_logit_lpmf(1 | a),
                     bernoulli_logit_lpmf(0 | a) + poisson_log_lpmf(0 | b))
                 : bernoulli_logit_lpmf(0 | a) + poisson_log_lpmf(y | b);
             }",
        ),
        &[-0.5, rate.ln()],
        &[0.0],
    );
    let exact = zero * score * score + all;
    assert!(
        (found.information[1][1] / exact - 1.0).abs() < 1e-6,
        "{} {exact}",
        found.information[1][1]
    );
}

#[test]
fn several_outcomes_have_a_product() {
    let found = assert_law(
        "two normals",
        "record { real x; real y; } parameters { real a; real b; real<lower=0> s; real<lower=0> t; }
         model { y ~ normal(b + 2 * x, t); x ~ normal(a, s); }",
        &[0.3, -0.5, f64::ln(2.0), f64::ln(0.5)],
        &[0.0, 0.0],
        &[0.25, 4.0, 2.0, 2.0],
        [0.05, 0.05],
    );
    assert_eq!(found.nodes, 16);
    let p = [0.2_f64, 0.6, 0.9];
    let logit = p.map(|p| (p / (1.0 - p)).ln());
    let found = assert_law(
        "three Bernoullis",
        "record { array[3] int<lower=0, upper=1> y; } parameters { vector[3] a; }
         model { y ~ bernoulli_logit(a); }",
        &logit,
        &[0.0; 3],
        &p.map(|p| p * (1.0 - p)),
        EXACT,
    );
    assert_eq!(found.nodes, 8);
    assert_law(
        "three normals",
        "record { vector[3] y; } parameters { vector[3] a; vector<lower=0>[3] s; }
         model { y ~ normal(a, s); }",
        &[0.1, 0.2, 0.3, 0.0, 0.5, -0.5],
        &[0.0; 3],
        &[1.0, (-1.0_f64).exp(), 1_f64.exp(), 2.0, 2.0, 2.0],
        [0.05, 0.05],
    );
    // A column that depends on no parameter is a covariate, even on the left of `~`.
    let found = assert_law(
        "a covariate with a density",
        "record { real x; real y; } parameters { real b; }
         model { x ~ std_normal(); y ~ normal(b * x, 1); }",
        &[0.3],
        &[1.7, 0.0],
        &[1.7_f64.powi(2)],
        [0.01, 0.005],
    );
    assert_eq!(found.nodes, 16);
}

// If it failed: models of several outcomes would be learnt from unbalanced gradients. Oracle: Fisher's
// information of a multivariate normal distribution.
#[test]
fn joined_normal_outcomes_have_a_law() {
    let (s, rho) = ([2.0, 0.05_f64], -0.8_f64);
    let rest = 1.0 - rho * rho;
    let of_scale = 1.0 + 1.0 / rest;
    let covariance = "[[square(s[1]), r * s[1] * s[2]], [r * s[1] * s[2], square(s[2])]]";
    let theta = [
        0.3,
        100.0,
        s[0].ln(),
        s[1].ln(),
        ((1.0 + rho) / (1.0 - rho)).ln(),
    ];
    for (variate, at) in [("y", 0.0), ("log(y)", 1.0)] {
        let found = assert_law(
            &format!("two joined normals, {variate}"),
            &format!(
                "record {{ vector[2] y; }}
                 parameters {{ vector[2] m; vector<lower=0>[2] s; real<lower=-1, upper=1> r; }}
                 model {{ {variate} ~ multi_normal(m, {covariance}); }}"
            ),
            &theta,
            &[at; 2],
            &[
                1.0 / (s[0] * s[0] * rest),
                1.0 / (s[1] * s[1] * rest),
                of_scale,
                of_scale,
                0.25 * (1.0 + rho * rho),
            ],
            EXACT_NODES,
        );
        assert_eq!(found.nodes, 24);
    }
    // A random intercept that is summed out, of four outcomes given a fifth.
    let (tau, s) = (1.5_f64, 0.7_f64);
    let whole = s * s + 4.0 * tau * tau;
    let found = assert_law(
        "four joined normals",
        "record { vector[4] y; int<lower=0, upper=1> g; }
         parameters { real a; real<lower=0> tau; real<lower=0> s; real p; }
         model {
           g ~ bernoulli_logit(p);
           y ~ multi_normal(rep_vector(a * g, 4),
             rep_matrix(square(tau), 4, 4) + diag_matrix(rep_vector(square(s), 4)));
         }",
        &[0.3, tau.ln(), s.ln(), 0.0],
        &[0.0; 5],
        &[
            0.5 * 4.0 / whole,
            0.5 * (8.0 * tau * tau / whole).powi(2),
            0.5 * ((2.0 * s * s / whole).powi(2) + 12.0),
            0.25,
        ],
        EXACT_NODES,
    );
    assert_eq!(found.nodes, 120);
}

// If it failed: of two narrow peaks that are far apart the grid would find one, and a mixture would have no law
// or a wrong one. Oracle: a fine sum over each component's range.
#[test]
fn components_of_mixtures_are_searched_for_by_themselves() {
    let log_add = |x: f64, y: f64| x.max(y) + (-(x - y).abs()).exp().ln_1p();
    let log_normal = |y: f64, m: f64, s: f64| {
        -0.5 * ((y - m) / s).powi(2) - s.ln() - 0.5 * std::f64::consts::TAU.ln()
    };
    // How far apart the components are, and by how much one is wider.
    let cases: [([f64; 4], f64); 3] = [
        ([0.0, 0.5, 100.0, 6.0], 0.02),
        ([-300.0, 1e-3, 600.0, 1e3], 0.02),
        ([0.0, 1.0, 2.5, 1.5], 0.03),
    ];
    for ([m, s, apart, wider], tolerance) in cases {
        let theta = [m, s.ln(), -0.4];
        let parts = |t: &[f64], y: f64| {
            let (w, s) = (logistic(t[2]), t[1].exp());
            [
                w.ln() + log_normal(y, t[0], s),
                (1.0 - w).ln() + log_normal(y, t[0] + apart, wider * s),
            ]
        };
        let log_p = |t: &[f64], y: f64| {
            let [a, b] = parts(t, y);
            log_add(a, b)
        };
        let mut exact = [0.0; 3];
        for (k, (middle, sd)) in [(m, s), (m + apart, wider * s)].into_iter().enumerate() {
            for step in -4000..4000 {
                let width = 2.5e-3 * sd;
                let y = middle + width * (f64::from(step) + 0.5);
                // The component's own share of the density.
                let own = parts(&theta, y)[k].exp();
                for (j, e) in exact.iter_mut().enumerate() {
                    let unit = if j == 0 { s } else { 1.0 };
                    let at = |h: f64| {
                        let mut t = theta;
                        t[j] += h * unit;
                        log_p(&t, y)
                    };
                    let g = (at(1e-5) - at(-1e-5)) / (2e-5 * unit);
                    *e += own * g * g * width;
                }
            }
        }
        let second = format!("normal_lpdf(y | m + {apart}, {wider} * s)");
        for model in [
            format!("log_mix(w, normal_lpdf(y | m, s), {second})"),
            format!("log_sum_exp(log(w) + normal_lpdf(y | m, s), log1m(w) + {second})"),
        ] {
            let found = assert_law(
                &format!("mixture of N({m}, {s}) and one {apart} away, {wider} times as wide"),
                &format!(
                    "record {{ real y; }} parameters {{ real m; real<lower=0> s; real<lower=0, upper=1> w; }}
                     model {{ target += {model}; }}"
                ),
                &theta,
                &[0.0],
                &exact,
                [tolerance, 0.01],
            );
            assert_eq!(found.nodes, 16);
        }
    }
}

// Beside another real outcome a mixture has equally weighted points. If it failed: they would all be of one
// component, 100 sds from the other. Oracle: closed forms, of components that do not overlap; the middles of ten
// equal shares have 15 % less variance than a normal variable, as those of 16 have 8 % less (`nodes.rs`).
#[test]
fn points_of_a_mixture_are_of_all_its_components() {
    let found = assert_law(
        "a normal, and a mixture of two far apart",
        "record { real x; real y; } parameters { real a; real m; real<lower=0, upper=1> w; }
         model {
           x ~ normal(a, 1);
           target += log_mix(w, normal_lpdf(y | m, 1), normal_lpdf(y | m + 100, 1));
         }",
        &[0.3, 2.0, (0.375_f64 / 0.625).ln()],
        &[0.0, 0.0],
        &[1.0, 1.0, 0.375 * 0.625],
        [0.2, 0.05],
    );
    assert_eq!(found.nodes, 16);
}

// If it failed: clipping would be centred, and widths claimed, by a law that does not hold.
#[test]
fn what_is_no_density_has_no_law() {
    let none = |source: &str| {
        let density = density(source);
        let centre = vec![0.0; density.dimension()];
        match Law::of(&density, &centre, 1) {
            Err(reason) => reason,
            Ok(_) => panic!("no law: {source}"),
        }
    };
    for censored in [
        "target += d == 1 ? exponential_lpdf(t | exp(a)) : exponential_lccdf(t | exp(a));",
        "target += d == 1 ? weibull_lpdf(t / 9 | 1.5, exp(-a)) : weibull_lccdf(t / 9 | 1.5, exp(-a));",
    ] {
        let reason = none(&format!(
            "record {{ real<lower=0> t; int<lower=0, upper=1> d; }} parameters {{ real a; }}
             model {{ {censored} }}"
        ));
        assert!(
            matches!(&reason, NoLaw::NotNormalised { outcome, .. } if outcome == "t"),
            "{reason}"
        );
    }
    let counted = none(
        "record { real<lower=0> t; int<lower=0, upper=1> d; } parameters { real a; }
         model { target += d * a - exp(a) * t; }",
    );
    assert_eq!(counted, NoLaw::NoOutcome);
    let weighted = none(
        "record { real y; real<lower=0, upper=2> w; } parameters { real a; real<lower=0> s; }
         model { target += w * normal_lpdf(y | a, s); }",
    );
    assert!(
        matches!(weighted, NoLaw::NotNormalised { .. }),
        "{weighted}"
    );
    let beside = none(
        "record { real y; real x; } parameters { real a; }
         model { y ~ normal(a, 1); target += -square(a * x); }",
    );
    assert_eq!(beside, NoLaw::NoDensity);
    // Components that may coincide, and such that may not.
    let mixture = |first: &str, second: &str| {
        let density = density(&format!(
            "record {{ real y; }}
             parameters {{ ordered[2] m; real<lower=0> s; real<lower=0, upper=1> w; }}
             model {{ target += log_mix(w, normal_lpdf(y | {first}), normal_lpdf(y | {second})); }}"
        ));
        Law::of(&density, &[0.0; 4], 1).map(|_| ())
    };
    for [first, second] in [
        ["m[1], 2", "m[2], s"],
        ["m[1], s", "m[2], s"],
        ["m[1], s", "m[1] + exp(m[2]), s"],
    ] {
        let reason = mixture(first, second).unwrap_err();
        assert!(matches!(reason, NoLaw::Mixture { .. }), "{reason}");
    }
    for second in ["m[1] + 3, s", "m[1], 10 * s", "m[1], (1 + exp(m[2])) * s"] {
        assert_eq!(mixture("m[1], s", second), Ok(()), "{second}");
    }
    assert_eq!(mixture("0, 100", "m[1], s"), Ok(()));
    // Also where it is a part of a term, as of logarithms, or of what is not zero.
    let own = "log_mix(0.3, normal_lpdf(log(y) | m[1], 1), normal_lpdf(log(y) | m[2], 1))";
    for term in [
        format!("{own} - log(y)"),
        format!("y == 0 ? log(0.5) : log(0.5) + {own} - log(y)"),
    ] {
        let reason = none(&format!(
            "record {{ real<lower=0> y; }} parameters {{ ordered[2] m; }} model {{ target += {term}; }}"
        ));
        assert!(matches!(reason, NoLaw::Mixture { .. }), "{reason}");
    }
    // Two normal variables with heavy tails; two that are cut off where both are large.
    let joined = none(
        "record { vector[2] y; } parameters { vector[2] m; }
         model { target += log_mix(0.5, multi_normal_lpdf(y | m, [[1, 0.5], [0.5, 1]]),
           multi_normal_lpdf(y | m, [[9, 0], [0, 9]])); }",
    );
    assert!(matches!(joined, NoLaw::Joined { .. }), "{joined}");
    let cut = none(
        "record { vector[2] y; } parameters { vector[2] m; }
         model { target += y[1] + y[2] < 2 ? multi_normal_lpdf(y | m, [[1, 0.5], [0.5, 1]]) : -1e9; }",
    );
    assert!(matches!(cut, NoLaw::Joined { .. }), "{cut}");
    let two = "multi_normal([a, a]', [[1, 0.5], [0.5, 1]])";
    for more in [
        "record { vector[2] x; vector[2] y; } parameters { real a; } model { x ~ ?; y ~ ?; }",
        "record { real x; vector[2] y; } parameters { real a; } model { x ~ normal(a, 1); y ~ ?; }",
    ] {
        let reason = none(&more.replace('?', two));
        assert!(matches!(reason, NoLaw::JoinedAndMore { .. }), "{reason}");
    }
    let double = none(
        "record { vector[2] y; } parameters { vector[2] m; real<lower=0> s; }
         model { target += 2 * multi_normal_lpdf(y | m, [[square(s), 0], [0, 1]]); }",
    );
    assert!(
        matches!(&double, NoLaw::NotNormalised { outcome, .. } if outcome == "y.1`, `y.2"),
        "{double}"
    );
}

// At parameters from the prior and covariates within these bounds, counts spread over many orders of
// magnitude, and the grid misses up to 2 % of their mass. If it failed: the default would learn from second
// derivatives instead, with unbalanced clipping, and most runs at epsilon 1 would be called a problem.
#[test]
fn overdispersed_counts_with_many_covariates_have_a_law() {
    let counts = density(
        "record { int<lower=0, upper=100> y; vector<lower=-4, upper=4>[10] x; }
         parameters { real a; vector[10] b; real<lower=0> phi; }
         model { a ~ normal(0, 2); b ~ normal(0, 1); phi ~ exponential(1);
           y ~ neg_binomial_2_log(a + dot_product(x, b), phi); }",
    );
    assert!(Law::of(&counts, &[0.0; 12], 1).is_ok());
}

#[test]
fn a_record_without_a_law_is_counted() {
    let model = density(
        "record { int<lower=0> y; real x; } parameters { real a; }
         model { y ~ poisson_log(a + x); }",
    );
    for x in [f64::NAN, 1e3, f64::INFINITY, 25.0] {
        let found = of_record(&model, &[0.5], &[0.0, x]);
        assert_eq!((found.lost, found.probability), (2, 0.0), "{x}");
        assert_eq!(found.mean, [0.0]);
    }
}

// The gradient at the record's own outcome is that of the density.
#[test]
fn observed_gradients_are_those_of_the_row_program() {
    let model = density(
        "record { int<lower=0> y; real x; int<lower=1, upper=2> g; }
         parameters { real a; vector[2] b; real<lower=0> phi; }
         model { y ~ neg_binomial_2_log(a * x + b[g], phi); }",
    );
    let theta = [0.5, 0.1, -0.2, 0.3];
    let raw = vec![
        vec![3.0, 0.0, 7.0],
        vec![0.2, -0.4, 1.0],
        vec![1.0, 2.0, 2.0],
    ];
    let (columns, _) = model.load_columns(&raw, 3);
    let expected = model.record_gradients(&theta, &columns, 3);
    let law = Law::of(&model, &[0.0; 4], 1).unwrap();
    let block: Vec<&[f64]> = law.columns().iter().map(|&c| raw[c].as_slice()).collect();
    let program = law.program();
    let places: Vec<_> = program.interface().collect();
    let mut scratch = program.scratch(&model.values(&theta, &places).concat());
    let each = program.gradients(&block, 3, &law.jacobian(&theta), &mut scratch);
    for i in 0..3 {
        for j in 0..4 {
            let (a, b) = (each[j * BLOCK + i], expected[i * 4 + j]);
            assert!((a - b).abs() < 1e-12, "{i} {j}: {a} for {b}");
        }
    }
}

// Nodes may be kept while the same memory serves other records. If it failed: a covariate that the
// model transforms would be another record's.
#[test]
fn nodes_that_were_kept_are_those_of_their_records() {
    let model = density(
        "record { int<lower=0> y; real<lower=0> x; } parameters { real a; real b; }
         model { y ~ poisson_log(a + b * log1p(x) + 0.1 * b * (x - 3)); }",
    );
    let theta = [0.5, 0.1];
    let law = Law::of(&model, &[0.0; 2], 1).unwrap();
    let jacobian = law.jacobian(&theta);
    let block = |x: [f64; 2]| -> Vec<Vec<f64>> {
        let raw = [vec![0.0; 2], x.to_vec()];
        law.columns().iter().map(|&c| raw[c].clone()).collect()
    };
    let gradients = |between: bool| {
        let (own, other) = (block([1.0, 5.0]), block([2.0, 0.5]));
        let mut scratch = law.scratch(&theta);
        let mut each = Vec::new();
        let own: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
        let other: Vec<&[f64]> = other.iter().map(Vec::as_slice).collect();
        let located = law.locate(&own, 2, &mut scratch);
        if between {
            law.locate(&other, 2, &mut scratch);
        }
        let pull = Pull::Whole(&jacobian);
        law.scores_at(&located, &own, 2, pull, &mut scratch, |_, node| {
            each.extend_from_slice(node.gradients);
        });
        each
    };
    assert_eq!(gradients(false), gradients(true));
}

/// The names of the outcomes that have a standard variable.
fn standards(source: &str) -> Vec<String> {
    let density = density(source);
    let d = density.dimension();
    let law = Law::of(&density, &vec![0.0; d], 1).unwrap();
    law.standards().map(str::to_owned).collect()
}

// If it failed: laws of outcomes that are not alike would be taken for one, and answers would be off; or a
// search would be made for each record where one is enough.
#[test]
fn records_that_move_and_scale_one_law_are_told_from_others() {
    let found = |outcome: &str, model: &str| {
        standards(&format!(
            "record {{ {outcome}; real x; real<lower=0> w; }} parameters {{ real a; real b; real<lower=0> s; }}
             model {{ a ~ normal(0, 1); s ~ lognormal(0, 0.3); {model} }}"
        ))
    };
    for (outcome, model) in [
        ("real y", "y ~ normal(a + b * x, s);"),
        ("real y", "y ~ normal(a, s);"),
        ("real y", "y ~ student_t(3 + s, a + b * x, s);"),
        ("real y", "y ~ normal(a + b * x, s * sqrt(1 + w));"),
        ("real y", "y ~ logistic(a + b * x, s);"),
        (
            "real y",
            "target += log_mix(0.3, normal_lpdf(y | a, s), normal_lpdf(y | a + 9, 2 * s));",
        ),
        ("real<lower=0> y", "y ~ lognormal(a + b * x, s);"),
        (
            "real<lower=0> y",
            "log(y) ~ normal(a + b * x, exp(0.1 * x));",
        ),
        ("real<lower=0> y", "y ~ exponential(exp(a + b * x));"),
        ("real<lower=0> y", "y ~ gamma(2 + s, exp(a + b * x));"),
        ("real<lower=0> y", "y ~ weibull(1 + s, exp(a + b * x));"),
        ("real<lower=-9, upper=9> y", "y ~ normal(a + b * x, s);"),
    ] {
        assert_eq!(found(outcome, model), ["y"], "{outcome}: {model}");
    }
    for (outcome, model) in [
        // The shape differs.
        ("real y", "y ~ student_t(1 + w, a + b * x, s);"),
        ("real<lower=0> y", "y ~ gamma(1 + w, exp(a));"),
        (
            "real<lower=0, upper=1> y",
            "y ~ beta_proportion(inv_logit(a + b * x), 5);",
        ),
        (
            "real y",
            "target += log_mix(0.3, normal_lpdf(y | a * x, s), normal_lpdf(y | a * w, 2 * s));",
        ),
        (
            "real y",
            "target += x > 0 ? normal_lpdf(y | a, s) : student_t_lpdf(y | 4, a, s);",
        ),
        // No law has been moved by a bound.
        ("real<lower=0> y", "y ~ normal(a + b * x, s) T[0, ];"),
        ("int<lower=0> y", "y ~ poisson_log(a + b * x);"),
    ] {
        assert_eq!(found(outcome, model), [""; 0], "{outcome}: {model}");
    }
}

// Oracle: the grid of each record by itself. If it failed: nodes would be those of another place or width.
#[test]
fn nodes_of_a_law_that_is_moved_are_those_of_each_record() {
    for (outcome, model) in [
        ("real y", "y ~ student_t(4, a + b * x, s);"),
        ("real<lower=0> y", "y ~ lognormal(a + b * x, s);"),
        ("real<lower=0> y", "y ~ gamma(2 + s, exp(a + b * x));"),
    ] {
        let density = density(&format!(
            "record {{ {outcome}; real x; }} parameters {{ real a; real b; real<lower=0> s; }} model {{ {model} }}"
        ));
        let law = Law::of(&density, &[0.0; 3], 1).unwrap();
        let each = Law::of(&density, &[0.0; 3], 1).unwrap().without_standards();
        let x = [-2.0, -0.3, 0.0, 1.1, 3.0];
        let columns: Vec<&[f64]> = law.columns().iter().map(|_| &x[..]).collect();
        let theta = [0.7, -0.4, -0.9];
        let [own, other] = [&law, &each].map(|law| {
            let located = law.locate(&columns, x.len(), &mut law.scratch(&theta));
            let of_record = |i: usize| -> Vec<f64> {
                let nodes = (0..law.nodes())
                    .flat_map(|j| located.outcomes(j).map(|v| v[i]).collect::<Vec<_>>());
                nodes.collect()
            };
            (0..x.len()).map(of_record).collect::<Vec<_>>()
        });
        for (own, other) in own.iter().zip(&other) {
            for k in 1..own.len() - 1 {
                let off = (own[k] - other[k]).abs() / (other[k + 1] - other[k - 1]);
                assert!(off < 0.01, "{model}: {own:?} {other:?}");
            }
        }
    }
}

// Oracle: the record by itself, to the bit. If it failed: what is released of one record would depend on another, and
// sums would move by more than is charged.
#[test]
fn nodes_of_a_record_are_the_same_whoever_is_beside_it() {
    for (outcome, model, standards, singles) in [
        ("real y", "y ~ student_t(4, a + b * x, s * exp(x));", 1, 0),
        ("int<lower=0> y", "y ~ poisson_log(a + b * x);", 0, 1),
        (
            "int<lower=0> y",
            "y ~ neg_binomial_2_log(a + b * x, s);",
            0,
            1,
        ),
        (
            "vector[2] y",
            "y ~ multi_normal([a + b * x, a], [[1 + square(x), s], [s, 2]]);",
            0,
            0,
        ),
        (
            "real y",
            "target += log_mix(0.1, normal_lpdf(y | a + b * x, 9 * s), normal_lpdf(y | a + b * x, s * exp(x)));",
            0,
            0,
        ),
    ] {
        let density = density(&format!(
            "record {{ {outcome}; real x; }} parameters {{ real a; real b; real<lower=0> s; }} model {{ {model} }}"
        ));
        let law = Law::of(&density, &[0.0; 3], 1).unwrap();
        assert_eq!(law.standards().count(), standards, "{model}");
        assert_eq!(law.singles().count(), singles, "{model}");
        let theta = [0.7, -0.4, -0.9];
        let jacobian = law.jacobian(&theta);
        // Probabilities, and gradients in place of values.
        let nodes = |x: &[f64], scratch: &mut LawScratch| -> Vec<f64> {
            let columns: Vec<&[f64]> = law.columns().iter().map(|_| x).collect();
            let mut found = Vec::new();
            law.scores(&columns, x.len(), &jacobian, scratch, |_, node| {
                found.push(node.probabilities[0]);
                found.extend(node.gradients.iter().step_by(BLOCK));
            });
            found
        };
        let alone = nodes(&[1.3], &mut law.scratch(&theta));
        assert!(alone[0] > 0.0, "{model}: {alone:?}");
        let later = &mut law.scratch(&theta);
        for others in [[1.3, -9.0, 60.0], [1.3, f64::NAN, 0.0], [1.3, 1.31, 1.29]] {
            assert_eq!(nodes(&others, &mut law.scratch(&theta)), alone, "{model}");
            // After others, too.
            nodes(&others[1..], later);
            assert_eq!(nodes(&others, later), alone, "{model}");
        }
    }
}

/// The shape of the negative binomial models below, and the share of the exposure.
const SHAPE: f64 = 1.2;
const EXPOSURE: f64 = 0.8;

type OfPredictor = fn(f64) -> f64;

/// Models of a count y, with columns e > 0 and x, and parameters a, b and s > 0, that see the record through a single
/// number; and the information of a where the linear predictor is eta, s is [`SHAPE`] and e is [`EXPOSURE`].
const OF_ONE_NUMBER: [(&str, OfPredictor); 6] = [
    ("y ~ poisson_log(log(e) + a + b * x);", |eta| {
        EXPOSURE * eta.exp()
    }),
    ("y ~ poisson(e * exp(a + b * x));", |eta| {
        EXPOSURE * eta.exp()
    }),
    ("y ~ neg_binomial_2_log(a + b * x, s);", |eta| {
        eta.exp() / (1.0 + eta.exp() / SHAPE)
    }),
    ("y ~ neg_binomial_2(e * exp(a + b * x), s);", |eta| {
        EXPOSURE * eta.exp() / (1.0 + EXPOSURE * eta.exp() / SHAPE)
    }),
    (
        "target += y == 0 ? bernoulli_logit_lpmf(0 | a + b * x)
            : bernoulli_logit_lpmf(1 | a + b * x) + poisson_lpmf(y | exp(s)) - log1m_exp(-exp(s));",
        |eta| logistic(eta) * logistic(-eta),
    ),
    ("y ~ binomial_logit(200, a + b * x);", |eta| {
        200.0 * logistic(eta) * logistic(-eta)
    }),
];

fn of_counts(model: &str) -> Density {
    density(&format!(
        "record {{ int<lower=0, upper=100000> y; real<lower=0> e; real x; }}
         parameters {{ real a; real b; real<lower=0> s; }}
         model {{ a ~ normal(0, 1); b ~ normal(0, 1); s ~ lognormal(0, 1); {model} }}"
    ))
}

// If it failed: the law of counts would be searched for on each record where one number would do, or be taken for a
// function of one number where it is one of two.
#[test]
fn counts_that_see_the_record_through_one_number_are_told_from_others() {
    let singles = |model: &str| {
        let density = of_counts(model);
        Law::of(&density, &[0.0; 3], 1).unwrap().singles().count()
    };
    for (model, _) in OF_ONE_NUMBER {
        assert_eq!(singles(model), 1, "{model}");
    }
    for model in [
        "y ~ neg_binomial_2_log(a + b * x, s * e);",
        "target += log_mix(inv_logit(a * x), poisson_lpmf(y | e), poisson_lpmf(y | 3 * e));",
    ] {
        assert_eq!(singles(model), 0, "{model}");
    }
}

// Oracle: closed forms. Means from .01 to 10,000. The bounds are what a search for each record reaches: of negative
// binomial counts, some are off by 6 %. If it failed: gradients would not be balanced, so that clipping
// would move the answer, or the information would be another.
#[test]
fn nodes_of_a_lattice_have_the_information_of_counts() {
    let theta = [0.7, 1.0, SHAPE.ln()];
    let x: Vec<f64> = (0..27).map(|i| -5.3 + 0.5173 * f64::from(i)).collect();
    for (model, information) in OF_ONE_NUMBER {
        let density = of_counts(model);
        let law = Law::of(&density, &[0.0; 3], 1).unwrap();
        let columns: Vec<Vec<f64>> = (law.columns().iter())
            .map(|&c| {
                if c == 1 {
                    vec![EXPOSURE; x.len()]
                } else {
                    x.clone()
                }
            })
            .collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        // Probability, and mean and square of the score of a.
        let mut found = vec![[0.0; 3]; x.len()];
        let scratch = &mut law.scratch(&theta);
        let lost = law.scores(
            &columns,
            x.len(),
            &law.jacobian(&theta),
            scratch,
            |_, node| {
                for (i, found) in found.iter_mut().enumerate() {
                    let (p, score) = (node.probabilities[i], node.gradients[i]);
                    let each = [p, p * score, p * score * score];
                    found.iter_mut().zip(each).for_each(|(sum, x)| *sum += x);
                }
            },
        );
        assert_eq!(lost, 0, "{model}");
        let mut errors = 0.0;
        for (x, [probability, mean, square]) in x.iter().zip(&found) {
            let exact = information(theta[0] + theta[1] * x);
            let off = square / exact - 1.0;
            assert!(
                (probability - 1.0).abs() < 1e-9,
                "{model} {x}: {probability}"
            );
            assert!(
                mean.abs() < 0.02 * exact.sqrt(),
                "{model} {x}: {mean} {exact}"
            );
            assert!(off.abs() < 0.07, "{model} {x}: {square} {exact}");
            errors += off * off / found.len() as f64;
        }
        assert!(errors.sqrt() < 0.025, "{model}: {errors}");
    }
}

// A regression on a raw column with a vague prior: outcomes are expected to be thousands of their sds away, where
// no grid finds them to enough digits. Oracle: the information of a normal mean. If it failed: models would be
// said to have no law because of the units of a column, and gradients would be clipped without balance.
#[test]
fn means_that_are_far_off_have_a_law() {
    let theta: [f64; 3] = [1.4, 0.0015, -0.6];
    let variance = (2.0 * theta[2]).exp();
    assert_law(
        "far means",
        "record { real<lower=0, upper=4> y; real<lower=400, upper=1600> x; }
         parameters { real a; real b; real<lower=0> s; }
         model { a ~ normal(2, 2); b ~ normal(0, 1); s ~ exponential(1); y ~ normal(a + b * x, s); }",
        &theta,
        &[0.0, 1000.0],
        &[1.0 / variance, 1e6 / variance, 2.0],
        [0.02, 0.02],
    );
}

// Costs where there are any, with a scale as wide as a search may begin with: a part in a thousand of them is beyond
// the largest size of a value. Oracle: the information of a normal mean and scale, times the probability of any. If it
// failed: records far out would have no law, and steps from what is left be hundreds of sds long.
#[test]
fn the_far_tail_of_a_wide_outcome_may_be_beyond_all_values() {
    let theta: [f64; 3] = [0.0, 6.0, 1.5];
    let variance = (2.0 * theta[2]).exp();
    assert_law(
        "wide costs",
        "record { real<lower=0, upper=1000> y; }
         parameters { real a; real b; real<lower=0> s; }
         model { a ~ normal(0, 2); b ~ normal(3, 2); s ~ exponential(1);
           target += y > 0 ? log_inv_logit(a) + lognormal_lpdf(y | b, s) : log1m_inv_logit(a); }",
        &theta,
        &[1.0],
        &[0.25, 0.5 / variance, 1.0],
        [0.05, 0.05],
    );
}

// Oracle: a sweep over all instructions. If it failed: the density of an outcome would be that of another value.
#[test]
fn a_sweep_again_has_the_values_of_a_sweep() {
    let density = density(
        "record { real y; real x; int<lower=1, upper=3> g; } parameters { real b; vector[3] a; real<lower=0> s; }
         model { y ~ student_t(4 + a[g], a[g] + b * x, s * (1 + square(y - x))); }",
    );
    let theta = [0.3, -0.2, 0.5, 1.0, 0.1];
    let (program, sources) = super::law::compiled(density.model(), &[]);
    let interface: Vec<_> = program.interface().collect();
    let z = density.values(&theta, &interface).concat();
    let values = [[0.4, -1.2], [1.5, 0.2], [2.0, 3.0]];
    let columns: Vec<&[f64]> = sources.iter().map(|&c| &values[c][..]).collect();
    let mut others = columns.clone();
    let y = sources.iter().position(|&c| c == 0).unwrap();
    others[y] = &[-0.7, 2.5];
    let (mut again, mut once) = (program.scratch(&z), program.scratch(&z));
    let pull = Pull::Whole(&Jacobian::identity(z.len()));
    let changed = program.dependents(&[y]);
    program.forward(&columns, 2, &mut again);
    program.forward_again(&changed, &others, 2, &mut again);
    program.forward(&others, 2, &mut once);
    for root in 0..program.outputs() {
        let own = program.output(root, &others, 2, &again);
        assert_eq!(own, program.output(root, &others, 2, &once));
        assert_ne!(own, [0.0; 2]);
    }
    let (mut again, mut once) = (program.scratch(&z), program.scratch(&z));
    let mut picked = Picked::new();
    program.pulled(&columns, 2, (pull, None), &mut again, &mut picked);
    let own = program.pulled(&others, 2, (pull, Some(&changed)), &mut again, &mut picked);
    assert_eq!(
        own,
        program.pulled(&others, 2, (pull, None), &mut once, &mut picked)
    );
}

// Oracle: Fisher's information of an inverse Gaussian. If it failed: a density of one's own would be learnt from
// unbalanced gradients, although the model says that it is one. Of one that is made of another's logarithm, the
// outcome is the column and not its logarithm.
#[test]
fn densities_of_ones_own_have_a_law() {
    let (mean, shape) = (1.5_f64, 4.0_f64);
    let lognormal = "return normal_lpdf(log(y) | log(m) - 0.5 / s, sqrt(1 / s)) - log(y);";
    let inverse =
        "return 0.5 * log(s / (2 * pi() * y^3)) - s * square(y - m) / (2 * square(m) * y);";
    for (body, exact) in [
        (inverse, [shape / mean, 0.5]),
        (lognormal, [shape, 0.5 + 0.25 / shape]),
    ] {
        for model in ["y ~ own(m, s);", "target += own_lpdf(y | m, s);"] {
            assert_law(
                body,
                &format!(
                    "functions {{ real own_lpdf(real y, real m, real s) {{ {body} }} }}
                     record {{ real<lower=0> y; }} parameters {{ real<lower=0> m; real<lower=0> s; }}
                     model {{ {model} }}"
                ),
                &[mean.ln(), shape.ln()],
                &[1.0],
                &exact,
                [0.02, 0.01],
            );
        }
    }
}

// Shapes of a beta density far below 1 put most of its mass nearer to 0 or 1 than numbers are, at parameters that
// a usual prior allows. If it failed: such regressions would have no law.
#[test]
fn shares_with_usual_priors_have_a_law() {
    for (parameters, terms) in [
        ("", "y ~ beta(m * phi, (1 - m) * phi);"),
        (
            "real<lower=0, upper=1> z;",
            "target += y == 0 ? log(z) : log1m(z) + beta_lpdf(y | m * phi, (1 - m) * phi);",
        ),
    ] {
        let shares = density(&format!(
            "record {{ real<lower=0, upper=1> y; real<lower=-3, upper=3> x; }}
             parameters {{ vector[2] b; real<lower=0> phi; {parameters} }}
             model {{
               b ~ normal(0, 2); phi ~ gamma(2, 0.1); real m = inv_logit(b[1] + b[2] * x);
               {terms}
             }}"
        ));
        let centre = vec![0.0; shares.dimension()];
        let law = Law::of(&shares, &centre, 1).map(|_| ());
        assert_eq!(law, Ok(()), "{terms}");
    }
}

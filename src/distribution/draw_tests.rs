//! Draws compared with the densities, which are checked by the fixtures.
//!
//! Every test has its seed; a wrong sampler, not chance, fails it. At these thresholds chance would
//! fail fewer than one of 1e7 runs of the whole file.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::fixture_tests::density_rows;
use super::*;

const DRAWS: usize = 40_000;

/// Arguments: elements, rows, columns.
type Given = Vec<(Vec<f64>, usize, usize)>;

fn numbers(values: &[f64]) -> Given {
    values.iter().map(|&x| (vec![x], 1, 1)).collect()
}

fn vector(values: &[f64]) -> (Vec<f64>, usize, usize) {
    (values.to_vec(), values.len(), 1)
}

fn containers(given: &Given) -> Vec<Container<'_, f64>> {
    given
        .iter()
        .map(|(elements, rows, columns)| Container {
            elements,
            rows: *rows,
            columns: *columns,
        })
        .collect()
}

fn density(name: &str, y: f64, given: &Given) -> f64 {
    let family = lookup(name).expect("a family");
    log_density(
        family,
        &mut Numbers,
        &Container::vector(&[y]),
        &containers(given),
    )
    .exp()
}

fn draws(name: &str, given: &Given, seed: u64) -> Vec<Vec<f64>> {
    let family = lookup(name).expect("a family");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let arguments = containers(given);
    (0..DRAWS)
        .map(|_| draw(family, &mut rng, &arguments).expect("a draw"))
        .collect()
}

fn of_numbers(name: &str, given: &Given, seed: u64) -> Vec<f64> {
    draws(name, given, seed).into_iter().map(|d| d[0]).collect()
}

/// Pearson's statistic of counts against probabilities, where the last cell is the rest of both;
/// fails beyond the 1e-9 quantile (Wilson and Hilferty 1931). A cell of probability 0.05 that is
/// off by a tenth is found.
fn fits(what: &str, counts: &[usize], probabilities: &[f64]) {
    let inside: f64 = probabilities.iter().sum();
    let counted: usize = counts.iter().sum();
    assert!(
        inside <= 1.0 + 1e-6,
        "{what}: probabilities add up to {inside}"
    );
    let cell = |observed: usize, p: f64| {
        let expected = p * DRAWS as f64;
        let square = (observed as f64 - expected).powi(2);
        // An almost empty rest may have almost no counts.
        square / expected.max(1.0)
    };
    let statistic: f64 = counts
        .iter()
        .zip(probabilities)
        .map(|(&c, &p)| cell(c, p))
        .sum::<f64>()
        + cell(DRAWS - counted, (1.0 - inside).max(0.0));
    let freedom = counts.len() as f64;
    let part = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - part + 6.0 * part.sqrt()).powi(3);
    assert!(
        statistic < limit,
        "{what}: {statistic:.1} above {limit:.1}; counts {counts:?}, expected {:?}",
        probabilities
            .iter()
            .map(|p| (p * DRAWS as f64).round())
            .collect::<Vec<_>>()
    );
}

/// Draws of reals against a density, between the quantiles of other draws.
fn reals_fit(what: &str, drawn: &[f64], others: &[f64], density: &dyn Fn(f64) -> f64) {
    let mut sorted = others.to_vec();
    sorted.sort_by(f64::total_cmp);
    let edges: Vec<f64> = (1..20).map(|k| sorted[k * sorted.len() / 20]).collect();
    let simpson = |low: f64, high: f64| {
        let panels = 400;
        let h = (high - low) / f64::from(panels);
        let sum: f64 = (0..=panels)
            .map(|i| {
                let weight = match i {
                    i if i == 0 || i == panels => 1.0,
                    i if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * density(low + h * f64::from(i))
            })
            .sum();
        sum * h / 3.0
    };
    let cells = edges.windows(2);
    let probabilities: Vec<f64> = cells.clone().map(|e| simpson(e[0], e[1])).collect();
    let counts: Vec<usize> = cells
        .map(|e| drawn.iter().filter(|&&y| y >= e[0] && y < e[1]).count())
        .collect();
    fits(what, &counts, &probabilities);
}

/// Draws of counts against a probability mass.
fn counts_fit(what: &str, drawn: &[f64], mass: &dyn Fn(f64) -> f64) {
    let low = drawn.iter().copied().fold(f64::INFINITY, f64::min);
    let high = drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(high - low < 1e5, "{what}: from {low} to {high}");
    // Neighbours share a cell until it is large enough.
    let (mut counts, mut probabilities) = (vec![0], vec![0.0]);
    for k in low as i64..=high as i64 {
        let y = k as f64;
        let last = counts.len() - 1;
        counts[last] += drawn.iter().filter(|&&d| d == y).count();
        probabilities[last] += mass(y);
        if probabilities[last] * DRAWS as f64 >= 200.0 {
            counts.push(0);
            probabilities.push(0.0);
        }
    }
    counts.pop();
    probabilities.pop();
    fits(what, &counts, &probabilities);
}

/// Arguments for every family whose draws are numbers: ordinary ones, and those for which samplers
/// tend to fail.
fn arguments_of(name: &str) -> Vec<Given> {
    let several = |list: &[&[f64]]| list.iter().map(|values| numbers(values)).collect();
    match name {
        "normal" | "cauchy" | "double_exponential" | "logistic" | "gumbel" => {
            several(&[&[1.0, 2.0], &[1e6, 1e-3]])
        }
        "std_normal" => vec![Vec::new()],
        "student_t" => several(&[&[4.0, 1.0, 2.0], &[0.7, 0.0, 1.0], &[1e9, 0.0, 1.0]]),
        "lognormal" => several(&[&[0.3, 0.5]]),
        "exponential" => several(&[&[0.1], &[1e8]]),
        "gamma" | "inv_gamma" => several(&[&[2.5, 3.0], &[0.4, 1.0], &[1e8, 1e8], &[1.0, 2.0]]),
        "chi_square" | "inv_chi_square" => several(&[&[3.0], &[0.8]]),
        "scaled_inv_chi_square" => several(&[&[3.0, 2.0]]),
        "weibull" | "frechet" => several(&[&[1.7, 3.0], &[0.6, 1.0]]),
        "rayleigh" => several(&[&[2.0]]),
        "pareto" => several(&[&[2.0, 1.5], &[1.0, 1e4]]),
        "beta" => several(&[&[2.0, 3.0], &[0.3, 0.4], &[1e8, 2e8], &[30.0, 0.5]]),
        "beta_proportion" => several(&[&[0.3, 5.0], &[0.6, 0.7]]),
        "uniform" => several(&[&[-2.0, 5.0]]),
        "von_mises" => several(&[
            &[0.5, 2.0],
            &[0.0, 1e-7],
            &[1.0, 1e8],
            &[-1.0, 0.05],
            &[0.3, 60.0],
        ]),
        "skew_normal" => several(&[&[1.0, 2.0, 3.0], &[0.0, 1.0, -0.7]]),
        "exp_mod_normal" => several(&[&[1.0, 0.5, 2.0]]),
        "bernoulli" => several(&[&[0.3], &[1.0]]),
        "bernoulli_logit" => several(&[&[-0.8], &[800.0]]),
        "binomial" => several(&[&[12.0, 0.3], &[1000.0, 0.97], &[1e9, 1e-8], &[5.0, 0.0]]),
        "binomial_logit" => several(&[&[12.0, -0.4], &[1e9, -17.0], &[1e9, 17.0]]),
        "beta_binomial" => several(&[&[12.0, 2.0, 3.0], &[7.0, 0.2, 0.1]]),
        "poisson" => several(&[&[3.5], &[0.02], &[400.0], &[0.0]]),
        "poisson_log" => several(&[&[1.1], &[-3.0]]),
        "neg_binomial_2" => several(&[&[3.5, 2.0], &[3.5, 1e9], &[20.0, 0.5]]),
        "neg_binomial_2_log" => several(&[&[1.1, 2.0]]),
        "neg_binomial" => several(&[&[2.0, 0.5]]),
        "categorical" => vec![vec![vector(&[0.2, 0.5, 0.25, 0.05])], vec![vector(&[1.0])]],
        "categorical_logit" => vec![vec![vector(&[0.2, -1.5, 3.0, 0.0])]],
        "ordered_logistic" | "ordered_probit" => {
            vec![vec![(vec![0.3], 1, 1), vector(&[-1.0, 0.5, 2.0])]]
        }
        "normal_id_glm" | "bernoulli_logit_glm" | "poisson_log_glm" | "neg_binomial_2_log_glm" => {
            let mut given = vec![
                vector(&[0.5, -0.25]),
                (vec![0.3], 1, 1),
                vector(&[1.0, 2.0]),
            ];
            if name == "normal_id_glm" || name == "neg_binomial_2_log_glm" {
                given.push((vec![1.5], 1, 1));
            }
            vec![given]
        }
        _ => Vec::new(),
    }
}

#[test]
fn draws_follow_their_densities() {
    for family in FAMILIES.iter().filter(|f| f.variate.is_scalar()) {
        let name = family.name;
        let sets = arguments_of(name);
        assert!(!sets.is_empty(), "no arguments for the draws of {name}");
        for (k, given) in sets.iter().enumerate() {
            let what = format!("{name}{:?}", given.iter().map(|g| &g.0).collect::<Vec<_>>());
            let drawn = of_numbers(name, given, 100 + k as u64);
            let density_at = |y: f64| density(name, y, given);
            if family.variate.is_int() {
                counts_fit(&what, &drawn, &density_at);
            } else {
                reals_fit(&what, &drawn, &of_numbers(name, given, 7), &density_at);
            }
        }
    }
}

#[test]
fn draws_of_vectors_follow_their_margins() {
    // Multinomial counts are binomial one by one.
    let theta = [0.2, 0.5, 0.3];
    let given = vec![vector(&theta), (vec![20.0], 1, 1)];
    let drawn = draws("multinomial", &given, 1);
    for (k, &chance) in theta.iter().enumerate() {
        let one: Vec<f64> = drawn.iter().map(|d| d[k]).collect();
        let margin = numbers(&[20.0, chance]);
        counts_fit("multinomial", &one, &|y| density("binomial", y, &margin));
    }
    assert!(drawn.iter().all(|d| d.iter().sum::<f64>() == 20.0));
    // Dirichlet shares are beta one by one, and in sums.
    let alpha = [0.4, 2.0, 7.0];
    let given = vec![vector(&alpha)];
    let (drawn, others) = (draws("dirichlet", &given, 2), draws("dirichlet", &given, 3));
    let share = |set: &[Vec<f64>], parts: &[usize]| -> Vec<f64> {
        set.iter()
            .map(|d| parts.iter().map(|&p| d[p]).sum())
            .collect()
    };
    for parts in [&[0][..], &[1], &[2], &[0, 2]] {
        let a: f64 = parts.iter().map(|&p| alpha[p]).sum();
        let margin = numbers(&[a, 9.4 - a]);
        reals_fit(
            "dirichlet",
            &share(&drawn, parts),
            &share(&others, parts),
            &|y| density("beta", y, &margin),
        );
    }
    // Sums of multivariate normals are normal.
    let covariance = (vec![4.0, 1.0, 1.0, 2.0], 2, 2);
    let factor = (vec![2.0, 0.5, 0.0, 1.75f64.sqrt()], 2, 2);
    for (name, matrix) in [
        ("multi_normal", covariance),
        ("multi_normal_cholesky", factor),
    ] {
        let given = vec![vector(&[1.0, -3.0]), matrix];
        let (drawn, others) = (draws(name, &given, 4), draws(name, &given, 5));
        for (weights, mean, variance) in [
            ([1.0, 0.0], 1.0, 4.0),
            ([0.0, 1.0], -3.0, 2.0),
            ([1.0, -1.0], 4.0, 4.0),
        ] {
            let sum = |set: &[Vec<f64>]| -> Vec<f64> {
                set.iter()
                    .map(|d| weights[0] * d[0] + weights[1] * d[1])
                    .collect()
            };
            let margin = numbers(&[mean, f64::sqrt(variance)]);
            reals_fit(name, &sum(&drawn), &sum(&others), &|y| {
                density("normal", y, &margin)
            });
        }
    }
}

/// Every correlation of an LKJ matrix of size K has on -1..1 the distribution that beta(eta + K/2 -
/// 1, eta + K/2 - 1) has on 0..1.
#[test]
fn correlations_follow_their_margins() {
    let given = numbers(&[4.0, 1.5]);
    let margin = numbers(&[2.5, 2.5]);
    for name in ["lkj_corr", "lkj_corr_cholesky"] {
        let correlation = |set: Vec<Vec<f64>>, i: usize, j: usize| -> Vec<f64> {
            set.iter()
                .map(|m| {
                    let r = if name == "lkj_corr" {
                        m[i + 4 * j]
                    } else {
                        (0..4).map(|k| m[i + 4 * k] * m[j + 4 * k]).sum()
                    };
                    0.5 * (1.0 + r)
                })
                .collect()
        };
        for (i, j) in [(1, 0), (3, 0), (3, 2), (2, 1)] {
            let drawn = correlation(draws(name, &given, 11), i, j);
            let others = correlation(draws(name, &given, 12), i, j);
            reals_fit(name, &drawn, &others, &|y| density("beta", y, &margin));
        }
    }
}

/// At the arguments of the fixtures, the extreme ones among them, draws are
/// finite and where the density is not zero; or too large, which is an error.
#[test]
fn extreme_arguments_give_draws_or_a_reason() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for row in density_rows() {
        let family = FAMILIES[row.family];
        if family.draw_arguments.is_some() {
            continue; // other arguments than the density's
        }
        let given: Given = row.given[1..].to_vec();
        for _ in 0..20 {
            let drawn = match draw(row.family, &mut rng, &containers(&given)) {
                Ok(drawn) => drawn,
                Err(DrawError::TooLarge(_)) => continue,
                Err(error) => panic!("{}{given:?}: {error}", family.name),
            };
            let variate = Container::vector(&drawn);
            let density = log_density(row.family, &mut Numbers, &variate, &containers(&given));
            // Where the draw rounds to the end of the support, or its square to
            // infinity, the density is zero or infinite.
            assert!(
                !density.is_nan() && drawn.iter().all(|y| !y.is_nan()),
                "{}{given:?} gives {drawn:?}, of log density {density}",
                family.name
            );
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_said() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut said = |name: &str, given: &Given| {
        draw(
            lookup(name).expect("a family"),
            &mut rng,
            &containers(given),
        )
        .expect_err("no draw")
        .to_string()
    };
    assert_eq!(
        said("normal", &numbers(&[0.0, -1.0])),
        "`sigma` of `normal` is -1, but must be: sigma > 0 (standard deviation)"
    );
    assert_eq!(
        said("normal", &numbers(&[0.0])),
        "`normal` is given 1 arguments, not 2"
    );
    assert_eq!(
        said("binomial", &numbers(&[2.5, 0.5])),
        "`N` of `binomial` is 2.5, but must be: N is 0, 1, 2, ... (trials)"
    );
    assert_eq!(
        said("uniform", &numbers(&[1.0, 0.0])),
        "`beta` of `uniform` is 0, but must be: beta > alpha (upper end)"
    );
    assert_eq!(
        said("categorical", &vec![vector(&[0.5, 0.4])]),
        "`theta` of `categorical` is of sum 0.9, but must be: theta is a simplex (chances of the categories)"
    );
    assert_eq!(
        said("categorical", &vec![vector(&[])]),
        "`theta` of `categorical` is empty: it needs at least one element"
    );
    assert_eq!(
        said("poisson_log", &numbers(&[900.0])),
        "draws of this `poisson_log` are too large"
    );
    let matrix = (vec![1.0, 2.0, 2.0, 1.0], 2, 2);
    assert_eq!(
        said("multi_normal", &vec![vector(&[0.0, 0.0]), matrix.clone()]),
        "`Sigma` of `multi_normal` is not positive definite, but must be: Sigma is a covariance matrix (covariance matrix)"
    );
    assert_eq!(
        said("multi_normal", &vec![vector(&[0.0]), matrix]),
        "the sizes of `mu` and `Sigma` in `multi_normal` do not agree"
    );
}

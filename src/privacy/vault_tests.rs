//! Tests that try to break the vault.

use super::*;
use crate::accounting::{Event, Gaussian, Lattice, Meter, Relation};
use crate::check::check;
use crate::density::{Censored, Frame, Hazard, Law};
use crate::model::{Constants, Model};
use crate::privacy::{
    Expected, GradientScale, Look, OnBadRows, PenaltyPlan, PenaltyScale, Statistic,
};
use crate::syntax::parse;

/// A model of times that may be censored, which have a hazard and no law.
const CENSORED: &str = "record { real<lower=0> t; int<lower=0, upper=1> died; real x; }
     parameters { real a; real b; real<lower=0> k; }
     model { target += died == 1 ? weibull_lpdf(t | k, exp(a + b * x)) : weibull_lccdf(t | k, exp(a + b * x)); }";

/// Models whose records move the sums through all three kinds of interface; in the last, gradients
/// are summed in parts, and a record may pick one place twice.
pub(super) const MODELS: [&str; 4] = [
    "record { int<lower=0, upper=1> y; real x; }
     parameters { real a; real b; }
     model { a ~ normal(0, 1); y ~ bernoulli_logit(a + b * x); }",
    "record { real y; int<lower=1, upper=3> g; }
     parameters { vector[3] raw; real m; real<lower=0> s; }
     model { vector[3] a = m + s * raw; raw ~ normal(0, 1); y ~ student_t(4, a[g], s); }",
    "record { int<lower=0> y; real x; }
     parameters { vector[2] b; }
     model { y ~ poisson_log(b[1] + square(b[2]) * x + b[2] * exp(-x * b[1])); }",
    "record { real y; int<lower=1, upper=20> g; int<lower=1, upper=20> h; }
     parameters { vector[20] z; real m; real<lower=0> s; }
     model { vector[20] a = m + s * z; z ~ normal(0, 1); y ~ student_t(4, 2 * a[g] - a[h], s); }",
];

pub(super) fn density(source: &str) -> Density {
    let program = parse(source).program.unwrap();
    let checked = check(&program);
    let Some(checked) = checked.checked else {
        panic!("{:?}", checked.diagnostics)
    };
    Density::new(Model::bind(&checked, &Constants::none()).unwrap())
}

/// A linear congruential generator, which is good enough for test data.
pub(super) struct Lcg(pub(super) u64);

impl Lcg {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 31) as f64
    }
}

/// A value of a column, sometimes the most extreme that a file can hold.
fn value(rng: &mut Lcg, is_int: bool, lower: Option<f64>, upper: Option<f64>) -> f64 {
    let ugly = [
        f64::NAN,
        1e308,
        -1e308,
        5e-324,
        -0.0,
        1e15,
        1e-300,
        710.0,
        -745.5,
    ];
    match (is_int, lower, upper) {
        (true, Some(a), Some(b)) => match rng.next() % 9 {
            0 => f64::NAN,
            k => a + (k as f64).rem_euclid(b - a + 1.0),
        },
        (true, ..) => [0.0, 1.0, 7.0, 1e9, f64::NAN][rng.next() as usize % 5],
        _ if rng.next().is_multiple_of(4) => ugly[rng.next() as usize % ugly.len()],
        _ => 6.0 * rng.uniform() - 3.0,
    }
}

pub(super) fn columns_of(density: &Density) -> Vec<(String, bool, Option<f64>, Option<f64>)> {
    let columns = &density.model().columns;
    columns
        .iter()
        .map(|c| (c.name.clone(), c.is_int, c.lower, c.upper))
        .collect()
}

pub(super) fn table(rng: &mut Lcg, density: &Density, n: usize) -> Vec<Vec<f64>> {
    columns_of(density)
        .iter()
        .map(|(_, is_int, lower, upper)| {
            (0..n)
                .map(|_| value(rng, *is_int, *lower, *upper))
                .collect()
        })
        .collect()
}

pub(super) fn vault(source: &str, data: &[Vec<f64>]) -> Vault {
    let density = density(source);
    let named = columns_of(&density)
        .into_iter()
        .zip(data)
        .map(|((name, ..), values)| (name, values.clone()))
        .collect();
    let rows = Rows::from_columns(&density.model().columns, named, OnBadRows::Error);
    Vault::new(density, rows.unwrap_or_else(|e| panic!("{e}"))).unwrap()
}

pub(super) fn point(rng: &mut Lcg, dimension: usize) -> Vec<f64> {
    (0..dimension).map(|_| 4.0 * rng.uniform() - 2.0).collect()
}

/// Where `tau` is small there is so little noise that wide bounds are not refused.
pub(super) fn query(tau: f64, bound: f64) -> PenaltyQuery {
    match PenaltyScale::new(2, tau).unwrap().plan(bound).unwrap() {
        PenaltyPlan::Query(query) => query,
        other => panic!("{other:?}"),
    }
}

/// The event that covers gradients of two coordinates at this scale.
fn planned(scale: &GradientScale, coordinates: u64) -> Gaussian {
    let lattice = Lattice::new(scale.lattice_ratio(), coordinates).unwrap();
    Gaussian::of_clip(
        "gradient",
        scale.clip(),
        Relation::Substitute,
        scale.sigma(),
    )
    .unwrap()
    .on_lattice(lattice)
}

pub(super) fn squared_distance(a: &[i128], b: &[i128]) -> i128 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// A table of three records, one with record `i` substituted, one without it, and one with it blank.
fn neighbours(rng: &mut Lcg, density: &Density, i: usize) -> [Vec<Vec<f64>>; 4] {
    let original = table(rng, density, 3);
    let other = table(rng, density, 3);
    let mut substituted = original.clone();
    let mut removed = original.clone();
    let mut blank = original.clone();
    for (c, column) in other.iter().enumerate() {
        substituted[c][i] = column[i];
        removed[c].remove(i);
        blank[c][i] = f64::NAN;
    }
    [original, substituted, removed, blank]
}

/// Sums of a table, and of it with a record (or unit) substituted, without it, and with it blank, are
/// within these bounds of each other. Returns the shares of the bounds that are reached, of their
/// squares: without the record, and with another.
pub(super) fn shares_reached(
    sums: &[Vec<i128>; 4],
    bound: i128,
    substituted: i128,
    what: &str,
) -> [f64; 2] {
    let (bound, most) = (bound * bound, substituted * substituted);
    let replaced = squared_distance(&sums[0], &sums[1]);
    assert!(replaced <= most, "substitute, {what}");
    let gone = squared_distance(&sums[0], &sums[2]);
    assert!(gone <= bound, "remove, {what}");
    assert_eq!(sums[2], sums[3], "blank, {what}");
    [gone as f64 / bound as f64, replaced as f64 / most as f64]
}

/// Gradients and log-ratios of such tables. Returns the shares of their sensitivities that are
/// reached.
pub(super) fn play(
    vaults: &[Vault; 4],
    [from, to]: [&[f64]; 2],
    clip: f64,
    what: &str,
) -> [f64; 2] {
    let scale = GradientScale::new(clip, 2, 5.0).unwrap();
    let bound = i128::from(scale.bound());
    let sums = vaults
        .each_ref()
        .map(|v| v.table.clipped_gradient_sum(&v.density, from, &scale));
    let [_, gradient] = shares_reached(&sums, bound, 2 * bound, what);

    let query = query(3.0, clip);
    let bound = i128::from(query.clip_bound());
    assert!(i128::from(query.sensitivity()) == 2 * bound);
    let sum = |v: &Vault, from: &[f64], to: &[f64]| v.clipped_log_ratio_sum(from, to, 1.0, &query);
    let sums = vaults.each_ref().map(|v| sum(v, from, to));
    let replaced = (sums[0] - sums[1]).abs();
    assert!(replaced <= 2 * bound, "substitute, {what}");
    let gone = (sums[0] - sums[2]).abs();
    assert!(gone <= bound, "remove, {what}");
    assert_eq!(sums[2], sums[3], "blank, {what}");
    // Antisymmetric to the bit.
    assert_eq!(sums[0], -sum(&vaults[0], to, from));
    [gradient, replaced as f64 / (2 * bound) as f64]
}

/// Record-play: 10^4 pairs of neighbouring data sets per release and relation,
/// including extreme values. The integer sums never differ by more than the declared sensitivity,
/// and a blank record adds as much as an absent one. If a clip, the integer check or the factor 2
/// were wrong, a pair would exceed it; it is also asserted that pairs come close to it, so that the
/// bound is tight.
#[test]
fn neighbours_differ_by_at_most_the_sensitivity() {
    let mut rng = Lcg(1);
    let mut closest = [0.0f64; 2];
    let pairs = 10_000 / MODELS.len() + 1;
    for source in MODELS {
        let d = density(source);
        for pair in 0..pairs {
            let vaults = neighbours(&mut rng, &d, pair % 3).map(|t| vault(source, &t));
            let from = point(&mut rng, d.dimension());
            let to = point(&mut rng, d.dimension());
            let clip = [0.01, 1.0, 8.0][pair % 3];
            let what = format!("pair {pair} of {source}");
            let reached = play(&vaults, [&from, &to], clip, &what);
            closest = std::array::from_fn(|k| closest[k].max(reached[k]));
        }
    }
    assert!(closest[0] > 0.99 && closest[1] > 0.999, "{closest:?}");
}

/// The same for the statistics of a private start: in other coordinates, about a centre, products,
/// squares and histograms; and for the model's expectations of a record, by a law where it has one,
/// and by second derivatives.
#[test]
fn neighbours_differ_by_at_most_the_sensitivity_in_what_is_learnt() {
    let statistics = [
        Statistic::Gradient,
        Statistic::Products,
        Statistic::Squares,
        Statistic::Lengths,
        Statistic::GradientLengths,
        Statistic::Beyond,
        Statistic::Centred,
        Statistic::Slope,
        Statistic::Information,
        Statistic::InformationLengths,
        Statistic::Curvature,
        Statistic::CurvatureLengths,
    ];
    let mut rng = Lcg(5);
    let mut closest = [0.0f64; 12];
    let mut farthest = [0.0f64; 12];
    let pairs = 10_000 / MODELS.len() / statistics.len() + 1;
    for source in MODELS.into_iter().chain([CENSORED]) {
        let d = density(source);
        let dimension = d.dimension();
        let law = Law::of(&d, &vec![0.1; dimension], 1);
        let censored = Censored::of(&d, &vec![0.1; dimension], 1);
        let space = d.parameters();
        for pair in 0..pairs {
            let vaults = neighbours(&mut rng, &d, pair % 3).map(|t| vault(source, &t));
            let axes: Vec<f64> = (0..dimension * dimension)
                .map(|_| 3.0 * rng.uniform() - 1.0)
                .collect();
            let frame = Frame::about(point(&mut rng, dimension))
                .refined(&point(&mut rng, dimension), &axes);
            let centre = point(&mut rng, dimension);
            let theta = frame.point(&point(&mut rng, dimension));
            let clip = [0.01, 1.0, 8.0][pair % 3];
            for (k, statistic) in statistics.into_iter().enumerate() {
                let expected = match (&law, censored) {
                    (Ok(law), _) if pair % 3 > 0 => Expected::by_law(law, &space, &theta, &frame),
                    (Err(_), Some(of)) if pair % 3 > 0 => {
                        Expected::by_hazard(Hazard::new(&d, of), &space, &theta, &frame)
                    }
                    _ => Expected::by_differences(&d, &space, &frame, 0.01),
                };
                let look = Look {
                    centre: (pair % 2 == 0 && k < 4).then_some(&centre[..]),
                    expected: Some(&expected),
                    inner_clip: clip,
                    ..Look::new(d.sight(&space, &theta, &frame), statistic)
                };
                let scale = statistic.scale(clip, 2, 5.0, dimension).unwrap();
                let sums = vaults
                    .each_ref()
                    .map(|v| v.table.clipped_sum(&v.density, &look, &scale));
                assert_eq!(sums[0].len(), look.coordinates());
                let what = format!("{statistic:?} of {source}");
                let (bound, most) = (scale.bound().into(), scale.sensitivity().into());
                let [gone, replaced] = shares_reached(&sums, bound, most, &what);
                closest[k] = closest[k].max(gone);
                farthest[k] = farthest[k].max(replaced);
            }
        }
    }
    for closest in closest {
        assert!(closest > 0.99, "{closest}");
    }
    // Charged as vectors of any direction, histograms, squares and products would reach no more
    // than half of the bound.
    for farthest in farthest {
        assert!(farthest > 0.9, "{farthest:?}");
    }
}

/// The statistic of a record depends on its own columns: a sum over many is the sum of the single
/// ones, to the bit, whichever records surround it in a block. Wrong here: a centre, a law or a
/// matrix that depends on other records, so that its change is accounted for nowhere.
#[test]
fn what_is_taken_of_a_record_follows_from_it_alone() {
    let mut rng = Lcg(8);
    let shapes = "record { real<lower=0> y; real<lower=0, upper=1> z; real x; }
        parameters { real a; real b; }
        model { y ~ gamma(exp(a), exp(b)); z ~ beta(2, exp(a + y)); }";
    for source in MODELS.into_iter().chain([shapes, CENSORED]) {
        let d = density(source);
        let (n, dimension) = (300, d.dimension());
        let data = table(&mut rng, &d, n);
        let all = vault(source, &data);
        let record = |i: usize| {
            data.iter()
                .map(|column| vec![column[i]])
                .collect::<Vec<_>>()
        };
        let alone: Vec<Vault> = (0..n).map(|i| vault(source, &record(i))).collect();
        let theta = point(&mut rng, dimension);
        let frame = Frame::about(theta.clone());
        let law = Law::of(&d, &vec![0.1; dimension], 1);
        let space = d.parameters();
        for by_law in [true, false] {
            let expected = match &law {
                Ok(law) if by_law => Expected::by_law(law, &space, &theta, &frame),
                Err(_) if by_law => {
                    let censored = Censored::of(&d, &vec![0.1; dimension], 1).unwrap();
                    Expected::by_hazard(Hazard::new(&d, censored), &space, &theta, &frame)
                }
                _ => Expected::by_differences(&d, &space, &frame, 0.01),
            };
            for statistic in [
                Statistic::Beyond,
                Statistic::Centred,
                Statistic::Slope,
                Statistic::Information,
                Statistic::InformationLengths,
                Statistic::Curvature,
            ] {
                let look = Look {
                    expected: Some(&expected),
                    inner_clip: 0.5,
                    ..Look::new(d.sight(&space, &theta, &frame), statistic)
                };
                let scale = statistic.scale(0.5, 2, 5.0, dimension).unwrap();
                let clipped_sum = |v: &Vault| v.table.clipped_sum(&v.density, &look, &scale);
                let mut sum = vec![0; look.coordinates()];
                for one in &alone {
                    for (sum, of_one) in sum.iter_mut().zip(clipped_sum(one)) {
                        *sum += of_one;
                    }
                }
                assert_eq!(clipped_sum(&all), sum, "{statistic:?} of {source}");
                let some = sum.iter().any(|x| *x != 0);
                assert!(some || by_law && statistic == Statistic::Curvature);
            }
        }
    }
}

/// The sums of both, of gradients and of log-ratios, agree to the bit.
pub(super) fn same_integers(
    vaults: [&Vault; 2],
    [from, to]: [&[f64]; 2],
    temperature: f64,
    scale: &GradientScale,
    query: &PenaltyQuery,
) {
    let [a, b] = vaults.map(|v| {
        let gradients = v.table.clipped_gradient_sum(&v.density, from, scale);
        (
            gradients,
            v.clipped_log_ratio_sum(from, to, temperature, query),
        )
    });
    assert_eq!(a, b);
}

/// The integer sums do not depend on the order of records, or on the blocks and threads to which
/// they are assigned.
#[test]
fn permuted_rows_give_the_same_integers() {
    let mut rng = Lcg(2);
    for source in MODELS {
        let d = density(source);
        let n = 5000;
        let original = table(&mut rng, &d, n);
        let permuted: Vec<Vec<f64>> = original
            .iter()
            .map(|column| (0..n).map(|i| column[(i * 2347 + 11) % n]).collect())
            .collect();
        let (a, b) = (vault(source, &original), vault(source, &permuted));
        let (from, to) = (
            point(&mut rng, d.dimension()),
            point(&mut rng, d.dimension()),
        );
        let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
        same_integers([&a, &b], [&from, &to], 0.3, &scale, &query(3.0, 0.5));
    }
}

/// A record with a missing value adds nothing to any sum.
/// A logistic record has two outcomes, with gradients (1 - p) z and -p z. Clipped at c they are
/// balanced about the a at which p c = (1 - p) (p |z| + a), along z, where the rarer one is beyond c
/// and the other is not. Wrong here: a sign, a weight of a triangle, the frame, or a centre.
#[test]
fn what_a_law_expects_of_a_logistic_record_is_as_in_closed_form() {
    let model = MODELS[0];
    let d = density(model);
    let (theta, x, clip) = ([-2.2, 0.05], 3.0, 0.5);
    let axes = [1.0, 0.3, -0.2, 0.8];
    let frame = Frame::about(theta.to_vec()).refined(&[0.0, 0.0], &axes);
    let p = 1.0 / (1.0 + (-theta[0] - theta[1] * x).exp());
    let z = [axes[0] + axes[2] * x, axes[1] + axes[3] * x];
    let length = z[0].hypot(z[1]);
    let rare = clip;
    let common = -p * clip / (1.0 - p);
    let centre = -common - p * length;
    let far = (1.0 - p) * length + centre.abs();
    assert!(p < 0.2 && centre < 0.0 && far > clip);
    let law = Law::of(&d, &[0.0, 0.0], 1).unwrap();
    let space = d.parameters();
    let expected = Expected::by_law(&law, &space, &theta, &frame);
    let summed = |y: f64, statistic: Statistic, inner_clip: f64, clip: f64| -> Vec<f64> {
        let look = Look {
            expected: Some(&expected),
            inner_clip,
            ..Look::new(d.sight(&space, &theta, &frame), statistic)
        };
        let scale = statistic.scale(clip, 2, 5.0, 2).unwrap();
        vault(model, &[vec![y], vec![x]]).clipped_statistic(
            &look,
            &scale,
            NotPrivate::acknowledged(),
        )
    };
    let along = |size: f64| z.map(|z| size * z / length).to_vec();
    let triangle = |size: f64| {
        let [a, b] = z.map(|z| z / length);
        [a * a, std::f64::consts::SQRT_2 * a * b, b * b].map(|x| size * x)
    };
    let close = |found: &[f64], wanted: &[f64], what: &str| {
        for (found, wanted) in found.iter().zip(wanted) {
            // Five steps of the iteration leave p^5 of the way.
            assert!((found - wanted).abs() < 1e-3, "{what}: {found} {wanted}");
        }
    };
    let wide = 100.0;
    for (y, size, residual) in [(1.0, rare, 1.0 - p), (0.0, common, -p)] {
        let centred = summed(y, Statistic::Centred, clip, clip);
        close(&centred, &along(size), "centred");
        let gradient = summed(y, Statistic::Centred, f64::INFINITY, wide);
        close(&gradient, &along(residual * length), "gradient");
        let information = p * (1.0 - p) * length * length;
        for statistic in [Statistic::Information, Statistic::Slope] {
            let found = summed(y, statistic, f64::INFINITY, wide);
            close(&found, &triangle(information), "information");
        }
        let slope = p * clip * far + (1.0 - p) * common * common;
        let found = summed(y, Statistic::Slope, clip, wide);
        close(&found, &triangle(slope), "slope");
    }
}

/// The two parts, against whole vectors that are clipped as floats.
#[test]
fn gradients_in_parts_are_those_of_whole_vectors() {
    let density = density(MODELS[3]);
    let d = density.dimension();
    let n = 700;
    let mut rng = Lcg(5);
    let mut index = || {
        (0..n)
            .map(|_| (1 + rng.next() % 20) as f64)
            .collect::<Vec<f64>>()
    };
    let (g, h) = (index(), index());
    let y: Vec<f64> = (0..n).map(|_| 6.0 * rng.uniform() - 3.0).collect();
    let theta: Vec<f64> = (0..d).map(|_| rng.uniform() - 0.5).collect();
    let columns = vec![y, g, h];
    let (loaded, _) = density.load_columns(&columns, n);
    let clip = 1.5;
    let mut expected = vec![0.0; d];
    for gradient in density.record_gradients(&theta, &loaded, n).chunks(d) {
        let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        for (sum, g) in expected.iter_mut().zip(gradient) {
            *sum += g * (clip / length).min(1.0);
        }
    }
    let look = Look::gradient(&density, &theta);
    let program = density.row_program();
    assert!(program.sparse(&look.sight.jacobian).is_some());
    let names = ["y", "g", "h"].map(str::to_owned);
    let named = names.into_iter().zip(columns).collect();
    let rows = Rows::from_columns(&density.model().columns, named, OnBadRows::Error).unwrap();
    let vault = Vault::new(density, rows).unwrap();
    let scale = GradientScale::new(clip, 2, 10.0).unwrap();
    let found = vault.clipped_statistic(&look, &scale, NotPrivate::acknowledged());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
}

/// A centre of zeros, which whole vectors alone may have, changes nothing else.
#[test]
fn what_a_law_expects_is_the_same_in_parts() {
    let density = density(MODELS[3]);
    let d = density.dimension();
    let n = 300;
    let mut rng = Lcg(7);
    let mut index = || (0..n).map(|_| (1 + rng.next() % 20) as f64).collect();
    let (g, h) = (index(), index());
    let y = (0..n).map(|_| 6.0 * rng.uniform() - 3.0).collect();
    let theta: Vec<f64> = (0..d).map(|_| rng.uniform() - 0.5).collect();
    let vault = vault(MODELS[3], &[y, g, h]);
    let law = Law::of(&density, &vec![0.0; d], 1).unwrap();
    let space = density.parameters();
    let frame = Frame::about(theta.clone());
    let expected = Expected::by_law(&law, &space, &theta, &frame);
    let sight = density.sight(&space, &theta, &frame);
    assert!(
        law.sparse(&law.sight(&space, &theta, &frame).jacobian)
            .is_some()
    );
    let none = vec![0.0; d * (d + 1) / 2];
    for (statistic, clip) in [
        (Statistic::Centred, 0.7),
        (Statistic::Information, 0.5),
        (Statistic::Slope, 0.5),
        (Statistic::InformationLengths, 1.0),
        (Statistic::GradientLengths, 1.0),
        (Statistic::Beyond, 1.0),
    ] {
        let scale = statistic.scale(clip, 2, 5.0, d).unwrap();
        let sum = |centre| {
            let look = Look {
                centre,
                expected: Some(&expected),
                inner_clip: 0.8,
                ..Look::new(sight.clone(), statistic)
            };
            vault.clipped_statistic(&look, &scale, NotPrivate::acknowledged())
        };
        let (parts, whole) = (sum(None), sum(Some(&none)));
        assert!(parts.iter().any(|x| x.abs() > 1e-3));
        for (parts, whole) in parts.iter().zip(&whole) {
            assert!(
                (parts - whole).abs() < 1e-9,
                "{statistic:?}: {parts} {whole}"
            );
        }
    }
}

/// Records of a normal outcome, three of which are far outside the law's tails, and one with a covariate that makes
/// its gradient long whatever the outcome. Wrong here: a pull of records that was not clipped away, or that the
/// law expects.
#[test]
fn what_is_beyond_the_tails_is_measured_from_the_clip_bound() {
    let source = "record { real y; real x; } parameters { real a; real b; real<lower=0> s; }
        model { y ~ normal(a + b * x, s); }";
    let density = density(source);
    let theta = [0.3, -0.2, 0.1_f64.ln()];
    let s = theta[2].exp();
    let (outliers, inside) = ([8.0, -12.0, 40.0], [-2.5, -1.0, 0.0, 0.4, 2.5]);
    let mut records: Vec<[f64; 2]> = outliers.iter().chain(&inside).map(|z| [*z, 1.0]).collect();
    records.push([1.0, 50.0]);
    let y = records
        .iter()
        .map(|[z, x]| theta[0] + theta[1] * x + s * z)
        .collect();
    let vault = vault(source, &[y, records.iter().map(|r| r[1]).collect()]);
    let space = density.parameters();
    let frame = Frame::about(theta.to_vec());
    let law = Law::of(&density, &[0.1; 3], 1).unwrap();
    let expected = Expected::by_law(&law, &space, &theta, &frame);
    let (clip, end) = (20.0, 420.0);
    let look = Look {
        expected: Some(&expected),
        inner_clip: clip,
        unit: end,
        ..Look::new(density.sight(&space, &theta, &frame), Statistic::Beyond)
    };
    let scale = Statistic::Beyond.scale(1.0, 2, 5.0, 3).unwrap();
    let sums = vault.clipped_statistic(&look, &scale, NotPrivate::acknowledged());
    // By a and by b, and by log s.
    let length = |z: f64| (2.0 * (z / s).powi(2) + (z * z - 1.0).powi(2)).sqrt();
    let shares = outliers.map(|z| ((length(z) - clip) / (end - clip)).min(1.0));
    assert!(
        shares[0] > 0.0 && shares[1] < 1.0 && shares[2] == 1.0,
        "{shares:?}"
    );
    let sum: f64 = shares.iter().sum();
    let n = records.len() as f64;
    assert!(
        (sums[0] - sum).abs() < 1e-6 && (sums[1] - (n - sum)).abs() < 1e-6,
        "{sums:?} {sum}"
    );
}

/// Of 20,000 records one in nine has an event, whose gradient is far longer than that of a record without one: clipped as
/// they are, gradients at the truth do not add up to zero. Wrong here: a clipped event that is measured against a
/// hazard that was not clipped.
#[test]
fn clipped_events_are_balanced_by_their_hazard() {
    let density = density(CENSORED);
    let n = 20_000;
    let mut rng = Lcg(11);
    let theta = [1.6_f64, -0.3, 0.2];
    let shape = theta[2].exp();
    let (mut times, mut died, mut x) = (vec![], vec![], vec![]);
    for _ in 0..n {
        let covariate = 2.0 * rng.uniform() - 1.0;
        let scale = (theta[0] + theta[1] * covariate).exp();
        let own = scale * (-(1.0 - rng.uniform()).ln()).powf(1.0 / shape);
        let followed = 0.2 + 1.6 * rng.uniform();
        times.push(own.min(followed));
        died.push(f64::from(u8::from(own <= followed)));
        x.push(covariate);
    }
    let events: f64 = died.iter().sum();
    let vault = vault(CENSORED, &[times, died, x]);
    let space = density.parameters();
    let frame = Frame::about(theta.to_vec());
    let censored = Censored::of(&density, &[0.1; 3], 1).unwrap();
    let hazard = Hazard::new(&density, censored);
    let expected = Expected::by_hazard(hazard, &space, &theta, &frame);
    let clip = 0.5;
    // In standard deviations of the sum of clipped events, at most.
    let sum = |statistic: Statistic, clip_of_sum: f64| -> f64 {
        let look = Look {
            expected: Some(&expected),
            inner_clip: clip,
            ..Look::new(density.sight(&space, &theta, &frame), statistic)
        };
        let scale = statistic.scale(clip_of_sum, 2, 5.0, 3).unwrap();
        let sum = vault.clipped_statistic(&look, &scale, NotPrivate::acknowledged());
        sum.iter().map(|x| x.abs()).fold(0.0, f64::max) / (clip * events.sqrt())
    };
    assert!((0.08..0.14).contains(&(events / n as f64)), "{events}");
    let balanced = sum(Statistic::Centred, 100.0);
    assert!(balanced < 4.0, "{balanced}");
    let plain = sum(Statistic::Gradient, clip);
    assert!(plain > 10.0, "{plain}");
    // The slope is minus the derivative of the balanced sum, but for chance.
    let summed = |theta: &[f64], statistic: Statistic| {
        let frame = Frame::about(theta.to_vec());
        let hazard = Hazard::new(&density, censored);
        let expected = Expected::by_hazard(hazard, &space, theta, &frame);
        let look = Look {
            expected: Some(&expected),
            inner_clip: clip,
            ..Look::new(density.sight(&space, theta, &frame), statistic)
        };
        let scale = statistic.scale(100.0, 2, 5.0, 3).unwrap();
        vault.clipped_statistic(&look, &scale, NotPrivate::acknowledged())
    };
    let slope = summed(&theta, Statistic::Slope);
    let diagonal = [slope[0], slope[3], slope[5]];
    for (j, slope) in diagonal.into_iter().enumerate() {
        let aside = |by: f64| {
            let mut theta = theta;
            theta[j] += by;
            summed(&theta, Statistic::Centred)[j]
        };
        let derivative = (aside(-0.05) - aside(0.05)) / 0.1;
        assert!(
            (slope / derivative - 1.0).abs() < 0.1,
            "{j}: {slope} {derivative}"
        );
    }
}

#[test]
fn missing_values_add_nothing() {
    let source = MODELS[0];
    let with = vec![vec![1.0, 0.0, 1.0], vec![0.5, f64::NAN, -2.0]];
    let without = vec![vec![1.0, 1.0], vec![0.5, -2.0]];
    let (a, b) = (vault(source, &with), vault(source, &without));
    let theta = [0.3, -0.8];
    let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
    assert_eq!(
        a.table.clipped_gradient_sum(&a.density, &theta, &scale),
        b.table.clipped_gradient_sum(&b.density, &theta, &scale)
    );
    let permission = NotPrivate::acknowledged();
    assert_eq!(a.exact(&theta, permission), b.exact(&theta, permission));
    assert_eq!(a.n(), 3);
}

/// Without clipping, the integer sum is the exact gradient to lattice accuracy;
/// a wrong Jacobian or sign would show here.
#[test]
fn unclipped_sums_are_the_exact_gradient() {
    let mut rng = Lcg(3);
    for source in MODELS {
        let d = density(source);
        let n = 700;
        let data: Vec<Vec<f64>> = columns_of(&d)
            .iter()
            .map(|(_, is_int, lower, _)| {
                (0..n)
                    .map(|_| {
                        if *is_int {
                            lower.unwrap_or(0.0) + (rng.next() % 2) as f64
                        } else {
                            rng.uniform() - 0.5
                        }
                    })
                    .collect()
            })
            .collect();
        let vault = vault(source, &data);
        let theta = point(&mut rng, d.dimension());
        let to = point(&mut rng, d.dimension());
        let scale = GradientScale::new(1e6, 2, 5.0).unwrap();
        let (from_value, adjoint) = vault.exact(&theta, NotPrivate::acknowledged());
        let (_, with) = vault.density().pull_back(&theta, &adjoint);
        let (_, prior) = vault.density().pull_back(&theta, &[]);
        let sum = vault
            .table
            .clipped_gradient_sum(&vault.density, &theta, &scale);
        for ((s, w), p) in sum.iter().zip(&with).zip(&prior) {
            let exact = w - p;
            let error = (scale.real(*s) - exact).abs();
            // Truncation: at most one lattice step per record.
            assert!(
                error <= n as f64 * scale.sigma() * scale.lattice_ratio() + 1e-9 * exact.abs(),
                "{error}"
            );
        }
        let (to_value, _) = vault.exact(&to, NotPrivate::acknowledged());
        let query = query(1e-4, 1e4);
        let ratio = query.ratio(vault.clipped_log_ratio_sum(&theta, &to, 1.0, &query), 0);
        assert!((ratio - (to_value - from_value)).abs() < 1e-8 * (1.0 + ratio.abs()));
    }
}

/// The meter is consulted before anything else, and its refusal stops the release.
#[test]
fn releases_are_charged_first() {
    let data = vec![vec![1.0, 0.0], vec![0.5, 1.0]];
    let vault = vault(MODELS[0], &data);
    let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
    let event = planned(&scale, 2);
    let meter = Meter::new(vec![Event::Gaussian(event.times(1))]);
    let charge = Charge::first(&meter);
    let mut rng = PrivateRng::from_insecure_seed(1);
    assert!(
        vault
            .noisy_batch_gradient(&[0.0, 0.0], &scale, Subsampling::All, charge, &mut rng)
            .is_ok()
    );
    assert!(
        vault
            .noisy_batch_gradient(&[0.0, 0.0], &scale, Subsampling::All, charge, &mut rng)
            .is_err()
    );
    assert_eq!(meter.spent()[0].count(), 1);
}

/// The noise of a release has the declared standard deviation: 4,000 coordinates; chi-square within
/// 6.5 sd (false alarm below 1e-9), which a sigma 10 % off would miss by 4 sd more.
#[test]
fn releases_carry_the_declared_noise() {
    let data = vec![vec![1.0, 0.0], vec![0.5, 1.0]];
    let vault = vault(MODELS[0], &data);
    let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
    let event = planned(&scale, 2);
    let meter = Meter::new(vec![Event::Gaussian(event.times(10_000))]);
    let charge = Charge::first(&meter);
    let mut rng = PrivateRng::from_insecure_seed(7);
    let theta = [0.1, 0.2];
    let exact: Vec<f64> = vault
        .table
        .clipped_gradient_sum(&vault.density, &theta, &scale)
        .iter()
        .map(|&s| scale.real(s))
        .collect();
    let draws = 2000;
    let mut sum = 0.0;
    for _ in 0..draws {
        let noisy = vault
            .noisy_batch_gradient(&theta, &scale, Subsampling::All, charge, &mut rng)
            .unwrap();
        for (value, exact) in noisy.get().iter().zip(&exact) {
            sum += ((value - exact) / scale.sigma()).powi(2);
        }
    }
    let n = f64::from(2 * draws);
    let z = (sum - n) / (2.0 * n).sqrt();
    assert!(z.abs() < 6.5, "{z}");
}

/// A plan that covers less than the release does is refused, and nothing is charged: less noise,
/// the other relation, fewer coordinates, no lattice, another line.
#[test]
fn a_charge_must_cover_its_release() {
    let data = vec![vec![1.0, 0.0], vec![0.5, 1.0]];
    let vault = vault(MODELS[0], &data);
    let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
    let less_noise = GradientScale::new(1.0, 2, 4.999999).unwrap();
    let more_noise = GradientScale::new(1.0, 2, 5.000001).unwrap();
    let other_relation = GradientScale::new(1.0, 1, 10.0).unwrap();
    let without_lattice =
        Gaussian::of_clip("gradient", 1.0, Relation::Substitute, scale.sigma()).unwrap();
    let mut rng = PrivateRng::from_insecure_seed(1);
    let mut released = |event: Gaussian, scale: &GradientScale, line: usize| {
        let meter = Meter::new(vec![Event::Gaussian(event.times(1))]);
        let charge = Charge {
            meter: &meter,
            line,
        };
        let released =
            vault.noisy_batch_gradient(&[0.1, 0.2], scale, Subsampling::All, charge, &mut rng);
        assert_eq!(released.is_ok(), !meter.spent().is_empty());
        released.is_ok()
    };
    assert!(released(planned(&scale, 2), &scale, 0));
    assert!(released(planned(&scale, 2), &more_noise, 0));
    assert!(!released(planned(&scale, 2), &less_noise, 0));
    assert!(!released(planned(&scale, 2), &other_relation, 0));
    assert!(!released(planned(&scale, 1), &scale, 0));
    assert!(!released(without_lattice, &scale, 0));
    assert!(!released(planned(&scale, 2), &scale, 1));
}

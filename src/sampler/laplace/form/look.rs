//! Looks at a model and at records simulated from it: which numbers they see, in which units, and where their
//! information comes from.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::blocks::{Blocks, few_entries};
use super::prior::{spread_of_prior, widest_of_prior};
use super::{ByGroups, Form, Information, SEED, Wide, expected};
use crate::density::{
    Censored, Curvature, Density, Frame, Hazard, Law, Simulator, Space, curvature_at,
};
use crate::linear::Matrix;
use crate::privacy::{Expected, Look, Statistic, public_sum, visit_public};
use crate::sampler::contract::oracle::SampleError;
use crate::sampler::prior::{middle_of_prior, prior_curvature};

/// The number of simulated records.
const RECORDS: usize = 2000;
/// Directions with less information than this share of the largest count as unseen.
const UNSEEN: f64 = 1e-9;
/// The weight of information at another point than the middle of the prior, and of records with
/// covariates anywhere between their bounds where guesses of these say otherwise: far above
/// `UNSEEN`, and too small to matter for directions that are seen as expected.
const UNEXPECTED: f64 = 1e-5;
/// A direction is wide if the prior's variance is above this many times that of one record, where a step
/// of a record's sd changes what is seen; a flat prior counts as `WIDEST` times as wide.
const WIDE: f64 = 0.5;
const WIDEST: f64 = 100.0;
/// The number of places to which a point is moved, and the distance in units of 1 + |w|.
const PLACES: usize = 16;
const FAR: f64 = 2.0;
/// The step of numerical differences, in units in which a record has information of about 1.
const STEP: f64 = 1e-3;

impl Form {
    /// Looks at the model and at records simulated from it.
    ///
    /// Errors: no point with a finite prior density.
    pub fn of(density: &Density) -> Result<Form, SampleError> {
        let middle = middle_of_prior(density, SEED)?;
        let curvature = Curvature::of(density, &middle, SEED);
        if curvature.is_quadratic && curvature.is_bottleneck {
            let form = Form::of_quadratic(density, &middle);
            if form.coordinates as usize <= density.dimension() {
                return Ok(form);
            }
        }
        Form::of_law(density, middle)
    }

    /// The same for units of one row each or, where these are shared, of several: the number of rows in
    /// a unit is private then, and so is their information.
    ///
    /// Errors: as of [`Form::of`].
    pub fn of_units(density: &Density, are_shared: bool) -> Result<Form, SampleError> {
        if are_shared {
            Form::of_law(density, middle_of_prior(density, SEED)?)
        } else {
            Form::of(density)
        }
    }

    /// The form for records that have a law or a hazard, or second derivatives.
    fn of_law(density: &Density, middle: Vec<f64>) -> Result<Form, SampleError> {
        let form = Form::about_place(density, middle)?;
        // Distances along a scale are not found by the law where records see groups.
        let begins_wide = form.by_groups.is_none()
            && form
                .law(density)
                .is_some_and(|law| law.has_real_outcomes_only());
        let wide = begins_wide.then(|| widest_of_prior(density, &form.middle, SEED));
        let about_wide = wide.flatten().map(|wide| Form::about_place(density, wide));
        // Outcomes may spread too widely there to be integrated over.
        let about_wide = about_wide.transpose()?;
        Ok(about_wide
            .filter(|wide| wide.no_law.is_none())
            .unwrap_or(form))
    }

    /// The same, about these parameters.
    fn about_place(density: &Density, middle: Vec<f64>) -> Result<Form, SampleError> {
        let law = Law::of(density, &middle, SEED);
        let censored = match &law {
            Ok(_) => None,
            Err(_) => Censored::of(density, &middle, SEED),
        };
        let hazard = censored.map(|of| Hazard::new(density, of));
        let mut programs = vec![density.row_program()];
        programs.extend(law.as_ref().ok().map(Law::program));
        programs.extend(hazard.as_ref().map(Hazard::program));
        let of_vectors = |with_coefficients| {
            let beside = away_from(&middle);
            let space = density.computed_space(&beside, &programs, with_coefficients);
            space.filter(|space| {
                density.length_of(space) <= density.dimension() && is_free(density, space, &middle)
            })
        };
        let space = of_vectors(true).or_else(|| of_vectors(false));
        let space = space.unwrap_or_else(|| density.parameters());
        let look_at = |theta: &[f64]| {
            let point = density.point_of(&space, theta);
            let frame = Frame::about(point);
            let expected = expected(density, (law.as_ref().ok(), censored), &space, &frame)
                .unwrap_or_else(|| Expected::by_differences(density, &space, &frame, STEP));
            (frame, expected)
        };
        let places = [look_at(&middle), look_at(&away_from(&middle))];
        let spread = spread_of_prior(density, &space, SEED)?;
        let mut form = Form::about(density, (space.clone(), middle.clone()), &places);
        form.spread = spread;
        // Without a law, learning by groups was not tried; with counts of many values, errors of fourteen
        // own sds went unseen (docs/results.md). Few groups of a real outcome are found better by steps along
        // its scale, which groups do not have.
        let is_few = (form.by_groups.as_ref()).is_some_and(|by| by.blocks.are_few());
        let goes_by_groups = |law: &Law| !(law.has_counts() || is_few && law.is_costly());
        if !law.as_ref().is_ok_and(goes_by_groups) {
            form.by_groups = None;
        }
        match (&law, censored) {
            (Ok(law), _) => {
                let point = density.point_of(&space, &middle);
                let frame = Frame::new(point, form.base.entries().to_vec());
                let bounded = law.scores_are_bounded(&middle, (&form.space, &frame), SEED);
                form.information = Information::Law { bounded };
            }
            (Err(_), Some(of)) => form.information = Information::Hazard(of),
            (Err(reason), None) => form.no_law = Some(reason.clone()),
        }
        Ok(form)
    }

    /// The form for records that see the parameters through the same numbers, of which the
    /// log-likelihood is a quadratic function.
    fn of_quadratic(density: &Density, middle: &[f64]) -> Form {
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let raw = Simulator::new(density)
            .by_bounds()
            .records(middle, 1, None, rng);
        let (columns, _) = density.load_columns(&raw, 1);
        let z = density.interface(middle).z;
        let q = z.len();
        let entries = curvature_at(density, &columns, &z);
        let information = Matrix::new(q, q, |i, j| entries[i * q + j]);
        Form::with_information(
            (
                Information::Public,
                density.interface_space(),
                middle.to_vec(),
            ),
            &information,
            &vec![1.0; q],
        )
    }

    /// The form around the point that represents the middle of the prior, given the model's
    /// expectations of records there and at a point beside it.
    fn about(
        density: &Density,
        (space, middle): (Space, Vec<f64>),
        [at_middle, beside]: &[(Frame, Expected); 2],
    ) -> Form {
        let d = at_middle.0.dimension();
        let records = |simulator: Simulator| {
            let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
            let raw = simulator.records(&middle, RECORDS, None, rng);
            let (mut columns, _) = density.load_columns(&raw, RECORDS);
            columns.extend(density.columns_of_law(&raw));
            columns
        };
        let told = |simulator, (frame, expected): &(Frame, Expected)| {
            let columns = records(simulator);
            let sight = density.sight(&space, frame.centre(), frame);
            let look = Look {
                expected: Some(expected),
                ..Look::new(sight, Statistic::Information)
            };
            let sum = public_sum(density, &look, &columns, RECORDS);
            Matrix::of_triangle(&sum, d).scaled(1.0 / RECORDS as f64)
        };
        let mut information = told(Simulator::new(density), at_middle);
        let mut add = |more: Matrix| {
            information = Matrix::new(d, d, |i, j| {
                let more = UNEXPECTED * more[(i, j)];
                information[(i, j)] + if more.is_finite() { more } else { 0.0 }
            });
        };
        // The middle may be a place where a factor is zero, so that records see nothing of others.
        add(told(Simulator::new(density), beside));
        if density.model().has_guesses() {
            // A direction of which guessed records tell nothing is asked for all the same.
            add(told(Simulator::new(density).by_bounds(), at_middle));
        }
        // Where the records add next to nothing to the prior's precision, that sets the units.
        let prior = if space.is_parameters() {
            prior_curvature(density, &middle)
        } else {
            Matrix::identity(d)
        };
        let units: Vec<f64> = (0..d)
            .map(|j| {
                let told = information[(j, j)] + UNSEEN * prior[(j, j)].max(0.0);
                if told.is_finite() && told > 0.0 {
                    told.sqrt().recip()
                } else {
                    1.0
                }
            })
            .collect();
        let mut form = Form::with_information(
            (Information::Curvature, space.clone(), middle.clone()),
            &information,
            &units,
        );
        if space.is_parameters() {
            let told = information.between(&form.base);
            form.wide = wide_directions(&told, &prior.between(&form.base));
        }
        // Products of gradients show what a record sees, where their expectation may be zero.
        let sight = density.sight(&space, beside.0.centre(), &beside.0);
        let look = Look::new(sight, Statistic::Gradient);
        let columns = records(Simulator::new(density));
        let mut products = Matrix::new(d, d, |_, _| 0.0);
        visit_public(density, &look, &columns, RECORDS, |gradient| {
            for (i, x) in gradient {
                for (j, y) in gradient {
                    products[(*i, *j)] += x * y;
                }
            }
        });
        form.by_groups = form.grouped(&information, &products, &units);
        form
    }

    /// The form in the given units, which are those of a record's information unless they are 1.
    fn with_information(
        (source, space, middle): (Information, Space, Vec<f64>),
        information: &Matrix,
        units: &[f64],
    ) -> Form {
        let q = units.len();
        let scaled = Matrix::new(q, q, |i, j| units[i] * information[(i, j)] * units[j]);
        let (values, vectors) = scaled.eigen();
        let largest = values.iter().copied().fold(0.0, f64::max);
        let seen: Vec<usize> = (0..q).filter(|&k| values[k] > UNSEEN * largest).collect();
        // For a quadratic, coordinates in which the information is the identity.
        let length = |k: usize| match source {
            Information::Public => values[k].sqrt().recip(),
            _ => 1.0,
        };
        Form {
            information: source,
            no_law: None,
            wide: None,
            blocks: None,
            by_groups: None,
            coordinates: seen.len() as u64,
            spread: vec![f64::INFINITY; q],
            space,
            middle,
            base: Matrix::new(q, seen.len(), |i, k| {
                units[i] * vectors[(i, seen[k])] * length(seen[k])
            }),
            lift: Matrix::new(seen.len(), q, |k, i| {
                vectors[(i, seen[k])] / units[i] / length(seen[k])
            }),
        }
    }

    /// Coordinates of which a record sees few, where there are groups of them: given the information, the
    /// sum of products of simulated records' gradients, and the units.
    fn grouped(&self, information: &Matrix, products: &Matrix, units: &[f64]) -> Option<ByGroups> {
        let (q, m) = (self.base.rows(), self.base.columns());
        let seen = Matrix::new(q, m, |i, k| self.base[(i, k)] / units[i]);
        let rows = few_entries(&seen, products);
        let across = &rows.transposed() * &(&rows * &rows.transposed()).inverse();
        let base = &Matrix::diagonal(units) * &across;
        let blocks = Blocks::of(&products.between(&base))?;
        let told = information.between(&base);
        let length = |k: usize| told[(k, k)].sqrt();
        Some(ByGroups {
            base: Matrix::new(q, m, |i, k| base[(i, k)] / length(k)),
            lift: Matrix::new(m, q, |k, i| rows[(k, i)] * length(k) / units[i]),
            blocks,
        })
    }
}

/// The directions in which the prior's variance is more than `WIDE` times that of one record with this
/// information, where they are at most half of all.
fn wide_directions(information: &Matrix, prior: &Matrix) -> Option<Wide> {
    let m = information.rows();
    let root = information.with_eigenvalues(|e| e.max(0.0).sqrt());
    let back = information.with_eigenvalues(|e| e.max(f64::MIN_POSITIVE).sqrt().recip());
    let variance = prior.with_eigenvalues(|e| 1.0 / (e.max(0.0) + 1.0 / WIDEST));
    let (values, vectors) = variance.between(&root).eigen();
    let wide: Vec<usize> = (0..m).filter(|&k| values[k] > WIDE).collect();
    let vectors = Matrix::new(m, wide.len(), |i, k| vectors[(i, wide[k])]);
    let directions = &back * &vectors;
    let are_few = !wide.is_empty() && 2 * wide.len() <= m;
    (are_few && directions.is_finite()).then(|| Wide {
        directions,
        variance: wide.iter().map(|&k| values[k]).fold(0.0, f64::max),
    })
}

/// A point at which no number is zero unless it always is.
fn away_from(theta: &[f64]) -> Vec<f64> {
    let aside = |(j, x): (usize, &f64)| x + 0.1 + 0.01 * (j % 10) as f64;
    theta.iter().enumerate().map(aside).collect()
}

/// Whether simulated records have a likelihood wherever a point of the space is moved: elements
/// that must be positive, or ordered, are not free to move.
fn is_free(density: &Density, space: &Space, middle: &[f64]) -> bool {
    let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
    let raw = Simulator::new(density)
        .by_bounds()
        .records(middle, RECORDS, None, rng);
    let (columns, _) = density.load_columns(&raw, RECORDS);
    let point = density.point_of(space, middle);
    let frame = Frame::about(point.clone());
    (0..PLACES).all(|_| {
        let mut move_from = |w: &f64| {
            let normal: f64 = StandardNormal.sample(rng);
            w + FAR * (1.0 + w.abs()) * normal
        };
        let moved: Vec<f64> = point.iter().map(&mut move_from).collect();
        let z = density.sight(space, &moved, &frame).z;
        let values = density.log_likelihoods_at(&z, &columns, RECORDS);
        values.iter().all(|value| value.is_finite())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    fn form(parameters: &str, model: &str) -> (Form, usize) {
        let source = format!(
            "record {{ real<lower=-9, upper=9> y; vector<lower=-1, upper=1>[3] x; int<lower=1, upper=5> g; int<lower=1, upper=3> c; }}
             parameters {{ {parameters} }} model {{ {model} }}"
        );
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        let density = Density::new(model);
        (Form::of(&density).unwrap(), density.dimension())
    }

    // Oracle: information diag(4, 1, 1) and prior precision diag(1, 100, 100): variances of about 4, 0.01 and
    // 0.01 in units of a record's; the first direction has the information 1 at half its length. If it
    // failed: a search would begin far from the posterior, where its steps are too short.
    #[test]
    fn directions_are_wide_where_the_prior_is_wider_than_a_record() {
        let information = Matrix::diagonal(&[4.0, 1.0, 1.0]);
        let prior = Matrix::diagonal(&[1.0, 100.0, 100.0]);
        let wide = wide_directions(&information, &prior).unwrap();
        assert_eq!(wide.directions.columns(), 1);
        assert!((wide.directions[(0, 0)].abs() - 0.5).abs() < 1e-9);
        assert!(wide.directions[(1, 0)].abs() < 1e-9);
        assert!((wide.variance - 4.0 / 1.01).abs() < 1e-9);
        // All are wide, or none.
        for precision in [0.1, 100.0] {
            let prior = Matrix::identity(3).scaled(precision);
            assert_eq!(wide_directions(&information, &prior), None);
        }
    }

    // If it failed: a search would look for a product among its factors, along a curve of which a
    // normal likelihood knows one point; the answer would be a hundred of its own standard deviations
    // off.
    #[test]
    fn what_records_see_of_several_parameters_is_learnt_as_they_see_it() {
        let priors = "z ~ std_normal(); tau ~ normal(0, 1); mu ~ normal(0, 1); s ~ normal(0, 1);";
        for (parameters, likelihood, coordinates) in [
            (
                "real mu; real<lower=0> tau; vector[5] z; real<lower=0> s;",
                "y ~ normal(mu + tau * z[g], s);",
                6,
            ),
            (
                "real mu; real<lower=0> tau; vector[5] z; real<lower=0> s;",
                "vector[5] a = mu + tau * z; y ~ normal(a[g], s);",
                6,
            ),
            (
                "real mu; real<lower=0> tau; vector[3] z; real<lower=0> s;",
                "y ~ normal(mu + dot_product(x, tau * z), s);",
                5,
            ),
            (
                "real mu; real<lower=0> tau; real z; real<lower=0> s;",
                "y ~ normal(tau * z * mu, s);",
                2,
            ),
        ] {
            let (form, _) = form(parameters, &format!("{priors} {likelihood}"));
            assert!(!form.space.is_parameters(), "{likelihood}");
            assert_eq!(form.coordinates, coordinates, "{likelihood}");
        }
    }

    // If it failed: answers about twenty groups would be off by eight of their own sds, or steps along a scale
    // would be lost where records see groups.
    #[test]
    fn few_groups_are_found_for_classes_only() {
        let grouped = |outcome: &str, likelihood: &str, groups: usize| {
            let source = format!(
                "record {{ {outcome} y; int<lower=1, upper={groups}> g; }}
                 parameters {{ real mu; real<lower=0> tau; vector[{groups}] a; real<lower=0> s; }}
                 model {{ a ~ normal(mu, tau); y ~ {likelihood}; }}"
            );
            let model = Model::from_source(&source, &Constants::none()).unwrap();
            let form = Form::of(&Density::new(model)).unwrap().by_groups();
            form.map(|form| {
                (
                    form.blocks.as_ref().unwrap().groups.len(),
                    form.is_simulated(),
                )
            })
        };
        let class = ("int<lower=0, upper=1>", "bernoulli_logit(s * a[g])");
        assert_eq!(grouped(class.0, class.1, 12), Some((12, true)));
        assert_eq!(grouped(class.0, class.1, 6), None);
        let real = ("real<lower=-9, upper=9>", "normal(a[g], s)");
        assert_eq!(grouped(real.0, real.1, 12), None);
        assert_eq!(grouped(real.0, real.1, 40), Some((40, false)));
    }

    // If it failed: a record's information about its own group would be hidden by noise about all others.
    #[test]
    fn groups_of_which_a_record_sees_one_are_found() {
        for (parameters, likelihood, coordinates) in [
            (
                "real mu; real<lower=0> tau; vector[30] z; real<lower=0> s;",
                "y ~ normal(mu + x[1] + tau * z[h], s);",
                31,
            ),
            (
                "real mu; vector[30] z; real<lower=0> s;",
                "z ~ normal(mu, 1); y ~ normal(z[h], s);",
                31,
            ),
        ] {
            let source = format!(
                "record {{ real<lower=-9, upper=9> y; vector<lower=-1, upper=1>[3] x; int<lower=1, upper=30> h; }}
                 parameters {{ {parameters} }} model {{ {likelihood} }}"
            );
            let model = Model::from_source(&source, &Constants::none()).unwrap();
            let form = Form::of(&Density::new(model)).unwrap();
            assert_eq!(form.blocks, None);
            let form = form.by_groups().unwrap();
            assert_eq!(form.coordinates, coordinates, "{likelihood}");
            let blocks = form.blocks.as_ref().unwrap();
            assert_eq!(
                (blocks.shared.len(), blocks.groups.len()),
                (1, 30),
                "{likelihood}"
            );
            let one = &form.lift * &form.base;
            for i in 0..coordinates as usize {
                for j in 0..coordinates as usize {
                    let expected = f64::from(u8::from(i == j));
                    assert!((one[(i, j)] - expected).abs() < 1e-9, "{one:?}");
                }
            }
        }
        let counts = "record { int<lower=0, upper=99> n; int<lower=1, upper=30> h; }
            parameters { real mu; real<lower=0> tau; vector[30] z; }
            model { z ~ std_normal(); n ~ poisson_log(mu + tau * z[h]); }";
        let model = Model::from_source(counts, &Constants::none()).unwrap();
        assert_eq!(Form::of(&Density::new(model)).unwrap().by_groups, None);
        let (form, _) = form(
            "real mu; vector[5] z; real<lower=0> s;",
            "z ~ std_normal(); y ~ normal(mu + z[g], s);",
        );
        assert_eq!(form.by_groups, None);
    }

    // If it failed: a model of a simplex, or of two vectors that are computed from one, could not be
    // run.
    #[test]
    fn parameters_stay_where_records_see_them_by_themselves_in_order_or_through_more_numbers() {
        for (parameters, model) in [
            (
                "real mu; vector[3] b; real<lower=0> s;",
                "y ~ normal(mu + dot_product(x, b), s);",
            ),
            (
                "vector[3] b; ordered[2] cut;",
                "b ~ std_normal(); cut ~ normal(0, 2); c ~ ordered_logistic(dot_product(x, b), cut);",
            ),
            (
                "real mu; simplex[3] w; real<lower=0> s;",
                "w ~ dirichlet([1, 1, 1]); y ~ normal(mu + dot_product(x, w), s);",
            ),
            (
                "vector[5] z; real<lower=0> tau; real sigma; real<lower=0> s;",
                "z ~ std_normal(); vector[5] a = tau * z; vector[5] b = sigma * z; y ~ normal(a[g] + x[1] * b[g], s);",
            ),
        ] {
            let (form, dimension) = form(parameters, model);
            assert!(form.space.is_parameters(), "{model}");
            assert_eq!(form.coordinates as usize, dimension, "{model}");
        }
    }

    // If it failed: a direction that no record tells of where a factor is zero would be left out of
    // the search, and its prior returned as its posterior.
    #[test]
    fn factors_of_a_number_that_is_zero_at_the_middle_of_the_prior_are_seen() {
        for (parameters, model) in [
            (
                "real mu; real b; real<lower=0> k; real<lower=0> s;",
                "b ~ normal(0, 1); y ~ normal(mu + b * exp(-k * (x[1] + 1)), s);",
            ),
            (
                "real mu; real b; simplex[3] d; real<lower=0> s;",
                "b ~ normal(0, 1); y ~ normal(mu + b * (d[1] * (c > 1 ? 1 : 0) + d[2] * (c > 2 ? 1 : 0)), s);",
            ),
            (
                "real mu; real b; real<lower=-3, upper=3> phase;",
                "b ~ normal(0, 1); (y > 0 ? 1 : 0) ~ bernoulli_logit(mu + b * cos(3 * x[1] - phase));",
            ),
        ] {
            let (form, dimension) = form(parameters, model);
            assert_eq!(form.coordinates as usize, dimension, "{model}");
        }
    }

    // Costs by a gamma density, whose shape may be so small that a grid has not all of their mass. If it failed: the model
    // would have no law, and of nine answers three were off by 5 to 18 of their own sds.
    #[test]
    fn a_search_begins_wide_only_where_outcomes_have_a_law() {
        let source = "record { real<lower=0, upper=10000> y; vector<lower=-3, upper=3>[2] x; }
            parameters { real a; vector[2] b; real c; vector[2] d; real<lower=0> k; }
            model {
              a ~ normal(0, 2); b ~ normal(0, 1); c ~ normal(3, 2); d ~ normal(0, 1); k ~ lognormal(0, 1);
              (y > 0) ~ bernoulli_logit(a + dot_product(x, b));
              target += y > 0 ? gamma_lpdf(y | k, k / exp(c + dot_product(x, d))) : 0;
            }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let middle = middle_of_prior(&density, SEED).unwrap();
        let wide = widest_of_prior(&density, &middle, SEED).unwrap();
        assert!(Law::of(&density, &wide, SEED).is_err());
        let form = Form::of(&density).unwrap();
        assert_eq!(form.no_law, None);
        assert_eq!(form.middle, middle);
    }
}

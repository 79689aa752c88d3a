//! Log densities and gradients of published posteriors, against values computed
//! from Stan's definition of the same models by other software
//! (`tests/reference/NOTICE`).
//!
//! A wrong prior, likelihood, transform, Jacobian or gradient in one of these
//! models fails here; Stan leaves constants out, so differences between points
//! are compared. Data sets too large for this repository are read from
//! `../shared/reference` where that is there; where it is not, the test says so
//! and checks nothing.

use std::path::PathBuf;

use serde_json::Value;

use crate::corpus::{read, root};
use crate::evaluation::{gradient, log_density, shipped, shipped_table, table_of};

macro_rules! posteriors {
    ($($test:ident $name:literal)*) => {
        const NAMES: &[&str] = &[$($name),*];

        $(#[test]
        fn $test() {
            agrees_with_reference($name);
        })*
    };
}

posteriors! {
    adult_income "adult_income"
    binomial "GLM_Binomial_data-GLM_Binomial_model"
    diamonds "diamonds-diamonds"
    earnings "earnings-logearn_interaction"
    eight_schools "eight_schools-eight_schools_noncentered"
    fertility "fertility"
    item_response "irt_2pl-irt_2pl"
    kidiq "kidiq-kidscore_momhsiq"
    kidiq_factor "kidiq_with_mom_work-kidscore_mom_work"
    kidiq_robust "kidiq-robust_t"
    mixture "low_dim_gauss_mix"
    nes "nes1972-nes"
    nes_ordered "nes_pooled-ordered_logit"
    poisson "GLM_Poisson_Data-GLM_Poisson_model"
    radon "radon_mn-radon_hierarchical_intercept_noncentered"
    radon_all "radon_all-radon_partially_pooled_noncentered"
    radon_softmax "lode_radon"
    rats "rats_data-rats_model"
    regression "sblrc-blr"
    survival "nafld_survival"
    drinks "nesarc_drinks"
    wages "cps1988_wages"
    wells "wells_data-wells_dae_inter_model"
}

/// Folders of larger references, which need not be there.
const ELSEWHERE: [&str; 2] = [
    "../shared/reference/posteriordb",
    "../shared/reference/datasets",
];

/// The first of these files that exists.
fn first_of(candidates: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    candidates.into_iter().find(|path| path.exists())
}

fn check_points(name: &str) -> Option<Value> {
    let ours = root().join(format!("tests/reference/{name}.logdensity_check.json"));
    let theirs = ELSEWHERE.map(|f| root().join(f).join(name).join("logdensity_check.json"));
    let radon = root().join("../shared/reference/lode_radon/logdensity_check.json");
    let others = theirs
        .into_iter()
        .chain((name == "lode_radon").then_some(radon));
    let path = first_of(std::iter::once(ours).chain(others))?;
    Some(serde_json::from_str(&read(&path)).expect("JSON"))
}

fn data_elsewhere(name: &str) -> Option<PathBuf> {
    let folders = ELSEWHERE.map(|f| root().join(f).join(name));
    let radon = root().join("../shared/reference/lode_radon/radon_floor_std.csv.gz");
    first_of(
        folders
            .iter()
            .flat_map(|f| [f.join("data.csv"), f.join("data.csv.gz")])
            .chain((name == "lode_radon").then_some(radon)),
    )
}

/// Every model that has a reference is compared with it: a model added to
/// `models/` without a line above shows here.
#[test]
fn no_reference_is_left_out() {
    for folder in ["tests/reference"].iter().chain(&ELSEWHERE) {
        let Ok(entries) = std::fs::read_dir(root().join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|n| n.to_str()).expect("a name");
            let name = match file.strip_suffix(".logdensity_check.json") {
                Some(name) => name,
                None if path.join("logdensity_check.json").exists() => file,
                None => continue,
            };
            assert!(NAMES.contains(&name), "{name} is not compared");
        }
    }
}

/// Relative error allowed in a gradient.
///
/// Stan's `bernoulli_logit` takes `inv_logit(z)` for zero below z = -20, which
/// is exp(-20) = 2e-9 off in the derivative by z. At two points of the item
/// responses some records lie there, and their z moves by tens with log a; the
/// eleven other points agree to 4e-15.
fn gradient_tolerance(name: &str) -> f64 {
    match name {
        "irt_2pl-irt_2pl" => 1.3e-8,
        _ => 1e-8,
    }
}

fn agrees_with_reference(name: &str) {
    let density = shipped(name);
    let table = shipped_table(name, &density)
        .or_else(|| data_elsewhere(name).map(|path| table_of(&path, &density)));
    let (Some(table), Some(check)) = (table, check_points(name)) else {
        eprintln!("{name}: its data or its reference is not here; nothing was compared");
        return;
    };
    let points = check["points"].as_array().expect("points");
    assert!(points.len() > 5);
    let mut first = None;
    for (k, point) in points.iter().enumerate() {
        let params = &point["params"];
        let theta = density
            .unconstrain(|parameter, position| {
                let shape = &density
                    .model()
                    .parameters
                    .iter()
                    .find(|p| p.name == parameter);
                let index = &shape.expect("a parameter").shape.indices()[position];
                let index: Vec<String> = index.iter().map(ToString::to_string).collect();
                let element = match index.len() {
                    0 => parameter.to_string(),
                    _ => format!("{parameter}[{}]", index.join(",")),
                };
                params
                    .get(&element)
                    .and_then(Value::as_f64)
                    .ok_or(format!("{element} is missing"))
            })
            .expect("inside the constraints");
        let expected = numbers(&point["unconstrained"]);
        assert_eq!(theta.len(), expected.len());
        for (ours, theirs) in theta.iter().zip(&expected) {
            assert!(
                (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0),
                "{name} {k}: {ours} {theirs}"
            );
        }

        let [prior, jacobian, likelihood] = log_density(&density, &table, &theta);
        let ours = [prior + likelihood, prior + likelihood + jacobian];
        let number = |key: &str| point[key].as_f64().expect("a number");
        let theirs = [number("lp_nojac"), number("lp_jac")];
        let (our_first, their_first) = *first.get_or_insert((ours, theirs));
        for i in 0..2 {
            let (a, b) = (ours[i] - our_first[i], theirs[i] - their_first[i]);
            assert!(
                (a - b).abs() <= 1e-9 * theirs[i].abs().max(1.0),
                "{name} point {k}: log density differs by {a}, expected {b}"
            );
        }

        let ours = gradient(&density, &table, &theta);
        let theirs = numbers(&point["grad_unconstrained"]);
        let size = theirs.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (j, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            assert!(
                (a - b).abs() <= gradient_tolerance(name) * size,
                "{name} point {k}, coordinate {j}: {a}, expected {b}"
            );
        }
    }
}

fn numbers(json: &Value) -> Vec<f64> {
    let list = json.as_array().expect("a list");
    list.iter().map(|v| v.as_f64().expect("a number")).collect()
}

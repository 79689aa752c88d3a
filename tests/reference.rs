//! Log densities and gradients of published posteriors, against values computed
//! from Stan's definition of the same models by other software
//! (`tests/reference/NOTICE`).
//!
//! A wrong prior, likelihood, transform, Jacobian or gradient in one of these
//! four models fails here; Stan leaves constants out, so differences between
//! points are compared.

mod evaluation;

use evaluation::{gradient, log_density, read, root, shipped, shipped_table};
use serde_json::Value;

#[test]
fn wells() {
    agrees_with_reference("wells_data-wells_dae_inter_model");
}

#[test]
fn kidiq() {
    agrees_with_reference("kidiq-kidscore_momhsiq");
}

#[test]
fn radon() {
    agrees_with_reference("radon_mn-radon_hierarchical_intercept_noncentered");
}

#[test]
fn adult_income() {
    agrees_with_reference("adult_income");
}

fn agrees_with_reference(name: &str) {
    let density = shipped(name);
    let table = shipped_table(name, &density).expect("data beside the model");
    let path = root().join(format!("tests/reference/{name}.logdensity_check.json"));
    let check: Value = serde_json::from_str(&read(&path)).expect("JSON");
    let points = check["points"].as_array().expect("points");
    assert!(points.len() > 10);
    let mut first = None;
    for (k, point) in points.iter().enumerate() {
        let theta = density
            .unconstrain(|parameter, position| {
                // Parameters of these models are scalars and vectors.
                let element = format!("{parameter}[{}]", position + 1);
                let params = &point["params"];
                let value = params.get(&element).or_else(|| params.get(parameter));
                value
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
                (a - b).abs() <= 1e-8 * size,
                "{name} point {k}, coordinate {j}: {a}, expected {b}"
            );
        }
    }
}

fn numbers(json: &Value) -> Vec<f64> {
    let list = json.as_array().expect("a list");
    list.iter().map(|v| v.as_f64().expect("a number")).collect()
}

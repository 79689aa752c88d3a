//! Values and derivatives of scalar functions against mpmath at 60 digits
//! (tests/fixtures/distributions/make.py), to the ends of their domains.

use super::Unary;

#[test]
fn functions_with_fixtures_match_mpmath() {
    let mut seen = Vec::new();
    for line in include_str!("../../tests/fixtures/distributions/functions.csv")
        .lines()
        .skip(1)
    {
        let fields: Vec<&str> = line.split(',').collect();
        let function = *Unary::ALL
            .iter()
            .find(|f| format!("{f:?}") == fields[0])
            .expect("a function of the table");
        seen.push(fields[0].to_string());
        let number = |i: usize| fields[i].parse::<f64>().expect("a number");
        let (x, value, derivative, second) = (number(1), number(2), number(3), number(4));
        let definition = function.definition();
        let ours = (definition.value)(x);
        let slope = (definition.derivative)(x, ours);
        // Relative, or the effect of one unit in the argument's last place.
        let ulp = 2.0 * f64::EPSILON * x.abs();
        let allowed = 3e-14 * value.abs() + ulp * derivative.abs();
        assert!(
            (ours - value).abs() <= allowed,
            "{function:?}({x}) = {ours}, expected {value}"
        );
        let allowed = 2e-12 * derivative.abs() + ulp * second.abs();
        assert!(
            (slope - derivative).abs() <= allowed,
            "{function:?}'({x}) = {slope}, expected {derivative}"
        );
    }
    for function in [
        Unary::Log1pMinus,
        Unary::Expm1Minus,
        Unary::StirlingError,
        Unary::LogPhi,
        Unary::LogPhiOverDensity,
        Unary::LogCauchyCdf,
        Unary::LogCosh,
        Unary::LogScaledBesselI0,
    ] {
        let rows = seen.iter().filter(|s| **s == format!("{function:?}"));
        assert!(rows.count() >= 10, "too few rows for {function:?}");
    }
}

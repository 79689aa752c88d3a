//! A run's draws compared with reference draws of the same parameters.

use serde::Serialize;

use super::mmd::{median_distance, mmd_with_width};
use super::moments::{mean_of, variance_of};

/// How far a sample is from a reference, jointly and for each parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// See [`super::mmd()`]. It depends on the parameters' units: one with a large spread
    /// outweighs the others.
    pub mmd: f64,
    /// Its kernel's width.
    pub width: f64,
    /// The MMD, with a width of its own, after each parameter was centred and scaled by the
    /// reference's mean and standard deviation; without those that have no spread there.
    pub mmd_standardised: f64,
    pub parameters: Vec<ParameterComparison>,
}

/// One parameter's part; NaN (JSON null) where the reference has no spread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterComparison {
    pub parameter: String,
    /// (mean - reference mean) / reference sd.
    pub mean_error: f64,
    /// sd / reference sd.
    pub sd_ratio: f64,
}

/// Points whose number of coordinates is not the number of parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "draw {} of the {sample} has {found} values, but there are {expected} parameters to compare",
    index + 1
)]
pub struct ComparisonError {
    /// "run" or "reference".
    pub sample: &'static str,
    /// Which point, from 0.
    pub index: usize,
    pub found: usize,
    pub expected: usize,
}

/// Compares points (rows of one value per name, all chains pooled) with reference points.
///
/// `seed` chooses the pairs that set the kernel's width of the MMD.
///
/// # Errors
///
/// A point that does not have one value for each of `parameters`.
pub fn compare<P: AsRef<[f64]>, Q: AsRef<[f64]>>(
    parameters: &[String],
    run: &[P],
    reference: &[Q],
    seed: u64,
) -> Result<Comparison, ComparisonError> {
    check_width("run", run, parameters.len())?;
    check_width("reference", reference, parameters.len())?;
    let of_parameter = |(column, parameter): (usize, &String)| {
        let own = coordinate(run, column);
        let exact = coordinate(reference, column);
        let reference_sd = variance_of(&exact).sqrt();
        let error = (mean_of(&own) - mean_of(&exact)) / reference_sd;
        ParameterComparison {
            parameter: parameter.clone(),
            mean_error: if reference_sd > 0.0 { error } else { f64::NAN },
            sd_ratio: if reference_sd > 0.0 {
                variance_of(&own).sqrt() / reference_sd
            } else {
                f64::NAN
            },
        }
    };
    let width = median_distance(run, reference, seed);
    let scales = Scales::of(reference, parameters.len());
    let (own, exact) = (scales.standardise(run), scales.standardise(reference));
    let standard_width = median_distance(&own, &exact, seed);
    Ok(Comparison {
        mmd: mmd_with_width(run, reference, width),
        width,
        mmd_standardised: mmd_with_width(&own, &exact, standard_width),
        parameters: parameters.iter().enumerate().map(of_parameter).collect(),
    })
}

/// Column, mean and standard deviation of each coordinate that has a spread.
struct Scales(Vec<(usize, f64, f64)>);

impl Scales {
    fn of<P: AsRef<[f64]>>(reference: &[P], dimension: usize) -> Scales {
        let of_column = |column| {
            let draws = coordinate(reference, column);
            (column, mean_of(&draws), variance_of(&draws).sqrt())
        };
        let has_spread = |(_, _, sd): &(usize, f64, f64)| *sd > 0.0;
        Scales((0..dimension).map(of_column).filter(has_spread).collect())
    }

    /// Without coordinates the points have dimension 0, and the MMD is undefined.
    fn standardise<P: AsRef<[f64]>>(&self, points: &[P]) -> Vec<Vec<f64>> {
        let of_point = |point: &P| {
            let scaled =
                |&(column, mean, sd): &(usize, f64, f64)| (point.as_ref()[column] - mean) / sd;
            self.0.iter().map(scaled).collect()
        };
        points.iter().map(of_point).collect()
    }
}

fn check_width<P: AsRef<[f64]>>(
    sample: &'static str,
    points: &[P],
    expected: usize,
) -> Result<(), ComparisonError> {
    match points.iter().position(|p| p.as_ref().len() != expected) {
        None => Ok(()),
        Some(index) => {
            let found = points[index].as_ref().len();
            Err(ComparisonError {
                sample,
                index,
                found,
                expected,
            })
        }
    }
}

fn coordinate<P: AsRef<[f64]>>(points: &[P], column: usize) -> Vec<f64> {
    points.iter().map(|p| p.as_ref()[column]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    #[test]
    fn errors_are_in_reference_sds_and_signed() {
        let run = [[1.0, 0.0], [5.0, 2.0]];
        let reference = [[4.0, 0.0], [6.0, 0.0]];
        let result = compare(&names(&["a", "b[1]"]), &run, &reference, 1).unwrap();
        let [a, b] = &result.parameters[..] else {
            panic!("two parameters")
        };
        assert_eq!(a.parameter, "a");
        assert!((a.mean_error + 2.0 / 2f64.sqrt()).abs() < 1e-15);
        assert!((a.sd_ratio - 2.0).abs() < 1e-15);
        assert!(b.mean_error.is_nan() && b.sd_ratio.is_nan());
        assert!(result.mmd > 0.0);
        let json = serde_json::to_value(&result).unwrap();
        assert!(json["parameters"][1]["mean_error"].is_null());
    }

    /// The unit and the origin of a parameter do not affect the standardised MMD, but affect the
    /// other; a parameter without spread has no effect.
    #[test]
    fn the_standardised_mmd_has_no_units() {
        let wave = |i: u32, seed: u32| f64::from((i * 7919 + seed) % 1009) / 1009.0;
        // The run differs in `a`, which is negligible in the units of `b`.
        let points = |seed, scale: f64, offset: f64, apart| -> Vec<[f64; 3]> {
            let a = |i: u32| wave(i * 17, seed) + apart;
            let b = |i: u32| scale * wave(i * 31, seed) + offset;
            (0..200).map(|i| [a(i), b(i), 1.0]).collect()
        };
        let compared = |scale, offset| {
            let run = points(1, scale, offset, 1.0);
            let reference = points(400, scale, offset, 0.0);
            compare(&names(&["a", "b", "c"]), &run[..150], &reference, 1).unwrap()
        };
        let (one, other) = (compared(1.0, 0.0), compared(1000.0, 30.0));
        assert!((one.mmd_standardised - other.mmd_standardised).abs() < 1e-9);
        assert!(one.mmd > 0.5 && other.mmd < 0.1, "{one:?} {other:?}");
        assert!(one.mmd_standardised > 0.5 && other.width > 100.0 * one.width);
        assert!(one.parameters[2].sd_ratio.is_nan());
    }

    #[test]
    fn a_point_of_the_wrong_width_is_named() {
        let error = compare(&names(&["a"]), &[vec![1.0], vec![1.0, 2.0]], &[[1.0]], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "draw 2 of the run has 2 values, but there are 1 parameters to compare"
        );
    }

    #[test]
    fn nothing_to_compare_is_nan_not_a_panic() {
        let none: [[f64; 1]; 0] = [];
        let result = compare(&names(&["a"]), &none, &none, 1).unwrap();
        assert!(result.mmd.is_nan() && result.parameters[0].mean_error.is_nan());
    }
}

//! Where the expectations of the model for records come from.

use serde::Serialize;

use crate::density::{Density, Frame, Hazard, Law, Sight, Space};

/// The expectations of the model for records at a point.
#[derive(Serialize)]
pub enum Expected<'a> {
    /// By the law of their outcomes.
    Law {
        #[serde(serialize_with = "made_at")]
        law: &'a Law<'a>,
        /// The point from which the law sees records.
        sight: Sight,
    },
    /// By the hazard of a time that may be censored.
    Hazard {
        #[serde(serialize_with = "columns_of")]
        hazard: Hazard<'a>,
        sight: Sight,
    },
    /// By central differences of gradients: the sights one step ahead of the point and one step
    /// behind it, along each coordinate.
    Differences { sights: Vec<[Sight; 2]>, step: f64 },
}

impl<'a> Expected<'a> {
    /// By a law, at a point of the space, in the frame's coordinates.
    pub fn by_law(law: &'a Law<'a>, space: &Space, point: &[f64], frame: &Frame) -> Expected<'a> {
        Expected::Law {
            law,
            sight: law.sight(space, point, frame),
        }
    }

    /// By a hazard, at a point of the space, in the frame's coordinates.
    pub fn by_hazard(
        hazard: Hazard<'a>,
        space: &Space,
        point: &[f64],
        frame: &Frame,
    ) -> Expected<'a> {
        Expected::Hazard {
            sight: hazard.sight(space, point, frame),
            hazard,
        }
    }

    /// By differences about the frame's centre, `step` to either side along its coordinates.
    pub fn by_differences(
        density: &Density,
        space: &Space,
        frame: &Frame,
        step: f64,
    ) -> Expected<'a> {
        let aside = |k: usize, by: f64| {
            let mut u = vec![0.0; frame.coordinates()];
            u[k] = by;
            density.sight(space, &frame.point(&u), frame)
        };
        let both = |k: usize| [aside(k, -step), aside(k, step)];
        Expected::Differences {
            sights: (0..frame.coordinates()).map(both).collect(),
            step,
        }
    }
}

/// Where a law was made, which is enough to make it again.
fn made_at<S: serde::Serializer>(law: &Law, to: S) -> Result<S::Ok, S::Error> {
    law.made_at().serialize(to)
}

fn columns_of<S: serde::Serializer>(hazard: &Hazard, to: S) -> Result<S::Ok, S::Error> {
    hazard.censored.serialize(to)
}

impl std::fmt::Debug for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Expected::Law { .. } => "Law",
            Expected::Hazard { .. } => "Hazard",
            Expected::Differences { .. } => "Differences",
        })
    }
}

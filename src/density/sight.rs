//! From where records are looked at, and in which coordinates.

use serde::{Deserialize, Serialize};

use super::{Density, Frame, Jacobian};

/// What a frame's centre is a point of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// The unconstrained parameters.
    Parameters,
    /// The numbers through which records see them: the interface of
    /// [`Density::row_program`].
    Interface,
}

/// The interface at a point, and its derivatives with respect to a frame's coordinates.
#[derive(Debug, Clone)]
pub struct Sight {
    pub z: Vec<f64>,
    pub jacobian: Jacobian,
}

impl Density {
    /// Looks from `point` of the space, which need not be the frame's centre.
    pub fn sight(&self, space: Space, point: &[f64], frame: &Frame) -> Sight {
        match space {
            Space::Parameters => Sight {
                z: self.interface(point).z,
                jacobian: self.interface_jacobian(point).in_frame(frame),
            },
            Space::Interface => Sight {
                z: point.to_vec(),
                jacobian: Jacobian::identity(point.len()).in_frame(frame),
            },
        }
    }

    /// The length of a point of the space.
    pub fn length_of(&self, space: Space) -> usize {
        match space {
            Space::Parameters => self.dimension(),
            Space::Interface => self.rows.interface_length(),
        }
    }
}

//! The points from which records are seen, and their coordinates.

use serde::{Deserialize, Serialize};

use super::{Density, Frame, Jacobian, RowProgram};
use crate::model::{PublicId, PublicOp};

/// The components of a point from which records are seen: public vectors that records see, one
/// after the other, and then coordinates of the unconstrained parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Space {
    pub(super) vectors: Vec<PublicId>,
    /// Positions of coordinates.
    pub(super) parameters: Vec<usize>,
    /// All coordinates; those that are not part of a point keep their values, which records see
    /// only through the vectors.
    pub(super) rest: Vec<f64>,
}

/// The interface at a point, and its derivatives with respect to a frame's coordinates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sight {
    pub z: Vec<f64>,
    pub jacobian: Jacobian,
}

impl Space {
    /// The space of `d` unconstrained parameters, and nothing else.
    pub(crate) fn of_parameters(d: usize) -> Space {
        Space {
            vectors: Vec::new(),
            parameters: (0..d).collect(),
            rest: vec![0.0; d],
        }
    }

    /// Whether points are all of the unconstrained parameters.
    pub fn is_parameters(&self) -> bool {
        self.vectors.is_empty()
    }
}

impl Density {
    /// Points are the unconstrained parameters.
    pub fn parameters(&self) -> Space {
        Space::of_parameters(self.dimension())
    }

    /// Points are the numbers through which records see the parameters.
    pub(crate) fn interface_space(&self) -> Space {
        Space {
            vectors: self.rows.interface().collect(),
            parameters: Vec::new(),
            rest: vec![0.0; self.dimension()],
        }
    }

    /// Points are the vectors from which a record looks up an element, where these are computed,
    /// such as `mu + tau * z`, or moved and scaled by other parameters, and the coordinates that are seen
    /// otherwise; `None` where there are no such vectors. `with_coefficients`: also vectors of coefficients
    /// of which one is a curved function of several coordinates, such as `scale .* z`. `programs` see the
    /// parameters as records do, about `theta`.
    pub(crate) fn computed_space(
        &self,
        theta: &[f64],
        programs: &[&RowProgram],
        with_coefficients: bool,
    ) -> Option<Space> {
        let graph = &self.model.graphs.public;
        let (looked_up, coefficients) = (self.rows.looked_up(), self.rows.coefficients());
        let is_moved =
            |j: usize| (self.model.location_scales.iter()).any(|m| m.coordinates.contains(&j));
        let is_computed = |id: &PublicId| {
            if let PublicOp::Unconstrained { offset, length } = graph.node(*id).op {
                return looked_up.contains(id)
                    && (offset..offset + length).all(|j| is_moved(j as usize));
            }
            let jacobian = self.jacobian_of_vectors(&[*id], theta);
            let is_joint = || jacobian.rows.iter().any(|row| row.len() > 1);
            let is_wanted = looked_up.contains(id)
                || with_coefficients && coefficients.contains(id) && is_joint();
            is_wanted && !jacobian.is_constant()
        };
        let vectors: Vec<PublicId> = self.rows.interface().filter(is_computed).collect();
        if vectors.is_empty() {
            return None;
        }
        let mut seen = vec![false; self.dimension()];
        for program in programs {
            let others: Vec<PublicId> = program
                .interface()
                .filter(|id| !vectors.contains(id))
                .collect();
            for row in self.jacobian_of_vectors(&others, theta).rows {
                for (j, _) in row {
                    seen[j] = true;
                }
            }
        }
        Some(Space {
            vectors,
            parameters: (0..self.dimension()).filter(|&j| seen[j]).collect(),
            rest: theta.to_vec(),
        })
    }

    /// Whether points are a linear function of the unconstrained parameters: no vector is computed from them.
    pub(crate) fn is_linear(&self, space: &Space) -> bool {
        let graph = &self.model.graphs.public;
        let is_parameter =
            |id: &PublicId| matches!(graph.node(*id).op, PublicOp::Unconstrained { .. });
        space.vectors.iter().all(is_parameter)
    }

    /// The point that corresponds to the parameters `theta` (unconstrained).
    pub(crate) fn point_of(&self, space: &Space, theta: &[f64]) -> Vec<f64> {
        let mut point = self.values(theta, &space.vectors).concat();
        point.extend(space.parameters.iter().map(|&j| theta[j]));
        point
    }

    /// The Jacobian of [`Density::point_of`].
    pub(crate) fn point_jacobian(&self, space: &Space, theta: &[f64]) -> Jacobian {
        let mut jacobian = self.jacobian_of_vectors(&space.vectors, theta);
        jacobian
            .rows
            .extend(space.parameters.iter().map(|&j| vec![(j, 1.0)]));
        jacobian
    }

    /// Log prior plus log Jacobian, and the gradient of the sum of that and a function of the point
    /// for `theta` whose slope there is given.
    pub(crate) fn pull_back_point(
        &self,
        space: &Space,
        theta: &[f64],
        slope: &[f64],
    ) -> (f64, Vec<f64>) {
        let first = slope.len() - space.parameters.len();
        let (log_prior, mut gradient) =
            self.pull_back_vectors(theta, &space.vectors, &slope[..first]);
        for (&j, s) in space.parameters.iter().zip(&slope[first..]) {
            gradient[j] += s;
        }
        (log_prior, gradient)
    }

    /// The length of a point of the space.
    pub fn length_of(&self, space: &Space) -> usize {
        let graph = &self.model.graphs.public;
        let vectors = space.vectors.iter().map(|&id| graph.length(id));
        vectors.sum::<usize>() + space.parameters.len()
    }

    /// The sight from `point` of the space, which need not be the frame's centre.
    pub fn sight(&self, space: &Space, point: &[f64], frame: &Frame) -> Sight {
        self.sight_of(&self.rows, space, point, frame)
    }

    /// The point as a program sees it.
    pub(super) fn sight_of(
        &self,
        program: &RowProgram,
        space: &Space,
        point: &[f64],
        frame: &Frame,
    ) -> Sight {
        let graph = &self.model.graphs.public;
        let theta = self.parameters_at(space, point);
        let first = point.len() - space.parameters.len();
        let mut z = Vec::with_capacity(program.interface_length());
        let mut rows = Vec::with_capacity(program.interface_length());
        let others: Vec<PublicId> = program
            .interface()
            .filter(|id| !space.vectors.contains(id))
            .collect();
        let mut values = self.values(&theta, &others).into_iter();
        let mut slopes = self.jacobian_of_vectors(&others, &theta).rows.into_iter();
        for id in program.interface() {
            let length = graph.length(id);
            let before = space.vectors.iter().take_while(|v| **v != id);
            if space.vectors.contains(&id) {
                let start: usize = before.map(|&v| graph.length(v)).sum();
                z.extend_from_slice(&point[start..start + length]);
                rows.extend((start..start + length).map(|k| vec![(k, 1.0)]));
            } else {
                z.extend(values.next().unwrap_or_default());
                rows.extend(slopes.by_ref().take(length).map(|row| {
                    let position_of = |j: usize| space.parameters.iter().position(|&p| p == j);
                    let moved = row
                        .into_iter()
                        .filter_map(|(j, w)| Some((first + position_of(j)?, w)));
                    moved.collect()
                }));
            }
        }
        let jacobian = Jacobian::new(point.len(), rows);
        Sight {
            z,
            jacobian: jacobian.in_frame(frame),
        }
    }

    /// The parameters with the coordinates of a point.
    fn parameters_at(&self, space: &Space, point: &[f64]) -> Vec<f64> {
        let mut theta = space.rest.clone();
        let own = &point[point.len() - space.parameters.len()..];
        for (&j, x) in space.parameters.iter().zip(own) {
            theta[j] = *x;
        }
        theta
    }

    /// The Jacobian of public vectors, one after the other, with respect to the unconstrained
    /// parameters.
    fn jacobian_of_vectors(&self, vectors: &[PublicId], theta: &[f64]) -> Jacobian {
        self.jacobian_of(vectors.iter().copied(), theta)
    }
}

//! Constrained parameters and the unconstrained space that samplers move in.
//!
//! The transforms and their log Jacobian determinants are those of the Stan
//! Reference Manual, "Constraint Transforms", versions 2.32 to 2.36: the order
//! of the unconstrained numbers is Stan's, too. Each is written on vector nodes,
//! for all elements of an array at once, since a node costs microseconds at
//! every density evaluation however short it is.

mod affine;
mod bounds;
mod cholesky_factor_corr;
mod cholesky_factor_cov;
mod corr_matrix;
mod cov_matrix;
mod ordered;
mod simplex;
mod sum_to_zero;
mod unit_vector;

pub use affine::Affine;
pub use bounds::Bounds;

use super::blocks::Blocks;
use super::constraint;
use super::public::{PublicGraph, PublicId};
use super::value::Shape;
use crate::check::Joint;

/// How the elements of a parameter are computed from unconstrained ones `u`.
#[derive(Debug, Clone, PartialEq)]
pub enum Transform {
    /// x = u
    Identity,
    Bounds(Bounds),
    Affine(Affine),
    /// The joint constraint on each block of an array.
    Joint(Joint, Blocks),
}

/// A constrained value, and the log Jacobian where it is not zero.
pub(super) struct Constrained {
    pub value: PublicId,
    /// Terms of the log absolute determinant, each of length 1.
    pub log_jacobian: Vec<PublicId>,
}

impl Transform {
    /// Number of unconstrained coordinates of a parameter of that shape.
    pub fn free_length(&self, shape: &Shape) -> usize {
        match self {
            Transform::Identity | Transform::Bounds(_) | Transform::Affine(_) => shape.length(),
            Transform::Joint(joint, blocks) => blocks.count * free_size(*joint, *blocks),
        }
    }

    /// Adds the constrained value and the log Jacobian of unconstrained elements
    /// `u` to the graph; there is at least one.
    pub(super) fn constrain(&self, g: &mut PublicGraph, u: PublicId) -> Constrained {
        match self {
            Transform::Identity => Constrained {
                value: u,
                log_jacobian: Vec::new(),
            },
            Transform::Bounds(bounds) => bounds.constrain(g, u),
            Transform::Affine(affine) => affine.constrain(g, u),
            Transform::Joint(joint, blocks) => match joint {
                Joint::Ordered => ordered::constrain(g, u, *blocks, false),
                Joint::PositiveOrdered => ordered::constrain(g, u, *blocks, true),
                Joint::Simplex => simplex::constrain(g, u, *blocks),
                Joint::UnitVector => unit_vector::constrain(g, u, *blocks),
                Joint::SumToZero => sum_to_zero::constrain(g, u, *blocks),
                Joint::CholeskyFactorCorr => cholesky_factor_corr::constrain(g, u, *blocks),
                Joint::CholeskyFactorCov => cholesky_factor_cov::constrain(g, u, *blocks),
                Joint::CorrMatrix => corr_matrix::constrain(g, u, *blocks),
                Joint::CovMatrix => cov_matrix::constrain(g, u, *blocks),
            },
        }
    }

    /// The only value of a parameter without unconstrained coordinates, such as
    /// `simplex[1]`.
    pub fn only_value(&self, shape: &Shape) -> Vec<f64> {
        let value = match self {
            Transform::Joint(Joint::Simplex | Joint::CorrMatrix | Joint::CholeskyFactorCorr, _) => {
                1.0
            }
            _ => 0.0,
        };
        vec![value; shape.length()]
    }

    /// Unconstrained coordinates of constrained values; `number` evaluates the
    /// nodes that the transform refers to.
    ///
    /// Errors: the values violate the constraint, or lie on its boundary, which
    /// no unconstrained point reaches.
    pub fn unconstrain(
        &self,
        name: &str,
        values: &[f64],
        shape: &Shape,
        number: &dyn Fn(PublicId) -> Vec<f64>,
    ) -> Result<Vec<f64>, String> {
        match self {
            Transform::Identity => bounds::unconstrain(name, values, &[], &[], shape),
            Transform::Bounds(b) => {
                let limits = |id: Option<PublicId>| id.map(number).unwrap_or_default();
                bounds::unconstrain(name, values, &limits(b.lower), &limits(b.upper), shape)
            }
            Transform::Affine(affine) => affine.unconstrain(name, values, shape, number),
            Transform::Joint(joint, blocks) => {
                let mut free = Vec::new();
                for (k, block) in values.chunks(blocks.length().max(1)).enumerate() {
                    let name = || constraint::block_name(name, shape, k);
                    if let Some(problem) = constraint::violation(*joint, *blocks, block) {
                        return Err(format!(
                            "`{}` is not {}: {problem}",
                            name(),
                            joint.with_article()
                        ));
                    }
                    let first = free.len();
                    match joint {
                        Joint::Ordered => ordered::unconstrain(block, false, &mut free),
                        Joint::PositiveOrdered => ordered::unconstrain(block, true, &mut free),
                        Joint::Simplex => simplex::unconstrain(block, &mut free),
                        // Stan's choice among many possible ones.
                        Joint::UnitVector => free.extend_from_slice(block),
                        Joint::SumToZero => sum_to_zero::unconstrain(block, &mut free),
                        Joint::CholeskyFactorCorr => {
                            cholesky_factor_corr::unconstrain(block, blocks.rows, &mut free);
                        }
                        Joint::CholeskyFactorCov => {
                            cholesky_factor_cov::unconstrain(block, *blocks, &mut free);
                        }
                        Joint::CorrMatrix => {
                            corr_matrix::unconstrain(block, blocks.rows, &mut free);
                        }
                        Joint::CovMatrix => {
                            cov_matrix::unconstrain(block, *blocks, &mut free);
                        }
                    }
                    if free[first..].iter().any(|u| !u.is_finite()) {
                        return Err(format!(
                            "`{}` lies on the boundary of what {} may be, which the sampler cannot reach",
                            name(),
                            joint.with_article()
                        ));
                    }
                }
                Ok(free)
            }
        }
    }
}

/// Unconstrained coordinates of one block.
fn free_size(joint: Joint, blocks: Blocks) -> usize {
    let (rows, columns) = (blocks.rows, blocks.columns);
    match joint {
        Joint::Ordered | Joint::PositiveOrdered | Joint::UnitVector => rows,
        Joint::Simplex | Joint::SumToZero => rows.saturating_sub(1),
        Joint::CholeskyFactorCorr | Joint::CorrMatrix => rows * rows.saturating_sub(1) / 2,
        Joint::CholeskyFactorCov => {
            columns * (columns + 1) / 2 + rows.saturating_sub(columns) * columns
        }
        Joint::CovMatrix => rows * (rows + 1) / 2,
    }
}

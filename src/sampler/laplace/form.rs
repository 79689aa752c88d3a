//! The form of a model: properties, known before a row is read, that determine what a search asks
//! and in which coordinates.

pub(super) mod blocks;
mod look;
mod prior;

use crate::density::{Censored, Density, Frame, Hazard, Law, NoLaw, Space};
use crate::linear::Matrix;
use crate::privacy::Expected;
use blocks::Blocks;
pub(super) use prior::middle_and_sd;

/// The seed of the public randomness by which a model is looked at.
const SEED: u64 = 1;

/// Where the information in a record comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Information {
    /// It is the same for all records and at all parameters: there is nothing to release.
    Public,
    /// The law that the model gives the record's outcomes.
    Law {
        /// Whether gradients are bounded for all outcomes.
        bounded: bool,
    },
    /// The hazard that the model gives a time that may be censored.
    Hazard(Censored),
    /// Second derivatives of its log-likelihood.
    Curvature,
}

impl Information {
    /// For reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Information::Public => "public",
            Information::Law { bounded: true } => "law, bounded gradients",
            Information::Law { bounded: false } => "law",
            Information::Hazard(_) => "hazard",
            Information::Curvature => "second derivatives",
        }
    }

    /// Whether a plan for `other` asks the same of the vault.
    pub(crate) fn is_planned_as(self, other: Information) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The coordinates of a search: those y, of the point origin + base y, in which a record's
/// information is about the identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    pub(crate) information: Information,
    /// The reason why the outcomes have no law, where information does not come from one.
    pub(crate) no_law: Option<NoLaw>,
    /// The number of coordinates, without those that no record sees.
    pub(crate) coordinates: u64,
    /// The space of the origin.
    pub(crate) space: Space,
    /// The middle of the prior, or a place with wide scales; unconstrained scale.
    pub(crate) middle: Vec<f64>,
    /// The approximate distance from its middle that the prior allows each number of a point.
    pub(crate) spread: Vec<f64>,
    /// One row for each number of a point of the space, one column for each coordinate.
    pub(crate) base: Matrix,
    /// The left inverse of `base`.
    pub(crate) lift: Matrix,
    /// Directions in which the prior is wide, where they are few.
    pub(crate) wide: Option<Wide>,
    /// Groups of these coordinates of which a record sees one.
    pub(crate) blocks: Option<Blocks>,
    /// Other coordinates, of which there are such groups.
    pub(crate) by_groups: Option<ByGroups>,
}

/// The expectations for records at the frame's centre, by a law or a hazard.
fn expected<'a>(
    density: &'a Density,
    (law, censored): (Option<&'a Law<'a>>, Option<Censored>),
    space: &Space,
    frame: &Frame,
) -> Option<Expected<'a>> {
    let point = frame.centre();
    match (law, censored) {
        (Some(law), _) => Some(Expected::by_law(law, space, point, frame)),
        (None, Some(of)) => {
            let hazard = Hazard::new(density, of);
            Some(Expected::by_hazard(hazard, space, point, frame))
        }
        (None, None) => None,
    }
}

/// Directions in which the prior is wider than what one record tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wide {
    /// One column for each, in the form's coordinates: a record has the information 1 about each, and none
    /// between them.
    pub directions: Matrix,
    /// The largest of the prior's variances in these.
    pub variance: f64,
}

/// Coordinates of which a record sees few.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ByGroups {
    base: Matrix,
    lift: Matrix,
    pub blocks: Blocks,
}

impl Form {
    /// The assumptions about a model that was not looked at, with `dimension` unconstrained
    /// coordinates.
    pub(crate) fn unknown(dimension: usize) -> Form {
        Form {
            information: Information::Law { bounded: false },
            no_law: None,
            coordinates: dimension as u64,
            space: Space::of_parameters(dimension),
            middle: vec![0.0; dimension],
            spread: vec![f64::INFINITY; dimension],
            base: Matrix::identity(dimension),
            lift: Matrix::identity(dimension),
            wide: None,
            blocks: None,
            by_groups: None,
        }
    }

    /// The law of the outcomes, where it is the source of information; the same at each call.
    pub(crate) fn law<'a>(&self, density: &'a Density) -> Option<Law<'a>> {
        match self.information {
            Information::Law { .. } => Law::of(density, &self.middle, SEED).ok(),
            Information::Public | Information::Hazard(_) | Information::Curvature => None,
        }
    }

    /// The expectations for records at the frame's centre, where outcomes have a law or a hazard.
    pub(crate) fn expected<'a>(
        &self,
        density: &'a Density,
        law: Option<&'a Law<'a>>,
        frame: &Frame,
    ) -> Option<Expected<'a>> {
        let censored = match self.information {
            Information::Hazard(of) => Some(of),
            _ => None,
        };
        expected(density, (law, censored), &self.space, frame)
    }

    /// The form in coordinates of groups, where there are any.
    pub(crate) fn by_groups(&self) -> Option<Form> {
        let ByGroups { base, lift, blocks } = self.by_groups.clone()?;
        Some(Form {
            base,
            lift,
            wide: None,
            blocks: Some(blocks),
            by_groups: None,
            ..self.clone()
        })
    }

    /// The form with its wide directions only, where there are any.
    pub(crate) fn in_wide_directions(&self) -> Option<Form> {
        let wide = &self.wide.as_ref()?.directions;
        let across = &wide.transposed() * wide;
        let lift = &(&across.inverse() * &wide.transposed()) * &self.lift;
        Some(Form {
            coordinates: wide.columns() as u64,
            base: &self.base * wide,
            lift,
            wide: None,
            by_groups: None,
            ..self.clone()
        })
    }

    /// The precision of y about its middle of which its prior is no wider.
    pub(crate) fn limits_of_prior(&self) -> Matrix {
        // A number that the prior fixes moves with no coordinate.
        let precision = |s: &f64| if *s > 0.0 { s.powi(-2) } else { 0.0 };
        let precisions: Vec<f64> = self.spread.iter().map(precision).collect();
        Matrix::diagonal(&precisions).between(&self.base)
    }

    /// The largest number of coordinates that one record may see.
    pub(crate) fn seen_by_one(&self) -> usize {
        (self.blocks.as_ref()).map_or(self.coordinates as usize, Blocks::seen_by_one)
    }

    /// The root of the information that each coordinate of a search's axes should have, relative to all
    /// of them: 1 where records do not see groups of coordinates.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let m = self.coordinates as usize;
        (self.blocks.as_ref()).map_or(vec![1.0; m], Blocks::weights)
    }

    /// Whether simulated records tell of all coordinates: of each of many groups there would be too few.
    pub(crate) fn is_simulated(&self) -> bool {
        self.blocks.as_ref().is_none_or(Blocks::are_few)
    }

    /// Whether the records see numbers of which the prior knows that groups have similar ones.
    pub(crate) fn has_alike_groups(&self) -> bool {
        self.blocks.is_some() && !self.space.is_parameters()
    }

    /// For each coordinate, whether it is none of such groups.
    pub(crate) fn apart_from_alike_groups(&self) -> Vec<bool> {
        let mut apart = vec![true; self.coordinates as usize];
        if self.has_alike_groups() {
            let groups = self.blocks.iter().flat_map(|blocks| &blocks.groups);
            groups.flatten().for_each(|&j| apart[j] = false);
        }
        apart
    }

    /// The point at y = 0 of a search that begins at the parameters `theta`.
    pub(crate) fn origin(&self, density: &Density, theta: &[f64]) -> Vec<f64> {
        density.point_of(&self.space, theta)
    }
}

//! The neighbouring relation.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::real::Real;

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// One record is replaced by another; the number of records is public.
    Substitute,
    /// One record is added or removed; the number of records is private.
    AddRemove,
    /// The values of one record are left blank, so that it adds nothing to any sum; the
    /// number of records is public.
    ZeroOut,
}

impl Relation {
    pub const ALL: [Relation; 3] = [Relation::Substitute, Relation::AddRemove, Relation::ZeroOut];

    pub fn name(self) -> &'static str {
        match self {
            Relation::Substitute => "substitute",
            Relation::AddRemove => "add-remove",
            Relation::ZeroOut => "zero-out",
        }
    }

    /// Whether neighbours have the same number of records, which may then be told.
    pub fn n_is_public(self) -> bool {
        match self {
            Relation::Substitute | Relation::ZeroOut => true,
            Relation::AddRemove => false,
        }
    }

    /// How often the bound on one record's contribution a sum moves between neighbours
    /// (docs/proofs.md, section 3).
    pub fn factor(self) -> u8 {
        match self {
            Relation::Substitute => 2,
            Relation::AddRemove | Relation::ZeroOut => 1,
        }
    }

    /// How far a sum moves between neighbours, for records of norm at most `clip`:
    /// 2 clip under substitute, clip under add/remove and zero-out.
    pub fn sensitivity(self, clip: Real) -> Real {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Planted::HalfSensitivity) {
            return clip;
        }
        clip * Real::from(u64::from(self.factor()))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_are_read_back_from_their_names() {
        for relation in Relation::ALL {
            assert_eq!(relation.to_string().parse(), Ok(relation));
            let json = serde_json::to_string(&relation).unwrap();
            assert_eq!(json, format!("\"{relation}\""));
        }
        assert!("replace".parse::<Relation>().is_err());
    }
}

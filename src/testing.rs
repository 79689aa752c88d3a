//! What this project's own tests, benchmarks and examples need beyond the documented front,
//! room by room. It may change in any release.
//!
//! All else in the rooms is private to the crate, so that the compiler sees what nobody uses.

pub mod check {
    pub use crate::check::{Checked, Joint, Type, check, on_deep_stack};
}

pub mod density {
    pub use crate::density::{BLOCK, Density, Frame};
}

pub mod distribution {
    pub use crate::distribution::{
        Argument, Domain, FAMILIES, Kind, MOST_MASSES, has_cdf, sums_masses,
    };
}

pub mod function {
    pub use crate::function::catalogue::{functions, synonyms};
    pub use crate::function::linear::cholesky;
    pub use crate::function::{
        Base, Builtin, Function, Pattern, Stages, Type, Unary, lookup, names, overloads,
    };
}

pub mod model {
    pub use crate::model::{BindError, Generator, RecordColumn, Transform};
}

pub mod privacy {
    pub use crate::privacy::{
        BarkerScale, BatchPenaltyPlan, BatchPenaltyScale, Charge, GradientScale, InclusionRate,
        NotPrivate, PenaltyPlan, PenaltyScale, PrivateRng, Rows, Subsampling,
    };

    pub mod penalty {
        pub use crate::privacy::penalty::{J, LATTICE_RATIO};
    }
}

pub mod sampler {
    pub use crate::sampler::{
        ALGORITHMS, Algorithm, Beginning, ExactOracle, Form, Initial, Iterations, Kind, Metric,
        Noise, NonPrivateRun, Observer, Oracle, Oracles, PlanRequest, PlannedLine, PrivateOracle,
        PrivateSettings, Question, Ratio, Scale, View, lookup, sample_from, sample_privately,
        sample_without_privacy,
    };
}

pub mod syntax {
    pub use crate::syntax::{
        BaseType, BlockKind, Diagnostic, LINE_WIDTH, Parsed, Span, format, parse, render,
    };
}

pub mod tune {
    pub use crate::tune::tuned_plan;
}

//! What this project's own tests, benchmarks and examples need beyond the documented front,
//! room by room. It may change in any release.
//!
//! All else in the rooms is private to the crate, so that the compiler sees what nobody uses.

pub mod check {
    pub use crate::check::{Checked, Joint, Type, check, on_deep_stack};
}

pub mod density {
    pub use crate::density::{BLOCK, Density, Frame, Simulator};
}

pub mod distribution {
    pub use crate::distribution::{
        Domain, FAMILIES, Kind, MOST_MASSES, has_cdf, signatures_in_words, sums_masses,
    };
}

pub mod function {
    pub use crate::function::catalogue::{functions, synonyms};
    pub use crate::function::linear::cholesky;
    pub use crate::function::{
        Base, Builtin, Function, Stages, Type, Unary, lookup, names, overloads,
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

    use crate::Vault;
    use crate::density::{Frame, Law};
    use crate::privacy::{Expected, Look, Statistic};

    /// The sum of the records' clipped gradients at the centre of a frame, in its coordinates, as
    /// released but without noise.
    pub fn clipped_gradients(
        vault: &Vault,
        frame: &Frame,
        scale: &GradientScale,
        permission: NotPrivate,
    ) -> Vec<f64> {
        let density = vault.density();
        let sight = density.sight(&density.parameters(), frame.centre(), frame);
        let look = Look::new(sight, Statistic::Gradient);
        vault.clipped_statistic(&look, scale, permission)
    }

    /// Calls `then` with the function that sums the clipped information in each record, by the law
    /// of its outcomes, likewise.
    pub fn with_clipped_information(
        vault: &Vault,
        frame: &Frame,
        clip: f64,
        permission: NotPrivate,
        then: impl FnOnce(&dyn Fn() -> Vec<f64>),
    ) {
        let density = vault.density();
        let law = Law::of(density, frame.centre(), 1).expect("outcomes have a law");
        let (space, centre) = (density.parameters(), frame.centre());
        let expected = Expected::by_law(&law, &space, centre, frame);
        let statistic = Statistic::Information;
        let look = Look {
            expected: Some(&expected),
            ..Look::new(density.sight(&space, centre, frame), statistic)
        };
        let scale = statistic.scale(clip, 2, 10.0, frame.coordinates());
        let scale = scale.expect("a usable clip bound");
        then(&|| vault.clipped_statistic(&look, &scale, permission));
    }

    pub mod penalty {
        pub use crate::privacy::penalty::{J, LATTICE_RATIO};
    }
}

pub mod sampler {
    pub use crate::sampler::{
        ALGORITHMS, Algorithm, Beginning, ExactOracle, Form, Initial, Iterations, Kind, Metric,
        Noise, NonPrivateRun, Observer, Oracle, Oracles, PlanRequest, PlannedLine, PrivateOracle,
        PrivateSettings, Question, Ratio, Scale, View, draw_prior, lookup, sample_from,
        sample_privately, sample_without_privacy,
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

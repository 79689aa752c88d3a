//! Items that this project's own tests, benchmarks and examples need beyond the documented front,
//! room by room. They may change in any release.
//!
//! All else in the rooms is private to the crate, so that the compiler sees what nobody uses.

pub mod analysis {
    use crate::Error;
    use crate::accounting::{Event, Real, Relation};
    use crate::analysis::{HeldOut, Marginals, Predictor, Promise, ScorePlan, with_statistics};
    use crate::model::{Constants, Model, RecordColumn};
    use crate::privacy::{Bounds, Charge, PrivateRng, ReleaseError, Rows, ScoreBounds, Vault};

    fn promise(epsilon: f64, relation: Relation) -> Promise {
        Promise {
            epsilon: Real::from(epsilon),
            delta: Real::from(1e-6),
            relation,
            unit: None,
            // So few as in the tests would be refused, and what is refused is not attacked.
            records: None,
            part: None,
        }
    }

    /// The release of `dpm synth --covariates`.
    #[derive(Debug)]
    pub struct Covariates(Marginals);

    impl Covariates {
        /// As it is planned.
        pub fn new(model: &Model, epsilon: f64, relation: Relation) -> Result<Covariates, Error> {
            Marginals::new(model, &promise(epsilon, relation)).map(Covariates)
        }

        /// As rows are loaded for it.
        pub fn columns(model: &Model) -> Vec<RecordColumn> {
            Marginals::columns_of(model)
        }

        pub fn event(&self) -> &Event {
            &self.0.once.event
        }

        pub fn sums(
            &self,
            rows: Rows,
            charge: Charge,
            rng: &mut PrivateRng,
        ) -> Result<Vec<f64>, ReleaseError> {
            self.0.sums(rows, charge, rng)
        }
    }

    /// The release of `dpm score`.
    pub struct Score {
        plan: ScorePlan,
        runs: Vec<Predictor>,
    }

    impl Score {
        /// Of runs of one model with these draws, clipped to these bounds, with statistics of the
        /// first; `records`: their number where it is public and none is blank.
        pub fn new(
            model: &Model,
            draws: Vec<Vec<Vec<f64>>>,
            statistics: &[String],
            ([lower, upper], is_binary): ([f64; 2], bool),
            records: Option<u64>,
            (epsilon, relation): (f64, Relation),
        ) -> Result<Score, Error> {
            let half = 0.5 * (upper - lower);
            let difference = Bounds {
                lower: -half,
                upper: half,
            };
            let source = with_statistics(&model.source, statistics)?;
            let model = Model::from_source(&source, &Constants::none())?;
            let mut runs = Vec::with_capacity(draws.len());
            for (k, draws) in draws.into_iter().enumerate() {
                let own = if k == 0 { statistics } else { &[] };
                runs.push(Predictor::at(model.clone(), draws).checking(own)?);
            }
            let bounds = ScoreBounds {
                density: Bounds { lower, upper },
                differences: vec![difference; runs.len() - 1],
                is_binary,
                statistics: runs[0].bounds_of_statistics(),
                records,
            };
            Ok(Score {
                plan: ScorePlan::new(bounds, &promise(epsilon, relation))?,
                runs,
            })
        }

        /// The held-out records, for each run.
        pub fn vaults(&self, rows: impl Fn() -> Rows) -> Result<Vec<Vault>, Error> {
            let vault = |run: &Predictor| run.vault(rows());
            self.runs.iter().map(vault).collect()
        }

        pub fn event(&self) -> &Event {
            &self.plan.once.event
        }

        pub fn sums(
            &self,
            (vaults, rows): (&[Vault], Rows),
            charge: Charge,
            rng: &mut PrivateRng,
        ) -> Result<Vec<f64>, ReleaseError> {
            let is_checked = !self.runs[0].bounds_of_statistics().is_empty();
            let rows = is_checked.then_some(rows);
            let held_out = HeldOut { vaults, rows };
            self.plan.sums(&self.runs, held_out, charge, rng)
        }
    }
}

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
    use std::any::Any;
    use std::sync::Arc;

    pub use crate::sampler::{
        ALGORITHMS, Algorithm, Beginning, ExactOracle, Initial, Iterations, Kind, Metric, Noise,
        NonPrivateRun, Observer, Oracle, Oracles, PlanRequest, PlannedLine, PrivateOracle,
        PrivateSettings, Question, Ratio, Scale, View, draw_prior, lookup, sample_from,
        sample_privately, sample_without_privacy,
    };
    use crate::sampler::{Form, ModelFacts};

    /// The facts about the same model with a prior that is nowhere wide, so that a search looks in all
    /// directions from its first round on; `None` where it does so anyway.
    pub fn without_wide_directions(facts: &dyn ModelFacts) -> Option<Arc<dyn ModelFacts>> {
        let facts: &dyn Any = facts;
        let form = facts.downcast_ref::<Form>()?;
        form.wide.as_ref()?;
        Some(Arc::new(Form {
            wide: None,
            ..form.clone()
        }))
    }
}

pub mod syntax {
    pub use crate::syntax::{
        BaseType, BlockKind, Diagnostic, LINE_WIDTH, Parsed, Span, format, parse, render,
    };
}

pub mod tune {
    pub use crate::tune::tuned_plan;
}

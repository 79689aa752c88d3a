//! From events to a guarantee: `account`.

use super::accountant::{AccountError, Accountant, Query, check_query};
use super::composition::Composition;
use super::event::Event;
use super::guarantee::Guarantee;
use super::relation::Relation;
use super::{gaussian_accountant, pld, rdp, zcdp};

impl Accountant {
    /// The privacy of all `events` together.
    ///
    /// # Errors
    ///
    /// A delta outside (0, 1), an epsilon that is negative or above 1e60, an event made
    /// for another relation or of a kind that this accountant has no bound for, or a delta
    /// that discrete noise cannot reach.
    pub fn account(
        self,
        events: &[Event],
        relation: Relation,
        query: Query,
    ) -> Result<Guarantee, AccountError> {
        check_query(query)?;
        let composition = Composition::new(events, relation)?;
        match self {
            Accountant::Gaussian => gaussian_accountant::account(&composition, query),
            Accountant::Zcdp => zcdp::account(&composition, query),
            Accountant::Rdp => rdp::account(&composition, query),
            Accountant::Pld => pld::account(&composition, query),
        }
    }
}

/// The privacy of all `events` together, by the accountant with the tightest bounds.
///
/// # Errors
///
/// As [`Accountant::account`].
pub fn account(
    events: &[Event],
    relation: Relation,
    query: Query,
) -> Result<Guarantee, AccountError> {
    Accountant::tightest(events).account(events, relation, query)
}

#[cfg(test)]
mod tests {
    use super::super::guarantee::GuaranteeBounds;
    use super::super::real::Real;
    use super::super::release::{Gaussian, Lattice};
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn events(texts: &[&str], relation: Relation) -> Vec<Event> {
        let parse = |text: &&str| Event::parse(text, relation).unwrap();
        texts.iter().map(parse).collect()
    }

    // The oracle's group 20, with its terms as a user would write them.
    #[test]
    fn several_events_are_one_gaussian() {
        let events = events(
            &[
                "gaussian:sensitivity=1,sigma=10,count=100",
                "gaussian:sensitivity=0.25,sigma=2,count=30",
                "gaussian:sensitivity=3,sigma=100,count=1000",
            ],
            Relation::Substitute,
        );
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let guarantee = account(&events, Relation::Substitute, query).unwrap();
        assert!((guarantee.epsilon - 8.046320508527716).abs() < 1e-14);
        let mu = guarantee.mu.unwrap();
        assert!((mu - 1.184375).abs() < 1e-15 && mu >= 1.184375);
        let query = Query::Delta {
            epsilon: real("50"),
        };
        let guarantee = account(&events, Relation::Substitute, query).unwrap();
        assert!((guarantee.ln_delta + 510.452_295_764_376_46).abs() < 1e-12);
    }

    #[test]
    fn the_json_has_the_names_of_the_command_line_page() {
        let events = events(&["gaussian:clip=1,sigma=2,count=1"], Relation::AddRemove);
        let keys = |query| {
            let guarantee = account(&events, Relation::AddRemove, query).unwrap();
            let json = serde_json::to_value(guarantee).unwrap();
            assert_eq!(json["accountant"], "gaussian");
            assert_eq!(json["relation"], "add-remove");
            assert_eq!(json["proved"], true);
            let keys: Vec<String> = json.as_object().unwrap().keys().cloned().collect();
            keys.join(" ")
        };
        let tail = "ln_delta mu accountant relation proved";
        assert_eq!(
            keys(Query::Epsilon {
                delta: real("1e-6")
            }),
            format!("epsilon delta epsilon_lower epsilon_upper {tail}")
        );
        assert_eq!(
            keys(Query::Delta { epsilon: Real::ONE }),
            format!("epsilon delta delta_lower delta_upper {tail}")
        );
    }

    // Wrong here: substitute data accounted with half its sensitivity.
    #[test]
    fn an_event_of_the_other_relation_is_refused() {
        let query = Query::Delta { epsilon: Real::ONE };
        let events = events(&["gaussian:clip=1,sigma=2"], Relation::AddRemove);
        let error = account(&events, Relation::Substitute, query).unwrap_err();
        assert!(matches!(error, AccountError::RelationMismatch { .. }));
        assert!(
            error
                .to_string()
                .contains("sensitivity of 2 under substitute")
        );
    }

    #[test]
    fn delta_of_one_and_negative_epsilon_are_errors() {
        for delta in ["0", "1", "2", "-1e-6"] {
            let query = Query::Epsilon { delta: real(delta) };
            let error = account(&[], Relation::Substitute, query).unwrap_err();
            assert!(matches!(error, AccountError::DeltaOutOfRange(_)));
        }
        for epsilon in [-1.0, f64::NAN, f64::INFINITY] {
            let query = Query::Delta {
                epsilon: epsilon.into(),
            };
            let error = account(&[], Relation::Substitute, query).unwrap_err();
            assert!(matches!(error, AccountError::EpsilonOutOfRange(_)));
        }
        let query = Query::Epsilon {
            delta: f64::NAN.into(),
        };
        assert!(account(&[], Relation::Substitute, query).is_err());
    }

    #[test]
    fn nothing_released_is_free() {
        let query = Query::Epsilon {
            delta: real("1e-9"),
        };
        let guarantee = account(&[], Relation::Substitute, query).unwrap();
        assert_eq!((guarantee.epsilon, guarantee.mu), (0.0, Some(0.0)));
        let query = Query::Delta { epsilon: Real::ONE };
        let guarantee = account(&[], Relation::Substitute, query).unwrap();
        assert_eq!(guarantee.delta, 0.0);
    }

    // Wrong here: a run on a lattice would be accounted as if its noise were continuous.
    #[test]
    fn a_lattice_adds_its_term_and_a_coarse_one_is_refused() {
        let release = |ratio: f64, count| {
            let lattice = Lattice::new(ratio, 10).unwrap();
            let gaussian = Gaussian::of_sensitivity("gradient", 1.0, 20.0).unwrap();
            vec![Event::Gaussian(gaussian.on_lattice(lattice).times(count))]
        };
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let epsilon = |events: &[Event]| account(events, Relation::Substitute, query);
        let plain = events(
            &["gaussian:sensitivity=1,sigma=20,count=100"],
            Relation::Substitute,
        );
        let plain = epsilon(&plain).unwrap();
        let fine = epsilon(&release(2f64.powi(-40), 100)).unwrap();
        assert!(fine.epsilon >= plain.epsilon);
        assert!(fine.epsilon - plain.epsilon < 1e-12);
        assert!(matches!(
            fine.bounds,
            GuaranteeBounds::Epsilon {
                epsilon_lower: None,
                ..
            }
        ));
        let error = epsilon(&release(0.01, 100)).unwrap_err();
        assert!(matches!(error, AccountError::DeltaUnreachable { .. }));
    }

    #[test]
    fn accountants_are_read_from_their_names() {
        for accountant in Accountant::ALL {
            assert_eq!(accountant.to_string().parse(), Ok(accountant));
        }
        assert!(matches!(
            "x".parse::<Accountant>(),
            Err(AccountError::UnknownAccountant(_))
        ));
    }
}

//! How much privacy a run may spend, and the meter that stops it there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use thiserror::Error;

use super::event::Event;
use super::real::Real;

/// The (epsilon, delta) that bounds a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Budget {
    epsilon: Real,
    delta: Real,
}

impl Budget {
    /// Epsilon above 0 and at most 1e60, delta strictly between 0 and 1.
    pub fn new(epsilon: impl Into<Real>, delta: impl Into<Real>) -> Result<Budget, BudgetError> {
        let (epsilon, delta) = (epsilon.into(), delta.into());
        if !(epsilon > Real::ZERO && epsilon <= Real::exact(1e60)) {
            return Err(BudgetError::Epsilon(epsilon.to_f64()));
        }
        if !(delta > Real::ZERO && delta < Real::ONE) {
            return Err(BudgetError::Delta(delta.to_f64()));
        }
        Ok(Budget { epsilon, delta })
    }

    pub fn epsilon(&self) -> Real {
        self.epsilon
    }

    pub fn delta(&self) -> Real {
        self.delta
    }
}

/// A budget that makes no sense, or one that is used up.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BudgetError {
    #[error("epsilon is {0}; give a finite number above 0, such as 1")]
    Epsilon(f64),
    #[error(
        "delta is {0}; give a number above 0 and below 1, at most 1/(number of records), such as \
         1e-6"
    )]
    Delta(f64),
    #[error(
        "the planned releases of `{what}` are used up: requested {requested}, spent {spent}, \
         remaining {remaining}, short by {short_by}; plan a run with more of them"
    )]
    UsedUp {
        what: String,
        requested: u64,
        spent: u64,
        remaining: u64,
        short_by: u64,
    },
    #[error("release line {line} was not planned; the plan has {lines} lines, counted from 0")]
    NotPlanned { line: usize, lines: usize },
    #[error(
        "a release of `{what}` was asked for before the ledger's watermark of the run covered it"
    )]
    NotGranted { what: String },
}

/// The running charge of a planned schedule. Shared between threads, it never grants more
/// releases of a line than were planned. A [`Reservation`](super::Reservation) has one.
#[derive(Debug)]
pub struct Meter {
    planned: Vec<Event>,
    counts: Mutex<Vec<Count>>,
}

/// Releases of one line.
#[derive(Clone, Copy, Debug)]
struct Count {
    spent: u64,
    /// As planned, or fewer where grants are written down first.
    granted: u64,
}

impl Meter {
    /// The caller has charged the releases, or declares that they are not private.
    pub(crate) fn new(planned: Vec<Event>) -> Meter {
        let count = |event: &Event| Count {
            spent: 0,
            granted: event.count(),
        };
        Meter {
            counts: Mutex::new(planned.iter().map(count).collect()),
            planned,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Count>> {
        // No code that holds the lock can panic halfway.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The meter of a resumed run, for which this many releases of each line were granted before.
    ///
    /// # Errors
    ///
    /// More of a line than were planned, or another number of lines.
    pub(crate) fn resumed(planned: Vec<Event>, spent: &[u64]) -> Result<Meter, BudgetError> {
        if spent.len() != planned.len() {
            return Err(BudgetError::NotPlanned {
                line: spent.len().saturating_sub(1),
                lines: planned.len(),
            });
        }
        for (event, &spent) in planned.iter().zip(spent) {
            if spent > event.count() {
                return Err(BudgetError::UsedUp {
                    what: event.what().to_owned(),
                    requested: 0,
                    spent,
                    remaining: 0,
                    short_by: spent - event.count(),
                });
            }
        }
        let meter = Meter::new(planned);
        for (count, &spent) in meter.lock().iter_mut().zip(spent) {
            count.spent = spent;
        }
        Ok(meter)
    }

    /// As [`Meter::resumed`], for a run whose releases are granted in parts: no more than were
    /// granted before, until [`Meter::grant`] raises the number.
    pub(crate) fn watermarked(planned: Vec<Event>, spent: &[u64]) -> Result<Meter, BudgetError> {
        let meter = Meter::resumed(planned, spent)?;
        meter.grant(spent);
        Ok(meter)
    }

    /// Sets how many releases of each line may be made in all.
    pub(super) fn grant(&self, releases: &[u64]) {
        let mut counts = self.lock();
        for ((count, event), &releases) in counts.iter_mut().zip(&self.planned).zip(releases) {
            count.granted = releases.min(event.count());
        }
    }

    /// Takes back any grant above this many releases of each line. Returns false and changes
    /// nothing if more releases of a line have been made.
    pub(super) fn narrow(&self, releases: &[u64]) -> bool {
        let mut counts = self.lock();
        let covered = counts
            .iter()
            .zip(releases)
            .all(|(c, &most)| c.spent <= most);
        if covered {
            for (count, &releases) in counts.iter_mut().zip(releases) {
                count.granted = count.granted.min(releases);
            }
        }
        covered
    }

    /// Takes one release from the `line`-th planned event. Call it before a row is read:
    /// what has been charged is never given back.
    ///
    /// # Errors
    ///
    /// The line's count is used up or not yet granted, or there is no such line; then nothing is
    /// charged.
    pub fn charge(&self, line: usize) -> Result<(), BudgetError> {
        let mut counts = self.lock();
        let (Some(event), Some(count)) = (self.planned.get(line), counts.get_mut(line)) else {
            return Err(BudgetError::NotPlanned {
                line,
                lines: self.planned.len(),
            });
        };
        if count.spent < count.granted {
            count.spent += 1;
            return Ok(());
        }
        let what = event.what().to_owned();
        Err(if count.spent < event.count() {
            BudgetError::NotGranted { what }
        } else {
            BudgetError::UsedUp {
                what,
                requested: 1,
                spent: count.spent,
                remaining: 0,
                short_by: 1,
            }
        })
    }

    /// The planned events with the counts used so far; lines not used are left out.
    pub fn spent(&self) -> Vec<Event> {
        let counts = self.counts().into_iter();
        let spent = self.planned.iter().zip(counts);
        let spent = spent.filter(|(_, count)| *count > 0);
        spent
            .map(|(event, count)| event.clone().times(count))
            .collect()
    }

    /// How many releases of each planned line have been granted.
    pub fn counts(&self) -> Vec<u64> {
        self.lock().iter().map(|count| count.spent).collect()
    }

    pub fn planned(&self) -> &[Event] {
        &self.planned
    }
}

#[cfg(test)]
mod tests {
    use super::super::release::Gaussian;
    use super::*;

    fn line(what: &str, count: u64) -> Event {
        let gaussian = Gaussian::of_sensitivity(what, 1.0, 2.0).unwrap();
        Event::Gaussian(gaussian.times(count))
    }

    #[test]
    fn budgets_that_promise_nothing_are_refused() {
        assert!(Budget::new(1.0, 1e-6).is_ok());
        for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Budget::new(epsilon, 1e-6).unwrap_err().to_string();
            assert!(error.contains(&format!("epsilon is {epsilon}")), "{error}");
        }
        for delta in [0.0, 1.0, -1e-6, 2.0, f64::NAN] {
            let error = Budget::new(1.0, delta).unwrap_err().to_string();
            assert!(error.contains(&format!("delta is {delta}")), "{error}");
        }
    }

    #[test]
    fn a_line_that_is_used_up_says_so() {
        let meter = Meter::new(vec![line("gradient", 2), line("log-ratio", 5)]);
        assert_eq!(meter.spent(), []);
        meter.charge(0).unwrap();
        meter.charge(0).unwrap();
        let error = meter.charge(0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the planned releases of `gradient` are used up: requested 1, spent 2, remaining 0, \
             short by 1; plan a run with more of them"
        );
        assert_eq!(meter.spent(), [line("gradient", 2)]);
        assert_eq!(meter.planned().len(), 2);
        assert_eq!(
            meter.charge(2),
            Err(BudgetError::NotPlanned { line: 2, lines: 2 })
        );
    }

    // Wrong here: a resumed run repeats releases that it has made.
    #[test]
    fn a_meter_goes_on_from_where_it_was() {
        let planned = vec![line("gradient", 3), line("log-ratio", 5)];
        let meter = Meter::resumed(planned.clone(), &[2, 5]).unwrap();
        meter.charge(0).unwrap();
        assert!(meter.charge(0).is_err() && meter.charge(1).is_err());
        assert_eq!(meter.counts(), [3, 5]);
        for wrong in [&[4, 0][..], &[0, 6], &[0], &[0, 0, 0]] {
            assert!(Meter::resumed(planned.clone(), wrong).is_err());
        }
    }

    // Wrong here: a release that no watermark covers, of which nothing would be known after a kill.
    #[test]
    fn a_watermarked_meter_charges_what_was_granted() {
        let planned = vec![line("gradient", 5), line("log-ratio", 5)];
        let meter = Meter::watermarked(planned, &[2, 0]).unwrap();
        let refused = |line| matches!(meter.charge(line), Err(BudgetError::NotGranted { .. }));
        assert!(refused(0) && refused(1));
        meter.grant(&[4, 1]);
        meter.charge(0).unwrap();
        meter.charge(0).unwrap();
        meter.charge(1).unwrap();
        assert!(refused(0) && refused(1));
        // A release that was made is never taken back.
        assert!(!meter.narrow(&[3, 1]));
        assert!(meter.narrow(&[4, 1]));
        // A grant of more than was planned gives no more.
        meter.grant(&[9, 9]);
        meter.charge(0).unwrap();
        assert!(matches!(meter.charge(0), Err(BudgetError::UsedUp { .. })));
        assert_eq!(meter.counts(), [5, 1]);
    }

    // Wrong here: two chains take the last release at once, and the run overspends.
    #[test]
    fn threads_never_get_more_than_was_planned() {
        for round in 0..20 {
            let count = 1000 + round;
            let meter = Meter::new(vec![line("gradient", count), line("log-ratio", 3)]);
            let granted = std::thread::scope(|scope| {
                let chains: Vec<_> = (0..16)
                    .map(|_| {
                        scope.spawn(|| {
                            let asked = (0..200).filter(|_| meter.charge(0).is_ok()).count();
                            (asked, (0..2).filter(|_| meter.charge(1).is_ok()).count())
                        })
                    })
                    .collect();
                chains
                    .into_iter()
                    .map(|chain| chain.join().unwrap())
                    .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
            });
            assert_eq!(granted, (count as usize, 3));
            assert_eq!(meter.spent(), meter.planned());
        }
    }
}

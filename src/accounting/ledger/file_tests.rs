//! The file of a ledger, tortured: every byte of it lost or changed, every write cut
//! short, and the lock held by a process that never releases it.

use std::fs;

use super::super::super::accountant::Accountant;
use super::super::super::budget::Budget;
use super::super::super::event::Event;
use super::super::super::relation::Relation;
use super::super::session::{Request, Session, Statement};
use super::super::terms::Terms;
use super::*;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            folder: tempfile::tempdir().unwrap(),
        };
        let budget = Budget::new(2.0, 1e-6).unwrap();
        let terms =
            Terms::new(budget, Relation::Substitute, "record", Accountant::Gaussian).unwrap();
        Session::create(place.ledger(), &terms).unwrap();
        place
    }

    fn ledger(&self) -> PathBuf {
        self.folder.path().join("l")
    }

    fn head(&self) -> PathBuf {
        self.folder.path().join("l.head")
    }

    fn run(&self, releases: u64) -> Result<(), LedgerError> {
        let relation = Relation::Substitute;
        let events = [Event::parse("gaussian:clip=1,sigma=300,count=10", relation).unwrap()];
        let request = Request {
            run: "a run",
            events: &events,
            relation,
            unit: "record",
            part: None,
        };
        let session = Session::open(self.ledger())?;
        let reservation = session.reserve(&request)?;
        for _ in 0..releases {
            reservation.meter().charge(0).unwrap();
        }
        reservation.complete().map(|_| ())
    }

    fn statement(&self) -> Result<Statement, LedgerError> {
        Session::open(self.ledger())?.statement()
    }

    fn bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let read = |path| fs::read(path).unwrap();
        (read(self.ledger()), read(self.head()))
    }

    /// In place, so that it stays the same file.
    fn put(&self, ledger: &[u8], head: &[u8]) {
        fs::write(self.ledger(), ledger).unwrap();
        fs::write(self.head(), head).unwrap();
    }

    /// It is refused, and the message says that the ledger does not hold.
    fn is_refused(&self, what: &str) {
        match self.statement() {
            Err(error @ LedgerError::Damaged { .. }) => {
                let said = error.to_string();
                assert!(said.contains("does not hold: "), "{what}: {said}");
                assert!(said.len() > 60, "{what}: {said}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

// Wrong here: an edit that nobody notices, which could lower what is spent.
#[test]
fn every_byte_of_the_files_matters() {
    let place = Place::new();
    for releases in [10, 0, 3] {
        place.run(releases).unwrap();
    }
    let (ledger, head) = place.bytes();
    let whole = place.statement().unwrap();
    assert_eq!((whole.entries, whole.runs.runs), (7, 3));
    let (mut edits, mut harmless) = (0, 0);
    for (name, original) in [("ledger", &ledger), ("head", &head)] {
        let put = |bytes: &[u8]| match name {
            "ledger" => place.put(bytes, &head),
            _ => place.put(&ledger, bytes),
        };
        for at in 0..original.len() {
            put(&original[..at]);
            // The head's last byte is a line feed that says nothing.
            if (name, at) == ("head", original.len() - 1) {
                assert_eq!(place.statement().unwrap(), whole);
            } else {
                place.is_refused(&format!("{name} cut at {at}"));
            }
            // A bit low and high, the case of a letter; and a byte taken out.
            for flip in [0x01, 0x20, 0x80] {
                let mut edited = original.clone();
                edited[at] ^= flip;
                put(&edited);
                edits += 1;
                match place.statement() {
                    Err(LedgerError::Damaged { .. }) => {}
                    // A space for a line feed, where both are nothing.
                    Ok(same) if name == "head" && same == whole => harmless += 1,
                    other => panic!("{name}, byte {at}, bits {flip:#x}: {other:?}"),
                }
            }
            let mut without = original.clone();
            without.remove(at);
            put(&without);
            if (name, at) != ("head", original.len() - 1) {
                place.is_refused(&format!("{name} without byte {at}"));
            }
        }
        let lines: Vec<&[u8]> = original.split_inclusive(|&b| b == b'\n').collect();
        for i in 0..lines.len() {
            let without = [&lines[..i], &lines[i + 1..]].concat().concat();
            let doubled = [&lines[..=i], &lines[i..]].concat().concat();
            for (what, bytes) in [("without", without), ("with twice", doubled)] {
                put(&bytes);
                place.is_refused(&format!("{name} {what} line {i}"));
            }
        }
    }
    assert!(edits > 3000 && harmless <= 3, "{edits}, {harmless}");
    place.put(&ledger, &head);
    assert_eq!(place.statement().unwrap(), whole);
}

// Wrong here: a crash in the middle of a write loses a charge, or makes the ledger
// unreadable for ever.
#[test]
fn a_write_cut_short_at_any_byte_is_repaired() {
    let place = Place::new();
    place.run(10).unwrap();
    let (before, old_head) = place.bytes();
    let one = place.statement().unwrap().spent;
    place.run(10).unwrap();
    let (after, new_head) = place.bytes();
    let two = place.statement().unwrap().spent;
    let reserved = before.len()
        + after[before.len()..]
            .iter()
            .position(|&b| b == b'\n')
            .unwrap();
    // All ends of lines, and some places within.
    let places = (before.len()..=after.len()).filter(|at| {
        at % 31 == 0 || at.abs_diff(reserved) < 3 || after.len() - at < 3 || at - before.len() < 3
    });
    for at in places {
        place.put(&after[..at], &old_head);
        // A crash before the head was renamed leaves this file as well.
        fs::write(place.folder.path().join("l.head.new"), &new_head[..at % 40]).unwrap();
        let statement = place
            .statement()
            .unwrap_or_else(|e| panic!("cut at {at}: {e}"));
        let charged = at >= reserved;
        assert_eq!(
            statement.spent,
            if charged { two } else { one },
            "cut at {at}"
        );
        assert_eq!(
            statement.runs.runs,
            if charged { 2 } else { 1 },
            "cut at {at}"
        );
        place.run(10).unwrap_or_else(|e| panic!("cut at {at}: {e}"));
        let statement = place.statement().unwrap();
        assert_eq!(
            statement.runs.runs,
            if charged { 3 } else { 2 },
            "cut at {at}"
        );
        assert!(place.bytes().0.starts_with(&after[..at]), "cut at {at}");
        assert!(!statement.torn_tail);
    }
}

// Wrong here: a run that hangs for ever, or one that continues without the lock.
#[test]
fn a_ledger_that_stays_locked_is_given_up() {
    let place = Place::new();
    place.run(10).unwrap();
    let before = place.bytes();
    let patience = Duration::from_millis(300);
    let (mut ledger, mut chain) =
        LedgerFile::open(&place.ledger(), HeadRule::Required, false).unwrap();
    assert_eq!(ledger.patience, Duration::from_secs(60));
    ledger.patience = patience;

    let other = File::open(place.ledger()).unwrap();
    other.lock().unwrap();
    let begun = Instant::now();
    let opened = LedgerFile::open_within(patience, &place.ledger(), HeadRule::Required, false);
    let refreshed = ledger.refresh(&mut chain);
    let appended = ledger.append(&mut chain, |_, _, _| panic!("it decides without the lock"));
    assert!(begun.elapsed() >= 3 * patience);
    for refused in [opened.map(|_| ()), refreshed, appended] {
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, LedgerError::InUse { waited, .. } if *waited == patience),
            "{error}"
        );
        let said = error.to_string();
        assert!(said.contains("is in use by another run"), "{said}");
        assert!(said.contains("try again"), "{said}");
    }
    assert_eq!(place.bytes(), before);

    // Readers keep writers out, and not each other.
    other.unlock().unwrap();
    other.lock_shared().unwrap();
    ledger.refresh(&mut chain).unwrap();
    let appended = ledger.append(&mut chain, |_, _, _| panic!("it decides without the lock"));
    assert!(matches!(appended, Err(LedgerError::InUse { .. })));
    other.unlock().unwrap();
    place.run(10).unwrap();
}

// If it failed: a run would be refused because, at that moment, the program was starting another.
#[test]
fn a_lock_that_is_held_for_a_moment_is_waited_for() {
    let tries = std::cell::Cell::new(0);
    let taken = try_for_a_moment(|| {
        tries.set(tries.get() + 1);
        match tries.get() {
            3 => Ok(()),
            _ => Err(TryLockError::WouldBlock),
        }
    });
    assert!(taken.is_ok() && tries.get() == 3);
    let never = try_for_a_moment(|| Err(TryLockError::WouldBlock));
    assert!(matches!(never, Err(TryLockError::WouldBlock)));
}

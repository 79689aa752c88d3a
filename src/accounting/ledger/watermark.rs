//! A bound on the releases of a resumable run, written down before they are made.
//!
//! A run's state lies in its own directory, which anybody may copy, or put back from a
//! backup. Resuming from an older state would make releases a second time, under other noise, on
//! one charge. So the ledger keeps, in a file next to it, which state of each chain is the last,
//! and how many releases it may make:
//!
//! 1. the run writes a state to the disk that grants a chain some iterations, and names it by
//!    random bits, with the name of the state before;
//! 2. the watermark takes that name and the releases that the grant allows, on the disk;
//! 3. only now does the [`Meter`](super::super::Meter) give them.
//!
//! A run resumes from the states that the watermark names, or from ones that follow them directly,
//! which a kill between 1 and 2 leaves. It starts its count at the watermark. So whatever was
//! copied, killed or restored, all processes together have made no more releases than the watermark
//! says, and the watermark never passes the charge. The file carries the token of the run's last
//! entry in the ledger, which changes each time the run stops or resumes: a watermark that was
//! itself restored from before that is refused.
//!
//! The process that runs it holds the lock of this file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rand::rand_core::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};

use super::error::LedgerError;
use super::file::{Identity, identity, try_for_a_moment};
use super::head::{sync_folder, with_suffix};
use super::slot::{Slot, read_slot, slot_bytes};

/// The releases that a state of a chain allows, and the name of that state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// 128 random bits, in hexadecimal.
    pub id: String,
    /// The name of the state before; the first has none.
    pub after: Option<String>,
    /// Releases of each planned event that the chain has made, or may make under this grant.
    pub released: Vec<u64>,
}

/// 128 random bits, in hexadecimal.
///
/// # Errors
///
/// The system provides no random numbers.
pub fn random_id() -> io::Result<String> {
    let mut bits = [0; 16];
    SysRng.try_fill_bytes(&mut bits).map_err(io::Error::other)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Watermark {
    /// How often it was written.
    number: u64,
    /// The token of the run's last entry in the ledger.
    token: String,
    /// The token that is about to replace it.
    next_token: Option<String>,
    /// The last grant of each chain.
    grants: Vec<Option<Grant>>,
}

impl Watermark {
    fn new(token: &str, chains: usize) -> Watermark {
        Watermark {
            number: 0,
            token: token.to_owned(),
            next_token: None,
            grants: vec![None; chains],
        }
    }
}

/// A watermark whose run belongs to this process and to no other.
#[derive(Debug)]
pub(super) struct HeldWatermark {
    known: Watermark,
    entry: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Memory(Arc<Mutex<Watermark>>),
    File {
        path: PathBuf,
        file: File,
        identity: Identity,
        /// Length of one of its two slots, in bytes.
        slot: u64,
    },
}

/// Watermarks of a budget that has no file.
#[derive(Debug, Default)]
pub(super) struct InMemory(std::collections::HashMap<u64, Arc<Mutex<Watermark>>>);

impl InMemory {
    pub fn create(&mut self, entry: u64, token: &str, chains: usize) -> HeldWatermark {
        let known = Watermark::new(token, chains);
        let place = Arc::new(Mutex::new(known.clone()));
        self.0.insert(entry, Arc::clone(&place));
        HeldWatermark {
            known,
            entry,
            place: Place::Memory(place),
        }
    }

    pub fn open(&self, entry: u64) -> Result<HeldWatermark, LedgerError> {
        let place = self.0.get(&entry).ok_or(LedgerError::NotResumable)?;
        if Arc::strong_count(place) > 1 {
            return Err(LedgerError::UnderWay { entry });
        }
        let known = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(HeldWatermark {
            known,
            entry,
            place: Place::Memory(Arc::clone(place)),
        })
    }
}

impl HeldWatermark {
    /// Makes the watermark of a run that this entry of the ledger is about to charge. A file
    /// already there belongs to a run that was never charged: the entry's number is free.
    pub fn create(
        ledger: &Path,
        entry: u64,
        token: &str,
        chains: usize,
        events: usize,
    ) -> Result<HeldWatermark, LedgerError> {
        let path = path_of(ledger, entry);
        let fail = failing(&path);
        let _ = fs::remove_file(&path);
        let mut file = options().create_new(true).open(&path).map_err(fail)?;
        file.lock().map_err(failing(&path))?;
        // As long as it can get.
        let widest = Grant {
            id: "0".repeat(32),
            after: Some("0".repeat(32)),
            released: vec![u64::MAX; events],
        };
        let widest = Watermark {
            number: u64::MAX,
            token: token.to_owned() + &"0".repeat(32),
            next_token: Some("0".repeat(32)),
            grants: vec![Some(widest); chains],
        };
        let bytes = slot_bytes(&widest).map_err(io::Error::from);
        let slot = bytes.map_err(failing(&path))?.len() as u64;
        // Writes zeros and does not only set the length, so that there is room even if the disk
        // fills up later.
        let empty = vec![0; 2 * slot as usize];
        file.write_all(&empty).map_err(failing(&path))?;
        let held = HeldWatermark {
            known: Watermark::new(token, chains),
            entry,
            place: Place::File {
                identity: identity(&file.metadata().map_err(failing(&path))?),
                slot,
                file,
                path,
            },
        };
        held.save(&held.known)?;
        Ok(held)
    }

    /// Takes the watermark of a run that is open in the ledger at `ledger`.
    pub fn open(ledger: &Path, entry: u64) -> Result<HeldWatermark, LedgerError> {
        let path = path_of(ledger, entry);
        let mut file = match options().open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(LedgerError::NoWatermark(path));
            }
            opened => opened.map_err(failing(&path))?,
        };
        match try_for_a_moment(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LedgerError::UnderWay { entry }),
            Err(TryLockError::Error(source)) => return Err(failing(&path)(source)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failing(&path))?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let slots = [first, second].map(read_slot::<Watermark>);
        let whole = slots.into_iter().filter_map(|slot| match slot {
            Slot::Whole(watermark) => Some(watermark),
            Slot::Empty | Slot::Torn => None,
        });
        let known = whole.max_by_key(|watermark| watermark.number);
        let known = known.ok_or_else(|| LedgerError::NoWatermark(path.clone()))?;
        let held = HeldWatermark {
            known,
            entry,
            place: Place::File {
                identity: identity(&file.metadata().map_err(failing(&path))?),
                slot: first.len() as u64,
                file,
                path,
            },
        };
        held.check_place()?;
        Ok(held)
    }

    /// Releases of each event that the run has made or may have made, of `events` events.
    pub fn released(&self, events: usize) -> Vec<u64> {
        let mut sum = vec![0u64; events];
        for grant in self.known.grants.iter().flatten() {
            for (sum, &released) in sum.iter_mut().zip(&grant.released) {
                *sum = sum.saturating_add(released);
            }
        }
        sum
    }

    /// The value of [`HeldWatermark::released`] with this grant.
    ///
    /// # Errors
    ///
    /// It does not follow the chain's last.
    pub fn with(&self, chain: usize, grant: &Grant) -> Result<Vec<u64>, LedgerError> {
        let last = self.known.grants.get(chain);
        let last = last.ok_or(LedgerError::NotResumable)?.as_ref();
        if last.map(|last| &last.id) != grant.after.as_ref() {
            return Err(LedgerError::OlderState);
        }
        let mut sum = self.released(grant.released.len());
        for (i, (sum, own)) in sum.iter_mut().zip(&grant.released).enumerate() {
            let before = last.and_then(|last| last.released.get(i)).unwrap_or(&0);
            *sum = sum.saturating_sub(*before).saturating_add(*own);
        }
        Ok(sum)
    }

    /// Writes down what a chain's new state allows it. When this returns, the note is on the disk.
    ///
    /// # Errors
    ///
    /// The file is no longer there, or cannot be written.
    pub fn grant(&mut self, chain: usize, grant: &Grant) -> Result<(), LedgerError> {
        let last = self.known.grants.get_mut(chain);
        let before = last
            .ok_or(LedgerError::NotResumable)?
            .replace(grant.clone());
        self.advance()
            .inspect_err(|_| self.known.grants[chain] = before)
    }

    /// Whether this watermark belongs to the run's last entry, which has this token.
    pub fn has_token(&mut self, token: &str) -> bool {
        if self.known.next_token.as_deref() == Some(token) {
            self.known.token = token.to_owned();
        }
        self.known.token == token
    }

    /// Takes up the states of a run, if they are the last.
    pub fn follow(&mut self, states: &[Option<Grant>]) -> Result<(), LedgerError> {
        if states.len() != self.known.grants.len() {
            return Err(LedgerError::OlderState);
        }
        for (known, state) in self.known.grants.iter_mut().zip(states) {
            let name = |grant: &Option<Grant>| grant.as_ref().map(|grant| grant.id.clone());
            if name(known) == name(state) {
                continue;
            }
            #[cfg(test)]
            if crate::planted::is(crate::planted::Planted::OlderState) {
                known.clone_from(state);
                continue;
            }
            match state {
                Some(next) if next.after == name(known) => *known = Some(next.clone()),
                _ => return Err(LedgerError::OlderState),
            }
        }
        Ok(())
    }

    /// Names the token that the next entry will carry.
    pub fn announce(&mut self, token: &str) -> Result<(), LedgerError> {
        self.known.next_token = Some(token.to_owned());
        self.advance()
    }

    /// The entry with the announced token is in the ledger.
    pub fn confirm(&mut self) -> Result<(), LedgerError> {
        if let Some(token) = self.known.next_token.take() {
            self.known.token = token;
        }
        self.advance()
    }

    /// The token of the run's last entry.
    pub fn token(&self) -> &str {
        &self.known.token
    }

    /// The run has ended and will not be resumed.
    pub fn remove(self) {
        if let Place::File { path, .. } = &self.place {
            // A file that remains is refused, since the run is no longer open.
            let _ = fs::remove_file(path);
        }
    }

    /// Writes the present values into the slot that does not hold the last ones; if that fails, the
    /// next attempt uses the same slot, and the last values stay whole.
    fn advance(&mut self) -> Result<(), LedgerError> {
        self.check_place()?;
        self.known.number += 1;
        let saved = self.save(&self.known);
        if saved.is_err() {
            self.known.number -= 1;
        }
        saved
    }

    fn save(&self, watermark: &Watermark) -> Result<(), LedgerError> {
        match &self.place {
            Place::Memory(place) => {
                *place.lock().unwrap_or_else(PoisonError::into_inner) = watermark.clone();
                Ok(())
            }
            Place::File {
                path, file, slot, ..
            } => {
                let mut file = file;
                let mut write = || -> io::Result<()> {
                    let mut bytes = slot_bytes(watermark)?;
                    if bytes.len() as u64 > *slot {
                        return Err(io::Error::other("it has no room for this"));
                    }
                    bytes.resize(*slot as usize, b' ');
                    file.seek(SeekFrom::Start(watermark.number % 2 * slot))?;
                    file.write_all(&bytes)?;
                    if watermark.number == 0 {
                        file.sync_all()?;
                        return sync_folder(path);
                    }
                    file.sync_data()
                };
                write().map_err(failing(path))
            }
        }
    }

    /// Fails if the locked file was replaced or removed.
    fn check_place(&self) -> Result<(), LedgerError> {
        let Place::File {
            path,
            identity: own,
            ..
        } = &self.place
        else {
            return Ok(());
        };
        match fs::metadata(path) {
            Ok(metadata) if identity(&metadata) == *own => Ok(()),
            _ => Err(LedgerError::WatermarkReplaced {
                path: path.clone(),
                entry: self.entry,
            }),
        }
    }
}

/// Where the watermark of a run stands.
fn path_of(ledger: &Path, entry: u64) -> PathBuf {
    with_suffix(ledger, &format!(".run-{entry}"))
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

fn failing(path: &Path) -> impl Fn(io::Error) -> LedgerError {
    |source| LedgerError::Watermark {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(id: &str, after: Option<&str>, released: u64) -> Grant {
        Grant {
            id: id.to_owned(),
            after: after.map(str::to_owned),
            released: vec![released],
        }
    }

    fn made(ledger: &Path) -> HeldWatermark {
        HeldWatermark::create(ledger, 2, "t", 1, 1).unwrap()
    }

    // Wrong here: a write that fails, and the next that is cut short, leave no whole slot.
    #[test]
    fn after_a_failed_write_the_last_stays_whole() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("l");
        let mut held = made(&ledger);
        held.grant(0, &grant("a", None, 3)).unwrap();
        let path = path_of(&ledger, 2);
        for _ in 0..3 {
            let Place::File { file, .. } = &mut held.place else {
                panic!("a file");
            };
            let writable = std::mem::replace(file, File::open(&path).unwrap());
            let before = held.known.clone();
            assert!(held.grant(0, &grant("b", Some("a"), 5)).is_err());
            assert_eq!(held.known, before);
            let Place::File { file, .. } = &mut held.place else {
                panic!("a file");
            };
            *file = writable;
        }
        drop(held);
        let mut held = HeldWatermark::open(&ledger, 2).unwrap();
        assert_eq!(held.released(1), [3]);
        held.grant(0, &grant("b", Some("a"), 5)).unwrap();
        let slot = std::fs::metadata(&path).unwrap().len() as usize / 2;
        let number = held.known.number as usize;
        drop(held);
        // The newest is torn.
        let mut bytes = fs::read(&path).unwrap();
        bytes[number % 2 * slot + 70] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(HeldWatermark::open(&ledger, 2).unwrap().released(1), [3]);
        bytes[(number + 1) % 2 * slot + 70] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let lost = HeldWatermark::open(&ledger, 2);
        assert!(matches!(lost, Err(LedgerError::NoWatermark(_))));
    }

    // Wrong here: a sign of what a new grant takes from the sum and what it adds.
    #[test]
    fn a_grant_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = HeldWatermark::create(&folder.path().join("l"), 2, "t", 2, 1).unwrap();
        held.grant(0, &grant("a", None, 3)).unwrap();
        held.grant(1, &grant("x", None, 10)).unwrap();
        let next = grant("b", Some("a"), 7);
        assert_eq!(held.with(0, &next).unwrap(), [17]);
        assert_eq!(held.released(1), [13]);
        let stale = held.with(1, &grant("y", Some("w"), 1));
        assert!(matches!(stale, Err(LedgerError::OlderState)));
        // Closed: the window was not used up.
        held.grant(0, &next).unwrap();
        held.grant(0, &grant("c", Some("b"), 5)).unwrap();
        assert_eq!(held.released(1), [15]);
        let states = |id, after| [Some(grant(id, after, 6)), Some(grant("x", None, 10))];
        for (states, follows) in [
            (states("c", Some("b")), true),
            (states("d", Some("c")), true),
            (states("b", Some("a")), false),
            (states("d", Some("b")), false),
        ] {
            assert_eq!(held.follow(&states).is_ok(), follows, "{states:?}");
            held.known.grants[0] = Some(grant("c", Some("b"), 5));
        }
        assert!(held.follow(&[None, None]).is_err() && held.follow(&[]).is_err());
    }
}

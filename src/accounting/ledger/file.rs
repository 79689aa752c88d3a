//! The file of a ledger: locked, read, appended to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::chain::{Chain, ChainError, Tail};
use super::entry::{Entry, Opening};
use super::error::{Damage, LedgerError};
use super::hash::EntryHash;
use super::head::{Head, sync_folder};

/// How long to wait for others. They hold the lock while they read and append, not
/// while they run, so that only a very long ledger or a dead disk takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// A ledger's place on the disk.
#[derive(Clone, Debug)]
pub(super) struct LedgerFile {
    path: PathBuf,
    identity: Identity,
    /// How long to wait for the lock.
    patience: Duration,
}

/// The system's identity of a file, by which it differs from another that takes its name; none
/// where the system has none.
pub(super) type Identity = Option<(u64, u64)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    Shared,
    Exclusive,
}

/// Whether a ledger must have its head.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadRule {
    Required,
    /// For a ledger that has lost it.
    Ignored,
}

impl LedgerFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a ledger with its first line and its head.
    pub fn create(path: &Path, opening: Opening) -> Result<(LedgerFile, Chain), LedgerError> {
        let fail = |source| LedgerError::Write {
            path: path.to_path_buf(),
            source,
        };
        let head = Head::path_of(path);
        if path.symlink_metadata().is_err() && head.symlink_metadata().is_ok() {
            return Err(LedgerError::HeadWithoutLedger {
                head,
                ledger: path.to_path_buf(),
            });
        }
        // Whichever process creates the file creates the ledger.
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| match source.kind() {
                ErrorKind::AlreadyExists => LedgerError::Exists(path.to_path_buf()),
                _ => fail(source),
            })?;
        let begun = begin(path, &file, &opening);
        if begun.is_err() {
            // Nothing has been charged; half a ledger is of no use.
            let _ = fs::remove_file(path);
        }
        begun.map_err(fail)?;
        drop(file);
        LedgerFile::open(path, HeadRule::Required, false)
    }

    /// Opens a ledger and reads all of it.
    pub fn open(
        path: &Path,
        rule: HeadRule,
        with_history: bool,
    ) -> Result<(LedgerFile, Chain), LedgerError> {
        LedgerFile::open_within(PATIENCE, path, rule, with_history)
    }

    fn open_within(
        patience: Duration,
        path: &Path,
        rule: HeadRule,
        with_history: bool,
    ) -> Result<(LedgerFile, Chain), LedgerError> {
        let read_error = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => LedgerError::NotFound(path.to_path_buf()),
            _ => LedgerError::Read {
                path: path.to_path_buf(),
                source,
            },
        };
        // A ledger has one head, whichever links lead to it.
        let path = path.canonicalize().map_err(read_error)?;
        let file = File::open(&path).map_err(read_error)?;
        let ledger = LedgerFile {
            identity: identity(&file.metadata().map_err(read_error)?),
            path,
            patience,
        };
        ledger.lock(&file, Lock::Shared)?;
        let chain = ledger.read(&file, rule, with_history)?;
        Ok((ledger, chain))
    }

    /// Reads what others have added.
    pub fn refresh(&self, chain: &mut Chain) -> Result<(), LedgerError> {
        let file = File::open(&self.path).map_err(|source| self.read_error(source))?;
        self.lock(&file, Lock::Shared)?;
        self.catch_up(&file, chain)
    }

    /// Adds the entry that `decide` returns for the ledger as it is then, given the entry's number
    /// and the hash of the one before. No other process adds one meanwhile. When this returns, the
    /// entry and the new head are on the disk.
    ///
    /// # Errors
    ///
    /// If writing fails, the entry may or may not have reached the disk; the file is sound either
    /// way.
    pub fn append(
        &self,
        chain: &mut Chain,
        decide: impl FnOnce(&Chain, u64, EntryHash) -> Result<Entry, LedgerError>,
    ) -> Result<(), LedgerError> {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Planted::MissedEntry) {
            return Ok(());
        }
        let mut file = self.locked()?;
        self.catch_up(&file, chain)?;
        self.write(&mut file, chain, decide)
    }

    /// As [`LedgerFile::append`], on a ledger that has lost its head: makes a new one.
    pub fn adopt(path: &Path, date: String) -> Result<(), LedgerError> {
        let (ledger, _) = LedgerFile::open(path, HeadRule::Ignored, false)?;
        let mut file = ledger.locked()?;
        let mut chain = ledger.read(&file, HeadRule::Ignored, false)?;
        ledger.write(&mut file, &mut chain, |_, entry, previous| {
            Ok(Entry::Adopted {
                entry,
                previous,
                date,
            })
        })
    }

    /// The file, open to be read and appended to, locked for this process alone.
    fn locked(&self) -> Result<File, LedgerError> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&self.path)
            .map_err(|source| self.write_error(source))?;
        self.lock(&file, Lock::Exclusive)?;
        Ok(file)
    }

    fn write(
        &self,
        file: &mut File,
        chain: &mut Chain,
        decide: impl FnOnce(&Chain, u64, EntryHash) -> Result<Entry, LedgerError>,
    ) -> Result<(), LedgerError> {
        let fail = |source| self.write_error(source);
        let mut bytes = Vec::new();
        let mut last = chain.last;
        let mut number = chain.entries + 1;
        let mut repair = None;
        match chain.tail {
            Tail::Whole => {}
            Tail::NoLineFeed => bytes.push(b'\n'),
            Tail::Torn { length, hash } => {
                let entry = Entry::Recovered {
                    entry: number,
                    previous: last,
                    offset: chain.end,
                    length,
                    hash,
                };
                let line = entry.line().map_err(|e| fail(e.into()))?;
                last = EntryHash::of(&line);
                number += 1;
                bytes.push(b'\n');
                bytes.extend(line);
                bytes.push(b'\n');
                repair = Some((last, entry));
            }
        }
        let entry = decide(chain, number, last)?;
        let line = entry.line().map_err(|e| fail(e.into()))?;
        last = EntryHash::of(&line);
        bytes.extend(line);
        bytes.push(b'\n');

        let length = file.metadata().map_err(fail)?.len() + bytes.len() as u64;
        let head = Head {
            ledger: chain.books.opening.id.clone(),
            entries: number,
            bytes: length,
            hash: last,
        };
        let head = head.prepare(&self.path).map_err(fail)?;
        file.write_all(&bytes).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        head.publish().map_err(fail)?;

        for (hash, entry) in repair.into_iter().chain([(last, entry)]) {
            // An entry that was just decided on this state cannot contradict it.
            chain.books.apply(hash, &entry).map_err(|why| {
                self.damaged(Damage::Entry {
                    number,
                    offset: chain.end,
                    why: why.to_string(),
                })
            })?;
        }
        chain.entries = number;
        chain.last = last;
        chain.end = length;
        chain.tail = Tail::Whole;
        Ok(())
    }

    fn read(&self, file: &File, rule: HeadRule, with_history: bool) -> Result<Chain, LedgerError> {
        self.check_identity(file)?;
        let head = match rule {
            HeadRule::Required => Some(self.head()?),
            HeadRule::Ignored => None,
        };
        Chain::read(buffered(file), head.as_ref(), with_history).map_err(|e| self.chain_error(e))
    }

    fn catch_up(&self, mut file: &File, chain: &mut Chain) -> Result<(), LedgerError> {
        self.check_identity(file)?;
        let head = self.head()?;
        let length = file
            .metadata()
            .map_err(|source| self.read_error(source))?
            .len();
        if length < chain.end {
            return Err(self.damaged(Damage::Truncated {
                entries: head.entries.min(chain.entries),
                expected: chain.entries,
            }));
        }
        // A missing line feed may have been added since: there is no line to continue from.
        if chain.tail == Tail::NoLineFeed {
            file.rewind().map_err(|source| self.read_error(source))?;
            let with_history = chain.books.has_history();
            *chain = Chain::read(buffered(file), Some(&head), with_history)
                .map_err(|e| self.chain_error(e))?;
            return Ok(());
        }
        file.seek(SeekFrom::Start(chain.end))
            .map_err(|source| self.read_error(source))?;
        chain
            .read_on(buffered(file), Some(&head))
            .map_err(|e| self.chain_error(e))
    }

    fn head(&self) -> Result<Head, LedgerError> {
        Head::read(&self.path).map_err(|damage| self.damaged(damage))
    }

    fn check_identity(&self, file: &File) -> Result<(), LedgerError> {
        let of_path = fs::metadata(&self.path).map_err(|source| self.read_error(source))?;
        let of_file = file.metadata().map_err(|source| self.read_error(source))?;
        if identity(&of_path) == self.identity && identity(&of_file) == self.identity {
            Ok(())
        } else {
            Err(self.damaged(Damage::Replaced))
        }
    }

    fn lock(&self, file: &File, lock: Lock) -> Result<(), LedgerError> {
        let begun = Instant::now();
        loop {
            let tried = match lock {
                Lock::Shared => file.try_lock_shared(),
                Lock::Exclusive => file.try_lock(),
            };
            match tried {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => return Err(self.read_error(source)),
                Err(TryLockError::WouldBlock) if begun.elapsed() >= self.patience => {
                    return Err(LedgerError::InUse {
                        path: self.path.clone(),
                        waited: self.patience,
                    });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            }
        }
    }

    pub fn damaged(&self, damage: Damage) -> LedgerError {
        LedgerError::Damaged {
            path: self.path.clone(),
            damage,
        }
    }

    fn chain_error(&self, error: ChainError) -> LedgerError {
        match error {
            ChainError::Read(source) => self.read_error(source),
            ChainError::Damage(damage) => self.damaged(damage),
        }
    }

    fn read_error(&self, source: io::Error) -> LedgerError {
        LedgerError::Read {
            path: self.path.clone(),
            source,
        }
    }

    fn write_error(&self, source: io::Error) -> LedgerError {
        LedgerError::Write {
            path: self.path.clone(),
            source,
        }
    }
}

/// Writes the first line, then the head.
fn begin(path: &Path, mut file: &File, opening: &Opening) -> io::Result<()> {
    file.lock()?;
    let line = Entry::Ledger(opening.clone()).line()?;
    let head = Head {
        ledger: opening.id.clone(),
        entries: 1,
        bytes: line.len() as u64 + 1,
        hash: EntryHash::of(&line),
    };
    let head = head.prepare(path)?;
    file.write_all(&line)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    sync_folder(path)?;
    head.publish()
}

fn buffered(file: &File) -> BufReader<&File> {
    BufReader::with_capacity(1 << 16, file)
}

pub(super) fn identity(metadata: &fs::Metadata) -> Identity {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// Tries to take a lock, for a second. When a program that embeds this library starts
/// another, the child holds a copy of every lock of the program until it executes.
pub(crate) fn try_for_a_moment(
    lock: impl Fn() -> Result<(), TryLockError>,
) -> Result<(), TryLockError> {
    for _ in 0..100 {
        match lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
    lock()
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

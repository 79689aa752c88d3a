//! Reading a ledger: the chain of its lines, from any point at which it was whole.
//!
//! A line that does not carry the number and the hash of the one before breaks the
//! chain. There is one exception. A write that was cut short (a power cut, a full disk)
//! leaves part of a line at the end, a *torn tail*. Nothing was released on it, since a
//! run waits until its entry is on the disk. The next entry is then preceded by a
//! `recovered` entry, which says where the torn bytes are and what their hash is, so
//! that nothing is ever taken out of the file.
//!
//! All that the ledger's head covers was once on the disk, so a torn tail there is damage.

use std::io::{self, BufRead};

use sha2::{Digest, Sha256};

use super::books::Books;
use super::entry::{Entry, RECOVERED};
use super::error::Damage;
use super::hash::EntryHash;
use super::head::Head;

/// A ledger as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub books: Books,
    /// Number and hash of the last entry.
    pub entries: u64,
    pub last: EntryHash,
    /// Where the last entry ends, its line feed included where there is one.
    pub end: u64,
    pub tail: Tail,
}

/// The end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// The line feed of the last entry.
    Whole,
    /// The last entry without its line feed. It counts: no charge is lost.
    NoLineFeed,
    /// Part of a line, which does not count. Length and hash are those of these bytes and of the
    /// line feed that a repair puts after them.
    Torn { length: u64, hash: EntryHash },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ChainError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Damage(#[from] Damage),
}

/// Bytes in place of the next entry that are not one, until a repair is found.
struct Suspect {
    begin: u64,
    hash: Sha256,
    /// The damage if there is no repair.
    damage: Damage,
    /// Whether a write that was cut short may have left them.
    looks_torn: bool,
}

/// The head, and whether the chain has reached the place to which it points.
struct Checkpoint<'a> {
    head: Option<&'a Head>,
    passed: bool,
}

impl Chain {
    /// Reads a ledger from its first line.
    pub fn read(
        mut file: impl BufRead,
        head: Option<&Head>,
        with_history: bool,
    ) -> Result<Chain, ChainError> {
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line)?;
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(Damage::NoFirstLine.into());
        }
        let Ok(Entry::Ledger(opening)) = serde_json::from_slice(&line) else {
            return Err(Damage::NotALedger.into());
        };
        if head.is_some_and(|head| head.ledger != opening.id) {
            return Err(Damage::HeadOfAnother.into());
        }
        let books = Books::open(opening, with_history).map_err(|why| Damage::Entry {
            number: 1,
            offset: 0,
            why: why.to_string(),
        })?;
        let mut chain = Chain {
            books,
            entries: 1,
            last: EntryHash::of(&line),
            end: line.len() as u64 + 1,
            tail: Tail::Whole,
        };
        // After the first line, the ledger may be ahead of its head, if a crash came between the
        // two writes. But every head ever written covers the first line.
        if let Some(head) = head
            && head.bytes < chain.end
        {
            return Err(Damage::NotAsTheHeadSays {
                number: head.entries,
            }
            .into());
        }
        chain.read_on(file, head)?;
        Ok(chain)
    }

    /// Reads what has been added since; `file` stands at `self.end`, after a line feed.
    pub fn read_on(
        &mut self,
        mut file: impl BufRead,
        head: Option<&Head>,
    ) -> Result<(), ChainError> {
        let mut checkpoint = Checkpoint {
            head,
            passed: head.is_none_or(|head| head.bytes < self.end),
        };
        checkpoint.check(self)?;
        let mut suspect: Option<Suspect> = None;
        let (mut begin, mut line) = (self.end, Vec::new());
        loop {
            line.clear();
            let read = file.read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                break;
            }
            let whole = line.pop_if(|byte| *byte == b'\n').is_some();
            let taken = match &suspect {
                None => self.next(begin, &line),
                Some(bad) => self.repair(bad, begin, &line),
            };
            match (taken, &mut suspect) {
                (Ok(hash), _) => {
                    suspect = None;
                    self.entries += 1;
                    self.last = hash;
                    self.end = begin + read;
                    self.tail = if whole { Tail::Whole } else { Tail::NoLineFeed };
                    checkpoint.check(self)?;
                }
                (Err(damage), None) => suspect = Some(Suspect::new(begin, &line, whole, damage)),
                (Err(_), Some(bad)) => bad.add(&line, whole),
            }
            begin += read;
        }
        if let Some(mut bad) = suspect {
            if !checkpoint.passed || !bad.looks_torn {
                return Err(bad.damage.into());
            }
            bad.hash.update(b"\n");
            self.tail = Tail::Torn {
                length: begin + 1 - bad.begin,
                hash: EntryHash::finish(bad.hash),
            };
        }
        checkpoint.at_end(self)?;
        Ok(())
    }

    /// Adds a line that was made from this state of a ledger without a file.
    pub fn read_line(&mut self, line: &[u8]) -> Result<(), Damage> {
        self.last = self.next(self.end, line)?;
        self.entries += 1;
        self.end += line.len() as u64 + 1;
        Ok(())
    }

    /// Adds a line that should be the next entry.
    fn next(&mut self, offset: u64, line: &[u8]) -> Result<EntryHash, Damage> {
        let number = self.entries + 1;
        let damage = |why| Damage::Entry {
            number,
            offset,
            why,
        };
        let entry: Entry = serde_json::from_slice(line)
            .map_err(|error| damage(format!("it is not as this program writes it ({error})")))?;
        match entry.link() {
            Some((own, _)) if own != number => {
                return Err(damage(format!(
                    "it says that it is entry {own}: lines were removed, added or moved"
                )));
            }
            Some((_, previous)) if previous != self.last => {
                return Err(damage(format!(
                    "it does not carry the hash of entry {}: one of the two was edited",
                    self.entries
                )));
            }
            _ => {}
        }
        if matches!(entry, Entry::Recovered { .. }) {
            return Err(damage("it repairs an entry that is not torn".to_owned()));
        }
        let hash = EntryHash::of(line);
        self.books
            .apply(hash, &entry)
            .map_err(|why| damage(why.to_string()))?;
        Ok(hash)
    }

    /// Adds a line that declares everything since the beginning of `bad` to be torn.
    fn repair(&mut self, bad: &Suspect, begin: u64, line: &[u8]) -> Result<EntryHash, Damage> {
        // A cheap test for the lines after an edited one, of which there are many.
        if !line.starts_with(RECOVERED) {
            return Err(bad.damage.clone());
        }
        let found: Entry = serde_json::from_slice(line).map_err(|_| bad.damage.clone())?;
        let expected = Entry::Recovered {
            entry: self.entries + 1,
            previous: self.last,
            offset: bad.begin,
            length: begin - bad.begin,
            hash: EntryHash::finish(bad.hash.clone()),
        };
        if found != expected {
            return Err(bad.damage.clone());
        }
        let hash = EntryHash::of(line);
        self.books
            .apply(hash, &found)
            .map_err(|_| bad.damage.clone())?;
        Ok(hash)
    }
}

impl Suspect {
    fn new(begin: u64, line: &[u8], whole: bool, damage: Damage) -> Suspect {
        // The beginning of an object that does not end; or zeros, which a power cut may
        // leave where data should be.
        let begins = matches!(line.first(), Some(b'{' | 0));
        let ends = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        let mut suspect = Suspect {
            begin,
            hash: Sha256::new(),
            damage,
            looks_torn: begins && !ends,
        };
        suspect.hash(line, whole);
        suspect
    }

    fn add(&mut self, line: &[u8], whole: bool) {
        // A repair that was itself cut short.
        self.looks_torn &= line.starts_with(RECOVERED) || RECOVERED.starts_with(line);
        self.hash(line, whole);
    }

    fn hash(&mut self, line: &[u8], whole: bool) {
        self.hash.update(line);
        if whole {
            self.hash.update(b"\n");
        }
    }
}

impl Checkpoint<'_> {
    fn check(&mut self, chain: &Chain) -> Result<(), Damage> {
        match self.head {
            Some(head) if !self.passed && chain.end >= head.bytes => {
                let same =
                    (chain.end, chain.entries, chain.last) == (head.bytes, head.entries, head.hash);
                if !same {
                    return Err(Damage::NotAsTheHeadSays {
                        number: head.entries,
                    });
                }
                self.passed = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn at_end(&self, chain: &Chain) -> Result<(), Damage> {
        match self.head {
            Some(head) if !self.passed => Err(Damage::Truncated {
                entries: chain.entries,
                expected: head.entries,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;

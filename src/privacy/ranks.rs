//! One vault over several processes ("ranks"), each with a share of the records.
//!
//! Rank 0 leads: it alone has the meter, the ledger and the private generator. It charges a release,
//! draws its noise and its batch, sends the question to all, and adds the noise to the sum of their
//! answers. The others follow: they hold rows and answer with integers, which add up to the same sum
//! however the records are divided.
//!
//! # Privacy
//!
//! The messages between ranks are inside the vault: exact sums, batches, and digests of the units'
//! keys go over the link, which must be as well protected as the rows are. Followers hold no noise
//! and release nothing. Proof: docs/proofs.md, section 2.

#[cfg(feature = "mpi")]
mod mpi;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::question::{Laws, Question, Received};
use super::share::Compared;
pub use super::share::Share;
use super::subsampling::Batch;
use super::vault::{ReleaseError, Vault};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;

/// Messages between ranks. All ranks make the same calls in the same order.
pub trait Link: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Rank 0's message, at all ranks; what the others pass is not read.
    ///
    /// # Errors
    ///
    /// The message was lost.
    fn broadcast(&mut self, message: Vec<u8>) -> Result<Vec<u8>, LinkError>;

    /// The messages of all, in their order, at rank 0; nothing at the others.
    ///
    /// # Errors
    ///
    /// A message was lost.
    fn gather(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError>;

    /// The sums, modulo 2^64, of the numbers of all, at rank 0; nothing at the others. All pass as
    /// many.
    ///
    /// # Errors
    ///
    /// A message was lost.
    fn sum(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>, LinkError>;

    /// Ends the program on all ranks, as where this one cannot go on and others wait for it.
    fn abort(&mut self);
}

/// A lost message, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ranks of this run have lost their connection: {0}")]
pub struct LinkError(pub String);

/// Why ranks cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RanksError {
    /// A rank cannot load its share.
    #[error("rank {rank}: {message}")]
    Load {
        /// The rank.
        rank: usize,
        /// Why not.
        message: String,
    },
    /// Models differ.
    #[error(
        "rank {rank} has another model, or other constants, than rank 0: all must read the same files"
    )]
    Model {
        /// The rank that differs from rank 0.
        rank: usize,
    },
    /// Lists of files differ, so that a file might be read twice, or not at all.
    #[error(
        "rank {rank} sees other files than rank 0 under the same paths, or of another size: keep the data where all ranks see the same"
    )]
    Files {
        /// The rank that differs from rank 0.
        rank: usize,
    },
    /// The rows of a unit are at several ranks.
    #[error(
        "rows of one unit lie in the files of several ranks: write all rows with the same value of `{column}` into one file, or take one rank"
    )]
    Unit {
        /// The column that tells units apart.
        column: String,
    },
    /// The ranks have lost each other.
    #[error("the ranks of this run have lost their connection: {0}")]
    Link(String),
}

impl From<LinkError> for RanksError {
    fn from(LinkError(why): LinkError) -> RanksError {
        RanksError::Link(why)
    }
}

/// A message of rank 0 to all.
#[derive(Serialize)]
enum Message<'a> {
    Order(&'a [u8]),
    Joined(Result<Vec<u64>, RanksError>),
    Ask {
        question: &'a Question<'a>,
        batch: Option<Vec<u64>>,
    },
    Stop,
}

/// [`Message`] as it is read.
#[derive(Deserialize)]
enum Heard {
    Order(Vec<u8>),
    Joined(Result<Vec<u64>, RanksError>),
    Ask {
        question: Box<Received>,
        batch: Option<Vec<u64>>,
    },
    Stop,
}

/// The part of the table that a rank has loaded.
#[derive(Serialize, Deserialize)]
struct Loaded {
    model: [u8; 32],
    compared: Compared,
    /// The number of units, and of those that have rows.
    units: u64,
    present: u64,
}

impl Loaded {
    fn of(vault: &Vault) -> Loaded {
        let model = vault.model();
        let mut digest = Sha256::new();
        for text in [
            Some(&model.source),
            model.constants.as_ref(),
            model.codebook.as_ref(),
        ] {
            digest.update([u8::from(text.is_some())]);
            digest.update(Sha256::digest(text.map_or("", String::as_str)));
        }
        Loaded {
            model: digest.finalize().into(),
            compared: vault.compared.clone(),
            units: vault.n() as u64,
            present: vault.table.present() as u64,
        }
    }
}

type Hello = Result<Loaded, String>;

fn packed<T: Serialize>(message: &T) -> Result<Vec<u8>, LinkError> {
    postcard::to_stdvec(message).map_err(|e| LinkError(e.to_string()))
}

fn unpacked<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, LinkError> {
    postcard::from_bytes(bytes).map_err(|e| LinkError(format!("a message cannot be read ({e})")))
}

/// The side of rank 0. When it is dropped, the others are told to end.
pub struct Leader {
    link: Mutex<Box<dyn Link>>,
    /// Nobody listens any more.
    over: bool,
}

impl Leader {
    /// At rank 0 of the link.
    pub fn new(link: Box<dyn Link>) -> Leader {
        Leader {
            link: Mutex::new(link),
            over: false,
        }
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        link.ranks()
    }

    /// Tells the others what to load, which [`Follower::order`] hears.
    ///
    /// # Errors
    ///
    /// The ranks have lost each other.
    pub fn order(&mut self, order: &[u8]) -> Result<(), RanksError> {
        self.tell(&Message::Order(order))?;
        Ok(())
    }

    /// A vault over the records of all ranks, from what this one has loaded, or why it could not.
    ///
    /// # Errors
    ///
    /// A rank could not load its share; models, constants or lists of files differ; a unit has rows
    /// at several ranks. Then all ranks have the same error.
    pub fn join(mut self, loaded: Result<Vault, String>) -> Result<Vault, RanksError> {
        let own = packed(&loaded.as_ref().map(Loaded::of).map_err(String::clone))?;
        let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
        let all = link.gather(own)?;
        let all: Vec<Hello> =
            (all.iter().map(|hello| unpacked(hello))).collect::<Result<_, _>>()?;
        let unit = loaded.as_ref().ok().and_then(Vault::unit);
        let joined = joined(&all, unit.unwrap_or_default());
        let starts = joined.as_ref().map(|joined| joined.starts.clone());
        self.tell(&Message::Joined(starts.map_err(RanksError::clone)))?;
        self.over = joined.is_err();
        let units = joined?.units;
        // That of a rank that has loaded nothing is among the errors above.
        let load = |message| RanksError::Load { rank: 0, message };
        Ok(loaded.map_err(load)?.led(self, units as usize))
    }

    /// The sum of the answers of all ranks; `own`: of this one.
    pub(super) fn ask(
        &self,
        question: &Question,
        batch: Option<&Batch>,
        own: impl FnOnce() -> Vec<i128>,
    ) -> Result<Vec<i128>, ReleaseError> {
        let message = packed(&Message::Ask {
            question,
            batch: batch.map(|batch| gaps(batch.members())),
        })?;
        // Whoever holds the lock has the attention of all until they have answered.
        let mut link = self
            .link
            .lock()
            .map_err(|_| LinkError("a chain has failed".to_owned()))?;
        link.broadcast(message)?;
        let own = flagged(own(), true);
        let mut sum = numbers(&link.sum(words(&own))?);
        match sum.pop() {
            Some(0) => Ok(sum),
            _ => Err(ReleaseError::Rows("it is that of another rank".to_owned())),
        }
    }

    fn tell(&mut self, message: &Message) -> Result<(), LinkError> {
        let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
        link.broadcast(packed(message)?).map(|_| ())
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if std::thread::panicking() || self.link.is_poisoned() {
            // The others may be waiting for something else than a message.
            let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
            link.abort();
        } else {
            let _ = self.tell(&Message::Stop);
        }
    }
}

/// The side of another rank. When it is dropped before it was told to end, the run ends on all ranks.
pub struct Follower {
    link: Box<dyn Link>,
    /// Nobody asks any more.
    over: bool,
}

impl Follower {
    /// At a rank other than 0.
    pub fn new(link: Box<dyn Link>) -> Follower {
        Follower { link, over: false }
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.link.rank()
    }

    /// The order of rank 0, which says what to load; `None` if there is nothing to do.
    ///
    /// # Errors
    ///
    /// The ranks have lost each other.
    pub fn order(&mut self) -> Result<Option<Vec<u8>>, RanksError> {
        match self.hear()? {
            Heard::Order(order) => Ok(Some(order)),
            Heard::Stop => Ok(None),
            _ => Err(out_of_turn().into()),
        }
    }

    /// Answers rank 0's questions about what was loaded here, or says why nothing could be, until
    /// there are no more.
    ///
    /// # Errors
    ///
    /// Those of [`Leader::join`], and the ranks have lost each other.
    pub fn serve(mut self, loaded: Result<Vault, String>) -> Result<(), RanksError> {
        let hello = packed(&loaded.as_ref().map(Loaded::of).map_err(String::clone))?;
        self.link.gather(hello)?;
        let starts = match self.hear()? {
            Heard::Joined(starts) => starts.inspect_err(|_| self.over = true)?,
            Heard::Stop => return Ok(()),
            _ => return Err(out_of_turn().into()),
        };
        let (Ok(vault), Some(&start)) = (loaded, starts.get(self.link.rank())) else {
            return Err(out_of_turn().into());
        };
        let (density, table) = (vault.density(), &vault.table);
        let mut laws = Laws::default();
        loop {
            let (question, batch) = match self.hear()? {
                Heard::Ask { question, batch } => (question, batch),
                Heard::Stop => return Ok(()),
                _ => return Err(out_of_turn().into()),
            };
            let answer = match batch {
                None => question.answer(density, &mut laws, table),
                Some(gaps) => {
                    let own = members(&gaps).filter_map(|unit| unit.checked_sub(start));
                    let batch = table.gather(own.map(|unit| unit as usize));
                    question.answer(density, &mut laws, &batch)
                }
            };
            let answer = flagged(answer.ok_or_else(out_of_turn)?, vault.intact().is_ok());
            self.link.sum(words(&answer))?;
        }
    }

    fn hear(&mut self) -> Result<Heard, LinkError> {
        let message = self.link.broadcast(Vec::new())?;
        let heard = unpacked(&message)?;
        self.over = matches!(heard, Heard::Stop);
        Ok(heard)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.over {
            self.link.abort();
        }
    }
}

fn out_of_turn() -> LinkError {
    LinkError("a message came out of turn".to_owned())
}

/// The table that all ranks together have loaded.
struct Joined {
    /// The number of units.
    units: u64,
    /// For each rank, the number of the first of its units that have rows, among those of all ranks.
    starts: Vec<u64>,
}

fn joined(all: &[Hello], unit: &str) -> Result<Joined, RanksError> {
    let mut loaded = Vec::with_capacity(all.len());
    for (rank, hello) in all.iter().enumerate() {
        match hello {
            Ok(one) => loaded.push(one),
            Err(message) => {
                let message = message.clone();
                return Err(RanksError::Load { rank, message });
            }
        }
    }
    let (mut units, mut present) = (0, 0);
    let mut starts = Vec::with_capacity(all.len());
    let mut seen = HashSet::new();
    for (rank, one) in loaded.iter().enumerate() {
        if one.model != loaded[0].model {
            return Err(RanksError::Model { rank });
        }
        if one.compared.files != loaded[0].compared.files {
            return Err(RanksError::Files { rank });
        }
        if !one.compared.units.iter().all(|key| seen.insert(key)) {
            let column = unit.to_owned();
            return Err(RanksError::Unit { column });
        }
        starts.push(present);
        units += one.units;
        present += one.present;
    }
    Ok(Joined { units, starts })
}

/// Ascending numbers as the differences between them, which are shorter when they are written.
fn gaps(members: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut last = 0;
    let gap = |member: usize| member as u64 - std::mem::replace(&mut last, member as u64);
    members.map(gap).collect()
}

/// The numbers of which these are [`gaps`].
fn members(gaps: &[u64]) -> impl Iterator<Item = u64> + '_ {
    gaps.iter().scan(0u64, |last, gap| {
        *last = last.saturating_add(*gap);
        Some(*last)
    })
}

/// An answer, and in its last place how many ranks cannot be believed.
fn flagged(mut answer: Vec<i128>, is_intact: bool) -> Vec<i128> {
    answer.push(i128::from(!is_intact));
    answer
}

/// How many words of 32 bits make an integer.
const WORDS: u32 = 4;

/// Integers modulo 2^128 in words of 32 bits, which leave room for the sum over 2^32 ranks.
fn words(integers: &[i128]) -> Vec<u64> {
    let split = |&x: &i128| (0..WORDS).map(move |k| u64::from((x >> (32 * k)) as u32));
    integers.iter().flat_map(split).collect()
}

/// The integers whose words, or sums of words, these are.
fn numbers(words: &[u64]) -> Vec<i128> {
    let add = |sum: i128, (k, &word): (usize, &u64)| {
        sum.wrapping_add(i128::from(word).wrapping_shl(32 * k as u32))
    };
    let joined = |words: &[u64]| words.iter().enumerate().fold(0, add);
    words.chunks(WORDS as usize).map(joined).collect()
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;

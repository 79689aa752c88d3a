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

mod leader;
mod link;
mod message;
#[cfg(feature = "mpi")]
mod mpi;

use std::collections::HashSet;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::question::Laws;
use super::share::Compared;
pub use super::share::Share;
use super::vault::Vault;
pub use leader::Leader;
pub use link::{Link, LinkError, RanksError};
use message::{Heard, Message, flagged, members, packed, unpacked, words};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;

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

impl Leader {
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

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;

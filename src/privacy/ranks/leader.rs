//! The side of rank 0, which asks.

use std::sync::{Mutex, PoisonError};

use super::link::{Link, LinkError, RanksError};
use super::message::{Message, flagged, gaps, numbers, packed, words};
use crate::privacy::question::Question;
use crate::privacy::subsampling::Batch;
use crate::privacy::vault::ReleaseError;

/// The side of rank 0. When it is dropped, the others are told to end.
pub struct Leader {
    pub(super) link: Mutex<Box<dyn Link>>,
    /// Nobody listens any more.
    pub(super) over: bool,
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

    /// Tells the others what to load, which [`Follower::order`](super::Follower::order) hears.
    ///
    /// # Errors
    ///
    /// The ranks have lost each other.
    pub fn order(&mut self, order: &[u8]) -> Result<(), RanksError> {
        self.tell(&Message::Order(order))?;
        Ok(())
    }

    /// The sum of the answers of all ranks; `own`: of this one.
    pub(in crate::privacy) fn ask(
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

    pub(super) fn tell(&mut self, message: &Message) -> Result<(), LinkError> {
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

//! What ranks say to each other, as it is written.

use serde::{Deserialize, Serialize};

use super::link::{LinkError, RanksError};
use crate::privacy::question::{Question, Received};

/// A message of rank 0 to all.
#[derive(Serialize)]
pub(super) enum Message<'a> {
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
pub(super) enum Heard {
    Order(Vec<u8>),
    Joined(Result<Vec<u64>, RanksError>),
    Ask {
        question: Box<Received>,
        batch: Option<Vec<u64>>,
    },
    Stop,
}

pub(super) fn packed<T: Serialize>(message: &T) -> Result<Vec<u8>, LinkError> {
    postcard::to_stdvec(message).map_err(|e| LinkError(e.to_string()))
}

pub(super) fn unpacked<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, LinkError> {
    postcard::from_bytes(bytes).map_err(|e| LinkError(format!("a message cannot be read ({e})")))
}

/// Ascending numbers as the differences between them, which are shorter when they are written.
pub(super) fn gaps(members: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut last = 0;
    let gap = |member: usize| member as u64 - std::mem::replace(&mut last, member as u64);
    members.map(gap).collect()
}

/// The numbers of which these are [`gaps`].
pub(super) fn members(gaps: &[u64]) -> impl Iterator<Item = u64> + '_ {
    gaps.iter().scan(0u64, |last, gap| {
        *last = last.saturating_add(*gap);
        Some(*last)
    })
}

/// An answer, and in its last place how many ranks cannot be believed.
pub(super) fn flagged(mut answer: Vec<i128>, is_intact: bool) -> Vec<i128> {
    answer.push(i128::from(!is_intact));
    answer
}

/// How many words of 32 bits make an integer.
const WORDS: u32 = 4;

/// Integers modulo 2^128 in words of 32 bits, which leave room for the sum over 2^32 ranks.
pub(super) fn words(integers: &[i128]) -> Vec<u64> {
    let split = |&x: &i128| (0..WORDS).map(move |k| u64::from((x >> (32 * k)) as u32));
    integers.iter().flat_map(split).collect()
}

/// The integers whose words, or sums of words, these are.
pub(super) fn numbers(words: &[u64]) -> Vec<i128> {
    let add = |sum: i128, (k, &word): (usize, &u64)| {
        sum.wrapping_add(i128::from(word).wrapping_shl(32 * k as u32))
    };
    let joined = |words: &[u64]| words.iter().enumerate().fold(0, add);
    words.chunks(WORDS as usize).map(joined).collect()
}

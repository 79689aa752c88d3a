//! A place in a file that holds one value, whole or recognisably not: a hash, a line of
//! JSON, and spaces. Two of them, written in turn, always hold a whole value between them, at
//! whichever byte a write was cut short.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::hash::EntryHash;

/// The contents of a slot.
pub(crate) enum Slot<T> {
    Empty,
    /// A write that was cut short.
    Torn,
    Whole(T),
}

/// The bytes of a slot, a multiple of 4096, so that the length of a file, which takes the
/// system longer to bring to the disk than its contents, seldom changes.
pub(crate) fn slot_bytes(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    const BLOCK: usize = 4096;
    let json = serde_json::to_vec(value)?;
    let mut bytes = EntryHash::of(&json).to_string().into_bytes();
    bytes.push(b'\n');
    bytes.extend(json);
    bytes.push(b'\n');
    bytes.resize(bytes.len().next_multiple_of(BLOCK), b' ');
    Ok(bytes)
}

/// Reads what [`slot_bytes`] wrote.
pub(crate) fn read_slot<T: DeserializeOwned>(bytes: &[u8]) -> Slot<T> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Slot::Empty;
    }
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let (Some(hash), Some(json)) = (lines.next(), lines.next()) else {
        return Slot::Torn;
    };
    if hash != EntryHash::of(json).to_string().as_bytes() {
        return Slot::Torn;
    }
    serde_json::from_slice(json).map_or(Slot::Torn, Slot::Whole)
}

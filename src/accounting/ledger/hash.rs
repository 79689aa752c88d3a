//! The hash that chains the lines of a ledger.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// SHA-256 of a line's bytes, without its line feed; written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryHash([u8; 32]);

impl EntryHash {
    pub(super) fn of(bytes: &[u8]) -> EntryHash {
        EntryHash(Sha256::digest(bytes).into())
    }

    pub(super) fn finish(hasher: Sha256) -> EntryHash {
        EntryHash(hasher.finalize().into())
    }
}

/// The text is not 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a hash, 64 hexadecimal digits in lower case")]
pub struct NotAHash;

impl FromStr for EntryHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<EntryHash, NotAHash> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(NotAHash),
        };
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(NotAHash);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            *byte = 16 * digit(pair[0])? + digit(pair[1])?;
        }
        Ok(EntryHash(hash))
    }
}

impl fmt::Display for EntryHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for EntryHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for EntryHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EntryHash, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // FIPS 180-2, appendix B.1: a privacy officer must get the same result with `sha256sum`.
    #[test]
    fn it_is_sha_256_in_hexadecimal() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let hash = EntryHash::of(b"abc");
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{text}\""));
        let capital = text.to_uppercase();
        for wrong in ["", &text[1..], &capital, &format!("{text}0")] {
            assert_eq!(wrong.parse::<EntryHash>(), Err(NotAHash));
        }
    }
}

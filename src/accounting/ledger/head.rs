//! The head of a ledger: a small file next to it that says how far it goes.
//!
//! A chain of hashes shows an edit in its middle. It cannot show that lines are missing at its end,
//! so after each entry the number of entries, the length of the file and the last hash are kept
//! separately. The head is replaced as a whole, so it is never torn; the ledger is on the disk
//! before it, so it is never ahead.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::Damage;
use super::hash::EntryHash;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// The ledger's id.
    pub ledger: String,
    pub entries: u64,
    /// Length of the ledger.
    pub bytes: u64,
    /// Hash of its last entry.
    pub hash: EntryHash,
}

impl Head {
    /// The path of the head of the ledger at `path`.
    pub fn path_of(ledger: &Path) -> PathBuf {
        with_suffix(ledger, ".head")
    }

    /// The head of the ledger at `path`.
    pub fn read(ledger: &Path) -> Result<Head, Damage> {
        let path = Head::path_of(ledger);
        let unreadable = |why: String| Damage::HeadUnreadable {
            path: path.clone(),
            why,
        };
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| unreadable(e.to_string())),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(Damage::HeadMissing(path)),
            Err(e) => Err(unreadable(e.to_string())),
        }
    }

    /// Writes the head to the disk under a temporary name, so that whatever can fail fails before
    /// the ledger is written. One name is enough: the ledger is locked.
    pub fn prepare(&self, ledger: &Path) -> io::Result<Prepared> {
        let prepared = Prepared {
            temporary: with_suffix(ledger, ".head.new"),
            place: Head::path_of(ledger),
        };
        let mut file = File::create(&prepared.temporary)?;
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_all()?;
        Ok(prepared)
    }
}

/// A head that is on the disk and not yet in force.
#[must_use]
pub(super) struct Prepared {
    temporary: PathBuf,
    place: PathBuf,
}

impl Prepared {
    pub fn publish(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.place)?;
        sync_folder(&self.place)
    }
}

/// Waits until the names in the folder of `path` are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        File::open(folder)?.sync_all()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        Ok(())
    }
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

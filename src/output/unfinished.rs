//! `RUN/unfinished`: the state of a run that is under way, or was cut short.
//!
//! ```text
//! RUN/unfinished/run.json       the run: its settings, its model, its charge
//! RUN/unfinished/chain-1.even   checkpoints of a chain, numbers 0, 2, 4, ...
//! RUN/unfinished/chain-1.odd    numbers 1, 3, 5, ...
//! RUN/unfinished/chain-1.draws  its draws so far, a line each
//! RUN/unfinished/chain-N.*      for learning before the chains begin, if any: N
//!                               is one more than there are chains
//! RUN/unfinished/lock           held while a process runs it
//! ```
//!
//! `run.json` is replaced as a whole: written under another name, flushed to the disk, renamed. A
//! chain's checkpoint replaces the one before the last, with a hash, so that a write that was cut
//! short is detected and leaves the last one; that is as safe as a rename in a tenth of the time,
//! and there are many checkpoints. Draws are added at the end and are on the disk before the
//! checkpoint that counts them; anything after those is an incomplete write and is cut off. So at
//! whatever moment a kill, a power cut or a full disk occurs, there is a state from which to
//! resume, and it grants every iteration that has begun.
//!
//! Nothing here is private: see [`Checkpoint`] for the chains; the rest are settings.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::folder::{RunDirectoryError, make_readable, remove_quietly, temporary_next_to};
use super::privacy_report::RunLedger;
use crate::accounting::{Slot, read_slot, slot_bytes, sync_folder, try_for_a_moment};
use crate::sampler::{Checkpoint, Draw, Keeper, SavedChain};

const FOLDER: &str = "unfinished";
const LOCK: &str = "lock";
const RUN: &str = "run.json";

/// The format of these files; no other is read.
const FORMAT: u32 = 3;

/// The description of a run, fixed when it begins except for its charge. Nothing in it is secret:
/// an interrupted run publishes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    format: u32,
    version: String,
    /// The analysis, in the format of the code that began it.
    pub analysis: Value,
    /// Data that the program that began the run needs to resume it.
    pub command: Value,
    /// That program's additions to the settings that are published; null where there are none.
    #[serde(default)]
    pub origin: Value,
    /// Whether the directory is to have no report.
    #[serde(default)]
    pub no_report: bool,
    /// The text of the model, of its constants, and of the guesses of its covariates.
    pub model: String,
    pub constants: Option<String>,
    #[serde(default)]
    pub codebook: Option<String>,
    /// The number of records, or of units, where it is public.
    pub records: Option<u64>,
    /// The schedule that was charged.
    pub events: Value,
    pub chains: u64,
    /// Whether there is learning before the chains begin, which is kept as one more chain.
    #[serde(default)]
    pub learns: bool,
    /// The token that identifies the run's charge until `ledger` names it.
    pub token: Option<String>,
    pub ledger: Option<RunLedger>,
    /// How often the run was resumed.
    pub resumed: u64,
}

impl RunState {
    /// The description of a run that was neither charged nor resumed.
    pub fn new(analysis: Value, command: Value, model: String) -> RunState {
        RunState {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            analysis,
            command,
            origin: Value::Null,
            no_report: false,
            model,
            constants: None,
            codebook: None,
            records: None,
            events: Value::Null,
            chains: 0,
            learns: false,
            token: None,
            ledger: None,
            resumed: 0,
        }
    }
}

impl RunState {
    /// The number of parts with files of their own: the chains, and the learning before them.
    pub fn parts(&self) -> u64 {
        self.chains + u64::from(self.learns)
    }
}

/// The state of a run, locked.
#[derive(Debug)]
pub struct Unfinished {
    place: PathBuf,
    chains: Vec<Mutex<ChainFiles>>,
    _lock: File,
}

#[derive(Debug, thiserror::Error)]
pub enum UnfinishedError {
    #[error(
        "`{0}` holds no run to resume: it has no folder `{FOLDER}`. A run that has ended needs none, and a run without privacy keeps none"
    )]
    None(PathBuf),
    #[error("the run in `{0}` is under way in another process")]
    UnderWay(PathBuf),
    #[error("cannot read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "`{path}` is not as dpm writes it ({why}). The run cannot be resumed; what was charged for it stays charged"
    )]
    Damaged { path: PathBuf, why: String },
    #[error(
        "the run was begun by dpm {0}, and this is dpm {version}: resume it with the version that began it",
        version = env!("CARGO_PKG_VERSION")
    )]
    Version(String),
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
}

/// The files of one chain.
#[derive(Debug)]
struct ChainFiles {
    draws: File,
    /// How many bytes of the draws count.
    bytes: u64,
    /// For checkpoints of even and of odd numbers.
    slots: [File; 2],
    /// The number of the next checkpoint.
    next: u64,
}

/// A checkpoint, without its draws.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    number: u64,
    /// How many bytes of the draws count.
    draws_bytes: u64,
    checkpoint: Checkpoint,
}

impl Unfinished {
    /// Begins a run at `place`, which [`RunDirectory::check`](super::RunDirectory::check) has
    /// allowed. An older run there stays until the new one has results; an unfinished one is
    /// discarded.
    pub fn create(place: &Path, run_state: &RunState) -> Result<Unfinished, RunDirectoryError> {
        let run = if place.is_dir() {
            tempfile::Builder::new()
                .prefix(".dpm-run-")
                .tempdir_in(place)
        } else {
            temporary_next_to(place)
        };
        let fail = |source| RunDirectoryError::Write {
            path: place.to_path_buf(),
            source,
        };
        let run = run.map_err(fail)?;
        let fresh = run.path().join(FOLDER);
        let made = || -> io::Result<(File, Vec<Mutex<ChainFiles>>)> {
            fs::create_dir(&fresh)?;
            write_json(&fresh.join(RUN), run_state)?;
            let lock = File::create(fresh.join(LOCK))?;
            lock.lock()?;
            let chains = (1..=run_state.parts()).map(|chain| {
                let (draws, slots) = open_files(&fresh, chain)?;
                Ok(Mutex::new(ChainFiles {
                    draws,
                    bytes: 0,
                    slots,
                    next: 0,
                }))
            });
            let chains = chains.collect::<io::Result<_>>()?;
            sync_folder(&fresh.join(LOCK))?;
            Ok((lock, chains))
        };
        let (lock, chains) = made().map_err(fail)?;
        if place.is_dir() {
            let standing = place.join(FOLDER);
            let aside = run.path().join("given-up");
            if is_under_way(place) {
                return Err(RunDirectoryError::UnderWay(place.to_path_buf()));
            }
            if standing.exists() {
                fs::rename(&standing, aside).map_err(fail)?;
            }
            fs::rename(&fresh, standing).map_err(fail)?;
        } else {
            fs::rename(run.path(), place).map_err(fail)?;
            make_readable(place);
            let _ = run.keep();
        }
        sync_folder(place).map_err(fail)?;
        sync_folder(&place.join(FOLDER)).map_err(fail)?;
        Ok(Unfinished {
            place: place.to_path_buf(),
            chains,
            _lock: lock,
        })
    }

    /// Opens a run to resume it.
    ///
    /// # Errors
    ///
    /// There is none; another process is running it; its files were changed.
    pub fn open(
        place: &Path,
    ) -> Result<(Unfinished, RunState, Vec<Option<SavedChain>>), UnfinishedError> {
        if !is_unfinished(place) {
            return Err(UnfinishedError::None(place.to_path_buf()));
        }
        let folder = place.join(FOLDER);
        let lock_path = folder.join(LOCK);
        let lock = open(&lock_path).map_err(|source| UnfinishedError::Read {
            path: lock_path.clone(),
            source,
        })?;
        match try_for_a_moment(|| lock.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(UnfinishedError::UnderWay(place.to_path_buf()));
            }
            Err(TryLockError::Error(source)) => {
                return Err(UnfinishedError::Read {
                    path: lock_path,
                    source,
                });
            }
        }
        let path = folder.join(RUN);
        let known: Value = read_json(&path)?;
        let version = known["version"].as_str().unwrap_or("of no version");
        if known["format"] != FORMAT || version != env!("CARGO_PKG_VERSION") {
            return Err(UnfinishedError::Version(version.escape_debug().to_string()));
        }
        let run_state: RunState = serde_json::from_value(known).map_err(|e| damaged(&path, e))?;
        let mut chains = Vec::new();
        let mut begun = Vec::new();
        for chain in 1..=run_state.parts() {
            let (files, last) = open_chain(&folder, chain, chain <= run_state.chains)?;
            chains.push(Mutex::new(files));
            begun.push(last);
        }
        let unfinished = Unfinished {
            place: place.to_path_buf(),
            chains,
            _lock: lock,
        };
        Ok((unfinished, run_state, begun))
    }

    /// The directory of the run.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Replaces the whole description of the run.
    pub fn note(&self, run_state: &RunState) -> Result<(), RunDirectoryError> {
        let path = self.folder().join(RUN);
        write_json(&path, run_state).map_err(|source| RunDirectoryError::Write { path, source })
    }

    /// Removes the state, and the directory if nothing else is in it: nothing was released.
    pub fn discard(&self) {
        remove_quietly(&self.folder());
        // The directory stays if it holds an older run.
        let _ = fs::remove_dir(&self.place);
    }

    /// Copies the state into a directory that is to replace this one.
    pub fn copy_into(&self, run: &Path) -> Result<(), RunDirectoryError> {
        let folder = run.join(FOLDER);
        let copy = || -> io::Result<()> {
            fs::create_dir(&folder)?;
            for entry in fs::read_dir(self.folder())? {
                let entry = entry?;
                let to = folder.join(entry.file_name());
                if entry.file_name() == LOCK {
                    continue;
                }
                // The files are no longer written to; a link needs no space.
                fs::hard_link(entry.path(), &to).or_else(|_| {
                    fs::copy(entry.path(), &to)?;
                    File::open(&to)?.sync_all()
                })?;
            }
            sync_folder(&folder.join(RUN))
        };
        copy().map_err(|source| RunDirectoryError::Write {
            path: folder.clone(),
            source,
        })
    }

    fn folder(&self) -> PathBuf {
        self.place.join(FOLDER)
    }
}

impl Keeper for Unfinished {
    fn keep(&self, chain: usize, checkpoint: &Checkpoint) -> io::Result<()> {
        let files = self.chains.get(chain).ok_or(ErrorKind::InvalidInput)?;
        let mut files = files
            .lock()
            .map_err(|_| io::Error::other("a thread died"))?;
        let mut lines = Vec::new();
        for draw in &checkpoint.draws {
            serde_json::to_writer(&mut lines, draw)?;
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            files.draws.write_all(&lines)?;
            files.draws.sync_data()?;
            files.bytes += lines.len() as u64;
        }
        let state = State {
            number: files.next,
            draws_bytes: files.bytes,
            checkpoint: Checkpoint {
                draws: Vec::new(),
                ..checkpoint.clone()
            },
        };
        let slot = (files.next % 2) as usize;
        write_slot(&mut files.slots[slot], &state)?;
        files.next += 1;
        Ok(())
    }
}

/// Whether a directory holds a run that is not finished.
pub fn is_unfinished(place: &Path) -> bool {
    place.join(FOLDER).join(RUN).is_file()
}

/// Whether a process is running the unfinished run of a directory.
pub(super) fn is_under_way(place: &Path) -> bool {
    let lock = File::open(place.join(FOLDER).join(LOCK));
    lock.is_ok_and(|lock| {
        let tried = try_for_a_moment(|| lock.try_lock_shared());
        matches!(tried, Err(TryLockError::WouldBlock))
    })
}

/// The files of a chain, counted from 1: its draws, and the slots of its checkpoints.
fn open_files(folder: &Path, chain: u64) -> io::Result<(File, [File; 2])> {
    let path = |ending: &str| folder.join(format!("chain-{chain}.{ending}"));
    let draws = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path("draws"))?;
    Ok((draws, [open(&path("even"))?, open(&path("odd"))?]))
}

fn open_chain(
    folder: &Path,
    chain: u64,
    has_draws: bool,
) -> Result<(ChainFiles, Option<SavedChain>), UnfinishedError> {
    let path = folder.join(format!("chain-{chain}.draws"));
    let fail = |source| UnfinishedError::Read {
        path: path.clone(),
        source,
    };
    let (mut draws, mut slots) = open_files(folder, chain).map_err(fail)?;
    let even = read_from(&mut slots[0]).map_err(fail)?;
    let odd = read_from(&mut slots[1]).map_err(fail)?;
    // The first checkpoint, number 0, may be incomplete; then nothing has begun.
    if matches!(
        (&even, &odd),
        (Slot::Torn, Slot::Torn) | (Slot::Empty, Slot::Torn)
    ) {
        return Err(damaged(&path, "both of its checkpoints are broken"));
    }
    let whole = [even, odd].into_iter().filter_map(|slot| match slot {
        Slot::Whole(state) => Some(state),
        Slot::Empty | Slot::Torn => None,
    });
    let state = whole.max_by_key(|state| state.number);
    let (bytes, next) = state
        .as_ref()
        .map_or((0, 0), |state| (state.draws_bytes, state.number + 1));
    if draws.metadata().map_err(fail)?.len() < bytes {
        return Err(damaged(&path, "draws are missing at its end"));
    }
    // A write that was cut short.
    draws.set_len(bytes).map_err(fail)?;
    let mut text = String::new();
    draws.read_to_string(&mut text).map_err(fail)?;
    let lines: Result<Vec<Draw>, _> = text.lines().map(serde_json::from_str).collect();
    let lines = lines.map_err(|e| damaged(&path, e))?;
    let begun = state.map(|state| SavedChain {
        last: state.checkpoint,
        draws: lines,
    });
    if let Some(begun) = &begun {
        let (last, count) = (&begun.last, begun.draws.len() as u64);
        // A chain has a draw for each iteration that was not lost.
        let made = last.done.checked_sub(last.lost);
        let expected = if has_draws { made } else { Some(0) };
        if last.done > last.granted || made.is_none() || expected != Some(count) {
            return Err(damaged(&path, "the counts of its checkpoint do not fit it"));
        }
    }
    let files = ChainFiles {
        draws,
        bytes,
        slots,
        next,
    };
    Ok((files, begun))
}

fn write_slot(file: &mut File, state: &State) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&slot_bytes(state)?)?;
    file.sync_data()
}

fn read_from(file: &mut File) -> io::Result<Slot<State>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(read_slot(&bytes))
}

/// Opens a file for reading and writing, and creates it if it is missing.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Replaces a file as a whole.
fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let fresh = path.with_extension("json.new");
    let mut file = File::create(&fresh)?;
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync_folder(path)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, UnfinishedError> {
    let bytes = fs::read(path).map_err(|source| UnfinishedError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    serde_json::from_slice(&bytes).map_err(|e| damaged(path, e))
}

fn damaged(path: &Path, why: impl ToString) -> UnfinishedError {
    UnfinishedError::Damaged {
        path: path.to_path_buf(),
        why: why.to_string(),
    }
}

#[cfg(test)]
#[path = "unfinished_tests.rs"]
mod tests;

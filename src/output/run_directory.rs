//! A run's directory: written under a temporary name next to its place, and renamed when it is
//! complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::folder::{RunDirectoryError, make_readable, remove_quietly, replace, temporary_next_to};
use super::unfinished::{Unfinished, is_under_way, is_unfinished};
use crate::accounting::sync_folder;

/// A directory under construction. If it is dropped without [`RunDirectory::publish`], it leaves
/// nothing behind.
#[derive(Debug)]
pub struct RunDirectory {
    temporary: tempfile::TempDir,
    place: PathBuf,
    /// Whether it replaces the state of its own run.
    of_unfinished: bool,
}

/// Files by which this program knows its own directories: of a run, and of a calibration.
const MARKS: [&str; 2] = ["privacy.json", "sbc.json"];

impl RunDirectory {
    /// Whether a run may and can be written there; checked before anything is charged.
    pub fn check(place: &Path, overwrite: bool) -> Result<(), RunDirectoryError> {
        if place.symlink_metadata().is_err() {
            return try_to_write(place);
        }
        let unfinished = is_unfinished(place);
        if unfinished && is_under_way(place) {
            return Err(RunDirectoryError::UnderWay(place.to_path_buf()));
        }
        if !overwrite {
            return Err(if unfinished {
                RunDirectoryError::Unfinished(place.to_path_buf())
            } else {
                RunDirectoryError::Exists(place.to_path_buf())
            });
        }
        // Only the output of this program is ever removed.
        let is_ours = MARKS.iter().any(|mark| place.join(mark).exists());
        let is_run = unfinished || place.is_dir() && is_ours;
        let is_empty = fs::read_dir(place).is_ok_and(|mut d| d.next().is_none());
        if is_run || is_empty {
            try_to_write(place)
        } else {
            Err(RunDirectoryError::NotARun(place.to_path_buf()))
        }
    }

    /// Starts a directory that will be moved to `place`.
    pub fn create(place: &Path, overwrite: bool) -> Result<RunDirectory, RunDirectoryError> {
        RunDirectory::check(place, overwrite)?;
        RunDirectory::begin(place, false)
    }

    /// Starts a directory that will replace an unfinished run's state.
    pub fn of_unfinished(unfinished: &Unfinished) -> Result<RunDirectory, RunDirectoryError> {
        RunDirectory::begin(unfinished.place(), true)
    }

    fn begin(place: &Path, of_unfinished: bool) -> Result<RunDirectory, RunDirectoryError> {
        let temporary = temporary_next_to(place).map_err(|source| RunDirectoryError::Write {
            path: place.to_path_buf(),
            source,
        })?;
        Ok(RunDirectory {
            temporary,
            place: place.to_path_buf(),
            of_unfinished,
        })
    }

    /// The path to which to write meanwhile.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Writes a whole file, and waits until it is on the disk.
    pub fn write(&self, name: &str, contents: &str) -> Result<(), RunDirectoryError> {
        let path = self.path().join(name);
        let write = || -> io::Result<()> {
            let mut file = File::create(&path)?;
            file.write_all(contents.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| RunDirectoryError::Write { path, source })
    }

    /// Moves the directory to its place, atomically where the system supports it.
    pub fn publish(self, overwrite: bool) -> Result<PathBuf, RunDirectoryError> {
        let stands = self.of_unfinished && is_unfinished(&self.place);
        if !stands {
            RunDirectory::check(&self.place, overwrite || self.of_unfinished)?;
        }
        let fail = |source| RunDirectoryError::Write {
            path: self.place.clone(),
            source,
        };
        let temporary = self.temporary.path();
        make_readable(temporary);
        if self.place.exists() {
            // The old directory, now under the temporary name, is removed with it.
            replace(temporary, &self.place).map_err(fail)?;
            remove_quietly(temporary);
        } else {
            fs::rename(temporary, &self.place).map_err(fail)?;
        }
        sync_folder(&self.place).map_err(fail)?;
        // The directory has moved: nothing is left to clean up.
        let _ = self.temporary.keep();
        Ok(self.place)
    }
}

/// Creates a directory at `place` or its first missing parent, and removes it again.
fn try_to_write(place: &Path) -> Result<(), RunDirectoryError> {
    let parent = place
        .ancestors()
        .skip(1)
        .find(|parent| parent.symlink_metadata().is_ok())
        .unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".dpm-run-")
        .tempdir_in(parent)
        .map(drop)
        .map_err(|source| RunDirectoryError::Write {
            path: place.to_path_buf(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_before_publishing_and_nothing_is_lost() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("run");
        let run = RunDirectory::create(&place, false).unwrap();
        run.write("privacy.json", "1").unwrap();
        assert!(!place.exists());
        run.publish(false).unwrap();
        assert!(place.join("privacy.json").exists());

        assert!(matches!(
            RunDirectory::create(&place, false),
            Err(RunDirectoryError::Exists(_))
        ));
        let second = RunDirectory::create(&place, true).unwrap();
        second.write("privacy.json", "2").unwrap();
        second.publish(true).unwrap();
        assert_eq!(
            std::fs::read_to_string(place.join("privacy.json")).unwrap(),
            "2"
        );
        drop(RunDirectory::create(&base.path().join("other"), false).unwrap());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_found_beforehand() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("file"), "").unwrap();
        assert!(matches!(
            RunDirectory::check(&base.path().join("file/run"), false),
            Err(RunDirectoryError::Write { .. })
        ));
        RunDirectory::check(&base.path().join("new/deeper/run"), false).unwrap();
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_directories_are_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("thesis");
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("chapter1.txt"), "years of work").unwrap();
        assert!(matches!(
            RunDirectory::create(&place, true),
            Err(RunDirectoryError::NotARun(_))
        ));
    }
}

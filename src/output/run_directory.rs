//! A run's directory: written under a temporary name beside its place, and
//! renamed when it is complete.

use std::io;
use std::path::{Path, PathBuf};

/// A directory in the making. Dropped without [`RunDirectory::publish`], it
/// leaves nothing behind.
#[derive(Debug)]
pub struct RunDirectory {
    temporary: tempfile::TempDir,
    place: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    #[error(
        "`{0}` exists already: choose another place with --out, or give --overwrite to replace it"
    )]
    Exists(PathBuf),
    #[error("`{0}` exists and is not the directory of a run; it is left alone")]
    NotARun(PathBuf),
    #[error("cannot write `{path}`: {source}; choose another place with --out")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl RunDirectory {
    /// Whether a run may and can be written there; asked before anything is charged.
    pub fn check(place: &Path, overwrite: bool) -> Result<(), RunDirectoryError> {
        if place.symlink_metadata().is_err() {
            return try_to_write(place);
        }
        if !overwrite {
            return Err(RunDirectoryError::Exists(place.to_path_buf()));
        }
        // Only what this program wrote is ever removed.
        let is_run = place.is_dir() && place.join("privacy.json").exists();
        let is_empty = std::fs::read_dir(place).is_ok_and(|mut d| d.next().is_none());
        if is_run || is_empty {
            try_to_write(place)
        } else {
            Err(RunDirectoryError::NotARun(place.to_path_buf()))
        }
    }

    /// Starts a directory that will stand at `place`.
    pub fn create(place: &Path, overwrite: bool) -> Result<RunDirectory, RunDirectoryError> {
        RunDirectory::check(place, overwrite)?;
        let parent = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let fail = |source| RunDirectoryError::Write {
            path: place.to_path_buf(),
            source,
        };
        std::fs::create_dir_all(parent).map_err(fail)?;
        let temporary = tempfile::Builder::new()
            .prefix(".dpm-run-")
            .tempdir_in(parent)
            .map_err(fail)?;
        Ok(RunDirectory {
            temporary,
            place: place.to_path_buf(),
        })
    }

    /// Where to write meanwhile.
    pub fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Writes a whole file.
    pub fn write(&self, name: &str, contents: &str) -> Result<(), RunDirectoryError> {
        let path = self.path().join(name);
        std::fs::write(&path, contents).map_err(|source| RunDirectoryError::Write { path, source })
    }

    /// Puts the directory in its place.
    pub fn publish(self, overwrite: bool) -> Result<PathBuf, RunDirectoryError> {
        RunDirectory::check(&self.place, overwrite)?;
        let fail = |source| RunDirectoryError::Write {
            path: self.place.clone(),
            source,
        };
        // An old run steps aside first, so that a failure loses neither.
        let aside = if self.place.exists() {
            let aside = self.temporary.path().with_extension("old");
            std::fs::rename(&self.place, &aside).map_err(fail)?;
            Some(aside)
        } else {
            None
        };
        if let Err(source) = std::fs::rename(self.temporary.path(), &self.place) {
            if let Some(aside) = &aside {
                let _ = std::fs::rename(aside, &self.place);
            }
            return Err(fail(source));
        }
        make_readable(&self.place);
        if let Some(aside) = aside {
            std::fs::remove_dir_all(aside).map_err(fail)?;
        }
        // The directory has moved: nothing is left to clean up.
        let _ = self.temporary.keep();
        Ok(self.place)
    }
}

/// Makes a directory where `place` or its first missing parent would stand, and
/// takes it away again.
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

/// Temporary directories are closed to others; a finished run is as open as the
/// files that the user makes elsewhere.
fn make_readable(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755));
    }
    #[cfg(not(unix))]
    let _ = path;
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

//! Folders of this program: made under a temporary name next to their place, put there when they are
//! complete, and removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    #[error("`{0}` exists already")]
    Exists(PathBuf),
    #[error("`{0}` exists and is not the directory of a run; it is left alone")]
    NotARun(PathBuf),
    #[error("`{0}` holds a run that is not finished")]
    Unfinished(PathBuf),
    #[error("`{0}` holds a run that is under way")]
    UnderWay(PathBuf),
    #[error("cannot write `{path}`: {source}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A temporary folder from which a rename to `place` is possible.
pub(super) fn temporary_next_to(place: &Path) -> io::Result<tempfile::TempDir> {
    let parent = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent)?;
    tempfile::Builder::new()
        .prefix(".dpm-run-")
        .tempdir_in(parent)
}

/// Temporary directories are closed to others; a run has the same permissions as other files of
/// the user.
pub(super) fn make_readable(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Exchanges two directories, so that there is always one at `place`. Where the system or the file
/// system does not support this, the old one is moved aside first, so that a failure loses neither.
pub(super) fn replace(fresh: &Path, place: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let aside = fresh.with_extension("old");
    fs::rename(place, &aside)?;
    if let Err(error) = fs::rename(fresh, place) {
        let _ = fs::rename(&aside, place);
        return Err(error);
    }
    fs::rename(&aside, fresh)
}

/// Removes a folder of this program; remains of it do no harm.
pub(super) fn remove_quietly(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

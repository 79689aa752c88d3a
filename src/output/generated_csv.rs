//! Generated quantities as CmdStan's `generate_quantities` writes them: comments,
//! a line of names, one row for each draw.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::stan_csv::push_number;

/// The text of one chain's file. `keys` are written above the names, as `# key = value`.
pub fn generated_csv(keys: &[(String, String)], names: &[String], rows: &[Vec<f64>]) -> String {
    let mut text = String::new();
    for (key, value) in keys {
        text.push_str(&format!("# {key} = {value}\n"));
    }
    text.push_str(&names.join(","));
    text.push('\n');
    for row in rows {
        for (i, &value) in row.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            push_number(&mut text, value);
        }
        text.push('\n');
    }
    text
}

/// Files that could not be put into a directory.
#[derive(Debug, thiserror::Error)]
pub enum WriteFilesError {
    #[error(
        "`{0}` exists already: choose another place with --out, or give --overwrite to replace it"
    )]
    Exists(PathBuf),
    #[error("cannot write `{path}`: {source}; choose another place with --out")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Whether files of these names may be put into `folder`.
pub fn check_files(
    folder: &Path,
    names: &[String],
    overwrite: bool,
) -> Result<(), WriteFilesError> {
    let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
    match names.iter().map(|name| folder.join(name)).find(exists) {
        Some(path) if !overwrite => Err(WriteFilesError::Exists(path)),
        _ => Ok(()),
    }
}

/// Puts files into `folder`, which is created if it is missing: all are written under temporary
/// names first, and renamed when all are complete.
pub fn write_files(
    folder: &Path,
    files: &[(String, impl AsRef<[u8]>)],
    overwrite: bool,
) -> Result<(), WriteFilesError> {
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    check_files(folder, &names, overwrite)?;
    let fail = |path: &Path| {
        let path = path.to_path_buf();
        move |source| WriteFilesError::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(fail(folder))?;
    let mut written = Vec::with_capacity(files.len());
    for (name, contents) in files {
        let place = folder.join(name);
        let mut file = tempfile::Builder::new()
            .prefix(".dpm-generated-")
            .tempfile_in(folder)
            .map_err(fail(&place))?;
        file.write_all(contents.as_ref())
            .and_then(|()| file.flush())
            .map_err(fail(&place))?;
        make_readable(file.path());
        written.push((file, place));
    }
    for (file, place) in written {
        let outcome = if overwrite {
            file.persist(&place)
        } else {
            file.persist_noclobber(&place)
        };
        outcome.map_err(|error| fail(&place)(error.error))?;
    }
    Ok(())
}

/// Temporary files are readable by their owner only; these are for others, too.
#[cfg(unix)]
pub(super) fn make_readable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644));
}

#[cfg(not(unix))]
pub(super) fn make_readable(_: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new");
        let files = |text: &str| {
            vec![
                ("a.csv".to_string(), text.to_string()),
                ("b.csv".to_string(), text.to_string()),
            ]
        };
        write_files(&place, &files("1"), false).unwrap();
        std::fs::remove_file(place.join("a.csv")).unwrap();
        // One of the two exists already: the other is not written either.
        let refused = write_files(&place, &files("2"), false).unwrap_err();
        assert!(refused.to_string().contains("b.csv` exists already"));
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1);
        write_files(&place, &files("3"), true).unwrap();
        for name in ["a.csv", "b.csv"] {
            assert_eq!(std::fs::read_to_string(place.join(name)).unwrap(), "3");
        }
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 2);
    }

    #[test]
    fn numbers_are_written_as_in_a_chain() {
        let keys = [("method".to_string(), "generate_quantities".to_string())];
        let names = ["y.1".to_string(), "y.2".to_string()];
        let rows = [vec![1.0, f64::NAN], vec![1e-300, -0.5]];
        assert_eq!(
            generated_csv(&keys, &names, &rows),
            "# method = generate_quantities\ny.1,y.2\n1,nan\n1e-300,-0.5\n"
        );
    }
}

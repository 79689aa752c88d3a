//! The files that the data's paths stand for.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::{LoadError, LoadErrorKind, Origin};
use crate::privacy::share::Share;

/// A file of the table.
pub(super) struct Part {
    pub origin: Origin,
    /// Columns with one value throughout, from folders that are named `column=value`.
    pub constants: Vec<(String, String)>,
}

impl Part {
    pub fn new(origin: Origin) -> Part {
        Part {
            origin,
            constants: Vec::new(),
        }
    }
}

/// The files, at least one: `-` is standard input; a folder has all files below it, in the order
/// of their paths, but for names that begin with `.` or `_`; of a pattern, where no such file
/// exists, those that fit, with the same names left out.
///
/// Errors: nothing fits, or one file is there twice.
pub(super) fn parts(paths: &[PathBuf]) -> Result<Vec<Part>, LoadError> {
    let mut parts = Vec::new();
    for path in paths {
        match path.to_str() {
            Some("-") => parts.push(Part::new(Origin::Input)),
            Some(pattern) if pattern.contains(['*', '?', '[']) && !path.exists() => {
                let before = parts.len();
                // As a shell expands it.
                let options = glob::MatchOptions {
                    require_literal_separator: true,
                    require_literal_leading_dot: true,
                    ..glob::MatchOptions::new()
                };
                for found in glob::glob_with(pattern, options).into_iter().flatten() {
                    let found = found.map_err(|error| {
                        let path = error.path().to_path_buf();
                        unreadable(&path, error.into_error())
                    })?;
                    if !is_left_out(&found, path) {
                        add(&found, &mut parts)?;
                    }
                }
                if parts.len() == before {
                    let pattern = pattern.to_owned();
                    return Err(LoadErrorKind::NoMatch { pattern }.into());
                }
            }
            _ => add(path, &mut parts)?,
        }
    }
    check_distinct(&parts)?;
    Ok(parts)
}

/// The files that a rank reads, and a digest of the names and sizes of all. Ranks have about as many
/// bytes each; files keep their order.
///
/// Errors: standard input is among them, which cannot be divided.
pub(super) fn shared(parts: &[Part], share: Share) -> Result<(Range<usize>, [u8; 32]), LoadError> {
    let mut digest = Sha256::new();
    let mut ends = Vec::with_capacity(parts.len());
    let mut bytes = 0u64;
    for part in parts {
        let Origin::File(path) = &part.origin else {
            if share.ranks > 1 {
                return Err(LoadErrorKind::Undivided.into());
            }
            continue;
        };
        let size = fs::metadata(path).map_or(0, |file| file.len());
        let name = path.as_os_str().as_encoded_bytes();
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
        digest.update(size.to_le_bytes());
        // Empty files have a place too.
        bytes += size.max(1);
        ends.push(bytes);
    }
    // A file belongs to the rank in whose share of the bytes its last one is.
    let limit = |rank: usize| u128::from(bytes) * rank as u128 / share.ranks as u128;
    let up_to = |rank: usize| ends.partition_point(|&end| u128::from(end) <= limit(rank));
    let range = match share.ranks {
        1 => 0..parts.len(),
        _ => up_to(share.rank)..up_to(share.rank + 1),
    };
    Ok((range, digest.finalize().into()))
}

/// Whether a path that fits a pattern has a part that begins with `_`, which the pattern has not.
fn is_left_out(found: &Path, pattern: &Path) -> bool {
    let mut parts = found.components().map(|part| part.as_os_str());
    parts.any(|part| {
        let begins = part.to_string_lossy().starts_with('_');
        begins && !pattern.components().any(|of| of.as_os_str() == part)
    })
}

fn add(path: &Path, parts: &mut Vec<Part>) -> Result<(), LoadError> {
    if !path.is_dir() {
        parts.push(Part::new(Origin::File(path.to_path_buf())));
        return Ok(());
    }
    let mut found = Vec::new();
    walk(path, &mut Vec::new(), &mut found)?;
    if found.is_empty() {
        let path = path.to_path_buf();
        return Err(LoadErrorKind::EmptyFolder { path }.into());
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    parts.extend(found.into_iter().map(|(path, constants)| Part {
        origin: Origin::File(path),
        constants,
    }));
    Ok(())
}

type Found = (PathBuf, Vec<(String, String)>);

fn walk(
    folder: &Path,
    constants: &mut Vec<(String, String)>,
    found: &mut Vec<Found>,
) -> Result<(), LoadError> {
    let failed = |error| unreadable(folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with(['.', '_']) {
            continue;
        }
        let kind = entry
            .file_type()
            .map_err(|error| unreadable(&path, error))?;
        if kind.is_dir() {
            let constant = name.split_once('=').filter(|(key, _)| !key.is_empty());
            constants.extend(constant.map(|(key, value)| (decoded(key), cell(value))));
            walk(&path, constants, found)?;
            if constant.is_some() {
                constants.pop();
            }
        } else if path.is_file() {
            found.push((path, constants.clone()));
        } else {
            return Err(LoadErrorKind::NotAFile { path }.into());
        }
    }
    Ok(())
}

/// The cell of a column that a folder's name gives.
fn cell(value: &str) -> String {
    match value {
        "__HIVE_DEFAULT_PARTITION__" => String::new(),
        value => decoded(value),
    }
}

/// `a/b` for `a%2Fb`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match code {
            Some(code) if first == b'%' => {
                bytes.push(code);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A record that is read twice would be protected half as well.
fn check_distinct(parts: &[Part]) -> Result<(), LoadError> {
    if parts.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::new();
    for part in parts {
        let place = match &part.origin {
            // What cannot be found is reported when it is opened.
            Origin::File(path) => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            _ => PathBuf::from("-"),
        };
        if !seen.insert(place) {
            return Err(LoadErrorKind::Twice(part.origin.clone()).into());
        }
    }
    Ok(())
}

fn unreadable(path: &Path, error: std::io::Error) -> LoadError {
    LoadErrorKind::Unreadable {
        origin: Origin::File(path.to_path_buf()),
        reason: error.to_string(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_are_decoded() {
        for (text, expected) in [
            ("north", "north"),
            ("a%2Fb%20c", "a/b c"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%c3%a9", "\u{e9}"),
            ("%ff", "%ff"),
        ] {
            assert_eq!(decoded(text), expected);
        }
        assert_eq!(cell("__HIVE_DEFAULT_PARTITION__"), "");
    }
}

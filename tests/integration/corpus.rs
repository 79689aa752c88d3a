//! The repository's own files as tests read them: programs, and what is said of them.

use std::fs;
use std::path::{Path, PathBuf};

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "dpm"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{}", folder.display());
    found
}

pub fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

/// What is said of each program of a folder, its source and its name, is the text of the `.expected`
/// file beside it. `DPM_BLESS=1` writes these files.
pub fn matches_expected(folder: &str, say: impl Fn(&str, &str) -> String) {
    let bless = std::env::var_os("DPM_BLESS").is_some();
    let mut differing = Vec::new();
    for path in programs(folder) {
        let said = say(&read(&path), &name(&path));
        assert!(!said.is_empty(), "{} has no mistake", path.display());
        let beside = path.with_extension("expected");
        if bless {
            fs::write(&beside, &said).expect("the expected text can be written");
        } else if fs::read_to_string(&beside).unwrap_or_default() != said {
            differing.push(format!("{}:\n{said}", path.display()));
        }
    }
    assert!(
        differing.is_empty(),
        "these messages changed; if they are better, run with DPM_BLESS=1\n\n{}",
        differing.join("\n")
    );
}

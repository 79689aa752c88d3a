//! Runs in the formats of other programs.
//!
//! Each states the promise about the draws: a file outside its run's directory still says whether
//! it is private.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::folder::{make_readable, remove_quietly, replace, temporary_next_to};
#[cfg(feature = "parquet")]
use super::parquet;
use super::run::Run;
use super::stan_csv::push_number;
use super::zarr;

/// A file or folder that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    #[error("`{}` exists and is not a folder of draws; it is left alone", .0.display())]
    NotOurs(PathBuf),
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Run {
    /// Writes the draws as Parquet: columns `chain` and `draw`, which count from 0, and one for
    /// each parameter (`beta[1]`). The promise of the run is in the file's metadata, under
    /// `privacy_statement` and `privacy_report`. Needs the cargo feature `parquet`, which is on by
    /// default.
    ///
    /// # Errors
    ///
    /// The path exists and may not be replaced, or cannot be written.
    #[cfg(feature = "parquet")]
    pub fn write_parquet(&self, path: &Path, overwrite: bool) -> Result<(), ConvertError> {
        let (chains, draws): (Vec<i32>, Vec<i32>) = self.places().unzip();
        let ints = |name: &str, values: Vec<i32>| parquet::Column {
            name: name.to_owned(),
            values: parquet::Values::Ints(values),
        };
        let mut columns = vec![ints("chain", chains), ints("draw", draws)];
        for (c, name) in self.draws().names().iter().enumerate() {
            let values = self.draws().chains().iter().flatten().map(|draw| draw[c]);
            columns.push(parquet::Column {
                name: name.clone(),
                values: parquet::Values::Reals(values.collect()),
            });
        }
        let metadata = [
            ("privacy_private", self.is_private().to_string()),
            ("privacy_statement", self.statement().to_owned()),
            ("privacy_report", self.report().to_string()),
            ("dpm_config", self.config().to_string()),
        ];
        let bytes = parquet::file("draws", &columns, &metadata).map_err(io::Error::other);
        write_file(path, &bytes.map_err(failed(path))?, overwrite)
    }

    /// Writes the draws as a Zarr folder in the layout of arviz's InferenceData: the groups
    /// `posterior` and `sample_stats`, with the promise of the run among their attributes. There
    /// are no `observed_data`, which are private.
    ///
    /// # Errors
    ///
    /// The path exists and may not be replaced, or cannot be written.
    pub fn write_zarr(&self, path: &Path, overwrite: bool) -> Result<(), ConvertError> {
        write_folder(path, &zarr::folder(self, &self.attributes()), overwrite)
    }

    /// Writes the draws as one CSV file: columns `chain` and `draw`, which count from 0, and one
    /// for each parameter (`beta[1]`). Each row of a run without privacy says so in a last
    /// column.
    ///
    /// # Errors
    ///
    /// As of [`write_zarr`](Run::write_zarr).
    pub fn write_csv(&self, path: &Path, overwrite: bool) -> Result<(), ConvertError> {
        let (title, mark) = if self.is_private() {
            ("\n", "\n")
        } else {
            (",privacy\n", ",NOT_PRIVATE\n")
        };
        let mut text = String::from("chain,draw");
        for name in self.draws().names() {
            text.push(',');
            if name.contains(',') {
                text.push_str(&format!("\"{name}\""))
            } else {
                text.push_str(name)
            }
        }
        text.push_str(title);
        let rows = self.draws().chains().iter().flatten();
        for ((chain, draw), row) in self.places().zip(rows) {
            text.push_str(&format!("{chain},{draw}"));
            for &value in row {
                text.push(',');
                push_number(&mut text, value);
            }
            text.push_str(mark);
        }
        write_file(path, text.as_bytes(), overwrite)
    }

    /// Chain and draw of each row.
    fn places(&self) -> impl Iterator<Item = (i32, i32)> {
        let of_chain = |(chain, draws): (i32, &Vec<Vec<f64>>)| {
            (0..draws.len() as i32).map(move |draw| (chain, draw))
        };
        (0..).zip(self.draws().chains()).flat_map(of_chain)
    }

    fn attributes(&self) -> Map<String, Value> {
        let report = self.report();
        let attributes = json!({
            "inference_library": "dpm",
            "inference_library_version": env!("CARGO_PKG_VERSION"),
            "privacy_private": self.is_private().to_string(),
            "privacy_statement": self.statement(),
            "privacy_report": report.to_string(),
        });
        match attributes {
            Value::Object(attributes) => attributes,
            _ => Map::new(),
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> ConvertError {
    let path = path.to_path_buf();
    move |source| ConvertError::Write {
        path: path.clone(),
        source,
    }
}

/// Under a temporary name first, so that a reader sees either all of it or nothing.
fn write_file(path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), ConvertError> {
    if path.is_dir() {
        return Err(ConvertError::NotOurs(path.to_path_buf()));
    }
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(ConvertError::Exists(path.to_path_buf()));
    }
    let fail = failed(path);
    let folder = parent(path);
    fs::create_dir_all(folder).map_err(&fail)?;
    let mut file = tempfile::Builder::new()
        .prefix(".dpm-convert-")
        .tempfile_in(folder)
        .map_err(&fail)?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().sync_all())
        .map_err(&fail)?;
    super::generated_csv::make_readable(file.path());
    let outcome = if overwrite {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    outcome.map(drop).map_err(|error| fail(error.error))
}

fn write_folder(path: &Path, files: &[zarr::File], overwrite: bool) -> Result<(), ConvertError> {
    let stands = path.symlink_metadata().is_ok();
    if stands && !overwrite {
        return Err(ConvertError::Exists(path.to_path_buf()));
    }
    // Only the output of such a command is ever removed.
    let is_empty = || fs::read_dir(path).is_ok_and(|mut inside| inside.next().is_none());
    if stands && !path.join("posterior/.zgroup").is_file() && !is_empty() {
        return Err(ConvertError::NotOurs(path.to_path_buf()));
    }
    let fail = failed(path);
    let temporary = temporary_next_to(path).map_err(&fail)?;
    for (name, bytes) in files {
        let place = temporary.path().join(name);
        fs::create_dir_all(parent(&place)).map_err(&fail)?;
        fs::write(&place, bytes).map_err(&fail)?;
    }
    make_readable(temporary.path());
    if stands {
        // The old folder, now under the temporary name, is removed with it.
        replace(temporary.path(), path).map_err(&fail)?;
        remove_quietly(temporary.path());
    } else {
        fs::rename(temporary.path(), path).map_err(&fail)?;
    }
    // The folder has moved: nothing is left to clean up.
    let _ = temporary.keep();
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

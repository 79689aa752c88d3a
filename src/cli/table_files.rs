//! Where made-up tables are written: CSV or Parquet by the name's ending, one file or several.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::model::RecordColumn;
use crate::output::table_csv;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    #[cfg(feature = "parquet")]
    Parquet,
}

/// The files of tables that are called FILE.csv, or FILE-1.csv, FILE-2.csv, ... where there are several.
#[derive(Debug)]
pub(super) struct TableFiles {
    pub folder: PathBuf,
    /// Of the tables, in their order.
    pub names: Vec<String>,
    /// The name without its ending.
    stem: String,
    format: Format,
}

impl TableFiles {
    /// # Errors
    ///
    /// A name with another ending.
    pub fn of(out: &Path, tables: u64) -> Result<TableFiles, Failure> {
        let part = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned());
        let ending = part(out.extension()).unwrap_or_default();
        let format = match ending.to_ascii_lowercase().as_str() {
            "csv" => Format::Csv,
            #[cfg(feature = "parquet")]
            "parquet" => Format::Parquet,
            _ => {
                return Err(Failure::input(format!(
                    "`{}`: expected a name that ends in .csv{}",
                    out.display(),
                    if cfg!(feature = "parquet") {
                        " or .parquet"
                    } else {
                        "; this dpm was built without Parquet"
                    }
                )));
            }
        };
        let stem = part(out.file_stem()).unwrap_or_default();
        Ok(TableFiles {
            folder: folder_of(out),
            names: match tables {
                1 => vec![format!("{stem}.{ending}")],
                several => (1..=several)
                    .map(|k| format!("{stem}-{k}.{ending}"))
                    .collect(),
            },
            stem,
            format,
        })
    }

    /// The name of a file about the tables: FILE.about.json.
    pub fn about(&self, ending: &str) -> String {
        format!("{}.about.{ending}", self.stem)
    }

    /// The name of a file of what covariates are like: FILE.codebook.json.
    pub fn codebook(&self) -> String {
        format!("{}.codebook.json", self.stem)
    }

    /// The content of a table's file.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    pub fn contents<'a>(
        &self,
        columns: impl Iterator<Item = (&'a RecordColumn, &'a [f64])>,
    ) -> Result<Vec<u8>, Failure> {
        match self.format {
            Format::Csv => Ok(table_csv(columns).into_bytes()),
            #[cfg(feature = "parquet")]
            Format::Parquet => crate::output::table_parquet(columns).map_err(Failure::run),
        }
    }
}

/// The folder in which a file is.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

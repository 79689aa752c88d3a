//! Draws of any origin: a CSV with a column per parameter, or a Stan CSV.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::diagnostics::{bracket_name, dot_name};

use super::stan_csv::{ReadStanCsvError, parse_stan_csv};

/// Draws and their parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawsTable {
    /// In bracket form; columns of a sampler, whose names end in `__`, are left out.
    pub names: Vec<String>,
    /// Draws × names, all chains pooled.
    pub draws: Vec<Vec<f64>>,
    /// Whether the run that wrote the file was private, where it says so.
    pub private: Option<bool>,
}

/// A file of draws that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadDrawsError {
    #[error("{}{}: {kind}", path.display(), line.map_or(String::new(), |l| format!(", line {l}")))]
    Table {
        path: PathBuf,
        /// Counted from 1; none for an error in the file as a whole.
        line: Option<u64>,
        kind: ReadDrawsErrorKind,
    },
    #[error(transparent)]
    Stan(#[from] ReadStanCsvError),
}

/// The kind of error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadDrawsErrorKind {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("it is empty: expected a line of parameter names, and a line of numbers for each draw")]
    Empty,
    #[error("{0}")]
    Csv(String),
    #[error("{found} values, expected {expected}, one for each column")]
    Width { found: usize, expected: usize },
    /// Columns are counted from 1. The value is not shown: the file may be private data.
    #[error(
        "column {column} is not a number: expected a line of parameter names, and a line of numbers for each draw"
    )]
    Number { column: usize },
    #[error("columns {first} and {second} have the same name")]
    Repeated { first: usize, second: usize },
}

/// Reads a CSV with a column per parameter, names with dots or brackets (`beta.1`,
/// `m[2,1]`), or a Stan CSV, whose first column is `lp__`. Either may be gzipped; lines that
/// start with `#` are comments.
///
/// # Errors
///
/// A file that cannot be opened or is not such a table; the error names file and line.
pub fn read_draws_csv(path: impl AsRef<Path>) -> Result<DrawsTable, ReadDrawsError> {
    let path = path.as_ref();
    let text = read(path).map_err(|error| ReadDrawsError::Table {
        path: path.to_owned(),
        line: None,
        kind: error.into(),
    })?;
    let of_data = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
    let header = text.lines().find(of_data).unwrap_or_default();
    if header.split(',').next().map(str::trim) == Some("lp__") {
        let chain = parse_stan_csv(path, text.as_bytes())?;
        return Ok(DrawsTable {
            names: chain.parameters(),
            draws: chain.parameter_draws(),
            private: chain.key("privacy_private").map(|value| value != "false"),
        });
    }
    parse(&text).map_err(|(line, kind)| ReadDrawsError::Table {
        path: path.to_owned(),
        line,
        kind,
    })
}

fn read(path: &Path) -> io::Result<String> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let mut file = BufReader::new(File::open(path)?);
    let mut text = String::new();
    if file.fill_buf()?.starts_with(&GZIP) {
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}

fn parse(text: &str) -> Result<DrawsTable, (Option<u64>, ReadDrawsErrorKind)> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut records = reader.records().map(|record| {
        record.map_err(|e| {
            let line = e.position().map(csv::Position::line);
            (line, ReadDrawsErrorKind::Csv(e.to_string()))
        })
    });
    let Some(header) = records.next().transpose()? else {
        return Err((None, ReadDrawsErrorKind::Empty));
    };
    // Either spelling, also `m[2, 1]`.
    let columns: Vec<String> = header.iter().map(|n| bracket_name(&dot_name(n))).collect();
    let kept: Vec<usize> = (0..columns.len())
        .filter(|&c| !columns[c].ends_with("__"))
        .collect();
    let names: Vec<String> = kept.iter().map(|&c| columns[c].clone()).collect();
    for (i, &second) in kept.iter().enumerate() {
        if let Some(place) = names[..i].iter().position(|name| *name == names[i]) {
            let (first, second) = (kept[place] + 1, second + 1);
            return Err((Some(1), ReadDrawsErrorKind::Repeated { first, second }));
        }
    }
    let mut draws = Vec::new();
    for record in records {
        let record = record?;
        let line = record.position().map(csv::Position::line);
        if record.len() != columns.len() {
            let (found, expected) = (record.len(), columns.len());
            return Err((line, ReadDrawsErrorKind::Width { found, expected }));
        }
        let value = |&column: &usize| {
            record[column].parse().map_err(|_| {
                let column = column + 1;
                (line, ReadDrawsErrorKind::Number { column })
            })
        };
        draws.push(kept.iter().map(value).collect::<Result<Vec<f64>, _>>()?);
    }
    Ok(DrawsTable {
        names,
        draws,
        private: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> DrawsTable {
        parse(text).unwrap_or_else(|(_, kind)| panic!("{kind}"))
    }

    fn message(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv");
        std::fs::write(&path, text).unwrap();
        let message = read_draws_csv(&path).unwrap_err().to_string();
        message.replace(&path.display().to_string(), "r.csv")
    }

    #[test]
    fn names_are_read_in_either_spelling() {
        let read =
            table("# of a person\n\"m[2, 1]\",beta.1 , alpha,lp__\n1,2,3,4\n-1e3,nan,inf,0\n");
        assert_eq!(read.names, ["m[2,1]", "beta[1]", "alpha"]);
        assert_eq!(read.draws[0], [1.0, 2.0, 3.0]);
        assert_eq!(read.draws[1][0], -1000.0);
        assert!(read.draws[1][1].is_nan() && read.draws[1][2] == f64::INFINITY);
        assert!(table("a,b\n").draws.is_empty());
    }

    #[test]
    fn errors_say_where() {
        assert!(message("").starts_with("r.csv: it is empty: expected a line"));
        assert_eq!(
            message("a,b\n1,2\n1\n"),
            "r.csv, line 3: 1 values, expected 2, one for each column"
        );
        assert!(message("a,b\n1,x\n").starts_with("r.csv, line 2: column 2 is not a number"));
        assert_eq!(
            message("b.1,b[1]\n1,2\n"),
            "r.csv, line 1: columns 1 and 2 have the same name"
        );
        assert!(message("lp__,a\nnan\n").starts_with("r.csv, line 2: 1 values"));
        let missing = read_draws_csv("/nowhere/r.csv").unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/r.csv: cannot read it"));
    }

    #[test]
    fn stan_csv_and_gzip_are_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.csv.gz");
        let stan = "# privacy_private = false\nlp__,accept_stat__,b.1\nnan,1,2.5\n";
        let file = File::create(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        io::Write::write_all(&mut packed, stan.as_bytes()).unwrap();
        packed.finish().unwrap();
        let read = read_draws_csv(&path).unwrap();
        assert_eq!(
            (read.names, read.draws),
            (vec!["b[1]".into()], vec![vec![2.5]])
        );
        assert_eq!(read.private, Some(false));
    }
}

//! Reading Stan CSV files of dpm or CmdStan.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::diagnostics::bracket_name;

/// One chain as in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct StanCsv {
    /// `# key = value` lines in file order, above and below the draws.
    pub keys: Vec<(String, String)>,
    /// Column names as in the file: `lp__`, .., `beta.1`.
    pub columns: Vec<String>,
    /// Saved warm-up draws × columns; empty unless `save_warmup`.
    pub warmup: Vec<Vec<f64>>,
    /// Sampling draws × columns.
    pub draws: Vec<Vec<f64>>,
}

/// A file that cannot be read as Stan CSV.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {kind}", path.display(), line.map_or(String::new(), |l| format!(", line {l}")))]
pub struct ReadStanCsvError {
    pub path: PathBuf,
    /// Counted from 1; none for an error in the file as a whole.
    pub line: Option<usize>,
    pub kind: ReadStanCsvErrorKind,
}

/// The kind of error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadStanCsvErrorKind {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("no line of column names: this is not a Stan CSV file, or its run was interrupted")]
    NoColumns,
    #[error("the first column is '{0}', where a Stan CSV file has lp__")]
    FirstColumn(String),
    #[error("{found} values, expected {expected}, one for each column")]
    Width { found: usize, expected: usize },
    #[error("'{text}' in column '{column}' is not a number")]
    Number { column: String, text: String },
    #[error("'{key} = {value}' should be a whole number")]
    Key { key: &'static str, value: String },
    #[error(
        "{found} draws, but the header announces {expected}: the run was interrupted or the file cut"
    )]
    Rows { found: usize, expected: usize },
}

/// Reads one chain.
///
/// Where the header has `num_samples`, the number of draws must agree with it. A value in
/// parentheses that CmdStan adds, `(Default)`, is dropped.
///
/// # Errors
///
/// A file that cannot be opened or is not a complete Stan CSV file; the error names file and line.
pub fn read_stan_csv(path: impl AsRef<Path>) -> Result<StanCsv, ReadStanCsvError> {
    let path = path.as_ref();
    match File::open(path) {
        Ok(file) => parse_stan_csv(path, BufReader::new(file)),
        Err(error) => Err(ReadStanCsvError {
            path: path.to_owned(),
            line: None,
            kind: error.into(),
        }),
    }
}

/// As [`read_stan_csv`], for a file that has been opened (and unpacked) already.
pub(crate) fn parse_stan_csv(
    path: &Path,
    input: impl BufRead,
) -> Result<StanCsv, ReadStanCsvError> {
    parse(input).map_err(|(line, kind)| ReadStanCsvError {
        path: path.to_owned(),
        line,
        kind,
    })
}

impl StanCsv {
    /// The value of a header key.
    pub fn key(&self, key: &str) -> Option<&str> {
        let of_key = self.keys.iter().find(|(k, _)| k == key);
        of_key.map(|(_, value)| value.as_str())
    }

    /// Names of the parameters' elements in bracket form, in file order: all columns but
    /// the sampler's, whose names end in `__`.
    pub fn parameters(&self) -> Vec<String> {
        self.parameter_columns()
            .map(|(_, name)| bracket_name(name))
            .collect()
    }

    /// Sampling draws × parameters, in the order of [`Self::parameters`].
    pub fn parameter_draws(&self) -> Vec<Vec<f64>> {
        let columns: Vec<usize> = self.parameter_columns().map(|(column, _)| column).collect();
        let of_draw = |draw: &Vec<f64>| {
            columns
                .iter()
                .filter_map(|&c| draw.get(c).copied())
                .collect()
        };
        self.draws.iter().map(of_draw).collect()
    }

    fn parameter_columns(&self) -> impl Iterator<Item = (usize, &String)> {
        self.columns
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.ends_with("__"))
    }
}

/// Line number and error.
type Located = (Option<usize>, ReadStanCsvErrorKind);

fn parse(input: impl BufRead) -> Result<StanCsv, Located> {
    let mut keys = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (index, line) in input.lines().enumerate() {
        let at_line = |kind| (Some(index + 1), kind);
        let line = line.map_err(|error| at_line(error.into()))?;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            keys.extend(key_and_value(comment));
        } else if line.is_empty() {
            continue;
        } else if columns.is_empty() {
            columns = line.split(',').map(|name| name.trim().to_owned()).collect();
            if columns[0] != "lp__" {
                return Err(at_line(ReadStanCsvErrorKind::FirstColumn(
                    columns[0].clone(),
                )));
            }
        } else {
            rows.push(parse_row(line, &columns).map_err(at_line)?);
        }
    }
    if columns.is_empty() {
        return Err((None, ReadStanCsvErrorKind::NoColumns));
    }
    let mut chain = StanCsv {
        keys,
        columns,
        warmup: Vec::new(),
        draws: Vec::new(),
    };
    let saved = expected_rows(&chain, "num_warmup")?
        .filter(|_| saves_warmup(&chain))
        .unwrap_or(0);
    if let Some(sampled) = expected_rows(&chain, "num_samples")?
        && rows.len() != saved.saturating_add(sampled)
    {
        let (found, expected) = (rows.len(), saved.saturating_add(sampled));
        return Err((None, ReadStanCsvErrorKind::Rows { found, expected }));
    }
    chain.draws = rows.split_off(saved.min(rows.len()));
    chain.warmup = rows;
    Ok(chain)
}

fn key_and_value(comment: &str) -> Option<(String, String)> {
    let (key, value) = comment.split_once(" = ")?;
    let value = value.trim_end().trim_end_matches("(Default)");
    Some((key.trim().to_owned(), value.trim().to_owned()))
}

fn parse_row(line: &str, columns: &[String]) -> Result<Vec<f64>, ReadStanCsvErrorKind> {
    let mut row = Vec::with_capacity(columns.len());
    for text in line.split(',') {
        let Some(column) = columns.get(row.len()) else {
            let (found, expected) = (line.split(',').count(), columns.len());
            return Err(ReadStanCsvErrorKind::Width { found, expected });
        };
        let value = text
            .trim()
            .parse()
            .map_err(|_| ReadStanCsvErrorKind::Number {
                column: column.clone(),
                text: text.to_owned(),
            })?;
        row.push(value);
    }
    if row.len() != columns.len() {
        let (found, expected) = (row.len(), columns.len());
        return Err(ReadStanCsvErrorKind::Width { found, expected });
    }
    Ok(row)
}

/// Rows of a phase, ceil(iterations / thin), where the header has the number of iterations.
fn expected_rows(chain: &StanCsv, key: &'static str) -> Result<Option<usize>, Located> {
    let thin = whole_number(chain, "thin")?.unwrap_or(1).max(1);
    Ok(whole_number(chain, key)?.map(|iterations| iterations.div_ceil(thin)))
}

fn whole_number(chain: &StanCsv, key: &'static str) -> Result<Option<usize>, Located> {
    let parse = |value: &str| {
        let value = value.to_owned();
        value
            .parse()
            .map_err(|_| (None, ReadStanCsvErrorKind::Key { key, value }))
    };
    chain.key(key).map(parse).transpose()
}

fn saves_warmup(chain: &StanCsv) -> bool {
    matches!(chain.key("save_warmup"), Some("1" | "true"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{header, strings};
    use super::super::{StanCsvHeader, StanCsvWriter, Timing};
    use super::*;

    fn parsed(text: &str) -> StanCsv {
        parse(text.as_bytes()).unwrap()
    }

    fn message(text: &str) -> String {
        let (line, kind) = parse(text.as_bytes()).unwrap_err();
        ReadStanCsvError {
            path: PathBuf::from("chain-1.csv"),
            line,
            kind,
        }
        .to_string()
    }

    #[test]
    fn what_was_written_is_read_back_bit_for_bit() {
        let header = StanCsvHeader {
            num_samples: 5,
            thin: 2,
            ..header()
        };
        let names = strings(&["alpha", "m[1,1]", "m[2,1]"]);
        let sampler = strings(&["stepsize__"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain-1.csv");
        let file = File::create(&path).unwrap();
        let mut writer = StanCsvWriter::new(file, header, &sampler, &names).unwrap();
        let draw = |i: usize| vec![1.0 / (i as f64 + 3.0), f64::NAN, -1e-300 * i as f64];
        for i in 0..3 {
            writer.draw(0.75, &[0.1], &draw(i)).unwrap();
        }
        writer
            .finish(Timing {
                warmup: 0.0,
                sampling: 0.0,
            })
            .unwrap();

        let chain = read_stan_csv(&path).unwrap();
        assert_eq!(chain.parameters(), names);
        assert_eq!((chain.warmup.len(), chain.draws.len()), (0, 3));
        let bits = |row: &[f64]| row.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        for (i, row) in chain.parameter_draws().iter().enumerate() {
            assert_eq!(bits(row), bits(&draw(i)));
        }
        assert_eq!(chain.key("privacy_epsilon"), Some("1"));
        assert_eq!(chain.key("dpm_algorithm"), Some("dp-hmc"));
        assert_eq!(chain.key("nothing"), None);
    }

    #[test]
    fn cmdstan_s_own_files_are_read() {
        let chain = parsed(
            "# stan_version_major = 2\n# num_samples = 1 (Default)\n#  num_warmup = 3\n\
             # save_warmup = true\n# thin = 2\nlp__,accept_stat__,b.1\n-1.5,1,2\n-1.5,1,3\n\
             # Adaptation terminated\n-1.5,1,4\n# \n#  Elapsed Time: 0.1 seconds (Warm-up)\n",
        );
        assert_eq!(chain.warmup.len(), 2);
        assert_eq!(chain.parameter_draws(), [[4.0]]);
        assert_eq!(chain.parameters(), ["b[1]"]);
    }

    #[test]
    fn errors_name_file_and_line() {
        assert_eq!(
            message("# a = 1\nlp__,x\nnan,1\nnan,1,2\n"),
            "chain-1.csv, line 4: 3 values, expected 2, one for each column"
        );
        assert_eq!(
            message("lp__,x\nnan\n"),
            "chain-1.csv, line 2: 1 values, expected 2, one for each column"
        );
        assert_eq!(
            message("lp__,x\nnan,one\n"),
            "chain-1.csv, line 2: 'one' in column 'x' is not a number"
        );
        assert_eq!(
            message("x,y\n1,2\n"),
            "chain-1.csv, line 1: the first column is 'x', where a Stan CSV file has lp__"
        );
        assert_eq!(
            message("# num_samples = many\nlp__\nnan\n"),
            "chain-1.csv: 'num_samples = many' should be a whole number"
        );
        assert!(message("").contains("no line of column names"));
        assert!(message("# only = comments\n").contains("no line of column names"));
        let error = read_stan_csv("/nowhere/chain-1.csv").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/chain-1.csv: cannot read it")
        );
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        assert_eq!(
            message("# num_samples = 3\n# num_warmup = 18446744073709551615\nlp__,x\nnan,1\n"),
            "chain-1.csv: 1 draws, but the header announces 3: the run was interrupted or the file cut"
        );
        let huge = "# num_samples = 3\n# num_warmup = 18446744073709551615\n# save_warmup = 1\nlp__,x\nnan,1\n";
        assert!(message(huge).contains("1 draws"));
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error_with_a_line() {
        let (line, _) = parse(&b"lp__,x\n\xff\xfe,1\n"[..]).unwrap_err();
        assert_eq!(line, Some(2));
    }
}

//! The faults of a data file, described without its contents.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::privacy::store::NoRoom;

/// Rows could not be loaded.
///
/// # Privacy
///
/// The message names files, lines and columns, and what was expected there. It never contains a
/// value of a row, nor says which expectation a value failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LoadError(Box<LoadErrorKind>);

impl LoadError {
    pub fn kind(&self) -> &LoadErrorKind {
        &self.0
    }

    /// The error for a table without records where their number is public.
    pub(crate) fn no_rows() -> LoadError {
        LoadErrorKind::NoRows.into()
    }
}

impl From<LoadErrorKind> for LoadError {
    fn from(kind: LoadErrorKind) -> LoadError {
        LoadError(Box::new(kind))
    }
}

/// Where rows come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    File(PathBuf),
    /// Standard input.
    Input,
    Memory,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Input => f.write_str("standard input"),
            Origin::Memory => f.write_str("the data given"),
        }
    }
}

/// The format of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    Text,
    Gzip,
    Zstd,
    Parquet,
    Arrow,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Format::Text => "text",
            Format::Gzip => "gzip",
            Format::Zstd => "zstd",
            Format::Parquet => "Parquet",
            Format::Arrow => "Arrow",
        })
    }
}

/// How the places of records are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// By the lines of a text, the header included.
    #[default]
    Lines,
    /// By rows.
    Rows,
}

impl Form {
    /// `line` or `row`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Lines => "line",
            Form::Rows => "row",
        }
    }
}

/// Why rows could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadErrorKind {
    #[error("cannot read {origin}: {reason}; check the path and its permissions")]
    Unreadable { origin: Origin, reason: String },

    #[error(
        "the folder {} has no data files (names that begin with a dot or an underscore are left out)",
        path.display()
    )]
    EmptyFolder { path: PathBuf },

    #[error("no file matches the pattern `{pattern}`")]
    NoMatch { pattern: String },

    #[error(
        "{} is neither a file nor a folder (links to folders are not followed); remove it from the \
         folder, or give the files one by one",
        path.display()
    )]
    NotAFile { path: PathBuf },

    #[error("{0} is given more than once, and so would each of its records be")]
    Twice(Origin),

    #[error(
        "standard input cannot be divided among ranks: give files that all ranks can see, or use one rank"
    )]
    Undivided,

    #[error(
        "{origin} is {}, and the first file is {}; give files of one format",
        content(*format),
        content(*first)
    )]
    OtherFormat {
        origin: Origin,
        format: Format,
        first: Format,
    },

    #[error("{origin} is not a {format} file, though its name says so: it is damaged, or misnamed")]
    Misnamed { origin: Origin, format: Format },

    #[error("{origin} is a damaged or truncated {format} file; make it again")]
    Damaged { origin: Origin, format: Format },

    #[error(
        "standard input is a terminal; pipe the data into the command (to resume a run, the same \
         data as before)"
    )]
    Terminal,

    #[error("{0} is encrypted; write it again without encryption")]
    Encrypted(Origin),

    #[error(
        "{origin} is compressed with {name}, which is not read; write it with Snappy, zstd, gzip, \
         LZ4 or no compression"
    )]
    Compression { origin: Origin, name: &'static str },

    #[error(
        "{origin} is {format}, which this build does not read: build it with the cargo feature \
         `parquet`, which is on by default"
    )]
    NotBuilt { origin: Origin, format: Format },

    #[error(
        "the header line of {0} is not UTF-8 text; give the table as CSV with the encoding UTF-8, \
         Parquet or Arrow (not as a spreadsheet or UTF-16 file)"
    )]
    NotUtf8(Origin),

    #[error("{0} is empty; expected a header line with column names, then one line per record")]
    Empty(Origin),

    #[error(
        "{0} has carriage returns inside its header line; save the table with lines that end in \
         a line feed, or a carriage return and a line feed"
    )]
    CarriageReturns(Origin),

    /// Not raised under the relation add-remove, where the number of records is private.
    #[error("there are no records; expected at least one")]
    NoRows,

    /// The header's fields cannot be separated, the file ends inside quotes, or the end of a record
    /// that may span lines cannot be determined.
    #[error(
        "{origin}, line {line}: expected each field with quotation marks around all of it or with \
         none, closed within {} MiB, and two for one inside; nothing after it can be told apart, \
         or the file was cut short there. What is there is private and not shown",
        super::records::LONGEST >> 20
    )]
    Torn {
        origin: Origin,
        /// Counted from 1: the line on which the record starts.
        line: u64,
    },

    /// The first line may be a record and not a header, so it is not shown.
    #[error("{}", no_header(origin, column, *count, *has_numbers, *separator))]
    NoHeader {
        origin: Origin,
        /// The column that was expected.
        column: String,
        /// How many fields the first line has.
        count: usize,
        /// Whether some of them are numbers.
        has_numbers: bool,
        /// The character that seems to separate columns, where there is only one field.
        separator: Option<char>,
    },

    #[error("{}", missing_unit(origin, header, suggestion.as_deref(), present))]
    MissingUnit {
        origin: Origin,
        header: String,
        suggestion: Option<String>,
        /// All column names of the file.
        present: Vec<String>,
    },

    #[error(
        "there are {rows} rows and {keys} values that say to which unit they belong; expected one for each row"
    )]
    UnequalUnits { rows: usize, keys: usize },

    #[error("{}", missing_column(origin, column, variable, header, suggestion.as_deref(), present))]
    MissingColumn {
        origin: Origin,
        /// The element that the model needs, such as `dist` or `x.1`.
        column: String,
        /// The variable that it belongs to, such as `dist` or `x`.
        variable: String,
        /// The name that was expected: that of the element, or its new name.
        header: String,
        suggestion: Option<String>,
        /// All column names of the file.
        present: Vec<String>,
    },

    #[error("{origin} has more than one column named `{header}`; rename or remove all but one")]
    DuplicateColumn { origin: Origin, header: String },

    #[error(
        "a new name is given for `{name}`, which is not a record column of the model{}",
        did_you_mean_clause(suggestion.as_deref())
    )]
    UnknownRename {
        name: String,
        suggestion: Option<String>,
    },

    #[error("more than one new name is given for `{name}`; give one")]
    RepeatedRename { name: String },

    #[error(
        "the columns `{first}` and `{other}` have {first_length} and {other_length} values; \
         expected one value per record in each"
    )]
    UnequalLengths {
        first: String,
        first_length: usize,
        other: String,
        other_length: usize,
    },

    #[error(
        "the column `{column}` of {origin} is of the type {kind}; expected numbers, truth values \
         or text. Convert it to one of these"
    )]
    ColumnType {
        origin: Origin,
        column: String,
        kind: String,
    },

    #[error(
        "the column `{column}` of {origin} has text where that of the first file has numbers, or \
         numbers where that has text; write both in one way"
    )]
    OtherType { origin: Origin, column: String },

    #[error(
        "the columns of record batch {batch} are not those of the first; give batches of one schema"
    )]
    OtherSchema {
        /// Counted from 1.
        batch: usize,
    },

    #[error(transparent)]
    NoRoom(#[from] NoRoom),

    #[error(
        "the rows cannot be read back from their temporary file: {reason}; check the disk, or \
         allow more memory (`max_memory`)"
    )]
    Lost { reason: String },

    #[error("{}", bad_row(origin, *form, *position, column.as_deref(), expected))]
    BadRow {
        origin: Origin,
        form: Form,
        /// Counted from 1: the line of the file on which the record starts, or the row.
        position: u64,
        /// `None` where the row has the wrong number of fields, or they cannot be separated.
        column: Option<String>,
        /// The form that the column's declaration, or the header, requires.
        expected: String,
    },
}

fn content(format: Format) -> &'static str {
    match format {
        Format::Parquet => "a Parquet file",
        Format::Arrow => "an Arrow file",
        _ => "text",
    }
}

fn bad_row(
    origin: &Origin,
    form: Form,
    position: u64,
    column: Option<&str>,
    expected: &str,
) -> String {
    let place = form.name();
    let skip = match origin {
        Origin::Memory => "`OnBadRows::Skip`",
        _ => "`on_bad_rows skip`",
    };
    let column = column.map_or(String::new(), |name| format!(", column `{name}`"));
    format!(
        "{origin}, {place} {position}{column}: expected {expected}; what is there is private and \
         not shown. Correct it, or use {skip}, which treats all such rows as missing"
    )
}

fn no_header(
    origin: &Origin,
    column: &str,
    count: usize,
    has_numbers: bool,
    separator: Option<char>,
) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let mut message = format!(
        "{origin} has no column named `{column}`; its first line has {count} field{plural}"
    );
    message.push_str(if has_numbers {
        ", some of them numbers. It may be a record and is not shown"
    } else {
        ", and none is a column that was looked for. It may be a record and is not shown"
    });
    message.push_str(&match separator {
        Some(separator) => {
            format!(". Columns are separated by commas, but this file seems to use {separator:?}")
        }
        None => ". If the file has no header line, add one that names the columns; if it has, say \
                 with `columns` which of them the model reads"
            .to_string(),
    });
    message
}

fn missing_unit(
    origin: &Origin,
    header: &str,
    suggestion: Option<&str>,
    present: &[String],
) -> String {
    format!(
        "{origin} has no column named `{header}`, whose values identify the units of privacy \
         apart{}; it has {}",
        did_you_mean_clause(suggestion),
        listed(present)
    )
}

fn missing_column(
    origin: &Origin,
    column: &str,
    variable: &str,
    header: &str,
    suggestion: Option<&str>,
    present: &[String],
) -> String {
    let mut message = format!("{origin} has no column named `{header}`");
    if header != column {
        message.push_str(&format!(", which `columns` gives for `{column}`"));
    } else {
        message.push_str(", which the model uses");
    }
    message.push_str(&did_you_mean_clause(suggestion));
    message.push_str(&format!("; it has {}", listed(present)));
    if *origin != Origin::Memory {
        if header != column {
            message.push_str(". Give `columns` one of these");
        } else if variable == column {
            message.push_str(&format!(
                ". To use a column of another name, give `columns {variable}=NAME`"
            ));
        } else {
            message.push_str(&format!(
                ". To use columns of other names, give `columns {variable}=NAME,NAME,...`"
            ));
        }
    }
    message
}

fn did_you_mean_clause(suggestion: Option<&str>) -> String {
    suggestion.map_or(String::new(), |name| {
        format!(" (did you mean `{}`?)", printable(name))
    })
}

fn listed(names: &[String]) -> String {
    const MOST: usize = 40;
    let mut list: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| format!("`{}`", printable(name)))
        .collect();
    match names.len() {
        0 => return "none".to_string(),
        n if n > MOST => list.push(format!("and {} more", n - MOST)),
        _ => {}
    }
    list.join(", ")
}

/// A name from a file, without control characters and cut if it is too long.
fn printable(name: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = name
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

/// An error while reading. Those of the system have its number; others are a decoder's about its
/// input.
pub(super) fn read_error(origin: &Origin, packed: Option<Format>, reason: io::Error) -> LoadError {
    let origin = origin.clone();
    match packed {
        Some(format) if reason.raw_os_error().is_none() => {
            LoadErrorKind::Damaged { origin, format }.into()
        }
        _ => LoadErrorKind::Unreadable {
            origin,
            reason: reason.to_string(),
        }
        .into(),
    }
}

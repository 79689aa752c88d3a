//! Which field of the data holds which column.

use super::error::{LoadError, LoadErrorKind, Origin};
use crate::model::RecordColumn;
use crate::syntax::did_you_mean;
use std::borrow::Cow;

/// A header as the model names its elements: `m.2.1` for `m[2,1]`.
pub(in crate::privacy) fn dotted(header: &str) -> Cow<'_, str> {
    let indices = header
        .strip_suffix(']')
        .and_then(|open| open.split_once('['));
    match indices {
        Some((name, list)) if list.split(',').all(is_index) => {
            let indices: Vec<&str> = list.split(',').map(str::trim).collect();
            format!("{}.{}", name.trim_end(), indices.join(".")).into()
        }
        _ => header.into(),
    }
}

fn is_index(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The name in the data of each column.
pub(in crate::privacy) fn header_names<'a>(
    columns: &'a [RecordColumn],
    renames: &'a [(String, String)],
) -> Result<Vec<&'a str>, LoadError> {
    let mut headers: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut renamed = vec![false; columns.len()];
    for (name, header) in renames {
        let Some(c) = columns.iter().position(|column| column.name == *name) else {
            let names = columns.iter().map(|column| &column.name);
            return Err(LoadErrorKind::UnknownRename {
                name: name.clone(),
                suggestion: did_you_mean(name, names).map(str::to_string),
            }
            .into());
        };
        if std::mem::replace(&mut renamed[c], true) {
            return Err(LoadErrorKind::RepeatedRename { name: name.clone() }.into());
        }
        headers[c] = header.trim();
    }
    Ok(headers)
}

/// The names in the first line, without white space around them.
pub(super) fn present_names<'a>(
    origin: &Origin,
    fields: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<String>, LoadError> {
    fields
        .map(|field| match std::str::from_utf8(field).map(str::trim) {
            // UTF-16 without a byte order mark and binary files contain NULs.
            Ok(name) if !name.contains('\0') => Ok(name.to_owned()),
            _ => Err(LoadErrorKind::NotUtf8(origin.clone()).into()),
        })
        .collect()
}

/// The field of each column that the model uses. The first `doubtful` names are
/// from a line that may be a record.
pub(super) fn find_columns(
    origin: &Origin,
    columns: &[RecordColumn],
    headers: &[&str],
    present: &[&str],
    doubtful: usize,
) -> Result<Vec<Option<usize>>, LoadError> {
    let mut fields = vec![None; columns.len()];
    let mut absent = None;
    for (c, column) in columns.iter().enumerate().filter(|(_, column)| column.used) {
        // A name given with `--columns` is taken literally.
        let plain = headers[c] == column.name;
        fields[c] = find(origin, headers[c], present, |name| {
            name == headers[c] || plain && dotted(name) == headers[c]
        })?;
        if fields[c].is_none() && absent.is_none() {
            absent = Some(c);
        }
    }
    let Some(c) = absent else {
        return Ok(fields);
    };
    let column = &columns[c];
    let is_header = is_header(present, &fields, doubtful);
    Err(not_found(
        origin,
        headers[c],
        present,
        is_header,
        |suggestion, present| LoadErrorKind::MissingColumn {
            origin: origin.clone(),
            column: column.name.clone(),
            variable: column.variable.clone(),
            header: headers[c].to_string(),
            suggestion,
            present,
        },
    ))
}

/// The field that says to which unit a row belongs.
pub(super) fn find_unit(
    origin: &Origin,
    unit: &str,
    present: &[&str],
    fields: &[Option<usize>],
    doubtful: usize,
) -> Result<usize, LoadError> {
    let unit = unit.trim();
    if let Some(field) = find(origin, unit, present, |name| name == unit)? {
        return Ok(field);
    }
    let is_header = is_header(present, fields, doubtful);
    Err(not_found(
        origin,
        unit,
        present,
        is_header,
        |suggestion, present| LoadErrorKind::MissingUnit {
            origin: origin.clone(),
            header: unit.to_string(),
            suggestion,
            present,
        },
    ))
}

fn find(
    origin: &Origin,
    header: &str,
    present: &[&str],
    is_named: impl Fn(&str) -> bool,
) -> Result<Option<usize>, LoadError> {
    let mut named = (0..present.len()).filter(|&f| is_named(present[f]));
    let first = named.next();
    if named.next().is_some() {
        return Err(LoadErrorKind::DuplicateColumn {
            origin: origin.clone(),
            header: header.to_string(),
        }
        .into());
    }
    Ok(first)
}

/// Whether a first line is recognisably a header: it names an expected column, and contains no
/// numbers.
fn is_header(present: &[&str], fields: &[Option<usize>], doubtful: usize) -> bool {
    let is_found = fields.iter().flatten().any(|&field| field < doubtful);
    doubtful == 0 || is_found && !has_numbers(&present[..doubtful])
}

fn has_numbers(present: &[&str]) -> bool {
    present.iter().any(|name| name.parse::<f64>().is_ok())
}

/// The error for a missing column.
///
/// # Privacy
///
/// Where the header line was forgotten, the first line is a record. So its contents are shown only
/// if they are recognisably a header.
fn not_found(
    origin: &Origin,
    header: &str,
    present: &[&str],
    is_header: bool,
    named: impl FnOnce(Option<String>, Vec<String>) -> LoadErrorKind,
) -> LoadError {
    if is_header {
        let suggestion = did_you_mean(header, present.iter().copied()).map(str::to_string);
        let present = present.iter().map(|name| name.to_string()).collect();
        return named(suggestion, present).into();
    }
    let separator = match present {
        [only] => only.chars().find(|c| [';', '\t', '|'].contains(c)),
        _ => None,
    };
    LoadErrorKind::NoHeader {
        origin: origin.clone(),
        column: header.to_string(),
        count: present.len(),
        has_numbers: has_numbers(present),
        separator,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_another_way_to_write_an_element() {
        for (header, name) in [
            ("x", "x"),
            ("x.1", "x.1"),
            ("x[1]", "x.1"),
            ("m[2,1]", "m.2.1"),
            ("m[ 2 , 1 ]", "m.2.1"),
            ("x []", "x []"),
            ("x[a]", "x[a]"),
            ("x[1][2]", "x[1][2]"),
            ("x[1", "x[1"),
            ("[1]", ".1"),
        ] {
            assert_eq!(dotted(header), name);
        }
    }
}

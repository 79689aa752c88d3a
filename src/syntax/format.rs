//! The formatter: a program in its canonical form.
//!
//! `source` supplies the words and marks with the comments between them, `layout` and `expression`
//! walk the tree and mark where lines may break, in the documents of `document`, and `print` breaks
//! them where necessary. Words and marks are those of the source, so numbers, texts and brackets
//! stay as written.

mod document;
mod expression;
mod layout;
mod print;
mod source;

use super::diagnostic::Diagnostic;
use super::parse::{LARGEST, parse};
use super::tree::Span;
use layout::Layout;
use source::{Comment, Source};

/// The largest width of a line, in characters. Comments and words that cannot be broken may be
/// longer.
pub const LINE_WIDTH: usize = 100;

/// The program as `dpm fmt` writes it; or its errors, since a program that cannot be read cannot be
/// formatted.
///
/// The result means the same: its tree differs from that of `source` only in places, and all
/// comments are present in their order. Formatting it again changes nothing.
///
/// # Errors
///
/// All diagnostics of [`parse`](super::parse()), if there are any.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse(source);
    let program = match parsed.program {
        Some(program) if parsed.diagnostics.is_empty() => program,
        _ => return Err(parsed.diagnostics),
    };
    let read = Source::read(source);
    let Some(document) = Layout::new(&read).program(&program) else {
        return Err(vec![lost(source)]);
    };
    let mut text = print::print(&document, LINE_WIDTH);
    if !same_words(&read, &Source::read(&text)) {
        return Err(vec![lost(source)]);
    }
    if text.len() > LARGEST {
        // A program nested as deeply as allowed throughout would be mostly indentation.
        return Err(vec![too_large(source, text.len())]);
    }
    if source.starts_with('\u{FEFF}') {
        text.insert(0, '\u{FEFF}');
    }
    // The line ending of the first line is used for the whole file.
    let windows = source
        .find('\n')
        .is_some_and(|end| source[..end].ends_with('\r'));
    Ok(if windows {
        text.replace('\n', "\r\n")
    } else {
        text
    })
}

/// A formatter must never damage a program, so its result is checked.
fn same_words(before: &Source<'_>, after: &Source<'_>) -> bool {
    let comments = |source: &Source<'_>| -> Vec<String> {
        source
            .places
            .iter()
            .flat_map(|place| place.comments.iter().map(Comment::words))
            .collect()
    };
    let words = |source: &Source<'_>| -> Vec<String> {
        let tokens = source.tokens.iter();
        tokens.map(|token| token.text.to_owned()).collect()
    };
    words(before) == words(after) && comments(before) == comments(after)
}

fn too_large(source: &str, size: usize) -> Diagnostic {
    Diagnostic::error(
        "S008",
        Span::new(0, source.floor_char_boundary(1)),
        format!(
            "formatted, this program would have {size} bytes, and a program may have {LARGEST}"
        ),
    )
    .label("nested too deeply for its length")
    .help("give names to inner parts, in variables or functions of their own")
}

fn lost(source: &str) -> Diagnostic {
    Diagnostic::error(
        "S000",
        Span::new(0, source.len()),
        "dpm cannot format this program without changing it",
    )
    .label("this is a mistake in dpm")
    .help("please report it with the file, which is left as it was")
}

#[cfg(test)]
mod tests;

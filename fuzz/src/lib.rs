//! Properties that must hold for any input, one function for each reader of
//! files that others have written. The targets for libFuzzer are in
//! `fuzz_targets/`; `src/bin/mutate.rs` runs the same without it.
//!
//! The crate itself would bring a tensor library along, which takes minutes to
//! build and reads nothing; so its rooms are taken in one by one.

#[allow(dead_code, unused_imports)]
#[path = "../../src/check/mod.rs"]
mod check;
#[allow(dead_code, unused_imports)]
#[path = "../../src/distribution/mod.rs"]
mod distribution;
#[allow(dead_code, unused_imports)]
#[path = "../../src/function/mod.rs"]
mod function;
#[allow(dead_code, unused_imports)]
#[path = "../../src/linear/mod.rs"]
mod linear;
#[allow(dead_code, unused_imports)]
#[path = "../../src/model/mod.rs"]
mod model;
#[allow(dead_code, unused_imports)]
#[path = "../../src/syntax/mod.rs"]
mod syntax;

#[allow(dead_code)]
#[path = "../../src/accounting/ledger"]
mod accounting {
    mod part;
    pub use part::Part;
}

#[allow(dead_code, unused_imports)]
#[path = "../../src/privacy"]
mod privacy {
    pub mod load;
    pub mod rows;
    pub mod share;
    pub mod split;
    pub mod store;

    pub fn contents(rows: rows::Rows) -> (Vec<Vec<f64>>, Vec<bool>) {
        (rows.columns(), rows.missing)
    }

    /// Stands for the crate's own, which is in a file that needs the sampler's
    /// rooms: whoever asks for exact values says so.
    #[derive(Clone, Copy)]
    pub struct NotPrivate;
}

/// The language server without its protocol.
#[allow(dead_code)]
#[path = "../../src/lsp"]
mod lsp {
    mod completion;
    mod describe;
    mod document;
    mod names;
    mod outline;
    mod rename;
    mod text;

    use crate::syntax::Span;

    /// Asks all that an editor may ask at a place of a text.
    pub fn ask_everything(source: &str, offset: usize) {
        let document = document::Document::new(source.to_owned());
        let inside = |span: Span| {
            assert!(source.get(span.range()).is_some(), "{span:?}");
            for encoding in [text::Encoding::Utf8, text::Encoding::Utf16] {
                let (line, column) = document.text.position(span.start, encoding);
                let back = document.text.offset(line, column, encoding);
                // Between `\r` and `\n` no editor has a place.
                assert!(back == span.start || source[back..].starts_with("\r\n"));
            }
        };
        if let Some(hover) = describe::hover(&document, offset) {
            inside(hover.span);
        }
        inside(completion::completions(&document, offset).span);
        for occurrence in document.references(offset) {
            inside(occurrence.span);
        }
        document.definitions(offset).into_iter().for_each(inside);
        for block in outline::outline(&document) {
            inside(block.span);
            block.parts.iter().for_each(|part| inside(part.name_span));
        }
        if let Ok(edits) = rename::rename(&document, offset, "another_name") {
            edits.iter().for_each(|(span, _)| inside(*span));
        }
        if let Some((span, _)) = document.formatted() {
            inside(span);
        }
    }
}

use std::io::Write;

use model::RecordColumn;
use privacy::load::{OnBadRows, Reading, read_files};
use syntax::{Diagnostic, Program, Span, format, parse, render};

/// Any text is read, or refused with diagnostics that can be shown.
pub fn parser(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let parsed = parse(&source);
    look_over(&parsed.diagnostics, &source);
    assert!(parsed.program.is_some() || !parsed.diagnostics.is_empty());
}

/// Any program that parses, even in part, is checked; diagnostics can be shown.
pub fn checker(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let parsed = parse(&source);
    let Some(program) = parsed.program else {
        return;
    };
    let result = check::check(&program);
    look_over(&result.diagnostics, &source);
    let failed = result.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(result.checked.is_none(), failed);
}

/// Text that parses is formatted to text that parses to the same tree and is
/// formatted to itself.
pub fn formatter(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let once = match format(&source) {
        Ok(once) => once,
        Err(said) => {
            let parses = parse(&source).diagnostics.is_empty();
            assert!(!parses || said[0].code == "S008", "it parses: {source}");
            return;
        }
    };
    match format(&once) {
        Ok(twice) => assert_eq!(once, twice, "of {source}"),
        Err(said) => panic!("{said:?}\n{once}\nof {source}"),
    }
    let tree = |text: &str| parse(text).program.map(|program| without_places(&program));
    assert_eq!(tree(&source), tree(&once));
}

/// An editor has an answer at any place of any text. The first two bytes choose the place.
pub fn editor(bytes: &[u8]) {
    let Some((place, bytes)) = bytes.split_at_checked(2) else {
        return;
    };
    let source = String::from_utf8_lossy(bytes);
    let place = usize::from(u16::from_le_bytes([place[0], place[1]]));
    // Places past the end are asked about, too.
    lsp::ask_everything(&source, place % (source.len() + 2));
}

fn without_places(program: &Program) -> String {
    let shown = format!("{program:?}");
    let mut rest = shown.as_str();
    let mut kept = String::with_capacity(shown.len());
    while let Some(at) = rest.find("Span {") {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    kept + rest
}

/// Any Parquet or Arrow file is a table, or refused.
#[cfg(feature = "parquet")]
pub fn typed(bytes: &[u8]) {
    let marks: [&[u8]; 3] = [b"PAR1", b"ARROW1", &[0xff; 4]];
    if marks.iter().any(|mark| bytes.starts_with(mark)) {
        csv(&[&[2], bytes].concat());
    }
}

/// Any file is a table of the columns of a model, or refused; with one line more, whose
/// bytes are those before the first line feed, it is the same table with at most one row
/// more. The first byte says what is to be done with bad rows, whether records may span
/// lines, and whether the file is named as gzipped.
pub fn csv(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else {
        return;
    };
    let column = |name: &str, is_int, lower, upper, used| RecordColumn {
        guess: None,
        name: name.to_owned(),
        variable: name.split('.').next().unwrap_or(name).to_owned(),
        is_int,
        lower,
        upper,
        levels: match name {
            "f" => vec!["north".to_owned(), "south, east".to_owned()],
            _ => Vec::new(),
        },
        used,
    };
    let columns = [
        column("x", false, Some(-1.0), Some(1e3), true),
        column("y", true, Some(0.0), Some(1.0), true),
        column("f", true, Some(1.0), Some(2.0), first & 16 != 0),
        column("v.1", false, None, None, true),
        column("v.2", false, None, Some(0.0), first & 1 == 0),
    ];
    let on_bad_rows = match first & 2 {
        0 => OnBadRows::Error,
        _ => OnBadRows::Skip,
    };
    let ending = if first & 4 == 0 { ".csv" } else { ".csv.gz" };
    let renames = match first & 8 {
        0 => vec![],
        _ => vec![("v.1".to_owned(), "x".to_owned())],
    };
    let reading = Reading {
        renames: &renames,
        on_bad_rows,
        unit: (first & 32 != 0).then_some("y"),
        multiline: first & 64 != 0,
        spilling: None,
        ..Reading::default()
    };
    let load = |bytes: &[u8]| {
        let mut file = tempfile::Builder::new()
            .suffix(ending)
            .tempfile()
            .expect("a file to read");
        file.write_all(bytes).expect("a file to read");
        read_files(&[file.path().to_path_buf()], &columns, &reading)
    };
    let loaded = load(bytes);
    if let Err(error) = &loaded {
        assert!(!error.to_string().is_empty());
    }
    // The line goes after the header, where that is one line of a text.
    let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
        return;
    };
    let (hostile, rest) = bytes.split_at(end + 1);
    let Some(header) = rest.iter().position(|&b| b == b'\n') else {
        return;
    };
    let (header, rows) = rest.split_at(header + 1);
    let is_text = header.first().is_some_and(u8::is_ascii_graphic);
    if !is_text || reading.multiline || reading.unit.is_some() {
        return;
    }
    let (Ok(without), Ok(with)) = (load(rest), load(&[header, hostile, rows].concat())) else {
        return;
    };
    let (with, marked) = privacy::contents(with);
    let (without, unmarked) = privacy::contents(without);
    assert_eq!(marked[1..], unmarked);
    for (with, without) in with.iter().zip(without) {
        assert_eq!(with[1..], without);
    }
}

fn look_over(diagnostics: &[Diagnostic], source: &str) {
    let inside = |span: Span| span.start <= span.end && span.end <= source.len();
    for diagnostic in diagnostics {
        assert!(inside(diagnostic.span), "{diagnostic:?}");
        assert!(diagnostic.notes.iter().all(|(span, _)| inside(*span)));
        assert_ne!(diagnostic.code, "S000", "{diagnostic:?}");
        assert!(!diagnostic.message.is_empty());
    }
    let said = render(diagnostics, source, "fuzz.dpm", false);
    assert_eq!(said.is_empty(), diagnostics.is_empty());
}

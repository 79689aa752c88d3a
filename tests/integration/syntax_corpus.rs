//! The corpus: programs that parse, and programs that do not with what is said
//! about them. A new case is a new file.
//!
//! `tests/good/*.dpm` parse without a diagnostic. `tests/bad/syntax/*.dpm` give
//! exactly the text of the `.expected` file beside them; `DPM_BLESS=1` writes
//! these files, to be read before they are committed.

use dpm::testing::syntax::{Parsed, Span, parse, render};

use crate::corpus::{matches_expected, name, programs, read};
use crate::evaluation::Random;

#[test]
fn good_programs_parse() {
    for path in programs("tests/good") {
        let source = read(&path);
        let parsed = parse(&source);
        let said = render(&parsed.diagnostics, &source, &name(&path), false);
        assert!(said.is_empty(), "{said}");
        let program = parsed.program.expect("a program without diagnostics");
        let kinds: Vec<_> = program.blocks.iter().map(|block| block.kind).collect();
        assert!(kinds.is_sorted(), "{}", path.display());
        // The same program with the line ends of Windows.
        let windows = source.replace('\n', "\r\n");
        assert_eq!(parse(&windows).diagnostics, [], "{}", path.display());
    }
}

#[test]
fn bad_programs_are_explained() {
    matches_expected("tests/bad/syntax", |source, name| {
        let parsed = parse(source);
        render(&parsed.diagnostics, source, name, false)
    });
}

/// A mutant that makes the parser panic, or that gives a span outside of the
/// file, or a program without diagnostics that is no program, would be found
/// here: about six thousand of them, always the same.
#[test]
fn mutants_are_read_without_panic() {
    let mut random = Random(20_240_229);
    for path in programs("tests/good")
        .into_iter()
        .chain(programs("tests/bad/syntax"))
    {
        let source = read(&path);
        let words = words(&source);
        for _ in 0..120 {
            let mutant = mutate(&source, &words, &mut random);
            survives(&mutant);
        }
    }
}

#[test]
fn every_prefix_is_read_without_panic() {
    for path in programs("tests/good") {
        let source = read(&path);
        for end in (0..source.len()).step_by(23) {
            if let Some(prefix) = source.get(..end) {
                survives(prefix);
            }
        }
    }
}

#[test]
fn no_nesting_overflows_the_stack() {
    for depth in [50, 99, 1_000, 10_000] {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{", "1", "}"),
            ("f(", "1", ")"),
            ("x[", "1", "]"),
            ("-", "1", ""),
            ("!", "1", ""),
            ("1 ^ ", "1", ""),
            ("a ? b : ", "c", ""),
            ("a ? ", "c", " : b"),
            ("a + ", "c", ""),
            ("a", "", "'"),
        ] {
            let nested = format!("{}{middle}{}", open.repeat(depth), close.repeat(depth));
            survives(&format!("model {{ x = {nested}; }}"));
            survives(&format!("model {{ y ~ normal({nested}, 1); }}"));
            survives(&format!("parameters {{ real<lower={nested}> x; }}"));
            survives(&nested);
        }
        for (open, close) in [
            ("{", "}"),
            ("if (a) ", ";"),
            ("if (a) {} else ", ";"),
            ("if (a) b = 1; else ", ";"),
            ("for (i in 1:2) ", ";"),
            ("while (a) { ", "}"),
            ("model {", "}"),
            ("profile(\"a\") {", "}"),
        ] {
            let nested = format!("{}{}", open.repeat(depth), close.repeat(depth));
            survives(&format!("model {{ {nested} }}"));
        }
    }
}

fn survives(source: &str) {
    let Parsed {
        program,
        diagnostics,
    } = parse(source);
    for diagnostic in &diagnostics {
        let inside = |span: Span| span.start <= span.end && span.end <= source.len();
        assert!(inside(diagnostic.span), "{diagnostic:?} in {source}");
        for (span, _) in &diagnostic.notes {
            assert!(inside(*span), "{diagnostic:?} in {source}");
        }
        assert_ne!(diagnostic.code, "S000", "{diagnostic:?} in {source}");
    }
    assert!(program.is_some() || !diagnostics.is_empty(), "{source}");
    let said = render(&diagnostics, source, "mutant.dpm", false);
    assert_eq!(said.is_empty(), diagnostics.is_empty());
}

fn mutate(source: &str, words: &[Span], random: &mut Random) -> String {
    let mut mutant = source.to_owned();
    for _ in 0..1 + random.below(3) {
        let (a, b) = (random.below(words.len()), random.below(words.len()));
        let text = |span: Span| source.get(span.range()).unwrap_or_default();
        let (first, second) = (words[a], text(words[b]));
        let range = first.start.min(mutant.len())..first.end.min(mutant.len());
        if !mutant.is_char_boundary(range.start) || !mutant.is_char_boundary(range.end) {
            continue;
        }
        match random.below(6) {
            0 => mutant.replace_range(range, ""),
            1 => mutant.insert_str(range.start, text(first)),
            2 => mutant.replace_range(range, second),
            3 => mutant.insert_str(range.start, second),
            4 => {
                let strange = ["é", "\"", "/*", "}", "{", ")", "(", ";", "#", "\t", "\u{0}"];
                mutant.insert_str(range.start, strange[random.below(strange.len())]);
            }
            _ => {
                let mut bytes = mutant.into_bytes();
                let at = random
                    .below(bytes.len().max(1))
                    .min(bytes.len().saturating_sub(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(random.below(256)).unwrap_or(0);
                }
                mutant = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
    }
    mutant
}

/// Runs of letters, runs of blanks, and single marks.
fn words(source: &str) -> Vec<Span> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || c == '_' => 0,
        _ if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut words: Vec<Span> = Vec::new();
    let mut before = 2;
    for (at, c) in source.char_indices() {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(last) if kind(c) == before && before != 2 => last.end = end,
            _ => words.push(Span::new(at, end)),
        }
        before = kind(c);
    }
    words
}

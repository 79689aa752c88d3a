//! The formatter over the whole corpus: programs of tests/good, models and
//! tests/bad that parse, as they are and with comments and line breaks put in
//! everywhere.

use std::fs;
use std::path::{Path, PathBuf};

use dpm::testing::syntax::{LINE_WIDTH, format, parse};

use crate::corpus::{read, root};

#[test]
fn formatted_programs_stay_what_they_are() {
    let mut count = 0;
    for (path, source) in corpus() {
        keeps_all(&source, &path);
        keeps_all(&source.replace('\n', "\r\n"), &path);
        count += 1;
    }
    assert!(count >= 40, "{count} programs");
}

/// The models that users read are in form. (Those of tests/good are written in
/// all the ways that the parser must take.)
#[test]
fn models_are_formatted() {
    let mut paths = Vec::new();
    for folder in ["models", "examples"] {
        collect(&root().join(folder), &mut paths);
    }
    paths.retain(|path| {
        let source = read(path);
        format(&source).as_ref() != Ok(&source)
    });
    assert!(paths.is_empty(), "run `dpm fmt` on {paths:?}");
}

/// A comment may stand between any two words; none is lost, moved past another or
/// put where it swallows code.
#[test]
fn comments_may_stand_anywhere() {
    for (path, source) in corpus() {
        if source.len() > 2_500 {
            continue;
        }
        for (turn, comment) in [
            " /* a */ ",
            " // a\n",
            "\n// a\n",
            "\n/* a */\n",
            " /* a\n * b */ ",
            "\n\n",
            " // a\n // b\n",
            " /* a */ // b\n",
            "\n/* a */ /* b */ ",
        ]
        .into_iter()
        .enumerate()
        {
            // One in every gap, and one in every gap of a kind.
            let all: Vec<usize> = gaps(&source);
            let some = all.iter().copied().skip(turn % 5).step_by(5).collect();
            for places in [all, some] {
                keeps_all(&with(&source, comment, &places), &path);
            }
        }
    }
}

#[test]
fn one_comment_in_each_gap() {
    let source = read(&root().join("tests/good/statements.dpm"));
    let functions = read(&root().join("tests/good/functions.dpm"));
    for source in [source, functions] {
        for comment in [" /* a */ ", " // a\n", "\n// a\n", "\n\n/* a\n b */\n\n"] {
            for place in gaps(&source) {
                keeps_all(&with(&source, comment, &[place]), Path::new("one comment"));
            }
        }
    }
}

/// However narrow or wide the source is written, it comes out the same.
#[test]
fn blanks_do_not_matter() {
    for (path, source) in corpus() {
        if comments(&source).is_empty() {
            let tight = source.split_whitespace().collect::<Vec<_>>().join(" ");
            let once = format(&tight).expect("it parses");
            assert_eq!(format(&once).as_ref(), Ok(&once), "{}", path.display());
            assert_eq!(tree(&source), tree(&once), "{}", path.display());
        }
    }
}

#[test]
fn lines_are_short() {
    for (path, source) in corpus() {
        let formatted = format(&source).expect("it parses");
        for line in formatted.lines() {
            let code = line.split("//").next().unwrap_or(line).trim_end();
            assert!(
                code.chars().count() <= LINE_WIDTH || code.contains('"'),
                "{}: {line}",
                path.display()
            );
            assert_eq!(line.trim_end(), line);
        }
    }
}

/// The tree, the words and the comments stay, and to format again changes nothing.
fn keeps_all(source: &str, path: &Path) {
    let path = path.display();
    let once = format(source).unwrap_or_else(|said| panic!("{path}: {said:?}\n{source}"));
    let same = tree(source) == tree(&once);
    assert!(same, "{path}: another tree\n{source}\n->\n{once}");
    assert_eq!(
        comments(source),
        comments(&once),
        "{path}:\n{source}\n->\n{once}"
    );
    let twice = format(&once).expect("it parses");
    if once != twice {
        let differs = |(a, b): &(&str, &str)| a != b;
        let line = once.lines().zip(twice.lines()).find(differs);
        panic!("{path}, formatted twice: {line:?}\n{once}\nof\n{source}");
    }
}

/// The program without its places.
fn tree(source: &str) -> String {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "{source}");
    let shown = format!("{:?}", parsed.program);
    let mut kept = String::with_capacity(shown.len());
    let mut rest = shown.as_str();
    while let Some(at) = rest.find("Span {") {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The comments, with the blanks at the ends of their lines left out.
fn comments(source: &str) -> Vec<String> {
    pieces(source)
        .into_iter()
        .map(|(start, end)| &source[start..end])
        .filter(|piece| piece.starts_with("//") || piece.starts_with("/*"))
        .map(|comment| {
            let lines: Vec<&str> = comment.lines().map(str::trim).collect();
            lines.join("\n")
        })
        .collect()
}

/// Places between two words or marks.
fn gaps(source: &str) -> Vec<usize> {
    let mut found: Vec<usize> = pieces(source).into_iter().map(|(start, _)| start).collect();
    found.push(source.len());
    found
}

fn with(source: &str, comment: &str, places: &[usize]) -> String {
    let mut text = String::new();
    let mut at = 0;
    for &place in places {
        text += &source[at..place];
        text += comment;
        at = place;
    }
    text + &source[at..]
}

/// Words, numbers, texts, comments and marks, by a reading of its own.
fn pieces(source: &str) -> Vec<(usize, usize)> {
    const LONG_MARKS: [&str; 16] = [
        "%/%", ".*=", "./=", "||", "&&", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", ".*",
        "./", ".^",
    ];
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let digit_follows = rest
            .get(1..)
            .unwrap_or_default()
            .starts_with(|c: char| c.is_ascii_digit());
        let length = if first.is_whitespace() || first == '\u{FEFF}' {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("//") {
            rest.find(['\n', '\r']).unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("comments end") + 2
        } else if first == '"' {
            rest[1..].find('"').expect("texts end") + 2
        } else if first.is_ascii_digit() || first == '.' && digit_follows {
            let mut end = 0;
            for c in rest.chars() {
                let exponent = end > 0 && rest[..end].ends_with(['e', 'E']);
                if !(is_word(c) || c == '.' || exponent && matches!(c, '+' | '-')) {
                    break;
                }
                end += 1;
            }
            end
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            let mark = LONG_MARKS.iter().find(|mark| rest.starts_with(**mark));
            mark.map_or(first.len_utf8(), |mark| mark.len())
        };
        found.push((at, at + length));
        at += length;
    }
    found
}

/// Every program of the repository that parses.
fn corpus() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["tests/good", "models", "examples", "tests/bad"] {
        collect(&root().join(folder), &mut paths);
    }
    paths.sort();
    let programs = paths.into_iter().filter_map(|path| {
        let source = read(&path);
        let is_bad = path.components().any(|part| part.as_os_str() == "bad");
        assert!(
            is_bad || parse(&source).diagnostics.is_empty(),
            "{} does not parse",
            path.display()
        );
        parse(&source)
            .diagnostics
            .is_empty()
            .then_some((path, source))
    });
    programs.collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "dpm") {
            found.push(path);
        }
    }
}

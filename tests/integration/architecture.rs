//! The rules of the house that the compiler does not know: which room and which file may use
//! which, and what may stand in none.
//!
//! Sources are read as text, with comments, strings and test code blanked out.

mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A room uses only rooms to its left.
const ROOMS: [&str; 16] = [
    "linear",
    "syntax",
    "function",
    "distribution",
    "check",
    "formula",
    "model",
    "lsp",
    "density",
    "privacy",
    "sampler",
    "diagnostics",
    "tune",
    "output",
    "analysis",
    "cli",
];

/// Uses nothing of ours.
const ACCOUNTING: &str = "accounting";
const USES_ACCOUNTING: [&str; 7] = [
    "privacy",
    "sampler",
    "diagnostics",
    "tune",
    "output",
    "analysis",
    "cli",
];

#[test]
fn every_arrow_points_one_way() {
    let mut backwards = Vec::new();
    for source in sources() {
        let Some(from) = source.room() else {
            continue; // src/main.rs, src/lib.rs and src/testing.rs: the doors
        };
        for (line, to) in source.rooms_used() {
            if to != from && !allowed(&from, &to) {
                backwards.push(format!("{}:{line}: {from} -> {to}", source.name));
            }
        }
    }
    assert!(
        backwards.is_empty(),
        "these arrows point backwards; the order is {}, and {ACCOUNTING} uses none of them:\n{}",
        ROOMS.join(" -> "),
        backwards.join("\n")
    );
}

// If it failed: readers would go by an order that is not the one that is checked.
#[test]
fn the_page_on_architecture_has_the_same_orders() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.contains(&ROOMS.join(" -> ")));
    let start = page.find("Inside `sampler`, ").expect("the paragraph");
    let paragraph = page[start..].split("\n\n").next().unwrap_or_default();
    let mut rest = paragraph;
    for folder in SAMPLER {
        let name = format!("`{folder}`");
        let (_, after) = rest
            .split_once(&name)
            .unwrap_or_else(|| panic!("{name} is not, or not in its place, in: {paragraph}"));
        rest = after;
    }
}

#[test]
fn every_room_has_its_place_in_the_order() {
    for source in sources() {
        if let Some(room) = source.room() {
            assert!(
                room == ACCOUNTING || ROOMS.contains(&room.as_str()),
                "{}: say in tests/integration/architecture.rs where the new room `{room}` stands",
                source.name
            );
        }
    }
}

/// A folder of `sampler` uses only those before it; the catalogue, `mod.rs`, is on top.
const SAMPLER: [&str; 11] = [
    "random",
    "prior",
    "contract",
    "chain",
    "stochastic",
    "hamiltonian",
    "walks",
    "langevin",
    "laplace",
    "own",
    "reference",
];

// If it failed: chains and plans would know of one sampler, or families of each other's insides.
#[test]
fn samplers_stand_on_what_knows_nothing_of_them() {
    let place = |name: &str| SAMPLER.iter().position(|folder| *folder == name);
    let mut backwards = Vec::new();
    let mut seen = 0;
    for source in sources() {
        let Some(inside) = source.name.strip_prefix("src/sampler/") else {
            continue;
        };
        let folder = inside.split(['/', '.']).next().unwrap_or_default();
        if folder == "mod" {
            continue;
        }
        let own = place(folder).unwrap_or_else(|| panic!("{}: no place in SAMPLER", source.name));
        for used in source.code.split("crate::sampler::").skip(1) {
            let name = words(used).first().copied().unwrap_or_default().to_owned();
            seen += 1;
            if place(&name).is_none_or(|used| used > own) {
                backwards.push(format!("{}: {folder} -> {name}", source.name));
            }
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(
        backwards.is_empty(),
        "these arrows point backwards; the order is {}:\n{}",
        SAMPLER.join(" -> "),
        backwards.join("\n")
    );
}

/// Where files still use each other in a circle: no new ones elsewhere, and none of these that is
/// cut stays on the list.
const CIRCLES: [&str; 3] = ["src/check/", "src/distribution/", "src/function/"];

// If it failed: none of the files in a circle could be read, tested or moved without all others.
#[test]
fn files_of_a_room_use_each_other_in_no_circle() {
    let imports = imports::imports(&sources());
    assert!(imports.len() > 1000, "{}", imports.len());
    let known = |place: &str| CIRCLES.iter().find(|folder| place.starts_with(**folder));
    let mut unknown = Vec::new();
    let mut seen = BTreeSet::new();
    for import in imports::in_circles(&imports) {
        match known(&import.place) {
            Some(folder) => _ = seen.insert(*folder),
            None => unknown.push(format!("{} -> {}", import.place, import.to.join("::"))),
        }
    }
    unknown.dedup();
    assert!(
        unknown.is_empty(),
        "files use each other in a circle: move what two of them need into a third\n{}",
        unknown.join("\n")
    );
    assert_eq!(
        seen,
        BTreeSet::from(CIRCLES),
        "circles were cut: take them off CIRCLES"
    );
}

/// Texts that only the program has: of `dpm new`, `dpm generate` and `dpm synth`.
const OF_THE_PROGRAM: [&str; 3] = [
    "src/formula/design.rs",
    "src/output/generated_csv.rs",
    "src/analysis/synthetic",
];

// If it failed: embedders, and users of Python and R, would be told of flags that they do not have.
#[test]
fn rooms_below_the_program_name_settings_and_no_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_flag = |(at, _): &(usize, &str), line: &str| {
        let after = line[at + 2..].chars().next();
        let before = line[..*at].chars().next_back();
        after.is_some_and(|c| c.is_ascii_lowercase())
            && before.is_some_and(|c| " `(\"".contains(c))
            // Whole commands are the program's wherever they stand.
            && !line[..*at].contains("`dpm ")
    };
    let mut found = Vec::new();
    for source in sources() {
        let program = OF_THE_PROGRAM
            .iter()
            .any(|place| source.name.starts_with(place));
        if program || source.room().is_none_or(|room| room == "cli") {
            continue;
        }
        let text = fs::read_to_string(root.join(&source.name)).expect("a source can be read");
        // A module of tests in the file is its last thing.
        let own = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default()
            .lines();
        for (i, line) in own.enumerate() {
            let line = line.trim_start();
            let is_comment = line.starts_with("//");
            if !is_comment && line.match_indices("--").any(|place| is_flag(&place, line)) {
                found.push(format!("{}:{}: {line}", source.name, i + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "write `step_size`, which the program turns into --step-size:\n{}",
        found.join("\n")
    );
}

// If it failed: a change of one command would change another.
#[test]
fn no_command_is_used_by_another_file() {
    let sources = sources();
    let list = sources
        .iter()
        .find(|source| source.name == "src/cli/mod.rs");
    let list = &list.expect("the list of commands").code;
    let before = list.split("::Arguments").map(|part| words(part));
    let mut commands: Vec<&str> = before.filter_map(|words| words.last().copied()).collect();
    commands.pop(); // what stands after the last one
    assert!(commands.len() > 20, "{commands:?}");
    let mut used: Vec<String> = (imports::imports(&sources).iter())
        .filter(|import| import.to[0] == "cli" && commands.contains(&import.to[1].as_str()))
        .filter(|import| import.from[1] != import.to[1])
        .map(|import| format!("{}: {}", import.place, import.to.join("::")))
        .collect();
    used.dedup();
    assert!(
        used.is_empty(),
        "what several commands need belongs into a file that is none:\n{}",
        used.join("\n")
    );
}

/// An item of a public module counts as used, so the compiler cannot say that it is dead.
#[test]
fn rooms_are_private_and_testing_shows_no_more_than_is_asked_for() {
    const PUBLIC: [&str; 3] = ["accounting", "diagnostics", "testing"];
    let sources = sources();
    let code = |name: &str| {
        let source = sources.iter().find(|source| source.name == name);
        &source.expect("a source").code
    };
    let public = code("src/lib.rs").split("pub mod ").skip(1);
    let public: Vec<&str> = public.map(|rest| words(rest)[0]).collect();
    assert_eq!(public, PUBLIC);

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["tests", "benches", "examples"] {
        rust_files(&root.join(folder), &mut paths);
    }
    let asked: String = paths
        .iter()
        .map(|path| fs::read_to_string(path).expect("a source can be read"))
        .filter(|text| text.contains("dpm::testing::"))
        .collect();
    let asked = words(&asked);
    for item in code("src/testing.rs").split("pub use ").skip(1) {
        let item = item.split(';').next().unwrap_or_default();
        let list = item.rsplit("::").next().unwrap_or_default();
        for name in words(list) {
            assert!(
                asked.contains(&name),
                "src/testing.rs: nobody asks for `{name}`"
            );
        }
    }
}

#[test]
fn the_vault_prints_nothing_and_draws_no_noise_of_others() {
    refuse(
        "src/privacy/",
        &[
            "println!",
            "print!",
            "eprintln!",
            "eprint!",
            "dbg!",
            "rand_distr",
            "StandardNormal",
        ],
    );
}

#[test]
fn nothing_stops_the_program_without_saying_why() {
    refuse(
        "src/",
        &["unsafe", "todo!", "unimplemented!", ".unwrap()", "panic!"],
    );
}

/// Whatever others can ask of the vault has noise in it, or asks for a `NotPrivate`; and the noise
/// is the operating system's, or asks for one too.
#[test]
fn exact_sums_and_known_noise_ask_for_permission() {
    // Of the model and of the terms, nothing of rows.
    const PUBLIC: [&str; 5] = ["new", "unit", "has_units", "model", "density"];
    let mut released = 0;
    for source in sources() {
        let vault = ["src/privacy/vault.rs", "src/privacy/vault/batch.rs"];
        let noise = source.name == "src/privacy/randomness.rs";
        if !vault.contains(&source.name.as_str()) && !noise {
            continue;
        }
        for part in source.code.split("pub fn ").skip(1) {
            let signature = part.split('{').next().unwrap_or_default();
            let name = signature.split(['(', '<']).next().unwrap_or_default();
            let permitted = words(signature).contains(&"NotPrivate");
            if noise {
                let takes_seed = words(signature).contains(&"seed");
                assert!(permitted || !takes_seed, "{}: {name}", source.name);
            } else {
                let noisy = words(signature).contains(&"Noisy");
                released += usize::from(noisy || permitted);
                assert!(
                    noisy || permitted || PUBLIC.contains(&name),
                    "{}: `{name}` gives what is neither noisy nor public",
                    source.name
                );
            }
        }
    }
    assert!(released >= 8, "the vault is elsewhere now");
    let budget = sources()
        .into_iter()
        .find(|source| source.name == "src/accounting/budget.rs");
    let budget = budget.expect("the meter's file").code;
    for part in budget.split("pub fn ").skip(1) {
        let signature = part.split('{').next().unwrap_or_default();
        assert!(
            !signature.contains("Meter") && !signature.contains("-> Self"),
            "whoever makes a meter needs no budget: {signature}"
        );
    }
}

/// Errors can be planted in the library's unit tests, and nowhere else.
#[test]
fn planted_errors_are_compiled_for_tests_alone() {
    refuse("src/", &["planted", "planted_tests", "DPM_PLANTED"]);
    let vault = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/privacy/vault.rs");
    let vault = fs::read_to_string(vault).expect("the vault");
    assert!(
        vault.contains("crate::planted::"),
        "the word is another now"
    );
}

/// Private rows can be neither shown, copied nor written out.
#[test]
fn rows_and_vault_cannot_leave() {
    const TRAITS: [&str; 6] = [
        "Debug",
        "Display",
        "Clone",
        "Copy",
        "Serialize",
        "IntoIterator",
    ];
    for name in ["Rows", "Vault", "PrivateData", "PrivateColumn"] {
        let mut declared = 0;
        for source in sources() {
            for (i, line) in source.code.lines().enumerate() {
                let at = format!("{}:{}", source.name, i + 1);
                let words = words(line);
                if words.windows(2).any(|w| w == ["struct", name]) {
                    declared += 1;
                    let attributes = attributes_above(&source.code, i);
                    for forbidden in TRAITS {
                        assert!(
                            !self::words(&attributes).contains(&forbidden),
                            "{at}: `{name}` must not derive {forbidden}"
                        );
                    }
                }
                if words.windows(2).any(|w| w == ["for", name]) {
                    for forbidden in TRAITS {
                        assert!(
                            !words.contains(&forbidden),
                            "{at}: `{name}` must not implement {forbidden}"
                        );
                    }
                }
            }
        }
        assert_eq!(declared, 1, "`struct {name}` in src, once");
    }
}

fn allowed(from: &str, to: &str) -> bool {
    let place = |room: &str| ROOMS.iter().position(|&r| r == room);
    match (place(from), place(to)) {
        (Some(from), Some(to)) => to < from,
        (Some(_), None) => to == ACCOUNTING && USES_ACCOUNTING.contains(&from),
        (None, _) => false,
    }
}

/// Fails with every place under `folder` where one of these stands in code.
fn refuse(folder: &str, forbidden: &[&str]) {
    let mut found = Vec::new();
    for source in sources() {
        if !source.name.starts_with(folder) {
            continue;
        }
        for (i, line) in source.code.lines().enumerate() {
            for what in forbidden {
                if has_word(line, what) {
                    found.push(format!("{}:{}: {what}", source.name, i + 1));
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "not allowed in {folder} outside tests:\n{}",
        found.join("\n")
    );
}

#[derive(Clone)]
struct Source {
    /// `src/privacy/rows.rs`
    name: String,
    /// The text, with comments, strings and test code as blanks. Lines keep their numbers.
    code: String,
}

impl Source {
    /// `privacy` for `src/privacy/rows.rs` and `src/privacy.rs`.
    fn room(&self) -> Option<String> {
        let path = self.name.strip_prefix("src/")?;
        match path.split_once('/') {
            Some((room, _)) => Some(room.to_string()),
            None => path
                .strip_suffix(".rs")
                .filter(|name| !["lib", "main", "testing"].contains(name))
                .map(str::to_string),
        }
    }

    /// How many `super` lead from this file's module to the root of the crate.
    fn depth(&self) -> usize {
        let path = self.name.trim_start_matches("src/");
        let parts = path.split('/').count();
        if path.ends_with("/mod.rs") {
            parts - 1
        } else {
            parts
        }
    }

    /// Rooms named by `crate::room`, `crate::{room, ..}` and `super::super::room`, with
    /// their lines.
    fn rooms_used(&self) -> Vec<(usize, String)> {
        let mut used = Vec::new();
        let to_root = vec!["super"; self.depth()].join("::") + "::";
        for start in ["crate::", to_root.as_str()] {
            for (at, _) in self.code.match_indices(start) {
                if self.code[..at].ends_with(|c: char| is_word(c) || c == ':') {
                    continue;
                }
                let line = 1 + self.code[..at].matches('\n').count();
                let rest = &self.code[at + start.len()..];
                for name in first_names(rest) {
                    used.push((line, name));
                }
            }
        }
        used
    }
}

/// `a` of `a::b`, and `a`, `c` of `{a::b, c::{d, e}}`.
fn first_names(rest: &str) -> Vec<String> {
    let Some(list) = rest.strip_prefix('{') else {
        return rest
            .split(|c| !is_word(c))
            .take(1)
            .map(str::to_string)
            .collect();
    };
    let mut names = Vec::new();
    let (mut depth, mut fresh) = (1, true);
    for (i, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => fresh = true,
            c if fresh && is_word(c) => {
                names.extend(first_names(&list[i..]));
                fresh = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c| !is_word(c))
        .filter(|w| !w.is_empty())
        .collect()
}

/// Whether `what` stands there and not as a part of a longer name.
fn has_word(line: &str, what: &str) -> bool {
    line.match_indices(what).any(|(at, _)| {
        let starts = !what.starts_with(is_word) || !line[..at].ends_with(is_word);
        let ends = !what.ends_with(is_word) || !line[at + what.len()..].starts_with(is_word);
        starts && ends
    })
}

/// The attributes of the item on line `i`.
fn attributes_above(code: &str, i: usize) -> String {
    let lines: Vec<&str> = code.lines().take(i).collect();
    let own = lines
        .iter()
        .rev()
        .take_while(|line| !line.trim_end().ends_with(['}', ';', '{']));
    own.copied().collect::<Vec<_>>().join(" ")
}

/// All sources that are not tests.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    rust_files(&root.join("src"), &mut paths);
    assert!(paths.len() > 50, "the sources are in src/");
    let mut tests = Vec::new();
    let mut all = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a source can be read");
        let (code, modules) = without_tests(&without_text(&text));
        let folder = match path.file_name().and_then(|n| n.to_str()) {
            Some("mod.rs" | "lib.rs" | "main.rs") => path.with_file_name(""),
            _ => path.with_extension(""),
        };
        tests.extend(modules.iter().map(|m| folder.join(format!("{m}.rs"))));
        all.push((path, code));
    }
    all.into_iter()
        .filter(|(path, _)| !tests.contains(path) && !path.to_string_lossy().ends_with("_tests.rs"))
        .map(|(path, code)| Source {
            name: path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/"),
            code,
        })
        .collect()
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of sources")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Blanks out every item under `#[cfg(test)]`, and gives the names of modules among
/// them that have a file of their own.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut modules = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = MARK.len() + end_of_item(&item[MARK.len()..]);
        let words = words(&item[MARK.len()..end]);
        if item[..end].ends_with(';')
            && let Some(i) = words.iter().position(|&w| w == "mod")
        {
            modules.extend(words.get(i + 1).map(|name| name.to_string()));
        }
        out.extend(item[..end].chars().map(blank));
        rest = &item[end..];
    }
    out.push_str(rest);
    (out, modules)
}

/// Where the first item ends: at a `;` outside of brackets, or with its braces.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0;
    for (i, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return i + 1;
                }
            }
            ';' if depth == 0 => return i + 1,
            _ => {}
        }
    }
    code.len()
}

/// Blanks out comments, strings and characters; everything keeps its place.
fn without_text(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut after_word = false;
    while let Some(c) = rest.chars().next() {
        let length = text_at(rest, after_word).unwrap_or(0);
        if length > 0 {
            out.extend(rest[..length].chars().map(blank));
            rest = &rest[length..];
            after_word = false;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            after_word = is_word(c);
        }
    }
    out
}

fn blank(c: char) -> char {
    if c == '\n' { '\n' } else { ' ' }
}

/// The length of the comment, string or character that starts here.
fn text_at(rest: &str, after_word: bool) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if rest.starts_with('"') {
        return Some(quoted(rest, '"'));
    }
    if !after_word {
        let raw = rest.trim_start_matches('b');
        if let Some(hashed) = raw.strip_prefix('r') {
            let text = hashed.trim_start_matches('#');
            let hashes = &hashed[..hashed.len() - text.len()];
            if let Some(inside) = text.strip_prefix('"') {
                let close = format!("\"{hashes}");
                let start = rest.len() - inside.len();
                let end = inside
                    .find(&close)
                    .map_or(inside.len(), |i| i + close.len());
                return Some(start + end);
            }
        }
    }
    // A character, not a lifetime.
    let mut chars = rest.strip_prefix('\'')?.chars();
    match (chars.next()?, chars.next()?) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (c, '\'') => Some(2 + c.len_utf8()),
        _ => None,
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < rest.len() {
        if rest[i..].starts_with("/*") {
            depth += 1;
            i += 2;
        } else if rest[i..].starts_with("*/") {
            depth -= 1;
            i += 2;
            if depth == 0 {
                return i;
            }
        } else {
            i += rest[i..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return i + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// The reader above is itself easily wrong, and would then find nothing.
#[test]
fn the_reader_of_sources_sees_code_and_no_text() {
    let source = r##"
use crate::model::{A, B}; // crate::cli
/* panic!("x") /* nested */ todo!() */
use crate::{check::C, density::{D, E}};
const Q: char = '"'; const S: &str = "panic!( \" unsafe"; fn f<'a>(x: &'a str) {}
const R: &str = r#"todo!() " crate::cli"#; fn g() { y.unwrap(); y.unwrap_or(1); }
#[cfg(test)]
#[path = "x_tests.rs"]
mod tests;
#[cfg(test)]
mod inside { const T: &str = "}"; fn h() { panic!("{}", '}') } }
fn last() { super::super::output::write(); super::own::read(); }
"##;
    let (code, modules) = without_tests(&without_text(source));
    assert_eq!(modules, ["tests"]);
    assert_eq!(code.lines().count(), source.lines().count());
    for hidden in ["panic!", "todo!", "unsafe", "cli"] {
        assert!(!has_word(&code, hidden), "{hidden} in {code}");
    }
    assert!(has_word(&code, ".unwrap()"));
    let source = Source {
        name: "src/privacy/rows.rs".into(),
        code,
    };
    let used: Vec<_> = source.rooms_used();
    let expected = [(2, "model"), (4, "check"), (4, "density"), (12, "output")];
    assert_eq!(used, expected.map(|(l, r)| (l, r.to_string())));
    assert!(allowed("privacy", "model") && !allowed("privacy", "output"));
    assert!(!allowed("syntax", "accounting") && !allowed("accounting", "syntax"));
}

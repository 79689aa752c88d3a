//! The editor's grammar says what the language's grammar says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dpm::testing::distribution::FAMILIES;
use dpm::testing::syntax::{BaseType, BlockKind, LINE_WIDTH};
use serde_json::Value;

const GRAMMAR: &str = "editors/vscode/syntaxes/dpm.tmLanguage.json";

/// Words that are special in places only, and so are not reserved.
const IN_PLACES: [&str; 9] = [
    "lower",
    "upper",
    "offset",
    "multiplier",
    "transformed",
    "generated",
    "quantities",
    "T",
    "dpm",
];

/// Ends of the names of functions that belong to distributions.
const ENDINGS: [&str; 8] = [
    "lpdf", "lpmf", "lupdf", "lupmf", "lcdf", "lccdf", "cdf", "rng",
];

#[test]
fn every_reserved_word_has_a_colour_and_nothing_else_has() {
    let language = read("grammar/dpm.pest");
    let (_, rest) = language
        .split_once("\nreserved = _{")
        .expect("the rule is there");
    let (body, _) = rest.split_once('}').expect("and ends");
    let reserved: BTreeSet<&str> = body.split('"').skip(1).step_by(2).collect();
    let listed = words(&json(GRAMMAR));
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let missing: Vec<_> = reserved.difference(&listed).collect();
    assert!(missing.is_empty(), "no colour for {missing:?}");
    let more: Vec<_> = listed
        .difference(&reserved)
        .filter(|word| !IN_PLACES.contains(word) && !ENDINGS.contains(word))
        .collect();
    assert!(more.is_empty(), "coloured, but not reserved: {more:?}");
}

#[test]
fn types_and_blocks_are_coloured_as_such() {
    let grammar = json(GRAMMAR);
    let types: BTreeSet<String> = words(&grammar["repository"]["words"]["patterns"][0]);
    let known = BaseType::ALL.map(BaseType::keyword);
    let known: BTreeSet<String> = known
        .iter()
        .chain(&["array", "void"])
        .map(|s| s.to_string())
        .collect();
    assert_eq!(types, known);
    let blocks = words(&grammar["repository"]["blocks"]);
    for kind in BlockKind::ALL {
        for word in kind.keyword().split(' ') {
            assert!(blocks.contains(word), "no colour for the block `{word}`");
        }
    }
}

/// A new distribution or function needs no change here: they are known by where
/// they stand.
#[test]
fn distributions_and_functions_are_known_by_their_place() {
    let text = read(GRAMMAR);
    let families = FAMILIES.iter();
    for name in families
        .map(|family| family.name())
        .chain(dpm::testing::function::names())
    {
        let quoted = [
            format!("|{name}|"),
            format!("({name}|"),
            format!("|{name})"),
        ];
        assert!(
            !quoted.iter().any(|q| text.contains(q)),
            "{name} is listed in {GRAMMAR}"
        );
    }
    let grammar = json(GRAMMAR);
    let pattern = &grammar["repository"]["sampling"]["patterns"][0];
    assert_eq!(pattern["match"], "(~)\\s*([A-Za-z]\\w*)");
    assert_eq!(
        pattern["captures"]["2"]["name"],
        "support.function.distribution.dpm"
    );
}

#[test]
fn every_rule_is_there_and_named() {
    let grammar = json(GRAMMAR);
    let repository = grammar["repository"].as_object().expect("rules");
    let included: BTreeSet<&str> = grammar["patterns"]
        .as_array()
        .expect("patterns")
        .iter()
        .filter_map(|pattern| pattern["include"].as_str()?.strip_prefix('#'))
        .collect();
    let rules: BTreeSet<&str> = repository.keys().map(String::as_str).collect();
    assert_eq!(included, rules);
    for (rule, content) in repository {
        for pattern in content["patterns"].as_array().expect("patterns") {
            let names = pattern.get("name").or_else(|| pattern.get("captures"));
            assert!(names.is_some(), "{rule}: {pattern}");
            let ends = pattern.to_string();
            assert!(ends.contains(".dpm\""), "{rule}: {pattern}");
        }
    }
}

#[test]
fn the_extension_names_files_that_are_there() {
    let folder = "editors/vscode";
    let manifest = json(&format!("{folder}/package.json"));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    let language = &manifest["contributes"]["languages"][0];
    let grammar = &manifest["contributes"]["grammars"][0];
    assert_eq!(language["extensions"][0], ".dpm");
    assert_eq!(language["id"], grammar["language"]);
    assert_eq!(grammar["scopeName"], json(GRAMMAR)["scopeName"]);
    for path in [&language["configuration"], &grammar["path"]] {
        let path = path.as_str().expect("a path").trim_start_matches("./");
        json(&format!("{folder}/{path}"));
    }
    let main = manifest["main"].as_str().expect("a path");
    let script = read(&format!("{folder}/{}", main.trim_start_matches("./")));
    // What it starts, and the setting that says where that is.
    assert!(script.contains("args: [\"lsp\"]") && script.contains("get(\"path\")"));
    let settings = &manifest["contributes"]["configuration"]["properties"];
    assert_eq!(settings["dpm.path"]["default"], "dpm");
    let ruler = &manifest["contributes"]["configurationDefaults"]["[dpm]"]["editor.rulers"][0];
    assert_eq!(*ruler, LINE_WIDTH);
}

/// The words of all patterns: what stands between word boundaries and bars.
fn words(grammar: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    match grammar {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("match" | "begin" | "end", Value::String(pattern)) => {
                        found.extend(words_of(pattern));
                    }
                    _ => found.extend(words(value)),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| found.extend(words(value))),
        _ => {}
    }
    found
}

fn words_of(pattern: &str) -> Vec<String> {
    // Classes and escapes are no words, and neither is what a definition follows.
    let mut plain = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => drop(rest.next()),
            '[' => while rest.next().is_some_and(|c| c != ']') {},
            _ => {
                plain.push(c);
                continue;
            }
        }
        plain.push(' ');
    }
    plain
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.len() > 1 && !word.starts_with('_') || *word == "T")
        .map(str::to_owned)
        .collect()
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

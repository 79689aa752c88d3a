//! Which file of `src/` uses which, by the paths in their text.

use std::collections::{BTreeSet, HashMap};

use super::{Source, is_word};

/// `privacy::rows` for `src/privacy/rows.rs`, and `privacy` for `src/privacy/mod.rs`.
pub type Module = Vec<String>;

/// A file of a room uses another one of that room.
#[derive(Debug, Clone)]
pub struct Import {
    /// The file, and the line.
    pub place: String,
    pub from: Module,
    pub to: Module,
}

/// What a file names.
struct Named {
    line: usize,
    path: Vec<String>,
    /// The name under which an import makes it known here.
    known_as: Option<String>,
}

/// The imports between the files of each room, followed through re-exports to the file that has the
/// item. A file and those in its own folder are one thing, whose parts may use each other.
pub fn imports(sources: &[Source]) -> Vec<Import> {
    let modules: Vec<Module> = sources.iter().map(module_of).collect();
    let known: BTreeSet<&Module> = modules.iter().collect();
    let mut named = Vec::new();
    let mut exports: HashMap<(&[String], String), Vec<String>> = HashMap::new();
    for (source, module) in sources.iter().zip(&modules) {
        for mut one in names_in(&source.code) {
            let Some(path) = absolute(&one.path, module, &known) else {
                continue;
            };
            one.path = path;
            if let Some(name) = &one.known_as {
                exports.insert((module, name.clone()), one.path.clone());
            }
            named.push((source, module, one));
        }
    }
    let home = |path: &[String]| -> Option<Module> {
        let mut path = path.to_vec();
        for _ in 0..8 {
            let ends = (1..=path.len()).rev();
            let end = ends
                .into_iter()
                .find(|&n| known.contains(&path[..n].to_vec()))?;
            let (module, rest) = path.split_at(end);
            let next = (rest.first()).and_then(|name| exports.get(&(module, name.clone())));
            match next {
                Some(next) => path = [next, &rest[1..]].concat(),
                None => return Some(module.to_vec()),
            }
        }
        None
    };
    let mut found = Vec::new();
    for (source, from, one) in named {
        let Some(to) = home(&one.path) else {
            continue;
        };
        if from.first() == to.first() && !from.starts_with(&to) && !to.starts_with(from) {
            found.push(Import {
                place: format!("{}:{}", source.name, one.line),
                from: from.clone(),
                to,
            });
        }
    }
    found
}

/// The imports by which files use each other in a circle, and those between two circles.
pub fn in_circles(imports: &[Import]) -> Vec<&Import> {
    let mut left: Vec<&Import> = imports.iter().collect();
    loop {
        let users: BTreeSet<&Module> = left.iter().map(|i| &i.from).collect();
        let used: BTreeSet<&Module> = left.iter().map(|i| &i.to).collect();
        let before = left.len();
        left.retain(|i| users.contains(&i.to) && used.contains(&i.from));
        if left.len() == before {
            return left;
        }
    }
}

fn module_of(source: &Source) -> Module {
    let path = source.name.trim_start_matches("src/");
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// The path from the root of the crate; `None` for what is of another crate, or a name that an
/// import has made known.
fn absolute(path: &[String], module: &Module, known: &BTreeSet<&Module>) -> Option<Vec<String>> {
    let up = path.iter().take_while(|part| *part == "super").count();
    if up > 0 {
        let above = module.len().checked_sub(up)?;
        return Some([&module[..above], &path[up..]].concat());
    }
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        child => {
            let child = [module.as_slice(), &[child.to_owned()]].concat();
            known.contains(&child).then(|| [module, path].concat())
        }
    }
}

/// All paths in a text: those of imports, and those that stand elsewhere.
fn names_in(code: &str) -> Vec<Named> {
    let mut named = Vec::new();
    let (mut at, mut line) = (0, 1);
    let mut after = ' ';
    while let Some(c) = code[at..].chars().next() {
        let rest = &code[at..];
        let starts = is_word(c) && !is_word(after) && after != ':';
        let mut length = c.len_utf8();
        if starts && rest.starts_with("use ") {
            length = rest.find(';').unwrap_or(rest.len());
            leaves(&rest["use ".len()..length], &[], &mut |path, name| {
                named.push(Named {
                    line,
                    path,
                    known_as: Some(name),
                });
            });
        } else if starts {
            let path = path_at(rest);
            length = path.len();
            if path.contains("::") {
                named.push(Named {
                    line,
                    path: path.split("::").map(str::to_owned).collect(),
                    known_as: None,
                });
            }
        }
        line += code[at..at + length].matches('\n').count();
        after = code[..at + length].chars().next_back().unwrap_or(' ');
        at += length;
    }
    named
}

/// `a::b` of `a::b::<C>(d)`.
fn path_at(text: &str) -> &str {
    let mut end = 0;
    loop {
        end += text[end..]
            .find(|c| !is_word(c))
            .unwrap_or(text.len() - end);
        match text[end..].strip_prefix("::") {
            Some(next) if next.starts_with(is_word) => end += 2,
            _ => return &text[..end],
        }
    }
}

/// The paths of an import, and the names that they get: `a::b`, `a::c` as `d` of
/// `a::{b, c as d}`.
fn leaves(tree: &str, before: &[String], each: &mut impl FnMut(Vec<String>, String)) {
    let (path, list) = match tree.split_once('{') {
        Some((path, list)) => (path, list.rsplit_once('}').map(|(list, _)| list)),
        None => (tree, None),
    };
    let (path, name) = path.split_once(" as ").unwrap_or((path, ""));
    let parts = path
        .split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut path = before.to_vec();
    path.extend(parts.map(str::to_owned));
    let Some(list) = list else {
        if path.len() > 1 {
            path.pop_if(|last| last == "self");
        }
        let own = path.last().cloned().unwrap_or_default();
        let name = if name.is_empty() {
            own
        } else {
            name.trim().to_owned()
        };
        return each(path, name);
    };
    let mut depth = 0;
    let commas = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    for branch in list
        .split(commas)
        .filter(|branch| !branch.trim().is_empty())
    {
        leaves(branch, &path, each);
    }
}

/// The reader above is itself easily wrong, and would then find nothing.
#[test]
fn imports_are_followed_to_the_file_that_has_the_item() {
    let source = |name: &str, code: &str| Source {
        name: name.to_owned(),
        code: code.to_owned(),
    };
    let sources = [
        source(
            "src/a/mod.rs",
            "pub use one::{One, deep::{Deep, Low as Under}};\nmod one;",
        ),
        source(
            "src/a/one.rs",
            "mod deep; use super::two::Two;\nfn f() { super::three::g::<X>(1) }",
        ),
        source(
            "src/a/one/deep.rs",
            "use super::One; use std::fmt::{self, Write};",
        ),
        source(
            "src/a/two.rs",
            "use crate::a::{self,\n Under};\nuse crate::b::B;",
        ),
        source(
            "src/a/three.rs",
            "fn g() { use_of(super::super::b::B); reuse crate::a::two::Z }",
        ),
        source("src/b.rs", "use crate::a::One;"),
    ];
    let found = imports(&sources);
    let shown: Vec<String> = (found.iter())
        .map(|i| format!("{} {}", i.place, i.to.join("::")))
        .collect();
    assert_eq!(
        shown,
        [
            "src/a/one.rs:1 a::two",
            "src/a/one.rs:2 a::three",
            "src/a/two.rs:1 a::one::deep",
            "src/a/three.rs:1 a::two",
        ]
    );
    assert!(in_circles(&found).is_empty());
    let with_circle = [
        &sources[..],
        &[source("src/a/four.rs", "use super::three::g;")],
    ]
    .concat();
    let mut found = imports(&with_circle);
    found.extend(imports(&[
        source("src/a/two.rs", "use super::four::F;"),
        source("src/a/four.rs", ""),
    ]));
    let circle: Vec<_> = in_circles(&found).iter().map(|i| i.to.join("::")).collect();
    assert_eq!(circle, ["a::two", "a::three", "a::four"]);
}

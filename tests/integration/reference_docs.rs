//! The lists of the language reference are written from those in the code:
//! `docs/functions.md` and `docs/distributions.md`. `DPM_BLESS=1` writes them.

use std::fmt::Write;
use std::fs;

use dpm::testing::distribution::{FAMILIES, MOST_MASSES, signatures_in_words};
use dpm::testing::function::{Builtin, Function, functions, overloads, synonyms};

use crate::corpus::root;

#[test]
fn functions_are_documented() {
    is_written("docs/functions.md", &functions_page());
}

#[test]
fn distributions_are_documented() {
    is_written("docs/distributions.md", &distributions_page());
}

fn is_written(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("DPM_BLESS").is_some() {
        fs::write(&file, expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let difference = expected
        .lines()
        .zip(found.lines().chain(std::iter::repeat("")))
        .find(|(a, b)| a != b);
    assert!(
        found == expected,
        "{path} is out of date; DPM_BLESS=1 writes it. First difference: {difference:?}"
    );
}

fn functions_page() -> String {
    let mut page = String::from(
        "# Built-in functions

Written from the list in the code (`tests/integration/reference_docs.rs`); names and meanings
are Stan's.

`T` is any type, the same wherever it stands in a line (a function of one number
gives reals for ints); `reals` are numbers and containers of them, applied element by element, where all containers of a call have
one type and the same sizes. An `int` may stand for a `real`. An argument marked
*constant* must be known before sampling: a literal, or made of `constants`. All
functions may be used at every stage, with parameters and record columns, unless
the line says otherwise.

",
    );
    let mut categories: Vec<&str> = Vec::new();
    for f in functions() {
        if !categories.contains(&f.category) {
            categories.push(f.category);
        }
    }
    for category in &categories {
        let anchor: String = category
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ' ')
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let _ = writeln!(page, "- [{category}](#{anchor})");
    }
    for category in categories {
        let _ = writeln!(page, "\n## {category}\n");
        let listed: Vec<&Function> = functions()
            .iter()
            .filter(|f| f.category == category && !is_synonym(f))
            .collect();
        // Functions of one number all have the same signature.
        let table = listed.iter().all(|f| {
            matches!(f.builtin, Builtin::Unary(_) | Builtin::Constant(_)) || f.signatures.len() == 1
        });
        if table {
            page.push_str("| signature | value |\n|---|---|\n");
            for f in listed {
                let _ = writeln!(
                    page,
                    "| `{}` | {} |",
                    f.signatures_in_words().join("`<br>`"),
                    f.meaning().replace('|', "\\|")
                );
            }
        } else {
            for f in listed {
                let _ = writeln!(page, "**`{}`**: {}\n", f.name, f.meaning());
                for line in f.signatures_in_words() {
                    let _ = writeln!(page, "- `{line}`");
                }
                page.push('\n');
            }
            page.truncate(page.trim_end().len());
            page.push('\n');
        }
    }
    page
}

fn distributions_page() -> String {
    let mut page = String::from(
        "# Distributions

Written from the list in the code (`tests/integration/reference_docs.rs`); names, arguments and
meanings are Stan's.

`y ~ name(arguments);` adds the log density of `y`, as does
`target += name_lpdf(y | arguments);` (`_lpmf` where `y` is an int). Wherever `real`
or `int` stands, a container may, for as many statements; a `row_vector` of
predictors may be a matrix with a row for each. Outside the support the log density
is minus infinity; where an argument is outside its domain it is not a number.
`name_rng(arguments)` draws, in `generated quantities`.

`name_lcdf(y | arguments)` is the log probability of at most `y`, `name_lccdf` that of
more, `name_cdf` the former itself. Families that have them may be truncated:
`y ~ name(arguments) T[a, b];`, either end left out, both included. Probabilities of
counts such as `poisson` are sums over counts: their ends (and the `y` of `_lcdf`)
must be known before sampling, and be `T[1, ]`, or between them at most MOST counts.

| distribution | y | log density or mass |
|---|---|---|
",
    );
    page = page.replace("MOST", &MOST_MASSES.to_string());
    for family in FAMILIES {
        let _ = writeln!(
            page,
            "| [`{}`](#{}) | {} | {} |",
            family.name(),
            family.name(),
            family.support_in_words().replace('|', "\\|"),
            family.documentation().replace('|', "\\|")
        );
    }
    for (index, family) in FAMILIES.iter().enumerate() {
        let name = family.name();
        let _ = writeln!(page, "\n## {name}\n\n{}\n", family.documentation());
        for line in signatures_in_words(index) {
            let _ = writeln!(page, "- `{line}`");
        }
        page.push('\n');
        let _ = writeln!(page, "Where {}.", family.domains_in_words());
    }
    page
}

fn is_synonym(f: &Function) -> bool {
    synonyms().iter().any(|(synonym, _)| *synonym == f.name)
}

/// Every function that the checker would resolve is on the page.
#[test]
fn no_function_is_left_out() {
    let page = functions_page();
    for f in functions() {
        assert!(overloads(f.name).count() > 0);
        assert!(page.contains(&format!("{}(", f.name)) || page.contains(&format!("`{}`", f.name)));
    }
}

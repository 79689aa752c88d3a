//! Another name for a variable or a function.

use super::document::Document;
use super::names::{Occurrence, split_ending};
use crate::check::examine;
use crate::syntax::{Diagnostic, Span, is_name};

/// The name at a place, if it can have another; or why it cannot.
pub(super) fn renamed(document: &Document, offset: usize) -> Result<Occurrence, String> {
    let Some(found) = document.names.at(offset) else {
        return Err(match document.function_at(offset) {
            Some(_) => "this is not declared in the program, and cannot have another name".into(),
            None => "there is no name of the program here".into(),
        });
    };
    match &document.examined.program {
        Some(program) if program.whole => Ok(found),
        _ => Err(
            "a part of the program cannot be read, and may hold the name: correct it first".into(),
        ),
    }
}

/// The places to change and what to write there; or why the name cannot be that.
///
/// The parts of a density's name that come after its stem stay: with `f_lpdf`, `y ~ f(...)` changes.
pub(super) fn rename(
    document: &Document,
    offset: usize,
    name: &str,
) -> Result<Vec<(Span, String)>, String> {
    let found = renamed(document, offset)?;
    if !is_name(name) {
        return Err(format!(
            "`{name}` is not a name: names are letters, digits and `_`, begin with a letter, and are not words of the language"
        ));
    }
    let names = &document.names;
    let is_function = names.symbols[found.symbol].role.is_none();
    let source = document.source();
    let (_, ending) = split_ending(&source[found.span.range()]);
    let (stem, new_ending) = if is_function {
        split_ending(name)
    } else {
        (name, "")
    };
    if is_function && ending != new_ending {
        return Err(match ending {
            "" => format!("the ending `{new_ending}` would make another kind of function of it"),
            _ => format!("the name of this function ends in `{ending}`, which says what it is for"),
        });
    }
    let edits: Vec<(Span, String)> = names
        .of_symbol(found.symbol)
        .map(|o| {
            let (_, ending) = split_ending(&source[o.span.range()]);
            let ending = if is_function { ending } else { "" };
            (o.span, format!("{stem}{ending}"))
        })
        .collect();
    let same = |(span, new): &(Span, String)| source[span.range()] == *new;
    if edits.iter().all(same) {
        return Ok(Vec::new());
    }
    let clashes = |other: &str| split_ending(other).0 == stem;
    let mut functions = names.symbols.iter().filter(|s| s.role.is_none());
    if is_function && functions.any(|s| clashes(&s.name)) {
        return Err(format!("a function called `{name}` is there already"));
    }
    // The checker knows what clashes: the program has to be as right or as wrong as before.
    let mut changed = source.to_owned();
    for (span, new) in edits.iter().rev() {
        changed.replace_range(span.range(), new);
    }
    let after = examine(&changed).diagnostics;
    let before = &document.examined.diagnostics;
    let codes = |all: &[Diagnostic]| {
        let mut codes: Vec<&str> = all.iter().map(|d| d.code).collect();
        codes.sort_unstable();
        codes
    };
    if codes(before) == codes(&after) {
        return Ok(edits);
    }
    let said = after.iter().find(|d| {
        before
            .iter()
            .all(|b| b.code != d.code || b.message != d.message)
    });
    Err(match said {
        Some(said) => format!("it cannot be called `{name}`: {}", said.message),
        None => format!("`{name}` would change what the program means"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "\
functions {
  real f_lpdf(real y, real m) { return normal_lpdf(y | m, 1); }
  real g(real x) { return exp(x); }
}
record { real<lower=0, upper=1> y; }
parameters { real a; real c; }
model {
  a ~ normal(0, 1); c ~ normal(0, 1);
  { real b = a; y ~ f(b + g(c)); }
  target += f_lupdf(y | a);
}
";

    /// Renames what stands at the first `mark`.
    fn renamed_at(mark: &str, name: &str) -> Result<String, String> {
        let document = Document::new(PROGRAM.to_owned());
        let offset = PROGRAM.find(mark).expect("a mark");
        let mut changed = PROGRAM.to_owned();
        for (span, new) in rename(&document, offset, name)?.into_iter().rev() {
            changed.replace_range(span.range(), &new);
        }
        Ok(changed)
    }

    #[test]
    fn every_place_has_the_new_name() {
        let changed = renamed_at("a; real c", "beta").expect("a name");
        for part in ["real beta;", "beta ~", "real b = beta", "y | beta"] {
            assert!(changed.contains(part), "{changed}");
        }
        let changed = renamed_at("f_lpdf", "h_lpdf").expect("a name");
        for part in ["real h_lpdf(", "y ~ h(b", "h_lupdf(y"] {
            assert!(changed.contains(part), "{changed}");
        }
        assert_eq!(renamed_at("f(b", "h").as_ref(), Ok(&changed));
        assert_eq!(renamed_at("a; real c", "a").as_deref(), Ok(PROGRAM));
    }

    #[test]
    fn what_clashes_is_refused() {
        for (mark, name, words) in [
            ("a; real c", "c", "declared twice"),
            ("a; real c", "y", "declared twice"),
            ("a; real c", "b", "declared twice"),
            ("a; real c", "g", "declared twice"),
            ("a; real c", "model", "is not a name"),
            ("a; real c", "1a", "is not a name"),
            ("a; real c", "", "is not a name"),
            ("a; real c", "a__", "a__"),
            ("g(real", "exp", "of the language"),
            ("g(real", "f", "already"),
            ("g(real", "h_rng", "another kind"),
            ("f_lpdf", "h", "ends in `_lpdf`"),
            ("f_lpdf", "normal_lpdf", "of the language"),
            ("exp(x", "g2", "not declared"),
            ("normal(0", "g2", "not declared"),
            ("return", "g2", "no name of the program"),
        ] {
            let said = renamed_at(mark, name).expect_err(name);
            assert!(said.contains(words), "{mark} as {name}: {said}");
        }
    }
}

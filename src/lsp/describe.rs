//! Descriptions of names, in Markdown.

use super::document::Document;
use super::names::Symbol;
use crate::check::Role;
use crate::distribution::{self, FAMILIES, lookup_function};
use crate::function::overloads;
use crate::syntax::Span;

pub(super) struct Hover {
    pub span: Span,
    pub markdown: String,
}

pub(super) fn hover(document: &Document, offset: usize) -> Option<Hover> {
    if let Some(found) = document.names.at(offset) {
        return Some(Hover {
            span: found.span,
            markdown: symbol(document, &document.names.symbols[found.symbol]),
        });
    }
    let called = document.function_at(offset)?;
    let name = &document.source()[called.span.range()];
    let markdown = if called.is_distribution {
        family(distribution::lookup(name)?)
    } else {
        function(name)?
    };
    Some(Hover {
        span: called.span,
        markdown,
    })
}

/// A variable: its declaration, its block, and whether it is private. A function: its headings.
pub(super) fn symbol(document: &Document, symbol: &Symbol) -> String {
    let heading = heading(document, symbol);
    let Some(role) = symbol.role else {
        return format!("{}\n\na function of this program", code(&heading));
    };
    let stage = document.stage(symbol);
    let privacy = match (role, stage.is_private()) {
        (Role::Argument, true) => "**private** in some call",
        (_, true) => "**private**",
        (_, false) => "public",
    };
    format!(
        "{}\n\n{}, {privacy} (stage {})",
        code(&heading),
        role.description(),
        stage.name()
    )
}

/// `real<lower=0> x`, `int k` of a loop, `real f(real a)`, a line each.
pub(super) fn heading(document: &Document, symbol: &Symbol) -> String {
    let headings = symbol.headings.iter().map(|&span| document.words(span));
    match symbol.role {
        None => headings
            .map(|heading| {
                if heading.contains('(') {
                    heading + ")"
                } else {
                    heading + "()"
                }
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Some(Role::Loop) => match document.variables(symbol).next() {
            Some(variable) => format!("{} {}", variable.ty, symbol.name),
            None => symbol.name.clone(),
        },
        Some(_) => format!("{} {}", headings.collect::<String>(), symbol.name),
    }
}

/// A function of the language, one of a distribution included.
pub(super) fn function(name: &str) -> Option<String> {
    if let Some(found) = lookup_function(name) {
        return Some(family(found.family));
    }
    let meanings: Vec<String> = overloads(name)
        .map(|f| {
            let signatures = f.signatures_in_words().join("\n");
            format!("{}\n\n{}", code(&signatures), f.meaning())
        })
        .collect();
    (!meanings.is_empty()).then(|| meanings.join("\n\n"))
}

pub(super) fn family(index: usize) -> String {
    let family = FAMILIES[index];
    format!(
        "{}\n\n{}\n\nWhere {}.",
        code(&distribution::signatures_in_words(index).join("\n")),
        family.documentation(),
        family.domains_in_words()
    )
}

fn code(text: &str) -> String {
    format!("```dpm\n{text}\n```")
}

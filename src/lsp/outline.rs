//! The parts of a program: blocks, and what is declared in them.

use super::describe;
use super::document::Document;
use crate::check::Role;
use crate::syntax::Span;

pub(super) struct Part {
    pub name: String,
    pub detail: String,
    /// `None` for a block.
    pub kind: Option<PartKind>,
    pub span: Span,
    /// The part of it to show: its name.
    pub name_span: Span,
    pub parts: Vec<Part>,
}

pub(super) enum PartKind {
    Variable(Role),
    Function,
}

pub(super) fn outline(document: &Document) -> Vec<Part> {
    let Some(program) = &document.examined.program else {
        return Vec::new();
    };
    let mut blocks: Vec<Part> = Vec::new();
    if let Some(span) = program.functions_span {
        let end = document.source().len().min(span.start + "functions".len());
        blocks.push(block("functions", span, Span::new(span.start, end)));
    }
    for b in &program.blocks {
        blocks.push(block(b.kind.keyword(), b.span, b.keyword_span));
    }
    for symbol in &document.names.symbols {
        // What belongs to a function or a loop is found there.
        let kind = match symbol.role {
            None => PartKind::Function,
            Some(Role::Argument | Role::Loop | Role::Local) => continue,
            Some(role) => PartKind::Variable(role),
        };
        let detail = describe::heading(document, symbol);
        for (&name_span, &heading) in symbol.declared.iter().zip(&symbol.headings) {
            let holds =
                |b: &&mut Part| b.span.start <= name_span.start && name_span.end <= b.span.end;
            let Some(block) = blocks.iter_mut().find(holds) else {
                continue;
            };
            let kind = match &kind {
                PartKind::Variable(role) => PartKind::Variable(*role),
                PartKind::Function => PartKind::Function,
            };
            block.parts.push(Part {
                name: symbol.name.clone(),
                detail: match symbol.role {
                    Some(_) => document.words(heading),
                    None => detail.clone(),
                },
                kind: Some(kind),
                span: heading.to(name_span),
                name_span,
                parts: Vec::new(),
            });
        }
    }
    blocks
}

fn block(name: &str, span: Span, name_span: Span) -> Part {
    Part {
        name: name.to_owned(),
        detail: String::new(),
        kind: None,
        span: span.to(name_span),
        name_span,
        parts: Vec::new(),
    }
}

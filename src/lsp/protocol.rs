//! Answers in the words of the protocol.

use std::collections::HashMap;
use std::path::PathBuf;

use lsp_types as lsp;
use lsp_types::Uri;

use super::bound::Hint;
use super::completion::{Candidate, Completions, Kind};
use super::document::Document;
use super::outline::{Part, PartKind};
use super::text::{Encoding, Text};
use crate::check::Role;
use crate::syntax::{Diagnostic, Span};

/// How places of one document are said.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub uri: &'a Uri,
    pub text: &'a Text,
    pub encoding: Encoding,
}

impl Places<'_> {
    pub fn offset(&self, position: lsp::Position) -> usize {
        self.text
            .offset(position.line, position.character, self.encoding)
    }

    pub fn position(&self, offset: usize) -> lsp::Position {
        let (line, column) = self.text.position(offset, self.encoding);
        lsp::Position::new(line, column)
    }

    pub fn range(&self, span: Span) -> lsp::Range {
        lsp::Range::new(self.position(span.start), self.position(span.end))
    }

    pub fn location(&self, span: Span) -> lsp::Location {
        lsp::Location::new(self.uri.clone(), self.range(span))
    }

    pub fn edit(&self, span: Span, text: String) -> lsp::TextEdit {
        lsp::TextEdit::new(self.range(span), text)
    }

    pub fn edits(&self, edits: Vec<(Span, String)>) -> lsp::WorkspaceEdit {
        let edits = edits.into_iter().map(|(span, text)| self.edit(span, text));
        lsp::WorkspaceEdit {
            changes: Some(HashMap::from([(self.uri.clone(), edits.collect())])),
            ..lsp::WorkspaceEdit::default()
        }
    }

    pub fn diagnostic(&self, said: &Diagnostic) -> lsp::Diagnostic {
        let help = said.help.as_ref().map(|help| format!("help: {help}"));
        let mut lines = vec![said.message.clone(), said.label.clone()];
        lines.extend(help);
        lines.retain(|line| !line.is_empty());
        let note = |(span, message): &(Span, String)| lsp::DiagnosticRelatedInformation {
            location: self.location(*span),
            message: message.clone(),
        };
        let is_unused = said.label == "not used";
        lsp::Diagnostic {
            range: self.range(said.span),
            severity: Some(if said.is_error() {
                lsp::DiagnosticSeverity::ERROR
            } else {
                lsp::DiagnosticSeverity::WARNING
            }),
            code: Some(lsp::NumberOrString::String(said.code.to_owned())),
            source: Some("dpm".to_owned()),
            message: lines.join("\n"),
            related_information: Some(said.notes.iter().map(note).collect()),
            tags: is_unused.then(|| vec![lsp::DiagnosticTag::UNNECESSARY]),
            ..lsp::Diagnostic::default()
        }
    }

    /// Puts the suggested word in place of the one at fault.
    pub fn correction(&self, said: &Diagnostic) -> Option<lsp::CodeAction> {
        let meant = said.suggestion()?;
        Some(lsp::CodeAction {
            title: format!("Write `{meant}`"),
            kind: Some(lsp::CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![self.diagnostic(said)]),
            edit: Some(self.edits(vec![(said.span, meant.to_owned())])),
            is_preferred: Some(true),
            ..lsp::CodeAction::default()
        })
    }

    pub fn completions(&self, found: Completions) -> lsp::CompletionResponse {
        let range = self.range(found.span);
        let item = |candidate: Candidate| lsp::CompletionItem {
            kind: Some(completion_kind(candidate.kind)),
            detail: Some(candidate.detail).filter(|detail| !detail.is_empty()),
            documentation: candidate
                .documentation
                .map(|text| lsp::Documentation::MarkupContent(markdown(text))),
            sort_text: Some(format!("{}{}", rank(candidate.kind), candidate.label)),
            text_edit: Some(lsp::CompletionTextEdit::Edit(lsp::TextEdit::new(
                range,
                candidate.label.clone(),
            ))),
            label: candidate.label,
            ..lsp::CompletionItem::default()
        };
        lsp::CompletionResponse::Array(found.candidates.into_iter().map(item).collect())
    }

    #[allow(deprecated)] // A field that the struct still has.
    pub fn symbol(&self, part: Part) -> lsp::DocumentSymbol {
        let inner = part.parts.into_iter().map(|part| self.symbol(part));
        lsp::DocumentSymbol {
            name: part.name,
            detail: Some(part.detail).filter(|detail| !detail.is_empty()),
            kind: match part.kind {
                None => lsp::SymbolKind::NAMESPACE,
                Some(PartKind::Function) => lsp::SymbolKind::FUNCTION,
                Some(PartKind::Variable(Role::Constant | Role::TransformedConstant)) => {
                    lsp::SymbolKind::CONSTANT
                }
                Some(PartKind::Variable(Role::Record | Role::TransformedRecord)) => {
                    lsp::SymbolKind::FIELD
                }
                Some(PartKind::Variable(_)) => lsp::SymbolKind::VARIABLE,
            },
            tags: None,
            deprecated: None,
            range: self.range(part.span),
            selection_range: self.range(part.name_span),
            children: Some(inner.collect()),
        }
    }

    pub fn hint(&self, hint: &Hint) -> lsp::InlayHint {
        lsp::InlayHint {
            position: self.position(hint.at),
            label: lsp::InlayHintLabel::String(hint.label.clone()),
            kind: None,
            text_edits: None,
            tooltip: Some(lsp::InlayHintTooltip::String(hint.lines.join("\n"))),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        }
    }
}

pub(super) fn markdown(value: String) -> lsp::MarkupContent {
    lsp::MarkupContent {
        kind: lsp::MarkupKind::Markdown,
        value,
    }
}

/// All that is said of a document without its constants.
pub(super) fn diagnostics(places: &Places<'_>, document: &Document) -> Vec<lsp::Diagnostic> {
    let said = document.examined.diagnostics.iter();
    said.map(|d| places.diagnostic(d)).collect()
}

fn completion_kind(kind: Kind) -> lsp::CompletionItemKind {
    match kind {
        Kind::Variable(Role::Constant | Role::TransformedConstant) => {
            lsp::CompletionItemKind::CONSTANT
        }
        Kind::Variable(Role::Record | Role::TransformedRecord) => lsp::CompletionItemKind::FIELD,
        Kind::Variable(_) => lsp::CompletionItemKind::VARIABLE,
        Kind::OwnFunction | Kind::Function => lsp::CompletionItemKind::FUNCTION,
        Kind::Distribution => lsp::CompletionItemKind::CLASS,
        Kind::Block => lsp::CompletionItemKind::MODULE,
        Kind::Type => lsp::CompletionItemKind::STRUCT,
        Kind::Keyword => lsp::CompletionItemKind::KEYWORD,
    }
}

/// Names that the program declares come before those of the language.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Variable(_) | Kind::OwnFunction => 0,
        Kind::Distribution | Kind::Block | Kind::Type | Kind::Keyword => 1,
        Kind::Function => 2,
    }
}

/// The file of a document, if it has one.
pub(super) fn path(uri: &Uri) -> Option<PathBuf> {
    if uri.scheme()?.as_str() != "file" {
        return None;
    }
    let path = uri.path().as_estr().decode().into_string().ok()?;
    // `/C:/models` on Windows.
    let drive = path
        .strip_prefix('/')
        .filter(|rest| rest[..].get(1..2) == Some(":"));
    Some(PathBuf::from(drive.unwrap_or(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_paths() {
        let path = |uri: &str| path(&uri.parse().expect("a URI"));
        assert_eq!(
            path("file:///a%20b/%C3%A9.dpm"),
            Some("/a b/\u{e9}.dpm".into())
        );
        assert_eq!(path("file:///c%3A/m.dpm"), Some("c:/m.dpm".into()));
        assert_eq!(path("untitled:Untitled-1"), None);
        assert_eq!(path("file:///%FF.dpm"), None);
    }
}

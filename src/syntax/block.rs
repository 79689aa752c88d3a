//! The program and its blocks.

use pest::iterators::{Pair, Pairs};

use super::builder::{Builder, meaningful, parts};
use super::diagnostic::Diagnostic;
use super::grammar::Rule;
use super::tree::{Block, BlockKind, Program, Span};
use super::words;

impl Builder<'_> {
    pub(super) fn program(&mut self, pairs: Pairs<'_, Rule>) -> Program {
        let mut program = Program {
            functions: Vec::new(),
            functions_span: None,
            blocks: Vec::new(),
            unread: Vec::new(),
            whole: true,
            span: Span::default(),
        };
        // Each block seen, with its keyword, in the order of the source.
        let mut seen: Vec<(BlockKind, Span)> = Vec::new();
        for root in pairs {
            program.span = Span::new(0, self.source_length());
            for pair in meaningful(root.into_inner()) {
                self.block(pair, &mut program, &mut seen);
            }
        }
        program.blocks.sort_by_key(|block| block.kind);
        program
    }

    fn block(
        &mut self,
        pair: Pair<'_, Rule>,
        program: &mut Program,
        seen: &mut Vec<(BlockKind, Span)>,
    ) {
        let span = self.span(&pair);
        let Some(keyword) = pair.clone().into_inner().next() else {
            return self.lost(span);
        };
        let keyword_span = self.span(&keyword);
        let name = without_comments(keyword.as_str());
        let kind = match pair.as_rule() {
            Rule::foreign_block => {
                let after = seen.last().map(|(kind, _)| *kind);
                self.meant_block(&name, keyword_span, after)
            }
            _ => words::block_kind(&name),
        };
        let Some(kind) = kind else {
            // An unknown block has been reported; its contents are not known.
            let held = &self.draft().text()[pair.as_span().start()..pair.as_span().end()];
            program.unread.extend(super::unread::names(held));
            return;
        };
        let is_again = self.check_order(kind, keyword_span, seen);
        seen.push((kind, keyword_span));
        for child in parts(pair.clone()).filter(|child| child.as_rule() == Rule::function) {
            let function_span = self.span(&child);
            let before = self.diagnostics.len();
            match self.function(child) {
                Some(function) => program.functions.push(function),
                None if self.diagnostics.len() > before => {}
                None => self.lost(function_span),
            }
        }
        let statements = self.statements(parts(pair));
        if kind == BlockKind::Functions {
            program.functions_span = program.functions_span.or(Some(span));
            return;
        }
        let earlier = program.blocks.iter_mut().find(|block| block.kind == kind);
        match earlier.filter(|_| is_again) {
            // The contents of the second are used nevertheless.
            Some(block) => block.statements.extend(statements),
            None => program.blocks.push(Block {
                kind,
                span,
                keyword_span,
                statements,
            }),
        }
    }

    /// Whether there was an earlier block of this kind.
    fn check_order(&mut self, kind: BlockKind, keyword: Span, seen: &[(BlockKind, Span)]) -> bool {
        let name = kind.keyword();
        if let Some((_, first)) = seen.iter().find(|(earlier, _)| *earlier == kind) {
            self.diagnostics.push(
                Diagnostic::error(
                    "S005",
                    keyword,
                    format!("the block `{name}` is written twice"),
                )
                .label("again here")
                .note(*first, "first here")
                .help("put everything into the first"),
            );
            return true;
        }
        if let Some((later, place)) = seen.iter().find(|(earlier, _)| *earlier > kind) {
            let order: Vec<&str> = BlockKind::ALL.iter().map(|kind| kind.keyword()).collect();
            self.diagnostics.push(
                Diagnostic::error(
                    "S005",
                    keyword,
                    format!("`{name}` must come before `{}`", later.keyword()),
                )
                .label("too late")
                .note(*place, "must come after it")
                .help(format!("the order is {}", order.join(", "))),
            );
        }
        false
    }

    /// Reports a block that dpm does not have, and says which one was meant.
    ///
    /// `after` is the block before it.
    fn meant_block(
        &mut self,
        name: &[&str],
        span: Span,
        after: Option<BlockKind>,
    ) -> Option<BlockKind> {
        let written = name.join(" ");
        let (message, label, help, kind) = match written.as_str() {
            "data" => (
                "there is no `data` block in dpm".to_owned(),
                "divide it in two".to_owned(),
                Some(
                    "columns go into `record`, declared for one row (`vector[N] x;` becomes `real x;`); public numbers go into `constants`, and the number of rows nowhere",
                ),
                Some(BlockKind::Constants),
            ),
            "transformed data" => (
                "there is no `transformed data` block in dpm".to_owned(),
                "divide it in two".to_owned(),
                Some(
                    "what is computed from a row's own columns goes into `transformed record`; what is computed from constants, into `transformed constants`",
                ),
                Some(match after {
                    Some(later) if later >= BlockKind::Record => BlockKind::TransformedRecord,
                    _ => BlockKind::TransformedConstants,
                }),
            ),
            _ => {
                let meant = words::meant_keyword(&written);
                let kind = BlockKind::ALL
                    .into_iter()
                    .find(|kind| Some(kind.keyword()) == meant);
                match meant {
                    Some(meant) => (
                        format!("`{written}` is not a block"),
                        format!("did you mean `{meant}`?"),
                        None,
                        kind,
                    ),
                    None => (
                        format!("`{written}` is not a block"),
                        "unknown".to_owned(),
                        Some(
                            "blocks are functions, constants, transformed constants, record, transformed record, parameters, transformed parameters, model and generated quantities",
                        ),
                        None,
                    ),
                }
            }
        };
        let diagnostic = Diagnostic::error("S005", span, message).label(label);
        self.diagnostics.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
        kind
    }
}

/// The words of a keyword: `transformed /* all */ record` has two.
fn without_comments(keyword: &str) -> Vec<&str> {
    let (tokens, _) = super::tokens::tokens(keyword);
    tokens.iter().map(|token| token.text).collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn kinds(source: &str) -> (Vec<BlockKind>, Vec<String>) {
        let parsed = parse(source);
        let program = parsed.program.expect("it parses");
        (
            program.blocks.iter().map(|block| block.kind).collect(),
            parsed.diagnostics.into_iter().map(|d| d.message).collect(),
        )
    }

    #[test]
    fn blocks_come_out_in_order_whatever_was_written() {
        let (found, messages) = kinds("model { } record { } parameters { }");
        assert_eq!(
            found,
            [BlockKind::Record, BlockKind::Parameters, BlockKind::Model]
        );
        assert_eq!(
            messages,
            [
                "`record` must come before `model`",
                "`parameters` must come before `model`"
            ]
        );
    }

    #[test]
    fn a_block_written_twice_is_one_block() {
        let parsed = parse("record { real x; } record { real y; }");
        let program = parsed.program.expect("it parses");
        assert_eq!(program.blocks.len(), 1);
        assert_eq!(program.blocks[0].statements.len(), 2);
        assert_eq!(parsed.diagnostics.len(), 1);
    }

    #[test]
    fn strange_blocks_are_taken_for_what_was_meant() {
        let (found, messages) = kinds("data { real x; } modle { target += x; }");
        assert_eq!(found, [BlockKind::Constants, BlockKind::Model]);
        assert_eq!(
            messages,
            ["there is no `data` block in dpm", "`modle` is not a block"]
        );
        assert_eq!(kinds("nonsense { real x; }").0, []);
    }
}

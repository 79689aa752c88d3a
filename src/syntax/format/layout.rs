//! Blocks, declarations and statements as documents.

use super::super::tree::{
    Argument, BaseType, Block, Constraint, Expr, Function, Program, SizedType, Statement,
    StatementKind, Truncation, UnsizedType,
};
use super::document::Document;
use super::source::{Comment, Position, Source};

/// Walks the tree and the words of its source at the same pace: the tree says which words belong
/// together, the source how they are written.
///
/// A word that is not where the tree has it would be a bug in this crate; it is recorded, and
/// [`program`](Layout::program) then returns `None`.
pub(super) struct Layout<'a> {
    source: &'a Source<'a>,
    /// The token to be written next.
    next: usize,
    /// How many of the comments before it have been written.
    written: usize,
    lost: bool,
}

pub(super) type Parts<'a> = Vec<Document<'a>>;

/// How the elements of a list are arranged on lines of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// One on each line.
    Each,
    /// As many on a line as fit.
    Filled,
}

impl<'a> Layout<'a> {
    pub(super) fn new(source: &'a Source<'a>) -> Self {
        Layout {
            source,
            next: 0,
            written: 0,
            lost: false,
        }
    }

    pub(super) fn program(mut self, program: &Program) -> Option<Document<'a>> {
        let mut parts = Vec::new();
        if program.functions_span.is_some() {
            self.begin_block(&mut parts);
            self.word(&mut parts, "functions");
            self.joint(&mut parts);
            self.braces(&mut parts, &program.functions, Self::function);
        }
        for block in &program.blocks {
            self.begin_block(&mut parts);
            self.block(&mut parts, block);
        }
        self.begin_block(&mut parts);
        let done = !self.lost && self.next == self.source.tokens.len();
        done.then_some(Document::Sequence(parts))
    }

    fn block(&mut self, parts: &mut Parts<'a>, block: &Block) {
        for (index, word) in block.kind.keyword().split(' ').enumerate() {
            if index > 0 {
                self.space(parts);
            }
            self.word(parts, word);
        }
        self.joint(parts);
        self.statements(parts, &block.statements);
    }

    fn function(&mut self, parts: &mut Parts<'a>, function: &Function) {
        match &function.return_type {
            Some(ty) => self.unsized_type(parts, ty),
            None => self.word(parts, "void"),
        }
        self.space(parts);
        self.word(parts, &function.name.name);
        let arguments = &function.arguments;
        self.list(parts, ["(", ")"], arguments, Style::Each, Self::argument);
        self.joint(parts);
        self.statements(parts, &function.body);
    }

    fn argument(&mut self, parts: &mut Parts<'a>, argument: &Argument) {
        if argument.data_only {
            self.word(parts, "data");
            self.space(parts);
        }
        self.unsized_type(parts, &argument.ty);
        self.space(parts);
        self.word(parts, &argument.name.name);
    }

    fn unsized_type(&mut self, parts: &mut Parts<'a>, ty: &UnsizedType) {
        if ty.array_dimensions > 0 {
            self.word(parts, "array");
            self.word(parts, "[");
            for _ in 1..ty.array_dimensions {
                self.word(parts, ",");
            }
            self.word(parts, "]");
            self.space(parts);
        }
        self.any(parts);
    }

    /// `{ ... }` around statements.
    fn statements(&mut self, parts: &mut Parts<'a>, statements: &[Statement]) {
        let together = |a: &Statement, b: &Statement| {
            let declares = |s: &Statement| matches!(s.kind, StatementKind::Declaration { .. });
            declares(a) && declares(b) && a.span == b.span
        };
        let groups: Vec<&[Statement]> = statements.chunk_by(together).collect();
        self.braces(parts, &groups, |layout, parts, group| match group {
            [one] => layout.statement(parts, one),
            several => layout.declaration(parts, several),
        });
    }

    /// `{ ... }` with each item on lines of its own.
    fn braces<T>(
        &mut self,
        parts: &mut Parts<'a>,
        items: &[T],
        write: impl Fn(&mut Self, &mut Parts<'a>, &T),
    ) {
        self.word(parts, "{");
        if items.is_empty() && self.comments().iter().all(stands_inside) {
            self.space(parts);
            if !self.comments().is_empty() {
                self.leading(parts);
                self.space(parts);
            }
            return self.word(parts, "}");
        }
        let mut inner = Vec::new();
        self.trailing(&mut inner);
        for (index, item) in items.iter().enumerate() {
            self.first_on_a_line(&mut inner, index == 0);
            self.own_lines(&mut inner);
            write(self, &mut inner, item);
            self.trailing(&mut inner);
        }
        if !items.is_empty() {
            self.trailing_before_brace(&mut inner);
        }
        let mut begun = !items.is_empty();
        while let Some(comment) = self.comments().first().copied() {
            inner.push(line_break(comment.newlines, !begun));
            begun = true;
            self.write_comment(&mut inner, Position::OwnLine);
        }
        parts.push(Document::indent(inner));
        parts.push(Document::Hard);
        self.word(parts, "}");
    }

    /// Begins a line, after an empty one if the source has one.
    fn first_on_a_line(&mut self, parts: &mut Parts<'a>, first: bool) {
        let comments = self.comments();
        let newlines = comments.first().map_or(self.newlines(), |c| c.newlines);
        parts.push(line_break(newlines, first));
    }

    /// The comments in front of a block, or at the end of the file.
    fn begin_block(&mut self, parts: &mut Parts<'a>) {
        self.trailing(parts);
        let first = self.next == 0 && self.written == 0;
        let at_end = self.next == self.source.tokens.len();
        if at_end && self.comments().is_empty() {
            return;
        }
        if !first {
            self.first_on_a_line(parts, false);
        }
        self.own_lines(parts);
    }

    /// The comments on lines of their own before the next token, at the beginning
    /// of a line.
    fn own_lines(&mut self, parts: &mut Parts<'a>) {
        let at_end = self.next == self.source.tokens.len();
        while let Some(comment) = self.comments().first().copied() {
            if comment.position == Position::Inline {
                self.write_comment(parts, Position::Inline);
                continue;
            }
            self.write_comment(parts, Position::OwnLine);
            if !(at_end && self.comments().is_empty()) {
                self.first_on_a_line(parts, false);
            }
        }
    }

    fn statement(&mut self, parts: &mut Parts<'a>, statement: &Statement) {
        match &statement.kind {
            StatementKind::Declaration { .. } => {
                return self.declaration(parts, std::slice::from_ref(statement));
            }
            StatementKind::Assign { target, value, .. } => {
                self.expression(parts, target);
                self.space(parts);
                self.any(parts);
                self.space(parts);
                self.expression(parts, value);
            }
            StatementKind::Target { value } => {
                self.word(parts, "target");
                self.space(parts);
                self.word(parts, "+=");
                self.space(parts);
                self.expression(parts, value);
            }
            StatementKind::Sampling {
                variate,
                distribution,
                arguments,
                truncation,
            } => {
                self.expression(parts, variate);
                self.space(parts);
                self.word(parts, "~");
                self.space(parts);
                self.word(parts, &distribution.name);
                self.call_arguments(parts, arguments, false);
                if let Some(truncation) = truncation {
                    self.space(parts);
                    self.truncation(parts, truncation);
                }
            }
            StatementKind::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                self.for_head(parts, &variable.name);
                self.range(parts, Some(from), Some(to));
                self.word(parts, ")");
                return self.body(parts, body);
            }
            StatementKind::ForEach {
                variable,
                container,
                body,
            } => {
                self.for_head(parts, &variable.name);
                self.expression(parts, container);
                self.word(parts, ")");
                return self.body(parts, body);
            }
            StatementKind::While { condition, body } => {
                self.word(parts, "while");
                self.condition(parts, condition);
                return self.body(parts, body);
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.word(parts, "if");
                self.condition(parts, condition);
                self.body(parts, then);
                if let Some(otherwise) = otherwise {
                    self.otherwise(parts, then, otherwise);
                }
                return;
            }
            StatementKind::Block(statements) => {
                if self.peek("profile") {
                    self.word(parts, "profile");
                    self.word(parts, "(");
                    self.any(parts);
                    self.word(parts, ")");
                    self.joint(parts);
                }
                return self.statements(parts, statements);
            }
            StatementKind::Break => self.word(parts, "break"),
            StatementKind::Continue => self.word(parts, "continue"),
            StatementKind::Return(value) => {
                self.word(parts, "return");
                if let Some(value) = value {
                    self.space(parts);
                    self.expression(parts, value);
                }
            }
            StatementKind::Print(arguments) => {
                self.word(parts, "print");
                self.call_arguments(parts, arguments, false);
            }
            StatementKind::Reject(arguments) => {
                self.word(parts, "reject");
                self.call_arguments(parts, arguments, false);
            }
            StatementKind::Call { name, arguments } => {
                self.word(parts, &name.name);
                self.call_arguments(parts, arguments, false);
            }
            StatementKind::Empty => {}
        }
        self.word(parts, ";");
    }

    fn for_head(&mut self, parts: &mut Parts<'a>, variable: &str) {
        self.word(parts, "for");
        self.space(parts);
        self.word(parts, "(");
        self.word(parts, variable);
        self.space(parts);
        self.word(parts, "in");
        self.space(parts);
    }

    fn condition(&mut self, parts: &mut Parts<'a>, condition: &Expr) {
        self.space(parts);
        self.word(parts, "(");
        self.expression(parts, condition);
        self.word(parts, ")");
    }

    /// The body of a loop or a condition. Without braces it stays on its line or on the next, as
    /// written.
    fn body(&mut self, parts: &mut Parts<'a>, body: &Statement) {
        if self.peek("{") || self.peek("profile") {
            self.joint(parts);
            return self.statement(parts, body);
        }
        let breaks = |c: &Comment<'_>| c.is_line() || c.newlines > 0;
        let below = self.newlines() > 0 || self.comments().iter().any(breaks);
        let mut inner = Vec::new();
        self.trailing(&mut inner);
        if below {
            inner.push(Document::Hard);
            self.own_lines(&mut inner);
            self.statement(&mut inner, body);
            return parts.push(Document::indent(inner));
        }
        if is_simple(body) {
            inner.push(Document::Line);
            self.statement(&mut inner, body);
            return parts.push(Document::group(vec![Document::indent(inner)]));
        }
        parts.append(&mut inner);
        self.space(parts);
        self.statement(parts, body);
    }

    fn otherwise(&mut self, parts: &mut Parts<'a>, then: &Statement, otherwise: &Statement) {
        let braced = matches!(then.kind, StatementKind::Block(_));
        if !braced && self.newlines() > 0 && self.comments().is_empty() {
            parts.push(Document::Hard);
        } else {
            self.joint(parts);
        }
        self.word(parts, "else");
        match &otherwise.kind {
            StatementKind::If { .. } => {
                self.joint(parts);
                self.statement(parts, otherwise);
            }
            _ => self.body(parts, otherwise),
        }
    }

    /// A blank before a token that cannot begin a line; or a line break when a comment forces it.
    fn joint(&mut self, parts: &mut Parts<'a>) {
        let forced = |comment: &Comment<'_>| comment.is_line() || !stands_inside(comment);
        if !self.comments().iter().any(forced) {
            return self.space(parts);
        }
        self.trailing(parts);
        parts.push(Document::Hard);
        while let Some(comment) = self.comments().first().copied() {
            let inline = comment.position == Position::Inline;
            self.write_comment(
                parts,
                if inline {
                    Position::Inline
                } else {
                    Position::OwnLine
                },
            );
            if !inline {
                parts.push(Document::Hard);
            }
        }
    }

    fn declaration(&mut self, parts: &mut Parts<'a>, names: &[Statement]) {
        let mut rest = Vec::new();
        for (index, statement) in names.iter().enumerate() {
            let StatementKind::Declaration { ty, name, value } = &statement.kind else {
                self.lost = true;
                return;
            };
            let out = if index == 0 { &mut *parts } else { &mut rest };
            if index == 0 {
                self.sized_type(out, ty);
                self.space(out);
            } else {
                self.word(out, ",");
                self.line(out);
            }
            self.word(out, &name.name);
            if let Some(value) = value {
                self.space(out);
                self.word(out, "=");
                self.space(out);
                self.expression(out, value);
            }
        }
        if !rest.is_empty() {
            parts.push(Document::group(vec![Document::indent(rest)]));
        }
        self.word(parts, ";");
    }

    fn sized_type(&mut self, parts: &mut Parts<'a>, ty: &SizedType) {
        if !ty.array_sizes.is_empty() {
            self.word(parts, "array");
            let sizes = &ty.array_sizes;
            self.list(parts, ["[", "]"], sizes, Style::Each, Self::expression);
            self.space(parts);
        }
        self.word(parts, ty.base.keyword());
        if ty.base == BaseType::Factor {
            let levels = &ty.levels;
            return self.list(
                parts,
                ["(", ")"],
                levels,
                Style::Filled,
                |layout, parts, _| {
                    layout.any(parts);
                },
            );
        }
        if !ty.constraints.is_empty() {
            let constraints = &ty.constraints;
            self.list(
                parts,
                ["<", ">"],
                constraints,
                Style::Each,
                Self::constraint,
            );
        }
        if !ty.sizes.is_empty() {
            let sizes = &ty.sizes;
            self.list(parts, ["[", "]"], sizes, Style::Each, Self::expression);
        }
    }

    fn constraint(&mut self, parts: &mut Parts<'a>, constraint: &Constraint) {
        self.word(parts, constraint.kind.keyword());
        self.word(parts, "=");
        self.expression(parts, &constraint.value);
    }

    fn truncation(&mut self, parts: &mut Parts<'a>, truncation: &Truncation) {
        self.word(parts, "T");
        let bounds = [&truncation.lower, &truncation.upper];
        self.list(
            parts,
            ["[", "]"],
            &bounds,
            Style::Each,
            |layout, parts, bound| {
                if let Some(bound) = bound {
                    layout.expression(parts, bound);
                }
            },
        );
    }

    /// Elements between brackets, with a comma after each but the last.
    pub(super) fn list<T>(
        &mut self,
        parts: &mut Parts<'a>,
        [open, close]: [&str; 2],
        items: &[T],
        style: Style,
        write: impl Fn(&mut Self, &mut Parts<'a>, &T),
    ) {
        self.word(parts, open);
        if items.is_empty() && self.comments().iter().all(stands_inside) {
            return self.word(parts, close);
        }
        let mut inner = Vec::new();
        self.soft(&mut inner);
        for (index, item) in items.iter().enumerate() {
            if index == 0 {
                write(self, &mut inner, item);
                continue;
            }
            self.word(&mut inner, ",");
            let mut next = Vec::new();
            self.line(&mut next);
            write(self, &mut next, item);
            match style {
                Style::Each => inner.append(&mut next),
                Style::Filled => inner.push(Document::group(next)),
            }
        }
        let group = self.closed(inner);
        parts.push(group);
        self.word(parts, close);
    }

    /// The contents of brackets, with the comments before the closing one.
    pub(super) fn closed(&mut self, mut inner: Parts<'a>) -> Document<'a> {
        self.trailing(&mut inner);
        if self
            .comments()
            .iter()
            .any(|c| c.position == Position::OwnLine)
        {
            inner.push(Document::Soft);
            self.leading(&mut inner);
        }
        Document::group(vec![Document::indent(inner), Document::Soft])
    }

    // ------------------------------------------------------- words and comments

    pub(super) fn peek(&self, text: &str) -> bool {
        let token = self.source.tokens.get(self.next);
        token.is_some_and(|token| token.is(text))
    }

    /// Writes the next token, which must be this.
    pub(super) fn word(&mut self, parts: &mut Parts<'a>, text: &str) {
        self.lost |= !self.peek(text);
        self.any(parts);
    }

    /// Writes the next token with the comments before it.
    pub(super) fn any(&mut self, parts: &mut Parts<'a>) {
        self.trailing(parts);
        self.leading(parts);
        match self.source.tokens.get(self.next) {
            Some(token) => parts.push(Document::Text(token.text)),
            None => self.lost = true,
        }
        self.next += 1;
        self.written = 0;
    }

    pub(super) fn space(&mut self, parts: &mut Parts<'a>) {
        self.trailing(parts);
        parts.push(Document::Space);
    }

    pub(super) fn line(&mut self, parts: &mut Parts<'a>) {
        self.trailing(parts);
        parts.push(Document::Line);
    }

    pub(super) fn soft(&mut self, parts: &mut Parts<'a>) {
        self.trailing(parts);
        parts.push(Document::Soft);
    }

    /// The comments before the next token that have not been written yet.
    fn comments(&self) -> &'a [Comment<'a>] {
        let place = self.source.places.get(self.next);
        place
            .and_then(|place| place.comments.get(self.written..))
            .unwrap_or_default()
    }

    /// Line breaks in the source right before the next token.
    fn newlines(&self) -> usize {
        self.source
            .places
            .get(self.next)
            .map_or(0, |place| place.newlines)
    }

    /// Comments that belong to the line of the token before. Call this before a blank or a line
    /// break is written, so that such a comment is outside the document that it follows.
    fn trailing(&mut self, parts: &mut Parts<'a>) {
        while let Some(comment) = self.comments().first() {
            match comment.position {
                Position::Trailing | Position::Continuation => {
                    self.write_comment(parts, comment.position);
                }
                _ => break,
            }
        }
    }

    /// Before a brace on a line of its own, comments on the line of the statement before it belong
    /// to that statement.
    fn trailing_before_brace(&mut self, parts: &mut Parts<'a>) {
        while self.comments().first().is_some_and(|c| c.newlines == 0) {
            self.write_comment(parts, Position::Trailing);
        }
    }

    fn leading(&mut self, parts: &mut Parts<'a>) {
        while let Some(comment) = self.comments().first() {
            self.write_comment(parts, comment.position);
        }
    }

    fn write_comment(&mut self, parts: &mut Parts<'a>, position: Position) {
        if let Some(&comment) = self.comments().first() {
            self.written += 1;
            parts.push(Document::Comment(Comment {
                position,
                ..comment
            }));
        }
    }
}

/// Whether a comment can be in the middle of a line.
fn stands_inside(comment: &Comment<'_>) -> bool {
    comment.position == Position::Inline
        && !comment.text.contains(['\n', '\r'])
        && !comment.is_line()
}

fn line_break<'a>(newlines: usize, first: bool) -> Document<'a> {
    if newlines > 1 && !first {
        Document::Blank
    } else {
        Document::Hard
    }
}

/// Whether it contains no other statement.
fn is_simple(statement: &Statement) -> bool {
    !matches!(
        statement.kind,
        StatementKind::ForRange { .. }
            | StatementKind::ForEach { .. }
            | StatementKind::While { .. }
            | StatementKind::If { .. }
            | StatementKind::Block(_)
    )
}

//! Which brackets belong together, and where statements begin and end.

use super::diagnostic::Diagnostic;
use super::draft::Edit;
use super::tokens::{Problem, Token, TokenKind};
use super::tree::Span;
use super::words;

/// The deepest nesting of brackets, blocks and unbraced bodies; a deeper program is refused, since
/// every reader of the tree recurses into it.
pub(super) const DEEPEST: usize = 100;

/// For each token: its partner if it is a bracket, and the brace of the
/// innermost block around it.
pub(super) struct Brackets {
    partner: Vec<Option<usize>>,
    block: Vec<Option<usize>>,
    /// Whether the token is inside round or square brackets, or an array literal,
    /// that its block does not contain as a whole.
    inside: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Open {
    token: usize,
    is_block: bool,
    depth: usize,
    /// Bodies without braces around it.
    unbraced: usize,
}

/// The pairs, or the first bracket that has none.
pub(super) fn brackets(tokens: &[Token<'_>]) -> Result<Brackets, Box<Problem>> {
    let mut found = Brackets {
        partner: vec![None; tokens.len()],
        block: vec![None; tokens.len()],
        inside: vec![false; tokens.len()],
    };
    let mut open: Vec<Open> = Vec::new();
    // Bodies without braces: `if (a) for (b in c) while (d) ...`.
    let mut unbraced = 0;
    for (index, token) in tokens.iter().enumerate() {
        let innermost = open.last().copied();
        missing_brace_before(tokens, index, &open)?;
        if token.kind == TokenKind::Word {
            let next_is = |text: &str| tokens.get(index + 1).is_some_and(|next| next.is(text));
            if matches!(token.text, "if" | "for" | "while" | "else") && !next_is("if") {
                unbraced += 1;
            }
        }
        match token.text {
            ";" | "}" if innermost.is_some_and(|open| unfinished(tokens, open, token)) => {
                return Err(never_closed(tokens, index, innermost));
            }
            "{" if innermost.is_some_and(|open| begins_body(tokens, index, open)) => {
                return Err(never_closed(tokens, index, innermost));
            }
            "?" if token.kind == TokenKind::Mark => unbraced += 1,
            "(" | "[" | "{" if token.kind == TokenKind::Mark => {
                let depth = innermost.map_or(0, |open| open.depth) + unbraced + 1;
                if depth > DEEPEST {
                    return Err(too_deep(token.span));
                }
                open.push(Open {
                    token: index,
                    is_block: token.text == "{" && opens_block(tokens, index, innermost),
                    depth,
                    unbraced,
                });
                if token.text == "{" {
                    unbraced = 0;
                }
            }
            _ => {}
        }
        if innermost.map_or(0, |open| open.depth) + unbraced > DEEPEST {
            return Err(too_deep(token.span));
        }
        if token.kind == TokenKind::Mark && matches!(token.text, ")" | "]" | "}") {
            let closed = close(tokens, index, &mut open, &mut found)?;
            if token.text == "}" {
                unbraced = closed.unbraced;
            }
        }
        let else_follows = tokens.get(index + 1).is_some_and(|next| next.is("else"));
        if (token.is(";") || token.is("}")) && !else_follows {
            unbraced = 0;
        }
        found.block[index] = open
            .iter()
            .rev()
            .find(|open| open.is_block && open.token != index)
            .map(|open| open.token);
        found.inside[index] = open
            .last()
            .is_some_and(|open| !open.is_block && open.token != index);
    }
    match open.last() {
        None => Ok(found),
        Some(_) => Err(never_closed(tokens, tokens.len(), open.last().copied())),
    }
}

impl Brackets {
    pub(super) fn partner(&self, token: usize) -> Option<usize> {
        self.partner.get(token).copied().flatten()
    }

    /// The tokens of the statement around a token, first and last, without the braces of the block
    /// around it. Outside of blocks: from the end of the last block to the end of the next, or to a
    /// `;`.
    pub(super) fn statement(&self, tokens: &[Token<'_>], index: usize) -> Option<(usize, usize)> {
        let last = tokens.len().checked_sub(1)?;
        let index = index.min(last);
        // A closing brace of a block ends the statement before it.
        let closes = tokens[index].is("}") && self.block_opened_by(tokens, index).is_some();
        let block = self.block[index];
        let floor = match (closes, block) {
            (true, _) => self.partner[index].map_or(0, |open| open + 1),
            (false, Some(open)) => open + 1,
            (false, None) => 0,
        };
        let ceiling = if closes {
            index.checked_sub(1)?
        } else {
            match block.and_then(|open| self.partner[open]) {
                Some(end) => end.checked_sub(1)?,
                None => last,
            }
        };
        let mut start = index.min(ceiling);
        if start < floor || (closes && tokens[start].is(";")) {
            return None;
        }
        start = self.opener_of(start).max(floor);
        while start > floor && !self.ends_before(tokens, start, floor) {
            start = self.opener_of(start - 1).max(floor);
        }
        let mut end = start;
        loop {
            let opens_block = self.opens_block(tokens, end);
            if let Some(close) = self.partner[end].filter(|&close| close > end) {
                end = close.min(ceiling);
            }
            let else_follows = tokens.get(end + 1).is_some_and(|next| next.is("else"));
            let complete = (opens_block || tokens[end].is(";")) && !else_follows;
            if end >= ceiling || (complete && end >= index) {
                return Some((start, end));
            }
            end += 1;
        }
    }

    /// Whether a statement ends with the token before this one.
    fn ends_before(&self, tokens: &[Token<'_>], start: usize, floor: usize) -> bool {
        let before = start - 1;
        if tokens[start].is("else") {
            return false;
        }
        // The semicolons of C's `for (i = 1; i < n; ...)` end nothing.
        let semicolon = tokens[before].is(";") && (!self.inside[before] || before < floor);
        semicolon || self.block_opened_by(tokens, before).is_some()
    }

    /// The bracket that this one closes, or the token itself.
    fn opener_of(&self, token: usize) -> usize {
        match self.partner(token) {
            Some(open) if open < token => open,
            _ => token,
        }
    }

    fn opens_block(&self, tokens: &[Token<'_>], open: usize) -> bool {
        tokens[open].is("{")
            && (self.block.get(open + 1).copied().flatten() == Some(open)
                || self.partner[open] == Some(open + 1))
    }

    /// The brace that this one closes, if that opened a block.
    fn block_opened_by(&self, tokens: &[Token<'_>], close: usize) -> Option<usize> {
        let open = self.partner[close].filter(|&open| open < close)?;
        self.opens_block(tokens, open).then_some(open)
    }

    /// Whether the token is outside all blocks.
    pub(super) fn is_outside(&self, token: usize) -> bool {
        let closes = self.opener_of(token) < token;
        !closes && self.block.get(token).is_none_or(Option::is_none)
    }
}

/// A block opens where a statement or an operand ends; elsewhere, as after an
/// operator, a brace opens an array literal.
fn opens_block(tokens: &[Token<'_>], index: usize, innermost: Option<Open>) -> bool {
    let Some(previous) = index.checked_sub(1).and_then(|before| tokens.get(before)) else {
        return true;
    };
    let may_open = match previous.kind {
        TokenKind::Word => !matches!(previous.text, "return" | "in"),
        TokenKind::Mark => matches!(previous.text, ")" | "]" | "{" | "}" | ";"),
        // `while x < 3 {`: the round brackets are missing.
        TokenKind::Number | TokenKind::Text => true,
    };
    may_open && innermost.is_none_or(|open| open.is_block)
}

/// `;` and the brace of a block are not allowed inside the innermost bracket, except for the
/// semicolons of C's `for`, which have a message of their own.
fn unfinished(tokens: &[Token<'_>], open: Open, token: &Token<'_>) -> bool {
    let opener = &tokens[open.token];
    let c_for = opener.is("(")
        && open
            .token
            .checked_sub(1)
            .is_some_and(|before| tokens[before].is("for"));
    match token.text {
        ";" if token.kind == TokenKind::Mark => !open.is_block && !c_for,
        "}" if token.kind == TokenKind::Mark => !opener.is("{"),
        _ => false,
    }
}

/// `if (x { y = 1; }`: a brace after an operand inside other brackets, with a
/// statement after it.
fn begins_body(tokens: &[Token<'_>], index: usize, innermost: Open) -> bool {
    if tokens[index].kind != TokenKind::Mark || innermost.is_block {
        return false;
    }
    let after_operand = tokens[index - 1].kind == TokenKind::Number
        || tokens[index - 1].kind == TokenKind::Word
            && !matches!(tokens[index - 1].text, "in" | "return")
        || matches!(tokens[index - 1].text, ")" | "]");
    let mut inside = tokens[index + 1..].iter();
    after_operand
        && (tokens.get(index + 1).is_some_and(|next| next.is("}"))
            || inside
                .find(|token| token.is(";") || token.is("}"))
                .is_some_and(|token| token.is(";")))
}

fn close(
    tokens: &[Token<'_>],
    index: usize,
    open: &mut Vec<Open>,
    found: &mut Brackets,
) -> Result<Open, Box<Problem>> {
    let token = &tokens[index];
    let wanted = match token.text {
        ")" => "(",
        "]" => "[",
        _ => "{",
    };
    match open.last().copied() {
        Some(last) if tokens[last.token].is(wanted) => {
            open.pop();
            found.partner[index] = Some(last.token);
            found.partner[last.token] = Some(index);
            Ok(last)
        }
        Some(last) if !last.is_block => {
            let further_out = open
                .iter()
                .rev()
                .take_while(|open| !open.is_block)
                .any(|open| tokens[open.token].is(wanted));
            if further_out {
                return Err(never_closed(tokens, index, Some(last)));
            }
            let opener = &tokens[last.token];
            let closing = closing(opener.text);
            let diagnostic = Diagnostic::error(
                "S003",
                token.span,
                format!("`{}` is closed by `{}`", opener.text, token.text),
            )
            .label(format!("expected `{closing}`"))
            .note(opener.span, "opened here");
            Err(Box::new(Problem {
                spoils_statement: false,
                ..Problem::new(diagnostic, vec![Edit::Overwrite(token.span, closing)])
            }))
        }
        _ => {
            let diagnostic = Diagnostic::error(
                "S003",
                token.span,
                format!("this `{}` closes nothing", token.text),
            )
            .label(format!("no `{wanted}` is open here"));
            Err(Box::new(Problem {
                spoils_statement: false,
                ..Problem::new(diagnostic, vec![Edit::Blank(token.span)])
            }))
        }
    }
}

fn closing(opener: &str) -> &'static str {
    match opener {
        "(" => ")",
        "[" => "]",
        _ => "}",
    }
}

/// `before` is the token in front of which the bracket ought to be closed.
fn never_closed(tokens: &[Token<'_>], before: usize, open: Option<Open>) -> Box<Problem> {
    let opener = open.and_then(|open| tokens.get(open.token));
    let (mark, opened) = opener.map_or(("{", Span::default()), |token| (token.text, token.span));
    let closing = closing(mark);
    let at = before
        .checked_sub(1)
        .and_then(|before| tokens.get(before))
        .map_or(0, |token| token.span.end);
    let diagnostic =
        Diagnostic::error("S003", Span::new(at, at), format!("`{closing}` is missing"))
            .label(format!("expected `{closing}` here"))
            .note(opened, format!("to close this `{mark}`"));
    Box::new(Problem {
        spoils_statement: closing != "}",
        at_end: before == tokens.len(),
        ..Problem::new(diagnostic, vec![Edit::Insert(at, closing)])
    })
}

/// Blocks are at the top level: a block's keyword and brace where one is still open means that a
/// brace is missing before it. And a block's keyword at the top level without a brace lacks that
/// brace.
fn missing_brace_before(
    tokens: &[Token<'_>],
    index: usize,
    open: &[Open],
) -> Result<(), Box<Problem>> {
    let Some(length) = block_keyword(tokens, index) else {
        return Ok(());
    };
    let next = tokens.get(index + length);
    let has_brace = next.is_some_and(|token| token.is("{"));
    let starts = index.checked_sub(1).is_none_or(|before| {
        tokens[before].kind == TokenKind::Mark && matches!(tokens[before].text, "}" | ";" | "{")
    });
    if open.is_empty() && starts && !has_brace {
        let keyword = tokens[index].span.to(tokens[index + length - 1].span);
        let name = tokens[index..index + length]
            .iter()
            .map(|token| token.text)
            .collect::<Vec<_>>()
            .join(" ");
        let at = Span::new(keyword.end, keyword.end);
        return Err(Box::new(Problem {
            spoils_statement: false,
            ..Problem::new(
                Diagnostic::error("S003", at, format!("`{{` is missing after `{name}`"))
                    .label("expected `{` here")
                    .help(format!("a block is written `{name} {{ ... }}`")),
                vec![Edit::Insert(keyword.end, " {")],
            )
        }));
    }
    match open.last() {
        Some(innermost) if has_brace => {
            let mut problem = never_closed(tokens, index, Some(*innermost));
            let name = tokens[index].span.to(tokens[index + length - 1].span);
            problem.diagnostic = problem
                .diagnostic
                .note(name, "a block cannot be inside another");
            Err(problem)
        }
        _ => Ok(()),
    }
}

/// How many words the keyword of a block takes up at this place.
fn block_keyword(tokens: &[Token<'_>], index: usize) -> Option<usize> {
    let word = |place: usize| {
        tokens
            .get(place)
            .filter(|token| token.kind == TokenKind::Word)
            .map(|token| token.text)
    };
    let first = word(index)?;
    // The second word of `transformed parameters` is not a block of its own.
    if matches!(
        index.checked_sub(1).and_then(word),
        Some("transformed" | "generated")
    ) {
        return None;
    }
    if words::block_kind(&[first]).is_some() {
        return Some(1);
    }
    words::block_kind(&[first, word(index + 1)?]).map(|_| 2)
}

fn too_deep(span: Span) -> Box<Problem> {
    Box::new(Problem::new(
        Diagnostic::error(
            "S008",
            span,
            format!("brackets, blocks and bodies are nested more than {DEEPEST} deep"),
        )
        .label("too deep here")
        .help("give a name to an inner part, in a variable or a function of its own"),
        vec![],
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn message(source: &str) -> Option<String> {
        let (tokens, _) = tokens(source);
        brackets(&tokens).err().map(|p| p.diagnostic.message)
    }

    fn statement_at(source: &str, word: &str) -> String {
        let (tokens, _) = tokens(source);
        let brackets = brackets(&tokens).ok().expect("brackets match");
        let index = tokens
            .iter()
            .position(|token| token.text == word)
            .expect("the word is there");
        let (first, last) = brackets.statement(&tokens, index).expect("a statement");
        source[tokens[first].span.start..tokens[last].span.end].to_owned()
    }

    #[test]
    fn matched_brackets_pass() {
        assert_eq!(
            message("model { x[1] = f({1, 2}, {{3}}); for (i in {1}) { } }"),
            None
        );
        assert_eq!(message(""), None);
    }

    #[test]
    fn each_unmatched_bracket_is_said() {
        assert_eq!(
            message("model { if (x { y = 1; } }").as_deref(),
            Some("`)` is missing")
        );
        assert_eq!(
            message("model { x = (1; }").as_deref(),
            Some("`)` is missing")
        );
        assert_eq!(
            message("model { x = a[1; }").as_deref(),
            Some("`]` is missing")
        );
        assert_eq!(message("model { x = 1;").as_deref(), Some("`}` is missing"));
        assert_eq!(
            message("model { x = 1); }").as_deref(),
            Some("this `)` closes nothing")
        );
        assert_eq!(
            message("model { } }").as_deref(),
            Some("this `}` closes nothing")
        );
        assert_eq!(
            message("model { x = a[1); }").as_deref(),
            Some("`[` is closed by `)`")
        );
        assert_eq!(
            message("record { int y; model { }").as_deref(),
            Some("`}` is missing")
        );
        assert_eq!(
            message("model y = 1; }").as_deref(),
            Some("`{` is missing after `model`")
        );
    }

    #[test]
    fn depth_is_limited_however_it_is_made() {
        let too_deep = Some(format!(
            "brackets, blocks and bodies are nested more than {DEEPEST} deep"
        ));
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("a[", "1", "]"),
            ("f(", "1", ")"),
            ("{", "1", "}"),
            ("a ? ", "1", ": b"),
        ] {
            let nested = |depth| {
                let source = format!(
                    "model {{ x = {}{middle}{}; }}",
                    open.repeat(depth),
                    close.repeat(depth)
                );
                message(&source)
            };
            assert_eq!(nested(DEEPEST - 10), None, "{open}");
            assert_eq!(nested(DEEPEST + 1), too_deep, "{open}");
            assert_eq!(nested(100_000), too_deep, "{open}");
        }
        let bodies = format!("model {{ {} ; }}", "if (a) ".repeat(1_000));
        assert_eq!(message(&bodies), too_deep);
        let chain = format!("model {{ {} ; }}", "if (a) ; else ".repeat(1_000));
        assert_eq!(message(&chain), too_deep);
    }

    #[test]
    fn statements_have_ends() {
        let source = "model { a = 1; b = f({2}, x); for (i in 1:3) { c = 4; } if (d) e = 1; else { g = 2; } h = 3 }";
        assert_eq!(statement_at(source, "a"), "a = 1;");
        assert_eq!(statement_at(source, "x"), "b = f({2}, x);");
        assert_eq!(statement_at(source, "c"), "c = 4;");
        assert_eq!(statement_at(source, "i"), "for (i in 1:3) { c = 4; }");
        assert_eq!(statement_at(source, "d"), "if (d) e = 1; else { g = 2; }");
        assert_eq!(statement_at(source, "h"), "h = 3");
    }
}

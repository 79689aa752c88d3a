//! Completions: the words that may be written at a place.
//!
//! The words and marks before the place say what is wanted, since the program is unfinished there;
//! the names are those of the rest of it.

use super::describe;
use super::document::Document;
use super::names::{Symbol, as_distribution};
use crate::check::Role;
use crate::distribution::{FAMILIES, signatures_in_words};
use crate::function::catalogue::functions;
use crate::syntax::{BaseType, BlockKind, ConstraintKind, OPENING, Piece, Span, pieces};

/// The kind of a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Variable(Role),
    OwnFunction,
    Distribution,
    Block,
    Type,
    Keyword,
    Function,
}

#[derive(Debug)]
pub(super) struct Candidate {
    pub label: String,
    pub kind: Kind,
    /// One line.
    pub detail: String,
    /// Markdown.
    pub documentation: Option<String>,
}

/// The candidates for the place of `span`, whose text is the part that has been written.
#[derive(Debug, Default)]
pub(super) struct Completions {
    pub span: Span,
    pub candidates: Vec<Candidate>,
}

pub(super) fn completions(document: &Document, offset: usize) -> Completions {
    let source = document.source();
    let offset = source.floor_char_boundary(offset);
    let written = source[..offset]
        .bytes()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
        .count();
    let start = offset - written;
    let Some(tokens) = tokens(&source[..start]) else {
        return Completions::default();
    };
    if source[start..].starts_with(|c: char| c.is_ascii_digit()) && written > 0 {
        return Completions::default();
    }
    let mut found = Completions {
        span: Span::new(start, offset),
        candidates: Vec::new(),
    };
    let Some((block, depth)) = block(&tokens) else {
        if let Some((word @ ("transformed" | "generated"), at)) = tokens.last() {
            found.span.start = *at;
            found.blocks(document, word);
        } else {
            found.blocks(document, "");
        }
        return found;
    };
    let last = tokens.last().map_or("", |token| token.0);
    if last == "~" {
        found.distributions(document);
    } else if in_constraints(&tokens) {
        let kinds = [
            ConstraintKind::Lower,
            ConstraintKind::Upper,
            ConstraintKind::Offset,
            ConstraintKind::Multiplier,
        ];
        found.words(Kind::Keyword, kinds.map(ConstraintKind::keyword));
    } else if is_type(last) || last == "void" {
        // The name of something new.
    } else if matches!(last, "{" | "}" | ";" | "else") {
        found.words(Kind::Type, BaseType::ALL.map(BaseType::keyword));
        found.words(Kind::Type, ["array"]);
        match block {
            BlockKind::Functions if depth == 1 => found.words(Kind::Type, ["void"]),
            BlockKind::Constants | BlockKind::Record | BlockKind::Parameters => {}
            _ => {
                found.words(Kind::Keyword, OPENING);
                found.names(document, offset, block);
            }
        }
    } else {
        found.names(document, offset, block);
        found.functions(block);
    }
    found
}

/// The words and marks of a text with their places; `None` where it ends within a comment or a
/// text.
fn tokens(before: &str) -> Option<Vec<(&str, usize)>> {
    let mut tokens = Vec::new();
    for (piece, span) in pieces(before) {
        let text = &before[span.range()];
        let is_last = span.end == before.len();
        match piece {
            Piece::Comment if !is_last => {}
            Piece::Comment if text.starts_with("/*") && text.len() > 3 && text.ends_with("*/") => {}
            Piece::Comment => return None,
            Piece::Plain if text.trim().is_empty() => {}
            // A mark that opens a text which no other closes.
            Piece::Plain if text.contains('"') && is_last => return None,
            _ => tokens.push((text, span.start)),
        }
    }
    Some(tokens)
}

/// The block that is open at the end, and how many braces are.
fn block(tokens: &[(&str, usize)]) -> Option<(BlockKind, usize)> {
    let mut open: Option<(BlockKind, usize)> = None;
    for (i, &(token, _)) in tokens.iter().enumerate() {
        match token {
            "{" => {
                let words = |count: usize| -> String {
                    let words = &tokens[i.saturating_sub(count)..i];
                    words.iter().map(|w| w.0).collect::<Vec<_>>().join(" ")
                };
                let (two, one) = (words(2), words(1));
                let opens = |words: &str| BlockKind::ALL.into_iter().find(|k| k.keyword() == words);
                // These words are no names, so that this is a block although the last is unclosed.
                match (opens(&two).or_else(|| opens(&one)), &mut open) {
                    (Some(kind), open) => *open = Some((kind, 1)),
                    (None, Some((_, depth))) => *depth += 1,
                    (None, None) => {}
                }
            }
            "}" => {
                open = open.and_then(|(kind, depth)| Some((kind, depth.checked_sub(1)?)));
                open = open.filter(|(_, depth)| *depth > 0);
            }
            _ => {}
        }
    }
    open
}

fn is_type(word: &str) -> bool {
    word == "array" || BaseType::ALL.iter().any(|base| base.keyword() == word)
}

/// Whether a constraint is wanted: after `real<` and after `real<lower=0,`.
fn in_constraints(tokens: &[(&str, usize)]) -> bool {
    if !matches!(tokens.last(), Some(("<" | ",", _))) {
        return false;
    }
    let mut closed = 0;
    for (i, (token, _)) in tokens.iter().enumerate().rev() {
        match *token {
            ")" | "]" => closed += 1,
            "(" | "[" if closed == 0 => return false,
            "(" | "[" => closed -= 1,
            "<" if closed == 0 => return i > 0 && is_type(tokens[i - 1].0),
            ";" | "{" | "}" | ">" => return false,
            _ => {}
        }
    }
    false
}

impl Completions {
    fn words<'a>(&mut self, kind: Kind, words: impl IntoIterator<Item = &'a str>) {
        let candidates = words.into_iter().map(|word| Candidate {
            label: word.to_owned(),
            kind,
            detail: String::new(),
            documentation: None,
        });
        self.candidates.extend(candidates);
    }

    /// The blocks that begin with this word and are not there.
    fn blocks(&mut self, document: &Document, word: &str) {
        let program = document.examined.program.as_ref();
        let is_there = |kind: &BlockKind| {
            program.is_some_and(|p| {
                p.blocks.iter().any(|b| b.kind == *kind)
                    || *kind == BlockKind::Functions && p.functions_span.is_some()
            })
        };
        let missing = BlockKind::ALL.into_iter().filter(|kind| !is_there(kind));
        let keywords = missing.map(BlockKind::keyword);
        self.words(Kind::Block, keywords.filter(|k| k.starts_with(word)));
    }

    fn distributions(&mut self, document: &Document) {
        for symbol in document.names.symbols.iter().filter(|s| s.role.is_none()) {
            if let Some(name) = as_distribution(&symbol.name) {
                self.symbol(document, symbol, name, Kind::Distribution);
            }
        }
        for (index, family) in FAMILIES.iter().enumerate() {
            self.candidates.push(Candidate {
                label: family.name().to_owned(),
                kind: Kind::Distribution,
                detail: family.signature(),
                documentation: Some(describe::family(index)),
            });
        }
    }

    /// Adds the names that the program declares, without private ones where everything is public.
    fn names(&mut self, document: &Document, offset: usize, block: BlockKind) {
        let public = matches!(
            block,
            BlockKind::Parameters
                | BlockKind::TransformedParameters
                | BlockKind::GeneratedQuantities
        );
        for symbol in document.names.visible(offset) {
            if public && document.stage(symbol).is_private() {
                continue;
            }
            let kind = symbol.role.map_or(Kind::OwnFunction, Kind::Variable);
            self.symbol(document, symbol, &symbol.name, kind);
        }
    }

    fn symbol(&mut self, document: &Document, symbol: &Symbol, label: &str, kind: Kind) {
        self.candidates.push(Candidate {
            label: label.to_owned(),
            kind,
            detail: describe::heading(document, symbol),
            documentation: Some(describe::symbol(document, symbol)),
        });
    }

    /// The functions of the language; those that draw, where something may be drawn.
    fn functions(&mut self, block: BlockKind) {
        let mut labels: Vec<&str> = functions().iter().map(|f| f.name).collect();
        labels.sort_unstable();
        labels.dedup();
        let draws = matches!(
            block,
            BlockKind::GeneratedQuantities | BlockKind::TransformedConstants | BlockKind::Functions
        );
        let of_families: Vec<String> = (0..FAMILIES.len())
            .flat_map(signatures_in_words)
            .filter_map(|line| Some(line.split_once('(')?.0.rsplit_once(' ')?.1.to_owned()))
            .filter(|name| {
                name.ends_with("pdf")
                    || name.ends_with("pmf")
                    || name.contains("cdf")
                    || draws && name.ends_with("_rng")
            })
            .collect();
        for label in labels
            .into_iter()
            .chain(of_families.iter().map(String::as_str))
        {
            self.candidates.push(Candidate {
                label: label.to_owned(),
                kind: Kind::Function,
                detail: String::new(),
                documentation: describe::function(label),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that a completion at the mark would replace, and the candidates.
    fn offered(marked: &str) -> (String, Vec<String>) {
        let offset = marked.find('@').expect("a mark");
        let document = Document::new(marked.replace('@', ""));
        let found = completions(&document, offset);
        let labels = found.candidates.into_iter().map(|c| c.label);
        (
            document.source()[found.span.range()].to_owned(),
            labels.collect(),
        )
    }

    fn has(marked: &str, wanted: &[&str], unwanted: &[&str]) {
        let (_, labels) = offered(marked);
        for word in wanted {
            assert!(
                labels.iter().any(|l| l == word),
                "{marked}: no {word} in {labels:?}"
            );
        }
        for word in unwanted {
            assert!(!labels.iter().any(|l| l == word), "{marked}: {word}");
        }
    }

    const HEAD: &str = "functions { real mine_lpdf(real y, real m) { return -m; } }
record { real<lower=0, upper=1> age; }
parameters { real mu; }
";

    #[test]
    fn an_unfinished_program_says_what_may_follow() {
        let at = |rest: &str| format!("{HEAD}{rest}");
        has(
            &at("model { age ~ nor@"),
            &["normal", "mine"],
            &["exp", "mu", "mine_lpdf"],
        );
        has(
            &at("model { age ~ normal(m@"),
            &["mu", "age", "exp", "normal_lpdf"],
            &["normal", "normal_rng", "real"],
        );
        has(
            &at("model { @ }"),
            &["real", "for", "target", "mu"],
            &["exp"],
        );
        has(&at("model { real x = 1; x@"), &["x", "mu"], &[]);
        has(
            &at("model { { real x = 1; } mu ~ normal(@, 1); }"),
            &["mu"],
            &["x"],
        );
        has(
            &at("transformed parameters { real b = @"),
            &["mu", "exp"],
            &["age"],
        );
        has(
            &at("mod@"),
            &["model", "generated quantities"],
            &["record", "real"],
        );
        has(
            &at("generated quantities { real z = nor@"),
            &["normal_rng"],
            &[],
        );
        has("record { real<@", &["lower", "upper"], &["exp"]);
        has(
            "record { real<lower=fmin(0, 1), @> x; }",
            &["upper"],
            &["exp"],
        );
        has("record { real<lower=fmin(0, @", &["exp"], &["upper"]);
        has("record { @ }", &["real", "factor"], &["for"]);
        has("functions { @ }", &["void", "real"], &["for"]);
        has("@", &["record", "transformed parameters"], &["real"]);
        has(
            "record { real x; parameters { real y; model { x ~ @",
            &["normal"],
            &[],
        );
        assert_eq!(offered("transformed re@").0, "transformed re");
        assert_eq!(offered("transformed re@").1.len(), 3);
    }

    #[test]
    fn nothing_is_offered_in_comments_texts_and_numbers() {
        for marked in [
            "model { // a ~ @\n}",
            "model { /* a ~ @",
            "model { print(\"a ~ @\"); }",
            "model { mu ~ normal(1e@",
            "parameters { real a@",
            "\u{1F600} // @",
        ] {
            assert_eq!(offered(marked).1, [""; 0], "{marked}");
        }
        has("model { /**/ mu ~ @", &["normal"], &[]);
        has("model { print(\"a\", @", &["exp"], &[]);
    }
}

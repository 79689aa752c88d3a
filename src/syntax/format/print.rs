//! From a document to lines.

use super::document::Document;
use super::source::{Comment, Position, lines};

const STEP: usize = 2;

/// Blanks before a comment at the end of a line, at least.
const BEFORE_COMMENT: usize = 2;

/// Comments on neighbouring lines are aligned when their code differs by no more.
const ALIGNED_WITHIN: usize = 30;

/// The document with lines of at most `width` characters where that is possible.
pub(super) fn print(document: &Document<'_>, width: usize) -> String {
    let mut printer = Printer {
        width,
        text: String::new(),
        line_start: 0,
        column: 0,
        indent: 0,
        line_indent: 0,
        begun: false,
        only_comments: true,
        comment: Before::Nothing,
        line: 0,
        marks: Vec::new(),
    };
    printer.run(document);
    printer.end_line();
    align(&printer.text, &printer.marks)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Flat,
    Broken,
}

/// The kind of comment that was written last, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// The same line continues.
    Inline,
    /// Nothing more fits on the line.
    WholeLine,
}

struct Printer {
    width: usize,
    text: String,
    /// Where the current line begins in `text`.
    line_start: usize,
    /// Characters on the current line.
    column: usize,
    /// The indent of the part of the document that is being printed.
    indent: usize,
    /// The indent of the current line.
    line_indent: usize,
    /// Whether anything, including the indent, is on the current line.
    begun: bool,
    /// Whether the current line has only comments.
    only_comments: bool,
    comment: Before,
    /// Number of the current line, from zero.
    line: usize,
    marks: Vec<Mark>,
}

/// A `//` comment after code, or below one.
struct Mark {
    line: usize,
    /// Byte of the line at which the comment begins.
    start: usize,
    indent: usize,
    continues: bool,
}

impl Printer {
    fn run(&mut self, document: &Document<'_>) {
        let mut rest = vec![(0, Mode::Broken, document)];
        while let Some((indent, mode, document)) = rest.pop() {
            self.indent = indent;
            match document {
                Document::Text(text) => self.word(text),
                Document::Space => self.space(),
                Document::Line if mode == Mode::Flat => self.space(),
                Document::Soft if mode == Mode::Flat => {}
                Document::Line | Document::Soft | Document::Hard => self.new_line(indent),
                Document::Blank => {
                    self.new_line(indent);
                    self.new_line(indent);
                }
                Document::Comment(comment) => self.comment(comment),
                Document::Sequence(parts) => {
                    rest.extend(parts.iter().rev().map(|part| (indent, mode, part)));
                }
                Document::Indent(content) => rest.push((indent + STEP, mode, content)),
                Document::Group { content, breaks } => {
                    let flat = !breaks && (mode == Mode::Flat || self.fits(content, &rest));
                    let mode = if flat { Mode::Flat } else { Mode::Broken };
                    rest.push((indent, mode, content));
                }
            }
        }
    }

    /// Whether the content, and the rest up to the next possible line break, fits on the line.
    fn fits(&self, content: &Document<'_>, rest: &[(usize, Mode, &Document<'_>)]) -> bool {
        let column = if self.begun {
            self.column
        } else {
            self.line_indent
        };
        let Some(mut left) = self.width.checked_sub(column) else {
            return false;
        };
        let mut inside = vec![(Mode::Flat, content)];
        let mut outside = rest.iter().rev();
        loop {
            let (mode, document) = match inside.pop() {
                Some(next) => next,
                None => match outside.next() {
                    Some((_, mode, document)) => (*mode, *document),
                    None => return true,
                },
            };
            let width = match document {
                Document::Text(text) => text.chars().count(),
                Document::Comment(comment) => match comment.position {
                    // Comments at the ends of lines may have any length.
                    _ if comment.is_line() => return true,
                    Position::OwnLine => return true,
                    // Up to its first line break, if it has one.
                    _ => match lines(comment.text).next().unwrap_or_default() {
                        all if all.len() == comment.text.len() => 1 + all.chars().count(),
                        first => return first.chars().count() < left,
                    },
                },
                Document::Space => 1,
                Document::Line if mode == Mode::Flat => 1,
                Document::Soft if mode == Mode::Flat => 0,
                Document::Line | Document::Soft | Document::Hard | Document::Blank => return true,
                Document::Sequence(parts) => {
                    inside.extend(parts.iter().rev().map(|part| (mode, part)));
                    0
                }
                Document::Indent(content) => {
                    inside.push((mode, content));
                    0
                }
                Document::Group { content, breaks } => {
                    inside.push((if *breaks { Mode::Broken } else { mode }, content));
                    0
                }
            };
            match left.checked_sub(width) {
                Some(less) => left = less,
                None => return false,
            }
        }
    }

    fn word(&mut self, text: &str) {
        self.make_room();
        if self.comment == Before::Inline && !matches!(text, "," | ";" | ")" | "]" | ">") {
            self.space();
        }
        self.comment = Before::Nothing;
        self.only_comments = false;
        self.push(text);
    }

    fn space(&mut self) {
        if self.begun && self.comment != Before::WholeLine && !self.text.ends_with(' ') {
            self.push(" ");
        }
    }

    /// After a comment that takes the rest of its line, begins the next line: below the comment if
    /// that is alone, otherwise indented as a continuation.
    fn make_room(&mut self) {
        if self.comment == Before::WholeLine {
            let indent = if self.only_comments {
                self.line_indent
            } else {
                self.indent + STEP
            };
            self.new_line(indent);
        }
    }

    fn comment(&mut self, comment: &Comment<'_>) {
        match comment.position {
            Position::Trailing if comment.is_line() => {
                self.make_room();
                self.push(if self.begun { "  " } else { "" });
                self.mark(false);
            }
            Position::Continuation => {
                self.make_room();
                self.begin();
                self.mark(true);
            }
            Position::OwnLine => {
                self.make_room();
                if self.only_comments && comment.newlines == 0 {
                    self.space();
                } else if self.begun {
                    self.new_line(self.indent + STEP);
                }
            }
            Position::Trailing | Position::Inline => {
                self.make_room();
                if !self.text.ends_with(['(', '[']) {
                    self.space();
                }
            }
        }
        self.begin();
        let shift = (comment.column, self.column);
        let (alone, indent) = (self.only_comments, self.line_indent);
        for (index, line) in shifted(comment.text, shift).into_iter().enumerate() {
            if index > 0 {
                self.new_line(0);
                self.begun = true;
            }
            self.push(line.trim_end());
        }
        (self.only_comments, self.line_indent) = (alone, indent);
        let whole = comment.is_line() || comment.position == Position::OwnLine;
        self.comment = if whole {
            Before::WholeLine
        } else {
            Before::Inline
        };
    }

    fn mark(&mut self, continues: bool) {
        if !self.only_comments || continues {
            self.marks.push(Mark {
                line: self.line,
                start: self.text.len() - self.line_start,
                indent: self.line_indent,
                continues,
            });
        }
    }

    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            self.column = self.line_indent;
            self.text.extend(std::iter::repeat_n(' ', self.line_indent));
        }
    }

    fn push(&mut self, text: &str) {
        self.begin();
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn new_line(&mut self, indent: usize) {
        self.end_line();
        self.line_indent = indent;
    }

    /// There is nothing before the first line, and no line ends with blanks.
    fn end_line(&mut self) {
        self.comment = Before::Nothing;
        self.only_comments = true;
        self.begun = false;
        self.column = 0;
        let end = self.text.trim_end_matches(' ').len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
            self.line += 1;
        }
        self.line_start = self.text.len();
    }
}

/// The lines of a comment that moves from one column to another. The lines after
/// the first move with it; those of a comment with a star before each line are placed below its
/// star.
fn shifted(text: &str, (from, to): (usize, usize)) -> Vec<String> {
    let stars = lines(text)
        .skip(1)
        .all(|line| line.trim_start().starts_with('*'));
    let shift = |(index, line): (usize, &str)| -> String {
        if index == 0 {
            return line.to_owned();
        }
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        let words = &line[blanks..];
        if stars {
            return " ".repeat(to + 1) + words;
        }
        match to.checked_sub(from) {
            Some(more) => " ".repeat(more) + line,
            None => line[blanks.min(from - to)..].to_owned(),
        }
    };
    lines(text).enumerate().map(shift).collect()
}

/// Puts the comments at the ends of neighbouring lines below one another.
fn align(text: &str, marks: &[Mark]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut rest = marks;
    while !rest.is_empty() {
        let run = run_of(rest, &lines);
        let (now, later) = rest.split_at(run);
        rest = later;
        let column = now
            .iter()
            .filter(|mark| !mark.continues)
            .map(|mark| code(mark, &lines).chars().count() + BEFORE_COMMENT)
            .max()
            .unwrap_or(0);
        for mark in now {
            let code = code(mark, &lines).to_owned();
            let comment = lines[mark.line][mark.start..].to_owned();
            let blanks = column.saturating_sub(code.chars().count());
            lines[mark.line] = format!("{code}{}{comment}", " ".repeat(blanks));
        }
    }
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

/// How many of the first marks are aligned with one another.
fn run_of(marks: &[Mark], lines: &[String]) -> usize {
    let width = |mark: &Mark| code(mark, lines).chars().count();
    let first = &marks[0];
    let (mut least, mut most) = (width(first), width(first));
    let mut count = 1;
    for pair in marks.windows(2) {
        let (before, next) = (&pair[0], &pair[1]);
        if next.line != before.line + 1 {
            break;
        }
        if !next.continues {
            if next.indent != first.indent {
                break;
            }
            least = least.min(width(next));
            most = most.max(width(next));
            if most - least > ALIGNED_WITHIN {
                break;
            }
        }
        count += 1;
    }
    count
}

fn code<'l>(mark: &Mark, lines: &'l [String]) -> &'l str {
    lines[mark.line][..mark.start].trim_end()
}

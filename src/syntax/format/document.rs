//! A text with the places where it may be broken into lines (Wadler 2003, "A
//! prettier printer").

use super::source::{Comment, Position};

#[derive(Debug)]
pub(super) enum Document<'a> {
    Text(&'a str),
    /// A blank where no line may be broken.
    Space,
    /// A blank, or a line break where the group does not fit into the line.
    Line,
    /// Nothing, or a line break.
    Soft,
    /// A line break.
    Hard,
    /// A line break and an empty line.
    Blank,
    Comment(Comment<'a>),
    Sequence(Vec<Document<'a>>),
    /// Lines that begin inside are indented by one more step.
    Indent(Box<Document<'a>>),
    /// On one line if it fits; otherwise all its own lines are broken.
    Group {
        content: Box<Document<'a>>,
        /// Whether something inside does not fit on one line.
        breaks: bool,
    },
}

impl<'a> Document<'a> {
    pub(super) fn indent(parts: Vec<Document<'a>>) -> Self {
        Document::Indent(Box::new(Document::Sequence(parts)))
    }

    pub(super) fn group(parts: Vec<Document<'a>>) -> Self {
        let content = Document::Sequence(parts);
        Document::Group {
            breaks: content.breaks(),
            content: Box::new(content),
        }
    }

    /// A group that is on one line except for the contents of its brackets.
    pub(super) fn chain(parts: Vec<Document<'a>>) -> Self {
        let content = Document::Sequence(parts);
        Document::Group {
            breaks: content.breaks_outside_of_groups(),
            content: Box::new(content),
        }
    }

    fn breaks_outside_of_groups(&self) -> bool {
        match self {
            Document::Group { .. } => false,
            Document::Sequence(parts) => parts.iter().any(Document::breaks_outside_of_groups),
            Document::Indent(content) => content.breaks_outside_of_groups(),
            other => other.breaks(),
        }
    }

    fn breaks(&self) -> bool {
        match self {
            Document::Hard | Document::Blank => true,
            Document::Comment(comment) => {
                comment.is_line()
                    || comment.position == Position::OwnLine
                    || comment.text.contains(['\n', '\r'])
            }
            Document::Sequence(parts) => parts.iter().any(Document::breaks),
            Document::Indent(content) => content.breaks(),
            Document::Group { breaks, .. } => *breaks,
            Document::Text(_) | Document::Space | Document::Line | Document::Soft => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_knows_whether_it_can_stand_on_one_line() {
        let breaks = |parts| match Document::group(parts) {
            Document::Group { breaks, .. } => breaks,
            _ => unreachable!(),
        };
        let comment = |text, position| {
            Document::Comment(Comment {
                text,
                column: 0,
                newlines: 0,
                position,
            })
        };
        assert!(!breaks(vec![Document::Text("a"), Document::Line]));
        assert!(!breaks(vec![comment("/* a */", Position::Inline)]));
        assert!(breaks(vec![comment("/* a\n */", Position::Inline)]));
        assert!(breaks(vec![Document::indent(vec![comment(
            "// a",
            Position::Trailing
        )])]));
        assert!(breaks(vec![Document::group(vec![Document::Hard])]));
    }
}

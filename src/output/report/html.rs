//! Markup, written so that no text from a file can become part of it.
//!
//! Tags and names of attributes are literals of this program; every text and every value of an
//! attribute is escaped when it is added. There is no way to add markup as text.

use std::fmt::{self, Display, Write};

/// HTML, or SVG inside it, under construction. Elements are well-formed: they are closed in the
/// reverse order of their opening.
#[derive(Debug, Default)]
pub(super) struct Html {
    text: String,
}

/// Name and value.
pub(super) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Html {
    pub fn new() -> Html {
        Html::default()
    }

    pub fn finish(self) -> String {
        self.text
    }

    /// An element around the output of `content`.
    pub fn within(
        &mut self,
        tag: &'static str,
        attributes: &[Attribute],
        content: impl FnOnce(&mut Html),
    ) {
        self.start(tag, attributes);
        self.text.push('>');
        content(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    /// An element with only text.
    pub fn element(&mut self, tag: &'static str, attributes: &[Attribute], text: impl Display) {
        self.within(tag, attributes, |h| h.text(text));
    }

    /// An element without content: `<br/>`, `<path d=".."/>`.
    pub fn empty(&mut self, tag: &'static str, attributes: &[Attribute]) {
        self.start(tag, attributes);
        self.text.push_str("/>");
    }

    pub fn text(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(Escaped(&mut self.text), "{text}");
    }

    /// Text with code between `backquotes`, as messages have it.
    pub fn prose(&mut self, text: &str) {
        for (i, part) in text.split('`').enumerate() {
            match i % 2 {
                0 => self.text(part),
                _ => self.element("code", &[], part),
            }
        }
    }

    /// A line feed between elements, for readers of the source.
    pub fn line(&mut self) {
        self.text.push('\n');
    }

    /// A style sheet of this program's own.
    pub fn style(&mut self, sheet: &'static str) {
        self.text.push_str("<style>");
        self.text.push_str(sheet);
        self.text.push_str("</style>");
    }

    fn start(&mut self, tag: &'static str, attributes: &[Attribute]) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            let _ = write!(Escaped(&mut self.text), "{value}");
            self.text.push('"');
        }
    }
}

/// Escapes text, for use between tags and between quotation marks. Characters that are not allowed
/// in a page become the replacement character.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(c),
                c if c.is_control() || is_invisible(c) => self.0.push('\u{FFFD}'),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Marks that reverse the direction of text, with which a program could show other text than it
/// contains (CVE-2021-42574), and characters not allowed in XML.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FFFE}' | '\u{FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: a model's text could run a script in the officer's browser.
    #[test]
    fn text_and_values_stay_what_they_are() {
        let mut h = Html::new();
        h.within("p", &[("title", &"\"><script>'")], |h| {
            h.text("</p>&amp;\u{0}\u{202E}<!--");
            h.empty("br", &[]);
        });
        assert_eq!(
            h.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;&#39;\">&lt;/p&gt;&amp;amp;\u{FFFD}\u{FFFD}&lt;!--<br/></p>"
        );
    }
}

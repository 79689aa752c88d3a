//! The language server: what an editor shows of a program while it is written.
//!
//! The features are functions of a [`document`](document::Document) and a place in it, in bytes:
//! `names` resolves, `describe`, `completion`, `rename` and `outline` answer, and `bound` knows
//! what the constants add. `text` counts as the editor does, `protocol` puts answers into the
//! protocol's words, and `server` speaks it. Nothing here reads records: the room stands before
//! `density`.

mod bound;
mod completion;
mod describe;
mod document;
mod names;
mod outline;
mod protocol;
mod rename;
mod server;
mod text;

pub use server::{End, serve};

#[cfg(test)]
mod tests {
    use super::document::Document;
    use super::{completion, describe, outline, rename};

    /// A program is in every state on its way to the last letter.
    #[test]
    fn every_beginning_of_a_program_has_answers() {
        let program =
            "functions { real f(real x) { return x'; } }\r\nrecord { factor(\"a\u{1F600}\") g; }
parameters { array[2] vector<lower=0>[3] a; } model { for (i in 1:2) a[i] ~ normal(f(1), 2) T[0, ];
  target += normal_lpdf(a[g] | 0, 1); } // \u{e9}";
        for end in (0..program.len()).filter(|&end| program.is_char_boundary(end)) {
            let document = Document::new(program[..end].to_owned());
            for offset in [end, end / 2] {
                describe::hover(&document, offset);
                let found = completion::completions(&document, offset);
                assert!(program.get(found.span.range()).is_some());
                let _ = rename::rename(&document, offset, "another_name");
            }
            outline::outline(&document);
        }
    }
}

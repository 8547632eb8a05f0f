//! Sentences about where the time went.

use fathom_query::escape::{self, wrap};
use fathom_why::Story;

/// The sentences of a story, each on lines of its own, at most `width` characters wide. Nothing
/// that the recorded program controls reaches the terminal unescaped.
pub fn story_to_text(story: &Story, width: usize) -> String {
    let mut out = String::new();
    for sentence in &story.sentences {
        for line in lines(&sentence.text(), width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// A sentence in lines.
pub(super) fn lines(sentence: &str, width: usize) -> Vec<String> {
    wrap(&escape::text(sentence), width)
}

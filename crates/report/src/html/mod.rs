//! The report as one HTML file: no script, nothing loaded from elsewhere.
//!
//! Written with format strings: what a template (maud) escapes by itself leaves characters that
//! reorder or hide text, so each text would have to go through [`escape_html`] all the same.

mod findings;
mod page;
mod plots;

pub use page::to_html;

use fathom_query::escape;

/// `text` for element content and quoted attributes; characters that reorder
/// or hide text are written out, as on a terminal.
fn escape_html(text: &str) -> String {
    let text = escape::text(text);
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape_html("<a b='\"'>&\u{1b}\n\u{202e}"),
            "&lt;a b=&#39;&quot;&#39;&gt;&amp;\\x1b\\n\\u{202e}"
        );
    }
}

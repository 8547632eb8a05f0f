//! Quoting for SQL and JSON; what makes text safe to show is [`fathom_model::escape`].

use std::fmt::Write as _;

pub use fathom_model::escape::*;

/// `text` as an SQL string literal.
pub fn sql_string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `name` as an SQL identifier.
pub fn sql_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Appends `json` with the characters that a terminal may act on as `\uXXXX`. JSON has them in
/// strings only, so that they can be replaced wherever they stand.
pub fn push_json(json: &str, out: &mut String) {
    for c in json.chars() {
        if is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_quotes_are_doubled() {
        assert_eq!(sql_string("a'b\"c"), "'a''b\"c'");
        assert_eq!(sql_name("a'b\"c"), "\"a'b\"\"c\"");
    }

    #[test]
    fn sequences_of_one_character_are_escaped() {
        let mut out = String::new();
        push_json("\"a\u{9b}\u{7f}ü\"", &mut out);
        assert_eq!(out, "\"a\\u009b\\u007fü\"");
    }
}

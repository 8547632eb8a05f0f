//! Quoting for SQL; what makes text safe to show is [`fathom_model::escape`].

pub use fathom_model::escape::*;

/// `text` as an SQL string literal.
pub fn sql_string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `name` as an SQL identifier.
pub fn sql_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_quotes_are_doubled() {
        assert_eq!(sql_string("a'b\"c"), "'a''b\"c'");
        assert_eq!(sql_name("a'b\"c"), "\"a'b\"\"c\"");
    }
}

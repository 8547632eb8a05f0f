//! The policy that confines SQL to its session.
//!
//! Three locks, each of which is enough for most attempts:
//!
//! 1. The database is in memory, external access is off but for the session's
//!    own Parquet files, extensions are neither installed nor loaded, and the
//!    configuration is locked.
//! 2. The text must be one statement that selects, in the judgment of the
//!    database's own parser: `COPY ... TO` would overwrite an allowed file.
//! 3. Table functions are listed by name. Some act as they are read
//!    (`enable_logging` writes files, `query` runs text that was not checked),
//!    and what a later version of the database adds is not known.

use std::collections::BTreeSet;

use duckdb::Connection;
use serde_json::Value;

use crate::error::message;
use crate::{PathCall, QueryError, escape, mistaken, paths};

/// Table functions that compute, or that describe this database.
const TABLE_FUNCTIONS: &[&str] = &[
    paths::NAME,
    "duckdb_columns",
    "duckdb_functions",
    "duckdb_keywords",
    "duckdb_memory",
    "duckdb_settings",
    "duckdb_tables",
    "duckdb_types",
    "duckdb_views",
    "generate_series",
    "json_each",
    "json_tree",
    "pg_timezone_names",
    "pragma_show",
    "pragma_table_info",
    "pragma_version",
    "range",
    "repeat",
    "repeat_row",
    "summary",
    "unnest",
];

/// Scalar functions that do more than compute.
const REFUSED_FUNCTIONS: &[&str] = &["getenv", "nextval", "setseed", "sleep_ms", "write_log"];

/// Brackets inside brackets in a parsed statement: more would put the stack at
/// risk, and no query written by hand comes near.
const MAX_DEPTH: usize = 1000;

/// A statement that is acceptable.
#[derive(Debug)]
pub(crate) struct Checked {
    /// Its text.
    pub sql: String,
    /// The critical paths that it asks for.
    pub paths: BTreeSet<PathCall>,
}

/// Checks that `sql` is acceptable.
pub(crate) fn check(connection: &Connection, sql: &str) -> Result<Checked, QueryError> {
    let (prefix, select) = split_explain(sql);
    if select.contains('\0') {
        return Err(QueryError::NotASelect(
            "the text holds a NUL character".into(),
        ));
    }
    // Fails on what is not a SELECT by saying so, not by an error.
    let parsed: String = connection
        .query_row("SELECT json_serialize_sql(?::VARCHAR)", [select], |row| {
            row.get(0)
        })
        .map_err(|e| QueryError::Sql(message(&e)))?;
    if depth(&parsed) > MAX_DEPTH {
        return Err(QueryError::NotASelect("it is nested too deeply".into()));
    }
    let mut reader = serde_json::Deserializer::from_str(&parsed);
    reader.disable_recursion_limit();
    let tree: Value = serde::Deserialize::deserialize(&mut reader)
        .map_err(|e| QueryError::NotASelect(format!("its parse tree cannot be read: {e}")))?;
    if tree.get("error") != Some(&Value::Bool(false)) {
        let text = tree
            .get("error_message")
            .and_then(Value::as_str)
            .unwrap_or("no SELECT");
        let text = escape::lines(text);
        return Err(match tree.get("error_type").and_then(Value::as_str) {
            Some("not implemented") => QueryError::NotASelect("this is another statement".into()),
            Some("parser") => {
                let position = tree.get("position").and_then(Value::as_str);
                let at = position.and_then(|position| position.parse().ok());
                QueryError::Sql(format!("Parser Error: {text}{}", excerpt(select, at)))
            }
            _ => QueryError::NotASelect(text),
        });
    }
    match tree
        .get("statements")
        .and_then(Value::as_array)
        .map(Vec::len)
    {
        Some(1) => {}
        Some(0) => return Err(QueryError::NotASelect("there is no statement".into())),
        _ => {
            return Err(QueryError::NotASelect(
                "there are several statements".into(),
            ));
        }
    }
    check_functions(&tree)?;
    Ok(Checked {
        sql: format!("{prefix}{select}"),
        paths: paths::calls(&tree)?,
    })
}

/// The line of a statement with the byte at which the parser stopped, marked as the database marks
/// it in other errors; and the likely reason.
fn excerpt(select: &str, at: Option<usize>) -> String {
    let Some((before, _)) = at.and_then(|at| select.split_at_checked(at)) else {
        return String::new();
    };
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let number = before.matches('\n').count() + 1;
    let line = select.get(start..).and_then(|rest| rest.lines().next());
    let head = format!("LINE {number}: ");
    let column = head.len() + before.get(start..).unwrap_or_default().chars().count();
    let mut out = format!(
        "\n\n{head}{}\n{}^",
        escape::lines(line.unwrap_or_default()),
        " ".repeat(column)
    );
    if let Some((keyword, column)) = mistaken::in_place_of_a_column(select, before.len()) {
        out.push_str(&format!(
            "\n{keyword} is a keyword of SQL: the column is called {column}"
        ));
    }
    out
}

/// `EXPLAIN` and `EXPLAIN ANALYZE` apart from what they explain: the parser's
/// check below takes the SELECT only.
fn split_explain(sql: &str) -> (&'static str, &str) {
    let Some(rest) = strip_word(sql, "explain") else {
        return ("", sql);
    };
    match strip_word(rest, "analyze") {
        Some(rest) => ("EXPLAIN ANALYZE ", rest),
        None => ("EXPLAIN ", rest),
    }
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_start();
    let (head, rest) = text.split_at_checked(word.len())?;
    (head.eq_ignore_ascii_case(word) && rest.starts_with(|c: char| c.is_whitespace()))
        .then_some(rest)
}

/// How deep brackets are nested in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn check_functions(node: &Value) -> Result<(), QueryError> {
    match node {
        Value::Array(items) => items.iter().try_for_each(check_functions),
        Value::Object(members) => {
            let name = |node: &Value| {
                node.get("function_name")
                    .and_then(Value::as_str)
                    .map(str::to_ascii_lowercase)
            };
            if members.get("type").and_then(Value::as_str) == Some("TABLE_FUNCTION") {
                let function = members.get("function").and_then(name).unwrap_or_default();
                if !TABLE_FUNCTIONS.contains(&function.as_str()) {
                    return Err(QueryError::Function(escape::text(&function).into_owned()));
                }
            }
            if let Some(function) = name(node)
                && REFUSED_FUNCTIONS.contains(&function.as_str())
            {
                return Err(QueryError::Function(function));
            }
            members.values().try_for_each(check_functions)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explain_is_taken_off() {
        assert_eq!(
            split_explain(" Explain\nselect 1"),
            ("EXPLAIN ", "\nselect 1")
        );
        assert_eq!(
            split_explain("EXPLAIN ANALYZE x"),
            ("EXPLAIN ANALYZE ", " x")
        );
        assert_eq!(split_explain("explained"), ("", "explained"));
        assert_eq!(split_explain("é"), ("", "é"));
    }

    #[test]
    fn syntax_errors_show_their_place() {
        assert_eq!(
            excerpt("SELECT rid,\n  offset, bytes", Some(20)),
            "\n\nLINE 2:   offset, bytes\n                ^\n\
             offset is a keyword of SQL: the column is called file_offset"
        );
        assert_eq!(
            excerpt("SELEC 1", Some(0)),
            "\n\nLINE 1: SELEC 1\n        ^"
        );
        assert_eq!(excerpt("SELECT é", Some(8)), "", "inside a character");
        assert_eq!(excerpt("SELECT", None), "");
    }

    #[test]
    fn depth_ignores_strings() {
        assert_eq!(depth(r#"{"a":["\"[[["]}"#), 2);
        assert_eq!(depth(""), 0);
    }
}

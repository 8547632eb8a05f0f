//! The named views: one file each in `sql/`, found by the build.
//!
//! A file begins with comments: what a row is, then `name: meaning` for each
//! column in order, long ones continued on lines that are indented further.

pub(crate) struct View {
    pub name: &'static str,
    /// The file.
    pub sql: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/views.rs"));

/// The statement that makes a view. It may be there if an earlier one was interrupted.
pub(crate) fn create_view(view: &View) -> String {
    format!("CREATE VIEW IF NOT EXISTS {} AS\n{}", view.name, view.sql)
}

/// Tables that have no parts.
pub(crate) const WITHOUT_PARTS: [&str; 2] = ["session", "findings"];

/// Names of the views, including the tables that have no parts.
pub fn view_names() -> impl Iterator<Item = &'static str> {
    let views = VIEWS.iter().map(|view| view.name);
    WITHOUT_PARTS.into_iter().chain(views)
}

/// A view as a query over the tables that it reads, without its comments: they may name other tables.
pub(crate) fn query_of(name: &str) -> String {
    let view = VIEWS.iter().find(|view| view.name == name);
    let lines = view.map_or("", |view| view.sql).lines();
    let code: Vec<&str> = lines
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    code.join("\n")
}

/// View `blame` as a query, of the waiting from `from_ns` to before `until_ns`, CLOCK_MONOTONIC
/// nanoseconds.
pub fn blame_between(from_ns: &str, until_ns: &str) -> String {
    query_of("blame")
        .replacen("-9223372036854775807", from_ns, 1)
        .replacen("9223372036854775807", until_ns, 1)
}

/// The parsed comments of a view.
#[derive(Clone, Debug, Default)]
pub struct Doc {
    /// The text before the first name.
    pub row: String,
    /// Name and meaning of each column.
    pub columns: Vec<(String, String)>,
}

impl View {
    /// The comments at the head of the file.
    pub fn doc(&self) -> Doc {
        parse_doc(self.sql)
    }
}

/// Parses the comments at the head of `sql`.
pub fn parse_doc(sql: &str) -> Doc {
    let mut doc = Doc {
        row: String::new(),
        columns: Vec::new(),
    };
    for line in sql.lines().map_while(|line| line.strip_prefix("--")) {
        let text = line.trim();
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        };
        match text.split_once(": ") {
            Some((name, meaning)) if is_name(name) && !line.starts_with("  ") => {
                doc.columns.push((name.to_string(), meaning.to_string()));
            }
            _ => {
                let target = doc
                    .columns
                    .last_mut()
                    .map_or(&mut doc.row, |(_, meaning)| meaning);
                if !target.is_empty() && !text.is_empty() {
                    target.push(' ');
                }
                target.push_str(text);
            }
        }
    }
    doc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_parsed() {
        let doc = parse_doc(
            "-- One row a thing,\n-- or two.\n--\n-- a: first\n--   goes on: here\n-- b_2: second\nSELECT 1 -- c: no\n",
        );
        assert_eq!(doc.row, "One row a thing, or two.");
        assert_eq!(
            doc.columns,
            [
                ("a".into(), "first goes on: here".into()),
                ("b_2".to_string(), "second".to_string())
            ]
        );
    }
}

//! The schema page: every table and view with its columns, from the same
//! definitions that the database is built from.

use std::fmt::Write as _;

use fathom_model::tables::TABLES;

use crate::tables::sql_type;
use crate::views::{self, Doc, VIEWS};
use crate::{QueryError, findings, session_row};

/// The page, in Markdown: `docs/schema.md`.
///
/// # Errors
///
/// When the types of the views cannot be determined.
pub fn schema_markdown() -> Result<String, QueryError> {
    let db = crate::db::empty()?;
    let mut out = String::from(
        "# Tables and views of a session\n\n\
         <!-- Generated from crates/model/src/tables.rs and crates/query/sql: \
         FATHOM_BLESS=1 ./do test writes it anew. -->\n\n\
         `fathom query SESSION \"SELECT ...\"` runs SQL (DuckDB's dialect) over these tables. \
         The tables are stored as Parquet files in the session's directory, a folder each; any \
         program that reads Parquet can use them as they lie. Views exist in `fathom query` only.\n\n\
         Times are nanoseconds of CLOCK_MONOTONIC; `wall_time(ts_ns)` gives the time of day, UTC. \
         `hash_hex(hash)` writes a hash in 16 digits, as xxh64sum does. \
         `duration_bucket(ns)` is the power of two below a duration, `call_reads(syscall)` and \
         `call_writes(syscall)` tell whether a call moves bytes out of or into a file.\n\n\
         ## Tables\n",
    );
    for table in TABLES {
        let _ = write!(out, "\n### {}\n\n{}\n", table.name, one_line(table.doc));
        if !table.key.is_empty() {
            let _ = write!(
                out,
                "\nThe Parquet files may hold several versions of a row: the last one written \
                 with the same {} counts. `fathom query` shows that one only.\n",
                table
                    .key
                    .iter()
                    .map(|k| format!("`{k}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        out.push_str("\n| Column | Type | Null | Meaning |\n|---|---|---|---|\n");
        for column in table.columns {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                column.name,
                sql_type(column.ty),
                if column.nullable { "yes" } else { "" },
                cell(&one_line(column.doc))
            );
        }
    }
    out.push_str("\n## Views\n");
    view(
        &mut out,
        &db,
        "session",
        &views::parse_doc(session_row::SQL),
    )?;
    view(&mut out, &db, "findings", &views::parse_doc(findings::SQL))?;
    for v in VIEWS {
        view(&mut out, &db, v.name, &v.doc())?;
    }
    Ok(out)
}

fn view(out: &mut String, db: &crate::Db, name: &str, doc: &Doc) -> Result<(), QueryError> {
    let _ = write!(out, "\n### {name}\n\n{}\n", doc.row);
    out.push_str("\n| Column | Type | Meaning |\n|---|---|---|\n");
    for (column, ty) in db.columns(name)? {
        let meaning = doc
            .columns
            .iter()
            .find(|(c, _)| *c == column)
            .map_or("", |(_, m)| m);
        let _ = writeln!(out, "| `{column}` | {ty} | {} |", cell(meaning));
    }
    Ok(())
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

//! The schema page: every table and view with its columns, from the same
//! definitions that the database is built from.

use std::fmt::Write as _;

use fathom_model::tables::{Column, Stored, TABLES, Table};

use crate::tables::sql_type;
use crate::views::{self, Doc, VIEWS};
use crate::{QueryError, findings, paths, session_row};

/// A table or view, described.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    /// Whether it is a view.
    pub view: bool,
    /// The meaning of a row.
    pub doc: String,
    /// Its columns, in order.
    pub columns: Vec<RelationColumn>,
}

#[derive(Clone, Debug)]
pub struct RelationColumn {
    pub name: String,
    /// Empty if it is not known.
    pub sql_type: String,
    /// Whether it may be null; `None` for a view's.
    pub nullable: Option<bool>,
    /// The meaning of the column.
    pub doc: String,
}

/// Every table and view that `db` has.
///
/// # Errors
///
/// When the types of the views cannot be determined.
pub fn relations(db: &crate::Db) -> Result<Vec<Relation>, QueryError> {
    let mut all: Vec<Relation> = TABLES
        .iter()
        .map(|table| Relation {
            name: table.name.to_string(),
            view: false,
            doc: one_line(table.doc),
            columns: table
                .shown()
                .map(|column| RelationColumn {
                    name: column.name.to_string(),
                    sql_type: sql_type(column.ty).to_string(),
                    nullable: Some(column.nullable),
                    doc: one_line(column.doc),
                })
                .chain(table.differences().iter().map(|difference| RelationColumn {
                    name: difference.name.to_string(),
                    sql_type: "BIGINT".to_string(),
                    nullable: Some(true),
                    doc: one_line(difference.doc),
                }))
                .collect(),
        })
        .collect();
    let own = [
        ("session", views::parse_doc(session_row::SQL)),
        ("findings", views::parse_doc(findings::SQL)),
    ];
    let views = VIEWS.iter().map(|v| (v.name, v.doc()));
    for (name, doc) in own.into_iter().chain(views) {
        all.push(view_relation(db, name, doc)?);
    }
    for name in db.own_tables()? {
        let doc = Doc {
            row: "A table that a user added with fathom import --table.".to_owned(),
            columns: Vec::new(),
        };
        all.push(Relation {
            view: false,
            ..view_relation(db, &name, doc)?
        });
    }
    Ok(all)
}

fn view_relation(db: &crate::Db, name: &str, doc: Doc) -> Result<Relation, QueryError> {
    let meaning = |column: &str| {
        let found = doc.columns.iter().find(|(c, _)| c == column);
        found.map_or(String::new(), |(_, meaning)| meaning.clone())
    };
    let columns = db.columns(name)?.into_iter().map(|(column, sql_type)| {
        let doc = meaning(&column);
        RelationColumn {
            name: column,
            sql_type,
            nullable: None,
            doc,
        }
    });
    Ok(Relation {
        name: name.to_string(),
        view: true,
        columns: columns.collect(),
        doc: doc.row,
    })
}

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
         FATHOM_BLESS=1 ./do test regenerates it. -->\n\n\
         `fathom query SESSION \"SELECT ...\"` runs SQL (DuckDB's dialect) over these tables. \
         The tables are stored as Parquet files in the session's directory, one folder per table; any \
         program that reads Parquet can read them. Views exist in `fathom query` only.\n\n\
         Times are nanoseconds of CLOCK_MONOTONIC; `wall_time(ts_ns)` gives the time of day, UTC. \
         `time_ns(wall)` is the opposite: the `ts_ns` of a time of day, for tables of your own. \
         `hash_hex(hash)` prints a hash as 16 digits, like xxh64sum. \
         `duration_bucket(ns)` is the exponent of the largest power of two that is at most the duration. \
         `call_reads(syscall)` and `call_writes(syscall)` are true for calls that move bytes out of or into a file. \
         `call_failed(syscall, errno)` is true for an error that is a failure, and false for one that answers a \
         question, such as ENOENT of a look-up or EAGAIN of a read.\n\n\
         ## Tables\n",
    );
    for table in TABLES {
        let _ = write!(out, "\n### {}\n\n{}\n", table.name, one_line(table.doc));
        if !table.key.is_empty() {
            let _ = write!(
                out,
                "\nThe Parquet files may contain several versions of a row: the last one written \
                 with the same {} counts. `fathom query` shows only that one.\n",
                table
                    .key
                    .iter()
                    .map(|k| format!("`{k}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        out.push_str("\n| Column | Type | Null | Meaning |\n|---|---|---|---|\n");
        for column in table.shown() {
            out.push_str(&line(column));
        }
        for difference in table.differences() {
            let (name, doc) = (difference.name, cell(&one_line(difference.doc)));
            let _ = writeln!(out, "| `{name}` | BIGINT | yes | {doc} Not in the files. |");
        }
        out.push_str(&in_files(table));
    }
    out.push_str("\n## Views\n");
    for relation in relations(&db)?.iter().filter(|r| r.view) {
        let _ = write!(out, "\n### {}\n\n{}\n", relation.name, relation.doc);
        out.push_str("\n| Column | Type | Meaning |\n|---|---|---|\n");
        for RelationColumn {
            name,
            sql_type,
            doc,
            ..
        } in &relation.columns
        {
            let _ = writeln!(out, "| `{name}` | {sql_type} | {} |", cell(doc));
        }
    }
    let doc = views::parse_doc(paths::SQL);
    let _ = write!(
        out,
        "\n## Functions\n\n### {}\n\n`{}`\n\n{}\n\n| Column | Type | Meaning |\n|---|---|---|\n",
        paths::NAME,
        paths::FORMS.replace("), ", ")`, `"),
        doc.row
    );
    let types = db.columns(paths::TABLE)?;
    for (name, meaning) in &doc.columns {
        let of = types.iter().find(|(column, _)| column == name);
        let sql_type = of.map_or("", |(_, sql_type)| sql_type);
        let _ = writeln!(out, "| `{name}` | {sql_type} | {} |", cell(meaning));
    }
    Ok(out)
}

fn line(column: &Column) -> String {
    format!(
        "| `{}` | {} | {} | {} |\n",
        column.name,
        sql_type(column.ty),
        if column.nullable { "yes" } else { "" },
        cell(&one_line(column.doc))
    )
}

/// How the Parquet files of a table differ from it.
fn in_files(table: &Table) -> String {
    let mut out = String::new();
    let formulas = table.columns.iter().filter_map(|column| {
        let formula = column.formula()?;
        Some(format!("`{} = {formula}`", column.name))
    });
    let formulas: Vec<String> = formulas.collect();
    if !formulas.is_empty() {
        let _ = write!(
            out,
            "\nThe Parquet files contain differences, which take less room, in place of some \
             columns; a null on the right that is not the difference counts as 0: {}.\n",
            formulas.join(", ")
        );
    }
    let hidden = |column: &&Column| column.stored == Stored::Hidden;
    if table.columns.iter().any(|column| hidden(&column)) {
        out.push_str(
            "\nThe Parquet files also contain these columns.\n\n\
             | Column | Type | Null | Meaning |\n|---|---|---|---|\n",
        );
        out.extend(table.columns.iter().filter(hidden).map(line));
    }
    out
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A bar would end the cell, and `<` start an element.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

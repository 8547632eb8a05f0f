//! `fathom report --sizes`: the disk space of a session by column.

use std::fmt::Write as _;
use std::io::Write as _;

use fathom_model::tables::TABLES;
use fathom_session::{ColumnSize, Session};
use serde::Serialize;

use crate::args::ReportFormat;
use crate::exit::Failure;

/// The space of a column.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Size {
    /// Its table.
    table: String,
    /// Its name; null for the rest of the files of the table.
    column: Option<&'static str>,
    /// Rows of the table.
    rows: u64,
    /// Bytes in the files.
    bytes: u64,
    /// Bytes before compression.
    encoded_bytes: u64,
}

/// Prints the space of each column as text or JSON.
pub fn print(session: &Session, format: ReportFormat) -> Result<u8, Failure> {
    let sizes = session.column_sizes().map_err(Failure::input)?;
    let text = match format {
        ReportFormat::Json => json(&sizes)?,
        ReportFormat::Text => text(session, &sizes),
        ReportFormat::Html => {
            return Err(Failure::input(anyhow::anyhow!(
                "--sizes works with --format text or json only"
            )));
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(0)
}

fn json(sizes: &[ColumnSize]) -> Result<String, Failure> {
    let rows = sizes.iter().map(|s| Size {
        table: s.table.clone().into_owned(),
        column: (!s.column.is_empty()).then_some(s.column),
        rows: s.rows,
        bytes: s.bytes,
        encoded_bytes: s.encoded_bytes,
    });
    let rows: Vec<_> = rows.collect();
    let mut text = serde_json::to_string_pretty(&rows).map_err(Failure::input)?;
    text.push('\n');
    Ok(text)
}

fn text(session: &Session, sizes: &[ColumnSize]) -> String {
    let total: u64 = sizes.iter().map(|s| s.bytes).sum();
    let calls = session.rows("syscalls");
    let mut text = String::new();
    let mut line = |what: &str, bytes: u64, rows: u64| {
        let share = 100.0 * bytes as f64 / total.max(1) as f64;
        let each = if rows > 0 {
            format!("{:.3}", bytes as f64 / rows as f64)
        } else {
            "-".to_owned()
        };
        // Writing into a string does not fail.
        let _ = writeln!(text, "{what:28} {bytes:>14} {share:6.2} % {each:>10}");
    };
    line("all, per call", total, calls);
    let mut table = "";
    for size in sizes {
        if size.table != table {
            table = &size.table;
            let of_table = sizes.iter().filter(|s| s.table == table);
            line(table, of_table.map(|s| s.bytes).sum(), size.rows);
        }
        let is_file = TABLES.iter().all(|t| t.name != table);
        if size.bytes > 0 && !is_file {
            let name = match size.column {
                "" => "footers",
                name => name,
            };
            line(&format!("  {name}"), size.bytes, size.rows);
        }
    }
    format!(
        "{:28} {:>14} {:>8} {:>10}\n{text}",
        "", "bytes", "share", "a row"
    )
}

//! Comma-separated values after RFC 4180, lines ending in LF. Null is an empty
//! field, an empty string is `""`.

use std::borrow::Cow;
use std::io::Write;

use arrow::util::display::FormatOptions;

use super::{Options, cell, formatters, is_null};
use crate::{Batches, QueryError, escape};

pub(super) fn write(
    rows: &mut dyn Batches,
    options: &Options,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    let mut line = String::new();
    for (i, field) in rows.schema().fields().iter().enumerate() {
        push(&mut line, i, field.name(), options.terminal);
    }
    line.push('\n');
    out.write_all(line.as_bytes())?;
    let format = FormatOptions::new();
    let mut value = String::new();
    while let Some(batch) = rows.next_batch()? {
        let columns = formatters(&batch, &format, "csv")?;
        line.clear();
        for row in 0..batch.num_rows() {
            for (i, column) in columns.iter().enumerate() {
                if is_null(&batch, i, row) {
                    if i > 0 {
                        line.push(',');
                    }
                } else {
                    cell(column, row, &mut value)?;
                    push(&mut line, i, &value, options.terminal);
                }
            }
            line.push('\n');
        }
        out.write_all(line.as_bytes())?;
        *count += batch.num_rows() as u64;
    }
    Ok(())
}

fn push(line: &mut String, column: usize, value: &str, terminal: bool) {
    if column > 0 {
        line.push(',');
    }
    let value = if terminal {
        escape::text(value)
    } else {
        Cow::Borrowed(value)
    };
    if value.is_empty() || value.contains(['"', ',', '\n', '\r']) || value.starts_with(' ') {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(&value);
    }
}

//! Objects, one a line, as a JSON array or each for itself. Integers are numbers whatever their
//! size. Characters that a terminal may act on are escaped as `\uXXXX`.

use std::io::Write;

use arrow::json::writer::{LineDelimited, WriterBuilder};

use super::from_arrow;
use crate::{Batches, QueryError, escape};

pub(super) fn write(
    rows: &mut dyn Batches,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    out.write_all(b"[")?;
    objects(rows, out, count, |text, first, line| {
        text.push_str(if first { "\n" } else { ",\n" });
        escape::push_json(line, text);
    })?;
    out.write_all(if *count == 0 { b"]\n" } else { b"\n]\n" })?;
    Ok(())
}

/// Lines without brackets and commas.
pub(super) fn write_lines(
    rows: &mut dyn Batches,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    objects(rows, out, count, |text, _, line| {
        escape::push_json(line, text);
        text.push('\n');
    })
}

/// Passes each row to `push`, which appends it to a text, and whether it is the first one.
fn objects(
    rows: &mut dyn Batches,
    out: &mut dyn Write,
    count: &mut u64,
    push: impl Fn(&mut String, bool, &str),
) -> Result<(), QueryError> {
    let mut text = String::new();
    while let Some(batch) = rows.next_batch()? {
        let mut writer = WriterBuilder::new()
            .with_explicit_nulls(true)
            .build::<_, LineDelimited>(Vec::new());
        writer.write(&batch).map_err(|e| from_arrow("json", e))?;
        let lines = writer.into_inner();
        let lines = String::from_utf8_lossy(&lines);
        text.clear();
        for line in lines.lines() {
            push(&mut text, *count == 0, line);
            *count += 1;
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

//! Comma-separated values after RFC 4180, lines ending in LF. Null is an empty
//! field, an empty string is `""`.
//!
//! A traced program chooses names and contents, and readers of CSV act on them: a terminal on
//! control characters, a spreadsheet on text that begins as a formula does. So text has its
//! control characters written as `\xHH`, and an apostrophe before it where it begins with `=`,
//! `+`, `-` or `@` and is no number. Numbers and times are never changed. [`Options::exact`]
//! leaves text as it is.

use std::borrow::Cow;
use std::io::Write;

use arrow::datatypes::DataType;
use arrow::util::display::FormatOptions;

use super::{Options, cell, formatters, is_null};
use crate::{Batches, QueryError, escape};

pub(super) fn write(
    rows: &mut dyn Batches,
    options: &Options,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    let schema = rows.schema();
    let mut line = String::new();
    for (i, field) in schema.fields().iter().enumerate() {
        // A pivot makes names of columns from values.
        push(&mut line, i, &text(field.name(), options));
    }
    line.push('\n');
    out.write_all(line.as_bytes())?;
    let texts: Vec<bool> = schema
        .fields()
        .iter()
        .map(|field| may_hold_text(field.data_type()))
        .collect();
    let format = FormatOptions::new();
    let mut value = String::new();
    while let Some(batch) = rows.next_batch()? {
        let columns = formatters(&batch, &format, "csv")?;
        line.clear();
        for row in 0..batch.num_rows() {
            for (i, (column, is_text)) in columns.iter().zip(&texts).enumerate() {
                if is_null(&batch, i, row) {
                    if i > 0 {
                        line.push(',');
                    }
                } else {
                    cell(column, row, &mut value)?;
                    if *is_text {
                        push(&mut line, i, &text(&value, options));
                    } else {
                        push(&mut line, i, &value);
                    }
                }
            }
            line.push('\n');
        }
        out.write_all(line.as_bytes())?;
        *count += batch.num_rows() as u64;
    }
    Ok(())
}

/// Whether values of the type may have characters that a program chose.
fn may_hold_text(ty: &DataType) -> bool {
    !(ty.is_numeric() || ty.is_temporal() || matches!(ty, DataType::Boolean | DataType::Null))
}

/// Text as `options` want it.
fn text<'a>(value: &'a str, options: &Options) -> Cow<'a, str> {
    if options.exact && !options.terminal {
        return Cow::Borrowed(value);
    }
    let escaped = escape::text(value);
    if options.exact || !is_formula(value) {
        return escaped;
    }
    Cow::Owned(format!("'{escaped}"))
}

/// Whether a spreadsheet would run the cell rather than show it. The wide forms count for
/// spreadsheets in East Asian languages. A tab or a carriage return, which some skip, is
/// escaped anyway.
fn is_formula(value: &str) -> bool {
    const MARKS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    value.starts_with(MARKS) && !is_number(value)
}

/// Whether all of the text is a number in decimal digits. `parse` alone would take `-inf`.
fn is_number(value: &str) -> bool {
    let of_numbers = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    value.chars().all(of_numbers) && value.parse::<f64>().is_ok()
}

fn push(line: &mut String, column: usize, value: &str) {
    if column > 0 {
        line.push(',');
    }
    if value.is_empty() || value.contains(['"', ',', '\n', '\r']) || value.starts_with(' ') {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(value);
    }
}

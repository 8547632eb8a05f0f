//! Aligned columns for people. Widths come from the first rows, so that output
//! begins before the query ends; a later row that is wider is cut.

use std::io::Write;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::util::display::FormatOptions;
use unicode_width::UnicodeWidthStr;

use super::{Options, cell, formatters, is_null, is_number};
use crate::{Batches, QueryError, escape};

/// Rows that widths are taken from.
const SAMPLE: usize = 1000;
/// Narrowest that a column of text is made.
const MIN_TEXT: usize = 12;
const GAP: &str = "  ";
const NULL: &str = "NULL";

/// The text of a field.
enum Cell {
    Null,
    Text(String),
}

struct Layout {
    widths: Vec<usize>,
    right: Vec<bool>,
    color: bool,
    /// The last column needs no padding; without a limit nothing is cut.
    cut: bool,
}

pub(super) fn write(
    rows: &mut dyn Batches,
    options: &Options,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    let schema = rows.schema();
    let mut sample = Vec::new();
    let mut ended = false;
    while sample.len() < SAMPLE {
        match rows.next_batch()? {
            Some(batch) => push_cells(&batch, &mut sample)?,
            None => {
                ended = true;
                break;
            }
        }
    }
    let layout = layout(&schema, &sample, options);
    out.write_all(layout.header(&schema).as_bytes())?;
    write_rows(&layout, &sample, out, count)?;
    while !ended {
        sample.clear();
        match rows.next_batch()? {
            Some(batch) => push_cells(&batch, &mut sample)?,
            None => ended = true,
        }
        write_rows(&layout, &sample, out, count)?;
    }
    Ok(())
}

fn push_cells(batch: &RecordBatch, rows: &mut Vec<Vec<Cell>>) -> Result<(), QueryError> {
    let format = FormatOptions::new();
    let columns = formatters(batch, &format, "table")?;
    let mut value = String::new();
    for row in 0..batch.num_rows() {
        let mut cells = Vec::with_capacity(columns.len());
        for (i, column) in columns.iter().enumerate() {
            cells.push(if is_null(batch, i, row) {
                Cell::Null
            } else {
                cell(column, row, &mut value)?;
                // Quotes distinguish text that looks like null.
                Cell::Text(match value.as_str() {
                    NULL => format!("'{NULL}'"),
                    text => escape::text(text).into_owned(),
                })
            });
        }
        rows.push(cells);
    }
    Ok(())
}

fn layout(schema: &SchemaRef, sample: &[Vec<Cell>], options: &Options) -> Layout {
    let right: Vec<bool> = schema
        .fields()
        .iter()
        .map(|f| is_number(f.data_type()))
        .collect();
    let mut widths: Vec<usize> = schema
        .fields()
        .iter()
        .map(|f| escape::text(f.name()).width())
        .collect();
    for row in sample {
        for (width, cell) in widths.iter_mut().zip(row) {
            let shown = match cell {
                Cell::Null => NULL.len(),
                Cell::Text(text) => text.width(),
            };
            *width = (*width).max(shown);
        }
    }
    if let Some(limit) = options.width {
        shrink(&mut widths, &right, limit);
    }
    Layout {
        widths,
        right,
        color: options.color,
        cut: options.width.is_some(),
    }
}

/// Takes from the widest column of text, one character at a time, until the
/// table fits or every such column is at its narrowest.
fn shrink(widths: &mut [usize], right: &[bool], limit: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let mut total: usize = widths.iter().sum::<usize>() + gaps;
    while total > limit {
        let widest = widths
            .iter_mut()
            .zip(right)
            .filter(|(width, right)| !**right && **width > MIN_TEXT)
            .map(|(width, _)| width)
            .max();
        let Some(width) = widest else { break };
        *width -= 1;
        total -= 1;
    }
}

impl Layout {
    fn header(&self, schema: &SchemaRef) -> String {
        let names: Vec<Cell> = schema
            .fields()
            .iter()
            .map(|f| Cell::Text(escape::text(f.name()).into_owned()))
            .collect();
        let mut out = String::new();
        if self.color {
            out.push_str("\x1b[1m");
        }
        self.row(&names, &mut out);
        if self.color {
            out.insert_str(out.len() - 1, "\x1b[0m");
        }
        let rules: Vec<String> = self.widths.iter().map(|w| "─".repeat(*w)).collect();
        out.push_str(&rules.join(GAP));
        out.push('\n');
        out
    }

    fn row(&self, cells: &[Cell], out: &mut String) {
        let last = cells.len().saturating_sub(1);
        for (i, ((cell, width), right)) in
            cells.iter().zip(&self.widths).zip(&self.right).enumerate()
        {
            if i > 0 {
                out.push_str(GAP);
            }
            let (text, null) = match cell {
                Cell::Null => (NULL.to_string(), true),
                Cell::Text(text) if self.cut => (escape::shorten(text, *width), false),
                Cell::Text(text) => (text.clone(), false),
            };
            let pad = " ".repeat(width.saturating_sub(text.width()));
            if *right {
                out.push_str(&pad);
            }
            if null && self.color {
                out.push_str("\x1b[2m");
                out.push_str(&text);
                out.push_str("\x1b[0m");
            } else {
                out.push_str(&text);
            }
            if !*right && i < last {
                out.push_str(&pad);
            }
        }
        out.push('\n');
    }
}

fn write_rows(
    layout: &Layout,
    rows: &[Vec<Cell>],
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    let mut text = String::new();
    for row in rows {
        layout.row(row, &mut text);
    }
    out.write_all(text.as_bytes())?;
    *count += rows.len() as u64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_columns_shrink_and_numbers_do_not() {
        let mut widths = vec![30, 10, 40];
        shrink(&mut widths, &[false, true, false], 60);
        assert_eq!(widths, [23, 10, 23]);
        let mut widths = vec![30, 30];
        shrink(&mut widths, &[false, true], 20);
        assert_eq!(widths, [12, 30]);
    }
}

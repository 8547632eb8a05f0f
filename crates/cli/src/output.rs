//! Forms of output that commands share.

use std::fmt::Write as _;

use crate::exit::Failure;

/// JSON with a trailing newline.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
    text.push('\n');
    Ok(text)
}

/// Columns with two spaces between them; the texts are escaped already.
pub fn aligned(rows: &[impl AsRef<[String]>]) -> String {
    let width = |text: &str| text.chars().count();
    let widest = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(i));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let columns = rows.iter().map(|row| row.as_ref().len()).max();
    let widths: Vec<usize> = (0..columns.unwrap_or(0)).map(widest).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, most) in row.as_ref().iter().zip(&widths) {
            let _ = write!(line, "{cell}{}", " ".repeat(most + 2 - width(cell)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

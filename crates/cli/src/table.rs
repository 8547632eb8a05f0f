//! Tables for a terminal.

use std::fmt::Write as _;

/// Columns with two spaces between them; the texts are escaped already.
pub fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |text: &str| text.chars().count();
    let widest = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(widest).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, most) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell}{}", " ".repeat(most + 2 - width(cell)));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

//! Tables of the text report: columns that give way when the terminal is
//! narrow.

use fathom_query::escape::{shorten, text};
use unicode_width::UnicodeWidthStr;

use super::style::Style;

pub(super) struct Column {
    /// Heading.
    pub title: &'static str,
    /// Whether values line up on the right.
    pub right: bool,
    /// Columns with the lowest number stay longest; 0 stays always.
    pub give_way: u8,
    /// Whether it takes the room that is left, and is shortened first.
    pub flexible: bool,
}

impl Column {
    /// A number.
    pub fn number(title: &'static str, give_way: u8) -> Self {
        Self {
            title,
            right: true,
            give_way,
            flexible: false,
        }
    }

    /// A short name.
    pub fn name(title: &'static str) -> Self {
        Self {
            title,
            right: false,
            give_way: 0,
            flexible: false,
        }
    }

    /// A path or the like.
    pub fn flexible(title: &'static str) -> Self {
        Self {
            title,
            right: false,
            give_way: 0,
            flexible: true,
        }
    }
}

/// Narrowest that a flexible column is made.
const MIN_FLEXIBLE: usize = 32;
/// Longest that a name is shown.
const MAX_NAME: usize = 24;
const INDENT: &str = "  ";
const GAP: &str = "  ";

/// Lays `rows` out in `width` columns of characters. Values may hold anything:
/// they are escaped here.
pub(super) fn render(
    out: &mut String,
    style: Style,
    width: usize,
    columns: &[Column],
    rows: &[Vec<String>],
) {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(columns)
                .map(|(value, column)| {
                    let value = text(value).into_owned();
                    if column.flexible || column.right {
                        value
                    } else {
                        shorten(&value, MAX_NAME)
                    }
                })
                .collect()
        })
        .collect();
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let values = rows.iter().filter_map(|row| row.get(i)).map(|v| v.width());
            values.chain([column.title.width()]).max().unwrap_or(0)
        })
        .collect();
    let room = width.saturating_sub(INDENT.len());
    let shown = fit(columns, &natural, room);
    let flexible_room = room.saturating_sub(used(columns, &natural, &shown, 0));
    let widths: Vec<usize> = columns
        .iter()
        .zip(&natural)
        .map(|(c, n)| {
            if c.flexible {
                (*n).min(flexible_room)
            } else {
                *n
            }
        })
        .collect();
    let titles: Vec<String> = columns.iter().map(|c| c.title.to_string()).collect();
    let mut head = String::new();
    line(&mut head, columns, &widths, &shown, &titles);
    out.push_str(&style.dim(head.trim_end()));
    out.push('\n');
    for row in &rows {
        line(out, columns, &widths, &shown, row);
    }
}

/// Which columns are shown so that all fit into `room`.
fn fit(columns: &[Column], natural: &[usize], room: usize) -> Vec<bool> {
    let mut shown = vec![true; columns.len()];
    while used(columns, natural, &shown, MIN_FLEXIBLE) > room {
        let next = columns
            .iter()
            .enumerate()
            .filter(|(i, c)| c.give_way > 0 && shown.get(*i) == Some(&true))
            .max_by_key(|(_, c)| c.give_way);
        let Some((index, _)) = next else { break };
        if let Some(shown) = shown.get_mut(index) {
            *shown = false;
        }
    }
    shown
}

/// Width of the shown columns with gaps, flexible ones counted as `flexible`
/// or less.
fn used(columns: &[Column], natural: &[usize], shown: &[bool], flexible: usize) -> usize {
    let widths = columns
        .iter()
        .zip(natural)
        .zip(shown)
        .filter(|(_, shown)| **shown)
        .map(|((c, n), _)| if c.flexible { (*n).min(flexible) } else { *n });
    let (sum, number) = widths.fold((0, 0), |(sum, number), w| (sum + w, number + 1));
    sum + GAP.len() * usize::saturating_sub(number, 1)
}

fn line(out: &mut String, columns: &[Column], widths: &[usize], shown: &[bool], row: &[String]) {
    let mut line = String::from(INDENT);
    let mut first = true;
    for (((column, width), shown), value) in columns.iter().zip(widths).zip(shown).zip(row) {
        if !shown {
            continue;
        }
        if !first {
            line.push_str(GAP);
        }
        first = false;
        let value = if column.flexible {
            shorten(value, *width)
        } else {
            value.clone()
        };
        let pad = " ".repeat(width.saturating_sub(value.width()));
        if column.right {
            line.push_str(&pad);
            line.push_str(&value);
        } else {
            line.push_str(&value);
            line.push_str(&pad);
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

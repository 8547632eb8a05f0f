//! The value of a condition for a row: true, false, or, as in SQL, neither.

use std::cmp::Ordering;

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::{Batch, ColumnData, StrId};

use super::parse::{Comparison, Node, Value};

pub(crate) fn node(of: &Node, batch: &Batch, row: usize) -> Option<bool> {
    match of {
        Node::All(nodes) => fold(nodes, batch, row, false),
        Node::Any(nodes) => fold(nodes, batch, row, true),
        Node::Not(inner) => node(inner, batch, row).map(|truth| !truth),
        Node::Compare(left, comparison, right) => {
            let order = order(&value(left, batch, row)?, &value(right, batch, row)?)?;
            Some(comparison.holds(order))
        }
        Node::OneOf(left, values) => {
            let left = value(left, batch, row)?;
            let mut unknown = false;
            for right in values {
                match value(right, batch, row).and_then(|right| order(&left, &right)) {
                    Some(order) if Comparison::Equal.holds(order) => return Some(true),
                    Some(_) => {}
                    None => unknown = true,
                }
            }
            (!unknown).then_some(false)
        }
        Node::Like(left, pattern) => match value(left, batch, row)? {
            Found::Bytes(text) => Some(like(text, pattern)),
            Found::Whole(_) | Found::Fraction(_) => None,
        },
        Node::IsNull(inner) => Some(value(inner, batch, row).is_none()),
    }
}

/// AND (`ends` false) or OR (`ends` true): what ends decides, else what is not
/// known makes the whole unknown.
fn fold(nodes: &[Node], batch: &Batch, row: usize, ends: bool) -> Option<bool> {
    let mut unknown = false;
    for inner in nodes {
        match node(inner, batch, row) {
            Some(truth) if truth == ends => return Some(ends),
            Some(_) => {}
            None => unknown = true,
        }
    }
    (!unknown).then_some(!ends)
}

/// A value that is not null.
enum Found<'a> {
    Whole(i64),
    Fraction(f64),
    Bytes(&'a [u8]),
}

fn value<'a>(of: &'a Value, batch: &'a Batch, row: usize) -> Option<Found<'a>> {
    match of {
        Value::Number(place) => match batch.columns.get(*place)? {
            ColumnData::I64(v) => {
                let n = v.get(row).copied().filter(|n| *n != NULL_I64);
                n.map(Found::Whole)
            }
            ColumnData::I32(v) => {
                let n = v.get(row).copied().filter(|n| *n != NULL_I32);
                n.map(|n| Found::Whole(n.into()))
            }
            _ => None,
        },
        Value::Text(place) => match batch.columns.get(*place)? {
            ColumnData::Str(v) => {
                let id = v.get(row).copied().filter(|id| *id != StrId::NULL)?;
                Some(Found::Bytes(batch.strings.get(id)))
            }
            _ => None,
        },
        Value::Whole(n) => Some(Found::Whole(*n)),
        Value::Fraction(n) => Some(Found::Fraction(*n)),
        Value::Bytes(bytes) => Some(Found::Bytes(bytes)),
        Value::Null => None,
    }
}

fn order(left: &Found<'_>, right: &Found<'_>) -> Option<Ordering> {
    match (left, right) {
        (Found::Whole(a), Found::Whole(b)) => Some(a.cmp(b)),
        (Found::Whole(a), Found::Fraction(b)) => (*a as f64).partial_cmp(b),
        (Found::Fraction(a), Found::Whole(b)) => a.partial_cmp(&(*b as f64)),
        (Found::Fraction(a), Found::Fraction(b)) => a.partial_cmp(b),
        (Found::Bytes(a), Found::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// SQL's LIKE: `%` stands for any text, `_` for one character.
fn like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut t, mut p) = (0, 0);
    // The position of the last %, and the number of characters it has matched so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                star = Some((p, t));
                p += 1;
                continue;
            }
            Some(b'_') => {
                t = next_character(text, t);
                p += 1;
                continue;
            }
            Some(c) if text.get(t) == Some(c) => {
                t += 1;
                p += 1;
                continue;
            }
            _ => {}
        }
        let Some((at, taken)) = star else {
            return false;
        };
        star = Some((at, taken + 1));
        t = taken + 1;
        p = at + 1;
    }
    pattern
        .get(p..)
        .is_none_or(|rest| rest.iter().all(|c| *c == b'%'))
}

/// Where the character after the one at `at` begins.
fn next_character(text: &[u8], at: usize) -> usize {
    let continues = |b: &&u8| **b & 0xc0 == 0x80;
    let rest = text.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(continues).count()
}

//! How much of the time of spans is in calls.

use std::collections::HashMap;

use fathom_query::Db;
use fathom_query::fetch::{self, Row};

use crate::error::Result;

/// A span of a trace that has chosen ones.
#[derive(Clone, Copy, Default)]
struct Span {
    parent: Option<usize>,
    /// Its place among the chosen ones.
    chosen: Option<usize>,
}

struct Chosen {
    trace: String,
    id: String,
    from_ns: i64,
    until_ns: i64,
    /// The innermost chosen span around it.
    outer: Option<usize>,
    /// Time in calls that began until now, and the end of the last of them.
    ns: i64,
    end_ns: i64,
}

/// Nanoseconds of the spans that `chosen` answers, by their trace and id, during which a call runs that is theirs or
/// of a span below them. Calls at the same time count once.
pub(crate) fn in_calls(db: &Db, chosen: &str) -> Result<HashMap<(String, String), i64>> {
    let numbered = format!(
        "numbered AS (
            SELECT row_number() OVER (ORDER BY trace_id, span_id) - 1 AS n, trace_id, span_id, parent_span_id
            FROM spans WHERE trace_id IN (SELECT trace_id FROM ({chosen}))
        )"
    );
    let (spans, mut chosen) = family(db, &numbered, chosen)?;
    let innermost = innermost(&spans);
    for (span, inner) in spans.iter().filter_map(|s| Some((s, s.chosen?))) {
        let outer = span.parent.and_then(|parent| *innermost.get(parent)?);
        if let Some(inner) = chosen.get_mut(inner) {
            inner.outer = outer;
        }
    }
    let calls = format!(
        "WITH {numbered}
        SELECT n, calls.ts_ns, calls.dur_ns FROM span_calls AS calls JOIN numbered USING (trace_id, span_id)
        WHERE calls.dur_ns > 0 ORDER BY calls.ts_ns"
    );
    fetch::each(db, &calls, |row| {
        let of = usize::try_from(row.int("n")?).ok();
        let from_ns = row.int("ts_ns")?;
        let until_ns = from_ns.saturating_add(row.int("dur_ns")?);
        let mut at = of.and_then(|n| *innermost.get(n)?);
        // In a damaged session spans may be around each other in a ring.
        for _ in 0..chosen.len() {
            let Some(span) = at.and_then(|n| chosen.get_mut(n)) else {
                break;
            };
            span.add(from_ns, until_ns);
            at = span.outer;
        }
        Ok::<_, crate::ExportError>(())
    })?;
    let times = chosen.into_iter();
    Ok(times.map(|span| ((span.trace, span.id), span.ns)).collect())
}

impl Chosen {
    /// Adds the time of a call. Calls come in the order of their begin.
    fn add(&mut self, from_ns: i64, until_ns: i64) {
        let from_ns = from_ns.max(self.from_ns).max(self.end_ns);
        let until_ns = until_ns.min(self.until_ns);
        if until_ns > from_ns {
            self.ns = self.ns.saturating_add(until_ns.saturating_sub(from_ns));
            self.end_ns = until_ns;
        }
    }
}

/// The spans by number, and the chosen ones among them.
fn family(db: &Db, numbered: &str, chosen: &str) -> Result<(Vec<Span>, Vec<Chosen>)> {
    let sql = format!(
        "WITH {numbered}
        SELECT own.n, parent.n AS parent, chosen.trace_id, chosen.span_id, chosen.ts_ns, chosen.dur_ns
        FROM numbered AS own
        LEFT JOIN numbered AS parent
            ON parent.trace_id = own.trace_id AND parent.span_id = own.parent_span_id
        LEFT JOIN ({chosen}) AS chosen
            ON chosen.trace_id = own.trace_id AND chosen.span_id = own.span_id
        ORDER BY own.n"
    );
    let (mut spans, mut found) = (Vec::new(), Vec::new());
    fetch::each(db, &sql, |row: Row<'_>| {
        let number = |name| Ok::<_, crate::ExportError>(row.get::<Option<i64>>(name)?);
        let place = |n: Option<i64>| n.and_then(|n| usize::try_from(n).ok());
        let mut span = Span {
            parent: place(number("parent")?),
            chosen: None,
        };
        if let Some(dur_ns) = number("dur_ns")? {
            let from_ns = row.int("ts_ns")?;
            span.chosen = Some(found.len());
            found.push(Chosen {
                trace: row.text("trace_id")?,
                id: row.text("span_id")?,
                from_ns,
                until_ns: from_ns.saturating_add(dur_ns),
                outer: None,
                ns: 0,
                end_ns: i64::MIN,
            });
        }
        // Numbers go up by one.
        if place(number("n")?) == Some(spans.len()) {
            spans.push(span);
        }
        Ok::<_, crate::ExportError>(())
    })?;
    Ok((spans, found))
}

/// Of each span the chosen one that it is or is in, the innermost.
fn innermost(spans: &[Span]) -> Vec<Option<usize>> {
    let mut known: Vec<Option<Option<usize>>> = vec![None; spans.len()];
    let mut path = Vec::new();
    for first in 0..spans.len() {
        let mut at = Some(first);
        let found = loop {
            let Some((n, span)) = at.and_then(|n| Some((n, spans.get(n)?))) else {
                break None;
            };
            let Some(place) = known.get_mut(n) else {
                break None;
            };
            if let Some(found) = *place {
                break found;
            }
            // A ring ends where it began.
            *place = Some(None);
            path.push(n);
            if span.chosen.is_some() {
                break span.chosen;
            }
            at = span.parent;
        };
        for n in path.drain(..) {
            if let Some(place) = known.get_mut(n) {
                *place = Some(found);
            }
        }
    }
    known.into_iter().map(Option::flatten).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(parent: Option<usize>, chosen: Option<usize>) -> Span {
        Span { parent, chosen }
    }

    #[test]
    fn the_innermost_chosen_span_counts() {
        // 4 in 3 in 2 (chosen) in 1 in 0 (chosen); 5 and 6 are in each other; the parent of 7 is not there.
        let spans = [
            span(None, Some(0)),
            span(Some(0), None),
            span(Some(1), Some(1)),
            span(Some(2), None),
            span(Some(3), None),
            span(Some(6), None),
            span(Some(5), None),
            span(Some(99), None),
        ];
        let (outer, inner) = (Some(0), Some(1));
        let expected = [outer, outer, inner, inner, inner, None, None, None];
        assert_eq!(innermost(&spans), expected);
    }

    #[test]
    fn time_of_several_calls_counts_once() {
        let mut one = Chosen {
            trace: String::new(),
            id: String::new(),
            from_ns: 100,
            until_ns: 200,
            outer: None,
            ns: 0,
            end_ns: i64::MIN,
        };
        let calls = [
            (0, 90),
            (90, 110),
            (105, 120),
            (106, 107),
            (150, 160),
            (190, i64::MAX),
            (300, 400),
        ];
        for (from_ns, until_ns) in calls {
            one.add(from_ns, until_ns);
        }
        assert_eq!(one.ns, 20 + 10 + 10);
    }
}

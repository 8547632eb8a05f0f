//! Where in time the n-th call is: sums over time tell, without sorting all calls.

use fathom_query::zoom::{By, Request};

use crate::calls::Calls;
use crate::columns::{collect, numbers};
use crate::error::ApiError;
use crate::selection::{Selection, Window};
use crate::view::Reader;

/// Buckets of a step.
const PIXELS: u32 = 512;
/// Calls that are few enough to be sorted.
const FEW: f64 = 50_000.0;
/// Steps at most: each narrows the window to a part in hundreds.
const STEPS: u32 = 6;
/// Rows that may be read to narrow it further.
const MAX_ROWS: u64 = 1 << 20;

/// A window that holds the calls that are wanted.
#[derive(Debug)]
pub(crate) struct Place {
    pub window: Window,
    /// How many of its calls come before them.
    pub offset: u64,
    /// Calls in the window that was asked for.
    pub total: f64,
}

/// Finds a window with the calls `offset` to `offset + limit`, counted from its end if
/// `descending`.
pub(crate) fn find(
    reader: &Reader,
    selection: &Selection,
    window: Window,
    descending: bool,
    offset: u64,
    limit: u64,
) -> Result<Place, ApiError> {
    let mut place = Place {
        window,
        offset,
        total: 0.0,
    };
    for step in 0..STEPS {
        let buckets = buckets(reader, selection, place.window)?;
        if step == 0 {
            place.total = buckets.iter().map(|b| b.1).sum();
        }
        let before = place.window;
        place = narrowed(place, &buckets, descending, limit);
        let inside = |w: &Window| w.from >= place.window.from && w.to <= place.window.to;
        let left: f64 = buckets.iter().filter(|b| inside(&b.0)).map(|b| b.1).sum();
        if left <= FEW || place.window == before {
            break;
        }
    }
    Ok(place)
}

/// The buckets that the wanted calls are in.
fn narrowed(place: Place, buckets: &[(Window, f64)], descending: bool, limit: u64) -> Place {
    let (mut passed, mut seen) = (0.0, 0.0);
    let (first, beyond) = (place.offset as f64, (place.offset + limit) as f64);
    let mut found: Option<Window> = None;
    let mut look = |(window, calls): &(Window, f64)| {
        if seen + calls <= first {
            passed += calls;
        } else if seen < beyond {
            let so_far = found.unwrap_or(*window);
            found = Some(Window {
                from: so_far.from.min(window.from),
                to: so_far.to.max(window.to),
            });
        }
        seen += calls;
    };
    match descending {
        true => buckets.iter().rev().for_each(&mut look),
        false => buckets.iter().for_each(&mut look),
    }
    match found {
        Some(window) => Place {
            window,
            offset: place.offset - passed as u64,
            ..place
        },
        None => place,
    }
}

/// Calls in the window, in order of time: bucket and count. The buckets are in the window,
/// also those at its borders.
fn buckets(
    reader: &Reader,
    selection: &Selection,
    window: Window,
) -> Result<Vec<(Window, f64)>, ApiError> {
    let answer = reader.zoom.query(&Request {
        from_ns: Some(window.from),
        to_ns: Some(window.to),
        pixels: PIXELS,
        by: By::Nothing,
        filter: selection.filter.for_calls(reader.db(), window.from)?,
        max_rows: Some(MAX_ROWS),
        ..Request::default()
    })?;
    let t = numbers(&answer.rows, "ts_ns")?;
    let calls = numbers(&answer.rows, "calls")?;
    let (first, last) = reader.span().unwrap_or((0, 0));
    let mut found = Vec::with_capacity(t.len());
    for i in 0..t.len() {
        let from = t.value(i) as i64;
        let to = from.saturating_add(answer.bucket_ns);
        let inside = Window {
            from: from.max(window.from),
            to: to.min(window.to),
        };
        if inside.from >= inside.to {
            continue;
        }
        // A bucket that reaches beyond the window may hold calls that are not in it.
        let before = from < window.from && first < window.from;
        let behind = to > window.to && last >= window.to;
        let count = match before || behind {
            true => count(reader, &Calls::of(reader, selection, inside)?)?,
            false => calls.value(i),
        };
        if count > 0.0 {
            found.push((inside, count));
        }
    }
    Ok(found)
}

/// How many calls there are.
pub(crate) fn count(reader: &Reader, calls: &Calls) -> Result<f64, ApiError> {
    let sql = format!("SELECT count(*) AS n FROM {calls}");
    let rows = collect(reader.db().run(&sql)?)?;
    Ok(numbers(&rows, "n")?.iter().flatten().next().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> Place {
        Place {
            window: Window { from: 0, to: 40 },
            offset,
            total: 0.0,
        }
    }

    #[test]
    fn the_wanted_calls_are_in_the_narrowed_window() {
        let bucket = |from, calls| {
            (
                Window {
                    from,
                    to: from + 10,
                },
                calls,
            )
        };
        let buckets = [
            bucket(0, 5.0),
            bucket(10, 5.0),
            bucket(20, 3.0),
            bucket(30, 7.0),
        ];
        let find = |offset, limit, descending| {
            let found = narrowed(place(offset), &buckets, descending, limit);
            (found.window.from, found.window.to, found.offset)
        };
        assert_eq!(find(0, 5, false), (0, 10, 0));
        assert_eq!(find(4, 2, false), (0, 20, 4));
        assert_eq!(find(5, 1, false), (10, 20, 0));
        assert_eq!(find(11, 5, false), (20, 40, 1));
        assert_eq!(find(0, 1, true), (30, 40, 0));
        assert_eq!(find(8, 1, true), (20, 30, 1));
        // Beyond the last call.
        assert_eq!(find(100, 1, false), (0, 40, 100));
    }
}

//! Time spread over the buckets that calls and visits of layers last through.
//!
//! The pyramid adds up the time of a call where the call begins. Calls that are still in progress
//! at the end of their bucket are therefore read from the rows, and their time is moved. Where the
//! rows in the window are more than an answer may read, only calls longer than a quarter of a bucket
//! are: these are few, because a thread can make only a handful of them in a bucket. The other calls
//! then stay where they begin, so that a bucket may have a quarter of its width too much.

use fathom_pyramid::Key;

use super::gather::Gather;
use super::rows::{self, LongVisit};
use super::summed::{long_rows, rows_in};
use super::{By, Gathered, MAX_ROWS, Request, Zoom};
use crate::QueryError;

/// Rows that started this long before the window are searched only among rows of at least this
/// duration: the footers of the parts contain the longest duration of each group of rows.
const LONGER_NS: [i64; 4] = [1_000_000, 100_000_000, 10_000_000_000, 1_000_000_000_000];

/// Rows that began from `begin` to before `end` and took longer than `longer_ns`.
struct Range {
    begin: i64,
    end: i64,
    longer_ns: i64,
}

/// The rows that are spread: they last beyond the end of the bucket of 2^`shift` ns in which they
/// begin, and longer than `least_ns`.
#[derive(Clone, Copy)]
struct Spread {
    window: (i64, i64),
    shift: u8,
    least_ns: i64,
}

impl Spread {
    /// All of them, if the window has at most as many `rows` as an answer may read.
    fn new(request: &Request, window: (i64, i64), shift: u8, rows: u64) -> Self {
        let all = rows <= request.max_rows.unwrap_or(MAX_ROWS);
        Self {
            window,
            shift,
            least_ns: if all { 0 } else { 1 << shift.saturating_sub(2) },
        }
    }

    /// Where the rows are that last through a part of the window.
    fn ranges(&self) -> Vec<Range> {
        let (from, to) = self.window;
        let mut ranges = vec![Range {
            begin: from,
            end: to,
            longer_ns: self.least_ns,
        }];
        let mut reached = 0;
        for most in LONGER_NS.into_iter().chain([i64::MAX]) {
            ranges.push(Range {
                begin: from.saturating_sub(most).max(0),
                end: from.saturating_sub(reached).max(0),
                longer_ns: self.least_ns.max(reached),
            });
            reached = most;
        }
        ranges
    }

    /// A range as a condition on a table with `ts_ns` and `dur_ns`, for rows that reach the window
    /// and last beyond their bucket.
    fn sql(&self, range: &Range) -> String {
        let Range {
            begin,
            end,
            longer_ns,
        } = range;
        let (from, width) = (self.window.0, 1i64 << self.shift);
        format!(
            "ts_ns >= {begin} AND ts_ns < {end} AND dur_ns > {longer_ns} AND dur_ns > {from} - ts_ns \
             AND dur_ns > {width} - (ts_ns & {})",
            width - 1
        )
    }
}

/// Spreads the calls of an answer.
pub(super) fn spread_calls(
    zoom: &Zoom,
    request: &Request,
    gathered: &mut Gathered<'_>,
) -> Result<(), QueryError> {
    let (window, shift) = (gathered.window, gathered.shift);
    let spread = Spread::new(request, window, shift, rows_in(zoom.calls.parts(), window));
    let gather = &mut gathered.gather;
    gather.start(window.0, shift);
    long_calls(zoom, request, request.by, spread, |begin, ns, key| {
        let whole = [(begin, begin.saturating_add(ns))];
        gather.spread(key, begin, (ns, ns), &whole, window.1);
    })
}

/// Spreads the page faults that a condition holds for.
pub(super) fn spread_faults(
    zoom: &Zoom,
    request: &Request,
    condition: &str,
    gathered: &mut Gathered<'_>,
) -> Result<(), QueryError> {
    let (window, shift) = (gathered.window, gathered.shift);
    let parts = || zoom.faults.iter().map(|part| &**part);
    let spread = Spread::new(request, window, shift, rows_in(parts(), window));
    let gather = &mut gathered.gather;
    for range in spread.ranges() {
        let parts = long_rows(parts(), range.begin, range.end, range.longer_ns);
        if parts.is_empty() {
            continue;
        }
        let condition = format!("{} AND {condition}", spread.sql(&range));
        rows::long_faults(
            &zoom.db,
            &parts,
            request.by,
            &condition,
            |begin, ns, key| {
                let whole = [(begin, begin.saturating_add(ns))];
                gather.spread(key, begin, (ns, ns), &whole, window.1);
            },
        )?;
    }
    Ok(())
}

/// Gives `each` the calls that pass the filter and are spread: beginning, duration, key.
fn long_calls(
    zoom: &Zoom,
    request: &Request,
    by: By,
    spread: Spread,
    mut each: impl FnMut(i64, i64, &Key),
) -> Result<(), QueryError> {
    let filter = request.filter.sql();
    let filter = filter.map_or(String::new(), |sql| format!(" AND {sql}"));
    for range in spread.ranges() {
        if let Some(source) = zoom.long_calls_in(range.begin..range.end, range.longer_ns)? {
            let condition = format!("{}{filter}", spread.sql(&range));
            rows::long_calls(&zoom.db, &source, by, &condition, &mut each)?;
        }
    }
    Ok(())
}

/// Spreads the visits of layers, and as time of layer `syscall` the calls without any.
pub(super) fn spread_visits(
    zoom: &Zoom,
    request: &Request,
    (window, shift): ((i64, i64), u8),
    gather: &mut Gather<'_>,
    syscall: &Key,
) -> Result<(), QueryError> {
    let of_filter = match request.filter.sql() {
        None => String::new(),
        Some(sql) => {
            let calls = zoom.calls_in(0..window.1)?;
            format!(" AND rid IN (SELECT rid FROM {calls} WHERE {sql})")
        }
    };
    // The same for calls and visits: the time of calls with visits is subtracted below.
    let rows = rows_in(zoom.calls.parts(), window).max(rows_in(zoom.visits.parts(), window));
    let spread = Spread::new(request, window, shift, rows);
    let mut visits = Vec::new();
    for range in spread.ranges() {
        let parts = zoom
            .visits
            .long_rows(range.begin, range.end, range.longer_ns);
        if parts.is_empty() {
            continue;
        }
        let spread_visits = format!("{}{of_filter}", spread.sql(&range));
        let mut found = Vec::new();
        rows::long_visits(&zoom.db, &parts, &spread_visits, &mut found)?;
        let Some(first) = found.iter().map(|v| v.begin).min() else {
            continue;
        };
        // The other visits of the same calls tell when a visit was in none below it.
        let of_calls = format!(
            "ts_ns >= {first} AND ts_ns < {} AND dur_ns > {} AND rid IN (SELECT rid FROM {} WHERE {spread_visits})",
            window.1,
            spread.least_ns,
            rows::visits_in(&zoom.db, &parts)?,
        );
        let parts = zoom.visits.long_rows(first, window.1, spread.least_ns);
        rows::long_visits(&zoom.db, &parts, &of_calls, &mut visits)?;
    }
    // All calls, as time of their own layer; calls with visits are subtracted below.
    long_calls(zoom, request, By::Nothing, spread, |begin, ns, _| {
        let whole = [(begin, begin.saturating_add(ns))];
        gather.spread(syscall, begin, (ns, ns), &whole, window.1);
    })?;
    // The visits of a call that is in two ranges were read twice.
    let order = |v: &LongVisit| (v.rid, v.begin, v.depth, v.dur_ns);
    visits.sort_unstable_by_key(order);
    visits.dedup_by_key(|v| order(v));
    for request in visits.chunk_by(|a, b| a.rid == b.rid) {
        for visit in request {
            let end = visit.begin.saturating_add(visit.dur_ns);
            if visit.depth == 0 && *syscall == visit.layer {
                let whole = [(visit.begin, end)];
                let less = (visit.dur_ns, -visit.dur_ns);
                gather.spread(syscall, visit.begin, less, &whole, window.1);
            }
            let own = own_intervals(visit, request);
            let length: i64 = own.iter().map(|(a, b)| b - a).sum();
            gather.spread(
                &visit.layer,
                visit.begin,
                (length, visit.self_ns),
                &own,
                window.1,
            );
        }
    }
    Ok(())
}

/// Spreads waits: from the wake-up on, threads wait for the CPU.
pub(super) fn spread_waits(
    zoom: &Zoom,
    request: &Request,
    (window, shift): ((i64, i64), u8),
    of_filter: Option<&str>,
    gather: &mut Gather<'_>,
) -> Result<(), QueryError> {
    let cpu = Key::Text("cpu".into());
    let more = of_filter.map_or(String::new(), |sql| format!(" AND {sql}"));
    let spread = Spread::new(request, window, shift, rows_in(zoom.waits.parts(), window));
    for range in spread.ranges() {
        let parts = zoom
            .waits
            .long_rows(range.begin, range.end, range.longer_ns);
        if parts.is_empty() {
            continue;
        }
        let condition = format!("{}{more}", spread.sql(&range));
        rows::waits_where(&zoom.db, &parts, &condition, |wait| {
            let end = wait.time.saturating_add(wait.took_ns);
            let woken = end.saturating_sub(wait.queue_ns).max(wait.time);
            let reason = Key::Text(wait.reason.into());
            for (key, from, to) in [(&reason, wait.time, woken), (&cpu, woken, end)] {
                // The sums have all of its time where it begins; it is spread from there.
                if from < to {
                    let ns = to - from;
                    gather.spread(key, wait.time, (ns, ns), &[(from, to)], window.1);
                }
            }
        })?;
    }
    Ok(())
}

/// When a visit was in none of the visits of the same request one level deeper, `all` in order
/// of their beginnings.
fn own_intervals(visit: &LongVisit, all: &[LongVisit]) -> Vec<(i64, i64)> {
    let end = visit.begin.saturating_add(visit.dur_ns);
    let mut at = visit.begin;
    let mut own = Vec::new();
    for inner in all.iter().filter(|v| v.depth == visit.depth + 1) {
        let inner_end = inner.begin.saturating_add(inner.dur_ns).min(end);
        if inner_end <= visit.begin || inner.begin >= end {
            continue;
        }
        if inner.begin > at {
            own.push((at, inner.begin));
        }
        at = at.max(inner_end);
    }
    if at < end {
        own.push((at, end));
    }
    // Short visits below may have taken the rest; what the visit took itself is somewhere in it.
    if own.is_empty() {
        own.push((visit.begin, end));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(begin: i64, dur_ns: i64, depth: i32) -> LongVisit {
        LongVisit {
            rid: 1,
            begin,
            dur_ns,
            self_ns: 0,
            depth,
            layer: Key::Null,
        }
    }

    #[test]
    fn time_in_inner_visits_is_not_the_outer_ones() {
        let all = [
            visit(0, 100, 0),
            visit(10, 20, 1),
            visit(12, 5, 2),
            visit(50, 50, 1),
        ];
        assert_eq!(own_intervals(&all[0], &all), [(0, 10), (30, 50)]);
        assert_eq!(own_intervals(&all[1], &all), [(10, 12), (17, 30)]);
        assert_eq!(own_intervals(&all[3], &all), [(50, 100)]);
        let covered = [visit(0, 100, 0), visit(0, 100, 1)];
        assert_eq!(own_intervals(&covered[0], &covered), [(0, 100)]);
    }

    #[test]
    fn ranges_reach_back_to_the_beginning() {
        let request = Request {
            max_rows: Some(1000),
            ..Request::default()
        };
        let spread = |rows| Spread::new(&request, (5_000_000_000, 6_000_000_000), 20, rows);
        assert_eq!(spread(1000).least_ns, 0);
        let ranges = spread(1001).ranges();
        assert_eq!(
            ranges.first().map(|r| (r.begin, r.longer_ns)),
            Some((5_000_000_000, 1 << 18))
        );
        for pair in ranges.windows(2).skip(1) {
            assert_eq!(pair[1].end, pair[0].begin.max(0), "no gap");
        }
        assert_eq!(ranges.last().map(|r| r.begin), Some(0));
    }
}

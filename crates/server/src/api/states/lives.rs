//! The lives of threads, and from when on their history is known.

use std::collections::{HashMap, HashSet};

use arrow::array::Array;

use super::history::{Life, Scope};
use crate::columns::{collect, numbers};
use crate::error::ApiError;
use crate::selection::Window;
use crate::view::Reader;

/// The first rows of threads are searched in the first second, the first ten, and so on: most have
/// rows early.
const FIRST_NS: i64 = 1_000_000_000;

pub(super) fn in_list(tids: &[i32]) -> String {
    match tids {
        [] => "false".into(),
        _ => {
            let list: Vec<String> = tids.iter().map(i32::to_string).collect();
            format!("tid IN ({})", list.join(", "))
        }
    }
}

/// The lives of the threads in a window, in the order of threads and times.
pub(super) fn of(
    reader: &Reader,
    window: Window,
    tids: &[i32],
) -> Result<(Vec<Life>, Scope), ApiError> {
    let meta = reader.session.meta();
    let start = reader.started_at_ns();
    let end = meta.clock.end_monotonic_ns;
    let keep = meta.history.keep.as_ref();
    let scope = Scope {
        from: window.from.max(start),
        to: end
            .map_or(window.to, |end| window.to.min(end))
            .max(window.from.max(start)),
        all_periods: meta.options.tail.is_none() && has_all_periods(reader)?,
        complete_from: keep.and_then(|k| k.complete_from_ns).unwrap_or(start),
    };
    let rows = collect(reader.db().run(&format!(
        "SELECT tid, (started_at_ns - {start})::DOUBLE AS begun, \
         (ended_at_ns - {start})::DOUBLE AS ended, \
         (SELECT (min(started_at_ns) - {start})::DOUBLE FROM processes) AS first \
         FROM processes WHERE {} ORDER BY tid, started_at_ns",
        in_list(tids)
    ))?)?;
    let (tid, begun) = (numbers(&rows, "tid")?, numbers(&rows, "begun")?);
    let (ended, first) = (numbers(&rows, "ended")?, numbers(&rows, "first")?);
    // The first process of a command is recorded from when it executes the command.
    let older_until = match meta.command.is_empty() || rows.num_rows() == 0 {
        true => 0,
        false => (first.value(0) as i64).max(0),
    };
    let mut lives: Vec<Life> = Vec::new();
    let mut older: Vec<bool> = Vec::new();
    let mut add = |tid: i32, from: i64, until: i64, is_older: bool| {
        if let Some(last) = lives.last_mut().filter(|last| last.tid == tid) {
            last.until = last.until.min(start.saturating_add(from));
        }
        lives.push(Life {
            tid,
            from: start.saturating_add(from.max(0)),
            until,
            known_from: i64::MIN,
            has_waits: true,
            goes_on: true,
        });
        older.push(is_older);
    };
    let last = end.unwrap_or(i64::MAX);
    for i in 0..rows.num_rows() {
        let from = begun.value(i) as i64;
        let until = match ended.is_valid(i) {
            true => start.saturating_add(ended.value(i) as i64).min(last),
            false => last,
        };
        add(tid.value(i) as i32, from, until, from <= older_until);
    }
    let known: HashSet<i32> = lives.iter().map(|life| life.tid).collect();
    for tid in tids.iter().filter(|tid| !known.contains(tid)) {
        // No row says when it began.
        lives.push(Life {
            tid: *tid,
            from: start,
            until: last,
            known_from: i64::MIN,
            has_waits: true,
            goes_on: true,
        });
        older.push(true);
    }
    let lived: Vec<i32> = tids.to_vec();
    let first_waits = first_rows(reader, "waits", "true", &lived, i64::MAX)?;
    let of_older: Vec<i32> = lives
        .iter()
        .zip(&older)
        .filter(|(_, o)| **o)
        .map(|(l, _)| l.tid)
        .collect();
    // A call proves that its thread ran, but for one that it waited in before it was recorded.
    let calls = "api = 'syscall' AND op_flags IS NULL";
    let first_calls = first_rows(reader, "syscalls", calls, &of_older, scope.to)?;
    let later = match end {
        Some(_) => None,
        None => Some(later(reader, tids, scope.to)?),
    };
    for (life, is_older) in lives.iter_mut().zip(older) {
        let wait = first_waits.get(&life.tid).copied();
        life.has_waits = wait.is_some_and(|wait| wait < life.until);
        life.known_from = life.from;
        if is_older && let Some(wait) = wait {
            // Not of another life before.
            let row = first_calls
                .get(&life.tid)
                .map_or(wait, |call| wait.min(*call));
            life.known_from = row.clamp(life.from, life.until);
        }
        life.goes_on = later.as_ref().is_none_or(|tids| tids.contains(&life.tid));
    }
    lives.retain(|life| life.from < scope.to && life.until > scope.from);
    lives.sort_by_key(|life| (life.tid, life.from));
    Ok((lives, scope))
}

/// Whether periods outside of requests are in the table, too.
fn has_all_periods(reader: &Reader) -> Result<bool, ApiError> {
    let sql = "SELECT tid FROM waits WHERE state IS NOT NULL LIMIT 1";
    Ok(collect(reader.db().run(sql)?)?.num_rows() > 0)
}

/// When the first row of each thread begins, if that is before `until`.
fn first_rows(
    reader: &Reader,
    table: &str,
    condition: &str,
    tids: &[i32],
    until: i64,
) -> Result<HashMap<i32, i64>, ApiError> {
    let start = reader.started_at_ns();
    let mut found = HashMap::new();
    let mut left = tids.to_vec();
    let mut reach = Some(FIRST_NS);
    let mut from = i64::MIN;
    while !left.is_empty() && from < until {
        let to = reach.map_or(until, |reach| start.saturating_add(reach).min(until));
        let rows = collect(reader.db().run(&format!(
            "SELECT tid, (min(ts_ns) - {start})::DOUBLE AS first FROM {table} \
             WHERE ts_ns >= {from} AND ts_ns < {to} AND {condition} AND {} GROUP BY tid",
            in_list(&left)
        ))?)?;
        let (tid, first) = (numbers(&rows, "tid")?, numbers(&rows, "first")?);
        for i in 0..rows.num_rows() {
            found.insert(
                tid.value(i) as i32,
                start.saturating_add(first.value(i) as i64),
            );
        }
        left.retain(|tid| !found.contains_key(tid));
        from = to;
        reach = reach
            .and_then(|reach| reach.checked_mul(10))
            .filter(|r| *r < 1_000 * FIRST_NS);
    }
    Ok(found)
}

/// The threads with waits from `from` on.
fn later(reader: &Reader, tids: &[i32], from: i64) -> Result<HashSet<i32>, ApiError> {
    let sql = format!(
        "SELECT DISTINCT tid FROM waits WHERE ts_ns >= {from} AND {}",
        in_list(tids)
    );
    let rows = collect(reader.db().run(&sql)?)?;
    let tid = numbers(&rows, "tid")?;
    Ok(tid.iter().flatten().map(|tid| tid as i32).collect())
}

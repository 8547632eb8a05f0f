//! `GET /sessions/ID/threads`: who made calls in a window.

use std::collections::{HashMap, HashSet};

use arrow::array::Array;
use axum::extract::{Path, State};
use fathom_query::zoom::By;
use serde::{Deserialize, Serialize};

use super::tiles::{self, Extras};
use super::timeline::{begun_before, begun_in};
use super::{Json, Shared};
use crate::columns::{collect, flags, numbers, texts};
use crate::error::ApiError;
use crate::job::Lane;
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Threads in an answer; of more those with the most time.
const MOST: usize = 5000;
/// Calls in the window's files from which on the pyramid answers, though not exactly.
const VERY_MANY: u64 = 20_000_000;

/// A thread.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct ThreadRow {
    /// Process; null when an imported log does not tell.
    pub pid: Option<i32>,
    pub tid: i32,
    /// Name of the thread.
    pub comm: Option<String>,
    /// Name of the process.
    pub process: Option<String>,
    /// The nearest process above its own that has calls in the window, too; null when there is none.
    pub parent: Option<i32>,
    /// Calls in the window.
    pub calls: f64,
    /// Sum of their durations.
    pub time_ns: f64,
    /// When the thread began, nanoseconds since the start of the recording.
    pub start: Option<f64>,
    /// When it ended; null when it had not.
    pub end: Option<f64>,
}

/// Threads with calls in a window, most time first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Threads {
    pub threads: Vec<ThreadRow>,
    /// How many there are, also when not all are in the answer.
    pub total: usize,
    /// Whether these are all, with all their calls. With very many calls threads that were
    /// never among the 64 with the most time may lack calls, or be missing.
    pub exact: bool,
}

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ThreadsParams {
    /// With 1: threads in a call that began before the window, too.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    under_way: Option<u8>,
}

/// `GET /sessions/ID/threads`.
pub(crate) async fn threads(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<ThreadsParams>,
) -> Result<Json<Threads>, ApiError> {
    let mut selection = selection.parse()?;
    selection.pixels = 1;
    let under_way = params.under_way == Some(1);
    let query = move |reader: &Reader, _: &crate::job::Stop| {
        let (mut threads, exact) = match of_pyramid(reader, &selection)? {
            Some(answer) => answer,
            None => (of_rows(reader, &selection, under_way)?, true),
        };
        let order = |t: &ThreadRow| (-t.time_ns, t.pid, t.tid);
        threads.sort_by(|a, b| {
            order(a)
                .partial_cmp(&order(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let total = threads.len();
        threads.truncate(MOST);
        name(reader, &mut threads)?;
        place(reader, &mut threads)?;
        Ok(Threads {
            threads,
            total,
            exact,
        })
    };
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

/// The threads, and whether they are exact: when buckets fit the window and no thread is in
/// a rest. Otherwise rows should answer, unless there are very many.
fn of_pyramid(
    reader: &Reader,
    selection: &Selection,
) -> Result<Option<(Vec<ThreadRow>, bool)>, ApiError> {
    let window = selection.window(reader.started_at_ns(), reader.span());
    // Buckets at the window's borders hold more than the window: only the whole
    // session has none.
    let whole = reader
        .span()
        .is_none_or(|(first, last)| window.from <= first && window.to > last);
    let many = reader.zoom.rows_near(window.from..window.to) > VERY_MANY;
    if !whole && !many {
        return Ok(None);
    }
    let mut selection = selection.clone();
    if many {
        // The more buckets, the more threads have cells of their own.
        selection.pixels = 256;
    }
    let extras = Extras::default();
    let answer = tiles::sums(reader, &selection, By::Thread, usize::MAX, extras)?;
    let rows = &answer.rows;
    let rest = flags(rows, "rest")?;
    let exact = whole && rest.true_count() == 0;
    let good_enough = many && answer.blocks > 0;
    if !exact && !good_enough {
        return Ok(None);
    }
    let (pid, tid) = (numbers(rows, "pid")?, numbers(rows, "tid")?);
    let (calls, time) = (numbers(rows, "calls")?, numbers(rows, "total_ns")?);
    let mut threads: HashMap<i32, ThreadRow> = HashMap::new();
    for i in (0..rows.num_rows()).filter(|i| !rest.value(*i)) {
        // A process that is not known is summed up without its thread.
        if !tid.is_valid(i) {
            return Ok(None);
        }
        let number = tid.value(i) as i32;
        let thread = threads.entry(number).or_insert_with(|| ThreadRow {
            pid: pid.is_valid(i).then(|| pid.value(i) as i32),
            tid: number,
            ..ThreadRow::default()
        });
        thread.calls += calls.value(i);
        thread.time_ns += time.value(i);
    }
    Ok(Some((threads.into_values().collect(), exact)))
}

fn of_rows(
    reader: &Reader,
    selection: &Selection,
    under_way: bool,
) -> Result<Vec<ThreadRow>, ApiError> {
    let window = selection.window(reader.started_at_ns(), reader.span());
    let select = "SELECT pid, tid, true AS counts, dur_ns FROM";
    let mut selects = vec![begun_in(reader, selection, window, select)?];
    if under_way {
        let select = "SELECT pid, tid, false AS counts, 0 AS dur_ns FROM";
        selects.extend(begun_before(reader, selection, window, select)?);
    }
    let rows = collect(reader.db().run(&format!(
        "SELECT pid, tid, count(*) FILTER (counts)::DOUBLE AS calls, \
         coalesce(sum(dur_ns), 0)::DOUBLE AS time_ns FROM ({}) GROUP BY pid, tid",
        selects.join(" UNION ALL ")
    ))?)?;
    let (pid, tid) = (numbers(&rows, "pid")?, numbers(&rows, "tid")?);
    let (calls, time) = (numbers(&rows, "calls")?, numbers(&rows, "time_ns")?);
    let thread = |i| ThreadRow {
        pid: pid.is_valid(i).then(|| pid.value(i) as i32),
        tid: tid.value(i) as i32,
        calls: calls.value(i),
        time_ns: time.value(i),
        ..ThreadRow::default()
    };
    Ok((0..rows.num_rows()).map(thread).collect())
}

/// Adds names and times of life.
fn name(reader: &Reader, threads: &mut [ThreadRow]) -> Result<(), ApiError> {
    if threads.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<i32> = threads.iter().map(|t| t.tid).collect();
    ids.extend(threads.iter().filter_map(|t| t.pid));
    ids.sort_unstable();
    ids.dedup();
    let ids: Vec<String> = ids.iter().map(i32::to_string).collect();
    // A number may have been given to several, one after the other: the last one.
    let rows = collect(reader.db().run(&format!(
        "SELECT tid, arg_max(comm, started_at_ns) AS comm, max(started_at_ns) AS begin, \
         arg_max(coalesce(ended_at_ns, -1), started_at_ns) AS ended FROM processes \
         WHERE tid IN ({}) GROUP BY tid",
        ids.join(", ")
    ))?)?;
    let (tid, comm) = (numbers(&rows, "tid")?, texts(&rows, "comm")?);
    let (begin, ended) = (numbers(&rows, "begin")?, numbers(&rows, "ended")?);
    let places: HashMap<i32, usize> = (0..rows.num_rows())
        .map(|i| (tid.value(i) as i32, i))
        .collect();
    let start = reader.started_at_ns() as f64;
    let name = |i: usize| comm.is_valid(i).then(|| comm.value(i).to_string());
    for thread in threads {
        if let Some(i) = places.get(&thread.tid) {
            thread.comm = name(*i);
            thread.start = begin.is_valid(*i).then(|| begin.value(*i) - start);
            let end = ended.is_valid(*i).then(|| ended.value(*i));
            thread.end = end.filter(|end| *end >= 0.0).map(|end| end - start);
        }
        let process = thread.pid.and_then(|pid| places.get(&pid));
        thread.process = process.and_then(|i| name(*i));
    }
    Ok(())
}

/// Adds the ancestors of the threads' processes. Some in between may have no calls.
fn place(reader: &Reader, threads: &mut [ThreadRow]) -> Result<(), ApiError> {
    let rows = collect(reader.db().run(
        "SELECT tid, arg_max(ppid, started_at_ns) AS ppid FROM processes \
         WHERE tid = pid AND ppid IS NOT NULL GROUP BY tid",
    )?)?;
    let (pid, ppid) = (numbers(&rows, "tid")?, numbers(&rows, "ppid")?);
    let above: HashMap<i32, i32> = (0..rows.num_rows())
        .map(|i| (pid.value(i) as i32, ppid.value(i) as i32))
        .collect();
    let shown: HashSet<i32> = threads.iter().filter_map(|t| t.pid).collect();
    for thread in threads {
        thread.parent = thread.pid.and_then(|pid| nearest(pid, &above, &shown));
    }
    Ok(())
}

/// The nearest process above `pid` that is shown.
fn nearest(pid: i32, above: &HashMap<i32, i32>, shown: &HashSet<i32>) -> Option<i32> {
    let mut at = pid;
    // Numbers are given again: a chain of them may be a circle.
    for _ in 0..above.len() {
        at = *above.get(&at)?;
        if at == pid {
            return None;
        }
        if shown.contains(&at) {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_without_calls_are_skipped() {
        let above = HashMap::from([(5, 4), (4, 3), (3, 1), (8, 9), (9, 8)]);
        let shown = HashSet::from([1, 3, 5, 8]);
        assert_eq!(nearest(5, &above, &shown), Some(3));
        assert_eq!(nearest(3, &above, &shown), Some(1));
        assert_eq!(nearest(1, &above, &shown), None);
        assert_eq!(nearest(8, &above, &shown), None, "a circle");
    }
}

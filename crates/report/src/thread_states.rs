//! Where the wall time of threads went.

use fathom_model::units::{duration, percent, share};
use fathom_query::Db;
use fathom_query::fetch::rows;
use fathom_query::read_row;
use serde::Serialize;

use crate::error::ReportError;
use crate::section::Layout::{Flexible, Left, Right};
use crate::section::{Section, TOP, total};

/// Reasons for which a thread is blocked while it has something to do, as in table `waits`: a thread
/// that waits for others, for time or for input may be idle.
const BUSY: &str = "'disk', 'page_cache', 'file_system', 'lock', 'file_lock', 'page_fault', 'swap'";

/// The time of a thread in the recording: the states add up to it.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct ThreadStates {
    /// Thread.
    pub tid: i64,
    /// Its name.
    pub comm: Option<String>,
    /// Its process.
    pub pid: Option<i64>,
    /// Its time in the recording.
    pub wall_ns: i64,
    /// On a CPU.
    pub running_ns: i64,
    /// It wanted a CPU.
    pub runnable_ns: i64,
    /// Blocked, by reason as in table `waits`, most time first.
    pub blocked: Vec<BlockedTime>,
    /// Not observed.
    pub unknown_ns: i64,
}

/// Time in which a thread was blocked.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct BlockedTime {
    /// Reason, as in table `waits`.
    pub reason: String,
    /// Time.
    pub time_ns: i64,
}

/// A row of view `thread_states`.
struct Part {
    tid: i64,
    comm: Option<String>,
    pid: Option<i64>,
    state: String,
    reason: String,
    time_ns: i64,
}

/// The threads that were busy longest: on a CPU, waiting for one, or blocked in storage.
pub(crate) fn thread_states(db: &Db) -> Result<Vec<ThreadStates>, ReportError> {
    let parts = rows(
        db,
        &format!(
            "WITH states AS MATERIALIZED (FROM thread_states),
             busiest AS (
                 SELECT tid, pid, sum(time_ns) FILTER (
                     state IN ('running', 'runnable') OR reason IN ({BUSY})) AS busy_ns
                 FROM states GROUP BY tid, pid
                 ORDER BY busy_ns DESC NULLS LAST, tid, pid LIMIT {TOP})
             SELECT states.tid, comm, states.pid, state, reason, time_ns
             FROM states JOIN busiest
                 ON states.tid = busiest.tid AND states.pid IS NOT DISTINCT FROM busiest.pid
             ORDER BY busy_ns DESC NULLS LAST, states.tid, states.pid, time_ns DESC, state, reason"
        ),
        |row| read_row!(row => Part { tid comm pid state reason time_ns }),
    )?;
    let mut threads: Vec<ThreadStates> = Vec::new();
    for part in parts {
        let same = |thread: &ThreadStates| (thread.tid, thread.pid) == (part.tid, part.pid);
        if !threads.last().is_some_and(same) {
            threads.push(ThreadStates {
                tid: part.tid,
                comm: part.comm,
                pid: part.pid,
                ..ThreadStates::default()
            });
        }
        let Some(thread) = threads.last_mut() else {
            continue;
        };
        thread.wall_ns = thread.wall_ns.saturating_add(part.time_ns);
        match part.state.as_str() {
            "running" => thread.running_ns = part.time_ns,
            "runnable" => thread.runnable_ns = part.time_ns,
            "blocked" => thread.blocked.push(BlockedTime {
                reason: part.reason,
                time_ns: part.time_ns,
            }),
            _ => thread.unknown_ns = thread.unknown_ns.saturating_add(part.time_ns),
        }
    }
    Ok(threads)
}

/// The table of the report.
pub(crate) fn section(threads: &[ThreadStates]) -> Section {
    let part = |ns: i64, thread: &ThreadStates| match ns {
        0 => "·".into(),
        ns => share(ns as f64, thread.wall_ns as f64).map_or("-".into(), percent),
    };
    let row = |thread: &ThreadStates| {
        let reasons = thread.blocked.iter().map(|blocked| {
            let reason = blocked.reason.replace('_', " ");
            format!("{reason} {}", part(blocked.time_ns, thread))
        });
        vec![
            thread.comm.clone().unwrap_or_else(|| "-".into()),
            thread.tid.to_string(),
            duration(thread.wall_ns),
            part(thread.running_ns, thread),
            part(thread.runnable_ns, thread),
            part(total(thread.blocked.iter().map(|b| b.time_ns)), thread),
            part(thread.unknown_ns, thread),
            reasons.collect::<Vec<_>>().join(", "),
        ]
    };
    Section {
        title: "Wall time of the busiest threads",
        note: "shares of the time in the recording".into(),
        columns: vec![
            ("thread", Left),
            ("tid", Right),
            ("time", Right),
            ("running", Right),
            ("runnable", Right),
            ("blocked", Right),
            ("unknown", Right),
            ("blocked by", Flexible),
        ],
        rows: threads.iter().map(row).collect(),
    }
}

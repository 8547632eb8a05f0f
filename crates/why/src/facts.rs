//! The numbers of a story, from the session by SQL.

use std::collections::HashSet;

use fathom_diagnose::Activity;
use fathom_model::kind::Kind;
use fathom_model::meta::{SessionMeta, State};
use fathom_model::syscalls::SYSCALLS;
use fathom_model::tables::{BIOS, BLOCK, FAULTS, FILES, SLICES, SYSCALLS as SYSCALLS_TABLE, WAITS};
use fathom_model::units::count;
use fathom_query::escape::sql_string;
use fathom_query::fetch::rows;
use fathom_query::{Db, QueryError, read_row, run_of};
use serde::Serialize;

use crate::causes::Share;
use crate::scope::Scope;

/// Part of the mean time in the queue, weighted by that time, from which on a block request was delayed.
const DELAYED: f64 = 0.1;
/// Block requests for which the requests ahead are counted: the ones that took the longest.
const MAX_VICTIMS: usize = 1000;
/// Processes whose block requests ahead are added up by name, and names that are kept.
const MAX_OWNERS: usize = 1000;
const MAX_NAMES: usize = 8;

/// The numbers of a story. Times are nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Facts {
    /// How long the recording, or the part of it that is asked about, took.
    pub span_ns: i64,
    /// Requests to storage: calls, operations, and page faults on mapped files.
    pub requests: i64,
    /// Sum of their durations; threads that wait at the same time add up.
    pub total_ns: i64,
    /// By program and activity, those with the most time first.
    pub groups: Vec<Group>,
    /// Where the time of all of them went, most first. Adds up to `total_ns`.
    pub all: Vec<Share>,
    /// Whether `causes`, `blocks` and `ahead` are of the first group alone.
    pub first_only: bool,
    /// Where the time of these requests went, most first. Adds up to the sum of their durations.
    pub causes: Vec<Share>,
    /// Their block requests by device, most time first.
    pub blocks: Vec<Block>,
    /// Block requests that were ahead of theirs, by the process that caused them, most bytes first.
    pub ahead: Vec<Ahead>,
    /// Their block requests were not looked at: that takes more memory or time than a query has.
    pub too_many_blocks: bool,
    /// The one request that is asked about.
    pub single: Option<Single>,
    /// How long a request was under way at most: the sum of `wall_ns` of all groups. Not known with very many
    /// requests.
    #[serde(skip)]
    pub walls_ns: Option<i64>,
    /// Calls with rows, where others have none.
    #[serde(skip)]
    pub with_rows: i64,
    /// Calls without rows: lost, or counted instead.
    #[serde(skip)]
    pub without_rows: i64,
    /// Durations of calls and page faults without rows, except on files that are no storage.
    #[serde(skip)]
    pub without_rows_ns: i64,
    /// Tables of requests that lack rows, in words: the number and the time of requests are not known then. Empty
    /// if none does.
    #[serde(skip)]
    pub missing_requests: String,
    /// The same of the tables that say where the time went: there are no causes then.
    #[serde(skip)]
    pub missing_causes: String,
}

/// Tables that have the requests, and the files that make them requests to storage.
pub(crate) const OF_REQUESTS: [&str; 3] = [SYSCALLS_TABLE.name, FAULTS.name, FILES.name];
/// Tables that say where the time of requests went.
pub(crate) const OF_CAUSES: [&str; 4] = [SLICES.name, WAITS.name, BLOCK.name, BIOS.name];

/// Which of the tables lack rows that they had, in words; empty if none does.
pub(crate) fn missing(db: &Db, meta: &SessionMeta, tables: &[&str]) -> Result<String, QueryError> {
    if meta.state != State::Complete {
        return Ok(String::new());
    }
    let mut all = Vec::new();
    for table in tables {
        let there = rows(db, &format!("SELECT count(*) AS n FROM {table}"), |row| {
            row.int("n")
        })?;
        let there = there.first().copied().unwrap_or_default() as u64;
        let stored = meta.rows.get(*table).copied().unwrap_or(there);
        // A repair counts again: of calls and page faults it keeps how many are missing.
        let before = match *table {
            name if name == SYSCALLS_TABLE.name => meta.totals.missing,
            name if name == FAULTS.name => meta.totals.faults.missing,
            _ => 0,
        };
        let gone = stored.saturating_sub(there).saturating_add(before);
        let mut repairs = meta.history.repairs.iter();
        let repaired = repairs.any(|lost| is_about(lost, table));
        if *table == FILES.name {
            // Of a file that changed, the last row counts.
            if (gone > 0 || repaired) && has_unknown_files(db)? {
                all.push(format!("rows of table {table}"));
            }
        } else if gone > 0 {
            all.push(format!(
                "{} of {} rows of table {table}",
                count(i64::try_from(gone).unwrap_or(i64::MAX)),
                count(i64::try_from(gone.saturating_add(there)).unwrap_or(i64::MAX)),
            ));
        } else if repaired {
            all.push(format!("rows of table {table}"));
        }
    }
    Ok(all.join(" and "))
}

/// Whether a call is on a file that has no row.
fn has_unknown_files(db: &Db) -> Result<bool, QueryError> {
    let sql = "SELECT 1 AS n FROM syscalls ANTI JOIN files USING (file_id)
         WHERE file_id IS NOT NULL LIMIT 1";
    Ok(!rows(db, sql, |row| row.int("n"))?.is_empty())
}

/// Whether a sentence about the data that a repair could not save is about a table.
fn is_about(lost: &str, table: &str) -> bool {
    let named = lost.strip_prefix("table ").unwrap_or(lost);
    let rest = named.strip_prefix(table);
    rest.is_some_and(|rest| rest.starts_with(['/', ':', ' ']))
}

/// Requests of a program with one purpose.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Group {
    /// Name of its processes.
    pub comm: String,
    /// The process; null when there are several.
    pub pid: Option<i64>,
    /// How many there are.
    pub processes: i64,
    /// Threads of them.
    pub threads: i64,
    /// Purpose of the requests.
    pub activity: Activity,
    /// Operations of io_uring and AIO, for which no thread waits in the call.
    pub asynchronous: bool,
    /// Name of the calls with most of the time.
    pub syscall: String,
    /// How many there are.
    pub requests: i64,
    /// Bytes that they moved.
    pub bytes: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// In how much of the span one of them at least was under way; null with very many requests.
    pub wall_ns: Option<i64>,
    /// Sum of the parts of their durations in the span; 0 with very many requests.
    #[serde(skip)]
    pub spent_ns: i64,
    /// Files, each by its path: one that is made again and again counts once.
    pub files: i64,
    /// The file with the most time; null when it is not known.
    pub file_id: Option<i64>,
    /// Its path.
    pub path: Option<String>,
    /// Sum of durations on it.
    pub file_ns: i64,
    /// The longest request.
    pub longest_rid: i64,
    /// Its duration.
    pub longest_ns: i64,
    /// Name of its call.
    #[serde(skip)]
    pub longest_syscall: String,
    /// All of them are of one call.
    #[serde(skip)]
    pub one_call: bool,
}

/// Block requests on a device for which requests waited.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Block {
    /// Name of the device.
    pub device: String,
    /// How many.
    pub requests: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Of which reads.
    pub reads: i64,
    /// Sum of their times in the queue.
    pub queue_ns: i64,
    /// Sum of their times in the device.
    pub device_ns: i64,
    /// Median of the times in the device; null when no end was seen.
    pub device_p50_ns: Option<i64>,
}

/// Block requests that were queued before others and not yet done when those came.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Ahead {
    /// Name of the device.
    pub device: String,
    /// Name of the process that caused them, or else of the thread that submitted them.
    pub comm: String,
    /// The process; null when there are several, or when it is not known.
    pub pid: Option<i64>,
    /// How many processes of this name there are.
    pub processes: i64,
    /// Whether it is the process of the request that waited.
    pub own: bool,
    /// Delayed block requests that had any ahead: those in the queue for a tenth or more of the mean time there, weighted
    /// by that time.
    pub behind: i64,
    /// Time of those from when they were queued until they were completed, nanoseconds.
    pub behind_ns: i64,
    /// Block requests ahead of each of those on average, thousandths.
    pub requests_milli: i64,
    /// Their bytes on average.
    pub bytes: i64,
}

/// The one request that a story is about.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Single {
    /// Its id.
    pub rid: i64,
    /// Thread.
    pub tid: i64,
    /// Median duration of all requests of the same call, by the same program; null when it is the
    /// only one.
    pub p50_ns: Option<i64>,
    /// Whether it had not ended.
    pub pending: bool,
    /// Name of its error.
    pub errno: Option<String>,
}

/// Name of an activity in SQL.
pub(crate) fn name_of(activity: Activity) -> String {
    format!("{activity:?}")
}

pub(crate) fn activity_of(name: &str) -> Activity {
    Activity::ALL
        .into_iter()
        .find(|activity| name_of(*activity) == name)
        .unwrap_or_default()
}

/// The name of a page fault, where a call has its own.
pub(crate) const PAGE_FAULT: &str = "page_fault";

/// The requests that are asked about, for statements.
pub(crate) struct Requests<'a> {
    pub scope: &'a Scope,
    /// Rows of `kinds`: the calls that occur. With all that there are, planning a statement takes as long as
    /// running it on a short session.
    kinds: String,
}

impl<'a> Requests<'a> {
    pub fn of(db: &Db, scope: &'a Scope) -> Result<Self, QueryError> {
        let occur = rows(
            db,
            "SELECT DISTINCT syscall FROM (SELECT syscall FROM syscalls
                 UNION ALL SELECT syscall FROM losses UNION ALL SELECT syscall FROM counters)",
            |row| row.get::<Option<String>>("syscall"),
        )?;
        let occur: HashSet<String> = occur.into_iter().flatten().collect();
        let kinds = SYSCALLS.iter().filter(|call| occur.contains(call.name));
        let kinds = kinds.map(|call| {
            let of_descriptor = matches!(call.kind, Kind::Close | Kind::CloseRange | Kind::Seek);
            let by_path = call.kind == Kind::SyncAll || call.kind.is_metadata() && !of_descriptor;
            format!(
                "({}, '{}', {by_path}, {})",
                sql_string(call.name),
                name_of(Activity::of(call.kind)),
                call.kind == Kind::Open,
            )
        });
        // One that no call has: a list has a row.
        let none = "('', '', false, false)".to_owned();
        let kinds: Vec<String> = kinds.chain([none]).collect();
        Ok(Self {
            scope,
            kinds: kinds.join(", "),
        })
    }

    /// Beginning of a query: `selected` has the requests of the scope for which `of` holds, a condition on `rid`.
    pub fn selected(&self, of: Option<&str>) -> String {
        let Self { scope, kinds } = self;
        // Pipes, sockets and terminals are no storage. A question about one request or file includes them.
        let storage = match scope.request.is_some() || scope.file.is_some() {
            true => "true",
            false => "coalesce(of_storage, by_path)",
        };
        let numbers = of.unwrap_or("true");
        let faults = match scope.fault_condition() {
            None => String::new(),
            Some(condition) => format!(
                "UNION ALL
                 SELECT rid, ts_ns, coalesce(dur_ns, 0), pid, tid, comm, '{PAGE_FAULT}', '{fault}',
                     0, NULL, file_id
                 FROM (SELECT *, NULL::VARCHAR AS path2 FROM faults) WHERE {numbers} AND {condition}",
                fault = name_of(Activity::Fault)
            ),
        };
        format!(
            "WITH kinds(syscall, activity, by_path, opens) AS (VALUES {kinds}),
             known AS (
                 SELECT file_id, CASE WHEN file_type <> 'unknown'
                     THEN file_type IN ('regular', 'directory', 'symlink', 'block')
                     WHEN {UNKNOWN_OF_STORAGE} THEN true END AS of_storage
                 FROM files WHERE file_type <> ''),
             process_names AS (
                 SELECT pid, arg_max(comm, started_at_ns) AS process FROM processes
                 WHERE pid = tid AND comm <> '' GROUP BY pid),
             requests AS (
                 SELECT rid, ts_ns, coalesce(dur_ns, 0) AS dur_ns, pid, tid, comm, syscall,
                     if({MAKES_FILE}, '{change}', activity) AS activity,
                     (api <> 'syscall')::INTEGER AS asynchronous, bytes, file_id
                 FROM (SELECT * FROM syscalls WHERE {numbers} AND {calls})
                 JOIN kinds USING (syscall) LEFT JOIN known USING (file_id)
                 WHERE {storage}
                 {faults}),
             selected AS (
                 SELECT requests.* REPLACE (coalesce(process, comm, '') AS comm)
                 FROM requests LEFT JOIN process_names USING (pid))",
            calls = scope.call_condition(),
            change = name_of(Activity::Change),
        )
    }
}

/// Whether a call is an open that makes a file or empties one: `Call::makes_file` of the diagnosis.
const MAKES_FILE: &str = "syscall = 'creat' OR opens AND coalesce(flags, '') SIMILAR TO \
                          '.*O_(TRUNC|TMPFILE|CREAT[|]O_EXCL).*'";

/// A file of unknown type, as in a trace of LTTng, outside of the kernel's own file systems.
const UNKNOWN_OF_STORAGE: &str = "path LIKE '/%' AND NOT path SIMILAR TO '/(dev|proc|sys)(/.*)?'";

/// The requests of a group, as a condition on `selected`.
pub(crate) fn focus_of(group: &Group) -> String {
    format!(
        "comm = {} AND activity = '{}' AND asynchronous = {}",
        sql_string(&group.comm),
        name_of(group.activity),
        i32::from(group.asynchronous)
    )
}

/// The part of the recording that is asked about.
pub(crate) fn span(db: &Db, meta: &SessionMeta, scope: &Scope) -> Result<(i64, i64), QueryError> {
    let start = meta.clock.start_monotonic_ns;
    let end = rows(
        db,
        "SELECT coalesce(max(ended_at_ns), \
         (SELECT max(ts_ns + coalesce(dur_ns, 0)) FROM syscalls), 0)::BIGINT AS ended FROM session",
        |row| row.int("ended"),
    )?;
    let end = end.first().copied().unwrap_or(start).max(start);
    let run = match scope.has_window() {
        true => None,
        false => run_of(db, meta)?,
    };
    let (start, end) = match run {
        Some((first, last)) if first < last => (first.max(start), last.min(end).max(start)),
        _ => (start, end),
    };
    let from = scope.from_ns.unwrap_or(start).max(start);
    Ok((from, scope.until_ns.unwrap_or(end).min(end).max(from)))
}

/// Counts the calls that have no rows, and their time. A window has the counters of seconds that overlap it.
pub(crate) fn without_rows(
    db: &Db,
    requests: &Requests<'_>,
    from: i64,
    until: i64,
    facts: &mut Facts,
) -> Result<(), QueryError> {
    let in_window = |first: &str, last: &str| match requests.scope.has_window() {
        true => format!("{last} >= {from} AND {first} <= {until}"),
        false => "true".to_owned(),
    };
    let found = rows(
        db,
        &format!(
            "{selected},
             rowless AS (
                 SELECT syscall, file_id, count AS calls, dur_ns, first_at_ns AS first_ns,
                     last_at_ns AS last_ns
                 FROM losses WHERE layer = 'syscall' OR syscall = '{PAGE_FAULT}'
                 UNION ALL
                 SELECT syscall, coalesce(file_id, -1), count, dur_ns, ts_ns, ended_at_ns
                 FROM counters)
             SELECT bounded(coalesce(sum(calls) FILTER (syscall <> '{PAGE_FAULT}'), 0)) AS calls,
                 -- Where the file is not known, it may be storage.
                 bounded(coalesce(sum(dur_ns)
                     FILTER (file_id < 0 OR coalesce(of_storage, by_path, true)), 0)) AS total_ns
             FROM rowless LEFT JOIN kinds USING (syscall) LEFT JOIN known USING (file_id)
             WHERE {of_span}",
            selected = requests.selected(Some("false")),
            of_span = in_window("first_ns", "last_ns"),
        ),
        |row| Ok((row.int("calls")?, row.int("total_ns")?)),
    )?;
    if let Some((calls, total_ns)) = found.first() {
        (facts.without_rows, facts.without_rows_ns) = (*calls, *total_ns);
    }
    if facts.without_rows > 0 {
        let sql = format!(
            "SELECT count(*) AS n FROM syscalls WHERE {}",
            in_window("ts_ns", "ts_ns + coalesce(dur_ns, 0)")
        );
        let there = rows(db, &sql, |row| row.int("n"))?;
        facts.with_rows = there.first().copied().unwrap_or_default();
    }
    Ok(())
}

/// Measures in how much of the span a request of each group was under way.
pub(crate) fn walls(
    db: &Db,
    selected: &str,
    from: i64,
    until: i64,
    groups: &mut [Group],
) -> Result<(), QueryError> {
    struct Wall {
        comm: String,
        activity: String,
        asynchronous: i64,
        wall_ns: i64,
        spent_ns: i64,
    }
    // The part of an interval behind the ends of all that began before it.
    let walls = rows(
        db,
        &format!(
            "{selected},
             clipped AS (
                 SELECT comm, activity, asynchronous, greatest(ts_ns, {from}) AS b,
                     least(ts_ns + dur_ns, {until}) AS e
                 FROM selected),
             ordered AS (
                 SELECT *, max(e) OVER (
                     PARTITION BY comm, activity, asynchronous ORDER BY b
                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                 FROM clipped WHERE e > b)
             SELECT comm, activity, asynchronous,
                 bounded(sum(greatest(0, e - greatest(b, coalesce(before, b))))) AS wall_ns,
                 bounded(sum(e - b)) AS spent_ns
             FROM ordered GROUP BY comm, activity, asynchronous"
        ),
        |row| read_row!(row => Wall { comm activity asynchronous wall_ns spent_ns }),
    )?;
    for group in groups.iter_mut() {
        let wall = walls.iter().find(|wall| {
            wall.comm == group.comm
                && activity_of(&wall.activity) == group.activity
                && (wall.asynchronous != 0) == group.asynchronous
        });
        group.wall_ns = Some(wall.map_or(0, |wall| wall.wall_ns));
        group.spent_ns = wall.map_or(0, |wall| wall.spent_ns);
    }
    Ok(())
}

/// Adds the path of a group's file.
pub(crate) fn add_path(db: &Db, group: &mut Group) -> Result<(), QueryError> {
    if let Some(id) = group.file_id {
        // The name that it had then: it may have been given another one since.
        let sql = format!(
            "SELECT coalesce((SELECT path FROM syscalls WHERE rid = {} AND file_id = {id} LIMIT 1), path) AS path
             FROM files WHERE file_id = {id}",
            group.longest_rid
        );
        let path = rows(db, &sql, |row| row.get::<Option<String>>("path"))?;
        group.path = path.into_iter().next().flatten();
    }
    Ok(())
}

/// The block requests for which the requests waited: submitted in their course, or by a journal on
/// their behalf, before their end.
fn victims(focus: &str) -> String {
    format!(
        "{focus},
         waited AS (
             SELECT block_id, focus.pid, focus.ts_ns, focus.dur_ns
             FROM bios JOIN focus ON bios.submit_rid = focus.rid
             UNION
             SELECT block_id, focus.pid, focus.ts_ns, focus.dur_ns
             FROM bios JOIN focus ON bios.rid = focus.rid
             WHERE origin NOT IN ('writeback', 'readahead')),
         victims AS (
             SELECT block_id, device, any_value(waited.pid) AS victim_pid,
                 any_value(op) AS op, any_value(bytes) AS bytes,
                 any_value(coalesce(block.queued_at_ns, block.ts_ns)) AS queued,
                 any_value(issued_at_ns) AS issued, any_value(completed_at_ns) AS completed
             FROM waited JOIN block USING (block_id)
             WHERE coalesce(block.queued_at_ns, block.ts_ns) < waited.ts_ns + waited.dur_ns
             GROUP BY block_id, device)"
    )
}

pub(crate) fn blocks(db: &Db, focus: &str) -> Result<Vec<Block>, QueryError> {
    rows(
        db,
        &format!(
            "{victims}
             SELECT device, count(*) AS requests, bounded(sum(bytes)) AS bytes,
                 count(*) FILTER (op = 'read') AS reads,
                 bounded(coalesce(sum(issued - queued), 0)) AS queue_ns,
                 bounded(coalesce(sum(completed - issued), 0)) AS device_ns,
                 quantile_disc(completed - issued, 0.5)::BIGINT AS device_p50_ns
             FROM victims GROUP BY device ORDER BY queue_ns + device_ns DESC, device",
            victims = victims(focus)
        ),
        |row| {
            read_row!(row => Block {
                device requests bytes reads queue_ns device_ns device_p50_ns
            })
        },
    )
}

pub(crate) fn ahead(db: &Db, focus: &str) -> Result<Vec<Ahead>, QueryError> {
    struct Sum {
        device: String,
        comm: String,
        pid: Option<i64>,
        own: i64,
        behind: i64,
        behind_ns: i64,
        pairs: i64,
        bytes: i64,
    }
    let sums = rows(
        db,
        &format!(
            "{victims},
             -- Requests that waited little would hide how much was ahead of the others.
             longest AS (
                 SELECT *, (coalesce(issued, completed) - queued)::DOUBLE AS waited
                 FROM victims WHERE completed IS NOT NULL
                 QUALIFY waited > 0
                     AND waited >= {DELAYED} * sum(waited * waited) OVER () / sum(waited) OVER ()
                 ORDER BY waited DESC, block_id LIMIT {MAX_VICTIMS}),
             window_of AS (SELECT min(queued) AS b, max(queued) AS e FROM longest),
             near AS (
                 SELECT block_id, device, coalesce(queued_at_ns, ts_ns) AS queued,
                     completed_at_ns AS completed, bytes, pid, comm
                 FROM block, window_of
                 WHERE completed_at_ns > b AND coalesce(queued_at_ns, ts_ns) < e),
             causes AS (
                 SELECT block_id, arg_min(cause_pid, ts_ns) AS cause_pid
                 FROM bios SEMI JOIN near USING (block_id) GROUP BY block_id),
             pairs AS (
                 SELECT longest.block_id AS victim, longest.completed - longest.queued AS held,
                     victim_pid, near.device, near.bytes,
                     coalesce(cause_pid, near.pid) AS pid,
                     if(cause_pid IS NULL OR cause_pid = near.pid, near.comm, NULL) AS comm
                 FROM longest JOIN near ON longest.device = near.device
                     AND near.queued < longest.queued AND near.completed > longest.queued
                 LEFT JOIN causes ON near.block_id = causes.block_id),
             delayed AS (
                 SELECT device, count(*) AS behind, bounded(sum(held)) AS behind_ns
                 FROM (SELECT DISTINCT device, victim, held FROM pairs) GROUP BY device)
             SELECT device, coalesce(process, comm, '') AS comm, pid::BIGINT AS pid,
                 coalesce(pid = victim_pid, false)::INTEGER AS own,
                 behind, behind_ns, count(*) AS pairs, bounded(sum(bytes)) AS bytes
             FROM pairs JOIN delayed USING (device) LEFT JOIN process_names USING (pid)
             GROUP BY ALL ORDER BY bytes DESC, pairs DESC, pid LIMIT {MAX_OWNERS}",
            victims = victims(focus)
        ),
        |row| read_row!(row => Sum { device comm pid own behind behind_ns pairs bytes }),
    )?;
    // A neighbor may be many short processes of one program.
    let mut by_name: Vec<(Sum, i64)> = Vec::new();
    for sum in sums {
        let of = |(known, _): &&mut (Sum, i64)| {
            known.device == sum.device && known.comm == sum.comm && known.own == sum.own
        };
        match by_name.iter_mut().find(of) {
            Some((known, processes)) => {
                known.pairs += sum.pairs;
                known.bytes = known.bytes.saturating_add(sum.bytes);
                known.pid = None;
                *processes += 1;
            }
            None => by_name.push((sum, 1)),
        }
    }
    by_name.sort_by_key(|(sum, _)| std::cmp::Reverse((sum.bytes, sum.pairs)));
    by_name.truncate(MAX_NAMES);
    let mean = |sum: i64, n: i64| sum.checked_div(n).unwrap_or(0);
    Ok(by_name
        .into_iter()
        .map(|(sum, processes)| Ahead {
            device: sum.device,
            comm: sum.comm,
            pid: sum.pid,
            processes,
            own: sum.own != 0,
            behind: sum.behind,
            behind_ns: sum.behind_ns,
            requests_milli: mean(sum.pairs.saturating_mul(1000), sum.behind),
            bytes: mean(sum.bytes, sum.behind),
        })
        .collect())
}

pub(crate) fn single(db: &Db, rid: i64) -> Result<Option<Single>, QueryError> {
    let found = rows(
        db,
        &format!(
            "WITH one AS (
                 SELECT rid, tid, pid, syscall, errno, (ret IS NULL)::INTEGER AS pending
                 FROM syscalls WHERE rid = {rid} LIMIT 1)
             SELECT rid, tid::BIGINT AS tid, errno, pending::BIGINT AS pending,
                 (SELECT quantile_disc(dur_ns, 0.5) FROM syscalls, one
                  WHERE syscalls.syscall = one.syscall AND syscalls.pid = one.pid
                      AND syscalls.rid <> one.rid)::BIGINT AS p50_ns
             FROM one
             UNION ALL
             SELECT rid, tid::BIGINT, NULL, 0, NULL FROM faults WHERE rid = {rid}"
        ),
        |row| {
            Ok(Single {
                rid: row.int("rid")?,
                tid: row.int("tid")?,
                p50_ns: row.get("p50_ns")?,
                pending: row.int("pending")? != 0,
                errno: row.get("errno")?,
            })
        },
    )?;
    Ok(found.into_iter().next())
}

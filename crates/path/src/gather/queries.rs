//! The statements. Conditions on time and thread come first, so that the reader of the files skips
//! what is outside.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::meta::SessionMeta;
use fathom_query::fetch::{each, rows};
use fathom_query::{Db, QueryError};

use crate::name::Names;
use crate::rows::{Block, Call, Rows};

/// Calls that are held in memory.
pub(super) const MAX_CALLS: i64 = 1_000_000;

/// The request that is asked about.
pub(super) struct Request {
    pub tid: i64,
    pub ts_ns: i64,
    pub dur_ns: Option<i64>,
    pub asynchronous: bool,
}

pub(super) fn list(ids: impl IntoIterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    ids.join(", ")
}

/// Begin and end of the recording, so far.
pub(super) fn recording(db: &Db, meta: &SessionMeta) -> Result<(i64, i64), QueryError> {
    let clock = &meta.clock;
    let start_ns = clock.start_monotonic_ns;
    if let Some(end_ns) = clock.end_monotonic_ns {
        return Ok((start_ns, end_ns));
    }
    Ok((start_ns, last_end(db)?.unwrap_or(start_ns)))
}

/// The end of the last call or wait.
pub(super) fn last_end(db: &Db) -> Result<Option<i64>, QueryError> {
    let ends = rows(
        db,
        "SELECT greatest(
             (SELECT max(ts_ns + coalesce(dur_ns, 0)) FROM syscalls),
             (SELECT max(ts_ns + coalesce(dur_ns, 0)) FROM waits))::BIGINT AS ended",
        |row| row.get::<Option<i64>>("ended"),
    )?;
    Ok(ends.first().copied().flatten())
}

/// When the first process started.
pub(super) fn first_start(db: &Db) -> Result<Option<i64>, QueryError> {
    let sql = "SELECT min(started_at_ns) AS first FROM processes";
    let first = rows(db, sql, |row| row.get::<Option<i64>>("first"))?;
    Ok(first.first().copied().flatten())
}

pub(super) fn request(db: &Db, rid: i64) -> Result<Option<Request>, QueryError> {
    let found = rows(
        db,
        &format!(
            "SELECT tid, ts_ns, dur_ns, (api <> 'syscall')::INTEGER AS asynchronous
             FROM syscalls WHERE rid = {rid}
             UNION ALL
             SELECT tid, ts_ns, dur_ns, 0 FROM faults WHERE rid = {rid}"
        ),
        |row| {
            Ok(Request {
                tid: row.int("tid")?,
                ts_ns: row.int("ts_ns")?,
                dur_ns: row.get("dur_ns")?,
                asynchronous: row.int("asynchronous")? != 0,
            })
        },
    )?;
    Ok(found.into_iter().next())
}

/// Start and end of a thread; `None` if not known.
type Bounds = (Option<i64>, Option<i64>);

/// When a thread started and ended, as far as known; `None` if no row names the thread. Of several
/// threads with the id, the time of all.
pub(super) fn life(db: &Db, tid: i64) -> Result<Option<Bounds>, QueryError> {
    let found = rows(
        db,
        &format!(
            "SELECT count(*) AS n, min(started_at_ns) AS started,
                 if(bool_or(ended_at_ns IS NULL), NULL, max(ended_at_ns)) AS ended
             FROM processes WHERE tid = {tid}"
        ),
        |row| Ok((row.int("n")?, row.get("started")?, row.get("ended")?)),
    )?;
    if let Some((n, started, ended)) = found.into_iter().next()
        && n > 0
    {
        return Ok(Some((started, ended)));
    }
    let named = format!(
        "SELECT tid FROM waits WHERE tid = {tid} UNION ALL SELECT tid FROM syscalls WHERE tid = {tid} LIMIT 1"
    );
    let named = rows(db, &named, |row| row.int("tid"))?;
    Ok(named.first().map(|_| (None, None)))
}

/// Whether the session contains the waits outside of requests, too: then it knows the state of each.
pub(super) fn has_all_periods(db: &Db) -> Result<bool, QueryError> {
    let sql = "SELECT 1::BIGINT AS one FROM waits WHERE state IS NOT NULL LIMIT 1";
    Ok(!rows(db, sql, |row| row.int("one"))?.is_empty())
}

/// Rows of layer sched that were lost.
pub(super) fn lost(db: &Db) -> Result<i64, QueryError> {
    let sql = "SELECT coalesce(sum(count), 0)::BIGINT AS lost FROM losses WHERE layer = 'sched'";
    let lost = rows(db, sql, |row| row.int("lost"))?;
    Ok(lost.first().copied().unwrap_or(0))
}

/// Reads block requests by their begin.
pub(super) fn blocks(
    db: &Db,
    wanted: &BTreeSet<i64>,
    into: &mut Rows,
    names: &mut Names,
) -> Result<(), QueryError> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else {
        return Ok(());
    };
    // Requests that were lost are not looked for again.
    for ts_ns in wanted {
        into.blocks.entry(*ts_ns).or_default();
    }
    let some = match wanted.len() {
        0..1000 => format!("AND ts_ns IN ({})", list(wanted.iter().copied())),
        _ => String::new(),
    };
    let sql = format!(
        "SELECT ts_ns, device, op, bytes, path, queued_at_ns, issued_at_ns, completed_at_ns
         FROM block WHERE ts_ns >= {first} AND ts_ns <= {last} {some}"
    );
    each(db, &sql, |row| {
        let ts_ns = row.int("ts_ns")?;
        if let Some(all) = into
            .blocks
            .get_mut(&ts_ns)
            .filter(|_| wanted.contains(&ts_ns))
        {
            all.push(Block {
                device: names.of(row.get("device")?),
                op: names.of(row.get("op")?),
                bytes: row.int("bytes")?,
                path: names.of(row.get("path")?),
                queued_ns: row.get("queued_at_ns")?,
                issued_ns: row.get("issued_at_ns")?,
                completed_ns: row.get("completed_at_ns")?,
            });
        }
        Ok::<_, QueryError>(())
    })
}

/// Calls and page faults of threads in a time; `None` if they are more than [`MAX_CALLS`].
pub(super) fn calls(
    db: &Db,
    tids: &BTreeSet<i64>,
    from_ns: i64,
    until_ns: i64,
    names: &mut Names,
) -> Result<Option<BTreeMap<i64, Vec<Call>>>, QueryError> {
    let mut calls: BTreeMap<i64, Vec<Call>> = BTreeMap::new();
    let condition = format!(
        "ts_ns < {until_ns} AND tid IN ({tids}) AND ts_ns + dur_ns > {from_ns}",
        tids = list(tids.iter().copied())
    );
    let mut count = 0;
    let sql = format!(
        "SELECT * FROM (
             SELECT rid, tid, ts_ns, dur_ns, syscall, path FROM syscalls
             WHERE {condition} AND api = 'syscall'
             UNION ALL
             SELECT rid, tid, ts_ns, dur_ns, 'page_fault', path FROM faults WHERE {condition}
         ) LIMIT {limit}",
        limit = MAX_CALLS + 1
    );
    each(db, &sql, |row| {
        count += 1;
        let from_ns = row.int("ts_ns")?;
        calls.entry(row.int("tid")?).or_default().push(Call {
            rid: row.int("rid")?,
            from_ns,
            until_ns: from_ns.saturating_add(row.int("dur_ns")?),
            syscall: names.of(row.get("syscall")?),
            path: names.of(row.get("path")?),
        });
        Ok::<_, QueryError>(())
    })?;
    Ok((count <= MAX_CALLS).then_some(calls))
}

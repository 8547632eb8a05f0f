//! Reads the waits of threads. Both ends of the time are conditions on `ts_ns`, so that the reader of
//! the files skips the rest: the wait in which a thread is at the beginning is the last one that
//! began before, which is looked for in steps.

use std::collections::{BTreeMap, BTreeSet};

use fathom_query::fetch::{Row, each, rows};
use fathom_query::{Db, QueryError};

use super::queries::list;
use crate::PathError;
use crate::name::Names;
use crate::rows::{Life, Rows, Thread, Wait};

/// Waits that are held in memory: about 200 bytes each.
const MAX_WAITS: usize = 2_000_000;
/// How far the last wait before a time is looked for, step by step; then in all rows.
const STEPS_NS: [i64; 2] = [20_000_000, 2_000_000_000];
const COLUMNS: &str = "tid, rid, ts_ns, dur_ns, reason, in_syscall, woken_at_ns, waker, waker_tid, \
     cause, cause_id, comm, pid";

/// The columns to read. Only a set knows of sends on other hosts.
fn columns(db: &Db) -> String {
    match db.hosts() {
        [] => format!("{COLUMNS}, NULL::BIGINT AS caused_at_ns"),
        _ => format!("{COLUMNS}, caused_at_ns"),
    }
}

/// The time that a session covers.
#[derive(Clone, Copy)]
pub(super) struct Coverage {
    /// Threads that had started by then may be older than their first rows: the recording began,
    /// or the first process of the command had not executed it.
    pub older_ns: i64,
    /// Whether the recording ended in order: the open waits at its end are in its tables then.
    pub complete: bool,
}

/// The waits that are in memory so far.
#[derive(Default)]
pub(super) struct Waits {
    count: usize,
}

/// Times in order, apart from each other.
type Times = Vec<(i64, i64)>;

impl Waits {
    /// Reads the waits of threads in times: (tid, begin, end). Thread `own` may be in no row of
    /// table processes.
    pub fn read(
        &mut self,
        db: &Db,
        times: &BTreeSet<(i64, i64, i64)>,
        own: i64,
        coverage: Coverage,
        into: &mut Rows,
        names: &mut Names,
    ) -> Result<(), PathError> {
        let mut wanted: BTreeMap<i64, Times> = BTreeMap::new();
        for (tid, from_ns, until_ns) in times {
            let times = wanted.entry(*tid).or_default();
            match times.last_mut() {
                Some(last) if *from_ns <= last.1 => last.1 = last.1.max(*until_ns),
                _ => times.push((*from_ns, *until_ns)),
            }
        }
        let new = wanted.keys().filter(|tid| !into.threads.contains_key(*tid));
        threads(db, &Vec::from_iter(new.copied()), own, into, names)?;
        wanted.retain(|tid, _| into.threads.get(tid).is_some_and(|thread| thread.recorded));
        let (Some(from_ns), Some(until_ns)) = (
            wanted.values().flatten().map(|time| time.0).min(),
            wanted.values().flatten().map(|time| time.1).max(),
        ) else {
            return Ok(());
        };
        let mut found = self.within(db, &wanted, (from_ns, until_ns), into, names)?;
        self.before(db, &wanted, from_ns, &mut found, into, names)?;
        for (tid, times) in &wanted {
            let waits = found.remove(tid).unwrap_or_default();
            let begin_ns = times.first().map_or(from_ns, |time| time.0);
            let end_ns = times.last().map_or(until_ns, |time| time.1);
            if waits.iter().all(|wait| wait.from_ns >= begin_ns)
                && let Some(thread) = into.threads.get_mut(tid)
            {
                first_seen(db, *tid, thread, &waits, end_ns, coverage)?;
            }
            if let Some(thread) = into.threads.get_mut(tid) {
                if waits.is_empty() && *tid != own && !has_later(db, *tid, end_ns)? {
                    thread.recorded = false;
                }
                if !coverage.complete && thread.seen_until_ns.is_none() {
                    last_seen(db, *tid, thread)?;
                }
                thread.add(waits, times);
            }
        }
        Ok(())
    }

    /// The waits that begin in the times, and the last ones before each, as far as they begin after
    /// the beginning of the whole.
    fn within(
        &mut self,
        db: &Db,
        wanted: &BTreeMap<i64, Times>,
        (from_ns, until_ns): (i64, i64),
        into: &mut Rows,
        names: &mut Names,
    ) -> Result<BTreeMap<i64, Vec<Wait>>, PathError> {
        let mut found: BTreeMap<i64, Vec<Wait>> = BTreeMap::new();
        // The rows come in any order: for each time, the last one before it so far.
        let mut last: BTreeMap<(i64, i64), Wait> = BTreeMap::new();
        let sql = format!(
            "SELECT {columns} FROM waits
             WHERE ts_ns >= {from_ns} AND ts_ns < {until_ns} AND tid IN ({tids})",
            columns = columns(db),
            tids = list(wanted.keys().copied()),
        );
        each(db, &sql, |row| {
            let tid = row.int("tid")?;
            let wait = wait(&row, names)?;
            name_life(&row, tid, into, names)?;
            let times = wanted.get(&tid).map(Vec::as_slice).unwrap_or_default();
            let after = times.partition_point(|(_, until)| *until <= wait.from_ns);
            match times.get(after) {
                Some((from, _)) if *from <= wait.from_ns => {
                    self.count += 1;
                    if self.count > MAX_WAITS {
                        return Err(PathError::TooLong(MAX_WAITS));
                    }
                    found.entry(tid).or_default().push(wait);
                }
                Some((from, _)) => {
                    let known = last.entry((tid, *from)).or_insert_with(|| wait.clone());
                    if known.from_ns < wait.from_ns {
                        *known = wait;
                    }
                }
                None => {}
            }
            Ok(())
        })?;
        for ((tid, _), wait) in last {
            self.count += 1;
            found.entry(tid).or_default().push(wait);
        }
        Ok(found)
    }

    /// Adds the last wait before the first time of each thread that has none yet.
    fn before(
        &mut self,
        db: &Db,
        wanted: &BTreeMap<i64, Times>,
        from_ns: i64,
        found: &mut BTreeMap<i64, Vec<Wait>>,
        into: &mut Rows,
        names: &mut Names,
    ) -> Result<(), PathError> {
        let lacks = |found: &BTreeMap<i64, Vec<Wait>>, tid: i64, times: &Times| {
            let begin_ns = times.first().map_or(from_ns, |time| time.0);
            let waits = found.get(&tid).map(Vec::as_slice).unwrap_or_default();
            waits.iter().all(|wait| wait.from_ns > begin_ns)
        };
        let mut until_ns = from_ns;
        let steps = STEPS_NS.iter().map(|step| from_ns.saturating_sub(*step));
        for at_ns in steps.chain([i64::MIN]) {
            let lacking = wanted
                .iter()
                .filter(|(tid, times)| lacks(found, **tid, times));
            let tids = list(lacking.map(|(tid, _)| *tid));
            if tids.is_empty() {
                return Ok(());
            }
            let sql = format!(
                "SELECT {columns} FROM waits
                 WHERE ts_ns >= {at_ns} AND ts_ns < {until_ns} AND tid IN ({tids})
                     AND (tid, ts_ns) IN (
                         SELECT (tid, max(ts_ns)) FROM waits
                         WHERE ts_ns >= {at_ns} AND ts_ns < {until_ns} AND tid IN ({tids})
                         GROUP BY tid)",
                columns = columns(db),
            );
            let mut last = Vec::new();
            each(db, &sql, |row| {
                let tid = row.int("tid")?;
                name_life(&row, tid, into, names)?;
                last.push((tid, wait(&row, names)?));
                Ok::<_, QueryError>(())
            })?;
            for (tid, wait) in last {
                self.count += 1;
                found.entry(tid).or_default().push(wait);
            }
            until_ns = at_ns;
        }
        Ok(())
    }
}

/// A thread that is older than the recording may have been blocked as it began, and the first one
/// of a command waited until it executed the command: it is seen from its first wait or call on.
/// `waits` are all of its waits before `end_ns`.
fn first_seen(
    db: &Db,
    tid: i64,
    thread: &mut Thread,
    waits: &[Wait],
    end_ns: i64,
    coverage: Coverage,
) -> Result<(), QueryError> {
    let older = |life: &Life| life.started_ns <= coverage.older_ns;
    if !thread.lives().iter().any(older) {
        return Ok(());
    }
    // A call proves that the thread ran, but for a call that it waited in before it was recorded.
    let sql = format!(
        "SELECT min(ts_ns) AS first FROM syscalls
         WHERE ts_ns < {end_ns} AND tid = {tid} AND api = 'syscall' AND op_flags IS NULL"
    );
    let call = rows(db, &sql, |row| row.get::<Option<i64>>("first"))?;
    let wait = waits.iter().map(|wait| wait.from_ns).min();
    let first_ns = call
        .first()
        .copied()
        .flatten()
        .into_iter()
        .chain(wait)
        .min();
    match first_ns {
        Some(first_ns) => thread.seen_from_ns = Some(first_ns),
        None => thread.seen_from_ns = thread.seen_from_ns.max(Some(end_ns)),
    }
    Ok(())
}

/// In a recording that is not complete, a thread that has not ended is seen to its last wait.
fn last_seen(db: &Db, tid: i64, thread: &mut Thread) -> Result<(), QueryError> {
    if thread.lives().iter().all(|life| life.ended_ns.is_some()) {
        return Ok(());
    }
    let sql =
        format!("SELECT max(ts_ns + coalesce(dur_ns, 0)) AS last FROM waits WHERE tid = {tid}");
    let last = rows(db, &sql, |row| row.get::<Option<i64>>("last"))?;
    thread.seen_until_ns = last.first().copied().flatten();
    Ok(())
}

/// Whether a thread has waits from a time on.
fn has_later(db: &Db, tid: i64, from_ns: i64) -> Result<bool, QueryError> {
    let sql = format!(
        "SELECT 1::BIGINT AS one FROM waits WHERE ts_ns >= {from_ns} AND tid = {tid} LIMIT 1"
    );
    Ok(!rows(db, &sql, |row| row.int("one"))?.is_empty())
}

fn wait(row: &Row<'_>, names: &mut Names) -> Result<Wait, QueryError> {
    let from_ns = row.int("ts_ns")?;
    let dur_ns: Option<i64> = row.get("dur_ns")?;
    Ok(Wait {
        from_ns,
        until_ns: dur_ns.map(|dur_ns| from_ns.saturating_add(dur_ns.max(0))),
        woken_ns: row.get("woken_at_ns")?,
        reason: names.of(row.get("reason")?),
        rid: row.get("rid")?,
        syscall: names.of(row.get("in_syscall")?),
        waker: names.of(row.get("waker")?),
        waker_tid: row.get("waker_tid")?,
        cause: names.of(row.get("cause")?),
        cause_id: row.get("cause_id")?,
        caused_ns: row.get("caused_at_ns")?,
    })
}

/// Names a thread that is in no row of table processes after a wait of it.
fn name_life(
    row: &Row<'_>,
    tid: i64,
    into: &mut Rows,
    names: &mut Names,
) -> Result<(), QueryError> {
    let Some(thread) = into.threads.get_mut(&tid) else {
        return Ok(());
    };
    if thread.lives().is_empty() {
        thread.set_lives(vec![Life {
            pid: row.get("pid")?,
            comm: names.of(row.get("comm")?),
            started_ns: i64::MIN,
            ..Life::default()
        }]);
    }
    Ok(())
}

/// Adds threads with their lives. A thread that is in no row of table processes is not recorded.
fn threads(
    db: &Db,
    tids: &[i64],
    own: i64,
    into: &mut Rows,
    names: &mut Names,
) -> Result<(), QueryError> {
    if tids.is_empty() {
        return Ok(());
    }
    let mut lives: BTreeMap<i64, Vec<Life>> = BTreeMap::new();
    let sql = format!(
        "WITH leaders AS (
             SELECT pid, arg_max(comm, started_at_ns) AS process FROM processes
             WHERE pid = tid AND comm <> '' GROUP BY pid)
         SELECT tid, pid, comm, process, started_at_ns, ended_at_ns
         FROM (SELECT * FROM processes WHERE tid IN ({tids})) LEFT JOIN leaders USING (pid)",
        tids = list(tids.iter().copied())
    );
    rows(db, &sql, |row| {
        lives.entry(row.int("tid")?).or_default().push(Life {
            pid: row.get("pid")?,
            comm: names.of(row.get("comm")?),
            process: names.of(row.get("process")?),
            started_ns: row.int("started_at_ns")?,
            ended_ns: row.get("ended_at_ns")?,
        });
        Ok(())
    })?;
    for tid in tids {
        let lives = lives.remove(tid).unwrap_or_default();
        let mut thread = Thread::default();
        thread.recorded = !lives.is_empty() || *tid == own;
        thread.set_lives(lives);
        into.threads.insert(*tid, thread);
    }
    Ok(())
}

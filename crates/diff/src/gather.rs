//! Taking the figures of a session from its tables.

use std::collections::BTreeMap;

use fathom_diagnose::Diagnosis;
use fathom_extensions::Extensions;
use fathom_model::meta::{SessionMeta, State};
use fathom_query::fetch::{Row, rows};
use fathom_query::{Db, QueryError, read_row};
use fathom_session::Session;

use crate::DiffError;
use crate::profile::*;

/// Calls of each name on each file, including lost and counted ones. A file is identified by its
/// latest known path, a call without a file by the path that was passed.
const OPERATIONS: &str = "
    SELECT syscall, coalesce(class, 'unknown') AS class, coalesce(f.path, p) AS path,
        bounded(sum(calls)) AS calls, bounded(sum(errors)) AS errors,
        bounded(sum(asked)) AS asked, bounded(sum(bytes)) AS bytes, bounded(sum(total_ns)) AS total_ns
    FROM (
        SELECT syscall, file_id, CASE WHEN file_id IS NULL THEN coalesce(path, path_arg) END AS p,
            count(*) AS calls, count(errno) AS errors, coalesce(sum(bytes), 0) AS bytes,
            coalesce(sum(size) FILTER (class = 'data' AND bytes IS NOT NULL), 0) AS asked,
            coalesce(sum(dur_ns), 0) AS total_ns
        FROM syscalls GROUP BY ALL
        UNION ALL
        SELECT syscall, file_id, NULL, sum(count), sum(errors), sum(bytes), 0, sum(dur_ns)
        FROM unstored GROUP BY ALL
    )
    LEFT JOIN (SELECT file_id, path FROM files) AS f USING (file_id)
    LEFT JOIN call_classes USING (syscall)
    GROUP BY ALL";

/// Calls of each name by processes of each name.
const PROCESSES: &str = "
    SELECT coalesce(comm, '') AS comm, syscall, '' AS class, NULL::VARCHAR AS path,
        bounded(sum(calls)) AS calls, bounded(sum(errors)) AS errors, 0::BIGINT AS asked,
        bounded(sum(bytes)) AS bytes, bounded(sum(total_ns)) AS total_ns
    FROM (
        SELECT pid, syscall, count(*) AS calls, count(errno) AS errors,
            coalesce(sum(bytes), 0) AS bytes, coalesce(sum(dur_ns), 0) AS total_ns
        FROM syscalls GROUP BY ALL
        UNION ALL
        SELECT nullif(pid, -1), syscall, sum(count), sum(errors), sum(bytes), sum(dur_ns)
        FROM unstored GROUP BY ALL
    )
    LEFT JOIN (
        SELECT pid, comm FROM processes WHERE pid = tid
        QUALIFY row_number() OVER (PARTITION BY pid ORDER BY started_at_ns DESC) = 1
    ) USING (pid)
    GROUP BY ALL";

impl Profile {
    /// Takes the figures of `session`, which `db` was opened on, and diagnoses it. `name`
    /// is how it is called in the result; rules of `extensions` diagnose it, too.
    ///
    /// # Errors
    /// When the session cannot be read.
    pub fn gather(
        db: &Db,
        session: &Session,
        name: &str,
        extensions: &Extensions,
    ) -> Result<Self, DiffError> {
        Self::gather_while(db, session, name, extensions, &|| true)
    }

    /// The same while `wanted` returns true; data after that covers only a part of the session.
    ///
    /// # Errors
    /// When the session cannot be read.
    pub fn gather_while(
        db: &Db,
        session: &Session,
        name: &str,
        extensions: &Extensions,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Self, DiffError> {
        let mut told = fathom_diagnose::diagnose_once(session, wanted)?;
        extensions.diagnose(session, &mut told.diagnosis, wanted)?;
        let mut profile = Self::from_tables(db, session.meta(), name)?;
        profile.gaps.live = session.is_live();
        profile.gaps.problems = session.problems().len();
        profile.add_findings(&told.diagnosis);
        Ok(profile)
    }

    /// The figures of a session whose tables `db` has, without findings.
    ///
    /// # Errors
    /// When a query fails.
    pub fn from_tables(db: &Db, meta: &SessionMeta, name: &str) -> Result<Self, DiffError> {
        let start = meta.clock.start_monotonic_ns;
        let times = rows(
            db,
            "SELECT min(ts_ns) AS first, max(ts_ns + coalesce(dur_ns, 0)) AS last,
                count(dur_ns) AS timed, count(*) AS calls FROM syscalls",
            |row| {
                let first: Option<i64> = row.get("first")?;
                let last: Option<i64> = row.get("last")?;
                Ok((first, last, row.int("timed")?, row.int("calls")?))
            },
        )?;
        let (first, last, timed, calls) = times.into_iter().next().unwrap_or_default();
        let since = |ns: i64| ns.saturating_sub(start).max(0);
        let end = meta.clock.end_monotonic_ns.or(last).unwrap_or(start);
        let gaps = gaps(meta, calls > 0 && timed == 0);
        let lives: Vec<[Option<i64>; 2]> = rows(
            db,
            "SELECT min(started_at_ns) AS started, max(ended_at_ns) AS ended FROM processes",
            |row| Ok([row.get("started")?, row.get("ended")?]),
        )?;
        let lives = lives.into_iter().next().unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            id: meta.id.clone(),
            command: meta.command.clone(),
            machine: format!("{}, Linux {}", meta.host.name, meta.host.kernel),
            duration_ns: ran(&gaps, [first, last], lives).unwrap_or_else(|| since(end)),
            gaps,
            first_call_ns: first.map(since),
            last_call_ns: last.map(since),
            operations: rows(db, OPERATIONS, operation)?,
            latencies: latencies(db)?,
            processes: rows(db, PROCESSES, |row| {
                Ok(Process {
                    comm: row.text("comm")?,
                    operation: operation(row)?,
                })
            })?,
            errors: rows(
                db,
                "FROM by_error",
                |row| read_row!(row => Failure { syscall errno calls }),
            )?,
            layers: rows(
                db,
                "SELECT call, layer, name, count(*) AS visits, bounded(sum(self_ns)) AS self_ns
                 FROM slices
                 LEFT JOIN (SELECT rid, any_value(name) AS call FROM slices
                            WHERE layer = 'syscall' AND depth = 0 GROUP BY rid) USING (rid)
                 WHERE layer <> 'syscall' GROUP BY ALL",
                |row| read_row!(row => LayerVisit { call layer name visits self_ns }),
            )?,
            devices: rows(db, "FROM by_device", |row| {
                read_row!(row => Device {
                    device op requests errors bytes time_ns = "device_ns"
                })
            })?,
            findings: None,
        })
    }

    /// Adds what a diagnosis found.
    pub fn add_findings(&mut self, diagnosis: &Diagnosis) {
        let findings = diagnosis.findings.iter().map(|f| FoundIn {
            rule: f.rule,
            group: f.group,
            severity: f.severity,
            cost_ns: f.cost_ns,
            comm: f.subject.comm.clone(),
            path: f.subject.path.clone(),
            title: f.title.clone(),
        });
        self.findings = Some(findings.collect());
    }
}

fn operation(row: Row<'_>) -> Result<Operation, QueryError> {
    read_row!(row => Operation {
        syscall class path calls errors asked bytes time_ns = "total_ns"
    })
}

/// Durations by call: percentiles, and their distribution in pieces of time.
fn latencies(db: &Db) -> Result<BTreeMap<String, Latency>, DiffError> {
    let mut latencies: BTreeMap<String, Latency> = BTreeMap::new();
    rows(
        db,
        "SELECT syscall, p50_ns, p90_ns, p99_ns, max_ns FROM by_syscall",
        |row| {
            let latency = latencies.entry(row.text("syscall")?).or_default();
            latency.p50_ns = row.get("p50_ns")?;
            latency.p90_ns = row.get("p90_ns")?;
            latency.p99_ns = row.get("p99_ns")?;
            latency.max_ns = row.get("max_ns")?;
            latency.blocks = vec![Block::default(); BLOCKS];
            Ok(())
        },
    )?;
    // Each call's own pieces: many are made in a part of the run only.
    let sql = format!(
        "SELECT syscall, ((ts_ns - first) * {BLOCKS} // (last - first + 1))::INTEGER AS block,
            floor(log2(greatest(dur_ns, 1)) * {STEPS})::INTEGER AS bucket,
            count(*) AS calls, bounded(sum(dur_ns)) AS sum_ns
         FROM syscalls
         JOIN (SELECT syscall, min(ts_ns) AS first, max(ts_ns) AS last FROM syscalls GROUP BY ALL)
            USING (syscall)
         WHERE dur_ns IS NOT NULL
         GROUP BY ALL"
    );
    rows(db, &sql, |row| {
        let block = usize::try_from(row.int("block")?).unwrap_or(0);
        let latency = latencies.entry(row.text("syscall")?).or_default();
        if let Some(block) = latency.blocks.get_mut(block) {
            let calls = u64::try_from(row.int("calls")?).unwrap_or(0);
            block.calls += calls;
            block.sum_ns += row.int("sum_ns")? as f64;
            let bucket = i32::try_from(row.int("bucket")?).unwrap_or(0);
            block.hist.push((bucket, calls));
        }
        Ok(())
    })?;
    Ok(latencies)
}

/// How long a command ran: from its first call to the end of its last process. The recorder starts
/// before and ends later. The first call may have no row; then the start of the first process takes
/// its place. `calls` and `processes`: first begin and last end.
fn ran(gaps: &Gaps, calls: [Option<i64>; 2], processes: [Option<i64>; 2]) -> Option<i64> {
    if gaps.open_ended || gaps.imported.is_some() {
        return None;
    }
    let ([first, last], [started, ended]) = (calls, processes);
    let whole = gaps.lost + gaps.counted + gaps.gone == 0;
    let begin = if whole { first } else { started };
    Some(last.max(ended)?.saturating_sub(begin?)).filter(|ns| *ns > 0)
}

fn gaps(meta: &SessionMeta, no_durations: bool) -> Gaps {
    let totals = &meta.totals;
    let counters_only = meta.options.detail == "counters";
    // With --duration, the end of a command that outlived it was not awaited.
    let cut = meta.exit_status.is_none()
        && meta
            .options
            .other
            .iter()
            .any(|o| o.starts_with("--duration"));
    Gaps {
        lost: totals.lost,
        counted: totals.counted,
        gone: totals.expired + totals.missing,
        layers_lost: totals.layers.lost,
        counters_only,
        live: meta.state == State::Recording,
        open_ended: meta.source.is_none() && (meta.command.is_empty() || cut),
        no_durations,
        imported: meta.source.as_ref().map(|s| s.format.clone()),
        detail: meta.options.detail.clone(),
        selection: meta.options.syscalls.clone(),
        filters: meta.options.filters.clone(),
        layers: meta.recorded_layers(),
        problems: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recording is from 0 to 500, a command in it from 20 to 437.
    #[test]
    fn a_command_runs_from_its_first_call_to_the_end_of_its_last_process() {
        let (calls, processes) = ([Some(25), Some(430)], [Some(20), Some(437)]);
        let mut gaps = Gaps::default();
        assert_eq!(ran(&gaps, calls, processes), Some(412));
        // A process that had not ended.
        assert_eq!(ran(&gaps, calls, [Some(20), None]), Some(405));
        assert_eq!(ran(&gaps, [None; 2], [None; 2]), None);
        // The first call may have been counted.
        gaps.counted = 1;
        assert_eq!(ran(&gaps, [Some(300), Some(430)], processes), Some(417));
        // A recording that was stopped at any time.
        gaps.open_ended = true;
        assert_eq!(ran(&gaps, calls, processes), None);
    }
}

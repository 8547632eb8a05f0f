//! Taking the figures of a session from its tables.

use std::collections::BTreeMap;

use fathom_diagnose::Diagnosis;
use fathom_extensions::Extensions;
use fathom_model::meta::{SessionMeta, State};
use fathom_query::fetch::{Row, rows};
use fathom_query::{Db, QueryError, read_row, run_of};
use fathom_session::Session;

use crate::DiffError;
use crate::profile::*;

/// Calls of each name on each file, including lost and counted ones. A file is identified by its
/// latest known path, a call without a file by the path that was passed.
const OPERATIONS: &str = "
    SELECT syscall, coalesce(call_class(syscall), 'unknown') AS class, coalesce(f.path, p) AS path,
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
        let run = match gaps.open_ended {
            true => None,
            false => run_of(db, meta)?,
        };
        Ok(Self {
            name: name.to_owned(),
            id: meta.id.clone(),
            command: meta.command.clone(),
            machine: format!("{}, Linux {}", meta.host.name, meta.host.kernel),
            duration_ns: run.map_or_else(|| since(end), |(first, last)| last - first),
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

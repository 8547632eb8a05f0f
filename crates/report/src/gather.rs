//! Taking the numbers of a report from a session.

use std::collections::BTreeMap;
use std::time::Instant;

use fathom_extensions::Extensions;
use fathom_model::meta::{self, SessionMeta};
use fathom_model::tables::TABLES;
use fathom_query::escape::{shell_words, text};
use fathom_query::{Db, QueryError, read_row};
use fathom_session::Session;
use fathom_why::{Scope, tell, why};

use crate::error::ReportError;
use crate::findings::{Findings, diagnosis_in_passing};
use crate::input::ReportInput;
use crate::layers::Layers;
use crate::problems::{limits, problems};
use crate::report::*;
use crate::section::total;
use crate::{costly, errors};
use fathom_model::units;
use fathom_query::fetch::{Row, rows};

/// Rows of the rankings of files and threads.
const TOP: usize = 8;
/// Pieces that the timeline has at most.
const SLICES: i64 = 120;

impl Report {
    /// The report on `session`, which `db` was opened on.
    ///
    /// # Errors
    ///
    /// When a query fails, or the diagnosis.
    pub fn build(db: &Db, session: &Session) -> Result<Report, ReportError> {
        Self::build_with(db, session, &Extensions::default())
    }

    /// The same with the findings of rules that the user wrote.
    ///
    /// # Errors
    ///
    /// When a query fails, the diagnosis, or a view of the user's.
    pub fn build_with(
        db: &Db,
        session: &Session,
        extensions: &Extensions,
    ) -> Result<Report, ReportError> {
        let size = |table: &str| {
            session
                .part_infos(table)
                .iter()
                .map(|part| part.bytes)
                .sum::<u64>()
        };
        let mut report = Self::build_from(
            db,
            &ReportInput {
                meta: session.meta(),
                problems: session.problems(),
                location: session.dir().display().to_string(),
                live: session.is_live(),
                bytes: TABLES.iter().map(|table| size(table.name)).sum(),
                syscall_bytes: size("syscalls"),
            },
        )?;
        // Parts of a live session are merged while it is read: what is missing then is
        // no reason to fail.
        let started = Instant::now();
        let diagnosis = match diagnosis_in_passing(session, extensions) {
            Err(_) if session.is_live() => return Ok(report),
            found => found?,
        };
        let took_ns = started.elapsed().as_nanos();
        if let Ok(diagnosis) = &diagnosis {
            let (scope, found) = (Scope::default(), &diagnosis.findings);
            report.why.sentences = tell(&report.why.facts, session.meta(), &scope, found);
        }
        let diagnosis = diagnosis.as_ref().map_err(Clone::clone);
        report.findings = Some(Findings::of(diagnosis, took_ns));
        Ok(report)
    }

    /// The same for a session whose parts lie elsewhere, without a diagnosis.
    ///
    /// # Errors
    ///
    /// When a query fails.
    pub fn build_from(db: &Db, source: &ReportInput<'_>) -> Result<Report, ReportError> {
        let meta = source.meta;
        let syscalls = calls(db, "SELECT syscall AS name, * FROM by_syscall")?;
        let classes = calls(db, "SELECT class AS name, * FROM by_class")?;
        let [failures, answers] = errors::by_meaning(db)?;
        let totals = Totals {
            calls: total(syscalls.iter().map(|c| c.calls)),
            errors: total(syscalls.iter().map(|c| c.errors)),
            failures,
            answers,
            pending: total(syscalls.iter().map(|c| c.pending)),
            bytes: total(syscalls.iter().map(|c| c.bytes)),
            total_ns: total(syscalls.iter().map(|c| c.total_ns)),
        };
        let lost = total(syscalls.iter().map(|c| c.lost));
        let duration_ns = duration(db, meta)?;
        let session = summary(source, duration_ns);
        let counted = counted(db)?;
        let loss = loss(
            db,
            source,
            totals.calls.saturating_sub(lost).saturating_sub(counted),
            lost,
        )?;
        Ok(Report {
            problems: problems(source, &session, &loss, &totals),
            limits: limits(source),
            why: why(db, meta, &Scope::default(), &[])?,
            findings: None,
            session,
            loss,
            classes,
            costly: costly::calls(db, TOP)?,
            errors: errors::errors(db)?,
            files: files(db)?,
            mapped: mapped(db, meta)?,
            threads: threads(db)?,
            layers: Layers::build(db)?,
            timeline: timeline(db, meta, duration_ns)?,
            latency: latency(db, &syscalls)?,
            cost: cost(meta, duration_ns),
            storage: Storage {
                location: source.location.clone(),
                bytes: source.bytes,
                bytes_per_row: units::share(
                    source.syscall_bytes as f64,
                    (totals.calls - lost - counted) as f64,
                ),
            },
            next: next(&source.location),
            totals,
            syscalls,
        })
    }
}

fn calls(db: &Db, sql: &str) -> Result<Vec<Calls>, QueryError> {
    rows(db, sql, |row| {
        read_row!(row => Calls {
            name class calls lost pending errors bytes total_ns p50_ns p90_ns p99_ns max_ns
        })
    })
}

fn duration(db: &Db, meta: &SessionMeta) -> Result<i64, ReportError> {
    let start = meta.clock.start_monotonic_ns;
    let end = match meta.clock.end_monotonic_ns {
        Some(end) => Some(end),
        None => {
            let last = rows(
                db,
                "SELECT max(ts_ns + dur_ns) AS last FROM syscalls",
                |row| row.get::<Option<i64>>("last"),
            )?;
            last.into_iter().flatten().next()
        }
    };
    Ok(end.map_or(0, |end| end.saturating_sub(start).max(0)))
}

fn summary(source: &ReportInput<'_>, duration_ns: i64) -> SessionSummary {
    let meta = source.meta;
    SessionSummary {
        id: meta.id.clone(),
        state: match meta.state {
            meta::State::Complete => State::Complete,
            meta::State::Recording if source.live => State::Recording,
            meta::State::Recording => State::Killed,
        },
        command: meta.command.clone(),
        target: meta.target.clone(),
        exit_status: meta.exit_status,
        start_time: units::wall_time(meta.clock.start_realtime_ns)
            .replace(" UTC", "Z")
            .replace(' ', "T"),
        duration_ns,
        labels: meta.labels.clone(),
        host: meta.host.name.clone(),
        kernel: meta.host.kernel.clone(),
        arch: meta.host.arch.clone(),
        distribution: meta.host.distribution.clone(),
        cpus: meta.host.cpus,
        memory_bytes: meta.host.memory_bytes,
        detail: meta.options.detail.clone(),
        selection: meta.options.syscalls.clone(),
        content: meta.content.clone(),
        filters: meta.options.filters.clone(),
        fathom_version: meta.fathom_version.clone(),
    }
}

/// Calls in table `counters`.
fn counted(db: &Db) -> Result<i64, ReportError> {
    let sql = "SELECT bounded(coalesce(sum(count), 0)) AS calls FROM counters";
    let counts = rows(db, sql, |row| row.int("calls"))?;
    Ok(total(counts.into_iter()))
}

fn loss(db: &Db, source: &ReportInput<'_>, stored: i64, lost: i64) -> Result<Loss, ReportError> {
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    let places = rows(
        db,
        "SELECT stage, cpu, syscall, bounded(sum(count)) AS calls FROM losses \
         GROUP BY stage, cpu, syscall ORDER BY calls DESC, stage, cpu, syscall",
        |row| read_row!(row => LossPlace { stage cpu syscall calls }),
    )?;
    let (stored, lost) = (unsigned(stored), unsigned(lost));
    let meta::Totals {
        seen,
        expired,
        counted,
        missing,
        ..
    } = source.meta.totals;
    let lost_at = |stage: &str| places.iter().any(|p| p.stage == stage && p.calls > 0);
    let mut advice = Vec::new();
    if lost_at("ring") {
        let ring = source.meta.options.ring_mib.max(1);
        advice.push(format!(
            "the kernel's buffer was full: record with --ring-mib {} (it was {ring}), or record \
             less (--syscalls, --path)",
            ring.saturating_mul(4)
        ));
    }
    if lost_at("scratch") {
        advice.push("calls nested in interrupts found no scratch memory: record less".into());
    }
    if lost_at("decode") {
        advice.push("damaged records: recorder and kernel side do not fit together".into());
    }
    if lost_at("write") {
        advice.push("rows could not be written: make room on the disk, or write to another".into());
    }
    Ok(Loss {
        seen,
        stored,
        lost,
        expired,
        counted,
        missing,
        balanced: [lost, expired, counted, missing]
            .iter()
            .try_fold(stored, |sum, n| sum.checked_add(*n))
            == Some(seen),
        compat: source.meta.totals.compat,
        places,
        advice,
    })
}

fn file(row: &Row<'_>) -> Result<FileActivity, QueryError> {
    read_row!(row => FileActivity {
        file_id path files file_type calls errors read_bytes written_bytes total_ns max_ns
    })
}

/// Three rankings from one pass.
fn files(db: &Db) -> Result<Files, ReportError> {
    let sql = format!(
        "SELECT *, bounded(sum(files) OVER ()) AS all_files,
             row_number() OVER (ORDER BY total_ns DESC, file_id) AS by_time,
             row_number() OVER (ORDER BY bytes DESC, file_id) AS by_bytes,
             row_number() OVER (ORDER BY calls DESC, file_id) AS by_calls
         FROM (
             SELECT arg_max(file_id, total_ns) AS file_id, path, count(*) AS files,
                 arg_max(file_type, total_ns) AS file_type, bounded(sum(calls)) AS calls,
                 bounded(sum(errors)) AS errors, bounded(sum(bytes)) AS bytes,
                 bounded(sum(read_bytes)) AS read_bytes,
                 bounded(sum(written_bytes)) AS written_bytes,
                 bounded(sum(total_ns)) AS total_ns, max(max_ns) AS max_ns
             FROM by_file WHERE file_id IS NOT NULL
             GROUP BY path, if(path IS NULL, file_id, NULL)
         )
         QUALIFY least(by_time, by_bytes, by_calls) <= {TOP}"
    );
    let mut ranked: [BTreeMap<i64, FileActivity>; 3] = Default::default();
    let counts = rows(db, &sql, |row| {
        for (name, ranking) in ["by_time", "by_bytes", "by_calls"]
            .into_iter()
            .zip(&mut ranked)
        {
            let rank = row.int(name)?;
            let file = file(&row)?;
            // Files that moved nothing do not stand out by it.
            if rank <= TOP as i64 && (name != "by_bytes" || row.int("bytes")? > 0) {
                ranking.insert(rank, file);
            }
        }
        row.int("all_files")
    })?;
    let [by_time, by_bytes, by_calls] = ranked.map(|r| r.into_values().collect());
    Ok(Files {
        count: counts.first().copied().unwrap_or(0),
        by_time,
        by_bytes,
        by_calls,
    })
}

fn mapped(db: &Db, meta: &SessionMeta) -> Result<Mapped, ReportError> {
    let sql = format!(
        "SELECT *, count(*) OVER () AS files, bounded(sum(total_ns) OVER ()) AS all_ns \
         FROM by_mapped_file LIMIT {TOP}"
    );
    let (mut count, mut total_ns) = (0, 0);
    let by_time = rows(db, &sql, |row| {
        (count, total_ns) = (row.int("files")?, row.int("all_ns")?);
        read_row!(row => MappedFile {
            file_id path faults major failed write_faults total_ns max_ns written_back_bytes
        })
    })?;
    let totals = &meta.totals;
    Ok(Mapped {
        seen: totals.faults.seen,
        stored: totals.faults.stored,
        lost: totals.faults.lost,
        unknown: totals.faults_unknown,
        total_ns,
        count,
        by_time,
    })
}

fn threads(db: &Db) -> Result<Threads, ReportError> {
    let sql = format!(
        "SELECT pid, tid, comm, calls, errors, read_bytes, written_bytes, total_ns, max_ns, \
         count(*) OVER () AS threads FROM by_thread ORDER BY total_ns DESC, pid, tid LIMIT {TOP}"
    );
    let mut count = 0;
    let by_time = rows(db, &sql, |row| {
        count = row.int("threads")?;
        read_row!(row => Thread {
            pid tid comm calls errors read_bytes written_bytes total_ns max_ns
        })
    })?;
    Ok(Threads { count, by_time })
}

fn timeline(db: &Db, meta: &SessionMeta, duration_ns: i64) -> Result<Timeline, ReportError> {
    if duration_ns <= 0 {
        return Ok(Timeline::default());
    }
    let slice_ns = duration_ns.div_euclid(SLICES) + 1;
    let last = (duration_ns - 1) / slice_ns;
    // Grouped by name first: telling reads from writes is then done a group, not
    // a call.
    let sql = format!(
        "SELECT slice, bounded(sum(calls)) AS calls, bounded(sum(errors)) AS errors,
             bounded(coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)) AS read_bytes,
             bounded(coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)) AS written_bytes
         FROM (
             SELECT greatest(0, least({last}, (ts_ns - {start}) // {slice_ns}))::BIGINT AS slice,
                 syscall, count(*) AS calls, count(errno) AS errors, sum(bytes) AS bytes
             FROM syscalls GROUP BY ALL
         )
         GROUP BY slice",
        start = meta.clock.start_monotonic_ns
    );
    let mut slices = vec![Slice::default(); usize::try_from(last + 1).unwrap_or(0)];
    rows(db, &sql, |row| {
        let index = usize::try_from(row.int("slice")?).unwrap_or(0);
        if let Some(slice) = slices.get_mut(index) {
            *slice = Slice {
                calls: row.int("calls")?,
                errors: row.int("errors")?,
                read_bytes: row.int("read_bytes")?,
                written_bytes: row.int("written_bytes")?,
                total_ns: 0,
            };
        }
        Ok(())
    })?;
    // The time of a call counts in each slice that it went on in: a hang is many slices long.
    let sql = format!(
        "WITH timed AS (
             SELECT ts_ns - {start} AS b, ts_ns - {start} + dur_ns AS e FROM (
                 SELECT ts_ns, dur_ns FROM syscalls UNION ALL SELECT ts_ns, dur_ns FROM faults)
             WHERE dur_ns > 0),
         placed AS (
             SELECT b, e, greatest(0, least({last}, b // {slice_ns}))::BIGINT AS first,
                 greatest(0, least({last}, (e - 1) // {slice_ns}))::BIGINT AS final
             FROM timed)
         SELECT slice, bounded(sum(ns)) AS total_ns FROM (
             SELECT first AS slice, e - b AS ns FROM placed WHERE first = final
             UNION ALL
             SELECT slice, least(e, (slice + 1) * {slice_ns}) - greatest(b, slice * {slice_ns})
             FROM (SELECT b, e, unnest(range(first, final + 1)) AS slice FROM placed
                   WHERE first < final))
         GROUP BY slice",
        start = meta.clock.start_monotonic_ns
    );
    rows(db, &sql, |row| {
        let index = usize::try_from(row.int("slice")?).unwrap_or(0);
        if let Some(slice) = slices.get_mut(index) {
            slice.total_ns = row.int("total_ns")?;
        }
        Ok(())
    })?;
    Ok(Timeline { slice_ns, slices })
}

/// Histograms in the order of `syscalls`.
fn latency(db: &Db, syscalls: &[Calls]) -> Result<Vec<Latency>, ReportError> {
    let mut found: BTreeMap<String, Vec<Bucket>> = BTreeMap::new();
    rows(db, "FROM latency_histogram", |row| {
        found
            .entry(row.text("syscall")?)
            .or_default()
            .push(read_row!(row => Bucket {
                bucket from_ns below_ns calls
            })?);
        Ok(())
    })?;
    Ok(syscalls
        .iter()
        .filter_map(|c| {
            let buckets = found.remove(&c.name)?;
            Some(Latency {
                syscall: c.name.clone(),
                buckets,
            })
        })
        .collect())
}

fn cost(meta: &SessionMeta, duration_ns: i64) -> Cost {
    let cost = &meta.cost;
    let of = |part: Option<u64>, whole: Option<u64>| units::share(part? as f64, whole? as f64);
    Cost {
        probe_ns_per_call: cost.probe_ns_per_call,
        probe_ns: cost.probe_ns,
        target_cpu_ns: cost.target_cpu_ns,
        probe_share: of(cost.probe_ns, cost.target_cpu_ns),
        recorder_cpu_ns: cost.recorder_cpu_ns,
        recorder_share: of(cost.recorder_cpu_ns, u64::try_from(duration_ns).ok()),
        recorder_peak_rss_bytes: cost.recorder_peak_rss_bytes,
        recorder_limit_bytes: cost.recorder_limit_bytes,
        ring_peak: cost.ring_peak,
        ring_mib: meta.options.ring_mib,
    }
}

fn next(location: &str) -> Vec<NextCommand> {
    let place = shell_words([location]);
    let query = |purpose: &str, sql: &str| NextCommand {
        purpose: purpose.into(),
        command: text(&format!("fathom query {place} \"{sql}\"")).into_owned(),
        sql: Some(sql.into()),
    };
    vec![
        query(
            "the slowest calls",
            "SELECT wall_time(ts_ns) AS at, tid, syscall, dur_ns, path FROM syscalls \
             ORDER BY dur_ns DESC LIMIT 20",
        ),
        query(
            "latency of each file",
            "SELECT path, calls, bytes, p50_ns, p99_ns FROM by_file",
        ),
        query("second by second", "FROM by_second"),
        query("all tables and views", "SHOW TABLES"),
        NextCommand {
            purpose: "this report with plots".into(),
            command: text(&format!(
                "fathom report {place} --format html > report.html"
            ))
            .into_owned(),
            sql: None,
        },
    ]
}

//! Random windows of a session, by the pyramid and by others.

use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use duckdb::Connection;
use fathom_query::Limits;
use fathom_query::zoom::{By, Request, Zoom};
use fathom_session::Session;

use crate::cpu::cpu_ms;

/// Buckets that are asked for.
const PIXELS: u32 = 1000;

fn requests(span: (i64, i64), count: usize) -> Vec<Request> {
    let mut rng = fastrand::Rng::with_seed(5);
    let all = [
        By::Nothing,
        By::Syscall,
        By::Class,
        By::Thread,
        By::Process,
        By::File,
        By::Layer,
    ];
    let length = (span.1 - span.0) as f64;
    (0..count)
        .map(|i| {
            // From everything down to a microsecond, evenly by order of magnitude.
            let width = (length * (1e3 / length).powf(rng.f64())) as i64;
            let from = rng.i64(span.0..=(span.1 - width).max(span.0));
            Request {
                from_ns: Some(from),
                to_ns: Some(from + width),
                pixels: PIXELS,
                by: all[i % all.len()],
                ..Request::default()
            }
        })
        .collect()
}

fn tell(name: &str, times: &[f64]) {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    println!(
        "{name:24} p50 {:9.2} ms  p90 {:9.2}  p99 {:9.2}  max {:9.2}  ({} windows)",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0),
        sorted.len()
    );
}

/// Times `queries` windows.
pub fn run(
    session: &Path,
    queries: usize,
    plain: bool,
    sqlite: Option<&Path>,
) -> anyhow::Result<()> {
    let session = Session::open(session)?;
    let started = Instant::now();
    let zoom = Zoom::open(&session, Limits::default())?;
    println!(
        "{} calls in {} parts, {} visits of layers in {}; opened in {:.1} ms",
        session.rows("syscalls"),
        session.parts("syscalls").len(),
        session.rows("slices"),
        session.parts("slices").len(),
        started.elapsed().as_secs_f64() * 1e3
    );
    let span = zoom.span().context("the session has no calls")?;
    let requests = requests(span, queries);
    let (mut all, mut blocks, mut rows, mut coarser) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut cpu = Vec::new();
    for request in &requests {
        let (started, cpu_started) = (Instant::now(), cpu_ms());
        let answer = zoom.query(request)?;
        let ms = started.elapsed().as_secs_f64() * 1e3;
        cpu.push(cpu_ms() - cpu_started);
        all.push(ms);
        if answer.parts > 0 {
            rows.push(ms);
        } else {
            blocks.push(ms);
        }
        coarser += usize::from(answer.coarser);
        if std::env::var_os("FATHOM_SCALE_VERBOSE").is_some() {
            println!(
                "{ms:8.2} ms {:?} window {} us, bucket {} us, {} blocks, {} parts, {} rows",
                request.by,
                (request.to_ns.unwrap_or(0) - request.from_ns.unwrap_or(0)) / 1000,
                answer.bucket_ns / 1000,
                answer.blocks,
                answer.parts,
                answer.rows.num_rows()
            );
        }
    }
    tell("fathom", &all);
    tell("  its CPU time", &cpu);
    tell("  of which by blocks", &blocks);
    tell("  of which by rows", &rows);
    println!("{coarser} answers in wider buckets than asked for");
    let parts = session.parts("syscalls");
    if plain {
        let visits = session.parts("slices");
        let (times, cpu) = duckdb(&parts, &visits, &requests[..queries.min(60)])?;
        tell("DuckDB on the same files", &times);
        tell("  its CPU time", &cpu);
    }
    if let Some(file) = sqlite {
        let of_calls = requests.iter().filter(|r| r.by != By::Layer).take(30);
        let times = sqlite_times(&parts, file, &of_calls.cloned().collect::<Vec<_>>())?;
        tell("SQLite with an index", &times);
    }
    Ok(())
}

/// The question by hand. Of layers only what their visits took: that calls without any are
/// time of layer `syscall` would take a second look at all calls.
fn statement(calls: &str, visits: &str, request: &Request, divide: &str) -> String {
    let (from, to) = (request.from_ns.unwrap_or(0), request.to_ns.unwrap_or(0));
    let width = ((to - from) / i64::from(PIXELS)).max(1);
    let key = match request.by {
        By::Nothing => "''",
        // A call's name tells its purpose.
        By::Syscall | By::Purpose => "syscall",
        By::Class => "class",
        By::Thread => "tid",
        By::Process => "pid",
        By::File => "file_id",
        // Of another table, and not asked here.
        By::Reason => "NULL",
        By::Layer => {
            return format!(
                "SELECT (ts_ns - {from}) {divide} {width} AS b, layer AS k, count(*), sum(self_ns), \
                 max(self_ns) FROM {visits} WHERE ts_ns >= {from} AND ts_ns < {to} GROUP BY 1, 2"
            );
        }
    };
    format!(
        "SELECT (ts_ns - {from}) {divide} {width} AS b, {key} AS k, count(*), count(errno), sum(bytes), \
         sum(dur_ns), max(dur_ns) FROM {calls} WHERE ts_ns >= {from} AND ts_ns < {to} GROUP BY 1, 2"
    )
}

fn list(parts: &[PathBuf]) -> String {
    let parts: Vec<String> = parts.iter().map(|p| format!("'{}'", p.display())).collect();
    format!("read_parquet([{}])", parts.join(", "))
}

fn duckdb(
    calls: &[PathBuf],
    visits: &[PathBuf],
    requests: &[Request],
) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    fathom_query::engine::load()?;
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(
        "SET parquet_metadata_cache = true; SET memory_limit = '1GiB'; \
         SET enable_external_file_cache = false",
    )?;
    let calls = list(calls);
    let layers = !visits.is_empty();
    let visits = list(visits);
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for request in requests.iter().filter(|r| layers || r.by != By::Layer) {
        let (started, cpu_started) = (Instant::now(), cpu_ms());
        let mut statement = connection.prepare(&statement(&calls, &visits, request, "//"))?;
        let rows: usize = statement
            .query_arrow([])?
            .map(|batch| batch.num_rows())
            .sum();
        std::hint::black_box(rows);
        times.push(started.elapsed().as_secs_f64() * 1e3);
        cpu.push(cpu_ms() - cpu_started);
    }
    Ok((times, cpu))
}

/// SQLite's own timer, in its own shell; the rows come through a pipe of CSV.
fn sqlite_times(parts: &[PathBuf], file: &Path, requests: &[Request]) -> anyhow::Result<Vec<f64>> {
    let columns = "ts_ns, dur_ns, pid, tid, syscall, class, file_id, bytes, errno";
    if !file.exists() {
        let csv = file.with_extension("csv");
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(&format!(
            "COPY (SELECT {columns} FROM {}) TO '{}' (HEADER false)",
            list(parts),
            csv.display()
        ))?;
        let script = format!(
            "PRAGMA journal_mode=off;\nPRAGMA synchronous=off;\n\
             CREATE TABLE s (ts_ns INTEGER, dur_ns INTEGER, pid INTEGER, tid INTEGER, \
             syscall TEXT, class TEXT, file_id INTEGER, bytes INTEGER, errno TEXT);\n\
             .mode csv\n.import {} s\nCREATE INDEX by_time ON s (ts_ns);\n\
             UPDATE s SET errno = NULL WHERE errno = '';\nSELECT count(*) FROM s;\n",
            csv.display()
        );
        let output = sqlite(file, &script)?;
        std::fs::remove_file(csv)?;
        let rows: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {}", list(parts)), [], |r| {
                r.get(0)
            })?;
        let imported = output.lines().last().and_then(|l| l.parse().ok());
        if imported != Some(rows) {
            let _ = std::fs::remove_file(file);
            bail!("sqlite3 imported {imported:?} of {rows} rows");
        }
        println!("SQLite: {} bytes", std::fs::metadata(file)?.len());
    }
    let mut script = String::from(".timer on\n.output /dev/null\n");
    for request in requests {
        script.push_str(&statement("s", "", request, "/"));
        script.push_str(";\n");
    }
    let text = sqlite(file, &script)?;
    let times: Vec<f64> = text
        .lines()
        .filter_map(|l| {
            l.strip_prefix("Run Time: real ")?
                .split(' ')
                .next()?
                .parse::<f64>()
                .ok()
        })
        .map(|s| s * 1e3)
        .collect();
    if times.len() != requests.len() {
        bail!(
            "sqlite3 timed {} of {} statements",
            times.len(),
            requests.len()
        );
    }
    Ok(times)
}

/// What SQLite's shell prints for `script`.
fn sqlite(file: &Path, script: &str) -> anyhow::Result<String> {
    let mut input = tempfile::tempfile()?;
    input.write_all(script.as_bytes())?;
    input.rewind()?;
    let output = Command::new("sqlite3").arg(file).stdin(input).output()?;
    if !output.status.success() {
        bail!("sqlite3: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

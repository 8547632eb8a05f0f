//! Large sessions out of recorded ones.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fathom_model::batch::NULL_I64;
use fathom_model::tables::{FILES, PROCESSES, SLICES, SYSCALLS, Table};
use fathom_model::{Batch, ColumnData};
use fathom_pyramid::SOURCES;
use fathom_session::{Session, SessionWriter, WriterOptions};

/// Sets of files, and of threads, that repetitions take in turn.
const SETS: u64 = 16;
/// Between the ids of one set and the next.
const THREADS_APART: i32 = 1 << 20;
const FILES_APART: i64 = 1 << 24;
/// Rows of it that are held in memory.
const MAX_RECORDED: usize = 2_000_000;

fn i64s<'a>(batch: &'a mut Batch, column: &str) -> Option<&'a mut Vec<i64>> {
    let i = batch.table.columns.iter().position(|c| c.name == column)?;
    match batch.columns.get_mut(i) {
        Some(ColumnData::I64(values)) => Some(values),
        _ => None,
    }
}

fn i32s<'a>(batch: &'a mut Batch, column: &str) -> Option<&'a mut Vec<i32>> {
    let i = batch.table.columns.iter().position(|c| c.name == column)?;
    match batch.columns.get_mut(i) {
        Some(ColumnData::I32(values)) => Some(values),
        _ => None,
    }
}

fn read(session: &Session, table: &'static Table) -> anyhow::Result<Vec<Batch>> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut rows = 0;
    for batch in session.batches(table, None) {
        let batch = batch?;
        rows += batch.len();
        if rows <= MAX_RECORDED {
            batches.push(batch);
        }
    }
    Ok(batches)
}

fn write(recorded: &Path, writer: &SessionWriter, rows: u64) -> anyhow::Result<u64> {
    let session = Session::open(recorded)?;
    let calls = read(&session, &SYSCALLS)?;
    let visits = read(&session, &SLICES)?;
    let mut tables = read(&session, &FILES)?;
    tables.extend(read(&session, &PROCESSES)?);
    let (mut first, mut last, mut highest) = (i64::MAX, i64::MIN, 0);
    for batch in &calls {
        let mut batch = batch.clone();
        for t in i64s(&mut batch, "ts_ns").context("no times")? {
            (first, last) = (first.min(*t), last.max(*t));
        }
        for rid in i64s(&mut batch, "rid").context("no ids")? {
            highest = highest.max(*rid);
        }
    }
    if calls.is_empty() {
        bail!("the recorded session has no calls");
    }
    let span = last - first + 1;
    let mut written = 0;
    for turn in 0u64.. {
        let set = (turn % SETS) as i32;
        let shift = |batch: &Batch| {
            let mut batch = batch.clone();
            let turn = turn as i64;
            for column in ["ts_ns", "started_at_ns", "ended_at_ns", "first_seen_at_ns"] {
                for t in i64s(&mut batch, column).into_iter().flatten() {
                    if *t != NULL_I64 {
                        *t += turn * span;
                    }
                }
            }
            for rid in i64s(&mut batch, "rid").into_iter().flatten() {
                *rid += turn * highest;
            }
            for file in i64s(&mut batch, "file_id").into_iter().flatten() {
                if *file != NULL_I64 {
                    *file += i64::from(set) * FILES_APART;
                }
            }
            for column in ["pid", "tid"] {
                for id in i32s(&mut batch, column).into_iter().flatten() {
                    *id += set * THREADS_APART;
                }
            }
            batch
        };
        if turn < SETS {
            for batch in &tables {
                writer.append(shift(batch))?;
            }
        }
        let mut of_turn = visits.iter();
        for (i, batch) in calls.iter().enumerate() {
            writer.append(shift(batch))?;
            // About as far as the calls.
            let done = (i + 1) * visits.len() / calls.len();
            for batch in of_turn.by_ref().take(done - i * visits.len() / calls.len()) {
                writer.append(shift(batch))?;
            }
            written += batch.len() as u64;
            if written >= rows {
                return Ok(written);
            }
        }
    }
    Ok(written)
}

fn create(recorded: &Path, output: &Path, options: WriterOptions) -> anyhow::Result<SessionWriter> {
    let meta = Session::open(recorded)?.meta().clone();
    Ok(SessionWriter::create(output, meta, options)?)
}

/// Writes `rows` rows to a session in `output`.
pub fn run(recorded: &Path, output: &Path, rows: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let writer = create(recorded, output, WriterOptions::default())?;
    let written = write(recorded, &writer, rows)?;
    let mut meta = Session::open(recorded)?.meta().clone();
    meta.totals = Default::default();
    meta.totals.seen = written;
    let done = writer.finish(meta)?;
    let length = |file| fs::metadata(output.join(file)).map_or(0, |m| m.len());
    let pyramid: u64 = SOURCES.iter().map(|source| length(source.file)).sum();
    println!(
        "{} calls in {:.1} s, {:.2} bytes each; the pyramids {:.2} % of {} bytes",
        done.rows,
        started.elapsed().as_secs_f64(),
        (done.bytes_on_disk + pyramid) as f64 / done.rows as f64,
        100.0 * pyramid as f64 / (done.bytes_on_disk + pyramid) as f64,
        done.bytes_on_disk + pyramid,
    );
    Ok(())
}

/// CPU time of a thread of this process that still lives.
fn cpu_time(name: &str) -> anyhow::Result<Duration> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == name {
            let stat = fs::read_to_string(task.join("schedstat"))?;
            let ns = stat.split(' ').next().unwrap_or_default().parse()?;
            return Ok(Duration::from_nanos(ns));
        }
    }
    bail!("no thread {name}")
}

/// CPU time of the encoder's thread with and without the pyramid, in turns.
pub fn cost(recorded: &Path, rows: u64) -> anyhow::Result<()> {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..6 {
        let pyramid = turn % 2 == 1;
        let output = tempfile::tempdir()?;
        let options = WriterOptions {
            compact: false,
            pyramid,
            ..WriterOptions::default()
        };
        let writer = create(recorded, &output.path().join("s.fathom"), options)?;
        let written = write(recorded, &writer, rows)?;
        while writer.stats().queue_bytes > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ns = cpu_time("fathom-encode")?.as_nanos() as f64 / written as f64;
        times[usize::from(pyramid)].push(ns);
    }
    for (name, times) in ["without", "with"].iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!(
            "{name} a pyramid: {:.1} ns of the encoder's CPU time a call",
            times[1]
        );
    }
    Ok(())
}

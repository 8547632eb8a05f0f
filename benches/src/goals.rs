//! What recording is to cost, next to what it cost in this run.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::output::{Line, Report};
use crate::process::Running;
use crate::session;
use crate::stats::median;
use crate::tracer::Tracer;
use crate::workload::{Bench, Workload, words};

const FULL: Tracer = Tracer::Fathom("full");
const TAIL: Tracer = Tracer::With("fathom --rows tail", &["--rows", "tail"]);
/// Times that fathom is started.
const STARTS: usize = 5;

/// The goals that this run has numbers for, as a table.
///
/// # Errors
/// When fathom does not start.
pub fn table(report: &Report, bench: &Bench) -> Result<String> {
    let of_floor = |workload, tracer| {
        let rate = |tracer| report.value(workload, tracer, |line: &Line| line.rate);
        Some(rate(tracer)? / rate(Tracer::Floor)?)
    };
    let full = |workload, of: fn(&Line) -> Option<f64>| report.value(workload, FULL, of);
    let (first_call_ms, start_cpu_ms) = start(bench)?;
    #[rustfmt::skip] // A goal per line.
    let rows = [
        ("pread loop: CPU time, times the floor's", "<=", 1.4, full(Workload::Pread, |l| l.of_floor)),
        ("open loop: CPU time, times the floor's", "<=", 1.6, full(Workload::Open, |l| l.of_floor)),
        ("file server: speed, of untraced", ">=", 0.85, full(Workload::FileServer, |l| l.ratio)),
        ("file server, --rows tail: speed, of the floor's", ">=", 0.97, of_floor(Workload::FileServer, TAIL)),
        ("redis: speed, of the floor's", ">=", 0.97, of_floor(Workload::Redis, FULL)),
        ("pgbench: speed, of the floor's", ">=", 0.97, of_floor(Workload::Postgres, FULL)),
        ("rocksdb: speed, of the floor's", ">=", 0.97, of_floor(Workload::RocksDb, FULL)),
        ("recorder, pread loop: ns of CPU time a call", "<=", 250.0, full(Workload::Pread, |l| l.recorder_cpu_ns_per_call)),
        ("recorder, disk: ns of CPU time a call", "<=", 1500.0, full(Workload::Disk, |l| l.recorder_cpu_ns_per_call)),
        ("disk: bytes a call", "<=", 24.0, full(Workload::Disk, |l| l.bytes_per_event)),
        ("redis: bytes a call", "<=", 7.0, full(Workload::Redis, |l| l.bytes_per_event)),
        ("start to first recorded call: ms", "<=", 200.0, first_call_ms),
        ("starting and ending: ms of CPU time", "<=", 200.0, start_cpu_ms),
    ];
    let mut text = format!(
        "{:48} {:>9} {:>9}\n",
        "goals, default layers and full detail", "goal", "here"
    );
    for (what, sign, goal, here) in rows {
        let Some(here) = here else { continue };
        let met = if sign == "<=" {
            here <= goal
        } else {
            here >= goal
        };
        let digits = if goal < 10.0 { 2 } else { 0 };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{what:48} {:>9} {:>9}  {}",
            format!("{sign} {goal}"),
            format!("{here:.digits$}"),
            if met { "met" } else { "" }
        );
    }
    Ok(text)
}

/// Milliseconds from the start of `fathom record -- true` to its first recorded call, and of
/// processor time: medians.
fn start(bench: &Bench) -> Result<(Option<f64>, Option<f64>)> {
    let (mut first_call, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let dir = tempfile::tempdir_in(bench.shared())?;
        let session = dir.path().join("session.fathom");
        let began = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let began = Duration::new(
            u64::try_from(began.tv_sec).context("the clock")?,
            u32::try_from(began.tv_nsec).context("the clock")?,
        );
        let command = words([&bench.fathom(), &"record", &"-o", &session, &"--", &"true"]);
        let usage = Running::start(&command, dir.path(), &[])?.finish()?;
        let call = session::first_call_ns(&bench.fathom(), &session)?;
        let call = Duration::from_nanos(call);
        first_call.push(call.saturating_sub(began).as_secs_f64() * 1e3);
        cpu.push(usage.cpu_ns as f64 / 1e6);
    }
    Ok((median(first_call), median(cpu)))
}

//! The loops of `loop.c`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bench, Measured, Run, Workload, words};
use crate::session;
use crate::tracer::{Tracer, number};

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loop"));

/// Calls of one thread, untraced a second or less.
const PREADS: u64 = 2_000_000;
const OPENS: u64 = 200_000;

/// Writes the program and the file that it reads.
///
/// # Errors
/// When they cannot be written.
pub fn prepare(bench: &Bench) -> Result<()> {
    let program = bench.shared().join("loop");
    fs::write(&program, PROGRAM)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    fs::write(bench.shared().join("data"), vec![7; 4096])?;
    Ok(())
}

/// Runs a loop.
///
/// # Errors
/// When the program or its tracer fails.
pub fn run(run: &Run, workload: Workload) -> Result<Measured> {
    let full = if workload == Workload::Open {
        OPENS
    } else {
        PREADS
    };
    let calls = run.bench.options().calls.unwrap_or(full);
    measure(run, workload, run.amount(calls))
}

fn measure(run: &Run, workload: Workload, calls: u64) -> Result<Measured> {
    let options = run.bench.options();
    let out = run.dir.join("result");
    let pin = options.pin.map_or(-1, i64::from);
    let command = words([
        &run.bench.shared().join("loop"),
        &workload.name(),
        &run.bench.shared().join("data"),
        &calls.to_string(),
        &options.threads.to_string(),
        &pin.to_string(),
        &out,
    ]);
    let usage = run.start(&command, &[])?.finish()?;
    let text = fs::read(&out).with_context(|| out.display().to_string())?;
    let result: Value = serde_json::from_slice(&text).context("result of the loop")?;
    let made = number(&result, "calls").context("calls")?;
    let ns = number(&result, "ns").context("ns")?.max(1);
    let cpu_ns = number(&result, "cpu_ns").context("cpu_ns")?;
    let a_thread = made as f64 / f64::from(options.threads);
    Ok(Measured {
        rate: a_thread * 1e9 / ns as f64,
        cpu_ns_per_call: (made > 0).then(|| cpu_ns as f64 / a_thread),
        made: Some(made),
        usage,
    })
}

/// Calls of the loop in the session: those of its names less what the program
/// makes of them without a loop. `None` for other workloads, which do not know
/// what they made.
///
/// # Errors
/// When the session cannot be read.
pub fn counted(run: &Run, workload: Workload) -> Result<Option<u64>> {
    let names: &[&str] = match workload {
        Workload::Pread => &["pread64"],
        Workload::Open => &["openat", "fstat", "read", "close"],
        _ => return Ok(None),
    };
    let in_session = |run: &Run| -> Result<u64> {
        let calls = session::calls(&run.bench.fathom(), &run.dir.join("session.fathom"))?;
        Ok(names.iter().filter_map(|name| calls.get(*name)).sum())
    };
    let known = run.bench.startup.borrow().get(&workload).copied();
    let startup = match known {
        Some(startup) => startup,
        None => {
            let dir = tempfile::Builder::new()
                .prefix("start-")
                .tempdir_in(run.bench.shared())?;
            let empty = Run {
                bench: run.bench,
                tracer: Tracer::Fathom("raw"),
                dir: dir.path(),
                floor: None,
            };
            measure(&empty, workload, 0)?;
            let startup = in_session(&empty)?;
            run.bench.startup.borrow_mut().insert(workload, startup);
            startup
        }
    };
    Ok(Some(in_session(run)?.saturating_sub(startup)))
}

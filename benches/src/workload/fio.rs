//! fio with the jobs of `fileserver.fio` or `diskwait.fio`, for a fixed time.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{Measured, Run, words};
use crate::tracer::number;

pub static FILE_SERVER: &str = include_str!("../../fileserver.fio");
pub static DISK: &str = include_str!("../../diskwait.fio");

/// Runs fio with `jobs`.
///
/// # Errors
/// When it or its tracer fails.
pub fn run(run: &Run, text: &str) -> Result<Measured> {
    let jobs = run.dir.join("jobs.fio");
    fs::write(&jobs, text)?;
    let files = run.dir.join("files");
    fs::create_dir(&files)?;
    let out = run.dir.join("fio.json");
    let seconds = if run.bench.options().quick { "1" } else { "3" };
    let command = words([
        &"fio",
        &"--output-format=json",
        &format!("--output={}", out.display()),
        &jobs,
    ]);
    let env = [
        ("BENCH_DIR", files.into_os_string()),
        ("BENCH_SECONDS", seconds.into()),
    ];
    let usage = run.start(&command, &env)?.finish()?;
    let text = fs::read(&out).with_context(|| out.display().to_string())?;
    let result: Value = serde_json::from_slice(&text).context("report of fio")?;
    let jobs = result
        .get("jobs")
        .and_then(Value::as_array)
        .context("jobs")?;
    let mut rate = 0.0;
    for job in jobs {
        let milliseconds = number(job, "job_runtime").context("job_runtime")?;
        for direction in ["read", "write"] {
            let side = job.get(direction).context("direction")?;
            let operations = number(side, "total_ios").context("total_ios")?;
            rate += operations as f64 * 1000.0 / milliseconds.max(1) as f64;
        }
    }
    if rate == 0.0 {
        bail!("fio did nothing");
    }
    Ok(Measured {
        rate,
        cpu_ns_per_call: None,
        made: None,
        usage,
    })
}

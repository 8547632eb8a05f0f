//! RocksDB's own benchmark, `readwhilewriting`: two threads read while one writes.

use anyhow::{Context, Result};

use super::{Measured, Run, words};

/// Runs it.
///
/// # Errors
/// When it or its tracer fails.
pub fn run(run: &Run) -> Result<Measured> {
    let seconds = if run.bench.options().quick { 1 } else { 5 };
    let db = run.dir.join("db");
    let command = words([
        &"db_bench",
        &"--benchmarks=fillrandom,readwhilewriting",
        &"--num=200000",
        &"--value_size=400",
        &"--threads=2",
        &"--seed=1",
        &"--write_buffer_size=8388608",
        &"--cache_size=8388608",
        &format!("--duration={seconds}"),
        &format!("--db={}", db.display()),
    ]);
    let mut running = run.start(&command, &[])?;
    while !running.poll()? {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let printed = running.everything();
    let usage = running.finish()?;
    // "readwhilewriting :  12.345 micros/op 81000 ops/sec 5.000 seconds 405000 operations; ..."
    let result = printed
        .rsplit_once("readwhilewriting")
        .map(|(_, result)| result);
    let rate = result.and_then(|result| {
        let (_, rest) = result.split_once(" micros/op ")?;
        rest.split_whitespace().next()?.parse().ok()
    });
    Ok(Measured {
        rate: rate.with_context(|| format!("db_bench: {}", printed.escape_debug()))?,
        cpu_ns_per_call: None,
        made: None,
        usage,
    })
}

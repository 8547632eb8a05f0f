//! What a fathom session holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::tracer::number;

/// Counts of a session.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Calls that have rows, or are counted.
    pub stored: u64,
    /// Calls that have neither.
    pub lost: u64,
    /// What the recorder measured itself.
    pub recorded: Recorded,
}

/// What a recorder says of itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recorded {
    /// Calls: stored, counted and lost.
    pub calls: u64,
    /// Its processor time, start-up left out, nanoseconds.
    pub cpu_ns: u64,
}

/// The totals that the session states.
///
/// # Errors
/// When they do not add up or cannot be read.
pub fn totals(session: &Path) -> Result<Totals> {
    let path = session.join("session.json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    let meta: Value = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let total = |name: &str| {
        meta.get("totals")
            .and_then(|t| number(t, name))
            .with_context(|| format!("totals.{name}"))
    };
    let (seen, stored, lost) = (total("seen")?, total("stored")?, total("lost")?);
    let counted = total("counted")?;
    if seen != stored + counted + lost {
        bail!(
            "{}: seen {seen}, stored {stored}, counted {counted}, lost {lost}",
            path.display()
        );
    }
    let cost = |name: &str| meta.get("cost").and_then(|c| number(c, name)).unwrap_or(0);
    let recorded = Recorded {
        calls: seen,
        cpu_ns: cost("recorder_cpu_ns"),
    };
    Ok(Totals {
        stored: stored + counted,
        lost,
        recorded,
    })
}

/// Calls by name: rows, losses and counters together.
///
/// # Errors
/// When the query fails.
pub fn calls(fathom: &Path, session: &Path) -> Result<BTreeMap<String, u64>> {
    let sql = "SELECT syscall, sum(n)::BIGINT AS n FROM (
            SELECT syscall, count(*) AS n FROM syscalls GROUP BY syscall
            UNION ALL SELECT syscall, sum(count) AS n FROM losses GROUP BY syscall
            UNION ALL SELECT syscall, sum(count) AS n FROM counters GROUP BY syscall)
        GROUP BY syscall";
    query(fathom, session, sql)?
        .iter()
        .map(|row| {
            let name = row
                .get("syscall")
                .and_then(Value::as_str)
                .context("no name")?;
            Ok((name.to_owned(), number(row, "n").context("no number")?))
        })
        .collect()
}

/// When the first call began, CLOCK_MONOTONIC nanoseconds.
///
/// # Errors
/// When the query fails, or there is none.
pub fn first_call_ns(fathom: &Path, session: &Path) -> Result<u64> {
    let rows = query(fathom, session, "SELECT min(ts_ns) AS ns FROM syscalls")?;
    let first = rows.first().and_then(|row| number(row, "ns"));
    first.context("no call was recorded")
}

fn query(fathom: &Path, session: &Path, sql: &str) -> Result<Vec<Value>> {
    let output = Command::new(fathom)
        .arg("query")
        .arg(session)
        .args([sql, "--format", "json"])
        .output()
        .context("fathom query")?;
    if !output.status.success() {
        bail!("fathom query: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("answer of a query")
}

/// Bytes of all files of a session.
///
/// # Errors
/// When it cannot be read.
pub fn disk_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let meta = entry.metadata()?;
        bytes += if meta.is_dir() {
            disk_bytes(&entry.path())?
        } else {
            meta.len()
        };
    }
    Ok(bytes)
}

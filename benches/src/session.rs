//! What a fathom session holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tracer::number;

/// Counts of a session.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Rows of calls.
    pub stored: u64,
    /// Calls without a row.
    pub lost: u64,
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
    if seen != stored + lost {
        bail!(
            "{}: seen {seen}, stored {stored}, lost {lost}",
            path.display()
        );
    }
    Ok(Totals { stored, lost })
}

/// Calls by name: rows and losses together.
///
/// # Errors
/// When the query fails.
pub fn calls(fathom: &Path, session: &Path) -> Result<BTreeMap<String, u64>> {
    let sql = "SELECT syscall, sum(n)::BIGINT AS n FROM (
            SELECT syscall, count(*) AS n FROM syscalls GROUP BY syscall
            UNION ALL SELECT syscall, sum(count) AS n FROM losses GROUP BY syscall)
        GROUP BY syscall";
    let output = Command::new(fathom)
        .arg("query")
        .arg(session)
        .args([sql, "--format", "json"])
        .output()
        .context("fathom query")?;
    if !output.status.success() {
        bail!("fathom query: {}", String::from_utf8_lossy(&output.stderr));
    }
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).context("answer of a query")?;
    rows.iter()
        .map(|row| {
            let name = row
                .get("syscall")
                .and_then(Value::as_str)
                .context("no name")?;
            Ok((name.to_owned(), number(row, "n").context("no number")?))
        })
        .collect()
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

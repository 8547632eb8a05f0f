//! Views beside hand-written SQL, in DuckDB alone, on the same files.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use duckdb::Connection;
use fathom_query::{Db, Limits};
use fathom_session::Session;

use crate::cpu::cpu_ms;
use crate::questions::QUESTIONS;

/// The least of several runs: other work on the machine only ever adds to one.
struct Least {
    wall_ms: f64,
    cpu_ms: f64,
}

impl Least {
    fn new() -> Self {
        Least {
            wall_ms: f64::INFINITY,
            cpu_ms: f64::INFINITY,
        }
    }

    /// Adds a run, and returns what it returns.
    fn time<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), cpu_ms());
        let result = run();
        self.wall_ms = self.wall_ms.min(wall.elapsed().as_secs_f64() * 1e3);
        self.cpu_ms = self.cpu_ms.min(cpu_ms() - cpu);
        result
    }
}

/// Lets the kernel measure the peak of this process's memory anew.
fn forget_peak() -> std::io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// The most memory that this process had resident since, MiB.
fn peak_mib() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().next());
    Ok(kib
        .context("no VmHWM in /proc/self/status")?
        .parse::<u64>()?
        >> 10)
}

/// Reads all rows of a query; the error of one that fails.
fn ask(db: &Db, sql: &str) -> Result<usize, String> {
    let mut rows = 0;
    for batch in db.query(sql).map_err(|e| e.to_string())? {
        rows += batch.map_err(|e| e.to_string())?.num_rows();
    }
    Ok(rows)
}

/// As [`ask`] of a connection.
fn ask_plain(plain: &Connection, sql: &str) -> Result<usize, String> {
    let run = || -> duckdb::Result<usize> {
        let mut statement = plain.prepare(sql)?;
        Ok(statement.query_arrow([])?.map(|b| b.num_rows()).sum())
    };
    run().map_err(|e| e.to_string())
}

/// Prints the least of `turns` runs of each question, fathom and plain DuckDB in turns.
/// With `only`, of the questions whose names contain it.
pub fn run(session: &Path, turns: usize, only: Option<&str>) -> anyhow::Result<()> {
    let session = Session::open(session)?;
    let rows = session.rows("syscalls");
    let db = Db::open(&session, Limits::default())?;
    let plain = Connection::open_in_memory()?;
    // As fathom sets its own.
    plain.execute_batch(
        "SET memory_limit = '1GiB'; SET temp_directory = ''; SET parquet_metadata_cache = true; \
         SET enable_external_file_cache = false",
    )?;
    let list = |table: &str| {
        let parts = session.parts(table);
        let parts: Vec<String> = parts.iter().map(|p| format!("'{}'", p.display())).collect();
        format!("read_parquet([{}])", parts.join(", "))
    };
    let number = |sql: &str| -> anyhow::Result<i64> {
        let sql = sql.replace("FROM S", &format!("FROM {}", list("syscalls")));
        Ok(plain.query_row(&sql, [], |row| row.get(0))?)
    };
    let busiest = |column: &str| {
        number(&format!(
            "SELECT {column} FROM S WHERE {column} IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"
        ))
    };
    let values = [
        ("START", session.meta().clock.start_monotonic_ns),
        (
            "AT",
            number("SELECT (min(ts_ns) + max(ts_ns)) // 2 FROM S")?,
        ),
        ("FILE", busiest("file_id")?),
        ("THREAD", busiest("tid")?),
    ];
    let fill = |sql: &str| {
        let fill = |sql: String, (name, value): &(&str, i64)| sql.replace(name, &value.to_string());
        values.iter().fold(sql.to_owned(), fill)
    };
    // The same percentiles as the views take.
    let quantile = if db.exact_percentiles() {
        "quantile_disc(dur_ns, [0.5, 0.9, 0.99])"
    } else {
        "approx_quantile(dur_ns, [0.5, 0.9, 0.99])"
    };
    println!(
        "{rows} calls, percentiles by {quantile}; milliseconds, the least of {turns} runs\n\
         {:22} {:>9} {:>9} {:>6}  {:>9} {:>9} {:>6}  {:>8}",
        "", "fathom", "by hand", "x", "its CPU", "by hand", "x", "peak MiB"
    );
    for (name, ours, by_hand) in QUESTIONS {
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let ours = fill(ours);
        let by_hand = fill(by_hand)
            .replace("QUANTILE", quantile)
            .replace("FROM S", &format!("FROM {}", list("syscalls")))
            .replace("JOIN F ", &format!("JOIN {} ", list("files")));
        let (mut a, mut b) = (Least::new(), Least::new());
        let mut peak = 0;
        let mut failed = Vec::new();
        for _ in 0..turns {
            forget_peak()?;
            failed.extend(a.time(|| ask(&db, &ours)).err());
            peak = peak.max(peak_mib()?);
            let result = b.time(|| ask_plain(&plain, &by_hand));
            failed.extend(result.err().map(|e| format!("by hand: {e}")));
        }
        println!(
            "{name:22} {:9.1} {:9.1} {:6.2}  {:9.1} {:9.1} {:6.2}  {peak:8}",
            a.wall_ms,
            b.wall_ms,
            a.wall_ms / b.wall_ms,
            a.cpu_ms,
            b.cpu_ms,
            a.cpu_ms / b.cpu_ms,
        );
        for failed in failed.iter().take(1) {
            println!("    failed: {failed}");
        }
    }
    Ok(())
}

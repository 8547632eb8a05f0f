//! Views beside hand-written SQL, in DuckDB alone, on the same files.

use std::path::Path;
use std::time::Instant;

use duckdb::Connection;
use fathom_query::{Db, Limits};
use fathom_session::Session;

/// Name, as asked of fathom, as written by hand; `S` stands for the parts.
const QUESTIONS: &[(&str, &str, &str)] = &[
    (
        "by_syscall",
        "SELECT * FROM by_syscall",
        "SELECT syscall, any_value(class), count(*), count(*) - count(ret), count(errno), sum(bytes), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY syscall ORDER BY total DESC",
    ),
    (
        "by_file, top 20",
        "SELECT * FROM by_file LIMIT 20",
        "SELECT path, f.* FROM (SELECT file_id, count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY file_id \
         ORDER BY total DESC LIMIT 20) f LEFT JOIN F USING (file_id)",
    ),
    (
        "by_thread",
        "SELECT * FROM by_thread",
        "SELECT pid, tid, arg_max(comm, ts_ns), count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns), min(ts_ns), max(ts_ns) FROM S GROUP BY pid, tid \
         ORDER BY total DESC",
    ),
    (
        "by_process",
        "SELECT * FROM by_process",
        "SELECT pid, count(DISTINCT tid), count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns) AS total, QUANTILE, max(dur_ns) FROM S GROUP BY pid ORDER BY total DESC",
    ),
    (
        "by_second",
        "SELECT * FROM by_second",
        "SELECT ts_ns // 1000000000 AS second, count(*), count(errno), sum(bytes), \
         sum(bytes) FILTER (syscall IN ('read', 'pread64', 'readv', 'preadv', 'preadv2')), \
         sum(bytes) FILTER (syscall IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2')), \
         sum(dur_ns), QUANTILE, max(dur_ns) FROM S GROUP BY 1 ORDER BY 1",
    ),
    (
        "by_error",
        "SELECT * FROM by_error",
        "SELECT syscall, errno, count(*), min(ts_ns), max(ts_ns) FROM S WHERE errno IS NOT NULL \
         GROUP BY 1, 2 ORDER BY 3 DESC",
    ),
    (
        "by_latency",
        "SELECT * FROM by_latency",
        "SELECT syscall, floor(log2(greatest(dur_ns, 1))) AS b, count(*), sum(dur_ns) FROM S \
         GROUP BY 1, 2 ORDER BY 1, 2",
    ),
    (
        "count, sum, max",
        "SELECT count(*), sum(bytes), max(dur_ns) FROM syscalls",
        "SELECT count(*), sum(bytes), max(dur_ns) FROM S",
    ),
    (
        "slowest 100 calls",
        "SELECT * FROM syscalls ORDER BY dur_ns DESC LIMIT 100",
        "SELECT * FROM S ORDER BY dur_ns DESC LIMIT 100",
    ),
    (
        "sizes of reads",
        "SELECT size, count(*), sum(dur_ns) FROM syscalls WHERE syscall LIKE '%read%' \
         GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
        "SELECT size, count(*), sum(dur_ns) FROM S WHERE syscall LIKE '%read%' \
         GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    ),
    (
        "failed opens by path",
        "SELECT path, errno, count(*) FROM syscalls WHERE syscall = 'openat' AND errno IS NOT NULL \
         GROUP BY ALL ORDER BY 3 DESC LIMIT 20",
        "SELECT path, errno, count(*) FROM S WHERE syscall = 'openat' AND errno IS NOT NULL \
         GROUP BY ALL ORDER BY 3 DESC LIMIT 20",
    ),
    (
        "calls of 1 ms",
        "SELECT * FROM syscalls WHERE ts_ns BETWEEN AT AND AT + 1000000",
        "SELECT * FROM S WHERE ts_ns BETWEEN AT AND AT + 1000000",
    ),
];

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Prints medians of three, fathom and plain DuckDB in turns.
pub fn run(session: &Path) -> anyhow::Result<()> {
    let session = Session::open(session)?;
    let rows = session.rows("syscalls");
    let db = Db::open(&session, Limits::default())?;
    let plain = Connection::open_in_memory()?;
    plain.execute_batch("SET memory_limit = '1GiB'; SET temp_directory = ''")?;
    let list = |table: &str| {
        let parts = session.parts(table);
        let parts: Vec<String> = parts.iter().map(|p| format!("'{}'", p.display())).collect();
        format!("read_parquet([{}])", parts.join(", "))
    };
    let at: i64 = plain.query_row(
        &format!(
            "SELECT (min(ts_ns) + max(ts_ns)) // 2 FROM {}",
            list("syscalls")
        ),
        [],
        |row| row.get(0),
    )?;
    // The same percentiles as the views take.
    let quantile = if rows <= 20_000_000 {
        "quantile_disc(dur_ns, [0.5, 0.9, 0.99])"
    } else {
        "approx_quantile(dur_ns, [0.5, 0.9, 0.99])"
    };
    println!("{rows} calls");
    for (name, ours, by_hand) in QUESTIONS {
        let ours = ours.replace("AT", &at.to_string());
        let by_hand = by_hand
            .replace("AT", &at.to_string())
            .replace("QUANTILE", quantile)
            .replace("FROM S", &format!("FROM {}", list("syscalls")))
            .replace("JOIN F ", &format!("JOIN {} ", list("files")));
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut failed = None;
        for _ in 0..3 {
            let started = Instant::now();
            match db.query(&ours) {
                Ok(rows) => {
                    for batch in rows {
                        if let Err(e) = batch {
                            failed = Some(e.to_string());
                        }
                    }
                }
                Err(e) => failed = Some(e.to_string()),
            }
            a.push(started.elapsed().as_secs_f64() * 1e3);
            let started = Instant::now();
            let mut statement = plain.prepare(&by_hand)?;
            let rows: usize = statement.query_arrow([])?.map(|b| b.num_rows()).sum();
            std::hint::black_box(rows);
            b.push(started.elapsed().as_secs_f64() * 1e3);
        }
        let (a, b) = (median(&mut a), median(&mut b));
        println!("{name:22} {a:9.1} ms  by hand {b:9.1} ms  x {:.2}", a / b);
        if let Some(failed) = failed {
            println!("    failed: {failed}");
        }
    }
    Ok(())
}

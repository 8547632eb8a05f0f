//! Many small files count together, a row for each part of the tree, the same in the report and on the page.

use std::fs;

use fathom_tests::page::{Page, Table};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, session};

const DIRECTORIES: usize = 3;
/// So many that each has less than 2 % of its directory, too.
const FILES: usize = 180;

/// Reads all files of a directory, and writes a large one, so that it has most of the time.
const SCRIPT: &str = "import os, sys
for place, _, names in os.walk(sys.argv[1]):
    for name in names: open(os.path.join(place, name), 'rb').read()
out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
for i in range(2000): os.write(out, bytes(65536))
os.fsync(out)
";

fn recorded(scratch: &Scratch) -> (Recording, Page) {
    for i in 0..FILES {
        let directory = scratch.work().join(format!("small/{}", i % DIRECTORIES));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(i.to_string()), "some text").unwrap();
    }
    // Without page faults, which would count, too.
    let recording = Record::named(scratch, "run")
        .options(["--layers", "syscall"])
        .command(["python3", "-S", "-c", SCRIPT])
        .command([scratch.work().join("small"), scratch.work().join("large")])
        .run()
        .must_exit(0);
    let page = Page::serve(&recording.session);
    (recording, page)
}

/// The rows for several paths.
fn together(table: &Table) -> Vec<usize> {
    let rows: Vec<usize> = (0..table.rows.len())
        .filter(|row| table.rows[*row].contains_key("directory"))
        .collect();
    assert!(!rows.is_empty(), "{:?}", table.rows);
    rows
}

#[test]
fn small_files_count_together() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let base = "/sessions/run.fathom/top?by=path";
    // Each file has 9 bytes and the large one nearly all.
    let table = page.table(&format!("{base}&sort=bytes&limit=1000&together=1"));
    let rows = together(&table);
    let little = "path[1] = '/' AND bytes_of < 0.02 * all_bytes";
    let of_paths = "WITH of_paths AS (SELECT path, count(*) AS calls, coalesce(sum(bytes), 0) AS bytes_of, \
         sum(dur_ns) AS ns, max(dur_ns) AS max_ns FROM syscalls GROUP BY path), \
         known AS (SELECT *, (SELECT sum(bytes_of) FROM of_paths) AS all_bytes FROM of_paths)";
    let number = |value: &str| {
        recording.number(&format!(
            "{of_paths} SELECT {value} AS n FROM known WHERE {little}"
        ))
    };
    for (column, value) in [
        ("paths", "count(*)"),
        ("calls", "sum(calls)::BIGINT"),
        ("bytes", "sum(bytes_of)::BIGINT"),
        ("time_ns", "sum(ns)::BIGINT"),
        ("max_ns", "max(max_ns)"),
    ] {
        let of_rows = rows.iter().map(|row| table.numbers(column)[*row]);
        let all = match column {
            "max_ns" => of_rows.fold(0.0, f64::max),
            _ => of_rows.sum(),
        };
        assert_eq!(all, number(value) as f64, "{column}");
    }
    let within = |directory: &str| {
        let below = format!("{}/", directory.trim_end_matches('/'));
        format!("starts_with(path, '{below}')")
    };
    for row in rows {
        let directory = table.texts("directory")[row].unwrap();
        if directory != "/" {
            let inside = table.numbers("paths")[row] - table.numbers("elsewhere")[row];
            let counted = recording.number(&format!(
                "{of_paths} SELECT count(*) AS n FROM known WHERE {little} AND {}",
                within(directory)
            ));
            assert_eq!(inside, counted as f64, "{directory}");
        }
    }
    // The others are shown as without it, and all add up.
    let plain = page.table(&format!("{base}&sort=bytes&limit=1000"));
    assert_eq!(table.meta["time_ns"], plain.meta["time_ns"]);
    assert_eq!(table.meta["total"], plain.meta["total"]);
    for column in ["calls", "bytes", "time_ns", "errors", "failures"] {
        assert_eq!(table.sum(column), plain.sum(column), "{column}");
    }
    // Durations of single calls cannot be added up.
    let longest = page.table(&format!("{base}&sort=p99_ns&limit=1000&together=1"));
    assert_eq!(longest.rows.len(), plain.rows.len());
    // Files of the directory alone: it is deeper.
    let small = scratch.work().join("small").display().to_string();
    let filter = super::encoded(&format!("{{\"path\":\"{small}/1/\"}}"));
    let inside = page.table(&format!("{base}&sort=calls&together=1&f={filter}"));
    let [row] = together(&inside)[..] else {
        panic!("{:?}", inside.rows)
    };
    assert_eq!(inside.texts("directory")[row], Some(&*format!("{small}/1")));
    assert_eq!(inside.numbers("paths")[row], (FILES / DIRECTORIES) as f64);
    assert_eq!(inside.numbers("elsewhere")[row], 0.0);
    // The report of the same session, by call.
    let report = session::report(&recording.session);
    let costly = report["costly"].as_array().unwrap();
    let together = costly.iter().filter(|of| of["directory"].is_string());
    let placed: Vec<_> = together.filter(|of| of["directory"] != "/").collect();
    assert!(!placed.is_empty(), "{costly:?}");
    for of in placed {
        let (call, directory) = (&of["syscall"], of["directory"].as_str().unwrap());
        let inside = of["paths"].as_i64().unwrap() - of["elsewhere"].as_i64().unwrap();
        let counted = recording.number(&format!(
            "WITH of_paths AS (SELECT path, sum(dur_ns) AS ns FROM syscalls WHERE syscall = '{}' GROUP BY path) \
             SELECT count(*) AS n FROM of_paths WHERE path[1] = '/' \
             AND ns < 0.02 * (SELECT sum(dur_ns) FROM syscalls) AND {}",
            call.as_str().unwrap(),
            within(directory)
        ));
        assert_eq!(inside, counted, "{call} {directory}");
    }
}

//! SQL reaches its session and nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits, QueryError};
use fathom_testkit::sample;

fn fixed(limits: Limits) -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let files = sample::fixed(dir.path());
    let db = Db::open_parts(&sample::meta(), |t| files.parts(t), limits).unwrap();
    (dir, db)
}

fn run(db: &Db, sql: &str) -> Result<String, QueryError> {
    let mut out = Vec::new();
    output::write(db.query(sql)?, Format::Csv, &Options::default(), &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// Every file below `dir` with its size.
fn listing(dir: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.push((entry.path(), 0));
            found.extend(listing(&entry.path()));
        } else {
            found.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

#[test]
fn statements_that_do_not_select_are_refused() {
    let (dir, db) = fixed(Limits::default());
    let before = listing(dir.path());
    let part = dir.path().join("syscalls/000000.parquet");
    let new = dir.path().join("new.csv");
    let (part, new) = (part.display(), new.display());
    let statements = [
        format!("COPY (SELECT 1) TO '{part}'"),
        format!("COPY syscalls TO '{new}'"),
        format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}'"),
        format!("EXPLAIN COPY (SELECT 1) TO '{part}'"),
        format!("SELECT 1; COPY (SELECT 1) TO '{part}'"),
        format!("COPY (SELECT 1) TO '{part}'; SELECT 1"),
        format!("EXPLAIN SELECT 1; COPY (SELECT 1) TO '{part}'"),
        "SELECT 1; SELECT 2".into(),
        format!("ATTACH '{new}' AS x"),
        "ATTACH ':memory:' AS x".into(),
        format!("EXPORT DATABASE '{new}'"),
        format!("IMPORT DATABASE '{new}'"),
        "INSTALL httpfs".into(),
        "LOAD httpfs".into(),
        format!("LOAD '{new}'"),
        "SET enable_external_access = true".into(),
        "SET lock_configuration = false".into(),
        "RESET lock_configuration".into(),
        "SET VARIABLE x = 1".into(),
        "PRAGMA enable_profiling".into(),
        "PRAGMA database_list".into(),
        "CALL enable_logging()".into(),
        "CREATE TABLE t (x INTEGER)".into(),
        "CREATE OR REPLACE VIEW syscalls AS SELECT 1".into(),
        "CREATE MACRO wall_time(x) AS 1".into(),
        "CREATE SECRET s (TYPE s3)".into(),
        "DROP VIEW syscalls".into(),
        "INSERT INTO session SELECT * FROM session".into(),
        "UPDATE session SET id = 'x'".into(),
        "DELETE FROM session".into(),
        "TRUNCATE session".into(),
        "BEGIN".into(),
        "CHECKPOINT".into(),
        "VACUUM".into(),
        "USE memory".into(),
        "PREPARE p AS SELECT 1".into(),
        "EXECUTE p".into(),
        "COMMENT ON VIEW syscalls IS 'x'".into(),
        "SELECT 1 INTO t".into(),
        "WITH x AS (DELETE FROM session RETURNING *) SELECT * FROM x".into(),
        "".into(),
        "-- nothing".into(),
        ";".into(),
        "SELECT 1\0; DROP VIEW syscalls".into(),
    ];
    for sql in statements {
        let error = run(&db, &sql).expect_err(&sql);
        assert!(
            matches!(error, QueryError::NotASelect(_) | QueryError::Sql(_)),
            "{sql}: {error:?}"
        );
    }
    assert_eq!(
        run(&db, "SELECT count(*) FROM syscalls").unwrap(),
        "count_star()\n1015\n"
    );
    assert_eq!(
        run(&db, "SELECT count(*) AS n FROM session").unwrap(),
        "n\n1\n"
    );
    assert_eq!(listing(dir.path()), before);
}

#[test]
fn other_files_are_out_of_reach() {
    let (dir, db) = fixed(Limits::default());
    let secret = dir.path().join("secret.csv");
    std::fs::write(&secret, "word\nsesame\n").unwrap();
    let before = listing(dir.path());
    let (secret, dir_) = (secret.display(), dir.path().display());
    let statements = [
        "SELECT * FROM read_text('/etc/passwd')".into(),
        "SELECT * FROM read_blob('/proc/self/environ')".into(),
        "SELECT * FROM read_csv('/etc/passwd')".into(),
        format!("SELECT * FROM read_csv_auto('{secret}')"),
        format!("SELECT * FROM read_text('{secret}')"),
        format!("SELECT * FROM '{secret}'"),
        format!("SELECT * FROM \"{secret}\""),
        format!("FROM '{secret}'"),
        format!("SELECT * FROM '{dir_}/syscalls/../secret.csv'"),
        format!("SUMMARIZE '{secret}'"),
        format!("DESCRIBE '{secret}'"),
        format!("DESCRIBE SELECT * FROM read_csv('{secret}')"),
        format!("EXPLAIN SELECT * FROM read_csv('{secret}')"),
        format!("SELECT (SELECT max(content) FROM read_text('{secret}'))"),
        format!("WITH x AS (FROM read_text('{secret}')) SELECT * FROM x"),
        format!(
            "SELECT * FROM syscalls JOIN LATERAL (SELECT * FROM read_text('{secret}')) ON true"
        ),
        format!("SELECT * FROM READ_TEXT('{secret}')"),
        format!("SELECT * FROM main.read_text('{secret}')"),
        format!("SELECT * FROM \"read_text\"('{secret}')"),
        "SELECT * FROM glob('/etc/*')".into(),
        format!("SELECT * FROM glob('{dir_}/*')"),
        format!("SELECT * FROM sniff_csv('{secret}')"),
        "SELECT * FROM parquet_metadata('/etc/passwd')".into(),
        "SELECT * FROM read_json('/etc/passwd')".into(),
        "SELECT * FROM read_duckdb('/etc/passwd')".into(),
        "SELECT * FROM read_parquet('http://127.0.0.1:1/x')".into(),
        "SELECT * FROM 'https://127.0.0.1:1/x.parquet'".into(),
        "SELECT getenv('HOME')".into(),
        "SELECT * FROM duckdb_secrets()".into(),
        "SELECT * FROM which_secret('s3://x', 's3')".into(),
        // Functions that act although they are only selected from.
        format!("SELECT * FROM enable_logging(storage = 'file', storage_path = '{dir_}/log')"),
        format!("SELECT * FROM enable_profiling(save_location = '{dir_}/p.json', format = 'json')"),
        "SELECT * FROM checkpoint()".into(),
        "SELECT write_log('x')".into(),
        format!("SELECT * FROM query('COPY (SELECT 1) TO ''{secret}''')"),
        format!("SELECT * FROM query('FROM read_text(''{secret}'')')"),
        format!("SELECT * FROM query_table('{secret}')"),
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))".into(),
        "SELECT * FROM arrow_scan(1, 2, 3)".into(),
        "SELECT * FROM sql_auto_complete('SELECT * FROM ''/etc/')".into(),
    ];
    for sql in statements {
        let result = run(&db, &sql);
        assert!(result.is_err(), "{sql}: {result:?}");
    }
    assert_eq!(listing(dir.path()), before);
    let error = run(&db, "SELECT * FROM glob('/etc/*')")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("table function glob is not available"),
        "{error}"
    );
}

#[test]
fn what_selects_is_accepted() {
    let (_dir, db) = fixed(Limits::default());
    for sql in [
        "SELECT 1;",
        " -- a comment\n select 1 /* another */ ; -- end",
        "FROM by_syscall",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) FROM t",
        "VALUES (1, 'x')",
        "TABLE by_class",
        "DESCRIBE syscalls",
        "SUMMARIZE losses",
        "SHOW TABLES",
        "EXPLAIN SELECT * FROM by_file",
        "explain analyze SELECT count(*) FROM syscalls",
        "SELECT * FROM range(3) JOIN generate_series(1, 2) ON true",
        "PIVOT by_error ON errno IN ('ENOENT', 'EACCES') USING sum(calls)",
        "SELECT unnest([1, 2]), list(syscall) FROM by_syscall",
        "SELECT * FROM duckdb_columns() WHERE table_name = 'by_file'",
        "SELECT '; COPY x TO y' AS \"a;b\"",
        "SELECT syscall, count(*) FILTER (errno IS NOT NULL) OVER () FROM syscalls LIMIT 3",
    ] {
        let rows = run(&db, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert!(rows.lines().count() >= 1, "{sql}");
    }
    let long = format!("SELECT {}1 AS x", "1 + ".repeat(200));
    assert_eq!(run(&db, &long).unwrap(), "x\n201\n");
}

#[test]
fn nesting_without_end_is_an_error() {
    let (_dir, db) = fixed(Limits::default());
    for n in [2_000, 200_000] {
        for (open, close) in [
            ("(", ")"),
            ("abs(", ")"),
            ("(SELECT ", ")"),
            ("[", "]"),
            ("-", ""),
        ] {
            let sql = format!("SELECT {}1{}", open.repeat(n), close.repeat(n));
            // Whether it is an answer or an error, the process lives on.
            let _ = run(&db, &sql);
        }
    }
    assert!(run(&db, "SELECT 1").is_ok());
}

#[test]
fn errors_of_sql_are_fit_for_a_terminal() {
    let (_dir, db) = fixed(Limits::default());
    let error = run(&db, "SELEC 1").unwrap_err().to_string();
    assert!(
        error.starts_with("Parser Error: syntax error at or near \"SELEC\""),
        "{error}"
    );
    let error = run(&db, "SELECT nope FROM syscalls")
        .unwrap_err()
        .to_string();
    assert!(error.contains("nope"), "{error}");
    let error = run(
        &db,
        "SELECT path::INTEGER FROM syscalls WHERE errno = 'EACCES'",
    );
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("alert(1)") && !error.contains('\u{1b}'),
        "{error:?}"
    );
}

#[test]
fn time_is_limited() {
    let limit = Duration::from_millis(300);
    let (_dir, db) = fixed(Limits {
        time: Some(limit),
        ..Limits::default()
    });
    let slow = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b";
    for _ in 0..2 {
        let begun = Instant::now();
        let error = run(&db, slow).unwrap_err();
        assert!(
            matches!(error, QueryError::TimeLimit(l) if l == limit),
            "{error:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(run(&db, "SELECT 1 AS x").unwrap(), "x\n1\n");
    }
}

#[test]
fn memory_is_limited() {
    let (_dir, db) = fixed(Limits {
        memory_bytes: 64 << 20,
        ..Limits::default()
    });
    let error = run(
        &db,
        "SELECT count(*) FROM (SELECT DISTINCT range FROM range(100000000))",
    );
    let error = error.unwrap_err();
    assert!(
        matches!(error, QueryError::Memory { limit_mib: 64, .. }),
        "{error:?}"
    );
    assert!(run(&db, "SELECT 1").is_ok());
}

#[test]
fn a_result_is_read_before_the_next_query() {
    let (_dir, db) = fixed(Limits::default());
    let mut first = db.query("SELECT * FROM range(1000000)").unwrap();
    assert!(first.next_batch().unwrap().is_some());
    assert!(matches!(db.query("SELECT 1"), Err(QueryError::Busy)));
    drop(first);
    assert!(db.query("SELECT 1").is_ok());
}

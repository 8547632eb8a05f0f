//! A database: its results are the same with fathom, and its calls are those that
//! strace sees.

use std::path::{Path, PathBuf};

use fathom_tests::environment::must_run;
use fathom_tests::{Record, Scratch, need_program, need_root};

use crate::strace_compared::{both, compare_all};
use crate::suites::identities_hold;

/// Everything that SQLite does with files: both kinds of journal, transactions
/// that are rolled back with their pages already written, a small cache that
/// spills, sorting that does not fit memory, mapped reads, attached and
/// temporary databases, VACUUM. What it prints depends on all that it stored.
const SCRIPT: &str = "
PRAGMA journal_mode=DELETE; PRAGMA cache_size=10; PRAGMA temp_store=FILE; PRAGMA synchronous=FULL;
CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, body TEXT);
CREATE INDEX by_k ON t(k);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
  INSERT INTO t SELECT i, i * 7919 % 3001, hex(i * 65537) || printf('%0*d', i % 400, i) FROM n;
BEGIN; UPDATE t SET body = body || 'x' WHERE k % 3 = 0;
SAVEPOINT a; DELETE FROM t WHERE k % 5 = 0; ROLLBACK TO a; RELEASE a; COMMIT;
BEGIN; UPDATE t SET body = upper(body), k = -k; SELECT count(*) FROM t WHERE k < 0; ROLLBACK;
SELECT count(*), sum(k), sum(length(body)) FROM t;
PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=50;
INSERT INTO t(k, body) SELECT k + 1, substr(body, 3) FROM t WHERE id % 2;
DELETE FROM t WHERE id % 17 = 3;
PRAGMA wal_checkpoint(TRUNCATE);
ATTACH 'other.db' AS other; CREATE TABLE other.copy AS SELECT * FROM t ORDER BY body DESC, id;
SELECT sum(rowid * (length(body) + k)) FROM other.copy; DETACH other;
CREATE TEMP TABLE s AS SELECT body FROM t; SELECT count(DISTINCT body) FROM s; DROP TABLE s;
PRAGMA journal_mode=TRUNCATE; PRAGMA mmap_size=1048576;
VACUUM; REINDEX; ANALYZE; PRAGMA integrity_check;
SELECT k, count(*), max(body) FROM t GROUP BY k % 7 ORDER BY 1;
";

/// The shell's command line for the script on a fresh database in `dir`.
fn command(dir: &Path) -> Vec<PathBuf> {
    let script = dir.join("script.sql");
    std::fs::write(&script, SCRIPT).unwrap();
    let shell = format!(
        "cd {} && exec sqlite3 -batch -init /dev/null main.db <script.sql",
        dir.display()
    );
    ["sh", "-c", &shell].iter().map(PathBuf::from).collect()
}

#[test]
fn sqlite_gives_the_same_results() {
    need_root!();
    need_program!("sqlite3");
    let (alone, traced) = (Scratch::new(), Scratch::new());
    let line = command(&alone.work());
    let expected = String::from_utf8(must_run(&line[0], &line[1..])).unwrap();
    assert!(expected.lines().any(|line| line == "ok"), "{expected}");
    let recording = Record::new(&traced)
        .command(command(&traced.work()))
        .run()
        .must_exit(0);
    assert_eq!(recording.text(), expected);
    for name in ["main.db", "other.db"] {
        let content = |scratch: &Scratch| std::fs::read(scratch.work().join(name)).unwrap();
        assert!(content(&alone) == content(&traced), "{name} differs");
    }
    let totals = recording.complete();
    assert!(totals.stored > 1000, "{totals:?}");
    identities_hold(&recording);
}

#[test]
fn sqlite_at_once_with_strace() {
    need_root!();
    need_program!("sqlite3", "strace");
    let scratch = Scratch::new();
    let (recording, text) = both(&scratch, &[], &command(&scratch.work()));
    assert!(compare_all(&recording, &text, false) > 1000);
}

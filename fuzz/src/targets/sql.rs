//! SQL statements against the guard: they read the session or are refused, and leave in time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use fathom_model::tables::TABLES;
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits, view_names};
use fathom_session::Session;
use fathom_tests::environment::fathom;
use tempfile::TempDir;

use super::{Target, peak_mib, tree};
use crate::{corpus, mutate};

/// What stands in a file that no statement may read.
const SECRET: &str = "fathom-fuzz-secret";
/// Seconds and MiB that the program is given for a statement.
const TIME: u64 = 2;
const MEMORY_MIB: u64 = 128;
/// What it may take beyond that before it counts as unbounded: machines are busy, and a database
/// needs memory of its own.
const SLACK: Duration = Duration::from_secs(20);
const SLACK_MIB: u64 = 512;

/// Statements whose pieces are put together anew. `OUTSIDE` is a file that is not the session's.
const STATEMENTS: [&str; 34] = [
    "SELECT * FROM by_file ORDER BY total_ns DESC LIMIT 10",
    "FROM by_syscall",
    "WITH a AS (SELECT pid, sum(bytes) AS b FROM syscalls GROUP BY pid) SELECT * FROM a WHERE b > 0",
    "SELECT path, quantile_disc(dur_ns, [0.5, 0.99]) FROM syscalls GROUP BY ALL",
    "SELECT s.name, b.bytes FROM slices AS s JOIN block AS b USING (rid)",
    "PIVOT syscalls ON class USING sum(bytes)",
    "SELECT wall_time(ts_ns), row_number() OVER (PARTITION BY tid ORDER BY ts_ns) FROM syscalls",
    "DESCRIBE by_thread",
    "SUMMARIZE files",
    "EXPLAIN SELECT 1",
    "SHOW TABLES",
    "SELECT * FROM 'OUTSIDE'",
    "SELECT * FROM read_csv('OUTSIDE')",
    "SELECT content FROM read_text('OUTSIDE')",
    "SELECT * FROM read_blob('OUTSIDE')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('OUTSIDE')",
    "SELECT getenv('HOME'), current_setting('temp_directory')",
    "COPY (SELECT 1) TO 'WRITTEN'",
    "COPY syscalls FROM 'OUTSIDE'",
    "ATTACH 'WRITTEN' AS other",
    "INSTALL httpfs",
    "LOAD 'OUTSIDE'",
    "SET enable_external_access = true",
    "PRAGMA database_list",
    "CREATE TABLE t AS SELECT 1",
    "DROP VIEW by_file",
    "EXPORT DATABASE 'WRITTEN'",
    "CALL pragma_version()",
    "SELECT * FROM duckdb_secrets(), duckdb_settings()",
    "SELECT query('SELECT 1'), query_table('OUTSIDE')",
    "VALUES (1, 'a'), (2, NULL)",
    "SELECT unnest([1, 2]), {'a': 1}, MAP {'k': 'v'}, x'00', 1e400, -9223372036854775808",
    "SELECT 1; SELECT 2",
];
/// Calls that take long or much when nothing bounds them: for the program alone.
const HEAVY: [&str; 12] = [
    "length(repeat('x', 4000000000))",
    "length(lpad('', 1500000000, 'x'))",
    "length(rpad('', 1500000000, 'x'))",
    "len(range(1000000000))",
    "len(generate_series(1, 1000000000))",
    "levenshtein(repeat('a', 60000), repeat('b', 60000))",
    "length(regexp_replace(repeat('a', 300000), '(a?){1000}a{1000}', '', 'g'))",
    "pg_sleep(30)",
    "(SELECT count(*) FROM range(100000000000))",
    "(SELECT max(a.range + b.range) FROM range(1000000) a, range(1000000) b)",
    "(WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r)",
    "length(string_agg(repeat('x', 1000), ',')) FROM range(10000000)",
];

/// A session to ask, and what is outside of it.
pub struct Sql {
    session: PathBuf,
    db: Db,
    /// Empty but for the file with the secret.
    outside: TempDir,
    input: String,
}

impl Sql {
    /// Opens the first session of a corpus.
    pub fn new(dir: &Path) -> Self {
        let session = corpus::files(dir, "sessions")[0].clone();
        let outside = tempfile::tempdir().expect("a directory");
        fs::write(outside.path().join("secret.csv"), SECRET).expect("the secret");
        Self {
            db: open(&session),
            session,
            outside,
            input: String::new(),
        }
    }

    fn statement(&self, rng: &mut Rng) -> String {
        let mut text = mutate::one(rng, &STATEMENTS).to_string();
        for _ in 0..rng.usize(..4) {
            text = self.changed(rng, &text);
        }
        text.replace(
            "OUTSIDE",
            &self.outside.path().join("secret.csv").display().to_string(),
        )
        .replace(
            "WRITTEN",
            &self.outside.path().join("written").display().to_string(),
        )
    }

    fn changed(&self, rng: &mut Rng, text: &str) -> String {
        let words: Vec<&str> = text.split_inclusive([' ', '(', ')', ',']).collect();
        let other: Vec<&str> = mutate::one(rng, &STATEMENTS)
            .split_inclusive([' ', '(', ')', ','])
            .collect();
        // Damage can leave nothing.
        if words.is_empty() {
            return other.concat();
        }
        let at = rng.usize(..words.len());
        let (before, behind) = (words[..at].concat(), words[at + 1..].concat());
        let relations: Vec<&str> = TABLES.iter().map(|t| t.name).chain(view_names()).collect();
        match rng.u8(..10) {
            0 => before + " " + &behind,
            1 => before + other[rng.usize(..other.len())] + &behind,
            2 => before + relations[rng.usize(..relations.len())] + " " + &behind,
            3 => format!("SELECT * FROM ({text})"),
            4 => format!("{text} UNION ALL {}", mutate::one(rng, &STATEMENTS)),
            5 => format!("{text}; {}", mutate::one(rng, &STATEMENTS)),
            6 => format!("/* {text} */ {}", mutate::one(rng, &STATEMENTS)),
            7 => format!("EXPLAIN ANALYZE {text}"),
            8 => {
                let mut bytes = text.as_bytes().to_vec();
                mutate::bytes(rng, &mut bytes, b"'\"$;--\0\\", 3);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => {
                let deep = rng.usize(1..2000);
                format!("SELECT {}1{}", "(".repeat(deep), ")".repeat(deep))
            }
        }
    }

    /// What is outside is as it was.
    fn outside_untouched(&self) -> Result<(), String> {
        let entries = fs::read_dir(self.outside.path()).expect("a directory");
        let names: Vec<_> = entries.map(|e| e.expect("an entry").file_name()).collect();
        if names != ["secret.csv"] {
            return Err(format!("it wrote files: {names:?}"));
        }
        Ok(())
    }

    fn in_process(&mut self) -> Result<(), String> {
        let mut text = Vec::new();
        let result = self
            .db
            .query(&self.input)
            .and_then(|rows| output::write(rows, Format::Csv, &Options::default(), &mut text));
        if contains(&text, SECRET) {
            return Err("it reads a file outside the session".to_string());
        }
        let failed = result.err().map(|e| e.to_string());
        if failed
            .as_ref()
            .is_some_and(|e| e.contains("INTERNAL") || e.contains(SECRET))
        {
            return Err(format!("error: {}", failed.unwrap_or_default()));
        }
        // Whatever it was, the next statement is answered.
        let rows = self.db.query("SELECT count(*) AS n FROM syscalls");
        if let Err(e) = rows.map(drop) {
            return Err(format!("the database answers no more: {e}"));
        }
        Ok(())
    }

    fn by_the_program(&self) -> Result<(), String> {
        let mut child = Command::new(fathom())
            .args(["query", "--format", "csv", "--timeout", &TIME.to_string()])
            .args(["--memory-mib", &MEMORY_MIB.to_string(), "--"])
            .arg(&self.session)
            .arg(self.input.replace('\0', " "))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("fathom");
        let begin = Instant::now();
        let mut most = 0;
        let status = loop {
            most = most.max(
                tree(child.id())
                    .iter()
                    .filter_map(|pid| peak_mib(pid))
                    .max()
                    .unwrap_or(0),
            );
            if let Some(status) = child.try_wait().expect("fathom") {
                break status;
            }
            let late = begin.elapsed() > Duration::from_secs(TIME) + SLACK;
            let large = most > MEMORY_MIB + SLACK_MIB;
            if late || large {
                child.kill().expect("fathom");
                child.wait().expect("fathom");
                let seconds = begin.elapsed().as_secs();
                return Err(format!(
                    "unbounded: {seconds} s, {most} MiB of {TIME} s, {MEMORY_MIB} MiB"
                ));
            }
            thread::sleep(Duration::from_millis(10));
        };
        match status.code() {
            Some(0 | 2) => Ok(()),
            _ => Err(format!("fathom query ends with {status}")),
        }
    }
}

impl Target for Sql {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.input = self.statement(rng);
        let result = if rng.u8(..32) == 0 {
            if rng.bool() {
                self.input = format!("SELECT {}", mutate::one(rng, &HEAVY));
            }
            self.by_the_program()
        } else {
            self.in_process()
        };
        result
            .and(self.outside_untouched())
            .map_err(|e| format!("{e}: {}", self.input))
    }

    fn keep(&mut self, path: &Path) {
        fs::write(path, &self.input).expect("the input");
    }
}

fn open(session: &Path) -> Db {
    let session = Session::open(session).expect("a session");
    let limits = Limits {
        memory_bytes: 256 << 20,
        threads: 1,
        time: Some(Duration::from_secs(5)),
    };
    Db::open(&session, limits).expect("a database")
}

fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len())
        .any(|piece| piece == word.as_bytes())
}

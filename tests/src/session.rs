//! What a session holds, through its SQL and `session.json`.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::environment::{fathom, must_run};
use crate::record::Recording;
use crate::statements;

/// One row of an answer.
pub struct Row(Map<String, Value>);

impl Row {
    /// A number; `None` for null.
    pub fn int(&self, column: &str) -> Option<i64> {
        match self.value(column) {
            Value::Null => None,
            Value::Number(n) => Some(n.as_i64().unwrap_or_else(|| panic!("{column}: {n}"))),
            // Sums of 64-bit numbers are 128 bits wide, which JSON's readers
            // cannot be trusted with.
            Value::String(s) => Some(s.parse().unwrap_or_else(|_| panic!("{column}: {s:?}"))),
            other => panic!("{column} is no number: {other}"),
        }
    }

    /// A text; `None` for null.
    pub fn text(&self, column: &str) -> Option<&str> {
        match self.value(column) {
            Value::Null => None,
            Value::String(s) => Some(s),
            other => panic!("{column} is no text: {other}"),
        }
    }

    /// The value of a column.
    pub fn value(&self, column: &str) -> &Value {
        self.0
            .get(column)
            .unwrap_or_else(|| panic!("no column {column} in {:?}", self.0))
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Value::Object(self.0.clone()))
    }
}

/// The critical path of a request, as `fathom critical-path` gives it.
pub fn critical_path(session: &Path, rid: i64) -> Value {
    let rid = rid.to_string();
    let args = ["critical-path", "--request", &rid, "--format", "json"].map(OsStr::new);
    let args = args.into_iter().chain([session.as_os_str()]);
    serde_json::from_slice(&must_run(fathom(), args)).expect("JSON of fathom critical-path")
}

/// The rows that a statement gives, run as `fathom query` runs it.
pub fn query(session: &Path, sql: &str) -> Vec<Row> {
    let rows = match statements::lines(session, sql) {
        Some(lines) => lines.map_err(|e| e.to_string()).and_then(|lines| {
            let lines = serde_json::Deserializer::from_slice(&lines).into_iter::<Value>();
            lines
                .map(|value| value.map_err(|e| e.to_string()).and_then(row))
                .collect()
        }),
        None => try_query(session, sql),
    };
    rows.unwrap_or_else(|e| panic!("query {sql}:\n{e}"))
}

/// A row of JSON.
fn row(value: Value) -> Result<Row, String> {
    match value {
        Value::Object(map) => Ok(Row(map)),
        other => Err(format!("not a row: {other}")),
    }
}

/// The same by `fathom query`; what it says on standard error when it fails.
pub fn try_query(session: &Path, sql: &str) -> Result<Vec<Row>, String> {
    let output = Command::new(fathom())
        .arg("query")
        .arg(session)
        .arg(sql)
        .args(["--format", "json"])
        .stdin(Stdio::null())
        .output()
        .expect("fathom query");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).map_err(|e| format!("answer: {e}"))?;
    let values: Vec<Value> = serde_json::from_str(&text).map_err(|e| format!("answer: {e}"))?;
    values.into_iter().map(row).collect()
}

/// Runs `fathom report --format json`.
pub fn report(session: &Path) -> Value {
    let text = crate::environment::must_run(
        fathom(),
        [
            "report".as_ref(),
            session.as_os_str(),
            "--format".as_ref(),
            "json".as_ref(),
        ],
    );
    serde_json::from_slice(&text).expect("report is JSON")
}

/// The contents of `session.json`.
pub fn meta(session: &Path) -> Value {
    let path = session.join("session.json");
    let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Seen, stored and lost calls of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Calls that the kernel saw.
    pub seen: i64,
    /// Rows in table `syscalls`.
    pub stored: i64,
    /// Calls in table `losses`.
    pub lost: i64,
}

impl Recording {
    /// Runs a statement on the session.
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        query(&self.session, sql)
    }

    /// The only number that a query answers.
    pub fn number(&self, sql: &str) -> i64 {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        assert_eq!(rows[0].0.len(), 1, "{sql}: {rows:?}");
        let column = rows[0].0.keys().next().expect("a column").clone();
        rows[0]
            .int(&column)
            .unwrap_or_else(|| panic!("{sql}: null"))
    }

    /// Checks that seen = stored + lost, in the session's own totals and in its
    /// tables, and returns the numbers of calls.
    pub fn balanced(&self) -> Totals {
        let state = &meta(&self.session)["state"];
        assert_eq!(state, "complete", "{}", self.stderr);
        let [calls, ..] = self.balanced_tables([
            // Calls that had not ended are rows of their own and counted as seen.
            ("syscalls", "layer = 'syscall'"),
            ("faults", "syscall = 'page_fault'"),
            ("writeback", "syscall = 'writeback'"),
        ]);
        calls
    }

    /// The same for a table besides `syscalls`, whose losses are called `name`.
    pub fn balanced_table(&self, table: &str, name: &str) -> Totals {
        let losses = format!("syscall = '{name}'");
        let [totals] = self.balanced_tables([(table, &losses)]);
        totals
    }

    /// The same for tables, each with the condition of its losses, in one query.
    fn balanced_tables<const N: usize>(&self, tables: [(&str, &str); N]) -> [Totals; N] {
        let counts = tables.map(|(table, losses)| {
            format!(
                "(SELECT count(*) FROM {table}) AS {table}, \
                 coalesce(sum(count) FILTER ({losses}), 0)::BIGINT AS lost_{table}"
            )
        });
        let rows = self.rows(&format!("SELECT {} FROM losses", counts.join(", ")));
        let [row] = rows.as_slice() else {
            panic!("{rows:?}");
        };
        let meta = meta(&self.session);
        tables.map(|(table, _)| {
            let of_table = match table {
                "syscalls" => &meta["totals"],
                table => &meta["totals"][table],
            };
            let total = |part: &str| {
                let total = of_table[part].as_i64();
                total.unwrap_or_else(|| panic!("{part} of {table}: {meta}"))
            };
            let totals = Totals {
                seen: total("seen"),
                stored: total("stored"),
                lost: total("lost"),
            };
            let Totals { seen, stored, lost } = totals;
            assert_eq!(seen, stored + lost, "{table}: {totals:?}");
            assert_eq!(row.int(table), Some(stored), "{table}: {totals:?}");
            let lost_rows = row.int(&format!("lost_{table}"));
            assert_eq!(lost_rows, Some(lost), "{table}: {totals:?}");
            totals
        })
    }

    /// The same, and nothing may be lost.
    pub fn complete(&self) -> Totals {
        let totals = self.balanced();
        assert_eq!(
            totals.lost,
            0,
            "{:?}",
            self.rows("SELECT stage, syscall, count FROM losses")
        );
        assert!(totals.stored > 0, "nothing was recorded");
        totals
    }
}

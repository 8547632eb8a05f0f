//! Table function `critical_path`: its rows are computed before a statement runs, by the program that
//! the worker belongs to (crate `path` builds on this one). They fill a table, and the function is a
//! macro that reads the rows of its arguments. So the arguments must be constants, which the
//! statement's parse tree shows.

use std::collections::BTreeSet;

use duckdb::{Connection, params};
use serde_json::Value;

use crate::{QueryError, escape};

/// The statements that create the function; their comments document it.
pub(crate) const SQL: &str = include_str!("../sql/functions/critical_path.sql");
/// Its name.
pub(crate) const NAME: &str = "critical_path";
/// Its forms, for help and messages.
pub const FORMS: &str = "critical_path(rid), critical_path(tid, from_ns, until_ns)";
/// The table with its rows.
pub(crate) const TABLE: &str = "segments";
/// Different paths in one statement: each may read all waits of a thread.
const MOST: usize = 100;

/// The arguments of a call of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathCall {
    /// The path of a request.
    Request(i64),
    /// The path of a thread in a window.
    Thread {
        /// The thread.
        tid: i64,
        /// Begin of the window; `None`: of the thread's recorded time.
        from_ns: Option<i64>,
        /// End of the window; `None`: of the thread's recorded time.
        until_ns: Option<i64>,
    },
}

/// A segment of a path.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // The columns, which sql/functions/critical_path.sql documents.
pub struct PathRow {
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub depth: i64,
    pub tid: i64,
    pub comm: Option<String>,
    pub pid: Option<i64>,
    pub process: Option<String>,
    pub state: &'static str,
    pub reason: Option<String>,
    pub syscall: Option<String>,
    pub rid: Option<i64>,
    pub path: Option<String>,
    pub culprit_kind: Option<&'static str>,
    pub culprit: Option<String>,
    pub culprit_tid: Option<i64>,
    pub block_ts_ns: Option<i64>,
    pub block_device: Option<String>,
    pub block_op: Option<String>,
    pub block_bytes: Option<i64>,
    pub block_path: Option<String>,
    pub block_part: Option<&'static str>,
    pub because_tid: Option<i64>,
    pub because_reason: Option<String>,
    pub because_syscall: Option<String>,
    pub because_rid: Option<i64>,
}

pub(crate) fn create(connection: &Connection) -> duckdb::Result<()> {
    connection.execute_batch(SQL)
}

/// The different calls of the function in a statement's parse tree.
pub(crate) fn calls(tree: &Value) -> Result<BTreeSet<PathCall>, QueryError> {
    let mut found = BTreeSet::new();
    collect(tree, &mut found)?;
    if found.len() > MOST {
        return Err(QueryError::CriticalPath(format!(
            "the statement asks for {} critical paths, and at most {MOST} are computed for one: \
             ask for fewer",
            found.len()
        )));
    }
    Ok(found)
}

fn collect(node: &Value, found: &mut BTreeSet<PathCall>) -> Result<(), QueryError> {
    match node {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, found)),
        Value::Object(members) => {
            if node.get("type").and_then(Value::as_str) == Some("TABLE_FUNCTION")
                && let Some(function) = members.get("function")
                && let Some(name) = function.get("function_name").and_then(Value::as_str)
                && name.eq_ignore_ascii_case(NAME)
            {
                found.insert(call(function)?);
            }
            members.values().try_for_each(|value| collect(value, found))
        }
        _ => Ok(()),
    }
}

/// The arguments of one call.
fn call(function: &Value) -> Result<PathCall, QueryError> {
    let wrong = |why: String| {
        QueryError::CriticalPath(format!("{why}; the function has the forms {FORMS}"))
    };
    let arguments = function.get("children").and_then(Value::as_array);
    let arguments = arguments.map_or(&[][..], Vec::as_slice);
    let names: &[&str] = match arguments.len() {
        1 => &["rid"],
        3 => &["tid", "from_ns", "until_ns"],
        n => return Err(wrong(format!("{NAME} has {n} arguments"))),
    };
    let mut values = [None; 3];
    for (position, argument) in arguments.iter().enumerate() {
        let alias = argument.get("alias").and_then(Value::as_str);
        let at = match alias.filter(|alias| !alias.is_empty()) {
            None => position,
            Some(alias) => names
                .iter()
                .position(|name| name.eq_ignore_ascii_case(alias))
                .ok_or_else(|| wrong(format!("{NAME} has no argument {}", escape::text(alias))))?,
        };
        let name = names.get(at).copied().unwrap_or_default();
        let value = constant(argument).ok_or_else(|| {
            wrong(format!(
                "argument {name} of {NAME} is not a whole number: columns, subqueries and \
                 expressions are not possible there, because the path is computed before the \
                 statement runs"
            ))
        })?;
        match values.get_mut(at) {
            Some(slot @ None) => *slot = Some(value),
            _ => return Err(wrong(format!("argument {name} of {NAME} is given twice"))),
        }
    }
    let [first, second, third] = values.map(Option::flatten);
    match (first, names.len()) {
        (Some(rid), 1) => Ok(PathCall::Request(rid)),
        (Some(tid), _) => Ok(PathCall::Thread {
            tid,
            from_ns: second,
            until_ns: third,
        }),
        (None, _) => Err(wrong(format!(
            "argument {} of {NAME} is null",
            names.first().copied().unwrap_or_default()
        ))),
    }
}

/// The whole number that an expression is, or null; `None` if it is neither.
fn constant(expression: &Value) -> Option<Option<i64>> {
    match expression.get("type")?.as_str()? {
        "VALUE_CONSTANT" => {
            let value = expression.get("value")?;
            if value.get("is_null")?.as_bool()? {
                return Some(None);
            }
            let id = value.get("type")?.get("id")?.as_str()?;
            match id {
                "INTEGER" | "BIGINT" => Some(Some(value.get("value")?.as_i64()?)),
                _ => None,
            }
        }
        "OPERATOR_CAST" => {
            let to = expression.get("cast_type")?.get("id")?.as_str()?;
            match to {
                "INTEGER" | "BIGINT" => constant(expression.get("child")?),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Forgets the rows of all paths.
pub(crate) fn clear(connection: &Connection) -> duckdb::Result<()> {
    connection.execute_batch("DELETE FROM critical_paths.segments")
}

/// Adds the rows of a path.
pub(crate) fn add(connection: &Connection, call: PathCall, rows: &[PathRow]) -> duckdb::Result<()> {
    let (of_rid, of_tid, of_from_ns, of_until_ns) = match call {
        PathCall::Request(rid) => (Some(rid), None, None, None),
        PathCall::Thread {
            tid,
            from_ns,
            until_ns,
        } => (None, Some(tid), from_ns, until_ns),
    };
    let mut appender = connection.appender_to_db(TABLE, "critical_paths")?;
    for row in rows {
        appender.append_row(params![
            of_rid,
            of_tid,
            of_from_ns,
            of_until_ns,
            row.ts_ns,
            row.dur_ns,
            row.depth,
            row.tid,
            row.comm,
            row.pid,
            row.process,
            row.state,
            row.reason,
            row.syscall,
            row.rid,
            row.path,
            row.culprit_kind,
            row.culprit,
            row.culprit_tid,
            row.block_ts_ns,
            row.block_device,
            row.block_op,
            row.block_bytes,
            row.block_path,
            row.block_part,
            row.because_tid,
            row.because_reason,
            row.because_syscall,
            row.because_rid,
        ])?;
    }
    appender.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::PathCall;
    use crate::{Db, QueryError, db};

    fn thread(tid: i64, from_ns: Option<i64>, until_ns: Option<i64>) -> PathCall {
        PathCall::Thread {
            tid,
            from_ns,
            until_ns,
        }
    }

    fn calls(db: &Db, sql: &str) -> Vec<PathCall> {
        let checked = db.check(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        checked.paths.into_iter().collect()
    }

    #[test]
    fn calls_are_found_wherever_they_are() {
        let db = db::empty().unwrap();
        let one = [PathCall::Request(5)];
        for sql in [
            "FROM critical_path(5)",
            "SELECT * FROM Critical_Path(5::BIGINT) AS p",
            "FROM main.critical_path(rid := 5)",
            "EXPLAIN FROM critical_path(5)",
            "DESCRIBE FROM critical_path(5)",
            "SUMMARIZE FROM critical_path(5)",
            "SELECT (SELECT sum(dur_ns) FROM critical_path(5))",
            "WITH p AS (FROM critical_path(5)) SELECT * FROM p",
            "WITH p AS MATERIALIZED (FROM critical_path(5)) SELECT 1 UNION ALL SELECT 2 FROM p",
            "SELECT * FROM syscalls s JOIN critical_path(5) p ON p.rid = s.rid",
            "SELECT * FROM critical_path(5), critical_path(5) q",
            "SELECT rid FROM syscalls WHERE rid IN (SELECT rid FROM critical_path(5))",
        ] {
            assert_eq!(calls(&db, sql), one, "{sql}");
        }
        let both = "SELECT 1 FROM critical_path(7) UNION ALL SELECT 2 FROM critical_path(-5)";
        assert_eq!(
            calls(&db, both),
            [PathCall::Request(-5), PathCall::Request(7)]
        );
        for (sql, expected) in [
            ("FROM critical_path(9, NULL, NULL)", thread(9, None, None)),
            (
                "FROM critical_path(9, 55985612886120, NULL::BIGINT)",
                thread(9, Some(55_985_612_886_120), None),
            ),
            (
                "FROM critical_path(until_ns := 3, tid := 9, from_ns := NULL)",
                thread(9, None, Some(3)),
            ),
        ] {
            assert_eq!(calls(&db, sql), [expected], "{sql}");
        }
    }

    #[test]
    fn text_comments_and_other_names_are_no_calls() {
        let db = db::empty().unwrap();
        for sql in [
            "SELECT 'FROM critical_path(5)'",
            "SELECT 1 -- FROM critical_path(5)",
            "SELECT 1 /* FROM critical_path(x) */",
            "SELECT $$critical_path(5)$$",
            "WITH critical_path AS (SELECT 1) FROM critical_path",
            "SELECT 1 AS critical_path",
        ] {
            assert!(calls(&db, sql).is_empty(), "{sql}");
        }
    }

    #[test]
    fn arguments_that_are_no_constants_are_errors() {
        let db = db::empty().unwrap();
        for (sql, expected) in [
            ("FROM syscalls s, critical_path(s.rid)", "argument rid"),
            (
                "FROM syscalls s, LATERAL critical_path(s.rid)",
                "argument rid",
            ),
            (
                "FROM critical_path((SELECT max(rid) FROM syscalls))",
                "argument rid",
            ),
            ("FROM critical_path($1)", "argument rid"),
            ("FROM critical_path(?)", "argument rid"),
            ("FROM critical_path(1 + 1)", "argument rid"),
            ("FROM critical_path(1.0)", "argument rid"),
            ("FROM critical_path('1')", "argument rid"),
            ("FROM critical_path(true)", "argument rid"),
            ("FROM critical_path(300::TINYINT)", "argument rid"),
            ("FROM critical_path(99999999999999999999)", "argument rid"),
            (
                "FROM critical_path(NULL)",
                "argument rid of critical_path is null",
            ),
            (
                "FROM critical_path(NULL, 1, 2)",
                "argument tid of critical_path is null",
            ),
            ("FROM critical_path(1, random(), 2)", "argument from_ns"),
            ("FROM critical_path()", "0 arguments"),
            ("FROM critical_path(1, 2)", "2 arguments"),
            ("FROM critical_path(1, 2, 3, 4)", "4 arguments"),
            ("FROM critical_path(tid := 1)", "no argument tid"),
            (
                "FROM critical_path(1, tid := 1, until_ns := 2)",
                "argument tid of critical_path is given twice",
            ),
        ] {
            let error = db.check(sql).map(|checked| checked.paths);
            match error {
                Err(QueryError::CriticalPath(text)) => {
                    assert!(text.contains(expected), "{sql}: {text}");
                    assert!(
                        text.contains("critical_path(tid, from_ns, until_ns)"),
                        "{text}"
                    );
                }
                other => panic!("{sql}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_statement_has_a_limited_number_of_paths() {
        let db = db::empty().unwrap();
        let sql = |n: i64| {
            let calls: Vec<String> = (1..=n)
                .map(|rid| format!("SELECT * FROM critical_path({rid})"))
                .collect();
            calls.join(" UNION ALL ")
        };
        assert_eq!(calls(&db, &sql(100)).len(), 100);
        let error = db.check(&sql(101)).unwrap_err().to_string();
        assert!(error.contains("asks for 101 critical paths"), "{error}");
    }

    #[test]
    fn the_table_has_the_columns_that_are_documented() {
        let db = db::empty().unwrap();
        let columns = db.columns(super::TABLE).unwrap();
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let doc = crate::views::parse_doc(super::SQL);
        let documented: Vec<&str> = doc.columns.iter().map(|(name, _)| name.as_str()).collect();
        let arguments = ["of_rid", "of_tid", "of_from_ns", "of_until_ns"];
        assert_eq!(names, [&arguments[..], &documented].concat());
    }

    #[test]
    fn without_a_worker_there_is_no_empty_answer() {
        let db = db::empty().unwrap();
        let error = db.query("FROM critical_path(5)").err().unwrap();
        assert!(matches!(error, QueryError::CriticalPath(_)), "{error}");
    }
}

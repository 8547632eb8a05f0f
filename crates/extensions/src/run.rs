//! Runs rules over a session.

use std::collections::HashMap;

use fathom_diagnose::{Diagnosis, Evidence, Example, Subject, UserFinding};
use fathom_model::units::duration;
use fathom_query::QueryError;
use fathom_query::worker::{Form, Program, Statement, Worker};
use fathom_session::Session;
use serde_json::{Map, Value};

use crate::rule::{Rule, severity};
use crate::template::is_id;
use crate::{ExtensionError, Extensions};

/// Bytes of the rows of a rule at most.
const MOST_BYTES: usize = 4 << 20;
/// Examples of a finding that are shown.
const EXAMPLES: usize = 3;

/// Columns of a row that are about the finding as a whole.
const COLUMNS: [&str; 8] = [
    "severity", "cost_ns", "examples", "pid", "tid", "comm", "file_id", "path",
];

type Row = Map<String, Value>;

impl Extensions {
    /// Adds what the rules find in `session` to its diagnosis, while `wanted` returns true. A rule
    /// that fails or takes too long is noted as not checked, and the others go on.
    ///
    /// # Errors
    /// [`ExtensionError::View`] if a view is wrong, [`ExtensionError::Diagnose`].
    pub fn diagnose(
        &self,
        session: &Session,
        diagnosis: &mut Diagnosis,
        wanted: &dyn Fn() -> bool,
    ) -> Result<(), ExtensionError> {
        let mut worker = None;
        for rule in &self.rules {
            if !wanted() {
                break;
            }
            match self.run(rule, session, &mut worker) {
                Ok(found) => diagnosis.add_user_rule(session, &rule.rule, found)?,
                Err(Failed::View(error)) => return Err(error.into()),
                Err(Failed::Rule(reason)) => diagnosis.add_unchecked(&rule.rule, reason),
            }
        }
        Ok(())
    }

    fn run(
        &self,
        rule: &Rule,
        session: &Session,
        kept: &mut Option<Worker>,
    ) -> Result<Vec<UserFinding>, Failed> {
        if kept.as_mut().is_none_or(|worker| !worker.is_usable()) {
            let mut worker = Worker::start(&Program::itself(), self.limits.clone())?;
            worker.open(session.dir(), &self.views)?;
            *kept = Some(worker);
        }
        let Some(worker) = kept else {
            return Ok(Vec::new());
        };
        // The columns are known before there is a row, so a wrong name is found in any session.
        let columns = rows(worker, format!("DESCRIBE {}", rule.sql))?;
        let name = |row: &Row| Some(row.get("column_name")?.as_str()?.to_owned());
        let columns: Vec<String> = columns.iter().filter_map(name).collect();
        for name in rule.title.columns().chain(rule.advice.columns()) {
            if !columns.iter().any(|column| column == name) {
                return Err(Failed::Rule(format!(
                    "its text has {{{name}}}, and its SQL returns no such column: {}",
                    columns.join(", ")
                )));
            }
        }
        let rows = rows(worker, rule.sql.clone())?;
        let examples = examples(worker, &rows)?;
        let finding = |row: &Row| finding(rule, row, &columns, &examples).map_err(Failed::Rule);
        rows.iter().map(finding).collect()
    }
}

/// Why a rule has no findings.
enum Failed {
    /// Views are for all rules.
    View(QueryError),
    /// The reason.
    Rule(String),
}

impl From<QueryError> for Failed {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::View { .. } => Self::View(error),
            QueryError::TimeLimit(time) => {
                let ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
                Self::Rule(format!("its SQL took longer than {}", duration(ns)))
            }
            QueryError::Output(_) => Self::Rule(format!(
                "its rows have more than {} MiB; return one row per finding, and three examples each",
                MOST_BYTES >> 20
            )),
            // One line: it is an entry of a list.
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().collect();
                Self::Rule(format!("its SQL failed: {}", words.join(" ")))
            }
        }
    }
}

fn rows(worker: &mut Worker, sql: String) -> Result<Vec<Row>, QueryError> {
    let statement = Statement {
        sql,
        form: Form::LINES,
        findings: None,
        refresh: false,
    };
    let mut bytes = Vec::new();
    worker.query(statement, |more| {
        bytes.extend_from_slice(more);
        match bytes.len() > MOST_BYTES {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    })?;
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let rows = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
    rows.map_err(|e| QueryError::Worker(e.to_string()))
}

/// Requests in column `examples`: a number or a list of numbers.
fn rids(row: &Row) -> impl Iterator<Item = i64> {
    let list = match row.get("examples") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_i64).take(EXAMPLES)
}

fn examples(worker: &mut Worker, found: &[Row]) -> Result<HashMap<i64, Example>, QueryError> {
    let wanted: Vec<String> = found
        .iter()
        .flat_map(rids)
        .map(|rid| rid.to_string())
        .collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let calls = rows(
        worker,
        format!(
            "SELECT rid, ts_ns, coalesce(dur_ns, 0) AS dur_ns, tid, syscall, path, file_offset, ret \
             FROM syscalls WHERE rid IN ({})",
            wanted.join(", ")
        ),
    )?;
    let example = |row: &Row| {
        let number = |name: &str| row.get(name).and_then(Value::as_i64);
        let text = |name: &str| row.get(name).and_then(Value::as_str);
        let rid = number("rid")?;
        let example = Example {
            rid,
            ts_ns: number("ts_ns")?,
            dur_ns: number("dur_ns")?,
            tid: i32::try_from(number("tid")?).ok()?,
            syscall: text("syscall")?.into(),
            path: text("path").map(Into::into),
            offset: number("file_offset"),
            ret: number("ret"),
        };
        Some((rid, example))
    };
    Ok(calls.iter().filter_map(example).collect())
}

fn finding(
    rule: &Rule,
    row: &Row,
    columns: &[String],
    examples: &HashMap<i64, Example>,
) -> Result<UserFinding, String> {
    let value = |name: &str| row.get(name).filter(|value| !value.is_null());
    let text = |name: &str| value(name).and_then(Value::as_str);
    let id = |name: &str| value(name).and_then(Value::as_i64);
    let own = value("severity").map(|value| {
        let known = value.as_str().and_then(severity);
        known.ok_or_else(|| format!("its column severity is {value}, not low, medium, or high"))
    });
    let cost_ns = value("cost_ns").map(|value| {
        let whole = value
            .as_i64()
            .or_else(|| value.as_f64().map(|ns| ns as i64));
        whole
            .filter(|ns| *ns >= 0)
            .ok_or_else(|| format!("its column cost_ns is {value}, no number of nanoseconds"))
    });
    // Everything else that is a quantity; its unit is the end of its name.
    let evidence = columns.iter().filter_map(|name| {
        let quantity = !COLUMNS.contains(&name.as_str()) && !is_id(name);
        let value = row.get(name)?.as_f64().filter(|_| quantity)?;
        let name = name.clone().into();
        Some(Evidence { name, value })
    });
    let of_task = |name: &str| id(name).and_then(|id| i32::try_from(id).ok());
    Ok(UserFinding {
        severity: own.transpose()?.or(rule.severity),
        cost_ns: cost_ns.transpose()?,
        title: rule.title.fill(row),
        subject: Subject {
            pid: of_task("pid"),
            tid: of_task("tid"),
            comm: text("comm").map(str::to_owned),
            file_id: id("file_id"),
            path: text("path").map(str::to_owned),
        },
        evidence: evidence.collect(),
        examples: rids(row)
            .filter_map(|rid| examples.get(&rid).cloned())
            .collect(),
        advice: rule.advice.fill(row),
    })
}

#[cfg(test)]
mod tests;

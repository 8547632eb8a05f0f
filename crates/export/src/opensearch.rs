//! Findings and the slowest requests as documents of OpenSearch: the lines of its `_bulk` API, an action
//! and a document in turn.
//!
//! The id of a document follows from the session, so that sending it again replaces it. `deploy/opensearch/index-template.json`
//! has the types of the fields.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use fathom_model::meta::{SessionMeta, State};
use fathom_model::units;
use fathom_query::Db;
use fathom_query::escape::shell_words;
use fathom_query::fetch::{self, Row};
use serde_json::Value;

use crate::error::{ExportError, Result};
use crate::json::{Object, string};
use crate::source::check_condition;
use crate::{Outcome, Selection, counted, covered, time};

/// Calls, and spans, that become documents at most: the slowest ones.
const SLOWEST: usize = 1000;

/// Longer texts are not in the index (`ignore_above` in the template), and every document repeats the command.
const COMMAND_MAX: usize = 8191;

/// Longest id of a session; fathom makes ids of 32 hexadecimal digits.
const ID_MAX: usize = 128;

const SESSIONS: &str = "fathom-sessions";

/// Nanoseconds by layer.
type Layers = BTreeMap<String, i64>;

/// The calls and the time by layer of a span.
#[derive(Default)]
struct Inside {
    calls: i64,
    layers: Layers,
}

/// Writes the documents. The findings are the rows of table `findings`.
pub(crate) fn write(
    db: &Db,
    meta: &SessionMeta,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    check_condition(db, selection)?;
    check_id(meta)?;
    let mut documents = Documents::new(meta, out);
    let findings = documents.findings(db)?;
    documents.session(db, findings)?;
    let calls = documents.calls(db, selection)?;
    let spans = documents.spans(db, selection)?;
    documents.out.flush()?;
    progress(documents.written, documents.written);
    let mut notes = Vec::new();
    for (all, one, many) in [
        (calls, "call is", "calls are"),
        (spans, "span is", "spans are"),
    ] {
        let left = all.saturating_sub(SLOWEST as u64);
        if left > 0 {
            let left = counted(left, one, many);
            let kept = units::count(SLOWEST as i64);
            notes.push(format!("{left} left out: not among the {kept} slowest"));
        }
    }
    Ok(Outcome {
        rows: documents.written,
        notes,
    })
}

struct Documents<'a> {
    meta: &'a SessionMeta,
    out: &'a mut dyn Write,
    /// Fields that every document has. The document of the session has the whole command.
    command: Option<String>,
    labels: String,
    redacted: bool,
    /// From times of the session to the wall clock, nanoseconds.
    wall_ns: i64,
    text: String,
    written: u64,
}

impl<'a> Documents<'a> {
    fn new(meta: &'a SessionMeta, out: &'a mut dyn Write) -> Self {
        let mut labels = String::new();
        for (key, value) in &meta.labels {
            if !labels.is_empty() {
                labels.push(',');
            }
            string(&format!("{key}={value}"), &mut labels);
        }
        let clock = &meta.clock;
        Self {
            meta,
            out,
            command: (!meta.command.is_empty()).then(|| shell_words(&meta.command)),
            labels,
            redacted: !meta.history.redacted.is_empty(),
            wall_ns: clock
                .start_realtime_ns
                .saturating_sub(clock.start_monotonic_ns),
            text: String::new(),
            written: 0,
        }
    }

    /// Writes the document `id` of the session, of a time of the session.
    fn add(
        &mut self,
        index: &str,
        id: &str,
        ts_ns: i64,
        fill: impl FnOnce(&mut Object<'_>) -> Result<()>,
    ) -> Result<()> {
        self.text.clear();
        let id = format!("{}{id}", self.meta.id);
        action(index, &id, &mut self.text);
        let mut o = Object::begin(&mut self.text);
        let wall_ns = ts_ns.saturating_add(self.wall_ns).max(0);
        o.text("@timestamp", Some(&time::of_day(wall_ns)));
        o.text("session", Some(&self.meta.id));
        o.text("host", known(&self.meta.host.name));
        let command = self.command.as_deref();
        let whole = index == SESSIONS;
        o.text(
            "command",
            command.map(|c| if whole { c } else { beginning(c) }),
        );
        o.list("labels", &self.labels);
        if self.redacted {
            o.truth("redacted", true);
        }
        fill(&mut o)?;
        o.end();
        self.text.push('\n');
        self.out.write_all(self.text.as_bytes())?;
        self.written += 1;
        Ok(())
    }

    /// One document per finding; returns how many there are.
    fn findings(&mut self, db: &Db) -> Result<u64> {
        let sql = "SELECT rule, severity, if(correctness, 'correctness', 'performance') AS kind,
                confidence, cost_ns, title, subject, pid, tid, comm, path, evidence,
                array_to_string(examples, ',') AS examples, advice, query, page, caveats
            FROM findings";
        let start = self.meta.clock.start_monotonic_ns;
        let mut numbers: HashMap<String, u64> = HashMap::new();
        let mut found: u64 = 0;
        fetch::each(db, sql, |row| {
            found += 1;
            let rule = row.text("rule")?;
            let number = numbers.entry(rule.clone()).or_default();
            *number += 1;
            let id = format!("-{rule}-{number}");
            let rank = i64::try_from(found).ok();
            let mut page = row.text("page")?;
            let mut query = row.get::<Option<String>>("query")?;
            if page != format!("rules/{rule}.md") {
                // A rule of the user's: its file is where the user keeps rules, and its SQL is the user's.
                page = file_name(&page);
                query = query.filter(|_| !self.redacted);
            }
            self.add("fathom-findings", &id, start, |o| {
                o.text("rule", Some(&rule));
                o.int("rank", rank);
                o.text("group", Some(&row.text("kind")?));
                for name in ["severity", "confidence", "title", "subject"] {
                    o.text(name, Some(&row.text(name)?));
                }
                for name in ["cost_ns", "pid", "tid"] {
                    o.int(name, row.get(name)?);
                }
                for name in ["comm", "path", "advice", "caveats"] {
                    o.text(name, row.get::<Option<String>>(name)?.as_deref());
                }
                o.text("query", query.as_deref());
                o.text("page", known(&page));
                o.list("example_rids", &row.text("examples")?);
                evidence(&row.text("evidence")?, o)
            })
        })?;
        Ok(found)
    }

    /// The document of the session itself.
    fn session(&mut self, db: &Db, findings: u64) -> Result<()> {
        let counts = counts(db, self.meta)?;
        let meta = self.meta;
        let clock = &meta.clock;
        let start = clock.start_monotonic_ns;
        let signed = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
        self.add(SESSIONS, "", start, |o| {
            let state = match meta.state {
                State::Recording => "recording",
                State::Complete => "complete",
            };
            o.text("state", Some(state));
            o.text("target", known(&meta.target));
            o.int("exit_status", meta.exit_status.map(i64::from));
            let end = clock.end_monotonic_ns;
            o.int("dur_ns", end.map(|end| end.saturating_sub(start)));
            o.text("kernel", known(&meta.host.kernel));
            o.text("arch", known(&meta.host.arch));
            o.text("distribution", known(&meta.host.distribution));
            o.int("cpus", Some(i64::from(meta.host.cpus)));
            o.int("memory_bytes", signed(meta.host.memory_bytes));
            for (name, calls) in counts {
                o.int(name, Some(calls));
            }
            o.int("findings", signed(findings));
            o.text("fathom_version", Some(&meta.fathom_version));
            Ok(())
        })
    }

    /// The slowest calls, each with its time by layer; returns how many calls there are.
    fn calls(&mut self, db: &Db, selection: &Selection) -> Result<u64> {
        let calls = format!(
            "(SELECT rid, dur_ns FROM (SELECT * FROM syscalls WHERE {}) WHERE dur_ns IS NOT NULL)",
            selection.sql()
        );
        let slowest = format!("SELECT rid FROM {calls} ORDER BY dur_ns DESC, rid LIMIT {SLOWEST}");
        let slowest = fetch::rows(db, &slowest, |row| row.int("rid"))?;
        if slowest.is_empty() {
            return Ok(0);
        }
        let slowest: Vec<String> = slowest.iter().map(i64::to_string).collect();
        let slowest = slowest.join(", ");
        let layers = layers_of_calls(db, &slowest)?;
        let sql = format!(
            "SELECT rid, ts_ns, dur_ns, pid, tid, comm, syscall, class, path, file_offset, size, bytes, ret, errno
            FROM syscalls WHERE rid IN ({slowest}) ORDER BY dur_ns DESC, rid"
        );
        fetch::each(db, &sql, |row| {
            let rid = row.int("rid")?;
            let dur_ns = row.int("dur_ns")?;
            self.add(
                "fathom-requests",
                &format!("-{rid}"),
                row.int("ts_ns")?,
                |o| {
                    o.text("kind", Some("call"));
                    o.text("name", Some(&row.text("syscall")?));
                    for name in [
                        "rid",
                        "dur_ns",
                        "pid",
                        "tid",
                        "file_offset",
                        "size",
                        "bytes",
                        "ret",
                    ] {
                        o.int(name, row.get(name)?);
                    }
                    for name in ["comm", "class", "path", "errno"] {
                        o.text(name, row.get::<Option<String>>(name)?.as_deref());
                    }
                    match layers.get(&rid) {
                        Some(layers) => layer_times(layers, o),
                        // Of a call without events below it all time is its own.
                        None => layer_times(&[("syscall".to_owned(), dur_ns)].into(), o),
                    }
                    Ok(())
                },
            )
        })?;
        count(db, &calls)
    }

    /// The slowest spans, each with its calls and its time by layer; returns how many spans there
    /// are.
    fn spans(&mut self, db: &Db, selection: &Selection) -> Result<u64> {
        let spans = format!(
            "(SELECT * FROM spans WHERE dur_ns IS NOT NULL AND {})",
            selection.window()
        );
        let all = count(db, &spans)?;
        if all == 0 {
            return Ok(0);
        }
        let slowest = format!(
            "SELECT * FROM {spans} ORDER BY dur_ns DESC, trace_id, span_id LIMIT {SLOWEST}"
        );
        let inside = inside_of_spans(db, &slowest)?;
        let in_calls = covered::in_calls(db, &slowest)?;
        let sql = format!(
            "SELECT trace_id, span_id, parent_span_id, ts_ns, dur_ns, pid, tid, service, name, kind, status,
                status_message, source
            FROM ({slowest}) ORDER BY dur_ns DESC, trace_id, span_id"
        );
        let nothing = Inside::default();
        fetch::each(db, &sql, |row| {
            let (trace, span) = (row.text("trace_id")?, row.text("span_id")?);
            let dur_ns = row.int("dur_ns")?;
            let id = format!("-{trace}-{span}");
            let key = (trace, span);
            let in_calls = in_calls.get(&key).copied().unwrap_or(0);
            let inside = inside.get(&key).unwrap_or(&nothing);
            self.add("fathom-requests", &id, row.int("ts_ns")?, |o| {
                o.text("kind", Some("span"));
                for name in ["dur_ns", "pid", "tid"] {
                    o.int(name, row.get(name)?);
                }
                for name in [
                    "name",
                    "service",
                    "trace_id",
                    "span_id",
                    "parent_span_id",
                    "status",
                    "status_message",
                    "source",
                ] {
                    o.text(name, row.get::<Option<String>>(name)?.as_deref());
                }
                o.text("span_kind", Some(&row.text("kind")?));
                o.int("calls", Some(inside.calls));
                let mut layers = inside.layers.clone();
                layers.insert("outside".to_owned(), dur_ns.saturating_sub(in_calls).max(0));
                layer_times(&layers, o);
                Ok(())
            })
        })?;
        Ok(all)
    }
}

/// Whether the id of the session is one that can be part of the ids of documents.
pub(crate) fn check_id(meta: &SessionMeta) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match meta.id.chars().all(plain) && (1..=ID_MAX).contains(&meta.id.len()) {
        true => Ok(()),
        false => Err(ExportError::Id),
    }
}

/// The calls of the session by what became of them, as table `session` has them: while the session is being recorded,
/// its metadata is older than its rows.
fn counts(db: &Db, meta: &SessionMeta) -> Result<Vec<(&'static str, i64)>> {
    let sql = "SELECT seen, stored, lost FROM session";
    let told = fetch::rows(db, sql, |row| {
        ["seen", "stored", "lost"]
            .into_iter()
            .map(|name| Ok((name, row.int(name)?)))
            .collect::<std::result::Result<Vec<_>, _>>()
    })?;
    let mut counts = told.into_iter().next().unwrap_or_default();
    let totals = &meta.totals;
    let others = [
        ("expired", totals.expired),
        ("counted", totals.counted),
        ("missing", totals.missing),
    ];
    let others = others.map(|(name, calls)| (name, i64::try_from(calls).unwrap_or(i64::MAX)));
    // They are of another moment if the sum is wrong.
    let sum = |calls: &[(&str, i64)]| calls.iter().fold(0, |a: i64, b| a.saturating_add(b.1));
    if let [(_, seen), accounted @ ..] = &counts[..]
        && *seen == sum(accounted).saturating_add(sum(&others))
    {
        counts.extend(others);
    }
    Ok(counts)
}

/// The name of the file at a path.
fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// As much of a text as an index holds, which counts characters of UTF-16.
fn beginning(text: &str) -> &str {
    let mut length = 0;
    let end = text.char_indices().find(|(_, c)| {
        length += c.len_utf16();
        length > COMMAND_MAX
    });
    let end = end.and_then(|(at, _)| text.get(..at));
    end.unwrap_or(text)
}

/// An empty text is one that is not known.
fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn count(db: &Db, rows: &str) -> Result<u64> {
    let numbers = fetch::rows(db, &format!("SELECT count(*) AS n FROM {rows}"), |row| {
        row.int("n")
    })?;
    let number = numbers.first().copied().unwrap_or(0);
    Ok(u64::try_from(number).unwrap_or(0))
}

/// The line before a document: it replaces the one with this id.
pub(crate) fn action(index: &str, id: &str, out: &mut String) {
    let mut action = Object::begin(out);
    let mut place = action.object("index");
    place.text("_index", Some(index));
    place.text("_id", Some(id));
    place.end();
    action.end();
    out.push('\n');
}

fn layer_times(layers: &Layers, o: &mut Object<'_>) {
    let mut times = o.object("layer_ns");
    for (layer, ns) in layers {
        times.int(layer, Some(*ns));
    }
    times.end();
}

/// The numbers behind a finding, a JSON object.
fn evidence(json: &str, o: &mut Object<'_>) -> Result<()> {
    let Ok(Value::Object(numbers)) = serde_json::from_str(json) else {
        return Err(ExportError::Column("evidence"));
    };
    let mut evidence = o.object("evidence");
    for (name, value) in &numbers {
        if let Value::Number(number) = value {
            evidence.number(name, number);
        }
    }
    evidence.end();
    Ok(())
}

/// The time by layer of the calls `slowest`; a call without visits of layers is left out.
fn layers_of_calls(db: &Db, slowest: &str) -> Result<HashMap<i64, Layers>> {
    let sql = format!(
        "SELECT rid, layer, bounded(sum(self_ns)) AS self_ns
        FROM slices WHERE rid IN ({slowest}) GROUP BY rid, layer"
    );
    let mut calls: HashMap<i64, Layers> = HashMap::new();
    fetch::each(db, &sql, |row| {
        let layers = calls.entry(row.int("rid")?).or_default();
        layers.insert(row.text("layer")?, row.int("self_ns")?);
        Ok::<_, ExportError>(())
    })?;
    Ok(calls)
}

/// The calls, and their time by layer, of the spans that `slowest` answers. A call counts for its
/// innermost span, as in view by_span_layer.
fn inside_of_spans(db: &Db, slowest: &str) -> Result<HashMap<(String, String), Inside>> {
    let sql = format!(
        "WITH own AS (
            SELECT rid, trace_id, span_id FROM span_calls SEMI JOIN ({slowest}) USING (trace_id, span_id)
        )
        SELECT trace_id, span_id, NULL::VARCHAR AS layer, count(*) AS value FROM own
        GROUP BY trace_id, span_id
        UNION ALL
        SELECT trace_id, span_id, layer, bounded(sum(self_ns)) FROM own JOIN all_slices USING (rid)
        GROUP BY trace_id, span_id, layer"
    );
    let mut spans: HashMap<(String, String), Inside> = HashMap::new();
    fetch::each(db, &sql, |row: Row<'_>| {
        let of = (row.text("trace_id")?, row.text("span_id")?);
        let inside = spans.entry(of).or_default();
        let value = row.int("value")?;
        match row.get::<Option<String>>("layer")? {
            None => inside.calls = value,
            Some(layer) => {
                inside.layers.insert(layer, value);
            }
        }
        Ok::<_, ExportError>(())
    })?;
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(meta: &SessionMeta, index: &str, ts_ns: i64) -> Value {
        let mut out = Vec::new();
        let mut documents = Documents::new(meta, &mut out);
        documents.add(index, "-1", ts_ns, |_| Ok(())).unwrap();
        let text = String::from_utf8(out).unwrap();
        serde_json::from_str(text.lines().nth(1).unwrap()).unwrap()
    }

    #[test]
    fn times_of_a_damaged_session_are_the_last_there_are() {
        let mut meta = fathom_testkit::meta();
        meta.clock.start_realtime_ns = 1_700_000_000_000_000_000;
        meta.clock.start_monotonic_ns = 5;
        let at = |ts_ns| document(&meta, "fathom-requests", ts_ns)["@timestamp"].clone();
        assert_eq!(at(6), "2023-11-14T22:13:20.000000001Z");
        assert_eq!(at(i64::MAX), "2262-04-11T23:47:16.854775807Z");
        assert_eq!(at(i64::MIN), "1970-01-01T00:00:00.000000000Z");
    }

    #[test]
    fn documents_have_the_beginning_of_the_command() {
        let mut meta = fathom_testkit::meta();
        meta.command = vec!["a".repeat(10_000)];
        let length = |index| document(&meta, index, 0)["command"].as_str().unwrap().len();
        assert_eq!(length("fathom-requests"), COMMAND_MAX);
        assert_eq!(length(SESSIONS), 10_000);
        assert_eq!(document(&meta, SESSIONS, 0).get("redacted"), None);
        meta.history.redacted = "{}".into();
        assert_eq!(document(&meta, SESSIONS, 0)["redacted"], true);
    }

    #[test]
    fn ids_of_other_makers_are_refused() {
        let mut meta = fathom_testkit::meta();
        let mut check = |id: &str| {
            meta.id = id.to_owned();
            check_id(&meta).is_ok()
        };
        assert!(check("0123456789abcdef0123456789abcdef") && check(&"a-Z0".repeat(32)));
        let long = "a".repeat(129);
        for id in ["", "a/b", "a b", "é", "a\"", "a\n", "../x", long.as_str()] {
            assert!(!check(id), "{id}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(beginning("short"), "short");
        assert_eq!(beginning(&"é".repeat(9000)), "é".repeat(COMMAND_MAX));
        // Two characters of UTF-16 each.
        assert_eq!(
            beginning(&"\u{1f600}".repeat(9000)),
            "\u{1f600}".repeat(COMMAND_MAX / 2)
        );
        let whole = "a".repeat(COMMAND_MAX);
        assert_eq!(beginning(&whole), whole);
    }
}

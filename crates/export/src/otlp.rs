//! Spans as OTLP: lines of JSON, each an `ExportTraceServiceRequest`, as the collector's file
//! exporter writes them.
//!
//! The spans are the session's own, and below them the calls that they made, and below each call its
//! visits of the layers of the kernel (table `slices`). Ids of calls and visits follow from the
//! session's id, so that a second export has the same.

use std::io::Write;

use fathom_model::ids::spread;
use fathom_model::meta::SessionMeta;
use fathom_query::Db;
use fathom_query::fetch::{self, Row};
use serde_json::Value;

use crate::error::Result;
use crate::json::{Object, string};
use crate::source::{check_condition, windows};
use crate::{Outcome, Selection, counted};

/// Spans of a line, at most.
const LINE: usize = 500;

pub(crate) fn write(
    db: &Db,
    meta: &SessionMeta,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    check_condition(db, selection)?;
    let mut lines = Lines::new(meta, out);
    let spans = format!(
        "SELECT trace_id, span_id, parent_span_id, ts_ns, dur_ns, pid, tid, service, name, kind, status,
            status_message, attributes
        FROM spans WHERE dur_ns IS NOT NULL AND {} ORDER BY service, pid, ts_ns",
        selection.window()
    );
    let written = each(db, &spans, |row| lines.span(row))?;
    lines.flush()?;
    let calls = format!("SELECT ts_ns FROM syscalls WHERE {}", selection.sql());
    let total = count(db, &format!("SELECT count(*) AS n FROM ({calls})"))?;
    let (mut inside, mut rows) = (0, written);
    if written > 0 {
        for window in windows(db, &calls)? {
            inside += each(db, &parts(selection, window.start, window.end), |row| {
                rows += 1;
                lines.part(row)
            })?;
            lines.flush()?;
            progress(rows, total);
        }
    }
    let outside = total.saturating_sub(lines.calls);
    lines.out.flush()?;
    let mut notes = Vec::new();
    if written == 0 {
        notes.push(
            "the session has no spans in this time: record with --spans, or import them".to_owned(),
        );
    } else if outside > 0 {
        notes.push(format!(
            "{} left out: no span is known to contain them",
            counted(outside, "call is", "calls are")
        ));
    }
    Ok(Outcome {
        rows: written + inside,
        notes,
    })
}

/// The calls in spans that began in a window, each before its visits of layers.
fn parts(selection: &Selection, from_ns: i64, until_ns: i64) -> String {
    format!(
        "WITH own AS (
            SELECT rid, trace_id, span_id, service, pid, tid FROM span_calls
            WHERE trace_id IS NOT NULL AND ts_ns >= {from_ns} AND ts_ns < {until_ns}
        ), chosen AS (
            SELECT * FROM syscalls
            WHERE ts_ns >= {from_ns} AND ts_ns < {until_ns} AND {}
        )
        SELECT * FROM (SELECT own.*, 0::BIGINT AS depth, c.syscall AS name, NULL::VARCHAR AS layer, c.ts_ns,
            coalesce(c.dur_ns, 0) AS dur_ns, c.path, c.file_offset, c.size, c.bytes, c.errno,
            call_failed(c.syscall, c.errno)::INTEGER::BIGINT AS failed
        FROM chosen AS c JOIN own USING (rid)
        UNION ALL
        SELECT own.*, s.depth::BIGINT, s.name, s.layer, s.ts_ns, s.dur_ns, NULL, NULL, NULL, NULL, NULL, 0
        FROM slices AS s JOIN own USING (rid) JOIN (SELECT rid FROM chosen) USING (rid)
        WHERE s.depth > 0)
        ORDER BY service, pid, rid, layer IS NOT NULL, ts_ns, depth",
        selection.sql()
    )
}

/// Calls `take` with each row; returns how many there were.
fn each(db: &Db, sql: &str, mut take: impl FnMut(&Row<'_>) -> Result<()>) -> Result<u64> {
    let mut rows = 0;
    fetch::each(db, sql, |row| {
        rows += 1;
        take(&row)
    })?;
    Ok(rows)
}

fn count(db: &Db, sql: &str) -> Result<u64> {
    let numbers = fetch::rows(db, sql, |row| row.int("n"))?;
    let number = numbers.first().copied().unwrap_or(0);
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Lines that are being written: spans of one service and process in each.
struct Lines<'a> {
    out: &'a mut dyn Write,
    meta: &'a SessionMeta,
    seed: u64,
    /// The service and process of the spans in `spans`.
    of: (String, Option<i64>),
    /// JSON of spans, with commas between them.
    spans: String,
    count: usize,
    calls: u64,
    visits: u64,
    /// The span of the present call and of each open visit, by depth.
    open: Vec<u64>,
}

impl<'a> Lines<'a> {
    fn new(meta: &'a SessionMeta, out: &'a mut dyn Write) -> Self {
        let seed = meta.id.get(..16).unwrap_or_default();
        Self {
            out,
            meta,
            seed: u64::from_str_radix(seed, 16).unwrap_or(0),
            of: Default::default(),
            spans: String::new(),
            count: 0,
            calls: 0,
            visits: 0,
            open: Vec::new(),
        }
    }

    /// Writes the spans so far as a line.
    fn flush(&mut self) -> Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let mut line = String::from("{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
        let mut attributes = Attributes::new(&mut line);
        attributes.text(
            "service.name",
            Some(&self.of.0).filter(|name| !name.is_empty()),
        );
        attributes.int("process.pid", self.of.1);
        let host = &self.meta.host;
        attributes.text(
            "host.name",
            Some(&host.name).filter(|name| !name.is_empty()),
        );
        line.push_str("]},\"scopeSpans\":[{\"scope\":{\"name\":\"fathom\",\"version\":");
        string(&self.meta.fathom_version, &mut line);
        line.push_str("},\"spans\":[");
        line.push_str(&self.spans);
        line.push_str("]}]}]}\n");
        self.out.write_all(line.as_bytes())?;
        self.spans.clear();
        self.count = 0;
        Ok(())
    }

    /// Makes room for a span of this service and process.
    fn begin(&mut self, row: &Row<'_>) -> Result<()> {
        let of = (row.text("service")?, row.get("pid")?);
        if of != self.of || self.count >= LINE {
            self.flush()?;
            self.of = of;
        }
        if self.count > 0 {
            self.spans.push(',');
        }
        self.count += 1;
        Ok(())
    }

    fn times(meta: &SessionMeta, o: &mut Object<'_>, row: &Row<'_>) -> Result<()> {
        let (ts_ns, dur_ns) = (row.int("ts_ns")?, row.int("dur_ns")?);
        let begin = meta.clock.realtime_of(ts_ns);
        let end = begin.saturating_add(dur_ns.max(0));
        o.text("startTimeUnixNano", Some(&begin.to_string()));
        o.text("endTimeUnixNano", Some(&end.to_string()));
        Ok(())
    }

    /// A span of the application.
    fn span(&mut self, row: &Row<'_>) -> Result<()> {
        self.begin(row)?;
        let mut o = Object::begin(&mut self.spans);
        o.text("traceId", Some(&row.text("trace_id")?));
        o.text("spanId", Some(&row.text("span_id")?));
        let parent: Option<String> = row.get("parent_span_id")?;
        o.text("parentSpanId", parent.as_deref());
        o.text("name", Some(&row.text("name")?));
        o.int("kind", Some(kind(&row.text("kind")?)));
        Self::times(self.meta, &mut o, row)?;
        let code = match row.text("status")?.as_str() {
            "ok" => 1,
            "error" => 2,
            _ => 0,
        };
        let mut status = o.object("status");
        status.int("code", Some(code));
        let message: Option<String> = row.get("status_message")?;
        status.text("message", message.as_deref());
        status.end();
        let mut list = String::new();
        let mut attributes = Attributes::new(&mut list);
        attributes.int("thread.id", row.get("tid")?);
        let own: Option<String> = row.get("attributes")?;
        if let Some(Value::Object(own)) = own.and_then(|json| serde_json::from_str(&json).ok()) {
            for (name, value) in &own {
                attributes.value(name, value);
            }
        }
        o.list("attributes", &list);
        o.end();
        Ok(())
    }

    /// A call, or a visit of a layer by the call before it.
    fn part(&mut self, row: &Row<'_>) -> Result<()> {
        self.begin(row)?;
        let (rid, depth) = (row.int("rid")?, row.int("depth")?);
        let layer: Option<String> = row.get("layer")?;
        let depth = usize::try_from(depth).unwrap_or(0);
        let parent = match layer {
            None => {
                self.calls += 1;
                self.visits = 0;
                self.open.clear();
                row.text("span_id")?
            }
            Some(_) => {
                self.visits += 1;
                self.open.truncate(depth);
                let around = self.open.last().copied().unwrap_or(0);
                format!("{around:016x}")
            }
        };
        let id = spread(spread(self.seed ^ rid as u64) ^ self.visits).max(1);
        self.open.push(id);
        let mut o = Object::begin(&mut self.spans);
        o.text("traceId", Some(&row.text("trace_id")?));
        o.text("spanId", Some(&format!("{id:016x}")));
        o.text("parentSpanId", Some(&parent));
        o.text("name", Some(&row.text("name")?));
        o.int("kind", Some(kind("internal")));
        Self::times(self.meta, &mut o, row)?;
        let failed = row.int("failed")? != 0;
        let errno: Option<String> = row.get("errno")?;
        let mut status = o.object("status");
        status.int("code", Some(if failed { 2 } else { 0 }));
        status.text("message", errno.as_deref().filter(|_| failed));
        status.end();
        let mut list = String::new();
        let mut attributes = Attributes::new(&mut list);
        attributes.int("thread.id", row.get("tid")?);
        attributes.int("fathom.rid", Some(rid));
        attributes.text("fathom.layer", layer.as_ref());
        attributes.text("file.path", row.get::<Option<String>>("path")?.as_ref());
        attributes.int("fathom.file_offset", row.get("file_offset")?);
        attributes.int("fathom.requested_bytes", row.get("size")?);
        attributes.int("fathom.bytes", row.get("bytes")?);
        attributes.text("error.type", errno.as_ref());
        o.list("attributes", &list);
        o.end();
        Ok(())
    }
}

/// The number of a kind of spans in OTLP.
fn kind(name: &str) -> i64 {
    let names = [
        "unspecified",
        "internal",
        "server",
        "client",
        "producer",
        "consumer",
    ];
    let at = names.iter().position(|known| *known == name);
    at.map_or(0, |at| at as i64)
}

/// A list of attributes that is being written.
struct Attributes<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> Attributes<'a> {
    fn new(out: &'a mut String) -> Self {
        Self { out, empty: true }
    }

    fn add(&mut self, name: &str, kind: &str, write: impl FnOnce(&mut String)) {
        if !std::mem::take(&mut self.empty) {
            self.out.push(',');
        }
        self.out.push_str("{\"key\":");
        string(name, self.out);
        self.out.push_str(",\"value\":{\"");
        self.out.push_str(kind);
        self.out.push_str("\":");
        write(self.out);
        self.out.push_str("}}");
    }

    fn text(&mut self, name: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.add(name, "stringValue", |out| string(value, out));
        }
    }

    fn int(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            // JSON of protobuf has 64-bit integers as text.
            self.add(name, "intValue", |out| string(&value.to_string(), out));
        }
    }

    /// A value of an application: text, numbers, and truth values as they are, others as JSON.
    fn value(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(name, Some(text)),
            Value::Bool(yes) => self.add(name, "boolValue", |out| out.push_str(&yes.to_string())),
            Value::Number(number) if number.is_i64() => self.int(name, number.as_i64()),
            Value::Number(number) => {
                self.add(name, "doubleValue", |out| out.push_str(&number.to_string()));
            }
            Value::Null => {}
            other => self.text(name, Some(&other.to_string())),
        }
    }
}

//! Rows of table `spans` from spans of OTLP.

use fathom_model::batch::NULL_I32;
use fathom_model::meta::Clock;
use fathom_model::tables::{SpanRow, SpanRows};
use fathom_model::{Batch, StrId, StringTable};
use serde_json::{Map, Value as Json};

use crate::counts::SpanCounts;

use super::message::{AnyValue, KeyValue, Request, Resource, Span, Value};
use super::threads::Threads;

/// Bytes of the attributes of a span, and of each other text; the rest is left out.
const MAX_ATTRIBUTES: usize = 64 << 10;
const MAX_TEXT: usize = 4 << 10;

/// Column `source`.
const SOURCE: &[u8] = b"otlp";

/// Turns spans into rows.
pub(super) struct Rows {
    clock: Clock,
    start_ns: i64,
    end_ns: i64,
    threads: Threads,
    pub counts: SpanCounts,
    rows: SpanRows,
    strings: StringTable,
}

impl Rows {
    /// For a session with this clock, which is closed.
    pub fn new(clock: Clock, threads: Threads) -> Self {
        Self {
            start_ns: clock.start_monotonic_ns,
            end_ns: clock.end_monotonic_ns.unwrap_or(i64::MAX),
            clock,
            threads,
            counts: SpanCounts::default(),
            rows: SpanRows::default(),
            strings: StringTable::new(),
        }
    }

    pub fn add(&mut self, request: &Request) {
        for group in &request.resource_spans {
            let resource = Of::resource(group.resource.as_ref());
            for span in group.scope_spans.iter().flat_map(|scope| &scope.spans) {
                self.span(span, &resource);
            }
        }
    }

    /// The rows so far, which are not given again.
    pub fn take(&mut self) -> Option<Batch> {
        if self.rows.is_empty() {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        Some(rows.into_batch(std::mem::replace(&mut self.strings, StringTable::new())))
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn bytes(&self) -> usize {
        self.strings.bytes()
    }

    fn span(&mut self, span: &Span, resource: &Of) {
        self.counts.read += 1;
        let Some((ts_ns, dur_ns)) = self.times(span) else {
            self.counts.invalid += 1;
            return;
        };
        let until_ns = ts_ns.saturating_add(dur_ns);
        if until_ns < self.start_ns || ts_ns > self.end_ns {
            self.counts.outside += 1;
            return;
        }
        let own = Of::attributes(&span.attributes);
        let pid = own.pid.or(resource.pid);
        let mut tid = None;
        if let Some(of_span) = own.tid {
            tid = pid
                .zip(of_span)
                .filter(|(pid, tid)| self.threads.had(*pid, *tid, ts_ns, until_ns))
                .map(|(_, tid)| tid);
            self.counts.other_threads += u64::from(tid.is_none());
        }
        let (attributes, mut cut) = attributes(&span.attributes);
        let status = span.status.as_ref();
        let strings = &mut self.strings;
        let mut text = |text: &str| {
            let kept = floor(text, MAX_TEXT);
            cut |= kept.len() < text.len();
            match kept {
                "" => StrId::NULL,
                kept => strings.intern(kept.as_bytes()),
            }
        };
        let service = text(resource.service.as_deref().unwrap_or_default());
        let name = text(&span.name);
        let status_message = text(status.map_or("", |status| &status.message));
        let row = SpanRow {
            trace_id: strings.intern(hex(&span.trace_id).as_bytes()),
            span_id: strings.intern(hex(&span.span_id).as_bytes()),
            parent_span_id: match is_id(&span.parent_span_id, 8) {
                true => strings.intern(hex(&span.parent_span_id).as_bytes()),
                false => StrId::NULL,
            },
            ts_ns,
            dur_ns,
            pid: pid.unwrap_or(NULL_I32),
            tid: tid.unwrap_or(NULL_I32),
            service,
            name,
            kind: strings.intern(kind(span.kind).as_bytes()),
            status: strings.intern(status_name(status.map_or(0, |s| s.code)).as_bytes()),
            status_message,
            attributes: match attributes.is_empty() {
                true => StrId::NULL,
                false => strings.intern(attributes.as_bytes()),
            },
            source: strings.intern(SOURCE),
        };
        self.rows.push(row);
        self.counts.stored += 1;
        self.counts.cut += u64::from(cut);
    }

    /// Begin and duration; `None` for a span without valid ids or times.
    fn times(&self, span: &Span) -> Option<(i64, i64)> {
        if !is_id(&span.trace_id, 16) || !is_id(&span.span_id, 8) {
            return None;
        }
        let start = i64::try_from(span.start_time_unix_nano)
            .ok()
            .filter(|ns| *ns > 0)?;
        let end = i64::try_from(span.end_time_unix_nano).ok()?;
        if end < start {
            return None;
        }
        let start_ns = self.clock.monotonic_of(start);
        let end_ns = self.clock.monotonic_of(end);
        Some((start_ns, end_ns.saturating_sub(start_ns).max(0)))
    }
}

/// The place of a span, according to a list of attributes.
#[derive(Debug, Default)]
struct Of {
    service: Option<String>,
    pid: Option<i32>,
    /// `Some(None)`: it is no id that the kernel gives.
    tid: Option<Option<i32>>,
}

impl Of {
    fn resource(resource: Option<&Resource>) -> Self {
        resource.map_or_else(Self::default, |resource| {
            Self::attributes(&resource.attributes)
        })
    }

    fn attributes(attributes: &[KeyValue]) -> Self {
        let mut of = Self::default();
        for attribute in attributes {
            let value = attribute.value.as_ref().and_then(|any| any.value.as_ref());
            match (attribute.key.as_str(), value) {
                ("service.name", Some(Value::String(name))) => of.service = Some(name.clone()),
                ("process.pid", Some(value)) => of.pid = id(value),
                ("thread.id", Some(value)) => of.tid = Some(id(value)),
                _ => {}
            }
        }
        of
    }
}

/// The beginning of `text`, of at most `bytes` bytes.
fn floor(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The id of a process or thread.
fn id(value: &Value) -> Option<i32> {
    let id = match value {
        Value::Int(id) => i32::try_from(*id).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    id.filter(|id| *id > 0)
}

/// Ids that consist of zeros are invalid in OTLP.
fn is_id(id: &[u8], bytes: usize) -> bool {
    id.len() == bytes && id.iter().any(|byte| *byte != 0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kind(kind: i32) -> &'static str {
    match kind {
        1 => "internal",
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "unspecified",
    }
}

fn status_name(code: i32) -> &'static str {
    match code {
        1 => "ok",
        2 => "error",
        _ => "unset",
    }
}

/// Attributes as a JSON object, as far as they fit, and whether some were left out.
fn attributes(attributes: &[KeyValue]) -> (String, bool) {
    let mut members = Map::new();
    let (mut bytes, mut cut) = (0, false);
    for attribute in attributes {
        let value = json(attribute.value.as_ref());
        let size = attribute.key.len() + value.to_string().len();
        match bytes + size <= MAX_ATTRIBUTES {
            true => {
                bytes += size;
                members.insert(attribute.key.clone(), value);
            }
            false => cut = true,
        }
    }
    match members.is_empty() {
        true => (String::new(), cut),
        false => (Json::Object(members).to_string(), cut),
    }
}

/// The depth of values is limited by the decoders.
fn json(value: Option<&AnyValue>) -> Json {
    match value.and_then(|value| value.value.as_ref()) {
        None => Json::Null,
        Some(Value::String(text)) => Json::from(text.as_str()),
        Some(Value::Bool(value)) => Json::from(*value),
        Some(Value::Int(value)) => Json::from(*value),
        // Null for one that is no number.
        Some(Value::Double(value)) => Json::from(*value),
        Some(Value::Array(values)) => values.values.iter().map(|v| json(Some(v))).collect(),
        Some(Value::KeyValues(pairs)) => {
            let pair = |pair: &KeyValue| (pair.key.clone(), json(pair.value.as_ref()));
            Json::Object(pairs.values.iter().map(pair).collect())
        }
        Some(Value::Bytes(bytes)) => Json::from(hex(bytes)),
    }
}

//! Logs as the protocol has them (opentelemetry/proto/logs/v1), of findings and of requests.
//!
//! Traced programs choose the names and paths in them: texts are escaped and cut, and with a redaction
//! only texts whose kind is known are in a log, hashed. Names of system programs, which redacted
//! sessions keep, are hashed here, too.

use std::os::unix::ffi::OsStrExt;

use fathom_diagnose::{Finding, Severity, catalog};
use fathom_model::escape;
use fathom_model::tables::Holds;
use fathom_recorder::Stall;
use fathom_redact::Redactor;
use serde_json::{Value, json};

use crate::otlp::attribute;

/// Letters of a text at most.
const LONGEST: usize = 4000;

/// A log, and what it is known by.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The time of the event, nanoseconds since 1970.
    pub at_ns: i64,
    /// Unique, the same when the same event is described once more; letters, digits, and `-`.
    pub id: String,
    /// As the protocol has it.
    pub value: Value,
}

/// A severity, as numbers of the protocol.
fn number(severity: Severity) -> u32 {
    match severity {
        Severity::Low => 9,
        Severity::Medium => 13,
        Severity::High => 17,
    }
}

/// A recording whose events are logged.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Id of its session.
    pub id: String,
    /// Events that were logged.
    events: u64,
}

impl Recording {
    /// `id` is the id of its session.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.chars().filter(char::is_ascii_alphanumeric).collect(),
            events: 0,
        }
    }

    fn next_id(&mut self, kind: &str) -> String {
        self.events += 1;
        format!("{}-{kind}{}", self.id, self.events)
    }
}

/// A log of a finding.
pub fn finding(
    finding: &Finding,
    recording: &mut Recording,
    redactor: Option<&Redactor>,
    now_ns: i64,
) -> Record {
    let id = recording.next_id("f");
    let subject = &finding.subject;
    let mut log = Log::new(redactor);
    log.word("log.record.uid", &id);
    log.word("fathom.recording.id", &recording.id);
    log.word("fathom.rule", finding.rule);
    log.word("fathom.confidence", words(&finding.confidence).as_str());
    log.word("fathom.group", words(&finding.group).as_str());
    log.int("fathom.cost_ns", finding.cost_ns);
    log.int("process.pid", subject.pid.map(i64::from));
    log.int("thread.id", subject.tid.map(i64::from));
    log.text("thread.name", Holds::Name, subject.comm.as_deref());
    log.text("file.path", Holds::Path, subject.path.as_deref());
    if let Some(example) = finding.examples.first() {
        log.int("fathom.rid", Some(example.rid));
    }
    for evidence in &finding.evidence {
        log.number(
            &format!("fathom.evidence.{}", evidence.name),
            evidence.value,
        );
    }
    let rules = catalog();
    let rule = rules.iter().find(|rule| rule.id == finding.rule);
    // Sentences of a finding have names and paths in them, sentences of its rule do not.
    let (body, advice) = match (redactor, rule) {
        (None, _) => (finding.title.as_str(), finding.advice.as_str()),
        (Some(_), Some(rule)) => (rule.name, rule.advice),
        (Some(_), None) => (finding.rule, ""),
    };
    log.word("fathom.advice", advice);
    log.record(
        ("fathom.finding", id, body),
        (number(finding.severity), finding.severity.name()),
        (now_ns, now_ns),
    )
}

/// A log of a request that has not ended.
pub fn stall(
    stall: &Stall,
    recording: &mut Recording,
    redactor: Option<&Redactor>,
    now_ns: i64,
) -> Record {
    let id = recording.next_id("s");
    let elapsed_ns = i64::try_from(stall.elapsed.as_nanos()).unwrap_or(i64::MAX);
    let file = stall.at.file.as_ref();
    let file = file.map(|file| String::from_utf8_lossy(file.as_os_str().as_bytes()).into_owned());
    let mut log = Log::new(redactor);
    log.word("log.record.uid", &id);
    log.word("fathom.recording.id", &recording.id);
    log.word("fathom.syscall", stall.call.syscall);
    log.int("fathom.elapsed_ns", Some(elapsed_ns));
    log.int("process.pid", Some(stall.call.pid.into()));
    log.int("thread.id", Some(stall.call.tid.into()));
    log.text("thread.name", Holds::Name, Some(&stall.at.comm));
    log.text("file.path", Holds::Path, file.as_deref());
    log.text(
        "fathom.kernel_stack",
        Holds::Symbol,
        Some(stall.at.stack.join(" < ").as_str()).filter(|stack| !stack.is_empty()),
    );
    let body = match redactor {
        None => stall.to_string(),
        Some(_) => format!("{} has not ended", stall.call.syscall),
    };
    log.record(
        ("fathom.stalled_request", id, &body),
        SLOW,
        (now_ns, now_ns),
    )
}

/// A request that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Request {
    /// Its number.
    pub rid: i64,
    /// When it began, CLOCK_MONOTONIC nanoseconds.
    pub ts_ns: i64,
    /// How long it took, nanoseconds.
    pub dur_ns: i64,
    pid: Option<i64>,
    tid: i64,
    comm: Option<String>,
    syscall: String,
    errno: Option<String>,
    path: Option<String>,
    bytes: Option<i64>,
}

/// The session that a request is in.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// Id of the session.
    pub session: &'a str,
    /// Id of the recording that it was saved of.
    pub recording: &'a str,
    /// Why it was saved.
    pub because: &'a str,
}

/// A log of a request that has ended, at a time since 1970. All texts may leave the host.
pub fn request(
    request: &Request,
    why: &str,
    origin: &Origin<'_>,
    at_ns: i64,
    now_ns: i64,
) -> Record {
    let id = format!("{}-r{}", Recording::new(origin.recording).id, request.rid);
    let mut log = Log::new(None);
    log.word("log.record.uid", &id);
    log.word("fathom.recording.id", origin.recording);
    log.word("fathom.session.id", origin.session);
    log.word("fathom.saved_because", origin.because);
    log.int("fathom.rid", Some(request.rid));
    log.word("fathom.syscall", &request.syscall);
    log.int("fathom.duration_ns", Some(request.dur_ns));
    log.int("fathom.bytes", request.bytes);
    log.word("error.type", request.errno.as_deref().unwrap_or_default());
    log.int("process.pid", request.pid);
    log.int("thread.id", Some(request.tid));
    log.word("thread.name", request.comm.as_deref().unwrap_or_default());
    log.word("file.path", request.path.as_deref().unwrap_or_default());
    log.record(("fathom.slow_request", id, why), SLOW, (at_ns, now_ns))
}

/// The severity of slow requests.
const SLOW: (u32, &str) = (13, "medium");

/// The name of a value that is a word in JSON.
fn words(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn shown(text: &str) -> String {
    let escaped = escape::text(text);
    match escaped.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", escaped.get(..end).unwrap_or_default()),
        None => escaped.into_owned(),
    }
}

/// A log that is being made.
struct Log<'a> {
    redactor: Option<&'a Redactor>,
    attributes: Vec<Value>,
}

impl<'a> Log<'a> {
    fn new(redactor: Option<&'a Redactor>) -> Self {
        Self {
            redactor,
            attributes: Vec::new(),
        }
    }

    /// A text that may leave the host; none if it is empty.
    fn word(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.attributes.push(attribute((key, &shown(text))));
        }
    }

    /// A text of the host.
    fn text(&mut self, key: &str, holds: Holds, text: Option<&str>) {
        let text = match (self.redactor, text) {
            (Some(redactor), Some(text)) => redactor.text(holds, text),
            (_, text) => text.map(str::to_owned),
        };
        self.word(key, &text.unwrap_or_default());
    }

    fn int(&mut self, key: &str, number: Option<i64>) {
        if let Some(number) = number {
            let value = json!({ "intValue": number.to_string() });
            self.attributes.push(json!({ "key": key, "value": value }));
        }
    }

    fn number(&mut self, key: &str, number: f64) {
        let value = json!({ "doubleValue": number });
        self.attributes.push(json!({ "key": key, "value": value }));
    }

    fn record(
        self,
        (event, id, body): (&str, String, &str),
        (severity, severity_name): (u32, &str),
        (at_ns, now_ns): (i64, i64),
    ) -> Record {
        let value = json!({
            "timeUnixNano": at_ns.to_string(),
            "observedTimeUnixNano": now_ns.to_string(),
            "severityNumber": severity,
            "severityText": severity_name,
            "eventName": event,
            "body": { "stringValue": shown(body) },
            "attributes": self.attributes,
        });
        Record { at_ns, id, value }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fathom_probe::{InFlight, Whereabouts};
    use fathom_redact::{Key, Rules};

    use super::*;

    fn hanging() -> Stall {
        Stall {
            call: InFlight {
                ts_ns: 1,
                pid: 7,
                tid: 8,
                syscall: "fsync",
                operation: None,
            },
            elapsed: Duration::from_secs(2),
            at: Whereabouts {
                comm: "al\u{1b}ice".into(),
                file: Some("/home/alice/\ndata".into()),
                stack: vec!["a".into(), "b".into()],
            },
        }
    }

    fn key() -> Key {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, [7; 32]).unwrap();
        Key::read(&path).unwrap()
    }

    #[test]
    fn texts_of_programs_are_escaped_and_cut() {
        let mut recording = Recording::new("ab/12");
        let record = stall(&hanging(), &mut recording, None, 5);
        assert_eq!((record.at_ns, record.id.as_str()), (5, "ab12-s1"));
        let text = record.value.to_string();
        assert!(
            text.contains("fsync on /home/alice/\\\\ndata by al\\\\x1bice (process 7, thread 8)"),
            "{text}"
        );
        assert_eq!(shown(&"é".repeat(LONGEST + 1)).chars().count(), LONGEST + 3);
        assert_eq!(stall(&hanging(), &mut recording, None, 5).id, "ab12-s2");
    }

    #[test]
    fn redacted_logs_have_hashes_only() {
        let redactor = Redactor::new(Rules::default(), key());
        let record = stall(&hanging(), &mut Recording::new("1"), Some(&redactor), 5);
        let text = record.value.to_string();
        assert!(!text.contains("alice") && !text.contains("ice"), "{text}");
        let path = redactor.text(Holds::Path, "/home/alice/\ndata").unwrap();
        assert!(
            text.contains(&path) && text.contains("fsync has not ended"),
            "{text}"
        );
    }
}

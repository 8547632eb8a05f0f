//! Findings and slow requests to a collector: OTLP as JSON over HTTP (opentelemetry/proto/logs/v1).
//!
//! The recording hands events over without waiting. A thread keeps them on disk until the collector has
//! taken them.

mod record;
mod slow;
mod spool;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_diagnose::Finding;
use fathom_model::escape;
use fathom_model::meta::Save;
use fathom_probe::realtime_ns;
use fathom_recorder::Stall;
use fathom_redact::{Key, RedactError, Redactor, Rules};
use fathom_session::Session;
use serde_json::{Value, json};

use self::record::{Record, Recording};
use self::slow::{Described, Early, Found, Saved, SlowRequests};
use self::spool::Spool;
use crate::collector::Collector;
use crate::config::{Config, Endpoint, Otlp, Redaction};
use crate::otlp;
use crate::status::Status;

/// Events between the recording and the thread at most.
const EVENTS: usize = 500;
/// Logs of a message at most.
const MESSAGE: usize = 50;
/// After a failure the time until the next attempt doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// For sending at the end.
const LAST: Duration = Duration::from_secs(5);
/// Without anything to do.
const IDLE: Duration = Duration::from_secs(3600);
/// Until a process is looked at again.
const LOOK: Duration = Duration::from_millis(100);
/// Answers of a collector that cannot take this message, now or later.
const REFUSALS: [u16; 3] = [400, 413, 422];
/// Directory of logs among the sessions.
const DIRECTORY: &str = "logs";
/// How the names of files of saved sessions end whose requests are to be described.
const SAVED: &str = ".saved.json";
/// File of the requests that were described.
const DESCRIBED: &str = "described.json";
/// A redacted copy of a session.
const COPY: &str = "redacted.fathom";

/// An event of the recording.
enum Event {
    Log(Box<Record>),
    Saved(Saved),
}

/// Sends logs until it is stopped.
pub struct Logs {
    to: SyncSender<Event>,
    thread: JoinHandle<()>,
    redactor: Option<Redactor>,
    findings: bool,
    /// The condition of saves whose requests are logs.
    slow: Option<String>,
    status: Arc<Mutex<Status>>,
}

impl Logs {
    /// Starts to send what `config` says. Logs wait in `sessions`, and `program` has the commands that read
    /// sessions that were saved because of `save_when`.
    ///
    /// # Errors
    /// Files of a redaction or certificates that cannot be used, a directory that others can write in,
    /// or no thread.
    pub fn start(
        config: &Config,
        save_when: Option<&str>,
        program: PathBuf,
        status: &Arc<Mutex<Status>>,
    ) -> Result<Option<Self>, String> {
        let Some(otlp) = &config.otlp else {
            return Ok(None);
        };
        let Some(endpoint) = otlp.logs.clone() else {
            return Ok(None);
        };
        let redaction = config.redaction_of_logs();
        let redactor = redaction.as_ref().map(redactor).transpose();
        let redactor = redactor.map_err(|error| error.to_string())?;
        let most = otlp.slow_requests.unwrap_or_default();
        let slow = save_when.filter(|_| most > 0);
        let requests = slow.map(|condition| SlowRequests {
            program,
            most,
            condition: condition.to_owned(),
            redaction,
        });
        let redacted = redactor.is_some();
        let work = Work::new(otlp, endpoint, redacted, &config.sessions.directory, status)?;
        let (to, events) = sync_channel(EVENTS);
        let thread = std::thread::Builder::new()
            .name("fathom-logs".into())
            .spawn(move || work.run(requests.as_ref(), &events))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Some(Self {
            to,
            thread,
            redactor,
            findings: otlp.findings.unwrap_or(true),
            slow: slow.map(str::to_owned),
            status: Arc::clone(status),
        }))
    }

    /// Logs of the recording into `session`.
    pub fn of_recording(&self, session: &Path) -> RecordingLogs<'_> {
        let id = Session::read_meta(session).map(|meta| meta.id);
        let id = id.unwrap_or_else(|_| realtime_ns().to_string());
        RecordingLogs {
            logs: self,
            recording: Recording::new(&id),
        }
    }

    /// Sends once more, and ends. Logs that the collector does not take wait for the next start.
    pub fn stop(self) {
        drop(self.to);
        self.thread.join().ok();
    }

    fn hand_over(&self, event: Event) {
        // The recording never waits.
        if self.to.try_send(event).is_err() {
            self.status
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .dropped_logs += 1;
        }
    }
}

/// Checks the files of a configuration that logs need.
///
/// # Errors
/// Rules, a key or certificates that cannot be read.
pub fn check(config: &Config) -> Result<(), String> {
    if let Some((otlp, endpoint)) = config
        .otlp
        .as_ref()
        .and_then(|otlp| Some((otlp, otlp.logs.clone()?)))
    {
        Collector::new(otlp, endpoint)?;
        let redaction = config.redaction_of_logs();
        let made = redaction.as_ref().map(redactor).transpose();
        made.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn redactor(redaction: &Redaction) -> Result<Redactor, RedactError> {
    let rules = redaction.rules.as_deref().map(Rules::read).transpose()?;
    let key = match &redaction.key {
        Some(path) => Key::read(path)?,
        None => Key::random()?,
    };
    Ok(Redactor::new(rules.unwrap_or_default(), key))
}

/// Logs of one recording.
pub struct RecordingLogs<'a> {
    logs: &'a Logs,
    recording: Recording,
}

impl RecordingLogs<'_> {
    /// A rule found a problem.
    pub fn found(&mut self, finding: &Finding) {
        if self.logs.findings {
            let redactor = self.logs.redactor.as_ref();
            let log = record::finding(finding, &mut self.recording, redactor, now_ns());
            self.logs.hand_over(Event::Log(Box::new(log)));
        }
    }

    /// A request has not ended for long.
    pub fn stalled(&mut self, stall: &Stall) {
        if self.logs.slow.is_some() {
            let redactor = self.logs.redactor.as_ref();
            let log = record::stall(stall, &mut self.recording, redactor, now_ns());
            self.logs.hand_over(Event::Log(Box::new(log)));
        }
    }

    /// A session was saved.
    pub fn saved(&mut self, save: &Save) {
        let condition = self.logs.slow.as_deref();
        // Requests in flight are logs while they last.
        let is_on_rows = |text: &str| !text.trim_start().starts_with("in_flight");
        if save.error.is_none() && condition == Some(&*save.because) && is_on_rows(&save.because) {
            let session = PathBuf::from(&save.path);
            self.logs.hand_over(Event::Saved(Saved {
                session: std::path::absolute(&session).unwrap_or(session),
                at_ns: save.at_ns,
            }));
        }
    }
}

fn now_ns() -> i64 {
    i64::try_from(realtime_ns()).unwrap_or(i64::MAX)
}

/// The work of the thread.
struct Work {
    collector: Collector,
    interval: Duration,
    resource: Value,
    spool: Spool,
    /// Files of saved sessions whose requests are to be described.
    saved: Vec<String>,
    failing: bool,
    /// After a failure.
    pause: Duration,
    /// Not before this.
    next: Instant,
    status: Arc<Mutex<Status>>,
}

impl Work {
    fn new(
        otlp: &Otlp,
        endpoint: Endpoint,
        redacted: bool,
        sessions: &Path,
        status: &Arc<Mutex<Status>>,
    ) -> Result<Self, String> {
        let collector = Collector::new(otlp, endpoint)?;
        let directory = sessions.join(DIRECTORY);
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        let spool = Spool::open(&directory).map_err(failed)?;
        let saved = spool.names(SAVED).map_err(failed)?;
        Ok(Self {
            collector,
            interval: otlp.interval,
            resource: otlp::resource(&otlp.attributes, redacted),
            spool,
            saved,
            failing: false,
            pause: otlp.interval,
            next: Instant::now(),
            status: Arc::clone(status),
        })
    }

    fn run(mut self, requests: Option<&SlowRequests>, events: &Receiver<Event>) {
        loop {
            self.status().waiting_logs = self.spool.len() as u64;
            let describes = requests.filter(|_| !self.saved.is_empty());
            let wait = match (describes, self.spool.len()) {
                (Some(_), _) => Duration::ZERO,
                (None, 0) => IDLE,
                (None, _) => self.next.saturating_duration_since(Instant::now()),
            };
            let ends = self.take(events, wait);
            self.send_if_due(ends);
            if ends {
                self.status().waiting_logs = self.spool.len() as u64;
                return;
            }
            if let Some(requests) = describes {
                self.describe(requests, events);
            }
        }
    }

    fn send_if_due(&mut self, ends: bool) {
        if self.spool.len() == 0 || !(ends || Instant::now() >= self.next) {
            return;
        }
        match self.send(ends) {
            true => self.pause = self.interval,
            false => {
                self.next = Instant::now() + self.pause;
                self.pause = (2 * self.pause).min(LONGEST_PAUSE);
            }
        }
    }

    /// Keeps events that come in this time; true when there will be no more.
    fn take(&mut self, events: &Receiver<Event>, wait: Duration) -> bool {
        match events.recv_timeout(wait) {
            Ok(event) => self.keep(event),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
        loop {
            match events.try_recv() {
                Ok(event) => self.keep(event),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn keep(&mut self, event: Event) {
        match event {
            Event::Log(record) => self.keep_log(&record),
            Event::Saved(saved) => {
                let name = saved.session.file_name().unwrap_or_default();
                let name = format!("{}{SAVED}", name.to_string_lossy());
                match self.spool.put(&name, &saved) {
                    Ok(()) => self.saved.push(name),
                    Err(error) => {
                        let mut status = self.status();
                        status.failed_slow_requests += 1;
                        status.say(format!("cannot keep logs: {error}"));
                    }
                }
            }
        }
    }

    fn keep_log(&mut self, record: &Record) {
        let kept = self.spool.add(record);
        let mut status = self.status();
        match kept {
            Ok(dropped) => status.dropped_logs += dropped as u64,
            Err(error) => {
                status.dropped_logs += 1;
                status.say(format!("cannot keep a log: {error}"));
            }
        }
        status.waiting_logs = self.spool.len() as u64;
    }

    /// Makes logs of the requests of one saved session.
    fn describe(&mut self, requests: &SlowRequests, events: &Receiver<Event>) {
        let Some(name) = self.saved.first().cloned() else {
            return;
        };
        let Some(saved) = self.spool.get::<Saved>(&name) else {
            return self.described(&name, Some(format!("{name} is damaged")));
        };
        let known = self.spool.get::<Described>(DESCRIBED).unwrap_or_default();
        let copy = self.spool.dir().join(COPY);
        let read = requests.read(&saved, known, &copy, &mut || {
            let ends = self.take(events, LOOK);
            self.send_if_due(ends);
            ends
        });
        let failure = match read {
            Err(Early::Stopped) => return,
            Err(Early::Failed(why)) => Some(why),
            Ok(Found { records, described }) => {
                for record in &records {
                    self.keep_log(record);
                }
                let kept = self.spool.put(DESCRIBED, &described);
                kept.err().map(|error| error.to_string())
            }
        };
        let failure = failure.map(|why| {
            let session = saved.session.display();
            format!("cannot read the slow requests of {session}: {why}")
        });
        self.described(&name, failure);
    }

    /// A saved session is done with.
    fn described(&mut self, name: &str, failure: Option<String>) {
        self.spool.forget(name);
        self.saved.retain(|saved| saved != name);
        if let Some(failure) = failure {
            let mut status = self.status();
            status.failed_slow_requests += 1;
            status.say(failure);
        }
    }

    /// Sends all that wait, at the end what it can in a short time; false if the collector has not
    /// taken them and is to be asked again.
    fn send(&mut self, ends: bool) -> bool {
        let from = Instant::now();
        while !ends || from.elapsed() < LAST {
            let (logs, unreadable) = self.spool.oldest(MESSAGE);
            self.status().dropped_logs += unreadable as u64;
            let count = logs.len();
            if count == 0 {
                return true;
            }
            let sent = self
                .collector
                .send(&message(logs, &self.resource).to_string());
            let url = self.collector.url().to_owned();
            let (rejected, complaint) = match sent {
                Ok(answer) => rejected(&answer, count),
                Err(ureq::Error::StatusCode(code)) if REFUSALS.contains(&code) => {
                    (count, format!("status {code}"))
                }
                Err(error) => {
                    let failing = std::mem::replace(&mut self.failing, true);
                    let mut status = self.status();
                    status.failed_logs += 1;
                    if !failing {
                        status.say(format!("cannot send logs to {url}: {error}; trying again"));
                    }
                    return false;
                }
            };
            self.failing = false;
            self.spool.remove(count);
            let mut status = self.status();
            status.sent_logs += (count - rejected) as u64;
            status.dropped_logs += rejected as u64;
            if rejected > 0 {
                status.say(format!("{url} refused {rejected} logs: {complaint}"));
            }
            status.waiting_logs = self.spool.len() as u64;
        }
        true
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many of `count` logs a collector has not taken, by its answer, and the reason.
fn rejected(answer: &str, count: usize) -> (usize, String) {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let partial = &answer["partialSuccess"];
    let number = &partial["rejectedLogRecords"];
    let text = number.as_str().and_then(|text| text.parse().ok());
    let number = number.as_u64().or(text).unwrap_or_default();
    let reason = partial["errorMessage"].as_str().unwrap_or_default();
    let reason: String = reason.chars().take(200).collect();
    // It goes to a terminal.
    let reason = escape::text(&reason).into_owned();
    (usize::try_from(number).unwrap_or(count).min(count), reason)
}

fn message(logs: Vec<Value>, resource: &Value) -> Value {
    json!({
        "resourceLogs": [{
            "resource": resource,
            "scopeLogs": [{
                "scope": { "name": "fathom", "version": env!("CARGO_PKG_VERSION") },
                "logRecords": logs,
            }],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_say_how_many_were_refused() {
        let none = (0, String::new());
        assert_eq!(rejected("", 3), none);
        assert_eq!(rejected("{}", 3), none);
        let partial = |number: &str| {
            format!(
                r#"{{"partialSuccess":{{"rejectedLogRecords":{number},"errorMessage":"old"}}}}"#
            )
        };
        assert_eq!(rejected(&partial("2"), 3), (2, "old".into()));
        assert_eq!(rejected(&partial("\"1\""), 3), (1, "old".into()));
        assert_eq!(rejected(&partial("7"), 3), (3, "old".into()));
    }
}

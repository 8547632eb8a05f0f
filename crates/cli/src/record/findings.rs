//! `--diagnose`: the rules look at rows as they are recorded.
//!
//! They run on a thread of their own that everybody else goes before, and get copies of
//! rows as long as they keep up. What they do not is left out and said: the recording
//! itself never waits for them, and `fathom diagnose` looks at everything later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_diagnose::live::{self, Live};
use fathom_diagnose::{Diagnosis, Finding, Group};
use fathom_model::Batch;
use fathom_model::meta::SessionMeta;
use fathom_model::units::count;
use fathom_probe::system;
use fathom_query::escape::{self, shell_words};
use fathom_session::Session;

/// Rows that may wait for the rules: some hundred bytes each.
const WAITING_ROWS: usize = 1 << 19;
/// How often what was found is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Niceness of the thread: it takes what others leave.
const NICE: i32 = 19;

/// Calls up to which a session that was recorded without the rules is diagnosed at its end: in a
/// fifth of a second or so.
const IN_PASSING: u64 = 100_000;

/// What the two ends share.
#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    /// Rows that were left out.
    missed: AtomicU64,
}

/// Where rows are offered to the rules.
#[derive(Debug)]
pub struct Feed {
    to: SyncSender<Vec<Batch>>,
    shared: Arc<Shared>,
}

impl Feed {
    /// Copies rows for the rules if they keep up.
    pub fn offer(&mut self, batches: &[Batch]) {
        let wanted = || batches.iter().filter(|batch| Live::wants(batch.table));
        let rows: usize = wanted().map(Batch::len).sum();
        if rows == 0 {
            return;
        }
        let waiting = self.shared.waiting.fetch_add(rows, Ordering::Relaxed);
        let room = waiting < WAITING_ROWS;
        if !room || self.to.try_send(wanted().cloned().collect()).is_err() {
            self.shared.waiting.fetch_sub(rows, Ordering::Relaxed);
            self.shared.missed.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }
}

/// The rules at work.
pub struct Findings {
    thread: JoinHandle<Diagnosis>,
    shared: Arc<Shared>,
}

/// Starts the rules for a recording into `session`. Findings are printed as they become true
/// unless it is to be `quiet`, and put into the session for others to see.
pub fn start(meta: &SessionMeta, session: &Path, quiet: bool) -> std::io::Result<(Feed, Findings)> {
    let (to, from) = sync_channel(64);
    let shared = Arc::new(Shared::default());
    let (rules, session) = (Live::new(meta), session.to_owned());
    let other = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("fathom-rules".into())
        .spawn(move || {
            system::set_nice(NICE);
            work(rules, &from, &other, &session, quiet)
        })?;
    let feed = Feed {
        to,
        shared: Arc::clone(&shared),
    };
    Ok((feed, Findings { thread, shared }))
}

impl Findings {
    /// Waits for the rules to look at what they have got; what they found in a line.
    pub fn finish(self, session: &Path) -> Option<String> {
        let diagnosis = self.thread.join().ok()?;
        let mut line = summary(&diagnosis, session);
        let missed = self.shared.missed.load(Ordering::Relaxed);
        if missed > 0 {
            let missed = count(i64::try_from(missed).unwrap_or(i64::MAX));
            line.push_str(&format!(
                " looks at all rows; the rules have not seen {missed} of them yet"
            ));
        }
        Some(line)
    }
}

/// What there is to find in a session that has just been recorded, in a line; `None` when it
/// is too large to look in passing.
pub fn in_passing(session: &Path, calls: u64) -> Option<String> {
    if calls > IN_PASSING {
        return None;
    }
    let opened = Session::open(session).ok()?;
    let diagnosis = fathom_diagnose::diagnose(&opened).ok()?;
    Some(summary(&diagnosis, session))
}

fn summary(diagnosis: &Diagnosis, session: &Path) -> String {
    let all = diagnosis.findings.len() + diagnosis.more.iter().map(|m| m.findings).sum::<usize>();
    let risky = diagnosis
        .findings
        .iter()
        .filter(|f| f.group == Group::Correctness)
        .count();
    let findings = match all {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{} findings", count(n as i64)),
    };
    let risk = match risky {
        0 => String::new(),
        n => format!(", {} of data at risk", count(n as i64)),
    };
    let session = session.to_string_lossy().into_owned();
    let command = shell_words(&["fathom".into(), "diagnose".into(), session]);
    format!("{findings}{risk}: {}", escape::text(&command))
}

fn work(
    mut rules: Live,
    from: &Receiver<Vec<Batch>>,
    shared: &Shared,
    session: &Path,
    quiet: bool,
) -> Diagnosis {
    let mut looked = Instant::now();
    let mut written = String::new();
    let mut fresh = false;
    loop {
        match from.recv_timeout(LOOK) {
            Ok(batches) => {
                let rows = batches.iter().map(Batch::len).sum();
                shared.waiting.fetch_sub(rows, Ordering::Relaxed);
                rules.feed(&batches);
                fresh = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if looked.elapsed() >= LOOK && fresh {
            if shared.missed.load(Ordering::Relaxed) > 0 {
                rules.missed();
            }
            let (diagnosis, new) = rules.look(false);
            tell(&new, quiet);
            // Others may read it at any time; only what changed is written.
            let subjects: Vec<&str> = diagnosis
                .findings
                .iter()
                .map(|f| f.title.as_str())
                .collect();
            let now = subjects.join("\n");
            if now != written && live::write_current(session, &diagnosis).is_ok() {
                written = now;
            }
            looked = Instant::now();
            fresh = false;
        }
    }
    if shared.missed.load(Ordering::Relaxed) > 0 {
        rules.missed();
    }
    let (diagnosis, new) = rules.look(true);
    tell(&new, quiet);
    live::remove_current(session).ok();
    diagnosis
}

fn tell(new: &[Finding], quiet: bool) {
    if quiet {
        return;
    }
    for finding in new {
        let title = escape::text(&finding.title);
        eprintln!(
            "fathom: found {} ({}): {title}",
            finding.rule,
            finding.severity.name()
        );
    }
}

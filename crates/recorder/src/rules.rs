//! The rules look at rows as they are recorded.
//!
//! They run on a thread of their own that everything else goes before, and get copies of
//! rows as long as they keep up. Rows that they have no time for are left out and counted: the
//! recording itself never waits for them, and `fathom diagnose` looks at everything later.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_diagnose::live::{self, Live};
use fathom_diagnose::{Diagnosis, Finding};
use fathom_model::Batch;
use fathom_model::meta::SessionMeta;
use fathom_probe::system;

use crate::{Found, Observer, RecordError};

/// Rows that may wait for the rules: some hundred bytes each.
const WAITING_ROWS: usize = 1 << 19;
/// How often the findings are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Niceness of the thread: it takes what others leave.
const NICE: i32 = 19;

/// State shared by both ends.
#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    /// Rows that were left out.
    missed: AtomicU64,
}

/// Where rows are offered to the rules.
#[derive(Debug)]
pub(crate) struct RulesFeed {
    to: SyncSender<Vec<Batch>>,
    shared: Arc<Shared>,
}

impl RulesFeed {
    /// Copies rows for the rules if they keep up.
    pub(crate) fn offer(&mut self, batches: &[Batch]) {
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

pub(crate) struct Rules {
    thread: JoinHandle<Diagnosis>,
    found: Receiver<Finding>,
    shared: Arc<Shared>,
}

impl Rules {
    /// Starts the rules for a recording into `session`, which shows others what they find.
    pub(crate) fn start(
        meta: &SessionMeta,
        session: &Path,
    ) -> Result<(RulesFeed, Self), RecordError> {
        let (to, rows) = sync_channel(64);
        let (found_to, found) = channel();
        let shared = Arc::new(Shared::default());
        let work = Work {
            rules: Live::new(meta),
            session: session.to_owned(),
            written: String::new(),
            found: found_to,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("fathom-rules".into())
            .spawn(move || {
                system::set_nice(NICE);
                work.run(&rows)
            })
            .map_err(RecordError::system("can't start a thread"))?;
        let feed = RulesFeed {
            to,
            shared: Arc::clone(&shared),
        };
        let rules = Self {
            thread,
            found,
            shared,
        };
        Ok((feed, rules))
    }

    /// Findings since the last time.
    pub(crate) fn news(&self) -> impl Iterator<Item = Finding> {
        self.found.try_iter()
    }

    /// Waits for the rules to look at the rows that they have got; none when they panicked.
    pub(crate) fn finish(self, observer: &mut dyn Observer) -> Option<Found> {
        let diagnosis = self.thread.join().ok()?;
        for finding in self.found.try_iter() {
            observer.found(&finding);
        }
        Some(Found {
            diagnosis,
            missed: self.shared.missed.load(Ordering::Relaxed),
        })
    }
}

/// The work of the thread.
struct Work {
    rules: Live,
    session: PathBuf,
    /// The findings that the session shows.
    written: String,
    found: Sender<Finding>,
    shared: Arc<Shared>,
}

impl Work {
    fn run(mut self, rows: &Receiver<Vec<Batch>>) -> Diagnosis {
        let mut looked = Instant::now();
        let mut fresh = false;
        loop {
            match rows.recv_timeout(LOOK) {
                Ok(batches) => {
                    let rows = batches.iter().map(Batch::len).sum();
                    self.shared.waiting.fetch_sub(rows, Ordering::Relaxed);
                    self.rules.feed(&batches);
                    fresh = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if looked.elapsed() >= LOOK && fresh {
                let diagnosis = self.look(false);
                self.show(&diagnosis);
                looked = Instant::now();
                fresh = false;
            }
        }
        let diagnosis = self.look(true);
        live::remove_current(&self.session).ok();
        diagnosis
    }

    fn look(&mut self, end: bool) -> Diagnosis {
        if self.shared.missed.load(Ordering::Relaxed) > 0 {
            self.rules.missed();
        }
        let (diagnosis, new) = self.rules.look(end);
        for finding in new {
            self.found.send(finding).ok();
        }
        diagnosis
    }

    /// Others may read the file at any time; it is written only when something has changed.
    fn show(&mut self, diagnosis: &Diagnosis) {
        let titles = diagnosis.findings.iter().map(|f| f.title.as_str());
        let now = titles.collect::<Vec<_>>().join("\n");
        if now != self.written && live::write_current(&self.session, diagnosis).is_ok() {
            self.written = now;
        }
    }
}

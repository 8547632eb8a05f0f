//! Ships the agent's closed sessions, each by a process of its own (`fathom ship`), so that neither an
//! object store's library nor a slow network touches the recording.
//!
//! A shipment that was interrupted is continued, and one that is complete changes nothing, so nothing
//! has to be remembered over restarts.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_model::meta::State;
use fathom_session::Session;

use crate::child;
use crate::config::Ship;
use crate::sessions::Sessions;
use crate::status::Status;

/// Time between two looks at the directory; after a failure it doubles up to the longest.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Until a process that ships is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// Ships until it is stopped.
pub struct Shipper {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Shipper {
    /// Starts to ship the sessions in `sessions` with `program`, which has the command `ship`. The
    /// first of several failures in a row becomes a message.
    ///
    /// # Errors
    /// No thread.
    pub fn start(
        config: &Ship,
        program: PathBuf,
        sessions: Sessions,
        status: Arc<Mutex<Status>>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let work = Work {
            arguments: config.arguments(),
            to: config.to.clone(),
            program,
            sessions,
            status,
            shipped: BTreeSet::new(),
            waiting: BTreeSet::new(),
        };
        let thread = std::thread::Builder::new()
            .name("fathom-ship".into())
            .spawn(move || work.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Ends what is being shipped, which another start continues.
    pub fn stop(self) {
        drop(self.stop);
        self.thread.join().ok();
    }
}

struct Work {
    arguments: Vec<OsString>,
    to: String,
    program: PathBuf,
    sessions: Sessions,
    status: Arc<Mutex<Status>>,
    /// Sessions that are there and shipped.
    shipped: BTreeSet<PathBuf>,
    /// Sessions that were closed and not shipped when the directory was last read.
    waiting: BTreeSet<PathBuf>,
}

/// How a shipment ended.
enum Outcome {
    Done,
    Stopped,
    Failed(String),
}

impl Work {
    fn run(mut self, stopped: &Receiver<()>) {
        let mut pause = PAUSE;
        loop {
            match self.round(stopped) {
                Outcome::Stopped => return,
                Outcome::Done => pause = PAUSE,
                Outcome::Failed(message) => {
                    let mut status = self.status();
                    status.failed_ships += 1;
                    if pause == PAUSE {
                        status.say(message);
                    }
                    drop(status);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            }
            if !matches!(stopped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
                return;
            }
        }
    }

    /// Ships what is closed and was not shipped, the oldest first.
    fn round(&mut self, stopped: &Receiver<()>) -> Outcome {
        let there: BTreeSet<PathBuf> = self.sessions.list().into_iter().collect();
        let gone = self.waiting.iter().filter(|path| !there.contains(*path));
        let gone = gone.count() as u64;
        self.shipped.retain(|path| there.contains(path));
        let new = there.difference(&self.shipped);
        self.waiting = new.filter(|path| is_closed(path)).cloned().collect();
        {
            let mut status = self.status();
            status.missed_ships += gone;
            status.waiting_ships = self.waiting.len() as u64;
        }
        for path in self.waiting.clone() {
            match self.ship(&path, stopped) {
                Outcome::Done => {
                    self.waiting.remove(&path);
                    let mut status = self.status();
                    status.ships += 1;
                    status.waiting_ships = self.waiting.len() as u64;
                    drop(status);
                    self.shipped.insert(path);
                }
                // If it was removed meanwhile, the next round counts it.
                Outcome::Failed(_) if path.symlink_metadata().is_err() => {}
                other => return other,
            }
        }
        Outcome::Done
    }

    fn ship(&self, path: &Path, stopped: &Receiver<()>) -> Outcome {
        let failed = |why: &str| {
            Outcome::Failed(format!(
                "cannot ship {} to {}: {why}; trying again",
                path.display(),
                self.to
            ))
        };
        let mut arguments = self.arguments.clone();
        arguments.push(path.into());
        let mut stop = || !matches!(stopped.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout));
        match child::run(&self.program, &arguments, &mut stop) {
            child::Outcome::Done(_) => Outcome::Done,
            child::Outcome::Stopped => Outcome::Stopped,
            child::Outcome::Failed(why) => failed(&why),
        }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the session is complete. One that cannot be read is not shipped.
fn is_closed(path: &Path) -> bool {
    Session::read_meta(path).is_ok_and(|meta| meta.state == State::Complete)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use fathom_session::{SessionWriter, WriterOptions};

    use super::*;

    fn wait_for(status: &Mutex<Status>, what: impl Fn(&Status) -> bool) {
        let from = Instant::now();
        while !what(&status.lock().unwrap()) {
            assert!(from.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_failure_is_told_once_and_nothing_of_others_is_shipped() {
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("ship");
        fs::write(
            &program,
            "#!/bin/sh\necho 'fathom: no such bucket' >&2\nexit 1\n",
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let directory = scratch.path().join("sessions");
        let sessions = Sessions::open(&directory).unwrap();
        for name in ["other.fathom", "agent-damaged.fathom"] {
            fs::create_dir(directory.join(name)).unwrap();
        }
        let meta = fathom_testkit::meta();
        let closed = directory.join("agent-1.fathom");
        let writer = SessionWriter::create(&closed, meta.clone(), WriterOptions::default());
        writer.unwrap().finish(meta).unwrap();
        let status = Arc::new(Mutex::new(Status::default()));
        let config = Ship {
            to: "s3://none".into(),
            ..Ship::default()
        };
        let shipper = Shipper::start(&config, program, sessions, Arc::clone(&status)).unwrap();
        wait_for(&status, |status| status.failed_ships > 0);
        shipper.stop();
        let mut status = status.lock().unwrap();
        assert_eq!((status.ships, status.waiting_ships), (0, 1));
        let said = status.take_messages();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("agent-1.fathom to s3://none: no such bucket; trying again"),
            "{said:?}"
        );
    }
}

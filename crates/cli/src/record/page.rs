//! `record --ui`: the page's server. It runs in the recorder's process, because that process is
//! never recorded.

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fathom_extensions::Extensions;
use fathom_probe::{Command, Conditions};
use fathom_recorder::{Arrived, Control, Recorder, RunningTarget, Signals};
use fathom_server::{Access, Options, RecordingError, Recordings, Server, Tls};

use crate::args::RecordUiOptions;
use crate::exit::Failure;
use crate::ui;

/// How far the page's threads yield to the recorded program and the recorder, from which they must
/// not take CPU time.
const NICER: i32 = 5;
/// Memory limit of queries; the recorded program needs the rest.
const MEMORY_BYTES: u64 = 512 << 20;

/// The page of a recording.
pub struct Page {
    server: Server,
    /// Whether a client has stopped the recording.
    stopped: Arc<AtomicBool>,
}

/// The recording of this process, for clients of the page.
struct Own(Arc<AtomicBool>);

impl Recordings for Own {
    fn save(&self, session: &Path, by: Option<&str>) -> Result<PathBuf, RecordingError> {
        ui::save(session, by)
    }

    fn stop(&self, _session: &Path, by: Option<&str>) -> Result<(), RecordingError> {
        if !self.0.swap(true, Ordering::Relaxed) {
            errln!("fathom: {} stopped the recording", ui::client(by));
        }
        Ok(())
    }

    fn can_stop(&self) -> bool {
        true
    }
}

/// Signals, and the end that a client of the page asks for.
pub struct Controlled {
    pub signals: Signals,
    stopped: Option<Arc<AtomicBool>>,
}

impl Controlled {
    /// By `signals`, and by the clients of `page` if there is one.
    pub fn new(signals: Signals, page: Option<&Page>) -> Self {
        let stopped = page.map(|page| Arc::clone(&page.stopped));
        Self { signals, stopped }
    }
}

impl Control for Controlled {
    fn take(&mut self) -> io::Result<Vec<Arrived>> {
        self.signals.take()
    }

    fn wants_end(&mut self) -> bool {
        let stopped = self.stopped.as_ref();
        stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed))
    }

    fn wait(&mut self, time: Duration, also: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.signals.wait(time, also)
    }
}

/// The files that say which clients come, and how.
pub struct Clients {
    tls: Option<Tls>,
    access: Option<Access>,
}

impl Clients {
    /// Reads the files, before a session is made or replaced.
    pub fn read(options: &RecordUiOptions) -> Result<Self, Failure> {
        Ok(Self {
            tls: ui::tls(&options.transport)?,
            access: ui::access(options.access.as_deref())?,
        })
    }
}

impl Page {
    /// Serves the session of `recorder` and prints the address, if `--ui` is given.
    pub fn start(
        options: &RecordUiOptions,
        clients: Clients,
        extensions: &Extensions,
        recorder: &Recorder,
    ) -> Result<Option<Self>, Failure> {
        if !options.ui {
            return Ok(None);
        }
        let conditions = recorder.conditions();
        let stopped = Arc::new(AtomicBool::new(false));
        let server = Server::start(&Options {
            root: recorder.session().to_owned(),
            listen: options.listen,
            tls: clients.tls,
            access: clients.access,
            recordings: Some(Arc::new(Own(Arc::clone(&stopped)))),
            plain_http: options.transport.plain_http,
            memory_bytes: MEMORY_BYTES,
            nice: Some((conditions.nice + NICER).min(19)),
            panels: None,
            extensions: extensions.clone(),
        })
        .map_err(Failure::recording)?;
        ui::warn();
        // The command owns standard output.
        errln!("fathom: {}", server.url());
        if !options.no_open && server.is_open_to_its_user() && ui::has_desktop() {
            open(&server.url(), conditions);
        }
        Ok(Some(Self { server, stopped }))
    }

    /// Serves until Ctrl-C, or ends at once if the recorder was asked to end.
    pub fn stay(self, target: &RunningTarget, signals: &mut Signals) {
        if !target.told_to_end() {
            errln!(
                "fathom: the recording has ended; the page stays until Ctrl-C: {}",
                self.server.url()
            );
            while !signals
                .take()
                .is_ok_and(|all| all.iter().any(|signal| !signal.asks_to_save()))
            {
                if signals.wait(Duration::from_secs(1), None).is_err() {
                    break;
                }
            }
        }
        self.server.stop();
        ui::remove_opener();
    }
}

/// The browser must get the signal mask and the priority from before fathom changed them. If it
/// cannot be opened, the user can copy the address.
fn open(url: &str, conditions: Conditions) {
    let Ok(arguments) = ui::opener(url) else {
        return;
    };
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Ok(command) = Command::spawn(&arguments, conditions, |_| Ok(())) {
        std::thread::spawn(move || {
            let mut command = command;
            // The opener exits once the browser has the address.
            while command.try_wait().is_ok_and(|exit| exit.is_none()) {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }
}

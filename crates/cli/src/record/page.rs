//! `record --ui`: the page's server. It runs in the recorder's process, because that process is
//! never recorded.

use std::ffi::OsString;
use std::time::Duration;

use fathom_extensions::Extensions;
use fathom_probe::{Command, Conditions};
use fathom_recorder::{Recorder, RunningTarget, Signals};
use fathom_server::{Options, Server};

use crate::args::RecordUiOptions;
use crate::exit::Failure;
use crate::ui;

/// How far the page's threads yield to the recorded program and the recorder, from which they must
/// not take CPU time.
const NICER: i32 = 5;
/// Memory limit of queries; the recorded program needs the rest.
const MEMORY_BYTES: u64 = 512 << 20;

/// The page of a recording.
pub struct Page(Server);

impl Page {
    /// Serves the session of `recorder` and prints the address, if `--ui` is given.
    pub fn start(
        options: &RecordUiOptions,
        extensions: &Extensions,
        recorder: &Recorder,
    ) -> Result<Option<Self>, Failure> {
        if !options.ui {
            return Ok(None);
        }
        let conditions = recorder.conditions();
        let server = Server::start(&Options {
            root: recorder.session().to_owned(),
            listen: options.listen,
            tls: ui::tls(&options.transport)?,
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
        if !options.no_open && ui::has_desktop() {
            open(&server.url(), conditions);
        }
        Ok(Some(Self(server)))
    }

    /// Serves until Ctrl-C, or ends at once if the recorder was asked to end.
    pub fn stay(self, target: &RunningTarget, signals: &mut Signals) {
        if !target.told_to_end() {
            errln!(
                "fathom: the recording has ended; the page stays until Ctrl-C: {}",
                self.0.url()
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
        self.0.stop();
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

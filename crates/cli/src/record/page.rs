//! `record --ui`: the page's server, in the recorder's process, as what belongs to that is
//! never recorded.

use std::ffi::OsString;
use std::time::Duration;

use fathom_probe::{Command, Conditions};
use fathom_recorder::{Recorder, RunningTarget, Signals};
use fathom_server::{Options, Server};

use crate::args::RecordUiOptions;
use crate::exit::Failure;
use crate::ui;

/// How much less the page's threads matter than the recorded program's: they must take
/// time from neither that nor the recorder.
const NICER: i32 = 5;
/// Memory for queries, as the program that is recorded needs the rest.
const MEMORY_BYTES: u64 = 512 << 20;

/// The page of a recording.
pub struct Page(Server);

impl Page {
    /// Serves the session of `recorder` and prints the address, if that is asked for.
    pub fn start(options: &RecordUiOptions, recorder: &Recorder) -> Result<Option<Self>, Failure> {
        if !options.ui {
            return Ok(None);
        }
        let conditions = recorder.conditions();
        let server = Server::start(&Options {
            root: recorder.session().to_owned(),
            listen: options.listen,
            memory_bytes: MEMORY_BYTES,
            nice: Some((conditions.nice + NICER).min(19)),
            panels: None,
        })
        .map_err(Failure::recording)?;
        ui::warn(&server);
        // Standard output is the command's.
        eprintln!("fathom: {}", server.url());
        if !options.no_open && ui::has_desktop() {
            open(&server.url(), conditions);
        }
        Ok(Some(Self(server)))
    }

    /// Goes on until Ctrl-C, unless it was the recorder that was asked to end.
    pub fn stay(self, target: &RunningTarget, signals: &mut Signals) {
        if !target.told_to_end() {
            eprintln!(
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

/// A browser must have signals and priority as they were before fathom changed them. What
/// can't be opened can be copied.
fn open(url: &str, conditions: Conditions) {
    let Ok(arguments) = ui::opener(url) else {
        return;
    };
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Ok(command) = Command::spawn(&arguments, conditions, |_| Ok(())) {
        std::thread::spawn(move || {
            let mut command = command;
            // It ends when it has told the browser.
            while command.try_wait().is_ok_and(|exit| exit.is_none()) {
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }
}

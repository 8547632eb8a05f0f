//! `record --ui`: the page's server, in the recorder's process, as what belongs to that is
//! never recorded.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use fathom_probe::{Command, Conditions, Signals};
use fathom_server::{Options, Server};

use super::target::Target;
use crate::args_ui::RecordUiOptions;
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
    /// Serves the session in `output` and tells where, if that is asked for. What opens the
    /// browser gets the niceness and the score that fathom was started with.
    pub fn start(
        options: &RecordUiOptions,
        output: &Path,
        signals: &Signals,
        (nice, oom_score): (i32, Option<i32>),
    ) -> Result<Option<Self>, Failure> {
        if !options.ui {
            return Ok(None);
        }
        let server = Server::start(&Options {
            root: output.to_owned(),
            listen: options.listen,
            memory_bytes: MEMORY_BYTES,
            nice: Some((nice + NICER).min(19)),
        })
        .map_err(Failure::recording)?;
        ui::warn(&server);
        // Standard output is the command's.
        eprintln!("fathom: {}", server.url());
        if !options.no_open && ui::has_desktop() {
            open(&server.url(), signals, nice, oom_score);
        }
        Ok(Some(Self(server)))
    }

    /// Goes on until Ctrl-C, unless it was the recorder that was asked to end.
    pub fn stay(self, target: &Target, signals: &mut Signals) {
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
fn open(url: &str, signals: &Signals, nice: i32, oom_score: Option<i32>) {
    let Ok(arguments) = ui::opener(url) else {
        return;
    };
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let conditions = Conditions {
        user: None,
        preserve_environment: true,
        mask: signals.original(),
        nice,
        oom_score,
    };
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

//! Reports of a recording, during it and at its end.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use fathom_diagnose::{Diagnosis, Finding};
use fathom_model::meta::{Save, Totals};
use fathom_model::{escape, units};
use fathom_probe::{Arrived, InFlight, Signals, Whereabouts};

/// Receives events on the thread that records: slow code here fills the rings.
pub trait Observer {
    /// The user must know this: something is missing, or dangerous.
    fn warning(&mut self, text: &str);

    /// The user may want to know this.
    fn note(&mut self, _text: &str) {}

    /// The progress of the recording, ten times per second.
    fn progress(&mut self, _progress: &Progress) {}

    /// A copy of the session was made, or could not be.
    fn saved(&mut self, _save: &Save) {}

    /// A call has not returned for long, with `--save-when "in_flight > TIME"` or
    /// [`crate::Options::diagnose`]. Reported once for each call, while it lasts.
    fn stalled(&mut self, _stall: &Stall) {}

    /// A rule fires, with [`crate::Options::diagnose`].
    fn found(&mut self, _finding: &Finding) {}

    /// The target has ended. The session is completed next, which can take seconds.
    fn ended(&mut self) {}
}

/// Asks a recording to save or to end, in the form of signals.
pub trait Control {
    /// Signals that have arrived since the last time.
    ///
    /// # Errors
    /// End the recording.
    fn take(&mut self) -> io::Result<Vec<Arrived>>;

    /// Why to save what is kept now, without a signal; asked for at each turn.
    fn wants_save(&mut self) -> Option<String> {
        None
    }

    /// Whether the recording is to end now, without a signal, as after its duration; asked for at each
    /// turn.
    fn wants_end(&mut self) -> bool {
        false
    }

    /// Waits until a signal arrives, `also` becomes readable or time is over.
    ///
    /// # Errors
    /// End the recording.
    fn wait(&mut self, time: Duration, also: Option<BorrowedFd<'_>>) -> io::Result<()>;
}

impl Control for Signals {
    fn take(&mut self) -> io::Result<Vec<Arrived>> {
        Signals::take(self)
    }

    fn wait(&mut self, time: Duration, also: Option<BorrowedFd<'_>>) -> io::Result<()> {
        Signals::wait(self, time, also)
    }
}

/// A call that has not returned for long.
#[derive(Clone, Debug)]
pub struct Stall {
    /// The call.
    pub call: InFlight,
    /// How long it has taken so far.
    pub elapsed: Duration,
    /// Where its thread is.
    pub at: Whereabouts,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = i64::try_from(self.elapsed.as_nanos()).unwrap_or(i64::MAX);
        let InFlight {
            pid,
            tid,
            syscall,
            operation,
            ..
        } = self.call;
        let lacks = match operation {
            Some(_) => "completed",
            None => "returned",
        };
        write!(f, "{syscall}")?;
        if let Some(file) = &self.at.file {
            write!(f, " on {}", escape::bytes(file.as_os_str().as_bytes()))?;
        }
        write!(
            f,
            " by {} (process {pid}, thread {tid}) has not {lacks} for {}",
            escape::text(&self.at.comm),
            units::duration(ns)
        )?;
        match self.at.stack[..] {
            [] => Ok(()),
            _ => write!(f, "; in the kernel: {}", self.at.stack.join(" < ")),
        }
    }
}

/// How a recording is doing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Calls seen.
    pub seen: u64,
    /// Calls lost.
    pub lost: u64,
    /// Highest share of a ring that was ever in use, 0 to 1.
    pub ring_peak: f64,
    /// Bytes of the session on disk.
    pub bytes: u64,
    /// Bytes of compressed records that wait to be decoded and stored.
    pub waiting: u64,
}

/// The result of a recording.
#[derive(Debug)]
pub struct Summary {
    /// Counts.
    pub totals: Totals,
    /// Calls that found no room in the kernel's rings.
    pub lost_in_rings: u64,
    /// Bytes of the session on disk.
    pub bytes: u64,
    /// How long it took.
    pub duration: Duration,
    /// Time in the probes per call, nanoseconds.
    pub probe_ns_per_call: Option<f64>,
    /// The findings, with [`crate::Options::diagnose`].
    pub found: Option<Found>,
}

/// Findings in the rows as they were recorded.
#[derive(Debug)]
pub struct Found {
    /// The findings.
    pub diagnosis: Diagnosis,
    /// Rows that the rules had no time for.
    pub missed: u64,
}

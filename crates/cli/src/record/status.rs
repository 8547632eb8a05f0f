//! The status line while recording, and the summary after it.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_model::units;

use super::Summary;

/// How often the line is drawn.
const INTERVAL: Duration = Duration::from_millis(500);

/// Where a recording stands.
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Calls seen.
    pub seen: u64,
    /// Calls lost.
    pub lost: u64,
    /// Highest share of a ring in use, 0 to 1.
    pub ring: f64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// One line at the bottom of the terminal, drawn again and again.
pub struct StatusLine {
    enabled: bool,
    shown: bool,
    last: Option<(Instant, u64)>,
}

impl StatusLine {
    /// `enabled`: standard error is a terminal and nobody asked for quiet.
    pub fn new(enabled: bool) -> Self {
        Self {
            enabled,
            shown: false,
            last: None,
        }
    }

    /// Draws the line when it is time.
    pub fn show(&mut self, progress: &Progress) {
        if !self.enabled {
            return;
        }
        let rate = match self.last {
            None => 0.0,
            Some((at, _)) if at.elapsed() < INTERVAL => return,
            Some((at, seen)) => {
                progress.seen.saturating_sub(seen) as f64 / at.elapsed().as_secs_f64()
            }
        };
        self.last = Some((Instant::now(), progress.seen));
        let mut out = std::io::stderr().lock();
        // A terminal that is gone is no reason to end the recording.
        write!(
            out,
            "\r\x1b[Kfathom: {:.1} s  {} events/s  lost {}  buffer {:.0} %  {} on disk",
            progress.elapsed.as_secs_f64(),
            count(rate as u64),
            count(progress.lost),
            progress.ring * 100.0,
            bytes(progress.bytes),
        )
        .and_then(|()| out.flush())
        .ok();
        self.shown = true;
    }

    /// Prints a note above the line.
    pub fn note(&mut self, text: &str) {
        if self.enabled {
            self.clear();
            eprintln!("fathom: {text}");
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
            self.shown = false;
        }
    }
}

/// Says what was recorded. Without a terminal only what somebody must know:
/// where the session lies when fathom chose the name, and losses.
pub fn print_summary(output: &Path, named: bool, summary: &Summary) {
    use std::io::IsTerminal;
    let totals = &summary.totals;
    let session = output.display();
    let terminal = std::io::stderr().is_terminal();
    if terminal || !named || totals.lost > 0 {
        let per_row = if totals.stored > 0 {
            format!(
                ", {:.1} bytes a call",
                summary.bytes as f64 / totals.stored as f64
            )
        } else {
            String::new()
        };
        eprintln!(
            "fathom: {} calls in {:.1} s, {} stored, {} lost, in {session} ({}{per_row})",
            count(totals.seen),
            summary.duration.as_secs_f64(),
            count(totals.stored),
            count(totals.lost),
            bytes(summary.bytes),
        );
    }
    if totals.lost > 0 {
        let advice = if summary.lost_in_rings > 0 {
            "; a larger --ring-mib loses fewer"
        } else {
            ""
        };
        eprintln!(
            "fathom: counts, bytes and latencies of the lost calls are in table losses{advice}"
        );
    }
    if terminal {
        let records = &totals.records;
        eprintln!(
            "fathom: from the kernel came {} records of calls, {} of files, {} of tasks",
            count(records.calls),
            count(records.files),
            count(records.tasks),
        );
        if let Some(ns) = summary.probe_ns_per_call {
            eprintln!("fathom: the probes took {ns:.0} ns a recorded call");
        }
        eprintln!("fathom: next: fathom report {session}");
    }
}

fn count(number: u64) -> String {
    units::count(number.try_into().unwrap_or(i64::MAX))
}

fn bytes(number: u64) -> String {
    units::bytes(number.try_into().unwrap_or(i64::MAX))
}

//! Progress of a recording on standard error: a status line, messages, and a summary.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_diagnose::{Diagnosis, Finding, Group};
#[cfg(feature = "analysis")]
use fathom_extensions::Extensions;
use fathom_model::escape::{self, shell_words};
use fathom_model::meta::Save;
use fathom_model::units;
#[cfg(feature = "analysis")]
use fathom_recorder::Found;
use fathom_recorder::{Observer, Progress, Stall, Summary};
use fathom_session::Session;

/// How often the status line is drawn.
const INTERVAL: Duration = Duration::from_millis(500);
/// A session recorded without the rules is diagnosed at its end if it has at most this many calls,
/// which takes about a fifth of a second.
const IN_PASSING: u64 = 100_000;

/// Standard error; on a terminal its last line is a status line that is redrawn.
pub struct Terminal {
    quiet: bool,
    interactive: bool,
    line_shown: bool,
    last: Option<(Instant, u64)>,
}

impl Terminal {
    /// `quiet`: only warnings.
    pub fn new(quiet: bool) -> Self {
        Self {
            quiet,
            interactive: !quiet && std::io::stderr().is_terminal(),
            line_shown: false,
            last: None,
        }
    }

    fn print(&mut self, text: &str) {
        self.clear();
        errln!("fathom: {text}");
    }

    fn clear(&mut self) {
        if self.line_shown {
            err!("\r\x1b[K");
            self.line_shown = false;
        }
    }

    /// Adds what the user's rules find in a session that `record --diagnose` has closed. They are SQL
    /// over all rows, so they cannot run while rows come in.
    #[cfg(feature = "analysis")]
    pub fn run_rules(&mut self, session: &Path, extensions: &Extensions, found: &mut Found) {
        if !extensions.has_rules() {
            return;
        }
        let before: Vec<_> = found.diagnosis.findings.iter().map(|f| f.rule).collect();
        let run = Session::open(session)
            .map_err(anyhow::Error::from)
            .and_then(|opened| Ok(extensions.diagnose(&opened, &mut found.diagnosis, &|| true)?));
        if let Err(error) = run {
            self.print(&format!("cannot run your own rules: {error:#}"));
        }
        let own = |finding: &&Finding| !before.contains(&finding.rule);
        for finding in found.diagnosis.findings.iter().filter(own) {
            self.found(finding);
        }
    }

    /// Prints the summary. Without a terminal it prints only what the user must know: the session's
    /// path if fathom chose it, losses, and requested findings.
    pub fn print_summary(&mut self, session: &Path, named: bool, summary: &Summary) {
        if self.quiet {
            return;
        }
        let totals = &summary.totals;
        if self.interactive || !named || totals.lost > 0 {
            let per_row = if totals.stored > 0 {
                format!(
                    ", {:.1} bytes per call",
                    summary.bytes as f64 / totals.stored as f64
                )
            } else {
                String::new()
            };
            self.print(&format!(
                "{} calls in {:.1} s, {}, in {} ({}{per_row})",
                count(totals.seen),
                summary.duration.as_secs_f64(),
                totals.parts_text(),
                session.display(),
                bytes(summary.bytes),
            ));
        }
        if totals.lost > 0 {
            let advice = if summary.lost_in_rings > 0 {
                "; a larger --ring-mib reduces losses"
            } else {
                ""
            };
            self.print(&format!(
                "table losses has counts, bytes, and latencies of the lost calls{advice}"
            ));
        }
        if self.interactive {
            let records = &totals.records;
            self.print(&format!(
                "received {} call, {} file, and {} task records from the kernel",
                count(records.calls),
                count(records.files),
                count(records.tasks),
            ));
            if let Some(ns) = summary.probe_ns_per_call {
                self.print(&format!("probe overhead: {ns:.0} ns per recorded call"));
            }
            self.print(&format!("next: fathom report {}", session.display()));
        }
        if let Some(found) = &summary.found {
            let mut line = findings(&found.diagnosis, session);
            if found.missed > 0 {
                line.push_str(&format!(
                    " checks all rows; the rules have skipped {} of them so far",
                    count(found.missed)
                ));
            }
            self.print(&line);
        } else if self.interactive && totals.stored <= IN_PASSING {
            let diagnosis = Session::open(session).map(|opened| fathom_diagnose::diagnose(&opened));
            if let Ok(Ok(diagnosis)) = diagnosis {
                self.print(&findings(&diagnosis, session));
            }
        }
    }
}

impl Observer for Terminal {
    fn warning(&mut self, text: &str) {
        self.print(text);
    }

    fn note(&mut self, text: &str) {
        if self.interactive {
            self.print(text);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if !self.interactive {
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
        let waiting = match progress.waiting {
            0 => String::new(),
            n => format!("  {} waiting", bytes(n)),
        };
        let mut out = std::io::stderr().lock();
        // If the terminal has gone, the recording continues.
        write!(
            out,
            "\r\x1b[Kfathom: {:.1} s  {} events/s  lost {}  buffer {:.0} %  {} on disk{waiting}",
            progress.elapsed.as_secs_f64(),
            count(rate as u64),
            count(progress.lost),
            progress.ring_peak * 100.0,
            bytes(progress.bytes),
        )
        .and_then(|()| out.flush())
        .ok();
        self.line_shown = true;
    }

    fn saved(&mut self, save: &Save) {
        match &save.error {
            Some(error) => self.print(&format!("cannot save a snapshot: {error}")),
            None if self.quiet => {}
            None => self.print(&format!("saved {} ({})", save.path, save.because)),
        }
    }

    fn stalled(&mut self, stall: &Stall) {
        self.print(&format!("in flight: {stall}"));
    }

    fn found(&mut self, finding: &Finding) {
        if !self.quiet {
            let title = escape::text(&finding.title);
            let severity = finding.severity.name();
            self.print(&format!("found {} ({severity}): {title}", finding.rule));
        }
    }

    fn ended(&mut self) {
        self.clear();
    }
}

/// One line about the findings of a session.
fn findings(diagnosis: &Diagnosis, session: &Path) -> String {
    let all = diagnosis.findings.len() + diagnosis.more.iter().map(|m| m.findings).sum::<usize>();
    let risky = diagnosis
        .findings
        .iter()
        .filter(|f| f.group == Group::Correctness)
        .count();
    let findings = match all {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{} findings", count(n as u64)),
    };
    let risk = match risky {
        0 => String::new(),
        n => format!(", {} with data at risk", count(n as u64)),
    };
    let command = shell_words(["fathom", "diagnose", &session.to_string_lossy()]);
    format!("{findings}{risk}: {command}")
}

fn count(number: u64) -> String {
    units::count(number.try_into().unwrap_or(i64::MAX))
}

fn bytes(number: u64) -> String {
    units::bytes(number.try_into().unwrap_or(i64::MAX))
}

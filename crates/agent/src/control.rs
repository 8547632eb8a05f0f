//! Requests to a recording of the agent: by signals, and by findings.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_diagnose::{Finding, Severity};
use fathom_recorder::{Arrived, Control, Signals};

use crate::config::{Config, Sessions};
use crate::status::Status;

/// Why a recording ended.
#[derive(Debug, Default)]
pub enum Wish {
    /// The agent is to end.
    #[default]
    End,
    /// Another recording is to start, by another configuration.
    Reload(Box<Config>),
}

/// Reads the configuration again; the error is a message.
pub type Reread<'a> = Box<dyn Fn() -> Result<Config, String> + 'a>;

/// SIGHUP: from a terminal that goes away it ends the agent.
fn asks_to_reload(signal: &Arrived) -> bool {
    signal.number == rustix::process::Signal::HUP.as_raw() && !signal.from_terminal
}

/// Findings that are worth a save.
#[derive(Clone, Default)]
pub struct Findings(Rc<RefCell<FindingsState>>);

#[derive(Default)]
struct FindingsState {
    least: Option<Severity>,
    pause: Duration,
    last: Option<Instant>,
    wanted: Option<String>,
}

impl Findings {
    /// A rule found a problem.
    pub fn found(&self, finding: &Finding) {
        self.consider(finding.severity, finding.rule, Instant::now());
    }

    fn consider(&self, severity: Severity, rule: &str, now: Instant) {
        let mut state = self.0.borrow_mut();
        let severe = state.least.is_some_and(|least| severity >= least);
        let paused = state
            .last
            .is_some_and(|last| now.saturating_duration_since(last) < state.pause);
        if severe && !paused {
            state.last = Some(now);
            state.wanted = Some(format!("finding {rule}"));
        }
    }

    fn take(&self) -> Option<String> {
        self.0.borrow_mut().wanted.take()
    }
}

/// Signals and findings.
pub struct AgentControl<'a> {
    signals: Signals,
    reread: Reread<'a>,
    status: Arc<Mutex<Status>>,
    wish: Wish,
    findings: Findings,
}

impl<'a> AgentControl<'a> {
    /// `signals` are the signals of the process; `status` gets messages for the user.
    pub fn new(signals: Signals, reread: Reread<'a>, status: Arc<Mutex<Status>>) -> Self {
        Self {
            signals,
            reread,
            status,
            wish: Wish::End,
            findings: Findings::default(),
        }
    }

    /// A recording begins.
    pub fn begin(&mut self, sessions: &Sessions) {
        let mut state = self.findings.0.borrow_mut();
        state.least = sessions.save_on;
        state.pause = sessions.pause;
    }

    /// Receives findings.
    pub fn findings(&self) -> Findings {
        self.findings.clone()
    }

    /// The signals.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Why the recording ended.
    pub fn take_wish(&mut self) -> Wish {
        std::mem::take(&mut self.wish)
    }

    /// Whether a signal is for the recording: one to reload does not where the configuration is
    /// wrong.
    fn passes(&mut self, signal: &Arrived) -> bool {
        if signal.asks_to_save() {
            return true;
        }
        self.wish = match asks_to_reload(signal).then(|| (self.reread)()) {
            None => Wish::End,
            Some(Ok(config)) => Wish::Reload(Box::new(config)),
            Some(Err(error)) => {
                let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
                status.say(format!(
                    "{error}; the agent goes on with the configuration from before"
                ));
                return false;
            }
        };
        true
    }
}

impl Control for AgentControl<'_> {
    fn take(&mut self) -> io::Result<Vec<Arrived>> {
        let mut arrived = self.signals.take()?;
        arrived.retain(|signal| self.passes(signal));
        Ok(arrived)
    }

    fn wants_save(&mut self) -> Option<String> {
        self.findings.take()
    }

    fn wait(&mut self, time: Duration, also: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.signals.wait(time, also)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severe_findings_save_now_and_then() {
        let findings = Findings::default();
        let now = Instant::now();
        let consider = |severity, after| {
            findings.consider(severity, "sync-storm", now + Duration::from_secs(after));
            findings.take()
        };
        assert_eq!(consider(Severity::High, 0), None, "not asked for");
        {
            let mut state = findings.0.borrow_mut();
            state.least = Some(Severity::Medium);
            state.pause = Duration::from_secs(60);
        }
        assert_eq!(consider(Severity::Low, 1), None);
        let because = Some("finding sync-storm".to_owned());
        assert_eq!(consider(Severity::Medium, 2), because);
        assert_eq!(consider(Severity::High, 61), None);
        assert_eq!(consider(Severity::High, 62), because);
    }

    #[test]
    fn a_terminal_that_goes_away_is_no_wish_to_reload() {
        let hup = |from_terminal| Arrived {
            number: rustix::process::Signal::HUP.as_raw(),
            from_terminal,
        };
        assert!(asks_to_reload(&hup(false)));
        assert!(!asks_to_reload(&hup(true)));
    }
}

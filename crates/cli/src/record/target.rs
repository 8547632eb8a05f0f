//! What is recorded, and when it has come to its end.

use std::os::fd::BorrowedFd;

use super::status::StatusLine;
use fathom_probe::{Arrived, Command, CommandExit, Probe, Signals, system};

/// Whether the recording is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// A command, or processes that run on their own.
pub struct Target {
    command: Option<Command>,
    exit: Option<CommandExit>,
    cpu_ns: Option<u64>,
    passed_on: bool,
    /// Somebody asked for the end by a signal, and not at the terminal.
    told_to_end: bool,
    open_ended: bool,
}

impl Target {
    /// A command that was started.
    pub fn command(command: Command) -> Self {
        Self {
            command: Some(command),
            exit: None,
            cpu_ns: None,
            passed_on: false,
            told_to_end: false,
            open_ended: false,
        }
    }

    /// Tasks that run on their own. `open_ended`: others may come when all have
    /// ended.
    pub fn running(open_ended: bool) -> Self {
        Self {
            command: None,
            exit: None,
            cpu_ns: None,
            passed_on: false,
            told_to_end: false,
            open_ended,
        }
    }

    /// A descriptor that becomes readable when the command ends; none once it
    /// has.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.command
            .as_ref()
            .filter(|_| self.exit.is_none())
            .map(Command::pidfd)
    }

    /// Exit status of the command.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit.map(CommandExit::status)
    }

    /// CPU time of the command and the descendants that it waited for.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.cpu_ns
    }

    /// Whether a signal that was sent by somebody asked for the end.
    #[cfg_attr(not(feature = "analyse"), allow(dead_code))] // The page asks.
    pub fn told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// Looks what has become of the target and acts on signals.
    pub fn update(
        &mut self,
        probe: &Probe,
        signals: &[Arrived],
        status: &mut StatusLine,
    ) -> anyhow::Result<Ended> {
        let live = probe.live_tasks();
        self.told_to_end |= signals.iter().any(|signal| !signal.from_terminal);
        let Some(command) = &mut self.command else {
            return Ok(if live == 0 && !self.open_ended || !signals.is_empty() {
                Ended::Yes
            } else {
                Ended::No
            });
        };
        if self.exit.is_none() {
            self.exit = command.try_wait()?;
            if self.exit.is_some() {
                self.cpu_ns = Some(system::children_cpu_ns());
                if probe.live_tasks() > 0 {
                    status.note(
                        "the command has ended, processes that it started have not: recording \
                         until they do; Ctrl-C to end it now",
                    );
                }
            }
        }
        for signal in signals {
            if self.exit.is_some() || self.passed_on {
                return Ok(Ended::Yes);
            }
            if !signal.from_terminal {
                command.signal(signal.number);
                self.passed_on = true;
            }
        }
        // Descendants may outlive the command.
        let ended = self.exit.is_some() && probe.live_tasks() == 0;
        Ok(if ended { Ended::Yes } else { Ended::No })
    }

    /// Waits for the command if it goes on after the recording, and returns
    /// its exit status.
    pub fn wait_for_command(&mut self, signals: &mut Signals) -> Option<u8> {
        let command = self.command.as_mut()?;
        loop {
            if let Some(exit) = self.exit {
                return u8::try_from(exit.status()).ok();
            }
            match command.try_wait() {
                Ok(exit) => self.exit = exit,
                Err(_) => return None,
            }
            let asked = signals.take().unwrap_or_default();
            for signal in asked.iter().filter(|signal| !signal.asks_to_save()) {
                if self.passed_on && !signal.from_terminal {
                    // Asked twice: leave the command to itself.
                    return Some(128u8.wrapping_add(signal.number as u8));
                }
                if !signal.from_terminal {
                    command.signal(signal.number);
                    self.passed_on = true;
                }
            }
            if self.exit.is_none() {
                let wait = std::time::Duration::from_secs(1);
                signals.wait(wait, Some(command.pidfd())).ok();
            }
        }
    }
}

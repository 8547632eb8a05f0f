//! A target that runs, and when it has come to its end.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use fathom_probe::{Arrived, Command, CommandExit, PreloadFiles, system};

use crate::{Control, Observer};

/// A command, or tasks that run on their own.
pub struct RunningTarget {
    command: Option<Command>,
    exit: Option<CommandExit>,
    cpu_ns: Option<u64>,
    passed_on: bool,
    told_to_end: bool,
    open_ended: bool,
    /// The library that the command has loaded, for as long as programs may look for it.
    preloaded: Option<Arc<PreloadFiles>>,
    /// Whether recorded tasks were alive when that was last looked at.
    others: bool,
}

impl RunningTarget {
    /// A command that was started.
    pub(crate) fn command(command: Command, preloaded: Option<Arc<PreloadFiles>>) -> Self {
        let mut target = Self::tasks(false);
        target.command = Some(command);
        target.preloaded = preloaded;
        target
    }

    /// Tasks that run on their own. `open_ended`: others may come when all have
    /// ended.
    pub(crate) fn tasks(open_ended: bool) -> Self {
        Self {
            command: None,
            exit: None,
            cpu_ns: None,
            passed_on: false,
            told_to_end: false,
            open_ended,
            preloaded: None,
            others: true,
        }
    }

    /// A descriptor that becomes readable when the command ends; none once it
    /// has.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.command
            .as_ref()
            .filter(|_| self.exit.is_none())
            .map(Command::pidfd)
    }

    /// Exit status of the command.
    pub(crate) fn exit_status(&self) -> Option<i32> {
        self.exit.map(CommandExit::status)
    }

    /// CPU time of the command and the descendants that it waited for.
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        self.cpu_ns
    }

    /// Whether a signal asked for the end that did not come from the terminal.
    pub fn told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// Checks the state of the target and handles signals; true if the recording is over. `live` is
    /// the number of recorded tasks.
    pub(crate) fn has_ended(
        &mut self,
        live: impl Fn() -> u64,
        signals: &[Arrived],
        observer: &mut dyn Observer,
    ) -> io::Result<bool> {
        self.told_to_end |= signals.iter().any(|signal| !signal.from_terminal);
        let Some(command) = &mut self.command else {
            return Ok(live() == 0 && !self.open_ended || !signals.is_empty());
        };
        if self.exit.is_none() {
            self.exit = command.try_wait()?;
            if self.exit.is_some() {
                self.cpu_ns = Some(system::children_cpu_ns());
                if live() > 0 {
                    observer.note(
                        "the command has ended, processes that it started have not: recording \
                         until they do; Ctrl-C to end it now",
                    );
                }
            }
        }
        for signal in signals {
            if self.exit.is_some() || self.passed_on {
                return Ok(true);
            }
            if !signal.from_terminal {
                command.signal(signal.number);
                self.passed_on = true;
            }
        }
        // Descendants may outlive the command.
        self.others = live() > 0;
        Ok(self.exit.is_some() && !self.others)
    }

    /// Waits for the command if it goes on after the recording, passes signals on to it, and
    /// returns its exit status; none without a command.
    pub fn wait(&mut self, control: &mut dyn Control) -> Option<u8> {
        let command = self.command.as_mut()?;
        loop {
            if let Some(exit) = self.exit {
                return u8::try_from(exit.status()).ok();
            }
            match command.try_wait() {
                Ok(exit) => self.exit = exit,
                Err(_) => return None,
            }
            let asked = control.take().unwrap_or_default();
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
                let wait = Duration::from_secs(1);
                control.wait(wait, Some(command.pidfd())).ok();
            }
        }
    }
}

impl Drop for RunningTarget {
    fn drop(&mut self) {
        if let Some(files) = &self.preloaded
            && (self.exit.is_none() || self.others)
        {
            files.leave_object();
        }
    }
}

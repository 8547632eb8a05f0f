//! Supervision of a running query: Ctrl-C stops it, and a slow query shows on a terminal that it is
//! running.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_probe::Signals;
use fathom_query::QueryError;
use fathom_query::worker::Killer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{EventfdFlags, eventfd};

use crate::exit::Failure;

/// Time after which the display of a running query appears.
const QUIET: Duration = Duration::from_secs(1);
/// The longest time that pending output may delay the exit of this process.
const GRACE: Duration = Duration::from_secs(2);
/// Interval between checks of the signals.
const TURN: Duration = Duration::from_millis(50);

/// Signals, blocked before any thread starts, so that all threads inherit the mask.
pub struct Interrupt(Signals);

impl Interrupt {
    /// Blocks the signals that would end the program.
    pub fn new() -> Result<Self, Failure> {
        Signals::block().map(Self).map_err(Failure::input)
    }

    /// Supervises a query until the returned guard is dropped.
    pub fn watch(self, query: Killer) -> Result<Watch, Failure> {
        let over =
            eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Failure::input(io::Error::from(e)))?;
        let state = Arc::new(State {
            ended: AtomicBool::new(false),
            over,
            rows: AtomicBool::new(false),
            signal: AtomicI32::new(0),
        });
        let shared = state.clone();
        let thread = std::thread::Builder::new()
            .name("query-watch".into())
            .spawn(move || run(self.0, &query, &shared))
            .map_err(Failure::input)?;
        Ok(Watch {
            state,
            thread: Some(thread),
        })
    }
}

struct State {
    /// The query has ended.
    ended: AtomicBool,
    /// Readable once it has, so that its end need not wait for the thread's next turn.
    over: OwnedFd,
    /// The first rows are there.
    rows: AtomicBool,
    /// The signal that came, or 0.
    signal: AtomicI32,
}

/// The thread that supervises a query.
pub struct Watch {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Turns `error` into the failure to report: if a signal stopped the query, with the exit
    /// status of that signal.
    pub fn failure(&self, error: QueryError) -> Failure {
        match self.state.signal.load(Ordering::Relaxed) {
            0 => Failure::input(error),
            signal => Failure::with_status(128 + signal, error),
        }
    }

    /// Rows are there: ends the display.
    pub fn rows_are_there(&self) {
        self.state.rows.store(true, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.state.over, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic and ends at once, or within one interval when the write failed.
            let _ = thread.join();
        }
    }
}

fn run(mut signals: Signals, query: &Killer, state: &State) {
    let began = Instant::now();
    let mut display: Option<ProgressBar> = None;
    let mut stopped: Option<Instant> = None;
    while !state.ended.load(Ordering::Relaxed) {
        // If waiting fails, the query continues without supervision.
        let _ = signals.wait(TURN, Some(state.over.as_fd()));
        let arrived = signals.take().unwrap_or_default();
        if let Some(first) = arrived.iter().find(|signal| !signal.asks_to_save()) {
            state.signal.store(first.number, Ordering::Relaxed);
            if stopped.is_some() {
                finish(&mut display);
                exit(128 + first.number);
            }
            stopped = Some(Instant::now());
        }
        if let Some(since) = stopped {
            query.kill();
            if since.elapsed() > GRACE {
                finish(&mut display);
                exit(128 + state.signal.load(Ordering::Relaxed));
            }
        }
        if state.rows.load(Ordering::Relaxed) {
            finish(&mut display);
        } else if began.elapsed() > QUIET {
            display.get_or_insert_with(spinner).tick();
        }
    }
    finish(&mut display);
}

fn finish(display: &mut Option<ProgressBar>) {
    if let Some(display) = display.take() {
        display.finish_and_clear();
    }
}

/// Invisible if standard error is not a terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let template = "fathom: {spinner} the query is running, {elapsed} (Ctrl-C stops it)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_elapsed(QUIET)
}

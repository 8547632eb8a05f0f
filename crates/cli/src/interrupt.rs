//! While a query runs: Ctrl-C stops it, and one that takes long says on a terminal that
//! it is at work.

use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_probe::Signals;
use fathom_query::QueryError;
use fathom_query::worker::Killer;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::exit::Failure;

/// How long a query may take before anything is said of it.
const QUIET: Duration = Duration::from_secs(1);
/// How long what is written may keep this process from ending.
const GRACE: Duration = Duration::from_secs(2);
/// How often the signals are looked at.
const TURN: Duration = Duration::from_millis(50);

/// Signals, from before any thread is started: those inherit the mask.
pub struct Interrupt(Signals);

impl Interrupt {
    /// Holds the signals that end a program back.
    pub fn new() -> Result<Self, Failure> {
        Signals::block().map(Self).map_err(Failure::input)
    }

    /// Watches over a query until what is returned is dropped.
    pub fn watch(self, query: Killer) -> Result<Watch, Failure> {
        let state = Arc::new(State::default());
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

#[derive(Default)]
struct State {
    /// The query has ended.
    over: AtomicBool,
    /// The first rows are there.
    rows: AtomicBool,
    /// The signal that came, or 0.
    signal: AtomicI32,
}

/// The thread that watches over a query.
pub struct Watch {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// The failure that `error` is: when a signal stopped the query, with the status that
    /// the signal gives.
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
        self.state.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and ends within a turn.
            let _ = thread.join();
        }
    }
}

fn run(mut signals: Signals, query: &Killer, state: &State) {
    let began = Instant::now();
    let mut display: Option<ProgressBar> = None;
    let mut stopped: Option<Instant> = None;
    while !state.over.load(Ordering::Relaxed) {
        // A failure to wait is no reason to end the query: it goes on without.
        let _ = signals.wait(TURN, None);
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

/// Invisible where standard error is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let template = "fathom: {spinner} the query is running, {elapsed} (Ctrl-C stops it)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_elapsed(QUIET)
}

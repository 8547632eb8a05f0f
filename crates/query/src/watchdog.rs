//! The time limit of a query: a thread that interrupts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use duckdb::InterruptHandle;

/// Interrupts a connection when the time is over; dropped before, it does
/// nothing.
pub(crate) struct Watchdog {
    fired: Arc<AtomicBool>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the clock. Without a limit there is no thread.
    pub fn start(limit: Option<Duration>, handle: Arc<InterruptHandle>) -> std::io::Result<Self> {
        let fired = Arc::new(AtomicBool::new(false));
        let Some(limit) = limit else {
            return Ok(Self {
                fired,
                stop: None,
                thread: None,
            });
        };
        let (stop, stopped) = mpsc::channel();
        let flag = fired.clone();
        let thread = std::thread::Builder::new()
            .name("query-limit".into())
            .spawn(move || {
                let mut wait = limit;
                // The interrupt is lost when it falls before the database begins to
                // run the query, so it is repeated until the query is given up.
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    flag.store(true, Ordering::Relaxed);
                    handle.interrupt();
                    wait = Duration::from_millis(20);
                }
            })?;
        Ok(Self {
            fired,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Whether the time is over.
    pub fn fired(&self) -> bool {
        self.fired.load(Ordering::Relaxed)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It ends as soon as the channel is closed; it cannot panic.
            let _ = thread.join();
        }
    }
}

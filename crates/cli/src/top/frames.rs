//! Frames of `fathom top`: the recording thread makes them for the thread that shows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use fathom_probe::monotonic_ns;
use fathom_recorder::{RecordError, RowStream, Stall};
use fathom_top::{Frame, Stalled, Tally};

/// A request to the recording thread.
enum Ask {
    Frame(Sender<Frame>),
    /// The last frame, which includes everything that the kernel has recorded.
    Last(Sender<Frame>),
}

/// Requests frames from the recording thread.
pub struct Frames {
    asks: Sender<Ask>,
    ended: Arc<AtomicBool>,
}

impl Frames {
    /// Whether there are no more frames.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The interval that ends now.
    pub fn next(&self) -> Result<Frame, RecorderEnded> {
        self.ask(Ask::Frame)
    }

    /// The last interval, after which nothing is recorded.
    pub fn last(&self) -> Result<Frame, RecorderEnded> {
        self.ask(Ask::Last)
    }

    fn ask(&self, ask: fn(Sender<Frame>) -> Ask) -> Result<Frame, RecorderEnded> {
        let (to, from) = channel();
        self.asks.send(ask(to)).map_err(|_| RecorderEnded)?;
        from.recv().map_err(|_| RecorderEnded)
    }
}

/// The recording thread has ended; its result says why.
#[derive(Debug, thiserror::Error)]
#[error("the recording has ended")]
pub struct RecorderEnded;

/// Adds rows up, on the thread that opened their stream.
pub struct Work {
    rows: RowStream,
    tally: Tally,
    asks: Receiver<Ask>,
    ended: Arc<AtomicBool>,
}

impl Work {
    /// Runs `work` on the rows, and sends the results to the thread that requests them.
    pub fn new(rows: RowStream, first: Duration, interval: Duration) -> (Self, Frames) {
        let (asks, from) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let work = Self {
            rows,
            tally: Tally::new(monotonic_ns(), nanoseconds(first), nanoseconds(interval)),
            asks: from,
            ended: Arc::clone(&ended),
        };
        (work, Frames { asks, ended })
    }

    /// Works until the other side has gone.
    pub fn run(mut self) -> Result<(), RecordError> {
        let Self {
            rows,
            tally,
            asks,
            ended,
        } = &mut self;
        loop {
            let mut add = |batches| tally.add(batches);
            rows.drain(&mut add);
            if rows.has_ended() {
                ended.store(true, Ordering::Relaxed);
            }
            let (to, last) = match asks.recv_timeout(RowStream::INTERVAL) {
                Ok(Ask::Frame(to)) => (to, false),
                Ok(Ask::Last(to)) => (to, true),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            // Nothing lists them once the recording has stopped.
            let stalls = rows.stalls().ok();
            match last {
                true => rows.stop(&mut add)?,
                false => rows.hand_over(&mut add),
            }
            let (seen, lost) = rows.counts();
            let frame = Frame {
                stalled: stalls.map(|stalls| stalls.iter().map(stalled).collect()),
                ..tally.cut(monotonic_ns(), seen, lost)
            };
            to.send(frame).ok();
            if last {
                return Ok(());
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn stalled(stall: &Stall) -> Stalled {
    let mut without_stack = stall.clone();
    let stack = std::mem::take(&mut without_stack.at.stack);
    Stalled {
        text: without_stack.to_string(),
        stack,
        call: stall.call.syscall,
        pid: stall.call.pid,
        tid: stall.call.tid,
        elapsed_ns: nanoseconds(stall.elapsed),
    }
}

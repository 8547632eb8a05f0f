//! The thread that drains the rings and adds rows up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use fathom_decode::Merge;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::raw::RawChunk;
use fathom_probe::{Probe, ProbeError, monotonic_ns};
use fathom_session::REFRESH;
use fathom_top::{Frame, Tally};

use crate::record::{BUSY, IN_FLIGHT_NS};
use crate::stages::{BATCH_ROWS, FILES_OF_A_RING};

/// What is asked of the thread.
enum Ask {
    /// A frame.
    Frame(Sender<Frame>),
    /// The last one: with everything that the kernel has recorded.
    Last(Sender<Frame>),
}

/// Asks the thread that drains the rings.
pub struct Feed {
    asks: Sender<Ask>,
    ended: Arc<AtomicBool>,
}

impl Feed {
    /// Whether nothing more will come.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The interval that ends now.
    pub fn frame(&self) -> Result<Frame, Gone> {
        self.ask(Ask::Frame)
    }

    /// The last interval, after which nothing is recorded.
    pub fn last(&self) -> Result<Frame, Gone> {
        self.ask(Ask::Last)
    }

    fn ask(&self, ask: fn(Sender<Frame>) -> Ask) -> Result<Frame, Gone> {
        let (to, from) = channel();
        self.asks.send(ask(to)).map_err(|_| Gone)?;
        from.recv().map_err(|_| Gone)
    }
}

/// The thread that drains the rings has ended, and knows why.
#[derive(Debug, thiserror::Error)]
#[error("nothing is recorded any more")]
pub struct Gone;

/// What drains the rings: on the thread that has the probe.
pub struct Work {
    probe: Probe,
    merge: Merge,
    enricher: Enricher,
    tally: Tally,
    asks: Receiver<Ask>,
    ended: Arc<AtomicBool>,
    open_ended: bool,
}

impl Work {
    /// Work on a probe that is attached, and what asks for its results; `tasks` are
    /// those that run already. `open_ended`: others may come when all have ended.
    pub fn new(probe: Probe, tasks: RawChunk, open_ended: bool) -> (Self, Feed) {
        let (asks, from) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let mut merge = Merge::new();
        merge.push(tasks);
        let work = Self {
            probe,
            merge,
            enricher: Enricher::new(EnrichOptions {
                max_files: FILES_OF_A_RING,
                refresh_ns: Some(REFRESH.as_nanos() as u64),
                ..EnrichOptions::default()
            }),
            tally: Tally::new(monotonic_ns()),
            asks: from,
            ended: Arc::clone(&ended),
            open_ended,
        };
        (work, Feed { asks, ended })
    }

    /// Works until nobody asks any more.
    pub fn run(mut self) -> Result<(), ProbeError> {
        loop {
            self.drain(monotonic_ns().saturating_sub(IN_FLIGHT_NS));
            if !self.open_ended && self.probe.live_tasks() == 0 {
                self.ended.store(true, Ordering::Relaxed);
            }
            match self.asks.recv_timeout(BUSY) {
                Ok(Ask::Frame(to)) => {
                    self.hand_over();
                    to.send(self.frame()).ok();
                }
                Ok(Ask::Last(to)) => {
                    self.probe.stop()?;
                    self.drain(u64::MAX);
                    let Self {
                        merge, enricher, ..
                    } = &mut self;
                    merge.drain_all(|cpu, event| enricher.event(cpu, event));
                    enricher.finish();
                    self.hand_over();
                    to.send(self.frame()).ok();
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn drain(&mut self, watermark_ns: u64) {
        let mut chunks = Vec::new();
        while let Some(buffer) = self.merge.spare_buffer() {
            self.probe.recycle(buffer);
        }
        self.probe.drain(&mut chunks);
        for chunk in chunks {
            self.merge.push(chunk);
        }
        let Self {
            merge,
            enricher,
            tally,
            ..
        } = self;
        merge.drain_until(watermark_ns, |cpu, event| {
            enricher.event(cpu, event);
            if enricher.pending_rows() >= BATCH_ROWS {
                add(enricher, tally);
            }
        });
    }

    fn hand_over(&mut self) {
        add(&mut self.enricher, &mut self.tally);
    }

    fn frame(&mut self) -> Frame {
        let counters = self.probe.counters();
        let decoded = self.merge.stats();
        let damaged = decoded.slot.damaged + decoded.wide.damaged;
        self.tally
            .cut(monotonic_ns(), counters.seen, counters.lost + damaged)
    }
}

fn add(enricher: &mut Enricher, tally: &mut Tally) {
    if let Some(calls) = tally.add(enricher.take()) {
        enricher.recycle(calls);
    }
}

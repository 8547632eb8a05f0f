//! Rows as they are recorded, without a session.

use std::convert::Infallible;
use std::time::Duration;

use fathom_enrich::Enricher;
use fathom_model::Batch;
use fathom_model::protocols::Protocols;
use fathom_probe::{Probe, monotonic_ns, system};

use crate::drain::{BUSY, IN_FLIGHT_NS};
use crate::plan::Plan;
use crate::stages::Decoder;
use crate::{Options, RecordError, Stall, Target, stalls};

/// The rows of tasks that run, as `fathom top` adds them up. It stays on the thread that opens it.
pub struct RowStream {
    probe: Probe,
    decoder: Decoder,
    open_ended: bool,
}

/// Takes rows, all tables of one time together.
pub type TakeRows<'a> = &'a mut dyn FnMut(Vec<Batch>);

impl RowStream {
    /// How long the rings may fill: time between two calls of [`RowStream::drain`].
    pub const INTERVAL: Duration = BUSY;

    /// Starts to record tasks that run; of the options those count that say what is recorded. The
    /// calling thread gets a higher priority.
    ///
    /// # Errors
    /// The errors of [`crate::Recorder::open`]; a command is refused.
    pub fn open(options: &Options, target: &Target) -> Result<Self, RecordError> {
        if matches!(target, Target::Command { .. }) {
            return Err(RecordError::input("only running tasks can be looked at"));
        }
        let plan = Plan::of(options, target)?;
        system::set_nice(system::nice() - crate::recorder::URGENCY);
        let mut probe = Probe::load(&plan.probe)?;
        probe.attach()?;
        let filters = &plan.probe.filters;
        let tasks = probe.adopt(filters.pids())?;
        let mut decoder = Decoder::new(false, (false, false), Protocols::default(), false);
        decoder.push(vec![tasks], 0, |_| Ok::<(), RecordError>(()))?;
        Ok(Self {
            probe,
            decoder,
            open_ended: filters.open_ended() || filters.pids().is_empty(),
        })
    }

    /// Takes what the rings hold; `take` gets rows when they are many.
    pub fn drain(&mut self, take: TakeRows<'_>) {
        self.drain_until(monotonic_ns().saturating_sub(IN_FLIGHT_NS), take);
    }

    fn drain_until(&mut self, watermark_ns: u64, take: TakeRows<'_>) {
        let mut chunks = Vec::new();
        while let Some(buffer) = self.decoder.spare_buffer() {
            self.probe.recycle(buffer);
        }
        self.probe.drain(&mut chunks);
        let Ok(()) = self.decoder.push(chunks, watermark_ns, |enricher| {
            hand_over(enricher, take);
            Ok::<(), Infallible>(())
        });
    }

    /// Hands over the rows of all that was drained.
    pub fn hand_over(&mut self, take: TakeRows<'_>) {
        hand_over(&mut self.decoder.enricher, take);
    }

    /// Whether the tasks have ended.
    pub fn has_ended(&self) -> bool {
        !self.open_ended && self.probe.live_tasks() == 0
    }

    /// Ends the recording, and hands over the rows that are left.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&mut self, take: TakeRows<'_>) -> Result<(), RecordError> {
        self.probe.stop()?;
        self.drain_until(u64::MAX, take);
        self.decoder.end();
        self.hand_over(take);
        Ok(())
    }

    /// The calls that have not returned for a second, longest first. Calls that wait for other
    /// programs or for input are left out.
    ///
    /// # Errors
    /// When the kernel refuses to list them.
    pub fn stalls(&mut self) -> Result<Vec<Stall>, RecordError> {
        Ok(stalls::hanging(self.probe.in_flight()?))
    }

    /// Calls seen and calls lost so far.
    pub fn counts(&self) -> (u64, u64) {
        let counters = self.probe.counters();
        (counters.seen, counters.lost + self.decoder.damaged())
    }
}

fn hand_over(enricher: &mut Enricher, take: TakeRows<'_>) {
    take(enricher.take());
}

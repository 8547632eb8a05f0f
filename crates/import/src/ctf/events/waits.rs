//! The waits of threads, and the interrupts that take their time.

use fathom_enrich::{Interrupt, InterruptKind, Place, TracedWait};
use fathom_model::lttng;

use super::super::arguments;
use super::super::stream::Read;
use super::{Entered, Events, unsigned, unsigned_ns};
use crate::builder::Builder;
use crate::error::ImportError;

/// Rows of the layers below the calls that are handed over at once.
const BATCH_ROWS: usize = 32 * 1024;
/// Waits and interrupts of one call that are kept until it ends. Of the others, waits are rows outside of
/// calls.
pub(super) const MAX_PARTS: usize = 1 << 16;

impl Events {
    /// Hands over the rows of the layers below the calls, if there are enough.
    pub(super) fn flush(&mut self, builder: &mut Builder) -> Result<(), ImportError> {
        match self.layers.pending_rows() >= BATCH_ROWS {
            true => builder.batches(self.layers.take()),
            false => Ok(()),
        }
    }

    /// Processor `cpu` goes on with `next`. `left`: the thread before, and its state.
    pub(super) fn switch(
        &mut self,
        cpu: i32,
        left: (Option<i32>, Option<i64>),
        next: i32,
        ns: i64,
    ) {
        self.has_switches = true;
        if let (Some(tid), Some(state)) = left {
            let place = match self.entered.get(&tid) {
                None => Place::Program,
                Some(entered) => self.place(tid, entered),
            };
            self.scheduler.leaves(tid, ns, state, place);
        }
        self.scheduler.runs(cpu, next);
    }

    pub(super) fn place(&self, tid: i32, entered: &Entered) -> Place {
        let Some(traced) = entered.traced else {
            return match lttng::unrecorded(&entered.event) {
                Some(name) => Place::OtherCall(name),
                None => Place::UnknownCall,
            };
        };
        let pid = self.threads.get(&tid).and_then(|info| info.pid);
        let process = self.processes.get(&pid.unwrap_or(tid));
        let file_type = arguments::file_type(traced, &entered.fields, process);
        Place::Call(traced.call, file_type)
    }

    /// A thread is back on processor `cpu`.
    pub(super) fn is_back(
        &mut self,
        cpu: i32,
        tid: i32,
        ns: i64,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        let pid = self.threads.get(&tid).and_then(|info| info.pid);
        match self.scheduler.is_back(tid, ns, cpu, pid.unwrap_or(tid)) {
            Some(wait) => self.waited(tid, &wait, builder),
            None => Ok(()),
        }
    }

    pub(super) fn waited(
        &mut self,
        tid: i32,
        wait: &TracedWait,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        match self.entered.get_mut(&tid) {
            Some(entered) if entered.rid.is_some() && entered.parts.len() < MAX_PARTS => {
                entered.parts.wait(wait);
            }
            _ => {
                let info = self.threads.get(&tid);
                let comm = info.and_then(|info| info.comm.as_deref());
                self.layers.wait(wait, comm);
            }
        }
        self.flush(builder)
    }

    pub(super) fn interrupts(&mut self, read: &Read, kind: InterruptKind, name: [u8; 16]) {
        self.has_interrupts = true;
        if let Some(cpu) = read.cpu {
            self.scheduler
                .interrupts(cpu, Interrupt { kind, name }, read.ns);
        }
    }

    /// A handler of an interrupt has ended.
    pub(super) fn handled(&mut self, read: &Read, kind: InterruptKind) {
        let Some(cpu) = read.cpu else {
            return;
        };
        let Some(ended) = self.scheduler.ends(cpu, kind) else {
            return;
        };
        let pid = self.threads.get(&ended.tid).and_then(|info| info.pid);
        if let Some(entered) = self.entered.get_mut(&ended.tid)
            && entered.rid.is_some()
            && entered.parts.len() < MAX_PARTS
        {
            let ids = (pid.unwrap_or(ended.tid), ended.tid, cpu);
            let (pid, tid, cpu) = (unsigned(ids.0), unsigned(ids.1), unsigned(ids.2));
            let times = (unsigned_ns(ended.begin_ns), unsigned_ns(read.ns));
            entered
                .parts
                .interrupt((pid, tid, cpu), &ended.interrupt, times);
        }
    }
}

/// A name as records have it.
pub(super) fn padded(name: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    for (to, from) in padded.iter_mut().take(15).zip(name) {
        *to = *from;
    }
    padded
}

pub(super) fn softirq(number: Option<i64>) -> Option<InterruptKind> {
    u16::try_from(number?).ok().map(InterruptKind::Soft)
}

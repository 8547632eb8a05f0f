//! The rules of one session on several processors.
//!
//! Each worker has a part of the rules and its own knowledge of files and descriptors, and sees
//! every row in the same order: what a rule finds does not depend on how many there are.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle, available_parallelism};

use fathom_model::Batch;

use crate::engine::{Diagnosis, Engine, EngineResult};

/// Batches that wait for a worker at most: a slow one holds the reading up.
const AHEAD: usize = 2;
/// More would know the same things once more each, and wait for the reading.
const MAX_WORKERS: usize = 4;

/// How many there are on this machine.
pub(crate) fn count() -> usize {
    available_parallelism().map_or(1, |n| n.get().min(MAX_WORKERS))
}

/// Threads with a part of the rules each.
pub(crate) struct Workers<'scope> {
    to: Vec<SyncSender<Arc<Batch>>>,
    threads: Vec<ScopedJoinHandle<'scope, EngineResult>>,
}

impl<'scope> Workers<'scope> {
    /// Starts a thread for each of the engines.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        engines: impl IntoIterator<Item = Engine>,
    ) -> Self {
        let (mut to, mut threads) = (Vec::new(), Vec::new());
        for (i, mut engine) in engines.into_iter().enumerate() {
            // Time is added up once.
            if i > 0 {
                engine.without_times();
            }
            let (sender, batches) = sync_channel(AHEAD);
            to.push(sender);
            threads.push(scope.spawn(move || work(engine, &batches)));
        }
        Self { to, threads }
    }

    /// Rows for all rules.
    pub(crate) fn feed(&self, batch: Batch) {
        let batch = Arc::new(batch);
        for to in &self.to {
            // Only a thread that panicked stops taking rows: the join reports it.
            let _ = to.send(Arc::clone(&batch));
        }
    }

    /// The results of the rules after all rows.
    pub(crate) fn finish(self) -> Diagnosis {
        drop(self.to);
        let parts = self.threads.into_iter().map(|thread| {
            let part = thread.join();
            part.unwrap_or_else(|panic| resume_unwind(panic))
        });
        EngineResult::together(parts)
    }
}

fn work(mut engine: Engine, batches: &Receiver<Arc<Batch>>) -> EngineResult {
    for batch in batches {
        engine.feed(&batch);
    }
    engine.result()
}

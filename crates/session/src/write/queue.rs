//! The bounded queue between the recorder and the encoder.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use fathom_model::meta::Moment;
use fathom_model::{Batch, ColumnData};

use crate::threads::lock;

/// A copy to make.
#[derive(Clone, Debug)]
pub struct SaveRequest {
    /// Directory of the copy, which must not exist; its parent must.
    pub to: PathBuf,
    /// Why, in words.
    pub because: String,
    /// When it was asked for.
    pub at: Moment,
}

#[derive(Default)]
struct State {
    batches: VecDeque<(Item, usize)>,
    bytes: usize,
    /// No more batches will come.
    closed: bool,
    /// The encoder has ended; its reason.
    dead: Option<String>,
}

/// Batches that wait, bounded by the memory that they take.
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    capacity: usize,
}

enum Item {
    Batch(Batch),
    Save(SaveRequest),
}

/// The result of [`Queue::pop`].
pub(crate) enum NextItem {
    Batch(Batch),
    /// All that was appended before is to be saved.
    Save(SaveRequest),
    /// Nothing came in time.
    Nothing,
    /// The queue is empty and closed.
    End,
}

impl Queue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            capacity,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Memory of the batches that wait.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Appends a batch; waits while the queue is full. A batch larger than the whole queue is
    /// taken when the queue is empty. The error is why the encoder has ended.
    pub(crate) fn push(&self, batch: Batch) -> Result<(), String> {
        let size = memory(&batch);
        let mut state = lock(&self.state);
        loop {
            if let Some(reason) = &state.dead {
                return Err(reason.clone());
            }
            if state.batches.is_empty() || state.bytes + size <= self.capacity {
                break;
            }
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.batches.push_back((Item::Batch(batch), size));
        state.bytes += size;
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Asks for a copy of all that was appended so far.
    pub(crate) fn push_save(&self, request: SaveRequest) {
        lock(&self.state)
            .batches
            .push_back((Item::Save(request), 0));
        self.filled.notify_one();
    }

    /// The next batch; waits for one until `deadline`.
    pub(crate) fn pop(&self, deadline: Instant) -> NextItem {
        let mut state = lock(&self.state);
        loop {
            if let Some((item, size)) = state.batches.pop_front() {
                state.bytes -= size;
                drop(state);
                self.emptied.notify_all();
                return match item {
                    Item::Batch(batch) => NextItem::Batch(batch),
                    Item::Save(request) => NextItem::Save(request),
                };
            }
            if state.closed {
                return NextItem::End;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return NextItem::Nothing;
            }
            (state, _) = self
                .filled
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that no more batches will come.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.filled.notify_all();
    }

    /// Declares that no thread takes batches any more.
    pub(crate) fn die(&self, reason: String) {
        let mut state = lock(&self.state);
        state.dead.get_or_insert(reason);
        drop(state);
        self.emptied.notify_all();
    }
}

/// Memory that a batch takes, about.
fn memory(batch: &Batch) -> usize {
    /// A string's end and its entry in the index.
    const PER_STRING: usize = 16;
    let columns: usize = batch
        .columns
        .iter()
        .map(|column| match column {
            ColumnData::I64(v) => v.capacity() * 8,
            ColumnData::I32(v) => v.capacity() * 4,
            ColumnData::Bool(v) => v.capacity(),
            ColumnData::Str(v) | ColumnData::Blob(v) => v.capacity() * 4,
            ColumnData::ListI64(v) => {
                v.capacity() * size_of::<Vec<i64>>()
                    + v.iter().map(|l| l.capacity() * 8).sum::<usize>()
            }
        })
        .sum();
    columns + batch.strings.bytes() + batch.strings.len() * PER_STRING
}

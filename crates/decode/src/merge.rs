//! The rings of all CPUs in one order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use fathom_model::abi::SLOT_BYTES;
use fathom_model::raw::{RawChunk, Ring};

use crate::event::{DecodeError, Event};
use crate::record::{decode, possible, slot_time};

const SLOT: usize = SLOT_BYTES as usize;
/// Length and zeros before each record of the wide ring.
const FRAME: usize = 8;
/// Bytes of a chunk that are read; a multiple of [`SLOT`].
const LONGEST_CHUNK: usize = u32::MAX as usize & !(SLOT - 1);
/// Spent buffers that are kept for use again.
const SPARE: usize = 64;
/// Memory of a buffer that is kept: larger ones come from a full ring and seldom.
const MAX_SPARE_BYTES: usize = 4 << 20;

/// Chunks from one kind of ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    pub records: u64,
    pub bytes: u64,
    /// Records that could not be decoded and were skipped. When the framing
    /// itself is damaged, the rest of the chunk counts as one.
    pub damaged: u64,
    /// Bytes that were skipped with them.
    pub damaged_bytes: u64,
}

/// Counts of the records that went through a [`Merge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeStats {
    /// Slot rings. Everything they carry is a call, so each damaged record is
    /// a lost call.
    pub slot: RingStats,
    pub wide: RingStats,
    /// Events that came out behind a later one because they were pushed after
    /// the watermark had passed them.
    pub late: u64,
    /// Why a record was skipped, of the last one that was.
    pub last_error: Option<DecodeError>,
}

/// Brings the records of all rings into one order of time: calls by their
/// end, everything else by when it happened; at the same time files and
/// threads come before calls, so that a call finds the file that it names.
///
/// Memory is what the chunks take that are not drained yet, and 16 bytes a
/// record.
#[derive(Debug, Default)]
pub struct Merge {
    /// Chunks with events left, at the time of the next of them.
    heads: BinaryHeap<Reverse<Head>>,
    runs: Vec<Run>,
    /// Places in `runs` that are free.
    free: Vec<u32>,
    pushed: u64,
    pending: usize,
    last_key: u64,
    stats: DecodeStats,
    spare_index: Vec<Vec<Entry>>,
    spare_bytes: Vec<Vec<u8>>,
}

/// Ordered by time, then by when the chunk was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: u64,
    order: u64,
    run: u32,
}

/// The records of one chunk, in order.
#[derive(Debug)]
struct Run {
    cpu: u32,
    ring: Ring,
    bytes: Vec<u8>,
    index: Vec<Entry>,
    next: usize,
}

/// One record of a chunk.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    at: u32,
    len: u32,
}

/// Time and rank as one number: at equal times calls come last.
#[inline]
fn key(time_ns: u64, call: bool) -> u64 {
    // Below u64::MAX, which stands for the end of time.
    (time_ns.min((u64::MAX >> 1) - 1) << 1) | u64::from(call)
}

impl Merge {
    /// A merge without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the records of `chunk`. Any order of chunks and of the records in
    /// them will do; those in order of time cost least.
    pub fn push(&mut self, chunk: RawChunk) {
        let RawChunk { cpu, ring, bytes } = chunk;
        let mut index = self.spare_index.pop().unwrap_or_default();
        // Entries count bytes in 32 bits; no ring is that large.
        let indexed = bytes.get(..LONGEST_CHUNK).unwrap_or(&bytes);
        match ring {
            Ring::Slot => index_slots(indexed, &mut index, &mut self.stats),
            Ring::Wide => index_frames(indexed, &mut index, &mut self.stats),
        }
        if let Some(excess) = bytes.len().checked_sub(LONGEST_CHUNK).filter(|n| *n > 0) {
            let stats = match ring {
                Ring::Slot => &mut self.stats.slot,
                Ring::Wide => &mut self.stats.wide,
            };
            let error = DecodeError::Short {
                needed: excess,
                found: 0,
            };
            damaged(stats, &mut self.stats.last_error, error, excess);
        }
        if !index.is_sorted_by_key(|e| e.key) {
            index.sort_by_key(|e| e.key);
        }
        let Some(first) = index.first() else {
            self.keep(bytes, index);
            return;
        };
        let key = first.key;
        self.pending += index.len();
        let run = Run {
            cpu,
            ring,
            bytes,
            index,
            next: 0,
        };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(slot) = self.runs.get_mut(place as usize) {
                    *slot = run;
                }
                place
            }
            None => {
                self.runs.push(run);
                (self.runs.len() - 1) as u32
            }
        };
        self.pushed += 1;
        self.heads.push(Reverse(Head {
            key,
            order: self.pushed,
            run: place,
        }));
    }

    /// Events that are not drained yet.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// The counts so far.
    pub fn stats(&self) -> DecodeStats {
        self.stats
    }

    /// A buffer of a drained chunk, emptied, to fill again.
    pub fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.spare_bytes.pop()
    }

    /// Yields the events before `watermark_ns`, in order, with the CPU that
    /// wrote them. The order is right as long as everything that happened
    /// before the watermark was pushed; what comes later is yielded at the next
    /// call, and counted as late.
    pub fn drain_until(&mut self, watermark_ns: u64, sink: impl FnMut(u32, &Event<'_>)) {
        self.drain(key(watermark_ns, false), sink);
    }

    pub fn drain_all(&mut self, sink: impl FnMut(u32, &Event<'_>)) {
        self.drain(u64::MAX, sink);
    }

    fn drain(&mut self, end: u64, mut sink: impl FnMut(u32, &Event<'_>)) {
        let Self {
            heads,
            runs,
            free,
            last_key,
            stats,
            pending,
            ..
        } = self;
        let mut done = Vec::new();
        if heads.peek().is_none_or(|Reverse(h)| h.key >= end) {
            return;
        }
        let Some(Reverse(mut head)) = heads.pop() else {
            return;
        };
        loop {
            // Events of this run that come before the heads of all others.
            let (other_key, other_order) = heads
                .peek()
                .map_or((u64::MAX, u64::MAX), |Reverse(h)| (h.key, h.order));
            let Some(run) = runs.get_mut(head.run as usize) else {
                break;
            };
            let bound = if head.order < other_order {
                other_key
            } else {
                other_key.saturating_sub(1)
            };
            let bound = bound.min(end - 1);
            let mut left = None;
            while let Some(entry) = run.index.get(run.next) {
                if entry.key > bound {
                    left = Some(entry.key);
                    break;
                }
                run.next += 1;
                *pending -= 1;
                stats.late += u64::from(entry.key < *last_key);
                *last_key = entry.key.max(*last_key);
                let from = entry.at as usize;
                let record = run
                    .bytes
                    .get(from..from + entry.len as usize)
                    .unwrap_or_default();
                // Records that do not decode are not in the index.
                if let Ok(event) = &decode(run.ring, record) {
                    sink(run.cpu, event);
                }
            }
            match left {
                Some(key) => {
                    head.key = key;
                    if key >= end && other_key >= end {
                        heads.push(Reverse(head));
                        break;
                    }
                    let Some(mut top) = heads.peek_mut() else {
                        heads.push(Reverse(head));
                        break;
                    };
                    std::mem::swap(&mut top.0, &mut head);
                }
                None => {
                    done.push(head.run);
                    let Some(top) = heads.peek_mut() else { break };
                    head = PeekMut::pop(top).0;
                }
            }
        }
        free.extend_from_slice(&done);
        for place in done {
            let Some(run) = self.runs.get_mut(place as usize) else {
                continue;
            };
            let (bytes, index) = (
                std::mem::take(&mut run.bytes),
                std::mem::take(&mut run.index),
            );
            self.keep(bytes, index);
        }
    }

    fn keep(&mut self, mut bytes: Vec<u8>, mut index: Vec<Entry>) {
        if self.spare_index.len() < SPARE {
            index.clear();
            self.spare_index.push(index);
        }
        if self.spare_bytes.len() < SPARE && bytes.capacity() <= MAX_SPARE_BYTES {
            bytes.clear();
            self.spare_bytes.push(bytes);
        }
    }
}

fn index_slots(bytes: &[u8], index: &mut Vec<Entry>, stats: &mut DecodeStats) {
    let (slots, rest) = bytes.as_chunks::<SLOT>();
    index.reserve(slots.len());
    for (i, slot) in slots.iter().enumerate() {
        match slot_time(slot) {
            Ok(time) => index.push(Entry {
                key: key(time, true),
                at: (i * SLOT) as u32,
                len: SLOT as u32,
            }),
            Err(error) => damaged(&mut stats.slot, &mut stats.last_error, error, SLOT),
        }
    }
    if !rest.is_empty() {
        let error = DecodeError::Short {
            needed: SLOT,
            found: rest.len(),
        };
        damaged(&mut stats.slot, &mut stats.last_error, error, rest.len());
    }
    stats.slot.records += index.len() as u64;
    stats.slot.bytes += bytes.len() as u64;
}

fn index_frames(bytes: &[u8], index: &mut Vec<Entry>, stats: &mut DecodeStats) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
        let Some(record) = framed(rest) else {
            // Without a length there is no way to find the next record.
            let error = DecodeError::Short {
                needed: rest.len() + 1,
                found: rest.len(),
            };
            damaged(&mut stats.wide, &mut stats.last_error, error, rest.len());
            break;
        };
        let event = decode(Ring::Wide, record);
        match event.and_then(|event| possible(event.latest_ns()).map(|_| event)) {
            Ok(event) => index.push(Entry {
                key: key(event.time_ns(), event.is_request()),
                at: (at + FRAME) as u32,
                len: record.len() as u32,
            }),
            Err(error) => damaged(&mut stats.wide, &mut stats.last_error, error, record.len()),
        }
        at += FRAME + record.len().next_multiple_of(8);
    }
    stats.wide.records += index.len() as u64;
    stats.wide.bytes += bytes.len() as u64;
}

/// The record behind the frame that `bytes` begin with.
fn framed(bytes: &[u8]) -> Option<&[u8]> {
    let (frame, rest) = bytes.split_first_chunk::<FRAME>()?;
    let [l0, l1, l2, l3, 0, 0, 0, 0] = *frame else {
        return None;
    };
    rest.get(..u32::from_ne_bytes([l0, l1, l2, l3]) as usize)
}

#[cold]
fn damaged(ring: &mut RingStats, last: &mut Option<DecodeError>, error: DecodeError, bytes: usize) {
    ring.damaged += 1;
    ring.damaged_bytes += bytes as u64;
    *last = Some(error);
}

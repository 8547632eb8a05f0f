//! The bytes that calls moved: put together from their parts, hashed or kept.

use fathom_model::StrId;
use fathom_model::StringTable;
use fathom_model::abi::{
    CONTENT_HASHED, CONTENT_PLAIN, CONTENT_TO_HASH, CONTENT_UNREADABLE, DataCallRecord,
};
use fathom_model::batch::NULL_I64;
use hashbrown::HashMap;
use twox_hash::XxHash64;

/// Threads whose parts are remembered. A thread is in one call at a time, so
/// that only calls which were lost after their parts leave something behind.
const MAX_THREADS: usize = 1 << 14;

/// Of how many calls the content was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentCounts {
    /// Calls with a hash or content.
    pub calls: u64,
    /// Of these, calls that moved more than was taken.
    pub capped: u64,
    /// Calls whose memory could not be read when they returned.
    pub unreadable: u64,
    /// Calls of whose content a part was lost.
    pub no_room: u64,
}

/// What the columns of a row say of its content.
pub(crate) struct Columns {
    pub hash: i64,
    pub bytes: i64,
    pub content: StrId,
}

impl Columns {
    pub(crate) const NONE: Columns = Columns {
        hash: NULL_I64,
        bytes: NULL_I64,
        content: StrId::NULL,
    };
}

/// The parts so far of a call that is still to come.
#[derive(Debug)]
struct Partial {
    /// When the call was entered, which tells it from others of the thread.
    ts_ns: u64,
    at: u64,
    hasher: XxHash64,
}

/// The content of calls.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    partial: HashMap<u32, Partial>,
    counts: ContentCounts,
}

impl Contents {
    pub(crate) fn counts(&self) -> ContentCounts {
        self.counts
    }

    /// Takes note of a call that came without its content.
    pub(crate) fn missing(&mut self) {
        self.counts.no_room += 1;
    }

    /// Takes a part of the content of a call that is still to come.
    pub(crate) fn part(&mut self, record: &DataCallRecord, bytes: &[u8]) {
        let (tid, ts_ns) = (record.call.tid, record.call.ts_ns);
        if record.at == 0 {
            if self.partial.len() >= MAX_THREADS {
                self.partial.clear();
            }
            self.partial.insert(
                tid,
                Partial {
                    ts_ns,
                    at: 0,
                    hasher: XxHash64::with_seed(0),
                },
            );
        }
        match self.partial.get_mut(&tid) {
            Some(p) if p.ts_ns == ts_ns && p.at == record.at => {
                std::hash::Hasher::write(&mut p.hasher, bytes);
                p.at += bytes.len() as u64;
            }
            // A part before it is missing.
            _ => drop(self.partial.remove(&tid)),
        }
    }

    /// The columns of a call, with its last part.
    pub(crate) fn call(
        &mut self,
        record: &DataCallRecord,
        bytes: &[u8],
        strings: &mut StringTable,
    ) -> Columns {
        let partial = if self.partial.is_empty() {
            None
        } else {
            self.partial.remove(&record.call.tid)
        };
        let mut columns = Columns::NONE;
        match record.status {
            CONTENT_HASHED => columns.hash = record.hash as i64,
            CONTENT_TO_HASH => match hash(partial, record, bytes) {
                Some(hash) => columns.hash = hash as i64,
                None => {
                    self.counts.no_room += 1;
                    return columns;
                }
            },
            CONTENT_PLAIN => columns.content = strings.intern(bytes),
            CONTENT_UNREADABLE => {
                self.counts.unreadable += 1;
                return columns;
            }
            _ => {
                self.counts.no_room += 1;
                return columns;
            }
        }
        columns.bytes = crate::signed(record.content_bytes);
        self.counts.calls += 1;
        self.counts.capped += u64::from(columns.bytes < record.call.ret);
        columns
    }
}

/// The hash of parts and the last one; `None` when one is missing.
fn hash(partial: Option<Partial>, record: &DataCallRecord, bytes: &[u8]) -> Option<u64> {
    if record.at + bytes.len() as u64 != record.content_bytes {
        return None;
    }
    if record.at == 0 {
        return Some(XxHash64::oneshot(0, bytes));
    }
    let mut partial = partial.filter(|p| p.ts_ns == record.call.ts_ns && p.at == record.at)?;
    std::hash::Hasher::write(&mut partial.hasher, bytes);
    Some(std::hash::Hasher::finish(&partial.hasher))
}

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
    /// Calls among these that moved more bytes than were read.
    pub capped: u64,
    /// Calls whose memory could not be read when they returned.
    pub unreadable: u64,
    /// Calls of whose content a part was lost.
    pub no_room: u64,
}

/// The content columns of a row.
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
    /// When the call was entered, which distinguishes it from others of the thread.
    ts_ns: u64,
    at: u64,
    hasher: XxHash64,
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tid: u32, ts_ns: u64, at: u64, total: u64, status: u32) -> DataCallRecord {
        let bytes = [0; DataCallRecord::SIZE];
        let mut record = DataCallRecord::parse(&bytes).unwrap();
        record.call.tid = tid;
        record.call.ts_ns = ts_ns;
        record.call.ret = total as i64 + 1;
        record.at = at;
        record.content_bytes = total;
        record.status = status;
        record
    }

    fn finish(contents: &mut Contents, record: &DataCallRecord, bytes: &[u8]) -> (i64, i64) {
        let mut strings = StringTable::new();
        let columns = contents.call(record, bytes, &mut strings);
        (columns.hash, columns.bytes)
    }

    /// The value of `printf abc | xxh64sum`.
    const ABC: i64 = 0x44bc_2cf5_ad77_0999;

    #[test]
    fn parts_of_threads_come_in_between() {
        let mut contents = Contents::default();
        let to_hash = CONTENT_TO_HASH;
        contents.part(&record(1, 10, 0, 3, to_hash), b"a");
        contents.part(&record(2, 10, 0, 3, to_hash), b"ab");
        contents.part(&record(1, 10, 1, 3, to_hash), b"b");
        let first = record(1, 10, 2, 3, to_hash);
        assert_eq!(finish(&mut contents, &first, b"c"), (ABC, 3));
        let second = record(2, 10, 2, 3, to_hash);
        assert_eq!(finish(&mut contents, &second, b"c"), (ABC, 3));
        let whole = record(3, 10, 0, 3, to_hash);
        assert_eq!(finish(&mut contents, &whole, b"abc"), (ABC, 3));
        let counts = contents.counts();
        assert_eq!((counts.calls, counts.capped, counts.no_room), (3, 3, 0));
    }

    #[test]
    fn nothing_is_hashed_of_which_a_part_is_missing() {
        let to_hash = CONTENT_TO_HASH;
        let none = (NULL_I64, NULL_I64);
        let mut contents = Contents::default();
        // The first.
        contents.part(&record(1, 10, 1, 3, to_hash), b"b");
        let last = record(1, 10, 2, 3, to_hash);
        assert_eq!(finish(&mut contents, &last, b"c"), none);
        // One in between.
        contents.part(&record(1, 20, 0, 3, to_hash), b"a");
        let last = record(1, 20, 2, 3, to_hash);
        assert_eq!(finish(&mut contents, &last, b"c"), none);
        // The last part, so the parts belong to an earlier call.
        contents.part(&record(1, 30, 0, 3, to_hash), b"a");
        let other = record(1, 40, 1, 3, to_hash);
        assert_eq!(finish(&mut contents, &other, b"bc"), none);
        // Bytes at the end.
        let short = record(1, 50, 0, 3, to_hash);
        assert_eq!(finish(&mut contents, &short, b"ab"), none);
        let unreadable = record(1, 60, 0, 3, CONTENT_UNREADABLE);
        assert_eq!(finish(&mut contents, &unreadable, b""), none);
        let counts = contents.counts();
        assert_eq!((counts.calls, counts.no_room, counts.unreadable), (0, 4, 1));
    }

    #[test]
    fn memory_for_parts_is_bounded() {
        let mut contents = Contents::default();
        for tid in 0..3 * MAX_THREADS as u32 {
            contents.part(&record(tid, 1, 0, 9, CONTENT_TO_HASH), b"x");
        }
        assert!(contents.partial.len() <= MAX_THREADS);
    }
}

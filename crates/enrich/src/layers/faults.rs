//! Rows of tables `faults` and `writeback`.

use fathom_model::abi::{
    FAULT_EXEC, FAULT_FAILED, FAULT_KERNEL, FAULT_MAJOR, FAULT_NO_BEGIN, FAULT_NO_END,
    FAULT_PRESENT, FAULT_SHARED, FAULT_WRITE, FaultRecord, WRITEBACK_CONTIGUOUS, WRITEBACK_IN_CALL,
    WritebackRecord,
};
use fathom_model::batch::{Batch, Null};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::syscalls::SYSCALLS;
use fathom_model::tables::{FaultRow, FaultRows, WritebackRow, WritebackRows};
use fathom_model::{StrId, StringTable};

use super::requests::{Key, Kind};
use super::{Ended, Layers, file};
use crate::strings::{BatchMemo, Known, Strings};
use crate::{id, signed, text};

/// The words that the text columns of table `faults` have.
const WORDS: [&str; 12] = [
    "read",
    "write",
    "exec",
    "minor",
    "major",
    "failed",
    "absent",
    "protected",
    "user",
    "kernel",
    "shared",
    "private",
];

/// Rows that were not taken yet.
#[derive(Debug)]
pub(crate) struct Faults {
    rows: FaultRows,
    strings: Strings,
    words: BatchMemo<StrId>,
    writeback: (WritebackRows, StringTable),
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            rows: FaultRows::default(),
            strings: Strings::default(),
            words: BatchMemo::new(WORDS.len()),
            writeback: Default::default(),
        }
    }
}

impl Faults {
    /// Rows of both tables that were not taken yet.
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.len() + self.writeback.0.len()
    }

    /// The record of a file came: what is remembered of it may be old.
    pub(crate) fn forget_file(&mut self, handle: u32) {
        self.strings.forget_file(handle);
    }

    /// The same for a thread.
    pub(crate) fn forget_thread(&mut self, tid: u32) {
        self.strings.forget_thread(tid);
    }

    pub(crate) fn fault(
        &mut self,
        cpu: u32,
        r: &FaultRecord,
        layers: &mut Layers,
        known: &mut Known,
    ) {
        let ended = Ended {
            key: Key::new(r.tid, r.ts_ns),
            kind: Kind::Fault,
            name: "page_fault",
            dur_ns: r.dur_ns,
            changes: r.dirtied > 0 || r.handles > 0,
        };
        let rid = layers.ends(&ended, known);
        let flags = u32::from(r.flags);
        let has = |flag: u32| flags & flag != 0;
        let (begin, end) = (!has(FAULT_NO_BEGIN), !has(FAULT_NO_END));
        let ended_at_ns = r.ts_ns.saturating_add(r.dur_ns);
        let file = self.strings.file(r.file, ended_at_ns, known);
        let comm = self.strings.comm(r.tid, r.ts_ns, known);
        let access = match (has(FAULT_WRITE), has(FAULT_EXEC)) {
            (true, _) => "write",
            (false, true) => "exec",
            (false, false) => "read",
        };
        let kind = match (has(FAULT_FAILED), has(FAULT_MAJOR)) {
            (true, _) => "failed",
            (false, true) => "major",
            (false, false) => "minor",
        };
        let cause = if has(FAULT_PRESENT) {
            "protected"
        } else {
            "absent"
        };
        let origin = if has(FAULT_KERNEL) { "kernel" } else { "user" };
        let mapping = if has(FAULT_SHARED) {
            "shared"
        } else {
            "private"
        };
        let access = self.word(access, begin);
        let kind = self.word(kind, end);
        let cause = self.word(cause, begin);
        let origin = self.word(origin, begin);
        let mapping = self.word(mapping, true);
        let around = begin && r.around_bytes > 0;
        let cached = r.added > 0 || r.dirtied > 0 || r.handles > 0;
        let rows = &mut self.rows;
        rows.push(FaultRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns).when(begin && end),
            pid: id(r.pid),
            tid: id(r.tid),
            comm,
            cpu: id(cpu),
            access,
            kind,
            cause,
            origin,
            mapping,
            address: signed(r.address),
            file_id: file.file_id,
            path: file.path,
            file_offset: r.offset.max(0),
            around_offset: r
                .offset
                .saturating_add(i64::from(r.around_from))
                .when(around),
            around_bytes: i64::from(r.around_bytes).when(around),
            added_pages: id(r.added).when(cached),
            dirtied: i32::from(r.dirtied).when(cached),
            journal_handles: i32::from(r.handles).when(cached),
        });
    }

    pub(crate) fn writeback(&mut self, rid: i64, cpu: u32, r: &WritebackRecord, known: &mut Known) {
        let (rows, strings) = &mut self.writeback;
        let flags = u32::from(r.flags);
        let (file_id, path) = file(r.file, r.ts_ns, known, strings);
        let comm = strings.intern(escape_invalid_utf8(text::until_nul(&r.comm)).as_bytes());
        let syscall = SYSCALLS
            .get(usize::from(r.syscall))
            .filter(|_| flags & WRITEBACK_IN_CALL != 0)
            .map_or(StrId::NULL, |call| strings.intern(call.name.as_bytes()));
        rows.push(WritebackRow {
            rid,
            ts_ns: signed(r.ts_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm,
            cpu: id(cpu),
            syscall,
            file_id,
            path,
            file_offset: r.offset.max(0),
            bytes: signed(r.bytes),
            contiguous: flags & WRITEBACK_CONTIGUOUS != 0,
        });
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> [Batch; 2] {
        let faults = self.rows.take();
        let (writeback, writeback_strings) = std::mem::take(&mut self.writeback);
        [
            faults.into_batch(self.strings.take(StringTable::new())),
            writeback.into_batch(writeback_strings),
        ]
    }

    fn word(&mut self, word: &'static str, known: bool) -> StrId {
        if !known {
            return StrId::NULL;
        }
        let at = WORDS.iter().position(|w| *w == word).unwrap_or(WORDS.len());
        self.words
            .get(at, &mut self.strings, |table| table.intern(word.as_bytes()))
    }
}

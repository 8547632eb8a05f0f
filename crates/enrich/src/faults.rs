//! Rows of tables `faults` and `writeback`.

use fathom_model::abi::{
    FAULT_EXEC, FAULT_FAILED, FAULT_KERNEL, FAULT_MAJOR, FAULT_NO_BEGIN, FAULT_NO_END,
    FAULT_PRESENT, FAULT_SHARED, FAULT_WRITE, FaultRecord, NO_OFFSET, WRITEBACK_CONTIGUOUS,
    WRITEBACK_IN_CALL, WritebackRecord,
};
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::bytes::lossless;
use fathom_model::syscalls::SYSCALLS;
use fathom_model::tables::{FaultRow, FaultRows, WritebackRow, WritebackRows};
use fathom_model::{StrId, StringTable};

use crate::cache::{self, FileMemo, Recent, Small};
use crate::files::Files;
use crate::tasks::Tasks;
use crate::{id, signed};

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
    strings: StringTable,
    words: Small,
    recent_files: Recent<FileMemo>,
    recent_threads: Recent<StrId>,
    writeback: WritebackRows,
    writeback_strings: StringTable,
    /// Number of the present batch, from 1.
    epoch: u32,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self {
            rows: FaultRows::default(),
            strings: StringTable::new(),
            words: Small::new(WORDS.len()),
            recent_files: cache::recent_files(),
            recent_threads: cache::recent_threads(),
            writeback: WritebackRows::default(),
            writeback_strings: StringTable::new(),
            epoch: 1,
        }
    }

    /// Rows of both tables that were not taken yet.
    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.len() + self.writeback.rid.len()
    }

    /// The record of a file came: what is remembered of it may be old.
    pub(crate) fn forget_file(&mut self, handle: u32) {
        self.recent_files.forget(handle);
    }

    /// The same for a thread.
    pub(crate) fn forget_thread(&mut self, tid: u32) {
        self.recent_threads.forget(tid);
    }

    pub(crate) fn fault(
        &mut self,
        rid: i64,
        cpu: u32,
        r: &FaultRecord,
        files: &mut Files,
        tasks: &mut Tasks,
    ) {
        let flags = u32::from(r.flags);
        let has = |flag: u32| flags & flag != 0;
        let (begin, end) = (!has(FAULT_NO_BEGIN), !has(FAULT_NO_END));
        let file = self.file(r.file, r.ts_ns.saturating_add(r.dur_ns), files);
        let comm = self.comm(r.tid, r.ts_ns, tasks);
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
        let around = begin && r.around_bytes > 0 && r.around_offset != NO_OFFSET;
        let rows = &mut self.rows;
        rows.push(FaultRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: if begin && end {
                signed(r.dur_ns)
            } else {
                NULL_I64
            },
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
            around_offset: if around { r.around_offset } else { NULL_I64 },
            around_bytes: if around {
                i64::from(r.around_bytes)
            } else {
                NULL_I64
            },
        });
    }

    pub(crate) fn writeback(&mut self, rid: i64, cpu: u32, r: &WritebackRecord, files: &mut Files) {
        let strings = &mut self.writeback_strings;
        let flags = u32::from(r.flags);
        let (mut file_id, mut path) = (NULL_I64, StrId::NULL);
        if r.file != 0 {
            let file = files.by_handle(r.file, r.ts_ns);
            file_id = file.id;
            if let Some(bytes) = &file.path {
                path = strings.intern(lossless(bytes).as_bytes());
            }
        }
        let name = r.comm.split(|b| *b == 0).next().unwrap_or_default();
        let comm = strings.intern(lossless(name).as_bytes());
        let syscall = SYSCALLS
            .get(usize::from(r.syscall))
            .filter(|_| flags & WRITEBACK_IN_CALL != 0)
            .map_or(StrId::NULL, |call| strings.intern(call.name.as_bytes()));
        let rows = &mut self.writeback;
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
        // 0 stands for no batch in the caches.
        self.epoch = self.epoch.wrapping_add(1).max(1);
        let faults = std::mem::take(&mut self.rows);
        let writeback = std::mem::take(&mut self.writeback);
        [
            faults.into_batch(std::mem::take(&mut self.strings)),
            writeback.into_batch(std::mem::take(&mut self.writeback_strings)),
        ]
    }

    fn word(&mut self, word: &'static str, known: bool) -> StrId {
        if !known {
            return StrId::NULL;
        }
        let at = WORDS.iter().position(|w| *w == word);
        self.words.get(
            at.unwrap_or(WORDS.len()),
            self.epoch,
            &mut self.strings,
            || word,
        )
    }

    fn file(&mut self, handle: u32, now_ns: u64, files: &mut Files) -> FileMemo {
        if handle == 0 {
            return FileMemo {
                file_id: NULL_I64,
                path: StrId::NULL,
            };
        }
        if let Some(memo) = self.recent_files.get(handle, self.epoch) {
            return memo;
        }
        let file = files.by_handle(handle, now_ns);
        let path = file.path.as_ref().map_or(StrId::NULL, |path| {
            self.strings.intern(lossless(path).as_bytes())
        });
        let memo = FileMemo {
            file_id: file.id,
            path,
        };
        self.recent_files.put(handle, self.epoch, memo);
        memo
    }

    fn comm(&mut self, tid: u32, now_ns: u64, tasks: &mut Tasks) -> StrId {
        if let Some(comm) = self.recent_threads.get(tid, self.epoch) {
            return comm;
        }
        let comm = tasks
            .used(tid, now_ns)
            .map_or(StrId::NULL, |comm| self.strings.intern(comm.as_bytes()));
        self.recent_threads.put(tid, self.epoch, comm);
        comm
    }
}

//! Calls and operations: table `syscalls`.
//!
//! [`Calls::on`] makes a row of each: what the call returned and where, then its words, its
//! files and paths, its content, and the id that the request has. A read or write of a file
//! that the batch has already formats and hashes nothing and allocates nothing but the room
//! of the columns: its words are found by the number of the call, its file and its thread at
//! the place that their low bits tell, and every value is pushed to its column.

mod args;
mod cache;
pub(crate) mod call;
pub(crate) mod content;
mod descriptors;
mod flows;
mod labels;
pub(crate) mod library;
mod names;
mod network;
mod operations;
mod outcome;
mod plan;
mod structs;

use fathom_model::abi::{
    CALL_NO_CONTENT, CALL_PENDING, CONTENT_BEGINNING, CONTENT_TLS, DataCallRecord, FileRecord,
    TASK_EXEC, TASK_EXIT, TASK_FORK, TaskRecord,
};
use fathom_model::batch::{Batch, NULL_I64, Null};
use fathom_model::kind::Kind as Purpose;
use fathom_model::syscalls::Class;
use fathom_model::tables::{SyscallRow, SyscallRows};
use fathom_model::{StrId, StringTable};
use linux_raw_sys::general::{S_IFMT, S_IFSOCK};
use linux_raw_sys::net::{MSG_ERRQUEUE, MSG_OOB, MSG_PEEK};

use crate::files::positions::Positions;
use crate::layers::requests::{Key, Kind};
use crate::layers::{Ended, Layers};
use crate::spans::Spans;
use crate::strings::{Known, Strings};
use crate::{id, signed};
use cache::Cache;
use call::Call;
use content::{Columns, ContentCounts, Contents};
use flows::Flows;
use labels::{CallLabels, Labels};
use library::LibraryCalls;
use outcome::Outcome;
use plan::{PLANS, Plan};

/// Flags of calls whose bytes are in no place of the stream.
const IN_NO_PLACE: u32 = MSG_OOB | MSG_PEEK | MSG_ERRQUEUE;

/// Rows that are put into their columns at once. They fit the processor's first cache.
const STAGED: usize = 64;

/// Whether calls of this purpose receive bytes; `None` if they move none in one direction.
fn direction(purpose: Purpose) -> Option<bool> {
    match purpose {
        Purpose::Read | Purpose::Receive => Some(true),
        Purpose::Write | Purpose::Send => Some(false),
        _ => None,
    }
}

/// The rows that were not taken yet, and what further ones need.
#[derive(Debug)]
pub(crate) struct Calls {
    plans: &'static [Plan],
    rows: SyscallRows,
    /// Rows behind them that are not in their columns yet: at most [`STAGED`].
    staged: Vec<SyscallRow>,
    strings: Strings,
    words: Labels,
    positions: Positions,
    contents: Contents,
    flows: Flows,
    /// Calls of libraries.
    pub(crate) library: LibraryCalls,
    /// Requests in what they moved on sockets.
    pub(crate) spans: Spans,
    path: Vec<u8>,
    /// Rows that were made, taken or not.
    made: u64,
}

impl Calls {
    /// `calls_left_out`: filters leave out calls that may move positions.
    pub(crate) fn new(calls_left_out: bool, spans: Spans) -> Self {
        Self {
            plans: &PLANS,
            rows: SyscallRows::default(),
            staged: Vec::with_capacity(STAGED),
            strings: Strings::default(),
            words: Labels::new(),
            positions: Positions::new(calls_left_out),
            contents: Contents::default(),
            flows: Flows::default(),
            library: LibraryCalls::default(),
            spans,
            path: Vec::new(),
            made: 0,
        }
    }

    /// Makes the row of a call that `cpu` recorded.
    pub(crate) fn on(&mut self, cpu: u32, call: &Call<'_>, layers: &mut Layers, known: &mut Known) {
        let r = call.record;
        let index = usize::from(r.syscall);
        // Decoding lets only known calls pass.
        let Some(plan) = self.plans.get(index) else {
            return;
        };
        let outcome = Outcome::of(plan, call);
        let row = self.rows.len() + self.staged.len();
        let offset = outcome.offset(plan, call, row, &mut self.positions);

        let (words, strings) = (&mut self.words, &mut self.strings);
        let errno = match outcome.error {
            Some(number) => words.error(number, strings),
            None => StrId::NULL,
        };
        let CallLabels {
            syscall,
            class,
            api,
        } = words.call(index, plan, strings);
        let flags = words.flags(plan, call, strings);
        let args = words.args(plan, call, &known.files, strings);
        let op_flags = words.op_flags(call, strings);

        let names = names::of(plan, call, outcome.error, known, strings, &mut self.path);
        let comm = strings.comm(r.tid, call.ended_at_ns(), known);
        self.library.descriptors.call(plan, call);
        let content = self.content(call, outcome.bytes);
        let cache = Cache::of(call.cache, offset, outcome.bytes);
        if self.flows.concern(call) {
            self.flows.call(plan, call, outcome.bytes, known);
        }
        if self.spans.concern() {
            self.requests(plan, call, outcome.bytes, known);
        }

        let rid = layers.ends(
            &Ended {
                key: Key::new(r.tid, r.ts_ns),
                kind: match call.operation {
                    Some(_) => Kind::Operation,
                    None => Kind::Call,
                },
                name: plan.name,
                dur_ns: r.dur_ns,
                changes: call.cache.is_some_and(|c| c.dirtied > 0 || c.handles > 0),
            },
            known,
        );
        self.made += 1;
        self.staged.push(SyscallRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm,
            cpu: id(cpu),
            syscall,
            class,
            ret: outcome.ret,
            errno,
            fd: r.fd.when(plan.has_fd),
            file_id: names.file_id,
            file_offset: offset,
            size: outcome.size,
            bytes: outcome.bytes,
            flags,
            path_arg: names.path_arg,
            path_arg2: names.path_arg2,
            path: names.path,
            path2: names.path2,
            hash: content.hash,
            args,
            api,
            op_flags,
            user_data: call.operation.map_or(NULL_I64, |(_, data)| data as i64),
            content_bytes: content.bytes,
            content: content.content,
            cache_pages: cache.pages,
            cache_misses: cache.misses,
            readahead_pages: cache.ahead,
            added_pages: cache.added,
            dirtied: cache.dirtied,
            journal_handles: cache.handles,
            user_call: match call.operation {
                Some(_) => NULL_I64,
                None => self.library.around(r.tid, r.ts_ns),
            },
        });
        if self.staged.len() >= STAGED {
            self.unstage();
        }
    }

    /// Puts the staged rows into their columns.
    fn unstage(&mut self) {
        self.rows.extend_ragged(&self.staged);
        self.staged.clear();
    }

    #[inline]
    fn content(&mut self, call: &Call<'_>, moved: i64) -> Columns {
        if let Some((record, bytes)) = call.data {
            return self.contents.call(record, bytes, &mut self.strings.table);
        }
        if moved > 0 && call.has(CALL_NO_CONTENT) {
            self.contents.missing();
        }
        Columns::NONE
    }

    /// Takes a part of the content of a call that is still to come.
    pub(crate) fn content_part(
        &mut self,
        record: &DataCallRecord,
        bytes: &[u8],
        known: &mut Known,
    ) {
        if record.status == CONTENT_TLS {
            let ends = |handle| self.flows.end(handle);
            self.spans.tls(record, bytes, &ends, known);
            return;
        }
        if record.status != CONTENT_BEGINNING {
            self.contents.part(record, bytes);
            return;
        }
        let plan = self.plans.get(usize::from(record.call.syscall));
        if let Some(is_in) = plan.and_then(|plan| direction(plan.purpose)) {
            self.spans.beginning(
                record,
                is_in,
                bytes,
                &|handle| self.flows.end(handle),
                known,
            );
        }
    }

    /// Follows the connections that requests come by.
    fn requests(&mut self, plan: &Plan, call: &Call<'_>, bytes: i64, known: &mut Known) {
        let r = call.record;
        if call.operation.is_some() || call.has(CALL_PENDING) {
            return;
        }
        if plan.purpose == Purpose::Close && r.ret == 0 {
            self.spans.closed(r.file, r.pid, known);
            return;
        }
        if bytes <= 0 || plan.class == Class::Socket && r.aux & IN_NO_PLACE != 0 {
            return;
        }
        let times = (r.ts_ns, call.ended_at_ns());
        let of = (r.pid, r.tid);
        if let Some(is_in) = direction(plan.purpose) {
            let moved = (bytes, r.offset);
            self.spans.call(
                (r.file, is_in),
                times,
                of,
                moved,
                &|handle| self.flows.end(handle),
                known,
            );
        } else if let (Purpose::Transfer, Some(wide)) = (plan.purpose, call.wide) {
            let moved = (bytes, NULL_I64);
            self.spans.call(
                (r.file, true),
                times,
                of,
                moved,
                &|handle| self.flows.end(handle),
                known,
            );
            self.spans.call(
                (wide.file2, false),
                times,
                of,
                moved,
                &|handle| self.flows.end(handle),
                known,
            );
        }
    }

    /// The record of a file came: what is remembered of it may be old.
    pub(crate) fn file(&mut self, record: &FileRecord, known: &mut Known) {
        self.strings.forget_file(record.handle);
        self.flows.file(record);
        let is_socket = record.mode & S_IFMT == S_IFSOCK;
        self.spans.file(record.handle, record.ino, is_socket, known);
    }

    /// Rows of table `flows` that are new or changed.
    pub(crate) fn take_flows(&mut self) -> Batch {
        self.flows.take()
    }

    /// The same for a thread to which `event` happened.
    pub(crate) fn task(&mut self, record: &TaskRecord) {
        let (event, tid) = (record.event, record.tid);
        self.library.descriptors.task(record);
        self.strings.forget_thread(tid);
        self.library.forget_name(tid);
        self.spans.forget_name(tid);
        if [TASK_FORK, TASK_EXEC, TASK_EXIT].contains(&u32::from(event)) {
            self.library.forget_calls(tid);
            self.spans.thread_ended(tid);
        }
        self.spans.context_task(record);
    }

    pub(crate) fn pending_rows(&self) -> usize {
        let calls = self.rows.len() + self.staged.len();
        calls + self.library.pending_rows() + self.spans.pending_rows()
    }

    /// Bytes of strings in these rows.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.strings.table.bytes() + self.library.pending_bytes() + self.spans.pending_bytes()
    }

    pub(crate) fn content_counts(&self) -> ContentCounts {
        self.contents.counts()
    }

    /// Calls that moved data, but not known where.
    pub(crate) fn offsets_unknown(&self) -> u64 {
        self.positions.unknown()
    }

    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        self.unstage();
        let rows = self.rows.len();
        let offsets = &mut self.rows.file_offset;
        self.positions.resolve(|row, offset| {
            if offsets.len() < rows {
                offsets.resize(rows, NULL_I64);
            }
            if let Some(place) = offsets.get_mut(row) {
                *place = offset.unwrap_or(NULL_I64);
            }
        });
        self.rows.level();
        let strings = self.strings.take(StringTable::new());
        self.rows.take().into_batch(strings)
    }
}

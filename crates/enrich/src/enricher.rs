//! Events to rows.

use fathom_decode::{DecodeStats, Event};
use fathom_model::abi::{
    ARG_STRING1_NULL, CALL_APPENDS, CALL_HAS_STAT, CALL_NO_CONTENT, CALL_PENDING,
    CALL_POSITION_RACED, CALL_SHARED_POSITION, CALL_STRING1_PARTIAL, CALL_STRING2_PARTIAL,
    NO_OFFSET, RECORD_CONTENT_PART, ShedKey, ShedValue,
};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::bytes::lossless;
use fathom_model::syscalls::{Number, Returns, SYSCALLS};
use fathom_model::tables::{SyscallRow, SyscallRows};
use fathom_model::{StrId, StringTable, errno};

use crate::args::{self, Call};
use crate::cache::{self, FileMemo, Recent, Small, Texts};
use crate::content::{self, ContentCounts, Contents};
use crate::counters::Counters;
use crate::faults::Faults;
use crate::files::{Files, Limit};
use crate::layers::requests::{Key, Kind};
use crate::layers::{Ended, Layers};
use crate::losses::{self, Losses};
use crate::operations;
use crate::perf_counters::PerfCounters;
use crate::plan::{Plan, String1, String2, plans};
use crate::positions::{Moved, Positions, Use};
use crate::stacks::Stacks;
use crate::structs;
use crate::tasks::Tasks;
use crate::{id, paths, signed, vocab};

/// Keys of decoded arguments begin here, keys of flags at 0.
const ARGS_KEYS: u16 = 1 << 15;
/// Key of the flags of operations.
const OPERATION_KEY: u16 = 1 << 14;
/// Error numbers end here.
const ERRORS: usize = 4096;
/// Rows for which a new batch sets memory aside at most.
const MAX_RESERVED: usize = 1 << 20;
/// Batches whose memory is kept.
const MAX_SPARE: usize = 2;
const ENOENT: i64 = 2;
/// IORING_ENTER_REGISTERED_RING
const ENTER_REGISTERED_RING: u64 = 16;
/// IORING_REGISTER_USE_REGISTERED_RING
const REGISTER_USE_REGISTERED_RING: u64 = 1 << 31;

/// Memory of files that are remembered when nothing else is said: some 400,000 of them
/// with paths of 100 bytes.
pub const MAX_FILE_BYTES: usize = 256 << 20;

/// Limits of an [`Enricher`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnrichOptions {
    /// Files that are remembered. Beyond that, the ones that were not used for
    /// longest are forgotten: such a file gets a new id when it is used again.
    pub max_files: usize,
    /// Memory that they take with their paths, about: a file takes some 600 bytes and its path.
    /// The same becomes of files beyond that.
    pub max_file_bytes: usize,
    /// Threads that are remembered. Beyond that the oldest are forgotten: the
    /// rows of their further calls have no name of the thread.
    pub max_threads: usize,
    /// Whether filters left calls out that may have moved positions.
    pub calls_left_out: bool,
    /// Rows of files and threads that are older are written again when a request
    /// refers to them, in the time of the requests, nanoseconds: for sessions that
    /// keep their latest rows only. `None`: rows are written when they change.
    pub refresh_ns: Option<u64>,
}

impl Default for EnrichOptions {
    fn default() -> Self {
        Self {
            max_files: 1 << 20,
            max_file_bytes: MAX_FILE_BYTES,
            max_threads: 1 << 18,
            calls_left_out: false,
            refresh_ns: None,
        }
    }
}

/// Turns events into the rows of the tables `syscalls`, `faults`, `writeback`,
/// `files`, `file_paths`, `processes` and `losses`.
///
/// Events are to come in order of time ([`fathom_decode::Merge`]). Rows gather
/// until [`Enricher::take`] hands them out as batches; every batch has its own
/// strings. Memory is that of the rows that were not taken, and of the files
/// and threads in [`EnrichOptions`].
#[derive(Debug)]
pub struct Enricher {
    plans: Vec<Plan>,
    rows: SyscallRows,
    strings: StringTable,
    /// Empty columns of batches that were given back.
    spare: Vec<(SyscallRows, StringTable)>,
    /// Number of the present batch, from 1.
    epoch: u32,
    files: Files,
    tasks: Tasks,
    positions: Positions,
    losses: Losses,
    counters: Counters,
    /// Rows of table `syscalls` that were made.
    calls: u64,
    faults: Faults,
    layers: Layers,
    stacks: Stacks,
    perf_counters: PerfCounters,
    contents: Contents,
    names: Small,
    classes: Small,
    apis: Small,
    errors: Small,
    texts: Texts,
    recent_files: Recent<FileMemo>,
    recent_threads: Recent<StrId>,
    path: Vec<u8>,
    first_at_ns: Option<u64>,
    last_at_ns: u64,
}

/// What depends on the strings and the second file of a call.
#[derive(Default)]
struct Named {
    file: FileMemo,
    path: StrId,
    path2: StrId,
    path_arg: StrId,
    path_arg2: StrId,
}

impl Enricher {
    /// An enricher that has seen nothing yet.
    pub fn new(options: EnrichOptions) -> Self {
        Self {
            plans: plans(),
            rows: SyscallRows::default(),
            strings: StringTable::new(),
            spare: Vec::new(),
            epoch: 1,
            files: Files::new(Limit {
                files: options.max_files,
                bytes: options.max_file_bytes,
            })
            .refreshed_after(options.refresh_ns),
            tasks: Tasks::new(options.max_threads).refreshed_after(options.refresh_ns),
            positions: Positions::new(options.calls_left_out),
            losses: Losses::default(),
            counters: Counters::default(),
            calls: 0,
            faults: Faults::new(),
            layers: Layers::default(),
            stacks: Stacks::default(),
            perf_counters: PerfCounters::default(),
            contents: Contents::default(),
            names: Small::new(SYSCALLS.len()),
            classes: Small::new(SYSCALLS.len()),
            apis: Small::new(SYSCALLS.len()),
            errors: Small::new(ERRORS),
            texts: Texts::default(),
            recent_files: cache::recent_files(),
            recent_threads: cache::recent_threads(),
            path: Vec::new(),
            first_at_ns: None,
            last_at_ns: 0,
        }
    }

    /// Takes an event that `cpu` wrote.
    pub fn event(&mut self, cpu: u32, event: &Event<'_>) {
        self.last_at_ns = event.time_ns();
        self.first_at_ns.get_or_insert(self.last_at_ns);
        match event {
            Event::Call(record) => {
                self.call(
                    cpu,
                    &Call {
                        record,
                        wide: None,
                        data: None,
                        string1: b"",
                        string2: b"",
                        string3: b"",
                        structure: b"",
                        operation: None,
                    },
                );
            }
            Event::Operation {
                call: record,
                op_flags,
                user_data,
            } => {
                self.call(
                    cpu,
                    &Call {
                        record,
                        wide: None,
                        string1: b"",
                        string2: b"",
                        string3: b"",
                        structure: b"",
                        data: None,
                        operation: Some((*op_flags, *user_data)),
                    },
                );
            }
            Event::Wide {
                record,
                string1,
                string2,
                string3,
                structure,
            } => {
                self.call(
                    cpu,
                    &Call {
                        record: &record.call,
                        wide: Some(record),
                        data: None,
                        string1,
                        string2,
                        string3,
                        structure,
                        operation: operations::of_wide(record),
                    },
                );
            }
            Event::Data { record, content }
                if u32::from(record.call.kind) == RECORD_CONTENT_PART =>
            {
                self.contents.part(record, content);
            }
            Event::Data { record, content } => {
                self.call(
                    cpu,
                    &Call {
                        record: &record.call,
                        wide: None,
                        data: Some((record, content)),
                        string1: b"",
                        string2: b"",
                        string3: b"",
                        structure: b"",
                        operation: None,
                    },
                );
            }
            Event::File {
                record,
                path,
                fs_path,
            } => {
                self.files.event(record, path, fs_path);
                self.recent_files.forget(record.handle);
                self.faults.forget_file(record.handle);
            }
            Event::Task {
                record,
                cmdline,
                exe,
                cgroup,
            } => {
                self.tasks.event(record, cmdline, exe, cgroup);
                self.recent_threads.forget(record.tid);
                self.faults.forget_thread(record.tid);
            }
            Event::Fault(record) => {
                let rid = self.layers.ends(
                    &Ended {
                        key: Key {
                            tid: record.tid,
                            ns: record.ts_ns,
                        },
                        kind: Kind::Fault,
                        name: "page_fault",
                        dur_ns: record.dur_ns,
                        read: None,
                    },
                    &mut self.files,
                    &mut self.tasks,
                );
                self.faults
                    .fault(rid, cpu, record, &mut self.files, &mut self.tasks);
            }
            Event::Writeback(record) => {
                let rid = self.layers.requests.next();
                self.faults.writeback(rid, cpu, record, &mut self.files);
            }
            Event::Block { record, bios } => self.layers.block(cpu, record, bios, &mut self.files),
            Event::Wait(record) => self.layers.wait(cpu, record, &mut self.tasks),
            Event::Irq(record) => self.layers.irq(cpu, record, &mut self.tasks),
            Event::Cache(record) => self.layers.cache(record, &mut self.files, &mut self.tasks),
            Event::Span(record) => self.layers.span(record),
            Event::Stack(record) => self.stacks.stack(
                self.layers.requests.ended(Key {
                    tid: record.tid,
                    ns: record.request_ns,
                }),
                record,
            ),
            Event::Counters(record) => self.perf_counters.request(
                self.layers.requests.ended(Key {
                    tid: record.tid,
                    ns: record.request_ns,
                }),
                record,
            ),
            Event::Frame {
                record,
                object,
                build_id,
                function,
                source,
            } => {
                self.stacks
                    .frame(record, [object, build_id, function, source]);
            }
            Event::Mount {
                record,
                root,
                point,
            } => self.files.mount(record, root, point),
        }
    }

    /// Rows of requests and of the layers below them that were not taken yet.
    pub fn pending_rows(&self) -> usize {
        self.rows.len()
            + self.faults.pending_rows()
            + self.layers.pending_rows()
            + self.stacks.pending_rows()
            + self.perf_counters.pending_rows()
    }

    /// Bytes of strings of these rows.
    pub fn pending_bytes(&self) -> usize {
        self.strings.bytes() + self.files.pending_bytes() + self.tasks.pending_bytes()
    }

    /// Of how many calls the content was recorded so far.
    pub fn content(&self) -> ContentCounts {
        self.contents.counts()
    }

    /// Calls that moved data, but not known where: their offset is null.
    pub fn offsets_unknown(&self) -> u64 {
        self.positions.unknown()
    }

    /// Rows of table `syscalls` that were made so far, taken or not.
    pub fn totals(&self) -> u64 {
        self.calls
    }

    /// The rows since the last time: at most one batch each of `syscalls`, `faults`,
    /// `writeback`, `files`, `file_paths` and `processes`, none that is empty. The last two
    /// and `files` have the rows that are new or changed.
    pub fn take(&mut self) -> Vec<Batch> {
        let offsets = &mut self.rows.file_offset;
        self.positions.resolve(|row, offset| {
            if let Some(place) = offsets.get_mut(row) {
                *place = offset.unwrap_or(NULL_I64);
            }
        });
        let (empty, no_strings) = self.spare.pop().unwrap_or_else(|| {
            (
                SyscallRows::with_capacity(self.rows.len().min(MAX_RESERVED)),
                StringTable::new(),
            )
        });
        let calls = std::mem::replace(&mut self.rows, empty);
        let strings = std::mem::replace(&mut self.strings, no_strings);
        // 0 stands for no batch in the caches.
        self.epoch = self.epoch.wrapping_add(1).max(1);
        let ((files, file_strings), (file_paths, path_strings)) = self.files.take();
        let (processes, process_strings) = self.tasks.take();
        let [faults, writeback] = self.faults.take();
        // What requests refer to comes first: whatever is written of these batches
        // before the recorder is killed refers to nothing that is not.
        let mut batches = vec![
            files.into_batch(file_strings),
            file_paths.into_batch(path_strings),
            processes.into_batch(process_strings),
            calls.into_batch(strings),
            faults,
            writeback,
        ];
        batches.extend(self.layers.take());
        batches.extend(self.stacks.take());
        batches.push(self.perf_counters.take());
        batches.retain(|b| !b.is_empty());
        batches
    }

    /// The recording is over: makes the rows that waited for a request whose own
    /// record did not come.
    pub fn finish(&mut self) {
        self.layers.finish(&mut self.files, &mut self.tasks);
    }

    /// Gives the memory of a batch back, to be used for one to come: that is
    /// two to three times as fast as new memory when batches are large. Only
    /// batches of `syscalls` are worth it; others are dropped.
    pub fn recycle(&mut self, batch: Batch) {
        if self.spare.len() < MAX_SPARE
            && let Some((mut rows, mut strings)) = SyscallRows::from_batch(batch)
        {
            rows.clear();
            strings.clear();
            self.spare.push((rows, strings));
        }
    }

    /// Rows of table `losses` for calls that were lost in the kernel, from
    /// counters that only grow: `per_cpu` has CPU, call and what was lost of
    /// it, exact; `split` the same by process and file, perhaps incomplete. What
    /// `split` does not account for goes into rows with pid and file -1, whose
    /// longest duration is a limit and whose times are those of all. Each set of
    /// rows replaces the one before.
    pub fn losses(
        &mut self,
        per_cpu: &[(u32, u32, ShedValue)],
        split: &[(ShedKey, ShedValue)],
    ) -> Batch {
        let now = self.last_at_ns;
        let files = &mut self.files;
        self.losses
            .rows(per_cpu, split, |key| files.by_handle(key.file, now).id)
    }

    /// Rows of table `counters` for what the kernel has counted since the last
    /// time: `read` has its counters as they were at `now_ns`, those of the first
    /// time count from `started_at_ns`.
    pub fn counters(
        &mut self,
        started_at_ns: u64,
        now_ns: u64,
        read: &[(ShedKey, ShedValue)],
    ) -> Batch {
        let files = &mut self.files;
        self.counters.rows(started_at_ns, now_ns, read, |handle| {
            files.by_handle(handle, now_ns).id
        })
    }

    /// The row of table `losses` for records that arrived damaged, so that
    /// nothing is known of them; `None` when there were none. All records of the
    /// slot rings are calls; those of the wide rings may have been, and count as
    /// such. Each row replaces the one before.
    pub fn decode_losses(&self, stats: &DecodeStats) -> Option<Batch> {
        let count = stats.slot.damaged.saturating_add(stats.wide.damaged);
        (count > 0)
            .then(|| losses::damaged(count, self.first_at_ns.unwrap_or_default(), self.last_at_ns))
    }

    fn call(&mut self, cpu: u32, call: &Call<'_>) {
        let r = call.record;
        let index = usize::from(r.syscall);
        let epoch = self.epoch;
        // Decoding lets only known calls pass.
        let Some(plan) = self.plans.get(index) else {
            return;
        };
        let pending = call.has(CALL_PENDING);
        let error = if pending {
            None
        } else {
            errno::of_return(r.ret)
        };
        let errno = match error {
            None => StrId::NULL,
            Some(n) => self
                .errors
                .get(n as usize, epoch, &mut self.strings, || error_name(n)),
        };
        let bytes = match plan.returns {
            // Asked with size 0, getxattr and listxattr return the size that
            // there is.
            Returns::Bytes if !pending && r.ret >= 0 => {
                if call.size(plan) == Some(0) {
                    0
                } else {
                    r.ret
                }
            }
            _ => NULL_I64,
        };
        // What a column does not hold stands in args.
        let size = match call.size(plan).filter(|_| plan.has_size) {
            Some(size) => plan.size.of(size).unwrap_or(NULL_I64),
            None => NULL_I64,
        };
        let mut offset = match plan.offset {
            _ if !plan.has_offset => NULL_I64,
            Number::Unsigned if r.offset < 0 => NULL_I64,
            _ => r.offset,
        };
        if u32::from(r.flags) & (CALL_SHARED_POSITION | CALL_POSITION_RACED) != 0 && !pending {
            let row = (bytes > 0).then_some(self.rows.len());
            offset = position(&mut self.positions, plan, call, row);
        }
        let fd = if plan.has_fd { r.fd } else { NULL_I32 };
        let strings = &mut self.strings;
        let name = self.names.get(index, epoch, strings, || plan.name);
        let class = self
            .classes
            .get(index, epoch, strings, || plan.class.name());
        let texts = &mut self.texts;
        let flags = match (plan.flags, call.how()) {
            (Some(flags), _) => match call.value(flags.place) {
                Some(v) => texts.get((r.syscall, v), epoch, strings, |out| {
                    vocab::write(flags.kind, v, out);
                }),
                None => StrId::NULL,
            },
            (None, Some([v, ..])) if plan.has_how => {
                texts.get((r.syscall, v), epoch, strings, |out| {
                    vocab::write(vocab::Kind::Open, v, out);
                })
            }
            (None, _) => StrId::NULL,
        };
        let args = if plan.args.is_empty() && call.wide.is_none() && plan.fits(call) {
            StrId::NULL
        } else if plan.args_from_aux && call.wide.is_none() && plan.fits(call) {
            let key = (ARGS_KEYS | r.syscall, u64::from(r.aux));
            texts.get(key, epoch, strings, |out| {
                args::write(plan, call, [None; 2], out);
            })
        } else {
            let directories = self.files.directories(call);
            texts.once(strings, |out| args::write(plan, call, directories, out))
        };
        let api = self.apis.get(index, epoch, strings, || plan.api.name());
        let (op_flags, user_data) = match call.operation {
            None => (operations::of_call(call.wide), NULL_I64),
            Some((flags, user_data)) => (Some(flags), user_data as i64),
        };
        let op_flags = op_flags.map_or(StrId::NULL, |flags| {
            let key = (OPERATION_KEY, u64::from(flags));
            texts.get(key, epoch, strings, |out| operations::write(flags, out))
        });
        let call_name = plan.name;
        let named = if plan.has_ring {
            self.ring(call)
        } else if plan.string1 == String1::None && call.wide.is_none() {
            let file = self.file(r.file);
            Named {
                file,
                path: file.path,
                ..Named::default()
            }
        } else {
            self.named(call, error)
        };
        let comm = self.comm(r.tid);
        let content = match call.data {
            Some((record, bytes)) => self.contents.call(record, bytes, &mut self.strings),
            None => {
                if bytes > 0 && call.has(CALL_NO_CONTENT) {
                    self.contents.missing();
                }
                content::Columns::NONE
            }
        };

        let rid = self.layers.ends(
            &Ended {
                key: Key {
                    tid: r.tid,
                    ns: r.ts_ns,
                },
                kind: if call.operation.is_some() {
                    Kind::Operation
                } else {
                    Kind::Call
                },
                name: call_name,
                dur_ns: r.dur_ns,
                read: (offset != NULL_I64 && bytes != NULL_I64).then_some((offset, bytes)),
            },
            &mut self.files,
            &mut self.tasks,
        );
        self.calls += 1;
        let rows = &mut self.rows;
        rows.push(SyscallRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm,
            cpu: id(cpu),
            api,
            syscall: name,
            class,
            ret: if pending { NULL_I64 } else { r.ret },
            errno,
            fd,
            file_id: named.file.file_id,
            file_offset: offset,
            size,
            bytes,
            flags,
            path_arg: named.path_arg,
            path_arg2: named.path_arg2,
            path: named.path,
            path2: named.path2,
            hash: content.hash,
            args,
            op_flags,
            user_data,
            content_bytes: content.bytes,
            content: content.content,
        });
    }

    /// Of a call on a ring: what its descriptor stands for, unless it is the index of a
    /// registered one.
    fn ring(&mut self, call: &Call<'_>) -> Named {
        let plan = self.plans.get(usize::from(call.record.syscall));
        let registered = plan.is_some_and(|plan| {
            let set = |name: &str, bit: u64| {
                plan.value(name)
                    .and_then(|v| call.value(v.place))
                    .is_some_and(|value| value & bit != 0)
            };
            set("flags", ENTER_REGISTERED_RING) || set("opcode", REGISTER_USE_REGISTERED_RING)
        });
        Named {
            // The descriptor of a ring: what is done to the ring is done to no file.
            file: self.file(0),
            path: self
                .file(if registered { 0 } else { call.record.file })
                .path,
            ..Named::default()
        }
    }

    /// Paths and file of a call with strings or a second file.
    #[inline(never)]
    fn named(&mut self, call: &Call<'_>, error: Option<i64>) -> Named {
        let r = call.record;
        let Some(plan) = self.plans.get(usize::from(r.syscall)) else {
            return Named::default();
        };
        let (string1, string2, structure) = (plan.string1, plan.string2, plan.structure);
        let (dir1, dir2, file2) = call.wide.map_or((0, 0, 0), |w| (w.dir1, w.dir2, w.file2));
        let root = call.wide.map_or(0, |w| w.root);
        let partial1 = call.has(CALL_STRING1_PARTIAL);
        let partial2 = call.has(CALL_STRING2_PARTIAL);
        // A path that is empty (AT_EMPTY_PATH) is the directory's descriptor.
        let empty = string1 == String1::Path
            && r.file == 0
            && call.wide.is_some()
            && call.string1.is_empty()
            && !partial1
            && error != Some(ENOENT);
        let mut named = Named {
            file: self.file(if empty { dir1 } else { r.file }),
            ..Named::default()
        };
        if string1 != String1::None
            && !(partial1 && call.string1.is_empty())
            && !call.passed(ARG_STRING1_NULL)
        {
            named.path_arg = self.strings.intern(lossless(call.string1).as_bytes());
        }
        let mut resolved = false;
        // One that is empty leads nowhere otherwise.
        if string1 == String1::Path && !partial1 && (empty || !call.string1.is_empty()) {
            let (root, base) = (self.files.path_of(root), self.files.path_of(dir1));
            resolved = paths::absolute(root, base, call.string1, &mut self.path);
        }
        if call.has(CALL_HAS_STAT)
            && string1 == String1::Path
            && r.file == 0
            && !empty
            && error.is_none()
            && let Some(wide) = call.wide
        {
            let path = resolved.then_some(self.path.as_slice());
            let now = r.ts_ns.saturating_add(r.dur_ns);
            let mode = structs::mode(structure, call.structure);
            named.file.file_id =
                self.files
                    .by_stat((wide.stat_dev, wide.stat_ino), mode, path, now);
        }
        // A call by path that has a file opened it, or went there (chdir).
        let own = r.file != 0 && named.file.path != StrId::NULL;
        named.path = match string1 {
            String1::Path if resolved && !own => {
                self.strings.intern(lossless(&self.path).as_bytes())
            }
            String1::Path | String1::None => named.file.path,
            String1::Target => StrId::NULL,
        };
        match string2 {
            String2::Path => {
                if !(partial2 && call.string2.is_empty()) {
                    named.path_arg2 = self.strings.intern(lossless(call.string2).as_bytes());
                }
                let (root, base) = (self.files.path_of(root), self.files.path_of(dir2));
                let leads = !(partial2 || call.string2.is_empty() && error.is_some());
                if leads && paths::absolute(root, base, call.string2, &mut self.path) {
                    named.path2 = self.strings.intern(lossless(&self.path).as_bytes());
                }
            }
            String2::None | String2::Text if file2 != 0 => named.path2 = self.file(file2).path,
            String2::None | String2::Text => {}
        }
        named
    }

    /// The file behind a handle.
    #[inline]
    fn file(&mut self, handle: u32) -> FileMemo {
        if handle == 0 {
            return FileMemo {
                file_id: NULL_I64,
                path: StrId::NULL,
            };
        }
        match self.recent_files.get(handle, self.epoch) {
            Some(memo) => memo,
            None => self.look_up_file(handle),
        }
    }

    #[inline(never)]
    fn look_up_file(&mut self, handle: u32) -> FileMemo {
        let file = self.files.by_handle(handle, self.last_at_ns);
        let path = match &file.path {
            Some(path) => self.strings.intern(lossless(path).as_bytes()),
            None => StrId::NULL,
        };
        let memo = FileMemo {
            file_id: file.id,
            path,
        };
        self.recent_files.put(handle, self.epoch, memo);
        memo
    }

    /// Name of a thread.
    #[inline]
    fn comm(&mut self, tid: u32) -> StrId {
        if let Some(comm) = self.recent_threads.get(tid, self.epoch) {
            return comm;
        }
        let comm = match self.tasks.used(tid, self.last_at_ns) {
            Some(comm) => self.strings.intern(comm.as_bytes()),
            None => StrId::NULL,
        };
        self.recent_threads.put(tid, self.epoch, comm);
        comm
    }
}

/// The derived offset of I/O at the position of a descriptor that may be shared, which
/// [`Positions::resolve`] may replace. `row`: of a call that moved data.
fn position(positions: &mut Positions, plan: &Plan, call: &Call<'_>, row: Option<usize>) -> i64 {
    let r = call.record;
    let offset = match row {
        Some(_) if r.offset == NO_OFFSET => {
            // What moved the position or the end of the file meanwhile is not known.
            positions.count_unknown();
            return NULL_I64;
        }
        Some(_) => r.offset,
        None if plan.has_offset => r.offset,
        None => NULL_I64,
    };
    if call.has(CALL_SHARED_POSITION) {
        let moved = row.map(|row| Moved {
            row,
            entry: call.entry_position().unwrap_or(r.offset),
            derived: r.offset,
            bytes: r.ret,
            appends: call.has(CALL_APPENDS),
        });
        // lseek(fd, 0, SEEK_CUR) asks for the position.
        let stays = plan.seeks && r.offset == 0 && r.aux == SEEK_CUR;
        let id = if plan.seeks { r.size as u32 } else { r.aux };
        if !stays {
            let noted = Use {
                begin_ns: r.ts_ns as i64,
                ended_at_ns: r.ts_ns.saturating_add(r.dur_ns) as i64,
                moved,
            };
            positions.note(id, r.file, noted);
        }
    }
    offset
}

/// include/uapi/linux/fs.h
const SEEK_CUR: u32 = 1;

fn error_name(number: i64) -> Vec<u8> {
    match errno::name(number) {
        Some(name) => name.into(),
        None => format!("errno {number}").into(),
    }
}

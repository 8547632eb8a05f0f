//! Events to rows.

use fathom_decode::{DecodeStats, Event};
use fathom_model::abi::{LOST_TLS, LOST_USDT, RECORD_CONTENT_PART, ShedKey, ShedValue};
use fathom_model::batch::Batch;
use fathom_model::meta::CountedFunction;
use fathom_model::protocols::Protocols;

use crate::calls::Calls;
use crate::calls::call::Call;
use crate::calls::content::ContentCounts;
use crate::counters::Counters;
use crate::files::{Files, Limit};
use crate::layers::Layers;
use crate::layers::faults::Faults;
use crate::layers::perf_counters::PerfCounters;
use crate::layers::requests::Key;
use crate::layers::stacks::Stacks;
use crate::losses::{self, Losses};
use crate::spans::{SpanCounts, Spans};
use crate::strings::Known;
use crate::tasks::Tasks;

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
    /// Whether filters left faults on files out.
    pub faults_left_out: bool,
    /// Rows of files and threads that are older are written again when a request
    /// refers to them, in the time of the requests, nanoseconds: for sessions that
    /// keep their latest rows only. `None`: rows are written when they change.
    pub refresh_ns: Option<u64>,
    /// Protocols whose requests become rows of table `spans`, where the kernel side has sent the
    /// beginnings of messages.
    pub spans: Protocols,
    /// Texts of statements are stored as they are.
    pub plain_spans: bool,
}

impl Default for EnrichOptions {
    fn default() -> Self {
        Self {
            max_files: 1 << 20,
            max_file_bytes: MAX_FILE_BYTES,
            max_threads: 1 << 18,
            calls_left_out: false,
            faults_left_out: false,
            refresh_ns: None,
            spans: Protocols::all(),
            plain_spans: false,
        }
    }
}

/// Turns events into the rows of the tables `syscalls`, `faults`, `writeback`,
/// `files`, `file_paths`, `processes` and `losses`.
///
/// Events must come in order of time ([`fathom_decode::Merge`]). Rows gather until
/// [`Enricher::take`] hands them out as batches; every batch has its own strings. Memory is bounded
/// by the rows that were not taken, and by the files and threads in [`EnrichOptions`].
#[derive(Debug)]
pub struct Enricher {
    known: Known,
    calls: Calls,
    layers: Layers,
    faults: Faults,
    stacks: Stacks,
    perf_counters: PerfCounters,
    losses: Losses,
    counters: Counters,
    first_at_ns: Option<u64>,
    last_at_ns: u64,
    /// Records that were lost so far, and the records of static probes among them.
    lost: u64,
    usdt_lost: u64,
    tls_lost: u64,
}

impl Enricher {
    /// An enricher that has seen nothing yet.
    pub fn new(options: EnrichOptions) -> Self {
        let limit = Limit {
            files: options.max_files,
            bytes: options.max_file_bytes,
        };
        Self {
            known: Known {
                files: Files::new(limit).refreshed_after(options.refresh_ns),
                tasks: Tasks::new(options.max_threads).refreshed_after(options.refresh_ns),
            },
            calls: Calls::new(
                options.calls_left_out,
                Spans::new(options.spans, options.plain_spans),
            ),
            layers: Layers::new(options.calls_left_out, options.faults_left_out),
            faults: Faults::default(),
            stacks: Stacks::default(),
            perf_counters: PerfCounters::default(),
            losses: Losses::default(),
            counters: Counters::default(),
            first_at_ns: None,
            last_at_ns: 0,
            lost: 0,
            usdt_lost: 0,
            tls_lost: 0,
        }
    }

    /// Takes an event that `cpu` wrote.
    pub fn event(&mut self, cpu: u32, event: &Event<'_>) {
        self.last_at_ns = event.time_ns();
        self.first_at_ns.get_or_insert(self.last_at_ns);
        let (layers, known) = (&mut self.layers, &mut self.known);
        match event {
            Event::Call(record) => self.calls.on(cpu, &Call::slot(record), layers, known),
            Event::CachedCall {
                call: record,
                cache,
            } => {
                let call = Call {
                    cache: Some(cache),
                    ..Call::slot(record)
                };
                self.calls.on(cpu, &call, layers, known);
            }
            Event::Operation {
                call: record,
                op_flags,
                user_data,
            } => {
                let call = Call {
                    operation: Some((*op_flags, *user_data)),
                    ..Call::slot(record)
                };
                self.calls.on(cpu, &call, layers, known);
            }
            Event::Wide {
                record,
                string1,
                string2,
                string3,
                structure,
            } => {
                let call = Call {
                    string1,
                    string2,
                    string3,
                    structure,
                    ..Call::wide(record)
                };
                self.calls.on(cpu, &call, layers, known);
            }
            Event::Data { record, content }
                if u32::from(record.call.kind) == RECORD_CONTENT_PART =>
            {
                self.calls.content_part(record, content, known);
            }
            Event::Data { record, content } => {
                let call = Call {
                    data: Some((record, content)),
                    cache: Some(&record.cache),
                    ..Call::slot(&record.call)
                };
                self.calls.on(cpu, &call, layers, known);
            }
            Event::File {
                record,
                path,
                fs_path,
            } => {
                known.files.event(record, path, fs_path);
                self.calls.file(record, known);
                layers.forget_file(record.handle);
                self.faults.forget_file(record.handle);
            }
            Event::Mount {
                record,
                root,
                point,
            } => known.files.mount(record, root, point),
            Event::Container {
                record,
                id,
                namespace,
                pod,
                uid,
                name,
            } => known
                .tasks
                .container(record.ts_ns, [id, namespace, pod, uid, name]),
            Event::Task {
                record,
                cmdline,
                exe,
                cgroup,
            } => {
                known.tasks.event(record, cmdline, exe, cgroup);
                self.calls.task(record);
                layers.forget_thread(record.tid);
                self.faults.forget_thread(record.tid);
            }
            Event::Fault(record) => self.faults.fault(cpu, record, layers, known),
            Event::Writeback(record) => {
                let rid = layers.requests.next();
                self.faults.writeback(rid, cpu, record, known);
            }
            Event::Block { record, bios } => layers.block(cpu, record, bios, known),
            Event::Wait(record) => layers.wait(cpu, record, known),
            Event::Irq(record) => layers.irq(cpu, record, known),
            Event::Span(record) => layers.span(record),
            Event::FunctionName {
                record,
                layer,
                name,
            } => layers.function(record, layer, name),
            Event::Stack(record) => {
                let rid = layers
                    .requests
                    .ended(Key::new(record.tid, record.request_ns));
                self.stacks.stack(rid, record);
            }
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
            Event::LibraryCall { record, path } => {
                self.calls.library.call(cpu, record, path, known);
            }
            Event::Function {
                record,
                library,
                class,
                name,
            } => self.calls.library.function(record, [library, class, name]),
            Event::LibraryCount(record) => self.calls.library.count(record),
            Event::Usdt { record, text } => self.calls.spans.usdt(record, text, known),
            Event::UsdtPlace {
                record,
                provider,
                name,
                text,
            } => (self.calls.spans).usdt_place(record, [provider, name, text]),
            Event::Context { record, attributes } => {
                self.calls.spans.context(record, attributes, known);
            }
            Event::ContextProcess {
                record,
                service,
                keys,
            } => self.calls.spans.context_process(record, service, keys),
            Event::Counters(record) => {
                let rid = layers
                    .requests
                    .ended(Key::new(record.tid, record.request_ns));
                self.perf_counters.request(rid, record);
            }
        }
    }

    /// Rows of requests and of the layers below them that were not taken yet.
    #[inline]
    pub fn pending_rows(&self) -> usize {
        self.calls.pending_rows()
            + self.faults.pending_rows()
            + self.layers.pending_rows()
            + self.stacks.pending_rows()
            + self.perf_counters.pending_rows()
    }

    /// Bytes of strings in these rows.
    pub fn pending_bytes(&self) -> usize {
        self.calls.pending_bytes()
            + self.known.files.pending_bytes()
            + self.known.tasks.pending_bytes()
    }

    /// Of how many calls the content was recorded so far.
    pub fn content(&self) -> ContentCounts {
        self.calls.content_counts()
    }

    /// Functions of libraries whose calls are counted instead of recorded, so far.
    pub fn counted_functions(&self) -> &[CountedFunction] {
        self.calls.library.counted_functions()
    }

    /// Requests that were found in what calls moved on sockets so far.
    pub fn spans(&self) -> SpanCounts {
        self.calls.spans.counts()
    }

    /// Calls that moved data, but not known where: their offset is null.
    pub fn offsets_unknown(&self) -> u64 {
        self.calls.offsets_unknown()
    }

    /// Rows of table `syscalls` that were made so far, taken or not.
    pub fn totals(&self) -> u64 {
        self.calls.made()
    }

    /// The rows since the last time: at most one batch each of `syscalls`, `faults`,
    /// `user_calls`, `writeback`, `files`, `file_paths`, `containers` and `processes`, none that is empty. The last three
    /// and `files` have the rows that are new or changed.
    pub fn take(&mut self) -> Vec<Batch> {
        let ((files, file_strings), (file_paths, path_strings)) = self.known.files.take();
        let (processes, process_strings) = self.known.tasks.take();
        let containers = self.known.tasks.take_containers();
        self.calls.spans.settle(self.last_at_ns, &mut self.known);
        let [faults, writeback] = self.faults.take();
        // Rows that requests refer to come first: if the recorder is killed, written rows refer
        // only to written rows.
        let mut batches = vec![
            files.into_batch(file_strings),
            file_paths.into_batch(path_strings),
            containers,
            processes.into_batch(process_strings),
            self.calls.take_flows(),
            self.calls.library.take(),
            self.calls.library.take_counts(),
            self.calls.spans.take(),
            self.calls.spans.take_contexts(),
            self.calls.take(),
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
        self.layers.finish(&mut self.known);
        self.calls.spans.finish(&mut self.known);
    }

    /// Rows of table `losses` for calls that were lost in the kernel, from counters that only grow.
    /// `per_cpu` has exact counts by CPU and call; `split` has the same by process and file,
    /// possibly incomplete. The part that `split` lacks goes into rows with pid and file -1, whose
    /// longest duration is a limit and whose times cover all calls. Each set of rows replaces the
    /// previous one.
    pub fn losses(
        &mut self,
        per_cpu: &[(u32, u32, ShedValue)],
        split: &[(ShedKey, ShedValue)],
    ) -> Batch {
        let now = self.last_at_ns;
        let lost = per_cpu.iter().map(|(_, _, value)| value.count).sum();
        if lost > std::mem::replace(&mut self.lost, lost) {
            self.calls.spans.lost(&mut self.known);
        }
        let lost_of = |what| {
            let of = per_cpu.iter().filter(|(_, call, _)| *call == what);
            of.map(|(_, _, value)| value.count).sum()
        };
        let lost = lost_of(LOST_USDT);
        if lost > std::mem::replace(&mut self.usdt_lost, lost) {
            self.calls.spans.usdt_lost();
        }
        let lost = lost_of(LOST_TLS);
        if lost > std::mem::replace(&mut self.tls_lost, lost) {
            self.calls.spans.tls_lost(&mut self.known);
        }
        let files = &mut self.known.files;
        self.losses
            .rows(per_cpu, split, |key| files.by_handle(key.file, now).id)
    }

    /// Rows of table `counters` for calls that the kernel has counted since the last time: `read`
    /// has its counters at `now_ns`; the first counts start at `started_at_ns`.
    pub fn counters(
        &mut self,
        started_at_ns: u64,
        now_ns: u64,
        read: &[(ShedKey, ShedValue)],
    ) -> Batch {
        let files = &mut self.known.files;
        self.counters.rows(started_at_ns, now_ns, read, |handle| {
            files.by_handle(handle, now_ns).id
        })
    }

    /// The row of table `losses` for damaged records, of which nothing is known; `None` if there
    /// were none. All records of the slot rings are calls; records of the wide rings may have been,
    /// and count as calls. Each row replaces the previous one.
    pub fn decode_losses(&self, stats: &DecodeStats) -> Option<Batch> {
        let count = stats.slot.damaged.saturating_add(stats.wide.damaged);
        (count > 0)
            .then(|| losses::damaged(count, self.first_at_ns.unwrap_or_default(), self.last_at_ns))
    }
}

//! Decoded records.

use fathom_model::abi::{
    BioRecord, BlockRecord, CacheFacts, CallRecord, ContainerRecord, ContextProcessRecord,
    ContextRecord, CountersRecord, DataCallRecord, FaultRecord, FileRecord, FrameRecord,
    FunctionNameRecord, FunctionRecord, IrqRecord, LIBRARY_CALL_ABANDONED, LIBRARY_CALL_BEGUN,
    LIBRARY_CALL_NONE, LibraryCallRecord, LibraryCountRecord, MountRecord, RECORD_DATA_CALL,
    SpanRecord, StackRecord, TaskRecord, UsdtPlaceRecord, UsdtRecord, WaitRecord, WideCallRecord,
    WritebackRecord,
};
use fathom_model::raw::Ring;
use thiserror::Error;

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // lives on the stack for the time of one call
pub enum Event<'a> {
    /// A call that fits a slot.
    Call(CallRecord),
    /// The same of one that did something in the page cache.
    CachedCall {
        call: CallRecord,
        /// Its operation.
        cache: CacheFacts,
    },
    /// An operation of io_uring or AIO that fits a slot.
    Operation {
        /// The fields that it shares with a call.
        call: CallRecord,
        /// `OP_` flags of [`fathom_model::abi`].
        op_flags: u32,
        /// As the program passed it.
        user_data: u64,
    },
    /// A call with strings, a second file or more arguments.
    Wide {
        /// The fixed part.
        record: WideCallRecord,
        /// First path, or text of a symbolic link.
        string1: &'a [u8],
        /// Second path, or a text such as the name of an attribute.
        string2: &'a [u8],
        /// A further text.
        string3: &'a [u8],
        /// The struct that an argument points to, or its beginning.
        structure: &'a [u8],
    },
    /// A call that moved data, with its content, or a part of the content of
    /// a call that is still to come.
    Data {
        /// The fixed part.
        record: DataCallRecord,
        /// The part, or the last one.
        content: &'a [u8],
    },
    /// Identity and path of a file.
    File {
        /// The fixed part.
        record: FileRecord,
        /// Components from the leaf up, each followed by `/`
        /// ([`crate::absolute_path`]).
        path: &'a [u8],
        /// Path inside the file system in the same form, of a file that was
        /// reached in another mount namespace.
        fs_path: &'a [u8],
    },
    /// Something that happened to a thread.
    Task {
        /// The fixed part.
        record: TaskRecord,
        /// Arguments, each followed by NUL.
        cmdline: &'a [u8],
        /// Path of the executable, components from the leaf up.
        exe: &'a [u8],
        /// Path of the cgroup, components from the leaf up.
        cgroup: &'a [u8],
    },
    /// A page fault on a mapped file.
    Fault(FaultRecord),
    /// Dirty pages on their way to the device.
    Writeback(WritebackRecord),
    /// A request to a device that was completed.
    Block {
        /// The fixed part.
        record: BlockRecord,
        /// Its bios: records of [`BioRecord::SIZE`] bytes ([`bios`]).
        bios: &'a [u8],
    },
    /// A thread was off the CPU.
    Wait(WaitRecord),
    /// An interrupt in the course of a request.
    Irq(IrqRecord),
    /// Time that a request spent in a part of a file system.
    Span(SpanRecord),
    /// Perf counters of a request.
    Counters(CountersRecord),
    /// From where in its program a call was made.
    Stack(StackRecord),
    /// A function on such a stack.
    Frame {
        /// The fixed part.
        record: FrameRecord,
        object: &'a [u8],
        build_id: &'a [u8],
        function: &'a [u8],
        source: &'a [u8],
    },
    /// A call of a library's function.
    LibraryCall {
        /// The fixed part.
        record: LibraryCallRecord,
        /// The path that was passed; empty if there is none.
        path: &'a [u8],
    },
    /// A function whose calls are recorded.
    Function {
        /// The fixed part.
        record: FunctionRecord,
        /// Path of its library.
        library: &'a [u8],
        class: &'a [u8],
        name: &'a [u8],
    },
    /// Calls of a function that have no records.
    LibraryCount(LibraryCountRecord),
    /// A thread has come by a static probe.
    Usdt {
        /// The fixed part.
        record: UsdtRecord,
        /// The text that the probe passed; empty if it passed none.
        text: &'a [u8],
    },
    /// A place with a static probe.
    UsdtPlace {
        /// The fixed part.
        record: UsdtPlaceRecord,
        provider: &'a [u8],
        /// Name of the spans.
        name: &'a [u8],
        /// Kind of the text.
        text: &'a [u8],
    },
    /// A call was made in another span than the last one of its thread.
    Context {
        /// The fixed part.
        record: ContextRecord,
        /// Attributes of the span, as the program has them.
        attributes: &'a [u8],
    },
    /// The service of a process, and the names of its attributes.
    ContextProcess {
        /// The fixed part.
        record: ContextProcessRecord,
        service: &'a [u8],
        /// Names of attributes, each followed by NUL.
        keys: &'a [u8],
    },
    /// A function of the kernel that is a part of requests.
    FunctionName {
        /// The fixed part.
        record: FunctionNameRecord,
        layer: &'a [u8],
        name: &'a [u8],
    },
    /// A container of Kubernetes.
    Container {
        /// The fixed part.
        record: ContainerRecord,
        /// Id of the container.
        id: &'a [u8],
        /// Namespace of the pod.
        namespace: &'a [u8],
        /// Name of the pod.
        pod: &'a [u8],
        /// UID of the pod; empty if unknown.
        uid: &'a [u8],
        /// Name of the container in its pod.
        name: &'a [u8],
    },
    /// A mount in the recorder's mount namespace.
    Mount {
        /// The fixed part.
        record: MountRecord,
        /// Its root inside the file system.
        root: &'a [u8],
        /// Where it is mounted.
        point: &'a [u8],
    },
}

impl Event<'_> {
    /// When the event belongs into the order of all events, CLOCK_MONOTONIC
    /// nanoseconds: a call when it ended, anything else when it happened.
    pub fn time_ns(&self) -> u64 {
        match self {
            Event::Call(r)
            | Event::CachedCall { call: r, .. }
            | Event::Operation { call: r, .. } => r.ts_ns.saturating_add(r.dur_ns),
            Event::Wide { record, .. } => record.call.ts_ns.saturating_add(record.call.dur_ns),
            Event::Data { record, .. } => record.call.ts_ns.saturating_add(record.call.dur_ns),
            Event::File { record, .. } => record.ts_ns,
            Event::Task { record, .. } => record.ts_ns,
            Event::Mount { record, .. } => record.ts_ns,
            Event::FunctionName { record, .. } => record.ts_ns,
            Event::Container { record, .. } => record.ts_ns,
            Event::Stack(r) => r.ts_ns,
            Event::Frame { record, .. } => record.ts_ns,
            Event::Fault(r) => r.ts_ns.saturating_add(r.dur_ns),
            Event::Writeback(r) => r.ts_ns,
            Event::Block { record, .. } => record.completed_at_ns,
            Event::Wait(r) => r.ts_ns.saturating_add(r.dur_ns),
            Event::Irq(r) => r.ts_ns.saturating_add(r.dur_ns),
            Event::Span(r) => r.ts_ns.saturating_add(r.dur_ns),
            Event::Counters(r) => r.request_ns.saturating_add(r.dur_ns),
            Event::LibraryCall { record, .. } => record.ts_ns.saturating_add(record.dur_ns),
            Event::Function { record, .. } => record.ts_ns,
            Event::LibraryCount(r) => r.ts_ns.saturating_add(r.dur_ns),
            Event::Usdt { record, .. } => record.ts_ns,
            Event::UsdtPlace { record, .. } => record.ts_ns,
            Event::Context { record, .. } => record.ts_ns.saturating_add(record.dur_ns),
            Event::ContextProcess { record, .. } => record.ts_ns,
        }
    }

    /// The latest of the event's times.
    pub(crate) fn latest_ns(&self) -> u64 {
        match self {
            Event::Block {
                record,
                bios: moved,
            } => bios(moved)
                .map(|bio| bio.queued_at_ns)
                .chain([
                    record.started_at_ns,
                    record.inserted_at_ns,
                    record.issued_at_ns,
                ])
                .fold(record.completed_at_ns, u64::max),
            _ => self.time_ns(),
        }
    }

    /// Whether the event is a call or an operation.
    pub fn is_call(&self) -> bool {
        match self {
            Event::Call(_)
            | Event::CachedCall { .. }
            | Event::Operation { .. }
            | Event::Wide { .. } => true,
            Event::Data { record, .. } => u32::from(record.call.kind) == RECORD_DATA_CALL,
            _ => false,
        }
    }

    /// Whether the event names files and threads: it comes after the events
    /// of the same time that describe them.
    pub fn is_request(&self) -> bool {
        if let Event::LibraryCall { record, .. } = self {
            // They come before the system call that was made in the library call, or behind it.
            let before = LIBRARY_CALL_BEGUN | LIBRARY_CALL_NONE | LIBRARY_CALL_ABANDONED;
            return u32::from(record.flags) & before == 0;
        }
        self.is_call()
            || matches!(
                self,
                Event::Fault(_)
                    | Event::Writeback(_)
                    | Event::Block { .. }
                    | Event::Wait(_)
                    | Event::Irq(_)
                    | Event::Span(_)
                    | Event::Stack(_)
                    | Event::Counters(_)
            )
    }
}

/// The bios of an [`Event::Block`].
pub fn bios(bytes: &[u8]) -> impl Iterator<Item = BioRecord> {
    bytes
        .chunks_exact(BioRecord::SIZE)
        .filter_map(BioRecord::parse)
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// There is nothing, or a slot that was never written.
    #[error("the record is empty")]
    Empty,
    /// The first byte names no kind of record, or one that this ring does not
    /// carry.
    #[error("the record is of kind {kind}, which the {ring:?} ring does not carry")]
    Kind {
        /// The first byte.
        kind: u8,
        /// Where it was found.
        ring: Ring,
    },
    /// The record ends before its fixed part, or before what it says follows.
    #[error("the record takes {needed} bytes, but there are {found}")]
    Short {
        /// Bytes that the record takes.
        needed: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The record contains a call that this version does not know.
    #[error("the record names call {0}, which this version does not know")]
    Syscall(u16),
    /// The record is of a time that no clock has.
    #[error("the record is of a time that no clock has")]
    Time,
}

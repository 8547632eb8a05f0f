//! Options of a probe.

use std::path::PathBuf;

use fathom_model::layers::LayerSet;
use fathom_model::usdt::SpanKind;

use crate::filter::Filters;
use crate::kernel_functions::KernelFunctions;
use crate::library::preload::Preload;
use crate::perf_counters::PerfCounters;
use crate::selection::Selection;
use crate::wanted_functions::Wanted;
use crate::{Content, Detail};

/// The data to record.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// How much is read of each call.
    pub detail: Detail,
    /// Which calls.
    pub selection: Selection,
    /// Memory of the slot ring of one CPU, MiB; rounded up to a power of two.
    pub ring_mib: u32,
    /// Record every task on the machine.
    pub all_tasks: bool,
    /// Record the children of recorded processes too.
    pub follow: bool,
    pub layers: LayerSet,
    /// Handling of the bytes that calls move.
    pub content: Content,
    /// Bytes of a call's content that are taken at most, up to
    /// [`fathom_model::abi::MAX_CONTENT`].
    pub content_max: u32,
    /// Bytes that are taken of what each call moves on a stream socket, up to
    /// [`fathom_model::abi::CONTENT_CHUNK`].
    pub spans: u32,
    /// Take them from TLS libraries, too, where connections are encrypted.
    pub tls: bool,
    /// Which tasks and files, and what calls must come to.
    pub filters: Filters,
    /// Count calls in the kernel instead of recording each; with
    /// [`Detail::Fds`] by file, too.
    pub counters: bool,
    /// Programs that can leave calls to counters, which [`crate::Probe::set_tail`] asks for.
    pub tail: bool,
    /// From where in its program each call was made.
    pub stacks: bool,
    /// Functions of the kernel that are parts of requests.
    pub functions: KernelFunctions,
    /// Functions of libraries whose calls are recorded by uprobes.
    pub library: Wanted,
    /// Calls of one of these functions in a second, by uprobes or by preload, above which its further
    /// calls are counted only; `None`: all are recorded.
    pub library_budget: Option<u64>,
    /// The same of commands, by an object that is preloaded.
    pub preload: Preload,
    /// Kinds of spans that static probes of programs begin and end.
    pub usdt: Vec<SpanKind>,
    /// Programs and libraries to find them and TLS libraries in before anything is recorded; others are found soon
    /// after a recorded process has mapped them.
    pub usdt_files: Vec<PathBuf>,
    /// The span contexts that threads publish.
    pub contexts: bool,
    /// Counters of perf that are read of each request.
    pub perf_counters: PerfCounters,
}

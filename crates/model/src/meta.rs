//! The metadata of a session: the contents of `session.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::clock::{Clock, Moment};
use crate::layers::{Layer, LayerSet};
use crate::units;

/// How far a recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Being written, or its recorder was killed.
    Recording,
    /// Closed by its recorder.
    Complete,
}

/// The contents of `session.json`. Members that are unknown to a reader are
/// ignored, members that are missing take their default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionMeta {
    /// Version of the layout: [`crate::tables::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Version of the fathom that wrote it.
    pub fathom_version: String,
    /// Random id of the session, 32 hexadecimal digits.
    pub id: String,
    /// How far the recording got.
    pub state: State,
    /// Command that was traced, empty when running targets were.
    #[serde(default)]
    pub command: Vec<String>,
    /// The recorded target, in words: `-p 12`, `--all`.
    #[serde(default)]
    pub target: String,
    /// Options of the recording.
    pub options: Options,
    /// Where it was recorded.
    pub host: Host,
    /// Labels that the user gave (`--label KEY=VALUE`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When.
    pub clock: Clock,
    /// Hooks chosen and missing.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// Layers that a recording can have, and whether this one has them.
    #[serde(default)]
    pub layers: Vec<RecordedLayer>,
    /// Counts; if the recorder was killed, as of its last second.
    #[serde(default)]
    pub totals: Totals,
    /// Rows in the parts of each table when the session was closed; empty before. They show
    /// that a part is gone of which nothing else is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rows: BTreeMap<String, u64>,
    /// How the command ended.
    #[serde(default)]
    pub exit_status: Option<i32>,
    /// The cost of the recording.
    #[serde(default)]
    pub cost: Cost,
    /// Counts of recorded content; null if none was recorded.
    #[serde(default)]
    pub content: Option<Content>,
    /// Counts of recorded spans (`--spans`); null if none were recorded.
    #[serde(default)]
    pub spans: Option<Spans>,
    /// The limit of rows of library calls (`--library-budget`), and the functions beyond it; null if
    /// no library calls were recorded, or without limit.
    #[serde(default)]
    pub library_budget: Option<LibraryBudget>,
    /// Counters of perf that were asked for (`--counters`), and what became of each.
    #[serde(default)]
    pub perf_counters: Vec<PerfCounter>,
    /// The log that the session was made of; null when it was recorded.
    #[serde(default)]
    pub source: Option<ImportSource>,
    /// Tables that the user added (`fathom import --table`), by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_tables: BTreeMap<String, OwnTable>,
    /// Changes to the session other than recording.
    #[serde(default)]
    pub history: History,
}

/// A table that the user added: file `own/NAME-CHECKSUM.parquet` of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTable {
    /// Rows.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
    /// XXH64 (seed 0) of the file, 16 hexadecimal digits.
    pub xxh64: String,
    /// The imported file, as it was given; empty if it is not known.
    #[serde(default)]
    pub source: String,
}

/// The source of an imported session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportSource {
    /// strace or dio.
    pub format: String,
    /// The files, as they were given.
    pub files: Vec<String>,
    /// Lines or documents in them.
    #[serde(default)]
    pub lines: u64,
    /// Lines among these that could not be parsed: their calls are missing.
    #[serde(default)]
    pub bad_lines: u64,
    /// Calls that fathom does not record: no work on storage.
    #[serde(default)]
    pub other_calls: u64,
    /// Data that the log lacks, one phrase each: such columns are null.
    #[serde(default)]
    pub not_observable: Vec<String>,
}

/// A layer, and whether it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLayer {
    /// The layer.
    pub name: Layer,
    /// Whether it was recorded; not whether anything of it took place.
    pub recorded: bool,
    /// Why it was not.
    #[serde(default)]
    pub reason: String,
}

/// A counter of perf that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerfCounter {
    /// Name, as perf gives it.
    pub name: String,
    /// Whether it was read of each request: table `perf_counters`.
    pub counted: bool,
    /// Why it was not.
    #[serde(default)]
    pub note: String,
}

impl SessionMeta {
    /// The layers that were recorded.
    pub fn recorded_layers(&self) -> LayerSet {
        let recorded = self.layers.iter().filter(|layer| layer.recorded);
        recorded.map(|layer| layer.name).collect()
    }
}

/// Changes to a session other than recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Of a recording that keeps its latest rows only; null when it keeps all.
    #[serde(default)]
    pub keep: Option<Keep>,
    /// Copies that were saved while it was recorded, the latest last.
    #[serde(default)]
    pub saves: Vec<Save>,
    /// Of such a copy: why it was saved. Empty for a recording itself.
    #[serde(default)]
    pub saved_because: String,
    /// Of such a copy: `id` of the recording. Its rows may be in other copies of it, too.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub saved_from: String,
    /// Damage and repairs.
    #[serde(default)]
    pub repairs: Vec<String>,
    /// Of a copy that `fathom redact` made: its rules, as JSON. Empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub redacted: String,
}

/// How much a recording keeps (`--keep`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Rows that came in so many nanoseconds stay; null when time does not matter.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Bytes on disk beyond which the oldest go; null for no limit.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Everything that ended later is there, CLOCK_MONOTONIC nanoseconds; null as
    /// long as nothing was dropped.
    #[serde(default)]
    pub complete_from_ns: Option<i64>,
}

/// A copy of a recording that was saved while that went on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Save {
    /// Directory of the copy.
    pub path: String,
    /// Why: `signal`, or the condition that held.
    pub because: String,
    /// When it was asked for, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: i64,
    /// Why there is no copy; null when there is one.
    #[serde(default)]
    pub error: Option<String>,
}

/// The content of calls that moved data: how it was recorded, and for how many calls. The counts
/// add up to the number of rows that moved data by read, write, and their variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Content {
    /// hash or plain.
    pub mode: String,
    /// Where hashes were made: kernel or user; empty when none were.
    #[serde(default)]
    pub hash_in: String,
    /// Bytes of a call that were taken at most.
    pub max_bytes: u32,
    /// Calls with a hash or content.
    #[serde(default)]
    pub calls: u64,
    /// Calls among these that moved more than `max_bytes`.
    #[serde(default)]
    pub capped: u64,
    /// Calls without, as their memory could not be read when they returned.
    #[serde(default)]
    pub unreadable: u64,
    /// Calls without, as the ring had no room for their content.
    #[serde(default)]
    pub no_room: u64,
}

/// Counts of the spans that were recorded: requests in what programs moved on stream sockets
/// (`--spans`), times between static probes (`--usdt`), and spans that were active in threads
/// (`--otel-context`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Spans {
    /// Protocols that were looked for.
    pub protocols: Vec<String>,
    /// Rows of table spans, without spans that are known only from the contexts of threads.
    #[serde(default)]
    pub recorded: u64,
    /// Of `recorded`, requests whose command could not be read, such as of a compressed message: they have
    /// the names of the messages.
    #[serde(default)]
    pub unread: u64,
    /// Requests without a row: the recording or the connection ended before the response, or a part
    /// of it or of the request was not recorded.
    #[serde(default)]
    pub unfinished: u64,
    /// Connections that moved bytes of no protocol in `protocols`, or that changed to another one.
    #[serde(default)]
    pub unrecognized: u64,
    /// Connections whose bytes on the socket were encrypted, unless calls of a TLS library were found to
    /// use this socket. If the library gets the bytes from the program instead, requests in them are recorded,
    /// but not on which socket they were.
    #[serde(default)]
    pub encrypted: u64,
    /// Calls of TLS libraries whose bytes were searched for requests.
    #[serde(default)]
    pub tls_calls: u64,
    /// Times at which bytes of a connection were missing or made no sense, so that requests may be
    /// missing until the next one was recognized.
    #[serde(default)]
    pub gaps: u64,
    /// Kinds of spans that static probes begin and end (`--usdt`), as PROVIDER:NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usdt: Vec<String>,
    /// Records of static probes. Always: twice `usdt_rows`, and `usdt_unpaired`.
    #[serde(default)]
    pub usdt_seen: u64,
    /// Of `recorded`, rows between two static probes.
    #[serde(default)]
    pub usdt_rows: u64,
    /// Records of static probes without a row: the span had not ended when the recording or the thread
    /// did, it was left without its end, as by an error, or it had begun before the recording.
    #[serde(default)]
    pub usdt_unpaired: u64,
    /// Whether the span contexts of threads were recorded (`--otel-context`).
    #[serde(default)]
    pub otel_context: bool,
    /// Records of calls that were made in another span than the call of their thread before them.
    #[serde(default)]
    pub contexts: u64,
    /// Spans in them.
    #[serde(default)]
    pub context_spans: u64,
    /// Calls of which the span is not known because the memory that says it could not be read.
    #[serde(default)]
    pub contexts_unreadable: u64,
}

/// Which functions of libraries were called too often for a row per call (`--library-budget`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryBudget {
    /// Calls of one function in a second, by all processes, that have rows at most.
    pub calls_per_second: u64,
    /// The functions that were called more often, in order of time.
    #[serde(default)]
    pub counted: Vec<CountedFunction>,
}

/// A function whose further calls are in table `user_call_counters` and have no rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedFunction {
    /// Class of the function, as `--library` takes it.
    pub class: String,
    /// Its name.
    pub function: String,
    /// Path of the library, or of the program that contains the function.
    pub library: String,
    /// Calls that begin later are counted, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: i64,
    /// Why: so many calls
    pub calls: u64,
    /// in this time before.
    pub in_ns: u64,
}

/// Options of a recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    /// counters, raw, fds or full.
    pub detail: String,
    /// Selection of calls as given: `storage`, names, classes.
    pub syscalls: Vec<String>,
    /// Memory of the slot ring of one CPU, MiB.
    pub ring_mib: u32,
    /// Filters that were given, as on the command line.
    #[serde(default)]
    pub filters: Vec<String>,
    /// Further options that were given, as on the command line.
    #[serde(default)]
    pub other: Vec<String>,
    /// Which calls have rows, with `--rows tail` or `--budget`; null when all have.
    #[serde(default)]
    pub tail: Option<Tail>,
}

/// The calls with rows in a recording that counts the others: calls that fail, are slow, or have
/// events in a layer below, and a sample of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Calls of at least this duration are slow, nanoseconds. Null: calls that take longer than
    /// about 127 of 128 calls of the same name by the same process on the same file.
    #[serde(default)]
    pub slow_ns: Option<u64>,
    /// One in so many of the calls that are neither has a row; 0: none.
    pub sample: u32,
    /// Limit of the recording's cost (`--budget`): the share of the time of all CPUs, 0 to 1; null
    /// without the option.
    #[serde(default)]
    pub budget: Option<f64>,
    /// The resulting steps, in order of time; empty without a budget.
    #[serde(default)]
    pub steps: Vec<TailStep>,
}

/// A choice that `--budget` made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TailStep {
    /// When, CLOCK_MONOTONIC nanoseconds. Calls that ended later are recorded so.
    pub at_ns: i64,
    /// Which calls have rows: all, tail or none.
    pub rows: String,
    /// As in [`Tail::sample`], where `rows` is tail.
    pub sample: u32,
    /// The measured cost since the previous step, as a share like [`Tail::budget`]. Null for the
    /// first.
    #[serde(default)]
    pub cost: Option<f64>,
}

impl Options {
    /// Whether the filters left out some of the calls that moved the position of
    /// a descriptor and took others, or `tail` may have. A file's path or type takes all or none,
    /// and a call that fails moves nothing.
    pub fn leave_calls_out(&self) -> bool {
        if self.tail.is_some() {
            return true;
        }
        let all_or_none = ["--path ", "--file-type ", "--errors-only"];
        let left_out = |filter: &String| {
            let whole_process = filter.starts_with("--pid ") && !filter.contains('!');
            !whole_process && !all_or_none.iter().any(|kind| filter.starts_with(kind))
        };
        self.filters.iter().any(left_out)
    }
}

/// The machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Release and version of the kernel, from uname(2).
    pub kernel: String,
    /// Architecture, from uname(2).
    pub arch: String,
    /// Processors online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Name of the distribution.
    #[serde(default)]
    pub distribution: String,
    /// Id of the installation, `/etc/machine-id`; empty where there is none. Images of virtual
    /// machines and containers that were copied may share it.
    #[serde(default)]
    pub machine_id: String,
    /// Random id that the kernel gave itself at its start; empty if unknown. Sessions with the same
    /// one have the same clock.
    #[serde(default)]
    pub boot_id: String,
}

/// A place in the kernel that was, or could not be, hooked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hook {
    /// Name: `tp_btf/sys_exit`.
    pub name: String,
    /// Whether it was attached.
    pub attached: bool,
    /// The data that is missing without it, or the reason why it is not attached.
    #[serde(default)]
    pub note: String,
    /// Times that the kernel left the program out because it was running
    /// already: what it would have recorded is missing and not counted
    /// elsewhere.
    #[serde(default)]
    pub skipped: u64,
}

/// Counts of calls. Always: seen = stored + lost + expired + counted + missing,
/// of which the last three are 0 in most sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Calls that passed the filters in the kernel.
    pub seen: u64,
    /// Rows written to table `syscalls`.
    pub stored: u64,
    /// Calls in table `losses`.
    pub lost: u64,
    /// Rows that were stored and dropped again, as only the latest are kept.
    #[serde(default)]
    pub expired: u64,
    /// Calls that are in table `counters` instead of having rows.
    #[serde(default)]
    pub counted: u64,
    /// Calls that had been seen when the recorder was killed and are in no table:
    /// known once the session was repaired.
    #[serde(default)]
    pub missing: u64,
    /// Calls by 32-bit programs, which are not recorded and not in `seen`.
    #[serde(default)]
    pub compat: u64,
    /// Stored calls that moved data at an unknown place, because another thread or process moved
    /// the position, or appended, at the same time: their `offset` is null.
    #[serde(default)]
    pub offsets_unknown: u64,
    /// Page faults on mapped files: table `faults`.
    #[serde(default)]
    pub faults: Counts,
    /// Page faults of recorded tasks that are neither in `faults` nor lost, because it is unknown
    /// whether they were on a file: the mapping could not be looked up.
    #[serde(default)]
    pub faults_unknown: u64,
    /// Write-back of mapped files: table `writeback`.
    #[serde(default)]
    pub writeback: Counts,
    /// Of the layers below the calls.
    #[serde(default)]
    pub layers: LayerCounts,
    /// Records that crossed from the kernel to user space.
    #[serde(default)]
    pub records: Records,
}

impl Totals {
    /// The parts that add up to `seen`: stored and lost, and others that are not 0.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let always = [("stored", self.stored), ("lost", self.lost)];
        let others = [
            ("expired", self.expired),
            ("counted", self.counted),
            ("missing", self.missing),
        ];
        let others = others.into_iter().filter(|(_, n)| *n > 0);
        always.into_iter().chain(others)
    }

    /// The parts in words: `1,015 stored, 12 lost`.
    pub fn parts_text(&self) -> String {
        let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
        let parts = self.parts().map(|(name, n)| format!("{} {name}", count(n)));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Records of the layers below the calls, including records that did not fit into the kernel's
/// rings (table `losses` counts them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerCounts {
    /// Requests to devices: rows of table `block`.
    pub block: u64,
    /// Rows of table `waits`.
    pub waits: u64,
    /// Rows of table `irqs`.
    pub irqs: u64,
    /// Calls and faults that did something in the page cache: rows of view `pagecache`.
    pub pagecache: u64,
    /// Parts of file systems: in table `slices`.
    pub fs: u64,
    /// Rows of table `perf_counters`.
    #[serde(default)]
    pub counters: u64,
    /// Rows of table `user_calls`.
    #[serde(default)]
    pub user_calls: u64,
    /// Library calls in table `user_call_counters`.
    #[serde(default)]
    pub user_calls_counted: u64,
    /// Library calls without a row: those more than 8 deep in others, and those whose thread, state or
    /// function found no room.
    #[serde(default)]
    pub user_calls_unseen: u64,
    /// Those without room, of all layers.
    pub lost: u64,
}

impl SessionMeta {
    /// Id of the recording that the rows are of: the same for all copies that were saved of it.
    pub fn recording(&self) -> &str {
        match self.history.saved_from.as_str() {
            "" => &self.id,
            recording => recording,
        }
    }
}

impl LayerCounts {
    /// Adds what one processor counted.
    pub fn add(&mut self, cpu: &crate::abi::CpuStats) {
        self.block += cpu.blocks;
        self.waits += cpu.waits;
        self.irqs += cpu.irqs;
        self.pagecache += cpu.caches;
        self.fs += cpu.spans;
        self.counters += cpu.counters;
        self.user_calls += cpu.library_calls;
        self.user_calls_counted += cpu.library_counted;
        self.user_calls_unseen += cpu.library_unseen;
        self.lost += cpu.layers_lost;
    }
}

/// Counts of what a table has besides calls. Always: seen = stored + lost + expired +
/// missing, as in [`Totals`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Events that passed the filters in the kernel.
    pub seen: u64,
    /// Rows written to the table.
    pub stored: u64,
    /// Events in table `losses`.
    pub lost: u64,
    /// As in [`Totals`].
    #[serde(default)]
    pub expired: u64,
    /// As in [`Totals`].
    #[serde(default)]
    pub missing: u64,
}

/// Records that crossed from the kernel to user space, counted as they arrived:
/// what the filters left out made none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Records of calls; together with the lost ones they are all calls seen.
    pub calls: u64,
    /// Of files: identity and path, each when first used and when renamed.
    pub files: u64,
    /// Of tasks: begin, end, what they execute and how they call themselves.
    pub tasks: u64,
}

/// The cost of the recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Nanoseconds that the probes take of a recorded call, entry and return
    /// together, without what the kernel needs to call them: the mean of one
    /// call in 256. Null when none was timed.
    pub probe_ns_per_call: Option<f64>,
    /// Time spent in the probes: the mean times the calls seen.
    pub probe_ns: Option<u64>,
    /// CPU time of the recorder while it recorded, user and system; loading the
    /// probes is not in it.
    pub recorder_cpu_ns: Option<u64>,
    /// CPU time of the recorded program, user and system; null when it is
    /// not known.
    pub target_cpu_ns: Option<u64>,
    /// Peak of the recorder's resident memory, bytes.
    pub recorder_peak_rss_bytes: Option<u64>,
    /// Upper limit of that, bytes: the budgets of the recorder and the rings. Null if it serves a
    /// page, too.
    #[serde(default)]
    pub recorder_limit_bytes: Option<u64>,
    /// Times the recording thread drained the rings.
    pub drains: u64,
    /// Highest share of the slot ring in use, 0 to 1.
    pub ring_peak: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::{Options, Totals};

    #[test]
    fn the_parts_of_the_calls_add_up() {
        let all = Totals {
            seen: 10,
            stored: 10,
            ..Totals::default()
        };
        assert_eq!(all.parts_text(), "10 stored, 0 lost");
        let some = Totals {
            seen: 15,
            stored: 1,
            lost: 2,
            expired: 4,
            counted: 8,
            ..Totals::default()
        };
        assert_eq!(some.parts_text(), "1 stored, 2 lost, 4 expired, 8 counted");
        assert_eq!(some.parts().map(|(_, n)| n).sum::<u64>(), some.seen);
    }

    #[test]
    fn filters_that_leave_calls_of_a_descriptor_out() {
        let with = |filter: &str| {
            let options = Options {
                filters: vec![filter.to_string()],
                ..Options::default()
            };
            options.leave_calls_out()
        };
        assert!(!Options::default().leave_calls_out());
        for filter in ["--path /a", "--path !/a", "--errors-only", "--pid 1,2"] {
            assert!(!with(filter), "{filter}");
        }
        for filter in ["--comm x", "--min-duration 1ms", "--pid !1", "--uid 0"] {
            assert!(with(filter), "{filter}");
        }
    }
}

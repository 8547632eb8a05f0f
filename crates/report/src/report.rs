//! The contents of a report. The JSON output has the same field names.

use std::collections::BTreeMap;

use fathom_model::meta;
use fathom_model::units::bytes;
use serde::Serialize;

/// A report. Times are nanoseconds, sizes bytes; what was not measured is null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Report {
    /// The recording: its target, place and time.
    pub session: SessionSummary,
    /// Problems of the recording, a sentence each.
    pub problems: Vec<String>,
    /// Data that the kernel or the log could not show, a sentence each.
    pub limits: Vec<String>,
    /// Where the time went and why, in sentences, with the numbers that they are made of.
    pub why: fathom_why::Story,
    /// Findings of the diagnosis; null when it did not run.
    pub findings: Option<crate::findings::Findings>,

    /// All calls together, lost ones included.
    pub totals: Totals,
    /// Seen, stored and lost.
    pub loss: Loss,
    /// Calls by class, by total time.
    pub classes: Vec<Calls>,
    /// Calls by name, by total time.
    pub syscalls: Vec<Calls>,
    /// Calls by name and file, by total time.
    pub costly: Vec<CallsOnFile>,
    /// Failed calls by name and error, most frequent first.
    pub errors: Vec<ErrorCount>,
    /// Files that stand out.
    pub files: Files,
    /// Mapped files that stand out.
    pub mapped: Mapped,
    /// Threads that stand out.
    pub threads: Threads,
    /// Sums of the layers below the calls.
    pub layers: crate::layers::Layers,
    /// Calls and bytes over time.
    pub timeline: Timeline,
    /// Latency histograms by call name, lost calls included.
    pub latency: Vec<Latency>,
    /// Cost of the recording.
    pub cost: Cost,
    /// The session's place and size.
    pub storage: Storage,
    /// Commands for the next steps.
    pub next: Vec<NextCommand>,
}

/// How far the recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Closed by its recorder.
    Complete,
    /// Still being recorded.
    Recording,
    /// The recorder ended without closing it.
    Killed,
}

/// The recording: its target, place and time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct SessionSummary {
    /// Id of the session.
    pub id: String,
    /// How far the recording got.
    pub state: State,
    /// Command, empty when running targets were recorded.
    pub command: Vec<String>,
    /// The target, in words.
    pub target: String,
    /// How the command ended.
    pub exit_status: Option<i32>,
    /// When the recording began: ISO 8601, UTC.
    pub start_time: String,
    /// From its beginning to its end, or to the last call stored so far.
    pub duration_ns: i64,
    /// Labels that the user gave.
    pub labels: BTreeMap<String, String>,
    /// Name of the machine.
    pub host: String,
    /// Release and version of its kernel.
    pub kernel: String,
    /// Architecture.
    pub arch: String,
    /// Name of the distribution.
    pub distribution: String,
    /// Processors.
    pub cpus: u32,
    /// Memory.
    pub memory_bytes: u64,
    /// raw, fds or full.
    pub detail: String,
    /// Selection of calls.
    pub selection: Vec<String>,
    /// The content of calls that was recorded; null when none was.
    pub content: Option<fathom_model::meta::Content>,
    /// Filters, as on the command line.
    pub filters: Vec<String>,
    /// Version of the recorder.
    pub fathom_version: String,
}

impl SessionSummary {
    /// The labels, a word each.
    pub(crate) fn label_words(&self) -> impl Iterator<Item = String> {
        let labels = self.labels.iter();
        labels.map(|(key, value)| format!("{key}={value}"))
    }

    /// The machine, a word or two each. An imported log does not tell everything of it.
    pub(crate) fn machine(&self) -> Vec<String> {
        let kernel = self.kernel.split_whitespace().next().unwrap_or("");
        let memory = i64::try_from(self.memory_bytes).unwrap_or(i64::MAX);
        let facts = [
            (!self.host.is_empty()).then(|| self.host.clone()),
            (!kernel.is_empty()).then(|| {
                format!("Linux {kernel} {}", self.arch)
                    .trim_end()
                    .to_owned()
            }),
            (self.cpus > 0).then(|| format!("{} CPUs", self.cpus)),
            (memory > 0).then(|| bytes(memory)),
            (!self.distribution.is_empty()).then(|| self.distribution.clone()),
        ];
        facts.into_iter().flatten().collect()
    }

    /// Detail and selection, and what content there is, in words.
    pub(crate) fn recorded(&self) -> String {
        let calls = if self.selection.is_empty() {
            "all".into()
        } else {
            self.selection.join(",")
        };
        let content = match &self.content {
            Some(content) if content.mode == "plain" => {
                ", with the content of calls in the clear".to_string()
            }
            Some(content) => format!(", content {}", content.mode),
            None => String::new(),
        };
        format!("detail {}, calls {calls}{content}", self.detail)
    }
}

/// All calls together, lost ones included.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Calls.
    pub calls: i64,
    /// Of which returned an error.
    pub errors: i64,
    /// Stored calls that failed: their error is no answer.
    pub failures: i64,
    /// Stored calls whose error answers a question, such as ENOENT of a look-up.
    pub answers: i64,
    /// Of which had not ended.
    pub pending: i64,
    /// Bytes moved.
    pub bytes: i64,
    /// Time spent in them; threads that wait at the same time add up.
    pub total_ns: i64,
}

/// Calls of a class or of a name. Percentiles are of the stored calls,
/// the rest counts lost ones too.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Calls {
    /// Name of the class or call.
    pub name: String,
    /// Class of the call.
    pub class: String,
    /// Calls.
    pub calls: i64,
    /// Of which are not stored.
    pub lost: i64,
    /// Of which had not ended.
    pub pending: i64,
    /// Of which failed.
    pub errors: i64,
    /// Bytes moved.
    pub bytes: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Median duration; null when none is stored.
    pub p50_ns: Option<i64>,
    /// 90th percentile.
    pub p90_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// Longest duration.
    pub max_ns: i64,
}

/// Stored calls of a name on a file; `page fault` for page faults on it while it was mapped.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct CallsOnFile {
    /// Name of the call.
    pub syscall: String,
    /// Id in table `files`, of the file with the most time; null: calls without a known file.
    pub file_id: Option<i64>,
    /// Path of the file at the time of the call; files that had it one after another count together.
    pub path: Option<String>,
    /// Files that had the path; 0 for calls on a path without an open file.
    pub files: i64,
    /// Paths that are counted together, because each of them took little time; 1 for a path alone.
    pub paths: i64,
    /// The deepest directory that contains nearly all of these paths; null for a path alone.
    pub directory: Option<String>,
    /// Paths among them that are not in this directory.
    pub elsewhere: i64,
    /// Calls.
    pub calls: i64,
    /// Bytes moved.
    pub bytes: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
}

/// Calls that failed in the same way.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct ErrorCount {
    /// Name of the call.
    pub syscall: String,
    /// Name of the error.
    pub errno: String,
    /// Whether it is a failure; false for an answer, such as ENOENT of a look-up.
    pub failed: bool,
    /// Stored calls.
    pub calls: i64,
    /// Path of one of them.
    pub example_path: Option<String>,
}

/// Sums of a file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct FileActivity {
    /// Id in table `files`, of the file with the most time; null: calls without a known file.
    pub file_id: Option<i64>,
    /// Latest known path; files that have the same count together.
    pub path: Option<String>,
    /// Files with the path.
    pub files: i64,
    /// Type of the file.
    pub file_type: Option<String>,
    /// Calls.
    pub calls: i64,
    /// Of which failed.
    pub errors: i64,
    /// Bytes read.
    pub read_bytes: i64,
    /// Bytes written.
    pub written_bytes: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
}

/// A path, and how many files had it: a database's journal may be a new file for each transaction.
fn named(path: &str, files: i64) -> String {
    match files > 1 {
        true => format!("{path} ×{}", fathom_model::units::count(files)),
        false => path.to_owned(),
    }
}

impl CallsOnFile {
    /// The path, with the number of its files.
    pub fn name(&self) -> String {
        if let Some(directory) = &self.directory {
            let place = fathom_query::together::Place {
                directory: directory.clone(),
                inside: self.paths.saturating_sub(self.elsewhere),
                elsewhere: self.elsewhere,
            };
            return place.name();
        }
        let path = self.path.as_deref();
        path.map_or("-".to_owned(), |path| named(path, self.files))
    }
}

impl FileActivity {
    /// The path, with the number of its files.
    pub fn name(&self) -> String {
        match &self.path {
            Some(path) => named(path, self.files),
            None => {
                let kind = self.file_type.as_deref().unwrap_or("file");
                format!("({kind} without a known path)")
            }
        }
    }

    /// Bytes moved.
    pub fn bytes(&self) -> i64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }
}

/// Files that stand out.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Files {
    /// Files on which calls were made.
    pub count: i64,
    /// The files with the most time.
    pub by_time: Vec<FileActivity>,
    /// The files with the most bytes.
    pub by_bytes: Vec<FileActivity>,
    /// Those on which the most calls were made.
    pub by_calls: Vec<FileActivity>,
}

/// Page faults and write-back of a mapped file, lost ones included where not said
/// otherwise.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct MappedFile {
    /// Id in table `files`; null: faults that the kernel could not split.
    pub file_id: Option<i64>,
    /// Path.
    pub path: Option<String>,
    /// Page faults.
    pub faults: i64,
    /// Stored faults whose page had to be read.
    pub major: i64,
    /// Faults that ended in SIGBUS.
    pub failed: i64,
    /// Stored faults by writes.
    pub write_faults: i64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Longest duration; null when none was measured.
    pub max_ns: Option<i64>,
    /// Bytes written back.
    pub written_back_bytes: i64,
}

/// Mapped files that stand out.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Mapped {
    /// Page faults on mapped files that the kernel side saw.
    pub seen: u64,
    /// Rows of table `faults`.
    pub stored: u64,
    /// Page faults in table `losses`.
    pub lost: u64,
    /// Page faults that may or may not have been on a file.
    pub unknown: u64,
    /// Sum of the durations of all faults. Times of calls do not include it, except for calls that had
    /// faults themselves.
    pub total_ns: i64,
    /// Files with faults or write-back.
    pub count: i64,
    /// Those whose faults took the most time.
    pub by_time: Vec<MappedFile>,
}

/// A thread.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Thread {
    /// Process.
    pub pid: i64,
    /// Thread.
    pub tid: i64,
    /// Name.
    pub comm: Option<String>,
    /// Stored calls.
    pub calls: i64,
    /// Of which failed.
    pub errors: i64,
    /// Bytes read.
    pub read_bytes: i64,
    /// Bytes written.
    pub written_bytes: i64,
    /// Time spent in calls.
    pub total_ns: i64,
    /// Longest call.
    pub max_ns: i64,
}

/// Threads that stand out.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Threads {
    /// Threads that made stored calls.
    pub count: i64,
    /// The processes with the most time in calls.
    pub by_time: Vec<Thread>,
}

/// Seen, stored and lost.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Loss {
    /// Calls that the kernel side saw, as last counted by the recorder.
    pub seen: u64,
    /// Rows of table `syscalls`.
    pub stored: u64,
    /// Calls in table `losses`.
    pub lost: u64,
    /// Calls whose rows were dropped again, as only the latest are kept.
    pub expired: u64,
    /// Calls in table `counters`.
    pub counted: u64,
    /// Calls that are in no table, as the recorder was killed.
    pub missing: u64,
    /// Whether seen is the sum of the others.
    pub balanced: bool,
    /// Calls by 32-bit programs, which are not recorded and not in `seen`.
    pub compat: u64,
    /// Where calls were lost, most first.
    pub places: Vec<LossPlace>,
    /// Advice.
    pub advice: Vec<String>,
}

impl Loss {
    /// The parts that add up to `seen` ([`meta::Totals::parts`]).
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let totals = meta::Totals {
            stored: self.stored,
            lost: self.lost,
            expired: self.expired,
            counted: self.counted,
            missing: self.missing,
            ..meta::Totals::default()
        };
        totals.parts()
    }
}

/// Where calls were lost.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct LossPlace {
    /// ring, scratch, decode or write.
    pub stage: String,
    /// Processor, -1 when not known.
    pub cpu: i64,
    /// Name of the call.
    pub syscall: String,
    /// Calls.
    pub calls: i64,
}

/// Calls and bytes over time; stored calls only, where they were entered.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// Width of a slice.
    pub slice_ns: i64,
    /// One entry a slice, from the beginning, without gaps.
    pub slices: Vec<Slice>,
}

/// A piece of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Slice {
    /// Calls.
    pub calls: i64,
    /// Of which failed.
    pub errors: i64,
    /// Bytes read.
    pub read_bytes: i64,
    /// Bytes written.
    pub written_bytes: i64,
    /// Time that threads were in calls and in page faults on mapped files, also in calls and faults
    /// that began before; concurrent threads add up.
    pub total_ns: i64,
}

/// The latency histogram of a call name.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Name of the call.
    pub syscall: String,
    /// Buckets that are not empty.
    pub buckets: Vec<Bucket>,
}

/// Calls whose duration is between two powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Power of two where it begins.
    pub bucket: i64,
    /// Shortest duration.
    pub from_ns: i64,
    /// Where the next begins; null for the last.
    pub below_ns: Option<i64>,
    /// Calls.
    pub calls: i64,
}

/// Cost of the recording, as far as it was measured.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Time in the probes a call.
    pub probe_ns_per_call: Option<f64>,
    /// Time in the probes, all processors together.
    pub probe_ns: Option<u64>,
    /// CPU time of the recorded program.
    pub target_cpu_ns: Option<u64>,
    /// Time in the probes as a share of the program's CPU time, 0 to 1.
    pub probe_share: Option<f64>,
    /// CPU time of the recorder.
    pub recorder_cpu_ns: Option<u64>,
    /// The same as a share of one processor over the recording.
    pub recorder_share: Option<f64>,
    /// Peak of the recorder's resident memory.
    pub recorder_peak_rss_bytes: Option<u64>,
    /// Its upper bound, whatever is recorded.
    pub recorder_limit_bytes: Option<u64>,
    /// Highest share of the ring in use, 0 to 1.
    pub ring_peak: Option<f64>,
    /// Memory of the ring of one processor, MiB.
    pub ring_mib: u32,
}

/// The session's place and size.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Storage {
    /// Directory.
    pub location: String,
    /// Size of all parts.
    pub bytes: u64,
    /// Size of the parts of table `syscalls` a row; null without rows.
    pub bytes_per_row: Option<f64>,
}

/// A command to try.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct NextCommand {
    /// Its purpose.
    pub purpose: String,
    /// The command, for a shell.
    pub command: String,
    /// The SQL in it.
    pub sql: Option<String>,
}

//! Options of a recording.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use fathom_probe::{Content, FilterArgs};
use fathom_session::Share;

use crate::Kubernetes;

/// Options of a recording. Texts have the syntax of the command line (`fathom record --help`).
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the session; without it one that is named after target and time.
    pub output: Option<PathBuf>,
    /// Replace a session that is there, and a raw capture.
    pub force: bool,
    /// Read access to the session and the raw capture besides the owner.
    pub share: Share,
    /// The name by which that was given, for `session.json`.
    pub share_name: Option<String>,
    /// Labels for `session.json`.
    pub labels: BTreeMap<String, String>,
    /// Calls and operations to record.
    pub syscalls: Vec<String>,
    /// Layers to record; empty for the usual ones.
    pub layers: Vec<String>,
    /// How much is read of each call.
    pub detail: Detail,
    /// Which calls get a row.
    pub rows: Rows,
    /// Limit of the recording's cost, as a share of the time of all CPUs, 0 to 1: at a higher cost
    /// fewer calls get a row.
    pub budget: Option<f64>,
    /// Handling of the bytes that calls move.
    pub content: Content,
    /// Bytes of each call that `content` takes at most; without it 1 MiB to hash, 256 to keep.
    pub content_max: Option<u32>,
    /// Protocols whose requests are recorded as spans.
    pub spans: Vec<String>,
    /// Of encrypted connections, too.
    pub tls: bool,
    /// Record from where in its program each call was made.
    pub stacks: bool,
    /// Spans between static probes of programs: providers, `PROVIDER:KIND`, and
    /// `PROVIDER:BEGIN/END` ([`fathom_model::usdt::parse`]).
    pub usdt: Vec<String>,
    /// The span that is active in a thread when it makes a call, as an SDK of OpenTelemetry publishes it.
    pub otel_context: bool,
    /// Functions of libraries whose calls are recorded: classes, and `LIBRARY:FUNCTION`.
    pub library: Vec<String>,
    /// How they are recorded.
    pub library_by: LibraryBy,
    /// Calls of one of them in a second, above which its further calls are counted instead of
    /// getting a row each; `None`: all get one.
    pub library_budget: Option<u64>,
    /// Functions of the kernel that become parts of requests: NAME or NAME:LAYER.
    pub functions: Vec<String>,
    /// Counters of perf that are read of each call.
    pub perf_counters: Vec<String>,
    /// Which tasks, files and calls are recorded.
    pub filters: FilterArgs,
    /// Time after which the recording ends.
    pub duration: Option<Duration>,
    /// Memory of the ring of each CPU, MiB.
    pub ring_mib: u32,
    /// Keep only the latest rows: one limit of each kind at most.
    pub keep: Vec<KeepLimit>,
    /// Save what is kept when a call comes.
    pub save_when: Option<SaveWhen>,
    /// Flush each part to the device once it is written.
    pub durable: bool,
    /// File that gets the kernel's records, too, for [`crate::replay`].
    pub raw: Option<PathBuf>,
    /// Show rows to the rules as they are recorded.
    pub diagnose: bool,
    /// How Kubernetes' API is asked for the claims of persistent volumes; `None`: it is not.
    pub kubernetes: Option<Kubernetes>,
    /// The session is looked at while it is recorded, by this process: rows are written sooner,
    /// and nothing is promised of the memory of the process.
    pub watched: bool,
}

/// [`Options::library_budget`] when nothing else is said: a recorded call by preload costs 0.1 µs, so
/// that a function takes 1 % of a processor at most, and a function's rows some megabytes per second.
pub const LIBRARY_CALLS_PER_SECOND: u64 = 100_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            output: None,
            force: false,
            share: Share::Private,
            share_name: None,
            labels: BTreeMap::new(),
            syscalls: vec!["storage".into()],
            layers: Vec::new(),
            detail: Detail::Full,
            rows: Rows::All,
            budget: None,
            content: Content::None,
            content_max: None,
            spans: Vec::new(),
            tls: true,
            stacks: false,
            usdt: Vec::new(),
            otel_context: false,
            library: Vec::new(),
            library_by: LibraryBy::Uprobe,
            library_budget: Some(LIBRARY_CALLS_PER_SECOND),
            functions: Vec::new(),
            perf_counters: Vec::new(),
            filters: FilterArgs::default(),
            duration: None,
            ring_mib: 32,
            keep: Vec::new(),
            save_when: None,
            durable: false,
            raw: None,
            diagnose: false,
            kubernetes: None,
            watched: false,
        }
    }
}

/// How calls of library functions are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryBy {
    /// The kernel stops the program at the beginning and at the end of each call.
    Uprobe,
    /// An object that is loaded into the command.
    Preload,
}

/// The target of a recording.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command, which the recorder starts, and what that starts.
    Command {
        /// Program and arguments.
        argv: Vec<OsString>,
        /// Run it as this user, in that user's environment.
        user: Option<String>,
        /// In the recorder's environment all the same.
        preserve_environment: bool,
    },
    /// Running processes. Without any, all tasks that [`Options::filters`] choose.
    Processes {
        /// Ids: `12`, `12,13`, `!14`.
        pids: Vec<String>,
        /// Record the children that they will have, too.
        children: bool,
    },
    /// All tasks of the machine but the recorder's.
    Everything,
}

impl Target {
    /// A command that runs as it would without the recorder.
    pub fn command<T: Into<OsString>>(argv: impl IntoIterator<Item = T>) -> Self {
        Self::Command {
            argv: argv.into_iter().map(Into::into).collect(),
            user: None,
            preserve_environment: false,
        }
    }
}

/// How much is read of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// No calls: counts, errors, bytes and latencies by process and call.
    Counters {
        /// And by file.
        by_file: bool,
    },
    /// Numbers only: no paths, no memory of the program.
    Raw,
    /// Files behind descriptors with their paths, no strings from arguments.
    Fds,
    /// Everything.
    Full,
}

/// Which calls get a row of their own. All are counted or stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// All of them.
    #[default]
    All,
    /// Calls that are slow or fail, calls with events in a layer below, and a sample of the others.
    Tail {
        /// Calls of at least this duration are slow; without it, calls that take longer than usual.
        slower_than: Option<Duration>,
        /// One of so many others gets a row; 0: none.
        sample: u32,
    },
}

/// Of how many calls without anything special one gets a row, unless the options say otherwise.
pub const SAMPLE: u32 = 1000;

/// How much of a recording is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepLimit {
    /// The rows of the last so much time.
    Time(Duration),
    /// Bytes on disk.
    Bytes(u64),
}

/// When what is kept is saved as a session of its own.
#[derive(Clone, Debug)]
pub struct SaveWhen {
    /// Condition on a row of table `syscalls`, in SQL.
    pub condition: String,
    /// Saves at most.
    pub max_saves: u64,
    /// Time between two of them at least.
    pub pause: Duration,
}

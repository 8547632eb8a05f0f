//! The options: declared here and nowhere else.

mod agent;
mod completions;
#[cfg(feature = "analysis")]
mod critical_path;
#[cfg(feature = "analysis")]
mod diagnose;
#[cfg(feature = "analysis")]
mod diff;
#[cfg(feature = "analysis")]
mod extensions;
mod filter;
mod host;
#[cfg(feature = "analysis")]
pub mod id;
mod keep;
mod kubernetes;
#[cfg(feature = "analysis")]
mod mcp;
mod record;
mod redact;
mod remote;
#[cfg(feature = "analysis")]
mod sessions;
#[cfg(feature = "analysis")]
mod set;
#[cfg(feature = "ship")]
mod ship;
#[cfg(feature = "analysis")]
mod tenants;
mod top;
#[cfg(feature = "analysis")]
mod ui;
#[cfg(feature = "analysis")]
mod why;

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "analysis")]
use clap::ValueEnum;
use clap::{Args, Parser, Subcommand};
use fathom_model::units;
use fathom_session::Share;

use crate::help;

pub use agent::AgentArgs;
pub use completions::{CompletionsArgs, ManPagesArgs};
#[cfg(feature = "analysis")]
pub use critical_path::{CriticalPathArgs, CriticalPathFormat};
#[cfg(feature = "analysis")]
pub use diagnose::{DiagnoseArgs, DiagnosisFormat};
#[cfg(feature = "analysis")]
pub use diff::{DiffArgs, DiffFormat};
#[cfg(feature = "analysis")]
pub use extensions::ExtensionsOption;
pub use filter::FilterOptions;
pub use host::Host;
pub use keep::{KeepOptions, RepairArgs, RowsArg, SnapshotArgs};
pub use kubernetes::KubernetesOptions;
#[cfg(feature = "analysis")]
pub use mcp::McpArgs;
pub use record::{ContentArg, DetailArg, HashInArg, LibraryBudgetArg, LibraryByArg, RecordArgs};
pub use redact::RedactArgs;
#[cfg(any(feature = "analysis", feature = "ship"))]
pub use redact::RedactOptions;
#[cfg(feature = "analysis")]
pub use remote::OnOptions;
pub use remote::{PullArgs, SshOptions};
#[cfg(feature = "analysis")]
pub use sessions::{SessionsArgs, SessionsFormat};
#[cfg(feature = "analysis")]
pub use set::SetArgs;
#[cfg(feature = "ship")]
pub use ship::ShipArgs;
#[cfg(feature = "analysis")]
pub use tenants::{LabelFilter, MemberOptions, TenantOptions};
pub use top::{TopArgs, TopFormat};
#[cfg(feature = "analysis")]
pub use ui::{RecordUiOptions, TransportOptions, UiArgs};
#[cfg(feature = "analysis")]
pub use why::{WhyArgs, WhyFormat};

/// Record the storage I/O of programs, and explain what is slow
#[derive(Debug, Parser)]
#[command(
    name = "fathom",
    version,
    max_term_width = 100,
    after_help = "Examples:
  fathom record -o run.fathom -- make -j4      record a command and its children
  fathom record -p 1234 --duration 10          record a running process for 10 s
  fathom report run.fathom                     summary: programs, files, calls, latencies
  fathom diagnose run.fathom                   find problems and show how to fix them
  fathom sessions                              list the recordings in this directory
  fathom diff old.fathom new.fathom            compare two recordings; find regressions
  fathom query run.fathom 'FROM by_file ORDER BY total_ns DESC LIMIT 10'
  fathom zoom run.fathom --by file --pixels 50 I/O per file over time
  fathom ui run.fathom                         open the session in the browser
  fathom export run.fathom --format perfetto -o run.pftrace
  fathom redact run.fathom -o shared.fathom    copy a session without secrets
  fathom import strace.log                     make a session from a log of strace
  fathom top                                   show current storage I/O live
  fathom doctor                                check what this kernel supports

Exit status: 0 success, 1 findings or differences, 2 invalid options or input.
record -- CMD exits with the status of CMD; 125 if fathom failed, 126 if CMD cannot be
executed, 127 if CMD was not found."
)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Record a command and its children, running processes, or the whole machine
    Record(Box<RecordArgs>),
    /// Record this machine all the time: exact sums for Prometheus and OpenTelemetry, and the latest
    /// details on disk
    Agent(AgentArgs),
    /// Summarize a session: programs, files, calls, latencies, errors, losses
    #[cfg(feature = "analysis")]
    Report(ReportArgs),
    /// Explain where the time went: which requests took it, what they waited for, what to change
    #[cfg(feature = "analysis")]
    Why(WhyArgs),
    /// Show the chain of work and waits that the time of a request or thread consists of, across
    /// threads and devices
    #[cfg(feature = "analysis")]
    CriticalPath(CriticalPathArgs),
    /// Find problems in the I/O, what they cost, and how to fix them; exit status 1 if there are
    /// findings
    #[cfg(feature = "analysis")]
    Diagnose(DiagnoseArgs),
    /// Compare two sessions, or two sets of sessions; differences within noise are marked. Exit
    /// status 1 if the second is worse
    #[cfg(feature = "analysis")]
    Diff(DiffArgs),
    /// Run an SQL statement on a session
    #[cfg(feature = "analysis")]
    Query(QueryArgs),
    /// Print sums over any window of a session in any number of time buckets, or its single calls
    #[cfg(feature = "analysis")]
    Zoom(ZoomArgs),
    /// Open sessions in the browser, including recordings in progress
    #[cfg(feature = "analysis")]
    Ui(UiArgs),
    /// Convert a session to the format of another tool: perfetto, strace, dio, csv, ...
    #[cfg(feature = "analysis")]
    Export(ExportArgs),
    /// List the sessions in a directory, the newest first, with their state and the next step
    #[cfg(feature = "analysis")]
    Sessions(SessionsArgs),
    /// Join sessions of several hosts on one clock; query, report, and diagnose take the set as
    /// they take a session
    #[cfg(feature = "analysis")]
    Set(SetArgs),
    /// Copy a session from another host over ssh, also one that is being recorded
    Pull(PullArgs),
    /// Serve sessions to language-model clients over the Model Context Protocol (stdio), read-only
    #[cfg(feature = "analysis")]
    Mcp(McpArgs),
    /// Make a session from a log of strace or DIO or a trace of LTTng, or add spans of an application to a session
    Import(ImportArgs),
    /// Show current storage I/O by file, process, thread, call, layer, or device in the terminal;
    /// store nothing
    Top(Box<TopArgs>),
    /// Check what this kernel supports and how to enable what is missing
    Doctor(DoctorArgs),
    /// Save a snapshot of a running recording as a separate session
    Snapshot(SnapshotArgs),
    /// Copy a session without secrets, to share it: paths, names, and arguments as hashes, numbers
    /// as they are
    Redact(RedactArgs),
    /// Upload closed sessions to an object store or a directory, as Parquet files that DuckDB,
    /// ClickHouse, and Spark read
    #[cfg(feature = "ship")]
    Ship(ShipArgs),
    /// Repair a session whose recorder was killed or whose files are damaged
    Repair(RepairArgs),
    /// Make a session from a raw capture (record --raw); needs no privileges
    Replay(ReplayArgs),
    /// Print a script that completes commands and options in a shell
    Completions(CompletionsArgs),
    /// Do on this host what another fathom asks for on standard input
    #[command(hide = true)]
    Remote,
    /// Write the man pages of all commands
    #[command(hide = true)]
    ManPages(ManPagesArgs),
    /// Worker process in which another fathom runs a user's SQL
    #[cfg(feature = "analysis")]
    #[command(name = fathom_query::worker::ARGUMENT, hide = true)]
    SqlWorker,
}

/// Read access to the files that fathom writes.
#[derive(Clone, Debug, Default, Args)]
pub struct ShareOption {
    /// Let others read it: a group by name or number, or all [default: only its owner, which under
    /// sudo is the user who called sudo]
    #[arg(long = "share", value_name = "GROUP|all", value_parser = share)]
    with: Option<SharedWith>,
}

/// The value of `--share`.
#[derive(Clone, Debug)]
struct SharedWith {
    given: String,
    share: Share,
}

impl ShareOption {
    /// The chosen access.
    pub fn share(&self) -> Share {
        self.with.as_ref().map_or(Share::Private, |with| with.share)
    }

    /// The name as given.
    pub fn name(&self) -> Option<String> {
        self.with.as_ref().map(|with| with.given.clone())
    }
}

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The capture
    pub capture: PathBuf,
    /// Directory of the session
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace an existing session
    #[arg(long)]
    pub force: bool,
    /// Read access to the session.
    #[command(flatten)]
    pub share: ShareOption,
}

/// Format of a report.
#[cfg(feature = "analysis")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ReportFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
    /// One self-contained page with plots
    Html,
}

/// Options of `report`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// Print every table instead of one screen
    #[arg(long)]
    pub full: bool,
    /// Print the disk space of each column instead
    #[arg(long)]
    pub sizes: bool,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Redaction.
    #[command(flatten)]
    pub redact: RedactOptions,
}

/// Options of `query`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(after_help = help::relations())]
pub struct QueryArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// One SQL statement (DuckDB's dialect)
    #[arg(required_unless_present = "finding")]
    pub sql: Option<String>,
    /// Run the SQL of finding N in the list of `fathom diagnose`
    #[arg(long, value_name = "N", conflicts_with = "sql", value_parser = clap::value_parser!(u32).range(1..))]
    pub finding: Option<u32>,
    /// Output format.
    #[arg(long, default_value = "table", value_name = "FORMAT", help = help::result_formats())]
    pub format: fathom_query::output::Format,
    /// Write text unchanged.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
    /// Memory limit of the statement, MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory_mib: u64,
    /// Stop the statement after TIME (30, 500ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Redaction.
    #[command(flatten)]
    pub redact: RedactOptions,
}

/// The key of the sums.
#[cfg(feature = "analysis")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ByArg {
    /// One sum per bucket
    None,
    /// By call
    Syscall,
    /// By class of calls
    Class,
    /// By thread
    Thread,
    /// By process
    Process,
    /// By file
    File,
    /// By layer: `calls` counts visits, `total_ns` is the time spent in the layer itself
    Layer,
    /// By what threads waited for, in calls and outside of them: `calls` counts waits
    Reason,
}

/// Options of `zoom`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(
    after_help = help::TIMES.to_owned() + "

Prints one row per time bucket and key with calls, ordered by time. A call counts with all of its
time in the bucket in which it starts. Keys outside of the --top share rows with rest = true.
The width of a bucket is a power of two of nanoseconds; the window has between --pixels and twice as
many buckets."
)]
pub struct ZoomArgs {
    /// Directory of the session, or a set of sessions
    pub session: PathBuf,
    /// Start of the window [default: the first call]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// End of the window [default: after the last call]
    #[arg(long, visible_alias = "to", value_name = "TIME")]
    pub until: Option<String>,
    /// Minimum number of time buckets
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub pixels: u32,
    /// Key of the sums
    #[arg(long, value_enum, default_value = "none")]
    pub by: ByArg,
    /// Number of keys with their own rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Add latency histograms: entry b counts durations from 2^b to below 2^(b+1) ns
    #[arg(long)]
    pub latency: bool,
    /// Only this call
    #[arg(long, value_name = "NAME")]
    pub syscall: Option<String>,
    /// Only this class of calls
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Only this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<i32>,
    /// Only this thread
    #[arg(long, value_name = "TID")]
    pub tid: Option<i32>,
    /// Only the file of this file_id
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub file_id: Option<i64>,
    /// Sessions of a set.
    #[command(flatten)]
    pub members: MemberOptions,
    /// In a set: a row per host and key; without it, a row per key for all hosts
    #[arg(long)]
    pub per_host: bool,
    /// Print the single calls of the window instead, at most N
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100")]
    pub events: Option<usize>,
    /// Rebuild the session's pyramid of sums first
    #[arg(long)]
    pub rebuild: bool,
    /// Output format.
    #[arg(long, default_value = "table", value_name = "FORMAT", help = help::result_formats())]
    pub format: fathom_query::output::Format,
    /// Write text unchanged.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
    /// Tenants.
    #[command(flatten)]
    pub tenants: TenantOptions,
}

/// Options of `export`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(after_help = help::export_formats())]
pub struct ExportArgs {
    /// Directory of the session, or file of the set
    pub session: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    pub format: fathom_export::Format,
    /// File to write [default: standard output]; with ctf, the directory to make
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only events that started at TIME or later
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only events that started before TIME
    #[arg(long, visible_alias = "to", value_name = "TIME")]
    pub until: Option<String>,
    /// Only calls that match this SQL condition on the columns of table syscalls:
    /// "class = 'data' AND dur_ns > 1e6"
    #[arg(long = "where", value_name = "SQL")]
    pub condition: Option<String>,
    /// Write text unchanged.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
    /// Redaction.
    #[command(flatten)]
    pub redact: RedactOptions,
    /// The user's own rules and views, for --format opensearch and page.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Record the log with: strace -f -ttt -T -y -o LOG COMMAND
For logs of strace -ff -o LOG, give LOG: fathom reads LOG.PID of every thread.
For a trace of LTTng's kernel tracer, give its directory.")]
pub struct ImportArgs {
    /// The log, the logs that strace -ff wrote, the directory of a trace, or the files of spans
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Add the spans of OpenTelemetry (OTLP as JSON, JSON lines, or protobuf) in the files to this
    /// closed session, table spans; spans that it has already are replaced
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["output", "format", "with"])]
    pub into: Option<PathBuf>,
    /// With --into: add the rows of one file (CSV with a line of names, Parquet, or JSON lines) as a table
    /// of this name; columns ts_ns, pid, tid, and rid can be joined with fathom's tables
    #[cfg(feature = "analysis")]
    #[arg(long, value_name = "NAME", requires = "into")]
    pub table: Option<String>,
    /// Directory of the session [default: FILE.fathom]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Format of the log.
    #[arg(long, help = help::import_formats())]
    pub format: Option<fathom_import::Format>,
    /// Replace a session that is there; with --table, replace your table of this name
    #[arg(long)]
    pub force: bool,
    /// Read access to the session.
    #[command(flatten)]
    pub share: ShareOption,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// List the calls and operations that fathom can record, with their classes
    #[arg(long)]
    pub syscalls: bool,
}

fn share(text: &str) -> Result<SharedWith, String> {
    let share = match (text, text.parse::<u32>()) {
        ("all", _) => Share::All,
        // The last id stands for "unchanged" in chown(2).
        (_, Ok(id)) if id != u32::MAX => Share::Group(id),
        _ => match fathom_probe::group_id(text) {
            Some(id) => Share::Group(id),
            None => return Err("no such group; `getent group` lists them".to_string()),
        },
    };
    Ok(SharedWith {
        given: text.to_owned(),
        share,
    })
}

/// A positive time; without a unit it is in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let Ok(seconds) = text.parse() else {
        return time(text);
    };
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "not a positive time".to_string())
}

/// A positive time.
pub fn time(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        Duration::ZERO => Err("not a positive time".to_string()),
        time => Ok(time),
    }
}

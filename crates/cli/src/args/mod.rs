//! The options: declared here and nowhere else.

#[cfg(feature = "analysis")]
mod diff;
mod keep;
mod top;
#[cfg(feature = "analysis")]
mod ui;
#[cfg(feature = "analysis")]
mod why;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fathom_model::units;
use fathom_recorder::FilterArgs;
use fathom_session::Share;

use crate::help;

#[cfg(feature = "analysis")]
pub use diff::{DiffArgs, DiffFormat};
pub use keep::{KeepOptions, RepairArgs, RowsArg, SnapshotArgs};
pub use top::{TopArgs, TopFormat};
#[cfg(feature = "analysis")]
pub use ui::{RecordUiOptions, UiArgs};
#[cfg(feature = "analysis")]
pub use why::{WhyArgs, WhyFormat};

/// What an application really asks of storage.
#[derive(Debug, Parser)]
#[command(
    name = "fathom",
    version,
    max_term_width = 100,
    after_help = "Examples:
  fathom record -o run.fathom -- make -j4      record a command and its children
  fathom record -p 1234 --duration 10          record a running process for 10 s
  fathom report run.fathom                     who did what, how much, how slow
  fathom diagnose run.fathom                   what is wrong, and what to do instead
  fathom diff old.fathom new.fathom            what changed, and whether it got worse
  fathom query run.fathom 'FROM by_file ORDER BY total_ns DESC LIMIT 10'
  fathom zoom run.fathom --by file --pixels 50 when which file was used, and how much
  fathom ui run.fathom                         look at it in the browser
  fathom export run.fathom --format perfetto -o run.pftrace
  fathom import strace.log                     make a session of what strace wrote
  fathom top                                   what uses storage now
  fathom doctor                                what this kernel offers

Exit status: 0 fine, 1 findings or differences, 2 bad options or input;
record -- CMD gives CMD's own, or 125 when fathom failed, 126 when CMD can't be
executed, 127 when it isn't found."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Record a command and its children, running processes, or everything
    Record(Box<RecordArgs>),
    /// Summary of a session: who, which files, how much, how slow, lost or not
    #[cfg(feature = "analysis")]
    Report(ReportArgs),
    /// Explain where the time went: which requests took it, what they waited for, what to change
    #[cfg(feature = "analysis")]
    Why(WhyArgs),
    /// What is wrong with the I/O, what it costs and what to do instead; exit status
    /// 1 when there is something
    #[cfg(feature = "analysis")]
    Diagnose(DiagnoseArgs),
    /// What changed between two sessions, or two sets of them, and whether it is more than
    /// noise; exit status 1 when it is worse
    #[cfg(feature = "analysis")]
    Diff(DiffArgs),
    /// SQL over a session
    #[cfg(feature = "analysis")]
    Query(QueryArgs),
    /// Sums over any window of a session, by any number of buckets; or its single calls
    #[cfg(feature = "analysis")]
    Zoom(ZoomArgs),
    /// The page: sessions in the browser, those that are being recorded live
    #[cfg(feature = "analysis")]
    Ui(UiArgs),
    /// A session in the format of another tool: perfetto, strace, dio, csv, ...
    #[cfg(feature = "analysis")]
    Export(ExportArgs),
    /// A log of strace or DIO as a session
    Import(ImportArgs),
    /// What uses storage now: files, processes, threads, calls, layers and devices in a
    /// terminal, live; nothing is kept
    Top(Box<TopArgs>),
    /// What this kernel offers, what will be missing, how to mend it
    Doctor(DoctorArgs),
    /// Have a recording that goes on save what it has so far, or keeps, as a session of its own
    Snapshot(SnapshotArgs),
    /// Repair a session whose recorder was killed or whose files are damaged
    Repair(RepairArgs),
    /// Make a session from a raw capture (record --raw); needs no privilege
    Replay(ReplayArgs),
    /// What runs a user's SQL for another fathom
    #[cfg(feature = "analysis")]
    #[command(name = fathom_query::worker::ARGUMENT, hide = true)]
    SqlWorker,
}

/// How much is read of each call.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DetailArg {
    /// No calls at all, but exact counts, errors, bytes and latencies by process and call
    Counters,
    /// Numbers only: no paths, no command lines, no memory of the program is read
    Raw,
    /// Files behind descriptors with their paths, no strings from arguments
    Fds,
    /// Everything
    Full,
}

/// What becomes of the bytes that calls move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContentArg {
    /// They are not read
    None,
    /// A hash of them (XXH64) is kept
    Hash,
    /// The first of them are kept, passwords and keys too
    Plain,
}

/// Where content is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HashInArg {
    /// By the probes, before the call returns
    Kernel,
    /// By the recorder, which the content is sent to
    User,
}

/// Options of `record`.
#[derive(Debug, Args)]
#[command(
    after_help = "While the command runs, signals go to it: Ctrl-C by the terminal, others \
are passed on. SIGUSR1 saves what is kept (see snapshot). A second one, or one when only its descendants are left, ends the recording."
)]
pub struct RecordArgs {
    /// Directory of the session [default: NAME-DATE-TIME.fathom]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace a session that is there
    #[arg(long)]
    pub force: bool,
    /// With --pid: record the children that it will have, too
    #[arg(long, requires = "pid")]
    pub children: bool,
    /// Record everything on this machine, fathom apart
    #[arg(long, conflicts_with = "command")]
    pub all: bool,
    /// Calls and operations to record.
    #[arg(long, value_name = "LIST", default_value = "storage", help = help::syscalls())]
    pub syscalls: Vec<String>,
    /// Layers to record.
    #[arg(long, value_name = "LIST", help = help::layers())]
    pub layers: Vec<String>,
    /// How much to read of each call
    #[arg(long, value_enum, default_value = "full")]
    pub detail: DetailArg,
    /// What to keep of the bytes that read, write and their kin move
    #[arg(long, value_enum, default_value = "none")]
    pub content: ContentArg,
    /// Where to hash, with --content hash [default: kernel]
    #[arg(long, value_enum)]
    pub hash_in: Option<HashInArg>,
    /// Bytes of each call that --content takes at most: up to 4M for hash,
    /// 16K for plain [default: 1M, 256]
    #[arg(long, value_name = "BYTES", value_parser = content_bytes)]
    pub content_max: Option<u32>,
    /// Record from where in its program each call was made, too: functions, and lines where
    /// there is debug information. Costs more than all the rest (docs/guide.md)
    #[arg(long)]
    pub stacks: bool,
    /// Counters of perf to read of each call.
    #[arg(long, value_name = "LIST", help = help::counters())]
    pub counters: Vec<String>,
    /// Stop recording after TIME (10, 1.5s, 15m); the command goes on
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Memory of the ring of each CPU, MiB
    #[arg(long, value_name = "MIB", default_value_t = 32,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ring_mib: u32,
    /// Run the command as this user, in that user's environment; it cannot type into this
    /// terminal
    #[arg(long, value_name = "NAME", requires = "command")]
    pub user: Option<String>,
    /// With --user: keep the environment of fathom, with all secrets that are in it
    #[arg(long, requires = "user")]
    pub preserve_env: bool,
    /// Keep the kernel's records in FILE as well, for `fathom replay`
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Who may read the session (and --raw's file) besides its owner.
    #[command(flatten)]
    pub share: ShareOption,
    /// Look for what is wrong while recording, and say so as soon as it is found; see
    /// diagnose
    #[arg(long)]
    pub diagnose: bool,
    /// No status line and no summary
    #[arg(short, long)]
    pub quiet: bool,
    /// Command to record, with its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "pid", required_unless_present_any =
          ["pid", "all", "tid", "comm", "uid", "cgroup", "container"])]
    pub command: Vec<OsString>,
    /// Rings, saves, durability.
    #[command(flatten)]
    pub keep: KeepOptions,
    /// The page.
    #[cfg(feature = "analysis")]
    #[command(flatten)]
    pub page: RecordUiOptions,
    /// Which tasks, files and calls. Last, as its heading would go on.
    #[command(flatten)]
    pub filter: FilterOptions,
}

/// Filters of `record` and `top`. All of them work in the kernel: what they leave out makes
/// no record.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Filters (different ones must all agree, of one kind any value \
suffices; !VALUE leaves out)"
)]
pub struct FilterOptions {
    /// Running process PID with all its threads; 12,13: both; !PID: not that one
    #[arg(short, long, value_name = "PID")]
    pub pid: Vec<String>,
    /// Thread TID; without a command or --pid: of all threads of the machine
    #[arg(short, long, value_name = "TID")]
    pub tid: Vec<String>,
    /// Threads that call themselves NAME: 'redis-server', 'kworker*', '!bash'; as
    /// --tid of all threads, now and in future
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<OsString>,
    /// Tasks of this user (their real user id): 'postgres', '0', '!root'; --user
    /// is another thing
    #[arg(long, value_name = "NAME|ID")]
    pub uid: Vec<String>,
    /// Tasks in a cgroup (v2) and those below: '/system.slice/nginx.service'
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Tasks in a container, by name, id or the beginning of an id; 'ab12*' catches
    /// those to come as well
    #[arg(long, value_name = "NAME|ID")]
    pub container: Vec<String>,
    /// Calls on a file, or on what lies in a directory and below: '/var/lib/mysql',
    /// '!/proc'; need not exist yet; no patterns: '\*' for a name with a '*'
    #[arg(long, value_name = "PATH")]
    pub path: Vec<OsString>,
    /// Calls on files of a type.
    #[arg(long, value_name = "TYPE", help = help::file_types())]
    pub file_type: Vec<String>,
    /// Only calls that fail
    #[arg(long)]
    pub errors_only: bool,
    /// Only calls that take at least TIME: 250us, 10ms, 1.5s
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub min_duration: Option<Duration>,
}

impl FilterOptions {
    /// The filters.
    pub fn filters(&self) -> FilterArgs {
        FilterArgs {
            path: self.path.clone(),
            comm: self.comm.clone(),
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            uid: self.uid.clone(),
            cgroup: self.cgroup.clone(),
            container: self.container.clone(),
            file_type: self.file_type.clone(),
            errors_only: self.errors_only,
            min_duration: self.min_duration,
        }
    }
}

/// Who may read what is made.
#[derive(Clone, Debug, Default, Args)]
pub struct ShareOption {
    /// Let others read it, too: a group by name or number, or all. Without it only its owner can
    /// (under sudo: the user who called that)
    #[arg(long = "share", value_name = "GROUP|all", value_parser = share)]
    with: Option<SharedWith>,
}

/// What `--share` names.
#[derive(Clone, Debug)]
struct SharedWith {
    given: String,
    share: Share,
}

impl ShareOption {
    /// Who may read it.
    pub fn share(&self) -> Share {
        self.with.as_ref().map_or(Share::Private, |with| with.share)
    }

    /// The name that was given.
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
    /// Replace a session that is there
    #[arg(long)]
    pub force: bool,
    /// Who may read it.
    #[command(flatten)]
    pub share: ShareOption,
}

/// Form of a report.
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
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: ReportFormat,
    /// Print every table instead of one screen
    #[arg(long)]
    pub full: bool,
    /// Where the session's bytes go instead: what each column takes on disk
    #[arg(long)]
    pub sizes: bool,
}

/// Form of a diagnosis.
#[cfg(feature = "analysis")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DiagnosisFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
    /// For code hosts and editors: SARIF 2.1.0
    Sarif,
}

/// Options of `diagnose`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// Form of the findings
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiagnosisFormat,
    /// List patterns too that cost less than a finding does; JSON always has them
    #[arg(long)]
    pub all: bool,
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
    /// Run the SQL of the finding with this number in the list of `fathom diagnose`
    #[arg(long, value_name = "N", conflicts_with = "sql", value_parser = clap::value_parser!(u32).range(1..))]
    pub finding: Option<u32>,
    /// Form of the result.
    #[arg(long, default_value = "table", value_name = "FORMAT", help = help::result_formats())]
    pub format: fathom_query::output::Format,
    /// Text as it was recorded.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
    /// Memory that the statement may use, MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub memory_mib: u64,
    /// End the statement after TIME (30, 500ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

/// By what sums are split.
#[cfg(feature = "analysis")]
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ByArg {
    /// Not at all
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
    /// By layer: `calls` counts visits, `total_ns` is the time that they took themselves
    Layer,
}

/// Options of `zoom`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(
    after_help = help::TIMES.to_owned() + "

One row a bucket of time and key that has calls, those keys first that took most time;
all keys that are not among the --top share rows with rest = true. Buckets are a power of two of
nanoseconds wide; there are at least --pixels of them in the window and at most twice as many."
)]
pub struct ZoomArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// Beginning of the window [default: the first call]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// End of the window [default: after the last call]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Buckets of time, at least
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub pixels: u32,
    /// By what to split
    #[arg(long, value_enum, default_value = "none")]
    pub by: ByArg,
    /// Most keys that have rows of their own
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
    /// Print the single calls of the window instead, at most so many
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "100")]
    pub events: Option<usize>,
    /// Make the session's pyramid of sums anew first
    #[arg(long)]
    pub rebuild: bool,
    /// Form of the result.
    #[arg(long, default_value = "table", value_name = "FORMAT", help = help::result_formats())]
    pub format: fathom_query::output::Format,
    /// Text as it was recorded.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
}

/// Options of `export`.
#[cfg(feature = "analysis")]
#[derive(Debug, Args)]
#[command(after_help = help::export_formats())]
pub struct ExportArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    pub format: fathom_export::Format,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only what began at TIME or later
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only what began before TIME
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only calls for which this SQL over the columns of table syscalls is true:
    /// "class = 'data' AND dur_ns > 1e6"
    #[arg(long = "where", value_name = "SQL")]
    pub condition: Option<String>,
    /// Text as it was recorded.
    #[arg(long, help = help::EXACT)]
    pub exact: bool,
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_help = "Best made by: strace -f -ttt -T -y -o LOG COMMAND
With strace -ff -o LOG give LOG: it stands for LOG.PID of every thread.")]
pub struct ImportArgs {
    /// The log, or the logs that strace -ff wrote
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Directory of the session [default: FILE.fathom]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Format of the log.
    #[arg(long, help = help::import_formats())]
    pub format: Option<fathom_import::Format>,
    /// Replace a session that is there
    #[arg(long)]
    pub force: bool,
    /// Who may read it.
    #[command(flatten)]
    pub share: ShareOption,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// List the calls and operations that can be recorded, with their classes
    #[arg(long)]
    pub syscalls: bool,
}

fn content_bytes(text: &str) -> Result<u32, String> {
    match u32::try_from(units::parse_bytes(text)?) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("not between 1 and 4GiB".to_string()),
    }
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

/// A time that is not 0, of which the unit may be left out: then it is of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let Ok(seconds) = text.parse() else {
        return time(text);
    };
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "not a positive time".to_string())
}

/// A time that is not 0.
pub fn time(text: &str) -> Result<Duration, String> {
    match units::parse_time(text)? {
        Duration::ZERO => Err("not a positive time".to_string()),
        time => Ok(time),
    }
}

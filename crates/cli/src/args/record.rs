//! Options of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fathom_model::units;

#[cfg(feature = "analysis")]
use super::{ExtensionsOption, OnOptions, RecordUiOptions};
use super::{FilterOptions, KeepOptions, KubernetesOptions, ShareOption, seconds};
use crate::help;

/// How much to read per call.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DetailArg {
    /// No rows per call; exact counts, errors, bytes, and latencies per process and call
    Counters,
    /// Numbers only: no paths, command lines, or program memory
    Raw,
    /// Also the files behind descriptors, with their paths
    Fds,
    /// Also all string arguments
    Full,
}

/// Handling of the bytes that calls read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ContentArg {
    /// Nothing; the bytes are not read
    None,
    /// A hash of the bytes (XXH64)
    Hash,
    /// The first bytes, including any passwords and keys
    Plain,
}

/// Where to hash the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HashInArg {
    /// In the kernel, before the call returns
    Kernel,
    /// In the recorder; all content is sent through the rings
    User,
}

/// How to record calls of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LibraryByArg {
    /// The kernel stops the program at each call: about 2 µs; also in programs that run already
    Uprobe,
    /// A library of fathom's that the command loads (LD_PRELOAD): about 0.1 µs; not in statically
    /// linked or setuid programs
    Preload,
}

/// Rows of library calls at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryBudgetArg {
    /// Of one function in a second.
    Calls(u64),
    /// All.
    Off,
}

/// Options of `record`.
#[derive(Debug, Args)]
#[command(
    after_help = "While the command runs, fathom passes signals on to it; Ctrl-C reaches it through \
the terminal. SIGUSR1 saves a snapshot (see snapshot). A second signal, or one sent when only the \
command's descendants are left, ends the recording."
)]
pub struct RecordArgs {
    /// Directory of the session [default: NAME-DATE-TIME.fathom]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an existing session, and an existing capture of --raw
    #[arg(long)]
    pub force: bool,
    /// With --pid: also record the children that the process forks
    #[arg(long, requires = "pid")]
    pub children: bool,
    /// Record everything on this machine except fathom itself
    #[arg(long, conflicts_with = "command")]
    pub all: bool,
    /// Calls and operations to record.
    #[arg(long, value_name = "LIST", default_value = "storage", help = help::syscalls())]
    pub syscalls: Vec<String>,
    /// Layers to record.
    #[arg(long, value_name = "LIST", help = help::layers())]
    pub layers: Vec<String>,
    /// How much to read per call
    #[arg(long, value_enum, default_value = "full")]
    pub detail: DetailArg,
    /// Content to store per call
    #[arg(long, value_enum, default_value = "none")]
    pub content: ContentArg,
    /// Where to hash, with --content hash [default: kernel]
    #[arg(long, value_enum)]
    pub hash_in: Option<HashInArg>,
    /// With --content: the most bytes to read per call; up to 4M for hash, 16K for plain [default:
    /// 1M, 256]
    #[arg(long, value_name = "BYTES", value_parser = content_bytes)]
    pub content_max: Option<u32>,
    /// Requests of applications to record as spans.
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 0..=1,
          default_missing_value = "all", require_equals = false, help = help::spans())]
    pub spans: Vec<String>,
    /// With --spans: leave out connections that OpenSSL or GnuTLS encrypts, whose calls cost about 12 µs
    /// more, and half of that in programs that are not recorded
    #[arg(long, requires = "spans")]
    pub no_tls: bool,
    /// Record the call stack of each call: functions, and source lines where debug information
    /// exists. Costs more than all other options together
    #[arg(long)]
    pub stacks: bool,
    /// Spans between static probes.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = help::usdt())]
    pub usdt: Vec<String>,
    /// The span in which each call was made, as an OpenTelemetry SDK publishes it in the thread (OTEP
    /// 4947)
    #[arg(long)]
    pub otel_context: bool,
    /// Calls of libraries to record.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help = help::library())]
    pub library: Vec<String>,
    /// How to record calls of --library [default: uprobe]
    #[arg(long, value_enum, requires = "library")]
    pub library_by: Option<LibraryByArg>,
    /// Calls of one function of --library in a second, by all processes, above which its further
    /// calls are counted instead of getting a row each; off: all get a row [default: 100000]
    #[arg(long, value_name = "CALLS", requires = "library", value_parser = library_budget)]
    pub library_budget: Option<LibraryBudgetArg>,
    /// Functions of the kernel whose time is a part of each call: NAME (of layer fs) or NAME:LAYER,
    /// up to 8
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub function: Vec<String>,
    /// perf counters to read per call.
    #[arg(long, value_name = "LIST", help = help::counters())]
    pub counters: Vec<String>,
    /// Stop recording after TIME (10, 1.5s, 15m); the command keeps running
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Memory of the ring per CPU, MiB
    #[arg(long, value_name = "MIB", default_value_t = 32,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ring_mib: u32,
    /// Label the session, for later: job=17; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Run the command as this user, in the user's environment; it cannot type into this terminal
    #[arg(long, value_name = "NAME", requires = "command")]
    pub user: Option<String>,
    /// With --user: pass fathom's whole environment to the command, including secrets
    #[arg(long, requires = "user")]
    pub preserve_env: bool,
    /// Also write the kernel's raw records to FILE, for `fathom replay`
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Read access to the session and the file of --raw, besides the owner.
    #[command(flatten)]
    pub share: ShareOption,
    /// Run the diagnosis while recording and print each finding as soon as it holds; see diagnose
    #[arg(long)]
    pub diagnose: bool,
    /// Begin when the process at standard input says so
    #[arg(long, hide = true)]
    pub held: bool,
    /// Print no status line and no summary
    #[arg(short, long)]
    pub quiet: bool,
    /// Command to record, with its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "pid", required_unless_present_any =
          ["pid", "all", "tid", "comm", "uid", "cgroup", "container", "unit", "pod",
           "namespace"])]
    pub command: Vec<OsString>,
    /// Rings, saves, durability.
    #[command(flatten)]
    pub keep: KeepOptions,
    /// Claims of volumes.
    #[command(flatten)]
    pub kubernetes: KubernetesOptions,
    /// The page.
    #[cfg(feature = "analysis")]
    #[command(flatten)]
    pub page: RecordUiOptions,
    /// Several hosts.
    #[cfg(feature = "analysis")]
    #[command(flatten)]
    pub on: OnOptions,
    /// The user's own rules, for the findings at the end, and panels of the page.
    #[cfg(feature = "analysis")]
    #[command(flatten)]
    pub extensions: ExtensionsOption,
    /// Which tasks, files, and calls. Last, because its heading applies to every option after it.
    #[command(flatten)]
    pub filter: FilterOptions,
}

fn library_budget(text: &str) -> Result<LibraryBudgetArg, String> {
    match text.parse() {
        _ if text == "off" => Ok(LibraryBudgetArg::Off),
        Ok(calls) if calls > 0 => Ok(LibraryBudgetArg::Calls(calls)),
        _ => Err("not a number of calls per second above 0, and not off".to_string()),
    }
}

fn content_bytes(text: &str) -> Result<u32, String> {
    match u32::try_from(units::parse_bytes(text)?) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("not between 1 and 4GiB".to_string()),
    }
}

/// A label: the key is a word, the value any text.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("not KEY=VALUE")?;
    let word = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    if key.is_empty() || key.len() > 64 || !key.chars().all(word) {
        return Err(
            "the key must consist of 1 to 64 letters, digits, '.', '_', '-', '/'".to_string(),
        );
    }
    if value.len() > 1024 {
        return Err("the value has more than 1024 bytes".to_string());
    }
    Ok((key.to_string(), value.to_string()))
}

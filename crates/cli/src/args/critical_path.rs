//! Options of `critical-path`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::id::{Id, id};
use crate::help;

/// Options of `critical-path`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("of").required(true).args(["request", "thread"]),
    after_help = help::TIMES.to_owned() + "

The path goes from each wait to the thread or device that ended it. Its segments are contiguous and
add up to the interval. JSON also has the ids and times of each segment (column names as in tables
waits and block); its times add up to dur_ns, to the nanosecond."
)]
pub struct CriticalPathArgs {
    /// Directory of the session, or a set of sessions
    pub session: PathBuf,
    /// From the begin of this request to its end; in a set: HOST:RID
    #[arg(long, value_name = "RID", value_parser = id, conflicts_with_all = ["from", "until"])]
    pub request: Option<Id>,
    /// In the recorded time of this thread, or in the window; in a set: HOST:TID
    #[arg(long, value_name = "TID", value_parser = id)]
    pub thread: Option<Id>,
    /// Start of the window [default: the start of the thread or the recording]
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// End of the window [default: the end of the thread or the recording]
    #[arg(long, visible_alias = "to", value_name = "TIME")]
    pub until: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    pub format: CriticalPathFormat,
}

/// Form of a path.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CriticalPathFormat {
    /// For a terminal: the longest segments, and sums
    Text,
    /// For programs: all segments
    Json,
}

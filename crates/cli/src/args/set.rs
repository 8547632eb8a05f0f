//! Options of `set`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::SessionsFormat;

/// Options of `set`.
#[derive(Debug, Args)]
#[command(
    after_help = "Times are shown on the clock of the first session. TCP messages between the hosts relate \
the clocks, with a bound of the error: record every host with --syscalls all. Without such messages \
the wall clocks have to do.

  fathom set web.fathom db.fathom -o site.fset
  fathom set site.fset
  fathom query site.fset \"SELECT host, count(*) FROM syscalls GROUP BY host\""
)]
pub struct SetArgs {
    /// Directories of sessions, the reference first; NAME=DIR names a session, which otherwise has the
    /// name of its host or, where others have the same host, of its directory. Or one set, to show it
    #[arg(value_name = "[NAME=]DIR", required = true)]
    pub sessions: Vec<OsString>,
    /// File of the set. The sessions stay where they are
    #[arg(short, long, value_name = "FILE.fset")]
    pub output: Option<PathBuf>,
    /// Replace an existing set
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: SessionsFormat,
}

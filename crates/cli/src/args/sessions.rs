//! Options of `sessions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Directory with sessions, or one session
    #[arg(value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: SessionsFormat,
}

/// Format of the list.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SessionsFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
}

//! Options of `top`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fathom_top::{Column, Dimension};

use super::{FilterOptions, seconds};
use crate::help;

/// By what is added up.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TopByArg {
    /// By file
    Files,
    /// By process
    Processes,
    /// By thread
    Threads,
    /// By system call or operation
    Calls,
    /// Where the time went
    Layers,
    /// By device that requests went to
    Devices,
}

impl From<TopByArg> for Dimension {
    fn from(by: TopByArg) -> Self {
        match by {
            TopByArg::Files => Dimension::Files,
            TopByArg::Processes => Dimension::Processes,
            TopByArg::Threads => Dimension::Threads,
            TopByArg::Calls => Dimension::Calls,
            TopByArg::Layers => Dimension::Layers,
            TopByArg::Devices => Dimension::Devices,
        }
    }
}

/// How frames are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TopFormat {
    /// Tables
    Text,
    /// Raw numbers of all dimensions, a frame a line
    Json,
}

/// Options of `top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without a filter everything on this machine is shown, fathom apart. \
Press ? for the keys. Where standard output is no terminal, or with --format, frames are written as \
text."
)]
pub struct TopArgs {
    /// What to show first
    #[arg(long, value_enum, default_value = "files")]
    pub by: TopByArg,
    /// Column to sort by.
    #[arg(long, value_name = "COLUMN", default_value = "time", value_parser = column,
          help = help::sort())]
    pub sort: Column,
    /// Numbers since the start, not of the last interval
    #[arg(long)]
    pub since_start: bool,
    /// Only names with TEXT in them
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Time between frames (0.5, 250ms, 1m)
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// End after so many frames
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Write frames to standard output
    #[arg(long, value_enum)]
    pub format: Option<TopFormat>,
    /// Lines of a frame that is written as text
    #[arg(long, value_name = "LINES", default_value_t = 20)]
    pub lines: usize,
    /// Calls to look at, as for record
    #[arg(long, value_name = "LIST", default_value = "storage")]
    pub syscalls: Vec<String>,
    /// Layers to look at, as for record; `syscall` alone costs the least
    #[arg(long, value_name = "LIST")]
    pub layers: Vec<String>,
    /// Memory of the ring of each CPU, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ring_mib: u32,
    /// Which tasks, files and calls. Last, as its heading would go on.
    #[command(flatten)]
    pub filter: FilterOptions,
}

fn column(text: &str) -> Result<Column, String> {
    Column::ALL
        .into_iter()
        .find(|column| column.option() == text)
        .ok_or_else(|| {
            let names: Vec<&str> = Column::ALL.iter().map(|c| c.option()).collect();
            format!("no column is called that; there are {}", names.join(", "))
        })
}

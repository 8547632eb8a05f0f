//! Options of `top`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use fathom_top::{Column, Dimension};

use super::{FilterOptions, seconds};
use crate::help;

/// The key of the sums.
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
    /// By layer
    Layers,
    /// By device
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

/// Format of frames.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TopFormat {
    /// Tables
    Text,
    /// Raw numbers of all dimensions, one frame per line
    Json,
}

/// Options of `top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without filters, top shows everything on this machine except fathom itself. \
Press ? for the keys. If standard output is not a terminal, or with --format, top writes frames \
as text."
)]
pub struct TopArgs {
    /// First view
    #[arg(long, value_enum, default_value = "files")]
    pub by: TopByArg,
    /// Column to sort by.
    #[arg(long, value_name = "COLUMN", default_value = "time", value_parser = column,
          help = help::sort())]
    pub sort: Column,
    /// Show numbers since the start instead of the last interval
    #[arg(long)]
    pub since_start: bool,
    /// Show only names that contain TEXT
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Time between frames (0.5, 250ms, 1m)
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub interval: Duration,
    /// Exit after this many frames
    #[arg(short = 'n', long, value_name = "FRAMES", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Write frames to standard output
    #[arg(long, value_enum)]
    pub format: Option<TopFormat>,
    /// Lines per text frame
    #[arg(long, value_name = "LINES", default_value_t = 20)]
    pub lines: usize,
    /// Calls to record, as for record
    #[arg(long, value_name = "LIST", default_value = "storage")]
    pub syscalls: Vec<String>,
    /// Layers to record, as for record; `syscall` alone costs the least
    #[arg(long, value_name = "LIST")]
    pub layers: Vec<String>,
    /// Memory of the ring per CPU, MiB
    #[arg(long, value_name = "MIB", default_value_t = 16,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ring_mib: u32,
    /// Which tasks, files, and calls. Last, because its heading applies to every option after it.
    #[command(flatten)]
    pub filter: FilterOptions,
}

fn column(text: &str) -> Result<Column, String> {
    Column::ALL
        .into_iter()
        .find(|column| column.option() == text)
        .ok_or_else(|| {
            let names: Vec<&str> = Column::ALL.iter().map(|c| c.option()).collect();
            format!("not a column; choose from {}", names.join(", "))
        })
}

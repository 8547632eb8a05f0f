//! Command line.

use std::path::PathBuf;

use clap::Parser;

use crate::tracer::{ALL, Tracer};
use crate::workload::Workload;

/// Measures what recording costs, as ratios within one run.
#[derive(Clone, Debug, Parser)]
#[command(name = "fathom-bench", version)]
pub struct Options {
    /// Only these workloads: pread, open, fileserver, disk, redis, pgbench, rocksdb.
    #[arg(long, value_delimiter = ',', value_parser = workload)]
    pub only: Vec<Workload>,
    /// Only these tracers besides `none` and `floor`, by the beginning of their
    /// names: fathom, strace, "perf trace", bpftrace; and filter: fathom with filters
    /// that leave everything out, which runs only when it is named.
    #[arg(long, value_delimiter = ',')]
    pub tracers: Vec<String>,
    /// Repetitions of each; medians are taken over them.
    #[arg(long)]
    pub reps: Option<usize>,
    /// Threads of the loops.
    #[arg(long, default_value_t = 1)]
    pub threads: u32,
    /// Binds the loops' threads to processors, from this one on.
    #[arg(long)]
    pub pin: Option<u32>,
    /// Calls of each of these threads; default: two million of the pread loop.
    #[arg(long)]
    pub calls: Option<u64>,
    /// Also asks the kernel how long programs run (column `prog ns`: all programs of a
    /// tracer, a call). The kernel's clock makes every call slower then.
    #[arg(long)]
    pub programs: bool,
    /// Little work, one repetition: shows that everything runs, measures nothing.
    #[arg(long)]
    pub quick: bool,
    /// Writes all samples and medians there, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Directory for the files that the workloads use; default: the system's
    /// temporary directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The fathom to measure; default: the one built with this program.
    #[arg(long, value_name = "FILE")]
    pub fathom: Option<PathBuf>,
}

fn workload(name: &str) -> Result<Workload, String> {
    let found = Workload::ALL.into_iter().find(|w| w.name() == name);
    found.ok_or_else(|| {
        let names = Workload::ALL.map(Workload::name);
        format!("not one of {}", names.join(", "))
    })
}

impl Options {
    /// Workloads to run.
    pub fn workloads(&self) -> Vec<Workload> {
        if self.only.is_empty() {
            Workload::ALL.to_vec()
        } else {
            self.only.clone()
        }
    }

    /// Tracers to measure; the ones that all others are compared with always.
    pub fn tracers(&self) -> Vec<Tracer> {
        let chosen = |t: &Tracer| {
            self.tracers.is_empty() && !matches!(t, Tracer::Filter(..))
                || matches!(t, Tracer::None | Tracer::Floor)
                || self
                    .tracers
                    .iter()
                    .any(|name| t.name().starts_with(name.as_str()))
        };
        ALL.iter().copied().filter(chosen).collect()
    }

    /// How often each is run.
    pub fn repetitions(&self) -> usize {
        self.reps.unwrap_or(if self.quick { 1 } else { 7 }).max(1)
    }
}

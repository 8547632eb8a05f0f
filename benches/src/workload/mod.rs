//! What is measured.

mod fio;
mod loops;
pub mod postgres;
mod redis;
mod rocksdb;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::floor::Floor;
use crate::options::Options;
use crate::process::{Running, Usage};
use crate::programs::Programs;
use crate::session::Recorded;
use crate::tracer::{Tracer, find};

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// A loop of cached preads of 4 KiB.
    Pread,
    /// A loop of open, fstat, read of 4 KiB, close.
    Open,
    /// fio with the mix of a file server on two jobs.
    FileServer,
    /// fio, random reads and writes that wait for the disk.
    Disk,
    /// redis-benchmark against a server that appends to a file.
    Redis,
    /// pgbench against PostgreSQL, which waits for its log.
    Postgres,
    /// db_bench of RocksDB.
    RocksDb,
}

impl Workload {
    /// All, in the order in which they run.
    pub const ALL: [Workload; 7] = [
        Workload::Pread,
        Workload::Open,
        Workload::FileServer,
        Workload::Disk,
        Workload::Redis,
        Workload::Postgres,
        Workload::RocksDb,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Pread => "pread",
            Workload::Open => "open",
            Workload::FileServer => "fileserver",
            Workload::Disk => "disk",
            Workload::Redis => "redis",
            Workload::Postgres => "pgbench",
            Workload::RocksDb => "rocksdb",
        }
    }

    /// Why it cannot run here; `None` when it can.
    pub fn missing(self) -> Option<&'static str> {
        match self {
            Workload::Postgres if postgres::programs().is_none() => {
                Some("PostgreSQL (package postgresql) is not installed")
            }
            Workload::RocksDb if find("db_bench").is_none() => {
                Some("db_bench (package rocksdb-tools) is not installed")
            }
            _ => None,
        }
    }

    /// What one operation is.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Pread | Workload::Open => "calls/s a thread",
            Workload::FileServer | Workload::Disk => "reads and writes/s",
            Workload::Redis => "requests/s",
            Workload::Postgres => "transactions/s",
            Workload::RocksDb => "operations/s",
        }
    }

    /// Whether an operation is one call, so that nanoseconds a call mean
    /// something.
    pub fn counts_calls(self) -> bool {
        matches!(self, Workload::Pread | Workload::Open)
    }
}

/// What one run gave.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Operations a second.
    pub rate: f64,
    /// Processor time of the traced thread in nanoseconds a call, of the loops:
    /// what others do on the machine does not enter it.
    pub cpu_ns_per_call: Option<f64>,
    /// Nanoseconds that the tracer's programs in the kernel took a call, as the kernel
    /// counts them.
    pub programs_ns_per_call: Option<f64>,
    /// Calls that the program says it made, where it counts them.
    pub made: Option<u64>,
    /// The same calls as fathom counted them, rows and losses together.
    pub counted: Option<u64>,
    /// Events stored or counted by the tracer.
    pub events: Option<u64>,
    /// Events lost.
    pub lost: Option<u64>,
    /// Bytes that the tracer left on disk.
    pub disk_bytes: Option<u64>,
    /// Processor time of the tracer's own process.
    pub recorder_cpu_ns: Option<u64>,
    /// Peak of its resident memory.
    pub recorder_peak_bytes: Option<u64>,
    /// What fathom says of itself.
    pub session: Option<Recorded>,
}

/// What a workload measured in one run, before the tracer's side is known.
pub struct Measured {
    /// Operations a second.
    pub rate: f64,
    /// Processor time of the traced thread in nanoseconds a call.
    pub cpu_ns_per_call: Option<f64>,
    /// Calls that the program says it made.
    pub made: Option<u64>,
    /// What the process that was started used: the tracer, if there is one.
    pub usage: Usage,
}

/// What all runs share.
pub struct Bench {
    options: Options,
    fathom: PathBuf,
    root: tempfile::TempDir,
    /// Calls that a loop makes besides those it counts, by workload.
    startup: RefCell<BTreeMap<Workload, u64>>,
}

impl Bench {
    /// Prepares directories and files.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn new(options: &Options) -> Result<Bench> {
        let fathom = match &options.fathom {
            Some(path) => {
                std::fs::canonicalize(path).with_context(|| path.display().to_string())?
            }
            None => std::env::current_exe()?.with_file_name("fathom"),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix("fathom-bench-");
        let root = match &options.dir {
            Some(dir) => builder.tempdir_in(dir),
            None => builder.tempdir(),
        }
        .context("directory of the workloads")?;
        let bench = Bench {
            options: options.clone(),
            fathom,
            root,
            startup: RefCell::default(),
        };
        loops::prepare(&bench)?;
        Ok(bench)
    }

    /// The fathom that is measured.
    pub fn fathom(&self) -> PathBuf {
        self.fathom.clone()
    }

    /// Options of this run.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Files that stay from run to run.
    pub fn shared(&self) -> &Path {
        self.root.path()
    }

    /// Tells somebody at a terminal what is going on.
    pub fn note(&self, text: &str) {
        let mut err = std::io::stderr();
        if err.is_terminal() {
            // Not worth failing for.
            let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
        }
    }

    /// Runs a workload once.
    ///
    /// # Errors
    /// When the workload or the tracer fails.
    pub fn run(&self, workload: Workload, tracer: Tracer) -> Result<Sample> {
        let dir = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(self.root.path())?;
        let watched = self.options.programs && tracer != Tracer::None;
        let programs = watched.then(Programs::watch).transpose()?;
        let floor = tracer.probes().map(Floor::attach).transpose()?;
        let run = Run {
            bench: self,
            tracer,
            dir: dir.path(),
            floor: floor.as_ref(),
        };
        let measured = match workload {
            Workload::Pread | Workload::Open => loops::run(&run, workload)?,
            Workload::FileServer => fio::run(&run, fio::FILE_SERVER)?,
            Workload::Disk => fio::run(&run, fio::DISK)?,
            Workload::Redis => redis::run(&run)?,
            Workload::Postgres => postgres::run(&run)?,
            Workload::RocksDb => rocksdb::run(&run)?,
        };
        // The floor's are still there; others went with their tracer.
        let programs_ns_per_call = match programs {
            Some(programs) => programs.ns_per_call()?,
            None => None,
        };
        let counted = match tracer {
            Tracer::Fathom(_) => loops::counted(&run, workload)?,
            _ => None,
        };
        let mut stored = tracer.stored(dir.path())?;
        let mut usage = Some(measured.usage);
        if let Some(floor) = floor {
            let counts = floor.finish()?;
            if tracer == Tracer::Floor {
                stored.events = Some(counts.drained);
                stored.lost = Some(counts.dropped);
            }
        }
        if !tracer.is_fathom() && !tracer.is_other() {
            usage = None;
        }
        Ok(Sample {
            rate: measured.rate,
            cpu_ns_per_call: measured.cpu_ns_per_call,
            programs_ns_per_call,
            made: measured.made,
            counted,
            events: stored.events,
            lost: stored.lost,
            disk_bytes: stored.bytes,
            recorder_cpu_ns: usage.map(|u| u.cpu_ns),
            recorder_peak_bytes: usage.map(|u| u.peak_bytes),
            session: stored.session,
        })
    }
}

/// One run of a workload under a tracer.
pub struct Run<'a> {
    /// What all runs share.
    pub bench: &'a Bench,
    /// What it runs under.
    pub tracer: Tracer,
    /// Its own directory, removed afterwards.
    pub dir: &'a Path,
    floor: Option<&'a Floor>,
}

impl Run<'_> {
    /// Starts a program under the tracer.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, command: &[OsString], env: &[(&str, OsString)]) -> Result<Running> {
        match self.floor {
            // The probes have to know the process before it makes its calls.
            Some(floor) => {
                let mut running = Running::start_gated(command, self.dir, env)?;
                floor.record(running.pid())?;
                running.open_gate()?;
                Ok(running)
            }
            None => {
                let line = self.tracer.wrap(self.bench, self.dir, command);
                Running::start(&line, self.dir, env)
            }
        }
    }

    /// A fixed amount of work, less for what slows it by orders of magnitude
    /// and when the run is only to show that it works.
    pub fn amount(&self, full: u64) -> u64 {
        let quick = if self.bench.options.quick { 50 } else { 1 };
        (full / self.tracer.divisor() / quick).max(1)
    }
}

/// Arguments of any kind as one command line.
pub fn words<const N: usize>(words: [&dyn AsRef<std::ffi::OsStr>; N]) -> Vec<OsString> {
    words.iter().map(|w| w.as_ref().to_owned()).collect()
}

//! Errors between fathom and the kernel.

use std::io;

use crate::kernel_functions::KernelFunctionError;
use crate::preload_error::PreloadError;
use crate::wanted_functions::LibraryError;

/// An error of the kernel side. Each says what happened and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A function of a library that is not there.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// Functions that cannot be recorded by preload.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// A function of the kernel that is not there.
    #[error(transparent)]
    Function(#[from] KernelFunctionError),
    /// The kernel has no description of its own types.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux): fathom needs a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y, 5.8 or newer; run `fathom doctor` for details"
    )]
    NoBtf,
    /// The kernel's type information cannot be read, or not copied.
    #[error("the kernel's type information ({at}): {source}")]
    Types {
        at: String,
        #[source]
        source: std::io::Error,
    },
    /// None of the builds of the programs is for this kernel.
    #[error(
        "fathom has no eBPF programs for this kernel: it needs Linux 5.8 or newer on x86-64, 5.17 \
         or newer elsewhere; run `fathom doctor` for details"
    )]
    NoPrograms,
    /// The programs for this kernel cannot read the content of calls.
    #[error(
        "--content needs Linux 5.17 or newer: the programs for this kernel cannot read the \
         content of calls; record without it"
    )]
    NoContent,
    /// The same for the beginnings of messages on sockets.
    #[error(
        "--spans needs Linux 5.17 or newer: the programs for this kernel cannot read the bytes \
         that calls move; record without it"
    )]
    NoSpans,
    /// The same for the span contexts of threads.
    #[error(
        "--otel-context needs Linux 5.17 or newer: the programs for this kernel cannot read the \
         contexts of threads; record without it"
    )]
    NoContexts,
    /// The same for calls of libraries.
    #[error(
        "--library needs Linux 5.17 or newer: the programs for this kernel cannot attach to \
         libraries; record a command with --library-by preload, or without --library"
    )]
    NoLibrary,
    /// The same for static probes.
    #[error(
        "--usdt needs Linux 5.17 or newer: the programs for this kernel cannot attach to static \
         probes; record without it"
    )]
    NoUsdt,
    /// An attach point that every recording needs does not exist.
    #[error(
        "this kernel has no {0}, which fathom needs to record; run `fathom doctor` to check \
         what this kernel supports"
    )]
    NoHook(String),
    /// A filter that the programs for this kernel do not support.
    #[error("{0} needs Linux 5.17 or newer: record without it, and filter the session with SQL")]
    NoFilter(&'static str),
    /// Not allowed to load programs.
    #[error("{0}")]
    Privilege(#[from] crate::Privilege),
    /// A program or a map was refused.
    #[error(
        "the kernel refused {what}: {source}; run `fathom doctor` to check what this kernel supports"
    )]
    Refused {
        /// The program or map.
        what: String,
        /// The error of libbpf.
        source: libbpf_rs::Error,
    },
    /// The built-in object lacks a program or map.
    #[error("the built-in eBPF object has no {0}: this is a defect of fathom")]
    Object(&'static str),
    /// Mapping the rings failed.
    #[error("cannot map {what} ({bytes} bytes): {source}; try a smaller --ring-mib")]
    Map {
        /// The ring.
        what: &'static str,
        /// Its size.
        bytes: usize,
        source: io::Error,
    },
    /// A process to record does not exist.
    #[error("{}", no_process(*pid, cause))]
    NoProcess { pid: u32, cause: io::Error },
    /// The recorder was asked to record itself.
    #[error("process {0} is fathom itself, which is never recorded; choose another process")]
    Itself(u32),
}

fn no_process(pid: u32, cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no process {pid}; `ps -e` lists the processes")
        }
        _ => format!("cannot record process {pid}: {cause}"),
    }
}

/// Why the command did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The user of `--user` does not exist.
    #[error("--user: no user named '{0}'; `getent passwd` lists users")]
    NoUser(String),
    /// The program does not exist.
    #[error("{0}: command not found")]
    NotFound(String),
    /// The program cannot be executed.
    #[error("{program}: {source}")]
    NotExecutable { program: String, source: io::Error },
    /// The command could type into the terminal that it shares with fathom.
    #[error(
        "--user: cannot keep the command from typing into this terminal: {0}; run fathom as root \
         with all capabilities, on a kernel with CONFIG_SECCOMP_FILTER"
    )]
    NoFilter(io::Error),
    /// A system call failed.
    #[error("cannot start {program}: {source}")]
    System { program: String, source: io::Error },
    /// The kernel side refused the command.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

impl SpawnError {
    /// Exit status for it, as shells and env(1) use: 127 not found, 126 not
    /// executable, 125 for a failure of fathom.
    pub fn exit_status(&self) -> i32 {
        match self {
            SpawnError::NotFound(_) => 127,
            SpawnError::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}

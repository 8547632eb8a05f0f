//! What can go wrong between fathom and the kernel.

use std::io;

/// An error of the kernel side. Each says what happened and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel has no description of its own types.
    #[error(
        "this kernel has no BTF (/sys/kernel/btf/vmlinux): fathom needs a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y, 5.8 or newer; run `fathom doctor` for details"
    )]
    NoBtf,
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
    /// A place that nothing can be recorded without does not exist.
    #[error(
        "this kernel has no {0}, without which nothing can be recorded; run `fathom doctor` for \
         what this kernel offers"
    )]
    NoHook(String),
    /// A filter that the programs for this kernel cannot serve.
    #[error(
        "{0} needs Linux 5.17 or newer: leave it out, and choose from what was recorded with SQL"
    )]
    NoFilter(&'static str),
    /// Not allowed to load programs.
    #[error("{0}")]
    Privilege(#[from] crate::Privilege),
    /// A program or a map was refused.
    #[error("the kernel refused {what}: {source}; run `fathom doctor` for what this kernel offers")]
    Refused {
        /// What was refused.
        what: String,
        /// Why, as libbpf says it.
        source: libbpf_rs::Error,
    },
    /// The object that was built in does not have what is expected of it.
    #[error("the built-in eBPF object has no {0}: this is a defect of fathom")]
    Object(&'static str),
    /// Mapping the rings failed.
    #[error("can't map {what} ({bytes} bytes): {source}; try a smaller --ring-mib")]
    Map {
        /// What was to be mapped.
        what: &'static str,
        /// Its size.
        bytes: usize,
        source: io::Error,
    },
    /// A process to be recorded is not there.
    #[error("can't record process {pid}: {source}")]
    NoProcess { pid: u32, source: io::Error },
    /// The recorder is to record itself.
    #[error("process {0} is fathom itself, which it does not record")]
    Itself(u32),
}

/// Why the command did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// `--user` names nobody.
    #[error("--user: no user named '{0}'")]
    NoUser(String),
    /// The program does not exist.
    #[error("{0}: command not found")]
    NotFound(String),
    /// The program cannot be executed.
    #[error("{program}: {source}")]
    NotExecutable { program: String, source: io::Error },
    /// The command could type into the terminal that it shares with whoever started fathom.
    #[error(
        "--user: cannot keep the command from typing into this terminal: {0}; run fathom as root \
         with all capabilities, on a kernel with CONFIG_SECCOMP_FILTER"
    )]
    NoFilter(io::Error),
    /// The system did not give what is needed.
    #[error("can't start {program}: {source}")]
    System { program: String, source: io::Error },
    /// The kernel side did not take the command in.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

impl SpawnError {
    /// Exit status for it, as shells and env(1) use: 127 not found, 126 not
    /// executable, 125 for what is fathom's own failure.
    pub fn exit_status(&self) -> i32 {
        match self {
            SpawnError::NotFound(_) => 127,
            SpawnError::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}

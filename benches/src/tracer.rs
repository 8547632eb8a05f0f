//! What a workload runs under, and how much each tracer says it has seen.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use crate::floor::Kind;
use crate::session::{self, Recorded};
use crate::workload::Bench;

/// A way to run a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// Untraced.
    None,
    /// Empty probes.
    Bare,
    /// Empty probes that write one record a call.
    Floor,
    /// `fathom record` with this `--detail`.
    Fathom(&'static str),
    /// `fathom record` with further options.
    With(&'static str, &'static [&'static str]),
    /// `fathom record` with a filter that leaves every call of the loops out.
    Filter(&'static str, &'static [&'static str]),
    /// `strace -f` with further options.
    Strace(&'static str, &'static [&'static str]),
    /// `perf trace` with further options.
    Perf(&'static str, &'static [&'static str]),
    /// `bpftrace` with a program.
    Bpftrace(&'static str, &'static str),
}

/// All, in the order in which they run.
pub const ALL: &[Tracer] = &[
    Tracer::None,
    Tracer::Bare,
    Tracer::Floor,
    Tracer::Fathom("raw"),
    Tracer::Fathom("fds"),
    Tracer::Fathom("full"),
    Tracer::With("fathom --rows tail", &["--rows", "tail"]),
    Tracer::Filter("filter --syscalls fsync", &["--syscalls", "fsync"]),
    Tracer::Filter("filter --comm", &["--comm", "nobody"]),
    Tracer::Filter("filter --path", &["--path", "/nonexistent"]),
    Tracer::Filter("filter --file-type", &["--file-type", "block"]),
    Tracer::Filter("filter --errors-only", &["--errors-only"]),
    Tracer::Filter("filter --min-duration", &["--min-duration", "1s"]),
    Tracer::Strace("strace -f", &[]),
    Tracer::Strace("strace -f -ttt -T -yy", &["-ttt", "-T", "-yy"]),
    Tracer::Strace(
        "strace -f --seccomp-bpf",
        &["--seccomp-bpf", "-e", "trace=%file,%desc"],
    ),
    Tracer::Perf("perf trace", &[]),
    Tracer::Perf("perf trace -s", &["-s"]),
    Tracer::Bpftrace(
        "bpftrace count",
        "tracepoint:raw_syscalls:sys_exit /pid == cpid/ { @calls = count(); }",
    ),
    Tracer::Bpftrace(
        "bpftrace printf",
        "tracepoint:raw_syscalls:sys_exit /pid == cpid/ \
         { printf(\"%d %d %d\\n\", tid, args->id, args->ret); }",
    ),
];

/// What a tracer stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stored {
    /// Events that it stored or counted.
    pub events: Option<u64>,
    /// Events that it says it lost.
    pub lost: Option<u64>,
    /// Bytes on disk.
    pub bytes: Option<u64>,
    /// What fathom says of itself.
    pub session: Option<Recorded>,
}

/// perf and bpftrace read the kernel's list of tracepoints; where it is not
/// mounted they see it in a mount namespace of their own.
const IN_TRACEFS: [&str; 6] = [
    "unshare",
    "-m",
    "sh",
    "-c",
    "mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing; exec \"$@\"",
    "sh",
];

impl Tracer {
    /// Name in tables and on the command line.
    pub fn name(&self) -> String {
        match self {
            Tracer::None => "none".into(),
            Tracer::Bare => "empty probes".into(),
            Tracer::Floor => "floor".into(),
            Tracer::Fathom(detail) => format!("fathom {detail}"),
            Tracer::With(name, _)
            | Tracer::Filter(name, _)
            | Tracer::Strace(name, _)
            | Tracer::Perf(name, _)
            | Tracer::Bpftrace(name, _) => (*name).into(),
        }
    }

    /// Whether it is somebody else's program.
    pub fn is_other(&self) -> bool {
        matches!(
            self,
            Tracer::Strace(..) | Tracer::Perf(..) | Tracer::Bpftrace(..)
        )
    }

    /// Whether it is fathom.
    pub fn is_fathom(&self) -> bool {
        matches!(
            self,
            Tracer::Fathom(_) | Tracer::With(..) | Tracer::Filter(..)
        )
    }

    /// The probes that this program attaches itself.
    pub fn probes(&self) -> Option<Kind> {
        match self {
            Tracer::Bare => Some(Kind::Bare),
            Tracer::Floor => Some(Kind::Floor),
            _ => None,
        }
    }

    /// How much less of a fixed amount of work it is given, so that a run does
    /// not take minutes: it slows every call by microseconds.
    pub fn divisor(&self) -> u64 {
        match self {
            Tracer::Strace(..) | Tracer::Bpftrace("bpftrace printf", _) => 40,
            Tracer::Perf(..) => 100,
            _ => 1,
        }
    }

    /// Why it cannot run here; `None` when it can.
    pub fn missing(&self, bench: &Bench) -> Option<String> {
        let program = match self {
            Tracer::None | Tracer::Bare | Tracer::Floor => return None,
            Tracer::Fathom(_) | Tracer::With(..) | Tracer::Filter(..) => {
                let path = bench.fathom();
                return (!path.exists()).then(|| format!("{} does not exist", path.display()));
            }
            Tracer::Strace(..) => "strace",
            Tracer::Perf(..) => "perf",
            Tracer::Bpftrace(..) => "bpftrace",
        };
        find(program)
            .is_none()
            .then(|| format!("{program} is not installed"))
    }

    /// The command line that runs `command` under it, its files in `dir`.
    pub fn wrap(&self, bench: &Bench, dir: &Path, command: &[OsString]) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let out = dir.join("trace").into_os_string();
        let mut say = |words: &[&str]| line.extend(words.iter().map(OsString::from));
        match self {
            Tracer::None | Tracer::Bare | Tracer::Floor => {}
            Tracer::Fathom(detail) => {
                line.push(bench.fathom().into_os_string());
                line.extend(["record", "--detail", detail, "-o"].map(OsString::from));
                line.push(dir.join("session.fathom").into_os_string());
                line.push("--".into());
            }
            Tracer::With(_, options) | Tracer::Filter(_, options) => {
                line.push(bench.fathom().into_os_string());
                line.push("record".into());
                line.extend(options.iter().map(OsString::from));
                line.extend(["-o".into(), dir.join("session.fathom").into_os_string()]);
                line.push("--".into());
            }
            Tracer::Strace(_, options) => {
                say(&["strace", "-f"]);
                say(options);
                line.extend(["-o".into(), out]);
            }
            Tracer::Perf(_, options) => {
                say(&IN_TRACEFS);
                say(&["perf", "trace"]);
                say(options);
                line.extend(["-o".into(), out, "--".into()]);
            }
            Tracer::Bpftrace(_, program) => {
                say(&IN_TRACEFS);
                say(&["bpftrace", "-o"]);
                line.extend([out, "-e".into(), program.into(), "-c".into()]);
                // One word, which it splits at blanks itself; and a name that
                // is found in two places on the path is refused.
                let mut words: Vec<_> = command.iter().map(|w| w.to_string_lossy()).collect();
                let program = words.first().and_then(|name| find(name));
                if let (Some(path), Some(first)) = (program, words.first_mut()) {
                    *first = path.to_string_lossy().into_owned().into();
                }
                line.push(words.join(" ").into());
                return line;
            }
        }
        line.extend_from_slice(command);
        line
    }

    /// What it stored in `dir`.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub fn stored(&self, dir: &Path) -> Result<Stored> {
        match self {
            Tracer::None | Tracer::Bare | Tracer::Floor => Ok(Stored::default()),
            Tracer::Fathom(_) | Tracer::With(..) | Tracer::Filter(..) => {
                let session = dir.join("session.fathom");
                let totals = session::totals(&session)?;
                Ok(Stored {
                    events: Some(totals.stored),
                    lost: Some(totals.lost),
                    bytes: Some(session::disk_bytes(&session)?),
                    session: Some(totals.recorded),
                })
            }
            Tracer::Strace(..) | Tracer::Perf(..) | Tracer::Bpftrace(..) => {
                let text = fs::read(dir.join("trace"))?;
                let log = fs::read(dir.join("log")).unwrap_or_default();
                let (text, log) = (
                    String::from_utf8_lossy(&text),
                    String::from_utf8_lossy(&log),
                );
                Ok(Stored {
                    events: self.events(&text),
                    lost: (!matches!(self, Tracer::Strace(..)))
                        .then(|| lost(&text).saturating_add(lost(&log))),
                    bytes: Some(text.len() as u64),
                    session: None,
                })
            }
        }
    }

    fn events(&self, text: &str) -> Option<u64> {
        let lines = |with: &str| text.lines().filter(|l| l.contains(with)).count() as u64;
        match self {
            Tracer::Strace(..) => Some(lines(") = ").max(lines("= "))),
            Tracer::Perf(_, []) => Some(lines(") = ").max(lines("= "))),
            Tracer::Perf(..) => Some(summary_events(text)),
            Tracer::Bpftrace("bpftrace count", _) => {
                let number = text.lines().find_map(|l| l.trim().strip_prefix("@calls: "));
                number.and_then(|n| n.parse().ok())
            }
            Tracer::Bpftrace(..) => {
                let numbers = |l: &&str| l.split(' ').count() == 3 && !l.contains(':');
                Some(text.lines().filter(numbers).count() as u64)
            }
            _ => None,
        }
    }
}

/// Where a program is found on the path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
}

/// Sum over the threads of `perf trace -s`: ` loop (123), 2000 events, 99.9%`,
/// two events a call.
fn summary_events(text: &str) -> u64 {
    let events = |line: &str| -> Option<u64> {
        let (before, _) = line.split_once(" events,")?;
        before.rsplit(' ').next()?.parse().ok()
    };
    text.lines().filter_map(events).sum::<u64>() / 2
}

/// Sum of `LOST 12 events!` and `Lost 12 events`.
fn lost(text: &str) -> u64 {
    let mut sum: u64 = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("lost")
            && let Some(number) = words.peek().and_then(|n| n.parse::<u64>().ok())
        {
            sum = sum.saturating_add(number);
        }
    }
    sum
}

/// A number in an answer of fathom.
pub fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_others() {
        assert_eq!(lost("x\nLOST 12 events!\nLost 3 events\nlost nothing"), 15);
        assert_eq!(lost(""), 0);
    }

    #[test]
    fn events_of_a_summary() {
        let text = " loop (12), 2000 events, 90.0%\n\n loop (13), 10 events, 1.0%\n";
        assert_eq!(summary_events(text), 1005);
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(Tracer::name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}

//! Calls that have not returned, and operations of io_uring and AIO that have not completed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use fathom_model::abi::{IN_FLIGHT_OPERATION, IN_FLIGHT_SEEKABLE, InFlightRecord};
use fathom_model::syscalls::{Arg, SYSCALLS, Syscall};

/// A call that has not returned, or an operation that has not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When it began or was submitted, CLOCK_MONOTONIC nanoseconds.
    pub ts_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread that is in the call, or that submitted the operation.
    pub tid: u32,
    /// Name of the call or operation.
    pub syscall: &'static str,
    /// Of an operation: its file.
    pub operation: Option<Operation>,
}

/// The file of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Descriptor; `None` if it has none, or its file is registered with the ring.
    pub fd: Option<i32>,
    /// Whether the file has positions: it is no socket and no pipe.
    pub seekable: bool,
}

/// Where a thread is, as /proc shows it. Empty if it cannot be read: the thread may have
/// ended, or this kernel may not have the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// Name of the thread, escaped.
    pub comm: String,
    /// Link of the call's descriptor: a path, or `socket:[17]`; else the path that was passed.
    pub file: Option<PathBuf>,
    /// Functions of the kernel that it is in, innermost first.
    pub stack: Vec<String>,
}

/// Functions that every sleeping thread is in, at the top, and every call, at the bottom.
const EVERYWHERE: [&str; 9] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "schedule_timeout",
    "do_syscall_64",
    "x64_sys_call",
    "entry_SYSCALL_64_after_hwframe",
    "invoke_syscall",
    "el0_svc",
];

/// How often a thread that is said to run is looked at again, and when.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_millis(1);
/// Pages are not smaller, and paths not longer (PATH_MAX).
const PAGE: u64 = 4096;
const MAX_PATH: usize = 4096;

/// Functions of a stack that are given at most.
const MAX_FUNCTIONS: usize = 8;

impl InFlight {
    pub(crate) fn parse(bytes: &[u8]) -> Vec<Self> {
        let records = bytes.chunks_exact(InFlightRecord::SIZE);
        records
            .filter_map(InFlightRecord::parse)
            .filter_map(|record| {
                let has = |flag| record.flags & flag != 0;
                Some(Self {
                    ts_ns: record.ts_ns,
                    pid: record.pid,
                    tid: record.tid,
                    syscall: SYSCALLS.get(record.syscall as usize)?.name,
                    operation: has(IN_FLIGHT_OPERATION).then(|| Operation {
                        fd: (record.fd >= 0).then_some(record.fd),
                        seekable: has(IN_FLIGHT_SEEKABLE),
                    }),
                })
            })
            .collect()
    }

    /// Where its thread is now. Of an operation only the file and the name of the thread: the
    /// thread that submitted it does something else.
    pub fn whereabouts(&self) -> Whereabouts {
        let task = format!("/proc/{}/task/{}", self.pid, self.tid);
        let text = |name: &str| fs::read(format!("{task}/{name}")).unwrap_or_default();
        let comm = text("comm");
        let comm = fathom_model::bytes::escape_invalid_utf8(comm.trim_ascii_end()).into_owned();
        let link = |fd: i32| fs::read_link(format!("{task}/fd/{fd}")).ok();
        if let Some(operation) = self.operation {
            return Whereabouts {
                comm,
                file: operation.fd.and_then(link),
                stack: vec![],
            };
        }
        // It says `running` of a thread that was woken a moment ago, also if it sleeps on.
        let mut syscall = text("syscall");
        for _ in 0..LOOKS {
            if syscall.starts_with(b"running") {
                std::thread::sleep(PAUSE);
                syscall = text("syscall");
            }
        }
        let syscall = String::from_utf8_lossy(&syscall);
        Whereabouts {
            comm,
            file: match self.argument(&syscall, Arg::Fd) {
                Some(fd) => link(fd as i32),
                None => {
                    let address = self.argument(&syscall, Arg::Path);
                    address.and_then(|at| text_at(&format!("{task}/mem"), at))
                }
            },
            stack: functions(&String::from_utf8_lossy(&text("stack"))),
        }
    }

    /// An argument of the call, of the file `syscall`: `74 0x3 0x0 ...`.
    fn argument(&self, syscall: &str, role: Arg) -> Option<u64> {
        let call = Syscall::named(self.syscall.as_bytes())?;
        let mut words = syscall.split(' ');
        let number = words.next()?.parse().ok();
        // By now the thread may be in another call.
        if call.number() != number {
            return None;
        }
        let word = words.nth(call.position(role)?)?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    }
}

/// The path at an address of a process. It is read page by page, because the page behind its end
/// may not be there.
fn text_at(mem: &str, address: u64) -> Option<PathBuf> {
    let file = fs::File::open(mem).ok()?;
    let mut path = Vec::new();
    while path.len() < MAX_PATH {
        let at = address.checked_add(path.len() as u64)?;
        let mut bytes = vec![0; (PAGE - at % PAGE) as usize];
        let read = file.read_at(&mut bytes, at).ok().filter(|read| *read > 0)?;
        bytes.truncate(read);
        let end = bytes.iter().position(|byte| *byte == 0);
        path.extend_from_slice(bytes.get(..end.unwrap_or(read))?);
        if end.is_some() {
            return Some(OsString::from_vec(path).into());
        }
    }
    None
}

/// The functions of a file `stack`: lines such as `[<0>] folio_wait_bit_common+0x13c/0x2f0`.
fn functions(stack: &str) -> Vec<String> {
    let names = stack.lines().filter_map(|line| {
        let (_, place) = line.split_once("] ")?;
        Some(place.split_once('+').map_or(place, |(name, _)| name))
    });
    let names = names.filter(|name| !EVERYWHERE.contains(name));
    names.take(MAX_FUNCTIONS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_those_of_every_call() {
        let stack = "[<0>] io_schedule+0x46/0x70\n[<0>] folio_wait_bit_common+0x13c/0x2f0\n\
                     [<0>] filemap_fdatawait_range+0x9/0x20\n[<0>] do_syscall_64+0x5d/0x90\n";
        assert_eq!(
            functions(stack),
            ["folio_wait_bit_common", "filemap_fdatawait_range"]
        );
        assert!(functions("").is_empty());
    }

    #[test]
    fn arguments_are_those_of_the_call() {
        let of = |syscall, file: &str, role| {
            let call = InFlight {
                ts_ns: 1,
                pid: 2,
                tid: 3,
                syscall,
                operation: None,
            };
            let file = file.replace(
                "NUMBER",
                &Syscall::named(b"fsync")
                    .unwrap()
                    .number()
                    .unwrap()
                    .to_string(),
            );
            call.argument(&file, role)
        };
        assert_eq!(
            of("fsync", "NUMBER 0x3 0x0 0x0 0x7ffd 0x7fb1", Arg::Fd),
            Some(3)
        );
        assert_eq!(of("fsync", "NUMBER 0x3 0x0", Arg::Path), None);
        assert_eq!(of("fdatasync", "NUMBER 0x3 0x0", Arg::Fd), None);
        assert_eq!(of("fsync", "running", Arg::Fd), None);
    }

    #[test]
    fn texts_end_at_a_null() {
        let text = b"/some/path\0and more";
        let at = |address| text_at("/proc/self/mem", address);
        assert_eq!(at(text.as_ptr() as u64), Some("/some/path".into()));
        assert_eq!(at(0), None);
        // One that goes on in the next page.
        let room = vec![b'x'; 3 * PAGE as usize];
        let start = room.as_ptr() as usize;
        let edge = start.next_multiple_of(PAGE as usize) + PAGE as usize - start;
        let mut room = room;
        room[edge + 4] = 0;
        assert_eq!(at((start + edge - 4) as u64), Some("xxxxxxxx".into()));
    }
}

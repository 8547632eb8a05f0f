//! Task records for processes that ran before the recording: the kernel side
//! cannot read another process's command line, /proc can.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_model::abi::{
    AdoptedTask, COMM_BYTES, MAX_CMDLINE, MAX_PATH, RECORD_TASK, TASK_SEEN, TaskRecord,
};
use fathom_model::raw::{RawChunk, Ring};

use crate::error::ProbeError;
use crate::rings::append_framed;

/// Records of the tasks that the kernel side has taken in and written.
pub(crate) fn task_records(written: &[u8]) -> RawChunk {
    let mut processes: BTreeMap<u32, Threads> = BTreeMap::new();
    for task in written
        .chunks_exact(AdoptedTask::SIZE)
        .filter_map(AdoptedTask::parse)
    {
        let threads = processes.entry(task.pid).or_default();
        threads.insert(task.tid, task.start_ns);
    }
    let mut bytes = Vec::new();
    for (pid, threads) in &processes {
        // It may have ended in the meantime.
        process(*pid, threads, &mut bytes).ok();
    }
    RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes,
    }
}

/// An error when there is no such process.
pub(crate) fn must_exist(pid: u32) -> Result<(), ProbeError> {
    fs::metadata(Path::new("/proc").join(pid.to_string()))
        .map(drop)
        .map_err(|source| ProbeError::NoProcess { pid, source })
}

/// Threads of one process, and when they began in nanoseconds.
type Threads = BTreeMap<u32, u64>;

fn process(pid: u32, threads: &Threads, out: &mut Vec<u8>) -> io::Result<()> {
    let dir = Path::new("/proc").join(pid.to_string());
    let mut cmdline = fs::read(dir.join("cmdline"))?;
    cmdline.truncate(MAX_CMDLINE as usize - 1);
    let exe = fs::read_link(dir.join("exe"))
        .map(|path| leaf_first(path.as_os_str().as_bytes()))
        .unwrap_or_default();
    let cgroup = fs::read_to_string(dir.join("cgroup"))
        .ok()
        .and_then(|text| {
            // The line of cgroup v2: "0::/path".
            text.lines()
                .find_map(|line| line.strip_prefix("0::").map(str::to_string))
        })
        .map(|path| leaf_first(path.as_bytes()))
        .unwrap_or_default();
    let uid = fs::metadata(&dir).map(|meta| std::os::unix::fs::MetadataExt::uid(&meta))?;
    let now = crate::monotonic_ns();
    // The leader first: the other threads take its command line over.
    let mut ordered: Vec<(u32, u64)> = threads.iter().map(|(tid, ns)| (*tid, *ns)).collect();
    ordered.sort_by_key(|(tid, _)| (*tid != pid, *tid));
    for (tid, start_ns) in ordered {
        let Some(stat) = Stat::read(&dir.join("task").join(tid.to_string())) else {
            continue;
        };
        let described = tid == pid || !threads.contains_key(&pid);
        let strings: [&[u8]; 3] = if described {
            [&cmdline, &exe, &cgroup]
        } else {
            [&[], &[], &[]]
        };
        let mut comm = [0; COMM_BYTES as usize];
        let n = stat.comm.len().min(comm.len() - 1);
        comm[..n].copy_from_slice(&stat.comm[..n]);
        let record = TaskRecord {
            kind: RECORD_TASK as u8,
            event: TASK_SEEN as u8,
            cmdline_len: strings[0].len() as u16,
            exe_len: strings[1].len() as u16,
            cgroup_len: strings[2].len() as u16,
            ts_ns: now,
            start_ns,
            cgroup_id: 0,
            pid,
            tid,
            ppid: stat.ppid,
            uid,
            exit_code: 0,
            reserved: 0,
            comm,
        };
        let mut bytes = record.to_bytes().to_vec();
        strings
            .iter()
            .for_each(|string| bytes.extend_from_slice(string));
        append_framed(out, &bytes);
    }
    Ok(())
}

/// What `/proc/PID/task/TID/stat` says.
struct Stat {
    comm: Vec<u8>,
    ppid: u32,
}

impl Stat {
    fn read(dir: &Path) -> Option<Stat> {
        let text = fs::read(dir.join("stat")).ok()?;
        // The name stands in parentheses and may hold any byte.
        let open = text.iter().position(|b| *b == b'(')?;
        let close = text.iter().rposition(|b| *b == b')')?;
        let comm = text.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // proc(5): after the name come state, ppid.
        Some(Stat {
            comm,
            ppid: fields.get(1)?.parse().ok()?,
        })
    }
}

/// A path as the kernel side sends it: components from the leaf up, each
/// followed by '/'.
fn leaf_first(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len() + 1);
    for component in path.split(|b| *b == b'/').rev().filter(|c| !c.is_empty()) {
        if bytes.len() + component.len() + 1 > MAX_PATH as usize {
            break;
        }
        bytes.extend_from_slice(component);
        bytes.push(b'/');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_described() {
        let mut bytes = Vec::new();
        let own = std::process::id();
        process(own, &Threads::from([(own, 7)]), &mut bytes).unwrap();
        let record = TaskRecord::parse(&bytes[8..]).unwrap();
        assert_eq!(record.pid, std::process::id());
        assert_eq!(record.tid, record.pid);
        assert_eq!(record.start_ns, 7);
        let cmdline = &bytes[8 + TaskRecord::SIZE..][..record.cmdline_len as usize];
        assert!(cmdline.ends_with(&[0]));
        let exe =
            &bytes[8 + TaskRecord::SIZE + record.cmdline_len as usize..][..record.exe_len as usize];
        let path = std::env::current_exe().unwrap();
        assert!(exe.starts_with(path.file_name().unwrap().as_bytes()));
    }

    #[test]
    fn paths_turn_around() {
        assert_eq!(leaf_first(b"/usr/bin/redis"), b"redis/bin/usr/");
        assert_eq!(leaf_first(b"/"), b"");
    }
}

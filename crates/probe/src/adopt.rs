//! Descriptions of processes that ran before the recording: the kernel side lists their threads,
//! but cannot read another process's command line; /proc can.
//!

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_model::abi::{
    COMM_BYTES, MAX_CMDLINE, MAX_PATH, RECORD_TASK, TASK_DESCRIBED, TaskRecord,
};
use fathom_model::raw::{RawChunk, Ring};

use crate::error::ProbeError;
use crate::framing::append_framed;

/// Records of `pids`, or of all processes but this one. Without `paths` neither
/// command line nor executable is read.
pub(crate) fn descriptions(pids: Option<&[u32]>, paths: bool) -> Result<RawChunk, ProbeError> {
    let mut bytes = Vec::new();
    match pids {
        Some(pids) => {
            for pid in pids {
                process(*pid, paths, &mut bytes)
                    .map_err(|cause| ProbeError::NoProcess { pid: *pid, cause })?;
            }
        }
        None => {
            let itself = std::process::id();
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
            for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
                if pid != itself {
                    // It may have ended in the meantime.
                    process(pid, paths, &mut bytes).ok();
                }
            }
        }
    }
    Ok(RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes,
    })
}

fn process(pid: u32, paths: bool, out: &mut Vec<u8>) -> io::Result<()> {
    let dir = Path::new("/proc").join(pid.to_string());
    let (mut cmdline, mut exe) = (Vec::new(), Vec::new());
    if paths {
        cmdline = fs::read(dir.join("cmdline"))?;
        cmdline.truncate(MAX_CMDLINE as usize - 1);
        exe = fs::read_link(dir.join("exe"))
            .map(|path| leaf_first(path.as_os_str().as_bytes()))
            .unwrap_or_default();
    }
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
    let mnt_ns = fs::metadata(dir.join("ns/mnt"))
        .map_or(0, |meta| std::os::unix::fs::MetadataExt::ino(&meta) as u32);
    let record = TaskRecord {
        kind: RECORD_TASK as u8,
        event: TASK_DESCRIBED as u8,
        cmdline_len: cmdline.len() as u16,
        exe_len: exe.len() as u16,
        cgroup_len: cgroup.len() as u16,
        ts_ns: crate::monotonic_ns(),
        started_at_ns: 0,
        cgroup_id: 0,
        pid,
        tid: pid,
        ppid: 0,
        uid,
        exit_code: 0,
        mnt_ns,
        comm: [0; COMM_BYTES as usize],
    };
    append_framed(
        out,
        &[&record.to_bytes()[..], &cmdline, &exe, &cgroup].concat(),
    );
    Ok(())
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
        process(std::process::id(), true, &mut bytes).unwrap();
        let record = TaskRecord::parse(&bytes[8..]).unwrap();
        assert_eq!(record.pid, std::process::id());
        let cmdline = &bytes[8 + TaskRecord::SIZE..][..record.cmdline_len as usize];
        assert!(cmdline.ends_with(&[0]));
        let exe =
            &bytes[8 + TaskRecord::SIZE + record.cmdline_len as usize..][..record.exe_len as usize];
        let path = std::env::current_exe().unwrap();
        assert!(exe.starts_with(path.file_name().unwrap().as_bytes()));

        let mut bytes = Vec::new();
        process(std::process::id(), false, &mut bytes).unwrap();
        let record = TaskRecord::parse(&bytes[8..]).unwrap();
        assert_eq!((record.cmdline_len, record.exe_len), (0, 0));
    }

    #[test]
    fn paths_turn_around() {
        assert_eq!(leaf_first(b"/usr/bin/redis"), b"redis/bin/usr/");
        assert_eq!(leaf_first(b"/"), b"");
    }
}

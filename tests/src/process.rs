//! What /proc says of processes.

use std::fs;

/// Processes whose parent is `pid`.
pub fn children(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|child| parent(*child) == Some(pid))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// A line of /proc/PID/status, without its name; `None` when there is none, or no process.
pub fn status(pid: u32, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The most resident memory that a process has had, bytes.
pub fn peak_bytes(pid: u32) -> Option<u64> {
    let kib = status(pid, "VmHWM")?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

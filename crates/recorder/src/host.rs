//! The machine and the recorder itself, as the session describes them.

use std::fs;
use std::io::Read;

use fathom_model::meta::Host;

/// The machine.
pub fn describe() -> Host {
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let info = rustix::system::sysinfo();
    Host {
        name: text(uname.nodename()),
        kernel: format!("{} {}", text(uname.release()), text(uname.version())),
        arch: text(uname.machine()),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: info.totalram * u64::from(info.mem_unit),
        distribution: distribution().unwrap_or_default(),
        machine_id: id("/etc/machine-id"),
        boot_id: id("/proc/sys/kernel/random/boot_id"),
    }
}

/// The id in a file, without the hyphens; empty if it holds none.
fn id(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let id: String = text.trim().chars().filter(|c| *c != '-').collect();
    match id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => id,
        false => String::new(),
    }
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_string())
}

/// 32 random hexadecimal digits.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    if fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .is_err()
    {
        bytes[..8].copy_from_slice(&fathom_probe::realtime_ns().to_ne_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

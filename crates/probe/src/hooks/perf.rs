//! Events of perf: software events as places for programs, and any to count.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{ErrorExt as _, Link, ProgramMut};

/// Whether the event can be had.
pub(super) fn is_there(config: u32) -> bool {
    open(config, 0).is_ok()
}

/// Runs `program` at every `config` on each of `cpus` CPUs; CPUs that are offline are skipped.
///
/// # Errors
/// When a processor refuses; the links of the others are in `links` then.
pub(super) fn attach(
    program: &ProgramMut<'_>,
    config: u32,
    cpus: usize,
    links: &mut Vec<Link>,
) -> Result<(), libbpf_rs::Error> {
    let mut result = Ok(());
    for cpu in 0..cpus as i32 {
        let event = match open(config, cpu) {
            Ok(event) => event,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
            Err(error) => {
                result = Err(libbpf_rs::Error::from(error)).context(format!("CPU {cpu}"));
                continue;
            }
        };
        match program.attach_perf_event(event.as_raw_fd()) {
            Ok(link) => {
                // The link closes it.
                let _ = event.into_raw_fd();
                links.push(link);
            }
            Err(error) => result = Err(error).context(format!("CPU {cpu}")),
        }
    }
    result
}

/// A software event of all tasks on `cpu`, each occurrence of it.
fn open(config: u32, cpu: i32) -> io::Result<OwnedFd> {
    open_event(libbpf_sys::PERF_TYPE_SOFTWARE, config, cpu, 1)
}

/// An event of all tasks on `cpu` that reports each `period`th occurrence; with 0 it only counts.
pub(crate) fn open_event(kind: u32, config: u32, cpu: i32, period: u64) -> io::Result<OwnedFd> {
    let mut attr = libbpf_sys::perf_event_attr {
        type_: kind,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        config: u64::from(config),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = period;
    // SAFETY: `attr` is a whole structure of the size that it names and outlives
    // the call; the other arguments are numbers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            cpu,
            -1,
            libbpf_sys::PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just given this descriptor to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

//! The types of the kernel, as it describes them in BTF (Linux, `Documentation/bpf/btf.rst`).
//!
//! libbpf looks at all of a kernel's 100,000 and more names each time that it looks for one, which was a
//! quarter of the time that a recording took to start. Here they are read once, into a table by name.

mod btf;
mod reduced;
mod relocations;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;

pub(crate) use btf::Types;
use reduced::reduced;

use crate::error::ProbeError;

/// A file in memory with the types of the kernel that the programs in `object` ask for.
///
/// # Errors
/// When the object or the types are malformed, or the system has no room for the file.
pub(crate) fn file_for(object: &[u8], kernel: &Rc<Types>) -> Result<File, ProbeError> {
    let bytes = reduced(object, kernel).ok_or(ProbeError::Object("types of the kernel"))?;
    // A machine may refuse files in memory that could be executed; Linux before 6.3 does not know the flag.
    let flags = [libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL, libc::MFD_CLOEXEC];
    let made = flags.into_iter().find_map(|flags| {
        // SAFETY: the name ends with NUL.
        let fd = unsafe { libc::memfd_create(c"fathom-types".as_ptr(), flags) };
        // SAFETY: it is open, and nothing else has it.
        (fd >= 0).then(|| File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
    });
    let written = match made {
        Some(mut file) => file.write_all(&bytes).map(|()| file),
        None => Err(io::Error::last_os_error()),
    };
    written.map_err(|source| ProbeError::Types {
        at: "a copy in memory".into(),
        source,
    })
}

//! The meaning of errors: not every call that returns an error has failed.

/// The meaning of an error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The answer to a question: whether there is such a file, whether it is a terminal,
    /// whether there is something to read by now. More of them are more calls, no fault.
    Answer,
    /// The device, the file system or the system cannot: one of them is one too many.
    Fault,
    /// Anything else.
    Other,
}

/// The device or the file system is damaged or gone, or something has run out.
const FAULTS: [&str; 15] = [
    "EIO",
    "ENOSPC",
    "EDQUOT",
    "EROFS",
    "EUCLEAN",
    "EBADMSG",
    "ENODEV",
    "ENOMEDIUM",
    "ESTALE",
    "EREMOTEIO",
    "ETIMEDOUT",
    "ENOMEM",
    "EMFILE",
    "ENFILE",
    "EFBIG",
];

/// Beginnings of calls that look something up by its name, or want to be rid of it: databases
/// truncate and unlink files until there is none left.
const LOOK_UPS: [&str; 11] = [
    "open",
    "stat",
    "lstat",
    "newfstatat",
    "fstatat",
    "access",
    "faccessat",
    "readlink",
    "exec",
    "unlink",
    "truncate",
];

/// The meaning of the error `errno` of the call `syscall`.
pub fn error_kind(syscall: &str, errno: &str) -> ErrorKind {
    // Operations of io_uring are named like the calls that they stand for.
    let operation = syscall.strip_prefix("IORING_OP_").map(str::to_lowercase);
    let syscall = operation.as_deref().unwrap_or(syscall);
    let begins = |names: &[&str]| names.iter().any(|name| syscall.starts_with(name));
    let answer = match errno {
        // It would have had to wait, was interrupted, or the kernel does not have it.
        "EAGAIN" | "EINTR" | "EINPROGRESS" | "EALREADY" | "ENOSYS" => true,
        "ERESTARTSYS" | "ERESTARTNOINTR" | "ERESTARTNOHAND" | "ERESTART_RESTARTBLOCK" => true,
        "ENOTTY" => syscall == "ioctl",
        "ENOENT" | "ENOTDIR" => begins(&LOOK_UPS) || syscall.contains("xattr"),
        "ENODATA" | "ERANGE" => syscall.contains("xattr"),
        "EOPNOTSUPP" | "ENOTSUP" => {
            syscall.contains("xattr") || begins(&["ioctl", "copy_file_range", "fallocate"])
        }
        "EXDEV" => syscall == "copy_file_range" || syscall == "ioctl",
        "EEXIST" => begins(&["mkdir", "open"]),
        "EINVAL" => begins(&["readlink"]),
        "ESPIPE" => begins(&["lseek", "fadvise"]),
        // The end of the data, or of the holes.
        "ENXIO" if syscall == "lseek" => true,
        // There is no terminal, or no program has the other end of the pipe open.
        "ENXIO" => begins(&["open"]),
        // Shells ask in this way whether a descriptor is open.
        "EBADF" => syscall == "fcntl",
        _ => false,
    };
    match (answer, FAULTS.contains(&errno)) {
        (true, _) => ErrorKind::Answer,
        (false, true) => ErrorKind::Fault,
        (false, false) => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorKind, error_kind};

    #[test]
    fn answers_are_distinguished_from_faults() {
        for (syscall, errno, expected) in [
            ("ioctl", "ENOTTY", ErrorKind::Answer),
            ("openat", "ENOENT", ErrorKind::Answer),
            ("statx", "ENOENT", ErrorKind::Answer),
            ("lgetxattr", "ENODATA", ErrorKind::Answer),
            ("read", "EAGAIN", ErrorKind::Answer),
            ("IORING_OP_OPENAT", "ENOENT", ErrorKind::Answer),
            ("IORING_OP_READ", "EIO", ErrorKind::Fault),
            ("openat", "ENXIO", ErrorKind::Answer),
            ("fcntl", "EBADF", ErrorKind::Answer),
            ("truncate", "ENOENT", ErrorKind::Answer),
            ("truncate", "EACCES", ErrorKind::Other),
            ("rename", "ENOENT", ErrorKind::Other),
            ("write", "EBADF", ErrorKind::Other),
            ("pread64", "EINVAL", ErrorKind::Other),
            ("openat", "EACCES", ErrorKind::Other),
            ("write", "ENOSPC", ErrorKind::Fault),
            ("fsync", "EIO", ErrorKind::Fault),
            ("openat", "EMFILE", ErrorKind::Fault),
        ] {
            assert_eq!(error_kind(syscall, errno), expected, "{syscall} {errno}");
        }
    }
}

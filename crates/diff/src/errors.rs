//! The meaning of errors: not every call that fails is a fault.

/// The meaning of an error for the regression gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
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

/// Beginnings of calls that look something up by its name.
const LOOK_UPS: [&str; 10] = [
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
];

/// The meaning of a call's error.
pub(crate) fn kind(syscall: &str, errno: &str) -> ErrorKind {
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
        "ENXIO" => syscall == "lseek",
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
    use super::{ErrorKind, kind};

    #[test]
    fn answers_are_told_from_faults() {
        for (syscall, errno, expected) in [
            ("ioctl", "ENOTTY", ErrorKind::Answer),
            ("openat", "ENOENT", ErrorKind::Answer),
            ("statx", "ENOENT", ErrorKind::Answer),
            ("lgetxattr", "ENODATA", ErrorKind::Answer),
            ("read", "EAGAIN", ErrorKind::Answer),
            ("rename", "ENOENT", ErrorKind::Other),
            ("write", "EBADF", ErrorKind::Other),
            ("pread64", "EINVAL", ErrorKind::Other),
            ("openat", "EACCES", ErrorKind::Other),
            ("write", "ENOSPC", ErrorKind::Fault),
            ("fsync", "EIO", ErrorKind::Fault),
            ("openat", "EMFILE", ErrorKind::Fault),
        ] {
            assert_eq!(kind(syscall, errno), expected, "{syscall} {errno}");
        }
    }
}

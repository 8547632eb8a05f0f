//! The mounts of this process's mount namespace, as records: with them, files
//! that a container reaches get the path that the host has for them.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use fathom_model::abi::{MOUNT_FIRST, MountRecord, RECORD_MOUNT};
use fathom_model::raw::{RawChunk, Ring};

use crate::framing::append_framed;

/// Follows `/proc/self/mountinfo`.
pub(crate) struct Mounts {
    file: File,
    mnt_ns: u32,
    /// Whether the list has been read before.
    read: bool,
}

impl Mounts {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            file: File::open("/proc/self/mountinfo")?,
            mnt_ns: own_namespace(),
            read: false,
        })
    }

    /// The list as records, when it was not read yet or has changed since.
    pub(crate) fn changed(&mut self) -> Option<RawChunk> {
        if self.read && !self.signalled() {
            return None;
        }
        self.read = true;
        let mut text = Vec::new();
        self.file.rewind().ok()?;
        self.file.read_to_end(&mut text).ok()?;
        Some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes: records(&text, self.mnt_ns, crate::monotonic_ns()),
        })
    }

    /// Whether the kernel says that the list has changed (proc(5): POLLPRI).
    fn signalled(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.file.as_raw_fd(),
            events: libc::POLLPRI,
            revents: 0,
        };
        // SAFETY: one valid structure, no time to wait.
        let ready = unsafe { libc::poll(&mut poll, 1, 0) };
        ready > 0 && poll.revents & (libc::POLLPRI | libc::POLLERR) != 0
    }
}

/// Inode of the mount namespace of this process, 0 if unknown.
pub(crate) fn own_namespace() -> u32 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |meta| meta.ino() as u32)
}

fn records(mountinfo: &[u8], mnt_ns: u32, now_ns: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for line in mountinfo.split(|b| *b == b'\n') {
        let Some((fs_dev, root, point)) = mount(line) else {
            continue;
        };
        let (Ok(root_len), Ok(point_len)) = (root.len().try_into(), point.len().try_into()) else {
            continue;
        };
        let record = MountRecord {
            kind: RECORD_MOUNT as u8,
            flags: if out.is_empty() { MOUNT_FIRST as u8 } else { 0 },
            root_len,
            fs_dev,
            ts_ns: now_ns,
            mnt_ns,
            point_len,
            reserved: 0,
        };
        append_framed(&mut out, &[&record.to_bytes()[..], &root, &point].concat());
    }
    out
}

/// Device, root and mount point of a line of mountinfo (proc(5)): the third,
/// fourth and fifth field.
fn mount(line: &[u8]) -> Option<(u32, Vec<u8>, Vec<u8>)> {
    let mut fields = line.split(|b| *b == b' ').skip(2);
    let (major, minor) = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let dev = major << 20 | minor & 0xf_ffff;
    Some((dev, unescaped(fields.next()?), unescaped(fields.next()?)))
}

/// Without the octal escapes by which blanks and backslashes stand in
/// mountinfo.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = b"36 35 98:0 /mnt1/a\\040b /mnt2\\134x rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(
            mount(line),
            Some((98 << 20, b"/mnt1/a b".to_vec(), b"/mnt2\\x".to_vec()))
        );
        assert_eq!(mount(b""), None);
        assert_eq!(mount(b"36 35 x:0 / / rw"), None);
        assert_eq!(unescaped(b"a\\0"), b"a\\0");
        assert_eq!(unescaped(b"a\\999"), b"a\\999");
    }

    #[test]
    fn own_mounts_become_records() {
        let mut mounts = Mounts::open().unwrap();
        let chunk = mounts.changed().unwrap();
        let first = MountRecord::parse(&chunk.bytes[8..]).unwrap();
        assert_eq!(u32::from(first.flags), MOUNT_FIRST);
        assert_eq!(first.mnt_ns, own_namespace());
        assert!(mounts.changed().is_none());
    }
}

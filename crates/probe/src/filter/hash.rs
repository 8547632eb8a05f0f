//! Hashes of values in rules, as `bpf/include/path_filter.h` makes them.

use std::io;

/// Parameters of the hashes. They are random, so that no traced program can
/// make up a name that is taken for another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hasher {
    pub seed: u64,
    pub factor: u64,
}

impl Hasher {
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0u8; 16];
        // SAFETY: the buffer is as long as is said.
        let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if n != bytes.len() as isize {
            return Err(io::Error::last_os_error());
        }
        let (seed, factor) = bytes.split_at(8);
        let number = |half: &[u8]| {
            half.iter()
                .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        Ok(Self {
            seed: number(seed),
            factor: number(factor) | 1,
        })
    }

    fn bytes(self, start: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(start, |hash, byte| {
            hash.wrapping_mul(self.factor)
                .wrapping_add(u64::from(*byte))
        })
    }

    /// Of a name or an id.
    pub(super) fn text(self, bytes: &[u8]) -> u64 {
        self.bytes(self.seed, bytes)
    }

    /// Of a component of a path.
    pub(super) fn component(self, name: &[u8]) -> u64 {
        self.bytes(0, name)
    }

    /// Of an absolute path without `.`, `..` and empty components, and the
    /// number of its components.
    pub(super) fn path(self, path: &[u8]) -> (u64, usize) {
        let components = path.split(|b| *b == b'/').filter(|c| !c.is_empty());
        components.fold((self.seed, 0), |(hash, depth), component| {
            let component = self.component(component);
            let hash = (hash.rotate_left(23) ^ component).wrapping_mul(self.factor);
            (hash, depth + 1)
        })
    }
}

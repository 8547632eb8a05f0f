//! Checksums of parts: a changed bit anywhere in the file is found before a row is read.
//!
//! A part contains its checksums, so a part has them from the moment at which it has its name,
//! and keeps them when it is linked or copied. They take 24 bytes between the last column chunk
//! and the footer, where readers of Parquet look only for what the footer points at. Numbers
//! are little-endian:
//!
//! ```text
//!  0  "FATHOMCK"
//!  8  XXH64 (seed 0) of the file up to here, u64
//! 16  XXH64 (seed 0) of the rest of the file from byte 0 on, these 8 bytes as zeros, u64
//! ```
//!
//! The second checksum is of what every reader reads first. The first is of all rows; a part
//! that has passed is not read again by this process as long as the file stays the same.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::hash::Hasher;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use twox_hash::XxHash64;

use crate::threads::lock;

const MARK: &[u8; 8] = b"FATHOMCK";
/// Bytes that the checksums take, and where the second one begins.
const LENGTH: usize = 24;
const SECOND: usize = 16;
/// The length of the footer and the magic number, at the end of a Parquet file.
const TAIL: u64 = 8;

/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;
/// Parts that are remembered at most; then all are forgotten.
const REMEMBERED: usize = 1 << 16;
/// A file that changed so recently may change again without its times telling.
const SETTLED: Duration = Duration::from_secs(2);

/// Why a part does not pass.
pub(crate) enum Wrong {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// Its bytes are not the ones that were written.
    Changed,
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // It is shorter than it says.
            io::ErrorKind::UnexpectedEof => Wrong::Changed,
            _ => Wrong::Unreadable(error),
        }
    }
}

/// The output of a part; its checksums are filled in at the end.
pub(crate) trait Sink: Write + Send {
    /// Writes over bytes that have been written.
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

impl Sink for Vec<u8> {
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let place = self.get_mut(at..at + bytes.len());
        let place = place.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

impl Sink for BufWriter<File> {
    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.get_ref().write_all_at(bytes, at)
    }
}

/// Hashes what is written to `inner`.
pub(crate) struct Hashed<W> {
    inner: W,
    hash: XxHash64,
    /// Bytes written, and where the checksums are, once they are.
    length: u64,
    checksums: Option<u64>,
}

impl<W: Sink> Hashed<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: XxHash64::with_seed(0),
            length: 0,
            checksums: None,
        }
    }

    /// The bytes after all others: the checksums. The second one is unknown before
    /// [`Hashed::finish`].
    pub(crate) fn checksums(&mut self) -> [u8; LENGTH] {
        let first = self.hash.finish();
        self.hash = XxHash64::with_seed(0);
        self.checksums = Some(self.length);
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(MARK);
        bytes[8..SECOND].copy_from_slice(&first.to_le_bytes());
        bytes
    }

    /// Puts the second checksum in; returns what was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if let Some(at) = self.checksums {
            let second = self.hash.finish().to_le_bytes();
            self.inner.overwrite(at + SECOND as u64, &second)?;
        }
        Ok(self.inner)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.write(bytes.get(..written).unwrap_or(bytes));
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The checksums of a part whose footer agrees with them.
pub(crate) struct Checksums {
    /// Length of what comes before them, and its checksum.
    rows_end: u64,
    rows: u64,
}

impl Checksums {
    /// The checksums of a file of `length` bytes.
    pub(crate) fn read(file: &File, length: u64) -> Result<Self, Wrong> {
        let mut tail = [0; 4];
        let Some(tail_at) = length.checked_sub(TAIL) else {
            return Err(Wrong::Changed);
        };
        file.read_exact_at(&mut tail, tail_at)?;
        let footer = u64::from(u32::from_le_bytes(tail));
        let Some(at) = tail_at.checked_sub(footer + LENGTH as u64) else {
            return Err(Wrong::Changed);
        };
        let mut checksums = [0; LENGTH];
        file.read_exact_at(&mut checksums, at)?;
        if &checksums[..8] != MARK {
            return Err(Wrong::Changed);
        }
        let number = |from: usize| {
            let bytes = checksums.get(from..from + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (Some(rows), Some(rest)) = (number(8), number(SECOND)) else {
            return Err(Wrong::Changed);
        };
        checksums[SECOND..].fill(0);
        let mut hash = XxHash64::with_seed(0);
        hash.write(&checksums);
        hash_range(&mut hash, file, at + LENGTH as u64, length)?;
        match hash.finish() == rest {
            true => Ok(Self { rows_end: at, rows }),
            false => Err(Wrong::Changed),
        }
    }

    /// Checks all bytes before the checksums; returns whether the file was read for that, because
    /// this process had not checked it before.
    pub(crate) fn check_rows(&self, file: &File) -> Result<bool, Wrong> {
        let identity = Identity::of(&file.metadata()?);
        if identity.is_some_and(|identity| lock(&PASSED).contains(&identity)) {
            return Ok(false);
        }
        let mut hash = XxHash64::with_seed(0);
        hash_range(&mut hash, file, 0, self.rows_end)?;
        if hash.finish() != self.rows {
            return Err(Wrong::Changed);
        }
        passed(identity, file)?;
        Ok(true)
    }
}

/// Checks all bytes of a file that has its checksum elsewhere, unless this process has done so before.
pub(crate) fn check_file(file: &File, xxh64: u64) -> Result<(), Wrong> {
    let metadata = file.metadata()?;
    let identity = Identity::of(&metadata);
    if identity.is_some_and(|identity| lock(&PASSED).contains(&identity)) {
        return Ok(());
    }
    if of_file(file)? != xxh64 {
        return Err(Wrong::Changed);
    }
    passed(identity, file)
}

/// XXH64 (seed 0) of all bytes of a file.
pub(crate) fn of_file(file: &File) -> Result<u64, Wrong> {
    let mut hash = XxHash64::with_seed(0);
    hash_range(&mut hash, file, 0, file.metadata()?.len())?;
    Ok(hash.finish())
}

/// Remembers a file whose bytes were as written. One that was written to meanwhile is not what was read.
fn passed(identity: Option<Identity>, file: &File) -> Result<(), Wrong> {
    if let Some(identity) = identity
        && Identity::of(&file.metadata()?) == Some(identity)
    {
        let mut passed = lock(&PASSED);
        if passed.len() >= REMEMBERED {
            passed.clear();
        }
        passed.insert(identity);
    }
    Ok(())
}

fn hash_range(hash: &mut XxHash64, file: &File, from: u64, to: u64) -> io::Result<()> {
    let mut block = vec![0; BLOCK.min(usize::try_from(to - from).unwrap_or(BLOCK))];
    let mut at = from;
    while at < to {
        let length = usize::try_from(to - at).unwrap_or(BLOCK).min(BLOCK);
        let bytes = &mut block[..length];
        file.read_exact_at(bytes, at)?;
        hash.write(bytes);
        at += length as u64;
    }
    Ok(())
}

/// The files whose rows have passed.
static PASSED: LazyLock<Mutex<HashSet<Identity>>> = LazyLock::new(Mutex::default);

/// Properties that change when a file is replaced or written to: device, inode, size, and time of
/// change of the contents and of the inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    file: (u64, u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// `None` for a file that changed a moment ago.
    fn of(file: &Metadata) -> Option<Self> {
        let changed = u64::try_from(file.ctime()).ok()?;
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed);
        let age = SystemTime::now().duration_since(changed).ok()?;
        (age > SETTLED).then(|| Self {
            file: (file.dev(), file.ino(), file.size()),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A file as a part is written, without being one.
    fn written() -> (File, u64) {
        let file = tempfile::tempfile().unwrap();
        let mut sink = Hashed::new(BufWriter::new(file.try_clone().unwrap()));
        sink.write_all(&[7; 1000]).unwrap();
        let checksums = sink.checksums();
        sink.write_all(&checksums).unwrap();
        sink.write_all(&[9; 100]).unwrap();
        sink.write_all(&100u32.to_le_bytes()).unwrap();
        sink.write_all(b"PAR1").unwrap();
        drop(sink.finish().unwrap());
        let length = file.metadata().unwrap().len();
        (file, length)
    }

    fn passes(file: &File, length: u64) -> Option<bool> {
        let checksums = Checksums::read(file, length).ok()?;
        checksums.check_rows(file).ok()
    }

    #[test]
    fn any_bit_that_changes_is_found() {
        let (file, length) = written();
        assert_eq!(length, 1000 + 24 + 100 + 8);
        assert_eq!(passes(&file, length), Some(true));
        for place in 0..length {
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).unwrap();
            for bit in 0..8 {
                file.write_all_at(&[byte[0] ^ 1 << bit], place).unwrap();
                assert_eq!(passes(&file, length), None, "bit {bit} of byte {place}");
            }
            file.write_all_at(&byte, place).unwrap();
        }
        assert_eq!(passes(&file, length), Some(true));
        // Nor does a shorter or longer one pass.
        assert_eq!(passes(&file, length - 1), None);
        file.write_all_at(b"PAR1", length).unwrap();
        assert_eq!(passes(&file, length + 4), None);
    }

    #[test]
    fn what_has_passed_is_not_read_again_until_it_changes() {
        let (file, length) = written();
        thread::sleep(SETTLED + Duration::from_secs(1));
        assert_eq!(passes(&file, length), Some(true));
        assert_eq!(passes(&file, length), Some(false));
        file.write_all_at(&[8], 500).unwrap();
        assert_eq!(passes(&file, length), None);
    }
}

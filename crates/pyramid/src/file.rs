//! The file of a pyramid, next to the tables ([`crate::Source::file`]).
//!
//! Numbers are little-endian. The file begins with 16 bytes: `FATHMPYR`, the
//! version (1) as u32, 4 zero bytes. Blocks follow until the end, or until
//! something that is none: a block that was cut off as its recorder was killed.
//! The blocks of a segment stand together, one a dimension in the order of the
//! dimensions, the last one marked.
//!
//! ```text
//!  0  "FPB1"
//!  4  length of the block, u32
//!  8  XXH64 (seed 0) of the block from byte 16 on, u64
//! 16  tier, dimension, shift of the buckets, flags (1: last of its segment,
//!     2: keys are texts), u8 each
//! 20  cells, u32
//! 24  first part, last part, rows, u64 each
//! 48  time of the earliest and of the latest row, i64 nanoseconds each
//! 64  length of the sums unpacked and packed, of the latencies unpacked and
//!     packed, u32 each
//! 80  the sums, zstd
//!     the latencies, zstd
//! ```
//!
//! In the sums numbers have seven bits a byte, the lowest first, the eighth bit
//! set when more follow; signed ones are zigzag-encoded. First the number of
//! keys and the keys: a byte that says what it is (0 null, 1 the rest, 2 the
//! rest where other cells are lower bounds, 3 a signed number follows, 4 a
//! length and as many bytes of text follow). Then column by column for all
//! cells: bucket (time >> shift) as the signed difference to the one before, key
//! (its place in the list), count, errors, bytes, time, time less the maximum.
//!
//! The latencies of a cell are the number of the first entry that is not zero, how
//! many entries follow (a byte each), and these.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use crate::block;

pub const VERSION: u32 = 1;
pub(crate) const MAGIC: &[u8; 8] = b"FATHMPYR";
/// Length of the file's head.
pub(crate) const HEAD: u64 = 16;

/// Appends segments to a file.
#[derive(Debug)]
pub struct Appender {
    file: File,
    length: u64,
}

impl Appender {
    /// Begins in an empty file.
    ///
    /// # Errors
    /// When the head cannot be written.
    pub fn new(mut file: File) -> io::Result<Self> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        file.write_all(&head)?;
        Ok(Self { file, length: HEAD })
    }

    /// Begins in an empty file with the segments of another one that have something of part
    /// `first` or a later one.
    ///
    /// # Errors
    /// When `from` cannot be read or the file not be written.
    pub fn since(from: &File, to: File, first: u64) -> io::Result<Self> {
        let mut kept = Self::new(to)?;
        let (mut at, mut bytes) = (HEAD, Vec::new());
        let mut head = [0; block::HEAD];
        let length = from.metadata()?.len();
        while at + block::HEAD as u64 <= length {
            from.read_exact_at(&mut head, at)?;
            let Some((block, lengths)) = block::decode_head(&head) else {
                break;
            };
            let (start, total) = (bytes.len(), u64::from(lengths.total));
            if at + total > length {
                break;
            }
            bytes.resize(start + lengths.total as usize, 0);
            from.read_exact_at(&mut bytes[start..], at)?;
            at += total;
            if block.last {
                if block.extent.last_part >= first {
                    kept.append(&crate::Segment {
                        bytes: std::mem::take(&mut bytes),
                    })?;
                }
                bytes.clear();
            }
        }
        Ok(kept)
    }

    /// Appends a segment, wholly or not at all.
    ///
    /// # Errors
    /// When it cannot be written: readers make do with the rows then.
    pub fn append(&mut self, segment: &crate::Segment) -> io::Result<()> {
        let written = self.file.write_all_at(&segment.bytes, self.length);
        match written {
            Ok(()) => self.length += segment.bytes.len() as u64,
            // Gives the room back; if that fails, the next one overwrites it.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }

    /// Length of the file, bytes.
    pub fn bytes(&self) -> u64 {
        self.length
    }
}

//! Bits of a stream's file, of which a part is in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read at once; no value has more.
const WINDOW: usize = 128 << 10;

pub(super) struct Bits {
    file: File,
    /// Length of the file in bytes.
    pub length: u64,
    start: u64,
    window: Vec<u8>,
}

impl Bits {
    pub fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Bits {
            file,
            length,
            start: 0,
            window: Vec::new(),
        })
    }

    /// `count` bytes at `at`; fewer at the end of the file, and at most [`WINDOW`].
    pub fn bytes(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let count = count.min(WINDOW);
        let inside = |bits: &Self| {
            let from = usize::try_from(at.checked_sub(bits.start)?).ok()?;
            let to = from.checked_add(count)?;
            (to <= bits.window.len()).then_some(from)
        };
        if inside(self).is_none() {
            self.window.resize(WINDOW, 0);
            let mut filled = 0;
            while let Some(room) = self.window.get_mut(filled..).filter(|r| !r.is_empty()) {
                match self.file.read_at(room, at.saturating_add(filled as u64)) {
                    Ok(0) => break,
                    Ok(n) => filled += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            self.window.truncate(filled);
            self.start = at;
        }
        let from = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let rest = self.window.get(from..).unwrap_or_default();
        Ok(rest.get(..count).unwrap_or(rest))
    }

    /// The integer of `bits` bits (1 to 64) at bit `at`; `None` behind the end of the file.
    pub fn integer(&mut self, at: u64, bits: u32, little_endian: bool) -> io::Result<Option<u64>> {
        let shift = (at % 8) as u32;
        let count = (shift + bits).div_ceil(8) as usize;
        let bytes = self.bytes(at / 8, count)?;
        if bytes.len() < count {
            return Ok(None);
        }
        let all = match little_endian {
            true => {
                bytes
                    .iter()
                    .rev()
                    .fold(0u128, |n, b| n << 8 | u128::from(*b))
                    >> shift
            }
            false => {
                let all = bytes.iter().fold(0u128, |n, b| n << 8 | u128::from(*b));
                all >> (count as u32 * 8 - shift - bits)
            }
        };
        Ok(Some((all & ((1u128 << bits) - 1)) as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn integers_of_any_size_place_and_order() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0x9a])
            .unwrap();
        let mut bits = Bits::new(file).unwrap();
        for (at, size, little_endian, value) in [
            (0, 8, true, Some(0xab)),
            (0, 16, true, Some(0xcdab)),
            (0, 16, false, Some(0xabcd)),
            (4, 8, true, Some(0xda)),
            (4, 8, false, Some(0xbc)),
            (3, 5, true, Some(0xab >> 3)),
            (3, 5, false, Some(0xab & 0x1f)),
            (0, 64, false, Some(0xabcd_ef01_2345_6789)),
            (4, 64, false, Some(0xbcde_f012_3456_7899)),
            (4, 64, true, Some(0xa896_7452_301e_fcda)),
            (64, 8, true, Some(0x9a)),
            (65, 8, true, None),
            (u64::MAX - 8, 8, true, None),
        ] {
            let found = bits.integer(at, size, little_endian).unwrap();
            assert_eq!(found, value, "{at} {size} {little_endian}");
        }
    }
}

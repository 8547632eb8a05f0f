//! Compression of pages.

use ::zstd::bulk::Compressor;

/// Level of zstd: the fastest of the regular ones.
const LEVEL: i32 = 1;

/// Below this there is nothing to win.
const LEAST: usize = 48;

pub(crate) struct Zstd(Compressor<'static>);

impl Zstd {
    pub(crate) fn new() -> std::io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// Compresses `bytes` to the end of `out`. Returns false, with `out` as it
    /// was, unless that saves at least a sixteenth.
    pub(crate) fn compress(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<bool> {
        if bytes.len() < LEAST {
            return Ok(false);
        }
        let start = out.len();
        let compressed = self.always(bytes, out)?;
        if compressed + bytes.len() / 16 >= bytes.len() {
            out.truncate(start);
            return Ok(false);
        }
        Ok(true)
    }

    /// Compresses `bytes` to the end of `out` even if they grow; returns the
    /// number of bytes appended.
    pub(crate) fn always(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<usize> {
        let start = out.len();
        out.resize(start + ::zstd::zstd_safe::compress_bound(bytes.len()), 0);
        let compressed = self.0.compress_to_buffer(bytes, &mut out[start..])?;
        out.truncate(start + compressed);
        Ok(compressed)
    }
}

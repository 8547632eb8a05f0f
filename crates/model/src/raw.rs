//! Bytes as they were drained from the kernel, before decoding.

/// Which of the two rings of a CPU a chunk comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Slots of [`crate::abi::SLOT_BYTES`], back to back.
    Slot,
    /// Records of variable length: each a 32-bit length, 32 zero bits, the
    /// record, zeros up to a multiple of 8. The length counts the record only.
    Wide,
}

/// Consecutive records of one ring of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawChunk {
    /// Processor whose ring it was.
    pub cpu: u32,
    /// Which ring.
    pub ring: Ring,
    /// The records.
    pub bytes: Vec<u8>,
}

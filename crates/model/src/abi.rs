//! Records and configuration as they cross between kernel and user space:
//! generated from `bpf/include/record.h`.

#![allow(
    clippy::identity_op,
    clippy::erasing_op,
    clippy::empty_docs,
    reason = "generated code"
)]

/// [`CallRecord::offset`]: the call has no position, or it is not known.
pub const NO_OFFSET: i64 = i64::MIN;

/// [`CallRecord::size`]: the call asks for no number of bytes, or it could not
/// be read.
pub const NO_SIZE: u64 = u64::MAX;

/// `N` bytes of `bytes` from `at`. The generated callers stay inside their
/// struct by construction.
#[inline(always)]
fn array<const N: usize, const S: usize>(bytes: &[u8; S], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_a_call() {
        assert_eq!(CallRecord::SIZE, SLOT_BYTES as usize);
        assert_eq!(OperationRecord::SIZE, SLOT_BYTES as usize);
    }

    #[test]
    fn array_lengths_equal_their_limits() {
        assert_eq!(CpuStats::SIZE % 64, 0, "a CPU has cache lines of its own");
        assert_eq!(ShedValue::SIZE, 8 * (7 + HIST_BUCKETS as usize));
        assert!(crate::syscalls::SYSCALLS.len() <= MAX_SYSCALLS as usize);
    }

    #[test]
    fn structs_survive_a_round_trip() {
        let bytes: Vec<u8> = (1..=CallRecord::SIZE as u8).collect();
        let record = CallRecord::parse(&bytes).unwrap();
        assert_eq!(record.to_bytes().as_slice(), bytes);
        assert_eq!(record.syscall, u16::from_ne_bytes([3, 4]));
        let bytes: Vec<u8> = (0..WideCallRecord::SIZE).map(|i| i as u8).collect();
        assert_eq!(
            WideCallRecord::parse(&bytes).unwrap().to_bytes().as_slice(),
            bytes
        );
        assert_eq!(CallRecord::parse(&bytes[..63]), None);
    }
}

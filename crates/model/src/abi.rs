//! Records and configuration as they cross between kernel and user space:
//! generated from `bpf/include/record.h`, `layer_records.h` and `config.h`; and state of the kernel
//! side, from `bpf/include/state.h`, and memory of preloaded objects, from `library_region.h`.

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

include!(concat!(env!("OUT_DIR"), "/records.rs"));
include!(concat!(env!("OUT_DIR"), "/layer_records.rs"));
include!(concat!(env!("OUT_DIR"), "/config.rs"));
include!(concat!(env!("OUT_DIR"), "/state.rs"));
include!(concat!(env!("OUT_DIR"), "/library_region.rs"));

impl CpuStats {
    /// Calls seen: what the rings took and what found no room, without what is
    /// no call.
    pub fn calls(&self) -> u64 {
        let others =
            self.faults + self.layers + self.faults_lost + self.writebacks_lost + self.layers_lost;
        (self.slot_calls + self.wide_calls + self.lost).saturating_sub(others)
    }

    /// Calls whose record found no room.
    pub fn calls_lost(&self) -> u64 {
        self.lost
            .saturating_sub(self.faults_lost + self.writebacks_lost + self.layers_lost)
    }
}

impl ShedValue {
    /// The initial value of a counter.
    pub const NOTHING: Self = Self {
        count: 0,
        errors: 0,
        bytes: 0,
        dur_ns: 0,
        max_dur_ns: 0,
        first_at_ns: 0,
        last_at_ns: 0,
        hist: [0; HIST_BUCKETS as usize],
    };

    /// Adds another counter. A time of 0 is not known, as in a counter without calls.
    pub fn add(&mut self, other: &Self) {
        self.first_at_ns = match (self.first_at_ns, other.first_at_ns) {
            (0, at) | (at, 0) => at,
            (at, other) => at.min(other),
        };
        self.count = self.count.saturating_add(other.count);
        self.errors = self.errors.saturating_add(other.errors);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.dur_ns = self.dur_ns.saturating_add(other.dur_ns);
        self.max_dur_ns = self.max_dur_ns.max(other.max_dur_ns);
        self.last_at_ns = self.last_at_ns.max(other.last_at_ns);
        for (own, other) in self.hist.iter_mut().zip(other.hist) {
            *own = own.saturating_add(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_holds_a_call() {
        assert_eq!(CallRecord::SIZE, SLOT_BYTES as usize);
        assert_eq!(OperationRecord::SIZE, SLOT_BYTES as usize);
        assert_eq!(CachedCallRecord::SIZE, SLOT_BYTES as usize);
    }

    #[test]
    fn array_lengths_equal_their_limits() {
        assert_eq!(CpuStats::SIZE % 64, 0, "a CPU has cache lines of its own");
        assert_eq!(ShedValue::SIZE, 8 * (7 + HIST_BUCKETS as usize));
        let others: Vec<u32> = crate::layers::lost_others().collect();
        let first = others.iter().copied().min().unwrap();
        assert!(crate::syscalls::SYSCALLS.len() <= first as usize);
        assert!(others.iter().all(|place| *place < MAX_SYSCALLS));
        assert_eq!(FaultRecord::SIZE, SLOT_BYTES as usize);
        let files = TaskState::CALL_AT - TaskState::FILES_AT;
        assert_eq!(files, CACHED_FILES as usize * CachedFile::SIZE);
    }

    #[test]
    fn each_side_of_a_ring_writes_cache_lines_of_its_own() {
        const { assert!(SlotCursor::TAIL_AT - SlotCursor::HEAD_AT >= 128) };
        const { assert!(SlotCursor::SIZE - SlotCursor::TAIL_AT >= 128) };
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
        let bytes: Vec<u8> = (0..TaskState::SIZE).map(|i| (i % 251) as u8).collect();
        let state = TaskState::parse(&bytes).unwrap();
        assert_eq!(state.to_bytes().as_slice(), bytes);
        let flags = &bytes[TaskState::FLAGS_AT..TaskState::FLAGS_AT + 4];
        assert_eq!(state.flags.to_ne_bytes(), flags);
    }
}

//! User space's end of the rings and of the counters that both sides map.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_model::abi::{
    CpuStats, RECORD_CACHED_CALL, RECORD_CALL, RECORD_DATA_CALL, RECORD_FILE, RECORD_TASK,
    RECORD_WIDE_CALL, SLOT_BYTES, SLOT_LAP, SlotCursor,
};
use fathom_model::raw::{RawChunk, Ring};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, RingBuffer, RingBufferBuilder};

use crate::error::ProbeError;
use crate::framing::append_framed;

/// Records that crossed from the kernel to user space, counted as they arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossed {
    pub calls: u64,
    /// Of files: identity and path.
    pub files: u64,
    /// Of tasks: begin, end, what they execute and how they call themselves.
    pub tasks: u64,
    /// Of anything else.
    pub others: u64,
}

impl Crossed {
    fn count(&mut self, kind: Option<&u8>) {
        match kind.map(|kind| u32::from(*kind)) {
            Some(RECORD_CALL | RECORD_CACHED_CALL | RECORD_WIDE_CALL | RECORD_DATA_CALL) => {
                self.calls += 1
            }
            Some(RECORD_FILE) => self.files += 1,
            Some(RECORD_TASK) => self.tasks += 1,
            _ => self.others += 1,
        }
    }
}

/// Memory of a map that the kernel lets user space map.
struct Shared {
    start: NonNull<u8>,
    bytes: usize,
}

impl Shared {
    fn new(map: BorrowedFd<'_>, bytes: usize, what: &'static str) -> Result<Self, ProbeError> {
        // SAFETY: a new mapping of a map of at least `bytes` bytes; it is
        // unmapped when this value is dropped, and nothing outlives that.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                map.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, bytes }),
            _ => Err(ProbeError::Map {
                what,
                bytes,
                source: io::Error::last_os_error(),
            }),
        }
    }

    /// The 64-bit word at byte `at`, shared with the kernel.
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= self.bytes && at.is_multiple_of(8));
        // SAFETY: inside the mapping and aligned, as just checked; both sides
        // access it with whole-word loads and stores.
        unsafe { &*self.start.as_ptr().add(at).cast::<AtomicU64>() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and nothing refers to it now.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

const SLOT: usize = SLOT_BYTES as usize;

/// The slot rings of all CPUs (`bpf/include/maps.h`).
pub(crate) struct SlotRings {
    slots: Shared,
    cursors: Shared,
    cpus: usize,
    per_cpu: usize,
    /// Most slots that were ever waiting on one CPU.
    pub(crate) peak: usize,
    pub(crate) taken: u64,
}

impl SlotRings {
    pub(crate) fn new(
        slots: BorrowedFd<'_>,
        cursors: BorrowedFd<'_>,
        cpus: usize,
        per_cpu: usize,
    ) -> Result<Self, ProbeError> {
        Ok(Self {
            slots: Shared::new(slots, cpus * per_cpu * SLOT, "the slot rings")?,
            cursors: Shared::new(
                cursors,
                cpus * SlotCursor::SIZE,
                "the cursors of the slot rings",
            )?,
            cpus,
            per_cpu,
            peak: 0,
            taken: 0,
        })
    }

    /// Calls that CPU `cpu` has put into its ring since the beginning.
    pub(crate) fn written(&self, cpu: usize) -> u64 {
        self.cursors
            .word(cpu * SlotCursor::SIZE + SlotCursor::HEAD_AT)
            .load(Ordering::Acquire)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.per_cpu
    }

    /// Takes what is complete from every ring. `buffer` supplies the memory.
    pub(crate) fn drain(
        &mut self,
        out: &mut Vec<RawChunk>,
        mut buffer: impl FnMut(usize) -> Vec<u8>,
    ) {
        for cpu in 0..self.cpus {
            let head = self
                .cursors
                .word(cpu * SlotCursor::SIZE + SlotCursor::HEAD_AT)
                .load(Ordering::Acquire);
            let tail_word = self
                .cursors
                .word(cpu * SlotCursor::SIZE + SlotCursor::TAIL_AT);
            let tail = tail_word.load(Ordering::Relaxed);
            let waiting = head.wrapping_sub(tail) as usize;
            if waiting == 0 {
                continue;
            }
            self.peak = self.peak.max(waiting);
            let mut bytes = buffer(waiting * SLOT);
            let mut position = tail;
            while position != head {
                let index = cpu * self.per_cpu + (position as usize & (self.per_cpu - 1));
                let at = index * SLOT;
                // The kernel writes the first word last.
                let word = self.slots.word(at).load(Ordering::Acquire).to_ne_bytes();
                let lap = if position as usize & self.per_cpu == 0 {
                    SLOT_LAP as u8
                } else {
                    0
                };
                if word[0] & SLOT_LAP as u8 != lap || word[0] == 0 {
                    break;
                }
                bytes.push(word[0] & !(SLOT_LAP as u8));
                bytes.extend_from_slice(&word[1..]);
                // SAFETY: the rest of the slot is inside the mapping (`word` has checked its start,
                // slots are whole), and the kernel does not write it again before the tail has
                // passed it.
                let rest = unsafe {
                    std::slice::from_raw_parts(self.slots.start.as_ptr().add(at + 8), SLOT - 8)
                };
                bytes.extend_from_slice(rest);
                position = position.wrapping_add(1);
            }
            tail_word.store(position, Ordering::Release);
            self.taken += position.wrapping_sub(tail);
            if !bytes.is_empty() {
                out.push(RawChunk {
                    cpu: cpu as u32,
                    ring: Ring::Slot,
                    bytes,
                });
            }
        }
    }
}

/// The maps of the wide rings: BPF ring buffers, one for each CPU, and the map of them.
pub(crate) struct WideRingMaps {
    pub(crate) rings: Vec<MapHandle>,
    /// The rings by CPU.
    pub(crate) by_cpu: MapHandle,
}

impl WideRingMaps {
    /// Makes the rings, of so many `bytes` each. The map of them is empty.
    pub(crate) fn new(cpus: usize, bytes: u32) -> Result<Self, ProbeError> {
        let mut options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let ring =
            |_| MapHandle::create(MapType::RingBuf, Some("fathom_wide"), 0, 0, bytes, &options);
        let rings = (0..cpus).map(ring).collect::<Result<Vec<_>, _>>();
        let rings = rings.map_err(refused)?;
        // Kernels before 5.10 want inner maps of the size of the first.
        options.inner_map_fd = rings
            .first()
            .map_or(0, |ring| ring.as_fd().as_raw_fd() as u32);
        let by_cpu = MapHandle::create(
            MapType::ArrayOfMaps,
            Some("wide_rings"),
            4,
            4,
            cpus as u32,
            &options,
        );
        let by_cpu = by_cpu.map_err(refused)?;
        Ok(Self { rings, by_cpu })
    }

    /// Puts the rings into the map of them. The kernel waits after that until all programs that run have
    /// ended, which takes milliseconds; newer kernels wait once if they take all rings together.
    pub(crate) fn fill(&self) -> Result<(), ProbeError> {
        let cpus = 0..self.rings.len() as u32;
        let keys: Vec<u8> = cpus.clone().flat_map(u32::to_ne_bytes).collect();
        let fds = self.rings.iter().map(|ring| ring.as_fd().as_raw_fd());
        let fds: Vec<u8> = fds.flat_map(i32::to_ne_bytes).collect();
        let any = MapFlags::ANY;
        let together = self.by_cpu.update_batch(&keys, &fds, cpus.end, any, any);
        together
            .or_else(|_| {
                for (cpu, fd) in keys.chunks(4).zip(fds.chunks(4)) {
                    self.by_cpu.update(cpu, fd, any)?;
                }
                Ok(())
            })
            .map_err(refused)
    }
}

/// The wide rings of all CPUs.
pub(crate) struct WideRings {
    // Before `maps`, which it refers to.
    ring: RingBuffer<'static>,
    pending: Vec<Rc<RefCell<Vec<u8>>>>,
    crossed: Rc<RefCell<Crossed>>,
    maps: WideRingMaps,
}

impl WideRings {
    pub(crate) fn new(maps: WideRingMaps) -> Result<Self, ProbeError> {
        Self::consumer(maps).map_err(refused)
    }

    fn consumer(maps: WideRingMaps) -> Result<Self, libbpf_rs::Error> {
        let mut pending = Vec::new();
        let crossed = Rc::new(RefCell::new(Crossed::default()));
        let mut builder = RingBufferBuilder::new();
        for map in &maps.rings {
            let bytes = Rc::new(RefCell::new(Vec::new()));
            let sink = Rc::clone(&bytes);
            let counts = Rc::clone(&crossed);
            builder.add(map, move |record: &[u8]| {
                counts.borrow_mut().count(record.first());
                append_framed(&mut sink.borrow_mut(), record);
                0
            })?;
            pending.push(bytes);
        }
        let ring = builder.build()?;
        Ok(Self {
            ring,
            pending,
            crossed,
            maps,
        })
    }

    /// Returns when every program that was running has ended. The kernel waits for that whenever
    /// a map in a map of maps is replaced (`maybe_wait_bpf_programs`), also by itself.
    pub(crate) fn wait_for_programs(&self) -> Result<(), ProbeError> {
        let Some(ring) = self.maps.rings.first() else {
            return Ok(());
        };
        let (cpu, fd) = (0u32.to_ne_bytes(), ring.as_fd().as_raw_fd().to_ne_bytes());
        let put = self.maps.by_cpu.update(&cpu, &fd, MapFlags::ANY);
        put.map_err(refused)
    }

    /// Records that were taken.
    pub(crate) fn crossed(&self) -> Crossed {
        *self.crossed.borrow()
    }

    /// Takes what is complete from every ring.
    pub(crate) fn drain(&mut self, out: &mut Vec<RawChunk>) {
        // An error can only come from the callbacks, which return none.
        self.ring.consume_raw();
        for (cpu, pending) in self.pending.iter().enumerate() {
            let mut pending = pending.borrow_mut();
            if !pending.is_empty() {
                let bytes = std::mem::take(&mut *pending);
                out.push(RawChunk {
                    cpu: cpu as u32,
                    ring: Ring::Wide,
                    bytes,
                });
            }
        }
    }
}

fn refused(source: libbpf_rs::Error) -> ProbeError {
    ProbeError::Refused {
        what: "the wide rings".into(),
        source,
    }
}

/// The counters of all CPUs.
pub(crate) struct Stats {
    memory: Shared,
    cpus: usize,
}

impl Stats {
    pub(crate) fn new(map: BorrowedFd<'_>, cpus: usize) -> Result<Self, ProbeError> {
        Ok(Self {
            memory: Shared::new(map, cpus * CpuStats::SIZE, "the counters")?,
            cpus,
        })
    }

    /// The counters of each CPU.
    pub(crate) fn read(&self) -> Vec<CpuStats> {
        (0..self.cpus)
            .filter_map(|cpu| {
                let bytes: Vec<u8> = (0..CpuStats::SIZE / 8)
                    .flat_map(|i| {
                        let word = self.memory.word(cpu * CpuStats::SIZE + i * 8);
                        word.load(Ordering::Relaxed).to_ne_bytes()
                    })
                    .collect();
                CpuStats::parse(&bytes)
            })
            .collect()
    }
}

/// The count of recorded tasks that are alive. Read from memory: while a call of
/// bpf(2) looks into a map, the kernel runs no program of a classic tracepoint on
/// that CPU, not even for another task when the caller was preempted.
pub(crate) struct LiveTasks(Shared);

impl LiveTasks {
    pub(crate) fn new(map: BorrowedFd<'_>) -> Result<Self, ProbeError> {
        Ok(Self(Shared::new(map, 8, "the count of tasks")?))
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.word(0).load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, tasks: u64) {
        self.0.word(0).store(tasks, Ordering::Relaxed);
    }
}

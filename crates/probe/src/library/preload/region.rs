//! The memory that a process shares with the recorder (`bpf/include/library_region.h`). Its process
//! may write anything there, at any time: every number is checked before it is used.

use fathom_model::abi::{
    COUNT_SHARDS, COUNTED_AT, COUNTS_AT, DEFINITIONS_AT, LIBRARY_CALL_ABANDONED, MAX_DEFINITIONS,
    MAX_LIBRARY_DEPTH, MAX_REGION_THREADS, POOL_HEADER_BYTES, PROCESS_BYTES, REGION_FRAMES_AT,
    REGION_RINGS, REGION_SLOT_BYTES, REGION_THREAD_BYTES, RING_HEAD_BYTES, RING_HEADS_AT,
    RING_LOSS_AT, RING_SLOTS, RING_TAIL_AT, RINGS_AT, RegionDefinition, RegionFrame, RegionLoss,
    RegionPool, RegionProcess, RegionSlot, RegionThread, SLOT_CALL, SLOT_PATH, SLOT_PATH_BYTES,
    ShedValue, THREADS_AT,
};

use super::files::PreloadFiles;

const SLOT: usize = REGION_SLOT_BYTES as usize;
const THREAD: usize = REGION_THREAD_BYTES as usize;
/// Slots that are read at once, and threads.
const SLOTS_AT_ONCE: u64 = 8192;
const THREADS_AT_ONCE: u64 = 256;

/// A call that was in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InProgress {
    pub(super) tid: u32,
    pub(super) depth: u8,
    pub(super) parent_ns: u64,
    pub(super) frame: RegionFrame,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) slot: RegionSlot,
    pub(super) path: Vec<u8>,
}

/// A process's part of the pool.
#[derive(Debug)]
pub(super) struct Region {
    at: u64,
    place: u32,
    pub(super) pid: u32,
    pub(super) registered_ns: u64,
    tails: [u64; REGION_RINGS as usize],
    /// Calls that were begun and never written, because their process ended, and such that make no
    /// sense.
    damaged: u64,
}

impl Region {
    pub(super) fn open(files: &PreloadFiles, place: u32) -> Option<Self> {
        let at = u64::from(POOL_HEADER_BYTES) + u64::from(place) * u64::from(PROCESS_BYTES);
        let process = header(files, at)?;
        Some(Self {
            at,
            place,
            pid: u32::try_from(process.pid).ok()?,
            registered_ns: process.registered_ns,
            tails: [0; REGION_RINGS as usize],
            damaged: 0,
        })
    }

    /// Functions that were found since `known` of them were: number of the name, and path.
    pub(super) fn definitions(&self, files: &PreloadFiles, known: usize) -> Vec<(u32, Vec<u8>)> {
        let count = header(files, self.at).map_or(0, |process| process.definitions);
        let count = count.min(u64::from(MAX_DEFINITIONS));
        let new = known as u64..count;
        let read = |number: u64| {
            let mut bytes = [0; RegionDefinition::SIZE];
            let at = self.at + u64::from(DEFINITIONS_AT) + number * bytes.len() as u64;
            files.read(at, &mut bytes)?;
            let definition = RegionDefinition::parse(&bytes)?;
            let path = definition.path.get(..definition.path_len as usize)?;
            Some((definition.stub, path.to_vec()))
        };
        new.map_while(read).collect()
    }

    /// Asks the process to count the calls of a function only.
    pub(super) fn count_only(&self, files: &PreloadFiles, definition: u32) {
        if definition < MAX_DEFINITIONS {
            files.write(self.at + u64::from(COUNTED_AT + definition), &[1]);
        }
    }

    /// The calls of the first `functions` functions that were only counted.
    pub(super) fn counts(&self, files: &PreloadFiles, functions: usize) -> Vec<u64> {
        let mut sums = vec![0u64; functions.min(MAX_DEFINITIONS as usize)];
        let mut bytes = vec![0; 8 * sums.len()];
        for shard in 0..COUNT_SHARDS {
            let at = self.at + u64::from(COUNTS_AT) + u64::from(shard * MAX_DEFINITIONS) * 8;
            if files.read(at, &mut bytes).is_none() {
                continue;
            }
            for (sum, count) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *sum = sum.saturating_add(u64::from_ne_bytes(*count));
            }
        }
        sums
    }

    /// Calls that were not recorded.
    pub(super) fn unseen(&self, files: &PreloadFiles) -> u64 {
        header(files, self.at).map_or(0, |process| process.unseen)
    }

    /// The calls in which threads are, outermost first.
    pub(super) fn in_progress(&self, files: &PreloadFiles) -> Vec<InProgress> {
        let mut found = Vec::new();
        self.for_each_thread(files, |_, bytes| {
            let Some(thread) = RegionThread::parse(bytes).filter(|thread| thread.tid != 0) else {
                return;
            };
            let now_ns = crate::monotonic_ns();
            let mut parent_ns = 0;
            let frames = bytes.get(REGION_FRAMES_AT as usize..).unwrap_or_default();
            let frames = frames.chunks_exact(RegionFrame::SIZE);
            let depth = thread.depth.min(MAX_LIBRARY_DEPTH);
            for (depth, bytes) in (0..depth as u8).zip(frames) {
                // One that is about to begin has no time.
                let Some(frame) =
                    RegionFrame::parse(bytes).filter(|f| self.is_time(f.began_ns, now_ns))
                else {
                    return;
                };
                let tid = thread.tid;
                found.push(InProgress {
                    tid,
                    depth,
                    parent_ns,
                    frame,
                });
                parent_ns = frame.began_ns;
            }
        });
        found
    }

    /// Frees the places of threads that have ended.
    pub(super) fn forget_threads(&self, files: &PreloadFiles, ended: &[u32]) {
        let mut places = Vec::new();
        self.for_each_thread(files, |at, bytes| {
            if RegionThread::parse(bytes).is_some_and(|thread| ended.contains(&thread.tid)) {
                places.push(at);
            }
        });
        for at in places {
            // The depth first: a place without a thread is taken.
            files.write(at + 4, &[0; 4]);
            files.write(at, &[0; 4]);
        }
    }

    fn for_each_thread(&self, files: &PreloadFiles, mut with: impl FnMut(u64, &[u8])) {
        let threads = header(files, self.at).map_or(0, |process| process.threads);
        let threads = threads.min(u64::from(MAX_REGION_THREADS));
        let mut bytes = vec![0; THREAD * threads.min(THREADS_AT_ONCE) as usize];
        let mut first = 0;
        while first < threads {
            let count = (threads - first).min(THREADS_AT_ONCE);
            let at = self.at + u64::from(THREADS_AT) + first * THREAD as u64;
            let Some(part) = bytes.get_mut(..THREAD * count as usize) else {
                return;
            };
            if files.read(at, part).is_none() {
                return;
            }
            for (number, thread) in (0u64..).zip(part.chunks_exact(THREAD)) {
                with(at + number * THREAD as u64, thread);
            }
            first += count;
        }
    }

    /// Takes the calls that have ended. `is_over`: nothing is written any more, so what was begun
    /// stays as it is.
    pub(super) fn ended(&mut self, files: &PreloadFiles, is_over: bool) -> Vec<Ended> {
        let mut calls = Vec::new();
        for ring in 0..REGION_RINGS {
            self.take_ring(files, ring, is_over, &mut calls);
        }
        calls
    }

    fn take_ring(
        &mut self,
        files: &PreloadFiles,
        ring: u32,
        is_over: bool,
        calls: &mut Vec<Ended>,
    ) {
        let head_at = self.at + u64::from(RING_HEADS_AT) + u64::from(ring * RING_HEAD_BYTES);
        let tail_at = head_at + u64::from(RING_TAIL_AT);
        let Some(head) = files.read_number(head_at) else {
            return;
        };
        let Some(tail) = self.tails.get_mut(ring as usize) else {
            return;
        };
        let before = *tail;
        if head.wrapping_sub(before) > u64::from(RING_SLOTS) {
            // No process of ours has written that.
            self.damaged += 1;
            *tail = head;
            files.write(tail_at, &head.to_ne_bytes());
            return;
        }
        let slots_at =
            self.at + u64::from(RINGS_AT) + u64::from(ring) * u64::from(RING_SLOTS) * SLOT as u64;
        let mut position = before;
        let mut damaged = 0;
        let mut bytes = vec![0; SLOT * (head - before).min(SLOTS_AT_ONCE) as usize];
        // Marks may lead behind the head, too.
        while position < head {
            let index = position % u64::from(RING_SLOTS);
            let count = (head - position)
                .min(SLOTS_AT_ONCE)
                .min(u64::from(RING_SLOTS) - index);
            let at = slots_at + index * SLOT as u64;
            let Some(part) = bytes.get_mut(..SLOT * count as usize) else {
                break;
            };
            if files.read(at, part).is_none() {
                break;
            }
            // Slots that were whole are read again: the first time its parts may have been read before
            // they were written.
            let whole = whole_slots(part, position, is_over);
            let Some(part) = part.get_mut(..SLOT * whole) else {
                break;
            };
            if whole == 0 || files.read(at, part).is_none() {
                break;
            }
            // A path goes on behind this part, and behind the end of the ring.
            let further = |behind: u64| {
                let index = (position + behind) % u64::from(RING_SLOTS);
                let mut slot = [0; SLOT];
                files.read(slots_at + index * SLOT as u64, &mut slot)?;
                Some(slot)
            };
            let taken = take(part, position, calls, &mut damaged, further);
            position += taken;
            if taken < whole as u64 || (whole as u64) < count {
                break;
            }
        }
        if position != before {
            if let Some(tail) = self.tails.get_mut(ring as usize) {
                *tail = position;
            }
            files.write(tail_at, &position.to_ne_bytes());
        }
        self.damaged += damaged;
    }

    /// Calls that found no room or are no calls, since the process began.
    pub(super) fn lost(&self, files: &PreloadFiles) -> ShedValue {
        let mut all = ShedValue::NOTHING;
        for ring in 0..REGION_RINGS {
            let at = self.at + u64::from(RING_HEADS_AT) + u64::from(ring * RING_HEAD_BYTES);
            let mut bytes = [0; RegionLoss::SIZE];
            let read = files.read(at + u64::from(RING_LOSS_AT), &mut bytes);
            let Some(loss) = read.and_then(|()| RegionLoss::parse(&bytes)) else {
                continue;
            };
            all.add(&ShedValue {
                count: loss.count,
                dur_ns: loss.dur_ns,
                max_dur_ns: loss.max_dur_ns,
                first_at_ns: loss.first_at_ns,
                last_at_ns: loss.last_at_ns,
                hist: loss.hist,
                ..ShedValue::NOTHING
            });
        }
        all.count = all.count.saturating_add(self.damaged);
        if let Some(shortest) = all.hist.first_mut() {
            *shortest = shortest.saturating_add(self.damaged);
        }
        all
    }

    /// Whether a call can have begun or ended then.
    pub(super) fn is_time(&self, at_ns: u64, now_ns: u64) -> bool {
        at_ns != 0 && (self.registered_ns..=now_ns).contains(&at_ns)
    }

    /// A call makes no sense.
    pub(super) fn damaged(&mut self) {
        self.damaged += 1;
    }

    /// Frees it for another process.
    pub(super) fn free(&self, files: &PreloadFiles) {
        files.forget(self.at, u64::from(PROCESS_BYTES));
        let state = RegionPool::STATES_AT as u64 + u64::from(self.place) * 8;
        files.write(state, &[0; 8]);
    }
}

fn header(files: &PreloadFiles, at: u64) -> Option<RegionProcess> {
    let mut bytes = [0; RegionProcess::SIZE];
    files.read(at, &mut bytes)?;
    RegionProcess::parse(&bytes)
}

fn mark(slot: &[u8]) -> (u64, u32) {
    let mark = slot
        .first_chunk()
        .map_or(0, |mark| u64::from_ne_bytes(*mark));
    (mark >> 8, mark as u32 & 0xff)
}

/// Slots from the beginning of `bytes` that were written; with `is_over` all, as no others will be.
fn whole_slots(bytes: &[u8], position: u64, is_over: bool) -> usize {
    let slots = (position + 1..).zip(bytes.chunks_exact(SLOT));
    slots
        .take_while(|(position, slot)| is_over || mark(slot).0 == *position)
        .count()
}

/// Takes the calls in `bytes`; returns how many slots they took. `further` reads slots behind those.
fn take(
    bytes: &[u8],
    position: u64,
    calls: &mut Vec<Ended>,
    damaged: &mut u64,
    further: impl Fn(u64) -> Option<[u8; SLOT]>,
) -> u64 {
    let slots = (bytes.len() / SLOT) as u64;
    let mut at = 0;
    while at < slots {
        let slot = bytes.get(at as usize * SLOT..).unwrap_or_default();
        let (marked, kind) = mark(slot);
        let slot = RegionSlot::parse(slot);
        at += 1;
        match slot {
            Some(slot) if marked == position + at && kind == SLOT_CALL => {
                let Some(path) = path(bytes, &slot, at, position, &further) else {
                    *damaged += 1;
                    continue;
                };
                at += (path.len() as u64).div_ceil(u64::from(SLOT_PATH_BYTES));
                calls.push(Ended { slot, path });
            }
            // Of a call that was never written.
            _ if marked == position + at && kind == SLOT_PATH => {}
            _ => *damaged += 1,
        }
    }
    at
}

/// The path behind a call.
fn path(
    bytes: &[u8],
    slot: &RegionSlot,
    at: u64,
    position: u64,
    further: &impl Fn(u64) -> Option<[u8; SLOT]>,
) -> Option<Vec<u8>> {
    let length = usize::from(slot.path_len);
    let mut path = Vec::new();
    let mut at = at;
    while path.len() < length {
        let inside = bytes.get(at as usize * SLOT..(at as usize + 1) * SLOT);
        let owned = match inside {
            Some(inside) => inside.to_vec(),
            None => further(at)?.to_vec(),
        };
        if mark(&owned) != (position + at + 1, SLOT_PATH) {
            return None;
        }
        path.extend_from_slice(owned.get(8..)?);
        at += 1;
    }
    path.truncate(length);
    Some(path)
}

/// Whether a process of ours may have written the flags.
pub(super) fn flags_are_known(flags: u8) -> bool {
    u32::from(flags) & !LIBRARY_CALL_ABANDONED == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A region in files of its own; none where there is no object for the processor.
    fn region() -> Option<(PreloadFiles, Region)> {
        let files =
            fathom_preload::is_available().then(|| PreloadFiles::new(&[], None).unwrap())?;
        let at = u64::from(POOL_HEADER_BYTES);
        files.write(at + RegionProcess::PID_AT as u64, &7u64.to_ne_bytes())?;
        let region = Region::open(&files, 0)?;
        Some((files, region))
    }

    fn slot(position: u64, path_len: u16) -> RegionSlot {
        RegionSlot {
            mark: (position + 1) << 8 | u64::from(SLOT_CALL),
            began_ns: 100 + position,
            dur_ns: 5,
            parent_ns: 0,
            args: [1, 2, 3, 4, 5, 6],
            ret: 3,
            tid: 8,
            fd: 3,
            definition: 0,
            depth: 0,
            flags: 0,
            path_len,
            cpu: 1,
            reserved: [0; 3],
        }
    }

    /// Writes into ring 0.
    fn put(files: &PreloadFiles, region: &Region, position: u64, bytes: &[u8]) {
        let index = position % u64::from(RING_SLOTS);
        let at = region.at + u64::from(RINGS_AT) + index * SLOT as u64;
        files.write(at, bytes).unwrap();
    }

    fn put_path(files: &PreloadFiles, region: &Region, position: u64, path: &[u8]) {
        let mark = (position + 1) << 8 | u64::from(SLOT_PATH);
        put(
            files,
            region,
            position,
            &[&mark.to_ne_bytes()[..], path].concat(),
        );
    }

    fn set_head(files: &PreloadFiles, region: &Region, head: u64) {
        let at = region.at + u64::from(RING_HEADS_AT);
        files.write(at, &head.to_ne_bytes()).unwrap();
    }

    #[test]
    fn calls_and_their_paths() {
        let Some((files, mut region)) = region() else {
            return;
        };
        let path = [b'p'; 130];
        put(&files, &region, 0, &slot(0, 130).to_bytes());
        put_path(&files, &region, 1, &path[..120]);
        put_path(&files, &region, 2, &path[120..]);
        put(&files, &region, 3, &slot(3, 0).to_bytes());
        // This one is about to be written.
        set_head(&files, &region, 5);
        let calls = region.ended(&files, false);
        assert_eq!(calls.len(), 2);
        assert_eq!(
            (&calls[0].path[..], calls[0].slot),
            (&path[..], slot(0, 130))
        );
        assert_eq!((&calls[1].path[..], calls[1].slot), (&b""[..], slot(3, 0)));
        let tail = region.at + u64::from(RING_HEADS_AT) + u64::from(RING_TAIL_AT);
        assert_eq!(files.read_number(tail), Some(4));
        assert_eq!(region.ended(&files, false), []);
        // Its process is over: it was never written.
        assert_eq!(
            (region.ended(&files, true), region.lost(&files).count),
            (vec![], 1)
        );
        assert_eq!(files.read_number(tail), Some(5));
    }

    #[test]
    fn the_ring_goes_round() {
        let Some((files, mut region)) = region() else {
            return;
        };
        let last = u64::from(RING_SLOTS) - 1;
        region.tails[0] = last;
        put(&files, &region, last, &slot(last, 3).to_bytes());
        put_path(&files, &region, last + 1, b"abc");
        put(&files, &region, last + 2, &slot(last + 2, 0).to_bytes());
        set_head(&files, &region, last + 3);
        let mut calls = region.ended(&files, false);
        calls.extend(region.ended(&files, false));
        let paths: Vec<_> = calls.iter().map(|call| &call.path[..]).collect();
        assert_eq!(paths, [&b"abc"[..], b""]);
    }

    #[test]
    fn impossible_numbers_are_counted() {
        let Some((files, mut region)) = region() else {
            return;
        };
        set_head(&files, &region, u64::MAX);
        assert_eq!(
            (region.ended(&files, false), region.lost(&files).count),
            (vec![], 1)
        );
        // A path that is none, and more threads and functions than there are.
        region.tails[0] = 0;
        put(&files, &region, 0, &slot(0, u16::MAX).to_bytes());
        put(&files, &region, 1, &slot(1, 0).to_bytes());
        set_head(&files, &region, 2);
        assert_eq!(region.ended(&files, false).len(), 1);
        assert_eq!(region.lost(&files).count, 2);
        let process = RegionProcess {
            pid: 7,
            registered_ns: 0,
            threads: u64::MAX,
            definitions: u64::MAX,
            unseen: 3,
            thread_hint: 0,
            reserved: [0; 2],
        };
        files.write(region.at, &process.to_bytes()).unwrap();
        assert_eq!(region.in_progress(&files), []);
        assert_eq!(
            region.definitions(&files, 0).len(),
            MAX_DEFINITIONS as usize
        );
        assert_eq!(region.unseen(&files), 3);
        region.free(&files);
        assert_eq!(region.unseen(&files), 0);
    }

    #[test]
    fn threads_and_the_calls_that_they_are_in() {
        let Some((files, region)) = region() else {
            return;
        };
        let count = region.at + RegionProcess::THREADS_AT as u64;
        files.write(count, &2u64.to_ne_bytes()).unwrap();
        let frame = |began_ns| RegionFrame {
            began_ns,
            sp: 0,
            args: [0; 6],
            definition: 0,
            fd: -1,
        };
        let second = region.at + u64::from(THREADS_AT) + THREAD as u64;
        let thread = RegionThread { tid: 8, depth: 3 };
        files.write(second, &thread.to_bytes()).unwrap();
        let frames = [
            frame(5).to_bytes(),
            frame(6).to_bytes(),
            frame(0).to_bytes(),
        ]
        .concat();
        files
            .write(second + u64::from(REGION_FRAMES_AT), &frames)
            .unwrap();
        let found = region.in_progress(&files);
        let found: Vec<_> = found
            .iter()
            .map(|c| (c.tid, c.depth, c.frame.began_ns, c.parent_ns))
            .collect();
        // The innermost one is about to begin.
        assert_eq!(found, [(8, 0, 5, 0), (8, 1, 6, 5)]);
        region.forget_threads(&files, &[8]);
        assert_eq!(region.in_progress(&files), []);
    }
}

//! Order and counts of the merge, with random rings.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use fathom_decode::{DecodeError, Event, Merge, decode};
use fathom_model::abi::{
    CallRecord, FileRecord, RECORD_CALL, RECORD_FILE, RECORD_TASK, TaskRecord,
};
use fathom_model::raw::{RawChunk, Ring};

fn call(ts_ns: u64, dur_ns: u64, tag: u32) -> Vec<u8> {
    let record = CallRecord {
        kind: RECORD_CALL as u8,
        ts_ns,
        dur_ns,
        tid: tag,
        ..CallRecord::parse(&[0; CallRecord::SIZE]).unwrap()
    };
    record.to_bytes().to_vec()
}

fn file(ts_ns: u64, tag: u32) -> Vec<u8> {
    let record = FileRecord {
        kind: RECORD_FILE as u8,
        ts_ns,
        handle: tag,
        path_len: 5,
        ..FileRecord::parse(&[0; FileRecord::SIZE]).unwrap()
    };
    let mut bytes = record.to_bytes().to_vec();
    bytes.extend_from_slice(b"a/bb/");
    bytes
}

fn task(ts_ns: u64, tag: u32) -> Vec<u8> {
    let record = TaskRecord {
        kind: RECORD_TASK as u8,
        ts_ns,
        tid: tag,
        ..TaskRecord::parse(&[0; TaskRecord::SIZE]).unwrap()
    };
    record.to_bytes().to_vec()
}

fn framed(record: &[u8]) -> Vec<u8> {
    let mut bytes = (record.len() as u64).to_ne_bytes().to_vec();
    bytes.extend_from_slice(record);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn tag(event: &Event<'_>) -> u32 {
    match event {
        Event::Call(r) | Event::CachedCall { call: r, .. } | Event::Operation { call: r, .. } => {
            r.tid
        }
        Event::Wide { record, .. } => record.call.tid,
        Event::Data { record, .. } => record.call.tid,
        Event::File { record, .. } => record.handle,
        Event::Task { record, .. } => record.tid,
        Event::Mount { record, .. } => record.fs_dev,
        Event::FunctionName { record, .. } => record.span.into(),
        Event::Container { record, .. } => record.id_len.into(),
        Event::Fault(r) => r.tid,
        Event::Writeback(r) => r.tid,
        Event::Block { record, .. } => record.dev,
        Event::Wait(r) => r.tid,
        Event::Irq(r) => r.tid,
        Event::Span(r) => r.tid,
        Event::Stack(r) => r.tid,
        Event::Counters(r) => r.tid,
        Event::Frame { record, .. } => record.stack,
        Event::LibraryCall { record, .. } => record.tid,
        Event::Function { record, .. } => u32::from(record.function),
        Event::LibraryCount(r) => r.pid,
        Event::Usdt { record, .. } => record.tid,
        Event::UsdtPlace { record, .. } => u32::from(record.place),
        Event::Context { record, .. } => record.tid,
        Event::ContextProcess { record, .. } => record.pid,
    }
}

/// Everything that a drained merge yields: CPU, time, whether a call, tag.
fn all(merge: &mut Merge, until: Option<u64>) -> Vec<(u32, u64, bool, u32)> {
    let mut seen = Vec::new();
    let sink = |cpu, e: &Event<'_>| seen.push((cpu, e.time_ns(), e.is_call(), tag(e)));
    match until {
        Some(ns) => merge.drain_until(ns, sink),
        None => merge.drain_all(sink),
    }
    seen
}

#[test]
fn any_permutation_comes_out_in_order() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let cpus = rng.u32(1..6);
        let count = rng.u32(1..400);
        let spread = *rng.choice(&[3u64, 50, 1_000_000]).unwrap();
        let mut merge = Merge::new();
        let mut expected = Vec::new();
        let mut chunks: Vec<(u32, Ring, Vec<Vec<u8>>)> = Vec::new();
        for tag in 0..count {
            let cpu = rng.u32(0..cpus);
            let (ts, dur) = (rng.u64(1..=spread), rng.u64(0..spread));
            let (ring, bytes, time, is_call) = match rng.u32(0..10) {
                0 => (Ring::Wide, framed(&file(ts, tag)), ts, false),
                1 => (Ring::Wide, framed(&task(ts, tag)), ts, false),
                2 => (Ring::Wide, framed(&call(ts, dur, tag)), ts + dur, true),
                _ => (Ring::Slot, call(ts, dur, tag), ts + dur, true),
            };
            expected.push((cpu, time, is_call, tag));
            match chunks
                .iter_mut()
                .find(|c| c.0 == cpu && c.1 == ring && c.2.len() < 40)
            {
                Some(chunk) => chunk.2.push(bytes),
                None => chunks.push((cpu, ring, vec![bytes])),
            }
        }
        rng.shuffle(&mut chunks);
        for (cpu, ring, mut records) in chunks {
            rng.shuffle(&mut records);
            merge.push(RawChunk {
                cpu,
                ring,
                bytes: records.concat(),
            });
        }
        assert_eq!(merge.pending(), count as usize);
        let middle = rng.u64(0..spread * 2);
        let mut seen = all(&mut merge, Some(middle));
        assert!(seen.iter().all(|e| e.1 < middle), "seed {seed}");
        let rest = all(&mut merge, None);
        assert!(rest.iter().all(|e| e.1 >= middle), "seed {seed}");
        seen.extend(rest);
        assert_eq!(merge.pending(), 0);
        assert_eq!(merge.stats().late, 0);
        assert!(
            seen.is_sorted_by_key(|(_, time, is_call, _)| (*time, *is_call)),
            "seed {seed}: {seen:?}"
        );
        expected.sort();
        seen.sort();
        assert_eq!(seen, expected, "seed {seed}");
    }
}

#[test]
fn random_bytes_never_panic_and_every_byte_counts() {
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut merge = Merge::new();
        let (mut slot, mut wide) = (0, 0);
        for _ in 0..rng.usize(1..8) {
            let mut bytes: Vec<u8> = (0..rng.usize(0..3000)).map(|_| rng.u8(..)).collect();
            let ring = if rng.bool() { Ring::Slot } else { Ring::Wide };
            if rng.bool() {
                // Plausible kinds and frames, so that decoding gets further.
                for i in (0..bytes.len()).step_by(64) {
                    bytes[i] = rng.u8(0..5);
                    let end = bytes.len().min(i + 8);
                    if ring == Ring::Wide {
                        bytes[i..end].fill(0);
                        bytes[i] = 56;
                    }
                }
            }
            let _ = decode(ring, &bytes);
            match ring {
                Ring::Slot => slot += bytes.len() as u64,
                Ring::Wide => wide += bytes.len() as u64,
            }
            merge.push(RawChunk {
                cpu: rng.u32(..),
                ring,
                bytes,
            });
            let pending = merge.pending();
            let drained = all(&mut merge, Some(rng.u64(..)));
            assert_eq!(drained.len() + merge.pending(), pending);
        }
        all(&mut merge, None);
        assert_eq!(merge.pending(), 0, "seed {seed}");
        let stats = merge.stats();
        assert_eq!((stats.slot.bytes, stats.wide.bytes), (slot, wide));
        assert_eq!(stats.slot.records * 64 + stats.slot.damaged_bytes, slot);
    }
}

#[test]
fn damage_costs_one_record() {
    let mut merge = Merge::new();
    let mut slots = [call(1, 0, 1), call(2, 0, 2), call(3, 0, 3)].concat();
    slots[64] = 0;
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Slot,
        bytes: slots,
    });
    let mut odd = file(4, 4);
    odd[0] = 99;
    let wide = [framed(&file(4, 4)), framed(&odd), framed(&task(5, 5))].concat();
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes: wide,
    });
    let tags: Vec<u32> = all(&mut merge, None).iter().map(|e| e.3).collect();
    assert_eq!(tags, [1, 3, 4, 5]);
    let stats = merge.stats();
    assert_eq!((stats.slot.records, stats.slot.damaged), (2, 1));
    assert_eq!((stats.wide.records, stats.wide.damaged), (2, 1));
    assert_eq!(
        stats.last_error,
        Some(DecodeError::Kind {
            kind: 99,
            ring: Ring::Wide
        })
    );
}

#[test]
fn a_damaged_frame_costs_the_rest_of_its_chunk() {
    let mut merge = Merge::new();
    let mut bytes = [framed(&task(1, 1)), framed(&task(2, 2))].concat();
    let second = bytes.len() / 2;
    bytes[second + 3] = 1;
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes,
    });
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes: framed(&task(3, 3)),
    });
    let tags: Vec<u32> = all(&mut merge, None).iter().map(|e| e.3).collect();
    assert_eq!(tags, [1, 3]);
    assert_eq!(merge.stats().wide.damaged, 1);
}

#[test]
fn late_records_come_out_and_are_counted() {
    let mut merge = Merge::new();
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Slot,
        bytes: call(10, 0, 1),
    });
    assert_eq!(all(&mut merge, Some(20)).len(), 1);
    merge.push(RawChunk {
        cpu: 1,
        ring: Ring::Slot,
        bytes: call(5, 0, 2),
    });
    assert_eq!(all(&mut merge, Some(20)).len(), 1);
    assert_eq!(merge.stats().late, 1);
}

#[test]
fn times_that_no_clock_has_are_damage() {
    const LAST: u64 = (1 << 60) - 1;
    let mut merge = Merge::new();
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Slot,
        bytes: [
            call(LAST, 0, 1),
            call(1, LAST, 3),
            call(LAST, 1, 5),
            call(u64::MAX, u64::MAX, 7),
        ]
        .concat(),
    });
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Wide,
        bytes: [framed(&file(LAST, 2)), framed(&file(u64::MAX, 2))].concat(),
    });
    assert_eq!(all(&mut merge, Some(LAST - 1)).len(), 0);
    assert_eq!(all(&mut merge, None).len(), 2);
    let stats = merge.stats();
    assert_eq!((stats.slot.damaged, stats.wide.damaged), (3, 1));
}

#[test]
fn buffers_are_used_again() {
    let mut merge = Merge::new();
    assert!(merge.spare_buffer().is_none());
    merge.push(RawChunk {
        cpu: 0,
        ring: Ring::Slot,
        bytes: call(1, 0, 1),
    });
    all(&mut merge, None);
    let buffer = merge.spare_buffer().unwrap();
    assert!(buffer.is_empty() && buffer.capacity() >= 64);
}

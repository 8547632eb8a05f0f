//! Any bytes in the rings: merge, decode, enrich.
//!
//! Run with `cargo +nightly fuzz run records` in crates/decode.

#![no_main]

use fathom_decode::Merge;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::raw::{RawChunk, Ring};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut merge = Merge::new();
    let mut enricher = Enricher::new(EnrichOptions { max_files: 8, max_threads: 8, calls_left_out: false });
    let (mut calls, mut rows) = (0, 0);
    let mut rest = data;
    // Chunks: a byte of ring and CPU, a 16-bit length, the bytes.
    while let Some(([head, l0, l1], behind)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([*l0, *l1])).min(behind.len());
        let (bytes, behind) = behind.split_at(len);
        rest = behind;
        let ring = if head & 1 == 0 { Ring::Slot } else { Ring::Wide };
        merge.push(RawChunk { cpu: u32::from(head >> 1), ring, bytes: bytes.to_vec() });
        if head & 2 != 0 {
            merge.drain_until(u64::from(*l0) << 56, |cpu, event| {
                calls += u64::from(event.is_call());
                enricher.event(cpu, event);
            });
        }
    }
    merge.drain_all(|cpu, event| {
        calls += u64::from(event.is_call());
        enricher.event(cpu, event);
    });
    assert_eq!(merge.pending(), 0);
    for batch in enricher.take() {
        if batch.table.name == "syscalls" {
            rows += batch.len() as u64;
        }
        for column in &batch.columns {
            assert_eq!(column.len(), batch.len());
        }
    }
    assert_eq!((rows, enricher.totals()), (calls, calls));
});

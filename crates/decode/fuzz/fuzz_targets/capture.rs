//! Any bytes as a capture: read to its end, drained, enriched.
//!
//! Run with `cargo +nightly fuzz run capture` in crates/decode.

#![no_main]

use fathom_decode::Merge;
use fathom_decode::capture::{Frame, Reader};
use fathom_enrich::{EnrichOptions, Enricher};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(data) else { return };
    let mut merge = Merge::new();
    let mut enricher = Enricher::new(EnrichOptions { max_files: 8, max_threads: 8, calls_left_out: false });
    while let Ok(Some(frame)) = reader.next_frame() {
        match frame {
            Frame::Chunk(chunk) => merge.push(chunk),
            Frame::Watermark(ns) => merge.drain_until(ns, |cpu, event| enricher.event(cpu, event)),
            Frame::Losses(losses) => {
                let _ = enricher.losses(&losses.per_cpu, &losses.split);
            }
        }
    }
    merge.drain_all(|cpu, event| enricher.event(cpu, event));
    let _ = (enricher.take(), enricher.decode_losses(&merge.stats()));
});

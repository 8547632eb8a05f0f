//! The cost of a call in allocations, which do not depend on the machine: none, once its file and
//! its thread are known.
#![allow(clippy::unwrap_used)]

mod common;

use fathom_decode::Event;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{CacheFacts, CallRecord};
use fathom_testkit::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CALLS: u64 = 4096;

/// Reads from the page cache.
fn cached_reads(enricher: &mut Enricher, from_ns: u64) {
    for i in 0..CALLS {
        let ts_ns = from_ns + i * 100;
        let cache = CacheFacts {
            pages: 1,
            ..CacheFacts::parse(&[0; CacheFacts::SIZE]).unwrap()
        };
        let call = CallRecord {
            file: 1,
            fd: 3,
            size: 4096,
            ..common::call("pread64", ts_ns, 4096)
        };
        enricher.event(0, &Event::CachedCall { call, cache });
    }
}

#[test]
fn a_cached_read_allocates_nothing() {
    let mut enricher = Enricher::new(EnrichOptions::default());
    let mut begin = 1_000;
    for _ in 0..3 {
        cached_reads(&mut enricher, begin);
        begin += CALLS * 100;
        enricher.take();
    }
    // Names of a batch's first call are written to the batch.
    cached_reads(&mut enricher, begin);
    let rows = enricher.pending_rows();
    enricher.take();
    begin += CALLS * 100;
    let before = allocations();
    cached_reads(&mut enricher, begin);
    let allocated = allocations() - before;
    assert_eq!((rows, enricher.pending_rows()), (CALLS as usize, rows));
    assert!(allocated < 32, "{allocated} for {CALLS} calls");
}

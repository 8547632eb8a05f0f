//! What a call costs in allocations, which do not depend on the machine: none, once its file
//! and its thread are known.
#![allow(unsafe_code, clippy::unwrap_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fathom_decode::Event;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{CacheFacts, CallRecord};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is left to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Not while the thread ends.
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

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
    // What the first call of a batch names is written to the batch.
    cached_reads(&mut enricher, begin);
    let rows = enricher.pending_rows();
    enricher.take();
    begin += CALLS * 100;
    let before = COUNT.with(Cell::get);
    cached_reads(&mut enricher, begin);
    let allocations = COUNT.with(Cell::get) - before;
    assert_eq!((rows, enricher.pending_rows()), (CALLS as usize, rows));
    assert!(allocations < 32, "{allocations} for {CALLS} calls");
}

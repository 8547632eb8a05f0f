//! The cost of a call in allocations, which do not depend on the machine: none, once its file and
//! its thread are known, also if it waited for a device.
#![allow(clippy::unwrap_used)]

mod common;

use fathom_decode::Event;
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{
    BIO_CACHE_READ, BioRecord, BlockRecord, CacheFacts, CallRecord, RECORD_WAIT, WAIT_IO,
    WAIT_WOKEN, WaitRecord,
};
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

/// Reads that wait for one request to a device each.
fn reads_from_a_device(enricher: &mut Enricher, from_ns: u64) {
    for i in 0..CALLS {
        let ts_ns = from_ns + i * 1000;
        let bio = BioRecord {
            queued_at_ns: ts_ns + 50,
            cause_ns: ts_ns,
            submit_ns: ts_ns,
            sector: 8 * i,
            bytes: 4096,
            cause_tid: 10,
            cause_pid: 10,
            submit_tid: 10,
            submit_pid: 10,
            file: 1,
            origin: BIO_CACHE_READ,
            ..BioRecord::parse(&[0; BioRecord::SIZE]).unwrap()
        };
        let record = BlockRecord {
            bios: 1,
            issued_at_ns: ts_ns + 200,
            completed_at_ns: ts_ns + 740,
            sector: 8 * i,
            bytes: 4096,
            ..BlockRecord::parse(&[0; BlockRecord::SIZE]).unwrap()
        };
        let bios = bio.to_bytes();
        let bios = bios.as_slice();
        enricher.event(0, &Event::Block { record, bios });
        let wait = WaitRecord {
            kind: RECORD_WAIT as u8,
            flags: (WAIT_IO | WAIT_WOKEN) as u8,
            ts_ns: ts_ns + 100,
            dur_ns: 700,
            wake_ns: ts_ns + 750,
            pid: 10,
            tid: 10,
            request_ns: ts_ns,
            ..WaitRecord::parse(&[0; WaitRecord::SIZE]).unwrap()
        };
        enricher.event(0, &Event::Wait(wait));
        let call = CallRecord {
            file: 1,
            fd: 3,
            size: 4096,
            dur_ns: 900,
            ..common::call("pread64", ts_ns, 4096)
        };
        let cache = CacheFacts::parse(&[0; CacheFacts::SIZE]).unwrap();
        enricher.event(0, &Event::CachedCall { call, cache });
    }
}

#[test]
fn a_read_from_a_device_allocates_nothing() {
    let mut enricher = Enricher::new(EnrichOptions::default());
    let mut begin = 1_000;
    for _ in 0..3 {
        reads_from_a_device(&mut enricher, begin);
        begin += CALLS * 1000;
        enricher.take();
    }
    let before = allocations();
    reads_from_a_device(&mut enricher, begin);
    let allocated = allocations() - before;
    // The call, its wait, its request to the device, and four visits of layers or more.
    assert!(enricher.pending_rows() as u64 >= 7 * CALLS);
    assert!(allocated < CALLS / 16, "{allocated} for {CALLS} calls");
}

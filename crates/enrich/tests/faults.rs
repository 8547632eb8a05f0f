//! Rows of page faults and of write-back.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::*;
use fathom_decode::{Event, decode};
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{
    FAULT_EXEC, FAULT_FAILED, FAULT_KERNEL, FAULT_MAJOR, FAULT_NO_BEGIN, FAULT_NO_END,
    FAULT_PRESENT, FAULT_SHARED, FAULT_WRITE, FaultRecord, RECORD_FAULT, RECORD_WRITEBACK,
    WRITEBACK_CONTIGUOUS, WRITEBACK_IN_CALL, WritebackRecord,
};
use fathom_model::raw::Ring;
use fathom_model::syscalls::Syscall;

const COLUMNS: [&str; 10] = [
    "rid",
    "dur_ns",
    "comm",
    "access",
    "kind",
    "cause",
    "origin",
    "mapping",
    "path",
    "file_offset",
];

fn enricher() -> Enricher {
    let mut enricher = Enricher::new(EnrichOptions::default());
    for record in [
        task(10, "prog", 1),
        file(2, 51, 0o100644, 1, b"f/u/home/"),
        file(3, 52, 0o100644, 1, b"\xff\x1b/data/"),
    ] {
        enricher.event(0, &decode(Ring::Wide, &record).unwrap());
    }
    enricher
}

fn fault(flags: u32) -> FaultRecord {
    FaultRecord {
        kind: RECORD_FAULT as u8,
        flags: flags as u16,
        ts_ns: 100,
        dur_ns: 7,
        pid: 10,
        tid: 10,
        address: 0x7000_0005,
        offset: 4101,
        file: 2,
        ..FaultRecord::parse(&[0; FaultRecord::SIZE]).unwrap()
    }
}

#[test]
fn flags_become_words() {
    let mut enricher = enricher();
    for flags in [
        FAULT_SHARED,
        FAULT_WRITE | FAULT_MAJOR,
        FAULT_EXEC | FAULT_FAILED | FAULT_MAJOR | FAULT_SHARED,
        FAULT_WRITE | FAULT_PRESENT | FAULT_KERNEL | FAULT_SHARED,
        FAULT_NO_BEGIN | FAULT_MAJOR,
        FAULT_NO_END | FAULT_WRITE,
    ] {
        enricher.event(1, &Event::Fault(fault(flags)));
    }
    assert_eq!((enricher.pending_rows(), enricher.totals()), (6, 0));
    let batches = enricher.take();
    batches.iter().for_each(check);
    let faults = batch(&batches, "faults");
    let rows: Vec<String> = (0..6).map(|i| row(faults, i, &COLUMNS)).collect();
    assert_eq!(
        rows,
        [
            "1 | 7 | prog | read | minor | absent | user | shared | /home/u/f | 4101",
            "2 | 7 | prog | write | major | absent | user | private | /home/u/f | 4101",
            "3 | 7 | prog | exec | failed | absent | user | shared | /home/u/f | 4101",
            "4 | 7 | prog | write | minor | protected | kernel | shared | /home/u/f | 4101",
            "5 | - | prog | - | major | - | - | private | /home/u/f | 4101",
            "6 | - | prog | write | - | absent | user | private | /home/u/f | 4101",
        ]
    );
    assert!(enricher.take().is_empty());
}

#[test]
fn ids_go_on_over_all_tables_and_batches() {
    let mut enricher = enricher();
    enricher.event(0, &Event::Call(call("fsync", 10, 0)));
    let around = FaultRecord {
        around_from: -5,
        around_bytes: 65536,
        added: 16,
        handles: 1,
        file: 0,
        tid: 99,
        ..fault(0)
    };
    enricher.event(0, &Event::Fault(around));
    let first = enricher.take();
    enricher.event(0, &Event::Fault(fault(0)));
    enricher.event(0, &Event::Call(call("fsync", 200, 0)));
    let second = enricher.take();
    let columns = [
        "rid",
        "comm",
        "file_id",
        "path",
        "around_offset",
        "around_bytes",
        "added_pages",
        "dirtied",
        "journal_handles",
    ];
    let at = |batches, table, columns: &[&str]| row(batch(batches, table), 0, columns);
    assert_eq!(at(&first, "syscalls", &["rid"]), "1");
    assert_eq!(
        at(&first, "faults", &columns),
        "2 | - | - | - | 4096 | 65536 | 16 | 0 | 1"
    );
    assert_eq!(
        at(&second, "faults", &columns),
        "3 | prog | 1 | /home/u/f | - | - | - | - | -"
    );
    assert_eq!(at(&second, "syscalls", &["rid"]), "4");
    assert_eq!(enricher.totals(), 2);
}

#[test]
fn write_back_by_calls_and_by_workers() {
    let mut enricher = enricher();
    let mut record = WritebackRecord {
        kind: RECORD_WRITEBACK as u8,
        flags: (WRITEBACK_CONTIGUOUS | WRITEBACK_IN_CALL) as u8,
        syscall: Syscall::index_of("msync").unwrap() as u16,
        file: 3,
        ts_ns: 50,
        pid: 10,
        tid: 10,
        offset: 8192,
        bytes: 12288,
        ..WritebackRecord::parse(&[0; WritebackRecord::SIZE]).unwrap()
    };
    record.comm[..4].copy_from_slice(b"prog");
    enricher.event(0, &Event::Writeback(record));
    record.flags = 0;
    record.comm = *b"kworker/u8:1-\x1b[2";
    enricher.event(1, &Event::Writeback(record));
    let batches = enricher.take();
    batches.iter().for_each(check);
    let rows = batch(&batches, "writeback");
    let columns = [
        "rid",
        "comm",
        "syscall",
        "path",
        "file_offset",
        "bytes",
        "contiguous",
    ];
    assert_eq!(
        row(rows, 0, &columns),
        "1 | prog | msync | /data/\\xff\u{1b} | 8192 | 12288 | true"
    );
    assert_eq!(
        row(rows, 1, &columns),
        "2 | kworker/u8:1-\u{1b}[2 | - | /data/\\xff\u{1b} | 8192 | 12288 | false"
    );
}

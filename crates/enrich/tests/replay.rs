//! A capture, replayed through merge and enrichment; and the same with
//! damaged bytes.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use common::*;
use fathom_decode::Merge;
use fathom_decode::capture::{Frame, Losses, Reader, Writer};
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{CallRecord, ShedKey, ShedValue};
use fathom_model::raw::RawChunk;
use fathom_model::{Batch, ColumnData};
use fathom_testkit::meta;

fn shed(count: u64) -> ShedValue {
    let zero = ShedValue::parse(&[0; ShedValue::SIZE]).unwrap();
    let mut value = ShedValue {
        count,
        first_at_ns: 30,
        last_at_ns: 40,
        ..zero
    };
    value.hist[3] = count;
    value
}

/// Two CPUs: a thread opens a file on one, reads it on the other; the file's
/// record travels in another ring than the reads.
fn capture() -> Vec<u8> {
    let (open, path) = wide(
        CallRecord {
            file: 2,
            ..call("open", 15, 3)
        },
        b"/home/u/f",
        b"",
    );
    let wide_records = [
        task(10, "prog", 5),
        file(2, 51, 0o100644, 20, b"f/u/home/"),
        [&open.to_bytes()[..], &path].concat(),
        file(2, 51, 0o100644, 60, b"renamed/u/home/"),
    ];
    let read = |ts, offset| CallRecord {
        file: 2,
        fd: 3,
        offset,
        ..call("read", ts, 10)
    };
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    writer
        .chunk(&slot_chunk(1, &[read(25, 0), read(35, 10), read(70, 20)]))
        .unwrap();
    writer.chunk(&wide_chunk(0, &wide_records)).unwrap();
    writer.watermark(50).unwrap();
    writer
        .chunk(&slot_chunk(
            0,
            &[CallRecord {
                fd: 3,
                file: 2,
                ..call("close", 80, 0)
            }],
        ))
        .unwrap();
    let losses = Losses {
        per_cpu: vec![(0, call("read", 0, 0).syscall.into(), shed(5))],
        split: vec![(
            ShedKey {
                cpu: 0,
                syscall: call("read", 0, 0).syscall.into(),
                pid: 10,
                file: 2,
            },
            shed(3),
        )],
        cpus: vec![],
    };
    writer.losses(&losses).unwrap();
    writer.finish().unwrap()
}

/// All batches of a capture, and the rows that should be there.
fn replay(bytes: &[u8]) -> (Vec<Batch>, u64) {
    let mut reader = Reader::new(bytes).unwrap();
    let mut merge = Merge::new();
    let mut enricher = Enricher::new(EnrichOptions {
        max_files: 64,
        max_threads: 64,
        calls_left_out: false,
        ..EnrichOptions::default()
    });
    let mut batches = Vec::new();
    while let Ok(Some(frame)) = reader.next_frame() {
        match frame {
            Frame::Chunk(chunk) => merge.push(chunk),
            Frame::Watermark(ns) => {
                merge.drain_until(ns, |cpu, event| enricher.event(cpu, event));
                batches.extend(enricher.take());
            }
            Frame::Losses(losses) => batches.push(enricher.losses(&losses.per_cpu, &losses.split)),
        }
    }
    merge.drain_all(|cpu, event| enricher.event(cpu, event));
    batches.extend(enricher.take());
    batches.extend(enricher.decode_losses(&merge.stats()));
    batches.iter().for_each(check);
    (batches, enricher.totals())
}

fn rows(batches: &[Batch], table: &str, columns: &[&str]) -> Vec<String> {
    let of_table = batches.iter().filter(|b| b.table.name == table);
    of_table
        .flat_map(|b| (0..b.len()).map(|i| row(b, i, columns)))
        .collect()
}

#[test]
fn a_recording_is_replayed() {
    let (batches, total) = replay(&capture());
    assert_eq!(total, 5);
    assert_eq!(
        rows(
            &batches,
            "syscalls",
            &["rid", "ts_ns", "cpu", "syscall", "comm", "file_id", "path"]
        ),
        [
            "1 | 15 | 0 | open | prog | 1 | /home/u/f",
            "2 | 25 | 1 | read | prog | 1 | /home/u/f",
            "3 | 35 | 1 | read | prog | 1 | /home/u/f",
            "4 | 70 | 1 | read | prog | 1 | /home/u/renamed",
            "5 | 80 | 0 | close | prog | 1 | /home/u/renamed",
        ]
    );
    let columns = [
        "file_id",
        "dev",
        "ino",
        "generation",
        "file_tag",
        "path",
        "path_complete",
    ];
    assert_eq!(
        rows(&batches, "files", &columns),
        [
            "1 | 2049 | 51 | 1 | 2049|51|20 | /home/u/f | true",
            "1 | 2049 | 51 | 1 | 2049|51|20 | /home/u/renamed | true",
        ]
    );
    assert_eq!(
        rows(
            &batches,
            "file_paths",
            &["file_id", "ts_ns", "path", "deleted"]
        ),
        [
            "1 | 20 | /home/u/f | false",
            "1 | 60 | /home/u/renamed | false"
        ]
    );
    assert_eq!(
        rows(&batches, "processes", &["tid", "comm", "exe", "cmdline"]),
        ["10 | prog | /bin/prog | prog x"]
    );
    assert_eq!(
        rows(
            &batches,
            "losses",
            &["stage", "cpu", "syscall", "pid", "file_id", "count"]
        ),
        [
            "ring | 0 | read | -1 | -1 | 2",
            "ring | 0 | read | 10 | 1 | 3"
        ]
    );
}

#[test]
fn a_cut_capture_gives_the_beginning() {
    let bytes = capture();
    let (whole, _) = replay(&bytes);
    let whole = rows(&whole, "syscalls", &["rid", "ts_ns"]);
    let head = 20 + serde_json::to_vec(&meta()).unwrap().len();
    for len in (head..bytes.len()).step_by(7) {
        let (batches, total) = replay(&bytes[..len]);
        let rows = rows(&batches, "syscalls", &["rid", "ts_ns"]);
        assert_eq!(rows.len() as u64, total);
        // Without the wide ring's chunk the open is missing, so the rest has
        // other ids.
        if total > 3 {
            assert_eq!(rows, whole[..rows.len()], "cut at {len}");
        }
    }
}

#[test]
fn damaged_bytes_never_panic_and_every_call_is_counted() {
    let good = capture();
    let head = 20 + serde_json::to_vec(&meta()).unwrap().len();
    for seed in 0..3000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = good.clone();
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(head..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let (batches, total) = replay(&bytes);
        assert_eq!(
            rows(&batches, "syscalls", &["rid"]).len() as u64,
            total,
            "seed {seed}"
        );
    }
}

#[test]
fn random_records_of_every_call() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut merge = Merge::new();
        let mut enricher = Enricher::new(EnrichOptions {
            max_files: 8,
            max_threads: 8,
            calls_left_out: false,
            ..EnrichOptions::default()
        });
        let (mut rows, mut calls) = (0, 0);
        for _ in 0..20 {
            let mut slots = Vec::new();
            let mut records = Vec::new();
            for _ in 0..rng.usize(1..30) {
                let small = rng.bool();
                let mut bytes: Vec<u8> = (0..400)
                    .map(|_| if small { rng.u8(0..9) } else { rng.u8(..) })
                    .collect();
                bytes[0] = rng.u8(1..5);
                let calls = fathom_model::syscalls::SYSCALLS.len() as u16;
                bytes[2..4].copy_from_slice(&rng.u16(0..calls).to_ne_bytes());
                if rng.bool() {
                    // Short strings, so that the record is whole.
                    let at = fathom_model::abi::WideCallRecord::STRING1_LEN_AT;
                    bytes[at..at + 4].copy_from_slice(&[rng.u8(0..9), 0, rng.u8(0..9), 0]);
                    let at = fathom_model::abi::WideCallRecord::STRING3_LEN_AT;
                    bytes[at..at + 4].copy_from_slice(&[rng.u8(0..9), 0, rng.u8(0..150), 0]);
                }
                slots.extend_from_slice(&bytes[..64]);
                records.push(bytes);
            }
            merge.push(RawChunk {
                cpu: rng.u32(..),
                ring: fathom_model::raw::Ring::Slot,
                bytes: slots,
            });
            merge.push(wide_chunk(rng.u32(..), &records));
            merge.drain_until(rng.u64(..), |cpu, event| {
                calls += u64::from(event.is_call());
                enricher.event(cpu, event);
            });
            for batch in enricher.take() {
                check(&batch);
                if batch.table.name == "syscalls" {
                    rows += batch.len() as u64;
                }
            }
        }
        assert_eq!((rows, enricher.totals()), (calls, calls), "seed {seed}");
        assert!(calls > 0);
    }
}

#[test]
fn losses_add_up_whatever_the_split_says() {
    for seed in 0..500 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut enricher = Enricher::new(EnrichOptions::default());
        let mut latest = std::collections::HashMap::new();
        let mut per_cpu: Vec<(u32, u32, ShedValue)> = Vec::new();
        for cpu in 0..3 {
            for syscall in 0..3 {
                per_cpu.push((cpu, syscall, shed(0)));
            }
        }
        for _ in 0..4 {
            per_cpu
                .iter_mut()
                .for_each(|(_, _, v)| *v = shed(v.count + rng.u64(0..9)));
            let split: Vec<_> = (0..rng.usize(0..12))
                .map(|_| {
                    let key = ShedKey {
                        cpu: rng.u32(0..4),
                        syscall: rng.u32(0..4),
                        pid: rng.u32(0..3),
                        file: rng.u32(0..3),
                    };
                    (key, shed(rng.u64(0..6)))
                })
                .collect();
            let batch = enricher.losses(&per_cpu, &split);
            check(&batch);
            let count = batch
                .table
                .columns
                .iter()
                .position(|c| c.name == "count")
                .unwrap();
            let ColumnData::I64(counts) = &batch.columns[count] else {
                panic!()
            };
            for (i, n) in counts.iter().enumerate() {
                let key = row(&batch, i, batch.table.key);
                latest.insert(key, *n as u64);
            }
            let total: u64 = per_cpu.iter().map(|(_, _, v)| v.count).sum();
            assert_eq!(latest.values().sum::<u64>(), total, "seed {seed}");
        }
    }
}

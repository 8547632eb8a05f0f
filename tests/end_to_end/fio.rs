//! fio knows how many operations it made, of how many bytes, and where.

use std::fs;
use std::path::Path;

use fathom_tests::{Record, Recording, Scratch, need_program, need_root};
use serde_json::Value;

/// One operation: where and how many bytes.
type Piece = (i64, i64);

struct Run {
    recording: Recording,
    report: Value,
    reads: Vec<Piece>,
    writes: Vec<Piece>,
    syncs: i64,
    file: String,
}

/// Runs fio with one job on one file of 4 MiB that exists.
fn fio(scratch: &Scratch, engine: &str, pattern: &str, options: &[&str]) -> Run {
    let file = scratch.work().join("data");
    fs::write(&file, vec![1; 4 << 20]).unwrap();
    let report = scratch.root().join("fio.json");
    let log = scratch.root().join("fio.log");
    let recording = Record::new(scratch)
        .command([
            "fio",
            "--name=job",
            "--size=4m",
            "--thread",
            "--fallocate=none",
        ])
        .command(["--invalidate=0", "--output-format=json"])
        .command([format!("--ioengine={engine}"), format!("--rw={pattern}")])
        .command([format!("--filename={}", file.display())])
        .command([format!("--output={}", report.display())])
        .command([format!("--write_iolog={}", log.display())])
        .command(options)
        .run()
        .must_exit(0);
    recording.complete();
    let text = fs::read_to_string(&report).unwrap();
    // Notes stand before it.
    let json = text.find('{').map_or("", |at| &text[at..]);
    let report: Value = serde_json::from_str(json).unwrap();
    let (reads, writes, syncs) = operations(&log);
    let file = file.display().to_string();
    Run {
        recording,
        report,
        reads,
        writes,
        syncs,
        file,
    }
}

/// Reads, writes and number of data syncs of an I/O log, versions 2 and 3.
fn operations(log: &Path) -> (Vec<Piece>, Vec<Piece>, i64) {
    let text = fs::read_to_string(log).unwrap();
    let mut lines = text.lines();
    let version = lines.next().unwrap();
    let skip = match version {
        "fio version 2 iolog" => 0,
        "fio version 3 iolog" => 1,
        other => panic!("unknown log: {other}"),
    };
    let (mut reads, mut writes, mut syncs) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        let words: Vec<_> = line.split_whitespace().skip(skip).collect();
        if words.get(1) == Some(&"datasync") {
            syncs += 1;
        }
        if let [_, action @ ("read" | "write"), offset, length] = words[..] {
            let piece = (offset.parse().unwrap(), length.parse().unwrap());
            if action == "read" {
                reads.push(piece)
            } else {
                writes.push(piece)
            }
        }
    }
    (reads, writes, syncs)
}

impl Run {
    /// Calls on the file by name, in order.
    fn rows(&self, names: &[&str]) -> Vec<Piece> {
        let names: Vec<_> = names.iter().map(|n| format!("'{n}'")).collect();
        let rows = self.recording.rows(&format!(
            "SELECT file_offset, size, ret, bytes FROM syscalls
             WHERE path = '{}' AND syscall IN ({}) ORDER BY ts_ns",
            self.file,
            names.join(", ")
        ));
        rows.iter()
            .map(|row| {
                assert_eq!(row.int("ret"), row.int("size"), "{row:?}");
                assert_eq!(row.int("ret"), row.int("bytes"), "{row:?}");
                (row.int("file_offset").unwrap(), row.int("ret").unwrap())
            })
            .collect()
    }

    fn check(&self, reads: &[&str], writes: &[&str]) {
        for (direction, names, logged) in [
            ("read", reads, &self.reads),
            ("write", writes, &self.writes),
        ] {
            let rows = self.rows(names);
            let job = &self.report["jobs"][0][direction];
            assert_eq!(
                Some(rows.len() as i64),
                job["total_ios"].as_i64(),
                "{direction}"
            );
            let bytes: i64 = rows.iter().map(|r| r.1).sum();
            assert_eq!(Some(bytes), job["io_bytes"].as_i64(), "{direction}");
            assert_eq!(&rows, logged, "{direction}: places and order");
        }
        assert!(
            !self.reads.is_empty() || !self.writes.is_empty(),
            "fio did nothing"
        );
    }
}

#[test]
fn pread_and_pwrite_of_mixed_sizes_at_random() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    let run = fio(
        &scratch,
        "psync",
        "randrw",
        &["--bsrange=512-64k", "--bs_unaligned", "--loops=2"],
    );
    run.check(&["pread64"], &["pwrite64"]);
    assert!(!run.reads.is_empty() && !run.writes.is_empty());
}

#[test]
fn read_and_write_after_lseek() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    let run = fio(&scratch, "sync", "randrw", &["--bs=4k", "--loops=2"]);
    run.check(&["read"], &["write"]);
    assert!(!run.reads.is_empty() && !run.writes.is_empty());
}

#[test]
fn fsyncs_between_writes() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    let run = fio(&scratch, "psync", "write", &["--bs=16k", "--fdatasync=16"]);
    run.check(&["pread64"], &["pwrite64"]);
    let syncs = run.recording.number(&format!(
        "SELECT count(*) FROM syscalls WHERE syscall = 'fdatasync' AND path = '{}'",
        run.file
    ));
    assert!(run.syncs > 10, "{}", run.syncs);
    assert_eq!(syncs, run.syncs);
}

/// fio merges neighboring blocks into one readv, so calls are fewer than its
/// operations; the bytes are the same.
#[test]
fn readv_of_merged_blocks() {
    need_root!();
    need_program!("fio");
    let scratch = Scratch::new();
    let options = [
        "--bs=4k",
        "--iodepth=8",
        "--iodepth_batch=8",
        "--iodepth_batch_complete=8",
    ];
    let run = fio(&scratch, "vsync", "read", &options);
    let rows = run.rows(&["readv"]);
    assert!(
        rows.len() < run.reads.len(),
        "{} calls, {} blocks",
        rows.len(),
        run.reads.len()
    );
    crate::ground_truth::assert_partition(rows, 4 << 20);
    crate::ground_truth::assert_partition(run.reads.clone(), 4 << 20);
}

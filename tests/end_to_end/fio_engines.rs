//! fio's engines: fathom's rows are fio's own log, operation by operation. (What it
//! does with mapped files is in mapped.rs.)

use std::fs;
use std::path::PathBuf;

use fathom_tests::{Record, Recording, Scratch, need_program, need_root};

const PATTERNS: [&str; 6] = [
    "read",
    "write",
    "randread",
    "randwrite",
    "readwrite",
    "randrw",
];

/// Direction, offset and length.
type Operation = (String, i64, i64);

struct Run {
    recording: Recording,
    scratch: Scratch,
}

/// Runs fio with one job a pattern, each on a file of its own that exists.
fn fio(engine: &str, options: &[&str]) -> Run {
    let scratch = Scratch::new();
    let file = |pattern: &str| scratch.work().join(pattern);
    let mut record = Record::new(&scratch)
        .command([
            "fio",
            "--size=1m",
            "--thread",
            "--fallocate=none",
            "--invalidate=0",
        ])
        .command(["--stonewall", "--bsrange=4k-16k", "--output=/dev/null"])
        .command([format!("--ioengine={engine}")])
        .command(options);
    for pattern in PATTERNS {
        fs::write(file(pattern), vec![1; 1 << 20]).unwrap();
        record = record
            .command([format!("--name={pattern}"), format!("--rw={pattern}")])
            .command([format!("--filename={}", file(pattern).display())])
            .command([format!(
                "--write_iolog={}",
                log(&scratch, pattern).display()
            )]);
    }
    let recording = record.run().must_exit(0);
    recording.complete();
    Run { recording, scratch }
}

fn log(scratch: &Scratch, pattern: &str) -> PathBuf {
    scratch.root().join(format!("{pattern}.log"))
}

/// Reads and writes of a log in order of submission, versions 2 and 3.
fn logged(scratch: &Scratch, pattern: &str) -> Vec<Operation> {
    let text = fs::read_to_string(log(scratch, pattern)).unwrap();
    let mut lines = text.lines();
    let skip = match lines.next() {
        Some("fio version 2 iolog") => 0,
        Some("fio version 3 iolog") => 1,
        other => panic!("unknown log: {other:?}"),
    };
    let operation = |line: &str| {
        let words: Vec<_> = line.split_whitespace().skip(skip).collect();
        match words[..] {
            [_, action @ ("read" | "write"), offset, length] => Some((
                action.to_owned(),
                offset.parse().unwrap(),
                length.parse().unwrap(),
            )),
            _ => None,
        }
    };
    lines.filter_map(operation).collect()
}

impl Run {
    /// Compares with fio's logs; `api` and the names that are read and written by.
    fn check(&self, api: &str, reads: &[&str], writes: &[&str]) {
        self.check_rows(reads, writes, |file| {
            format!(
                "SELECT syscall, file_offset, size, ret, bytes FROM syscalls
                 WHERE path = '{file}' AND api = '{api}' AND class = 'data'
                    AND syscall NOT IN ('fadvise64', 'fallocate') ORDER BY ts_ns"
            )
        });
    }

    /// The same for rows that are selected in another way, by file.
    fn check_rows(&self, reads: &[&str], writes: &[&str], select: impl Fn(&str) -> String) {
        for pattern in PATTERNS {
            let logged = logged(&self.scratch, pattern);
            let moved: i64 = logged.iter().map(|o| o.2).sum();
            assert!(moved >= 1 << 20, "{pattern}: fio's log has {moved} bytes");
            let file = self.scratch.work().join(pattern).display().to_string();
            let rows = self.recording.rows(&select(&file));
            let rows: Vec<Operation> = rows
                .iter()
                .map(|row| {
                    assert_eq!(row.int("ret"), row.int("size"), "{pattern}: {row:?}");
                    assert_eq!(row.int("ret"), row.int("bytes"), "{pattern}: {row:?}");
                    let name = row.text("syscall").unwrap();
                    let direction = if reads.contains(&name) {
                        "read"
                    } else {
                        assert!(writes.contains(&name), "{pattern}: {row:?}");
                        "write"
                    };
                    let offset = row.int("file_offset").unwrap();
                    (direction.to_owned(), offset, row.int("size").unwrap())
                })
                .collect();
            assert_eq!(rows, logged, "{pattern}");
        }
    }

    fn flagged(&self, flag: &str) -> i64 {
        self.recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE op_flags LIKE '%{flag}%'"
        ))
    }
}

const AIO: (&[&str], &[&str]) = (&["IOCB_CMD_PREAD"], &["IOCB_CMD_PWRITE"]);
const URING: (&[&str], &[&str]) = (
    &["IORING_OP_READ", "IORING_OP_READV", "IORING_OP_READ_FIXED"],
    &[
        "IORING_OP_WRITE",
        "IORING_OP_WRITEV",
        "IORING_OP_WRITE_FIXED",
    ],
);

/// Engines that make one call an operation, and the calls that they make.
#[test]
#[ignore = "long"]
fn engines_of_calls() {
    need_root!();
    need_program!("fio");
    for (engine, reads, writes) in [
        ("sync", "read", "write"),
        ("psync", "pread64", "pwrite64"),
        ("vsync", "readv", "writev"),
        ("pvsync", "preadv", "pwritev"),
        ("pvsync2", "preadv2", "pwritev2"),
    ] {
        fio(engine, &[]).check("syscall", &[reads], &[writes]);
    }
}

/// From the file into a pipe, and from a pipe into the file.
#[test]
fn splice() {
    need_root!();
    need_program!("fio");
    fio("splice", &[]).check_rows(&["in"], &["out"], |file| {
        format!(
            "SELECT if(path = '{file}', 'in', 'out') AS syscall, size, ret, bytes,
                if(path = '{file}', file_offset,
                   regexp_extract(args, 'off_out=(\\d+)', 1)::BIGINT) AS file_offset
             FROM syscalls WHERE syscall = 'splice' AND '{file}' IN (path, path2)
             ORDER BY ts_ns"
        )
    });
}

#[test]
fn libaio() {
    need_root!();
    need_program!("fio");
    let fio = |options: &[&str]| fio("libaio", &[&["--iodepth=8"], options].concat());
    fio(&["--direct=1"]).check("aio", AIO.0, AIO.1);
    fio(&["--iodepth_batch=4"]).check("aio", AIO.0, AIO.1);
    fio(&["--userspace_reap"]).check("aio", AIO.0, AIO.1);
}

fn uring(options: &[&str]) -> Run {
    fio("io_uring", &[&["--iodepth=8"], options].concat())
}

#[test]
fn io_uring() {
    need_root!();
    need_program!("fio");
    uring(&["--direct=1"]).check("io_uring", URING.0, URING.1);
    uring(&["--nonvectored=0", "--iodepth_batch=4"]).check("io_uring", URING.0, URING.1);
}

#[test]
fn io_uring_with_the_kernels_thread() {
    need_root!();
    need_program!("fio");
    let run = uring(&["--sqthread_poll=1"]);
    run.check("io_uring", URING.0, URING.1);
    assert!(run.flagged("SQPOLL") > 0);
}

#[test]
fn io_uring_with_registered_buffers_and_files() {
    need_root!();
    need_program!("fio");
    let run = uring(&["--fixedbufs=1", "--direct=1"]);
    run.check("io_uring", URING.0, URING.1);
    let fixed = "SELECT count(*) FROM syscalls WHERE syscall LIKE 'IORING_OP_%_FIXED'";
    assert!(run.recording.number(fixed) > 0);
    let run = uring(&["--registerfiles=1"]);
    run.check("io_uring", URING.0, URING.1);
    assert!(run.flagged("FIXED_FILE") > 0);
}

/// Threads of the C library make ordinary calls.
#[test]
fn posixaio() {
    need_root!();
    need_program!("fio");
    fio("posixaio", &["--iodepth=8"]).check("syscall", &["pread64"], &["pwrite64"]);
}

//! Numbers beyond 32 bits, in programs of 64 and of 32 bits.

use std::path::Path;

use fathom_tests::workload::workload_32_bit;
use fathom_tests::{Record, Recording, Scratch, need_root, skip, workload};

fn record(scratch: &Scratch, program: &Path) -> Recording {
    let recording = Record::new(scratch)
        .command([program.as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// The rows from the first use of the file on, without what differs between
/// runs and between libraries.
fn rows(recording: &Recording, scratch: &Scratch) -> Vec<String> {
    let dir = scratch.work().display().to_string();
    let rows = recording.rows(
        r#"SELECT syscall, file_offset, size, bytes, ret, errno, path, path2, args FROM syscalls
           WHERE rid >= (SELECT min(rid) FROM syscalls WHERE path_arg = 'file')
             AND syscall NOT IN ('munmap', 'fstat', 'stat', 'newfstatat', 'statx')
           ORDER BY rid"#,
    );
    rows.iter()
        .map(|row| {
            let number = |column| row.int(column).map_or("-".into(), |n: i64| n.to_string());
            let text = |column| row.text(column).unwrap_or("-").replace(&dir, "DIR");
            let syscall = row.text("syscall").unwrap();
            // An address.
            let ret = if syscall == "mmap" {
                "-".into()
            } else {
                row.text("errno")
                    .map_or_else(|| number("ret"), str::to_owned)
            };
            format!(
                "{syscall} {} {} {} {ret} {} {} {}",
                number("file_offset"),
                number("size"),
                number("bytes"),
                text("path"),
                text("path2"),
                text("args")
            )
        })
        .collect()
}

const EXPECTED: [&str; 21] = [
    "openat - - - 3 DIR/file - dirfd=AT_FDCWD<DIR>, mode=0644",
    "pwrite64 4886718345 50 50 50 DIR/file - -",
    "pread64 4886718336 60 59 59 DIR/file - -",
    "lseek - - - SEEK DIR/file - offset=8589934592, whence=SEEK_SET",
    "write 8589934592 30 30 30 DIR/file - -",
    "writev 8589934622 25 25 25 DIR/file - iovcnt=3",
    "pwritev 5726623061 25 25 25 DIR/file - iovcnt=3",
    "preadv 5726623061 25 25 25 DIR/file - iovcnt=3",
    "fallocate 12884901888 4294967312 - 0 DIR/file - -",
    "ftruncate - - - 0 DIR/file - length=13153337344",
    "truncate - - - 0 DIR/file - length=13421772800",
    "fadvise64 8589934592 8589934593 - 0 DIR/file - advice=POSIX_FADV_DONTNEED",
    "sync_file_range 8589934592 8589934594 - 0 DIR/file - -",
    "readahead 8589934592 4096 - 0 DIR/file - -",
    "mmap 8589934592 4096 - - DIR/file - addr=NULL, prot=PROT_READ",
    "openat - - - 4 DIR/to - dirfd=AT_FDCWD<DIR>, mode=0644",
    "sendfile 4886718208 200 200 200 DIR/file DIR/to fd_out=4",
    "access - - - ENOENT DIR/missing - mode=R_OK",
    "rename - - - 0 DIR/to DIR/moved -",
    "unlink - - - 0 DIR/moved - -",
    "close - - - EBADF - - -",
];

fn check(found: &[String], seek: &str) {
    let expected: Vec<String> = EXPECTED
        .iter()
        .map(|line| line.replace("SEEK DIR", &format!("{seek} DIR")))
        .collect();
    assert_eq!(found.join("\n"), expected.join("\n"));
}

#[test]
fn a_64_bit_program() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, &workload("large"));
    check(&rows(&recording, &scratch), "8589934592");
}

/// The calls have other numbers and pass long numbers in two registers.
#[test]
fn a_32_bit_program() {
    need_root!();
    let Some(program) = workload_32_bit("large") else {
        skip("the compiler makes no 32-bit programs here");
        return;
    };
    let scratch = Scratch::new();
    let recording = record(&scratch, &program);
    // _llseek returns the position in memory.
    check(&rows(&recording, &scratch), "0");
    // What stat says leads to the file that was opened.
    assert_eq!(
        recording.number(
            "SELECT count(*) FROM syscalls WHERE path_arg = 'file' AND file_id IS NOT NULL
               AND syscall IN ('stat', 'newfstatat', 'statx')"
        ),
        2
    );
}

//! Rows of single calls: paths, files, flags and arguments.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod paths;

use common::*;
use fathom_decode::{Event, decode};
use fathom_enrich::{EnrichOptions, Enricher};
use fathom_model::abi::{
    ARG_CREATED, ARG_SEGMENTS, ARG_STRING1_NULL, ARG_STRUCT_NULL, CALL_HAS_HOW, CALL_HAS_STAT,
    CALL_PENDING, CALL_POSITION_RACED, CALL_SHARED_POSITION, CALL_STRING1_PARTIAL,
    CALL_STRING2_PARTIAL, CallRecord, FileRecord, OP_FIXED_FILE, OP_WORKER, WideCallRecord,
};
use fathom_model::raw::Ring;

/// An enricher that knows thread 10 (`prog`), the directory /home/u (handle 1),
/// /home/u/f (2), /data/g (3) and a pipe (4).
fn enricher() -> Enricher {
    let mut enricher = Enricher::new(EnrichOptions::default());
    let pipe = FileRecord {
        fs_magic: 0x5049_5045,
        ..FileRecord::parse(&file(4, 900, 0o010600, 1, b"")).unwrap()
    };
    for record in [
        task(10, "prog", 1),
        file(1, 50, 0o040755, 1, b"u/home/"),
        file(2, 51, 0o100644, 1, b"f/u/home/"),
        file(3, 52, 0o100644, 1, b"g/data/"),
        pipe.to_bytes().to_vec(),
    ] {
        enricher.event(0, &decode(Ring::Wide, &record).unwrap());
    }
    enricher
}

/// The row of one wide call, after `change` to its record.
fn wide_row(
    columns: &[&str],
    call: CallRecord,
    strings: [&[u8]; 2],
    change: impl FnOnce(&mut WideCallRecord),
) -> String {
    let mut enricher = enricher();
    let (mut record, text) = wide(call, strings[0], strings[1]);
    change(&mut record);
    let bytes = [&record.to_bytes()[..], &text].concat();
    enricher.event(3, &decode(Ring::Wide, &bytes).unwrap());
    let batches = enricher.take();
    batches.iter().for_each(check);
    row(batch(&batches, "syscalls"), 0, columns)
}

fn plain_row(columns: &[&str], call: CallRecord) -> String {
    let mut enricher = enricher();
    enricher.event(3, &Event::Call(call));
    let batches = enricher.take();
    batches.iter().for_each(check);
    row(batch(&batches, "syscalls"), 0, columns)
}

const PATHS: &[&str] = &[
    "syscall",
    "path_arg",
    "path_arg2",
    "path",
    "path2",
    "file_id",
];
const ARGS: &[&str] = &["syscall", "flags", "args"];

#[test]
fn operations_say_how_they_were_made() {
    let columns = [
        "api",
        "syscall",
        "class",
        "fd",
        "file_offset",
        "bytes",
        "args",
        "op_flags",
        "user_data",
        "path",
    ];
    let read = CallRecord {
        fd: 3,
        file: 2,
        offset: 4096,
        size: 512,
        ..call("IORING_OP_READ", 1000, 512)
    };
    let mut enricher = enricher();
    enricher.event(
        3,
        &Event::Operation {
            call: read,
            op_flags: OP_FIXED_FILE | OP_WORKER,
            user_data: u64::MAX,
        },
    );
    let batches = enricher.take();
    assert_eq!(
        row(batch(&batches, "syscalls"), 0, &columns),
        "io_uring | IORING_OP_READ | data | 3 | 4096 | 512 | - | FIXED_FILE|WORKER | -1 | /home/u/f"
    );
    // Splice by the ring: both positions are given by value.
    let spliced = wide_row(
        &columns,
        CallRecord {
            fd: 9,
            file: 2,
            offset: 5,
            size: 100,
            ..call("IORING_OP_SPLICE", 1000, 100)
        },
        [b"", b""],
        |record| {
            (record.fd2, record.offset2, record.user_data) = (4, 77, 12);
        },
    );
    assert_eq!(
        spliced,
        "io_uring | IORING_OP_SPLICE | data | 9 | 5 | 100 | fd_out=4, off_out=77 | 0 | 12 | /home/u/f"
    );
    let renamed = wide_row(
        &["api", "path_arg", "path_arg2", "flags", "args", "user_data"],
        call("IORING_OP_RENAMEAT", 1000, 0),
        [b"a", b"b"],
        |_| {},
    );
    assert_eq!(
        renamed,
        "io_uring | a | b | 0 | dirfd=AT_FDCWD, dirfd2=AT_FDCWD | 0"
    );
    assert_eq!(
        plain_row(&["api", "op_flags", "user_data"], call("read", 1000, 20)),
        "syscall | - | -"
    );
}

#[test]
fn a_plain_read() {
    let record = CallRecord {
        fd: 7,
        file: 2,
        offset: 100,
        size: 50,
        ..call("read", 1000, 20)
    };
    let all = [
        "rid",
        "ts_ns",
        "dur_ns",
        "pid",
        "tid",
        "comm",
        "cpu",
        "syscall",
        "class",
        "ret",
        "errno",
        "fd",
        "file_id",
        "file_offset",
        "size",
        "bytes",
        "flags",
        "path_arg",
        "path_arg2",
        "path",
        "path2",
        "hash",
        "args",
    ];
    assert_eq!(
        plain_row(&all, record),
        "1 | 1000 | 5 | 10 | 10 | prog | 3 | read | data | 20 | - | 7 | 2 | 100 | 50 | 20 | - | - | - | /home/u/f | - | - | -"
    );
    let columns = ["ret", "errno", "bytes", "comm", "path", "file_id"];
    let failed = CallRecord {
        tid: 99,
        ..call("read", 1000, -11)
    };
    assert_eq!(plain_row(&columns, failed), "-11 | EAGAIN | - | - | - | -");
    let pending = CallRecord {
        flags: CALL_PENDING as u8,
        file: 4,
        ..call("read", 1000, -11)
    };
    assert_eq!(
        plain_row(&columns, pending),
        "- | - | - | prog | pipe:[900] | 4"
    );
    let odd = call("read", 1000, -600);
    assert_eq!(
        plain_row(&columns, odd),
        "-600 | errno 600 | - | prog | - | -"
    );
    let unknown_file = CallRecord {
        file: 77,
        ..call("read", 1000, 1)
    };
    assert_eq!(
        plain_row(&columns, unknown_file),
        "1 | - | 1 | prog | - | 5"
    );
}

#[test]
fn opens() {
    let open = CallRecord {
        aux: 0o1101,
        ..call("openat", 9, -2)
    };
    assert_eq!(
        wide_row(PATHS, open, [b"../v/./x", b""], |r| r.dir1 = 1),
        "openat | ../v/./x | - | /home/v/x | - | -"
    );
    // The file's own path when it was opened: here by a symbolic link.
    let opened = CallRecord {
        file: 3,
        ret: 5,
        ..open
    };
    assert_eq!(
        wide_row(PATHS, opened, [b"link", b""], |r| r.dir1 = 1),
        "openat | link | - | /data/g | - | 3"
    );
    let unknown = CallRecord {
        file: 77,
        ret: 5,
        ..open
    };
    assert_eq!(
        wide_row(PATHS, unknown, [b"/etc//x", b""], |_| ()),
        "openat | /etc//x | - | /etc/x | - | 5"
    );
    assert_eq!(
        wide_row(ARGS, open, [b"/x", b""], |r| r.extra[0] = 0o644),
        "openat | O_WRONLY|O_CREAT|O_TRUNC | dirfd=AT_FDCWD, mode=0644"
    );
    let read = CallRecord { aux: 0, ..open };
    assert_eq!(
        wide_row(ARGS, read, [b"x", b""], |r| (r.extra[0], r.dirfd1) =
            (0o644, 5)),
        "openat | O_RDONLY | dirfd=5"
    );
    assert_eq!(
        wide_row(
            ARGS,
            CallRecord {
                aux: 0o7,
                ..call("creat", 9, 3)
            },
            [b"x", b""],
            |_| ()
        ),
        "creat | - | mode=007"
    );
    let how = CallRecord {
        flags: CALL_HAS_HOW as u8,
        size: 24,
        ..call("openat2", 9, -1)
    };
    let columns = ["flags", "args", "size"];
    assert_eq!(
        wide_row(&columns, how, [b"x", b""], |r| r.extra = [0x42, 0o640, 8]),
        "O_RDWR|O_CREAT | dirfd=AT_FDCWD, mode=0640, resolve=RESOLVE_BENEATH, size=24 | -"
    );
    assert_eq!(
        wide_row(&columns, CallRecord { flags: 0, ..how }, [b"x", b""], |r| {
            r.extra = [1, 1, 1]
        }),
        "- | dirfd=AT_FDCWD, size=24 | -"
    );
    // The kernel takes all 64 bits of the mode, and refuses what it does not know.
    let odd = CallRecord {
        size: 32,
        ret: -7,
        ..how
    };
    assert_eq!(
        wide_row(&columns, odd, [b"x", b""], |r| r.extra =
            [0, 0x100_0000_01ff, 0]),
        "O_RDONLY | dirfd=AT_FDCWD, mode=020000000000777, resolve=0, tail=?, size=32 | -"
    );
}

/// As the kernel takes them, whatever else a register holds.
#[test]
fn numbers_have_width_and_sign() {
    let columns = ["size", "args"];
    let sized = |name, size| {
        plain_row(
            &columns,
            CallRecord {
                size,
                ..call(name, 9, -22)
            },
        )
    };
    let huge = 16_045_691_002_485_145_299_u64;
    for (name, size, expected) in [
        ("fallocate", -5_i64 as u64, "-5 | -"),
        ("fallocate", -1_i64 as u64, "-1 | -"),
        (
            "sync_file_range",
            i64::MIN as u64,
            "- | size=-9223372036854775808",
        ),
        ("read", huge, "- | size=16045691002485145299"),
        ("read", u64::MAX, "- | size=18446744073709551615"),
        ("munmap", u64::MAX, "- | size=18446744073709551615"),
        ("read", i64::MAX as u64, "9223372036854775807 | -"),
        ("getdents64", 0xdef_aced_0000_2000, "8192 | -"),
        ("readlink", 0xffff_ffff, "-1 | -"),
        ("ftruncate", -7_i64 as u64, "- | length=-7"),
    ] {
        assert_eq!(sized(name, size), expected, "{name} {size:#x}");
    }
    let odd = CallRecord {
        fd: i32::MIN,
        offset: i64::MIN,
        size: 3,
        ..call("readahead", 9, -9)
    };
    assert_eq!(
        plain_row(&["fd", "file_offset", "size", "args"], odd),
        "- | - | 3 | fd=-2147483648, offset=-9223372036854775808"
    );
    let getevents = wide_row(&["args"], call("io_getevents", 9, -22), [b"", b""], |r| {
        r.extra = [0, -3_855_172_618_362_687_475_i64 as u64, 5]
    });
    assert_eq!(getevents, "ctx=NULL, min=-3855172618362687475, max=5");
}

#[test]
fn segments() {
    let columns = ["size", "bytes", "args"];
    let readv = CallRecord {
        size: 3 << 48 | 128,
        ..call("readv", 9, 100)
    };
    assert_eq!(plain_row(&columns, readv), "128 | 100 | iovcnt=3");
    let many = CallRecord {
        size: u64::MAX,
        ..call("writev", 9, -22)
    };
    assert_eq!(
        wide_row(&columns, many, [b"", b""], |r| {
            (r.arg_flags, r.extra[1]) = (ARG_SEGMENTS, u64::MAX);
        }),
        "- | - | iovcnt=18446744073709551615"
    );
}

#[test]
fn rings_are_no_files_of_calls() {
    let columns = ["fd", "path", "file_id", "args"];
    let enter = |flags| CallRecord {
        fd: 4,
        file: 3,
        aux: flags,
        ..call("io_uring_enter", 9, 1)
    };
    assert_eq!(
        wide_row(&columns, enter(1), [b"", b""], |_| ()),
        "4 | /data/g | - | submit=0, complete=0"
    );
    // IORING_ENTER_REGISTERED_RING: no descriptor, so there is no file after it.
    assert_eq!(
        wide_row(&columns, enter(1 | 16), [b"", b""], |_| ()),
        "4 | - | - | submit=0, complete=0"
    );
    let register = |opcode| CallRecord {
        fd: 4,
        file: 3,
        aux: opcode,
        ..call("io_uring_register", 9, 0)
    };
    let path = |opcode| wide_row(&["path"], register(opcode), [b"", b""], |_| ());
    assert_eq!(path(2), "/data/g");
    assert_eq!(path(2 | 1 << 31), "-");
}

#[test]
fn descriptions_of_files() {
    let stat = CallRecord {
        flags: CALL_HAS_STAT as u8,
        ..call("newfstatat", 9, 0)
    };
    // The inode of handle 2.
    assert_eq!(
        wide_row(PATHS, stat, [b"f", b""], |r| (
            r.dir1, r.stat_dev, r.stat_ino
        ) = (1, 0x801, 51)),
        "newfstatat | f | - | /home/u/f | - | 2"
    );
    // fstat, as libc calls it.
    let empty = CallRecord {
        aux: 0x1000,
        ..stat
    };
    assert_eq!(
        wide_row(PATHS, empty, [b"", b""], |r| (
            r.dir1, r.stat_dev, r.stat_ino
        ) = (3, 1, 1)),
        "newfstatat |  | - | /data/g | - | 3"
    );
    let failed = CallRecord { ret: -2, ..stat };
    assert_eq!(
        wide_row(PATHS, failed, [b"", b""], |r| r.dir1 = 3),
        "newfstatat |  | - | - | - | -"
    );
    let new = wide_row(PATHS, stat, [b"/q", b""], |r| {
        (r.stat_dev, r.stat_ino) = (0x801, 5000)
    });
    assert_eq!(new, "newfstatat | /q | - | /q | - | 5");
    assert_eq!(
        wide_row(
            ARGS,
            CallRecord {
                aux: 0x100,
                ..call("statx", 9, 0)
            },
            [b"x", b""],
            |r| {
                r.extra[0] = 0x7ff;
            }
        ),
        "statx | AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW | dirfd=AT_FDCWD, mask=STATX_BASIC_STATS"
    );
}

#[test]
fn arguments() {
    let seek = CallRecord {
        aux: 2,
        offset: -10,
        file: 2,
        fd: 4,
        ..call("lseek", 9, 90)
    };
    let columns = ["ret", "bytes", "file_offset", "size", "args"];
    assert_eq!(
        plain_row(&columns, seek),
        "90 | - | - | - | offset=-10, whence=SEEK_END"
    );
    let truncate = CallRecord {
        size: 4096,
        ..call("ftruncate", 9, 0)
    };
    assert_eq!(plain_row(&columns, truncate), "0 | - | - | - | length=4096");
    let plain = |name, aux| {
        plain_row(
            ARGS,
            CallRecord {
                aux,
                ..call(name, 9, 0)
            },
        )
    };
    assert_eq!(plain("fchmod", 0o4755), "fchmod | - | mode=04755");
    assert_eq!(plain("dup2", 9), "dup2 | - | newfd=9");
    assert_eq!(plain("dup3", 0o2000000), "dup3 | O_CLOEXEC | -");
    assert_eq!(plain("ioctl", 0x5413), "ioctl | - | cmd=TIOCGWINSZ");
    assert_eq!(plain("flock", 6), "flock | LOCK_EX|LOCK_NB | -");
    assert_eq!(
        plain("fadvise64", 4),
        "fadvise64 | - | advice=POSIX_FADV_DONTNEED"
    );
    assert_eq!(
        plain("fallocate", 3),
        "fallocate | FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE | -"
    );
    assert_eq!(plain("io_uring_setup", 8), "io_uring_setup | - | entries=8");
    let wide = |name, aux, extra: [u64; 3]| {
        wide_row(
            ARGS,
            CallRecord {
                aux,
                ..call(name, 9, 0)
            },
            [b"", b""],
            |r| r.extra = extra,
        )
    };
    assert_eq!(
        wide("mmap", 0x22, [0, 3, 0]),
        "mmap | MAP_PRIVATE|MAP_ANONYMOUS | addr=NULL, prot=PROT_READ|PROT_WRITE"
    );
    assert_eq!(
        wide("fcntl", 2, [1, 0, 0]),
        "fcntl | - | cmd=F_SETFD, arg=FD_CLOEXEC"
    );
    assert_eq!(wide("fcntl", 3, [77, 0, 0]), "fcntl | - | cmd=F_GETFL");
    assert_eq!(
        wide("close_range", 0, [3, 0xffff_ffff, 0]),
        "close_range | 0 | first=3, last=4294967295"
    );
    assert_eq!(
        wide("fchown", 1000, [u64::MAX, 0, 0]),
        "fchown | - | uid=1000, gid=-1"
    );
    assert_eq!(
        wide("io_uring_enter", 1, [1, 2, 0]),
        "io_uring_enter | IORING_ENTER_GETEVENTS | submit=1, complete=2"
    );
    assert_eq!(
        wide("mknod", 0o020600, [0x103, 0, 0]),
        "mknod | - | mode=S_IFCHR|0600, dev=makedev(0x1, 0x3)"
    );
    assert_eq!(
        wide("mknod", 0o100600, [0x103, 0, 0]),
        "mknod | - | mode=S_IFREG|0600"
    );
    assert_eq!(
        wide_row(
            ARGS,
            CallRecord {
                aux: 1,
                ..call("setxattr", 9, 0)
            },
            [b"/x", b"user.\n\xff"],
            |_| ()
        ),
        r#"setxattr | XATTR_CREATE | name="user.\n\377""#
    );
}

#[test]
fn shared_positions() {
    let mut enricher = enricher();
    let read = CallRecord {
        file: 2,
        aux: 8,
        ..call("read", 9, 100)
    };
    // Both entered at 0; the first ended when both were through.
    let (mut raced, _) = wide(
        CallRecord {
            flags: (CALL_SHARED_POSITION | CALL_POSITION_RACED) as u8,
            offset: 100,
            ..read
        },
        b"",
        b"",
    );
    raced.extra[0] = 0;
    enricher.event(0, &decode(Ring::Wide, &raced.to_bytes()).unwrap());
    let certain = CallRecord {
        flags: CALL_SHARED_POSITION as u8,
        offset: 100,
        ..read
    };
    enricher.event(0, &Event::Call(certain));
    let batches = enricher.take();
    let syscalls = batch(&batches, "syscalls");
    assert_eq!(row(syscalls, 0, &["file_offset", "args"]), "0 | -");
    assert_eq!(row(syscalls, 1, &["file_offset", "args"]), "100 | -");
}

#[test]
fn batches_have_strings_of_their_own() {
    let mut enricher = enricher();
    let record = CallRecord {
        file: 2,
        aux: 1,
        ..call("flock", 9, -11)
    };
    let columns = ["rid", "comm", "syscall", "class", "errno", "flags", "path"];
    let expected = " | prog | flock | metadata | EAGAIN | LOCK_SH | /home/u/f";
    for rid in 1..5 {
        enricher.event(0, &Event::Call(record));
        assert_eq!((enricher.pending_rows(), enricher.totals()), (1, rid));
        for batch in enricher.take() {
            check(&batch);
            if batch.table.name == "syscalls" {
                assert_eq!(row(&batch, 0, &columns), format!("{rid}{expected}"));
            }
        }
    }
    assert!(enricher.take().is_empty());
}

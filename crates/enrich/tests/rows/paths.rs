//! Paths of calls, and strings that programs pass.

use super::*;

/// Null, unreadable, empty and cut paths are four things.
#[test]
fn paths_that_are_none() {
    let columns = ["errno", "path_arg", "path", "file_id", "args"];
    let null = CallRecord {
        flags: CALL_STRING1_PARTIAL as u8,
        ..call("chdir", 9, -14)
    };
    assert_eq!(
        wide_row(&columns, null, [b"", b""], |r| r.arg_flags =
            ARG_STRING1_NULL),
        "EFAULT | - | - | - | path_arg=NULL"
    );
    assert_eq!(
        wide_row(&columns, null, [b"", b""], |_| ()),
        "EFAULT | - | - | - | path_arg=partial"
    );
    assert_eq!(
        wide_row(&columns, call("chdir", 9, -2), [b"", b""], |r| r.dir1 = 1),
        "ENOENT |  | - | - | -"
    );
    let long = CallRecord {
        flags: CALL_STRING1_PARTIAL as u8,
        ..call("chdir", 9, -36)
    };
    assert_eq!(
        wide_row(&columns, long, [b"/aaa", b""], |_| ()),
        "ENAMETOOLONG | /aaa | - | - | path_arg=partial"
    );
    // The descriptor itself.
    assert_eq!(
        wide_row(&columns, call("utimensat", 9, 0), [b"", b""], |r| {
            (r.arg_flags, r.dir1, r.dirfd1) = (ARG_STRING1_NULL | ARG_STRUCT_NULL, 2, 3);
        }),
        "- | - | /home/u/f | 2 | dirfd=3</home/u/f>, times=NULL, path_arg=NULL"
    );
}

#[test]
fn no_path_leads_out_of_a_jail() {
    // The jail is /home/u.
    let columns = ["path", "path2"];
    assert_eq!(
        wide_row(
            &columns,
            call("rename", 9, 0),
            [b"../x", b"/s/../../y"],
            |r| {
                (r.root, r.dir1, r.dir2) = (1, 1, 1);
            }
        ),
        "/home/u/x | /home/u/s/../y"
    );
}

#[test]
fn descriptors_before_paths() {
    let open = CallRecord {
        aux: 0,
        ..call("openat", 1000, 3)
    };
    // The start of the path, and the text before an absolute one.
    let from = |path: &'static [u8], dir1, at1, dirfd1| {
        wide_row(&["path", "args"], open, [path, b""], |r| {
            (r.dir1, r.at1, r.dirfd1) = (dir1, at1, dirfd1);
            if path.starts_with(b"/") {
                r.root = dir1;
            }
        })
    };
    assert_eq!(
        from(b"x", 1, 1, -100),
        "/home/u/x | dirfd=AT_FDCWD</home/u>"
    );
    assert_eq!(from(b"/x", 0, 1, 5), "/x | dirfd=5</home/u>");
    // Another root.
    assert_eq!(from(b"/x", 1, 3, 5), "/home/u/x | dirfd=5</data/g>");
    // An operation: the descriptor before an absolute path is unknown.
    assert_eq!(from(b"x", 1, 0, 5), "/home/u/x | dirfd=5</home/u>");
    assert_eq!(from(b"/x", 1, 0, 5), "/home/u/x | dirfd=5");
    assert_eq!(
        wide_row(&["args"], call("renameat", 9, 0), [b"/f", b"/g"], |r| {
            (r.at1, r.at2, r.dirfd2) = (1, 3, 4);
        }),
        "dirfd=AT_FDCWD</home/u>, dirfd2=4</data/g>"
    );
    assert_eq!(
        wide_row(&["args"], call("symlinkat", 9, 0), [b"../f", b"/s"], |r| {
            (r.at2, r.dirfd2) = (1, 6);
        }),
        "dirfd=6</home/u>"
    );
}

#[test]
fn two_paths() {
    assert_eq!(
        wide_row(PATHS, call("renameat2", 9, 0), [b"f", b"/data/../h"], |r| {
            r.dir1 = 1
        }),
        "renameat2 | f | /data/../h | /home/u/f | /data/../h | -"
    );
    assert_eq!(
        wide_row(
            ARGS,
            CallRecord {
                aux: 1,
                ..call("renameat2", 9, 0)
            },
            [b"f", b"g"],
            |r| {
                r.dirfd2 = 4;
            }
        ),
        "renameat2 | RENAME_NOREPLACE | dirfd=AT_FDCWD, dirfd2=4"
    );
    assert_eq!(
        wide_row(PATHS, call("symlinkat", 9, 0), [b"../f", b"s"], |r| r
            .dir2 =
            1),
        "symlinkat | ../f | s | - | /home/u/s | -"
    );
    assert_eq!(
        wide_row(ARGS, call("symlinkat", 9, 0), [b"../f", b"s"], |r| r
            .dirfd2 =
            6),
        "symlinkat | - | dirfd=6"
    );
    assert_eq!(
        wide_row(PATHS, call("link", 9, 0), [b"f", b"g"], |r| (
            r.dir1, r.dir2
        ) = (1, 1)),
        "link | f | g | /home/u/f | /home/u/g | -"
    );
}

#[test]
fn two_files() {
    let copy = CallRecord {
        fd: 5,
        file: 2,
        offset: 10,
        size: 99,
        ..call("copy_file_range", 9, 7)
    };
    let columns = [
        "path",
        "path2",
        "file_offset",
        "bytes",
        "fd",
        "flags",
        "args",
    ];
    assert_eq!(
        wide_row(&columns, copy, [b"", b""], |r| (
            r.file2, r.fd2, r.offset2
        ) = (3, 6, 200)),
        "/home/u/f | /data/g | 10 | 7 | 5 | 0 | fd_out=6, off_out=200"
    );
    let send = CallRecord {
        fd: 5,
        file: 2,
        ..call("sendfile", 9, 7)
    };
    assert_eq!(
        wide_row(&columns, send, [b"", b""], |r| (r.file2, r.fd2) = (4, 1)),
        "/home/u/f | pipe:[900] | - | 7 | 5 | - | fd_out=1"
    );
}

#[test]
fn strings_that_could_not_be_read() {
    let partial = |name, flags: u32, s1: &'static [u8], s2: &'static [u8]| {
        let columns = ["path_arg", "path", "path_arg2", "path2", "args"];
        let record = CallRecord {
            flags: flags as u8,
            ..call(name, 9, -14)
        };
        wide_row(&columns, record, [s1, s2], |r| r.dir1 = 1)
    };
    assert_eq!(
        partial("unlink", CALL_STRING1_PARTIAL, b"", b""),
        "- | - | - | - | path_arg=partial"
    );
    assert_eq!(
        partial("rename", CALL_STRING2_PARTIAL, b"a", b"/cut"),
        "a | /home/u/a | /cut | - | path_arg2=partial"
    );
    assert_eq!(
        partial("getxattr", CALL_STRING2_PARTIAL, b"a", b""),
        "a | /home/u/a | - | - | name=partial"
    );
    assert_eq!(
        partial("getxattr", CALL_STRING2_PARTIAL, b"a", b"user."),
        "a | /home/u/a | - | - | name=\"user.\"..."
    );
}

#[test]
fn bytes_that_are_not_text() {
    assert_eq!(
        wide_row(PATHS, call("unlink", 9, 0), [b"a\xff\\\n", b""], |r| r
            .dir1 =
            1),
        "unlink | a\\xff\\\\\n | - | /home/u/a\\xff\\\\\n | - | -"
    );
}

#[test]
fn calls_that_open_nothing_have_the_path_behind_a_link_to_a_directory() {
    const WAYS: &[&str] = &["syscall", "path_arg", "path", "path2"];
    let mut enricher = enricher();
    let mut rows = Vec::new();
    let mut show = |call: CallRecord, strings: [&[u8]; 2], created: bool| {
        let (mut record, text) = wide(call, strings[0], strings[1]);
        if created {
            record.arg_flags |= ARG_CREATED;
        }
        let bytes = [&record.to_bytes()[..], &text].concat();
        enricher.event(0, &decode(Ring::Wide, &bytes).unwrap());
        let batches = enricher.take();
        batches.iter().for_each(check);
        rows.push(row(batch(&batches, "syscalls"), 0, WAYS));
    };
    // Handle 3 is /data/g, 1 the directory /home/u.
    let opened = CallRecord {
        file: 3,
        ..call("openat", 10, 5)
    };
    let entered = CallRecord {
        file: 1,
        ..call("chdir", 20, 0)
    };
    show(call("unlink", 9, 0), [b"/link/a", b""], false);
    show(opened, [b"/link/g", b""], false);
    show(call("unlink", 11, 0), [b"/link/b", b""], false);
    show(opened, [b"/link/g", b""], true);
    show(call("unlink", 12, 0), [b"/link/c", b""], false);
    show(call("rename", 13, 0), [b"/link/d", b"/link/e"], false);
    show(call("newfstatat", 14, -2), [b"/link", b""], false);
    show(entered, [b"/me", b""], false);
    show(call("access", 21, 0), [b"/me/x", b""], false);
    // The link is another one now.
    show(call("rename", 22, 0), [b"/new", b"/me"], false);
    show(call("access", 23, 0), [b"/me/x", b""], false);
    // The directory that a relative path started from is not known any more.
    show(entered, [b"u", b""], false);
    show(call("unlink", 30, 0), [b"/home/u/u/x", b""], false);
    assert_eq!(
        rows,
        [
            "unlink | /link/a | /link/a | -",
            "openat | /link/g | /data/g | -",
            "unlink | /link/b | /link/b | -",
            "openat | /link/g | /data/g | -",
            "unlink | /link/c | /data/c | -",
            "rename | /link/d | /data/d | /data/e",
            "newfstatat | /link | /link | -",
            "chdir | /me | /home/u | -",
            "access | /me/x | /home/u/x | -",
            "rename | /new | /new | /me",
            "access | /me/x | /me/x | -",
            "chdir | u | /home/u | -",
            "unlink | /home/u/u/x | /home/u/u/x | -",
        ]
    );
}

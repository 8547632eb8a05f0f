use super::*;
use std::collections::HashSet;

#[test]
fn calls_of_32_bit_programs_are_known_calls() {
    let mut numbers = HashSet::new();
    for call in &I386 {
        let (index, desc) = call.desc().unwrap_or_else(|| panic!("{}", call.name));
        assert!(numbers.insert(call.number), "{} twice", call.number);
        assert!(u32::from(call.number) < crate::abi::MAX_NUMBERS);
        let native = SYSCALLS[index].desc(index);
        // The record has the layout of the call itself.
        assert_eq!(desc.flags, native.flags, "{}", call.name);
        let values = |d: &CallDesc| (d.aux != 255, d.extra.map(|e| e != 255));
        assert_eq!(values(&desc), values(&native), "{}", call.name);
        assert_eq!(desc.size == 255, native.size == 255, "{}", call.name);
    }
    let recorded: HashSet<_> = I386.iter().map(|call| call.name).collect();
    // Their accept is one of the calls behind socketcall.
    let of_all = |call: &&Syscall| call.api == Api::Syscall && call.name != "accept";
    for call in SYSCALLS.iter().filter(of_all) {
        assert!(recorded.contains(call.name), "{}", call.name);
    }
}

#[test]
fn plain_calls_have_nothing_else() {
    let plain = |name: &str| {
        let index = Syscall::index_of(name).unwrap();
        SYSCALLS[index].desc(index).plain == 1
    };
    for name in [
        "read", "write", "pread64", "pwrite64", "fsync", "fstat", "close",
    ] {
        assert!(plain(name), "{name}");
    }
    for name in [
        "dup",
        "fcntl",
        "ftruncate",
        "lseek",
        "mmap",
        "msync",
        "openat",
        "preadv2",
        "readv",
        "sendfile",
        "sync_file_range",
    ] {
        assert!(!plain(name), "{name}");
    }
    assert!(I386.iter().all(|call| call.desc().unwrap().1.plain == 0));
}

#[test]
fn rows_are_unique_and_fit_a_record() {
    let mut seen = HashSet::new();
    for call in &SYSCALLS {
        assert!(seen.insert(call.name), "{} twice", call.name);
        let numbers = [call.x86_64.map(|n| (0, n)), call.arm64.map(|n| (1, n))];
        for (arch, n) in numbers.into_iter().flatten() {
            let key = format!("{}:{arch}:{n}", call.api.name());
            assert!(seen.insert(Box::leak(key.into_boxed_str())));
            assert!(u32::from(n) < crate::abi::MAX_NUMBERS);
        }
        let most = match call.operation() {
            None => 6,
            Some(place) => {
                assert!(u32::from(place) < crate::abi::MAX_OPERATIONS);
                assert!(call.api == Api::Aio || u32::from(place) < AIO_OPERATIONS);
                7
            }
        };
        assert!(call.args.len() <= most, "{}", call.name);
        let extras = call
            .values()
            .iter()
            .filter(|v| matches!(v.place, Place::Extra(_)))
            .count();
        assert!(extras <= MAX_EXTRA as usize, "{}", call.name);
    }
}

#[test]
fn what_kind_and_arguments_tell() {
    let check = |what: &str, is: fn(&Syscall) -> bool, yes: &[&str], no: &[&str]| {
        for name in yes.iter().chain(no) {
            let call = Syscall::named(name.as_bytes()).unwrap();
            assert_eq!(is(call), yes.contains(name), "{name} {what}");
        }
    };
    check(
        "works at the descriptor's position",
        Syscall::uses_position,
        &["read", "write", "readv", "writev"],
        &["pread64", "preadv2", "lseek", "IORING_OP_READ"],
    );
    check(
        "says where it works",
        Syscall::is_positional,
        &["pread64", "pwritev2", "IORING_OP_READ"],
        &["read", "writev", "lseek"],
    );
    check(
        "may have no path",
        |call| call.null_path,
        &["futimesat", "utimensat", "fanotify_mark"],
        &["openat", "utimes"],
    );
    check(
        "returns where the mapping is",
        |call| call.mapped_address() == RESULT_ARG as u8,
        &["mremap"],
        &["mmap", "munmap", "msync"],
    );
    check(
        "releases a descriptor",
        |call| call.desc(0).releases != 0,
        &["close"],
        &["close_range", "IORING_OP_CLOSE"],
    );
    check(
        "enters a directory by its path",
        |call| u32::from(call.desc(0).flags) & DESC_CHDIR != 0,
        &["chdir", "chroot"],
        &["fchdir", "mkdir"],
    );
    check(
        "gives names",
        Syscall::renames,
        &[
            "rename",
            "renameat",
            "renameat2",
            "link",
            "linkat",
            "mount",
            "umount2",
            "move_mount",
            "pivot_root",
            "io_uring_enter",
            "IORING_OP_RENAMEAT",
            "IORING_OP_LINKAT",
        ],
        &["symlink", "unlink", "io_submit", "IORING_OP_LINK_TIMEOUT"],
    );
    check(
        "moves data into a file or to a peer",
        Syscall::writes,
        &[
            "write",
            "pwritev2",
            "IORING_OP_WRITE_FIXED",
            "IOCB_CMD_PWRITE",
            "IORING_OP_SEND_ZC",
        ],
        &["read", "sendfile", "IORING_OP_RECV"],
    );
}

#[test]
fn layout_of_some_calls() {
    let desc = |name: &str| {
        let i = Syscall::index_of(name).unwrap();
        SYSCALLS[i].desc(i)
    };
    let read = desc("read");
    assert_eq!((read.fd, read.size, read.offset), (0, 2, NO_ARG as u8));
    assert_eq!(read.flags as u32, DESC_RET_BYTES | DESC_POSITION);
    let openat = desc("openat");
    assert_eq!((openat.dirfd1, openat.string1, openat.aux), (0, 1, 2));
    assert_eq!(openat.extra[0], 3);
    let mmap = desc("mmap");
    assert_eq!((mmap.fd, mmap.size, mmap.offset, mmap.aux), (4, 1, 5, 3));
    assert_eq!(mmap.extra, [0, 2, NO_ARG as u8]);
    let dup2 = desc("dup2");
    assert_eq!(dup2.flags as u32 & DESC_WIDE, 0);
    let sendfile = desc("sendfile");
    assert_eq!((sendfile.fd, sendfile.fd2, sendfile.offset_ptr), (1, 0, 2));
}

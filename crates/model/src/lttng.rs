//! Names that LTTng's kernel tracer has for calls and their arguments: the names of the kernel's own
//! functions. A trace in CTF has events `syscall_entry_NAME` and `syscall_exit_NAME`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::syscalls::{Api, SYSCALLS, Syscall, UNRECORDED};

/// A call as LTTng traces it.
#[derive(Debug)]
pub struct TracedCall {
    /// The call.
    pub call: &'static Syscall,
    /// Name behind `syscall_entry_`.
    pub event: &'static str,
    /// Names of the fields, one per argument of [`Syscall::args`].
    pub fields: Vec<&'static str>,
}

/// The call that table `syscalls` names `name`.
pub fn by_name(name: &str) -> Option<&'static TracedCall> {
    ALL.0.get(name).and_then(|at| ALL.2.get(*at))
}

/// The call of an event, by its name behind `syscall_entry_` or `sys_`. Names of 32-bit programs'
/// calls are among them where they differ in the name only.
pub fn by_event(event: &str) -> Option<&'static TracedCall> {
    ALL.1.get(event).and_then(|at| ALL.2.get(*at))
}

/// The name of a call that is never recorded, by its name behind `syscall_entry_`.
pub fn unrecorded(event: &str) -> Option<&'static str> {
    let named = UNRECORDED.iter().find(|call| call.name == event);
    named.map(|call| call.name)
}

type All = (
    HashMap<&'static str, usize>,
    HashMap<&'static str, usize>,
    Vec<TracedCall>,
);

static ALL: LazyLock<All> = LazyLock::new(|| {
    let mut all = Vec::new();
    let (mut names, mut events) = (HashMap::new(), HashMap::new());
    for call in SYSCALLS.iter().filter(|call| call.api == Api::Syscall) {
        let row = ROWS.iter().find(|(name, ..)| *name == call.name);
        let (event, fields) = row.map_or((call.name, ""), |(_, event, fields)| (*event, *fields));
        names.insert(call.name, all.len());
        // The event's own name goes before another call's.
        events.entry(call.name).or_insert(all.len());
        events.insert(event, all.len());
        all.push(TracedCall {
            call,
            event,
            fields: fields
                .split(' ')
                .filter(|field| !field.is_empty())
                .collect(),
        });
    }
    for (event, name) in OTHER_EVENTS {
        if let Some(at) = names.get(name) {
            events.entry(event).or_insert(*at);
        }
    }
    (names, events, all)
});

/// Further events of the same calls, on other architectures and of 32-bit programs.
const OTHER_EVENTS: &[(&str, &str)] = &[
    ("fstatat64", "newfstatat"),
    ("stat64", "stat"),
    ("lstat64", "lstat"),
    ("fstat64", "fstat"),
    ("sendfile64", "sendfile"),
    ("ftruncate64", "ftruncate"),
    ("truncate64", "truncate"),
    ("fcntl64", "fcntl"),
    ("statfs64", "statfs"),
    ("fstatfs64", "fstatfs"),
    ("fadvise64_64", "fadvise64"),
    ("mmap_pgoff", "mmap"),
    ("sync_file_range2", "sync_file_range"),
];

/// Call, event, fields of the arguments.
const ROWS: &[(&str, &str, &str)] = &[
    ("read", "read", "fd buf count"),
    ("write", "write", "fd buf count"),
    ("readv", "readv", "fd vec vlen"),
    ("writev", "writev", "fd vec vlen"),
    ("pread64", "pread64", "fd buf count pos"),
    ("pwrite64", "pwrite64", "fd buf count pos"),
    ("preadv", "preadv", "fd vec vlen pos_l"),
    ("pwritev", "pwritev", "fd vec vlen pos_l"),
    ("preadv2", "preadv2", "fd vec vlen pos_l pos_h flags"),
    ("pwritev2", "pwritev2", "fd vec vlen pos_l pos_h flags"),
    ("readahead", "readahead", "fd offset count"),
    ("fsync", "fsync", "fd"),
    ("fdatasync", "fdatasync", "fd"),
    ("sync", "sync", ""),
    ("syncfs", "syncfs", "fd"),
    (
        "sync_file_range",
        "sync_file_range",
        "fd offset nbytes flags",
    ),
    (
        "copy_file_range",
        "copy_file_range",
        "fd_in off_in fd_out off_out len flags",
    ),
    ("sendfile", "sendfile64", "out_fd in_fd offset count"),
    ("splice", "splice", "fd_in off_in fd_out off_out len flags"),
    ("tee", "tee", "fdin fdout len flags"),
    ("vmsplice", "vmsplice", "fd uiov nr_segs flags"),
    ("fallocate", "fallocate", "fd mode offset len"),
    ("fadvise64", "fadvise64", "fd offset len advice"),
    ("creat", "creat", "pathname mode"),
    ("open", "open", "filename flags mode"),
    ("openat", "openat", "dfd filename flags mode"),
    ("openat2", "openat2", "dfd filename how usize"),
    ("close", "close", "fd"),
    ("close_range", "close_range", "fd max_fd flags"),
    ("lseek", "lseek", "fd offset whence"),
    ("truncate", "truncate", "path length"),
    ("ftruncate", "ftruncate", "fd length"),
    ("rename", "rename", "oldname newname"),
    ("renameat", "renameat", "olddfd oldname newdfd newname"),
    (
        "renameat2",
        "renameat2",
        "olddfd oldname newdfd newname flags",
    ),
    ("unlink", "unlink", "pathname"),
    ("unlinkat", "unlinkat", "dfd pathname flag"),
    ("readlink", "readlink", "path buf bufsiz"),
    ("readlinkat", "readlinkat", "dfd pathname buf bufsiz"),
    ("stat", "newstat", "filename statbuf"),
    ("lstat", "newlstat", "filename statbuf"),
    ("fstat", "newfstat", "fd statbuf"),
    ("newfstatat", "newfstatat", "dfd filename statbuf flag"),
    ("statx", "statx", "dfd filename flags mask buffer"),
    ("statfs", "statfs", "pathname buf"),
    ("fstatfs", "fstatfs", "fd buf"),
    ("access", "access", "filename mode"),
    ("faccessat", "faccessat", "dfd filename mode"),
    ("faccessat2", "faccessat2", "dfd filename mode flags"),
    ("chmod", "chmod", "filename mode"),
    ("fchmod", "fchmod", "fd mode"),
    ("fchmodat", "fchmodat", "dfd filename mode"),
    ("fchmodat2", "fchmodat2", "dfd filename mode flags"),
    ("chown", "chown", "filename user group"),
    ("lchown", "lchown", "filename user group"),
    ("fchown", "fchown", "fd user group"),
    ("fchownat", "fchownat", "dfd filename user group flag"),
    ("utime", "utime", "filename times"),
    ("utimes", "utimes", "filename utimes"),
    ("futimesat", "futimesat", "dfd filename utimes"),
    ("utimensat", "utimensat", "dfd filename utimes flags"),
    ("link", "link", "oldname newname"),
    ("linkat", "linkat", "olddfd oldname newdfd newname flags"),
    ("symlink", "symlink", "oldname newname"),
    ("symlinkat", "symlinkat", "oldname newdfd newname"),
    ("dup", "dup", "fildes"),
    ("dup2", "dup2", "oldfd newfd"),
    ("dup3", "dup3", "oldfd newfd flags"),
    ("fcntl", "fcntl", "fd cmd arg"),
    ("flock", "flock", "fd cmd"),
    ("ioctl", "ioctl", "fd cmd"),
    ("memfd_create", "memfd_create", "uname flags"),
    (
        "name_to_handle_at",
        "name_to_handle_at",
        "dfd name handle mnt_id flag",
    ),
    (
        "open_by_handle_at",
        "open_by_handle_at",
        "mountdirfd handle flags",
    ),
    (
        "file_getattr",
        "file_getattr",
        "dfd filename ufattr usize at_flags",
    ),
    (
        "file_setattr",
        "file_setattr",
        "dfd filename ufattr usize at_flags",
    ),
    ("cachestat", "cachestat", "fd cstat_range cstat flags"),
    ("ustat", "ustat", "dev ubuf"),
    ("umask", "umask", "mask"),
    ("mount", "mount", "dev_name dir_name type flags data"),
    ("umount2", "umount", "name flags"),
    ("open_tree", "open_tree", "dfd filename flags"),
    (
        "open_tree_attr",
        "open_tree_attr",
        "dfd filename flags uattr usize",
    ),
    (
        "move_mount",
        "move_mount",
        "from_dfd from_pathname to_dfd to_pathname flags",
    ),
    ("fsopen", "fsopen", "_fs_name flags"),
    ("fsconfig", "fsconfig", "fd cmd _key _value aux"),
    ("fsmount", "fsmount", "fs_fd flags attr_flags"),
    ("fspick", "fspick", "dfd path flags"),
    (
        "mount_setattr",
        "mount_setattr",
        "dfd path flags uattr usize",
    ),
    ("statmount", "statmount", "req buf bufsize flags"),
    ("listmount", "listmount", "req mnt_ids nr_mnt_ids flags"),
    ("quotactl", "quotactl", "cmd special id addr"),
    ("quotactl_fd", "quotactl_fd", "fd cmd id addr"),
    ("swapon", "swapon", "specialfile swap_flags"),
    ("swapoff", "swapoff", "specialfile"),
    ("inotify_init", "inotify_init", ""),
    ("inotify_init1", "inotify_init1", "flags"),
    ("inotify_add_watch", "inotify_add_watch", "fd pathname mask"),
    ("inotify_rm_watch", "inotify_rm_watch", "fd wd"),
    ("fanotify_init", "fanotify_init", "flags event_f_flags"),
    (
        "fanotify_mark",
        "fanotify_mark",
        "fanotify_fd flags mask dfd pathname",
    ),
    ("mkdir", "mkdir", "pathname mode"),
    ("mkdirat", "mkdirat", "dfd pathname mode"),
    ("rmdir", "rmdir", "pathname"),
    ("mknod", "mknod", "filename mode dev"),
    ("mknodat", "mknodat", "dfd filename mode dev"),
    ("getdents", "getdents", "fd dirent count"),
    ("getdents64", "getdents64", "fd dirent count"),
    ("chdir", "chdir", "filename"),
    ("fchdir", "fchdir", "fd"),
    ("chroot", "chroot", "filename"),
    ("pivot_root", "pivot_root", "new_root put_old"),
    ("getxattr", "getxattr", "pathname name value size"),
    ("lgetxattr", "lgetxattr", "pathname name value size"),
    ("fgetxattr", "fgetxattr", "fd name value size"),
    ("setxattr", "setxattr", "pathname name value size flags"),
    ("lsetxattr", "lsetxattr", "pathname name value size flags"),
    ("fsetxattr", "fsetxattr", "fd name value size flags"),
    ("listxattr", "listxattr", "pathname list size"),
    ("llistxattr", "llistxattr", "pathname list size"),
    ("flistxattr", "flistxattr", "fd list size"),
    ("removexattr", "removexattr", "pathname name"),
    ("lremovexattr", "lremovexattr", "pathname name"),
    ("fremovexattr", "fremovexattr", "fd name"),
    (
        "setxattrat",
        "setxattrat",
        "dfd pathname at_flags name uargs usize",
    ),
    (
        "getxattrat",
        "getxattrat",
        "dfd pathname at_flags name uargs usize",
    ),
    (
        "listxattrat",
        "listxattrat",
        "dfd pathname at_flags list size",
    ),
    (
        "removexattrat",
        "removexattrat",
        "dfd pathname at_flags name",
    ),
    ("mmap", "mmap", "addr len prot flags fd off"),
    ("munmap", "munmap", "addr len"),
    ("msync", "msync", "start len flags"),
    ("madvise", "madvise", "start len_in behavior"),
    ("mremap", "mremap", "addr old_len new_len flags new_addr"),
    (
        "remap_file_pages",
        "remap_file_pages",
        "start size prot pgoff flags",
    ),
    (
        "process_madvise",
        "process_madvise",
        "pidfd vec vlen behavior flags",
    ),
    ("mprotect", "mprotect", "start len prot"),
    ("pkey_mprotect", "pkey_mprotect", "start len prot pkey"),
    ("mincore", "mincore", "start len vec"),
    ("mlock", "mlock", "start len"),
    ("mlock2", "mlock2", "start len flags"),
    ("munlock", "munlock", "start len"),
    ("mlockall", "mlockall", "flags"),
    ("munlockall", "munlockall", ""),
    ("memfd_secret", "memfd_secret", "flags"),
    ("userfaultfd", "userfaultfd", "flags"),
    ("io_setup", "io_setup", "nr_events ctxp"),
    ("io_destroy", "io_destroy", "ctx"),
    ("io_submit", "io_submit", "ctx_id nr iocbpp"),
    ("io_cancel", "io_cancel", "ctx_id iocb result"),
    (
        "io_getevents",
        "io_getevents",
        "ctx_id min_nr nr events timeout",
    ),
    (
        "io_pgetevents",
        "io_pgetevents",
        "ctx_id min_nr nr events timeout usig",
    ),
    ("io_uring_setup", "io_uring_setup", "entries params"),
    (
        "io_uring_enter",
        "io_uring_enter",
        "fd to_submit min_complete flags",
    ),
    (
        "io_uring_register",
        "io_uring_register",
        "fd opcode arg nr_args",
    ),
    ("socket", "socket", "family type protocol"),
    ("socketpair", "socketpair", "family type protocol usockvec"),
    ("bind", "bind", "fd umyaddr addrlen"),
    ("listen", "listen", "fd backlog"),
    ("accept", "accept", "fd upeer_sockaddr upeer_addrlen"),
    (
        "accept4",
        "accept4",
        "fd upeer_sockaddr upeer_addrlen flags",
    ),
    ("connect", "connect", "fd uservaddr addrlen"),
    ("shutdown", "shutdown", "fd how"),
    ("sendto", "sendto", "fd buff len flags addr addr_len"),
    ("sendmsg", "sendmsg", "fd msg flags"),
    ("sendmmsg", "sendmmsg", "fd mmsg vlen flags"),
    ("recvfrom", "recvfrom", "fd ubuf size flags addr addr_len"),
    ("recvmsg", "recvmsg", "fd msg flags"),
    ("recvmmsg", "recvmmsg", "fd mmsg vlen flags timeout"),
    ("getsockname", "getsockname", "fd usockaddr usockaddr_len"),
    ("getpeername", "getpeername", "fd usockaddr usockaddr_len"),
    ("setsockopt", "setsockopt", "fd level optname optval optlen"),
    ("getsockopt", "getsockopt", "fd level optname optval optlen"),
    ("pipe", "pipe", "fildes"),
    ("pipe2", "pipe2", "fildes flags"),
    ("poll", "poll", "ufds nfds timeout_msecs"),
    ("ppoll", "ppoll", "ufds nfds tsp sigmask sigsetsize"),
    ("select", "select", "n inp outp exp tvp"),
    ("pselect6", "pselect6", "n inp outp exp tsp sig"),
    ("epoll_create", "epoll_create", "size"),
    ("epoll_create1", "epoll_create1", "flags"),
    ("epoll_ctl", "epoll_ctl", "epfd op fd event"),
    ("epoll_wait", "epoll_wait", "epfd events maxevents timeout"),
    (
        "epoll_pwait",
        "epoll_pwait",
        "epfd events maxevents timeout sigmask sigsetsize",
    ),
    (
        "epoll_pwait2",
        "epoll_pwait2",
        "epfd events maxevents timeout sigmask sigsetsize",
    ),
    ("futex", "futex", "uaddr op val utime uaddr2 val3"),
    (
        "futex_waitv",
        "futex_waitv",
        "waiters nr_futexes flags timeout clockid",
    ),
    ("futex_wake", "futex_wake", "uaddr mask nr flags"),
    (
        "futex_wait",
        "futex_wait",
        "uaddr val mask flags timeout clockid",
    ),
    (
        "futex_requeue",
        "futex_requeue",
        "waiters flags nr_wake nr_requeue",
    ),
    ("nanosleep", "nanosleep", "rqtp rmtp"),
    (
        "clock_nanosleep",
        "clock_nanosleep",
        "which_clock flags rqtp rmtp",
    ),
    ("wait4", "wait4", "upid stat_addr options ru"),
    ("waitid", "waitid", "which upid infop options ru"),
    ("pause", "pause", ""),
    ("eventfd", "eventfd", "count"),
    ("eventfd2", "eventfd2", "count flags"),
    ("timerfd_create", "timerfd_create", "clockid flags"),
    ("timerfd_settime", "timerfd_settime", "ufd flags utmr otmr"),
    ("signalfd4", "signalfd4", "ufd user_mask sizemask flags"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_has_a_name() {
        for (name, ..) in ROWS {
            let traced = by_name(name).unwrap();
            assert_eq!(traced.fields.len(), traced.call.args.len(), "{name}");
            assert_eq!(by_event(traced.event).unwrap().call.name, *name);
        }
        for call in SYSCALLS
            .iter()
            .filter(|call| call.api == Api::Syscall && call.x86_64.is_some())
        {
            assert!(
                ROWS.iter().any(|(name, ..)| *name == call.name),
                "{}",
                call.name
            );
        }
    }

    #[test]
    fn events_of_old_and_new_names() {
        for (event, name) in [
            ("newstat", "stat"),
            ("stat", "stat"),
            ("openat", "openat"),
            ("fstatat64", "newfstatat"),
            ("sendfile64", "sendfile"),
        ] {
            assert_eq!(by_event(event).unwrap().call.name, name);
        }
        assert!(by_event("brk").is_none());
    }
}

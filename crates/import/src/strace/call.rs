//! A call of a log as a row: the same table as for recordings (`fathom_model::syscalls`) defines
//! the meaning of each argument.

use fathom_model::bytes::{angle_like_strace, escape_invalid_utf8};
use fathom_model::kind::Kind;
use fathom_model::syscalls::{Api, Arg, Returns, SYSCALLS, Syscall};

use super::line::find;
use super::tasks::Task;
use super::value::{Answer, descriptor, inside, integer, string, without_comment};
use crate::builder::{Builder, Call};
use crate::text::absolute;

/// The call that strace calls `name`, in a form of 32-bit programs or without a
/// name too.
pub fn known(name: &[u8]) -> Option<&'static Syscall> {
    let name = std::str::from_utf8(name).ok()?;
    let native = match name {
        "_llseek" => "lseek",
        "mmap2" => "mmap",
        "old_mmap" => return None,
        "fstat64" => "fstat",
        "stat64" => "stat",
        "lstat64" => "lstat",
        "fstatat64" => "newfstatat",
        "truncate64" => "truncate",
        "ftruncate64" => "ftruncate",
        "fcntl64" => "fcntl",
        "sendfile64" => "sendfile",
        "statfs64" => "statfs",
        "fstatfs64" => "fstatfs",
        "fadvise64_64" | "arm_fadvise64_64" => "fadvise64",
        "chown32" => "chown",
        "fchown32" => "fchown",
        "lchown32" => "lchown",
        "utimensat_time64" => "utimensat",
        "io_pgetevents_time64" => "io_pgetevents",
        name => name,
    };
    if let Some(number) = native.strip_prefix("syscall_0x") {
        let number = u16::from_str_radix(number, 16).ok()?;
        return SYSCALLS
            .iter()
            .find(|s| s.api == Api::Syscall && s.number() == Some(number));
    }
    let call = SYSCALLS.get(Syscall::index_of(native)?)?;
    (call.api == Api::Syscall).then_some(call)
}

/// Puts arguments into the order of the call's table: 32-bit programs pass them in another order,
/// and strace leaves some out.
pub fn reorder(name: &[u8], args: &mut Vec<&[u8]>) {
    match (name, args.len()) {
        // fd, offset, result, whence
        (b"_llseek", 4) => {
            args.remove(2);
        }
        // path, size of the structure, structure
        (b"statfs64" | b"fstatfs64", 3) => {
            args.remove(1);
        }
        // Without the upper half of the offset, which strace does not show.
        (b"preadv2" | b"pwritev2", 5) => args.insert(4, b"?"),
        // fd, advice, offset, length
        (b"arm_fadvise64_64", 4) => {
            let advice = args.remove(1);
            args.push(advice);
        }
        _ => {}
    }
}

/// Whether the call moves the position of its first descriptor.
pub fn moves_position(call: &Syscall) -> bool {
    call.uses_position()
        || offset_may_be_none(call)
        || matches!(call.kind, Kind::Seek | Kind::Transfer | Kind::ReadDir)
}

/// Whether -1 as offset means the position of the descriptor (`preadv2`).
pub fn offset_may_be_none(call: &Syscall) -> bool {
    let flags = |arg: &Arg| matches!(arg, Arg::Value { kind: "RWF", .. });
    call.args.iter().any(flags)
}

/// The row of a call, without what needs the descriptors' positions.
pub fn row(
    call: &'static Syscall,
    args: &[&[u8]],
    answer: &Answer,
    task: &Task,
    ts_ns: i64,
    builder: &mut Builder,
) -> Call {
    let mut row = Call {
        ts_ns,
        dur_ns: answer.dur_ns,
        pid: task.info.pid,
        tid: task.info.tid,
        comm: task.info.comm.clone(),
        ret: answer.ret,
        ..Call::default()
    };
    let failed = answer.ret.is_none_or(|r| (-4095..0).contains(&r));
    let at = |role: Arg| call.position(role).and_then(|i| args.get(i)).copied();
    if let Some((fd, path)) = at(Arg::Fd).or(at(Arg::Ring)).and_then(descriptor) {
        row.fd = Some(fd);
        if call.position(Arg::Fd).is_some() {
            behind(&mut row, fd, path, task, builder);
        } else {
            // A ring is not the file of the call.
            row.path = path;
        }
    }
    if let Some((fd, path)) = at(Arg::Fd2).and_then(descriptor) {
        let description = task.description(fd);
        row.path2 = path.or_else(|| description.and_then(|d| d.borrow().path.clone()));
        named("fd_out", &fd.to_string(), &mut row.args);
    }
    paths(call, args, answer, task, &mut row, builder, failed);
    row.size = match at(Arg::Size) {
        Some(arg) if call.position(Arg::How).is_none() => integer(arg),
        _ => at(Arg::Iov).and_then(|iov| vector_bytes(iov, at(Arg::Iovcnt))),
    };
    row.offset = at(Arg::Offset)
        .or(at(Arg::Pages))
        .and_then(integer)
        .or_else(|| at(Arg::OffsetPtr).and_then(pointed));
    if call.returns == Returns::Bytes && !failed {
        row.bytes = answer.ret;
    }
    let mut text = String::new();
    for (role, arg) in call.args.iter().zip(args) {
        other(call, *role, arg, &mut row, &mut text);
    }
    for (role, name) in [(Arg::Path, "path_arg"), (Arg::Path2, "path_arg2")] {
        if at(role) == Some(b"NULL") {
            named(name, "NULL", &mut text);
        }
    }
    row.args = text;
    row
}

/// The file behind a descriptor.
fn behind(row: &mut Call, fd: i32, path: Option<Vec<u8>>, task: &Task, builder: &mut Builder) {
    let description = task.description(fd);
    let known = description.as_ref().map(|d| {
        let d = d.borrow();
        (d.path.clone(), d.file_id)
    });
    let (opened_as, file_id) = known.unwrap_or_default();
    row.path = path.or(opened_as);
    row.file_id = match (file_id, &row.path) {
        (Some(id), _) => Some(id),
        (None, Some(path)) if fd >= 0 => {
            let id = builder.file(path, kind_of_name(path), row.ts_ns);
            Some(id)
        }
        _ => None,
    };
    if let (Some(description), Some(id)) = (description, row.file_id) {
        description.borrow_mut().file_id = Some(id);
    }
}

/// Types that follow from the name: `pipe:[7]`.
pub fn kind_of_name(path: &[u8]) -> &'static str {
    const SOCKETS: [&[u8]; 7] = [
        b"socket:", b"TCP", b"UDP", b"UNIX", b"NETLINK", b"RAW", b"PACKET",
    ];
    if path.starts_with(b"/") {
        "unknown"
    } else if path.starts_with(b"pipe:") {
        "fifo"
    } else if SOCKETS.iter().any(|s| path.starts_with(s)) {
        "socket"
    } else if path.starts_with(b"anon_inode:") {
        "anonymous"
    } else {
        "unknown"
    }
}

fn paths(
    call: &'static Syscall,
    args: &[&[u8]],
    answer: &Answer,
    task: &Task,
    row: &mut Call,
    builder: &mut Builder,
    failed: bool,
) {
    let at = |role: Arg| call.position(role).and_then(|i| args.get(i)).copied();
    let directory = |role: Arg| -> Option<Vec<u8>> {
        match at(role).and_then(descriptor) {
            None | Some((-100, None)) => task.cwd.borrow().clone(),
            Some((_, Some(path))) => Some(path),
            Some((fd, None)) => task.description(fd)?.borrow().path.clone(),
        }
    };
    let full = |dir: Option<Vec<u8>>, arg: &[u8]| absolute(dir.as_deref(), arg);
    row.path_arg = at(Arg::Path).or(at(Arg::Target)).and_then(string);
    row.path_arg2 = at(Arg::Path2).and_then(string);
    // The file behind the descriptor itself.
    let own = call.kind == Kind::SetAttr && call.null_path && at(Arg::Path) == Some(b"NULL");
    let path = row.path_arg.as_deref().or(own.then_some(b"".as_slice()));
    if let (Some(arg), true) = (path, call.position(Arg::Path).is_some()) {
        row.path = full(directory(Arg::Dirfd), arg);
    }
    if let Some(arg) = &row.path_arg2 {
        row.path2 = full(directory(Arg::Dirfd2), arg);
    }
    // The file itself, which may lie elsewhere than where the path led.
    if call.returns == Returns::Fd
        && !failed
        && call.position(Arg::Fd).is_none()
        && let Some(path) = &answer.path
    {
        row.path = Some(path.clone());
    }
    let by_path = call.position(Arg::Fd).is_none();
    let finds = match call.kind {
        Kind::Open | Kind::Stat => by_path,
        _ => call.name == "io_uring_setup",
    };
    if let (true, false, Some(path)) = (finds, failed, &row.path) {
        let kind = args.iter().find_map(|a| mode_kind(a)).unwrap_or_else(|| {
            let directory = args.iter().any(|a| find(a, b"O_DIRECTORY").is_some());
            match kind_of_name(path) {
                "unknown" if directory => "directory",
                kind => kind,
            }
        });
        row.file_id = Some(builder.file(path, kind, row.ts_ns));
    }
}

/// The file type in a stat structure.
pub fn mode_kind(arg: &[u8]) -> Option<&'static str> {
    let at = find(arg, b"st_mode=S_IF").map(|at| at + 8);
    let at = at.or_else(|| find(arg, b"stx_mode=S_IF").map(|at| at + 9))?;
    let name = arg.get(at..)?;
    let kinds: [(&[u8], &str); 7] = [
        (b"S_IFREG", "regular"),
        (b"S_IFDIR", "directory"),
        (b"S_IFLNK", "symlink"),
        (b"S_IFBLK", "block"),
        (b"S_IFCHR", "char"),
        (b"S_IFIFO", "fifo"),
        (b"S_IFSOCK", "socket"),
    ];
    kinds
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map(|(_, kind)| *kind)
}

/// The lengths of `[{iov_base="..."..., iov_len=64}, ...]` together; `None` when
/// strace left some out.
fn vector_bytes(iov: &[u8], count: Option<&[u8]>) -> Option<i64> {
    let parts = inside(iov)?;
    if Some(parts.len() as i64) != count.and_then(integer) {
        return None;
    }
    let mut sum: i64 = 0;
    for part in parts {
        let length = inside(part)?
            .into_iter()
            .find_map(|m| integer(m.strip_prefix(b"iov_len=")?))?;
        sum = sum.checked_add(length)?;
    }
    Some(sum)
}

/// The number in `[100]` or `[100] => [200]`.
pub fn pointed(arg: &[u8]) -> Option<i64> {
    let end = arg.iter().position(|b| *b == b']')?;
    integer(arg.get(1..end).filter(|_| arg.starts_with(b"["))?)
}

/// Flags and the arguments of column `args`.
fn other(call: &Syscall, role: Arg, arg: &[u8], row: &mut Call, out: &mut String) {
    let text = escape_invalid_utf8(arg);
    let number = || descriptor(arg).map(|(fd, _)| fd);
    match role {
        Arg::Dirfd | Arg::Dirfd2 => {
            let name = match role {
                Arg::Dirfd2 if call.position(Arg::Target).is_none() => "dirfd2",
                _ => "dirfd",
            };
            let Some((fd, path)) = descriptor(arg) else {
                return;
            };
            match fd {
                -100 => named(name, "AT_FDCWD", out),
                fd => named(name, &fd.to_string(), out),
            }
            if let Some(path) = path {
                angle_like_strace(&path, out);
            }
        }
        Arg::Fd2 => {
            if let Some(fd) = number() {
                named("fd_out", &fd.to_string(), out);
            }
        }
        Arg::OffsetPtr2 => {
            if let Some(offset) = pointed(arg) {
                named("off_out", &offset.to_string(), out);
            }
        }
        Arg::Seek => named("offset", &text, out),
        Arg::Length => {
            if let Some(length) = integer(arg) {
                named("length", &(length as u64).to_string(), out);
            }
        }
        Arg::Name if arg.starts_with(b"\"") => named("name", &text, out),
        Arg::Utimbuf | Arg::Timevals | Arg::Timespecs => {
            let known =
                (arg.starts_with(b"[") || arg.starts_with(b"{")) && find(arg, b"...").is_none();
            if known {
                named("times", &without_comments(&text), out);
            }
        }
        Arg::How => {
            for part in inside(arg).unwrap_or_default() {
                let part = escape_invalid_utf8(part);
                match part.split_once('=') {
                    Some(("flags", value)) => row.flags = Some(value.to_string()),
                    Some((name @ ("mode" | "resolve"), value)) => named(name, value, out),
                    _ => {}
                }
            }
        }
        Arg::Value { name: "flags", .. } => row.flags = Some(text.into_owned()),
        Arg::Value { name, kind } => match arg {
            b"?" => {}
            // Of a call that strace does not know.
            _ if kind == "octal" && arg.starts_with(b"0x") => {
                if let Some(mode) = integer(arg) {
                    named(name, &format!("0{mode:o}"), out);
                }
            }
            _ if find(arg, b"<").is_some() => match number() {
                Some(fd) => named(name, &fd.to_string(), out),
                None => named(name, &text, out),
            },
            _ => named(name, &text, out),
        },
        _ => {}
    }
}

fn named(name: &str, value: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push('=');
    out.push_str(value);
}

/// strace writes the date behind times.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" /* ") {
        out.push_str(before);
        rest = after.split_once(" */").map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// The words of `["a", "b"]`; `None` when strace cut some.
pub fn words(argv: &[u8]) -> Option<Vec<Vec<u8>>> {
    let words = inside(without_comment(argv))?;
    words.into_iter().map(string).collect()
}

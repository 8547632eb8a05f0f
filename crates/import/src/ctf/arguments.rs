//! Fields of a call as columns of table `syscalls`, and what a call changes of descriptors.

use fathom_enrich::{FileType, text_of};
use fathom_model::bytes::{angle_like_strace, quote_like_strace};
use fathom_model::kind::Kind;
use fathom_model::lttng::TracedCall;
use fathom_model::syscalls::{Arg, Returns};

use super::events::{Ended, Process, int, text};
use super::types::Value;
use crate::builder::{Builder, Call};
use crate::text::absolute;

const AT_FDCWD: i64 = -100;
const F_DUPFD: i64 = 0;
const F_SETFD: i64 = 2;
const F_DUPFD_CLOEXEC: i64 = 1030;

/// A descriptor.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub path: Vec<u8>,
    pub file_id: i64,
    pub closes_on_exec: bool,
}

impl Slot {
    pub fn new(path: Vec<u8>, ns: i64, builder: &mut Builder) -> Self {
        let file_id = builder.file(&path, kind_of_name(&path), ns);
        Slot {
            path,
            file_id,
            closes_on_exec: false,
        }
    }
}

fn kind_of_name(path: &[u8]) -> &'static str {
    for (prefix, kind) in [
        (b"pipe:".as_slice(), "fifo"),
        (b"socket:", "socket"),
        (b"anon_inode:", "anonymous"),
    ] {
        if path.starts_with(prefix) {
            return kind;
        }
    }
    "unknown"
}

/// Type of the file that a call is about, as far as the trace has it.
pub(super) fn file_type(
    traced: &TracedCall,
    fields: &Value,
    process: Option<&Process>,
) -> FileType {
    let at = traced.call.position(Arg::Fd);
    let field = at.and_then(|at| traced.fields.get(at));
    let Some(fd) = field.and_then(|field| int(fields, field)) else {
        // Calls on paths are about files, and others about none.
        return match traced.call.position(Arg::Path) {
            Some(_) => FileType::Storage,
            None => FileType::Unknown,
        };
    };
    let slot = process.and_then(|process| slot(process, Some(fd)));
    let Some(path) = slot.map(|slot| slot.path.as_slice()) else {
        return FileType::Unknown;
    };
    match kind_of_name(path) {
        "socket" => FileType::Socket,
        "fifo" => FileType::Pipe,
        "anonymous" => FileType::Anonymous,
        _ if path.starts_with(b"/dev/pts/") || path.starts_with(b"/dev/tty") => FileType::Terminal,
        _ if path.starts_with(b"/") => FileType::Storage,
        _ => FileType::Unknown,
    }
}

/// The row of a call.
pub(super) fn row(ended: &Ended<'_>, process: &Process, builder: &mut Builder) -> Call {
    let call = ended.traced.call;
    let failed = ended.ret.is_none_or(|ret| (-4095..0).contains(&ret));
    let mut row = Call {
        rid: ended.rid,
        ts_ns: ended.ts_ns,
        dur_ns: ended.dur_ns,
        pid: ended.pid,
        tid: ended.tid,
        comm: ended.comm.clone(),
        cpu: ended.cpu,
        ret: ended.ret,
        bytes: ended
            .ret
            .filter(|_| call.returns == Returns::Bytes && !failed),
        ..Call::default()
    };
    for (role, field) in call.args.iter().zip(&ended.traced.fields) {
        argument(ended, *role, field, process, &mut row);
    }
    // Before fathom's own fields, which are there if it wrote the trace.
    let directory = |role: Arg| match call.position(role) {
        Some(at) => match number(ended, at) {
            Some(AT_FDCWD) => process.directory.clone(),
            fd => slot(process, fd).map(|slot| slot.path.clone()),
        },
        None => process.directory.clone(),
    };
    if let (Some(arg), true) = (&row.path_arg, call.position(Arg::Path).is_some()) {
        row.path = absolute(directory(Arg::Dirfd).as_deref(), arg);
    }
    if let Some(arg) = &row.path_arg2 {
        row.path2 = absolute(directory(Arg::Dirfd2).as_deref(), arg);
    }
    let own = call.position(Arg::Fd).and_then(|at| number(ended, at));
    if let Some(slot) = slot(process, own) {
        row.path = Some(slot.path.clone());
        row.file_id = Some(slot.file_id);
    }
    let second = call.position(Arg::Fd2).and_then(|at| number(ended, at));
    if let Some(slot) = slot(process, second) {
        row.path2 = Some(slot.path.clone());
    }
    let known = |name: &str| {
        let value = |fields: &Value| text(fields, name);
        value(ended.exit).or_else(|| value(ended.fields))
    };
    // fathom wrote the trace: what it did not know then is not known now.
    if ended.by_fathom() {
        row.path = known("fathom_path");
        row.path2 = known("fathom_path2");
        row.offset =
            int(ended.exit, "fathom_offset").or_else(|| int(ended.fields, "fathom_offset"));
        row.file_id = None;
    }
    let finds = match call.kind {
        Kind::Open | Kind::Stat => !failed,
        _ => call.position(Arg::Fd).is_some(),
    };
    if let (true, None, Some(path)) = (finds, row.file_id, &row.path) {
        let is_directory = row
            .flags
            .as_deref()
            .is_some_and(|f| f.contains("O_DIRECTORY"));
        let kind = match kind_of_name(path) {
            "unknown" if is_directory && call.kind == Kind::Open => "directory",
            kind => kind,
        };
        row.file_id = Some(builder.file(path, kind, row.ts_ns));
    }
    row
}

/// The argument at a position as a number.
fn number(ended: &Ended<'_>, at: usize) -> Option<i64> {
    int(ended.fields, ended.traced.fields.get(at)?)
}

fn slot(process: &Process, fd: Option<i64>) -> Option<&Slot> {
    process.slots.get(&i32::try_from(fd?).ok()?)
}

/// Descriptors are 32-bit numbers with a sign, also where the trace has them without.
fn descriptor(number: i64) -> i32 {
    number as u32 as i32
}

fn argument(ended: &Ended<'_>, role: Arg, field: &str, process: &Process, row: &mut Call) {
    let call = ended.traced.call;
    let number = || int(ended.fields, field);
    let path = || {
        let others = ["filename", "pathname", "path", "name", "oldname"];
        text(ended.fields, field)
            .or_else(|| others.iter().find_map(|other| text(ended.fields, other)))
    };
    match role {
        Arg::Fd | Arg::Ring => row.fd = number().map(descriptor),
        Arg::Fd2 => add(row, "fd_out", number().map(|fd| descriptor(fd).to_string())),
        Arg::Dirfd => add(row, "dirfd", number().map(|fd| directory(fd, process))),
        Arg::Dirfd2 => {
            let name = match call.position(Arg::Target) {
                Some(_) => "dirfd",
                None => "dirfd2",
            };
            add(row, name, number().map(|fd| directory(fd, process)));
        }
        Arg::Path | Arg::Target => row.path_arg = path(),
        Arg::Path2 => row.path_arg2 = text(ended.fields, field),
        Arg::Name => add(row, "name", text(ended.fields, field).map(quoted)),
        Arg::Text(name) => add(row, name, text(ended.fields, field).map(quoted)),
        Arg::Size => row.size = number(),
        Arg::Iovcnt => add(row, "iovcnt", number().map(|n| n.to_string())),
        Arg::Offset => row.offset = number(),
        Arg::Seek => add(row, "offset", number().map(|n| n.to_string())),
        Arg::Length => add(row, "length", number().map(|n| n.to_string())),
        Arg::Value { name, kind } => {
            // Permissions count only for a file that is made; the third argument of fcntl may be
            // anything.
            let made = row.flags.as_deref().is_none_or(|flags| {
                let mut flags = flags.split('|');
                flags.any(|flag| flag == "O_CREAT" || flag == "O_TMPFILE")
            });
            if kind == "lock" || call.kind == Kind::Open && name == "mode" && !made {
                return;
            }
            let text = number().and_then(|n| text_of(call, name, kind, n as u64));
            match name {
                "flags" => row.flags = text,
                name => add(row, name, text),
            }
        }
        _ => {}
    }
}

fn add(row: &mut Call, name: &str, value: Option<String>) {
    if let Some(value) = value {
        if !row.args.is_empty() {
            row.args.push_str(", ");
        }
        row.args.push_str(name);
        row.args.push('=');
        row.args.push_str(&value);
    }
}

fn quoted(text: Vec<u8>) -> String {
    let mut out = String::new();
    quote_like_strace(&text, &mut out);
    out
}

/// `3</etc>`, or `AT_FDCWD`.
fn directory(fd: i64, process: &Process) -> String {
    let (mut out, path) = match fd {
        AT_FDCWD => ("AT_FDCWD".to_owned(), process.directory.as_deref()),
        fd => (
            descriptor(fd).to_string(),
            slot(process, Some(fd)).map(|slot| slot.path.as_slice()),
        ),
    };
    if let Some(path) = path {
        angle_like_strace(path, &mut out);
    }
    out
}

/// Makes the changes of a call that succeeded.
pub(super) fn effects(ended: &Ended<'_>, row: &Call, process: &mut Process, builder: &mut Builder) {
    let call = ended.traced.call;
    let Some(ret) = row.ret else {
        return;
    };
    // A descriptor is closed even if that reports an error, except for EBADF.
    if call.kind == Kind::Close
        && ret != -9
        && let Some(fd) = row.fd
    {
        process.slots.remove(&fd);
    }
    if ret < 0 {
        return;
    }
    let flags = row.flags.as_deref().unwrap_or("");
    let has = |flag: &str| flags.split('|').any(|f| f == flag);
    let new = i32::try_from(ret).unwrap_or(-1);
    let on_exec = has("O_CLOEXEC");
    match call.kind {
        Kind::Open => match (&row.path, row.file_id) {
            (Some(path), Some(file_id)) => {
                let slot = Slot {
                    path: path.clone(),
                    file_id,
                    closes_on_exec: on_exec,
                };
                process.slots.insert(new, slot);
            }
            _ => {
                process.slots.remove(&new);
            }
        },
        Kind::Dup if Some(new) != row.fd => duplicate(process, row.fd, new, on_exec),
        Kind::Fcntl => match int(ended.fields, "cmd") {
            Some(F_DUPFD) => duplicate(process, row.fd, new, false),
            Some(F_DUPFD_CLOEXEC) => duplicate(process, row.fd, new, true),
            Some(F_SETFD) => {
                let slot = row.fd.and_then(|fd| process.slots.get_mut(&fd));
                if let (Some(slot), Some(arg)) = (slot, int(ended.fields, "arg")) {
                    slot.closes_on_exec = arg & 1 != 0;
                }
            }
            _ => {}
        },
        Kind::CloseRange => {
            let limit = |name| int(ended.fields, name).unwrap_or(0) as u32;
            let range = limit("fd")..=limit("max_fd");
            let inside = |fd: &i32| u32::try_from(*fd).is_ok_and(|fd| range.contains(&fd));
            match has("CLOSE_RANGE_CLOEXEC") {
                true => {
                    let slots = process.slots.iter_mut().filter(|(fd, _)| inside(fd));
                    slots.for_each(|(_, slot)| slot.closes_on_exec = true);
                }
                false => process.slots.retain(|fd, _| !inside(fd)),
            }
        }
        Kind::Chdir => process.directory.clone_from(&row.path),
        Kind::Rename => {
            if let (Some(from), Some(to)) = (&row.path, &row.path2) {
                match has("RENAME_EXCHANGE") {
                    true => {
                        builder.removed(from);
                        builder.removed(to);
                    }
                    false => builder.renamed(from, to, row.ts_ns),
                }
            }
        }
        Kind::Unlink | Kind::Rmdir => {
            if let Some(path) = &row.path {
                builder.removed(path);
            }
        }
        // Other new descriptors are of no known file.
        _ if call.returns == Returns::Fd => {
            process.slots.remove(&new);
        }
        _ => {}
    }
}

fn duplicate(process: &mut Process, from: Option<i32>, to: i32, closes_on_exec: bool) {
    match from.and_then(|fd| process.slots.get(&fd)).cloned() {
        Some(slot) => {
            let slot = Slot {
                closes_on_exec,
                ..slot
            };
            process.slots.insert(to, slot);
        }
        None => {
            process.slots.remove(&to);
        }
    }
}

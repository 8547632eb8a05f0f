//! Rows of table `syscalls` as rules see them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::syscalls::Syscall;
use fathom_model::{Batch, StrId};

use crate::columns::Columns;
use crate::depth::{self, Depth, Operation, Wait};
use crate::kind::Kind;
use crate::text::{Text, TextCache};

/// The columns that rules see; the others need not be read.
pub(crate) const COLUMNS: &[&str] = &[
    "rid",
    "ts_ns",
    "dur_ns",
    "pid",
    "tid",
    "comm",
    "syscall",
    "ret",
    "errno",
    "fd",
    "file_id",
    "file_offset",
    "size",
    "bytes",
    "flags",
    "path_arg",
    "path",
    "path2",
    "hash",
    "args",
    "api",
    "cache_misses",
    "readahead_pages",
    "user_call",
];

/// A file of the session (`files.file_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub i64);

impl std::fmt::Display for FileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One request. Its text belongs to the batch that it came in.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub rid: i64,
    /// Entry, nanoseconds.
    pub ts_ns: i64,
    /// From entry to return, nanoseconds.
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub comm: &'a str,
    pub kind: Kind,
    /// Its name.
    pub syscall: &'a str,
    /// Whether it says itself where in the file it works.
    pub positional: bool,
    /// Whether it is an operation of io_uring or AIO.
    pub operation: bool,
    /// Whether it is one whose duration is no time that its thread spent: others were on their way
    /// at the same time, or the thread did not wait for it.
    pub asynchronous: bool,
    /// Its return value; `None` if it had not returned.
    pub ret: Option<i64>,
    pub errno: Option<&'a str>,
    pub fd: Option<i32>,
    pub file: Option<FileId>,
    /// Where in the file.
    pub offset: Option<i64>,
    /// Bytes asked for.
    pub size: Option<i64>,
    pub bytes: Option<i64>,
    /// Flags in strace's words, joined by `|`.
    pub flags: &'a str,
    pub path_arg: Option<&'a str>,
    pub path: Option<&'a str>,
    /// The second one.
    pub path2: Option<&'a str>,
    /// Hash of the bytes moved.
    pub hash: Option<i64>,
    /// Other arguments, `name=value, ...`.
    pub args: &'a str,
    /// The innermost library call that made it.
    pub user_call: Option<i64>,
    /// The texts of its batch, and which of them are its own.
    texts: &'a TextCache,
    ids: Ids,
}

/// Texts of a call that rules keep.
#[derive(Clone, Copy, Debug)]
struct Ids {
    comm: StrId,
    syscall: StrId,
    flags: StrId,
    path: StrId,
    path2: StrId,
}

/// The largest duration, 104 days, and size, 8 PiB. Anything larger is damage, and rules add up many.
pub(crate) const LARGEST: i64 = 1 << 53;

/// Accesses of a file for each lock on it, up to which others may have changed it in between.
pub(crate) const ACCESSES_PER_LOCK: u64 = 16;

impl<'a> Call<'a> {
    pub fn ended_at_ns(&self) -> i64 {
        self.ts_ns.saturating_add(self.dur_ns)
    }

    /// Whether it returned without an error.
    pub fn succeeded(&self) -> bool {
        self.ret.is_some() && self.errno.is_none()
    }

    /// Whether it failed with the error of that name.
    pub fn failed_with(&self, errno: &str) -> bool {
        self.errno == Some(errno)
    }

    /// Bytes that were moved; 0 for a failure.
    pub fn moved(&self) -> i64 {
        self.bytes.unwrap_or(0).clamp(0, LARGEST)
    }

    /// The write that a copy by the kernel (copy_file_range, sendfile, splice) makes of the file to
    /// which descriptor `fd` leads. Its time is the copy's.
    pub(crate) fn write_of_copy(&self, fd: i32, file: FileId) -> Self {
        Self {
            kind: Kind::Write,
            positional: false,
            dur_ns: 0,
            fd: Some(fd),
            file: Some(file),
            offset: self.arg("off_out").and_then(|offset| offset.parse().ok()),
            size: self.bytes,
            path: None,
            hash: None,
            ids: Ids {
                path: StrId::NULL,
                ..self.ids
            },
            ..*self
        }
    }

    /// Where the bytes that were moved lie in the file; `None` when that is not
    /// known or nothing was moved.
    pub fn range(&self) -> Option<(i64, i64)> {
        let (offset, bytes) = (self.offset?, self.moved());
        (bytes > 0 && offset >= 0).then(|| (offset, offset.saturating_add(bytes)))
    }

    /// Name of the thread, to keep.
    pub fn comm_text(&self) -> Text {
        self.texts.share(self.ids.comm, self.comm)
    }

    /// Sets the name of the process of the call: the latest one of its first thread, because a
    /// program begins with the name of the program that executed it. Until that thread makes a
    /// call, it is the name of the first one that did.
    pub(crate) fn name_process(&self, name: &mut Text) {
        if name.is_empty() || self.tid == self.pid {
            self.name_thread(name);
        }
    }

    /// Sets the name of the thread of the call. It rarely changes, and to compare it is cheaper than to
    /// share one text more.
    pub(crate) fn name_thread(&self, name: &mut Text) {
        if **name != *self.comm {
            *name = self.comm_text();
        }
    }

    /// The number of its thread's role, made once a batch.
    pub(crate) fn role_key(&self) -> u64 {
        self.texts.role_key(self.ids.comm, self.comm)
    }

    /// Its name, to keep.
    pub fn syscall_text(&self) -> Text {
        self.texts.share(self.ids.syscall, self.syscall)
    }

    pub fn flags_text(&self) -> Text {
        self.texts.share(self.ids.flags, self.flags)
    }

    /// Absolute path, to keep; empty when there is none.
    pub fn path_text(&self) -> Text {
        self.texts.share(self.ids.path, self.path.unwrap_or(""))
    }

    /// The number of its path, made once a batch.
    pub(crate) fn path_key(&self) -> Option<u64> {
        Some(self.texts.key(self.ids.path, self.path?))
    }

    /// The number of its second path.
    pub(crate) fn path2_key(&self) -> Option<u64> {
        Some(self.texts.key(self.ids.path2, self.path2?))
    }

    /// Whether a flag is set: `O_APPEND` in `O_WRONLY|O_APPEND`.
    pub fn has_flag(&self, flag: &str) -> bool {
        has_flag(self.flags, flag)
    }

    /// Whether it is an open that makes a file or empties one. Of one with `O_CREAT` alone the file may
    /// have been there.
    pub fn makes_file(&self) -> bool {
        self.kind == Kind::Open
            && (self.syscall == "creat"
                || self.has_flag("O_TRUNC")
                || self.has_flag("O_TMPFILE")
                // Alone it asks for a device that is not in use.
                || self.has_flag("O_EXCL") && self.has_flag("O_CREAT"))
    }

    /// Whether it asks the kernel for a lock on a file: flock, `F_SETLK` and their variants.
    pub fn takes_lock(&self) -> bool {
        match self.kind {
            Kind::Flock => !self.has_flag("LOCK_UN"),
            _ => self.sets_lock() && !self.args.contains("F_UNLCK"),
        }
    }

    /// Whether it gives such a lock up, other than by closing the file.
    pub fn gives_up_lock(&self) -> bool {
        match self.kind {
            Kind::Flock => self.has_flag("LOCK_UN"),
            _ => self.sets_lock() && self.args.contains("F_UNLCK"),
        }
    }

    fn sets_lock(&self) -> bool {
        let cmd = || self.arg("cmd").unwrap_or("");
        self.kind == Kind::Fcntl
            && (cmd().starts_with("F_SETLK") || cmd().starts_with("F_OFD_SETLK"))
    }

    /// The value of an argument of column args.
    pub fn arg(&self, name: &str) -> Option<&'a str> {
        arg(self.args, name)
    }

    /// The descriptor that the call created: by open, dup, and their variants.
    pub fn new_fd(&self) -> Option<i32> {
        let makes = match self.kind {
            Kind::Open | Kind::Dup => true,
            Kind::Fcntl => self
                .arg("cmd")
                .is_some_and(|cmd| cmd.starts_with("F_DUPFD")),
            _ => false,
        };
        let fd = self.ret.filter(|_| makes && self.succeeded())?;
        i32::try_from(fd).ok().filter(|fd| *fd >= 0)
    }
}

fn arg<'a>(args: &'a str, name: &str) -> Option<&'a str> {
    args.split(", ").find_map(|arg| {
        let (key, value) = arg.split_once('=')?;
        (key == name).then_some(value)
    })
}

/// The descriptor that a call works on although it takes the descriptor of a directory and a path, which is
/// empty: fstat of the C library is one (fstatat(2), AT_EMPTY_PATH).
fn stands_for(flags: &str, args: &str) -> Option<i32> {
    if !has_flag(flags, "AT_EMPTY_PATH") {
        return None;
    }
    let dirfd = arg(args, "dirfd")?;
    let number = dirfd.split_once('<').map_or(dirfd, |(number, _)| number);
    number.parse().ok()
}

/// Whether a flag is in a list joined by `|`. Asked of most calls many times, and most
/// lists are short: without the machinery of a search in text.
pub(crate) fn has_flag(flags: &str, flag: &str) -> bool {
    let mut rest = flags.as_bytes();
    while rest.len() >= flag.len() {
        if let Some(behind) = rest.strip_prefix(flag.as_bytes())
            && matches!(behind.first(), None | Some(b'|'))
        {
            return true;
        }
        let Some(at) = rest.iter().position(|byte| *byte == b'|') else {
            return false;
        };
        rest = rest.get(at + 1..).unwrap_or_default();
    }
    false
}

/// Properties that follow from the name of a call.
#[derive(Clone, Copy)]
struct NameTraits {
    kind: Kind,
    positional: bool,
    /// Whether it may wait for operations.
    waits: bool,
}

/// Columns of a batch of table `syscalls`: a row is read by every engine, so they are found once a
/// batch and a row is a few loads.
pub(crate) struct Calls<'a> {
    columns: Columns<'a>,
    /// By id of a string: what call it names.
    named: Vec<Cell<Option<NameTraits>>>,
    /// The string that column api has for system calls.
    syscall_api: StrId,
    /// Rows of operations that were waited for one at a time, with the calls that submitted them.
    alone: HashMap<usize, Option<i64>>,
    texts: TextCache,
    rid: &'a [i64],
    ts_ns: &'a [i64],
    dur_ns: &'a [i64],
    pid: &'a [i32],
    tid: &'a [i32],
    comm: &'a [StrId],
    syscall: &'a [StrId],
    ret: &'a [i64],
    errno: &'a [StrId],
    fd: &'a [i32],
    file: &'a [i64],
    offset: &'a [i64],
    size: &'a [i64],
    bytes: &'a [i64],
    flags: &'a [StrId],
    path_arg: &'a [StrId],
    path: &'a [StrId],
    path2: &'a [StrId],
    hash: &'a [i64],
    args: &'a [StrId],
    api: &'a [StrId],
    misses: &'a [i32],
    ahead: &'a [i32],
    user_call: &'a [i64],
}

fn i64_at(column: &[i64], row: usize) -> Option<i64> {
    column.get(row).copied().filter(|n| *n != NULL_I64)
}

fn i32_at(column: &[i32], row: usize) -> Option<i32> {
    column.get(row).copied().filter(|n| *n != NULL_I32)
}

fn id_at(column: &[StrId], row: usize) -> StrId {
    column.get(row).copied().unwrap_or(StrId::NULL)
}

impl<'a> Calls<'a> {
    /// Rows of a batch; columns that it lacks are null. Indexes follow [`COLUMNS`].
    pub(crate) fn new(batch: &'a Batch) -> Self {
        let columns = Columns::new(batch, COLUMNS);
        let strings = batch.strings.len() + 1;
        let id = |id| StrId(u32::try_from(id).unwrap_or(u32::MAX));
        let api = (1..strings).map(id);
        let mut of_calls = api.filter(|id| columns.text_of(*id) == "syscall");
        Self {
            named: vec![Cell::new(None); strings],
            syscall_api: of_calls.next().unwrap_or(StrId::NULL),
            alone: HashMap::new(),
            texts: TextCache::new(strings),
            rid: columns.i64s(0),
            ts_ns: columns.i64s(1),
            dur_ns: columns.i64s(2),
            pid: columns.i32s(3),
            tid: columns.i32s(4),
            comm: columns.ids(5),
            syscall: columns.ids(6),
            ret: columns.i64s(7),
            errno: columns.ids(8),
            fd: columns.i32s(9),
            file: columns.i64s(10),
            offset: columns.i64s(11),
            size: columns.i64s(12),
            bytes: columns.i64s(13),
            flags: columns.ids(14),
            path_arg: columns.ids(15),
            path: columns.ids(16),
            path2: columns.ids(17),
            hash: columns.i64s(18),
            args: columns.ids(19),
            api: columns.ids(20),
            misses: columns.i32s(21),
            ahead: columns.i32s(22),
            user_call: columns.i64s(23),
            columns,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.rows()
    }

    /// Pages that a call brought into the page cache: the pages of its range, and pages ahead.
    pub(crate) fn cached(&self, row: usize) -> (i64, i64) {
        let pages = |column| i32_at(column, row).map_or(0, i64::from);
        (pages(self.misses), pages(self.ahead))
    }

    /// The calls that may wait for operations: request and row.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (i64, usize)> {
        (0..self.rows())
            .filter(|row| self.waits(*row))
            .filter_map(|row| Some((i64_at(self.rid, row)?, row)))
    }

    /// Whether a call may wait for operations.
    pub(crate) fn waits(&self, row: usize) -> bool {
        self.named(id_at(self.syscall, row)).waits
    }

    fn is_operation(&self, row: usize) -> bool {
        let api = id_at(self.api, row);
        api != StrId::NULL && api != self.syscall_api
    }

    /// Finds the operations that were waited for one at a time.
    pub(crate) fn measure(&mut self, depth: &mut Depth) {
        let operations: Vec<Operation> = (0..self.rows())
            .filter(|row| self.is_operation(*row))
            .map(|row| Operation {
                row,
                pid: i32_at(self.pid, row).unwrap_or(0),
                tid: i32_at(self.tid, row).unwrap_or(0),
                span: self.span(row),
            })
            .collect();
        if operations.is_empty() {
            return;
        }
        let strings = (1..self.named.len()).map(|id| StrId(u32::try_from(id).unwrap_or(u32::MAX)));
        let names: HashSet<StrId> = strings
            .filter(|id| depth::waits(self.columns.text_of(*id).as_bytes()))
            .collect();
        let waits: Vec<Wait> = (0..self.rows())
            .filter(|row| names.contains(&id_at(self.syscall, *row)))
            .map(|row| Wait {
                rid: i64_at(self.rid, row).unwrap_or(0),
                tid: i32_at(self.tid, row).unwrap_or(0),
                span: self.span(row),
            })
            .collect();
        self.alone = depth.alone(&operations, &waits);
    }

    /// The call that submitted an operation that was waited for.
    pub(crate) fn submitted_by(&self, row: usize) -> Option<i64> {
        self.alone.get(&row).copied().flatten()
    }

    fn span(&self, row: usize) -> (i64, i64) {
        let began = i64_at(self.ts_ns, row).unwrap_or(0);
        let lasted = i64_at(self.dur_ns, row).unwrap_or(0).clamp(0, LARGEST);
        (began, began.saturating_add(lasted))
    }

    fn named(&self, id: StrId) -> NameTraits {
        let mut other = NameTraits {
            kind: Kind::Other,
            positional: false,
            waits: false,
        };
        let Some(known) = self.named.get(id.0 as usize) else {
            return other;
        };
        known.get().unwrap_or_else(|| {
            other.waits = depth::waits(self.columns.text_of(id).as_bytes());
            let named =
                Syscall::named(self.columns.strings().get(id)).map_or(other, |call| NameTraits {
                    kind: call.kind,
                    positional: call.is_positional(),
                    waits: other.waits,
                });
            known.set(Some(named));
            named
        })
    }

    fn text(&self, id: StrId) -> Option<&'a str> {
        (id != StrId::NULL).then(|| self.columns.text_of(id))
    }

    pub(crate) fn call(&self, row: usize) -> Call<'_> {
        let ids = Ids {
            comm: id_at(self.comm, row),
            syscall: id_at(self.syscall, row),
            flags: id_at(self.flags, row),
            path: id_at(self.path, row),
            path2: id_at(self.path2, row),
        };
        let operation = self.is_operation(row);
        let NameTraits {
            kind, positional, ..
        } = self.named(ids.syscall);
        let flags = self.columns.text_of(ids.flags);
        let args = self.columns.text_of(id_at(self.args, row));
        Call {
            rid: i64_at(self.rid, row).unwrap_or(0),
            ts_ns: i64_at(self.ts_ns, row).unwrap_or(0),
            dur_ns: i64_at(self.dur_ns, row).unwrap_or(0).clamp(0, LARGEST),
            pid: i32_at(self.pid, row).unwrap_or(0),
            tid: i32_at(self.tid, row).unwrap_or(0),
            comm: self.columns.text_of(ids.comm),
            kind,
            syscall: self.columns.text_of(ids.syscall),
            positional,
            operation,
            asynchronous: operation && !self.alone.contains_key(&row),
            ret: i64_at(self.ret, row),
            errno: self.text(id_at(self.errno, row)),
            fd: i32_at(self.fd, row).or_else(|| stands_for(flags, args)),
            file: i64_at(self.file, row).map(FileId),
            offset: i64_at(self.offset, row),
            size: i64_at(self.size, row),
            bytes: i64_at(self.bytes, row),
            flags,
            path_arg: self.text(id_at(self.path_arg, row)),
            path: self.text(ids.path),
            path2: self.text(ids.path2),
            hash: i64_at(self.hash, row),
            args,
            user_call: i64_at(self.user_call, row),
            texts: &self.texts,
            ids,
        }
    }
}

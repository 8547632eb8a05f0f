//! Rows of table `syscalls` as rules see them.

use std::cell::Cell;

use fathom_model::{Batch, StrId};

use crate::columns::Columns;
use crate::kind::{Kind, is_positional};
use crate::text::{Text, Texts};

/// The columns that rules see; the others need not be read.
pub(crate) const COLUMNS: &[&str] = &[
    "rid", "ts_ns", "dur_ns", "pid", "tid", "comm", "syscall", "ret", "errno", "fd", "file_id",
    "offset", "size", "bytes", "flags", "path_arg", "path", "path2", "hash", "args", "api",
];

/// A file of the session (`files.file_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub i64);

/// One request. Its text belongs to the batch that it came in.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Number of the request.
    pub rid: i64,
    /// Entry, nanoseconds.
    pub ts_ns: i64,
    /// From entry to return, nanoseconds.
    pub dur_ns: i64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Name of the thread.
    pub comm: &'a str,
    /// What it is for.
    pub kind: Kind,
    /// Its name.
    pub syscall: &'a str,
    /// Whether it says itself where in the file it works.
    pub positional: bool,
    /// Whether it is an operation of io_uring or AIO, whose duration is no time
    /// that its thread spent.
    pub asynchronous: bool,
    /// What it returned; `None` when it had not.
    pub ret: Option<i64>,
    /// Name of the error.
    pub errno: Option<&'a str>,
    /// Descriptor.
    pub fd: Option<i32>,
    /// File.
    pub file: Option<FileId>,
    /// Where in the file.
    pub offset: Option<i64>,
    /// Bytes asked for.
    pub size: Option<i64>,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Flags in strace's words, joined by `|`.
    pub flags: &'a str,
    /// Path as passed.
    pub path_arg: Option<&'a str>,
    /// Absolute path.
    pub path: Option<&'a str>,
    /// The second one.
    pub path2: Option<&'a str>,
    /// Hash of the bytes moved.
    pub hash: Option<i64>,
    /// Other arguments, `name=value, ...`.
    pub args: &'a str,
    /// The texts of its batch, and which of them are its own.
    texts: &'a Texts,
    ids: Ids,
}

/// Texts of a call that rules keep.
#[derive(Clone, Copy, Debug)]
struct Ids {
    comm: StrId,
    syscall: StrId,
    flags: StrId,
    path: StrId,
}

impl<'a> Call<'a> {
    /// When it returned, nanoseconds.
    pub fn end_ns(&self) -> i64 {
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
        self.bytes.unwrap_or(0).max(0)
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

    /// Its name, to keep.
    pub fn syscall_text(&self) -> Text {
        self.texts.share(self.ids.syscall, self.syscall)
    }

    /// Flags, to keep.
    pub fn flags_text(&self) -> Text {
        self.texts.share(self.ids.flags, self.flags)
    }

    /// Absolute path, to keep; empty when there is none.
    pub fn path_text(&self) -> Text {
        self.texts.share(self.ids.path, self.path.unwrap_or(""))
    }

    /// Whether a flag is set: `O_APPEND` in `O_WRONLY|O_APPEND`.
    pub fn has_flag(&self, flag: &str) -> bool {
        has_flag(self.flags, flag)
    }

    /// The value of an argument of column args.
    pub fn arg(&self, name: &str) -> Option<&'a str> {
        self.args.split(", ").find_map(|arg| {
            let (key, value) = arg.split_once('=')?;
            (key == name).then_some(value)
        })
    }

    /// The descriptor that the call made: of open, dup and their kin.
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

/// Columns of a batch of table `syscalls`.
pub(crate) struct Calls<'a> {
    columns: Columns<'a>,
    /// By id of a string: what call it names.
    kinds: Vec<Cell<Option<(Kind, bool)>>>,
    texts: Texts,
}

impl<'a> Calls<'a> {
    /// Rows of a batch; columns that it lacks are null.
    pub(crate) fn new(batch: &'a Batch) -> Self {
        Self {
            columns: Columns::new(batch, COLUMNS),
            kinds: vec![Cell::new(None); batch.strings.len() + 1],
            texts: Texts::new(batch.strings.len() + 1),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns.rows()
    }

    fn kind(&self, id: StrId) -> (Kind, bool) {
        let Some(known) = self.kinds.get(id.0 as usize) else {
            return (Kind::Other, false);
        };
        known.get().unwrap_or_else(|| {
            let name = self.columns.strings().get(id);
            let kind = (Kind::of(name), is_positional(name));
            known.set(Some(kind));
            kind
        })
    }

    /// A row; indexes follow [`COLUMNS`].
    pub(crate) fn call(&self, row: usize) -> Call<'_> {
        let columns = &self.columns;
        let ids = Ids {
            comm: columns.id(5, row),
            syscall: columns.id(6, row),
            flags: columns.id(14, row),
            path: columns.id(16, row),
        };
        let (kind, positional) = self.kind(ids.syscall);
        Call {
            rid: columns.i64(0, row).unwrap_or(0),
            ts_ns: columns.i64(1, row).unwrap_or(0),
            dur_ns: columns.i64(2, row).unwrap_or(0).max(0),
            pid: columns.i32(3, row).unwrap_or(0),
            tid: columns.i32(4, row).unwrap_or(0),
            comm: columns.text(5, row).unwrap_or(""),
            kind,
            syscall: columns.text(6, row).unwrap_or(""),
            positional,
            asynchronous: columns.text(20, row).is_some_and(|api| api != "syscall"),
            ret: columns.i64(7, row),
            errno: columns.text(8, row),
            fd: columns.i32(9, row),
            file: columns.i64(10, row).map(FileId),
            offset: columns.i64(11, row),
            size: columns.i64(12, row),
            bytes: columns.i64(13, row),
            flags: columns.text(14, row).unwrap_or(""),
            path_arg: columns.text(15, row),
            path: columns.text(16, row),
            path2: columns.text(17, row),
            hash: columns.i64(18, row),
            args: columns.text(19, row).unwrap_or(""),
            texts: &self.texts,
            ids,
        }
    }
}

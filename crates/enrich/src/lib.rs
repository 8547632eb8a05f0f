//! From events to the rows of a session's tables: which file is behind a
//! handle, which thread made a call, where shared positions stood, and the
//! arguments in strace's vocabulary.
//!
//! [`Enricher`] is the entry point. It does no I/O and never panics. Everything that a traced
//! program controls is handled as bytes and stored so that the original can be recovered from the
//! text (bytes that are not UTF-8 as `\xHH`).
//!
//! # Files
//! A file is device, inode, and generation. Its id counts up from 1 in the order of first use. All
//! handles of the kernel side with one identity (hard links, reused handles) share an id; a
//! recycled inode has another generation and gets another id.
//! - A call may name a handle whose record is still to come, or lost. The file gets its id at once,
//!   and the rest when the record arrives. If it then turns out to be a file that already has an
//!   id, further calls use that one, and the row of the first id has the same identity.
//! - stat returns device and inode, not the generation. Such a file is the latest known generation
//!   of that inode; if there is none, a new one with generation null, which the first record of
//!   that inode completes. Its path is the passed one, marked as not complete, because it may lead
//!   there through symbolic links. Its type comes from stat.
//! - Ids are forgotten beyond [`EnrichOptions::max_files`]; the file gets a new
//!   id when it is used again, and its rows share the identity.
//!
//! # Paths
//! The path of a row is the path of the call's file if it has one, otherwise the absolute form of
//! the path that was passed. `..` after a name stays, because the name may be a symbolic link; a
//! `..` that would lead above the task's root is dropped. A path whose beginning the kernel could
//! not read starts with `...`. A path that is null, empty, unreadable, or cut leads nowhere.

// From the top down: a module imports those below it only (scripts/imports.txt).
mod enricher;

mod calls;
mod layers;
mod spans;

mod counters;
mod losses;

mod strings;

mod files;
mod tasks;

mod containers;
mod text;
mod vocab;

use fathom_model::batch::NULL_I64;
use fathom_model::syscalls::Syscall;

pub use calls::content::ContentCounts;
pub use enricher::{EnrichOptions, Enricher, MAX_FILE_BYTES};
pub use layers::traced::{
    FileType, Interrupt, InterruptKind, Place, ThreadState, TracedBlock, TracedLayers, TracedParts,
    TracedRequest, TracedWait, Waker,
};
pub use spans::SpanCounts;

/// The return value of `command` of fcntl (F_GETFL) as in strace, with a comment; `None` if it is
/// only a number.
pub fn fcntl_result(command: &str, value: u64) -> Option<String> {
    vocab::fcntl_result(command, value)
}

/// The number of argument `name` of `call` that a recording has as `text`; `None` if the text does not
/// say it exactly. `kind` is the argument's ([`fathom_model::syscalls::Arg::Value`]).
pub fn number_of(call: &Syscall, name: &str, kind: &str, text: &str) -> Option<u64> {
    vocab::number(call, name, kind, text)
}

/// The text that a recording has for number `value` of argument `name` of `call`.
pub fn text_of(call: &Syscall, name: &str, kind: &str, value: u64) -> Option<String> {
    vocab::words(call, name, kind, value)
}

/// A process, thread or processor as a column holds it: the kernel's ids are
/// below 2^31, and a damaged one must not become null.
fn id(number: u32) -> i32 {
    (number & 0x7fff_ffff) as i32
}

/// An unsigned number as a column holds it; the highest when it is too large.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An unsigned number as a column holds it; null for 0.
fn nonzero(number: impl Into<u64>) -> i64 {
    match number.into() {
        0 => NULL_I64,
        number => signed(number),
    }
}

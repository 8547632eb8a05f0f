//! fio's log of I/O (`read_iolog`): reads, writes and syncs at the offsets and
//! with the sizes that took place, in the order in which they began. A page fault on a mapping of
//! a file is a read or write of the page that it is for, as fio has no mapped files in its log.
//!
//! fio reads a name up to the first blank and at most 255 bytes of it, and works
//! with offsets only, so that some calls have no line; they are counted.

use std::collections::HashSet;
use std::io::Write;

use fathom_model::kind::Kind;
use fathom_model::syscalls::{Class, Returns, Syscall};

use crate::error::Result;
use crate::row::{Layer, Row};
use crate::source::Tables;
use crate::{Exporter, counted};

/// Bytes of a name that fio reads.
const MAX_NAME: usize = 255;

#[derive(Default)]
pub(crate) struct Iolog {
    times: bool,
    /// Names are escaped: fio could not open all of them.
    terminal: bool,
    started_at_ns: Option<i64>,
    /// Files that the log has opened.
    names: HashSet<Vec<u8>>,
    no_name: u64,
    no_offset: u64,
    /// Page faults that have a line.
    faults: u64,
    unknown: u64,
}

impl Iolog {
    /// Version 3, which has times, or 2; for a terminal or for fio.
    pub fn new(times: bool, terminal: bool) -> Self {
        Iolog {
            times,
            terminal,
            ..Iolog::default()
        }
    }

    fn time(&mut self, row: &Row<'_>) -> String {
        if !self.times {
            return String::new();
        }
        let start = *self.started_at_ns.get_or_insert(row.started_at_ns());
        format!("{} ", row.started_at_ns().saturating_sub(start) / 1_000_000)
    }
}

/// Bytes of a page of the machines that sessions are recorded on.
const PAGE: i64 = 4096;

/// fio's operation for a page fault. A write to a private mapping does not reach the file, so it
/// becomes a read of the page.
fn fault_action(flags: &str) -> &'static str {
    let has = |word: &str| flags.split(' ').any(|w| w == word);
    if has("write") && has("shared") {
        "write"
    } else {
        "read"
    }
}

/// fio's operation for a call; `None` if it neither moves nor syncs data.
fn action(row: &Row<'_>) -> Option<&'static str> {
    match known(row)?.kind {
        Kind::Sync => match row.flags {
            Some(flags) if flags.contains("DATASYNC") => Some("datasync"),
            _ if matches!(row.name, Some("fdatasync" | "IOCB_CMD_FDSYNC")) => Some("datasync"),
            _ => Some("sync"),
        },
        Kind::Read => Some("read"),
        Kind::Write => Some("write"),
        _ => None,
    }
}

fn known(row: &Row<'_>) -> Option<&'static Syscall> {
    Syscall::named(row.name?.as_bytes())
}

/// Whether the call moves data, but not in a way that fio's log has.
fn moves_otherwise(row: &Row<'_>) -> bool {
    known(row).is_some_and(|call| call.class == Class::Data && call.returns == Returns::Bytes)
        && row.bytes.unwrap_or(0) > 0
}

impl Exporter for Iolog {
    fn tables(&self) -> Tables {
        Tables::CallsAndFaults
    }

    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let version = if self.times { 3 } else { 2 };
        writeln!(out, "fio version {version} iolog")?;
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let fault = row.layer() == Layer::Fault;
        let flags = row.flags.unwrap_or("");
        let action = if fault {
            // SIGBUS: there is no such page.
            if flags.split(' ').any(|word| word == "failed") {
                return Ok(());
            }
            fault_action(flags)
        } else if matches!(row.layer(), Layer::Call | Layer::Operation) {
            if row.ret.is_none_or(|ret| ret < 0) {
                return Ok(());
            }
            let Some(action) = action(row) else {
                self.unknown += u64::from(moves_otherwise(row));
                return Ok(());
            };
            action
        } else {
            return Ok(());
        };
        let moves = matches!(action, "read" | "write");
        if !fault && moves && row.bytes.unwrap_or(0) <= 0 {
            return Ok(());
        }
        let path = fathom_model::bytes::of_text(row.path.unwrap_or(""));
        let readable = path.starts_with(b"/")
            && path.len() <= MAX_NAME
            && !path
                .iter()
                .any(|b| b.is_ascii_whitespace() || *b == 0x0b || *b == b':');
        if !readable {
            self.no_name += 1;
            return Ok(());
        }
        let (offset, bytes) = match (moves, row.file_offset) {
            (false, _) => (0, 0),
            (true, Some(offset)) if fault => (offset - offset.rem_euclid(PAGE), PAGE),
            (true, Some(offset)) => (offset, row.bytes.unwrap_or(0)),
            (true, None) => {
                self.no_offset += 1;
                return Ok(());
            }
        };
        self.faults += u64::from(fault);
        let time = self.time(row);
        let name = if self.terminal {
            fathom_model::escape::bytes(&path).into_bytes()
        } else {
            path.to_vec()
        };
        if self.names.insert(path.to_vec()) {
            for what in ["add", "open"] {
                out.write_all(time.as_bytes())?;
                out.write_all(&name)?;
                writeln!(out, " {what}")?;
            }
        }
        out.write_all(time.as_bytes())?;
        out.write_all(&name)?;
        writeln!(out, " {action} {offset} {bytes}")?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.faults > 0 {
            notes.push(format!(
                "{} on mapped files became reads and writes of pages of {PAGE} bytes",
                counted(self.faults, "page fault", "page faults")
            ));
        }
        if self.no_name > 0 {
            notes.push(format!(
                "{} left out: fio's log can hold only absolute names of at most {MAX_NAME} bytes without \
                 blanks and colons",
                counted(self.no_name, "call", "calls")
            ));
        }
        if self.no_offset > 0 {
            notes.push(format!(
                "{} left out: their offset is unknown",
                counted(self.no_offset, "call", "calls")
            ));
        }
        if self.unknown > 0 {
            notes.push(format!(
                "{} left out: fio's log has reads, writes and syncs, but no call that moves data from \
                 file to file",
                counted(self.unknown, "call", "calls")
            ));
        }
        notes
    }
}

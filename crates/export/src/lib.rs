//! Sessions in the formats of other tools.
//!
//! [`export`] writes rows as they come from the database: memory does not grow
//! with their number (only with that of threads, and of files for fio's log).
//! Each format is a row of [`Format::ALL`] and a file of this crate that implements the trait
//! `Exporter`. What
//! a format cannot hold is counted and told ([`Outcome::notes`]).
//!
//! Everything that a traced program controls (names, contents) is encoded as the
//! format asks for: JSON's escapes, C's escapes in strace's text, in CSV quotes and what keeps
//! spreadsheets and terminals from acting on it. fio's log has names as they are, since fio opens
//! them; for a terminal they are escaped.

mod args;
mod chrome;
mod dio;
mod error;
mod iolog;
mod json;
mod lanes;
mod perfetto;
mod removed;
mod row;
mod source;
mod strace;
mod table;
mod time;

use std::io::Write;
use std::str::FromStr;

use fathom_model::choice::format_named;
use fathom_model::meta::SessionMeta;
use fathom_query::{Db, output};

pub use error::{ExportError, Result};
pub use source::Selection;
pub use time::parse as parse_time;

use row::Row;
use source::{SessionRows, Tables};

/// A format: a row of [`Format::ALL`], from which `--format` and its help derive.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    name: &'static str,
    what: &'static str,
    binary: bool,
    make: Make,
}

/// What writes a format.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// An exporter of its own.
    Exporter(for<'a> fn(&Export<'a>) -> Result<Box<dyn Exporter + 'a>>),
    /// The writer of `fathom query`, for table syscalls.
    Table(output::Format),
}

/// What an exporter is made for.
struct Export<'a> {
    db: &'a Db,
    meta: &'a SessionMeta,
    text: Text,
}

impl Format {
    /// Every format.
    pub const ALL: &[Format] = &[
        Format {
            name: "perfetto",
            what: "slices, flows and counters for ui.perfetto.dev and trace_processor",
            binary: true,
            make: Make::Exporter(|e| {
                let flows = !e.db.columns("block")?.is_empty();
                Ok(Box::new(perfetto::Perfetto::new(e.meta, flows)))
            }),
        },
        Format {
            name: "chrome",
            what: "JSON trace events for chrome://tracing and viewers like it",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(chrome::Chrome::new(e.meta)))),
        },
        Format {
            name: "strace",
            what: "text as by strace -f -y -s 0 with nanoseconds",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(strace::Strace::new(e.db, e.meta)?))),
        },
        Format {
            name: "dio",
            what: "DIO's JSON documents, one a line",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(dio::Dio::new(e.db, e.meta)?))),
        },
        Format {
            name: "iolog",
            what: "fio's log of I/O, version 2, to replay",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(iolog::Iolog::new(false, e.text.terminal)))),
        },
        Format {
            name: "iolog3",
            what: "the same, version 3: with times",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(iolog::Iolog::new(true, e.text.terminal)))),
        },
        Format {
            name: "csv",
            what: "table syscalls, comma-separated",
            binary: false,
            make: Make::Table(output::Format::Csv),
        },
        Format {
            name: "json",
            what: "table syscalls, one array of objects",
            binary: false,
            make: Make::Table(output::Format::Json),
        },
        Format {
            name: "ndjson",
            what: "table syscalls, an object a line",
            binary: false,
            make: Make::Table(output::Format::Ndjson),
        },
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// What it is, for the help.
    pub fn what(self) -> &'static str {
        self.what
    }

    /// Whether the output is no text: nothing for a terminal.
    pub fn is_binary(self) -> bool {
        self.binary
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        format_named(Format::ALL, Format::name, name)
    }
}

/// How text of a traced program is written in the formats that do not escape it by themselves:
/// CSV and fio's log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    /// A terminal shows it: control characters are escaped.
    pub terminal: bool,
    /// CSV has the text as it was recorded (`fathom_query::output::Options::exact`).
    pub exact: bool,
}

/// How an export ended.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rows of the session that were looked at.
    pub rows: u64,
    /// What the format could not hold, a sentence each.
    pub notes: Vec<String>,
}

/// Writes rows in one format.
pub(crate) trait Exporter {
    /// Which tables it wants.
    fn tables(&self) -> Tables {
        Tables::Calls
    }

    /// What comes before the rows.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// One row.
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()>;

    /// What comes behind them.
    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// What the format could not hold.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Writes what `selection` selects of a session to `out`. `progress` is told
/// from time to time how many rows are done, and how many there are.
///
/// # Errors
/// When the condition is wrong, the session cannot be read, or `out` fails, as
/// with [`std::io::ErrorKind::BrokenPipe`] when its reader has gone.
pub fn export(
    db: &Db,
    meta: &SessionMeta,
    format: Format,
    selection: &Selection,
    text: Text,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let mut exporter = match format.make {
        Make::Table(format) => return table::write(db, format, selection, text, out, progress),
        Make::Exporter(make) => make(&Export { db, meta, text })?,
    };
    let source = SessionRows::new(db, selection, exporter.tables())?;
    let total = source.total();
    let mut rows = 0;
    exporter.begin(out)?;
    source.each(|row| {
        exporter.row(row, out)?;
        rows += 1;
        if rows & 4095 == 0 {
            progress(rows, total);
        }
        Ok(())
    })?;
    exporter.end(out)?;
    out.flush()?;
    progress(rows, total);
    Ok(Outcome {
        rows,
        notes: exporter.notes(),
    })
}

/// `n things` with the singular where it is one.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

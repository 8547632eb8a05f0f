//! Sessions in the formats of other tools.
//!
//! [`export`] writes rows as they come from the database: memory does not grow
//! with their number (only with that of threads, and of files for fio's log).
//! Each format is a file of this crate and implements the trait `Exporter`. What
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

use fathom_model::meta::SessionMeta;
use fathom_query::Db;

pub use error::{ExportError, Result};
pub use source::Selection;
pub use time::parse as parse_time;

use row::Row;
use source::{Source, Tables};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's trace packets, for its page, trace_processor and its SQL.
    Perfetto,
    /// JSON trace events of Chrome's tracing, which many viewers read.
    Chrome,
    /// What strace prints.
    Strace,
    /// DIO's JSON documents, one a line.
    Dio,
    /// fio's log of I/O, version 2: to replay reads and writes.
    Iolog,
    /// The same, version 3: with times.
    Iolog3,
    /// Table syscalls, comma-separated.
    Csv,
    /// Table syscalls as one JSON array.
    Json,
    /// Table syscalls as JSON, an object a line.
    Ndjson,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 9] = [
        Format::Perfetto,
        Format::Chrome,
        Format::Strace,
        Format::Dio,
        Format::Iolog,
        Format::Iolog3,
        Format::Csv,
        Format::Json,
        Format::Ndjson,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Perfetto => "perfetto",
            Format::Chrome => "chrome",
            Format::Strace => "strace",
            Format::Dio => "dio",
            Format::Iolog => "iolog",
            Format::Iolog3 => "iolog3",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
        }
    }

    /// What it is, for the help.
    pub fn what(self) -> &'static str {
        match self {
            Format::Perfetto => {
                "slices, flows and counters for ui.perfetto.dev and trace_processor"
            }
            Format::Chrome => "JSON trace events for chrome://tracing and viewers like it",
            Format::Strace => "text as by strace -f -y -s 0 with nanoseconds",
            Format::Dio => "DIO's JSON documents, one a line",
            Format::Iolog => "fio's log of I/O, version 2, to replay",
            Format::Iolog3 => "the same, version 3: with times",
            Format::Csv => "table syscalls, comma-separated",
            Format::Json => "table syscalls, one array of objects",
            Format::Ndjson => "table syscalls, an object a line",
        }
    }

    /// Whether the output is no text: nothing for a terminal.
    pub fn is_binary(self) -> bool {
        self == Format::Perfetto
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        Format::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
                format!(
                    "there is no format {name:?}; there are {}",
                    names.join(", ")
                )
            })
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
    let mut exporter: Box<dyn Exporter + '_> = match format {
        Format::Csv | Format::Json | Format::Ndjson => {
            return table::write(db, format, selection, text, out, progress);
        }
        Format::Perfetto => Box::new(perfetto::Perfetto::new(
            meta,
            !db.columns("block")?.is_empty(),
        )),
        Format::Chrome => Box::new(chrome::Chrome::new(meta)),
        Format::Strace => Box::new(strace::Strace::new(db, meta)?),
        Format::Dio => Box::new(dio::Dio::new(db, meta)?),
        Format::Iolog => Box::new(iolog::Iolog::new(false, text.terminal)),
        Format::Iolog3 => Box::new(iolog::Iolog::new(true, text.terminal)),
    };
    let source = Source::new(db, selection, exporter.tables())?;
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

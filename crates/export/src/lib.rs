//! Sessions in the formats of other tools.
//!
//! [`export`] writes rows as they come from the database: memory grows with the number of threads
//! (and of files for fio's log), not with the number of rows. Each format is a row of
//! [`Format::ALL`] and a file of this crate that implements the trait `Exporter`. Data that a
//! format cannot hold is counted and reported ([`Outcome::notes`]).
//!
//! Everything that a traced program controls (names, contents) is encoded as the
//! format asks for: JSON's escapes, C's escapes in strace's text, in CSV quotes and what keeps
//! spreadsheets and terminals from acting on it. fio's log has names as they are, since fio opens
//! them; for a terminal they are escaped.

mod args;
mod chrome;
mod covered;
mod ctf;
mod dio;
mod error;
mod iolog;
mod json;
mod lanes;
mod opensearch;
mod otlp;
mod perfetto;
mod profile;
mod removed;
mod row;
mod set;
mod source;
mod strace;
mod table;
mod time;

use std::io::Write;
use std::str::FromStr;

use fathom_model::choice::format_named;
use fathom_model::meta::SessionMeta;
use fathom_query::{Db, output};

pub use ctf::{TraceFiles, export_ctf};
pub use error::{ExportError, Result};
pub use source::Selection;
pub use time::parse as parse_time;

pub use set::{Member, export_set};

use row::Row;
use set::Host;
use source::{SessionRows, Tables};

/// A format: a row of [`Format::ALL`], from which `--format` and its help derive.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    name: &'static str,
    what: &'static str,
    binary: bool,
    make: Make,
    sets: Sets,
}

/// How a format holds a set of sessions.
#[derive(Clone, Copy, Debug)]
enum Sets {
    /// The rows of all sessions in the order of time, with a column `host`.
    Joined,
    /// One session after the other, on the clock of the reference.
    InTurn,
    /// It cannot hold several hosts; what to do instead.
    No(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum Make {
    Exporter(for<'a> fn(&Export<'a>) -> Result<Box<dyn Exporter + 'a>>),
    /// The writer of `fathom query`, for table syscalls.
    Table(output::Format),
    /// Spans, and the calls in them.
    Spans,
    /// Rows of table `findings`, and the slowest requests.
    Findings,
    /// Sums of time by stack.
    Profile(profile::Kind),
    /// A directory of files ([`export_ctf`]).
    Directory,
    /// The page's server, which knows what the page asks: not this crate.
    Page,
}

/// Input of an exporter.
#[derive(Clone, Copy)]
struct Export<'a> {
    db: &'a Db,
    meta: &'a SessionMeta,
    selection: &'a Selection,
    text: Text,
    /// If it is a session of a set.
    host: Option<Host<'a>>,
}

/// Its text has no place for hosts, whose process ids overlap.
const EACH: &str = "export each session of the set, or use --format csv, which has a column host";
/// One machine replays a log.
const REPLAY: &str =
    "export each session of the set, and replay it on the machine that stands for its host";

impl Format {
    pub const ALL: &[Format] = &[
        Format {
            name: "perfetto",
            what: "slices, flows and counters for ui.perfetto.dev and trace_processor",
            binary: true,
            make: Make::Exporter(|e| {
                let flows = !e.db.columns("block")?.is_empty();
                Ok(Box::new(perfetto::Perfetto::new(e, flows)))
            }),
            sets: Sets::InTurn,
        },
        Format {
            name: "chrome",
            what: "JSON trace events for chrome://tracing and similar viewers",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(chrome::Chrome::new(e.meta, e.host)))),
            sets: Sets::InTurn,
        },
        Format {
            name: "strace",
            what: "text in the format of strace -f -y -s 0, with nanoseconds",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(strace::Strace::new(e.db, e.meta)?))),
            sets: Sets::No(EACH),
        },
        Format {
            name: "dio",
            what: "DIO's JSON documents, one per line",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(dio::Dio::new(e.db, e.meta, false)?))),
            sets: Sets::InTurn,
        },
        Format {
            name: "dio-bulk",
            what: "the same as lines of the _bulk API, for Elasticsearch and OpenSearch",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(dio::Dio::new(e.db, e.meta, true)?))),
            sets: Sets::InTurn,
        },
        Format {
            name: "opensearch",
            what: "findings and the slowest requests as lines of OpenSearch's _bulk API",
            binary: false,
            make: Make::Findings,
            sets: Sets::InTurn,
        },
        Format {
            name: "ctf",
            what: "a directory: a trace in CTF 1.8 with the events of LTTng's kernel tracer",
            binary: true,
            make: Make::Directory,
            sets: Sets::No(
                "export each session of the set to a directory of its own: viewers of CTF open several traces together",
            ),
        },
        Format {
            name: "iolog",
            what: "fio's log of I/O, version 2, to replay",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(iolog::Iolog::new(false, e.text.terminal)))),
            sets: Sets::No(REPLAY),
        },
        Format {
            name: "iolog3",
            what: "the same, version 3: with times",
            binary: false,
            make: Make::Exporter(|e| Ok(Box::new(iolog::Iolog::new(true, e.text.terminal)))),
            sets: Sets::No(REPLAY),
        },
        Format {
            name: "otlp",
            what: "spans with their calls and layers as child spans, OTLP as lines of JSON",
            binary: false,
            make: Make::Spans,
            sets: Sets::InTurn,
        },
        Format {
            name: "folded",
            what: "I/O time by stack, one per line, for flame graphs",
            binary: false,
            make: Make::Profile(profile::Kind::Folded),
            sets: Sets::InTurn,
        },
        Format {
            name: "pprof",
            what: "I/O time, bytes and requests by stack, for go tool pprof and similar viewers",
            binary: true,
            make: Make::Profile(profile::Kind::Pprof),
            sets: Sets::InTurn,
        },
        Format {
            name: "speedscope",
            what: "the same for speedscope, as JSON",
            binary: false,
            make: Make::Profile(profile::Kind::Speedscope),
            sets: Sets::InTurn,
        },
        Format {
            name: "csv",
            what: "table syscalls, comma-separated",
            binary: false,
            make: Make::Table(output::Format::Csv),
            sets: Sets::Joined,
        },
        Format {
            name: "json",
            what: "table syscalls, one array of objects",
            binary: false,
            make: Make::Table(output::Format::Json),
            sets: Sets::Joined,
        },
        Format {
            name: "ndjson",
            what: "table syscalls, one object per line",
            binary: false,
            make: Make::Table(output::Format::Ndjson),
            sets: Sets::Joined,
        },
        Format {
            name: "page",
            what: "one HTML file: the page with what its views show, to open without a server",
            binary: true,
            make: Make::Page,
            sets: Sets::No("share each session of the set, or open the set with `fathom ui`"),
        },
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Description for the help.
    pub fn what(self) -> &'static str {
        self.what
    }

    /// Whether the page's server makes it (`fathom_server::shared_page`), and not [`export`].
    pub fn is_page(self) -> bool {
        matches!(self.make, Make::Page)
    }

    /// Whether the output is a directory, which [`export_ctf`] writes, and not [`export`].
    pub fn is_directory(self) -> bool {
        matches!(self.make, Make::Directory)
    }

    /// Whether it has the findings of the session: fill table `findings` first ([`Db::set_findings`]).
    pub fn has_findings(self) -> bool {
        matches!(self.make, Make::Findings)
    }

    /// Refuses a set if the format cannot hold several hosts.
    ///
    /// # Errors
    /// [`ExportError::Set`], which says what to do instead.
    pub fn check_set(self) -> Result<()> {
        match self.sets {
            Sets::Joined | Sets::InTurn => Ok(()),
            Sets::No(instead) => Err(ExportError::Set {
                format: self.name,
                instead,
            }),
        }
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
    /// Data that the format could not hold, one sentence each.
    pub notes: Vec<String>,
}

/// Writes rows in one format.
pub(crate) trait Exporter {
    fn tables(&self) -> Tables {
        Tables::Calls
    }

    /// The text before the rows.
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let _ = out;
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()>;

    /// The text after the rows.
    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// Data that the format could not hold.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Writes the rows that `selection` selects of a session to `out`. `progress` receives from time to
/// time the number of finished rows and their total.
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
    let input = Export {
        db,
        meta,
        selection,
        text,
        host: None,
    };
    one(&input, format, out, progress)
}

/// Writes the rows of a session.
fn one(
    input: &Export<'_>,
    format: Format,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let Export {
        db,
        meta,
        selection,
        text,
        ..
    } = *input;
    let mut exporter = match format.make {
        Make::Table(format) => return table::write(db, format, selection, text, out, progress),
        Make::Exporter(make) => make(input)?,
        Make::Spans => return otlp::write(db, meta, selection, out, progress),
        Make::Findings => return opensearch::write(db, meta, selection, out, progress),
        Make::Profile(kind) => {
            return profile::write(&[*input], meta, kind, selection, out, progress);
        }
        Make::Page => return Err(ExportError::Page),
        Make::Directory => return Err(ExportError::Directory),
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

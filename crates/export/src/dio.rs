//! DIO's JSON documents, one per line: events, and one document per path (`doc_type` EventPath)
//! before the first event of its file. The fields are the fields of DIO's tracer and back end.
//!
//! For the `_bulk` API, a line before each document names the index that DIO's dashboards read, and an
//! id that follows from the session, so that sending it again replaces it.

use std::collections::HashMap;
use std::io::Write;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::{Arg, Returns, SYSCALLS, Syscall};
use fathom_query::Db;

use crate::args::value;
use crate::error::{ExportError, Result};
use crate::json::Object;
use crate::row::{Layer, Row};
use crate::{Exporter, opensearch, time};

/// DIO's dashboards read all indices whose names begin so.
const INDEX: &str = "dio_trace";

struct File {
    /// Null in imported sessions.
    tag: Option<String>,
    kind: &'static str,
    path: Option<String>,
    told: bool,
}

impl File {
    /// Whether its document is still to be written.
    fn is_new(&self) -> bool {
        !self.told && self.path.is_some() && self.tag.is_some()
    }
}

pub(crate) struct Dio {
    files: HashMap<i64, File>,
    parents: HashMap<i32, i32>,
    session: String,
    host: String,
    /// From CLOCK_MONOTONIC to the wall clock, nanoseconds.
    wall_ns: i64,
    /// Whether lines of the `_bulk` API come between the documents.
    bulk: bool,
    line: String,
}

impl Dio {
    pub fn new(db: &Db, meta: &SessionMeta, bulk: bool) -> Result<Self> {
        if bulk {
            opensearch::check_id(meta)?;
        }
        let mut files = HashMap::new();
        each_row(
            db,
            "SELECT file_id, file_tag, file_type, path FROM files",
            |batch, i| {
                let column = |index: usize| batch.columns().get(index);
                let id = column(0)?.as_primitive_opt::<Int64Type>()?.value(i);
                let text = |index: usize| {
                    let column = column(index)?.as_string_opt::<i32>()?;
                    column.is_valid(i).then(|| column.value(i).to_string())
                };
                let file = File {
                    tag: text(1),
                    kind: type_name(text(2).as_deref()),
                    path: text(3),
                    told: false,
                };
                files.insert(id, file);
                Some(())
            },
        )?;
        let mut parents = HashMap::new();
        let sql = "SELECT pid, any_value(ppid) FROM processes WHERE ppid IS NOT NULL GROUP BY pid";
        each_row(db, sql, |batch, i| {
            let column = |index: usize| {
                Some(
                    batch
                        .columns()
                        .get(index)?
                        .as_primitive_opt::<Int32Type>()?
                        .value(i),
                )
            };
            parents.insert(column(0)?, column(1)?);
            Some(())
        })?;
        Ok(Dio {
            files,
            parents,
            session: meta.id.clone(),
            host: meta.host.name.clone(),
            wall_ns: meta
                .clock
                .start_realtime_ns
                .wrapping_sub(meta.clock.start_monotonic_ns),
            bulk,
            line: String::new(),
        })
    }

    /// Writes the line of the `_bulk` API before the document `id` of the session.
    fn before(&mut self, id: &str) {
        if self.bulk {
            let id = format!("{}{id}", self.session);
            opensearch::action(INDEX, &id, &mut self.line);
        }
    }

    /// The document of a file that has not been written yet.
    fn path(&mut self, file_id: Option<i64>) {
        let Some(file_id) = file_id.filter(|id| self.files.get(id).is_some_and(File::is_new))
        else {
            return;
        };
        self.before(&format!("-file-{file_id}"));
        let Some(file) = self.files.get_mut(&file_id) else {
            return;
        };
        file.told = true;
        let mut object = Object::begin(&mut self.line);
        object.text("doc_type", Some("EventPath"));
        object.text("session_name", Some(&self.session));
        object.text("file_path", file.path.as_deref());
        object.text("file_type", Some(file.kind));
        object.text("file_tag", file.tag.as_deref());
        object.end();
        self.line.push('\n');
    }
}

impl Exporter for Dio {
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        self.line.clear();
        self.path(row.file_id);
        self.before(&format!("-{}", row.rid.unwrap_or_default()));
        let name = row.name.unwrap_or("");
        let call = Syscall::index_of(name).and_then(|index| SYSCALLS.get(index));
        let begin = row.started_at_ns().wrapping_add(self.wall_ns);
        let end = row.ended_at_ns().wrapping_add(self.wall_ns);
        let ended = row.ret.is_some();
        let file = row.file_id.and_then(|id| self.files.get(&id));
        let thread = row.tid.map(|tid| format!("{tid}@{}", self.host));
        let mut o = Object::begin(&mut self.line);
        o.text(
            "system_call_name",
            Some(if name == "newfstatat" {
                "fstatat"
            } else {
                name
            }),
        );
        o.text("time_called", Some(&time::of_day(begin)));
        o.text("time_returned", ended.then(|| time::of_day(end)).as_deref());
        o.int("call_timestamp", Some(begin));
        o.int("return_timestamp", ended.then_some(end));
        o.int("execution_time", row.dur_ns.filter(|_| ended));
        o.text("thread", thread.as_deref());
        o.int("pid", row.pid.map(i64::from));
        o.int("tid", row.tid.map(i64::from));
        let parent = row.pid.and_then(|pid| self.parents.get(&pid));
        o.int("ppid", parent.map(|p| i64::from(*p)));
        // DIO has no other negative results.
        o.int(
            "return_value",
            row.ret.map(|r| if row.errno.is_some() { -1 } else { r }),
        );
        o.text("error_message", row.errno);
        o.text("category", Some(category(name)));
        o.text("event_type", Some("storage"));
        o.text(
            "type",
            row.class.map(|c| {
                if c == "xattr" {
                    "extended attributes"
                } else {
                    c
                }
            }),
        );
        o.text("hostname", Some(&self.host));
        o.text("comm", row.comm);
        o.text("session_name", Some(&self.session));
        o.int("cpu", row.cpu.map(i64::from));
        let mut args = o.object("args");
        arguments(row, call, &mut args);
        args.end();
        o.text("file_tag", file.and_then(|f| f.tag.as_deref()));
        let mut data = o.object("fdata");
        let own = row.path_arg.or(row.path);
        data.text("file_path", own);
        data.text("file_type", file.map(|f| f.kind).filter(|_| own.is_some()));
        data.end();
        o.end();
        self.line.push('\n');
        out.write_all(self.line.as_bytes())?;
        Ok(())
    }
}

fn arguments(row: &Row<'_>, call: Option<&Syscall>, o: &mut Object<'_>) {
    let number = |name: &str| value(row.args, name).and_then(|v| v.parse().ok());
    let opened = call.is_some_and(|c| c.returns == Returns::Fd && c.position(Arg::Fd).is_none());
    let fd = if opened {
        row.ret.filter(|r| *r >= 0)
    } else {
        row.fd.map(i64::from)
    };
    o.int("file_descriptor", fd);
    o.text("flags", row.flags);
    o.text("mode", value(row.args, "mode"));
    o.text("name", value(row.args, "name").map(unquoted));
    o.int("length", number("length"));
    o.text("dev", value(row.args, "dev"));
    o.int("offset", row.file_offset.or_else(|| number("offset")));
    o.text("newname", row.path_arg2);
    o.text("whence", value(row.args, "whence"));
    let data = row.class == Some("data") && row.layer() == Layer::Call;
    match row.name {
        Some("readahead") => o.int("count", row.size),
        _ if data => o.int("bytes_requested", row.size),
        _ => {}
    }
    o.text(
        "captured_buffer",
        row.content.map(escape_invalid_utf8).as_deref(),
    );
    o.int("captured_size", row.content_bytes);
    let signature = row.hash.map(|h| format!("{:x}", h as u64));
    o.text("signature", signature.as_deref());
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .unwrap_or(text)
}

/// DIO's names of types of files.
fn type_name(kind: Option<&str>) -> &'static str {
    match kind {
        Some("regular") => "Regular file",
        Some("directory") => "Directory",
        Some("symlink") => "Symbolic link",
        Some("block") => "Block device",
        Some("char") => "Char device",
        Some("fifo") => "Pipe",
        Some("socket") => "Socket",
        _ => "Unknown",
    }
}

fn category(name: &str) -> &'static str {
    if name.contains("sync") || name == "readahead" {
        "DeviceManagement"
    } else if name.contains("stat") || name.contains("xattr") {
        "InformationManagement"
    } else if name.starts_with("readlink") {
        "Other"
    } else {
        "FileManagement"
    }
}

fn each_row(
    db: &Db,
    sql: &str,
    mut take: impl FnMut(&arrow::record_batch::RecordBatch, usize) -> Option<()>,
) -> Result<()> {
    for batch in db.query(sql)? {
        let batch = batch?;
        for index in 0..batch.num_rows() {
            take(&batch, index).ok_or(ExportError::Column("files or processes"))?;
        }
    }
    Ok(())
}

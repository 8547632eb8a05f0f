//! The tables that shipping makes: a row per session, per object, and per finding.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, Int64Builder, ListBuilder, MapBuilder,
    RecordBatch, StringArray, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema};
use fathom_model::escape::shell_words;
use fathom_model::findings::FindingRow;
use fathom_model::meta::SessionMeta;
use parquet::errors::ParquetError;

use crate::contents::{Contents, writer_of};
use crate::marker::Object;

/// A column of one of the tables.
struct Column {
    name: &'static str,
    nullable: bool,
    values: ArrayRef,
}

fn number(name: &'static str, value: impl TryInto<i64>) -> Column {
    // Counts stay below; a column of 64 bits without a sign is not a type of every engine.
    let value = value.try_into().unwrap_or(i64::MAX);
    Column {
        name,
        nullable: false,
        values: Arc::new(Int64Array::from(vec![value])),
    }
}

fn some_number(name: &'static str, value: Option<i64>) -> Column {
    Column {
        name,
        nullable: true,
        values: Arc::new(Int64Array::from(vec![value])),
    }
}

fn word(name: &'static str, value: &str) -> Column {
    let value = (!value.is_empty()).then_some(value);
    Column {
        name,
        nullable: true,
        values: Arc::new(StringArray::from(vec![value])),
    }
}

/// Table `sessions`: the row of a session, as view `session` has it, and what ties its times to the
/// wall clock. `findings` is their number, if the session was diagnosed.
pub fn sessions(meta: &SessionMeta, findings: Option<usize>) -> Result<Contents, ParquetError> {
    let SessionMeta {
        host,
        clock,
        totals,
        options,
        ..
    } = meta;
    let mut labels = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for (key, value) in &meta.labels {
        labels.keys().append_value(key);
        labels.values().append_value(value);
    }
    labels.append(true)?;
    let offset = clock
        .start_realtime_ns
        .saturating_sub(clock.start_monotonic_ns);
    let columns = vec![
        word("host_name", &host.name),
        word("machine_id", &host.machine_id),
        word("boot_id", &host.boot_id),
        word("kernel", &host.kernel),
        word("arch", &host.arch),
        word("distribution", &host.distribution),
        number("cpus", host.cpus),
        number("memory_bytes", host.memory_bytes),
        word("command", &shell_words(&meta.command)),
        word("target", &meta.target),
        Column {
            name: "exit_status",
            nullable: true,
            values: Arc::new(Int32Array::from(vec![meta.exit_status])),
        },
        Column {
            name: "labels",
            nullable: false,
            values: Arc::new(labels.finish()),
        },
        number("started_at_ns", clock.start_monotonic_ns),
        some_number("ended_at_ns", clock.end_monotonic_ns),
        number("start_wall_ns", clock.start_realtime_ns),
        some_number("end_wall_ns", clock.end_realtime_ns),
        number("wall_offset_ns", offset),
        some_number("wall_error_ns", clock.wall_error_ns),
        number("seen", totals.seen),
        number("stored", totals.stored),
        number("lost", totals.lost),
        number("expired", totals.expired),
        number("counted", totals.counted),
        number("missing", totals.missing),
        some_number(
            "findings",
            findings.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        ),
        word("detail", &options.detail),
        word("saved_because", &meta.history.saved_because),
        word("recording", meta.recording()),
        Column {
            name: "redacted",
            nullable: false,
            values: Arc::new(BooleanArray::from(vec![!meta.history.redacted.is_empty()])),
        },
        word("fathom_version", &meta.fathom_version),
        number("schema_version", meta.schema_version),
    ];
    encoded(columns, 1)
}

/// Table `objects`: what a marker says of each object.
pub fn objects(objects: &[Object]) -> Result<Contents, ParquetError> {
    let numbers = |of: fn(&Object) -> u64| {
        let values = objects.iter().map(of);
        let values = values.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values)) as ArrayRef
    };
    let words = |of: fn(&Object) -> &str| {
        Arc::new(StringArray::from_iter_values(objects.iter().map(of))) as ArrayRef
    };
    let column = |name, values| Column {
        name,
        nullable: false,
        values,
    };
    let columns = vec![
        column("table_name", words(|object| &object.table)),
        column("path", words(|object| &object.path)),
        column("bytes", numbers(|object| object.bytes)),
        column("rows", numbers(|object| object.rows)),
        column("sha256", words(|object| &object.sha256)),
    ];
    encoded(columns, objects.len() as u64)
}

/// Table `findings`: the rows of the table of that name in `fathom query`. Engines know no order of rows, so
/// column `rank` has it.
pub fn findings(findings: &[FindingRow]) -> Result<Contents, ParquetError> {
    let column = |name, nullable, values| Column {
        name,
        nullable,
        values,
    };
    let words = |name, of: fn(&FindingRow) -> &str| {
        let values = findings.iter().map(of);
        column(name, false, Arc::new(StringArray::from_iter_values(values)))
    };
    let some_words = |name, of: fn(&FindingRow) -> Option<&str>| {
        let values: StringArray = findings.iter().map(of).collect();
        column(name, true, Arc::new(values))
    };
    let ids = |name, of: fn(&FindingRow) -> Option<i32>| {
        let values: Int32Array = findings.iter().map(of).collect();
        column(name, true, Arc::new(values))
    };
    let numbers = |name, of: fn(&FindingRow) -> Option<i64>| {
        let values: Int64Array = findings.iter().map(of).collect();
        column(name, true, Arc::new(values))
    };
    let ranks = Int64Array::from_iter_values((1..).take(findings.len()));
    let correctness: Vec<bool> = findings.iter().map(|row| row.correctness).collect();
    let mut examples = ListBuilder::new(Int64Builder::new());
    for row in findings {
        examples.values().append_slice(&row.examples);
        examples.append(!row.examples.is_empty());
    }
    let columns = vec![
        column("rank", false, Arc::new(ranks)),
        words("rule", |row| &row.rule),
        words("severity", |row| &row.severity),
        column(
            "correctness",
            false,
            Arc::new(BooleanArray::from(correctness)),
        ),
        words("confidence", |row| &row.confidence),
        numbers("cost_ns", |row| row.cost_ns),
        words("title", |row| &row.title),
        words("subject", |row| &row.subject),
        ids("pid", |row| row.pid),
        ids("tid", |row| row.tid),
        some_words("comm", |row| row.comm.as_deref()),
        numbers("file_id", |row| row.file_id),
        some_words("path", |row| row.path.as_deref()),
        words("evidence", |row| &row.evidence),
        column("examples", true, Arc::new(examples.finish())),
        words("advice", |row| &row.advice),
        words("query", |row| &row.query),
        words("page", |row| &row.page),
        some_words("caveats", |row| row.caveats.as_deref()),
    ];
    encoded(columns, findings.len() as u64)
}

fn encoded(columns: Vec<Column>, rows: u64) -> Result<Contents, ParquetError> {
    let field = |column: &Column| {
        let kind: DataType = column.values.data_type().clone();
        Field::new(column.name, kind, column.nullable)
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|column| column.values).collect();
    let mut writer = writer_of(&schema)?;
    writer.write(&RecordBatch::try_new(schema, arrays)?)?;
    Ok(Contents::made(writer.into_inner()?, rows))
}

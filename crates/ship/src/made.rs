//! The tables that shipping makes: a row per session, and a row per object.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, MapBuilder, RecordBatch, StringArray,
    StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema};
use fathom_model::escape::shell_words;
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
/// wall clock.
pub fn sessions(meta: &SessionMeta) -> Result<Contents, ParquetError> {
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

//! Block requests as events.
//!
//! A session has names of devices instead of their numbers, so field `dev` counts them from 1 (major
//! number 0, which no disk has), and an event `lttng_statedump_block_device` gives each its name.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use fathom_query::Db;

use super::stream::Streams;
use super::value::{Context, Fields, Value};
use crate::error::{ExportError, Result};
use crate::lanes::Ends;
use crate::source::{Selection, windows};

/// Most devices that get a number.
const MAX_DEVICES: usize = 4096;

/// Columns of the query, in order.
const COLUMNS: &str = "ts_ns, inserted_at_ns, issued_at_ns, completed_at_ns, sector, bytes, \
     coalesce(error, -1)::BIGINT AS error, rid, cpu, device, op, flags";

/// LTTng's bits of field `rwbs`.
const WRITE: u32 = 1;
const DISCARD: u32 = 1 << 1;
const READ: u32 = 1 << 2;
const SECURE: u32 = 1 << 7;
const FLUSH: u32 = 1 << 8;
const FLAGS: &[(&str, u32)] = &[
    ("RAHEAD", 1 << 3),
    ("SYNC", 1 << 5),
    ("META", 1 << 6),
    ("FUA", 1 << 9),
    ("PREFLUSH", 1 << 10),
];

struct Event {
    name: &'static str,
    cpu: Option<i32>,
    fields: Fields,
}

/// Writes the block requests that `selection` selects; returns their number.
pub(super) fn write(db: &Db, selection: &Selection, streams: &mut Streams<'_>) -> Result<u64> {
    let columns = db.columns("block")?;
    if !columns.iter().any(|(name, _)| name == "issued_at_ns") {
        return Ok(0);
    }
    let wanted = match &selection.condition {
        None => selection.window(),
        Some(_) => format!(
            "{} AND rid IN (SELECT rid FROM syscalls WHERE {})",
            selection.window(),
            selection.sql()
        ),
    };
    let mut devices = HashMap::new();
    let mut ends: Ends<Event> = Ends::default();
    let mut rows = 0;
    for window in windows(db, &format!("SELECT ts_ns FROM block WHERE {wanted}"))? {
        let sql = format!(
            "SELECT {COLUMNS} FROM block WHERE ({wanted}) AND ts_ns >= {} AND ts_ns < {} ORDER BY ts_ns, \
             block_id",
            window.start, window.end
        );
        for batch in db.query(&sql)? {
            let batch = batch?;
            for index in 0..batch.num_rows() {
                let request = Request::of(&batch, index)?;
                while let Some((ns, event)) = ends.pop_until(request.ts_ns) {
                    write_event(ns, &event, streams)?;
                }
                let dev = number_of(&mut devices, &request, streams)?;
                // Of equal times the last one comes first.
                for (ns, event) in request.events(dev).into_iter().rev() {
                    ends.push(ns, event);
                }
                rows += 1;
            }
        }
    }
    while let Some((ns, event)) = ends.pop_until(i64::MAX) {
        write_event(ns, &event, streams)?;
    }
    Ok(rows)
}

fn write_event(ns: i64, event: &Event, streams: &mut Streams<'_>) -> Result<()> {
    streams.event(
        ns,
        event.cpu,
        Context::default(),
        "",
        event.name,
        &event.fields,
    )
}

/// The number that stands for the device.
fn number_of(
    devices: &mut HashMap<String, u32>,
    request: &Request<'_>,
    streams: &mut Streams<'_>,
) -> Result<u32> {
    // A queue without a disk.
    if request.device.is_empty() {
        return Ok(0);
    }
    if let Some(number) = devices.get(request.device) {
        return Ok(*number);
    }
    if devices.len() >= MAX_DEVICES {
        return Ok(0);
    }
    let number = u32::try_from(devices.len() + 1).unwrap_or(0);
    devices.insert(request.device.to_owned(), number);
    let event = Event {
        name: "lttng_statedump_block_device",
        cpu: None,
        fields: vec![
            ("dev", Value::U32(number)),
            ("diskname", Value::text(request.device)),
        ],
    };
    write_event(request.ts_ns, &event, streams)?;
    Ok(number)
}

struct Request<'a> {
    ts_ns: i64,
    inserted_at_ns: Option<i64>,
    issued_at_ns: Option<i64>,
    completed_at_ns: Option<i64>,
    sector: Option<i64>,
    bytes: i64,
    error: i64,
    rid: Option<i64>,
    cpu: Option<i32>,
    device: &'a str,
    op: &'a str,
    flags: &'a str,
}

impl<'a> Request<'a> {
    fn of(batch: &'a RecordBatch, index: usize) -> Result<Self> {
        let long = |name: &'static str| {
            let column = batch.column_by_name(name);
            let column = column.and_then(|c| c.as_primitive_opt::<Int64Type>());
            let column = column.ok_or(ExportError::Column(name))?;
            Ok::<_, ExportError>(column.is_valid(index).then(|| column.value(index)))
        };
        let text = |name: &'static str| {
            let column = batch.column_by_name(name);
            let column = column.and_then(|c| c.as_string_opt::<i32>());
            let column = column.ok_or(ExportError::Column(name))?;
            Ok::<_, ExportError>(match column.is_valid(index) {
                true => column.value(index),
                false => "",
            })
        };
        let cpu = batch.column_by_name("cpu");
        let cpu = cpu.and_then(|c| c.as_primitive_opt::<Int32Type>());
        let cpu = cpu.ok_or(ExportError::Column("cpu"))?;
        Ok(Request {
            ts_ns: long("ts_ns")?.unwrap_or(0),
            inserted_at_ns: long("inserted_at_ns")?,
            issued_at_ns: long("issued_at_ns")?,
            completed_at_ns: long("completed_at_ns")?,
            sector: long("sector")?,
            bytes: long("bytes")?.unwrap_or(0).max(0),
            error: long("error")?.unwrap_or(-1),
            rid: long("rid")?,
            cpu: cpu.is_valid(index).then(|| cpu.value(index)),
            device: text("device")?,
            op: text("op")?,
            flags: text("flags")?,
        })
    }

    fn events(&self, dev: u32) -> Vec<(i64, Event)> {
        // The kernel's own events have 0 for both of a command that a driver passes through, and for
        // the place of a flush.
        let through = matches!(self.op, "driver_in" | "driver_out");
        let bytes = u64::try_from(self.bytes).unwrap_or(0);
        let sectors = if through { 0 } else { bytes / 512 };
        let place = vec![
            ("dev", Value::U32(dev)),
            ("sector", Value::U64(self.sector.unwrap_or(0).max(0) as u64)),
            (
                "nr_sector",
                Value::U32(u32::try_from(sectors).unwrap_or(u32::MAX)),
            ),
        ];
        let rwbs = ("rwbs", Value::U32(self.rwbs()));
        let rid = self.rid.map(|rid| ("fathom_rid", Value::I64(rid)));
        let mut events = Vec::new();
        for (at, name) in [
            (self.inserted_at_ns, "block_rq_insert"),
            (self.issued_at_ns, "block_rq_issue"),
        ] {
            let Some(ns) = at else {
                continue;
            };
            let mut fields = place.clone();
            fields.push((
                "bytes",
                Value::U32(u32::try_from(bytes).unwrap_or(u32::MAX)),
            ));
            fields.push(rwbs.clone());
            fields.extend(rid.clone());
            let cpu = None;
            events.push((ns, Event { name, cpu, fields }));
        }
        if let Some(ns) = self.completed_at_ns {
            let mut fields = place;
            // LTTng has an errno there, and the block layer's status of a failure is another number.
            fields.push(match self.error {
                0 => ("error", Value::I32(0)),
                status => ("fathom_blk_status", Value::I64(status)),
            });
            fields.push(rwbs);
            fields.extend(rid);
            let event = Event {
                name: "block_rq_complete",
                cpu: self.cpu,
                fields,
            };
            events.push((ns, event));
        }
        events
    }

    fn rwbs(&self) -> u32 {
        let op = match self.op {
            "read" => READ,
            "write" => WRITE,
            "discard" => DISCARD,
            "secure_erase" => DISCARD | SECURE,
            "flush" => FLUSH,
            _ => 0,
        };
        let flags = self.flags.split('|');
        let bits = flags.filter_map(|flag| FLAGS.iter().find(|(name, _)| *name == flag));
        bits.fold(op, |all, (_, bit)| all | bit)
    }
}

//! A call as an event at its entry and one at its exit.

use fathom_enrich::number_of;
use fathom_model::lttng::{self, TracedCall};
use fathom_model::syscalls::{Arg, Number};

use super::stream::Streams;
use super::value::{Context, Fields, Value};
use crate::args::value;
use crate::counted;
use crate::error::Result;
use crate::lanes::Ends;
use crate::row::{Layer, Row};

/// The directory that a relative path starts from without a descriptor.
const AT_FDCWD: i32 = -100;

/// The exit of a call that has begun.
struct Exit {
    event: &'static str,
    cpu: Option<i32>,
    pid: Option<i32>,
    tid: Option<i32>,
    comm: Option<String>,
    fields: Fields,
}

/// Calls that have begun, and what cannot be exported.
#[derive(Default)]
pub(super) struct Calls {
    exits: Ends<Exit>,
    operations: u64,
    unknown: u64,
    timeless: u64,
    before: u64,
}

impl Calls {
    /// Takes a call; calls must come in the order of their starts.
    pub fn row(&mut self, row: &Row<'_>, streams: &mut Streams<'_>) -> Result<()> {
        if row.layer() != Layer::Call {
            self.operations += 1;
            return Ok(());
        }
        self.exit_until(row.started_at_ns(), streams)?;
        let Some(traced) = row.name.and_then(lttng::by_name) else {
            self.unknown += 1;
            return Ok(());
        };
        let returned = row.ret.filter(|_| row.dur_ns.is_some());
        self.timeless += u64::from(row.ret.is_some() && returned.is_none());
        let context = Context {
            pid: row.pid,
            tid: row.tid,
            name: row.comm,
        };
        // A thread waited in it as the recording took that thread in: nothing entered it then.
        let entered = !row
            .op_flags
            .is_some_and(|flags| flags.contains("STARTED_BEFORE_TRACE"));
        if entered {
            let mut fields = arguments(row, traced);
            if returned.is_none() {
                fields.extend(found(row));
            }
            let (ns, event) = (row.started_at_ns(), traced.event);
            streams.event(ns, None, context, "syscall_entry_", event, &fields)?;
        } else {
            self.before += 1;
        }
        if let Some(ret) = returned {
            let mut fields = vec![("ret", Value::I64(ret))];
            fields.extend(found(row));
            let exit = Exit {
                event: traced.event,
                cpu: row.cpu,
                pid: row.pid,
                tid: row.tid,
                comm: row.comm.map(str::to_owned),
                fields,
            };
            self.exits.push(row.ended_at_ns(), exit);
        }
        Ok(())
    }

    fn exit_until(&mut self, ns: i64, streams: &mut Streams<'_>) -> Result<()> {
        while let Some((ns, exit)) = self.exits.pop_until(ns) {
            let context = Context {
                pid: exit.pid,
                tid: exit.tid,
                name: exit.comm.as_deref(),
            };
            let name = exit.event;
            streams.event(ns, exit.cpu, context, "syscall_exit_", name, &exit.fields)?;
        }
        Ok(())
    }

    /// The calls that are left end.
    pub fn end(&mut self, streams: &mut Streams<'_>) -> Result<()> {
        self.exit_until(i64::MAX, streams)
    }

    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.operations > 0 {
            notes.push(format!(
                "{} of io_uring and AIO left out: LTTng has no events for them",
                counted(self.operations, "operation", "operations")
            ));
        }
        if self.unknown > 0 {
            notes.push(format!(
                "{} left out: fathom does not know their names",
                counted(self.unknown, "call", "calls")
            ));
        }
        if self.timeless > 0 {
            notes.push(format!(
                "{} without an exit: their durations are not known",
                counted(self.timeless, "call", "calls")
            ));
        }
        if self.before > 0 {
            notes.push(format!(
                "{} without an entry: they began before the recording",
                counted(self.before, "call", "calls")
            ));
        }
        notes
    }
}

/// Values that fathom found out besides the arguments, under names that LTTng does not have.
fn found(row: &Row<'_>) -> Fields {
    let mut fields = Fields::new();
    let mut add = |name, value: Option<Value>| fields.extend(value.map(|value| (name, value)));
    add("fathom_path", row.path.map(Value::text));
    add("fathom_path2", row.path2.map(Value::text));
    add("fathom_offset", row.file_offset.map(Value::I64));
    add("fathom_rid", row.rid.map(Value::I64));
    fields
}

fn arguments(row: &Row<'_>, traced: &TracedCall) -> Fields {
    let mut fields = Fields::new();
    for (role, name) in traced.call.args.iter().zip(&traced.fields) {
        fields.extend(argument(row, traced, *role).map(|value| (*name, value)));
    }
    fields
}

/// An argument that LTTng has as a number or text; it has addresses of structs and buffers, which a
/// session does not.
fn argument(row: &Row<'_>, traced: &TracedCall, role: Arg) -> Option<Value> {
    let call = traced.call;
    let named = |name: &str| value(row.args, name);
    let number = |name: &str| named(name).and_then(|text| text.parse::<i64>().ok());
    match role {
        Arg::Fd | Arg::Ring => row.fd.or_else(|| named("fd")?.parse().ok()).map(Value::I32),
        Arg::Fd2 => named("fd_out")?.parse().ok().map(Value::I32),
        Arg::Dirfd => descriptor(named("dirfd")?),
        Arg::Dirfd2 if call.position(Arg::Target).is_some() => descriptor(named("dirfd")?),
        Arg::Dirfd2 => descriptor(named("dirfd2")?),
        // A note says that the text is cut or that there was none.
        Arg::Path | Arg::Target if named("path_arg").is_none() => row.path_arg.map(Value::text),
        Arg::Path2 if named("path_arg2").is_none() => row.path_arg2.map(Value::text),
        Arg::Name => named("name").and_then(unquoted),
        Arg::Text(name) => named(name).and_then(unquoted),
        Arg::Size => {
            let size = row.size.or_else(|| number("size"))?;
            Some(match call.size {
                Number::Int => Value::I32(size.try_into().ok()?),
                Number::Uint => Value::U32(size.try_into().ok()?),
                Number::Signed => Value::I64(size),
                Number::Unsigned => Value::U64(size.try_into().ok()?),
            })
        }
        Arg::Iovcnt => Some(Value::U64(named("iovcnt")?.parse().ok()?)),
        Arg::Offset => row.file_offset.or_else(|| number("offset")).map(Value::I64),
        Arg::Seek => number("offset").map(Value::I64),
        Arg::Length => number("length").map(Value::I64),
        Arg::Value { name, kind } => {
            let text = match name {
                "flags" => row.flags,
                name => named(name),
            }?;
            let number = number_of(call, name, kind, text)?;
            Some(match kind {
                "octal" => Value::Octal(number as u16),
                "hex" | "map" | "lock" => Value::Hex(number),
                "long" => Value::I64(number as i64),
                "ulong" => Value::U64(number),
                "uint" | "STATX" => Value::U32(number as u32),
                _ => Value::I32(number as u32 as i32),
            })
        }
        _ => None,
    }
}

/// `3</etc>` or `AT_FDCWD</home>`.
fn descriptor(text: &str) -> Option<Value> {
    let number = text.split('<').next().unwrap_or(text);
    match number {
        "AT_FDCWD" => Some(Value::I32(AT_FDCWD)),
        number => number.parse().ok().map(Value::I32),
    }
}

/// A text in quotes; none that is cut, or has an escape in it.
fn unquoted(text: &str) -> Option<Value> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    (!inside.contains(['\\', '"'])).then(|| Value::text(inside))
}

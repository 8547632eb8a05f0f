//! Streams of events in packets, one file per stream.

use std::collections::HashMap;

use fathom_model::meta::SessionMeta;

use super::TraceFiles;
use super::metadata;
use super::value::{Context, Fields};
use crate::error::Result;

/// A packet is written once it has so many bytes.
const PACKET_BYTES: usize = 256 << 10;
/// Most streams of a trace; events of further CPUs have none.
const MAX_STREAMS: usize = 1 << 13;
/// Most event classes of a trace.
const MAX_CLASSES: usize = 1 << 16;
/// Magic number of a packet.
pub(super) const MAGIC: u32 = 0xc1fc_1fc1;

/// Properties of the whole trace, for the metadata.
pub(super) struct Trace {
    pub uuid: [u8; 16],
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub wall_ns: i64,
    pub environment: Vec<(&'static str, String)>,
    /// Id of the clock, empty if unknown.
    pub boot_id: String,
}

impl Trace {
    pub fn of(meta: &SessionMeta) -> Self {
        let mut uuid = [0; 16];
        for (at, byte) in uuid.iter_mut().enumerate() {
            let digits = meta.id.get(at * 2..at * 2 + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        }
        Trace {
            uuid,
            wall_ns: (meta.clock.start_realtime_ns).wrapping_sub(meta.clock.start_monotonic_ns),
            environment: metadata::environment(meta),
            boot_id: meta.host.boot_id.clone(),
        }
    }
}

/// A stream class: which context its events have, and whether its packets have a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StreamClass {
    /// [`Context::known`].
    pub context: u32,
    pub cpu: bool,
}

impl StreamClass {
    pub fn id(self) -> u32 {
        self.context << 1 | u32::from(self.cpu)
    }
}

/// An event class of a stream class.
pub(super) struct EventClass {
    pub id: u32,
    pub stream: StreamClass,
    pub name: String,
    /// Name and type of each field.
    pub fields: Vec<(&'static str, &'static str)>,
}

#[derive(Default)]
struct Stream {
    file: String,
    /// Its events.
    packet: Vec<u8>,
    first_ns: u64,
    last_ns: u64,
    packets: u64,
}

pub(super) struct Streams<'a> {
    trace: Trace,
    files: &'a mut dyn TraceFiles,
    streams: HashMap<(StreamClass, i32), Stream>,
    by_kind: HashMap<String, u32>,
    classes: Vec<EventClass>,
    key: String,
    dropped: u64,
}

impl<'a> Streams<'a> {
    pub fn new(trace: Trace, files: &'a mut dyn TraceFiles) -> Self {
        Streams {
            trace,
            files,
            streams: HashMap::new(),
            by_kind: HashMap::new(),
            classes: Vec::new(),
            key: String::new(),
            dropped: 0,
        }
    }

    /// Events that found no place.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds an event. The events of a stream must come in order of time.
    pub fn event(
        &mut self,
        ns: i64,
        cpu: Option<i32>,
        context: Context<'_>,
        prefix: &str,
        name: &str,
        fields: &Fields,
    ) -> Result<()> {
        let cpu = cpu.filter(|cpu| *cpu >= 0);
        let full = self.streams.len() >= MAX_STREAMS;
        let known = context.known();
        let of = |cpu: Option<i32>| StreamClass {
            context: known,
            cpu: cpu.is_some(),
        };
        let cpu = cpu.filter(|n| !full || self.streams.contains_key(&(of(Some(*n)), *n)));
        let class = of(cpu);
        let (Ok(ns), Some(id)) = (u64::try_from(ns), self.class(class, prefix, name, fields))
        else {
            self.dropped += 1;
            return Ok(());
        };
        let place = (class, cpu.unwrap_or(-1));
        let stream = self.streams.entry(place).or_insert_with(|| Stream {
            file: match cpu {
                Some(cpu) => format!("stream{}_{cpu}", class.id()),
                None => format!("stream{}", class.id()),
            },
            ..Stream::default()
        });
        if stream.packet.is_empty() {
            stream.first_ns = ns;
        }
        stream.last_ns = ns;
        let out = &mut stream.packet;
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&ns.to_le_bytes());
        context.write(out);
        for (_, value) in fields {
            value.write(out);
        }
        if stream.packet.len() >= PACKET_BYTES {
            flush(&self.trace, self.files, place, stream, 0)?;
        }
        Ok(())
    }

    /// Number of the event class.
    fn class(
        &mut self,
        stream: StreamClass,
        prefix: &str,
        name: &str,
        fields: &Fields,
    ) -> Option<u32> {
        self.key.clear();
        for part in [prefix, name] {
            self.key.push_str(part);
        }
        self.key.push('\0');
        self.key
            .push(char::from_digit(stream.id(), 36).unwrap_or('?'));
        for (name, value) in fields {
            self.key.push('\0');
            self.key.push(value.kind().0);
            self.key.push_str(name);
        }
        if let Some(id) = self.by_kind.get(&self.key) {
            return Some(*id);
        }
        if self.classes.len() >= MAX_CLASSES {
            return None;
        }
        let id = u32::try_from(self.classes.len()).ok()?;
        self.by_kind.insert(self.key.clone(), id);
        self.classes.push(EventClass {
            id,
            stream,
            name: format!("{prefix}{name}"),
            fields: fields
                .iter()
                .map(|(name, value)| (*name, value.kind().1))
                .collect(),
        });
        Some(id)
    }

    /// Writes the rest, an empty packet with the number of lost events where there are any, and the
    /// metadata. `lost` has the lost calls of each CPU: each lacks an exit there, and an entry.
    pub fn finish(&mut self, lost: &HashMap<i64, u64>) -> Result<()> {
        let mut order: Vec<(StreamClass, i32)> = self.streams.keys().copied().collect();
        order.sort_by_key(|(class, cpu)| (class.id(), *cpu));
        let all: u64 = lost.values().sum();
        // The stream class with most of the entries, which has no CPU.
        let entries = order
            .iter()
            .rfind(|(class, _)| !class.cpu && class.context != 0)
            .copied();
        let mut exits: Vec<i32> = Vec::new();
        for place in order.into_iter().rev() {
            let Some(stream) = self.streams.get_mut(&place) else {
                continue;
            };
            flush(&self.trace, self.files, place, stream, 0)?;
            let (class, cpu) = place;
            let discarded = if Some(place) == entries {
                all
            } else if class.cpu && class.context != 0 && !exits.contains(&cpu) {
                exits.push(cpu);
                lost.get(&i64::from(cpu)).copied().unwrap_or(0)
            } else {
                0
            };
            if discarded > 0 {
                stream.first_ns = stream.last_ns;
                packet(&self.trace, self.files, place, stream, discarded)?;
            }
        }
        let text = metadata::text(&self.trace, &self.classes);
        self.files.append("metadata", text.as_bytes())?;
        Ok(())
    }
}

fn flush(
    trace: &Trace,
    files: &mut dyn TraceFiles,
    place: (StreamClass, i32),
    stream: &mut Stream,
    discarded: u64,
) -> Result<()> {
    match stream.packet.is_empty() {
        true => Ok(()),
        false => packet(trace, files, place, stream, discarded),
    }
}

fn packet(
    trace: &Trace,
    files: &mut dyn TraceFiles,
    (class, cpu): (StreamClass, i32),
    stream: &mut Stream,
    discarded: u64,
) -> Result<()> {
    let mut head = Vec::with_capacity(96);
    head.extend_from_slice(&MAGIC.to_le_bytes());
    head.extend_from_slice(&trace.uuid);
    head.extend_from_slice(&class.id().to_le_bytes());
    head.extend_from_slice(&u64::try_from(cpu).unwrap_or(0).to_le_bytes());
    head.extend_from_slice(&stream.first_ns.to_le_bytes());
    head.extend_from_slice(&stream.last_ns.to_le_bytes());
    // Two sizes, a number, a count, and perhaps a CPU follow.
    let bytes = head.len() + 4 * 8 + 4 * usize::from(class.cpu) + stream.packet.len();
    let bits = u64::try_from(bytes).unwrap_or(0).saturating_mul(8);
    for number in [bits, bits, stream.packets, discarded] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    if class.cpu {
        head.extend_from_slice(&cpu.to_le_bytes());
    }
    files.append(&stream.file, &head)?;
    files.append(&stream.file, &stream.packet)?;
    stream.packet.clear();
    stream.packets += 1;
    Ok(())
}

//! The events of one stream's file, packet by packet.

use std::path::PathBuf;
use std::rc::Rc;

use super::bits::Bits;
use super::decode::{Decoder, Failure};
use super::metadata::{Clock, Event, Metadata, Stream};
use super::types::{Type, Value};

/// Magic number of a packet.
const MAGIC: i128 = 0xc1fc_1fc1;

/// An event that was read.
pub(super) struct Read {
    /// Wall clock's nanoseconds.
    pub ns: i64,
    pub cpu: Option<i32>,
    pub name: Rc<str>,
    /// Contexts of the stream and of the event.
    pub contexts: [Value; 2],
    pub fields: Value,
}

impl Read {
    /// A value of the context, by its name.
    pub fn context(&self, name: &str) -> Option<&Value> {
        self.contexts.iter().find_map(|context| context.get(name))
    }
}

/// Events that a tracer discarded before a packet ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discarded {
    pub count: u64,
    pub cpu: Option<i32>,
    pub first_at_ns: i64,
    pub last_at_ns: i64,
}

struct Packet {
    start: u64,
    content_end: u64,
    end: u64,
    stream: u64,
    cpu: Option<i32>,
    header: Value,
    context: Value,
}

pub(super) struct StreamFile {
    pub path: PathBuf,
    metadata: Rc<Metadata>,
    bits: Bits,
    packet: Option<Packet>,
    /// Bit where the next value is.
    at: u64,
    clock: u64,
    /// The tracer's count at the end of the last packet.
    discarded: u64,
    last_ns: i64,
    pub losses: Vec<Discarded>,
    /// The defect at which reading ended.
    pub defect: Option<&'static str>,
}

impl StreamFile {
    pub fn new(path: PathBuf, bits: Bits, metadata: Rc<Metadata>) -> Self {
        StreamFile {
            path,
            metadata,
            bits,
            packet: None,
            at: 0,
            clock: 0,
            discarded: 0,
            last_ns: 0,
            losses: Vec::new(),
            defect: None,
        }
    }

    /// Bytes of the file that were read.
    pub fn done(&self) -> u64 {
        self.at / 8
    }

    /// The next event; `None` at the end, or at a defect.
    pub fn next(&mut self) -> std::io::Result<Option<Read>> {
        match self.advance() {
            Ok(read) => Ok(read),
            Err(Failure::Io(e)) => Err(e),
            Err(Failure::Damaged(defect)) => {
                self.defect = Some(defect);
                self.packet = None;
                self.at = self.bits.length.saturating_mul(8);
                Ok(None)
            }
        }
    }

    fn advance(&mut self) -> Result<Option<Read>, Failure> {
        let metadata = self.metadata.clone();
        let packet = loop {
            match self.packet.take() {
                Some(packet) if self.at < packet.content_end => break packet,
                Some(packet) => self.at = packet.end,
                None => {}
            }
            if self.at >= self.bits.length.saturating_mul(8) {
                return Ok(None);
            }
            self.packet = Some(self.packet(&metadata)?);
        };
        let read = self.event(&metadata, &packet);
        self.packet = Some(packet);
        read.map(Some)
    }

    fn packet(&mut self, metadata: &Metadata) -> Result<Packet, Failure> {
        let start = self.at;
        let file_end = self.bits.length.saturating_mul(8);
        let whole = (start, file_end);
        let little = metadata.little_endian;
        let mut decoder = Decoder::new(&mut self.bits, start, whole, little, &[]);
        let header = optional(&mut decoder, metadata.packet_header.as_deref())?;
        let mut at = decoder.at;
        if header.get("magic").is_some_and(|m| m.int() != Some(MAGIC)) {
            return Err(Failure::Damaged("a packet without its magic number"));
        }
        let named = header.get("stream_id").and_then(Value::int);
        let stream = match named.and_then(|id| u64::try_from(id).ok()) {
            Some(id) => id,
            None => metadata.streams.keys().min().copied().unwrap_or(0),
        };
        let class = metadata.streams.get(&stream);
        let class = class.ok_or(Failure::Damaged(
            "a packet of a stream without a declaration",
        ))?;
        let roots = [("trace.packet.header", &header)];
        let mut decoder = Decoder::new(&mut self.bits, at, whole, little, &roots);
        let context = optional(&mut decoder, class.packet_context.as_deref())?;
        at = decoder.at;
        let number = |name: &str| context.get(name).and_then(Value::int);
        let size = |name: &str| number(name).and_then(|n| u64::try_from(n).ok());
        let content = size("content_size").or(size("packet_size"));
        let total = size("packet_size").or(content);
        let behind = |bits: Option<u64>| match bits {
            Some(bits) => start.checked_add(bits).filter(|end| *end >= at),
            None => Some(file_end),
        };
        let (Some(content_end), Some(end)) = (behind(content), behind(total)) else {
            return Err(Failure::Damaged("a packet of an impossible size"));
        };
        // A packet that is longer than the file was cut off.
        let content_end = content_end.min(file_end);
        if content_end > end {
            return Err(Failure::Damaged("a packet of an impossible size"));
        }
        if let Some(begin) = size("timestamp_begin") {
            self.clock = begin;
        }
        let cpu = number("cpu_id").and_then(|n| i32::try_from(n).ok());
        let last = size("timestamp_end").unwrap_or(self.clock);
        self.count(metadata, class, &context, cpu, last);
        self.at = at;
        Ok(Packet {
            start,
            content_end,
            end,
            stream,
            cpu,
            header,
            context,
        })
    }

    /// Takes the number of discarded events, which counts from the start of the trace.
    fn count(
        &mut self,
        metadata: &Metadata,
        class: &Stream,
        context: &Value,
        cpu: Option<i32>,
        last: u64,
    ) {
        let count = context.get("events_discarded").and_then(Value::int);
        let Some(count) = count.and_then(|n| u64::try_from(n).ok()) else {
            return;
        };
        if count > self.discarded {
            let clock = clock(metadata, class);
            let first_at_ns = match self.last_ns {
                0 => wall(clock, self.clock),
                ns => ns,
            };
            self.losses.push(Discarded {
                count: count - self.discarded,
                cpu,
                first_at_ns,
                last_at_ns: wall(clock, last),
            });
        }
        self.discarded = count;
    }

    fn event(&mut self, metadata: &Metadata, packet: &Packet) -> Result<Read, Failure> {
        let class = metadata.streams.get(&packet.stream);
        let class = class.ok_or(Failure::Damaged(
            "a packet of a stream without a declaration",
        ))?;
        let before = self.at;
        let place = (packet.start, packet.content_end);
        let little = metadata.little_endian;
        let mut roots = vec![
            ("trace.packet.header", &packet.header),
            ("stream.packet.context", &packet.context),
        ];
        let mut decoder = Decoder::new(&mut self.bits, before, place, little, &roots);
        let header = optional(&mut decoder, class.event_header.as_deref())?;
        let (mut at, stamp) = (decoder.at, decoder.clock);
        if let Some((bits, value)) = stamp {
            self.clock = forward(self.clock, bits, value);
        }
        let id = id_of(&header).unwrap_or(0);
        let kind: &Event = u64::try_from(id)
            .ok()
            .and_then(|id| metadata.events.get(&(packet.stream, id)))
            .ok_or(Failure::Damaged("an event without a declaration"))?;
        roots.push(("stream.event.header", &header));
        let mut decoder = Decoder::new(&mut self.bits, at, place, little, &roots);
        let common = optional(&mut decoder, class.event_context.as_deref())?;
        at = decoder.at;
        roots.push(("stream.event.context", &common));
        let mut decoder = Decoder::new(&mut self.bits, at, place, little, &roots);
        let own = optional(&mut decoder, kind.context.as_deref())?;
        at = decoder.at;
        roots.push(("event.context", &own));
        let mut decoder = Decoder::new(&mut self.bits, at, place, little, &roots);
        let fields = optional(&mut decoder, kind.fields.as_deref())?;
        at = decoder.at;
        if at == before {
            return Err(Failure::Damaged("an event of no size"));
        }
        self.at = at;
        let ns = wall(clock(metadata, class), self.clock);
        self.last_ns = ns;
        drop(roots);
        Ok(Read {
            ns,
            cpu: packet.cpu,
            name: kind.name.clone(),
            contexts: [common, own],
            fields,
        })
    }
}

fn optional(decoder: &mut Decoder<'_>, kind: Option<&Type>) -> Result<Value, Failure> {
    match kind {
        Some(kind) => decoder.value(kind),
        None => Ok(Value::Struct(Vec::new())),
    }
}

/// The id of an event: LTTng's compact header has it in place of the selection, the extended one in
/// its variant.
fn id_of(header: &Value) -> Option<i128> {
    let extended = header.fields().iter().find_map(|(_, value)| match value {
        Value::Struct(_) => value.get("id")?.int(),
        _ => None,
    });
    extended.or_else(|| header.get("id")?.int())
}

/// The clock after a value of its lowest `bits` bits was seen.
fn forward(clock: u64, bits: u32, value: u64) -> u64 {
    if bits >= 64 {
        return value;
    }
    let range = 1u64 << bits;
    let next = clock & !(range - 1) | value;
    match next < clock {
        true => next.wrapping_add(range),
        false => next,
    }
}

fn clock<'m>(metadata: &'m Metadata, class: &Stream) -> Option<&'m Clock> {
    metadata.clocks.get(&**class.clock.as_ref()?)
}

/// Wall clock's nanoseconds of a value of the clock.
fn wall(clock: Option<&Clock>, value: u64) -> i64 {
    let Some(clock) = clock else {
        return i64::try_from(value).unwrap_or(i64::MAX);
    };
    let cycles = i128::from(value) + i128::from(clock.offset);
    let ns = cycles * 1_000_000_000 / i128::from(clock.frequency)
        + i128::from(clock.offset_s) * 1_000_000_000;
    ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_few_bits_wrap() {
        assert_eq!(forward(0x1_0000_0005, 32, 6), 0x1_0000_0006);
        assert_eq!(forward(0x1_0000_0005, 32, 4), 0x2_0000_0004);
        assert_eq!(forward(0x1fff_ffff, 27, 0), 0x2000_0000);
        assert_eq!(forward(7, 64, 3), 3);
    }

    #[test]
    fn wall_times() {
        let clock = Clock {
            frequency: 1_000_000,
            offset_s: 10,
            offset: 500_000,
        };
        assert_eq!(wall(Some(&clock), 3), 10_500_003_000);
        assert_eq!(wall(None, 3), 3);
        assert_eq!(wall(Some(&clock), u64::MAX), i64::MAX);
    }
}

//! Packets on their way into the file: interned, bundled, compressed.

use std::collections::HashMap;
use std::io::Write;

use fathom_model::meta::SessionMeta;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::proto::*;
use crate::error::Result;

/// Bytes of packets that are compressed together.
const BUNDLE_BYTES: usize = 512 << 10;
/// Bytes of interned values beyond which all are forgotten.
const MAX_INTERNED: usize = 8 << 20;
/// Of the first session; each has its own.
const SEQUENCE: u32 = 1;

/// Strings that have a number.
#[derive(Default)]
pub(super) struct Names {
    categories: HashMap<String, u64>,
    events: HashMap<String, u64>,
    annotations: HashMap<String, u64>,
    values: HashMap<String, u64>,
    bytes: usize,
}

impl Names {
    pub fn category(&mut self, text: &str, new: &mut InternedData) -> u64 {
        intern(
            &mut self.categories,
            text,
            &mut new.event_categories,
            &mut self.bytes,
        )
    }

    pub fn event(&mut self, text: &str, new: &mut InternedData) -> u64 {
        intern(
            &mut self.events,
            text,
            &mut new.event_names,
            &mut self.bytes,
        )
    }

    pub fn annotation(&mut self, text: &str, new: &mut InternedData) -> u64 {
        let names = &mut new.debug_annotation_names;
        intern(&mut self.annotations, text, names, &mut self.bytes)
    }

    pub fn value(&mut self, text: &str, new: &mut InternedData) -> u64 {
        let values = &mut new.debug_annotation_string_values;
        intern(&mut self.values, text, values, &mut self.bytes)
    }
}

fn intern(
    known: &mut HashMap<String, u64>,
    text: &str,
    new: &mut Vec<Interned>,
    bytes: &mut usize,
) -> u64 {
    if let Some(iid) = known.get(text) {
        return *iid;
    }
    let iid = known.len() as u64 + 1;
    known.insert(text.to_string(), iid);
    *bytes += text.len() + 64;
    new.push(Interned {
        iid: Some(iid),
        text: Some(text.to_string()),
    });
    iid
}

pub(super) struct Packets {
    /// Numbers of strings; ask [`Packets::make_room`] before a packet.
    pub names: Names,
    bundle: Vec<u8>,
    cleared: bool,
    sequence: u32,
    monotonic_ns: u64,
    realtime_ns: u64,
}

impl Packets {
    /// `number`: place of the session in its set.
    pub fn new(meta: &SessionMeta, number: usize) -> Self {
        let ns = |ns: i64| u64::try_from(ns).unwrap_or(0);
        Packets {
            names: Names::default(),
            bundle: Vec::new(),
            cleared: true,
            sequence: SEQUENCE.saturating_add(u32::try_from(number).unwrap_or(u32::MAX)),
            monotonic_ns: ns(meta.clock.start_monotonic_ns),
            realtime_ns: ns(meta.clock.start_realtime_ns),
        }
    }

    /// The first packets: how the clocks relate to each other.
    pub fn begin(&mut self) {
        let clock = |id, ns| Clock {
            clock_id: Some(id),
            timestamp: Some(ns),
        };
        self.push(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![
                    clock(CLOCK_MONOTONIC, self.monotonic_ns),
                    clock(CLOCK_REALTIME, self.realtime_ns),
                ],
                primary_trace_clock: Some(CLOCK_MONOTONIC as i32),
            }),
            ..TracePacket::default()
        });
    }

    /// Forgets what is interned when that is too much.
    pub fn make_room(&mut self) {
        if self.names.bytes > MAX_INTERNED {
            self.names = Names::default();
            self.cleared = true;
        }
    }

    pub fn push(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(self.sequence);
        packet.sequence_flags = Some(NEEDS_STATE);
        if std::mem::take(&mut self.cleared) {
            packet.sequence_flags = Some(STATE_CLEARED);
            packet.trace_packet_defaults = Some(TracePacketDefaults {
                timestamp_clock_id: Some(CLOCK_MONOTONIC),
            });
        }
        frame(&packet, &mut self.bundle);
    }

    /// Writes a bundle when it is full.
    pub fn write_full(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.bundle.len() >= BUNDLE_BYTES {
            self.finish(out)?;
        }
        Ok(())
    }

    pub fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.bundle.is_empty() {
            return Ok(());
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.bundle)?;
        let packet = TracePacket {
            compressed_packets: Some(encoder.finish()?),
            ..TracePacket::default()
        };
        self.bundle.clear();
        let mut bytes = Vec::new();
        frame(&packet, &mut bytes);
        out.write_all(&bytes)?;
        Ok(())
    }
}

/// A packet as a member of message `Trace`: field 1, length, bytes.
fn frame(packet: &TracePacket, out: &mut Vec<u8>) {
    prost::encoding::message::encode(1, packet, out);
}

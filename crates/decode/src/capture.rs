//! Raw captures: the bytes of a recording in a file, to be replayed through
//! the same stages without privileges.
//!
//! A capture is a head and frames, all numbers in the byte order of the
//! machine that wrote it (the records inside are in that order as well):
//!
//! ```text
//! "FATHMCAP"  8 bytes
//! version     u32, 1
//! byte order  u32, 0x01020304
//! length      u32, of the header
//! header      JSON: the session's metadata as in session.json
//! frames      kind u32, length u32, as many bytes
//! ```
//!
//! A frame is a chunk (1: CPU u32, ring u32 with 0 for slots and 1 for wide, the records), a
//! watermark (2: nanoseconds u64), loss counters (3: three counts u32 and a zero u32, then that
//! many of CPU u32, call u32, `shed_value`; of `shed_key`, `shed_value`; of CPU u32, zero u32,
//! `cpu_stats`), or the end (4: nothing). A capture without an end was cut off; everything before
//! the cut is valid.

use std::io::{self, Read, Write};

use fathom_model::abi::{CpuStats, ShedKey, ShedValue};
use fathom_model::meta::SessionMeta;
use fathom_model::raw::{RawChunk, Ring};
use thiserror::Error;

/// Version of the format that [`Writer`] writes.
pub const VERSION: u32 = 2;

const MAGIC: [u8; 8] = *b"FATHMCAP";
const BYTE_ORDER: u32 = 0x0102_0304;
const CHUNK: u32 = 1;
const WATERMARK: u32 = 2;
const LOSSES: u32 = 3;
const END: u32 = 4;

/// Why a capture could not be read or written.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// Reading or writing failed.
    #[error("the capture could not be read or written: {0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error(
        "not a fathom capture (it does not begin with FATHMCAP); pass a file written by `record --raw`"
    )]
    NotACapture,
    /// The file is of another version.
    #[error(
        "the capture has version {0}, this fathom reads {VERSION}; replay it with the fathom that wrote it"
    )]
    Version(u32),
    /// The file was written on a machine of the other byte order.
    #[error(
        "the capture was written on a machine with another byte order; replay it on such a machine"
    )]
    ByteOrder,
    /// The file ends inside its head.
    #[error("the capture is cut off before its first record; record again")]
    HeadCut,
    /// The header is no metadata of a session.
    #[error("the header of the capture is damaged: {0}")]
    Header(#[from] serde_json::Error),
    /// A frame says something impossible.
    #[error("the capture is damaged at byte {at}: {what}; the records before it were read")]
    Damaged {
        /// Where the frame begins.
        at: u64,
        /// The defect.
        what: &'static str,
    },
    /// A chunk is too long to be written.
    #[error("a chunk of {0} bytes is too long for a capture; drain the rings more often")]
    TooLong(usize),
}

/// Loss counters as they were read from the kernel at one moment; each set
/// replaces the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// CPU, call, what was lost of it: exact.
    pub per_cpu: Vec<(u32, u32, ShedValue)>,
    /// The same split by process and file; may be incomplete.
    pub split: Vec<(ShedKey, ShedValue)>,
    pub cpus: Vec<(u32, CpuStats)>,
}

/// One part of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Records of one ring.
    Chunk(RawChunk),
    /// Everything before this time (nanoseconds) was written: what
    /// [`crate::Merge::drain_until`] was given.
    Watermark(u64),
    /// Loss counters.
    Losses(Box<Losses>),
}

#[derive(Debug)]
pub struct Writer<W: Write> {
    to: W,
}

impl<W: Write> Writer<W> {
    /// Begins a capture with the metadata of the session.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(mut to: W, meta: &SessionMeta) -> Result<Self, CaptureError> {
        let header = serde_json::to_vec(meta)?;
        to.write_all(&MAGIC)?;
        to.write_all(&VERSION.to_ne_bytes())?;
        to.write_all(&BYTE_ORDER.to_ne_bytes())?;
        to.write_all(&length(header.len())?)?;
        to.write_all(&header)?;
        Ok(Self { to })
    }

    /// Adds the records of a chunk.
    ///
    /// # Errors
    /// When writing fails or the chunk is longer than 4 GiB.
    pub fn chunk(&mut self, chunk: &RawChunk) -> Result<(), CaptureError> {
        let ring: u32 = match chunk.ring {
            Ring::Slot => 0,
            Ring::Wide => 1,
        };
        self.frame(
            CHUNK,
            &[&chunk.cpu.to_ne_bytes(), &ring.to_ne_bytes(), &chunk.bytes],
        )
    }

    /// Notes that everything before `ns` was added.
    ///
    /// # Errors
    /// When writing fails.
    pub fn watermark(&mut self, ns: u64) -> Result<(), CaptureError> {
        self.frame(WATERMARK, &[&ns.to_ne_bytes()])
    }

    /// Adds loss counters.
    ///
    /// # Errors
    /// When writing fails.
    pub fn losses(&mut self, losses: &Losses) -> Result<(), CaptureError> {
        let mut bytes = Vec::new();
        for count in [losses.per_cpu.len(), losses.split.len(), losses.cpus.len()] {
            bytes.extend_from_slice(&length(count)?);
        }
        bytes.extend_from_slice(&[0; 4]);
        for (cpu, call, value) in &losses.per_cpu {
            bytes.extend_from_slice(&cpu.to_ne_bytes());
            bytes.extend_from_slice(&call.to_ne_bytes());
            bytes.extend_from_slice(&value.to_bytes());
        }
        for (key, value) in &losses.split {
            bytes.extend_from_slice(&key.to_bytes());
            bytes.extend_from_slice(&value.to_bytes());
        }
        for (cpu, stats) in &losses.cpus {
            bytes.extend_from_slice(&cpu.to_ne_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&stats.to_bytes());
        }
        self.frame(LOSSES, &[&bytes])
    }

    /// Ends the capture and returns what it was written to, flushed.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        self.frame(END, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn frame(&mut self, kind: u32, parts: &[&[u8]]) -> Result<(), CaptureError> {
        self.to.write_all(&kind.to_ne_bytes())?;
        self.to
            .write_all(&length(parts.iter().map(|p| p.len()).sum())?)?;
        for part in parts {
            self.to.write_all(part)?;
        }
        Ok(())
    }
}

fn length(len: usize) -> Result<[u8; 4], CaptureError> {
    let len = u32::try_from(len).map_err(|_| CaptureError::TooLong(len))?;
    Ok(len.to_ne_bytes())
}

/// How far a [`Reader`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    Cut,
    Complete,
    Damaged,
}

#[derive(Debug)]
pub struct Reader<R: Read> {
    from: R,
    at: u64,
    meta: SessionMeta,
    state: State,
}

impl<R: Read> Reader<R> {
    /// Reads the head of a capture.
    ///
    /// # Errors
    /// When it is no capture, of another version or byte order, or cut off.
    pub fn new(mut from: R) -> Result<Self, CaptureError> {
        let magic = bytes(&mut from, MAGIC.len())?;
        if magic != MAGIC {
            return Err(CaptureError::NotACapture);
        }
        let mut number = || -> Result<u32, CaptureError> {
            let b = bytes(&mut from, 4)?;
            u32_at(&b, 0).ok_or(CaptureError::HeadCut)
        };
        let version = number()?;
        if number()? != BYTE_ORDER {
            return Err(CaptureError::ByteOrder);
        }
        if version != VERSION {
            return Err(CaptureError::Version(version));
        }
        let len = number()?;
        let header = bytes(&mut from, len as usize)?;
        if header.len() != len as usize {
            return Err(CaptureError::HeadCut);
        }
        let meta = serde_json::from_slice(&header)?;
        Ok(Self {
            from,
            at: 20 + u64::from(len),
            meta,
            state: State::Reading,
        })
    }

    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// Whether the end was reached and the capture is whole. False while frames
    /// are left, and for a capture that was cut off.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// The next frame; `None` at the end of the capture, or where it was cut off
    /// ([`Reader::is_complete`] distinguishes them). After an error: `None`.
    ///
    /// # Errors
    /// When reading fails or a frame says something impossible.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, CaptureError> {
        loop {
            if self.state != State::Reading {
                return Ok(None);
            }
            let at = self.at;
            let head = bytes(&mut self.from, 8)?;
            let (Some(kind), Some(len)) = (u32_at(&head, 0), u32_at(&head, 4)) else {
                self.state = State::Cut;
                return Ok(None);
            };
            let body = bytes(&mut self.from, len as usize)?;
            if body.len() != len as usize {
                self.state = State::Cut;
                return Ok(None);
            }
            self.at += 8 + u64::from(len);
            let frame = match kind {
                CHUNK => chunk(body),
                WATERMARK => u64_at(&body, 0)
                    .map(Frame::Watermark)
                    .ok_or("a watermark is cut"),
                LOSSES => losses(&body)
                    .map(|l| Frame::Losses(Box::new(l)))
                    .ok_or("counters are cut"),
                END => {
                    self.state = State::Complete;
                    return Ok(None);
                }
                // Of a later minor version: what it means can be left out.
                _ => continue,
            };
            return match frame {
                Ok(frame) => Ok(Some(frame)),
                Err(what) => {
                    self.state = State::Damaged;
                    Err(CaptureError::Damaged { at, what })
                }
            };
        }
    }
}

fn chunk(mut body: Vec<u8>) -> Result<Frame, &'static str> {
    let (Some(cpu), Some(ring)) = (u32_at(&body, 0), u32_at(&body, 4)) else {
        return Err("a chunk is cut");
    };
    let ring = match ring {
        0 => Ring::Slot,
        1 => Ring::Wide,
        _ => return Err("a chunk has an unknown ring"),
    };
    body.drain(..8);
    Ok(Frame::Chunk(RawChunk {
        cpu,
        ring,
        bytes: body,
    }))
}

fn losses(body: &[u8]) -> Option<Losses> {
    let mut losses = Losses::default();
    let [per_cpu, split, cpus] = [u32_at(body, 0)?, u32_at(body, 4)?, u32_at(body, 8)?];
    let mut rest = body.get(16..)?;
    let mut take = |len: usize| {
        let (taken, left) = rest.split_at_checked(len)?;
        rest = left;
        Some(taken)
    };
    for _ in 0..per_cpu {
        let head = take(8)?;
        let value = ShedValue::parse(take(ShedValue::SIZE)?)?;
        losses
            .per_cpu
            .push((u32_at(head, 0)?, u32_at(head, 4)?, value));
    }
    for _ in 0..split {
        let key = ShedKey::parse(take(ShedKey::SIZE)?)?;
        losses
            .split
            .push((key, ShedValue::parse(take(ShedValue::SIZE)?)?));
    }
    for _ in 0..cpus {
        let cpu = u32_at(take(8)?, 0)?;
        losses
            .cpus
            .push((cpu, CpuStats::parse(take(CpuStats::SIZE)?)?));
    }
    Some(losses)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Up to `len` bytes, fewer at the end. Memory grows with what is really
/// there, not with what a damaged length says.
fn bytes(from: &mut impl Read, len: usize) -> Result<Vec<u8>, CaptureError> {
    let mut bytes = Vec::with_capacity(len.min(1 << 20));
    from.take(len as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

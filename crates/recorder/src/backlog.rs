//! Drained records that wait to be decoded: first in memory, then compressed in a file.
//!
//! Only draining has to keep up with the program. Where decoding falls behind, for a burst or because
//! many processors fill the rings that one thread decodes, records wait here, and the rings stay empty.
//! The files have no name, so a recorder that is killed leaves
//! none behind; the calls in them then count as `missing`.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fathom_model::raw::{RawChunk, Ring};
use rustix::fs::{CWD, Mode, OFlags, fstatvfs, openat};
use zstd::bulk::Compressor;

/// Bytes of drained records that wait in memory; a single drain may have more.
pub(crate) const MEMORY_BYTES: usize = 16 << 20;
/// Bytes of them that wait in files, compressed, at most.
const FILE_BYTES: u64 = 4 << 30;
/// Of what was free in the file system when the recording began they take at most this part.
const FREE_PART: u64 = 10;
/// Bytes from which on the next ones go into a new file: what was read is freed by files.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Compressing takes the time of a draining thread; zstd's fast levels take least.
const LEVEL: i32 = -7;

/// Where drained records wait, with the messages that came between them.
pub(crate) struct Backlog<M> {
    state: Mutex<State<M>>,
    changed: Condvar,
    depth: Arc<Depth>,
    limits: Limits,
    directory: PathBuf,
}

/// How much waits, for those who do not wait for its lock.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    filed: AtomicU64,
}

impl Depth {
    /// Compressed bytes that wait in files.
    pub(crate) fn in_files(&self) -> u64 {
        self.filed.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.filed.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, bytes: u64) {
        self.filed.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
struct Limits {
    memory: usize,
    file: u64,
    segment: u64,
}

/// A waiting item.
pub(crate) enum Entry<M> {
    /// Drained records; everything before the time is complete.
    Drained(Vec<RawChunk>, u64),
    /// Anything else.
    Message(M),
}

enum Waiting<M> {
    Here(Entry<M>),
    Filed(Filed),
}

/// A drain in a file.
struct Filed {
    segment: Arc<File>,
    at: u64,
    length: usize,
    chunks: Vec<(u32, Ring, usize)>,
    watermark_ns: u64,
}

struct State<M> {
    waiting: VecDeque<Waiting<M>>,
    memory: usize,
    closed: bool,
}

/// The end that drains.
pub(crate) struct Sender<M> {
    backlog: Arc<Backlog<M>>,
    segment: Option<Segment>,
    compressor: Option<Compressor<'static>>,
    plain: Vec<u8>,
}

/// The file that is written to.
struct Segment {
    file: Arc<File>,
    length: u64,
}

/// The end that decodes.
pub(crate) struct Receiver<M>(Arc<Backlog<M>>);

/// The other end is gone.
#[derive(Debug)]
pub(crate) struct DecoderEnded;

/// A backlog whose files are in `directory`.
pub(crate) fn backlog<M>(directory: &Path) -> (Sender<M>, Receiver<M>) {
    let limits = Limits {
        memory: MEMORY_BYTES,
        file: room(directory),
        segment: SEGMENT_BYTES,
    };
    with_limits(directory, limits)
}

fn with_limits<M>(directory: &Path, limits: Limits) -> (Sender<M>, Receiver<M>) {
    let backlog = Arc::new(Backlog {
        state: Mutex::new(State {
            waiting: VecDeque::new(),
            memory: 0,
            closed: false,
        }),
        changed: Condvar::new(),
        depth: Arc::default(),
        limits,
        directory: directory.to_owned(),
    });
    let sender = Sender {
        backlog: Arc::clone(&backlog),
        segment: None,
        compressor: Compressor::new(LEVEL).ok(),
        plain: Vec::new(),
    };
    (sender, Receiver(backlog))
}

pub(crate) fn bytes_of(chunks: &[RawChunk]) -> usize {
    chunks.iter().map(|chunk| chunk.bytes.len()).sum()
}

/// Bytes that files may take in a directory.
fn room(directory: &Path) -> u64 {
    let free = File::open(directory)
        .and_then(|directory| Ok(fstatvfs(directory)?))
        .map_or(0, |system| system.f_bavail * system.f_frsize);
    FILE_BYTES.min(free / FREE_PART)
}

impl<M> Backlog<M> {
    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<M>>) -> MutexGuard<'a, State<M>> {
        let state = self.changed.wait(state);
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

impl<M> State<M> {
    fn has_memory(&self, bytes: usize, limits: &Limits) -> bool {
        self.memory == 0 || self.memory + bytes <= limits.memory
    }
}

impl<M> Sender<M> {
    /// Hands over what was drained, and takes buffers back by `spare` that are no longer needed. Waits
    /// when neither memory nor files have room.
    pub(crate) fn drained(
        &mut self,
        chunks: Vec<RawChunk>,
        watermark_ns: u64,
        spare: impl FnMut(Vec<u8>),
    ) -> Result<(), DecoderEnded> {
        let bytes = bytes_of(&chunks);
        let backlog = Arc::clone(&self.backlog);
        let mut state = backlog.lock();
        if !state.has_memory(bytes, &backlog.limits) {
            drop(state);
            if let Some(filed) = self.file(&chunks, watermark_ns) {
                chunks.into_iter().map(|chunk| chunk.bytes).for_each(spare);
                let length = filed.length as u64;
                backlog.depth.add(length);
                return self.put(backlog.lock(), Waiting::Filed(filed));
            }
            state = backlog.lock();
            while !state.closed && !state.has_memory(bytes, &backlog.limits) {
                state = backlog.wait(state);
            }
        }
        state.memory += bytes;
        self.put(state, Waiting::Here(Entry::Drained(chunks, watermark_ns)))
    }

    /// Sends what does not wait for room.
    pub(crate) fn message(&self, message: M) -> Result<(), DecoderEnded> {
        let state = self.backlog.lock();
        self.put(state, Waiting::Here(Entry::Message(message)))
    }

    fn put(
        &self,
        mut state: MutexGuard<'_, State<M>>,
        entry: Waiting<M>,
    ) -> Result<(), DecoderEnded> {
        if state.closed {
            return Err(DecoderEnded);
        }
        state.waiting.push_back(entry);
        drop(state);
        self.backlog.changed.notify_all();
        Ok(())
    }

    /// How much waits.
    pub(crate) fn depth(&self) -> &Arc<Depth> {
        &self.backlog.depth
    }

    /// Writes a drain to a file; none when there is no room, or writing fails: then it stays in memory.
    fn file(&mut self, chunks: &[RawChunk], watermark_ns: u64) -> Option<Filed> {
        let limits = self.backlog.limits;
        self.plain.clear();
        for chunk in chunks {
            self.plain.extend_from_slice(&chunk.bytes);
        }
        let packed = self.compressor.as_mut()?.compress(&self.plain).ok()?;
        let length = packed.len() as u64;
        if self.depth().in_files() + length > limits.file {
            return None;
        }
        let full = |segment: &Segment| segment.length >= limits.segment;
        if self.segment.as_ref().is_none_or(full) {
            let file = Arc::new(nameless(&self.backlog.directory).ok()?);
            self.segment = Some(Segment { file, length: 0 });
        }
        let segment = self.segment.as_mut()?;
        let at = segment.length;
        segment.file.write_all_at(&packed, at).ok()?;
        segment.length += length;
        Some(Filed {
            segment: Arc::clone(&segment.file),
            at,
            length: packed.len(),
            chunks: chunks
                .iter()
                .map(|c| (c.cpu, c.ring, c.bytes.len()))
                .collect(),
            watermark_ns,
        })
    }
}

/// A file without a name, which only its descriptors reach.
fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR)?.into())
}

impl<M> Drop for Sender<M> {
    fn drop(&mut self) {
        self.backlog.close();
    }
}

impl<M> Drop for Receiver<M> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Filed {
    fn read(self) -> io::Result<(Vec<RawChunk>, u64)> {
        let mut packed = vec![0; self.length];
        self.segment.read_exact_at(&mut packed, self.at)?;
        let bytes = self.chunks.iter().map(|(_, _, bytes)| bytes).sum();
        let plain = zstd::bulk::decompress(&packed, bytes)?;
        let mut rest = plain.as_slice();
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for (cpu, ring, bytes) in self.chunks {
            let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it has other bytes");
            let (own, others) = rest.split_at_checked(bytes).ok_or_else(wrong)?;
            rest = others;
            let bytes = own.to_vec();
            chunks.push(RawChunk { cpu, ring, bytes });
        }
        Ok((chunks, self.watermark_ns))
    }
}

impl<M> Receiver<M> {
    /// The next one, whose bytes stay in memory until [`Receiver::freed`]; none when all have been taken and the sender is gone.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn next(&self) -> io::Result<Option<Entry<M>>> {
        let mut state = self.0.lock();
        loop {
            match state.waiting.pop_front() {
                Some(Waiting::Here(entry)) => return Ok(Some(entry)),
                Some(Waiting::Filed(filed)) => {
                    drop(state);
                    let length = filed.length as u64;
                    let (chunks, watermark_ns) = filed.read()?;
                    self.0.depth.sub(length);
                    let mut state = self.0.lock();
                    state.memory += bytes_of(&chunks);
                    return Ok(Some(Entry::Drained(chunks, watermark_ns)));
                }
                None if state.closed => return Ok(None),
                None => state = self.0.wait(state),
            }
        }
    }

    /// So many bytes of drained records are no longer in memory.
    pub(crate) fn freed(&self, bytes: usize) {
        let mut state = self.0.lock();
        state.memory = state.memory.saturating_sub(bytes);
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;

//! From where in its program each call was made.
//!
//! The kernel side sends the registers and the first bytes of the stack
//! (`bpf/stacks.bpf.h`). Here they become a list of places in files, each different list with a
//! number, as soon as they are drained: a process that has ended has no mappings any more. The
//! names of the functions wait until the recording is over.

mod objects;
mod process;
mod symbols;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fathom_model::abi::{FrameRecord, NO_OFFSET, RECORD_FRAME, RECORD_STACK, StackRecord};
use fathom_model::raw::{RawChunk, Ring};
use framehop::{MayAllocateDuringUnwind, Unwinder};

use crate::framing::{append_framed, framed};
use objects::Objects;
use process::{Cache, Process};

/// Functions on a stack that are kept, the innermost ones.
const MAX_FRAMES: usize = 64;
/// Different stacks that are kept.
const MAX_STACKS: usize = 1 << 17;
/// Processes whose mappings are remembered.
const MAX_PROCESSES: usize = 1024;
/// Code that no mapping explains is looked for again after this time.
const AGAIN: Duration = Duration::from_millis(100);
/// Longer names are cut.
const MAX_TEXT: usize = 4096;

/// A place in the file of an object; one without an object is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    object: Option<u32>,
    at: u64,
}

/// All stacks that were seen.
pub(crate) struct Stacks {
    processes: HashMap<u32, Process>,
    objects: Objects,
    cache: Cache,
    numbers: HashMap<Vec<Place>, u32>,
    /// Number of these that have names.
    named: usize,
}

impl Stacks {
    pub(crate) fn new() -> Self {
        Self {
            processes: HashMap::new(),
            objects: Objects::default(),
            cache: Cache::new(),
            numbers: HashMap::new(),
            named: 0,
        }
    }

    /// Puts the numbers of stacks in the place of their bytes.
    pub(crate) fn number(&mut self, chunks: &mut [RawChunk]) {
        for chunk in chunks.iter_mut().filter(|c| c.ring == Ring::Wide) {
            let mut out = Vec::with_capacity(chunk.bytes.len());
            let mut rest = chunk.bytes.as_slice();
            while let Some((record, behind)) = framed(rest) {
                rest = behind;
                if record.first().map(|kind| u32::from(*kind)) == Some(RECORD_STACK)
                    && let Some(mut stack) = StackRecord::parse(record)
                {
                    let bytes = record.get(StackRecord::SIZE..).unwrap_or_default();
                    stack.stack = self.number_of(&stack, bytes);
                    stack.bytes = 0;
                    append_framed(&mut out, &stack.to_bytes());
                } else {
                    append_framed(&mut out, record);
                }
            }
            chunk.bytes = out;
        }
    }

    /// The number of the stack in a record; 0 if nothing is known about it.
    fn number_of(&mut self, record: &StackRecord, bytes: &[u8]) -> u32 {
        let places = self.places(record, bytes);
        if places.iter().all(|place| place.object.is_none()) {
            return 0;
        }
        let next = self.numbers.len() + 1;
        match self.numbers.get(&places) {
            Some(number) => *number,
            None if next > MAX_STACKS => 0,
            None => {
                let next = u32::try_from(next).unwrap_or(0);
                self.numbers.insert(places, next);
                next
            }
        }
    }

    fn places(&mut self, record: &StackRecord, bytes: &[u8]) -> Vec<Place> {
        let Self {
            processes,
            objects,
            cache,
            ..
        } = self;
        if processes.len() >= MAX_PROCESSES && !processes.contains_key(&record.pid) {
            processes.clear();
        }
        let process = processes.entry(record.pid).or_default();
        if !process.knows(record.ip) && process.again.is_none_or(|at| Instant::now() >= at) {
            // It has begun, executed another program, or loaded a library.
            process.read(record.pid, objects);
            process.again = (!process.knows(record.ip)).then(|| Instant::now() + AGAIN);
        }
        let mut read = |address: u64| {
            let at = address.checked_sub(record.sp).ok_or(())?;
            let at = usize::try_from(at).map_err(|_| ())?;
            let word = bytes.get(at..at.saturating_add(8)).ok_or(())?;
            Ok(u64::from_ne_bytes(word.try_into().map_err(|_| ())?))
        };
        let mut frames =
            process
                .unwinder
                .iter_frames(record.ip, process::registers(record), cache, &mut read);
        let mut places = Vec::new();
        // It ends where the bytes do.
        while let Ok(Some(frame)) = frames.next() {
            if places.len() >= MAX_FRAMES {
                break;
            }
            places.push(process.place(frame.address()));
        }
        places
    }

    /// The functions of the stacks that have none yet, as records.
    pub(crate) fn name(&mut self) -> Option<RawChunk> {
        let mut stacks: Vec<(&Vec<Place>, u32)> = self
            .numbers
            .iter()
            .map(|(places, number)| (places, *number))
            .filter(|(_, number)| *number as usize > self.named)
            .collect();
        if stacks.is_empty() {
            return None;
        }
        stacks.sort_by_key(|(_, number)| *number);
        self.named = self.numbers.len();
        let places = stacks.iter().flat_map(|(places, _)| places.iter().copied());
        let names = symbols::of(places.collect(), &self.objects);
        let now_ns = crate::monotonic_ns();
        let mut bytes = Vec::new();
        for (places, number) in stacks {
            let mut frame = 0;
            for place in places {
                let (object, build_id) = self.objects.names(place.object);
                let unnamed = [symbols::Function::default()];
                let functions = names.get(place).map_or(&unnamed[..], Vec::as_slice);
                for (i, function) in functions.iter().enumerate() {
                    let texts = [object, build_id, &function.name, &function.source];
                    let texts = texts.map(|t| t.as_bytes().get(..MAX_TEXT).unwrap_or(t.as_bytes()));
                    let [object_len, build_id_len, function_len, source_len] =
                        texts.map(|text| text.len() as u16);
                    let record = FrameRecord {
                        kind: RECORD_FRAME as u8,
                        inlined: u8::from(i + 1 < functions.len()),
                        frame,
                        stack: number,
                        ts_ns: now_ns,
                        offset: match place.object {
                            Some(_) => i64::try_from(place.at).unwrap_or(NO_OFFSET),
                            None => NO_OFFSET,
                        },
                        function_offset: function.offset.unwrap_or(NO_OFFSET),
                        line: function.line,
                        object_len,
                        build_id_len,
                        function_len,
                        source_len,
                        reserved: 0,
                    };
                    frame = frame.saturating_add(1);
                    let texts = texts.concat();
                    append_framed(&mut bytes, &[&record.to_bytes()[..], &texts].concat());
                }
            }
        }
        Some(RawChunk {
            cpu: 0,
            ring: Ring::Wide,
            bytes,
        })
    }
}

/// How much of the unwinder's memory is allocated while it works.
pub(crate) type Policy = MayAllocateDuringUnwind;

//! The work of threads while they answered requests: the time of a span by layer.
//!
//! Each thread has a timeline of its calls, its page faults and its waits outside of calls. When all
//! calls of the time of a span have come, the pieces within it are added up by layer; the rest of its
//! time belongs to the program. So the parts of a span add up to its duration.
//!
//! While a thread waits for an answer, its request is in another program. If the spans of that are there
//! ([`elsewhere`]), their parts take the place of the wait.

mod elsewhere;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

use elsewhere::Elsewhere;

use crate::call::Call;
use crate::finding::Example;
use crate::layers::{Fault, Request, Slice, Span};
use crate::query_text;
use crate::text_key::key_of;

/// Pieces of all threads that are remembered, and of one thread.
const MAX_PIECES: usize = 1 << 18;
const MAX_OF_THREAD: usize = 1 << 13;
/// Spans that wait for the calls of their time, and spans of a thread that are compared.
const MAX_PENDING: usize = 1 << 16;
const MAX_RECENT: usize = 64;
/// Requests whose slices or block requests came before their own row, twice.
const MAX_BELOW: usize = 1 << 16;
/// Completions of a device that are remembered, and devices.
const MAX_DONE: usize = 512;
const MAX_DEVICES: usize = 256;
const MAX_NAMES: usize = 4096;

macro_rules! parts {
    ($($part:ident, $usual:literal, $slow:literal, $words:literal, $advice:literal;)*) => {
        /// Where the time of a span went.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Part {
            $($part,)*
        }

        impl Part {
            pub(crate) const ALL: [Part; Parts::COUNT] = [$(Part::$part),*];

            /// Names of evidence: of usual requests, and of slow ones.
            pub(crate) fn evidence(self) -> (&'static str, &'static str) {
                match self {
                    $(Part::$part => ($usual, $slow),)*
                }
            }

            /// Purpose of the time.
            pub(crate) fn words(self) -> &'static str {
                match self {
                    $(Part::$part => $words,)*
                }
            }

            pub(crate) fn advice(self) -> &'static str {
                match self {
                    $(Part::$part => $advice,)*
                }
            }
        }
    };
}

parts! {
    Program, "usual_program_ns", "slow_program_ns", "the program itself, outside of recorded calls and waits",
        "Look at the code of the program (--stacks, perf): the slow requests compute for longer, or make calls that were not recorded.";
    Call, "usual_call_ns", "slow_call_ns", "time in calls, on the CPU", "See which calls the slow requests make more often.";
    Cpu, "usual_cpu_wait_ns", "slow_cpu_wait_ns", "waiting for a CPU",
        "Other threads have the processors meanwhile: run fewer of them, give them a smaller share (nice, cpu.weight), or add processors.";
    Lock, "usual_lock_ns", "slow_lock_ns", "waiting for a lock", "See who holds the lock meanwhile: `fathom critical-path` follows the wait to the thread that ends it.";
    PageCache, "usual_page_cache_ns", "slow_page_cache_ns", "the page cache and page faults", "Keep the file in memory: more memory, less of it for others, or a smaller file.";
    FileSystem, "usual_file_system_ns", "slow_file_system_ns", "the file system", "See which operations of the file system the slow requests wait for: journal commits, allocation, lookups.";
    Queue, "usual_queue_ns", "slow_queue_ns", "the queue of the device", "See which requests are in the queue at the time of the slow requests (table block).";
    Device, "usual_device_ns", "slow_device_ns", "the device at work", "Read the data before requests need it, keep it in memory, or use a faster device.";
    Io, "usual_io_wait_ns", "slow_io_wait_ns", "waiting for I/O of others", "Another thread, such as write-back or a journal commit, does the I/O that the slow requests wait for.";
    Socket, "usual_socket_ns", "slow_socket_ns", "waiting for a socket, a pipe, or an event", "Another process or host ends these waits: record it too (`fathom record --on`), and see which one with `fathom critical-path`.";
    Sleep, "usual_other_wait_ns", "slow_other_wait_ns", "other waits", "See the reasons of the waits (table waits).";
    Interrupt, "usual_interrupt_ns", "slow_interrupt_ns", "interrupts", "See which interrupts come in the time of the slow requests (table irqs).";
}

/// Time by part, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts([i64; Parts::COUNT]);

impl Parts {
    const COUNT: usize = Part::Interrupt as usize + 1;

    pub(crate) fn of(&self, part: Part) -> i64 {
        self.0.get(part as usize).copied().unwrap_or(0)
    }

    fn add(&mut self, part: Part, ns: i64) {
        if let Some(sum) = self.0.get_mut(part as usize) {
            *sum = sum.saturating_add(ns.max(0));
        }
    }

    fn sum(&self) -> i64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    fn add_all(&mut self, other: &Parts) {
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(more);
        }
    }
}

/// The part of a wait with this reason.
fn of_wait(reason: &str) -> Part {
    match reason {
        "cpu" | "run queue" | "preempted" => Part::Cpu,
        "lock" | "file_lock" | "futex" | "ipc" => Part::Lock,
        "disk" | "async_io" | "swap" | "page_fault" => Part::Io,
        "page_cache" => Part::PageCache,
        "file_system" => Part::FileSystem,
        "socket" | "pipe" | "poll" => Part::Socket,
        _ => Part::Sleep,
    }
}

fn of_slice(slice: &Slice) -> Part {
    match slice.layer {
        "sched" => of_wait(slice.name),
        "block" => Part::Queue,
        "device" => Part::Device,
        "pagecache" => Part::PageCache,
        "fs" | "vfs" | "fuse" | "nfs" => Part::FileSystem,
        "irq" => Part::Interrupt,
        _ => Part::Call,
    }
}

/// A process that had requests ahead, by its number and its name, and how many.
type Ahead = ((i32, u64), u32);

/// Slices of a request, and what its block requests waited behind.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    parts: Parts,
    ahead: Option<Ahead>,
    /// Its longest wait, and what that was for: slices have the state of the thread only.
    longest: Option<(i64, Part)>,
}

impl Below {
    /// The parts of a request that took so long, with the rest for `own`.
    fn settled(mut self, dur_ns: i64, own: Part) -> Parts {
        if let Some((_, reason)) = self.longest {
            let waited = std::mem::take(&mut self.parts.0[Part::Sleep as usize]);
            self.parts.add(reason, waited);
        }
        self.parts.add(own, dur_ns - self.parts.sum());
        self.parts
    }
}

/// A part of a thread's time.
#[derive(Clone, Debug)]
struct Piece {
    from_ns: i64,
    until_ns: i64,
    parts: Parts,
    ahead: Option<Ahead>,
    example: Option<Example>,
}

#[derive(Debug, Default)]
struct Timeline {
    pieces: VecDeque<Piece>,
    /// When the latest piece ended that was forgotten.
    forgotten_ns: i64,
    recent: VecDeque<Pending>,
}

/// A span whose time has not been added up.
#[derive(Clone, Debug)]
struct Pending {
    trace: u64,
    id: u64,
    parent: Option<u64>,
    from_ns: i64,
    until_ns: i64,
    pid: i32,
    tid: i32,
    service: String,
    name: String,
    kind: String,
}

impl Pending {
    fn overlaps(&self, other: &Pending) -> bool {
        let same = self.trace == other.trace && self.id == other.id;
        !same && self.from_ns < other.until_ns && other.from_ns < self.until_ns
    }

    /// Whether one of the two is in the other, in the same trace: what a child does is of its parent, too.
    fn is_related(&self, other: &Pending) -> bool {
        let contains =
            |a: &Pending, b: &Pending| a.from_ns <= b.from_ns && b.until_ns <= a.until_ns;
        self.trace == other.trace
            && (self.parent == Some(other.id)
                || other.parent == Some(self.id)
                || contains(self, other)
                || contains(other, self))
    }
}

/// A span with its time by part.
#[derive(Clone, Debug)]
pub(crate) struct SpanTime {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) pid: i32,
    pub(crate) dur_ns: i64,
    pub(crate) parts: Parts,
    /// Of which in requests that it caused in other programs.
    pub(crate) elsewhere: Parts,
    /// The one of these with the most time.
    pub(crate) within: Option<(i64, Arc<str>)>,
    /// Names of all requests that it caused, by [`SpanTime::key`].
    pub(crate) causes: Vec<u64>,
    pub(crate) ahead: Option<Ahead>,
    /// Its longest call.
    pub(crate) longest: Option<Example>,
}

impl SpanTime {
    /// Requests that are compared with each other have the same.
    pub(crate) fn key(&self) -> u64 {
        key_of(&format!("{}\0{}\0{}", self.service, self.kind, self.name))
    }
}

/// A completion of a device.
#[derive(Clone, Copy, Debug)]
struct Done {
    at_ns: i64,
    who: (i32, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Timelines {
    threads: HashMap<i32, Timeline>,
    pieces: usize,
    young: HashMap<i64, Below>,
    old: HashMap<i64, Below>,
    /// By their ends.
    pending: BTreeMap<(i64, u64), Pending>,
    made: u64,
    /// By trace and span: what other programs did for it.
    elsewhere: HashMap<(u64, u64), Elsewhere>,
    devices: HashMap<u64, VecDeque<Done>>,
    names: HashMap<u64, String>,
}

impl Timelines {
    pub(crate) fn comm(&self, key: u64) -> &str {
        self.names
            .get(&key)
            .map_or("another process", String::as_str)
    }

    fn below(&mut self, rid: i64) -> &mut Below {
        if self.young.len() >= MAX_BELOW && !self.young.contains_key(&rid) {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.remove(&rid);
        self.young
            .entry(rid)
            .or_insert_with(|| before.unwrap_or_default())
    }

    fn take_below(&mut self, rid: i64) -> Below {
        let young = self.young.remove(&rid);
        young.or_else(|| self.old.remove(&rid)).unwrap_or_default()
    }

    pub(crate) fn slice(&mut self, slice: &Slice) {
        self.below(slice.rid)
            .parts
            .add(of_slice(slice), slice.self_ns);
    }

    /// A block request: the requests that the device completed since it was queued were ahead of it.
    pub(crate) fn device(&mut self, request: &Request) {
        let bio = request.bios.first();
        let owner = bio
            .and_then(|bio| bio.cause_pid)
            .or(request.pid)
            .unwrap_or(0);
        let comm = key_of(request.comm);
        if self.names.len() < MAX_NAMES {
            self.names
                .entry(comm)
                .or_insert_with(|| request.comm.to_owned());
        }
        let device = key_of(request.device);
        if self.devices.len() >= MAX_DEVICES && !self.devices.contains_key(&device) {
            return;
        }
        let done = self.devices.entry(device).or_default();
        let awaited = bio.and_then(|bio| Some((bio.cause_pid?, bio.submit_rid?)));
        let mut most: Option<(i64, Ahead)> = None;
        if let (Some((pid, rid)), Some(queued)) = (awaited, request.queued_at_ns) {
            let mut ahead: HashMap<(i32, u64), u32> = HashMap::new();
            let since = done.iter().rev().take_while(|done| done.at_ns > queued);
            for done in since.filter(|done| done.who.0 != pid) {
                *ahead.entry(done.who).or_default() += 1;
            }
            let largest = ahead.into_iter().max_by_key(|(who, count)| (*count, *who));
            most = largest.map(|largest| (rid, largest));
        }
        if done.len() >= MAX_DONE {
            done.pop_front();
        }
        done.push_back(Done {
            at_ns: request.completed_at_ns,
            who: (owner, comm),
        });
        if let Some((rid, ahead)) = most {
            let below = self.below(rid);
            below.ahead = more(below.ahead, Some(ahead));
        }
    }

    fn add(&mut self, tid: i32, piece: Piece) {
        if self.pieces >= MAX_PIECES {
            self.threads.clear();
            self.pieces = 0;
        }
        let thread = self.threads.entry(tid).or_default();
        if thread.pieces.len() >= MAX_OF_THREAD
            && let Some(old) = thread.pieces.pop_front()
        {
            thread.forgotten_ns = thread.forgotten_ns.max(old.until_ns);
            self.pieces -= 1;
        }
        // Mostly the last one.
        let place = thread
            .pieces
            .iter()
            .rposition(|old| old.from_ns <= piece.from_ns);
        thread
            .pieces
            .insert(place.map_or(0, |place| place + 1), piece);
        self.pieces += 1;
    }

    pub(crate) fn call(&mut self, call: &Call) {
        let below = self.take_below(call.rid);
        // Without slices all of it is of the call.
        let (parts, ahead) = (below.settled(call.dur_ns, Part::Call), below.ahead);
        self.add(
            call.tid,
            Piece {
                from_ns: call.ts_ns,
                until_ns: call.ended_at_ns(),
                parts,
                ahead,
                example: Some(Example::of(call)),
            },
        );
    }

    pub(crate) fn fault(&mut self, fault: &Fault) {
        let below = self.take_below(fault.rid);
        let (parts, ahead) = (below.settled(fault.dur_ns, Part::PageCache), below.ahead);
        let until_ns = fault.ts_ns.saturating_add(fault.dur_ns);
        self.add(
            fault.tid,
            Piece {
                from_ns: fault.ts_ns,
                until_ns,
                parts,
                ahead,
                example: None,
            },
        );
    }

    /// A wait in the course of a request.
    pub(crate) fn wait_of(&mut self, rid: i64, dur_ns: i64, reason: &str) {
        let part = of_wait(reason);
        let below = self.below(rid);
        if part != Part::Cpu && below.longest.is_none_or(|(longest, _)| longest < dur_ns) {
            below.longest = Some((dur_ns, part));
        }
    }

    pub(crate) fn wait(
        &mut self,
        tid: i32,
        ts_ns: i64,
        dur_ns: i64,
        run_queue_ns: i64,
        reason: &str,
    ) {
        let mut parts = Parts::default();
        parts.add(Part::Cpu, run_queue_ns.min(dur_ns));
        parts.add(of_wait(reason), dur_ns - run_queue_ns);
        let until_ns = ts_ns.saturating_add(dur_ns);
        self.add(
            tid,
            Piece {
                from_ns: ts_ns,
                until_ns,
                parts,
                ahead: None,
                example: None,
            },
        );
    }

    pub(crate) fn span(&mut self, span: &Span) {
        let (Some(pid), Some(tid)) = (span.pid, span.tid) else {
            return;
        };
        if span.dur_ns <= 0 || self.pending.len() >= MAX_PENDING {
            return;
        }
        self.made += 1;
        let short = |text: &str| query_text::beginning(text, 200).to_owned();
        let pending = Pending {
            trace: key_of(span.trace),
            id: key_of(span.id),
            parent: span.parent.map(key_of),
            from_ns: span.ts_ns,
            until_ns: span.ended_at_ns(),
            pid,
            tid,
            service: short(span.service),
            name: short(span.name),
            kind: short(span.kind),
        };
        self.pending.insert((pending.until_ns, self.made), pending);
    }

    /// Adds up the spans that ended before a time, when all calls that ended before it have come.
    pub(crate) fn ended_before(&mut self, at_ns: i64, to: &mut impl FnMut(&SpanTime)) {
        while self
            .pending
            .first_key_value()
            .is_some_and(|((until_ns, _), _)| *until_ns < at_ns)
        {
            let Some((_, span)) = self.pending.pop_first() else {
                return;
            };
            let mut elsewhere = std::mem::take(&mut self.elsewhere);
            let own = elsewhere.remove(&(span.trace, span.id));
            if let Some(time) = self.time(&span, own.as_ref()) {
                elsewhere::pass_on(&span, &time, &mut elsewhere);
                to(&time);
            }
            self.elsewhere = elsewhere;
            let recent = &mut self.threads.entry(span.tid).or_default().recent;
            if recent.len() >= MAX_RECENT {
                recent.pop_front();
            }
            recent.push_back(span);
        }
    }

    /// Adds up the rest.
    pub(crate) fn rest(&self, to: &mut impl FnMut(&SpanTime)) {
        let mut elsewhere = self.elsewhere.clone();
        for span in self.pending.values() {
            let own = elsewhere.remove(&(span.trace, span.id));
            if let Some(time) = self.time(span, own.as_ref()) {
                elsewhere::pass_on(span, &time, &mut elsewhere);
                to(&time);
            }
        }
    }

    fn time(&self, span: &Pending, elsewhere: Option<&Elsewhere>) -> Option<SpanTime> {
        let thread = self.threads.get(&span.tid)?;
        if thread.forgotten_ns > span.from_ns {
            return None;
        }
        // Of spans that take turns on a thread it is not known whose its calls are.
        let strange = |other: &Pending| {
            other.tid == span.tid && span.overlaps(other) && !span.is_related(other)
        };
        let later = self
            .pending
            .range((span.until_ns, 0)..)
            .map(|(_, other)| other);
        if thread.recent.iter().any(strange) || later.take(MAX_RECENT).any(strange) {
            return None;
        }
        let mut time = SpanTime {
            service: span.service.clone(),
            name: span.name.clone(),
            kind: span.kind.clone(),
            pid: span.pid,
            dur_ns: span.until_ns - span.from_ns,
            parts: Parts::default(),
            elsewhere: Parts::default(),
            within: None,
            causes: Vec::new(),
            ahead: None,
            longest: None,
        };
        let mut reached = span.from_ns;
        for piece in &thread.pieces {
            // One that began in another one is a part of it.
            if piece.until_ns <= reached
                || piece.from_ns >= span.until_ns
                || piece.from_ns < reached
            {
                if piece.from_ns >= span.until_ns {
                    break;
                }
                continue;
            }
            if piece.until_ns > span.until_ns {
                // It goes on: which part of it is in the span is not known.
                time.parts.add(Part::Sleep, span.until_ns - piece.from_ns);
                break;
            }
            reached = piece.until_ns;
            time.parts.add_all(&piece.parts);
            time.ahead = more(time.ahead, piece.ahead);
            if let Some(example) = &piece.example
                && time
                    .longest
                    .as_ref()
                    .is_none_or(|longest| longest.dur_ns < example.dur_ns)
            {
                time.longest = Some(example.clone());
            }
        }
        let outside = time.dur_ns - time.parts.sum();
        time.parts.add(Part::Program, outside);
        if let Some(elsewhere) = elsewhere {
            elsewhere.replace_wait(&mut time);
        }
        Some(time)
    }
}

fn more(one: Option<Ahead>, other: Option<Ahead>) -> Option<Ahead> {
    let count = |ahead: &Option<Ahead>| ahead.map_or(0, |(_, count)| count);
    if count(&other) > count(&one) {
        other
    } else {
        one
    }
}

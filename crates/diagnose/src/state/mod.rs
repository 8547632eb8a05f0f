//! Known properties of files, descriptors, and processes at each call: stored once for all rules.

pub mod descriptors;
pub mod files;
pub mod intervals;
mod pages;
mod syncs;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use crate::call::{Call, FileId};
use crate::layers::Below;
use descriptors::{Description, DescriptionId, Descriptors};
use files::{FileState, Files};
pub use syncs::Synced;

/// Most names of threads that are remembered of a process.
const MAX_THREAD_NAMES: usize = 1024;

/// A process, as table `processes` has it.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub ppid: Option<i32>,
    pub comm: String,
    /// Name of the executable.
    pub program: String,
    /// A hash of executable and command line; `None` when neither is known.
    pub command: Option<u64>,
    pub started_at_ns: i64,
    /// When it ended; `None` when it had not.
    pub ended_at_ns: Option<i64>,
    /// Its exit status, or 128 and the signal that ended it; `None` when that is not known.
    pub exit_status: Option<i32>,
}

/// The state before a call takes effect.
#[derive(Debug, Default)]
pub struct State {
    pub files: Files,
    pub descriptors: Descriptors,
    processes: HashMap<i32, Process>,
    /// Names of the other threads of processes.
    thread_names: HashMap<i32, BTreeSet<String>>,
    /// Processes that begin, by the time at which they do.
    starts: BTreeMap<i64, Vec<(i32, i32)>>,
    /// The first of these times.
    next_start: Option<i64>,
    first_at_ns: Option<i64>,
    last_at_ns: i64,
    lost: bool,
}

impl State {
    pub fn process(&self, pid: i32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// Whether a thread of the process besides the first one has this name.
    pub(crate) fn has_thread_named(&self, pid: i32, comm: &str) -> bool {
        let names = self.thread_names.get(&pid);
        names.is_some_and(|names| names.contains(comm))
    }

    /// Whether one of two processes is the other's parent, or both have the same parent.
    pub fn are_family(&self, a: i32, b: i32) -> bool {
        let parent = |pid: i32| self.process(pid).and_then(|process| process.ppid);
        match (parent(a), parent(b)) {
            (of_a, of_b) if of_a == Some(b) || of_b == Some(a) => true,
            (Some(of_a), of_b) => of_b == Some(of_a),
            _ => false,
        }
    }

    /// From the first call's entry to the last one's return, nanoseconds.
    pub fn span_ns(&self) -> i64 {
        self.last_at_ns
            .saturating_sub(self.first_at_ns.unwrap_or(self.last_at_ns))
    }

    /// From the first call's entry to the last one's return, or the end of the last process,
    /// nanoseconds.
    pub(crate) fn run_ns(&self) -> i64 {
        let ends = self.processes.values().filter_map(|p| p.ended_at_ns);
        let last = ends.fold(self.last_at_ns, i64::max);
        last.saturating_sub(self.first_at_ns.unwrap_or(last))
    }

    /// The return of the last call so far, nanoseconds.
    pub fn now_ns(&self) -> i64 {
        self.last_at_ns
    }

    /// Whether calls were lost or left out by filters, so that the absence of a
    /// call proves nothing.
    pub fn has_gaps(&self) -> bool {
        self.lost
    }

    pub(crate) fn set_gaps(&mut self, gaps: bool) {
        self.lost = gaps;
    }

    pub(crate) fn add_thread(&mut self, pid: i32, comm: &str) {
        let names = self.thread_names.entry(pid).or_default();
        if names.len() < MAX_THREAD_NAMES && !names.contains(comm) {
            names.insert(comm.to_owned());
        }
    }

    pub(crate) fn add_process(&mut self, pid: i32, process: Process) {
        if let Some(ppid) = process.ppid {
            self.starts
                .entry(process.started_at_ns)
                .or_default()
                .push((ppid, pid));
            let start = process.started_at_ns;
            self.next_start = Some(self.next_start.map_or(start, |next| next.min(start)));
        }
        self.processes.insert(pid, process);
    }

    /// Moves on to a call; returns the description that it works on.
    pub(crate) fn arrive(&mut self, call: &Call) -> Option<DescriptionId> {
        let end = call.ended_at_ns();
        if self.first_at_ns.is_none_or(|first| call.ts_ns < first) {
            self.first_at_ns = Some(call.ts_ns);
        }
        self.last_at_ns = self.last_at_ns.max(end);
        if self.next_start.is_some_and(|start| start <= end) {
            self.begin_processes(end);
        }
        self.descriptors.of_call(call)
    }

    fn begin_processes(&mut self, end: i64) {
        while let Some(start) = self.starts.first_entry().filter(|s| *s.key() <= end) {
            for (parent, child) in start.remove() {
                self.descriptors.fork(parent, child);
            }
        }
        self.next_start = self.starts.keys().next().copied();
    }

    pub(crate) fn apply(&mut self, call: &Call, description: Option<DescriptionId>) {
        let open = description.and_then(|id| self.descriptors.get(id));
        self.files.apply(call, Synced::of(call, open));
        self.descriptors.apply(call, description);
    }
}

/// A call's surroundings, before it has its effect.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Everything that is known.
    pub state: &'a State,
    /// The description that the call works on.
    pub description: Option<DescriptionId>,
    /// Events below the call.
    pub below: Below,
    /// The bytes whose write-back the call awaited.
    pub synced: Option<Synced>,
    /// Looked up once for all rules.
    open: Option<&'a Description>,
    file: Option<&'a FileState>,
    id: Option<FileId>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        state: &'a State,
        call: &Call,
        description: Option<DescriptionId>,
        below: Below,
    ) -> Self {
        let open = description.and_then(|id| state.descriptors.get(id));
        Self {
            state,
            description,
            below,
            synced: Synced::of(call, open),
            open,
            file: call.file.and_then(|id| state.files.get(id)),
            id: call.file,
        }
    }

    /// The description that the call works on.
    pub fn open(&self) -> Option<&'a Description> {
        self.open
    }

    /// The file that the call works on.
    pub fn file(&self, call: &Call) -> Option<&'a FileState> {
        debug_assert_eq!(call.file, self.id);
        self.file
    }
}

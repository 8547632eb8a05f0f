//! Calls of library functions by an object that is preloaded into the command and what it starts
//! (`crates/preload`). Here is its other side: makes the files, reads what the processes write, and
//! makes records of it as the programs for uprobes write them.
//!
//! The processes write a call when it has ended. That a system call was made in one is known because
//! the memory shows the calls in progress, and because it is read after the rings of the kernel: what
//! a system call there was made in has begun before.

mod files;
mod region;
mod stubs;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_model::abi::{
    CpuStats, LIBRARY_CALL_BEGUN, LIBRARY_CALL_NONE, LIBRARY_CALL_PENDING, LOST_LIBRARY_CALL,
    LibraryCallRecord, MAX_FUNCTIONS, MAX_LIBRARY_DEPTH, NO_ARG, POOL_PROCESSES,
    RECORD_LIBRARY_CALL, REGION_COUNT, REGION_READY, REGION_RECORD, REGION_STOP, RegionPool,
    ShedKey, ShedValue,
};
use fathom_model::meta::Hook;
use fathom_model::raw::{RawChunk, Ring};
use fathom_preload::Stub;

use super::budget::{Budget, SECOND_NS, write_count};
use super::{record, refused};
use crate::Detail;
use crate::framing::append_framed;
use crate::hooks::LIBRARY;
use crate::preload_error::PreloadError;
use crate::stats::Losses;
use crate::wanted_functions::{Wanted, WantedFunction};
pub use files::PreloadFiles;
use region::{Ended, InProgress, Region};
use tasks::{End, Tasks};

/// Functions to record by preload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preload {
    wanted: Wanted,
    stubs: Vec<Stub>,
    /// Calls have files: those behind their descriptors.
    with_files: bool,
}

impl Preload {
    /// Whether and how the object can stand for the functions. `by_path`: filters judge paths, of
    /// which library calls show none then.
    ///
    /// # Errors
    /// [`PreloadError`].
    pub fn new(wanted: Wanted, detail: Detail, by_path: bool) -> Result<Self, PreloadError> {
        let mut stubs = stubs::stubs(&wanted)?;
        if detail != Detail::Full {
            stubs.iter_mut().for_each(|stub| stub.path = NO_ARG as u8);
        }
        // Says what a name or their number is refused for before anything is made.
        fathom_preload::object(&stubs, Path::new("/"))?;
        Ok(Self {
            wanted,
            stubs,
            with_files: detail != Detail::Raw && !by_path,
        })
    }

    /// Whether nothing is recorded by preload.
    pub fn is_empty(&self) -> bool {
        self.stubs.is_empty()
    }
}

/// A function that a process has found.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// Its number in the recording.
    Numbered(u16),
    NotAsked,
    /// All numbers are taken: its calls are counted as unseen.
    NoNumber,
}

impl Known {
    fn number(self) -> Option<u16> {
        match self {
            Known::Numbered(number) => Some(number),
            Known::NotAsked | Known::NoNumber => None,
        }
    }
}

/// A process whose memory is read.
struct Process {
    region: Region,
    /// Its functions.
    functions: Vec<Known>,
    /// Calls of them that were only counted, as they were read last; `None`: they are recorded.
    counted: Vec<Option<u64>>,
    /// When they were read.
    counted_ns: u64,
    /// When calls began that the records said to be in progress, by thread and depth.
    announced: HashMap<(u32, u8), u64>,
    /// The same of the last ones that ended.
    ended: HashMap<(u32, u8), u64>,
}

/// The processes of a recording that have loaded the object.
pub(crate) struct Preloaded {
    preload: Preload,
    files: Arc<PreloadFiles>,
    tasks: Tasks,
    ends: Vec<End>,
    /// Memory is scarce: calls are counted.
    scarce: bool,
    processes: BTreeMap<u32, Process>,
    /// Functions in libraries that were found, by number of the name and path.
    numbers: HashMap<(u32, Vec<u8>), Known>,
    functions: u16,
    budget: Budget,
    /// Elements of the list whose functions were found.
    found: BTreeSet<String>,
    /// Functions of each library.
    libraries: BTreeMap<PathBuf, u64>,
    /// Records of functions, and of calls by CPU.
    records: Vec<u8>,
    calls: BTreeMap<u32, Vec<u8>>,
    cpus: u32,
    /// Calls with a record; of processes that are over: those without.
    written: u64,
    counted: u64,
    unseen: u64,
    lost: HashMap<u32, ShedValue>,
}

impl Preloaded {
    /// `calls_per_second`: of one function, recorded at most. `uid`: the user of the command, if that
    /// is another one.
    pub(crate) fn new(
        preload: Preload,
        calls_per_second: Option<u64>,
        uid: Option<u32>,
        cpus: usize,
    ) -> Result<Self, PreloadError> {
        Ok(Self {
            files: Arc::new(PreloadFiles::new(&preload.stubs, uid)?),
            preload,
            tasks: Tasks::default(),
            ends: Vec::new(),
            scarce: false,
            processes: BTreeMap::new(),
            numbers: HashMap::new(),
            functions: 0,
            budget: Budget::new(calls_per_second, crate::monotonic_ns()),
            found: BTreeSet::new(),
            libraries: BTreeMap::new(),
            records: Vec::new(),
            calls: BTreeMap::new(),
            cpus: cpus as u32,
            written: 0,
            counted: 0,
            unseen: 0,
            lost: HashMap::new(),
        })
    }

    pub(crate) fn files(&self) -> Arc<PreloadFiles> {
        Arc::clone(&self.files)
    }

    /// From now on the processes write nothing.
    pub(crate) fn stop(&self) {
        self.order(REGION_STOP);
    }

    fn order(&self, order: u32) {
        let bytes = u64::from(order).to_ne_bytes();
        self.files.write(RegionPool::ORDER_AT as u64, &bytes);
    }

    /// Takes in what the rings of the kernel held, just before [`Preloaded::drain`].
    pub(crate) fn follow(&mut self, chunks: &[RawChunk]) {
        let ends = self.tasks.follow(chunks);
        self.ends.extend(ends);
    }

    /// Takes what the processes have written. `is_over`: nothing will be written any more.
    pub(crate) fn drain(&mut self, is_over: bool, out: &mut Vec<RawChunk>) {
        let ends = std::mem::take(&mut self.ends);
        let scarce = !self.files.has_room();
        if scarce != self.scarce && !is_over {
            self.scarce = scarce;
            self.order(if scarce { REGION_COUNT } else { REGION_RECORD });
        }
        self.look_for_processes();
        self.tasks.judge();
        let ending: HashSet<u32> = ends.iter().filter_map(End::process).collect();
        let now_ns = crate::monotonic_ns();
        let places: Vec<u32> = self.processes.keys().copied().collect();
        for place in places {
            let Some(mut process) = self.processes.remove(&place) else {
                continue;
            };
            let pid = process.region.pid;
            // Of another program that the process executed since.
            let over = ends
                .iter()
                .find_map(|end| end.of_memory(pid, process.region.registered_ns));
            let nothing_more = is_over || over.is_some();
            let left = self.take(&mut process, nothing_more);
            let exits = ends.iter().filter_map(|end| end.of_thread(pid));
            let exits: HashMap<u32, u64> = exits.collect();
            for call in left.iter().rev() {
                // Before the record of the thread's end.
                let at_ns = over
                    .or(exits.get(&call.tid).copied())
                    .map(|at| at.saturating_sub(1));
                let at_ns = at_ns.or(is_over.then_some(now_ns));
                if let Some(at_ns) = at_ns {
                    self.pending(&mut process, call, at_ns);
                }
            }
            if !exits.is_empty() && !nothing_more {
                let tids: Vec<u32> = exits.into_keys().collect();
                process.region.forget_threads(&self.files, &tids);
                process.announced.retain(|(tid, _), _| !tids.contains(tid));
                process.ended.retain(|(tid, _), _| !tids.contains(tid));
            }
            if nothing_more {
                self.close(process);
            } else {
                self.processes.insert(place, process);
            }
        }
        for pid in ending {
            self.tasks.forget(pid);
        }
        self.look_at_budget(is_over);
        if !self.records.is_empty() {
            out.push(chunk(0, std::mem::take(&mut self.records)));
        }
        let calls = std::mem::take(&mut self.calls);
        out.extend(calls.into_iter().map(|(cpu, bytes)| chunk(cpu, bytes)));
    }

    /// Finds processes that have loaded the object since.
    fn look_for_processes(&mut self) {
        let mut bytes = vec![0; RegionPool::SIZE];
        let read = self.files.read(0, &mut bytes);
        let Some(pool) = read.and_then(|()| RegionPool::parse(&bytes)) else {
            return;
        };
        for (place, state) in (0..POOL_PROCESSES).zip(pool.states) {
            if state != u64::from(REGION_READY) || self.processes.contains_key(&place) {
                continue;
            }
            // It belongs to a process that is recorded; the record of that came before.
            let region = Region::open(&self.files, place);
            if let Some(region) = region.filter(|region| self.tasks.has(region.pid)) {
                self.tasks.loaded(region.pid, region.registered_ns);
                let process = Process {
                    functions: Vec::new(),
                    counted: Vec::new(),
                    counted_ns: region.registered_ns,
                    announced: HashMap::new(),
                    ended: HashMap::new(),
                    region,
                };
                self.processes.insert(place, process);
            }
        }
    }

    /// Makes records of what a process has written; returns the calls that are left in progress.
    fn take(&mut self, process: &mut Process, is_over: bool) -> Vec<InProgress> {
        let files = Arc::clone(&self.files);
        let in_progress = process.region.in_progress(&files);
        let ended = process.region.ended(&files, is_over);
        let now_ns = crate::monotonic_ns();
        for (stub, path) in process.region.definitions(&files, process.functions.len()) {
            let known = self.known(stub, path, process.region.registered_ns);
            process.functions.push(known);
        }
        self.take_counts(process, is_over, now_ns);
        let mut left = Vec::new();
        for call in in_progress {
            let (place, began_ns) = ((call.tid, call.depth), call.frame.began_ns);
            if process.ended.get(&place) == Some(&began_ns) {
                continue;
            }
            if process.announced.insert(place, began_ns) != Some(began_ns) {
                let function = process.functions.get(call.frame.definition as usize);
                if let Some(function) = function.and_then(|known| known.number()) {
                    let mut begun =
                        begun(process, call.tid, call.depth, (began_ns, call.parent_ns));
                    (begun.function, begun.fd) = (function, call.frame.fd);
                    append_framed(self.calls.entry(0).or_default(), &begun.to_bytes());
                }
            }
            left.push(call);
        }
        let mut gone: HashSet<(u32, u8)> = process.announced.keys().copied().collect();
        for call in &left {
            gone.remove(&(call.tid, call.depth));
        }
        for call in ended {
            let place = (call.slot.tid, call.slot.depth);
            if !self.write(process, &call, now_ns) {
                process.region.damaged();
                continue;
            }
            gone.remove(&place);
            left.retain(|l| {
                (l.tid, l.depth, l.frame.began_ns) != (place.0, place.1, call.slot.began_ns)
            });
        }
        // Their records found no room.
        for place in gone {
            process.announced.remove(&place);
            let mut none = begun(process, place.0, place.1, (now_ns, 0));
            none.flags = LIBRARY_CALL_NONE as u8;
            append_framed(self.calls.entry(0).or_default(), &none.to_bytes());
        }
        left
    }

    /// Writes the record of a call that has ended, and one before if it was not said to be in
    /// progress. False: the process has written what cannot be.
    fn write(&mut self, process: &mut Process, call: &Ended, now_ns: u64) -> bool {
        let slot = &call.slot;
        let began_ns = slot.began_ns;
        let ended_ns = began_ns.checked_add(slot.dur_ns);
        let possible = process.region.is_time(began_ns, now_ns)
            && ended_ns.is_some_and(|at| process.region.is_time(at, now_ns))
            && (slot.parent_ns == 0 || slot.parent_ns <= began_ns)
            && slot.tid != 0
            && u32::from(slot.depth) < MAX_LIBRARY_DEPTH
            && region::flags_are_known(slot.flags);
        let function = process.functions.get(usize::from(slot.definition));
        let (true, Some(function)) = (possible, function) else {
            return false;
        };
        let place = (slot.tid, slot.depth);
        let announced = process.announced.remove(&place) == Some(began_ns);
        process.ended.insert(place, began_ns);
        let function = match *function {
            Known::Numbered(function) => function,
            Known::NotAsked => return true,
            Known::NoNumber => {
                self.unseen += 1;
                return true;
            }
        };
        let cpu = u32::from(slot.cpu);
        let cpu = if cpu < self.cpus { cpu } else { 0 };
        let bytes = self.calls.entry(cpu).or_default();
        let mut begun = begun(process, slot.tid, slot.depth, (began_ns, slot.parent_ns));
        (begun.function, begun.fd) = (function, slot.fd);
        if !announced {
            append_framed(bytes, &begun.to_bytes());
        }
        let record = LibraryCallRecord {
            flags: slot.flags,
            dur_ns: slot.dur_ns,
            path_len: call.path.len() as u16,
            args: slot.args,
            ret: slot.ret,
            ..begun
        };
        append_framed(bytes, &[&record.to_bytes()[..], &call.path].concat());
        self.written += 1;
        self.budget.add(function, 1);
        true
    }

    /// From now on the processes only count calls of functions that exceed the budget.
    fn look_at_budget(&mut self, is_over: bool) {
        let exceeded = self.budget.look(crate::monotonic_ns());
        if is_over || exceeded.is_empty() {
            return;
        }
        let mut processes = std::mem::take(&mut self.processes);
        for process in processes.values_mut() {
            self.count_only(process);
        }
        self.processes = processes;
        let now_ns = crate::monotonic_ns();
        for exceeded in exceeded {
            exceeded.write(now_ns, &mut self.records);
        }
    }

    /// Asks a process to count the functions that exceed the budget.
    fn count_only(&self, process: &mut Process) {
        process.counted.resize(process.functions.len(), None);
        let functions = process.functions.iter().zip(&mut process.counted);
        for (definition, (function, counted)) in (0..).zip(functions) {
            let number = function.number();
            let is_counted = number.is_some_and(|number| self.budget.is_counted(number));
            if is_counted && counted.is_none() {
                *counted = Some(0);
                process.region.count_only(&self.files, definition);
            }
        }
    }

    /// Takes the calls that a process has only counted: once per second, and when it is over.
    fn take_counts(&mut self, process: &mut Process, is_over: bool, now_ns: u64) {
        self.count_only(process);
        let due = is_over || now_ns.saturating_sub(process.counted_ns) >= SECOND_NS;
        if !due || process.counted.iter().all(Option::is_none) {
            return;
        }
        let read = process.region.counts(&self.files, process.counted.len());
        let time = (process.counted_ns, now_ns);
        process.counted_ns = now_ns;
        let functions = process.functions.iter().zip(&mut process.counted).zip(read);
        for ((function, counted), now) in functions {
            // A process may write anything there: what is less than before is nothing.
            let (Some(function), Some(before)) = (function.number(), counted) else {
                continue;
            };
            let count = now.saturating_sub(std::mem::replace(before, now));
            if count > 0 {
                write_count(function, process.region.pid, time, count, &mut self.records);
                self.counted = self.counted.saturating_add(count);
            }
        }
    }

    /// Writes the record of a call that has not returned.
    fn pending(&mut self, process: &mut Process, call: &InProgress, at_ns: u64) {
        let frame = &call.frame;
        process.announced.remove(&(call.tid, call.depth));
        let function = match process.functions.get(frame.definition as usize) {
            Some(Known::Numbered(number)) => *number,
            Some(Known::NoNumber) => {
                self.unseen += 1;
                return;
            }
            Some(Known::NotAsked) | None => return,
        };
        let begun = begun(
            process,
            call.tid,
            call.depth,
            (frame.began_ns, call.parent_ns),
        );
        let record = LibraryCallRecord {
            flags: LIBRARY_CALL_PENDING as u8,
            function,
            dur_ns: at_ns.saturating_sub(frame.began_ns),
            fd: frame.fd,
            args: frame.args,
            ..begun
        };
        append_framed(self.calls.entry(0).or_default(), &record.to_bytes());
        self.written += 1;
    }

    /// A function in the library at `path`; if it gets a number, there is a record for it then.
    fn known(&mut self, stub: u32, path: Vec<u8>, at_ns: u64) -> Known {
        if let Some(known) = self.numbers.get(&(stub, path.clone())) {
            return *known;
        }
        let known = match self.wanted(stub, &path) {
            None => Known::NotAsked,
            Some(_) if u32::from(self.functions) >= MAX_FUNCTIONS => Known::NoNumber,
            Some((wanted, path)) => {
                let number = self.functions;
                self.functions += 1;
                self.found.insert(wanted.asked.clone());
                let by_descriptor = self.preload.with_files;
                let record = record(number, &wanted.function, &path, (at_ns, by_descriptor));
                self.records.extend_from_slice(&record);
                *self.libraries.entry(path).or_default() += 1;
                Known::Numbered(number)
            }
        };
        // A process may invent paths.
        if self.numbers.len() < 4 * MAX_FUNCTIONS as usize {
            self.numbers.insert((stub, path), known);
        }
        known
    }

    /// The element of the list that asks for the function in the library; its path behind links, as the mappings
    /// of processes name it.
    fn wanted(&self, stub: u32, path: &[u8]) -> Option<(WantedFunction, PathBuf)> {
        let name = &self.preload.stubs.get(stub as usize)?.name;
        let path = Path::new(OsStr::from_bytes(path));
        let behind = match path.is_absolute() {
            true => path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            false => path.to_owned(),
        };
        let of = |path: &Path| {
            let mut of_library = self.preload.wanted.of_library(path);
            of_library
                .find(|wanted| wanted.function.name == *name)
                .cloned()
        };
        Some((of(&behind).or_else(|| of(path))?, behind))
    }

    /// The process is over, or the recording.
    fn close(&mut self, process: Process) {
        let region = &process.region;
        self.unseen = self.unseen.saturating_add(region.unseen(&self.files));
        let lost = region.lost(&self.files);
        if lost.count > 0 {
            self.lost
                .entry(region.pid)
                .or_insert(ShedValue::NOTHING)
                .add(&lost);
        }
        region.free(&self.files);
    }

    /// The calls that found no room, by process.
    fn losses(&self) -> HashMap<u32, ShedValue> {
        let mut losses = self.lost.clone();
        for process in self.processes.values() {
            let lost = process.region.lost(&self.files);
            if lost.count > 0 {
                losses
                    .entry(process.region.pid)
                    .or_insert(ShedValue::NOTHING)
                    .add(&lost);
            }
        }
        losses
    }

    /// Adds the counts so far to the kernel's counts.
    pub(crate) fn count(&self, stats: &mut CpuStats) {
        let unseen = self
            .processes
            .values()
            .map(|p| p.region.unseen(&self.files));
        stats.library_calls += self.written;
        stats.library_counted += self.counted;
        stats.library_unseen += unseen.fold(self.unseen, u64::saturating_add);
        stats.layers_lost += self.losses().values().map(|value| value.count).sum::<u64>();
    }

    /// Adds what found no room to what found none in the rings of the kernel.
    pub(crate) fn add_losses(&self, losses: &mut Losses) {
        for (pid, value) in self.losses() {
            losses.by_cpu.push((0, LOST_LIBRARY_CALL, value));
            let key = ShedKey {
                cpu: 0,
                syscall: LOST_LIBRARY_CALL,
                pid,
                file: 0,
            };
            losses.split.push((key, value));
        }
    }

    /// The libraries that were recorded, and the programs that were not and why, when the recording is over.
    pub(crate) fn hooks(&mut self) -> Vec<Hook> {
        let recorded = self.libraries.iter().map(|(path, functions)| Hook {
            name: format!("{LIBRARY}{}", path.display()),
            attached: true,
            note: match functions {
                1 => "1 function, by preload".to_owned(),
                n => format!("{n} functions, by preload"),
            },
            skipped: 0,
        });
        let mut hooks: Vec<Hook> = recorded.collect();
        let asked: BTreeSet<&String> = self.preload.wanted.0.iter().map(|w| &w.asked).collect();
        for asked in asked
            .into_iter()
            .filter(|asked| !self.found.contains(*asked))
        {
            let why = "no recorded program loaded a library with such functions when it was started, or \
                       called one later";
            hooks.push(refused(format!("{LIBRARY}{asked}"), why));
        }
        for (program, times) in self.tasks.without_object() {
            let times = match times {
                1 => String::new(),
                times => format!(", {times} times"),
            };
            hooks.push(Hook {
                name: format!("{LIBRARY}{program}"),
                attached: false,
                note: format!(
                    "library calls of this program are not recorded{times}: it did not load fathom's \
                     library, because it is statically linked, is a 32-bit program, is setuid, sees \
                     other files, or has an environment without LD_PRELOAD or a limit of its address \
                     space"
                ),
                skipped: 0,
            });
        }
        let without = self.files.read_number(RegionPool::WITHOUT_REGION_AT as u64);
        if let Some(without) = without.filter(|without| *without > 0) {
            let why = format!(
                "{without} processes found no memory free: {POOL_PROCESSES} at a time are recorded by \
                 preload"
            );
            hooks.push(refused(format!("{LIBRARY}(all)"), &why));
        }
        hooks
    }
}

impl End {
    /// The process that is over.
    fn process(&self) -> Option<u32> {
        match self {
            End::Process { pid, .. } => Some(*pid),
            _ => None,
        }
    }

    /// When the memory is gone that process `pid` had at `taken_ns`.
    fn of_memory(&self, pid: u32, taken_ns: u64) -> Option<u64> {
        match *self {
            End::Process { pid: of, at_ns } | End::Memory { pid: of, at_ns } => {
                (of == pid && at_ns > taken_ns).then_some(at_ns)
            }
            End::Thread { .. } => None,
        }
    }

    /// A thread of process `pid`, and when it ended.
    fn of_thread(&self, pid: u32) -> Option<(u32, u64)> {
        match *self {
            End::Thread {
                pid: of,
                tid,
                at_ns,
            } => (of == pid).then_some((tid, at_ns)),
            _ => None,
        }
    }
}

/// The record that says that a call is in progress.
fn begun(
    process: &Process,
    tid: u32,
    depth: u8,
    (began_ns, parent_ns): (u64, u64),
) -> LibraryCallRecord {
    LibraryCallRecord {
        kind: RECORD_LIBRARY_CALL as u8,
        flags: LIBRARY_CALL_BEGUN as u8,
        function: 0,
        tid,
        ts_ns: began_ns,
        dur_ns: 0,
        pid: process.region.pid,
        file: 0,
        fd: -1,
        depth,
        reserved: 0,
        path_len: 0,
        parent_ns,
        args: [0; 6],
        ret: 0,
    }
}

fn chunk(cpu: u32, bytes: Vec<u8>) -> RawChunk {
    RawChunk {
        cpu,
        ring: Ring::Wide,
        bytes,
    }
}

//! `cold-small-files`: a process waits for one small file or directory after the other.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::covered::Covered;
use crate::layers::Fault;
use crate::names::{common_directory, directory};
use crate::order::READAHEAD;
use crate::prelude::*;
use crate::state::files::FileState;

/// Files and directories that were waited for, from which on they count.
const MIN_FILES: usize = 100;
/// Share of its time that several workers would save the process: less is not worth writing them.
const MIN_SAVED: f64 = 0.1;
/// Requests on their way at a time, on average, from which on there is concurrency. One thread has
/// one at a time; four workers that also compute may have less than two on a fast device.
const MAX_DEPTH: f64 = 1.5;
/// A larger file is not small: most of the time goes into its data, which are read ahead.
const MAX_SIZE: i64 = 1 << 20;
/// Workers among which the files could be shared.
const WORKERS: i64 = 4;

static INFO: RuleInfo = RuleInfo {
    id: "cold-small-files",
    name: "Waiting for one small file after another",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Open, Stat, Access, Readlink, ReadDir, GetXattr, Read, Transfer],
    about_calls: false,
    what: "A process reads many files or directories that are not in memory, one by one. Each of \
           them takes a lookup, an inode read, and a data read from the device, and readahead does \
           not cross file boundaries. The device has one request at a time, although it could serve \
           many.",
    when: "The calls of a process (open, stat, getdents, readlink, read and its variants) and its \
           page faults on mapped files waited for the device in 100 or more different files of 1 MiB \
           or less, or directories, for so long that four workers would save a tenth or more of its \
           time in the recording (three quarters of the waits). Waits of several threads at once \
           count once. Only reads within the first 128 KiB of a file count; readahead is \
           responsible for the rest. While \
           its reads were in progress, the device had fewer than 1.5 of the recorded processes' \
           reads on average, with all pieces of one call counted once: one thread has 1, and \
           workers that also compute may stay below 2 on a fast device. The wait of a call is its \
           time off the CPU for I/O; in a recording without layer sched it is the duration of calls \
           that read from the device.",
    cost: "three quarters of the waits, as if four workers shared the files",
    advice: "Let several workers process the files: `xargs -P 4`, `rg` instead of grep -r, a pool \
           of threads. With one thread that reads files, request the data of the next ones while the \
           program works on one (posix_fadvise(POSIX_FADV_WILLNEED) on each after opening it); \
           directories and inodes cannot be requested ahead. Look at files in the order of their \
           inode numbers, which is close to their order on disk. Put files that are always read \
           together into an archive or a database.",
    not_when: "Not when the files are read only once and no user waits for the result.",
    bad: "for name in names:\n    with open(name) as f:\n        search(f.read())",
    good: "with ThreadPoolExecutor(4) as pool:\n    for text in pool.map(read_file, names):\n        search(text)",
    reference: "readahead(2); fts_open(3) and GNU find sort by inode for this reason",
};

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    first_at_ns: i64,
    last_at_ns: i64,
    files: HashSet<u64>,
    waits: u64,
    /// Waits of all threads together.
    waited_ns: i64,
    /// Calls that waited, on the clock, and of all threads together.
    waiting: Covered,
    waiting_ns: i64,
    /// The same by the calls that read from the device.
    reading: Covered,
    threads: Vec<i32>,
    /// The directory that all of them lie in.
    directory: Option<String>,
    examples: Examples,
    /// Time of its requests to devices, and time that others were on their way with them.
    requests_ns: i64,
    met_ns: i64,
}

/// Files of a process that are distinguished.
const MAX_FILES: usize = 1 << 16;
/// Threads of a process that are distinguished.
const MAX_THREADS: usize = 64;
/// Requests of a device that are remembered.
const RECENT: usize = 128;

/// A request that has completed.
#[derive(Debug)]
struct Done {
    pid: i32,
    rid: i64,
    queued_at_ns: i64,
    completed_at_ns: i64,
}

rule! {
    pub struct ColdSmallFiles {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.waits),
        devices: HashMap<u64, VecDeque<Done>>,
        /// Whether the recording has times off the CPU.
        waits: bool,
    }
}

/// A call or a page fault that waited.
struct Wait<'a> {
    key: u64,
    tid: i32,
    span: (i64, i64),
    waited_ns: i64,
    reads: bool,
    path: Option<&'a str>,
}

impl Process {
    /// Extends the time in which it is known to have lived.
    fn lives(&mut self, (from, to): (i64, i64)) {
        if self.last_at_ns == 0 {
            (self.first_at_ns, self.last_at_ns) = (from, to);
        }
        self.first_at_ns = self.first_at_ns.min(from);
        self.last_at_ns = self.last_at_ns.max(to);
    }

    fn add(&mut self, wait: &Wait) {
        let (from, to) = wait.span;
        self.waits += 1;
        if wait.waited_ns > 0 {
            self.waited_ns += wait.waited_ns;
            self.waiting_ns += to - from;
            self.waiting.add(from, to);
        }
        // Small files are read ahead as a whole, so all of it counts.
        if wait.reads {
            self.reading.add(from, to);
        }
        if self.threads.len() < MAX_THREADS && !self.threads.contains(&wait.tid) {
            self.threads.push(wait.tid);
        }
        if self.files.len() >= MAX_FILES || !self.files.insert(wait.key) {
            return;
        }
        let path = wait.path.filter(|path| path.starts_with('/'));
        let Some(own) = path.map(directory) else { return };
        let shared = self.directory.as_deref().map(|known| common_directory(known, own).len());
        match (&mut self.directory, shared) {
            (Some(known), Some(len)) => known.truncate(len),
            (none, _) => *none = Some(own.to_owned()),
        }
    }

    /// Its waits on the clock: waits of several threads at once count once.
    fn waited_clock_ns(&self, waits_known: bool) -> i64 {
        if !waits_known {
            return self.reading.ns();
        }
        let part = self.waiting.ns() as f64 / self.waiting_ns.max(1) as f64;
        (self.waited_ns as f64 * part.min(1.0)) as i64
    }

    fn page_fault(&mut self, fault: &Fault, path: Option<&str>) {
        let span = (fault.ts_ns, fault.ts_ns.saturating_add(fault.dur_ns.max(0)));
        self.lives(span);
        let (Some(file), true) = (fault.file, fault.major && fault.offset < READAHEAD) else { return };
        if self.comm.is_empty() {
            self.comm = Text::from(fault.comm);
        }
        self.examples.add_with(fault.dur_ns, || Example {
            rid: fault.rid,
            ts_ns: fault.ts_ns,
            dur_ns: fault.dur_ns,
            tid: fault.tid,
            syscall: "page_fault".into(),
            path: path.map(Text::from),
            offset: Some(fault.offset),
            ret: None,
        });
        self.add(&Wait {
            key: file.0.unsigned_abs(),
            tid: fault.tid,
            span,
            waited_ns: fault.dur_ns.max(0),
            reads: fault.read_bytes > 0,
            path,
        });
    }
}

/// Whether a file or directory may be a small one.
fn is_small(file: Option<&FileState>) -> bool {
    file.is_none_or(|file| file.is_directory() || file.size.is_none_or(|size| size <= MAX_SIZE))
}

impl Rule for ColdSmallFiles {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device, Layer::Fault]
    }

    fn row(&mut self, row: &Row, state: &State) {
        if let Row::Fault(fault) = row {
            let file = fault.file.and_then(|id| state.files.get(id));
            if is_small(file) {
                let process = self.processes.entry(fault.pid);
                process.page_fault(fault, file.map(FileState::name));
            }
            return;
        }
        let Row::Device(request) = row else { return };
        if request.op != "read" {
            return;
        }
        // Requests of unrecorded processes do not count.
        let bio = request.bios.iter().find(|bio| bio.cause_pid.is_some());
        let cause = bio.and_then(|bio| Some((bio.cause_pid?, bio.submit_rid.or(bio.rid)?)));
        let (Some((pid, rid)), Some(queued_at_ns)) = (cause, request.queued_at_ns) else { return };
        let completed_at_ns = request.completed_at_ns;
        let done = self.devices.entry(key_of(request.device)).or_default();
        // Requests come as they are completed: each pair is met once, by its later one.
        let mut met_ns = 0;
        let overlapping = done.iter().rev().take_while(|other| other.completed_at_ns > queued_at_ns);
        for other in overlapping.filter(|other| other.rid != rid) {
            let both = other.completed_at_ns.min(completed_at_ns) - other.queued_at_ns.max(queued_at_ns);
            met_ns += both.max(0);
            if let Some(process) = self.processes.get_mut(&other.pid) {
                process.met_ns += both.max(0);
            }
        }
        let process = self.processes.entry(pid);
        process.requests_ns += (completed_at_ns - queued_at_ns).max(0);
        process.met_ns += met_ns;
        if done.len() >= RECENT {
            done.pop_front();
        }
        done.push_back(Done {
            pid,
            rid,
            queued_at_ns,
            completed_at_ns,
        });
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.asynchronous {
            return;
        }
        let below = &context.below;
        self.waits |= below.off_cpu_ns > 0;
        let process = self.processes.entry(call.pid);
        process.lives((call.ts_ns, call.ended_at_ns()));
        let moves = call.kind.is_data();
        let behind = moves && call.offset.is_some_and(|offset| offset >= READAHEAD);
        if below.io_wait_ns == 0 && below.read_bytes == 0 || behind {
            return;
        }
        // Files that are made are no cold ones, nor are pipes and devices.
        let file = context.file(call);
        let made = call.kind == Kind::Open && call.has_flag("O_CREAT");
        let fit = is_small(file) && file.is_none_or(|f| f.is_directory() || !moves || f.is_regular());
        let key = call.file.map(|id| id.0.unsigned_abs()).or_else(|| call.path_key());
        let (Some(key), true, false) = (key, fit, made) else { return };
        call.name_thread(&mut process.comm);
        process.examples.add(call);
        process.add(&Wait {
            key,
            tid: call.tid,
            span: (call.ts_ns, call.ended_at_ns()),
            waited_ns: below.io_wait_ns,
            reads: below.read_bytes > 0,
            path: call.path,
        });
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let waited = process.waited_clock_ns(self.waits);
            let threads = i64::try_from(process.threads.len().max(1)).unwrap_or(i64::MAX);
            // A process may have begun before its first such call.
            let known = run.state.process(*pid);
            let ended = known.and_then(|p| p.ended_at_ns).unwrap_or(process.last_at_ns);
            let life = (ended.max(process.last_at_ns) - process.first_at_ns).max(1);
            let part = waited as f64 / life as f64;
            let depth = 1.0 + process.met_ns as f64 / process.requests_ns.max(1) as f64;
            let cost = waited / WORKERS * (WORKERS - 1);
            let many = process.files.len() >= MIN_FILES && process.requests_ns > 0;
            if !many || part * (WORKERS - 1) as f64 / (WORKERS as f64) < MIN_SAVED || depth >= MAX_DEPTH || !run.matters(cost) {
                continue;
            }
            let files = i64::try_from(process.files.len()).unwrap_or(i64::MAX);
            let place = process.directory.as_deref().filter(|path| *path != "/");
            let below = place.map_or(String::new(), |path| format!(" below {path}"));
            let comm = run.process_name(*pid, &process.comm);
            let subject = Subject::process(*pid, &comm);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} waits for the device in {} files and directories{below}, one after another: {} of its time",
                    comm,
                    units::count(files),
                    units::percent(part.min(1.0)),
                ),
                subject: match place {
                    Some(path) => subject.with_path(path),
                    None => subject,
                },
                evidence: vec![
                    number("files", files),
                    number("waiting_calls", i64::try_from(process.waits).unwrap_or(i64::MAX)),
                    number("waited_ns", waited),
                    evidence("share_of_time", part),
                    evidence("mean_depth", depth),
                    number("threads", threads),
                ],
                examples: process.examples.list(),
                query: calls!("pid = {pid} AND rid IN (SELECT submit_rid FROM bios JOIN block USING (block_id) WHERE op = 'read')"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Goes through so many files, each of which is waited for, and works in between.
    fn search(s: &mut Scenario, files: i64, wait_ns: i64, work_us: i64) {
        for i in 0..files {
            let path = format!("/src/{}/{i}.c", i % 7);
            let fd = s.open_existing(&path, "O_RDONLY", 8000);
            s.missed(8192, wait_ns);
            s.read(fd, 8000);
            s.close(fd);
            s.wait_us(work_us);
        }
    }

    #[test]
    fn fires_on_a_search_through_cold_files() {
        let mut s = Scenario::new();
        search(&mut s, 300, 400_000, 100);
        let found = fires("cold-small-files", s);
        assert_eq!(found[0].evidence[0].value, 300.0);
        assert_eq!(found[0].subject.path.as_deref(), Some("/src"));
        // Three quarters of 300 times the wait and the call.
        let cost = found[0].cost_ns.unwrap();
        assert!((90_000_000..91_000_000).contains(&cost), "{cost}");
    }

    #[test]
    fn readahead_of_the_file_itself_is_a_wait_too() {
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/src/{i}.c"), "O_RDONLY", 8000);
            s.missed_ahead(8192, 400_000);
            s.read(fd, 8000);
            s.close(fd);
        }
        fires("cold-small-files", s);
    }

    #[test]
    fn requests_of_others_are_no_concurrency() {
        // Their requests make a device busy, but are no help to this process.
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/src/{i}.c"), "O_RDONLY", 8000);
            s.others_ahead(4, 900, "backup", 100_000);
            s.missed(8192, 400_000);
            s.read(fd, 8000);
            s.close(fd);
        }
        let found = fires("cold-small-files", s);
        assert_eq!(found[0].evidence[4].value, 1.0);
    }

    #[test]
    fn fires_on_mapped_files() {
        let mut s = Scenario::new();
        for i in 0..300 {
            let path = format!("/src/{i}.c");
            let fd = s.open_existing(&path, "O_RDONLY", 8000);
            s.fault_reads(8192);
            s.fault(&path, 0, 400_000, true, "read");
            s.close(fd);
        }
        let found = fires("cold-small-files", s);
        assert_eq!(found[0].evidence[0].value, 300.0);
    }

    /// A thread that waits for a few files does not make the waits of another thread cheaper.
    #[test]
    fn waits_of_one_thread_among_several_are_its_own() {
        let mut s = Scenario::new();
        search(&mut s, 300, 400_000, 300);
        for i in 0..6 {
            s.thread(900 + i, "loader");
            let fd = s.open_existing(&format!("/etc/{i}"), "O_RDONLY", 8000);
            s.missed(8192, 400_000);
            s.read(fd, 8000);
        }
        let found = fires("cold-small-files", s);
        assert!(found[0].cost_ns.unwrap() > 80_000_000, "{found:#?}");
    }

    #[test]
    fn silent_on_large_files() {
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/media/{i}"), "O_RDONLY", 2 << 20);
            s.missed(65536, 400_000);
            s.pread(fd, 65536, 0);
            s.close(fd);
        }
        silent("cold-small-files", s);
    }

    #[test]
    fn fires_on_directories_and_attributes() {
        let mut s = Scenario::new();
        for i in 0..200 {
            s.missed(4096, 300_000);
            s.stat(&format!("/home/{}/{i}", i % 5));
        }
        fires("cold-small-files", s);
    }

    #[test]
    fn silent_in_memory_on_few_files_and_on_a_tenth_of_the_time() {
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/src/{i}"), "O_RDONLY", 8000);
            s.read(fd, 8000);
            s.close(fd);
        }
        silent("cold-small-files", s);
        let mut s = Scenario::new();
        search(&mut s, 80, 400_000, 0);
        silent("cold-small-files", s);
        // Imports of modules: a tenth of the time.
        let mut s = Scenario::new();
        search(&mut s, 300, 400_000, 3_600);
        silent("cold-small-files", s);
    }

    #[test]
    fn silent_with_workers_and_behind_the_beginning_of_files() {
        // Four processes at a time, as of xargs -P 4.
        let mut s = Scenario::new();
        for i in 0..300 {
            let began = s.now();
            for pid in [101, 102, 103, 104] {
                s.process(pid);
                let path = format!("/src/{pid}/{i}.c");
                let fd = s.open_existing(&path, "O_RDONLY", 8000);
                s.missed(8192, 400_000);
                s.read(fd, 8000);
                s.back_to(began);
            }
            s.wait_us(500);
        }
        silent("cold-small-files", s);
        // A server that waits for parts of large files.
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/media/{i}"), "O_RDONLY", 1 << 30);
            s.missed(65536, 400_000);
            s.pread(fd, 65536, 1 << 20);
            s.close(fd);
        }
        silent("cold-small-files", s);
    }

    #[test]
    fn silent_without_the_layers() {
        let mut s = Scenario::new();
        s.no_layers();
        s.slow(400_000);
        search(&mut s, 300, 1, 0);
        let diagnosis = s.diagnose();
        assert!(diagnosis.not_observable.iter().any(|n| n.rule == "cold-small-files"));
        assert!(diagnosis.findings.iter().all(|f| f.rule != "cold-small-files"));
    }
}

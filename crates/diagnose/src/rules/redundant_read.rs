//! `redundant-read`: the same bytes are read again and again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::call::ACCESSES_PER_LOCK;
use crate::prelude::*;

/// Bytes read, over bytes that were new or had changed. Some work takes two passes.
const MIN_RATIO: f64 = 2.5;
/// Repeated calls from which on they count.
const MIN_CALLS: u64 = 64;
/// The same of bytes that the process has read or written itself, over the length of what they cover: a cache
/// may be too small for them once.
const MIN_PASSES: f64 = 8.0;
/// Share of the recorded time that goes into them: the file is also written, and to keep it in memory changes how.
const MIN_OWN: f64 = 0.03;
/// Processes of one name, one after the other, from which on what they all read counts.
const MIN_PROCESSES: usize = 3;
/// Bytes of a file that each of them reads: headers and libraries are smaller, and part of a start.
const LARGE: i64 = 1 << 20;
/// Share of the recorded time that goes into it: a process begins with nothing in memory, and to keep
/// something for the next one is more than a change of a line.
const MIN_PART: f64 = 0.1;
/// The same where what they do with the bytes is counted, too: processes, and share of the recorded time.
const MIN_WORKERS: usize = 20;
const MIN_WORK: f64 = 0.3;
/// Time between two reads that goes into the bytes of the first, at most: nanoseconds. Beyond it the process
/// waits for something else.
const LONGEST_WORK_NS: i64 = 100_000_000;
/// Processes and files that are distinguished.
const MAX_TOLD: usize = 256;

static INFO: RuleInfo = RuleInfo {
    id: "redundant-read",
    name: "Same bytes read again",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Truncate, Open, Flock, Fcntl],
    about_calls: true,
    what: "A process reads bytes of a file that it has read before and that no process has changed \
           since. At best they come from the page cache, at the cost of a system call and a copy \
           each time.",
    when: "A process has read at least two and a half times as many bytes of a file as were new to it or had \
           changed since it read them, in 64 or more calls that read only bytes it had read before. Or three or \
           more processes with the same name, one after another, read 1 MiB or more of a file that \
           earlier ones had read, for 10 % or more of the recorded time over all such files, or they are 20 or \
           more, and the time from the first read to the last one of each is 30 % or more in all. The \
           first read of bytes after a write to them, or after the file was truncated, is not \
           redundant. Or only one process uses the file, does not lock it before each access, and \
           reads bytes that it had read or written itself eight times over or more, for 3 % or more of \
           the recorded time: it changes pages of a file that it does not keep in memory.",
    cost: "the time of the reads of the file, times the fraction of bytes that were read before; of 20 or more \
           processes that need more for what they make of the bytes, the time from the first read to the last \
           one, with 100 ms at most between two",
    advice: "Keep the data in memory (a cache of blocks or of parsed objects), or map the file.",
    not_when: "Not when the page cache, which processes share, makes better use of the memory: \
           databases that leave caching to the kernel do this on purpose.",
    bad: "while (next(&key)) {\n    pread(fd, &index, sizeof index, 0);\n    ...\n}",
    good: "pread(fd, &index, sizeof index, 0);\nwhile (next(&key)) {\n    ...\n}",
    reference: "IOscope, section 3; Drishti's rule of this name tests something else",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Reads {
    comm: Text,
    seen: Intervals,
    bytes: i64,
    again: i64,
    repeats: u64,
    time_ns: i64,
    examples: Examples,
    /// Of a file that it writes, too: what it has read or written itself.
    own: Option<Intervals>,
    own_again: i64,
    own_repeats: u64,
    own_examples: Examples,
    locks: u64,
}

impl Reads {
    /// The process itself changes bytes.
    fn writes(&mut self, start: i64, end: i64) {
        let seen = &self.seen;
        self.own.get_or_insert_with(|| seen.clone()).insert(start, end);
    }

    /// Its bytes of the file that it could have kept, and how often it has read each of them on average.
    fn passes(&self) -> (i64, f64) {
        let length = self.own.as_ref().map_or(0, Intervals::len);
        (length, self.own_again as f64 / length.max(1) as f64)
    }
}

/// Processes of one name on one file.
#[derive(Debug, Default)]
struct Series {
    comm: Text,
    pids: Vec<i32>,
    /// Whether they read at the same time: then each needs it.
    beside: bool,
    seen: Intervals,
    again: i64,
    again_ns: i64,
    /// When the last read ended, and how long processes needed for the bytes that others had read: from one read to the
    /// next.
    last_ended_at_ns: i64,
    work_ns: i64,
    examples: Examples,
}

impl Series {
    fn add(&mut self, call: &Call, start: i64, end: i64) {
        if self.pids.last() != Some(&call.pid) {
            self.beside |= self.pids.contains(&call.pid);
            if self.pids.is_empty() {
                self.comm = call.comm_text();
            }
            if self.pids.len() < MAX_TOLD {
                self.pids.push(call.pid);
            }
            self.last_ended_at_ns = call.ts_ns;
        }
        let before = std::mem::replace(&mut self.last_ended_at_ns, call.ended_at_ns());
        let again = self.seen.insert(start, end);
        if self.pids.len() > 1 && again > 0 {
            let share = again as f64 / (end - start) as f64;
            let work_ns = (call.ended_at_ns() - before).clamp(0, LONGEST_WORK_NS);
            self.again += again;
            self.again_ns += (call.dur_ns as f64 * share) as i64;
            self.work_ns += (work_ns as f64 * share) as i64;
            self.examples.add(call);
        }
    }

    fn is_again(&self) -> bool {
        let each = self.again / i64::try_from(self.pids.len().max(2) - 1).unwrap_or(i64::MAX);
        self.pids.len() >= MIN_PROCESSES && !self.beside && each >= LARGE
    }
}

rule! {
    pub struct RedundantRead {
        /// By the name of the processes.
        series: Bounded<(u64, FileId), Series> = Bounded::new(|series| series.again.unsigned_abs()),
        names: Bounded<FileId, Vec<u64>> = Bounded::new(|names| names.len() as u64),
        reads: Bounded<(i32, FileId), Reads> = Bounded::new(|reads| reads.repeats),
        /// The process that changes a file, -1 if there are several.
        writer: Bounded<FileId, i32>,
        /// The processes that have read a file.
        readers: Bounded<FileId, Vec<i32>> = Bounded::new(|readers| readers.len() as u64),
    }
}

impl RedundantRead {
    fn written_by(&mut self, id: FileId, pid: i32) {
        let writer = self.writer.entry(id);
        *writer = if *writer == 0 || *writer == pid { pid } else { -1 };
    }

    /// A file ends here now.
    fn cut(&mut self, id: FileId, length: i64) {
        for pid in self.readers.get(&id).into_iter().flatten() {
            if let Some(own) = self.reads.get_mut(&(*pid, id)).and_then(|reads| reads.own.as_mut()) {
                own.truncate(length);
            }
        }
    }

    /// Bytes of a file have changed: what was read of them is not what is there.
    fn changed(&mut self, id: FileId, change: impl Fn(&mut Intervals)) {
        for name in self.names.get(&id).into_iter().flatten() {
            if let Some(series) = self.series.get_mut(&(*name, id)) {
                change(&mut series.seen);
            }
        }
        let Some(readers) = self.readers.get_mut(&id) else { return };
        readers.retain(|pid| {
            let reads = self.reads.get_mut(&(*pid, id));
            reads.map(|reads| change(&mut reads.seen)).is_some()
        });
    }
}

impl Rule for RedundantRead {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        match call.kind {
            Kind::Open => {
                if call.succeeded() && call.has_flag("O_TRUNC") {
                    self.written_by(id, call.pid);
                    self.cut(id, 0);
                    self.changed(id, Intervals::clear);
                }
                return;
            }
            Kind::Truncate => {
                if call.succeeded()
                    && let Some(length) = call.arg("length").and_then(|n| n.parse::<i64>().ok()) {
                    self.written_by(id, call.pid);
                    self.cut(id, length.max(0));
                    self.changed(id, |seen| seen.truncate(length.max(0)));
                }
                return;
            }
            Kind::Flock | Kind::Fcntl => {
                if call.takes_lock() && call.succeeded() && let Some(reads) = self.reads.get_mut(&(call.pid, id)) {
                    reads.locks += 1;
                }
                return;
            }
            _ => {}
        }
        let Some((start, end)) = call.range() else { return };
        // Stores into mapped memory change a file without a call.
        if !context.file(call).is_some_and(|file| file.is_regular() && !file.is_mapped_for_writing) {
            return;
        }
        if call.kind == Kind::Write {
            if let Some(reads) = self.reads.get_mut(&(call.pid, id)) {
                reads.writes(start, end);
            }
            self.changed(id, |seen| seen.remove(start, end));
            self.written_by(id, call.pid);
            return;
        }
        let name = key_of(call.comm);
        let series = self.series.entry((name, id));
        if series.pids.is_empty() {
            self.names.entry(id).push(name);
        }
        series.add(call, start, end);
        let reads = self.reads.entry((call.pid, id));
        if reads.bytes == 0 {
            reads.comm = call.comm_text();
            self.readers.entry(id).push(call.pid);
        }
        let again = reads.seen.insert(start, end);
        reads.bytes += end - start;
        reads.again += again;
        reads.time_ns += call.dur_ns;
        if again >= end - start {
            reads.repeats += 1;
            reads.examples.add(call);
        }
        if let Some(own) = &mut reads.own {
            let again = own.insert(start, end);
            reads.own_again += again;
            if again >= end - start {
                reads.own_repeats += 1;
                reads.own_examples.add(call);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        self.one_after_the_other(run, out);
        for ((pid, file), reads) in self.reads.iter() {
            let unique = reads.bytes - reads.again;
            let ratio = reads.bytes as f64 / unique.max(1) as f64;
            let cost = (reads.time_ns as f64 * reads.again as f64 / reads.bytes.max(1) as f64) as i64;
            if reads.repeats < MIN_CALLS || ratio < MIN_RATIO || !run.matters(cost) {
                self.of_own(*pid, *file, reads, run, out);
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            out.push(Found {
                rests_on_absence: true,
                cost_ns: Some(cost),
                title: format!(
                    "{} reads {} of {path}, of which {} had been read before and have not changed since",
                    reads.comm,
                    units::bytes(reads.bytes),
                    units::bytes(reads.again),
                ),
                subject: Subject::process(*pid, &reads.comm).with_file(*file, path),
                evidence: vec![
                    number("bytes_read", reads.bytes),
                    number("new_or_changed_bytes", unique),
                    number("repeated_calls", reads.repeats as i64),
                    evidence("ratio", ratio),
                ],
                examples: reads.examples.list(),
                query: calls!("pid = {pid} AND file_id = {file} AND call_reads(syscall)"),
                caveats: if reads.seen.is_coarse() {
                    vec!["bytes were counted per page, because the reads are scattered".to_owned()]
                } else {
                    Vec::new()
                },
                ..Found::default()
            });
        }
    }
}

impl RedundantRead {
    /// Bytes that a process reads although it has read or written them itself.
    fn of_own(&self, pid: i32, file: FileId, reads: &Reads, run: &Run, out: &mut Vec<Found>) {
        let (length, passes) = reads.passes();
        let cost = (reads.time_ns as f64 * reads.own_again as f64 / reads.bytes.max(1) as f64) as i64;
        let alone = self.writer.get(&file) == Some(&pid) && self.readers.get(&file).is_some_and(|readers| readers.len() == 1);
        let locked = reads.locks * ACCESSES_PER_LOCK > reads.own_repeats;
        let often = reads.own_repeats >= MIN_CALLS && passes >= MIN_PASSES;
        if !alone || locked || !often || !run.matters_from(cost, MIN_OWN) {
            return;
        }
        let path = run.state.files.get(file).map_or("", |f| f.name());
        out.push(Found {
            cost_ns: Some(cost),
            costs: Costs::of(&[Kind::Read]),
            title: format!(
                "{} reads {} of {path} that it had read or written itself, {passes:.0} times the {} of the file that it uses",
                reads.comm,
                units::bytes(reads.own_again),
                units::bytes(length),
            ),
            subject: Subject::process(pid, &reads.comm).with_file(file, path),
            evidence: vec![
                number("bytes_read", reads.bytes),
                number("bytes_of_its_own", reads.own_again),
                number("repeated_calls", reads.own_repeats as i64),
                number("bytes_used", length),
            ],
            examples: reads.own_examples.list(),
            query: calls!("pid = {pid} AND file_id = {file} AND call_reads(syscall)"),
            advice: Some(
                "Keep these bytes in memory and write them when the work is done or at a commit: a cache of pages in the \
                 program, or a larger one in the library that does the calls."
                    .to_owned(),
            ),
            ..Found::default()
        });
    }

    /// Bytes that processes read although others of their name had read them before.
    fn one_after_the_other(&self, run: &Run, out: &mut Vec<Found>) {
        let mut of_name: BTreeMap<&str, Vec<(FileId, &Series)>> = BTreeMap::new();
        for ((_, id), series) in self.series.iter().filter(|(_, series)| series.is_again()) {
            of_name.entry(&series.comm).or_default().push((*id, series));
        }
        for (comm, mut files) in of_name {
            files.sort_by_key(|(id, series)| (Reverse(series.again_ns), *id));
            // To unpack or parse the same bytes costs more than to read them. Below its share it is not added up with others.
            let is_work = |(_, series): &(FileId, &Series)| {
                series.pids.len() >= MIN_WORKERS && !run.is_faint() && run.matters_from(series.work_ns, MIN_WORK)
            };
            // Of one file: a process may read several in turns.
            let worked = files.iter().copied().filter(is_work).max_by_key(|(id, series)| (series.work_ns, *id));
            let works = worked.is_some();
            if let Some(one) = worked {
                files = vec![one];
            }
            let sum = |each: fn(&Series) -> i64| files.iter().map(|(_, series)| each(series)).sum::<i64>();
            let (reading, again) = (sum(|series| series.again_ns), sum(|series| series.again));
            let Some((first, series)) = files.first() else { continue };
            let cost = if works { series.work_ns } else { reading };
            if !run.matters(cost) || !works && !run.matters_from(cost, MIN_PART) {
                continue;
            }
            let path = run.state.files.get(*first).map_or("", |f| f.name());
            let mut pids: Vec<i32> = files.iter().flat_map(|(_, series)| series.pids.clone()).collect();
            pids.sort_unstable();
            pids.dedup();
            let list: Vec<String> = pids.iter().take(MAX_TOLD).map(i32::to_string).collect();
            let count = i64::try_from(files.len()).unwrap_or(i64::MAX);
            let what = match count {
                1 => path.to_owned(),
                n => format!("{} files, most of it of {path}", units::count(n)),
            };
            let costs = Costs::default().of_files(files.iter().take(MAX_TOLD).map(|(id, _)| *id).collect());
            let work = match works {
                true => format!(", and need {} for it and what they make of it", units::duration(series.work_ns)),
                false => String::new(),
            };
            out.push(Found {
                cost_ns: Some(cost),
                costs: if works { costs.of_processes(pids.iter().copied().take(MAX_TOLD).collect()) } else { costs },
                title: format!(
                    "{} processes of {comm}, one after another, read {} again that earlier ones had read of {what}{work}",
                    units::count(series.pids.len() as i64),
                    units::bytes(again),
                ),
                subject: Subject {
                    pid: None,
                    ..Subject::process(0, comm).with_path(path)
                },
                evidence: vec![
                    number("bytes_read_by_earlier_processes", again),
                    number("files", count),
                    number("processes", series.pids.len() as i64),
                    number("reading_ns", reading),
                ],
                examples: series.examples.list(),
                query: calls!("pid IN ({}) AND call_reads(syscall)", list.join(", ")),
                advice: Some(
                    "Let one process do the work for all, or let the first one store the result for the others, with the size and modification time of the \
                     file it was computed from."
                        .to_owned(),
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn a_run_goes_on_after_its_last_call() {
        let reads = |idle_ms: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/table", "O_RDONLY", 65536);
            (0..400).for_each(|_| s.pread(fd, 65536, 0));
            s.wait_ms(idle_ms);
            s.ends(0);
            s
        };
        fires("redundant-read", reads(1));
        silent("redundant-read", reads(60_000));
    }

    #[test]
    fn silent_on_what_a_mapping_may_change() {
        let reads = |prot: &str| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/run/status", "O_RDWR", 65536);
            s.map_shared(fd, prot);
            (0..400).for_each(|_| s.pread(fd, 65536, 0));
            s
        };
        fires("redundant-read", reads("PROT_READ"));
        silent("redundant-read", reads("PROT_READ|PROT_WRITE"));
    }

    /// To unpack the bytes takes each process longer than to read them.
    #[test]
    fn the_work_of_many_processes_on_the_same_bytes_counts() {
        let runs = |processes, between_us: i64, idle_ms: i64| {
            let mut s = Scenario::new();
            for pid in 201..201 + processes {
                s.process(pid);
                let fd = s.open_existing("/data/archive", "O_RDONLY", 16 << 20);
                for i in 0..32 {
                    s.pread(fd, 1 << 16, i << 16);
                    s.wait_us(between_us);
                }
                s.close(fd);
                s.wait_ms(idle_ms);
            }
            s
        };
        let found = fires("redundant-read", runs(40, 2000, 1));
        assert!(found[0].title.contains(" processes of program, one after another, "), "{}", found[0].title);
        assert!(found[0].title.ends_with(" for it and what they make of it"), "{}", found[0].title);
        let cost = found[0].cost_ns.unwrap();
        assert!((2_400_000_000..2_600_000_000).contains(&cost), "{cost}");
        // They do something else most of the time, or are few.
        silent("redundant-read", runs(40, 2000, 200));
        silent("redundant-read", runs(10, 2000, 1));
        // Of what each reads only a sixteenth had been read before.
        let mut s = Scenario::new();
        for pid in 0..40 {
            s.process(201 + pid);
            let fd = s.open_existing("/data/archive", "O_RDONLY", 1 << 30);
            for i in 0..320 {
                s.pread(fd, 1 << 16, (i64::from(pid) * 300 + i) << 16);
                s.wait_us(2000);
            }
        }
        silent("redundant-read", s);
    }

    #[test]
    fn fires_on_processes_that_read_the_same_one_after_the_other() {
        let runs = |processes, size: i64, changed| {
            let mut s = Scenario::new();
            for pid in 201..201 + processes {
                s.process(pid);
                let fd = s.open_existing("/data/src", "O_RDWR", 16 << 20);
                s.slow(100_000);
                for i in 0..size >> 16 {
                    s.pread(fd, 1 << 16, i << 16);
                }
                if changed {
                    for i in 0..size >> 16 {
                        s.pwrite(fd, 1 << 16, i << 16);
                    }
                }
                s.close(fd);
            }
            s
        };
        let found = fires("redundant-read", runs(5, 8 << 20, false));
        assert_eq!(found[0].evidence[2].value, 5.0);
        silent("redundant-read", runs(5, 8 << 20, true));
        silent("redundant-read", runs(2, 8 << 20, false));
        silent("redundant-read", runs(5, 1 << 18, false));
    }

    #[test]
    fn silent_on_processes_that_read_the_same_at_the_same_time() {
        let mut s = Scenario::new();
        for i in 0..128 {
            for pid in 201..206 {
                s.process(pid);
                let fd = s.open_existing("/data/src", "O_RDONLY", 16 << 20);
                s.slow(100_000);
                s.pread(fd, 1 << 16, i << 16);
                s.close(fd);
            }
        }
        silent("redundant-read", s);
    }

    /// Pages that a process changes again and again without keeping them.
    fn pages(locks: i64, others: bool) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/data/counts", "O_RDWR|O_CREAT");
        s.slow(20_000);
        for i in 0..4000 {
            if i % 100 < locks {
                s.flock(fd, 1000);
            }
            s.pread(fd, 1024, i * 7 % 64 * 1024);
            s.pwrite(fd, 1024, i * 7 % 64 * 1024);
            if others && i == 100 {
                s.process(300);
                let fd = s.open("/data/counts", "O_RDWR");
                s.pwrite(fd, 1024, 0);
                s.process(100);
            }
        }
        s
    }

    #[test]
    fn fires_on_pages_that_the_process_had_itself() {
        let found = fires("redundant-read", pages(0, false));
        assert_eq!(found[0].evidence[3].value, 64.0 * 1024.0);
        assert!(found[0].title.contains(", 62 times the 64.0 KiB of the file"), "{}", found[0].title);
        // A lock that is taken once.
        fires("redundant-read", pages(1, false));
        silent("redundant-read", pages(100, false));
        silent("redundant-read", pages(0, true));
    }

    #[test]
    fn fires_on_an_index_read_each_time() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/index", "O_RDONLY", 1 << 20);
        for _ in 0..500 {
            s.pread(fd, 4096, 8192);
        }
        let found = fires("redundant-read", s);
        assert_eq!(found[0].evidence[1].value, 4096.0);
    }

    /// Bytes that were written again are new, however small the file is.
    #[test]
    fn rewritten_bytes_are_not_read_before() {
        let mut s = Scenario::new();
        let fd = s.open("/data/table", "O_RDWR|O_CREAT");
        for i in 0..800 {
            if i % 8 == 0 {
                s.pwrite(fd, 4096, 0);
            }
            s.pread(fd, 4096, 0);
        }
        let found = fires("redundant-read", s);
        assert_eq!(found[0].evidence[1].value, 100.0 * 4096.0);
        let again = "of which 2.73 MiB had been read before and have not changed since";
        assert!(found[0].title.contains(again), "{}", found[0].title);
    }

    #[test]
    fn fires_on_a_file_that_was_made_before_it_is_read() {
        let mut s = Scenario::new();
        let fd = s.open("/data/index", "O_RDWR|O_CREAT");
        s.pwrite(fd, 65536, 0);
        for i in 0..800 {
            s.pread(fd, 4096, i % 16 * 4096);
        }
        let found = fires("redundant-read", s);
        assert_eq!(found[0].evidence[1].value, 65536.0);
    }

    #[test]
    fn silent_on_a_file_that_is_written_before_each_scan_of_it() {
        let mut s = Scenario::new();
        let writer = s.open("/data/state", "O_RDWR|O_CREAT");
        for _ in 0..50 {
            s.pwrite(writer, 65536, 0);
            s.process(200);
            let fd = s.open("/data/state", "O_RDONLY");
            for i in 0..16 {
                s.pread(fd, 4096, i * 4096);
            }
            s.close(fd);
            s.process(100);
        }
        let log = s.open("/data/log", "O_RDWR|O_CREAT");
        for _ in 0..200 {
            s.truncate(log, 0);
            s.pread(log, 4096, 0);
        }
        silent("redundant-read", s);
    }

    #[test]
    fn silent_on_a_scan_and_on_changing_bytes() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/scan", "O_RDONLY", 1 << 30);
        for _ in 0..1000 {
            s.read(fd, 4096);
        }
        s.process(200);
        let writer = s.open("/data/mailbox", "O_WRONLY|O_CREAT");
        s.process(100);
        let fd = s.open("/data/mailbox", "O_RDONLY");
        for _ in 0..500 {
            s.process(200);
            s.pwrite(writer, 4096, 0);
            s.process(100);
            s.pread(fd, 4096, 0);
        }
        silent("redundant-read", s);
    }
}

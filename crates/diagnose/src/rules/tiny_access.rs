//! `tiny-access`: the same pages of a file again and again, a few bytes with each call.

use std::collections::HashMap;

use crate::call::ACCESSES_PER_LOCK;
use crate::order::{Head, Step};
use crate::prelude::*;
use crate::state::descriptors::Description;

/// Calls from which on they count.
const MIN_CALLS: i64 = 1000;
/// A call below this is tiny, bytes.
const TINY: i64 = 1024;
/// Calls per page: with fewer, one pass over records with gaps would count, too.
const MIN_PER_PAGE: f64 = 16.0;
/// Calls in a row, each where the one before ended, from which on they are a run of small-sequential.
const RUN: u64 = 64;
/// Pages from which on a file is used like memory: a counter or a header is not.
const MIN_PAGES: i64 = 16;
/// The page of the page cache, bytes.
const PAGE: i64 = 4096;
/// Share of the recorded time from which on it is worth another way of access.
const MIN_PART: f64 = 0.03;

/// The calls of a finding, as a condition.
const TINY_CALLS: &str = "bytes < 1024 AND (call_reads(syscall) OR call_writes(syscall))";

static INFO: RuleInfo = RuleInfo {
    id: "tiny-access",
    name: "Tiny reads and writes here and there",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Flock, Fcntl],
    about_calls: true,
    what: "A process uses a file like memory: each call reads or writes a few bytes at another place, \
           and comes back to the same pages again and again. The pages are in the page cache, so \
           nearly all of the time is the system call itself.",
    when: "A process makes 1,000 or more calls below 1 KiB on a file, in 16 or more pages of 4 KiB, with 16 \
           or more per page on average; files of which none is significant are added up. Reads in runs of \
           64 or more, each where the one before ended, are the matter of small-sequential, and so are such \
           writes. Writes that are made durable one by one do not count, nor do calls that waited for a \
           device. Silent below 3 % of the recorded time, and on files that the process locks for every 16 \
           calls or more often.",
    cost: "calls beyond one per page, times their median duration",
    advice: "Map the file (mmap) and use it as memory, or read a block of 64 KiB or more, work on it, and \
           write it back. If the file only replaces memory that a limit denies (a cache on \
           disk), raise the limit.",
    not_when: "Not when other processes read or change the bytes between two calls, and file locks \
           say who may.",
    bad: "for (y = 0; y < rows; y++)\n    pread(fd, &pixel, 8, (y * columns + x) * 8);",
    good: "pixels = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);\n\
           for (y = 0; y < rows; y++)\n    pixel = pixels[y * columns + x];",
    reference: "mmap(2); ImageMagick's disk cache of pixels works like this beyond its memory limit",
};

/// Reads or writes: each may go on where the one before ended, whatever is between them.
#[derive(Debug, Default)]
struct Direction {
    head: Head,
    /// Calls that go on where the one before ended; calls and bytes that were counted of them.
    run: u64,
    run_counted: (u64, i64),
}

/// One process on one file.
#[derive(Debug, Default)]
struct Accesses {
    comm: Text,
    of_reads: Direction,
    of_writes: Direction,
    calls: u64,
    writes: u64,
    bytes: i64,
    pages: Intervals,
    durations: Durations,
    examples: Examples,
    locks: u64,
}

/// Calls of a process on a file, or on several.
#[derive(Debug, Default)]
struct Sum {
    comm: Text,
    files: i64,
    calls: i64,
    writes: i64,
    bytes: i64,
    pages: i64,
    cost: i64,
    durations: Durations,
    examples: Examples,
}

impl Sum {
    fn of(accesses: &Accesses) -> Self {
        let mut sum = Self::default();
        sum.add(accesses);
        sum
    }

    fn add(&mut self, accesses: &Accesses) {
        if self.files == 0 {
            self.comm.clone_from(&accesses.comm);
        }
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let pages = accesses.pages.len() / PAGE;
        let spare = (count(accesses.calls) - pages).max(0);
        self.files += 1;
        self.calls += count(accesses.calls);
        self.writes += count(accesses.writes);
        self.bytes += accesses.bytes;
        self.pages += pages;
        self.cost = self.cost.saturating_add(spare.saturating_mul(accesses.durations.median_ns()));
        self.durations.merge(&accesses.durations);
        self.examples.add_all(&accesses.examples);
    }

    fn per_page(&self) -> f64 {
        self.calls as f64 / self.pages.max(1) as f64
    }

    fn matters(&self, run: &Run) -> bool {
        let many = self.calls >= MIN_CALLS && self.pages >= MIN_PAGES && self.per_page() >= MIN_PER_PAGE;
        many && run.matters(self.cost) && run.matters_from(self.cost, MIN_PART)
    }

    /// The finding about calls in `place`, without its subject and its query.
    fn found(&self, place: &str) -> Found {
        let verb = match (self.calls - self.writes, self.writes) {
            (_, 0) => "reads",
            (0, _) => "writes",
            _ => "reads and writes",
        };
        let mut numbers = vec![
            number("tiny_calls", self.calls),
            number("writes", self.writes),
            number("pages", self.pages),
            evidence("calls_per_page", self.per_page()),
            number("median_ns", self.durations.median_ns()),
        ];
        if self.files > 1 {
            numbers.push(number("files", self.files));
        }
        Found {
            cost_ns: Some(self.cost),
            title: format!(
                "{} {verb} {} of {place} at a time here and there: {} calls in {}",
                self.comm,
                units::bytes(self.bytes / self.calls.max(1)),
                units::count(self.calls),
                counted(self.pages, "page", "pages"),
            ),
            evidence: numbers,
            examples: self.examples.list(),
            ..Found::default()
        }
    }
}

rule! {
    pub struct TinyAccess {
        files: Bounded<(i32, FileId), Accesses> = Bounded::new(|accesses| accesses.calls),
    }
}

impl Rule for TinyAccess {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file else { return };
        if call.takes_lock() {
            if let Some(accesses) = self.files.get_mut(&(call.pid, file)).filter(|_| call.succeeded()) {
                accesses.locks += 1;
            }
            return;
        }
        let Some((start, end)) = call.range() else { return };
        if call.asynchronous || !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        let tiny = end - start < TINY;
        if !tiny && self.files.get_mut(&(call.pid, file)).is_none() {
            return;
        }
        let accesses = self.files.entry((call.pid, file));
        let write = call.kind == Kind::Write;
        let direction = if write { &mut accesses.of_writes } else { &mut accesses.of_reads };
        let step = direction.head.step(start, end);
        let durable = context.synced.is_some() || context.open().is_some_and(Description::is_synchronous);
        let waited = context.below.io_wait_ns > 0 || context.below.reads > 0;
        if step == Step::Next {
            direction.run += 1;
        } else {
            (direction.run, direction.run_counted) = (0, (0, 0));
        }
        if direction.run == RUN {
            let (calls, bytes) = std::mem::take(&mut direction.run_counted);
            accesses.calls -= calls;
            accesses.writes -= if write { calls } else { 0 };
            accesses.bytes -= bytes;
        }
        if !tiny || durable || waited || direction.run >= RUN {
            return;
        }
        let bytes = end - start;
        if step == Step::Next {
            let counted = &mut direction.run_counted;
            *counted = (counted.0 + 1, counted.1 + bytes);
        }
        if accesses.comm.is_empty() {
            accesses.comm = call.comm_text();
        }
        accesses.calls += 1;
        accesses.writes += u64::from(write);
        accesses.bytes += bytes;
        accesses.pages.insert(start / PAGE * PAGE, (end - 1) / PAGE * PAGE + PAGE);
        accesses.durations.add(call.dur_ns);
        accesses.examples.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // By process: files that matter only together.
        let mut together: HashMap<i32, Sum> = HashMap::new();
        // In the same order whenever a session is looked at: of examples that took as long the first stay.
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_unstable_by_key(|(key, _)| **key);
        for ((pid, file), accesses) in files {
            if accesses.locks * ACCESSES_PER_LOCK > accesses.calls {
                continue;
            }
            let own = Sum::of(accesses);
            if !own.matters(run) {
                if own.per_page() >= MIN_PER_PAGE {
                    together.entry(*pid).or_default().add(accesses);
                }
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            out.push(Found {
                subject: Subject::process(*pid, &own.comm).with_file(*file, path),
                query: calls!("pid = {pid} AND file_id = {file} AND {TINY_CALLS}"),
                ..own.found(path)
            });
        }
        for (pid, all) in together {
            if all.files < 2 || !all.matters(run) {
                continue;
            }
            out.push(Found {
                subject: Subject::process(pid, &all.comm),
                query: calls!("pid = {pid} AND {TINY_CALLS}"),
                ..all.found(&format!("{} files", units::count(all.files)))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Reads columns of a picture that is stored in rows.
    fn columns(s: &mut Scenario, fd: i32, rows: i64, bytes: i64) {
        for x in 0..20 {
            for y in 0..rows {
                s.pread(fd, bytes, (y * 40 + x) * bytes);
            }
        }
    }

    #[test]
    fn fires_on_a_picture_that_is_used_as_memory() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/tmp/magick", "O_RDWR", 1 << 20);
        columns(&mut s, fd, 200, 8);
        let found = fires("tiny-access", s);
        assert_eq!(found[0].evidence[0].value, 4000.0);
        // 200 rows of 320 bytes.
        assert_eq!(found[0].evidence[2].value, 16.0);
    }

    #[test]
    fn runs_are_counted_in_no_number() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/tmp/magick", "O_RDWR", 1 << 20);
        columns(&mut s, fd, 200, 8);
        for part in 0..20 {
            for i in 0..100 {
                s.pwrite(fd, 8, part * 2000 + i * 8);
            }
        }
        let found = fires("tiny-access", s);
        // Of each run the first call, which goes on nowhere.
        let numbers: Vec<f64> = found[0].evidence[..2].iter().map(|e| e.value).collect();
        assert_eq!(numbers, [4020.0, 20.0]);
    }

    #[test]
    fn silent_on_larger_pieces_on_pages_used_once_and_in_order() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 30);
        columns(&mut s, fd, 200, 1024);
        silent("tiny-access", s);
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 30);
        for i in 0..4000 {
            s.pread(fd, 100, i * 7919 % 4001 * 4096);
        }
        silent("tiny-access", s);
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 30);
        for i in 0..4000 {
            s.pread(fd, 100, i * 100);
        }
        silent("tiny-access", s);
    }

    /// Records are appended, and each is read back.
    #[test]
    fn silent_where_reads_and_writes_are_each_in_order() {
        let mut s = Scenario::new();
        let log = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        let back = s.open("/data/log", "O_RDONLY");
        for _ in 0..4000 {
            s.write(log, 100);
            s.read(back, 100);
        }
        silent("tiny-access", s);
    }

    /// Headers and points of many files, as a database of time series has them.
    #[test]
    fn files_that_matter_only_together_are_one_finding() {
        let mut s = Scenario::new();
        for i in 0..2000 {
            let fd = s.open_existing(&format!("/metrics/{}.wsp", i % 200), "O_RDWR", 1 << 20);
            for at in 0..5 {
                s.read(fd, 12);
                s.pread(fd, 12, at * 500);
            }
            s.close(fd);
        }
        let found = fires("tiny-access", s);
        assert_eq!(found.len(), 1, "{found:#?}");
        let files = found[0].evidence.last().map(|e| (&*e.name, e.value));
        assert_eq!(files, Some(("files", 200.0)));
        assert!(found[0].title.contains("reads 12 B of 200 files at a time"), "{}", found[0].title);
    }

    #[test]
    fn silent_on_a_file_that_others_use_between_two_calls() {
        for (calls, is_silent) in [(4, true), (40, false)] {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/table", "O_RDWR", 1 << 20);
            for i in 0..4000 {
                if i % calls == 0 {
                    s.flock(fd, 500);
                }
                s.pread(fd, 8, i * 7919 % 2000 * 40);
            }
            match is_silent {
                true => silent("tiny-access", s),
                false => assert_eq!(fires("tiny-access", s).len(), 1),
            }
        }
    }

    #[test]
    fn silent_on_what_a_device_is_waited_for() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDWR", 1 << 20);
        for x in 0..20 {
            for y in 0..100 {
                s.missed(4096, 200_000);
                s.pread(fd, 8, (y * 40 + x) * 8);
            }
        }
        silent("tiny-access", s);
    }
}

//! `small-sequential`: many small reads or writes, each where the one before ended.

use hashbrown::HashMap;

use crate::order::{Head, Step};
use crate::prelude::*;
use crate::state::descriptors::Description;

/// Calls in a run from which on it counts.
const MIN_RUN: u64 = 64;
/// A call below this is small, bytes: a page.
const SMALL: i64 = 4096;
/// Bytes that a buffered program moves with one call.
const BUFFER: i64 = 64 << 10;
/// Share of the recorded time from which on it is worth a buffer: with less the pieces are seen at
/// once by others, and a crash of the program loses none, for a cost that vanishes between two runs.
const MIN_PART: f64 = 0.03;

static INFO: RuleInfo = RuleInfo {
    id: "small-sequential",
    name: "Small sequential I/O",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Sync, SyncRange],
    about_calls: true,
    what: "A process reads or writes a file from front to back in pieces smaller than a page. Each \
           piece costs a system call, which takes longer than moving its bytes.",
    when: "64 or more calls in a row, each below 4 KiB and each starting where the previous one \
           ended; several such runs of one process on one file are added up, and so are its files \
           if no single one is significant. A page is the smallest unit that the kernel moves, and \
           64 calls are too many for reading a header. Writes that are made durable one by one \
           (fsync between them, O_SYNC, O_DSYNC) do not count because they could not be combined, \
           nor do writes that others wait for (pipes, sockets, terminals), nor reads that ask for 4 KiB \
           or more and get what there is up to the end of the file. Silent below 3 % of the \
           recorded time instead of 1 %: unbuffered output is visible at once and survives a crash \
           of the program, which has its value in a log. Reads and writes of one file are two \
           findings.",
    cost: "calls beyond the number that a buffer of 64 KiB would need, times their median duration",
    advice: "Use a buffer of 64 KiB: stdio with setvbuf in C, open with buffering= in Python, \
           BufferedOutputStream in Java, bufio.NewWriterSize in Go, BufWriter in Rust, a stream \
           with highWaterMark in Node.js; or writev for pieces that are apart in memory.",
    not_when: "Not when each piece must be visible to readers at once, such as lines of a log that \
           a person follows.",
    bad: "for (i = 0; i < n; i++)\n    write(fd, &record[i], sizeof record[i]);",
    good: "FILE *f = fdopen(fd, \"w\");\nsetvbuf(f, NULL, _IOFBF, 65536);\nfor (i = 0; i < n; i++)\n    \
           fwrite(&record[i], sizeof record[i], 1, f);\nfclose(f);",
    reference: "Thakur, Gropp, Lusk: Data Sieving and Collective I/O in ROMIO (1999); Drishti's small-request rule",
};

/// One process on one file in one direction.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    head: Head,
    /// Calls and bytes of the run that goes on.
    run: u64,
    run_bytes: i64,
    /// Its durations, until it is long enough.
    run_durations: Vec<i64>,
    first: Examples,
    /// Calls and bytes of runs that were long enough.
    calls: u64,
    bytes: i64,
    durations: Durations,
    examples: Examples,
}

impl Stream {
    fn stop(&mut self) {
        self.run = 0;
        self.run_bytes = 0;
        self.run_durations.clear();
        self.first = Examples::default();
    }

    fn add(&mut self, call: &Call, bytes: i64) {
        self.run += 1;
        self.run_bytes += bytes;
        if self.run <= MIN_RUN {
            self.run_durations.push(call.dur_ns);
            self.first.add(call);
        }
        if self.run == MIN_RUN {
            self.calls += self.run;
            self.bytes += self.run_bytes;
            for ns in self.run_durations.drain(..) {
                self.durations.add(ns);
            }
            self.examples.add_all(&self.first);
        } else if self.run > MIN_RUN {
            self.calls += 1;
            self.bytes += bytes;
            self.durations.add(call.dur_ns);
            self.examples.add(call);
        }
    }

    fn spare(&self) -> i64 {
        let calls = i64::try_from(self.calls).unwrap_or(i64::MAX);
        calls - (self.bytes + BUFFER - 1) / BUFFER
    }
}

rule! {
    pub struct SmallSequential {
        streams: Bounded<(i32, FileId, bool), Stream>
            = Bounded::new(|stream| stream.calls + stream.run),
    }
}

impl Rule for SmallSequential {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file else { return };
        if matches!(call.kind, Kind::Sync | Kind::SyncRange) {
            if let Some(stream) = self.streams.get_mut(&(call.pid, file, true)) {
                stream.stop();
            }
            return;
        }
        let Some((start, end)) = call.range() else { return };
        let regular = context.file(call).is_some_and(|file| file.is_regular());
        let durable = context.synced.is_some() || context.open().is_some_and(Description::is_synchronous);
        if !regular || durable || call.asynchronous {
            return;
        }
        let file_size = context.file(call).and_then(|file| file.size);
        // A reader that follows a log has a larger buffer. It may see more of the log than calls have shown.
        let at_end = call.kind == Kind::Read
            && call.size.is_some_and(|size| size >= SMALL)
            && file_size.is_none_or(|size| end >= size);
        let small = end - start < SMALL && !at_end;
        let key = (call.pid, file, call.kind == Kind::Write);
        if !small {
            if let Some(stream) = self.streams.get_mut(&key) {
                stream.stop();
                stream.head.step(start, end);
            }
            return;
        }
        let stream = self.streams.entry(key);
        if stream.head.step(start, end) != Step::Next || stream.run == 0 {
            stream.stop();
            if stream.comm.is_empty() {
                stream.comm = call.comm_text();
            }
        }
        stream.add(call, end - start);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // By process and direction: files that matter only together.
        let mut together: HashMap<(i32, bool), Together> = HashMap::new();
        for ((pid, file, write), stream) in self.streams.iter() {
            let cost = stream.spare().saturating_mul(stream.durations.median_ns());
            if stream.calls < MIN_RUN || cost <= 0 {
                continue;
            }
            if !matters(cost, run) {
                together.entry((*pid, *write)).or_default().add(stream, cost);
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let (calls, bytes) = (stream.calls as i64, stream.bytes);
            let (verb, names) = words(*write);
            out.push(Found {
                cost_ns: Some(cost),
                costs: costs(*write),
                title: format!(
                    "{} {verb} {path} sequentially in {} pieces of {} on average",
                    stream.comm,
                    units::count(calls),
                    units::bytes(bytes / calls.max(1)),
                ),
                subject: Subject::process(*pid, &stream.comm).with_file(*file, path),
                evidence: vec![
                    number(verb, calls),
                    number("bytes", bytes),
                    number("spare_calls", stream.spare()),
                    number("median_ns", stream.durations.median_ns()),
                ],
                examples: stream.examples.list(),
                query: calls!("pid = {pid} AND file_id = {file} AND syscall IN ({names}) AND bytes < {SMALL}"),
                ..Found::default()
            });
        }
        for ((pid, write), all) in together {
            if all.files < 2 || !matters(all.cost, run) {
                continue;
            }
            let (verb, names) = words(write);
            out.push(Found {
                cost_ns: Some(all.cost),
                costs: costs(write),
                title: format!(
                    "{} {verb} {} files sequentially in {} pieces of {} on average",
                    all.comm,
                    units::count(all.files),
                    units::count(all.calls),
                    units::bytes(all.bytes / all.calls.max(1)),
                ),
                subject: Subject::process(pid, &all.comm),
                evidence: vec![
                    number(verb, all.calls),
                    number("bytes", all.bytes),
                    number("spare_calls", all.spare),
                    number("files", all.files),
                ],
                examples: all.examples.list(),
                query: calls!("pid = {pid} AND syscall IN ({names}) AND bytes < {SMALL}"),
                ..Found::default()
            });
        }
    }
}

/// Files of one process that matter only together.
#[derive(Default)]
struct Together {
    comm: Text,
    files: i64,
    calls: i64,
    bytes: i64,
    spare: i64,
    cost: i64,
    examples: Examples,
}

impl Together {
    fn add(&mut self, stream: &Stream, cost: i64) {
        if self.files == 0 {
            self.comm.clone_from(&stream.comm);
        }
        self.examples.add_all(&stream.examples);
        self.files += 1;
        self.calls += i64::try_from(stream.calls).unwrap_or(i64::MAX);
        self.bytes += stream.bytes;
        self.spare += stream.spare();
        self.cost = self.cost.saturating_add(cost);
    }
}

/// Whether a loss is worth a buffer.
fn matters(cost_ns: i64, run: &Run) -> bool {
    run.matters(cost_ns) && run.matters_from(cost_ns, MIN_PART)
}

/// The calls that have the time.
fn costs(write: bool) -> Costs {
    Costs::of(&[if write { Kind::Write } else { Kind::Read }])
}

/// The verb of its calls, and the calls themselves. The evidence that counts them also has the verb
/// as its name, because findings with different evidence are not merged.
fn words(write: bool) -> (&'static str, &'static str) {
    if write {
        ("writes", "'write', 'writev', 'pwrite64', 'pwritev', 'pwritev2'")
    } else {
        ("reads", "'read', 'readv', 'pread64', 'preadv', 'preadv2'")
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_a_ring_with_one_write_at_a_time() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..2000 {
            s.ring(1, |s, _| s.write(fd, 300));
        }
        fires("small-sequential", s);
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..500 {
            s.ring(4, |s, _| s.write(fd, 300));
        }
        silent("small-sequential", s);
    }

    #[test]
    fn fires_on_records_written_one_by_one() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..500 {
            s.write(fd, 100);
        }
        let found = fires("small-sequential", s);
        assert_eq!(found.len(), 1);
        // 50,000 bytes need one call of 64 KiB.
        assert_eq!(found[0].evidence[2].value, 499.0);
    }

    #[test]
    fn fires_on_many_files_that_matter_together() {
        let mut s = Scenario::new();
        for i in 0..100 {
            let fd = s.open(&format!("/data/out/{i}"), "O_WRONLY|O_CREAT");
            for _ in 0..100 {
                s.write(fd, 100);
            }
            s.wait_us(500);
            s.close(fd);
        }
        s.wait_ms(20);
        s.stat("/data");
        let found = fires("small-sequential", s);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[3].value, 100.0);
    }

    #[test]
    fn fires_on_reads_at_given_offsets() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 20);
        for i in 0..200 {
            s.pread(fd, 512, i * 512);
        }
        fires("small-sequential", s);
    }

    #[test]
    fn reads_and_writes_of_one_file_are_two_findings() {
        let mut s = Scenario::new();
        let fd = s.open("/data/table", "O_RDWR|O_CREAT");
        for _ in 0..500 {
            s.write(fd, 100);
        }
        s.lseek(fd, 0);
        for _ in 0..400 {
            s.read(fd, 100);
        }
        let found = fires("small-sequential", s);
        let first = |i: usize| (&*found[i].evidence[0].name, found[i].evidence[0].value);
        assert_eq!(found.len(), 2);
        assert_eq!((first(0), first(1)), (("writes", 500.0), ("reads", 400.0)));
        assert!(found[0].query.contains("'write'") && found[1].query.contains("'read'"));
    }

    #[test]
    fn silent_on_a_log_that_costs_a_hundredth() {
        let log = |wait_us: i64| {
            let mut s = Scenario::new();
            let fd = s.open("/data/appendonly", "O_WRONLY|O_CREAT|O_APPEND");
            for _ in 0..1000 {
                s.write(fd, 80);
                s.wait_us(wait_us);
            }
            s
        };
        silent("small-sequential", log(60));
        fires("small-sequential", log(20));
    }

    #[test]
    fn silent_on_what_was_appended_since() {
        let follows = |from: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/var/log/app", "O_RDONLY", 1 << 20);
            s.lseek(fd, from);
            for _ in 0..500 {
                s.short_read(fd, 35, 65536);
            }
            s
        };
        silent("small-sequential", follows(1 << 20));
        fires("small-sequential", follows(0));
    }

    #[test]
    fn silent_when_each_write_is_made_durable() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for _ in 0..500 {
            s.write(fd, 100);
            s.fsync(fd);
        }
        silent("small-sequential", s);
    }

    #[test]
    fn silent_on_random_and_on_large() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 30);
        for i in 0..500 {
            s.pread(fd, 512, (i * 7919 % 1000) * 4096);
        }
        for _ in 0..500 {
            s.read(fd, 65536);
        }
        silent("small-sequential", s);
    }

    #[test]
    fn silent_when_the_time_is_nothing() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        for _ in 0..100 {
            s.write(fd, 80);
            s.wait_ms(100);
        }
        silent("small-sequential", s);
    }
}

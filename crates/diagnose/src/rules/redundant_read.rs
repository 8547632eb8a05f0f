//! `redundant-read`: the same bytes are read again and again.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, evidence, number};
use crate::sql;
use crate::state::Context;
use crate::state::intervals::Intervals;
use crate::text::Text;

/// Bytes read over different bytes read.
const MIN_RATIO: f64 = 2.0;
/// Repeated calls from which on they count.
const MIN_CALLS: u64 = 64;

static INFO: RuleInfo = RuleInfo {
    id: "redundant-read",
    name: "Same bytes read again",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: true,
    what: "A process reads bytes of a file that it has read before and that nobody has changed since. They come out of \
           the page cache at best: a system call and a copy each time.",
    when: "A process has read over twice as many bytes of a file as there are different ones among them, in 64 or more \
           calls that read only bytes it had read before. The first read of bytes after a write to them, or after the file was cut, is new.",
    cost: "the time of the reads of the file, times the share of bytes that were read before",
    advice: "Keep what was read in memory (a cache of blocks, of parsed objects), or map the file.",
    not_when: "Not when the memory is better used by the page cache, which processes share: databases that leave \
               caching to the kernel do this on purpose.",
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
}

/// The rule's state.
#[derive(Debug)]
pub struct RedundantRead {
    reads: Bounded<(i32, FileId), Reads>,
    /// The processes that have read a file.
    readers: Bounded<FileId, Vec<i32>>,
}

impl Default for RedundantRead {
    fn default() -> Self {
        Self {
            reads: Bounded::new(|reads| reads.repeats),
            readers: Bounded::new(|readers| readers.len() as u64),
        }
    }
}

impl RedundantRead {
    /// Bytes of a file have changed: what was read of them is not what is there.
    fn changed(&mut self, id: FileId, change: impl Fn(&mut Intervals)) {
        let Some(readers) = self.readers.get_mut(&id) else { return };
        readers.retain(|pid| {
            let reads = self.reads.get_mut(&(*pid, id));
            reads.map(|reads| change(&mut reads.seen)).is_some()
        });
    }
}

impl Rule for RedundantRead {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Read, Kind::Write, Kind::Truncate, Kind::Open])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        match call.kind {
            Kind::Open => {
                if call.succeeded() && call.has_flag("O_TRUNC") {
                    self.changed(id, Intervals::clear);
                }
                return;
            }
            Kind::Truncate => {
                if call.succeeded()
                    && let Some(length) = call.arg("length").and_then(|n| n.parse::<i64>().ok()) {
                    self.changed(id, |seen| seen.truncate(length.max(0)));
                }
                return;
            }
            _ => {}
        }
        let Some((start, end)) = call.range() else { return };
        if !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        if call.kind == Kind::Write {
            self.changed(id, |seen| seen.remove(start, end));
            return;
        }
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
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), reads) in self.reads.iter() {
            let unique = reads.bytes - reads.again;
            let ratio = reads.bytes as f64 / unique.max(1) as f64;
            let cost = (reads.time_ns as f64 * reads.again as f64 / reads.bytes.max(1) as f64) as i64;
            if reads.repeats < MIN_CALLS || ratio <= MIN_RATIO || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} reads {} of {path}, {:.1} times the {} that are different",
                    reads.comm,
                    units::bytes(reads.bytes),
                    ratio,
                    units::bytes(unique),
                ),
                subject: Subject::process(*pid, &reads.comm).with_file(*file, path),
                evidence: vec![
                    number("bytes_read", reads.bytes),
                    number("different_bytes", unique),
                    number("repeated_calls", reads.repeats as i64),
                    evidence("ratio", ratio),
                ],
                examples: reads.examples.list(),
                query: sql::calls(&format!(
                    "pid = {pid} AND file_id = {} AND call_reads(syscall)",
                    file.0
                )),
                caveats: if reads.seen.is_coarse() {
                    vec!["bytes were counted by pages, as the reads are scattered".to_owned()]
                } else {
                    Vec::new()
                },
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

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
        let fd = s.open("/data/mailbox", "O_RDWR|O_CREAT");
        for _ in 0..500 {
            s.pwrite(fd, 4096, 0);
            s.pread(fd, 4096, 0);
        }
        silent("redundant-read", s);
    }
}

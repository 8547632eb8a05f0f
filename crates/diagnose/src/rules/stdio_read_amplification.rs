//! `stdio-read-amplification`: seeks of a stream that each read a buffer for a few bytes.

use crate::library::{Made, Makers};
use crate::prelude::*;

/// Seeks of a stream from which on they are no accident.
const MIN_SEEKS: i64 = 100;
/// Bytes read for each byte that the program got, from which on the buffer is in the way.
const MIN_AMPLIFICATION: i64 = 8;
/// Time of a read that counts: one that takes longer waits for the device, whatever its size.
const MAX_READ_NS: i64 = 10_000;
/// Part of the time of reads that smaller ones would save.
const SAVED: i64 = 5;
/// Reads are alike whose mean lengths differ by one in so many bytes at most.
const ALIKE: i64 = 8;

static INFO: RuleInfo = RuleInfo {
    id: "stdio-read-amplification",
    name: "Seeks of a stream that each read a whole buffer",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Stdio],
    kinds: kinds![Read, Seek],
    about_calls: true,
    what: "A program reads small pieces at many places of a file through a FILE: fseek and fread. Each fseek \
           discards the buffer, moves the position to the start of a block (lseek) and reads a whole buffer, \
           4 KiB or more, of which the program takes a few bytes.",
    when: "A process seeks 100 times or more on streams of a file, seeks and reads there read eight times as \
           many bytes from the file as its calls return, and there is at least one lseek for every two reads.",
    cost: "the time of the lseek calls, which pread does not need, and a fifth of the time of the reads, of \
           which no more than 10 µs each count: as much longer as 4 KiB from the page cache took than 16 bytes. \
           Where library calls were too many to be recorded (--library-budget), system calls on the file that \
           read as much at a time count, too",
    advice: "Use pread on the descriptor (fileno), which needs one call and reads only the wanted bytes. Or \
             make the buffer as small as the pieces (setvbuf), or visit the places in the order of the file so \
             that one buffer serves several.",
    not_when: "Not when the same blocks are wanted again soon: then read them once, and keep them.",
    bad: "fseek(f, n * 4096, SEEK_SET);  /* lseek, and read of 4096 bytes */\nfread(record, 16, 1, f);",
    good: "pread(fileno(f), record, 16, n * 4096);",
    reference: "setvbuf(3), fseek(3)",
};

#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    seeks: i64,
    /// Bytes that the program got.
    got: i64,
    reads: i64,
    read_bytes: i64,
    lseeks: i64,
    lseeks_ns: i64,
    reads_ns: i64,
    /// Time and number of these calls, and the bytes that they read, after library calls were only counted.
    later_ns: i64,
    later_reads: i64,
    later_bytes: i64,
    examples: Examples,
}

impl Stream {
    /// A system call in no library call that was recorded.
    fn later(&mut self, call: &Call) {
        match call.kind {
            Kind::Read if call.moved() > 0 => {
                self.later_reads += 1;
                self.later_bytes = self.later_bytes.saturating_add(call.moved());
                self.later_ns = self.later_ns.saturating_add(call.dur_ns.min(MAX_READ_NS) / SAVED);
            }
            Kind::Seek => self.later_ns = self.later_ns.saturating_add(call.dur_ns),
            _ => {}
        }
    }

    /// Whether the later calls read as much at a time as the reads that are known to fill a buffer.
    fn goes_on(&self) -> bool {
        let each = self.read_bytes / self.reads.max(1);
        let later = self.later_bytes / self.later_reads.max(1);
        self.later_reads > 0 && (each - later).abs() <= each / ALIKE
    }

    fn made(&mut self, made: &Made) -> bool {
        match made.kind {
            Kind::Read if made.bytes > 0 => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(made.bytes);
                self.reads_ns = self.reads_ns.saturating_add(made.dur_ns.min(MAX_READ_NS));
                true
            }
            Kind::Seek => {
                self.lseeks += 1;
                self.lseeks_ns = self.lseeks_ns.saturating_add(made.dur_ns);
                false
            }
            _ => false,
        }
    }

    fn cost(&self) -> i64 {
        let known = self.lseeks_ns.saturating_add(self.reads_ns / SAVED);
        known.saturating_add(if self.goes_on() { self.later_ns } else { 0 })
    }

    fn is_amplified(&self) -> bool {
        self.seeks >= MIN_SEEKS
            && self.got > 0
            && self.read_bytes / MIN_AMPLIFICATION >= self.got
            && self.reads >= MIN_SEEKS
            && self.lseeks >= self.reads / 2
    }
}

rule! {
    pub struct StdioReadAmplification {
        makers: Makers<()>,
        streams: Bounded<(i32, FileId), Stream> = Bounded::new(|stream| stream.seeks.unsigned_abs()),
    }
}

impl Rule for StdioReadAmplification {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Library]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Library(call) = row else { return };
        if call.class != "stdio" {
            self.makers.other(call.id);
            return;
        }
        for made in self.makers.maker(call.id, ()) {
            if let Some(file) = made.file {
                self.streams.entry((made.pid, file)).made(&made);
            }
        }
        let Some(file) = call.file else { return };
        let (seeks, got) = match call.function {
            "fseek" | "fseeko" | "fseeko64" | "rewind" => (1, 0),
            "fread" | "fread_unlocked" | "getline" | "getdelim" => (0, call.moved()),
            // How many bytes it returned is not known: no more than were asked for.
            "fgets" => (0, call.moved()),
            _ => return,
        };
        let stream = self.streams.entry((call.pid, file));
        stream.seeks += seeks;
        stream.got = stream.got.saturating_add(got);
        if stream.comm.is_empty() {
            stream.comm = call.comm.into();
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.user_call.is_none() {
            let stream = call.file.and_then(|file| self.streams.get_mut(&(call.pid, file)));
            if let Some(stream) = stream.filter(|stream| stream.seeks >= MIN_SEEKS) {
                stream.later(call);
            }
            return;
        }
        if !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        if let Some(((), made)) = self.makers.call(call)
            && let Some(file) = made.file
        {
            let stream = self.streams.entry((made.pid, file));
            if stream.made(&made) {
                stream.examples.add(call);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), stream) in self.streams.iter() {
            if !stream.is_amplified() || !run.matters(stream.cost()) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let times = stream.read_bytes as f64 / stream.got as f64;
            out.push(Found {
                cost_ns: Some(stream.cost()),
                costs: Costs::of(&[Kind::Seek, Kind::Read]),
                title: format!(
                    "{} reads {} of {path} to get {} of it: each of {} discards the buffer of the stream",
                    stream.comm,
                    units::bytes(stream.read_bytes),
                    units::bytes(stream.got),
                    counted(stream.seeks, "seek", "seeks"),
                ),
                subject: Subject::process(*pid, &stream.comm).with_file(*file, path),
                evidence: vec![
                    number("seeks", stream.seeks),
                    number("bytes_returned", stream.got),
                    number("bytes_read", stream.read_bytes),
                    evidence("amplification", times),
                    number("reads", stream.reads),
                    number("lseeks", stream.lseeks),
                ],
                examples: stream.examples.list(),
                caveats: match stream.goes_on() {
                    true => vec![
                        "library calls were only counted later on (--library-budget); the reads after that are as long, and \
                         count as fillings of the buffer"
                            .to_owned(),
                    ],
                    false => Vec::new(),
                },
                query: calls!(
                    "pid = {pid} AND file_id = {file} AND user_call IN \
                     (SELECT user_call FROM user_calls WHERE class = 'stdio')"
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn lookups(n: i64, wanted: i64, block: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..n {
            let at = (i * 7919 % 1000) * block;
            s.library("stdio", "fseek", "/data/table", 0, |s| {
                s.lseek(fd, at);
                s.read(fd, block);
            });
            s.library("stdio", "fread", "/data/table", wanted, |_| ());
        }
        s
    }

    #[test]
    fn fires_on_a_buffer_for_few_bytes() {
        let found = fires("stdio-read-amplification", lookups(200, 16, 4096));
        let value = |name: &str| found[0].evidence.iter().find(|e| e.name == name).unwrap().value;
        assert_eq!((value("seeks"), value("amplification")), (200.0, 256.0));
        assert_eq!((value("bytes_returned"), value("bytes_read")), (3200.0, 819_200.0));
    }

    /// Library calls that are too many are counted from some time on.
    #[test]
    fn system_calls_of_counted_library_calls_count() {
        let later = |block: i64| {
            let mut s = lookups(200, 16, 4096);
            let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
            for i in 0..800 {
                s.lseek(fd, i * 7919 % 1000 * 4096);
                s.read(fd, block);
            }
            fires("stdio-read-amplification", s)
        };
        let (alike, others) = (later(4096), later(100_000));
        assert!(alike[0].cost_ns > others[0].cost_ns.map(|cost| 3 * cost));
        assert_eq!((alike[0].caveats.len(), others[0].caveats.len()), (1, 0));
    }

    #[test]
    fn silent_when_the_buffer_is_wanted() {
        silent("stdio-read-amplification", lookups(200, 4096, 4096));
    }

    #[test]
    fn silent_on_few() {
        silent("stdio-read-amplification", lookups(50, 16, 4096));
    }
}

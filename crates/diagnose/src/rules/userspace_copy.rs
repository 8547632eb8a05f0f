//! `userspace-copy`: what is read from one file is written to another, unchanged.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Costs, Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text::Text;

/// Pairs from which on they count.
const MIN_PAIRS: u64 = 16;
/// Bytes from which on they count.
const MIN_BYTES: i64 = 1 << 20;
/// Pieces below this cost their calls rather than their bytes: a page.
const SMALL: i64 = 4096;
/// Share of pairs among the thread's reads of the file.
const MIN_PART: f64 = 0.9;

static INFO: RuleInfo = RuleInfo {
    id: "userspace-copy",
    name: "Copying through the program",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: true,
    what: "A thread reads a piece of one file and writes a piece of the same size to another file or a socket, over and \
           over. All bytes cross into the program and back.",
    when: "16 or more pairs and 1 MiB or more, where a read is directly followed by a write of as many bytes to another \
           descriptor, both going on where the pair before ended, for nine tenths of the reads of the file or more. With \
           content hashes the bytes must be the same too; without, a program that changes bytes but not their number \
           (encryption) looks alike, which the finding then says.",
    cost: "the shorter of the time of the reads and that of the writes: one of the two copies. Of pieces below 4 KiB both: there the calls \
           take longer than the bytes",
    advice: "copy_file_range between files (which shares the blocks on btrfs and xfs), sendfile or splice from a file to a \
             socket. shutil.copyfile in Python, FileChannel.transferTo in Java, io.Copy between two os.File in Go, fs.copyFile in \
             Node.js and std::fs::copy in Rust use them where they can.",
    not_when: "Not when the program looks at the bytes (checksums, compression), and not between file systems on kernels \
               before 5.19.",
    bad: "while ((n = read(in, buffer, sizeof buffer)) > 0)\n    write(out, buffer, n);",
    good: "while (copy_file_range(in, NULL, out, NULL, 1 << 30, 0) > 0)\n    ;",
    reference: "copy_file_range(2); coreutils 9 does so",
};

/// The read that a thread made last.
#[derive(Clone, Debug)]
struct LastRead {
    file: FileId,
    bytes: i64,
    hash: Option<i64>,
    dur_ns: i64,
    sequential: bool,
}

/// A thread that copies from a file to another.
#[derive(Debug, Default)]
struct Copy {
    pid: i32,
    comm: Text,
    pairs: u64,
    bytes: i64,
    read_ns: i64,
    write_ns: i64,
    /// Where the next piece is written.
    end: Option<i64>,
    hashed: u64,
    examples: Examples,
}

/// The rule's state.
#[derive(Debug)]
pub struct UserspaceCopy {
    last: Bounded<i32, Option<LastRead>>,
    /// Reads of a thread from a file, and where the last ended.
    reads: Bounded<(i32, FileId), (u64, Option<i64>)>,
    copies: Bounded<(i32, FileId, FileId), Copy>,
}

impl Default for UserspaceCopy {
    fn default() -> Self {
        Self {
            last: Bounded::new(|_| 0),
            reads: Bounded::new(|reads| reads.0),
            copies: Bounded::new(|copy| copy.pairs),
        }
    }
}

impl Rule for UserspaceCopy {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Read, Kind::Write])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(file), false) = (call.file, call.asynchronous) else { return };
        let last = self.last.entry(call.tid).take();
        if call.kind == Kind::Read {
            let regular = context.file(call).is_some_and(|file| file.is_regular());
            let (Some((start, end)), true) = (call.range(), regular) else { return };
            let (count, before) = self.reads.entry((call.tid, file));
            *count += 1;
            let sequential = before.replace(end) == Some(start) || *count == 1;
            *self.last.entry(call.tid) = Some(LastRead {
                file,
                bytes: end - start,
                hash: call.hash,
                dur_ns: call.dur_ns,
                sequential,
            });
            return;
        }
        let Some(last) = last.filter(|last| last.sequential && last.file != file) else { return };
        let hashed = last.hash.is_some() && call.hash.is_some();
        if call.moved() != last.bytes || hashed && last.hash != call.hash {
            return;
        }
        let copy = self.copies.entry((call.tid, last.file, file));
        let goes_on = copy.pairs == 0 || call.offset.is_none() || copy.end == call.offset;
        copy.end = call.offset.map(|offset| offset + last.bytes);
        if !goes_on {
            return;
        }
        if copy.pairs == 0 {
            copy.pid = call.pid;
            copy.comm = call.comm_text();
        }
        copy.pairs += 1;
        copy.hashed += u64::from(hashed);
        copy.bytes += last.bytes;
        copy.read_ns += last.dur_ns;
        copy.write_ns += call.dur_ns;
        copy.examples.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((tid, from, to), copy) in self.copies.iter() {
            let reads = self.reads.get(&(*tid, *from)).map_or(0, |(count, _)| *count);
            let part = copy.pairs as f64 / reads.max(1) as f64;
            let small = copy.bytes / i64::try_from(copy.pairs.max(1)).unwrap_or(i64::MAX) < SMALL;
            let cost = match small {
                true => copy.read_ns + copy.write_ns,
                false => copy.read_ns.min(copy.write_ns),
            };
            if copy.pairs < MIN_PAIRS || copy.bytes < MIN_BYTES || part < MIN_PART || !run.matters(cost) {
                continue;
            }
            let name = |id: &FileId| run.state.files.get(*id).map_or("", |f| f.name());
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_files(vec![*from, *to]),
                title: format!(
                    "{} copies {} from {} to {} in {} reads and writes",
                    copy.comm,
                    units::bytes(copy.bytes),
                    name(from),
                    name(to),
                    units::count(2 * copy.pairs as i64),
                ),
                subject: Subject {
                    tid: Some(*tid),
                    ..Subject::process(copy.pid, &copy.comm).with_file(*from, name(from))
                },
                evidence: vec![
                    number("pairs", copy.pairs as i64),
                    number("bytes", copy.bytes),
                    number("pairs_with_equal_hashes", copy.hashed as i64),
                ],
                examples: copy.examples.list(),
                query: sql::calls(&format!(
                    "tid = {tid} AND file_id IN ({}, {}) AND (call_reads(syscall) OR call_writes(syscall))",
                    from.0, to.0
                )),
                caveats: if copy.hashed < copy.pairs {
                    vec![
                        "whether the bytes are the same is not known: record with --content hash".to_owned(),
                    ]
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
    fn fires_on_a_loop() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b", "O_WRONLY|O_CREAT");
        for _ in 0..80 {
            s.read(from, 128 << 10);
            s.write(to, 128 << 10);
        }
        fires("userspace-copy", s);
    }

    #[test]
    fn silent_when_sizes_differ_or_contents_do() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/a.gz", "O_WRONLY|O_CREAT");
        for i in 0..80 {
            s.read(from, 128 << 10);
            s.write(to, 40_000 + i);
        }
        let from = s.open_existing("/data/b", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b.enc", "O_WRONLY|O_CREAT");
        for i in 0..80 {
            s.hash(2 * i);
            s.read(from, 128 << 10);
            s.hash(2 * i + 1);
            s.write(to, 128 << 10);
        }
        silent("userspace-copy", s);
    }
}

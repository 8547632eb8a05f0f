//! `userspace-copy`: what is read from one file is written to another, unchanged.

use std::collections::BTreeMap;

use crate::finding::Evidence;
use crate::prelude::*;

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
    kinds: kinds![Read, Write],
    about_calls: true,
    what: "A process reads a piece of one file and writes a piece of the same size to another file \
           or a socket, over and over. All bytes are copied into the program and back.",
    when: "16 or more pairs with 1 MiB or more in all. In a pair, a thread's read is directly \
           followed by a write of the same number of bytes to another descriptor, or another thread \
           of the process writes the bytes of one of its last 16 reads at the same place. Both \
           continue where the previous pair ended, and every read of the one file and every write \
           to the other belongs to a pair. Data that the process has written itself is not a copy: \
           it had the bytes. Files of one process that are not significant by themselves are added \
           up. With content hashes, the bytes must also be the same for nine tenths of the reads or \
           more. Without hashes, a program that changes bytes but not their number (encryption) \
           looks the same, and the finding says so. A program that changes their number also writes \
           pieces of its buffer's size, except for the last one.",
    cost: "the shorter of the time of the reads and the time of the writes: one of the two copies. \
           For pieces below 4 KiB both, because there the calls take longer than the bytes",
    advice: "copy_file_range between files (which shares the blocks on btrfs and xfs), sendfile or splice from a file to a \
             socket. shutil.copyfile in Python, FileChannel.transferTo in Java, io.Copy between two os.File in Go, fs.copyFile in \
             Node.js and std::fs::copy in Rust use them where they can.",
    not_when: "Not when the program examines the bytes (checksums, compression), and not between \
           file systems on kernels before 5.19.",
    bad: "while ((n = read(in, buffer, sizeof buffer)) > 0)\n    write(out, buffer, n);",
    good: "while (copy_file_range(in, NULL, out, NULL, 1 << 30, 0) > 0)\n    ;",
    reference: "copy_file_range(2); coreutils 9 uses it",
};

/// A read that a write may follow.
#[derive(Clone, Debug)]
struct LastRead {
    tid: i32,
    file: FileId,
    start: i64,
    bytes: i64,
    hash: Option<i64>,
    dur_ns: i64,
    sequential: bool,
}

/// Reads of a process that a write may follow: threads take turns.
const RECENT: usize = 16;

/// A process that copies from a file to another.
#[derive(Debug, Default)]
struct Copy {
    comm: Text,
    tid: i32,
    pairs: u64,
    bytes: i64,
    read_ns: i64,
    write_ns: i64,
    /// Where the next piece is written.
    end: Option<i64>,
    hashed: u64,
    examples: Examples,
}

impl Copy {
    /// One of the two copies.
    fn cost(&self) -> i64 {
        let small = self.bytes / i64::try_from(self.pairs.max(1)).unwrap_or(i64::MAX) < SMALL;
        match small {
            true => self.read_ns + self.write_ns,
            false => self.read_ns.min(self.write_ns),
        }
    }

    fn add(&mut self, other: &Self) {
        if self.pairs == 0 {
            self.comm.clone_from(&other.comm);
            self.tid = other.tid;
        }
        self.pairs += other.pairs;
        self.bytes += other.bytes;
        self.hashed += other.hashed;
        self.examples.add_all(&other.examples);
    }

    fn evidence(&self) -> Vec<Evidence> {
        vec![
            number("pairs", self.pairs as i64),
            number("bytes", self.bytes),
            number("pairs_with_equal_hashes", self.hashed as i64),
        ]
    }

    fn caveats(&self) -> Vec<String> {
        if self.hashed < self.pairs {
            vec!["fathom cannot tell whether the bytes are the same: record with --content hash".to_owned()]
        } else {
            Vec::new()
        }
    }
}

rule! {
    pub struct UserspaceCopy {
        last: Bounded<i32, Vec<LastRead>>,
        /// Reads of a process from a file, and where the last ended.
        reads: Bounded<(i32, FileId), (u64, Option<i64>)> = Bounded::new(|reads| reads.0),
        /// Writes of a process to a file.
        writes: Bounded<(i32, FileId), u64> = Bounded::new(|writes| *writes),
        copies: Bounded<(i32, FileId, FileId), Copy> = Bounded::new(|copy| copy.pairs),
    }
}

impl Rule for UserspaceCopy {
    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(file), false) = (call.file, call.asynchronous) else { return };
        let last = self.last.entry(call.pid);
        if call.kind == Kind::Read {
            // A process that wrote the bytes has them.
            let own = self.writes.get(&(call.pid, file)).is_some();
            let regular = context.file(call).is_some_and(|file| file.is_regular()) && !own;
            let (Some((start, end)), true) = (call.range(), regular) else { return };
            let (count, before) = self.reads.entry((call.pid, file));
            *count += 1;
            let sequential = before.replace(end) == Some(start) || *count == 1;
            if last.len() >= RECENT {
                last.remove(0);
            }
            last.push(LastRead {
                tid: call.tid,
                file,
                start,
                bytes: end - start,
                hash: call.hash,
                dur_ns: call.dur_ns,
                sequential,
            });
            return;
        }
        // As /dev/null does, whose writes cost nothing.
        if context.file(call).is_some_and(|file| &*file.file_type == "char") {
            return;
        }
        *self.writes.entry((call.pid, file)) += 1;
        // The thread's own read right before, unless another thread read the same place.
        let own = last.iter().rposition(|read| read.tid == call.tid);
        let same = |read: &LastRead| read.bytes == call.moved() && read.file != file;
        let there = |read: &LastRead| same(read) && Some(read.start) == call.offset;
        let fit = own.filter(|at| last.get(*at).is_some_and(there));
        let fit = fit.or_else(|| last.iter().position(there));
        let fit = fit.or(own.filter(|at| last.get(*at).is_some_and(same)));
        if fit.is_none()
            && let Some(own) = own
        {
            last.remove(own);
        }
        let Some(last) = fit.map(|at| last.remove(at)) else { return };
        let hashed = last.hash.is_some() && call.hash.is_some();
        if !last.sequential || hashed && last.hash != call.hash {
            return;
        }
        let copy = self.copies.entry((call.pid, last.file, file));
        let goes_on = copy.pairs == 0 || call.offset.is_none() || copy.end == call.offset;
        copy.end = call.offset.map(|offset| offset.saturating_add(last.bytes));
        if !goes_on {
            return;
        }
        if copy.pairs == 0 {
            copy.comm = call.comm_text();
            copy.tid = call.tid;
        }
        copy.pairs += 1;
        copy.hashed += u64::from(hashed);
        copy.bytes += last.bytes;
        copy.read_ns += last.dur_ns;
        copy.write_ns += call.dur_ns;
        copy.examples.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // By process: files that matter only together.
        let mut together: BTreeMap<i32, (Copy, Vec<FileId>, i64)> = BTreeMap::new();
        let name = |id: &FileId| run.state.files.get(*id).map_or("", |f| f.name());
        for ((pid, from, to), copy) in self.copies.iter() {
            let reads = self.reads.get(&(*pid, *from)).map_or(0, |(count, _)| *count);
            let part = copy.pairs as f64 / reads.max(1) as f64;
            let writes = self.writes.get(&(*pid, *to)).copied().unwrap_or(0);
            // A filter writes pieces of its buffer's size, too, but not the last one.
            let whole = copy.pairs >= reads.max(writes) || copy.hashed == copy.pairs && part >= MIN_PART;
            if !whole {
                continue;
            }
            let cost = copy.cost();
            if copy.pairs < MIN_PAIRS || copy.bytes < MIN_BYTES || !run.matters(cost) {
                let (all, files, sum) = together.entry(*pid).or_default();
                all.add(copy);
                files.extend([*from, *to]);
                *sum = sum.saturating_add(cost);
                continue;
            }
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
                    tid: Some(copy.tid),
                    ..Subject::process(*pid, &copy.comm).with_file(*from, name(from))
                },
                evidence: copy.evidence(),
                examples: copy.examples.list(),
                query: calls!("pid = {pid} AND file_id IN ({from}, {to}) AND (call_reads(syscall) OR call_writes(syscall))"),
                caveats: copy.caveats(),
                ..Found::default()
            });
        }
        for (pid, (copy, mut files, cost)) in together {
            if copy.pairs < MIN_PAIRS || copy.bytes < MIN_BYTES || !run.matters(cost) {
                continue;
            }
            files.sort_unstable();
            files.dedup();
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} copies {} between {} files in {} reads and writes; one of them is {}",
                    copy.comm,
                    units::bytes(copy.bytes),
                    units::count(files.len() as i64),
                    units::count(2 * copy.pairs as i64),
                    files.first().map_or("", name),
                ),
                subject: Subject::process(pid, &copy.comm),
                evidence: copy.evidence(),
                examples: copy.examples.list(),
                query: calls!("pid = {pid} AND (call_reads(syscall) OR call_writes(syscall))"),
                caveats: copy.caveats(),
                costs: Costs::default().of_files(files),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_what_goes_nowhere() {
        let copy = |keeps: bool| {
            let mut s = Scenario::new();
            let from = s.open_existing("/data/big", "O_RDONLY", 64 << 20);
            let to = match keeps {
                true => s.open("/data/copy", "O_WRONLY|O_CREAT"),
                false => s.open_device("/dev/null", "O_WRONLY"),
            };
            for _ in 0..1000 {
                s.read(from, 65536);
                s.write(to, 65536);
            }
            s
        };
        fires("userspace-copy", copy(true));
        silent("userspace-copy", copy(false));
    }

    #[test]
    fn fires_on_many_files_in_few_pieces_each() {
        let mut s = Scenario::new();
        for i in 0..40 {
            let from = s.open_existing(&format!("/data/a{i}"), "O_RDONLY", 10 << 20);
            let to = s.open(&format!("/copy/a{i}"), "O_WRONLY|O_CREAT");
            for _ in 0..5 {
                s.read(from, 2 << 20);
                s.write(to, 2 << 20);
            }
        }
        let found = fires("userspace-copy", s);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].evidence[0].value, 200.0);
    }

    #[test]
    fn silent_on_what_the_process_has_written_itself() {
        // A temporary file for each piece, as for a library that reads from files only.
        let mut s = Scenario::new();
        for i in 0..40 {
            let path = format!("/tmp/{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 3 << 20);
            s.lseek(fd, 0);
            s.read(fd, 3 << 20);
            s.close(fd);
        }
        silent("userspace-copy", s);
    }

    #[test]
    fn fires_on_threads_that_take_turns() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b", "O_WRONLY|O_CREAT");
        for i in 0..80 {
            s.thread(100 + i % 3, "node");
            s.read(from, 128 << 10);
            s.thread(100 + (i + 1) % 3, "node");
            s.write(to, 128 << 10);
        }
        fires("userspace-copy", s);
    }

    /// One read is ahead of the writes, by whichever thread is free.
    #[test]
    fn fires_on_threads_that_read_ahead() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b", "O_WRONLY|O_CREAT");
        for i in 0..=80 {
            s.thread(100 + i % 3, "node");
            if i < 80 {
                s.pread(from, 128 << 10, i64::from(i) << 17);
            }
            // Sometimes the thread that has just read.
            s.thread(100 + (i + i / 4) % 3, "node");
            if i > 0 {
                s.pwrite(to, 128 << 10, i64::from(i - 1) << 17);
            }
        }
        fires("userspace-copy", s);
    }

    #[test]
    fn silent_on_a_filter_with_buffers_of_one_size() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b", "O_WRONLY|O_CREAT");
        for _ in 0..2000 {
            s.read(from, 4096);
            s.write(to, 4096);
        }
        s.write(to, 17);
        silent("userspace-copy", s);
    }

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

//! `content-mismatch`: one process reads other bytes than another wrote there.

use std::collections::VecDeque;

use crate::finding::EXAMPLES;
use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "content-mismatch",
    name: "Bytes read differ from the bytes written",
    group: Group::Correctness,
    needs: &[Input::Calls, Input::Content],
    kinds: kinds![Read, Write, Truncate, Allocate, Transfer, Mmap, Open],
    about_calls: false,
    what: "A process reads a range of a file that was written in one piece and gets different \
           bytes, although no recorded call changed them in between. Either an unrecorded writer \
           changes the file (a process, a mapping, another host), or the disk returns wrong bytes.",
    when: "A read covers exactly the range of a recorded write, both have a hash of all their \
           bytes, and the hashes differ. The read began after the write had ended, no other recorded \
           write, truncation, or hole touched the range in between or during the read, and the file \
           was never mapped for writing.",
    cost: "",
    advice: "Find out which other program writes the file: record with --all, or with --path on the \
           file; fuser and inotifywait name processes. If there is none, check the disk, its \
           cable, and memory.",
    not_when: "",
    bad: "/* two writers without a lock, one of them through mmap */",
    good: "/* one writer, or fcntl locks on ranges */",
    reference: "DIO, section IV-B: hashes that prove which bytes a reader got",
};

/// A write of which everything is known.
#[derive(Clone, Copy, Debug)]
struct Written {
    end: i64,
    hash: i64,
    ended_at_ns: i64,
}

/// A read of other bytes.
#[derive(Debug)]
struct Differing {
    start: i64,
    end: i64,
    ended_at_ns: i64,
    pid: i32,
    comm: Text,
    example: Example,
}

#[derive(Debug, Default)]
struct File {
    /// Writes by where they begin; overlapped ones are dropped.
    writes: std::collections::BTreeMap<i64, Written>,
    mapped: bool,
    /// Reads that a write may have overlapped whose row is still to come.
    differing: VecDeque<Differing>,
    comm: Text,
    pid: i32,
    mismatches: u64,
    bytes: i64,
    examples: Examples,
}

/// Writes of one file that are remembered.
const MAX_WRITES: usize = 1 << 14;
/// Reads of one file for which such a row is waited for.
const MAX_DIFFERING: usize = 1 << 10;

rule! {
    pub struct ContentMismatch {
        files: Bounded<FileId, File>
            = Bounded::new(|file| file.mismatches * 1000 + file.writes.len() as u64),
    }
}

impl File {
    /// Forgets writes that a range touches.
    fn forget(&mut self, start: i64, end: i64) {
        while let Some((&s, _)) = self.writes.range(..end).next_back().filter(|(_, w)| w.end > start) {
            self.writes.remove(&s);
        }
    }

    /// A write of this range began at a time: who read there meanwhile may have got bytes of both.
    fn overlapped(&mut self, start: i64, end: i64, began_ns: i64) {
        self.differing.retain(|read| read.end <= start || end <= read.start || read.ended_at_ns <= began_ns);
    }

    fn count(&mut self, read: Differing) {
        self.mismatches += 1;
        self.bytes += read.end - read.start;
        self.pid = read.pid;
        self.comm = read.comm;
        self.examples.keep(read.example);
    }
}

impl Rule for ContentMismatch {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file.filter(|_| call.succeeded()) else { return };
        if !context.file(call).is_none_or(|f| f.is_regular()) {
            return;
        }
        match call.kind {
            Kind::Read => {
                let (Some((start, end)), Some(hash)) = (call.range(), call.hash) else { return };
                let Some(file) = self.files.get_mut(&id).filter(|f| !f.mapped) else { return };
                let same_range = file.writes.get(&start).filter(|w| w.end == end && w.ended_at_ns <= call.ts_ns);
                if same_range.is_none_or(|w| w.hash == hash) {
                    return;
                }
                if file.differing.len() >= MAX_DIFFERING
                    && let Some(oldest) = file.differing.pop_front()
                {
                    file.count(oldest);
                }
                file.differing.push_back(Differing {
                    start,
                    end,
                    ended_at_ns: call.ended_at_ns(),
                    pid: call.pid,
                    comm: call.comm_text(),
                    example: Example::of(call),
                });
            }
            Kind::Write => {
                let file = self.files.entry(id);
                let Some((start, end)) = call.range() else {
                    // Where it wrote is not known.
                    file.writes.clear();
                    file.overlapped(0, i64::MAX, call.ts_ns);
                    return;
                };
                file.forget(start, end);
                file.overlapped(start, end, call.ts_ns);
                if let Some(hash) = call.hash {
                    if file.writes.len() >= MAX_WRITES {
                        file.writes.pop_first();
                    }
                    let ended_at_ns = call.ended_at_ns();
                    file.writes.insert(start, Written { end, hash, ended_at_ns });
                }
            }
            Kind::Mmap => {
                let writes = call.arg("prot").is_some_and(|prot| prot.contains("PROT_WRITE"));
                if writes && call.has_flag("MAP_SHARED") {
                    self.files.entry(id).mapped = true;
                }
            }
            Kind::Open if !call.has_flag("O_TRUNC") => {}
            // Truncated, punched, or written by a copy in the kernel.
            _ => {
                if let Some(file) = self.files.get_mut(&id) {
                    file.writes.clear();
                    file.overlapped(0, i64::MAX, call.ts_ns);
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (id, file) in self.files.iter() {
            let last = file.differing.back();
            let mismatches = file.mismatches + file.differing.len() as u64;
            if mismatches == 0 {
                continue;
            }
            let bytes = file.bytes + file.differing.iter().map(|read| read.end - read.start).sum::<i64>();
            let (pid, comm) = last.map_or((file.pid, &file.comm), |read| (read.pid, &read.comm));
            let mut examples = file.examples.clone();
            file.differing.iter().take(EXAMPLES).for_each(|read| examples.keep(read.example.clone()));
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "{} read {} of {path} that differ from the bytes written there, in {}",
                    comm,
                    units::bytes(bytes),
                    counted(mismatches as i64, "read", "reads"),
                ),
                subject: Subject::process(pid, comm).with_file(*id, path),
                evidence: vec![number("reads", mismatches as i64), number("bytes", bytes)],
                examples: examples.list(),
                query: calls!("file_id = {id} AND (call_reads(syscall) OR call_writes(syscall))"),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_a_read_during_a_write() {
        let mut s = Scenario::new();
        s.has_content();
        let fd = s.open("/data/a", "O_RDWR|O_CREAT");
        s.hash(11);
        s.pwrite(fd, 4096, 0);
        s.wait_ms(1);
        // The write begins before the read and ends after it.
        let began = s.now();
        s.hash(12);
        s.pread(fd, 4096, 0);
        s.hash(13);
        s.pwrite_since(fd, 4096, began);
        silent("content-mismatch", s);
    }

    #[test]
    fn fires_on_other_bytes() {
        let mut s = Scenario::new();
        s.has_content();
        let fd = s.open("/data/a", "O_RDWR|O_CREAT");
        s.hash(11);
        s.pwrite(fd, 4096, 0);
        s.hash(12);
        s.pread(fd, 4096, 0);
        fires("content-mismatch", s);
    }

    #[test]
    fn silent_when_they_were_written_anew_or_agree() {
        let mut s = Scenario::new();
        s.has_content();
        let fd = s.open("/data/a", "O_RDWR|O_CREAT");
        s.hash(11);
        s.pwrite(fd, 4096, 0);
        s.pread(fd, 4096, 0);
        s.hash(12);
        s.pwrite(fd, 100, 50);
        s.hash(13);
        s.pread(fd, 4096, 0);
        silent("content-mismatch", s);
    }
}

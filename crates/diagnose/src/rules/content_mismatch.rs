//! `content-mismatch`: one process reads other bytes than another wrote there.

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
           bytes, and the hashes differ. No other recorded write, truncation, or hole touched the \
           range in between, and the file was never mapped for writing.",
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
}

#[derive(Debug, Default)]
struct File {
    /// Writes by where they begin; overlapped ones are dropped.
    writes: std::collections::BTreeMap<i64, Written>,
    mapped: bool,
    comm: Text,
    pid: i32,
    mismatches: u64,
    bytes: i64,
    examples: Examples,
}

/// Writes of one file that are remembered.
const MAX_WRITES: usize = 1 << 14;

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
                let same_range = file.writes.get(&start).filter(|w| w.end == end);
                if same_range.is_some_and(|w| w.hash != hash) {
                    file.mismatches += 1;
                    file.bytes += end - start;
                    file.pid = call.pid;
                    file.comm = call.comm_text();
                    file.examples.add_first(call);
                }
            }
            Kind::Write => {
                let file = self.files.entry(id);
                let Some((start, end)) = call.range() else {
                    // Where it wrote is not known.
                    file.writes.clear();
                    return;
                };
                file.forget(start, end);
                if let Some(hash) = call.hash {
                    if file.writes.len() >= MAX_WRITES {
                        file.writes.pop_first();
                    }
                    file.writes.insert(start, Written { end, hash });
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
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (id, file) in self.files.iter().filter(|(_, file)| file.mismatches > 0) {
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "{} read {} of {path} that differ from the bytes written there, in {}",
                    file.comm,
                    units::bytes(file.bytes),
                    counted(file.mismatches as i64, "read", "reads"),
                ),
                subject: Subject::process(file.pid, &file.comm).with_file(*id, path),
                evidence: vec![
                    number("reads", file.mismatches as i64),
                    number("bytes", file.bytes),
                ],
                examples: file.examples.list(),
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

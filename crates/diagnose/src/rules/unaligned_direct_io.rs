//! `unaligned-direct-io`: O_DIRECT that the device cannot do as asked.

use crate::prelude::*;

/// Both ways through one file: calls of each from which on they count.
const MIN_MIXED: u64 = 16;
/// The alignment that every device supports, bytes.
const SECTOR: i64 = 512;
/// Calls that failed and may still be tried again with success, of one process on one file.
const MAX_REFUSED: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "unaligned-direct-io",
    name: "O_DIRECT misaligned, or mixed with buffered I/O",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write],
    about_calls: true,
    what: "With O_DIRECT, offset, length, and address must be multiples of the device's block size \
           (512 or 4096 bytes). Otherwise the call fails with EINVAL, or the file system reads, \
           changes, and writes whole blocks, or uses the page cache after all. Direct and buffered \
           I/O on one file evict each other's pages and can return old data.",
    when: "A read or write through a description opened with O_DIRECT fails with EINVAL, and the same \
           thread does not repeat it at the same offset with success, as a program does that looks for \
           the alignment or falls back to I/O without O_DIRECT (severity is medium for a single read, \
           else high); or its offset or length is not a multiple of 512, unless it reads the last piece \
           of the file from an offset that is one; or one file is read or written 16 times or more \
           with O_DIRECT and as often without, in the same second.",
    cost: "",
    advice: "Query STATX_DIOALIGN with statx and align offset, length, and address (posix_memalign) \
           to it; write the unaligned end of a file without O_DIRECT through a separate \
           description after the direct part is done; use one kind of I/O per file.",
    not_when: "Not for reading the unaligned end of a file, which is allowed.",
    bad: "fd = open(path, O_WRONLY | O_DIRECT);\nwrite(fd, malloc(1000), 1000);      /* EINVAL */",
    good: "fd = open(path, O_WRONLY | O_DIRECT);\nposix_memalign(&buffer, 4096, 4096);\nwrite(fd, buffer, 4096);",
    reference: "open(2), NOTES on O_DIRECT",
};

/// A call that failed with EINVAL.
#[derive(Debug)]
struct Refused {
    tid: i32,
    kind: Kind,
    offset: Option<i64>,
    example: Example,
}

impl Refused {
    /// Whether a call that succeeded does what this one did not.
    fn is_made_up_by(&self, call: &Call) -> bool {
        // A failure does not move the position.
        let there = match self.offset {
            Some(offset) => call.offset == Some(offset),
            None => !call.positional,
        };
        there && self.tid == call.tid && self.kind == call.kind
    }
}

/// One process on one file.
#[derive(Debug, Default)]
struct Usage {
    comm: Text,
    /// The last ones that may still be tried again, and the number of all others.
    pending: Vec<Refused>,
    refused: u64,
    misaligned: u64,
    /// The second of the last call, and calls of both ways in it.
    second: i64,
    in_second: (u64, u64),
    mixed: u64,
    refused_examples: Examples,
    misaligned_examples: Examples,
    mixed_examples: Examples,
}

rule! {
    pub struct UnalignedDirectIo {
        files: Bounded<(i32, FileId), Usage>
            = Bounded::new(|usage| usage.refused + usage.pending.len() as u64 + usage.misaligned + usage.mixed),
    }
}

impl Rule for UnalignedDirectIo {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        let Some(direct) = context.open().filter(|open| open.flags_are_known()).map(|open| open.is_direct()) else { return };
        if !direct && self.files.get_mut(&(call.pid, id)).is_none() {
            return;
        }
        let file = context.file(call);
        let usage = self.files.entry((call.pid, id));
        if usage.comm.is_empty() {
            usage.comm = call.comm_text();
        }
        if direct && call.failed_with("EINVAL") {
            if usage.pending.len() >= MAX_REFUSED {
                let first = usage.pending.remove(0);
                usage.refused += 1;
                usage.refused_examples.keep(first.example);
            }
            usage.pending.push(Refused {
                tid: call.tid,
                kind: call.kind,
                offset: call.offset,
                example: Example::of(call),
            });
            return;
        }
        if call.succeeded() {
            usage.pending.retain(|refused| !refused.is_made_up_by(call));
        }
        if !call.succeeded() || call.moved() == 0 {
            return;
        }
        let odd = |n: Option<i64>| n.is_some_and(|n| n % SECTOR != 0);
        let end = call.range().map(|(_, end)| end);
        let size = file.filter(|file| file.is_regular()).and_then(|file| file.size);
        let reads_the_end = call.kind == Kind::Read && size.zip(end).is_some_and(|(size, end)| end >= size);
        if direct && (odd(call.offset) || odd(call.size) && !reads_the_end) {
            usage.misaligned += 1;
            usage.misaligned_examples.add_first(call);
        }
        let second = call.ts_ns.div_euclid(1_000_000_000);
        if usage.second != second {
            usage.second = second;
            usage.in_second = (0, 0);
        }
        match direct {
            true => usage.in_second.0 += 1,
            false => usage.in_second.1 += 1,
        }
        let both = usage.in_second.0.min(usage.in_second.1);
        if both >= MIN_MIXED && file.is_some_and(|f| f.is_regular()) {
            usage.mixed = usage.mixed.max(both);
            usage.mixed_examples.add_first(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), usage) in self.files.iter() {
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let refused = usage.refused + usage.pending.len() as u64;
            let mut refused_examples = usage.refused_examples.clone();
            usage.pending.iter().for_each(|refused| refused_examples.keep(refused.example.clone()));
            let cases = [
                (
                    refused,
                    match usage.pending.as_slice() {
                        [one] if refused == 1 && one.kind == Kind::Read => Severity::Medium,
                        _ => Severity::High,
                    },
                    format!("{} of {path} with O_DIRECT failed with EINVAL", counted(refused as i64, "read or write", "reads or writes")),
                    &refused_examples,
                ),
                (
                    usage.misaligned,
                    Severity::Medium,
                    format!(
                        "{} of {path} with an offset or length that is not a multiple of 512",
                        counted(usage.misaligned as i64, "direct read or write", "direct reads or writes")
                    ),
                    &usage.misaligned_examples,
                ),
                (
                    usage.mixed,
                    Severity::Medium,
                    format!(
                        "{path} is used with O_DIRECT and through the page cache at the same time, {} each within a second",
                        times(usage.mixed as i64)
                    ),
                    &usage.mixed_examples,
                ),
            ];
            for (times, severity, what, examples) in cases {
                if times == 0 {
                    continue;
                }
                out.push(Found {
                    severity: Some(severity),
                    title: format!("{}: {what}", usage.comm),
                    subject: Subject::process(*pid, &usage.comm).with_file(*file, path),
                    evidence: vec![number("calls", times as i64)],
                    examples: examples.list(),
                    query: calls!("pid = {pid} AND file_id = {file} AND (call_reads(syscall) OR call_writes(syscall))"),
                    ..Found::default()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_a_search_for_the_alignment() {
        // As QEMU does.
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/disk", "O_RDWR|O_DIRECT", 1 << 20);
        s.fail_at("pread64", fd, 1, Some(0), "EINVAL");
        s.fail_at("pread64", fd, 512, Some(0), "EINVAL");
        s.pread(fd, 4096, 0);
        silent("unaligned-direct-io", s);

        let mut s = Scenario::new();
        let fd = s.open("/data/disk", "O_RDWR|O_CREAT|O_DIRECT");
        s.write(fd, 4096);
        s.fail_at("write", fd, 1000, None, "EINVAL");
        s.set_flags(fd, "O_RDWR");
        s.write(fd, 1000);
        silent("unaligned-direct-io", s);
    }

    #[test]
    fn a_single_read_that_fails_is_medium() {
        let refused = |offsets: &[i64]| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/disk", "O_RDWR|O_DIRECT", 1 << 20);
            for offset in offsets {
                s.fail_at("pread64", fd, 1000, Some(*offset), "EINVAL");
            }
            s.pread(fd, 4096, 1 << 16);
            fires("unaligned-direct-io", s).first().map(|found| found.severity)
        };
        assert_eq!(refused(&[0]), Some(Severity::Medium));
        assert_eq!(refused(&[0, 4096]), Some(Severity::High));
    }

    #[test]
    fn the_last_piece_of_a_file_may_be_read() {
        let reads = |size: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/disk", "O_RDONLY|O_DIRECT", size);
            s.pread(fd, 4096, 0);
            s.pread(fd, 1000, 4096);
            s
        };
        silent("unaligned-direct-io", reads(5096));
        fires("unaligned-direct-io", reads(1 << 20));
    }

    #[test]
    fn fires_on_a_refusal_and_on_a_mix() {
        let mut s = Scenario::new();
        let fd = s.open("/data/a", "O_RDWR|O_CREAT|O_DIRECT");
        s.fail("pwrite64", fd, "EINVAL");
        let found = fires("unaligned-direct-io", s);
        assert_eq!(found.len(), 1);

        let mut s = Scenario::new();
        let direct = s.open("/data/b", "O_RDWR|O_CREAT|O_DIRECT");
        let buffered = s.open("/data/b", "O_RDWR");
        for i in 0..50 {
            s.pwrite(direct, 4096, i * 4096);
            s.pread(buffered, 4096, i * 4096);
        }
        fires("unaligned-direct-io", s);
    }

    #[test]
    fn silent_on_whole_blocks() {
        let mut s = Scenario::new();
        let direct = s.open("/data/b", "O_RDWR|O_CREAT|O_DIRECT");
        for i in 0..100 {
            s.pwrite(direct, 4096, i * 4096);
            s.pread(direct, 4096, i * 4096);
        }
        let buffered = s.open("/data/other", "O_RDWR|O_CREAT");
        for i in 0..100 {
            s.pwrite(buffered, 100, i * 100);
        }
        silent("unaligned-direct-io", s);
    }
}

//! `read-after-write-miss`: a process reads back from the device what it has just written.

use hashbrown::HashMap;

use crate::prelude::*;
use crate::readers::Readers;
use crate::state::descriptors::Description;

/// Reads of own bytes from the device, from which on they count.
const MIN_READS: u64 = 32;
/// Bytes with which fewer of them do: of large reads a few are enough.
const MANY_BYTES: i64 = 8 << 20;

static INFO: RuleInfo = RuleInfo {
    id: "read-after-write-miss",
    name: "Own bytes read back from the device",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Read, Transfer, Write, Truncate, Advise],
    about_calls: false,
    what: "A process writes bytes to a file and later reads them again from the device, because \
           they bypassed the page cache (O_DIRECT) or were evicted before they were used.",
    when: "32 or more reads of one process (on any of its files; including sendfile, splice, and \
           copy_file_range), or fewer that add up to 8 MiB, had to be read from the device or \
           waited for readahead, and covered bytes that the same process had written in the \
           recording. Any program that verifies its header has fewer. Reads with O_DIRECT of a file \
           that was made durable after its last write do not count, because such a program verifies \
           what the device has.",
    cost: "the time that these reads waited for the device, times the fraction of their bytes that \
           the process had written, divided by the number of reading threads",
    advice: "Keep the bytes in memory until they are no longer needed; write without O_DIRECT if \
           the data will be read again; call posix_fadvise(POSIX_FADV_DONTNEED) only after the \
           last use; give the process's cgroup more memory if the kernel evicted them.",
    not_when: "Not when the purpose is to see what the device has (verification), or the data is \
           larger than memory.",
    bad: "pwrite(fd, block, n, at);\nfdatasync(fd);\nposix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);\n...\npread(fd, block, n, at);",
    good: "pwrite(fd, block, n, at);\nfdatasync(fd);\n...\npread(fd, block, n, at);             /* from memory */\n\
           posix_fadvise(fd, at, n, POSIX_FADV_DONTNEED);",
    reference: "posix_fadvise(2); open(2) on O_DIRECT",
};

/// One process on one file.
#[derive(Debug, Default)]
struct OwnIo {
    /// Name of the thread that wrote first.
    writer: Text,
    readers: Readers,
    written: Intervals,
    reads: u64,
    bytes: i64,
    cost_ns: i64,
    direct: bool,
    dropped: bool,
    examples: Examples,
}

impl OwnIo {
    fn threads(&self) -> i64 {
        self.readers.threads().max(1) as i64
    }

    fn cost_ns(&self) -> i64 {
        self.cost_ns / self.threads()
    }
}

rule! {
    pub struct ReadAfterWriteMiss {
        own: Bounded<(i32, FileId), OwnIo>
            = Bounded::new(|own| own.reads * 1000 + own.written.len().unsigned_abs()),
    }
}

impl Rule for ReadAfterWriteMiss {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file.filter(|_| call.succeeded()) else { return };
        if !context.file(call).is_some_and(|f| f.is_regular()) {
            return;
        }
        let key = (call.pid, id);
        let direct = context.open().is_some_and(Description::is_direct);
        match (call.kind, call.range()) {
            (Kind::Write, Some((start, end))) => {
                let own = self.own.entry(key);
                if own.writer.is_empty() {
                    own.writer = call.comm_text();
                }
                own.written.insert(start, end);
                own.direct |= direct;
            }
            (Kind::Read | Kind::Transfer, Some((start, end))) if context.below.missed() || context.below.io_wait_ns > 0 => {
                let Some(own) = self.own.get_mut(&key) else { return };
                let overlap = own.written.overlap(start, end);
                let verifies = direct && context.file(call).is_some_and(|file| file.is_durable(call.ts_ns));
                if overlap == 0 || call.asynchronous || verifies {
                    return;
                }
                let waited = match context.below.io_wait_ns {
                    0 => call.dur_ns,
                    ns => ns.min(call.dur_ns),
                };
                own.reads += 1;
                own.readers.add(call);
                own.bytes += overlap;
                own.cost_ns += (waited as f64 * overlap as f64 / (end - start) as f64) as i64;
                own.direct |= direct;
                own.examples.add(call);
            }
            (Kind::Truncate, _) => {
                let length = call.arg("length").and_then(|n| n.parse::<i64>().ok());
                if let (Some(own), Some(length)) = (self.own.get_mut(&key), length) {
                    own.written.truncate(length.max(0));
                }
            }
            (Kind::Advise, _) => {
                let drops = call.has_flag("POSIX_FADV_DONTNEED")
                    || call.args.contains("POSIX_FADV_DONTNEED");
                if let Some(own) = self.own.get_mut(&key).filter(|_| drops) {
                    own.dropped = true;
                }
            }
            _ => {}
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // A process may write and read one file after the other.
        let mut processes: HashMap<i32, (u64, i64, i64)> = HashMap::new();
        for ((pid, _), own) in self.own.iter() {
            let (reads, bytes, cost) = processes.entry(*pid).or_default();
            *reads += own.reads;
            *bytes += own.bytes;
            *cost += own.cost_ns();
        }
        for ((pid, id), own) in self.own.iter() {
            let (reads, bytes, all) = processes.get(pid).copied().unwrap_or_default();
            let many = reads >= MIN_READS || bytes >= MANY_BYTES;
            let cost = own.cost_ns();
            if !many || cost == 0 || !run.matters(all) {
                continue;
            }
            let threads = own.threads();
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            let reader = own.readers.most().unwrap_or(&own.writer);
            let wrote = match *reader == own.writer {
                true => "it had written itself".to_owned(),
                false => format!("thread {} of the same process had written", own.writer),
            };
            let why = match (own.direct, own.dropped) {
                (true, _) => ", because O_DIRECT bypasses the page cache",
                (_, true) => ", because it evicted them itself (POSIX_FADV_DONTNEED)",
                _ => "",
            };
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{reader} reads {} of {path} that {wrote} back from the device, in {}{why}",
                    units::bytes(own.bytes),
                    counted(own.reads as i64, "read", "reads"),
                ),
                subject: Subject::process(*pid, reader).with_file(*id, path),
                evidence: vec![
                    number("reads", own.reads as i64),
                    number("bytes", own.bytes),
                    number("threads", threads),
                ],
                examples: own.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_reads(syscall) AND rid IN (SELECT submit_rid FROM bios)"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_one_file_after_the_other() {
        let run = |files: usize| {
            let mut s = Scenario::new();
            for i in 0..files {
                let fd = s.open(&format!("/data/part{i}"), "O_RDWR|O_CREAT");
                s.pwrite(fd, 4096, 0);
                s.missed(4096, 200_000);
                s.pread(fd, 4096, 0);
                s.close(fd);
            }
            s
        };
        assert_eq!(fires("read-after-write-miss", run(40)).len(), 1);
        silent("read-after-write-miss", run(20));
    }

    #[test]
    fn fires_on_staged_bytes_that_are_sent() {
        let staged = |missed| {
            let mut s = Scenario::new();
            let fd = s.open("/data/part", "O_RDWR|O_CREAT");
            s.write(fd, 16 << 20);
            s.lseek(fd, 0);
            for _ in 0..2 {
                if missed {
                    s.missed(8 << 20, 9_000_000);
                }
                s.sendfile(fd, 8 << 20);
            }
            s
        };
        fires("read-after-write-miss", staged(true));
        silent("read-after-write-miss", staged(false));
    }

    #[test]
    fn fires_on_blocks_that_were_thrown_out() {
        let mut s = Scenario::new();
        let fd = s.open("/data/spill", "O_RDWR|O_CREAT");
        for i in 0..100 {
            s.pwrite(fd, 65536, i * 65536);
        }
        for i in 0..100 {
            s.missed(65536, 100_000);
            s.pread(fd, 65536, i * 65536);
        }
        let found = fires("read-after-write-miss", s);
        assert_eq!(found[0].evidence[1].value, 6_553_600.0);
    }

    #[test]
    fn silent_on_who_looks_at_what_the_device_has() {
        let run = |durable: bool| {
            let mut s = Scenario::new();
            let fd = s.open("/data/dump", "O_RDWR|O_CREAT|O_DIRECT");
            for i in 0..100 {
                s.pwrite(fd, 65536, i * 65536);
            }
            if durable {
                s.fsync(fd);
            }
            for i in 0..100 {
                s.missed(65536, 100_000);
                s.pread(fd, 65536, i * 65536);
            }
            s
        };
        fires("read-after-write-miss", run(false));
        silent("read-after-write-miss", run(true));
    }

    #[test]
    fn silent_from_memory_and_on_bytes_of_others() {
        let mut s = Scenario::new();
        let fd = s.open("/data/spill", "O_RDWR|O_CREAT");
        for i in 0..100 {
            s.pwrite(fd, 65536, i * 65536);
            s.pread(fd, 65536, i * 65536);
        }
        s.process(200);
        let fd = s.open_existing("/data/spill", "O_RDONLY", 6_553_600);
        for i in 0..100 {
            s.missed(65536, 100_000);
            s.pread(fd, 65536, i * 65536);
        }
        silent("read-after-write-miss", s);
    }

    #[test]
    fn names_the_threads_that_read_and_shares_their_time() {
        let mut s = Scenario::new();
        s.thread(100, "compact");
        let fd = s.open("/data/spill", "O_RDWR|O_CREAT");
        for i in 0..100 {
            s.pwrite(fd, 65536, i * 65536);
        }
        for i in 0..100 {
            match i % 10 {
                0 => s.thread(100, "compact"),
                n => s.thread(100 + n as i32 % 3 + 1, "reader"),
            }
            s.missed(65536, 100_000);
            s.pread(fd, 65536, i * 65536);
        }
        let found = fires("read-after-write-miss", s);
        assert!(found[0].title.starts_with("reader reads"), "{}", found[0].title);
        assert!(found[0].title.contains("that thread compact of the same process had written"));
        assert_eq!(found[0].evidence[2].value, 4.0);
        let each = found[0].cost_ns.unwrap();
        assert!(each < 100 * 120_000 / 4, "{each}");
    }
}

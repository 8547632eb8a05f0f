//! `scan-out-of-order`: a file is read as a whole, in an order that is not its own.

use crate::layers::Below;
use crate::order::{Head, READAHEAD, Step};
use crate::prelude::*;
use crate::readers::Readers;
use crate::under_way::UnderWay;

/// Reads from which on they count.
const MIN_READS: u64 = 256;
/// Share of the file that was read.
const MIN_COVERED: f64 = 0.8;
/// How often each byte is read at most, on average: rows that stand in one page come one by one in another order.
const MAX_PASSES: f64 = 4.0;
/// Passes below which a file is said to be read once.
const ONCE: f64 = 1.25;
/// Share of reads that begin elsewhere than near the end of the one before.
const MIN_JUMPS: f64 = 0.3;
/// Or share of the time of all reads that those take.
const MIN_TIME: f64 = 0.5;
/// Share of reads that those are at least: a few reads take most of the time where their thread
/// waited for a CPU in them.
const MIN_JUMPS_OF_TIME: f64 = 0.02;
/// Reads under way at a time, on average, from which on the process has asked ahead.
const MAX_DEPTH: f64 = 2.0;
/// Where it is not known which jumping reads waited for the device: the share of them that is below a duration, and how
/// many times as long one counts at most. A longer one waited for a CPU.
const MOST: f64 = 0.75;
const SLOW: i64 = 4;
/// Bytes that a device reads in about the time of one request.
const REQUEST: f64 = 65536.0;

static INFO: RuleInfo = RuleInfo {
    id: "scan-out-of-order",
    name: "Whole file read out of order",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read],
    about_calls: true,
    what: "A process reads most of a file, each byte once or a few times, but in an order that differs from \
           the order on disk. Readahead mispredicts, and each read waits for the device if the file \
           is not in memory.",
    when: "One process makes 256 or more reads of one file that cover four fifths of its bytes, \
           each byte at most four times on average, and it is the only process that reads the file. More \
           than 30 % of the reads jump, or 2 % or more that take half or more of the time of all \
           its reads. A read jumps if it starts before the end of the previous read, or more than 128 \
           KiB (the kernel's default readahead) after it, or less far after it but had to wait for \
           the device, because the kernel does not read ahead of strides. Silent if two or more of \
           the jumping reads are in progress at a time on average. Jumping reads that find their \
           pages in memory cost nothing. A recording without layers below the calls does not tell \
           which of them do: then each counts for at most four times the duration that a quarter of \
           them exceed, because a longer one waited for a CPU.",
    cost: "time of the jumping reads that waited for the device (of all jumping reads, if the \
           recording has no layers below the calls), minus what the same number costs without \
           waiting (the median of the reads in order, or of the jumping ones if that is less), minus \
           what the device takes for the same bytes in order, assuming that it reads 64 KiB in the \
           time of one request",
    advice: "Read in the order of offsets and sort in memory, or rebuild the file in the order of \
           access (VACUUM, compact, CLUSTER, OPTIMIZE TABLE); request ranges ahead with \
           posix_fadvise(POSIX_FADV_WILLNEED) or io_uring.",
    not_when: "Not when the whole file is in memory already, which calls alone do not tell: order costs \
               little there.",
    bad: "for (key in index)                 /* order of keys */\n    pread(fd, row, n, offset[key]);",
    good: "sort(index by offset);\nfor (key in index)\n    pread(fd, row, n, offset[key]);",
    reference: "IOscope, section 3.2: a MongoDB shard whose scan followed the index, not the file",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Scan {
    readers: Readers,
    head: Head,
    reads: u64,
    jumps: u64,
    bytes: i64,
    seen: Intervals,
    in_order: Durations,
    jumped: Durations,
    jumped_bytes: i64,
    under_way: UnderWay,
    examples: Examples,
    /// Jumping reads that waited for the device, as something below them says.
    waited: Durations,
    waited_examples: Examples,
}

rule! {
    pub struct ScanOutOfOrder {
        scans: Bounded<(i32, FileId), Scan> = Bounded::new(|scan| scan.reads),
        /// Whether the recording shows which calls waited for a device.
        tells_waits: bool,
    }
}

impl Rule for ScanOutOfOrder {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        // The requests of some logs lack their calls.
        let Row::Device(request) = row else { return };
        self.tells_waits |= request.bios.iter().any(|bio| bio.submit_rid.is_some());
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some((start, end))) = (call.file, call.range()) else { return };
        if call.asynchronous || !context.file(call).is_some_and(|f| f.is_regular()) {
            return;
        }
        self.tells_waits |= context.below != Below::default();
        let scan = self.scans.entry((call.pid, id));
        scan.readers.add(call);
        let jump = match scan.head.step(start, end) {
            Step::Back | Step::Jump => true,
            // Of a stride the kernel reads nothing ahead.
            Step::Skip => context.below.missed(),
            Step::First | Step::Next => false,
        };
        scan.reads += 1;
        scan.bytes += end - start;
        scan.seen.insert(start, end);
        if jump {
            scan.jumps += 1;
            scan.jumped.add(call.dur_ns);
            scan.jumped_bytes += end - start;
            scan.under_way.add(call.ts_ns, call.ended_at_ns());
            scan.examples.add(call);
            if context.below.missed() || context.below.io_wait_ns > 0 {
                scan.waited.add(call.dur_ns);
                scan.waited_examples.add(call);
            }
        } else {
            scan.in_order.add(call.dur_ns);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), scan) in self.scans.iter() {
            let Some(file) = run.state.files.get(*id) else { continue };
            let Some(size) = file.size.filter(|size| *size > 0) else { continue };
            let covered = scan.seen.len() as f64 / size as f64;
            let passes = scan.bytes as f64 / scan.seen.len().max(1) as f64;
            let jumps = scan.jumps as f64 / scan.reads as f64;
            // Reads in order may be few and may wait as well; at most half of the jumping reads
            // may.
            let plain = scan.in_order.median_ns().min(scan.jumped.median_ns());
            let (reads, ns, examples) = match self.tells_waits {
                true => (scan.waited.count, scan.waited.sum_ns, &scan.waited_examples),
                false => {
                    let most = scan.jumped.quantile_ns(MOST).saturating_mul(SLOW);
                    (scan.jumps, scan.jumped.sum_up_to_ns(most), &scan.examples)
                }
            };
            let spare = ns.saturating_sub((reads as i64).saturating_mul(plain));
            let size_of_one = scan.jumped_bytes as f64 / scan.jumps.max(1) as f64;
            let cost = (spare as f64 * (1.0 - in_order(size_of_one))) as i64;
            let scans = scan.reads >= MIN_READS && covered >= MIN_COVERED && passes <= MAX_PASSES;
            let all_ns = scan.jumped.sum_ns.saturating_add(scan.in_order.sum_ns);
            let much = scan.jumped.sum_ns as f64 >= all_ns as f64 * MIN_TIME;
            let many = jumps > MIN_JUMPS || much && jumps >= MIN_JUMPS_OF_TIME;
            let depth = scan.jumped.sum_ns as f64 / scan.under_way.ns().max(1) as f64;
            if !scans || !many || depth >= MAX_DEPTH || !run.matters(cost) {
                continue;
            }
            let often = match passes < ONCE {
                true => "once".to_owned(),
                false => format!("{passes:.1} times"),
            };
            let path = file.name();
            let comm = scan.readers.most().cloned().unwrap_or_default();
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} reads {} of {path} {often}, but {} of its {} reads jump{}",
                    comm,
                    units::percent(covered.min(1.0)),
                    units::percent(jumps),
                    units::count(scan.reads as i64),
                    scan.readers.list(),
                ),
                subject: Subject::process(*pid, &comm).with_file(*id, path),
                evidence: vec![
                    number("reads", scan.reads as i64),
                    number("jumps", scan.jumps as i64),
                    evidence("share_covered", covered),
                    number("mean_jump_ns", scan.jumped.mean_ns()),
                    number("mean_in_order_ns", scan.in_order.mean_ns()),
                    number("plain_read_ns", plain),
                    evidence("passes", passes),
                ],
                examples: examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_reads(syscall)"),
                ..Found::default()
            });
        }
    }
}

/// The device's time for pieces of this size in order, as a fraction of its time for single pieces:
/// their bytes, plus one request per window of the readahead.
fn in_order(bytes: f64) -> f64 {
    let (moving, asking) = (bytes / REQUEST, bytes / READAHEAD as f64);
    ((moving + asking) / (1.0 + moving)).min(1.0)
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_strides_that_wait() {
        let strips = |waits: bool| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/raster", "O_RDONLY", 1000 * 16384);
            for strip in 0..4 {
                for row in 0..1000 {
                    if waits && strip == 0 {
                        s.missed(4096, 80_000);
                    }
                    s.pread(fd, 4096, row * 16384 + strip * 4096);
                }
            }
            s
        };
        fires("scan-out-of-order", strips(true));
        silent("scan-out-of-order", strips(false));
    }

    #[test]
    fn fires_on_an_order_of_keys() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/collection", "O_RDONLY", 1000 * 65536);
        for i in 0..200 {
            s.pread(fd, 65536, i * 65536);
        }
        s.slow(100_000);
        for i in 0..800 {
            s.pread(fd, 65536, (200 + i * 389 % 800) * 65536);
        }
        let found = fires("scan-out-of-order", s);
        assert_eq!(found[0].evidence[2].value, 1.0);
    }

    /// Reads pieces of a file in the order of keys, each after `before`.
    fn shuffled(s: &mut Scenario, mut before: impl FnMut(&mut Scenario, i64)) {
        let fd = s.open_existing("/data/collection", "O_RDONLY", 1000 * 65536);
        for i in 0..1000 {
            before(s, i);
            s.pread(fd, 65536, i * 389 % 1000 * 65536);
        }
    }

    #[test]
    fn silent_on_a_file_in_memory() {
        // One read is preempted.
        let mut s = Scenario::new();
        shuffled(&mut s, |s, i| s.slow(if i == 700 { 40_000_000 } else { 0 }));
        silent("scan-out-of-order", s);

        // Another file comes from the device.
        let other = |s: &mut Scenario| {
            let fd = s.open_existing("/data/index", "O_RDONLY", 4096);
            s.missed(4096, 80_000);
            s.pread(fd, 4096, 0);
        };
        let mut s = Scenario::new();
        other(&mut s);
        shuffled(&mut s, |s, i| s.slow(if i % 3 == 0 { 100_000 } else { 0 }));
        silent("scan-out-of-order", s);

        let mut s = Scenario::new();
        other(&mut s);
        shuffled(&mut s, |s, i| {
            s.slow(if i == 700 { 40_000_000 } else { 0 });
            if i % 3 == 0 {
                s.missed(65536, 100_000);
            }
        });
        let found = fires("scan-out-of-order", s);
        assert!(found[0].examples.iter().all(|example| example.dur_ns < 1_000_000));
        assert!(found[0].cost_ns.unwrap() < 334 * 100_000);
    }

    #[test]
    fn names_all_threads_that_read() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/collection", "O_RDONLY", 1000 * 65536);
        s.slow(100_000);
        for i in 0..1000 {
            s.thread(if i < 400 { 101 } else { 102 }, if i < 400 { "first" } else { "second" });
            s.slow(if i < 200 { 0 } else { 100_000 });
            s.pread(fd, 65536, if i < 200 { i } else { 200 + i * 389 % 800 } * 65536);
        }
        let found = fires("scan-out-of-order", s);
        let names = "; reads by thread: second 600, first 400";
        assert!(found[0].title.ends_with(names), "{}", found[0].title);
    }

    #[test]
    fn silent_in_order_and_on_single_rows() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/a", "O_RDONLY", 1000 * 65536);
        for i in 0..1000 {
            s.pread(fd, 65536, i * 65536);
        }
        let fd = s.open_existing("/data/b", "O_RDONLY", 1 << 30);
        for i in 0..1000 {
            s.pread(fd, 4096, i * 389 % 1000 * 65536);
        }
        silent("scan-out-of-order", s);
    }

    #[test]
    fn silent_where_several_are_under_way() {
        let scan = |threads: i32| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/collection", "O_RDONLY", 1160 * 65536);
            (0..200).for_each(|i| s.pread(fd, 65536, i * 65536));
            s.slow(100_000);
            for i in 0..960 / threads {
                let began = s.now();
                for thread in 0..threads {
                    s.back_to(began + i64::from(thread) * 1_000);
                    s.thread(101 + thread, "reader");
                    s.pread(fd, 65536, (200 + i64::from(i * threads + thread) * 389 % 960) * 65536);
                }
            }
            s
        };
        fires("scan-out-of-order", scan(1));
        silent("scan-out-of-order", scan(3));
    }

    #[test]
    fn shows_the_costliest_jumps_and_compares_with_reads_that_do_not_wait() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/index", "O_RDONLY", 1000 * 65536);
        // Few are in order, and those wait.
        s.slow(50_000);
        for i in 0..200 {
            s.pread(fd, 65536, i * 65536);
        }
        for i in 0..800 {
            s.slow(match i {
                700 => 9_000_000,
                i if i % 3 == 0 => 400_000,
                _ => 0,
            });
            s.pread(fd, 65536, (200 + i * 389 % 800) * 65536);
        }
        let found = fires("scan-out-of-order", s);
        assert!(found[0].examples[0].dur_ns > 9_000_000);
        let numbers: Vec<f64> = found[0].evidence.iter().map(|e| e.value).collect();
        assert!(numbers[3] > numbers[4] && numbers[5] < numbers[4], "{numbers:?}");
        assert!(found[0].cost_ns.unwrap() > 65 * 390_000 && found[0].cost_ns.unwrap() < 134 * 400_000);
    }
}

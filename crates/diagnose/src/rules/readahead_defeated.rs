//! `readahead-defeated`: a file is read in order, and yet the device is waited for piece
//! by piece, or gives the same pages twice.

use crate::layers::Origin;
use crate::order::{Heads, READAHEAD, Way};
use crate::prelude::*;
use crate::state::descriptors::Description;

/// Reads in order that waited for the device, from which on they count.
const MIN_READS: u64 = 64;
/// Share of the reads in order that waited.
const MIN_MISSED: f64 = 0.5;
/// Bytes that the device gave twice, from which on they count.
const MIN_TWICE: i64 = 1 << 20;
/// Their share of the different bytes that it gave.
const MIN_TWICE_PART: f64 = 0.5;

static INFO: RuleInfo = RuleInfo {
    id: "readahead-defeated",
    name: "Readahead defeated",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Read],
    about_calls: false,
    what: "A process reads a file in order, which the kernel usually detects and reads ahead of, so \
           that hardly any call waits. Here it does not: each piece comes from the device when it \
           is requested. Or pages that were read ahead are evicted before they are used, and read \
           again.",
    when: "One process makes 64 or more reads of less than 128 KiB (the kernel's default readahead) \
           on one file through the page cache that start where one of the file's last eight reads \
           ended, or end where one of them started (from back to front, where the kernel reads \
           nothing ahead), and half or more of them had to be read from the device; with readahead \
           few do. Or 1 MiB or more, and at least half as much as the device read in all, was read \
           from the device twice, while the process itself read less than half of that twice. \
           Silent for O_DIRECT, which has no readahead.",
    cost: "the reads that waited, beyond one per 128 KiB, times their median duration; for pages \
           read twice, their fraction of the time of reads that waited",
    advice: "Do not use POSIX_FADV_RANDOM for files that are read in order; \
           posix_fadvise(POSIX_FADV_SEQUENTIAL) doubles the readahead; evict only bytes that have \
           been used (POSIX_FADV_DONTNEED on the range before the position, not on the whole \
           file); read in pieces of 128 KiB or more; raise the device's read_ahead_kb.",
    not_when: "",
    bad: "posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);\nwhile ((n = read(fd, buffer, 4096)) > 0)\n    use(buffer, n);",
    good: "posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);\nwhile ((n = read(fd, buffer, 65536)) > 0)\n    use(buffer, n);",
    reference: "The kernel's mm/readahead.c; blockdev(8) --setra",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Reader {
    comm: Text,
    heads: Heads,
    /// Reads in order, and how many of them waited.
    in_order: u64,
    bytes: i64,
    missed: Durations,
    missed_bytes: i64,
    /// Waiting reads that go backwards.
    backwards: u64,
    waited_ns: i64,
    seen: Intervals,
    again: i64,
    examples: Examples,
}

/// Bytes of a file from the device.
#[derive(Debug, Default)]
struct Given {
    pages: Intervals,
    twice: i64,
    requests: u64,
    bytes: i64,
}

rule! {
    pub struct ReadaheadDefeated {
        readers: Bounded<(i32, FileId), Reader>
            = Bounded::new(|reader| reader.missed.count * 1000 + reader.in_order),
        given: Bounded<(i32, FileId), Given> = Bounded::new(|given| given.requests),
    }
}

impl Rule for ReadaheadDefeated {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Device(request) = row else { return };
        if request.op != "read" {
            return;
        }
        for bio in request.bios {
            let cached = matches!(bio.origin, Origin::Read | Origin::Readahead);
            let (Some(pid), Some(file), Some(offset)) = (bio.cause_pid, bio.file, bio.offset) else { continue };
            if cached {
                let given = self.given.entry((pid, file));
                given.twice += given.pages.insert(offset, offset.saturating_add(bio.bytes));
                given.requests += 1;
                given.bytes += bio.bytes;
            }
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some((start, end))) = (call.file, call.range()) else { return };
        let direct = context.open().is_some_and(Description::is_direct);
        if direct || call.asynchronous || !context.file(call).is_some_and(|f| f.is_regular()) {
            return;
        }
        let reader = self.readers.entry((call.pid, id));
        if reader.comm.is_empty() {
            reader.comm = call.comm_text();
        }
        let missed = context.below.missed();
        if missed {
            reader.waited_ns += call.dur_ns;
        }
        reader.again += reader.seen.insert(start, end);
        let Some(way) = reader.heads.step(start, end).filter(|_| end - start < READAHEAD) else { return };
        reader.in_order += 1;
        reader.bytes += end - start;
        if missed {
            reader.missed.add(call.dur_ns);
            reader.missed_bytes += end - start;
            reader.backwards += u64::from(way == Way::Back);
            reader.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), reader) in self.readers.iter() {
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            let nothing = Given::default();
            let given = self.given.get(&(*pid, *id)).unwrap_or(&nothing);
            let found = |cost: i64, title: String, evidence| Found {
                cost_ns: Some(cost),
                title,
                subject: Subject::process(*pid, &reader.comm).with_file(*id, path),
                evidence,
                examples: reader.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_reads(syscall) AND rid IN (SELECT submit_rid FROM bios)"),
                ..Found::default()
            };
            let missed = i64::try_from(reader.missed.count).unwrap_or(i64::MAX);
            let spare = missed - (reader.missed_bytes + READAHEAD - 1) / READAHEAD;
            let cost = spare.saturating_mul(reader.missed.median_ns());
            let part = missed as f64 / reader.in_order.max(1) as f64;
            if reader.missed.count >= MIN_READS && part >= MIN_MISSED && run.matters(cost) {
                let back = reader.backwards * 2 > reader.missed.count;
                let mut finding = found(
                    cost,
                    format!(
                        "{} reads {path} {}: {} of {} reads waited for the device",
                        reader.comm,
                        if back { "from back to front" } else { "in order, but readahead has no effect" },
                        units::count(missed),
                        units::count(reader.in_order as i64),
                    ),
                    vec![
                        number("waiting_reads", missed),
                        number("reads_in_order", reader.in_order as i64),
                        number("spare_waits", spare),
                        number("median_ns", reader.missed.median_ns()),
                        number("device_requests", given.requests as i64),
                        number("backward_reads", reader.backwards as i64),
                    ],
                );
                if back {
                    finding.advice = Some(
                        "The kernel reads ahead only beyond the end of a read. Read from front to back if the order does not matter; otherwise read pieces of 128 KiB or \
                         more from the back and process each in memory, or request the previous piece with posix_fadvise(POSIX_FADV_WILLNEED)."
                            .to_owned(),
                    );
                }
                out.push(finding);
                continue;
            }
            let different = given.bytes - given.twice;
            let part = given.twice as f64 / different.max(1) as f64;
            let cost = (reader.waited_ns as f64 * given.twice as f64 / given.bytes.max(1) as f64) as i64;
            let own = reader.again > given.twice / 2;
            if given.twice >= MIN_TWICE && part >= MIN_TWICE_PART && !own && run.matters(cost) {
                out.push(found(
                    cost,
                    format!(
                        "{} makes the device read {} of {path} twice: pages that were read ahead are evicted before they are used",
                        reader.comm,
                        units::bytes(given.twice),
                    ),
                    vec![
                        number("bytes_read_twice", given.twice),
                        number("bytes_from_device", given.bytes),
                        evidence("share_read_twice", part),
                    ],
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_two_streams_without_readahead() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 30);
        for i in 0..200 {
            for base in [0, 500_000_000] {
                s.missed(8192, 200_000);
                s.pread(fd, 8192, base + i * 8192);
            }
        }
        let found = fires("readahead-defeated", s);
        assert_eq!(found[0].evidence[0].value, 398.0);
    }

    #[test]
    fn fires_on_a_scan_from_back_to_front() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 30);
        for i in 0..400 {
            s.missed(16384, 200_000);
            s.pread(fd, 16384, (1000 - i) * 16384);
        }
        let found = fires("readahead-defeated", s);
        assert!(found[0].title.contains("from back to front: 399 of 399"), "{}", found[0].title);
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 30);
        for i in 0..400 {
            if i % 16 == 0 {
                s.missed(131_072, 200_000);
            }
            s.pread(fd, 8192, (1000 - i) * 8192);
        }
        silent("readahead-defeated", s);
    }

    #[test]
    fn silent_with_readahead_and_out_of_order() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/in", "O_RDONLY", 1 << 30);
        for i in 0..2000 {
            if i % 32 == 0 {
                s.missed(131_072, 200_000);
            }
            s.pread(fd, 4096, i * 4096);
        }
        let fd = s.open_existing("/data/other", "O_RDONLY", 1 << 30);
        for i in 0..200 {
            s.missed(4096, 200_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        silent("readahead-defeated", s);
    }
}

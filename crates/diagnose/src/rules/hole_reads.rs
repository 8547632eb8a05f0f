//! `hole-reads`: a process reads ranges of a file that have no blocks.

use crate::prelude::*;
use crate::state::descriptors::Description;
use crate::state::files::FileState;
use crate::state::intervals::Intervals;

/// Bytes without blocks, from which on they count.
const MIN_BYTES: i64 = 16 << 20;
/// Their share of the bytes that the process read from the file.
const MIN_PART: f64 = 0.25;
/// Of the bytes without data, one in so many at most may be read by workers for reads that the
/// kernel does not attribute to a program.
const MAX_UNEXPLAINED: i64 = 16;
/// Calls from this length on read data and ranges without data in one: what devices read is taken off.
const LONG: i64 = 4 << 20;
/// Kernel threads that read for others: to decrypt, to assemble, for a file that is a device.
const WORKERS: [&str; 5] = ["kworker", "kcryptd", "dmcrypt", "md", "loop"];
const PAGE: i64 = 4096;

static INFO: RuleInfo = RuleInfo {
    id: "hole-reads",
    name: "Reading ranges without data",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Cache, Input::Block, Input::Waits],
    kinds: kinds![Read, Transfer],
    about_calls: false,
    what: "A process reads ranges of a sparse or preallocated file that contain no data. The kernel \
           fills a page of the page cache with zeros for each page of the range, and these pages \
           evict others. The program then copies, sends, or parses zeros.",
    when: "16 MiB or more, and a quarter or more of the bytes that a process read from a regular \
           file on ext4, xfs, or f2fs, entered the page cache during the reads, while the reads \
           neither made a device read anything nor waited for I/O; of a call for 4 MiB or more, the pages that entered it beyond the bytes \
           that devices read. Pages that were read ahead count \
           when the process reads them. The rule is silent if kernel workers read more than a \
           sixteenth of that from devices for an unknown cause, as they do under dm-crypt.",
    cost: "the time of the process's reads of the file, times the fraction of bytes without data",
    advice: "Find the ranges with data before reading: lseek(fd, offset, SEEK_DATA) and SEEK_HOLE \
           (C, Python os.SEEK_DATA, Go syscall.Seek with whence 3, Java only through JNA), or the \
           ioctl FS_IOC_FIEMAP for the whole map. cp --sparse=auto, tar --sparse, rsync --sparse, \
           and qemu-img do that. Within a file system, copy with copy_file_range.",
    not_when: "A program that must process every byte once, such as a checksum of the whole file, \
           can hash zeros without reading them.",
    bad: "while ((n = read(fd, buffer, sizeof buffer)) > 0)\n    use(buffer, n);",
    good: "for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0;) {\n    off_t end = lseek(fd, at, SEEK_HOLE);\n    for (; at < end; at += n)\n        n = pread(fd, buffer, min(sizeof buffer, end - at), at);\n}",
    reference: "lseek(2), SEEK_HOLE and SEEK_DATA; the kernel's Documentation/filesystems/fiemap.rst",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Reader {
    comm: Text,
    bytes: i64,
    time_ns: i64,
    /// Where the pages end that the last call brought which brought any.
    ahead_to: i64,
    /// Ranges that came into the page cache without a device.
    filled: Intervals,
    /// The ranges of them that the process read.
    read: Intervals,
    /// Bytes that long calls read without a device.
    long: i64,
    examples: Examples,
}

impl Reader {
    /// Where the pages lie that a call of this range brought. They are counted, not located: the
    /// kernel reads ahead from the end of what it read ahead before, if the call reads up to there.
    fn brought(&mut self, (start, end): (i64, i64), pages: i64, missed: bool) -> (i64, i64) {
        let (start, end) = (start / PAGE * PAGE, end.saturating_add(PAGE - 1) / PAGE * PAGE);
        let window = pages.saturating_mul(PAGE);
        let reach = if missed { end } else { end.saturating_add(window) };
        let begin = match self.ahead_to {
            to if (start..=reach).contains(&to) => to,
            _ if missed => start,
            _ => end,
        };
        self.ahead_to = begin.saturating_add(window);
        (begin, self.ahead_to)
    }
}

rule! {
    pub struct HoleReads {
        readers: Bounded<(i32, FileId), Reader> = Bounded::new(|reader| reader.read.len().unsigned_abs()),
        /// Bytes that devices read for workers of the kernel, and no known file or program.
        unexplained: i64,
    }
}

impl Rule for HoleReads {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Device(request) = row else { return };
        if request.op != "read" {
            return;
        }
        for bio in request.bios {
            let pid = bio.cause_pid.or(request.pid);
            let (Some(pid), Some(file), Some(at)) = (pid, bio.file, bio.offset) else { continue };
            // Bytes that a call reads ahead may arrive after it.
            if let Some(reader) = self.readers.get_mut(&(pid, file)) {
                let end = at.saturating_add(bio.bytes);
                reader.filled.remove(at, end);
                reader.read.remove(at, end);
            }
        }
        let worker = WORKERS.iter().any(|name| request.comm.starts_with(name));
        if worker || request.pid.is_none() {
            let known = request.bios.iter().filter(|bio| bio.file.is_some() || bio.submit_rid.is_some());
            let known: i64 = known.map(|bio| bio.bytes).sum();
            self.unexplained = self.unexplained.saturating_add((request.bytes - known).max(0));
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some((start, end))) = (call.file, call.range()) else { return };
        let direct = context.open().is_some_and(Description::is_direct);
        let suits = |file: &FileState| {
            // Pages of other file systems come from servers, from memory, or are unpacked.
            file.is_regular() && matches!(file.fs_type.as_str(), "ext4" | "xfs" | "f2fs")
        };
        if direct || !context.file(call).is_some_and(suits) {
            return;
        }
        let reader = self.readers.entry((call.pid, id));
        if reader.comm.is_empty() {
            reader.comm = call.comm_text();
        }
        reader.bytes = reader.bytes.saturating_add(end - start);
        reader.time_ns = reader.time_ns.saturating_add(call.dur_ns);
        let below = &context.below;
        let pages = below.misses.saturating_add(below.ahead);
        if end - start >= LONG {
            let brought = pages.saturating_mul(PAGE).min(end - start);
            let without_data = (brought - below.read_bytes).max(0);
            if without_data > 0 {
                reader.long = reader.long.saturating_add(without_data);
                reader.examples.add(call);
            }
            return;
        }
        if pages > 0 {
            let (from, to) = reader.brought((start, end), pages, below.misses > 0);
            if below.reads == 0 && below.read_bytes == 0 && below.io_wait_ns == 0 {
                reader.filled.insert(from, to);
            }
        }
        if reader.filled.overlap(start, end) == end - start {
            reader.read.insert(start, end);
            reader.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), reader) in self.readers.iter() {
            let filled = reader.read.len().saturating_add(reader.long);
            let part = filled as f64 / reader.bytes.max(1) as f64;
            let cost = (reader.time_ns as f64 * part) as i64;
            let elsewhere = self.unexplained > filled / MAX_UNEXPLAINED;
            if filled < MIN_BYTES || part < MIN_PART || elsewhere || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*id).map_or("", |file| file.name());
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Read, Kind::Transfer]),
                title: format!(
                    "{} reads {} of {path} from ranges without data: {} of the bytes that it reads from the file",
                    reader.comm,
                    units::bytes(filled),
                    units::percent(part),
                ),
                subject: Subject::process(*pid, &reader.comm).with_file(*id, path),
                evidence: vec![
                    number("bytes_without_data", filled),
                    number("bytes_read", reader.bytes),
                    evidence("share_of_what_it_reads", part),
                ],
                examples: reader.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_reads(syscall)"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A scan of 64 MiB in reads of 128 KiB, each of which brings its pages.
    fn scan(mut s: Scenario, each: impl Fn(&mut Scenario)) -> Scenario {
        let fd = s.open_existing("/data/image", "O_RDONLY", 64 << 20);
        s.slow(50_000);
        for i in 0..512 {
            each(&mut s);
            s.pread(fd, 131_072, i * 131_072);
        }
        s
    }

    #[test]
    fn fires_on_pages_that_no_device_read() {
        let found = fires("hole-reads", scan(Scenario::new(), |s| s.cached(1, 31)));
        assert_eq!(found[0].evidence[0].value, f64::from(64 << 20));
        assert_eq!(found[0].evidence[2].value, 1.0);
    }

    /// One call reads data and ranges without data.
    #[test]
    fn fires_on_a_long_call() {
        let copy = |device: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/image", "O_RDONLY", 64 << 20);
            s.slow(50_000_000);
            s.cached(16_384, 16_000);
            if device > 0 {
                s.missed_ahead(device, 900_000);
            }
            s.sendfile(fd, 64 << 20);
            s
        };
        let found = fires("hole-reads", copy(16 << 20));
        assert_eq!(found[0].evidence[0].value, f64::from(48 << 20));
        fires("hole-reads", copy(0));
        silent("hole-reads", copy(60 << 20));
    }

    #[test]
    fn silent_on_cached_pages_on_data_and_on_waits() {
        silent("hole-reads", scan(Scenario::new(), |_| {}));
        let data = |s: &mut Scenario| {
            s.cached(1, 31);
            s.missed_ahead(131_072, 90_000);
        };
        silent("hole-reads", scan(Scenario::new(), data));
        // Another thread reads these pages, or a worker decrypts them.
        let wait = |s: &mut Scenario| {
            s.cached(1, 31);
            s.off_cpu(90_000);
        };
        silent("hole-reads", scan(Scenario::new(), wait));
    }

    /// A file with data every 100 MiB, read for so many MiB from each of these places on; `read`
    /// reads one of them, after the first, at this offset.
    fn scan_of_pieces(mib: i64, read: impl Fn(&mut Scenario, i32, i64, i64)) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/image", "O_RDONLY", 4 << 30);
        s.slow(50_000);
        for piece in (0..40).map(|n| n * (100 << 20)) {
            s.cached(256, 256);
            s.missed_ahead(2 << 20, 90_000);
            s.pread(fd, 1 << 20, piece);
            for part in 1..mib {
                read(&mut s, fd, part, piece + (part << 20));
            }
        }
        s
    }

    /// Data in pieces of 6 MiB that the program looks up, with nothing behind them that the kernel
    /// reads ahead, in the course of the calls or after them.
    #[test]
    fn silent_on_ranges_that_are_read_ahead_and_never_by_the_program() {
        let read = |s: &mut Scenario, fd, part, at| match part {
            1 => {
                s.cached(0, 1024);
                s.pread(fd, 1 << 20, at);
                s.arrives("/data/image", at + (1 << 20), 4 << 20);
            }
            2 => {
                s.cached(0, 2048);
                s.pread(fd, 1 << 20, at);
            }
            _ => s.pread(fd, 1 << 20, at),
        };
        silent("hole-reads", scan_of_pieces(6, read));
    }

    /// A program that does not look the pieces up reads 8 MiB without data after 2 MiB with.
    #[test]
    fn counts_what_the_program_reads_of_the_ranges_that_were_read_ahead() {
        let read = |s: &mut Scenario, fd, part, at| {
            if part == 1 {
                s.cached(0, 2048);
            }
            s.pread(fd, 1 << 20, at);
        };
        let found = fires("hole-reads", scan_of_pieces(10, read));
        assert_eq!(found[0].evidence[0].value, f64::from(320 << 20));
    }

    #[test]
    fn silent_where_pages_come_from_elsewhere_or_reads_have_no_known_cause() {
        for fs_type in ["nfs4", "overlay", "tmpfs", "squashfs"] {
            let mut s = Scenario::new();
            s.fs_type(fs_type);
            silent("hole-reads", scan(s, |s| s.cached(1, 31)));
        }
        let mut s = Scenario::new();
        s.others_read(64 << 20);
        silent("hole-reads", scan(s, |s| s.cached(1, 31)));
    }
}

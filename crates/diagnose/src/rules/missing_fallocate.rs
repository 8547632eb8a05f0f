//! `missing-fallocate`: a file grows a little before each sync.

use crate::layers::Origin;
use crate::prelude::*;
use crate::state::Synced;

/// Syncs of a file that had just grown from which on they count.
const MIN_SYNCS: u64 = 64;
/// Share of such syncs among all syncs of the file.
const MIN_PART: f64 = 0.8;
/// Bytes that a device writes in about the time of one request.
const REQUEST: f64 = 65536.0;
/// A sync that takes more times the median than this waited for something else than its metadata.
const SLOW: i64 = 4;
/// Holes from which on they count.
const MIN_HOLES: u64 = 16;

static INFO: RuleInfo = RuleInfo {
    id: "missing-fallocate",
    name: "Growing without preallocation",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Write, Sync, Allocate, Truncate],
    about_calls: false,
    what: "Each write extends the file, and each sync then writes the new length and new blocks \
           (metadata, through the journal if the file system has one) in addition to the data. In \
           blocks that were written before, fdatasync writes only the data. Or writes jump beyond \
           the end and leave holes that are later filled in pieces all over the disk.",
    when: "One process calls fsync or fdatasync 64 or more times on one file, four fifths of these \
           calls come after a write that extended the file, and the file was not preallocated with \
           fallocate. The same holds for 64 or more extending writes with O_SYNC or O_DSYNC. Or 16 \
           or more writes start a page or more beyond the end of a file that is also filled in. One \
           sync at the end of a file does not count, nor do writes that begin in the first half of the file.",
    cost: "half of the time of these syncs, each counted up to four times the median: the part of \
           the metadata, a second write that waits for the first. It is less for large pieces, \
           whose data takes longer than the requests (64 KiB take as long as one request). For \
           holes: half of the time of the writes that leave or fill them",
    advice: "Preallocate in steps (posix_fallocate or fallocate, 16 MiB at a time for a log), write \
           zeros into the range, sync once, and then overwrite; store where the valid part ends \
           in the records themselves (length and checksum). fallocate alone saves half of the \
           cost: the length stays (except with FALLOC_FL_KEEP_SIZE), but the first write to each \
           preallocated block still changes metadata, because the block is marked unwritten until \
           then. PostgreSQL writes zeros ahead (wal_init_zero); PostgreSQL, InnoDB, and RocksDB \
           overwrite old logs.",
    not_when: "Not on copy-on-write file systems (btrfs, zfs), which allocate new blocks for each \
           overwrite.",
    bad: "for (;;) {\n    write(fd, record, n);          /* the file grows */\n    fdatasync(fd);                 /* data, then metadata */\n}",
    good: "posix_fallocate(fd, 0, 16 << 20);\nwrite_zeros(fd, 16 << 20);\nfsync(fd);\nfor (;;) {\n    pwrite(fd, record, n, at);\n    \
           fdatasync(fd);                 /* data only */\n    at += n;\n}",
    reference: "fdatasync(2); PostgreSQL's wal_init_zero and wal_recycle",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Growth {
    comm: Text,
    /// End of the file as the writes tell.
    end: i64,
    grown: bool,
    /// By so many bytes in all.
    grown_bytes: i64,
    reserved: bool,
    syncs: u64,
    after_growth: Durations,
    holes: u64,
    hole_bytes: i64,
    /// Holes that were not filled yet.
    open: Intervals,
    filled: u64,
    /// Time of the writes that left holes, and of the writes that filled them.
    hole_ns: i64,
    examples: Examples,
    hole_examples: Examples,
}

impl Growth {
    fn synced(&mut self, call: &Call) {
        self.syncs += 1;
        if std::mem::take(&mut self.grown) {
            self.after_growth.add(call.dur_ns);
            self.examples.add(call);
        }
    }
}

rule! {
    pub struct MissingFallocate {
        files: Bounded<(i32, FileId), Growth> = Bounded::new(|growth| growth.syncs + growth.holes),
        /// Whether a journal of a file system was written: not every one has one.
        journal: bool,
    }
}

impl Rule for MissingFallocate {
    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some(file)) = (call.file, context.file(call)) else { return };
        if !call.succeeded() || !file.is_regular() || file.is_volatile() {
            return;
        }
        let growth = self.files.entry((call.pid, id));
        if growth.comm.is_empty() {
            growth.comm = call.comm_text();
        }
        match call.kind {
            Kind::Allocate => growth.reserved = true,
            Kind::Truncate => {
                let length = call.arg("length").and_then(|n| n.parse().ok()).unwrap_or(0);
                growth.end = length;
                growth.grown = true;
            }
            Kind::Write => {
                let Some((start, end)) = call.range() else { return };
                let length = file.size.unwrap_or(0).max(growth.end);
                if file.size.is_some() && start >= length + 4096 {
                    growth.holes += 1;
                    growth.hole_bytes += start - length;
                    growth.hole_ns += call.dur_ns;
                    growth.open.insert(length, start);
                    growth.hole_examples.add(call);
                } else if growth.open.overlap(start, end) > 0 {
                    growth.filled += 1;
                    growth.hole_ns += call.dur_ns;
                    growth.open.remove(start, end);
                }
                // A file that is written whole each time grows with what it has to say.
                if end > length && start >= length / 2 {
                    growth.grown = true;
                    growth.grown_bytes += end - start;
                }
                growth.end = end.max(length);
                // Data and metadata in one call.
                if context.synced == Some(Synced::Own) {
                    growth.synced(call);
                }
            }
            _ => growth.synced(call),
        }
    }

    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        if let Row::Device(request) = row {
            self.journal |= request.bios.iter().any(|bio| bio.origin == Origin::Journal);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), growth) in self.files.iter() {
            let Some(file) = run.state.files.get(*id) else { continue };
            let (path, times) = (file.name(), growth.after_growth.count);
            let part = times as f64 / growth.syncs.max(1) as f64;
            let each = growth.grown_bytes as f64 / times.max(1) as f64;
            let most = growth.after_growth.median_ns().saturating_mul(SLOW);
            let cost = (growth.after_growth.sum_up_to_ns(most) as f64 / (2.0 + each / REQUEST)) as i64;
            let subject = Subject::process(*pid, &growth.comm).with_file(*id, path);
            let query = calls!("pid = {pid} AND file_id = {id} AND (call_writes(syscall) OR syscall IN ('fsync', 'fdatasync', 'fallocate', 'ftruncate'))");
            let overwrites = !matches!(file.fs_type.as_str(), "btrfs" | "zfs" | "bcachefs");
            if times >= MIN_SYNCS && part >= MIN_PART && !growth.reserved && overwrites && run.matters(cost) {
                out.push(Found {
                    cost_ns: Some(cost),
                    costs: Costs::of(&[Kind::Sync, Kind::Write]),
                    title: format!(
                        "{} makes {path} durable {} times right after it grew: {} each time",
                        growth.comm,
                        units::count(times as i64),
                        if self.journal { "the journal is written" } else { "metadata is written" },
                    ),
                    subject: subject.clone(),
                    evidence: vec![
                        number("syncs_after_growth", times as i64),
                        number("syncs", growth.syncs as i64),
                        number("median_ns", growth.after_growth.median_ns()),
                    ],
                    examples: growth.examples.list(),
                    query: query.clone(),
                    ..Found::default()
                });
            }
            if growth.holes >= MIN_HOLES && growth.filled >= growth.holes && run.matters(growth.hole_ns / 2) {
                out.push(Found {
                    cost_ns: Some(growth.hole_ns / 2),
                    costs: Costs::of(&[Kind::Write]),
                    title: format!(
                        "{} writes beyond the end of {path} {} times and leaves holes that it fills later",
                        growth.comm,
                        units::count(growth.holes as i64),
                    ),
                    subject,
                    evidence: vec![
                        number("holes", growth.holes as i64),
                        number("bytes_of_holes", growth.hole_bytes),
                    ],
                    examples: growth.hole_examples.list(),
                    query,
                    ..Found::default()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_synchronous_appends_and_not_on_those_into_what_is_there() {
        let frames = |size: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/cam0", "O_WRONLY|O_DSYNC", size);
            s.slow(400_000);
            for i in 0..100 {
                s.pwrite(fd, 98_304, i * 98_304);
            }
            s
        };
        let found = fires("missing-fallocate", frames(0));
        // A bit more than a quarter of what the writes took.
        let cost = found[0].cost_ns.unwrap();
        assert!((100 * 110_000..100 * 140_000).contains(&cost), "{cost}");
        silent("missing-fallocate", frames(100 * 98_304));
    }

    #[test]
    fn fires_on_a_log_that_grows() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for _ in 0..200 {
            s.write(fd, 512);
            s.fsync(fd);
        }
        let found = fires("missing-fallocate", s);
        assert_eq!(found[0].evidence[0].value, 200.0);
    }

    #[test]
    fn silent_on_a_file_that_is_written_whole_each_time() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/state.json", "O_RDWR", 0);
        for i in 1..200 {
            s.pwrite(fd, i * 30, 0);
            s.fsync(fd);
        }
        silent("missing-fallocate", s);
    }

    #[test]
    fn holes_cost_half_of_the_writes_that_leave_and_fill_them() {
        let pieces = |fills: bool| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/download", "O_WRONLY|O_CREAT", 0);
            s.write(fd, 65536);
            s.slow(100_000);
            for i in 1..40 {
                s.pwrite(fd, 65536, (2 * i + 1) * 65536);
            }
            if fills {
                (0..40).for_each(|i| s.pwrite(fd, 65536, 2 * i * 65536));
            }
            s
        };
        let found = fires("missing-fallocate", pieces(true));
        let cost = found[0].cost_ns.unwrap();
        assert!((78 * 50_000..78 * 60_000).contains(&cost), "{cost}");
        // Sparse as it is meant to be.
        silent("missing-fallocate", pieces(false));
    }

    #[test]
    fn silent_on_a_log_that_is_overwritten() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/wal", "O_WRONLY", 16 << 20);
        for i in 0..200 {
            s.pwrite(fd, 512, i * 512);
            s.fsync(fd);
        }
        silent("missing-fallocate", s);
    }

    #[test]
    fn speaks_of_the_journal_only_when_one_was_written() {
        for journal in [false, true] {
            let mut s = Scenario::new();
            let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
            for _ in 0..200 {
                s.write(fd, 512);
                if journal {
                    s.writes_back("/data/wal", 4096, 8192);
                }
                s.fsync(fd);
            }
            let found = fires("missing-fallocate", s);
            assert_eq!(found[0].title.contains("the journal is written"), journal);
            assert_eq!(found[0].title.contains("metadata is written"), !journal);
        }
    }
}

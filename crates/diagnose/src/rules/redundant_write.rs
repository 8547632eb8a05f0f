//! `redundant-write`: bytes written again before they were made durable or the file closed.

use crate::prelude::*;

/// Share of the written bytes that were overwritten.
const MIN_PART: f64 = 0.5;
/// How often the same bytes are overwritten, from which on their share does not matter.
const MANY_TIMES: i64 = 8;
/// Calls that overwrite from which on they count.
const MIN_CALLS: u64 = 32;

static INFO: RuleInfo = RuleInfo {
    id: "redundant-write",
    name: "Bytes overwritten before use",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Sync, Msync, Mmap, Transfer, Truncate],
    about_calls: true,
    what: "The same bytes of a file are written several times before they are made durable. Only \
           the last write has an effect; the others were wasted.",
    when: "More than half of the bytes that a process wrote to a file overwrote bytes that it had \
           written since the file was last made durable, in 32 or more calls; or it overwrote the \
           same bytes eight times on average in this way, such as a header after each row. Bytes \
           that any recorded process has read in between do not count, because that write was used.",
    cost: "the time of writes to such bytes; for writes that overlap them in part, that fraction of \
           their time",
    advice: "Change the bytes in memory and write them once, when they are final or before fsync.",
    not_when: "",
    bad: "for (i = 0; i < n; i++) {\n    header.count++;\n    pwrite(fd, &header, sizeof header, 0);\n}",
    good: "for (i = 0; i < n; i++)\n    header.count++;\npwrite(fd, &header, sizeof header, 0);",
    reference: "Dead writes: the same idea as dead stores in compilers",
};

/// One process on one file.
#[derive(Debug, Default)]
struct Writes {
    comm: Text,
    calls: u64,
    bytes: i64,
    again: i64,
    /// Time of writes as far as they overwrite.
    again_ns: i64,
    /// The different bytes that were overwritten.
    overwritten: Intervals,
    examples: Examples,
}

rule! {
    pub struct RedundantWrite {
        writes: Bounded<(i32, FileId), Writes> = Bounded::new(|writes| writes.calls),
        /// Bytes written and not read, synced, or closed since.
        unused: Bounded<FileId, crate::state::intervals::Intervals>
            = Bounded::new(|unused| unused.len().unsigned_abs()),
    }
}

impl Rule for RedundantWrite {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        if call.kind != Kind::Write {
            // Read, mapped, or made durable: used. A read of other bytes does not use them, but
            // exact sets of reads would cost more than they are worth.
            if call.succeeded() && (call.kind != Kind::Read || call.moved() > 0) {
                self.unused.remove(&id);
            }
            return;
        }
        let Some((start, end)) = call.range() else { return };
        // Each is of use as soon as it returns.
        if context.synced.is_some() {
            self.unused.remove(&id);
            return;
        }
        // Reads of a mapping are no calls.
        if !context.file(call).is_some_and(|file| file.is_regular() && !file.is_mapped) {
            return;
        }
        let again = self.unused.entry(id).insert(start, end);
        let len = end - start;
        let writes = self.writes.entry((call.pid, id));
        if writes.bytes == 0 {
            writes.comm = call.comm_text();
        }
        writes.bytes += len;
        if again > 0 {
            writes.calls += 1;
            writes.again += again;
            writes.again_ns += (call.dur_ns as f64 * again as f64 / len as f64) as i64;
            writes.overwritten.insert(start, end);
            writes.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), writes) in self.writes.iter() {
            let part = writes.again as f64 / writes.bytes.max(1) as f64;
            let cost = writes.again_ns;
            let often = writes.again / writes.overwritten.len().max(1) >= MANY_TIMES;
            if writes.calls < MIN_CALLS || !(part > MIN_PART || often) || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Write]),
                title: format!(
                    "{} writes {} to {path}, of which {} overwrite bytes that it had just written",
                    writes.comm,
                    units::bytes(writes.bytes),
                    units::bytes(writes.again),
                ),
                subject: Subject::process(*pid, &writes.comm).with_file(*file, path),
                evidence: vec![
                    number("bytes_written", writes.bytes),
                    number("bytes_overwritten", writes.again),
                    number("calls_that_overwrite", writes.calls as i64),
                ],
                examples: writes.examples.list(),
                query: calls!("pid = {pid} AND file_id = {file} AND call_writes(syscall)"),
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
    fn silent_on_what_is_read_through_a_mapping() {
        let mut s = Scenario::new();
        let fd = s.open("/run/status", "O_RDWR|O_CREAT");
        s.map_shared(fd, "PROT_READ");
        (0..400).for_each(|_| s.pwrite(fd, 4096, 0));
        silent("redundant-write", s);
    }

    #[test]
    fn fires_on_a_header_beside_large_blocks_and_not_on_pages_that_come_twice() {
        let blocks = |pages: i64| {
            let mut s = Scenario::new();
            let fd = s.open("/data/ticks", "O_RDWR|O_CREAT");
            for i in 0..200 {
                s.pwrite(fd, 16384, (1 << 20) + i * 16384);
                s.pwrite(fd, 4096, i % pages * 4096);
            }
            s
        };
        let found = fires("redundant-write", blocks(1));
        assert_eq!(found[0].evidence[2].value, 199.0);
        silent("redundant-write", blocks(100));
    }

    #[test]
    fn fires_on_a_header_written_each_time() {
        let mut s = Scenario::new();
        let fd = s.open("/data/table", "O_RDWR|O_CREAT");
        for i in 0..200 {
            s.pwrite(fd, 100, 4096 + i * 100);
            s.pwrite(fd, 4096, 0);
        }
        let found = fires("redundant-write", s);
        assert_eq!(found[0].evidence[1].value, 199.0 * 4096.0);
    }

    #[test]
    fn silent_when_made_durable_or_read() {
        let mut s = Scenario::new();
        let fd = s.open("/data/a", "O_RDWR|O_CREAT");
        for _ in 0..200 {
            s.pwrite(fd, 4096, 0);
            s.fsync(fd);
        }
        let fd = s.open("/data/b", "O_RDWR|O_CREAT");
        for _ in 0..200 {
            s.pwrite(fd, 4096, 0);
            s.pread(fd, 4096, 0);
        }
        let fd = s.open("/data/c", "O_RDWR|O_CREAT|O_DSYNC");
        for _ in 0..200 {
            s.pwrite(fd, 4096, 0);
        }
        silent("redundant-write", s);
    }
}

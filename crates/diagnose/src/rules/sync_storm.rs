//! `sync-storm`: little is written before each fsync, or nothing.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::stats::Durations;
use crate::text::Text;

/// Syncs of a thread on a file from which on they count.
const MIN_SYNCS: u64 = 16;
/// Median of what is dirty before a sync below which it is little, bytes.
const LITTLE: i64 = 16 << 10;
/// Share of the thread's time that goes into them.
const MIN_PART: f64 = 0.3;
/// What a group commit would put together.
const GROUP: i64 = 8;

static INFO: RuleInfo = RuleInfo {
    id: "sync-storm",
    name: "fsync for little or nothing",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: true,
    what: "A thread makes a file durable after every few bytes, and waits for the device most of its time; or it \
           calls fsync on a file in which nothing has changed since the last one.",
    when: "16 or more calls of fsync or fdatasync by one thread on one file, with a median of less than 16 KiB \
           written before each, that take 30 % or more of the thread's time; 16 KiB is what devices write in about \
           the same time as one sector. Or 16 or more on a file that was clean: made durable before in the \
           recording and not changed since, by any recorded process: neither written, nor truncated, nor had room \
           reserved or freed in it (fallocate), nor given other attributes.",
    lost: "syncs of a clean file: all their time. Others: seven eighths of it, as if eight were put together",
    advice: "Put several changes into one sync (group commit, a transaction around many statements); \
             fdatasync instead of fsync where the file keeps its length; drop syncs of files that did not change.",
    not_when: "Not when each change is promised to somebody before the next one comes (one client, one transaction at \
               a time).",
    bad: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    fsync(fd);\n}",
    good: "for (i = 0; i < n; i++) {\n    write(fd, &row[i], sizeof row[i]);\n    if (i % 64 == 63)\n        \
           fdatasync(fd);\n}\nfdatasync(fd);",
    reference: "fsync(2); PostgreSQL's commit_delay; SQLite's advice on many INSERTs a transaction",
};

/// One thread on one file.
#[derive(Debug, Default)]
struct Syncs {
    comm: Text,
    pid: i32,
    /// Time of syncs with something to write, and of those without.
    dirty: Durations,
    clean: Durations,
    /// How much was dirty, in buckets as of durations.
    amounts: Durations,
    first_ns: i64,
    last_ns: i64,
    examples: Examples,
    clean_examples: Examples,
    /// Names of the calls on the clean file.
    clean_calls: Vec<Text>,
}

/// The rule's state.
#[derive(Debug)]
pub struct SyncStorm {
    threads: Bounded<(i32, FileId), Syncs>,
}

impl Default for SyncStorm {
    fn default() -> Self {
        Self {
            threads: Bounded::new(|syncs| syncs.dirty.count + syncs.clean.count),
        }
    }
}

impl Rule for SyncStorm {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Sync])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some(file)) = (call.file, context.file(call)) else { return };
        if !call.succeeded() || call.asynchronous || !file.is_regular() {
            return;
        }
        let syncs = self.threads.entry((call.tid, id));
        if syncs.first_ns == 0 {
            syncs.first_ns = call.ts_ns;
            syncs.comm = call.comm_text();
            syncs.pid = call.pid;
        }
        syncs.last_ns = call.end_ns();
        let durable_before = file.last_sync.is_some_and(|(sync, _)| {
            file.last_change.is_none_or(|change| change <= sync)
        });
        if file.dirty.is_empty() && durable_before {
            syncs.clean.add(call.dur_ns);
            syncs.clean_examples.add(call);
            if !syncs.clean_calls.iter().any(|name| **name == *call.syscall) {
                syncs.clean_calls.push(call.syscall_text());
            }
        } else if !file.dirty.is_empty() {
            syncs.dirty.add(call.dur_ns);
            syncs.amounts.add(file.dirty.len());
            syncs.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((tid, file), syncs) in self.threads.iter() {
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            let subject = Subject {
                tid: Some(*tid),
                ..Subject::process(syncs.pid, &syncs.comm).with_file(*file, path)
            };
            let query = sql::calls(&format!(
                "tid = {tid} AND file_id = {} AND syscall IN ('fsync', 'fdatasync', 'write', 'pwrite64', 'writev', 'pwritev')",
                file.0
            ));
            let amount = syncs.amounts.median_ns();
            let lost = syncs.dirty.sum_ns * (GROUP - 1) / GROUP;
            let time = (syncs.last_ns - syncs.first_ns).max(1);
            let part = syncs.dirty.sum_ns as f64 / time as f64;
            if syncs.dirty.count >= MIN_SYNCS && amount < LITTLE && part >= MIN_PART && run.matters(lost) {
                out.push(Found {
                    lost_ns: Some(lost),
                    title: format!(
                        "{} makes {path} durable {} times, each time after about {}; that takes {} of the thread's time",
                        syncs.comm,
                        units::count(syncs.dirty.count as i64),
                        units::bytes(amount),
                        units::percent(part),
                    ),
                    subject: subject.clone(),
                    evidence: vec![
                        number("syncs", syncs.dirty.count as i64),
                        number("median_dirty_bytes", amount),
                        number("median_ns", syncs.dirty.median_ns()),
                        crate::rule::evidence("share_of_thread", part),
                    ],
                    examples: syncs.examples.list(),
                    query: query.clone(),
                    ..Found::default()
                });
            }
            if syncs.clean.count >= MIN_SYNCS && run.matters(syncs.clean.sum_ns) {
                out.push(Found {
                    lost_ns: Some(syncs.clean.sum_ns),
                    title: format!(
                        "{} calls {} {} times on {path}, in which nothing has changed since the sync before",
                        syncs.comm,
                        syncs.clean_calls.iter().map(Text::as_str).collect::<Vec<_>>().join(" and "),
                        units::count(syncs.clean.count as i64),
                    ),
                    subject,
                    evidence: vec![number("syncs_of_clean_file", syncs.clean.count as i64)],
                    examples: syncs.clean_examples.list(),
                    query,
                    rests_on_absence: true,
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
    fn fires_on_a_sync_a_row() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 200);
            s.fsync(fd);
        }
        let found = fires("sync-storm", s);
        assert!((found[0].evidence[1].value - 200.0).abs() < 30.0);
    }

    #[test]
    fn fires_on_clean_files() {
        let mut s = Scenario::new();
        let fd = s.open("/data/state", "O_WRONLY|O_CREAT");
        s.write(fd, 1 << 20);
        for _ in 0..50 {
            s.fsync(fd);
        }
        let found = fires("sync-storm", s);
        assert_eq!(found[0].evidence[0].value, 49.0);
    }

    #[test]
    fn silent_on_large_amounts() {
        let mut s = Scenario::new();
        let fd = s.open("/data/sst", "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            for _ in 0..16 {
                s.write(fd, 65536);
            }
            s.fsync(fd);
        }
        silent("sync-storm", s);
    }

    #[test]
    fn silent_when_syncs_are_rare() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..60 {
            s.write(fd, 200);
            s.fsync(fd);
            s.wait_ms(1000);
        }
        silent("sync-storm", s);
    }

    #[test]
    fn silent_when_length_or_room_changes_between() {
        let mut s = Scenario::new();
        let fd = s.open("/data/journal", "O_RDWR|O_CREAT");
        s.write(fd, 1 << 20);
        s.fsync(fd);
        for _ in 0..50 {
            s.truncate(fd, 0);
            s.fdatasync(fd);
        }
        let fd = s.open("/data/table", "O_RDWR|O_CREAT");
        s.write(fd, 1 << 20);
        s.fsync(fd);
        for i in 0..50 {
            s.allocate(fd, i * 65536, 65536);
            s.fdatasync(fd);
        }
        silent("sync-storm", s);
    }

    #[test]
    fn shows_the_costliest_syncs() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for i in 0..100 {
            s.write(fd, 200);
            s.slow(if i % 40 == 20 { i * 100_000 } else { 0 });
            s.fsync(fd);
            s.slow(0);
        }
        let found = fires("sync-storm", s);
        let times: Vec<i64> = found[0].examples.iter().map(|e| e.dur_ns).collect();
        assert_eq!(times, [7_000_000, 3_000_000, 1_000_000]);
    }

    #[test]
    fn names_the_call() {
        let mut s = Scenario::new();
        let fd = s.open("/data/state", "O_WRONLY|O_CREAT");
        s.write(fd, 1 << 20);
        for _ in 0..50 {
            s.fdatasync(fd);
        }
        let found = fires("sync-storm", s);
        assert!(found[0].title.contains("calls fdatasync 49 times"), "{}", found[0].title);
    }
}

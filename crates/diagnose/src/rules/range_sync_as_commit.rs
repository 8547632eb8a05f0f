//! `range-sync-as-commit`: sync_file_range is used where bytes have to be durable.

use crate::prelude::*;

const MIN_CALLS: u64 = 10;
/// Bytes between two of them on average: who waits for so few means each of them.
const MAX_MEAN: i64 = 64 << 10;

static INFO: RuleInfo = RuleInfo {
    id: "range-sync-as-commit",
    name: "sync_file_range instead of fdatasync",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![SyncRange],
    about_calls: true,
    what: "A program writes a little, waits with sync_file_range until the data is written, and \
           continues as if it were durable. It is not: sync_file_range writes neither the file's \
           length nor its block map, and does not flush the device's cache. After a crash confirmed \
           records can be missing.",
    when: "One process calls sync_file_range with SYNC_FILE_RANGE_WAIT_AFTER 10 or more times on a \
           file, writes less than 64 KiB between two such calls on average, and no fsync, \
           fdatasync, sync, syncfs, or O_SYNC makes the file durable from the first of them to the \
           end of the recording. A program that writes more between two waits evens out the load of \
           the device, and calls without WAIT_AFTER only start writing.",
    cost: "",
    advice: "Call fdatasync after the writes that have to survive a crash. sync_file_range is for \
           starting to write early, so that a later fdatasync takes less time.",
    not_when: "Not when an earlier state is acceptable after a crash.",
    bad: "write(fd, record, n);\nsync_file_range(fd, at, n, SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);\nconfirm(record);",
    good: "write(fd, record, n);\nfdatasync(fd);\nconfirm(record);",
    reference: "sync_file_range(2), WARNING",
};

/// A process on a file.
#[derive(Debug, Default)]
struct Commits {
    comm: Text,
    calls: u64,
    first_at_ns: i64,
    bytes: i64,
    examples: Examples,
}

rule! {
    pub struct RangeSyncAsCommit {
        files: Bounded<(i32, FileId), Commits> = Bounded::new(|commits| commits.calls),
    }
}

impl Rule for RangeSyncAsCommit {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() || !call.has_flag("SYNC_FILE_RANGE_WAIT_AFTER") {
            return;
        }
        let file = context.file(call).filter(|file| file.is_regular() && !file.is_volatile());
        let (Some(id), Some(file)) = (call.file, file) else { return };
        if file.unwaited == 0 {
            return;
        }
        let commits = self.files.entry((call.pid, id));
        if commits.calls == 0 {
            commits.comm = call.comm_text();
            commits.first_at_ns = call.ts_ns;
        }
        commits.calls += 1;
        commits.bytes = commits.bytes.saturating_add(file.unwaited);
        commits.examples.add_first(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), commits) in self.files.iter() {
            let calls = i64::try_from(commits.calls).unwrap_or(i64::MAX);
            let mean = commits.bytes / calls.max(1);
            let Some(file) = run.state.files.get(*id) else { continue };
            // A sync of the file before, when it was made, makes none of the records durable.
            if file.last_sync.is_some_and(|(at_ns, _)| at_ns > commits.first_at_ns) {
                continue;
            }
            if commits.calls < MIN_CALLS || mean >= MAX_MEAN || file.unlinked {
                continue;
            }
            out.push(Found {
                severity: Some(Severity::Medium),
                title: format!(
                    "{} waits {} times with sync_file_range for {} of {} on average, and never makes the file durable",
                    commits.comm,
                    units::count(calls),
                    units::bytes(mean),
                    file.name(),
                ),
                subject: Subject::process(*pid, &commits.comm).with_file(*id, file.name()),
                evidence: vec![number("range_syncs", calls), number("bytes_between", mean)],
                examples: commits.examples.list(),
                query: calls!("file_id = {id} AND (call_writes(syscall) OR syscall LIKE '%sync%')"),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    const COMMIT: &str = "SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER";

    fn records(size: i64, flags: &str) -> (Scenario, i32) {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..40 {
            s.write(fd, size);
            s.sync_range(fd, flags);
        }
        (s, fd)
    }

    #[test]
    fn fires_on_records_that_are_waited_for() {
        let found = fires("range-sync-as-commit", records(200, COMMIT).0);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (40.0, 200.0));
    }

    #[test]
    fn fires_when_only_the_new_file_was_made_durable() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        s.fsync(fd);
        for _ in 0..40 {
            s.write(fd, 200);
            s.sync_range(fd, COMMIT);
        }
        fires("range-sync-as-commit", s);
    }

    #[test]
    fn silent_when_it_is_made_durable_then() {
        let (mut s, fd) = records(200, COMMIT);
        s.fdatasync(fd);
        silent("range-sync-as-commit", s);
        let (mut s, _) = records(200, COMMIT);
        s.sync_all();
        silent("range-sync-as-commit", s);
    }

    #[test]
    fn silent_on_large_pieces_on_started_writes_and_on_what_is_removed() {
        silent("range-sync-as-commit", records(1 << 20, COMMIT).0);
        silent("range-sync-as-commit", records(200, "SYNC_FILE_RANGE_WRITE").0);
        let (mut s, _) = records(200, COMMIT);
        s.unlink("/data/log");
        silent("range-sync-as-commit", s);
    }
}

//! `sync-error-ignored`: fsync failed, and the program goes on as if it had not.

use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "sync-error-ignored",
    name: "Failed fsync followed by more of the same",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Sync, Msync, Write, Open],
    about_calls: false,
    what: "fsync or fdatasync failed because data could not be written, and the program called it \
           again and took its success as covering the earlier data, or continued to write. Linux \
           marks pages clean after a failed write-back: the second fsync has nothing to write and \
           succeeds, and the data is lost.",
    when: "fsync, fdatasync, or msync failed with EIO, ENOSPC, EDQUOT, or another error of the \
           device, and the same process afterwards wrote other bytes to the same file or synced it \
           successfully, without reopening it. The failure is forgotten if the process first writes \
           again all that was written since the last successful sync, and then syncs successfully.",
    cost: "",
    advice: "Treat a failed fsync as the loss of everything written since the last successful one: \
           stop and recover from the log, or write all of it again to a new file.",
    not_when: "",
    bad: "while (fsync(fd) != 0)\n    sleep(1);       /* the second one succeeds */",
    good: "if (fsync(fd) != 0)\n    abort();         /* replay the log after restart */",
    reference: "fsyncgate: PostgreSQL mailing list, 2018; Rebello et al., ATC 2020",
};

/// A file whose sync failed for a process.
#[derive(Debug, Default)]
struct Failure {
    comm: Text,
    errno: String,
    /// Bytes that were at stake.
    at_stake: i64,
    /// Of the last failure: what had been written since the last good sync, and was not written again.
    lost: Intervals,
    /// Whether all of it was written again.
    rewritten: bool,
    syncs_after: u64,
    writes_after: u64,
    examples: Examples,
}

impl Failure {
    /// Whether a write is of bytes that were lost.
    fn is_rewritten_by(&mut self, call: &Call) -> bool {
        let Some((start, end)) = call.range() else { return false };
        let again = self.lost.overlap(start, end) > 0;
        self.lost.remove(start, end);
        self.rewritten |= again && self.lost.is_empty();
        again
    }
}

rule! {
    pub struct SyncErrorIgnored {
        failures: Bounded<(i32, FileId), Failure>
            = Bounded::new(|failure| failure.syncs_after + failure.writes_after + 1),
    }
}

/// Errors that say that bytes were lost, not that the call made no sense.
fn lost_bytes(errno: &str) -> bool {
    !matches!(errno, "EBADF" | "EINVAL" | "EROFS" | "EINTR" | "ENOSYS" | "EOPNOTSUPP")
}

impl Rule for SyncErrorIgnored {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file else { return };
        let key = (call.pid, file);
        let is_sync = matches!(call.kind, Kind::Sync | Kind::Msync);
        if let Some(errno) = call.errno.filter(|errno| is_sync && lost_bytes(errno)) {
            let dirty = context.file(call).map(|file| file.dirty.clone()).unwrap_or_default();
            let failure = self.failures.entry(key);
            failure.comm = call.comm_text();
            failure.errno = errno.to_owned();
            failure.at_stake += dirty.len();
            (failure.lost, failure.rewritten) = (dirty, false);
            failure.examples.add_first(call);
            return;
        }
        let Some(failure) = self.failures.get_mut(&key).filter(|_| call.succeeded()) else { return };
        match call.kind {
            // Reopened: the program may have started again.
            Kind::Open if failure.syncs_after + failure.writes_after == 0 => {
                self.failures.remove(&key);
            }
            Kind::Write if !failure.is_rewritten_by(call) && !failure.rewritten => {
                failure.writes_after += 1;
                failure.examples.add_first(call);
            }
            Kind::Sync | Kind::Msync if failure.rewritten && failure.syncs_after == 0 => {
                self.failures.remove(&key);
            }
            Kind::Sync | Kind::Msync => {
                failure.syncs_after += 1;
                failure.examples.add_first(call);
            }
            _ => {}
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, file), failure) in self.failures.iter() {
            if failure.syncs_after + failure.writes_after == 0 {
                continue;
            }
            let after = [
                (failure.writes_after as i64, "write", "writes"),
                (failure.syncs_after as i64, "successful sync", "successful syncs"),
            ];
            let after = after.iter().filter(|(n, ..)| *n > 0);
            let after: Vec<String> = after.map(|(n, one, more)| counted(*n, one, more)).collect();
            let path = run.state.files.get(*file).map_or("", |f| f.name());
            out.push(Found {
                severity: Some(Severity::High),
                title: format!(
                    "fsync of {path} failed with {} in {}, which continued with {}",
                    failure.errno,
                    failure.comm,
                    list(&after),
                ),
                subject: Subject::process(*pid, &failure.comm).with_file(*file, path),
                evidence: vec![
                    number("bytes_at_stake", failure.at_stake),
                    number("writes_after", failure.writes_after as i64),
                    number("syncs_after", failure.syncs_after as i64),
                ],
                examples: failure.examples.list(),
                query: calls!("pid = {pid} AND file_id = {file}"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_when_tried_again() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        s.write(fd, 8192);
        s.fail("fsync", fd, "EIO");
        s.fsync(fd);
        let found = fires("sync-error-ignored", s);
        assert_eq!(found[0].evidence[0].value, 8192.0);
    }

    /// A log whose sync finds no room at first.
    fn full(s: &mut Scenario) -> i32 {
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fsync(fd);
        s.write(fd, 8192);
        s.fail("fsync", fd, "ENOSPC");
        fd
    }

    #[test]
    fn silent_when_the_lost_bytes_are_written_again() {
        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.pwrite(fd, 8192, 4096);
        s.fail("fsync", fd, "ENOSPC");
        s.unlink("/data/old");
        s.pwrite(fd, 4096, 4096);
        s.pwrite(fd, 8192, 8192);
        s.fsync(fd);
        s.write(fd, 100);
        s.fsync(fd);
        silent("sync-error-ignored", s);
    }

    #[test]
    fn fires_when_a_part_is_written_again_or_too_late() {
        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.pwrite(fd, 4096, 4096);
        s.fsync(fd);
        fires("sync-error-ignored", s);

        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.fsync(fd);
        s.pwrite(fd, 8192, 4096);
        s.fsync(fd);
        let found = fires("sync-error-ignored", s);
        assert_eq!(found[0].evidence[2].value, 2.0);
    }

    #[test]
    fn silent_when_the_program_stops_or_the_call_made_no_sense() {
        let mut s = Scenario::new();
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        s.write(fd, 8192);
        s.fail("fsync", fd, "EIO");
        s.close(fd);
        let fd = s.open("/data/pipe", "O_WRONLY");
        s.fail("fsync", fd, "EINVAL");
        s.write(fd, 10);
        silent("sync-error-ignored", s);
    }
}

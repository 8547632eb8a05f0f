//! `write-error-ignored`: a write failed for lack of room or because of the device, and the
//! program goes on as if it had not.

use crate::prelude::*;

static INFO: RuleInfo = RuleInfo {
    id: "write-error-ignored",
    name: "Failed write that the program ignores",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Write, Sync, SyncRange, Msync, Close, Open, Truncate, Rename, Unlink],
    about_calls: true,
    what: "A write failed because the disk or the quota was full, the file too large, or the device \
           broken, and the program continued. The file lacks these bytes or ends in the middle of a \
           record, and later readers cannot notice.",
    when: "A write to a regular file (or a close of it) failed with ENOSPC, EIO, EDQUOT, or EFBIG, \
           and the same process then wrote other bytes to the file, renamed it, or ended with exit \
           status 0 and left it. Or its fsync, fdatasync, msync, or sync_file_range failed with \
           such an error, and it renamed the file; a failed sync followed by more writes belongs to \
           sync-error-ignored. A failure is forgotten if the process writes the same range \
           successfully, removes or empties the file, or truncates the incomplete part. With \
           O_APPEND a write of as many bytes or more to the same end of the file is of the same \
           range. A process that ends with another exit status has reported the error.",
    cost: "",
    advice: "Check the result of each write, of fsync, and of close. Write to a temporary file and \
           rename it only if all of them succeeded; otherwise remove it, keep the old file, and \
           stop with an error. If the program has to continue, write the record again from its \
           start once there is space.",
    not_when: "",
    bad: "write(fd, record, n);            /* ENOSPC */\nclose(fd);\nrename(\"state.tmp\", \"state\");",
    good: "if (write_all(fd, record, n) != 0 || fsync(fd) != 0 || close(fd) != 0) {\n    unlink(\"state.tmp\");\n    return -1;\n}\nrename(\"state.tmp\", \"state\");",
    reference: "write(2), close(2), ERRORS and NOTES; CWE-252",
};

/// Failures of a process on a file.
#[derive(Debug, Default)]
struct Failure {
    comm: Text,
    errno: String,
    syscall: Text,
    /// Whether a write failed, rather than a sync only.
    of_write: bool,
    failures: u64,
    /// Of the write that failed last: where it began, and its bytes.
    offset: Option<i64>,
    size: i64,
    /// Whether it would have begun at the end of the file, wherever that is.
    appends: bool,
    /// Whether attempts at one place were of more and of fewer bytes: of different records.
    larger: bool,
    smaller: bool,
    /// Writes of other bytes.
    writes_after: u64,
    renamed: Option<String>,
    /// Failures that the program has not made up for.
    open: bool,
    examples: Examples,
}

impl Failure {
    /// Whether a write, there if that is known, may be another attempt at the one that failed.
    fn is_retry(&self, call: &Call, at: Option<i64>) -> bool {
        let size = call.size.unwrap_or(0);
        let same = self.offset.zip(at).map(|(failed, now)| failed == now);
        match self.appends {
            // More may have come to be written meanwhile, and others may have appended something.
            true => size == self.size || same != Some(false) && (call.errno.is_some() || size > self.size),
            false => same.unwrap_or(size == self.size),
        }
    }

    fn fail(&mut self, call: &Call, context: &Context, errno: &str) {
        let size = call.size.unwrap_or(0);
        if call.kind == Kind::Write {
            let append = call.offset.is_none()
                && context.open().and_then(|open| open.opened_with("O_APPEND")) == Some(true);
            let end = context.file(call).and_then(|file| file.size);
            let at = call.offset.or(end.filter(|_| append));
            if self.open && self.of_write {
                if self.is_retry(call, at) {
                    self.larger |= size > self.size;
                    self.smaller |= size < self.size;
                } else {
                    self.writes_after += 1;
                }
            }
            (self.offset, self.size, self.appends) = (at, size, append);
        }
        self.of_write |= matches!(call.kind, Kind::Write | Kind::Close);
        self.open = true;
        self.failures += 1;
        if self.failures == 1 {
            self.comm = call.comm_text();
            self.syscall = call.syscall_text();
            self.errno = errno.to_owned();
        }
        self.examples.add_first(call);
    }

    fn goes_on(&self) -> bool {
        self.writes_after > 0 || self.larger && self.smaller
    }
}

rule! {
    pub struct WriteErrorIgnored {
        failures: Bounded<(i32, FileId), Failure> = Bounded::new(|failure| failure.failures),
    }
}

impl Rule for WriteErrorIgnored {
    fn call(&mut self, call: &Call, context: &Context) {
        let lost = call.errno.filter(|e| matches!(*e, "ENOSPC" | "EIO" | "EDQUOT" | "EFBIG"));
        if let Some(errno) = lost {
            use Kind::*;
            let fit = context.file(call).is_some_and(|file| file.is_regular());
            let counts = matches!(call.kind, Write | Sync | SyncRange | Msync | Close);
            if let (Some(id), true, true) = (call.file, fit, counts) {
                self.failures.entry((call.pid, id)).fail(call, context, errno);
            }
            return;
        }
        if !call.succeeded() || self.failures.is_empty() {
            return;
        }
        let named = || call.path_key().and_then(|path| context.state.files.at_key(path));
        let id = match call.kind {
            Kind::Rename | Kind::Unlink => named(),
            _ => call.file,
        };
        let Some(id) = id else { return };
        let Some(failure) = self.failures.get_mut(&(call.pid, id)).filter(|f| f.open) else { return };
        let made_up_for = match call.kind {
            Kind::Unlink => true,
            Kind::Open => call.has_flag("O_TRUNC"),
            Kind::Truncate => {
                let length = call.arg("length").and_then(|n| n.parse::<i64>().ok());
                length.is_some_and(|length| failure.appends || failure.offset.is_none_or(|at| length <= at))
            }
            Kind::Write if call.moved() > 0 && failure.of_write => {
                let retry = failure.is_retry(call, call.offset) && !(failure.larger && failure.smaller);
                if !retry {
                    failure.writes_after += 1;
                    failure.examples.add_first(call);
                }
                retry
            }
            Kind::Rename => {
                if failure.renamed.is_none() {
                    failure.renamed = call.path2.map(str::to_owned);
                    failure.examples.add_first(call);
                }
                false
            }
            _ => false,
        };
        // Once other bytes came behind it, or the name was changed, others may have read the file.
        if made_up_for && !failure.goes_on() && failure.renamed.is_none() {
            self.failures.remove(&(call.pid, id));
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), failure) in self.failures.iter().filter(|(_, failure)| failure.open) {
            let process = run.state.process(*pid);
            let ended_well = process.is_some_and(|p| p.exit_status == Some(0));
            let (goes_on, left) = (failure.goes_on(), ended_well && failure.of_write);
            if failure.renamed.is_none() && !goes_on && !left {
                continue;
            }
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            let then = match (&failure.renamed, failure.writes_after) {
                (Some(to), _) => format!("renamed the file to {to}"),
                (None, 0) if goes_on => "continued with other records".to_owned(),
                (None, 0) => "ended with exit status 0 and left the file as it was".to_owned(),
                (None, 1) => "wrote to it once more".to_owned(),
                (None, n) => format!("wrote to it {} more times", units::count(n as i64)),
            };
            let times = match failure.failures {
                1 => "once".to_owned(),
                n => format!("{} times", units::count(n as i64)),
            };
            out.push(Found {
                severity: Some(match failure.renamed.is_some() || goes_on {
                    true => Severity::High,
                    false => Severity::Medium,
                }),
                title: format!(
                    "{} of {path} failed with {} {times} in {}, which {then}",
                    failure.syscall, failure.errno, failure.comm,
                ),
                subject: Subject::process(*pid, &failure.comm).with_file(*id, path),
                evidence: vec![
                    number("failures", failure.failures as i64),
                    number("writes_after", failure.writes_after as i64),
                ],
                examples: failure.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND errno IN ('ENOSPC', 'EIO', 'EDQUOT', 'EFBIG')"),
                // A retry, or the removal, may have been among what was not seen.
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_when_it_goes_on_writing() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail_write(fd, 4096, None, "ENOSPC");
        s.fail_write(fd, 4096, Some(65536), "ENOSPC");
        s.pwrite(fd, 512, 0);
        let found = fires("write-error-ignored", s);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::High);
        assert_eq!(found[0].evidence[0].value, 2.0);
        assert_eq!(found[0].evidence[1].value, 2.0);
    }

    #[test]
    fn fires_on_records_of_different_sizes_at_the_end() {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        for size in [80, 120, 75, 90] {
            s.fail_write(fd, size, None, "EDQUOT");
        }
        fires("write-error-ignored", s);
    }

    #[test]
    fn fires_when_the_file_is_published() {
        let mut s = Scenario::new();
        let fd = s.open("/data/state.tmp", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail_write(fd, 4096, None, "ENOSPC");
        s.close(fd);
        s.rename("/data/state.tmp", "/data/state");
        let fd = s.open("/data/index.tmp", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail("fsync", fd, "EIO");
        s.rename("/data/index.tmp", "/data/index");
        s.ends(1);
        let found = fires("write-error-ignored", s);
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found.iter().any(|f| f.title.contains("renamed the file to /data/state")));
    }

    #[test]
    fn fires_when_it_ends_as_if_all_was_well() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail_write(fd, 4096, None, "ENOSPC");
        s.fail_write(fd, 4096, None, "ENOSPC");
        s.close(fd);
        s.ends(0);
        let found = fires("write-error-ignored", s);
        assert_eq!(found[0].severity, Severity::Medium);
    }

    fn full(s: &mut Scenario) -> i32 {
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail_write(fd, 4096, None, "ENOSPC");
        fd
    }

    #[test]
    fn silent_when_it_stops_removes_or_tries_again_with_success() {
        let mut s = Scenario::new();
        full(&mut s);
        s.ends(1);
        silent("write-error-ignored", s);

        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.close(fd);
        s.unlink("/data/out");
        s.ends(0);
        silent("write-error-ignored", s);

        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.unlink("/data/old");
        s.write(fd, 4096);
        s.write(fd, 4096);
        s.close(fd);
        s.rename("/data/out", "/data/done");
        s.ends(0);
        silent("write-error-ignored", s);

        let mut s = Scenario::new();
        let fd = full(&mut s);
        s.truncate(fd, 4096);
        s.close(fd);
        s.ends(0);
        silent("write-error-ignored", s);
    }

    /// A log to which `sizes` cannot be appended.
    fn full_log(sizes: &[i64]) -> (Scenario, i32) {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
        s.write(fd, 4096);
        for size in sizes {
            s.fail_at("write", fd, *size, None, "ENOSPC");
        }
        (s, fd)
    }

    #[test]
    fn silent_when_a_buffer_that_grew_is_appended() {
        let (mut s, fd) = full_log(&[500, 500, 800]);
        s.write(fd, 1000);
        s.write(fd, 80);
        s.close(fd);
        s.ends(0);
        silent("write-error-ignored", s);
    }

    #[test]
    fn fires_when_other_records_are_appended() {
        let (mut s, fd) = full_log(&[500]);
        s.write(fd, 80);
        fires("write-error-ignored", s);
        let (s, _) = full_log(&[80, 120, 75]);
        fires("write-error-ignored", s);
    }

    #[test]
    fn silent_while_it_runs_and_on_failed_syncs_that_end_it() {
        let mut s = Scenario::new();
        full(&mut s);
        silent("write-error-ignored", s);
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        s.write(fd, 4096);
        s.fail("fsync", fd, "EIO");
        s.close(fd);
        s.ends(0);
        silent("write-error-ignored", s);
    }
}

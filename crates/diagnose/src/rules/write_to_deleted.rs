//! `write-to-deleted`: a process goes on writing to a file that another process has removed.

use crate::prelude::*;

/// Writes after the removal, or bytes, from which on a writer that opened the path again later had not noticed for long.
const MIN_WRITES: u64 = 100;
const MIN_BYTES: i64 = 10 << 20;
/// Writes of one that never did: more than the rest of a buffer at the end.
const MIN_LEFT: u64 = 10;

static INFO: RuleInfo = RuleInfo {
    id: "write-to-deleted",
    name: "Writes to a deleted file",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Unlink, Rename, Link, Open, Read, Transfer, Mmap, Write],
    about_calls: true,
    what: "A process keeps writing to a file whose name another process has removed or given to \
           another file. No program can open the data, all of it is lost when the descriptor is \
           closed, and until then it fills the disk: df reports blocks that du does not find.",
    when: "A process makes 10 or more writes to a regular file after another process removed its \
           last known name (unlink, or rename of another file to it); 100 or more, or 10 MiB, if \
           the writer opened the path again later. The writer, or the process that had the \
           descriptor before it, had written to the file before the removal. No process reads the \
           file after its removal: a temporary file without a name is read by the processes that \
           have it open.",
    cost: "",
    advice: "Have the writer open the file again after it was moved or removed: on a signal \
           (logrotate's `postrotate`), or when fstat reports st_nlink 0. To empty a file that a \
           process writes to with O_APPEND, truncate it instead of removing it.",
    not_when: "",
    bad: "rename(\"log\", \"log.1\");\nunlink(\"log.1\");              /* the writer still has it open */",
    good: "rename(\"log\", \"log.1\");\nkill(writer, SIGHUP);          /* the writer opens \"log\" again */\nwait_until_reopened();\nunlink(\"log.1\");",
    reference: "unlink(2); logrotate(8), postrotate",
};

/// A file that has lost its name.
#[derive(Debug, Default)]
struct Removed {
    by: i32,
    by_comm: Text,
    example: Option<Example>,
    path: Text,
    pid: i32,
    comm: Text,
    writes: u64,
    bytes: i64,
    /// Whether the writer has opened the path again.
    reopened: bool,
    examples: Examples,
}

rule! {
    pub struct WriteToDeleted {
        files: Bounded<FileId, Removed> = Bounded::new(|file| file.writes),
        /// The file that was removed last from a path.
        latest: Bounded<u64, Option<FileId>>,
    }
}

impl WriteToDeleted {
    fn removed(&mut self, call: &Call, id: FileId, path: &str) {
        let removed = self.files.entry(id);
        *removed = Removed {
            by: call.pid,
            by_comm: call.comm_text(),
            example: Some(Example::of(call)),
            path: path.into(),
            ..Removed::default()
        };
    }

    fn writes(&mut self, call: &Call, context: &Context, id: FileId) {
        let Some(removed) = self.files.get_mut(&id).filter(|removed| removed.by != call.pid) else { return };
        let open = context.open();
        if removed.writes == 0 {
            // Nothing was in it yet: a temporary file.
            if open.is_none_or(|open| open.written == 0) {
                self.files.remove(&id);
                return;
            }
            (removed.pid, removed.comm) = (call.pid, call.comm_text());
            if let Some(example) = removed.example.take() {
                removed.examples.keep(example);
            }
        }
        removed.writes += 1;
        removed.bytes = removed.bytes.saturating_add(call.moved());
        removed.examples.add_first(call);
    }
}

impl Rule for WriteToDeleted {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        let names = &context.state.files;
        match call.kind {
            Kind::Unlink | Kind::Rename => {
                let (path, key) = match call.kind {
                    Kind::Unlink => (call.path, call.path_key()),
                    _ if call.has_flag("RENAME_EXCHANGE") => return,
                    _ => (call.path2, call.path2_key()),
                };
                let Some((path, key)) = path.zip(key) else { return };
                let Some((id, file)) = names.at_key(key).and_then(|id| Some((id, names.get(id)?))) else { return };
                // Renamed onto another name of its own it keeps one.
                let same = call.kind == Kind::Rename && call.path_key().and_then(|from| names.at_key(from)) == Some(id);
                if file.is_regular() && !same && (&*file.path == path || file.path.is_empty()) {
                    self.removed(call, id, path);
                    *self.latest.entry(key) = Some(id);
                }
            }
            Kind::Link => {
                let id = call.path_key().and_then(|path| names.at_key(path)).or(call.file);
                if let Some(id) = id {
                    self.files.remove(&id);
                }
            }
            Kind::Write => {
                if let Some(id) = call.file {
                    self.writes(call, context, id);
                }
            }
            // Opened by another name, or read: it is of use.
            _ => {
                if call.kind == Kind::Open
                    && let Some(old) = call.path_key().and_then(|path| self.latest.get(&path).copied().flatten())
                    && let Some(removed) = self.files.get_mut(&old).filter(|removed| removed.pid == call.pid || removed.writes == 0)
                {
                    removed.reopened |= removed.by != call.pid;
                }
                if let Some(id) = call.file {
                    self.files.remove(&id);
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (id, removed) in self.files.iter() {
            let many = removed.writes >= MIN_WRITES || removed.writes > 0 && removed.bytes >= MIN_BYTES;
            if !many && (removed.reopened || removed.writes < MIN_LEFT) {
                continue;
            }
            if run.state.files.get(*id).is_some_and(|file| !file.unlinked) {
                continue;
            }
            out.push(Found {
                severity: Some(Severity::Medium),
                title: format!(
                    "{} writes {} to {} in {} writes after {} removed it",
                    removed.comm,
                    units::bytes(removed.bytes),
                    removed.path,
                    units::count(removed.writes as i64),
                    match *removed.by_comm == *removed.comm {
                        true => format!("process {}", removed.by),
                        false => removed.by_comm.to_string(),
                    },
                ),
                subject: Subject::process(removed.pid, &removed.comm).with_file(*id, &removed.path),
                evidence: vec![
                    number("writes_after_removal", removed.writes as i64),
                    number("bytes_after_removal", removed.bytes),
                ],
                examples: removed.examples.list(),
                query: calls!("file_id = {} AND call_writes(syscall) OR syscall IN ('unlink', 'unlinkat') AND path = {path} \
                     OR syscall LIKE 'rename%' AND path2 = {path}", id.0,
                    path = sql::quote(&removed.path)),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A log with its writer in process 100; `remove` takes its name.
    fn log(first: i64, remove: impl FnOnce(&mut Scenario), then: i64) -> (Scenario, i32) {
        let mut s = Scenario::new();
        let fd = s.open("/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        s.stat("/log/app");
        for _ in 0..first {
            s.write(fd, 200);
        }
        remove(&mut s);
        s.process(100);
        for _ in 0..then {
            s.write(fd, 200);
        }
        (s, fd)
    }

    fn of_another(s: &mut Scenario) {
        s.process(200);
        s.unlink("/log/app");
    }

    #[test]
    fn silent_while_another_name_is_left() {
        let rotates = |s: &mut Scenario| {
            s.process(200);
            s.link("/log/app", "/log/app.0");
            s.unlink("/log/app");
        };
        silent("write-to-deleted", log(10, rotates, 300).0);
        let removes_both = |s: &mut Scenario| {
            rotates(s);
            s.unlink("/log/app.0");
        };
        fires("write-to-deleted", log(10, removes_both, 300).0);
    }

    #[test]
    fn fires_on_a_log_that_another_process_removed() {
        let found = fires("write-to-deleted", log(10, of_another, 300).0);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (300.0, 60_000.0));
        assert_eq!(
            found[0].title,
            "program writes 58.6 KiB to /log/app in 300 writes after process 200 removed it"
        );
    }

    #[test]
    fn fires_on_one_that_was_rotated_twice() {
        let rotate = |s: &mut Scenario| {
            s.process(200);
            s.rename("/log/app", "/log/app.1");
            let fd = s.open("/log/next", "O_WRONLY|O_CREAT");
            s.write(fd, 1);
            s.close(fd);
            s.rename("/log/next", "/log/app.1");
        };
        fires("write-to-deleted", log(10, rotate, 300).0);
    }

    #[test]
    fn silent_on_few_writes_and_on_a_file_that_was_only_renamed() {
        silent("write-to-deleted", log(10, of_another, 5).0);
        let rotate = |s: &mut Scenario| {
            s.process(200);
            s.rename("/log/app", "/log/app.1");
        };
        silent("write-to-deleted", log(10, rotate, 300).0);
    }

    #[test]
    fn fires_on_a_log_that_the_shell_opened() {
        let mut s = Scenario::new();
        let fd = s.open("/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        s.process(101);
        s.inherits(100);
        (0..10).for_each(|_| s.write(fd, 200));
        s.process(200);
        s.unlink("/log/app");
        s.process(101);
        (0..30).for_each(|_| s.write(fd, 200));
        let found = fires("write-to-deleted", s);
        assert_eq!(found[0].subject.pid, Some(101));
    }

    #[test]
    fn few_writes_count_for_a_writer_that_never_opens_the_path_again() {
        fires("write-to-deleted", log(10, of_another, 20).0);
        let (mut s, _) = log(10, of_another, 20);
        s.new_file("/log/app");
        let fd = s.open("/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        s.write(fd, 200);
        silent("write-to-deleted", s);
    }

    #[test]
    fn silent_on_temporary_files() {
        // Removed by itself, or before anything was written.
        silent("write-to-deleted", log(10, |s| s.unlink("/log/app"), 300).0);
        silent("write-to-deleted", log(0, of_another, 300).0);
        // Read by those who have it open.
        let (mut s, fd) = log(10, of_another, 300);
        s.pread(fd, 4096, 0);
        silent("write-to-deleted", s);
    }
}

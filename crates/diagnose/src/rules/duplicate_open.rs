//! `duplicate-open`: one file is opened twice for one piece of work.

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

/// Files or repetitions from which on they count.
const MIN_TIMES: u64 = 10;
/// Calls of the thread on other things that may lie between the two opens.
const MAX_BETWEEN: u64 = 16;

static INFO: RuleInfo = RuleInfo {
    id: "duplicate-open",
    name: "File opened twice for one operation",
    group: Group::Performance,
    needs: &[Input::Calls],
    what: "A thread opens a file, and shortly after opens the same file again, while the first descriptor is open still or right \
           after it was closed: one to look at it (size, type, rights), one to use it.",
    when: "10 or more times in one process, on whatever files: a second open of the same file by the same thread with at most 16 \
           calls between the two, where the first descriptor moved no bytes. Several descriptors that all move bytes have a \
           reason.",
    lost: "the time of the second opens, and as much again for their closes",
    advice: "Pass the descriptor on instead of the path; fstat and fchmod on it.",
    not_when: "",
    bad: "touch(path);                 /* opens and closes */\nfd = open(path, O_RDWR);",
    good: "fd = open(path, O_RDWR | O_CREAT, 0644);\nuse(fd);",
    reference: "DIO, section IV-A: Elasticsearch opens .es_temp_file twice for each check",
};

/// The last opens of a thread.
#[derive(Debug, Default)]
struct Thread {
    calls: u64,
    recent: Vec<Opened>,
}

#[derive(Clone, Debug)]
struct Opened {
    file: FileId,
    at: u64,
    moved: bool,
}

/// A process.
#[derive(Debug, Default)]
struct Process {
    comm: Text,
    times: u64,
    path: Text,
    file: Option<FileId>,
    open: Durations,
    examples: Examples,
}

/// The rule's state.
#[derive(Debug)]
pub struct DuplicateOpen {
    threads: Bounded<i32, Thread>,
    processes: Bounded<i32, Process>,
}

impl Default for DuplicateOpen {
    fn default() -> Self {
        Self {
            threads: Bounded::new(|thread| thread.calls),
            processes: Bounded::new(|process| process.times),
        }
    }
}

impl Rule for DuplicateOpen {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.asynchronous {
            return;
        }
        let thread = self.threads.entry(call.tid);
        thread.calls += 1;
        let now = thread.calls;
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        if call.kind.is_data() || call.kind == Kind::Mmap || call.kind == Kind::Sync {
            for opened in thread.recent.iter_mut().filter(|o| o.file == file) {
                opened.moved = true;
            }
            return;
        }
        if call.kind != Kind::Open || !context.file(call).is_none_or(|f| f.is_regular()) {
            return;
        }
        thread.recent.retain(|o| now - o.at <= MAX_BETWEEN + 1);
        let twice = thread.recent.iter().any(|o| o.file == file && !o.moved);
        thread.recent.retain(|o| o.file != file);
        thread.recent.push(Opened {
            file,
            at: now,
            moved: false,
        });
        if twice {
            let process = self.processes.entry(call.pid);
            if process.times == 0 {
                process.comm = call.comm_text();
                process.path = call.path_text();
                process.file = Some(file);
            }
            process.times += 1;
            process.open.add(call.dur_ns);
            process.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let lost = 2 * process.open.sum_ns;
            if process.times < MIN_TIMES || !run.matters(lost) {
                continue;
            }
            let subject = Subject::process(*pid, &process.comm);
            out.push(Found {
                lost_ns: Some(lost),
                title: format!(
                    "{} opens a file twice for one operation, {} times; {} is the first",
                    process.comm,
                    units::count(process.times as i64),
                    process.path,
                ),
                subject: match process.file {
                    Some(file) => subject.with_file(file, &process.path),
                    None => subject,
                },
                evidence: vec![
                    number("second_opens", process.times as i64),
                    number("median_open_ns", process.open.median_ns()),
                ],
                examples: process.examples.list(),
                query: sql::calls(&format!(
                    "pid = {pid} AND syscall IN ('open', 'openat', 'openat2', 'creat')"
                )),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_touch_and_open() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/data/tmp{i}");
            let fd = s.open(&path, "O_WRONLY|O_CREAT|O_EXCL");
            s.close(fd);
            let fd = s.open(&path, "O_RDWR");
            s.write(fd, 100);
            s.close(fd);
        }
        let found = fires("duplicate-open", s);
        assert_eq!(found[0].evidence[0].value, 30.0);
    }

    #[test]
    fn silent_when_both_are_used() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/data/{i}");
            let fd = s.open(&path, "O_WRONLY|O_CREAT");
            s.write(fd, 100);
            s.close(fd);
            let fd = s.open(&path, "O_RDONLY");
            s.read(fd, 100);
            s.close(fd);
        }
        silent("duplicate-open", s);
    }
}

//! `redundant-stat`: asking again what cannot have changed.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::Call;
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Costs, Found, Input, Rule, RuleInfo, Run, number};
use crate::state::Context;
use crate::text::Text;

/// Redundant calls of a process from which on they count.
const MIN_CALLS: u64 = 100;
/// A repetition after this long may look for changes, nanoseconds.
const FRESH_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "redundant-stat",
    name: "Redundant stat",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: true,
    what: "A process asks for the attributes of a path again within a second although no recorded call \
           has changed the file, or asks by path right before it opens the same path, when fstat on the \
           open descriptor would have told.",
    when: "100 or more such calls by one process. A repetition counts when the process asked for the same \
           path less than a second before and nothing was written, renamed, removed or changed under that path \
           since; a stat before an open counts when the thread's next call opens the same regular file. One \
           second, because programs that watch a file ask about that often.",
    lost: "the time that these calls took",
    advice: "Keep the result; open first and use fstat (or statx with AT_EMPTY_PATH) on the descriptor, \
             which also closes the gap in which the file could be replaced.",
    not_when: "Not when the program must notice changes that other hosts make on a network file system.",
    bad: "if (stat(path, &st) == 0) {\n    fd = open(path, O_RDONLY);\n    read(fd, buffer, st.st_size);\n}",
    good: "fd = open(path, O_RDONLY);\nif (fd >= 0 && fstat(fd, &st) == 0)\n    read(fd, buffer, st.st_size);",
    reference: "CWE-367 for the gap between stat and open",
};

/// A path that a process has asked for.
#[derive(Debug, Default)]
struct Asked {
    end_ns: i64,
    /// Number of the change that was the last one then.
    changes: u64,
}

/// A process.
#[derive(Debug, Default)]
struct Process {
    comm: Text,
    repeated: u64,
    before_open: u64,
    lost_ns: i64,
    examples: Examples,
}

/// The stat that a thread made last.
#[derive(Clone, Debug)]
struct Last {
    path: u64,
    dur_ns: i64,
    counted: bool,
}

/// The rule's state.
#[derive(Debug)]
pub struct RedundantStat {
    processes: Bounded<i32, Process>,
    asked: Bounded<(i32, u64), Asked>,
    /// Changes of a path: how many there have been.
    changed: Bounded<u64, u64>,
    last: Bounded<i32, Option<Last>>,
}

impl Default for RedundantStat {
    fn default() -> Self {
        Self {
            processes: Bounded::new(|process| process.repeated + process.before_open),
            asked: Bounded::new(|asked| asked.end_ns.unsigned_abs()),
            changed: Bounded::new(|changes| *changes),
            last: Bounded::new(|_| 0),
        }
    }
}

/// Whether a successful call changes what stat tells of its path.
fn changes(call: &Call) -> bool {
    use Kind::*;
    match call.kind {
        Open => call.has_flag("O_CREAT") || call.has_flag("O_TRUNC"),
        Write | Transfer | Truncate | Allocate | Rename | Unlink | SetAttr | Link | Symlink | Mkdir
        | Rmdir | Mknod | SetXattr => true,
        _ => false,
    }
}

impl Rule for RedundantStat {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let key = call.path_key();
        let last = self.last.entry(call.tid).take();
        if call.kind == Kind::Open
            && let (Some(last), Some(key)) = (last, key)
            && last.path == key
            && !last.counted
            && context.file(call).is_some_and(|file| file.is_regular())
        {
            let process = self.processes.entry(call.pid);
            process.before_open += 1;
            process.lost_ns += last.dur_ns;
            process.examples.add(call);
            if process.comm.is_empty() {
                process.comm = call.comm_text();
            }
        }
        if changes(call) && call.succeeded() {
            let second = call.path2_key();
            for key in [key, second].into_iter().flatten() {
                *self.changed.entry(key) += 1;
            }
        }
        // By descriptor: what is advised.
        let by_path = call.path_arg.is_some_and(|arg| !arg.is_empty());
        if call.kind != Kind::Stat || !by_path || call.asynchronous {
            return;
        }
        let Some(key) = key else { return };
        let changes = self.changed.get_mut(&key).map_or(0, |n| *n);
        let asked = self.asked.entry((call.pid, key));
        let repeated = asked.end_ns != 0
            && asked.changes == changes
            && call.ts_ns - asked.end_ns < FRESH_NS;
        *asked = Asked {
            end_ns: call.end_ns(),
            changes,
        };
        if repeated {
            let process = self.processes.entry(call.pid);
            process.repeated += 1;
            process.lost_ns += call.dur_ns;
            process.examples.add(call);
            if process.comm.is_empty() {
                process.comm = call.comm_text();
            }
        }
        if call.succeeded() {
            *self.last.entry(call.tid) = Some(Last {
                path: key,
                dur_ns: call.dur_ns,
                counted: repeated,
            });
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let calls = process.repeated + process.before_open;
            if calls < MIN_CALLS || !run.matters(process.lost_ns) {
                continue;
            }
            let count = |n: u64| units::count(n as i64);
            out.push(Found {
                lost_ns: Some(process.lost_ns),
                costs: Costs::of(&[Kind::Stat]),
                title: format!(
                    "{} asks {} times for attributes that it has just been told, and {} times right before it opens the file",
                    process.comm, count(process.repeated), count(process.before_open),
                ),
                subject: Subject::process(*pid, &process.comm),
                evidence: vec![
                    number("repeated", process.repeated as i64),
                    number("before_open", process.before_open as i64),
                ],
                examples: process.examples.list(),
                query: format!(
                    "SELECT path, count(*) AS calls, sum(dur_ns) AS total_ns FROM syscalls WHERE pid = {pid} AND \
                     syscall IN ('stat', 'lstat', 'newfstatat', 'statx') AND path_arg <> '' \
                     GROUP BY path HAVING count(*) > 1 ORDER BY calls DESC"
                ),
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
    fn fires_on_stat_before_open() {
        let mut s = Scenario::new();
        for i in 0..200 {
            s.stat(&format!("/src/{i}"));
            let fd = s.open_existing(&format!("/src/{i}"), "O_RDONLY", 4096);
            s.read(fd, 4096);
            s.close(fd);
        }
        let found = fires("redundant-stat", s);
        assert_eq!(found[0].evidence[1].value, 200.0);
    }

    #[test]
    fn fires_on_repetition() {
        let mut s = Scenario::new();
        for _ in 0..300 {
            s.stat("/etc/localtime");
            s.stat("/etc/hosts");
        }
        fires("redundant-stat", s);
    }

    #[test]
    fn silent_when_the_file_changes_in_between() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..300 {
            s.stat("/data/out");
            s.write(fd, 4096);
        }
        silent("redundant-stat", s);
    }

    #[test]
    fn silent_on_different_paths() {
        let mut s = Scenario::new();
        for i in 0..1000 {
            s.stat(&format!("/src/{i}"));
        }
        silent("redundant-stat", s);
    }
}

//! `fd-leak`: descriptors are opened and not closed.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::Call;
use crate::finding::{Example, Examples, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text::Text;

/// Descriptors that are left open from which on they count.
const MIN_OPEN: usize = 100;
/// Share of the opens that were not closed.
const MIN_PART: f64 = 0.5;

static INFO: RuleInfo = RuleInfo {
    id: "fd-leak",
    name: "Descriptors that are not closed",
    group: Group::Correctness,
    needs: &[Input::Calls],
    about_calls: false,
    what: "A process opens descriptors and does not close them, until it may open no more (EMFILE) and everything that needs one \
           fails: connections, files, libraries.",
    when: "open failed with EMFILE or ENFILE; or a process has 100 or more descriptors open that it opened in the recording, these \
           are over half of all it opened, and the same few paths or directories are behind them: one file opened 10 times or more \
           and never closed. A server with many different files open is healthy.",
    lost: "",
    advice: "Close each descriptor on every way out, errors too (goto out, RAII, with, defer); look for the call that made the \
             examples.",
    not_when: "",
    bad: "int fd = open(path, O_RDONLY);\nif (read(fd, &header, sizeof header) < 0)\n    return -1;       /* fd stays open */\nclose(fd);",
    good: "int fd = open(path, O_RDONLY);\nint ok = read(fd, &header, sizeof header) >= 0;\nclose(fd);\nreturn ok ? 0 : -1;",
    reference: "getrlimit(2), RLIMIT_NOFILE",
};

/// Descriptors of one file that are open at the same time from which on it is a
/// leak.
const MIN_SAME: usize = 10;

/// A process.
#[derive(Debug, Default)]
struct Process {
    comm: Text,
    opens: u64,
    refused: u64,
    errno: String,
    refused_examples: Examples,
}

/// The rule's state.
#[derive(Debug)]
pub struct FdLeak {
    processes: Bounded<i32, Process>,
}

impl Default for FdLeak {
    fn default() -> Self {
        Self {
            processes: Bounded::new(|process| process.opens + process.refused),
        }
    }
}

impl Rule for FdLeak {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Open, Kind::Dup])
    }

    fn call(&mut self, call: &Call, _: &Context) {
        let process = self.processes.entry(call.pid);
        if process.opens + process.refused == 0 {
            process.comm = call.comm_text();
        }
        if let Some(errno) = call.errno.filter(|e| matches!(*e, "EMFILE" | "ENFILE")) {
            process.refused += 1;
            process.errno = errno.to_owned();
            process.refused_examples.add_first(call);
        } else if call.new_fd().is_some() {
            process.opens += 1;
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            // A process that has ended has closed everything.
            let ended = run.state.process(*pid).is_some_and(|p| p.end_ns.is_some());
            let mut same = std::collections::HashMap::new();
            let (mut open, mut left) = (0, Vec::new());
            for (_, description) in run.state.descriptors.open_in(*pid) {
                if let Some(opened) = description.opened.as_ref().filter(|o| o.pid == *pid) {
                    open += 1;
                    left.push((description.file, opened));
                    if let Some(file) = description.file {
                        *same.entry(file).or_insert(0usize) += 1;
                    }
                }
            }
            let most = same.into_iter().max_by_key(|(file, n)| (*n, file.0));
            let leaking = most.is_some_and(|(_, n)| n >= MIN_SAME)
                && open >= MIN_OPEN
                && open as f64 > MIN_PART * process.opens as f64;
            if process.refused == 0 && !leaking {
                continue;
            }
            let (file, times) = match most.filter(|(_, n)| *n >= MIN_SAME) {
                Some((file, n)) => (Some(file), n),
                None => (None, 0),
            };
            let path = file.and_then(|id| run.state.files.get(id)).map_or("", |f| f.name());
            // Those that were closed show nothing.
            left.retain(|(of, _)| file.is_none() || *of == file);
            left.sort_by_key(|(_, opened)| opened.ts_ns);
            let mut examples = process.refused_examples.clone();
            for (file, opened) in left {
                let path = file.and_then(|id| run.state.files.get(id));
                examples.keep(Example {
                    rid: opened.rid,
                    ts_ns: opened.ts_ns,
                    dur_ns: opened.dur_ns,
                    tid: opened.tid,
                    syscall: opened.syscall.clone(),
                    path: path.map(|f| f.name().into()),
                    offset: None,
                    ret: None,
                });
            }
            let mut title = format!(
                "{} {} {} descriptors open that it opened in the recording",
                process.comm,
                if ended { "ended with" } else { "has" },
                units::count(open as i64),
            );
            if times > 0 {
                title.push_str(&format!(", {} of them of {path}", units::count(times as i64)));
            }
            if process.refused > 0 {
                title.push_str(&format!(
                    "; {} opens failed with {}",
                    units::count(process.refused as i64),
                    process.errno
                ));
            }
            let subject = Subject::process(*pid, &process.comm);
            out.push(Found {
                severity: Some(if process.refused > 0 { Severity::High } else { Severity::Medium }),
                title,
                subject: match file {
                    Some(file) => subject.with_file(file, path),
                    None => subject,
                },
                evidence: vec![
                    number("open", open as i64),
                    number("opens", process.opens as i64),
                    number("opens_refused", process.refused as i64),
                ],
                examples: examples.list(),
                query: sql::calls(&format!(
                    "pid = {pid} AND syscall IN ('open', 'openat', 'openat2', 'creat', 'dup', 'dup2', 'dup3', 'close')"
                )),
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
    fn fires_on_a_file_opened_and_forgotten() {
        let mut s = Scenario::new();
        for i in 0..5 {
            let fd = s.open_existing(&format!("/lib/{i}.so"), "O_RDONLY", 4096);
            s.close(fd);
        }
        for _ in 0..150 {
            let fd = s.open_existing("/etc/app.conf", "O_RDONLY", 4096);
            s.read(fd, 4096);
        }
        let found = fires("fd-leak", s);
        assert_eq!(found[0].evidence[0].value, 150.0);
        let paths = found[0].examples.iter().map(|e| e.path.as_deref());
        assert!(paths.eq([Some("/etc/app.conf"); 3]), "{:?}", found[0].examples);
    }

    #[test]
    fn silent_on_a_server_with_many_files() {
        let mut s = Scenario::new();
        for i in 0..300 {
            let fd = s.open_existing(&format!("/db/{i}.sst"), "O_RDONLY", 4096);
            s.read(fd, 4096);
        }
        for _ in 0..300 {
            let fd = s.open_existing("/etc/app.conf", "O_RDONLY", 4096);
            s.read(fd, 4096);
            s.close(fd);
        }
        silent("fd-leak", s);
    }
}

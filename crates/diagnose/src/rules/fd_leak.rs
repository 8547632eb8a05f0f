//! `fd-leak`: descriptors are opened and not closed.

use std::collections::{HashMap, HashSet};

use crate::names::directory;
use crate::prelude::*;
use crate::state::descriptors::{Description, Opened};

/// Descriptors that are left open from which on they count.
const MIN_OPEN: usize = 100;
/// Share of the opens that were not closed.
const MIN_PART: f64 = 0.5;

static INFO: RuleInfo = RuleInfo {
    id: "fd-leak",
    name: "Descriptors that are not closed",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Dup, Close],
    about_calls: false,
    what: "A process opens descriptors and does not close them until it reaches its limit (EMFILE). \
           Then every operation that needs a descriptor fails: connections, files, libraries.",
    when: "open failed with EMFILE or ENFILE. Or a process has 100 or more descriptors open that it \
           opened in the recording, these are more than half of all that it opened, and they belong \
           to the same few paths or directories: one file opened 10 times or more and never closed, \
           or 3 or more opens per file on average; and, counted from the first of these opens, a \
           tenth or more of the open descriptors were opened in each of the first half, the third \
           quarter, and the last quarter, or most descriptors of that one file were never read or \
           written. Or 100 or more open descriptors were used only right \
           after they were opened, a tenth or more of them from each quarter of that time, while \
           the process closed at least one per ten of them in the same directories, or read each of \
           them to its end: one code path lacks a close. A cache of descriptors uses them again or \
           closes the oldest. Files that the process wrote itself and has open for reading do not \
           count in the last case. A server with many different files open is healthy, and so is a \
           pool whose workers open the same files once each at their start.",
    cost: "",
    advice: "Close each descriptor on every code path, including errors (goto out, RAII, with, \
           defer); start with the call that made the examples.",
    not_when: "",
    bad: "int fd = open(path, O_RDONLY);\nif (read(fd, &header, sizeof header) < 0)\n    return -1;       /* fd stays open */\nclose(fd);",
    good: "int fd = open(path, O_RDONLY);\nint ok = read(fd, &header, sizeof header) >= 0;\nclose(fd);\nreturn ok ? 0 : -1;",
    reference: "getrlimit(2), RLIMIT_NOFILE",
};

const LIMITED: &str = "The process closes descriptors, but needs more at the same time than its limit allows: raise \
                       RLIMIT_NOFILE (ulimit -n; LimitNOFILE in a unit of systemd), or keep fewer files open.";

/// One descriptor of the same directories is closed for so many that stay.
const CLOSED_OF: usize = 10;
/// How many times longer than it was used a descriptor is open without any use.
const IDLE: i64 = 10;
/// Directories of a process that are distinguished.
const MAX_DIRECTORIES: usize = 4096;

/// Descriptors of one file that are open at the same time from which on it is a
/// leak.
const MIN_SAME: usize = 10;

/// Descriptors of each file on average from which on it is one, if they become more and more.
const MIN_MEAN: usize = 3;
/// Parts of the time, and the share of the descriptors that are opened in each but the first.
const PARTS: usize = 4;
const MIN_GROWTH: f64 = 0.1;

/// How descriptors become more.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    steady: bool,
    /// Some of all ages are there.
    from_the_first_on: bool,
}

/// How descriptors that were opened at these times became more until `end`.
fn grows(times: &[i64], end: i64) -> Growth {
    let Some(first) = times.iter().copied().min() else { return Growth::default() };
    let length = (end - first).max(1);
    let mut opened = [0usize; PARTS];
    for time in times {
        let part = (time - first).saturating_mul(PARTS as i64) / length;
        let part = usize::try_from(part).unwrap_or(0).min(PARTS - 1);
        if let Some(count) = opened.get_mut(part) {
            *count += 1;
        }
    }
    let enough = |count: &usize| *count as f64 >= times.len() as f64 * MIN_GROWTH;
    let [first, second, third, last] = opened;
    // Files are slow to open as long as they are not in memory: the first quarter may have few.
    let parts = [first + second, third, last];
    Growth {
        steady: parts.iter().all(enough),
        from_the_first_on: opened.iter().all(enough),
    }
}

/// The call that opened a descriptor.
fn example(opened: &Opened, fd: i32) -> Example {
    Example {
        rid: opened.rid,
        ts_ns: opened.ts_ns,
        dur_ns: opened.dur_ns,
        tid: opened.tid,
        syscall: opened.syscall.clone(),
        path: (!opened.path.is_empty()).then(|| opened.path.clone()),
        offset: None,
        ret: Some(i64::from(fd)),
    }
}

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    opens: u64,
    refused: u64,
    errno: String,
    refused_examples: Examples,
    /// Files that it closed, by the numbers of their directories.
    closed: HashMap<u64, u64>,
}

rule! {
    pub struct FdLeak {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.opens + process.refused),
    }
}

impl Process {
    /// Whether descriptors that were used only at first belong to a code path that lacks a close.
    fn forgets(&self, idle: &[(i64, u64, &Description)], until: i64, run: &Run) -> bool {
        let times: Vec<i64> = idle.iter().map(|(at, ..)| *at).collect();
        if idle.len() < MIN_OPEN || !grows(&times, until).from_the_first_on {
            return false;
        }
        let directories: HashSet<u64> = idle.iter().map(|(_, directory, _)| *directory).collect();
        let closed: u64 = directories.iter().filter_map(|directory| self.closed.get(directory)).sum();
        let read_whole = |open: &Description| {
            let size = open.file.and_then(|id| run.state.files.get(id)?.size);
            open.written == 0 && size.is_some_and(|size| open.end.is_some_and(|end| end >= size))
        };
        closed >= (idle.len() / CLOSED_OF).max(1) as u64 || idle.iter().all(|(.., open)| read_whole(open))
    }
}

impl FdLeak {
    /// The directory of a regular file whose descriptor was used, and only right after it was opened.
    fn is_idle(&self, open: &Description, run: &Run) -> Option<u64> {
        let opened = open.opened.as_ref()?;
        let file = open.file.and_then(|id| run.state.files.get(id)).filter(|file| file.is_regular())?;
        // A database keeps the descriptors of its tables.
        let own_table = file.written > 0 && open.written == 0;
        let end = run.state.process(opened.pid).and_then(|p| p.ended_at_ns).unwrap_or(run.state.now_ns());
        let (used, unused) = (open.used_at_ns - opened.ts_ns, end - open.used_at_ns);
        (!own_table && used > 0 && unused >= used.saturating_mul(IDLE)).then(|| key_of(directory(&opened.path)))
    }
}

impl Rule for FdLeak {
    fn call(&mut self, call: &Call, context: &Context) {
        let process = self.processes.entry(call.pid);
        if call.kind == Kind::Close {
            let opened = context.open().and_then(|open| open.opened.as_ref());
            let regular = context.file(call).is_some_and(|file| file.is_regular());
            if let Some(opened) = opened.filter(|opened| regular && opened.pid == call.pid)
                && process.closed.len() < MAX_DIRECTORIES
            {
                *process.closed.entry(key_of(directory(&opened.path))).or_default() += 1;
            }
            return;
        }
        call.name_process(&mut process.comm);
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
            let comm = run.process_name(*pid, &process.comm);
            // A process that has ended has closed everything.
            let ended = run.state.process(*pid).is_some_and(|p| p.ended_at_ns.is_some());
            // Descriptors of each file, and how many of them were never used.
            let mut same: HashMap<FileId, (usize, usize)> = HashMap::new();
            // When, by which call and on what those were opened that are open still.
            let mut left = Vec::new();
            let mut idle = Vec::new();
            for (fd, description) in run.state.descriptors.open_in(*pid) {
                if let Some(opened) = description.opened.as_ref().filter(|o| o.pid == *pid) {
                    left.push((opened, fd, description.file));
                    if let Some(directory) = self.is_idle(description, run) {
                        idle.push((opened.ts_ns, directory, description));
                    }
                    if let Some(file) = description.file {
                        let (all, unused) = same.entry(file).or_default();
                        *all += 1;
                        *unused += usize::from(description.ios == 0);
                    }
                }
            }
            let (open, files) = (left.len(), same.len().max(1));
            let most = same.into_iter().max_by_key(|(file, (n, _))| (*n, file.0));
            let most = most.map(|(file, (n, unused))| (file, n, unused)).filter(|(_, n, _)| *n >= MIN_SAME);
            let until = run.state.process(*pid).and_then(|p| p.ended_at_ns).unwrap_or(run.state.now_ns());
            let steady = || {
                let times: Vec<i64> = left.iter().map(|(opened, ..)| opened.ts_ns).collect();
                grows(&times, until).steady
            };
            let forgotten = process.forgets(&idle, until, run);
            let same = open >= MIN_OPEN
                && (most.is_some() || open >= files * MIN_MEAN)
                && open as f64 > MIN_PART * process.opens as f64
                // A pool that is filled at the start uses its descriptors.
                && (steady() || most.is_some_and(|(_, n, unused)| 2 * unused > n));
            let leaking = same || forgotten;
            // A cache, or a program with many files, that closes them.
            let limited = process.refused > 0 && !leaking && open as f64 <= MIN_PART * process.opens as f64;
            if process.refused == 0 && !leaking {
                continue;
            }
            let (file, times) = most.map_or((None, 0), |(file, n, _)| (Some(file), n));
            let path = file.and_then(|id| run.state.files.get(id)).map_or("", |f| f.name());
            let mut title = format!(
                "{} {} {} descriptors open that it opened in the recording",
                comm,
                if ended { "ended with" } else { "has" },
                units::count(open as i64),
            );
            if forgotten && !same {
                title.push_str(&format!(
                    ", {} of which it used only right after opening them",
                    units::count(idle.len() as i64)
                ));
            } else if leaking && times == 0 {
                title.push_str(&format!(", {:.0} of each of {} files, and their number grows", open as f64 / files as f64, units::count(files as i64)));
            }
            if times > 0 {
                title.push_str(&format!(", {} of them of {path}", units::count(times as i64)));
            }
            if process.refused > 0 {
                title.push_str(&format!(
                    "; {} failed with {}",
                    counted(process.refused as i64, "open", "opens"),
                    process.errno
                ));
            }
            let subject = Subject::process(*pid, &comm);
            out.push(Found {
                severity: Some(if process.refused > 0 && !limited { Severity::High } else { Severity::Medium }),
                title,
                advice: limited.then(|| LIMITED.to_owned()),
                subject: match file {
                    Some(file) => subject.with_file(file, path),
                    None => subject,
                },
                evidence: vec![
                    number("open", open as i64),
                    number("opens", process.opens as i64),
                    number("opens_refused", process.refused as i64),
                ],
                examples: if process.refused > 0 {
                    process.refused_examples.list()
                } else {
                    // Of the file with most of them, if there is one.
                    left.sort_by_key(|(opened, _, of)| (*of != file, opened.ts_ns, opened.rid));
                    let mut examples = Examples::default();
                    left.iter().for_each(|(opened, fd, _)| examples.keep(example(opened, *fd)));
                    examples.list()
                },
                query: calls!("pid = {pid} AND syscall IN ('open', 'openat', 'openat2', 'creat', 'dup', 'dup2', 'dup3', 'close')"),
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
    fn silent_on_a_pool_of_connections_and_another_word_about_a_limit() {
        let mut s = Scenario::new();
        for _ in 0..150 {
            let fd = s.open_existing("/data/pool.db", "O_RDWR", 4096);
            s.pread(fd, 100, 0);
        }
        s.wait_ms(1000);
        s.stat("/etc/app.conf");
        silent("fd-leak", s);
        // A cache closes its oldest file and goes on.
        let mut s = Scenario::new();
        let mut open = std::collections::VecDeque::new();
        for i in 0..200 {
            open.push_back(s.open_existing(&format!("/data/{i}"), "O_RDONLY", 4096));
            if open.len() > 50 {
                s.fail_open(&format!("/data/{}", i + 1), "O_RDONLY", "EMFILE");
                s.close(open.pop_front().unwrap());
            }
        }
        let found = fires("fd-leak", s);
        assert!(found[0].advice.contains("RLIMIT_NOFILE"), "{}", found[0].advice);
        assert_eq!(found[0].severity, crate::finding::Severity::Medium);
    }

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
    fn shows_descriptors_that_are_open() {
        let mut s = Scenario::new();
        for i in 0..20 {
            let fd = s.open_existing(&format!("/lib/{i}.so"), "O_RDONLY", 4096);
            s.close(fd);
        }
        for _ in 0..150 {
            s.open_existing("/etc/app.conf", "O_RDONLY", 4096);
        }
        let found = fires("fd-leak", s);
        let paths = found[0].examples.iter().map(|e| e.path.as_deref());
        assert!(paths.clone().count() == 3 && paths.into_iter().all(|p| p == Some("/etc/app.conf")), "{found:?}");
    }

    #[test]
    fn fires_on_many_files_opened_a_few_times_each() {
        let mut s = Scenario::new();
        for _ in 0..9 {
            for i in 0..50 {
                let fd = s.open_existing(&format!("/data/{i}"), "O_RDONLY", 4096);
                s.read(fd, 4096);
            }
        }
        let found = fires("fd-leak", s);
        assert!(found[0].title.contains("9 of each of 50 files"), "{}", found[0].title);
    }

    #[test]
    fn slow_at_first_is_growth_and_a_burst_is_not() {
        let slow: Vec<i64> = (0..10).map(|i| i * 50).chain((0..90).map(|i| 500 + i * 5)).collect();
        assert!(super::grows(&slow, 1000).steady);
        let burst: Vec<i64> = (0..100).collect();
        assert!(!super::grows(&burst, 1000).steady && !super::grows(&[], 1000).steady);
    }

    #[test]
    fn silent_on_a_pool_that_is_filled_at_the_start() {
        let mut s = Scenario::new();
        for _ in 0..4 {
            for i in 0..40 {
                s.open_existing(&format!("/data/{i}"), "O_RDONLY", 4096);
            }
        }
        s.wait_ms(100);
        s.stat("/etc/app.conf");
        silent("fd-leak", s);
    }

    /// Reads all documents; of those in three `every` of them is closed.
    fn documents(closed: i32, again: bool) -> Scenario {
        let mut s = Scenario::new();
        let mut open = Vec::new();
        for i in 0..600 {
            let fd = s.open_existing(&format!("/docs/{i}"), "O_RDONLY", 9000);
            s.read(fd, 4096);
            if i % 3 < closed {
                s.close(fd);
            } else {
                open.push(fd);
            }
        }
        for fd in open.into_iter().filter(|_| again) {
            s.read(fd, 4096);
        }
        s
    }

    #[test]
    fn fires_on_one_way_out_that_does_not_close() {
        let found = fires("fd-leak", documents(2, false));
        assert!(found[0].title.contains("right after opening"), "{}", found[0].title);
        // Of a cache of descriptors.
        silent("fd-leak", documents(2, true));
        silent("fd-leak", documents(0, false));
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

//! `redundant-stat`: asking again what cannot have changed.

use crate::names::{directory, is_imported};
use crate::prelude::*;

/// Redundant calls of a process from which on they count.
const MIN_CALLS: u64 = 100;
/// Share of the recorded time from which on looks between own writes count: databases look once for each transaction.
const MIN_CHECKS_COST: f64 = 0.03;
/// A repetition after this long may look for changes, nanoseconds.
const FRESH_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "redundant-stat",
    name: "Redundant stat",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: Kinds::ALL,
    about_calls: true,
    what: "A process requests the attributes of a path again within a second although no recorded \
           call has changed the file, or requests them by path right before it opens the same path, \
           where fstat on the descriptor would suffice. Or it polls: it requests one path's \
           attributes in a loop until they change.",
    when: "One process makes 100 or more such calls. A repetition counts if the process requested \
           the same path less than a second before and nothing was written, renamed, removed, or \
           changed under that path since; a stat before an open counts if the thread's next call \
           opens the same regular file. The limit is one second because programs that watch a file \
           check about that often. lstat (AT_SYMLINK_NOFOLLOW) before an open does not count: \
           programs that walk a tree use it to learn what they must not open. Nor do \
           /etc/nsswitch.conf and /etc/resolv.conf, which the C library checks at each lookup of a \
           user or an address: there the lookups are the cost. /etc/localtime, which the C library \
           checks with each local time, is a separate finding. Directories and modules of Python's libraries do not count either: the importer \
           looks at them for each module. So are 100 or more requests within a second of the one before on \
           paths to which only the process itself has written in between, as before each line of a log that may be rotated, \
           if they cost 3 % or more of the recorded time. 100 or more repetitions on one path \
           with no other call of the thread in between are polling, and a separate finding.",
    cost: "the time of these calls",
    advice: "Keep the result; open first and use fstat (or statx with AT_EMPTY_PATH) on the \
           descriptor, which also closes the gap in which the file could be replaced.",
    not_when: "Not when the program must notice changes that other hosts make on a network file \
           system.",
    bad: "if (stat(path, &st) == 0) {\n    fd = open(path, O_RDONLY);\n    read(fd, buffer, st.st_size);\n}",
    good: "fd = open(path, O_RDONLY);\nif (fd >= 0 && fstat(fd, &st) == 0)\n    read(fd, buffer, st.st_size);",
    reference: "CWE-367 for the gap between stat and open",
};

/// The file that the C library asks for whenever a program wants the local time.
const LOCAL_TIME: &str = "/etc/localtime";
/// Files that it asks for whenever a program looks up a user or an address, to read others then.
const OF_LOOKUPS: [&str; 2] = ["/etc/nsswitch.conf", "/etc/resolv.conf"];

/// A path that a process has asked for.
#[derive(Debug, Default)]
struct Asked {
    ended_at_ns: i64,
    /// Its changes until then.
    then: Changes,
}

/// Changes of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Writes through descriptors, and whose the last were.
    writes: u64,
    writer: Option<i32>,
    /// Writes by others than the last writer, up to the last of them.
    others: u64,
    /// Everything else.
    rest: u64,
}

impl Changes {
    fn all(&self) -> u64 {
        self.writes + self.rest
    }

    fn write(&mut self, pid: i32) {
        if self.writer.is_some_and(|writer| writer != pid) {
            self.others = self.writes;
        }
        (self.writer, self.writes) = (Some(pid), self.writes + 1);
    }

    /// Whether all that has happened since `then` are writes by one process.
    fn only_writes_by(&self, pid: i32, then: &Changes) -> bool {
        let own = self.writer == Some(pid) && self.others <= then.writes;
        own && self.rest == then.rest && self.writes > then.writes
    }
}

/// Repetitions.
#[derive(Clone, Debug, Default)]
struct Repeats {
    calls: u64,
    cost_ns: i64,
    examples: Examples,
}

impl Repeats {
    fn add(&mut self, call: &Call, cost_ns: i64) {
        self.calls += 1;
        self.cost_ns += cost_ns;
        self.examples.add(call);
    }

    fn merge(&mut self, other: Repeats) {
        self.calls += other.calls;
        self.cost_ns += other.cost_ns;
        for example in other.examples.list() {
            self.examples.keep(example);
        }
    }
}

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    repeated: Repeats,
    before_open: Repeats,
    /// Of [`LOCAL_TIME`].
    local_time: Repeats,
    /// Of paths that only the process itself has written to since, and the first of them.
    own: Repeats,
    own_path: Text,
    /// Whether there are others.
    own_paths: bool,
    /// The path that it asks for in a row, and these repetitions.
    polled: Option<(u64, Text)>,
    polls: Repeats,
}

impl Process {
    /// Counts a repetition with no other call before it. Of several paths the first that is
    /// asked for often is followed.
    fn in_a_row(&mut self, call: &Call, key: u64) {
        if self.polled.as_ref().is_none_or(|(polled, _)| *polled != key) {
            if self.polls.calls >= MIN_CALLS {
                self.repeated.add(call, call.dur_ns);
                return;
            }
            self.repeated.merge(std::mem::take(&mut self.polls));
            self.polled = Some((key, call.path_text()));
        }
        self.polls.add(call, call.dur_ns);
    }

    /// Its path when it polls.
    fn polls(&self) -> Option<&Text> {
        let path = self.polled.as_ref().map(|(_, path)| path);
        path.filter(|_| self.polls.calls >= MIN_CALLS)
    }
}

/// The stat that a thread made last.
#[derive(Clone, Debug)]
struct Last {
    path: u64,
    dur_ns: i64,
    /// Whether fstat of the opened file would return the same.
    as_fstat: bool,
    /// Whether only the process itself had written since the one before.
    own: bool,
}

rule! {
    pub struct RedundantStat {
        processes: Bounded<i32, Process>
            = Bounded::new(|process| process.repeated.calls + process.before_open.calls + process.polls.calls + process.local_time.calls + process.own.calls),
        asked: Bounded<(i32, u64), Asked> = Bounded::new(|asked| asked.ended_at_ns.unsigned_abs()),
        /// By path.
        changed: Bounded<u64, Changes> = Bounded::new(Changes::all),
        last: Bounded<i32, Option<Last>>,
    }
}

/// Whether a successful call changes the stat of its path.
fn changes(call: &Call) -> bool {
    use Kind::*;
    match call.kind {
        Open => call.has_flag("O_CREAT") || call.has_flag("O_TRUNC"),
        Write | Transfer | Truncate | Allocate | Rename | Unlink | SetAttr | Link | Symlink | Mkdir
        | Rmdir | Mknod | SetXattr => true,
        _ => false,
    }
}

/// Whether a successful call changes the entries of directories.
fn changes_entries(call: &Call) -> bool {
    use Kind::*;
    match call.kind {
        Open => call.makes_file(),
        Rename | Unlink | Link | Symlink | Mkdir | Rmdir | Mknod => true,
        _ => false,
    }
}

impl Rule for RedundantStat {
    fn call(&mut self, call: &Call, context: &Context) {
        let key = call.path_key();
        let last = self.last.entry(call.tid).take();
        if call.kind == Kind::Open
            && let (Some(last), Some(key)) = (&last, key)
            && last.path == key
            && last.as_fstat
            && context.file(call).is_some_and(|file| file.is_regular())
        {
            let process = self.processes.entry(call.pid);
            process.before_open.add(call, last.dur_ns);
            // The name of now: of a process that began as a shim, not the shim's.
            call.name_thread(&mut process.comm);
        }
        if changes(call) && call.succeeded() {
            let second = call.path2_key();
            for key in [key, second].into_iter().flatten() {
                let changed = self.changed.entry(key);
                match call.kind {
                    Kind::Write => changed.write(call.pid),
                    _ => changed.rest += 1,
                }
            }
            let entries = [call.path, call.path2].into_iter().flatten();
            for path in entries.filter(|_| changes_entries(call)) {
                self.changed.entry(key_of(directory(path))).rest += 1;
            }
        }
        // By descriptor: what is advised.
        let by_path = call.path_arg.is_some_and(|arg| !arg.is_empty());
        let of_others = |path: &str| OF_LOOKUPS.contains(&path) || is_imported(path);
        if call.kind != Kind::Stat || !by_path || call.asynchronous || call.path.is_some_and(of_others) {
            return;
        }
        let Some(key) = key else { return };
        let now = self.changed.get_mut(&key).map_or_else(Changes::default, |changes| *changes);
        let asked = self.asked.entry((call.pid, key));
        let soon = asked.ended_at_ns != 0 && call.ts_ns - asked.ended_at_ns < FRESH_NS;
        let repeated = soon && asked.then.all() == now.all();
        let again = repeated && last.as_ref().is_some_and(|last| last.own && last.path == key);
        let own = again || soon && call.succeeded() && now.only_writes_by(call.pid, &asked.then);
        if own {
            let process = self.processes.entry(call.pid);
            if process.own.calls == 0 {
                process.own_path = call.path_text();
            }
            process.own_paths |= call.path != Some(&*process.own_path);
            process.own.add(call, call.dur_ns);
            call.name_thread(&mut process.comm);
        }
        *asked = Asked {
            ended_at_ns: call.ended_at_ns(),
            then: now,
        };
        if repeated && !own {
            let process = self.processes.entry(call.pid);
            if call.path == Some(LOCAL_TIME) {
                process.local_time.add(call, call.dur_ns);
            } else if last.is_some_and(|last| last.path == key) {
                process.in_a_row(call, key);
            } else {
                process.repeated.add(call, call.dur_ns);
            }
            // The name of now: of a process that began as a shim, not the shim's.
            call.name_thread(&mut process.comm);
        }
        let of_name = call.syscall == "lstat" || call.has_flag("AT_SYMLINK_NOFOLLOW");
        *self.last.entry(call.tid) = Some(Last {
            path: key,
            dur_ns: call.dur_ns,
            as_fstat: call.succeeded() && !repeated && !own && !of_name,
            own,
        });
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let polled = process.polls();
            if let Some(path) = polled.filter(|_| run.matters(process.polls.cost_ns)) {
                out.push(polling(*pid, &comm, &process.polls, path));
            }
            if process.local_time.calls >= MIN_CALLS && run.matters(process.local_time.cost_ns) {
                out.push(local_times(*pid, &comm, &process.local_time));
            }
            let checked = process.own.calls >= MIN_CALLS && !run.is_faint();
            if checked && run.matters_from(process.own.cost_ns, MIN_CHECKS_COST) {
                out.push(checks(*pid, &comm, process));
            }
            let (mut repeated, before_open) = (process.repeated.clone(), &process.before_open);
            if polled.is_none() {
                repeated.merge(process.polls.clone());
            }
            let cost = repeated.cost_ns + before_open.cost_ns;
            if repeated.calls + before_open.calls < MIN_CALLS || !run.matters(cost) {
                continue;
            }
            let parts = [
                (repeated.calls as i64, "for attributes that it already has"),
                (before_open.calls as i64, "for the attributes of a file right before opening it"),
            ];
            let parts = parts.iter().filter(|(calls, _)| *calls > 0);
            let parts: Vec<String> = parts.map(|(calls, what)| format!("{} {what}", times(*calls))).collect();
            let mut examples = repeated.examples.clone();
            before_open.examples.list().into_iter().for_each(|example| examples.keep(example));
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Stat]),
                title: format!("{comm} asks {}", list(&parts)),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("repeated", repeated.calls as i64),
                    number("before_open", before_open.calls as i64),
                ],
                examples: examples.list(),
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

/// A finding about requests for a path by its name that are not the rule's usual case; `only` is false when there are
/// other paths, too.
fn other_case(pid: i32, comm: &str, path: &str, asked: &Repeats, only: bool) -> Found {
    let condition = match only {
        true => format!(" AND path = {}", sql::quote(path)),
        false => String::new(),
    };
    Found {
        cost_ns: Some(asked.cost_ns),
        costs: Costs::of(&[Kind::Stat]),
        subject: Subject::process(pid, comm).with_path(path),
        examples: asked.examples.list(),
        query: calls!("pid = {pid} AND syscall IN ('stat', 'lstat', 'newfstatat', 'statx') AND path_arg <> ''{condition}"),
        other_case: true,
        rests_on_absence: true,
        ..Found::default()
    }
}

/// A process that waits for a change by asking.
fn polling(pid: i32, comm: &str, polls: &Repeats, path: &str) -> Found {
    Found {
        title: format!(
            "{comm} polls {path}: it requests its attributes {} in a row without a change",
            times(polls.calls as i64),
        ),
        evidence: vec![number("polls", polls.calls as i64)],
        advice: Some(
            "Wait for the change instead of asking: inotify on the file or its directory (IN_CLOSE_WRITE, IN_MOVED_TO, IN_ATTRIB) \
             wakes the program on a change. Without inotify, sleep between two checks. If the program does not wait for a change, keep the result."
                .to_owned(),
        ),
        ..other_case(pid, comm, path, polls, true)
    }
}

/// A process that looks whether a file is still the one that it writes.
fn checks(pid: i32, comm: &str, process: &Process) -> Found {
    let (own, path) = (&process.own, &*process.own_path);
    let others = if process.own_paths { " and other files" } else { "" };
    Found {
        title: format!(
            "{comm} requests the attributes of {path}{others} by path {}, each time after it has written there itself",
            times(own.calls as i64),
        ),
        evidence: vec![number("checks_of_own_file", own.calls as i64)],
        advice: Some(
            "If the program looks whether a log was rotated: do so once per second, or on a signal, instead of at each line (in \
             Python, a FileHandler that is opened again on SIGHUP in place of a WatchedFileHandler). If it wants the length: that is the sum of \
             the writes, or the answer of fstat on the descriptor."
                .to_owned(),
        ),
        ..other_case(pid, comm, path, own, !process.own_paths)
    }
}

/// A process whose C library looks for another time zone with each local time.
fn local_times(pid: i32, comm: &str, asked: &Repeats) -> Found {
    Found {
        title: format!(
            "{comm} requests the attributes of {LOCAL_TIME} {}: the C library does so for each local time",
            times(asked.calls as i64),
        ),
        evidence: vec![number("local_times", asked.calls as i64)],
        advice: Some(
            "Set TZ in the environment of the program (TZ=:/etc/localtime, or the name of the zone): glibc then reads the file once. \
             In the program, call localtime_r instead of localtime or mktime, and format a time once per second."
                .to_owned(),
        ),
        ..other_case(pid, comm, LOCAL_TIME, asked, true)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_what_the_importer_looks_at() {
        let looks = |directory: &str| {
            let mut s = Scenario::new();
            for _ in 0..500 {
                s.stat(directory);
                s.stat("/data/other");
                s.stat_missing("/data/none");
            }
            s
        };
        let found = fires("redundant-stat", looks("/data/scipy"));
        assert!(found[0].evidence[0].value > 1400.0);
        let found = fires("redundant-stat", looks("/usr/lib/python3/dist-packages/scipy"));
        assert!(found[0].evidence[0].value < 1100.0, "{:?}", found[0].evidence);
    }

    #[test]
    fn a_new_file_changes_its_directory() {
        let spool = |fills: bool| {
            let mut s = Scenario::new();
            for i in 0..500 {
                s.process(200);
                if fills {
                    let fd = s.open(&format!("/spool/{i}"), "O_WRONLY|O_CREAT|O_EXCL");
                    s.close(fd);
                }
                s.process(100);
                s.stat("/spool");
            }
            s
        };
        fires("redundant-stat", spool(false));
        silent("redundant-stat", spool(true));
    }

    /// A logger that looks before each line whether the log was rotated.
    #[test]
    fn fires_on_checks_between_own_writes() {
        let log = |others: bool, slow_ns| {
            let mut s = Scenario::new();
            s.thread(100, "python3");
            let fd = s.open("/log/access", "O_WRONLY|O_CREAT|O_APPEND");
            s.process(7);
            let other = s.open_existing("/log/access", "O_WRONLY|O_APPEND", 0);
            for _ in 0..500 {
                s.process(100);
                s.stat("/log/access");
                s.slow(slow_ns);
                s.write(fd, 60);
                s.slow(0);
                if others {
                    s.process(7);
                    s.write(other, 60);
                }
            }
            s
        };
        let found = fires("redundant-stat", log(false, 0));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].title.contains("/log/access by path 499 times, each time after"), "{}", found[0].title);
        assert!(found[0].advice.starts_with("If the program looks"), "{}", found[0].advice);
        silent("redundant-stat", log(true, 0));
        // A database looks once for each transaction.
        silent("redundant-stat", log(false, 60_000));
    }

    #[test]
    fn local_times_are_told_with_the_remedy() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..500 {
            s.stat("/etc/localtime");
            s.write(fd, 60);
        }
        let found = fires("redundant-stat", s);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].title.contains("/etc/localtime 499 times"), "{}", found[0].title);
        assert!(found[0].advice.contains("Set TZ"), "{}", found[0].advice);
    }

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
        assert_eq!(found[0].title, "program asks 200 times for the attributes of a file right before opening it");
    }

    #[test]
    fn silent_when_each_file_is_looked_at_before_it_is_opened() {
        let mut s = Scenario::new();
        for i in 0..400 {
            let path = format!("/src/{i}");
            s.lstat(&path);
            let fd = s.open_existing(&path, "O_RDONLY|O_NOFOLLOW", 4096);
            s.read(fd, 4096);
            s.close(fd);
        }
        s.lstat("/src/1");
        silent("redundant-stat", s);
    }

    #[test]
    fn a_loop_on_one_name_is_polling() {
        let mut s = Scenario::new();
        for _ in 0..500 {
            s.stat_missing("/run/ready");
        }
        s.stat("/run/other");
        s.stat("/run/other");
        let found = fires("redundant-stat", s);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].title,
            "program polls /run/ready: it requests its attributes 499 times in a row without a change"
        );
        assert!(found[0].advice.contains("inotify"), "{}", found[0].advice);
    }

    #[test]
    fn asking_between_other_calls_is_not_polling() {
        let mut s = Scenario::new();
        let log = s.open("/log/app", "O_WRONLY|O_CREAT");
        for _ in 0..300 {
            s.stat("/etc/app.conf");
            s.write(log, 100);
        }
        let found = fires("redundant-stat", s);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "program asks 299 times for attributes that it already has");
    }

    #[test]
    fn fires_on_repetition() {
        let mut s = Scenario::new();
        for _ in 0..300 {
            s.stat("/etc/group");
            s.stat("/etc/hosts");
        }
        fires("redundant-stat", s);
    }

    #[test]
    fn silent_on_what_the_c_library_asks_for_at_each_look_up() {
        let mut s = Scenario::new();
        for _ in 0..300 {
            s.stat("/etc/nsswitch.conf");
            let fd = s.open_existing("/etc/passwd", "O_RDONLY", 1500);
            s.read(fd, 1500);
            s.close(fd);
        }
        silent("redundant-stat", s);
    }

    #[test]
    fn silent_when_the_file_changes_in_between() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
        for _ in 0..300 {
            s.process(7);
            s.stat("/data/out");
            s.process(100);
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

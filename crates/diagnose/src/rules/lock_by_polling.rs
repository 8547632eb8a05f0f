//! `lock-by-polling`: processes wait for a lock by trying to make its name again and again.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::rule::{Costs, Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::{Context, State};
use crate::text::Text;

/// Attempts that fail.
const MIN_FAILURES: u64 = 20;
/// So many attempts say enough of a name.
const MANY_FAILURES: u64 = 100;
/// Attempts that fail for each time that the lock got free: who tries once or twice does not wait.
const MIN_TRIES: u64 = 3;
/// Times that the name was removed while others had tried to make it.
const MIN_RELEASES: u64 = 3;
/// Times that a process got a lock of a file that it had tried to get before.
const MIN_WAITS: u64 = 2;
/// Longest time from the removal to the next success that counts, nanoseconds: whoever takes longer has given up.
const MAX_GAP_NS: i64 = 1_000_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "lock-by-polling",
    name: "Lock that is waited for by polling",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: false,
    what: "Processes wait for a lock without the kernel's help: each tries, sleeps and tries again, and after each release no process has the lock until the next attempt. \
           The lock may be one of the kernel (flock with LOCK_NB, F_SETLK), which could wait. Or several processes use a name as a lock: who can make it (mkdir, open with O_EXCL, link, symlink) has the lock, and the others try again and again until it is removed: each attempt costs calls, often a process, \
           and the name stays when its maker is killed.",
    when: "20 or more attempts to make one name failed with EEXIST, of several processes, three or more for each removal or 100 or more in all, and the name was made and removed 3 times or more while others had tried. Calls that \
           only find what is there already (mkdir -p) have no removal. Or 20 or more calls of flock, F_SETLK or F_OFD_SETLK on one file failed with EAGAIN or EACCES, and 2 times or more another process got the lock while one waited, after three attempts or more on average.",
    cost: "the failed calls, and the time from each release to the next success, of those up to a second before which an attempt had failed",
    advice: "Let the kernel wait: flock without LOCK_NB, F_SETLKW; in SQLite fewer and larger transactions, or BEGIN IMMEDIATE in one writer. In place of a name, open a lock file once and call flock on it, which waits and returns as soon as the lock is free; the kernel releases it when its holder ends. In a shell: `flock lockfile command`.",
    not_when: "Not on file systems without such locks, as some network ones are.",
    bad: "while ! mkdir lock 2>/dev/null; do\n    sleep 0.01\ndone\nwork\nrmdir lock",
    good: "(\n    flock 9\n    work\n) 9>lock",
    reference: "flock(2), flock(1), mkdir(2)",
};

/// One name.
#[derive(Debug, Default)]
struct Lock {
    path: Text,
    pid: i32,
    comm: Text,
    failures: u64,
    failed_ns: i64,
    pids: Vec<i32>,
    /// Whether an attempt failed since the name was made last.
    waited: bool,
    removed_at_ns: Option<i64>,
    releases: u64,
    idle_ns: i64,
    examples: Examples,
}

/// Locks of the kernel on one file.
#[derive(Debug, Default)]
struct Polled {
    pid: i32,
    comm: Text,
    path: Text,
    failures: u64,
    failed_ns: i64,
    /// Processes that failed since they last got it.
    waiting: Vec<i32>,
    /// Process that got it last, and when it gave it up.
    holder: Option<i32>,
    released_at_ns: Option<i64>,
    /// Times that another process got it while one waited.
    waits: u64,
    idle_ns: i64,
    examples: Examples,
}

impl Polled {
    fn fails(&mut self, call: &Call) {
        if self.failures == 0 {
            (self.pid, self.comm, self.path) = (call.pid, call.comm_text(), call.path_text());
        }
        self.failures += 1;
        self.failed_ns += call.dur_ns;
        self.examples.add(call);
        if self.waiting.len() < MAX_PIDS && !self.waiting.contains(&call.pid) {
            self.waiting.push(call.pid);
        }
    }

    fn gets(&mut self, call: &Call, state: &State) {
        let before = self.holder.replace(call.pid).filter(|pid| *pid != call.pid);
        let released = self.released_at_ns.take();
        let waited = !self.waiting.is_empty();
        self.waiting.retain(|pid| *pid != call.pid);
        let Some(before) = before.filter(|_| waited) else { return };
        self.waits += 1;
        // A process that ends gives up its locks.
        let ended = || state.process(before).and_then(|process| process.ended_at_ns);
        let free = released.or_else(ended).map(|at| call.ended_at_ns() - at);
        self.idle_ns += free.filter(|ns| (0..=MAX_GAP_NS).contains(ns)).unwrap_or(0);
    }

    fn releases(&mut self, call: &Call) {
        if self.holder == Some(call.pid) {
            self.released_at_ns = Some(call.ended_at_ns());
        }
    }
}

/// Processes that are told from each other.
const MAX_PIDS: usize = 64;

/// The rule's state.
#[derive(Debug)]
pub struct LockByPolling {
    names: Bounded<u64, Lock>,
    files: Bounded<FileId, Polled>,
}

impl Default for LockByPolling {
    fn default() -> Self {
        Self {
            names: Bounded::new(|lock| lock.failures),
            files: Bounded::new(|lock| lock.failures),
        }
    }
}

impl LockByPolling {
    fn locks(&mut self, call: &Call, state: &State) {
        let Some(id) = call.file else { return };
        let (takes, gives_up) = match call.kind {
            Kind::Close => (false, true),
            Kind::Flock => (!call.has_flag("LOCK_UN"), call.has_flag("LOCK_UN")),
            _ => {
                let sets = call.arg("cmd").is_some_and(|cmd| cmd.starts_with("F_SETLK") || cmd.starts_with("F_OFD_SETLK"));
                let gives_up = call.args.contains("F_UNLCK");
                (sets && !gives_up, sets && gives_up)
            }
        };
        if takes && ["EAGAIN", "EWOULDBLOCK", "EACCES"].into_iter().any(|errno| call.failed_with(errno)) {
            self.files.entry(id).fails(call);
            return;
        }
        if !call.succeeded() || !takes && !gives_up {
            return;
        }
        let Some(lock) = self.files.get_mut(&id) else { return };
        match takes {
            true => lock.gets(call, state),
            false => lock.releases(call),
        }
    }

    fn of_names(&self, run: &Run, out: &mut Vec<Found>) {
        for (_, lock) in self.names.iter() {
            let cost = lock.failed_ns.saturating_add(lock.idle_ns);
            let polled = lock.failures >= MIN_FAILURES && lock.releases >= MIN_RELEASES && lock.pids.len() > 1;
            let polled = polled && (lock.failures >= MANY_FAILURES || lock.failures >= lock.releases * MIN_TRIES);
            if !polled || !run.matters(cost) {
                continue;
            }
            let failures = i64::try_from(lock.failures).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} and others poll for the lock {}: {} attempts fail with EEXIST, and it is free for {} before one of them notices",
                    lock.comm,
                    lock.path,
                    units::count(failures),
                    units::duration(lock.idle_ns),
                ),
                subject: Subject {
                    comm: (!lock.comm.is_empty()).then(|| lock.comm.to_string()),
                    ..Subject::default()
                }
                .with_path(&lock.path),
                evidence: vec![
                    number("failures", failures),
                    number("releases", i64::try_from(lock.releases).unwrap_or(i64::MAX)),
                    number("idle_ns", lock.idle_ns),
                    number("failed_ns", lock.failed_ns),
                ],
                examples: lock.examples.list(),
                query: sql::calls(&format!("{path} IN (path, path2)", path = sql::quote(&lock.path))),
                ..Found::default()
            });
        }
    }

    fn of_files(&self, run: &Run, out: &mut Vec<Found>) {
        for (id, lock) in self.files.iter() {
            let cost = lock.failed_ns.saturating_add(lock.idle_ns);
            let polled = lock.failures >= MIN_FAILURES && lock.waits >= MIN_WAITS && lock.failures >= lock.waits * MIN_TRIES;
            if !polled || !run.matters(cost) {
                continue;
            }
            let failures = i64::try_from(lock.failures).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} and others poll for a lock of {}: {} attempts fail, and it is free for {} before one of them notices",
                    lock.comm,
                    lock.path,
                    units::count(failures),
                    units::duration(lock.idle_ns),
                ),
                subject: Subject {
                    comm: (!lock.comm.is_empty()).then(|| lock.comm.to_string()),
                    ..Subject::default()
                }
                .with_file(*id, &lock.path),
                evidence: vec![
                    number("failures", failures),
                    number("waits", i64::try_from(lock.waits).unwrap_or(i64::MAX)),
                    number("idle_ns", lock.idle_ns),
                    number("failed_ns", lock.failed_ns),
                ],
                examples: lock.examples.list(),
                query: sql::calls(&format!("file_id = {} AND (syscall = 'flock' OR args LIKE 'cmd=F_%SETLK%')", id.0)),
                ..Found::default()
            });
        }
    }
}

impl Rule for LockByPolling {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        use Kind::*;
        Kinds::of(&[Mkdir, Open, Link, Symlink, Unlink, Rmdir, Rename, Flock, Fcntl, Close])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if matches!(call.kind, Kind::Flock | Kind::Fcntl | Kind::Close) {
            self.locks(call, context.state);
            return;
        }
        let (path, key) = match call.kind {
            Kind::Link | Kind::Symlink => (call.path2, call.path2_key()),
            _ => (call.path, call.path_key()),
        };
        let Some((path, key)) = path.zip(key) else { return };
        let makes = match call.kind {
            Kind::Open => call.has_flag("O_EXCL") && call.has_flag("O_CREAT"),
            Kind::Mkdir | Kind::Link | Kind::Symlink => true,
            _ => false,
        };
        if makes && call.failed_with("EEXIST") {
            let lock = self.names.entry(key);
            if lock.failures == 0 {
                lock.path = path.into();
                (lock.pid, lock.comm) = (call.pid, call.comm_text());
            }
            lock.failures += 1;
            lock.failed_ns += call.dur_ns;
            lock.waited = true;
            lock.examples.add(call);
            if lock.pids.len() < MAX_PIDS && !lock.pids.contains(&call.pid) {
                lock.pids.push(call.pid);
            }
            return;
        }
        if !call.succeeded() {
            return;
        }
        let Some(lock) = self.names.get_mut(&key) else { return };
        if makes {
            let free = lock.removed_at_ns.take().map(|at| call.ended_at_ns() - at);
            lock.idle_ns += free.filter(|ns| (0..=MAX_GAP_NS).contains(ns)).unwrap_or(0);
            lock.waited = false;
        } else if matches!(call.kind, Kind::Unlink | Kind::Rmdir | Kind::Rename) && std::mem::take(&mut lock.waited) {
            lock.releases += 1;
            lock.removed_at_ns = Some(call.ended_at_ns());
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        self.of_names(run, out);
        self.of_files(run, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Two processes that take the lock by turns; each tries so often before it gets it.
    fn locks(tries: usize, turns: i32, removes: bool) -> Scenario {
        let mut s = Scenario::new();
        for turn in 0..turns {
            s.process(100 + turn % 2);
            s.mkdir("/data/lock", None);
            s.process(100 + (turn + 1) % 2);
            for _ in 0..tries {
                s.wait_us(100);
                s.mkdir("/data/lock", Some("EEXIST"));
            }
            if removes {
                s.process(100 + turn % 2);
                s.rmdir("/data/lock");
                s.wait_us(50);
            }
        }
        s
    }

    #[test]
    fn fires_on_a_directory_that_several_wait_for() {
        let found = fires("lock-by-polling", locks(10, 20, true));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[0].value, 200.0);
        // From each removal but the last to the next success.
        assert_eq!(found[0].evidence[2].value, 19.0 * 51_500.0);
    }

    /// One process has the lock of a file for `tries` attempts of another, which then gets it, so many times.
    fn file_locks(tries: usize, turns: i32) -> Scenario {
        let mut s = Scenario::new();
        for turn in 0..turns {
            let (holder, waiter) = (100 + turn % 2, 100 + (turn + 1) % 2);
            s.process(holder);
            let held = s.open("/data/db", "O_RDWR|O_CREAT");
            s.flock(held, 1_000);
            s.process(waiter);
            let fd = s.open("/data/db", "O_RDWR|O_CREAT");
            for _ in 0..tries {
                s.wait_us(100);
                s.fail("flock", fd, "EAGAIN");
            }
            s.process(holder);
            s.close(held);
            s.wait_us(500);
            s.process(waiter);
            s.flock(fd, 1_000);
            s.close(fd);
        }
        s
    }

    #[test]
    fn fires_on_a_lock_of_the_kernel_that_is_tried_again_and_again() {
        let found = fires("lock-by-polling", file_locks(10, 10));
        assert_eq!(found.len(), 1);
        // Who had it before the first attempt that failed is not known.
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (100.0, 9.0));
        // Each attempt is a process of its own, and the lock is given up as its holder ends.
        let mut s = Scenario::new();
        for turn in 0..10 {
            let holder = 1000 + turn * 20;
            s.process(holder);
            let began = s.now();
            let held = s.open("/data/db", "O_RDWR|O_CREAT");
            s.flock(held, 1_000);
            for attempt in 1..6 {
                s.process(holder + attempt);
                let fd = s.open("/data/db", "O_RDWR|O_CREAT");
                s.fail("flock", fd, "EAGAIN");
            }
            s.process(holder);
            s.child_ends(began, 100, "flock");
            s.wait_us(500);
        }
        let found = fires("lock-by-polling", s);
        assert!(found[0].evidence[2].value >= 8.0 * 500_000.0, "{found:?}");
        // Who tries once does something else then.
        silent("lock-by-polling", file_locks(1, 40));
        silent("lock-by-polling", file_locks(10, 1));
    }

    #[test]
    fn silent_on_names_that_stay_on_few_attempts_and_on_one_process() {
        silent("lock-by-polling", locks(10, 20, false));
        silent("lock-by-polling", locks(2, 20, true));
        let mut s = Scenario::new();
        for _ in 0..20 {
            s.mkdir("/data/parts", None);
            (0..10).for_each(|_| s.mkdir("/data/parts", Some("EEXIST")));
            s.rmdir("/data/parts");
        }
        silent("lock-by-polling", s);
    }
}

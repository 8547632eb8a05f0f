//! `lock-by-polling`: processes wait for a lock by trying to make its name again and again.

use crate::names::directory;
use crate::prelude::*;

/// Times that a process which had failed got the lock: once is chance.
const MIN_WAITS: u64 = 2;
/// Processes that are tracked separately.
const MAX_PIDS: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "lock-by-polling",
    name: "Lock acquired by polling",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Mkdir, Open, Link, Symlink, Unlink, Rmdir, Rename, Flock, Fcntl, Close, Write],
    about_calls: false,
    what: "Processes wait for a lock without the kernel's help. Each of them tries, sleeps, and \
           tries again, so after each release no process holds the lock until the next attempt. The \
           lock may be one of the kernel (flock with LOCK_NB, F_SETLK), which could wait. Or \
           several processes use a name as a lock: the process that creates it (mkdir, open with \
           O_EXCL, link, symlink) holds the lock, and the others retry until it is removed. Each \
           attempt costs calls and often a process, and the name stays when its owner is killed.",
    when: "Two or more processes failed to create one name (EEXIST), or to lock one file (flock, \
           F_SETLK, or F_OFD_SETLK with EAGAIN or EACCES), and at least twice one of them succeeded \
           at a later attempt, after the lock was released. If each attempt is a process of its own \
           (mkdir or flock in a shell), the process that started them is the one that waits. A \
           process does not wait if, after its failure, it wrote to another file (for a name: \
           outside its directory) or tried to lock another one. Calls that only check for an \
           existing name (mkdir -p) have no removal and do not count.",
    cost: "the failed calls, and the time in which the lock was free while a process waited that \
           got it later",
    advice: "Let the kernel wait: flock without LOCK_NB, or F_SETLKW; in SQLite use fewer and \
           larger transactions, or BEGIN IMMEDIATE in one writer. Instead of a name, open a lock \
           file once and call flock on it: flock returns as soon as the lock is free, and the \
           kernel releases the lock when its holder ends. In a shell: `flock lockfile command`.",
    not_when: "Not on file systems without such locks, as some network file systems are.",
    bad: "while ! mkdir lock 2>/dev/null; do\n    sleep 0.01\ndone\nwork\nrmdir lock",
    good: "(\n    flock 9\n    work\n) 9>lock",
    reference: "flock(2), flock(1), mkdir(2)",
};

const SEPARATE: &str = "processes of one parent may be separate jobs, each of which is left out while another one runs";

/// The waiting process: the one that failed, and its parent.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    pid: i32,
    ppid: Option<i32>,
    /// How long the lock had been free by then.
    free_ns: i64,
}

/// A name that is made, or the locks of a file.
#[derive(Debug, Default)]
struct Lock {
    path: Text,
    comm: Text,
    errno: String,
    failures: u64,
    failed_ns: i64,
    /// Processes that failed, and how many of them have neither acquired it nor done other work
    /// since.
    pids: Vec<i32>,
    waiting: Vec<Waiter>,
    /// Process that got it last, and when it was removed or given up.
    holder: Option<i32>,
    released_at_ns: Option<i64>,
    /// How long it has been free, in all and by the latest time that one got it that waited.
    free_ns: i64,
    counted_ns: i64,
    /// Times that one got it that waited, and how long it was free while they waited.
    waits: u64,
    idle_ns: i64,
    /// Times that another process of the same parent got it.
    by_children: u64,
    examples: Examples,
}

/// When a process ended that has ended by a time.
fn ended_by(pid: i32, at_ns: i64, state: &State) -> Option<i64> {
    let ended = state.process(pid).and_then(|process| process.ended_at_ns);
    ended.filter(|at| *at <= at_ns)
}

impl Lock {
    fn fails(&mut self, call: &Call, path: &str, state: &State) {
        if self.failures == 0 {
            (self.comm, self.path) = (call.comm_text(), path.into());
            self.errno = call.errno.unwrap_or("").to_owned();
        }
        self.failures += 1;
        self.failed_ns += call.dur_ns;
        self.examples.add(call);
        // It may not be held by whom it was thought to be: a process that ended may share the lock with another one.
        self.released_at_ns = None;
        self.holder = self.holder.filter(|pid| ended_by(*pid, call.ts_ns, state).is_none());
        if self.pids.len() < MAX_PIDS && !self.pids.contains(&call.pid) {
            self.pids.push(call.pid);
        }
        if self.waiting.len() < MAX_PIDS && !self.waiting.iter().any(|waiter| waiter.pid == call.pid) {
            let ppid = state.process(call.pid).and_then(|process| process.ppid);
            self.waiting.push(Waiter {
                pid: call.pid,
                ppid,
                free_ns: self.free_ns,
            });
        }
    }

    fn gets(&mut self, call: &Call, state: &State) {
        let ended = |pid: i32| ended_by(pid, call.ts_ns, state);
        let before = self.holder.replace(call.pid).filter(|pid| *pid != call.pid);
        // A process that ends gives up its locks.
        let released = self.released_at_ns.take().or_else(|| before.and_then(ended));
        self.free_ns += released.map_or(0, |at| (call.ended_at_ns() - at).max(0));
        let by = state.process(call.pid).and_then(|process| process.ppid);
        let own = |waiter: &Waiter| {
            let next = waiter.ppid.is_some() && waiter.ppid == by && ended(waiter.pid).is_some();
            waiter.pid == call.pid || next
        };
        let Some(since) = self.waiting.iter().filter(|waiter| own(waiter)).map(|waiter| waiter.free_ns).min() else { return };
        self.by_children += u64::from(!self.waiting.iter().any(|waiter| waiter.pid == call.pid));
        self.waiting.retain(|waiter| !own(waiter));
        self.waits += 1;
        self.idle_ns += self.free_ns - since.max(self.counted_ns);
        self.counted_ns = self.free_ns;
    }

    fn found(&self, run: &Run, file: Option<FileId>) -> Option<Found> {
        let cost = self.failed_ns.saturating_add(self.idle_ns);
        if self.waits < MIN_WAITS || self.pids.len() < 2 || !run.matters(cost) {
            return None;
        }
        let failures = i64::try_from(self.failures).unwrap_or(i64::MAX);
        let subject = Subject {
            comm: (!self.comm.is_empty()).then(|| self.comm.to_string()),
            ..Subject::default()
        };
        let (what, subject, query) = match file {
            Some(id) => (
                "a lock of",
                subject.with_file(id, &self.path),
                format!("file_id = {} AND (syscall = 'flock' OR args LIKE 'cmd=F_%SETLK%')", id.0),
            ),
            None => (
                "the lock",
                subject.with_path(&self.path),
                format!("{} IN (path, path2)", sql::quote(&self.path)),
            ),
        };
        Some(Found {
            cost_ns: Some(cost),
            costs: Costs::default().of_all_files(),
            title: format!(
                "{} and others poll for {what} {}: {} attempts fail with {}, and the lock is free for {} before an attempt succeeds",
                self.comm,
                self.path,
                units::count(failures),
                self.errno,
                units::duration(self.idle_ns),
            ),
            subject,
            evidence: vec![
                number("failures", failures),
                number("waits", i64::try_from(self.waits).unwrap_or(i64::MAX)),
                number("idle_ns", self.idle_ns),
                number("failed_ns", self.failed_ns),
            ],
            examples: self.examples.list(),
            caveats: match 2 * self.by_children >= self.waits {
                true => vec![SEPARATE.to_owned()],
                false => vec![],
            },
            query: sql::select(&query),
            ..Found::default()
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Name(u64),
    /// And the range of fcntl; a lock of flock has [`WHOLE`].
    File(FileId, (i64, i64)),
}

/// flock knows no ranges, and nothing of the locks of fcntl.
const WHOLE: (i64, i64) = (-1, -1);
/// Ranges of a file that are kept.
const MAX_RANGES: usize = 16;

/// The range that a call locks or gives up: its begin and its length, 0 for up to the end.
fn range_of(call: &Call) -> (i64, i64) {
    let number = |name| call.arg(name).and_then(|n| n.parse().ok()).unwrap_or(0);
    match call.kind {
        Kind::Fcntl => (number("l_start"), number("l_len")),
        _ => WHOLE,
    }
}

/// Whether giving up one range gives up some of the other.
fn gives_up(call: &Call, (start, length): (i64, i64)) -> bool {
    let end = |start: i64, length: i64| if length == 0 { i64::MAX } else { start.saturating_add(length) };
    let (from, of) = range_of(call);
    match call.kind {
        Kind::Close => true,
        Kind::Fcntl => (start, length) != WHOLE && from < end(start, length) && start < end(from, of),
        _ => (start, length) == WHOLE,
    }
}

rule! {
    pub struct LockByPolling {
        locks: Bounded<Key, Lock> = Bounded::new(|lock| lock.failures),
        /// Ranges of a file that a process failed to lock.
        ranges: Bounded<FileId, Vec<(i64, i64)>>,
        /// By process: what it waits for.
        waits_for: Bounded<i32, Option<Key>>,
    }
}

/// The effect of a call on a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Fails,
    Gets,
    /// Of the process that has it.
    GivesUp,
    /// By whomever.
    Removes,
}

/// The effect of a call on the kernel's locks.
fn on_file(call: &Call) -> Option<(Key, Act)> {
    let takes = call.takes_lock();
    let gives_up = call.kind == Kind::Close || call.gives_up_lock();
    let key = Key::File(call.file?, range_of(call));
    match call.errno {
        Some("EAGAIN" | "EWOULDBLOCK" | "EACCES") if takes => Some((key, Act::Fails)),
        None if takes => Some((key, Act::Gets)),
        None if gives_up => Some((key, Act::GivesUp)),
        _ => None,
    }
}

/// The path that a call makes or removes.
fn name<'a>(call: &Call<'a>) -> Option<&'a str> {
    match call.kind {
        Kind::Link | Kind::Symlink => call.path2,
        _ => call.path,
    }
}

/// The effect of a call that creates or removes a name.
fn on_name(call: &Call) -> Option<(Key, Act)> {
    let key = match call.kind {
        Kind::Link | Kind::Symlink => call.path2_key(),
        _ => call.path_key(),
    };
    let makes = match call.kind {
        Kind::Open => call.has_flag("O_EXCL") && call.has_flag("O_CREAT"),
        Kind::Mkdir | Kind::Link | Kind::Symlink => true,
        _ => false,
    };
    let act = match call.errno {
        Some("EEXIST") if makes => Act::Fails,
        None if makes => Act::Gets,
        None if matches!(call.kind, Kind::Unlink | Kind::Rmdir | Kind::Rename) => Act::Removes,
        _ => return None,
    };
    Some((Key::Name(key?), act))
}

impl LockByPolling {
    fn given_up(&mut self, call: &Call, id: FileId) {
        for range in self.ranges.get(&id).into_iter().flatten().filter(|range| gives_up(call, **range)) {
            if let Some(lock) = self.locks.get_mut(&Key::File(id, *range)).filter(|lock| lock.holder == Some(call.pid)) {
                lock.released_at_ns = Some(call.ended_at_ns());
            }
        }
    }

    /// A process that writes, or tries another lock, does other work instead of waiting. Exception:
    /// a write in the directory of the name that it wants to create, because it may link the file
    /// to that name.
    fn works(&mut self, call: &Call) {
        let Some(Some(key)) = self.waits_for.get(&call.pid) else { return };
        let Some(lock) = self.locks.get_mut(key) else { return };
        let beside = || call.path.is_some_and(|path| directory(path) == directory(&lock.path));
        let works = match key {
            Key::Name(_) => call.kind == Kind::Write && !beside(),
            Key::File(id, _) => call.file != Some(*id),
        };
        if works {
            lock.waiting.retain(|waiter| waiter.pid != call.pid);
            self.waits_for.remove(&call.pid);
        }
    }
}

impl Rule for LockByPolling {
    fn call(&mut self, call: &Call, context: &Context) {
        if call.ret.is_none() {
            return;
        }
        if call.kind == Kind::Write {
            if call.moved() > 0 && context.file(call).is_some_and(|file| file.is_regular()) {
                self.works(call);
            }
            return;
        }
        let act = match call.kind {
            Kind::Flock | Kind::Fcntl | Kind::Close => on_file(call),
            _ => on_name(call),
        };
        let Some((key, act)) = act else { return };
        if matches!(key, Key::File(..)) && matches!(act, Act::Fails | Act::Gets) {
            self.works(call);
        }
        if let (Key::File(id, _), Act::GivesUp) = (key, act) {
            self.given_up(call, id);
            return;
        }
        if act == Act::Fails {
            if let Key::File(id, range) = key {
                let ranges = self.ranges.entry(id);
                if ranges.len() < MAX_RANGES && !ranges.contains(&range) {
                    ranges.push(range);
                }
            }
            let path = name(call).unwrap_or("");
            self.locks.entry(key).fails(call, path, context.state);
            *self.waits_for.entry(call.pid) = Some(key);
            return;
        }
        let Some(lock) = self.locks.get_mut(&key) else { return };
        match act {
            Act::Gets => lock.gets(call, context.state),
            _ => lock.released_at_ns = Some(call.ended_at_ns()),
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (key, lock) in self.locks.iter() {
            let file = match key {
                Key::File(id, _) => Some(*id),
                Key::Name(_) => None,
            };
            out.extend(lock.found(run, file));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn ranges_of_a_file_are_locks_of_their_own() {
        // As SQLite does: a shared lock that all get, and a reserved one that one holds.
        let mut s = Scenario::new();
        let (shared, reserved) = ((2, 510), (1, 1));
        let fds: Vec<i32> = (0..2)
            .map(|i| {
                s.process(100 + i);
                s.open("/data/db", "O_RDWR|O_CREAT")
            })
            .collect();
        for turn in 0..10usize {
            let (holder, waiter) = (turn % 2, (turn + 1) % 2);
            let by = |s: &mut Scenario, who: usize, what, range, errno| {
                s.process(100 + who as i32);
                s.lock_range(fds[who], what, range, errno);
            };
            by(&mut s, holder, "F_RDLCK", shared, None);
            by(&mut s, holder, "F_WRLCK", reserved, None);
            for _ in 0..5 {
                by(&mut s, waiter, "F_RDLCK", shared, None);
                by(&mut s, waiter, "F_WRLCK", reserved, Some("EAGAIN"));
                by(&mut s, waiter, "F_UNLCK", (0, 0), None);
                s.wait_ms(2);
            }
            by(&mut s, holder, "F_UNLCK", (0, 0), None);
            s.wait_ms(1);
        }
        let found = fires("lock-by-polling", s);
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (50.0, 9.0));
        // The lock was free for about a millisecond each time.
        assert!(found[0].evidence[2].value < 9.0 * 1_100_000.0, "{found:?}");
    }

    #[test]
    fn a_lock_that_outlives_the_process_is_not_free() {
        // flock(1) locks a descriptor of its shell, which goes on.
        let mut s = Scenario::new();
        for turn in 0..10 {
            s.process(1000 + turn * 20);
            let began = s.now();
            let fd = s.open("/data/db", "O_RDWR|O_CREAT");
            s.flock(fd, 1_000);
            s.child_ends(began, 100 + turn % 2, "flock");
            for attempt in 1..6 {
                s.wait_ms(20);
                s.process(1000 + turn * 20 + attempt);
                let tried = s.now();
                let fd = s.open("/data/db", "O_RDWR|O_CREAT");
                s.fail("flock", fd, "EAGAIN");
                s.child_ends(tried, 100 + (turn + 1) % 2, "flock");
            }
            s.wait_ms(20);
        }
        silent("lock-by-polling", s);
    }

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
        assert_eq!((found[0].evidence[0].value, found[0].evidence[1].value), (100.0, 10.0));
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
                let tried = s.now();
                let fd = s.open("/data/db", "O_RDWR|O_CREAT");
                s.fail("flock", fd, "EAGAIN");
                s.child_ends(tried, 100, "flock");
            }
            s.process(holder);
            s.child_ends(began, 100, "flock");
            s.wait_us(500);
        }
        let found = fires("lock-by-polling", s);
        assert!(found[0].evidence[2].value >= 8.0 * 500_000.0, "{found:?}");
        silent("lock-by-polling", file_locks(10, 1));
    }

    #[test]
    fn silent_on_who_takes_another_lock_then() {
        let run = |other: bool| {
            let mut s = Scenario::new();
            for _ in 0..6 {
                s.process(100);
                let held = s.open("/data/a", "O_RDWR|O_CREAT");
                s.flock(held, 1_000);
                s.process(200);
                let fd = s.open("/data/a", "O_RDWR|O_CREAT");
                s.fail("flock", fd, "EAGAIN");
                if other {
                    let next = s.open("/data/b", "O_RDWR|O_CREAT");
                    s.flock(next, 1_000);
                    s.close(next);
                }
                s.process(300);
                let third = s.open("/data/a", "O_RDWR|O_CREAT");
                s.fail("flock", third, "EAGAIN");
                s.close(third);
                s.process(100);
                s.close(held);
                s.wait_ms(20);
                s.process(200);
                s.flock(fd, 1_000);
                s.close(fd);
            }
            s
        };
        fires("lock-by-polling", run(false));
        silent("lock-by-polling", run(true));
    }

    /// A process tries to make a name, comes back after another has removed it and may have worked in between.
    fn comes_back(works: bool) -> Scenario {
        let mut s = Scenario::new();
        for _ in 0..6 {
            s.process(200);
            s.mkdir("/data/lock", None);
            s.process(100);
            s.mkdir("/data/lock", Some("EEXIST"));
            s.process(300);
            s.mkdir("/data/lock", Some("EEXIST"));
            s.process(200);
            s.rmdir("/data/lock");
            s.process(100);
            if works {
                let fd = s.open("/other/work", "O_WRONLY|O_CREAT");
                s.write(fd, 100_000);
                s.close(fd);
            }
            s.wait_ms(20);
            s.mkdir("/data/lock", None);
            s.rmdir("/data/lock");
        }
        s
    }

    #[test]
    fn few_attempts_are_enough_when_the_lock_is_free_meanwhile() {
        let found = fires("lock-by-polling", comes_back(false));
        assert_eq!(found[0].evidence[1].value, 6.0);
        // After a single attempt the process does other work.
        silent("lock-by-polling", comes_back(true));
    }

    #[test]
    fn who_starts_a_process_for_each_attempt_waits() {
        let run = |parent: i32| {
            let mut s = Scenario::new();
            let mut pid = 1000;
            for turn in 0..6 {
                let (holder, waiter) = (100 + turn % 2, 100 + (turn + 1) % 2);
                let mut mkdir = |s: &mut Scenario, by: i32, errno| {
                    pid += 1;
                    s.process(pid);
                    let began = s.now();
                    s.mkdir("/data/lock", errno);
                    s.child_ends(began, if parent == 0 { by } else { pid - 500 }, "mkdir");
                };
                mkdir(&mut s, holder, None);
                mkdir(&mut s, waiter, Some("EEXIST"));
                s.wait_ms(5);
                s.rmdir("/data/lock");
                s.wait_ms(50);
                mkdir(&mut s, waiter, None);
                s.rmdir("/data/lock");
            }
            s
        };
        let found = fires("lock-by-polling", run(0));
        assert_eq!(found[0].evidence[1].value, 6.0);
        // Each of them comes once.
        silent("lock-by-polling", run(1));
    }

    #[test]
    fn silent_on_names_that_stay_and_on_one_process() {
        silent("lock-by-polling", locks(10, 20, false));
        let mut s = Scenario::new();
        for _ in 0..20 {
            s.mkdir("/data/parts", None);
            (0..10).for_each(|_| s.mkdir("/data/parts", Some("EEXIST")));
            s.rmdir("/data/parts");
        }
        silent("lock-by-polling", s);
    }
}

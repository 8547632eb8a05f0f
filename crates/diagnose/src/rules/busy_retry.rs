//! `busy-retry`: the same call fails again and again, without a pause.

use crate::prelude::*;

const MIN_FAILURES: u64 = 100;
/// Longest pause between two of them, nanoseconds.
const MAX_GAP_NS: i64 = 50_000;

static INFO: RuleInfo = RuleInfo {
    id: "busy-retry",
    name: "Retrying without waiting",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: Kinds::ALL,
    about_calls: false,
    what: "A thread repeats a call that fails with EAGAIN, EINTR, or EBUSY at once, hundreds of \
           times. It keeps a CPU busy while it waits, and it takes CPU time from the thread that it \
           waits for. Or it opens a name again and again until another process has created it, or \
           tries to create a name until another process has removed it.",
    when: "One thread makes one call on one descriptor that fails 100 or more times in a row with \
           one of these errors, at most 50 microseconds apart, and moves no bytes in between; a \
           poll with a timeout or a sleep would take longer. The same holds for one path with ENOENT (open, access, stat) or \
           EEXIST (open with O_EXCL, mkdir, link, symlink) if the thread made no other call in \
           between and the last call succeeded, because then it waited. Otherwise it looks for \
           something that never exists.",
    cost: "time from the first failure of each row to the last",
    advice: "Wait for the descriptor with poll, epoll, or io_uring, or let the call block. For \
           locks use F_SETLKW, or flock without LOCK_NB. For a name use inotify, a pipe from the \
           process that creates it, or a lock.",
    not_when: "",
    bad: "while (read(fd, buffer, n) < 0 && errno == EAGAIN)\n    ;",
    good: "while (read(fd, buffer, n) < 0 && errno == EAGAIN)\n    poll(&(struct pollfd){fd, POLLIN}, 1, -1);",
    reference: "poll(2)",
};

/// One thread on one descriptor or on one name.
#[derive(Debug, Default)]
struct Spin {
    pid: i32,
    comm: Text,
    kind: Option<Kind>,
    syscall: Text,
    errno: String,
    file_id: Option<i64>,
    path: Text,
    /// Number of the name that it tries now, and of the previous one.
    name: u64,
    before: u64,
    /// Failures before a pause that was longer, and their time.
    pending: u64,
    pending_ns: i64,
    /// Names that it has waited for.
    names: u64,
    /// The row that goes on.
    row: u64,
    began_ns: i64,
    last_at_ns: i64,
    first: Examples,
    /// Rows that were long enough.
    rows: u64,
    failures: u64,
    cost_ns: i64,
    examples: Examples,
}

impl Spin {
    /// Whether a failure is the next one of the row.
    fn goes_on(&self, call: &Call, errno: &str) -> bool {
        self.row > 0
            && self.kind == Some(call.kind)
            && self.errno == errno
            && call.ts_ns - self.last_at_ns <= MAX_GAP_NS
    }

    fn begin(&mut self, call: &Call, errno: &str) {
        self.kind = Some(call.kind);
        self.began_ns = call.ts_ns;
        self.first = Examples::default();
        if self.rows == 0 {
            self.errno = errno.to_owned();
            self.syscall = call.syscall_text();
            self.pid = call.pid;
            self.comm = call.comm_text();
            self.file_id = call.file.map(|file| file.0);
            self.path = call.path_text();
        }
    }

    fn add(&mut self, call: &Call) {
        self.row += 1;
        self.last_at_ns = call.ended_at_ns();
        self.first.add_first(call);
    }

    fn end(&mut self) {
        let whole = self.row >= MIN_FAILURES;
        if whole || self.pending > 0 {
            self.rows += 1;
            self.failures += self.pending;
            self.cost_ns += self.pending_ns;
        }
        if whole {
            self.failures += self.row;
            self.cost_ns += self.last_at_ns - self.began_ns;
        }
        if whole || self.pending > 0 {
            self.names += u64::from(self.names == 0 || self.name != self.before);
            self.before = self.name;
            if self.examples.list().is_empty() {
                self.examples = std::mem::take(&mut self.first);
            }
        }
        self.row = 0;
        self.first = Examples::default();
    }

    /// Rows, failures, time, with the row that goes on.
    fn total(&self) -> (u64, u64, i64) {
        if self.row < MIN_FAILURES {
            return (self.rows, self.failures, self.cost_ns);
        }
        (
            self.rows + 1,
            self.failures + self.row,
            self.cost_ns + self.last_at_ns - self.began_ns,
        )
    }
}

rule! {
    pub struct BusyRetry {
        /// By thread, descriptor and file.
        spins: Bounded<(i32, i32, i64), Spin> = Bounded::new(|spin| spin.failures + spin.row),
        /// By thread: what it tries now.
        trying: Bounded<i32, (i32, i32, i64)>,
        /// By thread: the names that it waits for, one after the other.
        names: Bounded<i32, Spin> = Bounded::new(|spin| spin.failures + spin.row),
    }
}

/// The error of a call that fails as long as a name is not there, or is.
fn waits_for_name(call: &Call) -> Option<&'static str> {
    let makes = match call.kind {
        Kind::Open => call.has_flag("O_EXCL"),
        Kind::Mkdir | Kind::Link | Kind::Symlink => true,
        _ => false,
    };
    let looks = matches!(call.kind, Kind::Open | Kind::Access | Kind::Stat);
    match call.errno? {
        "EEXIST" if makes => Some("EEXIST"),
        "ENOENT" if looks && !makes => Some("ENOENT"),
        _ => None,
    }
}

/// The path that a call is for.
fn name<'a>(call: &Call<'a>) -> Option<&'a str> {
    match call.kind {
        Kind::Link | Kind::Symlink => call.path2,
        _ => call.path,
    }
}

impl BusyRetry {
    fn on_name(&mut self, call: &Call) {
        let waits = waits_for_name(call).zip(name(call));
        let Some((errno, path)) = waits else {
            if let Some(spin) = self.names.get_mut(&call.tid).filter(|spin| spin.row > 0) {
                let same = spin.kind == Some(call.kind) && name(call).is_some_and(|path| key_of(path) == spin.name);
                if same && call.succeeded() {
                    spin.end();
                }
                (spin.row, spin.pending, spin.pending_ns) = (0, 0, 0);
            }
            return;
        };
        let spin = self.names.entry(call.tid);
        let key = key_of(path);
        if !spin.goes_on(call, errno) || spin.name != key {
            // It may have been kept from the processor.
            match spin.name == key && spin.row >= MIN_FAILURES {
                true => {
                    spin.pending += spin.row;
                    spin.pending_ns += spin.last_at_ns - spin.began_ns;
                }
                false if spin.name == key => {}
                false => (spin.pending, spin.pending_ns) = (0, 0),
            }
            spin.row = 0;
            spin.begin(call, errno);
            spin.name = key;
            if spin.rows == 0 {
                spin.path = path.into();
            }
        }
        spin.add(call);
    }
}

impl Rule for BusyRetry {
    fn call(&mut self, call: &Call, _: &Context) {
        self.on_name(call);
        // A thread that moves bytes between two attempts works instead of waiting.
        if call.succeeded() && call.moved() > 0
            && let Some(spin) = self.trying.get(&call.tid).and_then(|key| self.spins.get_mut(key))
        {
            spin.end();
        }
        let Some(fd) = call.fd.filter(|_| !call.operation) else { return };
        let key = (call.tid, fd, call.file.map_or(0, |file| file.0));
        let errno = call.errno.filter(|e| matches!(*e, "EAGAIN" | "EINTR" | "EBUSY" | "EWOULDBLOCK"));
        let Some(errno) = errno else {
            if let Some(spin) = self.spins.get_mut(&key) {
                spin.end();
            }
            return;
        };
        *self.trying.entry(call.tid) = key;
        let spin = self.spins.entry(key);
        if !spin.goes_on(call, errno) {
            spin.end();
            spin.begin(call, errno);
        }
        spin.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((tid, fd, _), spin) in self.spins.iter() {
            let name = match spin.path.as_str() {
                "" => format!("descriptor {fd}"),
                path => path.to_owned(),
            };
            out.extend(found(run, *tid, spin, spin.total(), &name, &format!("fd = {fd}")));
        }
        for (tid, spin) in self.names.iter() {
            // A row that goes on is one that may be for nothing.
            let total = (spin.rows, spin.failures, spin.cost_ns);
            let (name, condition) = match spin.names {
                0 | 1 => (spin.path.to_string(), format!("{} IN (path, path2)", sql::quote(&spin.path))),
                n => (
                    format!("{} and {}", spin.path, counted(n as i64 - 1, "other name", "other names")),
                    format!("syscall = {}", sql::quote(&spin.syscall)),
                ),
            };
            out.extend(found(run, *tid, spin, total, &name, &condition).map(|found| Found {
                // A missing name has no file.
                costs: Costs::of(spin.kind.as_slice()).of_all_files(),
                ..found
            }));
        }
    }
}

/// Calls of a thread on a descriptor or a name.
fn found(run: &Run, tid: i32, spin: &Spin, total: (u64, u64, i64), name: &str, condition: &str) -> Option<Found> {
    let (rows, failures, cost) = total;
    let share = cost as f64 / run.span_ns.max(1) as f64;
    (rows > 0).then(|| Found {
        severity: Some(if share >= 0.1 { Severity::High } else { Severity::Medium }),
        cost_ns: Some(cost),
        title: format!(
            "{} repeats {} on {name} {} times after {} without waiting",
            spin.comm,
            spin.syscall,
            units::count(failures as i64),
            spin.errno,
        ),
        subject: Subject {
            tid: Some(tid),
            file_id: spin.file_id,
            path: Some(spin.path.to_string()).filter(|path| !path.is_empty()),
            ..Subject::process(spin.pid, &spin.comm)
        },
        evidence: vec![number("failures", failures as i64), number("rows", rows as i64)],
        examples: match rows {
            1 if spin.rows == 0 => spin.first.list(),
            _ => spin.examples.list(),
        },
        query: calls!("tid = {tid} AND {condition} AND errno = {}", sql::quote(&spin.errno)),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn who_works_between_attempts_does_not_wait() {
        let run = |works: bool| {
            let mut s = Scenario::new();
            let lock = s.open("/data/gc.lock", "O_RDWR|O_CREAT");
            let fd = s.open("/data/out", "O_WRONLY|O_CREAT");
            for _ in 0..500 {
                if works {
                    s.write(fd, 100);
                }
                s.fail("flock", lock, "EAGAIN");
            }
            s
        };
        fires("busy-retry", run(false));
        silent("busy-retry", run(true));
        // Locks of several files, by one number.
        let mut s = Scenario::new();
        for name in ["/data/a", "/data/b"] {
            let fd = s.open(name, "O_RDWR|O_CREAT");
            (0..500).for_each(|_| s.fail("flock", fd, "EAGAIN"));
            s.close(fd);
        }
        let found = fires("busy-retry", s);
        assert_eq!((found.len(), found[0].evidence[0].value), (2, 500.0));
    }

    #[test]
    fn fires_on_a_busy_loop() {
        let mut s = Scenario::new();
        let fd = s.open("/dev/source", "O_RDONLY|O_NONBLOCK");
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
        }
        let found = fires("busy-retry", s);
        assert_eq!(found[0].evidence[0].value, 500.0);
    }

    #[test]
    fn silent_with_a_pause_or_progress() {
        let mut s = Scenario::new();
        let fd = s.open("/dev/source", "O_RDONLY|O_NONBLOCK");
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
            s.wait_us(200);
        }
        for _ in 0..500 {
            s.fail("read", fd, "EAGAIN");
            s.read(fd, 100);
        }
        silent("busy-retry", s);
    }

    #[test]
    fn fires_on_a_name_that_is_tried_until_it_is_there() {
        for (errno, flags) in [("ENOENT", "O_RDONLY"), ("EEXIST", "O_WRONLY|O_CREAT|O_EXCL")] {
            let mut s = Scenario::new();
            for _ in 0..500 {
                s.fail_open("/data/part", flags, errno);
            }
            s.open("/data/part", flags);
            let found = fires("busy-retry", s);
            assert_eq!(found[0].evidence[0].value, 500.0);
            assert_eq!(found[0].subject.path.as_deref(), Some("/data/part"));
        }
        let mut s = Scenario::new();
        for part in 0..4 {
            let path = format!("/data/part{part}");
            (0..500).for_each(|_| s.fail_open(&path, "O_RDONLY", "ENOENT"));
            s.open(&path, "O_RDONLY");
        }
        let found = fires("busy-retry", s);
        assert_eq!((found.len(), found[0].evidence[0].value), (1, 2000.0));
        assert!(found[0].title.contains("openat on /data/part0 and 3 other names 2,000 times"), "{}", found[0].title);
    }

    #[test]
    fn silent_on_names_that_are_never_there_and_with_a_pause() {
        // Looked for, or looked for before each of other things.
        let mut s = Scenario::new();
        for _ in 0..500 {
            s.fail_open("/etc/overrides", "O_RDONLY", "ENOENT");
        }
        s.open("/data/x", "O_RDONLY");
        for _ in 0..500 {
            s.fail_open("/data/part", "O_RDONLY", "ENOENT");
            s.stat("/data/y");
        }
        s.open("/data/part", "O_RDONLY");
        for _ in 0..500 {
            s.fail_open("/data/next", "O_RDONLY", "ENOENT");
            s.wait_us(200);
        }
        s.open("/data/next", "O_RDONLY");
        silent("busy-retry", s);
    }
}

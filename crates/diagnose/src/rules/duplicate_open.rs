//! `duplicate-open`: one file is opened twice for one piece of work.

use crate::prelude::*;

/// Files or repetitions from which on they count.
const MIN_TIMES: u64 = 10;
/// Bytes of a file that tell what it is.
const HEAD: i64 = 4096;
/// Calls of the thread on other things that may lie between the two opens.
const MAX_BETWEEN: u64 = 16;

static INFO: RuleInfo = RuleInfo {
    id: "duplicate-open",
    name: "File opened twice for one operation",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: Kinds::ALL,
    about_calls: true,
    what: "A thread opens a file and shortly afterwards opens the same file again, while the first \
           descriptor is still open or right after it was closed: once to examine the file (size, \
           type, permissions), once to use it.",
    when: "A thread of one process opens the same file a second time within 16 calls, 10 or more \
           times in all, on any files. The first descriptor moved no bytes and took no lock; or it was closed after \
           reading at most 4 KiB from the start of the file, which the second descriptor reads \
           again together with the bytes after them. Several descriptors that all move data have a \
           purpose and do not count. Also, at any cost, 10 or more second opens that only sync \
           through a new descriptor what the still open first one wrote.",
    cost: "the time of the second opens, and the same time again for their closes",
    advice: "Pass on the descriptor instead of the path; use fstat and fchmod on it.",
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
    /// A second descriptor that may be there for a sync only: process, it, the file, and its sync.
    second: Option<(i32, i32, FileId, Option<Example>)>,
}

#[derive(Clone, Debug)]
struct Opened {
    rid: i64,
    file: FileId,
    fd: Option<i32>,
    at: u64,
    moved: bool,
    /// Whether what it moved was read from the head of the file, and that it is closed since.
    head: bool,
    closed: bool,
    /// Where such reads ended.
    head_end: i64,
    /// When it was opened again after such a look: where that ended, and the second open.
    again: Option<(i64, Example)>,
}

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    times: u64,
    path: Text,
    file: Option<FileId>,
    open: Durations,
    examples: Examples,
    /// The same for second descriptors that only sync.
    only_sync: Syncing,
}

impl Process {
    /// A second open, in whose course a call on the file is seen.
    fn add(&mut self, call: &Call, file: FileId, example: Example) {
        let dur_ns = example.dur_ns;
        if self.times == 0 {
            self.comm = call.comm_text();
            self.path = example.path.clone().unwrap_or_default();
            self.file = Some(file);
        }
        self.times += 1;
        self.open.add(dur_ns);
        self.examples.add_with(dur_ns, || example);
    }
}

#[derive(Debug, Default)]
struct Syncing {
    times: u64,
    comm: Text,
    path: Text,
    file: Option<FileId>,
    examples: Examples,
}

rule! {
    pub struct DuplicateOpen {
        threads: Bounded<i32, Thread> = Bounded::new(|thread| thread.calls),
        processes: Bounded<i32, Process>
            = Bounded::new(|process| process.times + process.only_sync.times),
    }
}

/// Whether a call is a reason to have a descriptor: it moves bytes, makes them durable, or guards them.
fn uses(call: &Call) -> bool {
    call.kind.is_data()
        || matches!(call.kind, Kind::Mmap | Kind::Sync | Kind::Truncate | Kind::Allocate)
        || call.takes_lock()
}

impl DuplicateOpen {
    /// A thread of a pool may use a descriptor that another one opened, as may the kernel for a ring.
    fn used_by_another(&mut self, call: &Call, context: &Context) {
        let opened = context.open().and_then(|open| open.opened.as_ref());
        let Some(opened) = opened.filter(|opened| call.asynchronous || opened.tid != call.tid) else { return };
        if uses(call)
            && let Some(thread) = self.threads.get_mut(&opened.tid)
            && let Some(own) = thread.recent.iter_mut().find(|own| own.rid == opened.rid)
        {
            (own.moved, own.head) = (true, false);
        }
    }
}

impl Rule for DuplicateOpen {
    fn call(&mut self, call: &Call, context: &Context) {
        self.used_by_another(call, context);
        if call.asynchronous {
            return;
        }
        let thread = self.threads.entry(call.tid);
        thread.calls += 1;
        let now = thread.calls;
        let Some(file) = call.file.filter(|_| call.succeeded()) else { return };
        if let Some((pid, fd, second, sync)) = &mut thread.second
            && (call.pid, call.fd, file) == (*pid, Some(*fd), *second)
        {
            match (call.kind, sync) {
                (Kind::Sync, sync) => *sync = Some(Example::of(call)),
                // Its type may be queried in between.
                (Kind::Stat | Kind::Fcntl, _) => {}
                (Kind::Close, Some(sync)) => {
                    let only = &mut self.processes.entry(call.pid).only_sync;
                    if only.times == 0 {
                        only.comm = call.comm_text();
                        only.path = sync.path.clone().unwrap_or_default();
                        only.file = Some(file);
                    }
                    only.times += 1;
                    only.examples.keep(sync.clone());
                    thread.second = None;
                }
                _ => thread.second = None,
            }
        }
        if uses(call) {
            let range = call.range().filter(|_| call.kind == Kind::Read);
            let head = range.filter(|(_, end)| *end <= HEAD);
            let mut again = None;
            for opened in thread.recent.iter_mut().filter(|o| o.file == file) {
                opened.head = head.is_some() && (opened.head || !opened.moved);
                opened.head_end = opened.head_end.max(head.map_or(0, |(_, end)| end));
                opened.moved = true;
                // The same bytes as before, and more: a small file that is read whole again is the
                // matter of repeated-open.
                let more = |known: i64| range.is_some_and(|(start, end)| start == 0 && end > known);
                again = opened.again.take().filter(|(known, _)| more(*known));
            }
            if let Some((_, example)) = again {
                let process = self.processes.entry(call.pid);
                process.add(call, file, example);
            }
            return;
        }
        if call.kind == Kind::Close {
            for opened in thread.recent.iter_mut().filter(|o| o.file == file && o.fd == call.fd) {
                opened.closed = true;
            }
        }
        if call.kind != Kind::Open || !context.file(call).is_none_or(|f| f.is_regular()) {
            return;
        }
        thread.recent.retain(|o| now - o.at <= MAX_BETWEEN + 1);
        let beside = thread.recent.iter().find(|o| o.file == file && o.moved);
        let open = beside.and_then(|o| context.state.descriptors.find(call.pid, o.fd?));
        let open = open.and_then(|id| context.state.descriptors.get(id));
        let written = open.is_some_and(|d| d.file == Some(file) && d.written > 0);
        thread.second = call
            .new_fd()
            .filter(|_| written)
            .map(|fd| (call.pid, fd, file, None));
        let twice = thread.recent.iter().any(|o| o.file == file && !o.moved);
        let looked = thread.recent.iter().find(|o| o.file == file && o.head && o.closed);
        let looked = looked.map(|o| o.head_end).filter(|_| !twice);
        thread.recent.retain(|o| o.file != file);
        thread.recent.push(Opened {
            rid: call.rid,
            file,
            fd: call.new_fd(),
            at: now,
            moved: false,
            head: false,
            closed: false,
            head_end: 0,
            again: looked.map(|end| (end, Example::of(call))),
        });
        if twice {
            let process = self.processes.entry(call.pid);
            process.add(call, file, Example::of(call));
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let only = &process.only_sync;
            if only.times >= MIN_TIMES {
                let subject = Subject::process(*pid, &only.comm);
                out.push(Found {
                    severity: Some(Severity::Low),
                    title: format!(
                        "{} opens a file that it has just written a second time only to sync it, {} times; the first is {}",
                        only.comm,
                        units::count(only.times as i64),
                        only.path,
                    ),
                    subject: match only.file {
                        Some(file) => subject.with_file(file, &only.path),
                        None => subject,
                    },
                    evidence: vec![number("opens_to_sync", only.times as i64)],
                    examples: only.examples.list(),
                    query: calls!("pid = {pid} AND (syscall IN ('open', 'openat', 'openat2', 'creat') OR syscall LIKE '%sync%')"),
                    ..Found::default()
                });
            }
            let cost = 2 * process.open.sum_ns;
            if process.times < MIN_TIMES || !run.matters(cost) {
                continue;
            }
            let subject = Subject::process(*pid, &process.comm);
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} opens a file twice for one operation, {} times; the first is {}",
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
                query: calls!("pid = {pid} AND syscall IN ('open', 'openat', 'openat2', 'creat')"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_a_pool_of_threads_and_on_lock_files() {
        let mut s = Scenario::new();
        for _ in 0..30 {
            s.thread(101, "pool");
            let fd = s.open_existing("/srv/page", "O_RDONLY", 4096);
            s.thread(102, "pool");
            s.read(fd, 4096);
            s.thread(103, "pool");
            s.close(fd);
        }
        silent("duplicate-open", s);
        let mut s = Scenario::new();
        for _ in 0..30 {
            let fd = s.open("/data/lock", "O_RDWR|O_CREAT");
            s.flock(fd, 1_000);
            s.close(fd);
        }
        silent("duplicate-open", s);
    }

    #[test]
    fn a_look_at_the_head_is_no_reason_for_a_descriptor() {
        let sniff = |bytes, again: i64| {
            let mut s = Scenario::new();
            for i in 0..20 {
                let path = format!("/data/{i}");
                let fd = s.open_existing(&path, "O_RDONLY", 1 << 20);
                s.pread(fd, bytes, 0);
                s.close(fd);
                let fd = s.open_existing(&path, "O_RDONLY", 1 << 20);
                s.pread(fd, 1 << 16, again);
                s.close(fd);
            }
            s
        };
        fires("duplicate-open", sniff(512, 0));
        silent("duplicate-open", sniff(1 << 16, 0));
        silent("duplicate-open", sniff(512, 512));
        // The whole file, again.
        let mut s = Scenario::new();
        for _ in 0..20 {
            let fd = s.open_existing("/etc/passwd", "O_RDONLY", 900);
            s.pread(fd, 900, 0);
            s.close(fd);
        }
        silent("duplicate-open", s);
    }

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

    #[test]
    fn fires_on_a_second_descriptor_for_the_sync() {
        let mut s = Scenario::new();
        for i in 0..20 {
            let path = format!("/data/.temp_file{i}");
            let fd = s.open(&path, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 22);
            let second = s.open(&path, "O_WRONLY");
            s.fsync(second);
            s.close(second);
            s.close(fd);
            s.unlink(&path);
            s.wait_ms(5000);
        }
        let found = fires("duplicate-open", s);
        assert_eq!(found[0].evidence[0].value, 20.0);
        assert_eq!(found[0].severity, crate::finding::Severity::Low);
    }

    #[test]
    fn silent_when_the_first_descriptor_is_closed_before() {
        let mut s = Scenario::new();
        for i in 0..20 {
            let path = format!("/data/{i}");
            let fd = s.open(&path, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 22);
            s.close(fd);
            let fd = s.open(&path, "O_RDONLY");
            s.fsync(fd);
            s.close(fd);
        }
        silent("duplicate-open", s);
    }
}

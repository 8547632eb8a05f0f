//! `metadata-storm`: more time goes into names and attributes than into bytes.

use hashbrown::{HashMap, HashSet};

use crate::prelude::*;

/// Length of a window, nanoseconds.
const WINDOW_NS: i64 = 1_000_000_000;
/// Calls on names and attributes in a window from which on it counts.
const MIN_CALLS: u64 = 1_000;
/// Their share of the process's I/O time in the window.
const MIN_PART: f64 = 0.5;
/// Calls for each name: more ask the same again, which other rules are about.
const MAX_SAME: u64 = 20;
const MAX_NAMES: u64 = 1_000;
/// Share of the window that they take.
const MIN_BUSY: f64 = 0.1;
/// Entries that are asked about one by one from which on they count.
const MIN_ENTRIES: u64 = 500;
/// Of the entries that were asked about the share that was opened, below which the
/// question was for something else than to use them.
const MAX_OPENED: f64 = 0.5;
/// Calls that move bytes, of all: a process with fewer has names as its work.
const MIN_DATA: f64 = 0.05;

/// Calls whose time a storm is made of.
const METADATA: &[Kind] = &[
    Kind::Open,
    Kind::Close,
    Kind::Stat,
    Kind::Access,
    Kind::Readlink,
    Kind::ReadDir,
    Kind::Unlink,
    Kind::Rename,
    Kind::Mkdir,
    Kind::Rmdir,
    Kind::Link,
    Kind::Symlink,
    Kind::SetAttr,
    Kind::GetXattr,
    Kind::SetXattr,
    Kind::Statfs,
    Kind::Truncate,
    Kind::Chdir,
];

static INFO: RuleInfo = RuleInfo {
    id: "metadata-storm",
    name: "Mostly names and attributes",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: Kinds::ALL,
    about_calls: false,
    what: "A process spends most of its I/O time on opening, looking up, listing, and removing \
           files rather than on their contents: very many small files, or one stat per directory \
           entry.",
    when: "In windows of one second, a process makes 1,000 or more such calls that take half or \
           more of its I/O time and a tenth or more of the second, on many names (at most 20 calls \
           per name), while at least one in twenty of its calls moves bytes of regular files. Calls \
           that create, change, or remove names or attributes do not count, because that is the \
           work the program was asked to do; nor does closing a file that was opened to be created, \
           nor lseek. Or it calls stat by path on 500 or more entries, other than directories, of a \
           directory that it has just listed, and until the end of the recording opens some of them \
           but fewer than half. So tools whose job this is are left out: find, du, and ls open none \
           of the files, and tools that copy or pack them open all. Calls that fail with ENOENT \
           belong to `lookup-storm` and do not count.",
    cost: "for stats of entries, their time; otherwise the time of such calls beyond the time of \
           moving bytes in these windows",
    advice: "Keep many small items in one file (an archive, a database); take the type from \
           getdents (d_type) instead of stat; use calls relative to the directory's descriptor \
           (openat, statx with AT_STATX_DONT_SYNC on network file systems); keep directories \
           small.",
    not_when: "Not when the program needs the size or times of each entry.",
    bad: "for name in os.listdir(dir):\n    if os.path.isdir(os.path.join(dir, name)):   # a stat each\n        ...",
    good: "for entry in os.scandir(dir):\n    if entry.is_dir():                            # d_type\n        ...",
    reference: "Darshan's metadata-heavy jobs; Python PEP 471",
};

/// Calls on names and attributes in a window, and their time.
#[derive(Clone, Debug, Default)]
struct Calls {
    count: u64,
    ns: i64,
    examples: Examples,
}

impl Calls {
    fn add(&mut self, call: &Call) {
        self.count += 1;
        self.ns += call.dur_ns;
        self.examples.add(call);
    }
}

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    window: i64,
    looks: Calls,
    /// How many make, change or remove something.
    changes: u64,
    /// Names that they are about, while these are few enough to tell.
    names: HashSet<u64>,
    /// Of regular files.
    data_calls: u64,
    data_ns: i64,
    /// Windows that were long enough of it.
    windows: u64,
    total_calls: u64,
    excess_ns: i64,
    examples: Examples,
    /// The directory that was listed last, and stats of entries right after.
    listed: Option<String>,
    stats: u64,
    /// Entries of these calls, and how many of them were opened afterwards.
    entries: u64,
    opened: u64,
    entries_ns: i64,
    entry_examples: Examples,
}

/// An entry of a directory that a process has asked about.
#[derive(Debug, Default)]
struct Entry {
    asked: bool,
    opened: bool,
}

impl Process {
    fn end_window(&mut self) {
        let (looks, changes) = (std::mem::take(&mut self.looks), std::mem::take(&mut self.changes));
        let (data_calls, data_ns) = (std::mem::take(&mut self.data_calls), std::mem::take(&mut self.data_ns));
        let names = u64::try_from(std::mem::take(&mut self.names).len()).unwrap_or(u64::MAX);
        let (calls, ns) = (looks.count, looks.ns);
        let part = ns as f64 / (ns + data_ns).max(1) as f64;
        let busy = ns as f64 / WINDOW_NS as f64;
        let used = data_calls as f64 >= (calls + changes) as f64 * MIN_DATA;
        let many = names >= (calls / MAX_SAME).min(MAX_NAMES);
        if calls >= MIN_CALLS && part >= MIN_PART && busy >= MIN_BUSY && used && many {
            self.windows += 1;
            self.total_calls += calls;
            self.excess_ns += ns - data_ns;
            if self.examples.list().is_empty() {
                self.examples = looks.examples;
            }
        }
    }

    /// Windows, calls and excess with the window that goes on.
    fn total(&self) -> (u64, u64, i64, Examples) {
        let mut last = Process {
            looks: self.looks.clone(),
            changes: self.changes,
            names: self.names.clone(),
            data_calls: self.data_calls,
            data_ns: self.data_ns,
            examples: self.examples.clone(),
            ..Process::default()
        };
        last.end_window();
        (
            self.windows + last.windows,
            self.total_calls + last.total_calls,
            self.excess_ns + last.excess_ns,
            last.examples,
        )
    }
}

/// Whether a call makes, changes or removes a name or an attribute.
fn changes(call: &Call) -> bool {
    use Kind::*;
    match call.kind {
        Open => call.has_flag("O_CREAT"),
        Truncate | Rename | Unlink | SetAttr | Link | Symlink | Mkdir | Rmdir | Mknod | SetXattr => true,
        _ => false,
    }
}

rule! {
    pub struct MetadataStorm {
        processes: Bounded<i32, Process>
            = Bounded::new(|process| process.total_calls + process.looks.count),
        /// By process and number of the path.
        // For forgotten entries it is unknown whether they are opened.
        entries: Bounded<(i32, u64), Entry> = Bounded::new(|entry| u64::from(entry.opened)),
    }
}

impl Rule for MetadataStorm {
    fn call(&mut self, call: &Call, context: &Context) {
        if call.asynchronous || call.failed_with("ENOENT") {
            return;
        }
        let data = call.kind.is_data() || matches!(call.kind, Kind::Sync | Kind::SyncAll | Kind::SyncRange);
        if !data && (!call.kind.is_metadata() || call.kind == Kind::Seek) {
            return;
        }
        let process = self.processes.entry(call.pid);
        call.name_process(&mut process.comm);
        let window = call.ended_at_ns().div_euclid(WINDOW_NS);
        if window != process.window {
            process.end_window();
            process.window = window;
        }
        let file = context.file(call);
        if data {
            process.data_ns += call.dur_ns;
            process.data_calls += u64::from(call.moved() > 0 && file.is_some_and(|f| f.is_regular()));
            return;
        }
        let of_new = call.kind == Kind::Close && context.open().and_then(|open| open.opened_with("O_CREAT")) == Some(true);
        if of_new || changes(call) {
            process.changes += 1;
        } else {
            process.looks.add(call);
            if let Some(key) = call.path_key().filter(|_| (process.names.len() as u64) < MAX_NAMES) {
                process.names.insert(key);
            }
        }
        if call.kind == Kind::ReadDir {
            process.listed = call.path.map(str::to_owned);
            return;
        }
        if file.is_some_and(|f| f.is_directory()) {
            return;
        }
        let Some(key) = call.path_key() else { return };
        if call.kind == Kind::Open {
            let entry = self.entries.get_mut(&(call.pid, key)).filter(|entry| !entry.opened);
            if let Some(entry) = entry.filter(|_| call.succeeded() && !call.has_flag("O_DIRECTORY")) {
                entry.opened = true;
                process.opened += 1;
            }
            return;
        }
        let listed = process.listed.as_ref().zip(call.path).is_some_and(|(directory, path)| {
            let rest = path.strip_prefix(directory.trim_end_matches('/'));
            rest.and_then(|rest| rest.strip_prefix('/')).is_some_and(|name| !name.contains('/'))
        });
        if listed && call.kind == Kind::Stat && call.path_arg.is_some_and(|arg| !arg.is_empty()) {
            process.stats += 1;
            process.entries_ns += call.dur_ns;
            process.entry_examples.add(call);
            let entry = self.entries.entry((call.pid, key));
            if !entry.asked {
                entry.asked = true;
                process.entries += 1;
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut shares: HashMap<i32, (u64, u64)> = HashMap::new();
        for ((pid, _), entry) in self.entries.iter() {
            let (asked, opened) = shares.entry(*pid).or_default();
            *asked += 1;
            *opened += u64::from(entry.opened);
        }
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let subject = Subject::process(*pid, &comm);
            let (asked, opened) = shares.get(pid).copied().unwrap_or_default();
            let some = opened > 0 && (opened as f64) < asked as f64 * MAX_OPENED;
            if process.stats >= MIN_ENTRIES && some && run.matters(process.entries_ns) {
                out.push(Found {
                    cost_ns: Some(process.entries_ns),
                    costs: Costs::of(&[Kind::Stat]),
                    title: format!(
                        "{} lists directories and then asks {} times for attributes of {}, of which it opens {}",
                        comm,
                        units::count(process.stats as i64),
                        counted(process.entries as i64, "entry", "entries"),
                        units::count(process.opened as i64),
                    ),
                    subject: subject.clone(),
                    evidence: vec![number("stats_of_entries", process.stats as i64)],
                    examples: process.entry_examples.list(),
                    query: calls!("pid = {pid} AND syscall IN ('stat', 'lstat', 'newfstatat', 'statx', 'getdents', 'getdents64')"),
                    ..Found::default()
                });
            }
            let (windows, calls, excess, examples) = process.total();
            if windows == 0 || !run.matters(excess) {
                continue;
            }
            out.push(Found {
                cost_ns: Some(excess),
                costs: Costs::of(METADATA),
                title: format!(
                    "{} makes {} calls on names and attributes that take longer than reading and writing, in {} {}",
                    comm,
                    units::count(calls as i64),
                    units::count(windows as i64),
                    if windows == 1 { "second" } else { "different seconds" },
                ),
                subject,
                evidence: vec![
                    number("calls", calls as i64),
                    number("seconds", windows as i64),
                    evidence("calls_per_second", calls as f64 / windows as f64),
                ],
                examples: examples.list(),
                query: format!(
                    "SELECT syscall, count(*) AS calls, sum(dur_ns) AS total_ns FROM syscalls WHERE pid = {pid} \
                     GROUP BY syscall ORDER BY total_ns DESC"
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_very_many_small_files() {
        let mut s = Scenario::new();
        s.slow(50_000);
        for i in 0..2000 {
            let fd = s.open_existing(&format!("/mail/{i}"), "O_RDONLY", 1000);
            s.read(fd, 1000);
            s.close(fd);
        }
        fires("metadata-storm", s);
    }

    #[test]
    fn silent_on_a_walk() {
        let mut s = Scenario::new();
        s.slow(100_000);
        for i in 0..3000 {
            s.stat(&format!("/usr/{i}"));
        }
        silent("metadata-storm", s);
    }

    #[test]
    fn silent_when_bytes_take_longer() {
        let mut s = Scenario::new();
        for i in 0..2000 {
            let fd = s.open_existing(&format!("/media/{i}"), "O_RDONLY", 1 << 20);
            s.read(fd, 1 << 20);
            s.close(fd);
        }
        silent("metadata-storm", s);
    }

    /// Lists a directory and asks for each entry; opens one in `every` of them later.
    fn walk(every: usize) -> Scenario {
        let mut s = Scenario::new();
        for d in 0..10 {
            let directory = s.open_directory(&format!("/in/{d}"));
            s.list(directory);
            for i in 0..100 {
                s.stat(&format!("/in/{d}/{i}"));
            }
        }
        for i in (0..1000).step_by(every) {
            let fd = s.open(&format!("/in/{}/{}", i / 100, i % 100), "O_RDONLY");
            s.read(fd, 1000);
            s.close(fd);
        }
        s
    }

    #[test]
    fn counts_files_that_are_opened_long_after_the_listing() {
        silent("metadata-storm", walk(1));
        let found = fires("metadata-storm", walk(20));
        assert_eq!(
            found[0].title,
            "program lists directories and then asks 1,000 times for attributes of 1,000 entries, of which it opens 50"
        );
    }

    #[test]
    fn silent_on_creating_files() {
        let mut s = Scenario::new();
        s.slow(100_000);
        for i in 0..3000 {
            let fd = s.open(&format!("/mail/tmp/{i}"), "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 1000);
            s.close(fd);
            s.link(&format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"));
            s.unlink(&format!("/mail/tmp/{i}"));
        }
        silent("metadata-storm", s);
    }

    #[test]
    fn silent_on_one_name_that_is_asked_for_very_often() {
        let mut s = Scenario::new();
        let log = s.open("/var/log/app", "O_WRONLY|O_CREAT|O_APPEND");
        for i in 0..2000 {
            s.slow(100_000);
            s.stat("/var/log/app");
            s.stat(&format!("/var/log/{}", i % 5));
            s.slow(0);
            s.write(log, 100);
        }
        silent("metadata-storm", s);
    }

    #[test]
    fn seeks_are_no_calls_on_names() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 20);
        s.slow(100_000);
        for i in 0..1500 {
            s.lseek(fd, i * 100);
            s.slow(0);
            s.read(fd, 100);
            s.slow(100_000);
        }
        silent("metadata-storm", s);
    }
}

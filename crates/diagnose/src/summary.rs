//! Where the time of a recording went, in a few sentences.
//!
//! Times in the sentences are of the clock: calls that several threads make at once count once.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::call::{Call, FileId};
use crate::covered::Covered;
use crate::kind::Kind;
use crate::layers::Fault;
use crate::ledger::{Claimable, FAULTS, Spent, Times};
use crate::names::is_temporary;
use crate::state::State;
use crate::state::files::FileState;

mod sentences;

use sentences::sentences;

/// Calls are summed up by activity for this many programs.
const MAX_PROGRAMS: usize = 256;
/// Processes whose program is remembered.
const MAX_PROCESSES: usize = 1 << 16;
/// Opens that make files may take this share of the time of look-ups, and the files of look-ups are still known.
const FEW: f64 = 0.1;
/// Page faults that wait for the calls of their time.
const MAX_AHEAD: usize = 1 << 18;

/// Where the time of a recording went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Summary {
    /// Three sentences at most. Hold paths and names as they are: not escaped.
    pub sentences: Vec<String>,
    /// How long the run took, or the recording of what ran before, nanoseconds.
    pub took_ns: i64,
    /// In how much of that one thread at least was in a storage call, or in a page fault on a
    /// file.
    pub in_calls_ns: i64,
    /// In how much of that an asynchronous request to storage was under way that no thread waited
    /// for alone.
    pub asynchronous_ns: i64,
    /// Time that all threads together were in storage calls and page faults on files.
    pub thread_ns: i64,
    /// The same by program and activity, the longest first.
    pub parts: Vec<Part>,
}

/// A program's use of storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Part {
    /// Name of its processes.
    pub comm: String,
    /// Its activity.
    pub activity: Activity,
    /// In how much of the run one of its threads at least did that, nanoseconds.
    pub wall_ns: i64,
    /// Time that its threads did that together.
    pub thread_ns: i64,
    /// Of which they waited for I/O, and in syncs for the file system too; null when waits were not
    /// recorded.
    pub waited_ns: Option<i64>,
    /// Calls, or page faults.
    pub calls: i64,
    /// Bytes that they moved.
    pub bytes: i64,
    /// Names of files with their time; files of calls by path are unknown.
    pub files: i64,
    /// The file with most of the time.
    pub path: Option<String>,
}

/// The purpose of calls, in the words for their time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Makes files durable.
    Sync,
    /// Reads.
    Read,
    /// Writes, reserves or frees room.
    Write,
    /// Moves bytes from file to file.
    Transfer,
    /// Finds, opens and lists files.
    Find,
    /// Removes names.
    Remove,
    /// Makes and empties files, makes other names, and changes names and attributes.
    Change,
    /// Takes locks.
    Lock,
    /// Page faults.
    Fault,
    /// Anything else.
    #[default]
    Other,
}

impl Activity {
    const COUNT: usize = Activity::Other as usize + 1;

    /// All of them.
    pub const ALL: [Activity; Activity::COUNT] = {
        use Activity::*;
        [
            Sync, Read, Write, Transfer, Find, Remove, Change, Lock, Fault, Other,
        ]
    };

    /// The activity of calls of a kind.
    pub fn of(kind: Kind) -> Self {
        use Kind::*;
        match kind {
            Sync | SyncAll | Msync => Activity::Sync,
            Read | Advise => Activity::Read,
            // sync_file_range waits for write-back, and makes nothing durable.
            Write | SyncRange | Allocate | Truncate => Activity::Write,
            Transfer => Activity::Transfer,
            Open | Close | CloseRange | Stat | Access | Readlink | Statfs | ReadDir | Chdir
            | GetXattr | Seek => Activity::Find,
            Unlink | Rmdir => Activity::Remove,
            Rename | SetAttr | Link | Symlink | Mkdir | Mknod | SetXattr => Activity::Change,
            Flock | Fcntl => Activity::Lock,
            Dup | Ioctl | Mmap | Munmap | Madvise | Connect | Accept | Send | Receive | Poll
            | Futex | Sleep | WaitChild | Other => Activity::Other,
        }
    }

    fn of_index(index: usize) -> Self {
        match index {
            FAULTS => Activity::Fault,
            index => Kind::at(index).map_or(Activity::Other, Self::of),
        }
    }
}

/// Whether a call of a kind on a file is one to storage; pipes, sockets and terminals are not.
pub(crate) fn is_storage(kind: Kind, file: Option<&FileState>) -> bool {
    match file.filter(|file| !file.file_type.is_empty()) {
        Some(file) => matches!(
            &*file.file_type,
            "regular" | "directory" | "symlink" | "block"
        ),
        // Of calls by path.
        None => {
            let of_descriptor = matches!(kind, Kind::Close | Kind::CloseRange | Kind::Seek);
            kind == Kind::SyncAll || kind.is_metadata() && !of_descriptor
        }
    }
}

/// Time of the clock that calls took, as they come.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    all: Covered,
    asynchronous: Covered,
    /// By program, with its name: by activity.
    programs: Vec<(String, [Doing; Activity::COUNT])>,
    /// Indexes of the programs by process; the latest one again.
    processes: HashMap<i32, Option<usize>>,
    latest: Option<(i32, Option<usize>)>,
    /// Time of calls on descriptors of which it is not known what they are.
    unknown_ns: i64,
    /// Page faults come in batches before the calls of the same time. In `all` they would be summed
    /// up first, and the calls that ended before them would not count.
    ahead: VecDeque<(i64, i64)>,
}

/// The sums of a program's calls of an activity, exact even with too many files to distinguish.
#[derive(Debug, Default)]
struct Doing {
    covered: Covered,
    spent: Spent,
    /// Time of the opens among them that make files.
    making_ns: i64,
}

impl Clock {
    pub(crate) fn call(
        &mut self,
        call: &Call,
        file: Option<&FileState>,
        spent: Spent,
        state: &State,
    ) {
        if !is_storage(call.kind, file) {
            if call.file.is_none() && call.kind.is_data() {
                self.unknown_ns = self.unknown_ns.saturating_add(call.dur_ns.max(0));
            }
            return;
        }
        let (from, to) = (call.ts_ns, call.ended_at_ns());
        if call.asynchronous {
            self.asynchronous.add(from, to);
            return;
        }
        self.waited(from, to);
        // An open may find a file or make one.
        let makes_file = call.makes_file();
        let activity = if makes_file {
            Activity::Change
        } else {
            Activity::of(call.kind)
        };
        let doing = self.doing((call.pid, call.comm), activity, state);
        if let Some(doing) = doing {
            doing.covered.add(from, to);
            doing.spent.add(spent);
            if makes_file {
                doing.making_ns = doing.making_ns.saturating_add(call.dur_ns.max(0));
            }
        }
    }

    /// Counts the interval of a call, after the page faults that ended before.
    fn waited(&mut self, from: i64, to: i64) {
        while let Some((begin, end)) = self.ahead.front().copied().filter(|(_, end)| *end <= to) {
            self.ahead.pop_front();
            self.all.add(begin, end);
        }
        self.all.add(from, to);
    }

    /// Adds a page fault.
    pub(crate) fn fault(&mut self, fault: &Fault, state: &State) {
        let (from, to) = (fault.ts_ns, fault.ts_ns.saturating_add(fault.dur_ns));
        if self.ahead.len() >= MAX_AHEAD
            && let Some((begin, end)) = self.ahead.pop_front()
        {
            self.all.add(begin, end);
        }
        self.ahead.push_back((from, to));
        let doing = self.doing((fault.pid, fault.comm), Activity::Fault, state);
        if let Some(doing) = doing {
            doing.covered.add(from, to);
            doing.spent.add(Spent::of_fault(fault));
        }
    }

    /// The sums of a process's program; `None` if there are too many programs.
    fn doing(
        &mut self,
        (pid, comm): (i32, &str),
        activity: Activity,
        state: &State,
    ) -> Option<&mut Doing> {
        let program = match self.latest.filter(|(latest, _)| *latest == pid) {
            Some((_, program)) => program,
            None => {
                let program = self.program(pid, comm, state);
                self.latest = Some((pid, program));
                program
            }
        };
        let (_, of) = self.programs.get_mut(program?)?;
        of.get_mut(activity as usize)
    }

    fn program(&mut self, pid: i32, comm: &str, state: &State) -> Option<usize> {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        if self.processes.len() >= MAX_PROCESSES {
            self.processes.clear();
        }
        let name = name_of(pid, state).unwrap_or(comm);
        let program = match self.at(name) {
            Some(at) => Some(at),
            None if self.programs.len() < MAX_PROGRAMS => {
                self.programs.push((name.to_owned(), Default::default()));
                Some(self.programs.len() - 1)
            }
            None => None,
        };
        self.processes.insert(pid, program);
        program
    }

    /// The program with a name.
    fn at(&self, name: &str) -> Option<usize> {
        self.programs.iter().position(|(known, _)| known == name)
    }

    /// The name that a process's time is added up by.
    fn comm(&self, pid: i32) -> Option<&str> {
        let program = (*self.processes.get(&pid)?)?;
        self.programs.get(program).map(|(name, _)| name.as_str())
    }

    /// Time in which a call or a page fault was under way.
    fn all_ns(&self) -> i64 {
        let mut all = self.all.clone();
        for (from, to) in &self.ahead {
            all.add(*from, *to);
        }
        all.ns()
    }

    /// The sums of each program.
    fn done(&self) -> impl Iterator<Item = (&str, Activity, &Doing)> {
        self.programs.iter().flat_map(|(comm, of)| {
            let done = Activity::ALL.into_iter().zip(of);
            done.map(move |(activity, doing)| (comm.as_str(), activity, doing))
        })
    }
}

/// Name of a process, where table `processes` has it.
fn name_of(pid: i32, state: &State) -> Option<&str> {
    let name = state.process(pid).map(|process| process.comm.as_str());
    name.filter(|name| !name.is_empty())
}

/// The text of a summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    /// Whether a command was recorded, from its beginning to its end.
    pub(crate) command: bool,
    /// How long the run or the recording took, nanoseconds.
    pub(crate) took_ns: i64,
    /// Whether single calls were recorded.
    pub(crate) calls: bool,
    /// Whether times off the CPU were.
    pub(crate) waits: bool,
    /// Whether page faults were.
    pub(crate) faults: bool,
}

/// Files of a part, with their sums. By their names: one after the other has the same, as journals
/// have.
#[derive(Default)]
struct Files<'a> {
    sums: BTreeMap<&'a str, (FileId, Part)>,
    /// Of files that had no room, and calls without a file.
    others: bool,
}

impl<'a> Files<'a> {
    /// The file with most of the time.
    fn top(&self) -> Option<(&'a str, FileId, &Part)> {
        let sums = self.sums.iter();
        let top = sums.max_by_key(|(_, (_, sum))| sum.thread_ns);
        top.map(|(name, (id, sum))| (*name, *id, sum))
    }
}

pub(crate) fn summary(times: &Times, clock: &Clock, state: &State, recorded: Recorded) -> Summary {
    let mut files: BTreeMap<(&str, Activity), Files> = BTreeMap::new();
    for sum in &times.sums {
        let file = sum.key.file.and_then(|id| state.files.get(id));
        let index = sum.key.index();
        let storage = match Kind::at(index) {
            Some(kind) => is_storage(kind, file),
            None => true,
        };
        let Some(comm) = clock.comm(sum.pid).filter(|_| storage && sum.calls > 0) else {
            continue;
        };
        let files = files.entry((comm, Activity::of_index(index))).or_default();
        match sum.key.file {
            Some(id) => {
                let name = name_at_the_time(sum, file);
                let named = files.sums.entry(name).or_insert((id, Part::default()));
                add(&mut named.1, sum);
            }
            None => files.others = true,
        }
    }
    // The sums by file have all opens together, whether they find a file or make one.
    let makers: HashMap<&str, i64> = clock
        .done()
        .filter(|(_, _, doing)| doing.making_ns > 0)
        .map(|(comm, _, doing)| (comm, doing.making_ns))
        .collect();
    let mut parts: Vec<(Part, Files)> = clock
        .done()
        .filter(|(_, _, doing)| doing.spent.calls > 0)
        .map(|(comm, activity, doing)| {
            let mut files = files.remove(&(comm, activity)).unwrap_or_default();
            let making_ns = makers.get(comm).copied().unwrap_or(0);
            let mixed = match activity {
                Activity::Find => making_ns as f64 > doing.spent.ns as f64 * FEW,
                Activity::Change => making_ns > 0,
                _ => false,
            };
            if mixed {
                files = Files {
                    others: true,
                    ..Files::default()
                };
            }
            files.others |= times.coarse;
            let path = files.top().map(|(name, ..)| name.to_owned());
            let part = Part {
                comm: comm.to_owned(),
                activity,
                wall_ns: doing.covered.ns(),
                thread_ns: doing.spent.ns,
                waited_ns: Some(doing.spent.waited_ns).filter(|_| recorded.waits),
                calls: doing.spent.calls,
                bytes: doing.spent.bytes,
                files: files.sums.len() as i64,
                path,
            };
            (part, files)
        })
        .collect();
    let thread_ns = parts.iter().map(|(part, _)| part.thread_ns).sum();
    parts.sort_by_key(|(part, _)| std::cmp::Reverse((part.wall_ns, part.thread_ns)));
    let mut summary = Summary {
        sentences: Vec::new(),
        took_ns: recorded.took_ns,
        in_calls_ns: clock.all_ns().min(recorded.took_ns),
        asynchronous_ns: clock.asynchronous.ns(),
        thread_ns,
        parts: Vec::new(),
    };
    summary.sentences = sentences(&summary, &parts, clock.unknown_ns, state, recorded);
    let parts = parts.into_iter().map(|(part, _)| part);
    summary.parts = parts.filter(|part| part.wall_ns > 0).take(10).collect();
    summary
}

/// The name that a file had when the calls were made: a log has another one once it is rotated. One that was
/// temporary says less than the later one.
fn name_at_the_time<'a>(sum: &'a Claimable, file: Option<&'a FileState>) -> &'a str {
    let then = Some(&*sum.path).filter(|path| !path.is_empty() && !is_temporary(path));
    then.unwrap_or_else(|| file.map_or("(unnamed file)", FileState::name))
}

fn add(part: &mut Part, sum: &Claimable) {
    part.thread_ns = part.thread_ns.saturating_add(sum.own_ns);
    let waited = part.waited_ns.unwrap_or(0).saturating_add(sum.waited_ns);
    part.waited_ns = Some(waited);
    part.calls += sum.calls;
    part.bytes = part.bytes.saturating_add(sum.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Diagnosis;
    use crate::scenario::Scenario;

    fn text(diagnosis: &Diagnosis) -> String {
        diagnosis.summary.sentences.join(" ")
    }

    #[test]
    fn the_file_that_a_run_makes_durable_is_named_with_the_time() {
        let mut s = Scenario::new();
        let fd = s.open("/data/aof", "O_WRONLY|O_CREAT");
        for _ in 0..300 {
            s.write(fd, 100);
            s.fsync(fd);
        }
        let diagnosis = s.diagnose();
        let text = text(&diagnosis);
        let part = &diagnosis.summary.parts[0];
        assert_eq!(
            (part.activity, part.calls, part.path.as_deref()),
            (Activity::Sync, 300, Some("/data/aof"))
        );
        assert_eq!((part.wall_ns, part.thread_ns), (300_000_000, 300_000_000));
        assert!(diagnosis.summary.in_calls_ns <= diagnosis.summary.took_ns);
        assert!(
            text.starts_with("This run took 301 ms; for 300 ms (100 %) program made /data/aof durable, in 300 calls."),
            "{text}"
        );
        assert!(!text.contains("hold it up"), "{text}");
    }

    #[test]
    fn waits_for_many_files_are_told_with_or_without_a_finding() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let fd = s.open_existing(&format!("/src/{}/f{i}", i % 3), "O_RDONLY", 4096);
            s.missed(4096, 2_000_000);
            s.off_cpu(1_900_000);
            s.read(fd, 4096);
            s.close(fd);
        }
        let diagnosis = s.diagnose();
        let text = text(&diagnosis);
        assert!(
            text.contains(
                "program waited for the disk to read 30 files below /src (120 KiB in 30 calls)"
            ),
            "{text}"
        );
    }

    #[test]
    fn files_that_have_one_name_after_the_other_are_one() {
        let mut s = Scenario::new();
        let db = s.open("/data/x.db", "O_RDWR|O_CREAT");
        for _ in 0..50 {
            let fd = s.open("/data/x.db-journal", "O_RDWR|O_CREAT");
            s.write(fd, 512);
            s.fsync(fd);
            s.fsync(fd);
            s.close(fd);
            s.fsync(db);
            s.unlink("/data/x.db-journal");
            s.new_file("/data/x.db-journal");
        }
        let text = text(&s.diagnose());
        assert!(
            text.contains("made /data/x.db-journal and /data/x.db durable, in 150 calls"),
            "{text}"
        );
    }

    #[test]
    fn a_file_is_named_as_it_was_when_the_calls_were_made() {
        let mut s = Scenario::new();
        for i in 0..50 {
            s.new_file("/data/current");
            let fd = s.open("/data/current", "O_WRONLY|O_CREAT|O_APPEND");
            s.write(fd, 100);
            s.fsync(fd);
            s.close(fd);
            s.rename("/data/current", &format!("/data/@{i}"));
        }
        let text = text(&s.diagnose());
        assert!(
            text.contains("made /data/current durable, in 50 calls"),
            "{text}"
        );
        let mut s = Scenario::new();
        for i in 0..50 {
            let new = format!("/data/.state{i}");
            let fd = s.open(&new, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 100);
            s.fsync(fd);
            s.close(fd);
            s.rename(&new, "/data/state");
        }
        let text = self::text(&s.diagnose());
        assert!(
            text.contains("made /data/state durable, in 50 calls"),
            "{text}"
        );
    }

    #[test]
    fn opens_that_make_files_are_told_from_others() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let fd = s.open(&format!("/out/f{i}"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.close(fd);
            let fd = s.open_existing("/in/a", "O_RDONLY", 10);
            s.close(fd);
        }
        let diagnosis = s.diagnose();
        let calls = |of| {
            let mut parts = diagnosis.summary.parts.iter();
            let part = parts.find(|part| part.activity == of).unwrap();
            (part.calls, part.path.as_deref())
        };
        assert_eq!(calls(Activity::Change), (30, None));
        assert_eq!(calls(Activity::Find), (90, None));
    }

    #[test]
    fn a_healthy_program_is_said_to_be_healthy() {
        let healthy = || {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/a", "O_RDONLY", 1 << 20);
            for _ in 0..10 {
                s.read(fd, 4096);
                s.wait_ms(10);
            }
            s.close(fd);
            s
        };
        let all = text(&healthy().diagnose());
        assert!(
            all.starts_with("This run took 100 ms, <0.1 % of it"),
            "{all}"
        );
        assert!(all.ends_with("in storage calls and page faults: storage does not hold it up."));
        // Nothing is said of page faults that were not recorded.
        let mut s = healthy();
        s.no_layers();
        let calls = text(&s.diagnose());
        assert!(
            calls.ends_with("in storage calls: calls to storage do not hold it up."),
            "{calls}"
        );
    }

    #[test]
    fn page_faults_that_come_first_hide_no_calls() {
        let mut clock = Clock::default();
        for i in 0..5_000 {
            let fault = Fault {
                rid: i,
                ts_ns: i * 1_000_000,
                dur_ns: 100,
                pid: 1,
                tid: 1,
                comm: "a",
                access: "read",
                major: false,
                file: None,
                offset: 0,
                read_bytes: 0,
            };
            clock.fault(&fault, &State::default());
        }
        for i in 0..5_000 {
            clock.waited(i * 1_000_000 + 500, i * 1_000_000 + 500_000);
        }
        assert_eq!(clock.all_ns(), 5_000 * (100 + 499_500));
    }

    #[test]
    fn what_was_lost_is_not_judged() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/a", "O_RDONLY", 1 << 20);
        s.read(fd, 4096);
        s.wait_ms(10);
        s.close(fd);
        let mut engine = s.engine();
        engine.has_gaps();
        let text = text(&engine.diagnosis());
        assert!(
            !text.contains("hold it up") && text.contains("Some calls were lost"),
            "{text}"
        );
    }
}

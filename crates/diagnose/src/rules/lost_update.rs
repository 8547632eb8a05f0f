//! `lost-update`: a process writes over bytes of another process that it does not know of.

use std::collections::VecDeque;

use crate::prelude::*;
use crate::state::descriptors::Description;

/// Updates from which on it is no accident of a start or an end.
const MIN_UPDATES: u64 = 3;
/// Descriptions of one file that are followed at the same time.
const MAX_WRITERS: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "lost-update",
    name: "Updates of other processes overwritten",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Close, Read, Write, Seek, Truncate, Rename, Flock, Fcntl],
    about_calls: true,
    what: "Several processes change the same file, and one overwrites what another has just written \
           without having seen it. Records disappear, or a counter misses increments. No call \
           fails.",
    when: "3 or more times on a file that no recorded process locks (flock, fcntl), one of two \
           patterns. Either a process wrote at the position of its descriptor, which it had opened \
           and positioned before another process wrote to the same place through a descriptor of \
           its own. Or it read a file, another process emptied and wrote the file or replaced it by \
           rename, and then the first process emptied and wrote it, or replaced it, without reading \
           it again. If files are replaced, locks do not silence the rule, because the data that \
           was read stays old. O_APPEND does not count, nor do calls with explicit offsets \
           (pwrite), which databases coordinate in memory.",
    cost: "",
    advice: "Open a file to which several processes add records with O_APPEND: the kernel then \
           finds the end and writes in one step. To read, change, and rewrite a file, lock it \
           (flock) from before the read until after the write, and replace it by rename.",
    not_when: "Not when it does not matter which process wins, as in a status that each process \
           writes as a whole.",
    bad: "fd = open(\"log\", O_WRONLY | O_CREAT, 0644);   /* in each process */\nlseek(fd, 0, SEEK_END);\nfor (;;)\n    write(fd, record, n);",
    good: "fd = open(\"log\", O_WRONLY | O_CREAT | O_APPEND, 0644);\nfor (;;)\n    write(fd, record, n);",
    reference: "open(2), O_APPEND; write(2); flock(2); CWE-362",
};

/// A description by which a process writes at its position.
#[derive(Debug)]
struct Writer {
    /// The call that opened it, which nothing else has.
    opened: i64,
    pid: i32,
    /// Writes of other processes since its position was set, with the last of them.
    foreign: Intervals,
    last: Option<Example>,
}

/// The process that emptied and wrote a file.
#[derive(Debug)]
struct Save {
    pid: i32,
    /// Its first write is still to come; whether that makes a lost update.
    pending: bool,
    loses: bool,
    at_ns: i64,
    example: Option<Example>,
}

/// One file.
#[derive(Debug, Default)]
struct Shared {
    writers: Vec<Writer>,
    save: Option<Save>,
    locked: bool,
    overwrites: u64,
    bytes: i64,
    saves: u64,
    pid: i32,
    comm: Text,
    pids: Vec<i32>,
    examples: Examples,
}

impl Shared {
    fn updates(&self) -> u64 {
        self.overwrites + self.saves
    }

    fn lose(&mut self, call: &Call, other: Option<Example>) {
        if self.updates() == 0 {
            (self.pid, self.comm) = (call.pid, call.comm_text());
        }
        if let Some(other) = other.filter(|_| self.examples.list().len() + 1 < EXAMPLES) {
            self.examples.keep(other);
            self.examples.add_first(call);
        }
        if self.pids.len() < MAX_WRITERS && !self.pids.contains(&call.pid) {
            self.pids.push(call.pid);
        }
    }

    fn writes(&mut self, call: &Call, opened: i64, start: i64, end: i64) {
        let Some(own) = self.writers.iter().position(|writer| writer.opened == opened) else { return };
        let mut lost = None;
        if let Some(writer) = self.writers.get_mut(own) {
            let overlap = writer.foreign.overlap(start, end);
            if overlap > 0 && !writer.foreign.is_coarse() {
                lost = Some((overlap, writer.last.take()));
            }
            writer.foreign.clear();
            writer.pid = call.pid;
        }
        for writer in self.writers.iter_mut().filter(|w| w.opened != opened && w.pid != call.pid) {
            writer.foreign.insert(start, end);
            writer.last = Some(Example::of(call));
        }
        if let Some((bytes, other)) = lost {
            self.lose(call, other);
            self.overwrites += 1;
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// The first write after the file was emptied.
    fn saves(&mut self, call: &Call) {
        let Some(save) = self.save.as_mut().filter(|save| save.pid == call.pid) else { return };
        let lost = std::mem::take(&mut save.loses);
        save.pending = false;
        save.at_ns = call.ended_at_ns();
        let other = save.example.replace(Example::of(call));
        if lost {
            self.lose(call, other);
            self.saves += 1;
        }
    }
}

/// A name that files are renamed onto.
#[derive(Debug, Default)]
struct Name {
    path: Text,
    /// The file that has it, who put it there, and by which call.
    file: Option<(FileId, i32, Example)>,
    /// The files that had it before, the latest last.
    old: VecDeque<FileId>,
    lost: Shared,
}

/// Files that had a name before which are remembered.
const MAX_OLD: usize = 16;

rule! {
    pub struct LostUpdate {
        names: Bounded<u64, Name> = Bounded::new(|name| name.lost.updates()),
        files: Bounded<FileId, Shared>
            = Bounded::new(|file| file.updates() + file.writers.len() as u64),
        /// When a process last read a file.
        reads: Bounded<(i32, FileId), i64> = Bounded::new(|at_ns| at_ns.unsigned_abs()),
    }
}

impl LostUpdate {
    fn opens(&mut self, call: &Call, id: FileId) {
        if call.has_flag("O_TRUNC") {
            self.empties(call, id);
        }
        let writes = call.has_flag("O_WRONLY") || call.has_flag("O_RDWR");
        if !writes || call.has_flag("O_APPEND") {
            return;
        }
        let file = self.files.entry(id);
        if file.writers.len() >= MAX_WRITERS {
            file.writers.remove(0);
        }
        file.writers.push(Writer {
            opened: call.rid,
            pid: call.pid,
            foreign: Intervals::default(),
            last: None,
        });
    }

    /// Gives a name to another file; `old` had it.
    fn replaces(&mut self, call: &Call, to: &str, new: FileId, old: FileId) {
        let name = self.names.entry(key_of(to));
        if name.path.is_empty() {
            name.path = Text::from(to);
        }
        // Another process wrote this, and this process did not read it, although it had read an
        // earlier version.
        let other = name.file.as_ref().filter(|(file, pid, _)| *file == old && *pid != call.pid);
        let reads = &mut self.reads;
        let newest_unread = reads.get(&(call.pid, old)).is_none();
        let mut read_old = false;
        for file in name.old.iter().chain([&old]) {
            read_old |= reads.remove(&(call.pid, *file)).is_some();
        }
        if let Some((_, _, example)) = other.filter(|_| newest_unread && read_old) {
            let example = example.clone();
            name.lost.lose(call, Some(example));
            name.lost.saves += 1;
        }
        if name.old.len() >= MAX_OLD {
            name.old.pop_front();
        }
        name.old.push_back(old);
        name.file = Some((new, call.pid, Example::of(call)));
    }

    /// Sets the length to 0.
    fn empties(&mut self, call: &Call, id: FileId) {
        let read = self.reads.remove(&(call.pid, id));
        let file = self.files.entry(id);
        file.writers.iter_mut().for_each(|writer| writer.foreign.clear());
        let known = file.save.take();
        let before = known.filter(|save| !save.pending && save.pid != call.pid);
        let loses = before.as_ref().zip(read).is_some_and(|(save, read)| read < save.at_ns);
        file.save = Some(Save {
            pid: call.pid,
            pending: true,
            loses,
            at_ns: call.ended_at_ns(),
            example: before.and_then(|save| save.example),
        });
    }
}

impl Rule for LostUpdate {
    fn call(&mut self, call: &Call, context: &Context) {
        if call.kind == Kind::Rename {
            let files = &context.state.files;
            if let (true, Some(from), Some(to)) = (call.succeeded(), call.path, call.path2)
                && let (Some(new), Some(old)) = (files.at(from), files.at(to))
                && !call.has_flag("RENAME_EXCHANGE")
            {
                self.replaces(call, to, new, old);
            }
            return;
        }
        let Some(id) = call.file else { return };
        if call.takes_lock() || call.gives_up_lock() {
            self.files.entry(id).locked = true;
            return;
        }
        if !call.succeeded() || !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        let opened = context.open().and_then(|open| open.opened.as_ref()).map(|opened| opened.rid);
        let descriptors = context.open().map_or(0, |open: &Description| open.descriptors);
        match call.kind {
            Kind::Open => self.opens(call, id),
            Kind::Read => *self.reads.entry((call.pid, id)) = call.ended_at_ns(),
            Kind::Truncate => {
                let length = call.arg("length").and_then(|n| n.parse::<i64>().ok()).unwrap_or(0);
                if length == 0 {
                    self.empties(call, id);
                } else if let Some(file) = self.files.get_mut(&id) {
                    file.writers.iter_mut().for_each(|writer| writer.foreign.truncate(length));
                }
            }
            Kind::Write if !call.positional => {
                let Some(file) = self.files.get_mut(&id) else { return };
                file.saves(call);
                if let (Some(opened), Some((start, end))) = (opened, call.range()) {
                    file.writes(call, opened, start, end);
                }
            }
            Kind::Seek => {
                let Some(file) = self.files.get_mut(&id) else { return };
                let writers = file.writers.iter_mut();
                writers.filter(|w| Some(w.opened) == opened).for_each(|w| w.foreign.clear());
            }
            Kind::Close if descriptors == 1 => {
                let Some(file) = self.files.get_mut(&id) else { return };
                file.writers.retain(|writer| Some(writer.opened) != opened);
            }
            _ => {}
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let files = self.files.iter().filter(|(_, file)| !file.locked);
        let files = files.map(|(id, file)| (Some(*id), run.state.files.get(*id).map_or("", |f| f.name()), file));
        let names = self.names.iter().map(|(_, name)| (None, name.path.as_str(), &name.lost));
        for (id, path, file) in files.chain(names).filter(|(_, _, file)| file.updates() >= MIN_UPDATES) {
            let times = units::count(file.updates() as i64);
            let by_position = file.overwrites >= file.saves;
            let what = match by_position {
                true => format!("overwrites, {times} times, bytes of {path} that another process wrote after it had moved to this position"),
                false => format!("saves {path} {times} times without the changes that another process saved after it had read the file"),
            };
            let more = i64::try_from(file.pids.len().saturating_sub(1)).unwrap_or(0);
            let who = match more {
                0 => file.comm.to_string(),
                1 => format!("{} or another process", file.comm),
                n => format!("{} or one of {} other processes", file.comm, units::count(n)),
            };
            let bytes = match file.bytes {
                0 => String::new(),
                bytes => format!(": {} are lost", units::bytes(bytes)),
            };
            out.push(Found {
                severity: Some(if by_position { Severity::High } else { Severity::Medium }),
                title: format!("{who} {what}{bytes}"),
                subject: match id {
                    Some(id) => Subject::process(file.pid, &file.comm).with_file(id, path),
                    None => Subject::process(file.pid, &file.comm).with_path(path),
                },
                evidence: vec![
                    number("lost_writes", file.overwrites as i64),
                    number("bytes_overwritten", file.bytes),
                    number("lost_saves", file.saves as i64),
                    number("processes", more + 1),
                ],
                examples: file.examples.list(),
                query: sql::select(&match id {
                    Some(id) => format!(
                        "file_id = {} AND (call_writes(syscall) OR call_reads(syscall) OR syscall IN ('lseek', 'ftruncate', 'truncate', 'open', 'openat', 'creat'))",
                        id.0
                    ),
                    None => format!("path = {0} OR path2 = {0}", sql::quote(path)),
                }),
                // A lock may have been among what was not seen.
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::scenario::{Scenario, fires, silent};

    /// Two processes that add records by turns.
    fn two(flags: &str, mut before: impl FnMut(&mut Scenario, i32, i64)) -> Scenario {
        let mut s = Scenario::new();
        let first = s.open("/data/log", flags);
        s.process(200);
        let second = s.open("/data/log", flags);
        for i in 0..20 {
            s.process(100);
            before(&mut s, first, i * 200);
            s.write(first, 100);
            s.process(200);
            before(&mut s, second, i * 200 + 100);
            s.write(second, 100);
        }
        s
    }

    #[test]
    fn fires_on_two_that_write_by_their_own_positions() {
        let found = fires("lost-update", two("O_WRONLY|O_CREAT", |_, _, _| {}));
        assert_eq!((found.len(), found[0].severity), (1, Severity::High));
        assert_eq!(found[0].evidence[0].value, 20.0);
        assert_eq!(found[0].evidence[1].value, 2000.0);
        assert_eq!(
            found[0].title,
            "program overwrites, 20 times, bytes of /data/log that another process wrote after it had moved to this position: 1.95 KiB are lost"
        );
    }

    #[test]
    fn silent_when_each_finds_the_end_locks_or_has_a_place_of_its_own() {
        silent("lost-update", two("O_WRONLY|O_CREAT", |s, fd, end| s.lseek(fd, end)));
        silent("lost-update", two("O_WRONLY|O_CREAT", |s, fd, _| s.flock(fd, 1000)));
        silent("lost-update", two("O_WRONLY|O_CREAT|O_APPEND", |s, fd, end| s.lseek(fd, end)));
        let own = |s: &mut Scenario, fd: i32, end: i64| s.lseek(fd, end % 200 * 1000);
        silent("lost-update", two("O_WRONLY|O_CREAT", own));
    }

    #[test]
    fn silent_on_a_status_that_all_write_to_one_place() {
        silent("lost-update", two("O_WRONLY|O_CREAT", |s, fd, _| s.lseek(fd, 0)));
    }

    #[test]
    fn silent_on_offsets_that_calls_give() {
        let mut s = Scenario::new();
        let first = s.open("/data/table", "O_RDWR|O_CREAT");
        s.process(200);
        let second = s.open("/data/table", "O_RDWR|O_CREAT");
        for i in 0..20 {
            s.process(100);
            s.pread(first, 8192, i % 3 * 8192);
            s.process(200);
            s.pwrite(second, 8192, i % 3 * 8192);
            s.process(100);
            s.pwrite(first, 8192, i % 3 * 8192);
        }
        silent("lost-update", s);
    }

    #[test]
    fn silent_on_one_after_the_other_and_on_threads() {
        let mut s = Scenario::new();
        for pid in 1..20 {
            s.process(100 + pid);
            let fd = s.open("/data/out", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 1000);
            s.close(fd);
        }
        let fds: Vec<i32> = (0..2).map(|_| s.open("/data/own", "O_WRONLY|O_CREAT")).collect();
        for _ in 0..20 {
            fds.iter().for_each(|fd| s.write(*fd, 100));
        }
        silent("lost-update", s);
    }

    fn reads(s: &mut Scenario, pid: i32) {
        s.process(pid);
        let fd = s.open("/data/counter", "O_RDONLY");
        s.read(fd, 20);
        s.close(fd);
    }

    fn saves(s: &mut Scenario, pid: i32) {
        s.process(pid);
        let fd = s.open("/data/counter", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 20);
        s.close(fd);
    }

    #[test]
    fn fires_on_saves_of_what_was_read_before_another_one_saved() {
        let mut s = Scenario::new();
        for _ in 0..10 {
            reads(&mut s, 100);
            reads(&mut s, 200);
            saves(&mut s, 100);
            saves(&mut s, 200);
        }
        let found = fires("lost-update", s);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Medium));
        assert_eq!(found[0].evidence[2].value, 10.0);
    }

    #[test]
    fn fires_on_saves_by_copies_of_the_kernel() {
        let mut s = Scenario::new();
        for _ in 0..10 {
            reads(&mut s, 100);
            reads(&mut s, 200);
            for pid in [100, 200] {
                s.process(pid);
                let from = s.open_existing(&format!("/tmp/{pid}"), "O_RDONLY", 20);
                let fd = s.open("/data/counter", "O_WRONLY|O_CREAT|O_TRUNC");
                s.copy_range(from, fd, 20);
                s.close(fd);
                s.close(from);
            }
        }
        fires("lost-update", s);
    }

    #[test]
    fn fires_on_files_that_replace_one_that_was_not_read() {
        let replaces = |s: &mut Scenario, pid: i32, i: i32| {
            s.process(pid);
            let tmp = format!("/data/counter.{pid}.{i}");
            let fd = s.open(&tmp, "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 20);
            s.fsync(fd);
            s.close(fd);
            s.rename(&tmp, "/data/counter");
        };
        let run = |together: bool| {
            let mut s = Scenario::new();
            for i in 0..10 {
                reads(&mut s, 100);
                if together {
                    reads(&mut s, 200);
                }
                replaces(&mut s, 100, i);
                if !together {
                    reads(&mut s, 200);
                }
                replaces(&mut s, 200, i);
            }
            s
        };
        let found = fires("lost-update", run(true));
        assert_eq!((found.len(), found[0].evidence[2].value >= 9.0), (1, true));
        silent("lost-update", run(false));
    }

    #[test]
    fn silent_on_saves_by_turns_and_on_what_only_one_changes() {
        let mut s = Scenario::new();
        for i in 0..20 {
            reads(&mut s, 100 + i % 2);
            saves(&mut s, 100 + i % 2);
        }
        for _ in 0..20 {
            reads(&mut s, 300);
            saves(&mut s, 100);
        }
        silent("lost-update", s);
        let mut s = Scenario::new();
        for i in 0..20 {
            saves(&mut s, 100 + i % 2);
        }
        silent("lost-update", s);
    }
}

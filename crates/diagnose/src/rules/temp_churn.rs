//! `temp-churn`: files that are created, written, and removed without use by another program.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use crate::names::directory;
use crate::prelude::*;
use crate::text_key::key_of;

/// Files of a process in a directory from which on they count.
const MIN_FILES: u64 = 10;
/// Larger files, on average, cost their bytes rather than their making, bytes.
const MAX_MEAN: i64 = 1 << 20;
/// Writes of a file that had all of it in memory: the contents, and a header before or behind them.
const AT_ONCE: u64 = 2;

static INFO: RuleInfo = RuleInfo {
    id: "temp-churn",
    name: "Short-lived files",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Open, Read, Write, Sync, SyncRange, Msync, Truncate, Close, Unlink, Rename, Link, Mkdir, Rmdir],
    about_calls: true,
    what: "A process creates files, writes to them, and removes them, and no other process ever \
           opens them. Each costs a directory entry, an inode, and journal space; if it is made \
           durable it costs the device, too.",
    when: "One process, or several of one program, create, write, and remove 10 or more files in \
           one directory, each its own, that no other recorded process opens and that are 1 MiB or \
           less on average or written in one or two calls. Larger files are usually deliberate \
           spills, such as the runs of an external sort, and are ignored. A directory that the process makes and \
           removes with such files in it, before it makes another one there, counts with them, as a part of the directory above. Files without any write \
           count if each has a different name: one name that is created again and again is a lock. \
           A file that is synced, and removed only after its process has synced, renamed or removed \
           other files that stay or were there before, says what to repeat after a crash: it is ignored.",
    cost: "all calls on these files: open, write, sync, close, unlink; and calls that make, remove and close directories \
           made for them",
    advice: "Keep the data in memory or in a pipe, or give the program more memory (sort -S, samtools sort -m); reuse \
           one file (ftruncate); use memfd_create, or O_TMPFILE, which creates no directory \
           entry. At least put the files on tmpfs and omit fsync.",
    not_when: "Not when the data is larger than memory.",
    bad: "for (;;) {\n    int fd = open(name(), O_CREAT | O_EXCL | O_RDWR, 0600);\n    write(fd, data, n);\n    use(fd);\n    \
          close(fd);\n    unlink(name());\n}",
    good: "int fd = memfd_create(\"scratch\", 0);\nfor (;;) {\n    pwrite(fd, data, n, 0);\n    use(fd);\n    ftruncate(fd, 0);\n}",
    reference: "DIO, section IV-A: Elasticsearch's .es_temp_file",
};

/// A file that lives.
#[derive(Debug, Default)]
struct Life {
    pid: i32,
    comm: Text,
    time_ns: i64,
    written: i64,
    syncs: u64,
    writes: u64,
    descriptors: u64,
    /// Another process had it open too.
    shared: bool,
    /// Its name was removed before anything was written; the directory that had it.
    unnamed: Option<String>,
    /// Of its process at the last sync: [`TempChurn::changes`].
    changes_at_sync: Option<u64>,
}

/// Files of a process in a directory that are gone.
#[derive(Debug, Default)]
struct Churn {
    comm: Text,
    files: u64,
    bytes: i64,
    syncs: u64,
    time_ns: i64,
    writes: u64,
    /// Names of those in which nothing was written.
    empty: HashSet<u64>,
    examples: Examples,
}

/// A directory that a process has made.
#[derive(Clone, Copy, Debug)]
struct Made {
    dur_ns: i64,
    /// Its number among the directories made in the one above.
    number: u64,
}

impl Churn {
    fn add(&mut self, other: &Churn) {
        self.comm = other.comm.clone();
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.syncs += other.syncs;
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.writes += other.writes;
        self.examples.add_all(&other.examples);
    }
}

rule! {
    pub struct TempChurn {
        lives: Bounded<FileId, Life>,
        /// By process: syncs of files that are not short-lived, and their renames and removals.
        changes: HashMap<i32, u64>,
        churn: HashMap<(i32, String), Churn>,
        /// Directories that processes have made.
        made: Bounded<(i32, u64), Option<Made>>,
        /// How many a process has made in a directory.
        makes: Bounded<(i32, u64), u64> = Bounded::new(|makes| *makes),
        /// Directories made by a process that it has removed, and the directory that had each.
        removed: Bounded<FileId, Option<(i32, String)>>,
    }
}

/// Directories that are followed at the same time.
const MAX_DIRECTORIES: usize = 4096;
/// Processes whose changes of other files are counted.
const MAX_PROCESSES: usize = 4096;
/// Names of empty files that are tracked separately.
const MAX_EMPTY: usize = 1 << 16;

impl TempChurn {
    /// A process has synced, renamed or removed a file that is not short-lived.
    fn changed(&mut self, pid: i32) {
        if self.changes.len() < MAX_PROCESSES || self.changes.contains_key(&pid) {
            *self.changes.entry(pid).or_default() += 1;
        }
    }

    /// Whether a file was made durable so that changes of other files can be repeated after a crash.
    fn is_intent(&self, life: &Life) -> bool {
        let changes = self.changes.get(&life.pid).copied().unwrap_or(0);
        life.changes_at_sync.is_some_and(|at_sync| changes > at_sync)
    }

    /// A file was removed that no other program used.
    fn gone(&mut self, directory: &str, life: Life, call: &Call) {
        let key = (life.pid, directory.to_owned());
        if self.churn.len() >= MAX_DIRECTORIES && !self.churn.contains_key(&key) {
            self.churn.retain(|_, churn| churn.files >= MIN_FILES);
        }
        let churn = self.churn.entry(key).or_default();
        if life.written == 0 {
            let path = call.path_key().unwrap_or(0);
            if churn.empty.len() >= MAX_EMPTY || !churn.empty.insert(path) {
                return;
            }
        }
        churn.comm = life.comm;
        churn.files += 1;
        churn.bytes += life.written;
        churn.writes += life.writes;
        churn.syncs += life.syncs;
        churn.time_ns += life.time_ns + call.dur_ns;
        churn.examples.add(call);
    }
}

impl TempChurn {
    /// A process has removed a directory that it had made: its short-lived files are of the one above.
    fn removed_directory(&mut self, path: &str, call: &Call, context: &Context) {
        let made = call.path_key().and_then(|key| self.made.remove(&(call.pid, key))).flatten();
        let makes = self.makes.get(&(call.pid, key_of(directory(path)))).copied();
        // Where another one was made after it, it has stayed for a while, as checkpoints do.
        let Some(made) = made.filter(|made| makes == Some(made.number)) else { return };
        let key = (call.pid, path.to_owned());
        // A directory with nothing but empty files in it is a lock.
        if self.churn.get(&key).is_none_or(|churn| churn.bytes == 0) {
            return;
        }
        let Some(churn) = self.churn.remove(&key) else { return };
        let above = (call.pid, directory(path).to_owned());
        let all = self.churn.entry(above.clone()).or_default();
        all.add(&churn);
        all.time_ns = all.time_ns.saturating_add(made.dur_ns).saturating_add(call.dur_ns);
        if let Some(id) = context.state.files.at(path) {
            *self.removed.entry(id) = Some(above);
        }
    }
}

impl Rule for TempChurn {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        match call.kind {
            Kind::Mkdir => {
                if let (Some(key), Some(path)) = (call.path_key(), call.path) {
                    let makes = self.makes.entry((call.pid, key_of(directory(path))));
                    *makes += 1;
                    *self.made.entry((call.pid, key)) = Some(Made { dur_ns: call.dur_ns, number: *makes });
                }
            }
            // unlinkat removes directories, too.
            kind if kind == Kind::Rmdir || kind == Kind::Unlink && call.has_flag("AT_REMOVEDIR") => {
                if let Some(path) = call.path {
                    self.removed_directory(path, call, context);
                }
            }
            Kind::Unlink => {
                let Some(path) = call.path else { return };
                let life = context.state.files.at(path);
                let life = life.and_then(|id| Some((id, self.lives.remove(&id)?)));
                let own = life.filter(|(_, life)| !life.shared && life.pid == call.pid);
                let Some((id, mut life)) = own else {
                    self.changed(call.pid);
                    return;
                };
                if self.is_intent(&life) {
                    return;
                }
                if life.written > 0 || life.descriptors == 0 {
                    self.gone(directory(path), life, call);
                } else {
                    // tmpfile(3) removes the name first and writes then.
                    life.unnamed = Some(directory(path).to_owned());
                    life.time_ns += call.dur_ns;
                    *self.lives.entry(id) = life;
                }
            }
            Kind::Close => {
                let Some(id) = call.file else { return };
                let above = self.removed.get_mut(&id).and_then(Option::take);
                if let Some(churn) = above.and_then(|above| self.churn.get_mut(&above)) {
                    churn.time_ns = churn.time_ns.saturating_add(call.dur_ns);
                    churn.examples.add(call);
                }
                let Some(life) = self.lives.get_mut(&id) else { return };
                life.descriptors = life.descriptors.saturating_sub(1);
                if life.unnamed.is_none() || life.written == 0 || life.shared {
                    life.time_ns += call.dur_ns;
                } else if let Some(mut life) = self.lives.remove(&id)
                    && let Some(directory) = life.unnamed.take()
                {
                    self.gone(&directory, life, call);
                }
            }
            // Renamed, or under a second name: it was made to stay.
            Kind::Rename | Kind::Link => {
                if let Some(id) = call.path_key().and_then(|path| context.state.files.at_key(path))
                {
                    self.lives.remove(&id);
                }
                self.changed(call.pid);
            }
            Kind::Open => {
                let Some(id) = call.file else { return };
                if let Some(life) = self.lives.get_mut(&id) {
                    life.shared |= life.pid != call.pid;
                    life.descriptors += 1;
                    life.time_ns += call.dur_ns;
                } else if call.has_flag("O_CREAT")
                    && context.state.files.get(id).is_none_or(|f| f.read == 0 && f.written == 0)
                {
                    let life = self.lives.entry(id);
                    life.pid = call.pid;
                    life.comm = call.comm_text();
                    life.time_ns = call.dur_ns;
                    life.descriptors = 1;
                }
            }
            _ => {
                let synced = context.synced.is_some();
                let changes = self.changes.get(&call.pid).copied().unwrap_or(0);
                let life = call.file.and_then(|id| self.lives.get_mut(&id));
                if let Some(life) = life.filter(|life| life.pid == call.pid || !synced) {
                    life.time_ns += call.dur_ns;
                    life.syncs += u64::from(synced);
                    if synced {
                        life.changes_at_sync = Some(changes);
                    }
                    if call.kind == Kind::Write {
                        life.written += call.moved();
                        life.writes += 1;
                    }
                } else if synced && !context.file(call).is_some_and(|file| file.is_directory()) {
                    self.changed(call.pid);
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // Processes that a script starts make a few each.
        let mut few: BTreeMap<(&str, &str), (usize, Churn)> = BTreeMap::new();
        for ((pid, directory), churn) in &self.churn {
            if churn.files >= MIN_FILES {
                out.extend(found(run, Some(*pid), directory, churn));
                continue;
            }
            let (processes, all) = few.entry((&churn.comm, directory)).or_default();
            *processes += 1;
            all.add(churn);
        }
        for ((_, directory), (processes, churn)) in few {
            if processes > 1 && churn.files >= MIN_FILES {
                out.extend(found(run, None, directory, &churn));
            }
        }
    }
}

/// The activity of a process, or of several of one program, in a directory, if it is significant.
fn found(run: &Run, pid: Option<i32>, directory: &str, churn: &Churn) -> Option<Found> {
    let files = i64::try_from(churn.files).unwrap_or(i64::MAX).max(1);
    if churn.bytes / files > MAX_MEAN && churn.writes > churn.files * AT_ONCE || !run.matters(churn.time_ns) {
        return None;
    }
    let synced = match churn.syncs {
        0 => String::new(),
        n => format!("syncs them ({}), ", counted(n as i64, "sync", "syncs")),
    };
    let wrote = match churn.bytes {
        0 => String::new(),
        bytes => format!("writes {} to each, ", units::bytes(bytes / files)),
    };
    let comm = &churn.comm;
    let condition = pid.map_or_else(|| format!("comm = {}", sql::quote(comm)), |pid| format!("pid = {pid}"));
    Some(Found {
        cost_ns: Some(churn.time_ns),
        title: format!(
            "{comm} creates {} files in {directory}, {wrote}{synced}and removes them; no other process opens them",
            units::count(files),
        ),
        subject: Subject {
            pid,
            comm: (!comm.is_empty()).then(|| comm.to_string()),
            ..Subject::default()
        }
        .with_path(directory),
        evidence: vec![
            number("files", files),
            number("bytes", churn.bytes),
            number("syncs", churn.syncs as i64),
        ],
        examples: churn.examples.list(),
        query: calls!("{condition} AND syscall IN ('unlink', 'unlinkat') AND starts_with(path, {})", sql::quote(&format!("{}/", directory.trim_end_matches('/')))),
        rests_on_absence: true,
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// A mail server notes what it has delivered before it removes the message.
    #[test]
    fn silent_on_files_that_say_what_to_repeat_after_a_crash() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let message = format!("/spool/input/{i}-D");
            s.process(100);
            let fd = s.open(&message, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.process(200);
            let journal = format!("/spool/input/{i}-J");
            let fd = s.open(&journal, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 12);
            s.fsync(fd);
            s.close(fd);
            s.unlink(&message);
            s.unlink(&journal);
        }
        silent("temp-churn", s);
    }

    /// Each file has a directory of its own, which the process makes and removes, too.
    fn in_directories(make: bool, remove: fn(&mut Scenario, &str)) -> Scenario {
        let mut s = Scenario::new();
        for i in 0..30 {
            let (outer, inner) = (format!("/tmp/scan{i}"), format!("/tmp/scan{i}/mail"));
            if make {
                s.mkdir(&outer, None);
                s.mkdir(&inner, None);
            }
            let fd = s.open(&format!("{inner}/text"), "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.unlink(&format!("{inner}/text"));
            let fd = s.open_directory(&inner);
            remove(&mut s, &inner);
            s.slow(2_000_000);
            s.close(fd);
            s.slow(0);
            remove(&mut s, &outer);
        }
        s
    }

    #[test]
    fn fires_on_files_in_directories_of_their_own() {
        for remove in [Scenario::rmdir as fn(&mut Scenario, &str), Scenario::unlink_directory] {
            let found = fires("temp-churn", in_directories(true, remove));
            assert_eq!(found.len(), 1);
            assert!(found[0].title.contains("creates 30 files in /tmp, "), "{}", found[0].title);
            // With the closes of the directories that are gone.
            assert!(found[0].cost_ns.unwrap() >= 30 * 2_000_000);
        }
        // Those were there before.
        silent("temp-churn", in_directories(false, Scenario::rmdir));
    }

    /// The last two checkpoints stay, each in a directory of its own.
    #[test]
    fn silent_on_the_oldest_of_several_directories() {
        let mut s = Scenario::new();
        for i in 0..40 {
            let directory = format!("/data/step{i}");
            s.mkdir(&directory, None);
            for name in ["a", "b"] {
                let fd = s.open(&format!("{directory}/{name}"), "O_RDWR|O_CREAT|O_EXCL");
                s.write(fd, 100_000);
                s.close(fd);
            }
            if i >= 2 {
                let old = format!("/data/step{}", i - 2);
                s.unlink(&format!("{old}/a"));
                s.unlink(&format!("{old}/b"));
                s.rmdir(&old);
            }
        }
        silent("temp-churn", s);
    }

    /// A directory that is made and removed is a lock, and the file in it says whose.
    #[test]
    fn silent_on_directories_that_are_locks() {
        let mut s = Scenario::new();
        s.slow(100_000);
        for _ in 0..30 {
            s.mkdir("/spool/lock", None);
            let fd = s.open("/spool/lock/owner", "O_RDWR|O_CREAT");
            s.close(fd);
            s.unlink("/spool/lock/owner");
            s.rmdir("/spool/lock");
            s.new_file("/spool/lock/owner");
        }
        silent("temp-churn", s);
    }

    /// Syncs alone do not make a file one to keep.
    #[test]
    fn fires_on_files_that_are_synced_for_nobody() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let paths = [format!("/tmp/spool/{i}.a"), format!("/tmp/spool/{i}.b")];
            let fds = paths.each_ref().map(|path| s.open(path, "O_RDWR|O_CREAT|O_EXCL"));
            for fd in fds {
                s.write(fd, 5000);
                s.fsync(fd);
                s.close(fd);
            }
            for path in &paths {
                s.unlink(path);
            }
        }
        let found = fires("temp-churn", s);
        assert_eq!(found[0].evidence[0].value, 60.0);
    }

    #[test]
    fn fires_on_files_for_nobody() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/tmp/spool/{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.unlink(&path);
        }
        let found = fires("temp-churn", s);
        assert_eq!(found[0].evidence[0].value, 30.0);
    }

    #[test]
    fn fires_on_a_file_for_each_process() {
        let mut s = Scenario::new();
        for pid in 200..230 {
            s.process(pid);
            let path = format!("/tmp/spool/{pid}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.unlink(&path);
        }
        let found = fires("temp-churn", s);
        assert_eq!((found.len(), found[0].evidence[0].value), (1, 30.0));
    }

    #[test]
    fn fires_on_files_whose_names_go_first() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/tmp/spool/{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.unlink(&path);
            s.write(fd, 5000);
            s.close(fd);
        }
        fires("temp-churn", s);
    }

    #[test]
    fn fires_on_large_files_that_are_written_synchronously() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/tmp/spool/{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL|O_DSYNC");
            s.write(fd, 1 << 17);
            s.close(fd);
            s.unlink(&path);
        }
        let found = fires("temp-churn", s);
        assert_eq!(found[0].evidence[2].value, 30.0);
    }

    #[test]
    fn silent_on_files_that_memory_has_no_room_for() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/tmp/sort{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            (0..4).for_each(|_| s.write(fd, 1 << 20));
            s.fsync(fd);
            s.close(fd);
        }
        (0..30).for_each(|i| s.unlink(&format!("/tmp/sort{i}")));
        silent("temp-churn", s);
    }

    #[test]
    fn fires_on_large_files_that_memory_has_room_for() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/tmp/upload{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 4 << 20);
            s.close(fd);
            s.unlink(&path);
        }
        fires("temp-churn", s);
    }

    #[test]
    fn empty_files_count_unless_they_are_one_lock() {
        let run = |lock: bool| {
            let mut s = Scenario::new();
            for i in 0..200 {
                let path = if lock { "/jobs/lock".to_owned() } else { format!("/jobs/{i}.claim") };
                let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
                s.close(fd);
                s.unlink(&path);
                s.new_file(&path);
            }
            s
        };
        assert_eq!(fires("temp-churn", run(false))[0].evidence[0].value, 200.0);
        silent("temp-churn", run(true));
    }

    #[test]
    fn silent_when_another_process_reads_them_or_they_stay() {
        let mut s = Scenario::new();
        for i in 0..30 {
            let path = format!("/var/spool/{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.process(200);
            let fd = s.open_existing(&path, "O_RDONLY", 5000);
            s.read(fd, 5000);
            s.close(fd);
            s.process(100);
            s.unlink(&path);
            let fd = s.open(&format!("/var/out/{i}.tmp"), "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.rename(&format!("/var/out/{i}.tmp"), &format!("/var/out/{i}"));
            let fd = s.open(&format!("/var/mail/tmp/{i}"), "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.close(fd);
            s.link(&format!("/var/mail/tmp/{i}"), &format!("/var/mail/new/{i}"));
            s.unlink(&format!("/var/mail/tmp/{i}"));
        }
        silent("temp-churn", s);
    }
}

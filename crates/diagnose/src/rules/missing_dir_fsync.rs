//! `missing-dir-fsync`: a file is made durable, its name is not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::names::{directory, is_pid_or_lock};
use crate::prelude::*;
use crate::state::files::FileState;

/// Files that a process leaves to the kernel's write-back, from which on it says something of the
/// process.
const MIN_LEFT: u64 = 8;
/// Times that a process replaces a file from which on it is how it keeps something.
const MIN_REPLACED: u64 = 2;

static INFO: RuleInfo = RuleInfo {
    id: "missing-dir-fsync",
    name: "Directory never made durable",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Sync, SyncAll, Rename, Unlink, Link],
    about_calls: false,
    what: "A process makes a file durable and renames or creates it, so durability matters to it, \
           but it never makes the directory durable that contains the name. After a crash the bytes \
           can exist without a name, or the old name is still in place.",
    when: "A file was made durable with fsync or fdatasync and then renamed or linked, and no fsync \
           of the directory (and no sync or syncfs) followed until the end of the recording. On \
           ext4, xfs, btrfs, and overlay an fsync of the file after its rename also suffices, \
           because it makes the file's current names durable, and so does an fdatasync if the file \
           has grown since the rename. On other and unknown file systems the \
           name of a file that was created with O_EXCL and made durable counts as well, with low \
           severity. A rename onto a name that was in use counts from the second one of a process \
           on: before that, the old version serves as well after a crash, as for a file that each \
           run writes once. There is one finding per program. It does not count if the name was \
           removed again, nor for pid and lock files, nor for a log (a file opened to append to it) that is moved to a name that was free, nor on file systems in memory, nor for a \
           process that leaves most of the files that it creates, and eight or more, without any \
           sync.",
    cost: "",
    advice: "Open the directory (O_RDONLY | O_DIRECTORY) and call fsync on it after creating or \
           renaming.",
    not_when: "Not when the old version serves as well after a crash.",
    bad: "fsync(fd);\nrename(\"state.tmp\", \"state\");",
    good: "fsync(fd);\nrename(\"state.tmp\", \"state\");\nint dir = open(\".\", O_RDONLY | O_DIRECTORY);\nfsync(dir);",
    reference: "fsync(2), NOTES; ALICE, OSDI 2014",
};

/// How a file came by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Create,
    Link,
    Rename,
}

/// A name that is not durable, of a file that is.
#[derive(Debug, Default)]
struct Name {
    path: String,
    /// Number of the latest call that made it need its directory.
    since: u64,
    pid: i32,
    comm: Text,
    /// Times that a durable file took it.
    renames: u64,
    links: u64,
    /// Whether there was a file of that name before.
    replaces: bool,
    /// Whether its file system is known to keep names of files that are synced after they took them.
    known: bool,
    /// Length of the file as it took the name.
    size: Option<i64>,
    example: Option<Example>,
}

rule! {
    pub struct MissingDirFsync {
        /// Names that wait for their directory.
        waiting: Bounded<u64, Name> = Bounded::new(|name| name.since),
        /// Of files that have such a name, the last one.
        latest: Bounded<FileId, u64>,
        /// Directories that were made durable: number of the call.
        synced: Bounded<u64, u64> = Bounded::new(|call| *call),
        /// Files that were created here and not made durable yet, with their path.
        fresh: Bounded<FileId, Option<Text>>,
        /// Files that a process made to write to them.
        made: Bounded<FileId, i32>,
        /// Times that a process gave a durable file a name that was in use.
        replaced: Bounded<i32, u64> = Bounded::new(|times| *times),
        calls: u64,
    }
}

impl MissingDirFsync {
    fn wait(&mut self, call: &Call, file: (FileId, &FileState), path: &str, by: By) {
        let synced = self.synced.get(&key_of(directory(path))).copied();
        let name = self.waiting.entry(key_of(path));
        if synced.is_some_and(|call| call > name.since) {
            (name.renames, name.links) = (0, 0);
        }
        if name.path.is_empty() {
            name.path = path.to_owned();
        }
        (name.since, name.pid, name.comm) = (self.calls, call.pid, call.comm_text());
        name.renames += u64::from(by == By::Rename);
        name.links += u64::from(by == By::Link);
        name.known = file.1.fsync_keeps_names();
        name.size = file.1.size;
        name.example = Some(Example::of(call));
        *self.latest.entry(file.0) = key_of(path);
    }

    fn opened(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some(path)) = (call.file, call.path) else { return };
        if !call.has_flag("O_CREAT") || is_pid_or_lock(path) {
            return;
        }
        let file = context.file(call);
        if file.is_some_and(|f| f.is_volatile()) {
            return;
        }
        // A file opened for appending is a log, which exists before and after.
        if !call.has_flag("O_APPEND") {
            *self.made.entry(id) = call.pid;
        }
        if call.has_flag("O_EXCL") && !file.is_some_and(|f| f.fsync_keeps_names()) {
            *self.fresh.entry(id) = Some(call.path_text());
        }
    }

    fn file_synced(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some(file)) = (call.file, context.file(call)) else { return };
        if file.is_directory() {
            if let Some(path) = call.path {
                *self.synced.entry(key_of(path)) = self.calls;
            }
            return;
        }
        // fdatasync leaves out what reading the bytes does not need: of a file that has grown since then it
        // does need the inode, and with it the names go to the journal.
        let whole = call.syscall == "fsync" || call.syscall.ends_with("_FSYNC") && !call.has_flag("IORING_FSYNC_DATASYNC");
        let named = self.latest.get(&id).and_then(|name| self.waiting.get(name));
        let grown = named.is_some_and(|name| name.size.zip(file.size).is_some_and(|(then, now)| now > then));
        if (whole || grown)
            && file.fsync_keeps_names()
            && let Some(name) = self.latest.remove(&id)
        {
            self.waiting.remove(&name);
        }
        if let Some(path) = self.fresh.remove(&id).flatten() {
            self.wait(call, (id, file), &path, By::Create);
        }
    }

    /// Processes that leave most of the files that they make to the kernel's write-back.
    fn careless(&self, run: &Run) -> HashSet<i32> {
        let mut files: HashMap<i32, (u64, u64)> = HashMap::new();
        for (id, pid) in self.made.iter() {
            let file = run.state.files.get(*id);
            let Some(file) = file.filter(|f| f.written > 0 && !f.unlinked) else { continue };
            let (synced, left) = files.entry(*pid).or_default();
            *(if file.was_synced() { synced } else { left }) += 1;
        }
        let careless = files.into_iter().filter(|(_, (synced, left))| *left >= MIN_LEFT && left > synced);
        careless.map(|(pid, _)| pid).collect()
    }
}

impl Rule for MissingDirFsync {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        self.calls += 1;
        match call.kind {
            Kind::SyncAll => {
                let Self { waiting, latest, fresh, .. } = Self::default();
                (self.waiting, self.latest, self.fresh) = (waiting, latest, fresh);
            }
            Kind::Open => self.opened(call, context),
            Kind::Unlink => {
                let Some(path) = call.path else { return };
                if let Some(id) = context.state.files.at(path) {
                    self.fresh.remove(&id);
                }
                // Its name is not meant to last.
                self.waiting.remove(&key_of(path));
            }
            Kind::Sync => self.file_synced(call, context),
            Kind::Link | Kind::Rename => {
                let (Some(from), Some(to)) = (call.path, call.path2) else { return };
                let by = if call.kind == Kind::Link { By::Link } else { By::Rename };
                if by == By::Rename {
                    self.waiting.remove(&key_of(from));
                }
                let Some(id) = context.state.files.at(from) else { return };
                if let Some(path) = self.fresh.get_mut(&id).filter(|_| by == By::Rename) {
                    *path = Some(to.into());
                }
                let Some(file) = context.state.files.get(id) else { return };
                let durable = file.last_sync.is_some() && file.dirty.is_empty();
                if durable && file.is_regular() && !file.is_volatile() && !is_pid_or_lock(to) {
                    let replaces = context.state.files.at(to).is_some();
                    // With its old name it is there as well.
                    if by == By::Rename && !replaces && file.appended {
                        return;
                    }
                    self.wait(call, (id, file), to, by);
                    self.waiting.entry(key_of(to)).replaces = replaces;
                    *self.replaced.entry(call.pid) += u64::from(replaces);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let careless = self.careless(run);
        let mut programs: BTreeMap<&str, Vec<&Name>> = BTreeMap::new();
        for (_, name) in self.waiting.iter() {
            let synced = self.synced.get(&key_of(directory(&name.path)));
            if name.replaces && self.replaced.get(&name.pid).is_none_or(|times| *times < MIN_REPLACED) {
                continue;
            }
            if !careless.contains(&name.pid) && synced.is_none_or(|call| *call <= name.since) {
                programs.entry(&name.comm).or_default().push(name);
            }
        }
        for (comm, mut names) in programs {
            names.sort_by_key(|name| name.since);
            let Some(first) = names.first() else { continue };
            let directories: BTreeSet<&str> = names.iter().map(|name| directory(&name.path)).collect();
            let renamed = names.iter().map(|name| name.renames as i64).sum::<i64>();
            let linked = names.iter().map(|name| name.links as i64).sum::<i64>();
            let created = names.iter().filter(|name| name.renames + name.links == 0).count() as i64;
            let sorts = [
                (created, "new file", "new files"),
                (renamed, "renamed file", "renamed files"),
                (linked, "linked file", "linked files"),
            ];
            let sorts: Vec<String> =
                sorts.iter().filter(|(n, ..)| *n > 0).map(|(n, one, more)| counted(*n, one, more)).collect();
            let them = if created + renamed + linked == 1 { "it" } else { "them" };
            let calls = "syscall LIKE '%rename%' OR syscall IN ('link', 'linkat') OR syscall LIKE '%sync%'";
            let (place, never, subject, condition) = match directories.first() {
                Some(path) if directories.len() == 1 => (
                    (*path).to_owned(),
                    "the directory that names",
                    Subject::process(first.pid, comm).with_path(path),
                    format!(
                        "starts_with(coalesce(path2, path), {}) AND ({calls} OR flags LIKE '%O_CREAT%')",
                        sql::quote(&format!("{}/", path.trim_end_matches('/')))
                    ),
                ),
                _ => (
                    format!("{} directories", units::count(directories.len() as i64)),
                    "the directories that name",
                    Subject::process(first.pid, comm),
                    format!("comm = {} AND ({calls})", sql::quote(comm)),
                ),
            };
            // Of other file systems it is not known what they keep.
            let sure = names.iter().any(|name| name.known && name.renames + name.links > 0);
            out.push(Found {
                severity: Some(if sure { Severity::Medium } else { Severity::Low }),
                title: format!("{comm} makes {} in {place} durable, but not {never} {them}", list(&sorts)),
                subject,
                evidence: vec![
                    number("created", created),
                    number("renamed", renamed),
                    number("linked", linked),
                    number("directories", directories.len() as i64),
                ],
                examples: names.iter().filter_map(|name| name.example.clone()).take(EXAMPLES).collect(),
                query: sql::select(&condition),
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

    fn save(s: &mut Scenario) {
        let fd = s.open("/data/state.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        s.fsync(fd);
        s.close(fd);
        s.rename("/data/state.tmp", "/data/state");
    }

    #[test]
    fn fires_on_rename_after_sync() {
        let mut s = Scenario::new();
        save(&mut s);
        let found = fires("missing-dir-fsync", s);
        assert_eq!(found[0].severity, Severity::Medium);
        assert_eq!(
            found[0].title,
            "program makes 1 renamed file in /data durable, but not the directory that names it"
        );
    }

    #[test]
    fn silent_on_a_log_that_is_appended_to_and_synced_after_its_rename() {
        let run = |grows: bool| {
            let mut s = Scenario::new();
            s.fs_type("ext4");
            let fd = s.open("/data/log.new", "O_RDWR|O_CREAT|O_TRUNC");
            s.write(fd, 3000);
            s.fdatasync(fd);
            s.rename("/data/log.new", "/data/log");
            if grows {
                s.write(fd, 200);
            } else {
                s.pwrite(fd, 200, 0);
            }
            s.fdatasync(fd);
            s
        };
        silent("missing-dir-fsync", run(true));
        fires("missing-dir-fsync", run(false));
    }

    #[test]
    fn silent_on_a_log_that_is_moved_away() {
        let rotated = |flags: &str| {
            let mut s = Scenario::new();
            for i in 0..5 {
                let fd = s.open("/data/current", flags);
                s.write(fd, 3000);
                s.fsync(fd);
                s.close(fd);
                s.rename("/data/current", &format!("/data/{i}"));
            }
            s
        };
        silent("missing-dir-fsync", rotated("O_WRONLY|O_CREAT|O_APPEND"));
        fires("missing-dir-fsync", rotated("O_WRONLY|O_CREAT|O_TRUNC"));
    }

    /// A new file that is durable.
    fn make(s: &mut Scenario, path: &str) {
        let fd = s.open(path, "O_RDWR|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.fsync(fd);
        s.close(fd);
    }

    #[test]
    fn silent_on_new_files_where_fsync_keeps_their_names() {
        for fs_type in ["ext4", "xfs", "btrfs", "overlay"] {
            let mut s = Scenario::new();
            s.fs_type(fs_type);
            for i in 0..6 {
                make(&mut s, &format!("/data/base/1638{i}"));
            }
            silent("missing-dir-fsync", s);
        }
    }

    #[test]
    fn low_on_new_files_elsewhere() {
        for fs_type in ["exfat", ""] {
            let mut s = Scenario::new();
            s.fs_type(fs_type);
            make(&mut s, "/stick/a");
            s.fs_type("exfat");
            save(&mut s);
            let found = fires("missing-dir-fsync", s);
            assert_eq!((found.len(), found[0].severity), (1, Severity::Low));
            assert_eq!(
                found[0].title,
                "program makes 1 new file and 1 renamed file in 2 directories durable, but not the directories that name them"
            );
        }
    }

    #[test]
    fn an_fsync_after_the_rename_keeps_the_name() {
        for (sync, fs_type, there) in [("fsync", "ext4", true), ("fdatasync", "ext4", false), ("fsync", "exfat", false)] {
            let mut s = Scenario::new();
            s.fs_type(fs_type);
            let fd = s.open("/data/state.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 3000);
            s.fsync(fd);
            s.rename("/data/state.tmp", "/data/state");
            match sync {
                "fsync" => s.fsync(fd),
                _ => s.fdatasync(fd),
            }
            if there {
                silent("missing-dir-fsync", s);
            } else {
                fires("missing-dir-fsync", s);
            }
        }
    }

    #[test]
    fn silent_when_everything_was_synced() {
        let mut s = Scenario::new();
        save(&mut s);
        s.sync();
        silent("missing-dir-fsync", s);
        let mut s = Scenario::new();
        s.fs_type("exfat");
        let fd = s.open("/data/a", "O_RDWR|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.sync();
        s.fsync(fd);
        silent("missing-dir-fsync", s);
    }

    #[test]
    fn one_finding_for_all_directories_of_a_program() {
        let mut s = Scenario::new();
        for i in 0..5 {
            let tmp = format!("/site/{i}.dist-info/tmp");
            make(&mut s, &tmp);
            s.rename(&tmp, &format!("/site/{i}.dist-info/RECORD"));
        }
        let found = fires("missing-dir-fsync", s);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].evidence[3].value, 5.0);
        assert_eq!(found[0].subject.path, None);
    }

    #[test]
    fn silent_for_a_process_that_leaves_most_files_unsynced() {
        let install = |others: usize| {
            let mut s = Scenario::new();
            for i in 0..others {
                let fd = s.open(&format!("/site/{i}.py"), "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 3000);
                s.close(fd);
            }
            make(&mut s, "/site/tmp");
            s.rename("/site/tmp", "/site/RECORD");
            s
        };
        silent("missing-dir-fsync", install(40));
        // Too few to say what the process is about.
        fires("missing-dir-fsync", install(3));
    }

    #[test]
    fn a_file_that_is_replaced_once_is_as_good_as_the_old_one() {
        let saves = |times: usize| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/state", "O_RDONLY", 3000);
            s.close(fd);
            for _ in 0..times {
                save(&mut s);
            }
            s
        };
        silent("missing-dir-fsync", saves(1));
        fires("missing-dir-fsync", saves(2));
    }

    #[test]
    fn silent_with_a_synced_directory() {
        let mut s = Scenario::new();
        let dir = s.open_directory("/data");
        for _ in 0..3 {
            save(&mut s);
            s.fsync(dir);
        }
        silent("missing-dir-fsync", s);
    }

    #[test]
    fn silent_when_nothing_is_made_durable() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out.tmp", "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.close(fd);
        s.rename("/data/out.tmp", "/data/out");
        silent("missing-dir-fsync", s);
    }

    #[test]
    fn silent_on_names_that_do_not_last() {
        let mut s = Scenario::new();
        s.fs_type("exfat");
        for i in 0..20 {
            let path = format!("/data/db-journal{i}");
            let fd = s.open(&path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 3000);
            s.fsync(fd);
            s.close(fd);
            s.unlink(&path);
        }
        let fd = s.open("/run/daemon.pid", "O_RDWR|O_CREAT|O_EXCL");
        s.write(fd, 5);
        s.fsync(fd);
        silent("missing-dir-fsync", s);
    }

    #[test]
    fn counts_what_is_left_and_speaks_of_one_as_one() {
        let mut s = Scenario::new();
        s.fs_type("exfat");
        for path in ["/data/a", "/data/b"] {
            make(&mut s, path);
        }
        s.unlink("/data/a");
        let found = fires("missing-dir-fsync", s);
        assert!(
            found[0].title.contains("makes 1 new file in /data durable, but not the directory that names it"),
            "{}",
            found[0].title
        );
    }

    #[test]
    fn a_link_is_a_new_name() {
        let mut s = Scenario::new();
        make(&mut s, "/data/tmp_object");
        s.link("/data/tmp_object", "/data/4f/object");
        s.unlink("/data/tmp_object");
        let found = fires("missing-dir-fsync", s);
        assert_eq!(found[0].subject.path.as_deref(), Some("/data/4f"));
        assert_eq!(found[0].evidence[2].value, 1.0);
    }

    #[test]
    fn counts_from_the_last_sync_of_the_directory_on() {
        let mut s = Scenario::new();
        let dir = s.open_directory("/data");
        for _ in 0..3 {
            save(&mut s);
        }
        s.fsync(dir);
        save(&mut s);
        let found = fires("missing-dir-fsync", s);
        assert_eq!(found[0].evidence[1].value, 1.0);
    }
}

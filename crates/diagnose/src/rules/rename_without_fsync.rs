//! `rename-without-fsync`: a file takes a live name before its bytes are durable.

use std::collections::BTreeMap;

use crate::names::{directory, is_pid_or_lock, is_rebuilt};
use crate::prelude::*;
use crate::state::files::FileState;

static INFO: RuleInfo = RuleInfo {
    id: "rename-without-fsync",
    name: "Renamed before it was durable",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Stat, Access, Rename, Link, Unlink, Sync, SyncAll, Msync],
    about_calls: false,
    what: "A process writes a new version of a file under another name and renames it onto the old \
           one, without fsync in between. After a crash the name can refer to an empty or \
           half-written file, and the old version is gone: file systems may make the rename durable \
           before the data.",
    when: "A rename onto a name that was in use (opened, looked up, or renamed onto before in the \
           recording), of a file with bytes that a recorded process wrote and that no fsync, \
           fdatasync, sync, syncfs, O_SYNC, or msync made durable. A link or a rename to a name that the same \
           process removed before, or whose file it moved away before and removes later, is such a rename in two steps, and counts from the second one on, unless the file is a log (opened \
           to append to it). Silent on file systems in \
           memory, and for files that can be made again: names with `cache` or `thumbnail`, files \
           below `target` or `incremental`, dep-graph.bin, pg_internal.init. The risk depends on \
           the file system: ext4 (auto_da_alloc) and btrfs write the data of a file early if a \
           rename replaces another with it, which makes the loss rare there, but neither guarantees \
           it. Severity is low for a program that makes nothing durable at all: it may accept the \
           loss of its files. Files that such a program moves from another directory count from the \
           second time on: once may be the result of a build.",
    cost: "",
    advice: "Call fsync on the new file before rename, and on the directory after it.",
    not_when: "Not when the file can be made again (caches, build results).",
    bad: "fd = open(\"state.tmp\", O_CREAT | O_WRONLY | O_TRUNC, 0644);\nwrite(fd, data, n);\nclose(fd);\n\
          rename(\"state.tmp\", \"state\");",
    good: "fd = open(\"state.tmp\", O_CREAT | O_WRONLY | O_TRUNC, 0644);\nwrite(fd, data, n);\nfsync(fd);\nclose(fd);\n\
           rename(\"state.tmp\", \"state\");\nfsync(dirfd);",
    reference: "Pillai et al.: All File Systems Are Not Created Equal (ALICE), OSDI 2014; ext4(5), auto_da_alloc",
};

/// One name that files were renamed onto.
#[derive(Debug, Default)]
struct Target {
    pid: i32,
    comm: Text,
    path: String,
    renames: u64,
    /// Of which the process removed the name and linked the file to it.
    links: u64,
    /// Of which it removed the name.
    removed: u64,
    dirty: i64,
    fs_type: Text,
    /// Renames from another directory.
    moved: u64,
    examples: Examples,
}

/// Files that a program that makes nothing durable moves from another directory.
const MIN_MOVED: u64 = 2;
/// Files whose names a program has removed before: one may be what is left of a run before.
const MIN_REMOVED: u64 = 2;
/// Calls that a finding shows.
const EXAMPLES: usize = 3;

rule! {
    pub struct RenameWithoutFsync {
        targets: Bounded<u64, Target> = Bounded::new(|target| target.renames),
        /// Paths that were in use, and since when.
        live: Bounded<u64, i64>,
        /// Paths in use that a process removed, and which.
        removed: Bounded<u64, i32>,
        /// Names in use from which a process moved the file away: which process, and where to.
        aside: Bounded<u64, (i32, u64)>,
        /// New files that took such names before they were durable, by where the old ones are: which process, and the name.
        risky: Bounded<u64, (i32, String)>,
        /// Processes that made something durable.
        syncing: Bounded<i32, bool>,
        /// The same by the names of their threads.
        syncing_names: Bounded<u64, bool>,
    }
}

/// Whether a file has bytes that a crash could lose.
fn is_at_risk(file: &FileState) -> bool {
    file.is_regular() && !file.is_volatile() && !file.dirty.is_empty()
}

impl RenameWithoutFsync {
    /// A file that is not durable has taken a name in use.
    fn target(&mut self, to: &str, file: &FileState, call: &Call) -> &mut Target {
        let target = self.targets.entry(key_of(to));
        if target.renames == 0 {
            target.pid = call.pid;
            target.comm = call.comm_text();
            target.path = to.to_owned();
            target.fs_type = file.fs_type.clone();
        }
        target.renames += 1;
        target.dirty = target.dirty.max(file.dirty.len());
        target.examples.add_first(call);
        target
    }

    /// The old file that had the name `to` is removed.
    fn gone(&mut self, to: &str, call: &Call, context: &Context) {
        let files = &context.state.files;
        if let Some(file) = files.at(to).and_then(|id| files.get(id)).filter(|file| is_at_risk(file)) {
            self.target(to, file, call).removed += 1;
        }
    }

    fn lives(&mut self, key: u64, call: &Call) {
        let since = self.live.entry(key);
        if *since == 0 {
            *since = call.ended_at_ns();
        }
    }
}

impl Rule for RenameWithoutFsync {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        if matches!(call.kind, Kind::Sync | Kind::SyncAll | Kind::Msync) {
            *self.syncing.entry(call.pid) = true;
            *self.syncing_names.entry(key_of(call.comm)) = true;
            return;
        }
        let Some(path) = call.path else { return };
        match call.kind {
            Kind::Rename | Kind::Link => {}
            Kind::Unlink => {
                let key = key_of(path);
                if self.live.remove(&key).is_some() {
                    *self.removed.entry(key) = call.pid;
                }
                if let Some((_, to)) = self.risky.remove(&key).filter(|(pid, _)| *pid == call.pid) {
                    self.gone(&to, call, context);
                }
                return;
            }
            _ => {
                self.lives(key_of(path), call);
                return;
            }
        }
        let Some(to) = call.path2.filter(|_| !call.has_flag("RENAME_NOREPLACE")) else { return };
        let key = key_of(to);
        let removed = self.removed.get(&key) == Some(&call.pid) && !is_pid_or_lock(to);
        // A process that waits for a new name can find it before the rename returns.
        let was_live = match call.kind {
            // A lock is linked whenever it is taken.
            Kind::Link => removed,
            _ => removed || self.live.get(&key).is_some_and(|since| *since <= call.ts_ns),
        };
        self.removed.remove(&key);
        self.lives(key, call);
        if call.kind == Kind::Rename {
            let from = key_of(path);
            if self.live.remove(&from).is_some() {
                *self.aside.entry(from) = (call.pid, key);
            }
        }
        // A file that has no name yet is linked by its descriptor.
        let id = context.state.files.at(path).or(call.file);
        let Some(file) = id.and_then(|id| context.state.files.get(id)) else { return };
        // A log that takes the name of an older one is not a new version of it.
        let rotated = removed && file.appended;
        if rotated || !is_at_risk(file) || is_rebuilt(to) {
            return;
        }
        if !was_live {
            // The old file is still there, under another name.
            let old = self.aside.remove(&key).filter(|(pid, _)| *pid == call.pid && !file.appended);
            if let Some((_, old)) = old {
                *self.risky.entry(old) = (call.pid, to.to_owned());
            }
            return;
        }
        let target = self.target(to, file, call);
        target.links += u64::from(call.kind == Kind::Link);
        target.removed += u64::from(removed);
        target.moved += u64::from(directory(path) != directory(to));
    }

    fn findings(&self, _: &Run, out: &mut Vec<Found>) {
        // A program that saves so does it everywhere: one finding for all its names,
        // in whatever processes it runs.
        let mut programs: BTreeMap<(&str, &str), Vec<&Target>> = BTreeMap::new();
        for (_, target) in self.targets.iter().filter(|(_, target)| target.renames > 0) {
            let key = (target.comm.as_str(), target.fs_type.as_str());
            programs.entry(key).or_default().push(target);
        }
        for ((comm, fs_type), mut targets) in programs {
            targets.sort_by_key(|t| (std::cmp::Reverse(t.renames), &t.path));
            let Some(first) = targets.first() else { continue };
            let shielded = matches!(fs_type, "ext4" | "btrfs");
            let syncs = self.syncing_names.get(&key_of(comm)).is_some()
                || targets.iter().any(|t| self.syncing.get(&t.pid).is_some());
            let renames: u64 = targets.iter().map(|t| t.renames).sum();
            let moved: u64 = targets.iter().map(|t| t.moved).sum();
            let links: u64 = targets.iter().map(|t| t.links).sum();
            let removed: u64 = targets.iter().map(|t| t.removed).sum();
            // Only a rename onto a name has its data written early.
            let shielded = shielded && removed == 0;
            let once = renames == removed && removed < MIN_REMOVED;
            if once || !syncs && renames == moved && moved < MIN_MOVED {
                continue;
            }
            let dirty = targets.iter().map(|t| t.dirty).max().unwrap_or(0);
            let others = match targets.len() - 1 {
                0 => String::new(),
                1 => " and 1 other name".to_owned(),
                n => format!(" and {} other names", units::count(n as i64)),
            };
            out.push(Found {
                severity: Some(match (syncs, shielded) {
                    (false, _) => Severity::Low,
                    (true, true) => Severity::Medium,
                    (true, false) => Severity::High,
                }),
                title: format!(
                    "{comm} {} {} onto {}{others}: at that time up to {} of the data {} not durable",
                    if links == renames { "unlinks and links" } else { "renames" },
                    match renames as i64 {
                        1 => "a file".to_owned(),
                        n => format!("files {}", times(n)),
                    },
                    first.path,
                    units::bytes(dirty),
                    if dirty == 1 { "was" } else { "were" },
                ),
                subject: Subject::process(first.pid, comm).with_path(&first.path),
                evidence: vec![
                    number("renames", renames as i64),
                    number("names", targets.len() as i64),
                    number("unsynced_bytes", dirty),
                ],
                examples: targets.iter().flat_map(|t| t.examples.list()).take(EXAMPLES).collect(),
                query: calls!("comm = {} AND (syscall LIKE '%rename%' OR syscall LIKE '%sync%')", sql::quote(comm)),
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

    fn save(s: &mut Scenario, sync: bool) {
        let fd = s.open("/data/state.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        if sync {
            s.fsync(fd);
        }
        s.close(fd);
        s.rename("/data/state.tmp", "/data/state");
    }

    #[test]
    fn a_name_that_was_removed_before_is_replaced_in_two_steps() {
        let in_two_steps = |by: i32| {
            let mut s = Scenario::new();
            for _ in 0..2 {
                s.stat("/data/state");
                s.process(by);
                s.unlink("/data/state");
                s.process(100);
                save(&mut s, false);
            }
            s
        };
        // A log of which the oldest one is removed.
        let mut s = Scenario::new();
        for _ in 0..5 {
            s.stat("/data/log.1");
            s.unlink("/data/log.1");
            let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
            s.write(fd, 3000);
            s.close(fd);
            s.rename("/data/log", "/data/log.1");
        }
        silent("rename-without-fsync", s);
        assert_eq!(fires("rename-without-fsync", in_two_steps(100))[0].evidence[0].value, 2.0);
        silent("rename-without-fsync", in_two_steps(200));
    }

    #[test]
    fn fires_when_saved_twice_without_sync() {
        let mut s = Scenario::new();
        save(&mut s, false);
        save(&mut s, false);
        let found = fires("rename-without-fsync", s);
        assert_eq!(found[0].evidence[0].value, 1.0);
        assert_eq!(found[0].evidence[2].value, 3000.0);
        assert_eq!(
            found[0].title,
            "program renames a file onto /data/state: at that time up to 2.93 KiB of the data were not durable"
        );
    }

    #[test]
    fn a_name_that_is_removed_and_linked_again_is_replaced() {
        let save = |s: &mut Scenario, sync: bool| {
            let fd = s.open("/data/new", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 3000);
            if sync {
                s.fsync(fd);
            }
            s.close(fd);
            s.unlink("/data/state");
            s.link("/data/new", "/data/state");
            s.unlink("/data/new");
        };
        let run = |sync| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/state", "O_RDONLY", 3000);
            s.close(fd);
            save(&mut s, sync);
            save(&mut s, sync);
            s
        };
        let found = fires("rename-without-fsync", run(false));
        assert!(found[0].title.contains("unlinks and links files 2 times onto /data/state"), "{}", found[0].title);
        silent("rename-without-fsync", run(true));
        // A name that another process removed was not replaced by this one.
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/state", "O_RDONLY", 3000);
        s.close(fd);
        let fd = s.open("/data/new", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        s.close(fd);
        s.process(200);
        s.unlink("/data/state");
        s.process(100);
        s.link("/data/new", "/data/state");
        silent("rename-without-fsync", s);
    }

    #[test]
    fn the_old_file_may_be_moved_away_and_removed_later() {
        let saves = |sync: bool, by: Option<i32>| {
            let mut s = Scenario::new();
            for i in 0..3 {
                let (form, old, new) = (format!("/data/{i}"), format!("/data/{i}.orig"), format!("/data/{i}.new"));
                let fd = s.open_existing(&form, "O_RDONLY", 3000);
                s.close(fd);
                let fd = s.open(&new, "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 3000);
                if sync {
                    s.fsync(fd);
                }
                s.close(fd);
                s.rename(&form, &old);
                s.rename(&new, &form);
                if let Some(by) = by {
                    s.process(by);
                    s.unlink(&old);
                    s.process(100);
                }
            }
            s
        };
        let found = fires("rename-without-fsync", saves(false, Some(100)));
        assert_eq!((found.len(), found[0].evidence[0].value), (1, 3.0));
        silent("rename-without-fsync", saves(true, Some(100)));
        // A backup remains.
        silent("rename-without-fsync", saves(false, None));
        silent("rename-without-fsync", saves(false, Some(200)));
    }

    #[test]
    fn silent_with_sync_or_onto_a_new_name() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/state", "O_RDONLY", 3000);
        s.close(fd);
        save(&mut s, true);
        save(&mut s, true);
        let fd = s.open("/data/log.1.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 3000);
        s.rename("/data/log.1.tmp", "/data/log.1");
        silent("rename-without-fsync", s);
    }

    #[test]
    fn low_for_a_program_that_syncs_nothing() {
        let severity = |syncs: bool, fs_type| {
            let mut s = Scenario::new();
            s.fs_type(fs_type);
            if syncs {
                let fd = s.open("/data/journal", "O_WRONLY|O_CREAT");
                s.fsync(fd);
            }
            save(&mut s, false);
            save(&mut s, false);
            fires("rename-without-fsync", s)[0].severity
        };
        assert_eq!(severity(false, "xfs"), Severity::Low);
        assert_eq!(severity(true, "xfs"), Severity::High);
        assert_eq!(severity(true, "ext4"), Severity::Medium);
    }

    #[test]
    fn silent_on_one_result_that_is_moved_into_place() {
        let build = |times: usize, from: &str| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/src/hello", "O_RDONLY", 3000);
            s.close(fd);
            for _ in 0..times {
                let fd = s.open(from, "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 3000);
                s.close(fd);
                s.rename(from, "/src/hello");
            }
            s
        };
        silent("rename-without-fsync", build(1, "/work/b001/a.out"));
        fires("rename-without-fsync", build(2, "/work/b001/a.out"));
        fires("rename-without-fsync", build(1, "/src/hello.new"));
    }

    #[test]
    fn silent_on_what_can_be_made_again() {
        let mut s = Scenario::new();
        let journal = s.open("/data/pg_wal/1", "O_WRONLY|O_CREAT");
        for _ in 0..3 {
            for path in ["/data/base/5/pg_internal.init", "/home/me/.cache/thumbnails/1.png"] {
                let fd = s.open("/data/tmp.1", "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 3000);
                s.close(fd);
                s.rename("/data/tmp.1", path);
            }
            s.fsync(journal);
        }
        silent("rename-without-fsync", s);
    }

    #[test]
    fn silent_in_memory() {
        let mut s = Scenario::new();
        s.fs_type("tmpfs");
        save(&mut s, false);
        save(&mut s, false);
        silent("rename-without-fsync", s);
    }

    #[test]
    fn a_new_name_may_be_found_before_the_rename_returns() {
        let saves = |found_before: bool| {
            let mut s = Scenario::new();
            for i in 0..40 {
                let (from, to) = (format!("/data/{i}.tmp"), format!("/data/{i}"));
                let fd = s.open(&from, "O_WRONLY|O_CREAT|O_EXCL");
                s.write(fd, 3000);
                s.close(fd);
                let began = s.now();
                s.process(200);
                s.stat(&to);
                s.process(100);
                if !found_before {
                    s.back_to(began - 1_000);
                    s.slow(100_000);
                }
                s.rename(&from, &to);
                s.slow(0);
            }
            s
        };
        fires("rename-without-fsync", saves(true));
        silent("rename-without-fsync", saves(false));
    }
}

//! `dir-unsynced`: a file is made durable, its name is not.

use std::collections::BTreeMap;

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{EXAMPLES, Example, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::names::{directory, is_pid_or_lock};
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text_key::key_of;
use crate::text::Text;

static INFO: RuleInfo = RuleInfo {
    id: "dir-unsynced",
    name: "Directory never made durable",
    group: Group::Correctness,
    needs: &[Input::Calls],
    about_calls: false,
    what: "A process makes a file durable after it has created or renamed it, so it cares, but never the directory that \
           holds the name. After a crash the bytes can be there without a name that leads to them, or the old name \
           is still in place.",
    when: "A file that a recorded process created with O_EXCL, or renamed, and made durable with fsync or fdatasync, where no \
           fsync of the directory (and no sync or syncfs) followed until the end of the recording. Not when the name was removed again by then, nor for pid and lock files, nor on file systems in memory. \
           ext4, xfs and btrfs make the name of a new file durable with its fsync in most cases, but not that of a renamed \
           one; POSIX promises neither.",
    lost: "",
    advice: "Open the directory (O_RDONLY | O_DIRECTORY) and call fsync on it after creating or renaming.",
    not_when: "",
    bad: "fsync(fd);\nrename(\"state.tmp\", \"state\");",
    good: "fsync(fd);\nrename(\"state.tmp\", \"state\");\nint dir = open(\".\", O_RDONLY | O_DIRECTORY);\nfsync(dir);",
    reference: "fsync(2), NOTES; ALICE, OSDI 2014",
};

/// A name that is not durable, of a file that is.
#[derive(Debug, Default)]
struct Name {
    path: String,
    /// Number of the latest call that made it need its directory.
    since: u64,
    pid: i32,
    comm: Text,
    /// Times that a durable file took it; 0 when a file was created with it.
    renames: u64,
    example: Option<Example>,
}

/// What of one directory is not durable.
#[derive(Debug)]
struct Directory<'a> {
    first: &'a Name,
    created: u64,
    renamed: u64,
    examples: Vec<(u64, &'a Example)>,
}

/// The rule's state.
#[derive(Debug)]
pub struct DirUnsynced {
    /// Names that wait for their directory.
    waiting: Bounded<u64, Name>,
    /// Directories that were made durable: number of the call.
    synced: Bounded<u64, u64>,
    /// Files that were created here and not made durable yet, with their path.
    fresh: Bounded<FileId, Option<Text>>,
    /// Calls so far.
    calls: u64,
}

impl Default for DirUnsynced {
    fn default() -> Self {
        Self {
            waiting: Bounded::new(|name| name.since),
            synced: Bounded::new(|call| *call),
            fresh: Bounded::new(|_| 0),
            calls: 0,
        }
    }
}

impl DirUnsynced {
    fn wait(&mut self, call: &Call, path: &str) -> &mut Name {
        let synced = self.synced.get(&key_of(directory(path))).copied();
        let name = self.waiting.entry(key_of(path));
        if synced.is_some_and(|call| call > name.since) {
            name.renames = 0;
        }
        if name.path.is_empty() {
            name.path = path.to_owned();
        }
        (name.since, name.pid, name.comm) = (self.calls, call.pid, call.comm_text());
        name.example = Some(Example::of(call));
        name
    }
}

impl Rule for DirUnsynced {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Open, Kind::Sync, Kind::SyncAll, Kind::Rename, Kind::Unlink, Kind::Link])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        self.calls += 1;
        match call.kind {
            Kind::SyncAll => {
                self.waiting = Self::default().waiting;
            }
            Kind::Open => {
                let created = call.has_flag("O_CREAT") && call.has_flag("O_EXCL");
                if let (true, Some(id), Some(path)) = (created, call.file, call.path)
                    && !is_pid_or_lock(path)
                {
                    *self.fresh.entry(id) = Some(call.path_text());
                }
            }
            Kind::Unlink => {
                let Some(path) = call.path else { return };
                if let Some(id) = context.state.files.at(path) {
                    self.fresh.remove(&id);
                }
                // Its name is not meant to last.
                self.waiting.remove(&key_of(path));
            }
            Kind::Sync => {
                let Some(file) = context.file(call) else { return };
                if file.is_directory() {
                    if let Some(path) = call.path {
                        *self.synced.entry(key_of(path)) = self.calls;
                    }
                } else if let Some(path) = call.file.and_then(|id| self.fresh.remove(&id)).flatten()
                    && !file.is_volatile()
                {
                    self.wait(call, &path);
                }
            }
            // One more name: the first one may be removed then.
            Kind::Link => {
                let (Some(from), Some(to)) = (call.path, call.path2) else { return };
                if self.waiting.get(&key_of(from)).is_some() {
                    self.wait(call, to);
                }
            }
            Kind::Rename => {
                let (Some(from), Some(to)) = (call.path, call.path2) else { return };
                self.waiting.remove(&key_of(from));
                let id = context.state.files.at(from);
                let Some(file) = id.and_then(|id| context.state.files.get(id)) else { return };
                let durable = file.last_sync.is_some() && file.dirty.is_empty();
                if durable && file.is_regular() && !file.is_volatile() && !is_pid_or_lock(to) {
                    self.wait(call, to).renames += 1;
                }
            }
            _ => {}
        }
    }

    fn findings(&self, _: &Run, out: &mut Vec<Found>) {
        let mut directories: BTreeMap<&str, Directory> = BTreeMap::new();
        for (_, name) in self.waiting.iter() {
            let path = directory(&name.path);
            let synced = self.synced.get(&key_of(path));
            if synced.is_some_and(|call| *call > name.since) {
                continue;
            }
            let of = directories.entry(path).or_insert(Directory {
                first: name,
                created: 0,
                renamed: 0,
                examples: Vec::new(),
            });
            if name.since < of.first.since {
                of.first = name;
            }
            of.created += u64::from(name.renames == 0);
            of.renamed += name.renames;
            of.examples.extend(name.example.as_ref().map(|example| (name.since, example)));
        }
        for (path, mut of) in directories {
            let (created, renamed) = (of.created as i64, of.renamed as i64);
            let what = match (created, renamed) {
                (0, n) => format!("{} renamed", units::count(n)),
                (n, 0) => format!("{} new", units::count(n)),
                (n, m) => format!("{} new and {} renamed", units::count(n), units::count(m)),
            };
            let files = if created + renamed == 1 { "file" } else { "files" };
            let them = if created + renamed == 1 { "it" } else { "them" };
            let Name { pid, comm, .. } = of.first;
            of.examples.sort_by_key(|(since, _)| *since);
            out.push(Found {
                // The names of new files survive on the usual file systems.
                severity: Some(if renamed > 0 { Severity::Medium } else { Severity::Low }),
                title: format!("{comm} makes {what} {files} in {path} durable, but not the directory that names {them}"),
                subject: Subject::process(*pid, comm).with_path(path),
                evidence: vec![number("created", created), number("renamed", renamed)],
                examples: of.examples.into_iter().take(EXAMPLES).map(|(_, e)| e.clone()).collect(),
                query: sql::calls(&format!(
                    "starts_with(coalesce(path2, path), {}) AND (syscall LIKE '%rename%' OR syscall LIKE '%sync%' OR flags LIKE '%O_CREAT%')",
                    sql::quote(&format!("{}/", path.trim_end_matches('/')))
                )),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
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
        fires("dir-unsynced", s);
    }

    #[test]
    fn silent_with_a_synced_directory() {
        let mut s = Scenario::new();
        let dir = s.open_directory("/data");
        for _ in 0..3 {
            save(&mut s);
            s.fsync(dir);
        }
        silent("dir-unsynced", s);
    }

    #[test]
    fn silent_when_nothing_is_made_durable() {
        let mut s = Scenario::new();
        let fd = s.open("/data/out.tmp", "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.close(fd);
        s.rename("/data/out.tmp", "/data/out");
        silent("dir-unsynced", s);
    }

    #[test]
    fn silent_on_names_that_do_not_last() {
        let mut s = Scenario::new();
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
        silent("dir-unsynced", s);
    }

    #[test]
    fn counts_what_is_left_and_speaks_of_one_as_one() {
        let mut s = Scenario::new();
        for path in ["/data/a", "/data/b"] {
            let fd = s.open(path, "O_RDWR|O_CREAT|O_EXCL");
            s.write(fd, 3000);
            s.fsync(fd);
            s.close(fd);
        }
        s.unlink("/data/a");
        let found = fires("dir-unsynced", s);
        assert!(
            found[0].title.contains("makes 1 new file in /data durable, but not the directory that names it"),
            "{}",
            found[0].title
        );
    }

    #[test]
    fn a_link_is_a_new_name() {
        let mut s = Scenario::new();
        let fd = s.open("/data/tmp_object", "O_RDWR|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        s.fsync(fd);
        s.close(fd);
        s.link("/data/tmp_object", "/data/4f/object");
        s.unlink("/data/tmp_object");
        let found = fires("dir-unsynced", s);
        assert_eq!(found[0].subject.path.as_deref(), Some("/data/4f"));
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
        let found = fires("dir-unsynced", s);
        assert_eq!(found[0].evidence[1].value, 1.0);
    }
}

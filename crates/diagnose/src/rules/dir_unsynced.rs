//! `dir-unsynced`: a file is made durable, its name is not.

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::finding::{Examples, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::names::directory;
use crate::rule::{Found, Input, Rule, RuleInfo, Run, number};
use crate::sql;
use crate::state::Context;
use crate::text_key::TextKey;
use crate::text::Text;

static INFO: RuleInfo = RuleInfo {
    id: "dir-unsynced",
    name: "Directory never made durable",
    group: Group::Correctness,
    needs: &[Input::Calls],
    what: "A process makes a file durable after it has created or renamed it, so it cares, but never the directory that \
           holds the name. After a crash the bytes can be there without a name that leads to them, or the old name \
           is still in place.",
    when: "A file that a recorded process created with O_EXCL, or renamed, and made durable with fsync or fdatasync, where no \
           fsync of the directory (and no sync or syncfs) followed until the end of the recording. Not on file systems in memory. \
           ext4, xfs and btrfs make the name of a new file durable with its fsync in most cases, but not that of a renamed \
           one; POSIX promises neither.",
    lost: "",
    advice: "Open the directory (O_RDONLY | O_DIRECTORY) and call fsync on it after creating or renaming.",
    not_when: "",
    bad: "fsync(fd);\nrename(\"state.tmp\", \"state\");",
    good: "fsync(fd);\nrename(\"state.tmp\", \"state\");\nint dir = open(\".\", O_RDONLY | O_DIRECTORY);\nfsync(dir);",
    reference: "fsync(2), NOTES; ALICE, OSDI 2014",
};

/// A directory with names that are not durable.
#[derive(Debug, Default)]
struct Directory {
    pid: i32,
    comm: Text,
    path: String,
    created: u64,
    renamed: u64,
    examples: Examples,
}

/// The rule's state.
#[derive(Debug)]
pub struct DirUnsynced {
    /// Directories in which something is waiting.
    waiting: Bounded<u64, Directory>,
    /// Files that were created here and not made durable yet, with their path.
    fresh: Bounded<FileId, Option<Text>>,
    key: TextKey,
}

impl Default for DirUnsynced {
    fn default() -> Self {
        Self {
            waiting: Bounded::new(|directory| directory.created + directory.renamed),
            fresh: Bounded::new(|_| 0),
            key: TextKey::default(),
        }
    }
}

impl DirUnsynced {
    fn wait(&mut self, call: &Call, path: &str) -> &mut Directory {
        let directory = directory(path);
        let waiting = self.waiting.entry(self.key.of(directory));
        if waiting.path.is_empty() {
            waiting.path = directory.to_owned();
            waiting.pid = call.pid;
            waiting.comm = call.comm_text();
        }
        waiting.examples.add(call);
        waiting
    }
}

impl Rule for DirUnsynced {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Open, Kind::Sync, Kind::SyncAll, Kind::Rename, Kind::Unlink])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        match call.kind {
            Kind::SyncAll => {
                self.waiting = Self::default().waiting;
            }
            Kind::Open => {
                let created = call.has_flag("O_CREAT") && call.has_flag("O_EXCL");
                if let (true, Some(id), Some(_)) = (created, call.file, call.path) {
                    *self.fresh.entry(id) = Some(call.path_text());
                }
            }
            Kind::Unlink => {
                if let Some(id) = call.path.and_then(|path| context.state.files.at(path)) {
                    self.fresh.remove(&id);
                }
            }
            Kind::Sync => {
                let Some(file) = context.file(call) else { return };
                if file.is_directory() {
                    if let Some(path) = call.path {
                        self.waiting.remove(&self.key.of(path));
                    }
                } else if let Some(path) = call.file.and_then(|id| self.fresh.remove(&id)).flatten()
                    && !file.is_volatile()
                {
                    self.wait(call, &path).created += 1;
                }
            }
            Kind::Rename => {
                let (Some(from), Some(to)) = (call.path, call.path2) else { return };
                let id = context.state.files.at(from);
                let Some(file) = id.and_then(|id| context.state.files.get(id)) else { return };
                let durable = file.last_sync.is_some() && file.dirty.is_empty();
                if durable && file.is_regular() && !file.is_volatile() {
                    self.wait(call, to).renamed += 1;
                }
            }
            _ => {}
        }
    }

    fn findings(&self, _: &Run, out: &mut Vec<Found>) {
        for (_, waiting) in self.waiting.iter().filter(|(_, w)| w.created + w.renamed > 0) {
            let (created, renamed) = (waiting.created as i64, waiting.renamed as i64);
            let what = match (created, renamed) {
                (0, n) => format!("{} renamed", units::count(n)),
                (n, 0) => format!("{} new", units::count(n)),
                (n, m) => format!("{} new and {} renamed", units::count(n), units::count(m)),
            };
            out.push(Found {
                // The names of new files survive on the usual file systems.
                severity: Some(if renamed > 0 { Severity::Medium } else { Severity::Low }),
                title: format!(
                    "{} makes {what} files in {} durable, but not the directory that names them",
                    waiting.comm, waiting.path,
                ),
                subject: Subject::process(waiting.pid, &waiting.comm).with_path(&waiting.path),
                evidence: vec![number("created", created), number("renamed", renamed)],
                examples: waiting.examples.list(),
                query: sql::calls(&format!(
                    "starts_with(coalesce(path2, path), {}) AND (syscall LIKE '%rename%' OR syscall LIKE '%sync%' OR flags LIKE '%O_CREAT%')",
                    sql::quote(&format!("{}/", waiting.path.trim_end_matches('/')))
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
}

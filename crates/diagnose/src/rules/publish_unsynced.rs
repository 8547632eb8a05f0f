//! `publish-unsynced`: files take the name by which others find them before their bytes are durable.

use std::collections::{BTreeMap, BTreeSet};

use self::originals::{Originals, is_kept};
use crate::names::{directory, file_name, is_temporary};
use crate::prelude::*;

mod originals;

/// Files from which on it is how a program works.
const MIN_FILES: usize = 8;
/// The same in one directory for a program that makes other files durable.
const MIN_OF_CAREFUL: usize = 3;
/// Times that a directory was made durable with such files in it.
const MIN_ROUNDS: u64 = 3;
/// Files of a directory that wait for it.
const MAX_WAITING: usize = 1024;
/// Number of times that an entry next to a new directory was made durable with such files in the
/// directory.
const MIN_POINTED: u64 = 2;
/// Directories that a title names.
const MAX_NAMED: usize = 2;

static INFO: RuleInfo = RuleInfo {
    id: "publish-unsynced",
    name: "Published before it was durable",
    group: Group::Correctness,
    needs: &[Input::Calls],
    kinds: kinds![Open, Close, Stat, Access, Rename, Link, Unlink, Mkdir, Sync, SyncAll, Msync],
    about_calls: false,
    what: "A process writes files under temporary names or in a separate directory, and then \
           renames or links each to a new name, so that other programs see only complete files; but \
           it never makes them durable. After a crash the new name can refer to an empty file that \
           others take for a complete one. ext4 and btrfs write the data early if a rename replaces \
           a file; they do not for a new name. In one variant, the process makes the directory \
           with the new files durable, and often a list of them, but not the files. In another, it writes \
           files into a new directory, such as a checkpoint, and then makes the file durable that \
           says which directory is the latest. In a third, it packs, unpacks, or moves files and removes each \
           original as soon as the new file is written: after a crash both can be gone.",
    when: "8 or more files of a program (3 or more in one directory if it makes other files \
           durable) that one process created, wrote, and renamed or linked from another directory \
           to an unused name, where nothing (fsync, fdatasync, sync, syncfs, O_SYNC, msync) made \
           them durable until the end of the recording and nothing removed them. Or, for a program \
           that makes other files durable, 3 or more times a process made a directory durable with \
           fsync that contained files created, written, and closed since the last time, and created \
           or removed no other name there (as a journal would): it makes their names durable before \
           their data. Or a process closed such files in a directory that it created itself, and \
           then renamed a file next to that directory that it had made durable, or made the \
           directory that contains both durable: twice or more, or once if it renames the new \
           directory itself. Or a program removed 8 or more files that were durable and that it had opened to read, \
           read nine tenths of each (or wrote as much), and created another with the same name plus or minus a \
           suffix that begins with a dot, or with this name elsewhere, which nothing had made durable until the end. Files renamed within the same directory, from a temporary name or one \
           that contains the new name, count only for a program that makes other files durable: \
           most programs that save this way without any sync leave files that can be made again. \
           Silent for names of such files (`cache`, `thumbnail`, `target`, `incremental`), pid and \
           lock files, logs (O_APPEND), and file systems in memory.",
    cost: "",
    advice: "Call fsync on each file before it gets its new name, and on the directory after it; \
           one syncfs before a batch of renames costs less.",
    not_when: "Not when the files can be made or fetched again, and incomplete ones are detected.",
    bad: "fd = open(\"tmp/17\", O_CREAT | O_EXCL | O_WRONLY, 0644);\nwrite(fd, message, n);\nclose(fd);\nrename(\"tmp/17\", \"new/17\");",
    good: "fd = open(\"tmp/17\", O_CREAT | O_EXCL | O_WRONLY, 0644);\nwrite(fd, message, n);\nfsync(fd);\nclose(fd);\n\
           rename(\"tmp/17\", \"new/17\");\nfsync(new_dir);",
    reference: "Maildir's delivery (maildir(5)); ext4(5), auto_da_alloc; ALICE, OSDI 2014",
};

/// A file that has got the name by which others find it.
#[derive(Debug, Default)]
struct Published {
    pid: i32,
    comm: Text,
    path: Text,
    /// From another directory.
    moved: bool,
    /// Whether its name was made durable, or what stands for it.
    listed: bool,
    /// The directory in which something stands for its own, as a number.
    above: Option<u64>,
    unsynced: i64,
    example: Option<Example>,
}

/// A file that is being made.
#[derive(Debug, Default)]
struct Made {
    pid: i32,
    path: Text,
}

/// Files of a process in a directory that it has closed since it made the directory durable.
#[derive(Debug, Default)]
struct Waiting {
    files: Vec<FileId>,
    /// Other names that it made or removed there since then.
    others: u64,
    /// Times that it made it durable with such files in it.
    rounds: u64,
}

rule! {
    pub struct PublishUnsynced {
        made: Bounded<FileId, Made>,
        /// By process and directory.
        waiting: Bounded<(i32, u64), Waiting> = Bounded::new(|waiting| waiting.rounds),
        /// Directories that a process made.
        trees: Bounded<(i32, u64), bool>,
        /// By process and directory: files in new directories that are in it, at whatever depth.
        inside: Bounded<(i32, u64), Waiting> = Bounded::new(|waiting| waiting.rounds),
        published: Bounded<FileId, Published>,
        originals: Originals,
        /// Programs that make files durable, by the names of their threads.
        syncing: Bounded<u64, bool>,
        /// Paths that were in use.
        live: Bounded<u64, bool>,
    }
}

impl PublishUnsynced {
    fn publishes(&mut self, call: &Call, context: &Context) {
        let (Some(from), Some(to), Some(key)) = (call.path, call.path2, call.path2_key()) else { return };
        let was_live = std::mem::replace(self.live.entry(key), true);
        let id = context.state.files.at(from).or(call.file);
        if call.kind == Kind::Rename && let Some(key) = call.path_key() {
            self.live.remove(&key);
        }
        let Some((id, file)) = id.and_then(|id| Some((id, context.state.files.get(id)?))) else { return };
        let own = self.made.get(&id).is_some_and(|made| made.pid == call.pid);
        let moved = directory(from) != directory(to);
        let named = moved || is_temporary(from) && !is_temporary(to) || is_variant(from, to);
        if was_live || !own || !named || !is_kept(file, to) || file.dirty.is_empty() {
            return;
        }
        *self.published.entry(id) = Published {
            pid: call.pid,
            comm: call.comm_text(),
            path: to.into(),
            moved,
            listed: false,
            above: None,
            unsynced: file.dirty.len(),
            example: Some(Example::of(call)),
        };
    }

    fn closes(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file else { return };
        let Some(made) = self.made.get(&id).filter(|made| made.pid == call.pid) else { return };
        let Some(file) = context.state.files.get(id).filter(|file| !file.dirty.is_empty() && !file.unlinked) else { return };
        if !is_kept(file, &made.path) || is_temporary(&made.path) {
            return;
        }
        let place = directory(&made.path);
        let mut new = place;
        while new != "/" && self.trees.get(&(call.pid, key_of(new))).is_some() {
            new = directory(new);
            let inside = self.inside.entry((call.pid, key_of(new)));
            if inside.files.len() < MAX_WAITING && !inside.files.contains(&id) {
                inside.files.push(id);
            }
        }
        let waiting = self.waiting.entry((call.pid, key_of(place)));
        if waiting.files.len() < MAX_WAITING && !waiting.files.contains(&id) {
            waiting.files.push(id);
            waiting.others = waiting.others.saturating_sub(1);
        }
    }

    /// Something in this directory, by which others find the new directories in it, was made durable or renamed: `times` as good as once.
    fn points(&mut self, call: &Call, above: u64, times: u64, context: &Context) {
        let Some(inside) = self.inside.get_mut(&(call.pid, above)) else { return };
        let mut any = false;
        for id in inside.files.drain(..) {
            let (Some(file), Some(made)) = (context.state.files.get(id), self.made.get(&id)) else { continue };
            if file.unlinked || file.dirty.is_empty() {
                continue;
            }
            any = true;
            *self.published.entry(id) = Published {
                pid: call.pid,
                comm: call.comm_text(),
                path: made.path.clone(),
                moved: false,
                listed: true,
                above: Some(above),
                unsynced: file.dirty.len(),
                example: Some(Example::of(call)),
            };
        }
        inside.rounds += if any { times } else { 0 };
        // A program that makes the directory durable cares, even if only about names.
        if any && call.kind == Kind::Sync {
            *self.syncing.entry(key_of(call.comm)) = true;
        }
    }

    /// A rename, of what is durable or of a new directory itself.
    fn renames(&mut self, call: &Call, context: &Context) {
        let (Some(key), Some(from), Some(to)) = (call.path_key(), call.path, call.path2) else { return };
        if self.trees.get(&(call.pid, key)).is_some() {
            self.points(call, key_of(directory(from)), MIN_POINTED, context);
            return;
        }
        let file = context.state.files.at_key(key).or(call.file).and_then(|id| context.state.files.get(id));
        if file.is_some_and(|file| file.is_regular() && file.is_durable(call.ts_ns)) && directory(from) == directory(to) {
            self.points(call, key_of(directory(to)), 1, context);
        }
    }

    /// A process makes or removes a name.
    fn changes(&mut self, call: &Call, path: Option<&str>) {
        if let Some(path) = path {
            self.waiting.entry((call.pid, key_of(directory(path)))).others += 1;
        }
    }

    /// A directory was made durable, with the names in it.
    fn lists(&mut self, call: &Call, context: &Context) {
        let Some(key) = call.path_key() else { return };
        self.points(call, key, 1, context);
        let Some(waiting) = self.waiting.get_mut(&(call.pid, key)) else { return };
        let mut listed = Vec::new();
        // It may serve these names, as in a journal.
        if std::mem::take(&mut waiting.others) > 0 {
            waiting.files.clear();
        }
        for id in waiting.files.drain(..) {
            let (Some(file), Some(made)) = (context.state.files.get(id), self.made.get(&id)) else { continue };
            if !file.unlinked && !file.dirty.is_empty() && *file.path == *made.path {
                listed.push((id, made.path.clone(), file.dirty.len()));
            }
        }
        waiting.rounds += u64::from(!listed.is_empty());
        for (id, path, unsynced) in listed {
            *self.published.entry(id) = Published {
                pid: call.pid,
                comm: call.comm_text(),
                path,
                moved: false,
                listed: true,
                above: None,
                unsynced,
                example: Some(Example::of(call)),
            };
        }
    }
}

/// Whether a name is another name in the same directory plus a suffix, such as `file.dpkg-new`.
fn is_variant(of: &str, path: &str) -> bool {
    let (longer, name) = (file_name(of), file_name(path));
    longer.len() > name.len() && !name.is_empty() && longer.contains(name)
}

impl Rule for PublishUnsynced {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() {
            return;
        }
        match call.kind {
            Kind::Sync | Kind::SyncAll | Kind::Msync => {
                // Of a directory it is for names.
                let of_names = call.kind == Kind::Sync && context.file(call).is_some_and(|f| f.is_directory());
                if of_names {
                    self.lists(call, context);
                } else {
                    *self.syncing.entry(key_of(call.comm)) = true;
                }
            }
            Kind::Close => self.closes(call, context),
            Kind::Mkdir => {
                if let Some(key) = call.path_key() {
                    *self.trees.entry((call.pid, key)) = true;
                }
            }
            Kind::Rename | Kind::Link => {
                if call.kind == Kind::Rename {
                    self.renames(call, context);
                }
                self.publishes(call, context);
                self.changes(call, call.path2);
            }
            Kind::Unlink => {
                if let Some(key) = call.path_key() {
                    self.live.remove(&key);
                }
                self.originals.removes(call, context);
                self.changes(call, call.path);
            }
            _ => {
                if let Some(key) = call.path_key() {
                    *self.live.entry(key) = true;
                }
                if call.kind == Kind::Open && call.has_flag("O_CREAT") {
                    self.changes(call, call.path);
                }
                if call.kind == Kind::Open
                    && call.has_flag("O_CREAT")
                    && !call.has_flag("O_APPEND")
                    && let Some(id) = call.file
                {
                    *self.made.entry(id) = Made { pid: call.pid, path: call.path_text() };
                }
                self.originals.opens(call);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        self.originals.findings(run, out);
        let mut programs: BTreeMap<&str, Vec<&Published>> = BTreeMap::new();
        for (id, published) in self.published.iter() {
            let Some(file) = run.state.files.get(*id).filter(|file| !file.was_synced()) else { continue };
            // Of a file with several names the first may be gone.
            let there = !file.unlinked || run.state.files.at(&published.path) == Some(*id);
            let syncs = || self.syncing.get(&key_of(&published.comm)).is_some();
            let often = || match published.above {
                Some(above) => self.inside.get(&(published.pid, above)).is_some_and(|w| w.rounds >= MIN_POINTED),
                None => {
                    let own = key_of(directory(&published.path));
                    self.waiting.get(&(published.pid, own)).is_some_and(|w| w.rounds >= MIN_ROUNDS)
                }
            };
            if there && (published.moved || syncs() && (!published.listed || often())) {
                programs.entry(&published.comm).or_default().push(published);
            }
        }
        programs.retain(|comm, files| {
            let careful = self.syncing.get(&key_of(comm)).is_some();
            let mut places: BTreeMap<&str, usize> = BTreeMap::new();
            files.iter().for_each(|file| *places.entry(directory(&file.path)).or_default() += 1);
            let most = places.into_values().max().unwrap_or(0);
            files.len() >= MIN_FILES || careful && most >= MIN_OF_CAREFUL
        });
        for (comm, mut files) in programs {
            files.sort_by_key(|file| file.example.as_ref().map(|example| example.rid));
            let Some(first) = files.first() else { continue };
            let directories: BTreeSet<&str> = files.iter().map(|file| directory(&file.path)).collect();
            let place = match directories.len() {
                n if n > MAX_NAMED => format!("{} directories", units::count(n as i64)),
                _ => list(&directories.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>()),
            };
            let subject = Subject::process(first.pid, comm);
            let many = units::count(files.len() as i64);
            out.push(Found {
                severity: Some(Severity::Low),
                title: match files.iter().all(|file| file.above.is_some()) {
                    true => format!(
                        "{comm} writes {many} files into {place}, which it created, then makes the file or directory durable by which others find them, but none of the files"
                    ),
                    false => format!("{comm} publishes {many} files in {place} and makes none of them durable, before or after"),
                },
                subject: match directories.len() {
                    1 => subject.with_path(directory(&first.path)),
                    _ => subject,
                },
                evidence: vec![
                    number("files", files.len() as i64),
                    number("directories", directories.len() as i64),
                    number("unsynced_bytes", files.iter().fold(0, |all: i64, file| all.saturating_add(file.unsynced))),
                ],
                examples: files.iter().filter_map(|file| file.example.clone()).take(EXAMPLES).collect(),
                query: calls!("comm = {} AND (syscall LIKE '%rename%' OR syscall IN ('link', 'linkat') OR syscall LIKE '%sync%')", sql::quote(comm)),
                rests_on_absence: true,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests;

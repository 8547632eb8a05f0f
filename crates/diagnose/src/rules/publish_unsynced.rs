//! `publish-unsynced`: files take the name by which others find them before their bytes are durable.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{directory, file_name, is_pid_or_lock, is_rebuilt, is_temporary};
use crate::prelude::*;
use crate::state::files::FileState;

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
/// Share of a file that is read, or of its length that is written, by a process that puts another in its place.
const MIN_TAKEN: f64 = 0.9;
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

/// A file whose original was removed.
#[derive(Debug, Default)]
struct Replacement {
    pid: i32,
    comm: Text,
    path: Text,
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
        /// Which process opened a file last to read it, and which file it made last.
        readers: Bounded<FileId, i32>,
        last_made: Bounded<i32, Option<FileId>>,
        replacements: Bounded<FileId, Replacement>,
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

    /// A file is removed: the original of one that its process has just made?
    fn removes(&mut self, call: &Call, context: &Context) {
        let (Some(path), Some(key)) = (call.path, call.path_key()) else { return };
        let files = &context.state.files;
        let Some(old) = files.at_key(key).or(call.file) else { return };
        let last = self.last_made.get(&call.pid).copied().flatten();
        let Some(new) = last.filter(|new| *new != old && self.readers.get(&old) == Some(&call.pid)) else { return };
        let (Some(made), Some(was), Some(is)) = (self.made.get(&new), files.get(old), files.get(new)) else { return };
        let size = was.size.unwrap_or(0);
        let taken = was.read.max(is.written) as f64 >= size as f64 * MIN_TAKEN;
        let (place, name) = (directory(path) == directory(&made.path), file_name(path) == file_name(&made.path));
        let named = !place && name || place && (adds_suffix(path, &made.path) || adds_suffix(&made.path, path));
        if size > 0 && taken && named && was.dirty.is_empty() && !is.dirty.is_empty() && is_kept(was, path) && is_kept(is, &made.path) {
            *self.replacements.entry(new) = Replacement {
                pid: call.pid,
                comm: call.comm_text(),
                path: made.path.clone(),
                example: Some(Example::of(call)),
            };
        }
    }

    /// Files whose originals were removed.
    fn replaced(&self, run: &Run, out: &mut Vec<Found>) {
        let mut programs: BTreeMap<&str, Vec<(&Replacement, &FileState)>> = BTreeMap::new();
        for (id, replacement) in self.replacements.iter() {
            let file = run.state.files.get(*id).filter(|file| !file.was_synced() && !file.unlinked);
            if let Some(file) = file {
                programs.entry(&replacement.comm).or_default().push((replacement, file));
            }
        }
        for (comm, mut files) in programs.into_iter().filter(|(_, files)| files.len() >= MIN_FILES) {
            files.sort_by_key(|(file, _)| file.example.as_ref().map(|example| example.rid));
            let Some((first, _)) = files.first() else { continue };
            let place = directory(&first.path);
            let one = files.iter().all(|(file, _)| directory(&file.path) == place);
            let subject = Subject::process(first.pid, comm);
            out.push(Found {
                severity: Some(Severity::Medium),
                title: format!(
                    "{comm} removes {} files as soon as it has written the new ones{}, which it never makes durable: after a crash both can be gone",
                    units::count(files.len() as i64),
                    if one { format!(" in {place}") } else { String::new() },
                ),
                subject: if one { subject.with_path(place) } else { subject },
                evidence: vec![
                    number("files_replaced", files.len() as i64),
                    number("unsynced_bytes", files.iter().fold(0, |all: i64, (_, file)| all.saturating_add(file.dirty.len()))),
                ],
                examples: files.iter().filter_map(|(file, _)| file.example.clone()).take(EXAMPLES).collect(),
                query: calls!("comm = {} AND (syscall IN ('unlink', 'unlinkat') OR syscall LIKE '%sync%' OR flags LIKE '%O_CREAT%')", sql::quote(comm)),
                advice: Some(
                    "Call fsync on the new file and on its directory before the original is removed (`gzip --synchronous`; xz does so \
                     since 5.8); or keep the originals (`-k`), and remove them all after one `sync -f`."
                        .to_owned(),
                ),
                rests_on_absence: true,
                ..Found::default()
            });
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

/// Whether a user would miss a file of this name.
fn is_kept(file: &FileState, path: &str) -> bool {
    file.is_regular() && !file.is_volatile() && !is_rebuilt(path) && !is_pid_or_lock(path)
}

/// Whether a name is another name in the same directory plus a suffix, such as `file.dpkg-new`.
fn is_variant(of: &str, path: &str) -> bool {
    let (longer, name) = (file_name(of), file_name(path));
    longer.len() > name.len() && !name.is_empty() && longer.contains(name)
}

/// Whether a name is another one plus a suffix, as `file.xz` is.
fn adds_suffix(path: &str, longer: &str) -> bool {
    let name = file_name(path);
    !name.is_empty() && file_name(longer).strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
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
                self.removes(call, context);
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
                    *self.last_made.entry(call.pid) = Some(id);
                } else if call.kind == Kind::Open
                    && !call.has_flag("O_WRONLY")
                    && let Some(id) = call.file
                {
                    *self.readers.entry(id) = call.pid;
                }
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        self.replaced(run, out);
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
mod tests {
    use crate::finding::Severity;
    use crate::scenario::{Scenario, fires, silent};

    fn deliver(s: &mut Scenario, from: &str, to: &str, sync: bool) {
        let fd = s.open(from, "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 3000);
        if sync {
            s.fsync(fd);
        }
        s.close(fd);
        s.rename(from, to);
    }

    #[test]
    fn fires_on_messages_that_are_moved_where_others_look() {
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), false);
        }
        let found = fires("publish-unsynced", s);
        assert_eq!((found.len(), found[0].severity), (1, Severity::Low));
        assert_eq!(
            found[0].title,
            "program publishes 40 files in /mail/new and makes none of them durable, before or after"
        );
        assert_eq!(found[0].evidence[0].value, 40.0);
    }

    #[test]
    fn fires_on_links_to_what_is_removed_then() {
        let mut s = Scenario::new();
        for i in 0..10 {
            let (from, to) = (format!("/mail/tmp/{i}"), format!("/mail/new/{i}"));
            let fd = s.open(&from, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 3000);
            s.close(fd);
            s.link(&from, &to);
            s.unlink(&from);
        }
        fires("publish-unsynced", s);
    }

    /// Packs 30 files, as xz does.
    fn packs(length: i64, read: i64, mut new: impl FnMut(&mut Scenario, i32)) -> Scenario {
        let mut s = Scenario::new();
        for i in 0..30 {
            let old = format!("/log/{i}.log");
            let from = s.open_existing(&old, "O_RDONLY", length);
            s.read(from, read);
            let to = s.open(&format!("{old}.xz"), "O_WRONLY|O_CREAT|O_EXCL");
            s.write(to, 10_000);
            new(&mut s, to);
            s.close(to);
            s.unlink(&old);
        }
        s
    }

    #[test]
    fn fires_when_originals_are_gone_before_the_new_files_are_durable() {
        let found = fires("publish-unsynced", packs(50_000, 50_000, |_, _| {}));
        assert_eq!((found.len(), found[0].severity), (1, Severity::Medium));
        assert_eq!(
            found[0].title,
            "program removes 30 files as soon as it has written the new ones in /log, which it never makes durable: \
             after a crash both can be gone"
        );
        silent("publish-unsynced", packs(50_000, 50_000, |s, fd| s.fsync(fd)));
        // Only the beginning of the old file is known to it.
        silent("publish-unsynced", packs(50_000, 1000, |_, _| {}));
        // Results of numbered jobs.
        let mut s = Scenario::new();
        for i in 1..30 {
            let old = format!("/jobs/{i}");
            let from = s.open_existing(&old, "O_RDONLY", 50_000);
            s.read(from, 50_000);
            let to = s.open(&format!("{old}0"), "O_WRONLY|O_CREAT|O_EXCL");
            s.write(to, 10_000);
            s.close(to);
            s.unlink(&old);
        }
        silent("publish-unsynced", s);
        // Files that were never durable themselves.
        let mut s = Scenario::new();
        for i in 0..30 {
            let old = format!("/log/{i}.log");
            let fd = s.open(&old, "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 50_000);
            s.close(fd);
            let from = s.open_existing(&old, "O_RDONLY", 50_000);
            s.read(from, 50_000);
            let to = s.open(&format!("{old}.xz"), "O_WRONLY|O_CREAT|O_EXCL");
            s.write(to, 10_000);
            s.close(to);
            s.unlink(&old);
        }
        silent("publish-unsynced", s);
    }

    #[test]
    fn silent_when_synced_before_or_after() {
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), true);
        }
        silent("publish-unsynced", s);
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("/mail/tmp/{i}"), &format!("/mail/new/{i}"), false);
        }
        s.sync();
        silent("publish-unsynced", s);
    }

    #[test]
    fn temporary_names_count_for_programs_that_sync_others() {
        let save = |syncs: bool, target: &str| {
            let mut s = Scenario::new();
            for i in 0..40 {
                deliver(&mut s, &format!("{target}/.{i}.Xb1"), &format!("{target}/{i}"), false);
            }
            if syncs {
                let fd = s.open("/data/journal", "O_WRONLY|O_CREAT");
                s.write(fd, 100);
                s.fsync(fd);
            }
            s
        };
        fires("publish-unsynced", save(true, "/data/parts"));
        silent("publish-unsynced", save(false, "/copy"));
        silent("publish-unsynced", save(true, "/data/cache"));
    }

    /// Tables that a list names, which is made durable with their directory.
    fn tables(tables_too: bool, list: bool) -> Scenario {
        let mut s = Scenario::new();
        let dir = s.open_directory("/db");
        let manifest = s.open("/db/MANIFEST", "O_WRONLY|O_CREAT|O_APPEND");
        for i in 0..5 {
            let fd = s.open(&format!("/db/{i}.sst"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 3000);
            if tables_too {
                s.fsync(fd);
            }
            s.close(fd);
            if list {
                s.write(manifest, 20);
                s.fsync(manifest);
                s.fsync(dir);
            }
        }
        if !list {
            s.write(manifest, 20);
            s.fsync(manifest);
            s.fsync(dir);
        }
        s
    }

    #[test]
    fn a_directory_that_is_durable_publishes_its_files() {
        let found = fires("publish-unsynced", tables(false, true));
        // The first time may be for the list.
        assert_eq!(found[0].evidence[0].value, 4.0);
        silent("publish-unsynced", tables(true, true));
        // A journal that comes and goes is what the directory is made durable for.
        let mut s = Scenario::new();
        let dir = s.open_directory("/db");
        for i in 0..5 {
            let fd = s.open(&format!("/db/{i}.csv"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 3000);
            s.close(fd);
            let journal = s.open("/db/db-journal", "O_RDWR|O_CREAT");
            s.write(journal, 512);
            s.fsync(journal);
            s.fsync(dir);
            s.close(journal);
            s.unlink("/db/db-journal");
        }
        silent("publish-unsynced", s);
        // Once may be for another file.
        silent("publish-unsynced", tables(false, false));
    }

    #[test]
    fn few_files_count_in_one_directory_for_programs_that_sync_others() {
        let save = |syncs: bool, places: i32| {
            let mut s = Scenario::new();
            for i in 0..4 {
                let place = format!("/data/{}", i % places);
                deliver(&mut s, &format!("{place}/{i}.tmp"), &format!("{place}/{i}"), false);
            }
            let fd = s.open("/data/journal", "O_WRONLY|O_CREAT");
            s.write(fd, 100);
            if syncs {
                s.fsync(fd);
            }
            s
        };
        fires("publish-unsynced", save(true, 1));
        silent("publish-unsynced", save(true, 4));
        silent("publish-unsynced", save(false, 1));
    }

    #[test]
    fn a_name_with_the_new_one_in_it_is_temporary() {
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("/usr/{i}.txt.dpkg-new"), &format!("/usr/{i}.txt"), false);
        }
        let fd = s.open("/var/status", "O_WRONLY|O_CREAT");
        s.write(fd, 100);
        s.fsync(fd);
        fires("publish-unsynced", s);
    }

    #[test]
    fn silent_on_rotated_logs_and_on_files_of_others() {
        let mut s = Scenario::new();
        for i in 0..20 {
            let fd = s.open("/log/app", "O_WRONLY|O_CREAT|O_APPEND");
            s.write(fd, 3000);
            s.close(fd);
            s.rename("/log/app", &format!("/log/old/app.{i}"));
        }
        for i in 0..20 {
            let (from, to) = (format!("/build/tmp/{i}"), format!("/build/{i}"));
            let fd = s.open(&from, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 3000);
            s.close(fd);
            s.process(200);
            s.rename(&from, &to);
            s.process(100);
        }
        silent("publish-unsynced", s);
    }

    #[test]
    fn silent_on_what_was_taken_out_again() {
        let mut s = Scenario::new();
        for i in 0..40 {
            deliver(&mut s, &format!("/spool/tmp/{i}"), &format!("/spool/new/{i}"), false);
        }
        for i in 0..40 {
            s.unlink(&format!("/spool/new/{i}"));
        }
        silent("publish-unsynced", s);
    }

    /// Checkpoints in directories of their own, and a file that says which is the latest.
    fn checkpoints(shards_too: bool, times: i32, pointer: bool) -> Scenario {
        let mut s = Scenario::new();
        for step in 0..times {
            let folder = format!("/ckpt/step-{step}");
            s.mkdir(&folder, None);
            for i in 0..4 {
                let fd = s.open(&format!("{folder}/shard-{i}"), "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 300_000);
                if shards_too {
                    s.fsync(fd);
                }
                s.close(fd);
            }
            let place = if pointer { "/ckpt" } else { "/elsewhere" };
            let fd = s.open(&format!("{place}/latest.tmp"), "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 10);
            s.fsync(fd);
            s.close(fd);
            s.rename(&format!("{place}/latest.tmp"), &format!("{place}/latest"));
        }
        s
    }

    #[test]
    fn a_file_that_names_a_new_directory_publishes_what_is_in_it() {
        let found = fires("publish-unsynced", checkpoints(false, 3, true));
        assert_eq!(found[0].evidence[0].value, 12.0);
        silent("publish-unsynced", checkpoints(true, 3, true));
        // Once may be for another reason, and elsewhere is for another one.
        silent("publish-unsynced", checkpoints(false, 1, true));
        silent("publish-unsynced", checkpoints(false, 3, false));
    }

    #[test]
    fn a_new_directory_that_is_renamed_publishes_what_is_in_it() {
        let run = |careful: bool| {
            let mut s = Scenario::new();
            s.mkdir("/ckpt/.step-1", None);
            s.mkdir("/ckpt/.step-1/model", None);
            for i in 0..4 {
                let fd = s.open(&format!("/ckpt/.step-1/model/shard-{i}"), "O_WRONLY|O_CREAT|O_TRUNC");
                s.write(fd, 300_000);
                s.close(fd);
            }
            let fd = s.open("/ckpt/log", "O_WRONLY|O_CREAT");
            s.write(fd, 10);
            if careful {
                s.fsync(fd);
            }
            s.rename("/ckpt/.step-1", "/ckpt/step-1");
            s
        };
        fires("publish-unsynced", run(true));
        // Unpacked files can be unpacked again.
        silent("publish-unsynced", run(false));
    }
}

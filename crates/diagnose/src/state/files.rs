//! Known properties of each file at a time of the session.

use hashbrown::HashMap;

use crate::call::{Call, FileId};
use crate::kind::Kind;
use crate::state::Synced;
use crate::state::intervals::Intervals;
use crate::text::Text;
use crate::text_key::key_of;

/// Paths that are remembered with the file that they name.
const MAX_NAMES: usize = 1 << 20;

/// Further names of a file that are remembered.
const MAX_LINKS: usize = 16;

/// File systems whose files the kernel makes up as they are read.
const MADE_UP: &[&str] = &[
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "pstore",
    "bpf",
    "efivarfs",
    "selinuxfs",
    "binfmt_misc",
    "fusectl",
    "mqueue",
];
/// File systems that have no device.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// File systems on disks of this machine.
const ON_DISK: &[&str] = &[
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "exfat", "ntfs3",
];

/// File systems whose fsync of a file makes the names durable that it has by then, as the names go
/// to the same log as the inode. `overlay` hands fsync on to its upper layer, which is one of them
/// almost everywhere.
const NAMES_WITH_FILE: &[&str] = &["ext4", "xfs", "btrfs", "overlay"];

/// Known properties of a file.
#[derive(Clone, Debug, Default)]
pub struct FileState {
    /// Absolute path that calls have shown so far; empty when none has.
    pub path: Text,
    /// Further names that link gave it.
    links: Vec<Text>,
    /// Path that table `files` has, the latest of the session.
    pub last_path: Text,
    /// Type as in table `files`; empty when not known yet.
    pub file_type: Text,
    /// Type of its file system.
    pub fs_type: Text,
    regular: bool,
    volatile: bool,
    names_with_file: bool,
    /// Length in bytes; `None` when not known.
    pub size: Option<i64>,
    /// The call that created it; `None` when it was there before, or that is not
    /// known.
    pub created: Option<Created>,
    /// Whether it was opened to append to it, as a log is.
    pub appended: bool,
    /// Bytes written since it was last made durable.
    pub dirty: Intervals,
    /// Bytes written since a call last waited for some of them to be written to the device, be it
    /// by one that does not make them durable.
    pub unwaited: i64,
    /// Bytes read and written so far.
    pub read: i64,
    /// Bytes written so far.
    pub written: i64,
    /// When its bytes, length, blocks or attributes were last changed.
    pub last_change: Option<i64>,
    /// When the first sync ended that began after the last change.
    durable_since: Option<i64>,
    /// When it was last made durable, by which call.
    pub last_sync: Option<(i64, i64)>,
    /// Whether a process has mapped it shared, so that what one stores or reads there is no call; and for writing.
    pub is_mapped: bool,
    pub is_mapped_for_writing: bool,
    /// Whether it has no name: never had one (O_TMPFILE), or the last one was removed or taken by
    /// another file.
    pub unlinked: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Created {
    /// The call.
    pub rid: i64,
    pub ts_ns: i64,
    pub pid: i32,
}

impl FileState {
    /// Whether it is a regular file with bytes of its own: not one that the kernel
    /// makes up as it is read.
    pub fn is_regular(&self) -> bool {
        self.regular
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        &*self.file_type == "directory"
    }

    /// Whether it lives in memory only, so that nothing makes it durable.
    pub fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Whether its file system is one on disks of this machine.
    pub fn has_disk(&self) -> bool {
        ON_DISK.contains(&&*self.fs_type)
    }

    /// Whether an fsync of it makes the names durable that it has by then.
    pub fn fsync_keeps_names(&self) -> bool {
        self.names_with_file
    }

    /// Whether calls have made durable what was written to it, at the latest time or before.
    pub fn was_synced(&self) -> bool {
        self.last_sync.is_some() || self.dirty.is_empty()
    }

    /// Whether all that it was by then had been made durable at a time, in nanoseconds. A sync covers the changes
    /// before its begin: one by another thread meanwhile may have come too late for it.
    pub fn is_durable(&self, at_ns: i64) -> bool {
        self.durable_since.is_some_and(|since| since <= at_ns)
    }

    fn change(&mut self, call: &Call) {
        self.last_change = Some(call.ended_at_ns());
        self.durable_since = None;
    }

    /// A sync of the whole file has ended.
    fn sync(&mut self, call: &Call) {
        self.dirty.clear();
        self.unwaited = 0;
        self.last_sync = Some((call.ended_at_ns(), call.rid));
        if self.last_change.is_none_or(|change| change <= call.ts_ns) {
            self.durable_since.get_or_insert(call.ended_at_ns());
        }
    }

    /// A path for people, or words for a file without one.
    pub fn name(&self) -> &str {
        let paths = [&*self.path, &*self.last_path];
        let known = paths.into_iter().find(|path| !path.is_empty());
        known.unwrap_or("(unnamed file)")
    }
}

/// All files of the session.
#[derive(Debug, Default)]
pub struct Files {
    files: HashMap<FileId, FileState>,
    /// By the numbers of their paths.
    names: HashMap<u64, FileId>,
}

impl Files {
    /// Known properties of a file.
    pub fn get(&self, id: FileId) -> Option<&FileState> {
        self.files.get(&id)
    }

    /// Every file.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &FileState)> {
        self.files.iter().map(|(id, file)| (*id, file))
    }

    /// The file that a path names now, as far as calls have shown.
    pub fn at(&self, path: &str) -> Option<FileId> {
        self.at_key(key_of(path))
    }

    /// The same by the number of the path.
    pub(crate) fn at_key(&self, path: u64) -> Option<FileId> {
        self.names.get(&path).copied()
    }

    /// Adds a file, as in table `files`. `size` is its size when it was first open; later calls may
    /// have changed it.
    pub(crate) fn describe(
        &mut self,
        id: FileId,
        path: Option<&str>,
        file_type: &str,
        fs_type: &str,
        size: Option<i64>,
    ) {
        let file = self.files.entry(id).or_default();
        file.last_path = path.unwrap_or("").into();
        file.file_type = file_type.into();
        file.fs_type = fs_type.into();
        file.regular = file_type == "regular" && !MADE_UP.contains(&fs_type);
        file.volatile = IN_MEMORY.contains(&fs_type);
        file.names_with_file = NAMES_WITH_FILE.contains(&fs_type);
        if file.written == 0 && file.size.is_none() {
            file.size = size;
        }
    }

    fn name(&mut self, path: u64, id: FileId) {
        if self.names.len() >= MAX_NAMES && !self.names.contains_key(&path) {
            self.names.clear();
        }
        self.names.insert(path, id);
    }

    fn drop_name(&mut self, path: &str, key: u64) {
        if let Some(id) = self.names.remove(&key)
            && let Some(file) = self.files.get_mut(&id)
        {
            file.links.retain(|link| **link != *path);
            if &*file.path == path {
                match file.links.pop() {
                    Some(link) => file.path = link,
                    None => file.unlinked = true,
                }
            }
        }
    }

    /// The effect of a call after all rules have examined it.
    pub(crate) fn apply(&mut self, call: &Call, synced: Option<Synced>) {
        if !call.succeeded() {
            return;
        }
        match call.kind {
            Kind::Rename => {
                let (Some(from), Some(to)) = (call.path, call.path2) else {
                    return;
                };
                let (Some(from_key), Some(to_key)) = (call.path_key(), call.path2_key()) else {
                    return;
                };
                let exchanged = call
                    .has_flag("RENAME_EXCHANGE")
                    .then(|| self.at_key(to_key))
                    .flatten();
                let moved = self.names.remove(&from_key);
                self.drop_name(to, to_key);
                if let Some(id) = moved {
                    self.name(to_key, id);
                    if let Some(file) = self.files.get_mut(&id) {
                        file.path = to.into();
                        file.unlinked = false;
                    }
                }
                if let Some(id) = exchanged {
                    self.name(from_key, id);
                    if let Some(file) = self.files.get_mut(&id) {
                        file.path = from.into();
                        file.unlinked = false;
                    }
                }
            }
            Kind::Unlink | Kind::Rmdir => {
                if let (Some(path), Some(key)) = (call.path, call.path_key()) {
                    self.drop_name(path, key);
                }
            }
            // linkat gives a file of O_TMPFILE its first name.
            Kind::Link => {
                let old = call.path_key().and_then(|path| self.at_key(path));
                let old = old.or(call.file);
                if let (Some(id), Some(to), Some(key)) = (old, call.path2, call.path2_key()) {
                    self.name(key, id);
                    let file = self.files.entry(id).or_default();
                    if file.unlinked {
                        file.path = to.into();
                        file.unlinked = false;
                    } else if file.links.len() < MAX_LINKS {
                        file.links.push(to.into());
                    }
                }
            }
            Kind::SyncAll => {
                for file in self.files.values_mut().filter(|f| !f.dirty.is_empty()) {
                    file.sync(call);
                }
            }
            _ => {}
        }
        let Some(id) = call.file else { return };
        if call.kind == Kind::Open
            && let Some(path) = call.path_key()
        {
            self.name(path, id);
        }
        let file = self.files.entry(id).or_default();
        match call.kind {
            Kind::Open => {
                if file.path.is_empty() || file.unlinked {
                    file.path = call.path_text();
                    file.unlinked = false;
                }
                file.appended |= call.has_flag("O_APPEND");
                if call.has_flag("O_EXCL") && call.has_flag("O_CREAT") || call.has_flag("O_TMPFILE")
                {
                    file.size = Some(0);
                    file.created = Some(Created {
                        rid: call.rid,
                        ts_ns: call.ts_ns,
                        pid: call.pid,
                    });
                }
                if call.has_flag("O_TRUNC") {
                    file.size = Some(0);
                    file.dirty.clear();
                    file.change(call);
                }
                if call.has_flag("O_TMPFILE") {
                    file.unlinked = true;
                }
            }
            Kind::Mmap if call.has_flag("MAP_SHARED") => {
                file.is_mapped = true;
                file.is_mapped_for_writing |= call
                    .arg("prot")
                    .is_some_and(|prot| prot.contains("PROT_WRITE"));
            }
            Kind::Read => file.read = file.read.saturating_add(call.moved()),
            Kind::Write => {
                file.written = file.written.saturating_add(call.moved());
                file.change(call);
                if let Some((start, end)) = call.range() {
                    if synced.is_none() {
                        file.dirty.insert(start, end);
                        file.unwaited = file.unwaited.saturating_add(end - start);
                    }
                    // An end beyond what is known: a lower bound is no size.
                    file.size = file.size.map(|size| size.max(end));
                }
            }
            Kind::Truncate => {
                file.change(call);
                let length = call.arg("length").and_then(|n| n.parse::<i64>().ok());
                if let Some(length) = length.filter(|n| *n >= 0) {
                    file.dirty.truncate(length);
                    file.size = Some(length);
                }
            }
            Kind::Allocate => {
                file.change(call);
                if call.flags.is_empty() || call.flags == "0" {
                    let end = call.offset.zip(call.size);
                    let end = end.map(|(start, n)| start.saturating_add(n));
                    file.size = file.size.zip(end).map(|(size, end)| size.max(end));
                }
            }
            Kind::SetAttr | Kind::SetXattr => file.change(call),
            _ => {}
        }
        match synced {
            Some(Synced::File) => file.sync(call),
            // Durable as a whole only if nothing else was left to write.
            Some(Synced::Own) if file.dirty.is_empty() => {
                file.last_sync = Some((call.ended_at_ns(), call.rid));
            }
            Some(Synced::Range) => file.unwaited = 0,
            _ => {}
        }
    }
}

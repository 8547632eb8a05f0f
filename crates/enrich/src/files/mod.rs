//! Files: from the kernel's handles to ids, and the rows of tables `files` and
//! `file_paths`.
//!
//! A handle is the kernel side's name for an inode by way of a directory
//! entry, a file is what all handles with the same device, inode and generation
//! stand for.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_decode::{absolute_path, append_absolute_path};
use fathom_model::StringTable;
use fathom_model::abi::{FILE_DELETED, FILE_PATH_PARTIAL, FileRecord, MountRecord};
use fathom_model::batch::NULL_I64;
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{FilePathRow, FilePathRows, FileRows};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::hash::BuildHasher;

use crate::{nonzero, signed};
use aliases::Aliases;
use fs::{ANON_INODE_FS, FileType, NS_FS, PID_FS, PIPE_FS, SOCK_FS};
use mounts::Mounts;
use symlinks::Symlinks;

mod aliases;
mod fs;
mod mounts;
pub(crate) mod paths;
pub(crate) mod positions;
mod room;
mod rows;
mod symlinks;

/// Paths of one file that are remembered as already written.
const MAX_KNOWN_PATHS: usize = 64;
/// Device (as st_dev), inode, generation; without one when the file was only
/// described by stat.
type Identity = (u64, u64, Option<u32>);

#[derive(Debug)]
struct File {
    id: i64,
    /// `None`: the kernel used a handle whose record did not arrive yet.
    identity: Option<Identity>,
    first_seen_at_ns: u64,
    path: Option<Arc<[u8]>>,
    path_complete: bool,
    file_type: FileType,
    fs_magic: Option<u32>,
    size: Option<u64>,
    /// Device and inode as stat shows them, when the device is another one.
    alias: Option<(u64, u64)>,
    /// Mount namespace in which `path` holds, 0 for none.
    mnt_ns: u32,
    /// Of a file in another mount namespace than the recorder's: device of the
    /// file system and path inside it.
    elsewhere: Option<(u32, Arc<[u8]>)>,
    host_path: Option<Arc<[u8]>>,
    /// Hashes of the paths that table file_paths has.
    known_paths: Vec<u64>,
    /// Batch and place of its row, when it has one in the present batch.
    row: Option<(u32, usize)>,
    /// When its row was written last.
    written_ns: u64,
    /// Used since it was last considered for being forgotten.
    used: bool,
    /// Memory that it takes, about, as counted in [`Files`].
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Handle {
    slot: u32,
    /// Shows whether the slot still contains the same file.
    file_id: i64,
    path: Option<Arc<[u8]>>,
    /// Whether that name was removed.
    deleted: bool,
}

/// A file as a row refers to it.
#[derive(Clone, Debug)]
pub(crate) struct FileRef {
    pub id: i64,
    /// Path by which the handle reaches it.
    pub path: Option<Arc<[u8]>>,
}

/// How much is remembered of files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Files, and half as many handles.
    pub files: usize,
    /// Memory that they take with their paths, about.
    pub bytes: usize,
}

/// The files that are known.
#[derive(Debug)]
pub(crate) struct Files {
    slots: Vec<Option<File>>,
    free: Vec<u32>,
    /// Slots in order of arrival, with the id of their file; the ones to be
    /// forgotten first at the front.
    order: VecDeque<(u32, i64)>,
    handles: HashMap<u32, Handle>,
    identities: HashMap<Identity, u32>,
    /// The latest generation of each inode.
    inodes: HashMap<(u64, u64), u32>,
    aliases: Aliases,
    mounts: Mounts,
    pub(crate) symlinks: Symlinks,
    limit: Limit,
    /// Memory of the files and of the handles, about.
    file_bytes: usize,
    handle_bytes: usize,
    refresh_ns: Option<u64>,
    last_id: i64,
    epoch: u32,
    rows: FileRows,
    path_rows: FilePathRows,
    strings: StringTable,
    path_strings: StringTable,
    hasher: DefaultHashBuilder,
}

impl Files {
    pub(crate) fn new(limit: Limit) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            order: VecDeque::new(),
            handles: HashMap::new(),
            identities: HashMap::new(),
            inodes: HashMap::new(),
            aliases: Aliases::default(),
            mounts: Mounts::default(),
            symlinks: Symlinks::default(),
            limit: Limit {
                files: limit.files.clamp(1, u32::MAX as usize),
                ..limit
            },
            file_bytes: 0,
            handle_bytes: 0,
            refresh_ns: None,
            last_id: 0,
            epoch: 0,
            rows: FileRows::default(),
            path_rows: FilePathRows::default(),
            strings: StringTable::new(),
            path_strings: StringTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Has rows written again that are so much older than what refers to them.
    pub(crate) fn refreshed_after(mut self, age_ns: Option<u64>) -> Self {
        self.refresh_ns = age_ns;
        self
    }

    /// Takes note of what the kernel side says of a handle.
    pub(crate) fn event(&mut self, record: &FileRecord, components: &[u8], fs_path: &[u8]) {
        if record.handle == 0 {
            return;
        }
        // One more name of a file that is known takes memory, too.
        if self.file_bytes + self.handle_bytes > self.limit.bytes {
            self.make_room();
        }
        let dev = fs::st_dev(record.dev);
        let identity = (dev, record.ino, Some(record.generation));
        let announced = self
            .handles
            .get(&record.handle)
            .and_then(|h| self.slot_of(h));
        let slot = match (self.identities.get(&identity).copied(), announced) {
            (Some(slot), announced) => {
                if let Some(placeholder) = announced.filter(|a| *a != slot) {
                    self.fill_alias(placeholder, slot);
                }
                slot
            }
            // A file that was only described by stat so far: now its
            // generation is known.
            (None, announced) => match self
                .adoptable(dev, record.ino)
                .or_else(|| self.described_elsewhere(record, components))
            {
                Some(slot) => {
                    if let Some(placeholder) = announced.filter(|a| *a != slot) {
                        self.fill_alias(placeholder, slot);
                    }
                    slot
                }
                None => match announced.filter(|a| self.is_placeholder(*a)) {
                    Some(placeholder) => placeholder,
                    None => self.add(record.ts_ns),
                },
            },
        };
        self.identify(slot, identity);
        if aliases::stat_shows_other_devices(record.fs_magic) {
            self.aliases.opened.insert(record.ino, slot);
        }
        let path: Arc<[u8]> = display_path(record, components).into();
        let partial = u32::from(record.flags) & FILE_PATH_PARTIAL != 0;
        let deleted = u32::from(record.flags) & FILE_DELETED != 0;
        let hash = self.hasher.hash_one((&path, record.mnt_ns, deleted));
        let elsewhere: Option<(u32, Arc<[u8]>)> = (!fs_path.is_empty()
            && !self.mounts.is_own(record.mnt_ns))
        .then(|| (record.fs_dev, absolute_path(fs_path).into()));
        let host_path = elsewhere
            .as_ref()
            .and_then(|(dev, path)| self.mounts.path(*dev, path));
        let Some(file) = at_mut(&mut self.slots, slot) else {
            return;
        };
        file.file_type = FileType::of(record.mode, record.fs_magic);
        file.fs_magic = Some(record.fs_magic);
        file.size.get_or_insert(record.size);
        file.path_complete = !partial;
        file.mnt_ns = record.mnt_ns;
        if file.elsewhere != elsewhere {
            (file.elsewhere, file.host_path) = (elsewhere, host_path);
        }
        if file.path.as_deref() != Some(&*path) {
            file.path = Some(path.clone());
        }
        let changed = self
            .handles
            .get(&record.handle)
            .is_some_and(|h| h.file_id == file.id && h.deleted != deleted);
        let known = file.known_paths.contains(&hash);
        if !known || changed {
            if !known && file.known_paths.len() < MAX_KNOWN_PATHS {
                file.known_paths.push(hash);
            }
            self.path_rows.push(FilePathRow {
                file_id: file.id,
                ts_ns: signed(record.ts_ns),
                path: self
                    .path_strings
                    .intern(escape_invalid_utf8(&path).as_bytes()),
                path_complete: !partial,
                deleted,
                mount_namespace: nonzero(record.mnt_ns),
            });
        }
        let handle = Handle {
            slot,
            file_id: file.id,
            path: Some(path),
            deleted,
        };
        self.put_handle(record.handle, handle);
        self.count(slot);
        self.write(slot);
    }

    /// Takes note of a mount of the recorder's.
    pub(crate) fn mount(&mut self, record: &MountRecord, root: &[u8], point: &[u8]) {
        self.mounts.event(record, root, point);
    }

    /// The file behind a handle. One whose record did not arrive (yet) gets its
    /// id now and the rest when the record comes.
    pub(crate) fn by_handle(&mut self, handle: u32, now_ns: u64) -> FileRef {
        if let Some(known) = self.handles.get(&handle)
            && let Some(slot) = self.slot_of(known)
            && let Some(file) = at_mut(&mut self.slots, slot)
        {
            file.used = true;
            let found = FileRef {
                id: file.id,
                path: known.path.clone(),
            };
            self.refresh(slot, found.path.as_deref().is_some(), handle, now_ns);
            return found;
        }
        let slot = self.add(now_ns);
        let id = at(&self.slots, slot).map_or(0, |f| f.id);
        self.put_handle(
            handle,
            Handle {
                slot,
                file_id: id,
                path: None,
                deleted: false,
            },
        );
        self.write(slot);
        FileRef { id, path: None }
    }

    /// Path of the file behind a handle, when it is known.
    pub(crate) fn path_of(&self, handle: u32) -> Option<&[u8]> {
        let known = self.handles.get(&handle)?;
        self.slot_of(known)?;
        known.path.as_deref()
    }

    /// A call was given the absolute path `given` and has the file behind a handle, which it `created`
    /// or not: shows where symbolic links lead.
    pub(crate) fn reached(
        &mut self,
        handle: u32,
        created: bool,
        given: &[u8],
        mnt_ns: impl FnOnce() -> u32,
    ) {
        let known = self.handles.get(&handle);
        let slot = known.and_then(|known| self.slot_of(known));
        let file = slot.and_then(|slot| at(&self.slots, slot));
        let (Some(file), Some(real)) = (file, known.and_then(|known| known.path.as_deref())) else {
            return;
        };
        let directory = file.file_type == FileType::Directory;
        let shows = directory || created;
        if !shows || given == real && self.symlinks.is_empty() {
            return;
        }
        match directory {
            true => self.symlinks.leads_to(mnt_ns(), given, real),
            false => self.symlinks.made(mnt_ns(), given, real),
        }
    }

    /// The file that stat described by device (as st_dev) and inode: the latest
    /// generation that is known, or a new one whose generation is not known.
    /// `path` may lead to it by symbolic links; `mode` is its st_mode.
    pub(crate) fn by_stat(
        &mut self,
        (dev, ino): (u64, u64),
        mode: Option<u32>,
        path: Option<&[u8]>,
        now_ns: u64,
    ) -> i64 {
        if let Some(slot) = self.inodes.get(&(dev, ino)).copied()
            && let Some(file) = at_mut(&mut self.slots, slot)
        {
            file.used = true;
            let id = file.id;
            self.refresh(slot, false, 0, now_ns);
            return id;
        }
        if let Some(slot) = path.and_then(|path| self.opened_elsewhere(ino, path)) {
            self.add_alias(slot, (dev, ino));
            return self.id_of(slot);
        }
        let slot = self.add(now_ns);
        self.aliases.described.insert(ino, slot);
        self.identify(slot, (dev, ino, None));
        let Some(file) = at_mut(&mut self.slots, slot) else {
            return NULL_I64;
        };
        file.path = path.map(Arc::from);
        if let Some(mode) = mode {
            file.file_type = FileType::of(mode, 0);
        }
        let id = file.id;
        self.count(slot);
        self.write(slot);
        id
    }

    /// The slot of a handle, unless its file was forgotten.
    fn slot_of(&self, handle: &Handle) -> Option<u32> {
        let file = at(&self.slots, handle.slot)?;
        (file.id == handle.file_id).then_some(handle.slot)
    }

    fn is_placeholder(&self, slot: u32) -> bool {
        let file = at(&self.slots, slot);
        file.is_some_and(|f| f.identity.is_none())
    }

    fn adoptable(&self, dev: u64, ino: u64) -> Option<u32> {
        let slot = *self.inodes.get(&(dev, ino))?;
        let file = at(&self.slots, slot)?;
        file.identity
            .is_some_and(|(_, _, generation)| generation.is_none())
            .then_some(slot)
    }

    /// A file of such a file system that stat has described under another device, at the path of
    /// `record`.
    fn described_elsewhere(&self, record: &FileRecord, components: &[u8]) -> Option<u32> {
        let slot = *self
            .aliases
            .described
            .get(&record.ino)
            .filter(|_| aliases::stat_shows_other_devices(record.fs_magic))?;
        let file = at(&self.slots, slot)?;
        let (_, ino, generation) = file.identity?;
        (ino == record.ino
            && generation.is_none()
            && file.path.as_deref() == Some(&*display_path(record, components)))
        .then_some(slot)
    }

    /// The open file of such a file system at `path`, to which stat gave inode `ino` under an
    /// unknown device.
    fn opened_elsewhere(&self, ino: u64, path: &[u8]) -> Option<u32> {
        let slot = *self.aliases.opened.get(&ino)?;
        let file = at(&self.slots, slot)?;
        let (_, known, _) = file.identity?;
        (known == ino && file.path.as_deref() == Some(path)).then_some(slot)
    }

    /// Device and inode under which stat shows the file in `slot`, too.
    fn add_alias(&mut self, slot: u32, inode: (u64, u64)) {
        let Some(file) = at_mut(&mut self.slots, slot) else {
            return;
        };
        if let Some(before) = file.alias.replace(inode)
            && before != inode
            && self.inodes.get(&before) == Some(&slot)
        {
            self.inodes.remove(&before);
        }
        self.inodes.insert(inode, slot);
    }

    fn id_of(&self, slot: u32) -> i64 {
        let file = at(&self.slots, slot);
        file.map_or(NULL_I64, |f| f.id)
    }

    fn identify(&mut self, slot: u32, identity: Identity) {
        let Some(file) = at_mut(&mut self.slots, slot) else {
            return;
        };
        if file.identity == Some(identity) {
            return;
        }
        if let Some(before) = file.identity.replace(identity) {
            self.identities.remove(&before);
            if before.0 != identity.0 {
                self.add_alias(slot, (before.0, before.1));
            }
        }
        self.identities.insert(identity, slot);
        self.inodes.insert((identity.0, identity.1), slot);
    }

    /// A row for the id that was given to a handle before it turned out to be
    /// a file that has an id already: the same file under a second id.
    fn fill_alias(&mut self, placeholder: u32, slot: u32) {
        if !self.is_placeholder(placeholder) {
            return;
        }
        let Some(known) = at(&self.slots, slot) else {
            return;
        };
        let (identity, path, path_complete) =
            (known.identity, known.path.clone(), known.path_complete);
        let (file_type, fs_magic, size) = (known.file_type, known.fs_magic, known.size);
        if let Some(file) = at_mut(&mut self.slots, placeholder) {
            (file.identity, file.path, file.path_complete) = (identity, path, path_complete);
            (file.file_type, file.fs_magic, file.size) = (file_type, fs_magic, size);
        }
        self.write(placeholder);
        // Nothing refers to it any longer.
        self.forget(placeholder);
    }
}

fn at(slots: &[Option<File>], slot: u32) -> Option<&File> {
    slots.get(slot as usize).and_then(Option::as_ref)
}

fn at_mut(slots: &mut [Option<File>], slot: u32) -> Option<&mut File> {
    slots.get_mut(slot as usize).and_then(Option::as_mut)
}

/// The path of a file as /proc/PID/fd shows it, from its components.
fn display_path(record: &FileRecord, components: &[u8]) -> Vec<u8> {
    let ino = record.ino;
    match record.fs_magic {
        PIPE_FS => format!("pipe:[{ino}]").into_bytes(),
        SOCK_FS => format!("socket:[{ino}]").into_bytes(),
        // As /proc/PID/fd shows it.
        PID_FS => b"anon_inode:[pidfd]".to_vec(),
        // Its kind, as in "mnt", in the place of a name.
        NS_FS => {
            let kind = components.split(|b| *b == b'/').next().unwrap_or_default();
            let kind = if kind.is_empty() { b"ns" } else { kind };
            [kind, format!(":[{ino}]").as_bytes()].concat()
        }
        ANON_INODE_FS => {
            let name = components.split(|b| *b == b'/').next().unwrap_or_default();
            [b"anon_inode:", name].concat()
        }
        _ => {
            let mut path = Vec::with_capacity(components.len() + 4);
            if u32::from(record.flags) & FILE_PATH_PARTIAL != 0 {
                path.extend_from_slice(paths::CUT);
            }
            append_absolute_path(components, &mut path);
            path
        }
    }
}

#[cfg(test)]
mod tests;

//! Files: from the kernel's handles to ids, and the rows of tables `files` and
//! `file_paths`.
//!
//! A handle is the kernel side's name for an inode by way of a directory
//! entry, a file is what all handles with the same device, inode and generation
//! stand for.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_decode::{absolute_path, append_absolute_path};
use fathom_model::abi::{FILE_DELETED, FILE_PATH_PARTIAL, FileRecord, MountRecord};
use fathom_model::batch::NULL_I64;
use fathom_model::bytes::lossless;
use fathom_model::tables::{FilePathRows, FileRows};
use fathom_model::{StrId, StringTable};
use hashbrown::{DefaultHashBuilder, HashMap};
use std::hash::BuildHasher;

use crate::fs::{self, ANON_INODE_FS, FileType, NS_FS, PID_FS, PIPE_FS, SOCK_FS};
use crate::mounts::Mounts;
use crate::tasks::{namespace, put};
use crate::{paths, signed};

mod aliases;

use aliases::Aliases;

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
    first_seen_ns: u64,
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
}

#[derive(Clone, Debug)]
struct Handle {
    slot: u32,
    /// Tells whether the slot still holds the same file.
    file_id: i64,
    path: Option<Arc<[u8]>>,
}

/// A file as a row refers to it.
#[derive(Clone, Debug)]
pub(crate) struct FileRef {
    pub id: i64,
    /// Path by which the handle reaches it.
    pub path: Option<Arc<[u8]>>,
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
    limit: usize,
    refresh_ns: Option<u64>,
    last_id: i64,
    epoch: u32,
    rows: FileRows,
    path_rows: FilePathRows,
    strings: StringTable,
    path_strings: StringTable,
    hasher: DefaultHashBuilder,
}

/// Rows of one table and their strings.
pub(crate) type Taken<T> = (T, StringTable);

impl Files {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            order: VecDeque::new(),
            handles: HashMap::new(),
            identities: HashMap::new(),
            inodes: HashMap::new(),
            aliases: Aliases::default(),
            mounts: Mounts::default(),
            limit: limit.clamp(1, u32::MAX as usize),
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
        let hash = self.hasher.hash_one((&path, record.mnt_ns));
        let elsewhere: Option<(u32, Arc<[u8]>)> = (!fs_path.is_empty()
            && !self.mounts.is_own(record.mnt_ns))
        .then(|| (record.fs_dev, absolute_path(fs_path).into()));
        let host_path = elsewhere
            .as_ref()
            .and_then(|(dev, path)| self.mounts.path(*dev, path));
        let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
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
        if !file.known_paths.contains(&hash) {
            if file.known_paths.len() < MAX_KNOWN_PATHS {
                file.known_paths.push(hash);
            }
            let text = lossless(&path);
            self.path_rows.file_id.push(file.id);
            self.path_rows.ts_ns.push(signed(record.ts_ns));
            self.path_rows
                .path
                .push(self.path_strings.intern(text.as_bytes()));
            self.path_rows.path_complete.push(!partial);
            self.path_rows
                .deleted
                .push(u32::from(record.flags) & FILE_DELETED != 0);
            self.path_rows.mnt_ns.push(namespace(record.mnt_ns));
        }
        let handle = Handle {
            slot,
            file_id: file.id,
            path: Some(path),
        };
        self.put_handle(record.handle, handle);
        self.write(slot);
    }

    /// Takes note of a mount of the recorder's.
    pub(crate) fn mount(&mut self, record: &MountRecord, root: &[u8], point: &[u8]) {
        self.mounts.event(record, root, point);
    }

    /// Looks for the files of other namespaces among mounts that came since.
    fn find_on_host(&mut self) {
        if !self.mounts.take_changed() {
            return;
        }
        for slot in 0..self.slots.len() {
            let Some(file) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            // A path that was right stays when the container goes.
            let Some((dev, path)) = file.elsewhere.as_ref().filter(|_| file.host_path.is_none())
            else {
                continue;
            };
            file.host_path = self.mounts.path(*dev, path);
            if file.host_path.is_some() {
                self.write(slot as u32);
            }
        }
    }

    /// The file behind a handle. One whose record did not arrive (yet) gets its
    /// id now and the rest when the record comes.
    pub(crate) fn by_handle(&mut self, handle: u32, now_ns: u64) -> FileRef {
        if let Some(known) = self.handles.get(&handle)
            && let Some(slot) = self.slot_of(known)
            && let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut)
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
        let id = self
            .slots
            .get(slot as usize)
            .and_then(Option::as_ref)
            .map_or(0, |f| f.id);
        self.put_handle(
            handle,
            Handle {
                slot,
                file_id: id,
                path: None,
            },
        );
        self.write(slot);
        FileRef { id, path: None }
    }

    /// Writes the row of a file again that a row refers to at `now_ns`, and the path
    /// by which `handle` reaches it, when that was done long ago.
    fn refresh(&mut self, slot: u32, has_path: bool, handle: u32, now_ns: u64) {
        let Some(age) = self.refresh_ns else { return };
        let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        if now_ns.saturating_sub(file.written_ns) <= age {
            return;
        }
        file.written_ns = now_ns;
        let (id, complete, mnt_ns) = (file.id, file.path_complete, file.mnt_ns);
        self.write(slot);
        let known = self.handles.get(&handle).filter(|_| has_path);
        if let Some(path) = known.and_then(|handle| handle.path.clone()) {
            let text = lossless(&path);
            self.path_rows.file_id.push(id);
            self.path_rows.ts_ns.push(signed(now_ns));
            self.path_rows
                .path
                .push(self.path_strings.intern(text.as_bytes()));
            self.path_rows.path_complete.push(complete);
            self.path_rows.deleted.push(false);
            self.path_rows.mnt_ns.push(namespace(mnt_ns));
        }
    }

    /// Path of the file behind a handle, when it is known.
    pub(crate) fn path_of(&self, handle: u32) -> Option<&[u8]> {
        let known = self.handles.get(&handle)?;
        self.slot_of(known)?;
        known.path.as_deref()
    }

    /// The file that stat described by device (as st_dev) and inode: the latest
    /// generation that is known, or a new one whose generation is not known.
    /// `path` may lead to it by symbolic links.
    pub(crate) fn by_stat(&mut self, dev: u64, ino: u64, path: Option<&[u8]>, now_ns: u64) -> i64 {
        if let Some(slot) = self.inodes.get(&(dev, ino)).copied()
            && let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut)
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
        let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return NULL_I64;
        };
        file.path = path.map(Arc::from);
        let id = file.id;
        self.write(slot);
        id
    }

    /// The rows that changed.
    pub(crate) fn take(&mut self) -> (Taken<FileRows>, Taken<FilePathRows>) {
        self.find_on_host();
        self.epoch = self.epoch.wrapping_add(1);
        let files = (
            std::mem::take(&mut self.rows),
            std::mem::take(&mut self.strings),
        );
        let paths = (
            std::mem::take(&mut self.path_rows),
            std::mem::take(&mut self.path_strings),
        );
        (files, paths)
    }

    /// The slot of a handle, unless its file was forgotten.
    fn slot_of(&self, handle: &Handle) -> Option<u32> {
        let file = self.slots.get(handle.slot as usize)?.as_ref()?;
        (file.id == handle.file_id).then_some(handle.slot)
    }

    fn is_placeholder(&self, slot: u32) -> bool {
        let file = self.slots.get(slot as usize).and_then(Option::as_ref);
        file.is_some_and(|f| f.identity.is_none())
    }

    fn adoptable(&self, dev: u64, ino: u64) -> Option<u32> {
        let slot = *self.inodes.get(&(dev, ino))?;
        let file = self.slots.get(slot as usize)?.as_ref()?;
        file.identity
            .is_some_and(|(_, _, generation)| generation.is_none())
            .then_some(slot)
    }

    /// A file of an odd file system that stat has described under another
    /// device and that lies where `record` says.
    fn described_elsewhere(&self, record: &FileRecord, components: &[u8]) -> Option<u32> {
        let slot = *self
            .aliases
            .described
            .get(&record.ino)
            .filter(|_| aliases::stat_shows_other_devices(record.fs_magic))?;
        let file = self.slots.get(slot as usize)?.as_ref()?;
        let (_, ino, generation) = file.identity?;
        (ino == record.ino
            && generation.is_none()
            && file.path.as_deref() == Some(&*display_path(record, components)))
        .then_some(slot)
    }

    /// The open file of an odd file system that lies at `path`, to which stat
    /// gave inode `ino` under a device that is not known.
    fn opened_elsewhere(&self, ino: u64, path: &[u8]) -> Option<u32> {
        let slot = *self.aliases.opened.get(&ino)?;
        let file = self.slots.get(slot as usize)?.as_ref()?;
        let (_, known, _) = file.identity?;
        (known == ino && file.path.as_deref() == Some(path)).then_some(slot)
    }

    /// Device and inode under which stat shows the file in `slot`, too.
    fn add_alias(&mut self, slot: u32, inode: (u64, u64)) {
        let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
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
        let file = self.slots.get(slot as usize).and_then(Option::as_ref);
        file.map_or(NULL_I64, |f| f.id)
    }

    fn identify(&mut self, slot: u32, identity: Identity) {
        let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
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
        let Some(known) = self.slots.get(slot as usize).and_then(Option::as_ref) else {
            return;
        };
        let (identity, path, path_complete) =
            (known.identity, known.path.clone(), known.path_complete);
        let (file_type, fs_magic, size) = (known.file_type, known.fs_magic, known.size);
        if let Some(file) = self
            .slots
            .get_mut(placeholder as usize)
            .and_then(Option::as_mut)
        {
            (file.identity, file.path, file.path_complete) = (identity, path, path_complete);
            (file.file_type, file.fs_magic, file.size) = (file_type, fs_magic, size);
        }
        self.write(placeholder);
        // Nothing refers to it any longer.
        if let Some(file) = self.slots.get_mut(placeholder as usize) {
            *file = None;
            self.free.push(placeholder);
        }
    }

    fn add(&mut self, now_ns: u64) -> u32 {
        self.make_room();
        self.last_id += 1;
        let file = File {
            id: self.last_id,
            identity: None,
            first_seen_ns: now_ns,
            path: None,
            path_complete: false,
            file_type: FileType::Unknown,
            fs_magic: None,
            size: None,
            alias: None,
            mnt_ns: 0,
            elsewhere: None,
            host_path: None,
            known_paths: Vec::new(),
            row: None,
            written_ns: now_ns,
            used: false,
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(file);
        }
        self.order.push_back((slot, self.last_id));
        // Ids that were given twice leave their entries behind.
        if self.order.len() > 2 * self.slots.len() + 1024 {
            let slots = &self.slots;
            self.order.retain(|(slot, id)| {
                let file = slots.get(*slot as usize).and_then(Option::as_ref);
                file.is_some_and(|f| f.id == *id)
            });
        }
        slot
    }

    /// Forgets the oldest files that were not used lately.
    fn make_room(&mut self) {
        while self.slots.len() - self.free.len() >= self.limit {
            let Some((slot, id)) = self.order.pop_front() else {
                break;
            };
            let Some(place) = self.slots.get_mut(slot as usize) else {
                continue;
            };
            let Some(file) = place.as_mut().filter(|f| f.id == id) else {
                continue;
            };
            if std::mem::take(&mut file.used) {
                self.order.push_back((slot, id));
                continue;
            }
            if let Some(identity) = file.identity {
                self.identities.remove(&identity);
                self.aliases.forget(identity.1, slot);
                let inode = (identity.0, identity.1);
                for inode in [Some(inode), file.alias].into_iter().flatten() {
                    if self.inodes.get(&inode) == Some(&slot) {
                        self.inodes.remove(&inode);
                    }
                }
            }
            *place = None;
            self.free.push(slot);
        }
    }

    fn put_handle(&mut self, handle: u32, to: Handle) {
        // Handles of forgotten files, and many handles of one file.
        if self.handles.len() >= 2 * self.limit && !self.handles.contains_key(&handle) {
            let slots = &self.slots;
            self.handles.retain(|_, h| {
                let file = slots.get(h.slot as usize).and_then(Option::as_ref);
                file.is_some_and(|f| f.id == h.file_id)
            });
            if self.handles.len() >= 2 * self.limit {
                self.handles.clear();
            }
        }
        self.handles.insert(handle, to);
    }

    /// Brings the row of a file up to date.
    fn write(&mut self, slot: u32) {
        let Self {
            slots,
            rows,
            strings,
            epoch,
            ..
        } = self;
        let Some(file) = slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        let (dev, ino, generation) = file.identity.unwrap_or((0, 0, None));
        let at = match file.row {
            Some((of, at)) if of == *epoch => at,
            _ => {
                let at = rows.file_id.len();
                file.row = Some((*epoch, at));
                at
            }
        };
        let tag = format!("{dev}|{ino}|{}", file.first_seen_ns);
        let (mut path, mut raw) = (StrId::NULL, StrId::NULL);
        if let Some(bytes) = &file.path {
            path = strings.intern(lossless(bytes).as_bytes());
            if std::str::from_utf8(bytes).is_err() {
                raw = strings.intern(bytes);
            }
        }
        put(&mut rows.file_id, at, file.id);
        put(&mut rows.dev, at, signed(dev));
        put(&mut rows.ino, at, ino as i64);
        put(
            &mut rows.generation,
            at,
            generation.map_or(NULL_I64, i64::from),
        );
        put(&mut rows.file_tag, at, strings.intern(tag.as_bytes()));
        put(&mut rows.path, at, path);
        put(&mut rows.path_raw, at, raw);
        put(
            &mut rows.file_type,
            at,
            strings.intern(file.file_type.name().as_bytes()),
        );
        let fs_type = file
            .fs_magic
            .map(|m| strings.intern(fs::fs_type(m).as_bytes()));
        put(&mut rows.fs_type, at, fs_type.unwrap_or(StrId::NULL));
        put(&mut rows.size, at, file.size.map_or(NULL_I64, signed));
        put(&mut rows.first_seen_ns, at, signed(file.first_seen_ns));
        put(&mut rows.path_complete, at, file.path_complete);
        put(&mut rows.mnt_ns, at, namespace(file.mnt_ns));
        let host_path = file
            .host_path
            .as_ref()
            .map(|path| strings.intern(lossless(path).as_bytes()));
        put(&mut rows.host_path, at, host_path.unwrap_or(StrId::NULL));
    }
}

/// The path of a file as /proc/PID/fd shows it, from its components.
fn display_path(record: &FileRecord, components: &[u8]) -> Vec<u8> {
    let ino = record.ino;
    match record.fs_magic {
        PIPE_FS => format!("pipe:[{ino}]").into_bytes(),
        SOCK_FS => format!("socket:[{ino}]").into_bytes(),
        // As /proc/PID/fd shows it.
        PID_FS => b"anon_inode:[pidfd]".to_vec(),
        // There the kind of the namespace stands before its number.
        NS_FS => format!("ns:[{ino}]").into_bytes(),
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

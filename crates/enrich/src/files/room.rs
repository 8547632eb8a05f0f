//! Memory of files and handles: new ones, and old ones that are forgotten for them.

use std::sync::Arc;

use super::fs::FileType;
use super::{File, Files, Handle, Identity, at, at_mut};

/// Memory of a file without its paths: itself, and its entries in the maps, which are filled to a
/// half on average.
const FILE_BYTES: usize = size_of::<File>() + 2 * (size_of::<Identity>() + 48);
/// Memory of a handle without its path.
const HANDLE_BYTES: usize = 2 * (size_of::<Handle>() + 8);
/// Of an allocation: what a reference count and the allocator take.
const ALLOCATION_BYTES: usize = 32;

impl File {
    pub(super) fn memory(&self) -> usize {
        let elsewhere = self.elsewhere.as_ref().map(|(_, path)| path);
        let paths = [self.path.as_ref(), elsewhere, self.host_path.as_ref()];
        let paths = paths.into_iter().flatten();
        FILE_BYTES
            + paths.map(|p| p.len() + ALLOCATION_BYTES).sum::<usize>()
            + self.known_paths.capacity() * size_of::<u64>()
    }
}

impl Files {
    pub(super) fn add(&mut self, now_ns: u64) -> u32 {
        self.make_room();
        self.last_id += 1;
        let file = File {
            id: self.last_id,
            identity: None,
            first_seen_at_ns: now_ns,
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
            bytes: 0,
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
        self.count(slot);
        self.order.push_back((slot, self.last_id));
        // Ids that were given twice leave their entries behind.
        if self.order.len() > 2 * self.slots.len() + 1024 {
            let slots = &self.slots;
            self.order.retain(|(slot, id)| {
                let file = at(slots, *slot);
                file.is_some_and(|f| f.id == *id)
            });
        }
        slot
    }

    fn remembered(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Updates the memory of a file.
    pub(super) fn count(&mut self, slot: u32) {
        if let Some(file) = at_mut(&mut self.slots, slot) {
            let bytes = file.memory();
            self.file_bytes = self.file_bytes - file.bytes + bytes;
            file.bytes = bytes;
        }
    }

    /// Memory of a handle: its path, if it differs from the file's path.
    fn handle_memory(slots: &[Option<File>], handle: &Handle) -> usize {
        let file = at(slots, handle.slot);
        let shared = file.and_then(|f| f.path.as_ref());
        let own = handle
            .path
            .as_ref()
            .filter(|path| !shared.is_some_and(|shared| Arc::ptr_eq(shared, path)));
        HANDLE_BYTES + own.map_or(0, |path| path.len() + ALLOCATION_BYTES)
    }

    pub(super) fn put_handle(&mut self, handle: u32, to: Handle) {
        // Many handles of one file.
        let many =
            self.handles.len() >= 2 * self.limit.files || self.handle_bytes > self.limit.bytes / 2;
        if many && !self.handles.contains_key(&handle) {
            self.forget_handles();
            if self.handles.len() >= 2 * self.limit.files
                || self.handle_bytes > self.limit.bytes / 2
            {
                self.handles.clear();
                self.handle_bytes = 0;
            }
        }
        self.handle_bytes += Self::handle_memory(&self.slots, &to);
        if let Some(before) = self.handles.insert(handle, to) {
            let bytes = Self::handle_memory(&self.slots, &before);
            self.handle_bytes = self.handle_bytes.saturating_sub(bytes);
        }
    }

    /// Forgets the oldest files that were not used lately, and their handles: an eighth at a
    /// time, as looking for the handles takes as long as there are handles.
    pub(super) fn make_room(&mut self) {
        let bytes = self.file_bytes + self.handle_bytes;
        if self.remembered() < self.limit.files && bytes <= self.limit.bytes {
            return;
        }
        let files = self.limit.files - self.limit.files.div_ceil(8);
        let bytes = self.limit.bytes - self.limit.bytes / 8;
        while self.remembered() > files || self.file_bytes + self.handle_bytes > bytes {
            let before = self.remembered();
            while self.remembered() > files || self.file_bytes + self.handle_bytes > bytes {
                if !self.forget_oldest() {
                    break;
                }
            }
            self.forget_handles();
            if self.remembered() == before {
                break;
            }
        }
    }

    /// Forgets the oldest file that was not used lately; false when there is none.
    fn forget_oldest(&mut self) -> bool {
        while let Some((slot, id)) = self.order.pop_front() {
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
            // Its handles go later: about as much as all have on average.
            self.handle_bytes -= self.handle_bytes / self.remembered().max(1);
            self.forget(slot);
            return true;
        }
        false
    }

    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(file) = self.slots.get_mut(slot as usize).and_then(Option::take) {
            self.file_bytes -= file.bytes;
            self.free.push(slot);
        }
    }

    /// Forgets the handles of forgotten files.
    fn forget_handles(&mut self) {
        let slots = &self.slots;
        let mut bytes = 0;
        self.handles.retain(|_, h| {
            let file = at(slots, h.slot);
            let stays = file.is_some_and(|f| f.id == h.file_id);
            if stays {
                bytes += Self::handle_memory(slots, h);
            }
            stays
        });
        self.handle_bytes = bytes;
    }
}

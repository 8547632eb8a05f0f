//! Rows of tables `files` and `file_paths`.

use fathom_model::batch::NULL_I64;
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{FilePathRow, FilePathRows, FileRow, FileRows};
use fathom_model::{StrId, StringTable};

use super::{Files, at_mut, fs};
use crate::{nonzero, signed};

/// Rows of one table and their strings.
pub(crate) type Taken<T> = (T, StringTable);

impl Files {
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

    /// Memory of the rows that were not taken: their strings.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.strings.bytes() + self.path_strings.bytes()
    }

    /// Writes the row of a file again that a row refers to at `now_ns`, and the path
    /// by which `handle` reaches it, when that was done long ago.
    pub(super) fn refresh(&mut self, slot: u32, has_path: bool, handle: u32, now_ns: u64) {
        let Some(age) = self.refresh_ns else { return };
        let Some(file) = at_mut(&mut self.slots, slot) else {
            return;
        };
        if now_ns.saturating_sub(file.written_ns) <= age {
            return;
        }
        file.written_ns = now_ns;
        let mut row = FilePathRow {
            file_id: file.id,
            ts_ns: signed(now_ns),
            path_complete: file.path_complete,
            mount_namespace: nonzero(file.mnt_ns),
            ..FilePathRow::default()
        };
        self.write(slot);
        if let Some(known) = self.handles.get(&handle).filter(|_| has_path)
            && let Some(path) = &known.path
        {
            row.path = self
                .path_strings
                .intern(escape_invalid_utf8(path).as_bytes());
            row.deleted = known.deleted;
            self.path_rows.push(row);
        }
    }

    /// Brings the row of a file up to date.
    pub(super) fn write(&mut self, slot: u32) {
        let Self {
            slots,
            rows,
            strings,
            epoch,
            ..
        } = self;
        let Some(file) = at_mut(slots, slot) else {
            return;
        };
        let (dev, ino, generation) = file.identity.unwrap_or((0, 0, None));
        let at = match file.row {
            Some((of, at)) if of == *epoch => at,
            _ => {
                let at = rows.len();
                file.row = Some((*epoch, at));
                at
            }
        };
        let tag = format!("{dev}|{ino}|{}", file.first_seen_at_ns);
        let (mut path, mut raw) = (StrId::NULL, StrId::NULL);
        if let Some(bytes) = &file.path {
            path = strings.intern(escape_invalid_utf8(bytes).as_bytes());
            if std::str::from_utf8(bytes).is_err() {
                raw = strings.intern(bytes);
            }
        }
        rows.put(
            at,
            FileRow {
                file_id: file.id,
                dev: signed(dev),
                ino: ino as i64,
                generation: generation.map_or(NULL_I64, i64::from),
                file_tag: strings.intern(tag.as_bytes()),
                path,
                path_raw: raw,
                file_type: strings.intern(file.file_type.name().as_bytes()),
                fs_type: file
                    .fs_magic
                    .map_or(StrId::NULL, |m| strings.intern(fs::fs_type(m).as_bytes())),
                size: file.size.map_or(NULL_I64, signed),
                first_seen_at_ns: signed(file.first_seen_at_ns),
                path_complete: file.path_complete,
                mount_namespace: nonzero(file.mnt_ns),
                host_path: file.host_path.as_ref().map_or(StrId::NULL, |path| {
                    strings.intern(escape_invalid_utf8(path).as_bytes())
                }),
            },
        );
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
                self.count(slot as u32);
                self.write(slot as u32);
            }
        }
    }
}

//! Files of a session: each appears whole or not at all.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fathom_model::meta::SessionMeta;
use fathom_model::tables::TABLES;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::footer::{self, Unreadable};
use crate::format::layout::{META_FILE, META_TEMPORARY, PartRange, RESERVE_FILE};
use crate::format::meta;

/// Room that is kept for the end of a recording on a full disk.
const RESERVE_BYTES: u64 = 2 << 20;
/// How much of it is released at a time.
const RESERVE_STEP: u64 = 256 << 10;
/// The part of it that only `session.json` takes: a session is whole when that is written.
pub(crate) const META_RESERVE: u64 = 64 << 10;

/// Writes the files of one session.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    dir: Dir,
    /// The tables' folders, in the order of [`TABLES`], once they were needed: what takes
    /// their names later changes nothing.
    tables: Arc<Vec<OnceLock<Dir>>>,
}

impl Storage {
    pub(crate) fn new(dir: Dir) -> Self {
        Self {
            dir,
            tables: Arc::new(TABLES.iter().map(|_| OnceLock::new()).collect()),
        }
    }

    /// Where the session was opened, for messages.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn folder(&self) -> &Dir {
        &self.dir
    }

    /// Where the folder of a table is, for messages.
    pub(crate) fn table_dir(&self, table: &str) -> PathBuf {
        self.dir().join(table)
    }

    /// Where a part is, for messages.
    pub(crate) fn part(&self, table: &str, range: PartRange) -> PathBuf {
        self.table_dir(table).join(range.to_string())
    }

    /// The folder of a table.
    pub(crate) fn table(&self, table: &str) -> Result<Dir, SessionError> {
        self.table_by(table, |dir, name| dir.own_dir(name))
    }

    /// The same; it is made if it is not there.
    pub(crate) fn make_table(&self, table: &str) -> Result<Dir, SessionError> {
        self.table_by(table, |dir, name| dir.make_dir(name))
    }

    fn table_by(
        &self,
        table: &str,
        open: impl Fn(&Dir, &str) -> Result<Dir, SessionError>,
    ) -> Result<Dir, SessionError> {
        let kept = TABLES.iter().position(|t| t.name == table);
        let kept = kept.and_then(|i| self.tables.get(i));
        if let Some(dir) = kept.and_then(OnceLock::get) {
            return Ok(dir.clone());
        }
        let dir = open(&self.dir, table)?;
        // Of two threads either may be first.
        Ok(kept.map_or(dir.clone(), |kept| kept.get_or_init(|| dir).clone()))
    }

    /// Opens a part to take its rows, and verifies them: the output gets its own checksums.
    pub(crate) fn open_part(&self, table: &str, range: PartRange) -> Result<File, SessionError> {
        let path = self.part(table, range);
        let footer = footer::read(&self.table(table)?, &range.to_string());
        let file = footer.and_then(|footer| footer.check_rows().map(|()| footer.file));
        file.map_err(|wrong| match wrong {
            Unreadable::Gone => SessionError::io("open", &path)(io::ErrorKind::NotFound.into()),
            Unreadable::Bad(reason) => SessionError::Part { path, reason },
        })
    }

    pub(crate) fn write_part(
        &self,
        table: &str,
        range: PartRange,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        let dir = self.table(table)?;
        write_whole(
            &dir,
            &range.temporary_name(),
            &range.to_string(),
            bytes,
            false,
        )
    }

    /// Creates the file in which a part is built that takes several writes;
    /// [`Storage::publish`] makes it a part, [`Storage::give_up`] removes it.
    pub(crate) fn create_part(
        &self,
        table: &str,
        range: PartRange,
    ) -> Result<(File, PathBuf), SessionError> {
        let temporary = self.table_dir(table).join(range.temporary_name());
        let file = self
            .table(table)?
            .create_anew(&range.temporary_name())
            .map_err(SessionError::io("create", &temporary))?;
        Ok((file, temporary))
    }

    /// Gives a part that is complete its name.
    pub(crate) fn publish(&self, table: &str, range: PartRange) -> Result<(), SessionError> {
        self.table(table)?
            .rename(&range.temporary_name(), &range.to_string())
            .map_err(SessionError::io("create", &self.part(table, range)))
    }

    /// Removes what there is of a part that will not be complete.
    pub(crate) fn give_up(&self, table: &str, range: PartRange) {
        // Gives the room back; readers do not look at the file anyway.
        if let Ok(dir) = self.table(table) {
            let _ = dir.remove(range.temporary_name());
        }
    }

    /// Makes the names of a table's parts safe from a power failure.
    pub(crate) fn sync_table(&self, table: &str) -> Result<(), SessionError> {
        self.table(table)?
            .sync()
            .map_err(SessionError::io("write", &self.table_dir(table)))
    }

    /// Removes a part that was merged into another.
    pub(crate) fn remove_part(&self, table: &str, range: PartRange) -> Result<(), SessionError> {
        self.table(table)?
            .remove_if_there(&range.to_string())
            .map_err(SessionError::io("remove", &self.part(table, range)))
    }

    /// An empty file next to the tables' folders.
    pub(crate) fn create_beside(&self, name: &str) -> Result<(File, PathBuf), SessionError> {
        let path = self.dir().join(name);
        let file = self
            .dir
            .create_anew(name)
            .map_err(SessionError::io("create", &path))?;
        Ok((file, path))
    }

    /// Replaces `session.json`; with `durable` it survives a power failure.
    pub(crate) fn write_meta(&self, meta: &SessionMeta, durable: bool) -> Result<(), SessionError> {
        let path = self.dir().join(META_FILE);
        let json = meta::to_json(meta)
            .map_err(|e| SessionError::io("write", &path)(io::Error::other(e)))?;
        write_whole(&self.dir, META_TEMPORARY, META_FILE, &json, durable)?;
        if durable {
            self.dir
                .sync()
                .map_err(SessionError::io("write", self.dir()))?;
        }
        Ok(())
    }

    /// Takes room on disk, as much as there is up to [`RESERVE_BYTES`].
    pub(crate) fn fill_reserve(&self) -> Result<(), SessionError> {
        self.dir
            .create_anew(RESERVE_FILE)
            .and_then(|file| grow(file, RESERVE_BYTES))
            .map_err(SessionError::io("write", &self.dir().join(RESERVE_FILE)))
    }

    /// Whether the reserve has its full size.
    pub(crate) fn reserve_is_full(&self) -> bool {
        self.reserve_bytes() >= RESERVE_BYTES
    }

    fn reserve_bytes(&self) -> u64 {
        let stat = self.dir.stat(RESERVE_FILE).ok().flatten();
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Gives some of what the reserve has above `least` back to the disk; false when
    /// nothing is left.
    fn release_reserve(&self, least: u64) -> bool {
        let length = self.reserve_bytes();
        let shorter = length.saturating_sub(RESERVE_STEP).max(least);
        let shorten = || self.dir.open_to_write(RESERVE_FILE)?.set_len(shorter);
        shorter < length && shorten().is_ok()
    }

    /// Takes back what the reserve had before, as far as there is room.
    fn restore_reserve(&self, bytes: u64) {
        if self.reserve_bytes() < bytes {
            // On a full disk this fails when it has taken what there is.
            let _ = self
                .dir
                .open_to_write(RESERVE_FILE)
                .and_then(|file| grow(file, bytes));
        }
    }

    /// Removes the reserve at the end.
    pub(crate) fn remove_reserve(&self) {
        // A file too many does no harm.
        let _ = self.dir.remove(RESERVE_FILE);
    }

    /// Runs `write`; if the disk is full, again and again with more of the reserve released, down
    /// to `least` bytes. Unused space goes back: otherwise the next rows would take it, and nothing
    /// would be left for the end.
    pub(crate) fn with_reserve<T>(
        &self,
        least: u64,
        mut write: impl FnMut() -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let before = self.reserve_bytes();
        let result = loop {
            match write() {
                Err(e) if e.is_full() && self.release_reserve(least) => {}
                result => break result,
            }
        };
        self.restore_reserve(before);
        result
    }
}

/// Writes noise until `file` has `bytes` bytes, so that a file system that compresses
/// keeps the room.
fn grow(mut file: File, bytes: u64) -> io::Result<()> {
    let mut length = file.seek(SeekFrom::End(0))?;
    let mut seed = 0x9e37_79b9_7f4a_7c15 ^ length;
    let mut block = Vec::with_capacity(RESERVE_STEP as usize);
    while length < bytes {
        block.clear();
        while (block.len() as u64) < RESERVE_STEP.min(bytes - length) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            block.extend_from_slice(&seed.to_le_bytes());
        }
        file.write_all(&block)?;
        length += block.len() as u64;
    }
    Ok(())
}

/// Writes a file in `dir` that has its name when it is complete.
pub(crate) fn write_whole(
    dir: &Dir,
    temporary: &str,
    name: &str,
    bytes: &[u8],
    durable: bool,
) -> Result<(), SessionError> {
    let write = || -> io::Result<()> {
        let mut file = dir.create_anew(temporary)?;
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        dir.rename(temporary, name)
    };
    write().map_err(|e| {
        // Frees the space; if that fails too, `e` is more informative.
        let _ = dir.remove(temporary);
        SessionError::io("write", &dir.path().join(name))(e)
    })
}

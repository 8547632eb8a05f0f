//! Files of a session: each appears whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_model::meta::SessionMeta;

use crate::error::SessionError;
use crate::layout::{META_FILE, META_TEMPORARY, PartRange, RESERVE_FILE};

/// Room that is kept for the end of a recording on a full disk.
const RESERVE_BYTES: u64 = 2 << 20;
/// How much of it is released at a time.
const RESERVE_STEP: u64 = 256 << 10;
/// The part of it that only `session.json` takes: a session is whole when that is written.
pub(crate) const META_RESERVE: u64 = 64 << 10;

/// Writes the files of one session.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    dir: PathBuf,
}

impl Storage {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn table_dir(&self, table: &str) -> PathBuf {
        self.dir.join(table)
    }

    pub(crate) fn part(&self, table: &str, range: PartRange) -> PathBuf {
        self.table_dir(table).join(range.to_string())
    }

    /// Writes a whole part.
    pub(crate) fn write_part(
        &self,
        table: &str,
        range: PartRange,
        bytes: &[u8],
    ) -> Result<(), SessionError> {
        let temporary = self.table_dir(table).join(range.temporary_name());
        write_whole(&temporary, &self.part(table, range), bytes, false)
    }

    /// Creates the file in which a part is built that takes several writes;
    /// [`Storage::publish`] makes it a part.
    pub(crate) fn create_part(
        &self,
        table: &str,
        range: PartRange,
    ) -> Result<(File, PathBuf), SessionError> {
        let temporary = self.table_dir(table).join(range.temporary_name());
        let file = create_new(&temporary).map_err(SessionError::io("create", &temporary))?;
        Ok((file, temporary))
    }

    /// Gives a part that is complete its name.
    pub(crate) fn publish(&self, table: &str, range: PartRange) -> Result<(), SessionError> {
        let temporary = self.table_dir(table).join(range.temporary_name());
        let path = self.part(table, range);
        fs::rename(&temporary, &path).map_err(SessionError::io("create", &path))
    }

    /// Makes the names of a table's parts safe from a power failure.
    pub(crate) fn sync_table(&self, table: &str) -> Result<(), SessionError> {
        let dir = self.table_dir(table);
        File::open(&dir)
            .and_then(|dir| dir.sync_all())
            .map_err(SessionError::io("write", &dir))
    }

    /// Removes a part that was merged into another.
    pub(crate) fn remove_part(&self, table: &str, range: PartRange) -> Result<(), SessionError> {
        let path = self.part(table, range);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(SessionError::io("remove", &path)(e))
            }
            _ => Ok(()),
        }
    }

    /// An empty file beside the tables' folders.
    pub(crate) fn create_beside(&self, name: &str) -> Result<(File, PathBuf), SessionError> {
        let path = self.dir.join(name);
        let file = create_new(&path).map_err(SessionError::io("create", &path))?;
        Ok((file, path))
    }

    /// Replaces `session.json`; with `durable` it survives a power failure.
    pub(crate) fn write_meta(&self, meta: &SessionMeta, durable: bool) -> Result<(), SessionError> {
        let path = self.dir.join(META_FILE);
        let mut json = serde_json::to_vec_pretty(meta)
            .map_err(|e| SessionError::io("write", &path)(io::Error::other(e)))?;
        json.push(b'\n');
        write_whole(&self.dir.join(META_TEMPORARY), &path, &json, durable)?;
        if durable {
            File::open(&self.dir)
                .and_then(|dir| dir.sync_all())
                .map_err(SessionError::io("write", &self.dir))?;
        }
        Ok(())
    }

    /// Takes room on disk, as much as there is up to [`RESERVE_BYTES`].
    pub(crate) fn fill_reserve(&self) -> Result<(), SessionError> {
        let path = self.dir.join(RESERVE_FILE);
        create_new(&path)
            .and_then(|file| grow(file, RESERVE_BYTES))
            .map_err(SessionError::io("write", &path))
    }

    /// Whether the reserve has its full size.
    pub(crate) fn reserve_is_full(&self) -> bool {
        fs::metadata(self.dir.join(RESERVE_FILE)).is_ok_and(|m| m.len() >= RESERVE_BYTES)
    }

    /// Bytes that the reserve has.
    fn reserve_bytes(&self) -> u64 {
        fs::metadata(self.dir.join(RESERVE_FILE)).map_or(0, |m| m.len())
    }

    /// Gives some of what the reserve has above `least` back to the disk; false when
    /// nothing is left.
    fn release_reserve(&self, least: u64) -> bool {
        let length = self.reserve_bytes();
        let shorter = length.saturating_sub(RESERVE_STEP).max(least);
        let path = self.dir.join(RESERVE_FILE);
        let shorten = || OpenOptions::new().write(true).open(&path)?.set_len(shorter);
        shorter < length && shorten().is_ok()
    }

    /// Takes back what the reserve had before, as far as there is room.
    fn restore_reserve(&self, bytes: u64) {
        if self.reserve_bytes() < bytes {
            let path = self.dir.join(RESERVE_FILE);
            // On a full disk this fails when it has taken what there is.
            let _ = OpenOptions::new()
                .append(true)
                .open(path)
                .and_then(|file| grow(file, bytes));
        }
    }

    /// Removes the reserve at the end.
    pub(crate) fn remove_reserve(&self) {
        // A file too many does no harm.
        let _ = fs::remove_file(self.dir.join(RESERVE_FILE));
    }

    /// Does `write`, and when the disk is full again and again with more of the reserve
    /// released, down to `least` bytes. What `write` did not need goes back: otherwise
    /// the rows that come next would take it, and nothing would be left for the end.
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
    let mut length = file.metadata()?.len();
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

/// A new file. What a killed recorder left under the name is removed first;
/// nothing that somebody else put there is followed.
fn create_new(path: &Path) -> io::Result<File> {
    let create = || OpenOptions::new().write(true).create_new(true).open(path);
    match create() {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()
        }
        result => result,
    }
}

/// Writes a file that has its name when it is complete.
pub(crate) fn write_whole(
    temporary: &Path,
    path: &Path,
    bytes: &[u8],
    durable: bool,
) -> Result<(), SessionError> {
    let write = || -> io::Result<()> {
        let mut file = create_new(temporary)?;
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        fs::rename(temporary, path)
    };
    write().map_err(|e| {
        // Gives the room back; if that fails too, `e` tells more.
        let _ = fs::remove_file(temporary);
        SessionError::io("write", path)(e)
    })
}

//! Tables that the user adds to a closed session.

use std::fs::File;
use std::path::{Path, PathBuf};

use fathom_model::meta::{OwnTable, SessionMeta, State};

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::checksum::{self, Wrong};
use crate::format::layout::{OWN_FOLDER, own_file, own_temporary};
use crate::format::lock::RecorderLock;
use crate::read::own::Own;
use crate::read::session::Session;
use crate::write::storage::Storage;

/// Tables that a session may have besides fathom's.
pub const MOST_OWN_TABLES: usize = 64;
/// Largest file of such a table.
pub const MOST_OWN_BYTES: u64 = 1 << 30;

/// Adds a table to a closed session. Readers see all of it or none; without [`OwnAddition::finish`]
/// the session stays as it was.
pub struct OwnAddition {
    storage: Storage,
    folder: Dir,
    meta: SessionMeta,
    /// The file that the new one replaces.
    before: Option<Own>,
    name: String,
    file: File,
    published: bool,
    _lock: RecorderLock,
}

impl OwnAddition {
    /// Begins to add table `name`, which must be [`crate::is_own_name`]. With `force` a table of the
    /// user's of that name is replaced.
    ///
    /// # Errors
    /// The errors of [`Session::open`]; [`SessionError::Unfit`] for a session that is not closed, is
    /// damaged, or has too many tables; [`SessionError::OwnTableExists`]; [`SessionError::Busy`],
    /// [`SessionError::Foreign`], [`SessionError::Io`].
    pub fn begin(dir: &Path, name: &str, force: bool) -> Result<Self, SessionError> {
        let root = Dir::open_own(dir)?;
        let lock = RecorderLock::acquire(&root)?;
        let session = Session::glance(dir)?;
        let unfit = |reason| SessionError::Unfit {
            path: dir.to_owned(),
            reason,
        };
        if session.meta().state != State::Complete {
            return Err(unfit("its recorder has not closed it"));
        }
        if session.is_damaged() || session.was_rebuilt() {
            return Err(unfit("it is damaged"));
        }
        let known = &session.meta().own_tables;
        if known.contains_key(name) && !force {
            return Err(SessionError::OwnTableExists {
                path: dir.to_owned(),
                name: name.to_owned(),
            });
        }
        if !known.contains_key(name) && known.len() >= MOST_OWN_TABLES {
            return Err(unfit("it has 64 tables of yours, which is the limit"));
        }
        let before = session.own_tables().iter().find(|own| own.name == name);
        let before = before.cloned();
        let folder = root.make_dir(OWN_FOLDER)?;
        let path = folder.path().join(own_temporary(name));
        let file = folder.create_anew(&own_temporary(name));
        Ok(Self {
            file: file.map_err(SessionError::io("create", &path))?,
            storage: Storage::new(root),
            folder,
            meta: session.meta().clone(),
            before,
            name: name.to_owned(),
            published: false,
            _lock: lock,
        })
    }

    /// The file to write the table to, as Parquet.
    pub fn file(&self) -> &File {
        &self.file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(own_temporary(&self.name))
    }

    /// Publishes the table, which has `rows` rows and was made of `source`.
    ///
    /// # Errors
    /// [`SessionError::LargeOwnTable`], [`SessionError::Io`].
    pub fn finish(mut self, rows: u64, source: &Path) -> Result<(), SessionError> {
        let path = self.path();
        let failed = || SessionError::io("write", &path);
        self.file.sync_all().map_err(failed())?;
        let bytes = self.file.metadata().map_err(failed())?.len();
        if bytes > MOST_OWN_BYTES {
            return Err(SessionError::LargeOwnTable {
                name: self.name.clone(),
                bytes,
            });
        }
        let xxh64 = checksum::of_file(&self.file).map_err(|wrong| match wrong {
            Wrong::Unreadable(e) => SessionError::io("read", &path)(e),
            Wrong::Changed => SessionError::io("read", &path)(std::io::ErrorKind::Other.into()),
        })?;
        let file = own_file(&self.name, xxh64);
        self.folder
            .rename(&own_temporary(&self.name), &file)
            .map_err(failed())?;
        self.published = true;
        self.folder.sync().map_err(failed())?;
        let table = OwnTable {
            rows,
            bytes,
            xxh64: format!("{xxh64:016x}"),
            source: source.to_string_lossy().into_owned(),
        };
        self.meta.own_tables.insert(self.name.clone(), table);
        self.storage.write_meta(&self.meta, true)?;
        // A file too many does no harm: session.json names the one that counts.
        let old = self.before.take().and_then(|own| {
            let name = own.file.rsplit('/').next()?.to_owned();
            (name != file).then_some(name)
        });
        if let Some(old) = old {
            let _ = self.folder.remove(old);
        }
        Ok(())
    }
}

impl Drop for OwnAddition {
    fn drop(&mut self) {
        if !self.published {
            let _ = self.folder.remove(own_temporary(&self.name));
            // It stays if it has other tables.
            let _ = self.storage.folder().remove_dir(OWN_FOLDER);
        }
    }
}

//! Repairing a session: afterwards it is closed, every file that looks like a part
//! is one that counts, and what could not be saved is said.
//!
//! Rows are deleted only if the session has them elsewhere: unusable files move to a folder of the
//! session that no reader reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fathom_model::meta::{OwnTable, SessionMeta, State};
use fathom_model::tables::{SYSCALLS, TABLES, Table};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use rustix::fs::FileType;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::checksum::check_file;
use crate::format::codec::decode::RowGroupDecoder;
use crate::format::footer::{self, Check, Unreadable};
use crate::format::layout::PartInfo;
use crate::format::layout::{
    META_FILE, META_TEMPORARY, OWN_FOLDER, PartRange, RESERVE_FILE, is_own_file, is_temporary,
    parse_own_file,
};
use crate::format::lock::{self, RecorderLock};
use crate::format::{meta, part, schema};
use crate::maintain::finalize;
use crate::read::own;
use crate::read::session::open_dir;
use crate::write::storage::Storage;

/// Folder in a session for what is moved aside.
const ASIDE: &str = "set-aside";

/// The repairs of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Problems and their repairs, one sentence each; empty for an intact session. Names of files
    /// are escaped.
    pub found: Vec<String>,
    /// Rows that were or will be in no part that counts are named in one of
    /// these sentences.
    pub lost: Vec<String>,
}

/// Repairs the session in `dir`, or with `write` not set says what would be done.
///
/// # Errors
/// [`SessionError::Busy`] while it is recorded, [`SessionError::NotASession`],
/// [`SessionError::Damaged`] if neither `session.json` nor a part contains the metadata,
/// [`SessionError::OtherVersion`], [`SessionError::NotReplaceable`] if something in it leads
/// elsewhere, [`SessionError::Foreign`] if it belongs to another user, unless `write` is not set,
/// [`SessionError::Io`].
pub fn repair(dir: &Path, write: bool) -> Result<Repair, SessionError> {
    let folder = if write {
        // Missing data is reported in the same words as by readers.
        open_dir(dir)?;
        Dir::open_own(dir)?
    } else {
        open_dir(dir)?
    };
    let read = meta::read(&folder);
    let (mut meta, gone) = match read {
        Ok(meta) => (meta, None),
        Err(e @ (SessionError::NotASession { .. } | SessionError::Damaged { .. })) => {
            match meta::from_parts(&folder) {
                Some(meta) => (meta, Some(e)),
                None => return Err(e),
            }
        }
        Err(e) => return Err(e),
    };
    let _lock = if write {
        Some(RecorderLock::acquire(&folder)?)
    } else if lock::is_held_in(&folder) {
        return Err(SessionError::Busy(dir.to_owned()));
    } else {
        None
    };
    let mut work = Work {
        storage: Storage::new(folder),
        write,
        repair: Repair::default(),
    };
    work.repair_session(&mut meta, gone)?;
    Ok(work.repair)
}

struct Work {
    storage: Storage,
    write: bool,
    repair: Repair,
}

/// The contents of a table's folder.
#[derive(Default)]
struct Contents {
    /// Whole parts, each once, in order.
    parts: Vec<PartInfo>,
    /// The largest number that any file has.
    largest: Option<u64>,
}

impl Work {
    fn repair_session(
        &mut self,
        meta: &mut SessionMeta,
        gone: Option<SessionError>,
    ) -> Result<(), SessionError> {
        let dir = self.storage.dir().to_owned();
        let folder = self.storage.folder().clone();
        for file in [META_TEMPORARY, RESERVE_FILE] {
            let kind = folder.kind(file);
            if kind
                .map_err(SessionError::io("read", &dir.join(file)))?
                .is_some()
            {
                self.remove(&folder, file.as_ref(), "left by a recorder that was killed")?;
            }
        }
        match &gone {
            None => {}
            Some(SessionError::Damaged { reason, .. }) => {
                self.set_aside(&folder, META_FILE.as_ref(), META_FILE, reason)?;
                self.found("session.json is rebuilt from the parts".into());
            }
            Some(_) => self.found("session.json is missing: rebuilt from the parts".into()),
        }
        let schemas = schema::all(&dir, meta)?;
        let mut tables = Vec::with_capacity(TABLES.len());
        for (table, schema) in TABLES.iter().zip(&schemas) {
            let mut contents = self.repair_table(table)?;
            if contents.parts.is_empty() {
                self.found(format!(
                    "table {} has no part: added an empty one",
                    table.name
                ));
                if self.write {
                    let range = PartRange::single(contents.largest.map_or(0, |n| n + 1));
                    let path = self.storage.table_dir(table.name);
                    let bytes = part::empty(schema).map_err(SessionError::parquet(&path))?;
                    self.storage.write_part(table.name, range, &bytes)?;
                    contents.parts.push(PartInfo {
                        range,
                        rows: 0,
                        bytes: bytes.len() as u64,
                    });
                }
            }
            self.gaps(table, &contents.parts, meta);
            tables.push(contents.parts);
        }
        self.repair_own(meta, gone.is_some())?;
        let unfinished = meta.state == State::Recording;
        if unfinished {
            self.found("the recorder ended without closing the session: it is closed".into());
        }
        let stored = |tables: &[Vec<PartInfo>]| -> u64 {
            let parts = tables.first().map_or(&[][..], Vec::as_slice);
            parts.iter().map(|p| p.rows).sum()
        };
        if !unfinished && self.repair.found.is_empty() && stored(&tables) != meta.totals.stored {
            self.found("the totals differ from the tables: counted again".into());
        }
        if !unfinished {
            self.missing_rows(&tables, meta);
        }
        if self.repair.found.is_empty() || !self.write {
            return Ok(());
        }
        let missing = meta.totals.missing;
        finalize::finalize(&self.storage, &schemas, &mut tables, meta, true)?;
        if meta.totals.missing > missing {
            let text = format!(
                "{} calls that the kernel had seen are in no table",
                meta.totals.missing
            );
            self.repair.lost.push(text);
        }
        meta.state = State::Complete;
        meta.history.repairs.append(&mut self.repair.lost.clone());
        if unfinished && self.repair.lost.is_empty() {
            let text = "the recorder ended without closing the session; calls of its last \
                    second may be missing";
            meta.history.repairs.push(text.into());
        }
        self.storage.write_meta(meta, true)
    }

    /// Rows that a table had when the session was closed and that none of its parts contains; calls
    /// are counted with the totals.
    fn missing_rows(&mut self, tables: &[Vec<PartInfo>], meta: &SessionMeta) {
        for (name, now) in finalize::rows_of(tables) {
            let said = meta.rows.get(&name).copied().unwrap_or(now);
            if said == now || name == SYSCALLS.name {
                continue;
            }
            let text = format!("table {name} has {now} rows, {said} were stored");
            self.found(text.clone());
            self.repair.lost.push(text);
        }
    }

    /// Tables that the user added. A file whose name contains its checksum needs no `session.json`.
    fn repair_own(&mut self, meta: &mut SessionMeta, rebuilt: bool) -> Result<(), SessionError> {
        let root = self.storage.folder().clone();
        let path = root.path().join(OWN_FOLDER);
        let kind = root.kind(OWN_FOLDER);
        let dir = match kind.map_err(SessionError::io("read", &path))? {
            Some(FileType::Directory) if self.write => Some(root.own_dir(OWN_FOLDER)?),
            Some(FileType::Directory) => Some(
                root.dir(OWN_FOLDER)
                    .map_err(SessionError::io("read", &path))?,
            ),
            _ => None,
        };
        let mut wanted = BTreeSet::new();
        for (name, table) in std::mem::take(&mut meta.own_tables) {
            match own::examine(&root, &name, &table, Check::Whole) {
                Ok(whole) => {
                    wanted.extend(whole.file.rsplit('/').next().map(str::to_owned));
                    meta.own_tables.insert(name, table);
                }
                Err(reason) => {
                    let text = format!("own table {}: {reason}", name.escape_debug());
                    self.found(format!("{text}: it is left out"));
                    self.repair.lost.push(text);
                }
            }
        }
        let Some(dir) = dir else { return Ok(()) };
        for file in dir.names().map_err(SessionError::io("read", &path))? {
            let Some(text) = file.to_str().filter(|file| is_own_file(file)) else {
                continue;
            };
            if wanted.contains(text) {
                continue;
            }
            match own_of_file(&dir, text) {
                Some((name, table)) if rebuilt && !meta.own_tables.contains_key(&name) => {
                    self.found(format!("{OWN_FOLDER}/{text}: it is own table {name} again"));
                    meta.own_tables.insert(name, table);
                }
                Some(_) => self.remove(&dir, &file, "no table has this file")?,
                None if text.ends_with(".tmp") => {
                    self.remove(&dir, &file, "it was never finished")?;
                }
                None => self.set_aside(&dir, &file, OWN_FOLDER, "it is damaged")?,
            }
        }
        Ok(())
    }

    fn repair_table(&mut self, table: &'static Table) -> Result<Contents, SessionError> {
        let path = self.storage.table_dir(table.name);
        let failed = || SessionError::io("read", &path);
        let dir = match self.storage.folder().kind(table.name).map_err(failed())? {
            None => {
                if self.write {
                    self.storage.make_table(table.name)?;
                }
                return Ok(Contents::default());
            }
            Some(FileType::Directory) if self.write => self.storage.table(table.name)?,
            Some(FileType::Directory) => {
                let dir = self.storage.folder().dir(table.name);
                dir.map_err(failed())?
            }
            Some(_) => {
                return Err(SessionError::NotReplaceable {
                    path,
                    reason: "it is not a directory",
                });
            }
        };
        let (mut ranges, mut unfinished) = (BTreeMap::new(), Vec::new());
        for name in dir.names().map_err(failed())? {
            match name.to_str().and_then(PartRange::parse) {
                // Of equal starts the longest first.
                Some(range) => drop(ranges.insert((range.first, u64::MAX - range.last), range)),
                None if name.to_str().is_some_and(is_temporary) => unfinished.push(name),
                None if name.as_bytes().ends_with(b".parquet") => {
                    self.set_aside(
                        &dir,
                        &name,
                        table.name,
                        "it is not a part written by fathom",
                    )?;
                }
                None => {}
            }
        }
        let mut contents = Contents {
            largest: ranges.values().map(|range| range.last).max(),
            ..Contents::default()
        };
        self.publish_whole(table, &dir, unfinished, &mut ranges)?;
        self.choose(table, &dir, ranges.into_values(), &mut contents)?;
        Ok(contents)
    }

    /// Parts that were written as a whole but not named yet become parts, unless
    /// their rows are in others; the rest goes.
    fn publish_whole(
        &mut self,
        table: &'static Table,
        dir: &Dir,
        unfinished: Vec<std::ffi::OsString>,
        ranges: &mut BTreeMap<(u64, u64), PartRange>,
    ) -> Result<(), SessionError> {
        for file in unfinished {
            let name = file.to_string_lossy();
            let range = name.strip_suffix(".tmp").and_then(PartRange::parse);
            let range = range.filter(|range| {
                let apart = |r: &PartRange| r.last < range.first || range.last < r.first;
                ranges.values().all(apart) && read_all(table, dir, &name).is_ok()
            });
            let Some(range) = range else {
                self.remove(dir, &file, "it was never finished")?;
                continue;
            };
            self.found(format!(
                "{}/{range} was complete but not published: published",
                table.name
            ));
            if self.write {
                self.storage.publish(table.name, range)?;
                ranges.insert((range.first, u64::MAX - range.last), range);
            }
        }
        Ok(())
    }

    /// The parts of `ranges`, in order, to keep: chosen like a reader does, but by their whole
    /// contents. The others are removed.
    fn choose(
        &mut self,
        table: &'static Table,
        dir: &Dir,
        ranges: impl Iterator<Item = PartRange>,
        contents: &mut Contents,
    ) -> Result<(), SessionError> {
        for range in ranges {
            let name = range.to_string();
            let file = OsStr::new(&name);
            let before = contents.parts.last();
            if before.is_some_and(|part| part.range.contains(&range)) {
                // A table with a key has fewer rows after it.
                let rows = before.map_or(0, |part| part.rows);
                match footer::examine(table, dir, &name, Check::Whole) {
                    Ok((more, _)) if table.key.is_empty() && more > rows => {
                        let why = "it has more rows than the part that it was merged into";
                        self.set_aside(dir, file, table.name, why)?;
                    }
                    _ => self.remove(dir, file, "its rows were merged into another part")?,
                }
                continue;
            }
            if before.is_some_and(|part| part.range.last >= range.first) {
                self.set_aside(dir, file, table.name, "it overlaps another part")?;
                continue;
            }
            match read_all(table, dir, &name) {
                Ok((rows, bytes)) => contents.parts.push(PartInfo { range, rows, bytes }),
                Err(Unreadable::Gone) => {}
                Err(Unreadable::Bad(reason)) => {
                    self.set_aside(dir, file, table.name, &reason)?;
                    let text = format!("{}/{range} could not be read: {reason}", table.name);
                    self.repair.lost.push(text);
                }
            }
        }
        Ok(())
    }

    /// Says which parts are not there at all.
    fn gaps(&mut self, table: &Table, parts: &[PartInfo], meta: &SessionMeta) {
        let mut next = match &meta.history.keep {
            Some(_) => parts.first().map_or(0, |part| part.range.first),
            None => 0,
        };
        for part in parts {
            if part.range.first > next && self.write && meta.history.repairs.is_empty() {
                let text = format!(
                    "{}: none of the parts {next} to {} can be read",
                    table.name,
                    part.range.first - 1
                );
                self.repair.lost.push(text);
            }
            next = part.range.last.saturating_add(1);
        }
    }

    fn found(&mut self, text: String) {
        self.repair.found.push(text);
    }

    fn name(&self, path: &Path) -> String {
        let path = path.strip_prefix(self.storage.dir()).unwrap_or(path);
        path.to_string_lossy().escape_debug().to_string()
    }

    fn remove(&mut self, dir: &Dir, file: &OsStr, why: &str) -> Result<(), SessionError> {
        let path = dir.path().join(file);
        self.found(format!("{}: {why}: removed", self.name(&path)));
        if self.write {
            dir.remove(file)
                .map_err(SessionError::io("remove", &path))?;
        }
        Ok(())
    }

    /// Moves a file out of the way, under a name that contains its original place.
    fn set_aside(
        &mut self,
        dir: &Dir,
        file: &OsStr,
        prefix: &str,
        why: &str,
    ) -> Result<(), SessionError> {
        let path = dir.path().join(file);
        self.found(format!(
            "{}: {why}: moved to folder {ASIDE}",
            self.name(&path)
        ));
        if !self.write {
            return Ok(());
        }
        let aside = self.storage.folder().make_dir(ASIDE)?;
        let mut name = std::ffi::OsString::from(prefix);
        if path.parent() != Some(self.storage.dir()) {
            name.push("-");
            name.push(file);
        }
        // No Parquet file by its name: what reads the whole directory passes it.
        name.push(".aside");
        let mut to = name.clone();
        for n in 1.. {
            if aside.kind(&to).is_ok_and(|kind| kind.is_none()) {
                break;
            }
            to = name.clone();
            to.push(format!(".{n}"));
        }
        dir.rename_into(file, &aside, &to)
            .map_err(SessionError::io("move", &path))
    }
}

/// The table in a file whose name contains its checksum; `None` if it is damaged.
fn own_of_file(dir: &Dir, file: &str) -> Option<(String, OwnTable)> {
    let (name, xxh64) = parse_own_file(file)?;
    let opened = dir.open_file(file).ok()?;
    check_file(&opened, xxh64).ok()?;
    let bytes = opened.metadata().ok()?.len();
    let parse =
        || SerializedFileReader::new(opened).map(|r| r.metadata().file_metadata().num_rows());
    // The footer may be anything.
    let rows = catch_unwind(AssertUnwindSafe(parse)).ok()?.ok()?;
    let table = OwnTable {
        rows: u64::try_from(rows).ok()?,
        bytes,
        xxh64: format!("{xxh64:016x}"),
        source: String::new(),
    };
    Some((name.to_owned(), table))
}

/// Rows and bytes of a part of which every row can be read.
fn read_all(table: &'static Table, dir: &Dir, name: &str) -> Result<(u64, u64), Unreadable> {
    let (rows, bytes) = footer::examine(table, dir, name, Check::Whole)?;
    let damaged = |what: &str| Unreadable::Bad(format!("it is damaged: {what}"));
    let read = || -> parquet::errors::Result<u64> {
        let reader = SerializedFileReader::new(dir.open_file(name)?)?;
        let mut rows = 0;
        for group in 0..reader.num_row_groups() {
            let mut decoder = RowGroupDecoder::new(table, &*reader.get_row_group(group)?)?;
            while let Some(batch) = decoder.next()? {
                rows += batch.len() as u64;
            }
        }
        Ok(rows)
    };
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(found)) if found == rows => Ok((rows, bytes)),
        Ok(Ok(_)) => Err(damaged("rows are missing")),
        Ok(Err(e)) => Err(damaged(&e.to_string())),
        Err(_) => Err(damaged("its data")),
    }
}

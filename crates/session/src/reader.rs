//! Reading a session.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::{
    ColumnType, FRAMES, PERF_COUNTERS, SCHEMA_VERSION, STACKS, SYSCALLS, TABLES, Table,
};
use parquet::basic::Type as Physical;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use rustix::fs::FileType;

use crate::catalog::PartInfo;
use crate::checksum::{self, Checksums, Wrong};
use crate::dir::Dir;
use crate::error::SessionError;
use crate::layout::{META_FILE, PartRange, is_temporary};
use crate::lock;
use crate::meta_json;
use crate::page_order;
use crate::rebuild;
use crate::schema::physical;

/// How often a folder is read again whose parts are being merged.
const RESCANS: u32 = 8;
/// More than any `session.json` has.
const MAX_META_BYTES: u64 = 16 << 20;

/// A session that is being recorded, was recorded, or whose recorder was
/// killed.
#[derive(Clone, Debug)]
pub struct Session {
    dir: PathBuf,
    meta: SessionMeta,
    live: bool,
    /// In the order of [`TABLES`].
    parts: Vec<Vec<PartInfo>>,
    problems: Vec<String>,
    /// Parts that are left out, as they are damaged.
    unreadable: usize,
    /// Why `session.json` could not be read, if its parts had to do.
    rebuilt: Option<String>,
    /// Parts out of which DuckDB reads wrong values.
    wrong_pages: usize,
    /// Parts that were written without checksums.
    unchecked: usize,
    /// How much of a part is compared with its checksums.
    check: Check,
    /// Parts whose footers were read since it was opened.
    examined: u64,
}

impl Session {
    /// Opens the session in `dir` as it is now. Every part is read once and compared with its
    /// checksums, unless this process has done so before.
    ///
    /// # Errors
    /// [`SessionError::NotASession`], [`SessionError::Damaged`] and
    /// [`SessionError::OtherVersion`] about `session.json`; [`SessionError::Io`].
    /// Damaged parts are no error: they are left out and named by
    /// [`Session::problems`]. Nor is a `session.json` that is missing or damaged as
    /// long as a part tells what it said at the start.
    pub fn open(dir: &Path) -> Result<Self, SessionError> {
        Self::open_checking(dir, Check::Whole)
    }

    /// Opens a session whose rows will not be read, for its sizes and what it says of itself: of
    /// the parts only the footers are read and compared with their checksums.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn glance(dir: &Path) -> Result<Self, SessionError> {
        Self::open_checking(dir, Check::Footer)
    }

    fn open_checking(dir: &Path, check: Check) -> Result<Self, SessionError> {
        let folder = open_dir(dir)?;
        let (meta, rebuilt) = find_meta(&folder)?;
        let mut session = Self {
            dir: dir.to_owned(),
            meta,
            rebuilt,
            live: false,
            parts: Vec::new(),
            problems: Vec::new(),
            unreadable: 0,
            wrong_pages: 0,
            unchecked: 0,
            check,
            examined: 0,
        };
        session.scan(&folder)?;
        Ok(session)
    }

    /// Looks again: for a session that is being recorded. Parts do not change under their
    /// names while a recorder writes the session, so only new ones are read; the first
    /// time without a recorder all are.
    ///
    /// # Errors
    /// Those of [`Session::open`].
    pub fn refresh(&mut self) -> Result<(), SessionError> {
        let folder = open_dir(&self.dir)?;
        (self.meta, self.rebuilt) = find_meta(&folder)?;
        self.scan(&folder)
    }

    /// How many parts have been examined since the session was opened: what a refresh
    /// costs.
    pub fn parts_examined(&self) -> u64 {
        self.examined
    }

    /// Directory of the session.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the session says of itself. While it is recorded, and after its
    /// recorder was killed, the totals are those of a moment before.
    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// Whether a recorder was writing the session when it was opened or last
    /// refreshed.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether a recorder is writing the session in `dir` now.
    pub fn is_recorded_now(dir: &Path) -> bool {
        lock::is_held(dir)
    }

    /// Whether the recorder ended without closing the session.
    pub fn was_killed(&self) -> bool {
        self.meta.state == State::Recording && !self.live
    }

    /// The parts of a table in the order of writing: of rows with equal keys,
    /// the one in the last part counts, and in a part the last one. Of a live
    /// session parts may since have been merged: then a file is gone, and
    /// [`Session::refresh`] finds its rows elsewhere.
    pub fn parts(&self, table: &str) -> Vec<PathBuf> {
        let dir = self.dir.join(table);
        self.part_infos(table)
            .iter()
            .map(|part| dir.join(part.range.to_string()))
            .collect()
    }

    /// The same with their sizes.
    pub fn part_infos(&self, table: &str) -> &[PartInfo] {
        let index = TABLES.iter().position(|t| t.name == table);
        index
            .and_then(|i| self.parts.get(i))
            .map_or(&[], Vec::as_slice)
    }

    /// Rows of a table; of one with a key all versions are counted.
    pub fn rows(&self, table: &str) -> u64 {
        self.part_infos(table)
            .iter()
            .map(|p| p.rows)
            .fold(0, u64::saturating_add)
    }

    /// What is missing or damaged, a sentence each. The names of files in them
    /// are escaped.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether parts are left out as they are damaged: what is missing may hold anything.
    pub fn is_damaged(&self) -> bool {
        self.unreadable > 0
    }

    fn scan(&mut self, folder: &Dir) -> Result<(), SessionError> {
        // Before the parts: one that is written in between is a part more.
        self.live = lock::is_held_in(folder);
        self.problems.clear();
        (self.wrong_pages, self.unchecked, self.unreadable) = (0, 0, 0);
        let mut before = std::mem::take(&mut self.parts);
        // Calls first: the files and tasks that they refer to were written before
        // them.
        for (i, table) in TABLES.iter().enumerate() {
            let known = match before.get_mut(i).filter(|_| self.live) {
                Some(parts) => parts.drain(..).map(|part| (part.range, part)).collect(),
                None => Known::new(),
            };
            let parts = self.scan_quietly(folder, table, &known)?;
            self.parts.push(parts);
        }
        self.missing_folders(folder);
        self.problems.extend(page_order::problem(self.wrong_pages));
        self.problems.extend(checksum::problem(self.unchecked));
        if let Some(reason) = &self.rebuilt {
            self.problems.push(format!(
                "{reason}: shown is what the session said of itself at its start; `fathom repair` \
                 writes the file again"
            ));
            let stored = self.rows(SYSCALLS.name);
            (self.meta.totals.seen, self.meta.totals.stored) = (stored, stored);
        }
        for repair in &self.meta.history.repairs {
            self.problems.push(format!("repaired: {repair}"));
        }
        if self.live {
            return Ok(());
        }
        let (stored, said) = (self.rows(SYSCALLS.name), self.meta.totals.stored);
        let totals = &self.meta.totals;
        let elsewhere = totals.lost + totals.expired + totals.counted + totals.missing;
        let seen = totals.seen.saturating_sub(elsewhere);
        if self.meta.state == State::Recording {
            let missing = match seen.saturating_sub(stored) {
                0 => String::new(),
                n => format!("; of the calls counted until then {n} were not stored"),
            };
            self.problems.push(format!(
                "the recorder ended without closing the session: calls of about the last second \
                 are missing{missing}"
            ));
        } else if stored != said {
            self.problems.push(format!(
                "table syscalls has {stored} rows in readable parts, {said} were stored"
            ));
        }
        if self.meta.state == State::Complete {
            self.missing_rows();
        }
        Ok(())
    }

    /// Tables other than that of the calls that have not the rows that they had when the session
    /// was closed.
    fn missing_rows(&mut self) {
        for table in TABLES.iter().filter(|table| table.name != SYSCALLS.name) {
            let stored = self.rows(table.name);
            match self.meta.rows.get(table.name) {
                Some(said) if *said != stored => self.problems.push(format!(
                    "table {} has {stored} rows in readable parts, {said} were stored",
                    table.name
                )),
                _ => {}
            }
        }
    }

    /// Tables without a folder: those that the fathom that recorded the session did not
    /// know yet, or somebody has removed them. Without stacks and
    /// counters nothing else lacks anything.
    fn missing_folders(&mut self, folder: &Dir) {
        let missing: Vec<&str> = TABLES
            .iter()
            .map(|table| table.name)
            .filter(|name| ![STACKS.name, FRAMES.name, PERF_COUNTERS.name].contains(name))
            .filter(|name| matches!(folder.kind(name), Ok(None)))
            .collect();
        if missing.is_empty() {
            return;
        }
        let (tables, they) = match missing.len() {
            1 => ("table", "it counts"),
            _ => ("tables", "they count"),
        };
        self.problems.push(format!(
            "there is no folder for {tables} {}: the session was recorded by an older fathom, or \
             is not complete; {they} as empty",
            missing.join(", ")
        ));
    }

    /// The parts of a table at one moment. A merge may take place while the folder
    /// is read, so that neither the merged part nor what it was merged from is
    /// seen: as long as that leaves a hole, and it moves, the folder is read again.
    fn scan_quietly(
        &mut self,
        folder: &Dir,
        table: &'static Table,
        known: &Known,
    ) -> Result<Vec<PartInfo>, SessionError> {
        let problems = self.problems.len();
        let mut parts = self.scan_table(folder, table, known)?;
        for _ in 0..if self.live { RESCANS } else { 0 } {
            let mut next = 0;
            let whole = parts.iter().all(|part| {
                let follows = part.range.first == next;
                next = part.range.last.saturating_add(1);
                follows
            });
            if whole {
                break;
            }
            self.problems.truncate(problems);
            let again = self.scan_table(folder, table, known)?;
            let same = again == parts;
            parts = again;
            if same {
                break;
            }
        }
        Ok(parts)
    }

    fn scan_table(
        &mut self,
        folder: &Dir,
        table: &'static Table,
        known: &Known,
    ) -> Result<Vec<PartInfo>, SessionError> {
        let failed = || SessionError::io("read", &folder.path().join(table.name));
        let mut found = BTreeMap::new();
        let dir = match folder.kind(table.name).map_err(failed())? {
            // [`Session::scan`] tells of all folders that are missing at once.
            None => return Ok(Vec::new()),
            Some(FileType::Directory) => folder.dir(table.name).map_err(failed())?,
            Some(_) => {
                self.problems.push(format!(
                    "{} is no folder, and where it leads is not followed: the table counts as empty",
                    table.name
                ));
                return Ok(Vec::new());
            }
        };
        for name in dir.names().map_err(failed())? {
            let Some(name) = name.to_str() else {
                self.foreign(table, &name.to_string_lossy());
                continue;
            };
            match PartRange::parse(name) {
                Some(range) => {
                    // Of equal starts the longest first.
                    found.insert((range.first, u64::MAX - range.last), range);
                }
                None if is_temporary(name) => {}
                None => self.foreign(table, name),
            }
        }
        self.take_whole(table, &dir, found.into_values(), known)
    }

    fn foreign(&mut self, table: &Table, name: &str) {
        if name.ends_with(".parquet") {
            let name = name.escape_debug();
            self.problems.push(format!(
                "{}/{name} is not a part of fathom's: left out",
                table.name
            ));
        }
    }

    /// Of `ranges`, in order, the parts that are whole and not contained in
    /// another that is.
    fn take_whole(
        &mut self,
        table: &'static Table,
        dir: &Dir,
        ranges: impl Iterator<Item = PartRange>,
        known: &Known,
    ) -> Result<Vec<PartInfo>, SessionError> {
        let mut taken: Vec<PartInfo> = Vec::new();
        for range in ranges {
            if taken.iter().any(|part| part.range.contains(&range)) {
                continue;
            }
            let overlaps = |part: &PartInfo| part.range.last >= range.first;
            if taken.last().is_some_and(overlaps) {
                self.problems.push(format!(
                    "{}/{range} overlaps another part: left out",
                    table.name
                ));
                continue;
            }
            if let Some(part) = known.get(&range) {
                taken.push(*part);
                continue;
            }
            self.examined += 1;
            match inspect(table, dir, &range.to_string(), self.check) {
                Ok((footer, rows)) => {
                    let bytes = footer.bytes;
                    let unchecked = !self.live && rows > 0 && footer.checksums.is_none();
                    self.unchecked += usize::from(unchecked);
                    // The fathom that records now knows better.
                    let wrong =
                        !self.live && page_order::is_wrong_in(&footer.metadata, footer.file);
                    self.wrong_pages += usize::from(wrong);
                    taken.push(PartInfo { range, rows, bytes });
                }
                // Merged into another part since the folder was read.
                Err(Unreadable::Gone) => {}
                Err(Unreadable::Bad(reason)) => {
                    self.unreadable += 1;
                    self.problems
                        .push(format!("{}/{range} is left out: {reason}", table.name));
                }
            }
        }
        if !self.live {
            self.find_gaps(table, &taken);
        }
        Ok(taken)
    }

    /// Names parts that should be there. Numbers are given without gaps.
    fn find_gaps(&mut self, table: &Table, parts: &[PartInfo]) {
        let mut next = 0;
        if self.meta.history.keep.is_some() {
            // The first ones were dropped, as only the latest are kept.
            next = parts.first().map_or(0, |part| part.range.first);
        }
        for part in parts {
            let PartRange { first, last } = part.range;
            // Parts that are there but damaged have been named already.
            if first > next {
                self.problems.push(match first - next {
                    1 => format!("{}: part {next} is missing", table.name),
                    _ => format!("{}: parts {next} to {} are missing", table.name, first - 1),
                });
            }
            next = last.saturating_add(1);
        }
    }
}

/// Parts that were examined before.
type Known = BTreeMap<PartRange, PartInfo>;

/// Why a part is left out.
pub(crate) enum Unreadable {
    Gone,
    Bad(String),
}

impl From<Wrong> for Unreadable {
    fn from(wrong: Wrong) -> Self {
        Unreadable::Bad(match wrong {
            Wrong::Unreadable(e) => format!("it cannot be read: {e}"),
            Wrong::Changed => "it is damaged: its checksum is another".to_owned(),
        })
    }
}

/// How much of a part is compared with its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Footer,
    Whole,
}

/// Rows and bytes of a part that is as it was written and belongs to `table`: file `name` of
/// `dir`.
pub(crate) fn examine(table: &Table, dir: &Dir, name: &str) -> Result<(u64, u64), Unreadable> {
    inspect(table, dir, name, Check::Whole).map(|(footer, rows)| (rows, footer.bytes))
}

/// The same with the footer and the file.
fn inspect(
    table: &Table,
    dir: &Dir,
    name: &str,
    check: Check,
) -> Result<(Footer, u64), Unreadable> {
    let footer = footer(dir, name)?;
    let failed = |e: std::io::Error| Unreadable::Bad(format!("it cannot be read: {e}"));
    let data = data_range(&footer.file, footer.bytes).map_err(failed)?;
    let Some(data) = data else {
        return Err(Unreadable::Bad(
            "it is damaged: it does not begin as a part does".to_owned(),
        ));
    };
    let rows = validate(table, &footer.metadata, data).map_err(Unreadable::Bad)?;
    if check == Check::Whole {
        footer.check_rows()?;
    }
    Ok((footer, rows))
}

/// The footer of a Parquet file, which agrees with its checksum.
pub(crate) struct Footer {
    pub(crate) metadata: ParquetMetaData,
    pub(crate) file: File,
    /// Size of the file.
    pub(crate) bytes: u64,
    /// `None` for a part of an older fathom.
    pub(crate) checksums: Option<Checksums>,
}

impl Footer {
    /// Checks that the rows are as they were written.
    pub(crate) fn check_rows(&self) -> Result<(), Unreadable> {
        if let Some(checksums) = &self.checksums {
            checksums.check_rows(&self.file)?;
        }
        Ok(())
    }
}

/// Reads the footer of file `name` of `dir`, which may be anything.
pub(crate) fn footer(dir: &Dir, name: &str) -> Result<Footer, Unreadable> {
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => Unreadable::Gone,
        ErrorKind::InvalidInput => Unreadable::Bad(e.to_string()),
        _ => Unreadable::Bad(format!("it cannot be read: {e}")),
    };
    let file = dir.open_file(name).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let checksums = Checksums::read(&file, bytes)?;
    // The footer may be anything: a panic in its reader must not be ours.
    let parse = || ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(Ok(metadata)) => metadata,
        Ok(Err(e)) => return Err(Unreadable::Bad(format!("it is damaged: {e}"))),
        Err(_) => return Err(Unreadable::Bad("it is damaged: its footer".to_owned())),
    };
    if checksums.is_none() && checksum::is_promised(&metadata) {
        return Err(Wrong::Changed.into());
    }
    Ok(Footer {
        metadata,
        file,
        bytes,
        checksums,
    })
}

/// Where column data may lie: between the magic number and the footer. `None`
/// when there is no magic number at the start.
fn data_range(file: &File, bytes: u64) -> std::io::Result<Option<Range<u64>>> {
    const MAGIC: &[u8; 4] = b"PAR1";
    let (mut magic, mut footer) = ([0; 4], [0; 4]);
    file.read_exact_at(&mut magic, 0)?;
    // The footer is followed by its length and the magic number again.
    let tail = bytes.saturating_sub(8);
    file.read_exact_at(&mut footer, tail)?;
    let end = tail.saturating_sub(u64::from(u32::from_le_bytes(footer)));
    Ok((&magic == MAGIC).then_some(MAGIC.len() as u64..end))
}

/// Whether columns and places of the data make sense; returns the rows.
fn validate(table: &Table, metadata: &ParquetMetaData, data: Range<u64>) -> Result<u64, String> {
    let schema = metadata.file_metadata().schema_descr();
    for column in table.columns {
        let leaf = schema.columns().iter().find(|leaf| {
            leaf.path()
                .parts()
                .first()
                .is_some_and(|name| name == column.name)
        });
        let found: Option<Physical> = leaf.map(|leaf| leaf.physical_type());
        let nested = leaf.is_some_and(|leaf| leaf.path().parts().len() > 1);
        if found != Some(physical(column.ty)) || nested != (column.ty == ColumnType::ListI64) {
            return Err(format!(
                "column {} is missing or of another type",
                column.name
            ));
        }
    }
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        rows = u64::try_from(group.num_rows())
            .ok()
            .and_then(|n| rows.checked_add(n))
            .ok_or("its number of rows makes no sense")?;
        for chunk in group.columns() {
            let start = chunk
                .dictionary_page_offset()
                .unwrap_or(chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let (start, end) = (u64::try_from(start), u64::try_from(end.unwrap_or(-1)));
            let inside = matches!((start, end), (Ok(start), Ok(end))
                if data.start <= start && start <= end && end <= data.end);
            if !inside {
                return Err("its data lies outside of the file".to_owned());
            }
        }
    }
    Ok(rows)
}

/// The directory of a session to be read; the last name of `dir` may be a symbolic link.
pub(crate) fn open_dir(dir: &Path) -> Result<Dir, SessionError> {
    let not = |reason| SessionError::NotASession {
        path: dir.to_owned(),
        reason,
    };
    Dir::open(dir).map_err(|e| match e.kind() {
        ErrorKind::NotFound => not("it does not exist"),
        ErrorKind::NotADirectory => not("it is no directory"),
        ErrorKind::PermissionDenied => SessionError::not_shared(dir, e),
        _ => SessionError::io("open", dir)(e),
    })
}

/// What the session says of itself: in `session.json`, else in its parts, with the
/// reason why these had to do.
fn find_meta(dir: &Dir) -> Result<(SessionMeta, Option<String>), SessionError> {
    let error = match read_meta(dir) {
        Ok(meta) => return Ok((meta, None)),
        Err(error) => error,
    };
    let reason = match &error {
        SessionError::NotASession { .. } => "session.json is missing".to_owned(),
        SessionError::Damaged { reason, .. } => format!("session.json is damaged ({reason})"),
        _ => return Err(error),
    };
    match rebuild::from_parts(dir) {
        Some(meta) => Ok((meta, Some(reason))),
        None => Err(error),
    }
}

/// The contents of `session.json`.
pub(crate) fn read_meta(dir: &Dir) -> Result<SessionMeta, SessionError> {
    let path = dir.path().join(META_FILE);
    let file = match dir.open_file(META_FILE) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(SessionError::NotASession {
                path: dir.path().to_owned(),
                reason: "it holds no session.json",
            });
        }
        Err(e) if e.kind() == ErrorKind::InvalidInput => {
            return Err(SessionError::Damaged {
                path,
                reason: e.to_string(),
            });
        }
        result => result.map_err(SessionError::io("open", &path))?,
    };
    let mut json = Vec::new();
    file.take(MAX_META_BYTES)
        .read_to_end(&mut json)
        .map_err(SessionError::io("read", &path))?;
    let damaged = |e: serde_json::Error| SessionError::Damaged {
        path: path.clone(),
        reason: e.to_string(),
    };
    // Only the version is sure to be understood in what another fathom wrote.
    let value: serde_json::Value = serde_json::from_slice(&json).map_err(damaged)?;
    let version = value
        .get("schema_version")
        .and_then(serde_json::Value::as_u64);
    if let Some(version) = version.filter(|v| *v != u64::from(SCHEMA_VERSION)) {
        let writer = value
            .get("fathom_version")
            .and_then(|v| v.as_str())
            .unwrap_or("?");
        return Err(SessionError::OtherVersion {
            path,
            found: u32::try_from(version).unwrap_or(u32::MAX),
            known: SCHEMA_VERSION,
            writer: writer.escape_debug().to_string(),
        });
    }
    if !meta_json::is_as_written(&json, &value) {
        return Err(SessionError::Damaged {
            path,
            reason: "its checksum is another".to_owned(),
        });
    }
    serde_json::from_value(value).map_err(damaged)
}

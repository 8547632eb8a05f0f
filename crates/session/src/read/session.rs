//! Reading a session.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::{
    CONTAINERS, SPAN_CONTEXTS, SPANS, SYSCALLS, TABLES, Table, USER_CALL_COUNTERS, VOLUME_CLAIMS,
};
use rustix::fs::FileType;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::footer::{self, Check, Unreadable};
use crate::format::layout::{PartInfo, PartRange, is_temporary};
use crate::format::{lock, meta};
use crate::read::own::{self, Own};
use crate::read::set;

/// How often a folder is read again whose parts are being merged.
const RESCANS: u32 = 8;
/// Tables that sessions of earlier versions do not have: they contain no rows of them, and lack none.
const ADDED: [&Table; 5] = [
    &SPANS,
    &SPAN_CONTEXTS,
    &CONTAINERS,
    &USER_CALL_COUNTERS,
    &VOLUME_CLAIMS,
];

/// A session that is being recorded, was recorded, or whose recorder was
/// killed.
#[derive(Clone, Debug)]
pub struct Session {
    dir: PathBuf,
    meta: SessionMeta,
    live: bool,
    /// In the order of [`TABLES`].
    parts: Vec<Vec<PartInfo>>,
    /// Tables that the user added.
    own: Vec<Own>,
    problems: Vec<String>,
    /// Parts that are left out, as they are damaged.
    unreadable: usize,
    /// Why `session.json` could not be read, if its parts had to do.
    rebuilt: Option<String>,
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
    /// [`SessionError::NotASession`], [`SessionError::Damaged`], and [`SessionError::OtherVersion`]
    /// about `session.json`; [`SessionError::Io`]. Damaged parts are not an error: they are left
    /// out and named by [`Session::problems`]. A missing or damaged `session.json` is not an error
    /// either, as long as a part contains the metadata from the start.
    pub fn open(dir: &Path) -> Result<Self, SessionError> {
        Self::open_checking(dir, Check::Whole)
    }

    /// The metadata of the session in `dir`, without a look at its parts.
    ///
    /// # Errors
    /// The errors of [`Session::open`].
    pub fn read_meta(dir: &Path) -> Result<SessionMeta, SessionError> {
        Ok(find_meta(&open_dir(dir)?)?.0)
    }

    /// Opens a session whose rows will not be read, for its sizes and what it says of itself, or not before
    /// [`crate::RowCheck`] has compared them: of the parts only the footers are read and compared with their checksums.
    ///
    /// # Errors
    /// The errors of [`Session::open`].
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
            own: Vec::new(),
            problems: Vec::new(),
            unreadable: 0,
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
    /// The errors of [`Session::open`].
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

    /// The metadata of the session. During the recording, and after its recorder was killed, the
    /// totals may be slightly out of date.
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

    /// Opens a part of a table. Nothing on the way to it is followed as a symbolic link.
    ///
    /// # Errors
    /// [`SessionError::NotASession`] if the directory is gone, and [`SessionError::Io`].
    pub fn open_part(&self, table: &str, range: PartRange) -> Result<File, SessionError> {
        let name = range.to_string();
        let folder = open_dir(&self.dir)?;
        let file = folder.dir(table).and_then(|dir| dir.open_file(&name));
        file.map_err(SessionError::io("open", &self.dir.join(table).join(&name)))
    }

    /// Rows of a table; of one with a key all versions are counted.
    pub fn rows(&self, table: &str) -> u64 {
        self.part_infos(table)
            .iter()
            .map(|p| p.rows)
            .fold(0, u64::saturating_add)
    }

    /// Tables that the user added (`fathom import --table`), by name.
    pub fn own_tables(&self) -> &[Own] {
        &self.own
    }

    /// Missing or damaged data, one sentence each. The names of files are escaped.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether parts are left out as they are damaged: what is missing may hold anything.
    pub fn is_damaged(&self) -> bool {
        self.unreadable > 0
    }

    /// Whether `session.json` cannot be read.
    pub(crate) fn was_rebuilt(&self) -> bool {
        self.rebuilt.is_some()
    }

    fn scan(&mut self, folder: &Dir) -> Result<(), SessionError> {
        // Before the parts: one that is written in between is a part more.
        self.live = lock::is_held_in(folder);
        self.problems.clear();
        self.unreadable = 0;
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
        self.scan_own(folder);
        if let Some(reason) = &self.rebuilt {
            self.problems.push(format!(
                "{reason}: using the metadata from the start of the session; `fathom repair` \
                 rebuilds the file"
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
                n => format!("; {n} of the calls counted until then were not stored"),
            };
            self.problems.push(format!(
                "the recorder ended without closing the session: calls of about the last second \
                 are missing{missing}"
            ));
        } else if stored != said {
            self.problems.push(format!(
                "table syscalls has {stored} rows in readable parts, but {said} were stored"
            ));
        }
        if self.meta.state == State::Complete {
            self.missing_rows();
        }
        Ok(())
    }

    /// Tables, other than the calls', that lack rows that they had when the session was closed.
    fn missing_rows(&mut self) {
        for table in TABLES.iter().filter(|table| table.name != SYSCALLS.name) {
            let stored = self.rows(table.name);
            match self.meta.rows.get(table.name) {
                Some(said) if *said != stored => self.problems.push(format!(
                    "table {} has {stored} rows in readable parts, but {said} were stored",
                    table.name
                )),
                _ => {}
            }
        }
    }

    fn scan_own(&mut self, folder: &Dir) {
        self.own.clear();
        for (name, table) in &self.meta.own_tables {
            match own::examine(folder, name, table, self.check) {
                Ok(table) => self.own.push(table),
                Err(reason) => self.problems.push(format!(
                    "own table {} is left out: {reason}",
                    name.escape_debug()
                )),
            }
        }
    }

    /// Tables whose folder has been removed.
    fn missing_folders(&mut self, folder: &Dir) {
        let missing: Vec<&str> = TABLES
            .iter()
            .map(|table| table.name)
            .filter(|name| ADDED.iter().all(|added| added.name != *name))
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
            "no folder for {tables} {}: the session is incomplete; {they} as empty",
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
            // [`Session::scan`] reports all missing folders at once.
            None => return Ok(Vec::new()),
            Some(FileType::Directory) => folder.dir(table.name).map_err(failed())?,
            Some(_) => {
                self.problems.push(format!(
                    "{} is not a folder, and links are not followed: the table counts as empty",
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
                "{}/{name} is not a part written by fathom: left out",
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
            match footer::examine(table, dir, &range.to_string(), self.check) {
                Ok((rows, bytes)) => taken.push(PartInfo { range, rows, bytes }),
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

/// The directory of a session to be read; the last name of `dir` may be a symbolic link.
pub(crate) fn open_dir(dir: &Path) -> Result<Dir, SessionError> {
    let not = |reason| SessionError::NotASession {
        path: dir.to_owned(),
        reason,
    };
    Dir::open(dir).map_err(|e| match e.kind() {
        ErrorKind::NotFound => not("it does not exist"),
        ErrorKind::NotADirectory => match set::members_of(dir) {
            Some(members) => SessionError::IsASet {
                path: dir.to_owned(),
                members,
            },
            None => set::damaged(dir).unwrap_or_else(|| not("it is not a directory")),
        },
        ErrorKind::PermissionDenied => SessionError::not_shared(dir, e),
        _ => SessionError::io("open", dir)(e),
    })
}

/// The metadata of the session: from `session.json`, otherwise from its parts, with the reason for
/// that.
fn find_meta(dir: &Dir) -> Result<(SessionMeta, Option<String>), SessionError> {
    let error = match meta::read(dir) {
        Ok(meta) => return Ok((meta, None)),
        Err(error) => error,
    };
    let reason = match &error {
        SessionError::NotASession { .. } => "session.json is missing".to_owned(),
        SessionError::Damaged { reason, .. } => format!("session.json is damaged ({reason})"),
        _ => return Err(error),
    };
    match meta::from_parts(dir) {
        Some(meta) => Ok((meta, Some(reason))),
        None => Err(error),
    }
}

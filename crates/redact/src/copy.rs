//! Copying a session row by row.

use std::fs::{DirBuilder, remove_dir};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fathom_model::batch::NULL_I64;
use fathom_model::meta::State;
use fathom_model::tables::{Column, Holds, PROCESSES, ProcessRows, TABLES};
use fathom_model::{Batch, ColumnData, StrId, StringTable};
use fathom_session::{Session, SessionError, SessionWriter, WriterOptions, discard, move_session};

use crate::error::RedactError;
use crate::rules::{Action, Key, Rules};
use crate::text::Redactor;

/// The name of a copy that has none yet.
const NAME: &str = "redacted.fathom";

/// A redacted copy that goes when this is dropped, unless it was given a name.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    session: PathBuf,
}

impl Scratch {
    /// A copy of the session `from` in a new folder in `parent`. `progress` receives the rows that
    /// were copied, and their number.
    ///
    /// # Errors
    /// [`RedactError::Unfit`] for a session that is being recorded, was not closed, or is damaged; the
    /// errors of [`Session::open`] and of [`SessionWriter`].
    pub fn make(
        from: &Path,
        parent: &Path,
        rules: &Rules,
        key: &Key,
        options: WriterOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, RedactError> {
        let session = open(from)?;
        let mut redactor = Redactor::new(rules.clone(), key.clone());
        learn(&session, &mut redactor)?;
        let number = RandomState::new().build_hasher().finish();
        let folder = parent.join(format!(".redact-{number:016x}.tmp"));
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(RedactError::io("create", &folder))?;
        let scratch = Self {
            session: folder.join(NAME),
            folder,
        };
        write(&session, &redactor, &scratch.session, options, progress)?;
        Ok(scratch)
    }

    /// Where the copy is.
    pub fn session(&self) -> &Path {
        &self.session
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The session is not there if it was moved, or not made.
        let _ = discard(&self.session);
        let _ = remove_dir(&self.folder);
    }
}

/// Makes a redacted copy of the session `from` under the name `to`, which appears when the copy is
/// whole. With `options.force` a session of that name is replaced.
///
/// # Errors
/// The errors of [`Scratch::make`]; [`SessionError::Exists`], and with `options.force` the errors
/// of [`discard`].
pub fn redact(
    from: &Path,
    to: &Path,
    rules: &Rules,
    key: &Key,
    options: WriterOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), RedactError> {
    let force = options.force;
    let there = to.symlink_metadata().is_ok();
    if there && !force {
        return Err(SessionError::Exists(to.to_owned()).into());
    }
    let whole = |path: &Path| path.canonicalize().ok();
    if there && whole(from) == whole(to) {
        return Err(RedactError::Unfit {
            path: to.to_owned(),
            reason: "it is the session itself: give the copy another name".to_owned(),
        });
    }
    let options = WriterOptions {
        force: false,
        ..options
    };
    let plain: PathBuf = to.components().collect();
    let parent = match plain.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let scratch = Scratch::make(from, parent, rules, key, options, progress)?;
    if there {
        discard(to)?;
    }
    Ok(move_session(scratch.session(), &plain)?)
}

/// The session, which must be whole: what is missing in it could not be counted in the copy.
fn open(from: &Path) -> Result<Session, RedactError> {
    let unfit = |reason: &str| RedactError::Unfit {
        path: from.to_owned(),
        reason: reason.to_owned(),
    };
    let session = match Session::open(from) {
        Err(SessionError::NotASession { .. }) if from.is_file() => {
            return Err(unfit(
                "it is no session; a capture (record --raw) holds everything in one stream and is not \
                 redacted: make a session of it with `fathom replay`, and redact that",
            ));
        }
        session => session?,
    };
    if session.is_live() {
        return Err(unfit(
            "it is being recorded: redact it when the recording has ended, or a snapshot of it",
        ));
    }
    if session.meta().state != State::Complete || session.is_damaged() {
        return Err(unfit(
            "it is damaged or was not closed: `fathom repair` it first",
        ));
    }
    Ok(session)
}

/// Learns the names of programs of the system.
fn learn(session: &Session, redactor: &mut Redactor) -> Result<(), SessionError> {
    let columns = ["comm", "exe"];
    for batch in session.batches(&PROCESSES, Some(&columns)) {
        let Some((rows, strings)) = ProcessRows::from_batch(batch?) else {
            continue;
        };
        let text = |id: &StrId| String::from_utf8_lossy(strings.get(*id)).into_owned();
        for (comm, exe) in rows.comm.iter().zip(&rows.exe) {
            redactor.learn(&text(comm), &text(exe));
        }
    }
    Ok(())
}

fn write(
    session: &Session,
    redactor: &Redactor,
    to: &Path,
    options: WriterOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), RedactError> {
    let meta = redactor.meta(session.meta());
    let mut begun = meta.clone();
    // Rows that expired are gone already; the writer would drop others by their age now.
    begun.history.keep = None;
    let writer = SessionWriter::create(to, begun, options)?;
    let total = TABLES.iter().map(|table| session.rows(table.name)).sum();
    let mut done = 0;
    for table in TABLES {
        for batch in session.batches(table, None) {
            let batch = redacted(batch?, redactor);
            done += batch.len() as u64;
            writer.append(batch)?;
            progress(done, total);
        }
    }
    let (totals, history) = (meta.totals.clone(), meta.history.clone());
    let finished = writer.finish_with(meta, |meta| {
        meta.totals = totals;
        meta.history = history;
    })?;
    let dropped = finished.tables.iter().any(|table| table.dropped > 0);
    match finished.last_error {
        Some(error) => Err(RedactError::Incomplete(error)),
        None if dropped => Err(RedactError::Incomplete("rows were dropped".to_owned())),
        None => Ok(()),
    }
}

/// The rows with other texts.
fn redacted(batch: Batch, redactor: &Redactor) -> Batch {
    let Batch {
        table,
        columns,
        strings,
    } = batch;
    let mut texts = StringTable::new();
    let columns = table.columns.iter().zip(columns);
    let columns = columns.map(|(column, data)| match data {
        ColumnData::Str(ids) => {
            let text = |bytes: &[u8]| text(column, bytes, redactor);
            ColumnData::Str(mapped(column, ids, &strings, &mut texts, text))
        }
        ColumnData::Blob(ids) => {
            let blob = |bytes: &[u8]| blob(column, bytes, redactor);
            ColumnData::Blob(mapped(column, ids, &strings, &mut texts, blob))
        }
        ColumnData::I64(mut numbers) => {
            if column.holds == Some(Holds::Content) && redactor.rules.content != Action::Keep {
                let known = numbers.iter_mut().filter(|number| **number != NULL_I64);
                known.for_each(|number| *number = redactor.key.number(*number).max(NULL_I64 + 1));
            }
            ColumnData::I64(numbers)
        }
        other @ (ColumnData::I32(_) | ColumnData::Bool(_) | ColumnData::ListI64(_)) => other,
    });
    let columns = columns.collect();
    Batch {
        table,
        columns,
        strings: texts,
    }
}

fn mapped(
    column: &Column,
    mut ids: Vec<StrId>,
    strings: &StringTable,
    texts: &mut StringTable,
    text: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Vec<StrId> {
    let mut known: Vec<Option<StrId>> = vec![None; strings.len() + 1];
    let mut map = |id: StrId| {
        let slot = known.get_mut(id.0 as usize)?;
        let new = slot.unwrap_or_else(|| match text(strings.get(id)) {
            Some(text) => texts.intern(&text),
            None if column.nullable => StrId::NULL,
            None => texts.intern(b""),
        });
        *slot = Some(new);
        Some(new)
    };
    for id in ids.iter_mut().filter(|id| **id != StrId::NULL) {
        *id = map(*id).unwrap_or(StrId::NULL);
    }
    ids
}

/// A text of a column; `None` if it goes. A column without a kind would be a defect: its texts go.
fn text(column: &Column, bytes: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    match column.holds? {
        Holds::Words => Some(bytes.to_vec()),
        holds => {
            let text = redactor.text(holds, &String::from_utf8_lossy(bytes));
            text.map(String::into_bytes)
        }
    }
}

/// Bytes of a column. Bytes of a path that is hashed would be the path.
fn blob(column: &Column, bytes: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    match (column.holds?, redactor.rules.action(column.holds?)) {
        (_, Action::Keep) => Some(bytes.to_vec()),
        (Holds::Content, Action::Hash) => Some(redactor.key.word(bytes).into_bytes()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::tables::{SyscallRow, SyscallRows, WaitRow, WaitRows};

    use super::*;

    /// A session of one call and one wait, which have pyramids.
    fn session(dir: &Path) -> PathBuf {
        let session = dir.join("session.fathom");
        let meta = fathom_testkit::meta();
        let writer = SessionWriter::create(&session, meta.clone(), WriterOptions::default());
        let writer = writer.unwrap();
        let (mut calls, mut strings) = (SyscallRows::default(), StringTable::new());
        calls.push(SyscallRow {
            rid: 1,
            ts_ns: 1,
            dur_ns: 5,
            syscall: strings.intern(b"openat"),
            path: strings.intern(b"/home/alice"),
            hash: 7,
            content: strings.intern(b"alice"),
            ..SyscallRow::default()
        });
        writer.append(calls.into_batch(strings)).unwrap();
        let (mut waits, mut strings) = (WaitRows::default(), StringTable::new());
        waits.push(WaitRow {
            ts_ns: 1,
            dur_ns: 5,
            reason: strings.intern(b"disk"),
            ..WaitRow::default()
        });
        writer.append(waits.into_batch(strings)).unwrap();
        writer.finish(meta).unwrap();
        session
    }

    #[test]
    fn a_copy_that_gets_no_name_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let session = session(dir.path());
        let parent = dir.path().join("parent");
        std::fs::create_dir(&parent).unwrap();
        let made = |rules: &Rules| {
            let (key, options) = (Key::random().unwrap(), WriterOptions::default());
            Scratch::make(&session, &parent, rules, &key, options, &mut |_, _| {}).unwrap()
        };
        let kept = Rules {
            content: Action::Keep,
            ..Rules::default()
        };
        for (rules, content, hash) in [(Rules::default(), None, false), (kept, Some(5), true)] {
            let copy = made(&rules);
            let copied = Session::open(copy.session()).unwrap();
            assert!(copied.problems().is_empty(), "{:?}", copied.problems());
            let table = fathom_model::tables::table("syscalls").unwrap();
            let batch = copied.batches(table, None).next().unwrap().unwrap();
            let (rows, strings) = SyscallRows::from_batch(batch).unwrap();
            let length = |id: StrId| (id != StrId::NULL).then(|| strings.get(id).len());
            assert_eq!(
                (length(rows.content[0]), rows.hash[0] == 7),
                (content, hash)
            );
            assert!(strings.get(rows.path[0]).starts_with(b"/home/x"));
            drop(copy);
            assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 0);
        }
    }
}

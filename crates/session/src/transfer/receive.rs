//! The side that makes the copy.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fathom_model::meta::{Moment, State as Recording};
use fathom_model::tables::{self, TABLES, Table};
use fathom_pyramid::SOURCES;
use rustix::fs::fstatvfs;
use twox_hash::XxHash64;

use super::frame::{self, Frame, FrameReader, TransferError};
use super::{Message, State};
use crate::disk::dir::Dir;
use crate::disk::owner::{Access, Share};
use crate::error::SessionError;
use crate::format::layout::{
    META_FILE, META_TEMPORARY, OWN_FOLDER, PYRAMID_TEMPORARY, PartRange, parse_own_file,
};
use crate::format::lock::RecorderLock;
use crate::format::schema;
use crate::maintain::finalize;
use crate::maintain::relocate::move_session;
use crate::read::session::Session;
use crate::write::create;
use crate::write::storage::Storage;

/// More parts than a session has.
const MAX_PARTS: u64 = 1 << 20;
/// More than any session.json has.
const MAX_META_BYTES: u64 = 16 << 20;
/// Why a copy of a running recording was saved (`history.saved_because`).
const BECAUSE: &str = "pull";

/// A copy that is being made. Until [`Receiver::publish`] or [`Receiver::finish`] it has a hidden
/// name next to its own, and is removed if it stays unfinished.
#[derive(Debug)]
pub struct Receiver<R> {
    frames: FrameReader<R>,
    to: PathBuf,
    force: bool,
    /// Where it is.
    at: PathBuf,
    dir: Dir,
    /// Readers take the copy for a recording as long as this is held.
    lock: Option<RecorderLock>,
    /// Bytes and parts that may still come.
    room: u64,
    parts_left: u64,
    state: Option<State>,
    files: u64,
    bytes: u64,
    published: bool,
}

/// The copy after a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// It is as the session was; more may follow.
    Whole,
    /// It is, and nothing follows.
    Last,
}

/// A copy that is there.
#[derive(Debug)]
pub struct Received {
    /// The copy.
    pub session: Session,
    /// Whether the session was being recorded: the copy has the rows that were stored until then.
    pub live: bool,
    /// Files in the stream, and their bytes.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

/// The place of a file of the stream.
enum Place {
    Part(&'static Table, PartRange),
    Meta,
    Pyramid(&'static str),
    /// A table that the user added.
    Own(String),
}

impl Place {
    /// `None` for a name that fathom does not give to a file of a session.
    fn of(name: &str) -> Option<Self> {
        if name == META_FILE {
            return Some(Place::Meta);
        }
        if let Some(source) = SOURCES.iter().find(|source| source.file == name) {
            return Some(Place::Pyramid(source.file));
        }
        let (table, part) = name.split_once('/')?;
        if table == OWN_FOLDER {
            return parse_own_file(part).map(|_| Place::Own(part.to_owned()));
        }
        Some(Place::Part(tables::table(table)?, PartRange::parse(part)?))
    }
}

impl<R: BufRead> Receiver<R> {
    /// Begins a copy that is to be `to`, of at most `max_bytes`; with `force` it replaces a session.
    ///
    /// # Errors
    /// [`SessionError::Exists`], [`SessionError::Foreign`], and [`SessionError::Io`].
    pub fn begin(
        frames: FrameReader<R>,
        to: &Path,
        force: bool,
        max_bytes: u64,
    ) -> Result<Self, TransferError> {
        if !force && to.symlink_metadata().is_ok() {
            return Err(SessionError::Exists(to.to_owned()).into());
        }
        let last = to.file_name();
        let mut name = OsString::from(".");
        name.push(last.ok_or_else(|| refused("the copy needs a name"))?);
        name.push(format!(
            ".{:016x}.tmp",
            RandomState::new().build_hasher().finish()
        ));
        let at = to.with_file_name(name);
        let (dir, made) = Dir::create(&at, Access::new(Share::Private))?;
        if !made {
            return Err(SessionError::Exists(at).into());
        }
        let lock = RecorderLock::acquire(&dir)?;
        let receiver = Self {
            frames,
            to: to.to_owned(),
            force,
            at,
            dir,
            lock: Some(lock),
            room: max_bytes,
            parts_left: MAX_PARTS,
            state: None,
            files: 0,
            bytes: 0,
            published: false,
        };
        let own = SessionError::io("set the owner of", &receiver.at);
        receiver.dir.claim().map_err(own)?;
        for table in TABLES {
            receiver.dir.make_dir(table.name)?;
        }
        Ok(receiver)
    }

    /// Reads until the copy is as the session was at one moment.
    ///
    /// # Errors
    /// [`TransferError`]: of a published copy the passes before stay.
    pub fn pass(&mut self) -> Result<Pass, TransferError> {
        loop {
            let message = match self.frames.frame()? {
                Frame::Text(text) => frame::parse(&text)?,
                _ => return Err(refused("data outside of a file")),
            };
            match message {
                Message::State(state) => {
                    let same = |known: &State| known.id == state.id;
                    if state.id.is_empty() || !self.state.as_ref().is_none_or(same) {
                        return Err(refused("it became another session"));
                    }
                    self.state = Some(state);
                }
                _ if self.state.is_none() => return Err(refused("it names no session")),
                Message::File { name, bytes } => self.file(&name, bytes)?,
                Message::Removed { name } => match Place::of(&name) {
                    Some(Place::Part(table, range)) => {
                        self.removed(table, range)
                            .map_err(SessionError::io("remove", &self.at.join(&name)))?;
                    }
                    _ => return Err(no_file(&name)),
                },
                Message::Pass => return Ok(Pass::Whole),
                Message::End { files, bytes } => {
                    if (files, bytes) != (self.files, self.bytes) {
                        return Err(refused(&format!(
                            "{files} files of {bytes} bytes were sent, {} of {} arrived",
                            self.files, self.bytes
                        )));
                    }
                    return Ok(Pass::Last);
                }
                Message::Failed { reason } => return Err(TransferError::There(reason)),
                Message::Whole { .. } => return Err(refused("the end of no file")),
            }
        }
    }

    fn removed(&mut self, table: &Table, range: PartRange) -> io::Result<()> {
        let (dir, name) = (self.dir.dir(table.name)?, range.to_string());
        let bytes = dir.open_file(&name)?.metadata()?.len();
        dir.remove(name)?;
        self.room = self.room.saturating_add(bytes);
        self.parts_left = self.parts_left.saturating_add(1);
        Ok(())
    }

    fn file(&mut self, name: &str, bytes: u64) -> Result<(), TransferError> {
        let place = Place::of(name).ok_or_else(|| no_file(name))?;
        let (dir, temporary, name) = match place {
            Place::Part(table, range) => (
                self.dir.own_dir(table.name)?,
                range.temporary_name(),
                range.to_string(),
            ),
            Place::Meta => (self.dir.clone(), META_TEMPORARY.into(), META_FILE.into()),
            Place::Pyramid(file) => (self.dir.clone(), PYRAMID_TEMPORARY.into(), file.into()),
            Place::Own(ref file) => (
                self.dir.make_dir(OWN_FOLDER)?,
                format!("{file}.tmp"),
                file.clone(),
            ),
        };
        let path = self.at.join(&name);
        let failed = || SessionError::io("write", &path);
        let disk = fstatvfs(&self.dir).map_err(|e| failed()(e.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // session.json comes again and again, in place of the one before.
        let (room, parts) = match place {
            Place::Part(..) | Place::Own(_) => (self.room, self.parts_left),
            Place::Pyramid(_) => (self.room, 1),
            Place::Meta => (MAX_META_BYTES, 1),
        };
        if bytes > free.min(room) || parts == 0 {
            return Err(refused(&format!(
                "{name} has {bytes} bytes; {free} are free, and {room} are allowed"
            )));
        }
        let mut file = dir.create_anew(&temporary).map_err(failed())?;
        let mut hash = XxHash64::with_seed(0);
        let mut left = bytes;
        let xxh64 = loop {
            match self.frames.frame()? {
                Frame::Data(block) if block.len() as u64 <= left && !block.is_empty() => {
                    hash.write(&block);
                    file.write_all(&block).map_err(failed())?;
                    left -= block.len() as u64;
                }
                Frame::Text(text) if left == 0 => match frame::parse(&text)? {
                    Message::Whole { xxh64 } => break xxh64,
                    _ => return Err(refused("a file without end")),
                },
                _ => return Err(refused(&format!("{name} has another size than announced"))),
            }
        };
        if xxh64 != hash.finish() {
            return Err(refused(&format!("{name} has another checksum")));
        }
        dir.rename(&temporary, &name).map_err(failed())?;
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if !matches!(place, Place::Meta) {
            self.room = self.room.saturating_sub(bytes);
        }
        if matches!(place, Place::Part(..) | Place::Own(_)) {
            self.parts_left = self.parts_left.saturating_sub(1);
        }
        Ok(())
    }

    /// Gives the copy its name. Readers take it for a session that is being recorded until it is
    /// finished.
    ///
    /// # Errors
    /// [`SessionError::Exists`] and the other errors of moving and replacing a session.
    pub fn publish(&mut self) -> Result<(), TransferError> {
        if self.force && self.to.symlink_metadata().is_ok() {
            create::discard(&self.to)?;
        }
        move_session(&self.at, &self.to)?;
        self.published = true;
        self.at.clone_from(&self.to);
        self.dir = Dir::open_own(&self.to)?;
        Ok(())
    }

    /// Checks the copy and gives it its name. A copy of a session that is being recorded is closed,
    /// as a snapshot is. After an error of a pass it closes the passes before.
    ///
    /// # Errors
    /// [`TransferError::Refused`] if it is not the session that was announced; the errors of opening,
    /// closing and moving a session.
    pub fn finish(mut self) -> Result<Received, TransferError> {
        let state = self
            .state
            .take()
            .ok_or_else(|| refused("it names no session"))?;
        let session = Session::open(&self.at)?;
        if session.meta().id != state.id {
            return Err(refused("its session.json is of another session"));
        }
        let live = session.meta().state == Recording::Recording && state.live;
        if live {
            self.close(&session, &state)?;
        }
        self.lock = None;
        let session = Session::open(&self.at)?;
        let totals = &session.meta().totals;
        let known = [
            totals.stored,
            totals.lost,
            totals.expired,
            totals.counted,
            totals.missing,
        ];
        // Damage that came with the session is no failure of the copy.
        let closed = session.meta().state == Recording::Complete && session.problems().is_empty();
        if closed && totals.seen != known.into_iter().fold(0, u64::saturating_add) {
            return Err(refused("the totals of its calls do not add up"));
        }
        if !self.published {
            self.publish()?;
        }
        Ok(Received {
            session: Session::open(&self.to)?,
            live,
            files: self.files,
            bytes: self.bytes,
        })
    }

    /// Makes a closed session of the copy: calls after the last row do not belong to it.
    fn close(&self, session: &Session, state: &State) -> Result<(), TransferError> {
        let mut meta = session.meta().clone();
        meta.clock.end(Moment {
            monotonic_ns: state.monotonic_ns,
            realtime_ns: state.realtime_ns,
        });
        meta.history.saves.clear();
        meta.history.saved_because = BECAUSE.to_owned();
        meta.totals.seen = 0;
        meta.totals.faults.seen = 0;
        meta.totals.writeback.seen = 0;
        let schemas = schema::all(&self.at, &meta)?;
        let mut parts: Vec<_> = TABLES
            .iter()
            .map(|table| session.part_infos(table.name).to_vec())
            .collect();
        let storage = Storage::new(self.dir.clone());
        // Pages may hold anything.
        let work = || finalize::finalize(&storage, &schemas, &mut parts, &mut meta, false);
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(SessionError::Part {
                path: self.at.clone(),
                reason: "its pages are damaged".to_owned(),
            })
        })?;
        meta.state = Recording::Complete;
        Ok(storage.write_meta(&meta, false)?)
    }
}

impl<R> Drop for Receiver<R> {
    fn drop(&mut self) {
        if !self.published {
            self.lock = None;
            // The reported error is the one that left it unfinished.
            let _ = create::discard(&self.at);
        }
    }
}

fn refused(reason: &str) -> TransferError {
    TransferError::Refused(reason.to_owned())
}

fn no_file(name: &str) -> TransferError {
    refused(&format!("{name:?} is no file of a session"))
}

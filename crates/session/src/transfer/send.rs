//! The side that has the session.

use std::collections::BTreeSet;
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use fathom_model::meta::{Moment, State as Recording};
use fathom_model::tables::{TABLES, Table};
use rustix::fs::FileType;
use rustix::time::{ClockId, clock_gettime};
use twox_hash::XxHash64;

use super::frame::{Frame, FrameWriter, TransferError};
use super::{Message, State};
use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::layout::{META_FILE, PartInfo, PartRange};
use crate::format::meta;
use crate::read::session::{Session, open_dir};

/// Bytes of a file in one frame.
const BLOCK: usize = 1 << 18;

/// Writes the session in `dir` to a stream. Of a session that is being recorded it writes what is
/// stored, and with `follow` every so often what is new, until the recording ends.
///
/// # Errors
/// The errors of [`Session::open`], and of writing. The stream names them, too.
pub fn send<W: Write>(
    dir: &Path,
    follow: Option<Duration>,
    to: &mut FrameWriter<W>,
) -> Result<(), TransferError> {
    let result = Sender::begin(dir, to).and_then(|mut sender| sender.run(follow));
    match &result {
        Ok(()) | Err(TransferError::Io(_)) => {}
        Err(error) => to.message(&Message::Failed {
            reason: error.to_string(),
        })?,
    }
    result
}

struct Sender<'a, W> {
    session: Session,
    folder: Dir,
    to: &'a mut FrameWriter<W>,
    /// Parts that the other side has: place of the table, and range.
    sent: BTreeSet<(usize, PartRange)>,
    meta: Vec<u8>,
    files: u64,
    bytes: u64,
}

impl<'a, W: Write> Sender<'a, W> {
    fn begin(dir: &Path, to: &'a mut FrameWriter<W>) -> Result<Self, TransferError> {
        Ok(Self {
            session: Session::glance(dir)?,
            folder: open_dir(dir)?,
            to,
            sent: BTreeSet::new(),
            meta: Vec::new(),
            files: 0,
            bytes: 0,
        })
    }

    fn run(&mut self, follow: Option<Duration>) -> Result<(), TransferError> {
        loop {
            let live = loop {
                if let Some(live) = self.pass()? {
                    break live;
                }
            };
            match follow {
                Some(pause) if live => std::thread::sleep(pause),
                _ => break,
            }
        }
        let (files, bytes) = (self.files, self.bytes);
        Ok(self.to.message(&Message::End { files, bytes })?)
    }

    /// Brings the copy to the state of the session. Returns whether it is being recorded, or `None`
    /// if parts were merged meanwhile, so that it is to be looked at again.
    fn pass(&mut self) -> Result<Option<bool>, TransferError> {
        self.session.refresh()?;
        if self.session.was_killed() {
            // Or closed since the metadata was read.
            self.session.refresh()?;
        }
        // A recorder that has closed the session may hold the lock for a moment more.
        let live = self.session.is_live() && self.session.meta().state == Recording::Recording;
        let at = Moment::read(|| now(ClockId::Monotonic), || now(ClockId::Realtime));
        self.to.message(&Message::State(State {
            id: self.session.meta().id.clone(),
            live,
            monotonic_ns: at.monotonic_ns,
            realtime_ns: at.realtime_ns,
        }))?;
        let mut wanted = BTreeSet::new();
        // The tables that calls refer to come before the calls.
        for (i, table) in TABLES.iter().enumerate().rev() {
            let parts = self.session.part_infos(table.name).iter();
            let mut ranges: Vec<_> = parts.map(|part| part.range).collect();
            if !live || self.session.is_damaged() {
                ranges.extend(self.left_out(table)?);
            }
            for range in ranges {
                wanted.insert((i, range));
                if self.sent.contains(&(i, range)) {
                    continue;
                }
                let name = format!("{}/{range}", table.name);
                let dir = self.folder.dir(table.name);
                let file = dir.and_then(|dir| dir.open_file(range.to_string()));
                let mut file = match file {
                    Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
                    file => file.map_err(self.failed(&name))?,
                };
                let bytes = file.metadata().map_err(self.failed(&name))?.len();
                self.file(&name, &mut file, bytes)?;
                self.sent.insert((i, range));
            }
        }
        let gone: Vec<_> = self.sent.difference(&wanted).copied().collect();
        for (i, range) in gone {
            let table = TABLES.get(i).map_or("", |table| table.name);
            let name = format!("{table}/{range}");
            self.to.message(&Message::Removed { name })?;
            self.sent.remove(&(i, range));
        }
        if !live {
            self.pyramids()?;
            self.own_tables()?;
        }
        if !self.session.was_rebuilt() {
            let meta = meta::to_json(self.session.meta()).map_err(io::Error::other)?;
            if meta != self.meta {
                self.file(META_FILE, &mut meta.as_slice(), meta.len() as u64)?;
                self.meta = meta;
            }
        }
        self.to.message(&Message::Pass)?;
        Ok(Some(live))
    }

    /// Parts that readers leave out because they are damaged or overlap others. The copy has them as
    /// they are: without them its damage would not be noticed.
    fn left_out(&self, table: &Table) -> Result<Vec<PartRange>, TransferError> {
        let failed = || self.failed(table.name);
        if self.folder.kind(table.name).map_err(failed())? != Some(FileType::Directory) {
            return Ok(Vec::new());
        }
        let dir = self.folder.dir(table.name).map_err(failed())?;
        let taken = self.session.part_infos(table.name);
        let mut ranges = Vec::new();
        for name in dir.names().map_err(failed())? {
            let Some(range) = name.to_str().and_then(PartRange::parse) else {
                continue;
            };
            // Parts that were merged are in a part that is taken.
            let has = |part: &PartInfo| part.range == range || part.range.contains(&range);
            let is_taken = taken.iter().any(has);
            let kind = dir.kind(&name).map_err(failed())?;
            if !is_taken && kind == Some(FileType::RegularFile) {
                ranges.push(range);
            }
        }
        Ok(ranges)
    }

    fn own_tables(&mut self) -> Result<(), TransferError> {
        for own in self.session.own_tables().to_vec() {
            let (folder, name) = own.file.split_once('/').unwrap_or(("", &own.file));
            let file = self.folder.dir(folder).and_then(|dir| dir.open_file(name));
            let mut file = file.map_err(self.failed(&own.file))?;
            self.file(&own.file, &mut file, own.bytes)?;
        }
        Ok(())
    }

    fn pyramids(&mut self) -> Result<(), TransferError> {
        for source in fathom_pyramid::SOURCES {
            let mut file = match self.folder.open_file(source.file) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                file => file.map_err(self.failed(source.file))?,
            };
            let bytes = file.metadata().map_err(self.failed(source.file))?.len();
            self.file(source.file, &mut file, bytes)?;
        }
        Ok(())
    }

    fn file(&mut self, name: &str, from: &mut impl Read, bytes: u64) -> Result<(), TransferError> {
        let file = Message::File {
            name: name.to_owned(),
            bytes,
        };
        self.to.message(&file)?;
        let mut hash = XxHash64::with_seed(0);
        let mut left = bytes;
        while left > 0 {
            let length = left.min(BLOCK as u64);
            let mut block = vec![0; usize::try_from(length).unwrap_or(BLOCK)];
            from.read_exact(&mut block).map_err(self.failed(name))?;
            hash.write(&block);
            self.to.frame(&Frame::Data(block))?;
            left -= length;
        }
        self.files += 1;
        self.bytes += bytes;
        let xxh64 = hash.finish();
        Ok(self.to.message(&Message::Whole { xxh64 })?)
    }

    fn failed(&self, name: &str) -> impl FnOnce(io::Error) -> SessionError + use<W> {
        SessionError::io("read", &self.folder.path().join(name))
    }
}

fn now(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

//! Shipping a session.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path as FilePath;

use fathom_model::findings::FindingRow;
use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::{FAULTS, SYSCALLS, TABLES, WRITEBACK};
use fathom_redact::{Key, Rules, Scratch, redacted_host, without_secrets};
use fathom_session::{Session, WriterOptions};
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use sha2::{Digest, Sha256};

use crate::contents::{self, Blocks, Contents, Source, hex};
use crate::destination::Destination;
use crate::error::ShipError;
use crate::findings;
use crate::layout::{self, FINDINGS, MARKER, MARKERS, OBJECTS, Partition, SESSIONS};
use crate::made;
use crate::marker::{LAYOUT_VERSION, Marker, Object};

/// Requests to the store at a time.
const AT_ONCE: usize = 4;
/// A marker is not longer, bytes.
const MAX_MARKER: u64 = 64 << 20;

/// How a session is redacted before it leaves the host.
#[derive(Clone)]
pub struct Redaction {
    /// The action for each kind of text.
    pub rules: Rules,
    /// The key of the hashes.
    pub key: Key,
}

/// Without the key.
impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Redaction");
        text.field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// A session that is to be shipped.
#[derive(Debug)]
pub struct Shipment<'a> {
    /// Directory of the session.
    pub session: &'a FilePath,
    /// If it is to be redacted.
    pub redaction: Option<&'a Redaction>,
    /// Without redaction: passwords, tokens, and keys in command lines are shipped, too.
    pub keep_secrets: bool,
    /// Run the rules, for table `findings`.
    pub findings: bool,
    /// Replace another state of the session that was shipped before.
    pub force: bool,
}

/// The result of a shipment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shipped {
    /// Objects of the session, with the marker.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects among them that were uploaded now.
    pub uploaded_objects: u64,
    /// Their bytes.
    pub uploaded_bytes: u64,
    /// Objects of other contents that were removed: of an attempt that was interrupted, or replaced.
    pub removed_objects: u64,
}

/// An object and its place.
struct Planned {
    path: Path,
    contents: Contents,
}

impl Shipment<'_> {
    /// Ships the session. `progress` receives the bytes that are there, and their number.
    ///
    /// # Errors
    /// [`ShipError::Unfit`] for a session that is being recorded, was not closed, or is damaged;
    /// [`ShipError::Changed`] without force; [`ShipError::Store`]; the errors of [`Session::open`],
    /// [`Scratch::make`], and [`fathom_diagnose::diagnose_once`].
    pub fn ship(
        &self,
        destination: &Destination,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Shipped, ShipError> {
        // The client of stores needs a second thread, for the names of hosts.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ShipError::io("start threads for", self.session))?;
        runtime.block_on(self.go(destination, progress))
    }

    async fn go(
        &self,
        destination: &Destination,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Shipped, ShipError> {
        let original = open(self.session)?;
        let source = self.source(&original)?;
        let mut meta = original.meta().clone();
        if let Some(redaction) = self.redaction {
            meta.host.name = redacted_host(&meta.host, &redaction.rules, &redaction.key);
        }
        let partition = Partition::of(&meta);
        let marker_path = format!("{}/{MARKER}", partition.dir(MARKERS));
        let marker_path = destination.path(&marker_path)?;
        match read_marker(destination, &marker_path).await? {
            Found::Nothing => {}
            // An earlier fathom, or a shipment without findings, has left them out.
            Found::Marker(marker, _)
                if marker.source == source && self.findings && !marker.has(FINDINGS) =>
            {
                delete(destination, &marker_path).await?;
            }
            Found::Marker(marker, bytes) if marker.source == source => {
                let sizes = marker.objects.iter().map(|object| object.bytes);
                return Ok(Shipped {
                    objects: marker.objects.len() as u64 + 1,
                    bytes: sizes.sum::<u64>() + bytes,
                    ..Shipped::default()
                });
            }
            Found::Marker(..) | Found::Other if self.force => {
                delete(destination, &marker_path).await?;
            }
            Found::Marker(..) | Found::Other => {
                return Err(ShipError::Changed {
                    destination: destination.given().to_owned(),
                    session: meta.id,
                });
            }
        }
        let copy = match self.redaction {
            None => None,
            Some(redaction) => Some(Scratch::make(
                self.session,
                &std::env::temp_dir(),
                &redaction.rules,
                &redaction.key,
                WriterOptions::default(),
                &mut |_, _| {},
            )?),
        };
        let session = match &copy {
            None => original,
            Some(copy) => Session::open(copy.session())?,
        };
        let findings = match self.findings {
            true => Some(findings::of(&session)?),
            false => None,
        };
        let mut meta = session.meta().clone();
        if !self.keep_secrets {
            meta.command = without_secrets(&meta.command);
        }
        let shipping = Shipping {
            destination,
            session: &session,
            meta,
            findings,
            keep_secrets: self.keep_secrets,
            partition,
            marker_path,
            source,
        };
        shipping.run(progress).await
    }

    /// Checksum of everything from which the objects follow.
    fn source(&self, session: &Session) -> Result<String, ShipError> {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&LAYOUT_VERSION.to_string());
        add(&serde_json::to_string(session.meta()).unwrap_or_default());
        if self.keep_secrets {
            add("secrets");
        }
        if let Some(redaction) = self.redaction {
            add(&format!("{:?}", redaction.rules));
            add(&redaction.key.fingerprint());
        }
        for table in TABLES {
            for part in session.part_infos(table.name) {
                let (_, sha256) = contents::hashed(session, table, part.range)?;
                add(&format!("{}/{} {sha256}", table.name, part.range));
            }
        }
        Ok(hex(&hash.finalize()))
    }
}

/// The session, which must be closed and whole: otherwise its counts would not agree with its rows.
fn open(path: &FilePath) -> Result<Session, ShipError> {
    let unfit = |reason| ShipError::Unfit {
        path: path.to_owned(),
        reason,
    };
    let session = Session::open(path)?;
    if session.is_live() {
        return Err(unfit(
            "it is being recorded; ship it when the recording has ended, or ship a snapshot of it \
             (fathom snapshot)",
        ));
    }
    if session.meta().state != State::Complete || session.is_damaged() {
        return Err(unfit(
            "it is damaged or was not closed; `fathom repair` it first",
        ));
    }
    if !has_all_rows(&session) {
        return Err(unfit(
            "its tables do not have the rows that its totals say; `fathom repair` it first, or copy it \
             again",
        ));
    }
    Ok(session)
}

/// Whether each table has the rows that it had when the session was closed.
fn has_all_rows(session: &Session) -> bool {
    let meta = session.meta();
    let counted = [
        (&SYSCALLS, meta.totals.stored),
        (&FAULTS, meta.totals.faults.stored),
        (&WRITEBACK, meta.totals.writeback.stored),
    ];
    let closed = TABLES.iter().filter_map(|table| {
        let rows = meta.rows.get(table.name)?;
        Some((*table, *rows))
    });
    closed
        .chain(counted)
        .all(|(table, said)| session.rows(table.name) == said)
}

enum Found {
    Nothing,
    /// With its size.
    Marker(Marker, u64),
    /// Another version of the layout, or no marker.
    Other,
}

async fn read_marker(destination: &Destination, path: &Path) -> Result<Found, ShipError> {
    let failed = || destination.failed("read", path);
    let found = match destination.store().get(path).await {
        Err(object_store::Error::NotFound { .. }) => return Ok(Found::Nothing),
        found => found.map_err(failed())?,
    };
    if found.meta.size > MAX_MARKER {
        return Ok(Found::Other);
    }
    let bytes = found.bytes().await.map_err(failed())?;
    Ok(match serde_json::from_slice::<Marker>(&bytes) {
        Ok(marker) if marker.layout_version == LAYOUT_VERSION => {
            Found::Marker(marker, bytes.len() as u64)
        }
        _ => Found::Other,
    })
}

async fn delete(destination: &Destination, path: &Path) -> Result<(), ShipError> {
    match destination.store().delete(path).await {
        Err(object_store::Error::NotFound { .. }) => Ok(()),
        result => result.map_err(destination.failed("remove", path)),
    }
}

/// A shipment on its way.
struct Shipping<'a> {
    destination: &'a Destination,
    /// As it is shipped.
    session: &'a Session,
    meta: SessionMeta,
    findings: Option<Vec<FindingRow>>,
    keep_secrets: bool,
    partition: Partition,
    marker_path: Path,
    source: String,
}

impl Shipping<'_> {
    async fn run(self, progress: &mut dyn FnMut(u64, u64)) -> Result<Shipped, ShipError> {
        let failed = || ShipError::parquet(self.session.dir());
        let mut planned = Vec::new();
        let mut named = Vec::new();
        for table in TABLES {
            for contents in contents::of_table(self.session, table, self.keep_secrets)? {
                self.plan(table.name, contents, &mut planned, &mut named)?;
            }
        }
        if let Some(findings) = &self.findings {
            let rows = made::findings(findings).map_err(failed())?;
            self.plan(FINDINGS, rows, &mut planned, &mut named)?;
        }
        let rows = made::objects(&named).map_err(failed())?;
        self.plan(OBJECTS, rows, &mut planned, &mut named)?;
        let row =
            made::sessions(&self.meta, self.findings.as_ref().map(Vec::len)).map_err(failed())?;
        let mut last = Vec::new();
        self.plan(SESSIONS, row, &mut last, &mut named)?;

        let there = self.there().await?;
        let wanted: HashSet<&Path> = planned.iter().chain(&last).map(|one| &one.path).collect();
        let gone: Vec<&Path> = there.keys().filter(|path| !wanted.contains(path)).collect();
        let removed_objects = gone.len() as u64;
        // The row in table `sessions` goes first: without it the session is not there.
        let (rows, others): (Vec<&Path>, Vec<&Path>) =
            gone.into_iter().partition(|path| self.is_row(path));
        for paths in [rows, others] {
            let deletions = stream::iter(paths).map(|path| delete(self.destination, path));
            deletions
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
        }

        let marker = self.marker(named)?;
        let total = planned.iter().chain(&last).map(|one| one.contents.bytes);
        let total = total.sum::<u64>() + marker.len() as u64;
        let mut shipped = Shipped {
            objects: (planned.len() + last.len()) as u64 + 1,
            bytes: total,
            removed_objects,
            ..Shipped::default()
        };
        let is_missing = |one: &&Planned| there.get(&one.path).copied() != Some(one.contents.bytes);
        let missing = planned.iter().chain(&last).filter(is_missing);
        let missing = missing.map(|one| one.contents.bytes).sum::<u64>() + marker.len() as u64;
        let mut done = total - missing;
        progress(done, total);
        for group in [&planned, &last] {
            let uploads = group.iter().filter(is_missing).map(|one| self.upload(one));
            let mut uploads = stream::iter(uploads).buffer_unordered(AT_ONCE);
            while let Some(bytes) = uploads.try_next().await? {
                shipped.uploaded_objects += 1;
                shipped.uploaded_bytes += bytes;
                done += bytes;
                progress(done, total);
            }
        }
        let bytes = marker.len() as u64;
        self.put(&self.marker_path, marker.into()).await?;
        shipped.uploaded_objects += 1;
        shipped.uploaded_bytes += bytes;
        progress(total, total);
        Ok(shipped)
    }

    fn plan(
        &self,
        table: &str,
        contents: Contents,
        planned: &mut Vec<Planned>,
        named: &mut Vec<Object>,
    ) -> Result<(), ShipError> {
        let relative = format!("{}/{}", self.partition.dir(table), contents.name);
        let path = self.destination.path(&relative)?;
        named.push(Object {
            table: table.to_owned(),
            path: relative,
            bytes: contents.bytes,
            rows: contents.rows,
            sha256: contents.sha256.clone(),
        });
        planned.push(Planned { path, contents });
        Ok(())
    }

    /// The contents of the marker.
    fn marker(&self, objects: Vec<Object>) -> Result<Vec<u8>, ShipError> {
        let marker = Marker {
            layout_version: LAYOUT_VERSION,
            session: self.meta.id.clone(),
            source: self.source.clone(),
            objects,
        };
        let json = marker.to_json(&self.meta).map_err(std::io::Error::from);
        json.map_err(ShipError::io("describe", self.session.dir()))
    }

    /// The objects of the session that are there, with their sizes.
    async fn there(&self) -> Result<HashMap<Path, u64>, ShipError> {
        let tables = TABLES.iter().map(|table| table.name);
        let dirs = tables
            .chain([FINDINGS, OBJECTS, SESSIONS])
            .map(|table| async move {
                let dir = self.partition.dir(table);
                self.destination.clear_begun(&dir)?;
                let dir = self.destination.path(&dir)?;
                let list = self.destination.store().list(Some(&dir));
                let list = list.try_filter(|object| {
                    let name = object.location.filename();
                    std::future::ready(name.is_some_and(layout::is_part_name))
                });
                let list = list.map_ok(|object| (object.location, object.size));
                let list = list.try_collect::<Vec<_>>().await;
                list.map_err(self.destination.failed("list", &dir))
            });
        let lists = stream::iter(dirs).buffer_unordered(AT_ONCE);
        let lists: Vec<Vec<(Path, u64)>> = lists.try_collect().await?;
        self.destination.clear_begun(&self.partition.dir(MARKERS))?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// Whether the object is the row of a session.
    fn is_row(&self, path: &Path) -> bool {
        let dir = self.destination.path(&self.partition.dir(SESSIONS));
        dir.is_ok_and(|dir| path.prefix_matches(&dir))
    }

    /// Sends an object; returns its size.
    async fn upload(&self, one: &Planned) -> Result<u64, ShipError> {
        let (bytes, piece) = (one.contents.bytes, self.destination.piece());
        match &one.contents.source {
            Source::Bytes(bytes) => self.put(&one.path, bytes.clone().into()).await?,
            Source::Part {
                table,
                range,
                end,
                then,
            } => {
                let rest = (*end, then.clone());
                let mut blocks = Blocks::open(self.session, table, *range, rest)?;
                match bytes <= piece as u64 {
                    true => self.put(&one.path, blocks.next(piece)?.into()).await?,
                    false => self.put_pieces(&one.path, &mut blocks).await?,
                }
            }
        }
        Ok(bytes)
    }

    async fn put(&self, path: &Path, bytes: PutPayload) -> Result<(), ShipError> {
        let put = self.destination.store().put(path, bytes).await;
        put.map(drop)
            .map_err(self.destination.failed("write", path))
    }

    async fn put_pieces(&self, path: &Path, blocks: &mut Blocks) -> Result<(), ShipError> {
        let failed = || self.destination.failed("write", path);
        let upload = self.destination.store().put_multipart(path).await;
        let piece = self.destination.piece();
        let mut upload = WriteMultipart::new_with_chunk_size(upload.map_err(failed())?, piece);
        loop {
            // A piece is on its way while the next is read.
            upload.wait_for_capacity(1).await.map_err(failed())?;
            match blocks.next(piece) {
                Ok(block) if block.is_empty() => break,
                Ok(block) => upload.put(block),
                Err(error) => {
                    // Otherwise the store would keep the pieces. That it does is no worse than the error.
                    let _ = upload.abort().await;
                    return Err(error);
                }
            }
        }
        upload.finish().await.map(drop).map_err(failed())
    }
}

#[cfg(test)]
mod tests;

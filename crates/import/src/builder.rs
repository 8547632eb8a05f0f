//! Rows of a session from calls of a log.

use fathom_model::layers::{Layer, LayerSet};
use std::collections::HashMap;
use std::path::PathBuf;

use fathom_model::abi::HIST_BUCKETS;
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::errno;
use fathom_model::meta::{
    Clock, Cost, Host, ImportSource, Options, RecordedLayer, SessionMeta, State, Totals,
};
use fathom_model::syscalls::Syscall;
use fathom_model::tables::{
    BlockRow, BlockRows, FilePathRow, FilePathRows, FileRow, FileRows, LossRow, LossRows,
    ProcessRow, ProcessRows, SCHEMA_VERSION, SyscallRow, SyscallRows,
};
use fathom_model::{StrId, StringTable};
use fathom_session::SessionWriter;

use crate::Format;
use crate::error::ImportError;

/// Rows that are handed to the writer at once.
const BATCH_ROWS: usize = 32 * 1024;
/// Bytes of their strings with which fewer are.
const BATCH_BYTES: usize = 32 << 20;

/// One call of a log. Fields that the log does not contain are `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call {
    /// From [`Builder::next_rid`]; `None`: it has none yet.
    pub rid: Option<i64>,
    pub ts_ns: i64,
    pub dur_ns: Option<i64>,
    pub pid: Option<i32>,
    pub tid: i32,
    pub comm: Option<Vec<u8>>,
    pub cpu: Option<i32>,
    pub ret: Option<i64>,
    pub fd: Option<i32>,
    pub file_id: Option<i64>,
    pub offset: Option<i64>,
    pub size: Option<i64>,
    pub bytes: Option<i64>,
    pub flags: Option<String>,
    pub path_arg: Option<Vec<u8>>,
    pub path_arg2: Option<Vec<u8>>,
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    pub args: String,
    /// XXH64 of the bytes moved.
    pub hash: Option<i64>,
    /// The first bytes moved.
    pub content: Option<Vec<u8>>,
    /// Bytes that hash or content covers.
    pub content_bytes: Option<i64>,
}

/// A block request of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockRequest {
    /// The call that caused it.
    pub rid: Option<i64>,
    /// The process and the thread that submitted it.
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub comm: Option<Vec<u8>>,
    pub device: Vec<u8>,
    pub sector: Option<i64>,
    pub bytes: i64,
    pub op: &'static str,
    pub flags: String,
    /// The block layer's status.
    pub status: Option<i32>,
    pub inserted_at_ns: Option<i64>,
    pub issued_at_ns: Option<i64>,
    pub completed_at_ns: Option<i64>,
    pub cpu: Option<i32>,
}

/// Known properties of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileInfo {
    pub path: Vec<u8>,
    pub kind: &'static str,
    pub first_at_ns: i64,
    /// Device, inode and the tag, where the log has them.
    pub identity: Option<(i64, i64, String)>,
}

/// Known properties of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadInfo {
    pub pid: Option<i32>,
    pub tid: i32,
    pub ppid: Option<i32>,
    pub comm: Option<Vec<u8>>,
    pub exe: Option<Vec<u8>>,
    pub cmdline: Option<Vec<u8>>,
    pub started_at_ns: i64,
    pub ended_at_ns: Option<i64>,
    pub exit_status: Option<i32>,
}

/// Collects rows and hands them to the writer.
pub(crate) struct Builder {
    writer: SessionWriter,
    calls: SyscallRows,
    strings: StringTable,
    rid: i64,
    calls_stored: u64,
    waits_stored: u64,
    irqs_stored: u64,
    first_at_ns: Option<i64>,
    last_at_ns: i64,
    /// Files by path: of one path the one that has it now.
    by_path: HashMap<Vec<u8>, i64>,
    files: HashMap<i64, FileInfo>,
    changed: Vec<i64>,
    next_file: i64,
    paths: FilePathRows,
    path_strings: StringTable,
    blocks: BlockRows,
    block_strings: StringTable,
    block_id: i64,
    losses: LossRows,
    loss_strings: StringTable,
    lost: u64,
}

impl Builder {
    pub fn new(writer: SessionWriter) -> Self {
        Builder {
            writer,
            calls: SyscallRows::default(),
            strings: StringTable::new(),
            rid: 0,
            calls_stored: 0,
            waits_stored: 0,
            irqs_stored: 0,
            first_at_ns: None,
            last_at_ns: i64::MIN,
            by_path: HashMap::new(),
            files: HashMap::new(),
            changed: Vec::new(),
            next_file: 1,
            paths: FilePathRows::default(),
            path_strings: StringTable::new(),
            blocks: BlockRows::default(),
            block_strings: StringTable::new(),
            block_id: 0,
            losses: LossRows::default(),
            loss_strings: StringTable::new(),
            lost: 0,
        }
    }

    /// The id of a call whose row is still to come.
    pub fn next_rid(&mut self) -> i64 {
        self.rid += 1;
        self.rid
    }

    /// Adds a call of `syscall`.
    pub fn call(&mut self, syscall: &'static Syscall, call: &Call) -> Result<(), ImportError> {
        let rid = call.rid.unwrap_or_else(|| self.next_rid());
        self.calls_stored += 1;
        self.seen(call.ts_ns);
        self.seen(call.ts_ns.saturating_add(call.dur_ns.unwrap_or(0)));
        let strings = &mut self.strings;
        let mut bytes = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => strings.intern(escape_invalid_utf8(bytes).as_bytes()),
            None => StrId::NULL,
        };
        let failed = call.ret.and_then(errno::of_return).filter(|_| {
            // Addresses that look like errors are none.
            call.ret.is_some_and(|r| r < 0)
        });
        let args = (!call.args.is_empty()).then_some(call.args.as_bytes());
        self.calls.push(SyscallRow {
            rid,
            ts_ns: call.ts_ns,
            dur_ns: call.dur_ns.unwrap_or(NULL_I64),
            pid: call.pid.unwrap_or(NULL_I32),
            tid: call.tid,
            comm: bytes(call.comm.as_deref()),
            cpu: call.cpu.unwrap_or(NULL_I32),
            syscall: bytes(Some(syscall.name.as_bytes())),
            class: bytes(Some(syscall.class.name().as_bytes())),
            ret: call.ret.unwrap_or(NULL_I64),
            errno: bytes(failed.and_then(errno::name).map(str::as_bytes)),
            fd: call.fd.unwrap_or(NULL_I32),
            file_id: call.file_id.unwrap_or(NULL_I64),
            file_offset: call.offset.unwrap_or(NULL_I64),
            size: call.size.unwrap_or(NULL_I64),
            bytes: call.bytes.unwrap_or(NULL_I64),
            flags: bytes(call.flags.as_deref().map(str::as_bytes)),
            path_arg: bytes(call.path_arg.as_deref()),
            path_arg2: bytes(call.path_arg2.as_deref()),
            path: bytes(call.path.as_deref()),
            path2: bytes(call.path2.as_deref()),
            hash: call.hash.unwrap_or(NULL_I64),
            args: bytes(args),
            api: bytes(Some(syscall.api.name().as_bytes())),
            content_bytes: call.content_bytes.unwrap_or(NULL_I64),
            content: match &call.content {
                Some(content) => self.strings.intern(content),
                None => StrId::NULL,
            },
            ..SyscallRow::default()
        });
        if self.calls.len() >= BATCH_ROWS || self.strings.bytes() >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds rows of other tables.
    pub fn batches(&mut self, batches: Vec<Batch>) -> Result<(), ImportError> {
        for batch in batches {
            let rows = batch.len() as u64;
            match batch.table.name {
                "waits" => self.waits_stored += rows,
                "irqs" => self.irqs_stored += rows,
                _ => {}
            }
            self.writer.append(batch)?;
        }
        Ok(())
    }

    /// Adds a block request; returns `ts_ns` of its row.
    pub fn block(&mut self, request: &BlockRequest) -> Result<i64, ImportError> {
        self.block_id += 1;
        let times = [
            request.inserted_at_ns,
            request.issued_at_ns,
            request.completed_at_ns,
        ];
        let ts_ns = times.into_iter().flatten().min().unwrap_or(0);
        let end = request.completed_at_ns;
        self.seen(ts_ns);
        self.seen(end.unwrap_or(ts_ns));
        let strings = &mut self.block_strings;
        self.blocks.push(BlockRow {
            block_id: self.block_id,
            rid: request.rid.unwrap_or(NULL_I64),
            pid: request.pid.unwrap_or(NULL_I32),
            tid: request.tid.unwrap_or(NULL_I32),
            comm: match &request.comm {
                Some(comm) => strings.intern(escape_invalid_utf8(comm).as_bytes()),
                None => StrId::NULL,
            },
            ts_ns,
            dur_ns: end.map_or(NULL_I64, |end| end.saturating_sub(ts_ns)),
            device: strings.intern(escape_invalid_utf8(&request.device).as_bytes()),
            sector: request.sector.unwrap_or(NULL_I64),
            bytes: request.bytes,
            op: strings.intern(request.op.as_bytes()),
            flags: match request.flags.is_empty() {
                true => StrId::NULL,
                false => strings.intern(request.flags.as_bytes()),
            },
            error: request.status.filter(|_| end.is_some()).unwrap_or(NULL_I32),
            inserted_at_ns: request.inserted_at_ns.unwrap_or(NULL_I64),
            issued_at_ns: request.issued_at_ns.unwrap_or(NULL_I64),
            completed_at_ns: end.unwrap_or(NULL_I64),
            cpu: request.cpu.unwrap_or(NULL_I32),
            ..BlockRow::default()
        });
        if self.blocks.len() >= BATCH_ROWS {
            self.flush_blocks()?;
        }
        Ok(ts_ns)
    }

    /// Whether there are block requests.
    pub fn has_blocks(&self) -> bool {
        self.block_id > 0
    }

    /// Adds events that the tracer had no room for.
    pub fn lost(&mut self, count: u64, cpu: Option<i32>, first_at_ns: i64, last_at_ns: i64) {
        self.lost = self.lost.saturating_add(count);
        let strings = &mut self.loss_strings;
        self.losses.push(LossRow {
            stage: strings.intern(b"ring"),
            cpu: cpu.unwrap_or(-1),
            syscall: strings.intern(b"unknown"),
            layer: strings.intern(Layer::Syscall.name().as_bytes()),
            count: i64::try_from(count).unwrap_or(i64::MAX),
            first_at_ns,
            last_at_ns,
            pid: -1,
            file_id: -1,
            hist: vec![0; HIST_BUCKETS as usize],
            ..LossRow::default()
        });
    }

    fn flush_blocks(&mut self) -> Result<(), ImportError> {
        if !self.blocks.is_empty() {
            let rows = std::mem::take(&mut self.blocks);
            let strings = std::mem::take(&mut self.block_strings);
            self.writer.append(rows.into_batch(strings))?;
        }
        Ok(())
    }

    /// Something took place at `ns`.
    pub fn seen(&mut self, ns: i64) {
        self.first_at_ns = Some(self.first_at_ns.map_or(ns, |first| first.min(ns)));
        self.last_at_ns = self.last_at_ns.max(ns);
    }

    /// When the log's last event took place; `None` before the first.
    pub fn last_at_ns(&self) -> Option<i64> {
        self.first_at_ns.map(|_| self.last_at_ns)
    }

    /// The file that has `path` now.
    pub fn file(&mut self, path: &[u8], kind: &'static str, ns: i64) -> i64 {
        if let Some(id) = self.by_path.get(path).copied() {
            if kind != "unknown" {
                self.kind(id, kind);
            }
            return id;
        }
        let info = FileInfo {
            path: path.to_vec(),
            kind,
            first_at_ns: ns,
            identity: None,
        };
        self.add(info)
    }

    /// A file whose identity the log contains, by its tag.
    pub fn tagged(&mut self, info: FileInfo) -> i64 {
        self.add(info)
    }

    fn add(&mut self, info: FileInfo) -> i64 {
        let id = self.next_file;
        self.next_file += 1;
        if info.identity.is_none() {
            self.by_path.insert(info.path.clone(), id);
        }
        self.path(id, &info.path, info.first_at_ns);
        self.files.insert(id, info);
        self.changed.push(id);
        id
    }

    fn path(&mut self, id: i64, path: &[u8], ns: i64) {
        if path.is_empty() {
            return;
        }
        let text = escape_invalid_utf8(path);
        self.paths.push(FilePathRow {
            file_id: id,
            ts_ns: ns,
            path: self.path_strings.intern(text.as_bytes()),
            path_complete: path.starts_with(b"/"),
            ..FilePathRow::default()
        });
    }

    /// The type of a file became known.
    pub fn kind(&mut self, id: i64, kind: &'static str) {
        if let Some(info) = self.files.get_mut(&id)
            && info.kind != kind
        {
            info.kind = kind;
            self.changed.push(id);
        }
    }

    /// A rename succeeded.
    pub fn renamed(&mut self, from: &[u8], to: &[u8], ns: i64) {
        let Some(id) = self.by_path.remove(from) else {
            self.by_path.remove(to);
            return;
        };
        self.by_path.insert(to.to_vec(), id);
        self.path(id, to, ns);
        if let Some(info) = self.files.get_mut(&id) {
            info.path = to.to_vec();
            self.changed.push(id);
        }
    }

    /// A name was removed: a file of that name is another one from now on.
    pub fn removed(&mut self, path: &[u8]) {
        self.by_path.remove(path);
    }

    fn flush(&mut self) -> Result<(), ImportError> {
        self.flush_files()?;
        if !self.calls.is_empty() {
            let rows = std::mem::take(&mut self.calls);
            let strings = std::mem::take(&mut self.strings);
            self.writer.append(rows.into_batch(strings))?;
        }
        Ok(())
    }

    fn flush_files(&mut self) -> Result<(), ImportError> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        let mut rows = FileRows::default();
        let mut strings = StringTable::new();
        for id in &changed {
            let Some(info) = self.files.get(id) else {
                continue;
            };
            let text = escape_invalid_utf8(&info.path);
            let raw = matches!(text, std::borrow::Cow::Owned(_));
            let mut row = FileRow {
                file_id: *id,
                first_seen_at_ns: info.first_at_ns,
                path_complete: info.path.starts_with(b"/"),
                ..FileRow::default()
            };
            if let Some((dev, ino, tag)) = &info.identity {
                (row.dev, row.ino) = (*dev, *ino);
                row.file_tag = strings.intern(tag.as_bytes());
            }
            if !info.path.is_empty() {
                row.path = strings.intern(text.as_bytes());
            }
            if raw {
                row.path_raw = strings.intern(&info.path);
            }
            row.file_type = strings.intern(info.kind.as_bytes());
            rows.push(row);
        }
        if !rows.is_empty() {
            self.writer.append(rows.into_batch(strings))?;
        }
        if !self.paths.is_empty() {
            let rows = std::mem::take(&mut self.paths);
            let strings = std::mem::take(&mut self.path_strings);
            self.writer.append(rows.into_batch(strings))?;
        }
        Ok(())
    }

    /// Adds the rows of threads.
    pub fn threads(&mut self, threads: &[ThreadInfo]) -> Result<(), ImportError> {
        let mut rows = ProcessRows::default();
        let mut strings = StringTable::new();
        for thread in threads {
            let mut text = |bytes: &Option<Vec<u8>>| match bytes {
                Some(bytes) => strings.intern(escape_invalid_utf8(bytes).as_bytes()),
                None => StrId::NULL,
            };
            rows.push(ProcessRow {
                pid: thread.pid.unwrap_or(NULL_I32),
                tid: thread.tid,
                ppid: thread.ppid.unwrap_or(NULL_I32),
                comm: text(&thread.comm),
                exe: text(&thread.exe),
                cmdline: text(&thread.cmdline),
                started_at_ns: thread.started_at_ns,
                ended_at_ns: thread.ended_at_ns.unwrap_or(NULL_I64),
                exit_status: thread.exit_status.unwrap_or(NULL_I32),
                ..ProcessRow::default()
            });
        }
        if !rows.is_empty() {
            self.writer.append(rows.into_batch(strings))?;
        }
        Ok(())
    }

    /// Closes the session; returns its calls.
    pub fn finish(mut self, mut meta: SessionMeta) -> Result<u64, ImportError> {
        self.flush()?;
        self.flush_blocks()?;
        if !self.losses.is_empty() {
            let rows = std::mem::take(&mut self.losses);
            let strings = std::mem::take(&mut self.loss_strings);
            self.writer.append(rows.into_batch(strings))?;
        }
        // Column ts_ns has the wall clock.
        let start = self.first_at_ns.unwrap_or(0);
        let end = self.last_at_ns.max(start);
        meta.clock = Clock {
            start_monotonic_ns: start,
            start_realtime_ns: start,
            end_monotonic_ns: Some(end),
            end_realtime_ns: Some(end),
            wall_error_ns: None,
        };
        let calls = self.calls_stored;
        meta.totals.seen = calls.saturating_add(self.lost);
        meta.totals.lost = self.lost;
        meta.totals.layers.block = u64::try_from(self.block_id).unwrap_or(0);
        meta.totals.layers.waits = self.waits_stored;
        meta.totals.layers.irqs = self.irqs_stored;
        self.writer.finish(meta)?;
        Ok(calls)
    }
}

/// The metadata of a session before its log is read.
pub(crate) fn meta(format: Format, files: &[PathBuf]) -> SessionMeta {
    let names: Vec<String> = files
        .iter()
        .map(|f| f.to_string_lossy().into_owned())
        .collect();
    let target = match names.as_slice() {
        [one] => format!("{} log {one}", format.name()),
        many => format!(
            "{} logs {} and {} more",
            format.name(),
            many.first().map_or("", String::as_str),
            many.len().saturating_sub(1)
        ),
    };
    SessionMeta {
        schema_version: SCHEMA_VERSION,
        fathom_version: env!("CARGO_PKG_VERSION").to_string(),
        id: random_id(),
        state: State::Recording,
        command: Vec::new(),
        target,
        options: Options {
            detail: "import".into(),
            syscalls: vec!["as traced".into()],
            ..Options::default()
        },
        labels: Default::default(),
        host: Host::default(),
        clock: Clock::default(),
        hooks: Vec::new(),
        layers: LayerSet::chosen()
            .iter()
            .map(|name| layer(name, format))
            .collect(),
        totals: Totals::default(),
        rows: Default::default(),
        exit_status: None,
        cost: Cost::default(),
        content: None,
        spans: None,
        library_budget: None,
        perf_counters: Vec::new(),
        own_tables: Default::default(),
        history: Default::default(),
        source: Some(ImportSource {
            format: format.name().into(),
            files: names,
            ..ImportSource::default()
        }),
    }
}

/// A log has calls.
fn layer(name: Layer, format: Format) -> RecordedLayer {
    let recorded = name == Layer::Syscall;
    RecordedLayer {
        name,
        recorded,
        reason: match recorded {
            true => String::new(),
            false => format!("a log of {} does not tell", format.name()),
        },
    }
}

/// 32 hexadecimal digits.
fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

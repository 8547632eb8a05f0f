//! A small session with known contents, written as Parquet from the model's tables.
#![allow(missing_docs, reason = "columns of the tables")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use fathom_model::meta::{Clock, Cost, Host, Options, SessionMeta, State, Totals};
use fathom_model::syscalls::{SYSCALLS, Syscall};
use fathom_model::tables::{
    BioRow, BioRows, BlockRow, BlockRows, FaultRow, FaultRows, FileRow, FileRows, LossRow,
    LossRows, ProcessRow, ProcessRows, SliceRow, SliceRows, SyscallRow, SyscallRows,
};
use fathom_model::{Batch, ColumnData, StrId, StringTable, batch::NULL_I32, batch::NULL_I64};
use parquet::arrow::ArrowWriter;

use crate::stored;

/// CLOCK_MONOTONIC at the start of the fixed session.
pub const START: i64 = 5_000_000_000_000;
/// CLOCK_REALTIME then: 2025-03-01 12:00:00 UTC.
pub const WALL: i64 = 1_740_830_400_000_000_000;
/// A name that would clear the screen, end a string, and open an element.
pub const HOSTILE: &str = "/srv/a\u{1b}[2J\n'\"<script>alert(1)</script>\u{9b}31m\\xff";

/// The files of a session under construction.
pub struct Files {
    dir: PathBuf,
    parts: HashMap<&'static str, Vec<PathBuf>>,
}

impl Files {
    /// A session without rows in `dir`.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            parts: HashMap::new(),
        }
    }

    /// Writes `batch` as the next part of its table.
    pub fn add(&mut self, batch: &Batch) -> &mut Self {
        let parts = self.parts.entry(batch.table.name).or_default();
        let folder = self.dir.join(batch.table.name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{:06}.parquet", parts.len()));
        write_parquet(batch, &path);
        parts.push(path);
        self
    }

    /// The parts of table `name`.
    pub fn parts(&self, name: &str) -> Vec<PathBuf> {
        self.parts.get(name).cloned().unwrap_or_default()
    }
}

/// The rows of `batch` as Arrow's.
pub fn record_batch(batch: &Batch) -> RecordBatch {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (column, data) in batch.table.columns.iter().zip(&batch.columns) {
        let bytes = |id: &StrId| (*id != StrId::NULL).then(|| batch.strings.get(*id));
        let array: ArrayRef = match data {
            ColumnData::I64(v) => Arc::new(Int64Array::from_iter(
                v.iter().map(|n| (*n != NULL_I64).then_some(*n)),
            )),
            ColumnData::I32(v) => Arc::new(Int32Array::from_iter(
                v.iter().map(|n| (*n != NULL_I32).then_some(*n)),
            )),
            ColumnData::Bool(v) => Arc::new(BooleanArray::from(v.clone())),
            ColumnData::Str(v) => Arc::new(StringArray::from_iter(
                v.iter()
                    .map(|id| bytes(id).map(|b| std::str::from_utf8(b).unwrap())),
            )),
            ColumnData::Blob(v) => Arc::new(BinaryArray::from_iter(v.iter().map(bytes))),
            ColumnData::ListI64(v) => Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
                v.iter()
                    .map(|list| Some(list.iter().copied().map(Some).collect::<Vec<_>>())),
            )),
        };
        let ty = match array.data_type() {
            DataType::List(item) => DataType::List(item.clone()),
            ty => ty.clone(),
        };
        fields.push(Field::new(column.name, ty, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

pub fn write_parquet(batch: &Batch, path: &Path) {
    let rows = record_batch(&stored::differences(batch));
    let rows = stored::named(batch.table, &rows);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

/// One call; what is not given is null.
pub struct Call {
    pub syscall: &'static str,
    pub at_ns: i64,
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub ret: Option<i64>,
    pub errno: Option<&'static str>,
    pub file_id: Option<i64>,
    pub bytes: Option<i64>,
    pub path: Option<&'static str>,
    pub flags: Option<&'static str>,
}

impl Call {
    pub fn new(syscall: &'static str, at_ns: i64, dur_ns: i64) -> Self {
        Self {
            syscall,
            at_ns,
            dur_ns,
            pid: 100,
            tid: 100,
            ret: Some(0),
            errno: None,
            file_id: None,
            bytes: None,
            path: None,
            flags: None,
        }
    }

    pub fn on(mut self, file_id: i64) -> Self {
        self.file_id = Some(file_id);
        self
    }

    pub fn moves(mut self, bytes: i64) -> Self {
        (self.bytes, self.ret) = (Some(bytes), Some(bytes));
        self
    }

    pub fn by(mut self, pid: i32, tid: i32) -> Self {
        (self.pid, self.tid) = (pid, tid);
        self
    }

    pub fn fails(mut self, ret: i64, errno: &'static str, path: &'static str) -> Self {
        (self.ret, self.errno, self.path) = (Some(ret), Some(errno), Some(path));
        self
    }

    pub fn with(mut self, flags: &'static str) -> Self {
        self.flags = Some(flags);
        self
    }

    pub fn pending(mut self) -> Self {
        self.ret = None;
        self
    }
}

fn call(name: &str) -> &'static Syscall {
    &SYSCALLS[Syscall::index_of(name).unwrap()]
}

/// Rows of table syscalls, numbered from `first_rid`.
pub fn syscalls(first_rid: i64, calls: &[Call]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SyscallRows::default();
    for (i, c) in calls.iter().enumerate() {
        let mut text = |s: Option<&str>| s.map_or(StrId::NULL, |s| strings.intern(s.as_bytes()));
        rows.push(SyscallRow {
            rid: first_rid + i as i64,
            ts_ns: START + c.at_ns,
            dur_ns: c.dur_ns,
            pid: c.pid,
            tid: c.tid,
            comm: text(Some(if c.tid == c.pid {
                "redis-server"
            } else {
                "bio_aof\u{1b}[5m"
            })),
            cpu: (i % 2) as i32,
            api: text(Some(call(c.syscall).api.name())),
            syscall: text(Some(c.syscall)),
            class: text(Some(call(c.syscall).class.name())),
            ret: c.ret.unwrap_or(NULL_I64),
            errno: text(c.errno),
            file_id: c.file_id.unwrap_or(NULL_I64),
            bytes: c.bytes.unwrap_or(NULL_I64),
            path: text(c.path),
            flags: text(c.flags),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// Rows of table files: id and path.
pub fn files(rows_in: &[(i64, &str)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = FileRows::default();
    for (id, path) in rows_in {
        rows.push(FileRow {
            file_id: *id,
            dev: 2049,
            ino: 1000 + id,
            generation: 1,
            file_tag: strings.intern(format!("2049|{}|{START}", 1000 + id).as_bytes()),
            path: strings.intern(path.as_bytes()),
            file_type: strings.intern(b"regular"),
            fs_type: strings.intern(b"ext4"),
            first_seen_at_ns: START,
            path_complete: true,
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// Rows of table processes, begun at START: pid, tid, name and end.
pub fn processes(rows_in: &[(i32, i32, &str, Option<i64>)]) -> Batch {
    let begun: Vec<_> = rows_in
        .iter()
        .map(|(pid, tid, comm, end)| (*pid, *tid, *comm, START, *end))
        .collect();
    lives(&begun)
}

/// Rows of table processes: pid, tid, name, begin and end.
pub fn lives(rows_in: &[(i32, i32, &str, i64, Option<i64>)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = ProcessRows::default();
    for (pid, tid, comm, begin, end) in rows_in {
        rows.push(ProcessRow {
            pid: *pid,
            tid: *tid,
            ppid: 1,
            comm: strings.intern(comm.as_bytes()),
            exe: strings.intern(b"/usr/bin/redis-server"),
            cmdline: strings.intern(b"redis-server --appendonly yes"),
            uid: 0,
            started_at_ns: *begin,
            ended_at_ns: end.unwrap_or(NULL_I64),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// One row of table losses.
pub struct Loss {
    pub syscall: &'static str,
    pub pid: i32,
    pub file_id: i64,
    pub count: i64,
    pub errors: i64,
    pub bytes: i64,
    /// Duration of each of them.
    pub each_ns: i64,
}

pub fn losses(rows_in: &[Loss]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = LossRows::default();
    for loss in rows_in {
        let layer: &[u8] = match loss.syscall {
            "page_fault" | "writeback" => b"pagecache",
            _ => b"syscall",
        };
        let mut hist = vec![0; 40];
        hist[loss.each_ns.ilog2() as usize] = loss.count;
        rows.push(LossRow {
            stage: strings.intern(b"ring"),
            cpu: 1,
            syscall: strings.intern(loss.syscall.as_bytes()),
            layer: strings.intern(layer),
            count: loss.count,
            bytes: loss.bytes,
            first_at_ns: START + 1_000_000,
            last_at_ns: START + 2_000_000,
            pid: loss.pid,
            file_id: loss.file_id,
            errors: loss.errors,
            dur_ns: loss.count * loss.each_ns,
            max_dur_ns: loss.each_ns,
            hist,
        });
    }
    rows.into_batch(strings)
}

/// Rows of table faults: file, kind and access, duration.
pub fn faults(rows_in: &[(i64, &str, &str, Option<i64>)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = FaultRows::default();
    for (i, (file_id, kind, access, dur_ns)) in rows_in.iter().enumerate() {
        rows.push(FaultRow {
            rid: 1_000_000 + i as i64,
            ts_ns: START + i as i64,
            dur_ns: dur_ns.unwrap_or(NULL_I64),
            pid: 100,
            tid: 100,
            cpu: 100,
            comm: strings.intern(b"redis-server"),
            access: strings.intern(access.as_bytes()),
            kind: strings.intern(kind.as_bytes()),
            cause: strings.intern(b"absent"),
            origin: strings.intern(b"user"),
            mapping: strings.intern(b"shared"),
            address: 0x7000_0000,
            file_id: *file_id,
            file_offset: 4096,
            around_offset: 4096,
            around_bytes: 8192,
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// Rows of table slices: request, layer, name, begin after START, duration and depth.
pub fn slices(rows_in: &[(i64, &str, &str, i64, i64, i32)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SliceRows::default();
    for (rid, layer, name, at_ns, dur_ns, depth) in rows_in {
        rows.push(SliceRow {
            rid: *rid,
            layer: strings.intern(layer.as_bytes()),
            name: strings.intern(name.as_bytes()),
            ts_ns: START + at_ns,
            dur_ns: *dur_ns,
            self_ns: *dur_ns,
            depth: *depth,
        });
    }
    rows.into_batch(strings)
}

/// Requests to device sda, each with one bio, numbered from 1 in tables block and bios: the
/// request of a program in whose course each was submitted, its operation, when it began after
/// START, and its duration.
pub fn device_requests(rows_in: &[(Option<i64>, &str, i64, i64)]) -> [Batch; 2] {
    let (mut strings, mut bio_strings) = (StringTable::new(), StringTable::new());
    let (mut blocks, mut bios) = (BlockRows::default(), BioRows::default());
    for (i, (submit_rid, op, at_ns, dur_ns)) in rows_in.iter().enumerate() {
        let (id, begin) = (i as i64 + 1, START + at_ns);
        blocks.push(BlockRow {
            block_id: id,
            ts_ns: begin,
            dur_ns: *dur_ns,
            device: strings.intern(b"sda"),
            op: strings.intern(op.as_bytes()),
            bytes: 4096,
            issued_at_ns: begin,
            completed_at_ns: begin + dur_ns,
            error: 0,
            cpu: 0,
            bios: 1,
            ..Default::default()
        });
        bios.push(BioRow {
            block_id: id,
            rid: submit_rid.unwrap_or(NULL_I64),
            submit_rid: submit_rid.unwrap_or(NULL_I64),
            ts_ns: begin,
            sector: 8 * id,
            bytes: 4096,
            origin: bio_strings.intern(b"call"),
            ..Default::default()
        });
    }
    [blocks.into_batch(strings), bios.into_batch(bio_strings)]
}

/// Metadata of a session that ended well after 4 seconds.
pub fn meta() -> SessionMeta {
    SessionMeta {
        state: State::Complete,
        command: ["redis-server", "--appendonly", "yes", "it's"]
            .map(String::from)
            .to_vec(),
        target: "-- redis-server --appendonly yes".into(),
        options: Options {
            detail: "full".into(),
            syscalls: vec!["storage".into()],
            ring_mib: 8,
            ..Options::default()
        },
        host: Host {
            name: "db1".into(),
            kernel: "6.18.1 #1 SMP".into(),
            arch: "x86_64".into(),
            cpus: 2,
            memory_bytes: 8 << 30,
            distribution: "Debian GNU/Linux 13".into(),
            ..Host::default()
        },
        clock: Clock {
            start_monotonic_ns: START,
            start_realtime_ns: WALL,
            end_monotonic_ns: Some(START + 4_000_000_000),
            end_realtime_ns: Some(WALL + 4_000_000_000),
            wall_error_ns: None,
        },
        totals: Totals {
            seen: 1027,
            stored: 1015,
            lost: 12,
            ..Totals::default()
        },
        exit_status: Some(0),
        cost: Cost {
            probe_ns_per_call: Some(183.5),
            probe_ns: Some(188_000),
            recorder_cpu_ns: Some(42_000_000),
            target_cpu_ns: Some(1_300_000_000),
            recorder_peak_rss_bytes: Some(37 << 20),
            recorder_limit_bytes: Some(800 << 20),
            drains: 80,
            ring_peak: Some(0.03),
        },
        ..crate::meta()
    }
}

/// The fixed session: 1015 stored calls, 12 lost ones, four files (one with a
/// hostile name, one whose row was written twice), two processes.
pub fn fixed(dir: &Path) -> Files {
    let mut calls = Vec::new();
    for i in 0..500 {
        let at = i * 8_000_000;
        // 1000, 1010, ... 5990 ns.
        calls.push(Call::new("write", at, 1000 + i * 10).on(1).moves(4096));
        calls.push(
            Call::new("pread64", at + 2_000_000, 700)
                .on(2)
                .moves(512)
                .by(100, 101),
        );
    }
    let mut more = vec![
        Call::new("openat", 100, 9_000).on(1),
        Call::new("openat", 200, 12_000).on(3),
        Call::new("fdatasync", 1_500_000_000, 8_300_000)
            .on(1)
            .by(100, 101),
        Call::new("read", 3_900_000_000, 90_000_000).on(4).pending(),
    ];
    for i in 0..7 {
        more.push(Call::new("openat", 2_000_000_000 + i, 2_000).fails(-2, "ENOENT", "/etc/none"));
    }
    for i in 0..4 {
        more.push(
            Call::new("unlinkat", 2_100_000_000 + i, 3_000)
                .by(200, 200)
                .fails(-13, "EACCES", HOSTILE),
        );
    }
    let mut files_ = Files::new(dir);
    files_
        .add(&syscalls(1, &calls))
        .add(&syscalls(1 + calls.len() as i64, &more))
        .add(&files(&[
            (1, "/var/lib/redis/old-name"),
            (2, "/var/lib/redis/dump.rdb"),
        ]))
        .add(&files(&[
            (1, "/var/lib/redis/appendonlydir/appendonly.aof.1.incr.aof"),
            (3, HOSTILE),
            (4, "/dev/null"),
        ]))
        .add(&processes(&[
            (100, 100, "redis-server", None),
            (100, 101, "bio_aof", None),
        ]))
        .add(&processes(&[
            (100, 100, "redis-server", Some(START + 3)),
            (200, 200, "cleaner", None),
        ]))
        .add(&losses(&[
            Loss {
                syscall: "write",
                pid: 100,
                file_id: 1,
                count: 8,
                errors: 0,
                bytes: 32768,
                each_ns: 70_000,
            },
            Loss {
                syscall: "fsync",
                pid: -1,
                file_id: -1,
                count: 4,
                errors: 1,
                bytes: 0,
                each_ns: 5_000_000,
            },
        ]));
    files_
}

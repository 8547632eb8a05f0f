//! A small session with known contents, written as Parquet from the model's
//! tables. Shared by the tests of fathom-query and fathom-report.
#![allow(dead_code)]

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
    BioRows, BlockRows, FaultRows, FileRows, LossRows, ProcessRows, SliceRows, SyscallRows,
};
use fathom_model::{Batch, ColumnData, StrId, StringTable, batch::NULL_I32, batch::NULL_I64};
use parquet::arrow::ArrowWriter;

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

/// Writes `batch` to one Parquet file.
pub fn write_parquet(batch: &Batch, path: &Path) {
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
    let schema = Arc::new(Schema::new(fields));
    let rows = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
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
        rows.rid.push(first_rid + i as i64);
        rows.ts_ns.push(START + c.at_ns);
        rows.dur_ns.push(c.dur_ns);
        rows.pid.push(c.pid);
        rows.tid.push(c.tid);
        rows.comm.push(text(Some(if c.tid == c.pid {
            "redis-server"
        } else {
            "bio_aof\u{1b}[5m"
        })));
        rows.cpu.push((i % 2) as i32);
        rows.api.push(text(Some(call(c.syscall).api.name())));
        rows.syscall.push(text(Some(c.syscall)));
        rows.class.push(text(Some(call(c.syscall).class.name())));
        rows.ret.push(c.ret.unwrap_or(NULL_I64));
        rows.errno.push(text(c.errno));
        rows.fd.push(NULL_I32);
        rows.file_id.push(c.file_id.unwrap_or(NULL_I64));
        rows.file_offset.push(NULL_I64);
        rows.size.push(NULL_I64);
        rows.bytes.push(c.bytes.unwrap_or(NULL_I64));
        rows.flags.push(StrId::NULL);
        rows.path_arg.push(StrId::NULL);
        rows.path_arg2.push(StrId::NULL);
        rows.path.push(text(c.path));
        rows.path2.push(StrId::NULL);
        rows.hash.push(NULL_I64);
        rows.args.push(StrId::NULL);
        rows.op_flags.push(StrId::NULL);
        rows.user_data.push(NULL_I64);
        rows.content_bytes.push(NULL_I64);
        rows.content.push(StrId::NULL);
    }
    rows.into_batch(strings)
}

/// Rows of table files: id and path.
pub fn files(rows_in: &[(i64, &str)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = FileRows::default();
    for (id, path) in rows_in {
        rows.file_id.push(*id);
        rows.dev.push(2049);
        rows.ino.push(1000 + id);
        rows.generation.push(1);
        rows.file_tag
            .push(strings.intern(format!("2049|{}|{START}", 1000 + id).as_bytes()));
        rows.path.push(strings.intern(path.as_bytes()));
        rows.path_raw.push(StrId::NULL);
        rows.file_type.push(strings.intern(b"regular"));
        rows.fs_type.push(strings.intern(b"ext4"));
        rows.size.push(NULL_I64);
        rows.first_seen_at_ns.push(START);
        rows.path_complete.push(true);
        rows.mount_namespace.push(NULL_I64);
        rows.host_path.push(StrId::NULL);
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
        rows.pid.push(*pid);
        rows.tid.push(*tid);
        rows.ppid.push(1);
        rows.comm.push(strings.intern(comm.as_bytes()));
        rows.exe.push(strings.intern(b"/usr/bin/redis-server"));
        rows.cmdline
            .push(strings.intern(b"redis-server --appendonly yes"));
        rows.cgroup.push(StrId::NULL);
        rows.container_id.push(StrId::NULL);
        rows.uid.push(0);
        rows.mount_namespace.push(NULL_I64);
        rows.started_at_ns.push(*begin);
        rows.ended_at_ns.push(end.unwrap_or(NULL_I64));
        rows.exit_status.push(NULL_I32);
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

/// Rows of table losses.
pub fn losses(rows_in: &[Loss]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = LossRows::default();
    for loss in rows_in {
        rows.stage.push(strings.intern(b"ring"));
        rows.cpu.push(1);
        rows.syscall.push(strings.intern(loss.syscall.as_bytes()));
        let layer: &[u8] = match loss.syscall {
            "page_fault" | "writeback" => b"pagecache",
            _ => b"syscall",
        };
        rows.layer.push(strings.intern(layer));
        rows.count.push(loss.count);
        rows.bytes.push(loss.bytes);
        rows.first_at_ns.push(START + 1_000_000);
        rows.last_at_ns.push(START + 2_000_000);
        rows.pid.push(loss.pid);
        rows.file_id.push(loss.file_id);
        rows.errors.push(loss.errors);
        rows.dur_ns.push(loss.count * loss.each_ns);
        rows.max_dur_ns.push(loss.each_ns);
        let mut hist = vec![0; 40];
        hist[loss.each_ns.ilog2() as usize] = loss.count;
        rows.hist.push(hist);
    }
    rows.into_batch(strings)
}

/// Rows of table faults: file, kind and access, duration.
pub fn faults(rows_in: &[(i64, &str, &str, Option<i64>)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = FaultRows::default();
    for (i, (file_id, kind, access, dur_ns)) in rows_in.iter().enumerate() {
        rows.rid.push(1_000_000 + i as i64);
        rows.ts_ns.push(START + i as i64);
        rows.dur_ns.push(dur_ns.unwrap_or(NULL_I64));
        for column in [&mut rows.pid, &mut rows.tid, &mut rows.cpu] {
            column.push(100);
        }
        rows.comm.push(strings.intern(b"redis-server"));
        rows.access.push(strings.intern(access.as_bytes()));
        rows.kind.push(strings.intern(kind.as_bytes()));
        rows.cause.push(strings.intern(b"absent"));
        rows.origin.push(strings.intern(b"user"));
        rows.mapping.push(strings.intern(b"shared"));
        rows.address.push(0x7000_0000);
        rows.file_id.push(*file_id);
        rows.path.push(StrId::NULL);
        rows.file_offset.push(4096);
        rows.around_offset.push(4096);
        rows.around_bytes.push(8192);
    }
    rows.into_batch(strings)
}

/// Rows of table slices: request, layer, name, begin after START, duration and depth.
pub fn slices(rows_in: &[(i64, &str, &str, i64, i64, i32)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SliceRows::default();
    for (rid, layer, name, at_ns, dur_ns, depth) in rows_in {
        rows.rid.push(*rid);
        rows.layer.push(strings.intern(layer.as_bytes()));
        rows.name.push(strings.intern(name.as_bytes()));
        rows.ts_ns.push(START + at_ns);
        rows.dur_ns.push(*dur_ns);
        rows.self_ns.push(*dur_ns);
        rows.depth.push(*depth);
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
        blocks.block_id.push(id);
        blocks.ts_ns.push(begin);
        blocks.dur_ns.push(*dur_ns);
        blocks.device.push(strings.intern(b"sda"));
        blocks.op.push(strings.intern(op.as_bytes()));
        blocks.bytes.push(4096);
        blocks.issued_at_ns.push(begin);
        blocks.completed_at_ns.push(begin + dur_ns);
        for column in [
            &mut blocks.rid,
            &mut blocks.sector,
            &mut blocks.queued_at_ns,
            &mut blocks.started_at_ns,
            &mut blocks.inserted_at_ns,
            &mut blocks.file_id,
            &mut blocks.file_offset,
            &mut blocks.queue_depth,
        ] {
            column.push(NULL_I64);
        }
        for column in [&mut blocks.flags, &mut blocks.comm, &mut blocks.path] {
            column.push(StrId::NULL);
        }
        for column in [&mut blocks.pid, &mut blocks.tid] {
            column.push(NULL_I32);
        }
        for column in [&mut blocks.error, &mut blocks.cpu, &mut blocks.requeues] {
            column.push(0);
        }
        blocks.bios.push(1);
        bios.block_id.push(id);
        bios.rid.push(submit_rid.unwrap_or(NULL_I64));
        bios.submit_rid.push(submit_rid.unwrap_or(NULL_I64));
        bios.ts_ns.push(begin);
        bios.sector.push(8 * id);
        bios.bytes.push(4096);
        bios.origin.push(bio_strings.intern(b"call"));
        for column in [
            &mut bios.pid,
            &mut bios.tid,
            &mut bios.cause_pid,
            &mut bios.cause_tid,
        ] {
            column.push(NULL_I32);
        }
        for column in [&mut bios.comm, &mut bios.path] {
            column.push(StrId::NULL);
        }
        for column in [&mut bios.file_id, &mut bios.file_offset] {
            column.push(NULL_I64);
        }
    }
    [blocks.into_batch(strings), bios.into_batch(bio_strings)]
}

/// Metadata of a session that ended well after 4 seconds.
pub fn meta() -> SessionMeta {
    SessionMeta {
        schema_version: fathom_model::tables::SCHEMA_VERSION,
        fathom_version: "0.1.0".into(),
        id: "0123456789abcdef0123456789abcdef".into(),
        state: State::Complete,
        command: ["redis-server", "--appendonly", "yes", "it's"]
            .map(String::from)
            .to_vec(),
        target: "-- redis-server --appendonly yes".into(),
        options: Options {
            detail: "full".into(),
            syscalls: vec!["storage".into()],
            ring_mib: 8,
            filters: Vec::new(),
            other: Vec::new(),
        },
        host: Host {
            name: "db1".into(),
            kernel: "6.18.1 #1 SMP".into(),
            arch: "x86_64".into(),
            cpus: 2,
            memory_bytes: 8 << 30,
            distribution: "Debian GNU/Linux 13".into(),
        },
        clock: Clock {
            start_monotonic_ns: START,
            start_realtime_ns: WALL,
            end_monotonic_ns: Some(START + 4_000_000_000),
            end_realtime_ns: Some(WALL + 4_000_000_000),
        },
        hooks: Vec::new(),
        layers: Vec::new(),
        rows: Default::default(),
        totals: Totals {
            seen: 1027,
            stored: 1015,
            lost: 12,
            compat: 0,
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
        content: None,
        source: None,
        perf_counters: Vec::new(),
        history: Default::default(),
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

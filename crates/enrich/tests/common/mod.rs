//! Records as the kernel side writes them, and rows as text.

#![allow(clippy::unwrap_used, dead_code, reason = "shared by several tests")]

use fathom_model::abi::{
    CallRecord, FileRecord, NO_OFFSET, NO_SIZE, RECORD_CALL, RECORD_FILE, RECORD_TASK,
    RECORD_WIDE_CALL, TASK_SEEN, TaskRecord, WideCallRecord,
};
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::raw::{RawChunk, Ring};
use fathom_model::syscalls::{Arg, SYSCALLS, Syscall};
use fathom_model::{Batch, ColumnData, StrId};

pub const AT_FDCWD: i32 = -100;

pub fn call(name: &str, ts_ns: u64, ret: i64) -> CallRecord {
    let index = Syscall::index_of(name).unwrap();
    let has_offset = SYSCALLS[index].position(Arg::Offset).is_some();
    let has_size = SYSCALLS[index].position(Arg::Size).is_some();
    CallRecord {
        kind: RECORD_CALL as u8,
        syscall: index as u16,
        fd: -1,
        ts_ns,
        dur_ns: 5,
        pid: 10,
        tid: 10,
        ret,
        offset: if has_offset { 0 } else { NO_OFFSET },
        size: if has_size { 4096 } else { NO_SIZE },
        ..CallRecord::parse(&[0; CallRecord::SIZE]).unwrap()
    }
}

/// A wide record of `call`, and its strings.
pub fn wide(call: CallRecord, string1: &[u8], string2: &[u8]) -> (WideCallRecord, Vec<u8>) {
    let record = WideCallRecord {
        call: CallRecord {
            kind: RECORD_WIDE_CALL as u8,
            ..call
        },
        fd2: -1,
        dirfd1: AT_FDCWD,
        dirfd2: AT_FDCWD,
        offset2: NO_OFFSET,
        string1_len: string1.len() as u16,
        string2_len: string2.len() as u16,
        ..WideCallRecord::parse(&[0; WideCallRecord::SIZE]).unwrap()
    };
    (record, [string1, string2].concat())
}

pub fn file(handle: u32, ino: u64, mode: u32, ts_ns: u64, components: &[u8]) -> Vec<u8> {
    let record = FileRecord {
        kind: RECORD_FILE as u8,
        handle,
        ino,
        mode,
        ts_ns,
        dev: 8 << 20 | 1,
        generation: 1,
        size: 100,
        fs_magic: 0xef53,
        path_len: components.len() as u16,
        ..FileRecord::parse(&[0; FileRecord::SIZE]).unwrap()
    };
    [&record.to_bytes(), components].concat()
}

pub fn task(pid: u32, comm: &str, ts_ns: u64) -> Vec<u8> {
    let mut record = TaskRecord::parse(&[0; TaskRecord::SIZE]).unwrap();
    record.kind = RECORD_TASK as u8;
    record.event = TASK_SEEN as u8;
    (record.pid, record.tid, record.ts_ns, record.started_at_ns) = (pid, pid, ts_ns, ts_ns);
    record.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    let (cmdline, exe) = (b"prog\0x\0", b"prog/bin/");
    (record.cmdline_len, record.exe_len) = (cmdline.len() as u16, exe.len() as u16);
    [&record.to_bytes()[..], cmdline, exe].concat()
}

/// Records in the framing of the wide ring.
pub fn wide_chunk(cpu: u32, records: &[Vec<u8>]) -> RawChunk {
    let mut bytes = Vec::new();
    for record in records {
        bytes.extend_from_slice(&(record.len() as u64).to_ne_bytes());
        bytes.extend_from_slice(record);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    RawChunk {
        cpu,
        ring: Ring::Wide,
        bytes,
    }
}

pub fn slot_chunk(cpu: u32, records: &[CallRecord]) -> RawChunk {
    let bytes = records.iter().flat_map(CallRecord::to_bytes).collect();
    RawChunk {
        cpu,
        ring: Ring::Slot,
        bytes,
    }
}

/// The batch of table `name`.
pub fn batch<'a>(batches: &'a [Batch], name: &str) -> &'a Batch {
    batches.iter().find(|b| b.table.name == name).unwrap()
}

/// A value as text, `-` for null.
pub fn value(batch: &Batch, row: usize, column: &str) -> String {
    let at = batch
        .table
        .columns
        .iter()
        .position(|c| c.name == column)
        .unwrap();
    match &batch.columns[at] {
        data if data.is_empty() && row < batch.len() => "-".into(),
        ColumnData::I64(v) if v[row] == NULL_I64 => "-".into(),
        ColumnData::I64(v) => v[row].to_string(),
        ColumnData::I32(v) if v[row] == NULL_I32 => "-".into(),
        ColumnData::I32(v) => v[row].to_string(),
        ColumnData::Bool(v) => v[row].to_string(),
        ColumnData::Str(v) | ColumnData::Blob(v) if v[row] == StrId::NULL => "-".into(),
        ColumnData::Str(v) | ColumnData::Blob(v) => {
            String::from_utf8_lossy(batch.strings.get(v[row])).into_owned()
        }
        ColumnData::ListI64(v) => format!("{:?}", v[row]),
    }
}

/// Some columns of a row, separated by ` | `.
pub fn row(batch: &Batch, row: usize, columns: &[&str]) -> String {
    columns
        .iter()
        .map(|c| value(batch, row, c))
        .collect::<Vec<_>>()
        .join(" | ")
}

/// Columns have equal lengths but for null ones, null occurs only where it may, and every string belongs to the
/// batch.
pub fn check(batch: &Batch) {
    assert_eq!(batch.columns.len(), batch.table.columns.len());
    for (column, data) in batch.table.columns.iter().zip(&batch.columns) {
        let name = format!("{}.{}", batch.table.name, column.name);
        if !(column.nullable && data.is_empty()) {
            assert_eq!(data.len(), batch.len(), "{name}");
        }
        let nulls = match data {
            ColumnData::I64(v) => v.contains(&NULL_I64),
            ColumnData::I32(v) => v.contains(&NULL_I32),
            ColumnData::Str(v) | ColumnData::Blob(v) => {
                assert!(
                    v.iter().all(|s| s.0 as usize <= batch.strings.len()),
                    "{name}"
                );
                if matches!(data, ColumnData::Str(_)) {
                    for id in v {
                        assert!(
                            std::str::from_utf8(batch.strings.get(*id)).is_ok(),
                            "{name}"
                        );
                    }
                }
                v.contains(&StrId::NULL)
            }
            _ => false,
        };
        assert!(column.nullable || !nulls, "{name} is null");
    }
}

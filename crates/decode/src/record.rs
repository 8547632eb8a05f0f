//! Bytes of one record to an event.

use fathom_model::abi::{
    BioRecord, BlockRecord, CacheFacts, CachedCallRecord, CallRecord, ContainerRecord,
    ContextProcessRecord, ContextRecord, CountersRecord, DataCallRecord, FaultRecord, FileRecord,
    FrameRecord, FunctionNameRecord, FunctionRecord, IrqRecord, LibraryCallRecord,
    LibraryCountRecord, MountRecord, NO_SIZE, NO_SIZE32, OperationRecord, RECORD_BLOCK,
    RECORD_CACHED_CALL, RECORD_CALL, RECORD_CONTAINER, RECORD_CONTENT_PART, RECORD_CONTEXT,
    RECORD_CONTEXT_PROCESS, RECORD_COUNTERS, RECORD_DATA_CALL, RECORD_FAULT, RECORD_FILE,
    RECORD_FRAME, RECORD_FUNCTION, RECORD_FUNCTION_NAME, RECORD_IRQ, RECORD_LIBRARY_CALL,
    RECORD_LIBRARY_COUNT, RECORD_MOUNT, RECORD_OPERATION, RECORD_SPAN, RECORD_STACK, RECORD_TASK,
    RECORD_USDT, RECORD_USDT_PLACE, RECORD_WAIT, RECORD_WIDE_CALL, RECORD_WRITEBACK,
    SEGMENTS_SHIFT, SLOT_BYTES, SpanRecord, StackRecord, TaskRecord, UsdtPlaceRecord, UsdtRecord,
    WaitRecord, WideCallRecord, WritebackRecord,
};
use fathom_model::raw::Ring;
use fathom_model::syscalls::SYSCALLS;

use crate::event::{DecodeError, Event};

/// Later than any clock: 36 years after the machine was started. Times and durations up to it
/// can be added.
pub(crate) const NEVER_NS: u64 = 1 << 60;

/// Decodes one record of `ring`. A record of the wide ring comes without its
/// frame; bytes after the record's end are ignored.
///
/// # Errors
/// When the bytes are no record that this ring carries.
#[inline]
pub fn decode(ring: Ring, bytes: &[u8]) -> Result<Event<'_>, DecodeError> {
    let kind = *bytes.first().ok_or(DecodeError::Empty)?;
    match (u32::from(kind), ring) {
        (RECORD_CALL, _) => {
            let record = CallRecord::parse(bytes).ok_or_else(|| short(CallRecord::SIZE, bytes))?;
            known(record.syscall)?;
            Ok(Event::Call(record))
        }
        (RECORD_CACHED_CALL, Ring::Slot) => {
            let record = CachedCallRecord::parse(bytes)
                .ok_or_else(|| short(CachedCallRecord::SIZE, bytes))?;
            known(record.syscall)?;
            Ok(cached_call(&record))
        }
        (RECORD_OPERATION, Ring::Slot) => {
            let record =
                OperationRecord::parse(bytes).ok_or_else(|| short(OperationRecord::SIZE, bytes))?;
            known(record.syscall)?;
            Ok(operation(&record))
        }
        (RECORD_WIDE_CALL, Ring::Wide) => {
            let record =
                WideCallRecord::parse(bytes).ok_or_else(|| short(WideCallRecord::SIZE, bytes))?;
            known(record.call.syscall)?;
            let mut rest = Rest {
                bytes,
                at: WideCallRecord::SIZE,
            };
            let string1 = rest.take(record.string1_len)?;
            let string2 = rest.take(record.string2_len)?;
            let string3 = rest.take(record.string3_len)?;
            let structure = rest.take(record.struct_len)?;
            Ok(Event::Wide {
                record,
                string1,
                string2,
                string3,
                structure,
            })
        }
        (RECORD_DATA_CALL | RECORD_CONTENT_PART, Ring::Wide) => {
            let record =
                DataCallRecord::parse(bytes).ok_or_else(|| short(DataCallRecord::SIZE, bytes))?;
            known(record.call.syscall)?;
            let mut rest = Rest {
                bytes,
                at: DataCallRecord::SIZE,
            };
            let content = rest.take_long(record.len)?;
            Ok(Event::Data { record, content })
        }
        (RECORD_FILE, Ring::Wide) => {
            let record = FileRecord::parse(bytes).ok_or_else(|| short(FileRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: FileRecord::SIZE,
            };
            let path = rest.take(record.path_len)?;
            let fs_path = rest.take(record.fs_path_len)?;
            Ok(Event::File {
                record,
                path,
                fs_path,
            })
        }
        (RECORD_TASK, Ring::Wide) => {
            let record = TaskRecord::parse(bytes).ok_or_else(|| short(TaskRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: TaskRecord::SIZE,
            };
            let cmdline = rest.take(record.cmdline_len)?;
            let exe = rest.take(record.exe_len)?;
            let cgroup = rest.take(record.cgroup_len)?;
            Ok(Event::Task {
                record,
                cmdline,
                exe,
                cgroup,
            })
        }
        (RECORD_MOUNT, Ring::Wide) => {
            let record =
                MountRecord::parse(bytes).ok_or_else(|| short(MountRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: MountRecord::SIZE,
            };
            let root = rest.take(record.root_len)?;
            let point = rest.take(record.point_len)?;
            Ok(Event::Mount {
                record,
                root,
                point,
            })
        }
        (RECORD_FUNCTION_NAME, Ring::Wide) => {
            let record = FunctionNameRecord::parse(bytes)
                .ok_or_else(|| short(FunctionNameRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: FunctionNameRecord::SIZE,
            };
            Ok(Event::FunctionName {
                record,
                layer: rest.take(record.layer_len)?,
                name: rest.take(record.name_len)?,
            })
        }
        (RECORD_CONTAINER, Ring::Wide) => {
            let record =
                ContainerRecord::parse(bytes).ok_or_else(|| short(ContainerRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: ContainerRecord::SIZE,
            };
            Ok(Event::Container {
                record,
                id: rest.take(record.id_len)?,
                namespace: rest.take(record.namespace_len)?,
                pod: rest.take(record.pod_len)?,
                uid: rest.take(record.uid_len)?,
                name: rest.take(record.name_len)?,
            })
        }
        (RECORD_STACK, Ring::Wide) => StackRecord::parse(bytes)
            .map(Event::Stack)
            .ok_or_else(|| short(StackRecord::SIZE, bytes)),
        (RECORD_FRAME, Ring::Wide) => {
            let record =
                FrameRecord::parse(bytes).ok_or_else(|| short(FrameRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: FrameRecord::SIZE,
            };
            Ok(Event::Frame {
                record,
                object: rest.take(record.object_len)?,
                build_id: rest.take(record.build_id_len)?,
                function: rest.take(record.function_len)?,
                source: rest.take(record.source_len)?,
            })
        }
        (RECORD_FAULT, Ring::Slot) => FaultRecord::parse(bytes)
            .map(Event::Fault)
            .ok_or_else(|| short(FaultRecord::SIZE, bytes)),
        (RECORD_WRITEBACK, Ring::Wide) => WritebackRecord::parse(bytes)
            .map(Event::Writeback)
            .ok_or_else(|| short(WritebackRecord::SIZE, bytes)),
        (RECORD_BLOCK, Ring::Wide) => {
            let record =
                BlockRecord::parse(bytes).ok_or_else(|| short(BlockRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: BlockRecord::SIZE,
            };
            let bios = rest.take_long(u32::from(record.bios) * BioRecord::SIZE as u32)?;
            Ok(Event::Block { record, bios })
        }
        (RECORD_WAIT, Ring::Slot) => WaitRecord::parse(bytes)
            .map(Event::Wait)
            .ok_or_else(|| short(WaitRecord::SIZE, bytes)),
        (RECORD_IRQ, Ring::Slot) => IrqRecord::parse(bytes)
            .map(Event::Irq)
            .ok_or_else(|| short(IrqRecord::SIZE, bytes)),
        (RECORD_SPAN, Ring::Slot) => SpanRecord::parse(bytes)
            .map(Event::Span)
            .ok_or_else(|| short(SpanRecord::SIZE, bytes)),
        (RECORD_COUNTERS, Ring::Slot) => CountersRecord::parse(bytes)
            .map(Event::Counters)
            .ok_or_else(|| short(CountersRecord::SIZE, bytes)),
        (RECORD_LIBRARY_CALL, Ring::Wide) => {
            let record = LibraryCallRecord::parse(bytes)
                .ok_or_else(|| short(LibraryCallRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: LibraryCallRecord::SIZE,
            };
            let path = rest.take(record.path_len)?;
            Ok(Event::LibraryCall { record, path })
        }
        (RECORD_FUNCTION, Ring::Wide) => {
            let record =
                FunctionRecord::parse(bytes).ok_or_else(|| short(FunctionRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: FunctionRecord::SIZE,
            };
            Ok(Event::Function {
                record,
                library: rest.take(record.library_len)?,
                class: rest.take(record.class_len)?,
                name: rest.take(record.name_len)?,
            })
        }
        (RECORD_LIBRARY_COUNT, Ring::Wide) => LibraryCountRecord::parse(bytes)
            .map(Event::LibraryCount)
            .ok_or_else(|| short(LibraryCountRecord::SIZE, bytes)),
        (RECORD_USDT, Ring::Wide) => {
            let record = UsdtRecord::parse(bytes).ok_or_else(|| short(UsdtRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: UsdtRecord::SIZE,
            };
            let length = u16::try_from(record.text_len).unwrap_or(u16::MAX);
            let text = rest.take(length)?;
            Ok(Event::Usdt { record, text })
        }
        (RECORD_USDT_PLACE, Ring::Wide) => {
            let record =
                UsdtPlaceRecord::parse(bytes).ok_or_else(|| short(UsdtPlaceRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: UsdtPlaceRecord::SIZE,
            };
            Ok(Event::UsdtPlace {
                record,
                provider: rest.take(record.provider_len)?,
                name: rest.take(record.name_len)?,
                text: rest.take(record.text_len)?,
            })
        }
        (RECORD_CONTEXT, Ring::Wide) => {
            let record =
                ContextRecord::parse(bytes).ok_or_else(|| short(ContextRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: ContextRecord::SIZE,
            };
            let attributes = rest.take(record.attributes_len)?;
            Ok(Event::Context { record, attributes })
        }
        (RECORD_CONTEXT_PROCESS, Ring::Wide) => {
            let record = ContextProcessRecord::parse(bytes)
                .ok_or_else(|| short(ContextProcessRecord::SIZE, bytes))?;
            let mut rest = Rest {
                bytes,
                at: ContextProcessRecord::SIZE,
            };
            Ok(Event::ContextProcess {
                record,
                service: rest.take(record.service_len)?,
                keys: rest.take_long(record.keys_len)?,
            })
        }
        (0, Ring::Slot) => Err(DecodeError::Empty),
        _ => Err(DecodeError::Kind { kind, ring }),
    }
}

/// Time and rank of a slot, without decoding all of it: what [`decode`] and
/// [`Event::time_ns`] would give.
#[inline]
pub(crate) fn slot_time(slot: &[u8; SLOT_BYTES as usize]) -> Result<u64, DecodeError> {
    let [kind, _, s0, s1, _, _, _, _, times @ ..] = slot;
    match u32::from(*kind) {
        RECORD_CALL | RECORD_CACHED_CALL | RECORD_OPERATION => {
            known(u16::from_ne_bytes([*s0, *s1]))?;
        }
        // Their times are at the same offsets as a call's.
        RECORD_FAULT | RECORD_WAIT | RECORD_IRQ | RECORD_SPAN | RECORD_COUNTERS => {}
        0 => return Err(DecodeError::Empty),
        _ => {
            return Err(DecodeError::Kind {
                kind: *kind,
                ring: Ring::Slot,
            });
        }
    }
    let [begin, took] = match times.as_chunks::<8>().0 {
        [begin, took, ..] => [*begin, *took],
        _ => return Err(DecodeError::Empty),
    };
    let dur_ns = match u32::from(*kind) {
        RECORD_CACHED_CALL => {
            let [d0, d1, d2, d3, ..] = took;
            u64::from(u32::from_ne_bytes([d0, d1, d2, d3]))
        }
        _ => u64::from_ne_bytes(took),
    };
    possible(u64::from_ne_bytes(begin).saturating_add(dur_ns))
}

/// A time, if it can be one.
#[inline]
pub(crate) fn possible(time_ns: u64) -> Result<u64, DecodeError> {
    match time_ns < NEVER_NS {
        true => Ok(time_ns),
        false => Err(DecodeError::Time),
    }
}

#[inline]
fn cached_call(record: &CachedCallRecord) -> Event<'static> {
    let size = match record.size {
        NO_SIZE32 => NO_SIZE,
        size => u64::from(size) | u64::from(record.segments) << SEGMENTS_SHIFT,
    };
    Event::CachedCall {
        call: CallRecord {
            kind: record.kind,
            flags: record.flags,
            syscall: record.syscall,
            fd: i32::from(record.fd),
            ts_ns: record.ts_ns,
            dur_ns: u64::from(record.dur_ns),
            pid: record.pid,
            tid: record.tid,
            ret: i64::from(record.ret),
            file: record.file,
            aux: record.aux,
            offset: record.offset,
            size,
        },
        cache: CacheFacts {
            pages: u32::from(record.pages),
            missed: u32::from(record.missed),
            ahead: u32::from(record.ahead),
            added: u32::from(record.added),
            dirtied: u32::from(record.dirtied),
            handles: u32::from(record.handles),
        },
    }
}

fn operation(record: &OperationRecord) -> Event<'static> {
    let size = match record.size {
        NO_SIZE32 => NO_SIZE,
        size => u64::from(size),
    };
    Event::Operation {
        call: CallRecord {
            kind: record.kind,
            flags: record.flags,
            syscall: record.syscall,
            fd: record.fd,
            ts_ns: record.ts_ns,
            dur_ns: record.dur_ns,
            pid: record.pid,
            tid: record.tid,
            ret: i64::from(record.ret),
            file: record.file,
            aux: u32::from(record.aux),
            offset: record.offset,
            size,
        },
        op_flags: u32::from(record.op_flags),
        user_data: record.user_data,
    }
}

#[inline]
fn known(syscall: u16) -> Result<(), DecodeError> {
    if usize::from(syscall) < SYSCALLS.len() {
        Ok(())
    } else {
        Err(DecodeError::Syscall(syscall))
    }
}

#[cold]
fn short(needed: usize, bytes: &[u8]) -> DecodeError {
    DecodeError::Short {
        needed,
        found: bytes.len(),
    }
}

/// The bytes after the fixed part of a record.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, len: u16) -> Result<&'a [u8], DecodeError> {
        self.take_long(u32::from(len))
    }

    fn take_long(&mut self, len: u32) -> Result<&'a [u8], DecodeError> {
        let end = self.at.saturating_add(len as usize);
        let taken = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| short(end, self.bytes))?;
        self.at = end;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallRecord {
        let mut bytes = [7u8; CallRecord::SIZE];
        bytes[0] = RECORD_CALL as u8;
        bytes[2..4].copy_from_slice(&3u16.to_ne_bytes());
        CallRecord::parse(&bytes).unwrap()
    }

    #[test]
    fn a_slot() {
        let record = call();
        let bytes = record.to_bytes();
        assert_eq!(decode(Ring::Slot, &bytes), Ok(Event::Call(record)));
        assert_eq!(
            slot_time(&bytes),
            Ok(decode(Ring::Slot, &bytes).unwrap().time_ns())
        );
        assert_eq!(
            decode(Ring::Slot, &bytes[..63]),
            Err(DecodeError::Short {
                needed: 64,
                found: 63
            })
        );
        assert_eq!(decode(Ring::Slot, &[0; 64]), Err(DecodeError::Empty));
        assert_eq!(decode(Ring::Slot, &[]), Err(DecodeError::Empty));
        let mut unknown = bytes;
        unknown[2..4].copy_from_slice(&9999u16.to_ne_bytes());
        assert_eq!(
            decode(Ring::Slot, &unknown),
            Err(DecodeError::Syscall(9999))
        );
        assert_eq!(slot_time(&unknown), Err(DecodeError::Syscall(9999)));
        let mut odd = bytes;
        odd[0] = 200;
        let expected = Err(DecodeError::Kind {
            kind: 200,
            ring: Ring::Slot,
        });
        assert_eq!(decode(Ring::Slot, &odd), expected);
    }

    #[test]
    fn a_cached_call_is_a_call_with_facts() {
        let mut bytes = [0; SLOT_BYTES as usize];
        bytes[0] = RECORD_CACHED_CALL as u8;
        let mut record = CachedCallRecord::parse(&bytes).unwrap();
        (record.ts_ns, record.dur_ns, record.ret, record.fd) = (5, u32::MAX, -5, -1);
        (record.size, record.segments, record.offset) = (4096, 3, -1);
        (record.pages, record.missed, record.ahead) = (1, 2, 3);
        (record.added, record.dirtied, record.handles) = (4, 5, u16::MAX);
        let bytes = record.to_bytes();
        let event = decode(Ring::Slot, &bytes).unwrap();
        let Event::CachedCall { call, cache } = event else {
            panic!("{event:?}");
        };
        assert_eq!((call.ret, call.fd, call.offset), (-5, -1, -1));
        assert_eq!(call.size, 4096 | 3 << SEGMENTS_SHIFT);
        let facts = [cache.pages, cache.missed, cache.ahead];
        assert_eq!(facts, [1, 2, 3]);
        let facts = [cache.added, cache.dirtied, cache.handles];
        assert_eq!(facts, [4, 5, u32::from(u16::MAX)]);
        assert!(event.is_call());
        let end = 5 + u64::from(u32::MAX);
        assert_eq!((slot_time(&bytes), event.time_ns()), (Ok(end), end));
        record.size = NO_SIZE32;
        let event = decode(Ring::Slot, &record.to_bytes()).map(|event| match event {
            Event::CachedCall { call, .. } => call.size,
            _ => 0,
        });
        assert_eq!(event, Ok(NO_SIZE));
        assert!(decode(Ring::Wide, &bytes).is_err());
    }

    #[test]
    fn an_operation_is_a_call_with_more() {
        let mut bytes = [0; SLOT_BYTES as usize];
        bytes[0] = RECORD_OPERATION as u8;
        let mut record = OperationRecord::parse(&bytes).unwrap();
        (record.ts_ns, record.dur_ns, record.ret) = (5, 2, -125);
        (record.size, record.op_flags, record.user_data) = (NO_SIZE32, 4, u64::MAX);
        record.offset = 77;
        let bytes = record.to_bytes();
        let event = decode(Ring::Slot, &bytes).unwrap();
        let Event::Operation {
            call,
            op_flags: 4,
            user_data: u64::MAX,
        } = event
        else {
            panic!("{event:?}");
        };
        assert_eq!((call.ret, call.size, call.offset), (-125, NO_SIZE, 77));
        assert!(event.is_call());
        assert_eq!((slot_time(&bytes), event.time_ns()), (Ok(7), 7));
        assert!(matches!(
            decode(Ring::Wide, &bytes),
            Err(DecodeError::Kind { .. })
        ));
    }

    #[test]
    fn a_fault_is_ordered_by_its_end() {
        let mut bytes = [0; FaultRecord::SIZE];
        bytes[0] = RECORD_FAULT as u8;
        let mut record = FaultRecord::parse(&bytes).unwrap();
        (record.ts_ns, record.dur_ns, record.flags) = (1000, 23, 0xffff);
        let bytes = record.to_bytes();
        let event = decode(Ring::Slot, &bytes).unwrap();
        assert_eq!(event, Event::Fault(record));
        assert_eq!((event.time_ns(), event.is_request()), (1023, true));
        assert_eq!(slot_time(&bytes), Ok(1023));
        assert!(matches!(
            decode(Ring::Wide, &bytes),
            Err(DecodeError::Kind { .. })
        ));
        assert!(matches!(
            decode(Ring::Slot, &bytes[..63]),
            Err(DecodeError::Short { .. })
        ));
    }

    #[test]
    fn a_file_belongs_into_the_wide_ring() {
        let mut bytes = vec![0; FileRecord::SIZE];
        bytes[0] = RECORD_FILE as u8;
        let mut record = FileRecord::parse(&bytes).unwrap();
        record.path_len = 4;
        let mut bytes = record.to_bytes().to_vec();
        bytes.extend_from_slice(b"a/b/ignored");
        assert_eq!(
            decode(Ring::Wide, &bytes),
            Ok(Event::File {
                record,
                path: b"a/b/",
                fs_path: b""
            })
        );
        assert!(matches!(
            decode(Ring::Slot, &bytes),
            Err(DecodeError::Kind { kind: 3, .. })
        ));
        bytes.truncate(FileRecord::SIZE + 3);
        assert!(matches!(
            decode(Ring::Wide, &bytes),
            Err(DecodeError::Short { .. })
        ));
    }

    #[test]
    fn content_follows_its_record() {
        let mut bytes = vec![0; DataCallRecord::SIZE];
        bytes[0] = RECORD_DATA_CALL as u8;
        let mut record = DataCallRecord::parse(&bytes).unwrap();
        record.len = 70_000;
        let mut bytes = record.to_bytes().to_vec();
        bytes.resize(DataCallRecord::SIZE + 70_000, b'x');
        let event = decode(Ring::Wide, &bytes).unwrap();
        assert!(event.is_call());
        assert!(matches!(event, Event::Data { content, .. } if content.len() == 70_000));
        assert!(decode(Ring::Wide, &bytes[..bytes.len() - 1]).is_err());
        assert!(decode(Ring::Slot, &bytes).is_err());
        // A part is no call of its own, and comes before its call.
        bytes[0] = RECORD_CONTENT_PART as u8;
        assert!(!decode(Ring::Wide, &bytes).unwrap().is_call());
        record.len = u32::MAX;
        assert!(decode(Ring::Wide, &record.to_bytes()).is_err());
    }

    #[test]
    fn strings_follow_in_order() {
        let mut bytes = vec![0; WideCallRecord::SIZE];
        bytes[0] = RECORD_WIDE_CALL as u8;
        let mut record = WideCallRecord::parse(&bytes).unwrap();
        (record.string1_len, record.string2_len) = (2, 3);
        let mut bytes = record.to_bytes().to_vec();
        bytes.extend_from_slice(b"12abc");
        let expected = Event::Wide {
            record,
            string1: b"12",
            string2: b"abc",
            string3: b"",
            structure: b"",
        };
        assert_eq!(decode(Ring::Wide, &bytes), Ok(expected));

        let mut bytes = vec![0; TaskRecord::SIZE];
        bytes[0] = RECORD_TASK as u8;
        let mut record = TaskRecord::parse(&bytes).unwrap();
        (record.cmdline_len, record.exe_len, record.cgroup_len) = (1, 2, 3);
        let mut bytes = record.to_bytes().to_vec();
        bytes.extend_from_slice(b"c__ggg");
        let expected = Event::Task {
            record,
            cmdline: b"c",
            exe: b"__",
            cgroup: b"ggg",
        };
        assert_eq!(decode(Ring::Wide, &bytes), Ok(expected));
    }
}

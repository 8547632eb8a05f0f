//! From where in their programs calls were made: tables `stacks` and `frames`.

use fathom_model::abi::{FrameRecord, NO_OFFSET, StackRecord};
use fathom_model::batch::{Batch, NULL_I64, Null};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{FrameRow, FrameRows, StackRow, StackRows};
use fathom_model::{StrId, StringTable};

use crate::{id, signed};

/// Rows that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    stacks: StackRows,
    frames: (FrameRows, StringTable),
}

impl Stacks {
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.stacks.len() + self.frames.0.frame.len()
    }

    /// The stack of a call, which has ended as request `rid`.
    pub(crate) fn stack(&mut self, rid: Option<i64>, record: &StackRecord) {
        let rows = &mut self.stacks;
        rows.push(StackRow {
            rid: rid.unwrap_or(NULL_I64),
            ts_ns: signed(record.ts_ns),
            pid: id(record.pid),
            tid: id(record.tid),
            stack_id: crate::nonzero(record.stack),
        });
    }

    /// A function, with its object, the build id of that, its name and its source.
    pub(crate) fn frame(&mut self, record: &FrameRecord, texts: [&[u8]; 4]) {
        let (rows, strings) = &mut self.frames;
        let mut intern = |bytes: &[u8]| match bytes {
            [] => StrId::NULL,
            bytes => strings.intern(escape_invalid_utf8(bytes).as_bytes()),
        };
        let known = |offset: i64| offset.when(offset != NO_OFFSET);
        let [object, build_id, function, source] = texts;
        rows.push(FrameRow {
            stack_id: i64::from(record.stack),
            frame: i32::from(record.frame),
            object: intern(object),
            build_id: intern(build_id),
            file_offset: known(record.offset),
            function: intern(function),
            function_offset: known(record.function_offset),
            source: intern(source),
            line: id(record.line).when(record.line != 0),
            inlined: record.inlined != 0,
        });
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> [Batch; 2] {
        let stacks = std::mem::take(&mut self.stacks).into_batch(StringTable::new());
        let (frames, strings) = std::mem::take(&mut self.frames);
        [stacks, frames.into_batch(strings)]
    }
}

//! Rows of a session, whatever table they are from, as exporters see them.

use arrow::array::{Array, AsArray, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};

use crate::error::{ExportError, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Call,
    /// An operation of io_uring or AIO.
    Operation,
    /// A page fault on a mapped file.
    Fault,
    /// Dirty pages that were handed to the block layer.
    Writeback,
    /// A request to a device.
    Block,
    /// A part of a request's time, by layer (table `slices`).
    Slice,
}

macro_rules! rows {
    ($($field:ident $name:literal $kind:ident $get:ident -> $value:ty,)*) => {
        /// Columns that every query of this crate answers, in order.
        pub(crate) const COLUMNS: &[&str] = &[$($name),*];

        /// The columns of one batch.
        pub(crate) struct Columns<'a> {
            $($field: &'a $kind,)*
        }

        impl<'a> Columns<'a> {
            pub fn new(batch: &'a RecordBatch) -> Result<Self> {
                Ok(Self { $($field: {
                    let column = batch.column_by_name($name).ok_or(ExportError::Column($name))?;
                    $get(column.as_ref()).ok_or(ExportError::Column($name))?
                },)* })
            }

            /// Row `index`, which must be in the batch.
            pub fn row(&self, index: usize) -> Row<'a> {
                Row { $($field: self.$field.is_valid(index).then(|| self.$field.value(index)),)* }
            }
        }

        /// One row. Its members are the columns of table `syscalls`; `layer` says which of them a
        /// row of another table has.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Row<'a> {
            $(pub $field: Option<$value>,)*
        }
    };
}

rows! {
    layer "layer" StringArray text -> &'a str,
    rid "rid" Int64Array long -> i64,
    ts_ns "ts_ns" Int64Array long -> i64,
    dur_ns "dur_ns" Int64Array long -> i64,
    pid "pid" Int32Array int -> i32,
    tid "tid" Int32Array int -> i32,
    comm "comm" StringArray text -> &'a str,
    cpu "cpu" Int32Array int -> i32,
    name "syscall" StringArray text -> &'a str,
    class "class" StringArray text -> &'a str,
    ret "ret" Int64Array long -> i64,
    errno "errno" StringArray text -> &'a str,
    fd "fd" Int32Array int -> i32,
    file_id "file_id" Int64Array long -> i64,
    file_offset "file_offset" Int64Array long -> i64,
    size "size" Int64Array long -> i64,
    bytes "bytes" Int64Array long -> i64,
    flags "flags" StringArray text -> &'a str,
    path_arg "path_arg" StringArray text -> &'a str,
    path_arg2 "path_arg2" StringArray text -> &'a str,
    path "path" StringArray text -> &'a str,
    path2 "path2" StringArray text -> &'a str,
    hash "hash" Int64Array long -> i64,
    args "args" StringArray text -> &'a str,
    op_flags "op_flags" StringArray text -> &'a str,
    user_data "user_data" Int64Array long -> i64,
    content_bytes "content_bytes" Int64Array long -> i64,
    content "content" BinaryArray blob -> &'a [u8],
    extra "extra" StringArray text -> &'a str,
}

impl Row<'_> {
    pub fn layer(&self) -> Layer {
        match self.layer {
            Some("fault") => Layer::Fault,
            Some("writeback") => Layer::Writeback,
            Some("block") => Layer::Block,
            Some("slice") => Layer::Slice,
            Some("io_uring" | "aio") => Layer::Operation,
            _ => Layer::Call,
        }
    }

    /// The class of a call, the interface of an operation, and the layer of others.
    pub fn category(&self) -> Option<&str> {
        use fathom_model::layers::Layer as Recorded;
        match self.layer() {
            Layer::Call | Layer::Slice => self.class,
            Layer::Operation => self.layer,
            Layer::Fault | Layer::Writeback => Some(Recorded::PageCache.name()),
            Layer::Block => Some(Recorded::Block.name()),
        }
    }

    pub fn started_at_ns(&self) -> i64 {
        self.ts_ns.unwrap_or(0)
    }

    /// When it ended; when it began if that is not known.
    pub fn ended_at_ns(&self) -> i64 {
        self.started_at_ns()
            .saturating_add(self.dur_ns.unwrap_or(0).max(0))
    }
}

fn text(column: &dyn Array) -> Option<&StringArray> {
    column.as_string_opt::<i32>()
}

fn long(column: &dyn Array) -> Option<&Int64Array> {
    column.as_primitive_opt::<Int64Type>()
}

fn int(column: &dyn Array) -> Option<&Int32Array> {
    column.as_primitive_opt::<Int32Type>()
}

fn blob(column: &dyn Array) -> Option<&BinaryArray> {
    column.as_binary_opt::<i32>()
}

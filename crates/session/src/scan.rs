//! Reading whole tables, a batch of rows at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fathom_model::Batch;
use fathom_model::tables::Table;
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::decode::RowGroupDecoder;
use crate::error::SessionError;
use crate::reader::Session;

impl Session {
    /// Hands all rows of a table to `each`, in the order in which they were
    /// written and in batches of bounded size. With `columns`, only these are
    /// read and the others are empty. Of tables with a key all versions of a
    /// row come, the one that counts last.
    ///
    /// # Errors
    /// [`SessionError::Io`] and [`SessionError::Parquet`] when a part cannot be
    /// read to its end, and what `each` returns; batches before it have been handed
    /// over.
    pub fn for_each_batch<E: From<SessionError>>(
        &self,
        table: &'static Table,
        columns: Option<&[&str]>,
        mut each: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        for path in self.parts(table.name) {
            each_of_part(table, &path, columns, &mut each)?;
        }
        Ok(())
    }
}

fn each_of_part<E: From<SessionError>>(
    table: &'static Table,
    path: &Path,
    columns: Option<&[&str]>,
    each: &mut impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let failed = || SessionError::parquet(path);
    let file = File::open(path).map_err(SessionError::io("open", path))?;
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(failed())?;
    let wanted = |i: usize| {
        let name = table.columns.get(i).map(|column| column.name);
        columns.is_none_or(|columns| name.is_some_and(|name| columns.contains(&name)))
    };
    for i in 0..reader.num_row_groups() {
        let mut decoder =
            guarded(|| RowGroupDecoder::select(table, &*reader.get_row_group(i)?, wanted))
                .map_err(failed())?;
        while let Some(batch) = guarded(|| decoder.next()).map_err(failed())? {
            each(batch)?;
        }
    }
    Ok(())
}

/// Pages may hold anything: a panic in their decoder is an error of the part.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages are damaged".to_owned())))
}

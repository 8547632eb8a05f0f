//! Reading whole tables, a batch of rows at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fathom_model::Batch;
use fathom_model::tables::{TABLES, Table};
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
    /// read; batches before it have been handed over.
    pub fn for_each_batch(
        &self,
        table: &str,
        columns: Option<&[&str]>,
        mut each: impl FnMut(&Batch),
    ) -> Result<(), SessionError> {
        let Some(table) = TABLES.iter().find(|t| t.name == table).copied() else {
            return Ok(());
        };
        for path in self.parts(table.name) {
            each_of_part(table, &path, columns, &mut each)?;
        }
        Ok(())
    }
}

fn each_of_part(
    table: &'static Table,
    path: &Path,
    columns: Option<&[&str]>,
    each: &mut impl FnMut(&Batch),
) -> Result<(), SessionError> {
    let failed = || SessionError::parquet(path);
    let file = File::open(path).map_err(SessionError::io("open", path))?;
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(failed())?;
    let wanted = |name: &str| columns.is_none_or(|columns| columns.contains(&name));
    for i in 0..reader.num_row_groups() {
        let mut decoder =
            guarded(|| RowGroupDecoder::with_columns(table, &*reader.get_row_group(i)?, wanted))
                .map_err(failed())?;
        while let Some(batch) = guarded(|| decoder.next()).map_err(failed())? {
            each(&batch);
        }
    }
    Ok(())
}

/// Pages may hold anything: a panic in their decoder is an error of the part.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages are damaged".to_owned())))
}

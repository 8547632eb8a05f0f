//! The rows of a session as batches, without SQL.

use std::fs::File;

use fathom_model::Batch;
use fathom_model::tables::Table;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::decode::RowGroupDecoder;
use crate::error::SessionError;
use crate::reader::Session;

impl Session {
    /// Gives `each` all rows of a table in the order of writing, a batch at a
    /// time; of a table with a key all versions.
    ///
    /// # Errors
    /// [`SessionError::Io`], [`SessionError::Parquet`] when a part cannot be
    /// read to its end, and what `each` returns.
    pub fn for_each_batch<E: From<SessionError>>(
        &self,
        table: &'static Table,
        mut each: impl FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        for path in self.parts(table.name) {
            let failed = || SessionError::parquet(&path);
            let file = File::open(&path).map_err(SessionError::io("open", &path))?;
            let reader = SerializedFileReader::new(file).map_err(failed())?;
            for i in 0..reader.num_row_groups() {
                let group = reader.get_row_group(i).map_err(failed())?;
                let mut decoder = RowGroupDecoder::new(table, &*group).map_err(failed())?;
                while let Some(batch) = decoder.next().map_err(failed())? {
                    each(batch)?;
                }
            }
        }
        Ok(())
    }
}

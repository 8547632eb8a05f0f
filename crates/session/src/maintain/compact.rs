//! Merging small parts into large ones.
//!
//! A merged part is published before its sources are removed, and its name identifies them: a
//! recorder can be killed at any time, and every row is in exactly one part that a reader takes.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_model::tables::Table;
use fathom_model::{Batch, ColumnData};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::error::SessionError;
use crate::format::checksum::Sink;
use crate::format::codec::clusters::Clusters;
use crate::format::codec::decode::RowGroupDecoder;
use crate::format::codec::encode::Encoder;
use crate::format::codec::{GROUP_BYTES, GROUP_ROWS};
use crate::format::layout::PartInfo;
use crate::format::layout::PartRange;
use crate::format::part::PartWriter;
use crate::format::schema::TableSchema;
use crate::write::storage::Storage;

/// Parts that are merged at a time while recording.
pub(crate) const FAN_IN: usize = 64;
/// A part of this size is not merged again.
const FULL_BYTES: u64 = 64 << 20;
/// Most bytes that go into a merged part.
const MAX_BYTES: u64 = 256 << 20;
/// Row groups of this size are copied; smaller ones are encoded again together with their
/// neighbors, which saves little more than their descriptions and took 40 % of the recorder's time.
const COPY_ROWS: i64 = 1 << 13;
/// How often a part's rows have been merged: in powers of [`FAN_IN`].
pub(crate) fn tier(part: &PartInfo) -> u32 {
    (part.range.last - part.range.first + 1).ilog2() / FAN_IN.ilog2()
}

/// Adjacent parts that are worth merging while recording goes on: so many of
/// one tier that every row is copied seldom.
pub(crate) fn plan_background(parts: &[PartInfo]) -> Option<Range<usize>> {
    let mut from = 0;
    while from < parts.len() {
        let run = parts[from..].iter();
        let alike = |p: &&PartInfo| p.bytes < FULL_BYTES && tier(p) == tier(&parts[from]);
        let length = run.take_while(alike).count();
        // One more, so that the newest parts stay what readers saw last.
        if length > FAN_IN {
            return Some(from..from + limited(&parts[from..from + FAN_IN]));
        }
        from += length.max(1);
    }
    None
}

/// Adjacent parts to merge when the recording has ended, at or after `from`.
pub(crate) fn plan_final(table: &Table, parts: &[PartInfo], from: usize) -> Option<Range<usize>> {
    if !table.key.is_empty() {
        // Only one part makes sure that a key is there once.
        return (from == 0 && parts.len() > 1).then_some(0..parts.len());
    }
    let mut from = from;
    while from < parts.len() {
        let small = |p: &&PartInfo| p.bytes < FULL_BYTES;
        let run = parts[from..].iter().take_while(small).count();
        let length = limited(&parts[from..from + run]);
        if length > 1 {
            return Some(from..from + length);
        }
        from += length.max(1);
    }
    None
}

/// How many of `parts` may go into one.
fn limited(parts: &[PartInfo]) -> usize {
    let mut bytes = 0;
    let fits = |p: &&PartInfo| {
        bytes += p.bytes;
        bytes <= MAX_BYTES
    };
    parts.iter().take_while(fits).count()
}

/// Merges `parts`, which are adjacent, and removes them. `None` when `stop`
/// was set before that was done; then nothing has changed. With `durable` the
/// merged part is safe from a power failure before the others are removed.
///
/// Memory: one row group as rows and as pages, and one batch being decoded; for a table with a key,
/// also every distinct key and one byte per row.
pub(crate) fn merge(
    storage: &Storage,
    schema: &TableSchema,
    parts: &[PartInfo],
    stop: &AtomicBool,
    durable: bool,
) -> Result<Option<PartInfo>, SessionError> {
    let table = schema.table;
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return Ok(None);
    };
    let range = PartRange {
        first: first.range.first,
        last: last.range.last,
    };
    let (file, temporary) = storage.create_part(table.name, range)?;
    let merged = write_merged(storage, schema, parts, file, &temporary, stop, durable);
    match merged {
        Ok(Some((rows, bytes))) => {
            storage.publish(table.name, range)?;
            if durable {
                storage.sync_table(table.name)?;
            }
            for part in parts {
                // Readers of fathom ignore one that stays: its rows are in
                // the merged part.
                let _ = storage.remove_part(table.name, part.range);
            }
            Ok(Some(PartInfo { range, rows, bytes }))
        }
        other => {
            storage.give_up(table.name, range);
            other.map(|_| None)
        }
    }
}

fn write_merged(
    storage: &Storage,
    schema: &TableSchema,
    parts: &[PartInfo],
    file: File,
    temporary: &Path,
    stop: &AtomicBool,
    durable: bool,
) -> Result<Option<(u64, u64)>, SessionError> {
    let failed = || SessionError::parquet(temporary);
    let keyed = !schema.table.key.is_empty();
    let mut keep = if keyed {
        Some(latest(storage, schema.table, parts)?.into_iter())
    } else {
        None
    };
    let writer = PartWriter::new(BufWriter::new(file), schema, &schema.documented);
    let mut writer = writer.map_err(failed())?;
    let encoder = Encoder::new(schema.table, schema.descr.clone()).map_err(failed())?;
    let mut group = Group {
        encoder,
        clusters: Clusters::new(schema.table),
    };
    let mut rows = 0;
    for part in parts {
        let path = storage.part(schema.table.name, part.range);
        let source = storage.open_part(schema.table.name, part.range)?;
        let handle = source
            .try_clone()
            .map_err(SessionError::io("open", &path))?;
        let reader = SerializedFileReader::new(handle).map_err(SessionError::parquet(&path))?;
        for i in 0..reader.num_row_groups() {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let old = reader
                .get_row_group(i)
                .map_err(SessionError::parquet(&path))?;
            if !keyed && old.metadata().num_rows() >= COPY_ROWS {
                group.end(&mut writer).map_err(failed())?;
                writer.copy(&source, old.metadata()).map_err(failed())?;
                rows += old.metadata().num_rows() as u64;
                continue;
            }
            let mut decoder =
                RowGroupDecoder::new(schema.table, &*old).map_err(SessionError::parquet(&path))?;
            while let Some(mut batch) = decoder.next().map_err(SessionError::parquet(&path))? {
                if let Some(keep) = &mut keep {
                    let wanted: Vec<bool> = keep.by_ref().take(batch.len()).collect();
                    retain(&mut batch, &wanted);
                }
                rows += batch.len() as u64;
                group.push(&batch).map_err(failed())?;
                if group.is_full() {
                    group.end(&mut writer).map_err(failed())?;
                }
            }
        }
    }
    group.end(&mut writer).map_err(failed())?;
    let file = writer.finish().map_err(failed())?;
    let file = file.into_inner().map_err(|e| {
        SessionError::io("write", temporary)(std::io::Error::from(e.error().kind()))
    })?;
    if durable {
        file.sync_all()
            .map_err(SessionError::io("write", temporary))?;
    }
    let bytes = file
        .metadata()
        .map_err(SessionError::io("write", temporary))?
        .len();
    Ok(Some((rows, bytes)))
}

/// The row group that is being made.
struct Group {
    encoder: Encoder,
    /// Its rows, of a table whose rows lie together by something; otherwise the encoder has them.
    clusters: Option<Clusters>,
}

impl Group {
    fn push(&mut self, batch: &Batch) -> ParquetResult<()> {
        match &mut self.clusters {
            Some(clusters) => {
                clusters.push(batch);
                Ok(())
            }
            None => self.encoder.push(batch),
        }
    }

    fn is_full(&self) -> bool {
        let (rows, bytes) = match &self.clusters {
            Some(clusters) => (clusters.rows(), clusters.bytes()),
            None => (self.encoder.rows(), self.encoder.bytes()),
        };
        rows >= GROUP_ROWS || bytes >= GROUP_BYTES
    }

    /// Appends its rows, if there are any, to `writer`; the next one begins.
    fn end<W: Sink>(&mut self, writer: &mut PartWriter<W>) -> ParquetResult<()> {
        match &mut self.clusters {
            Some(clusters) if clusters.rows() > 0 => {
                writer.append(self.encoder.whole(&clusters.take())?)
            }
            None if self.encoder.rows() > 0 => writer.append(self.encoder.finish()?),
            _ => Ok(()),
        }
    }
}

/// For each row of `parts` whether it is the last with its key.
fn latest(
    storage: &Storage,
    table: &'static Table,
    parts: &[PartInfo],
) -> Result<Vec<bool>, SessionError> {
    let columns = key_columns(table);
    let mut keep: Vec<bool> = Vec::new();
    let mut last: HashMap<Vec<u8>, usize> = HashMap::new();
    for part in parts {
        let path = storage.part(table.name, part.range);
        let file = storage.open_part(table.name, part.range)?;
        let failed = || SessionError::parquet(&path);
        let reader = SerializedFileReader::new(file).map_err(failed())?;
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(failed())?;
            let mut decoder = RowGroupDecoder::new(table, &*group).map_err(failed())?;
            while let Some(batch) = decoder.next().map_err(failed())? {
                for row in 0..batch.len() {
                    if let Some(before) = last.insert(key(&batch, &columns, row), keep.len()) {
                        keep[before] = false;
                    }
                    keep.push(true);
                }
            }
        }
    }
    Ok(keep)
}

/// Places of the columns of a table's key.
pub(crate) fn key_columns(table: &Table) -> Vec<usize> {
    let positions = |name: &&str| table.columns.iter().position(|c| c.name == *name);
    table.key.iter().filter_map(positions).collect()
}

/// The key of a row as bytes: equal exactly when the values are.
pub(crate) fn key(batch: &Batch, columns: &[usize], row: usize) -> Vec<u8> {
    let mut key = Vec::new();
    for column in columns.iter().filter_map(|c| batch.columns.get(*c)) {
        match column {
            ColumnData::I64(v) => key.extend_from_slice(&v[row].to_le_bytes()),
            ColumnData::I32(v) => key.extend_from_slice(&v[row].to_le_bytes()),
            ColumnData::Bool(v) => key.push(u8::from(v[row])),
            ColumnData::Str(v) | ColumnData::Blob(v) => {
                let bytes = batch.strings.get(v[row]);
                key.push(u8::from(v[row] == fathom_model::StrId::NULL));
                key.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                key.extend_from_slice(bytes);
            }
            ColumnData::ListI64(v) => {
                key.extend_from_slice(&(v[row].len() as u64).to_le_bytes());
                key.extend(v[row].iter().flat_map(|x| x.to_le_bytes()));
            }
        }
    }
    key
}

/// Drops the rows that are not wanted.
fn retain(batch: &mut Batch, wanted: &[bool]) {
    fn rows<T>(values: &mut Vec<T>, wanted: &[bool]) {
        let mut wanted = wanted.iter();
        values.retain(|_| wanted.next().copied().unwrap_or(true));
    }
    for column in &mut batch.columns {
        match column {
            ColumnData::I64(v) => rows(v, wanted),
            ColumnData::I32(v) => rows(v, wanted),
            ColumnData::Bool(v) => rows(v, wanted),
            ColumnData::Str(v) | ColumnData::Blob(v) => rows(v, wanted),
            ColumnData::ListI64(v) => rows(v, wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::tables::{FILES, SYSCALLS};

    fn parts(sizes: &[u64]) -> Vec<PartInfo> {
        let part = |(i, bytes): (usize, &u64)| PartInfo {
            range: PartRange::single(i as u64),
            rows: 1,
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(part).collect()
    }

    #[test]
    fn background_waits_for_many_and_leaves_full_ones() {
        assert_eq!(plan_background(&parts(&[1; 64])), None);
        assert_eq!(plan_background(&parts(&[1; 65])), Some(0..64));
        let mut sizes = vec![1; 140];
        sizes[30] = FULL_BYTES;
        assert_eq!(plan_background(&parts(&sizes)), Some(31..95));
        let mut merged = parts(&[1; 100]);
        merged[0].range = PartRange { first: 0, last: 63 };
        for (i, part) in merged.iter_mut().enumerate().skip(1) {
            part.range = PartRange::single(63 + i as u64);
        }
        assert_eq!(plan_background(&merged), Some(1..65));
    }

    #[test]
    fn the_end_merges_what_is_small() {
        assert_eq!(plan_final(&SYSCALLS, &parts(&[1]), 0), None);
        assert_eq!(
            plan_final(&SYSCALLS, &parts(&[1, 1, FULL_BYTES, 1]), 0),
            Some(0..2)
        );
        assert_eq!(
            plan_final(&SYSCALLS, &parts(&[FULL_BYTES, 1, FULL_BYTES, 1]), 0),
            None
        );
        let large = FULL_BYTES - 1;
        assert_eq!(plan_final(&SYSCALLS, &parts(&[large; 6]), 0), Some(0..4));
        assert_eq!(plan_final(&SYSCALLS, &parts(&[large; 6]), 4), Some(4..6));
        assert_eq!(
            plan_final(&FILES, &parts(&[FULL_BYTES, FULL_BYTES]), 0),
            Some(0..2)
        );
    }
}

//! The contents of objects: parts of a session as they are, tables with a key without the rows that
//! later ones replace, and command lines without secrets.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use bytes::Bytes;
use fathom_model::tables::{Holds, Table};
use fathom_redact::{line_without_secrets, without_secrets};
use fathom_session::{PartInfo, PartRange, SESSION_KEY, Session};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    FileMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::ShipError;
use crate::layout;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Where the bytes of an object are.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a part of the session, up to `end`, and then these bytes.
    Part {
        table: &'static Table,
        range: PartRange,
        end: u64,
        then: Bytes,
    },
    /// Here.
    Bytes(Bytes),
}

/// The contents of an object.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Its name in the directory of the session's table.
    pub name: String,
    pub source: Source,
    pub bytes: u64,
    pub rows: u64,
    pub sha256: String,
}

impl Contents {
    /// The only object of a table that shipping makes.
    pub fn made(bytes: Vec<u8>, rows: u64) -> Self {
        let sha256 = hex(&Sha256::digest(&bytes));
        Self {
            name: layout::only_name(&sha256),
            bytes: bytes.len() as u64,
            rows,
            sha256,
            source: Source::Bytes(bytes.into()),
        }
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The objects of a table; `keep_secrets`: command lines are as they were given.
pub fn of_table(
    session: &Session,
    table: &'static Table,
    keep_secrets: bool,
) -> Result<Vec<Contents>, ShipError> {
    let parts = session.part_infos(table.name);
    if let Some(merged) = current(session, table, parts, keep_secrets)? {
        return Ok(vec![merged]);
    }
    let parts = parts.iter().map(|part| {
        let file = session.open_part(table.name, part.range)?;
        let footer = match keep_secrets {
            true => None,
            false => footer_without_secrets(&file).map_err(ShipError::parquet(session.dir()))?,
        };
        let (end, then) = footer.unwrap_or((u64::MAX, Bytes::new()));
        let mut hash = Sha256::new();
        let end = hash_up_to(end, session, table, part.range, &mut hash)?;
        hash.update(&then);
        let sha256 = hex(&hash.finalize());
        Ok(Contents {
            name: layout::part_name(part.range, &sha256),
            bytes: end + then.len() as u64,
            source: Source::Part {
                table,
                range: part.range,
                end,
                then,
            },
            rows: part.rows,
            sha256,
        })
    });
    parts.collect()
}

/// Size and checksum of a part.
pub fn hashed(
    session: &Session,
    table: &Table,
    range: PartRange,
) -> Result<(u64, String), ShipError> {
    let mut hash = Sha256::new();
    let bytes = hash_up_to(u64::MAX, session, table, range, &mut hash)?;
    Ok((bytes, hex(&hash.finalize())))
}

/// Adds the bytes of a part up to `end`, or to its end; returns their number.
fn hash_up_to(
    end: u64,
    session: &Session,
    table: &Table,
    range: PartRange,
    hash: &mut Sha256,
) -> Result<u64, ShipError> {
    let path = session.dir().join(table.name).join(range.to_string());
    let mut file = session.open_part(table.name, range)?.take(end);
    let (mut block, mut bytes) = (vec![0; BLOCK], 0);
    loop {
        let read = file
            .read(&mut block)
            .map_err(ShipError::io("read", &path))?;
        let Some(read) = block.get(..read).filter(|read| !read.is_empty()) else {
            return Ok(bytes);
        };
        hash.update(read);
        bytes += read.len() as u64;
    }
}

/// The metadata of a session without the secrets in its command; `None` if there are none.
fn session_without_secrets(json: &str) -> Option<String> {
    let mut session: Value = serde_json::from_str(json).ok()?;
    let command = session.get_mut("command")?;
    let before: Vec<String> = serde_json::from_value(command.clone()).ok()?;
    let after = without_secrets(&before);
    if after == before {
        return None;
    }
    *command = after.into();
    Some(session.to_string())
}

/// A footer that has the command of its session without secrets, and its place; `None` if it stays as
/// it is.
fn footer_without_secrets(file: &File) -> Result<Option<(u64, Bytes)>, ParquetError> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file)?;
    let of_file = metadata.file_metadata();
    let mut pairs = of_file.key_value_metadata().cloned().unwrap_or_default();
    let mut session = pairs.iter_mut().filter(|pair| pair.key == SESSION_KEY);
    let value = session.next().and_then(|pair| pair.value.as_mut());
    let Some((value, without)) =
        value.and_then(|value| session_without_secrets(value).map(|without| (value, without)))
    else {
        return Ok(None);
    };
    *value = without;
    let of_file = FileMetaData::new(
        of_file.version(),
        of_file.num_rows(),
        of_file.created_by().map(str::to_owned),
        Some(pairs),
        of_file.schema_descr_ptr(),
        of_file.column_orders().cloned(),
    );
    let groups = metadata.row_groups().to_vec();
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(of_file, groups)).finish()?;
    // The footer that is there, its length, and the magic number end the file.
    let bytes = file.len();
    let mut tail = [0; FOOTER_SIZE];
    let length = FOOTER_SIZE as u64;
    file.get_read(bytes.saturating_sub(length))?
        .read_exact(&mut tail)?;
    let before = FooterTail::try_new(&tail)?.metadata_length() as u64;
    Ok(Some((bytes.saturating_sub(before + length), footer.into())))
}

/// The rows of a table with a key that count, without secrets, if the parts have others. Engines know
/// no order of rows by which they could choose the last one.
fn current(
    session: &Session,
    table: &'static Table,
    parts: &[PartInfo],
    keep_secrets: bool,
) -> Result<Option<Contents>, ShipError> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return Ok(None);
    };
    let columns = table.columns.iter().filter(|_| !keep_secrets);
    let commands = columns.filter(|column| column.holds == Some(Holds::Command));
    let commands: Vec<&str> = commands.map(|column| column.name).collect();
    if table.key.is_empty() && commands.is_empty() {
        return Ok(None);
    }
    let failed = || ShipError::parquet(session.dir());
    // The last row of each key.
    let mut last_of: HashMap<OwnedRow, u64> = HashMap::new();
    let mut rows = 0;
    for part in parts {
        let file = session.open_part(table.name, part.range)?;
        rows = match table.key {
            [] => rows + part.rows,
            key => last_rows(file, key, rows, &mut last_of).map_err(failed())?,
        };
    }
    let all_count = table.key.is_empty() || last_of.len() as u64 == rows;
    if all_count && commands.is_empty() {
        return Ok(None);
    }
    let mut counts = vec![all_count; usize::try_from(rows).unwrap_or(usize::MAX)];
    for row in last_of.values() {
        if let Some(counts) = usize::try_from(*row)
            .ok()
            .and_then(|row| counts.get_mut(row))
        {
            *counts = true;
        }
    }
    let kept = match all_count {
        true => rows,
        false => last_of.len() as u64,
    };
    drop(last_of);
    let files = parts
        .iter()
        .map(|part| session.open_part(table.name, part.range));
    let files: Vec<File> = files.collect::<Result<_, _>>()?;
    let (bytes, masked) = filtered(files, counts, &commands, keep_secrets).map_err(failed())?;
    if all_count && !masked {
        return Ok(None);
    }
    let made = Contents::made(bytes, kept);
    let range = PartRange {
        first: first.range.first,
        last: last.range.last,
    };
    Ok(Some(Contents {
        name: layout::part_name(range, &made.sha256),
        ..made
    }))
}

/// Notes the rows of a part by their key, of which the first has the number `row`. Returns the number
/// of the next.
fn last_rows(
    file: File,
    key: &[&str],
    mut row: u64,
    last_of: &mut HashMap<OwnedRow, u64>,
) -> Result<u64, ParquetError> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let column = |name: &&str| reader.schema().index_of(name);
    let columns = key.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let schema = reader.schema().project(&columns)?;
    let fields = schema.fields().iter();
    let fields = fields.map(|field| SortField::new(field.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    for batch in reader.build()? {
        let batch = batch?.project(&columns)?;
        for key in &converter.convert_columns(batch.columns())? {
            last_of.insert(key.owned(), row);
            row += 1;
        }
    }
    Ok(row)
}

/// The rows of parts for which `counts` is true, as one Parquet file, and whether there were secrets
/// in the columns `commands` or in the metadata, which are left out.
fn filtered(
    files: Vec<File>,
    counts: Vec<bool>,
    commands: &[&str],
    keep_secrets: bool,
) -> Result<(Vec<u8>, bool), ParquetError> {
    let mut masked = false;
    let mut writer: Option<ArrowWriter<Vec<u8>>> = None;
    let mut counts = counts.into_iter();
    for file in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)?;
        let mut schema = Schema::clone(reader.schema());
        if let Some(session) = schema.metadata.get_mut(SESSION_KEY)
            && !keep_secrets
            && let Some(without) = session_without_secrets(session)
        {
            *session = without;
            masked = true;
        }
        let schema = Arc::new(schema);
        for batch in reader.build()? {
            let batch = batch?;
            let counting: BooleanArray = counts.by_ref().take(batch.num_rows()).map(Some).collect();
            let batch = filter_record_batch(&batch, &counting)?;
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(writer_of(&schema)?),
            };
            let mut columns = batch.columns().to_vec();
            for command in commands {
                if let Some(column) = columns.get_mut(schema.index_of(command)?)
                    && let Some(without) = mask(column)?
                {
                    *column = without;
                    masked = true;
                }
            }
            // Parts may differ in their metadata.
            writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
        }
    }
    let bytes = writer.map(ArrowWriter::into_inner).transpose()?;
    Ok((bytes.unwrap_or_default(), masked))
}

/// A column of command lines without secrets; `None` if there are none in it.
fn mask(lines: &ArrayRef) -> Result<Option<ArrayRef>, ArrowError> {
    let texts = cast(lines, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let masked: Vec<Option<String>> = texts
        .iter()
        .map(|line| line.and_then(line_without_secrets))
        .collect();
    if masked.iter().all(Option::is_none) {
        return Ok(None);
    }
    let both = masked.iter().zip(texts.iter());
    let without: StringArray = both
        .map(|(masked, line)| masked.as_deref().or(line))
        .collect();
    Ok(Some(cast(&without, lines.data_type())?))
}

/// A writer of files that follow from their rows alone.
pub fn writer_of(
    schema: &arrow::datatypes::SchemaRef,
) -> Result<ArrowWriter<Vec<u8>>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("fathom version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties))
}

/// A part that is read a block at a time, up to a place, and what comes then.
pub struct Blocks {
    file: File,
    left: u64,
    then: Bytes,
    path: PathBuf,
}

impl Blocks {
    pub fn open(
        session: &Session,
        table: &Table,
        range: PartRange,
        (end, then): (u64, Bytes),
    ) -> Result<Self, ShipError> {
        let path = session.dir().join(table.name).join(range.to_string());
        Ok(Self {
            file: session.open_part(table.name, range)?,
            left: end,
            then,
            path,
        })
    }

    /// The next bytes, `size` at most; empty at the end.
    pub fn next(&mut self, size: usize) -> Result<Bytes, ShipError> {
        let of_file = usize::try_from(self.left).map_or(size, |left| left.min(size));
        let mut block = vec![0; of_file];
        let read = self.file.read_exact(&mut block);
        read.map_err(ShipError::io("read", &self.path))?;
        self.left -= of_file as u64;
        let then = self.then.len().min(size - of_file);
        block.extend_from_slice(&self.then.split_to(then));
        Ok(block.into())
    }
}

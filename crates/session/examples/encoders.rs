//! The cost of fathom's Parquet encoders compared with the parquet crate's: the rows of a session,
//! table by table, encoded into memory by one thread. The crate writes them with its own choice of
//! encodings, and with the encodings that fathom's encoders chose.
//!
//! Usage: encoders SESSION [ROWS A ROW GROUP]

// The encoders are no part of the library's interface.
#[allow(dead_code)]
#[path = "../src/format"]
mod format {
    #[path = "codec"]
    pub(crate) mod codec {
        #[path = "encode/mod.rs"]
        pub(crate) mod encode;
        #[path = "less.rs"]
        pub(crate) mod less;

        pub(crate) const GROUP_ROWS: usize = 1 << 17;
    }
}

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{ColumnType, TABLES, Table};
use fathom_model::{Batch, ColumnData, StrId};
use fathom_session::Session;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
    WriterVersion,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, SchemaDescPtr, TypePtr};

use format::codec::encode::Encoder;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Each way is repeated until it took so much processor time.
const ENOUGH_NS: u64 = 1_000_000_000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args
        .next()
        .ok_or("usage: encoders SESSION [ROWS A ROW GROUP]")?;
    let group_rows: usize = args.next().map_or(Ok(1 << 17), |rows| rows.parse())?;
    let session = Session::open(Path::new(&dir))?;
    println!(
        "{:10} {:>9}  {:>7} {:>7}  {:>7} {:>7} {:>5}  {:>7} {:>7} {:>5}",
        "table", "rows", "ns/row", "B/row", "crate", "B/row", "x", "same", "B/row", "x"
    );
    for table in TABLES {
        let listed = |column: &fathom_model::tables::Column| column.ty == ColumnType::ListI64;
        if session.rows(table.name) < 50_000 || table.columns.iter().any(listed) {
            continue;
        }
        let batches = session.batches(table, None);
        let batches = batches.collect::<std::result::Result<Vec<Batch>, _>>()?;
        measure(&session, table, &groups(&batches, group_rows))?;
    }
    Ok(())
}

/// Batches that become a row group together.
fn groups(batches: &[Batch], rows: usize) -> Vec<Vec<&Batch>> {
    let mut groups: Vec<Vec<&Batch>> = vec![Vec::new()];
    let mut filled = 0;
    for batch in batches {
        if filled > 0 && filled + batch.len() > rows {
            groups.push(Vec::new());
            filled = 0;
        }
        filled += batch.len();
        if let Some(last) = groups.last_mut() {
            last.push(batch);
        }
    }
    groups
}

fn measure(session: &Session, table: &'static Table, groups: &[Vec<&Batch>]) -> Result<()> {
    let part = session.parts(table.name).pop().ok_or("no part")?;
    let reader = SerializedFileReader::new(fs::File::open(part)?)?;
    let metadata = reader.metadata().file_metadata();
    let (descr, root) = (
        metadata.schema_descr_ptr(),
        metadata.schema_descr().root_schema_ptr(),
    );
    let rows: usize = groups.iter().flatten().map(|batch| batch.len()).sum();
    let mut chosen = WriterProperties::builder();
    let ours = repeat(rows, || ours(table, &descr, &root, groups, &mut chosen))?;
    let chosen = Arc::new(common(chosen).build());
    let own = Arc::new(common(WriterProperties::builder()).build());
    let of_crate = repeat(rows, || theirs(&root, &own, groups))?;
    let same = repeat(rows, || theirs(&root, &chosen, groups))?;
    println!(
        "{:10} {rows:>9}  {:>7.1} {:>7.3}  {:>7.1} {:>7.3} {:>5.2}  {:>7.1} {:>7.3} {:>5.2}",
        table.name,
        ours.0,
        ours.1,
        of_crate.0,
        of_crate.1,
        of_crate.0 / ours.0,
        same.0,
        same.1,
        same.0 / ours.0,
    );
    Ok(())
}

/// Nanoseconds and bytes per row: the least of several runs.
fn repeat(rows: usize, mut encode: impl FnMut() -> Result<usize>) -> Result<(f64, f64)> {
    let (mut least, mut spent, mut bytes) = (u64::MAX, 0, 0);
    while spent < ENOUGH_NS {
        let before = cpu_ns()?;
        bytes = encode()?;
        let took = cpu_ns()? - before;
        least = least.min(took);
        spent += took.max(1);
    }
    Ok((least as f64 / rows as f64, bytes as f64 / rows as f64))
}

/// Processor time of this thread.
fn cpu_ns() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("schedstat")?.parse()?)
}

fn common(builder: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
    builder
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
}

/// Encodes as a recording does; sets `chosen` to the used encodings.
fn ours(
    table: &'static Table,
    descr: &SchemaDescPtr,
    root: &TypePtr,
    groups: &[Vec<&Batch>],
    chosen: &mut WriterPropertiesBuilder,
) -> Result<usize> {
    let mut encoder = Encoder::new(table, descr.clone())?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), root.clone(), properties)?;
    for group in groups {
        for batch in group {
            encoder.push(batch)?;
        }
        let encoded = encoder.finish()?;
        let mut writer = file.next_row_group()?;
        for (column, chunk) in table.columns.iter().zip(encoded.chunks) {
            let encodings: Vec<Encoding> = chunk.close.metadata.encodings().collect();
            let path = ColumnPath::from(column.name);
            let dictionary = encodings.contains(&Encoding::RLE_DICTIONARY);
            let mut next =
                std::mem::take(chosen).set_column_dictionary_enabled(path.clone(), dictionary);
            if encodings.contains(&Encoding::DELTA_BINARY_PACKED) {
                next = next.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            *chosen = next;
            writer.append_column(&chunk.bytes, chunk.close)?;
        }
        writer.close()?;
    }
    Ok(file.into_inner()?.len())
}

fn theirs(
    root: &TypePtr,
    properties: &WriterPropertiesPtr,
    groups: &[Vec<&Batch>],
) -> Result<usize> {
    let mut file = SerializedFileWriter::new(Vec::new(), root.clone(), properties.clone())?;
    for group in groups {
        let mut writer = file.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = writer.next_column()? {
            for batch in group {
                let data = batch.columns.get(at).ok_or("a column is missing")?;
                write(&mut column, batch, data)?;
            }
            column.close()?;
            at += 1;
        }
        writer.close()?;
    }
    Ok(file.into_inner()?.len())
}

fn write(column: &mut SerializedColumnWriter<'_>, batch: &Batch, data: &ColumnData) -> Result<()> {
    match data {
        ColumnData::I64(v) => values::<Int64Type, _>(column, v, |v| *v != NULL_I64, |v| *v),
        ColumnData::I32(v) => values::<Int32Type, _>(column, v, |v| *v != NULL_I32, |v| *v),
        ColumnData::Bool(v) => values::<BoolType, _>(column, v, |_| true, |v| *v),
        ColumnData::Str(v) | ColumnData::Blob(v) => {
            // Each text is made once for a batch.
            let texts = (1..=batch.strings.len() as u32)
                .map(|id| ByteArray::from(batch.strings.get(StrId(id)).to_vec()));
            let texts: Vec<ByteArray> = texts.collect();
            let text = |id: &StrId| texts.get(id.0 as usize - 1).cloned().unwrap_or_default();
            values::<ByteArrayType, _>(column, v, |id| *id != StrId::NULL, text)
        }
        ColumnData::ListI64(_) => Err("lists are not measured".into()),
    }
}

/// Writes the rows of a batch: the values, and which of them are present.
fn values<T: DataType, R>(
    column: &mut SerializedColumnWriter<'_>,
    rows: &[R],
    is_there: impl Fn(&R) -> bool,
    value: impl Fn(&R) -> T::T,
) -> Result<()> {
    let there: Vec<T::T> = rows
        .iter()
        .filter(|row| is_there(row))
        .map(&value)
        .collect();
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(is_there(row))).collect();
    let column = column.typed::<T>();
    let nullable = column.get_descriptor().max_def_level() > 0;
    column.write_batch(&there, nullable.then_some(levels.as_slice()), None)?;
    Ok(())
}

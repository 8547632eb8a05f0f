//! The order of pages in a column chunk.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/mod.rs"]
mod common;
#[path = "common/read.rs"]
mod read;

use std::fs::{self, File};
use std::path::Path;

use bytes::Bytes;

use common::{Random, Workload, meta};
use fathom_model::batch::NULL_I64;
use fathom_model::{ColumnData, StrId};
use fathom_session::{Session, SessionWriter, WriterOptions, repair};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};

/// Rows of a page.
const PAGE: usize = 1 << 15;

/// A session of which no parts are merged.
fn writer(dir: &Path) -> SessionWriter {
    let options = WriterOptions {
        compact: false,
        // By rows alone: a slow machine would make more parts, of other pages.
        part_interval: std::time::Duration::from_secs(3600),
        ..WriterOptions::default()
    };
    SessionWriter::create(dir, meta(), options).unwrap()
}

/// DuckDB with several threads reads wrong values, and may crash, where pages that use the
/// dictionary of a chunk follow one that does not. So whatever the values of the pages
/// of a chunk are, those that use it come first.
#[test]
fn no_page_uses_the_dictionary_behind_one_that_does_not() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("s.fathom");
    let writer = writer(&dir);
    let (mut workload, mut random) = (Workload::new(3), Random::new(5));
    for _ in 0..60 {
        let mut batch = workload.batch(PAGE);
        let law = random.below(5);
        let number = |random: &mut Random| match law {
            0 => NULL_I64,
            1 => 42,
            2 => random.below(9) as i64,
            _ => random.next() as i64 | 1,
        };
        let column = |name| {
            let columns = batch.table.columns.iter();
            columns.clone().position(|c| c.name == name).unwrap()
        };
        let (file_id, path_arg) = (column("file_id"), column("path_arg"));
        batch.columns[file_id] = ColumnData::I64((0..PAGE).map(|_| number(&mut random)).collect());
        if law == 0 {
            batch.columns[path_arg] = ColumnData::Str(vec![StrId::NULL; PAGE]);
        }
        writer.append(batch).unwrap();
    }
    writer.finish(meta()).unwrap();

    let [indices, others, both] = orders(&dir);
    assert!(
        indices > 0 && others > 0 && both > 0,
        "{indices} {others} {both}"
    );
}

/// Chunks of table `syscalls` with indices alone, with other pages alone, and with indices
/// before others; there may be no others.
fn orders(dir: &Path) -> [usize; 3] {
    let [indices, others, both, wrong] = all_orders(dir);
    assert_eq!(wrong, 0, "indices behind other pages");
    [indices, others, both]
}

/// The same, and those with indices behind other pages.
fn all_orders(dir: &Path) -> [usize; 4] {
    let (mut indices, mut others, mut both, mut wrong) = (0, 0, 0, 0);
    for part in fs::read_dir(dir.join("syscalls")).unwrap() {
        let file = File::open(part.unwrap().path()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            for column in 0..group.metadata().num_columns() {
                let mut pages = group.get_column_page_reader(column).unwrap();
                let mut data = Vec::new();
                while let Some(page) = pages.get_next_page().unwrap() {
                    if !matches!(page, Page::DictionaryPage { .. }) {
                        data.push(page.encoding() == Encoding::RLE_DICTIONARY);
                    }
                }
                let first = data.iter().take_while(|index| **index).count();
                match data.iter().skip(first).any(|index| *index) {
                    true => wrong += 1,
                    false if first == data.len() => indices += 1,
                    false if first == 0 => others += 1,
                    false => both += 1,
                }
            }
        }
    }
    [indices, others, both, wrong]
}

/// A part as an earlier version might have written it: like `source`, but in each chunk
/// that has both the pages with indices come last, and the footer promises nothing.
fn disorder(source: &Path) -> usize {
    let file = File::open(source).unwrap();
    let reader = SerializedFileReader::new(file.try_clone().unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut writer = SerializedFileWriter::new(
        Vec::new(),
        schema.root_schema_ptr(),
        WriterProperties::builder().build().into(),
    )
    .unwrap();
    let mut changed = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        let mut to = writer.next_row_group().unwrap();
        for (i, chunk) in group.metadata().columns().iter().enumerate() {
            let mut close = ColumnCloseResult {
                bytes_written: chunk.compressed_size() as u64,
                rows_written: group.metadata().num_rows() as u64,
                metadata: chunk.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            let mut pages: Vec<Page> = Vec::new();
            let mut read = group.get_column_page_reader(i).unwrap();
            while let Some(page) = read.get_next_page().unwrap() {
                pages.push(page);
            }
            let rank = |page: &Page| match (page, page.encoding()) {
                (Page::DictionaryPage { .. }, _) => 0,
                (_, Encoding::RLE_DICTIONARY) => 2,
                _ => 1,
            };
            let mixed = pages
                .iter()
                .any(|p| p.encoding() == Encoding::DELTA_BINARY_PACKED)
                && pages.iter().any(|p| rank(p) == 2);
            if !mixed {
                to.append_column(&file, close).unwrap();
                continue;
            }
            changed += 1;
            pages.sort_by_key(rank);
            let mut bytes = Vec::new();
            let mut data_offset = None;
            for page in pages {
                let is_data = rank(&page) > 0;
                if is_data && data_offset.is_none() {
                    data_offset = Some(bytes.len() as i64);
                }
                let length = page.buffer().len();
                let mut sink = TrackedWrite::new(&mut bytes);
                let mut pages = SerializedPageWriter::new(&mut sink);
                pages
                    .write_page(CompressedPage::new(uncompressed(page), length))
                    .unwrap();
                pages.close().unwrap();
            }
            close.bytes_written = bytes.len() as u64;
            close.metadata = chunk
                .clone()
                .into_builder()
                .set_compression(Compression::UNCOMPRESSED)
                .set_total_compressed_size(bytes.len() as i64)
                .set_total_uncompressed_size(bytes.len() as i64)
                .set_dictionary_page_offset(Some(0))
                .set_data_page_offset(data_offset.unwrap())
                .build()
                .unwrap();
            to.append_column(&Bytes::from(bytes), close).unwrap();
        }
        to.close().unwrap();
    }
    fs::write(source, writer.into_inner().unwrap()).unwrap();
    changed
}

/// The page, said not to be compressed.
fn uncompressed(page: Page) -> Page {
    match page {
        Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len,
            statistics,
            ..
        } => Page::DataPageV2 {
            buf,
            num_values,
            encoding,
            num_nulls,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed: false,
            statistics,
        },
        other => other,
    }
}

/// What an earlier version left is named when it is opened, and written anew by a repair,
/// with each value that it had.
#[test]
fn pages_in_a_wrong_order_are_repaired() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("s.fathom");
    let writer = writer(&dir);
    let (mut workload, mut random) = (Workload::new(3), Random::new(5));
    // A whole row group, which a merge would copy: first few files, then many.
    for page in 0..4 {
        let mut batch = workload.batch(PAGE);
        let columns = batch.table.columns.iter();
        let file_id = columns.clone().position(|c| c.name == "file_id").unwrap();
        let number = |random: &mut Random| match page {
            0 | 1 => random.below(9) as i64,
            _ => random.next() as i64 >> 20 | 1,
        };
        batch.columns[file_id] = ColumnData::I64((0..PAGE).map(|_| number(&mut random)).collect());
        writer.append(batch).unwrap();
    }
    let mut ended = meta();
    ended.totals.seen = 4 * PAGE as u64;
    writer.finish(ended).unwrap();
    assert!(orders(&dir)[2] > 0, "no chunk has pages of both kinds");
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.problems(), &[] as &[String]);
    let mut chunks = 0;
    for part in session.parts("syscalls") {
        chunks += disorder(&part);
    }
    assert_eq!(all_orders(&dir)[3], chunks);
    assert!(chunks > 0);

    let session = Session::open(&dir).unwrap();
    let rows = read::table(&session, "syscalls");
    assert_eq!(rows.len(), 4 * PAGE);
    let [problem, unchecked] = session.problems() else {
        panic!("{:?}", session.problems());
    };
    assert!(
        unchecked.starts_with("1 part has no checksum"),
        "{unchecked}"
    );
    assert!(
        problem.starts_with("1 part was written by an older fathom"),
        "{problem}"
    );
    assert!(problem.contains("`fathom repair`"), "{problem}");
    let planned = repair(&dir, false).unwrap();
    assert_eq!(all_orders(&dir)[3], chunks, "nothing is done yet");
    let done = repair(&dir, true).unwrap();
    assert_eq!(planned, done);
    let [found] = done.found.as_slice() else {
        panic!("{done:?}");
    };
    assert!(found.starts_with("syscalls: 1 part has pages"), "{found}");
    assert_eq!(done.lost, [] as [String; 0]);
    orders(&dir);
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.problems(), &[] as &[String]);
    assert!(
        read::table(&session, "syscalls") == rows,
        "values have changed"
    );
    assert_eq!(repair(&dir, true).unwrap().found, [] as [String; 0]);
}

//! The order of pages in a column chunk.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/mod.rs"]
mod common;

use std::fs::{self, File};

use common::{Random, Workload, meta};
use fathom_model::batch::NULL_I64;
use fathom_model::{ColumnData, StrId};
use fathom_session::{SessionWriter, WriterOptions};
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Rows of a page.
const PAGE: usize = 1 << 15;

/// DuckDB with several threads reads wrong values, and may crash, where pages that use the
/// dictionary of a chunk follow one that does not. So whatever the values of the pages
/// of a chunk are, those that use it come first.
#[test]
fn no_page_uses_the_dictionary_behind_one_that_does_not() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("s.fathom");
    let options = WriterOptions {
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, meta(), options).unwrap();
    let mut workload = Workload::new(3);
    let mut random = Random::new(5);
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

    let (mut indices, mut others, mut both) = (0, 0, 0);
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
                assert!(
                    data.iter().skip(first).all(|index| !index),
                    "column {column}: {data:?}"
                );
                indices += usize::from(first == data.len());
                others += usize::from(first == 0);
                both += usize::from(first > 0 && first < data.len());
            }
        }
    }
    assert!(
        indices > 0 && others > 0 && both > 0,
        "{indices} {others} {both}"
    );
}

//! The order of pages in a column chunk.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::Path;

use fathom_model::batch::NULL_I64;
use fathom_model::tables::{IrqRow, IrqRows};
use fathom_model::{Batch, StrId, StringTable};
use fathom_session::{SessionWriter, WriterOptions};
use fathom_testkit::{Random, meta};
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};

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

/// DuckDB with several threads reads wrong values, and may crash, if pages that use the dictionary
/// of a chunk follow one that does not. So for all values of the pages of a chunk, pages with the
/// dictionary come first.
#[test]
fn no_page_uses_the_dictionary_behind_one_that_does_not() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("s.fathom");
    let writer = writer(&dir);
    let mut random = Random::new(5);
    for _ in 0..60 {
        writer.append(page(&mut random)).unwrap();
    }
    writer.finish(meta()).unwrap();

    let [indices, others, both, wrong] = orders(&dir);
    assert_eq!(wrong, 0, "indices behind other pages");
    assert!(
        indices > 0 && others > 0 && both > 0,
        "{indices} {others} {both}"
    );
}

/// Rows of a page: many chunks have pages of several kinds.
fn page(random: &mut Random) -> Batch {
    let (mut rows, mut strings) = (IrqRows::default(), StringTable::new());
    let law = random.below(5);
    for row in 0..PAGE {
        let rid = match law {
            0 => NULL_I64,
            1 => 42,
            2 => random.below(9) as i64,
            _ => random.next() as i64 | 1,
        };
        let comm = match law {
            0 => StrId::NULL,
            _ => strings.intern(random.below(50_000).to_string().as_bytes()),
        };
        rows.push(IrqRow {
            rid,
            ts_ns: row as i64,
            comm,
            kind: strings.intern(b"timer"),
            name: strings.intern(b"timer"),
            ..IrqRow::default()
        });
    }
    rows.into_batch(strings)
}

/// Chunks of table `irqs` with indices alone, with other pages alone, with indices before
/// others, and with indices behind others.
fn orders(dir: &Path) -> [usize; 4] {
    let (mut indices, mut others, mut both, mut wrong) = (0, 0, 0, 0);
    for part in fs::read_dir(dir.join("irqs")).unwrap() {
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

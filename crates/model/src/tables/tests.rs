//! Properties of all tables, and batches of rows.

use super::*;
use crate::StrId;

#[test]
fn batches_follow_the_table() {
    let mut strings = StringTable::new();
    let mut rows = FilePathRows::default();
    rows.push(FilePathRow {
        file_id: 7,
        ts_ns: 1,
        path: strings.intern(b"/x"),
        path_complete: true,
        deleted: false,
        mount_namespace: 1,
    });
    let batch = rows.into_batch(strings);
    assert_eq!(batch.len(), 1);
    assert_eq!(batch.columns.len(), FILE_PATHS.columns.len());
    assert!(FileRows::from_batch(batch.clone()).is_none());
    let (mut rows, strings) = FilePathRows::from_batch(batch).unwrap();
    assert_eq!((rows.file_id.as_slice(), strings.len()), (&[7][..], 1));
    rows.clear();
    assert!(rows.file_id.is_empty() && rows.deleted.is_empty());
}

#[test]
fn a_row_is_replaced_or_added() {
    let mut rows = FilePathRows::default();
    let row = |file_id| FilePathRow {
        file_id,
        ..FilePathRow::default()
    };
    rows.put(0, row(1));
    rows.put(0, row(2));
    rows.put(5, row(3));
    assert_eq!((rows.len(), &rows.file_id[..]), (2, &[2, 3][..]));
    assert_eq!(rows.mount_namespace, [i64::NULL; 2]);
    assert_eq!((rows.ts_ns[0], rows.path[0]), (0, StrId::NULL));
}

#[test]
fn sums_are_of_numbers_that_are_stored_as_they_are() {
    for table in TABLES {
        for column in table.columns {
            let Stored::Less { name, terms } = column.stored else {
                continue;
            };
            assert_eq!(column.ty, ColumnType::I64, "{name}");
            let alone = |other: &&Column| other.name == name || other.stored_name() == name;
            assert_eq!(table.columns.iter().filter(alone).count(), 1, "{name}");
            for term in terms {
                let of = table
                    .columns
                    .iter()
                    .find(|c| c.name == term.column)
                    .unwrap();
                assert_eq!(
                    (of.ty, of.stored),
                    (ColumnType::I64, Stored::AsIs),
                    "{name}"
                );
                assert_ne!(term.divisor, 0, "{name}");
            }
        }
    }
}

#[test]
fn text_columns_say_what_they_hold() {
    for table in TABLES {
        for column in table.columns {
            let (name, holds) = (column.name, column.holds);
            let text = matches!(column.ty, ColumnType::Str | ColumnType::Blob);
            assert!(!text || holds.is_some(), "{}.{name}", table.name);
            // A redacted copy keeps the keys of rows.
            let key = table.key.contains(&name);
            let plain = matches!(holds, None | Some(Holds::Words));
            assert!(!key || plain, "{}.{name}", table.name);
        }
    }
}

#[test]
fn keys_name_columns() {
    for table in TABLES {
        for key in table.key {
            assert!(
                table.columns.iter().any(|c| c.name == *key),
                "{}.{key}",
                table.name
            );
        }
    }
}

//! The output formats of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{self, Write};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use arrow::ipc::reader::StreamReader;
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, HOSTILE};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

fn fixed() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let files = sample::fixed(dir.path());
    let db = Db::open_parts(&sample::meta(), |t| files.parts(t), Limits::default()).unwrap();
    (dir, db)
}

fn bytes(db: &Db, sql: &str, format: Format, options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    output::write(db.query(sql).unwrap(), format, options, &mut out).unwrap();
    out
}

fn text(db: &Db, sql: &str, format: Format) -> String {
    String::from_utf8(bytes(db, sql, format, &Options::default())).unwrap()
}

const MIXED: &str = "SELECT * FROM (VALUES (1, 'a', 2.5, true), (-20, NULL, NULL, NULL), \
                     (300, 'NULL', 0, false)) AS t(n, name, ratio, flag) ORDER BY n";

#[test]
fn tables_are_aligned() {
    let (_dir, db) = fixed();
    assert_eq!(
        text(&db, MIXED, Format::Table),
        "  n  name    ratio  flag\n\
         ───  ──────  ─────  ─────\n\
         -20  NULL     NULL  NULL\n\
         \x20 1  a         2.5  true\n\
         300  'NULL'    0.0  false\n"
    );
    assert_eq!(
        text(&db, "SELECT 1 AS n WHERE false", Format::Table),
        "n\n─\n"
    );
}

#[test]
fn tables_fit_their_width() {
    let (_dir, db) = fixed();
    let sql = "SELECT path, calls, path AS again FROM by_file ORDER BY file_id LIMIT 1";
    for width in [40, 60, 80] {
        let options = Options {
            width: Some(width),
            ..Options::default()
        };
        let table = String::from_utf8(bytes(&db, sql, Format::Table, &options)).unwrap();
        for line in table.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(table.contains('…'));
    }
}

#[test]
fn colors_are_for_those_who_ask() {
    let (_dir, db) = fixed();
    let options = Options {
        color: true,
        ..Options::default()
    };
    let colored = String::from_utf8(bytes(&db, MIXED, Format::Table, &options)).unwrap();
    assert!(colored.contains("\x1b[2mNULL\x1b[0m"));
    let plain = colored
        .replace("\x1b[2m", "")
        .replace("\x1b[1m", "")
        .replace("\x1b[0m", "");
    assert_eq!(plain, text(&db, MIXED, Format::Table));
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let (_dir, db) = fixed();
    let sql = "SELECT path AS p FROM files WHERE file_id = 3";
    let table = text(&db, sql, Format::Table);
    let shown = "/srv/a\\x1b[2J\\n'\"<script>alert(1)</script>\\u{9b}31m\\xff";
    assert_eq!(table.lines().nth(2).unwrap(), shown);
    assert_eq!(table.lines().count(), 3);
    let header = text(&db, "SELECT 1 AS \"a\u{1b}b\"", Format::Table);
    assert!(header.starts_with("a\\x1bb\n"), "{header:?}");

    // CSV has the bytes when they are asked for, though never on a terminal.
    let quoted = HOSTILE.replace('"', "\"\"");
    let safe = format!("p\n\"{}\"\n", shown.replace('"', "\"\""));
    for (terminal, exact) in [(false, false), (true, false), (true, true), (false, true)] {
        let options = Options {
            terminal,
            exact,
            ..Options::default()
        };
        let csv = String::from_utf8(bytes(&db, sql, Format::Csv, &options)).unwrap();
        if exact && !terminal {
            assert_eq!(csv, format!("p\n\"{quoted}\"\n"));
        } else {
            assert_eq!(csv, safe, "terminal {terminal}, exact {exact}");
        }
    }

    let json = text(&db, sql, Format::Json);
    assert!(
        !json.chars().any(|c| c.is_control() && c != '\n'),
        "{json:?}"
    );
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[0]["p"], HOSTILE);
}

#[test]
fn csv_tells_null_from_empty() {
    let (_dir, db) = fixed();
    assert_eq!(
        text(
            &db,
            "SELECT NULL AS a, '' AS b, 'x,y' AS \"c,d\", E'1\\r2' AS e",
            Format::Csv
        ),
        "a,b,\"c,d\",e\n,\"\",\"x,y\",1\\r2\n"
    );
}

#[test]
fn csv_holds_no_formula() {
    let (_dir, db) = fixed();
    let exact = Options {
        exact: true,
        ..Options::default()
    };
    let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    };
    for (name, safe) in [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("=HYPERLINK(\"x\",1)", "'=HYPERLINK(\"x\",1)"),
        ("+1+cmd|x", "'+1+cmd|x"),
        ("-1+cmd|x", "'-1+cmd|x"),
        ("-inf", "'-inf"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\u{ff1d}1+1", "'\u{ff1d}1+1"),
        ("\t=1+1", "\\t=1+1"),
        ("\r=1+1", "\\r=1+1"),
        ("\n=1+1", "\\n=1+1"),
        ("a\u{1b}]0;x\u{7}", "a\\x1b]0;x\\x07"),
        // These are what they look like.
        ("/srv/=x", "/srv/=x"),
        ("-20", "-20"),
        ("+1.5e3", "+1.5e3"),
        (" =1", " =1"),
    ] {
        let sql = format!(
            "SELECT '{0}' AS \"{1}\"",
            name.replace('\'', "''"),
            name.replace('"', "\"\"")
        );
        let csv = format!("{0}\n{0}\n", quoted(safe));
        assert_eq!(text(&db, &sql, Format::Csv), csv, "{name:?}");
        let csv = format!("{0}\n{0}\n", quoted(name));
        let got = String::from_utf8(bytes(&db, &sql, Format::Csv, &exact)).unwrap();
        assert_eq!(got, csv, "{name:?}");
    }
    // Numbers, times and intervals are never changed, whatever their type.
    let sql = "SELECT -20 AS a, -2.5 AS b, -1.50::DECIMAL(9,2) AS c, -1::HUGEINT AS d, \
               INTERVAL '-3 days' AS e, '-44-03-15 BC'::VARCHAR AS f, -9e300 AS g";
    let row = text(&db, sql, Format::Csv);
    let row = row.lines().nth(1).unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(cells[..4], ["-20", "-2.5", "-1.50", "-1"]);
    assert!(cells[4].starts_with("-3"), "{row}");
    assert_eq!((cells[5], cells[6]), ("'-44-03-15 BC", "-9e300"));
}

#[test]
fn json_keeps_integers_and_nulls() {
    let (_dir, db) = fixed();
    let sql = "SELECT 9007199254740993 AS big, sum(9223372036854775807::BIGINT) AS sum, \
               NULL AS nothing, [1, NULL] AS list, {'k': 'v'} AS pair, 1.50::DECIMAL(9,2) AS d \
               FROM range(2)";
    assert_eq!(
        text(&db, sql, Format::Json),
        "[\n{\"big\":9007199254740993,\"sum\":18446744073709551614,\"nothing\":null,\
         \"list\":[1,null],\"pair\":{\"k\":\"v\"},\"d\":1.50}\n]\n"
    );
    assert_eq!(text(&db, "SELECT 1 WHERE false", Format::Json), "[]\n");
    let many = text(&db, "SELECT range AS i FROM range(5000)", Format::Json);
    let parsed: Vec<serde_json::Value> = serde_json::from_str(&many).unwrap();
    assert_eq!(parsed.len(), 5000);
    assert_eq!(parsed[4999]["i"], 4999);
}

#[test]
fn arrow_and_parquet_can_be_read_back() {
    let (_dir, db) = fixed();
    let sql = "SELECT rid, syscall, path FROM syscalls ORDER BY rid";
    let stream = bytes(&db, sql, Format::Arrow, &Options::default());
    let batches: Vec<_> = StreamReader::try_new(stream.as_slice(), None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(batches.iter().map(|b| b.num_rows()).sum::<usize>(), 1015);
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 1);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.parquet");
    std::fs::write(&path, bytes(&db, sql, Format::Parquet, &Options::default())).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 1015);
}

#[test]
fn every_type_is_written_or_refused() {
    let (_dir, db) = fixed();
    let values = [
        "1::UTINYINT",
        "1::HUGEINT",
        "1::UHUGEINT",
        "1.5::FLOAT",
        "'nan'::DOUBLE",
        "'ab'::BLOB",
        "DATE '2025-01-02'",
        "TIME '01:02:03'",
        "TIMESTAMP '2025-01-02 03:04:05.678'",
        "TIMESTAMPTZ '2025-01-02 03:04:05+00'",
        "make_timestamp_ns(1)",
        "INTERVAL 3 DAY",
        "uuid()",
        "'a'::ENUM('a', 'b')",
        "MAP {'k': 1}",
        "{'a': [1]}",
        "[1, 2]::INTEGER[2]",
        "'101'::BIT",
        "union_value(n := 1)",
        "[{'u': union_value(n := 1)}]",
        "'{\"a\": 1}'::JSON",
        "NULL",
    ];
    for value in values {
        for format in Format::ALL {
            let rows = db.query(&format!("SELECT {value} AS v"));
            let result =
                rows.and_then(|r| output::write(r, format, &Options::default(), Vec::new()));
            match result {
                Ok(n) => assert_eq!(n, 1, "{value} {format:?}"),
                Err(e) => assert!(
                    e.to_string().contains("cannot be written as"),
                    "{value}: {e}"
                ),
            }
        }
    }
}

/// A reader that goes away after some bytes.
struct Closing(usize);

impl Write for Closing {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = buffer.len().min(self.0);
        self.0 -= n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_dir, db) = fixed();
    for format in Format::ALL {
        let rows = db
            .query("SELECT range, range::VARCHAR FROM range(3000000)")
            .unwrap();
        let count = output::write(rows, format, &Options::default(), Closing(100_000)).unwrap();
        assert!(count < 3_000_000, "{format:?}: {count}");
    }
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for format in Format::ALL {
        let rows = db.query("FROM by_syscall").unwrap();
        let error = output::write(rows, format, &Options::default(), Full).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot write the result"),
            "{format:?}: {error}"
        );
    }
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>(), Ok(format));
    }
    let error = "xml".parse::<Format>().unwrap_err();
    assert_eq!(
        error,
        "there is no format \"xml\"; there are table, csv, json, ndjson, arrow, parquet"
    );
}

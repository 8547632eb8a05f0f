//! The pyramid's sums equal the rows' sums.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faults;
mod hosts;
mod layers;
mod tenants;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fathom_model::StringTable;
use fathom_model::tables::{SliceRow, SliceRows};
use fathom_query::arrow::array::AsArray;
use fathom_query::arrow::datatypes::{Int32Type, Int64Type};
use fathom_query::arrow::record_batch::RecordBatch;
use fathom_query::zoom::{By, Filter, Request, Zoom};
use fathom_query::{Batches, Db, Limits};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, Call, START};

const CALLS: [&str; 6] = ["read", "write", "openat", "fsync", "close", "io_getevents"];

/// Calls whose rates, threads and files change over time; some end long after
/// they began.
fn calls(rng: &mut fastrand::Rng, count: usize, files: i64) -> Vec<Call> {
    let mut at = 0i64;
    (0..count)
        .map(|i| {
            let phase = (i / 20_000) % 3;
            at += rng.i64(0..[200, 20_000, 3_000_000][phase]);
            let syscall = CALLS[rng.usize(0..CALLS.len())];
            let dur_ns = match rng.u32(0..100) {
                0 => rng.i64(0..5_000_000_000),
                1..10 => rng.i64(0..3_000_000),
                _ => rng.i64(0..4_000),
            };
            let tid = 100 + rng.i32(0..[3, 40, 9][phase]);
            Call {
                at_ns: (at - dur_ns).max(0),
                dur_ns,
                pid: 100 + (tid - 100) / 4,
                tid,
                syscall,
                ret: Some(1),
                errno: rng.u32(0..20).eq(&0).then_some("EIO"),
                file_id: (syscall != "io_getevents").then(|| rng.i64(0..files)),
                bytes: (syscall == "read" || syscall == "write").then(|| rng.i64(0..65_536)),
                path: None,
                flags: None,
            }
        })
        .collect()
}

fn write(dir: &Path, calls: &[Call], options: WriterOptions, finish: bool) {
    let writer = SessionWriter::create(dir, sample::meta(), options).unwrap();
    for (i, chunk) in calls.chunks(700).enumerate() {
        writer
            .append(sample::syscalls(i as i64 * 700, chunk))
            .unwrap();
    }
    if finish {
        let mut meta = sample::meta();
        meta.totals.seen = calls.len() as u64;
        writer.finish(meta).unwrap();
    }
}

fn options() -> WriterOptions {
    WriterOptions {
        part_rows: 1_400,
        part_interval: Duration::from_secs(60),
        ..WriterOptions::default()
    }
}

type Sums = (i64, i64, i64, i64, i64, Vec<i64>);

/// Key and bucket to sums. `None` is the rest.
fn answer(batch: &RecordBatch, by: By) -> BTreeMap<(Option<String>, i64), Sums> {
    let number = |name: &str, row: usize| {
        let column = batch.column_by_name(name).unwrap();
        match column.as_primitive_opt::<Int64Type>() {
            Some(c) => c.value(row),
            None => i64::from(column.as_primitive::<Int32Type>().value(row)),
        }
    };
    let mut found = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let null = |name: &str| batch.column_by_name(name).unwrap().is_null(row);
        let rest = by != By::Nothing
            && batch
                .column_by_name("rest")
                .unwrap()
                .as_boolean()
                .value(row);
        let key = match by {
            By::Nothing => String::new(),
            By::Syscall | By::Class | By::Purpose => {
                let name = match by {
                    By::Class => "class",
                    By::Purpose => "purpose",
                    _ => "syscall",
                };
                let column = batch.column_by_name(name).unwrap();
                column.as_string::<i32>().value(row).to_string()
            }
            By::Thread => number("tid", row).to_string(),
            By::Process => number("pid", row).to_string(),
            By::File if null("file_id") => "NULL".to_string(),
            By::File => number("file_id", row).to_string(),
            By::Layer | By::Reason => {
                let name = if by == By::Layer { "layer" } else { "reason" };
                let column = batch.column_by_name(name).unwrap();
                column.as_string::<i32>().value(row).to_string()
            }
        };
        let lists = batch.column_by_name("latency").unwrap().as_list::<i32>();
        let latency = lists.value(row);
        let mut latency: Vec<i64> = latency.as_primitive::<Int64Type>().values().to_vec();
        latency.truncate(latency.iter().rposition(|n| *n > 0).map_or(0, |i| i + 1));
        let sums = (
            number("calls", row),
            number("errors", row),
            number("bytes", row),
            number("total_ns", row),
            number("max_ns", row),
            latency,
        );
        let key = (!rest).then_some(key);
        assert!(found.insert((key, number("ts_ns", row)), sums).is_none());
    }
    found
}

/// The same from the rows, by SQL.
fn expected(
    db: &Db,
    by: By,
    window: &std::ops::Range<i64>,
    width: i64,
    filter: &str,
) -> BTreeMap<(Option<String>, i64), Sums> {
    let key = match by {
        By::Nothing => "''",
        By::Syscall => "syscall",
        By::Class => "class",
        By::Purpose => {
            "CASE syscall WHEN 'read' THEN 'read' WHEN 'write' THEN 'write' WHEN 'fsync' THEN 'sync' \
             WHEN 'io_getevents' THEN 'other' ELSE 'metadata' END"
        }
        By::Thread => "tid::VARCHAR",
        By::Process => "pid::VARCHAR",
        By::File => "coalesce(file_id::VARCHAR, 'NULL')",
        By::Layer => "layer",
        By::Reason => unreachable!("not of calls"),
    };
    // Visits of the calls, and the calls that have none.
    let chosen = match filter {
        "true" => "true".to_string(),
        _ => format!("rid IN (SELECT rid FROM syscalls WHERE {filter})"),
    };
    let source = match by {
        By::Layer => format!(
            "(SELECT layer, ts_ns, self_ns AS dur_ns, NULL AS errno, NULL::BIGINT AS bytes FROM slices \
              WHERE {chosen} \
              UNION ALL SELECT 'syscall', ts_ns, dur_ns, errno, bytes FROM syscalls \
              ANTI JOIN slices USING (rid) WHERE {filter})"
        ),
        _ => format!("(SELECT * FROM syscalls WHERE {filter})"),
    };
    let sql = format!(
        "SELECT k, b * {width} AS t, sum(n)::BIGINT, sum(e)::BIGINT, sum(y)::BIGINT, \
         sum(d)::BIGINT, max(m), max(l), list(l ORDER BY l), list(n ORDER BY l) FROM (\
         SELECT {key} AS k, ts_ns // {width} AS b, coalesce(duration_bucket(dur_ns), 0)::BIGINT AS l, count(*) AS n, \
         count(errno) AS e, coalesce(sum(bytes), 0) AS y, sum(dur_ns) AS d, max(dur_ns) AS m \
         FROM {source} WHERE ts_ns >= {} AND ts_ns < {} GROUP BY ALL) GROUP BY ALL",
        window.start, window.end
    );
    let mut rows = db.query(&sql).unwrap();
    let mut found = BTreeMap::new();
    while let Some(batch) = rows.next_batch().unwrap() {
        let number = |i: usize, row: usize| batch.column(i).as_primitive::<Int64Type>().value(row);
        for row in 0..batch.num_rows() {
            let list = |i: usize| batch.column(i).as_list::<i32>().value(row);
            let mut latency = vec![0; number(7, row) as usize + 1];
            let (levels, counts) = (list(8), list(9));
            let counts = counts.as_primitive::<Int64Type>().values().to_vec();
            for (level, n) in levels
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .zip(counts)
            {
                latency[*level as usize] = n;
            }
            let sums = (
                number(2, row),
                number(3, row),
                number(4, row),
                number(5, row),
                number(6, row),
                latency,
            );
            let key = batch.column(0).as_string::<i32>().value(row).to_string();
            found.insert((Some(key), number(1, row)), sums);
        }
    }
    found
}

fn add(sums: &mut BTreeMap<i64, Sums>, time: i64, more: &Sums) {
    let sum = sums.entry(time).or_insert((0, 0, 0, 0, 0, Vec::new()));
    sum.0 += more.0;
    sum.1 += more.1;
    sum.2 += more.2;
    sum.3 += more.3;
    sum.4 = sum.4.max(more.4);
    sum.5.resize(sum.5.len().max(more.5.len()), 0);
    for (mine, theirs) in sum.5.iter_mut().zip(&more.5) {
        *mine += theirs;
    }
}

fn by_bucket(sums: &BTreeMap<(Option<String>, i64), Sums>) -> BTreeMap<i64, Sums> {
    let mut all = BTreeMap::new();
    for ((_, time), sum) in sums {
        add(&mut all, *time, sum);
    }
    all
}

const ALL: [By; 6] = [
    By::Nothing,
    By::Syscall,
    By::Class,
    By::Thread,
    By::Process,
    By::File,
];

fn window(rng: &mut fastrand::Rng, (first, last): (i64, i64)) -> (i64, i64) {
    let width = ((last - first) as f64 * 10f64.powf(-7.0 * rng.f64())) as i64 + 1;
    let from = rng.i64(first - 10..(last - width).max(first) + 10);
    (from, from + width)
}

/// Random windows, all dimensions. Returns how many answers came from blocks.
fn compare(zoom: &Zoom, rng: &mut fastrand::Rng, windows: usize) -> usize {
    let (first, last) = zoom.span().unwrap();
    let mut from_blocks = 0;
    for i in 0..windows {
        let (from, to) = window(rng, (first, last));
        let by = ALL[i % ALL.len()];
        let request = Request {
            from_ns: Some(from),
            to_ns: Some(to),
            pixels: rng.u32(1..300),
            by,
            top: Some(1_000_000),
            latency: true,
            max_rows: [Some(0), Some(5_000), None][rng.usize(0..3)],
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        assert!(got.window_ns.start <= from && got.window_ns.end >= to);
        let buckets = (got.window_ns.end - got.window_ns.start) / got.bucket_ns;
        assert!(
            buckets <= 2 * i64::from(request.pixels) + 2,
            "{buckets} {request:?}"
        );
        if !got.coarser && to - from >= i64::from(request.pixels) {
            assert!(
                buckets >= i64::from(request.pixels),
                "{buckets} {request:?}"
            );
        }
        from_blocks += usize::from(got.blocks > 0);
        let found = answer(&got.rows, by);
        let rows = expected(zoom.db(), by, &got.window_ns, got.bucket_ns, "true");
        assert_eq!(by_bucket(&found), by_bucket(&rows), "{request:?}");
        let at_least = got.rows.column_by_name("at_least").unwrap().as_boolean();
        if got.exact {
            assert_eq!(found, rows, "{request:?}");
        } else {
            let marked = arrow::compute::filter_record_batch(&got.rows, at_least).unwrap();
            let marked = answer(&marked, by);
            for (key, sum) in found.iter().filter(|(key, _)| key.0.is_some()) {
                match marked.contains_key(key) {
                    true => assert!(
                        sum.0 <= rows[key].0 && sum.3 <= rows[key].3,
                        "{key:?} {request:?}"
                    ),
                    false => assert_eq!(*sum, rows[key], "{key:?} {request:?}"),
                }
            }
        }
    }
    from_blocks
}

fn open(dir: &Path) -> Zoom {
    Zoom::open(&Session::open(dir).unwrap(), Limits::default()).unwrap()
}

#[test]
fn a_pyramid_says_what_the_rows_say() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    for (name, files) in [("few", 30), ("many", 4_000)] {
        let dir = dir.path().join(name);
        let calls = calls(&mut rng, 300_000, files);
        write(&dir, &calls, options(), true);
        let zoom = open(&dir);
        assert_eq!((zoom.uncovered_rows(), zoom.problem()), (0, None));
        let from_blocks = compare(&zoom, &mut rng, 90);
        assert!(from_blocks > 20, "{from_blocks}");
        // The whole session takes few blocks.
        let all = zoom
            .query(&Request {
                pixels: 64,
                max_rows: Some(0),
                ..Request::default()
            })
            .unwrap();
        assert!(
            (1..=8).contains(&all.blocks) && all.parts == 0,
            "{} blocks",
            all.blocks
        );
    }
}

#[test]
fn filters_leave_out_what_they_should() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(2);
    write(&dir, &calls(&mut rng, 100_000, 40), options(), true);
    let zoom = open(&dir);
    let filters = [
        (
            Filter {
                class: Some(vec!["data".into()]),
                ..Filter::default()
            },
            "class = 'data'",
        ),
        (
            Filter {
                syscall: Some(vec!["fsync".into()]),
                ..Filter::default()
            },
            "syscall = 'fsync'",
        ),
        (
            Filter {
                pid: Some(vec![101]),
                ..Filter::default()
            },
            "pid = 101",
        ),
        (
            Filter {
                tid: Some(vec![103, 104]),
                ..Filter::default()
            },
            "tid IN (103, 104)",
        ),
        (
            Filter {
                file_id: Some(vec![7]),
                ..Filter::default()
            },
            "file_id = 7",
        ),
        (
            Filter {
                file_id: Some(vec![7]),
                syscall: Some(vec!["write".into()]),
                ..Filter::default()
            },
            "file_id = 7 AND syscall = 'write'",
        ),
        (
            Filter {
                condition: Some("dur_ns > 1000 OR errno IS NOT NULL".into()),
                ..Filter::default()
            },
            "(dur_ns > 1000 OR errno IS NOT NULL)",
        ),
        (
            Filter {
                tid: Some(Vec::new()),
                ..Filter::default()
            },
            "false",
        ),
    ];
    for (i, (filter, sql)) in filters.iter().enumerate() {
        for by in ALL {
            let request = Request {
                pixels: 20,
                by,
                max_rows: Some(0),
                filter: filter.clone(),
                top: Some(1_000_000),
                latency: true,
                ..Request::default()
            };
            let got = zoom.query(&request).unwrap();
            let rows = expected(zoom.db(), by, &got.window_ns, got.bucket_ns, sql);
            assert_eq!(answer(&got.rows, by), rows, "{i} {by:?}");
        }
    }
}

/// A busy file has all of its calls in its own cells, separate from the rest of many files, so a
/// filter for it needs no rows; a filter for a file that may be in a rest does.
#[test]
fn a_busy_key_among_many_needs_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(9);
    let mut all = calls(&mut rng, 120_000, 90);
    for (i, call) in all.iter_mut().enumerate() {
        if i % 2 == 0 {
            call.file_id = Some(7);
            call.dur_ns = 50_000_000;
        }
    }
    write(&dir, &all, options(), true);
    let zoom = open(&dir);
    let mut by_pyramid = 0;
    for files in [vec![7], vec![11], vec![7, 11], vec![99_999]] {
        let list = format!("{files:?}");
        for (by, pixels) in [(By::Nothing, 4), (By::Nothing, 16), (By::File, 8)] {
            let request = Request {
                pixels,
                by,
                max_rows: Some(0),
                filter: Filter {
                    file_id: Some(files.clone()),
                    ..Filter::default()
                },
                latency: true,
                ..Request::default()
            };
            let got = zoom.query(&request).unwrap();
            let sql = format!("file_id IN ({})", list.trim_matches(['[', ']']));
            let rows = expected(zoom.db(), by, &got.window_ns, got.bucket_ns, &sql);
            assert_eq!(answer(&got.rows, by), rows, "{list} {by:?}");
            assert!(got.exact);
            if got.parts == 0 {
                assert_eq!(files, [7]);
                by_pyramid += 1;
            }
        }
    }
    assert!(by_pyramid >= 2, "{by_pyramid} answers without rows");
}

#[test]
fn without_a_whole_pyramid_the_rows_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    let calls = calls(&mut rng, 120_000, 50);
    let session = |name: &str, finish, pyramid| {
        let dir = dir.path().join(name);
        let options = WriterOptions {
            pyramid,
            ..options()
        };
        write(&dir, &calls, options, finish);
        dir
    };
    // A recorder that did not close its session.
    let killed = session("killed", false, true);
    compare(&open(&killed), &mut rng, 24);
    // None at all, as fathom 0.1.0 left it; then made from the parts, whether
    // merged or not.
    for (name, finish) in [("old", true), ("old-parts", false)] {
        let old = session(name, finish, false);
        assert_eq!(open(&old).uncovered_rows(), 120_000);
        compare(&open(&old), &mut rng, 12);
        Session::open(&old).unwrap().build_pyramids().unwrap();
        let zoom = open(&old);
        assert_eq!(zoom.uncovered_rows(), 0);
        assert!(compare(&zoom, &mut rng, 30) > 5);
    }
    // Cut, and damaged.
    let cut = session("cut", true, true);
    let file = cut.join("syscalls.pyramid");
    let bytes = fs::read(&file).unwrap();
    for length in [
        0,
        7,
        16,
        50,
        bytes.len() / 3,
        bytes.len() / 2,
        bytes.len() - 1,
    ] {
        fs::write(&file, &bytes[..length]).unwrap();
        compare(&open(&cut), &mut rng, 6);
    }
    for _ in 0..60 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(0..damaged.len());
            damaged[at] ^= 1 << rng.u32(0..8);
        }
        fs::write(&file, &damaged).unwrap();
        compare(&open(&cut), &mut rng, 3);
    }
    // A part that is missing: what is left counts.
    fs::write(&file, &bytes).unwrap();
    let missing = session("missing", false, true);
    let parts = Session::open(&missing).unwrap().parts("syscalls");
    fs::remove_file(&parts[parts.len() / 2]).unwrap();
    compare(&open(&missing), &mut rng, 24);
}

#[test]
fn single_calls_have_their_nanoseconds() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(4);
    write(&dir, &calls(&mut rng, 20_000, 5), options(), true);
    let zoom = open(&dir);
    let from = START + 1_000_000;
    let mut rows = zoom
        .events(from..from + 100_000, &Filter::default(), 10)
        .unwrap();
    let batch = Batches::next_batch(&mut rows).unwrap().unwrap();
    let times = batch.column_by_name("ts_ns").unwrap();
    let times = times.as_primitive::<Int64Type>().values();
    assert_eq!(times.len(), 10);
    assert!(times.is_sorted() && times[0] >= from && times[9] < from + 100_000);
}

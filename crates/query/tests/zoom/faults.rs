//! Page faults on mapped files, which are no calls, against the rows.

use fathom_model::batch::NULL_I64;
use fathom_model::tables::{FaultRow, FaultRows};
use fathom_query::zoom::PAGE_FAULT;

use super::*;

/// Page faults over `span` nanoseconds; a few wait for the device for longer than a bucket.
fn faults(rng: &mut fastrand::Rng, count: i64, span: i64) -> fathom_model::Batch {
    let (mut rows, mut strings) = (FaultRows::default(), StringTable::new());
    for i in 0..count {
        let dur_ns = match rng.u32(0..20) {
            0 => rng.i64(0..span / 4),
            1 => NULL_I64,
            _ => rng.i64(0..9_000),
        };
        let tid = 100 + rng.i32(0..9);
        rows.push(FaultRow {
            rid: 10_000_000 + i,
            ts_ns: START + span * i / count,
            dur_ns,
            pid: 100 + (tid - 100) / 4,
            tid,
            comm: strings.intern(b"reader"),
            kind: strings.intern(b"major"),
            mapping: strings.intern(b"shared"),
            file_id: rng.i64(0..30),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

fn sums(db: &fathom_query::Db, sql: &str) -> Vec<i64> {
    let mut rows = db.run(sql).unwrap();
    let batch = rows.next_batch().unwrap().unwrap();
    let value = |i: usize| batch.column(i).as_primitive::<Int64Type>().value(0);
    (0..batch.num_columns()).map(value).collect()
}

fn column(batch: &RecordBatch, name: &str) -> Vec<i64> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn time_in_page_faults_counts_where_it_passed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(12);
    let calls = calls(&mut rng, 20_000, 30);
    let span = calls.iter().map(|call| call.at_ns).max().unwrap();
    let writer = SessionWriter::create(&dir, sample::meta(), options()).unwrap();
    for (i, chunk) in calls.chunks(700).enumerate() {
        writer
            .append(sample::syscalls(i as i64 * 700, chunk))
            .unwrap();
    }
    writer.append(faults(&mut rng, 5_000, span)).unwrap();
    let mut meta = sample::meta();
    meta.totals.seen = calls.len() as u64;
    writer.finish(meta).unwrap();
    let zoom = open(&dir);
    for i in 0..60 {
        let (from, to) = window(&mut rng, zoom.span().unwrap());
        let by = [
            By::Nothing,
            By::Syscall,
            By::Class,
            By::Purpose,
            By::Thread,
            By::Process,
            By::File,
        ][i % 7];
        let request = Request {
            from_ns: Some(from),
            to_ns: Some(to),
            pixels: rng.u32(1..40),
            by,
            top: Some(1_000_000),
            busy: true,
            faults: true,
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        let (from, to) = (got.window_ns.start, got.window_ns.end);
        let all = |name| column(&got.rows, name).iter().sum::<i64>();
        let expected = sums(
            zoom.db(),
            &format!(
                "SELECT count(*), coalesce(sum(dur_ns), 0)::BIGINT FROM faults \
                 WHERE ts_ns >= {from} AND ts_ns < {to}"
            ),
        );
        assert_eq!(
            [all("faults"), all("fault_ns")],
            expected[..],
            "{request:?}"
        );
        // Within each bucket, whenever calls and page faults began.
        let mut of_buckets: BTreeMap<i64, i64> = BTreeMap::new();
        let times = column(&got.rows, "ts_ns");
        for (t, ns) in times.iter().zip(column(&got.rows, "busy_ns")) {
            *of_buckets.entry(*t).or_default() += ns;
        }
        for bucket in (from..to).step_by(got.bucket_ns as usize) {
            let end = bucket + got.bucket_ns;
            let passed = sums(
                zoom.db(),
                &format!(
                    "SELECT coalesce(sum(least(ts_ns + dur_ns, {end}) - greatest(ts_ns, {bucket})), 0)::BIGINT \
                     FROM (SELECT ts_ns, dur_ns FROM syscalls UNION ALL SELECT ts_ns, dur_ns FROM faults) \
                     WHERE ts_ns < {end} AND ts_ns + dur_ns > {bucket}"
                ),
            );
            let found = of_buckets.get(&bucket).copied().unwrap_or(0);
            assert_eq!(found, passed[0], "{bucket} {request:?}");
        }
        if matches!(by, By::Syscall | By::Class | By::Purpose) {
            let names = got.rows.column(1).as_string::<i32>();
            let counts = column(&got.rows, "calls").into_iter();
            for ((name, calls), faults) in names.iter().zip(counts).zip(column(&got.rows, "faults"))
            {
                assert_eq!(
                    name == Some(PAGE_FAULT),
                    faults > 0 || calls == 0 && name == Some(PAGE_FAULT)
                );
                assert!(name != Some(PAGE_FAULT) || calls == 0);
            }
        }
        let without = zoom
            .query(&Request {
                faults: false,
                ..request
            })
            .unwrap();
        let has = without.rows.column_by_name("faults").is_some();
        assert_eq!(has, by == By::File);
    }
}

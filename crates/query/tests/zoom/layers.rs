//! Sums of layers, and of time, against the rows.

use super::*;

/// Visits of the layers of some of `calls`, which are numbered from 0, and of page faults.
fn visits(rng: &mut fastrand::Rng, calls: &[Call]) -> Vec<fathom_model::Batch> {
    let mut batches = Vec::new();
    for (number, chunk) in calls.chunks(900).enumerate() {
        let (mut rows, mut strings) = (SliceRows::default(), StringTable::new());
        for (i, call) in chunk.iter().enumerate() {
            let mut add = |rid: i64, layer: &str, at: (i64, i64), own: i64, depth: i32| {
                rows.push(SliceRow {
                    rid,
                    layer: strings.intern(layer.as_bytes()),
                    name: strings.intern(b"x"),
                    ts_ns: START + at.0,
                    dur_ns: at.1,
                    self_ns: own,
                    depth,
                });
            };
            let rid = (number * 900 + i) as i64;
            let (at, dur) = (call.at_ns, call.dur_ns);
            match rng.u32(0..4) {
                0 => {
                    let inner = rng.i64(0..=dur);
                    let layer = ["device", "sched", "irq"][rng.usize(0..3)];
                    add(rid, "syscall", (at, dur), dur - inner, 0);
                    add(rid, layer, (at + (dur - inner) / 2, inner), inner, 1);
                }
                1 => add(10_000_000 + rid, "pagecache", (at + 5, 700), 700, 0),
                _ => {}
            }
        }
        batches.push(rows.into_batch(strings));
    }
    batches
}

/// A session with calls and visits.
pub(super) fn session(dir: &Path, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let calls = calls(&mut rng, 60_000, 50);
    let writer = SessionWriter::create(dir, sample::meta(), options()).unwrap();
    let of_layers = visits(&mut rng, &calls);
    for ((i, chunk), visits) in calls.chunks(900).enumerate().zip(of_layers) {
        writer
            .append(sample::syscalls(i as i64 * 900, chunk))
            .unwrap();
        writer.append(visits).unwrap();
    }
    writer.finish(sample::meta()).unwrap();
}

#[test]
fn layers_say_what_the_rows_say() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(6);
    let calls = calls(&mut rng, 150_000, 50);
    for (name, finish, pyramid) in [
        ("s", true, true),
        ("live", false, true),
        ("no", true, false),
    ] {
        let dir = dir.path().join(name);
        let options = WriterOptions {
            pyramid,
            ..options()
        };
        let writer = SessionWriter::create(&dir, sample::meta(), options).unwrap();
        let mut of_layers = visits(&mut rng, &calls).into_iter();
        for (i, chunk) in calls.chunks(900).enumerate() {
            writer
                .append(sample::syscalls(i as i64 * 900, chunk))
                .unwrap();
            writer.append(of_layers.next().unwrap()).unwrap();
        }
        match finish {
            true => drop(writer.finish(sample::meta()).unwrap()),
            false => drop(writer),
        }
        let zoom = open(&dir);
        assert_eq!(zoom.problem(), None);
        let (first, last) = zoom.span().unwrap();
        let (mut from_blocks, mut bounds) = (0, 0);
        for i in 0..40 {
            let (from, to) = window(&mut rng, (first, last));
            let (filter, condition) = match i % 4 {
                0 => (
                    Filter {
                        syscall: Some(vec!["read".into()]),
                        pid: Some(vec![101, 102]),
                        ..Filter::default()
                    },
                    "(syscall = 'read' AND pid IN (101, 102))",
                ),
                _ => (Filter::default(), "true"),
            };
            let request = Request {
                from_ns: Some(from),
                to_ns: Some(to),
                pixels: rng.u32(1..300),
                by: By::Layer,
                filter,
                latency: true,
                max_rows: [Some(0), Some(5_000), None][rng.usize(0..3)],
                ..Request::default()
            };
            let got = zoom.query(&request).unwrap();
            assert!(got.exact && got.window_ns.start <= from && got.window_ns.end >= to);
            from_blocks += usize::from(got.blocks > 0 && got.parts == 0);
            let rows = expected(
                zoom.db(),
                By::Layer,
                &got.window_ns,
                got.bucket_ns,
                condition,
            );
            let found = answer(&got.rows, By::Layer);
            assert_eq!(
                found.keys().collect::<Vec<_>>(),
                rows.keys().collect::<Vec<_>>()
            );
            let at_least = got.rows.column_by_name("at_least").unwrap().as_boolean();
            let bounded = arrow::compute::filter_record_batch(&got.rows, at_least).unwrap();
            let bounded = answer(&bounded, By::Layer);
            bounds += bounded.len();
            // Errors and bytes stand with the calls, whether they have visits or not.
            let calls = expected(
                zoom.db(),
                By::Nothing,
                &got.window_ns,
                got.bucket_ns,
                condition,
            );
            for (key, sums) in &found {
                let (rows, calls) = (&rows[key], calls.get(&(Some(String::new()), key.1)));
                assert_eq!(
                    (sums.0, sums.3, &sums.5),
                    (rows.0, rows.3, &rows.5),
                    "{key:?} {request:?}"
                );
                if bounded.contains_key(key) {
                    assert!(key.0.as_deref() == Some("syscall") && sums.4 <= rows.4);
                } else {
                    assert_eq!(sums.4, rows.4, "{key:?} {request:?}");
                }
                match (key.0.as_deref(), calls) {
                    (Some("syscall"), Some(calls)) => {
                        assert_eq!((sums.1, sums.2), (calls.1, calls.2));
                    }
                    _ => assert_eq!((sums.1, sums.2), (0, 0)),
                }
            }
        }
        assert!(bounds > 0, "the longest was known everywhere");
        match (pyramid, finish) {
            (true, true) => assert!(from_blocks > 5, "{from_blocks} from blocks"),
            (true, false) => {}
            (false, _) => assert_eq!(from_blocks, 0),
        }
    }
    // Rebuilt, and damaged.
    let made = dir.path().join("no");
    Session::open(&made).unwrap().build_pyramids().unwrap();
    let by_layer = Request {
        by: By::Layer,
        pixels: 50,
        latency: true,
        max_rows: Some(0),
        ..Request::default()
    };
    let whole = open(&made).query(&by_layer).unwrap();
    assert!(whole.parts == 0 && whole.blocks > 0);
    let file = made.join("slices.pyramid");
    let bytes = fs::read(&file).unwrap();
    for _ in 0..30 {
        let mut damaged = bytes.clone();
        let at = rng.usize(0..damaged.len());
        damaged[at] ^= 1 << rng.u32(0..8);
        fs::write(&file, &damaged).unwrap();
        let got = open(&made).query(&by_layer).unwrap();
        let rows = expected(
            open(&made).db(),
            By::Layer,
            &got.window_ns,
            got.bucket_ns,
            "true",
        );
        let times = |sums: &BTreeMap<(Option<String>, i64), Sums>| -> Vec<_> {
            sums.iter()
                .map(|(key, s)| (key.clone(), s.0, s.3))
                .collect()
        };
        assert_eq!(times(&answer(&got.rows, By::Layer)), times(&rows));
    }
}

/// Time of calls in each bucket by key, from the calls themselves: calls longer than `least_ns`
/// wherever they were in progress, the others where they began.
fn in_progress(
    calls: &[Call],
    key: impl Fn(&Call) -> String,
    window: &std::ops::Range<i64>,
    width: i64,
    least_ns: i64,
) -> BTreeMap<(String, i64), i64> {
    let mut found: BTreeMap<(String, i64), i64> = BTreeMap::new();
    for call in calls {
        let begin = START + call.at_ns;
        let mut add = |at: i64, ns: i64| {
            let bucket = at - at.rem_euclid(width);
            if ns > 0 && window.contains(&at) {
                *found.entry((key(call), bucket)).or_default() += ns;
            }
        };
        if call.dur_ns <= least_ns {
            add(begin, call.dur_ns);
            continue;
        }
        let mut at = begin.max(window.start);
        while at < (begin + call.dur_ns).min(window.end) {
            let next = (at - at.rem_euclid(width) + width).min(begin + call.dur_ns);
            add(at, next - at);
            at = next;
        }
    }
    found
}

#[test]
fn time_in_calls_is_where_they_were_in_progress() {
    let mut rng = fastrand::Rng::with_seed(31);
    let dir = tempfile::tempdir().unwrap();
    let calls = calls(&mut rng, 30_000, 40);
    let session = dir.path().join("s");
    write(&session, &calls, options(), true);
    let zoom = open(&session);
    let span = zoom.span().unwrap();
    let (mut from_blocks, mut lasting) = (0, 0);
    for round in 0..60 {
        let (from, to) = match round {
            0..3 => (span.0, span.1 + 1),
            _ => window(&mut rng, span),
        };
        let by = [By::Nothing, By::Syscall, By::Purpose, By::Thread, By::File][round % 5];
        let request = Request {
            from_ns: Some(from),
            to_ns: Some(to),
            pixels: rng.u32(1..400),
            by,
            latency: true,
            busy: true,
            top: Some(1000),
            // All rows may be read in every other round.
            max_rows: [None, Some(0)][round / 5 % 2],
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        from_blocks += usize::from(got.blocks > 0);
        if !got.exact {
            continue;
        }
        let key = |call: &Call| match by {
            By::Nothing => String::new(),
            By::Syscall => call.syscall.to_string(),
            By::Purpose => match call.syscall {
                "read" | "write" => call.syscall.to_string(),
                "fsync" => "sync".to_string(),
                "io_getevents" => "other".to_string(),
                _ => "metadata".to_string(),
            },
            By::Thread => call.tid.to_string(),
            _ => call.file_id.map_or("NULL".to_string(), |id| id.to_string()),
        };
        let least_ns = match request.max_rows {
            None => 0,
            Some(_) => got.bucket_ns / 4,
        };
        let expected = in_progress(&calls, key, &got.window_ns, got.bucket_ns, least_ns);
        let busy = got.rows.column_by_name("busy_ns").unwrap();
        let busy = busy.as_primitive::<Int64Type>().values();
        // The other sums are as they are without it; rows of calls in progress have none.
        let sums = answer(&got.rows, by);
        let keys: Vec<(String, i64)> = keys_of(&got.rows, by);
        let found: BTreeMap<(String, i64), i64> = keys
            .into_iter()
            .zip(busy.iter().copied())
            .filter(|e| e.1 > 0)
            .collect();
        assert_eq!(found, expected, "{request:?}");
        lasting += sums.values().filter(|s| s.0 == 0).count();
        let plain = zoom
            .query(&Request {
                busy: false,
                ..request
            })
            .unwrap();
        let with_calls: BTreeMap<_, _> = sums.into_iter().filter(|(_, s)| s.0 > 0).collect();
        assert_eq!(with_calls, answer(&plain.rows, by));
    }
    assert!(from_blocks > 0 && lasting > 0, "{from_blocks} {lasting}");
}

/// Keys and buckets of the rows of an answer, in their order.
fn keys_of(rows: &RecordBatch, by: By) -> Vec<(String, i64)> {
    (0..rows.num_rows())
        .map(|row| {
            let one = answer(&rows.slice(row, 1), by);
            let (key, _) = one.into_iter().next().unwrap();
            (key.0.unwrap_or_default(), key.1)
        })
        .collect()
}

#[test]
fn time_of_layers_is_where_their_visits_were() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s");
    let call = |at_ns: i64, dur_ns: i64| Call {
        at_ns,
        dur_ns,
        pid: 1,
        tid: 1,
        syscall: "fsync",
        ret: Some(0),
        errno: None,
        file_id: Some(1),
        bytes: None,
        path: None,
        flags: None,
    };
    // A call of 8 s, of which the device had 6 s in the middle, and one without visits.
    let second = 1 << 30;
    let calls = [call(second, 8 * second), call(12 * second, 2 * second)];
    let writer = SessionWriter::create(&session, sample::meta(), options()).unwrap();
    let rid = 1_000_000;
    writer.append(sample::syscalls(rid, &calls)).unwrap();
    let (mut rows, mut strings) = (SliceRows::default(), StringTable::new());
    // The call's own time is no whole share of any bucket: a short visit took 3 ns of it.
    let own = 2 * second - 3;
    let visits = [("syscall", 1, 8, own, 0), ("device", 2, 6, 6 * second, 1)];
    for (layer, begin, dur_ns, self_ns, depth) in visits {
        rows.push(SliceRow {
            rid,
            layer: strings.intern(layer.as_bytes()),
            name: strings.intern(b"x"),
            ts_ns: START + begin * second,
            dur_ns: dur_ns * second,
            self_ns,
            depth,
        });
    }
    writer.append(rows.into_batch(strings)).unwrap();
    writer.finish(sample::meta()).unwrap();
    let zoom = open(&session);
    let got = zoom
        .query(&Request {
            from_ns: Some(START),
            to_ns: Some(START + 16 * second),
            pixels: 16,
            by: By::Layer,
            latency: true,
            busy: true,
            ..Request::default()
        })
        .unwrap();
    assert_eq!(got.bucket_ns, second);
    let busy = got.rows.column_by_name("busy_ns").unwrap();
    let busy = busy.as_primitive::<Int64Type>().values();
    let mut sums: BTreeMap<(String, i64), i64> = BTreeMap::new();
    for ((layer, t), ns) in keys_of(&got.rows, By::Layer).into_iter().zip(busy.iter()) {
        if *ns > 0 {
            sums.insert((layer, t), *ns);
        }
    }
    let of = |layer: &str| -> i64 { sums.iter().filter(|s| s.0.0 == layer).map(|s| s.1).sum() };
    assert_eq!(
        (of("syscall"), of("device")),
        (own + 2 * second, 6 * second),
        "{sums:?}"
    );
    // No bucket has more than its width of one thread.
    let mut by_time: BTreeMap<i64, i64> = BTreeMap::new();
    for ((_, t), ns) in &sums {
        *by_time.entry(*t).or_default() += ns;
    }
    assert!(by_time.values().all(|ns| *ns <= second), "{by_time:?}");
    // START need not be at the beginning of a bucket.
    assert!((10..=12).contains(&by_time.len()), "{by_time:?}");
}

/// One call after the other, none of which is a quarter of a bucket: at most one is in progress.
#[test]
fn a_thread_has_at_most_one_call_in_progress() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s");
    let mut rng = fastrand::Rng::with_seed(5);
    let writer = SessionWriter::create(&session, sample::meta(), options()).unwrap();
    let (mut rows, mut strings) = (SliceRows::default(), StringTable::new());
    let (mut calls, mut at_ns) = (Vec::new(), 0);
    for i in 0..4000 {
        let dur_ns = rng.i64(100_000..2_000_000);
        calls.push(Call {
            at_ns,
            dur_ns,
            pid: 1,
            tid: 1,
            syscall: "fsync",
            ret: Some(0),
            errno: None,
            file_id: Some(1),
            bytes: None,
            path: None,
            flags: None,
        });
        // Half of it is the device's, from a quarter on.
        let (half, quarter) = (dur_ns / 2, dur_ns / 4);
        for (layer, begin, dur_ns, self_ns, depth) in [
            ("syscall", at_ns, dur_ns, dur_ns - half, 0),
            ("device", at_ns + quarter, half, half, 1),
        ] {
            rows.push(SliceRow {
                rid: i,
                layer: strings.intern(layer.as_bytes()),
                name: strings.intern(b"x"),
                ts_ns: START + begin,
                dur_ns,
                self_ns,
                depth,
            });
        }
        at_ns += dur_ns;
    }
    writer.append(sample::syscalls(0, &calls)).unwrap();
    writer.append(rows.into_batch(strings)).unwrap();
    writer.finish(sample::meta()).unwrap();
    let zoom = open(&session);
    let busy = |by, max_rows| {
        let request = Request {
            from_ns: Some(START),
            to_ns: Some(START + at_ns),
            pixels: 300,
            by,
            latency: true,
            busy: true,
            max_rows,
            ..Request::default()
        };
        let got = zoom.query(&request).unwrap();
        assert!(
            got.bucket_ns > 8_000_000,
            "no call is a quarter of a bucket"
        );
        let busy = got.rows.column_by_name("busy_ns").unwrap();
        let busy = busy.as_primitive::<Int64Type>().values().to_vec();
        let mut by_time: BTreeMap<i64, i64> = BTreeMap::new();
        for ((_, at), ns) in keys_of(&got.rows, by).into_iter().zip(busy) {
            *by_time.entry(at).or_default() += ns;
        }
        assert_eq!(by_time.values().sum::<i64>(), at_ns, "{by:?}");
        (got.bucket_ns, by_time)
    };
    for by in [By::Thread, By::Layer, By::Nothing] {
        let (width, by_time) = busy(by, None);
        let inner = by_time.len() - 1;
        // All buckets but those at the ends are in calls from end to end.
        for ns in by_time.values().skip(1).take(inner - 1) {
            assert_eq!(*ns, width, "{by:?}");
        }
        // Without the rows, a bucket has up to a quarter too much.
        let (width, by_time) = busy(by, Some(0));
        let most = *by_time.values().max().unwrap();
        assert!(most <= width * 5 / 4, "{by:?}: {most} of {width}");
    }
}

//! Sums of a set: the pyramids of all hosts, on the clock of the first one, say what the rows of the set say.

use fathom_model::set::{ClockMap, Member, MemberClock, SET_VERSION, SetMeta};
use fathom_query::zoom::{Answer, HostZoom, Tenant, Tenants, events_of_hosts, query_hosts};
use fathom_session::SessionSet;

use super::*;

/// A fifth of a second later.
fn shifted((first, _): (i64, i64)) -> ClockMap {
    ClockMap::line(first, first + 200_000_123, 0.0)
}

/// The same, with another rate from the middle on.
fn bent((first, last): (i64, i64)) -> ClockMap {
    let line = ClockMap::line(first, first + 200_000_000, 4e-5);
    let middle = first + (last - first) / 2;
    let mut segments = line.segments.clone();
    segments.push(fathom_model::set::Segment {
        from_ns: middle,
        to_ns: line.apply(middle),
        rate: -7e-5,
    });
    ClockMap { segments }
}

struct Hosts {
    _root: tempfile::TempDir,
    maps: Vec<ClockMap>,
    zooms: Vec<Zoom>,
    /// Rows of all.
    db: Db,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Hosts {
    fn new(count: usize, clock: fn((i64, i64)) -> ClockMap) -> Self {
        Self::written(clock, |dir, n| {
            let calls = calls(&mut fastrand::Rng::with_seed(5 + n), count, 30);
            write(dir, &calls, options(), true);
        })
    }

    /// Sessions that a function writes.
    fn written(clock: fn((i64, i64)) -> ClockMap, write: impl Fn(&Path, u64)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let (mut maps, mut zooms, mut sessions, mut members) = (vec![], vec![], vec![], vec![]);
        for (n, name) in (0..).zip(NAMES) {
            let dir = root.path().join(name);
            write(&dir, n);
            let session = Session::open(&dir).unwrap();
            let zoom = open(&dir);
            let map = match name {
                "a" => ClockMap::default(),
                _ => clock(zoom.span().unwrap()),
            };
            members.push(Member {
                host: name.to_owned(),
                path: dir,
                session: session.meta().id.clone(),
                clock: MemberClock {
                    map: map.clone(),
                    ..MemberClock::reference()
                },
            });
            sessions.push(session);
            maps.push(map);
            zooms.push(zoom);
        }
        let meta = SetMeta {
            set_version: SET_VERSION,
            fathom_version: String::new(),
            members,
        };
        let db = Db::open_set(&SessionSet::new(meta, sessions), Limits::default()).unwrap();
        Self {
            _root: root,
            maps,
            zooms,
            db,
        }
    }

    fn query(&self, filter: &Filter, request: &Request, per_host: bool) -> Answer {
        query_hosts(&self.opened(filter), request, per_host).unwrap()
    }

    fn opened(&self, filter: &Filter) -> Vec<HostZoom<'_>> {
        let hosts = NAMES.iter().zip(&self.maps).zip(&self.zooms);
        hosts
            .map(|((host, clock), zoom)| HostZoom {
                host,
                clock,
                zoom: zoom.try_clone().unwrap(),
                filter: filter.clone(),
            })
            .collect()
    }
}

fn request(by: By, pixels: u32, window: (Option<i64>, Option<i64>)) -> Request {
    Request {
        from_ns: window.0,
        to_ns: window.1,
        pixels,
        by,
        top: Some(1_000_000),
        latency: true,
        ..Request::default()
    }
}

/// Sums without durations: SQL shows these on the clock of the set, whose rate differs, and sums are of
/// durations as each host measured them.
fn counts(
    sums: &BTreeMap<(Option<String>, i64), Sums>,
) -> BTreeMap<(Option<String>, i64), [i64; 3]> {
    let of = |sums: &Sums| [sums.0, sums.1, sums.2];
    sums.iter()
        .map(|(key, sums)| (key.clone(), of(sums)))
        .collect()
}

#[test]
fn sums_of_all_hosts_are_those_of_their_rows() {
    let reads = Filter {
        syscall: Some(vec!["read".into(), "fsync".into()]),
        ..Filter::default()
    };
    let filters = [
        (Filter::default(), "true"),
        (reads, "syscall IN ('read', 'fsync')"),
    ];
    let mut from_blocks = 0;
    for (clock, same_rate) in [(shifted as fn(_) -> _, true), (bent, false)] {
        let hosts = Hosts::new(30_000, clock);
        let (first, last) = hosts.zooms[0].span().unwrap();
        let part = |n: i64| Some(first + (last - first) * n / 10);
        let short = Some(first + 5_000_000 + (last - first) * 3 / 10);
        for window in [(None, None), (part(2), part(7)), (part(3), short)] {
            for (pixels, by) in [(1, By::Nothing), (16, By::Syscall), (300, By::Class)] {
                for (filter, sql) in &filters {
                    let asked = Request {
                        max_rows: Some(0),
                        ..request(by, pixels, window)
                    };
                    let got = hosts.query(filter, &asked, false);
                    let rows = expected(&hosts.db, by, &got.window_ns, got.bucket_ns, sql);
                    let found = answer(&got.rows, by);
                    assert!(!rows.is_empty());
                    assert_eq!(
                        counts(&found),
                        counts(&rows),
                        "{by:?} {pixels} {window:?} {sql}"
                    );
                    assert!(
                        !same_rate || found == rows,
                        "{by:?} {pixels} {window:?} {sql}"
                    );
                    from_blocks += usize::from(got.blocks > 0);
                }
            }
        }
    }
    assert!(from_blocks > 15, "{from_blocks}");
}

/// Sums by host and key.
fn of_hosts(answer: &Answer, key: &str) -> BTreeMap<(String, String), (i64, i64)> {
    let column = |name: &str| answer.rows.column_by_name(name).unwrap().clone();
    let numbers = |name: &str| column(name).as_primitive::<Int64Type>().values().to_vec();
    let keys = column(key);
    let keys = match keys.as_primitive_opt::<Int32Type>() {
        Some(keys) => keys.values().iter().map(i32::to_string).collect::<Vec<_>>(),
        None => keys
            .as_string::<i32>()
            .iter()
            .map(|key| key.unwrap().to_owned())
            .collect(),
    };
    let mut found: BTreeMap<_, (i64, i64)> = BTreeMap::new();
    let (host, calls, time) = (column("host"), numbers("calls"), numbers("total_ns"));
    for (i, host) in host.as_string::<i32>().iter().enumerate() {
        let sum = found
            .entry((host.unwrap().to_owned(), keys[i].clone()))
            .or_default();
        *sum = (sum.0 + calls[i], sum.1 + time[i]);
    }
    found
}

#[test]
fn keys_of_hosts_stay_apart() {
    let hosts = Hosts::new(20_000, shifted);
    for (by, key, per_host) in [
        (By::Thread, "tid", false),
        (By::Process, "pid", false),
        (By::Syscall, "syscall", true),
    ] {
        let got = hosts.query(&Filter::default(), &request(by, 16, (None, None)), per_host);
        assert!(got.blocks > 0 && got.exact);
        assert_eq!(got.rows.schema().field(0).name(), "host");
        let sql = format!(
            "SELECT host, {key}::VARCHAR AS k, count(*) AS n, sum(dur_ns)::BIGINT AS t FROM syscalls GROUP BY ALL"
        );
        let rows = fathom_query::fetch::rows(&hosts.db, &sql, |row| {
            Ok((
                (row.text("host")?, row.text("k")?),
                (row.int("n")?, row.int("t")?),
            ))
        });
        assert_eq!(of_hosts(&got, key), BTreeMap::from_iter(rows.unwrap()));
    }
    // The keys with the most time of all hosts, and one rest.
    let few = Request {
        top: Some(2),
        ..request(By::Thread, 1, (None, None))
    };
    let got = hosts.query(&Filter::default(), &few, false);
    let rest = got
        .rows
        .column_by_name("rest")
        .unwrap()
        .as_boolean()
        .clone();
    assert_eq!(
        (rest.true_count() > 0, got.rows.column(0).null_count()),
        (true, rest.true_count())
    );
}

#[test]
fn rows_answer_on_the_clock_of_the_set() {
    let hosts = Hosts::new(20_000, shifted);
    let filter = Filter {
        condition: Some("dur_ns > 2000".into()),
        ..Filter::default()
    };
    let got = hosts.query(&filter, &request(By::Nothing, 50, (None, None)), false);
    let rows = expected(
        &hosts.db,
        By::Nothing,
        &got.window_ns,
        got.bucket_ns,
        "dur_ns > 2000",
    );
    assert_eq!((got.blocks, answer(&got.rows, By::Nothing)), (0, rows));

    let mut tenants = Tenants::default();
    tenants.add(Tenant::Unit, &["x".into()], false);
    let none = tenants
        .narrow(hosts.zooms[0].db(), Filter::default())
        .unwrap();
    let got = hosts.query(&none, &request(By::Nothing, 50, (None, None)), false);
    assert_eq!(got.rows.num_rows(), 0);

    let (first, last) = hosts.zooms[0].span().unwrap();
    let middle = first + (last - first) / 2;
    let events = events_of_hosts(
        &hosts.opened(&Filter::default()),
        (Some(middle), None),
        30_000,
    )
    .unwrap();
    let sql =
        format!("SELECT ts_ns FROM syscalls WHERE ts_ns >= {middle} ORDER BY ts_ns LIMIT 30000");
    let times = fathom_query::fetch::rows(&hosts.db, &sql, |row| row.int("ts_ns")).unwrap();
    let found = events
        .column_by_name("ts_ns")
        .unwrap()
        .as_primitive::<Int64Type>()
        .values()
        .to_vec();
    assert_eq!(found, times);
    assert!(
        events
            .column_by_name("host")
            .unwrap()
            .as_string::<i32>()
            .iter()
            .any(|host| host == Some("b"))
    );
}

#[test]
fn sums_by_layer_are_on_the_clock_of_the_set() {
    let hosts = Hosts::written(shifted, |dir, n| layers::session(dir, 11 + n));
    let by_layer = Request {
        max_rows: Some(0),
        ..request(By::Layer, 16, (None, None))
    };
    let got = hosts.query(&Filter::default(), &by_layer, false);
    assert!(got.blocks > 0);
    let sql = format!(
        "SELECT layer, ts_ns // {width} * {width} AS t, count(*) AS n, sum(own)::BIGINT AS own FROM (
            SELECT layer, ts_ns, self_ns AS own FROM slices
            UNION ALL SELECT 'syscall', ts_ns, dur_ns FROM syscalls ANTI JOIN slices USING (host, rid))
        GROUP BY ALL",
        width = got.bucket_ns
    );
    let rows = fathom_query::fetch::rows(&hosts.db, &sql, |row| {
        let key = (Some(row.text("layer")?), row.int("t")?);
        Ok((key, (row.int("n")?, row.int("own")?)))
    });
    let found = answer(&got.rows, By::Layer).into_iter();
    let found: BTreeMap<_, _> = found.map(|(key, sum)| (key, (sum.0, sum.3))).collect();
    assert_eq!(found, BTreeMap::from_iter(rows.unwrap()));
}

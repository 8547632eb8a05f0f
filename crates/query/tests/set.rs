//! Tables and views of a set: the rows of all sessions, times on the clock of the first.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use fathom_model::set::{ClockMap, Member, MemberClock, Method, SET_VERSION, Segment, SetMeta};
use fathom_query::fetch::rows;
use fathom_query::{Db, Limits, QueryError, joined_rid, joined_tid};
use fathom_session::{Session, SessionSet, SessionWriter, WriterOptions, write_set};
use fathom_testkit::waits::{self, Block, Wait};
use fathom_testkit::{Workload, files, meta, sample};

const CALLS: usize = 500;

/// A session with calls, waits, and block requests that are the same whatever `id` is.
fn session(dir: &Path, id: &str) -> Session {
    let mut meta = meta();
    meta.id = id.to_string();
    let writer = SessionWriter::create(dir, meta.clone(), WriterOptions::default()).unwrap();
    writer.append(files(&[(1, "/a"), (2, "/b")])).unwrap();
    writer.append(Workload::new(3).batch(CALLS)).unwrap();
    let block = Block {
        tid: 7,
        rid: None,
        queued_ns: 2_000,
        issued_ns: 3_000,
        completed_ns: 9_000,
    };
    writer.append(waits::blocks(&[block])).unwrap();
    let wait = Wait::new(7, 2_500, 9_500, "disk")
        .woken(9_100)
        .by_block(block.queued_ns);
    writer.append(waits::waits(&[wait])).unwrap();
    writer.finish(meta).unwrap();
    Session::open(dir).unwrap()
}

fn member(host: &str, session: &Session, map: ClockMap) -> Member {
    Member {
        host: host.to_string(),
        path: session.dir().to_owned(),
        session: session.meta().id.clone(),
        clock: MemberClock {
            method: Method::Messages,
            via: None,
            messages: 0,
            error_ns: None,
            error_in_messages_ns: None,
            errors: Vec::new(),
            note: String::new(),
            map,
        },
    }
}

/// Half a second earlier, 100 ppm faster; and from the middle of the calls on slower.
fn bent(middle_ns: i64) -> ClockMap {
    let from_ns = middle_ns - 1_000_000_000;
    let first = ClockMap::line(from_ns, from_ns - 500_000_000, 1e-4);
    let to_ns = first.apply(middle_ns);
    let mut segments = first.segments;
    segments.push(Segment {
        from_ns: middle_ns,
        to_ns,
        rate: -3e-5,
    });
    ClockMap { segments }
}

fn ints(db: &Db, sql: &str) -> Vec<i64> {
    rows(db, sql, |row| row.int("n")).unwrap()
}

fn set(root: &Path) -> (SessionSet, ClockMap, Vec<i64>) {
    let (a, b) = (
        session(&root.join("a.fathom"), "a"),
        session(&root.join("b.fathom"), "b"),
    );
    let alone = Db::open(&b, Limits::default()).unwrap();
    let own = ints(&alone, "SELECT ts_ns AS n FROM syscalls ORDER BY rid");
    let map = bent(own[own.len() / 2]);
    let meta = SetMeta {
        set_version: SET_VERSION,
        fathom_version: String::new(),
        members: vec![
            member("a", &a, ClockMap::default()),
            member("it's b", &b, map.clone()),
        ],
    };
    (SessionSet::new(meta, vec![a, b]), map, own)
}

#[test]
fn times_of_a_member_are_on_the_clock_of_the_first() {
    let root = tempfile::tempdir().unwrap();
    let (set, map, own) = set(root.path());
    let db = Db::open_set(&set, Limits::default()).unwrap();
    let of =
        |host: &str| format!("SELECT ts_ns AS n FROM syscalls WHERE host = '{host}' ORDER BY rid");
    assert_eq!(own.len(), CALLS);
    assert_eq!(ints(&db, &of("a")), own);
    let moved: Vec<i64> = own.iter().map(|at| map.apply(*at)).collect();
    assert_eq!(ints(&db, &of("it''s b")), moved);
    assert_ne!(own, moved);

    // A duration leads from the start to the end on that clock.
    let of = |host: &str| {
        format!(
            "SELECT ts_ns + dur_ns AS n FROM syscalls WHERE host = '{host}' AND dur_ns IS NOT NULL ORDER BY rid"
        )
    };
    let ends = ints(&db, &of("a"));
    assert!(ends.len() > CALLS / 2);
    let moved: Vec<i64> = ends.iter().map(|at| map.apply(*at)).collect();
    assert_eq!(ints(&db, &of("it''s b")), moved);

    // Columns that are stored as differences, and one that names a row by its time.
    let there = |ns: i64| map.apply(sample::START + ns);
    let block =
        "SELECT unnest([ts_ns, queued_at_ns, issued_at_ns, completed_at_ns]) AS n FROM block
        WHERE host = 'it''s b'";
    let times = [2_000, 2_000, 3_000, 9_000].map(there);
    assert_eq!(ints(&db, block), times);
    let wait =
        "SELECT unnest([ts_ns, woken_at_ns, cause_id]) AS n FROM waits WHERE host = 'it''s b'";
    assert_eq!(ints(&db, wait), [2_500, 9_100, 2_000].map(there));
    let cause =
        "SELECT count(*) AS n FROM waits JOIN block USING (host) WHERE cause_id = block.ts_ns";
    assert_eq!(ints(&db, cause), [2]);
}

#[test]
fn views_have_the_rows_of_each_session() {
    let root = tempfile::tempdir().unwrap();
    let (set, ..) = set(root.path());
    let together = Db::open_set(&set, Limits::default()).unwrap();
    for (member, session) in set.members() {
        let alone = Db::open(session, Limits::default()).unwrap();
        // Of another clock's seconds there may be more.
        let names = fathom_query::view_names().filter(|name| *name != "by_second");
        for name in names {
            // The session's own name is in another column there, and findings are not here.
            let (columns, of) = match name {
                "session" => ("seen, stored, id", "seen, stored, id"),
                _ => ("*", "* EXCLUDE (host)"),
            };
            let count =
                |db: &Db, from: String| ints(db, &format!("SELECT count(*) AS n FROM {from}"));
            let host = member.host.replace('\'', "''");
            let there = format!("(SELECT {of} FROM {name} WHERE host = '{host}')");
            let here = format!("(SELECT {columns} FROM {name})");
            assert_eq!(count(&together, there), count(&alone, here), "{name}");
        }
        let sums = "SELECT sum(hash(file_id, path, calls) // 1000000)::BIGINT AS n FROM by_file";
        let host = member.host.replace('\'', "''");
        let there = |sums: &str| format!("{sums} WHERE host = '{host}'");
        assert_eq!(ints(&together, &there(sums)), ints(&alone, sums));
        // Durations are on the clock of the first session, whose rate differs by 100 ppm.
        let total = "SELECT sum(total_ns)::BIGINT AS n FROM by_file";
        let [shown, own] = [ints(&together, &there(total)), ints(&alone, total)];
        let off = (shown[0] - own[0]).abs();
        assert!(off <= own[0] / 9_000 + CALLS as i64, "{shown:?} {own:?}");
        assert_eq!(off == 0, member.clock.map.segments.is_empty());
    }
}

#[test]
fn threads_and_requests_of_all_members_have_ids_of_their_own_for_paths() {
    let root = tempfile::tempdir().unwrap();
    let (mut set, ..) = set(root.path());
    let db = Db::open_joined(&mut set, &Limits::default()).unwrap();
    let rids = "SELECT count(DISTINCT rid) AS n FROM syscalls";
    assert_eq!(ints(&db, rids), [2 * CALLS as i64]);
    let tids = "SELECT tid AS n FROM waits ORDER BY n";
    assert_eq!(ints(&db, tids), [7, joined_tid(1, 7).unwrap()]);
    assert_eq!((joined_tid(1, -1), joined_rid(0, i64::MAX)), (None, None));
    let last = format!(
        "SELECT count(*) AS n FROM syscalls WHERE rid > {}",
        joined_rid(1, 0).unwrap()
    );
    assert_eq!(ints(&db, &last), [CALLS as i64]);
}

#[test]
fn a_set_on_disk_names_its_sessions_relative_to_itself() {
    let root = tempfile::tempdir().unwrap();
    let (set, ..) = set(root.path());
    let path = root.path().join("all.fset");
    write_set(&path, set.meta().clone(), false).unwrap();
    assert!(SessionSet::is_set(&path));
    let error = write_set(&path, set.meta().clone(), false).unwrap_err();
    assert!(error.to_string().contains("--force"), "{error}");
    write_set(&path, set.meta().clone(), true).unwrap();

    // It moves with them.
    let moved = root.path().join("moved");
    std::fs::create_dir(&moved).unwrap();
    for name in ["a.fathom", "b.fathom", "all.fset"] {
        std::fs::rename(root.path().join(name), moved.join(name)).unwrap();
    }
    let opened = SessionSet::open(&moved.join("all.fset")).unwrap();
    assert_eq!(opened.members().count(), 2);
    let error = Session::open(&moved.join("all.fset"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is a set of sessions") && error.contains("b.fathom"),
        "{error}"
    );

    // Files that are no sets stay, and damaged ones are errors.
    let other = moved.join("other");
    std::fs::write(&other, "text").unwrap();
    assert!(write_set(&other, set.meta().clone(), true).is_err());
    let text = std::fs::read_to_string(moved.join("all.fset")).unwrap();
    let once = text.replace("it's b", "a");
    let fast = text.replace("\"rate\": -0.00003", "\"rate\": -3");
    assert_ne!(fast, text);
    let elsewhere = text.replace("\"b.fathom\"", "\"\\u001b[2J\"");
    assert_ne!(elsewhere, text);
    let half = &text[..text.len() / 2];
    for damaged in [half, "{\n  \"set_version\": 2}", &once, &fast, &elsewhere] {
        std::fs::write(&other, damaged).unwrap();
        let error = SessionSet::open(&other).unwrap_err().to_string();
        let next = error.contains("make the set again");
        assert!(next && !error.contains('\u{1b}'), "{damaged}: {error}");
    }
}

#[test]
fn a_statement_reads_nothing_but_the_sessions() {
    let root = tempfile::tempdir().unwrap();
    let (set, ..) = set(root.path());
    let db = Db::open_set(&set, Limits::default()).unwrap();
    for sql in [
        "SELECT * FROM read_text('/etc/passwd')",
        "DROP VIEW syscalls",
        "USE member_1",
    ] {
        let refused = db.query(sql);
        assert!(
            matches!(
                refused,
                Err(QueryError::Function(_) | QueryError::NotASelect(_))
            ),
            "{sql}"
        );
    }
}

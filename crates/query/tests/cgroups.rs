//! Sums by cgroup, unit and pod over a session with known contents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fathom_model::tables::{ContainerRow, ContainerRows, ProcessRow, ProcessRows};
use fathom_model::{Batch, StrId, StringTable};
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, Call, Files, Loss, START};

const ONE: &str = "/system.slice/a.service/worker";
const TWO: &str = "/kubepods/pod1/c2";

/// Process 10 is in one cgroup, and a later process with the same id in another one.
fn processes() -> Batch {
    let mut strings = StringTable::new();
    let mut rows = ProcessRows::default();
    for (pid, tid, started_at_ns, cgroup, container) in [
        (10, 10, START, ONE, None),
        (10, 10, START + 1000, TWO, Some("c2")),
        (20, 20, START, TWO, Some("c2")),
        (20, 21, START, TWO, Some("c2")),
        (30, 30, START, "/", None),
    ] {
        rows.push(ProcessRow {
            pid,
            tid,
            comm: strings.intern(b"x"),
            cgroup: strings.intern(cgroup.as_bytes()),
            container_id: container.map_or(StrId::NULL, |id: &str| strings.intern(id.as_bytes())),
            started_at_ns,
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

fn containers() -> Batch {
    let mut strings = StringTable::new();
    let mut rows = ContainerRows::default();
    // A recording may write a row again.
    for _ in 0..2 {
        rows.push(ContainerRow {
            container_id: strings.intern(b"c2"),
            namespace: strings.intern(b"shop"),
            pod: strings.intern(b"db-0"),
            pod_uid: StrId::NULL,
            name: strings.intern(b"postgres"),
        });
    }
    rows.into_batch(strings)
}

fn rows(db: &Db, sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    let result = db.query(sql).unwrap();
    output::write(result, Format::Csv, &Options::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().skip(1).map(str::to_string).collect()
}

#[test]
fn calls_belong_to_the_cgroup_that_their_process_was_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let call = |pid, tid, at| Call::new("write", at, 100).by(pid, tid).on(1).moves(8);
    files
        .add(&sample::syscalls(
            1,
            &[
                call(10, 10, 500),
                call(10, 10, 1000),
                call(10, 10, 2000),
                call(20, 21, 700),
                call(30, 30, 800),
                call(40, 40, 900),
            ],
        ))
        .add(&processes())
        .add(&containers())
        .add(&sample::losses(&[Loss {
            syscall: "write",
            pid: 20,
            file_id: 1,
            count: 5,
            errors: 1,
            bytes: 40,
            each_ns: 10,
        }]));
    let db = Db::open_parts(&sample::meta(), |t| files.parts(t), Limits::default()).unwrap();
    let columns = "processes, calls, lost, errors, written_bytes, total_ns";
    assert_eq!(
        rows(
            &db,
            &format!(
                "SELECT cgroup, unit, container_id, namespace, pod, container, {columns} FROM by_cgroup ORDER BY cgroup"
            )
        ),
        [
            "/,NULL,NULL,NULL,NULL,NULL,1,1,0,0,8,100",
            "/kubepods/pod1/c2,NULL,c2,shop,db-0,postgres,2,8,5,1,64,350",
            "/system.slice/a.service/worker,a.service,NULL,NULL,NULL,NULL,1,1,0,0,8,100",
            "NULL,NULL,NULL,NULL,NULL,NULL,1,1,0,0,8,100",
        ]
        .map(|row| row.replace("NULL", ""))
    );
    assert_eq!(
        rows(
            &db,
            &format!("SELECT pod, containers, {columns} FROM by_pod ORDER BY pod NULLS LAST")
        ),
        ["db-0,1,2,8,5,1,64,350", ",0,3,3,0,0,24,300"]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT unit, calls FROM by_unit ORDER BY unit NULLS LAST"
        ),
        ["a.service,1", ",10"]
    );
}

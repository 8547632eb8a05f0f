//! Sums by cgroup, unit and pod over a session with known contents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fathom_model::tables::{ContainerRow, ContainerRows, ProcessRow, ProcessRows};
use fathom_model::{Batch, StrId, StringTable};
use fathom_query::output::{self, Format, Options};
use fathom_query::zoom::{Filter, Tenant, Tenants};
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

/// A session of these processes, with losses.
fn with_calls(files: &mut Files) {
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
}

#[test]
fn calls_belong_to_the_cgroup_that_their_process_was_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    with_calls(&mut files);
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

#[test]
fn a_process_id_of_several_cgroups_has_a_row_per_thread_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    with_calls(&mut files);
    let db = Db::open_parts(&sample::meta(), |t| files.parts(t), Limits::default()).unwrap();
    let sql = format!(
        "SELECT pid, tid, from_ns - {START}, until_ns - {START}, cgroup, unit, container_id, namespace, pod, container
         FROM tenants ORDER BY ALL"
    );
    assert_eq!(
        rows(&db, &sql),
        [
            format!("10,10,1000,,{TWO},,c2,shop,db-0,postgres"),
            format!("10,10,,1000,{ONE},a.service,,,,"),
            format!("20,,,,{TWO},,c2,shop,db-0,postgres"),
            "30,,,,/,,,,,".to_owned(),
        ]
    );
}

/// The starts of the calls that pass a filter, after [`START`].
fn passing(db: &Db, asked: &[(Tenant, &[&str], bool)]) -> Vec<i64> {
    let mut tenants = Tenants::default();
    for (of, values, not) in asked {
        let values: Vec<String> = values.iter().map(|value| (*value).to_string()).collect();
        tenants.add(*of, &values, *not);
    }
    let filter = tenants.narrow(db, Filter::default()).unwrap();
    let condition = filter.sql().unwrap_or("true".into());
    assert_eq!(filter.faults_sql().unwrap_or_default(), condition);
    let sql = format!("SELECT ts_ns - {START} FROM syscalls WHERE {condition} ORDER BY ts_ns");
    let found = rows(db, &sql);
    found.iter().map(|row| row.parse().unwrap()).collect()
}

#[test]
fn filters_pass_the_calls_of_their_tenants() {
    use Tenant::{Cgroup, Container, Namespace, Pod, Unit};
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    with_calls(&mut files);
    let db = Db::open_parts(&sample::meta(), |t| files.parts(t), Limits::default()).unwrap();
    let one = |of, value: &str| passing(&db, &[(of, &[value], false)]);
    let not = |of, value: &str| passing(&db, &[(of, &[value], true)]);
    let pod = [700, 1000, 2000];
    assert_eq!(one(Cgroup, ONE), [500]);
    assert_eq!(one(Cgroup, "/system.slice"), [500]);
    assert_eq!(one(Cgroup, "/system.slice/a.service/"), [500]);
    assert_eq!(one(Cgroup, "/system"), [] as [i64; 0]);
    // Every process of a known cgroup is below the root.
    assert_eq!(one(Cgroup, "/"), [500, 700, 800, 1000, 2000]);
    assert_eq!(one(Unit, "a.service"), [500]);
    assert_eq!(one(Unit, "a"), [500]);
    assert_eq!(one(Unit, "a.scope"), [] as [i64; 0]);
    for value in ["db-0", "shop/db-0", "*/db-*", "shop/*"] {
        assert_eq!(one(Pod, value), pod, "{value}");
    }
    assert_eq!(one(Pod, "other/db-0"), [] as [i64; 0]);
    assert_eq!(one(Namespace, "shop"), pod);
    assert_eq!(one(Container, "c2"), pod);
    assert_eq!(one(Container, "postgres"), pod);
    assert_eq!(one(Container, "c"), [] as [i64; 0]);
    // Calls of no known process are of none.
    assert_eq!(not(Pod, "db-0"), [500, 800, 900]);
    assert_eq!(not(Unit, "a"), [700, 800, 900, 1000, 2000]);
    // Of a list any, of several lists all.
    assert_eq!(
        passing(&db, &[(Cgroup, &["/system.slice", "/kubepods"], false)]),
        [500, 700, 1000, 2000]
    );
    assert_eq!(
        passing(&db, &[(Cgroup, &["/"], false), (Pod, &["db-0"], true)]),
        [500, 800]
    );
    assert_eq!(
        passing(&db, &[(Unit, &["a"], true), (Pod, &["db-0"], true)]),
        [800, 900]
    );
    assert_eq!(passing(&db, &[(Unit, &[], false)]), [] as [i64; 0]);
    assert_eq!(one(Unit, "' OR true --"), [] as [i64; 0]);

    let mut tenants = Tenants::default();
    tenants.add(Unit, &["a".into(), "b".into()], false);
    tenants.add(Pod, &["shop/db-1".into()], true);
    let unknown = tenants.unknown(&db).unwrap();
    assert_eq!(unknown, [(Unit, "b"), (Pod, "shop/db-1")]);
}
